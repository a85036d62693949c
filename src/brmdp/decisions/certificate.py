"""A sharp certificate, from posterior draws of the whole model.

**One start.** Let π be fixed before the draws and Y_1, …, Y_M be its values at the start in M
independent draws. Let l be the largest integer with Pr(Binomial(M, α) ≤ l − 1) ≤ β. The l-th
smallest value Y_(l) exceeds the posterior α-quantile only if fewer than l draws lie at or below
that quantile, which has probability at most β. So, unless the simulation was that unlucky, the true
value is at least Y_(l) with posterior probability 1 − α. No such l exists if (1 − α)^M > β.

**All states at once.** With c(s) and d(s) > 0 from *other* draws, Z_m = max_s (c(s) − V_m(s))/d(s)
is one number per draw, and the same rule bounds it from above by Z_(M+1−l): with posterior
probability 1 − α, V(s) ≥ c(s) − Z_(M+1−l)·d(s) in all states. c is the mean and d the root of the
mean squared shortfall below it. Where all those other draws agree (an absorbing state), d is
:data:`SMALLEST_SPREAD` of the state's own value, or of the smallest value that is not zero: that
costs as little, and if the value does vary, the bound drops as far as it must.

**How many draws.** l/M is below α, which costs something: the gap between the bound and the
estimated quantile Y_(⌈αM⌉), relative to the quantile's size or, if the quantile is close to zero,
to a tenth of the draws' interquartile range. In all states, it is the largest gap of any state,
relative to the largest |quantile|. Other draws predict how many are needed to bring it below 1 %;
if it then turns out to be larger, the number is doubled, up to the budget. There are at most J such
looks, J known before the first, and each uses β/J, so that stopping early costs no validity.

**Which policy.** Given by the user, or the best of several candidates by the same quantile in
selection draws. The certificate itself uses fresh draws, so a choice that was merely lucky gets
no better bound.

**Draws that are not all fresh.** A learned prior knows its hyperparameters only by stored draws,
worth E independent ones (``independent_draws``). M kernels drawn from it are then worth no more
than n with 1/n = 1/M + 1/E. Among the draws of one hyperparameter, the number below the quantile is
no longer 0 or 1 but a share in [0, 1], and a sum of n such shares has a tail of at most e times the
binomial one (Bentkus 2004). So l is the largest integer with Pr(Binomial(n, α) ≤ l − 1) ≤ β/e, and
the bound is the value of rank ⌊(l − 1)M/n⌋ + 1. E itself is an estimate.

**A horizon, or no discounting.** With a horizon, each draw is one kernel held over all steps, so
steps that share a row need no union bound, as they do in the nested certificate. Without
discounting and horizon, where every policy surely ends, the value may have no posterior mean; order
statistics need none.

Nothing is assumed about the dependence of rows. What is assumed: the belief (its prior, the Markov
property, that tomorrow's kernel is yesterday's) and draws from it as described.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, bdtrik

from brmdp._validation import (
    FloatArray,
    IntArray,
    PolicyArray,
    Seed,
    as_discount,
    as_level,
    as_positive_int,
    as_positive_number,
    as_rng,
    rng_for,
)
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import has_known_kernel, require_belief, require_posterior
from brmdp.decisions.draws import Sampler, independent_draws, worth_of
from brmdp.decisions.policies import (
    Policies,
    as_start_weights,
    is_deterministic,
    is_random,
    mean_stages,
    named_policies,
    same_policy,
)
from brmdp.decisions.uncertain_rewards import (
    RewardsOrDoubt,
    caveat_about,
    is_uncertain,
    mean_rewards,
    refuse_endless,
)
from brmdp.errors import BrmdpError, ConvergenceError, InvalidInputError
from brmdp.planning.finite_horizon import HorizonSolution, as_horizon
from brmdp.planning.guarantees import Certificate, certificate_of, certified_level
from brmdp.planning.horizon_prior import reliance_over, reliance_until_end
from brmdp.planning.many import Task, attempts
from brmdp.planning.planner import Problem
from brmdp.planning.prior import PriorReliance, reliance, warn_about_prior
from brmdp.planning.text import at_least, call_like, extent, percent, wrapped
from brmdp.risk.dirichlet import has_dirichlet_rows
from brmdp.risk.measures import CVaR, Mean, PosteriorSample, Quantile, has_exact_quantiles
from brmdp.risk.monte_carlo import MonteCarlo, order_statistic_rank

__all__ = [
    "SampledCertificate",
    "candidate_policies",
    "certify",
    "draws_needed",
    "order_statistic",
]

LEVELS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Levels of the quantile plans among the candidates."""

TAILS = (0.1, 0.3, 0.6)
"""Levels of the CVaR plans among the candidates."""

FEW_LEVELS, MANY_TRANSITIONS = (0.3,), 200_000
"""Quantile levels beside α for larger problems, where exact plans take long and CVaR far longer."""

ROUGH, ROUGH_SWEEPS = 1e-3, 60
"""Accuracy of their plans, by the saddlepoint approximation, and the largest number of sweeps."""

SELECTION_DRAWS = 2_000
"""Largest number of draws on which candidates are compared."""

FEWEST_SELECTION_DRAWS = 200

SELECTION_NUMBERS = 200_000_000
"""Drawn probabilities in the selection; more policies or states mean fewer draws."""

SELECTION_VALUES = 20_000_000
"""Values kept in the selection, if all states count."""

MOST_DRAWS, FEWEST_DRAWS, BUDGET_NUMBERS = 1_000_000, 2_000, 500_000_000
"""Default budget: the number of draws, and of drawn probabilities."""

