"""What the columns of a log look like, and which part each of them seems to play.

Guesses are made in the open: each has a reason in words and names the columns that it passed over.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.errors import InvalidInputError
from brmdp.logs.columns import Column
from brmdp.logs.reading import MISSING
from brmdp.logs.sources import TEXT, table_of
from brmdp.logs.spaces import in_order
from brmdp.logs.times import Clock, clock_of, moments_of
from brmdp.models.headers import column_names
from brmdp.models.toml import shown

__all__ = ["Facts", "Guess", "Roles", "Survey", "guess_roles", "survey"]

MOST_COLUMNS = 200
"""Columns beyond these are not looked at."""

LOOKED_AT = 200_000
"""Lines on which combinations of columns are tried."""

FIRST_LINES = 100
"""Lines by which the delimiter is found."""

OTHER_ENCODING = "cp1252"
"""Taken for text that is not in UTF-8."""

SAMPLE = 1_000
"""Distinct values by which it is decided whether a column holds dates."""

NEARLY_ALL, MOSTLY = 0.99, 0.9

MOST_KINDS = 50
"""A column with more labels is no column of actions or groups, unless its name says so."""

HINTS = {
    "time": "time date day month week year hour minute second quarter step period t timestamp when "
    "visit datum zeit zeitpunkt tag monat woche jahr stunde temps jour mois semaine fecha dia mes "
    "semana",
    "unit": "id unit bus patient machine customer vehicle shop store user subject device site "
    "asset engine truck car client person episode case sensor pump item serial name "
    "anlage maschine fahrzeug kunde gerät filiale véhicule magasin máquina cliente tienda",
    "action": "action decision choice treatment did act dose intervention maintenance order move "
    "control aktion entscheidung maßnahme massnahme behandlung bestellung décision traitement "
    "acción decisión tratamiento",
    "cost": "cost price paid expense expenses spent charge fee loss kosten preis ausgaben coût "
    "costo coste",
    "reward": "reward profit revenue sales income margin gain return earned payoff "
    "gewinn ertrag erlös umsatz recette beneficio",
    "state": "state condition status level stock inventory mile miles mileage km odometer reading "
    "wear age score grade health stage severity temperature queue load position hours "
    "zustand bestand lager kilometer stufe état niveau estado nivel",
    "next": "next after following successor then later",
    "stock": "stock inventory shelf bestand lager lagerbestand",
    "order": "order ordered bestellung bestellt replenishment",
}
"""Words in the name of a column that speak for a part, in English, German, French and Spanish."""


@dataclass(frozen=True, eq=False)
class Facts:
    """A column, and what its values are.

    Attributes
    ----------
    column : Column
    counts : (values,) integers
        Lines per distinct value.
    numbers : (values,) array
        The number that each value is, else NaN.
    dates : bool
        Whether nearly all values are dates.
    """

    column: Column
    counts: IntArray
    numbers: FloatArray
    dates: bool

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.column.name

    @property
    def present(self) -> int:
        """Lines that have a value."""
        return int(self.counts.sum())

    @property
    def distinct(self) -> int:
        """Number of distinct values."""
        return self.counts.size

    @cached_property
    def numeric(self) -> float:
        """Share of the present values that are finite numbers."""
        return float(self.counts[np.isfinite(self.numbers)].sum() / max(self.present, 1))

    @cached_property
    def labels(self) -> list[str]:
        """All labels, in order; only for columns with few of them."""
        return in_order(self.column.labels().names)

    @cached_property
    def whole(self) -> bool:
        """Whether all numbers are whole."""
        finite = self.numbers[np.isfinite(self.numbers)]
        return bool((finite == np.floor(finite)).all())

    def quantile(self, level: float) -> float:
        """A quantile of the finite numbers; 0 and 1 are the smallest and the largest."""
        finite = np.flatnonzero(np.isfinite(self.numbers))
        order = finite[np.argsort(self.numbers[finite])]
        below = np.cumsum(self.counts[order])
        place = int(np.searchsorted(below, level * below[-1]))
        return float(self.numbers[order[min(place, order.size - 1)]])

    def hinted(self, part: str) -> bool:
        """Whether the name of the column speaks for a part."""
        return bool(words_of(self.name) & set(HINTS[part].split()))

    def in_words(self) -> str:
        """A short description."""
        if self.dates:
            return "dates"
        if self.numeric >= MOSTLY:
            kind = "whole numbers" if self.whole else "numbers"
            return (
                f"{kind} from {self.quantile(0.0):.12g} to {self.quantile(1.0):.12g}, "
                f"{self.distinct:,} different"
            )
        return f"text, {self.distinct:,} different" if self.distinct else "no values"


def words_of(name: str) -> set[str]:
    """The words of a column's name, in lower case, without the s of a plural."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name[:200])
    words = re.findall(r"[^\W\d_]+", split.lower())
    return {*words, *(word.removesuffix("s") for word in words)}


