"""Comparing agents: totals, checkpoints and pairwise differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from brmdp.report.claims import Claim, judge
from brmdp.report.curves import Curve, accumulated, occupancy, quantile_value, reported_steps
from brmdp.report.estimates import estimate
from brmdp.report.findings import Findings
from brmdp.report.statistics import QUANTILE_VALUE
from brmdp.report.tables import Table
from brmdp.runs import Case, CaseRecords, Experiment, Replications, columns_of
from brmdp.simulation import Steps

__all__ = [
    "agents_summary",
    "agents_table",
    "compare_agents",
    "count_of_runs",
    "heading",
    "interactions",
    "label_of",
    "same_world",
]

CHECKPOINT_EVERY = 500
"""Number of steps between two checkpoints of a total."""

TOTALS = tuple(
    sorted(
        (one for one in columns_of(Steps) if one.total), key=lambda one: "regret" not in one.total
    )
)
"""Columns with a meaningful sum over the steps, regrets first."""


def heading(
    experiment: Experiment, records: Mapping[str, CaseRecords | Replications[Any]]
) -> dict[str, Any]:
    """The part with which every ``summary.json`` begins.

    ``runs`` holds the smallest and the largest number of runs of any case.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records("mean")
    >>> from brmdp.report import heading
    >>> heading(store.experiment, {"mean": records})["runs"]
    {'least': 2, 'most': 2}
    """
    runs = [int(found.run.size) for found in records.values()]
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "runs": {"least": min(runs, default=0), "most": max(runs, default=0)},
        "parameters": {
            "seed": experiment.seed,
            "cases": {case.name: case.describe() for case in experiment.cases},
        },
    }


def interactions(
    records: Mapping[str, CaseRecords | Replications[Any]],
) -> dict[str, CaseRecords]:
    """The records of those cases in which an agent acts."""
    return {name: found for name, found in records.items() if isinstance(found, CaseRecords)}


def compare_agents(
    experiment: Experiment,
    records: Mapping[str, CaseRecords | Replications[Any]],
    claims: tuple[Claim, ...] = (),
) -> Findings:
    """Compare agents by their regrets, and judge the claims about them.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records("mean")
    >>> from brmdp.report import compare_agents
    >>> findings = compare_agents(store.experiment, {"mean": records})
    >>> findings.table.header[0]
    'agent'
    """
    agents = interactions(records)
    return Findings(
        summary=agents_summary(experiment, agents),
        table=agents_table(agents),
        claims=judge(claims, experiment.name, agents),
    )


def agents_summary(experiment: Experiment, records: Mapping[str, CaseRecords]) -> dict[str, Any]:
    """The content of ``summary.json`` for agents.

    Parameters
    ----------
    experiment : Experiment
    records : mapping
        Records by case name; cases without records are left out.
    """
    present = {case.name: records[case.name] for case in experiment.cases if case.name in records}
    return {
        **heading(experiment, present),
        "agents": {name: _agent(found) for name, found in present.items()},
        "differences": [
            _difference(present[first], present[second])
            for first, second in combinations(present, 2)
            if same_world(present[first].case, present[second].case)
        ],
    }


def same_world(first: Case, second: Case) -> bool:
    """Whether two cases act in the same environment, so that their regrets can be compared."""
    return first.environment_key() == second.environment_key()


def _agent(records: CaseRecords) -> dict[str, Any]:
    shown = reported_steps(records)
    totals = {one.name: _with_checkpoints(accumulated(records, one.name), shown) for one in TOTALS}
    steps = int(records.reward.shape[1])
    return {
        **totals,
        "quantile_value": _quantile_value(records, steps),
        "occupancy": {"steps": shown, **estimate(occupancy(records, shown)).as_json()},
        "seconds_per_run": estimate(records.seconds).as_json()["mean"],
        "runs": int(records.run.size),
        "steps": steps,
    }


def _difference(first: CaseRecords, second: CaseRecords) -> dict[str, Any]:
    """The difference ``first`` − ``second`` on common seeds."""
    shown = min(reported_steps(first), reported_steps(second))
    content: dict[str, Any] = {"first": first.case.name, "second": second.case.name}
    for one in TOTALS:
        mine, theirs = accumulated(first, one.name), accumulated(second, one.name)
        gap = None if mine is None or theirs is None else mine - theirs
        content["runs"] = content.get("runs", 0) if gap is None else int(gap.run.size)
        content[one.name] = _with_checkpoints(gap, shown)
    return content


def _with_checkpoints(curve: Curve | None, shown: int) -> dict[str, Any] | None:
    """The total over all steps, over the first 500, 1000, …, and over the reported steps."""
    if curve is None:
        return None
    last = int(curve.step[-1])
    points = sorted({*range(CHECKPOINT_EVERY, last + 1, CHECKPOINT_EVERY), min(shown, last)})
    return {
        **estimate(curve.after(last)).as_json(),
        "checkpoints": {str(point): estimate(curve.after(point)).as_json() for point in points},
    }


def _quantile_value(records: CaseRecords, steps: int) -> dict[str, Any] | None:
    """The quantile value averaged over the diagnostic times, and at each of them."""
    curve = quantile_value(records)
    average = QUANTILE_VALUE.of(records, steps)
    if curve is None or average is None:
        return None
    at_all = curve.estimate()
    return {
        "level": records.case.quantile_level,
        **estimate(average).as_json(),
        "checkpoints": {
            str(step): at_all.at(position).as_json() for position, step in enumerate(curve.step)
        },
    }


def agents_table(records: Mapping[str, CaseRecords]) -> Table:
    """A table of total regrets with 95 % intervals, and of the time per run; one row per agent.

    If figures show only the first steps, the regret over those steps has a column of its own.
    Agents without regrets are compared by their rewards.
    """
    shown = {reported_steps(found) for found in records.values()}
    cut = any(reported_steps(found) < found.reward.shape[1] for found in records.values())
    first = f"{shown.pop()} steps" if len(shown) == 1 else "reported steps"
    recorded = [
        one.name
        for one in TOTALS
        if any(getattr(found, one.name) is not None for found in records.values())
    ]
    compared = [name for name in recorded if name != "reward"] or ["reward"]
    named = {one.name: one.total for one in TOTALS}
    times = Counter(label_of(found.case) for found in records.values())

    def row(found: CaseRecords) -> tuple[str, ...]:
        last = int(found.reward.shape[1])
        cells = [_cell(found, compared[0], reported_steps(found))] if cut else []
        cells += [_cell(found, column, last) for column in compared]
        time = f"{found.seconds.mean():.2f}" if found.seconds.size else "–"
        # in different environments, cases may have equal labels
        label = label_of(found.case)
        return (found.case.name if times[label] > 1 else label, *cells, time)

    header = ["agent", *([f"{named[compared[0]]}, {first}"] if cut else [])]
    header += [*(f"{named[column]}, total" for column in compared), "s/run"]
    return Table(tuple(header), tuple(map(row, records.values())))


def _cell(records: CaseRecords, column: str, step: int) -> str:
    curve = accumulated(records, column)
    return "–" if curve is None else str(estimate(curve.after(step)))


def label_of(case: Case) -> str:
    """The name of a case in tables and figures."""
    return case.label or case.name


def count_of_runs(records: Mapping[str, CaseRecords | Replications[Any]]) -> str:
    """The number of runs of each case, in words; where agents are compared, only theirs count."""
    agents = [found for found in records.values() if isinstance(found, CaseRecords)]
    runs = sorted({int(found.run.size) for found in agents or records.values()})
    counted = str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    return f"{counted} run{'' if runs == [1] else 's'}"
