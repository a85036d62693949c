"""Worlds: any Gymnasium environment with discrete spaces, its ends, and Gymnasium's tables."""

import re

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from gymnasium.wrappers import TimeLimit

import brmdp
from brmdp import World, agents, simulate
from brmdp.envs import TabularEnv, riverswim

TAXI = "Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"

TABLES = {
    "FrozenLake-v1": {},
    "FrozenLake8x8-v1": {},
    "FrozenLake-dry": {"id": "FrozenLake-v1", "is_slippery": False},
    "CliffWalking-v1": {},
    "CliffWalking-slippery": {"id": "CliffWalking-v1", "is_slippery": True},
    TAXI: {},
    "Taxi-rainy": {"id": TAXI, "is_rainy": True},
}
"""Gymnasium's own environments with a table P."""


def made(name, **more):
    options = TABLES[name] | more
    return gymnasium.make(options.pop("id", name), **options)


def dense_rewards(world):
    """Rewards r(s, a, s') of the model."""
    rewards = world.rewards
    if not isinstance(rewards, np.ndarray):
        rewards = rewards.toarray().reshape(world.n_states, world.n_actions, world.n_states)
    if rewards.ndim == 2:
        rewards = np.repeat(rewards[:, :, None], world.n_states, axis=2)
    return rewards


def values_of_table(table, discount):
    """Value iteration on Gymnasium's own table, where nothing follows a terminated transition."""
    values = np.zeros(len(table))
    while True:
        following = np.array(
            [
                max(
                    sum(
                        p * (r + discount * (0.0 if end else values[t]))
                        for p, t, r, end in outcomes
                    )
                    for outcomes in row.values()
                )
                for _, row in sorted(table.items())
            ]
        )
        change = np.abs(following - values).max()
        values = following
        if change < 1e-12 * (1 - discount):
            return values


class Corridor(gymnasium.Env):
    """Four cells without a table: 1 goes right or slips (one time in four), 0 goes left.

    The right end pays and ends the episode.
    """

    def __init__(self, n_states=4):
        self.observation_space = Discrete(n_states)
        self.action_space = Discrete(2)
        self.cell = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 0
        return self.cell, {}

    def step(self, action):
        right = action == 1 and self.np_random.random() < 0.75
        self.cell = self.cell + 1 if right else max(self.cell - 1, 0)
        ended = self.cell == 3
        return np.int64(self.cell), float(ended), ended, False, {}


CORRIDOR_REWARDS = np.zeros((4, 2, 5))
CORRIDOR_REWARDS[:, :, 4] = 1.0


def noting(agent):
    """The transitions that an agent observes from now on."""
    transitions, observe = [], agent.observe

    def noted(state, action, next_state, *, disturbance=None):
        transitions.append((state, action, next_state))
        observe(state, action, next_state, disturbance=disturbance)

    agent.observe = noted
    return transitions


def learner(world, *, rng=0, method="exact", alpha=0.5):
    return agents.fixed_quantile(
        world.prior(), world.rewards, world.discount, alpha=alpha, method=method, rng=rng
    )


# --- Gymnasium's tables ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_the_truth_has_the_values_of_the_table(name):
    env = made(name)
    world = World(env, 0.9)
    n = env.observation_space.n
    values = brmdp.solve(world.truth, tolerance=1e-9).values
    np.testing.assert_allclose(values[:n], values_of_table(env.unwrapped.P, 0.9), rtol=0, atol=1e-8)
    np.testing.assert_array_equal(values[n:], 0.0)
    assert (world.truth.n_states, world.truth.n_actions) == (world.n_states, world.n_actions)
    np.testing.assert_allclose(world.truth.start[:n], env.unwrapped.initial_state_distrib)
    assert world.n_states > n


@pytest.mark.parametrize("name", TABLES)
def test_every_step_is_one_of_the_model_and_pays_what_the_model_says(name):
    world = World(made(name), 0.9)
    kernel, rewards, table = world.truth.kernel("csr"), dense_rewards(world), world.env.unwrapped.P
    rng = np.random.default_rng(1)
    state, ends = world.reset(seed=2), 0
    for _ in range(1500):
        action = int(rng.integers(world.n_actions))
        observation, reward, terminated, truncated, _ = world.env.step(action)
        following = world.end_of(int(observation)) if terminated else int(observation)
        assert (following >= world.env.observation_space.n) == terminated
        assert kernel[state * world.n_actions + action, following] > 0
        listed = [
            (p, r)
            for p, t, r, end in table[state][action]
            if (t, end) == (observation, terminated) and p > 0
        ]
        paid = {r for _, r in listed}
        assert reward in paid
        # at the start of the slippery cliff a fall and a blocked move both lead to the start: the
        # mean
        assert len(paid) == 1 or name == "CliffWalking-slippery"
        mean = sum(p * r for p, r in listed) / sum(p for p, _ in listed)
        assert rewards[state, action, following] == pytest.approx(mean, rel=1e-14)
        ends += terminated
        state = world.reset() if terminated or truncated else following
    assert ends > 0 or not name.startswith("FrozenLake")


@pytest.mark.parametrize("name", TABLES)
def test_ends_are_absorbing_and_pay_nothing(name):
    world = World(made(name), 0.9)
    first = world.env.observation_space.n
    kernel, mean = world.truth.kernel("csr"), world.prior().mean("csr")
    for end in range(first, world.n_states):
        for action in range(world.n_actions):
            pair = end * world.n_actions + action
            assert kernel[pair, end] == mean[pair, end] == 1.0
            assert dense_rewards(world)[end, action, end] == 0.0


def test_one_end_suffices_unless_an_action_can_end_in_ways_that_pay_differently():
    assert World(made("FrozenLake-v1"), 0.9).n_states == 17
    assert World(made("CliffWalking-v1"), 0.9).n_states == 49
    large = made("FrozenLake8x8-v1")
    table = large.unwrapped.P
    world = World(large, 0.9)
    last = {
        t for row in table.values() for outcomes in row.values() for _, t, _, end in outcomes if end
    }
    assert world.n_states == 64 + len(last)
    mixed = [
        (s, a)
        for s, row in table.items()
        for a, outcomes in row.items()
        if {r for p, _, r, end in outcomes if end and p > 0} == {0, 1}
    ]
    assert mixed, "the example must have an action that can end in a hole or in the goal"
    rewards = dense_rewards(world)
    goal, hole = world.end_of(63), world.end_of(54)
    assert goal != hole
    for s, a in mixed:
        assert rewards[s, a, goal] == 1.0
        assert rewards[s, a, hole] == 0.0
        assert world.prior().concentration()[s, a, [goal, hole]].tolist() == [1.0, 1.0]


