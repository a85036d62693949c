"""What a pseudo-episode is worth.

The value-decomposition lemmas, and how many pseudo-episodes there are.

A pseudo-episode has a length L ~ Geom(1 − γ), independent of the trajectory s₁, s₂, … of a fixed
policy π in the true MDP. With w = r + γV and the discrepancy D of one backup,

    D(s) = ρ^{α(s,a)}_{φ(s,a)}(w·P) − P^c_{s,a}·w,   a = π(s), V = V^π_{φ,α}

(the paper's γE; rewards r(s,a,s') stay inside), the lemma on pseudo-episode value decomposition
says

    E[ Σ_{i≤L} (V^π_{φ,α}(s_i) − V^π(s_i)) ] = E[ Σ_{i≤L} i·D(s_i) ].

Its companion for the robust benchmark has V^π_{φ,α̲} in place of V^π and D + D⁻ in place of D,
where D⁻ is minus the discrepancy at level α̲. In matrices, with P the true transitions of π: Δ = (I
− γP)⁻¹D, and the two sides are (I − γP)⁻¹Δ and (I − γP)⁻²D. With a restart after every step with
probability 1 − γ, E[K_T] = 1 + (T − 1)(1 − γ) pseudo-episodes begin by T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from brmdp._validation import (
    FloatArray,
    IntArray,
    as_discount,
    as_index,
    as_level,
    as_policy,
    as_positive_int,
    as_rng,
)
from brmdp.agents import GeometricLength, Progress
from brmdp.beliefs.base import Belief
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP
from brmdp.planning import backup, evaluate_in_mdp
from brmdp.planning.planner import solution_of
from brmdp.risk import Mean, Quantile
from brmdp.theory.checks import require_about

__all__ = [
    "ValueDecomposition",
    "count_episodes",
    "expected_episodes",
    "robust_value_decomposition",
    "sample_decomposition",
    "value_decomposition",
]

TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class ValueDecomposition:
    """Both sides of a value-decomposition lemma, exactly.

    For every first state of a pseudo-episode.

    Attributes
    ----------
    left, right : (S,) arrays
        Expected sums over a pseudo-episode of the value differences, and of i times the
        discrepancies.
    difference : (S,) array
        Difference Δ of the two values of the policy.
    discrepancy : (S,) array
        D, or D + D⁻, of one backup.
    transitions : (S, S) array
        True transition matrix of the policy.
    discount : float
    """

    left: FloatArray
    right: FloatArray
    difference: FloatArray
    discrepancy: FloatArray
    transitions: FloatArray
    discount: float


def value_decomposition(
    truth: TabularMDP, posterior: Belief, policy: Any, alpha: Any
) -> ValueDecomposition:
    """The lemma on V^π_{φ,α} − V^π.

    Parameters
    ----------
    truth : TabularMDP
        P^c, rewards and discount; the rewards must be defined wherever the posterior thinks a
        transition possible.
    posterior : Belief
        φ, on the same states and actions.
    policy : (S,) integers
        π.
    alpha : float or (S, A) array in (0, 1)
        Levels.
    """
    chosen = _checked(truth, posterior, policy)
    values, discrepancy = _nested(truth, posterior, chosen, alpha)
    return _both_sides(truth, chosen, values - evaluate_in_mdp(truth, chosen), discrepancy)


def robust_value_decomposition(
    truth: TabularMDP, posterior: Belief, policy: Any, alpha: Any, floor: float
) -> ValueDecomposition:
    """The lemma on V^π_{φ,α} − V^π_{φ,α̲}.

    Arguments as in :func:`value_decomposition`, and the level α̲.
    """
    chosen = _checked(truth, posterior, policy)
    values, discrepancy = _nested(truth, posterior, chosen, alpha)
    robust_values, robust_discrepancy = _nested(truth, posterior, chosen, as_level(floor, "floor"))
    return _both_sides(truth, chosen, values - robust_values, discrepancy - robust_discrepancy)


def sample_decomposition(
    decomposition: ValueDecomposition, state: int, samples: int, rng: Any
) -> tuple[FloatArray, FloatArray]:
    """Both sums in ``samples`` simulated pseudo-episodes that begin in ``state``.

    Two (samples,) arrays of the same mean.

    Parameters
    ----------
    decomposition : ValueDecomposition
    state : int
    samples : int
    rng : numpy.random.Generator or seed
    """
    if not isinstance(decomposition, ValueDecomposition):
        raise InvalidInputError(
            "decomposition must be a ValueDecomposition, such as value_decomposition(…); got "
            f"{type(decomposition).__name__}"
        )
    begin = as_index(state, decomposition.difference.size, "state")
    count, stream = as_positive_int(samples, "samples"), as_rng(rng)
    lengths = stream.geometric(1.0 - decomposition.discount, count)
    cumulative = np.cumsum(decomposition.transitions, axis=1)
    cumulative /= cumulative[:, -1:]
    left, right = np.zeros(count), np.zeros(count)
    alive, states = np.arange(count), np.full(count, begin)
    for i in range(1, int(lengths.max()) + 1):
        left[alive] += decomposition.difference[states]
        right[alive] += i * decomposition.discrepancy[states]
        go_on = lengths[alive] > i
        alive, states = alive[go_on], states[go_on]
        states = (cumulative[states] <= stream.random((states.size, 1))).sum(axis=1)
    return left, right


def expected_episodes(steps: int, discount: float) -> float:
    """E[K_T] = 1 +.

    (T − 1)(1 − γ), the expected number of pseudo-episodes that begin within T steps.
    """
    return 1.0 + (as_positive_int(steps, "steps") - 1) * (1.0 - as_discount(discount))


def count_episodes(rng: Any, steps: int, discount: float) -> int:
    """K_T in one run of the library's own restart rule.

    Pseudo-episodes that begin within ``steps`` steps.

    Parameters
    ----------
    rng : numpy.random.Generator or seed
    steps : int
    discount : float in [0, 1)
        γ, the probability that a pseudo-episode goes on.
    """
    restart, stream = GeometricLength(as_discount(discount)), as_rng(rng)
    progress = Progress.none(np.ones((1, 1), dtype=bool))
    return 1 + sum(
        restart.ends(progress, stream) for _ in range(as_positive_int(steps, "steps") - 1)
    )


def _checked(truth: Any, posterior: Any, policy: Any) -> IntArray:
    require_about(posterior, truth, "truth")
    return as_policy(policy, truth.admissible)


def _nested(
    truth: TabularMDP, posterior: Belief, policy: IntArray, alpha: Any
) -> tuple[FloatArray, FloatArray]:
    """V^π_{φ,α} and the discrepancy of its backup."""
    risk = Quantile(alpha)
    scale = float(np.abs(truth.transition_rewards).max()) / (1.0 - truth.discount) or 1.0
    problem = (truth.rewards, truth.discount)
    values = solution_of(
        posterior, *problem, risk, policy=policy, tolerance=TOLERANCE * scale, all_actions=False
    ).values
    chosen = np.arange(truth.n_states), policy
    believed = backup(posterior, *problem, values, risk=risk).q_values[chosen]
    return values, believed - backup(truth, *problem, values, risk=Mean()).q_values[chosen]


def _both_sides(
    truth: TabularMDP, policy: IntArray, difference: FloatArray, discrepancy: FloatArray
) -> ValueDecomposition:
    transitions = truth.kernel()[np.arange(truth.n_states), policy]
    system = np.eye(truth.n_states) - truth.discount * transitions
    return ValueDecomposition(
        left=np.linalg.solve(system, difference),
        right=np.linalg.solve(system, np.linalg.solve(system, discrepancy)),
        difference=difference,
        discrepancy=discrepancy,
        transitions=transitions,
        discount=truth.discount,
    )
