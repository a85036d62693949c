"""Plans by the posterior mean, by quantiles of rows, and by values in posterior draws."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from brmdp._validation import Seed, as_level
from brmdp.batch.plan import NOTHING, POSTERIOR, BatchPlan
from brmdp.batch.problem import Batch, Clock
from brmdp.decisions.certificate import sampled_certificate_of
from brmdp.errors import InvalidInputError
from brmdp.planning.guarantees import certificate_of, require_exact_quantiles
from brmdp.risk.measures import Mean, Quantile

__all__ = ["BELIEF_IS_RIGHT", "mean", "nested_quantile", "sampled_certificate", "value_at_risk"]

BELIEF_IS_RIGHT = "It assumes that the belief is right."


def mean(batch: Batch) -> BatchPlan:
    """The plan that is best under the posterior mean kernel; nothing is promised.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp import batch
    >>> belief = brmdp.DirichletBelief([[[9, 1], [1, 9]], [[9, 1], [1, 9]]])
    >>> batch.mean(batch.Batch(belief, [[0.0, 0.0], [1.0, 1.0]], 0.5, start=0)).policy
    array([1, 1])
    """
    clock = Clock(batch)
    solution = batch.solve(Mean())
    return clock.plan("mean", solution.policy, NOTHING, "The mean kernel is taken for the truth.")


def nested_quantile(batch: Batch, confidence: float = 0.9) -> BatchPlan:
    """Plan and bound by exact posterior quantiles of single rows: Proposition 1 of the paper.

    With independent rows the level is ᾱ = 1 − (1 − α)^{1/S}, otherwise α/S. The same as
    ``brmdp.certify(…, method="nested")``.

    Parameters
    ----------
    batch : Batch
    confidence : float in (0, 1)
        1 − α.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp import batch
    >>> belief = brmdp.DirichletBelief([[[9, 1], [1, 9]], [[9, 1], [1, 9]]])
    >>> found = batch.nested_quantile(batch.Batch(belief, [[0.0] * 2, [1.0] * 2], 0.5, start=0))
    >>> round(found.bound, 4), found.policy
    (0.7189, array([1, 1]))
    """
    clock = Clock(batch)
    made = certificate_of(
        batch.belief, batch.rewards, batch.discount, confidence, coverage_samples=0
    )
    return clock.plan(
        "nested quantile",
        made.policy,
        POSTERIOR,
        BELIEF_IS_RIGHT,
        confidence=made.confidence,
        bound=batch.bound_at_start(made.values),
        bounds=made.values,
    )


def value_at_risk(
    batch: Batch, confidence: float = 0.9, *, union: Literal["states", "pairs"] = "states"
) -> BatchPlan:
    """Plan and bound by row quantiles at a union level: the VaR framework.

    Lobo, Cousins, Zick and Petrik (2023) apply the posterior quantile of each row at the level α/S.
    Their quantiles come from draws; here they are exact.

    Parameters
    ----------
    batch : Batch
    confidence : float in (0, 1)
        1 − α.
    union : {"states", "pairs"}
        Divide α by S, since a policy uses one row per state, or by the number of pairs.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp import batch
    >>> belief = brmdp.DirichletBelief([[[9, 1], [1, 9]], [[9, 1], [1, 9]]])
    >>> problem = batch.Batch(belief, [[0.0] * 2, [1.0] * 2], 0.5, start=0)
    >>> states = batch.value_at_risk(problem)
    >>> pairs = batch.value_at_risk(problem, union="pairs")
    >>> round(states.bound, 4), round(pairs.bound, 4)
    (0.7169, 0.6637)
    """
    clock = Clock(batch)
    require_exact_quantiles(batch.belief)
    alpha = 1.0 - as_level(confidence, "confidence")
    if union not in ("states", "pairs"):
        raise InvalidInputError(f"union must be 'states' or 'pairs'; got {union!r}")
    events = batch.pattern.n_states if union == "states" else batch.pattern.pairs.size
    solution = batch.solve(Quantile(alpha / events))
    bounds = solution.values - solution.error_bound - solution.policy_gap
    return clock.plan(
        f"value-at-risk, α/{'S' if union == 'states' else 'SA'}",
        solution.policy,
        POSTERIOR,
        BELIEF_IS_RIGHT,
        confidence=1.0 - alpha,
        bound=batch.bound_at_start(bounds),
        bounds=bounds,
    )


def sampled_certificate(
    batch: Batch, confidence: float = 0.9, *, rng: Seed = None, **settings: Any
) -> BatchPlan:
    """The best of many candidate policies, and a bound from values in fresh posterior draws.

    :func:`brmdp.certify` for the batch's start; see there.

    Parameters
    ----------
    batch : Batch
    confidence : float in (0, 1)
        1 − α.
    rng : numpy.random.Generator or seed, optional
        Random stream of the draws.
    **settings
        Those of ``brmdp.certify(…, method="sampled")``, such as ``draws``.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp import batch
    >>> belief = brmdp.DirichletBelief([[[9, 1], [1, 9]], [[9, 1], [1, 9]]])
    >>> problem = batch.Batch(belief, [[0.0] * 2, [1.0] * 2], 0.5, start=0)
    >>> found = batch.sampled_certificate(problem, rng=0)
    >>> found.policy, found.bound > batch.nested_quantile(problem).bound
    (array([1, 1]), True)
    """
    clock = Clock(batch)
    made = sampled_certificate_of(
        batch.belief,
        batch.rewards,
        batch.discount,
        confidence,
        start=batch.start,
        rng=rng,
        **{"nested": False, **settings},
    )
    return clock.plan(
        "sampled certificate",
        np.asarray(made.policy),
        POSTERIOR,
        f"{BELIEF_IS_RIGHT} Chance in the simulation breaks it with probability at most "
        f"{made.failure:.2g}.",
        confidence=made.confidence,
        bound=made.value,
    )
