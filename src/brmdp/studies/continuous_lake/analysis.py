"""The continuous lake.

Regret of the agents, where the gain over Continuing PSRL arises, and what it costs in time.

The steps are cut at :data:`CUTS`: most is learned of the model in the first part, so later regret
is more and more the fit's.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from brmdp._validation import FloatArray
from brmdp.report.claims import BELOW_ZERO, Claim, Comparison, Region
from brmdp.report.curves import cumulative_true_regret, reported_steps
from brmdp.report.estimates import estimate
from brmdp.report.statistics import SECONDS, TRUE_REGRET, Statistic
from brmdp.report.summary import Table, summarise
from brmdp.runs import CaseRecords, Experiment, Replications

__all__ = ["CLAIMS", "SAMPLING", "interactions", "lake_summary", "lake_table"]

ADAPTIVE, SAMPLING = "aq-brmdp", "continuing-psrl"
CONTROLS = ("posterior-mean", "brmdp-0.2", "brmdp-0.5")
CUTS = (0, 300, 1500, 4500)

PAPER_TIMES = 21.2, 5.5
"""Minutes per run of the two agents."""

MOST_TIMES = 3.0
"""How many times that of Continuing PSRL the time of AQ-BRMDP may be."""


def _part(first: int, last: int) -> Statistic:
    """True regret of the steps after ``first`` up to ``last``, or as far as is shown."""

    def regret(records: CaseRecords, steps: int) -> FloatArray | None:
        if steps <= first:
            return None
        curve = cumulative_true_regret(records)
        total = curve.after(min(last, steps))
        return total - curve.after(first) if first else total

    return Statistic(f"true regret of {_named(first, last)}", regret)


def _named(first: int, last: int) -> str:
    return f"steps {first + 1} to {last}"


PARTS = {_named(*ends): _part(*ends) for ends in pairwise(CUTS)}

CLAIMS = (
    Claim(
        "continuous/adaptive-regret",
        "AQ-BRMDP outperforms the continuous-state PSRL baseline with smaller cumulative true "
        "regret.",
        "Cumulative true regret at the end, run by run on common seeds.",
        (Comparison(TRUE_REGRET, ADAPTIVE, SAMPLING, claimed=BELOW_ZERO),),
    ),
    Claim(
        "continuous/where-it-arises",
        "The paper shows curves and does not say where they part.",
        "The same difference, part by part; only measured.",
        tuple(Comparison(measure, ADAPTIVE, SAMPLING) for measure in PARTS.values()),
    ),
    Claim(
        "continuous/against-controls",
        "Not in the paper: AQ-BRMDP against the posterior mean of the targets and against fixed "
        "levels.",
        "Cumulative true regret at the end on the runs that both have; only measured.",
        tuple(Comparison(TRUE_REGRET, ADAPTIVE, control) for control in CONTROLS),
    ),
    Claim(
        "continuous/time",
        f"Asked of this library, not of the paper: a run of AQ-BRMDP takes at most {MOST_TIMES:g} "
        f"times as long as one of Continuing PSRL. The paper: {PAPER_TIMES[0]} and "
        f"{PAPER_TIMES[1]} minutes, mainly due to the quantiles.",
        "Ratio of the mean processor times per run, true regret included.",
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


def interactions(records: Mapping[str, CaseRecords | Replications]) -> dict[str, CaseRecords]:
    """The agents among the cases."""
    return {name: found for name, found in records.items() if isinstance(found, CaseRecords)}


def lake_summary(
    experiment: Experiment, records: Mapping[str, CaseRecords | Replications]
) -> dict[str, Any]:
    """What ``summary.json`` holds: that of every comparison of agents, and regret part by part."""
    agents = interactions(records)
    return {
        **summarise(experiment, agents),
        "parts": {
            name: {part: _as_json(measure.samples(found)) for part, measure in PARTS.items()}
            for name, found in agents.items()
        },
    }


def _as_json(samples: FloatArray | None) -> dict[str, Any] | None:
    return None if samples is None else estimate(samples).as_json()


def lake_table(records: Mapping[str, CaseRecords | Replications]) -> Table:
    """True regret, in all and part by part, with 95 % intervals, and time per run.

    One row per agent.
    """
    agents = interactions(records)
    shown = {reported_steps(found) for found in agents.values()}
    total = f"true regret, {shown.pop()} steps" if len(shown) == 1 else "true regret"
    rows = []
    for name, found in agents.items():
        cells = [_cell(measure.samples(found)) for measure in (TRUE_REGRET, *PARTS.values())]
        rows.append((name, str(found.run.size), *cells, f"{found.seconds.mean():.1f}"))
    return Table(("agent", "runs", total, *PARTS, "s/run"), tuple(rows))


def _cell(samples: FloatArray | None) -> str:
    return "–" if samples is None else str(estimate(samples))
