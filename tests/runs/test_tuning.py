"""Tuning: the worlds and the luck of a race, who is stopped and when, and what is reported."""

import math
from typing import ClassVar

import numpy as np
import pytest

import brmdp
from brmdp.runs import levels
from brmdp.runs.tuning import _Race, _stages
from brmdp.simulation import draw_world

DISCOUNT = 0.9


class Always:
    """Takes the same action for ever, and notes what it was given."""

    made: ClassVar[list] = []

    def __init__(self, action, belief, rewards, discount, *, rng):
        self.action = action
        Always.made.append((action, belief, rng))

    def act(self, state):
        return self.action

    def observe(self, state, action, next_state):
        pass


def always(action):
    return lambda *given, rng: Always(action, *given, rng=rng)


def problem():
    """Action 1 leads to the state that pays with a higher probability, on average."""
    concentration = np.ones((2, 2, 2))
    concentration[:, 1, 1] = 4.0
    rewards = np.zeros((2, 2, 2))
    rewards[:, :, 1] = 1.0
    return brmdp.DirichletBelief(concentration), rewards


def tuned(candidates, **settings):
    belief, rewards = problem()
    settings = {"worlds": 80, "rng": 3, **settings}
    return brmdp.tune(belief, rewards, DISCOUNT, 30, candidates=candidates, **settings)


@pytest.mark.long
def test_the_better_action_wins_and_the_other_is_stopped_early():
    found = tuned({"zero": always(0), "one": always(1)}, worlds=640)
    assert found.choice == "one"
    zero, one = found.entrants
    assert zero.stopped_by == "one"
    assert zero.worlds == one.worlds < 640  # nobody is left to race against
    assert zero.difference == pytest.approx((one.returns - zero.returns).mean())
    assert 0.0 < zero.low < zero.difference < zero.high
    assert found.unresolved == ()
    assert (one.difference, one.low, one.high) == (0.0, 0.0, 0.0)
    assert "stopped: worse than one" in str(found)


def test_returns_are_those_of_simulations_in_worlds_drawn_from_the_belief():
    belief, rewards = problem()
    found = tuned({"zero": always(0), "one": always(1)}, worlds=5)
    worlds, luck, _ = np.random.default_rng(3).spawn(3)
    for number in range(5):
        drawn = draw_world(belief, rewards, DISCOUNT, rng=worlds)
        seed = int(luck.integers(2**63))
        for action, entrant in enumerate(found.entrants):
            env = brmdp.envs.TabularEnv(drawn)
            env.reset(seed=seed)
            paid = [env.step(action)[1] for _ in range(30)]
            assert entrant.returns[number] == pytest.approx(
                sum(DISCOUNT**t * one for t, one in enumerate(paid))
            )
    # the mean return of an action follows from its row: every state has rows of the same law
    many = tuned({"zero": always(0), "one": always(1)}, worlds=80, confidence=0.999999)
    size = (1.0 - DISCOUNT**30) / (1.0 - DISCOUNT)
    expected = size * np.array([0.5, 0.8])
    for entrant, mean in zip(many.entrants, expected, strict=True):
        error = entrant.returns.std() / math.sqrt(entrant.worlds)
        assert entrant.value == pytest.approx(mean, abs=5.0 * error)


def test_equal_candidates_have_equal_returns_in_every_world():
    found = tuned({"first": always(1), "second": always(1), "other": always(0)})
    first, second, _ = found.entrants
    np.testing.assert_array_equal(first.returns, second.returns)
    assert found.choice == "first"  # of equal ones the first
    assert found.unresolved == ("second",)
    assert "not told apart from the choice: second" in str(found)


def test_candidates_share_belief_and_streams():
    Always.made = []
    tuned({"zero": always(0), "one": always(1)}, worlds=4)
    zeros = [rng for action, _, rng in Always.made if action == 0]
    ones = [rng for action, _, rng in Always.made if action == 1]
    assert zeros == ones
    assert len(set(zeros)) == 4
    assert all(belief.counts().sum() == 0 for _, belief, _ in Always.made)


