r"""The model file: what the columns of a log mean, and what is to be decided.

A TOML file, checked key by key; nothing in it is run as code. ``brmdp init LOG.csv`` writes one to
edit. All keys:

=======================  ===========================================================================
at the top
=======================  ===========================================================================
``discount``             Worth of an amount one time step later, strictly between 0 and 1.
``confidence``           Of the guarantee; by default 0.9.
``start``                The state to judge from: a label or a reading, or a list of them if the
                         state has several columns. By default the log's distribution of states.
``level``                Plan at this quantile of the belief. By default the policy with the best
                         guarantee is chosen among plans at many levels.
``seed``                 Of all random draws; by default 0.
``title``                By default the name of the log.
``[log]``
``file``                 CSV (also ``.csv.gz``, ``.tsv``) or Parquet, relative to the model file.
``unit``                 Column, or list of columns, that say which bus, patient, … a line is about.
``time``                 Column of numbers or dates by which the lines of a unit are sorted.
``groups``               Column, or list: units of one group share their dynamics.
``step``                 Length of a time step: a number, or "day", "2 weeks", …
``next_state``           Column, or list, of the next state. By default it stands on the unit's next
                         line.
``delimiter``            Between columns of a text file; by default a tab in .tsv, else a comma.
``decimal``              "." (default) or ",".
``encoding``             Of a text file; by default "utf-8".
``missing``              List of texts that mean "no value", instead of the usual ones.
``[state]``              Or ``[[state]]`` several times: the state is then a tuple.
``column``
``bins``                 ``{ start = 0, width = 5000, count = 90 }`` or ``{ edges = [0, 1, 10] }``;
                         a bin includes its lower edge.
``outside``              "drop" (default) or "clip": readings outside the bins.
``labels``               Without bins: all possible labels. By default those in the log.
``[action]``
``column``
``labels``               All possible labels. By default those in the log.
``admissible``           "all" (default), or "observed": what was never done in a state is not
                         possible there.
``[dynamics]``           Optional.
``prior``                "learned" (default), "uniform" or "observed" (the successors seen).
``strength``             Of the prior "uniform" or "observed": its weight in observations.
``shape``                Of the prior "learned": "auto" (default), "uniform", "increments",
                         "destinations", "staying" or "actions".
``reach``                Largest change of an ordered state in one step, in bins or labels.
``possible``             "all" or "observed": which successors a state can have, under any action.
                         By default all, unless they are too many.
``pooling``              Of groups: "partial", "pooled", "separate", or "auto" (default): partial,
                         or separate where that predicts the log clearly better.
``reset``                ``{ replace = 0 }``: this action surely leads to that state.
``ends``                 List of states where everything ends; nothing is paid from there on.
``kind``                 "free" (default), or "stock": the state is a stock, a whole number, and the
                         action an order, which comes before the demand. The next stock is
                         max(stock + order − demand, 0); only the law of the demand is unknown, and
                         where the shelf was empty, demand was at least what was there. Such a
                         section has these keys only:
``capacity``             Largest stock; by default the largest stock and order together in the log.
                         Orders that would exceed it are not admissible.
``largest_demand``       Largest demand of a step; by default the capacity. With ``lost``, it must
                         be given.
``strength``             Weight of the uniform prior over demands, in steps; by default 1.
``pooling``              Of groups: "separate" (default), or "pooled": all have the same demand.
``[cost.ACTION]``        One table per action; or ``[reward.ACTION]`` instead.
``base``, ``per``        base + per × (lower edge of the state's bin, or the number in its label).
                         Instead of a number: ``{ low = 1, high = 3 }``, also with ``value``.
``[cost]``               Or ``[reward]``, instead of one table per action:
``file``                 CSV table with the columns state, action, next_state and value.
``column``               Column of the log. What was paid is then learned, between
``low``, ``high``        the lowest and the highest amount possible.
``sold``, ``ordered``,   For a stock, these instead: per unit sold, ordered, left over, and of
``held``, ``lost``,      demand that is lost; ``order`` is per order. Each a number, or
``order``                ``{ low = 1, high = 3 }``.
=======================  ===========================================================================
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, cast

from brmdp._files import digest
from brmdp.decisions.families import SHAPES
from brmdp.decisions.learned_prior import POOLINGS
from brmdp.errors import InvalidInputError
from brmdp.logs.reading import MISSING
from brmdp.logs.spaces import Bins, Categories, as_label_tuple
from brmdp.logs.times import WORDS, number_of_steps
from brmdp.models.toml import Table, as_finite, parse_toml, read_text, shown, toml_key

__all__ = [
    "ActionAmount",
    "AmountSection",
    "DynamicsSection",
    "Figure",
    "LogSection",
    "ModelFile",
    "Reading",
    "read_model_file",
]

MAX_BINS = 100_000
"""Most bins of a column; more can only be a slip."""

MAX_COLUMNS = 10
"""Most columns of a state."""

MAX_SEED = 2**63 - 1

TABLE_FILES = (".csv", ".gz", ".tsv", ".txt", ".parquet")

Reading: TypeAlias = str | float | tuple[str | float, ...]
"""A state as a label or a reading, or several of these if the state has several columns."""

Word: TypeAlias = Literal["cost", "reward"]

TOP = ("title", "discount", "confidence", "start", "level", "seed")

KEYS = {
    "": (*TOP, "log", "state", "action", "dynamics", "cost", "reward"),
    "log": (
        *("file", "unit", "time", "groups", "step", "next_state"),
        *("delimiter", "decimal", "encoding", "missing"),
    ),
    "state": ("column", "bins", "outside", "labels"),
    "action": ("column", "labels", "admissible"),
    "dynamics": (
        *("kind", "prior", "strength", "shape", "reach", "possible", "pooling", "reset", "ends"),
        *("capacity", "largest_demand"),
    ),
}
"""The keys of each section."""

STOCK_KEYS = ("kind", "capacity", "largest_demand", "strength", "pooling")
FREE_KEYS = tuple(key for key in KEYS["dynamics"] if key not in ("capacity", "largest_demand"))
"""The keys of ``[dynamics]`` for each kind."""

PRICES = ("sold", "ordered", "order", "held", "lost")
"""What a step with a stock costs or earns."""

LARGEST_STOCK = 2_000
"""Largest capacity and demand of a stock."""


@dataclass(frozen=True)
class LogSection:
    """The section ``[log]``; ``file`` is the full path."""

    file: Path
    unit: tuple[str, ...] = ()
    time: str | None = None
    groups: tuple[str, ...] = ()
    step: float | str | None = None
    next_state: tuple[str, ...] = ()
    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = MISSING

    @property
    def delimiter_used(self) -> str:
        """The delimiter, or what it is by default."""
        return self.delimiter or ("\t" if ".tsv" in self.file.name.lower() else ",")


@dataclass(frozen=True)
class ActionSection:
    """The section ``[action]``."""

    column: str
    labels: tuple[str, ...] | None = None
    admissible: Literal["all", "observed"] = "all"


@dataclass(frozen=True)
class DynamicsSection:
    """The section ``[dynamics]``; capacity and largest demand are those of a stock."""

    kind: Literal["free", "stock"] = "free"
    prior: Literal["learned", "uniform", "observed"] = "learned"
    strength: float | None = None
    shape: Literal["auto", "uniform", "increments", "destinations", "staying", "actions"] = "auto"
    reach: int | None = None
    possible: Literal["all", "observed"] | None = None
    pooling: Literal["auto", "pooled", "partial", "separate"] = "auto"
    reset: tuple[tuple[str, Reading], ...] = ()
    ends: tuple[Reading, ...] = ()
    capacity: int | None = None
    largest_demand: int | None = None


@dataclass(frozen=True)
class Figure:
    """A number with bounds; without doubt all three are equal."""

    value: float
    low: float
    high: float

    @classmethod
    def sure(cls, value: float) -> Figure:
        """A number without doubt."""
        return cls(value, value, value)


@dataclass(frozen=True)
class ActionAmount:
    """What an action costs or earns in a state: base + per × the number of the state."""

    action: str
    base: Figure
    per: Figure


NOTHING = Figure.sure(0.0)


@dataclass(frozen=True)
class Prices:
    """What a step with a stock costs or earns; costs are positive.

    Attributes
    ----------
    word : "cost" or "reward"
    sold, ordered : Figure
        Per unit sold or ordered.
    order : Figure
        Per order, whatever its size.
    held : Figure
        Per unit left over.
    lost : Figure
        Per unit of demand that could not be met.
    """

    word: Word
    sold: Figure = NOTHING
    ordered: Figure = NOTHING
    order: Figure = NOTHING
    held: Figure = NOTHING
    lost: Figure = NOTHING

    def figure(self, name: str) -> Figure:
        """The price of this name."""
        found: Figure = getattr(self, name)
        return found

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the prices that are not zero."""
        return tuple(name for name in PRICES if self.figure(name) != NOTHING)


