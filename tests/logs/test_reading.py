"""Reading text files: what is understood, what is dropped, what is refused."""

from __future__ import annotations

import gzip
import hashlib

import numpy as np
import pytest

from brmdp.errors import InvalidInputError
from brmdp.logs import Bins, Categories, read_log

pytest.importorskip("pyarrow")

FLEET = """unit,month,miles,decision
a,1,100,keep
a,2,5100,keep
a,3,9000,replace
b,1,0,keep
b,3,700,keep
"""
WAY = {"state": Bins("miles", (0, 5000, 10000)), "action": "decision"}
WHOLE = {**WAY, "unit": "unit", "time": "month"}


@pytest.fixture
def read(tmp_path):
    """Write a file and read it; states and actions are in the columns s and a by default."""

    def reading(content, name="log.csv", **way):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_log(path, **{"state": "s", "action": "a", **way})

    return reading


def lost(log):
    return {(one.reason, one.column): one.lines for one in log.report.dropped}


def in_time(read, *times, **way):
    """A log of one unit with these times, and a different state on each line."""
    lines = "".join(f'{k},go,"{time}"\n' for k, time in enumerate(times))
    return read("s,a,t\n" + lines, time="t", **way)


def test_a_small_fleet(read):
    log = read(FLEET, **WHOLE)
    assert log.unit_names == ("a", "b")
    assert log.actions == ("keep", "replace")
    np.testing.assert_array_equal(log.state, [0, 1])
    np.testing.assert_array_equal(log.next_state, [1, 1])
    np.testing.assert_array_equal(log.action, [0, 0])
    np.testing.assert_array_equal(log.time, [0.0, 1.0])
    np.testing.assert_array_equal(log.previous, [-1, 0])
    np.testing.assert_array_equal(log.line_state, [0, 1, 1, 0, 0])
    np.testing.assert_array_equal(log.line_unit, [0, 0, 0, 1, 1])
    assert lost(log) == {("last line", ""): 2, ("gap", ""): 1}
    assert "unit 'b', from '1' to '3'" in str(log.report)
    assert log.source == "log.csv"
    assert log.digest == hashlib.sha256(FLEET.encode()).hexdigest()


@pytest.mark.parametrize(
    "content",
    [
        FLEET.replace("\n", "\r\n"),
        FLEET.replace("\n", "\r"),
        "\ufeff" + FLEET,
        FLEET.rstrip("\n"),
        "\n\n" + FLEET.replace("\n", "\n\n"),
        FLEET.replace(",", " , "),
        "\ufeff" + "".join(f'"{line}"\n'.replace(",", '","') for line in FLEET.split()),
        "\n".join([FLEET.split()[0], *sorted(FLEET.split()[1:], reverse=True)]),
    ],
    ids=["crlf", "cr", "mark", "no end", "blank lines", "spaces", "quotes", "unsorted"],
)
def test_the_same_log_written_otherwise(read, content):
    expected, log = read(FLEET, **WHOLE), read(content, **WHOLE)
    for name in ("state", "action", "next_state", "unit", "time", "previous", "line_state"):
        np.testing.assert_array_equal(getattr(log, name), getattr(expected, name))
    assert lost(log) == lost(expected)


def test_other_kinds_of_files(read):
    expected = read(FLEET, **WHOLE)
    tabs = FLEET.replace(",", "\t")
    for log in (
        read(tabs, "log.tsv", **WHOLE),
        read(tabs, "log.txt", delimiter="\t", **WHOLE),
        read(gzip.compress(FLEET.encode()), "log.csv.gz", **WHOLE),
        read(gzip.compress(tabs.encode()), "LOG.TSV.GZ", **WHOLE),
    ):
        np.testing.assert_array_equal(log.next_state, expected.next_state)


def test_other_encodings(read):
    latin = "s,a\ngrün,go\nrot,go\n".encode("latin-1")
    assert read(latin, encoding="latin-1").states.labels == ("grün", "rot")
    with pytest.raises(InvalidInputError, match=r"not text in utf-8 on line 2.*encoding='cp1252'"):
        read(latin)
    with pytest.raises(InvalidInputError, match="utf-8 on line 4"):
        read(b"s,a\n1,go\n2,go\n\xff\n3,go\n")  # neither text nor of two fields
    with pytest.raises(InvalidInputError, match="in the header"):
        read("s,ü,a\n1,2,3\n".encode("latin-1"))


