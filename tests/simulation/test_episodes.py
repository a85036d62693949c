"""Worlds with a horizon: resets, regret by episode, agents of every kind."""

import gymnasium
import numpy as np
import pytest

import brmdp
from brmdp import agents
from brmdp.envs import TabularEnv
from brmdp.runs import catalogue
from oracles import finite_horizon as oracle
from oracles.planning import mean_risk

RIVER = brmdp.envs.riverswim(4)
H = 8


def river(discount=1.0, horizon=H, mdp=RIVER):
    return brmdp.World(TabularEnv(mdp), discount, horizon=horizon)


def dense_rewards(mdp):
    return mdp.pattern.dense(mdp.transition_rewards)


def values_of(mdp, discount, horizon, policy=None):
    """V_0 by plain loops; a policy has (H, S) actions or (H, S, A) probabilities."""
    kernel, rewards = mdp.kernel(), dense_rewards(mdp)
    zero = np.zeros(len(rewards))
    return oracle.backward(mean_risk(kernel), rewards, discount, horizon, zero, policy)[0]


class Ending(gymnasium.Env):
    """State 0 goes on or ends; state 1 always ends; one action."""

    P = {  # noqa: RUF012 (as in Gymnasium)
        0: {0: [(0.5, 1, 1.0, False), (0.5, 0, 0.0, True)]},
        1: {0: [(1.0, 1, 2.0, True)]},
    }

    def __init__(self, limit=None):
        self.observation_space = gymnasium.spaces.Discrete(2)
        self.action_space = gymnasium.spaces.Discrete(1)
        self.limit, self.steps = limit, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.steps = 0, 0
        return 0, {}

    def step(self, action):
        self.steps += 1
        outcomes = self.P[self.state][0]
        k = int(self.np_random.random() >= outcomes[0][0])
        _, self.state, reward, end = outcomes[min(k, len(outcomes) - 1)]
        return self.state, reward, end, self.steps == self.limit, {}


# --- the world ------------------------------------------------------------------------------------


def test_the_world_is_reset_after_h_steps():
    world = river(0.9)
    world.reset(seed=1)
    for _ in range(3):
        for step in range(1, H + 1):
            next_state, _, resumed, _ = world.step(1)
            assert world.restarted == (step == H)
            assert resumed == (0 if step == H else next_state)
    assert repr(world) == (
        "World(TabularEnv: 4 states, 2 actions, discount 0.9, episodes of 8 steps, truth known)"
    )
    plain = river(0.9, None)
    plain.reset(seed=1)
    for _ in range(3 * H):
        plain.step(1)
        assert not plain.restarted


def test_an_episode_that_ends_early_begins_anew():
    world = brmdp.World(Ending(), 1.0, horizon=3)
    agent = agents.posterior_mean(world.prior(), world.rewards, 1.0, episode_length=3, rng=1)
    history = brmdp.simulate(agent, world, 60, seed=4)
    ended = np.flatnonzero(history.next_state == 2) + 1
    assert history.starts.tolist() == [0, *ended[ended < 60].tolist()]
    assert (np.diff(history.starts) <= 2).all()
    assert history.true_regret.tolist() == [0.0] * 60  # one action
    assert agent.episode == history.starts.size


@pytest.mark.parametrize("bad", [0, -1, 2.5, True])
def test_bad_horizons_are_refused(bad):
    with pytest.raises(brmdp.InvalidInputError, match="horizon must be a positive integer"):
        river(0.9, bad)


def test_a_discount_of_one_needs_a_horizon():
    with pytest.raises(brmdp.InvalidInputError, match=r"discount must lie in \[0, 1\); got 1.0"):
        river(1.0, None)
    assert river(1.0).truth.discount == 1.0


