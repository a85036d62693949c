"""What the runs of an experiment say, in numbers and verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brmdp.report.claims import JudgedClaim
from brmdp.report.tables import Table

__all__ = ["Findings"]


@dataclass(frozen=True, eq=False)
class Findings:
    """What the runs of an experiment say, in numbers and verdicts.

    Attributes
    ----------
    summary : dict
        The content of ``summary.json``.
    table : Table
        The numbers that a reader wants first.
    claims : tuple of JudgedClaim
    """

    summary: dict[str, Any]
    table: Table
    claims: tuple[JudgedClaim, ...]
