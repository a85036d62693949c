"""Agents that learn rewards: repeatable, saved and resumed, and told what they must be told."""

import copy

import numpy as np
import pytest

import brmdp
from brmdp import agents
from brmdp.envs import OutcomeEnv, bandit, bernoulli_riverswim

ARMS = [0.2, 0.5, {0.0: 0.5, 1.0: 0.2, 2.0: 0.3}]

PRESETS = {
    "aq-brmdp": lambda *given, **more: agents.aq_brmdp(*given, delta=0.4, **more),
    "fixed-quantile": lambda *given, **more: agents.fixed_quantile(*given, alpha=0.8, **more),
    "continuing-psrl": agents.continuing_psrl,
    "posterior-mean": agents.posterior_mean,
}


def finite(discount=0.6):
    return brmdp.OutcomeBelief.uniform(1, 3, [0.0, 1.0, 2.0]), OutcomeEnv(bandit(ARMS)), discount


def swimming(discount=0.8):
    law = bernoulli_riverswim(3)
    return brmdp.OutcomeBelief.uniform(3, 2, [0, 1], 0.5, possible=law.mdp), OutcomeEnv(law), 0.8


class Noisy(OutcomeEnv):
    """The bandit, whose rewards have a continuous part too."""

    def step(self, action):
        state, reward, *rest = super().step(action)
        return state, min(reward + 0.5 * self.np_random.random(), 2.0), *rest


def continuous(discount=0.6):
    belief = brmdp.OutcomeBelief.bootstrap(1, 3, 0.0, 2.0, max_atoms=6)
    return belief, Noisy(bandit(ARMS)), discount


WORLDS = {"finite": finite, "swimming": swimming, "continuous": continuous}


def live(agent, env, steps, seed):
    """What happened, with the plan's value and policy at every step."""
    state, _ = env.reset(seed=seed)
    record = []
    for _ in range(steps):
        action = agent.act(state)
        following, reward, *_ = env.step(action)
        agent.observe(state, action, following, reward=reward)
        record.append((state, action, following, reward, agent.episode))
        state = following
    return record


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("world", WORLDS)
def test_an_agent_repeats_itself_and_goes_on_after_it_was_saved(world, preset, tmp_path):
    belief, env, discount = WORLDS[world]()
    first, second = (PRESETS[preset](belief, None, discount, rng=3) for _ in range(2))
    assert live(first, env, 40, 1) == live(second, env, 40, 1)
    assert belief.counts().sum() == 0  # the agents have copies
    first.save(tmp_path / "agent.npz")
    loaded = brmdp.Agent.load(tmp_path / "agent.npz")
    twin = copy.deepcopy(first)
    assert loaded.rewards is None
    np.testing.assert_array_equal(
        loaded.belief.concentration("flat"), first.belief.concentration("flat")
    )
    expected = live(second, env, 30, 2)
    assert live(loaded, env, 30, 2) == expected
    assert live(twin, env, 30, 2) == expected
    assert live(first, env, 30, 2) == expected
    plan, again = first.report, loaded.report
    assert (plan.iterations, plan.error_bound) == (again.iterations, again.error_bound)


@pytest.mark.parametrize("world", WORLDS)
def test_the_belief_after_a_life_is_that_of_its_data(world):
    belief, env, discount = WORLDS[world]()
    agent = agents.posterior_mean(belief, None, discount, restart=agents.EveryStep(), rng=3)
    record = live(agent, env, 50, 1)
    agent.act(0)
    states, actions, following, rewards, _ = zip(*record, strict=True)
    belief.observe(states, actions, following, rewards)
    np.testing.assert_array_equal(agent.belief.concentration("flat"), belief.concentration("flat"))
    np.testing.assert_array_equal(agent.belief.outcome_rewards, belief.outcome_rewards)
    plan = brmdp.plan(belief, None, discount, risk=brmdp.Mean())
    np.testing.assert_allclose(agent.report.solution.values, plan.values, rtol=1e-7)
    reports = agent.explain(0)
    assert sum(report.observations for report in reports) == sum(s == 0 for s in states)
    means = brmdp.backup(belief, None, discount, plan.values, risk=brmdp.Mean()).q_values[0]
    np.testing.assert_allclose([report.mean for report in reports], means, rtol=1e-7)