def test_known_successors_are_those_of_the_table():
    world = World(made("FrozenLake-v1"), 0.9)
    np.testing.assert_array_equal(world.prior().concentration() > 0, world.truth.kernel() > 0)
    np.testing.assert_array_equal(world.prior(known_successors=True).mean(), world.prior().mean())
    wide = world.prior(0.5, known_successors=False).concentration()
    assert (wide[:16] == 0.5).all()
    np.testing.assert_array_equal(wide[16], np.broadcast_to(0.5 * np.eye(17)[16], (4, 17)))


def test_unlisted_transitions_pay_the_least_that_the_pair_can_pay():
    world = World(made("FrozenLake-v1"), 0.9)
    rewards = dense_rewards(world)
    assert rewards[14, 2, 16] == 1.0  # to the goal, the only transition of value
    assert rewards[14, 2].sum() == 1.0
    cliff = World(made("CliffWalking-v1"), 0.9)
    assert (dense_rewards(cliff)[37, 1] == dense_rewards(cliff)[37, 1].min()).all()


# --- termination, truncation, reset ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1"])
def test_neither_a_reset_nor_a_truncation_is_observed(name):
    """With a short limit of steps.

    After an end or a truncation the next observed transition begins at the start.
    """
    limit = 40
    env = made(name, max_episode_steps=limit)
    world = World(env, 0.9)
    start, first_end = world.reset(seed=3), env.observation_space.n
    agent = learner(world, method="saddlepoint")
    transitions = noting(agent)
    history = simulate(agent, world, 600, seed=3)
    assert len(transitions) == 600
    terminations = truncations = since = 0
    for t, (state, action, following) in enumerate(transitions):
        assert (history.state[t], history.action[t]) == (state, action)
        assert state < first_end, "nothing is ever observed from an end"
        since += 1
        if following >= first_end:
            terminations += 1
        elif since == limit:
            truncations += 1
        else:
            assert t == 599 or transitions[t + 1][0] == following
            continue
        assert t == 599 or transitions[t + 1][0] == start
        since = 0
    assert terminations > 0
    assert truncations > 0 or name == "CliffWalking-v1"  # which is solved at once
    learned = world.prior()
    learned.observe(*np.array(transitions).T)
    np.testing.assert_array_equal(agent.arrays()["latest.counts"], learned.counts("flat"))
    assert learned.counts()[:, :, first_end:].sum() == terminations


def test_truncation_of_a_continuing_task():
    """The river with a limit of steps.

    The jump back to the start is not a transition, but the last step before it is.
    """
    mdp = riverswim(6)
    world = World(TimeLimit(TabularEnv(mdp), 15), 0.9)
    agent = agents.continuing_psrl(world.prior(), world.rewards, 0.9, rng=2)
    transitions = noting(agent)
    simulate(agent, world, 300, seed=4)
    assert len(transitions) == 300
    assert all(mdp.kernel()[transition] > 0 for transition in transitions)
    assert all(state == 0 for state, _, _ in transitions[::15])
    assert any(following > 1 for _, _, following in transitions[14::15])


def test_an_end_that_the_table_does_not_know_is_refused():
    class Liar(Corridor):
        P = {s: {a: [(1.0, max(s - 1, 0), 0.0, False)] for a in range(2)} for s in range(4)}  # noqa: RUF012

    world = World(Liar(), 0.9)
    with pytest.raises(
        brmdp.InvalidInputError, match="terminated in state 3, although no episode ends there"
    ):
        world.end_of(3)


# --- environments without a table -----------------------------------------------------------------


def test_an_environment_without_a_table_needs_rewards():
    with pytest.raises(brmdp.InvalidInputError, match=r"rewards must be given for .*Corridor"):
        World(Corridor(), 0.9)


@pytest.mark.parametrize("shape", [(4,), (5, 2), (4, 3), (4, 2, 4), (5, 2, 5), (2, 4, 5)])
def test_rewards_of_another_shape_are_refused(shape):
    message = rf"rewards must have shape \(4, 2\) or \(4, 2, 5\).*got {re.escape(str(shape))}"
    with pytest.raises(brmdp.InvalidInputError, match=message):
        World(Corridor(), 0.9, rewards=np.zeros(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf, "x"])
def test_rewards_that_are_no_numbers_are_refused(bad):
    with pytest.raises(brmdp.InvalidInputError, match="rewards must be"):
        World(Corridor(), 0.9, rewards=np.full((4, 2), bad))


def test_the_model_of_an_environment_without_a_table():
    world = World(Corridor(), 0.9, rewards=CORRIDOR_REWARDS)
    assert (world.n_states, world.n_actions, world.truth) == (5, 2, None)
    assert {world.end_of(s) for s in range(4)} == {4}
    np.testing.assert_array_equal(dense_rewards(world)[:4], CORRIDOR_REWARDS)
    np.testing.assert_array_equal(dense_rewards(world)[4], 0.0)
    flat = World(Corridor(), 0.9, rewards=np.arange(8.0).reshape(4, 2))
    np.testing.assert_array_equal(flat.rewards, [[0, 1], [2, 3], [4, 5], [6, 7], [0, 0]])
    phi = world.prior().concentration()
    assert (phi[:4] == 1.0).all()
    np.testing.assert_array_equal(phi[4], [[0, 0, 0, 0, 1]] * 2)
    with pytest.raises(
        brmdp.InvalidInputError, match="known_successors=True needs a world whose truth is known"
    ):
        world.prior(known_successors=True)


@pytest.mark.parametrize("make", ["aq-brmdp", "brmdp", "continuing-psrl"])
def test_agents_learn_in_an_environment_without_a_table(make):
    world = World(TimeLimit(Corridor(), 30), 0.9, rewards=CORRIDOR_REWARDS)
    given = world.prior(), world.rewards, 0.9
    agent = {
        "aq-brmdp": lambda: agents.aq_brmdp(*given, delta=2.0, rng=1),
        "brmdp": lambda: agents.fixed_quantile(*given, alpha=0.5, rng=1),
        "continuing-psrl": lambda: agents.continuing_psrl(*given, rng=1),
    }[make]()
    history = simulate(agent, world, 600, seed=2)
    assert history.true_regret is None
    assert history.reward[300:].mean() > 0.15  # the best is about 0.19, chance gives 0.01
    assert agent.policy[:3].tolist() == [1, 1, 1]
    assert agent.explain(4)[0].value == 0.0, "the end is worth nothing"


# --- rewards that do not fit ----------------------------------------------------------------------


