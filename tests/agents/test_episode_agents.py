"""Agents that plan for episodes of the world: steps, endings, plans, files, interruptions."""

import copy
import functools

import numpy as np
import pytest

import brmdp
from brmdp import agents
from brmdp.planning import finite_horizon
from interruptions import StopAt

RIVER = brmdp.envs.riverswim(4)
H = 5

PRESETS = {
    "aq": functools.partial(agents.aq_brmdp, delta=5.0),
    "quantile": functools.partial(agents.fixed_quantile, alpha=0.3),
    "draws": functools.partial(
        agents.fixed_quantile, alpha=0.3, method=brmdp.MonteCarlo(samples=9, reuse=True)
    ),
    "psrl": agents.continuing_psrl,
    "mean": agents.posterior_mean,
}


def made(name, discount=1.0, **options):
    belief = brmdp.DirichletBelief.uniform(4, 2)
    options = {"episode_length": H, "rng": 3} | options
    return PRESETS[name](belief, RIVER.rewards, discount, **options)


def live(agent, steps, seed=0, state=0):
    """A life in the river, with a new episode after every H steps; returns the actions."""
    rng = np.random.default_rng(seed)
    kernel = RIVER.kernel()
    actions = []
    for _ in range(steps):
        action = agent.act(state)
        actions.append(action)
        following = int(rng.choice(4, p=kernel[state, action]))
        agent.observe(state, action, following)
        state = following
        if agent.progress.clock == H:
            agent.new_episode()
            state = 0
    return actions


def contents(agent):
    return {
        name: (array.dtype.str, array.shape, array.tobytes())
        for name, array in agent.arrays().items()
    }


# --- the steps of an episode ----------------------------------------------------------------------


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("name", PRESETS)
def test_actions_follow_the_policy_of_their_step(name, discount):
    agent = made(name, discount)
    live(agent, 3 * H)
    policy = agent.policy
    assert policy.shape == (H, 4)
    for step in range(H):
        assert agent.progress.clock == step
        assert [agent.act(s) for s in range(4)] == policy[step].tolist()
        agent.observe(0, 0, 0)
        assert np.array_equal(agent.policy, policy)
    assert agent.episode == 4
    assert agent.report.iterations == H
    assert agent.report.solution.horizon == H
    assert agent.report.levels is None or agent.report.levels.shape == (4, 2)


def test_the_plan_is_that_of_the_belief_for_h_steps():
    agent = made("quantile", ties="lowest")
    live(agent, 4 * H + 2)
    # the belief of the plan does not have the two last transitions
    with pytest.warns(brmdp.PriorWarning):
        plan = brmdp.plan(agent.belief, RIVER.rewards, 1.0, risk=brmdp.Quantile(0.3), horizon=H)
    assert np.array_equal(agent.policy, plan.policy)
    assert agent.belief.counts().sum() == 4 * H
    reports = agent.explain(1)
    assert [r.value for r in reports] == pytest.approx(plan.q_values[2, 1].tolist(), abs=1e-12)
    assert [r.chosen for r in reports] == [a == plan.policy[2, 1] for a in range(2)]
    mean = brmdp.backup(agent.belief, RIVER.rewards, 1.0, plan.values[3], risk=brmdp.Mean())
    assert [r.mean for r in reports] == pytest.approx(mean.q_values[1].tolist(), abs=1e-12)


def test_beyond_its_steps_an_episode_has_no_plan():
    agent = made("mean")
    for _ in range(H):
        agent.act(0)
        agent.observe(0, 0, 0)
    for call in (agent.act, agent.explain):
        with pytest.raises(brmdp.InvalidInputError, match=r"has had its 5 steps.*new_episode"):
            call(0)
    # what happens is learned all the same
    agent.observe(0, 0, 0)
    assert agent.progress.clock == H + 1
    assert agent.progress.steps == H + 1
    before = agent.episode
    agent.new_episode()
    agent.act(0)
    assert (agent.episode, agent.progress.clock) == (before + 1, 0)
    assert agent.belief.counts().sum() == H + 1


