"""What the report of an experiment says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from brmdp.report.claims import JudgedClaim
from brmdp.report.summary import Table

__all__ = ["Content"]


@dataclass(frozen=True, eq=False)
class Content:
    """What the report of an experiment says.

    Attributes
    ----------
    summary : dict
        For ``summary.json``.
    table : Table
        The numbers a reader wants first.
    claims : tuple of JudgedClaim
    figures : mapping
        By file name without ending.
    """

    summary: dict[str, Any]
    table: Table
    claims: tuple[JudgedClaim, ...]
    figures: Mapping[str, Figure]
