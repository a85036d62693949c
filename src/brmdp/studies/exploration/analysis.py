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
from brmdp.report.estimates import estimate
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
    """One row per world and method, within a world in the order of mean regret.

    Regrets are in units of the world's largest reward.
    """
    rows = []
    for world in WORLDS:
        found = []
        for agent in AGENTS:
            record = records.get(f"{world}/{agent}")
            regret = None if record is None else TRUE_REGRET.samples(record)
            if record is not None and regret is not None:
                found.append((record, regret / WORLDS[world].largest))
        for record, regret in sorted(found, key=lambda pair: float(pair[1].mean())):
            share = LATE_SHARE.samples(record)
            known = share is not None and np.isfinite(share).all()
            rows.append(
                (
                    f"{world}, {record.case.label}",
                    str(estimate(regret)),
                    f"{share.mean():.2f}" if share is not None and known else "–",
                    f"{float(record.seconds.mean()):.2g}",
                )
            )
    return Table(("world, method", "regret", "late share", "s/run"), tuple(rows))
