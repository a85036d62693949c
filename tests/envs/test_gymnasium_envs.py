"""The worlds as Gymnasium environments: interface, law, random numbers, pictures, tables."""

import copy
import itertools

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy import stats

import brmdp
from brmdp.envs import InventoryEnv, TabularEnv, frozenlake, inventory, riverswim

WORLDS = {
    "riverswim": ("brmdp/RiverSwim-v0", {}),
    "riverswim-3": ("brmdp/RiverSwim-v0", {"n": 3, "discount": 0.7}),
    "frozenlake": ("brmdp/FrozenLake-v0", {}),
    "risky-frozenlake": ("brmdp/RiskyFrozenLake-v0", {"shortcut_risk": 0.9}),
    "chain": ("brmdp/Chain-v0", {}),
    "double-loop": ("brmdp/DoubleLoop-v0", {}),
    "deep-sea": ("brmdp/DeepSea-v0", {"n": 4, "stochastic": True}),
    "six-arms": ("brmdp/SixArms-v0", {}),
    "garnet": ("brmdp/Garnet-v0", {"seed": 1}),
    "wet-chicken": ("brmdp/WetChicken-v0", {}),
    "machine": ("brmdp/MachineReplacement-v0", {}),
    "population": ("brmdp/Population-v0", {"capacity": 12}),
    "tumour": ("brmdp/Tumour-v0", {"sizes": 3, "concentrations": 3}),
    "inventory": ("brmdp/Inventory-v0", {}),
    "inventory-shortage": (
        "brmdp/Inventory-v0",
        {"shortage_cost": 1.5, "capacity": 7, "max_order": 3},
    ),
}


def made(name, **more):
    world, options = WORLDS[name]
    return gymnasium.make(world, **options, **more)


@pytest.fixture(params=WORLDS)
def env(request):
    """The environment itself, without Gymnasium's wrappers."""
    return made(request.param).unwrapped


def admissible_action(env, state, rng):
    return int(rng.choice(np.flatnonzero(env.mdp.admissible[state])))


def walk(env, steps, seed, action_seed=0):
    """States, actions, rewards and infos of a random walk."""
    rng = np.random.default_rng(action_seed)
    state, _ = env.reset(seed=seed)
    record = []
    for _ in range(steps):
        action = admissible_action(env, state, rng)
        following, reward, terminated, truncated, info = env.step(action)
        assert terminated is False
        assert truncated is False
        record.append((state, action, following, reward, info))
        state = following
    return record


