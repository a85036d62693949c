"""Policies as tables that a spreadsheet can open, and back.

A cell that begins like a formula (with =, +, - or @, or a tab) gets an apostrophe in front, so that
no spreadsheet computes it; reading takes it off again. Numbers stay as they are.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from brmdp._files import write_bytes
from brmdp._validation import IntArray
from brmdp.errors import InvalidInputError
from brmdp.logs.spaces import number_in, shown

if TYPE_CHECKING:
    from brmdp.models.decision import Decision
    from brmdp.models.model import Model

__all__ = ["read_policy", "write_policy"]

FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
LARGEST = 100_000_000
"""Largest size of a table of a policy, in bytes."""


def write_policy(decision: Decision, path: str | Path) -> None:
    """Write the recommended policy as CSV: group (if there are any), state and action."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    grouped = decision.groups[0].name is not None
    writer.writerow([*(["group"] if grouped else []), "state", "action"])
    for group in decision.groups:
        for s, label in enumerate(decision.states.labels):
            if s in decision.ends:
                continue
            row = [label, decision.actions[group.policy[s]]]
            writer.writerow([_safe(cell) for cell in ([str(group.name), *row] if grouped else row)])
    write_bytes(path, text.getvalue().encode())


def read_policy(path: str | Path, model: Model) -> dict[str | None, IntArray]:
    r"""Read policies that :meth:`Decision.write` wrote, for the states and actions of a model.

    Returns
    -------
    dict
        (S,) actions by group; the key is None without groups.

    Examples
    --------
    >>> import brmdp, pandas, pathlib, tempfile
    >>> table = {"day": range(3), "stock": ["full", "low", "low"], "order": ["no", "no", "yes"]}
    >>> log = brmdp.read_log(pandas.DataFrame(table), time="day", state="stock", action="order")
    >>> model = brmdp.Model(log, costs={"no": 0.0, "yes": 1.0}, discount=0.9)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "policy.csv"
    >>> _ = path.write_text("state,action\nfull,no\nlow,yes\n")
    >>> brmdp.read_policy(path, model)
    {None: array([0, 1])}
    """
    file = Path(path)
    try:
        size = file.stat().st_size
        if size > LARGEST:
            raise InvalidInputError(
                f"path must be a file of at most {LARGEST:,} bytes; got {size:,}"
            )
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"path must be a CSV file of a policy: {error}") from None
    grouped = model.groups != (None,)
    wanted = [*(["group"] if grouped else []), "state", "action"]
    try:
        lines = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise InvalidInputError(f"{file.name}: {error}") from None
    if not lines or not set(wanted) <= set(lines[0]):
        raise InvalidInputError(
            f"{file.name} must have the columns {', '.join(wanted)} and a line per state"
        )
    n = model.states.n_states
    found: dict[str | None, IntArray] = {group: np.full(n, -1) for group in model.groups}
    for number, line in enumerate(lines, start=2):
        cells = {name: _plain(line[name] or "") for name in wanted}
        group = cells.get("group")
        if group not in found:
            raise InvalidInputError(f"{file.name}, line {number}: unknown group {shown(group)}")
        if cells["action"] not in model.actions:
            raise InvalidInputError(
                f"{file.name}, line {number}: unknown action {shown(cells['action'])}"
            )
        try:
            state = model.states.index(cells["state"])
        except InvalidInputError as error:
            raise InvalidInputError(f"{file.name}, line {number}: {error}") from None
        if found[group][state] >= 0:
            raise InvalidInputError(
                f"{file.name}, line {number}: the state {shown(cells['state'])} stands there twice"
            )
        found[group][state] = model.actions.index(cells["action"])
    for group, policy in found.items():
        ended = model.ends[policy[model.ends] < 0]
        policy[ended] = model.admissible[ended].argmax(axis=1)
        if (policy < 0).any():
            label = model.states.labels[int(np.argmax(policy < 0))]
            where = "" if group is None else f" in group {shown(group)}"
            raise InvalidInputError(
                f"{file.name} must have a line for every state{where}; the state {shown(label)} "
                "has none"
            )
    return found


def _safe(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA) and not np.isfinite(number_in(cell)) else cell


def _plain(cell: str) -> str:
    return cell[1:] if cell.startswith("'") else cell
