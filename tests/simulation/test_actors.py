"""Agents from outside the library in :func:`brmdp.simulate`: only act and observe are needed."""

import numpy as np
import pytest

import brmdp
from brmdp import Diagnostics, World, agents, simulate
from brmdp.envs import InventoryEnv, TabularEnv, riverswim

RIVER = riverswim(4)
RIGHT = np.ones(4, dtype=int)


def river():
    return World(TabularEnv(RIVER), 0.9)


class Minimal:
    """Goes right and notes what it is told."""

    def __init__(self):
        self.seen = []

    def act(self, state):
        return 1

    def observe(self, state, action, next_state):
        self.seen.append((state, action, next_state))


class Telling(Minimal):
    """Also says what it would do elsewhere; changes its mind at the given steps."""

    def __init__(self, *changes):
        super().__init__()
        self.changes = changes

    @property
    def policy(self):
        right = sum(len(self.seen) >= change for change in self.changes) % 2 == 0
        return RIGHT if right else np.array([1, 1, 1, 0])

    def act(self, state):
        return int(self.policy[state])


# --- what is recorded -----------------------------------------------------------------------------


def test_act_and_observe_are_enough():
    agent = Minimal()
    history = simulate(agent, river(), 60, seed=1)
    assert isinstance(agent, brmdp.Actor)
    assert len(history) == len(agent.seen) == 60
    told = np.array(agent.seen)
    np.testing.assert_array_equal(told[:, 0], history.state)
    np.testing.assert_array_equal(told[:, 1], history.action)
    np.testing.assert_array_equal(told[:, 2], history.next_state)
    assert (history.action == 1).all()
    assert (history.episode == 1).all()
    assert history.true_regret is None
    assert history.robust_regret is None
    assert history.disturbance is None
    assert history.episodes.first_step == [0]
    assert history.episodes.policy == []
    assert history.episodes.levels == history.episodes.status == [None]


