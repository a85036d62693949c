"""Schematics of the two worlds, as in the paper's appendix, drawn from the tables of their MDPs."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Rectangle

from brmdp.envs import frozenlake, riverswim
from brmdp.envs.frozenlake import DOWN, GOAL, HOLES, RIGHT, SHORTCUT_STATE, SIDE
from brmdp.mdp import TabularMDP
from brmdp.report.drawing import RADIUS, SMALL, arrow, canvas
from brmdp.report.style import BLUE, COLUMN, ORANGE, VERMILION, styled

__all__ = ["frozenlake_schematic", "riverswim_schematic", "schematics"]

SPACING = 1.5


def schematics() -> dict[str, Figure]:
    """Both schematics, by file name without extension."""
    return {
        "schematic-riverswim-6": riverswim_schematic(riverswim(6)),
        "schematic-frozenlake-0.7": frozenlake_schematic(frozenlake(0.7)),
    }


def riverswim_schematic(mdp: TabularMDP) -> Figure:
    """Draw the chain with the probabilities of both actions and the transitions that pay.

    Parameters
    ----------
    mdp : TabularMDP
        An MDP from :func:`brmdp.envs.riverswim`, of any length.
    """
    kernel, rewards = mdp.kernel(), np.asarray(mdp.rewards)
    styles: list[dict[str, Any]] = [
        {"color": VERMILION, "linestyle": (0, (4, 2))},
        {"color": BLUE, "linestyle": "-"},
    ]
    with styled():
        figure, axes = canvas(COLUMN * mdp.n_states / 6, 1.9)
        for s in range(mdp.n_states):
            axes.add_patch(
                Circle(
                    (SPACING * s, 0.0),
                    RADIUS,
                    facecolor="#eef3f7",
                    edgecolor="black",
                    linewidth=0.9,
                )
            )
            axes.text(SPACING * s, 0.0, str(s), ha="center", va="center", fontsize=9)
            for action, style in enumerate(styles):
                for t in np.flatnonzero(kernel[s, action]).tolist():
                    pay = float(rewards[s, action, t])
                    _draw_move(axes, s, t, action, float(kernel[s, action, t]), pay, style)
        axes.set_xlim(-0.9, SPACING * (mdp.n_states - 1) + 0.9)
        axes.set_ylim(-1.3, 1.3)
        names = mdp.action_names or ("left", "right")
        figure.legend(
            [Line2D([], [], linewidth=1.2, **styles[action]) for action in (1, 0)],
            [f"action “{names[1]}”", f"action “{names[0]}”"],
            loc="outside lower center",
            ncols=2,
        )
    return figure


def _draw_move(
    axes: Axes, s: int, t: int, action: int, probability: float, pay: float, style: dict[str, Any]
) -> None:
    """Draw one possible transition: a loop at its state, or an arc to a neighbour."""
    side = 1.0 if action == RIGHT else -1.0
    begin, end = SPACING * s, SPACING * t
    label = "1" if probability == 1.0 else f"{probability:.2f}"
    height, align = 0.0, "center"
    if s == t:
        arrow(
            axes,
            (begin - 0.13, 0.9 * RADIUS * side),
            (begin + 0.13, 0.9 * RADIUS * side),
            -2.6 * side,
            style,
        )
        height, align = 0.7 * side, "bottom" if side > 0 else "top"
        lines = [label, f"pays {pay:g}"] if pay else [label]
        label = "\n".join(lines if side < 0 else reversed(lines))
    elif t > s:
        arrow(axes, (begin + 0.22, 0.8 * RADIUS), (end - 0.22, 0.8 * RADIUS), -0.35, style)
        height = 0.66
    elif action == RIGHT:
        # falling back is drawn along the chain, which leaves the room below for "left"
        arrow(axes, (begin - RADIUS, 0.0), (end + RADIUS, 0.0), 0.0, style)
        height = 0.16
    else:
        arrow(axes, (begin - 0.22, -0.8 * RADIUS), (end + 0.22, -0.8 * RADIUS), -0.35, style)
        height = -0.66
    axes.text(
        0.5 * (begin + end),
        height,
        label,
        ha="center",
        va=align,
        fontsize=SMALL,
        color=style["color"],
        linespacing=1.2,
    )


def frozenlake_schematic(mdp: TabularMDP) -> Figure:
    """Draw the grid with start, goal, sticky holes and, if there is one, the risky shortcut.

    Parameters
    ----------
    mdp : TabularMDP
        An MDP from :func:`brmdp.envs.frozenlake`.
    """
    kernel = mdp.kernel()
    marks = {
        int(mdp.start) if isinstance(mdp.start, int) else 0: "start",
        GOAL: "goal",
    } | dict.fromkeys(HOLES, "hole")
    tiles = {"start": "#fff0c2", "goal": "#bfe3c8", "hole": "#39465e"}
    with styled():
        figure, axes = canvas(3.3, 3.95)
        for cell in range(mdp.n_states):
            column, row = _position(cell)
            mark = marks.get(cell, "")
            ink = "white" if mark == "hole" else "black"
            axes.add_patch(
                Rectangle(
                    (column - 0.5, row - 0.5),
                    1,
                    1,
                    facecolor=tiles.get(mark, "#f3f8fc"),
                    edgecolor="#8899a6",
                )
            )
            axes.text(column - 0.42, row - 0.3, str(cell), fontsize=SMALL, color=ink)
            axes.text(column, row + 0.36, mark, fontsize=8, color=ink, ha="center", va="center")
        _draw_shortcut(axes, kernel[SHORTCUT_STATE, DOWN])
        axes.set_xlim(-0.55, SIDE - 0.45)
        axes.set_ylim(SIDE - 0.45, -0.55)
        escape = float(kernel[HOLES[0], RIGHT, HOLES[0] + 1])
        intended, slip = float(kernel[9, RIGHT, 10]), float(kernel[9, RIGHT, 13])
        figure.supxlabel(
            f"Ordinary cells: intended move {intended:g}, each sideways {slip:g}.\n"
            f"Holes: each move succeeds with probability {escape:g}.\n"
            f"Entering the goal pays {float(np.asarray(mdp.rewards)[14, RIGHT, GOAL]):g}; "
            "then restart on an ordinary cell.",
            fontsize=7.5,
        )
    return figure


def _draw_shortcut(axes: Axes, row: Any) -> None:
    """Draw where Down leads from the shortcut's state, unless it is an ordinary slippery move."""
    column, line = _position(SHORTCUT_STATE)
    if np.count_nonzero(row) > 2 or row[SHORTCUT_STATE + SIDE]:
        return
    axes.add_patch(
        Rectangle(
            (column - 0.5, line - 0.5), 1, 1, fill=False, edgecolor=ORANGE, linewidth=2.0, zorder=3
        )
    )
    axes.text(column, line - 0.02, "Down", ha="center", va="center", fontsize=7.5)
    for cell in np.flatnonzero(row).tolist():
        probability = float(row[cell])
        hole = cell in HOLES
        across, down = _position(cell)
        style: dict[str, Any] = {
            "color": VERMILION if hole else BLUE,
            "linestyle": (0, (4, 2)) if hole else "-",
        }
        begin = (column - 0.15 if hole else column + 0.22, line + 0.15)
        end = (across + 0.22, down - 0.2)
        arrow(axes, begin, end, 0.15 if hole else -0.1, {**style, "zorder": 4})
        symbol = "θ =" if hole else "1 − θ\n="
        # beside the arrows, in the cells between their ends
        at = (column - 0.95, line + 0.3) if hole else (column - 0.1, line + 1.05)
        axes.text(
            *at,
            f"{symbol} {probability:g}",
            ha="center",
            va="center",
            fontsize=7.5,
            color=style["color"],
            zorder=5,
        )


def _position(cell: int) -> tuple[float, float]:
    row, column = divmod(cell, SIDE)
    return float(column), float(row)