REUSE = 20
"""Largest number of kernels per independent draw of the hyperparameters; more would add little."""

MOST_NEEDED = 10_000_000
"""Largest number of draws that a bound may need at the least."""

NEAR_ZERO = 0.1
"""A quantile smaller than this share of the draws' interquartile range gives a gap no scale."""

SMALLEST_SPREAD = 1e-7
"""Spread of a state in which all draws agree, relative to its |value|."""

GAP, FAILURE = 0.01, 1e-6
"""The gap that is good enough, and the probability that chance in the simulation breaks a bound."""

NESTED_TRANSITIONS = 2_000_000
"""Beyond this many transitions, Proposition 1's bound is not computed unless asked for."""

SAMPLED_PLAN_NUMBERS = 20_000_000
"""Largest sample behind a quantile plan for a belief that offers nothing but draws."""

SAMPLED_PLAN_DRAWS = 500

DRAWN_PLANS, DRAWN_PLAN_TRANSITIONS = 8, 50_000
"""Number of plans for single draws, and the largest problem that gets them."""

logger = logging.getLogger("brmdp")


def order_statistic(draws: int, alpha: float, failure: float = 1e-6) -> int:
    """The largest l with Pr(Binomial(M, α) ≤ l − 1) ≤ β; 0 if there is none.

    The l-th smallest of M = ``draws`` independent draws is at most the α-quantile of their law,
    except with probability at most β = ``failure``.

    Parameters
    ----------
    draws : int
    alpha, failure : float in (0, 1)

    Returns
    -------
    int

    Examples
    --------
    >>> from brmdp.decisions import order_statistic
    >>> order_statistic(10_000, 0.1), order_statistic(132, 0.1), order_statistic(131, 0.1)
    (860, 1, 0)
    """
    n = as_positive_int(draws, "draws")
    level, beta = as_level(alpha), as_level(failure, "failure")
    if n * math.log1p(-level) > math.log(beta):
        return 0
    # the largest k with cdf(k) ≤ β is near the inverse; the cdf itself decides
    near = float(bdtrik(beta, n, level))
    k = int(near) if math.isfinite(near) else 0
    k = min(max(k, 0), n - 1)
    while k + 1 < n and bdtr(k + 1, n, level) <= beta:
        k += 1
    while k >= 0 and bdtr(k, n, level) > beta:
        k -= 1
    # at k = 0 the logarithm above is more accurate than the cdf
    return max(k, 0) + 1


def draws_needed(alpha: float, failure: float = 1e-6) -> int:
    """The smallest number of draws for which a bound at level α exists: (1 − α)^M ≤ β.

    Examples
    --------
    >>> from brmdp.decisions import draws_needed
    >>> draws_needed(0.1), draws_needed(0.01)
    (132, 1375)
    """
    level, beta = as_level(alpha), as_level(failure, "failure")
    n = max(1, math.ceil(math.log(beta) / math.log1p(-level)))
    if n > 1 << 50:
        return n
    while n > 1 and (n - 1) * math.log1p(-level) <= math.log(beta):
        n -= 1
    while n * math.log1p(-level) > math.log(beta):
        n += 1
    return n


