"""Logged practice: counts, their posterior, and states that were never seen."""

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp.decisions import Practice, practice


def test_counts_columns_and_transitions_agree():
    rng = np.random.default_rng(0)
    states, actions = rng.integers(4, size=50), rng.integers(3, size=50)
    following = rng.integers(4, size=50)
    counts = np.zeros((4, 3, 4), int)
    for s, a, t in zip(states, actions, following, strict=True):
        counts[s, a, t] += 1
    one = practice(counts)
    two = practice(counts.sum(axis=2))
    three = practice(states, actions, n_states=4, n_actions=3)
    for found in (one, two, three):
        np.testing.assert_array_equal(found.counts, counts.sum(axis=2))
        np.testing.assert_allclose(found.mean.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        one.mean, (counts.sum(axis=2) + 1 / 3) / (counts.sum(axis=(1, 2))[:, None] + 1)
    )


def test_posterior_of_one_state():
    found = practice([[7, 2, 0], [1, 1, 1]], prior=3.0)
    draws = found.draw(4000, rng=1)
    assert draws.shape == (4000, 2, 3)
    np.testing.assert_allclose(draws.sum(axis=2), 1.0)
    assert stats.kstest(draws[:, 0, 0], stats.beta(8, 4).cdf).pvalue > 1e-5
    np.testing.assert_array_equal(draws, found.draw(4000, rng=1))


def test_inadmissible_actions_and_unseen_states():
    mask = np.array([[True, False], [True, True], [False, True]])
    found = practice([[4, 0], [0, 0], [0, 1]], admissible=mask)
    np.testing.assert_allclose(found.mean, [[1, 0], [0.5, 0.5], [0, 1]])
    np.testing.assert_array_equal(found.never_seen, [1])
    assert "Never seen: 1 of the states (1)" in " ".join(str(found).split())
    assert "not practice" in " ".join(str(found).split())
    draws = found.draw(10, rng=0)
    assert (draws[:, ~mask] == 0).all()
    assert isinstance(found, Practice)
    assert "1 state never seen" in repr(found)
    assert "Never" not in str(practice([[1, 0], [0, 2]]))


def test_bad_input():
    for arguments, named, message in (
        (([[1, -1]],), {}, "not negative"),
        (([[1, 0.5]],), {}, "whole numbers"),
        (([[1, np.nan]],), {}, "finite"),
        (([1, 2],), {}, "shape"),
        (([[1, 2]],), {"n_states": 3}, "n_states=3"),
        ((np.full((2, 2, 2), -1),), {}, "not negative"),
        (([0, 1], [0, 1]), {}, "n_states and n_actions"),
        (([0, 5], [0, 1]), {"n_states": 2, "n_actions": 2}, "state"),
        (([0, 1], [0, 7]), {"n_states": 2, "n_actions": 3}, "action"),
        (([0, 1], [0]), {"n_states": 2, "n_actions": 3}, "one length"),
        (([[1, 2]],), {"admissible": [[True, False]]}, "rules it out"),
        (([[0, 0]],), {"admissible": [[False, False]]}, "every action"),
        (([[0, 0]],), {"admissible": [[1, 0]]}, "booleans"),
        (([[0, 0]],), {"prior": 0.0}, "prior"),
        (([[0, 0]],), {"prior": float("inf")}, "prior"),
    ):
        with pytest.raises(brmdp.InvalidInputError, match=message):
            practice(*arguments, **named)
    with pytest.raises(brmdp.InvalidInputError, match="n must"):
        practice([[1, 0]]).draw(0)
