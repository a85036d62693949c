"""Figures of the continuous lake.

Regrets and gain, maps of what was learned beside the truth, the levels, and the effect of ε.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from brmdp._validation import FloatArray
from brmdp.continuous.lake import CENTRES, DIRECTIONS, GOAL, HOLES, SIDE, cells
from brmdp.report.claims import judge
from brmdp.report.content import Content
from brmdp.report.layouts import draw
from brmdp.report.panels import Panel, gain_panel, true_regret_panel
from brmdp.report.style import BLACK, BLUE, COLUMN, ORANGE, PURPLE, VERMILION, new_figure, styled
from brmdp.runs import CaseRecords, Experiment, Replications
from brmdp.studies.continuous_lake.analysis import (
    CLAIMS,
    SAMPLING,
    interactions,
    lake_summary,
    lake_table,
)
from brmdp.studies.continuous_lake.experiment import LEVEL_COLUMNS

__all__ = ["reporter"]

ARROWS = 3
"""Arrows along the side of a cell."""

VALUES, LEVELS = "viridis", "cividis"
"""Colour maps; both grow lighter throughout, so that they can be read in grey."""

RESOLVED = 1e-3
"""Accuracy of a policy's value.

No colour scale of losses ends below it, lest errors of computation style like losses.
"""

CHOICES = ((VERMILION, "s"), (ORANGE, "D"), (BLUE, "o"), (PURPLE, "v"), (BLACK, "^"))
"""Colours and markers of the choices of ε, in turn."""

Moment = Mapping[str, NDArray[Any]]
"""Columns of the portrait, at one moment."""


def reporter(experiment: Experiment, records: Mapping[str, CaseRecords | Replications]) -> Content:
    """The report of the experiment."""
    agents = interactions(records)
    figures: dict[str, Figure] = {}
    if agents:
        panels: tuple[Panel, ...] = (true_regret_panel,)
        panels += (gain_panel(SAMPLING),) if SAMPLING in agents and len(agents) > 1 else ()
        figures[f"{experiment.name}-regret"] = draw(experiment.title, panels, agents)
    for name, picture in (
        ("portrait", {"values": _values, "levels": _levels}),
        ("epsilon", {"epsilon": _epsilon}),
    ):
        found = records.get(name)
        if isinstance(found, Replications):
            figures |= {
                f"{experiment.name}-{part}": figure(found) for part, figure in picture.items()
            }
    return Content(
        summary=lake_summary(experiment, records),
        table=lake_table(records),
        claims=judge(CLAIMS, experiment.name, agents),
        figures=figures,
    )


def _moments(found: Replications) -> dict[int, Moment]:
    """The portrait of the first run by the number of steps done."""
    columns = {name: column[0] for name, column in found.columns.items()}
    return {
        int(after): {name: column[columns["after"] == after] for name, column in columns.items()}
        for after in np.unique(columns["after"])
    }


# --- maps -----------------------------------------------------------------------------------------


def _values(found: Replications) -> Figure:
    """Optimal values and policy, what was learned of them, and what the last policy loses."""
    moments = _moments(found)
    last = moments[max(moments)]
    optimum = last["optimal_value"]
    highest = max(
        float(moment[name].max())
        for moment in moments.values()
        for name in ("optimal_value", "learned_value")
    )
    maps = [("V* and optimal actions", optimum, last["optimal_action"])]
    maps += [
        (f"learned, {after} steps", m["learned_value"], m["learned_action"])
        for after, m in moments.items()
    ]
    with styled():
        figure = new_figure(COLUMN, 4.2)
        panels = figure.subplots(2, 2).ravel()
        image: Any = None
        for axes, (title, values, actions) in zip(panels, maps, strict=False):
            image = _draw_map(axes, title, values, VALUES, 0.0, highest)
            _draw_arrows(axes, last, actions)
        figure.colorbar(image, ax=panels[0], label="discounted value", location="left", shrink=0.8)
        loss = np.maximum(optimum - last["policy_value"], 0.0)
        most = max(float(loss.max()), RESOLVED)
        image = _draw_map(panels[-1], f"V* − V^π, {max(moments)} steps", loss, VALUES, 0.0, most)
        figure.colorbar(image, ax=panels[-1], label="lost value", shrink=0.8)
        for axes in panels[len(maps) : -1]:
            axes.set_axis_off()
    return figure


def _levels(found: Replications) -> Figure:
    """Levels of the four actions at the centres, and of the chosen action everywhere.

    Early and late.
    """
    moments = _moments(found)
    with styled():
        figure = new_figure(COLUMN, 2.35 * len(moments) + 0.1)
        rows = figure.subplots(len(moments), 2, squeeze=False)
        image: Any = None
        for (left, right), (after, moment) in zip(rows, moments.items(), strict=True):
            levels = np.stack([moment[name] for name in LEVEL_COLUMNS], axis=-1)
            _draw_centres(left, f"at the centres, {after} steps", moment, levels)
            chosen = levels[np.arange(len(levels)), moment["learned_action"]]
            image = _draw_map(
                right, f"of the chosen action, {after} steps", chosen, LEVELS, 0.0, 1.0
            )
        figure.colorbar(image, ax=rows, label="level α_k(s,a)", shrink=0.6)
    return figure


def _draw_map(
    axes: Axes, title: str, values: FloatArray, colours: str, low: float, high: float
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
    _mark_cells(axes, title)
    return image


def _draw_centres(axes: Axes, title: str, moment: Moment, levels: FloatArray) -> None:
    """Every cell in four triangles, one for each action, towards which it points."""
    states = np.stack([moment["x"], moment["y"]], axis=-1)
    nearest = [int(np.square(states - centre).sum(axis=1).argmin()) for centre in CENTRES]
    corners = CENTRES[:, None, None] + 0.5 * np.stack(
        [
            np.stack([direction + side * direction[::-1] for side in (-1.0, 1.0)])
            for direction in DIRECTIONS
        ]
    )
    triangles = np.concatenate(
        [corners, np.broadcast_to(CENTRES[:, None, None], (len(CENTRES), 4, 1, 2))], axis=2
    )
    patches = PolyCollection(
        list(triangles.reshape(-1, 3, 2)), cmap=LEVELS, edgecolor="white", linewidth=0.4
    )
    patches.set_array(levels[nearest].ravel())
    patches.set_clim(0.0, 1.0)
    axes.add_collection(patches)
    axes.set_xlim(0.0, SIDE)
    axes.set_ylim(SIDE, 0.0)
    axes.set_aspect("equal")
    _mark_cells(axes, title)


def _mark_cells(axes: Axes, title: str) -> None:
    axes.grid(visible=False)
    for border in range(1, SIDE):
        axes.axhline(border, color="white", linewidth=0.8)
        axes.axvline(border, color="white", linewidth=0.8)
    for cell in (*HOLES, GOAL):
        x, y = CENTRES[cell]
        axes.text(
            x - 0.42,
            y - 0.4,
            "G" if cell == GOAL else "H",
            fontsize=7,
            va="top",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
        )
    axes.set_xticks(range(SIDE + 1))
    axes.set_yticks(range(SIDE + 1))
    axes.set_title(title)


def _draw_arrows(axes: Axes, moment: Moment, actions: NDArray[Any]) -> None:
    """The action at a few states of each cell but the goal, where all are alike."""
    states = np.stack([moment["x"], moment["y"]], axis=-1)
    points = np.unique(states[:, 0]).size // SIDE
    kept = np.isin(
        np.arange(SIDE * points) % points,
        np.arange(ARROWS) * points // ARROWS + points // (2 * ARROWS),
    )
    shown = (kept[:, None] & kept).ravel() & (cells(states) != GOAL)
    towards = DIRECTIONS[actions[shown]]
    # the axis of y points down, and so do arrows of positive y
    axes.quiver(
        *states[shown].T,
        *towards.T,
        angles="xy",
        pivot="mid",
        color="white",
        scale=17.0,
        width=0.007,
    )


# --- ε --------------------------------------------------------------------------------------------


def _epsilon(found: Replications) -> Figure:
    """Mean level of all pairs, and share of pairs at the floor, against the pseudo-episode.

    For each ε.
    """
    columns = {name: column[0] for name, column in found.columns.items()}
    episodes = np.unique(columns["episode"])
    floor = found.case.parameters["agent_parameters"]["floor"]
    with styled():
        figure = new_figure(COLUMN, 4.4)
        upper, lower = figure.subplots(2, sharex=True)
        for number, epsilon in enumerate(np.unique(columns["epsilon"])):
            colour, marker = CHOICES[number % len(CHOICES)]
            levels = [
                columns["level"][(columns["epsilon"] == epsilon) & (columns["episode"] == episode)]
                for episode in episodes
            ]
            style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4.5}
            upper.plot(
                episodes, [found.mean() for found in levels], label=f"ε = {epsilon:g}", **style
            )
            lower.plot(episodes, [np.mean(found <= floor) for found in levels], **style)
        upper.set_title("Mean level of the 60 pairs")
        upper.set_ylabel("level")
        upper.set_ylim(0.0, 1.0)
        lower.set_title(f"Share of pairs at the floor {floor:g}")
        lower.set_ylabel("share")
        lower.set_ylim(-0.03, 1.03)
        lower.set_xscale("log")
        lower.xaxis.set_minor_locator(NullLocator())
        lower.set_xticks(episodes, [str(episode) for episode in episodes])
        lower.set_xlabel("pseudo-episode k (log scale)")
        figure.legend(*upper.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
