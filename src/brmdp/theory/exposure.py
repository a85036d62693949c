"""Posterior downside exposure (the paper's Definition of the same name).

A policy π has (β, Λ)-posterior downside exposure at a state s₀ if its regret reaches Λ with
posterior probability β or more:

    φ( V*_P(s₀) − V^π_P(s₀) ≥ Λ ) ≥ β.

For finitely many kernels the probability is a sum of weights; otherwise it is the share of
posterior draws, with an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from brmdp._validation import (
    FloatArray,
    IntArray,
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
from brmdp.mdp import TabularMDP
from brmdp.planning import Problem
from brmdp.planning.guarantees import clopper_pearson
from brmdp.risk.base import FixedKernel, RiskOperator

__all__ = ["RESOLUTION", "Exposure", "downside_exposure"]

RESOLUTION = 1e-9
"""A regret that falls short of the threshold by less than this share of the largest possible value reaches it: the paper's
propositions speak of thresholds that are attained, and rounding must not decide."""


@dataclass(frozen=True, eq=False)
class Exposure:
    """Posterior probability that a policy's regret reaches a threshold.

    Attributes
    ----------
    threshold : float
        Λ.
    probability : float
        Of the regret being at least Λ.
    interval : (float, float)
        Clopper-Pearson interval of the stated confidence; (probability, probability) if exact.
    exact : bool
        Whether all kernels of the posterior were looked at.
    regret : (K,) array
        V*_P(s₀) − V^π_P(s₀) in every kernel looked at.
    weights : (K,) array
        Their probabilities, summing to one.
    """

    threshold: float
    probability: float
    interval: tuple[float, float]
    exact: bool
    regret: FloatArray
    weights: FloatArray


def downside_exposure(
    posterior: Belief,
    rewards: Any,
    discount: float,
    policy: Any,
    threshold: float,
    *,
    state: int = 0,
    samples: int = 1000,
    confidence: float = 0.95,
    rng: Any = None,
) -> Exposure:
    """Posterior probability that the regret of ``policy`` at ``state`` is at least ``threshold``.

    Parameters
    ----------
    posterior, rewards, discount, policy
        As in :func:`brmdp.evaluate_under_belief`. Exact for a ScenarioBelief or a TabularMDP, sampled
        otherwise.
    threshold : float
        Λ > 0.
    state : int
        s₀.
    samples : int
        Posterior draws, where they are needed.
    confidence : float in (0, 1)
        Of the interval.
    rng : numpy.random.Generator or seed
    """
    require_belief(posterior)
    least = as_positive_number(threshold, "threshold")
    start = as_index(state, posterior.pattern.n_states, "state")
    chosen = as_policy(policy, posterior.pattern.admissible)
    draws, sure = as_positive_int(samples, "samples"), as_level(confidence, "confidence")
    kernels, weights = _kernels(posterior, draws, as_rng(rng))
    exact = isinstance(posterior, ScenarioBelief | TabularMDP)
    problem = Problem.of(posterior, rewards, discount)
    slack = RESOLUTION * (problem.largest or 1.0)
    problem = Problem(problem.pattern, problem.rewards, problem.discount, slack / 4.0)
    regret = np.array([_regret(problem, posterior, entries, chosen)[start] for entries in kernels])
    reached = regret >= least - slack
    probability = min(math.fsum(weights[reached]), 1.0)
    interval = (
        (probability, probability) if exact else clopper_pearson(int(reached.sum()), draws, sure)
    )
    return Exposure(least, probability, interval, exact, regret, weights)


class _OneKernel:
    """A risk measure that believes in one kernel, given by its entries on the belief's pattern."""

    def __init__(self, entries: FloatArray) -> None:
        self.entries = entries

    def bind(self, belief: Belief) -> RiskOperator:
        return FixedKernel(belief.pattern, self.entries)


def _kernels(
    posterior: Belief, samples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Kernels (K, transitions) that stand for the posterior, and their weights (K,)."""
    if isinstance(posterior, ScenarioBelief):
        entries, weights = scenarios_of(posterior)
        alive = weights > 0.0
        return entries[alive], weights[alive]
    count = 1 if isinstance(posterior, TabularMDP) else samples
    return draws_of(posterior, count, rng), np.full(count, 1.0 / count)


def _regret(problem: Problem, belief: Belief, entries: FloatArray, policy: IntArray) -> FloatArray:
    """V*_P − V^π_P at every state."""
    kernel = _OneKernel(entries)
    best = problem.solve(belief, kernel).values
    followed = problem.solve(belief, kernel, best, policy=policy, all_actions=False).values
    regret: FloatArray = np.maximum(best - followed, 0.0)
    return regret
