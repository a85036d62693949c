"""How the readings of a log become states: bins of a number, categories, or several of them."""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from brmdp._validation import FloatArray, IntArray, as_number, as_positive_int, as_positive_number
from brmdp.errors import InvalidInputError

__all__ = ["Axis", "Bins", "Categories", "StateSpace", "number_in", "number_label", "shown"]

MOST_STATES = 100_000
LONGEST_LABEL = 200
BETWEEN = " | "
"""Stands between the labels of several columns."""

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def shown(value: Any, longest: int = 60) -> str:
    """A value for a message: control characters escaped, and cut after 60 characters."""
    if isinstance(value, str):
        text = repr(value[: longest + 1])
    elif isinstance(value, np.generic):
        text = repr(value.item())
    else:
        text = repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def number_in(label: str) -> float:
    """The finite number that a label is, else NaN."""
    if not NUMBER.fullmatch(label):
        return math.nan
    number = float(label)
    return number if math.isfinite(number) else math.nan


def number_label(value: Any) -> str:
    """A number as a label: whole numbers in full, others with twelve digits."""
    if isinstance(value, int | np.integer):
        return str(int(value))
    if float(value).is_integer():
        return str(int(value)) if abs(value) < 2**53 else repr(float(value))
    return f"{value:.12g}"


@dataclass(frozen=True)
class Bins:
    """Intervals of a number, each of which is a state.

    Parameters
    ----------
    column : str
        Column of the log with the number.
    edges : sequence of numbers
        One more than there are bins, increasing. Each bin has its lower edge and lacks its upper
        one, except the last, which has both.
    outside : "drop" or "clip"
        What becomes of readings below the first or above the last edge: their lines are dropped,
        or they count as readings of the first or last bin.

    Examples
    --------
    >>> from brmdp.logs import Bins
    >>> Bins("miles", (0, 5000, 20000)).labels
    ('0 to 5000', '5000 to 20000')
    """

    column: str
    edges: tuple[float, ...]
    outside: Literal["drop", "clip"] = "drop"

    def __post_init__(self) -> None:
        _check_column(self.column, "Bins")
        given: Any = self.edges
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise InvalidInputError(f"edges must be a sequence of numbers; got {shown(given)}")
        edges = tuple(
            as_number(edge, f"edges[{k}]", "a number") + 0.0 for k, edge in enumerate(given)
        )
        if len(edges) < 2:
            raise InvalidInputError(f"edges must be at least two numbers; got {len(edges)}")
        _check_size(len(edges) - 1, "edges")
        for k, edge in enumerate(edges):
            if not math.isfinite(edge):
                raise InvalidInputError(f"edges must be finite; got {edge} at index {k}")
            if k and edge <= edges[k - 1]:
                raise InvalidInputError(
                    f"edges must increase; got {edge:.12g} after {edges[k - 1]:.12g} at index {k}"
                )
        if self.outside not in ("drop", "clip"):
            raise InvalidInputError(f'outside must be "drop" or "clip"; got {shown(self.outside)}')
        object.__setattr__(self, "edges", edges)

    @classmethod
    def regular(
        cls,
        column: str,
        *,
        start: float,
        width: float,
        count: int,
        outside: Literal["drop", "clip"] = "drop",
    ) -> Bins:
        """Bins of equal width.

        Edges are computed in decimals: with width 0.1, the fourth is 0.3.

        Examples
        --------
        >>> from brmdp.logs import Bins
        >>> Bins.regular("wear", start=0, width=0.1, count=3).edges
        (0.0, 0.1, 0.2, 0.3)
        """
        first = as_number(start, "start", "a finite number")
        if not math.isfinite(first):
            raise InvalidInputError(f"start must be a finite number; got {start!r}")
        step = as_positive_number(width, "width")
        n = as_positive_int(count, "count")
        _check_size(n, "count")
        exact, each = Decimal(repr(first)), Decimal(repr(step))
        edges = tuple(float(exact + k * each) for k in range(n + 1))
        if any(low >= high for low, high in itertools.pairwise(edges)):
            raise InvalidInputError(
                f"width must be large enough to tell the edges apart; got {step:g} from {first:g}"
            )
        return cls(column, edges, outside)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Such as "5000 to 10000"; the first number is the lower edge."""
        names = [_edge_label(edge, 12) for edge in self.edges]
        if len(set(names)) < len(names):
            names = [_edge_label(edge, 17) for edge in self.edges]
        return tuple(f"{low} to {high}" for low, high in itertools.pairwise(names))

    @property
    def numbers(self) -> FloatArray:
        """Lower edges."""
        return np.array(self.edges[:-1])

    def place(self, values: FloatArray) -> IntArray:
        """The bin of each finite number; -1 if it is outside and these are dropped."""
        edges = np.array(self.edges)
        places = np.searchsorted(edges, values, side="right").astype(np.int64) - 1
        last = len(edges) - 2
        places[values == edges[-1]] = last
        if self.outside == "clip":
            return np.clip(places, 0, last)
        places[places > last] = -1
        return places

    def index(self, reading: Any) -> int:
        """The bin of a number or of a bin's label."""
        if isinstance(reading, str):
            return _of_label(reading, self.labels, self._numbered, self.column)
        number = as_number(reading, self.column, "a number, or the label of a bin")
        place = int(self.place(np.array([number]))[0]) if math.isfinite(number) else -1
        if place < 0:
            raise InvalidInputError(
                f"{self.column} must lie in {self.edges[0]:.12g} to {self.edges[-1]:.12g}, the "
                f"range of the bins; got {number:.12g}"
            )
        return place

    @cached_property
    def _numbered(self) -> dict[str, int]:
        return {label: k for k, label in enumerate(self.labels)}


