"""Numbers from replications.

Pooled columns, proportions, exact numbers, and what every summary begins with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from brmdp._validation import FloatArray
from brmdp.errors import InvalidInputError
from brmdp.planning.guarantees import clopper_pearson
from brmdp.report.claims import Region
from brmdp.report.estimates import CONFIDENCE, Estimate, estimate
from brmdp.runs import Experiment, Replications

__all__ = ["NO_EXCEPTION", "certain", "heading", "pooled", "proportion"]

NO_EXCEPTION = Region(high=0.5)
"""Claimed of the number of exceptions to a statement that must always hold.

A single one contradicts it.
"""


def heading(experiment: Experiment, records: Mapping[str, Replications]) -> dict[str, Any]:
    """What ``summary.json`` begins with."""
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "runs": max((found.run.size for found in records.values()), default=0),
        "parameters": {
            "seed": experiment.seed,
            "cases": {case.name: case.describe() for case in experiment.cases},
        },
    }


def pooled(found: Replications, name: str) -> FloatArray:
    """A column of all runs behind one another, (R·n,)."""
    return np.asarray(found.columns[name], dtype=np.float64).reshape(-1)


def proportion(happened: Any) -> Estimate:
    """Share of independent trials in which something happened, with its Clopper-Pearson interval.

    ``happened`` holds truth values, or 0, 1 and NaN; where one is not known, or there is none,
    neither is the share.
    """
    trials = np.asarray(happened, dtype=np.float64).reshape(-1)
    if trials.size == 0 or not np.isfinite(trials).all():
        return estimate(trials)
    if not np.isin(trials, (0.0, 1.0)).all():
        raise InvalidInputError("happened must be truth values, 0 or 1; got other numbers")
    share = float(trials.mean())
    error = np.sqrt(share * (1.0 - share) / trials.size)

    def ends(confidence: float) -> tuple[FloatArray, FloatArray]:
        low, high = clopper_pearson(int(trials.sum()), trials.size, confidence)
        return np.asarray(low), np.asarray(high)

    return Estimate(np.asarray(share), np.asarray(error), *ends(CONFIDENCE), trials.size, ends=ends)


def certain(value: float, trials: int) -> Estimate:
    """A number that is no average.

    It was looked at in all trials, and nothing about it is left to chance.

    Where there was no trial, nothing is known.
    """
    if trials < 1:
        return estimate(np.empty(0))
    number = np.asarray(float(value))
    return Estimate(number, np.zeros_like(number), number, number, trials, exact=True)
