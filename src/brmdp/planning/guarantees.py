"""Guarantees a practitioner can quote.

Proposition 1 of the paper: with independent rows and ᾱ = 1 − (1 − α)^{1/S}, the nested value of a
fixed policy at level ᾱ is a lower bound of its true value at all states at once, with posterior
probability at least 1 − α:

    Pr( V^π_P(s) ≥ V^π_{φ,ᾱ}(s) for all s ) ≥ 1 − α.

The proof needs each of S events to hold, each with probability at least 1 − ᾱ; independence
multiplies them. Where rows are dependent (scenarios, a shared disturbance) the union bound takes
its place, with level α/S.

The solver's error is subtracted, so the certified numbers are lower bounds as printed. The nested
value is computed, not sampled: a belief that offers nothing but draws gets no certificate. What
remains is the belief's word (its concentrations, the independence of its rows), and the coverage
check holds it to that: too few draws within the bounds are an error.
"""

from __future__ import annotations

import logging
import math
import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import bdtr, betaincinv

from brmdp._validation import (
    FloatArray,
    IntArray,
    as_discount,
    as_level,
    as_policy,
    as_positive_int,
    as_rng,
)
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import draws_of, require_belief, rewards_of
from brmdp.errors import ContradictionError, InvalidInputError
from brmdp.planning.planner import Problem
from brmdp.planning.prior import PriorReliance, check_start, reliance, warn_about_prior
from brmdp.risk.measures import Quantile, has_exact_quantiles
from brmdp.risk.monte_carlo import LARGEST_SAMPLE, order_statistic_rank
from brmdp.risk.threads import MANY_STATES, one_blas_thread

__all__ = [
    "Certificate",
    "PosteriorQuantileValue",
    "certified_level",
    "certify",
    "clopper_pearson",
    "posterior_quantile_value",
]

LARGE = 2_000
"""Beyond this many states the coverage check is skipped unless asked for.

Every draw needs a policy evaluation.
"""

CONTRADICTION = 1e-6
"""A certificate is contradicted if as few draws within its bounds have a smaller probability, were the confidence right."""

PROGRESS_SECONDS = 5.0
"""A long check says how far it is, at most this often."""

logger = logging.getLogger("brmdp")


@dataclass(frozen=True, eq=False)
class Certificate:
    """A policy with lower bounds on its value that hold jointly with the stated posterior probability.

    Attributes
    ----------
    confidence : float
        1 − α, the posterior probability with which all bounds hold at once.
    level : float
        The quantile level planned at: ᾱ = 1 − (1 − α)^{1/S}, or α/S where rows are dependent.
    rule : str
        "independent rows (Proposition 1)" or "union bound (dependent rows)".
    values : (S,) array
        Certified lower bounds on the policy's true value, solver error subtracted.
    policy : (S,) integers
        The policy that maximises them, up to ``policy_gap``.
    policy_gap : float
        No policy's bound at this level exceeds ``values`` by more, at any state.
    coverage : float or None
        Share of posterior draws in which all bounds held (None: not checked).
    coverage_interval : (float, float) or None
        Its 95 % Clopper-Pearson interval.
    coverage_samples : int
        Number of draws.
    prior : PriorReliance or None
        How far the policy rests on the prior instead of data; the confidence is that of the posterior, prior included. None
        for beliefs that do not tell the two apart.
    """

    confidence: float
    level: float
    rule: str
    values: FloatArray
    policy: IntArray
    policy_gap: float
    coverage: float | None
    coverage_interval: tuple[float, float] | None
    coverage_samples: int
    prior: PriorReliance | None = None

    def __str__(self) -> str:
        text = (
            f"With posterior probability at least {self.confidence:.3g}, the policy's true value "
            f"is at least the certified one at every state\n(quantile level {self.level:.4g}, "
            f"{self.rule})."
        )
        if self.coverage is not None and self.coverage_interval is not None:
            low, high = self.coverage_interval
            text += (
                f"\nIn {self.coverage_samples} posterior draws all bounds held in "
                f"{100 * self.coverage:.1f} % (95 % interval {100 * low:.1f} to {100 * high:.1f} "
                "%)."
            )
        if self.prior is not None and self.prior.outweighs:
            text += f"\nThe posterior rests heavily on the prior. {self.prior}"
        elif self.prior is not None and self.prior.never_observed.size:
            text += f"\n{self.prior.unseen()}; there only the prior speaks."
        return text


