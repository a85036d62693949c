"""The report of ``normality``.

How the limit of Theorem 1 is approached, and how good sample sizes planned from it are.
"""

from __future__ import annotations

from collections.abc import Mapping

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
from brmdp.report.content import Content
from brmdp.report.estimates import estimate
from brmdp.report.normal_plot import draw_against_normal
from brmdp.report.style import (
    BLACK,
    BLUE,
    COLUMN,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    CurveStyle,
    new_figure,
    styled,
    styles_of,
)
from brmdp.runs import Experiment, Replications
from brmdp.studies.normality.analysis import (
    Plans,
    Setting,
    Worlds,
    normality_summary,
    normality_table,
    plans_of,
    settings_of,
)
from brmdp.studies.normality.claims import judge_normality

__all__ = ["reporter"]

PANEL_HEIGHT = 2.0
GUIDE = "#999999"

LENGTHS = (
    CurveStyle("", SKY, "-", "v"),
    CurveStyle("", ORANGE, "-", "s"),
    CurveStyle("", VERMILION, "-", "D"),
    CurveStyle("", BLUE, "-", "o"),
    CurveStyle("", BLACK, "-", "^"),
)
"""Of trajectories, from the shortest on."""

BOTTOM = 0.2
"""Lower end of logarithmic axes, in units of what chance alone leaves."""


def reporter(experiment: Experiment, records: Mapping[str, Replications]) -> Content:
    """What is said of ``normality``."""
    worlds, plans = settings_of(records), plans_of(records)
    name = experiment.name
    with styled():
        figures: dict[str, Figure] = {}
        if worlds:
            figures |= {
                f"{name}-convergence": _convergence(worlds),
                f"{name}-quantiles": _quantiles(next(iter(worlds.values()))),
                f"{name}-shift": _shift(worlds),
                f"{name}-visits": _visits(worlds),
            }
        if plans:
            figures[f"{name}-sample-size"] = _sample_size(plans)
    return Content(
        summary=normality_summary(experiment, records, worlds, plans),
        table=normality_table(worlds),
        claims=judge_normality(experiment, worlds, plans),
        figures=figures,
    )


