"""What schedules and restart rules are shown, also after an agent was saved and loaded."""

import numpy as np
import pytest

import brmdp
from brmdp import agents
from brmdp.agents import Agent, EveryStep, FixedLength, Progress
from brmdp.envs import TabularEnv, inventory, riverswim

RIVER = riverswim(4)


class Watching:
    """A schedule that notes what it is shown."""

    def __init__(self):
        self.seen = []

    def levels(self, progress):
        self.seen.append(progress)
        return 0.4


class WatchingRule:
    def __init__(self, length):
        self.seen, self.length = [], length

    def ends(self, progress, *, rng):
        self.seen.append((progress.discount, progress.horizon, progress.belief))
        return progress.steps_in_episode >= self.length


def watched(schedule, restart=None, belief=None, **options):
    belief = brmdp.DirichletBelief.uniform(4, 2, 2.0) if belief is None else belief
    return Agent(
        belief,
        RIVER.rewards,
        0.9,
        risk=brmdp.Quantile(0.5),
        restart=EveryStep() if restart is None else restart,
        schedule=schedule,
        rng=0,
        **options,
    )


def walk(agent, steps, seed=1):
    env = TabularEnv(RIVER)
    state, _ = env.reset(seed=seed)
    for _ in range(steps):
        action = agent.act(state)
        following, *_ = env.step(action)
        agent.observe(state, action, following)
        state = following


def test_a_schedule_sees_discount_horizon_and_belief():
    schedule = Watching()
    agent = watched(schedule, FixedLength(3), horizon=40)
    walk(agent, 10)
    assert [shown.episode for shown in schedule.seen] == [1, 2, 3, 4]
    assert [shown.steps for shown in schedule.seen] == [0, 3, 6, 9]
    for shown in schedule.seen:
        assert shown.discount == 0.9
        assert shown.horizon == 40
        assert shown.steps_in_episode == 0
        # the belief of the plan, with all data up to it
        np.testing.assert_array_equal(shown.belief.counts().sum(axis=2), shown.visits_at_start)
        # the prior has weight 2 for each of four successors, whatever the data
        np.testing.assert_array_equal(shown.prior_strength, np.full((4, 2), 8.0))
    assert schedule.seen[-1].belief is agent.belief


def test_without_a_horizon_there_is_none():
    schedule = Watching()
    agent = watched(schedule)
    agent.act(0)
    assert agent.horizon is None
    assert agent.progress.horizon is None
    assert schedule.seen[0].horizon is None
    assert watched(Watching(), horizon=np.int64(7)).horizon == 7


@pytest.mark.parametrize("bad", [0, -3, 2.5, "10", True])
def test_a_bad_horizon_is_refused(bad):
    with pytest.raises(brmdp.InvalidInputError, match="horizon must be a positive integer; got"):
        watched(Watching(), horizon=bad)


def test_a_rule_sees_no_belief():
    rule = WatchingRule(2)
    walk(watched(Watching(), rule, horizon=9), 5)
    # asked at every step, since each plan lasts for two
    assert rule.seen == [(0.9, 9, None)] * 5


def test_what_an_agent_shows_of_its_progress_has_no_belief():
    agent = watched(Watching(), horizon=9)
    walk(agent, 3)
    shown = agent.progress
    assert (shown.discount, shown.horizon, shown.belief) == (0.9, 9, None)
    with pytest.raises(brmdp.InvalidInputError, match="prior_strength needs a belief, which only"):
        _ = shown.prior_strength


def test_the_horizon_is_saved(tmp_path):
    agent = watched(Watching(), FixedLength(4), horizon=60)
    walk(agent, 6)
    agent.save(tmp_path / "agent.npz")
    schedule = Watching()
    loaded = Agent.load(tmp_path / "agent.npz", schedule=schedule)
    assert loaded.horizon == loaded.progress.horizon == 60
    walk(loaded, 6)
    assert schedule.seen
    for shown in schedule.seen:
        assert (shown.discount, shown.horizon) == (0.9, 60)
        np.testing.assert_array_equal(shown.prior_strength, np.full((4, 2), 8.0))


