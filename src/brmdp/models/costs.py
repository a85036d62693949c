"""What each action costs, or earns, in each state: from the model file to an array.

All amounts keep the sign of the model file, so costs are positive.
"""

from __future__ import annotations

import csv
import difflib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import numpy as np

from brmdp._validation import MAX_ENTRIES, BoolArray, FloatArray, IntArray
from brmdp.errors import InvalidInputError
from brmdp.logs.spaces import Bins, StateSpace
from brmdp.models.file import ActionAmount, AmountSection, Figure, ModelFile, Word
from brmdp.models.toml import listed, shown

__all__ = ["Alternative", "Costs", "resolve_costs"]

LARGEST = 2**25
"""Largest size of a table of amounts, in bytes."""

NEEDED = ("state", "action", "value")
OPTIONAL = ("next_state", "low", "high")
"""Columns of a table of amounts."""


@dataclass(frozen=True)
class Alternative:
    """One end of a figure given as low and high, all others being as stated.

    Attributes
    ----------
    words : str
        Such as "base of keep 1 instead of 2".
    amounts : (S, A) or (S, A, S) array
    """

    words: str
    amounts: FloatArray


@dataclass(frozen=True, eq=False)
class Costs:
    """Amounts of all pairs of state and action, in the sign of the model file.

    Attributes
    ----------
    word : "cost" or "reward"
    amounts : (S, A) or (S, A, S) array, or None
        None if they are learned from a column of the log.
    low, high : arrays like ``amounts``, or None
        The least, and the greatest, amounts within the ranges; None if no figure has two ends.
    words : tuple of str
        The amounts as sentences.
    column : str or None
        The column from which amounts are learned.
    bounds : (float, float) or None
        The lowest and highest amount that the column can hold.
    """

    word: Word
    amounts: FloatArray | None
    low: FloatArray | None = None
    high: FloatArray | None = None
    words: tuple[str, ...] = ()
    column: str | None = None
    bounds: tuple[float, float] | None = None
    _ends: tuple[_End, ...] = field(default=(), repr=False)

    @property
    def sign(self) -> int:
        """+1 for rewards and -1 for costs: amounts times sign are what is maximised."""
        return -1 if self.word == "cost" else 1

    @property
    def worst(self) -> FloatArray | None:
        """What costs most, or pays least, within the ranges; None if no figure has two ends.

        A policy's value is monotone in the amounts, so no other choice from the ranges is worse.
        """
        return self.high if self.sign < 0 else self.low

    def alternatives(self) -> Iterator[Alternative]:
        """The ends of each figure given as low and high, one after another."""
        if self.amounts is None:
            return
        for end in self._ends:
            if end.action is None:
                yield Alternative(end.words, end.amounts)
            else:
                amounts = self.amounts.copy()
                amounts[:, end.action] = end.amounts
                yield Alternative(end.words, amounts)


@dataclass(frozen=True, eq=False)
class _End:
    """One end of a figure: amounts of an action, or of all of them if ``action`` is None."""

    words: str
    amounts: FloatArray
    action: int | None = None


def resolve_costs(
    file: ModelFile,
    states: StateSpace,
    actions: Sequence[str],
    needed: BoolArray | None = None,
) -> Costs:
    """Work out what the model file says about costs or rewards.

    Parameters
    ----------
    file : ModelFile
    states : StateSpace
    actions : sequence of str
        Labels of the actions.
    needed : (S, A) booleans, optional
        Pairs that must have an amount; by default all.

    Returns
    -------
    Costs

    Raises
    ------
    InvalidInputError
        If an action is unknown, a pair has no amount, ``per`` is used where states have no
        numbers, or an amount is too large; the message names file, line and key.
    """
    section = file.amounts
    if section.column is not None:
        words = (
            f"The {section.word} is learned from the column {section.column}, whose values lie "
            f"between {section.low:.12g} and {section.high:.12g}."
        )
        return Costs(
            section.word,
            None,
            words=(words,),
            column=section.column,
            bounds=(section.low, section.high),
        )
    pairs = states.n_states * len(actions)
    if pairs > MAX_ENTRIES:
        raise file.error(
            (section.word,),
            f"needs at most {MAX_ENTRIES:,} pairs of state and action; got {pairs:,}",
        )
    if section.file is not None:
        if needed is None:
            needed = np.ones((states.n_states, len(actions)), dtype=bool)
        return _from_file(file, section.file, states, actions, needed)
    return _by_action(file, states, actions)


