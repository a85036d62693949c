"""Level schedules: the paper's adaptive one against a loop, and its properties."""

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import brmdp
from brmdp.agents import (
    AdaptiveLevel,
    FallingLevel,
    FixedLevel,
    Progress,
    RisingLevel,
    VisitLevel,
)
from oracles import online

relaxed = settings(derandomize=True, deadline=None, max_examples=120)


def progress_of(visits, episode, admissible=None):
    """A pseudo-episode that begins with the given visits."""
    visits = np.array(visits, dtype=np.int64)
    mask = np.ones(visits.shape, dtype=bool) if admissible is None else np.array(admissible)
    progress = Progress.initial(mask)
    progress.visits[:] = visits
    progress.episode = episode - 1
    progress.begin_episode()
    return progress


@st.composite
def situations(draw):
    """Visits, an admissible mask (at least one action per state) and a pseudo-episode."""
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    count = st.one_of(st.integers(0, 5), st.integers(0, 10**6))
    visits = np.array(
        draw(st.lists(count, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    )
    visits = visits.reshape(shape)
    mask = np.array(
        draw(st.lists(st.booleans(), min_size=visits.size, max_size=visits.size))
    ).reshape(shape)
    mask[np.arange(shape[0]), draw(st.integers(0, shape[1] - 1))] = True
    return np.where(mask, visits, 0), mask, draw(st.integers(1, 10**6))


deltas = st.floats(1e-9, 1e9)
floors = st.floats(1e-6, 1 - 1e-6)


@relaxed
@given(situations(), deltas, floors)
def test_levels_agree_with_the_loop(situation, delta, floor):
    visits, mask, episode = situation
    levels = AdaptiveLevel(delta, floor).levels(progress_of(visits, episode, mask))
    expected = online.adaptive_levels(visits, episode, delta, floor, mask)
    np.testing.assert_allclose(
        levels, np.minimum(expected, np.nextafter(1.0, 0.0)), rtol=0, atol=1e-14
    )


@pytest.mark.long
@relaxed
@given(situations(), deltas, floors)
def test_levels_are_levels(situation, delta, floor):
    visits, mask, episode = situation
    levels = AdaptiveLevel(delta, floor).levels(progress_of(visits, episode, mask))
    assert levels.shape == visits.shape
    assert (levels >= floor).all()
    assert (levels < 1.0).all()
    brmdp.Quantile(levels)  # accepts them


@pytest.mark.long
@relaxed
@given(situations(), st.floats(1e-3, 50.0), st.floats(0.01, 0.9), st.data())
def test_more_visits_lower_a_level_and_raise_the_others(situation, delta, floor, data):
    visits, mask, episode = situation
    s, a = data.draw(st.sampled_from(np.argwhere(mask).tolist()))
    more = visits.copy()
    more[s, a] += data.draw(st.integers(1, 1000))
    schedule = AdaptiveLevel(delta, floor)
    before = schedule.levels(progress_of(visits, episode, mask))
    after = schedule.levels(progress_of(more, episode, mask))
    assert after[s, a] <= before[s, a] + 1e-12
    others = np.ones(visits.shape, dtype=bool)
    others[s, a] = False
    assert (after[others] >= before[others] - 1e-12).all()
    if more[s, a] > 1 and mask.sum() > 1 and before[s, a] > floor:  # not yet at the floor: strictly
        assume(visits.max() < 10**4)
        assert after[s, a] < before[s, a]


@relaxed
@given(situations(), st.floats(0.1, 20.0), floors)
def test_less_visited_pairs_have_higher_levels(situation, delta, floor):
    visits, mask, episode = situation
    levels = AdaptiveLevel(delta, floor).levels(progress_of(visits, episode, mask)).ravel()
    order = np.argsort(visits.ravel(), kind="stable")
    assert (np.diff(levels[order]) <= 0).all()


@relaxed
@given(situations(), st.floats(0.1, 20.0), floors, st.integers(0, 10**6))
def test_the_mean_is_over_admissible_pairs_only(situation, delta, floor, nonsense):
    visits, mask, episode = situation
    spoilt = np.where(mask, visits, nonsense)
    schedule = AdaptiveLevel(delta, floor)
    levels = schedule.levels(progress_of(visits, episode, mask))
    np.testing.assert_array_equal(
        schedule.levels(progress_of(spoilt, episode, mask))[mask], levels[mask]
    )


def test_the_mean_over_admissible_pairs_by_hand():
    progress = progress_of(
        [[4, 0], [0, 0]], 4, [[True, True], [True, False]]
    )  # N⁺ = 4, 1, 1: mean 2
    g = math.log(8.0) / 2.0
    levels = AdaptiveLevel(0.3, 0.05).levels(progress)
    np.testing.assert_allclose(levels[0], [1 - 0.3 * 2 * g, 1 - 0.3 * g / 2], rtol=1e-15)
    assert levels[1, 0] == pytest.approx(1 - 0.3 * g / 2, rel=1e-15)


@relaxed
@given(st.floats(0.01, 5.0), floors)
def test_the_first_pseudo_episode(delta, floor):
    """With k = 1: no visits, r = 1 and g = ln 2 for all pairs."""
    levels = AdaptiveLevel(delta, floor).levels(progress_of(np.zeros((3, 2)), 1))
    np.testing.assert_allclose(levels, max(1 - delta * math.log(2.0), floor), rtol=1e-15)


@relaxed
@given(situations(), st.floats(1.0, 20.0), st.floats(0.01, 0.5))
def test_levels_rise_to_one_in_the_end(situation, delta, floor):
    """g_k grows until k = 4, then falls and vanishes, so levels rise towards one for fixed r."""
    visits, mask, _ = situation
    schedule = AdaptiveLevel(delta, floor)
    levels = [
        schedule.levels(progress_of(visits, k, mask))
        for k in (1, 2, 3, 4, 5, 10, 100, 10**4, 10**14)
    ]
    for earlier, later in itertools.pairwise(levels[:4]):
        assert (later <= earlier).all()
    for earlier, later in itertools.pairwise(levels[3:]):
        assert (later >= earlier).all()
    assert levels[-1].min() > 0.97


def test_visits_of_the_current_pseudo_episode_do_not_count():
    progress = progress_of([[3, 1], [0, 2]], 5)
    schedule = AdaptiveLevel(1.0, 0.1)
    before = schedule.levels(progress)
    for _ in range(20):
        progress.add(1, 0)
    np.testing.assert_array_equal(schedule.levels(progress), before)
    progress.begin_episode()
    progress.episode -= 1
    assert (schedule.levels(progress) != before).all()


def test_levels_do_not_change_progress():
    progress = progress_of([[3, 0], [0, 2]], 5)
    kept = progress.visits.copy(), progress.visits_at_start.copy()
    AdaptiveLevel(1.0, 0.1).levels(progress)
    np.testing.assert_array_equal(progress.visits, kept[0])
    np.testing.assert_array_equal(progress.visits_at_start, kept[1])


@relaxed
@given(situations(), floors)
def test_a_fixed_level_is_fixed(situation, alpha):
    visits, mask, episode = situation
    assert FixedLevel(alpha).levels(progress_of(visits, episode, mask)) == alpha


def test_schedules_are_values():
    assert AdaptiveLevel(5, 0.2) == AdaptiveLevel(5.0) != AdaptiveLevel(10.0)
    assert FixedLevel(np.float64(0.3)) == FixedLevel(0.3) != FixedLevel(0.1)
    with pytest.raises(AttributeError):
        AdaptiveLevel(5.0).delta = 3.0
    assert eval(repr(AdaptiveLevel(5, 0.25)), {"AdaptiveLevel": AdaptiveLevel}) == AdaptiveLevel(
        5.0, 0.25
    )


@pytest.mark.parametrize("bad", [0, 0.0, -1.0, np.inf, -np.inf, np.nan, "5", None, True, [5.0]])
def test_bad_sensitivities_are_refused(bad):
    with pytest.raises(
        brmdp.InvalidInputError, match="delta must be a positive finite number; got"
    ):
        AdaptiveLevel(bad)


@pytest.mark.parametrize(
    "bad", [0, 1, 0.0, 1.0, -0.2, 1.5, np.nan, np.inf, "0.2", None, True, [0.2]]
)
def test_bad_levels_are_refused(bad):
    allowed = r"must (lie strictly between 0 and 1|be a number strictly between 0 and 1); got"
    with pytest.raises(brmdp.InvalidInputError, match=f"floor {allowed}"):
        AdaptiveLevel(5.0, bad)
    with pytest.raises(brmdp.InvalidInputError, match=f"alpha {allowed}"):
        FixedLevel(bad)


# --- levels that fall or rise with time or visits -------------------------------------------------


def at_step(steps):
    progress = progress_of(np.zeros((2, 2)), 3)
    progress.steps = steps
    return progress


def test_levels_that_fall_with_time():
    """0.5 + 0.4·0.95^t, by default."""
    for t in (0, 1, 2, 40):
        assert FallingLevel().levels(at_step(t)) == pytest.approx(0.5 + 0.4 * 0.95**t, rel=1e-15)
    assert FallingLevel(0.2, 0.8, 0.5).levels(at_step(1)) == pytest.approx(0.5)
    assert FallingLevel().levels(at_step(10**9)) == 0.5
    assert FallingLevel(rate=0.0).levels(at_step(0)) == 0.9


def test_levels_that_rise_with_time():
    assert RisingLevel(0.5).levels(at_step(0)) == 0.5
    assert RisingLevel(0.2).levels(at_step(3)) == pytest.approx(0.95)
    assert RisingLevel(0.2).levels(at_step(10**18)) < 1.0


def test_levels_that_fall_with_what_is_known():
    """Φ(0.5/√(n₀ + n)), also for data from before the agent began."""
    belief = brmdp.DirichletBelief(np.full((2, 2, 2), 1.5), admissible=[[True, False], [True] * 2])
    belief.observe([0] * 6, 0, 1)
    agent = brmdp.Agent(
        belief,
        np.zeros((2, 2)),
        0.9,
        risk=brmdp.Quantile(0.5),
        schedule=VisitLevel(),
        restart=brmdp.agents.EveryStep(),
        rng=0,
    )
    agent.act(0)
    law = statistics.NormalDist()
    expected = [law.cdf(0.5 / math.sqrt(known)) for known in (9.0, 3.0, 3.0)]
    np.testing.assert_allclose(agent.levels[[0, 1, 1], [0, 0, 1]], expected, rtol=1e-14)
    assert agent.levels[0, 1] < 1.0
    agent.observe(0, 0, 0)
    agent.act(0)
    assert agent.levels[0, 0] == pytest.approx(law.cdf(0.5 / math.sqrt(10.0)))
    assert (VisitLevel(1e9).levels(agent.progress.upcoming(agent.belief)) < 1.0).all()


def test_schedules_of_time_and_visits_are_values():
    for kind, other in (
        (FallingLevel, {"rate": 0.9}),
        (VisitLevel, {"scale": 1}),
        (RisingLevel, {"delta": 0.1}),
    ):
        assert kind() == kind() != kind(**other)
        assert eval(repr(kind(**other)), {kind.__name__: kind}) == kind(**other)
    for bad in (0, 1, -0.1, np.nan, "0.5", None, True):
        for make in (lambda b: FallingLevel(b), lambda b: FallingLevel(0.9, b), RisingLevel):
            with pytest.raises(brmdp.InvalidInputError, match=r"(start|end|delta) must"):
                make(bad)
    for bad in (1.0, -0.1, np.nan, "0"):
        with pytest.raises(brmdp.InvalidInputError, match="rate must"):
            FallingLevel(rate=bad)
    for bad in (0, -1, np.inf, "1", None):
        with pytest.raises(brmdp.InvalidInputError, match="scale must be a positive finite"):
            VisitLevel(bad)
