"""Model files: every key is checked, and errors name file, line and key."""

import gzip
import math
import os
import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brmdp.errors import InvalidInputError
from brmdp.logs import Bins, Categories
from brmdp.models.file import Figure, read_model_file
from brmdp.models.toml import LARGEST, parse_toml, toml_key, toml_text

GOOD = """\
discount = 0.99                   # per time step of the log
confidence = 0.9
start = 0

[log]
file = "log.csv"
unit = ["model", "bus"]
time = "month"
groups = ["model"]

[state]
column = "miles"
bins = { start = 0, width = 5000, count = 90 }

[action]
column = "decision"

[dynamics]
prior = "learned"
reset = { replace = 0 }

[cost.keep]
per = 1e-5
[cost.replace]
base = 10
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "log.csv").write_text("model,bus,month,miles,decision\n")
    return tmp_path


@pytest.fixture
def read(folder):
    """Read a model file with the given text."""

    def read(text):
        path = folder / "model.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_model_file(path)

    return read


@pytest.fixture
def refused(read):
    """The message with which a text is refused; by default GOOD with one piece replaced."""

    def refused(*pieces):
        text = pieces[0]
        if len(pieces) == 2:
            old, new = pieces
            assert old in GOOD
            text = GOOD.replace(old, new, 1)
        with pytest.raises(InvalidInputError) as caught:
            read(text)
        message = str(caught.value)
        assert len(message) < 400
        assert message.isprintable()
        return message

    return refused


# --- what is read ---------------------------------------------------------------------------------


def test_the_file_of_the_issue(read, folder):
    file = read(GOOD)
    assert (file.discount, file.confidence, file.start) == (0.99, 0.9, 0.0)
    assert (file.level, file.seed, file.title) == (None, 0, "log")
    assert file.log.file == (folder / "log.csv").resolve()
    assert file.log.unit == ("model", "bus")
    assert (file.log.time, file.log.groups, file.log.step) == ("month", ("model",), None)
    assert file.states == (Bins.regular("miles", start=0, width=5000, count=90),)
    assert (file.action.column, file.action.labels, file.action.admissible) == (
        *("decision", None, "all"),
    )
    assert file.dynamics.reset == (("replace", 0.0),)
    assert file.dynamics.prior == "learned"
    keep, replace = file.amounts.actions
    assert (file.amounts.word, keep.action, keep.base, keep.per) == (
        *("cost", "keep", Figure.sure(0.0), Figure.sure(1e-5)),
    )
    assert (replace.action, replace.base) == ("replace", Figure.sure(10.0))
    assert len(file.digest) == 64


def test_all_other_keys(read, folder):
    (folder / "amounts.csv").write_text("")
    file = read("""
        title = "Machines <b>"
        discount = 0.5
        level = 0.2
        seed = 7
        start = ["new", 3]
        [log]
        file = "./log.csv"
        unit = "machine"
        time = "day"
        step = "2 weeks"
        next_state = ["then", "later"]
        delimiter = ";"
        decimal = ","
        missing = ["", "?"]
        [[state]]
        column = "condition"
        labels = ["new", "worn", 3]
        [[state]]
        column = "rain"
        outside = "clip"
        [state.bins]
        edges = [0, 0.5, 10]
        [action]
        column = "did"
        labels = [1, 2.5]
        admissible = "observed"
        [dynamics]
        prior = "uniform"
        strength = 2
        possible = "observed"
        reset.repair = ["new", 0.1]
        ends = ["worn | 0 to 0.5", ["new", 3]]
        [reward]
        file = "amounts.csv"
    """)
    assert (file.title, file.level, file.seed, file.start) == ("Machines <b>", 0.2, 7, ("new", 3.0))
    assert (file.log.unit, file.log.step) == (("machine",), "2 weeks")
    assert file.log.next_state == ("then", "later")
    assert (file.log.delimiter, file.log.decimal, file.log.missing) == (";", ",", ("", "?"))
    assert file.states == (
        Categories("condition", ("new", "worn", "3")),
        Bins("rain", (0.0, 0.5, 10.0), "clip"),
    )
    assert (file.action.labels, file.action.admissible) == (("1", "2.5"), "observed")
    dynamics = file.dynamics
    assert (dynamics.prior, dynamics.strength, dynamics.possible) == ("uniform", 2.0, "observed")
    assert dynamics.reset == (("repair", ("new", 0.1)),)
    assert dynamics.ends == ("worn | 0 to 0.5", ("new", 3.0))
    assert (file.amounts.word, file.amounts.file) == ("reward", (folder / "amounts.csv").resolve())


@pytest.mark.parametrize(
    ("written", "figure"),
    [
        ("10", Figure(10.0, 10.0, 10.0)),
        ("-2.5", Figure(-2.5, -2.5, -2.5)),
        ("{ low = 1, high = 3 }", Figure(2.0, 1.0, 3.0)),
        ("{ low = 1, high = 3, value = 1.5 }", Figure(1.5, 1.0, 3.0)),
        ("{ low = -1.5e308, high = 1.5e308 }", Figure(0.0, -1.5e308, 1.5e308)),
    ],
)
def test_figures(read, written, figure):
    file = read(GOOD.replace("base = 10", f"base = {written}"))
    assert file.amounts.actions[1].base == figure


def test_a_column_of_amounts(read):
    text = GOOD[: GOOD.index("[cost.keep]")]
    file = read(f'{text}[cost]\ncolumn = "paid"\nlow = 0\nhigh = 20.5\n')
    assert (file.amounts.column, file.amounts.low, file.amounts.high) == ("paid", 0.0, 20.5)


def test_a_byte_order_mark_and_lines_of_windows(read, refused):
    text = GOOD.replace("\n", "\r\n").encode("utf-8-sig")
    assert read(text).discount == 0.99
    assert "line 23: [cost.keep] " in refused(text.replace(b"per =", b"pre ="))


def test_tab_separated_files_and_absolute_names(read, folder):
    (folder / "log.tsv").write_text("")
    assert read(GOOD.replace("log.csv", "log.tsv")).log.delimiter_used == "\t"
    assert read(GOOD.replace("log.csv", str(folder / "log.csv"))).log.file.name == "log.csv"


def test_the_title_is_the_name_of_the_log(read, folder):
    (folder / "fleet.2020.csv.gz").write_bytes(gzip.compress(b""))
    assert read(GOOD.replace("log.csv", "fleet.2020.csv.gz")).title == "fleet"


# --- what is refused ------------------------------------------------------------------------------

MORE_THAN_64_BITS = "0x1" + 20 * "0"

REFUSED = [
    ("discount = 0.99", "discuont = 0.99", "line 1: discuont is unknown; did you mean 'discount'?"),
    ("discount = 0.99", "", "discount is missing; it must be a number strictly between 0 and 1"),
    ("0.99", "1.0", "line 1: discount must be a number strictly between 0 and 1; got 1.0"),
    ("0.99", "0", "got 0"),
    ("0.99", "nan", "got nan"),
    ("0.99", "true", "got true"),
    ("0.99", '"0.9"', "got '0.9'"),
    ("confidence = 0.9", "confidence = 90", "line 2: confidence must be a number strictly"),
    ("confidence = 0.9", "level = inf", "line 2: level must be a number strictly"),
    ("start = 0", "start = []", "line 3: start must be a label in quotes or a number, or a list"),
    ("start = 0", "start = true", "line 3: start must"),
    ("start = 0", "seed = -1", "line 3: seed must be a whole number from 0"),
    ("start = 0", "seed = 1.0", "got 1.0"),
    ("start = 0", f"seed = {MORE_THAN_64_BITS}", "line 3: seed must have at most 64 bits"),
    ("start = 0", "title = 3", "line 3: title must be text, in quotes; got 3"),
    ("start = 0", "title = ' '", "line 3: title must be text, not empty"),
    ("start = 0", f"title = '{'x' * 2000}'", "line 3: title must have at most 1,000 characters"),
    ("start = 0", "column = 'a'", "column is unknown; it belongs below [state] or [action]"),
    ("start = 0", "reset = {}", "line 3: reset is unknown; it belongs below [dynamics]"),
    ("[log]", "log = 3\n[cost.x]", "line 5: log must be a table with the key file; got 3"),
    ("[log]", "[[log]]", "line 5: log must be a table"),
    ("[log]", "[lgo]", "line 5: lgo is unknown; did you mean 'log'?"),
    ('file = "log.csv"', "", "line 5: [log] file is missing"),
    ('"log.csv"', "3", "line 6: [log] file must be the name of a file"),
    ('"log.csv"', '"no.csv"', "line 6: [log] file must be the name of a file"),
    ('"log.csv"', '"."', "is not a regular file"),
    ('"log.csv"', '"../../../../../../../etc"', "is not a regular file"),
    ('"log.csv"', '"/dev/zero"', "is not a regular file"),
    ('"log.csv"', '"https://x.org/log.csv"', "does not exist; addresses are not read"),
    ('"log.csv"', '"$HOME/log.csv"', "does not exist"),
    ('"log.csv"', '"a\\u0000b"', "does not exist"),
    ('"log.csv"', f'"{"x" * 900}"', "is no name of a file"),
    ('"month"', '["month"]', "line 8: [log] time must be the name of a column, in quotes"),
    ('["model"]', "[]", "line 9: [log] groups must be the name of a column, or a list of names"),
    ('["model"]', '["model", "model"]', "must not have an entry twice; got 'model' twice"),
    ('["model"]', "[1]", "[log] groups must be the name of a column, or a list"),
    ('unit = ["model", "bus"]', "", "line 9: [log] groups needs unit"),
    ('time = "month"', "step = 1", "line 8: [log] step needs time"),
    ("[log]\n", "[log]\nencoding = 'utf-16'\n", "[log] encoding must be an encoding that contains"),
    ("[log]\n", "[log]\nencoding = 'klingon'\n", "got 'klingon'"),
    ("[log]\n", "[log]\nstep = 0\n", "line 6: [log] step must be a number above 0, or text"),
    ("[log]\n", "[log]\nstep = 'fortnight'\n", "got 'fortnight'"),
    ("[log]\n", "[log]\nstep = '0 days'\n", "got '0 days'"),
    ("[log]\n", "[log]\ndelimiter = '::'\n", "[log] delimiter must be one character"),
    ("[log]\n", "[log]\ndelimiter = '1'\n", "[log] delimiter must be one character"),
    ("[log]\n", "[log]\ndecimal = ';'\n", '[log] decimal must be "." or ","; got \';\''),
    ("[log]\n", "[log]\ndecimal = ','\n", "[log] decimal must not be ',' for both"),
    ("[log]\n", "[log]\nmissing = 'NA'\n", "[log] missing must be a list of texts"),
    ("[log]\n", "[log]\nnext_state = ['a', 'b']\n", "must name one column per column of the state"),
    ("[log]\n", "[log]\ndiscount = 0.9\n", "it belongs at the top of the file"),
    ("[log]\n", "[log]\ncolunm = 0.9\n", "Known here: file, unit, time"),
    ("[state]", "[stat]", "line 11: stat is unknown; did you mean 'state'?"),
    ("[state]\n", "[[state]]\ncolumn='a'\n[[state]]\n", None),
    (
        "[state]\n",
        "[[state]]\ncolumn='miles'\n[[state]]\n",
        "line 14: [[state]] 2: column must not",
    ),
    ("[state]\n", "[[state]]\nlabels=[]\n[[state]]\n", "line 11: [[state]] 1: column is missing"),
    ('column = "miles"\n', "", "line 11: [state] column is missing"),
    ("{ start = 0, width = 5000, count = 90 }", "5", "line 13: [state] bins must be a table such"),
    ("width = 5000", "width = -1", "line 13: [state] bins.width must be a finite number above 0"),
    ("width = 5000", "width = nan", "[state] bins.width must be a finite number above 0; got nan"),
    ("width = 5000", "width = 1e308", "[state] bins.width gives edges beyond the largest number"),
    ("{ start = 0, width = 5000", "{ start = 1e20, width = 1", "[state] bins.width does not make"),
    ("width = 5000, ", "", "line 13: [state] bins.width is missing"),
    ("width = 5000", "widht = 5000", "bins.widht is unknown; did you mean 'width'?"),
    ("count = 90", "count = 1000000000000", "from 1 to 100,000; got 1000000000000"),
    ("count = 90", "count = 90.0", "[state] bins.count must be a whole number"),
    ("count = 90", "edges = [0, 1]", "bins.start is for bins of one width"),
    ("start = 0, width = 5000, count = 90", "edges = [1]", "bins.edges must be a list of 2"),
    ("start = 0, width = 5000, count = 90", "edges = [1, 1]", "got 1 after 1"),
    ("start = 0, width = 5000, count = 90", "edges = [1, '2']", "got '2' after 1"),
    ("start = 0, width = 5000, count = 90", "edges = [1, inf]", "got inf after 1"),
    ("[action]", "labels = ['a']\n[action]", "line 15: [state] labels is for states without bins"),
    ("[action]", "outside = 'keep'\n[action]", '[state] outside must be "drop" or "clip"'),
    ("bins = {", "outside = 'clip' # {", "[state] outside is for bins"),
    ("bins = {", "labels = [] # {", "[state] labels must be a list of one or more labels"),
    ("bins = {", "labels = [true] # {", "[state] labels must be a list of one or more labels"),
    ("bins = {", "labels = ['a', ' a '] # {", "[state] labels are not usable"),
    ("bins = {", f"labels = ['{'x' * 500}'] # {{", "[state] labels are not usable"),
    ("[action]", "[actions]", "line 15: actions is unknown; did you mean 'action'?"),
    ('column = "decision"', 'colum = "decision"', "line 16: [action] colum is unknown"),
    ('column = "decision"', 'column = "miles"', "[action] column must not be a column of unit"),
    ("[action]\n", "[action]\nadmissible = 'some'\n", '[action] admissible must be "all" or'),
    ('"learned"', '"lerned"', 'line 19: [dynamics] prior must be "learned" or "uniform" or'),
    ("prior =", "strength = 3 #", "[dynamics] strength is for the prior"),
    ("prior =", "reach = 0 #", "[dynamics] reach must be a whole number from 1"),
    ("prior =", "reach = 1\npossible = 'all' #", "[dynamics] reach cannot stand beside"),
    ("prior =", "shape = 'round' #", "[dynamics] shape must be"),
    ("prior =", "prior = 'uniform'\nshape = 'staying' #", "[dynamics] shape is for the prior"),
    ("prior =", "prior = 'uniform'\npooling = 'partial' #", "[dynamics] pooling must be"),
    ("prior =", "ends = 3 #", "[dynamics] ends must be a list of states"),
    ("{ replace = 0 }", "0", "line 20: [dynamics] reset must be a table such as"),
    ("{ replace = 0 }", "{ replace = nan }", "line 20: [dynamics] reset.replace must be a label"),
    ("[cost.keep]", "[reward.keep]", "line 22: reward cannot stand beside [cost]"),
    ("[cost.keep]\nper = 1e-5\n", "[cost]\nkeep = 3\n", "[cost] keep cannot stand beside"),
    ("per = 1e-5", "#", "line 22: [cost.keep] must have base, per or both"),
    ("per = 1e-5", "per = '1'", "[cost.keep] per must be a finite number or { low"),
    ("per = 1e-5", "per = -inf", "[cost.keep] per must be a finite number or { low"),
    ("per = 1e-5", "per = {low = 1}", "line 23: [cost.keep] per.high is missing"),
    ("per = 1e-5", "per = {low = 1, high = 1}", "[cost.keep] per.high must be a number above low"),
    ("per = 1e-5", "per = {low = 1, high = 2, value = 3}", "per.value must be a number from low"),
    ("per = 1e-5", "slope = 1e-5", "[cost.keep] slope is unknown. Known here: base, per"),
    ("[cost.keep]", '[cost." "]', '[cost." "] must name an action'),
    ("[log]\n", "[log]\n[log]\n", "line 6: not valid TOML"),
    ("start = 0", "confidence = 0.8", "line 3: not valid TOML: Cannot overwrite a value, in"),
    ("start = 0", "start = ", "line 3: not valid TOML: Invalid value"),
    ("start = 0", "start = 'a", "line 3: not valid TOML"),
    ("start = 0", f"start = {'[' * 5000}{']' * 5000}", "model.toml is nested too deeply"),
    ("start = 0", f"start = {'9' * 5000}", "model.toml cannot be read: Exceeds the limit"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_errors_name_line_and_key(refused, read, old, new, message):
    if message is None:
        assert len(read(GOOD.replace(old, new, 1)).states) == 2
        return
    found = refused(old, new)
    assert found.startswith("model.toml")
    assert message in found


def test_all_actions_without_amount_are_named_at_once(refused):
    message = refused(GOOD.replace("per = 1e-5", "").replace("base = 10", ""))
    assert "line 22: [cost.keep] must have base, per or both" in message
    assert message.endswith("so must [cost.replace] (line 24)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[cost]\n", "[cost] must have a table for each action"),
        ("", "[cost] or [reward] is missing"),
        ("[cost]\ncolumn = 'a'\n", "[cost] low is missing"),
        ("[cost]\ncolumn = 'a'\nlow = 2\nhigh = 1\n", "[cost] high must be a number above low, 2"),
        ("[cost]\nfile = 'log.csv'\nlow = 2\n", "[cost] low cannot stand beside file"),
        ("[cost]\nfile = 'none.csv'\n", "[cost] file must be the name of a file"),
        ("[cost]\nfiel = 'log.csv'\n", "[cost] fiel is unknown; did you mean 'file'?"),
    ],
)
def test_amounts_given_otherwise(refused, text, message):
    assert message in refused(GOOD[: GOOD.index("[cost.keep]")] + text)


def test_hostile_names_are_shown_on_one_line(refused):
    name = "<script>alert(1)</script>\\u0000\\u202e\\n"
    message = refused("[cost.keep]", f'[cost."{name}"]\nx = 1')
    assert "x is unknown" in message
    assert "\n" not in message
    assert len(refused("[cost.keep]", f'[cost."{"y" * 900}"]\nx = 1')) < 250


def test_files_that_are_no_model_files(folder, read, refused):
    for path, message in [
        (folder / "none.toml", "cannot be read: No such file"),
        (folder, "is not a file"),
        ("a\0b", "cannot be read"),
        (3.5, "path must be the name of a file; got 3.5"),
        (folder / "log.csv", "log.csv is not a model file; if it is a log, 'brmdp init'"),
    ]:
        with pytest.raises(InvalidInputError, match=re.escape(message)):
            read_model_file(path)
    assert "model.toml, line 2: this is not text in UTF-8" in refused(b"\n\xff\xfe")
    assert "at most 1,048,576 bytes" in refused(b"#" * (LARGEST + 1))
    read(GOOD + "#" * (LARGEST - len(GOOD)))
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InvalidInputError, match="is not a file"):
        read_model_file(pipe)


# --- lines and texts ------------------------------------------------------------------------------

HARD = '''\
# comment with [brackets] and a = 1
a."b.c".'d' = 1
"quoted \\" key" = """
x = 3
\\""" [not.a.table]"""
lit = \'\'\'
y = 4\'\'\'
list = [ # comment ]
  1, "]", [2, 3], { z = [
    4] },
]
when = 1979-05-27 07:32:00
last = 'a#b' # c
[t . u]
v = { w = { x = 1, y = "}" } }
[[many]]
p = 1
[many.sub]
q = 2
[[many]]
[[many.inner]]
r = 3
[t.more]
s = "\\\\"
'''


def test_lines_of_keys():
    lines = parse_toml(HARD.encode(), "x").lines
    assert {path: line for path, line in lines.items() if path[-1] != 0} == {
        ("a",): 2,
        ("a", "b.c"): 2,
        ("a", "b.c", "d"): 2,
        ('quoted " key',): 3,
        ("lit",): 6,
        ("list",): 8,
        ("list", 1): 9,
        ("list", 2): 9,
        ("list", 2, 1): 9,
        ("list", 3): 9,
        ("list", 3, "z"): 9,
        ("when",): 12,
        ("last",): 13,
        ("t",): 14,
        ("t", "u"): 14,
        ("t", "u", "v"): 15,
        ("t", "u", "v", "w"): 15,
        ("t", "u", "v", "w", "x"): 15,
        ("t", "u", "v", "w", "y"): 15,
        ("many",): 16,
        ("many", 0, "p"): 17,
        ("many", 0, "sub"): 18,
        ("many", 0, "sub", "q"): 19,
        ("many", 1): 20,
        ("many", 1, "inner"): 21,
        ("many", 1, "inner", 0, "r"): 22,
        ("t", "more"): 23,
        ("t", "more", "s"): 24,
    }


def paths(value, path=()):
    """All key paths of a parsed file."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key)
            yield from paths(item, (*path, key))
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield (*path, k)
            yield from paths(item, (*path, k))


def test_every_key_has_a_line():
    assert set(paths(tomllib.loads(HARD))) == set(parse_toml(HARD.encode(), "x").lines)


@given(st.text(max_size=20))
def test_text_survives_being_written(text):
    written = toml_text(text)
    assert written.isprintable()
    assert tomllib.loads(f"a = {written}") == {"a": text}
    assert tomllib.loads(f"[{toml_key(text)}]") == {text: {}}


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.integers(0, 9) | st.text(max_size=5) | st.floats(allow_nan=False),
        max_size=5,
    )
)
def test_lines_of_any_keys(values):
    text = "".join(
        f"{toml_key(key)} = {toml_text(value) if isinstance(value, str) else repr(value)} # '\"\n\n"
        for key, value in values.items()
    )
    top = parse_toml(text.encode(), "x")
    assert top.values == values
    assert top.lines == {(key,): 2 * k + 1 for k, key in enumerate(values)}


def test_a_figure_without_doubt():
    assert not math.isnan(Figure.sure(1.0).low)