# --- base and per ---------------------------------------------------------------------------------


def _by_action(file: ModelFile, states: StateSpace, actions: Sequence[str]) -> Costs:
    section = file.amounts
    given = _known_actions(file, section, actions)
    columns = {name: np.empty((states.n_states, len(actions))) for name in ("value", "low", "high")}
    ends: list[_End] = []
    for a, action in enumerate(actions):
        amount = given[action]
        columns["value"][:, a] = _column(file, amount, states, "value", "value")
        for name, extreme in (("low", np.minimum), ("high", np.maximum)):
            # where the number of a state is negative, a higher slope is a lower amount
            sloped = [_column(file, amount, states, name, per) for per in ("low", "high")]
            columns[name][:, a] = extreme(*sloped)
        for key in ("base", "per"):
            figure: Figure = getattr(amount, key)
            if figure.low == figure.high:
                continue
            for end in ("low", "high"):
                base, per = (end, "value") if key == "base" else ("value", end)
                named = (
                    f"{key} of {action} {getattr(figure, end):.12g} instead of {figure.value:.12g}"
                )
                ends.append(_End(named, _column(file, amount, states, base, per), a))
    words = tuple(
        f"The {section.word} of {action} is {_formula(given[action], states)}."
        for action in actions
    )
    low, high = (columns["low"], columns["high"]) if ends else (None, None)
    return Costs(section.word, columns["value"], low, high, words, _ends=tuple(ends))


def _known_actions(
    file: ModelFile, section: AmountSection, actions: Sequence[str]
) -> dict[str, ActionAmount]:
    given: dict[str, ActionAmount] = {}
    for amount in section.actions:
        if amount.action not in actions:
            raise file.error((section.word, amount.action), f"is {unknown(amount.action, actions)}")
        given[amount.action] = amount
    missing = [action for action in actions if action not in given]
    if missing:
        raise file.error(
            (section.word,),
            f"must have a table for every action; missing: {listed(missing)}",
        )
    return given


def unknown(action: str, actions: Sequence[str]) -> str:
    """Words for an action that the log does not have, with the nearest that it has."""
    nearest = difflib.get_close_matches(action, actions, n=1)
    hint = f"; did you mean {shown(nearest[0])}?" if nearest else "."
    return f"no action of the log{hint} Its actions: {listed(actions)}"


def _column(
    file: ModelFile, amount: ActionAmount, states: StateSpace, base: str, per: str
) -> FloatArray:
    """Amounts of one action in all states, with base and per at the given ends."""
    start, slope = getattr(amount.base, base), getattr(amount.per, per)
    column = np.full(states.n_states, start)
    if amount.per != Figure.sure(0.0):
        numbers = _numbers(file, amount, states)
        with np.errstate(over="ignore", invalid="ignore"):
            column = start + slope * numbers
    if not np.isfinite(column).all():
        state = states.labels[int(np.argmin(np.isfinite(column)))]
        raise file.error(
            (file.amounts.word, amount.action),
            f"must be finite in every state; it is too large in {shown(state)}",
        )
    return column


def _numbers(file: ModelFile, amount: ActionAmount, states: StateSpace) -> FloatArray:
    key = (file.amounts.word, amount.action, "per")
    if states.numbers is None:
        raise file.error(key, "needs states with a number: bins, or labels that are numbers")
    without = np.isnan(states.numbers)
    if without.any():
        state = states.labels[int(np.argmax(without))]
        raise file.error(key, f"needs a number in every state; {shown(state)} has none")
    return states.numbers


