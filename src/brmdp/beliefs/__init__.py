"""Beliefs about the unknown transition kernel."""

from brmdp.beliefs.base import Belief
from brmdp.beliefs.censored import CensoredDisturbanceBelief
from brmdp.beliefs.dirichlet import DirichletBelief
from brmdp.beliefs.disturbance import DisturbanceBelief, DisturbanceRewards
from brmdp.beliefs.outcomes import OutcomeBelief
from brmdp.beliefs.scenarios import ScenarioBelief

__all__ = [
    "Belief",
    "CensoredDisturbanceBelief",
    "DirichletBelief",
    "DisturbanceBelief",
    "DisturbanceRewards",
    "OutcomeBelief",
    "ScenarioBelief",
]
