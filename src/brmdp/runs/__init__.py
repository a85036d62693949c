"""Experiments: what to run, running it, and keeping the results."""

from brmdp.runs.cluster import cluster_executor
from brmdp.runs.execute import Replication, RunRecord, execute
from brmdp.runs.records import CaseRecords, Replications
from brmdp.runs.runner import run_experiment
from brmdp.runs.spec import METHODS, Case, Computation, Experiment
from brmdp.runs.store import CaseStatus, Store, find_stores
from brmdp.runs.sweep import load_sweep
from brmdp.studies.paper.experiment import ALL, EXPERIMENTS

__all__ = [
    "ALL",
    "EXPERIMENTS",
    "METHODS",
    "Case",
    "CaseRecords",
    "CaseStatus",
    "Computation",
    "Experiment",
    "Replication",
    "Replications",
    "RunRecord",
    "Store",
    "cluster_executor",
    "execute",
    "find_stores",
    "load_sweep",
    "run_experiment",
]
