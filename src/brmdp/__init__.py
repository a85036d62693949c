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
    evaluate_all_in_mdp,
    evaluate_in_mdp,
    evaluate_under_belief,
    plan,
    plan_many,
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
    "Bins",
    "BrmdpError",
    "CVaR",
    "Categories",
    "CensoredDisturbanceBelief",
    "Certificate",
    "Comparison",
    "ContradictionError",
    "ConvergenceError",
    "CorruptFileError",
    "Decision",
    "Diagnostics",
    "DirichletBelief",
    "DisturbanceBelief",
    "DisturbanceRewards",
    "Dynamics",
    "ExperimentError",
    "HierarchicalBelief",
    "History",
    "HorizonSolution",
    "ImpossibleTransitionError",
    "InformationValue",
    "InvalidInputError",
    "LearnedPrior",
    "Log",
    "Mean",
    "MissingExtraError",
    "Model",
    "MonteCarlo",
    "OutcomeBelief",
    "PosteriorQuantileValue",
    "PosteriorSample",
    "Practice",
    "PriorReliance",
    "PriorWarning",
    "Quantile",
    "RewardMismatchError",
    "RiskMeasure",
    "RiskMeasureError",
    "RiskOperator",
    "SampledCertificate",
    "ScenarioBelief",
    "Solution",
    "TabularMDP",
    "Transitions",
    "Tuning",
    "UnitLog",
    "World",
    "agents",
    "backup",
    "candidate_policies",
    "certified_level",
    "certify",
    "compare",
    "dirichlet",
    "envs",
    "evaluate_all_in_mdp",
    "evaluate_in_mdp",
    "evaluate_under_belief",
    "learn_prior",
    "plan",
    "plan_many",
    "posterior_quantile_value",
    "practice",
    "prior_reliance",
    "read_log",
    "read_model",
    "read_policy",
    "simulate",
    "solve",
    "tune",
    "value_of_information",
    "values_in_draws",
]

_LATER = (
    "batch",
    "continuous",
    "decisions",
    "logs",
    "models",
    "report",
    "runs",
    "studies",
    "theory",
)
"""Parts that are loaded when first asked for."""

_HOMES = {
    "decisions": (
        "Comparison",
        "HierarchicalBelief",
        "InformationValue",
        "LearnedPrior",
        "Practice",
        "SampledCertificate",
        "Transitions",
        "UnitLog",
        "candidate_policies",
        "certify",
        "compare",
        "learn_prior",
        "practice",
        "value_of_information",
        "values_in_draws",
    ),
    "logs": ("Bins", "Categories", "Log", "read_log"),
    "models": ("Decision", "Dynamics", "Model", "read_model", "read_policy"),
    "runs": ("Tuning", "tune"),
}
"""Names that a single run does not need, by the part that has them: loaded when first asked for."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

_FORMER = ("analysis", "experiments", "posterior")

if TYPE_CHECKING:
    from brmdp import batch as batch
    from brmdp import continuous as continuous
    from brmdp import decisions as decisions
    from brmdp import logs as logs
    from brmdp import models as models
    from brmdp import report as report
    from brmdp import runs as runs
    from brmdp import studies as studies
    from brmdp import theory as theory
    from brmdp.decisions import (
        Comparison as Comparison,
    )
    from brmdp.decisions import (
        HierarchicalBelief as HierarchicalBelief,
    )
    from brmdp.decisions import (
        InformationValue as InformationValue,
    )
    from brmdp.decisions import (
        LearnedPrior as LearnedPrior,
    )
    from brmdp.decisions import (
        Practice as Practice,
    )
    from brmdp.decisions import (
        SampledCertificate as SampledCertificate,
    )
    from brmdp.decisions import (
        Transitions as Transitions,
    )
    from brmdp.decisions import (
        UnitLog as UnitLog,
    )
    from brmdp.decisions import (
        candidate_policies as candidate_policies,
    )
    from brmdp.decisions import (
        certify as certify,
    )
    from brmdp.decisions import (
        compare as compare,
    )
    from brmdp.decisions import (
        learn_prior as learn_prior,
    )
    from brmdp.decisions import (
        practice as practice,
    )
    from brmdp.decisions import (
        value_of_information as value_of_information,
    )
    from brmdp.decisions import (
        values_in_draws as values_in_draws,
    )
    from brmdp.logs import (
        Bins as Bins,
    )
    from brmdp.logs import (
        Categories as Categories,
    )
    from brmdp.logs import (
        Log as Log,
    )
    from brmdp.logs import (
        read_log as read_log,
    )
    from brmdp.models import (
        Decision as Decision,
    )
    from brmdp.models import (
        Dynamics as Dynamics,
    )
    from brmdp.models import (
        Model as Model,
    )
    from brmdp.models import (
        read_model as read_model,
    )
    from brmdp.models import (
        read_policy as read_policy,
    )
    from brmdp.runs import (
        Tuning as Tuning,
    )
    from brmdp.runs import (
        tune as tune,
    )

    __version__: str


def __getattr__(name: str) -> Any:
    if name in _LATER or name in _FORMER:
        return importlib.import_module(f"brmdp.{name}")
    if name in _HOME_OF:
        found = getattr(importlib.import_module(f"brmdp.{_HOME_OF[name]}"), name)
        return globals().setdefault(name, found)
    if name == "__version__":
        from brmdp._version import installed_version

        return globals().setdefault("__version__", installed_version())
    from brmdp._renamed import former_name

    return former_name(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_HOME_OF, "__version__"})
