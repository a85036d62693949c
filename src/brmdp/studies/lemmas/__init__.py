"""The lemmas behind the regret bounds: deviations, value decompositions, pseudo-episodes."""

from brmdp.studies.lemmas.analysis import analyse
from brmdp.studies.lemmas.experiment import EXPERIMENT
from brmdp.studies.study import Study

STUDIES = (Study(EXPERIMENT, analyse, "brmdp.studies.lemmas.figures:draw"),)
