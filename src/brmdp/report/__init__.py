"""From records to numbers: curves, intervals, comparisons, claims."""

from brmdp.report.claims import Claim, Comparison, JudgedClaim, Region, Verdict, judge, merged
from brmdp.report.curves import (
    Curve,
    cumulative_reward,
    cumulative_robust_regret,
    cumulative_true_regret,
    moving_average_reward,
    occupancy,
    quantile_value,
)
from brmdp.report.estimates import Estimate, estimate
from brmdp.report.summary import summarise
from brmdp.studies.paper.analysis import CLAIMS

__all__ = [
    "CLAIMS",
    "Claim",
    "Comparison",
    "Curve",
    "Estimate",
    "JudgedClaim",
    "Region",
    "Verdict",
    "cumulative_reward",
    "cumulative_robust_regret",
    "cumulative_true_regret",
    "estimate",
    "judge",
    "merged",
    "moving_average_reward",
    "occupancy",
    "quantile_value",
    "summarise",
]
