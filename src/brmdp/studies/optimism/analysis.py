"""From the replications of ``optimism`` to numbers and judged claims.

Averages over pseudo-episodes are taken world by world, so that intervals rest on independent
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brmdp._validation import FloatArray
from brmdp.report.claims import ABOVE_ZERO, JudgedClaim, JudgedComparison, Region
from brmdp.report.estimates import Estimate, estimate, ratio_samples
from brmdp.report.replications import NO_EXCEPTION, certain, heading, pooled, proportion
from brmdp.report.statistics import SHARE
from brmdp.report.summary import Table
from brmdp.runs import Experiment, Replications
from brmdp.runs.programs import parameters_of
from brmdp.studies.optimism.experiment import steps_for
from brmdp.theory import expected_episodes, first_informative_episode

__all__ = ["by_world", "informative", "optimism_claims", "optimism_summary", "optimism_table"]

CALIBRATION = 0.2
"""Margin within which the observed frequency of G_k over the product of the levels must be 1."""

EXPECTED_EVENTS = 400
"""Fewest events by the product for that to be judged.

Were they independent, chance would leave half of the margin.
"""

COUNTING = 0.02
"""Margin for the number of pseudo-episodes, relative to the expected one."""


def by_world(found: Replications, name: str) -> FloatArray:
    """A column as (worlds, episodes)."""
    return pooled(found, name).reshape(-1, parameters_of(found.case)["episodes"])


def informative(found: Replications) -> Any:
    """Which pseudo-episodes the lemma says anything about, (episodes,) truth values."""
    return by_world(found, "stated_probability")[0] > 0.0


def optimism_summary(experiment: Experiment, records: Mapping[str, Replications]) -> dict[str, Any]:
    """What ``summary.json`` holds."""
    return {
        **heading(experiment, records),
        "cases": {name: _summary(found) for name, found in records.items()},
    }


def _summary(found: Replications) -> dict[str, Any]:
    event = by_world(found, "event")
    return {
        "worlds": len(event),
        "delta": found.case.parameters["delta"],
        "first_informative_episode": _first_informative(found),
        "episode": by_world(found, "episode")[0].astype(int).tolist(),
        "stated_probability": by_world(found, "stated_probability")[0].tolist(),
        "event": estimate(event, bounds=SHARE).as_json(),
        "optimistic": estimate(by_world(found, "optimistic"), bounds=SHARE).as_json(),
        "event_probability": estimate(by_world(found, "event_probability"), bounds=SHARE).as_json(),
        "episodes_begun": _episodes(found).as_json(),
        "expected_episodes": _expected(found),
        "exceptions": {what: failed for what, (failed, _) in _exceptions(found).items()},
        "plans": {what: plans for what, (_, plans) in _exceptions(found).items()},
        "seconds_per_run": estimate(found.seconds).as_json()["mean"],
    }


def optimism_table(records: Mapping[str, Replications]) -> Table:
    """The last pseudo-episode of every case, and where the lemma begins to say something."""
    header = (
        "case",
        "informative from k",
        "last k",
        "stated",
        "product",
        "G_k observed",
        "V* ≤ V_k observed",
    )

    def row(name: str, found: Replications) -> tuple[str, ...]:
        return (
            name,
            f"{_first_informative(found):,}",
            f"{by_world(found, 'episode')[0, -1]:.0f}",
            f"{max(by_world(found, 'stated_probability')[0, -1], 0.0):.3f}",
            f"{by_world(found, 'event_probability')[:, -1].mean():.3f}",
            *(
                str(proportion(by_world(found, column)[:, -1]))
                for column in ("event", "optimistic")
            ),
        )

    return Table(header, tuple(row(name, found) for name, found in records.items()))


def optimism_claims(
    experiment: Experiment, records: Mapping[str, Replications]
) -> tuple[JudgedClaim, ...]:
    """Both parts of the dual-benchmark lemma, and the number of pseudo-episodes."""
    name = experiment.name
    first = next(iter(records.values()))
    spoken = {case: found for case, found in records.items() if informative(found).any()}
    claims = []
    if spoken:
        claims.append(
            JudgedClaim(
                "optimism/stated-probability",
                "At the start of pseudo-episode k, G_k holds with posterior probability at least 1 "
                "− δSA ln(2k)/√k (part i).",
                "Observed frequency of G_k less the stated probability, averaged over the k for "
                "which that is positive; true kernels drawn from the prior.",
                tuple(
                    JudgedComparison.of(
                        name, f"{case}: observed − stated", _above_stated(found), ABOVE_ZERO
                    )
                    for case, found in spoken.items()
                ),
            )
        )
    claims += [
        JudgedClaim(
            "optimism/product",
            "Not in the paper: with independent rows the posterior probability of G_k is the "
            "product of the levels.",
            "Number of events G_k over all k and worlds, over the number that the product expects: "
            f"within {CALIBRATION:g} of 1. Only measured where fewer than {EXPECTED_EVENTS} are "
            "expected.",
            tuple(_calibration(name, case, found) for case, found in records.items()),
        ),
        JudgedClaim(
            "optimism/both-benchmarks",
            "On G_k, V* ≤ V_k at all states (part i); V*_{φ_k,α̲} ≤ V_k always (part ii).",
            "Plans in which that fails, counted over all worlds and k; for the first part of those "
            "in which G_k held.",
            tuple(
                JudgedComparison.of(
                    name,
                    f"{case}: exceptions, {what}",
                    certain(failed, plans),
                    NO_EXCEPTION,
                    note=f"in {plans} plans",
                )
                for case, found in records.items()
                for what, (failed, plans) in _exceptions(found).items()
            ),
        ),
        JudgedClaim(
            "optimism/episodes",
            "E[K_T] = 1 + (T − 1)(1 − γ).",
            f"Mean number of pseudo-episodes begun, within {100 * COUNTING:g} %; the same in all "
            "cases, as they share seeds.",
            (
                JudgedComparison.of(
                    name,
                    "pseudo-episodes",
                    _episodes(first),
                    Region.around(_expected(first), COUNTING * _expected(first)),
                    paper=_expected(first),
                ),
            ),
        ),
    ]
    return tuple(claims)


def _above_stated(found: Replications) -> Estimate:
    """Observed frequency of G_k less the stated probability.

    Averaged over the pseudo-episodes that it speaks of.
    """
    spoken = informative(found)
    stated = float(by_world(found, "stated_probability")[0, spoken].mean())
    excess = by_world(found, "event")[:, spoken].mean(axis=1) - stated
    return estimate(excess, bounds=(-stated, 1.0 - stated))


def _calibration(experiment: str, case: str, found: Replications) -> JudgedComparison:
    """Observed frequency of G_k over the product of the levels."""
    product = by_world(found, "event_probability")
    expected = float(product.sum())
    judged = expected >= EXPECTED_EVENTS
    return JudgedComparison.of(
        experiment,
        f"{case}: observed / product",
        _over_product(by_world(found, "event"), product),
        Region.around(1.0, CALIBRATION) if judged else None,
        note=f"{expected:.0f} events expected" + ("" if judged else ", too few to judge"),
    )


def _over_product(event: FloatArray, product: FloatArray) -> Estimate:
    """Ratio of the means.

    Events of one world are dependent, so that worlds are the replications.
    """
    scale = float(product.mean())
    if scale == 0.0 or event.min() < event.max():
        return estimate(ratio_samples(event.mean(axis=1), product.mean(axis=1)))
    # without a single event, or without a single failure, there is no spread to estimate: whole
    # worlds are counted
    return proportion(event[:, 0]).scaled(1.0 / scale)


def _exceptions(found: Replications) -> dict[str, tuple[int, int]]:
    """Plans in which a part of the lemma fails, and plans of which it speaks."""
    held = by_world(found, "event") == 1.0
    robust = by_world(found, "robust_optimistic") == 1.0
    return {
        "V* ≤ V_k on G_k": (
            int((held & (by_world(found, "optimistic") != 1.0)).sum()),
            int(held.sum()),
        ),
        "V*_{φ_k,α̲} ≤ V_k": (int((~robust).sum()), robust.size),
    }


def _episodes(found: Replications) -> Estimate:
    return estimate(by_world(found, "episodes_begun")[:, 0])


def _expected(found: Replications) -> float:
    parameters = parameters_of(found.case)
    return expected_episodes(
        steps_for(parameters["episodes"], parameters["discount"]), parameters["discount"]
    )


def _first_informative(found: Replications) -> int:
    parameters = found.case.parameters
    return first_informative_episode(
        parameters["n_states"] * parameters["n_actions"], parameters["delta"]
    )
