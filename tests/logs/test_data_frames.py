"""Reading data frames and Parquet files."""

from __future__ import annotations

import datetime
import decimal
import sys

import numpy as np
import pytest

from brmdp.errors import InvalidInputError, MissingExtraError
from brmdp.logs import Bins, read_log

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

COLUMNS = {
    "unit": [1, 1, 1, 2, 2],
    "month": [datetime.date(2019, m, 1) for m in (1, 2, 3, 1, 2)],
    "miles": [100.0, 5100.0, None, 0.0, 700.0],
    "decision": ["keep", "keep", "replace", None, "keep"],
}
WAY = {
    "state": Bins("miles", (0, 5000, 10000)),
    "action": "decision",
    "unit": "unit",
    "time": "month",
}


def arrow():
    return pa.table(COLUMNS)


def pandas_frame():
    return pytest.importorskip("pandas").DataFrame(COLUMNS)


def polars_frame():
    return pytest.importorskip("polars").DataFrame(COLUMNS)


def polars_lazy():
    return polars_frame().lazy()


def record_batch():
    return arrow().to_batches()[0]


def pandas_categories():
    return pandas_frame().astype({"decision": "category", "unit": "float32"})


MAKERS = [arrow, pandas_frame, polars_frame, polars_lazy, record_batch, pandas_categories]


@pytest.mark.parametrize("make", MAKERS)
def test_every_kind_of_table_gives_the_same_log(make):
    pytest.importorskip("narwhals")
    expected, log = read_log(arrow(), **WAY), read_log(make(), **WAY)
    for name in ("state", "action", "next_state", "unit", "time", "previous", "line_state"):
        np.testing.assert_array_equal(getattr(log, name), getattr(expected, name))
    assert log.unit_names == ("1", "2")
    assert log.report == expected.report
    assert log.digest == expected.digest


def test_parquet(tmp_path):
    parquet.write_table(arrow(), tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet", **WAY)
    np.testing.assert_array_equal(log.state, read_log(arrow(), **WAY).state)
    assert log.report.dropped[0].examples == ("row 3: 'miles' is missing",)
    with pytest.raises(InvalidInputError, match="must include 'x'"):
        read_log(tmp_path / "log.parquet", **{**WAY, "action": "x"})


def test_digests_tell_contents_apart():
    other = {**COLUMNS, "decision": ["keep", "keep", "keep", None, "keep"]}
    unused = {**COLUMNS, "more": [1, 2, 3, 4, 5]}
    assert read_log(pa.table(other), **WAY).digest != read_log(arrow(), **WAY).digest
    assert read_log(pa.table(unused), **WAY).digest == read_log(arrow(), **WAY).digest


def one_column(values, kind=None):
    table = pa.table({"s": pa.array(values, type=kind), "a": ["go"] * len(values)})
    return read_log(table, state="s", action="a").states.labels


def test_numbers_have_one_form_as_labels():
    assert one_column([1.0, 2.5, 1e15, 0.1 + 0.2]) == ("0.3", "1", "2.5", "1000000000000000")
    assert one_column([0.1, 2], pa.float32()) == ("0.1", "2")
    assert one_column([2**53 + 1, 2**53]) == ("9007199254740992", "9007199254740993")
    assert one_column([2**64 - 1], pa.uint64()) == ("18446744073709551615",)
    assert one_column([decimal.Decimal("1.50")]) == ("1.5",)
    assert one_column([True, False]) == ("False", "True")
    assert one_column([datetime.date(2019, 1, 1)]) == ("2019-01-01",)


def test_no_nan_and_no_infinity_slips_through():
    table = pa.table({"s": [1.0, np.nan, np.inf, -np.inf, 2.0], "a": ["go"] * 5})
    log = read_log(table, state=Bins("s", (0, 1.5, 3)), action="a")
    assert {(one.reason, one.lines) for one in log.report.dropped if not one.line_kept} == {
        ("missing", 1),
        ("not a number", 2),
    }
    table = table.append_column("r", pa.array([1.0, 1.0, 1.0, 1.0, np.nan]))
    log = read_log(table, state="s", next_state="s", action="a", amount="r")
    assert np.isfinite(log.amount).all()


def test_text_in_numbers_of_tables():
    table = pa.table({"s": ["1", "x", " 2 "], "a": [1, 2, 1]})
    log = read_log(table, state=Bins("s", (0, 1.5, 3)), action="a")
    assert log.actions == ("1",)
    assert log.report.dropped[0].words == "1 line: 's' is not a finite number"


def test_columns_of_mixed_kinds():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    mixed = pandas.Series([1, "1", 2.0, None, pandas.NA, "x", True, 2.5, np.nan], dtype=object)
    frame = pandas.DataFrame({"s": mixed, "a": "go"})
    assert read_log(frame, state="s", action="a").states.labels == ("1", "2", "2.5", "True", "x")
    frame["s"] = [[k] for k in range(9)]
    with pytest.raises(InvalidInputError, match="must hold text, numbers"):
        read_log(frame, state="s", action="a")
    frame["s"] = [object() for k in range(9)]
    with pytest.raises(InvalidInputError, match="column 's': entries must be text"):
        read_log(frame, state="s", action="a")


def test_frames_that_are_refused():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    way = {"state": "s", "action": "a"}
    with pytest.raises(InvalidInputError, match="has none"):
        read_log(pa.table({"s": [], "a": []}), **way)
    twice = pandas.DataFrame([[1, 2, 3]], columns=["s", "s", "a"])
    with pytest.raises(InvalidInputError, match=r"distinct|unique|data frame"):
        read_log(twice, **way)
    with pytest.raises(InvalidInputError, match=r"must be a data frame|path of a file"):
        read_log(pandas.Series([1]), **way)
    with pytest.raises(InvalidInputError, match="must hold text"):
        read_log(pa.table({"s": [[1]], "a": ["go"]}), **way)


def test_timestamps_with_a_zone_count_by_their_own_calendar():
    moments = [datetime.datetime(2019, 3, 30 + k // 24, k % 24) for k in (22, 46)]
    zone = pa.timestamp("us", tz="Europe/Berlin")
    table = pa.table({"t": pa.array(moments, type=zone), "s": [1, 2], "a": ["x", "x"]})
    # 23:00 and, the clocks having changed, midnight of the day after next
    log = read_log(table, state="s", action="a", time="t", step="day")
    assert len(log) == 0
    assert len(read_log(table, state="s", action="a", time="t", step="24 hours")) == 1


def test_nanoseconds_are_kept_apart():
    ticks = pa.array([1, 2, 3], type=pa.timestamp("ns"))
    log = read_log(
        pa.table({"t": ticks, "s": [1, 2, 3], "a": ["x"] * 3}), state="s", action="a", time="t"
    )
    assert len(log) == 2
    assert any("1e-09 seconds" in note for note in log.report.notes)


def test_reading_a_file_needs_no_library_of_data_frames(tmp_path, monkeypatch):
    (tmp_path / "log.csv").write_text("s,a\n1,go\n2,go\n")
    for name in ("pandas", "polars", "narwhals"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it fails
    log = read_log(tmp_path / "log.csv", state="s", action="a")
    assert len(log) == 1
    with pytest.raises(MissingExtraError, match=r"narwhals is missing.*brmdp\[decide\]"):
        read_log({"s": [1], "a": [2]}, state="s", action="a")
    with pytest.raises(MissingExtraError, match="pandas is missing"):
        log.to_frame()