def _edge_label(edge: float, digits: int) -> str:
    return f"{edge:.{digits}g}"


@dataclass(frozen=True)
class Categories:
    """Labels of a column, each of which is a state.

    Parameters
    ----------
    column : str
        Column of the log.
    labels : sequence of str, optional
        The states, in order; lines with another label are dropped. By default they are what the log
        has, numbers in the order of numbers, other labels in the order of text.

    Examples
    --------
    >>> from brmdp.logs import Categories
    >>> Categories("condition", ("good", "worn")).labels
    ('good', 'worn')
    """

    column: str
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _check_column(self.column, "Categories")
        if self.labels is None:
            return
        labels = as_label_tuple(self.labels, f"labels of {self.column}")
        _check_size(len(labels), f"labels of {self.column}")
        object.__setattr__(self, "labels", labels)

    @cached_property
    def numbers(self) -> FloatArray:
        """The number that each label is; NaN for labels that are none."""
        return np.array([number_in(label) for label in self.labels or ()])

    def index(self, reading: Any) -> int:
        """The number of a label, or of a number in a label."""
        labels = self.labels or ()
        if isinstance(reading, str):
            return _of_label(reading, labels, self._numbered, self.column)
        value = as_number(reading, self.column, "a label")
        own = self._numbered.get(number_label(reading))
        if own is not None:
            return own
        same = np.flatnonzero(self.numbers == value)
        if same.size == 1:
            return int(same[0])
        if same.size > 1:
            raise InvalidInputError(
                f"{self.column} must be given as a label, since {shown(labels[same[0]])} and "
                f"{shown(labels[same[1]])} are the same number; got {reading!r}"
            )
        return _of_label(number_label(reading), labels, self._numbered, self.column)

    @cached_property
    def _numbered(self) -> dict[str, int]:
        return {label: k for k, label in enumerate(self.labels or ())}


Axis: TypeAlias = Bins | Categories


def as_label_tuple(labels: Any, name: str) -> tuple[str, ...]:
    """Distinct labels, as text without space around; numbers are written out."""
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise InvalidInputError(f"{name} must be a sequence of labels; got {shown(labels)}")
    found = []
    for label in labels:
        if isinstance(label, str):
            text = label.strip()
        elif isinstance(label, int | float | np.integer | np.floating) and math.isfinite(label):
            text = str(bool(label)) if isinstance(label, bool) else number_label(label)
        else:
            raise InvalidInputError(f"{name} must be text; got {shown(label)}")
        if not text or len(text) > LONGEST_LABEL:
            raise InvalidInputError(
                f"{name} must have 1 to {LONGEST_LABEL} characters each; got "
                f"{shown(text) if text else 'an empty one'}"
            )
        found.append(text)
    if not found:
        raise InvalidInputError(f"{name} must be at least one; got none")
    twice = first_twice(found)
    if twice is not None:
        raise InvalidInputError(f"{name} must be distinct; got {shown(twice)} twice")
    return tuple(found)


