"""Gymnasium tables: repeated successors, terminated flags, NumPy integers, initial states."""

import gymnasium
import numpy as np
import pytest

import brmdp

ENVIRONMENTS = {
    "frozenlake": ("FrozenLake-v1", {}),
    "frozenlake-8x8": ("FrozenLake-v1", {"map_name": "8x8"}),
    "frozenlake-dry": ("FrozenLake-v1", {"is_slippery": False}),
    "cliffwalking": ("CliffWalking-v1", {}),
    "cliffwalking-slippery": ("CliffWalking-v1", {"is_slippery": True}),
    "taxi": ("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3", {}),
}


@pytest.fixture(params=ENVIRONMENTS, scope="module")
def env(request):
    name, options = ENVIRONMENTS[request.param]
    made = gymnasium.make(name, **options)
    yield made
    made.close()


def value_iteration(table, discount, sweeps):
    """V and Q by plain loops over P[s][a]; nothing is earned after a terminated transition."""
    n = len(table)
    values = np.zeros(n)
    for _ in range(sweeps):
        q = [
            [
                sum(
                    p * (r + (0.0 if ended else discount * values[int(t)]))
                    for p, t, r, ended in table[s][a]
                )
                for a in range(len(table[s]))
            ]
            for s in range(n)
        ]
        values = np.array([max(row) for row in q])
    return values, np.array(q)


@pytest.mark.long
def test_solve_agrees_with_value_iteration_on_the_table(env):
    discount, sweeps = 0.9, 300
    table = env.unwrapped.P
    values, q = value_iteration(table, discount, sweeps)
    largest = max(abs(r) for s in table for a in table[s] for _, _, r, _ in table[s][a])
    slack = 1e-9 + discount**sweeps * largest / (1 - discount)
    mdp = brmdp.TabularMDP.from_gymnasium(env, discount)
    solution = brmdp.solve(mdp, tolerance=1e-9)
    n = len(table)
    np.testing.assert_allclose(solution.values[:n], values, atol=slack)
    np.testing.assert_allclose(solution.q_values[:n], q, atol=slack)
    assert solution.values[n:] == pytest.approx(0.0, abs=1e-12)


def test_the_table_is_converted_entry_by_entry(env):
    table = env.unwrapped.P
    mdp = brmdp.TabularMDP.from_gymnasium(env, 0.9)
    n, n_actions = len(table), len(table[0])
    assert any(ended for s in table for a in table[s] for _, _, _, ended in table[s][a])
    assert (mdp.n_states, mdp.n_actions) == (n + 1, n_actions)
    kernel = np.zeros((n + 1, n_actions, n + 1))
    paid = np.zeros((n + 1, n_actions))
    for s in range(n):
        for a in range(n_actions):
            for p, t, r, ended in table[s][a]:
                kernel[s, a, n if ended else t] += p
                paid[s, a] += p * r
    kernel[n, :, n] = 1.0
    np.testing.assert_allclose(mdp.kernel(), kernel, atol=1e-15)
    per_pair = np.bincount(
        mdp.pattern.pair_of_transition,
        mdp.probabilities * mdp.transition_rewards,
        minlength=(n + 1) * n_actions,
    )
    np.testing.assert_allclose(per_pair.reshape(n + 1, n_actions), paid, atol=1e-12)
    assert mdp.state_names[-1] == "terminal"
    assert mdp.pattern.n_transitions == np.count_nonzero(kernel)


def test_the_start_is_the_environments(env):
    mdp = brmdp.TabularMDP.from_gymnasium(env, 0.9)
    initial = env.unwrapped.initial_state_distrib
    np.testing.assert_allclose(mdp.start[:-1], initial)
    assert mdp.start[-1] == 0.0
    assert brmdp.TabularMDP.from_gymnasium(env, 0.9, start=3).start == 3


@pytest.mark.long
def test_policy_evaluation_matches_simulation():
    env = gymnasium.make("FrozenLake-v1").unwrapped
    mdp = brmdp.TabularMDP.from_gymnasium(env, 0.9)
    policy = brmdp.solve(mdp).policy
    value = brmdp.evaluate_in_mdp(mdp, policy)[0]
    returns = []
    for episode in range(1500):
        state, _ = env.reset(seed=episode)
        factor, total = 1.0, 0.0
        for _ in range(200):  # unwrapped: no truncation before
            state, reward, terminated, _, _ = env.step(int(policy[state]))
            total += factor * float(reward)
            factor *= 0.9
            if terminated:
                break
        returns.append(total)
    error = np.std(returns) / np.sqrt(len(returns))
    assert abs(np.mean(returns) - value) < 4.5 * error