class Paying(gymnasium.Wrapper):
    """Pays other rewards than the environment, as a function of what happened."""

    def __init__(self, env, pay):
        super().__init__(env)
        self.pay = pay

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, self.pay(reward, observation, terminated), terminated, truncated, info


def acted(world, steps, seed=0):
    """Take random admissible actions."""
    rng = np.random.default_rng(seed)
    state = world.reset(seed=seed)
    for _ in range(steps):
        allowed = np.arange(world.n_actions)
        if world.truth is not None:
            allowed = np.flatnonzero(world.truth.admissible[state])
        _, _, state, _ = world.step(int(rng.choice(allowed)))


RIGHT = {
    **{name: lambda name=name: made(name) for name in TABLES},
    "river": lambda: TabularEnv(riverswim(6)),
    "lake": lambda: gymnasium.make("brmdp/RiskyFrozenLake-v0"),
    "inventory": lambda: gymnasium.make("brmdp/Inventory-v0", shortage_cost=1.5),
}


@pytest.mark.parametrize("name", RIGHT)
def test_an_environment_that_pays_what_it_says_is_never_suspected(name):
    for pay in (
        lambda r, o, end: r,
        lambda r, o, end: np.float32(r),
        lambda r, o, end: np.array(r),
    ):
        acted(World(Paying(RIGHT[name](), pay), 0.9), 400)


@pytest.mark.parametrize("name", RIGHT)
def test_an_environment_that_pays_more_than_it_says_is_found_out(name):
    world = World(Paying(RIGHT[name](), lambda r, o, end: r + 0.5), 0.9)
    with pytest.raises(
        brmdp.RewardMismatchError, match=r"the environment paid .* for \(state=.*the model has"
    ):
        acted(world, 1)
    acted(World(Paying(RIGHT[name](), lambda r, o, end: r + 0.5), 0.9, random_rewards=True), 50)


def test_what_is_said_of_a_reward_that_does_not_fit():
    world = World(Paying(made("FrozenLake-dry"), lambda r, o, end: r + 0.25 * (o == 4)), 0.9)
    world.reset(seed=1)
    world.step(0)
    with pytest.raises(brmdp.RewardMismatchError) as caught:
        world.step(1)
    assert isinstance(caught.value, ValueError)
    assert "paid 0.25 for (state=0, action=1, next_state=4), where the model has 0." in str(
        caught.value
    )


