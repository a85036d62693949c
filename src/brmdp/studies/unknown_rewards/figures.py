"""Figures of ``unknown-rewards``: regret, what is saved against Thompson sampling, and rewards."""

from __future__ import annotations

from matplotlib.figure import Figure

from brmdp.report.layouts import draw_agents
from brmdp.report.panels import Panel, gain_panel, occupancy_panel, reward_panel, true_regret_panel
from brmdp.report.summary import interactions
from brmdp.runs import Experiment
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
        (figure,) = draw_agents(experiment, here, panels).values()
        figures[f"{experiment.name}-{world}"] = figure
    return figures
