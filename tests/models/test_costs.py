"""Costs and rewards of a model file as arrays, in the file's own sign."""

import re

import numpy as np
import pytest

from brmdp.errors import InvalidInputError
from brmdp.logs import Bins, Categories, StateSpace
from brmdp.models.costs import Costs, resolve_costs
from brmdp.models.file import read_model_file

HEAD = """\
discount = 0.99
[log]
file = "log.csv"
[state]
column = "wear"
[action]
column = "did"
"""
WEAR = StateSpace((Bins.regular("wear", start=0, width=5, count=3),))
MANY = StateSpace((Bins.regular("wear", start=0, width=1, count=10_000),))
WORDS = StateSpace((Categories("wear", ("new", "worn")),))


@pytest.fixture
def resolve(tmp_path):
    """Resolve the amounts in a text, with a table of amounts beside it."""
    (tmp_path / "log.csv").write_text("wear,did\n")

    def resolve(text, states=WEAR, actions=("keep", "replace"), table=None, head=HEAD, **options):
        (tmp_path / "model.toml").write_text(head + text)
        if table is not None:
            content = table if isinstance(table, bytes) else table.encode()
            (tmp_path / "amounts.csv").write_bytes(content)
        return resolve_costs(read_model_file(tmp_path / "model.toml"), states, actions, **options)

    return resolve


@pytest.fixture
def refused(resolve):
    def refused(text, message, *arguments, **options):
        with pytest.raises(InvalidInputError, match=re.escape(message)) as caught:
            resolve(text, *arguments, **options)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 400

    return refused


# --- base and per ---------------------------------------------------------------------------------


def test_base_and_per(resolve):
    costs = resolve("[cost.replace]\nbase = 10\nper = -0.5\n[cost.keep]\nper = 2\n")
    np.testing.assert_array_equal(costs.amounts, [[0, 10], [10, 7.5], [20, 5]])
    assert (costs.word, costs.sign, costs.low, costs.high) == ("cost", -1, None, None)
    assert list(costs.alternatives()) == []
    assert costs.words == (
        "The cost of keep is 2 × the lower edge of wear.",
        "The cost of replace is 10 + -0.5 × the lower edge of wear.",
    )


def test_rewards_of_labels_that_are_numbers(resolve):
    states = StateSpace((Categories("wear", ("3", "-1.5")),))
    costs = resolve("[reward.keep]\nper = 2\n[reward.replace]\nbase = 0\n", states)
    np.testing.assert_array_equal(costs.amounts, [[6, 0], [-3, 0]])
    assert costs.sign == 1
    assert costs.words == ("The reward of keep is 2 × wear.", "The reward of replace is 0.")


def test_low_and_high(resolve):
    costs = resolve(
        "[cost.keep]\nbase = { low = 0, high = 2 }\nper = { low = 1, high = 2, value = 1 }\n"
        "[cost.replace]\nbase = 10\n"
    )
    np.testing.assert_array_equal(costs.amounts, [[1, 10], [6, 10], [11, 10]])
    np.testing.assert_array_equal(costs.low, [[0, 10], [5, 10], [10, 10]])
    np.testing.assert_array_equal(costs.high, [[2, 10], [12, 10], [22, 10]])
    ends = {end.words: end.amounts[:, 0].tolist() for end in costs.alternatives()}
    assert ends == {
        "base of keep 0 instead of 1": [0, 5, 10],
        "base of keep 2 instead of 1": [2, 7, 12],
        "per of keep 1 instead of 1": [1, 6, 11],
        "per of keep 2 instead of 1": [1, 11, 21],
    }
    assert all((end.amounts[:, 1] == 10).all() for end in costs.alternatives())
    assert costs.words[0] == (
        "The cost of keep is 1 (between 0 and 2) + 1 (between 1 and 2) × the lower edge of wear."
    )


