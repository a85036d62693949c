"""Worlds for online learning against the published tables, written out here by hand."""

import gymnasium
import numpy as np
import pytest

import brmdp
from brmdp.envs import TabularEnv, chain, deep_sea, double_loop, garnet, six_arms
from brmdp.runs import Case
from brmdp.runs.catalogue import make_setting

INVALID = brmdp.InvalidInputError


def average_reward(mdp, policy):
    """Average reward of a policy with a single recurrent class, from its stationary law."""
    states = np.arange(mdp.n_states)
    rows = mdp.kernel()[states, policy]
    rewards = mdp.rewards[states, policy]
    if rewards.ndim == 2:
        rewards = (rows * rewards).sum(axis=1)
    system = np.vstack([(np.eye(mdp.n_states) - rows).T, np.ones(mdp.n_states)])
    law = np.linalg.lstsq(system, np.append(np.zeros(mdp.n_states), 1.0), rcond=None)[0]
    return float(law @ rewards)


# --- chain ----------------------------------------------------------------------------------------

CHAIN = {  # state: (next state and reward of going forward, of going back)
    0: ((1, 0), (0, 2)),
    1: ((2, 0), (0, 2)),
    2: ((3, 0), (0, 2)),
    3: ((4, 0), (0, 2)),
    4: ((4, 10), (0, 2)),
}


def test_chain():
    mdp = chain()
    kernel, rewards = np.zeros((5, 2, 5)), np.zeros((5, 2, 5))
    for state, outcomes in CHAIN.items():
        for action in (0, 1):
            for happens, (following, paid) in enumerate(outcomes):
                kernel[state, action, following] += 0.8 if happens == action else 0.2
                rewards[state, :, following] = paid
    np.testing.assert_allclose(mdp.kernel(), kernel, rtol=1e-15)
    np.testing.assert_array_equal(mdp.rewards, rewards)
    assert mdp.start == 0
    # Strens (2000): the optimal policy earns 3677 in 1000 steps
    assert 1000 * average_reward(mdp, [0] * 5) == pytest.approx(3677, abs=1)
    assert brmdp.solve(mdp).policy.tolist() == [0] * 5


def test_chains_of_other_lengths_and_without_slips():
    short = chain(2, slip=0.0, discount=0.5)
    np.testing.assert_array_equal(short.kernel(), [[[0, 1], [1, 0]], [[0, 1], [1, 0]]])
    assert brmdp.solve(short).values.tolist() == pytest.approx([10.0, 20.0])
    np.testing.assert_array_equal(chain(3, slip=1.0).kernel(), chain(3, slip=0.0).kernel()[:, ::-1])
    long = chain(2000, discount=0.9)
    assert long.pattern.n_transitions == 8000
    assert brmdp.solve(long).policy[-1] == 0


# --- double loop ----------------------------------------------------------------------------------

LOOP = {  # state: (next state and reward of a, of b)
    0: ((1, 0), (5, 0)),
    1: ((2, 0), (2, 0)),
    2: ((3, 0), (3, 0)),
    3: ((4, 0), (4, 0)),
    4: ((0, 1), (0, 1)),
    5: ((0, 0), (6, 0)),
    6: ((0, 0), (7, 0)),
    7: ((0, 0), (8, 0)),
    8: ((0, 2), (0, 2)),
}


def test_double_loop():
    mdp = double_loop()
    assert mdp.kernel().sum() == 18
    for state, outcomes in LOOP.items():
        for action, (following, paid) in enumerate(outcomes):
            assert mdp.kernel()[state, action, following] == 1.0
            assert mdp.rewards[state, action] == paid
    # Dearden and others (1998): 400 in 1000 steps by the better loop, 200 by the other
    assert 1000 * average_reward(mdp, [1] * 9) == pytest.approx(400)
    assert 1000 * average_reward(mdp, [0, 0, 0, 0, 0, 1, 1, 1, 1]) == pytest.approx(200)
    assert brmdp.solve(mdp).policy[[0, 5, 6, 7]].tolist() == [1, 1, 1, 1]


def test_loops_of_other_lengths():
    small = double_loop(2)
    np.testing.assert_array_equal(small.kernel().argmax(axis=2), [[1, 2], [0, 0], [0, 0]])
    np.testing.assert_array_equal(small.rewards, [[0, 0], [1, 1], [2, 2]])
    assert double_loop(9).n_states == 17


# --- six arms -------------------------------------------------------------------------------------


