"""Worlds whose rewards agents have to learn: what they are told, their regret, what is refused."""

import gymnasium
import numpy as np
import pytest

import brmdp
from brmdp import agents
from brmdp.envs import BanditEnv, BernoulliRiverSwimEnv, OutcomeEnv, bandit, bernoulli_riverswim
from brmdp.runs import Case, execute, load_sweep, run_experiment
from brmdp.runs.execution import build
from brmdp.runs.origin import world_digest
from oracles import online


def unknown(env, discount=0.9, **more):
    return brmdp.World(env, discount, rewards="unknown", **more)


# --- regret ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("discount", [0.0, 0.8])
def test_regret_of_a_bandit_by_hand(discount):
    """(μ* − μ_a)/(1 − γ) per step, with the means of the arms, whatever was paid."""
    means = np.array([0.2, 0.9, 0.4])
    world = unknown(BanditEnv(means.tolist()), discount)
    agent = agents.continuing_psrl(
        world.prior(), world.rewards, discount, restart=agents.EveryStep(), rng=1
    )
    history = brmdp.simulate(agent, world, 60, seed=2)
    np.testing.assert_allclose(
        history.true_regret, (0.9 - means[history.action]) / (1 - discount), atol=1e-9
    )
    assert set(history.reward) == {0.0, 1.0}
    assert len(set(history.action)) == 3
    agent.act(0)  # plans with all data: the agent was told every reward
    wins = [int(history.reward[history.action == arm].sum()) for arm in range(3)]
    assert agent.belief.concentration("flat")[1::2].tolist() == [1.0 + w for w in wins]
    assert agent.belief.counts()[0, :, 0].tolist() == np.bincount(history.action).tolist()


def test_regret_in_the_river_by_hand():
    """Policy iteration and a linear system with the mean rewards."""
    law = bernoulli_riverswim(4, discount=0.8)
    world = unknown(OutcomeEnv(law), 0.8)
    agent = agents.fixed_quantile(world.prior(), None, 0.8, alpha=0.7, rng=3)
    policies = []
    history = brmdp.simulate(
        agent, world, 80, seed=4, on_episode=lambda t: policies.append((t, agent.policy))
    )
    kernel, rewards = law.mdp.kernel(), np.array(law.mdp.rewards)
    best, _ = online.policy_iteration(kernel, rewards, 0.8)
    expected = np.empty(80)
    for (t, policy), end in zip(policies, [t for t, _ in policies[1:]] + [80], strict=True):
        gap = best - online.policy_values(kernel, rewards, 0.8, policy)
        expected[t:end] = gap[history.state[t:end]]
    np.testing.assert_allclose(history.true_regret, expected, rtol=0, atol=1e-7)
    assert history.true_regret.sum() > 0.1


def test_diagnostics_in_the_belief():
    world = unknown(BanditEnv([0.3, 0.6]), 0.5)
    wanted = brmdp.Diagnostics(robust_level=0.2, quantile_level=0.1, quantile_every=10)
    agent = agents.fixed_quantile(world.prior(), None, 0.5, alpha=0.2, rng=1)
    history = brmdp.simulate(agent, world, 30, seed=1, diagnostics=wanted, diagnostics_rng=2)
    np.testing.assert_allclose(history.robust_regret, 0.0, atol=1e-7)
    assert history.quantile_value.shape == (3,)
    curious = agents.fixed_quantile(world.prior(), None, 0.5, alpha=0.9, rng=1)
    history = brmdp.simulate(curious, world, 30, seed=1, diagnostics=wanted, diagnostics_rng=2)
    assert history.robust_regret.sum() > 0.01


def test_without_a_truth_there_is_no_regret_but_the_agent_learns():
    class Coin(gymnasium.Env):
        observation_space = gymnasium.spaces.Discrete(2)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return 0, {}

        def step(self, action):
            paid = float(self.np_random.random() < (0.2, 0.8)[action])
            return 1, paid, bool(self.np_random.random() < 0.3), False, {}

    world = unknown(Coin(), 0.5)
    assert (world.truth, world.rewards, world.n_states) == (None, None, 3)
    assert "truth unknown, rewards unknown" in repr(world)
    with pytest.raises(brmdp.InvalidInputError, match="possible_rewards or reward_bounds must be"):
        world.prior()
    prior = world.prior(possible_rewards=[0, 1])
    assert prior.pattern.n_transitions == 2 * 2 * 3 * 2 + 2  # the end is known
    agent = agents.posterior_mean(prior, None, 0.5, rng=1)
    history = brmdp.simulate(agent, world, 60, seed=1)
    assert history.true_regret is None
    assert (history.next_state == 2).any()
    ends = unknown(Coin(), 0.5, ends=[0, 1])
    assert ends.n_states == 4
    bounds = world.prior(reward_bounds=(-1.0, 1.0))
    assert bounds.is_bootstrap
    np.testing.assert_array_equal(bounds.mean_rewards()[2], 0.0)
    learner = agents.posterior_mean(bounds, None, 0.5, rng=1)
    assert len(brmdp.simulate(learner, world, 30, seed=1)) == 30