def test_decimal_commas(read):
    text = "s;a\n0,5;go\n1,5;go\n1.5;go\n"
    log = read(text, state=Bins("s", (0, 1, 2)), delimiter=";", decimal=",")
    np.testing.assert_array_equal(log.line_state, [0, 1])
    assert lost(log)["not a number", "s"] == 1
    with pytest.raises(InvalidInputError, match="decimal=',' would read 2 of its values"):
        read("s;a\n0,5;go\n1,5;go\n", state=Bins("s", (0, 1, 2)), delimiter=";")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        ("s,a", "header only"),
        ("s,a\n\n", "header only"),
        ("\n\n", "must begin with a line of column names"),
        ("s;a\n1;2\n", r"Perhaps delimiter=';'\?"),
        ("s\ta\n1\t2\n", r"Perhaps delimiter='\\t'\?"),
        ("state,a\n1,2\n", "must include 's'"),
        ("s,A\n1,2\n", "must include 'a'"),
        ("s,a,a\n1,2,3\n", "2 called 'a'"),
        (b"\x00\x01\x02\xff" * 50, "as binary files do"),
        (b"PK\x03\x04" + b"x" * 50, "Excel"),
        (b"PAR1" + b"x" * 50, "Parquet"),
        ("s,a\n1,2\n".encode("utf-16"), "UTF-16"),
        ('s,a\n1,"2\n3,4\n5,6\n', "ends within a quoted field"),
        ('s,a\n1,2\n3,"', "ends within a quoted field"),
        (f"s,a\n{'x' * 201},go\n", "at most 200 characters; got 201"),
        (b"s,a\n1,g\x00o\n", "NUL"),
        ("s,a\n,\nNA,go\n1,\n", "2 lines: 's' is missing .*1 line: 'a' is missing"),
    ],
)
def test_files_that_are_refused(read, content, message):
    with pytest.raises(InvalidInputError, match=message) as caught:
        read(content)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


def test_sources_that_are_refused(tmp_path):
    way = {"state": "s", "action": "a"}
    (tmp_path / "log.xlsx").write_text("x")
    (tmp_path / "log.parquet").write_text("x")
    (tmp_path / "log.csv.gz").write_text("x")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"s,a\n1,2\n" * 9999)[:60])
    for source, message in (
        (tmp_path / "nothing.csv", "must be a file that exists"),
        ("with\0nul.csv", "must be a file that exists"),
        (tmp_path, "must be a regular file"),
        ("/dev/zero", "must be a regular file"),
        (tmp_path / "log.xlsx", "ends in .csv"),
        (tmp_path / "log.parquet", "must be a Parquet file"),
        (tmp_path / "log.csv.gz", "must be a readable file"),
        (tmp_path / "cut.csv.gz", "must be a readable file"),
        ([[1, 2]], "path of a file or a data frame"),
        (None, "path of a file or a data frame"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            read_log(source, **way)


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ({"state": 3}, "state must be"),
        ({"state": []}, "state must be"),
        ({"state": ["s", 3]}, "state must consist"),
        ({"action": None}, "action must be the name"),
        ({"unit": 3}, "unit must be the name"),
        ({"unit": []}, "unit must be the name"),
        ({"time": ["t"]}, "time must be the name"),
        ({"next_state": ["s", "a"]}, "one column for each of state, 1; got 2"),
        ({"actions": ("go", "go")}, "actions must be distinct"),
        ({"actions": "go"}, "actions must be a sequence"),
        ({"step": 1}, "step must not be given without time"),
        ({"time": "t", "step": "fortnight"}, "step must be a number or one of second"),
        ({"time": "t", "step": "0 days"}, "step must be"),
        ({"time": "t", "step": True}, "step must be"),
        ({"time": "t", "step": -1}, "step must be a positive finite number"),
        ({"time": "t", "step": "month"}, "step must be a number, since column 't'"),
        ({"time": "d", "step": 1}, "since column 'd' holds dates"),
        ({"delimiter": ";;"}, "delimiter must be one"),
        ({"delimiter": '"'}, "delimiter must be one"),
        ({"decimal": ","}, "delimiter must differ from decimal"),
        ({"decimal": "·"}, "decimal must be"),
        ({"encoding": "klingon"}, "encoding must be one that Python knows"),
        ({"encoding": "utf-16"}, "encoding must be one"),
        ({"missing": "NA"}, "missing must be a sequence"),
        ({"groups": "s"}, "groups must be the same on all lines of a unit; the log"),
        ({"groups": "s", "unit": "a"}, r"unit 'go' has '1' \(line 2\) and '2' \(line 3\)"),
    ],
)
def test_arguments_that_are_refused(read, way, message):
    with pytest.raises(InvalidInputError, match=message):
        read("s,a,t,d\n1,go,1,2019-01\n2,go,2,2019-02\n", **way)