def test_one_large_reward_hides_no_other():
    rewards = np.zeros((4, 2))
    rewards[0, 0] = -1e6
    world = World(Paying(Corridor(), lambda r, o, end: 0.5), 0.9, rewards=rewards)
    world.reset(seed=1)
    with pytest.raises(brmdp.RewardMismatchError, match=r"paid 0.5 .* the model has 0\."):
        world.step(1)
    world = World(
        Paying(Corridor(), lambda r, o, end: np.float32(-1e6 + 1e-2)), 0.9, rewards=rewards
    )
    world.reset(seed=1)
    world.step(0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_random_rewards_are_numbers(bad):
    world = World(Paying(TabularEnv(riverswim(6)), lambda r, o, end: bad), 0.9, random_rewards=True)
    world.reset(seed=1)
    with pytest.raises(
        brmdp.InvalidInputError, match="the environment's reward must be finite; got"
    ):
        world.step(0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rewards_that_are_no_numbers_never_fit(bad):
    world = World(Paying(TabularEnv(riverswim(6)), lambda r, o, end: bad), 0.9)
    world.reset(seed=1)
    with pytest.raises(brmdp.RewardMismatchError, match=f"paid {bad}"):
        world.step(0)


@pytest.mark.parametrize("bad", [None, "1", [1.0], np.array([1.0]), 1j])
def test_rewards_of_another_type_are_refused(bad):
    world = World(Paying(TabularEnv(riverswim(6)), lambda r, o, end: bad), 0.9)
    world.reset(seed=1)
    with pytest.raises(
        brmdp.InvalidInputError, match="the environment's reward must be a number; got"
    ):
        world.step(0)


@pytest.mark.parametrize("bad", [None, 6, -1, np.array([1]), True, 2.0])
def test_observations_that_are_no_states_are_refused(bad):
    class Strange(gymnasium.Wrapper):
        def step(self, action):
            return (bad, *super().step(action)[1:])

    world = World(Strange(TabularEnv(riverswim(6))), 0.9)
    world.reset(seed=1)
    with pytest.raises(brmdp.InvalidInputError, match="the environment's observation must"):
        world.step(0)


def test_a_step_before_the_reset_is_refused():
    class Eager(Corridor):
        pass

    with pytest.raises(brmdp.InvalidInputError, match="call reset"):
        World(Eager(), 0.9, rewards=CORRIDOR_REWARDS).step(0)


class Twofold(gymnasium.Env):
    """One state and an end.

    Outcomes with the same next state pay differently, and the episode may end in that state.
    """

    P = {0: {0: [(0.5, 0, 1.0, False), (0.25, 0, 3.0, False), (0.25, 0, -7.0, True)]}}  # noqa: RUF012

    def __init__(self, pays=None):
        self.observation_space, self.action_space, self.pays = Discrete(1), Discrete(1), pays

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        ticket = self.np_random.random()
        _, state, reward, ended = self.P[0][0][0 if ticket < 0.5 else 1 if ticket < 0.75 else 2]
        return state, reward if self.pays is None else self.pays[ended], ended, False, {}


def test_any_of_several_outcomes_that_may_have_happened_will_do():
    acted(World(Twofold(), 0.9), 100)
    for pays, culprit in (
        ((1.0, 3.0), "where the model has -7"),
        ((-7.0, -7.0), "where the model has 1 or 3"),
    ):
        with pytest.raises(brmdp.RewardMismatchError, match=culprit):
            acted(World(Twofold(pays), 0.9), 100)
    # r(0, 0) = 0.5 + 0.75 - 1.75, and it goes on with 3/4
    world = World(Twofold(), 0.9)
    assert brmdp.solve(world.truth).values[0] == pytest.approx(-0.5 / (1 - 0.9 * 0.75))


def test_an_agent_that_plans_with_other_rewards_is_refused():
    world = World(TabularEnv(riverswim(6)), 0.9)
    agent = agents.fixed_quantile(
        world.prior(), np.array(world.rewards) + 0.5, 0.9, alpha=0.3, rng=0
    )
    with pytest.raises(
        brmdp.RewardMismatchError,
        match=r"the agent plans with the reward 0\.5\d* for \(state=0, action=0",
    ):
        simulate(agent, world, 10)
    assert len(simulate(agent, World(TabularEnv(riverswim(6)), 0.9, random_rewards=True), 10)) == 10


# --- endings that pay differently -----------------------------------------------------------------


class Expedition(gymnasium.Env):
    """Three camps, 0 to 2.

    Waiting (0) costs 0.1 and may kill. Climbing (1) goes on, kills more often, and ends at home.

    From every camp one may die (observation 3, pays -10) or, from the last, come home (observation
    4, pays +5).
    """

    DEATH, HOME = 3, 4
    RISK = ((0.02, 0.05), (0.02, 0.10), (0.02, 0.15))

    def __init__(self):
        self.observation_space, self.action_space, self.camp = Discrete(5), Discrete(2), 0

    @classmethod
    def outcomes(cls, camp, action):
        risk = cls.RISK[camp][action]
        onward = (
            (camp, -0.1, False)
            if action == 0
            else (camp + 1, 0.0, False)
            if camp < 2
            else (cls.HOME, 5.0, True)
        )
        return [(1.0 - risk, *onward), (risk, cls.DEATH, -10.0, True)]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.camp = 0
        return 0, {}

    def step(self, action):
        (_, *first), (risk, *second) = self.outcomes(self.camp, action)
        self.camp, reward, ended = second if self.np_random.random() < risk else first
        return self.camp, reward, ended, False, {}


class Mapped(Expedition):
    """The same with a table; nothing leaves the terminal observations."""

    @property
    def P(self):
        stay = {s: {a: [(1.0, s, 0.0, True)] for a in range(2)} for s in (self.DEATH, self.HOME)}
        return {s: {a: self.outcomes(s, a) for a in range(2)} for s in range(3)} | stay


def expedition_values(discount, choice=None):
    """Values of the camps by plain iteration, of the best policy or of one."""
    values = np.zeros(3)
    for _ in range(2000):
        q = np.array(
            [
                [
                    sum(
                        p * (r + (0.0 if end else discount * values[t]))
                        for p, t, r, end in Expedition.outcomes(s, a)
                    )
                    for a in range(2)
                ]
                for s in range(3)
            ]
        )
        values = q.max(axis=1) if choice is None else q[np.arange(3), choice]
    return values, q.argmax(axis=1)


EXPEDITION_REWARDS = np.zeros((5, 2, 7))
EXPEDITION_REWARDS[:, 0, :5] = -0.1
EXPEDITION_REWARDS[:, :, 5] = -10.0
EXPEDITION_REWARDS[:, :, 6] = 5.0


@pytest.mark.long
@pytest.mark.parametrize("discount", [0.5, 0.95])
def test_death_and_survival_with_a_table(discount):
    world = World(Mapped(), discount)
    assert world.end_of(Expedition.DEATH) != world.end_of(Expedition.HOME)
    values, policy = expedition_values(discount)
    solution = brmdp.solve(world.truth)
    np.testing.assert_allclose(solution.values[:3], values, atol=1e-7)
    assert solution.policy[:3].tolist() == policy.tolist()
    agent = agents.fixed_quantile(world.prior(), world.rewards, discount, alpha=0.5, rng=1)
    history = simulate(agent, world, 3000, seed=2)
    assert agent.policy[:3].tolist() == policy.tolist()
    assert {-10.0, 5.0} <= set(history.reward.tolist())
    followed = {}
    for t in np.flatnonzero(np.diff(history.episode, prepend=0)):
        # the policy of an episode is seen in its actions only; the regret of its first step is that
        # of some policy
        followed[int(history.episode[t])] = history.true_regret[t]
    gaps = {
        round(float((values - expedition_values(discount, np.array(choice))[0])[s]), 6)
        for choice in np.ndindex(2, 2, 2)
        for s in range(3)
    }
    assert {round(float(regret), 6) for regret in followed.values()} <= gaps
    assert history.true_regret[-500:].max() < 1e-6


def expedition(ends, steps):
    """The world, an agent after that many steps in it, and what happened."""
    world = World(Expedition(), 0.95, rewards=EXPEDITION_REWARDS, ends=ends)
    assert (world.n_states, world.end_of(3), world.end_of(4)) == (7, 5, 6)
    agent = agents.fixed_quantile(world.prior(0.1), world.rewards, 0.95, alpha=0.5, rng=1)
    return agent, simulate(agent, world, steps, seed=2)


@pytest.mark.parametrize("ends", [[(3,), {4}], np.array([3, 4]), ([np.int64(3)], 4)])
def test_ends_may_be_given_in_many_ways(ends):
    _, wanted = expedition([3, 4], 200)
    _, history = expedition(ends, 200)
    assert {5, 6} <= set(wanted.next_state.tolist())
    for name in ("state", "action", "reward", "next_state"):
        np.testing.assert_array_equal(getattr(history, name), getattr(wanted, name))


@pytest.mark.long
def test_death_and_survival_without_a_table():
    agent, history = expedition([3, 4], 2500)
    values, policy = expedition_values(0.95)
    assert agent.policy[:3].tolist() == policy.tolist()
    assert {-10.0, 5.0} <= set(history.reward.tolist())
    found = [max(report.mean for report in agent.explain(s)) for s in range(3)]
    np.testing.assert_allclose(found, values, atol=1.5)
    assert [agent.explain(end)[0].value for end in (5, 6)] == [0.0, 0.0]


def test_one_end_for_all_cannot_pay_in_two_ways():
    one = np.zeros((5, 2, 6))
    one[:, 0, :5] = -0.1
    one[:, :, 5] = 5.0
    world = World(Expedition(), 0.95, rewards=one)
    with pytest.raises(
        brmdp.RewardMismatchError,
        match=r"paid -10 for .*next_state=5, where the episode ended with observ",
    ):
        acted(world, 500)
    # an end that pays, in a model that has zero there
    one[:, :, 5] = 0.0
    message = r"where the model has 0\..*pass ends= to World"
    with pytest.raises(brmdp.RewardMismatchError, match=message):
        acted(World(Expedition(), 0.95, rewards=one), 500)


def test_ends_may_be_grouped_and_must_be_complete():
    rewards = np.zeros((5, 2, 6))
    world = World(Expedition(), 0.9, rewards=rewards, ends=[(3, 4)], random_rewards=True)
    assert world.end_of(3) == world.end_of(4) == 5
    with pytest.raises(
        brmdp.InvalidInputError, match=r"terminated in state 4, which is not one of the given ends"
    ):
        World(Expedition(), 0.9, rewards=rewards, ends=[3]).end_of(4)
    for bad, message in (
        ([], "ends must be a collection of states"),
        ("34", "ends must be a collection of states"),
        (3, "ends must be a collection of states"),
        ([5], r"ends must lie in 0\.\.4; got 5"),
        ([3, 3], "ends must name each state once; got 3 twice"),
        ([(3, 4), 4], "ends must name each state once; got 4 twice"),
        ([None], "ends must be an integer"),
    ):
        with pytest.raises(brmdp.InvalidInputError, match=message):
            World(Expedition(), 0.9, rewards=rewards, ends=bad)
    with pytest.raises(brmdp.InvalidInputError, match="ends can be given only together with"):
        World(Mapped(), 0.9, ends=[3, 4])
    with pytest.raises(
        brmdp.InvalidInputError, match=r"\(5, 2, 7\), the last 2 successors being the ends"
    ):
        World(Expedition(), 0.9, rewards=rewards, ends=[3, 4])


# --- large priors ---------------------------------------------------------------------------------


@pytest.mark.long
def test_a_very_large_prior_must_be_asked_for():
    class Wide(Corridor):
        def __init__(self):
            super().__init__(1500)

    world = World(Wide(), 0.9, rewards=np.zeros((1500, 2)))
    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"has 4,506,002 entries here.*pass known_successors=False",
    ):
        world.prior()
    assert world.prior(known_successors=False).pattern.n_states == 1501


# --- the library's own worlds ---------------------------------------------------------------------


def test_worlds_of_the_library_come_with_their_truth():
    for env in (
        "brmdp/RiverSwim-v0",
        gymnasium.make("brmdp/RiskyFrozenLake-v0"),
        TabularEnv(riverswim(6)),
    ):
        world = World(env, 0.9)
        mdp = world.env.unwrapped.mdp
        np.testing.assert_array_equal(world.truth.kernel(), mdp.kernel())
        np.testing.assert_array_equal(world.rewards, mdp.rewards)
        assert world.truth.discount == 0.9
        assert (world.prior(2.0).concentration() == 2.0).all(), (
            "no structural zeros, as in the paper"
        )
        np.testing.assert_array_equal(
            world.prior(known_successors=True).concentration() > 0, np.asarray(mdp.kernel()) > 0
        )
        with pytest.raises(brmdp.InvalidInputError, match="terminated in state 0"):
            world.end_of(0)


def test_the_discount_of_a_world_is_its_own():
    world = World(TabularEnv(riverswim(6)), 0.5)
    assert world.truth.discount == world.discount == 0.5
    expected = brmdp.solve(riverswim(6, discount=0.5)).values
    np.testing.assert_allclose(brmdp.solve(world.truth).values, expected, atol=1e-8)
    assert world.truth.start == 0


def test_inadmissible_actions_stay_inadmissible():
    mask = np.array([[True, True], [True, False], [False, True]])
    kernel = np.where(mask[:, :, None], 1 / 3, 0.0) * np.ones(3)
    world = World(TabularEnv(brmdp.TabularMDP(kernel, np.eye(3)[:, :2], 0.9, admissible=mask)), 0.5)
    for known in (True, False, None):
        np.testing.assert_array_equal(world.prior(known_successors=known).pattern.admissible, mask)
    np.testing.assert_array_equal(world.truth.admissible, mask)
    history = simulate(
        agents.continuing_psrl(world.prior(), world.rewards, 0.5, rng=0), world, 200, seed=1
    )
    assert mask[history.state, history.action].all()


def test_the_inventory_learns_its_demand():
    world = World("brmdp/Inventory-v0", 0.95)
    problem = world.env.unwrapped.problem
    belief = world.prior(2.0)
    assert isinstance(belief, brmdp.DisturbanceBelief)
    np.testing.assert_array_equal(belief.concentration(), 2.0)
    np.testing.assert_array_equal(world.rewards.rewards, problem.disturbance_rewards)
    agent = agents.aq_brmdp(belief, world.rewards, 0.95, delta=5.0, rng=1)
    history = simulate(agent, world, 600, seed=2)
    agent.observe(9, 0, 9)
    while agent.belief.counts().sum() < 600:
        agent.observe(9, 0, 9)
        agent.act(0)
    counts = agent.belief.counts()
    counts[0] -= counts.sum() - 600
    np.testing.assert_allclose(counts / 600, problem.demand, atol=4 * np.sqrt(0.25 / 600))
    assert problem.mdp.admissible[history.state, history.action].all()


def test_regret_falls_in_the_inventory():
    """On average over eight runs: single ones may be lucky at first."""
    first, later = [], []
    for seed in range(8):
        world = World("brmdp/Inventory-v0", 0.95)
        agent = agents.aq_brmdp(world.prior(2.0), world.rewards, 0.95, delta=5.0, rng=seed)
        regret = simulate(agent, world, 600, seed=seed + 1).true_regret
        first.append(regret[:50].mean())
        later.append(regret[300:].mean())
    assert np.mean(later) < np.mean(first)


# --- agents in Gymnasium's own environments -------------------------------------------------------

AGENTS = {
    "aq-brmdp": lambda world, rng: agents.aq_brmdp(
        world.prior(), world.rewards, world.discount, delta=1.0, method="saddlepoint", rng=rng
    ),
    "brmdp": lambda world, rng: learner(world, method="saddlepoint", rng=rng),
    "continuing-psrl": lambda world, rng: agents.continuing_psrl(
        world.prior(), world.rewards, world.discount, rng=rng
    ),
}


def runs(name, agent, discount, steps, seeds):
    """Rewards and true regrets, (runs, steps)."""
    rewards, regrets = [], []
    for seed in range(seeds):
        world = World(made(name), discount)
        history = simulate(AGENTS[agent](world, seed), world, steps, seed=100 + seed)
        rewards.append(history.reward)
        regrets.append(history.true_regret)
    return np.array(rewards), np.array(regrets)


def reward_by_chance(name, steps=3000):
    env = made(name)
    rng = np.random.default_rng(5)
    env.reset(seed=6)
    total = 0.0
    for _ in range(steps):
        _, reward, terminated, truncated, _ = env.step(int(rng.integers(env.action_space.n)))
        total += reward
        if terminated or truncated:
            env.reset()
    return total / steps


@pytest.mark.long
@pytest.mark.parametrize("agent", AGENTS)
def test_agents_learn_frozenlake(agent):
    rewards, regrets = runs("FrozenLake-v1", agent, 0.95, 4000, 3)
    assert rewards[:, 2000:].mean() > 4 * reward_by_chance("FrozenLake-v1")
    assert rewards[:, 2000:].mean() > rewards[:, :300].mean()
    if agent != "brmdp":  # a fixed level may stay with what it knows
        assert regrets[:, 3000:].mean() < 0.8 * regrets[:, :1000].mean()


@pytest.mark.long
@pytest.mark.parametrize("agent", AGENTS)
def test_agents_learn_the_large_frozenlake(agent):
    """By chance the goal is reached about once in 20,000 steps."""
    rewards, _ = runs("FrozenLake8x8-v1", agent, 0.97, 3000, 3)
    assert rewards[:, 1500:].mean() > 40 / 20_000


@pytest.mark.parametrize("agent", AGENTS)
def test_agents_keep_off_the_cliff(agent):
    """Slippery: a fall costs 100, and by chance every tenth step is one."""
    rewards, _ = runs("CliffWalking-slippery", agent, 0.95, 1000, 2)
    assert reward_by_chance("CliffWalking-slippery") < -5.0
    assert rewards[:, 500:].mean() > -1.5


@pytest.mark.parametrize("name", ["CliffWalking-v1", "FrozenLake-dry", TAXI])
def test_with_known_successors_a_deterministic_world_is_solved_at_once(name):
    world = World(made(name), 0.95)
    history = simulate(learner(world), world, 200, seed=3)
    assert history.true_regret.max() < 1e-6
    if name == "CliffWalking-v1":
        assert np.flatnonzero(history.state == 36).tolist() == list(range(0, 200, 13))
        assert (history.reward == -1.0).all()
    elif name == "FrozenLake-dry":
        assert np.flatnonzero(history.reward == 1.0).tolist() == list(range(5, 200, 6))
    else:
        assert history.reward.max() == 20.0
        assert history.reward.min() == -1.0


@pytest.mark.slow
def test_agents_learn_the_taxi_in_the_rain():
    """500 states, with the saddlepoint method and few steps."""
    rewards, regrets = runs("Taxi-rainy", "brmdp", 0.95, 700, 6)
    assert rewards[:, 400:].mean() > rewards[:, :200].mean() + 0.2
    assert rewards[:, 400:].mean() > reward_by_chance("Taxi-rainy") + 3.0
    assert regrets[:, 400:].mean() < 0.8 * regrets[:, :200].mean()


def test_unknown_successors_can_be_learned_too():
    """A dry lake of which nothing but the rewards is known."""
    world = World(made("FrozenLake-dry"), 0.9)
    belief = world.prior(0.1, known_successors=False)
    history = simulate(
        agents.continuing_psrl(belief, world.rewards, 0.9, rng=2), world, 1500, seed=4
    )
    assert history.reward[1000:].mean() > 0.14  # the best is 1/6
    assert history.true_regret[1000:].mean() < 0.2 * history.true_regret[:200].mean()


# --- bad input ------------------------------------------------------------------------------------


class Spaces(gymnasium.Env):
    """An environment with any spaces."""

    def __init__(self, observation_space, action_space):
        self.observation_space = observation_space
        self.action_space = action_space


@pytest.mark.parametrize(
    ("spaces", "culprit"),
    [
        ((Box(0, 1), Discrete(2)), "observation_space"),
        ((MultiDiscrete([2, 3]), Discrete(2)), "observation_space"),
        ((Discrete(4, start=1), Discrete(2)), "observation_space"),
        ((Discrete(4), Box(0, 1)), "action_space"),
        ((Discrete(4), MultiBinary(2)), "action_space"),
        ((Discrete(4), Discrete(2, start=-1)), "action_space"),
        ((None, Discrete(2)), "observation_space"),
    ],
)
def test_spaces_that_are_not_discrete_are_refused(spaces, culprit):
    with pytest.raises(
        brmdp.InvalidInputError, match=f"env must have a Discrete {culprit} that starts at 0; got"
    ):
        World(Spaces(*spaces), 0.9, rewards=np.zeros((4, 2)))


def test_gymnasiums_other_environments_are_refused():
    for name in ("CartPole-v1", "Blackjack-v1", "Pendulum-v1", "MountainCar-v0"):
        with pytest.raises(
            brmdp.InvalidInputError, match="env must have a Discrete observation_space"
        ):
            World(name, 0.9)
    for bad in (None, 3, riverswim(6)):
        with pytest.raises(brmdp.InvalidInputError, match="env must"):
            World(bad, 0.9)


@pytest.mark.parametrize("bad", [1.0, -0.5, None, "0.9", np.nan])
def test_bad_discounts_are_refused(bad):
    with pytest.raises(brmdp.InvalidInputError, match="discount must"):
        World(TabularEnv(riverswim(6)), bad)


@pytest.mark.parametrize("bad", [0.0, -1.0, None, np.inf])
def test_bad_concentrations_are_refused(bad):
    with pytest.raises(brmdp.InvalidInputError, match="concentration must"):
        World(TabularEnv(riverswim(6)), 0.9).prior(bad)


@pytest.mark.parametrize("env", ["FrozenLake-v1", "brmdp/Inventory-v0"])
@pytest.mark.parametrize("bad", ["no", 1, 0.0])
def test_known_successors_are_declared_by_a_truth_value(env, bad):
    with pytest.raises(
        brmdp.InvalidInputError, match=f"known_successors must be True, False or None; got {bad!r}"
    ):
        World(env, 0.9).prior(known_successors=bad)


# --- what the environment may do behind the world's back ------------------------------------------


class Generous(TabularEnv):
    """Raises the rewards of its own table when it is first used."""

    def __init__(self):
        super().__init__(riverswim(3))
        self.P = {s: {a: [(1.0, (s + a) % 3, 1.0, False)] for a in range(2)} for s in range(3)}
        self.mdp = None

    def reset(self, *, seed=None, options=None):
        for row in self.P.values():
            for a, outcomes in row.items():
                row[a] = [(p, t, 1.5, end) for p, t, _, end in outcomes]
        self.place = 0
        return 0, {}

    def step(self, action):
        _, self.place, reward, _ = self.P[self.place][int(action)][0]
        return self.place, reward, False, False, {}


def test_a_table_that_changes_later_is_compared_as_it_was():
    world = World(Generous(), 0.9)
    agent = agents.continuing_psrl(world.prior(), world.rewards, 0.9, rng=0)
    with pytest.raises(brmdp.RewardMismatchError, match=r"paid 1\.5 .* where the model has 1"):
        simulate(agent, world, 5, seed=0)


@pytest.mark.parametrize("value", ["no", 1, None])
def test_random_rewards_are_declared_by_a_truth_value(value):
    with pytest.raises(brmdp.InvalidInputError, match="random_rewards must be True or False"):
        World("FrozenLake-v1", 0.9, random_rewards=value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "must map every state to a non-empty dictionary of actions"),
        (
            {0: [[(1.0, 0, 0.0, False)]], 1: [[(1.0, 1, 0.0, False)]]},
            "must map every state to a non-empty dictionary",
        ),
        (
            {0: {0: None}, 1: {0: []}},
            r"P\[0\]\[0\] must be a list of \(probability, next state, .*; got None",
        ),
        ({0: {0: [(1.0, 0, 0.0)]}, 1: {0: []}}, r"P\[0\]\[0\] must list"),
        (
            {0: {0: [(1.0, None, 0.0, True)]}, 1: {0: []}},
            r"next state in P\[0\]\[0\] must be an integer in 0\.\.1",
        ),
        (
            {0: {0: [(1.0, 7, 0.0, True)]}, 1: {0: []}},
            r"next state in P\[0\]\[0\] must lie in 0\.\.1; got 7",
        ),
        ({0: {0: [(1.0, 0, np.nan, False)]}, 1: {0: []}}, r"reward in P\[0\]\[0\] must be finite"),
    ],
)
def test_tables_that_make_no_sense_are_refused(table, message):
    class Tabled(gymnasium.Env):
        observation_space = gymnasium.spaces.Discrete(2)
        action_space = gymnasium.spaces.Discrete(1)
        P = table

    with pytest.raises(brmdp.InvalidInputError, match=message):
        World(Tabled(), 0.9)


