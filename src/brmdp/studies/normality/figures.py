"""Figures of ``normality``: how the limit is approached, and how good planned samples were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedFormatter,
    FixedLocator,
    FuncFormatter,
    LogLocator,
    NullFormatter,
    NullLocator,
)
from scipy.special import ndtri

from brmdp._validation import FloatArray
from brmdp.report.estimates import estimate
from brmdp.report.normal_plot import draw_against_normal
from brmdp.report.style import (
    BLACK,
    BLUE,
    COLUMN,
    ORANGE,
    SKY,
    VERMILION,
    CurveStyle,
    new_figure,
    styled,
    styles_of,
)
from brmdp.runs import Experiment, Replications
from brmdp.studies.normality.experiment import PLANNED_STATE
from brmdp.studies.normality.samples import (
    PlanRecords,
    Plans,
    Setting,
    Worlds,
    plans_of,
    settings_of,
)

__all__ = ["draw"]

WIDTH = 6.6
PANEL_HEIGHT = 2.0
TITLE = 9.5
GUIDE = "#999999"
GREY = "#555555"
DOTTED = (0, (1, 1.4))

LENGTHS = (
    CurveStyle("", SKY, "-", "v"),
    CurveStyle("", ORANGE, "-", "s"),
    CurveStyle("", VERMILION, "-", "D"),
    CurveStyle("", BLUE, "-", "o"),
    CurveStyle("", BLACK, "-", "^"),
)
"""Styles of trajectories, from the shortest on."""

NOISE = {"squared_bias": 1.0, "squared_variance_error": np.sqrt(2.0), "distance": 0.87}
"""Distance of a sample of n from its own law, times √n."""

BOTTOM = 0.2
"""Lower end of logarithmic axes, as a share of the noise."""

WAYS = {
    "policy": "{world}: steps along the policy",
    "pairs": "{world}: transitions of chosen pairs",
}
"""How observations are collected, in words."""


def draw(experiment: Experiment, records: Mapping[str, Replications[Any]]) -> dict[str, Figure]:
    """How the limit is approached, and how good planned samples were."""
    worlds, plans = settings_of(records), plans_of(records)
    name = experiment.name
    figures: dict[str, Figure] = {}
    with styled():
        if worlds:
            figures |= {
                f"{name}-convergence": _convergence(worlds),
                f"{name}-quantiles": _quantiles(next(iter(worlds.values()))),
                f"{name}-shift": _shift(worlds),
                f"{name}-visits": _visits(worlds),
            }
        if plans:
            figures[f"{name}-sample-size"] = _sample_size(plans)
    return figures


def _all(worlds: Worlds) -> list[Setting]:
    return [setting for settings in worlds.values() for setting in settings]


def _in_words(counts: Iterable[int]) -> str:
    """One number, or a range of numbers."""
    found = sorted(set(counts))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def _replications(worlds: Worlds) -> str:
    return f"{_in_words(one.fit.replications for one in _all(worlds))} replications"


def _noise(worlds: Worlds, distance: str) -> float:
    """The distance to expect from chance alone; smaller ones cannot be seen."""
    fewest = min(setting.fit.replications for setting in _all(worlds))
    return float(NOISE[distance] / np.sqrt(fewest))


def _powers(axes: Axes, values: list[int]) -> None:
    """A logarithmic horizontal axis with ticks at these numbers alone."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{value:,}" for value in values]))
    axes.xaxis.set_minor_locator(NullLocator())