def _formula(amount: ActionAmount, states: StateSpace) -> str:
    parts = []
    if amount.base != Figure.sure(0.0) or amount.per == Figure.sure(0.0):
        parts.append(_figure(amount.base))
    if amount.per != Figure.sure(0.0):
        axis = states.axes[0]
        if len(states.axes) > 1:
            number = "the number of the state"
        elif isinstance(axis, Bins):
            number = f"the lower edge of {axis.column}"
        else:
            number = axis.column
        parts.append(f"{_figure(amount.per)} × {number}")
    return " + ".join(parts)


def _figure(figure: Figure) -> str:
    if figure.low == figure.high:
        return f"{figure.value:.12g}"
    return f"{figure.value:.12g} (between {figure.low:.12g} and {figure.high:.12g})"


# --- a table of amounts ---------------------------------------------------------------------------


def _from_file(
    file: ModelFile,
    path: Path,
    states: StateSpace,
    actions: Sequence[str],
    needed: BoolArray,
) -> Costs:
    """Amounts from a CSV table; a line without next state is for those that have no own line."""
    word = file.amounts.word
    lines = _Lines.read(file, path, states, actions)
    by_next_state = bool((lines.next_state >= 0).any())
    size = len(states.labels) if by_next_state else 1
    entries = states.n_states * len(actions) * size
    if entries > MAX_ENTRIES:
        raise file.error(
            (word, "file"),
            f"needs at most {MAX_ENTRIES:,} triples of state, action and next state; got "
            f"{entries:,}",
        )
    amounts = lines.fill(lines.value, size, needed, states, actions)
    words = f"The {word} of every state and action stands in {path.name}."
    if np.array_equal(lines.low, lines.high):
        return Costs(word, amounts, words=(words,))
    low = lines.fill(lines.low, size, needed, states, actions)
    high = lines.fill(lines.high, size, needed, states, actions)
    ends = (
        _End(f"all amounts of {path.name} at their low ends", low),
        _End(f"all amounts of {path.name} at their high ends", high),
    )
    return Costs(word, amounts, low, high, (words,), _ends=ends)


@dataclass(frozen=True, eq=False)
class _Lines:
    """The lines of a table of amounts; the next state is -1 where none is given."""

    name: str
    state: IntArray
    action: IntArray
    next_state: IntArray
    value: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def read(
        cls, file: ModelFile, path: Path, states: StateSpace, actions: Sequence[str]
    ) -> _Lines:
        key = (file.amounts.word, "file")
        if path.stat().st_size > LARGEST:
            raise file.error(key, f"must name a file of at most {LARGEST:,} bytes")
        try:
            with path.open(encoding="utf-8-sig", newline="") as stream:
                log = file.log
                parsed = list(
                    _parsed(stream, path.name, log.delimiter_used, log.decimal, states, actions)
                )
        except UnicodeDecodeError:
            raise InvalidInputError(f"{path.name} is not text in UTF-8") from None
        except csv.Error as error:
            raise InvalidInputError(f"{path.name} is not a CSV table: {error}") from None
        except OSError as error:
            raise InvalidInputError(f"{path.name} cannot be read: {error.strerror}") from None
        places = np.array([triple for triple, _ in parsed], dtype=np.int64).reshape(-1, 3)
        amounts = np.array([numbers for _, numbers in parsed], dtype=np.float64).reshape(-1, 3)
        return cls(path.name, *places.T, *amounts.T)

    def fill(
        self,
        values: FloatArray,
        size: int,
        needed: BoolArray,
        states: StateSpace,
        actions: Sequence[str],
    ) -> FloatArray:
        """Amounts (S, A) if ``size`` is 1, else (S, A, S); 0 where none is needed."""
        result = np.full((*needed.shape, size), np.nan)
        general = self.next_state < 0
        pairs = self.state[general], self.action[general]
        result[pairs] = values[general, None]
        result[self.state[~general], self.action[~general], self.next_state[~general]] = values[
            ~general
        ]
        missing = np.isnan(result) & needed[:, :, None]
        if missing.any():
            places = np.argwhere(missing)
            first = [
                f"({shown(states.labels[s])}, {shown(actions[a])}"
                + (f", {shown(states.labels[t])})" if size > 1 else ")")
                for s, a, t in places[:3]
            ]
            more = f" and {len(places) - 3:,} more" if len(places) > 3 else ""
            what = "(state, action, next state)" if size > 1 else "(state, action)"
            raise InvalidInputError(
                f"{self.name} must have a value for every {what}; missing: {', '.join(first)}{more}"
            )
        np.nan_to_num(result, copy=False, nan=0.0)
        return result if size > 1 else result[:, :, 0]