def test_unit_labels_that_fall_together_are_refused(read):
    with pytest.raises(InvalidInputError, match="stay distinct when joined by ' / '"):
        read("s,a,u,v\n1,go,x / y,z\n1,go,x,y / z\n", unit=["u", "v"])


def test_too_many_labels_are_refused(read):
    many = "".join(f"{k},go\n" for k in range(100_001))
    with pytest.raises(InvalidInputError, match=r"at most 100,000 labels.*Take Bins"):
        read("s,a\n" + many)
    with pytest.raises(InvalidInputError, match="action must have at most 10,000 labels"):
        read("a,s\n" + many)


def test_lines_with_the_wrong_number_of_fields_are_named(read):
    log = read("s,a\n1,go\n\n2\n3,go,4\n5,go\n6,go\n")
    (broken,) = [one for one in log.report.dropped if one.reason == "wrong number of fields"]
    assert (broken.lines, broken.examples) == (2, ("line 4", "line 5"))
    assert log.report.lines == 5
    # what stands between may be of the same unit
    assert lost(log)["next state unknown", ""] == 1
    assert len(log) == 1


def test_line_numbers_in_examples(read):
    log = read('s,a,note\n1,go,"two\nlines"\n\n,go,x\n2,go,""\n', unit="a")
    (missing,) = [one for one in log.report.dropped if one.reason == "missing"]
    assert missing.examples == ("line 5: 's' is missing",)
    log = read('s,a,note\n1,go,5" pipe\n,go,x\n2,go,"a\nb"\n')
    (missing,) = [one for one in log.report.dropped if one.reason == "missing"]
    assert missing.examples == ("data line 2: 's' is missing",)  # marks of quotation in doubt


def test_a_line_without_action_still_ends_a_transition(read):
    log = read("s,a,t\n1,go,1\n2,,2\n3,go,3\n", time="t")
    assert len(log) == 1
    np.testing.assert_array_equal(log.states.labels, ["1", "2", "3"])
    assert lost(log) == {("missing", "a"): 1, ("last line", ""): 1}


def test_a_line_without_state_breaks_the_chain(read):
    for time in (None, "t"):
        log = read("s,a,t\n1,go,1\n,go,2\n3,go,3\n", time=time)
        assert len(log) == 0
        assert lost(log)["next state unknown", ""] == 1
        assert log.report.notes[0] == "There is no transition in this log."


def test_duplicates(read):
    log = read("s,a,t\n1,go,1\n1,go,1.0\n2,go,2\n3,go,2\n4,go,3\n5,go,4\n", time="t")
    assert lost(log) == {
        ("duplicate", ""): 1,
        ("contradictory duplicate", ""): 2,
        ("next state unknown", ""): 1,
        ("last line", ""): 1,
    }
    assert log.states.labels == ("1", "4", "5")


def test_next_states_in_the_same_line(read):
    text = "s,a,n,r\n1,go,2,1.5\n2,go,3,-2\n9,go,1,0\n1,go,,0\n1,go,1,inf\n"
    log = read(text, next_state="n", amount="r")
    assert log.states.labels == ("1", "2", "3", "9")
    np.testing.assert_array_equal(log.previous, [-1, 0, -1])
    np.testing.assert_array_equal(log.amount, [1.5, -2.0, 0.0])
    assert lost(log) == {("missing", "n"): 1, ("not a number", "r"): 1}


def test_several_columns_as_state(read):
    text = "s,x,a\ngood,1,go\nworn,2,go\ngood,7,go\n"
    log = read(text, state=["s", Bins("x", (0, 2, 5))])
    assert log.states.labels == ("good | 0 to 2", "good | 2 to 5", "worn | 0 to 2", "worn | 2 to 5")
    np.testing.assert_array_equal(log.line_state, [0, 3])
    assert lost(log)["outside the bins", "x"] == 1


def test_given_labels_stay_and_found_ones_are_those_of_kept_lines(read):
    text = "s,a,u\n1,go,x\n2,stop,x\n3,turn,\n"
    found = read(text, unit="u")
    assert found.states.labels == ("1", "2")
    assert found.actions == ("go", "stop")
    given = read(
        text, unit="u", state=Categories("s", ("9", "2", "1")), actions=("go", "fly", "stop")
    )
    assert given.states.labels == ("9", "2", "1")
    assert given.actions == ("go", "fly", "stop")
    np.testing.assert_array_equal(given.line_state, [2, 1])


