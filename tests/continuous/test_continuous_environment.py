"""The continuous lake as an environment: interface, law, random numbers, pictures, bad input."""

import copy
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy import stats

import brmdp
from brmdp.continuous.environment import ContinuousFrozenLakeEnv
from brmdp.continuous.lake import (
    CENTRES,
    DIRECTIONS,
    GOAL,
    HOLES,
    MODES,
    ORDINARY,
    TRUTH,
    LakeParameters,
    cells,
)
from brmdp.envs import FrozenLakeEnv

ID = "brmdp/ContinuousFrozenLake-v0"
OTHER = LakeParameters(np.array([0.1, 0.3, 0.6]), np.array(0.7), np.array(1.3))
SURE = 1e-4
"""Probability that a statistical test here would fail by chance if its seed were not fixed."""


def steps_from(env, state, action, n):
    """Independent steps out of one state: next states (n, 2), rewards (n,), infos."""
    following, rewards, infos = [], [], []
    for _ in range(n):
        env.reset(options={"state": state})
        there, reward, terminated, truncated, info = env.step(action)
        assert (terminated, truncated) == (False, False)
        following.append(there)
        rewards.append(reward)
        infos.append(info)
    return np.array(following), np.array(rewards), infos


def assert_moved(state, directions, lengths, following):
    """Each movement ends where its direction and length lead, or where it began if blocked."""
    candidates = state + np.array(lengths)[:, None] * DIRECTIONS[directions]
    inside = ((candidates >= 0) & (candidates <= 4)).all(axis=1)
    np.testing.assert_allclose(
        following, np.where(inside[:, None], candidates, state), rtol=0, atol=1e-15
    )


def walk(env, steps, seed):
    actions = np.random.default_rng(seed).integers(4, size=steps)
    state, _ = env.reset(seed=seed)
    record = []
    for action in actions:
        following, reward, terminated, truncated, info = env.step(action)
        record.append((state, int(action), following, reward, info))
        assert (terminated, truncated) == (False, False)
        state = following
    return record


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [TRUTH, OTHER])
def test_gymnasium_accepts_the_environment(parameters):
    # warnings are errors here; the checker wants the environment without wrappers
    check_env(gymnasium.make(ID, parameters=parameters).unwrapped)


def test_the_id_makes_the_papers_lake():
    env = gymnasium.make(ID)
    assert isinstance(env.unwrapped, ContinuousFrozenLakeEnv)
    assert env.spec.max_episode_steps is None
    assert env.observation_space == gymnasium.spaces.Box(0.0, 4.0, (2,), np.float64)
    assert env.action_space == gymnasium.spaces.Discrete(4)
    assert env.metadata["render_modes"] == FrozenLakeEnv.metadata["render_modes"]
    for ours, papers in zip(env.unwrapped.parameters, ([0.5, 0.25, 0.25], 0.2, 0.5), strict=True):
        np.testing.assert_array_equal(ours, papers)
    state, info = env.reset(seed=0)
    np.testing.assert_array_equal(state, [0.5, 0.5])
    assert info == {"mode": None, "mobile": None, "length": None}


