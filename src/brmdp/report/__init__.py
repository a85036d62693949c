"""From the records of runs to curves, intervals, comparisons, judged claims and figures.

Only the modules that draw load matplotlib: style, drawing, panels, layouts, normal_plot and
writing.
"""

from brmdp.report.claims import (
    Claim,
    Comparison,
    JudgedClaim,
    JudgedComparison,
    Region,
    Verdict,
    judge,
    merged,
)
from brmdp.report.curves import (
    Curve,
    accumulated,
    cumulative_reward,
    cumulative_robust_regret,
    cumulative_true_regret,
    moving_average_reward,
    occupancy,
    quantile_value,
)
from brmdp.report.estimates import Estimate, estimate, exact_number, proportion
from brmdp.report.findings import Findings
from brmdp.report.statistics import Statistic
from brmdp.report.summary import compare_agents, heading
from brmdp.report.tables import Table

__all__ = [
    "Claim",
    "Comparison",
    "Curve",
    "Estimate",
    "Findings",
    "JudgedClaim",
    "JudgedComparison",
    "Region",
    "Statistic",
    "Table",
    "Verdict",
    "accumulated",
    "compare_agents",
    "cumulative_reward",
    "cumulative_robust_regret",
    "cumulative_true_regret",
    "estimate",
    "exact_number",
    "heading",
    "judge",
    "merged",
    "moving_average_reward",
    "occupancy",
    "proportion",
    "quantile_value",
]
