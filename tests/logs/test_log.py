"""What a log offers once it has been read."""

from __future__ import annotations

import numpy as np
import pytest

from brmdp.errors import InvalidInputError
from brmdp.logs import read_log

pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def log():
    table = pa.table(
        {
            "bus": ["x", "x", "x", "y", "y", "z", "z", "z"],
            "model": ["m", "m", "m", "n", "n", "m", "m", "m"],
            "month": [1, 2, 3, 1, 2, 1, 2, 4],
            "wear": [0, 1, 0, 0, 2, 0, 1, 2],
            "do": ["run", "renew", "run", "run", "run", "run", "run", "run"],
            "paid": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        }
    )
    return read_log(
        table, state="wear", action="do", unit="bus", time="month", groups="model", amount="paid"
    )


def test_transitions(log):
    plain = log.transitions()
    assert repr(plain) == "Transitions(4 transitions, 3 states, 2 actions, 3 units)"
    assert plain.group is None
    grouped = log.transitions(groups=True)
    assert grouped.group.tolist() == ["m", "m", "n", "m"]
    np.testing.assert_array_equal(grouped.next_state, log.next_state)


def test_one_group(log):
    one = log.only("m")
    assert one.unit_names == ("x", "z")
    assert one.group_names == ("m",)
    assert (one.states, one.actions, one.report) == (log.states, log.actions, log.report)
    np.testing.assert_array_equal(one.unit, [0, 0, 1])
    np.testing.assert_array_equal(one.previous, [-1, 0, -1])
    np.testing.assert_array_equal(one.line_unit, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(one.amount, [1.0, 2.0, 6.0])
    with pytest.raises(InvalidInputError, match="group must be one of 'm', 'n'; got 'o'"):
        log.only("o")


def test_what_needs_groups_says_so():
    plain = read_log(pa.table({"s": [1, 2], "a": ["x", "x"]}), state="s", action="a")
    for call in (lambda: plain.only("m"), lambda: plain.transitions(groups=True)):
        with pytest.raises(InvalidInputError, match="groups must be named"):
            call()


def test_a_data_frame_of_transitions(log):
    pytest.importorskip("pandas")
    frame = log.to_frame()
    assert list(frame) == ["unit", "group", "time", "state", "action", "next_state", "amount"]
    assert frame.iloc[1].tolist() == ["x", "m", 1.0, "1", "renew", "0", 2.0]


def test_a_log_without_transitions_can_still_be_used():
    log = read_log(pa.table({"s": [1], "a": ["x"]}), state="s", action="a")
    assert len(log.transitions()) == 0
    assert len(log.to_frame()) == 0
