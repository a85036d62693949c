"""From the runs of ``bbrl`` to scores, paired differences and judged claims.

The score of a run is its discounted return. The numbers of BBRL's own program come from a run of
that program elsewhere, on other MDPs of the same distributions: 500, or as many as
:data:`REFERENCES` says. Its BEB stores β as an unsigned integer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from brmdp._validation import FloatArray
from brmdp.report.claims import (
    ABOVE_ZERO,
    BELOW_ZERO,
    CLAIM_ERROR,
    NO_EXCEPTION,
    Claim,
    Comparison,
    JudgedClaim,
    JudgedComparison,
    Region,
    judge,
)
from brmdp.report.curves import common_runs
from brmdp.report.estimates import Estimate, estimate, exact_number
from brmdp.report.findings import Findings
from brmdp.report.statistics import Statistic
from brmdp.report.summary import heading
from brmdp.report.tables import Table
from brmdp.runs import CaseRecords, Experiment, Replications
from brmdp.studies.bbrl.experiment import (
    CHOSEN,
    DISCOUNT,
    EXPERIMENTS,
    GUESSED,
    METHODS,
    TuningColumns,
)

__all__ = ["OURS", "REFERENCES", "SCORE", "Reference", "analyse", "analyse_tuning"]

Races: TypeAlias = Mapping[str, Replications[TuningColumns]]

OURS = ("level", "falling", "visits")
"""Plans against quantiles, a plan at every step."""

FIELD = ("greedy", "beb", "vbrb", "psrl", "opsrl")
"""Methods of others that are as fast."""

OTHERS = (*FIELD, "bamcp")
"""Methods of others; ours is to be ahead of them all."""

LABELS = {
    "random": "Random",
    "optimal": "Optimal, kernel known",
    **{one.name: one.label for one in METHODS},
}


class Reference(NamedTuple):
    """What BBRL's own program found: a mean, and half the width of its 95 % interval."""

    mean: float
    half_width: float | None = None
    mdps: int = 500


REFERENCES = {
    "gc-accurate/random": Reference(31.5, 1.1),
    "gc-accurate/optimal": Reference(70.9, 3.3),
    "gc-accurate/greedy": Reference(41.0, 1.6),
    "gc-accurate/beb": Reference(42.3, 2.0),
    "gdl-accurate/random": Reference(2.65),
    "gdl-accurate/optimal": Reference(3.49, 0.09),
    "gdl-accurate/greedy": Reference(3.00, 0.08),
    "gdl-accurate/beb": Reference(3.02, 0.07),
    "gdl-accurate/bamcp": Reference(3.03, 0.19, 100),
    "grid-accurate/random": Reference(0.17),
    "grid-accurate/optimal": Reference(10.5, 0.3),
    "grid-accurate/greedy": Reference(6.52, 0.31),
    "grid-accurate/beb": Reference(6.3, 0.5, 200),
    "gc-inaccurate/beb": Reference(37.9, 1.8),
    "gdl-inaccurate/beb": Reference(2.84, 0.08),
    "grid-inaccurate/greedy": Reference(0.72, 0.22, 100),
}
"""By case. Where no interval is known, the number is shown and not judged."""


def _return(records: CaseRecords, steps: int) -> FloatArray:
    scores: FloatArray = records.reward[:, :steps] @ DISCOUNT ** np.arange(steps)
    return scores


SCORE = Statistic("discounted return over {steps} steps", _return)


def analyse(experiment: Experiment, records: Mapping[str, CaseRecords]) -> Findings:
    """Scores, differences from the posterior mean, time per decision, and the verdicts."""
    return Findings(summary(experiment, records), table(records), claims(experiment.name, records))


def score(found: CaseRecords) -> Estimate:
    """The mean score with its interval."""
    return estimate(_return(found, found.reward.shape[1]))


def difference(first: CaseRecords, second: CaseRecords) -> Estimate:
    """Mean score of ``first`` minus that of ``second``, MDP by MDP."""
    mine, theirs = common_runs(first.run, second.run)
    steps = first.reward.shape[1]
    return estimate(_return(first, steps)[mine] - _return(second, steps)[theirs])


