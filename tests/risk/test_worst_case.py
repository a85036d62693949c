"""Worst cases over weighted L1 balls, against linear programs and plain value iteration."""

import numpy as np
import pytest

import brmdp
from brmdp.risk import WorstCase
from brmdp.risk.worst_case import least_mean
from oracles import batch as oracle
from problems import dense, inadmissible


def a_ball(rng):
    """A row, weights, a radius and targets, some of them with ties and zeros."""
    n = int(rng.integers(1, 9))
    centre = rng.dirichlet(np.full(n, 0.5))
    if rng.random() < 0.3:
        centre = np.where(centre < centre.max(), 0.0, 1.0)
        centre /= centre.sum()
    weights = np.ones(n) if rng.random() < 0.4 else rng.uniform(0.05, 3.0, n)
    targets = 10.0 * rng.normal(size=n)
    if rng.random() < 0.3:
        targets = np.round(targets / 5.0)
    return centre, weights, rng.uniform(0.0, 2.2), targets


@pytest.mark.long
def test_the_least_mean_is_that_of_the_linear_program():
    rng = np.random.default_rng(1)
    for _ in range(150):
        centre, weights, radius, targets = a_ball(rng)
        row, least = least_mean(centre, weights, radius, targets)
        assert least == pytest.approx(oracle.least_mean(centre, weights, radius, targets), abs=1e-9)
        assert row @ targets == pytest.approx(least, abs=1e-11)
        assert row.sum() == pytest.approx(1.0, abs=1e-12)
        assert row.min() >= -1e-15
        assert weights @ np.abs(row - centre) <= radius + 1e-12


def test_by_hand():
    centre, targets = np.array([0.5, 0.3, 0.2]), np.array([10.0, 2.0, 0.0])
    # a quarter of the mass goes from the best to the worst
    row, least = least_mean(centre, np.ones(3), 0.5, targets)
    np.testing.assert_allclose(row, [0.25, 0.3, 0.45])
    assert least == pytest.approx(3.1)
    # moving to the third is dear: (10 − 2)/2 a unit of distance beats 10/(1 + 9)
    row, least = least_mean(centre, np.array([1.0, 1.0, 9.0]), 0.5, targets)
    np.testing.assert_allclose(row, [0.25, 0.55, 0.2])
    assert least == pytest.approx(3.6)


@pytest.mark.parametrize("radius", [0.0, 2.0, 50.0])
def test_extremes(radius):
    centre, targets = np.array([0.2, 0.8]), np.array([3.0, 7.0])
    least = least_mean(centre, np.ones(2), radius, targets)[1]
    assert least == pytest.approx(6.2 if radius == 0.0 else 3.0)


def test_larger_balls_are_worse_and_targets_translate():
    rng = np.random.default_rng(2)
    for _ in range(50):
        centre, weights, radius, targets = a_ball(rng)
        least = least_mean(centre, weights, radius, targets)[1]
        assert least_mean(centre, weights, radius + 0.1, targets)[1] <= least + 1e-12
        higher = targets + rng.uniform(0.0, 1.0, targets.size)
        assert least_mean(centre, weights, radius, higher)[1] >= least - 1e-12
        assert least_mean(centre, weights, radius, targets + 5.0)[1] == pytest.approx(least + 5.0)


@pytest.mark.long
@pytest.mark.parametrize("weighted", [False, True])
def test_plans_are_those_of_value_iteration(weighted):
    case = dense(4)
    pattern = case.belief.pattern
    rng = np.random.default_rng(3)
    radii = rng.uniform(0.0, 0.8, (pattern.n_states, pattern.n_actions))
    weights = rng.uniform(0.5, 1.5, pattern.n_transitions) if weighted else None
    plan = brmdp.plan(
        case.belief, case.rewards, case.discount, risk=WorstCase(radii, weights=weights)
    )
    assert plan.status == "converged"
    shape = (pattern.n_states, pattern.n_actions, pattern.n_states)
    values = oracle.robust_values(
        case.belief.mean(),
        pattern.dense(case.belief.gather_rewards(case.rewards)),
        case.discount,
        radii,
        np.ones(shape) if weights is None else pattern.dense(weights),
    )
    np.testing.assert_allclose(plan.values, values, atol=1e-7)


def test_a_ball_of_radius_zero_is_its_centre():
    case = inadmissible(5)
    still = brmdp.plan(case.belief, case.rewards, case.discount, risk=WorstCase(0.0))
    mean = brmdp.plan(case.belief, case.rewards, case.discount, risk=brmdp.Mean())
    np.testing.assert_allclose(still.values, mean.values, atol=1e-7)
    np.testing.assert_array_equal(still.policy, mean.policy)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"radius": -0.1}, "radius must not be negative"),
        ({"radius": float("nan")}, "radius"),
        ({"radius": [[0.1, -1.0]]}, r"got -1.0 at \(0, 1\)"),
        ({"radius": 0.1, "weights": [1.0, 0.0]}, "weights must be positive"),
        ({"radius": 0.1, "weights": [1.0, float("inf")]}, "weights"),
        ({"radius": 0.1, "centre": [1.1, -0.1]}, "centre must not be negative"),
    ],
)
def test_bad_balls_are_refused(given, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        WorstCase(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"radius": [0.1, 0.2]}, "radius must be a number or have shape"),
        ({"radius": 0.1, "weights": [1.0, 2.0]}, "weights must hold one number per possible"),
        ({"radius": 0.1, "centre": [1.0, 0.0, 1.0]}, "centre must hold one number per possible"),
        ({"radius": 0.1, "centre": [0.9, 0.0, 1.0, 0.0]}, "centre must sum to one"),
    ],
)
def test_balls_must_fit_the_belief(given, message):
    belief = brmdp.DirichletBelief.uniform(2, 1)
    with pytest.raises(brmdp.InvalidInputError, match=message):
        brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=WorstCase(**given))


def test_it_says_what_it_is():
    assert repr(WorstCase(0.2)) == "WorstCase(0.2)"
    assert repr(WorstCase([[0.2]], weights=[1.0])) == "WorstCase(array(1, 1), weighted)"
