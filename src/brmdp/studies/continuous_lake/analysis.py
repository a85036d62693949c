"""From the runs of ``continuous`` to regrets and judged claims.

The steps are divided at :data:`CUTS`: most is learned about the model in the first part, so later
regret comes more and more from the fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from brmdp._validation import FloatArray
from brmdp.report.claims import BELOW_ZERO, Claim, Comparison, JudgedClaim, Region, judge
from brmdp.report.curves import cumulative_true_regret, reported_steps
from brmdp.report.estimates import estimate
from brmdp.report.findings import Findings
from brmdp.report.statistics import SECONDS, TRUE_REGRET, Statistic
from brmdp.report.summary import agents_summary, interactions
from brmdp.report.tables import Table
from brmdp.runs import CaseRecords, Experiment, Replications

__all__ = ["SAMPLING", "analyse"]

ADAPTIVE, SAMPLING = "aq-brmdp", "continuing-psrl"
CONTROLS = ("posterior-mean", "brmdp-0.2", "brmdp-0.5")
CUTS = (0, 300, 1500, 4500)

PAPER_TIMES = 21.2, 5.5
"""Minutes per run of the two agents in the paper."""

MOST_TIMES = 3.0
"""How many times as long as Continuing PSRL a run of AQ-BRMDP may take."""


def analyse(
    experiment: Experiment, records: Mapping[str, CaseRecords | Replications[Any]]
) -> Findings:
    """Regrets of the agents, when the gain over Continuing PSRL arises, and its cost in time."""
    agents = interactions(records)
    return Findings(summary(experiment, agents), table(agents), claims(experiment.name, agents))


# --- parts of the run -----------------------------------------------------------------------------


def _part(first: int, last: int) -> Statistic:
    """True regret of the steps after ``first`` up to ``last``, or as far as they are reported."""

    def regret(records: CaseRecords, steps: int) -> FloatArray | None:
        curve = cumulative_true_regret(records)
        if curve is None or steps <= first:
            return None
        total = curve.after(min(last, steps))
        return total - curve.after(first) if first else total

    return Statistic(f"true regret of {_named(first, last)}", regret)


def _named(first: int, last: int) -> str:
    return f"steps {first + 1} to {last}"


PARTS = {_named(*ends): _part(*ends) for ends in pairwise(CUTS)}
"""True regret of each part of the run, by the steps that it covers."""


# --- summary --------------------------------------------------------------------------------------


def summary(experiment: Experiment, records: Mapping[str, CaseRecords]) -> dict[str, Any]:
    """The content of ``summary.json``: the agents, and the regret of each part of the run."""
    return {
        **agents_summary(experiment, records),
        "parts": {
            name: {part: _as_json(statistic.samples(found)) for part, statistic in PARTS.items()}
            for name, found in records.items()
        },
    }


def _as_json(samples: FloatArray | None) -> dict[str, Any] | None:
    return None if samples is None else estimate(samples).as_json()


def table(records: Mapping[str, CaseRecords]) -> Table:
    """True regret with 95 % intervals, of the run and of its parts, and time; a row per agent."""
    shown = {reported_steps(found) for found in records.values()}
    total = f"true regret, {shown.pop()} steps" if len(shown) == 1 else "true regret"
    rows = []
    for name, found in records.items():
        cells = [_cell(statistic.samples(found)) for statistic in (TRUE_REGRET, *PARTS.values())]
        rows.append((name, str(found.run.size), *cells, f"{found.seconds.mean():.1f}"))
    return Table(("agent", "runs", total, *PARTS, "s/run"), tuple(rows))


def _cell(samples: FloatArray | None) -> str:
    return "–" if samples is None else str(estimate(samples))


# --- claims ---------------------------------------------------------------------------------------


def claims(name: str, records: Mapping[str, CaseRecords]) -> tuple[JudgedClaim, ...]:
    """The paper's claim on regret and a demand on time, judged; other comparisons, measured."""
    return judge(_STATED, name, records)


_STATED = (
    Claim(
        "continuous/adaptive-regret",
        "AQ-BRMDP outperforms the continuous-state PSRL baseline with smaller cumulative true "
        "regret.",
        "Difference of the cumulative true regrets after the last step, run by run on common "
        "seeds.",
        (Comparison(TRUE_REGRET, ADAPTIVE, SAMPLING, claimed=BELOW_ZERO),),
    ),
    Claim(
        "continuous/where-it-arises",
        "The paper shows the curves, but does not say when they separate.",
        "The same difference for each part of the run; measured only.",
        tuple(Comparison(statistic, ADAPTIVE, SAMPLING) for statistic in PARTS.values()),
    ),
    Claim(
        "continuous/against-controls",
        "Not in the paper: AQ-BRMDP against the posterior mean of the targets and against fixed "
        "levels.",
        "Difference of the cumulative true regrets after the last step, on the runs that both "
        "have; measured only.",
        tuple(Comparison(TRUE_REGRET, ADAPTIVE, control) for control in CONTROLS),
    ),
    Claim(
        "continuous/time",
        "Required of this library, not claimed by the paper: a run of AQ-BRMDP takes at most "
        f"{MOST_TIMES:g} times as long as one of Continuing PSRL. The paper reports "
        f"{PAPER_TIMES[0]} and {PAPER_TIMES[1]} minutes, a difference mainly due to the quantiles.",
        "Ratio of the mean processor times per run, including the evaluation of true regret.",
        (
            Comparison(
                SECONDS,
                ADAPTIVE,
                SAMPLING,
                "ratio",
                Region(high=MOST_TIMES),
                paper=round(PAPER_TIMES[0] / PAPER_TIMES[1], 2),
            ),
        ),
    ),
)
