"""Risk measures: they turn a belief and next-state targets into values and risk-adjusted rows."""

from __future__ import annotations

from typing import Any

from brmdp.risk.base import RiskMeasure, RiskOperator
from brmdp.risk.measures import CVaR, Mean, PosteriorSample, Quantile
from brmdp.risk.monte_carlo import MonteCarlo, order_statistic_rank
from brmdp.risk.scenarios import ATOM_TOLERANCE
from brmdp.risk.worst_case import WorstCase

__all__ = [
    "ATOM_TOLERANCE",
    "CVaR",
    "Mean",
    "MonteCarlo",
    "PosteriorSample",
    "Quantile",
    "RiskMeasure",
    "RiskOperator",
    "WorstCase",
    "order_statistic_rank",
]


def __getattr__(name: str) -> Any:
    from brmdp._renamed import former_name

    return former_name(__name__, name)