def test_it_meets_the_same_world_as_an_agent_of_the_library():
    world = river()
    ours = agents.posterior_mean(world.prior(), world.rewards, 0.9, rng=3)
    expected = simulate(ours, world, 100, seed=5)

    class Wrapped:
        """The same agent, in disguise."""

        def __init__(self):
            self.inner = agents.posterior_mean(world.prior(), world.rewards, 0.9, rng=3)

        @property
        def policy(self):
            return self.inner.policy

        @property
        def episode(self):
            return self.inner.episode

        def act(self, state):
            return self.inner.act(state)

        def observe(self, state, action, next_state):
            self.inner.observe(state, action, next_state)

    found = simulate(Wrapped(), world, 100, seed=5)
    for name in ("state", "action", "reward", "next_state", "episode", "true_regret"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.episodes.policy == expected.episodes.policy
    assert found.episodes.first_step == expected.episodes.first_step


# --- what is told ---------------------------------------------------------------------------------


def test_rewards_and_info_are_told_to_those_who_name_them():
    class Paid(Minimal):
        def observe(self, state, action, next_state, *, reward):
            self.seen.append(reward)

    agent = Paid()
    history = simulate(agent, river(), 50, seed=2)
    assert agent.seen == history.reward.tolist()

    class Informed(Minimal):
        def observe(self, state, action, next_state, info, reward=None):
            self.seen.append((info, reward))

    agent = Informed()
    history = simulate(agent, river(), 5, seed=2)
    assert agent.seen == [({}, reward) for reward in history.reward.tolist()]

    class Anything(Minimal):
        def observe(self, *transition, **details):
            self.seen.append((len(transition), sorted(details)))

    agent = Anything()
    simulate(agent, river(), 5, seed=2)
    assert agent.seen == [(3, ["info", "reward"])] * 5


def test_disturbances_are_told_where_the_world_has_them():
    class Stocked(Minimal):
        def act(self, state):
            return 0

        def observe(self, state, action, next_state, *, disturbance, info):
            self.seen.append((disturbance, info))

    agent = Stocked()
    simulate(agent, World(InventoryEnv(), 0.95), 30, seed=4)
    assert all(disturbance == info["disturbance"] for disturbance, info in agent.seen)
    assert len({disturbance for disturbance, _ in agent.seen}) > 1
    agent = Stocked()
    simulate(agent, river(), 3, seed=4)
    assert agent.seen == [(None, {})] * 3


def test_an_observe_without_a_signature_is_told_the_transition_alone():
    class Compiled(Minimal):
        def __init__(self):
            super().__init__()
            self.observe = _Opaque(self.seen)

    class _Opaque:
        __signature__ = "none"

        def __init__(self, seen):
            self.seen = seen

        def __call__(self, *arguments, **details):
            self.seen.append((len(arguments), details))

    agent = Compiled()
    simulate(agent, river(), 4, seed=1)
    assert agent.seen == [(3, {})] * 4


# --- policies and pseudo-episodes -----------------------------------------------------------------


def test_true_regret_is_that_of_the_policy_of_each_step():
    agent = Telling(20, 50)
    history = simulate(agent, river(), 80, seed=1)
    assert history.episodes.first_step == [0, 20, 50]
    assert history.episodes.policy == [0, 1, 0]
    assert np.unique(history.episode).tolist() == [1, 2, 3]
    best = brmdp.solve(RIVER).values
    for first, last, policy in ((0, 20, RIGHT), (20, 50, [1, 1, 1, 0]), (50, 80, RIGHT)):
        part = slice(first, last)
        gap = best - brmdp.evaluate_in_mdp(RIVER, policy)
        np.testing.assert_allclose(
            history.true_regret[part], np.maximum(gap[history.state[part]], 0.0), atol=1e-9
        )


def test_own_numbers_of_pseudo_episodes_are_kept():
    class Numbered(Telling):
        @property
        def episode(self):
            return 3 + len(self.seen) // 25

    history = simulate(Numbered(), river(), 60, seed=1)
    np.testing.assert_array_equal(history.episode, 3 + np.arange(60) // 25)
    assert history.episodes.first_step == [0, 25, 50]
    assert history.episodes.policy == [0, 0, 0]


def test_plans_are_announced():
    told = []
    simulate(Telling(7), river(), 20, seed=1, on_episode=told.append)
    assert told == [0, 7]


@pytest.mark.parametrize("number", ["first", 1.5, -1, None, True])
def test_a_bad_number_of_a_pseudo_episode_is_refused(number):
    class Numbered(Minimal):
        episode = number

    with pytest.raises(brmdp.InvalidInputError, match=r"agent\.episode must"):
        simulate(Numbered(), river(), 5, seed=1)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([1, 1, 1], r"policy must hold one action per state, shape \(4,\); got shape \(3,\)"),
        ([0, 0, 0, 2], r"policy must lie in 0\.\.1; got 2"),
        (["left"] * 4, "policy must be integers"),
    ],
)
def test_bad_policies_are_refused(policy, message):
    class Odd(Minimal):
        pass

    Odd.policy = policy
    with pytest.raises(brmdp.InvalidInputError, match=message):
        simulate(Odd(), river(), 5, seed=1)


@pytest.mark.parametrize("action", [2, -1, 0.5, "right", None, np.array([1]), True])
def test_bad_actions_are_refused_by_name(action):
    class Odd(Minimal):
        def act(self, state):
            return action

    with pytest.raises(brmdp.InvalidInputError, match="the agent's action must"):
        simulate(Odd(), river(), 5, seed=1)


def test_actions_may_be_numpy_integers():
    class Indexed(Minimal):
        def act(self, state):
            return np.int32(1)

    assert simulate(Indexed(), river(), 5, seed=1).action.tolist() == [1] * 5


# --- diagnostics ----------------------------------------------------------------------------------


def test_true_regret_needs_a_policy_and_the_truth():
    with pytest.raises(
        brmdp.InvalidInputError,
        match="true_regret needs an agent with the attributes policy; Minimal lacks policy",
    ):
        simulate(Minimal(), river(), 5, diagnostics=Diagnostics(true_regret=True))
    off = Diagnostics(true_regret=False)
    assert simulate(Telling(), river(), 5, diagnostics=off).true_regret is None
    assert simulate(Telling(), river(), 5).true_regret is not None


