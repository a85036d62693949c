"""From the replications of ``lemmas`` to numbers and judged claims.

Bounds and identities are not statistical: they are checked in every row and world, and a single
exception contradicts them. Simulated sums are standardised: their difference from the exact value,
in standard errors. With thousands of pseudo-episodes each, these numbers are close to standard
normal; but sums that grow with the square of a geometric length are skewed, so claims about them
leave a margin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from brmdp._validation import BoolArray, FloatArray
from brmdp.report.claims import NO_EXCEPTION, JudgedClaim, JudgedComparison, Region
from brmdp.report.estimates import Estimate, estimate, exact_number, proportion
from brmdp.report.findings import Findings
from brmdp.report.summary import heading
from brmdp.report.tables import Table
from brmdp.runs import Columns, Experiment, Replications
from brmdp.studies.lemmas.experiment import DecompositionColumns, DeviationColumns, EpisodeColumns
from brmdp.theory import expected_episodes

__all__ = [
    "LEMMAS",
    "SIDES",
    "Decompositions",
    "Deviations",
    "EpisodeCounts",
    "analyse",
    "cases_of",
    "deviation_ratio",
    "exceptions",
    "standardised",
    "tail_ratio",
]

C = TypeVar("C", bound=Columns)

Deviations: TypeAlias = Replications[DeviationColumns]
Decompositions: TypeAlias = Replications[DecompositionColumns]
EpisodeCounts: TypeAlias = Replications[EpisodeColumns]

BANDS: dict[str, tuple[float, float]] = {
    "below 1": (0.0, 1.0),
    "1 to 10": (1.0, 10.0),
    "10 to 100": (10.0, 100.0),
    "100 to 1,000": (100.0, 1_000.0),
    "above 1,000": (1_000.0, np.inf),
}
"""Ranges of the total concentration φ₀."""

LEMMAS: dict[bool, str] = {False: "against the true value", True: "against the robust value"}
"""The two value decompositions, by whether they are about the robust benchmark."""

Side: TypeAlias = Literal["left", "right", "gap"]

SIDES: dict[Side, str] = {
    "left": "left side − its exact value",
    "right": "right side − its exact value",
    "gap": "left side − right side",
}
"""Averages over simulated pseudo-episodes, minus what they should be."""

HALF = 0.5
"""Largest share of its bound that a deviation can reach.

w·P is sub-Gaussian with variance proxy R²/(4(φ₀ + 1)).
"""

ROUNDING = 1e-9
"""Largest difference of two equal sides, relative to the largest they can be, (1 − γ)⁻².

