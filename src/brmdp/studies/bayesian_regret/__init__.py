"""Bayesian regret: how large it is, how fast it grows, and how it compares with the bound."""

from brmdp.studies.bayesian_regret.analysis import analyse
from brmdp.studies.bayesian_regret.experiment import EXPERIMENT
from brmdp.studies.study import Study

STUDIES = (Study(EXPERIMENT, analyse, "brmdp.studies.bayesian_regret.figures:draw"),)
