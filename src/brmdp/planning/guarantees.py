"""Guarantees that a practitioner can quote.

Proposition 1 of the paper: with independent rows and ᾱ = 1 − (1 − α)^{1/S}, the nested value of a
fixed policy at level ᾱ is a lower bound on its true value in all states at once, with posterior
probability at least 1 − α:

    Pr( V^π_P(s) ≥ V^π_{φ,ᾱ}(s) for all s ) ≥ 1 − α.

The proof needs S events to hold together, each of probability at least 1 − ᾱ; independence
multiplies these probabilities. If rows are dependent (scenarios, a shared disturbance), the union
bound takes its place, with level α/S.

A policy that draws its actions needs one event for each of the K pairs with π(a|s) > 0: if P·w ≥ q
in all of these, then also Σ_a π(a|s) P(s,a)·w ≥ Σ_a π(a|s) q(s,a) in every state, and the rest of
the proof is the same. So K takes the place of S in both levels.

The solver's error is subtracted, so the certified numbers are lower bounds as printed. The nested
value is computed, not sampled: a belief that offers nothing but draws gets no certificate. Nor does
one that only approximates a posterior (a bootstrap of rewards): there is no posterior probability
that the bounds could have. What
remains to be trusted is what the belief claims: its concentrations and the independence of its
rows. The coverage check tests these claims; too few draws within the bounds are an error.
"""

from __future__ import annotations

import logging
import math
import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, betaincinv

from brmdp._validation import (
    FloatArray,
    PolicyArray,
    Seed,
    as_actions_or_weights,
    as_discount,
    as_level,
    as_positive_int,
    as_rng,
)
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import (
    caveat_of,
    draws_of,
    require_belief,
    require_posterior,
    rewards_of,
)
from brmdp.beliefs.disturbance import Rewards
from brmdp.errors import ContradictionError, InvalidInputError
from brmdp.planning.mixture import PolicyRows, pairs_used
from brmdp.planning.planner import Problem
from brmdp.planning.prior import PriorReliance, check_start, reliance, warn_about_prior
from brmdp.planning.text import at_least, call_like, extent, wrapped
from brmdp.risk.measures import Quantile, has_exact_quantiles
from brmdp.risk.monte_carlo import LARGEST_SAMPLE, order_statistic_rank
from brmdp.risk.threads import MANY_STATES, one_blas_thread

__all__ = [
    "Certificate",
    "PosteriorQuantileValue",
    "certified_level",
    "certify_nested",
    "clopper_pearson",
    "posterior_quantile_value",
]

LARGE = 2_000
"""Beyond this many states the coverage check is off by default: it evaluates a policy per draw."""

CONTRADICTION = 1e-6
"""Probability below which the check contradicts a certificate.

If the confidence were right, so few draws within the bounds would have that probability.
"""

PROGRESS_SECONDS = 5.0
"""Shortest time between two progress messages of a long check."""