def test_labels_in_the_order_of_numbers_or_of_text(read):
    assert read("s,a\n10,b\n9,a\n-1,c\n").states.labels == ("-1", "9", "10")
    assert read("s,a\n10,b\n9,a\nx,c\n").states.labels == ("10", "9", "x")


def test_hostile_labels_are_kept_as_text(read):
    labels = ["<script>alert(1)</script>", "=HYPERLINK(1)", "&amp;", "\u202egnp", "\x1b[31m", "х"]
    log = read("s,a\n" + "".join(f"{label},x\n" for label in labels))
    assert set(log.states.labels) == set(labels)
    log = read("s,a\n" + "".join(f"{label},x\n" for label in labels), actions=("y", "x"))
    assert "\x1b" not in str(log.report)


def test_look_alikes_are_noted(read):
    notes = read("s,a\n1,keep\n1.0,Keep\n2,ｋeep\n").report.notes
    assert any("'1' and '1.0' ('s') are the same number" in note for note in notes)
    assert any("'Keep' and 'keep' ('a') look alike" in note for note in notes)


def test_what_counts_as_missing(read):
    text = "s,a\n1,go\n?,go\nNA,go\n2,none\n"
    assert read(text).states.labels == ("1", "2", "?")
    assert read(text, missing=["?"]).states.labels == ("1", "2", "NA")
    assert read(text).actions == ("go", "none")


def test_numbers_that_are_none(read):
    cells = ["1e400", "-1e400", "inf", "nan", "1_0", "0x1", "٣", "1 000", "--1", "1e", "True", "½"]
    good = ["1", "+1", "1.", ".5", "1e-400", "-0", "1E0"]
    lines = "".join(f"{cell},go\n" for cell in cells + good)
    log = read("s,a\n" + lines, state=Bins("s", (0, 1)))
    assert lost(log)["not a number", "s"] == len(cells) - 1
    assert lost(log)["missing", "s"] == 1  # nan
    assert log.report.kept_lines == len(good)


# --- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "step", "words"),
    [
        (("2019-01", "2019-02", "2019-03"), None, "1 month"),
        (("2019-01-31", "2019-02-28", "2019-03-31"), None, "1 month"),
        (("2019-12-01", "2020-01-01", "2020-02-01"), None, "1 month"),
        (("2020-02-28", "2020-02-29", "2020-03-01"), None, "1 day"),
        (("2019-01-07", "2019-01-14", "2019-01-21"), None, "7 days"),
        (("2019-01-01", "2019-04-01", "2019-07-01"), None, "3 months"),
        (("2018-06-30", "2019-06-30", "2020-06-30"), None, "12 months"),
        (("2019-01-01 10:00", "2019-01-01 11:00", "2019-01-01T12:00:00"), None, "1 hour"),
        (("2019-01-01 08:01", "2019-01-02 07:58", "2019-01-03 08:03"), None, "1 day"),
        (
            ("2019-01-01T00:00:00.25", "2019-01-01T00:00:00.5", "2019-01-01T00:00:00.75"),
            None,
            "0.25 seconds",
        ),
        (
            ("2019-03-30T12:00+01:00", "2019-03-31T12:00+02:00", "2019-04-01T12:00+02:00"),
            None,
            "1 day",
        ),
        (
            ("2019-03-31T01:30+01:00", "2019-03-31T03:30+02:00", "2019-03-31T02:30Z"),
            "hour",
            "1 hour",
        ),
        (("2019-01-05", "2019-02-28", "2019-03-01"), "month", "1 month"),
        (("2019-01-05", "2019-06-28", "2019-07-01"), "quarter", "1 quarter"),
        (("2018-12-31", "2019-01-07", "2019-01-20"), "week", "1 week"),
        (("2018-12-31", "2019-01-20", "2019-01-28"), "2 weeks", "2 weeks"),
        (("1999-12-31", "2000-01-01", "2001-12-31"), "year", "1 year"),
        ((-2, -1, 0), None, "1"),
        ((0.1, 0.2, 0.30000000000000004), None, "0.1"),
        ((1e300, 2e300, 3e300), None, "1e+300"),
        ((9007199254740993, 9007199254740994, 9007199254740995), None, "1"),
        (("1600000000000000001", "1600000000000000002", "1600000000000000003"), 1, "1"),
        ((2017, 2018, 2019), None, "1"),
    ],
)
def test_three_lines_one_step_apart(read, times, step, words):
    log = in_time(read, *times, step=step)
    assert len(log) == 2, str(log.report)
    np.testing.assert_allclose(log.time, [0.0, 1.0])
    assert any(f"is {words}:" in note for note in log.report.notes)


