"""Totals, checkpoints and pairwise differences of an experiment.

As JSON, as text for a terminal, and as Markdown.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from brmdp.report.claims import CLAIM_ERROR, JudgedClaim, JudgedComparison, Verdict
from brmdp.report.curves import (
    Curve,
    cumulative_reward,
    cumulative_robust_regret,
    cumulative_true_regret,
    occupancy,
    quantile_value,
    reported_steps,
)
from brmdp.report.estimates import estimate
from brmdp.report.statistics import QUANTILE_VALUE
from brmdp.runs import Case, CaseRecords, Experiment, Replications

__all__ = [
    "TERMINAL",
    "Table",
    "claims_as_markdown",
    "claims_as_text",
    "count_of_runs",
    "error_statement",
    "same_world",
    "summarise",
    "summary_table",
    "verdict_counts",
]

CHECKPOINT_EVERY = 500
TERMINAL = 100
"""Columns."""

TOTALS = {
    "true_regret": cumulative_true_regret,
    "robust_regret": cumulative_robust_regret,
    "reward": cumulative_reward,
}


def summarise(experiment: Experiment, records: Mapping[str, CaseRecords]) -> dict[str, Any]:
    """What ``summary.json`` holds.

    Parameters
    ----------
    experiment : Experiment
    records : mapping
        Records by case name; cases without records are left out.
    """
    present = {case.name: records[case.name] for case in experiment.cases if case.name in records}
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "runs": min((found.run.size for found in present.values()), default=0),
        "parameters": {
            "seed": experiment.seed,
            "cases": {case.name: case.describe() for case in experiment.cases},
        },
        "agents": {name: _agent(found) for name, found in present.items()},
        "differences": [
            _difference(present[first], present[second])
            for first, second in combinations(present, 2)
            if same_world(present[first].case, present[second].case)
        ],
    }


def same_world(first: Case, second: Case) -> bool:
    """Whether two cases act in the same environment, so that their regrets can be compared."""
    return (first.environment, dict(first.environment_parameters), first.discount) == (
        second.environment,
        dict(second.environment_parameters),
        second.discount,
    )


def _agent(records: CaseRecords) -> dict[str, Any]:
    shown = reported_steps(records)
    totals = {name: _with_checkpoints(curve(records), shown) for name, curve in TOTALS.items()}
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
    """``first`` − ``second`` on common seeds."""
    shown = min(reported_steps(first), reported_steps(second))
    content: dict[str, Any] = {"first": first.case.name, "second": second.case.name}
    for name, curve in TOTALS.items():
        mine, theirs = curve(first), curve(second)
        gap = None if mine is None or theirs is None else mine - theirs
        content["runs"] = content.get("runs", 0) if gap is None else int(gap.run.size)
        content[name] = _with_checkpoints(gap, shown)
    return content


def _with_checkpoints(curve: Curve | None, shown: int) -> dict[str, Any] | None:
    """The total over all steps, and over the first 500, 1000, … and the shown ones."""
    if curve is None:
        return None
    last = int(curve.step[-1])
    points = sorted({*range(CHECKPOINT_EVERY, last + 1, CHECKPOINT_EVERY), min(shown, last)})
    return {
        **estimate(curve.after(last)).as_json(),
        "checkpoints": {str(point): estimate(curve.after(point)).as_json() for point in points},
    }


def _quantile_value(records: CaseRecords, steps: int) -> dict[str, Any] | None:
    """The mean over the diagnostic times, and at each of them."""
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


@dataclass(frozen=True)
class Table:
    """Rows of text under a header.

    Attributes
    ----------
    header : tuple of str
    rows : tuple of tuples of str
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def as_text(self) -> str:
        """Aligned columns: the first to the left, the others to the right.

        Long names on lines of their own.
        """
        lines = [self.header, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.header))]
        if sum(widths) + 2 * (len(widths) - 1) > TERMINAL:
            lines = [
                part
                for name, *cells in lines
                for part in ((name, *("" for _ in cells)), ("", *cells))
            ]
            widths[0] = 0
        aligned = []
        for line in lines:
            cells = [
                line[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)),
            ]
            aligned.append("  ".join(cells).rstrip())
        return "\n".join(aligned)

    def as_markdown(self, *, numbers: bool = True) -> str:
        """A Markdown table; columns of ``numbers`` stand to the right, but for the first."""
        alignment = (":--", *("--:" if numbers else ":--" for _ in self.header[1:]))
        return "\n".join(
            "| " + " | ".join(line) + " |" for line in (self.header, alignment, *self.rows)
        )


