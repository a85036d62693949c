"""The continuous lake: AQ-BRMDP, Continuing PSRL and controls with one fitted-Q solver."""

from brmdp.studies.continuous_lake.analysis import analyse
from brmdp.studies.continuous_lake.experiment import EXPERIMENT
from brmdp.studies.study import Study

STUDIES = (Study(EXPERIMENT, analyse, "brmdp.studies.continuous_lake.figures:draw"),)
