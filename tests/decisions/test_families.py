"""Shapes as links: the image of a law in every row, and which supports a shape can have."""

import numpy as np
import pytest

import brmdp
from brmdp.decisions.families import SHAPES, condensed, family_of, locate
from brmdp.pattern import full_pattern, pattern_and_entries
from oracles.learned_prior import image

LEARNED = [shape for shape in SHAPES if shape != "uniform"]


def band(n_states, n_actions, reach, admissible=None):
    near = abs(np.arange(n_states)[:, None] - np.arange(n_states)) <= reach
    table = np.repeat(near[:, None, :], n_actions, axis=1).astype(float)
    return pattern_and_entries(table, "possible", admissible)[0]


def rows_by_hand(family, law):
    pattern = family.pattern
    result = np.zeros((pattern.n_pairs, pattern.n_states))
    for pair in pattern.pairs:
        s, a = divmod(int(pair), pattern.n_actions)
        mine = family.law_of_category == (s if family.name == "actions" else a)
        result[pair] = image(family.name, law[mine], family.labels[mine], s, pattern.n_states)
    return result


@pytest.mark.parametrize("shape", LEARNED)
def test_links_and_kinds_give_the_image_of_the_law(shape):
    rng = np.random.default_rng(1)
    admissible = np.ones((5, 3), dtype=bool)
    admissible[2, 1] = False
    pattern = full_pattern(5, 3, admissible)
    family = family_of(shape, pattern)
    law = family.normalised(rng.gamma(1.0, size=family.n_categories))
    wanted = rows_by_hand(family, law)[pattern.pair_of_transition, pattern.next_states]
    by_links = np.bincount(family.entry, law[family.category], pattern.n_transitions)
    np.testing.assert_allclose(by_links, wanted, rtol=1e-13)
    np.testing.assert_allclose(family.shares(law)[family.kind_of_entry], wanted, rtol=1e-13)
    two = np.stack([law, law[::-1]])
    np.testing.assert_allclose(family.shares(two)[0], family.shares(law), rtol=1e-14)
    # one link per row and category
    links = np.stack([pattern.pair_of_transition[family.entry], family.category])
    assert np.unique(links, axis=1).shape == links.shape


def test_uniform_gives_every_possible_successor_the_same():
    pattern = band(6, 2, 1)
    family = family_of("uniform", pattern)
    share = family.shares(np.zeros(0))[family.kind_of_entry]
    np.testing.assert_allclose(share, 1.0 / pattern.widths[pattern.pair_of_transition])
    assert family.parameters == 0


def test_increments_on_a_band_are_those_within_reach():
    family = family_of("increments", band(7, 1, 2))
    assert family.labels.tolist() == [-2, -1, 0, 1, 2]
    assert family.parameters == 4
    # from state 0, three increments end in state 0
    first = family.entry == locate(family.pattern, np.array([0]), np.array([0]))[0]
    assert sorted(family.labels[family.category[first]]) == [-2, -1, 0]


@pytest.mark.parametrize("shape", LEARNED)
def test_known_rows_rule_out_no_shape_and_keep_their_successor(shape):
    """An action that leads to a state in the middle, and a state where everything ends."""
    table = np.ones((6, 3, 6))
    table[:, 1] = np.eye(6)[3]
    table[5] = np.eye(6)[5]
    family = family_of(shape, pattern_and_entries(table, "possible")[0])
    pattern = family.pattern
    law = family.normalised(np.random.default_rng(2).gamma(1.0, size=family.n_categories))
    by_links = np.bincount(family.entry, law[family.category], pattern.n_transitions)
    share = family.shares(law)[family.kind_of_entry]
    np.testing.assert_allclose(by_links, share, rtol=1e-13)
    wanted = rows_by_hand(family, law)
    for s, a in np.ndindex(6, 3):
        if a == 1 or s == 5:
            wanted[3 * s + a] = np.eye(6)[3 if s < 5 else 5]
    np.testing.assert_allclose(share, wanted[pattern.pair_of_transition, pattern.next_states])
    # the laws are those of a problem in which nothing is known, except where nothing is left
    free = family_of(shape, full_pattern(6, 3))
    alike = np.bincount(free.law_of_category)
    if shape == "increments":
        alike -= 1  # only from the end, five states down were possible
    alike[5 if shape == "actions" else 1] = 1
    np.testing.assert_array_equal(np.bincount(family.law_of_category), alike)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_problem_in_which_everything_is_known(shape):
    table = np.zeros((3, 2, 3))
    table[[0, 1, 2], 0, [1, 2, 0]] = table[[0, 1, 2], 1, [2, 0, 1]] = 1.0
    family = family_of(shape, pattern_and_entries(table, "possible")[0])
    law = family.normalised(family.base)
    np.testing.assert_array_equal(family.shares(law)[family.kind_of_entry], np.ones(6))


