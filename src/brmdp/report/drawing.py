"""States and arrows, from which schematics are drawn."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from brmdp.report.style import new_figure

__all__ = ["RADIUS", "SMALL", "arrow", "canvas"]

RADIUS = 0.3
"""Radius of a state."""

SMALL = 7.0
"""Size of small type, in points."""


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure to draw on, without axes."""
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    return figure, axes


def arrow(
    axes: Axes,
    begin: tuple[float, float],
    end: tuple[float, float],
    bend: float,
    style: dict[str, Any],
) -> None:
    """An arrow, bent to the side by ``bend``."""
    axes.add_patch(
        FancyArrowPatch(
            begin,
            end,
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-|>",
            mutation_scale=7,
            linewidth=1.1,
            shrinkA=0,
            shrinkB=0,
            **style,
        )
    )
