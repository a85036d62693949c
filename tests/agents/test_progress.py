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
    # a copy of it, which the schedule may change
    assert schedule.seen[-1].belief is not agent.belief


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


# --- parts that write, or answer badly ------------------------------------------------------------


def state_of(agent):
    return {name: array.tobytes() for name, array in agent.arrays().items() if name != "parts"}


class Harmless:
    def levels(self, progress):
        return 0.4


@pytest.mark.parametrize("field", ["steps_in_episode", "steps", "episode", "last_pair", "visits"])
def test_a_rule_cannot_spoil_the_agent(tmp_path, field):
    class Spoiling:
        def ends(self, progress, *, rng):
            ended = progress.steps_in_episode >= 3
            setattr(progress, field, 0)
            return ended

    found, wanted = watched(Harmless(), Spoiling()), watched(Harmless(), FixedLength(3))
    for agent in (found, wanted):
        walk(agent, 10)
    assert state_of(found) == state_of(wanted)
    found.save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz", schedule=Harmless(), restart=Spoiling())
    assert state_of(loaded) == state_of(wanted)


@pytest.mark.parametrize("name", ["visits", "visits_at_start", "admissible"])
def test_arrays_that_a_rule_sees_are_read_only(name):
    class Writing:
        def ends(self, progress, *, rng):
            getattr(progress, name)[:] = 0
            return False

    agent = watched(Harmless(), Writing())
    agent.act(0)
    before = state_of(agent)
    with pytest.raises(ValueError, match="read-only"):
        agent.observe(0, 1, 1)
    assert state_of(agent) == before


def test_a_schedule_cannot_change_what_is_admissible():
    class Unseen:
        def levels(self, progress):
            unseen = progress.admissible
            unseen &= progress.visits == 0
            return np.where(unseen, 0.9, 0.1)

    belief = brmdp.DirichletBelief.uniform(4, 2)
    agent = watched(Unseen(), belief=belief)
    agent.observe(0, 1, 1)
    with pytest.raises(ValueError, match="read-only"):
        agent.act(0)
    assert agent.progress.admissible.all()
    assert belief.pattern.admissible.all()
    # the table itself stays writable: for compiled loops a read-only array is of another type
    assert belief.pattern.admissible.flags.writeable


def test_the_progress_that_an_agent_returns_is_the_callers():
    agent = watched(Harmless())
    agent.progress.admissible[:] = False
    assert agent.progress.admissible.all()


def test_a_schedule_cannot_change_the_belief():
    class Learning:
        def levels(self, progress):
            progress.belief.observe(0, 0, 0)
            progress.visits[:] = 7
            return 0.4

    found, wanted = watched(Learning()), watched(Harmless())
    for agent in (found, wanted):
        walk(agent, 5)
    assert state_of(found) == state_of(wanted)


def test_the_librarys_own_schedules_see_the_belief_itself(monkeypatch):
    shown = []
    monkeypatch.setattr(
        agents.FixedLevel, "levels", lambda self, progress: shown.append(progress) or self.alpha
    )
    agent = watched(agents.FixedLevel(0.3))
    agent.act(0)
    assert shown[0].belief is agent.belief


@pytest.mark.parametrize("answer", [None, "no", 0, 1, 1.0, np.array([True]), []])
def test_a_rule_must_answer_true_or_false(answer):
    class Vague:
        def ends(self, progress, *, rng):
            return answer

    agent = watched(Harmless(), Vague())
    agent.act(0)
    before = state_of(agent)
    with pytest.raises(
        brmdp.InvalidInputError, match=r"Vague\.ends must return True or False; got "
    ):
        agent.observe(0, 1, 1)
    assert state_of(agent) == before


def test_a_rule_may_answer_with_a_boolean_of_numpy():
    class Numpy:
        def ends(self, progress, *, rng):
            return progress.visits.sum() % 2 == 0

    agent = watched(Harmless(), Numpy())
    walk(agent, 7)
    assert agent.episode == 4


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (np.nan, "must lie strictly between 0 and 1; got nan"),
        (1.0, "must lie strictly between 0 and 1; got 1.0"),
        (np.full((4, 2), 2.0), r"must lie strictly between 0 and 1; got 2.0 at \(s=0, a=0\)"),
        (None, "must be a number or an array of numbers; got None"),
        ("0.3", "must be a number or an array of numbers; got '0.3'"),
    ],
)
def test_bad_levels_name_the_schedule(levels, message):
    class Wrong:
        def levels(self, progress):
            return levels

    with pytest.raises(
        brmdp.InvalidInputError,
        match=rf"^Wrong\.levels must return levels that Quantile accepts: alpha {message}",
    ):
        watched(Wrong()).act(0)


@pytest.mark.parametrize("levels", [np.full((2, 4), 0.5), [0.5] * 8, np.full((1, 1), 0.5)])
def test_levels_of_another_shape_name_the_schedule(levels):
    class Wrong:
        def levels(self, progress):
            return levels

    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"^Wrong\.levels must return a number or an array of shape \(4, 2\), one level per",
    ):
        watched(Wrong()).act(0)


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
