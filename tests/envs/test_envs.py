"""The paper's worlds, cell by cell against a second construction, and a few cells by hand."""

import tracemalloc

import numpy as np
import pytest

import brmdp
from brmdp import theory
from brmdp.envs import frozenlake, inventory, riverswim
from oracles import planning as oracle


def assert_same_world(mdp, kernel, rewards):
    built = mdp.kernel()
    assert built.shape == kernel.shape
    np.testing.assert_array_equal(built > 0, kernel > 0)
    np.testing.assert_allclose(built, kernel, rtol=0, atol=2e-16)
    np.testing.assert_array_equal(mdp.rewards, rewards)
    np.testing.assert_array_equal(mdp.transition_rewards, rewards[kernel > 0])
    np.testing.assert_allclose(
        built.sum(axis=2), 1.0, rtol=0, atol=1e-15
    )  # rounding of eleven terms


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


# --- large ones -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 6, 10])
def test_riverswim_has_the_bits_of_a_dense_construction(n):
    """Kernel, order of entries and rewards are those of a dense array filled cell by cell."""
    kernel = np.zeros((n, 2, n))
    kernel[np.arange(n), 0, np.maximum(np.arange(n) - 1, 0)] = 1.0
    kernel[0, 1, [0, 1]] = 0.40, 0.60
    for s in range(1, n - 1):
        kernel[s, 1, [s - 1, s, s + 1]] = 0.05, 0.60, 0.35
    kernel[n - 1, 1, [n - 2, n - 1]] = 0.40, 0.60
    rewards = np.zeros((n, 2, n))
    rewards[0, 0, :] = 0.005
    rewards[n - 1, 1, n - 1] = 1.0
    dense, built = brmdp.TabularMDP(kernel, rewards, 0.9), riverswim(n)
    assert built.pattern.same_as(dense.pattern)
    assert built.probabilities.tobytes() == dense.probabilities.tobytes()
    assert built.transition_rewards.tobytes() == dense.transition_rewards.tobytes()
    assert built.rewards.tobytes() == dense.rewards.tobytes()


def peak_memory(make):
    tracemalloc.start()
    try:
        return make(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_long_river_takes_no_more_memory_than_it_needs():
    n = 30_000
    mdp, peak = peak_memory(lambda: riverswim(n))
    assert peak < 50e6  # a dense kernel alone would take 14 GB
    assert mdp.pattern.n_transitions == n + 3 * (n - 2) + 4
    rewards = mdp.rewards
    assert rewards.shape == (2 * n, n)
    np.testing.assert_array_equal(
        rewards[[0], :].toarray(), 0.005
    )  # whatever follows, as in a short one
    assert rewards[2 * n - 1, n - 1] == 1.0
    assert rewards.nnz == n + 1


@pytest.mark.parametrize("n", [1414, 1415])
def test_dense_and_sparse_rewards_of_a_river_are_the_same(n):
    mdp = riverswim(n)
    assert isinstance(mdp.rewards, np.ndarray) == (n == 1414)
    paid = np.flatnonzero(mdp.transition_rewards)
    np.testing.assert_array_equal(mdp.transition_rewards[paid], [0.005, 1.0])
    np.testing.assert_array_equal(paid, [0, mdp.pattern.n_transitions - 1])


def test_a_large_inventory_takes_no_more_memory_than_it_needs():
    problem, peak = peak_memory(
        lambda: brmdp.envs.inventory(capacity=3000, max_order=20, shortage_cost=0.5)
    )
    assert peak < 150e6  # dense arrays would take 1.5 GB each
    small = brmdp.envs.inventory(capacity=30, max_order=20, shortage_cost=0.5).mdp
    begin, end = small.pattern.indptr[21 * 3 + 2 : 21 * 3 + 4]  # stock 3, order 2: the same in both
    mdp = problem.mdp
    for one, other in (
        (mdp.probabilities, small.probabilities),
        (mdp.transition_rewards, small.transition_rewards),
    ):
        np.testing.assert_array_equal(one[begin:end], other[begin:end])
    np.testing.assert_array_equal(
        mdp.pattern.next_states[begin:end], small.pattern.next_states[begin:end]
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_inventorys_kernel_has_the_bits_of_a_dense_construction(seed):
    demand = np.random.default_rng(seed).dirichlet(np.ones(9 + 8 * seed))
    problem = brmdp.envs.inventory(capacity=9, max_order=5, demand=demand, shortage_cost=0.3)
    kernel = np.zeros((10, 6, 10))
    for d, probability in enumerate(problem.demand):
        for s, a in np.argwhere(problem.mdp.admissible):
            kernel[s, a, problem.outcomes[s, a, d]] += probability
    dense = brmdp.TabularMDP(kernel, problem.mdp.rewards, 0.95, admissible=problem.mdp.admissible)
    assert problem.mdp.pattern.same_as(dense.pattern)
    assert problem.mdp.probabilities.tobytes() == dense.probabilities.tobytes()


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: riverswim(10**9), "n must give at most 20,000,000 transitions; got 4,000,000,000"),
        (
            lambda: inventory(capacity=10**5, max_order=10**5),
            "capacity, max_order and demand together must give at most",
        ),
        (
            lambda: theory.draw_mdp(10**5, 2, 0.9, rng=0),
            "n_states and n_actions must give at most",
        ),
    ],
    ids=["river", "inventory", "prior"],
)
def test_a_world_beyond_all_memory_is_refused_at_once(make, named):
    tracemalloc.start()
    try:
        with pytest.raises(brmdp.InvalidInputError, match=named):
            make()
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()