def per_decision(found: CaseRecords) -> float:
    """Milliseconds of processor time per step, the world's own included."""
    return float(1e3 * found.seconds.mean() / found.reward.shape[1])


def summary(experiment: Experiment, records: Mapping[str, CaseRecords]) -> dict[str, Any]:
    """The content of ``summary.json``."""
    return {
        **heading(experiment, records),
        "cases": {
            name: {
                "score": score(found).as_json(),
                "milliseconds_per_decision": per_decision(found),
                "runs": int(found.run.size),
            }
            for name, found in records.items()
        },
        "differences": {
            f"{name} - {other}": difference(found, records[other]).as_json()
            for name, found in records.items()
            for other in records
            if other != name and other.partition("/")[0] == name.partition("/")[0]
        },
    }


def table(records: Mapping[str, CaseRecords]) -> Table:
    """One row per experiment and method, the best mean in bold."""
    rows = []
    for experiment in EXPERIMENTS:
        place = EXPERIMENTS.index(experiment)
        here = {
            name.partition("/")[2]: found
            for name, found in records.items()
            if name.partition("/")[0] == experiment
        }
        means = {name: float(score(one).mean) for name, one in here.items() if name != "optimal"}
        for name, found in here.items():
            shown = f"{score(found)}"
            if len(means) > 1 and name == max(means, key=lambda one: means[one]):
                shown = f"**{shown}**"
            gap = "–"
            if "greedy" in here and name != "greedy":
                gap = str(difference(found, here["greedy"]))
            reference = REFERENCES.get(f"{experiment}/{name}")
            rows.append(
                (
                    f"{experiment}, {LABELS[name]}",
                    _setting(name, place),
                    shown,
                    gap,
                    f"{per_decision(found):.2g}",
                    "" if reference is None else _referred(reference),
                    f"{found.run.size}",
                )
            )
    header = (
        "experiment, method",
        "setting",
        "score",
        "minus posterior mean",
        "ms/step",
        "BBRL's program",
        "MDPs",
    )
    return Table(header, tuple(rows))


def _setting(name: str, place: int) -> str:
    """The setting used, and whether it is a guess."""
    if name not in CHOSEN:
        return ""
    guessed = f"{EXPERIMENTS[place]}/{name}" in GUESSED
    return f"{CHOSEN[name][place]:g}" + (" (first guess)" if guessed else "")


def _referred(reference: Reference) -> str:
    return f"{reference.mean:g}" + (
        "" if reference.half_width is None else f" ± {reference.half_width:g}"
    )


# --- claims ---------------------------------------------------------------------------------------


def claims(name: str, records: Mapping[str, CaseRecords]) -> tuple[JudgedClaim, ...]:
    """Agreement with the benchmark's own program, and who is ahead of whom."""
    stated = (
        Claim(
            f"{name}/paper-schedule",
            "The paper's schedule with δ = 5 and pseudo-episodes of geometric length is behind the "
            "posterior mean planned at every step.",
            "Paired difference, below 0, in every experiment.",
            tuple(
                Comparison(SCORE, f"{one}/aq-brmdp", f"{one}/greedy", claimed=BELOW_ZERO)
                for one in EXPERIMENTS
            ),
        ),
        Claim(
            f"{name}/plan-below-the-tree",
            "BAMCP with our plan's values below its tree is ahead of BAMCP with rollouts.",
            "Paired difference, above 0, in every experiment.",
            tuple(
                Comparison(SCORE, f"{one}/bamcp-plan", f"{one}/bamcp", claimed=ABOVE_ZERO)
                for one in EXPERIMENTS
            ),
        ),
        Claim(
            f"{name}/field",
            "Our tuned methods and those of others; nothing is claimed.",
            "Paired differences, measured only.",
            tuple(
                Comparison(SCORE, f"{one}/{ours}", f"{one}/{other}")
                for one in EXPERIMENTS
                for ours in OURS
                for other in FIELD
            ),
        ),
    )
    return (_agreement(name, records), _ahead(name, records), *judge(stated, name, records))