@pytest.mark.parametrize(
    ("times", "step"),
    [
        (("2019-01-31", "2019-03-01"), "month"),
        (("2019-01-01", "2019-01-31"), "month"),
        (("2019-12-31", "2021-01-01"), "year"),
        (("2019-01-06", "2019-01-14"), "week"),
        (("2019-01-01 23:59", "2019-01-03 00:00"), "day"),
        (("2019-03-31T01:30+01:00", "2019-03-31T03:30+01:00"), "hour"),
        ((1, 2.5), 1),
        ((9007199254740992, 9007199254740994), 1),
    ],
)
def test_two_lines_that_are_not_one_step_apart(read, times, step):
    assert lost(in_time(read, *times, step=step))["gap", ""] == 1


@pytest.mark.parametrize(
    "text",
    ["2019-02-29", "2019-13", "2019-00-01", "2019-01-32", "2019-1-1", "01/02/2019", "24:00",
     "2019-01-01 24:00", "2019-01-01 10:60", "2019-01-01T10:00:60", "0000-01-01", "soon",
     "2019-01-01T10:00+25:00", "２０１９-01"],
)  # fmt: skip
def test_dates_that_are_none(read, text):
    log = in_time(read, "2019-01-01", "2019-01-02", "2019-01-03", text)
    assert lost(log)["not a date", "t"] == 1
    assert len(log) == 2


def test_dates_in_another_form_are_refused_with_the_form_that_is_read(read):
    with pytest.raises(InvalidInputError, match=r"date in ISO form \(2019-03-01\)"):
        in_time(read, "1.2.2019", "1.3.2019")


def test_dates_written_as_numbers_are_noted(read):
    for times in ((20190131, 20190201, 20190202), (201911, 201912, 202001)):
        log = in_time(read, *times)
        assert lost(log)["gap", ""] == 1
        assert any("look like dates" in note for note in log.report.notes)


def test_zones_must_be_everywhere_or_nowhere(read):
    with pytest.raises(InvalidInputError, match="time zone everywhere or nowhere"):
        in_time(read, "2019-01-01T10:00Z", "2019-01-01T11:00")


def test_times_too_large_for_their_step_are_refused(read):
    with pytest.raises(InvalidInputError, match="precise enough"):
        in_time(read, 1e18, 1.5, step=0.5)
    with pytest.raises(InvalidInputError, match="told apart in double precision"):
        in_time(read, 10**25, 10**25 + 1)


def test_steps_that_are_rare_are_noted(read):
    assert "less than half" in in_time(read, 0, 1, 3, 6, 10).report.notes[-1]
    assert "The commonest difference is 2." in in_time(read, 0, 2, 4, step=1).report.notes[-1]
    assert "is unknown" in in_time(read, 5).report.notes[-1]


def test_the_report_fits_a_screen(read):
    report = str(read(FLEET, **WHOLE).report)
    assert max(len(line) for line in report.splitlines()) <= 100


def test_without_units_lines_that_may_be_of_any_interrupt_all(read):
    text = "s,a,u\n1,go,x\n1,go,y\n2,go,\n3,go,x\n3,go,y\n4,go,x\n"
    log = read(text, unit="u")
    assert len(log) == 1
    assert lost(log) == {
        ("missing", "u"): 1,
        ("next state unknown", ""): 2,
        ("last line", ""): 2,
    }


@pytest.mark.slow
def test_a_million_lines_with_a_broken_one(tmp_path):
    path = tmp_path / "log.csv"
    lines = [f"{k // 1000},{k % 1000},{k % 777},{'ab'[k % 2]}" for k in range(1_000_000)]
    lines[654_321] = "1,2"
    path.write_text("unit,month,miles,decision\n" + "\n".join(lines) + "\n")
    log = read_log(path, **{**WHOLE, "state": Bins("miles", (0, 300, 777))})
    broken = log.report.dropped[0]
    assert (broken.reason, broken.lines) == ("wrong number of fields", 1)
    assert broken.examples == ("line 654323",)
    assert len(log) == 999_000 - 2
