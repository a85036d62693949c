"""How readings become states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brmdp.errors import InvalidInputError
from brmdp.logs import Bins, Categories, StateSpace

MILES = Bins.regular("miles", start=0, width=5000, count=90)


def test_bins_are_half_open_and_the_last_is_closed():
    bins = Bins("x", (0, 1, 3))
    assert [bins.index(value) for value in (0, 0.999, 1, 2.9, 3)] == [0, 0, 1, 1, 1]
    for value in (-0.001, 3.001, np.nan, np.inf):
        with pytest.raises(InvalidInputError, match="x must lie in 0 to 3"):
            bins.index(value)


def test_clipped_bins_take_what_is_outside():
    bins = Bins("x", (0, 1, 3), "clip")
    assert [bins.index(value) for value in (-9, 99)] == [0, 1]


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8, unique=True),
    st.lists(st.floats(-2e6, 2e6), max_size=20),
    st.sampled_from(["drop", "clip"]),
)
def test_places_agree_with_a_scan(edges, values, outside):
    edges = sorted(float(edge) + 0.0 for edge in set(edges))
    bins = Bins("x", edges, outside)
    for value, place in zip(values, bins.place(np.array(values, dtype=float)), strict=True):
        inside = [k for k in range(len(edges) - 1) if edges[k] <= value < edges[k + 1]]
        if value == edges[-1]:
            inside = [len(edges) - 2]
        if outside == "clip" and not inside:
            inside = [0 if value < edges[0] else len(edges) - 2]
        assert place == (inside[0] if inside else -1)


def test_regular_edges_are_computed_in_decimals():
    assert Bins.regular("x", start=0, width=0.1, count=10).edges[3] == 0.3
    assert Bins.regular("x", start=-0.3, width=0.1, count=6).edges[-1] == 0.3


def test_labels_of_bins_tell_close_edges_apart():
    bins = Bins("x", (1.0, 1.0 + 1e-15, 2.0))
    assert len(set(bins.labels)) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bins("x", (0,)), "at least two numbers"),
        (lambda: Bins("x", (0, 0)), "must increase"),
        (lambda: Bins("x", (0, np.nan)), "must be finite"),
        (lambda: Bins("x", "0123"), "sequence of numbers"),
        (lambda: Bins("x", (0, "1")), r"edges\[1\] must be a number"),
        (lambda: Bins("x", (0, 1), "keep"), 'outside must be "drop" or "clip"'),
        (lambda: Bins("", (0, 1)), "name of a column"),
        (lambda: Bins.regular("x", start=0, width=0, count=3), "width must be a positive"),
        (lambda: Bins.regular("x", start=0, width=1, count=0), "count must be a positive"),
        (lambda: Bins.regular("x", start=0, width=1, count=10**9), "at most 100,000 states"),
        (lambda: Bins.regular("x", start=1e17, width=1, count=3), "tell the edges apart"),
        (lambda: Bins.regular("x", start=np.inf, width=1, count=3), "start must be a finite"),
        (lambda: Categories("x", ("a", "a")), "must be distinct"),
        (lambda: Categories("x", ("a", " ")), "1 to 200 characters"),
        (lambda: Categories("x", ("a" * 201,)), "1 to 200 characters"),
        (lambda: Categories("x", "abc"), "sequence of labels"),
        (lambda: Categories("x", ()), "at least one"),
        (lambda: StateSpace((Categories("x"),)), "must have labels"),
        (lambda: StateSpace(()), "at least one"),
        (lambda: StateSpace((MILES,) * 3), "at most 100,000 states"),
        (
            lambda: StateSpace((Categories("x", ("a", "a | b")), Categories("y", ("b | c", "c")))),
            "stay distinct",
        ),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_one_axis_of_bins():
    space = StateSpace((MILES,))
    assert (space.n_states, space.ordered) == (90, True)
    assert space.labels[1] == "5000 to 10000"
    np.testing.assert_array_equal(space.numbers, 5000.0 * np.arange(90))
    np.testing.assert_array_equal(space.midpoints, 5000.0 * np.arange(90) + 2500)
    assert space.edges == MILES.edges
    assert space.index("5000 to 10000") == space.index(5000) == space.index([5000]) == 1


def test_categories_that_are_numbers_are_ordered():
    space = StateSpace((Categories("n", ("-1", "0", "2.50", "1e3")),))
    assert space.ordered
    np.testing.assert_array_equal(space.numbers, [-1, 0, 2.5, 1000])
    assert [space.index(value) for value in (-1, 0.0, 2.5, 1000, "2.50")] == [0, 1, 2, 3, 2]
    with pytest.raises(InvalidInputError, match="n must be one of"):
        space.index(3)


def test_categories_with_text_have_numbers_where_they_are():
    space = StateSpace((Categories("n", ("1", "many")),))
    assert not space.ordered
    assert space.numbers is not None
    np.testing.assert_array_equal(space.numbers, [1.0, np.nan])
    assert StateSpace((Categories("n", ("few", "many")),)).numbers is None
    assert StateSpace((Categories("n", ("few", "many")),)).midpoints is None


def test_a_number_that_two_labels_stand_for_must_be_given_as_a_label():
    space = StateSpace((Categories("n", ("01", "1.0")),))
    with pytest.raises(InvalidInputError, match="same number"):
        space.index(1)
    assert space.index("1.0") == 1


def test_several_axes():
    space = StateSpace((Categories("look", ("good", "worn")), Bins("rain", (0, 1, 9))))
    assert not space.ordered
    assert space.edges is None
    assert space.labels[2] == "worn | 0 to 1"
    np.testing.assert_array_equal(space.numbers, [0, 1, 0, 1])
    assert space.index(["worn", 5]) == space.index(("worn", "1 to 9")) == 3
    for wrong in ("worn", 5, ["worn"], ["worn", 5, 5], ["torn", 5], ["worn", 10]):
        with pytest.raises(InvalidInputError):
            space.index(wrong)
    both = StateSpace((Bins("a", (0, 1)), Bins("b", (0, 1))))
    assert both.numbers is None


def test_errors_name_the_nearest_label_and_escape_what_came():
    space = StateSpace((Categories("look", ("good", "worn")),))
    with pytest.raises(InvalidInputError, match=r"got 'wron' \(perhaps 'worn'\?\)"):
        space.index("wron")
    with pytest.raises(InvalidInputError) as caught:
        space.index("\x1b[31m" + "x" * 10_000)
    assert len(str(caught.value)) < 200
    assert "\x1b" not in str(caught.value)


def test_spaces_compare_by_their_axes():
    assert StateSpace((MILES,)) == StateSpace([MILES])
    assert len({StateSpace((MILES,)), StateSpace((MILES,))}) == 1
    assert repr(StateSpace((MILES,))).startswith("StateSpace(90 states of miles: '0 to 5000'")
