"""Figures of ``batch``: what policies are worth, and what was promised of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brmdp._validation import FloatArray
from brmdp.report.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    CurveStyle,
    new_figure,
    styled,
)
from brmdp.runs import Experiment
from brmdp.studies.batch.analysis import (
    FAR_TAIL,
    TAIL,
    Batches,
    column_of,
    gain,
    quantile_over_logs,
)

__all__ = ["draw"]

STYLES = {
    "sampled": CurveStyle("sampled certificate", GREEN, "", "^"),
    "nested": CurveStyle("nested quantile", BLUE, "", "o"),
    "RSVF": CurveStyle("RSVF", ORANGE, "", "v"),
    "BCR": CurveStyle("credible sets (BCR)", VERMILION, "", "s"),
    "Hoeffding": CurveStyle("Hoeffding sets", SKY, "", "P"),
    "soft-robust": CurveStyle("soft-robust CVaR", PURPLE, "", "D"),
    "SPIBB": CurveStyle("SPIBB", BLACK, "", "x"),
    "mean": CurveStyle("mean", "0.55", "", "."),
}
"""The methods that are drawn."""

LOWEST = -1.6
"""Gains below this are drawn at the lower edge."""


def draw(experiment: Experiment, records: Mapping[str, Batches]) -> dict[str, Figure]:
    """Gains of policies, and bounds on the same scale, one panel per world."""
    worlds: dict[str, list[Batches]] = {}
    for found in records.values():
        worlds.setdefault(str(found.case.parameters["world"]), []).append(found)
    return {
        f"{experiment.name}-policies": _figure(worlds, _policies),
        f"{experiment.name}-bounds": _figure(worlds, _bounds),
    }


def _figure(
    worlds: Mapping[str, list[Batches]], panel: Callable[[Axes, list[Batches]], None]
) -> Figure:
    columns = min(len(worlds), 3)
    rows = -(-len(worlds) // columns)
    with styled():
        figure = new_figure(2.5 * columns + 0.3, 0.9 + 2.1 * rows)
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, (world, found) in zip(panels, worlds.items(), strict=False):
            panel(axes, found)
            axes.axhline(0.0, color=BLACK, linewidth=0.6, linestyle=(0, (1, 1.4)))
            axes.axhline(1.0, color=BLACK, linewidth=0.6, linestyle=(0, (1, 1.4)))
            axes.set_ylim(LOWEST - 0.1, 1.15)
            axes.set_xticks(
                range(len(found)), [f"{one.case.parameters['size']:,}" for one in found]
            )
            axes.set_xlim(-0.5, len(found) - 0.5)
            axes.set_title(world)
        for axes in panels[len(worlds) :]:
            figure.delaxes(axes)
        for axes in panels[: len(worlds) : columns]:
            axes.set_ylabel("0: practice, 1: optimum")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7.5)
    return figure


def _policies(axes: Axes, found: list[Batches]) -> None:
    """Mean gains; a line goes down to the 10 % quantile over logs, and a dot to that of 1 %."""
    shifts = np.linspace(-0.35, 0.35, len(STYLES))
    for shift, (method, style) in zip(shifts, STYLES.items(), strict=True):
        at = np.arange(len(found)) + shift
        gains = [gain(one, method) for one in found]
        means = np.array([one.mean() for one in gains])
        tails = np.array([quantile_over_logs(one, TAIL)[0] for one in gains])
        far = np.array([quantile_over_logs(one, FAR_TAIL)[0] for one in gains])
        axes.vlines(at, _shown(np.minimum(tails, means)), _shown(means), color=style.colour)
        axes.plot(at, _shown(far), ".", color=style.colour, markersize=2)
        _points(axes, at, means, style)


def _bounds(axes: Axes, found: list[Batches]) -> None:
    """Mean bounds on the scale of gains."""
    shown = {
        method: style
        for method, style in STYLES.items()
        if np.isfinite(column_of(found[0], "bound", method)).all()
    }
    shifts = np.linspace(-0.3, 0.3, len(shown))
    for shift, (method, style) in zip(shifts, shown.items(), strict=True):
        levels = []
        for one in found:
            bound, practice, optimum = (
                column_of(one, name, method) for name in ("bound", "practice", "optimum")
            )
            levels.append(float(((bound - practice) / (optimum - practice)).mean()))
        _points(axes, np.arange(len(found)) + shift, np.array(levels), style)


def _points(axes: Axes, at: FloatArray, levels: FloatArray, style: CurveStyle) -> None:
    axes.plot(
        at,
        _shown(levels),
        color=style.colour,
        marker=style.marker,
        markersize=4.5,
        linestyle="",
        label=style.label,
    )


def _shown(levels: FloatArray) -> FloatArray:
    shown: FloatArray = np.maximum(levels, LOWEST)
    return shown
