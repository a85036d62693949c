"""Columns that are declared once: their type, what one entry stands for, and what it means.

A record is a dataclass whose fields are made by :func:`column`. Whatever stores, reads, stacks,
sums up or documents records looks at these declarations, so a new column is one new field and the
code that fills it.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from brmdp.errors import InvalidInputError

__all__ = ["Column", "ColumnType", "Columns", "column", "columns_of"]

ColumnType = Literal["integer", "number", "boolean", "text", "numbers"]
"""Type of an entry; "numbers" means that an entry is a list of numbers."""

_SCALARS: dict[Any, ColumnType] = {
    int: "integer",
    float: "number",
    bool: "boolean",
    str: "text",
}
_BY_KIND: dict[str, ColumnType] = {
    "i": "integer",
    "f": "number",
    "b": "boolean",
    "U": "text",
}
_DTYPES: dict[ColumnType, Any] = {
    "integer": np.int64,
    "number": np.float64,
    "boolean": np.bool_,
    "text": np.str_,
    "numbers": np.object_,
}
_UNION = (typing.Union, types.UnionType)


@dataclass(frozen=True)
class Column:
    """What a record declares about one of its columns.

    Attributes
    ----------
    name : str
    type : {"integer", "number", "boolean", "text", "numbers"}
    meaning : str
        In one sentence, without a full stop.
    optional : bool
        Whether it may be absent, because nobody asked for it or it does not apply.
    since : int
        The first format of stored files that had it.
    total : str
        What its sum over the steps is called; empty if the sum means nothing.

    Examples
    --------
    >>> from brmdp.runs import Column
    >>> Column("large", "boolean", "whether the number exceeds 1").optional
    False
    """

    name: str
    type: ColumnType
    meaning: str
    optional: bool = False
    since: int = 1
    total: str = ""


def column(meaning: str, *, since: int = 1, total: str = "", empty: bool = False) -> Any:
    """Declare a field of a record as a column; see :class:`Column`.

    The annotation of the field gives the type: an array of integers, numbers, booleans or text,
    or a list of these; with ``| None`` it may be absent. With ``empty=True`` it is a list that
    begins empty.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from brmdp.runs import Columns, column
    >>> from numpy.typing import NDArray
    >>> @dataclass(frozen=True, eq=False)
    ... class Draws(Columns):
    ...     number: NDArray[np.float64] = column("a normal number")
    >>> Draws(number=np.array([0.5, -1.0])).number
    array([ 0.5, -1. ])
    """
    metadata = {"meaning": meaning, "since": since, "total": total}
    return field(default_factory=list, metadata=metadata) if empty else field(metadata=metadata)


def columns_of(record: type) -> tuple[Column, ...]:
    """The columns that a dataclass declares, in order; other fields are left out.

    Examples
    --------
    >>> from brmdp.runs import columns_of
    >>> from brmdp.simulation import Steps
    >>> [column.name for column in columns_of(Steps)][:3]
    ['state', 'action', 'reward']
    """
    return _declared(record)


@lru_cache(maxsize=256)
def _declared(record: Any) -> tuple[Column, ...]:
    hints = typing.get_type_hints(record)
    found = []
    for one in fields(record):
        if "meaning" in one.metadata:
            kind, optional = _kind(hints[one.name])
            if kind is None:
                raise InvalidInputError(
                    f"column {one.name} of {record.__name__} must be an array or a list of "
                    f"integers, numbers, booleans or text; got {hints[one.name]}"
                )
            found.append(Column(one.name, kind, optional=optional, **one.metadata))
    return tuple(found)


def _kind(hint: Any) -> tuple[ColumnType | None, bool]:
    """The type of a column from its annotation, and whether it may be absent."""
    hint, optional = _present(hint)
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is np.ndarray:
        return _kind_of_array(arguments), optional
    if typing.get_origin(hint) is not list:
        return None, optional
    entry, entry_optional = _present(arguments[0])
    optional = optional or entry_optional
    if typing.get_origin(entry) is np.ndarray:
        return ("numbers" if _kind_of_array(typing.get_args(entry)) == "number" else None), optional
    return _SCALARS.get(entry), optional


def _kind_of_array(arguments: tuple[Any, ...]) -> ColumnType | None:
    try:
        return _BY_KIND.get(np.dtype(typing.get_args(arguments[1])[0]).kind)
    except (TypeError, ValueError):  # a kind of number, such as np.floating, not a type
        return None


def _present(hint: Any) -> tuple[Any, bool]:
    """An annotation without ``None``, and whether ``None`` was in it."""
    if typing.get_origin(hint) not in _UNION:
        return hint, False
    others = [part for part in typing.get_args(hint) if part is not type(None)]
    return (others[0] if len(others) == 1 else None), len(others) < len(typing.get_args(hint))


@dataclass(frozen=True, eq=False)
class Columns:
    """A table that a study's computation returns: arrays of equal length, declared by a subclass.

    Examples
    --------
    The table of a computation that draws numbers and says whether each is large:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from brmdp.runs import Columns, column
    >>> from numpy.typing import NDArray
    >>> @dataclass(frozen=True, eq=False)
    ... class Draws(Columns):
    ...     number: NDArray[np.float64] = column("a standard normal number")
    ...     large: NDArray[np.bool_] = column("whether it exceeds 1")
    >>> drawn = np.random.default_rng(1).normal(size=3)
    >>> Draws(number=drawn, large=drawn > 1).large
    array([False, False, False])
    """

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """The table with these rows, each a mapping from column names to entries.

        Without rows, the columns are empty arrays of the declared types.
        """
        listed = list(rows)
        if not listed:
            return cls(**{one.name: np.empty(0, _DTYPES[one.type]) for one in columns_of(cls)})
        return cls(
            **{one.name: np.array([row[one.name] for row in listed]) for one in columns_of(cls)}
        )

    @classmethod
    def concatenated(cls, tables: Iterable[Self]) -> Self:
        """The rows of several tables, one table after the other."""
        listed = list(tables)
        if not listed:
            return cls.of_rows([])
        return cls(
            **{
                one.name: np.concatenate([getattr(table, one.name) for table in listed])
                for one in columns_of(cls)
            }
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The columns by name."""
        return {one.name: np.asarray(getattr(self, one.name)) for one in columns_of(type(self))}

    def flat(self) -> Self:
        """The same entries with every column laid out along one axis."""
        return type(self)(**{name: array.reshape(-1) for name, array in self.arrays().items()})
