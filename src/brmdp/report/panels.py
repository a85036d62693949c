"""The panels that figures consist of; each draws one quantity of several cases."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from brmdp._validation import FloatArray, IntArray
from brmdp.report.curves import (
    WINDOW,
    Curve,
    cumulative_robust_regret,
    cumulative_true_regret,
    moving_average_reward,
    occupancy,
    quantile_value,
    reported_steps,
)
from brmdp.report.estimates import estimate
from brmdp.report.style import CurveStyle
from brmdp.runs import CaseRecords

__all__ = [
    "Panel",
    "gain_panel",
    "occupancy_panel",
    "quantile_value_panel",
    "regret_and_time_panel",
    "reward_panel",
    "robust_regret_panel",
    "true_regret_panel",
]

Panel: TypeAlias = Callable[[Axes, Mapping[str, CaseRecords], Mapping[str, CurveStyle]], None]
"""Draws onto axes, given the records and the style of each case by name."""

POINTS = 400
"""Most points of a drawn curve; more cannot be seen and would only make the files larger."""

MARKERS = 8
NUMBERED_CELLS = 12
"""Largest number of states for which occupancy is written into the heatmap."""

LABEL_WIDTH = 18
"""Most letters on one line of the heatmap's labels."""


def true_regret_panel(
    axes: Axes, records: Mapping[str, CaseRecords], styles: Mapping[str, CurveStyle]
) -> None:
    """Draw the cumulative true regret."""
    _draw_curves(axes, records, styles, cumulative_true_regret)
    axes.set_title("Cumulative true regret")
    axes.set_ylabel("regret (discounted value)")
    axes.set_ylim(bottom=0.0)


def gain_panel(baseline: str) -> Panel:
    """Panel of the baseline's cumulative true regret minus each other case's, on common seeds."""

    def panel(
        axes: Axes, records: Mapping[str, CaseRecords], styles: Mapping[str, CurveStyle]
    ) -> None:
        regret = cumulative_true_regret(records[baseline])

        def gain(found: CaseRecords) -> Curve | None:
            own = cumulative_true_regret(found)
            if regret is None or own is None or found is records[baseline]:
                return None
            return regret - own

        axes.axhline(0.0, color=styles[baseline].colour, linewidth=0.8)
        _draw_curves(axes, records, styles, gain)
        axes.set_title(f"Gain over {styles[baseline].label}, same seeds")
        axes.set_ylabel("regret saved")

    return panel


def robust_regret_panel(
    axes: Axes, records: Mapping[str, CaseRecords], styles: Mapping[str, CurveStyle]
) -> None:
    """Draw the cumulative robust regret."""
    _draw_curves(axes, records, styles, cumulative_robust_regret)
    levels = {
        found.case.robust_level for found in records.values() if found.robust_regret is not None
    }
    level = f", α̲ = {levels.pop():g}" if len(levels) == 1 else ""
    axes.set_title(f"Cumulative robust regret{level}")
    axes.set_ylabel("regret (discounted value)")
    axes.set_ylim(bottom=0.0)


def reward_panel(
    axes: Axes, records: Mapping[str, CaseRecords], styles: Mapping[str, CurveStyle]
) -> None:
    """Draw the moving-average reward."""
    _draw_curves(axes, records, styles, moving_average_reward)
    axes.set_title(f"Moving-average reward, window {WINDOW}")
    axes.set_ylabel("reward per step")
    if all((found.reward >= 0.0).all() for found in records.values()):
        axes.set_ylim(bottom=0.0)


def quantile_value_panel(
    axes: Axes, records: Mapping[str, CaseRecords], styles: Mapping[str, CurveStyle]
) -> None:
    """Draw the posterior quantile value at the first state."""
    _draw_curves(axes, records, styles, quantile_value)
    levels = {found.case.quantile_level for found in records.values() if found.quantile_value.size}
    level = f"{levels.pop():g}-" if len(levels) == 1 else ""
    axes.set_title(f"Posterior {level}quantile value of the policy at the first state")
    axes.set_ylabel("discounted value")