@dataclass(frozen=True, eq=False)
class PosteriorQuantileValue:
    """Monte Carlo estimate of the posterior α-quantile of a policy's value (the paper's eq.

    App-posterior-lb-estimator).

    Attributes
    ----------
    alpha : float
    values : (S,) array
        Order statistic ⌈αM⌉ of the M sampled values, state by state.
    lower, upper : (S,) arrays
        Distribution-free interval of at least ``confidence`` for each state, from order statistics
        (−inf or inf where M is too small to bound that side).
    confidence : float
    samples : int
    """

    alpha: float
    values: FloatArray
    lower: FloatArray
    upper: FloatArray
    confidence: float
    samples: int


def certified_level(alpha: float, n_states: int, *, independent: bool = True) -> float:
    """The level that gives joint confidence 1 − α over ``n_states`` states.

    Ᾱ = 1 − (1 − α)^{1/S}, or α/S if dependent.
    """
    level = as_level(alpha)
    n = as_positive_int(n_states, "n_states")
    return -math.expm1(math.log1p(-level) / n) if independent else level / n


def certify(
    belief: Belief,
    rewards: Any,
    discount: float,
    confidence: float = 0.9,
    *,
    tolerance: float | None = None,
    coverage_samples: int | None = None,
    rng: Any = None,
    start: Any = None,
) -> Certificate:
    """The policy with the best certified lower bounds, and the bounds (Proposition 1).

    Parameters
    ----------
    posterior, rewards, discount
        As in :func:`brmdp.plan`.
    confidence : float in (0, 1)
        Posterior probability with which all bounds shall hold at once.
    tolerance : float, optional
        Solver accuracy, as in :func:`brmdp.plan`; what it leaves is subtracted from the bounds.
    coverage_samples : int, optional
        Posterior draws for the check (default 1,000, or none beyond 2,000 states; 0 switches it
        off).
    rng : numpy.random.Generator or seed
        For the check.
    start : int or (S,) probabilities, optional
        Where the policy will begin, to judge how far it rests on the prior; see
        :func:`brmdp.prior_reliance`.

    Returns
    -------
    Certificate

    Raises
    ------
    InvalidInputError
        Also if the belief has no exact quantiles: values nested from draws are estimates, not
        bounds.
    ContradictionError
        If the check contradicts the certificate: so few draws within the bounds have a probability
        below 1e-6.

    Warns
    -----
    PriorWarning
        If the prior outweighs the data in what the policy does, by the rule in
        :mod:`brmdp.planning.prior`.

    Notes
    -----
    What takes long is logged (logger "brmdp", level INFO).
    """
    found = certificate_of(
        belief,
        rewards,
        discount,
        confidence,
        tolerance=tolerance,
        coverage_samples=coverage_samples,
        rng=rng,
        start=start,
    )
    warn_about_prior(found.prior, "certificate", 2)
    return found


