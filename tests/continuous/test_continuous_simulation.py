"""Agents in the continuous lake: what is recorded, and its regret against Monte Carlo."""

import numpy as np
import pytest

import brmdp
from brmdp import InvalidInputError, continuous
from brmdp.continuous import (
    ContinuousFrozenLakeEnv,
    FittedQ,
    LakeBelief,
    LakeModel,
    follow_lake,
    optimal_values,
    policy_values,
    simulate_lake,
)
from oracles import continuous_lake

pytestmark = pytest.mark.long

DISCOUNT, STEPS = 0.8, 60
SMALL = FittedQ(hidden=(8,), states=16, iterations=2, gradient_steps=4, first_rounds=2, draws=48)


def agent(**options):
    return continuous.aq_brmdp(
        LakeBelief(),
        LakeModel(),
        DISCOUNT,
        **({"delta": 10.0, "fitting": SMALL, "rng": 4} | options),
    )


@pytest.fixture(scope="module")
def recorded():
    return simulate_lake(agent(), STEPS, seed=11)


@pytest.fixture(scope="module")
def policies():
    """States, and each plan's first step and policy, of the same interaction."""
    follower, plans = agent(), []
    states = follow_lake(
        follower,
        STEPS,
        seed=11,
        on_episode=lambda t: plans.append((t, follower.policy_preferences(), follower.episode)),
    )
    return states, plans


def test_what_is_recorded_happened(recorded):
    """The environment, driven by hand with the recorded actions, goes the same way."""
    env = ContinuousFrozenLakeEnv()
    state, _ = env.reset(seed=11)
    history = recorded.history
    for t in range(STEPS):
        np.testing.assert_array_equal(recorded.position[t], state)
        x, y = state
        assert history.state[t] == 4 * min(int(y), 3) + min(int(x), 3)
        state, reward, *_ = env.step(int(history.action[t]))
        assert history.reward[t] == reward
    assert history.reward.sum() > 0
    assert len(history) == len(history.true_regret) == STEPS


def test_following_is_the_same_interaction(recorded, policies):
    states, plans = policies
    np.testing.assert_array_equal(states, recorded.position)
    episodes = recorded.history.episodes
    assert [t for t, *_ in plans] == episodes.first_step
    assert [number for *_, number in plans] == list(range(1, len(plans) + 1))
    np.testing.assert_array_equal(
        recorded.history.episode,
        np.repeat(np.arange(1, len(plans) + 1), np.diff([*episodes.first_step, STEPS])),
    )
    assert all(levels.shape == (15, 4) for levels in episodes.levels)
    assert np.isinf(episodes.error_bound).all()
    assert episodes.iterations == [4] + [2] * (len(plans) - 1)
    assert min(episodes.residual) > 0.0


def test_actions_and_regret_are_those_of_the_plan_of_the_step(recorded, policies):
    states, plans = policies
    best = optimal_values(DISCOUNT)
    starts = [t for t, *_ in plans]
    followed = np.searchsorted(starts, np.arange(STEPS), side="right") - 1
    for number, (_, policy, _) in enumerate(plans):
        here = states[followed == number]
        np.testing.assert_array_equal(
            recorded.history.action[followed == number], policy.actions(here)
        )
        regret = best.at(here) - policy_values(policy, DISCOUNT).at(here)
        np.testing.assert_allclose(
            recorded.history.true_regret[followed == number], regret, rtol=0, atol=1e-12
        )
    assert recorded.history.true_regret.max() > 0.02


def test_regret_against_rollouts(recorded, policies):
    """Monte Carlo under the policy of the step, within four σ and the accuracy of its values."""
    _, plans = policies
    best = optimal_values(DISCOUNT)
    worst = int(recorded.history.true_regret.argmax())
    for t in {0, worst}:
        state = recorded.position[t]
        policy = next(policy for first, policy, _ in reversed(plans) if first <= t)
        mean, error = continuous_lake.rollouts(
            policy.actions, state, DISCOUNT, agents=60_000, horizon=50, rng=np.random.default_rng(t)
        )
        regret = float(best.at(state[None])[0]) - mean
        assert recorded.history.true_regret[t] == pytest.approx(
            regret, rel=0, abs=4.0 * error + 1e-3
        )
        assert error < 0.002
    assert recorded.history.true_regret[worst] > 0.02


def test_it_goes_on_from_where_the_agent_stands():
    learner = agent()
    first = simulate_lake(learner, 20, seed=1)
    second = simulate_lake(learner, 15, seed=2)
    assert learner.progress.steps == 35
    assert second.history.episode[0] >= first.history.episode[-1]
    assert second.history.episode[-1] == learner.episode
    np.testing.assert_array_equal(second.position[0], [0.5, 0.5])
    assert len(second.history.true_regret) == 15
    assert np.isfinite(second.history.true_regret).all()


def test_progress_is_told():
    told = []
    tiny = FittedQ(hidden=(4,), states=4, iterations=1, gradient_steps=1, first_rounds=1, draws=8)
    learner = continuous.continuing_psrl(LakeBelief(), LakeModel(), DISCOUNT, fitting=tiny, rng=1)
    simulate_lake(learner, 110, seed=1, on_step=told.append)
    assert told == [100]


@pytest.mark.parametrize(
    "function",
    [simulate_lake, lambda *parts, **more: follow_lake(*parts, **more, on_episode=print)],
)
@pytest.mark.parametrize("steps", [0, -1, 2.5, "many", True])
def test_bad_steps(function, steps):
    with pytest.raises(InvalidInputError, match="steps must be a positive integer; got"):
        function(agent(), steps, seed=1)


def test_agents_of_finite_worlds_are_refused():
    mdp = brmdp.envs.riverswim(4)
    tabular = brmdp.agents.continuing_psrl(
        brmdp.DirichletBelief.uniform(4, 2), mdp.rewards, DISCOUNT
    )
    with pytest.raises(InvalidInputError, match="agent must be a ContinuousAgent; got Agent"):
        simulate_lake(tabular, 5)
