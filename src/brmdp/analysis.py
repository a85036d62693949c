"""The former name of :mod:`brmdp.report`."""

from typing import Any

from brmdp._renamed import former_name

# ruff: noqa: F822 (__getattr__ finds these names)
__all__ = [
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
]


def __getattr__(name: str) -> Any:
    return former_name(__name__, name)