def first_twice(labels: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for label in labels:
        if label in seen:
            return label
        seen.add(label)
    return None


def in_order(labels: Iterable[str]) -> list[str]:
    """Labels sorted: as numbers if all of them are, otherwise as text."""
    found = list(labels)
    numbers = {label: number_in(label) for label in found}
    if any(math.isnan(number) for number in numbers.values()):
        return sorted(found)
    return sorted(found, key=lambda label: (numbers[label], label))


def _of_label(label: str, labels: Sequence[str], numbered: dict[str, int], name: str) -> int:
    place = numbered.get(label)
    if place is None:
        near = difflib.get_close_matches(label[:LONGEST_LABEL], labels[:2000], 1)
        few = ", ".join(shown(one) for one in labels[:5]) + (", …" if len(labels) > 5 else "")
        hint = f" (perhaps {shown(near[0])}?)" if near else ""
        raise InvalidInputError(f"{name} must be one of {few}; got {shown(label)}{hint}")
    return place


def _check_column(column: Any, kind: str) -> None:
    if not isinstance(column, str) or not column:
        raise InvalidInputError(
            f"column of {kind} must be the name of a column; got {shown(column)}"
        )


def _check_size(n_states: int, name: str) -> None:
    if n_states > MOST_STATES:
        raise InvalidInputError(
            f"{name} must make at most {MOST_STATES:,} states; got {n_states:,}. Take fewer or "
            "wider bins"
        )


@dataclass(frozen=True)
class StateSpace:
    """States of a log, with their labels: one axis, or the product of several.

    Parameters
    ----------
    axes : sequence of Bins and Categories
        Categories with their labels. The first axis varies slowest.

    Examples
    --------
    >>> from brmdp.logs import Bins, Categories, StateSpace
    >>> space = StateSpace((Categories("condition", ("good", "worn")), Bins("rain", (0, 1, 9))))
    >>> space.labels
    ('good | 0 to 1', 'good | 1 to 9', 'worn | 0 to 1', 'worn | 1 to 9')
    >>> space.index(("worn", 0.5)), space.index("worn | 0 to 1")
    (2, 2)
    """

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        axes: tuple[Any, ...] = (
            (self.axes,) if isinstance(self.axes, Bins | Categories) else tuple(self.axes)
        )
        if not axes or not all(isinstance(axis, Bins | Categories) for axis in axes):
            raise InvalidInputError(
                f"axes must be Bins and Categories, at least one; got {shown(axes)}"
            )
        object.__setattr__(self, "axes", axes)
        for axis in axes:
            if axis.labels is None:
                raise InvalidInputError(f"axes must have labels; those of {axis.column} are None")
        _check_size(self.n_states, "axes")
        twice = first_twice(self.labels)
        if twice is not None:
            raise InvalidInputError(
                f"axes must have labels that stay distinct when joined by {BETWEEN!r}; got "
                f"{shown(twice)} twice"
            )

    def __repr__(self) -> str:
        few = ", ".join(shown(label) for label in self.labels[:3])
        more = ", …" if self.n_states > 3 else ""
        return f"StateSpace({self.n_states} states of {self.name}: {few}{more})"

    @property
    def n_states(self) -> int:
        """Number of states."""
        return math.prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of labels of each axis."""
        return tuple(len(axis.labels or ()) for axis in self.axes)

    @property
    def name(self) -> str:
        """The columns that the states are made of."""
        return BETWEEN.join(axis.column for axis in self.axes)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels of the states."""
        joined = list(self.axes[0].labels or ())
        for axis in self.axes[1:]:
            joined = [f"{left}{BETWEEN}{right}" for left in joined for right in axis.labels or ()]
        return tuple(joined)

    @cached_property
    def ordered(self) -> bool:
        """Whether states are steps of one scale: bins of one number, or labels that are numbers."""
        if len(self.axes) > 1:
            return False
        return bool(np.isfinite(self.axes[0].numbers).all())

    @cached_property
    def numbers(self) -> FloatArray | None:
        """The lower edge of each state's bin, or the number in its label; NaN where there is none.

        None if no column has numbers, or if several have.
        """
        own = [axis.numbers for axis in self.axes]
        numeric = [k for k, numbers in enumerate(own) if np.isfinite(numbers).any()]
        if len(self.axes) > 1:
            numeric = [k for k in numeric if np.isfinite(own[k]).all()]
        if len(numeric) != 1:
            return None
        k = numeric[0]
        parts = np.unravel_index(np.arange(self.n_states), self.shape)
        numbers: FloatArray = own[k][parts[k]]
        numbers.setflags(write=False)
        return numbers

    @property
    def edges(self) -> tuple[float, ...] | None:
        """Edges of the bins if the states are bins of one number."""
        axis = self.axes[0]
        return axis.edges if isinstance(axis, Bins) and len(self.axes) == 1 else None

    @property
    def midpoints(self) -> FloatArray | None:
        """Where a picture shows each state: the middle of its bin, or the number in its label."""
        if self.edges is not None:
            edges = np.array(self.edges)
            middles: FloatArray = edges[:-1] + np.diff(edges) / 2
            return middles
        return self.numbers if self.ordered else None

    @cached_property
    def _numbered(self) -> dict[str, int]:
        return {label: k for k, label in enumerate(self.labels)}

    def index(self, value: Any) -> int:
        """The state of a label, a reading, or a sequence of readings, one per column.

        Raises
        ------
        InvalidInputError
            If there is no such state.

        Examples
        --------
        >>> from brmdp.logs import Bins, StateSpace
        >>> space = StateSpace((Bins.regular("miles", start=0, width=5000, count=90),))
        >>> space.index(7300), space.index("5000 to 10000"), space.index(450_000)
        (1, 1, 89)
        """
        if isinstance(value, str):
            place = self._numbered.get(value)
            if place is not None:
                return place
            return _of_label(value, self.labels, self._numbered, self.name)
        several = isinstance(value, list | tuple | np.ndarray)
        readings = list(value) if several else [value]
        if len(readings) != len(self.axes):
            raise InvalidInputError(
                f"a state must be given by its label or by {len(self.axes)} readings, of "
                f"{self.name}; got {shown(value)}"
            )
        places = [axis.index(one) for axis, one in zip(self.axes, readings, strict=True)]
        return int(np.ravel_multi_index(tuple(places), self.shape))


def resolved(axis: Axis, found: Iterable[str]) -> Axis:
    """The axis with labels: its own, or else those found in the log, in order."""
    if axis.labels is None:
        return replace(axis, labels=tuple(in_order(found)))
    return axis
