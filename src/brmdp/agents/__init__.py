"""Agents that learn online: four parts, and the paper's methods as presets.

The preset :func:`brmdp.agents.brmdp` is not among the names that ``from brmdp.agents import *``
brings in: it would take the place of the library's own.
"""

from brmdp.agents.agent import ActionReport, Agent, EpisodeReport
from brmdp.agents.presets import aq_brmdp, continuing_psrl
from brmdp.agents.presets import brmdp as brmdp
from brmdp.agents.progress import Progress
from brmdp.agents.restarts import (
    EveryStep,
    FixedLength,
    GeometricLength,
    RestartRule,
    VisitDoubling,
)
from brmdp.agents.schedules import AdaptiveLevel, FixedLevel, Schedule

__all__ = [
    "ActionReport",
    "AdaptiveLevel",
    "Agent",
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
]
