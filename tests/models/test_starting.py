"""First model files: guesses in the open, and text that survives hostile names."""

import csv
import gzip
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from brmdp.errors import InvalidInputError  # noqa: E402
from brmdp.models.file import read_model_file  # noqa: E402
from brmdp.models.loading import load_model  # noqa: E402
from brmdp.models.starting import nice_bins, write_starting_file  # noqa: E402
from brmdp.models.survey import words_of  # noqa: E402


def fleet(months=24, buses=4, *, unique=False):
    """Lines of a log of buses of two models; every number of a bus occurs in both, or not."""
    lines = []
    for m, model in enumerate(("city", "coach")):
        for bus in range(buses):
            miles = 0
            for month in range(months):
                decision = "replace" if miles > 60_000 else "keep"
                lines.append((model, bus + unique * m * buses, month, miles, decision))
                step = 3_000 + 500 * ((7 * bus + 3 * month) % 5) + 1_000 * m
                miles = step if decision == "replace" else miles + step
    return lines


FLEET = ("model", "bus", "month", "miles", "decision")


@pytest.fixture
def begin(tmp_path):
    """Write a log and its first model file; returns the file's text and what was guessed."""

    def begin(columns, lines, name="log.csv", delimiter=",", encoding="utf-8", **options):
        path = tmp_path / name
        opened = gzip.open if name.endswith(".gz") else open
        with opened(path, "wt", newline="", encoding=encoding) as stream:
            writer = csv.writer(stream, delimiter=delimiter)
            writer.writerow(columns)
            writer.writerows(lines)
        start = write_starting_file(path, tmp_path / "model.toml", replace=True, **options)
        text = (tmp_path / "model.toml").read_text(encoding="utf-8")
        assert text == start.text
        assert all(c.isprintable() or c == "\n" for c in text)
        return text, dict(line.split(": ", 1) for line in start.words)

    return begin


@pytest.fixture
def filled(tmp_path):
    """The model of the first file once all its costs are filled in."""

    def filled():
        path = tmp_path / "model.toml"
        path.write_text(path.read_text("utf-8").replace("# base = 0", "base = 1"), "utf-8")
        return load_model(path)

    return filled


# --- guesses --------------------------------------------------------------------------------------


def test_a_fleet_whose_numbers_occur_in_both_models(begin, tmp_path, filled):
    text, words = begin(FLEET, fleet())
    file_words = {part: line.split(" (")[0] for part, line in words.items()}
    assert file_words == {
        "unit": "'model', 'bus'",
        "time": "'month'",
        "groups": "'model'",
        "state": "'miles'",
        "next state": "none",
        "action": "'decision'",
        "cost": "none",
    }
    assert "with 'month' they name 100 % of the lines" in words["unit"]
    with pytest.raises(InvalidInputError, match=r"line \d+: \[cost.keep\] must have base, per or"):
        load_model(tmp_path / "model.toml")
    model = filled()
    assert model.actions == ("keep", "replace")
    assert (model.log.report.transitions, model.groups) == (8 * 23, ("city", "coach"))
    assert not [one for one in model.log.report.dropped if not one.line_kept]
    assert "If 1 in the time column is a month" in text
    assert "0.99 means that an amount a year later counts 88.6 %" in text


def test_a_fleet_whose_buses_have_numbers_of_their_own(begin, filled):
    text, words = begin(FLEET, fleet(unique=True))
    assert words["unit"].startswith("'bus' (with 'month' it names 100 % of the lines")
    assert words["groups"].startswith("'model' (it is the same on all lines of each unit")
    assert '"model"' in text[text.index("Which bus") : text.index("unit =")]  # could be meant, too
    assert filled().groups == ("city", "coach")


def test_dates_and_costs(begin, filled):
    lines = [
        (f"{2018 + k // 12}-{k % 12 + 1:02}-01", "good" if k % 3 else "bad", "fix" * (k % 2), 3 * k)
        for k in range(1, 40)
    ]
    lines = [(day, state, did or "wait", paid) for day, state, did, paid in lines]
    text, words = begin(("day", "condition", "did", "paid"), lines)
    assert words["time"].startswith("'day' (its values are dates)")
    assert words["unit"].startswith("none (no time in 'day' comes twice: one unit)")
    assert words["state"].startswith("'condition' (its name)")
    assert words["cost"].startswith("'paid' (its name, and it holds numbers)")
    assert "one time step (1 month) later" in text
    assert '# column = "paid"\n# low = 3\n# high = 117' in text
    assert 'Its 2 labels are the states: "bad", "good".' in text
    assert "# per = 0" not in text  # labels without numbers
    assert filled().actions == ("fix", "wait")