def _plain_numbers(axis: Axis) -> None:
    """Powers of ten written out, on a logarithmic axis."""
    axis.set_major_locator(LogLocator(numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


# --- the limit ------------------------------------------------------------------------------------


def _convergence(worlds: Worlds) -> Figure:
    """The three distances against N."""
    titles = {
        "squared_bias": "Bias of the mean, in standard deviations of the limit",
        "squared_variance_error": "Relative error of the variance",
        "distance": "Kolmogorov–Smirnov distance",
    }
    figure = new_figure(COLUMN, 1.3 + PANEL_HEIGHT * len(titles))
    rows = figure.subplots(len(titles), sharex=True)
    styles = styles_of(worlds)
    lengths = sorted({setting.steps for setting in _all(worlds)})
    for axes, (key, title) in zip(rows, titles.items(), strict=True):
        noise = _noise(worlds, key)
        for number, (world, settings) in enumerate(worlds.items()):
            style = styles[world]
            mean, low, high = _ends(settings, key)
            # side by side, or intervals would hide one another
            steps = np.array([setting.steps for setting in settings]) * 1.06 ** (
                number - (len(worlds) - 1) / 2
            )
            axes.vlines(
                steps, np.maximum(low, BOTTOM * noise), high, color=style.colour, linewidth=1.2
            )
            axes.plot(steps, high, color=style.colour, linestyle="", marker="_", markersize=5)
            axes.plot(
                steps,
                # a square minus the share of chance may be below zero: only its interval is shown
                np.where(mean > 0.0, mean, np.nan),
                color=style.colour,
                linestyle=style.line,
                linewidth=style.width,
                marker=style.marker,
                markersize=4,
                label=style.label,
            )
        axes.axhline(
            noise, color=GUIDE, linewidth=1.0, linestyle=DOTTED, label="expected from chance alone"
        )
        regular = [settings for settings in worlds.values() if not settings[0].hard]
        if regular and len(lengths) > 1:
            top = _ends(regular[0][:1], key)[0][0]
            ends = np.array([lengths[0], lengths[-1]], dtype=float)
            axes.plot(
                ends,
                1.6 * top * np.sqrt(lengths[0] / ends),
                color=GUIDE,
                linewidth=0.9,
                label="slope of 1/√N",
            )
        axes.set_yscale("log")
        axes.set_ylim(bottom=BOTTOM * noise)
        _plain_numbers(axes.yaxis)
        axes.set_title(title)
    _powers(rows[-1], lengths)
    rows[-1].set_xlabel("transitions N")
    figure.suptitle(
        "How far are quantile values from their normal limit?\n"
        f"Averages over states and levels; {_replications(worlds)}, 95 % intervals",
        fontsize=TITLE,
    )
    figure.legend(*rows[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _ends(settings: Iterable[Setting], key: str) -> FloatArray:
    """Mean and interval of a distance, roots taken of squares, (3, settings)."""
    found = [setting.distances[key] for setting in settings]
    ends = np.array([[float(one.mean), float(one.low), float(one.high)] for one in found]).T
    return ends if key == "distance" else np.sqrt(np.maximum(ends, 0.0))


def _quantiles(settings: tuple[Setting, ...]) -> Figure:
    """Quantiles of z against normal ones, in the state visited least; one panel for each N."""
    columns = 2
    rows = -(-len(settings) // columns)
    figure = new_figure(COLUMN, 1.1 + 2.3 * rows)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    state = int(np.argmin(settings[0].limit.visit_frequencies))
    styles = (
        CurveStyle("", VERMILION, "", "v"),
        CurveStyle("", BLACK, "", "o"),
        CurveStyle("", SKY, "", "s"),
    )
    shown = panels.reshape(-1)
    for axes, setting in zip(shown, settings, strict=False):
        levels = np.unique([0, setting.level(0.5), setting.limit.alpha.size - 1])
        for style, level in zip(styles, levels, strict=False):
            sample = setting.standardised[:, :, level, state]
            draw_against_normal(axes, sample, style, f"α = {setting.limit.alpha[level]:g}")
        axes.axline((0.0, 0.0), slope=1.0, color=GUIDE, linewidth=1.0, label="the limit")
        axes.set_title(f"N = {setting.steps:,}")
        axes.set(xlim=(-4.6, 4.6), ylim=(-4.6, 4.6))
    for axes in shown[len(settings) :]:
        axes.set_visible(False)
    _label_outside(panels, "standard normal quantile", "quantile of the replications")
    figure.suptitle(
        "Are standardised quantile values normal? On the grey line they are.\n"
        f"{settings[0].world}, state {state}, the one visited least; "
        f"{_replications({settings[0].world: settings})}",
        fontsize=TITLE,
    )
    figure.legend(
        *shown[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, handlelength=1.5
    )
    return figure


def _label_outside(panels: Any, below: str, left: str) -> None:
    """Label the lowest row of panels and the first column."""
    for axes in panels[-1]:
        axes.set_xlabel(below)
    for axes in panels[:, 0]:
        axes.set_ylabel(left)


def _shift(worlds: Worlds) -> Figure:
    """Mean of √N (V_{φ,α} − V) in the first state against the level, beside the prediction."""
    columns = 2
    rows = -(-len(worlds) // columns)
    figure = new_figure(WIDTH, 1.3 + 2.3 * rows)
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False)
    shown = panels.reshape(-1)
    for axes, (world, settings) in zip(shown, worlds.items(), strict=False):
        limit = settings[0].limit
        # the predicted mean is z_α times one number, a straight line on a scale of z_α
        outer = int(np.argmax(np.abs(limit.alpha - 0.5)))
        unit = limit.mean[outer, 0] / ndtri(limit.alpha[outer])
        ends = ndtri(np.array([0.035, 0.965]))
        axes.plot(ends, unit * ends, color=GUIDE, linewidth=1.6, label="predicted limit")
        for number, (style, setting) in enumerate(zip(LENGTHS, settings, strict=False)):
            found = estimate(setting.deviations[..., 0].mean(axis=1))
            axes.errorbar(
                ndtri(setting.limit.alpha),
                found.mean,
                yerr=found.reach,
                color=style.colour,
                linestyle="",
                marker=style.marker,
                # larger ones first, so that none hides another
                markersize=7.5 - 1.2 * number,
                markerfacecolor="none",
                capsize=2,
                label=f"N = {setting.steps:,}",
            )
        axes.set_xticks(ndtri(limit.alpha), [f"{alpha:g}" for alpha in limit.alpha])
        axes.set_title(
            f"{world}\n(state 0: {100.0 * limit.visit_frequencies[0]:.2g} % of all visits)"
        )
    for axes in shown[len(worlds) :]:
        axes.set_visible(False)
    _label_outside(panels, "level α (normal scale)", "√N × (mean quantile value\n− true value)")
    figure.suptitle(
        "Does the level α shift the mean quantile value as Theorem 1 predicts?\n"
        f"At state 0; on the grey line: as predicted. {_replications(worlds)}, 95 % intervals",
        fontsize=TITLE,
    )
    handles, labels = max(
        (axes.get_legend_handles_labels() for axes in shown), key=lambda found: len(found[1])
    )
    figure.legend(handles, labels, loc="outside lower center", ncols=5, handlelength=1.8)
    return figure


def _visits(worlds: Worlds) -> Figure:
    """Bias and distance of every state against its expected visits."""
    figure = new_figure(COLUMN, 1.3 + 2 * 2.3)
    upper, lower = figure.subplots(2, sharex=True)
    hard = [settings for settings in worlds.values() if settings[0].hard]
    others = [setting for setting in _all(worlds) if not setting.hard]

    def bias(setting: Setting) -> FloatArray:
        found: FloatArray = np.sqrt((setting.fit.bias**2).mean(axis=0))
        return found

    def distance(setting: Setting) -> FloatArray:
        found: FloatArray = setting.fit.distance.mean(axis=0)
        return found

    for axes, key, measured in (
        (upper, "squared_bias", bias),
        (lower, "distance", distance),
    ):
        for number, setting in enumerate(others):
            axes.plot(
                setting.expected_visits,
                measured(setting),
                color=GUIDE,
                linestyle="",
                marker=".",
                markersize=4,
                label="random worlds, all N" if number == 0 else None,
            )
        for settings in hard:
            for style, setting in zip(LENGTHS, settings, strict=False):
                axes.plot(
                    setting.expected_visits,
                    measured(setting),
                    color=style.colour,
                    linestyle="",
                    marker=style.marker,
                    markersize=5,
                    label=f"{setting.world}, N = {setting.steps:,}",
                )
            _number_states(axes, settings[-1], measured)
        axes.axhline(
            _noise(worlds, key),
            color=GUIDE,
            linewidth=1.0,
            linestyle=DOTTED,
            label="expected from chance alone",
        )
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis)
    upper.set_yscale("log")
    _plain_numbers(upper.yaxis)
    upper.set_title("Bias of the mean, in standard deviations of the limit")
    lower.set_title("Kolmogorov–Smirnov distance (0: at the limit, 1: nothing in common)")
    lower.set_ylim(-0.05, 1.12)
    lower.set_xlabel("expected visits to the state, N·n̄")
    figure.suptitle(
        "Are states with many visits closer to their normal limit?\n"
        "One point per state and N"
        + ("; small numbers: RiverSwim's states at the largest N" if hard else ""),
        fontsize=TITLE,
    )
    figure.legend(
        *upper.get_legend_handles_labels(), loc="outside lower center", ncols=2, handlelength=1.8
    )
    return figure


def _number_states(axes: Axes, setting: Setting, measured: Callable[[Setting], FloatArray]) -> None:
    for state, where in enumerate(zip(setting.expected_visits, measured(setting), strict=True)):
        axes.annotate(
            f"{state}",
            where,
            # the last two are neighbours
            xytext=(-7 if state == setting.limit.visit_frequencies.size - 1 else 7, 3),
            textcoords="offset points",
            fontsize=7,
            ha="center",
        )


# --- sample sizes ---------------------------------------------------------------------------------


def _sample_size(plans: Plans) -> Figure:
    """A row for each kind of plan: what was planned and needed, and what the plan achieved.

    Ratios of observations are ratios of the means, as in the claims: those of single early plans
    are skewed.
    """
    places, headings = _rows(plans)
    figure = new_figure(WIDTH, 1.6 + 0.2 * (len(places) + len(headings)))
    text, left, right = figure.subplots(1, 3, sharey=True, width_ratios=(1.2, 1.0, 1.0))
    _write_rows(text, places, headings)
    for place, plan in places.items():
        _draw_plans(left, place, plan.needed_ratio, plan.needed / plan.predicted)
        _draw_plans(right, place, float(plan.cost_ratio.mean()), plan.cost_ratio)
    _ratio_axis(left, "needed ÷ planned", "planned\ntoo many", "planned\ntoo few")
    _ratio_axis(right, "cost after the plan ÷ ε", "goal\nreached", "goal\nmissed")
    text.set_ylim(max(places) + 0.6, -1.9)
    every = [plan for group in plans.values() for plan in group]
    shares = " or ".join(f"{share:g}" for share in sorted({plan.share for plan in every}))
    figure.suptitle(
        "Do plans ask for the right number of further observations? At 1 they do.\n"
        f"Goal: bring the cost of caution at state {PLANNED_STATE} down to ε = {shares} × what it "
        "is when planning.\n"
        f"{_in_words(plan.needed.size for plan in every)} plans per row; points: means, bars: "
        "middle 90 % of plans",
        fontsize=TITLE,
    )
    return figure


def _rows(plans: Plans) -> tuple[dict[float, PlanRecords], dict[float, str]]:
    """Where the plans and their headings stand, from the top."""
    places: dict[float, PlanRecords] = {}
    headings: dict[float, str] = {}
    place = 0.0
    for group in plans.values():
        headings[place] = WAYS[group[0].way].format(world=group[0].world)
        for plan in group:
            place += 1.0
            places[place] = plan
        place += 1.0
    return places, headings


def _write_rows(
    axes: Axes, places: Mapping[float, PlanRecords], headings: Mapping[float, str]
) -> None:
    """The numbers of every row."""
    axes.set_axis_off()
    axes.set_xlim(0.0, 1.0)
    columns = {0.33: "observed\nper pair", 0.66: "planned\n(mean)", 1.0: "needed\n(mean)"}
    for at, words in columns.items():
        axes.text(at, -0.7, words, ha="right", va="bottom", fontsize=8)
    for place, words in headings.items():
        axes.text(0.0, place, words, ha="left", va="center", fontsize=8, fontweight="bold")
    for place, plan in places.items():
        numbers = (plan.observed, plan.predicted.mean(), plan.needed.mean())
        for at, number in zip(columns, numbers, strict=True):
            axes.text(at, place, f"{number:,.0f}", ha="right", va="center", fontsize=8)


def _draw_plans(axes: Axes, place: float, mean: float, ratios: FloatArray) -> None:
    low, high = np.quantile(ratios, (0.05, 0.95))
    axes.hlines(place, low, high, color=BLUE, linewidth=1.6)
    axes.plot([mean], [place], color=BLUE, marker="o", markersize=4.5)


def _ratio_axis(axes: Axes, words: str, below: str, above: str) -> None:
    """A logarithmic axis of ratios around 1, with what it means to lie on either side."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    reach = 1.05 * max(high, 1.0 / low)
    steps = (1.1, 1.25) if reach < 1.5 else (1.25, 1.5) if reach < 2.0 else (2.0, 3.0, 5.0)
    ticks = [1.0, *(end for step in steps if step < reach for end in (1.0 / step, step))]
    axes.set_xlim(1.0 / reach, reach)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{round(tick, 2):g}" for tick in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(words)
    axes.axvline(1.0, color=BLACK, linewidth=0.9, zorder=0)
    axes.tick_params(axis="y", left=False, labelleft=False)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False, axis="y")
    for side, at in ((below, 0.25), (above, 0.75)):
        axes.text(
            at, 1.0, side, transform=axes.transAxes, ha="center", va="top", fontsize=8, color=GREY
        )