logger = logging.getLogger("brmdp")


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """A policy, and lower bounds on its true value that hold together with a stated probability.

    Printing a certificate says in words what it promises.

    Attributes
    ----------
    confidence : float
        1 − α: with at least this posterior probability, all bounds hold at once.
    level : float
        The quantile level of the nested values: ᾱ = 1 − (1 − α)^{1/K}, or α/K if rows are
        dependent, where K is the number of pairs that the policy uses, S if it takes one action
        per state.
    rule : str
        "independent rows (Proposition 1)" or "union bound (dependent rows)".
    values : (S,) array
        Certified lower bounds on the policy's true value; the solver's error is subtracted.
    policy : (S,) integers or (S, A) probabilities, or (H, S) with a horizon
        The policy that maximises the bounds, up to ``policy_gap``, or the one that was given.
    policy_gap : float or None
        No policy's bound at this level exceeds ``values`` by more than this in any state. None for
        a policy that was given: others were not looked at.
    coverage : float or None
        Share of posterior draws in which all bounds held; None if not checked.
    coverage_interval : (float, float) or None
        95 % Clopper–Pearson interval of the coverage.
    coverage_samples : int
        Number of draws in the check.
    prior : PriorReliance or None
        How far the policy rests on the prior instead of data; the confidence includes the prior.
        None for beliefs that do not separate the two.
    horizon : int or None
        Number of steps that the values are for.
    value : float or None
        The bound at the start, if one was given: the mean of ``values`` over it.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> belief.observe([0] * 100 + [1] * 100, 0, [0] * 90 + [1] * 10 + [0] * 20 + [1] * 80)
    >>> print(brmdp.certify(belief, [[1.0], [0.0]], 0.5, 0.9, method="nested", rng=0))
    With posterior probability at least 0.9, the true value of this policy is at least the certified
    value in every state at once.
    Certified values of the 2 states: 1.752, 0.2208.
    They are quantile values at level 0.05132, by the rule: independent rows (Proposition 1).
    Check: in 1000 posterior draws, all bounds held in 93.2 % (95 % interval 91.5 to 94.7 %).
    """

    confidence: float
    level: float
    rule: str
    values: FloatArray
    policy: PolicyArray
    policy_gap: float | None
    coverage: float | None
    coverage_interval: tuple[float, float] | None
    coverage_samples: int
    prior: PriorReliance | None = None
    horizon: int | None = None
    value: float | None = None

    @property
    def method(self) -> str:
        """How the bounds were found: "nested"."""
        return "nested"

    def __str__(self) -> str:
        over = "" if self.horizon is None else f"over {self.horizon} steps "
        parts = [
            f"With posterior probability at least {self.confidence:.10g}, the true value {over}of "
            "this policy is at least the certified value in every state at once.",
            f"Certified values of the {self.values.size} states: "
            f"{extent(self.values, bounds=True)}.",
            *([f"From the start: {at_least(self.value)}."] if self.value is not None else []),
            f"They are quantile values at level {self.level:.4g}, by the rule: {self.rule}.",
        ]
        if self.coverage is not None and self.coverage_interval is not None:
            low, high = self.coverage_interval
            parts.append(
                f"Check: in {self.coverage_samples} posterior draws, all bounds held in "
                f"{100 * self.coverage:.1f} % (95 % interval {100 * low:.1f} to {100 * high:.1f} "
                "%)."
            )
        if self.prior is not None and self.prior.outweighs:
            parts += ["This belief rests heavily on the prior:", *str(self.prior).splitlines()]
        elif self.prior is not None and self.prior.never_observed.size:
            parts.append(f"{self.prior.unseen()}; there, only the prior supports the bounds.")
        return "\n".join(map(wrapped, parts))

    def __repr__(self) -> str:
        parts = [
            f"confidence={self.confidence:.10g}",
            f"level={self.level:.4g}",
            f"rule={self.rule!r}",
            f"{self.values.size} states",
            f"values {extent(self.values)}",
        ]
        if self.value is not None:
            parts.append(f"value={self.value:.4g}")
        if self.policy_gap is not None:
            parts.append(f"policy_gap={self.policy_gap:.2g}")
        if self.coverage is not None:
            parts.append(f"coverage={self.coverage:.4g} of {self.coverage_samples} draws")
        if self.prior is not None and self.prior.outweighs:
            parts.append("rests on the prior")
        return call_like("Certificate", parts)


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorQuantileValue:
    """Monte Carlo estimate of the posterior α-quantile of a policy's value.

    The paper's appendix "Estimation of the Posterior α-Quantile Value" describes the estimator.

    Attributes
    ----------
    alpha : float
        Level of the quantile.
    values : (S,) array
        Order statistic ⌈αM⌉ of the M sampled values, state by state.
    lower, upper : (S,) arrays
        Distribution-free interval for each state, from order statistics; −inf or inf if M is too
        small to bound that side.
    confidence : float
        Each interval has at least this confidence.
    samples : int
        Number M of posterior draws.
    caveat : str
        What to know about the belief, if it is only an approximation of a posterior; else empty.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> found = brmdp.posterior_quantile_value(belief, [[0.0], [1.0]], 0.5, [0, 0], rng=0)
    >>> found.samples, bool((found.lower <= found.values).all())
    (147, True)
    """

    alpha: float
    values: FloatArray
    lower: FloatArray
    upper: FloatArray
    confidence: float
    samples: int
    caveat: str = ""

    def __str__(self) -> str:
        parts = (
            f"Posterior {self.alpha:.3g}-quantile of the policy's value, estimated from "
            f"{self.samples} draws, in {self.values.size} states: {extent(self.values)}.",
            f"Lower ends of the {100 * self.confidence:.10g} % intervals: {extent(self.lower)}.",
            f"Upper ends: {extent(self.upper)}.",
            *([self.caveat] if self.caveat else []),
        )
        return "\n".join(map(wrapped, parts))

    def __repr__(self) -> str:
        return call_like(
            "PosteriorQuantileValue",
            (
                f"alpha={self.alpha:.4g}",
                f"{self.values.size} states",
                f"values {extent(self.values)}",
                f"confidence={self.confidence:.4g}",
                f"samples={self.samples}",
                *(["of an approximate belief (see caveat)"] if self.caveat else []),
            ),
        )


