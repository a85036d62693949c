"""Figures of ``continuous``: regrets, maps of what was learned, levels, and the effect of ε."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from brmdp._validation import FloatArray, IntArray
from brmdp.continuous.lake import CENTRES, DIRECTIONS, GOAL, HOLES, SIDE, START, cells
from brmdp.report.layouts import draw_panels
from brmdp.report.panels import Panel, gain_panel, true_regret_panel
from brmdp.report.style import (
    BLACK,
    BLUE,
    COLUMN,
    ORANGE,
    PURPLE,
    VERMILION,
    CurveStyle,
    new_figure,
    styled,
)
from brmdp.report.summary import interactions
from brmdp.runs import CaseRecords, Experiment, Replications
from brmdp.studies.continuous_lake.analysis import SAMPLING
from brmdp.studies.continuous_lake.experiment import EpsilonColumns, PortraitColumns

__all__ = ["draw"]

ARROWS = 3
"""Arrows along the side of a cell."""

VALUES, LOSSES, LEVELS = "viridis", "Greys", "cividis"
"""Colour maps; each changes steadily from dark to light, so that it can be read in grey."""

RESOLVED = 1e-3
"""Accuracy of a policy's value; no colour scale of losses ends below it.

Otherwise errors of computation would look like losses.
"""

LETTERS = {**dict.fromkeys(HOLES, "H"), GOAL: "G", int(cells(np.array(START))): "S"}
KEY = "S start, H hole, G goal"

CHOICES = (
    CurveStyle("", VERMILION, (0, (5, 2)), "s"),
    CurveStyle("", ORANGE, (0, (6, 1.5, 1, 1.5)), "D"),
    CurveStyle("", BLUE, "-", "o"),
    CurveStyle("", PURPLE, (0, (10, 2.5)), "v"),
    CurveStyle("", BLACK, (0, (1, 1.4)), "^"),
)
"""Styles of the choices of ε, in turn."""


def draw(
    experiment: Experiment, records: Mapping[str, CaseRecords | Replications[Any]]
) -> dict[str, Figure]:
    """Regrets of the agents, and the closer looks at one run."""
    agents = interactions(records)
    figures: dict[str, Figure] = {}
    if agents:
        panels: tuple[Panel, ...] = (true_regret_panel,)
        panels += (gain_panel(SAMPLING),) if SAMPLING in agents and len(agents) > 1 else ()
        figures[f"{experiment.name}-regret"] = draw_panels(experiment.title, panels, agents)
    for name, pictures in (
        ("portrait", {"values": _values, "levels": _levels}),
        ("epsilon", {"epsilon": _epsilon}),
    ):
        found = records.get(name)
        if isinstance(found, Replications):
            figures |= {
                f"{experiment.name}-{part}": picture(found) for part, picture in pictures.items()
            }
    return figures


def _moments(found: Replications[PortraitColumns]) -> dict[int, PortraitColumns]:
    """The portrait of the first run, by the number of steps done."""
    columns = {name: array[0] for name, array in found.columns.arrays().items()}
    return {
        int(after): PortraitColumns(
            **{name: column[columns["after"] == after] for name, column in columns.items()}
        )
        for after in np.unique(columns["after"])
    }


# --- maps -----------------------------------------------------------------------------------------


def _values(found: Replications[PortraitColumns]) -> Figure:
    """Optimal values and policy, what was learned about them, and what the last policy loses."""
    moments = _moments(found)
    last = moments[max(moments)]
    highest = max(
        float(values.max())
        for moment in moments.values()
        for values in (moment.optimal_value, moment.learned_value)
    )
    loss = np.maximum(last.optimal_value - last.policy_value, 0.0)
    maps = [("Truth: V* and the best actions", last.optimal_value, last.optimal_action)]
    maps += [
        (f"Learned after {after} steps", moment.learned_value, moment.learned_action)
        for after, moment in moments.items()
    ]
    with styled():
        figure = new_figure(COLUMN, 6.2)
        grid = figure.subplots(2, 2)
        panels = grid.ravel()
        for axes, (title, values, actions) in zip(panels, maps, strict=False):
            image = _draw_map(axes, title, values, VALUES, 0.0, highest)
            _draw_arrows(axes, last.states, actions)
        _draw_scale(image, grid[:, 0], "value of the state (discounted)")
        most = max(float(loss.max()), RESOLVED)
        title = f"Value lost by the policy\nafter {max(moments)} steps: at most {most:.2g}"
        image = _draw_map(panels[-1], title, loss, LOSSES, 0.0, most, ink="#999999")
        _draw_scale(image, grid[:, 1], "lost value: V* − value of the policy\n(accurate to 0.001)")
        for axes in panels[len(maps) : -1]:
            axes.set_axis_off()
        figure.suptitle(
            f"What AQ-BRMDP learned in one run, beside the truth\n(arrows: actions; {KEY})",
            fontsize=9.5,
        )
    return figure


def _levels(found: Replications[PortraitColumns]) -> Figure:
    """Levels of the four actions at the centres, and of the planned action everywhere.

    One row for each moment.
    """
    moments = _moments(found)
    schedule = found.case.parameters["agent_parameters"]
    low, high = float(schedule["floor"]), float(schedule["ceiling"])
    with styled():
        figure = new_figure(COLUMN, 2.45 * len(moments) + 1.5)
        rows = figure.subplots(len(moments), 2, squeeze=False)
        for (left, right), (after, moment) in zip(rows, moments.items(), strict=True):
            levels = moment.levels
            _draw_centres(left, moment.states, levels, low, high)
            left.set_ylabel(f"after {after} steps", fontsize=9.5)
            planned = levels[np.arange(len(levels)), moment.learned_action]
            image = _draw_map(right, "", planned, LEVELS, low, high)
            _hatch_goal(right)
            _draw_arrows(right, moment.states, moment.learned_action)
        rows[0, 0].set_title("All four actions at the\ncell centres (triangles)")
        rows[0, 1].set_title("The planned action\nin every state (arrows)")
        bar = _draw_scale(
            image, rows, "level α of the action, from cautious (dark) to bold (light)"
        )
        bar.set_ticks([low, *(tick for tick in (0.4, 0.6, 0.8) if low < tick < high), high])
        figure.suptitle(
            "Where AQ-BRMDP plans boldly: levels rise from the floor\n"
            f"first where values are most uncertain ({KEY})",
            fontsize=9.5,
        )
    return figure


def _draw_map(
    axes: Axes,
    title: str,
    values: FloatArray,
    colours: str,
    low: float,
    high: float,
    ink: str = "white",
) -> Any:
    """One number per state, row by row; cells, holes and goal marked."""
    side = round(np.sqrt(values.size))
    image = axes.imshow(
        values.reshape(side, side),
        extent=(0.0, SIDE, SIDE, 0.0),
        cmap=colours,
        vmin=low,
        vmax=high,
        aspect="equal",
    )
    _mark_cells(axes, ink)
    axes.set_title(title)
    return image


def _draw_scale(image: Any, panels: Any, label: str) -> Colorbar:
    """A colour scale below some panels."""
    figure = panels.flat[0].get_figure()
    bar: Colorbar = figure.colorbar(
        image, ax=panels, label=label, location="bottom", shrink=0.85, aspect=30
    )
    return bar


def _draw_centres(
    axes: Axes, states: FloatArray, levels: FloatArray, low: float, high: float
) -> None:
    """Every cell but the goal as four triangles, each pointing in the direction of its action."""
    centres = np.delete(CENTRES, GOAL, axis=0)
    nearest = [int(np.square(states - centre).sum(axis=1).argmin()) for centre in centres]
    corners = centres[:, None, None] + 0.5 * np.stack(
        [
            np.stack([direction + side * direction[::-1] for side in (-1.0, 1.0)])
            for direction in DIRECTIONS
        ]
    )
    tips = np.broadcast_to(centres[:, None, None], (len(centres), len(DIRECTIONS), 1, 2))
    triangles = np.concatenate([corners, tips], axis=2)
    patches = PolyCollection(
        list(triangles.reshape(-1, 3, 2)), cmap=LEVELS, edgecolor="white", linewidth=0.4
    )
    patches.set_array(levels[nearest].ravel())
    patches.set_clim(low, high)
    axes.add_collection(patches)
    axes.set_xlim(0.0, SIDE)
    axes.set_ylim(SIDE, 0.0)
    axes.set_aspect("equal")
    _mark_cells(axes, "white")
    _hatch_goal(axes)


def _hatch_goal(axes: Axes) -> None:
    """Cover the goal in a map of levels: all actions are alike there."""
    corner = CENTRES[GOAL] - 0.5
    axes.add_patch(
        Rectangle(
            (float(corner[0]), float(corner[1])),
            1.0,
            1.0,
            facecolor="white",
            edgecolor="#999999",
            hatch="////",
            linewidth=0.6,
        )
    )


def _mark_cells(axes: Axes, ink: str) -> None:
    axes.grid(visible=False)
    for border in range(1, SIDE):
        axes.axhline(border, color=ink, linewidth=0.9)
        axes.axvline(border, color=ink, linewidth=0.9)
    for cell, letter in LETTERS.items():
        x, y = CENTRES[cell]
        axes.text(
            x - 0.42,
            y - 0.4,
            letter,
            fontsize=7,
            va="top",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
        )
    axes.set_xticks([])
    axes.set_yticks([])


def _draw_arrows(axes: Axes, states: FloatArray, actions: IntArray) -> None:
    """The action at a few states of each cell but the goal, where all are alike."""
    points = np.unique(states[:, 0]).size // SIDE
    kept = np.isin(
        np.arange(SIDE * points) % points,
        np.arange(ARROWS) * points // ARROWS + points // (2 * ARROWS),
    )
    shown = (kept[:, None] & kept).ravel() & (cells(states) != GOAL)
    towards = DIRECTIONS[actions[shown]]
    # the y-axis points down, and so do arrows of positive y
    axes.quiver(
        *states[shown].T,
        *towards.T,
        angles="xy",
        pivot="mid",
        facecolor="white",
        edgecolor="black",
        linewidth=0.35,
        scale=19.0,
        width=0.009,
    )


# --- ε --------------------------------------------------------------------------------------------


def _epsilon(found: Replications[EpsilonColumns]) -> Figure:
    """Mean level of all pairs, and share of pairs at the floor, in each pseudo-episode."""
    columns = found.columns
    episode, epsilon, level = columns.episode[0], columns.epsilon[0], columns.level[0]
    episodes = np.unique(episode)
    pairs = np.unique(np.stack([columns.cell[0], columns.action[0]]), axis=1).shape[1]
    schedule = found.case.parameters["agent_parameters"]
    floor = schedule["floor"]
    with styled():
        figure = new_figure(COLUMN, 4.9)
        upper, lower = figure.subplots(2, sharex=True)
        for number, choice in enumerate(np.unique(epsilon)):
            style = CHOICES[number % len(CHOICES)]
            used = choice == schedule["epsilon"]
            levels = [level[(epsilon == choice) & (episode == one)] for one in episodes]
            drawn: dict[str, Any] = {
                "color": style.colour,
                "linestyle": style.line,
                "linewidth": 2.4 if used else 1.4,
                "marker": style.marker,
                "markersize": 4.5,
                "label": f"ε = {choice:g}" + (" (this study)" if used else ""),
            }
            upper.plot(episodes, [some.mean() for some in levels], **drawn)
            lower.plot(episodes, [np.mean(some <= floor) for some in levels], **drawn)
        upper.set_title(f"Mean level αₖ of the {pairs} pairs of cell centre and action")
        upper.set_ylabel("mean level")
        upper.set_ylim(0.0, 1.0)
        lower.set_title(f"Share of these pairs at the floor, αₖ = {floor:g}")
        lower.set_ylabel("share of pairs")
        lower.set_ylim(-0.03, 1.03)
        lower.set_xscale("log")
        lower.xaxis.set_minor_locator(NullLocator())
        lower.set_xticks(episodes, [str(one) for one in episodes])
        lower.set_xlabel("pseudo-episode k (logarithmic)")
        figure.legend(
            *upper.get_legend_handles_labels(),
            loc="outside upper center",
            ncols=3,
            title="The larger ε, the longer pairs stay at the floor (one run of AQ-BRMDP)",
        )
    return figure
