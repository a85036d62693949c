"""Runs: what to run, running it, and keeping the results."""

from brmdp._columns import Column, Columns, column, columns_of
from brmdp.runs.cluster import cluster_executor
from brmdp.runs.encoding import RUN_COLUMNS
from brmdp.runs.execution import Replication, RunRecord, execute
from brmdp.runs.program import REQUIRED, Program
from brmdp.runs.records import CaseRecords, Replications
from brmdp.runs.runner import run_experiment
from brmdp.runs.spec import METHODS, Case, Computation, Experiment
from brmdp.runs.store import CaseStatus, Store, find_stores
from brmdp.runs.sweep import load_sweep
from brmdp.runs.tuning import Entrant, Tuning, levels, tune

__all__ = [
    "METHODS",
    "REQUIRED",
    "RUN_COLUMNS",
    "Case",
    "CaseRecords",
    "CaseStatus",
    "Column",
    "Columns",
    "Computation",
    "Entrant",
    "Experiment",
    "Program",
    "Replication",
    "Replications",
    "RunRecord",
    "Store",
    "Tuning",
    "cluster_executor",
    "column",
    "columns_of",
    "execute",
    "find_stores",
    "levels",
    "load_sweep",
    "run_experiment",
    "tune",
]
