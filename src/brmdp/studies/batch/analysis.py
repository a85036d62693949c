"""From the plans of ``batch`` to numbers and judged claims.

*Gain* is how much of the way from today's practice to the optimum a policy goes, per log. A
quantile over logs is the value of rank ⌈nq⌉; its 95 % interval lies between two order statistics,
and an end that no number of logs at hand can bound is left open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import binom

from brmdp._validation import BoolArray, FloatArray
from brmdp.batch import FREQUENTIST, POSTERIOR
from brmdp.report.claims import ABOVE_ZERO, NO_EXCEPTION, JudgedClaim, JudgedComparison, Region
from brmdp.report.estimates import (
    CONFIDENCE as INTERVAL,
)
from brmdp.report.estimates import (
    Estimate,
    estimate,
    exact_number,
    proportion,
    share_of_trials,
)
from brmdp.report.findings import Findings
from brmdp.report.summary import heading
from brmdp.report.tables import Table
from brmdp.runs import Experiment, Replications
from brmdp.studies.batch.experiment import CONFIDENCE, METHODS, BatchColumns

__all__ = ["Batches", "analyse", "column_of", "gain", "quantile_over_logs", "with_promise"]

Batches: TypeAlias = Replications[BatchColumns]

OURS = "sampled"
"""The method whose policies and bounds are compared with all others."""

LOOSE = 1e-6
"""Rounding that the comparison of bounds allows, relative to their size."""

WORSE = 1e-9
"""A policy is worse than practice if it loses more than this share of the optimum."""

DRAWN = "garnet"
"""Worlds that are drawn from the prior, as a posterior promise assumes."""

TAIL, FAR_TAIL = 0.1, 0.01
"""Levels of the quantiles over logs."""


def column_of(found: Batches, name: str, method: str) -> Any:
    """A column of one method, one entry per log."""
    return getattr(found.pooled, name)[found.pooled.method == method]


def with_promise(found: Batches, promise: str) -> list[str]:
    """The methods whose bounds promise this, in order."""
    return [m for m in METHODS if promise in column_of(found, "promise", m)]


def gain(found: Batches, method: str) -> FloatArray:
    """How much of the way from practice to the optimum each policy goes."""
    practice, optimum = (column_of(found, name, method) for name in ("practice", "optimum"))
    gained: FloatArray = (column_of(found, "true_value", method) - practice) / (optimum - practice)
    return gained


def worse(found: Batches, method: str) -> BoolArray:
    """After which logs the policy is worse than practice."""
    practice, optimum = (column_of(found, name, method) for name in ("practice", "optimum"))
    below: BoolArray = column_of(found, "true_value", method) < practice - WORSE * np.abs(optimum)
    return below


def coverage(found: Batches, method: str) -> Estimate:
    """Share of all judging draws in which the bounds of these logs hold; see ``certificates``."""
    draws = column_of(found, "judging_draws", method)
    held = np.rint(column_of(found, "coverage", method) * draws)
    return share_of_trials(int(held.sum()), int(draws.sum()))


def quantile_over_logs(values: FloatArray, level: float) -> tuple[float, float, float]:
    """The quantile over logs and its 95 % interval; ends that the logs cannot bound are infinite.

    Examples
    --------
    >>> import numpy as np
    >>> quantile_over_logs(np.arange(1.0, 101.0), 0.1)
    (10.0, 5.0, 17.0)
    >>> quantile_over_logs(np.arange(1.0, 101.0), 0.01)
    (1.0, -inf, 4.0)
    """
    ordered, n = np.sort(values), values.size
    middle = ordered[max(int(np.ceil(n * level - 1e-9)), 1) - 1]
    tail = 0.5 * (1.0 - INTERVAL)
    # at most this many logs lie below the quantile, except with the probability of the tail
    low = int(binom.ppf(tail, n, level))
    low = low if binom.cdf(low, n, level) <= tail else low - 1
    high = int(binom.ppf(1.0 - tail, n, level))
    return (
        float(middle),
        float(ordered[low]) if low >= 0 else -np.inf,
        float(ordered[high]) if high < n else np.inf,
    )


def analyse(experiment: Experiment, records: Mapping[str, Batches]) -> Findings:
    """Bounds, coverage, true values and times of all methods, and the verdicts."""
    return Findings(summary(experiment, records), table(records), claims(experiment.name, records))


def summary(experiment: Experiment, records: Mapping[str, Batches]) -> dict[str, Any]:
    """The content of ``summary.json``."""
    return {
        **heading(experiment, records),
        "cases": {
            name: {method: _summary(found, method) for method in METHODS}
            for name, found in records.items()
        },
    }


def _summary(found: Batches, method: str) -> dict[str, Any]:
    true = column_of(found, "true_value", method)
    numbers = {
        "logs": int(true.size),
        "true_value": estimate(true).as_json(),
        "gain": estimate(gain(found, method)).as_json(),
        "worse_than_practice": proportion(worse(found, method)).as_json(),
        "seconds": estimate(column_of(found, "seconds", method)).as_json(),
    }
    for name, level in (("quantile_10", TAIL), ("quantile_1", FAR_TAIL)):
        middle, *ends = quantile_over_logs(true, level)
        low, high = (end if np.isfinite(end) else None for end in ends)
        numbers[name] = {"value": middle, "low": low, "high": high}
    if np.isfinite(column_of(found, "bound", method)).all():
        numbers["bound"] = estimate(column_of(found, "bound", method)).as_json()
        numbers["coverage"] = coverage(found, method).as_json()
        numbers["held_in_truth"] = proportion(column_of(found, "held", method)).as_json()
    return numbers


def table(records: Mapping[str, Batches]) -> Table:
    """One row per case and method, after one for practice and the optimum."""
    header = (
        "case, method",
        "true value",
        "10 % of logs",
        "1 %",
        "worse",
        "bound",
        "coverage",
        "in truth",
        "seconds",
    )
    rows = []
    for name, found in records.items():
        for label, column in (("practice", "practice"), ("optimum", "optimum")):
            values = column_of(found, column, OURS)
            rows.append((f"{name}, {label}", f"{values.mean():.4g}", *[""] * 7))
        rows += [_row(name, found, method) for method in METHODS]
    return Table(header, tuple(rows))


def _row(name: str, found: Batches, method: str) -> tuple[str, ...]:
    true = column_of(found, "true_value", method)
    bound = column_of(found, "bound", method)
    tail, low, high = quantile_over_logs(true, TAIL)
    promised = (
        (
            f"{bound.mean():.4g}",
            f"{column_of(found, 'coverage', method).mean():.3f}",
            f"{column_of(found, 'held', method).mean():.2f}",
        )
        if np.isfinite(bound).all()
        else ("", "", "")
    )
    return (
        f"{name}, {method}",
        _with_interval(estimate(true)),
        f"{tail:.4g} [{_end(low)}, {_end(high)}]",
        f"{quantile_over_logs(true, FAR_TAIL)[0]:.4g}",
        f"{worse(found, method).mean():.2f}",
        *promised,
        f"{column_of(found, 'seconds', method).mean():.2g}",
    )


def _with_interval(found: Estimate) -> str:
    if not (np.isfinite(found.low) and np.isfinite(found.high)):
        return f"{float(found.mean):.4g}"
    return f"{float(found.mean):.4g} [{float(found.low):.4g}, {float(found.high):.4g}]"


def _end(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else ("−∞" if value < 0 else "∞")


def claims(name: str, records: Mapping[str, Batches]) -> tuple[JudgedClaim, ...]:
    """What bounds promise, how sharp ours are, and what policies are worth."""

    def judged(
        key: str, text: str, tested: str, comparisons: list[JudgedComparison]
    ) -> JudgedClaim:
        return JudgedClaim(f"{name}/{key}", text, tested, tuple(comparisons))

    def of(quantity: str, found: Estimate, region: Region | None = None) -> JudgedComparison:
        return JudgedComparison.of(name, quantity, found, region)

    first = next(iter(records.values()))
    believing, without_prior = (with_promise(first, one) for one in (POSTERIOR, FREQUENTIST))
    others = [method for method in believing if method != OURS]
    drawn = {case: one for case, one in records.items() if case.startswith(DRAWN)}
    fixed = {case: one for case, one in records.items() if case not in drawn}
    kept = Region(low=CONFIDENCE)
    made = [
        judged(
            "coverage",
            "Bounds with a posterior promise hold with posterior probability at least 0.9.",
            "Share of the posterior draws of all logs in which the bound holds.",
            [
                of(f"{case}, {method}", coverage(found, method), kept)
                for case, found in records.items()
                for method in believing
            ],
        )
    ]
    if drawn:
        made.append(
            judged(
                "truth",
                "In worlds drawn from the prior, they hold for the true kernel with probability at "
                "least 0.9.",
                "Share of logs after which the bound holds in the true world.",
                [
                    of(f"{case}, {method}", proportion(column_of(found, "held", method)), kept)
                    for case, found in drawn.items()
                    for method in believing
                ],
            )
        )
    made += [
        judged(
            "without-prior",
            "Bounds without a prior hold in at least 90 % of logs, in every world.",
            "Share of logs after which the bound holds in the true world.",
            [
                of(f"{case}, {method}", proportion(column_of(found, "held", method)), kept)
                for case, found in records.items()
                for method in without_prior
            ],
        ),
        judged(
            "quantiles-above-sets",
            "Exact row quantiles (VaR) bound no lower than sets of rows do: RSVF, and credible "
            "regions of single rows.",
            "Number of logs in which the bound of a set lies above that of VaR.",
            [
                of(
                    f"{method}, all cases",
                    exact_number(
                        sum(_above(found, method, "VaR") for found in records.values()),
                        sum(column_of(found, "bound", method).size for found in records.values()),
                    ),
                    NO_EXCEPTION,
                )
                for method in ("RSVF", "BCR", "BCR weighted")
            ],
        ),
        judged(
            "highest-bound",
            "The sampled certificate has the highest bound of all with a posterior promise.",
            "Its bound minus the highest other one, log by log.",
            [
                of(case, estimate(_lead(found, others)), ABOVE_ZERO)
                for case, found in records.items()
            ],
        ),
        judged(
            "better-than-practice",
            "Its policy is better than practice.",
            "Gain, averaged over logs.",
            [of(case, estimate(gain(found, OURS)), ABOVE_ZERO) for case, found in records.items()],
        ),
        judged(
            "rarely-worse",
            "It is worse than practice after less than 10 % of logs.",
            "Share of logs after which its true value is below that of practice.",
            [
                of(case, proportion(worse(found, OURS)), Region(high=TAIL))
                for case, found in records.items()
            ],
        ),
        judged(
            "against",
            "Nothing is claimed: gain of its policy minus that of the others, log by log.",
            "Difference of gains, averaged over logs.",
            [
                of(
                    f"{case}, {method}",
                    estimate(gain(found, OURS) - gain(found, method)),
                )
                for case, found in records.items()
                for method in METHODS
                if method != OURS
            ],
        ),
    ]
    if fixed:
        made.append(
            judged(
                "fixed-worlds",
                "In a world that was not drawn from the prior, a posterior bound promises nothing: "
                "how often those of the sampled certificate held there.",
                "Share of logs after which the bound holds in the true world.",
                [
                    of(case, proportion(column_of(found, "held", OURS)))
                    for case, found in fixed.items()
                ],
            )
        )
    return tuple(made)


def _above(found: Batches, method: str, other: str) -> int:
    """Number of logs in which one bound lies above another."""
    one, two = (column_of(found, "bound", name) for name in (method, other))
    return int((one > two + LOOSE * np.maximum(np.abs(one), np.abs(two))).sum())


def _lead(found: Batches, others: list[str]) -> FloatArray:
    """Bound of the sampled certificate minus the highest other one."""
    highest = np.max([column_of(found, "bound", method) for method in others], axis=0)
    lead: FloatArray = column_of(found, "bound", OURS) - highest
    return lead