@dataclass(frozen=True)
class AmountSection:
    """The section ``[cost]`` or ``[reward]``: of actions or a stock, a file, or a column.

    Attributes
    ----------
    word : "cost" or "reward"
    actions : tuple of ActionAmount
    file : Path or None
    column : str or None
    low, high : float
        Bounds of what the column holds.
    prices : Prices or None
        Of a stock.
    """

    word: Word
    actions: tuple[ActionAmount, ...] = ()
    file: Path | None = None
    column: str | None = None
    low: float = math.nan
    high: float = math.nan
    prices: Prices | None = None


@dataclass(frozen=True)
class ModelFile:
    """A model file whose keys were checked.

    Attributes
    ----------
    path : Path
    digest : str
        SHA-256 of its content.
    discount, confidence : float
    log : LogSection
    states : tuple of Bins or Categories
    action : ActionSection
    dynamics : DynamicsSection
    amounts : AmountSection
    title : str
    start : str, float or tuple of these, optional
    level : float, optional
    seed : int
    top : Table
        The file's content, with lines, for errors that only the log can reveal.
    """

    path: Path
    digest: str
    discount: float
    confidence: float
    log: LogSection
    states: tuple[Bins | Categories, ...]
    action: ActionSection
    dynamics: DynamicsSection
    amounts: AmountSection
    title: str
    start: Reading | None
    level: float | None
    seed: int
    top: Table = field(repr=False, compare=False)

    def error(self, keys: tuple[str, ...], message: str) -> InvalidInputError:
        """An error about a key of the file, such as ``("cost", "keep")``, with its line."""
        table = self.top
        for key in keys[:-1]:
            is_section = table is self.top or table.path == (self.amounts.word,)
            table = table.section(key) if is_section else table.table(key)
        if isinstance(table.values.get(keys[-1]), dict) and not table.prefix:
            return InvalidInputError(f"{table.section(keys[-1]).named()} {message}")
        return table.error(keys[-1], message)


