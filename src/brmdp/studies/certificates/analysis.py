"""From the certificates of ``certificates`` to numbers and judged claims.

*Given away* is how far a bound lies below the posterior α-quantile of the same policy's value at
the start, in per cent of that quantile. No bound for one start can do better at that confidence; a
bound for all states promises more, and must give away more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from brmdp._validation import BoolArray, FloatArray
from brmdp.report.claims import ABOVE_ZERO, JudgedClaim, JudgedComparison, Region
from brmdp.report.estimates import Estimate, estimate, proportion, share_of_trials
from brmdp.report.findings import Findings
from brmdp.report.summary import heading
from brmdp.report.tables import Table
from brmdp.runs import Experiment, Replications
from brmdp.studies.certificates.experiment import CONFIDENCE, METHODS, CertificateColumns

__all__ = ["Certificates", "analyse", "column_of", "coverage", "given_away"]

Certificates: TypeAlias = Replications[CertificateColumns]

SAMPLED = ("one start", "all states")

SHARP = 1.0
"""What a sharp certificate may give away, in per cent."""

DRAWN = "random"
"""Worlds that are drawn from the prior, as the promise of a certificate assumes."""


def column_of(found: Certificates, name: str, method: str) -> Any:
    """A column of one kind of certificate, one entry per log."""
    return getattr(found.pooled, name)[found.pooled.method == method]


def given_away(found: Certificates, method: str) -> FloatArray:
    """By how many per cent each bound lies below the policy's posterior quantile."""
    quantile = column_of(found, "quantile", method)
    lost: FloatArray = 100.0 * (quantile - column_of(found, "bound", method)) / np.abs(quantile)
    return lost


def coverage(found: Certificates, method: str) -> Estimate:
    """Share of all judging draws in which the bounds of these logs hold.

    The interval tells of the draws, given the logs. The draws of different logs need not have the
    same chance: by Hoeffding (1956), the Clopper-Pearson interval for their mean is then too wide
    rather than too narrow.
    """
    draws = column_of(found, "judging_draws", method)
    held = np.rint(column_of(found, "coverage", method) * draws)
    return share_of_trials(int(held.sum()), int(draws.sum()))


def analyse(experiment: Experiment, records: Mapping[str, Certificates]) -> Findings:
    """Bounds, coverage, true values and times of all certificates, and the verdicts."""
    return Findings(summary(experiment, records), table(records), claims(experiment.name, records))


def summary(experiment: Experiment, records: Mapping[str, Certificates]) -> dict[str, Any]:
    """The content of ``summary.json``."""
    return {
        **heading(experiment, records),
        "cases": {
            name: {method: _summary(found, method) for method in METHODS}
            for name, found in records.items()
        },
    }


def _summary(found: Certificates, method: str) -> dict[str, Any]:
    def mean(name: str) -> Any:
        return estimate(column_of(found, name, method)).as_json()

    held: BoolArray = column_of(found, "held_in_truth", method)
    return {
        "logs": int(held.size),
        "bound": mean("bound"),
        "quantile": mean("quantile"),
        "percent_given_away": estimate(given_away(found, method)).as_json(),
        "coverage": coverage(found, method).as_json(),
        "true_value": mean("true_value"),
        "optimum": mean("optimum"),
        "held_in_truth": proportion(held).as_json(),
        "draws": mean("draws"),
        "seconds": mean("seconds"),
    }


def table(records: Mapping[str, Certificates]) -> Table:
    """One row per case and certificate."""
    header = (
        "case, certificate",
        "bound",
        "% given away",
        "coverage",
        "in truth",
        "true value",
        "optimum",
        "draws",
        "seconds",
    )

    def row(name: str, found: Certificates, method: str) -> tuple[str, ...]:
        def mean(column: str) -> float:
            return float(column_of(found, column, method).mean())

        draws = column_of(found, "draws", method)
        return (
            f"{name}, {method}",
            f"{mean('bound'):.4g}",
            f"{given_away(found, method).mean():.2f}",
            f"{mean('coverage'):.4f}",
            f"{mean('held_in_truth'):.3f}",
            f"{mean('true_value'):.4g}",
            f"{mean('optimum'):.4g}",
            f"{draws.mean():,.0f}" if draws.any() else "",
            f"{mean('seconds'):.2g}",
        )

    return Table(
        header,
        tuple(row(name, found, method) for name, found in records.items() for method in METHODS),
    )


def claims(name: str, records: Mapping[str, Certificates]) -> tuple[JudgedClaim, ...]:
    """What every certificate promises, and how sharp the sampled ones are."""
    drawn = {case: one for case, one in records.items() if case.startswith(DRAWN)}
    judged = [
        JudgedClaim(
            f"{name}/coverage",
            "Every certificate holds with posterior probability at least 0.9.",
            "Share of the posterior draws of all logs in which the bound holds.",
            tuple(
                JudgedComparison.of(
                    name,
                    f"{case}, {method}",
                    coverage(found, method),
                    Region(low=CONFIDENCE),
                )
                for case, found in records.items()
                for method in METHODS
            ),
        ),
        JudgedClaim(
            f"{name}/sharp",
            "The sampled certificate for one start is within 1 % of the policy's posterior "
            "quantile.",
            "Per cent given away, averaged over logs.",
            tuple(
                JudgedComparison.of(
                    name, case, estimate(given_away(found, "one start")), Region(high=SHARP)
                )
                for case, found in records.items()
            ),
        ),
        JudgedClaim(
            f"{name}/gain",
            "Its bound is above the nested one.",
            "Difference of the bounds, log by log.",
            tuple(
                JudgedComparison.of(name, case, _gain(found), ABOVE_ZERO)
                for case, found in records.items()
            ),
        ),
    ]
    if drawn:
        judged.insert(
            1,
            JudgedClaim(
                f"{name}/truth",
                "In worlds drawn from the prior, every certificate holds for the true kernel with "
                "probability at least 0.9.",
                "Share of logs after which the bound holds in the true world.",
                tuple(
                    JudgedComparison.of(
                        name,
                        f"{case}, {method}",
                        proportion(column_of(found, "held_in_truth", method)),
                        Region(low=CONFIDENCE),
                    )
                    for case, found in drawn.items()
                    for method in METHODS
                ),
            ),
        )
    others = {case: one for case, one in records.items() if case not in drawn}
    if others:
        judged.append(
            JudgedClaim(
                f"{name}/fixed-worlds",
                "In a world that was not drawn from the prior, nothing is promised: how often the "
                "bounds held there.",
                "Share of logs after which the bound holds in the true world.",
                tuple(
                    JudgedComparison.of(
                        name,
                        f"{case}, {method}",
                        proportion(column_of(found, "held_in_truth", method)),
                    )
                    for case, found in others.items()
                    for method in SAMPLED
                ),
            )
        )
    return tuple(judged)


def _gain(found: Certificates) -> Estimate:
    return estimate(column_of(found, "bound", "one start") - column_of(found, "bound", "nested"))
