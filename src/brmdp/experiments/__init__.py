"""Experiments: what to run, running it, and keeping the results."""

from brmdp.experiments.cluster import cluster_executor
from brmdp.experiments.one_run import Replication, RunRecord, execute
from brmdp.experiments.paper import ALL, EXPERIMENTS
from brmdp.experiments.records import CaseRecords, Replications
from brmdp.experiments.runner import run_experiment
from brmdp.experiments.spec import METHODS, Case, Computation, Experiment
from brmdp.experiments.store import CaseStatus, Store, find_stores
from brmdp.experiments.sweep import load_sweep

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