def read_model_file(path: str | os.PathLike[str]) -> ModelFile:
    """Read a model file and check its keys; the log itself is not read.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    ModelFile

    Raises
    ------
    InvalidInputError
        If the file cannot be read or is not TOML, or a key is unknown, missing or wrong; the
        message names file, line and key.
    """
    content = read_text(path)
    source = Path(path)
    try:
        top = parse_toml(content, shown(source.name)[1:-1])
    except InvalidInputError as error:
        if source.suffix.lower() in TABLE_FILES:
            raise InvalidInputError(
                f"{source.name} is not a model file; if it is a log, 'brmdp init' writes a model "
                "file for it"
            ) from error
        raise
    top.require_known(KEYS[""], _elsewhere(""))
    folder = source.resolve().parent
    log = _log(top.section("log", "a table with the key file"), folder)
    states = _states(top, log)
    action = _action(top.section("action", "a table with the key column"))
    if action.column in (*log.unit, log.time, *(axis.column for axis in states)):
        raise top.section("action").error(
            "column",
            f"must not be a column of unit, time or state; got {shown(action.column)}",
        )
    dynamics = (
        _dynamics(top.section("dynamics"), bool(log.groups))
        if "dynamics" in top
        else DynamicsSection()
    )
    if dynamics.kind == "stock" and len(states) > 1:
        raise top.error("state", f"must be one column, the stock; got {len(states)} columns")
    return ModelFile(
        path=source,
        digest=digest([content]),
        discount=top.number("discount", above=0.0, below=1.0),
        confidence=top.number("confidence", above=0.0, below=1.0) if "confidence" in top else 0.9,
        log=log,
        states=states,
        action=action,
        dynamics=dynamics,
        amounts=_amounts(top, folder, dynamics),
        title=top.text("title").strip() if "title" in top else log.file.name.partition(".")[0],
        start=_reading(top, "start") if "start" in top else None,
        level=top.number("level", above=0.0, below=1.0) if "level" in top else None,
        seed=top.integer("seed", 0, MAX_SEED) if "seed" in top else 0,
        top=top,
    )


