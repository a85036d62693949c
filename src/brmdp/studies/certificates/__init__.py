"""Certificates side by side: nested, sampled for one start, sampled for all states."""

from brmdp.studies.certificates.analysis import analyse
from brmdp.studies.certificates.experiment import EXPERIMENT, HOSPITAL
from brmdp.studies.study import Study

STUDIES = tuple(
    Study(experiment, analyse, "brmdp.studies.certificates.figures:draw")
    for experiment in (EXPERIMENT, HOSPITAL)
)