@pytest.mark.long
def test_the_lake_needs_no_jax():
    code = (
        "import sys; sys.modules['jax'] = sys.modules['optax'] = None; import gymnasium, brmdp; "
        f"gymnasium.make({ID!r}).reset(seed=0); import brmdp.continuous.oracle, "
        "brmdp.continuous.belief"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_states_are_new_arrays():
    env = ContinuousFrozenLakeEnv()
    state, _ = env.reset(seed=0)
    state[:] = 3.5
    following, *_ = env.step(1)
    assert cells(following) != GOAL
    kept = following.copy()
    env.step(0)
    np.testing.assert_array_equal(following, kept)


def test_vector_environments():
    vector = gymnasium.make_vec(ID, num_envs=3, vectorization_mode="sync")
    states, _ = vector.reset(seed=1)
    np.testing.assert_array_equal(states, np.full((3, 2), 0.5))
    following, *_ = vector.step([0, 1, 3])
    assert following.shape == (3, 2)
    vector.close()


# --------------------------------------------------------------------------------------------- the


@pytest.mark.parametrize("parameters", [TRUTH, OTHER], ids=["truth", "other"])
def test_modes_and_lengths_on_an_ordinary_cell(parameters):
    env = ContinuousFrozenLakeEnv(parameters)
    env.reset(seed=1)
    modes, lengths = [], []
    for action in range(4):
        state = np.array([2.4, 2.3])  # no length of up to 1.25 leaves the square; longer ones do
        following, _, infos = steps_from(env, state, action, 1500)
        assert all(info["mobile"] is None for info in infos)
        taken = [MODES[action, info["mode"]] for info in infos]
        assert_moved(state, taken, [info["length"] for info in infos], following)
        modes += [info["mode"] for info in infos]
        lengths += [info["length"] for info in infos]
    assert (
        stats.chisquare(np.bincount(modes, minlength=3), len(modes) * parameters.slip).pvalue > SURE
    )
    assert stats.kstest(lengths, stats.uniform(0.75, float(parameters.spread)).cdf).pvalue > SURE
    # the length does not depend on the mode
    table = np.histogram2d(
        modes, lengths, bins=[[-0.5, 0.5, 1.5, 2.5], np.quantile(lengths, np.linspace(0, 1, 5))]
    )[0]
    assert stats.chi2_contingency(table).pvalue > SURE


def test_directions_have_the_papers_probabilities():
    env = ContinuousFrozenLakeEnv()
    env.reset(seed=2)
    perpendicular = {0: (2, 3), 1: (2, 3), 2: (0, 1), 3: (0, 1)}
    for action in range(4):
        following, _, _ = steps_from(env, (1.5, 2.5), action, 1200)
        shift = following - [1.5, 2.5]
        counts = [
            int(((shift @ DIRECTIONS[d]) > 0.5).sum()) for d in (action, *perpendicular[action])
        ]
        assert sum(counts) == 1200
        assert stats.chisquare(counts, [600, 300, 300]).pvalue > SURE


@pytest.mark.parametrize("parameters", [TRUTH, OTHER], ids=["truth", "other"])
def test_mobility_in_holes(parameters):
    env = ContinuousFrozenLakeEnv(parameters)
    env.reset(seed=3)
    mobile, lengths = [], []
    for cell in HOLES:
        for action in range(4):
            following, _, infos = steps_from(env, CENTRES[cell], action, 300)
            moves = np.array([info["mobile"] for info in infos], dtype=bool)
            assert all(info["mode"] is None for info in infos)
            assert all((info["length"] is None) == (info["mobile"] == 0) for info in infos)
            assert (following[~moves] == CENTRES[cell]).all()
            attempted = [info["length"] for info in infos if info["mobile"]]
            assert_moved(CENTRES[cell], [action] * len(attempted), attempted, following[moves])
            mobile += [info["mobile"] for info in infos]
            lengths += attempted
    chance = float(parameters.mobility)
    assert set(mobile) == {0, 1}
    assert stats.binomtest(sum(mobile), len(mobile), chance).pvalue > SURE
    assert stats.kstest(lengths, stats.uniform(0.75, float(parameters.spread)).cdf).pvalue > SURE


def test_the_goal_restarts_uniformly_by_area():
    env = ContinuousFrozenLakeEnv()
    env.reset(seed=4)
    following, rewards, infos = [], [], []
    for action in range(4):
        there, paid, told = steps_from(env, (3.0, 3.999), action, 1100)
        following.append(there)
        rewards.append(paid)
        infos += told
    following = np.concatenate(following)
    assert not np.concatenate(rewards).any()
    assert all(info == {"mode": None, "mobile": None, "length": None} for info in infos)
    counts = np.bincount(cells(following), minlength=16)
    assert counts[list(HOLES)].sum() == counts[GOAL] == 0
    assert stats.chisquare(counts[list(ORDINARY)]).pvalue > SURE
    inside = following % 1.0
    for part in (inside[:, 0], inside[:, 1], (inside[:, 0] + inside[:, 1]) % 1.0):
        assert stats.kstest(part, "uniform").pvalue > SURE
    # neither coordinate tells the other, or the cell
    table = np.histogram2d(inside[:, 0], inside[:, 1], bins=4, range=[[0, 1], [0, 1]])[0]
    assert stats.chi2_contingency(table).pvalue > SURE
    table = np.histogram2d(
        cells(following), inside[:, 0], bins=[16, 2], range=[[-0.5, 15.5], [0, 1]]
    )[0]
    assert stats.chi2_contingency(table[list(ORDINARY)]).pvalue > SURE


def test_blocked_movements_stay_put_and_report_their_length():
    env = ContinuousFrozenLakeEnv()
    env.reset(seed=5)
    state = (0.3, 0.2)  # up and left always leave the square
    following, _, infos = steps_from(env, state, 0, 600)
    stays = (following == state).all(axis=1)
    for stay, info in zip(stays, infos, strict=True):
        assert stay == (info["mode"] != 2)  # mode 2 of Left is Down
        assert 0.75 <= info["length"] <= 1.25
    assert stats.binomtest(int(stays.sum()), 600, 0.75).pvalue > SURE
    # at distance 1 from the wall half of the lengths are blocked
    following, _, infos = steps_from(env, (3.0, 0.5), 1, 2000)
    right = np.array([info["mode"] == 0 for info in infos])
    lengths = np.array([info["length"] for info in infos])
    np.testing.assert_array_equal(
        (following[right] == (3.0, 0.5)).all(axis=1), lengths[right] > 1.0
    )
    assert stats.binomtest(int((lengths[right] > 1.0).sum()), int(right.sum()), 0.5).pvalue > SURE


def test_the_far_edge_belongs_to_the_map():
    env = ContinuousFrozenLakeEnv(
        LakeParameters(np.array([1.0, 0.0, 0.0]), np.array(1.0), np.array(1e-300))
    )
    env.reset(seed=0, options={"state": (3.25, 3.25)})
    env.reset(options={"state": (3.25, 2.5)})
    np.testing.assert_array_equal(env.step(1)[0], [4.0, 2.5])
    np.testing.assert_array_equal(env.step(3)[0], [4.0, 3.25])
    assert cells(np.array([4.0, 4.0])) == GOAL


def test_entering_the_goal_pays_one_and_nothing_else_pays():
    paid = 0
    for state, _, following, reward, _ in walk(ContinuousFrozenLakeEnv(), 20_000, seed=6):
        enters = bool(cells(following) == GOAL)
        assert reward == float(enters)
        assert type(reward) is float
        assert not (enters and cells(state) == GOAL)
        paid += enters
    assert paid > 100


# --------------------------------------------------------------------------------------------------


def test_three_uniform_numbers_per_step():
    env = ContinuousFrozenLakeEnv()
    env.reset(seed=11)
    twin = copy.deepcopy(env.np_random)
    visited = set()
    for state, _, following, _, info in walk(env, 3000, seed=11):
        choice, first, second = twin.random(3)
        cell = int(cells(state))
        visited.add(cell)
        if cell == GOAL:
            target = ORDINARY[int(11 * choice)]
            np.testing.assert_array_equal(following, [target % 4 + first, target // 4 + second])
        elif cell in HOLES:
            assert info["mobile"] == (choice < 0.2)
            assert info["length"] == (0.75 + 0.5 * first if info["mobile"] else None)
        else:
            assert info["mode"] == int(np.searchsorted([0.5, 0.75], choice, side="right"))
            assert info["length"] == 0.75 + 0.5 * first
    assert env.np_random.bit_generator.state == twin.bit_generator.state
    assert visited == set(range(16))


def test_a_seed_determines_the_trajectory():
    def trace(seed):
        return [
            (*state, action, *following, reward, *info.values())
            for state, action, following, reward, info in walk(ContinuousFrozenLakeEnv(), 300, seed)
        ]

    assert trace(5) == trace(5)
    assert trace(5) != trace(6)


def test_reset_uses_no_random_number():
    env = ContinuousFrozenLakeEnv()
    env.reset(seed=5)
    before = copy.deepcopy(env.np_random.bit_generator.state)
    env.reset()
    env.reset(options={"state": (1.0, 2.0)})
    assert env.np_random.bit_generator.state == before


def test_impossible_modes_are_never_drawn():
    env = ContinuousFrozenLakeEnv(
        LakeParameters(np.array([0.0, 1.0, 0.0]), np.array(0.0), np.array(0.5))
    )
    env.reset(seed=7)
    _, _, infos = steps_from(env, (2.5, 2.5), 1, 200)
    assert {info["mode"] for info in infos} == {1}
    _, _, infos = steps_from(env, CENTRES[5], 1, 200)
    assert {info["mobile"] for info in infos} == {0}


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [4, -1, 1.0, "1", None, True, [0], np.nan])
def test_unknown_actions_are_named(action):
    env = ContinuousFrozenLakeEnv()
    env.reset(seed=0)
    before = copy.deepcopy(env.np_random.bit_generator.state)
    with pytest.raises(brmdp.InvalidInputError, match=r"action must .*0\.\.3"):
        env.step(action)
    assert env.np_random.bit_generator.state == before


def test_stepping_and_rendering_before_reset_are_refused():
    with pytest.raises(brmdp.InvalidInputError, match=r"reset\(\) before the first step"):
        ContinuousFrozenLakeEnv().step(0)
    with pytest.raises(brmdp.InvalidInputError, match=r"reset\(\) before render"):
        ContinuousFrozenLakeEnv(render_mode="ansi").render()


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ({"slip": np.array([0.5, 0.5])}, r"parameters\.slip must be three probabilities"),
        ({"slip": np.array([0.5, 0.25, 0.3])}, r"parameters\.slip .*0\.3"),
        ({"slip": np.array([1.5, -0.25, -0.25])}, r"parameters\.slip"),
        ({"slip": np.array([np.nan, 0.5, 0.5])}, r"parameters\.slip must be finite"),
        ({"slip": np.full((2, 3), 1 / 3)}, r"parameters\.slip"),
        (
            {"mobility": np.array(1.1)},
            r"parameters\.mobility must be a number in \[0, 1\]; got 1\.1",
        ),
        ({"mobility": np.array(-0.1)}, r"parameters\.mobility"),
        ({"mobility": np.array([0.2])}, r"parameters\.mobility"),
        ({"mobility": np.array(np.nan)}, r"parameters\.mobility"),
        ({"spread": np.array(0.0)}, r"parameters\.spread must be a positive number; got 0\.0"),
        ({"spread": np.array(np.inf)}, r"parameters\.spread"),
        ({"spread": "wide"}, r"parameters\.spread"),
    ],
)
def test_wrong_parameters_are_named(change, culprit):
    with pytest.raises(brmdp.InvalidInputError, match=culprit):
        ContinuousFrozenLakeEnv(TRUTH._replace(**change))