def _elsewhere(section: str) -> dict[str, str]:
    """Keys that are known in other sections, and where they belong."""
    places = dict.fromkeys(TOP, "at the top of the file, above the first [section]")
    for key in {key for keys in KEYS.values() for key in keys} - set(KEYS[""]):
        homes = [f"[{name}]" for name, keys in KEYS.items() if key in keys]
        places[key] = f"below {' or '.join(homes)}"
    return {key: place for key, place in places.items() if key not in KEYS[section]}


# --- sections -------------------------------------------------------------------------------------


def _log(table: Table, folder: Path) -> LogSection:
    table.require_known(KEYS["log"], _elsewhere("log"))
    columns = "the name of a column"
    several = "the name of a column, or a list of names"
    if "groups" in table and "unit" not in table:
        raise table.error("groups", "needs unit: a group consists of units")
    if "step" in table and "time" not in table:
        raise table.error("step", "needs time")
    found = LogSection(
        file=_existing_file(table, folder),
        unit=table.texts("unit", several) if "unit" in table else (),
        time=table.text("time", columns) if "time" in table else None,
        groups=table.texts("groups", several) if "groups" in table else (),
        step=_step(table) if "step" in table else None,
        next_state=table.texts("next_state", several) if "next_state" in table else (),
        delimiter=_delimiter(table) if "delimiter" in table else None,
        decimal=table.choice("decimal", (".", ",")) if "decimal" in table else ".",
        encoding=_encoding(table) if "encoding" in table else "utf-8",
        missing=_missing(table) if "missing" in table else MISSING,
    )
    if found.delimiter_used == found.decimal:
        key = "decimal" if "decimal" in table else "delimiter"
        raise table.error(key, f"must not be {shown(found.decimal)} for both of these two")
    return found


def _delimiter(table: Table) -> str:
    allowed = 'one character, such as ";" or "\\t"'
    value = table.given("delimiter", allowed)
    if (
        not isinstance(value, str)
        or len(value) != 1
        or not value.isascii()
        or value.isalnum()
        or value in "\"'\n\r\0.-+"
    ):
        raise table.wrong("delimiter", allowed)
    return value


def _encoding(table: Table) -> str:
    allowed = 'an encoding that contains ASCII, such as "utf-8" or "cp1252"'
    value = table.text("encoding", allowed)
    try:
        if "a,".encode(value) == b"a,":
            return value
    except (LookupError, ValueError):
        pass
    raise table.wrong("encoding", allowed)


def _missing(table: Table) -> tuple[str, ...]:
    allowed = 'a list of texts, such as ["", "NA"]'
    value = table.given("missing", allowed)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise table.wrong("missing", allowed)
    return tuple(dict.fromkeys(value))


def _existing_file(table: Table, folder: Path) -> Path:
    allowed = "the name of a file, relative to the model file"
    name = table.text("file", allowed)
    path = folder / name
    try:
        if path.is_file():
            return path.resolve()
        found = "is not a regular file" if path.exists() else "does not exist"
    except (OSError, ValueError):
        found = "is no name of a file"
    hint = "; addresses are not read" if "://" in name else ""
    raise table.error("file", f"must be {allowed}; {shown(name)} {found}{hint}")