def test_levels_may_depend_on_all_of_it(tmp_path):
    class Hurried:
        """Bolder towards the end, and where the data outweigh the prior."""

        def levels(self, progress):
            left = 1.0 - progress.steps / progress.horizon
            share = progress.prior_strength / (progress.prior_strength + progress.visits)
            return 0.9 - 0.8 * left * share * progress.discount

    agent = watched(Hurried(), horizon=30)
    walk(agent, 10)
    strength, visits = 8.0, agent.progress.visits_at_start
    expected = 0.9 - 0.8 * (1 - 9 / 30) * 0.9 * strength / (strength + visits)
    np.testing.assert_allclose(agent.levels, expected, rtol=1e-14)
    agent.save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz", schedule=Hurried())
    walk(agent, 10, seed=4)
    walk(loaded, 10, seed=4)
    np.testing.assert_array_equal(loaded.levels, agent.levels)
    np.testing.assert_array_equal(loaded.policy, agent.policy)


def test_the_strength_of_a_shared_prior():
    stock = inventory(3, 2, (0.5, 0.3, 0.2))
    schedule = Watching()
    agent = Agent(
        brmdp.DisturbanceBelief(stock.outcomes),
        brmdp.DisturbanceRewards(stock.disturbance_rewards),
        0.9,
        risk=brmdp.Quantile(0.5),
        restart=EveryStep(),
        schedule=schedule,
        rng=0,
    )
    agent.act(0)
    admissible = stock.mdp.admissible
    np.testing.assert_array_equal(schedule.seen[0].prior_strength[admissible], 3.0)


def test_a_belief_that_does_not_tell_prior_and_data_apart():
    progress = Progress.initial(np.ones((4, 2), dtype=bool))

    class Silent:
        pass

    class Short:
        def evidence(self, pairs):
            return np.ones(3), np.ones(3)

    for belief, message in (
        (
            Silent(),
            r"prior_strength needs a belief with a method evidence\(pairs\); Silent has none",
        ),
        (Short(), r"Short\.evidence must return one number per pair, shape \(8,\); got \(3,\)"),
    ):
        with pytest.raises(brmdp.InvalidInputError, match=message):
            _ = progress.upcoming(belief).prior_strength


def test_a_copy_keeps_everything():
    schedule = Watching()
    walk(watched(schedule, horizon=5), 2)
    shown = schedule.seen[-1]
    twin = shown.copy()
    assert (twin.discount, twin.horizon, twin.belief) == (0.9, 5, shown.belief)
    assert (twin.episode, twin.steps, twin.last_pair) == (
        shown.episode,
        shown.steps,
        shown.last_pair,
    )
    assert twin.visits is not shown.visits


# --- the risk-neutral preset ----------------------------------------------------------------------


@pytest.mark.parametrize("ties", ["uniform", "lowest"])
def test_posterior_mean_is_an_agent_with_the_mean(ties):
    belief = brmdp.DirichletBelief.uniform(4, 2)
    found = agents.posterior_mean(belief, RIVER.rewards, 0.9, ties=ties, rng=7)
    by_hand = Agent(
        belief,
        RIVER.rewards,
        0.9,
        risk=brmdp.Mean(),
        restart=agents.GeometricLength(0.9),
        ties=ties,
        rng=np.random.default_rng(7).spawn(3)[:2],
    )
    assert isinstance(found.risk, brmdp.Mean)
    assert found.schedule is None
    assert found.restart == agents.GeometricLength(0.9)
    for agent in (found, by_hand):
        walk(agent, 200)
    assert found.episode == by_hand.episode > 5
    assert found.levels is None
    np.testing.assert_array_equal(found.policy, by_hand.policy)
    np.testing.assert_array_equal(found.progress.visits, by_hand.progress.visits)
    wanted = brmdp.plan(found.belief, RIVER.rewards, 0.9, risk=brmdp.Mean())
    np.testing.assert_allclose(found.report.solution.values, wanted.values, atol=1e-6)


def test_posterior_mean_takes_a_restart_rule_and_a_tolerance():
    agent = agents.posterior_mean(
        brmdp.DirichletBelief.uniform(4, 2),
        RIVER.rewards,
        0.9,
        restart=FixedLength(5),
        tolerance=1e-3,
        rng=1,
    )
    walk(agent, 20)
    assert agent.episode == 4
    assert agent.tolerance == 1e-3
