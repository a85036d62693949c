"""Figures of ``optimism``: how often the agent is optimistic, and what the lemma promises."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brmdp.report.estimates import SHARE, estimate
from brmdp.report.style import BLACK, BLUE, GREEN, VERMILION, new_figure, styled
from brmdp.runs import Experiment
from brmdp.studies.optimism.analysis import Optimism, by_world, first_informative, informative

__all__ = ["draw"]

COLUMNS = 2
WIDTH = 6.6
ROW_HEIGHT = 2.0


def draw(experiment: Experiment, records: Mapping[str, Optimism]) -> dict[str, Figure]:
    """How often the optimistic event holds, against what the lemma promises."""
    return {experiment.name: _optimism(records)}


def _optimism(records: Mapping[str, Optimism]) -> Figure:
    """One panel per δ: probabilities along the pseudo-episodes k."""
    height = -(-len(records) // COLUMNS)
    with styled():
        figure = new_figure(WIDTH, 1.4 + ROW_HEIGHT * height)
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
        worlds = sorted({len(by_world(found).event) for found in records.values()})
        counted = f"{worlds[0]:,}" if len(worlds) == 1 else f"{worlds[0]:,} to {worlds[-1]:,}"
        figure.suptitle(
            "How often is every planned backup at least the true one (event Gₖ)?\n"
            f"Observed in {counted} random worlds per δ, and promised by the lemma",
            fontsize=9.5,
        )
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _draw(axes: Axes, found: Optimism) -> None:
    worlds = by_world(found)
    episode = worlds.episode[0]
    band = estimate(worlds.event, bounds=SHARE)
    axes.plot(
        episode, band.mean, color=BLUE, linewidth=1.6, label="Gₖ: observed, with 95 % interval"
    )
    if band.has_interval:
        axes.fill_between(
            episode,
            band.low,
            band.high,
            facecolor=(BLUE, 0.15),
            edgecolor=(BLUE, 0.4),
            linewidth=0.5,
        )
    axes.plot(
        episode,
        worlds.event_probability.mean(axis=0),
        color=BLACK,
        linestyle=(0, (1, 1.4)),
        linewidth=1.7,
        label="Gₖ: product of the levels (its exact probability)",
    )
    _draw_promise(axes, found)
    axes.plot(
        episode,
        worlds.optimistic.mean(axis=0),
        color=GREEN,
        linestyle=(0, (6, 1.5, 1, 1.5)),
        linewidth=1.2,
        label="V* ≤ Vₖ at all states: observed",
    )
    axes.set_title(f"δ = {found.case.parameters['delta']:.3g}")
    axes.set_ylim(0.0, 1.03)
    axes.set_xlim(0.0, float(episode[-1]))


def _draw_promise(axes: Axes, found: Optimism) -> None:
    """The probability that the lemma states, where it is positive."""
    worlds, promised = by_world(found), informative(found)
    episode, stated = worlds.episode[0], worlds.stated_probability[0]
    # drawn even without a point, so that the legend is the same in all panels
    axes.plot(
        episode,
        np.where(promised, stated, np.nan),
        color=VERMILION,
        linestyle=(0, (5, 2)),
        linewidth=1.6,
        label="Gₖ: the lemma promises at least this",
    )
    neighbours = np.convolve(promised, [1, 0, 1], mode="same") > 0
    alone = promised & ~neighbours
    # a line does not show a point without neighbours
    axes.plot(
        episode[alone], stated[alone], color=VERMILION, linestyle="", marker="o", markersize=4
    )
    if not promised.any():
        axes.annotate(
            f"the lemma promises nothing before k = {first_informative(found):,}",
            (0.97, 0.93),
            xycoords="axes fraction",
            ha="right",
            va="top",
            fontsize=8,
            color=VERMILION,
        )
