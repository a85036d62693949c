"""Sets without a prior: L1 balls by a concentration inequality."""

from __future__ import annotations

import math

import numpy as np

from brmdp._validation import as_level
from brmdp.batch.plan import FREQUENTIST, BatchPlan
from brmdp.batch.problem import Batch, Clock
from brmdp.risk.worst_case import WorstCase

__all__ = ["hoeffding_sets"]


def hoeffding_sets(batch: Batch, confidence: float = 0.9) -> BatchPlan:
    """Robust plan and bound over L1 balls around logged frequencies (Weissman and others 2003).

    After n independent observations of a row with k possible successors, its frequencies lie
    within ψ = √(2/n · ln((2^k − 2)·SA/α)) of the truth with probability 1 − α/(SA). Pairs that were
    never logged may do anything.

    Parameters
    ----------
    batch : Batch
        With counts.
    confidence : float in (0, 1)
        1 − α.

    Returns
    -------
    BatchPlan

    Examples
    --------
    >>> import brmdp
    >>> from brmdp import batch
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> counts = [[[90, 10]], [[20, 80]]]
    >>> found = batch.hoeffding_sets(
    ...     batch.Batch(belief, [[1.0], [0.0]], 0.5, start=0, counts=counts)
    ... )
    >>> found.promise, round(found.bound, 4)
    ('frequentist', 1.6372)
    """
    clock = Clock(batch, believes=False)
    alpha = 1.0 - as_level(confidence, "confidence")
    pattern, visits = batch.pattern, batch.visits
    radii = np.zeros(pattern.n_pairs)
    for pair, width in zip(pattern.pairs, pattern.row_widths, strict=True):
        if width > 1:
            # ln(2^k − 2), for any k
            patterns = width * math.log(2.0) + math.log1p(-(2.0 ** (1.0 - width)))
            chance = patterns + math.log(pattern.pairs.size / alpha)
            radii[pair] = min(2.0, math.sqrt(2.0 * chance / visits[pair])) if visits[pair] else 2.0
    measure = WorstCase(
        radii.reshape(pattern.n_states, pattern.n_actions), centre=batch.frequencies
    )
    solution = batch.solve(measure)
    bounds = solution.values - solution.error_bound - solution.policy_gap
    return clock.plan(
        "Hoeffding sets",
        solution.policy,
        FREQUENTIST,
        "It assumes that the next states of each pair are independent draws, whose number was not "
        "chosen by looking at them.",
        confidence=1.0 - alpha,
        bound=batch.bound_at_start(bounds),
        bounds=bounds,
    )
