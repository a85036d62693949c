"""Targets of the lake against quadrature and simulation, the order statistic against sorting."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brmdp import InvalidInputError
from brmdp.continuous import LakeModel, LakeParameters
from brmdp.continuous.device import compiled
from brmdp.continuous.fitted_q import targets, uncertainty
from brmdp.continuous.lake import CENTRES, GOAL, TRUTH, cells
from brmdp.continuous.network import Layer, forward, initial_network
from brmdp.continuous.order_statistic import order_statistics
from oracles import continuous_lake, continuous_targets

DISCOUNT = 0.8
MODEL = LakeModel()

PARAMETERS = LakeParameters(
    slip=np.array(
        [(0.5, 0.25, 0.25), (0.1, 0.2, 0.7), (1.0, 0.0, 0.0), (0.0, 0.9, 0.1), (0.3, 0.3, 0.4)]
    ),
    mobility=np.array([0.2, 0.0, 1.0, 0.7, 0.05]),
    spread=np.array([0.5, 0.25, 1.7, 40.0, 1e4]),
)
"""The truth, short movements, long ones, and two from far out in the Pareto tail."""

STATES = np.concatenate(
    [
        CENTRES,
        np.random.default_rng(3).uniform(0.0, 4.0, (12, 2)),
        # corners, borders, and ends of movements on borders
        [
            (0.0, 0.0),
            (4.0, 4.0),
            (0.0, 4.0),
            (4.0, 0.0),
            (1.0, 2.0),
            (3.0, 3.0),
            (2.25, 1.25),
            (0.75, 3.999),
            (2.0, 0.5),
        ],
    ]
).astype(np.float32)


def stacked(parameters):
    return jax.tree.map(lambda part: np.asarray(part, dtype=np.float32), parameters)


@compiled("value")
def lake_targets(value, states, draws):
    return MODEL.targets(value, states, draws, DISCOUNT)


def cubic(states, xp):
    """Cubic in each coordinate, with jumps between all cells; the lattice integrates it exactly."""
    corner = xp.minimum(xp.floor(states), 3.0)
    x, y = (states - corner).T
    jump = 0.1 * ((corner[:, 0] * 7 + corner[:, 1] * 5) % 4)
    return jump + 0.4 * x**3 * y - 0.3 * x * y**3 + 0.2 * x**2 - 0.25 * y + 0.1


def cubic_value(states):
    return cubic(states, jnp)


def by_quadrature(value, states, parameters, pieces=1):
    """(n, 4, B) by the oracle; ``value`` works on NumPy arrays (n, 2)."""
    expected = np.empty((len(states), 4, len(parameters.mobility)))
    reset = continuous_targets.reset_mean(value, DISCOUNT)
    for n, state in enumerate(states.astype(np.float64)):
        for a in range(4):
            for b, (slip, mobility, spread) in enumerate(zip(*parameters, strict=True)):
                if cells(state) == GOAL:
                    expected[n, a, b] = reset
                else:
                    expected[n, a, b] = continuous_lake.backup(
                        value, state, a, DISCOUNT, slip, mobility, spread, pieces=pieces
                    )
    return expected


def rough_network(seed=5):
    """As steep as a fitted one: its values range over about one, with kinks everywhere."""
    network = initial_network((20, 64, 64, 4), rng=np.random.default_rng(seed))
    return (*network[:-1], Layer(0.4 * network[-1].weight, network[-1].bias))


def network_value(network):
    layers = [tuple(np.asarray(part, dtype=np.float64) for part in layer) for layer in network]

    def value(states):
        looks = [continuous_targets.lake_features(state) for state in np.atleast_2d(states)]
        return continuous_targets.network_values(layers, looks).max(axis=1)

    return value


# --- features -------------------------------------------------------------------------------------


def test_features_are_the_papers_twenty():
    expected = [continuous_targets.lake_features(state) for state in STATES]
    np.testing.assert_array_equal(np.asarray(jax.jit(MODEL.features)(STATES)), np.float32(expected))


def test_the_model_tells_what_fitting_needs():
    assert MODEL.n_actions == 4
    assert MODEL.centres.shape == (15, 2)
    assert not MODEL.known(MODEL.centres).any()
    np.testing.assert_array_equal(MODEL.known(CENTRES), np.arange(16) == GOAL)
    sampled = MODEL.sample_states(4000, rng=np.random.default_rng(0))
    counts = np.bincount(cells(sampled), minlength=16)
    assert abs(counts - 250).max() < 4.5 * np.sqrt(250)
    assert MODEL.bounds(0.8) == pytest.approx((0.0, 1 / 0.36))
    assert LakeModel() == LakeModel(2)
    assert hash(LakeModel()) == hash(LakeModel(2))
    with pytest.raises(InvalidInputError, match="panels must be a positive integer; got 0"):
        LakeModel(0)


# --- targets --------------------------------------------------------------------------------------


@pytest.mark.long
def test_piecewise_cubic_values_are_integrated_exactly():
    found = np.asarray(lake_targets(cubic_value, STATES, stacked(PARAMETERS)))
    expected = by_quadrature(lambda states: cubic(states, np), STATES, PARAMETERS)
    assert found.shape == expected.shape
    assert np.ptp(expected) > 0.5
    np.testing.assert_allclose(found, expected, rtol=0, atol=4e-6)


@pytest.mark.long
def test_targets_of_a_network_and_their_order_of_accuracy():
    network, states = rough_network(), STATES[14:30]
    expected = by_quadrature(network_value(network), states[:6], PARAMETERS)
    worst = {}
    for panels in (1, 2):
        found = np.asarray(
            targets(LakeModel(panels), network, states, stacked(PARAMETERS), DISCOUNT)
        )[:6]
        worst[panels] = abs(found - expected).max()
    # kinks make the rule of second order; the reference's own error is far smaller
    assert worst[2] < 2e-3
    assert worst[2] < worst[1] / 2


@pytest.mark.long
def test_targets_agree_with_simulated_transitions():
    network, rng, n = rough_network(), np.random.default_rng(11), 50_000
    value = jax.jit(lambda states: forward(network, MODEL.features(states)).max(axis=1))
    slippery = PARAMETERS._replace(slip=np.tile(TRUTH.slip, (5, 1)))
    found = np.asarray(
        targets(MODEL, network, CENTRES.astype(np.float32), stacked(slippery), DISCOUNT)
    )
    scores = []
    for b in (0, 2, 3):
        for cell in (0, 2, 5, 6, 10, 11, 14, 15):
            for action in (0, 3):
                states = np.tile(CENTRES[cell], (n, 1))
                law = PARAMETERS.mobility[b], PARAMETERS.spread[b]
                following, rewards = continuous_lake.step(states, np.full(n, action), rng, *law)
                worth = rewards + DISCOUNT * np.asarray(value(following.astype(np.float32)))
                error = worth.std() / np.sqrt(n)
                assert error < 3e-3
                # the lattice's own error is added to the error bar
                scores.append((found[cell, action, b] - worth.mean()) / (error + 2e-4))
    assert np.abs(scores).max() < 4.0
    assert np.sqrt(np.mean(np.square(scores))) < 1.3


@pytest.mark.long
def test_from_the_goal_all_draws_and_actions_agree():
    found = np.asarray(lake_targets(cubic_value, STATES, stacked(PARAMETERS)))[
        cells(STATES) == GOAL
    ]
    assert len(found) > 2
    assert np.ptp(found) == 0.0
    expected = continuous_targets.reset_mean(lambda states: cubic(states, np), DISCOUNT)
    single_precision = float(np.finfo(np.float32).eps)
    assert found[0, 0, 0] == pytest.approx(expected, rel=16 * single_precision)


def test_a_tail_that_leaves_the_map_contributes_nothing():
    """However long the movement may be, G tends to staying put like 1/θ."""
    spread = np.array([10.0, 30.0, 1e3, 1e5, 1e9])
    draws = LakeParameters(np.tile(TRUTH.slip, (5, 1)), np.full(5, 0.2), spread)
    chosen = cells(STATES) != GOAL
    stay = DISCOUNT * cubic(STATES.astype(float), np)[chosen, None]
    found = np.asarray(lake_targets(cubic_value, STATES, stacked(draws)))[chosen]
    gained = (found - stay[..., None]) * spread
    assert abs(gained[..., 0]).max() > 0.1
    np.testing.assert_allclose(gained[..., 1], gained[..., 0], rtol=0, atol=1e-4)
    np.testing.assert_allclose(gained[..., 2], gained[..., 0], rtol=0, atol=1e-3)
    np.testing.assert_allclose(
        found[..., 4], np.broadcast_to(stay, found.shape[:2]), rtol=0, atol=1e-6
    )


@pytest.mark.long
def test_where_every_movement_leaves_the_map_nothing_is_uncertain():
    arguments = MODEL, rough_network(), CENTRES.astype(np.float32), stacked(PARAMETERS), DISCOUNT
    unsure, sampled = np.asarray(uncertainty(*arguments)), np.asarray(targets(*arguments))
    np.testing.assert_allclose(unsure, sampled.astype(np.float64).std(axis=2), rtol=1e-4, atol=1e-7)
    certain = {(int(s), int(a)) for s, a in np.argwhere(unsure == 0.0)}
    # holes 7 and 11 to the right, hole 12 to the left and down; and the goal
    assert certain == {(7, 1), (11, 1), (12, 0), (12, 3), *((15, a) for a in range(4))}
    assert np.sort(unsure.ravel())[8] > 1e-4


# --- order statistics -----------------------------------------------------------------------------

ROWS, LENGTH = 320, 800

ordered = compiled()(order_statistics)


def shapes():
    rng = np.random.default_rng(7)
    size = (ROWS, LENGTH)
    yield "normal", rng.normal(size=size)
    yield "heavy tail", rng.pareto(0.5, size)
    yield "ties", rng.integers(0, 4, size)
    yield "constant", np.full(size, 0.3)
    yield "many scales", rng.normal(size=size) * 10.0 ** rng.integers(-30, 30, size)
    yield "neighbouring floats", 1.0 + np.spacing(np.float32(1.0)) * rng.integers(0, 5, size)
    yield "two clusters", np.where(rng.random(size) < 0.5, 0.0, 1.0) + 1e-6 * rng.random(size)


@pytest.mark.long
@pytest.mark.parametrize(("name", "values"), [pytest.param(*case, id=case[0]) for case in shapes()])
def test_order_statistics_are_those_of_sorting_bit_for_bit(name, values):
    rng = np.random.default_rng(8)
    values = values.astype(np.float32)
    counts = rng.integers(1, LENGTH + 1, ROWS)
    ranks = rng.integers(1, counts + 1)
    ranks[:3], counts[:3] = (1, 800, 1), (800, 800, 1)
    found = np.asarray(ordered(values, ranks, counts))
    expected = [
        np.sort(row[:count])[rank - 1]
        for row, rank, count in zip(values, ranks, counts, strict=True)
    ]
    np.testing.assert_array_equal(found, np.float32(expected))


@pytest.mark.long
def test_order_statistics_of_odd_lengths_and_shapes():
    values = np.random.default_rng(9).normal(size=(2, 3, 13)).astype(np.float32)
    ranks, counts = np.full((2, 3), 4), np.full((2, 3), 13)
    found = np.asarray(ordered(values, ranks, counts))
    np.testing.assert_array_equal(found, np.sort(values, axis=2)[:, :, 3])


@pytest.mark.long
@pytest.mark.parametrize("length", [13, 800])
def test_order_statistics_of_nan_are_nan(length):
    values = np.random.default_rng(10).normal(size=(length + 1, length)).astype(np.float32)
    values[np.arange(length), np.arange(length)] = (
        np.nan
    )  # each place in turn; none in the last row
    ranks, counts = np.full(length + 1, 4), np.full(length + 1, length)
    found = np.asarray(ordered(values, ranks, counts))
    assert np.isnan(found[:-1]).all()
    assert found[-1] == np.sort(values[-1])[3]


@pytest.mark.long
def test_order_statistics_look_at_nothing_beyond_the_count():
    values = np.full((2, 40), np.nan, dtype=np.float32)
    values[:, :5] = np.arange(5)
    np.testing.assert_array_equal(ordered(values, np.array([1, 5]), np.array([5, 5])), [0.0, 4.0])
