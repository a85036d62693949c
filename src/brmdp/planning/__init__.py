"""Planning: one solver for every belief and measure, and the guarantees that follow."""

from brmdp.planning.planner import Backup, backup, evaluate, evaluate_policy, plan, solve
from brmdp.planning.solution import Solution

__all__ = ["Backup", "Solution", "backup", "evaluate", "evaluate_policy", "plan", "solve"]
