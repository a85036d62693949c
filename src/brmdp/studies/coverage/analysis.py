"""From the replications of ``coverage`` to numbers and judged claims.

Conservatism is how far a bound lies below the posterior α-quantile of the same policy's value, in
per cent of that quantile, averaged over states. The quantile is the largest number that bounds the
value at a single state with posterior probability 1 − α.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from brmdp._validation import FloatArray
from brmdp.planning.guarantees import clopper_pearson
from brmdp.report.claims import ABOVE_ZERO, BELOW_ZERO, JudgedClaim, JudgedComparison, Region
from brmdp.report.curves import common_runs
from brmdp.report.estimates import SHARE, Estimate, estimate, proportion
from brmdp.report.findings import Findings
from brmdp.report.summary import heading
from brmdp.report.tables import Table
from brmdp.runs import Experiment, Replications
from brmdp.runs.program import parameters_of
from brmdp.studies.coverage.experiment import CoverageColumns

__all__ = ["AXES", "BOUNDS", "Coverage", "along", "analyse", "below_quantile"]

Coverage: TypeAlias = Replications[CoverageColumns]

AXES: dict[str, str] = {
    "discount": "discount γ",
    "n_states": "states S",
    "n_actions": "actions A",
    "observations_per_pair": "observations of each pair",
    "confidence": "confidence 1 − α",
}
"""The parameters that are varied, and what figures call them."""

BOUNDS: dict[str, str] = {
    "certified": "ᾱ (Proposition 1)",
    "union_of_states": "α/S",
    "union_of_pairs": "α/(SA)",
}
"""The columns that hold a bound, and the level at which each bound was planned."""

ERROR = 0.025
"""Largest probability that a two-sided 95 % interval misses its number on a given side."""


def along(records: Mapping[str, Coverage], axis: str) -> list[Coverage]:
    """The first case and those that differ from it only in ``axis``, sorted by its value."""
    base = next(iter(records.values()))
    shared = {key: value for key, value in base.case.parameters.items() if key != axis}
    chosen = [
        found
        for found in records.values()
        if {key: value for key, value in found.case.parameters.items() if key != axis} == shared
    ]
    return sorted(chosen, key=lambda found: float(found.case.parameters[axis]))


def below_quantile(found: Coverage, bound: str) -> FloatArray:
    """By how many per cent a bound lies below the posterior α-quantile value, in every world."""
    quantile = found.pooled.quantile
    below: FloatArray = 100.0 * (quantile - getattr(found.pooled, bound)) / quantile
    return below


def analyse(experiment: Experiment, records: Mapping[str, Coverage]) -> Findings:
    """Coverage, conservatism and the verdicts on Proposition 1."""
    return Findings(summary(experiment, records), table(records), claims(experiment.name, records))


def summary(experiment: Experiment, records: Mapping[str, Coverage]) -> dict[str, Any]:
    """The content of ``summary.json``."""
    return {
        **heading(experiment, records),
        "cases": {name: _summary(found) for name, found in records.items()},
    }


def _summary(found: Coverage) -> dict[str, Any]:
    coverage = found.pooled.coverage
    return {
        **{key: found.case.parameters[key] for key in AXES},
        "worlds": int(coverage.size),
        "coverage": estimate(coverage, bounds=SHARE).as_json(),
        "least_coverage": float(coverage.min()),
        "held_in_truth": proportion(found.columns.held_in_truth).as_json(),
        "percent_below_quantile": {
            bound: estimate(below_quantile(found, bound)).as_json() for bound in BOUNDS
        },
        "value": {
            name: estimate(getattr(found.pooled, name)).as_json()
            for name in (*BOUNDS, "quantile", "true_value")
        },
        "seconds_per_run": estimate(found.seconds).as_json()["mean"],
    }


def table(records: Mapping[str, Coverage]) -> Table:
    """Coverage and conservatism of every case."""
    header = (
        "case",
        "1 − α",
        "coverage",
        "lowest",
        "true kernel",
        *(f"% below, {name}" for name in BOUNDS.values()),
    )

    def row(name: str, found: Coverage) -> tuple[str, ...]:
        coverage = found.pooled.coverage
        return (
            name,
            f"{found.case.parameters['confidence']:g}",
            f"{coverage.mean():.4f}",
            f"{coverage.min():.3f}",
            f"{found.pooled.held_in_truth.mean():.3f}",
            *(f"{below_quantile(found, bound).mean():.2f}" for bound in BOUNDS),
        )

    return Table(header, tuple(row(name, found) for name, found in records.items()))


def claims(name: str, records: Mapping[str, Coverage]) -> tuple[JudgedClaim, ...]:
    """Judge Proposition 1 and its consequence; measure conservatism."""
    return (
        JudgedClaim(
            "coverage/joint",
            "With posterior probability at least 1 − α, the nested value at level ᾱ = 1 − (1 − "
            "α)^{1/S} is below the policy's value at all states (Proposition 1).",
            "Share of posterior draws in which all bounds hold, averaged over random worlds and "
            "beliefs.",
            tuple(
                JudgedComparison.of(
                    name,
                    f"{case}: coverage",
                    estimate(found.pooled.coverage, bounds=SHARE),
                    _confident(found),
                )
                for case, found in records.items()
            ),
        ),
        JudgedClaim(
            "coverage/every-posterior",
            "This holds for every belief (Proposition 1).",
            "Share of beliefs whose coverage has a 95 % interval wholly below 1 − α; chance alone "
            "yields at most 0.025.",
            (
                _pooled_share(
                    name,
                    "beliefs with too little coverage",
                    [_too_little(r) for r in records.values()],
                ),
            ),
        ),
        JudgedClaim(
            "coverage/quantile-value",
            "The posterior α-quantile value is at least the nested value at level ᾱ, at every "
            "state (Proposition 1).",
            "Share of worlds in which the bound of some state exceeds the whole 95 % interval of "
            "the sampled quantile.",
            (
                _pooled_share(
                    name,
                    "worlds with a bound above the quantile",
                    [found.pooled.states_above_quantile > 0 for found in records.values()],
                ),
            ),
        ),
        JudgedClaim(
            "coverage/truth",
            "The same holds for the true kernel, which is a posterior draw if it was drawn from "
            "the prior.",
            "Share of worlds in which all bounds hold for the true kernel.",
            tuple(
                JudgedComparison.of(
                    name,
                    f"{case}: bounds hold",
                    proportion(found.columns.held_in_truth),
                    _confident(found),
                )
                for case, found in records.items()
            ),
        ),
        *_trends(name, records),
        _union_levels(name, records),
    )


def _confident(found: Coverage) -> Region:
    return Region(low=float(found.case.parameters["confidence"]))


def _too_little(found: Coverage) -> FloatArray:
    """Whether a belief's coverage is below 1 − α by more than sampling explains, as 0 or 1.

    NaN where the coverage is not known.
    """
    samples = parameters_of(found.case)["samples"]
    held = np.rint(found.pooled.coverage * samples)
    most = {
        count: clopper_pearson(int(count), samples)[1]
        for count in np.unique(held)
        if not np.isnan(count)
    }
    wanted = found.case.parameters["confidence"]
    return np.array([float(most[count] < wanted) if count in most else np.nan for count in held])


def _pooled_share(experiment: str, quantity: str, happened: list[Any]) -> JudgedComparison:
    return JudgedComparison.of(
        experiment, quantity, proportion(np.concatenate(happened)), Region(high=ERROR)
    )


def _trends(experiment: str, records: Mapping[str, Coverage]) -> list[JudgedClaim]:
    """How conservatism changes from the lowest to the highest value of each parameter."""
    expected = {
        "discount": ("grows with the discount γ", ABOVE_ZERO),
        "n_states": ("grows with the number of states S", ABOVE_ZERO),
        "observations_per_pair": ("shrinks with the number of observations", BELOW_ZERO),
    }
    claims = []
    for axis, (trend, region) in expected.items():
        found = along(records, axis)
        if len(found) < 2:
            continue
        first, last = found[0], found[-1]
        claims.append(
            JudgedClaim(
                f"coverage/{axis.replace('_', '-')}",
                f"Not in the paper: conservatism {trend}.",
                "Per cent by which the bound lies below the posterior α-quantile value: its change "
                "from the smallest to the largest value tried.",
                (
                    JudgedComparison.of(
                        experiment,
                        f"{last.case.name} − {first.case.name}",
                        _difference(last, first),
                        region,
                    ),
                ),
            )
        )
    return claims


def _difference(first: Coverage, second: Coverage) -> Estimate:
    """Difference in conservatism, run by run."""
    mine, theirs = common_runs(first.run, second.run)
    by_run = [
        below_quantile(found, "certified").reshape(found.run.size, -1).mean(axis=1)
        for found in (first, second)
    ]
    return estimate(by_run[0][mine] - by_run[1][theirs])


def _union_levels(experiment: str, records: Mapping[str, Coverage]) -> JudgedClaim:
    base = next(iter(records.values()))
    cases = {
        found.case.name: found
        for found in (base, along(records, "n_states")[-1], along(records, "n_actions")[-1])
    }
    return JudgedClaim(
        "coverage/union-levels",
        "Not in the paper: how much the union levels α/S and α/(SA) lose compared with ᾱ.",
        "How much lower their bounds are, in per cent of the posterior α-quantile value.",
        tuple(
            JudgedComparison.of(
                experiment,
                f"{name}: {BOUNDS[bound]}",
                estimate(below_quantile(found, bound) - below_quantile(found, "certified")),
            )
            for name, found in cases.items()
            for bound in ("union_of_states", "union_of_pairs")
        ),
    )
