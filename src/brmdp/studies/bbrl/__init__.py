"""BBRL: agents in worlds drawn from their prior, or from another; and how they were tuned."""

from brmdp.studies.bbrl.analysis import analyse, analyse_tuning
from brmdp.studies.bbrl.experiment import EXPERIMENT, TUNING
from brmdp.studies.study import Study

STUDIES = (
    Study(EXPERIMENT, analyse, "brmdp.studies.bbrl.figures:draw"),
    Study(TUNING, analyse_tuning, "brmdp.studies.bbrl.figures:draw_tuning"),
)
