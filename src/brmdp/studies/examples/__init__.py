"""The two illustrative examples: Propositions 2 and 3, and what agents do in the trap."""

from brmdp.studies.examples.analysis import analyse
from brmdp.studies.examples.experiment import EXPERIMENT
from brmdp.studies.study import Study

STUDIES = (Study(EXPERIMENT, analyse, "brmdp.studies.examples.figures:draw"),)