def test_six_arms():
    mdp = six_arms()
    kernel, rewards = mdp.kernel(), mdp.rewards
    centre = [(1, 1.0), (2, 0.15), (3, 0.10), (4, 0.05), (5, 0.03), (6, 0.01)]
    for action, (arm, chance) in enumerate(centre):
        assert kernel[0, action, arm] == chance
        assert kernel[0, action, 0] == pytest.approx(1 - chance)
        assert rewards[0, action] == 0.0
    stays = {1: (0, 1, 2, 3, 5), 2: (1,), 3: (2,), 4: (3,), 5: (4,), 6: (5,)}
    pays = {1: 50, 2: 133, 3: 300, 4: 800, 5: 1660, 6: 6000}
    for arm, actions in stays.items():
        for action in range(6):
            staying = action in actions
            assert kernel[arm, action, arm if staying else 0] == 1.0
            assert rewards[arm, action] == (pays[arm] if staying else 0.0)
    np.testing.assert_allclose(kernel.sum(axis=2), 1.0)
    best = brmdp.solve(mdp)
    # wait for arm 6: V = 0.95 (0.99 V + 0.01 · 6000/0.05)
    assert best.values[0] == pytest.approx(0.95 * 0.01 * 120_000 / (1 - 0.95 * 0.99))


# --- deep sea -------------------------------------------------------------------------------------


def dive(n, row, column, goes_right, fails):
    """Where a diver is next, and what it costs."""
    column = min(column + 1, n - 1) if goes_right and not fails else column
    if not goes_right:
        column = max(column - 1, 0)
    return 0 if row == n - 1 else n * (row + 1) + column


@pytest.mark.parametrize("seed", [None, 0, 5])
@pytest.mark.parametrize("stochastic", [False, True])
def test_deep_sea(stochastic, seed):
    n = 4
    mdp = deep_sea(n, stochastic=stochastic, seed=seed, discount=0.9)
    kernel, right = mdp.kernel(), mdp.rewards.argmin(axis=1)
    right[-1] = mdp.rewards[-1].argmax()
    if seed is None:
        assert (right == 1).all()
    else:
        assert set(right) == {0, 1}
    for state in range(n * n):
        row, column = divmod(state, n)
        expected = np.zeros((2, n * n))
        expected[1 - right[state], dive(n, row, column, False, False)] = 1.0
        expected[right[state], dive(n, row, column, True, False)] += 0.75 if stochastic else 1.0
        expected[right[state], dive(n, row, column, True, True)] += 0.25 if stochastic else 0.0
        np.testing.assert_allclose(kernel[state], expected)
        paid = -0.01 / n + (1.0 if state == n * n - 1 else 0.0)
        assert mdp.rewards[state, right[state]] == pytest.approx(paid)
        assert mdp.rewards[state, 1 - right[state]] == 0.0
    # a whole dive to the right earns 0.99, the optimal return of bsuite
    if not stochastic:
        assert n * average_reward(mdp, right) == pytest.approx(0.99)
        assert (brmdp.solve(mdp).policy[:: n + 1] == right[:: n + 1]).all()


def test_the_seed_of_a_sea_decides_which_action_goes_right():
    one, same, other = deep_sea(6, seed=3), deep_sea(6, seed=3), deep_sea(6, seed=4)
    np.testing.assert_array_equal(one.rewards, same.rewards)
    assert (one.rewards != other.rewards).any()
    assert deep_sea(50).pattern.n_transitions == 5000


# --- garnet ---------------------------------------------------------------------------------------


def test_garnet():
    mdp = garnet(12, 3, 4, seed=9, discount=0.8)
    kernel = mdp.kernel()
    assert ((kernel > 0).sum(axis=2) == 4).all()
    np.testing.assert_allclose(kernel.sum(axis=2), 1.0)
    assert mdp.rewards.shape == (12, 3)
    assert mdp.rewards.min() >= 0.0
    assert mdp.rewards.max() <= 1.0
    np.testing.assert_array_equal(kernel, garnet(12, 3, 4, seed=9).kernel())
    assert (kernel != garnet(12, 3, 4, seed=10).kernel()).any()
    certain = garnet(5, 2, 1, seed=1)
    assert (certain.kernel().max(axis=2) == 1.0).all()


