"""From the replications of ``optimism`` to numbers and judged claims.

Averages over pseudo-episodes are taken world by world, so that intervals rest on independent numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brmdp._validation import FloatArray
from brmdp.analysis.estimates import Estimate, estimate
from brmdp.analysis.judgement import ABOVE_ZERO, JudgedClaim, JudgedComparison, Region
from brmdp.analysis.replications import NO_EXCEPTION, certain, heading, pooled, proportion
from brmdp.analysis.summary import Table
from brmdp.experiments import Experiment, Replications
from brmdp.experiments.optimism import steps_for
from brmdp.experiments.programs import parameters_of
from brmdp.theory import expected_episodes, first_informative_episode

__all__ = ["by_world", "informative", "optimism_claims", "optimism_summary", "optimism_table"]

CALIBRATION = 0.05
"""Margin within which the observed frequency of G_k must be the product of the levels."""

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
    return {**heading(experiment, records), "cases": {name: _summary(found) for name, found in records.items()}}


def _summary(found: Replications) -> dict[str, Any]:
    event = by_world(found, "event")
    return {
        "worlds": len(event),
        "delta": found.case.parameters["delta"],
        "first_informative_episode": _first_informative(found),
        "episode": by_world(found, "episode")[0].astype(int).tolist(),
        "stated_probability": by_world(found, "stated_probability")[0].tolist(),
        "event": estimate(event).as_json(),
        "optimistic": estimate(by_world(found, "optimistic")).as_json(),
        "event_probability": estimate(by_world(found, "event_probability")).as_json(),
        "episodes_begun": _episodes(found).as_json(),
        "expected_episodes": _expected(found),
        "exceptions": _exceptions(found),
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
            *(str(proportion(by_world(found, column)[:, -1])) for column in ("event", "optimistic")),
        )

    return Table(header, tuple(row(name, found) for name, found in records.items()))


def optimism_claims(experiment: Experiment, records: Mapping[str, Replications]) -> tuple[JudgedClaim, ...]:
    """Both parts of the dual-benchmark lemma, and the number of pseudo-episodes."""
    name = experiment.name
    first = next(iter(records.values()))
    spoken = {case: found for case, found in records.items() if informative(found).any()}
    claims = []
    if spoken:
        claims.append(
            JudgedClaim(
                "optimism/stated-probability",
                "At the start of pseudo-episode k, G_k holds with posterior probability at least 1 − δSA ln(2k)/√k (part i).",
                "Observed frequency of G_k less the stated probability, averaged over the k for which that is positive; true "
                "kernels drawn from the prior.",
                tuple(
                    JudgedComparison.of(
                        name, f"{case}: observed − stated", _excess(found, "stated_probability"), ABOVE_ZERO
                    )
                    for case, found in spoken.items()
                ),
            )
        )
    claims += [
        JudgedClaim(
            "optimism/product",
            "Not in the paper: with independent rows the posterior probability of G_k is the product of the levels.",
            f"Observed frequency less the product, averaged over all k, within {CALIBRATION:g}.",
            tuple(
                JudgedComparison.of(
                    name,
                    f"{case}: observed − product",
                    _excess(found, "event_probability", everywhere=True),
                    Region.around(0.0, CALIBRATION),
                )
                for case, found in records.items()
            ),
        ),
        JudgedClaim(
            "optimism/both-benchmarks",
            "On G_k, V* ≤ V_k at all states (part i); V*_{φ_k,α̲} ≤ V_k always (part ii).",
            "Plans in which that fails, counted over all worlds and k.",
            tuple(
                JudgedComparison.of(
                    name,
                    f"{case}: exceptions, {what}",
                    certain(count, by_world(found, "event").size),
                    NO_EXCEPTION,
                    note=f"in {by_world(found, 'event').size} plans",
                )
                for case, found in records.items()
                for what, count in _exceptions(found).items()
            ),
        ),
        JudgedClaim(
            "optimism/episodes",
            "E[K_T] = 1 + (T − 1)(1 − γ).",
            f"Mean number of pseudo-episodes begun, within {100 * COUNTING:g} %; the same in all cases, as they share seeds.",
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


def _excess(found: Replications, probability: str, *, everywhere: bool = False) -> Estimate:
    """Observed frequency of G_k less a probability, averaged over pseudo-episodes."""
    excess = by_world(found, "event") - by_world(found, probability)
    return estimate((excess if everywhere else excess[:, informative(found)]).mean(axis=1))


def _exceptions(found: Replications) -> dict[str, int]:
    held = by_world(found, "event") == 1.0
    return {
        "V* ≤ V_k on G_k": int((held & (by_world(found, "optimistic") == 0.0)).sum()),
        "V*_{φ_k,α̲} ≤ V_k": int((by_world(found, "robust_optimistic") == 0.0).sum()),
    }


def _episodes(found: Replications) -> Estimate:
    return estimate(by_world(found, "episodes_begun")[:, 0])


def _expected(found: Replications) -> float:
    parameters = parameters_of(found.case)
    return expected_episodes(steps_for(parameters["episodes"], parameters["discount"]), parameters["discount"])


def _first_informative(found: Replications) -> int:
    parameters = found.case.parameters
    return first_informative_episode(parameters["n_states"] * parameters["n_actions"], parameters["delta"])