def summary_table(records: Mapping[str, CaseRecords]) -> Table:
    """Final regrets with 95 % intervals and time, one row per case.

    Regret at the shown steps too where figures are cut.
    """
    shown = {reported_steps(found) for found in records.values()}
    cut = any(reported_steps(found) < found.reward.shape[1] for found in records.values())
    robust = any(found.robust_regret is not None for found in records.values())
    first = f"{shown.pop()} steps" if len(shown) == 1 else "shown steps"

    def row(name: str, found: CaseRecords) -> tuple[str, ...]:
        last = int(found.reward.shape[1])
        regret = cumulative_true_regret(found)
        cells = [_cell(regret, reported_steps(found))] if cut else []
        cells.append(_cell(regret, last))
        cells += [_cell(cumulative_robust_regret(found), last)] if robust else []
        return (name, *cells, f"{found.seconds.mean():.2f}" if found.seconds.size else "–")

    header = ["agent", *([f"true regret, {first}"] if cut else []), "true regret, total"]
    header += [*(["robust regret, total"] if robust else []), "s/run"]
    return Table(tuple(header), tuple(row(name, found) for name, found in records.items()))


def _cell(curve: Curve | None, step: int) -> str:
    return "–" if curve is None else str(estimate(curve.after(step)))


_SHORT = {
    Verdict.MEASURED: "measured",
    Verdict.REPRODUCED: "reproduced",
    Verdict.NOT_RESOLVED: "not resolved",
    Verdict.CONTRADICTED: "contradicted",
}
_VERDICT_WIDTH = max(map(len, _SHORT.values())) + 2


def claims_as_text(claims: Sequence[JudgedClaim]) -> str:
    """Claims with verdicts and numbers, for a terminal of 100 columns."""
    lines = []
    for claim in claims:
        lines += _wrapped(_SHORT[claim.verdict].ljust(_VERDICT_WIDTH), claim.paper)
        for comparison in claim.comparisons:
            verdict = (
                _SHORT[comparison.verdict]
                if len(claim.comparisons) > 1 and comparison.claimed
                else ""
            )
            margin = "  " + verdict.ljust(_VERDICT_WIDTH)
            lines += _wrapped(margin, _quantity(claim, comparison))
            lines += _wrapped(" " * (len(margin) + 2), comparison.numbers())
    return "\n".join(lines)


def _quantity(claim: JudgedClaim, comparison: JudgedComparison) -> str:
    """What was compared, and where if that is not clear."""
    where = f"{comparison.experiment}, " if len(claim.experiments) > 1 else ""
    return f"{where}{comparison.quantity}"


def _wrapped(margin: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        TERMINAL,
        initial_indent=margin,
        subsequent_indent=" " * len(margin),
        break_on_hyphens=False,
    )


def count_of_runs(records: Mapping[str, CaseRecords | Replications]) -> str:
    """How many runs there are of each case, in words; of each agent, where agents are compared."""
    agents = [found for found in records.values() if isinstance(found, CaseRecords)]
    runs = sorted({int(found.run.size) for found in agents or records.values()})
    counted = str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    return f"{counted} run{'' if runs == [1] else 's'}"


def verdict_counts(claims: Sequence[JudgedClaim]) -> str:
    """How many claims have each verdict, in words."""
    counts = Counter(claim.verdict for claim in claims)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def error_statement(claims: Sequence[JudgedClaim]) -> str:
    """How often a verdict on these claims is wrong, in words; "" where none is left to chance."""
    count = sum(claim.error_rate == CLAIM_ERROR for claim in claims)
    if count == 0:
        return ""
    are = "claim is" if count == 1 else "claims are"
    expected = (
        ""
        if count == 1
        else f"; of {count}, up to {CLAIM_ERROR * count:.2g} wrong verdicts must be expected"
    )
    return (
        f"{count} {are} judged by numbers subject to chance. The intervals of one claim hold "
        f"jointly with probability {1.0 - CLAIM_ERROR:g}: each of m has confidence 1 − "
        f"{CLAIM_ERROR:g}/m, given where it is not 95 %. So a verdict is wrong with probability at "
        f"most {CLAIM_ERROR:g} per claim{expected}. This assumes that no small group of runs went "
        "unseen that would change the means; where such a group could undo a verdict without lying "
        "beyond the runs seen, the verdict says so."
    )


def claims_as_markdown(claims: Sequence[JudgedClaim]) -> str:
    """A Markdown table.

    Where, what the paper says, how that was tested, the numbers, the verdict.
    """
    rows = []
    for claim in claims:
        several = len(claim.comparisons) > 1
        found = "<br>".join(
            f"{_quantity(claim, comparison)}: {comparison.numbers()}"
            + (f" → {_SHORT[comparison.verdict]}" if several and comparison.claimed else "")
            for comparison in claim.comparisons
        )
        rows.append(
            (", ".join(claim.experiments), claim.paper, claim.test, found, f"**{claim.verdict}**")
        )
    header = ("experiment", "the paper says", "tested as", "found: mean [interval]", "verdict")
    return Table(header, tuple(rows)).as_markdown(numbers=False)
