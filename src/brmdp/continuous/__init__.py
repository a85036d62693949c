"""The continuous-state extension: a parametric belief, fitted Q iteration, and the agents built from them.

Environment, posterior and truth need NumPy alone. The agents need JAX and optax, the extra ``continuous``: they are loaded when
first asked for, and say what to install where it is missing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brmdp.continuous.agent import ContinuousActionReport, ContinuousAgent, ContinuousReport, NetworkPolicy
    from brmdp.continuous.environment import ContinuousFrozenLakeEnv
    from brmdp.continuous.fitted_q import FittedQ
    from brmdp.continuous.lake import LakeParameters
    from brmdp.continuous.lake_model import LakeModel
    from brmdp.continuous.model import ParametricBelief, ParametricModel
    from brmdp.continuous.oracle import LakeValues, optimal_values, policy_values
    from brmdp.continuous.posterior import LakePosterior
    from brmdp.continuous.presets import aq_brmdp, brmdp, continuing_psrl, posterior_mean
    from brmdp.continuous.schedule import UncertaintyLevel

__all__ = [
    "ContinuousActionReport",
    "ContinuousAgent",
    "ContinuousFrozenLakeEnv",
    "ContinuousReport",
    "FittedQ",
    "LakeModel",
    "LakeParameters",
    "LakePosterior",
    "LakeValues",
    "NetworkPolicy",
    "ParametricBelief",
    "ParametricModel",
    "UncertaintyLevel",
    "aq_brmdp",
    "brmdp",
    "continuing_psrl",
    "optimal_values",
    "policy_values",
    "posterior_mean",
]

_MODULES = {
    "agent": ("ContinuousActionReport", "ContinuousAgent", "ContinuousReport", "NetworkPolicy"),
    "environment": ("ContinuousFrozenLakeEnv",),
    "fitted_q": ("FittedQ",),
    "lake": ("LakeParameters",),
    "lake_model": ("LakeModel",),
    "model": ("ParametricBelief", "ParametricModel"),
    "oracle": ("LakeValues", "optimal_values", "policy_values"),
    "posterior": ("LakePosterior",),
    "presets": ("aq_brmdp", "brmdp", "continuing_psrl", "posterior_mean"),
    "schedule": ("UncertaintyLevel",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            # here, so that the parts without JAX need nothing of the experiments
            from brmdp.experiments.extras import optional

            return getattr(optional(f"brmdp.continuous.{module}", "continuous"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