def test_a_seed_fixes_everything_and_today_is_a_posterior_too():
    belief, rewards = problem()
    belief.observe([0] * 40, [0] * 40, [1] * 40)
    belief.observe([1] * 40, [0] * 40, [1] * 40)
    candidates = {"zero": always(0), "one": always(1)}
    first, second = (
        brmdp.tune(belief, rewards, DISCOUNT, 20, candidates=candidates, worlds=40, start=1, rng=8)
        for _ in range(2)
    )
    assert str(first) == str(second)
    assert first.choice == "zero"  # after 80 good transitions
    prior = problem()[0]
    assert (
        brmdp.tune(
            prior, rewards, DISCOUNT, 20, candidates=candidates, worlds=40, start=1, rng=8
        ).choice
        == "one"
    )


def test_the_choice_can_be_made():
    found = tuned({"zero": always(0), "one": always(1)})
    belief, rewards = problem()
    assert found.make(belief, rewards, DISCOUNT, rng=1).act(0) == 1
    assert found.agent(rng=1).act(0) == 1
    # what it was tuned on: the belief as it was, and no world
    assert (found.discount, found.steps) == (DISCOUNT, 30)
    np.testing.assert_array_equal(found.belief.mean(), belief.mean())
    assert found.belief.counts().sum() == 0
    assert "30 steps, γ = 0.9, in worlds drawn from the belief alone" in str(found)


def test_a_tuned_level_is_the_agent_at_that_level():
    belief, rewards = problem()
    found = brmdp.tune(belief, rewards, DISCOUNT, 10, candidates=levels(0.2, 0.8), worlds=20, rng=1)
    agent = found.agent(rng=5)
    same = found.make(belief, rewards, DISCOUNT, rng=5)
    assert [agent.act(0), agent.act(1)] == [same.act(0), same.act(1)]
    with pytest.raises(brmdp.InvalidInputError, match=r"got 'tuned'.*brmdp\.tune\("):
        brmdp.agents.fixed_quantile(belief, rewards, DISCOUNT, alpha="tuned")


@pytest.mark.long
def test_agents_by_name_are_those_made_by_function():
    belief, rewards = problem()
    agents = brmdp.agents
    by_function = {
        "mean": agents.posterior_mean,
        "AQ": lambda *given, rng: agents.aq_brmdp(*given, delta=2.0, rng=rng),
        "BEB": lambda *given, rng: agents.beb(*given, beta=1.5, rng=rng),
        "falling": lambda *given, rng: agents.Agent(
            *given,
            risk=brmdp.Quantile(0.5),
            schedule=agents.FallingLevel(0.9, 0.5, 0.8),
            restart=agents.EveryStep(),
            rng=list(np.random.default_rng(rng).spawn(2)),
        ),
    }
    level = {"name": "falling-level", "start": 0.9, "end": 0.5, "rate": 0.8}
    by_name = {
        "mean": "posterior-mean",
        "AQ": {"name": "aq-brmdp", "delta": 2.0},
        "BEB": {"name": "beb", "beta": 1.5},
        "falling": {
            "name": "agent",
            "risk": {"name": "quantile", "alpha": 0.5},
            "schedule": level,
            "restart": "every-step",
        },
    }
    given = (belief, rewards, DISCOUNT, 25)
    first = brmdp.tune(*given, candidates=by_function, worlds=12, rng=6)
    second = brmdp.tune(*given, candidates=by_name, worlds=12, rng=6)
    for one, other in zip(first.entrants, second.entrants, strict=True):
        np.testing.assert_array_equal(one.returns, other.returns)
    mixed = {"mean": by_name["mean"], "AQ": by_function["AQ"]}
    third = brmdp.tune(*given, candidates=mixed, worlds=12, rng=6)
    np.testing.assert_array_equal(third.entrants[1].returns, first.entrants[1].returns)