@dataclass(frozen=True, eq=False, repr=False)
class SampledCertificate:
    """A policy, and a lower bound on its true value from posterior draws.

    Printing it says in words what it promises and what it assumes.

    Attributes
    ----------
    confidence : float
        1 − α: the posterior probability with which the bound holds.
    failure : float
        β: the probability that the simulation was so unlucky that it does not.
    value : float or None
        The bound at the start; None if it is for all states.
    values : (S,) array or None
        Bounds that hold in all states at once; None if it is for one start.
    policy : (S,) integers or (S, A) probabilities
        The policy that was certified; with a horizon by step, (H, S) or (H, S, A).
    name : str
        Where it comes from: "given", or the name of a candidate.
    candidates : dict
        The estimated quantile of each candidate in the selection draws (for all states, the mean
        over states of the joint bound); empty for a given policy. The best one is flattered by the
        choice, which does not affect the certificate.
    draws : int
        Number M of draws behind the bound; the selection used others.
    rank : int
        l: the bound is the l-th smallest of M values.
    share : float
        l/M, a little below α.
    quantile : float or (S,) array
        What the bound would be at l/M = α: the estimated posterior quantile.
    gap : float
        What is lost between quantile and bound, relative to the quantile; see
        :mod:`brmdp.decisions.certificate`.
    gap_wanted : float
        Draws were added until the gap fell below this or the budget ended.
    looks : int
        Number of looks at the draws that were allowed; each used β/looks.
    solver_error : float
        Largest numerical error of the values; it is subtracted, draw by draw.
    nested : Certificate or None
        Proposition 1's certificate of its own best policy, where there is one.
    nested_value : float or None
        Proposition 1's bound at the start.
    prior : PriorReliance or None
        How far the policy rests on the prior. None for beliefs that do not separate prior and data.
    independent_draws : float
        What the belief's own draws are worth at most, in independent ones; infinite if all are
        fresh.
    horizon : int or None
        Number of steps that the value is for.
    policy_drawn : bool
        Whether the policy is itself uncertain, such as the practice estimated from a log. The bound
        then covers that doubt, too, and ``policy`` holds the mean probabilities.
    rewards_drawn : bool
        Whether the rewards are themselves uncertain; the bound then covers that doubt, too.
    caveat : str
        What to know about the rewards, if their draws are only an approximation of a posterior;
        else empty.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> belief.observe([0] * 100 + [1] * 100, 0, [0] * 90 + [1] * 10 + [0] * 20 + [1] * 80)
    >>> print(brmdp.certify(belief, [[1.0], [0.0]], 0.5, policy=[0, 0], start=0, rng=0))
    With posterior probability at least 0.9, the true value of this policy (given) from the
    start is at least 1.766.
    This is number 75 of 1250 values in posterior draws, in increasing order (a share of 0.06); the
    10 % quantile itself is about 1.782, so the bound gives away 0.913 %.
    It assumes that the belief is right: its prior, that the next state depends on state and
    action alone, and that nothing changes over time. Chance in the simulation breaks it with
    probability at most 1e-06.
    For comparison, nested quantiles with the policy that is best for them give 1.752, by the
    rule: independent rows (Proposition 1).
    """

    confidence: float
    failure: float
    value: float | None
    values: FloatArray | None
    policy: IntArray | FloatArray
    name: str
    candidates: dict[str, float]
    draws: int
    rank: int
    share: float
    quantile: float | FloatArray
    gap: float
    gap_wanted: float
    looks: int
    solver_error: float
    nested: Certificate | None = None
    nested_value: float | None = None
    prior: PriorReliance | None = None
    independent_draws: float = math.inf
    horizon: int | None = None
    policy_drawn: bool = False
    rewards_drawn: bool = False
    caveat: str = ""

    @property
    def method(self) -> str:
        """How the bound was found: "sampled"."""
        return "sampled"

    @property
    def gap_reached(self) -> bool:
        """Whether the gap is as small as wanted."""
        return self.gap <= self.gap_wanted

    def __str__(self) -> str:
        return "\n".join(map(wrapped, self._sentences()))

    def _given_away(self) -> str:
        """What a bound for one start gives away, and of what."""
        quantile, bound = float(self.quantile), -math.inf if self.value is None else self.value
        if self.gap >= (1.0 - 1e-9) * (quantile - bound) / (abs(quantile) or math.inf):
            return percent(self.gap)
        return (
            f"{quantile - bound:.2g} (the quantile is close to zero: {percent(self.gap)} is the "
            "share of a tenth of the draws' interquartile range)"
        )

    def _sentences(self) -> list[str]:
        sure = (
            f"With posterior probability at least {self.confidence:.10g}, the true value of this "
        )
        if self.horizon is not None:
            sure = sure.replace("true value", f"true value over {self.horizon} steps")
        level = f"{100 * (1 - self.confidence):.3g} %"
        counted = (
            f"This is number {self.rank} of {self.draws} values in posterior draws, in increasing "
            f"order (a share of {self.share:.3g})"
        )
        if self.values is None:
            bound = -math.inf if self.value is None else self.value
            parts = [
                f"{sure}policy ({self.name}) from the start is at least {at_least(bound)}.",
                f"{counted}; the {level} quantile itself is about {self.quantile:.4g}, so the "
                f"bound gives away {self._given_away()}.",
            ]
        else:
            quantile = np.asarray(self.quantile)
            parts = [
                f"{sure}policy ({self.name}) is at least the certified value in every state at "
                "once.",
                f"Certified values of the {self.values.size} states: "
                f"{extent(self.values, bounds=True)}.",
                f"Not all of them hold in at most {self.rank - 1} of {self.draws} posterior draws "
                f"(a share of {(self.rank - 1) / self.draws:.3g}); with {level} they would be "
                f"about {extent(quantile)}, so the bounds give away at most {percent(self.gap)} of "
                "the largest.",
            ]
        if math.isfinite(self.independent_draws):
            parts.append(
                "The belief's stored draws of its hyperparameters are worth about "
                f"{self.independent_draws:.0f} independent ones, judging by their autocorrelation; "
                "no more are counted, whatever the number of values."
            )
        if not self.gap_reached:
            parts.append(
                f"More than {percent(self.gap_wanted)} is given away because the draws ended: with "
                "more of them"
                + (" in the belief (learn_prior: draws=…)" * math.isfinite(self.independent_draws))
                + ", the bound would be sharper."
            )
        if self.candidates:
            parts.append(
                f"The policy is the best of {len(self.candidates)} candidates on other draws; a "
                "better one may exist."
            )
        parts.append(
            "It assumes that the belief is right: its prior, that the next state depends on state "
            "and action alone, and that nothing changes over time. Chance in the simulation breaks "
            f"it with probability at most {self.failure:.2g}"
            + (", if the stored draws are worth that much" * math.isfinite(self.independent_draws))
            + "."
        )
        if self.policy_drawn:
            parts.append("The policy is known only by an estimate; the bound allows for that, too.")
        if self.rewards_drawn:
            parts.append("Rewards are known only by an estimate; the bound allows for that, too.")
        if self.caveat:
            parts.append(self.caveat)
        if self.nested is not None:
            other = (
                f"{self.nested_value:.4g}"
                if self.nested_value is not None
                else f"the values {extent(self.nested.values)}"
            )
            parts.append(
                "For comparison, nested quantiles with the policy that is best for them give "
                f"{other}, by the rule: {self.nested.rule}."
            )
        return parts + prior_words(self.prior, "The bound")

    def __repr__(self) -> str:
        bound = (
            f"value={self.value:.4g}"
            if self.values is None
            else f"{self.values.size} states, values {extent(self.values)}"
        )
        parts = [
            f"confidence={self.confidence:.10g}",
            bound,
            f"policy {self.name!r}",
            f"rank={self.rank} of {self.draws} draws",
            f"gap={self.gap:.2g}",
            f"failure={self.failure:.2g}",
        ]
        if self.nested is not None:
            shown = (
                f"{self.nested_value:.4g}"
                if self.nested_value is not None
                else extent(self.nested.values)
            )
            parts.append(f"nested {shown}")
        if self.prior is not None and self.prior.outweighs:
            parts.append("rests on the prior")
        return call_like("SampledCertificate", parts)


