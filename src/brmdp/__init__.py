"""Bayesian-risk Markov decision processes: plan against a quantile of what you do not know."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from brmdp import agents, envs
from brmdp.agents import Agent
from brmdp.beliefs import (
    DirichletBelief,
    DisturbanceBelief,
    DisturbanceRewards,
    ScenarioBelief,
)
from brmdp.errors import (
    BrmdpError,
    ContradictionError,
    ConvergenceError,
    CorruptFileError,
    ExperimentError,
    ImpossibleTransitionError,
    InvalidInputError,
    MissingExtraError,
    PriorWarning,
    RewardMismatchError,
    RiskMeasureError,
)
from brmdp.mdp import TabularMDP
from brmdp.planning import (
    Backup,
    Certificate,
    PosteriorQuantileValue,
    PriorReliance,
    Solution,
    backup,
    certified_level,
    certify,
    evaluate_all_in_mdp,
    evaluate_in_mdp,
    evaluate_under_belief,
    plan,
    posterior_quantile_value,
    prior_reliance,
    solve,
)
from brmdp.risk import (
    CVaR,
    Mean,
    MonteCarlo,
    PosteriorSample,
    Quantile,
    dirichlet_cdf,
    dirichlet_cvar,
    dirichlet_cvar_row,
    dirichlet_quantile,
    dirichlet_quantile_row,
)
from brmdp.simulation import Diagnostics, History, World, simulate

__all__ = [
    "Agent",
    "Backup",
    "BrmdpError",
    "CVaR",
    "Certificate",
    "ContradictionError",
    "ConvergenceError",
    "CorruptFileError",
    "Diagnostics",
    "DirichletBelief",
    "DisturbanceBelief",
    "DisturbanceRewards",
    "ExperimentError",
    "History",
    "ImpossibleTransitionError",
    "InvalidInputError",
    "Mean",
    "MissingExtraError",
    "MonteCarlo",
    "PosteriorQuantileValue",
    "PosteriorSample",
    "PriorReliance",
    "PriorWarning",
    "Quantile",
    "RewardMismatchError",
    "RiskMeasureError",
    "ScenarioBelief",
    "Solution",
    "TabularMDP",
    "World",
    "agents",
    "backup",
    "certified_level",
    "certify",
    "dirichlet_cdf",
    "dirichlet_cvar",
    "dirichlet_cvar_row",
    "dirichlet_quantile",
    "dirichlet_quantile_row",
    "envs",
    "evaluate_all_in_mdp",
    "evaluate_in_mdp",
    "evaluate_under_belief",
    "plan",
    "posterior_quantile_value",
    "prior_reliance",
    "simulate",
    "solve",
]

_LATER = ("analysis", "continuous", "experiments", "figures", "theory")
"""Parts that are loaded when first asked for."""

if TYPE_CHECKING:
    from brmdp import analysis as analysis
    from brmdp import continuous as continuous
    from brmdp import experiments as experiments
    from brmdp import figures as figures
    from brmdp import theory as theory

    __version__: str


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return importlib.import_module(f"brmdp.{name}")
    if name == "__version__":
        from brmdp._version import installed_version

        return globals().setdefault("__version__", installed_version())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, "__version__"})
