"""Beliefs about the unknown transition kernel."""

from brmdp.posterior.base import Belief
from brmdp.posterior.dirichlet import DirichletPosterior
from brmdp.posterior.disturbance import DisturbancePosterior, DisturbanceRewards
from brmdp.posterior.scenarios import ScenarioPosterior

__all__ = [
    "Belief",
    "DirichletPosterior",
    "DisturbancePosterior",
    "DisturbanceRewards",
    "ScenarioPosterior",
]
