"""From records to numbers: curves, intervals, comparisons, claims."""

from brmdp.analysis.claims import CLAIMS
from brmdp.analysis.curves import (
    Curve,
    cumulative_reward,
    cumulative_robust_regret,
    cumulative_true_regret,
    moving_average_reward,
    occupancy,
    quantile_value,
)
from brmdp.analysis.estimates import Estimate, estimate
from brmdp.analysis.judgement import Claim, Comparison, JudgedClaim, Region, Verdict, judge, merged
from brmdp.analysis.summary import summarise

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