def test_a_column_of_rewards(begin):
    lines = [(k, k % 5, "ab"[k % 2], k * 1.5) for k in range(40)]
    text, words = begin(("t", "stock", "order", "profit"), lines)
    assert words["reward"].startswith("'profit'")
    assert "[reward.a]\n# base = 0\n# per = 0\n" in text
    assert "[cost.a]" not in text


def test_a_column_of_next_states(begin, filled):
    lines = [(k % 4, "up" if k % 3 else "down", (k + 1) % 4) for k in range(30)]
    _, words = begin(("level", "action", "next_level"), lines)
    assert words["next state"].startswith("'next_level' (its name, beside 'level')")
    assert words["state"].startswith("'level'")
    model = filled()
    assert model.log.report.transitions == 30
    assert model.states.labels == ("0", "1", "2", "3")


def test_times_that_cannot_be_read(begin):
    lines = [(f"{k}.3.2019", "ab"[k % 2], "xy"[k % 2]) for k in range(1, 30)]
    text, words = begin(("date", "state", "action"), lines)
    assert "'date' could be meant, but holds neither numbers nor dates" in words["time"]
    assert '# time = "…"' in text


def test_nothing_to_guess(begin, tmp_path):
    text, words = begin(("x", "y"), [(k * 0.5, k * 0.25) for k in range(40)])
    assert words["action"] == "none (no column looks like a decision)"
    assert "[action]\n# What was decided. Not guessed" in text
    with pytest.raises(InvalidInputError, match=r"\[action\] column is missing"):
        read_model_file(tmp_path / "model.toml")


def test_three_lines(begin, filled):
    begin(("state", "action"), [("a", "x"), ("b", "y"), ("a", "x")])
    assert filled().log.report.transitions == 2


def test_columns_without_values_or_with_one_name(begin):
    text, _ = begin(
        ("state", "action", "x", "x", "empty"),
        [("ab"[k % 2], "cd"[k % 2], 1, 2, "") for k in range(9)],
    )
    assert "These names stand above several columns: 'x'." in text
    assert '"empty"   no values, missing on 9 lines' in text


def test_many_actions_are_better_given_as_a_table(begin):
    text, _ = begin(("state", "action"), [(k % 3, f"a{k % 40}") for k in range(200)])
    assert "[cost]\n# A table with the columns state" in text
    assert "labels =" not in text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nextState", {"next", "state"}),
        ("Bus_IDs 2", {"bus", "ids", "id"}),
        ("miles", {"miles", "mile"}),
        ("x" * 500, {"x" * 200}),
    ],
)
def test_words_of_names(name, words):
    assert words <= words_of(name)


# --- states ---------------------------------------------------------------------------------------


def state_section(text):
    return text[text.index("[state]") : text.index("[action]")]


def test_whole_numbers_with_a_gap_are_listed(begin, filled):
    text, _ = begin(("stock", "order"), [([0, 1, 3][k % 3], "ab"[k % 2]) for k in range(30)])
    assert "labels = [0, 1, 2, 3]" in text
    assert filled().states.ordered


def test_labels_are_kept_as_the_log_writes_them(begin, filled):
    text, _ = begin(
        ("stock", "order"), [(["00", "01", "03"][k % 3], "ab"[k % 2]) for k in range(30)]
    )
    assert "labels" not in state_section(text).replace("Its labels", "")
    assert filled().states.labels == ("00", "01", "03")


def test_readings_far_out_and_readings_that_are_none(begin, filled):
    lines = [(k % 100 + 0.5, "ab"[k % 2]) for k in range(2_000)]
    lines += [(1e6, "a"), ("broken", "b")]
    text, _ = begin(("wear", "act"), lines)
    assert "1 line has no number here and will be dropped." in text
    assert "Nearly all readings (98 %) lie between" in text
    assert '# outside = "clip"' in text
    dropped = [one for one in filled().log.report.dropped if not one.line_kept]
    assert [(one.reason, one.lines) for one in dropped] == [("not a number", 1)]


def test_numbers_too_far_apart_for_bins(begin):
    lines = [((-1.7e308, 1.7e308, k)[k % 3], "ab"[k % 2]) for k in range(99)]
    text, _ = begin(("wear", "act"), lines)
    assert "# bins = { edges = [0, 1, 10, 100] }" in text


@settings(max_examples=50)
@given(
    st.floats(-1e12, 1e12),
    st.floats(0, 1e12),
    st.sampled_from([50, 100]),
    st.booleans(),
)
def test_bins_are_round_and_hold_everything(low, spread, most, whole):
    if whole:
        low, spread = float(round(low)), float(round(spread))
    high = low + spread
    bins = nice_bins(low, high, most, whole=whole)
    if bins is None:
        assert spread < max(1e-9 * abs(low), 1e-290)
        return
    start, width, count = (Fraction(repr(part)) for part in bins)
    assert start <= Fraction(repr(low))
    assert Fraction(repr(high)) <= start + count * width
    assert 1 <= count <= most
    assert float(start).is_integer() or not whole
    mantissa = f"{float(width):e}".split("e")[0].rstrip("0").rstrip(".")
    assert mantissa in ("1", "2", "2.5", "5")
    if spread > most and abs(low) < 1e9:
        assert count >= 20