def test_an_episode_may_end_early():
    agent = made("psrl")
    live(agent, 2)
    first = agent.policy
    assert (agent.progress.clock, agent.episode) == (2, 1)
    agent.new_episode()
    assert agent.progress.clock == 0
    assert agent.act(3) == agent.policy[0][3]
    assert agent.episode == 2
    assert not np.array_equal(agent.policy, first) or agent.belief.counts().sum() == 2


def test_a_new_episode_without_steps_changes_nothing():
    agent, twin = made("psrl"), made("psrl")
    agent.new_episode()
    agent.act(0)
    agent.new_episode()
    agent.new_episode()
    twin.act(0)
    assert contents(agent) == contents(twin)
    assert live(agent, 12) == live(twin, 12)


def test_an_agent_without_episodes_ignores_them():
    belief = brmdp.DirichletBelief.uniform(4, 2)
    agent, twin = (agents.continuing_psrl(belief, RIVER.rewards, 0.9, rng=1) for _ in range(2))
    for one in (agent, twin):
        one.act(0)
        one.observe(0, 1, 1)
    agent.new_episode()
    assert contents(agent) == contents(twin)
    assert agent.episode_length is None
    assert agent.progress.clock == 0
    assert "clock" not in agent.arrays()


# --- restart rules --------------------------------------------------------------------------------


def test_other_rules_plan_within_an_episode_or_less_often():
    every = made("mean", restart=agents.EveryStep())
    live(every, 2)
    every.act(0)
    assert (every.episode, every.progress.clock) == (3, 2)
    assert every.belief.counts().sum() == 2
    assert every.act(1) == every.policy[2][1]
    rare = made("mean", restart=agents.FixedLength(12))
    live(rare, 12)
    assert rare.episode == 1
    rare.act(0)
    assert (rare.episode, rare.progress.clock) == (2, 2)
    doubling = made("psrl", restart=agents.VisitDoubling())
    live(doubling, 40)
    assert 1 < doubling.episode < 40


def test_a_rule_of_ones_own_sees_the_clock():
    seen = []

    class AtTheEnd:
        at_new_episode = False

        def ends(self, progress, *, rng):
            seen.append((progress.clock, progress.episode_length))
            return progress.clock == progress.episode_length

    agent = made("mean", restart=AtTheEnd())
    live(agent, H + 1)
    assert seen == [(k, H) for k in range(1, H + 1)] + [(1, H)]
    assert agent.episode == 2

    class AtBeginnings:
        at_new_episode = True

        def ends(self, progress, *, rng):
            return False

    agent = made("mean", restart=AtBeginnings())
    live(agent, 3 * H)
    agent.act(0)
    assert agent.episode == 4


def test_ties_are_broken_at_every_step():
    belief = brmdp.DirichletBelief.uniform(2, 4)
    policies = []
    for seed in range(5):
        agent = agents.posterior_mean(belief, np.zeros((2, 4)), 1.0, episode_length=30, rng=seed)
        policies.append(agent.policy)
        assert (np.bincount(agent.policy.ravel(), minlength=4) > 3).all()
        assert np.array_equal(agent.policy, agent.policy)
    assert not np.array_equal(policies[0], policies[1])
    lowest = agents.posterior_mean(
        belief, np.zeros((2, 4)), 1.0, episode_length=30, ties="lowest", rng=1
    )
    assert not lowest.policy.any()


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0, -2, 2.0, True, "5"])
def test_bad_lengths_are_refused(bad):
    with pytest.raises(brmdp.InvalidInputError, match="episode_length must be a positive integer"):
        made("mean", episode_length=bad)