def test_parameters_of_another_kind_are_refused():
    with pytest.raises(
        brmdp.InvalidInputError, match="parameters must be LakeParameters; got tuple"
    ):
        ContinuousFrozenLakeEnv((np.array([0.5, 0.25, 0.25]), 0.2, 0.5))


@pytest.mark.parametrize(
    "options",
    [
        {"state": (4.1, 0.0)},
        {"state": (-0.1, 0.0)},
        {"state": (np.nan, 0.0)},
        {"state": 3},
        {"cell": 3},
        [1.0, 1.0],
    ],
)
def test_bad_options_are_refused(options):
    env = ContinuousFrozenLakeEnv()
    with pytest.raises(brmdp.InvalidInputError, match="options"):
        env.reset(options=options)


def test_bad_render_mode():
    with pytest.raises(
        brmdp.InvalidInputError,
        match="render_mode must be None, 'ansi' or 'rgb_array'; got 'human'",
    ):
        ContinuousFrozenLakeEnv(render_mode="human")


# --------------------------------------------------------------------------------------------------


def test_text():
    env = ContinuousFrozenLakeEnv(render_mode="ansi")
    env.reset(seed=0, options={"state": (2.25, 1.5)})
    assert (
        env.render()
        == "state (2.250, 1.500)\n S  F  F  F \n F  H [F] H \n F  F  F  H \n H  F  F  G \n"
    )
    env.step(2)
    assert ", after Up\n" in env.render()


