"""The network, its gradient and fitted Q iteration against plain NumPy and the true lake."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brmdp import InvalidInputError
from brmdp.agents import EveryStep
from brmdp.continuous import (
    FittedQ,
    LakeBelief,
    LakeModel,
    optimal_values,
    policy_values,
    posterior_mean,
)
from brmdp.continuous.fitted_q import Ranks, fit, initial_learner
from brmdp.continuous.lake import CENTRES
from brmdp.continuous.network import forward, initial_network
from drifting import module as drifting
from oracles import continuous_targets

pytestmark = pytest.mark.long

MODEL = drifting.DriftModel()
DISCOUNT = 0.9


def plain(network):
    return [tuple(np.asarray(part, dtype=np.float64) for part in layer) for layer in network]


def test_the_first_network_has_the_sizes_and_spread_it_should():
    network = initial_network((20, 64, 64, 4), rng=np.random.default_rng(0))
    assert [layer.weight.shape for layer in network] == [(20, 64), (64, 64), (64, 4)]
    assert all(layer.weight.dtype == jnp.float32 and not layer.bias.any() for layer in network)
    # the standard error of a variance is about √(2/n) times the variance
    assert network[1].weight.var() == pytest.approx(2 / 64, rel=4 * np.sqrt(2 / 4096))


def test_network_and_gradient_against_hand_written_backpropagation():
    rng = np.random.default_rng(1)
    network = initial_network((20, 64, 64, 4), rng=rng)
    network = jax.tree.map(
        lambda part: np.float32(np.asarray(part) + 0.1 * rng.normal(size=part.shape)), network
    )
    features, wanted = rng.normal(size=(50, 20)), rng.normal(size=(50, 4))
    values = jax.jit(forward)(network, features.astype(np.float32))
    np.testing.assert_allclose(
        values, continuous_targets.network_values(plain(network), features), rtol=0, atol=2e-5
    )

    def loss(weights):
        return jnp.mean(
            (forward(weights, features.astype(np.float32)) - wanted.astype(np.float32)) ** 2
        )

    found_loss, gradient = jax.jit(jax.value_and_grad(loss))(network)
    expected_loss, expected = continuous_targets.loss_and_gradient(plain(network), features, wanted)
    assert float(found_loss) == pytest.approx(expected_loss, rel=1e-5)
    for found, by_hand in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(found, by_hand, rtol=0, atol=1e-5 * abs(by_hand).max())


def drift_targets(network, state, current):
    """(A, B) targets of the example, one number at a time."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    found = []
    for push in drifting.PUSHES:
        row = []
        for theta in current:
            following = np.clip(state[0] + push + theta + drifting.NOISE * nodes, -1.0, 1.0)
            values = continuous_targets.network_values(
                network, np.stack([following, abs(following)], axis=1)
            ).max(axis=1)
            row.append((weights / weights.sum()) @ (1.0 - following**2 + DISCOUNT * values))
        found.append(row)
    return np.array(found)


SETTINGS = FittedQ(
    hidden=(8, 6), states=5, iterations=3, gradient_steps=4, draws=20, learning_rate=0.01
)
RNG = np.random.default_rng(4)
NETWORK = initial_network((2, 8, 6, 2), rng=RNG)
STATES = RNG.uniform(-1.0, 1.0, (3, 5, 1))
CURRENT = RNG.normal(0.0, 0.2, 20)


def fitted(network, ranks=None):
    draws = drifting.Drift(CURRENT.astype(np.float32))
    return fit(
        MODEL,
        SETTINGS,
        initial_learner(SETTINGS, network),
        STATES.astype(np.float32),
        draws,
        ranks,
        DISCOUNT,
    )


@pytest.mark.parametrize("quantile", [True, False])
def test_fitted_q_iteration_against_plain_numpy(quantile):
    ranks = None
    if quantile:
        counts = np.random.default_rng(5).integers(1, 21, (3, 5, 2))
        ranks = Ranks(
            np.random.default_rng(6).integers(1, counts + 1).astype(np.int32),
            counts.astype(np.int32),
        )
    learner, losses = fitted(NETWORK, ranks)
    expected, expected_losses = continuous_targets.fitted_q(
        plain(NETWORK),
        STATES,
        lambda weights, state: drift_targets(weights, state, CURRENT),
        lambda state: [state[0], abs(state[0])],
        None if ranks is None else np.stack(ranks, axis=-1),
        MODEL.bounds(DISCOUNT),
        SETTINGS.gradient_steps,
        continuous_targets.Adam(plain(NETWORK), SETTINGS.learning_rate),
    )
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
    for found, by_hand in zip(
        jax.tree.leaves(learner.network), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(found, by_hand, rtol=0, atol=2e-4)
    # it has moved by much more than it is off
    moved = [
        abs(a - b).max()
        for a, b in zip(jax.tree.leaves(learner.network), jax.tree.leaves(NETWORK), strict=True)
    ]
    assert min(moved) > 0.02


def test_targets_are_clipped():
    """A network that predicts a thousand gets targets of 1/(1 − γ) = 10, not of 900."""
    boastful = (*NETWORK[:-1], NETWORK[-1]._replace(bias=jnp.full(2, 1e3, jnp.float32)))
    _, losses = fitted(boastful)
    values = continuous_targets.network_values(
        plain(boastful), np.concatenate([STATES[0], abs(STATES[0])], axis=1)
    )
    assert losses[0] == pytest.approx(np.mean((values - 10.0) ** 2), rel=1e-5)


def test_a_belief_without_doubt_is_planned_almost_optimally():
    """Fitted Q finds the optimal policy of the true lake, up to what a small network resolves."""
    sure = LakeBelief((5e7, 2.5e7, 2.5e7), (2e7, 8e7), (1e8, 0.5))
    settings = FittedQ(draws=1, first_rounds=60)
    agent = posterior_mean(sure, LakeModel(), 0.8, fitting=settings, restart=EveryStep(), rng=0)
    best = optimal_values(0.8).at(CENTRES)
    followed = policy_values(agent.policy_preferences(), 0.8).at(CENTRES)
    assert (best - followed).mean() < 0.004
    np.testing.assert_allclose(agent.q_values(CENTRES).max(axis=1), best, rtol=0, atol=0.05)
    assert agent.report.residual < 0.03


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hidden": 64}, r"hidden must be a tuple of positive integers; got 64"),
        ({"hidden": (64, 0)}, "hidden must be a positive integer; got 0"),
        ({"learning_rate": -1e-3}, "learning_rate must be a positive finite number; got -0.001"),
        ({"learning_rate": float("nan")}, "learning_rate must be a positive finite number"),
        ({"states": 0}, "states must be a positive integer; got 0"),
        ({"iterations": 2.5}, "iterations must be a positive integer; got 2.5"),
        ({"gradient_steps": "8"}, "gradient_steps must be a positive integer; got '8'"),
        ({"first_rounds": True}, "first_rounds must be a positive integer; got True"),
        ({"replay_share": 1.5}, r"replay_share must lie in \[0, 1\]; got 1.5"),
        ({"replay_share": float("nan")}, r"replay_share must lie in \[0, 1\]; got nan"),
        ({"replay_capacity": 0}, "replay_capacity must be a positive integer; got 0"),
        ({"draws": 0}, "draws must be a positive integer; got 0"),
    ],
)
def test_bad_settings(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        FittedQ(**arguments)


def test_settings_are_values():
    assert FittedQ(hidden=[64, 64]) == FittedQ()
    assert hash(FittedQ()) == hash(FittedQ())
    assert FittedQ(**dataclasses.asdict(FittedQ(states=7))) == FittedQ(states=7)
