"""Numbers and sentences that a reader would have taken the wrong way."""

from fractions import Fraction

import numpy as np
import pytest

import brmdp
from brmdp.decisions import (
    Sampler,
    certify,
    compare,
    draws_needed,
    practice,
    value_of_information,
    values_in_draws,
)
from brmdp.decisions.comparison import credible_interval
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


def test_an_interval_from_few_draws_is_not_too_narrow():
    """One more draw lies in it with 95 %, whatever the number of draws, and however they vary."""
    rng = np.random.default_rng(0)
    for n in (100, 200, 1000):
        drawn = rng.gamma(2.0, size=(4_000, n + 1))
        ends = np.array([credible_interval(values[:n]) for values in drawn])
        inside = np.mean((ends[:, 0] <= drawn[:, n]) & (drawn[:, n] <= ends[:, 1]))
        assert abs(inside - 0.95) < 0.01


def test_a_huge_value_does_not_loosen_the_bounds_of_small_ones():
    """Two parts that never meet: one is worth a thousand million times what the other is."""
    possible = np.kron(np.eye(2), np.ones((2, 2)))[:, None, :]
    belief = brmdp.DirichletBelief.uniform(4, 1, possible=possible)
    belief.observe([0, 0, 1, 1, 2, 2, 3, 3] * 20, 0, [0, 1, 0, 1, 2, 3, 2, 3] * 20)
    bounds = [
        certify(belief, [[0.0], [1.0], [0.0], [huge]], 0.9, policy=[0] * 4, nested=False, rng=0)
        for huge in (1.0, 1e9)
    ]
    small, beside_huge = (one.values[:2] for one in bounds)
    np.testing.assert_allclose(beside_huge, small, rtol=0.02)


def test_draws_and_kernels_of_a_sampler_are_checked():
    belief = brmdp.DirichletBelief.uniform(2, 2)
    sampler = Sampler(belief, np.ones((2, 2)), 0.5, [[0, 0]], rng=0)
    for n in (0, -3, 2.5):
        with pytest.raises(brmdp.InvalidInputError, match="n must be a positive integer"):
            sampler.blocks(n)
    even = np.full((3, 8), 0.5)
    assert sampler.evaluate(even).values == pytest.approx(2.0)
    for kernels, message in (
        (even[0], "kernels must have shape"),
        (even * np.nan, "finite"),
        (2 * even, "must sum to one"),
        (even - 1, "must not be negative"),
    ):
        with pytest.raises(brmdp.InvalidInputError, match=message):
            sampler.evaluate(kernels)
    with pytest.raises(brmdp.InvalidInputError, match="rewards must have shape"):
        sampler.evaluate(even, np.ones((2, 4)))
    with pytest.raises(brmdp.InvalidInputError, match="start"):
        sampler.visits([3.0, 0.0])


@pytest.mark.parametrize("distance", [1e-14, 1e-12, 1e-9])
def test_values_next_to_no_discount_keep_to_their_error_bounds(distance):
    """Against exact fractions: two states, and a reward of one in the second."""
    discount = 1.0 - distance
    kernels = np.array([[0.75, 0.25, 0.5, 0.5], [0.125, 0.875, 0.25, 0.75]])
    sampler = Sampler(
        brmdp.DirichletBelief.uniform(2, 1), [[0.0], [1.0]], discount, [[0, 0]], rng=0
    )
    found = sampler.evaluate(kernels)
    g = Fraction(discount)
    for (stay, go, back, keep), values, errors in zip(
        kernels, found.values[:, 0], found.errors[:, 0], strict=True
    ):
        stay, go, back, keep = map(Fraction, (stay, go, back, keep))
        # V0 = g (stay V0 + go V1) and V1 = 1 + g (back V0 + keep V1)
        determinant = (1 - g * stay) * (1 - g * keep) - g * g * go * back
        exact = [g * go / determinant, (1 - g * stay) / determinant]
        for value, true in zip(values, exact, strict=True):
            assert abs(Fraction(value) - true) <= Fraction(errors)
            assert errors < 0.01 * true or distance < 1e-13


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
