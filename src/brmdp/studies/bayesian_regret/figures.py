"""Figures of the Bayesian regret.

Its growth on logarithmic axes, the exponents, and where the bound begins to say something.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from brmdp._validation import FloatArray, IntArray
from brmdp.report.claims import judge
from brmdp.report.content import Content
from brmdp.report.curves import reported_steps
from brmdp.report.estimates import estimate
from brmdp.report.style import COLUMN, STYLES, CurveStyle, new_figure, styled, styles_of
from brmdp.report.summary import count_of_runs
from brmdp.runs import CaseRecords, Experiment
from brmdp.studies.bayesian_regret.analysis import (
    BOUNDED,
    CURVES,
    NAMES,
    SOLVED,
    bound_growth,
    bound_of,
    claims_of,
    growth,
    informative_from,
    regret_summary,
    regret_table,
)

__all__ = ["reporter"]

BENCHMARKS = {"true": "against the true optimum", "robust": "against the robust optimum"}
FIRST_STEP = 10
"""Where curves begin: before, most runs have not planned twice."""

POINTS = 80
MARKERS = 5
SHOWN_RANGE = 1e3
"""How far below the largest regret the axes reach."""

GREY = "#555555"


def reporter(experiment: Experiment, records: Mapping[str, CaseRecords]) -> Content:
    """The report of the experiment."""
    runs = count_of_runs(records)
    return Content(
        summary=regret_summary(experiment, records),
        table=regret_table(records),
        claims=judge(claims_of(experiment), experiment.name, records),
        figures={
            f"{experiment.name}-curves": _curves(records, runs),
            f"{experiment.name}-growth": _exponents(records, runs),
            f"{experiment.name}-bound": _bounds(records, runs),
        },
    )


def _styles(records: Mapping[str, CaseRecords]) -> dict[str, CurveStyle]:
    """Those of the other figures, under names that tell the two schedules apart."""
    fixed = {
        "aq-brmdp-balanced": replace(STYLES["aq-brmdp"], label="AQ-BRMDP, δ = 1/√(SA)"),
        "aq-brmdp-delta-5": replace(
            STYLES["aq-brmdp-delta-5"], label="AQ-BRMDP, δ = 5", line="-", marker="P"
        ),
        "brmdp-0.2": replace(STYLES["brmdp-0.1"], label="BRMDP-0.2"),
    }
    return {name: fixed.get(name, style) for name, style in styles_of(records).items()}


def _curves(records: Mapping[str, CaseRecords], runs: str) -> Figure:
    """Both regrets against T, beside the bound cut at the trivial one."""
    styles = _styles(records)
    with styled():
        figure = new_figure(COLUMN, 6.6)
        panels = _two_panels(figure)
        for axes, benchmark in zip(panels, NAMES, strict=True):
            notes = [
                *_draw_cut_bound(axes, records, benchmark),
                *_draw_regrets(axes, records, styles, benchmark),
            ]
            axes.text(0.02, 0.97, "\n".join(notes), transform=axes.transAxes, va="top", color=GREY)
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=2,
            title=f"Worlds drawn from the prior ({runs}; 95 % intervals)",
        )
    return figure


def _two_panels(figure: Figure) -> Sequence[Axes]:
    """Logarithmic axes for both regrets, one above the other."""
    panels: Sequence[Axes] = figure.subplots(2, sharex=True)
    for axes, benchmark in zip(panels, NAMES, strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _written(value)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _written(value)))
        axes.set_title(f"{NAMES[benchmark]}(T), {BENCHMARKS[benchmark]}")
        axes.set_ylabel("regret (discounted value)")
    panels[-1].set_xlabel("steps T")
    return panels


def _draw_regrets(
    axes: Axes, records: Mapping[str, CaseRecords], styles: Mapping[str, CurveStyle], benchmark: str
) -> list[str]:
    """Means with 95 % bands; returns what a reader should know who misses one."""
    largest, notes = 0.0, []
    for order, (name, found) in enumerate(records.items()):
        curve, style = CURVES[benchmark](found), styles[name]
        if curve is None:
            continue
        steps = _horizons(reported_steps(found))
        band = estimate(curve.values[:, steps - 1])
        if band.mean[-1] <= SOLVED * steps[-1]:
            notes.append(f"{style.label} has none")
            continue
        largest = max(largest, float(band.mean[-1]))
        marks = np.linspace(0, steps.size - 1, MARKERS + 1) + order * steps.size / MARKERS / len(
            records
        )
        axes.plot(
            steps,
            _positive(band.mean),
            color=style.colour,
            linestyle=style.line,
            linewidth=style.width,
            marker=style.marker,
            markersize=4.0,
            markevery=[int(mark) for mark in marks if mark < steps.size],
            label=style.label,
            zorder=3.0 - order / len(records),
        )
        if band.has_interval:
            axes.fill_between(
                steps,
                _positive(band.low),
                _positive(band.high),
                facecolor=(style.colour, 0.13),
                edgecolor=(style.colour, 0.45),
                linewidth=0.5,
            )
    if largest:
        axes.set_ylim(bottom=largest / SHOWN_RANGE)
    return notes


def _positive(values: FloatArray) -> FloatArray:
    """What a logarithmic axis has a place for."""
    return np.maximum(values, SOLVED)


def _draw_cut_bound(axes: Axes, records: Mapping[str, CaseRecords], benchmark: str) -> list[str]:
    """The smaller of the bound and T/(1 − γ); returns where it is the latter alone."""
    found = next((records[name] for name in BOUNDED if name in records), None)
    if found is None:
        return []
    steps = _horizons(reported_steps(found))
    bounds = [bound_of(found.case, benchmark, int(horizon)).value for horizon in steps]
    axes.plot(steps, bounds, color=GREY, linewidth=1.0, label="bound, at most T/(1 − γ)")
    first = informative_from(found.case, benchmark)
    if first is not None and first <= steps[-1]:
        return []
    return [
        "the bound is above T/(1 − γ) "
        f"{'at all T' if first is None else f'before T = {_written(first)}'}"
    ]


def _exponents(records: Mapping[str, CaseRecords], runs: str) -> Figure:
    """Growth exponents with intervals, beside those of √T, of the √T terms of the bound.

    And of linear regret.
    """
    styles = _styles(records)
    with styled():
        figure = new_figure(COLUMN, 4.4)
        panels = figure.subplots(2, sharex=True)
        for axes, benchmark in zip(panels, NAMES, strict=True):
            for row, (name, found) in enumerate(records.items()):
                style, exponent = styles[name], growth(found, benchmark)
                if exponent is None or np.isnan(exponent.mean):
                    nothing = "none to grow"
                    axes.text(
                        0.02,
                        row,
                        nothing,
                        transform=axes.get_yaxis_transform(),
                        va="center",
                        color=GREY,
                    )
                    continue
                axes.errorbar(
                    float(exponent.mean),
                    row,
                    xerr=exponent.reach[:, None],
                    color=style.colour,
                    marker=style.marker,
                    markersize=6,
                    capsize=3,
                )
                if name in BOUNDED:
                    allowed = bound_growth(found.case, benchmark)
                    axes.plot(
                        [allowed, allowed], [row - 0.35, row + 0.35], color=GREY, linewidth=2.0
                    )
            for slope in (0.5, 1.0):
                axes.axvline(slope, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
            axes.set_yticks(range(len(records)), [styles[name].label for name in records])
            axes.set_ylim(len(records) - 0.4, -0.6)
            axes.set_title(f"{NAMES[benchmark]}(T), {BENCHMARKS[benchmark]}")
        panels[-1].set_xlabel(
            "growth exponent over the last tenfold of T (½: √T; 1: linear;\ngrey bar: the √T terms "
            "of the bound)"
        )
        figure.suptitle(f"Growth of the regret ({runs}; 95 % intervals)", fontsize=9.5)
    return figure


def _bounds(records: Mapping[str, CaseRecords], runs: str) -> Figure:
    """The whole bound against T, as far as it takes to say something, and what was measured."""
    bounded = {name: records[name] for name in BOUNDED if name in records}
    styles = _styles(bounded)
    with styled():
        figure = new_figure(COLUMN, 6.2)
        panels = _two_panels(figure)
        for axes, benchmark in zip(panels, NAMES, strict=True):
            first = {
                name: informative_from(found.case, benchmark) for name, found in bounded.items()
            }
            ends = [first[name] or reported_steps(found) for name, found in bounded.items()]
            horizons = np.geomspace(FIRST_STEP, 100 * max(ends, default=FIRST_STEP), POINTS)
            for order, (name, found) in enumerate(bounded.items()):
                if order == 0:
                    trivial = horizons / (1.0 - found.case.discount)
                    axes.plot(
                        horizons,
                        trivial,
                        color=GREY,
                        linewidth=1.0,
                        label="T/(1 − γ), never exceeded",
                    )
                _draw_whole_bound(axes, found, styles[name], benchmark, horizons)
            said = [
                f"{_schedule(styles[name])}: "
                + ("never" if horizon is None else f"from T = {_written(horizon)}")
                for name, horizon in first.items()
            ]
            axes.text(
                0.98,
                0.03,
                "\n".join(["the bound is below T/(1 − γ)", *said]),
                transform=axes.transAxes,
                ha="right",
                color=GREY,
            )
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=2,
            title=f"AQ-BRMDP: the bound, and what was measured ({runs})",
        )
    return figure


def _draw_whole_bound(
    axes: Axes, found: CaseRecords, style: CurveStyle, benchmark: str, horizons: FloatArray
) -> None:
    case, curve = found.case, CURVES[benchmark](found)
    bounds = [bound_of(case, benchmark, int(horizon)).total for horizon in horizons]
    axes.plot(
        *(horizons, bounds),
        color=style.colour,
        linestyle=(0, (5, 2)) if style.width > 1.5 else (0, (1, 1.4)),
        linewidth=style.width,
        label=f"bound, {_schedule(style)}",
    )
    if curve is not None:
        steps = _horizons(reported_steps(found))
        mean = curve.values[:, steps - 1].mean(axis=0)
        there = mean > SOLVED * steps
        axes.plot(
            steps[there],
            mean[there],
            color=style.colour,
            linewidth=style.width,
            marker=style.marker,
            markersize=3.5,
            markevery=20,
            label=f"measured, {_schedule(style)}",
        )


def _schedule(style: CurveStyle) -> str:
    """The sensitivity alone."""
    return style.label.rpartition(", ")[2]


def _horizons(last: int) -> IntArray:
    """Numbers of steps, evenly spaced on a logarithmic axis."""
    horizons: IntArray = np.unique(
        np.geomspace(min(FIRST_STEP, last), last, POINTS).round().astype(np.int64)
    )
    return horizons


def _written(number: float) -> str:
    """As it is, or, where that is long, such as 2.4·10⁹."""
    if 1e-3 <= number < 1e5:
        return f"{number:g}"
    exponent = math.floor(math.log10(number) + 1e-9)
    leading = f"{number / 10.0**exponent:.1f}".removesuffix(".0")
    power = "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if leading == "1" else f"{leading}·{power}"