def test_a_plan_per_step_is_thompson_sampling():
    """One draw of every arm's outcomes from the agent's stream, and the arm with the best mean."""
    belief, env, _ = finite()
    agent = agents.continuing_psrl(belief, None, 0.0, rng=11)
    stream = np.random.default_rng(11).spawn(3)[2]
    state, _ = env.reset(seed=5)
    for _ in range(60):
        rows = belief.sample_entries(1, rng=stream)[0].reshape(3, 3)
        arm = int((rows @ [0.0, 1.0, 2.0]).argmax())
        assert agent.act(state) == arm
        _, reward, *_ = env.step(arm)
        agent.observe(0, arm, 0, reward=reward)
        belief.observe(0, arm, 0, reward)
    assert belief.counts().sum() == 60


def test_known_rewards_are_kept_apart_from_those_that_are_learned(tmp_path):
    costs = np.array([[0.0, -0.3, -0.9]])
    belief, env, discount = continuous()
    agent = agents.fixed_quantile(belief, costs, discount, alpha=0.3, rng=1)
    live(agent, env, 30, 1)
    np.testing.assert_array_equal(agent.rewards, costs.ravel())
    agent.save(tmp_path / "agent.npz")
    loaded = brmdp.Agent.load(tmp_path / "agent.npz")
    np.testing.assert_array_equal(loaded.rewards, costs.ravel())
    for one in (agent, loaded):
        report = one.explain(0)  # plans first, if the last plan has ended
        plan = brmdp.plan(one.belief, costs, discount, risk=brmdp.Quantile(0.3))
        np.testing.assert_allclose([r.value for r in report], plan.q_values[0], rtol=1e-7)
    assert live(loaded, env, 20, 2) == live(agent, env, 20, 2)


def test_an_interrupted_call_takes_effect_not_at_all():
    """A refused reward, in the middle of a life whose atoms grow and merge."""
    belief, env, discount = continuous()
    disturbed, calm = (agents.posterior_mean(belief, None, discount, rng=2) for _ in range(2))
    first = live(disturbed, env, 15, 1)
    for bad in (5.0, -0.1, np.nan):
        with pytest.raises(brmdp.InvalidInputError, match="reward must"):
            disturbed.observe(0, 1, 0, reward=bad)
    assert disturbed.progress.steps == 15
    assert live(calm, env, 15, 1) == first
    assert live(disturbed, env, 15, 2) == live(calm, env, 15, 2)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({}, "reward, and no disturbance, must be given: the OutcomeBelief learns the rewards"),
        ({"reward": "1"}, "reward must be a finite number; got '1'"),
        ({"reward": np.inf}, "reward must be a finite number; got inf"),
        ({"reward": [1.0]}, "reward must be a finite number"),
        ({"reward": 0.5}, r"reward must be one of \[0, 1, 2\] for \(state=0, action=0"),
        ({"reward": 1.0, "disturbance": 1}, "reward, and no disturbance"),
    ],
)
def test_what_an_agent_is_told_wrongly_is_named(told, message):
    agent = agents.posterior_mean(finite()[0], None, 0.5)
    with pytest.raises(brmdp.InvalidInputError, match=message):
        agent.observe(0, 0, 0, **told)
    assert agent.progress.steps == 0


def test_an_agent_with_known_rewards_takes_none():
    agent = agents.posterior_mean(brmdp.DirichletBelief.uniform(1, 1), [[1.0]], 0.5)
    with pytest.raises(brmdp.InvalidInputError, match="reward can be passed only if the belief"):
        agent.observe(0, 0, 0, reward=1.0)


def test_a_spoiled_file_is_refused(tmp_path):
    belief, env, discount = continuous()
    agent = agents.posterior_mean(belief, None, discount, rng=2)
    live(agent, env, 12, 1)
    arrays = agent.arrays()
    for change in (
        {"latest.weights": arrays["latest.weights"] * 0.0},  # fewer than the visits
        {"rewards": np.zeros(7)},
        {"belief.rewards": arrays["belief.rewards"][::-1]},
    ):
        with pytest.raises(brmdp.CorruptFileError):
            brmdp.Agent.from_arrays(arrays | change, "here")
