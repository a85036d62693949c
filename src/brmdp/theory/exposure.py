"""Posterior downside exposure (the paper's definition of the same name).

A policy π has (β, Λ)-posterior downside exposure at a state s₀ if its regret reaches Λ with
posterior probability β or more:

    φ( V*_P(s₀) − V^π_P(s₀) ≥ Λ ) ≥ β.

For a belief in finitely many kernels this probability is a sum of weights. For other beliefs it is
estimated by the share of posterior draws, with a confidence interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from brmdp._validation import (
    FloatArray,
    IntArray,
    Seed,
    as_index,
    as_level,
    as_policy,
    as_positive_int,
    as_positive_number,
    as_rng,
)
from brmdp.beliefs import ScenarioBelief
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import draws_of, require_belief, scenarios_of
from brmdp.beliefs.disturbance import Rewards
from brmdp.mdp import TabularMDP
from brmdp.planning import Problem
from brmdp.planning.guarantees import clopper_pearson
from brmdp.risk.base import FixedKernel, RiskOperator

__all__ = ["RESOLUTION", "Exposure", "downside_exposure"]

RESOLUTION = 1e-9
"""Rounding allowed when a regret is compared with a threshold.

It is relative to the largest possible value. The paper's propositions speak of thresholds that are
attained exactly, so rounding must not decide whether a regret reaches one.
"""


@dataclass(frozen=True, eq=False)
class Exposure:
    """Posterior probability that a policy's regret reaches a threshold.

    Attributes
    ----------
    threshold : float
        Λ.
    probability : float
        Posterior probability that the regret is at least Λ.
    interval : (float, float)
        Clopper–Pearson interval at the requested confidence; (probability, probability) if exact.
    exact : bool
        Whether every kernel of the belief was evaluated.
    regret : (K,) array
        V*_P(s₀) − V^π_P(s₀) in each kernel evaluated.
    weights : (K,) array
        Probabilities of these kernels; they sum to one.

    Examples
    --------
    >>> from brmdp.theory import check_robustness, robustness_example
    >>> example = robustness_example(0.7, safe_reward=0.3, loss=0.5, discount=0.9)
    >>> exposure = check_robustness(example, alpha=0.2).mean_exposure
    >>> round(exposure.probability, 6), exposure.exact
    (0.3, True)
    """

    threshold: float
    probability: float
    interval: tuple[float, float]
    exact: bool
    regret: FloatArray
    weights: FloatArray


def downside_exposure(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    policy: ArrayLike,
    threshold: float,
    *,
    state: int = 0,
    samples: int = 1000,
    confidence: float = 0.95,
    rng: Seed = None,
) -> Exposure:
    """Posterior probability that the regret of ``policy`` at ``state`` is at least ``threshold``.

    Parameters
    ----------
    belief, rewards, discount, policy
        As in :func:`brmdp.evaluate_under_belief`. The result is exact for a ScenarioBelief or a
        TabularMDP and sampled for other beliefs.
    threshold : float
        Λ > 0.
    state : int
        s₀.
    samples : int
        Number of posterior draws, where they are needed.
    confidence : float in (0, 1)
        Confidence of the interval.
    rng : numpy.random.Generator or seed, optional
        Source of the posterior draws.

    Returns
    -------
    Exposure

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.theory import downside_exposure
    >>> river = brmdp.envs.riverswim(3)
    >>> belief = brmdp.DirichletBelief.uniform(3, 2)
    >>> found = downside_exposure(belief, river.rewards, 0.9, [1, 1, 1], 0.5, samples=20, rng=1)
    >>> low, high = found.interval
    >>> low <= found.probability <= high
    True
    """
    require_belief(belief)
    least = as_positive_number(threshold, "threshold")
    start = as_index(state, belief.pattern.n_states, "state")
    chosen = as_policy(policy, belief.pattern.admissible)
    draws, sure = as_positive_int(samples, "samples"), as_level(confidence, "confidence")
    kernels, weights = _kernels(belief, draws, as_rng(rng))
    exact = isinstance(belief, ScenarioBelief | TabularMDP)
    problem = Problem.of(belief, rewards, discount)
    slack = RESOLUTION * (problem.largest or 1.0)
    problem = Problem(problem.pattern, problem.rewards, problem.discount, slack / 4.0)
    regret = np.array([_regret(problem, belief, entries, chosen)[start] for entries in kernels])
    reached = regret >= least - slack
    probability = min(math.fsum(weights[reached]), 1.0)
    interval = (
        (probability, probability) if exact else clopper_pearson(int(reached.sum()), draws, sure)
    )
    return Exposure(least, probability, interval, exact, regret, weights)


class _OneKernel:
    """A risk measure that plans for one kernel, given by its entries on the belief's pattern."""

    def __init__(self, entries: FloatArray) -> None:
        self.entries = entries

    def bind(self, belief: Belief) -> RiskOperator:
        return FixedKernel(belief.pattern, self.entries)


def _kernels(
    belief: Belief, samples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Kernels (K, transitions) that represent the belief, and their weights (K,)."""
    if isinstance(belief, ScenarioBelief):
        entries, weights = scenarios_of(belief)
        alive = weights > 0.0
        return entries[alive], weights[alive]
    count = 1 if isinstance(belief, TabularMDP) else samples
    return draws_of(belief, count, rng), np.full(count, 1.0 / count)


def _regret(problem: Problem, belief: Belief, entries: FloatArray, policy: IntArray) -> FloatArray:
    """V*_P − V^π_P at every state."""
    kernel = _OneKernel(entries)
    best = problem.solve(belief, kernel).values
    followed = problem.solve(belief, kernel, best, policy=policy, all_actions=False).values
    regret: FloatArray = np.maximum(best - followed, 0.0)
    return regret