def test_a_table_with_ends():
    """Gymnasium's FrozenLake, whose rewards are certain but not known to the agent."""
    world = unknown("FrozenLake-v1", 0.9)
    agent = agents.continuing_psrl(world.prior(possible_rewards=[0, 1]), None, 0.9, rng=1)
    history = brmdp.simulate(agent, world, 50, seed=1)
    known = brmdp.World("FrozenLake-v1", 0.9)
    np.testing.assert_array_equal(world.truth.transition_rewards, known.truth.transition_rewards)
    assert history.true_regret is not None
    assert world.prior(possible_rewards=[0, 1]).pattern.widths[-4:].tolist() == [1] * 4


def test_an_agent_of_ones_own_needs_no_belief():
    class Greedy:
        def __init__(self):
            self.paid = np.ones(3)
            self.policy = np.array([0])

        def act(self, state):
            return int(self.policy[0])

        def observe(self, state, action, next_state, *, reward):
            self.paid[action] += reward - 0.5
            self.policy = np.array([self.paid.argmax()])

    world = unknown(BanditEnv([0.1, 0.9, 0.5]), 0.0)
    history = brmdp.simulate(Greedy(), world, 100, seed=1)
    np.testing.assert_allclose(
        history.true_regret, 0.9 - np.array([0.1, 0.9, 0.5])[history.action], atol=1e-12
    )


# --- what does not fit together -------------------------------------------------------------------


def test_known_and_unknown_rewards_do_not_mix():
    world, known = (
        unknown(BanditEnv([0.3, 0.6]), 0.5),
        brmdp.World(BanditEnv([0.3, 0.6]), 0.5, random_rewards=True),
    )
    learner = agents.posterior_mean(world.prior(), None, 0.5, rng=1)
    knower = agents.posterior_mean(known.prior(), known.rewards, 0.5, rng=1)
    for agent, place, message in (
        (knower, world, "plans with known rewards .*DirichletBelief.* they are unknown"),
        (learner, known, "OutcomeBelief learns rewards, but this world has known ones"),
        (
            agents.posterior_mean(world.prior(), [[0.0, 1.0]], 0.5, rng=1),
            world,
            "they would count twice",
        ),
    ):
        with pytest.raises(brmdp.RewardMismatchError, match=message):
            brmdp.simulate(agent, place, 5, seed=1)
    assert len(brmdp.simulate(knower, known, 5, seed=1)) == 5
    assert len(brmdp.simulate(learner, world, 5, seed=1)) == 5
    # without random_rewards, a world that does not know of chance refuses its first reward
    strict = brmdp.World(BanditEnv([0.3, 0.6]), 0.5)
    with pytest.raises(brmdp.RewardMismatchError, match="rewards='unknown' if agents are to learn"):
        brmdp.simulate(
            agents.posterior_mean(strict.prior(), strict.rewards, 0.5, rng=1), strict, 5, seed=1
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rewards": "no"}, "rewards must be numbers, None or 'unknown'; got 'no'"),
        ({"rewards": "unknown", "random_rewards": True}, "random_rewards is for agents that know"),
        ({"rewards": "unknown", "ends": [0]}, "ends can be given only together with"),
    ],
)
def test_bad_worlds_are_named(settings, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        brmdp.World(BanditEnv(), 0.5, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"possible_rewards": [0, 1], "reward_bounds": (0, 1)}, "must not both be given"),
        ({"possible_rewards": [[0, 1]]}, "possible_rewards must be a list of numbers"),
        ({"possible_rewards": [0, np.nan]}, "possible_rewards must be finite"),
        ({"reward_bounds": 1.0}, "reward_bounds must be two numbers"),
        ({"reward_bounds": (1.0, 0.0)}, "lowest must not exceed highest"),
    ],
)
def test_bad_priors_are_named(settings, message):
    world = unknown(BanditEnv([0.3, 0.6]), 0.5)
    with pytest.raises(brmdp.InvalidInputError, match=message):
        world.prior(**settings)


def test_priors_of_known_rewards_take_no_support():
    world = brmdp.World("brmdp/RiverSwim-v0", 0.9)
    with pytest.raises(brmdp.InvalidInputError, match="for a world whose rewards are unknown"):
        world.prior(possible_rewards=[0, 1])


