"""Bayesian regret: how large it is, how fast it grows, and what the theorem's bound says of it."""

from brmdp.studies.bayesian_regret.analysis import analyse
from brmdp.studies.bayesian_regret.experiment import EXPERIMENT
from brmdp.studies.study import Study

STUDIES = (Study(EXPERIMENT, analyse, "brmdp.studies.bayesian_regret.figures:draw"),)
