"""From the lines of a table to transitions; every line that is left out is accounted for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.errors import InvalidInputError
from brmdp.logs.columns import Column, Labels, joined, look_alikes
from brmdp.logs.log import Dropped, Log, ReadingReport
from brmdp.logs.sources import Table, table_of
from brmdp.logs.spaces import (
    MOST_STATES,
    Axis,
    Bins,
    Categories,
    StateSpace,
    as_label_tuple,
    in_order,
    number_in,
    resolved,
    shown,
)
from brmdp.logs.times import Clock, Moments, clock_of, moments_of, number_of_steps

__all__ = ["MISSING", "read_log"]

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
"""Texts that stand for a missing value, unless others are given."""

MOST_ACTIONS = 10_000
EXAMPLES = 3
MANY_UNITS = 100_000
BETWEEN_UNITS = " / "
LARGEST_CODE = 2**62

ABSENT, NO_NUMBER, OUTSIDE, UNKNOWN = -1, -2, -3, -4
"""Codes of readings that are no state."""


def read_log(
    source: Any,
    *,
    state: str | Axis | Sequence[str | Axis],
    action: str,
    unit: str | Sequence[str] | None = None,
    time: str | None = None,
    next_state: str | Sequence[str] | None = None,
    amount: str | None = None,
    groups: str | Sequence[str] | None = None,
    step: float | str | None = None,
    actions: Sequence[str] | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    missing: Iterable[str] = MISSING,
) -> Log:
    """Read a log of decisions from a file or a data frame.

    Each line has a unit, a time, a state and an action. Lines of a unit are sorted by time, and two
    lines one step apart make a transition. Nothing is guessed in silence: every line that makes no
    transition is counted once, by its first reason, in ``Log.report``, in this order: the wrong
    number of fields; unit, group, time, state, next state, action or amount missing or unusable; a
    duplicate; the last line of its unit; a gap in time; a next line whose state is unknown.

    Parameters
    ----------
    source : path or data frame
        A file .csv, .tsv or .txt (also .gz) with a line of column names, or .parquet; or a table of
        Arrow, pandas, polars or whatever else narwhals takes.
    state : str, Bins, Categories or a sequence of these
        What the state is made of; a name alone means categories as they are found.
    action : str
        Column of the actions.
    unit : str or sequence of str, optional
        Column(s) that say which bus, patient or machine it is. Without it, all lines are one unit.
    time : str, optional
        Column of numbers, dates or timestamps (ISO: 2019-03, 2019-03-01, 2019-03-01 12:00, also
        with a time zone). Without it, the order of the file is the order in time.
    next_state : str or sequence of str, optional
        Column(s) of the next state, one for each of ``state``. Every line is then a transition.
    amount : str, optional
        Column of a cost or reward.
    groups : str or sequence of str, optional
        Column(s) that say of which kind a unit is; the same on all lines of a unit.
    step : number or str, optional
        One step of time: a number if times are, otherwise "second", "minute", "hour", "day",
        "week", "month", "quarter", "year", or such as "2 weeks". From one calendar month to the
        next is one month, whatever the day. By default the commonest difference between consecutive
        lines of a unit; a note of the report says which, and how common it is.
    actions : sequence of str, optional
        The actions, in order; lines with another one are dropped. By default as found, numbers in
        the order of numbers, other labels in the order of text.
    delimiter : str, optional
        Between the fields of a text file; by default a tab in .tsv and a comma in others.
    decimal : "." or ","
        The decimal mark in text.
    encoding : str
        Of a text file.
    missing : sequence of str
        Texts that stand for a missing value. The empty text always does.

    Returns
    -------
    Log

    Raises
    ------
    InvalidInputError
        If no line is usable, or something is wrong that does not concern single lines.
    MissingExtraError
        If pyarrow is not installed, or narwhals for a data frame.

    Notes
    -----
    Labels are text without the space around it. In text files, "1" and "1.0" are different labels;
    numbers of a data frame or Parquet file have one form each. Of lines of the same unit and time,
    equal ones count once, and all are dropped if they contradict each other; the state at that time
    is then unknown. Without ``time``, a line that cannot be assigned to a unit interrupts all
    units, since it may belong to any.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from brmdp.logs import Bins, read_log
    >>> table = pa.table({
    ...     "bus": [1, 1, 1, 2, 2],
    ...     "month": ["2019-01", "2019-02", "2019-04", "2019-01", "2019-02"],
    ...     "miles": [100, 5300, 9000, 7000, None],
    ...     "decision": ["keep", "keep", "replace", "keep", "keep"],
    ... })
    >>> miles = Bins("miles", (0, 5000, 10000))
    >>> log = read_log(table, state=miles, action="decision", unit="bus", time="month")
    >>> print(log.report)
    5 lines: 4 kept, of 2 units; 1 transition.
    Dropped:
      1 line: 'miles' is missing
          row 5: 'miles' is missing
    Begin no transition:
      1 line: the last of its unit
      1 line: followed by a gap in time, the next line of the unit is not one step later
          row 2: unit '1', from '2019-02' to '2019-04'
      1 line: followed by a line of the unit whose state is unknown
          row 4: unit '2', before row 5
    Notes:
      One step of time ('month') is 1 month: the commonest difference between consecutive lines of a
        unit, 2 of 3 (66.6 %).
    """
    roles = _Roles.of(state, action, unit, time, next_state, amount, groups, actions, step)
    texts = _texts(delimiter, decimal, encoding, missing)
    table = table_of(
        source,
        roles.names,
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        missing=texts,
    )
    return _Reading(table, roles, decimal).log()


def _texts(delimiter: Any, decimal: Any, encoding: Any, missing: Iterable[str]) -> frozenset[str]:
    """Check how a text file is written; return the texts for missing values."""
    if delimiter is not None and (
        not isinstance(delimiter, str)
        or len(delimiter) != 1
        or delimiter in '"\r\n'
        or ord(delimiter) > 127
    ):
        raise InvalidInputError(
            f"delimiter must be one ASCII character, no quotation mark; got {shown(delimiter)}"
        )
    if decimal not in (".", ","):
        raise InvalidInputError(f"decimal must be '.' or ','; got {shown(decimal)}")
    try:
        ascii_alike = isinstance(encoding, str) and "a,".encode(encoding) == b"a,"
    except LookupError:
        ascii_alike = False
    if not ascii_alike:
        raise InvalidInputError(
            "encoding must be one that Python knows and that contains ASCII, such as 'utf-8' or "
            f"'cp1252'; got {shown(encoding)}"
        )
    given = None if isinstance(missing, str) else list(missing)
    if given is None or not all(isinstance(text, str) for text in given):
        raise InvalidInputError(f"missing must be a sequence of texts; got {shown(missing)}")
    return frozenset(text.strip() for text in given) | {""}


@dataclass(frozen=True)
class _Roles:
    """Which columns play which part."""

    axes: tuple[Axis, ...]
    next_columns: tuple[str, ...]
    action: Categories
    unit: tuple[str, ...]
    time: str | None
    amount: str | None
    groups: tuple[str, ...]
    step: float | str | None

    @classmethod
    def of(
        cls,
        state: Any,
        action: Any,
        unit: Any,
        time: Any,
        next_state: Any,
        amount: Any,
        groups: Any,
        actions: Any,
        step: Any,
    ) -> _Roles:
        """Check the arguments of :func:`read_log`."""
        parts = [state] if isinstance(state, str | Bins | Categories) else state
        if not isinstance(parts, list | tuple) or not parts:
            raise InvalidInputError(
                "state must be the name of a column, Bins, Categories, or a sequence of these; got "
                f"{shown(state)}"
            )
        for part in parts:
            if not isinstance(part, str | Bins | Categories):
                raise InvalidInputError(
                    f"state must consist of column names, Bins and Categories; got {shown(part)}"
                )
        axes = tuple(Categories(part) if isinstance(part, str) else part for part in parts)
        followers = _names(next_state, "next_state")
        if followers and len(followers) != len(axes):
            raise InvalidInputError(
                f"next_state must name one column for each of state, {len(axes)}; got "
                f"{len(followers)}"
            )
        for name, value in (("action", action), ("time", time), ("amount", amount)):
            if not (isinstance(value, str) and value) and (name == "action" or value is not None):
                raise InvalidInputError(f"{name} must be the name of a column; got {shown(value)}")
        labels = None if actions is None else as_label_tuple(actions, "actions")
        if step is not None:
            if time is None:
                raise InvalidInputError(f"step must not be given without time; got {shown(step)}")
            if isinstance(step, str):
                number_of_steps(step)
            elif isinstance(step, bool) or not isinstance(step, int | float | np.number):
                raise InvalidInputError(
                    f"step must be a number or text such as 'month'; got {shown(step)}"
                )
        return cls(
            axes,
            followers,
            Categories(action, labels),
            _names(unit, "unit"),
            time,
            amount,
            _names(groups, "groups"),
            step,
        )

    @property
    def names(self) -> list[str]:
        """All columns, each once."""
        single = [name for name in (self.time, self.amount) if name is not None]
        states = [axis.column for axis in self.axes]
        every = [*self.unit, *self.groups, *states, *self.next_columns, self.action.column, *single]
        return list(dict.fromkeys(every))


def _names(value: Any, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    names = (value,) if isinstance(value, str) else value
    if (
        not isinstance(names, list | tuple)
        or not names
        or not all(isinstance(one, str) and one for one in names)
    ):
        raise InvalidInputError(
            f"{name} must be the name of a column or a sequence of names; got {shown(value)}"
        )
    return tuple(names)


@dataclass(frozen=True)
class _Reason:
    """Why lines make no transition."""

    name: str
    column: str
    words: str
    example: Callable[[int], str]
    line_kept: bool


class _Ledger:
    """The first reason for which each line of the table makes no transition; 0 if it makes one."""

    def __init__(self, n: int) -> None:
        self.why = np.zeros(n, dtype=np.int16)
        self.reasons: list[_Reason] = []

    def enter(
        self,
        name: str,
        words: str,
        lines: BoolArray | IntArray,
        example: Callable[[int], str],
        *,
        column: str = "",
        line_kept: bool = False,
    ) -> None:
        """Enter a reason for lines; those that have one already keep it."""
        rows = np.flatnonzero(lines) if lines.dtype == bool else lines
        rows = rows[self.why[rows] == 0]
        if rows.size:
            self.reasons.append(_Reason(name, column, words, example, line_kept))
            self.why[rows] = len(self.reasons)

    @property
    def blameless(self) -> BoolArray:
        """Lines without a reason so far."""
        return np.asarray(self.why == 0)

    def entries(self) -> list[Dropped]:
        """All reasons with their lines, in the order in which they were entered."""
        counts = np.bincount(self.why, minlength=len(self.reasons) + 1)[1:].tolist()
        found = []
        for k, (reason, count) in enumerate(zip(self.reasons, counts, strict=True), start=1):
            rows = _first_rows(self.why, k)
            found.append(
                Dropped(
                    reason.name,
                    count,
                    f"{_lines(count)}: {reason.words}",
                    tuple(reason.example(row) for row in rows),
                    reason.column,
                    reason.line_kept,
                )
            )
        return found


def _first_rows(why: Any, k: int) -> list[int]:
    rows = np.flatnonzero(why == k)[:EXAMPLES]
    return [int(row) for row in rows]


def _lines(count: int) -> str:
    return f"{count:,} line{'' if count == 1 else 's'}"


@dataclass(frozen=True, eq=False)
class _Coded:
    """States, or actions, before it is known which labels are kept.

    Attributes
    ----------
    axes : tuple of Bins and Categories
        With all labels of the log.
    as_found : tuple of bool
        Of which axes labels stay only if they are on a kept line.
    own, following : (n,) integers
        States and next states; negative if there is none.
    """

    axes: tuple[Axis, ...]
    as_found: tuple[bool, ...]
    own: IntArray
    following: IntArray | None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis.labels or ()) for axis in self.axes)


@dataclass(frozen=True, eq=False)
class _Nodes:
    """One line for each unit and time, sorted by both.

    Attributes
    ----------
    rows : (k,) integers
    complete : (k,) booleans
        Whether the line is kept.
    known : (k,) booleans
        Whether the state is known there, though the action may not be.
    """

    rows: IntArray
    complete: BoolArray
    known: BoolArray


class _Reading:
    """A table on its way to becoming a log."""

    def __init__(self, table: Table, roles: _Roles, decimal: str) -> None:
        self.table, self.roles, self.decimal = table, roles, decimal
        self.n = table.places.size
        self.ledger = _Ledger(self.n)
        self.notes = list(table.notes)

    def log(self) -> Log:
        """Read everything."""
        units = self._units()
        grouped = self._labels(self.roles.groups, "groups")
        if grouped is not None:
            self._check_groups(units, grouped)
        moments = self._moments()
        placed = units.codes >= 0
        if moments is not None:
            placed &= self._column(self.roles.time).over_lines(moments.valid, False)
        before_states = self.ledger.blameless
        states = self._states()
        known = before_states & (states.own >= 0)
        actions = self._coded((self.roles.action,), ())
        self._blame_actions(actions)
        amounts = self._amounts()
        nodes = self._nodes(units, moments, placed, known, states, actions.own, amounts)
        kept = nodes.rows[nodes.complete]
        if not kept.size:
            raise self._nothing_left()
        pair = np.diff(units.codes[nodes.rows]) == 0
        clock, follows = self._clock(moments, nodes, pair)
        if moments is None:
            follows &= ~self._interrupted(units, nodes)
        if states.following is None:
            begins = self._begins(units, nodes, pair, follows)
            next_states = np.append(states.own[nodes.rows[1:]], 0)
        else:
            begins = nodes.complete
            next_states = states.following[nodes.rows]
        return self._assembled(
            units, grouped, nodes, begins, follows, states, next_states, actions, amounts, clock
        )

    # --- columns -------------------------------------------------------------------------------

    def _column(self, name: str | None) -> Column:
        return self.table.columns[str(name)]

    def _line(self, row: int) -> str:
        return self.table.name_of(int(self.table.places[row]))

    def _example(self, column: Column) -> Callable[[int], str]:
        return lambda row: f"{self._line(row)}: {shown(column.name)} is {column.value(row)}"

    def _blame(self, name: str, what: str, lines: BoolArray, column: Column) -> None:
        self.ledger.enter(
            name, f"{shown(column.name)} {what}", lines, self._example(column), column=column.name
        )

    def _labels(self, names: Sequence[str], role: str) -> Labels | None:
        """Labels of one or several columns together; lines without one are entered."""
        if not names:
            return None
        parts = []
        for name in names:
            column = self._column(name)
            parts.append(column.labels())
            self._blame("missing", "is missing", parts[-1].codes < 0, column)
        found = joined(parts, BETWEEN_UNITS, role)
        ranked = in_order(found.names)
        rank = {label: k for k, label in enumerate(ranked)}
        places = np.array([rank[label] for label in found.names] + [ABSENT], dtype=np.int64)
        if len(ranked) <= MANY_UNITS:
            self._note_look_alikes(ranked, role)
        return Labels(tuple(ranked), places[found.codes])

    def _units(self) -> Labels:
        found = self._labels(self.roles.unit, "unit")
        if found is not None:
            return found
        self.notes.append("All lines are taken for one unit, since unit is not given.")
        return Labels(("all",), np.zeros(self.n, dtype=np.int64))

    def _check_groups(self, units: Labels, grouped: Labels) -> None:
        rows = np.flatnonzero((units.codes >= 0) & (grouped.codes >= 0))
        unit, group = units.codes[rows], grouped.codes[rows]
        first = np.zeros(len(units.names), dtype=np.int64)
        first[unit[::-1]] = np.arange(rows.size)[::-1]
        differs = group != group[first[unit]]
        if differs.any():
            k = int(np.argmax(differs))
            other = int(first[unit[k]])
            whose = f"unit {shown(units.names[unit[k]])}"
            if not self.roles.unit:
                whose = "the log, which is one unit since unit is not given,"
            raise InvalidInputError(
                f"groups must be the same on all lines of a unit; {whose} has "
                f"{shown(grouped.names[group[other]])} ({self._line(rows[other])}) and "
                f"{shown(grouped.names[group[k]])} ({self._line(rows[k])})"
            )

    def _moments(self) -> Moments | None:
        if self.roles.time is None:
            self.notes.append(
                "The order of the lines is taken for their order in time, one step apart, since "
                "time is not given."
            )
            return None
        column = self._column(self.roles.time)
        moments = moments_of(column, self.decimal)
        self._blame("missing", "is missing", column.codes < 0, column)
        bad = column.over_lines(~moments.valid, False)
        if moments.dates:
            self._blame("not a date", "is not a date in ISO form (2019-03-01)", bad, column)
        else:
            what = "is not a finite number" + (
                ", nor is it a date in ISO form (2019-03-01)" if column.is_text else ""
            )
            self._blame("not a number", what, bad, column)
        self.notes += moments.notes
        return moments

    def _states(self) -> _Coded:
        found = self._coded(self.roles.axes, self.roles.next_columns)
        for axis in found.axes:
            if isinstance(axis, Categories):
                self._note_look_alikes(axis.labels or (), axis.column)
        return found

    def _coded(self, axes: Sequence[Axis], next_columns: Sequence[str]) -> _Coded:
        """States of all lines, and next states if they have columns of their own."""
        whole: list[Axis] = []
        own, following = [], []
        for k, axis in enumerate(axes):
            columns = [self._column(axis.column)]
            columns += [self._column(name) for name in next_columns[k : k + 1]]
            if isinstance(axis, Bins):
                codes = [_binned(axis, column, self.decimal) for column in columns]
            else:
                labels = [column.labels() for column in columns]
                axis = self._with_labels(axis, labels)
                codes = [_categorised(axis, one) for one in labels]
            whole.append(axis)
            own.append(codes[0])
            following += codes[1:]
        shape = [len(axis.labels or ()) for axis in whole]
        as_found = tuple(axis.labels is None for axis in axes)
        if math.prod(shape) > LARGEST_CODE:
            raise InvalidInputError(
                f"state must have at most {MOST_STATES:,} values; got columns with "
                f"{' times '.join(str(size) for size in shape)}. Take Bins or fewer columns"
            )
        if len(axes) == 1 and axes[0] is self.roles.action:
            return _Coded(tuple(whole), as_found, own[0], None)
        for axis, codes_of_axis in zip(whole, own, strict=True):
            self._blame_readings(axis, self._column(axis.column), codes_of_axis)
        for axis, name, codes_of_axis in zip(whole, next_columns, following, strict=False):
            self._blame_readings(axis, self._column(name), codes_of_axis)
        return _Coded(
            tuple(whole),
            as_found,
            _together(own, shape),
            _together(following, shape) if following else None,
        )

    def _with_labels(self, axis: Categories, labels: Sequence[Labels]) -> Categories:
        if axis.labels is not None:
            return axis
        found = list(dict.fromkeys(name for one in labels for name in one.names))
        is_action = axis is self.roles.action
        most, role = (MOST_ACTIONS, "action") if is_action else (MOST_STATES, "state")
        if len(found) > most:
            numeric = all(math.isfinite(number_in(name)) for name in found[:1000])
            hint = ". Take Bins" if numeric and not is_action else ". Is it the right column?"
            raise InvalidInputError(
                f"{role} must have at most {most:,} labels; got {len(found):,} in column "
                f"{shown(axis.column)}{hint}"
            )
        return Categories(axis.column, tuple(in_order(found)) or None)

    def _blame_readings(self, axis: Axis, column: Column, codes: IntArray) -> None:
        self._blame("missing", "is missing", codes == ABSENT, column)
        if isinstance(axis, Bins):
            if (codes == NO_NUMBER).any():
                what = "is not a finite number" + self._decimal_hint(column)
                self._blame("not a number", what, codes == NO_NUMBER, column)
            what = f"lies outside the bins, {axis.edges[0]:.12g} to {axis.edges[-1]:.12g}"
            self._blame("outside the bins", what, codes == OUTSIDE, column)
        else:
            what = f"has a label that is none of {_few(axis.labels or ())}"
            self._blame("unknown label", what, codes == UNKNOWN, column)

    def _blame_actions(self, actions: _Coded) -> None:
        self._blame_readings(actions.axes[0], self._column(self.roles.action.column), actions.own)
        if self.roles.action.labels is None:
            self._note_look_alikes(actions.axes[0].labels or (), self.roles.action.column)

    def _amounts(self) -> FloatArray | None:
        if self.roles.amount is None:
            return None
        column = self._column(self.roles.amount)
        numbers = column.numbers(self.decimal)
        amounts: FloatArray = column.over_lines(numbers, np.nan)
        self._blame("missing", "is missing", column.codes < 0, column)
        bad = np.isnan(amounts)
        if np.isnan(numbers).any():
            what = "is not a finite number" + self._decimal_hint(column)
            self._blame("not a number", what, bad, column)
        return amounts

    def _decimal_hint(self, column: Column) -> str:
        """Say so if numbers are written with the other decimal mark."""
        if not column.is_text:
            return ""
        other = "," if self.decimal == "." else "."
        now, then = column.numbers(self.decimal), column.numbers(other)
        found = int((np.isnan(now) & ~np.isnan(then)).sum())
        return f" (decimal={other!r} would read {found} of its values)" if found else ""

    def _note_look_alikes(self, names: Sequence[str], role: str) -> None:
        found = look_alikes(names)
        if found is not None:
            self.notes.append(
                f"{shown(found[0])} and {shown(found[1])} ({shown(role)}) {found[2]} but count as "
                "different labels."
            )

    # --- lines ---------------------------------------------------------------------------------

    def _nodes(
        self,
        units: Labels,
        moments: Moments | None,
        placed: BoolArray,
        known: BoolArray,
        states: _Coded,
        actions: IntArray,
        amounts: FloatArray | None,
    ) -> _Nodes:
        """Sort lines by unit and time, and settle duplicates."""
        rows = np.flatnonzero(placed)
        key = units.codes[rows]
        if moments is not None:
            column = self._column(self.roles.time)
            distinct, ranks = np.unique(moments.instant, return_inverse=True)
            key = key * max(distinct.size, 1) + ranks.astype(np.int64)[column.codes[rows]]
        if (np.diff(key) < 0).any():
            order = np.argsort(key, kind="stable")
            rows, key = rows[order], key[order]
        complete = self.ledger.blameless[rows]
        nodes = _Nodes(rows, complete, known[rows])
        fresh = np.ones(rows.size, dtype=bool)
        fresh[1:] = key[1:] != key[:-1]
        if moments is None or fresh.all():
            return nodes
        content: list[Any] = [states.own[rows], actions[rows]]
        content += [] if states.following is None else [states.following[rows]]
        content += [] if amounts is None else [amounts[rows]]
        return self._settled(nodes, fresh, content, units)

    def _settled(
        self, nodes: _Nodes, fresh: BoolArray, content: Sequence[Any], units: Labels
    ) -> _Nodes:
        """One line for each unit and time, where several have the same."""
        starts = np.flatnonzero(fresh)
        of = np.cumsum(fresh) - 1
        n = nodes.rows.size
        positions = np.arange(n)
        # among lines that are complete, or at least know the state: the first of each time
        first = np.minimum.reduceat(np.where(nodes.complete, positions, n), starts)
        first_known = np.minimum.reduceat(np.where(nodes.known, positions, n), starts)
        conflict = np.zeros(n, dtype=bool)
        for values, lines, reference in (
            (content[0], nodes.known, first_known),
            *((values, nodes.complete, first) for values in content[1:]),
        ):
            mine = np.flatnonzero(lines)
            conflict[mine] |= values[mine] != values[reference[of[mine]]]
        contradictory = np.logical_or.reduceat(conflict, starts)
        doubtful = nodes.complete & contradictory[of]
        repeated = nodes.complete & ~contradictory[of] & (positions != first[of])
        where = f"the same {'unit and ' if self.roles.unit else ''}time"
        example = self._at_time(units)
        self.ledger.enter(
            "contradictory duplicate",
            f"contradicted by another line of {where}",
            nodes.rows[doubtful],
            example,
        )
        self.ledger.enter(
            "duplicate", f"repeats another line of {where}", nodes.rows[repeated], example
        )
        chosen = np.where(first < n, first, np.where(first_known < n, first_known, starts))
        return _Nodes(
            nodes.rows[chosen],
            nodes.complete[chosen] & ~contradictory,
            nodes.known[chosen] & ~contradictory,
        )

    def _at_time(self, units: Labels) -> Callable[[int], str]:
        column = self._column(self.roles.time)
        return lambda row: f"{self._line(row)}: {self._unit(units, row)}{column.value(row)}"

    def _unit(self, units: Labels, row: int) -> str:
        return f"unit {shown(units.names[units.codes[row]])}, " if self.roles.unit else ""

    def _clock(
        self, moments: Moments | None, nodes: _Nodes, pair: BoolArray
    ) -> tuple[Clock | None, BoolArray]:
        """What a step is, and whether each node but the last is one step before the next."""
        if moments is None:
            return None, pair.copy()
        column, step = self._column(self.roles.time), self.roles.step
        codes = column.codes[nodes.rows]
        earlier, later = codes[:-1][pair], codes[1:][pair]
        clock = clock_of(column, moments, step, earlier, later)
        if clock is None:
            self.notes.append(
                "One step of time is unknown: no unit has two lines at different times."
            )
            return None, np.zeros(pair.size, dtype=bool)
        matches = clock.one_step(clock.index[later] - clock.index[earlier])
        follows = pair.copy()
        follows[pair] = matches
        how = "as given; it is the" if step is not None else "the commonest"
        note = (
            f"One step of time ({shown(column.name)}) is {clock.words}: {how} difference between "
            f"consecutive lines of a unit"
        )
        share = float(matches.mean()) if matches.size else 1.0
        if matches.size:
            of = f"{int(matches.sum()):,} of {matches.size:,} ({math.floor(1000 * share) / 10:g} %)"
            note += f" in {of}" if step is not None else f", {of}"
        note += "."
        if share < 0.5 and step is None:
            note += " That is less than half of them; give step=… if it should be another."
        elif share < 0.5:
            other = clock_of(column, moments, None, earlier, later)
            note += f" The commonest difference is {other.words}." if other is not None else ""
        self.notes.append(note)
        return clock, follows

    def _interrupted(self, units: Labels, nodes: _Nodes) -> BoolArray:
        """Without times: whether a line that may be of any unit stands before the next node."""
        strangers = np.sort(np.concatenate([self.table.broken, self.table.places[units.codes < 0]]))
        passed = np.searchsorted(strangers, self.table.places[nodes.rows])
        return np.asarray(np.diff(passed) > 0)

    def _begins(
        self, units: Labels, nodes: _Nodes, pair: BoolArray, follows: BoolArray
    ) -> BoolArray:
        """Which nodes begin a transition; the others are entered with their reason."""
        last = np.append(~pair, np.ones(min(nodes.rows.size, 1), dtype=bool))
        in_step = np.append(follows, np.zeros(last.size - follows.size, dtype=bool))
        known_next = np.append(nodes.known[1:], np.zeros(last.size - follows.size, dtype=bool))
        successor = np.full(self.n, -1, dtype=np.int64)
        successor[nodes.rows[:-1]] = nodes.rows[1:]

        def gap(row: int) -> str:
            column = self._column(self.roles.time)
            later = column.value(int(successor[row]))
            whose = self._unit(units, row)
            return f"{self._line(row)}: {whose}from {column.value(row)} to {later}"

        def before(row: int) -> str:
            return f"{self._line(row)}: {self._unit(units, row)}before {self._line(successor[row])}"

        def only_line(row: int) -> str:
            return f"{self._line(row)}: {self._unit(units, row)}".rstrip(", :")

        def enter(name: str, words: str, chosen: BoolArray, example: Callable[[int], str]) -> None:
            rows = nodes.rows[chosen & nodes.complete]
            self.ledger.enter(name, words, rows, example, line_kept=True)

        enter("last line", "the last of its unit", last, only_line)
        if self.roles.time is not None:
            words = "followed by a gap in time, the next line of the unit is not one step later"
            enter("gap", words, ~in_step, gap)
        else:
            words = "followed by a line that is of no known unit, perhaps of the same"
            enter("next state unknown", words, ~in_step, before)
        words = "followed by a line of the unit whose state is unknown"
        enter("next state unknown", words, ~known_next, before)
        return np.asarray(nodes.complete & ~last & in_step & known_next)

    # --- the log -------------------------------------------------------------------------------

    def _dropped(self) -> list[Dropped]:
        entries = self.ledger.entries()
        broken = self.table.broken
        if broken.size:
            examples = tuple(self.table.name_of(int(place)) for place in broken[:EXAMPLES])
            words = f"{_lines(broken.size)}: more or fewer fields than the line of column names"
            entries.insert(0, Dropped("wrong number of fields", broken.size, words, examples))
        return entries

    def _nothing_left(self) -> InvalidInputError:
        reasons = [
            entry.words + (f" ({entry.examples[0]})" if entry.examples else "")
            for entry in self._dropped()[:6]
        ]
        return InvalidInputError(
            f"source must have lines that can be used; of {_lines(self.table.n_lines)} in "
            f"{shown(self.table.source)} none can: {'; '.join(reasons)}"
        )

    def _assembled(
        self,
        units: Labels,
        grouped: Labels | None,
        nodes: _Nodes,
        begins: BoolArray,
        follows: BoolArray,
        states: _Coded,
        next_states: IntArray,
        actions: _Coded,
        amounts: FloatArray | None,
        clock: Clock | None,
    ) -> Log:
        lines, rows = nodes.rows[nodes.complete], nodes.rows[begins]
        next_state = next_states[begins]
        space, (line_state, state, next_state) = _final(
            states, (states.own[lines], states.own[rows], next_state)
        )
        of_actions, (line_action, action) = _final(actions, (actions.own[lines], actions.own[rows]))
        unit_names, (line_unit, unit) = _compressed(units, lines, rows)
        group_names, line_group, group = None, None, None
        if grouped is not None:
            group_names, (line_group, group) = _compressed(grouped, lines, rows)
        time = None
        if clock is not None:
            index = clock.index[self._column(self.roles.time).codes[lines]]
            later = clock.index[self._column(self.roles.time).codes[rows]]
            time = (later - index.min()).astype(np.float64) / clock.step
        if not rows.size:
            self.notes.insert(0, "There is no transition in this log.")
        report = ReadingReport(
            self.table.n_lines,
            int(lines.size),
            len(unit_names),
            int(rows.size),
            tuple(self._dropped()),
            tuple(self.notes),
        )
        return Log(
            self.table.source,
            self.table.digest,
            space,
            of_actions.labels,
            unit_names,
            group_names,
            state,
            action,
            next_state,
            unit,
            group,
            time,
            None if amounts is None else amounts[rows],
            _previous(begins, follows, next_states, states.own[nodes.rows]),
            line_state,
            line_action,
            line_unit,
            line_group,
            report,
        )


def _few(labels: Sequence[str]) -> str:
    return ", ".join(shown(label, 40) for label in labels[:5]) + (", …" if len(labels) > 5 else "")


def _binned(axis: Bins, column: Column, decimal: str) -> IntArray:
    numbers = column.numbers(decimal)
    codes = np.full(numbers.size, NO_NUMBER, dtype=np.int64)
    finite = np.isfinite(numbers)
    places = axis.place(numbers[finite])
    codes[finite] = np.where(places < 0, OUTSIDE, places)
    return column.over_lines(codes, ABSENT)


def _categorised(axis: Categories, found: Labels) -> IntArray:
    rank = {label: k for k, label in enumerate(axis.labels or ())}
    places = [rank.get(name, UNKNOWN) for name in found.names]
    codes: IntArray = np.array([*places, ABSENT], dtype=np.int64)[found.codes]
    return codes


def _together(parts: Sequence[IntArray], shape: Sequence[int]) -> IntArray:
    """One number for the readings of all columns; negative if one of them is none."""
    if len(parts) == 1:
        return parts[0]
    whole = np.zeros(parts[0].size, dtype=np.int64)
    for codes, size in zip(parts, shape, strict=True):
        whole = np.where((whole < 0) | (codes < 0), ABSENT, whole * size + codes)
    return whole


def _final(coded: _Coded, columns: Sequence[IntArray]) -> tuple[StateSpace, list[IntArray]]:
    """The space of what was kept, and the columns numbered in it."""
    shape = coded.shape
    size = math.prod(shape)
    if size <= max(10 * MOST_STATES, columns[0].size):
        present = np.zeros(size, dtype=bool)
        for column in columns:
            present[column] = True
        used = np.flatnonzero(present)
    else:
        used = np.unique(np.concatenate([np.unique(column) for column in columns]))
    parts = np.unravel_index(used, shape)
    axes, places = [], []
    for axis, as_found, part in zip(coded.axes, coded.as_found, parts, strict=True):
        labels = axis.labels or ()
        own = np.unique(part)
        final = axis
        if as_found:
            final = resolved(Categories(axis.column), [labels[k] for k in own.tolist()])
        axes.append(final)
        rank = {label: k for k, label in enumerate(final.labels or ())}
        moved = np.full(len(labels), -1, dtype=np.int64)
        moved[own] = [rank[labels[k]] for k in own.tolist()]
        places.append(moved[part])
    space = StateSpace(tuple(axes))
    target = np.ravel_multi_index(tuple(places), space.shape).astype(np.int64)
    if size <= max(10 * MOST_STATES, columns[0].size):
        moved = np.full(size, -1, dtype=np.int64)
        moved[used] = target
        return space, [moved[column] for column in columns]
    return space, [target[np.searchsorted(used, column)] for column in columns]


def _compressed(
    found: Labels, lines: IntArray, rows: IntArray
) -> tuple[tuple[str, ...], tuple[IntArray, IntArray]]:
    """Labels of kept lines alone, and the columns numbered by them."""
    of_lines, of_rows = found.codes[lines], found.codes[rows]
    present = np.zeros(len(found.names), dtype=bool)
    present[of_lines] = True
    place = np.cumsum(present) - 1
    names = tuple(name for name, kept in zip(found.names, present.tolist(), strict=True) if kept)
    return names, (place[of_lines], place[of_rows])


def _previous(
    begins: BoolArray, follows: BoolArray, next_states: IntArray, own: IntArray
) -> IntArray:
    """Row of the transition that ends where each one begins; -1 if there is none."""
    row = np.where(begins, np.cumsum(begins) - 1, -1)
    before = np.full(begins.size, -1, dtype=np.int64)
    joined_up = follows & begins[:-1] & (next_states[:-1] == own[1:])
    before[1:][joined_up] = row[:-1][joined_up]
    return before[begins]