def _step(table: Table) -> float | str:
    allowed = f'a number above 0, or text such as "day" or "2 weeks" ({", ".join(WORDS)})'
    value = table.given("step", allowed)
    if isinstance(value, str):
        try:
            number_of_steps(value)
        except InvalidInputError:
            raise table.wrong("step", allowed) from None
        return value
    number = as_finite(value)
    if number is None or number <= 0.0:
        raise table.wrong("step", allowed)
    return number


def _states(top: Table, log: LogSection) -> tuple[Bins | Categories, ...]:
    tables = top.tables("state", "a table with the key column")
    if len(tables) > MAX_COLUMNS:
        raise top.error("state", f"must have at most {MAX_COLUMNS} columns; got {len(tables)}")
    axes = tuple(map(_axis, tables))
    columns = [axis.column for axis in axes]
    for k, table in enumerate(tables):
        if columns[k] in columns[:k]:
            raise table.error("column", f"must not be given twice; got {shown(columns[k])} twice")
    if log.next_state and len(log.next_state) != len(axes):
        raise top.table("log").error(
            "next_state",
            f"must name one column per column of the state, {len(axes)}; got {len(log.next_state)}",
        )
    return axes


def _axis(table: Table) -> Bins | Categories:
    table.require_known(KEYS["state"], _elsewhere("state"))
    column = table.text("column", "the name of a column")
    if "bins" not in table:
        if "outside" in table:
            raise table.error("outside", "is for bins; labels that are not listed are dropped")
        return Categories(column, _labels(table) if "labels" in table else None)
    if "labels" in table:
        raise table.error("labels", "is for states without bins; bins are named by their edges")
    outside: Literal["drop", "clip"] = "drop"
    if "outside" in table:
        outside = cast('Literal["drop", "clip"]', table.choice("outside", ("drop", "clip")))
    bins = table.table("bins", "a table such as { start = 0, width = 5000, count = 90 }")
    return _bins(bins, column, outside)


def _bins(table: Table, column: str, outside: Literal["drop", "clip"]) -> Bins:
    regular = ("start", "width", "count")
    table.require_known((*regular, "edges"), {})
    if "edges" in table:
        for key in regular:
            if key in table:
                raise table.error(key, "is for bins of one width; with edges it has no meaning")
        return Bins(column, _given_edges(table), outside)
    start = table.number("start")
    width = table.number("width", above=0.0)
    count = table.integer("count", 1, MAX_BINS)
    if not math.isfinite(start + width * count):
        raise table.error("width", "gives edges beyond the largest number")
    try:
        return Bins.regular(column, start=start, width=width, count=count, outside=outside)
    except InvalidInputError as error:
        raise table.error("width", f"does not make bins: {error}") from None


def _given_edges(table: Table) -> tuple[float, ...]:
    allowed = f"a list of 2 to {MAX_BINS + 1:,} finite numbers that increase"
    values = table.given("edges", allowed)
    if not isinstance(values, list) or not 2 <= len(values) <= MAX_BINS + 1:
        raise table.wrong("edges", allowed)
    edges: list[float] = []
    for value in values:
        number = as_finite(value)
        if number is None or (edges and number <= edges[-1]):
            after = f" after {edges[-1]:.12g}" if edges else ""
            raise table.error("edges", f"must be {allowed}; got {shown(value)}{after}")
        edges.append(number)
    return tuple(edges)


def _labels(table: Table) -> tuple[str, ...]:
    """Labels as text; numbers as the log's reader writes them."""
    allowed = "a list of one or more labels: text in quotes, or numbers"
    values = table.given("labels", allowed)
    if not isinstance(values, list) or not values:
        raise table.wrong("labels", allowed)
    for value in values:
        if not isinstance(value, str) and as_finite(value) is None:
            raise table.error("labels", f"must be {allowed}; got {shown(value)}")
    try:
        return as_label_tuple(values, "they")
    except InvalidInputError as error:
        raise table.error("labels", f"are not usable: {error}") from None


def _action(table: Table) -> ActionSection:
    table.require_known(KEYS["action"], _elsewhere("action"))
    admissible = "all"
    if "admissible" in table:
        admissible = table.choice("admissible", ("all", "observed"))
    return ActionSection(
        table.text("column", "the name of a column"),
        _labels(table) if "labels" in table else None,
        cast('Literal["all", "observed"]', admissible),
    )


