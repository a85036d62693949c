"""Agents acting in worlds: the loop, and what it records."""

from brmdp.simulation.actor import Actor
from brmdp.simulation.drawing import draw_world
from brmdp.simulation.history import Episodes, History, Steps
from brmdp.simulation.interaction import Diagnostics, simulate
from brmdp.simulation.world import World

__all__ = [
    "Actor",
    "Diagnostics",
    "Episodes",
    "History",
    "Steps",
    "World",
    "draw_world",
    "simulate",
]