def test_an_action_that_is_nowhere_admissible_is_left_alone():
    admissible = np.array([[True, False]] * 4)
    for shape in SHAPES:
        family = family_of(shape, full_pattern(4, 2, admissible))
        law = family.normalised(family.base) if family.n_categories else family.base
        share = family.shares(law)[family.kind_of_entry]
        sums = np.bincount(family.pattern.pair_of_transition, share, 8)
        np.testing.assert_allclose(sums, [1, 0] * 4, atol=1e-14)


def test_the_base_is_jeffreys_up_to_ten_categories_and_never_worth_more_than_five():
    assert np.all(family_of("destinations", full_pattern(4, 1)).base == 0.5)
    family = family_of("destinations", full_pattern(40, 2))
    np.testing.assert_allclose(np.bincount(family.law_of_category, family.base), [5.0, 5.0])


def test_supports_a_shape_can_have():
    near = band(6, 2, 1)
    for shape in ("uniform", "increments", "actions"):
        family_of(shape, near)
    for shape in ("destinations", "staying"):
        with pytest.raises(brmdp.InvalidInputError, match=f"shape='{shape}' needs the same"):
            family_of(shape, near)
    table = np.zeros((4, 1, 4))
    table[:, :, :2] = 1.0  # two destinations
    two, _ = pattern_and_entries(table, "possible")
    family_of("destinations", two)
    with pytest.raises(brmdp.InvalidInputError, match="a possible successor of itself"):
        family_of("staying", two)
    with pytest.raises(brmdp.InvalidInputError, match="shape='increments' needs a set"):
        family_of("increments", two)
    table[np.arange(4), 0, np.arange(4)] = 1.0
    three, _ = pattern_and_entries(table, "possible")
    assert family_of("staying", three).labels.tolist() == [-1, 0, 1]
    table = np.ones((3, 2, 3))
    table[1, 0, 2] = 0.0
    with pytest.raises(brmdp.InvalidInputError, match="all actions of a state"):
        family_of("actions", pattern_and_entries(table, "possible")[0])


@pytest.mark.parametrize("shape", LEARNED)
def test_categories_that_were_not_seen_are_counted_together(shape):
    rng = np.random.default_rng(4)
    family = family_of(shape, full_pattern(5, 2))
    seen = np.sort(rng.choice(family.n_kinds, 4, replace=False))
    smaller, place = condensed(family, seen)
    law = family.normalised(rng.gamma(1.0, size=family.n_categories))
    less = np.bincount(place, law, smaller.n_categories)
    np.testing.assert_allclose(smaller.shares(less), family.shares(law)[seen], rtol=1e-13)
    np.testing.assert_array_equal(smaller.law_of_category[place], family.law_of_category)
    np.testing.assert_allclose(smaller.base.sum(), family.base.sum())
    assert smaller.n_categories < family.n_categories


def test_too_many_increments_ask_for_a_reach(monkeypatch):
    monkeypatch.setattr("brmdp.decisions.families.LARGEST_LINKS", 100)
    with pytest.raises(brmdp.InvalidInputError, match="needs reach"):
        family_of("increments", full_pattern(10, 1))
