"""Agents in worlds: the loop, and what it records."""

from brmdp.simulation.interaction import Diagnostics, Episodes, History, simulate
from brmdp.simulation.world import World

__all__ = ["Diagnostics", "Episodes", "History", "World", "simulate"]