def test_gaps_between_cuts_have_the_law_of_a_uniform_dirichlet():
    """Mean 1/b and variance (b − 1)/(b²(b + 1)); every successor is as likely as any other."""
    kernel = garnet(30, 40, 3, seed=2).kernel()
    chances = kernel[kernel > 0]
    assert chances.mean() == pytest.approx(1 / 3)
    assert chances.var() == pytest.approx(1 / 18, rel=0.08)
    times = (kernel > 0).sum(axis=(0, 1)) / (30 * 40)
    np.testing.assert_allclose(times, 0.1, atol=0.035)


# --- all of them ----------------------------------------------------------------------------------

IDS = {
    "brmdp/Chain-v0": ({"n": 4}, chain(4)),
    "brmdp/DoubleLoop-v0": ({"length": 3}, double_loop(3)),
    "brmdp/DeepSea-v0": (
        {"n": 3, "seed": 2, "stochastic": True},
        deep_sea(3, stochastic=True, seed=2),
    ),
    "brmdp/SixArms-v0": ({}, six_arms()),
    "brmdp/Garnet-v0": ({"n_states": 6, "branching": 2, "seed": 4}, garnet(6, 4, 2, seed=4)),
}
NAMES = dict(
    zip(("chain", "double-loop", "deep-sea", "six-arms", "garnet"), IDS.values(), strict=True)
)


@pytest.mark.parametrize("name", IDS)
def test_ids(name):
    options, mdp = IDS[name]
    env = gymnasium.make(name, **options)
    assert env.spec.max_episode_steps is None
    np.testing.assert_array_equal(env.unwrapped.mdp.kernel(), mdp.kernel())
    np.testing.assert_array_equal(env.unwrapped.mdp.rewards, mdp.rewards)
    assert env.unwrapped.mdp.discount == mdp.discount


@pytest.mark.parametrize("name", NAMES)
def test_names_of_sweeps(name):
    options, mdp = NAMES[name]
    case = Case(
        name="case",
        environment=name,
        environment_parameters=options,
        agent="posterior-mean",
        steps=5,
        discount=0.7,
    )
    world = make_setting(case, 0).world
    assert isinstance(world.env.unwrapped, TabularEnv)
    np.testing.assert_array_equal(world.truth.kernel(), mdp.kernel())
    assert world.discount == 0.7


@pytest.mark.parametrize("name", IDS)
def test_pictures_mark_the_state(name):
    options, mdp = IDS[name]
    text = gymnasium.make(name, render_mode="ansi", **options).unwrapped
    picture = gymnasium.make(name, render_mode="rgb_array", **options).unwrapped
    texts, pictures = set(), set()
    for state in range(mdp.n_states):
        text.reset(options={"state": state})
        picture.reset(options={"state": state})
        shown = text.render()
        assert shown.count("[") == 1
        texts.add(shown)
        pictures.add(picture.render().tobytes())
    assert len(texts) == len(pictures) == mdp.n_states


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: chain(1), "n must be at least 2; got 1"),
        (lambda: chain(2.5), "n must be a positive integer"),
        (lambda: chain(10**9), "n must give at most"),
        (lambda: chain(slip=1.2), r"slip must lie in \[0, 1\]; got 1\.2"),
        (lambda: chain(slip=np.nan), r"slip must lie in \[0, 1\]"),
        (lambda: chain(slip="0"), r"slip must be a number in \[0, 1\]"),
        (lambda: chain(discount=2.0), "discount must lie in"),
        (lambda: double_loop(1), "length must be at least 2; got 1"),
        (lambda: double_loop(10**9), "length must give at most"),
        (lambda: deep_sea(1), "n must be at least 2; got 1"),
        (lambda: deep_sea(10**6), "n must give at most"),
        (lambda: deep_sea(stochastic=1), "stochastic must be True or False; got 1"),
        (lambda: deep_sea(seed=-1), "seed must lie in"),
        (lambda: deep_sea(seed="a"), "seed must be an integer"),
        (lambda: garnet(3, 2, 4), "branching must not exceed n_states=3; got 4"),
        (lambda: garnet(0), "n_states must be a positive integer; got 0"),
        (lambda: garnet(3, "2"), "n_actions must be a positive integer"),
        (lambda: garnet(seed=1.5), "seed must be an integer"),
        (lambda: garnet(10**6, 10**3, 10), "together must give at most"),
        (lambda: six_arms(discount=-1), "discount must lie in"),
    ],
)
def test_bad_settings_are_named(make, message):
    with pytest.raises(INVALID, match=message):
        make()
