"""Batch methods side by side: what they promise after a log, and what their policies are worth."""

from brmdp.studies.batch.analysis import analyse
from brmdp.studies.batch.experiment import EXPERIMENT
from brmdp.studies.study import Study

STUDIES = (Study(EXPERIMENT, analyse, "brmdp.studies.batch.figures:draw"),)
