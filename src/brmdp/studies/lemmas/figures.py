"""Figures of ``lemmas``: deviations beside their bounds, and simulated sums beside exact ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from scipy.special import betaincinv, ndtri

from brmdp.report.normal_plot import draw_against_normal, spread_ranks
from brmdp.report.style import BLACK, BLUE, ORANGE, SKY, VERMILION, CurveStyle, new_figure, styled
from brmdp.runs import Experiment, Replications
from brmdp.studies.lemmas.analysis import (
    LEMMAS,
    SIDES,
    Decompositions,
    Deviations,
    cases_of,
    exceptions,
    standardised,
)
from brmdp.studies.lemmas.experiment import DecompositionColumns, DeviationColumns
from brmdp.theory import quantile_deviation_bounds

__all__ = ["draw"]

WIDTH = 6.6
GUIDE = "#999999"

SHOWN_LEVELS = ((0.9, 0.99, 0.9999), (0.1, 0.01, 0.0001))
"""Levels whose quantiles lie above the mean, and below it."""

SHOWN_ROWS = 700
"""Rows shown of each case; more would hide one another."""

DECADES = 3.5
"""How far below the largest bound deviations are shown, in powers of ten."""

VALUES = {
    "uniform": CurveStyle("values spread over [0, R]", SKY, "", "o"),
    "extreme": CurveStyle("values at 0 and R only", BLUE, "", "v"),
}
SUMS = {False: CurveStyle("", VERMILION, "", "o"), True: CurveStyle("", BLACK, "", "v")}


def draw(experiment: Experiment, records: Mapping[str, Replications[Any]]) -> dict[str, Figure]:
    """Deviations beside their bounds, and simulated sums beside exact ones."""
    figures: dict[str, Figure] = {}
    if deviations := cases_of(records, DeviationColumns):
        figures[f"{experiment.name}-deviation"] = _deviation(deviations)
    if worlds := cases_of(records, DecompositionColumns):
        figures[f"{experiment.name}-decomposition"] = _decomposition(worlds)
    return figures


# --- deviations -----------------------------------------------------------------------------------


def _deviation(records: Mapping[str, Deviations]) -> Figure:
    """One panel for each of six levels: distances of quantiles from the mean, and their bound."""
    beyond = sum(sum(exceptions(found)["deviation"].values()) for found in records.values())
    checked = sum(found.pooled.level.size for found in records.values())
    with styled():
        figure = new_figure(WIDTH, 5.3)
        rows = figure.subplots(2, 3, sharex=True, sharey=True)
        for sign, levels, row in zip((1.0, -1.0), SHOWN_LEVELS, rows, strict=True):
            for level, axes in zip(levels, row, strict=True):
                _draw_deviations(axes, records, level, sign)
                axes.set_title(f"α = {level:g}")
            side = "above" if sign > 0.0 else "below"
            row[0].set_ylabel(f"α-quantile {side} the mean,\nas a share of R")
        for axes in rows[-1]:
            axes.set_xlabel("total concentration φ₀")
        figure.suptitle(
            f"{f'{beyond:,}' if beyond else 'None'} of {checked:,} quantiles of random Dirichlet "
            "rows lie beyond the lemma's bound\nShown: one point per row, at six of the levels α",
            fontsize=9.5,
        )
        figure.legend(
            *rows[0, 0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=2,
            handlelength=2.4,
        )
    return figure


def _draw_deviations(
    axes: Axes, records: Mapping[str, Deviations], level: float, sign: float
) -> None:
    totals = []
    for found in records.values():
        style, rows = VALUES[found.case.parameters["values"]], found.pooled
        chosen = np.flatnonzero(np.isclose(rows.level, level, rtol=1e-9, atol=0.0))[:SHOWN_ROWS]
        total = rows.total_concentration[chosen]
        deviation = sign * (rows.deviation / rows.value_range)[chosen]
        axes.plot(
            total,
            # in a skewed row the quantile may lie on the other side of the mean; a logarithmic
            # axis has no place for it
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
    bound = np.asarray(bounds.above if sign > 0.0 else bounds.below)
    axes.plot(ends, bound, color=VERMILION, linewidth=1.6, label="bound of the lemma")
    axes.plot(
        ends,
        bound / 2.0,
        color=ORANGE,
        linestyle=(0, (5, 2)),
        linewidth=1.4,
        label="half of the bound",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    top = 10.0 ** np.ceil(np.log10(bound.max()))
    axes.set_ylim(top / 10.0**DECADES, top)
    for axis, base in ((axes.xaxis, 100.0), (axes.yaxis, 10.0)):
        axis.set_major_locator(LogLocator(base))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())


# --- decompositions -------------------------------------------------------------------------------


def _decomposition(records: Mapping[str, Decompositions]) -> Figure:
    """Quantiles of the standardised sums of both lemmas against normal quantiles."""
    with styled():
        figure = new_figure(WIDTH, 3.6)
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
        # every point must be visible
        reach = max(4.0, *(1.1 * float(np.abs(z).max()) for z in sums.values()))
        axes.set(xlim=(-4.0, 4.0), ylim=(-reach, reach))
        panels[0].set_ylabel("difference found,\nin standard errors")
        panels[len(panels) // 2].set_xlabel(
            "difference expected from pure chance (standard normal quantile)"
        )
        worlds = sums["gap", False].size
        figure.suptitle(
            "Do averages over simulated pseudo-episodes match both sides of the lemmas?\n"
            f"Sorted differences of {worlds:,} worlds. Diagonal: pure chance; skewed sums stray at "
            "the ends",
            fontsize=9.5,
        )
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=2,
            handlelength=1.6,
        )
    return figure


def _draw_band(axes: Axes, size: int) -> None:
    """The middle 95 % of each order statistic of standard normal numbers."""
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
        label="95 % range under pure chance, rank by rank",
        zorder=0,
    )
    axes.axline(
        (0.0, 0.0),
        slope=1.0,
        color=GUIDE,
        linewidth=1.0,
        label="pure chance (standard normal)",
        zorder=0,
    )