FIRST = dict(
    zip(EXPERIMENTS, ("falling", "falling", "level", "level", "level", "level"), strict=True)
)
"""Which of :data:`OURS` is judged, by experiment: named beforehand, by means in prior worlds.

*Measured*, in races of up to 320 worlds: gc-accurate (falling 40.26, fixed 40.22, visits 39.89) and
gdl-accurate (falling and by visits 3.051, fixed 3.038), by means alone. The others are
*first guesses*, until ``bbrl-tuning``, whose summary names the best under ``first``, has run.
"""

RESOLVED = 3
"""In how many experiments the lead over the second is to be resolved."""


def _ahead(name: str, records: Mapping[str, CaseRecords]) -> JudgedClaim:
    """Ours against whoever is second among the methods of others.

    The second is not known beforehand. So ours is compared with every one of them, by intervals
    that hold jointly, also over experiments; the lead over the true second is the smallest of these
    differences, and its interval goes from the smallest lower end to the smallest upper end.
    """
    leads = {one: _lead(records, one) for one in EXPERIMENTS}
    known = [found for found, _ in leads.values() if found is not None]
    if len(known) < len(leads):
        smallest = resolved = estimate(np.empty(0))
    else:
        smallest = exact_number(min(float(one.mean) for one in known), known[0].runs)
        resolved = _ranked(known, RESOLVED)
    comparisons = [
        JudgedComparison.of(
            name, "smallest lead of the mean over the second, in these runs", smallest, ABOVE_ZERO
        ),
        JudgedComparison.of(
            name,
            f"lead over the second that {RESOLVED} experiments reach",
            resolved,
            ABOVE_ZERO,
            note="the interval holds whoever is second",
        ),
        *(
            JudgedComparison.of(
                name,
                f"{one}: {FIRST[one]} minus the second of others",
                estimate(np.empty(0)) if found is None else found,
                note=note,
            )
            for one, (found, note) in leads.items()
        ),
    ]
    return JudgedClaim(
        f"{name}/ahead",
        "The method of ours that was named beforehand has the best mean in every experiment, and "
        f"its lead over the second is resolved in at least {RESOLVED}.",
        "Paired differences from every method of others, with intervals that hold jointly with "
        "probability 0.95 over methods and experiments; the smallest one is the lead. All leads "
        f"above 0 in these runs, and the lower end of the interval above 0 in {RESOLVED}.",
        tuple(comparisons),
    )


def _lead(records: Mapping[str, CaseRecords], one: str) -> tuple[Estimate | None, str]:
    """Ours minus the second of others, whoever that is; and who is second in these runs."""
    cases = [f"{one}/{FIRST[one]}", *(f"{one}/{other}" for other in OTHERS)]
    missing = [case for case in cases if case not in records]
    if missing:
        return None, f"no runs of {missing[0]}"
    joint = 1.0 - CLAIM_ERROR / (len(EXPERIMENTS) * len(OTHERS))
    found = [
        difference(records[cases[0]], records[case]).at_confidence(joint) for case in cases[1:]
    ]
    second = int(np.argmin([float(each.mean) for each in found]))
    return _jointly(found, np.min), f"second: {LABELS[OTHERS[second]]}"


def _ranked(leads: Sequence[Estimate], rank: int) -> Estimate:
    """The lead that is the ``rank``-th from above."""
    return _jointly(leads, lambda numbers: np.sort(numbers)[-rank])


def _jointly(found: Sequence[Estimate], chosen: Callable[[FloatArray], Any]) -> Estimate:
    """What a monotone function makes of numbers whose intervals hold jointly.

    An unknown end, of numbers that are equal in all runs, stays unknown.
    """
    mean, low, high = (
        np.asarray(chosen(np.array([float(getattr(one, part)) for one in found])))
        if not np.isnan([float(getattr(one, part)) for one in found]).any()
        else np.asarray(np.nan)
        for part in ("mean", "low", "high")
    )
    runs = min(one.runs for one in found)
    return Estimate(mean, np.asarray(np.nan), low, high, runs, ends=lambda _: (low, high))


