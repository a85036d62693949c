"""The figure; only this file of a study may import matplotlib."""

from __future__ import annotations

from brmdp.report.style import BLUE, COLUMN, new_figure, styled


def draw(experiment, records):
    """Width of the intervals against the number of tosses."""
    with styled():
        figure = new_figure(COLUMN, 2.6)
        axes = figure.add_subplot()
        tosses = [found.case.parameters["tosses"] for found in records.values()]
        widths = [found.pooled.width.mean() for found in records.values()]
        axes.plot(tosses, widths, color=BLUE, marker="o")
        axes.set_xscale("log")
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel("tosses")
        axes.set_ylabel("mean width of the 90 % interval")
        axes.set_title("More tosses, narrower intervals")
    return {experiment.name: figure}
