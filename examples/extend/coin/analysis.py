"""Turns records into numbers, a table and a judged claim."""

from __future__ import annotations

from brmdp.report import (
    Findings,
    JudgedClaim,
    JudgedComparison,
    Region,
    Table,
    estimate,
    heading,
    proportion,
)


def analyse(experiment, records) -> Findings:
    """Coverage and width of the intervals."""
    return Findings(summary(experiment, records), table(records), claims(experiment, records))


def summary(experiment, records):
    """The content of summary.json."""
    cases = {
        name: {
            "coverage": proportion(found.pooled.covered).as_json(),
            "width": estimate(found.columns.width.mean(axis=1)).as_json(),
        }
        for name, found in records.items()
    }
    return {**heading(experiment, records), "cases": cases}


def table(records) -> Table:
    """One row per case."""
    rows = [
        (name, str(proportion(found.pooled.covered)), f"{found.pooled.width.mean():.3f}")
        for name, found in records.items()
    ]
    return Table(("case", "coverage", "mean width"), tuple(rows))


def claims(experiment, records) -> tuple[JudgedClaim, ...]:
    """Bayesian intervals have the stated coverage, on average over the prior."""
    comparisons = tuple(
        JudgedComparison.of(
            experiment.name,
            f"{name}: coverage",
            proportion(found.pooled.covered),
            Region.around(0.9, 0.05),
        )
        for name, found in records.items()
    )
    return (
        JudgedClaim(
            "coin/coverage",
            "A 90 % interval covers 90 % of the biases drawn from the prior.",
            "Share of coins whose interval covers their bias, within 0.05 of 0.9.",
            comparisons,
        ),
    )
