"""Unknown rewards: what learning them costs, and who learns them fastest."""

from brmdp.studies.study import Study
from brmdp.studies.unknown_rewards.analysis import analyse
from brmdp.studies.unknown_rewards.experiment import EXPERIMENT

STUDIES = (Study(EXPERIMENT, analyse, "brmdp.studies.unknown_rewards.figures:draw"),)