def _replications(worlds: Worlds) -> str:
    """How many there are of every setting, in words."""
    counts = sorted(
        {setting.fit.replications for settings in worlds.values() for setting in settings}
    )
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _powers(axes: Axes, values: list[int]) -> None:
    """A logarithmic axis with ticks at these numbers alone."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{value:,}" for value in values]))
    axes.xaxis.set_minor_locator(NullLocator())


def _plain_numbers(axis: Axis) -> None:
    """On a logarithmic axis: every power of ten in figures."""
    axis.set_major_locator(LogLocator(numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


# --- the limit ------------------------------------------------------------------------------------


def _convergence(worlds: Worlds) -> Figure:
    """The three distances against N."""
    titles = {
        "squared_bias": "Bias of the mean, in standard deviations",
        "squared_variance_error": "Relative error of the variance",
        "distance": "Kolmogorov–Smirnov distance",
    }
    figure = new_figure(COLUMN, 0.8 + PANEL_HEIGHT * len(titles))
    rows = figure.subplots(len(titles), sharex=True)
    styles = styles_of(worlds)
    lengths = sorted({setting.steps for settings in worlds.values() for setting in settings})
    for axes, (key, title) in zip(rows, titles.items(), strict=True):
        # chance alone leaves this much, and less cannot be seen
        replications = min(
            setting.fit.replications for settings in worlds.values() for setting in settings
        )
        floor = {"squared_bias": 1.0, "squared_variance_error": np.sqrt(2.0)}.get(
            key, 0.87
        ) / np.sqrt(replications)
        for number, (world, settings) in enumerate(worlds.items()):
            style = styles[world]
            found = [setting.distances[key] for setting in settings]
            ends = np.array([[float(one.mean), float(one.low), float(one.high)] for one in found]).T
            if key != "distance":
                ends = np.sqrt(np.maximum(ends, 0.0))
            mean, low, high = ends
            # a square less the share of chance may be below zero: then only its interval is shown
            mean = np.where(mean > 0.0, mean, np.nan)
            # side by side, or intervals would hide one another
            steps = np.array([setting.steps for setting in settings]) * 1.06 ** (
                number - (len(worlds) - 1) / 2
            )
            axes.vlines(
                steps, np.maximum(low, BOTTOM * floor), high, color=style.colour, linewidth=1.2
            )
            axes.plot(steps, high, color=style.colour, linestyle="", marker="_", markersize=5)
            axes.plot(
                steps,
                mean,
                color=style.colour,
                linestyle=style.line,
                linewidth=style.width,
                marker=style.marker,
                markersize=4,
                label=style.label,
            )
        axes.axhline(
            floor,
            color=GUIDE,
            linewidth=1.0,
            linestyle=(0, (1, 1.4)),
            label="what chance alone leaves",
        )
        regular = [settings[0] for settings in worlds.values() if not settings[0].hard]
        if regular and len(lengths) > 1:
            first = regular[0].distances[key]
            top = (
                float(first.mean)
                if key == "distance"
                else float(np.sqrt(max(float(first.mean), 0.0)))
            )
            ends = np.array([lengths[0], lengths[-1]], dtype=float)
            axes.plot(
                ends,
                1.6 * top * np.sqrt(lengths[0] / ends),
                color=GUIDE,
                linewidth=0.9,
                label="slope −½",
            )
        axes.set_yscale("log")
        axes.set_ylim(bottom=BOTTOM * floor)
        _plain_numbers(axes.yaxis)
        axes.set_title(title)
    _powers(rows[-1], lengths)
    rows[-1].set_xlabel("transitions N")
    handles, labels = rows[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=3,
        title=f"Distance from the limit ({_replications(worlds)} replications; 95 % intervals)",
    )
    return figure


def _quantiles(settings: tuple[Setting, ...]) -> Figure:
    """Quantiles of z at the state that is visited least against those of the limit.

    One panel for each N.
    """
    columns = 2
    rows = -(-len(settings) // columns)
    figure = new_figure(COLUMN, 0.7 + 2.3 * rows)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).reshape(-1)
    state = int(np.argmin(settings[0].limit.visit_frequencies))
    styles = (
        CurveStyle("", VERMILION, "", "v"),
        CurveStyle("", BLACK, "", "o"),
        CurveStyle("", SKY, "", "s"),
    )
    for axes, setting in zip(panels, settings, strict=False):
        levels = np.unique([0, setting.level(0.5), setting.limit.alpha.size - 1])
        for style, level in zip(styles, levels, strict=False):
            sample = setting.standardised[:, :, level, state]
            draw_against_normal(axes, sample, style, f"α = {setting.limit.alpha[level]:g}")
        axes.axline((0.0, 0.0), slope=1.0, color=GUIDE, linewidth=1.0, label="the limit")
        axes.set_title(f"N = {setting.steps:,}")
        axes.set(xlim=(-4.6, 4.6), ylim=(-4.6, 4.6))
    for axes in panels[len(settings) :]:
        axes.set_visible(False)
    figure.supxlabel("quantile of the standard normal law", fontsize=9)
    figure.supylabel("quantile of the replications", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=4,
        handlelength=1.5,
        title=f"{settings[0].world}, state {state} (visited least)",
    )
    return figure


def _shift(worlds: Worlds) -> Figure:
    """Mean of √N (V_{φ,α} − V) at the first state against the level, beside the prediction."""
    columns = 2
    rows = -(-len(worlds) // columns)
    figure = new_figure(COLUMN, 0.9 + 2.2 * rows)
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False).reshape(-1)
    fine = np.linspace(0.02, 0.98, 193)
    for axes, (world, settings) in zip(panels, worlds.items(), strict=False):
        # the mean is z_α times one number
        limit = settings[0].limit
        outer = int(np.argmax(np.abs(limit.alpha - 0.5)))
        unit = limit.mean[outer, 0] / ndtri(limit.alpha[outer])
        axes.plot(fine, ndtri(fine) * unit, color=GUIDE, linewidth=1.6, label="predicted")
        axes.axhline(0.0, color=GUIDE, linewidth=0.6)
        for style, setting in zip(LENGTHS, settings, strict=False):
            found = estimate(setting.deviations[..., 0].mean(axis=1))
            axes.errorbar(
                setting.limit.alpha,
                found.mean,
                yerr=found.reach,
                color=style.colour,
                linestyle="",
                marker=style.marker,
                markersize=4,
                markerfacecolor="none",
                capsize=2,
                label=f"N = {setting.steps:,}",
            )
        axes.set_title(world)
    for axes in panels[len(worlds) :]:
        axes.set_visible(False)
    figure.supxlabel("level α", fontsize=9)
    figure.supylabel("mean of √N (V_φ,α − V) at state 0", fontsize=9)
    handles, labels = max(
        (axes.get_legend_handles_labels() for axes in panels), key=lambda found: len(found[1])
    )
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=3,
        handlelength=1.8,
        title=f"Mean shift ({_replications(worlds)} replications; 95 % intervals)",
    )
    return figure


def _visits(worlds: Worlds) -> Figure:
    """Bias and distance of every state against its expected visits.

    Rarely seen states are far from the limit.
    """
    figure = new_figure(COLUMN, 0.8 + 2 * 2.3)
    upper, lower = figure.subplots(2, sharex=True)
    hard = [settings for settings in worlds.values() if settings[0].hard]
    others = [
        setting for settings in worlds.values() if not settings[0].hard for setting in settings
    ]

    def bias(setting: Setting) -> FloatArray:
        found: FloatArray = np.sqrt((setting.fit.bias**2).mean(axis=0))
        return found

    def distance(setting: Setting) -> FloatArray:
        found: FloatArray = setting.fit.distance.mean(axis=0)
        return found

    for axes, measure in ((upper, bias), (lower, distance)):
        for number, setting in enumerate(others):
            axes.plot(
                setting.expected_visits,
                measure(setting),
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
                    measure(setting),
                    color=style.colour,
                    linestyle="",
                    marker=style.marker,
                    markersize=5,
                    label=f"{setting.world}, N = {setting.steps:,}",
                )
                if axes is lower and setting is settings[-1]:
                    for state, where in enumerate(
                        zip(setting.expected_visits, measure(setting), strict=True)
                    ):
                        axes.annotate(
                            f"{state}",
                            where,
                            xytext=(0, -10 if state % 2 else 5),
                            textcoords="offset points",
                            fontsize=7,
                            ha="center",
                        )
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis)
    upper.set_yscale("log")
    _plain_numbers(upper.yaxis)
    upper.set_title("Bias of the mean, in standard deviations")
    lower.set_title("Kolmogorov–Smirnov distance")
    lower.set_ylim(-0.05, 1.1)
    lower.set_xlabel("expected visits N·n̄ of the state")
    handles, labels = upper.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=2,
        handlelength=1.0,
        title="A point for each state and N (numbers: states at the largest N)",
    )
    return figure


# --- sample sizes ---------------------------------------------------------------------------------


def _sample_size(plans: Plans) -> Figure:
    """What was needed over what was predicted, and what the predicted number achieved.

    Mean and the middle 90 % of plans.

    What was needed over what was predicted has the ratio of the means in place of the mean, as in
    the claims: the ratios of early plans are skewed.
    """
    figure = new_figure(COLUMN, 0.9 + 2 * 2.1)
    upper, lower = figure.subplots(2, sharex=True)
    styles = (
        CurveStyle("", BLUE, "-", "o"),
        CurveStyle("", SKY, (0, (5, 2)), "s"),
        CurveStyle("", VERMILION, "-", "D"),
        CurveStyle("", ORANGE, (0, (5, 2)), "v"),
        CurveStyle("", PURPLE, (0, (1, 1.4)), "^"),
        CurveStyle("", GREEN, "-", "P"),
    )
    for number, (label, group) in enumerate(plans.items()):
        style = styles[number % len(styles)]
        observed = np.array([plan.observed for plan in group]) * 1.12 ** (
            number - (len(plans) - 1) / 2
        )
        for axes, mean, ratios in (
            (
                upper,
                [plan.needed.mean() / plan.predicted.mean() for plan in group],
                [plan.needed / plan.predicted for plan in group],
            ),
            (
                lower,
                [plan.cost_ratio.mean() for plan in group],
                [plan.cost_ratio for plan in group],
            ),
        ):
            low, high = np.array([np.quantile(ratio, (0.05, 0.95)) for ratio in ratios]).T
            axes.vlines(observed, low, high, color=style.colour, linewidth=1.2)
            axes.plot(
                observed,
                mean,
                color=style.colour,
                linestyle=style.line,
                linewidth=0.8,
                marker=style.marker,
                markersize=4.5,
                label=label,
            )
    for axes in (upper, lower):
        axes.axhline(1.0, color=GUIDE, linewidth=1.0, zorder=0)
    _powers(lower, sorted({plan.observed for group in plans.values() for plan in group}))
    upper.set_title("Observations needed / predicted (ratio of the means)")
    lower.set_title("Cost of caution after the predicted number / ε")
    lower.set_xlabel("observations of every pair when the plan is made")
    handles, labels = upper.get_legend_handles_labels()
    counts = sorted({plan.needed.size for group in plans.values() for plan in group})
    counted = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=2,
        title=f"Planned sample sizes ({counted} plans each: mean and middle 90 %)",
    )
    return figure
