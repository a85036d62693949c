"""Exploration: the online methods side by side, in worlds where trying things out pays."""

from brmdp.studies.exploration.analysis import analyse
from brmdp.studies.exploration.experiment import EXPERIMENT
from brmdp.studies.study import Study

STUDIES = (Study(EXPERIMENT, analyse, "brmdp.studies.exploration.figures:draw"),)