class Constant:
    """A generator that always gives the same number."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORLDS)
def test_gymnasium_accepts_the_environment(name):
    # warnings are errors here; the checker wants the environment without wrappers
    check_env(made(name).unwrapped)


def test_ids_make_the_papers_worlds():
    for name, mdp in [
        ("riverswim", riverswim(6)),
        ("riverswim-3", riverswim(3, discount=0.7)),
        ("frozenlake", frozenlake()),
        ("risky-frozenlake", frozenlake(0.9)),
        ("inventory", inventory().mdp),
    ]:
        env = made(name)
        assert env.spec.max_episode_steps is None
        assert env.observation_space == gymnasium.spaces.Discrete(mdp.n_states)
        assert env.action_space == gymnasium.spaces.Discrete(mdp.n_actions)
        truth = env.unwrapped.mdp
        np.testing.assert_array_equal(truth.kernel(), mdp.kernel())
        np.testing.assert_array_equal(truth.rewards, mdp.rewards)
        assert truth.discount == mdp.discount
    default_risk = gymnasium.make("brmdp/RiskyFrozenLake-v0").unwrapped.mdp
    np.testing.assert_array_equal(default_risk.kernel(), frozenlake(0.7).kernel())


def test_specifications_survive_json():
    for name in WORLDS:
        spec = gymnasium.envs.registration.EnvSpec.from_json(made(name).spec.to_json())
        again = gymnasium.make(spec).unwrapped
        np.testing.assert_array_equal(again.mdp.kernel(), made(name).unwrapped.mdp.kernel())


def test_vector_environments():
    vector = gymnasium.make_vec("brmdp/Inventory-v0", num_envs=3, vectorization_mode="sync")
    states, _ = vector.reset(seed=1, options={"state": 4})
    np.testing.assert_array_equal(states, [4, 4, 4])
    following, _, _, _, info = vector.step([0, 1, 2])
    np.testing.assert_array_equal(following, np.maximum(4 + np.arange(3) - info["disturbance"], 0))
    vector.close()


def test_types_are_plain(env):
    state, info = env.reset(seed=0)
    assert type(state) is int
    assert info == {}
    for action in (0, np.int64(0), np.array(0, dtype=np.int32)):
        state, reward, *_ = env.step(action)
        assert type(state) is int
        assert type(reward) is float


def test_the_task_never_ends(env):
    walk(env, 5000, seed=3)  # asserts it in every step


def test_an_unregistered_mdp_can_be_played():
    mdp = brmdp.TabularMDP(
        np.eye(3)[[[1, 0], [2, 1], [0, 2]]], [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], 0.9, start=1
    )
    env = TabularEnv(mdp)
    assert env.reset(seed=0)[0] == 1
    assert [env.step(0)[:2] for _ in range(3)] == [(2, 2.0), (0, 3.0), (1, 1.0)]
    assert env.step(1)[:2] == (1, 0.0)


# --------------------------------------------------------------------------------------------- the


@pytest.mark.parametrize("name", ["riverswim", "risky-frozenlake", "inventory-shortage"])
def test_transition_frequencies_follow_the_kernel(name):
    env = made(name).unwrapped
    env.reset(seed=20)
    kernel = env.mdp.kernel()
    draws, statistic, freedom = 300, 0.0, 0
    for state, action in np.argwhere(env.mdp.admissible):
        counts = np.zeros(env.mdp.n_states)
        for _ in range(draws):
            env.reset(options={"state": state})
            counts[env.step(int(action))[0]] += 1
        expected = draws * kernel[state, action]
        possible = expected > 0
        assert not counts[~possible].any()
        statistic += ((counts - expected)[possible] ** 2 / expected[possible]).sum()
        freedom += possible.sum() - 1
    assert 1e-4 < stats.chi2.sf(statistic, freedom) < 1 - 1e-4


def test_rewards_are_those_of_the_transitions(env):
    rewards = env.mdp.rewards
    if rewards.ndim == 2:  # r(s, a), whatever follows
        rewards = np.repeat(rewards[..., None], env.mdp.n_states, axis=2)
    for state, action, following, reward, info in walk(env, 3000, seed=4):
        if isinstance(env, InventoryEnv):
            assert reward == env.problem.disturbance_rewards[state, action, info["disturbance"]]
        else:
            assert reward == rewards[state, action, following]


def test_one_uniform_number_per_step_through_the_inverse_distribution(env):
    env.reset(seed=11)
    twin = copy.deepcopy(env.np_random)
    kernel = env.mdp.kernel()
    for state, action, following, _, _ in walk(env, 1000, seed=11):
        if isinstance(
            env, InventoryEnv
        ):  # demand increases with the number, so the next stock falls
            demand = int(np.argmax(np.cumsum(env.problem.demand) > twin.random()))
            assert following == max(state + action - demand, 0)
        else:
            assert following == int(np.argmax(np.cumsum(kernel[state, action]) > twin.random()))
    assert env.np_random.bit_generator.state == twin.bit_generator.state


def test_a_seed_determines_the_trajectory(env):
    first = walk(env, 200, seed=5)
    assert walk(env, 200, seed=5) == first
    certain = (env.mdp.probabilities == 1.0).all()
    assert (walk(env, 200, seed=6) == first) == certain
    twin = copy.deepcopy(env)
    assert walk(twin, 200, seed=5) == first


def test_reset_without_a_seed_goes_on_with_the_same_generator(env):
    env.reset(seed=5)
    before = copy.deepcopy(env.np_random.bit_generator.state)
    env.reset()
    env.reset(options={"state": 1})
    assert env.np_random.bit_generator.state == before


def test_the_generator_may_be_given(env):
    env.np_random = np.random.default_rng(99)
    state, _ = env.reset()
    env.step(admissible_action(env, state, np.random.default_rng(0)))
    twin = np.random.default_rng(99)
    twin.random()
    assert env.np_random.bit_generator.state == twin.bit_generator.state


def test_start_distribution():
    start = np.array([0.0, 0.5, 0.2, 0.3, 0.0])
    mdp = brmdp.TabularMDP(np.full((5, 1, 5), 0.2), np.zeros((5, 1)), 0.9, start=start)
    env = TabularEnv(mdp)
    env.reset(seed=8)
    twin = copy.deepcopy(env.np_random)
    states = [env.reset()[0] for _ in range(2000)]
    assert states == [int(np.argmax(np.cumsum(start) > twin.random())) for _ in range(2000)]
    counts = np.bincount(states, minlength=5)
    assert counts[0] == counts[4] == 0
    assert stats.chisquare(counts[1:4], 2000 * start[1:4]).pvalue > 1e-4
    np.testing.assert_array_equal(env.initial_state_distrib, start)
    before = copy.deepcopy(env.np_random.bit_generator.state)
    assert env.reset(options={"state": 4})[0] == 4
    assert env.np_random.bit_generator.state == before


def test_impossible_outcomes_are_never_drawn():
    # ten times 0.1 adds up to a little less than one, and the extreme numbers must not reach the
    # outcomes of chance zero
    env = InventoryEnv(capacity=12, max_order=5, demand=[0.0, *[0.1] * 10, 0.0])
    env.reset(seed=0, options={"state": 12})
    for number, demand in [(np.nextafter(1.0, 0.0), 10), (0.0, 1)]:
        env.np_random = Constant(number)
        env.reset(options={"state": 12})
        assert env.step(0)[4] == {"disturbance": demand}


# --------------------------------------------------------------------------------------------------


def test_the_table_converts_back(env):
    again = brmdp.TabularMDP.from_gymnasium(env, env.mdp.discount)
    assert again.pattern.same_as(env.mdp.pattern)
    np.testing.assert_allclose(again.probabilities, env.mdp.probabilities, rtol=0, atol=2e-16)
    np.testing.assert_allclose(again.transition_rewards, env.mdp.transition_rewards, rtol=1e-15)
    np.testing.assert_array_equal(again.admissible, env.mdp.admissible)
    np.testing.assert_array_equal(again.start, env.initial_state_distrib)
    assert np.argmax(again.start) == env.mdp.start


def test_the_table_lists_every_pair():
    env = made("inventory").unwrapped
    assert "P" not in vars(env)  # built when asked for
    assert list(env.P) == list(range(11))
    assert all(list(row) == list(range(6)) for row in env.P.values())
    assert env.P[10][1] == []
    assert all(
        not ended for row in env.P.values() for outcomes in row.values() for *_, ended in outcomes
    )
    river = made("riverswim").unwrapped
    assert river.P[0] == {
        0: [(1.0, 0, 0.005, False)],
        1: [(0.4, 0, 0.0, False), (0.6, 1, 0.0, False)],
    }


# --------------------------------------------------------------------------------------------------


def test_step_before_reset_is_refused(env):
    with pytest.raises(brmdp.InvalidInputError, match=r"reset\(\) before the first step"):
        env.step(0)


@pytest.mark.parametrize(
    "bad", [-1, 99, 2**70, 0.0, 1.5, True, "0", None, np.nan, np.int64(-1), np.bool_(True), [0]]
)
def test_bad_actions_change_nothing(env, bad):
    env.reset(seed=1)
    env.step(0)
    before = copy.deepcopy(env.np_random.bit_generator.state)
    with pytest.raises(brmdp.InvalidInputError, match="action must"):
        env.step(bad)
    assert env.np_random.bit_generator.state == before
    env.step(0)


def test_inadmissible_actions_are_refused():
    env = made("inventory").unwrapped
    env.reset(options={"state": 8})
    with pytest.raises(
        brmdp.InvalidInputError, match=r"action must be one of \[0, 1, 2\] in state 8; got 3"
    ):
        env.step(3)
    np.testing.assert_array_equal(env.action_mask(8), [1, 1, 1, 0, 0, 0])
    assert {int(env.action_space.sample(env.action_mask(8))) for _ in range(100)} == {0, 1, 2}
    with pytest.raises(brmdp.InvalidInputError, match=r"state must lie in 0\.\.10; got 11"):
        env.action_mask(11)


@pytest.mark.parametrize(
    "options",
    [
        {"state": -1},
        {"state": 99},
        {"state": 0.0},
        {"state": None},
        {"start": 1},
        {"state": 0, "x": 1},
        3,
    ],
)
def test_bad_options_are_refused(env, options):
    env.reset(seed=1)
    before = copy.deepcopy(env.np_random.bit_generator.state)
    with pytest.raises(brmdp.InvalidInputError, match="options"):
        env.reset(seed=2, options=options)
    assert env.np_random.bit_generator.state == before


def test_bad_construction_is_refused():
    with pytest.raises(brmdp.InvalidInputError, match=r"mdp must be a brmdp\.TabularMDP; got dict"):
        TabularEnv({})
    with pytest.raises(
        brmdp.InvalidInputError,
        match="render_mode must be None, 'ansi' or 'rgb_array'; got 'human'",
    ):
        TabularEnv(riverswim(3), render_mode="human")


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORLDS)
def test_pictures(name):
    env = made(name, render_mode="rgb_array").unwrapped
    pictures = []
    for state in range(env.mdp.n_states):
        env.reset(options={"state": state})
        pictures.append(env.render())
    shape = pictures[0].shape
    assert all(p.dtype == np.uint8 and p.shape == shape and p.shape[2] == 3 for p in pictures)
    assert all((p != q).any() for p, q in itertools.combinations(pictures, 2))
    assert not np.shares_memory(env.render(), env.render())
    np.testing.assert_array_equal(env.render(), pictures[-1])


def test_the_disc_is_in_the_agents_cell():
    env = made("risky-frozenlake", render_mode="rgb_array").unwrapped
    env.reset(options={"state": 0})
    at_start = env.render()
    env.reset(options={"state": 6})
    changed = (env.render() != at_start).any(axis=2)
    side = changed.shape[0] // 4
    cells = changed.reshape(4, side, 4, side).any(axis=(1, 3)).ravel()
    np.testing.assert_array_equal(np.flatnonzero(cells), [0, 6])


@pytest.mark.parametrize("n_states", [1, 2, 7, 90, 2000])
def test_any_world_can_be_drawn(n_states):
    mdp = brmdp.TabularMDP(np.eye(n_states)[:, None, :], np.zeros((n_states, 1)), 0.9)
    pictures, texts = [], []
    for state in {0, n_states // 2, n_states - 1}:
        for mode, frames in (("rgb_array", pictures), ("ansi", texts)):
            env = TabularEnv(mdp, mode)
            env.reset(options={"state": state})
            frames.append(env.render())
        assert texts[-1].startswith(f"state {state}\n")
        assert texts[-1].count("[") == 1
    assert max(pictures[0].shape) < 1000
    assert all((p != q).any() for p, q in itertools.combinations(pictures, 2))


def test_text():
    env = made("risky-frozenlake", render_mode="ansi")
    env.reset(options={"state": 6})
    assert env.render() == "state 6\n S  F  J  F \n F  H [F] H \n F  F  F  H \n H  F  F  G \n"
    assert "J" not in gymnasium.make(
        "brmdp/FrozenLake-v0", render_mode="ansi"
    ).unwrapped.painter.text(0)
    river = made("riverswim", render_mode="ansi")
    river.reset(options={"state": 4})
    river.step(0)
    assert river.render() == "state 3, after left\n S  ~  ~ [~] ~  G \n"
    store = made("inventory", render_mode="ansi")
    store.reset(options={"state": 3})
    assert store.render() == "stock 3\n[###.......] 3 of 10\n"
    _, _, _, _, info = store.step(2)
    assert store.render().startswith(f"stock {5 - info['disturbance']}, after order 2\n")


def test_unnamed_actions_are_numbered():
    env = TabularEnv(brmdp.TabularMDP(np.ones((1, 2, 1)), np.zeros((1, 2)), 0.5), "ansi")
    env.reset()
    env.step(1)
    assert env.render() == "state 0, after action 1\n[.]\n"


def test_frames_are_collected():
    env = made("riverswim", render_mode="rgb_array_list")
    env.reset(seed=0)
    env.step(1)
    assert len(env.render()) == 2


def test_rendering_without_a_mode_warns(env):
    env.reset()
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_rendering_before_reset_is_refused(mode):
    with pytest.raises(brmdp.InvalidInputError, match=r"reset\(\) before render"):
        made("riverswim", render_mode=mode).unwrapped.render()


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"shortage_cost": 1.5, "capacity": 7, "max_order": 3},
        {
            "capacity": 3,
            "max_order": 3,
            "demand": [0.0, 0.5, 0.0, 0.25, 0.25],
            "shortage_cost": 2.0,
        },
        {"capacity": 4, "max_order": 1, "demand": [1.0], "order_cost": 0, "holding_cost": 1},
    ],
)
def test_inventory_against_enumeration(settings):
    problem = inventory(**settings)
    amounts = {
        "price": 4.0,
        "unit_cost": 2.0,
        "order_cost": 1.0,
        "holding_cost": 0.1,
        "shortage_cost": 0.0,
    } | settings
    capacity, max_order = settings.get("capacity", 10), settings.get("max_order", 5)
    chances = settings.get("demand", [0.1, 0.2, 0.3, 0.2, 0.15, 0.05])
    mdp, kernel = problem.mdp, problem.mdp.kernel()
    assert (mdp.n_states, mdp.n_actions, mdp.start, mdp.discount) == (
        capacity + 1,
        max_order + 1,
        0,
        0.95,
    )
    assert (
        problem.outcomes.shape
        == problem.disturbance_rewards.shape
        == (capacity + 1, max_order + 1, len(chances))
    )
    np.testing.assert_allclose(problem.demand, chances)
    for stock in range(capacity + 1):
        for order in range(max_order + 1):
            if stock + order > capacity:
                assert not mdp.admissible[stock, order]
                assert (problem.outcomes[stock, order] == -1).all()
                continue
            chance, paid = np.zeros(capacity + 1), np.zeros(capacity + 1)
            for demand, probability in enumerate(chances):
                sold = min(stock + order, demand)
                left = stock + order - sold
                profit = (
                    sold * amounts["price"]
                    - order * amounts["unit_cost"]
                    - left * amounts["holding_cost"]
                )
                profit -= (demand - sold) * amounts["shortage_cost"]
                if order > 0:
                    profit -= amounts["order_cost"]
                assert problem.outcomes[stock, order, demand] == left
                assert problem.disturbance_rewards[stock, order, demand] == pytest.approx(
                    profit, abs=1e-12
                )
                chance[left] += probability
                paid[left] += probability * profit
            np.testing.assert_allclose(kernel[stock, order], chance, atol=1e-15)
            possible = chance > 0
            np.testing.assert_allclose(
                mdp.rewards[stock, order][possible], paid[possible] / chance[possible]
            )


def test_without_shortage_cost_rewards_by_next_stock_hold_for_every_demand():
    problem = inventory(
        demand=[0.5, 0.5, 0.0, 0.0]
    )  # also for demands that never occur: a belief may expect them
    for s, a in np.argwhere(problem.mdp.admissible):
        by_next_stock = problem.mdp.rewards[s, a, problem.outcomes[s, a]]
        np.testing.assert_allclose(
            by_next_stock, problem.disturbance_rewards[s, a], rtol=0, atol=1e-12
        )


def test_inventory_tables_are_read_only():
    problem = inventory()
    for array in (problem.outcomes, problem.disturbance_rewards, problem.demand):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize(
    ("settings", "culprit"),
    [
        ({"capacity": 0}, "capacity must be a positive integer; got 0"),
        ({"capacity": 2.5}, "capacity"),
        ({"max_order": 0}, "max_order"),
        ({"max_order": 11}, "max_order must not exceed capacity=10; got 11"),
        ({"demand": [0.5, 0.6]}, r"demand .*sum 1\.1"),
        ({"demand": [1.5, -0.5]}, "demand"),
        ({"demand": []}, "demand"),
        ({"demand": 0.5}, "demand"),
        ({"demand": [[1.0]]}, "demand"),
        ({"demand": [np.nan, 1.0]}, "demand"),
        ({"price": -1.0}, r"price must be a finite number that is not negative; got -1\.0"),
        ({"unit_cost": np.inf}, "unit_cost"),
        ({"order_cost": "2"}, "order_cost"),
        ({"holding_cost": np.nan}, "holding_cost"),
        ({"shortage_cost": None}, "shortage_cost"),
        ({"discount": 1.5}, "discount"),
    ],
)
def test_bad_inventories_are_named(settings, culprit):
    with pytest.raises(brmdp.InvalidInputError, match=culprit):
        inventory(**settings)
    with pytest.raises(brmdp.InvalidInputError, match=culprit):
        gymnasium.make("brmdp/Inventory-v0", **settings)


@pytest.mark.long
def test_demand_is_reported_and_follows_its_distribution():
    env = made("inventory-shortage").unwrapped
    record = walk(env, 20_000, seed=9)
    assert all(
        following == max(s + a - info["disturbance"], 0) for s, a, following, _, info in record
    )
    counts = np.bincount([info["disturbance"] for *_, info in record], minlength=6)
    assert stats.chisquare(counts, 20_000 * env.problem.demand).pvalue > 1e-4


def test_the_belief_learns_from_the_environment():
    env = made("inventory").unwrapped
    belief = brmdp.DisturbanceBelief(env.problem.outcomes)
    np.testing.assert_array_equal(belief.pattern.admissible, env.mdp.admissible)
    record = walk(env, 500, seed=2)
    for state, action, following, _, info in record:
        hidden = following == 0 and state + action < 5
        if hidden:
            with pytest.raises(brmdp.InvalidInputError, match="does not reveal the disturbance"):
                belief.observe(state, action, following)
        belief.observe(
            state, action, following, disturbance=info["disturbance"] if hidden else None
        )
    assert any(following == 0 and state + action < 5 for state, action, following, _, _ in record)
    np.testing.assert_array_equal(
        belief.counts(), np.bincount([i["disturbance"] for *_, i in record], minlength=6)
    )


@pytest.mark.parametrize("shortage_cost", [0.0, 2.0])
def test_without_doubt_the_plan_is_the_true_optimum(shortage_cost):
    # the solver meets the same problem twice: by demand, and by next stock
    problem = inventory(shortage_cost=shortage_cost)
    sure = brmdp.DisturbanceBelief(problem.outcomes, 1e6 * problem.demand)
    rewards = brmdp.DisturbanceRewards(problem.disturbance_rewards)
    plan = brmdp.plan(sure, rewards, problem.mdp.discount, risk=brmdp.Mean(), tolerance=1e-9)
    truth = brmdp.solve(problem.mdp, tolerance=1e-9)
    np.testing.assert_allclose(plan.values, truth.values, rtol=0, atol=2e-9)
    np.testing.assert_array_equal(plan.policy, truth.policy)


@pytest.mark.parametrize("shortage_cost", [0.0, 2.0])
@pytest.mark.parametrize("level", [0.1, 0.9])
def test_quantile_plans_converge_to_the_true_optimum(level, shortage_cost):
    problem = inventory(shortage_cost=shortage_cost)
    truth = brmdp.solve(problem.mdp)
    rewards = brmdp.DisturbanceRewards(problem.disturbance_rewards)
    belief = brmdp.DisturbanceBelief(problem.outcomes)
    rng = np.random.default_rng(12)
    gaps = []
    for observations in (0, 1_000, 1_000_000):
        belief.observe_disturbance(
            rng.choice(problem.demand.size, size=observations, p=problem.demand)
        )
        plan = brmdp.plan(belief, rewards, problem.mdp.discount, risk=brmdp.Quantile(level))
        gaps.append(np.abs(plan.values - truth.values).max())
    assert gaps[0] > 10 > gaps[1]
    assert gaps[1] > 4 * gaps[2]
    assert (
        gaps[2] < 0.3
    )  # of about 70; the posterior's standard deviation at a million observations is about 0.05
    np.testing.assert_array_equal(plan.policy, truth.policy)