def test_an_environment_must_not_truncate_earlier():
    world = brmdp.World(Ending(limit=1), 1.0, horizon=3)
    world.reset(seed=0)

    def live():
        for _ in range(20):
            world.step(0)

    with pytest.raises(brmdp.InvalidInputError, match="truncated an episode after 1 steps"):
        live()
    fits = brmdp.World(Ending(limit=3), 1.0, horizon=3)
    fits.reset(seed=0)
    for _ in range(20):
        fits.step(0)


# --- regret ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("name", ["psrl", "aq"])
def test_regret_is_that_of_each_episode(name, discount):
    world = river(discount)
    make = agents.continuing_psrl if name == "psrl" else agents.aq_brmdp
    options = {} if name == "psrl" else {"delta": 5.0}
    agent = make(world.prior(), world.rewards, discount, episode_length=H, rng=2, **options)
    policies = []
    history = brmdp.simulate(
        agent, world, 6 * H + 3, seed=1, on_episode=lambda t: policies.append(agent.policy)
    )
    assert history.starts.tolist() == [k * H for k in range(7)]
    assert history.horizon == H
    assert len(policies) == 7
    best = values_of(RIVER, discount, H)
    for start, policy in zip(history.starts, policies, strict=True):
        lost = best - values_of(RIVER, discount, H, policy)
        assert history.true_regret[start] == pytest.approx(lost[0], abs=1e-12)
    others = np.setdiff1d(np.arange(6 * H + 3), history.starts)
    assert not history.true_regret[others].any()
    assert history.true_regret.sum() > 0.0
    assert "7 episodes of at most 8 steps" in repr(history)