def prior_words(prior: PriorReliance | None, what: str) -> list[str]:
    """Sentences on how far ``what`` rests on the prior; none if it does not."""
    if prior is None:
        return []
    if prior.outweighs:
        return [f"{what} rests heavily on the prior:", *str(prior).splitlines()]
    if not prior.never_observed.size:
        return []
    support = "the prior, learned from other rows of the log," if prior.borrowed else "the prior"
    return [f"{prior.unseen()}; there, {what[0].lower()}{what[1:]} rests on {support} alone."]


def candidate_policies(
    belief: Belief,
    rewards: RewardsOrDoubt,
    discount: float,
    confidence: float = 0.9,
    *,
    horizon: int | None = None,
    terminal: ArrayLike | None = None,
    rng: Seed = None,
) -> dict[str, IntArray]:
    """Policies worth certifying: plans of the mean, and at several quantile and CVaR levels.

    Problems of more than 200,000 transitions get two quantile plans only, those at 0.3 and at the
    confidence's own level, by the saddlepoint approximation and no more accurately than needed to
    tell actions apart whose difference matters. Small problems get the optima of a few
    posterior draws, too: with scenarios or a shared disturbance, no nested level may lead to the
    best policy. For a belief that offers nothing but draws, quantile plans are made from a few
    hundred of them, unless that is too much. A candidate needs no guarantee.

    Parameters
    ----------
    belief, rewards, discount, confidence
        As in :func:`certify`. The confidence adds the level of Proposition 1.
    horizon, terminal
        As in :func:`brmdp.plan`.
    rng : numpy.random.Generator or seed, optional
        Random stream of the draws.

    Returns
    -------
    dict
        Distinct policies, (S,) integers, or (H, S) with a horizon, by name.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.decisions import candidate_policies
    >>> belief = brmdp.DirichletBelief([[[9, 1], [1, 9]], [[9, 1], [1, 9]]])
    >>> candidate_policies(belief, [[0.0, 0.0], [1.0, 1.0]], 0.5)
    {'mean': array([1, 1])}
    """
    require_belief(belief)
    alpha = 1.0 - as_level(confidence, "confidence")
    pattern = belief.pattern
    stream = as_rng(rng)
    known = mean_rewards(belief, rewards)
    problem = Problem.of(belief, known, discount, undiscounted=True)
    if horizon is None and terminal is not None:
        raise InvalidInputError("terminal must be given only together with a horizon")
    # without discounting, measures that look at single kernels may meet one that does not end
    endless = problem.discount == 1.0 and horizon is None
    failures = (ConvergenceError, InvalidInputError) if endless else ConvergenceError
    risks: list[tuple[str, Any]] = [("mean", Mean())]
    method: Literal["exact", "saddlepoint"] = "exact"
    sketch: Problem | None = None
    if has_exact_quantiles(belief):
        if not has_known_kernel(belief):
            nested = certified_level(
                alpha, pattern.n_states, independent=bool(getattr(belief, "rows_independent", 0))
            )
            many = pattern.n_transitions > MANY_TRANSITIONS
            if many and horizon is None and not endless and has_dirichlet_rows(belief):
                method = "saddlepoint"
                sketch = Problem.of(
                    belief, known, discount, max_iterations=ROUGH_SWEEPS, relative=ROUGH
                )
            levels = {*FEW_LEVELS, alpha} if many else {*LEVELS, alpha, nested}
            for level in sorted(levels, reverse=True):
                risks.append((f"quantile {level:.3g}", Quantile(level, method)))
            if not many:
                risks += [(f"CVaR {level:.3g}", CVaR(level)) for level in TAILS]
    elif SAMPLED_PLAN_DRAWS * pattern.n_transitions <= SAMPLED_PLAN_NUMBERS:
        for level in sorted({*LEVELS[1:], alpha}, reverse=True):
            draws = MonteCarlo(samples=SAMPLED_PLAN_DRAWS, rng=stream)
            risks.append((f"quantile {level:.3g}", Quantile(level, method=draws)))
    if pattern.n_transitions <= DRAWN_PLAN_TRANSITIONS and not has_known_kernel(belief):
        risks += [(f"draw {k}", PosteriorSample(rng=stream)) for k in range(DRAWN_PLANS)]
    plans: list[Any]
    if horizon is not None:
        plans = [_plan_over(problem, belief, risk, horizon, terminal) for _, risk in risks]
    else:
        plans = attempts(
            [
                Task(problem, belief, risk)
                if sketch is None or name == "mean"
                else Task(sketch, belief, risk, raise_on_failure=False)
                for name, risk in risks
            ]
        )
    found: dict[str, IntArray] = {}
    for (name, _), plan in zip(risks, plans, strict=True):
        if isinstance(plan, BrmdpError):
            if name == "mean" or not isinstance(plan, failures):
                raise plan
            logger.info("candidate %r left out: its plan did not converge", name)
        elif not any(np.array_equal(plan.policy, other) for other in found.values()):
            found[name] = np.array(plan.policy)
    return found


def _plan_over(
    problem: Problem, belief: Belief, risk: Any, horizon: int, terminal: ArrayLike | None
) -> HorizonSolution | ConvergenceError:
    """A plan over a horizon, or the error that it ended with."""
    try:
        return problem.solve_over(belief, risk, horizon, terminal)
    except ConvergenceError as error:
        return error


