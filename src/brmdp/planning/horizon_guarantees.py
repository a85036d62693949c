"""Proposition 1 over a finite horizon.

Let U_h be the nested value of a policy at the level ᾱ: U_h(s) is the ᾱ-quantile of P_{s,π_h(s)}·w_h
with w_h = r + γU_{h+1}. If P_{s,π_h(s)}·w_h ≥ U_h(s) for all s and h, then V_h ≥ U_h for all h, by
induction from the end. Each of these events has posterior probability at least 1 − ᾱ, but the
events of one state at different steps look at the same rows, so they are not independent.

- Within a state, the union bound: all H events hold with probability at least 1 − Hᾱ.
- Events of different states look at different rows. If rows are independent, all hold with
  probability at least (1 − Hᾱ)^S, which is 1 − α for ᾱ = (1 − (1 − α)^{1/S})/H.
- If rows are dependent, the union bound over all of them: ᾱ = α/(SH).

A step at which w_h is constant for every pair cannot fail and does not count. So H − 1 takes the
place of H if rewards r(s,a) do not depend on the next state and all terminal values are equal.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from brmdp._validation import (
    FloatArray,
    IntArray,
    Seed,
    as_discount,
    as_level,
    as_positive_int,
    as_rng,
)
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import draws_of, rewards_of
from brmdp.beliefs.disturbance import Rewards
from brmdp.errors import ContradictionError
from brmdp.pattern import TransitionPattern
from brmdp.planning.finite_horizon import as_horizon, as_terminal
from brmdp.planning.guarantees import (
    CONTRADICTION,
    LARGE,
    Certificate,
    certified_level,
    clopper_pearson,
    require_exact_quantiles,
    require_independence,
    value_at,
)
from brmdp.planning.horizon_prior import reliance_over
from brmdp.planning.planner import Problem
from brmdp.planning.prior import check_start
from brmdp.risk.measures import Quantile

__all__ = ["certificate_over", "uncertain_steps"]

BLOCK_NUMBERS = 2_000_000
"""Drawn probabilities in a block of the coverage check."""

logger = logging.getLogger("brmdp")


def uncertain_steps(
    pattern: TransitionPattern, rewards: FloatArray, terminal: FloatArray, horizon: int
) -> int:
    """The number of steps whose targets may differ between successors: H or H − 1, at least 1."""
    begins = pattern.indptr[pattern.pairs]
    same = np.minimum.reduceat(rewards, begins) == np.maximum.reduceat(rewards, begins)
    sure = bool(same.all()) and float(terminal.max()) == float(terminal.min())
    return max(horizon - sure, 1)


def certificate_over(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    confidence: float,
    horizon: int,
    terminal: ArrayLike | None,
    *,
    tolerance: float | None = None,
    coverage_samples: int | None = None,
    start: ArrayLike | None = None,
    rng: Seed = None,
) -> Certificate:
    """:func:`certify_nested` over ``horizon`` steps, without the warning about the prior."""
    begin = check_start(belief, start)
    require_exact_quantiles(belief)
    sure = as_level(confidence, "confidence")
    gamma = as_discount(discount, one_allowed=True)
    pattern = belief.pattern
    steps, last = as_horizon(horizon, pattern.n_states), as_terminal(terminal, pattern.n_states)
    independent = require_independence(belief)
    problem = Problem.of(belief, rewards, gamma, tolerance, undiscounted=True)
    count = uncertain_steps(pattern, problem.rewards, last, steps)
    level = certified_level(1.0 - sure, pattern.n_states, independent=independent) / count
    risk = Quantile(level)
    logger.info("certify: planning %d states over %d steps", pattern.n_states, steps)
    best = problem.solve_over(belief, risk, steps, last)
    policy: Any = best.policy
    own = problem.solve_over(belief, risk, steps, last, policy=policy, all_actions=False)
    values = own.values[0] - own.error_bound[0]
    gap = float((best.values[0] - own.values[0]).max())
    gap += float(best.error_bound[0] + own.error_bound[0])
    samples = (
        coverage_samples
        if coverage_samples is not None
        else (1000 if pattern.n_states <= LARGE else 0)
    )
    coverage: float | None = None
    interval: tuple[float, float] | None = None
    if samples:
        n = as_positive_int(samples, "coverage_samples")
        size = np.abs(values)
        slack = 1e-12 * size + 64.0 * np.finfo(np.float64).eps * float(size.max())
        held = 0
        for drawn in _drawn_values(belief, rewards, gamma, policy, last, n, as_rng(rng)):
            held += int((drawn >= values - slack).all(axis=1).sum())
        coverage, interval = held / n, clopper_pearson(held, n)
        if bdtr(held, n, sure) < CONTRADICTION:
            raise ContradictionError(
                f"all bounds should hold in at least {100 * sure:.3g} % of posterior draws, but "
                f"held only in {held} of {n}: the draws of the {type(belief).__name__} do not "
                f"follow the law behind its quantiles, or rows_independent = {independent} is wrong"
            )
    by_step = f"a union bound over {count} step{'' if count == 1 else 's'}"
    return Certificate(
        confidence=sure,
        level=level,
        rule=(
            f"independent rows (Proposition 1) and {by_step}"
            if independent
            else f"union bound (dependent rows) and {by_step}"
        ),
        values=values,
        policy=policy,
        policy_gap=max(gap, 0.0),
        coverage=coverage,
        coverage_interval=interval,
        coverage_samples=int(samples),
        prior=reliance_over(belief, policy, gamma, start),
        horizon=steps,
        value=value_at(values, begin),
    )


def _drawn_values(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    policy: IntArray,
    terminal: FloatArray,
    n: int,
    rng: np.random.Generator,
) -> Any:
    """Values (block, S) of the policy at the first step, in posterior draws, block by block."""
    pattern = belief.pattern
    flat = rewards_of(belief, rewards)
    begins = pattern.indptr[pattern.pairs]
    place = np.full(pattern.n_pairs, -1)
    place[pattern.pairs] = np.arange(pattern.pairs.size)
    states = np.arange(pattern.n_states)
    block = max(1, BLOCK_NUMBERS // pattern.n_transitions)
    for first in range(0, n, block):
        draws = draws_of(belief, min(block, n - first), rng)
        values = np.tile(terminal, (len(draws), 1))
        for stage in policy[::-1]:
            targets = flat + discount * values[:, pattern.next_states]
            q = np.add.reduceat(draws * targets, begins, axis=1)
            values = q[:, place[states * pattern.n_actions + stage]]
        yield values