# --- a truth that is told -------------------------------------------------------------------------


def corridor_truth(discount=0.9, *, with_end=True):
    """The corridor as an MDP, the end of an episode being the state after its four cells.

    Without that state, the last cell is absorbing and entering it pays.
    """
    n = 5 if with_end else 4
    kernel, rewards = np.zeros((n, 2, n)), np.zeros((n, 2, n))
    kernel[3:, :, n - 1] = 1.0
    rewards[:3, :, n - 1] = 1.0
    for cell in range(3):
        ahead = n - 1 if cell == 2 else cell + 1
        kernel[cell, :, max(cell - 1, 0)] = [1.0, 0.25]
        kernel[cell, 1, ahead] += 0.75
    return brmdp.TabularMDP(kernel, rewards, discount)


@pytest.mark.parametrize("with_end", [True, False])
def test_a_truth_gives_sizes_rewards_and_regret(with_end):
    truth = corridor_truth(with_end=with_end)
    world = World(Corridor(), 0.9, truth=truth)
    assert world.n_states == truth.n_states
    assert world.truth is truth
    assert world.rewards is truth.rewards
    assert world.end_of(3) == truth.n_states - 1
    agent = learner(world)
    transitions = noting(agent)
    history = simulate(agent, world, 400, seed=1)
    ended = [next_state for _, _, next_state in transitions if next_state == world.end_of(3)]
    assert len(ended) == history.reward.sum() > 5
    best = brmdp.solve(truth).values
    assert best[0] > 0.0
    assert history.true_regret is not None
    followed = brmdp.evaluate_in_mdp(truth, agent.policy)
    last = history.episode == history.episode[-1]
    np.testing.assert_allclose(
        history.true_regret[last],
        np.maximum(best - followed, 0.0)[history.state[last]],
        atol=1e-8,
    )