def certificate_of(
    belief: Belief,
    rewards: Any,
    discount: float,
    confidence: float,
    *,
    coverage_samples: int | None = None,
    rng: Any = None,
    start: Any = None,
    **settings: Any,
) -> Certificate:
    """:func:`certify` without the warning, for computations that make many certificates."""
    check_start(belief, start)
    if not has_exact_quantiles(belief):
        raise InvalidInputError(
            f"belief must have exact quantiles for a certificate; a {type(belief).__name__} "
            "offers only draws, and values nested from draws are estimates, not bounds. Give it "
            "concentration_entries and concentration_offsets if its rows are Dirichlet, make a "
            "ScenarioBelief, or ask posterior_quantile_value for the sampled value of a policy"
        )
    level_wanted = as_level(confidence, "confidence")
    discount = as_discount(discount)
    n_states = belief.pattern.n_states
    independent = getattr(belief, "rows_independent", None)
    if not isinstance(independent, bool | np.bool_):
        raise InvalidInputError(
            f"belief must say rows_independent = True or False; {type(belief).__name__} says "
            f"{independent!r}"
        )
    level = certified_level(1.0 - level_wanted, n_states, independent=bool(independent))
    risk = Quantile(level)
    problem = Problem.of(belief, rewards, discount, **settings)
    logger.info("certify: planning %d states at the level %.4g", n_states, level)
    best = problem.solve(belief, risk)
    own = problem.solve(belief, risk, problem.start(best), policy=best.policy)
    values = own.values - own.error_bound
    gap = float((best.values - own.values).max()) + best.error_bound + own.error_bound
    samples = (
        coverage_samples if coverage_samples is not None else (1000 if n_states <= LARGE else 0)
    )
    coverage: float | None = None
    interval: tuple[float, float] | None = None
    if samples:
        drawn = sampled_policy_values(
            belief,
            rewards,
            discount,
            best.policy,
            as_positive_int(samples, "coverage_samples"),
            as_rng(rng),
        )
        # a draw that meets the bound exactly must not fail by rounding; a state of huge value must
        # not excuse the others
        size = np.abs(values)
        slack = 1e-12 * size + 64.0 * np.finfo(np.float64).eps * float(size.max())
        held = int((drawn >= values - slack).all(axis=1).sum())
        coverage = held / samples
        interval = clopper_pearson(held, samples)
        if bdtr(held, samples, level_wanted) < CONTRADICTION:
            raise ContradictionError(
                f"all bounds should hold in at least {100 * level_wanted:.3g} % of posterior "
                f"draws, and held in {held} of {samples}: the draws of the "
                f"{type(belief).__name__} do not follow the law that its quantiles are taken "
                f"from, or its rows are not what it says (rows_independent = {bool(independent)})"
            )
    return Certificate(
        confidence=level_wanted,
        level=level,
        rule="independent rows (Proposition 1)" if independent else "union bound (dependent rows)",
        values=values,
        policy=best.policy,
        policy_gap=max(gap, 0.0),
        coverage=coverage,
        coverage_interval=interval,
        coverage_samples=int(samples),
        prior=reliance(belief, best.policy, discount, start),
    )


def posterior_quantile_value(
    belief: Belief,
    rewards: Any,
    discount: float,
    policy: Any,
    alpha: float = 0.1,
    *,
    samples: int = 147,
    confidence: float = 0.95,
    rng: Any = None,
) -> PosteriorQuantileValue:
    """The posterior α-quantile of a policy's value at every state, by the paper's estimator.

    Draws ``samples`` kernels, evaluates the policy exactly in each, and takes the order statistic
    ⌈αM⌉.

    Parameters
    ----------
    posterior, rewards, discount, policy
        As in :func:`brmdp.evaluate_under_belief`.
    alpha : float in (0, 1)
    samples : int
        M (the paper: 147).
    confidence : float in (0, 1)
        Of the Monte Carlo interval.
    rng : numpy.random.Generator or seed
    """
    require_belief(belief)
    level = as_level(alpha)
    sure = as_level(confidence, "confidence")
    n = as_positive_int(samples, "samples")
    chosen = as_policy(policy, belief.pattern.admissible)
    drawn = sampled_policy_values(belief, rewards, as_discount(discount), chosen, n, as_rng(rng))
    drawn.sort(axis=0)
    low, high = _order_statistic_interval(n, level, sure)
    infinite = np.full(drawn.shape[1], np.inf)
    return PosteriorQuantileValue(
        alpha=level,
        values=drawn[int(order_statistic_rank(n, level)) - 1],
        lower=drawn[low - 1] if low >= 1 else -infinite,
        upper=drawn[high - 1] if high <= n else infinite,
        confidence=sure,
        samples=n,
    )