def test_with_halving_the_lower_half_is_set_aside_without_proof():
    chances = np.linspace(0.50, 0.57, 8)  # so close that nobody is stopped

    concentration = np.ones((2, 2, 2))
    rewards = np.zeros((2, 2, 2))
    rewards[:, :, 1] = 1.0
    belief = brmdp.DirichletBelief(concentration)

    class Mixed:
        def __init__(self, chance, rng):
            self.chance, self.rng = chance, np.random.default_rng(rng)

        def act(self, state):
            return int(self.rng.random() < self.chance)

        def observe(self, state, action, next_state):
            pass

    candidates = {
        f"{chance:.2f}": lambda *given, rng, chance=chance: Mixed(chance, rng) for chance in chances
    }
    given = (belief, rewards, DISCOUNT, 10)
    found = brmdp.tune(*given, candidates=candidates, worlds=160, halve_from=20, rng=3)
    tried = sorted(one.worlds for one in found.entrants)
    assert tried == [20, 20, 20, 20, 40, 40, 160, 160]
    assert [one.set_aside for one in found.entrants] == [one.worlds < 160 for one in found.entrants]
    assert not any(one.stopped_by for one in found.entrants)
    # in the first 20 worlds, the half that was set aside had the lower means
    early = {one.name: one.returns[:20].mean() for one in found.entrants}
    gone = [one.name for one in found.entrants if one.worlds == 20]
    assert max(early[name] for name in gone) <= min(early[n] for n in early if n not in gone)
    # no proof: all may be as good as the choice, and the text says what happened
    assert set(found.unresolved) == set(early) - {found.choice}
    assert str(found).count("set aside: in the lower half") == 6
    late = brmdp.tune(*given, candidates=candidates, worlds=160, halve_from=80, rng=3)
    assert sorted(one.worlds for one in late.entrants) == [80] * 4 + [160] * 4
    whole = brmdp.tune(*given, candidates=candidates, worlds=160, rng=3)
    assert not any(one.set_aside for one in whole.entrants)
    for one, other in zip(found.entrants, whole.entrants, strict=True):
        np.testing.assert_array_equal(one.returns, other.returns[: one.worlds])


@pytest.mark.long
def test_a_lower_quantile_prefers_what_is_safe():
    concentration = np.ones((2, 2, 2))
    concentration[:, 0] = [50.0, 50.0]  # an even chance, well known
    concentration[:, 1] = [0.35, 0.45]  # better on average, and mostly all or nothing
    rewards = np.zeros((2, 2, 2))
    rewards[:, :, 1] = 1.0
    given = (brmdp.DirichletBelief(concentration), rewards, DISCOUNT, 30)
    candidates = {"safe": always(0), "risky": always(1)}
    mean = brmdp.tune(*given, candidates=candidates, worlds=1000, rng=1)
    low = brmdp.tune(*given, candidates=candidates, worlds=1000, objective=0.1, rng=1)
    assert (mean.choice, low.choice) == ("risky", "safe")
    risky = low.entrants[1]
    assert risky.value == np.sort(risky.returns)[math.ceil(0.1 * risky.worlds) - 1]
    assert risky.low > 0.0
    assert risky.stopped_by == "safe"
    assert "0.1-quantile" in str(low)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["mean", 0.25])
def test_the_best_is_seldom_stopped(objective):
    """Candidates of nearly equal value, so that any of them may look worse by chance."""
    rng = np.random.default_rng(4)
    wrong = 0
    for _ in range(400):
        race = _Race(["best", "near", "far"], objective, 0.8, 4)
        for _ in range(160):
            common, luck = rng.normal(), rng.normal(size=3)
            race.add(dict(zip(race.returns, common + luck + [0.02, 0.0, -0.02], strict=True)))
            if race.worlds in (20, 40, 80, 160):
                race.stop_losers()
        wrong += "best" not in race.alive
    assert wrong / 400 <= 0.2


@pytest.mark.slow
def test_intervals_of_differences_hold_jointly():
    rng = np.random.default_rng(5)
    truth = {"a": 0.3, "b": 0.0, "c": -0.1}
    missed = 0
    for _ in range(600):
        race = _Race(list(truth), "mean", 0.8, 1)
        for _ in range(40):
            found = rng.normal() + rng.normal(size=3) + list(truth.values())
            race.add(dict(zip(truth, found, strict=True)))
        for name in truth:
            for other in truth:
                _, low, high = race.difference(name, other)
                if not low <= truth[name] - truth[other] <= high:
                    break
            else:
                continue
            missed += 1
            break
    assert missed / 600 <= 0.2 + 3 * math.sqrt(0.2 * 0.8 / 600)