Values are solved to 1e-10.
"""

REJECTED, BEYOND = 0.05, 1.959963984540054
"""Share of standard normal numbers whose absolute value exceeds the second number."""

CENTRED, SPREAD = 0.1, 0.02
"""Margins for the mean of standardised numbers and for their share beyond ±1.96."""

COUNTING = 0.02
"""Margin for the number of pseudo-episodes, relative to the expected number."""


# --- numbers --------------------------------------------------------------------------------------


def cases_of(
    records: Mapping[str, Replications[Any]], columns: type[C]
) -> dict[str, Replications[C]]:
    """The cases whose replications have these columns."""
    return {name: found for name, found in records.items() if isinstance(found.columns, columns)}


def deviation_ratio(found: Deviations) -> FloatArray:
    """Distance of each quantile from the mean, as a share of the bound on its side."""
    rows = found.pooled
    return np.maximum(rows.deviation / rows.bound_above, -rows.deviation / rows.bound_below)


def tail_ratio(found: Deviations) -> FloatArray:
    """The larger of both tail probabilities, as a share of the bound on them."""
    rows = found.pooled
    ratio: FloatArray = np.maximum(rows.tail_above, rows.tail_below) / rows.tail_bound
    return ratio


def exceptions(found: Deviations) -> dict[str, dict[str, int]]:
    """Number of exceptions to the bounds on deviations and to those on tails."""
    rows = found.pooled

    def beyond(value: FloatArray, bound: FloatArray) -> int:
        return int(np.count_nonzero(~(value <= bound)))

    return {
        "deviation": {
            "quantile − mean": beyond(rows.deviation, rows.bound_above),
            "mean − quantile": beyond(-rows.deviation, rows.bound_below),
        },
        "tail": {
            "upper tail": beyond(rows.tail_above, rows.tail_bound),
            "lower tail": beyond(rows.tail_below, rows.tail_bound),
        },
    }


def standardised(records: Mapping[str, Decompositions], side: Side, *, robust: bool) -> FloatArray:
    """Averages over pseudo-episodes minus what they should be, in standard errors, for all worlds.

    ``robust`` chooses the lemma.
    """
    return np.concatenate(
        [
            _differences(found.pooled, side)[found.pooled.robust == robust]
            for found in records.values()
        ]
    )


def _differences(worlds: DecompositionColumns, side: Side) -> FloatArray:
    if side == "left":
        return (worlds.left_sampled - worlds.left) / worlds.left_error
    if side == "right":
        return (worlds.right_sampled - worlds.right) / worlds.right_error
    return worlds.gap_sampled / worlds.gap_error


def _all_standardised(
    records: Mapping[str, Decompositions],
) -> Iterator[tuple[str, str, FloatArray]]:
    """Each side of each lemma: the lemma in words, the side in words, the numbers."""
    if records:
        for robust, lemma in LEMMAS.items():
            for side, words in SIDES.items():
                yield lemma, words, standardised(records, side, robust=robust)


def _beyond(z: FloatArray) -> Estimate:
    """Share of numbers beyond ±1.96; unknown if one of the numbers is."""
    return proportion(np.where(np.isnan(z), np.nan, np.abs(z) > BEYOND))


def _identity_error(found: Decompositions) -> float:
    return float(found.pooled.identity_error.max() * (1.0 - found.case.parameters["discount"]) ** 2)


def _within(found: Deviations, band: str) -> BoolArray:
    low, high = BANDS[band]
    total = found.pooled.total_concentration
    within: BoolArray = (low <= total) & (total < high)
    return within


def _tightness(found: Deviations, band: str) -> dict[str, Any]:
    """How close the rows of a band come to both kinds of bounds."""
    chosen = _within(found, band)
    levels = np.unique(found.pooled.level).size
    deviation, tail = deviation_ratio(found)[chosen], tail_ratio(found)[chosen]
    return {
        "rows": int(chosen.sum()) // levels,
        "deviation_median": float(np.median(deviation)),
        "deviation_largest": float(deviation.max()),
        "tail_largest": float(tail.max()),
    }


def _counted(found: EpisodeCounts) -> Estimate:
    return estimate(found.pooled.episodes)


def _expected(found: EpisodeCounts) -> float:
    return expected_episodes(found.case.parameters["steps"], found.case.parameters["discount"])


# --- findings -------------------------------------------------------------------------------------


def analyse(experiment: Experiment, records: Mapping[str, Replications[Any]]) -> Findings:
    """How tight the bounds are, whether the identities hold, and every lemma judged."""
    return Findings(summary(experiment, records), table(records), claims(experiment.name, records))


def summary(experiment: Experiment, records: Mapping[str, Replications[Any]]) -> dict[str, Any]:
    """The content of ``summary.json``."""
    worlds = cases_of(records, DecompositionColumns)
    return {
        **heading(experiment, records),
        "deviation": {
            name: {
                "exceptions": exceptions(found),
                "by_total_concentration": {
                    band: _tightness(found, band) for band in BANDS if _within(found, band).any()
                },
            }
            for name, found in cases_of(records, DeviationColumns).items()
        },
        "decomposition": {
            name: {
                "worlds": int(found.pooled.left.size // len(LEMMAS)),
                "identity_error": _identity_error(found),
            }
            for name, found in worlds.items()
        },
        "standardised": {
            f"{lemma}: {words}": {"mean": estimate(z).as_json(), "beyond": _beyond(z).as_json()}
            for lemma, words, z in _all_standardised(worlds)
        },
        "episodes": {
            name: {"expected": _expected(found), "counted": _counted(found).as_json()}
            for name, found in cases_of(records, EpisodeColumns).items()
        },
        "seconds_per_run": {
            name: estimate(found.seconds).as_json()["mean"] for name, found in records.items()
        },
    }


def table(records: Mapping[str, Replications[Any]]) -> Table:
    """How tight the bounds are, by total concentration."""
    header = ("values, φ₀", "rows", "deviation/bound: median", "largest", "tail/bound: largest")

    def row(found: Deviations, band: str) -> tuple[str, ...]:
        rows, *ratios = _tightness(found, band).values()
        return (
            f"{found.case.parameters['values']}, {band}",
            f"{rows}",
            *(f"{ratio:.3f}" for ratio in ratios),
        )

    return Table(
        header,
        tuple(
            row(found, band)
            for found in cases_of(records, DeviationColumns).values()
            for band in BANDS
            if _within(found, band).any()
        ),
    )


def claims(name: str, records: Mapping[str, Replications[Any]]) -> tuple[JudgedClaim, ...]:
    """Every lemma for which there are records, judged."""
    judged: list[JudgedClaim] = []
    if deviations := cases_of(records, DeviationColumns):
        judged += _about_deviations(name, deviations)
    if worlds := cases_of(records, DecompositionColumns):
        judged += _about_decompositions(name, worlds)
    if counts := cases_of(records, EpisodeColumns):
        judged.append(_about_episodes(name, counts))
    return tuple(judged)


def _about_deviations(experiment: str, records: Mapping[str, Deviations]) -> list[JudgedClaim]:
    rows = (
        "Exact quantiles and tails of random rows; values spread over [0, R], or placed at its "
        "ends."
    )

    def none(bound: str) -> tuple[JudgedComparison, ...]:
        return tuple(
            _over_all_rows(experiment, f"{case}: exceptions, {what}", found, count, NO_EXCEPTION)
            for case, found in records.items()
            for what, count in exceptions(found)[bound].items()
        )

    return [
        JudgedClaim(
            "lemmas/deviation",
            "For P ~ Dir(φ), ρ^α(V·P) − E[V·P] ≤ R√(2 ln(1/(1−α))/φ₀) and E[V·P] − ρ^α(V·P) ≤ R√(2 "
            "ln(1/α)/φ₀), R = 1/(1−γ).",
            rows,
            none("deviation"),
        ),
        JudgedClaim(
            "lemmas/tail",
            "Each tail of V·P beyond a distance ε from its mean has probability at most "
            "exp(−φ₀ε²/(2R²)).",
            rows,
            none("tail"),
        ),
        JudgedClaim(
            "lemmas/half",
            "Not in the paper: each deviation is less than half of its bound.",
            "Largest ratio of deviation to bound over all rows and levels.",
            tuple(
                _over_all_rows(
                    experiment,
                    f"{case}: largest ratio",
                    found,
                    float(deviation_ratio(found).max()),
                    Region(high=HALF),
                )
                for case, found in records.items()
            ),
        ),
    ]


def _over_all_rows(
    experiment: str, quantity: str, found: Deviations, value: float, claimed: Region
) -> JudgedComparison:
    """A number that is not an average but is taken over all rows and levels."""
    trials = found.pooled.level.size
    return JudgedComparison.of(
        experiment, quantity, exact_number(value, trials), claimed, note=f"in {trials:,} checks"
    )


def _about_decompositions(
    experiment: str, records: Mapping[str, Decompositions]
) -> list[JudgedClaim]:
    def judged(
        estimated: Callable[[FloatArray], Estimate], claimed: Region
    ) -> tuple[JudgedComparison, ...]:
        return tuple(
            JudgedComparison.of(experiment, f"{lemma}: {words}", estimated(z), claimed)
            for lemma, words, z in _all_standardised(records)
        )

    return [
        JudgedClaim(
            "lemmas/identity",
            "Over a pseudo-episode, the expected sum of the value differences V_{φ,α} − V, or "
            "V_{φ,α} − V_{φ,α̲}, equals that of the discrepancies of the backups, the i-th counted "
            "i times (both value-decomposition lemmas).",
            "Both sides computed exactly; largest difference over both lemmas, all worlds and all "
            "first states, relative to (1 − γ)⁻².",
            tuple(
                JudgedComparison.of(
                    experiment,
                    f"{case}: largest difference",
                    exact_number(_identity_error(found), found.pooled.left.size),
                    Region(high=ROUNDING),
                    note=f"in {found.pooled.left.size // len(LEMMAS):,} worlds",
                )
                for case, found in records.items()
            ),
        ),
        JudgedClaim(
            "lemmas/simulated",
            "The same by simulation: both sums have the same mean, which is the exact one.",
            "Averages over simulated pseudo-episodes, standardised; their mean over all worlds is "
            f"within {CENTRED:g} of 0.",
            judged(estimate, Region.around(0.0, CENTRED)),
        ),
        JudgedClaim(
            "lemmas/simulated-spread",
            "The same by simulation, world by world: chance explains all remaining differences.",
            f"Share of standardised averages beyond ±1.96, within {SPREAD:g} of {REJECTED:g}.",
            judged(_beyond, Region.around(REJECTED, SPREAD)),
        ),
    ]


def _about_episodes(experiment: str, records: Mapping[str, EpisodeCounts]) -> JudgedClaim:
    return JudgedClaim(
        "lemmas/episodes",
        "E[K_T] = 1 + (T − 1)(1 − γ) pseudo-episodes begin within T steps.",
        f"Mean number counted, within {100 * COUNTING:g} % of that.",
        tuple(
            JudgedComparison.of(
                experiment,
                f"T = {found.case.parameters['steps']}, γ = {found.case.parameters['discount']:g}",
                _counted(found),
                Region.around(_expected(found), COUNTING * _expected(found)),
                paper=_expected(found),
            )
            for found in records.values()
        ),
    )
