"""Planning: one solver for every belief and risk measure, and the guarantees it gives."""

from typing import Any

from brmdp.planning.finite_horizon import HorizonSolution
from brmdp.planning.guarantees import (
    Certificate,
    PosteriorQuantileValue,
    certified_level,
    certify_nested,
    posterior_quantile_value,
)
from brmdp.planning.many import plan_many
from brmdp.planning.planner import (
    Backup,
    Problem,
    backup,
    evaluate_all_in_mdp,
    evaluate_in_mdp,
    evaluate_under_belief,
    plan,
    solve,
)
from brmdp.planning.prior import PriorReliance, prior_reliance
from brmdp.planning.solution import Solution
from brmdp.planning.trees import SearchResult

__all__ = [
    "Backup",
    "Certificate",
    "HorizonSolution",
    "PosteriorQuantileValue",
    "PriorReliance",
    "Problem",
    "SearchResult",
    "Solution",
    "backup",
    "certified_level",
    "certify_nested",
    "evaluate_all_in_mdp",
    "evaluate_in_mdp",
    "evaluate_under_belief",
    "plan",
    "plan_many",
    "posterior_quantile_value",
    "prior_reliance",
    "solve",
]


def __getattr__(name: str) -> Any:
    from brmdp._renamed import former_name

    return former_name(__name__, name)
