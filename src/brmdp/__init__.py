"""Bayesian-risk Markov decision processes: plan against a quantile of what you do not know."""

from brmdp import agents, envs
from brmdp.agents import Agent
from brmdp.errors import (
    BrmdpError,
    ConvergenceError,
    CorruptFileError,
    ImpossibleTransitionError,
    InvalidInputError,
)
from brmdp.mdp import TabularMDP
from brmdp.planning import (
    Backup,
    Certificate,
    PosteriorQuantileValue,
    Solution,
    backup,
    certified_level,
    certify,
    evaluate,
    evaluate_policies,
    evaluate_policy,
    plan,
    posterior_quantile_value,
    solve,
)
from brmdp.posterior import DirichletPosterior, DisturbancePosterior, DisturbanceRewards, ScenarioPosterior
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
    "ConvergenceError",
    "CorruptFileError",
    "Diagnostics",
    "DirichletPosterior",
    "DisturbancePosterior",
    "DisturbanceRewards",
    "History",
    "ImpossibleTransitionError",
    "InvalidInputError",
    "Mean",
    "MonteCarlo",
    "PosteriorQuantileValue",
    "PosteriorSample",
    "Quantile",
    "ScenarioPosterior",
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
    "evaluate",
    "evaluate_policies",
    "evaluate_policy",
    "plan",
    "posterior_quantile_value",
    "simulate",
    "solve",
]
