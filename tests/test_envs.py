"""The paper's worlds, cell by cell against a second construction, and a few cells by hand."""

import numpy as np
import pytest

import brmdp
from brmdp.envs import frozenlake, riverswim
from oracles import planning as oracle


def assert_same_world(mdp, kernel, rewards):
    built = mdp.kernel()
    assert built.shape == kernel.shape
    np.testing.assert_array_equal(built > 0, kernel > 0)
    np.testing.assert_allclose(built, kernel, rtol=0, atol=2e-16)
    np.testing.assert_array_equal(mdp.rewards, rewards)
    np.testing.assert_array_equal(mdp.transition_rewards, rewards[kernel > 0])
    np.testing.assert_allclose(built.sum(axis=2), 1.0, rtol=0, atol=1e-15)  # rounding of eleven terms


@pytest.mark.parametrize("n", [2, 3, 6, 10])
def test_riverswim_is_the_papers(n):
    mdp = riverswim(n)
    assert_same_world(mdp, oracle.riverswim_kernel(n), oracle.riverswim_rewards(n))
    assert (mdp.n_states, mdp.n_actions, mdp.discount, mdp.start) == (n, 2, 0.9, 0)


@pytest.mark.parametrize("risk", [None, 0.7, 0.9])
def test_frozenlake_is_the_papers(risk):
    mdp = frozenlake(shortcut_risk=risk)
    assert_same_world(mdp, oracle.frozenlake_kernel(risk), oracle.frozenlake_rewards())
    assert (mdp.n_states, mdp.n_actions, mdp.discount, mdp.start) == (16, 4, 0.8, 0)


def test_riverswim_cells_by_hand():
    kernel, rewards = riverswim(6).kernel(), riverswim(6).rewards
    np.testing.assert_allclose(kernel[0, 1], [0.4, 0.6, 0, 0, 0, 0])
    np.testing.assert_allclose(kernel[3, 1], [0, 0, 0.05, 0.6, 0.35, 0])
    np.testing.assert_allclose(kernel[5, 1], [0, 0, 0, 0, 0.4, 0.6])
    np.testing.assert_array_equal(kernel[4, 0], [0, 0, 0, 1, 0, 0])
    assert rewards[5, 1, 5] == 1.0
    assert rewards[5, 1, 4] == 0.0
    assert (rewards[0, 0] == 0.005).all()
    assert np.count_nonzero(rewards) == 7


def test_frozenlake_cells_by_hand():
    kernel = frozenlake(0.9).kernel()
    down, left = 3, 0
    np.testing.assert_allclose(kernel[2, down, [10, 5]], [0.1, 0.9])
    np.testing.assert_allclose(kernel[5, left, [4, 5]], [0.2, 0.8])
    np.testing.assert_allclose(kernel[12, left, 12], 1.0)  # blocked in a corner hole
    np.testing.assert_allclose(kernel[0, left, [0, 4]], [0.75, 0.25])  # left and up are blocked
    ordinary = [0, 1, 2, 3, 4, 6, 8, 9, 10, 13, 14]
    np.testing.assert_allclose(kernel[15][:, ordinary], 1 / 11)
    plain = frozenlake().kernel()
    np.testing.assert_allclose(plain[2, down, [6, 1, 3]], [0.5, 0.25, 0.25])
    differs = np.argwhere((plain != kernel).any(axis=2))
    np.testing.assert_array_equal(differs, [[2, down]])


@pytest.mark.parametrize("theta", [0.0, 1.0])
def test_degenerate_shortcut_keeps_rows_proper(theta):
    mdp = frozenlake(theta)
    np.testing.assert_allclose(mdp.kernel().sum(axis=2), 1.0)
    assert mdp.kernel()[2, 3, 5] == theta


@pytest.mark.parametrize("bad", [-0.1, 1.5, float("nan")])
def test_shortcut_risk_is_checked(bad):
    with pytest.raises(brmdp.InvalidInputError, match="shortcut_risk"):
        frozenlake(bad)


@pytest.mark.parametrize("bad", [0, 1, -3, 2.5])
def test_riverswim_size_is_checked(bad):
    with pytest.raises(brmdp.InvalidInputError, match="n must be"):
        riverswim(bad)
