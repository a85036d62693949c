"""Figures of ``bbrl``: score against time per decision; and the races of settings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brmdp.report.style import BLACK, BLUE, ORANGE, VERMILION, new_figure, styled
from brmdp.runs import CaseRecords, Experiment, Replications
from brmdp.studies.bbrl.analysis import LABELS, OURS, per_decision, score
from brmdp.studies.bbrl.experiment import CHOSEN, EXPERIMENTS, METHODS, TuningColumns

__all__ = ["draw", "draw_tuning"]

ROW = 2.9
"""Height of a row of panels in inches."""


def draw(experiment: Experiment, records: Mapping[str, CaseRecords]) -> dict[str, Figure]:
    """One panel per experiment: every method's score with its interval."""
    shown = [one for one in EXPERIMENTS if any(name.startswith(f"{one}/") for name in records)]
    with styled():
        figure, panels = _panels(len(shown))
        for axes, one in zip(panels, shown, strict=True):
            here = {
                name.partition("/")[2]: found
                for name, found in records.items()
                if name.startswith(f"{one}/") and not name.endswith(("/random", "/optimal"))
            }
            for place, (name, found) in enumerate(reversed(here.items())):
                mean = score(found)
                axes.errorbar(
                    [float(mean.mean)],
                    [place],
                    xerr=mean.reach.reshape(2, 1),
                    color=BLUE if name in OURS else VERMILION if "bamcp" in name else BLACK,
                    marker="o",
                    markersize=4,
                )
            axes.set_yticks(
                np.arange(len(here)),
                [f"{LABELS[name]} ({per_decision(here[name]):.2g} ms)" for name in reversed(here)],
            )
            axes.set_title(one)
            axes.set_xlabel("discounted return")
    return {experiment.name: figure}


def draw_tuning(
    experiment: Experiment, records: Mapping[str, Replications[TuningColumns]]
) -> dict[str, Figure]:
    """One panel per experiment: what each setting gives up against the choice."""
    shown = [one for one in EXPERIMENTS if any(name.startswith(f"{one}/") for name in records)]
    colours = dict(
        zip(CHOSEN, (BLACK, ORANGE, BLUE, BLUE, BLUE, VERMILION, VERMILION), strict=True)
    )
    lines = dict(zip(CHOSEN, ("-", "-", "-", "--", ":", "-", "--"), strict=True))
    with styled():
        figure, panels = _panels(len(shown))
        for axes, one in zip(panels, shown, strict=True):
            for method in METHODS:
                found = records.get(f"{one}/{method.name}")
                if found is not None:
                    axes.plot(
                        np.arange(found.columns.setting.shape[1]),
                        found.columns.value[0],
                        color=colours[method.name],
                        linestyle=lines[method.name],
                        label=method.label,
                    )
            axes.set_title(one)
            axes.set_xlabel("setting, from the first to the last of its list")
            axes.set_ylabel("mean return")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return {experiment.name: figure}


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    columns = min(count, 2)
    rows = -(-count // columns)
    figure = new_figure(4.6 * columns, 0.6 + ROW * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes in panels[count:]:
        figure.delaxes(axes)
    return figure, panels[:count]