def _agreement(name: str, records: Mapping[str, CaseRecords]) -> JudgedClaim:
    """Within twice the half-width: as far as two runs of one program may well be apart."""
    return JudgedClaim(
        f"{name}/agreement",
        "Random, optimal, posterior mean and BEB score as in BBRL's own program.",
        "Mean score within twice the half-width of the program's interval, 95 %.",
        tuple(
            JudgedComparison.of(
                name,
                f"{case}: discounted return",
                score(records[case]) if case in records else estimate(np.empty(0)),
                Region.around(reference.mean, 2.0 * reference.half_width),
                paper=reference.mean,
            )
            for case, reference in REFERENCES.items()
            if reference.half_width is not None and not case.endswith("/bamcp")
        ),
    )


# --- tuning ---------------------------------------------------------------------------------------


def analyse_tuning(experiment: Experiment, records: Races) -> Findings:
    """The races of settings, and whether ``bbrl`` uses what they chose."""
    return Findings(
        {
            **heading(experiment, records),
            "chosen": {name: float(_chosen(found)) for name, found in records.items()},
            "first": _first(records),
        },
        _races(records),
        (_used(experiment.name, records),),
    )


def _chosen(found: Replications[TuningColumns]) -> float:
    races = found.columns
    return float(races.setting[0][races.chosen[0]][0])


def _first(records: Races) -> dict[str, str]:
    """Whose best setting has the highest mean, of :data:`OURS`: all races share their worlds."""
    best: dict[str, dict[str, float]] = {}
    for case, found in records.items():
        experiment, _, method = case.partition("/")
        if method in OURS:
            races = found.columns
            value = float(races.value[0][races.chosen[0]][0])
            best.setdefault(experiment, {})[method] = value
    return {one: max(values, key=lambda name: values[name]) for one, values in best.items()}


def _races(records: Races) -> Table:
    rows = []
    for name, found in records.items():
        races = found.columns
        for k, setting in enumerate(races.setting[0]):
            chosen = bool(races.chosen[0][k])
            low, high = float(races.low[0][k]), float(races.high[0][k])
            rows.append(
                (
                    f"{name}, {setting:g}",
                    "**chosen**" if chosen else "",
                    f"{races.value[0][k]:.4g}",
                    "" if chosen else f"{races.difference[0][k]:.3g} [{low:.3g}, {high:.3g}]",
                    f"{races.worlds[0][k]}",
                    "lower half" if races.set_aside[0][k] else str(races.stopped_by[0][k]),
                )
            )
    header = (
        "experiment, method, setting",
        "",
        "mean",
        "chosen minus this",
        "worlds",
        "stopped by",
    )
    return Table(header, tuple(rows))


def _used(name: str, records: Races) -> JudgedClaim:
    """How far the settings of ``bbrl`` are from those that these races chose."""
    comparisons = []
    worse = 0
    for case, found in records.items():
        experiment, _, method = case.partition("/")
        used = CHOSEN[method][EXPERIMENTS.index(experiment)]
        races = found.columns
        (at,) = np.flatnonzero(races.setting[0] == used)
        worse += bool(races.low[0][at] > 0.0)
        comparisons.append(
            JudgedComparison(
                name,
                f"{case}: mean of {_chosen(found):g}, the choice, minus that of {used:g}, as used",
                None,
                _interval(races, int(at)),
                None,
                "the choice itself" if races.chosen[0][at] else "",
            )
        )
    return JudgedClaim(
        f"{name}/used",
        "The settings of bbrl are those that tuning chose, or not told apart from them.",
        "Settings used that are worse than the choice beyond doubt: there is none. The differences "
        "in common worlds of the prior are measured only.",
        (
            JudgedComparison.of(
                name,
                "settings used that are worse than the choice beyond doubt",
                exact_number(worse, len(records)),
                NO_EXCEPTION,
            ),
            *comparisons,
        ),
    )


def _interval(races: TuningColumns, at: int) -> Estimate:
    """The race's own interval."""
    mean, low, high = (
        np.asarray(getattr(races, part)[0][at]) for part in ("difference", "low", "high")
    )
    return Estimate(mean, np.asarray(np.nan), low, high, int(races.worlds[0][at]), exact=True)
