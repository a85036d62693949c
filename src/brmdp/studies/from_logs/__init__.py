"""Decisions from simulated logs: whether promises are kept, and whether checks see faults."""

from brmdp.studies.from_logs.analysis import analyse_alarms, analyse_promises
from brmdp.studies.from_logs.experiment import ALARMS, PROMISES
from brmdp.studies.study import Study

STUDIES = (
    Study(PROMISES, analyse_promises, "brmdp.studies.from_logs.figures:draw_promises"),
    Study(ALARMS, analyse_alarms, "brmdp.studies.from_logs.figures:draw_alarms"),
)
