"""How quantile values approach their normal limit (Theorem 1), and sample sizes planned from it."""

from brmdp.studies.normality.analysis import analyse
from brmdp.studies.normality.experiment import EXPERIMENT
from brmdp.studies.study import Study

STUDIES = (Study(EXPERIMENT, analyse, "brmdp.studies.normality.figures:draw"),)