def test_only_absorbing_states_may_end_an_episode_without_ends():
    world = World(Corridor(), 0.9, truth=corridor_truth(with_end=False))
    with pytest.raises(
        brmdp.InvalidInputError, match="terminated in state 1, although no episode ends there"
    ):
        world.end_of(1)
    # the prior knows the successors, and that the last cell is never left
    prior = world.prior()
    np.testing.assert_array_equal(prior.mean()[3], [[0.0, 0.0, 0.0, 1.0]] * 2)


def test_a_truth_with_several_ends():
    kernel, rewards = np.zeros((7, 2, 7)), np.zeros((7, 2, 7))
    kernel[:, :, 5], kernel[6] = 1.0, 0.0
    kernel[6, :, 6] = 1.0
    truth = brmdp.TabularMDP(kernel, rewards, 0.9)
    world = World(Expedition(), 0.9, truth=truth, ends=[3, 4])
    assert (world.end_of(3), world.end_of(4)) == (5, 6)
    grouped = World(
        Expedition(), 0.9, truth=brmdp.TabularMDP(kernel[:6, :, :6], rewards[:6, :, :6], 0.9)
    )
    assert grouped.end_of(3) == grouped.end_of(4) == 5
    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"ends must have 2 items, one for each state of truth .*got 1",
    ):
        World(Expedition(), 0.9, truth=truth)
    with pytest.raises(brmdp.InvalidInputError, match=r"ends must have 2 items.*got 3"):
        World(Expedition(), 0.9, truth=truth, ends=[2, 3, 4])
    with pytest.raises(brmdp.InvalidInputError, match="ends must name each state once"):
        World(Expedition(), 0.9, truth=truth, ends=[3, 3])