def certified_level(alpha: float, n_states: int, *, independent: bool = True) -> float:
    """The quantile level that gives joint confidence 1 − α over S = ``n_states`` states.

    It is 1 − (1 − α)^{1/S} for independent rows, and α/S for dependent ones. For a policy that
    draws its actions, the number of pairs that it uses takes the place of S.

    Examples
    --------
    >>> import brmdp
    >>> round(brmdp.certified_level(0.1, 6), 6)
    0.017407
    >>> round(brmdp.certified_level(0.1, 6, independent=False), 6)
    0.016667
    """
    level = as_level(alpha)
    n = as_positive_int(n_states, "n_states")
    return -math.expm1(math.log1p(-level) / n) if independent else level / n


def certify_nested(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    confidence: float = 0.9,
    *,
    policy: ArrayLike | None = None,
    tolerance: float | None = None,
    coverage_samples: int | None = None,
    start: ArrayLike | None = None,
    horizon: int | None = None,
    terminal: ArrayLike | None = None,
    rng: Seed = None,
) -> Certificate:
    """Lower bounds on the value of a policy in all states, from nested quantiles.

    The guarantee is that of Proposition 1 of the paper; with a horizon, see
    :mod:`brmdp.planning.horizon_guarantees`. This is ``method="nested"`` of :func:`brmdp.certify`.

    Parameters
    ----------
    belief, rewards, discount
        As in :func:`brmdp.plan`.
    confidence : float in (0, 1)
        1 − α: all bounds hold at once with at least this posterior probability.
    policy : (S,) actions or (S, A) probabilities, optional
        The policy to certify; by default the one with the best bounds. Not with a horizon.
    tolerance : float, optional
        Accuracy of the solver, as in :func:`brmdp.plan`; its error is subtracted from the bounds.
    coverage_samples : int, optional
        Number of posterior draws for the check. By default 1,000, or none beyond 2,000 states; 0
        switches the check off.
    start : int or (S,) probabilities, optional
        Where the policy will begin: the bound there is ``value``, and how far the policy rests on
        the prior is judged from there (:func:`brmdp.prior_reliance`).
    horizon : int, optional
        Certify the value of this number of steps; the discount may then be 1, and the policy is
        (H, S), one row per step.
    terminal : (S,) array, optional
        Values after the last step of the horizon; zero by default.
    rng : numpy.random.Generator or seed, optional
        Random stream of the check.

    Returns
    -------
    Certificate

    Raises
    ------
    InvalidInputError
        If an argument is invalid, the belief has no exact quantiles (what is computed from draws is
        an estimate, not a bound), or it is only an approximation of a posterior.
    ContradictionError
        If the check contradicts the certificate: if the certificate were right, so few draws within
        the bounds would occur with probability below 1e-6.

    Warns
    -----
    PriorWarning
        If the prior outweighs the data along the policy, by the rule in
        :mod:`brmdp.planning.prior`.

    Notes
    -----
    Long computations log their progress (logger "brmdp", level INFO).

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.planning import certify_nested
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> belief.observe([0] * 100 + [1] * 100, 0, [0] * 90 + [1] * 10 + [0] * 20 + [1] * 80)
    >>> certificate = certify_nested(belief, [[1.0], [0.0]], 0.5, confidence=0.9, rng=0)
    >>> certificate.values.round(3)
    array([1.752, 0.221])
    >>> certificate.coverage > 0.9
    True
    """
    found = certificate_of(
        belief,
        rewards,
        discount,
        confidence,
        policy=policy,
        tolerance=tolerance,
        coverage_samples=coverage_samples,
        start=start,
        horizon=horizon,
        terminal=terminal,
        rng=rng,
    )
    warn_about_prior(found.prior, "certificate", 2)
    return found


