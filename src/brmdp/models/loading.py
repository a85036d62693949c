"""From a model file to a model: the log is read, and what the file says about it is resolved."""

from __future__ import annotations

import difflib
import os

import numpy as np

from brmdp._validation import BoolArray
from brmdp.errors import InvalidInputError
from brmdp.logs import Bins, Categories, Log
from brmdp.logs.reading import read_log
from brmdp.models.costs import resolve_costs, unknown
from brmdp.models.file import ModelFile, Reading, read_model_file
from brmdp.models.headers import column_names
from brmdp.models.model import Dynamics, Model
from brmdp.models.stock import (
    STRENGTH,
    Stock,
    StockModel,
    log_of_stocks,
    orders_of,
    stocks_of,
)
from brmdp.models.toml import listed, shown

__all__ = ["load_model"]


def load_model(path: str | os.PathLike[str]) -> Model:
    r"""Read a model file and its log.

    Parameters
    ----------
    path : str or path
        The model file, whose keys :mod:`brmdp.models.file` lists; ``brmdp init`` writes one.

    Returns
    -------
    Model

    Raises
    ------
    InvalidInputError
        If a key is wrong, the message names file, line and key; if the log cannot be read, it names
        the column or line at fault.

    Examples
    --------
    >>> import pathlib, tempfile, brmdp
    >>> text = '''
    ... discount = 0.9
    ... [log]
    ... file = "log.csv"
    ... time = "day"
    ... [state]
    ... column = "machine"
    ... [action]
    ... column = "did"
    ... [cost.run]
    ... base = 1
    ... [cost.repair]
    ... base = 3
    ... '''
    >>> lines = ["day,machine,did"] + [
    ...     f"{day},{'worn' if day % 3 else 'new'},{'repair' if day % 3 == 2 else 'run'}"
    ...     for day in range(30)
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "log.csv").write_text("\n".join(lines))
    ...     _ = pathlib.Path(folder, "model.toml").write_text(text)
    ...     brmdp.read_model(pathlib.Path(folder, "model.toml"))
    Model(2 states, 2 actions, 29 transitions, costs, discount=0.9, confidence=0.9)
    """
    file = read_model_file(path)
    return model_of(file, log_of(file))


def log_of(file: ModelFile) -> Log:
    """The log that a model file names, read as it says."""
    section = file.log
    _require_columns(file)
    return read_log(
        section.file,
        state=_stocks(file) if file.dynamics.kind == "stock" else file.states,
        action=file.action.column,
        unit=section.unit or None,
        time=section.time,
        next_state=section.next_state or None,
        amount=file.amounts.column,
        groups=section.groups or None,
        step=section.step,
        actions=file.action.labels,
        delimiter=section.delimiter,
        decimal=section.decimal,
        encoding=section.encoding,
        missing=section.missing,
    )


def _stocks(file: ModelFile) -> tuple[Bins | Categories, ...]:
    """The states of a stock: up to the capacity, if it is given; lines with others are dropped."""
    (axis,) = file.states
    capacity = file.dynamics.capacity
    if capacity is None or not isinstance(axis, Categories) or axis.labels is not None:
        return file.states
    return (Categories(axis.column, tuple(str(stock) for stock in range(capacity + 1))),)


def _require_columns(file: ModelFile) -> None:
    """Every column that the file names must be in the log."""
    section, top = file.log, file.top
    names = column_names(section.file, section.delimiter_used, section.encoding)
    log = top.section("log")
    wanted = [
        (log, "unit", section.unit),
        (log, "time", () if section.time is None else (section.time,)),
        (log, "groups", section.groups),
        (log, "next_state", section.next_state),
        (top.section("action"), "column", (file.action.column,)),
    ]
    for table, axis in zip(top.tables("state", "a table"), file.states, strict=True):
        wanted.append((table, "column", (axis.column,)))
    if file.amounts.column is not None:
        wanted.append((top.section(file.amounts.word), "column", (file.amounts.column,)))
    for table, key, columns in wanted:
        for name in columns:
            if name not in names:
                nearest = difflib.get_close_matches(name, names, n=1)
                hint = f" (perhaps {shown(nearest[0])}?)" if nearest else ""
                raise table.error(
                    key,
                    f"must name a column of the log; got {shown(name)}{hint}. The log has "
                    f"{listed(names)}",
                )


def model_of(file: ModelFile, log: Log) -> Model:
    """The model that a file describes, for its log."""
    if file.dynamics.kind == "stock":
        return _stock_model(file, log)
    for action, state in file.dynamics.reset:
        if action not in log.actions:
            key = ("dynamics", "reset", action)
            raise file.error(key, f"is {unknown(action, log.actions)}")
        _require_state(file, log, ("dynamics", "reset", action), state)
    for state in file.dynamics.ends:
        _require_state(file, log, ("dynamics", "ends"), state)
    if file.start is not None:
        _require_state(file, log, ("start",), file.start)
    needed = _taken(log) if file.action.admissible == "observed" else None
    costs = resolve_costs(file, log.states, log.actions, needed)
    dynamics = file.dynamics
    return Model(
        log,
        discount=file.discount,
        confidence=file.confidence,
        **{f"{costs.word}s": costs},
        start=file.start,
        reset=dict(dynamics.reset),
        ends=dynamics.ends,
        dynamics=Dynamics(
            prior=dynamics.prior,
            strength=dynamics.strength,
            shape=dynamics.shape,
            reach=dynamics.reach,
            possible=dynamics.possible,
            pooling=None if dynamics.pooling == "auto" else dynamics.pooling,
        ),
        admissible=file.action.admissible,
        level=file.level,
        title=file.title,
        file=file.path.name,
        digest=file.digest,
        seed=file.seed,
    )


def _stock_model(file: ModelFile, log: Log) -> StockModel:
    dynamics, prices = file.dynamics, file.amounts.prices
    assert prices is not None
    keys = ("state", "column")
    try:
        stocks_of(log.states)
        keys = ("action", "column")
        orders = orders_of(log.actions)
        keys = ("dynamics", "capacity")
        shelf = log_of_stocks(log, orders, dynamics.capacity)
    except InvalidInputError as error:
        raise file.error(keys, f'does not fit kind = "stock": {error}') from None
    if file.start is not None:
        _require_state(file, shelf, ("start",), file.start)
    return StockModel(
        shelf,
        discount=file.discount,
        confidence=file.confidence,
        **{f"{prices.word}s": prices},
        stock=Stock(
            shelf.states.n_states - 1,
            dynamics.largest_demand,
            STRENGTH if dynamics.strength is None else dynamics.strength,
            "pooled" if dynamics.pooling == "pooled" else "separate",
        ),
        start=file.start,
        admissible=file.action.admissible,
        level=file.level,
        title=file.title,
        file=file.path.name,
        digest=file.digest,
        seed=file.seed,
    )


def _require_state(file: ModelFile, log: Log, keys: tuple[str, ...], state: Reading) -> None:
    try:
        log.states.index(state)
    except InvalidInputError as error:
        raise file.error(keys, f"must be a state: {error}") from None


def _taken(log: Log) -> BoolArray:
    """(S, A) pairs that can be taken if only what was done is admissible."""
    taken = np.zeros((log.states.n_states, len(log.actions)), dtype=bool)
    taken[log.line_state, log.line_action] = True
    taken[~taken.any(axis=1)] = True
    return taken
