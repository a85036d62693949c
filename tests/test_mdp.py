"""TabularMDP: every accepted form describes the same problem, and the solver solves it."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import brmdp
from oracles import planning as oracle

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr"]


def random_kernel(seed, n_states, n_actions, zeros=0.5):
    """A dense random kernel in which about a share ``zeros`` of transitions is impossible.

    At least one per row is possible.
    """
    rng = np.random.default_rng(seed)
    kernel = rng.exponential(size=(n_states, n_actions, n_states))
    kernel[rng.random(kernel.shape) < zeros] = 0.0
    s, a = np.indices((n_states, n_actions))
    kernel[s, a, rng.integers(n_states, size=(n_states, n_actions))] += 0.1
    return kernel / kernel.sum(axis=2, keepdims=True)


def expected_reward(kernel, rewards):
    return np.einsum("sat,sat->sa", kernel, rewards)


def policy_values(kernel, rewards, discount, policy):
    """Solve (I − γP_π) V = r_π directly, for rewards (S, A, S)."""
    states = np.arange(kernel.shape[0])
    transition = kernel[states, policy]
    return np.linalg.solve(
        np.eye(states.size) - discount * transition,
        expected_reward(kernel, rewards)[states, policy],
    )


# --- the forms agree ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_dense_and_sparse_forms_describe_the_same_mdp(seed):
    kernel = random_kernel(seed, 6, 3)
    rewards = np.random.default_rng(seed).normal(size=(6, 3, 6))
    dense = brmdp.TabularMDP(kernel, rewards, 0.9)
    csr = brmdp.TabularMDP(
        sparse.csr_array(kernel.reshape(18, 6)), sparse.csr_array(rewards.reshape(18, 6)), 0.9
    )
    for mdp in (dense, csr):
        assert (mdp.n_states, mdp.n_actions) == (6, 3)
        assert mdp.pattern.n_transitions == np.count_nonzero(kernel)
        np.testing.assert_allclose(mdp.kernel(), kernel, rtol=1e-15, atol=0)
        np.testing.assert_array_equal(mdp.transition_rewards, rewards[kernel > 0])
    np.testing.assert_array_equal(dense.probabilities, csr.probabilities)
    np.testing.assert_array_equal(brmdp.solve(dense).values, brmdp.solve(csr).values)


@pytest.mark.parametrize("form", FORMATS)
def test_every_scipy_format_converts(form):
    kernel = random_kernel(3, 4, 2)
    rewards = random_kernel(4, 4, 2, zeros=0.2)
    make = getattr(sparse, f"{form}_array")
    mdp = brmdp.TabularMDP(make(kernel.reshape(8, 4)), make(rewards.reshape(8, 4)), 0.5)
    np.testing.assert_allclose(mdp.kernel(), kernel, rtol=1e-15, atol=0)
    np.testing.assert_array_equal(mdp.transition_rewards, rewards[kernel > 0])


def test_sparse_matrix_class_and_integer_indices_convert():
    kernel = random_kernel(5, 3, 2)
    mdp = brmdp.TabularMDP(sparse.csr_matrix(kernel.reshape(6, 3)), np.zeros((3, 2)), 0.5)
    np.testing.assert_allclose(mdp.kernel(), kernel, rtol=1e-15, atol=0)


def test_sparse_duplicates_add_up_and_stored_zeros_are_impossible():
    # row 0: 0.25 + 0.25 on state 1, 0.5 on state 0, a stored zero on state 2, columns out of order
    data = np.array([0.25, 0.5, 0.25, 0.0, 1.0, 1.0])
    columns = np.array([1, 0, 1, 2, 2, 0])
    matrix = sparse.csr_array((data, columns, np.array([0, 4, 5, 6])), shape=(3, 3))
    mdp = brmdp.TabularMDP(matrix, np.zeros((3, 1)), 0.5)
    np.testing.assert_array_equal(mdp.kernel()[0, 0], [0.5, 0.5, 0.0])
    assert mdp.pattern.n_transitions == 4
    np.testing.assert_array_equal(matrix.data, data)  # the caller's matrix is unchanged
    np.testing.assert_array_equal(matrix.indices, columns)


def test_sparse_rewards_do_not_need_the_kernels_pattern():
    kernel = random_kernel(6, 5, 2)
    rewards = np.where(np.random.default_rng(1).random((5, 2, 5)) < 0.3, 2.0, 0.0)
    mdp = brmdp.TabularMDP(kernel, sparse.csr_array(rewards.reshape(10, 5)), 0.9)
    np.testing.assert_array_equal(mdp.transition_rewards, rewards[kernel > 0])


def test_reward_by_pair_equals_reward_by_transition_with_that_mean():
    kernel = random_kernel(7, 5, 3)
    rewards = np.random.default_rng(2).normal(size=(5, 3, 5))
    by_transition = brmdp.solve(brmdp.TabularMDP(kernel, rewards, 0.9), tolerance=1e-11)
    by_pair = brmdp.solve(
        brmdp.TabularMDP(kernel, expected_reward(kernel, rewards), 0.9), tolerance=1e-11
    )
    np.testing.assert_allclose(by_pair.q_values, by_transition.q_values, atol=1e-9)
    np.testing.assert_array_equal(by_pair.policy, by_transition.policy)


def test_integer_and_list_inputs_convert():
    mdp = brmdp.TabularMDP([[[0, 1]], [[1, 0]]], [[1], [0]], 0)
    np.testing.assert_array_equal(mdp.kernel(), [[[0.0, 1.0]], [[1.0, 0.0]]])
    np.testing.assert_array_equal(brmdp.solve(mdp).values, [1.0, 0.0])


@pytest.mark.parametrize("seed", range(3))
def test_kernel_round_trip(seed):
    kernel = random_kernel(seed, 7, 2)
    mdp = brmdp.TabularMDP(kernel, np.zeros((7, 2)), 0.9)
    csr = mdp.kernel("csr")
    assert csr.shape == (14, 7)
    np.testing.assert_array_equal(csr.toarray().reshape(7, 2, 7), mdp.kernel("dense"))
    np.testing.assert_array_equal(mdp.kernel("flat"), mdp.kernel()[kernel > 0])
    for form in (mdp.kernel(), csr):
        again = brmdp.TabularMDP(form, np.zeros((7, 2)), 0.9)
        np.testing.assert_allclose(again.kernel(), mdp.kernel(), rtol=3e-16, atol=0)
    exported = mdp.kernel("flat")
    exported[:] = -1.0  # an export is a copy
    np.testing.assert_allclose(mdp.kernel(), kernel, rtol=1e-15, atol=0)


def test_rows_are_made_to_sum_to_one():
    kernel = random_kernel(8, 4, 2) * (1.0 + 3e-9)
    mdp = brmdp.TabularMDP(kernel, np.zeros((4, 2)), 0.9)
    np.testing.assert_allclose(mdp.kernel().sum(axis=2), 1.0, rtol=0, atol=3e-16)


# --- the description belongs to the MDP -----------------------------------------------------------


@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_later_changes_of_dense_inputs_do_not_reach_the_mdp(zeros):
    kernel = random_kernel(9, 4, 2, zeros)
    rewards = np.random.default_rng(3).normal(size=(4, 2, 4))
    mdp = brmdp.TabularMDP(kernel, rewards, 0.9)
    before = mdp.kernel(), mdp.transition_rewards.copy(), np.array(mdp.rewards)
    kernel[:] = 0.25
    rewards[:] = 100.0
    np.testing.assert_array_equal(mdp.kernel(), before[0])
    np.testing.assert_array_equal(mdp.transition_rewards, before[1])
    np.testing.assert_array_equal(mdp.rewards, before[2])


def test_later_changes_of_sparse_rewards_do_not_reach_the_mdp():
    kernel = random_kernel(10, 4, 2)
    rewards = sparse.csr_array(kernel.reshape(8, 4))
    mdp = brmdp.TabularMDP(kernel, rewards, 0.9)
    before = mdp.transition_rewards.copy()
    rewards.data[:] = 100.0  # also: the caller's array must not have become read-only
    np.testing.assert_array_equal(mdp.transition_rewards, before)
    np.testing.assert_array_equal(mdp.rewards.toarray().reshape(4, 2, 4)[kernel > 0], before)


def test_a_plan_does_not_freeze_the_callers_rewards():
    belief = brmdp.DirichletBelief.uniform(3, 2)
    rewards = np.random.default_rng(4).normal(size=(3, 2, 3))
    solution = brmdp.plan(belief, rewards, 0.9, risk=brmdp.Mean())
    rewards[:] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        solution.values[0] = 1.0


# --- admissible actions, start, names -------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_inadmissible_actions_are_left_out(seed):
    kernel = random_kernel(seed, 5, 3)
    rewards = np.random.default_rng(seed).normal(size=(5, 3, 5))
    admissible = np.random.default_rng(seed).random((5, 3)) < 0.5
    admissible[:, seed % 3] = True
    kernel[~admissible] = 0.0
    mdp = brmdp.TabularMDP(kernel, rewards, 0.9, admissible=admissible)
    np.testing.assert_array_equal(mdp.admissible, admissible)
    assert mdp.pattern.n_transitions == np.count_nonzero(kernel)
    solution = brmdp.solve(mdp, tolerance=1e-11)
    truth = oracle.value_iteration(oracle.mean_risk(kernel), rewards, 0.9, admissible=admissible)
    np.testing.assert_allclose(solution.values, truth, atol=1e-9)
    assert admissible[np.arange(5), solution.policy].all()
    assert (solution.q_values[~admissible] == -np.inf).all()
    assert np.isfinite(solution.q_values[admissible]).all()


def test_rows_of_inadmissible_actions_are_ignored():
    kernel = random_kernel(1, 4, 2)
    kernel[2, 1] = 7.0
    admissible = np.ones((4, 2), dtype=bool)
    admissible[2, 1] = False
    mdp = brmdp.TabularMDP(kernel, np.zeros((4, 2)), 0.9, admissible=admissible)
    np.testing.assert_array_equal(mdp.kernel()[2, 1], 0.0)


def test_start_is_a_state_or_a_distribution():
    kernel = random_kernel(1, 3, 1)
    assert brmdp.TabularMDP(kernel, np.zeros((3, 1)), 0.9).start == 0
    assert brmdp.TabularMDP(kernel, np.zeros((3, 1)), 0.9, start=np.int64(2)).start == 2
    given = np.array([0.25, 0.0, 0.75])
    mdp = brmdp.TabularMDP(kernel, np.zeros((3, 1)), 0.9, given)
    given[:] = 0.0
    np.testing.assert_array_equal(mdp.start, [0.25, 0.0, 0.75])


def test_names_are_kept():
    kernel = random_kernel(1, 2, 3)
    mdp = brmdp.TabularMDP(
        kernel, np.zeros((2, 3)), 0.9, state_names=["dry", "wet"], action_names=list("abc")
    )
    assert mdp.state_names == ("dry", "wet")
    assert mdp.action_names == ("a", "b", "c")
    assert brmdp.TabularMDP(kernel, np.zeros((2, 3)), 0.9).state_names is None


# --- memory ---------------------------------------------------------------------------------------


def successors(n_states, n_actions, width):
    """A sparse kernel in which (s, a) leads to ``width`` distinct states, uniformly."""
    n_pairs = n_states * n_actions
    s, a = np.divmod(np.arange(n_pairs), n_actions)
    columns = np.sort((s[:, None] + 1 + a[:, None] + 37 * np.arange(width)) % n_states, axis=1)
    data = np.full(n_pairs * width, 1.0 / width)
    return sparse.csr_array(
        (data, columns.ravel(), np.arange(n_pairs + 1) * width), shape=(n_pairs, n_states)
    )


def test_memory_grows_with_the_possible_transitions_not_with_the_square_of_the_states():
    def peak(n_states):
        kernel = successors(n_states, 2, 3)
        rewards = np.random.default_rng(0).random((n_states, 2))
        tracemalloc.start()
        try:
            mdp = brmdp.TabularMDP(kernel, rewards, 0.9)
            belief = brmdp.DirichletBelief.uniform(n_states, 2, possible=mdp)
            belief.observe(
                np.arange(100), np.zeros(100, dtype=int), mdp.pattern.next_states[0:600:6]
            )
            csr = belief.mean("csr")
            assert mdp.pattern.n_transitions == csr.nnz == 6 * n_states
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small, large = peak(2_000), peak(20_000)
    assert large < 100e6  # a dense kernel alone would take 6.4 GB
    assert large < 15 * small


def test_a_large_sparse_mdp_is_solved():
    n_states = 20_000
    kernel = successors(n_states, 2, 3)
    rewards = np.random.default_rng(0).random((n_states, 2))
    solution = brmdp.solve(brmdp.TabularMDP(kernel, rewards, 0.8), tolerance=1e-7)
    assert solution.error_bound <= 1e-7
    values = np.zeros(n_states)
    for _ in range(120):  # 0.8^120 · 5 < 2e-11
        values = (rewards.ravel() + 0.8 * (kernel @ values)).reshape(n_states, 2).max(axis=1)
    np.testing.assert_allclose(solution.values, values, atol=1.1e-7)


def test_a_dense_export_that_would_not_fit_is_refused():
    mdp = brmdp.TabularMDP(successors(20_000, 1, 2), np.zeros((20_000, 1)), 0.9)
    with pytest.raises(brmdp.InvalidInputError, match=r"format='csr'"):
        mdp.kernel()


# --- solving and evaluating -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["newton", "value-iteration"])
def test_solve_matches_plain_value_iteration(seed, method):
    rng = np.random.default_rng(seed)
    n_states, n_actions = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    kernel = random_kernel(seed, n_states, n_actions)
    rewards = rng.normal(size=(n_states, n_actions, n_states))
    discount = float(rng.choice([0.0, 0.5, 0.9, 0.97]))
    mdp = brmdp.TabularMDP(kernel, rewards, discount)
    solution = brmdp.solve(mdp, method=method, tolerance=1e-9)
    truth = oracle.value_iteration(oracle.mean_risk(kernel), rewards, discount)
    np.testing.assert_allclose(solution.values, truth, atol=solution.error_bound + 1e-11)
    assert solution.status == "converged"
    assert solution.error_bound <= 1e-9
    lost = truth - policy_values(kernel, rewards, discount, solution.policy)
    assert lost.max() <= solution.policy_gap + 1e-11
    np.testing.assert_allclose(
        solution.kernel(), mdp.kernel()[np.arange(n_states), solution.policy], atol=1e-15
    )
    np.testing.assert_allclose(solution.kernel("csr").toarray(), solution.kernel(), atol=0)


@pytest.mark.parametrize("seed", range(6))
def test_evaluate_matches_a_dense_linear_solve(seed):
    rng = np.random.default_rng(seed)
    kernel = random_kernel(seed, 6, 3)
    rewards = rng.normal(size=(6, 3, 6)) * 10.0 ** rng.integers(-3, 4)
    policy = rng.integers(3, size=6)
    found = brmdp.evaluate_in_mdp(brmdp.TabularMDP(kernel, rewards, 0.95), policy)
    truth = policy_values(kernel, rewards, 0.95, policy)
    np.testing.assert_allclose(
        found, truth, rtol=0, atol=1e-9 * max(1.0, np.abs(rewards).max() / 0.05)
    )


def test_a_known_mdp_is_a_belief_without_doubt():
    kernel = random_kernel(11, 4, 2)
    rewards = np.random.default_rng(5).normal(size=(4, 2, 4))
    mdp = brmdp.TabularMDP(kernel, rewards, 0.9)
    truth = brmdp.solve(mdp).values
    measures = [brmdp.Quantile(0.05), brmdp.CVaR(0.2), brmdp.Mean(), brmdp.PosteriorSample(rng=1)]
    for risk in [*measures, brmdp.Quantile(0.4, brmdp.MonteCarlo(samples=3, rng=0))]:
        np.testing.assert_allclose(
            brmdp.plan(mdp, mdp.rewards, 0.9, risk=risk).values, truth, atol=1e-7
        )


@pytest.mark.parametrize(
    ("mdp", "kernel", "rewards"),
    [
        (brmdp.envs.riverswim(6), oracle.riverswim_kernel(6), oracle.riverswim_rewards(6)),
        (brmdp.envs.riverswim(12), oracle.riverswim_kernel(12), oracle.riverswim_rewards(12)),
        (brmdp.envs.frozenlake(), oracle.frozenlake_kernel(), oracle.frozenlake_rewards()),
        (brmdp.envs.frozenlake(0.7), oracle.frozenlake_kernel(0.7), oracle.frozenlake_rewards()),
        (brmdp.envs.frozenlake(1.0), oracle.frozenlake_kernel(1.0), oracle.frozenlake_rewards()),
    ],
)
def test_the_papers_worlds(mdp, kernel, rewards):
    np.testing.assert_allclose(mdp.kernel(), kernel, atol=1e-15)
    np.testing.assert_array_equal(mdp.rewards, rewards)
    assert mdp.start == 0


# --- less than double precision -------------------------------------------------------------------


SINGLE = np.array([[[0.2, 0.3, 0.5]], [[0.1, 0.2, 0.7]], [[0.6, 0.3, 0.1]]])


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize(
    "make", [np.asarray, lambda k: sparse.csr_array(k.reshape(3, 3).astype(np.float32)), list]
)
def test_kernels_in_less_than_double_precision_are_taken_and_made_exact(kind, make):
    if kind is np.float16 and make not in (np.asarray, list):
        pytest.skip("SciPy has no sparse matrices in half precision")
    kernel = make(SINGLE.astype(kind))
    found = [
        brmdp.TabularMDP(kernel, np.zeros((3, 1)), 0.9).kernel(),
        brmdp.DirichletBelief.informative(kernel, 1.0).mean(),
        brmdp.ScenarioBelief([kernel, kernel], np.array([0.3, 0.7], dtype=kind)).mean(),
    ]
    for probabilities in found:
        np.testing.assert_allclose(probabilities, SINGLE, rtol=2 * float(np.finfo(kind).eps))
        np.testing.assert_allclose(probabilities.sum(axis=2), 1.0, rtol=0, atol=3e-16)


def test_the_tolerance_is_that_of_the_precision_in_which_a_kernel_came():
    off = SINGLE * (1.0 + 1e-7)
    with pytest.raises(brmdp.InvalidInputError, match="transitions must sum to one"):
        brmdp.TabularMDP(off, np.zeros((3, 1)), 0.9)
    brmdp.TabularMDP(off.astype(np.float32), np.zeros((3, 1)), 0.9)
    with pytest.raises(brmdp.InvalidInputError, match="transitions must sum to one"):
        brmdp.TabularMDP((SINGLE * (1.0 + 1e-6)).astype(np.float32), np.zeros((3, 1)), 0.9)
    wide = np.full((200, 1, 200), 1.0 / 200.0)
    with pytest.raises(brmdp.InvalidInputError, match="transitions must sum to one"):
        brmdp.TabularMDP((wide * 1.02).astype(np.float16), np.zeros((200, 1)), 0.9)


def test_starts_and_demands_in_single_precision_are_taken():
    start = np.array([0.2, 0.3, 0.5], dtype=np.float32)
    mdp = brmdp.TabularMDP(SINGLE, np.zeros((3, 1)), 0.9, start)
    assert abs(mdp.start.sum() - 1.0) < 3e-16
    assert abs(brmdp.envs.inventory(demand=start).demand.sum() - 1.0) < 3e-16
    with pytest.raises(brmdp.InvalidInputError, match="start must be"):
        brmdp.TabularMDP(SINGLE, np.zeros((3, 1)), 0.9, start.astype(float))