@dataclass(frozen=True, eq=False)
class Survey:
    """A log as it was found.

    Attributes
    ----------
    path : Path
    delimiter : str or None
        None for a file that is no text.
    decimal, encoding : str
    n_lines : int
    facts : tuple of Facts
    notes : tuple of str
    """

    path: Path
    delimiter: str | None
    decimal: str
    encoding: str
    n_lines: int
    facts: tuple[Facts, ...]
    notes: tuple[str, ...]


def survey(path: Path) -> Survey:
    """Look at all columns of a log."""
    delimiter, encoding, names = _names(path)
    notes = []
    usable = [name for name in dict.fromkeys(names) if name and names.count(name) == 1]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        notes.append(f"These names stand above several columns: {', '.join(map(shown, twice))}.")
    if len(usable) > MOST_COLUMNS:
        notes.append(f"Only the first {MOST_COLUMNS} of {len(usable):,} columns were looked at.")
        usable = usable[:MOST_COLUMNS]
    if not usable:
        raise InvalidInputError(f"{path.name} must have columns with different names")

    def read(encoding: str) -> tuple[int, dict[str, Column]]:
        # the decimal mark matters only when numbers are made of text
        mark = "." if delimiter == "," else ","
        table = table_of(
            path,
            usable,
            delimiter=delimiter,
            decimal=mark,
            encoding=encoding,
            missing=frozenset(MISSING),
        )
        return table.n_lines, table.columns

    try:
        n_lines, columns = read(encoding)
    except InvalidInputError:
        if delimiter is None or encoding != "utf-8":
            raise
        encoding = OTHER_ENCODING
        n_lines, columns = read(encoding)
    commas = [] if delimiter in (None, ",") else _decimal_commas(columns)
    decimal = "," if commas else "."
    doubtful = [name for name in commas if _could_be_thousands(columns[name])]
    if doubtful:
        notes.append(
            f"In {', '.join(map(shown, doubtful))}, 1,234 is read as 1.234. If it means 1234, "
            "remove these commas from the log."
        )
    facts = tuple(_facts(column, decimal) for column in columns.values())
    return Survey(path, delimiter, decimal, encoding, n_lines, facts, tuple(notes))


def _names(path: Path) -> tuple[str | None, str, list[str]]:
    """The delimiter, the encoding and the names of the columns."""
    if not path.name.lower().endswith(TEXT):
        return None, "utf-8", column_names(path, ",", "utf-8")
    delimiter = _delimiter(path)
    try:
        return delimiter, "utf-8", column_names(path, delimiter, "utf-8")
    except InvalidInputError:
        return delimiter, OTHER_ENCODING, column_names(path, delimiter, OTHER_ENCODING)


