"""Figures of ``exploration``: the regret of every method in every world, one figure per family."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from brmdp.report.estimates import estimate
from brmdp.report.statistics import TRUE_REGRET
from brmdp.report.style import COLUMN, new_figure, styled
from brmdp.report.summary import count_of_runs, interactions
from brmdp.runs import CaseRecords, Experiment
from brmdp.studies.exploration.experiment import (
    ADAPTIVE,
    FAMILIES,
    LEARNING,
    MEAN,
    SAMPLING,
    VISITS,
    WORLDS,
)
from brmdp.studies.study import Records

__all__ = ["draw"]

COLOURS = {
    ADAPTIVE: "#D55E00",
    VISITS: "#D55E00",
    "brmdp-0.9": "#D55E00",
    SAMPLING: "#0072B2",
    MEAN: "#777777",
    LEARNING: "#777777",
}
"""Quantiles, posterior sampling, and what does not explore on purpose; the others are black."""
ROW_HEIGHT = 0.19


def draw(experiment: Experiment, records: Records) -> dict[str, Figure]:
    """One figure per family of worlds, with a panel per world; methods in order of regret."""
    agents = interactions(records)
    figures = {}
    for family, worlds in FAMILIES.items():
        here = {
            world: {name: found for name, found in agents.items() if name.startswith(f"{world}/")}
            for world in worlds
        }
        shown = {world: found for world, found in here.items() if found}
        if shown:
            figures[f"{experiment.name}-{family}"] = _figure(shown)
    return figures


def _figure(worlds: Mapping[str, Mapping[str, CaseRecords]]) -> Figure:
    with styled():
        heights = [0.9 + ROW_HEIGHT * len(found) for found in worlds.values()]
        figure = new_figure(COLUMN, sum(heights))
        panels = figure.subplots(len(worlds), squeeze=False, height_ratios=heights)[:, 0]
        for axes, (world, found) in zip(panels, worlds.items(), strict=True):
            _panel(axes, world, found)
            axes.set_title(f"{world}: {WORLDS[world].states} states, {count_of_runs(found)}")
        panels[-1].set_xlabel("cumulative true regret / largest reward (log scale; 95 % intervals)")
    return figure


def _panel(axes: Axes, world: str, records: Mapping[str, CaseRecords]) -> None:
    """Draw regrets as dots with intervals, the smallest on top."""
    samples = {name: TRUE_REGRET.samples(found) for name, found in records.items()}
    sizes = {
        name: estimate(regret / WORLDS[world].largest)
        for name, regret in samples.items()
        if regret is not None
    }
    order = sorted(sizes, key=lambda name: -float(sizes[name].mean))
    for row, name in enumerate(order):
        size, agent = sizes[name], name.rpartition("/")[2]
        mean = float(size.mean)
        axes.errorbar(
            mean,
            row,
            # a logarithmic axis cannot show an interval that reaches zero
            xerr=np.minimum(size.reach, 0.9 * mean)[:, None] if size.has_interval else None,
            color=COLOURS.get(agent, "black"),
            marker="o",
            markersize=3.5,
            linewidth=1.0,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(order)), [records[name].case.label for name in order])
    axes.set_ylim(-0.6, len(order) - 0.4)
