"""Agents that learn online: built from four parts, with the paper's methods as presets."""

from typing import Any

from brmdp.agents.agent import ActionReport, Agent, EpisodeReport
from brmdp.agents.bamcp import BAMCP
from brmdp.agents.optimists import (
    bayes_ucbvi,
    beb,
    cvar_bonus,
    eubrl,
    opsrl,
    r_max,
    ucbvi_gamma,
    ucrl2,
    vbrb,
)
from brmdp.agents.presets import aq_brmdp, continuing_psrl, fixed_quantile, posterior_mean
from brmdp.agents.progress import Progress
from brmdp.agents.q_learning import QLearning
from brmdp.agents.restarts import (
    EachEpisode,
    EveryStep,
    FixedLength,
    GeometricLength,
    GrowingLength,
    RestartRule,
    StepDoubling,
    VisitDoubling,
)
from brmdp.agents.schedules import (
    AdaptiveLevel,
    FallingLevel,
    FixedLevel,
    RisingLevel,
    Schedule,
    VisitLevel,
)

__all__ = [
    "BAMCP",
    "ActionReport",
    "AdaptiveLevel",
    "Agent",
    "EachEpisode",
    "EpisodeReport",
    "EveryStep",
    "FallingLevel",
    "FixedLength",
    "FixedLevel",
    "GeometricLength",
    "GrowingLength",
    "Progress",
    "QLearning",
    "RestartRule",
    "RisingLevel",
    "Schedule",
    "StepDoubling",
    "VisitDoubling",
    "VisitLevel",
    "aq_brmdp",
    "bayes_ucbvi",
    "beb",
    "continuing_psrl",
    "cvar_bonus",
    "eubrl",
    "fixed_quantile",
    "opsrl",
    "posterior_mean",
    "r_max",
    "ucbvi_gamma",
    "ucrl2",
    "vbrb",
]


def __getattr__(name: str) -> Any:
    from brmdp._renamed import former_name

    return former_name(__name__, name)
