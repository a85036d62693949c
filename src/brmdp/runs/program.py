"""Programs: what a computation carries out, from a seed and parameters to declared columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from brmdp._columns import Columns, columns_of
from brmdp.errors import InvalidInputError
from brmdp.runs.origin import PARTS
from brmdp.runs.references import load, loaded_already
from brmdp.runs.spec import Computation, require_known

__all__ = [
    "REQUIRED",
    "RESERVED",
    "Program",
    "known_program",
    "parameters_of",
    "program_of",
    "with_defaults",
]

REQUIRED = object()
"""Stands in place of a default: the parameter must be given."""

RESERVED = frozenset({"case", "run", "row", *vars(Columns)})
"""Names that no column of a program may have: tables and records use them themselves."""

_TYPES = {
    "integer": np.typecodes["AllInteger"],
    "number": "efd",  # no long doubles, which Parquet cannot hold
    "boolean": "?",
    "text": "U",
}
"""NumPy's type codes, by the declared type of a column."""


@dataclass(frozen=True)
class Program:
    """What a :class:`brmdp.runs.Computation` carries out.

    Attributes
    ----------
    replicate : function
        Takes the seed of a replication (a SeedSequence, the source of everything random) and the
        parameters by name; returns the columns.
    columns : type
        The subclass of :class:`brmdp.runs.Columns` that it returns.
    parameters : mapping
        Names with their defaults, or :data:`REQUIRED`.
    extra : str, optional
        The optional extra of brmdp that it needs besides ``experiments``.
    parts : tuple of str
        Parts of brmdp that its results depend on besides the engine: "continuous" (set for programs
        that need the extra of that name), "decisions", "models", "batch".

    Examples
    --------
    >>> import numpy as np
    >>> from brmdp.studies.lemmas.experiment import EPISODE_COUNT
    >>> sorted(EPISODE_COUNT.parameters)
    ['discount', 'repetitions', 'steps']
    >>> seed = np.random.SeedSequence(1)
    >>> EPISODE_COUNT.replicate(seed, steps=100, discount=0.9, repetitions=5).episodes.size
    5
    """

    replicate: Callable[..., Columns]
    columns: type[Columns]
    parameters: Mapping[str, Any]
    extra: str | None = None
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.extra in PARTS and self.extra not in self.parts:
            object.__setattr__(self, "parts", (*self.parts, self.extra))
        for part in self.parts:
            require_known(part, PARTS, "part of brmdp")
        if not callable(self.replicate):
            raise InvalidInputError(f"replicate must be a function; got {self.replicate!r:.60}")
        if not (isinstance(self.columns, type) and issubclass(self.columns, Columns)):
            raise InvalidInputError(
                f"columns must be a subclass of brmdp.runs.Columns; got {self.columns!r:.60}"
            )
        owner, declared = self.columns.__name__, columns_of(self.columns)
        if not declared:
            raise InvalidInputError(f"{owner} must declare columns; is it a dataclass?")
        for one in declared:
            if one.type not in _TYPES:
                raise InvalidInputError(
                    f"column {one.name} of {owner} must hold one entry per row; got a list in each"
                )
            if one.name in RESERVED:
                raise InvalidInputError(
                    f"column {one.name} of {owner} must have another name: that one is reserved"
                )

    def __call__(self, case: Computation, seed: np.random.SeedSequence) -> Columns:
        """One replication of a computation, with columns checked to be as declared."""
        result = self.replicate(seed, **with_defaults(case.parameters, self.parameters, case.name))
        if type(result) is not self.columns:
            raise InvalidInputError(
                f"{case.program} must return {self.columns.__name__}; got {type(result).__name__}"
            )
        lengths = {}
        for column in columns_of(self.columns):
            array = np.asarray(getattr(result, column.name))
            if array.ndim != 1 or array.dtype.char not in _TYPES[column.type]:
                raise InvalidInputError(
                    f"column {column.name} of {case.program} must be one-dimensional, with entries "
                    f"of the type {column.type}; got {array.dtype} of shape {array.shape}"
                )
            if column.type == "text" and any("\0" in text for text in array.tolist()):
                raise InvalidInputError(
                    f"column {column.name} of {case.program} must have no NUL characters, at which "
                    "texts would be cut"
                )
            lengths[column.name] = len(array)
        if len(set(lengths.values())) != 1:
            raise InvalidInputError(
                f"columns of {case.program} must all have the same length; got {lengths}"
            )
        return result


def program_of(case: Computation) -> Program:
    """The program of a computation, imported if need be.

    Raises
    ------
    InvalidInputError
        If there is none of that name.
    """
    found = load(case.program, "program")
    if not isinstance(found, Program):
        raise InvalidInputError(
            f"program {case.program!r} must be a brmdp.runs.Program; got {type(found).__name__}"
        )
    return found


def known_program(case: Computation) -> Program | None:
    """The program of a computation, if no foreign module has to be imported for it; else None."""
    found = loaded_already(case.program)
    return found if isinstance(found, Program) else None


def parameters_of(case: Computation) -> dict[str, Any]:
    """All parameters of a computation.

    Raises
    ------
    InvalidInputError
        If the program or a parameter is unknown, or one is missing.
    """
    return with_defaults(case.parameters, program_of(case).parameters, case.program)


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
