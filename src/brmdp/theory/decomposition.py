"""The value-decomposition lemmas for pseudo-episodes, and the number of pseudo-episodes.

A pseudo-episode has a length L ~ Geom(1 − γ), independent of the trajectory s₁, s₂, … of a fixed
policy π in the true MDP. With w = r + γV and the discrepancy D of one backup,

    D(s) = ρ^{α(s,a)}_{φ(s,a)}(w·P) − P^c_{s,a}·w,   a = π(s), V = V^π_{φ,α}

(the paper's γE; rewards r(s,a,s') stay inside), the lemma on pseudo-episode value decomposition
says

    E[ Σ_{i≤L} (V^π_{φ,α}(s_i) − V^π(s_i)) ] = E[ Σ_{i≤L} i·D(s_i) ].

Its companion for the robust benchmark has V^π_{φ,α̲} in place of V^π and D + D⁻ in place of D,
where D⁻ is minus the discrepancy at level α̲. In matrices, with P the true transition matrix of π
and Δ = (I − γP)⁻¹D, the two sides are (I − γP)⁻¹Δ and (I − γP)⁻²D. When a pseudo-episode ends
after every step with probability 1 − γ, E[K_T] = 1 + (T − 1)(1 − γ) of them begin within T steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from brmdp._validation import (
    FloatArray,
    IntArray,
    Seed,
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
from brmdp.theory.checks import require_belief_about

__all__ = [
    "ValueDecomposition",
    "count_episodes",
    "expected_episodes",
    "robust_value_decomposition",
    "sample_decomposition",
    "value_decomposition",
]

TOLERANCE = 1e-10
"""Accuracy of V^π_{φ,α}, relative to max|r|/(1 − γ)."""


@dataclass(frozen=True, eq=False)
class ValueDecomposition:
    """Exact values of both sides of a value-decomposition lemma, for each first state.

    Attributes
    ----------
    left, right : (S,) arrays
        Expected sums over a pseudo-episode: of the value differences, and of the discrepancies of
        the backups, the i-th counted i times.
    difference : (S,) array
        Difference Δ between the two values of the policy.
    discrepancy : (S,) array
        Discrepancy of one backup: D, or D + D⁻ for the robust lemma; see
        :mod:`brmdp.theory.decomposition`.
    transitions : (S, S) array
        True transition matrix of the policy.
    discount : float
        Discount factor γ.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.theory import value_decomposition
    >>> truth = brmdp.envs.riverswim(3)
    >>> lemma = value_decomposition(truth, brmdp.DirichletBelief.uniform(3, 2), [1, 1, 1], 0.2)
    >>> bool(abs(lemma.left - lemma.right).max() < 1e-6)
    True
    """

    left: FloatArray
    right: FloatArray
    difference: FloatArray
    discrepancy: FloatArray
    transitions: FloatArray
    discount: float


def value_decomposition(
    truth: TabularMDP, belief: Belief, policy: ArrayLike, alpha: ArrayLike
) -> ValueDecomposition:
    """Both sides of the lemma on V^π_{φ,α} − V^π.

    Parameters
    ----------
    truth : TabularMDP
        P^c, rewards and discount. The rewards must be defined for every transition that is possible
        under the belief.
    belief : Belief
        φ, on the same states and actions.
    policy : (S,) integers
        π.
    alpha : float or (S, A) array in (0, 1)
        Levels.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.theory import value_decomposition
    >>> truth = brmdp.envs.riverswim(3)
    >>> lemma = value_decomposition(truth, brmdp.DirichletBelief.uniform(3, 2), [0, 0, 0], 0.5)
    >>> lemma.discrepancy.shape
    (3,)
    """
    chosen = _checked(truth, belief, policy)
    values, discrepancy = _nested(truth, belief, chosen, alpha)
    return _both_sides(truth, chosen, values - evaluate_in_mdp(truth, chosen), discrepancy)


def robust_value_decomposition(
    truth: TabularMDP, belief: Belief, policy: ArrayLike, alpha: ArrayLike, floor: float
) -> ValueDecomposition:
    """Both sides of the lemma on V^π_{φ,α} − V^π_{φ,α̲}.

    Parameters
    ----------
    truth, belief, policy, alpha
        As in :func:`value_decomposition`.
    floor : float in (0, 1)
        α̲.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.theory import robust_value_decomposition
    >>> truth, belief = brmdp.envs.riverswim(3), brmdp.DirichletBelief.uniform(3, 2)
    >>> lemma = robust_value_decomposition(truth, belief, [1, 1, 1], alpha=0.5, floor=0.2)
    >>> bool((lemma.difference >= 0).all())
    True
    """
    chosen = _checked(truth, belief, policy)
    values, discrepancy = _nested(truth, belief, chosen, alpha)
    robust_values, robust_discrepancy = _nested(truth, belief, chosen, as_level(floor, "floor"))
    return _both_sides(truth, chosen, values - robust_values, discrepancy - robust_discrepancy)


def sample_decomposition(
    decomposition: ValueDecomposition, state: int, samples: int, *, rng: Seed = None
) -> tuple[FloatArray, FloatArray]:
    """Simulate pseudo-episodes that begin in ``state`` and return the two sums of the lemma.

    Parameters
    ----------
    decomposition : ValueDecomposition
        Result of :func:`value_decomposition` or :func:`robust_value_decomposition`.
    state : int
        First state of every pseudo-episode.
    samples : int
        Number of pseudo-episodes.
    rng : numpy.random.Generator or seed, optional
        Source of the lengths and of the trajectories.

    Returns
    -------
    left, right : (samples,) arrays
        The two sums in each pseudo-episode. Their expectations are equal.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.theory import sample_decomposition, value_decomposition
    >>> truth = brmdp.envs.riverswim(3)
    >>> belief = brmdp.DirichletBelief.uniform(3, 2)
    >>> lemma = value_decomposition(truth, belief, [1, 1, 1], 0.2)
    >>> left, right = sample_decomposition(lemma, 0, 5, rng=1)
    >>> left.shape, right.shape
    ((5,), (5,))
    """
    if not isinstance(decomposition, ValueDecomposition):
        raise InvalidInputError(
            "decomposition must be a ValueDecomposition, such as value_decomposition(…) returns; "
            f"got {type(decomposition).__name__}"
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
    """E[K_T] = 1 + (T − 1)(1 − γ), the expected number of pseudo-episodes begun within T steps.

    Parameters
    ----------
    steps : int
        Number of steps T.
    discount : float in [0, 1)
        Discount factor γ.

    Examples
    --------
    >>> from brmdp.theory import expected_episodes
    >>> round(expected_episodes(101, 0.9), 6)
    11.0
    """
    return 1.0 + (as_positive_int(steps, "steps") - 1) * (1.0 - as_discount(discount))


def count_episodes(steps: int, discount: float, *, rng: Seed = None) -> int:
    """K_T in one run of :class:`brmdp.agents.GeometricLength`.

    K_T is the number of pseudo-episodes that begin within ``steps`` steps.

    Parameters
    ----------
    steps : int
        Number of steps T.
    discount : float in [0, 1)
        γ, the probability that a pseudo-episode goes on.
    rng : numpy.random.Generator or seed, optional
        Source of the restarts.

    Examples
    --------
    >>> from brmdp.theory import count_episodes
    >>> count_episodes(30, 0.0)
    30
    """
    restart, stream = GeometricLength(as_discount(discount)), as_rng(rng)
    progress = Progress.initial(np.ones((1, 1), dtype=bool))
    return 1 + sum(
        restart.ends(progress, rng=stream) for _ in range(as_positive_int(steps, "steps") - 1)
    )


def _checked(truth: Any, belief: Any, policy: ArrayLike) -> IntArray:
    """The policy, after checking it and whether the belief fits the truth."""
    require_belief_about(belief, truth, "truth")
    return as_policy(policy, truth.admissible)


def _nested(
    truth: TabularMDP, belief: Belief, policy: IntArray, alpha: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """V^π_{φ,α} and the discrepancy of its backup."""
    risk = Quantile(alpha)
    scale = float(np.abs(truth.transition_rewards).max()) / (1.0 - truth.discount) or 1.0
    problem = (truth.rewards, truth.discount)
    values = solution_of(
        belief, *problem, risk, policy=policy, tolerance=TOLERANCE * scale, all_actions=False
    ).values
    chosen = np.arange(truth.n_states), policy
    believed = backup(belief, *problem, values, risk=risk).q_values[chosen]
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