@overload
def certify(
    belief: Belief,
    rewards: RewardsOrDoubt,
    discount: float,
    confidence: float = ...,
    *,
    method: Literal["sampled"],
    policy: Any = ...,
    candidates: Policies | None = ...,
    start: ArrayLike | None = ...,
    draws: int | None = ...,
    gap: float | None = ...,
    failure: float | None = ...,
    nested: bool | None = ...,
    horizon: int | None = ...,
    terminal: ArrayLike | None = ...,
    rng: Seed = ...,
) -> SampledCertificate: ...


@overload
def certify(
    belief: Belief,
    rewards: RewardsOrDoubt,
    discount: float,
    confidence: float = ...,
    *,
    method: Literal["nested"],
    policy: ArrayLike | None = ...,
    start: ArrayLike | None = ...,
    tolerance: float | None = ...,
    coverage_samples: int | None = ...,
    horizon: int | None = ...,
    terminal: ArrayLike | None = ...,
    rng: Seed = ...,
) -> Certificate: ...


@overload
def certify(
    belief: Belief,
    rewards: RewardsOrDoubt,
    discount: float,
    confidence: float = ...,
    *,
    policy: Any = ...,
    start: ArrayLike | None = ...,
    horizon: int | None = ...,
    terminal: ArrayLike | None = ...,
    rng: Seed = ...,
    **settings: Any,
) -> SampledCertificate | Certificate: ...


def certify(
    belief: Belief,
    rewards: RewardsOrDoubt,
    discount: float,
    confidence: float = 0.9,
    *,
    method: Literal["sampled", "nested"] | None = None,
    policy: Any = None,
    start: ArrayLike | None = None,
    horizon: int | None = None,
    terminal: ArrayLike | None = None,
    rng: Seed = None,
    **settings: Any,
) -> SampledCertificate | Certificate:
    """A lower bound on the value of a policy that holds with a stated posterior probability.

    *Sampled*: from values in posterior draws, close to the posterior quantile of the policy's
    value, for every belief that can be drawn from. *Nested*: the bound of the paper's Proposition 1
    by quantiles of single rows, computed without draws, often far lower.

    Parameters
    ----------
    belief, rewards, discount
        As in :func:`brmdp.plan`. The discount may be 1 with a horizon, or, sampled, if every policy
        surely ends. Sampled, rewards may be :class:`brmdp.decisions.UncertainRewards`, whose doubt
        the bound then covers, too.
    confidence : float in (0, 1)
        1 − α: posterior probability with which the bound holds.
    method : "sampled" or "nested", optional
        By default sampled, unless that would take too long (more than 250,000 possible transitions
        under one policy, more than 2 million in all, or more than 10 million draws needed) and
        nested bounds exist. The result's ``method`` says which it was.
    policy : (S,) actions or (S, A) probabilities, optional
        The policy to certify; it must not have been chosen by looking at the same random stream.
        Sampled, it may be a :class:`Practice`, and with a horizon be given by step, (H, S) or
        (H, S, A). By default the best of several candidates (sampled) or the one with the best
        bounds (nested).
    start : int or (S,) probabilities, optional
        Certify the value from there (``value``). By default the bounds hold in all states at once
        (``values``), as those of the nested method always do.
    horizon : int, optional
        Certify the value of this number of steps, in a kernel that stays the same.
    terminal : (S,) array, optional
        Values after the last step of the horizon; zero by default.
    rng : numpy.random.Generator or seed, optional
        Random stream of the draws. A seed gives other draws here than in the rest of the library.
    **settings
        Sampled: ``candidates`` (mapping or list of policies, of which the best is certified; by
        default :func:`candidate_policies`), ``draws`` (largest number behind the bound, not
        counting those that choose the policy; by default a million, or fewer if the policy's rows
        have many entries: 500 million drawn probabilities, but at least 2,000 draws, and three
        times as many as any bound needs), ``gap`` (stop drawing once the bound is this close to the
        quantile, relative to it; by default 0.01), ``failure`` (β, the probability that chance in
        the simulation breaks the bound; by default 1e-6), ``nested`` (also compute Proposition 1's
        bound; by default if quantiles are exact and transitions at most 2 million).

        Nested: ``tolerance`` and ``coverage_samples``, as in
        :func:`brmdp.planning.certify_nested`.

    Returns
    -------
    SampledCertificate or Certificate
        The latter from the nested method.

    Raises
    ------
    InvalidInputError
        If an argument is invalid or belongs to the other method, ``draws`` are too few for any
        bound at this confidence, or the belief is only an approximation of a posterior.
    ContradictionError
        If the check of a nested certificate contradicts it.

    Warns
    -----
    PriorWarning
        If the prior outweighs the data along the policy.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> belief.observe([0] * 100 + [1] * 100, 0, [0] * 90 + [1] * 10 + [0] * 20 + [1] * 80)
    >>> found = brmdp.certify(belief, [[1.0], [0.0]], 0.5, start=0, rng=0)
    >>> found.method, round(found.value, 2), round(found.nested_value, 2)
    ('sampled', 1.77, 1.75)
    """
    require_belief(belief)
    methods = {"sampled": _SAMPLED_SETTINGS, "nested": _NESTED_SETTINGS}
    if method is not None and method not in methods:
        raise InvalidInputError(f'method must be "sampled" or "nested"; got {method!r}')
    for name in settings:
        if name not in _SAMPLED_SETTINGS + _NESTED_SETTINGS:
            raise TypeError(f"certify() got an unexpected keyword argument {name!r}")
    uncertain = is_uncertain(rewards)
    if method == "nested" and uncertain:
        raise InvalidInputError(f'method must not be "nested" {NO_NESTED}')
    sampled = "sampled" if uncertain else None
    chosen = method or sampled or _default_method(belief, discount, confidence, horizon, settings)
    for name in settings:
        if name not in methods[chosen]:
            other = "nested" if chosen == "sampled" else "sampled"
            raise InvalidInputError(
                f'{name} is a setting of method="{other}"; this certificate is {chosen}'
                + ("" if method else " by default")
            )
    arguments: dict[str, Any] = {
        "policy": policy,
        "start": start,
        "horizon": horizon,
        "terminal": terminal,
        "rng": rng,
        **settings,
    }
    make = sampled_certificate_of if chosen == "sampled" else certificate_of
    certificate: SampledCertificate | Certificate = make(
        belief, rewards, discount, confidence, **arguments
    )
    warn_about_prior(certificate.prior, "certificate", 2)
    return certificate


