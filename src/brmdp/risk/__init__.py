"""Risk measures: a belief and next-state targets in, a value and a risk-adjusted row out."""

from brmdp.risk.base import RiskMeasure, RiskOperator
from brmdp.risk.functions import (
    dirichlet_cdf,
    dirichlet_cvar,
    dirichlet_cvar_row,
    dirichlet_quantile,
    dirichlet_quantile_row,
)
from brmdp.risk.measures import CVaR, Mean, PosteriorSample, Quantile
from brmdp.risk.monte_carlo import MonteCarlo, order_statistic_rank
from brmdp.risk.scenarios import ATOM_TOLERANCE

__all__ = [
    "ATOM_TOLERANCE",
    "CVaR",
    "Mean",
    "MonteCarlo",
    "PosteriorSample",
    "Quantile",
    "RiskMeasure",
    "RiskOperator",
    "dirichlet_cdf",
    "dirichlet_cvar",
    "dirichlet_cvar_row",
    "dirichlet_quantile",
    "dirichlet_quantile_row",
    "order_statistic_rank",
]
