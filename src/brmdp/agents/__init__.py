"""Agents that learn online: built from four parts, with the paper's methods as presets."""

from typing import Any

from brmdp.agents.agent import ActionReport, Agent, EpisodeReport
from brmdp.agents.bamcp import BAMCP
from brmdp.agents.presets import aq_brmdp, continuing_psrl, fixed_quantile, posterior_mean
from brmdp.agents.progress import Progress
from brmdp.agents.restarts import (
    EachEpisode,
    EveryStep,
    FixedLength,
    GeometricLength,
    RestartRule,
    VisitDoubling,
)
from brmdp.agents.schedules import AdaptiveLevel, FixedLevel, Schedule

__all__ = [
    "BAMCP",
    "ActionReport",
    "AdaptiveLevel",
    "Agent",
    "EachEpisode",
    "EpisodeReport",
    "EveryStep",
    "FixedLength",
    "FixedLevel",
    "GeometricLength",
    "Progress",
    "RestartRule",
    "Schedule",
    "VisitDoubling",
    "aq_brmdp",
    "continuing_psrl",
    "fixed_quantile",
    "posterior_mean",
]


def __getattr__(name: str) -> Any:
    from brmdp._renamed import former_name

    return former_name(__name__, name)