def test_stages_double():
    assert _stages(320) == [20, 40, 80, 160, 320]
    assert _stages(50) == [20, 40, 50]
    assert _stages(7) == [7]


def test_levels_plan_at_every_step():
    made = levels(0.2, 0.9)
    assert list(made) == ["posterior mean", "level 0.2", "level 0.9"]
    belief, rewards = problem()
    agent = made["level 0.9"](belief, rewards, DISCOUNT, rng=1)
    assert agent.schedule.alpha == 0.9
    assert agent.restart == brmdp.agents.EveryStep()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"candidates": {"one": always(1)}}, "candidates must map at least two names"),
        ({"candidates": {"one": always(1), "two": 2}}, r"candidates\['two'\] must be a function"),
        ({"candidates": ["one", "two"]}, "candidates must map at least two names"),
        ({"candidates": {1: always(1), "two": always(1)}}, "candidates must map"),
        ({"candidates": {"a": always(1), "b": "beeb"}}, r"candidates\['b'\]: .*did you mean 'beb'"),
        ({"candidates": {"a": always(1), "b": "beb"}}, r"candidates\['b'\]: beb needs beta"),
        ({"candidates": {"a": always(1), "b": {"beta": 1.0}}}, r"candidates\['b'\] must be"),
        (
            {"candidates": {"a": always(1), "b": {"name": "beb", "bta": 1.0}}},
            r"candidates\['b'\]: .*did you mean 'beta'",
        ),
        (
            {"candidates": {"a": always(1), "b": {"name": "beb", "beta": float("nan")}}},
            r"candidates\['b'\]: beta",
        ),
        (
            {"candidates": {"a": always(1), "b": {"name": "fixed-quantile", "alpha": "tuned"}}},
            r"candidates\['b'\]: alpha must be a number in \(0, 1\); got 'tuned'",
        ),
        ({"halve_from": 0}, "halve_from must be"),
        ({"objective": float("nan")}, "objective"),
        ({"confidence": float("nan")}, "confidence"),
        ({"worlds": 10.5}, "worlds"),
        ({"objective": "median"}, "objective must be 'mean' or a level"),
        ({"objective": 1.0}, "objective must"),
        ({"worlds": 3}, "worlds must be at least 4; got 3"),
        ({"confidence": 1.0}, r"confidence must lie in \(0, 1\); got 1.0"),
        ({"start": 2}, "start"),
    ],
)
def test_bad_settings_are_named(settings, words):
    settings = {"candidates": {"zero": always(0), "one": always(1)}, **settings}
    with pytest.raises(brmdp.InvalidInputError, match=words):
        tuned(**settings)


def test_worlds_are_drawn_only_from_beliefs_about_a_kernel():
    belief, rewards = problem()
    shared = brmdp.DisturbanceBelief.from_function(lambda s, a, w: (s + a + w) % 3, 3, 2, 3)
    for wrong in (shared, brmdp.envs.riverswim(3)):
        with pytest.raises(brmdp.InvalidInputError, match="belief must be one about the kernel"):
            draw_world(wrong, np.zeros((3, 2)), DISCOUNT)
    first, second = (draw_world(belief, rewards, DISCOUNT, rng=5) for _ in range(2))
    np.testing.assert_array_equal(first.kernel(), second.kernel())
    kernels = np.array([draw_world(belief, rewards, 0.9, rng=s).kernel() for s in range(300)])
    np.testing.assert_allclose(kernels.mean(axis=0), belief.mean(), atol=0.08)


@pytest.mark.long
def test_candidates_of_the_library_race():
    belief, rewards = problem()
    found = brmdp.tune(belief, rewards, DISCOUNT, 15, candidates=levels(0.3, 0.7), worlds=6, rng=1)
    assert {one.worlds for one in found.entrants} == {6}