@pytest.mark.parametrize("name", ["robust_level", "quantile_level"])
def test_diagnostics_of_the_belief_name_what_is_missing(name):
    wanted = Diagnostics(**{name: 0.2})
    with pytest.raises(
        brmdp.InvalidInputError,
        match=f"{name} needs an agent .* Minimal lacks belief, rewards, discount, episode, policy",
    ):
        simulate(Minimal(), river(), 5, diagnostics=wanted)
    with pytest.raises(
        brmdp.InvalidInputError, match=f"{name} needs .* Telling lacks belief, rewards, discount"
    ):
        simulate(Telling(), river(), 5, diagnostics=wanted)


def test_diagnostics_of_the_belief_of_an_agent_that_has_one():
    belief = brmdp.DirichletBelief.uniform(4, 2)

    class Believing(Telling):
        rewards = RIVER.rewards
        discount = 0.9
        episode = 1

    Believing.belief = belief
    wanted = Diagnostics(robust_level=0.2, quantile_level=0.1, quantile_every=10)
    history = simulate(Believing(), river(), 30, seed=1, diagnostics=wanted, diagnostics_rng=2)
    risk = brmdp.Quantile(0.2)
    best = brmdp.plan(belief, RIVER.rewards, 0.9, risk=risk).values
    followed = brmdp.evaluate_under_belief(belief, RIVER.rewards, 0.9, RIGHT, risk=risk).values
    np.testing.assert_allclose(
        history.robust_regret, np.maximum(best - followed, 0.0)[history.state], atol=1e-6
    )
    assert history.quantile_step.tolist() == [0, 10, 20]
    first = brmdp.posterior_quantile_value(
        belief, RIVER.rewards, 0.9, RIGHT, 0.1, samples=147, rng=np.random.default_rng(2)
    )
    assert history.quantile_value[0] == first.values[0]


def test_another_discount_is_refused_for_true_regret():
    class Impatient(Telling):
        discount = 0.5

    with pytest.raises(
        brmdp.InvalidInputError, match=r"the same discount for true regret; got 0\.5 and 0\.9"
    ):
        simulate(Impatient(), river(), 5)
    assert len(simulate(Impatient(), river(), 5, diagnostics=Diagnostics(true_regret=False))) == 5


# --- what cannot act ------------------------------------------------------------------------------


def test_what_cannot_act_is_refused_by_what_it_lacks():
    class Blind:
        def act(self, state):
            return 0

    for agent, message in (
        (None, "got None, which lacks act and observe"),
        (Blind(), "which lacks observe"),
        (Minimal, "which is a class"),
    ):
        with pytest.raises(
            brmdp.InvalidInputError, match=f"agent must have the methods.*{message}"
        ):
            simulate(agent, river(), 5)


def test_an_actor_whose_belief_has_another_size_is_refused():
    class Elsewhere(Minimal):
        belief = brmdp.DirichletBelief.uniform(5, 2)

    with pytest.raises(
        brmdp.InvalidInputError, match="the agent knows 5 states and 2 actions, the world has 4"
    ):
        simulate(Elsewhere(), river(), 5)


# --- representations ------------------------------------------------------------------------------


def test_histories_print_on_one_line():
    short = simulate(Minimal(), river(), 10, seed=1)
    assert (
        repr(short) == f"History(10 steps, 1 pseudo-episode, mean reward {short.reward.mean():.4g})"
    )
    world = river()
    agent = agents.posterior_mean(world.prior(), world.rewards, 0.9, rng=1)
    history = simulate(agent, world, 1000, seed=1, diagnostics=Diagnostics(robust_level=0.2))
    text = repr(history)
    assert text.startswith(f"History(1000 steps, {agent.episode} pseudo-episodes, mean reward ")
    assert f"true regret {history.true_regret.sum():.4g}" in text
    assert f"robust regret {history.robust_regret.sum():.4g}" in text
    assert "\n" not in text
    assert len(text) <= 120


# --- what a regret is the regret of ---------------------------------------------------------------


class Liar:
    """Tells the best policy and does something else."""

    def __init__(self, world):
        self.policy = brmdp.solve(world.truth).policy
        self.rng = np.random.default_rng(1)

    def act(self, state):
        return int(self.rng.integers(2))

    def observe(self, state, action, next_state):
        pass


def test_an_action_that_the_policy_never_takes_is_refused():
    world = river()
    with pytest.raises(brmdp.InvalidInputError, match="which its policy never takes there"):
        brmdp.simulate(Liar(world), world, 50, seed=1)
    quiet = brmdp.Diagnostics(true_regret=False)
    assert brmdp.simulate(Liar(world), world, 50, seed=1, diagnostics=quiet).true_regret is None