def test_the_disc_is_where_the_agent_is():
    env = ContinuousFrozenLakeEnv(render_mode="rgb_array")
    for x, y in [(0.5, 0.5), (2.9, 0.1), (4.0, 4.0), (0.0, 4.0), (1.37, 2.71)]:
        env.reset(options={"state": (x, y)})
        picture = env.render()
        assert picture.shape[0] == picture.shape[1]
        side = picture.shape[0] / 4
        red = np.argwhere((picture == (214, 48, 49)).all(axis=2)) + 0.5
        distance = np.hypot(red[:, 0] - y * side, red[:, 1] - x * side)
        assert len(red) > 50
        assert distance.max() <= 0.26 * side
        if 0.3 < x < 3.7 and 0.3 < y < 3.7:
            np.testing.assert_allclose(red.mean(axis=0), [y * side, x * side], atol=0.5)


def test_on_cell_centres_the_picture_is_the_discrete_lakes():
    env, discrete = (
        ContinuousFrozenLakeEnv(render_mode="rgb_array"),
        FrozenLakeEnv(render_mode="rgb_array"),
    )
    for cell in range(16):
        env.reset(options={"state": CENTRES[cell]})
        discrete.reset(options={"state": cell})
        np.testing.assert_array_equal(env.render(), discrete.render())


def test_rendering_without_a_mode_warns():
    env = ContinuousFrozenLakeEnv()
    env.reset()
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None
