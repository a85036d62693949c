"""Risk measures: they turn a belief and next-state targets into values and risk-adjusted rows."""

from __future__ import annotations

from typing import Any

from brmdp.risk.base import RiskMeasure, RiskOperator
from brmdp.risk.bonuses import (
    BonusRule,
    CountBonus,
    GuidanceBonus,
    RootBonus,
    UnknownBonus,
    VarianceBonus,
)
from brmdp.risk.measures import CVaR, Mean, PosteriorSample, Quantile
from brmdp.risk.monte_carlo import MonteCarlo, order_statistic_rank
from brmdp.risk.optimism import BernsteinBound, Bonus, OptimisticBall, OptimisticPosterior
from brmdp.risk.scenarios import ATOM_TOLERANCE
from brmdp.risk.worst_case import WorstCase

__all__ = [
    "ATOM_TOLERANCE",
    "BernsteinBound",
    "Bonus",
    "BonusRule",
    "CVaR",
    "CountBonus",
    "GuidanceBonus",
    "Mean",
    "MonteCarlo",
    "OptimisticBall",
    "OptimisticPosterior",
    "PosteriorSample",
    "Quantile",
    "RiskMeasure",
    "RiskOperator",
    "RootBonus",
    "UnknownBonus",
    "VarianceBonus",
    "WorstCase",
    "order_statistic_rank",
]


def __getattr__(name: str) -> Any:
    from brmdp._renamed import former_name

    return former_name(__name__, name)
