"""Planning: one solver for every belief and measure, and the guarantees that follow."""

from brmdp.planning.guarantees import (
    Certificate,
    PosteriorQuantileValue,
    certified_level,
    certify,
    posterior_quantile_value,
)
from brmdp.planning.planner import (
    Backup,
    Problem,
    backup,
    evaluate,
    evaluate_policies,
    evaluate_policy,
    plan,
    solve,
)
from brmdp.planning.prior import PriorReliance, prior_reliance
from brmdp.planning.solution import Solution

__all__ = [
    "Backup",
    "Certificate",
    "PosteriorQuantileValue",
    "PriorReliance",
    "Problem",
    "Solution",
    "backup",
    "certified_level",
    "certify",
    "evaluate",
    "evaluate_policies",
    "evaluate_policy",
    "plan",
    "posterior_quantile_value",
    "prior_reliance",
    "solve",
]