@pytest.mark.parametrize("value", [0.0, -3.5, 1e300])
def test_a_single_reading(value):
    start, width, count = nice_bins(value, value, 50, whole=False)
    assert count == 1
    assert start <= value <= start + width
    assert math.isfinite(start)


# --- files of all kinds ---------------------------------------------------------------------------


def test_semicolons_and_decimal_commas(begin, filled):
    lines = [(str(k % 90 + 0.25).replace(".", ","), "ab"[k % 2]) for k in range(300)]
    text, _ = begin(("wear", "act"), lines, delimiter=";")
    assert 'delimiter = ";"\ndecimal = ","' in text
    assert filled().log.report.transitions == 299


def test_a_log_in_german_with_decimal_commas_in_one_column(begin):
    lines = [
        ("A1", f"2024-0{month}-01", state, did, cost)
        for month, (state, did, cost) in enumerate(
            [("gut", "nichts", "0"), ("mittel", "nichts", "1,5"), ("alt", "neu", "20")] * 3, 1
        )
    ]
    text, words = begin(("Anlage", "Datum", "Zustand", "Maßnahme", "Kosten"), lines, delimiter=";")
    assert words["state"].startswith("'Zustand'")
    assert words["cost"].startswith("'Kosten'")
    assert 'decimal = ","' in text
    assert "1,234" not in text


def test_commas_that_could_divide_thousands_are_named(begin):
    lines = [("A", day, f"{day},{100 + day}", "go") for day in range(1, 9)]
    text, _ = begin(("unit", "day", "miles", "action"), lines, delimiter=";")
    assert "In 'miles', 1,234 is read as 1.234." in text
    # one decimal is enough to know better
    text, _ = begin(
        ("unit", "day", "miles", "action"), [*lines, ("A", 9, "9,5", "go")], "l.csv", ";"
    )
    assert 'decimal = ","' in text
    assert "1,234" not in text


@pytest.mark.parametrize("name", ["visit", "nr"])
def test_a_column_that_counts_the_lines_of_each_unit_is_the_time(begin, name):
    lines = [(f"p{p}", n, (p + n) % 3, "ab"[n % 2]) for p in range(6) for n in range(8)]
    lines.append(lines[-1])  # a line twice
    _, words = begin(("patient", name, "severity", "drug"), lines)
    assert words["time"].startswith(f"'{name}'")
    assert words["unit"].startswith("'patient'")
    # one that goes back counts nothing
    back = [(p, n % 4 if name == "nr" else n, state, drug) for p, n, state, drug in lines]
    _, words = begin(("patient", name, "severity", "drug"), back)
    assert words["time"].startswith("none" if name == "nr" else "'visit'")


def test_a_stock_is_recognised(begin):
    def shop(most):
        stock, lines = 5, []
        for day in range(60):
            order = (0, 2, 4)[day % 3] if stock < most else 0
            lines.append(("s", day, stock, order))
            stock = max(stock + order - (3 * day) % 5, 0)
        return lines

    lines = shop(6)
    text, _ = begin(("shop", "day", "stock", "order"), lines)
    top = max(stock + order for _, _, stock, order in lines)
    assert f'# kind = "stock"\n# capacity = {top}\n# largest_demand = {2 * top}\n' in text
    assert "after all steps" in text
    assert "# [cost]\n# sold = 0\n" in text
    # neither other names nor a stock that grows by itself
    assert "kind" not in begin(("shop", "day", "level", "order"), lines)[0]
    grows = [(shop, day, 3 * day, 1) for shop, day, _, _ in lines]
    assert "kind" not in begin(("shop", "day", "stock", "order"), grows)[0]


def test_the_suggested_stock_is_a_model(begin, tmp_path):
    lines, stock = [], 4
    for day in range(80):
        order = (0, 3)[stock < 4]
        lines.append(("s", day, stock, order))
        stock = max(stock + order - (7 * day) % 4, 0)
    text, _ = begin(("shop", "day", "stock", "order"), lines)
    # as the comments say: these in place of those above
    head, _, amounts = text.partition("[cost.0]")
    section = head.index("[dynamics]")
    kept = [line[2:] for line in head[section:].splitlines() if re.match(r"# \w+ = [\d\"]", line)]
    chosen = [line for line in kept if line.split()[0] in ("kind", "capacity", "largest_demand")]
    prices = "\n".join(line[2:] for line in amounts.splitlines() if re.match(r"# \w+ = 0", line))
    prices = prices.replace("sold = 0", "sold = -3").replace("base = 0\n", "")
    prices = prices.replace("per = 0\n", "")
    path = tmp_path / "stock.toml"
    path.write_text("\n".join([head[:section], "[dynamics]", *chosen, "[cost]", prices]))
    model = load_model(path)
    assert model.capacity == max(stock + order for _, _, stock, order in lines)