def test_a_policy_that_explores_is_valued_as_it_is():
    """Against a plain solve of the chain that it makes."""
    world = river()
    liar = Liar(world)
    epsilon = 0.2
    liar.policy = (1 - epsilon) * np.eye(2)[liar.policy] + epsilon / 2
    history = brmdp.simulate(liar, world, 40, seed=1)
    truth = world.truth
    kernel, rewards = truth.kernel(), np.asarray(truth.rewards)
    chain = np.einsum("sa,sat->st", liar.policy, kernel)
    paid = rewards if rewards.ndim == 2 else np.einsum("sat,sat->sa", kernel, rewards)
    system = np.eye(len(chain)) - truth.discount * chain
    values = np.linalg.solve(system, (liar.policy * paid).sum(axis=1))
    gap = brmdp.solve(truth).values - values
    assert history.true_regret == pytest.approx(gap[history.state], abs=1e-8)
    assert history.true_regret.min() > 0.0


def test_a_policy_that_is_certain_in_some_states_only_is_not_taken_for_its_likeliest_actions():
    """Against slow value iteration of the mixture."""
    mdp = riverswim(6)
    world = World(TabularEnv(mdp), 0.9)
    policy = np.array([[0.0, 1.0]] * 5 + [[0.51, 0.49]])

    class Wavering(Minimal):
        pass

    Wavering.policy = policy
    history = simulate(Wavering(), world, 60, seed=1)
    kernel = mdp.kernel()
    paid = (kernel * mdp.rewards).sum(axis=2)
    best, values = np.zeros(6), np.zeros(6)
    for _ in range(600):
        best = (paid + 0.9 * kernel @ best).max(axis=1)
        values = (policy * (paid + 0.9 * kernel @ values)).sum(axis=1)
    assert history.true_regret == pytest.approx((best - values)[history.state], abs=1e-8)
    assert history.true_regret.min() > 0.0


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.full((4, 3), 1 / 3), "probabilities, \\(4, 2\\)"),
        (np.full((4, 2), 0.4), r"sum to one in every state; got the sum 0\.8 in state 0"),
        (
            np.tile([1.5, -0.5], (4, 1)),
            r"are not negative, .* got -0\.5 for action 1 in state 0",
        ),
        (np.full((4, 2), 0.4999, np.float32), r"sum to one in every state; got the sum 0\.9998"),
        (np.full(4, 7), "policy must"),
    ],
)
def test_policies_that_make_no_sense_are_refused(policy, message):
    world = river()
    liar = Liar(world)
    liar.policy = policy
    with pytest.raises(brmdp.InvalidInputError, match=message):
        brmdp.simulate(liar, world, 5, seed=1)


def test_a_subclass_that_acts_otherwise_is_found_out():
    class Hasty(brmdp.Agent):
        def act(self, state):
            return 1 - super().act(state)

    world = river()
    agent = Hasty(
        *(world.prior(), world.rewards, world.discount),
        risk=brmdp.Mean(),
        restart=brmdp.agents.EveryStep(),
        rng=0,
    )
    with pytest.raises(brmdp.InvalidInputError, match="which its policy never takes there"):
        brmdp.simulate(agent, world, 5, seed=1)


@pytest.mark.parametrize("precision", [np.float32, np.float16])
def test_probabilities_may_be_rounded_to_their_precision(precision):
    world = World(TabularEnv(riverswim(6)), 0.9)
    exact = np.random.default_rng(1).dirichlet([1.0, 1.0], 6)
    regrets = []
    for policy in (exact, exact.astype(precision)):
        liar = Liar(world)
        liar.policy = policy
        regrets.append(simulate(liar, world, 20, seed=1).true_regret)
    assert np.abs(exact.astype(precision).sum(axis=1, dtype=float) - 1.0).max() > 1e-8
    np.testing.assert_allclose(regrets[1], regrets[0], rtol=10 * np.finfo(precision).eps)


