"""Restart rules: when pseudo-episodes end, by themselves and inside an agent."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import brmdp
from brmdp import agents
from brmdp.agents import (
    EveryStep,
    FixedLength,
    GeometricLength,
    GrowingLength,
    Progress,
    StepDoubling,
    VisitDoubling,
)
from brmdp.envs import TabularEnv, riverswim
from oracles import online

relaxed = settings(derandomize=True, deadline=None, max_examples=120)

RIVER = riverswim(6)
TINY = brmdp.TabularMDP(np.ones((1, 1, 1)), np.ones((1, 1)), 0.5)


def progress(shape=(6, 2)):
    started = Progress.initial(np.ones(shape, dtype=bool))
    started.begin_episode()
    return started


def lengths_of(rule, n, rng):
    """Lengths of ``n`` pseudo-episodes of a rule, each step visiting a random pair."""
    now, lengths = progress(), []
    while len(lengths) < n:
        now.add(int(rng.integers(6)), int(rng.integers(2)))
        if rule.ends(now, rng=rng):
            lengths.append(now.steps_in_episode)
            now.begin_episode()
    assert now.steps == sum(lengths)
    assert now.episode == n + 1
    return np.array(lengths)


def numbers_of_episodes(agent, mdp, steps, seed=0):
    """Number of the pseudo-episode of every step."""
    env = TabularEnv(mdp)
    state, _ = env.reset(seed=seed)
    numbers = []
    for _ in range(steps):
        action = agent.act(state)
        numbers.append(agent.episode)
        following, *_ = env.step(action)
        agent.observe(state, action, following)
        state = following
    return numbers


def mean_agent(mdp, rule, rng):
    belief = brmdp.DirichletBelief.uniform(mdp.n_states, mdp.n_actions)
    return agents.Agent(belief, mdp.rewards, mdp.discount, risk=brmdp.Mean(), restart=rule, rng=rng)


# --- geometric ------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("continuation", [0.5, 0.8, 0.9, 0.99])
def test_geometric_lengths_have_their_distribution(continuation):
    lengths = lengths_of(GeometricLength(continuation), 4000, np.random.default_rng(1))
    law = stats.geom(1 - continuation)
    edges = np.unique(law.ppf(np.linspace(0.1, 0.9, 9)))  # classes of about a tenth each
    observed = np.bincount(np.searchsorted(edges, lengths), minlength=edges.size + 1)
    expected = 4000 * np.diff(np.concatenate(([0.0], law.cdf(edges), [1.0])))
    assert stats.chisquare(observed, expected).pvalue > 1e-3
    # successive lengths do not depend on each other
    assert abs(np.corrcoef(lengths[1:], lengths[:-1])[0, 1]) < 4 / math.sqrt(4000)


def test_no_continuation_ends_every_step():
    assert (lengths_of(GeometricLength(0.0), 50, np.random.default_rng(2)) == 1).all()


def test_geometric_lengths_use_one_number_per_step():
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    rule, now = GeometricLength(0.7), progress()
    answers = [rule.ends(now, rng=rng) for _ in range(300)]
    assert answers == [twin.random() >= 0.7 for _ in range(300)]
    assert rng.bit_generator.state == twin.bit_generator.state


@pytest.mark.long
@pytest.mark.parametrize(("discount", "steps", "runs"), [(0.9, 300, 100), (0.5, 40, 400)])
def test_expected_number_of_pseudo_episodes(discount, steps, runs):
    """E[K_T] = 1 + (T − 1)(1 − γ), from agents; K_T − 1 is binomial, so its spread is known too."""
    found = []
    for run in range(runs):
        agent = mean_agent(TINY, GeometricLength(discount), run)
        found.append(numbers_of_episodes(agent, TINY, steps)[-1])
    found = np.array(found)
    expected = 1 + (steps - 1) * (1 - discount)
    variance = (steps - 1) * discount * (1 - discount)
    assert abs(found.mean() - expected) < 4 * math.sqrt(variance / runs)
    # the usual mistakes lie further away: γ for 1 − γ, one pseudo-episode more or less
    assert 4 * math.sqrt(variance / runs) < (3.0 if discount == 0.9 else 1.0)
    ratio = found.var(ddof=1) * (runs - 1) / variance
    assert stats.chi2.ppf(1e-4, runs - 1) < ratio < stats.chi2.ppf(1 - 1e-4, runs - 1)


@pytest.mark.long
def test_no_pseudo_episode_is_lost_at_the_start_or_at_the_end():
    """Many short runs.

    The mean is known so well that one pseudo-episode more or less would show.
    """
    runs, steps = 3000, 5  # the indicator after the last step does not count
    found = [
        numbers_of_episodes(mean_agent(TINY, GeometricLength(0.8), run), TINY, steps)[-1]
        for run in range(runs)
    ]
    deviation = math.sqrt((steps - 1) * 0.2 * 0.8 / runs)
    assert abs(np.mean(found) - (1 + (steps - 1) * 0.2)) < 4 * deviation < 0.1


def test_presets_continue_with_the_discount():
    belief = brmdp.DirichletBelief.uniform(6, 2)
    for agent in (
        agents.aq_brmdp(belief, RIVER.rewards, 0.77, delta=5.0, rng=0),
        agents.fixed_quantile(belief, RIVER.rewards, 0.77, alpha=0.2, rng=0),
        agents.continuing_psrl(belief, RIVER.rewards, 0.77, rng=0),
    ):
        assert agent.restart == GeometricLength(0.77)


def test_restarts_are_independent_of_the_trajectory():
    """The same seed gives the same pseudo-episodes in any world, with any measure."""
    one = numbers_of_episodes(mean_agent(TINY, GeometricLength(0.9), 5), TINY, 200)
    other = numbers_of_episodes(mean_agent(RIVER, GeometricLength(0.9), 5), RIVER, 200, seed=6)
    assert one == other
    assert one != numbers_of_episodes(mean_agent(TINY, GeometricLength(0.9), 6), TINY, 200)


# --- the others -----------------------------------------------------------------------------------


@relaxed
@given(st.integers(1, 50))
def test_fixed_length(length):
    assert (lengths_of(FixedLength(length), 5, np.random.default_rng(0)) == length).all()


def test_fixed_length_in_an_agent():
    numbers = numbers_of_episodes(mean_agent(RIVER, FixedLength(7), 0), RIVER, 30)
    assert numbers == [t // 7 + 1 for t in range(30)]


def test_every_step():
    assert (lengths_of(EveryStep(), 20, np.random.default_rng(0)) == 1).all()
    assert numbers_of_episodes(mean_agent(RIVER, EveryStep(), 0), RIVER, 30) == list(range(1, 31))


def test_deterministic_rules_draw_nothing():
    rng = np.random.default_rng(8)
    before = rng.bit_generator.state
    now = progress()
    for rule in (EveryStep(), FixedLength(3), VisitDoubling()):
        for _ in range(10):
            now.add(0, 1)
            rule.ends(now, rng=rng)
    assert rng.bit_generator.state == before


@relaxed
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 3))
def test_visit_doubling_agrees_with_the_loop(seed, n_states, n_actions):
    """Random visits: the rule looks at the last pair only, the loop at all."""
    rng = np.random.default_rng(seed)
    now = progress((n_states, n_actions))
    rule = VisitDoubling()
    before, visits = (
        np.zeros((n_states, n_actions), dtype=int),
        np.zeros((n_states, n_actions), dtype=int),
    )
    for _ in range(120):
        pair = int(rng.integers(n_states)), int(rng.integers(n_actions))
        now.add(*pair)
        visits[pair] += 1
        expected = online.some_visits_doubled(before, visits)
        assert rule.ends(now, rng=rng) == expected
        if expected:
            now.begin_episode()
            before = visits.copy()


def test_visit_doubling_of_one_pair():
    """1, 2, 4, 8, …: the k-th pseudo-episode has as many steps as all before it."""
    now, lengths = progress((1, 1)), []
    while len(lengths) < 8:
        now.add(0, 0)
        if VisitDoubling().ends(now, rng=np.random.default_rng(0)):
            lengths.append(now.steps_in_episode)
            now.begin_episode()
    assert lengths == [1, 1, 2, 4, 8, 16, 32, 64]


def test_visit_doubling_in_an_agent():
    """Few plans: at most S A (1 + log2 T) of them, and each begins when the loop says so."""
    agent = mean_agent(RIVER, VisitDoubling(), 3)
    env = TabularEnv(RIVER)
    state, _ = env.reset(seed=4)
    before, visits, number = np.zeros((6, 2), dtype=int), np.zeros((6, 2), dtype=int), 1
    for _ in range(500):
        action = agent.act(state)
        assert agent.episode == number
        following, *_ = env.step(action)
        agent.observe(state, action, following)
        visits[state, action] += 1
        if online.some_visits_doubled(before, visits):
            number += 1
            before = visits.copy()
        state = following
    assert 5 < number < 12 * (1 + math.log2(500))


def test_nothing_is_decided_before_the_first_plan_or_after_a_decision():
    """Data observed before the first plan end no pseudo-episode and use no random number."""
    answers = []

    class Noted:
        def ends(self, progress, rng):
            answers.append(progress.steps)
            return True

    agent = mean_agent(RIVER, Noted(), 0)
    agent.observe(0, 0, 0)
    assert answers == []
    agent.act(0)
    agent.observe(0, 1, 1)
    agent.observe(1, 1, 2)
    assert answers == [2]
    assert agent.progress.steps == 3
    agent.act(2)
    assert agent.episode == 2


def test_rules_are_values():
    assert GeometricLength(0.9) == GeometricLength(np.float64(0.9)) != GeometricLength(0.8)
    assert FixedLength(np.int64(3)) == FixedLength(3) != FixedLength(4)
    assert EveryStep() == EveryStep()
    assert VisitDoubling() == VisitDoubling()
    assert type(FixedLength(np.int64(3)).length) is int


@pytest.mark.parametrize("bad", [1.0, 1.5, -0.1, np.nan, np.inf, "0.9", None, True])
def test_bad_continuations_are_refused(bad):
    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"continuation must (lie in \[0, 1\)|be a number in \[0, 1\)); got",
    ):
        GeometricLength(bad)


@pytest.mark.parametrize("bad", [0, -3, 2.0, np.nan, "3", None, True])
def test_bad_lengths_are_refused(bad):
    with pytest.raises(brmdp.InvalidInputError, match="length must be a positive integer; got"):
        FixedLength(bad)


def test_doubling_steps():
    rng = np.random.default_rng(1)
    assert lengths_of(StepDoubling(), 6, rng).tolist() == [1, 1, 2, 4, 8, 16]


def test_growing_lengths():
    """One long row of states, so that no visits double: 2, 4, 6, …; in one pair, visits decide."""
    now, lengths = progress((1000, 1)), []
    for step in range(60):
        now.add(step, 0)
        now.visits_at_start[step] = 5  # as if the pair were well known
        if GrowingLength(2).ends(now, rng=np.random.default_rng(0)):
            lengths.append(now.steps_in_episode)
            now.begin_episode()
    assert lengths == [2, 4, 6, 8, 10, 12, 14]
    now, lengths = progress((1, 1)), []
    for _ in range(64):
        now.add(0, 0)
        if GrowingLength(30).ends(now, rng=np.random.default_rng(0)):
            lengths.append(now.steps_in_episode)
            now.begin_episode()
    assert lengths == [1, 1, 2, 4, 8, 16, 32]


def test_more_rules_are_values():
    assert StepDoubling() == StepDoubling()
    assert GrowingLength() == GrowingLength(1) != GrowingLength(2)
    for bad in (0, -1, 1.5, "2", None, True):
        with pytest.raises(brmdp.InvalidInputError, match="length must be a positive integer"):
            GrowingLength(bad)


@pytest.mark.parametrize("rule", [StepDoubling(), GrowingLength(3)], ids=repr)
def test_posterior_sampling_with_more_rules_survives_a_file(rule, tmp_path):
    belief = brmdp.DirichletBelief.uniform(6, 2)
    agent = agents.continuing_psrl(belief, RIVER.rewards, 0.9, restart=rule, rng=2)
    numbers_of_episodes(agent, RIVER, 37)
    agent.save(tmp_path / "agent.npz")
    twin = agents.Agent.load(tmp_path / "agent.npz")
    assert twin.restart == rule
    first, second = (numbers_of_episodes(one, RIVER, 50, seed=3) for one in (agent, twin))
    assert first == second
    assert first[-1] > first[0]