def certificate_of(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    confidence: float,
    *,
    policy: ArrayLike | None = None,
    coverage_samples: int | None = None,
    start: ArrayLike | None = None,
    horizon: int | None = None,
    terminal: ArrayLike | None = None,
    rng: Seed = None,
    **settings: Any,
) -> Certificate:
    """:func:`certify_nested` without the warning, for computations that make many certificates.

    If ``policy`` is given, as (S,) actions or (S, A) probabilities, that one is certified.
    """
    if horizon is not None:
        from brmdp.planning.horizon_guarantees import certificate_over

        if policy is not None:
            raise InvalidInputError(
                "policy cannot be given together with a horizon if the method is nested; use "
                'method="sampled"'
            )
        named: dict[str, Any] = {"coverage_samples": coverage_samples, "start": start, "rng": rng}
        return certificate_over(
            belief, rewards, discount, confidence, horizon, terminal, **named, **settings
        )
    if terminal is not None:
        raise InvalidInputError("terminal must be given only together with a horizon")
    begin = check_start(belief, start)
    require_exact_quantiles(belief)
    level_wanted = as_level(confidence, "confidence")
    discount = as_discount(discount)
    n_states = belief.pattern.n_states
    independent = require_independence(belief)
    given = None if policy is None else as_actions_or_weights(policy, belief.pattern.admissible)
    n_pairs = n_states if given is None else pairs_used(given, belief.pattern.n_actions).size
    level = certified_level(1.0 - level_wanted, n_pairs, independent=bool(independent))
    risk = Quantile(level)
    problem = Problem.of(belief, rewards, discount, **settings)
    gap: float | None = None
    if given is None:
        logger.info("certify: planning %d states at the level %.4g", n_states, level)
        best = problem.solve(belief, risk)
        own = problem.solve(belief, risk, problem.start(best), policy=best.policy)
        gap = float((best.values - own.values).max()) + best.error_bound + own.error_bound
        gap = max(gap, 0.0)
    else:
        own = problem.solve(belief, risk, policy=given, all_actions=False)
    values = own.values - own.error_bound
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
            own.policy,
            as_positive_int(samples, "coverage_samples"),
            as_rng(rng),
        )
        # A draw that meets the bound exactly must not fail by rounding, and a state of huge value
        # must not excuse the others.
        size = np.abs(values)
        slack = 1e-12 * size + 64.0 * np.finfo(np.float64).eps * float(size.max())
        held = int((drawn >= values - slack).all(axis=1).sum())
        coverage = held / samples
        interval = clopper_pearson(held, samples)
        if bdtr(held, samples, level_wanted) < CONTRADICTION:
            raise ContradictionError(
                f"all bounds should hold in at least {100 * level_wanted:.10g} % of posterior "
                f"draws, but held only in {held} of {samples}: the draws of the "
                f"{type(belief).__name__} do not follow the law behind its quantiles, or "
                f"rows_independent = {bool(independent)} is wrong"
            )
    return Certificate(
        confidence=level_wanted,
        level=level,
        rule="independent rows (Proposition 1)" if independent else "union bound (dependent rows)",
        values=values,
        policy=own.policy,
        policy_gap=gap,
        coverage=coverage,
        coverage_interval=interval,
        coverage_samples=int(samples),
        prior=reliance(belief, own.policy, discount, start),
        value=value_at(values, begin),
    )


def value_at(values: FloatArray, begin: FloatArray | None) -> float | None:
    """The bound at the start: the mean of ``values``, rounded down; None without a start."""
    if begin is None:
        return None
    # far more than the rounding of the sum
    return float(values @ begin) - 4.0 * np.finfo(np.float64).eps * float(np.abs(values) @ begin)


