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
    """

    summary: dict[str, Any]
    table: Table
    claims: tuple[JudgedClaim, ...]
