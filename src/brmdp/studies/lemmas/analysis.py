"""From the replications of ``lemmas`` to numbers and judged claims.

Bounds and identities are not statistical: each was looked at in every row and world, and one
exception would contradict it. Simulated sums are standardised: less what they should be, in their
own standard errors. With thousands of pseudo-episodes each these are close to standard normal
numbers; but sums that grow with the square of a geometric length are skewed, so that a margin is
left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from brmdp._validation import FloatArray
from brmdp.report.claims import JudgedClaim, JudgedComparison, Region
from brmdp.report.estimates import Estimate, estimate
from brmdp.report.replications import NO_EXCEPTION, certain, heading, pooled, proportion
from brmdp.report.summary import Table
from brmdp.runs import Experiment, Replications
from brmdp.theory import expected_episodes

__all__ = [
    "LEMMAS",
    "SIDES",
    "cases_of",
    "deviation_ratio",
    "lemmas_claims",
    "lemmas_summary",
    "lemmas_table",
    "standardised",
    "tail_ratio",
]

BANDS: dict[str, tuple[float, float]] = {
    "below 1": (0.0, 1.0),
    "1 to 10": (1.0, 10.0),
    "10 to 100": (10.0, 100.0),
    "100 to 1,000": (100.0, 1_000.0),
    "above 1,000": (1_000.0, np.inf),
}
"""Of total concentrations φ₀."""

LEMMAS: dict[bool, str] = {False: "against the true value", True: "against the robust value"}
"""The two value decompositions, by whether they are about the robust benchmark."""

SIDES: dict[str, str] = {
    "left": "left side − its exact value",
    "right": "right side − its exact value",
    "gap": "left side − right side",
}
"""What is averaged over simulated pseudo-episodes, less what the average should be."""

HALF = 0.5
"""What a deviation is of its bound, at most.

W·P is no wider than a normal variable of variance R²/(4(φ₀ + 1)).
"""

ROUNDING = 1e-9
"""Largest difference of two sides that are equal, relative to the largest they can be,.

