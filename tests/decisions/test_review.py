"""Numbers and sentences that a reader would have taken the wrong way."""

import numpy as np
import pytest

import brmdp
from brmdp.decisions import (
    certify,
    compare,
    draws_needed,
    practice,
    value_of_information,
    values_in_draws,
)
from brmdp.planning.text import at_least, at_most

REWARDS = [[0.0, 0.0], [1.0, 1.0]]


@pytest.fixture
def belief():
    return brmdp.DirichletBelief([[[9, 1], [1, 9]], [[9, 1], [1, 9]]])


def test_the_certificate_of_a_practice_allows_for_its_own_doubt(belief):
    done = practice([[0, 1], [0, 1]])
    for given in ({"policy": done}, {"candidates": {"now": done}}):
        found = certify(belief, REWARDS, 0.5, start=0, **given, draws=100_000, rng=0)
        assert found.policy_drawn
        assert "the bound allows for that" in str(found)
        values = values_in_draws(
            belief, REWARDS, 0.5, {"now": done}, start=0, draws=50_000, rng=1
        ).values
        assert 0.07 < (values < found.value).mean() <= 0.1
    fixed = certify(belief, REWARDS, 0.5, start=0, policy=done.mean, draws=100_000, rng=0)
    assert not fixed.policy_drawn
    assert fixed.value > found.value + 0.1


def test_one_practice_is_one_unknown(belief):
    done = practice([[3, 1], [1, 1]])
    same = compare(belief, REWARDS, 0.5, done, done, start=0, draws=200, rng=0)
    assert same.gain.mean == 0.0
    assert same.interval == (0.0, 0.0)


def test_data_are_not_paid_for_what_could_be_done_without_them():
    """State 3 cannot be reached, so nothing seen there is worth anything."""
    concentration = np.zeros((4, 2, 4))
    concentration[0, 0, [1, 2]] = (9000, 1000)
    concentration[0, 1, [1, 2]] = (1000, 9000)
    concentration[1, :, 1] = concentration[2, :, 2] = 1
    concentration[3, :, 1] = concentration[3, :, 2] = 1
    rewards = np.zeros((4, 2, 4))
    rewards[[0, 3], :, 1] = 1
    found = value_of_information(
        brmdp.DirichletBelief(concentration),
        rewards,
        0.9,
        pairs=[(3, 0)],
        transitions=5,
        candidates={"bad": [1, 0, 0, 0]},
        start=0,
        draws=200,
        rng=0,
    )
    assert found.name == "mean plan"
    assert found.sample.mean == pytest.approx(0.0, abs=1e-12)


def test_nothing_to_decide_is_not_a_loss():
    belief = brmdp.DirichletBelief.uniform(2, 1)
    found = value_of_information(
        belief, [[0.0], [1.0]], 0.5, pairs=[(0, 0)], transitions=1, start=0, draws=100, rng=0
    )
    assert "below zero" not in str(found)
    assert "In no simulated case" in str(found)


def test_nearly_all_draws_are_not_all():
    belief = brmdp.DirichletBelief([[[27, 15], [9, 27]], [[5, 5], [1, 9]]])
    rng = np.random.default_rng(0)
    found = compare(belief, REWARDS, 0.5, [1, 1], [0, 1], start=0, rng=rng)
    count = round(found.better * found.gain.draws)
    assert 0 < count < found.gain.draws
    assert f"better in {count} of {found.gain.draws} posterior draws" in str(found)
    assert f"better in {count} of {found.gain.draws} draws" in repr(found)


def test_looks_go_up_to_the_budget():
    """A quantile next to a jump of the law needs many draws, and the budget allows them."""

    def kernel(p):
        return np.array([[[p, 1 - p]], [[0.0, 1.0]]])

    belief = brmdp.ScenarioBelief(np.array([kernel(0.9), kernel(0.05)]), weights=[0.91, 0.09])
    found = certify(
        belief, [[1.0], [0.0]], 0.9, policy=[0, 0], start=0, draws=100_000, nested=False, rng=3
    )
    assert found.draws == 100_000 or found.gap_reached
    assert found.value == pytest.approx(1.0 / (1.0 - 0.9 * 0.9), rel=1e-9)


def test_more_draws_than_can_be_taken_are_refused(belief):
    assert draws_needed(1e-50) > 1e51
    with pytest.raises(brmdp.InvalidInputError, match=r"needs at least .* draws"):
        certify(belief, REWARDS, 0.5, 0.999999999, method="sampled", start=0, rng=0)


class Rounded:
    """A practice whose rows are off by rounding."""

    mean = np.array([[0.5, 0.5], [0.5, 0.5]])

    def draw(self, n, *, rng):
        return np.full((n, 2, 2), 0.5 * (1.0 + 9e-9))


def test_drawn_policies_are_rescaled(belief):
    gamma = 1.0 - 1e-6
    found = values_in_draws(
        belief, np.ones((2, 2)), gamma, {"p": Rounded()}, start=0, draws=100, rng=0
    )
    assert (1.0 - gamma) * found.values == pytest.approx(np.ones((100, 1)), rel=1e-8)


def test_policies_that_would_be_dropped_are_refused_or_kept(belief):
    with pytest.raises(brmdp.InvalidInputError, match="names that differ as text"):
        values_in_draws(belief, REWARDS, 0.5, {1: [1, 1], "1": [0, 0]}, start=0, draws=100, rng=0)
    rewards = [[0.0, 1e20], [0.0, 0.0]]
    tiny = [[1.0, 1e-17], [1.0, 0.0]]
    found = values_in_draws(belief, rewards, 0.0, {"p": tiny}, start=0, draws=100, rng=0)
    assert found.values == pytest.approx(np.full((100, 1), 1000.0))


def test_counts_that_would_overflow_are_refused():
    for counts in ([[1e19, 1.0]], [[2.0**62, 2.0**62]]):
        with pytest.raises(brmdp.InvalidInputError, match="counts of at most"):
            practice(counts)


def test_bounds_are_never_rounded_towards_more():
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(2000) * 10.0 ** rng.integers(-12, 12, size=2000)
    edges = np.array([0.0, 1.0, -1.0, 0.99999, -0.99999, 9.99996, 1e-300, 123456.0, -9999.6])
    for value in (*numbers, *edges):
        low, high = float(at_least(value)), float(at_most(value))
        assert low <= value <= high
        assert high - low <= 2e-3 * abs(value)
    assert at_least(0.61526458) == "0.6152"
    assert at_most(1.04e-6, 2) == "1.1e-06"
