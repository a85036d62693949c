"""What a computation carries out: columns from a seed and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from brmdp.errors import InvalidInputError
from brmdp.runs.spec import require_known

__all__ = ["REQUIRED", "Columns", "Program", "with_defaults"]

REQUIRED = object()
"""In place of a default."""

Columns = Mapping[str, NDArray[Any]]
"""Named columns of equal length: numbers, truth values or text."""


@dataclass(frozen=True)
class Program:
    """What a :class:`brmdp.runs.Computation` carries out.

    Attributes
    ----------
    replicate : function
        Of the seed of a replication (a SeedSequence, the source of everything random), and the
        parameters by name.
    parameters : mapping
        Names with their defaults, or :data:`REQUIRED`.
    extra : str, optional
        The extra of the package that it needs beside that of experiments.
    """

    replicate: Callable[..., Columns]
    parameters: Mapping[str, Any]
    extra: str | None = None


def with_defaults(
    given: Mapping[str, Any], defaults: Mapping[str, Any], owner: str
) -> dict[str, Any]:
    """All parameters of a program or an agent.

    Raises
    ------
    InvalidInputError
        If one is unknown, or one is missing that has no default.
    """
    for key in given:
        require_known(key, defaults, f"parameter of {owner}")
    parameters = {**defaults, **given}
    missing = [key for key, value in parameters.items() if value is REQUIRED]
    if missing:
        raise InvalidInputError(f"{owner} needs {', '.join(missing)}")
    return parameters