def test_what_does_not_fit_is_refused(monkeypatch):
    belief = brmdp.DirichletBelief.uniform(4, 2)
    with pytest.raises(brmdp.InvalidInputError, match=r"discount must lie in \[0, 1\); got 1.0"):
        agents.posterior_mean(belief, RIVER.rewards, 1.0)
    with pytest.raises(brmdp.InvalidInputError, match=r"EachEpisode\(\) needs an episode_length"):
        agents.posterior_mean(belief, RIVER.rewards, 0.9, restart=agents.EachEpisode())
    with pytest.raises(brmdp.InvalidInputError, match="restart must be an object with a method"):
        brmdp.Agent(belief, RIVER.rewards, 0.9, risk=brmdp.Mean())
    monkeypatch.setattr("brmdp.agents.agent.KEPT_Q_VALUES", 39)
    with pytest.raises(brmdp.InvalidInputError, match="episode_length must be at most 4 for 4"):
        made("mean")
    assert finite_horizon.KEPT_Q_VALUES > 1000


def test_the_optimism_meter_knows_no_episodes():
    agent = made("aq", 0.9)
    with pytest.raises(brmdp.InvalidInputError, match="without episodes"):
        brmdp.theory.OptimismMeter(agent, brmdp.envs.riverswim(4, discount=0.9))


def test_it_says_that_it_plans_for_episodes():
    assert "restart=EachEpisode(), episodes of 5 steps, pseudo-episode 0" in repr(made("mean"))


# --- files and interruptions ----------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, H, 2 * H + 3])
@pytest.mark.parametrize("name", PRESETS)
def test_a_loaded_agent_continues_bit_for_bit(name, steps, tmp_path):
    agent = made(name)
    live(agent, steps, seed=1)
    agent.save(tmp_path / "agent.npz")
    twin = brmdp.Agent.load(tmp_path / "agent.npz")
    assert twin.episode_length == H
    assert twin.progress.clock == agent.progress.clock == steps % H
    assert contents(twin) == contents(agent)
    assert live(twin, 17, seed=2) == live(agent, 17, seed=2)
    assert contents(twin) == contents(agent)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clock", np.array(-1)),
        ("clock", np.array(99)),
        ("clock", np.array([1, 2])),
        ("clock", np.array(0.5)),
        ("policy", np.zeros((H + 1, 4), dtype=int)),
        ("policy", np.zeros(4, dtype=int)),
        ("values", np.zeros(4)),
        ("values", np.full((H + 1, 4), np.nan)),
        ("q_values", np.zeros((4, 2))),
        ("tie_widths", np.full(H, -1.0)),
        ("tie_widths", np.zeros(2)),
    ],
)
def test_damaged_files_are_refused(name, value):
    agent = made("mean")
    live(agent, 7)
    arrays = agent.arrays()
    brmdp.Agent.from_arrays(arrays, "a file")
    with pytest.raises(brmdp.CorruptFileError):
        brmdp.Agent.from_arrays(arrays | {name: value}, "a file")
    del arrays[name]
    with pytest.raises(brmdp.CorruptFileError):
        brmdp.Agent.from_arrays(arrays, "a file")


CALLS = {
    "act": lambda agent: agent.act(1),
    "observe": lambda agent: agent.observe(1, 1, 2),
    "new_episode": lambda agent: agent.new_episode(),
}


@pytest.mark.long
@pytest.mark.parametrize("call_name", CALLS)
@pytest.mark.parametrize("name", ["psrl", "draws"])
def test_a_call_that_is_stopped_happened_or_did_not(name, call_name):
    call = CALLS[call_name]
    original = made(name)
    live(original, 2 * H + 3)
    if call_name == "act":
        original.new_episode()  # so that it has to plan
    before = contents(original)
    whole = copy.deepcopy(original)
    call(whole)
    after = contents(whole)
    assert after != before
    moment, seen, step = 0, set(), 1 if call_name == "new_episode" else 29
    while True:
        agent = copy.deepcopy(original)
        stop = StopAt(moment)
        if not stop.run(functools.partial(call, agent)):
            break
        found = contents(agent)
        assert found in (before, after), stop.where
        seen.add(found == after)
        if found == before:
            call(agent)
            assert contents(agent) == after, stop.where
        moment += step
    assert seen == {False, True} or step > 1
