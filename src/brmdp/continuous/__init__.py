"""The continuous-state extension: a parametric belief, fitted Q iteration, and agents.

The environment, the belief and the true values need NumPy and numba alone. The agents need JAX and
optax, the extra ``continuous``; they are imported on first use, and the error says what to install
if a package is missing.
"""

from typing import TYPE_CHECKING, Any

from brmdp._extras import optional

if TYPE_CHECKING:
    from brmdp.continuous.agent import (
        ContinuousActionReport,
        ContinuousAgent,
        ContinuousReport,
        NetworkPolicy,
    )
    from brmdp.continuous.belief import LakeBelief
    from brmdp.continuous.environment import ContinuousFrozenLakeEnv
    from brmdp.continuous.lake import LakeParameters
    from brmdp.continuous.lake_model import LakeModel
    from brmdp.continuous.model import ParametricBelief, ParametricModel
    from brmdp.continuous.oracle import LakeValues, optimal_values, policy_values
    from brmdp.continuous.presets import (
        aq_brmdp,
        continuing_psrl,
        fixed_quantile,
        posterior_mean,
    )
    from brmdp.continuous.schedule import UncertaintyLevel
    from brmdp.continuous.settings import FittedQ
    from brmdp.continuous.simulation import LakeHistory, follow_lake, simulate_lake

__all__ = [
    "ContinuousActionReport",
    "ContinuousAgent",
    "ContinuousFrozenLakeEnv",
    "ContinuousReport",
    "FittedQ",
    "LakeBelief",
    "LakeHistory",
    "LakeModel",
    "LakeParameters",
    "LakeValues",
    "NetworkPolicy",
    "ParametricBelief",
    "ParametricModel",
    "UncertaintyLevel",
    "aq_brmdp",
    "continuing_psrl",
    "fixed_quantile",
    "follow_lake",
    "optimal_values",
    "policy_values",
    "posterior_mean",
    "simulate_lake",
]

_MODULES = {
    "agent": ("ContinuousActionReport", "ContinuousAgent", "ContinuousReport", "NetworkPolicy"),
    "environment": ("ContinuousFrozenLakeEnv",),
    "lake": ("LakeParameters",),
    "lake_model": ("LakeModel",),
    "model": ("ParametricBelief", "ParametricModel"),
    "oracle": ("LakeValues", "optimal_values", "policy_values"),
    "belief": ("LakeBelief",),
    "presets": ("aq_brmdp", "continuing_psrl", "fixed_quantile", "posterior_mean"),
    "schedule": ("UncertaintyLevel",),
    "settings": ("FittedQ",),
    "simulation": ("LakeHistory", "follow_lake", "simulate_lake"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(optional(f"brmdp.continuous.{module}", "continuous"), name)
    from brmdp._renamed import former_name

    return former_name(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
