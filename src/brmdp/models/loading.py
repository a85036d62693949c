"""From a model file to a model: the log is read, and what the file says about it is resolved."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from brmdp._validation import BoolArray
from brmdp.errors import InvalidInputError
from brmdp.logs import Log
from brmdp.logs.reading import read_log
from brmdp.models.costs import resolve_costs, unknown
from brmdp.models.file import ModelFile, Reading, read_model_file
from brmdp.models.model import Dynamics, Model

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
    section, amounts = file.log, file.amounts
    settings: dict[str, Any] = {
        "unit": list(section.unit) or None,
        "groups": list(section.groups) or None,
        "time": section.time,
        "step": section.step,
        "next_state": list(section.next_state) or None,
        "amount": amounts.column,
        "actions": file.action.labels,
        "delimiter": section.delimiter,
        "decimal": section.decimal,
    }
    if section.missing is not None:
        settings["missing"] = section.missing
    return read_log(section.file, state=file.states, action=file.action.column, **settings)


def model_of(file: ModelFile, log: Log) -> Model:
    """The model that a file describes, for its log."""
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
        **{f"{costs.word}s": costs},  # type: ignore[arg-type]
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
