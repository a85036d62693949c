"""From the replications of ``optimism`` to numbers and judged claims.

Pseudo-episodes of one world depend on one another, so they are averaged world by world; intervals
then rest on independent numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from brmdp._validation import BoolArray, FloatArray
from brmdp.report.claims import ABOVE_ZERO, NO_EXCEPTION, JudgedClaim, JudgedComparison, Region
from brmdp.report.estimates import (
    SHARE,
    Estimate,
    estimate,
    exact_number,
    proportion,
    ratio_samples,
)
from brmdp.report.findings import Findings
from brmdp.report.summary import heading
from brmdp.report.tables import Table
from brmdp.runs import Experiment, Replications
from brmdp.runs.program import parameters_of
from brmdp.studies.optimism.experiment import OptimismColumns, steps_for
from brmdp.theory import expected_episodes, first_informative_episode

__all__ = ["Optimism", "analyse", "by_world", "first_informative", "informative"]

Optimism: TypeAlias = Replications[OptimismColumns]

CALIBRATION = 0.2
"""Margin around 1 for the observed frequency of G_k over the product of the levels."""

EXPECTED_EVENTS = 400
"""Fewest expected events for that ratio to be judged.

If events were independent, chance alone would then use up half of the margin.
"""

COUNTING = 0.02
"""Margin for the number of pseudo-episodes, relative to the expected number."""


def by_world(found: Optimism) -> OptimismColumns:
    """The columns as (worlds, pseudo-episodes) arrays."""
    episodes = parameters_of(found.case)["episodes"]
    return OptimismColumns(
        **{name: array.reshape(-1, episodes) for name, array in found.columns.arrays().items()}
    )


def informative(found: Optimism) -> BoolArray:
    """For each pseudo-episode, whether the lemma promises a positive probability."""
    promised: BoolArray = by_world(found).stated_probability[0] > 0.0
    return promised


def first_informative(found: Optimism) -> int:
    """The pseudo-episode from which on the lemma always promises a positive probability."""
    parameters = found.case.parameters
    return first_informative_episode(
        parameters["n_states"] * parameters["n_actions"], parameters["delta"]
    )


def analyse(experiment: Experiment, records: Mapping[str, Optimism]) -> Findings:
    """How often the agent is optimistic, and what the dual-benchmark lemma says about it."""
    return Findings(summary(experiment, records), table(records), claims(experiment.name, records))


def summary(experiment: Experiment, records: Mapping[str, Optimism]) -> dict[str, Any]:
    """The content of ``summary.json``."""
    return {
        **heading(experiment, records),
        "cases": {name: _summary(found) for name, found in records.items()},
    }


def _summary(found: Optimism) -> dict[str, Any]:
    worlds = by_world(found)
    return {
        "worlds": len(worlds.event),
        "delta": found.case.parameters["delta"],
        "first_informative_episode": first_informative(found),
        "episode": worlds.episode[0].astype(int).tolist(),
        "stated_probability": worlds.stated_probability[0].tolist(),
        "event": estimate(worlds.event, bounds=SHARE).as_json(),
        "optimistic": estimate(worlds.optimistic, bounds=SHARE).as_json(),
        "event_probability": estimate(worlds.event_probability, bounds=SHARE).as_json(),
        "episodes_begun": _episodes(found).as_json(),
        "expected_episodes": _expected(found),
        "exceptions": {what: failed for what, (failed, _) in _exceptions(found).items()},
        "plans": {what: plans for what, (_, plans) in _exceptions(found).items()},
        "seconds_per_run": estimate(found.seconds).as_json()["mean"],
    }


def table(records: Mapping[str, Optimism]) -> Table:
    """The last pseudo-episode of each case, and when the lemma begins to promise something."""
    header = (
        "case",
        "informative from k",
        "last k",
        "stated",
        "product",
        "G_k observed",
        "V* ≤ V_k observed",
    )

    def row(name: str, found: Optimism) -> tuple[str, ...]:
        worlds = by_world(found)
        return (
            name,
            f"{first_informative(found):,}",
            f"{worlds.episode[0, -1]:.0f}",
            f"{max(worlds.stated_probability[0, -1], 0.0):.3f}",
            f"{worlds.event_probability[:, -1].mean():.3f}",
            str(proportion(worlds.event[:, -1])),
            str(proportion(worlds.optimistic[:, -1])),
        )

    return Table(header, tuple(row(name, found) for name, found in records.items()))


def claims(name: str, records: Mapping[str, Optimism]) -> tuple[JudgedClaim, ...]:
    """Both parts of the dual-benchmark lemma, and the number of pseudo-episodes, judged."""
    first = next(iter(records.values()))
    promising = {case: found for case, found in records.items() if informative(found).any()}
    judged = []
    if promising:
        judged.append(
            JudgedClaim(
                "optimism/stated-probability",
                "At the start of pseudo-episode k, G_k holds with posterior probability at least 1 "
                "− δSA ln(2k)/√k (part i).",
                "Observed frequency of G_k minus the stated probability, averaged over all k for "
                "which the latter is positive. True kernels are drawn from the prior.",
                tuple(
                    JudgedComparison.of(
                        name, f"{case}: observed − stated", _above_stated(found), ABOVE_ZERO
                    )
                    for case, found in promising.items()
                ),
            )
        )
    judged += [
        JudgedClaim(
            "optimism/product",
            "Not in the paper: with independent rows, the posterior probability of G_k is the "
            "product of the levels.",
            "Number of events G_k over all k and worlds, divided by the number that the product "
            f"predicts: within {CALIBRATION:g} of 1. Only measured where fewer than "
            f"{EXPECTED_EVENTS} events are expected.",
            tuple(_calibration(name, case, found) for case, found in records.items()),
        ),
        JudgedClaim(
            "optimism/both-benchmarks",
            "On G_k, V* ≤ V_k at all states (part i); V*_{φ_k,α̲} ≤ V_k always (part ii).",
            "Number of plans for which this fails, over all worlds and k; for part i, only plans "
            "for which G_k held.",
            tuple(
                JudgedComparison.of(
                    name,
                    f"{case}: exceptions, {what}",
                    exact_number(failed, plans),
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
            f"Mean number of pseudo-episodes begun, within {100 * COUNTING:g} %. All cases share "
            "seeds, so they have the same number; one is judged.",
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
    return tuple(judged)


def _above_stated(found: Optimism) -> Estimate:
    """Observed frequency of G_k minus the stated probability, averaged where that is positive."""
    promised, worlds = informative(found), by_world(found)
    stated = float(worlds.stated_probability[0, promised].mean())
    excess = worlds.event[:, promised].mean(axis=1) - stated
    return estimate(excess, bounds=(-stated, 1.0 - stated))


def _calibration(experiment: str, case: str, found: Optimism) -> JudgedComparison:
    """Observed frequency of G_k over the product of the levels."""
    worlds = by_world(found)
    expected = float(worlds.event_probability.sum())
    judged = expected >= EXPECTED_EVENTS
    return JudgedComparison.of(
        experiment,
        f"{case}: observed / product",
        _over_product(worlds.event, worlds.event_probability),
        Region.around(1.0, CALIBRATION) if judged else None,
        note=f"{expected:.0f} events expected" + ("" if judged else ", too few to judge"),
    )


def _over_product(event: BoolArray, product: FloatArray) -> Estimate:
    """Ratio of the means; worlds are the replications, as events of one world are dependent."""
    scale = float(product.mean())
    if scale == 0.0 or event.min() < event.max():
        return estimate(ratio_samples(event.mean(axis=1), product.mean(axis=1)))
    # if every event, or none, happened, there is no spread to estimate: whole worlds are counted
    return proportion(event[:, 0]).scaled(1.0 / scale)


def _exceptions(found: Optimism) -> dict[str, tuple[int, int]]:
    """Number of plans for which a part of the lemma fails, and number of plans it applies to."""
    worlds = by_world(found)
    held, robust = worlds.event == 1.0, worlds.robust_optimistic == 1.0
    return {
        "V* ≤ V_k on G_k": (int((held & (worlds.optimistic != 1.0)).sum()), int(held.sum())),
        "V*_{φ_k,α̲} ≤ V_k": (int((~robust).sum()), robust.size),
    }


def _episodes(found: Optimism) -> Estimate:
    return estimate(by_world(found).episodes_begun[:, 0])


def _expected(found: Optimism) -> float:
    parameters = parameters_of(found.case)
    return expected_episodes(
        steps_for(parameters["episodes"], parameters["discount"]), parameters["discount"]
    )