def test_the_worst_amounts_in_the_ranges(resolve):
    """Against all corners; where a state's number is negative, a steeper slope is a lower cost."""
    states = StateSpace((Categories("wear", ("3", "-2", "0")),))
    keep, renew = "base = { low = 0, high = 2 }\nper = { low = -1, high = 4 }\n", "base = 10\n"
    for word, extreme in (("cost", max), ("reward", min)):
        found = resolve(f"[{word}.keep]\n{keep}[{word}.replace]\n{renew}", states)
        worst = [
            [extreme(base + per * number for base in (0, 2) for per in (-1, 4)), 10]
            for number in (3, -2, 0)
        ]
        np.testing.assert_array_equal(found.worst, worst)
        assert (found.low <= found.amounts).all()
        assert (found.amounts <= found.high).all()
    assert resolve("[cost.keep]\nbase = 1\n[cost.replace]\nbase = 2\n").worst is None


def test_several_columns_of_which_one_has_numbers(resolve):
    states = StateSpace((Categories("rain", ("wet", "dry")), Bins("wear", (0, 4, 9))))
    costs = resolve("[cost.keep]\nper = 1\n[cost.replace]\nbase = 1\n", states)
    np.testing.assert_array_equal(costs.amounts[:, 0], [0, 4, 0, 4])


def test_a_column_of_the_log(resolve):
    costs = resolve("[cost]\ncolumn = 'paid'\nlow = 0\nhigh = 7\n")
    assert (costs.column, costs.bounds, costs.amounts) == ("paid", (0.0, 7.0), None)
    assert list(costs.alternatives()) == []
    assert "between 0 and 7" in costs.words[0]


def test_amounts_by_action_that_are_refused(refused):
    keep = "[cost.keep]\nbase = 1\n"
    refused(keep, "line 8: [cost] must have a table for every action; missing: 'replace'")
    refused(
        keep + "[cost.replcae]\nbase = 1",
        "line 10: [cost.replcae] is no action of the log; did you mean 'replace'?",
    )
    refused(
        "[cost.keep]\nper = 1\n[cost.replace]\nbase = 1\n",
        "line 9: [cost.keep] per needs states with a number",
        WORDS,
    )
    refused(
        "[cost.keep]\nper = 1\n[cost.replace]\nbase = 1\n",
        "[cost.keep] per needs a number in every state; 'new' has none",
        StateSpace((Categories("wear", ("1", "new")),)),
    )
    refused(
        "[cost.keep]\nper = 1e308\n[cost.replace]\nbase = 1\n",
        "[cost.keep] must be finite in every state; it is too large in '5 to 10'",
    )
    many = tuple(str(k) for k in range(10_000))
    refused(keep, "needs at most 20,000,000 pairs", MANY, many)
    refused(keep, "'5', '6', '7', '8' and 9,991 more", WEAR, ("keep", *many[1:]))


# --- a table --------------------------------------------------------------------------------------

FILE = "[cost]\nfile = 'amounts.csv'\n"
TABLE = """\
action,state,value
keep,0 to 5,1
keep, 7 ,2

replace,0 to 5,1e1
keep,10 to 15,3
replace,14,-4.5
replace,5 to 10,0
"""


def test_a_table(resolve):
    costs = resolve(FILE, table=TABLE)
    np.testing.assert_array_equal(costs.amounts, [[1, 10], [2, 0], [3, -4.5]])
    assert costs.words == ("The cost of every state and action stands in amounts.csv.",)
    assert (costs.low, costs.high) == (None, None)


def test_a_table_by_next_state(resolve):
    table = "state,action,next state,value\n"
    table += "new,keep,,1\nnew,keep,worn,2\nworn,keep,worn,3\nworn,keep,new,4\n"
    table += "new,replace,,5\nworn,replace,,6\n"
    costs = resolve(FILE, WORDS, table=table)
    expected = [[[1, 2], [5, 5]], [[4, 3], [6, 6]]]
    np.testing.assert_array_equal(costs.amounts, expected)


