"""The numbers and verdicts that follow from the runs of an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brmdp.report.claims import JudgedClaim
from brmdp.report.tables import Table

__all__ = ["Findings"]


@dataclass(frozen=True, eq=False)
class Findings:
    """The numbers and verdicts that follow from the runs of an experiment.

    Attributes
    ----------
    summary : dict
        The content of ``summary.json``.
    table : Table
        The numbers that readers want first.
    claims : tuple of JudgedClaim
        The claims with their verdicts.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records("mean")
    >>> from brmdp.report import compare_agents
    >>> findings = compare_agents(store.experiment, {"mean": records})
    >>> findings.table.header[0], findings.claims
    ('agent', ())
    """

    summary: dict[str, Any]
    table: Table
    claims: tuple[JudgedClaim, ...]