def _delimiter(path: Path) -> str:
    """The delimiter that divides the first lines into equally many fields, the more the better."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rb") as stream:
            start = stream.read(2**16)
    except (OSError, EOFError):
        start = b""  # reading the names will say what is wrong
    whole = start.rpartition(b"\n")[0] or start
    text = whole.decode("latin-1").replace("\0", " ")

    def rank(delimiter: str) -> tuple[float, int]:
        try:
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
            sizes = [len(row) for row in itertools.islice(reader, FIRST_LINES) if row]
        except csv.Error:
            return 0.0, 0
        if not sizes or sizes[0] < 2:
            return 0.0, 0
        return sizes.count(sizes[0]) / len(sizes), sizes[0]

    return max((",", ";", "\t", "|"), key=rank)


def _decimal_commas(columns: dict[str, Column]) -> list[str]:
    """Columns that hold numbers only if a comma is their decimal mark."""
    found = []
    for name, column in columns.items():
        if column.is_text and len(column.values):
            with_commas = np.isfinite(column.numbers(","))
            plain = np.isfinite(column.numbers("."))
            if with_commas.mean() >= MOSTLY and with_commas.sum() > plain.sum():
                found.append(name)
    return found


def _could_be_thousands(column: Column) -> bool:
    """Whether every comma of a column stands before three digits, like that of 1,234."""
    texts = [str(text) for text in column.values if "," in str(text)]
    return all(re.fullmatch(r"[-+]?[1-9]\d{0,2}(,\d{3})+", text.strip()) for text in texts)


def _facts(column: Column, decimal: str) -> Facts:
    present = column.codes[column.codes >= 0]
    counts = np.bincount(present, minlength=len(column.values)).astype(np.int64)
    few = Column(column.name, column.values[:SAMPLE], np.arange(min(counts.size, SAMPLE)))
    moments = moments_of(few, decimal)
    dates = bool(moments.dates and moments.valid.size and moments.valid.mean() >= MOSTLY)
    return Facts(column, counts, column.numbers(decimal), dates)


# --- guesses --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Guess:
    """Columns that seem to play a part.

    Attributes
    ----------
    columns : tuple of str
        Empty if none seems to.
    reason : str
    others : tuple of str
        Columns that could be meant instead.
    """

    columns: tuple[str, ...]
    reason: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Roles:
    """The part of each column, as far as it could be guessed.

    ``word`` says whether the column of amounts holds costs or rewards; ``clock`` is what one step
    of time seems to be; ``stock`` whether state and action look like a stock and what is ordered
    for it.
    """

    unit: Guess
    time: Guess
    groups: Guess
    state: Guess
    next_state: Guess
    action: Guess
    amount: Guess
    word: str
    clock: Clock | None
    stock: Stock | None


@dataclass(frozen=True)
class Stock:
    """What speaks for a stock.

    Attributes
    ----------
    capacity : int
        The largest stock and order together.
    share : float
        Steps after which the stock was at most stock and order together.
    """

    capacity: int
    share: float


def guess_roles(found: Survey) -> Roles:
    """Guess which column plays which part."""
    free = {facts.name: facts for facts in found.facts if facts.distinct}

    def take(guess: Guess) -> Guess:
        for column in guess.columns:
            free.pop(column, None)
        return guess

    next_state = take(_next_state(free))
    time = take(_time(free))
    action = take(_action(free))
    word = "reward" if any(facts.hinted("reward") for facts in free.values()) else "cost"
    amount = take(_amount(free))
    unit = take(_unit(found, free, time))
    if unit.columns and not time.columns:
        time = take(_counter(found, free, unit, time))
    constant = _constant(found, free, unit)
    groups = _groups(free, constant, unit, found)
    for name in constant:
        free.pop(name, None)
    state = take(_state(free, next_state))
    clock = _clock(found, unit, time)
    stock = _stock(found, unit, time, state, action)
    return Roles(unit, time, groups, state, next_state, action, amount, word, clock, stock)


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names))


def _next_state(free: dict[str, Facts]) -> Guess:
    """A column called next_… beside one without next."""
    for name in free:
        words = words_of(name)
        rest = words - set(HINTS["next"].split())
        beside = [other for other in free if other != name and words_of(other) == rest]
        if rest != words and rest and beside:
            return Guess((name,), f"its name, beside {_listed(beside)}")
    return Guess((), "no column seems to hold the next state")


def _time(free: dict[str, Facts]) -> Guess:
    dates = [name for name, facts in free.items() if facts.dates]
    named = [
        name
        for name, facts in free.items()
        if facts.hinted("time") and facts.distinct > 1 and facts.numeric >= MOSTLY
    ]
    both = [name for name in dates if free[name].hinted("time")]
    candidates = list(dict.fromkeys([*both, *dates, *named]))
    if not candidates:
        unread = [name for name, facts in free.items() if facts.hinted("time")]
        why = (
            f"; {_listed(unread)} could be meant, but holds neither numbers nor dates written as "
            "2019-03-01"
            if unread
            else ""
        )
        return Guess((), f"no column looks like a time{why}")
    best = candidates[0]
    reason = "its values are dates" if best in dates else "its name, and it holds numbers"
    return Guess((best,), reason, tuple(candidates[1:]))


def _counter(found: Survey, free: dict[str, Facts], unit: Guess, time: Guess) -> Guess:
    """A column that counts the lines of each unit, where nothing else looks like a time."""
    codes = _unit_codes(found, unit)
    order = np.argsort(codes, kind="stable")
    together = np.diff(codes[order]) == 0
    counters = []
    for name, facts in free.items():
        if facts.numeric == 1.0 and facts.whole and facts.present == found.n_lines:
            steps = np.diff(facts.numbers[facts.column.codes[order]])[together]
            if steps.size and (steps >= 0.0).all() and (steps == 1.0).mean() >= MOSTLY:
                counters.append(name)
    if not counters:
        return time
    return Guess((counters[0],), "it counts the lines of each unit", tuple(counters[1:]))


def _action(free: dict[str, Facts]) -> Guess:
    named = [name for name, facts in free.items() if facts.hinted("action")]
    few = [
        name
        for name, facts in free.items()
        if 2 <= facts.distinct <= 20
        and facts.numeric < MOSTLY
        and not facts.hinted("unit")
        and not facts.hinted("state")
        and facts.present > 3 * facts.distinct
    ]
    named.sort(key=lambda name: free[name].distinct > MOST_KINDS)
    candidates = list(dict.fromkeys([*named, *reversed(few)]))
    if not candidates:
        return Guess((), "no column looks like a decision", tuple(free))
    best = candidates[0]
    reason = "its name" if best in named else f"it is text with {free[best].distinct} labels"
    return Guess((best,), reason, tuple(candidates[1:]))


def _amount(free: dict[str, Facts]) -> Guess:
    named = [
        name
        for name, facts in free.items()
        if (facts.hinted("cost") or facts.hinted("reward")) and facts.numeric >= MOSTLY
    ]
    if not named:
        return Guess((), "no column looks like a cost or reward")
    return Guess((named[0],), "its name, and it holds numbers", tuple(named[1:]))


def _unit(found: Survey, free: dict[str, Facts], time: Guess) -> Guess:
    """Columns that name every line once, together with time."""
    named = [name for name, facts in free.items() if facts.hinted("unit")]
    others = [
        name
        for name, facts in free.items()
        if name not in named
        and facts.distinct * 3 <= facts.present
        and (facts.whole or facts.numeric < MOSTLY)
        and not facts.dates
        and not facts.hinted("state")
    ]
    candidates = [*named, *others]
    if not time.columns:
        if named:
            return Guess((named[0],), "its name", (*named[1:], *others))
        return Guess((), "no column looks like a unit", tuple(others))
    clock = next(facts for facts in found.facts if facts.name == time.columns[0])
    if _share_alone(found, [clock]) >= NEARLY_ALL and (not named or len(free) == 1):
        return Guess((), f"no time in {shown(clock.name)} comes twice: one unit", tuple(candidates))
    alone = {name: _share_alone(found, [clock, free[name]]) for name in candidates[:8]}
    enough = [name for name, share in alone.items() if share >= NEARLY_ALL]
    best = sorted(enough, key=lambda name: (name not in named, free[name].distinct))
    if best:
        why = f"with {shown(clock.name)} it names {_percent(alone[best[0]])} of the lines"
        return Guess((best[0],), why, tuple(one for one in candidates if one != best[0]))
    for k, first in enumerate(candidates[:5]):
        for second in candidates[k + 1 : 6]:
            share = _share_alone(found, [clock, free[first], free[second]])
            if share >= NEARLY_ALL:
                pair = sorted((first, second), key=lambda name: free[name].distinct)
                why = f"with {shown(clock.name)} they name {_percent(share)} of the lines"
                rest = tuple(one for one in candidates if one not in pair)
                return Guess(tuple(pair), why, rest)
    if named:
        best_named = max(named[:8], key=lambda name: alone.get(name, 0.0))
        why = f"its name; with {shown(clock.name)} some lines come twice"
        return Guess((best_named,), why, tuple(one for one in candidates if one != best_named))
    return Guess((), "no column looks like a unit", tuple(others))


def _share_alone(found: Survey, facts: Sequence[Facts]) -> float:
    """The share of lines that no other line equals in these columns."""
    n = min(found.n_lines, LOOKED_AT)
    key = np.zeros(n, dtype=np.int64)
    for one in facts:
        codes = one.column.codes[:n].astype(np.int64) + 1
        key = np.unique(key, return_inverse=True)[1].reshape(-1) * (codes.max() + 1) + codes
    return np.unique(key).size / max(n, 1)


def _constant(found: Survey, free: dict[str, Facts], unit: Guess) -> list[str]:
    """Columns that are the same on all lines of each unit."""
    if not unit.columns:
        return []
    codes = _unit_codes(found, unit)
    n_units = int(codes.max()) + 1
    if n_units < 2 or n_units == codes.size:
        return []
    constant = []
    for name, facts in free.items():
        own = facts.column.codes
        last = np.full(n_units, -1, dtype=np.int64)
        last[codes] = own
        if (last[codes] == own).all():
            constant.append(name)
    return constant


def _unit_codes(found: Survey, unit: Guess) -> IntArray:
    by_name = {facts.name: facts for facts in found.facts}
    codes = np.zeros(by_name[unit.columns[0]].column.codes.size, dtype=np.int64)
    for name in unit.columns:
        own = by_name[name].column.codes.astype(np.int64) + 1
        codes = np.unique(codes * (own.max() + 1) + own, return_inverse=True)[1].reshape(-1)
    return codes


def _groups(free: dict[str, Facts], constant: Sequence[str], unit: Guess, found: Survey) -> Guess:
    """Columns that are constant within units and have several units for each value."""
    every = {facts.name: facts for facts in found.facts}
    parts = [name for name in unit.columns if len(unit.columns) > 1]
    n_units = int(_unit_codes(found, unit).max()) + 1 if unit.columns else 0
    suitable = [
        name
        for name in [*parts[:-1], *constant]
        if 2 <= every[name].distinct <= min(MOST_KINDS, n_units // 2)
    ]
    if not suitable:
        return Guess((), "no column with few values is the same on all lines of each unit")
    best = suitable[0]
    why = f"it is the same on all lines of each unit and has {every[best].distinct} values"
    return Guess((best,), why, tuple(suitable[1:]))


def _state(free: dict[str, Facts], next_state: Guess) -> Guess:
    def rank(name: str) -> tuple[bool, bool, bool]:
        facts = free[name]
        paired = any(words_of(name) < words_of(other) for other in next_state.columns)
        return (not paired, not facts.hinted("state"), facts.numeric < MOSTLY)

    candidates = sorted(
        (
            name
            for name, facts in free.items()
            if facts.distinct > 1 and (facts.numeric >= MOSTLY or facts.distinct <= 1_000)
        ),
        key=rank,
    )
    if not candidates:
        return Guess((), "no column is left for it", tuple(free))
    best = candidates[0]
    reason = "its name" if free[best].hinted("state") else "it is left over"
    return Guess((best,), reason, tuple(candidates[1:]))


def _stock(found: Survey, unit: Guess, time: Guess, state: Guess, action: Guess) -> Stock | None:
    """Whether names and numbers say that the state is a stock and the action an order for it."""
    every = {facts.name: facts for facts in found.facts}
    columns = [*state.columns[:1], *action.columns[:1], *time.columns[:1]]
    if len(columns) < 3:
        return None
    stock, order, when = (every[name] for name in columns)
    named = stock.hinted("stock") and order.hinted("order")
    amounts = all(
        facts.numeric >= MOSTLY and facts.whole and facts.quantile(0.0) >= 0.0
        for facts in (stock, order)
    )
    if not named or not amounts:
        return None
    # times in the order of their values; text such as dates sorts as it is written
    rank = np.argsort(np.argsort(when.numbers if when.numeric >= MOSTLY else when.column.values))
    units = _unit_codes(found, unit) if unit.columns else np.zeros(found.n_lines, dtype=np.int64)
    codes = [facts.column.codes for facts in (stock, order, when)]
    kept = np.flatnonzero(np.logical_and.reduce([one >= 0 for one in codes]))
    lines = kept[np.lexsort((rank[codes[2][kept]], units[kept]))]
    before, after = lines[:-1], lines[1:]
    same = units[before] == units[after]
    level = stock.numbers[codes[0]]
    together = level + order.numbers[codes[1]]
    with np.errstate(invalid="ignore"):
        below = (level[after] <= together[before])[same]
    if not below.size or below.mean() < MOSTLY:
        return None
    return Stock(int(np.nanmax(together[lines])), float(below.mean()))


def _clock(found: Survey, unit: Guess, time: Guess) -> Clock | None:
    """What one step of time seems to be, on the first lines."""
    if not time.columns:
        return None
    column = next(facts.column for facts in found.facts if facts.name == time.columns[0])
    n = min(column.codes.size, LOOKED_AT)
    units = _unit_codes(found, unit)[:n] if unit.columns else np.zeros(n, dtype=np.int64)
    try:
        moments = moments_of(column, found.decimal)
        codes = column.codes[:n]
        kept = np.flatnonzero((codes >= 0) & np.append(moments.valid, False)[codes])
        order = kept[np.lexsort((moments.instant[codes[kept]], units[kept]))]
        together = units[order[1:]] == units[order[:-1]]
        later, earlier = codes[order[1:]][together], codes[order[:-1]][together]
        return clock_of(column, moments, None, earlier, later)
    except InvalidInputError:  # `brmdp check` will say what is wrong with the times
        return None