NO_NESTED = (
    "with rewards that are themselves uncertain: quantiles of single rows know nothing of them"
)

_SAMPLED_SETTINGS = ("candidates", "draws", "gap", "failure", "nested")
_NESTED_SETTINGS = ("tolerance", "coverage_samples")


def _default_method(
    belief: Belief, discount: float, confidence: float, horizon: int | None, settings: Any
) -> Literal["sampled", "nested"]:
    """Sampled, unless that would take too long and there are nested bounds."""
    pattern = belief.pattern
    gamma = as_discount(discount, one_allowed=True)
    if not has_exact_quantiles(belief) or (gamma == 1.0 and horizon is None):
        return "sampled"
    if any(settings.get(name) is not None for name in _SAMPLED_SETTINGS):
        return "sampled"
    alpha = 1.0 - as_level(confidence, "confidence")
    under_one_policy = pattern.n_states * pattern.n_transitions / pattern.pairs.size
    affordable = (
        draws_needed(alpha) <= MOST_NEEDED
        and under_one_policy * (horizon or 1) <= BUDGET_NUMBERS / FEWEST_DRAWS
        and pattern.n_transitions <= NESTED_TRANSITIONS
    )
    return "sampled" if affordable else "nested"


def sampled_certificate_of(
    belief: Belief,
    rewards: RewardsOrDoubt,
    discount: float,
    confidence: float,
    *,
    policy: Any = None,
    candidates: Policies | None = None,
    start: ArrayLike | None = None,
    draws: int | None = None,
    gap: float | None = None,
    failure: float | None = None,
    nested: bool | None = None,
    horizon: int | None = None,
    terminal: ArrayLike | None = None,
    rng: Seed = None,
) -> SampledCertificate:
    """The sampled :func:`certify` without the warning, for those who make many certificates."""
    require_belief(belief)
    require_posterior(belief)
    level = as_level(confidence, "confidence")
    alpha = 1.0 - level
    beta = as_level(FAILURE if failure is None else failure, "failure")
    budget = None if draws is None else as_positive_int(draws, "draws")
    wanted = as_positive_number(GAP if gap is None else gap, "gap")
    gamma = as_discount(discount, one_allowed=True)
    pattern = belief.pattern
    over: dict[str, Any] = {"horizon": horizon, "terminal": terminal}
    endless = gamma == 1.0 and horizon is None
    if endless and nested:
        raise InvalidInputError(
            "nested must not be True with discount 1 and no horizon: Proposition 1 needs "
            "discounting or a horizon"
        )
    refuse_endless(rewards, gamma, horizon)
    if is_uncertain(rewards):
        if nested:
            raise InvalidInputError(f"nested must not be True {NO_NESTED}")
        nested = False
    begin = None if start is None else as_start_weights(start, pattern.n_states)
    if policy is not None and candidates is not None:
        raise InvalidInputError("policy and candidates must not both be given")
    independent = independent_draws(belief)
    fewest = draws_needed(alpha, beta)
    if fewest > MOST_NEEDED:
        raise InvalidInputError(
            f"confidence {level:.12g} with failure {beta:.3g} needs at least {fewest:.3g} draws, "
            f"and at most {MOST_NEEDED:,} are taken; use a lower confidence"
        )
    if budget is not None and budget < fewest:
        raise InvalidInputError(
            f"draws must be at least {fewest:,} for confidence {level:.6g} with failure "
            f"{beta:.3g}, since with fewer the smallest value may exceed the quantile; got "
            f"{budget:,}"
        )
    if math.isfinite(independent):
        _most_worth(budget or MOST_DRAWS, independent, alpha, beta, type(belief).__name__)
    stream = rng_for("certificate", rng)
    followed, chosen, name, scores, pilot = _choose(
        belief, rewards, gamma, alpha, policy, candidates, begin, budget, over, stream
    )
    scale: tuple[FloatArray, FloatArray] | None = None
    if begin is None:
        scale = _shape(pilot)
        reduce = _shortfall_in(*scale)
        reduced = reduce(pilot.values, pilot.errors)
    else:
        reduce = _value_at(begin)
        reduced = pilot.values[:, 0] - pilot.errors
    sampler = Sampler(belief, rewards, gamma, [followed], **over, rng=stream)
    if budget is None:
        affordable = min(BUDGET_NUMBERS // sampler.rows.size, MOST_DRAWS)
        budget = max(affordable, FEWEST_DRAWS, 3 * fewest)
    if math.isfinite(independent):
        budget = _most_worth(budget, independent, alpha, beta, type(belief).__name__)
    schedule = _schedule(reduced, alpha, beta, wanted, budget, scale, independent)
    lower = np.empty(0)
    solver_error = 0.0
    for m in schedule:
        fresh = [lower]
        for block in sampler.blocks(m - lower.size):
            fresh.append(reduce(block.values[:, 0], block.errors[:, 0]))
            solver_error = max(solver_error, float(block.errors.max()))
        lower = np.concatenate(fresh)
        rank = _rank(m, alpha, beta / len(schedule), independent)
        ordered = np.sort(lower)
        at, near = float(ordered[rank - 1]), _quantile(ordered, alpha)
        found_gap = _relative_gap(ordered, at, near, scale)
        if found_gap <= wanted:
            break
    if nested is None:
        nested = has_exact_quantiles(belief) and pattern.n_transitions <= NESTED_TRANSITIONS
    other = _nested(belief, rewards, gamma, level, over) if nested and not endless else None
    certified = chosen.argmax(axis=-1) if is_deterministic(chosen) else chosen
    return SampledCertificate(
        confidence=level,
        failure=beta,
        value=at if scale is None else None,
        values=None if scale is None else scale[0] + at * scale[1],
        policy=certified,
        name=name,
        candidates=scores,
        draws=int(lower.size),
        rank=rank,
        share=rank / lower.size,
        quantile=near if scale is None else scale[0] + near * scale[1],
        gap=found_gap,
        gap_wanted=wanted,
        looks=len(schedule),
        solver_error=solver_error,
        nested=other,
        nested_value=None if other is None or begin is None else float(other.values @ begin),
        prior=reliance_of(belief, sampler.rewards, chosen, gamma, horizon, start),
        independent_draws=independent,
        horizon=horizon,
        policy_drawn=is_random(followed),
        rewards_drawn=is_uncertain(rewards),
        caveat=caveat_about(rewards),
    )


# --- parts ----------------------------------------------------------------------------------------


def _rank(draws: int, alpha: float, failure: float, independent: float) -> int:
    """The rank of the bound among the values of all draws; 0 if there is none."""
    if math.isinf(independent):
        return order_statistic(draws, alpha, failure)
    n = worth_of(draws, independent)
    rank = order_statistic(n, alpha, failure / math.e)
    return (rank - 1) * draws // n + 1 if rank else 0


def _most_worth(budget: int, independent: float, alpha: float, failure: float, source: str) -> int:
    """The number of draws to take of a belief whose draws are not all fresh."""
    needed = draws_needed(alpha, failure / math.e)
    most = min(budget, math.ceil(REUSE * independent))
    if worth_of(most, independent) < needed:
        wanted = math.ceil((1.0 + 1.0 / REUSE) * needed)
        what = (
            f"belief must offer draws worth at least {wanted:,} independent ones for confidence "
            f"{1.0 - alpha:.6g} with failure {failure:.3g}; those of this {source} are worth "
            f"{independent:.0f}. Learn the prior again with more (learn_prior: draws=…)"
        )
        if independent >= wanted:
            least = math.ceil(1.0 / (1.0 / (needed + 1) - 1.0 / independent))
            what = (
                f"draws must be at least {least:,} for confidence {1.0 - alpha:.6g} with failure "
                f"{failure:.3g}, since this {source} stores draws worth {independent:.0f} "
                f"independent ones; got {budget:,}"
            )
        raise InvalidInputError(what)
    return most


class _Pilot(NamedTuple):
    """Values (n, S) of the chosen policy in the selection draws, or (n, 1) for one start."""

    values: FloatArray
    errors: FloatArray


def _value_at(begin: FloatArray) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """Values at the start, (n,), less the solver's error."""

    def reduce(values: FloatArray, errors: FloatArray) -> FloatArray:
        lower: FloatArray = values @ begin - errors
        return lower

    return reduce


def _shortfall_in(
    centre: FloatArray, spread: FloatArray
) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """−Z in each draw: the smallest (V(s) − c(s))/d(s), so that low is bad as for one start."""

    def reduce(values: FloatArray, errors: FloatArray) -> FloatArray:
        lower: FloatArray = ((values - errors[:, None] - centre) / spread).min(axis=1)
        return lower

    return reduce


def _shape(pilot: _Pilot) -> tuple[FloatArray, FloatArray]:
    """The mean of the pilot's values, and the root of the mean squared shortfall below it."""
    centre = pilot.values.mean(axis=0)
    short = np.minimum(pilot.values - centre, 0.0)
    spread = np.sqrt((short * short).mean(axis=0))
    # the largest value must not set the scale of a small one
    size = np.abs(centre)
    size[size == 0.0] = min(size[size > 0.0], default=0.0)
    floor = max(10.0 * float(pilot.errors.max()), 1e-300)
    return centre, np.maximum(spread, np.maximum(SMALLEST_SPREAD * size, floor))


def _quantile(ordered: FloatArray, alpha: float) -> float:
    return float(ordered[int(order_statistic_rank(ordered.size, alpha)) - 1])


def _relative_gap(
    ordered: FloatArray, at: float, near: float, scale: tuple[FloatArray, FloatArray] | None
) -> float:
    """The gap between bound and quantile, relative to the quantile (see "How many draws")."""
    if scale is None:
        low, high = np.quantile(ordered, (0.25, 0.75))
        size = max(abs(near), NEAR_ZERO * float(high - low)) or float(ordered[-1] - ordered[0])
        difference = near - at
    else:
        centre, spread = scale
        quantiles = centre + near * spread
        size = float(np.abs(quantiles).max()) or float(spread.max())
        difference = (near - at) * float(spread.max())
    if difference <= 0.0:
        return 0.0
    return difference / size


def _schedule(
    pilot: FloatArray,
    alpha: float,
    beta: float,
    wanted: float,
    budget: int,
    scale: tuple[FloatArray, FloatArray] | None,
    independent: float,
) -> list[int]:
    """Numbers of draws at which to look: as many as the pilot predicts, then doubled."""
    if math.isfinite(independent):
        # few independent draws leave nothing to spend on looks
        return [budget]
    ordered = np.sort(pilot)
    near = _quantile(ordered, alpha)
    first = max(draws_needed(alpha, beta / 8.0), 1_000)
    m = first
    while m < budget:
        rank = order_statistic(m, alpha, beta / 2.0)
        # the value at the share l/M, from the pilot's own order statistics
        place = max(rank / m * ordered.size - 1.0, 0.0)
        at = float(np.interp(place, np.arange(ordered.size), ordered))
        if _relative_gap(ordered, at, near, scale) <= 0.8 * wanted:
            break
        m = math.ceil(1.25 * m)
    looks = [min(m, budget)]
    while looks[-1] < budget and len(looks) < 3:
        looks.append(min(2 * looks[-1], budget))
    if looks[-1] < budget:
        looks.append(budget)
    # splitting β must leave a bound at every look
    fewest = draws_needed(alpha, beta / len(looks))
    return sorted({max(look, fewest) for look in looks}) if budget >= fewest else [budget]


class _Choice(NamedTuple):
    """The policy to certify, its (mean) probabilities and name, all scores, its selection draws."""

    policy: Any
    weights: FloatArray
    name: str
    scores: dict[str, float]
    pilot: _Pilot


def _choose(
    belief: Belief,
    rewards: RewardsOrDoubt,
    discount: float,
    alpha: float,
    policy: Any,
    candidates: Policies | None,
    begin: FloatArray | None,
    budget: int | None,
    over: dict[str, Any],
    rng: np.random.Generator,
) -> _Choice:
    """The policy to certify."""
    admissible, horizon = belief.pattern.admissible, over["horizon"]
    if horizon is not None:
        horizon = as_horizon(horizon, belief.pattern.n_states)
    items: dict[str, Any] = {}
    if policy is not None:
        weights = {"given": mean_stages(policy, admissible, horizon)}
        items["given"] = policy if is_random(policy) else weights["given"]
    else:
        given: dict[str, Any] = (
            dict(candidate_policies(belief, rewards, discount, 1.0 - alpha, **over, rng=rng))
            if candidates is None
            else named_policies(candidates, "candidates")
        )
        weights = {}
        for name, item in given.items():
            found = mean_stages(item, admissible, horizon, f"candidates[{name!r}]")
            random = is_random(item)
            if random or not any(same_policy(found, other) for other in weights.values()):
                weights[name] = found
                items[name] = item if random else found
    sampler = Sampler(belief, rewards, discount, items, **over, rng=rng)
    n = _selection_size(sampler, len(weights), begin, alpha, budget)
    values, errors = [], []
    for block in sampler.blocks(n):
        values.append(block.values if begin is None else (block.values @ begin)[:, :, None])
        errors.append(block.errors)
    drawn, doubt = np.concatenate(values), np.concatenate(errors)
    pilots = {name: _Pilot(drawn[:, k], doubt[:, k]) for k, name in enumerate(weights)}
    if len(weights) == 1:
        name = next(iter(weights))
        return _Choice(items[name], weights[name], name, {}, pilots[name])
    scores = {name: _score(pilot, alpha, begin) for name, pilot in pilots.items()}
    best = max(scores, key=scores.__getitem__)
    return _Choice(items[best], weights[best], best, scores, pilots[best])


def _selection_size(
    sampler: Sampler, n_policies: int, begin: FloatArray | None, alpha: float, budget: int | None
) -> int:
    n_states = sampler.belief.pattern.n_states
    most = min(SELECTION_NUMBERS // sampler.rows.size, SELECTION_DRAWS)
    if begin is None:
        most = min(most, SELECTION_VALUES // (n_policies * n_states))
    # at least twenty draws below the quantile, but no more than the certificate itself may use
    fewest = max(FEWEST_SELECTION_DRAWS, min(math.ceil(20.0 / alpha), SELECTION_DRAWS))
    most = max(most, fewest)
    return most if budget is None else min(most, max(budget, FEWEST_SELECTION_DRAWS))


def _score(pilot: _Pilot, alpha: float, begin: FloatArray | None) -> float:
    """Estimated quantile at the start, or mean over states of the joint bound."""
    if begin is not None:
        return _quantile(np.sort(pilot.values[:, 0] - pilot.errors), alpha)
    centre, spread = _shape(pilot)
    low = _quantile(np.sort(_shortfall_in(centre, spread)(pilot.values, pilot.errors)), alpha)
    return float((centre + low * spread).mean())


def reliance_of(
    belief: Belief,
    rewards: FloatArray,
    weights: FloatArray,
    discount: float,
    horizon: int | None,
    start: ArrayLike | None,
) -> PriorReliance | None:
    """How far a policy rests on the prior, in the time that its value is for."""
    policy: PolicyArray = weights.argmax(axis=-1) if is_deterministic(weights) else weights
    if horizon is not None:
        return reliance_over(belief, policy, discount, start)
    if discount == 1.0:
        return reliance_until_end(belief, rewards, policy, start)
    return reliance(belief, policy, discount, start)


def _nested(
    belief: Belief,
    rewards: RewardsOrDoubt,
    discount: float,
    confidence: float,
    over: dict[str, Any],
) -> Certificate | None:
    known = mean_rewards(belief, rewards)
    try:
        return certificate_of(belief, known, discount, confidence, coverage_samples=0, **over)
    except ConvergenceError:
        logger.info("Proposition 1's bound left out: its plan did not converge")
        return None
