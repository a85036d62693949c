"""A log that has been read: transitions as columns, and what was left out and why."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from brmdp._extras import optional
from brmdp._validation import FloatArray, IntArray
from brmdp.decisions import Transitions
from brmdp.errors import InvalidInputError
from brmdp.logs.spaces import StateSpace, shown
from brmdp.mdp import counted

__all__ = ["Dropped", "Log", "ReadingReport"]

WIDTH = 100
LISTED = 30
"""At most so many reasons and notes are printed."""


@dataclass(frozen=True)
class Dropped:
    """Lines that were left out for the same reason.

    Attributes
    ----------
    reason : str
        One of "wrong number of fields", "missing", "not a number", "not a date",
        "outside the bins", "unknown label", "duplicate", "contradictory duplicate", "gap",
        "next state unknown", "last line".
    lines : int
        How many; each line is counted once, by its first reason.
    words : str
        The same in a sentence.
    examples : tuple of str
        Up to three of these lines, with their number in the file.
    column : str
        The column at fault; empty if it is none in particular.
    line_kept : bool
        Whether the line itself is valid and only begins no transition. It is then among the lines
        from which practice is learned, and may be where a transition ends.

    Examples
    --------
    >>> from brmdp.logs import Dropped
    >>> Dropped("missing", 2, "'miles' is missing", column="miles").line_kept
    False
    """

    reason: str
    lines: int
    words: str
    examples: tuple[str, ...] = ()
    column: str = ""
    line_kept: bool = False


@dataclass(frozen=True)
class ReadingReport:
    """What became of the lines of a log.

    Two sums hold exactly. All ``lines`` are the ``kept_lines`` and those in ``dropped`` whose
    ``line_kept`` is False. The ``kept_lines`` are the ``transitions``, each of which begins with a
    line of its own, and those in ``dropped`` whose ``line_kept`` is True.

    Attributes
    ----------
    lines : int
        Lines of data in the file, without the header and without blank lines.
    kept_lines : int
        Lines whose unit, time, state and action are known.
    units : int
        Units with a kept line.
    transitions : int
    dropped : tuple of Dropped
    notes : tuple of str
        How the log was understood, such as what one step of time is.

    Examples
    --------
    >>> from brmdp.logs import Dropped, ReadingReport
    >>> last = Dropped("last line", 2, "2 lines are the last of their unit", line_kept=True)
    >>> print(ReadingReport(9, 9, 2, 7, (last,), ("One step of time is 1 month.",)))
    9 lines: 9 kept, of 2 units; 7 transitions.
    Begin no transition:
      2 lines are the last of their unit
    Notes:
      One step of time is 1 month.
    """

    lines: int
    kept_lines: int
    units: int
    transitions: int
    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [
            f"{counted(self.lines, 'line')}: {self.kept_lines} kept, of "
            f"{counted(self.units, 'unit')}; {counted(self.transitions, 'transition')}."
        ]
        for title, kept in (("Dropped:", False), ("Begin no transition:", True)):
            chosen = [one for one in self.dropped if one.line_kept == kept]
            if chosen:
                parts.append(title)
            for one in chosen[:LISTED]:
                parts.append(_indented(one.words, 2))
                # last lines are no fault of the log
                parts += [_indented(text, 6) for text in one.examples if one.reason != "last line"]
            parts += [f"  and {len(chosen) - LISTED} more reasons"] * (len(chosen) > LISTED)
        if self.notes:
            parts.append("Notes:")
            parts += [_indented(note, 2) for note in self.notes[:LISTED]]
        return "\n".join(parts)


def _indented(text: str, by: int) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=" " * by, subsequent_indent=" " * (by + 2))


@dataclass(frozen=True, eq=False, repr=False)
class Log:
    """A log of decisions: which state, which action, which next state, of which unit.

    Made by :func:`brmdp.logs.read_log`. Rows are sorted by unit and time.

    Attributes
    ----------
    source : str
        The file's name, or what kind of table it was.
    digest : str
        SHA-256 of the file, or of the content of the columns that were used.
    states : StateSpace
    actions : tuple of str
    unit_names : tuple of str
    group_names : tuple of str or None
        None if there are no groups.
    state, action, next_state, unit : (n,) integers
        One row per transition; units are numbered as in ``unit_names``.
    group : (n,) integers or None
    time : (n,) array or None
        Time of the state, in steps from the first line.
    amount : (n,) array or None
    previous : (n,) integers
        Row of the transition of the same unit that ends in the line with which this one begins;
        -1 if there is none.
    line_state, line_action, line_unit : (m,) integers
        One row per kept line, also of those that begin no transition.
    line_group : (m,) integers or None
    report : ReadingReport

    Examples
    --------
    >>> import pyarrow as pa
    >>> from brmdp.logs import read_log
    >>> table = pa.table({"wear": ["new", "old", "new"], "do": ["run", "renew", "run"]})
    >>> log = read_log(table, state="wear", action="do")
    >>> log
    Log(3 lines, 2 transitions, 2 states, 2 actions, 1 unit)
    >>> log.state, log.next_state
    (array([0, 1]), array([1, 0]))
    """

    source: str
    digest: str
    states: StateSpace
    actions: tuple[str, ...]
    unit_names: tuple[str, ...]
    group_names: tuple[str, ...] | None
    state: IntArray
    action: IntArray
    next_state: IntArray
    unit: IntArray
    group: IntArray | None
    time: FloatArray | None
    amount: FloatArray | None
    previous: IntArray
    line_state: IntArray
    line_action: IntArray
    line_unit: IntArray
    line_group: IntArray | None
    report: ReadingReport

    def __len__(self) -> int:
        return int(self.state.size)

    def __repr__(self) -> str:
        parts = [
            counted(int(self.line_state.size), "line"),
            counted(len(self), "transition"),
            counted(self.states.n_states, "state"),
            counted(len(self.actions), "action"),
            counted(len(self.unit_names), "unit"),
        ]
        if self.group_names is not None:
            parts.append(counted(len(self.group_names), "group"))
        return f"Log({', '.join(parts)})"

    def transitions(self, groups: bool = False) -> Transitions:
        """The transitions as a record from which priors are learned.

        Parameters
        ----------
        groups : bool
            Whether to label each transition with the name of its group.
        """
        labels = None
        if groups:
            names, codes = self._grouped()
            labels = np.array(names, dtype=np.str_)[codes]
        return Transitions(
            self.state,
            self.action,
            self.next_state,
            unit=self.unit,
            group=labels,
            n_states=self.states.n_states,
            n_actions=len(self.actions),
        )

    def only(self, group: str) -> Log:
        """The rows of one group; states, actions and report stay those of the whole log.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from brmdp.logs import read_log
        >>> table = pa.table({
        ...     "bus": [1, 1, 2, 2], "model": ["a", "a", "b", "b"], "month": [1, 2, 1, 2],
        ...     "wear": [0, 1, 0, 0], "do": ["run", "run", "run", "renew"],
        ... })
        >>> log = read_log(
        ...     table, state="wear", action="do", unit="bus", time="month", groups="model"
        ... )
        >>> log.only("b")
        Log(2 lines, 1 transition, 2 states, 2 actions, 1 unit, 1 group)
        """
        names, codes = self._grouped()
        if group not in names:
            few = ", ".join(shown(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
            raise InvalidInputError(f"group must be one of {few}; got {shown(group)}")
        own = names.index(group)
        rows = np.flatnonzero(codes == own)
        lines = np.flatnonzero(self.line_group == own)
        units = np.unique(self.line_unit[lines])
        place = np.full(len(self) + 1, -1, dtype=np.int64)
        place[rows] = np.arange(rows.size)
        return replace(
            self,
            unit_names=tuple(self.unit_names[k] for k in units.tolist()),
            group_names=(group,),
            state=self.state[rows],
            action=self.action[rows],
            next_state=self.next_state[rows],
            unit=np.searchsorted(units, self.unit[rows]).astype(np.int64),
            group=np.zeros(rows.size, dtype=np.int64),
            time=None if self.time is None else self.time[rows],
            amount=None if self.amount is None else self.amount[rows],
            previous=place[self.previous[rows]],
            line_state=self.line_state[lines],
            line_action=self.line_action[lines],
            line_unit=np.searchsorted(units, self.line_unit[lines]).astype(np.int64),
            line_group=np.zeros(lines.size, dtype=np.int64),
        )

    def to_frame(self) -> Any:
        """The transitions as a pandas data frame, with labels.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        pandas = optional("pandas", "test")
        labels = np.array(self.states.labels, dtype=object)
        columns: dict[str, Any] = {"unit": np.array(self.unit_names, dtype=object)[self.unit]}
        if self.group is not None:
            columns["group"] = np.array(self.group_names, dtype=object)[self.group]
        if self.time is not None:
            columns["time"] = self.time
        columns["state"] = labels[self.state]
        columns["action"] = np.array(self.actions, dtype=object)[self.action]
        columns["next_state"] = labels[self.next_state]
        if self.amount is not None:
            columns["amount"] = self.amount
        return pandas.DataFrame(columns)

    def _grouped(self) -> tuple[tuple[str, ...], IntArray]:
        if self.group_names is None or self.group is None:
            raise InvalidInputError(
                "groups must be named when the log is read: read_log(…, groups=…); this log has "
                "none"
            )
        return self.group_names, self.group