def sampled_policy_values(
    belief: Belief,
    rewards: Any,
    discount: float,
    policy: IntArray,
    n: int,
    rng: np.random.Generator,
) -> FloatArray:
    """V^π in ``n`` posterior draws, (n, S).

    (I − γP_π)⁻¹ r_π with r_π(s) = Σ P(s'|s,π(s)) r(s,π(s),s').
    """
    pattern = belief.pattern
    n_states = pattern.n_states
    if n_states > 10 * LARGE:
        raise InvalidInputError(
            f"sampling policy values solves dense systems; {n_states} states are too many"
        )
    if n * n_states > LARGEST_SAMPLE:
        raise InvalidInputError(
            f"samples × states must be at most {LARGEST_SAMPLE:,}; got {n:,} samples of {n_states} "
            "states"
        )
    flat_rewards = rewards_of(belief, rewards)
    pairs = np.arange(n_states) * pattern.n_actions + policy
    next_states = pattern.take(pattern.next_states, pairs)
    policy_rewards = pattern.take(flat_rewards, pairs)
    owners = np.repeat(np.arange(n_states), pattern.widths[pairs])
    begins = np.concatenate(([0], np.cumsum(pattern.widths[pairs])[:-1]))
    where = owners * n_states + next_states
    distinct = np.unique(where).size == where.size
    diagonal = np.arange(n_states)
    result = np.empty((n, n_states))
    block = max(1, min(n, 4_000_000 // (n_states * n_states + 1)))
    told = began = time.monotonic()
    with one_blas_thread if n_states >= MANY_STATES else nullcontext():
        for begin in range(0, n, block):
            size = min(block, n - begin)
            draws = draws_of(belief, size, rng, pairs)
            kernels = np.zeros((size, n_states * n_states))
            if distinct:
                kernels[:, where] = draws
            else:
                for kernel, draw in zip(kernels, draws, strict=True):
                    np.add.at(kernel, where, draw)
            matrices = kernels.reshape(size, n_states, n_states)
            matrices *= -discount
            matrices[:, diagonal, diagonal] += 1.0
            expected = np.add.reduceat(draws * policy_rewards, begins, axis=1)
            result[begin : begin + size] = np.linalg.solve(matrices, expected[:, :, None])[:, :, 0]
            now = time.monotonic()
            if now - told >= PROGRESS_SECONDS:
                told = now
                logger.info(
                    "policy evaluated in %d of %d posterior draws, %.0f s",
                    begin + size,
                    n,
                    now - began,
                )
    return result


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact interval of a probability from the number of successes in independent trials."""
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, tail))
    high = (
        1.0
        if successes == trials
        else float(betaincinv(successes + 1, trials - successes, 1.0 - tail))
    )
    return low, high


def _order_statistic_interval(n: int, alpha: float, confidence: float) -> tuple[int, int]:
    """1-based ranks (l, u) with Pr(X_(l) ≤ q_α ≤ X_(u)) ≥ confidence.

    0 and n + 1 stand for −inf and inf.
    """
    tail = (1.0 - confidence) / 2.0
    cumulative = bdtr(np.arange(n + 1), n, alpha)
    # Pr(q < X_(l)) = Pr(Bin(n, α) < l) = cumulative[l − 1] and Pr(q > X_(u)) ≤ Pr(Bin(n, α) ≥ u) =
    # 1 − cumulative[u − 1]
    below = np.flatnonzero(cumulative <= tail)
    low = int(below[-1]) + 1 if below.size else 0
    above = np.flatnonzero(1.0 - cumulative <= tail)
    high = int(above[0]) + 1
    return low, high