def test_ends_need_states_of_the_truth():
    truth = corridor_truth(with_end=False)
    with pytest.raises(brmdp.InvalidInputError, match="ends need a truth with a state for each"):
        World(Corridor(), 0.9, truth=truth, ends=[3])


def test_a_truth_takes_the_discount_of_the_world():
    truth = corridor_truth(0.5)
    world = World(Corridor(), 0.9, truth=truth)
    assert world.truth.discount == 0.9
    np.testing.assert_array_equal(world.truth.kernel(), truth.kernel())
    np.testing.assert_array_equal(world.truth.rewards, truth.rewards)
    assert World(Corridor(), 0.5, truth=truth).truth is truth


def test_rewards_given_with_a_truth_are_those_of_the_model():
    truth = corridor_truth()
    given = CORRIDOR_REWARDS.copy()
    given[3] = 0.0  # the last cell is the end, and is never left
    world = World(Corridor(), 0.9, truth=truth, rewards=given)
    np.testing.assert_array_equal(world.rewards[:4], given)
    np.testing.assert_array_equal(world.rewards[4], np.zeros((2, 5)))
    assert world.truth is truth
    with pytest.raises(brmdp.InvalidInputError, match="rewards must have shape"):
        World(Corridor(), 0.9, truth=truth, rewards=np.zeros((5, 2)))
    # a model that says something else is found out
    with pytest.raises(brmdp.RewardMismatchError, match="rewards and truth must agree"):
        World(Corridor(), 0.9, truth=truth, rewards=np.zeros((4, 2)))


