"""The report of ``lemmas``.

Deviations beside their bounds, and standardised sums beside the normal law.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from scipy.special import betaincinv, ndtri

from brmdp.report.content import Content
from brmdp.report.normal_plot import draw_against_normal, spread_ranks
from brmdp.report.replications import pooled
from brmdp.report.style import BLACK, BLUE, ORANGE, SKY, VERMILION, CurveStyle, new_figure, styled
from brmdp.runs import Experiment, Replications
from brmdp.studies.lemmas.analysis import (
    LEMMAS,
    SIDES,
    cases_of,
    lemmas_claims,
    lemmas_summary,
    lemmas_table,
    standardised,
)
from brmdp.theory import quantile_deviation_bounds

__all__ = ["decomposition_figure", "deviation_figure", "reporter"]

WIDTH = 6.6
GUIDE = "#999999"

SHOWN_LEVELS = ((0.9, 0.99, 0.9999), (0.1, 0.01, 0.0001))
"""Above and below the mean."""

SHOWN_ROWS = 700
"""Of each case; more would hide one another."""

DECADES = 3.5
"""How far below the largest bound the deviations are shown, in powers of ten."""

VALUES = {
    "uniform": CurveStyle("values spread over [0, R]", SKY, "", "o"),
    "extreme": CurveStyle("values at the ends", BLUE, "", "v"),
}
SUMS = {False: CurveStyle("", VERMILION, "", "o"), True: CurveStyle("", BLACK, "", "v")}


def reporter(experiment: Experiment, records: Mapping[str, Replications]) -> Content:
    """What is said of ``lemmas``."""
    figures: dict[str, Figure] = {}
    if deviations := cases_of(records, "quantile-deviation"):
        figures[f"{experiment.name}-deviation"] = deviation_figure(deviations)
    if worlds := cases_of(records, "value-decomposition"):
        figures[f"{experiment.name}-decomposition"] = decomposition_figure(worlds)
    return Content(
        summary=lemmas_summary(experiment, records),
        table=lemmas_table(records),
        claims=lemmas_claims(experiment, records),
        figures=figures,
    )


def deviation_figure(records: Mapping[str, Replications]) -> Figure:
    """A panel for each of six levels.

    Distance of the quantile from the mean, in units of R, against φ₀, and its bound.
    """
    with styled():
        figure = new_figure(WIDTH, 4.9)
        rows = figure.subplots(2, 3, sharex=True, sharey=True)
        for sign, levels, row in zip((1.0, -1.0), SHOWN_LEVELS, rows, strict=True):
            for level, axes in zip(levels, row, strict=True):
                _draw_deviations(axes, records, level, sign)
                axes.set_title(f"α = {level:g}")
            row[0].set_ylabel("(quantile − mean)/R" if sign > 0.0 else "(mean − quantile)/R")
        for axes in rows[-1]:
            axes.set_xlabel("total concentration φ₀")
        figure.legend(
            *rows[0, 0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=2,
            handlelength=2.4,
        )
    return figure


def _draw_deviations(
    axes: Axes, records: Mapping[str, Replications], level: float, sign: float
) -> None:
    totals = []
    for found in records.values():
        style = VALUES[found.case.parameters["values"]]
        chosen = np.flatnonzero(np.isclose(pooled(found, "level"), level, rtol=1e-9, atol=0.0))[
            :SHOWN_ROWS
        ]
        total = pooled(found, "total_concentration")[chosen]
        deviation = sign * (pooled(found, "deviation") / pooled(found, "value_range"))[chosen]
        axes.plot(
            total,
            # a skewed law may have its quantile on the other side of the mean, which a logarithmic
            # axis has no place for
            np.where(deviation > 0.0, deviation, np.nan),
            color=style.colour,
            linestyle="",
            marker=style.marker,
            markersize=2.2,
            markerfacecolor="none",
            markeredgewidth=0.6,
            label=style.label,
        )
        totals.append(total)
    ends = np.geomspace(np.concatenate(totals).min(), np.concatenate(totals).max(), 60)
    bounds = quantile_deviation_bounds(ends, np.full(ends.shape, level))
    bound = bounds.above if sign > 0.0 else bounds.below
    axes.plot(ends, bound, color=VERMILION, linewidth=1.6, label="bound of the lemma")
    axes.plot(
        ends, bound / 2.0, color=ORANGE, linestyle=(0, (5, 2)), linewidth=1.4, label="half of it"
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    top = 10.0 ** np.ceil(np.log10(bound.max()))
    axes.set_ylim(top / 10.0**DECADES, top)
    for axis, base in ((axes.xaxis, 100.0), (axes.yaxis, 10.0)):
        axis.set_major_locator(LogLocator(base))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())


def decomposition_figure(records: Mapping[str, Replications]) -> Figure:
    """Quantiles of the standardised sums of both lemmas against normal ones.

    With the band that chance leaves them.
    """
    with styled():
        figure = new_figure(WIDTH, 3.1)
        panels = figure.subplots(1, len(SIDES), sharex=True, sharey=True)
        sums = {
            (side, robust): standardised(records, side, robust=robust)
            for side in SIDES
            for robust in LEMMAS
        }
        for axes, (side, words) in zip(panels, SIDES.items(), strict=True):
            for robust, lemma in LEMMAS.items():
                draw_against_normal(
                    axes, sums[side, robust], SUMS[robust], f"decomposition {lemma}"
                )
            _draw_band(axes, sums[side, False].size)
            axes.set_title(words)
        # not one point may be out of sight
        reach = max(4.0, *(1.1 * float(np.abs(z).max()) for z in sums.values()))
        axes.set(xlim=(-4.0, 4.0), ylim=(-reach, reach))
        panels[0].set_ylabel("standardised average")
        figure.supxlabel("quantile of the standard normal law", fontsize=9)
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=2,
            handlelength=1.6,
        )
    return figure


def _draw_band(axes: Axes, size: int) -> None:
    """Where 95 % of the order statistics of standard normal numbers lie, each for itself."""
    rank = spread_ranks(size)
    low, high = (ndtri(betaincinv(rank + 1.0, size - rank, level)) for level in (0.025, 0.975))
    at = ndtri((rank + 0.5) / size)
    axes.fill_between(
        at,
        low,
        high,
        color=GUIDE,
        alpha=0.35,
        linewidth=0.0,
        label="95 % of normal samples of this size",
        zorder=0,
    )
    axes.axline((0.0, 0.0), slope=1.0, color=GUIDE, linewidth=1.0, label="the normal law", zorder=0)