def test_hand_made_table_with_repeats_flags_and_numpy_integers():
    table = {
        0: {
            0: [
                (0.25, np.int64(1), 4.0, False),
                (0.25, 1, 0.0, False),
                (0.5, np.int32(0), 1.0, np.False_),
            ],
            1: [(0.5, 1, 10.0, True), (0.25, 1, 2.0, False), (0.25, 0, 6.0, np.True_)],
        },
        np.int64(1): {0: [(1.0, 0, 0.0, False)], 1: [(0.0, 0, 99.0, False), (1.0, 1, 3.0, False)]},
    }
    mdp = brmdp.TabularMDP.from_gymnasium(table, 0.5)
    expected = np.zeros((3, 2, 3))
    expected[0, 0] = [0.5, 0.5, 0.0]
    expected[0, 1] = [0.0, 0.25, 0.75]
    expected[1, 0, 0] = expected[1, 1, 1] = 1.0
    expected[2, :, 2] = 1.0
    np.testing.assert_array_equal(mdp.kernel(), expected)
    rewards = mdp.rewards.toarray().reshape(3, 2, 3)
    np.testing.assert_allclose(rewards[0, 0], [1.0, 2.0, 0.0])
    np.testing.assert_allclose(rewards[0, 1], [0.0, 2.0, (0.5 * 10 + 0.25 * 6) / 0.75])
    np.testing.assert_allclose(rewards[1, 1], [0.0, 3.0, 0.0])
    values, _ = value_iteration(table, 0.5, 80)
    np.testing.assert_allclose(brmdp.solve(mdp, tolerance=1e-11).values, [*values, 0.0], atol=1e-10)


def test_a_task_that_never_ends_has_no_extra_state():
    mdp = brmdp.TabularMDP.from_gymnasium({0: {0: [(1.0, 0, 1.0, False)]}}, 0.5)
    assert mdp.n_states == 1
    assert mdp.state_names is None
    assert brmdp.solve(mdp).values[0] == pytest.approx(2.0, abs=1e-8)


def test_missing_actions_are_inadmissible():
    table = {
        0: {0: [(1.0, 1, 0.0, False)], 1: [(1.0, 0, 1.0, False)]},
        1: {0: [(1.0, 0, 0.0, False)]},
    }
    mdp = brmdp.TabularMDP.from_gymnasium(table, 0.5)
    np.testing.assert_array_equal(mdp.admissible, [[True, True], [True, False]])


@pytest.mark.parametrize(
    ("table", "culprit"),
    [
        ({}, "source|P"),
        (None, "source"),
        (object(), "source"),
        ({0: {0: [(1.0, 5, 0.0, False)]}}, r"P\[0\]\[0\].*5"),
        ({0: {0: [(1.0, 0.5, 0.0, False)]}}, r"P\[0\]\[0\].*0\.5"),
        ({0: {0: [(1.0, 0, 0.0, False)]}, 2: {0: [(1.0, 0, 0.0, False)]}}, "state 1"),
        ({0: {0: [(0.4, 0, 0.0, False)]}}, r"0\.4 at \(s=0, a=0\)"),
        ({0: {0: [(1.0, 0, np.nan, False)]}}, "nan"),
        ({0: {0: [(1.0, 0, np.inf, False)]}}, "inf"),
        (
            {
                0: {0: [(1.0, 0, 0.0, False), (np.nan, 1, 0.0, False)]},
                1: {0: [(1.0, 0, 0.0, False)]},
            },
            "nan",
        ),
        (
            {0: {0: [(1.0, 0, 0.0, False), (-0.1, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 0.0, False)]}},
            r"-0\.1",
        ),
        ({0: {0: [(1.0, 0, 0.0)]}}, r"P\[0\]\[0\]"),
        ({0: {0: [("half", 0, 0.0, False)]}}, "half"),
    ],
)
def test_bad_tables_are_named(table, culprit):
    with pytest.raises(brmdp.InvalidInputError, match=culprit):
        brmdp.TabularMDP.from_gymnasium(table, 0.9)


def test_an_environment_without_a_table_is_refused():
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(brmdp.InvalidInputError, match=r"unwrapped\.P"):
        brmdp.TabularMDP.from_gymnasium(env, 0.9)
    env.close()