def test_a_reward_outside_the_belief_is_refused_by_name():
    world = unknown(BanditEnv([{0.0: 0.5, 3.0: 0.5}]), 0.5)
    agent = agents.posterior_mean(world.prior(possible_rewards=[0, 1]), None, 0.5, rng=1)
    with pytest.raises(brmdp.ImpossibleTransitionError, match=r"one of \[0, 1\] .*; got 3"):
        brmdp.simulate(agent, world, 50, seed=1)


# --- priors ---------------------------------------------------------------------------------------


def test_the_prior_of_the_river():
    world = unknown(BernoulliRiverSwimEnv(), 0.9)
    prior = world.prior(0.5)
    assert (prior.pattern.n_transitions, world.rewards) == (12 * 6 * 2, None)
    assert set(prior.concentration("flat")) == {0.5}
    assert world.prior(known_successors=True).pattern.n_transitions == 22 * 2
    plain = brmdp.World("brmdp/RiverSwim-v0", 0.9)
    assert plain.prior().pattern.same_as(world.prior().transitions)
    assert plain.rewards is not None


def test_the_inventory_can_have_unknown_rewards():
    world = unknown(brmdp.envs.InventoryEnv(capacity=3, max_order=2), 0.9)
    prior = world.prior(reward_bounds=(-10.0, 20.0), known_successors=True)
    np.testing.assert_array_equal(prior.pattern.admissible, world.truth.admissible)
    agent = agents.posterior_mean(prior, None, 0.9, rng=1)
    assert brmdp.simulate(agent, world, 40, seed=1).true_regret is not None


# --- runs -----------------------------------------------------------------------------------------

SWEEP = """
name = "arms"
runs = 2
steps = 40
discount = 0.0

[[environment]]
name = "bandit"
arms = [[0.2, 0.8, [[0.0, 0.5], [1.0, 0.5]]]]

[[environment]]
name = "bernoulli-riverswim"
n = 3
discount = 0.8
prior = { reward_bounds = [0.0, 1.0] }

[[agent]]
name = "continuing-psrl"

[[agent]]
name = "aq-brmdp"
delta = 0.3
prior = { concentration = 0.5 }
"""


@pytest.mark.long
def test_sweeps_use_agents_that_learn_rewards(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    sweep = load_sweep(path)
    store = run_experiment(sweep, tmp_path / "results", workers=1)
    assert {case.name for case in sweep.cases} == {
        f"{place}/{agent}"
        for place in ("bandit", "bernoulli-riverswim")
        for agent in ("continuing-psrl", "aq-brmdp")
    }
    for case in sweep.cases:
        found = store.records(case.name)
        assert np.isfinite(found.true_regret).all()
        belief = store.belief_after(case.name, 1)
        assert belief.counts().sum() == 40
        paid = belief.mean_rewards()[found.state[1, -1], found.action[1, -1]]
        assert 0.0 <= paid <= 1.0
        assert belief.is_bootstrap == case.name.startswith("bernoulli")
    half = store.belief_after("bandit/aq-brmdp", 0).concentration("flat")
    assert ((half - 0.5) % 1.0 == 0.0).all()


def test_the_digest_knows_the_law_and_not_only_its_means():
    def digest(arms, **more):
        return world_digest(brmdp.World(OutcomeEnv(bandit(arms)), 0.5, **more))

    fair, wide = [0.5], [{-1.0: 0.5, 2.0: 0.5}]
    assert digest(fair, rewards="unknown") == digest(fair, rewards="unknown")
    assert digest(fair, rewards="unknown") != digest(wide, rewards="unknown")
    assert digest(fair, rewards="unknown") != digest(fair, random_rewards=True)


def test_a_case_of_the_catalogue():
    arms = [0.3, 0.6]
    case = Case("one", "bandit", "continuing-psrl", 0.0, 30, {"arms": arms})
    world, agent = build(case, rng=1)
    assert world.rewards_unknown
    assert agent.belief.pattern.n_transitions == 4
    first, second = (execute(case, 3, 0).history for _ in range(2))
    np.testing.assert_array_equal(first.reward, second.reward)
    for wrong, message in (
        ({"environment_parameters": {"arm": arms}}, "unknown parameter of bandit 'arm'"),
        ({"prior": {"rewards": [0, 1]}}, "unknown key of prior 'rewards'"),
    ):
        given = {"environment_parameters": {"arms": arms}} | wrong
        with pytest.raises(brmdp.InvalidInputError, match=message):
            build(Case("one", "bandit", "continuing-psrl", 0.0, 30, **given))
