"""Figures of ``from-logs`` and ``alarms``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brmdp.report.estimates import proportion
from brmdp.report.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    VERMILION,
    CurveStyle,
    new_figure,
    styled,
)
from brmdp.runs import Experiment
from brmdp.studies.from_logs.analysis import Alarms, Promises
from brmdp.studies.from_logs.experiment import CONFIDENCE

__all__ = ["draw_alarms", "draw_promises"]

SIZES = {10: CurveStyle("10 units", VERMILION, "", "o"), 60: CurveStyle("60 units", BLUE, "", "s")}

DEFECTS = {
    "none": CurveStyle("right model: any check", BLACK, (0, (1, 1.4)), "o"),
    "groups": CurveStyle("groups that differ, pooled", ORANGE, "-", "s"),
    "drift": CurveStyle("drift", BLUE, (0, (5, 2)), "^"),
    "memory": CurveStyle("memory", GREEN, (0, (6, 1.5, 1, 1.5)), "D"),
}


def draw_promises(experiment: Experiment, records: Mapping[str, Promises]) -> dict[str, Figure]:
    """Share of logs after which the certificate held, with its interval."""
    groups: dict[str, dict[int, Promises]] = {}
    for found in records.values():
        given = found.case.parameters
        label = f"{given['kind']},\n{given['truth']} truth"
        groups.setdefault(label, {})[int(given["units"])] = found
    with styled():
        figure = new_figure(5.4, 3.0)
        axes = figure.subplots()
        axes.axhline(CONFIDENCE, color=BLACK, linewidth=0.8, linestyle=(0, (1, 1.4)))
        lows: list[float] = []
        for k, sizes in enumerate(groups.values()):
            for shift, (units, found) in zip((-0.12, 0.12), sorted(sizes.items()), strict=False):
                style = SIZES.get(units, CurveStyle(f"{units} units", BLACK, "", "v"))
                lows.append(_point(axes, k + shift, found.pooled.held, style, first=k == 0))
        axes.set_xticks(range(len(groups)), list(groups), fontsize=7.5)
        axes.set_ylim(max(0.0, min([0.55, *lows]) - 0.05), 1.02)
        axes.set_ylabel("share of logs in which\nthe certificate held")
        axes.legend(loc="lower left")
    return {experiment.name: figure}


def _point(axes: Axes, x: float, happened: object, style: CurveStyle, *, first: bool) -> float:
    """Draw a share with its interval; its lower end."""
    found = proportion(np.asarray(happened))
    share, low, high = (float(one) for one in (found.mean, found.low, found.high))
    axes.errorbar(
        [x],
        [share],
        yerr=[[share - low], [high - share]],
        color=style.colour,
        marker=style.marker,
        linestyle="",
        label=style.label if first else None,
    )
    return low


def draw_alarms(experiment: Experiment, records: Mapping[str, Alarms]) -> dict[str, Figure]:
    """Share of logs that are stopped, against the number of units, one panel per kind."""
    kinds: dict[str, dict[str, list[Alarms]]] = {}
    for found in records.values():
        given = found.case.parameters
        kinds.setdefault(given["kind"], {}).setdefault(given["defect"], []).append(found)
    with styled():
        figure = new_figure(2.9 * len(kinds) + 0.4, 3.0)
        panels = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
        for axes, (kind, defects) in zip(panels, kinds.items(), strict=True):
            for defect, found_ones in defects.items():
                style = DEFECTS[defect]
                units = [int(one.case.parameters["units"]) for one in found_ones]
                shares = [
                    float((one.pooled.stops > 0).mean())
                    if defect == "none"
                    else float(one.pooled.named.mean())
                    for one in found_ones
                ]
                axes.plot(
                    units,
                    shares,
                    color=style.colour,
                    linestyle=style.line,
                    marker=style.marker,
                    label=style.label,
                )
            axes.set_xscale("log")
            axes.set_xticks(units, [str(unit) for unit in units])
            axes.minorticks_off()
            axes.set_title(kind)
            axes.set_xlabel("units in the log, of 25 steps each")
            axes.set_ylim(-0.03, 1.03)
        panels[0].set_ylabel("share of logs that are stopped")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return {experiment.name: figure}
