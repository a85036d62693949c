"""The columnar reader against one that goes line by line, on many dirty logs."""

from __future__ import annotations

from collections import Counter

import pytest

from brmdp.errors import InvalidInputError
from brmdp.logs import Bins, Categories, read_log
from logs.dirt import random_log
from oracles import logs as oracle

pytest.importorskip("pyarrow")


def arguments(way):
    """The oracle's keywords as those of ``read_log``."""
    axes = [
        Bins(axis[1], axis[2], axis[3]) if axis[0] == "bins" else Categories(axis[1], axis[2])
        for axis in way["state"]
    ]
    step = way.get("step")
    if isinstance(step, tuple):
        step = f"{step[0]} {step[1]}s"
    return {**way, "state": axes, "step": step}


def labelled(log):
    """Kept lines and transitions in the words of the log."""
    states, actions, units = log.states.labels, log.actions, log.unit_names
    names = log.group_names or ("",)
    of_lines = [0] * log.line_state.size if log.line_group is None else log.line_group
    of_rows = [0] * len(log) if log.group is None else log.group
    kept = [
        (units[u], states[s], actions[a], names[g])
        for u, s, a, g in zip(log.line_unit, log.line_state, log.line_action, of_lines, strict=True)
    ]
    amounts = [None] * len(log) if log.amount is None else log.amount.tolist()
    rows = [
        (units[u], states[s], actions[a], states[t], x, names[g])
        for u, s, a, t, x, g in zip(
            log.unit, log.state, log.action, log.next_state, amounts, of_rows, strict=True
        )
    ]
    return kept, rows


def compare(content, way, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(content, encoding="utf-8", newline="")
    expected = oracle.read(content.removeprefix("\ufeff"), **way)
    if not expected.kept:
        with pytest.raises(InvalidInputError, match="lines that can be used"):
            read_log(path, **arguments(way))
        return False
    log = read_log(path, **arguments(way))
    report = log.report
    dropped = Counter()
    for one in report.dropped:  # some reasons have several wordings
        dropped[one.reason, one.column] += one.lines
    assert dropped == expected.dropped
    kept, rows = labelled(log)
    if "unit" not in way:
        kept = [("", *line[1:]) for line in kept]
        rows = [("", *row[1:]) for row in rows]
    assert kept == expected.kept
    assert rows == expected.transitions
    assert log.previous.tolist() == expected.previous
    lost = sum(one.lines for one in report.dropped if not one.line_kept)
    idle = sum(one.lines for one in report.dropped if one.line_kept)
    assert report.lines == expected.lines == report.kept_lines + lost
    assert report.kept_lines == len(kept) == report.transitions + idle
    assert report.transitions == len(rows)
    return True


@pytest.mark.parametrize("batch", range(12))
def test_random_dirty_logs(batch, tmp_path):
    read = sum(compare(*random_log(1000 * batch + seed), tmp_path) for seed in range(25))
    assert read >= 15  # most have a line that can be used


def test_the_random_logs_have_every_kind_of_dirt():
    reasons = Counter()
    for seed in range(300):
        content, way = random_log(seed)
        reasons.update(
            name for name, _ in oracle.read(content.removeprefix("\ufeff"), **way).dropped
        )
    assert min(reasons.values()) >= 5
    assert set(reasons) == {
        *("wrong number of fields", "missing", "not a number", "not a date", "outside the bins"),
        *("unknown label", "duplicate", "contradictory duplicate", "last line", "gap"),
        "next state unknown",
    }


@pytest.mark.slow
def test_many_random_dirty_logs(tmp_path):
    for seed in range(100_000, 103_000):
        compare(*random_log(seed), tmp_path)