def _draw_curves(
    axes: Axes,
    records: Mapping[str, CaseRecords],
    styles: Mapping[str, CurveStyle],
    curve_of: Callable[[CaseRecords], Curve | None],
) -> None:
    """Draw means with 95 % bands over the reported steps."""
    last = max(reported_steps(found) for found in records.values())
    for order, (name, found) in enumerate(records.items()):
        curve, style = curve_of(found), styles[name]
        if curve is None or (curve := _thinned(curve.until(reported_steps(found)))).step.size == 0:
            continue
        band = curve.estimate()
        size = curve.step.size
        # markers at different places for each case, so that equal curves do not hide them
        marks = np.unique(
            np.linspace(0, size - 1, MARKERS + 1) + order * size / MARKERS / len(records)
        ).astype(int)
        above = 2.0 + (len(records) - order) / len(records)
        axes.plot(
            curve.step,
            band.mean,
            color=style.colour,
            linestyle=style.line,
            linewidth=style.width,
            marker=style.marker,
            markersize=3.5,
            markevery=[int(mark) for mark in marks if mark < size],
            label=style.label,
            zorder=above,
        )
        if band.has_interval:
            # edges tell bands apart where their fillings overlap
            axes.fill_between(
                curve.step,
                band.low,
                band.high,
                facecolor=(style.colour, 0.13),
                edgecolor=(style.colour, 0.45),
                linewidth=0.5,
                zorder=above - 1.0,
            )
    axes.set_xlim(0, last)
    axes.set_xlabel("time step")


def _thinned(curve: Curve) -> Curve:
    """The curve at no more than :data:`POINTS` points, including the first and the last."""
    kept: IntArray = np.unique(np.linspace(0, max(curve.step.size - 1, 0), POINTS).astype(np.int64))
    kept = kept[kept < curve.step.size]
    return Curve(curve.run, curve.step[kept], curve.values[:, kept])


def occupancy_panel(
    axes: Axes, records: Mapping[str, CaseRecords], styles: Mapping[str, CurveStyle]
) -> None:
    """Draw the share of the reported steps in each state, averaged over runs; one row per case."""
    shares: FloatArray = np.stack([occupancy(found).mean(axis=0) for found in records.values()])
    n_states = shares.shape[1]
    numbered = n_states <= NUMBERED_CELLS
    image = axes.imshow(
        shares, aspect="auto", cmap="Blues", vmin=0.0, vmax=1.0 if numbered else float(shares.max())
    )
    axes.grid(visible=False)
    axes.set_yticks(
        range(len(records)), [textwrap.fill(styles[name].label, LABEL_WIDTH) for name in records]
    )
    if numbered:
        axes.set_xticks(range(n_states))
        for row, column in np.ndindex(shares.shape):
            share = float(shares[row, column])
            axes.text(
                column,
                row,
                _short(share),
                ha="center",
                va="center",
                fontsize=7.5,
                color="white" if share > 0.55 else "black",
            )
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure = axes.get_figure()
        assert figure is not None
        figure.colorbar(image, ax=axes, pad=0.02, fraction=0.05)
    axes.hlines(
        np.arange(0.5, len(records) - 1), -0.5, n_states - 0.5, color="white", linewidth=1.5
    )
    axes.tick_params(length=0)
    steps = max(reported_steps(found) for found in records.values())
    axes.set_title(f"State occupancy: share of the first {steps} steps")
    river = all(found.case.environment == "riverswim" for found in records.values())
    axes.set_xlabel("state (0 is the left end, the paper's state 1)" if river else "state")


def _short(share: float) -> str:
    if share == 0.0:
        return "0"
    return "<.01" if share < 0.005 else f"{share:.2f}".lstrip("0")


def regret_and_time_panel(
    axes: Axes, records: Mapping[str, CaseRecords], styles: Mapping[str, CurveStyle]
) -> None:
    """Draw the true regret in excess of the first case's, on common seeds, against time per run.

    There are 95 % intervals in both directions.
    """
    first = next(iter(records))
    axes.axhline(0.0, color=styles[first].colour, linewidth=0.8)
    for name, found in records.items():
        style = styles[name]
        own, base = cumulative_true_regret(found), cumulative_true_regret(records[first])
        if own is None or base is None:
            continue
        extra = own - base
        regret = estimate(extra.after(min(reported_steps(found), reported_steps(records[first]))))
        seconds = estimate(found.seconds)
        axes.errorbar(
            float(seconds.mean),
            float(regret.mean),
            # a logarithmic axis cannot show an interval that reaches zero
            xerr=np.minimum(seconds.reach, 0.9 * float(seconds.mean))[:, None],
            yerr=regret.reach[:, None],
            color=style.colour,
            marker=style.marker,
            markersize=6,
            linewidth=1.0,
            label=style.label,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    steps = max(reported_steps(found) for found in records.values())
    axes.set_title(f"Extra true regret after {steps} steps, same seeds, and time")
    axes.set_xlabel("seconds per run (log scale)")
    axes.set_ylabel(f"regret − regret of “{styles[first].label}”")