def _parsed(
    stream: TextIO,
    name: str,
    delimiter: str,
    decimal: str,
    states: StateSpace,
    actions: Sequence[str],
) -> Iterator[tuple[tuple[int, int, int], tuple[float, float, float]]]:
    """State, action and next state, and value, low and high, of every line."""
    rows = csv.reader(stream, delimiter=delimiter, strict=True)
    header = [column.strip().lower().replace(" ", "_") for column in next(rows, [])]
    for column in NEEDED:
        if column not in header:
            raise InvalidInputError(
                f"{name} must have the columns {', '.join(NEEDED)}, and may have "
                f"{', '.join(OPTIONAL)}; got {listed(header)}"
            )
    for column, following in itertools.pairwise(sorted(header)):
        if column == following:
            raise InvalidInputError(f"{name} must not have two columns {shown(column)}")
    for column in header:
        if column not in NEEDED + OPTIONAL:
            raise InvalidInputError(
                f"{name}: the column {shown(column)} is unknown; known: "
                f"{', '.join(NEEDED + OPTIONAL)}"
            )
    index = {action: a for a, action in enumerate(actions)}
    known_states: dict[str, int] = {}
    seen: dict[tuple[int, int, int], int] = {}

    def state_of(column: str) -> int:
        text = cells[column]
        if text not in known_states:
            try:
                known_states[text] = state_named(text, states)
            except InvalidInputError as error:
                raise InvalidInputError(f"{name}, line {line}: {column}: {error}") from None
        return known_states[text]

    for row in rows:
        line = rows.line_num
        if not any(map(str.strip, row)):
            continue
        if len(row) != len(header):
            raise InvalidInputError(
                f"{name}, line {line}: must have {len(header)} entries; got {len(row)}"
            )
        cells = dict(zip(header, map(str.strip, row), strict=True))
        action = cells["action"]
        if action not in index:
            raise InvalidInputError(
                f"{name}, line {line}: action {shown(action)} is {unknown(action, actions)}"
            )
        state = state_of("state")
        next_state = state_of("next_state") if cells.get("next_state") else -1
        triple = (state, index[action], next_state)
        if triple in seen:
            raise InvalidInputError(
                f"{name}, line {line}: line {seen[triple]} is about the same state, action and "
                "next state"
            )
        seen[triple] = line
        numbers = [
            _number(cells[column], decimal, f"{name}, line {line}: {column}")
            if cells.get(column, "")
            else None
            for column in ("value", "low", "high")
        ]
        yield triple, _ordered(numbers, f"{name}, line {line}")


def _ordered(numbers: list[float | None], where: str) -> tuple[float, float, float]:
    value, low, high = numbers
    if (low is None) != (high is None) or (value is None and low is None):
        raise InvalidInputError(f"{where}: must have a value, or low and high, or all three")
    if low is None or high is None:
        assert value is not None
        return value, value, value
    middle = low / 2.0 + high / 2.0 if value is None else value
    if not low <= middle <= high:
        raise InvalidInputError(
            f"{where}: must have low ≤ value ≤ high; got {low:g}, {middle:g} and {high:g}"
        )
    return middle, low, high


def _number(text: str, decimal: str, where: str) -> float:
    number = as_number_text(text, decimal)
    if number is None:
        raise InvalidInputError(f"{where} must be a finite number; got {shown(text)}")
    return number


def as_number_text(text: str, decimal: str = ".") -> float | None:
    """The finite number that a text states; None for anything else."""
    if "_" in text or (decimal == "," and "." in text):
        return None
    try:
        number = float(text.replace(decimal, "."))
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def state_named(text: str, states: StateSpace) -> int:
    """The state with this label, or that this reading falls into."""
    number = None if text in states.labels else as_number_text(text)
    return states.index(text if number is None else number)
