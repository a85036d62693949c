"""From the runs of ``unknown-rewards`` to regrets and judged claims.

The paper assumes known rewards, so nothing here is its claim: the statements are ours, made after a
look at a few runs. All comparisons are paired on common seeds.

How regret grows is read off the *late share*: the part of the mean regret that falls in the second
half of the steps. For regret that grows as T^p it is 1 − 2^(−p): 0.5 if it is linear, 0.29 for √T,
and less for a logarithm. Between 0.45 and 0.55 the growth counts as linear (p from 0.86 to 1.15),
as in the study of the paper's claims. It is a ratio of means over the runs, since a single run may
have no regret to divide by.
"""

from __future__ import annotations

from brmdp.report.claims import Claim, Comparison, Region
from brmdp.report.findings import Findings
from brmdp.report.statistics import LATE_SHARE, TRUE_REGRET
from brmdp.report.summary import compare_agents
from brmdp.runs import Experiment
from brmdp.studies.study import Records
from brmdp.studies.unknown_rewards.experiment import (
    ADAPTIVE,
    BANDIT,
    HIGH,
    LOW,
    MEAN,
    RIVER,
    SAMPLING,
)

__all__ = ["CLAIMS", "analyse"]

LINEAR = Region(0.45, 0.55)
SUBLINEAR = Region(high=0.45)
NOT_ABOVE = Region(high=1.0)


def _ratio(world: str, case: str, baseline: str, claimed: Region | None = None) -> Comparison:
    return Comparison(TRUE_REGRET, f"{world}/{case}", f"{world}/{baseline}", "ratio", claimed)


CLAIMS = (
    Claim(
        "unknown-rewards/not-above-sampling",
        "Not in the paper: where rewards are unknown too, AQ-BRMDP's regret is not above that of "
        "posterior sampling (on the bandit, Thompson sampling).",
        "Ratio of the mean cumulative true regrets, below 1 in both worlds.",
        tuple(_ratio(world, ADAPTIVE, SAMPLING, NOT_ABOVE) for world in (BANDIT, RIVER)),
    ),
    Claim(
        "unknown-rewards/caution-gets-stuck",
        "Not in the paper: a fixed low level and the posterior mean stop trying other arms, so "
        "their regret on the bandit grows linearly.",
        "Between 0.45 and 0.55 of their mean regret falls in the second half of the steps.",
        tuple(
            Comparison(LATE_SHARE, f"{BANDIT}/{case}", "", "value", LINEAR) for case in (LOW, MEAN)
        ),
    ),
    Claim(
        "unknown-rewards/curiosity-learns",
        "Not in the paper: AQ-BRMDP, a fixed high level and posterior sampling keep trying, so "
        "their regret on the bandit grows more slowly than linearly.",
        "Less than 0.45 of their mean regret falls in the second half of the steps.",
        tuple(
            Comparison(LATE_SHARE, f"{BANDIT}/{case}", "", "value", SUBLINEAR)
            for case in (ADAPTIVE, HIGH, SAMPLING)
        ),
    ),
    Claim(
        "unknown-rewards/fixed-levels",
        "Not in the paper: what fixed levels and the posterior mean cost or save against "
        "AQ-BRMDP; nothing is claimed.",
        "Ratio of the mean cumulative true regrets, measured only.",
        tuple(
            _ratio(world, case, ADAPTIVE) for world in (BANDIT, RIVER) for case in (HIGH, LOW, MEAN)
        ),
    ),
)


def analyse(experiment: Experiment, records: Records) -> Findings:
    """Compare the agents and judge the claims about them."""
    return compare_agents(experiment, records, CLAIMS)
