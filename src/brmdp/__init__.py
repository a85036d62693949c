"""Bayesian-risk Markov decision processes: plan against a quantile of your belief.

"The paper" is Meichen Song, Yuhao Wang and Enlu Zhou, "Evolving Robustness–Exploration Trade-off in
Online Reinforcement Learning via Quantile Bayesian Risk MDPs".
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from brmdp import agents, dirichlet, envs
from brmdp.agents import Agent
from brmdp.beliefs import (
    Belief,
    CensoredDisturbanceBelief,
    DirichletBelief,
    DisturbanceBelief,
    DisturbanceRewards,
    OutcomeBelief,
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
    HorizonSolution,
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
    RiskMeasure,
    RiskOperator,
)
from brmdp.simulation import Actor, Diagnostics, History, World, simulate

__all__ = [
    "Actor",
    "Agent",
    "Backup",
    "Belief",
    "BrmdpError",
    "CVaR",
    "CensoredDisturbanceBelief",
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
    "HorizonSolution",
    "ImpossibleTransitionError",
    "InvalidInputError",
    "Mean",
    "MissingExtraError",
    "MonteCarlo",
    "OutcomeBelief",
    "PosteriorQuantileValue",
    "PosteriorSample",
    "PriorReliance",
    "PriorWarning",
    "Quantile",
    "RewardMismatchError",
    "RiskMeasure",
    "RiskMeasureError",
    "RiskOperator",
    "ScenarioBelief",
    "Solution",
    "TabularMDP",
    "World",
    "agents",
    "backup",
    "certified_level",
    "certify",
    "dirichlet",
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

_LATER = ("continuous", "report", "runs", "studies", "theory")
"""Parts that are loaded when first asked for."""

_FORMER = ("analysis", "experiments", "posterior")

if TYPE_CHECKING:
    from brmdp import continuous as continuous
    from brmdp import report as report
    from brmdp import runs as runs
    from brmdp import studies as studies
    from brmdp import theory as theory

    __version__: str


def __getattr__(name: str) -> Any:
    if name in _LATER or name in _FORMER:
        return importlib.import_module(f"brmdp.{name}")
    if name == "__version__":
        from brmdp._version import installed_version

        return globals().setdefault("__version__", installed_version())
    from brmdp._renamed import former_name

    return former_name(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, "__version__"})