(1 − γ)⁻²; values are solved to 1e-10.
"""

REJECTED, BEYOND = 0.05, 1.959963984540054
"""The share of standard normal numbers that is larger than this, in absolute value."""

CENTRED, SPREAD = 0.1, 0.02
"""Margins for the mean of standardised numbers, and for the share beyond."""

COUNTING = 0.02
"""Margin for the number of pseudo-episodes, relative to the expected one."""


def cases_of(records: Mapping[str, Replications], program: str) -> dict[str, Replications]:
    """The cases that carry out a program."""
    return {name: found for name, found in records.items() if found.case.program == program}


def deviation_ratio(found: Replications) -> FloatArray:
    """What the distance of a quantile from the mean is of the bound on its side."""
    deviation = pooled(found, "deviation")
    return np.maximum(
        deviation / pooled(found, "bound_above"), -deviation / pooled(found, "bound_below")
    )


def tail_ratio(found: Replications) -> FloatArray:
    """What the larger of both tail probabilities is of the bound on them."""
    largest = np.maximum(pooled(found, "tail_above"), pooled(found, "tail_below"))
    ratio: FloatArray = largest / pooled(found, "tail_bound")
    return ratio


def standardised(records: Mapping[str, Replications], side: str, *, robust: bool) -> FloatArray:
    """Averages over pseudo-episodes less what they should be, in standard errors.

    Of all worlds of all cases.
    """
    parts = []
    for found in cases_of(records, "value-decomposition").values():
        chosen = pooled(found, "robust") == robust
        exact = 0.0 if side == "gap" else pooled(found, side)
        parts.append(
            ((pooled(found, f"{side}_sampled") - exact) / pooled(found, f"{side}_error"))[chosen]
        )
    return np.concatenate(parts)


def lemmas_summary(experiment: Experiment, records: Mapping[str, Replications]) -> dict[str, Any]:
    """What ``summary.json`` holds."""
    worlds = cases_of(records, "value-decomposition")
    return {
        **heading(experiment, records),
        "deviation": {
            name: {
                "exceptions": _exceptions(found),
                "by_total_concentration": {
                    band: _tightness(found, band) for band in BANDS if _within(found, band).any()
                },
            }
            for name, found in cases_of(records, "quantile-deviation").items()
        },
        "decomposition": {
            name: {
                "worlds": int(pooled(found, "left").size // len(LEMMAS)),
                "identity_error": _identity_error(found),
            }
            for name, found in worlds.items()
        },
        "standardised": {
            f"{lemma}: {words}": {"mean": estimate(z).as_json(), "beyond": _beyond(z).as_json()}
            for lemma, words, z in _standardised(records)
        },
        "episodes": {
            name: {
                "expected": _expected(found),
                "counted": estimate(pooled(found, "episodes")).as_json(),
            }
            for name, found in cases_of(records, "episode-count").items()
        },
        "seconds_per_run": {
            name: estimate(found.seconds).as_json()["mean"] for name, found in records.items()
        },
    }


def _within(found: Replications, band: str) -> Any:
    low, high = BANDS[band]
    total = pooled(found, "total_concentration")
    return (low <= total) & (total < high)


def _tightness(found: Replications, band: str) -> dict[str, Any]:
    """Of both bounds, for the rows of a band."""
    chosen = _within(found, band)
    levels = np.unique(pooled(found, "level")).size
    deviation, tail = deviation_ratio(found)[chosen], tail_ratio(found)[chosen]
    return {
        "rows": int(chosen.sum()) // levels,
        "deviation_median": float(np.median(deviation)),
        "deviation_largest": float(deviation.max()),
        "tail_largest": float(tail.max()),
    }


def lemmas_table(records: Mapping[str, Replications]) -> Table:
    """How tight the bounds are, by total concentration."""
    header = ("values, φ₀", "rows", "deviation/bound: median", "largest", "tail/bound: largest")

    def row(found: Replications, band: str) -> tuple[str, ...]:
        rows, *ratios = _tightness(found, band).values()
        return (
            f"{found.case.parameters['values']}, {band}",
            f"{rows}",
            *(f"{ratio:.3f}" for ratio in ratios),
        )

    deviations = cases_of(records, "quantile-deviation").values()
    return Table(
        header,
        tuple(
            row(found, band) for found in deviations for band in BANDS if _within(found, band).any()
        ),
    )


def lemmas_claims(
    experiment: Experiment, records: Mapping[str, Replications]
) -> tuple[JudgedClaim, ...]:
    """Every lemma for which there are records."""
    claims: list[JudgedClaim] = []
    if deviations := cases_of(records, "quantile-deviation"):
        claims += _deviation_claims(experiment.name, deviations)
    if worlds := cases_of(records, "value-decomposition"):
        claims += _decomposition_claims(experiment.name, worlds)
    if counts := cases_of(records, "episode-count"):
        claims.append(_episode_claim(experiment.name, counts))
    return tuple(claims)


def _deviation_claims(experiment: str, records: Mapping[str, Replications]) -> list[JudgedClaim]:
    rows = "Exact quantiles and tails of random rows; values spread over [0, R], or at its ends."

    def none(bound: str) -> tuple[JudgedComparison, ...]:
        return tuple(
            _looked_at(experiment, f"{case}: exceptions, {what}", found, count, NO_EXCEPTION)
            for case, found in records.items()
            for what, count in _exceptions(found)[bound].items()
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
            "Each tail of V·P beyond a distance ε from its mean has a probability of at most "
            "exp(−φ₀ε²/(2R²)).",
            rows,
            none("tail"),
        ),
        JudgedClaim(
            "lemmas/half",
            "Not in the paper: a deviation is less than half of its bound.",
            "Largest ratio of all rows and levels.",
            tuple(
                _looked_at(
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


def _looked_at(
    experiment: str, quantity: str, found: Replications, value: float, claimed: Region
) -> JudgedComparison:
    """A number that is no average, from all rows and levels."""
    trials = pooled(found, "level").size
    return JudgedComparison.of(
        experiment, quantity, certain(value, trials), claimed, note=f"in {trials:,}"
    )


def _exceptions(found: Replications) -> dict[str, dict[str, int]]:
    """To both kinds of bounds."""
    deviation, tail_bound = pooled(found, "deviation"), pooled(found, "tail_bound")

    def beyond(value: FloatArray, bound: FloatArray) -> int:
        return int(np.count_nonzero(~(value <= bound)))

    return {
        "deviation": {
            "quantile − mean": beyond(deviation, pooled(found, "bound_above")),
            "mean − quantile": beyond(-deviation, pooled(found, "bound_below")),
        },
        "tail": {
            "upper tail": beyond(pooled(found, "tail_above"), tail_bound),
            "lower tail": beyond(pooled(found, "tail_below"), tail_bound),
        },
    }


def _decomposition_claims(
    experiment: str, records: Mapping[str, Replications]
) -> list[JudgedClaim]:
    def judged(
        estimates: Callable[[FloatArray], Estimate], claimed: Region
    ) -> tuple[JudgedComparison, ...]:
        return tuple(
            JudgedComparison.of(experiment, f"{lemma}: {words}", estimates(z), claimed)
            for lemma, words, z in _standardised(records)
        )

    return [
        JudgedClaim(
            "lemmas/identity",
            "Over a pseudo-episode, the value differences V_{φ,α} − V, and V_{φ,α} − V_{φ,α̲}, add "
            "up in expectation to i times the discrepancies of the i-th backups (both "
            "value-decomposition lemmas).",
            "Both sides exactly; largest difference over both lemmas, all worlds and first states, "
            "relative to (1 − γ)⁻².",
            tuple(
                JudgedComparison.of(
                    experiment,
                    f"{case}: largest difference",
                    certain(_identity_error(found), pooled(found, "left").size),
                    Region(high=ROUNDING),
                    note=f"in {pooled(found, 'left').size // len(LEMMAS):,} worlds",
                )
                for case, found in records.items()
            ),
        ),
        JudgedClaim(
            "lemmas/simulated",
            "The same by simulation: both sums have the same mean, the exact one.",
            "Averages over simulated pseudo-episodes, standardised; their mean over all worlds, "
            f"within {CENTRED:g} of 0.",
            judged(estimate, Region.around(0.0, CENTRED)),
        ),
        JudgedClaim(
            "lemmas/simulated-spread",
            "The same by simulation, world by world: no more is left than chance explains.",
            f"Share of standardised averages beyond ±1.96, within {SPREAD:g} of {REJECTED:g}.",
            judged(_beyond, Region.around(REJECTED, SPREAD)),
        ),
    ]


def _beyond(z: FloatArray) -> Estimate:
    """Share of numbers beyond ±1.96; not known where one of them is not."""
    return proportion(np.where(np.isnan(z), np.nan, np.abs(z) > BEYOND))


def _standardised(records: Mapping[str, Replications]) -> list[tuple[str, str, FloatArray]]:
    """Both lemmas, in words, and every side of them."""
    if not cases_of(records, "value-decomposition"):
        return []
    return [
        (lemma, words, standardised(records, side, robust=robust))
        for robust, lemma in LEMMAS.items()
        for side, words in SIDES.items()
    ]


def _identity_error(found: Replications) -> float:
    return float(
        pooled(found, "identity_error").max() * (1.0 - found.case.parameters["discount"]) ** 2
    )


def _episode_claim(experiment: str, records: Mapping[str, Replications]) -> JudgedClaim:
    return JudgedClaim(
        "lemmas/episodes",
        "E[K_T] = 1 + (T − 1)(1 − γ) pseudo-episodes begin within T steps.",
        f"Mean number counted, within {100 * COUNTING:g} %.",
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


def _counted(found: Replications) -> Estimate:
    return estimate(pooled(found, "episodes"))


def _expected(found: Replications) -> float:
    return expected_episodes(found.case.parameters["steps"], found.case.parameters["discount"])