def test_tabs_gzip_and_other_encodings(begin, filled):
    lines = [("prüfen" if k % 2 else "laufen", k % 4) for k in range(30)]
    text, _ = begin(("decision", "level"), lines, name="log.tsv.gz", delimiter="\t")
    assert "delimiter" not in text
    assert filled().log.report.transitions == 29
    text, _ = begin(("Prüfung", "level"), lines, encoding="cp1252")
    assert 'encoding = "cp1252"' in text
    assert filled().actions == ("laufen", "prüfen")


def test_parquet(tmp_path, filled):
    pq = pytest.importorskip("pyarrow.parquet")
    columns = list(zip(*fleet(), strict=True))
    pq.write_table(pa.table(dict(zip(FLEET, columns, strict=True))), tmp_path / "log.parquet")
    write_starting_file(tmp_path / "log.parquet", tmp_path / "model.toml")
    assert filled().groups == ("city", "coach")


def test_a_log_elsewhere(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / "data" / "log.csv").write_text("state,action\n1,a\n2,b\n1,a\n")
    out = tmp_path / "models" / "model.toml"
    start = write_starting_file(tmp_path / "data" / "log.csv", out)
    assert 'file = "../data/log.csv"' in start.text


def test_files_that_are_not_written(tmp_path):
    log, out = tmp_path / "log.csv", tmp_path / "model.toml"
    for content, message in [
        (None, "must be a file that exists"),
        ("", "is empty"),
        ("state,action\n", "has a header only"),
        ("\0\0", "NUL"),
    ]:
        if content is not None:
            log.write_text(content)
        with pytest.raises(InvalidInputError, match=message):
            write_starting_file(log, out)
        assert not out.exists()
    log.write_text("state,action\n1,a\n2,b\n")
    write_starting_file(log, out)
    for target, replace, message in [
        (out, False, "is there already; --force replaces it"),
        (log, True, "must name a file that ends in .toml"),
        (tmp_path / "none" / "model.toml", False, "a folder that exists"),
    ]:
        with pytest.raises(InvalidInputError, match=re.escape(message)):
            write_starting_file(log, target, replace=replace)
    link = tmp_path / "link.toml"
    link.symlink_to(log)
    with pytest.raises(InvalidInputError, match="must not be the log itself"):
        write_starting_file(log, link, replace=True)
    assert log.read_text() == "state,action\n1,a\n2,b\n"
    write_starting_file(log, out, replace=True)


# --- hostile names --------------------------------------------------------------------------------

HOSTILE = (
    '<script>alert("x")</script>',
    "=cmd|' /C calc'!A0",
    'a"]\n[cost]\nfile = "/etc/passwd" # more',
    "back\\slash\\u0041",
    "'''",
    '"""',
    "# comment",
    "a.b = 1",
    "\u202eright to left",
    "snow \u2603 \U0001f600",
    "tab\tand\x7fdelete",
    "{ low = 1 }",
    "-1",
    "&amp;",
)


def test_hostile_names_and_labels(begin, filled, tmp_path):
    state, action = f"state {HOSTILE[2]}", f"action {HOSTILE[0]}"
    lines = [(HOSTILE[k % 5], HOSTILE[k * k % len(HOSTILE)]) for k in range(80)]
    begin((state, action), lines)
    model = filled()
    labels = {label.strip() for _, label in lines}
    assert set(model.actions) == labels
    assert model.states.axes[0].column == state
    assert read_model_file(tmp_path / "model.toml").action.column == action


NASTY = st.text(
    st.sampled_from("ab=+-@\"'\\#[]{}.,;\n\t<>&\u202e\u2603\U0001f600\x1b "), max_size=8
)


def test_any_names_survive(begin, filled):
    @settings(max_examples=20, deadline=None)
    @given(NASTY, NASTY, st.sets(NASTY.map(str.strip).filter(bool), min_size=2, max_size=4))
    def check(state, action, labels):
        state, action, kept = f"state {state}x", f"action {action}x", sorted(labels)
        begin((state, action), [(k % 3, kept[k % len(kept)]) for k in range(12)])
        model = filled()
        assert set(model.actions) == labels
        assert model.states.axes[0].column == state

    check()


def test_no_absolute_path_is_written(begin):
    text, _ = begin(FLEET, fleet())
    assert str(Path.cwd()) not in text
    assert "/tmp" not in text
