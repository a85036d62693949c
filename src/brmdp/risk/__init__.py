"""Risk measures: a belief and next-state targets in, a value and a risk-adjusted row out."""

from brmdp.dirichlet import cdf as dirichlet_cdf
from brmdp.dirichlet import cvar as dirichlet_cvar
from brmdp.dirichlet import cvar_row as dirichlet_cvar_row
from brmdp.dirichlet import quantile as dirichlet_quantile
from brmdp.dirichlet import quantile_row as dirichlet_quantile_row
from brmdp.risk.base import RiskMeasure, RiskOperator
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
