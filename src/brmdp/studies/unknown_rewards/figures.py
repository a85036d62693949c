"""Figures of ``unknown-rewards``: regret, what is saved against posterior sampling, rewards."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from brmdp.report.layouts import draw_panels
from brmdp.report.panels import Panel, gain_panel, occupancy_panel, reward_panel, true_regret_panel
from brmdp.report.summary import interactions
from brmdp.runs import CaseRecords, Experiment
from brmdp.studies.study import Records
from brmdp.studies.unknown_rewards.experiment import BANDIT, RIVER, SAMPLING

__all__ = ["draw"]


def draw(experiment: Experiment, records: Records) -> dict[str, Figure]:
    """One figure per world."""
    agents = interactions(records)
    figures: dict[str, Figure] = {}
    for world in (BANDIT, RIVER):
        here = {name: found for name, found in agents.items() if name.startswith(f"{world}/")}
        if not here:
            continue
        panels: tuple[Panel, ...] = (true_regret_panel,)
        if f"{world}/{SAMPLING}" in here and len(here) > 1:
            panels += (gain_panel(f"{world}/{SAMPLING}"),)
        panels += (reward_panel,) if world == BANDIT else (reward_panel, occupancy_panel)
        figures[f"{experiment.name}-{world}"] = draw_panels(_title(here), panels, here)
    return figures


def _title(records: Mapping[str, CaseRecords]) -> str:
    """The world of the cases, in words."""
    case = next(iter(records.values())).case
    given = case.environment_parameters
    if case.environment == "bandit":
        return f"Unknown rewards, {len(given['arms'])}-armed bandit"
    return f"Unknown rewards, RiverSwim-{given['n']}"
