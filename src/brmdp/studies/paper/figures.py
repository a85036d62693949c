"""The paper's figures, and the panels of which they consist."""

from __future__ import annotations

from matplotlib.figure import Figure

from brmdp.report.layouts import draw_agents
from brmdp.report.panels import (
    Panel,
    occupancy_panel,
    quantile_value_panel,
    regret_and_time_panel,
    reward_panel,
    robust_regret_panel,
    true_regret_panel,
)
from brmdp.runs import Experiment
from brmdp.studies.study import Records

__all__ = ["draw"]

_RIVERSWIM: tuple[Panel, ...] = (true_regret_panel, reward_panel, occupancy_panel)
_FROZENLAKE: tuple[Panel, ...] = (true_regret_panel, robust_regret_panel, quantile_value_panel)

PANELS: dict[str, tuple[Panel, ...]] = {
    "riverswim-6": _RIVERSWIM,
    "riverswim-10": _RIVERSWIM,
    "frozenlake-0.7": _FROZENLAKE,
    "frozenlake-0.9": _FROZENLAKE,
    "delta-sensitivity": (true_regret_panel,),
    "quantile-methods": (true_regret_panel, regret_and_time_panel),
}
"""Panels of each experiment's figure, from top to bottom."""


def draw(experiment: Experiment, records: Records) -> dict[str, Figure]:
    """Draw the paper's figure of an experiment."""
    return draw_agents(experiment, records, PANELS[experiment.name])
