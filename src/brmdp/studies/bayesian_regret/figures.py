"""Figures of ``bayesian-regret``: regret against T, growth exponents, and the theorem's bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from brmdp._validation import FloatArray, IntArray
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
    Benchmark,
    bound_growth,
    bound_of,
    growth,
    informative_from,
)

__all__ = ["draw"]

TITLES: dict[Benchmark, str] = {
    "true": "Regret against the true optimum, BR(T)",
    "robust": "Regret against the robust optimum, BR-R(T)",
}

FIRST_STEP = 10
"""Where curves begin; before that, most runs have not planned twice."""

POINTS = 80
MARKERS = 5
SHOWN_RANGE = 1e3
"""Ratio of the largest regret to the lower end of the axis."""

GUIDE = 1.6
"""How far the √T line lies above the largest regret where it comes closest, as a factor."""

HEADROOM = 10.0
"""Factor by which an axis is extended upwards, to make room for notes."""

GREY = "#555555"
SHADE = "#e8e8e8"
SHADED = 10.0
"""Upper end of the shading, as a multiple of the largest T/(1 − γ)."""

NOTE = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
"""The box behind a note."""


def draw(experiment: Experiment, records: Mapping[str, CaseRecords]) -> dict[str, Figure]:
    """Regret against T, the growth exponents, and the bound beside the measured regret."""
    runs = count_of_runs(records)
    return {
        f"{experiment.name}-curves": _curves(records, runs),
        f"{experiment.name}-growth": _exponents(records, runs),
        f"{experiment.name}-bound": _bounds(records, runs),
    }


def _styles(records: Mapping[str, CaseRecords]) -> dict[str, CurveStyle]:
    """The styles of other figures, with labels that tell the two schedules apart."""
    fixed = {
        "aq-brmdp-balanced": replace(STYLES["aq-brmdp"], label="AQ-BRMDP, δ = 1/√(SA)"),
        "aq-brmdp-delta-5": replace(
            STYLES["aq-brmdp-delta-5"], label="AQ-BRMDP, δ = 5", line="-", marker="P"
        ),
        "brmdp-0.2": replace(STYLES["brmdp-0.1"], label="BRMDP-0.2"),
    }
    return {name: fixed.get(name, style) for name, style in styles_of(records).items()}


def _curves(records: Mapping[str, CaseRecords], runs: str) -> Figure:
    """Both regrets against T, with the bound or T/(1 − γ), whichever is smaller."""
    styles = _styles(records)
    with styled():
        figure = new_figure(COLUMN, 6.8)
        panels = _two_panels(figure)
        for axes, benchmark in zip(panels, NAMES, strict=True):
            notes = [
                *_draw_cut_bound(axes, records, benchmark),
                *_draw_regrets(axes, records, styles, benchmark),
            ]
            axes.set_ylim(top=HEADROOM * axes.get_ylim()[1])
            axes.text(
                0.02,
                0.98,
                "\n".join(notes),
                transform=axes.transAxes,
                va="top",
                fontsize=8,
                color=GREY,
                bbox=NOTE,
            )
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=2,
            title=f"Worlds drawn from the prior ({runs}; means with 95 % intervals)",
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
        axes.set_title(TITLES[benchmark])
        axes.set_ylabel("regret (discounted value)")
    panels[-1].set_xlabel("steps T (both axes logarithmic)")
    return panels


def _draw_regrets(
    axes: Axes,
    records: Mapping[str, CaseRecords],
    styles: Mapping[str, CurveStyle],
    benchmark: Benchmark,
) -> list[str]:
    """Draw means with 95 % bands and a line of √T; returns notes on curves that are absent."""
    largest, steepest, notes = 0.0, 0.0, []
    for order, (name, found) in enumerate(records.items()):
        curve, style = CURVES[benchmark](found), styles[name]
        if curve is None:
            continue
        steps = _horizons(reported_steps(found))
        band = estimate(curve.values[:, steps - 1])
        if band.mean[-1] <= SOLVED * steps[-1]:
            notes.append(f"{style.label} has no regret of this kind")
            continue
        largest = max(largest, float(band.mean[-1]))
        steepest = max(steepest, float((band.mean / np.sqrt(steps)).max()))
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
        steps = _horizons(max(map(reported_steps, records.values())))
        axes.plot(
            steps,
            GUIDE * steepest * np.sqrt(steps),
            color=GREY,
            linewidth=1.0,
            linestyle=(0, (1, 2)),
            label="slope of √T",
        )
    return notes


def _positive(values: FloatArray) -> FloatArray:
    """The values, raised to what a logarithmic axis can show."""
    return np.maximum(values, SOLVED)


def _draw_cut_bound(
    axes: Axes, records: Mapping[str, CaseRecords], benchmark: Benchmark
) -> list[str]:
    """Draw the smaller of the bound and T/(1 − γ); returns a note if it is always the latter."""
    found = next((records[name] for name in BOUNDED if name in records), None)
    if found is None:
        return []
    steps = _horizons(reported_steps(found))
    bounds = [bound_of(found.case, benchmark, int(horizon)).value for horizon in steps]
    axes.plot(steps, bounds, color=GREY, linewidth=1.0, label="theorem’s bound, at most T/(1 − γ)")
    first = informative_from(found.case, benchmark)
    if first is not None and first <= steps[-1]:
        return []
    since = "" if first is None else f" up to T = {_written(first)}"
    return [f"solid grey line: T/(1 − γ), since the bound is above it{since}"]


def _exponents(records: Mapping[str, CaseRecords], runs: str) -> Figure:
    """Growth exponents with intervals, beside those of √T, of linear regret and of the bound."""
    styles = _styles(records)
    bar = {"color": GREY, "linewidth": 2.5}
    with styled():
        figure = new_figure(COLUMN, 4.8)
        panels = figure.subplots(2, sharex=True)
        for axes, benchmark in zip(panels, NAMES, strict=True):
            for slope, meaning in ((0.5, "√T"), (1.0, "linear")):
                axes.axvline(slope, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
                axes.text(
                    slope,
                    1.0,
                    f" {meaning}",
                    transform=axes.get_xaxis_transform(),
                    va="top",
                    fontsize=8,
                    color=GREY,
                )
            for row, (name, found) in enumerate(records.items()):
                _draw_exponent(axes, row, found, styles[name], benchmark)
                if name in BOUNDED:
                    allowed = bound_growth(found.case, benchmark)
                    axes.plot([allowed, allowed], [row - 0.35, row + 0.35], **bar)
            axes.set_yticks(range(len(records)), [styles[name].label for name in records])
            axes.set_ylim(len(records) - 0.4, -0.9)
            axes.set_title(TITLES[benchmark])
        panels[-1].set_xlabel("growth exponent p: regret grows as Tᵖ between T/10 and T")
        figure.legend(
            [
                Line2D(
                    [], [], marker="|", linestyle="", markersize=11, markeredgewidth=2.5, color=GREY
                )
            ],
            ["exponent of the √T terms of the bound, logarithms included"],
            loc="outside upper center",
            title=f"How fast does regret grow? ({runs}; 95 % intervals)",
        )
    return figure


def _draw_exponent(
    axes: Axes, row: int, found: CaseRecords, style: CurveStyle, benchmark: Benchmark
) -> None:
    """One exponent with its interval, or a word on why there is none."""
    exponent = growth(found, benchmark)
    if exponent is None or np.isnan(exponent.mean):
        axes.text(
            0.02,
            row,
            "not recorded" if exponent is None else "no regret at T/10",
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=8,
            color=GREY,
            bbox=NOTE,
        )
        return
    axes.errorbar(
        float(exponent.mean),
        row,
        xerr=exponent.reach[:, None],
        color=style.colour,
        marker=style.marker,
        markersize=6,
        capsize=3,
    )


def _bounds(records: Mapping[str, CaseRecords], runs: str) -> Figure:
    """The whole bound, up to horizons at which it is informative, and the measured regret."""
    bounded = {name: records[name] for name in BOUNDED if name in records}
    styles = _styles(bounded)
    first = {
        (benchmark, name): informative_from(found.case, benchmark)
        for benchmark in NAMES
        for name, found in bounded.items()
    }
    ends = [horizon or reported_steps(bounded[name]) for (_, name), horizon in first.items()]
    horizons = np.geomspace(FIRST_STEP, 100 * max(ends, default=FIRST_STEP), POINTS)
    with styled():
        figure = new_figure(COLUMN, 6.4)
        panels = _two_panels(figure)
        for axes, benchmark in zip(panels, NAMES, strict=True):
            if bounded:
                top = _shade_useless(axes, next(iter(bounded.values())).case.discount, horizons)
                for name, found in bounded.items():
                    _draw_whole_bound(axes, found, styles[name], benchmark, horizons)
                axes.set_ylim(top=top)
            said = [
                f"{_schedule(styles[name])}: "
                + ("never" if horizon is None else f"from T = {_written(horizon)}")
                for (regret, name), horizon in first.items()
                if regret == benchmark
            ]
            axes.text(
                0.98,
                0.04,
                "\n".join(["the bound is informative", *said]),
                transform=axes.transAxes,
                ha="right",
                fontsize=8,
                bbox=NOTE,
            )
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=2,
            title=f"AQ-BRMDP: the theorem’s bound and the measured regret ({runs})",
        )
    return figure


def _shade_useless(axes: Axes, discount: float, horizons: FloatArray) -> float:
    """Shade what lies above T/(1 − γ); returns how far up."""
    trivial = horizons / (1.0 - discount)
    top = SHADED * float(trivial[-1])
    label = "above T/(1 − γ), which no regret\nexceeds: a bound here says nothing"
    axes.fill_between(horizons, trivial, top, facecolor=SHADE, label=label)
    axes.set_xlim(float(horizons[0]), float(horizons[-1]))
    return top


def _draw_whole_bound(
    axes: Axes, found: CaseRecords, style: CurveStyle, benchmark: Benchmark, horizons: FloatArray
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
    """The part of a label that says which δ."""
    return style.label.rpartition(", ")[2]


def _horizons(last: int) -> IntArray:
    """Numbers of steps, evenly spaced on a logarithmic axis."""
    horizons: IntArray = np.unique(
        np.geomspace(min(FIRST_STEP, last), last, POINTS).round().astype(np.int64)
    )
    return horizons


def _written(number: float) -> str:
    """A number as it is, or as 2.4·10⁹ where that is shorter."""
    if 1e-3 <= number < 1e4:
        return f"{number:g}"
    exponent = math.floor(math.log10(number) + 1e-9)
    leading = f"{number / 10.0**exponent:.1f}".removesuffix(".0")
    power = "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if leading == "1" else f"{leading}·{power}"