def require_exact_quantiles(belief: Belief) -> None:
    """Raise unless quantiles are those of a posterior, and computed, not estimated from draws."""
    require_posterior(belief)
    if not has_exact_quantiles(belief):
        raise InvalidInputError(
            f"belief must have exact quantiles for a certificate; a {type(belief).__name__} "
            "offers only draws, and what is computed from draws is an estimate, not a bound. Give "
            "it concentration_entries and concentration_offsets if its rows are Dirichlet, use a "
            "ScenarioBelief, or use posterior_quantile_value for the sampled value of a policy"
        )


def require_independence(belief: Belief) -> bool:
    """Whether the rows are independent, as the belief must say."""
    independent = getattr(belief, "rows_independent", None)
    if not isinstance(independent, bool | np.bool_):
        raise InvalidInputError(
            f"belief must have rows_independent = True or False; {type(belief).__name__} has "
            f"{independent!r}"
        )
    return bool(independent)


def posterior_quantile_value(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    policy: ArrayLike,
    alpha: float = 0.1,
    *,
    samples: int = 147,
    confidence: float = 0.95,
    rng: Seed = None,
) -> PosteriorQuantileValue:
    """The posterior α-quantile of a policy's value in every state, by the paper's estimator.

    It draws M = ``samples`` kernels, evaluates the policy exactly in each, and takes the order
    statistic ⌈αM⌉.

    Parameters
    ----------
    belief, rewards, discount, policy
        As in :func:`brmdp.evaluate_under_belief`.
    alpha : float in (0, 1)
        Level of the quantile.
    samples : int
        Number M of kernels; the paper uses 147.
    confidence : float in (0, 1)
        Confidence of the Monte Carlo interval.
    rng : numpy.random.Generator or seed, optional
        Random stream of the draws.

    Returns
    -------
    PosteriorQuantileValue

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief([[[90, 10]], [[20, 80]]])
    >>> found = brmdp.posterior_quantile_value(belief, [[1.0], [0.0]], 0.5, [0, 0], rng=0)
    >>> found.values.shape
    (2,)
    """
    require_belief(belief)
    level = as_level(alpha)
    sure = as_level(confidence, "confidence")
    n = as_positive_int(samples, "samples")
    chosen = as_actions_or_weights(policy, belief.pattern.admissible)
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
        caveat=caveat_of(belief),
    )


def sampled_policy_values(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    policy: PolicyArray,
    n: int,
    rng: np.random.Generator,
) -> FloatArray:
    """V^π in ``n`` posterior draws, (n, S), for (S,) actions or (S, A) probabilities.

    V^π = (I − γP_π)⁻¹ r_π with P_π(s'|s) = Σ π(a|s) P(s'|s,a) and r_π(s) = Σ π(a|s) P(s'|s,a)
    r(s,a,s').
    """
    pattern = belief.pattern
    n_states = pattern.n_states
    if n_states > 10 * LARGE:
        raise InvalidInputError(
            f"policy values can be sampled for at most {10 * LARGE:,} states, since that solves "
            f"dense systems; got {n_states:,}"
        )
    if n * n_states > LARGEST_SAMPLE:
        raise InvalidInputError(
            f"samples × states must be at most {LARGEST_SAMPLE:,}; got {n:,} samples of {n_states} "
            "states"
        )
    flat_rewards = rewards_of(belief, rewards)
    rows = PolicyRows.of(pattern, policy)
    policy_rewards = rows.take(flat_rewards)
    begins = rows.pattern.indptr[:-1]
    where = rows.pattern.pair_of_transition * n_states + rows.pattern.next_states
    distinct = np.unique(where).size == where.size
    diagonal = np.arange(n_states)
    result = np.empty((n, n_states))
    block = max(1, min(n, 4_000_000 // (n_states * n_states + 1)))
    told = began = time.monotonic()
    with one_blas_thread if n_states >= MANY_STATES else nullcontext():
        for begin in range(0, n, block):
            size = min(block, n - begin)
            draws = rows.shares * draws_of(belief, size, rng, rows.pairs)
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
    """Exact confidence interval of a probability, from the successes in independent trials."""
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
