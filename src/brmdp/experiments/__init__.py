"""Experiments: what to run, running it, and keeping the results."""

from brmdp.experiments.paper import ALL, EXPERIMENTS
from brmdp.experiments.records import CaseRecords
from brmdp.experiments.spec import Case, Experiment

__all__ = ["ALL", "EXPERIMENTS", "Case", "CaseRecords", "Experiment"]
