"""A log of transitions as columns, and what :func:`brmdp.decisions.learn_prior` makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from brmdp._sparse import ArrayOrSparse, as_csr, is_sparse
from brmdp._validation import IntArray, as_array, as_float_array, as_index_array, as_positive_int
from brmdp.beliefs.observations import as_observed
from brmdp.errors import InvalidInputError
from brmdp.mdp import counted

__all__ = ["Cells", "Transitions", "cells_of"]

LARGEST_COUNT = 2**53
"""Counts up to this size are exact as floating-point numbers."""

LARGEST_INDEX = 2**31
"""States and actions are counted up to here."""


@dataclass(frozen=True, eq=False, repr=False)
class Transitions:
    """Logged transitions, one per row of a table.

    Parameters
    ----------
    state, action, next_state : (n,) integers
        Columns of the log. A single integer applies to all rows.
    unit : (n,) labels, optional
        The bus, patient or machine that each transition belongs to. Transitions of one unit may
        depend on each other, so they are never split between fitting and scoring.
    group : (n,) labels, optional
        The vehicle model, clinic or shop that each transition belongs to.
    n_states, n_actions : int, optional
        By default one more than the largest index in the log.
    groups : sequence of labels, optional
        All groups, also those without a transition; by default those in ``group``.

    Examples
    --------
    >>> from brmdp.decisions import Transitions
    >>> Transitions([0, 1, 0], 0, [1, 1, 0], unit=["bus 1", "bus 1", "bus 2"])
    Transitions(3 transitions, 2 states, 1 action, 2 units)
    """

    state: Any
    action: Any
    next_state: Any
    unit: Any = None
    group: Any = None
    n_states: int | None = None
    n_actions: int | None = None
    groups: Any = None

    def __post_init__(self) -> None:
        sizes = {"state": self.n_states, "next_state": self.n_states, "action": self.n_actions}
        columns: dict[str, IntArray] = {}
        for name, size in sizes.items():
            limit = LARGEST_INDEX if size is None else as_positive_int(size, _sized(name))
            if name == "action" and size is None:
                limit = max(limit, 2)
            columns[name] = as_observed(getattr(self, name), limit, name)
        lengths = {name: array.shape for name, array in columns.items() if array.ndim}
        if any(len(shape) != 1 for shape in lengths.values()) or len(set(lengths.values())) > 1:
            shapes = ", ".join(f"{name} {shape}" for name, shape in lengths.items())
            raise InvalidInputError(
                f"state, action and next_state must be columns of the same length; got {shapes}"
            )
        n = next(iter(lengths.values()))[0] if lengths else 1
        for name, array in columns.items():
            object.__setattr__(self, name, np.broadcast_to(array, (n,)).copy())
        for name in ("unit", "group"):
            object.__setattr__(self, name, as_labels(getattr(self, name), n, name))
        if self.groups is not None:
            object.__setattr__(self, "groups", _all_groups(self.groups, self.group))
        if n == 0 and (self.n_states is None or self.n_actions is None):
            raise InvalidInputError(
                "n_states and n_actions must be given for a log without transitions"
            )
        if self.n_states is None:
            largest = max(int(self.state.max()), int(self.next_state.max()))
            object.__setattr__(self, "n_states", largest + 1)
        if self.n_actions is None:
            object.__setattr__(self, "n_actions", int(self.action.max()) + 1)

    def __len__(self) -> int:
        return int(self.state.size)

    def __repr__(self) -> str:
        parts = [
            counted(len(self), "transition"),
            counted(int(self.n_states or 0), "state"),
            counted(int(self.n_actions or 0), "action"),
        ]
        for name in ("unit", "group"):
            labels = getattr(self, name)
            if name == "group" and self.groups is not None:
                labels = self.groups
            if labels is not None:
                parts.append(counted(int(np.unique(labels).size), name))
        return f"Transitions({', '.join(parts)})"


def _sized(name: str) -> str:
    return "n_actions" if name == "action" else "n_states"


def as_labels(value: Any, n: int, name: str) -> NDArray[Any] | None:
    """One label per transition: numbers or text, none of them missing."""
    if value is None:
        return None
    labels = as_array(value, name, "one label per transition")
    if labels.shape != (n,):
        raise InvalidInputError(
            f"{name} must hold one label per transition, shape ({n},); got shape {labels.shape}"
        )
    if labels.dtype.kind == "O":
        kinds = {type(label) for label in labels.flat}
        if not (kinds <= {str} or all(issubclass(kind, int | np.integer) for kind in kinds)):
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise InvalidInputError(
                f"{name} must hold labels of one kind, text or integers, without missing values; "
                f"got {names}"
            )
        labels = np.array(labels.tolist())
    if labels.dtype.kind not in "biuUSM" and labels.size:
        raise InvalidInputError(
            f"{name} must hold labels, text or integers, without missing values; got {labels.dtype}"
        )
    return labels


def _all_groups(given: Any, group: NDArray[Any] | None) -> NDArray[Any]:
    """The labels of all groups, among which are those of the transitions."""
    if group is None:
        raise InvalidInputError("groups must be given only together with group")
    size = np.shape(given)
    labels = as_labels(given, size[0] if len(size) == 1 else 0, "groups")
    assert labels is not None
    if np.unique(labels).size < labels.size:
        raise InvalidInputError("groups must hold each label once")
    unknown = np.setdiff1d(group, labels)
    if unknown.size:
        raise InvalidInputError(
            f"groups must hold the labels of all transitions; missing: {unknown[0]!r:.60}"
        )
    return labels


@dataclass(frozen=True, eq=False)
class Cells:
    """A log in which equal transitions of the same unit and group are counted together.

    Attributes
    ----------
    n_states, n_actions : int
    groups : tuple
        Labels of the groups; (None,) if there are none.
    n_units : int
        Number of units; 0 if the log does not say.
    pair, next_state, group, unit, count : (cells,) integers
        ``unit`` is 0 throughout if there are none.
    """

    n_states: int
    n_actions: int
    groups: tuple[Any, ...]
    n_units: int
    pair: IntArray
    next_state: IntArray
    group: IntArray
    unit: IntArray
    count: IntArray

    @property
    def n_transitions(self) -> int:
        """Number of transitions in the log."""
        return int(self.count.sum())


def cells_of(
    counts: ArrayOrSparse | Transitions | Mapping[Any, Any],
    groups: ArrayLike | None,
    units: ArrayLike | None,
) -> Cells:
    """Read counts or a log; errors name the argument at fault."""
    if isinstance(counts, Transitions):
        return _from_log(counts, groups, units)
    for name, value in (("groups", groups), ("units", units)):
        if value is not None:
            raise InvalidInputError(
                f"{name} must be None unless counts is a Transitions record: counted transitions "
                "have lost their labels"
                + ("; pass a mapping from group to counts" if name == "groups" else "")
            )
    if isinstance(counts, Mapping):
        if not counts:
            raise InvalidInputError("counts must hold at least one group; got an empty mapping")
        labels = tuple(counts)
        tables = [_table(counts[label], f"counts[{label!r}]") for label in labels]
        if len({table.shape for table in tables}) > 1:
            shapes = ", ".join(str(table.shape) for table in tables)
            raise InvalidInputError(
                f"counts must have the same states and actions in every group; got {shapes}"
            )
    else:
        labels, tables = (None,), [_table(counts, "counts")]
    n_pairs, n_states = tables[0].shape
    parts = [table.tocoo() for table in tables]
    which = [np.full(part.data.size, k) for k, part in enumerate(parts)]
    group = np.concatenate(which).astype(np.int64)
    total = sum(float(part.data.sum()) for part in parts)
    if total > LARGEST_COUNT:
        raise InvalidInputError(
            f"counts must add up to at most 2⁵³ transitions, beyond which sums are not exact; got "
            f"{total:.4g}"
        )
    return Cells(
        n_states,
        n_pairs // n_states,
        labels,
        0,
        np.concatenate([part.row for part in parts]).astype(np.int64),
        np.concatenate([part.col for part in parts]).astype(np.int64),
        group,
        np.zeros(group.size, dtype=np.int64),
        np.concatenate([part.data for part in parts]).astype(np.int64),
    )


def _table(counts: Any, name: str) -> sparse.csr_array:
    """Counts as a sparse (S·A, S) matrix of whole numbers."""
    if is_sparse(counts):
        if counts.ndim != 2 or 0 in counts.shape or counts.shape[0] % counts.shape[1]:
            raise InvalidInputError(
                f"{name} must be a sparse matrix of shape (S·A, S) with row s·A + a; got "
                f"{counts.shape}"
            )
        table = as_csr(counts, name)
    else:
        array = as_float_array(counts, name)
        if array.ndim != 3 or array.shape[0] != array.shape[2] or 0 in array.shape:
            raise InvalidInputError(
                f"{name} must have shape (S, A, S), be sparse (S·A, S) or be a Transitions record; "
                f"got shape {array.shape}"
            )
        table = sparse.csr_array(array.reshape(-1, array.shape[2]))
    table.eliminate_zeros()
    data = table.data
    bad = (data < 0) | (data != np.floor(data)) | (data > LARGEST_COUNT)
    if bad.any():
        where = int(np.argmax(bad))
        row = int(np.searchsorted(table.indptr, where, side="right")) - 1
        s, a = divmod(row, table.shape[0] // table.shape[1])
        raise InvalidInputError(
            f"{name} must be whole numbers of transitions from 0 to 2⁵³; got {data[where]:g} at "
            f"(s={s}, a={a}, s'={int(table.indices[where])})"
        )
    return table


def _from_log(log: Transitions, groups: ArrayLike | None, units: ArrayLike | None) -> Cells:
    n = len(log)
    columns = []
    for name, own, given in (("groups", log.group, groups), ("units", log.unit, units)):
        if own is not None and given is not None:
            raise InvalidInputError(
                f"{name} must not be given if the Transitions record has them already"
            )
        columns.append(own if given is None else as_labels(given, n, name))
    labels, group = _numbered(columns[0], n)
    if log.groups is not None and log.group is not None:
        labels, group = _numbered(np.concatenate((log.groups, log.group)), n)
        group = group[log.groups.size :]
    names, unit = _numbered(columns[1], n)
    n_states, n_actions = int(log.n_states or 0), int(log.n_actions or 0)
    pair = log.state * n_actions + log.action
    order = np.lexsort((log.next_state, pair, group, unit))
    sorted_columns = [column[order] for column in (unit, group, pair, log.next_state)]
    fresh = np.ones(n, dtype=bool)
    if n:
        fresh[1:] = np.any([column[1:] != column[:-1] for column in sorted_columns], axis=0)
    first = np.flatnonzero(fresh)
    unit, group, pair, next_state = (column[first] for column in sorted_columns)
    return Cells(
        n_states,
        n_actions,
        labels,
        0 if columns[1] is None else len(names),
        pair,
        next_state,
        group,
        unit,
        np.diff(np.append(first, n)),
    )


def _numbered(labels: NDArray[Any] | None, n: int) -> tuple[tuple[Any, ...], IntArray]:
    if labels is None:
        return (None,), np.zeros(n, dtype=np.int64)
    distinct, index = np.unique(labels, return_inverse=True)
    return tuple(distinct.tolist()), index.astype(np.int64)


def assigned(cells: Cells, folds: int, rng: np.random.Generator) -> IntArray:
    """(cells, folds) transitions of each cell that are scored in each fold.

    Whole units, if there are at least two, go to a fold; otherwise single transitions do.
    """
    if cells.n_units >= 2:
        place = rng.permutation(cells.n_units) % folds
        split = np.zeros((cells.count.size, folds), dtype=np.int64)
        split[np.arange(cells.count.size), place[cells.unit]] = cells.count
        return split
    return as_index_array(
        rng.multinomial(cells.count, np.full(folds, 1.0 / folds)), LARGEST_COUNT + 1, "counts"
    )
