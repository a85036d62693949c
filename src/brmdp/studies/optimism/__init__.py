"""How often the adaptive schedule is optimistic, and what the dual-benchmark lemma promises."""

from brmdp.studies.optimism.analysis import analyse
from brmdp.studies.optimism.experiment import EXPERIMENT
from brmdp.studies.study import Study

STUDIES = (Study(EXPERIMENT, analyse, "brmdp.studies.optimism.figures:draw"),)