def _dynamics(table: Table, grouped: bool) -> DynamicsSection:
    if "kind" in table and table.choice("kind", ("free", "stock")) == "stock":
        return _stock(table, grouped)
    table.require_known(FREE_KEYS, _elsewhere("dynamics") | _of_kind(KEYS["dynamics"]))
    choices = {
        "prior": ("learned", "uniform", "observed"),
        "shape": ("auto", *SHAPES),
        "possible": ("all", "observed"),
        "pooling": ("auto", *POOLINGS),
    }
    chosen = {key: table.choice(key, words) for key, words in choices.items() if key in table}
    learned = chosen.get("prior", "learned") == "learned"
    if learned and "strength" in table:
        raise table.error(
            "strength", 'is for the prior "uniform" or "observed"; a learned prior finds its own'
        )
    if not learned and "shape" in table:
        raise table.error("shape", 'is for the prior "learned"')
    if not learned and chosen.get("pooling") == "partial":
        raise table.error("pooling", 'must be "pooled" or "separate" unless the prior is "learned"')
    if not grouped and chosen.get("pooling") in ("partial", "separate"):
        raise table.error("pooling", "needs groups, in [log]")
    if "reach" in table and ("possible" in table or chosen.get("prior") == "observed"):
        raise table.error("reach", "cannot stand beside observed or possible successors")
    resets = table.table("reset", "a table such as { replace = 0 }") if "reset" in table else None
    return DynamicsSection(
        **chosen,  # type: ignore[arg-type]
        strength=table.number("strength", above=0.0) if "strength" in table else None,
        reach=table.integer("reach", 1, MAX_BINS) if "reach" in table else None,
        reset=tuple((action.strip(), _reading(resets, action)) for action in resets.values)
        if resets is not None
        else (),
        ends=_ends(table) if "ends" in table else (),
    )


def _of_kind(keys: tuple[str, ...]) -> dict[str, str]:
    """Where the keys of a stock belong, or those that a stock does not have."""
    return {
        key: 'to a model without kind = "stock"' if key in FREE_KEYS else 'to kind = "stock"'
        for key in keys
    }


def _stock(table: Table, grouped: bool) -> DynamicsSection:
    table.require_known(STOCK_KEYS, _elsewhere("dynamics") | _of_kind(KEYS["dynamics"]))
    pooling = "auto"
    if "pooling" in table:
        pooling = table.choice("pooling", ("separate", "pooled"))
        if not grouped and pooling == "separate":
            raise table.error("pooling", "needs groups, in [log]")
    capacity, largest_demand = (
        table.integer(key, 1, LARGEST_STOCK) if key in table else None
        for key in ("capacity", "largest_demand")
    )
    return DynamicsSection(
        kind="stock",
        prior="uniform",
        strength=table.number("strength", above=0.0) if "strength" in table else None,
        pooling=cast('Literal["auto", "pooled", "separate"]', pooling),
        capacity=capacity,
        largest_demand=largest_demand,
    )


def _ends(table: Table) -> tuple[Reading, ...]:
    allowed = "a list of states, each a label in quotes or a number, or a list of these"
    values = table.given("ends", allowed)
    if not isinstance(values, list):
        raise table.wrong("ends", allowed)
    return tuple(_as_reading(table, "ends", value, allowed) for value in values)


def _reading(table: Table, key: str) -> Reading:
    allowed = "a label in quotes or a number, or a list of one per column of the state"
    return _as_reading(table, key, table.given(key, allowed), allowed)


def _as_reading(table: Table, key: str, value: object, allowed: str) -> Reading:
    parts = []
    for item in value if isinstance(value, list) else [value]:
        part = item.strip() if isinstance(item, str) else as_finite(item)
        if part is None or part == "":
            raise table.wrong(key, allowed)
        parts.append(part)
    if not parts:
        raise table.wrong(key, allowed)
    return tuple(parts) if len(parts) > 1 else parts[0]


# --- what actions cost or earn --------------------------------------------------------------------