@pytest.mark.parametrize("bad", [np.zeros((5, 2, 5)), TabularEnv(riverswim(4)), "truth", 0])
def test_a_truth_of_another_type_is_refused(bad):
    with pytest.raises(
        brmdp.InvalidInputError, match=f"truth must be a TabularMDP; got {type(bad).__name__}"
    ):
        World(Corridor(), 0.9, truth=bad)


@pytest.mark.parametrize(("states", "actions"), [(3, 2), (5, 3), (4, 1)])
def test_a_truth_of_another_size_is_refused(states, actions):
    kernel = np.full((states, actions, states), 1.0 / states)
    truth = brmdp.TabularMDP(kernel, np.zeros((states, actions)), 0.9)
    with pytest.raises(
        brmdp.InvalidInputError,
        match="truth must have the environment's 4 states, then any ends, and its 2 actions; "
        f"got {states} states and {actions} actions",
    ):
        World(Corridor(), 0.9, truth=truth)


def test_a_truth_comes_before_the_environments_own():
    other = riverswim(6, discount=0.8)
    world = World(TabularEnv(riverswim(6)), 0.8, truth=other)
    assert world.truth is other


def test_worlds_print_on_one_line():
    for world, text in (
        (
            World(Corridor(), 0.9, truth=corridor_truth()),
            "World(Corridor: 5 states (including 1 end), 2 actions, discount 0.9, truth known)",
        ),
        (
            World(Expedition(), 0.95, rewards=np.zeros((5, 2, 7)), ends=[3, 4]),
            "World(Expedition: 7 states (including 2 ends), 2 actions, discount 0.95, "
            "truth unknown)",
        ),
        (
            World("brmdp/RiverSwim-v0", 0.9),
            "World(brmdp/RiverSwim-v0: 6 states, 2 actions, discount 0.9, truth known)",
        ),
    ):
        assert repr(world) == text


# --- a truth that is given ------------------------------------------------------------------------


class Bare(gymnasium.Env):
    """RiverSwim without its table."""

    def __init__(self, mdp):
        self.inner = brmdp.envs.TabularEnv(mdp)
        self.observation_space = self.inner.observation_space
        self.action_space = self.inner.action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.inner.reset(seed=seed)

    def step(self, action):
        return self.inner.step(action)


def test_a_truth_with_other_rewards_than_those_given_is_refused():
    mdp = brmdp.envs.riverswim(4)
    rewards = np.concatenate([np.asarray(mdp.rewards)])
    other = brmdp.TabularMDP(mdp.kernel(), rewards + 1.0, 0.9)
    with pytest.raises(brmdp.RewardMismatchError, match="rewards and truth must agree"):
        brmdp.World(Bare(mdp), 0.9, rewards=rewards, truth=other)


def test_a_truth_other_than_the_environments_own_is_refused():
    mdp = brmdp.envs.riverswim(4)
    uniform = brmdp.TabularMDP(np.full((4, 2, 4), 0.25), mdp.rewards, 0.9)
    with pytest.raises(brmdp.InvalidInputError, match="must agree with the MDP"):
        brmdp.World(brmdp.envs.TabularEnv(mdp), 0.9, truth=uniform)
    brmdp.World(brmdp.envs.TabularEnv(mdp), 0.9, truth=brmdp.envs.riverswim(4))
    with pytest.raises(brmdp.InvalidInputError, match="has a table P of its own"):
        brmdp.World("FrozenLake-v1", 0.9, truth=brmdp.World("FrozenLake-v1", 0.9).truth)


def test_a_transition_that_the_truth_holds_impossible_is_found():
    mdp = brmdp.envs.riverswim(4)
    kernel = np.zeros((4, 2, 4))
    kernel[:, :, 0] = 1.0  # never moves
    still = brmdp.TabularMDP(kernel, mdp.rewards, 0.9)
    world = brmdp.World(Bare(mdp), 0.9, truth=still, random_rewards=True)
    world.reset(seed=1)

    def swim():
        for _ in range(100):
            world.step(1)

    with pytest.raises(brmdp.ImpossibleTransitionError, match="truth rules out"):
        swim()


def test_a_wrapper_that_changes_the_dynamics_is_found_by_an_impossible_move():
    class Turned(gymnasium.ActionWrapper):
        def action(self, action):
            return (action + 2) % 4

    class Planned:
        def __init__(self, world):
            self.policy = brmdp.solve(world.truth).policy

        def act(self, state):
            return int(self.policy[state])

        def observe(self, state, action, next_state):
            pass

    for random_rewards in (False, True):
        lake = gymnasium.make("FrozenLake-v1")
        world = World(Turned(lake), 0.9, random_rewards=random_rewards)
        with pytest.raises(brmdp.ImpossibleTransitionError, match="truth rules out"):
            simulate(Planned(world), world, 200, seed=1)
        assert len(simulate(Planned(world), World(lake, 0.9), 200, seed=1)) == 200
    unknown = World(Turned(lake), 0.9, rewards=world.rewards[:16])
    assert unknown.truth is None
    acted(unknown, 200)


def test_a_wrapper_of_a_known_mdp_is_found_by_an_impossible_move():
    class Shifted(gymnasium.ObservationWrapper):
        def observation(self, state):
            return 5 - state

    with pytest.raises(brmdp.ImpossibleTransitionError, match="state 5 to 5 by action 0"):
        acted(World(Shifted(TabularEnv(riverswim(6))), 0.9), 50)


def test_steps_and_resets_of_another_form_are_named():
    class Former(Bare):
        def step(self, action):
            state, reward, ended, _, info = super().step(action)
            return state, reward, ended, info

    class Older(Bare):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)[0]

    mdp = riverswim(4)
    world = World(Former(mdp), 0.9, truth=mdp)
    world.reset(seed=1)
    with pytest.raises(
        brmdp.InvalidInputError, match=r"env\.step must return five values.*got \(0, 0\.005, Fals"
    ):
        world.step(0)
    with pytest.raises(brmdp.InvalidInputError, match=r"env\.reset must return two .*got 0"):
        World(Older(mdp), 0.9, truth=mdp).reset(seed=1)


def test_the_ends_of_a_truth_are_absorbing():
    kernel = np.zeros((3, 1, 3))
    kernel[0, 0, 2] = kernel[1, 0, 2] = kernel[2, 0, 0] = 1.0
    lively = brmdp.TabularMDP(kernel, np.ones((3, 1)), 0.9)

    class Ending(gymnasium.Env):
        observation_space, action_space = (
            gymnasium.spaces.Discrete(2),
            gymnasium.spaces.Discrete(1),
        )

    with pytest.raises(brmdp.InvalidInputError, match="must be absorbing and pay nothing"):
        brmdp.World(Ending(), 0.9, truth=lively)
