"""Figures of ``coverage``: how often certified bounds hold, and how conservative they are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brmdp.report.estimates import estimate
from brmdp.report.style import BLACK, BLUE, ORANGE, VERMILION, CurveStyle, new_figure, styled
from brmdp.runs import Experiment
from brmdp.studies.coverage.analysis import AXES, BOUNDS, Coverage, along, below_quantile

__all__ = ["draw"]

ROW_HEIGHT = 1.75
WIDTH = 6.6

STYLES = {
    "certified": CurveStyle(f"level {BOUNDS['certified']}", BLUE, "-", "o", 1.8),
    "union_of_states": CurveStyle(
        f"level {BOUNDS['union_of_states']}", ORANGE, (0, (1, 1.4)), "v", 1.8
    ),
    "union_of_pairs": CurveStyle(f"level {BOUNDS['union_of_pairs']}", VERMILION, (0, (5, 2)), "s"),
}


def draw(experiment: Experiment, records: Mapping[str, Coverage]) -> dict[str, Figure]:
    """Draw how often the certified bounds hold, and how conservative they are."""
    return {experiment.name: _coverage(records)}


def _coverage(records: Mapping[str, Coverage]) -> Figure:
    """One row per varied parameter, with coverage on the left and conservatism on the right."""
    sweeps = {axis: found for axis in AXES if len(found := along(records, axis)) > 1}
    # if nothing varies, show the single case all the same
    sweeps = sweeps or {next(iter(AXES)): along(records, next(iter(AXES)))}
    with styled():
        figure = new_figure(WIDTH, 0.3 + ROW_HEIGHT * len(sweeps))
        rows = figure.subplots(len(sweeps), 2, squeeze=False)
        for (left, right), (axis, found) in zip(rows, sweeps.items(), strict=True):
            _draw_coverage(left, found)
            _draw_conservatism(right, found)
            for axes in (left, right):
                axes.set_xticks(
                    range(len(found)), [f"{one.case.parameters[axis]:g}" for one in found]
                )
                axes.set_xlim(-0.4, len(found) - 0.6)
                axes.set_xlabel(AXES[axis])
        rows[0, 0].set_title("Share of posterior draws in\nwhich all bounds hold")
        rows[0, 1].set_title("Bound below the posterior\nα-quantile value, %")
        rows[0, 0].legend(
            loc="lower right", bbox_to_anchor=(1.0, 0.06), fontsize=7.5, handlelength=2.2
        )
        rows[0, 1].legend(loc="upper left", fontsize=7.5, handlelength=2.6)
    return figure


def _draw_coverage(axes: Axes, found: list[Coverage]) -> None:
    at = np.arange(len(found))
    wanted = [one.case.parameters["confidence"] for one in found]
    shares = [one.pooled.coverage for one in found]
    means = [float(share.mean()) for share in shares]
    below = [mean - float(share.min()) for mean, share in zip(means, shares, strict=True)]
    above = [float(share.max()) - mean for mean, share in zip(means, shares, strict=True)]
    axes.plot(
        at,
        wanted,
        color=BLACK,
        linestyle=(0, (1, 1.4)),
        marker="_",
        markersize=11,
        label="stated, 1 − α",
    )
    axes.errorbar(
        at,
        means,
        yerr=[below, above],
        color=BLUE,
        marker="o",
        markersize=4,
        linewidth=1.4,
        elinewidth=0.9,
        capsize=3,
        label="found: mean and range over beliefs",
    )
    axes.set_ylim(top=1.0 + 0.04 * (1.0 - min(*wanted, *(float(share.min()) for share in shares))))


def _draw_conservatism(axes: Axes, found: list[Coverage]) -> None:
    at = np.arange(len(found))
    for bound, style in STYLES.items():
        band = [estimate(below_quantile(one, bound)) for one in found]
        means = [float(part.mean) for part in band]
        reach = np.column_stack([part.reach for part in band])
        axes.errorbar(
            at,
            means,
            yerr=reach,
            color=style.colour,
            linestyle=style.line,
            linewidth=style.width,
            marker=style.marker,
            markersize=4,
            capsize=2,
            label=style.label,
        )
    axes.set_ylim(bottom=0.0)
