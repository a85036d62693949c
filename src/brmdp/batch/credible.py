"""Sets that hold the true rows with a stated posterior probability, and plans against the worst.

A row is drawn from the posterior M times, and its ball around the mean is as large as the distance
of rank M + 1 − l, where l is that of :func:`brmdp.decisions.order_statistic`: unless the simulation
was unlucky (with probability β, shared among the balls), the ball then has at least the posterior
probability asked for. If all balls hold the truth, the worst case over them bounds every policy.

*Local* sets give every pair a ball of its own with probability 1 − α/(SA), by a union bound, as
Petrik and Russel (2019) build Bayesian credible regions. A *global* set is one radius for all rows,
such that all rows of a joint draw lie within it with probability 1 − α; it needs no union bound,
but well-known rows get the radius of the least known one.

*Weighted* balls (Behzadian, Russel, Petrik and Ho 2021) are narrow where the value depends most on
the row: for targets w with middle m = (min w + max w)/2, the weight of an entry is |w_j − m|,
scaled to mean square one. The targets are those of the plan with unweighted balls. Any weights that
are fixed before the draws are valid.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from brmdp._validation import FloatArray, Seed, as_level, as_positive_int, rng_for
from brmdp.batch.plan import POSTERIOR, BatchPlan
from brmdp.batch.problem import Batch, Clock
from brmdp.batch.quantiles import BELIEF_IS_RIGHT
from brmdp.beliefs.checked import draws_of, mean_of, require_posterior
from brmdp.decisions.certificate import draws_needed, order_statistic
from brmdp.decisions.draws import independent_draws
from brmdp.errors import InvalidInputError
from brmdp.risk.worst_case import WorstCase

__all__ = ["credible_sets"]

FAILURE = 1e-6
"""Probability that chance in the simulation makes a set too small."""

SPARE = 2.5
"""Draws, as a multiple of those that any bound needs."""

FEWEST = 2_000
AT_ONCE = 4_000_000
"""Drawn numbers that are kept at a time."""

MOST = 2_000_000_000

FLATTEST = 1e-3
"""Smallest weight before scaling, relative to the largest."""


def credible_sets(
    batch: Batch,
    confidence: float = 0.9,
    *,
    scope: Literal["local", "global"] = "local",
    weighted: bool = False,
    draws: int | None = None,
    failure: float = FAILURE,
    rng: Seed = None,
) -> BatchPlan:
    """Robust plan and bound over Bayesian credible regions (BCR) in (weighted) L1 distance.

    Parameters
    ----------
    batch : Batch
    confidence : float in (0, 1)
        1 − α: posterior probability with which the set holds the true kernel.
    scope : {"local", "global"}
        A ball for each pair, or one radius for all.
    weighted : bool
        Shape the balls by the values of the plan without weights.
    draws : int, optional
        Number of draws M of each row (or of the kernel); by default two and a half times what any
        bound needs, at least 2,000.
    failure : float in (0, 1)
        β: probability that chance in the simulation makes some ball too small.
    rng : numpy.random.Generator or seed, optional
        Random stream of the draws.

    Returns
    -------
    BatchPlan

    Examples
    --------
    >>> import brmdp
    >>> from brmdp import batch
    >>> belief = brmdp.DirichletBelief([[[90, 10], [10, 90]], [[90, 10], [10, 90]]])
    >>> problem = batch.Batch(belief, [[0.0] * 2, [1.0] * 2], 0.5, start=0)
    >>> found = batch.credible_sets(problem, rng=0)
    >>> found.policy, round(found.bound, 2)
    (array([1, 1]), 0.82)
    """
    clock = Clock(batch)
    alpha = 1.0 - as_level(confidence, "confidence")
    beta = as_level(failure, "failure")
    if scope not in ("local", "global"):
        raise InvalidInputError(f"scope must be 'local' or 'global'; got {scope!r}")
    if not isinstance(weighted, bool):
        raise InvalidInputError(f"weighted must be True or False; got {weighted!r}")
    require_posterior(batch.belief)
    if math.isfinite(independent_draws(batch.belief)):
        raise InvalidInputError(
            "belief must offer fresh draws for credible sets; those of a "
            f"{type(batch.belief).__name__} repeat stored draws of its hyperparameters"
        )
    events = batch.pattern.pairs.size if scope == "local" else 1
    level, chance = alpha / events, beta / events
    needed = draws_needed(level, chance)
    n = max(FEWEST, math.ceil(SPARE * needed)) if draws is None else as_positive_int(draws, "draws")
    if n < needed:
        raise InvalidInputError(
            f"draws must be at least {needed:,} for sets of this confidence; got {n:,}"
        )
    if n * batch.pattern.n_transitions > MOST:
        raise InvalidInputError(
            f"draws × possible transitions must be at most {MOST:,}; got {n:,} draws of "
            f"{batch.pattern.n_transitions:,}. Lower the confidence, or raise failure"
        )
    rank = n - order_statistic(n, level, chance)
    stream = rng_for("credible sets", rng)
    weights = np.ones(batch.pattern.n_transitions)
    measure = WorstCase(_radii(batch, weights, rank, n, scope, stream), weights=weights)
    solution = batch.solve(measure)
    if weighted:
        weights = value_weights(batch, batch.targets(solution.values))
        measure = WorstCase(_radii(batch, weights, rank, n, scope, stream), weights=weights)
        solution = batch.solve(measure)
    bounds = solution.values - solution.error_bound - solution.policy_gap
    return clock.plan(
        f"{'weighted ' * weighted}credible sets, {scope}",
        solution.policy,
        POSTERIOR,
        f"{BELIEF_IS_RIGHT} Chance in the simulation breaks it with probability at most "
        f"{beta:.2g}.",
        confidence=1.0 - alpha,
        bound=batch.bound_at_start(bounds),
        bounds=bounds,
    )


def value_weights(batch: Batch, targets: FloatArray) -> FloatArray:
    """Weights |w − middle| of every row, with mean square one; 1 where all targets are equal."""
    pattern = batch.pattern
    begins, widths = pattern.indptr[pattern.pairs], pattern.row_widths
    least, most = np.minimum.reduceat(targets, begins), np.maximum.reduceat(targets, begins)
    half = np.repeat((most - least) / 2.0, widths)
    away = np.abs(targets - np.repeat((least + most) / 2.0, widths))
    away = np.where(half > 0.0, np.maximum(away, FLATTEST * half), 1.0)
    size = np.sqrt(np.add.reduceat(away**2, begins) / widths)
    weights: FloatArray = away / np.repeat(size, widths)
    return weights


def _radii(
    batch: Batch,
    weights: FloatArray,
    rank: int,
    draws: int,
    scope: str,
    rng: np.random.Generator,
) -> FloatArray:
    """(S, A) radii: the distances of this rank (from zero) among all draws."""
    pattern, centre = batch.pattern, mean_of(batch.belief)
    found = np.zeros(pattern.n_pairs)
    if scope == "global":
        farthest = np.empty(draws)
        block = max(1, AT_ONCE // pattern.n_transitions)
        begins = pattern.indptr[pattern.pairs]
        for first in range(0, draws, block):
            size = min(block, draws - first)
            away = weights * np.abs(draws_of(batch.belief, size, rng) - centre)
            farthest[first : first + size] = np.add.reduceat(away, begins, axis=1).max(axis=1)
        found[:] = np.partition(farthest, rank)[rank]
    else:
        for pair in pattern.pairs:
            own = slice(pattern.indptr[pair], pattern.indptr[pair + 1])
            if own.stop - own.start == 1:
                continue  # the only successor is certain
            drawn = draws_of(batch.belief, draws, rng, np.array([pair]))
            away = np.abs(drawn - centre[own]) @ weights[own]
            found[pair] = np.partition(away, rank)[rank]
    return found.reshape(pattern.n_states, pattern.n_actions)