@pytest.mark.parametrize("form", ["actions", "probabilities"])
def test_an_inadmissible_action_of_a_policy_is_refused_when_it_is_read(form):
    admissible = np.ones((4, 2), dtype=bool)
    admissible[3, 0] = False
    mdp = brmdp.TabularMDP(RIVER.kernel(), RIVER.rewards, 0.9, admissible=admissible)
    policy = np.array([0, 0, 0, 0])
    steps = []

    class Idle(Minimal):
        def act(self, state):
            steps.append(state)
            return 0

    agent = Idle()
    agent.policy = policy if form == "actions" else np.eye(2)[policy]
    with pytest.raises(brmdp.InvalidInputError, match=r"action 0 in state 3"):
        simulate(agent, World(TabularEnv(mdp), 0.9), 100, seed=1)
    assert steps == [0]


@pytest.mark.parametrize("world", [river(), World("brmdp/Inventory-v0", 0.95)])
def test_an_act_replaced_on_one_agent_is_found_out(world):
    def agent():
        belief = brmdp.DirichletBelief.uniform(
            world.n_states, world.n_actions, possible=world.truth
        )
        return agents.posterior_mean(belief, world.truth.rewards, world.discount, rng=0)

    one = agent()
    one.act = lambda state: 1 - type(one).act(one, state) % 2
    with pytest.raises(brmdp.InvalidInputError, match="which its policy never takes there"):
        simulate(one, world, 50, seed=1)
    quiet = Diagnostics(true_regret=False)
    one = agent()
    one.act = lambda state: int(type(one).act(one, state) == 0 and world.n_actions == 2)
    assert len(simulate(one, world, 50, seed=1, diagnostics=quiet)) == 50


def test_an_observe_replaced_on_one_agent_changes_no_regret():
    world = river()
    expected, watched = (
        agents.posterior_mean(world.prior(), world.rewards, 0.9, rng=3) for _ in range(2)
    )
    seen = []

    def watch(*transition, **details):
        seen.append(transition)
        type(watched).observe(watched, *transition, **details)

    watched.observe = watch
    plain, found = (simulate(agent, world, 100, seed=5) for agent in (expected, watched))
    assert len(seen) == 100
    np.testing.assert_array_equal(found.true_regret, plain.true_regret)


def test_rewards_of_any_agent_with_a_belief_are_compared():
    world = river()
    liar = Liar(world)
    liar.belief, liar.rewards = world.prior(), np.asarray(world.rewards) + 1.0
    with pytest.raises(brmdp.RewardMismatchError, match="the agent plans with the reward"):
        brmdp.simulate(liar, world, 5, seed=1)


def test_an_observe_of_another_order_is_named():
    class Swapped(Liar):
        def observe(self, state, action, reward, next_state):
            pass

    world = river()
    with pytest.raises(brmdp.InvalidInputError, match="got observe\\(state, action, reward, next"):
        brmdp.simulate(Swapped(world), world, 5, seed=1)


@pytest.mark.parametrize(
    ("observe", "message"),
    [
        (lambda s, a: None, r"got observe\(s, a\): too many positional"),
        (lambda s, a, t, done: None, r"got observe\(s, a, t, done\): missing .*'done'"),
        (lambda s, a, *, next_state: None, r"got observe\(s, a, \*, next_state\)"),
        (lambda s, a, disturbance, **more: None, "multiple values for argument 'disturbance'"),
    ],
)
def test_an_observe_of_another_signature_is_named_before_the_first_step(observe, message):
    agent = Minimal()
    agent.observe = observe
    with pytest.raises(
        brmdp.InvalidInputError,
        match=f"observe must take state, action and next_state first.*{message}",
    ):
        simulate(agent, river(), 5, seed=1)


def test_an_observe_that_names_the_disturbance_and_takes_more_is_told_all():
    class Curious(Minimal):
        def act(self, state):
            return 0

        def observe(self, state, action, next_state, *, disturbance, **more):
            self.seen.append((disturbance, sorted(more)))

    agent = Curious()
    history = simulate(agent, World(InventoryEnv(), 0.95), 5, seed=4)
    assert agent.seen == [(one, ["info", "reward"]) for one in history.disturbance]


def test_the_disturbance_is_recorded_for_any_agent():
    class Clerk:
        def act(self, state):
            return 0

        def observe(self, state, action, next_state):
            pass

    world = brmdp.World("brmdp/Inventory-v0", discount=0.95)
    history = brmdp.simulate(Clerk(), world, 20, seed=0)
    assert history.disturbance.shape == (20,)