def test_regret_of_a_policy_that_knows_no_steps():
    world = river(0.9)
    agent = agents.posterior_mean(
        world.prior(), world.rewards, 0.9, restart=agents.FixedLength(13), rng=0
    )
    policies = {}
    history = brmdp.simulate(
        agent,
        world,
        5 * H,
        seed=1,
        on_episode=lambda t: policies.setdefault(t, np.tile(agent.policy, (H, 1))),
    )
    best = values_of(RIVER, 0.9, H)
    for start in history.starts:
        in_force = policies[max(t for t in policies if t <= start)]
        lost = best[0] - values_of(RIVER, 0.9, H, in_force)[0]
        assert history.true_regret[start] == pytest.approx(lost, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("name", ["aq", "quantile", "psrl", "mean"])
def test_regret_falls(name):
    make = {
        "aq": lambda *given, **more: agents.aq_brmdp(*given, delta=2.0, **more),
        "quantile": lambda *given, **more: agents.fixed_quantile(*given, alpha=0.7, **more),
        "psrl": agents.continuing_psrl,
        "mean": agents.posterior_mean,
    }[name]
    early, late = [], []
    for seed in range(4):
        world = river(1.0)
        prior = world.prior(known_successors=True)
        agent = make(prior, world.rewards, 1.0, episode_length=H, rng=seed)
        regret = brmdp.simulate(agent, world, 60 * H, seed=seed).true_regret[::H]
        early.append(regret[:10].mean())
        late.append(regret[-20:].mean())
    best = values_of(RIVER, 1.0, H)[0]
    assert np.mean(late) <= max(0.5 * np.mean(early), 0.01 * best)


# --- agents ---------------------------------------------------------------------------------------


class ByStep:
    """An actor with a policy for every step, and a count of what it is told."""

    def __init__(self, policy, lie=False):
        self.policy = policy
        self.step = self.told = 0
        self.lie = lie

    def new_episode(self):
        self.told += 1
        self.step = 0

    def act(self, state):
        now = np.asarray(self.policy)[self.step]
        action = int(now[state] if now.ndim == 1 else now[state].argmax())
        return 1 - action if self.lie and self.step == 3 else action

    def observe(self, state, action, next_state):
        self.step += 1


@pytest.mark.parametrize("kind", ["actions", "probabilities"])
def test_an_actor_with_a_policy_for_every_step(kind):
    actions = np.random.default_rng(1).integers(2, size=(H, 4))
    policy = actions if kind == "actions" else 0.9 * np.eye(2)[actions] + 0.05
    actor = ByStep(policy)
    history = brmdp.simulate(actor, river(), 4 * H, seed=1)
    assert actor.told == 5  # before the first episode and after each
    lost = values_of(RIVER, 1.0, H)[0] - values_of(RIVER, 1.0, H, np.asarray(policy))[0]
    assert history.true_regret[::H] == pytest.approx([lost] * 4, abs=1e-12)
    assert history.true_regret.sum() == pytest.approx(4 * lost)
    with pytest.raises(brmdp.InvalidInputError, match="which its policy never takes"):
        brmdp.simulate(ByStep(actions, lie=True), river(), H, seed=1)
    with pytest.raises(brmdp.InvalidInputError, match="policy must hold actions"):
        brmdp.simulate(ByStep(actions[:-1]), river(), H, seed=1)


def test_an_actor_that_knows_no_episodes():
    class Right:
        policy = np.ones(4, dtype=int)

        def act(self, state):
            return 1

        def observe(self, state, action, next_state):
            pass

    history = brmdp.simulate(Right(), river(), 3 * H, seed=1)
    lost = values_of(RIVER, 1.0, H)[0] - values_of(RIVER, 1.0, H, np.ones((H, 4), int))[0]
    assert history.true_regret[::H] == pytest.approx([lost] * 3, abs=1e-12)


def test_a_subclass_of_an_agent_is_followed_step_by_step():
    class Mine(brmdp.Agent):
        def act(self, state):
            return super().act(state)

    def live(kind):
        world = river()
        agent = kind(
            world.prior(),
            world.rewards,
            1.0,
            risk=brmdp.PosteriorSample(rng=3),
            episode_length=H,
            rng=1,
        )
        return brmdp.simulate(agent, world, 5 * H, seed=2)

    ours, mine = live(brmdp.Agent), live(Mine)
    np.testing.assert_array_equal(ours.action, mine.action)
    np.testing.assert_allclose(ours.true_regret, mine.true_regret, atol=1e-12)
    assert ours.true_regret.any()


def test_lengths_must_agree():
    world = river()
    agent = agents.posterior_mean(world.prior(), world.rewards, 1.0, episode_length=H + 1, rng=0)
    with pytest.raises(brmdp.InvalidInputError, match="the agent plans for 9 steps, the world"):
        brmdp.simulate(agent, world, 10)
    agent = agents.posterior_mean(world.prior(), world.rewards, 0.9, episode_length=H, rng=0)
    with pytest.raises(brmdp.InvalidInputError, match="the world has none"):
        brmdp.simulate(agent, river(0.9, None), 10)
    with pytest.raises(brmdp.InvalidInputError, match="same discount"):
        brmdp.simulate(agent, world, 10)


@pytest.mark.parametrize("name", ["robust_level", "quantile_level"])
def test_diagnostics_without_episodes_are_refused(name):
    world = river(0.9)
    agent = agents.posterior_mean(world.prior(), world.rewards, 0.9, rng=0)
    with pytest.raises(brmdp.InvalidInputError, match=f"{name} cannot be measured"):
        brmdp.simulate(agent, world, 10, diagnostics=brmdp.Diagnostics(**{name: 0.2}))


def test_a_second_simulation_begins_a_new_episode():
    world = river()
    agent = agents.continuing_psrl(world.prior(), world.rewards, 1.0, episode_length=H, rng=0)
    brmdp.simulate(agent, world, H + 3, seed=1)
    assert agent.progress.clock == 3
    history = brmdp.simulate(agent, world, H, seed=2)
    assert history.starts.tolist() == [0]
    assert agent.episode == 3
    assert agent.progress.clock == 0  # the world has been reset once more


def test_sweeps_refuse_a_world_with_a_horizon(monkeypatch):
    monkeypatch.setattr(catalogue, "_own_environment", lambda *given: river(0.9))
    with pytest.raises(brmdp.InvalidInputError, match="has a horizon"):
        catalogue._foreign_world("module:make", {}, 0.9)
