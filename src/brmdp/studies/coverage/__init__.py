"""How often the bounds of Proposition 1 hold, and how conservative they are."""

from brmdp.studies.coverage.analysis import analyse
from brmdp.studies.coverage.experiment import EXPERIMENT
from brmdp.studies.study import Study

STUDIES = (Study(EXPERIMENT, analyse, "brmdp.studies.coverage.figures:draw"),)
