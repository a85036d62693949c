"""Figures of ``certificates``: every bound beside what the same policy is really worth."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brmdp.report.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    VERMILION,
    CurveStyle,
    new_figure,
    styled,
)
from brmdp.runs import Experiment
from brmdp.studies.certificates.analysis import Certificates, column_of

__all__ = ["draw"]

STYLES = {
    "nested": CurveStyle("nested, ᾱ (Proposition 1)", BLUE, "", "o"),
    "union of states": CurveStyle("nested, α/S", ORANGE, "", "v"),
    "union of pairs": CurveStyle("nested, α/(SA)", VERMILION, "", "s"),
    "all states": CurveStyle("sampled, all states", PURPLE, "", "D"),
    "one start": CurveStyle("sampled, one start", GREEN, "", "^"),
}
"""From the lowest bound to the highest, more or less."""


def draw(experiment: Experiment, records: Mapping[str, Certificates]) -> dict[str, Figure]:
    """One panel per world: bounds against the size of the log."""
    worlds: dict[str, list[Certificates]] = {}
    for found in records.values():
        worlds.setdefault(str(found.case.parameters["world"]), []).append(found)
    columns = min(len(worlds), 2)
    rows = -(-len(worlds) // columns)
    with styled():
        figure = new_figure(3.3 * columns + 0.2, 0.9 + 2.3 * rows)
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, (world, sizes) in zip(panels, worlds.items(), strict=False):
            _panel(axes, sizes)
            axes.set_title(world)
        for axes in panels[len(worlds) :]:
            figure.delaxes(axes)
        for axes in panels[::columns][:rows]:
            axes.set_ylabel("value at the start")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=columns, fontsize=8, handlelength=1.6
        )
    return {experiment.name: figure}


def _panel(axes: Axes, found: list[Certificates]) -> None:
    """Means over logs; what the policy of "one start" is worth as a bar above its bound."""
    at = np.arange(len(found))
    optimum = [float(column_of(one, "optimum", "nested").mean()) for one in found]
    axes.plot(at, optimum, color=BLACK, linestyle=(0, (1, 1.4)), label="optimum, if all were known")
    true = [float(column_of(one, "true_value", "one start").mean()) for one in found]
    axes.plot(
        at,
        true,
        color=BLACK,
        marker="_",
        markersize=14,
        linestyle="",
        label="true value of the policy\n(sampled, one start)",
    )
    for shift, (method, style) in zip(np.linspace(-0.2, 0.2, 5), STYLES.items(), strict=True):
        bounds = [float(column_of(one, "bound", method).mean()) for one in found]
        axes.plot(
            at + shift,
            bounds,
            color=style.colour,
            marker=style.marker,
            markersize=5,
            linestyle="",
            label=style.label,
        )
    axes.set_xticks(at, [f"{one.case.parameters['size']:,}" for one in found])
    axes.set_xlim(-0.5, len(found) - 0.5)
    unit = {"inventory": "days", "icu-sepsis": "patients"}
    world = str(found[0].case.parameters["world"])
    axes.set_xlabel(f"log, {unit.get(world, 'transitions')}")
