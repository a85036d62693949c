"""From the runs of ``exploration`` to regrets, their growth, and judged claims.

The paper says nothing about most of these worlds and methods: the statements are ours, made before
the runs. All comparisons within a world are paired on common seeds. How regret grows with time is
read off the *late share* (:data:`brmdp.report.statistics.LATE_SHARE`), how it grows with the world
off the ratio of mean regrets in the largest and the smallest world of a family.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from brmdp.report.claims import Claim, Comparison, Region, judge
from brmdp.report.estimates import Estimate, estimate
from brmdp.report.findings import Findings
from brmdp.report.statistics import LATE_SHARE, TRUE_REGRET
from brmdp.report.summary import agents_summary, interactions
from brmdp.report.tables import Table
from brmdp.runs import CaseRecords, Experiment
from brmdp.studies.exploration.experiment import (
    ADAPTIVE,
    AGENTS,
    FAMILIES,
    LEARNING,
    MEAN,
    OPTIMISTS,
    SAMPLING,
    VISITS,
    WORLDS,
)
from brmdp.studies.study import Records

__all__ = ["CLAIMS", "analyse"]

BELOW_ONE = Region(high=1.0)
LINEAR = Region(0.45, 0.55)
HARDEST = "deep-sea-8"


def _ratio(world: str, agent: str, baseline: str, claimed: Region | None = None) -> Comparison:
    return Comparison(TRUE_REGRET, f"{world}/{agent}", f"{world}/{baseline}", "ratio", claimed)


CLAIMS = (
    Claim(
        "exploration/not-above-sampling",
        "The paper finds that AQ-BRMDP has less regret than Continuing PSRL in RiverSwim-6 and "
        "RiverSwim-10; with this prior and discount, it has less in all three rivers.",
        "Ratio of the mean cumulative true regrets, below 1 in each of them.",
        tuple(_ratio(world, ADAPTIVE, SAMPLING, BELOW_ONE) for world in FAMILIES["riverswim"]),
    ),
    Claim(
        "exploration/depth-needs-curiosity",
        "Not in the paper: in the deepest sea, every method with a bonus, a confidence bound or "
        "draws has less regret than ε-greedy Q-learning.",
        "Ratios of the mean cumulative true regrets, below 1.",
        tuple(
            _ratio(HARDEST, agent, LEARNING, BELOW_ONE)
            for agent in (*OPTIMISTS, SAMPLING)
            if agent != "cvar-bonus"
        ),
    ),
    Claim(
        "exploration/no-curiosity-no-treasure",
        "Not in the paper: Q-learning does not find the treasure of the deepest sea, so its regret "
        "grows linearly.",
        "Between 0.45 and 0.55 of the mean regret falls in the second half of the steps.",
        (Comparison(LATE_SHARE, f"{HARDEST}/{LEARNING}", "", "value", LINEAR),),
    ),
    Claim(
        "exploration/visit-levels",
        "Not in the paper: levels Φ(0.5/√(n₀ + n)) that fall with visits have less regret than the "
        "posterior mean; nothing is claimed about AQ-BRMDP.",
        "Ratios of the mean cumulative true regrets, below 1 in every world.",
        tuple(_ratio(world, VISITS, MEAN, BELOW_ONE) for world in WORLDS),
    ),
    Claim(
        "exploration/against-the-paper",
        "Not in the paper: what each method costs or saves against AQ-BRMDP; nothing is claimed.",
        "Ratios of the mean cumulative true regrets, measured only.",
        tuple(
            _ratio(world, agent, ADAPTIVE)
            for world in WORLDS
            for agent in AGENTS
            if agent != ADAPTIVE
        ),
    ),
    Claim(
        "exploration/growth-with-size",
        "Not in the paper: how regret grows with the size of the world; nothing is claimed.",
        "Mean regret in the largest world of a family divided by that in its smallest, measured "
        "only. In DeepSea the number of dives is the same, in RiverSwim that of steps.",
        tuple(
            Comparison(TRUE_REGRET, f"{worlds[-1]}/{agent}", f"{worlds[0]}/{agent}", "ratio")
            for worlds in (FAMILIES["deep-sea"], FAMILIES["riverswim"])
            for agent in AGENTS
        ),
    ),
)


def analyse(experiment: Experiment, records: Records) -> Findings:
    """Regrets of all methods in all worlds, and the claims about them."""
    agents = interactions(records)
    return Findings(
        summary={**agents_summary(experiment, agents), "late_share": _late_shares(agents)},
        table=table(agents),
        claims=judge(CLAIMS, experiment.name, agents),
    )


def _late_shares(records: dict[str, CaseRecords]) -> dict[str, Any]:
    found = {name: LATE_SHARE.samples(one) for name, one in records.items()}
    return {name: None if x is None else estimate(x).as_json() for name, x in found.items()}


def table(records: dict[str, CaseRecords]) -> Table:
    """One row per method: regret per world, in units of the largest reward, and time.

    Cells are means with half the width of their 95 % intervals, and the late share in brackets.
    """
    worlds = [world for world in WORLDS if any(name.startswith(f"{world}/") for name in records)]
    rows = []
    for agent in AGENTS:
        own = {world: records.get(f"{world}/{agent}") for world in worlds}
        present = [found for found in own.values() if found is not None]
        if not present:
            continue
        seconds = sum(float(found.seconds.mean()) for found in present)
        cells = [_cell(found, WORLDS[world].largest) for world, found in own.items()]
        rows.append((present[0].case.label, *cells, f"{seconds:.1f}"))
    return Table(("regret (late share)", *worlds, "s, all worlds"), tuple(rows))


def _cell(found: CaseRecords | None, largest: float) -> str:
    regret = None if found is None else TRUE_REGRET.samples(found)
    if found is None or regret is None:
        return "–"
    size, share = estimate(regret / largest), LATE_SHARE.samples(found)
    late = "" if share is None or not np.isfinite(share).all() else f" ({share.mean():.2f})"
    return f"{_with_reach(size)}{late}"


def _with_reach(size: Estimate) -> str:
    mean = f"{float(size.mean):.3g}"
    return f"{mean} ± {float(size.reach.max()):.2g}" if size.has_interval else mean