def test_a_table_with_bounds_and_a_decimal_comma(resolve):
    text = FILE.replace("[cost]", "[reward]")
    table = "state;action;value;low;high\nnew;keep;1,5;1;2\nworn;keep;;1;2\n"
    table += "new;replace;1;;\nworn;replace;7;7;9\n"
    head = HEAD.replace("[state]", "delimiter = ';'\ndecimal = ','\n[state]")
    costs = resolve(text, WORDS, table=table, head=head)
    np.testing.assert_array_equal(costs.amounts, [[1.5, 1], [1.5, 7]])
    np.testing.assert_array_equal(costs.low, [[1, 1], [1, 7]])
    np.testing.assert_array_equal(costs.high, [[2, 1], [2, 9]])
    assert [end.words for end in costs.alternatives()] == [
        "all amounts of amounts.csv at their low ends",
        "all amounts of amounts.csv at their high ends",
    ]
    plain = resolve(text, WORDS, table=table.replace(",", ".").replace(";", ","))
    np.testing.assert_array_equal(plain.high, costs.high)


def test_pairs_that_need_no_amount(resolve, refused):
    table = "state,action,value\nnew,keep,1\nworn,replace,2\n"
    needed = np.array([[True, False], [False, True]])
    costs = resolve(FILE, WORDS, table=table, needed=needed)
    np.testing.assert_array_equal(costs.amounts, [[1, 0], [0, 2]])
    message = "amounts.csv must have a value for every (state, action); missing: ('new', 'replace')"
    refused(FILE, message, WORDS, table=table)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "amounts.csv must have the columns state, action, value"),
        ("state,action\n", "must have the columns state, action, value"),
        ("state,action,value,value\n", "must not have two columns 'value'"),
        ("state,action,value,nxt\n", "the column 'nxt' is unknown"),
        ("state,action,value\nnew,keep\n", "amounts.csv, line 2: must have 3 entries; got 2"),
        ("state,action,value\nnew,kep,1\n", "line 2: action 'kep' is no action of the log; did"),
        ("state,action,value\n\nnev,keep,1\n", "amounts.csv, line 3: state: wear must be one of"),
        ("state,action,value\n,keep,1\n", "amounts.csv, line 2: state: wear must be one of"),
        ("state,action,value\nnew,keep,nan\n", "line 2: value must be a finite number; got 'nan'"),
        ("state,action,value\nnew,keep,1_0\n", "value must be a finite number; got '1_0'"),
        ("state,action,value\nnew,keep,1e999\n", "value must be a finite number; got '1e999'"),
        ("state,action,value\nnew,keep,=1+1\n", "value must be a finite number; got '=1+1'"),
        ("state,action,value\nnew,keep,\n", "line 2: must have a value, or low and high"),
        ("state,action,value,low\nnew,keep,1,1\n", "line 2: must have a value, or low and high"),
        ("state,action,value,low,high\nnew,keep,3,1,2\n", "must have low ≤ value ≤ high; got 1, 3"),
        ("state,action,value\nnew,keep,1\nnew,keep,1\n", "line 3: line 2 is about the same"),
        ("state,action,value\nnew,keep,1\n", "('new', 'replace'), ('worn', 'keep'), ('worn', '"),
        (
            "state,action,next_state,value\nnew,keep,new,1\n",
            "('new', 'keep', 'worn'), ('new', 'replace', 'new'), ('new', 'replace', 'worn') and 4",
        ),
        ("state,action,next_state,value\nnew,keep,x,1\n", "line 2: next_state: wear must be one"),
        ('state,action,value\nnew,keep,"1\n', "amounts.csv is not a CSV table"),
        (b"state,action,value\n\xff,keep,1\n", "amounts.csv is not text in UTF-8"),
        (f"state,action,value\n{'x' * 500},keep,1\n", "line 2: state: wear must be one of"),
        (f"state,action,value\n{'x' * 200_000},keep,1\n", "amounts.csv is not a CSV table"),
    ],
)
def test_tables_that_are_refused(refused, table, message):
    refused(FILE, message, WORDS, table=table)


def test_tables_too_large(refused):
    table = "state,action,next_state,value\n0,keep,0,1\n"
    refused(FILE, "line 9: [cost] file needs at most 20,000,000 triples", MANY, table=table)


def test_costs_of_python_code():
    costs = Costs("reward", np.ones((2, 2)))
    assert costs.sign == 1
    assert list(costs.alternatives()) == []
