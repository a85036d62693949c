"""The former name of :mod:`brmdp.runs`; the experiments themselves are in :mod:`brmdp.studies`."""

from typing import Any

from brmdp._renamed import former_name

# ruff: noqa: F822 (__getattr__ finds these names)
__all__ = [
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


def __getattr__(name: str) -> Any:
    return former_name(__name__, name)
