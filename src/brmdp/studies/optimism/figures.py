"""The report of ``optimism``.

How often the optimistic event holds, against what the lemma states.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brmdp.report.content import Content
from brmdp.report.estimates import estimate
from brmdp.report.statistics import SHARE
from brmdp.report.style import BLACK, BLUE, VERMILION, new_figure, styled
from brmdp.runs import Experiment, Replications
from brmdp.studies.optimism.analysis import (
    by_world,
    optimism_claims,
    optimism_summary,
    optimism_table,
)

__all__ = ["optimism_figure", "reporter"]

COLUMNS = 2
WIDTH = 6.6
ROW_HEIGHT = 2.0


def reporter(experiment: Experiment, records: Mapping[str, Replications]) -> Content:
    """What is said of ``optimism``."""
    return Content(
        summary=optimism_summary(experiment, records),
        table=optimism_table(records),
        claims=optimism_claims(experiment, records),
        figures={experiment.name: optimism_figure(records)},
    )


def optimism_figure(records: Mapping[str, Replications]) -> Figure:
    """A panel for each δ.

    Observed frequency of G_k, product of the levels, and the stated probability, along k.
    """
    height = -(-len(records) // COLUMNS)
    with styled():
        figure = new_figure(WIDTH, 0.9 + ROW_HEIGHT * height)
        panels = figure.subplots(height, COLUMNS, squeeze=False, sharex=True, sharey=True).reshape(
            -1
        )
        for axes, found in zip(panels, records.values(), strict=False):
            _draw(axes, found)
        for axes in panels[len(records) :]:
            axes.set_visible(False)
        for number, axes in enumerate(panels[: len(records)]):
            if number % COLUMNS == 0:
                axes.set_ylabel("probability")
            if number + COLUMNS >= len(records):
                axes.set_xlabel("pseudo-episode k")
                axes.tick_params(labelbottom=True)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def _draw(axes: Axes, found: Replications) -> None:
    episode = by_world(found, "episode")[0]
    band = estimate(by_world(found, "event"), bounds=SHARE)
    axes.plot(episode, band.mean, color=BLUE, linewidth=1.6, label="G_k observed, 95 % interval")
    if band.has_interval:
        axes.fill_between(
            episode,
            band.low,
            band.high,
            facecolor=(BLUE, 0.15),
            edgecolor=(BLUE, 0.4),
            linewidth=0.5,
        )
    product = by_world(found, "event_probability").mean(axis=0)
    axes.plot(
        episode,
        product,
        color=BLACK,
        linestyle=(0, (1, 1.4)),
        linewidth=1.7,
        label="product of the levels, mean",
    )
    stated = by_world(found, "stated_probability")[0]
    positive = stated > 0.0
    spoken = np.where(positive, stated, np.nan)
    # drawn without a point too, so that the legend is the same in all panels
    axes.plot(
        episode,
        spoken,
        color=VERMILION,
        linestyle=(0, (5, 2)),
        linewidth=1.6,
        label="stated by the lemma, where above 0",
    )
    neighbours = np.convolve(positive, [1, 0, 1], mode="same") > 0
    alone = positive & ~neighbours
    # a line does not show a point without neighbours
    axes.plot(
        episode[alone], stated[alone], color=VERMILION, linestyle="", marker="o", markersize=4
    )
    axes.plot(
        episode,
        by_world(found, "optimistic").mean(axis=0),
        color=BLUE,
        linestyle=(0, (6, 1.5, 1, 1.5)),
        linewidth=1.0,
        label="V* ≤ V_k observed",
    )
    axes.set_title(f"δ = {found.case.parameters['delta']:.3g}")
    axes.set_ylim(0.0, 1.03)
    axes.set_xlim(0.0, float(episode[-1]))