def _amounts(top: Table, folder: Path, dynamics: DynamicsSection) -> AmountSection:
    given = [word for word in ("cost", "reward") if word in top]
    if len(given) == 2:
        raise top.error("reward", "cannot stand beside [cost]: choose one of the two words")
    if not given:
        raise InvalidInputError(
            f"{top.named()} [cost] or [reward] is missing; it must be a table for each action, "
            "such as [cost.keep] with base or per, or have the key file or column"
        )
    word: Word = "cost" if given == ["cost"] else "reward"
    table = top.section(word, "a table")
    if dynamics.kind == "stock":
        return AmountSection(word, prices=_prices(table, word, dynamics))
    actions = [key for key, value in table.values.items() if isinstance(value, dict)]
    keys = [key for key in table.values if key not in actions]
    if actions and keys:
        raise table.error(
            keys[0], f"cannot stand beside [{word}.{toml_key(actions[0])}]: give amounts one way"
        )
    if actions:
        return AmountSection(word, tuple(_amount(table, key, word) for key in actions))
    of_stock = dict.fromkeys(PRICES, 'to [dynamics] kind = "stock"')
    table.require_known(("file", "column", "low", "high"), of_stock)
    if "file" in table:
        for key in ("column", "low", "high"):
            if key in table:
                raise table.error(key, "cannot stand beside file: give amounts one way")
        return AmountSection(word, file=_existing_file(table, folder))
    if "column" not in table:
        raise InvalidInputError(
            f"{table.named()} must have a table for each action, such as [{word}.keep] with base "
            "or per, or the key file or column"
        )
    low, high = _bounds(table)
    return AmountSection(
        word, column=table.text("column", "the name of a column"), low=low, high=high
    )


def _prices(table: Table, word: Word, dynamics: DynamicsSection) -> Prices:
    elsewhere = 'to a model without kind = "stock"'
    table.require_known(PRICES, dict.fromkeys(("file", "column", "low", "high"), elsewhere))
    if not table.values:
        raise InvalidInputError(
            f"{table.named()} must have one or more of the keys {', '.join(PRICES)}"
        )
    prices = Prices(word, **{key: _figure(table, key) for key in table.values})
    if "lost" in prices.given and dynamics.largest_demand is None:
        raise table.error(
            "lost",
            "needs largest_demand, in [dynamics]: no log of sales tells how large demand can be",
        )
    return prices


def _amount(table: Table, action: str, word: Word) -> ActionAmount:
    """What one action costs; tables without any figure are named all at once."""
    empty = [key for key, value in table.values.items() if value == {}]
    if empty:
        others = (
            f"[{word}.{toml_key(key)}] (line {table.lines.get((*table.path, key))})"
            for key in empty[1:9]
        )
        also = f"; so must {', '.join(others)}" if len(empty) > 1 else ""
        raise InvalidInputError(
            f"{table.section(empty[0]).named()} must have base, per or both (what the action "
            f"{'costs' if word == 'cost' else 'earns'} per time step){also}"
        )
    own = table.section(action)
    own.require_known(("base", "per"), {})
    if not action.strip():
        raise own.error("", "must name an action")
    zero = Figure.sure(0.0)
    return ActionAmount(
        action.strip(),
        _figure(own, "base") if "base" in own else zero,
        _figure(own, "per") if "per" in own else zero,
    )


def _figure(table: Table, key: str) -> Figure:
    """A number, or a table with low and high."""
    if isinstance(table.values[key], dict):
        inner = table.table(key)
        inner.require_known(("value", "low", "high"), {})
        low, high = _bounds(inner)
        value = low / 2.0 + high / 2.0
        if "value" in inner:
            value = inner.number("value")
            if not low <= value <= high:
                raise inner.wrong("value", f"a number from low to high, {low:g} to {high:g}")
        return Figure(value, low, high)
    value_of = as_finite(table.values[key])
    if value_of is None:
        raise table.wrong(key, "a finite number or { low = …, high = … }")
    return Figure.sure(value_of)


def _bounds(table: Table) -> tuple[float, float]:
    low, high = table.number("low"), table.number("high")
    if not low < high:
        raise table.wrong("high", f"a number above low, {low:g}")
    return low, high
