"""Which panels make which figure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, count
from typing import Any

from matplotlib.figure import Figure

from brmdp.report.panels import (
    Panel,
    occupancy_panel,
    quantile_value_panel,
    reward_panel,
    robust_regret_panel,
    true_regret_panel,
)
from brmdp.report.style import COLUMN, new_figure, styled, styles_of
from brmdp.report.summary import count_of_runs, interactions, same_world
from brmdp.runs import CaseRecords, Experiment, Replications

__all__ = ["draw_agents", "draw_panels"]

PANEL_HEIGHT = 2.25
LABELS_IN_A_ROW = 52
"""Letters of labels that fit into one row of the legend."""


def draw_agents(
    experiment: Experiment,
    records: Mapping[str, CaseRecords | Replications[Any]],
    panels: tuple[Panel, ...] | None = None,
) -> dict[str, Figure]:
    """Figures that compare agents, one per environment, by file name without extension.

    By default there is a panel for everything that was recorded.
    """
    agents = interactions(records)
    worlds = _worlds(
        {case.name: agents[case.name] for case in experiment.cases if case.name in agents}
    )
    if len(worlds) == 1:
        (world,) = worlds
        figure = draw_panels(experiment.title, panels or _recorded(world), world)
        return {experiment.name: figure}
    return {
        f"{experiment.name}-{name}": draw_panels(
            f"{experiment.title}: {name}", panels or _recorded(world), world
        )
        for name, world in _named(worlds).items()
    }


def _named(worlds: list[dict[str, CaseRecords]]) -> dict[str, dict[str, CaseRecords]]:
    """The worlds by the common beginning of the names of their cases; numbers keep them apart."""
    named: dict[str, dict[str, CaseRecords]] = {}
    for number, world in enumerate(worlds, start=1):
        prefixes = {name.rpartition("/")[0] for name in world}
        prefix = prefixes.pop().replace("/", "-") if len(prefixes) == 1 else ""
        first = prefix or str(number)
        names = chain([first], (f"{first}-{other}" for other in count(number)))
        named[next(name for name in names if name not in named)] = world
    return named


def draw_panels(
    title: str, panels: tuple[Panel, ...], records: Mapping[str, CaseRecords]
) -> Figure:
    """A figure with the panels one above the other, under a common legend."""
    labels_of = {name: found.case.label for name, found in records.items()}
    styles = styles_of(records, labels_of)
    with styled():
        figure = new_figure(COLUMN, 0.75 + PANEL_HEIGHT * len(panels))
        rows = figure.subplots(len(panels), squeeze=False)[:, 0]
        for axes, panel in zip(rows, panels, strict=True):
            panel(axes, records, styles)
        handles, labels = rows[0].get_legend_handles_labels()
        longest = max(map(len, labels), default=0)
        figure.legend(
            handles,
            labels,
            loc="outside upper center",
            ncols=next((n for n in (3, 2) if n * longest <= LABELS_IN_A_ROW), 1),
            title=f"{title} ({count_of_runs(records)}; 95 % intervals)",
        )
    return figure


def _worlds(records: Mapping[str, CaseRecords]) -> list[dict[str, CaseRecords]]:
    """The cases grouped by environment, in order."""
    worlds: list[dict[str, CaseRecords]] = []
    for name, found in records.items():
        for world in worlds:
            if same_world(next(iter(world.values())).case, found.case):
                world[name] = found
                break
        else:
            worlds.append({name: found})
    return worlds


def _recorded(records: Mapping[str, CaseRecords]) -> tuple[Panel, ...]:
    found = list(records.values())
    panels = [true_regret_panel] if any(one.true_regret is not None for one in found) else []
    panels += [reward_panel]
    panels += [robust_regret_panel] if any(one.robust_regret is not None for one in found) else []
    panels += [quantile_value_panel] if any(one.quantile_value.size for one in found) else []
    return (*panels, occupancy_panel)
