"""What a computation carries out: columns from a seed and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

__all__ = ["REQUIRED", "Columns", "Program"]

REQUIRED = object()
"""In place of a default."""

Columns = Mapping[str, NDArray[Any]]
"""Named columns of equal length: numbers, truth values or text."""


@dataclass(frozen=True)
class Program:
    """What a :class:`brmdp.experiments.Computation` carries out.

    Attributes
    ----------
    replicate : function
        Of the seed of a replication (a SeedSequence, the source of everything random), and the parameters by name.
    parameters : mapping
        Names with their defaults, or :data:`REQUIRED`.
    """

    replicate: Callable[..., Columns]
    parameters: Mapping[str, Any]
