"""BAMCP: against all histories written out, by hand, from files, and with bad input."""

import numpy as np
import pytest

import brmdp
from brmdp.agents import BAMCP
from brmdp.planning.trees import depth_for
from oracles.bayes_adaptive import action_values

DISCOUNT = 0.9


def problem():
    """Two states; action 0 pays 0.45 for sure, action 1 pays 1 in state 1, if it gets there."""
    concentration = np.ones((2, 2, 2))
    concentration[0, 0] = [1.0, 0.0]
    rewards = np.zeros((2, 2, 2))
    rewards[:, 0, :], rewards[:, 1, 1] = 0.45, 1.0
    return concentration, rewards


def agent(**settings):
    concentration, rewards = problem()
    settings = {"simulations": 60, "rng": 5, **settings}
    return BAMCP(brmdp.DirichletBelief(concentration), rewards, DISCOUNT, **settings)


def one_sure_successor():
    """0 → 1 → 0 …; action 1 pays 2 in state 1, everything else nothing."""
    concentration = np.zeros((2, 2, 2))
    concentration[0, :, 1] = concentration[1, :, 0] = 1.0
    rewards = np.zeros((2, 2))
    rewards[1, 1] = 2.0
    return concentration, rewards


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("leaf", [False, True])
def test_values_converge_to_optimal_learning(steps, leaf):
    concentration, rewards = problem()
    guide = brmdp.Mean() if leaf else None
    settings = {"simulations": 60_000, "exploration": 1.0, "rollout": 0, "depth": steps}
    found = agent(guide=guide, **settings).search(0)
    below = None
    if leaf:
        belief = brmdp.DirichletBelief(concentration)
        below = brmdp.plan(belief, rewards, DISCOUNT, risk=brmdp.Mean()).values
    exact = np.array(action_values(concentration, rewards, DISCOUNT, 0, steps, below))
    assert found.action == exact.argmax()
    # the best action gets nearly all simulations; returns spread by less than 1.5
    best = int(exact.argmax())
    error = 4 * 1.5 / np.sqrt(found.visits[best])
    assert found.values[best] == pytest.approx(exact[best], abs=error + 0.01)


def test_without_chance_two_steps_are_exact():
    concentration, rewards = one_sure_successor()
    made = BAMCP(
        brmdp.DirichletBelief(concentration),
        rewards,
        DISCOUNT,
        simulations=400,
        depth=2,
        exploration=0.1,
        rng=1,
    )
    found = made.search(1)
    # by hand: 2 now and nothing in state 0; or nothing at all
    assert found.values.tolist() == [0.0, 2.0]
    assert found.action == 1
    assert made.search(0).values.max() <= DISCOUNT * 2.0
    assert made.act(1) == 1


def test_rollouts_follow_the_guide_below_one_node():
    concentration, rewards = one_sure_successor()
    belief = brmdp.DirichletBelief(concentration)
    # one simulation: one step in the tree, then the greedy plan for three steps, from state 0
    made = BAMCP(
        belief, rewards, DISCOUNT, simulations=1, depth=4, epsilon=0.0, guide=brmdp.Mean(), rng=3
    )
    values = made.search(1).values
    plan = brmdp.plan(belief, rewards, DISCOUNT, risk=brmdp.Mean()).values
    (first,) = np.flatnonzero(np.isfinite(values))
    # state 1 → 0 → 1 (paid 2 on the second rollout step) → 0 and then the plan's value of state 1
    later = DISCOUNT**2 * 2.0 + DISCOUNT**4 * plan[1]
    assert values[first] == pytest.approx(rewards[1, first] + later, rel=1e-7)


def test_every_simulation_counts_and_inadmissible_actions_are_never_taken():
    concentration, rewards = problem()
    concentration[0, 1] = 0.0
    admissible = concentration.sum(axis=2) > 0
    belief = brmdp.DirichletBelief(concentration, admissible=admissible)
    made = BAMCP(belief, rewards, DISCOUNT, simulations=50, rng=1)
    found = made.search(0)
    assert found.visits.tolist() == [50, 0]
    assert found.values[1] == -np.inf
    assert made.act(0) == 0


def test_q_learning_by_hand():
    made = agent()
    made.observe(1, 1, 1)  # pays 1: Q = 1 with rate 1
    made.observe(1, 1, 1)  # target 1 + 0.9·1, rate 2^(−0.77)
    expected = 1.0 + 2.0**-0.77 * 0.9
    assert made.arrays()["q"][1, 1] == pytest.approx(expected)
    assert made.arrays()["visits"].tolist() == [[0, 0], [0, 2]]
    assert made.belief.counts()[1, 1].tolist() == [0, 2]


def test_depth_is_where_little_is_left():
    assert depth_for(0.95, 0.01) == 90
    assert 0.95**90 <= 0.01 < 0.95**89
    assert depth_for(0.0, 0.01) == 1
    assert agent().depth == depth_for(DISCOUNT, 0.01)


GUIDES = [None, brmdp.Mean(), brmdp.Quantile(0.7)]


@pytest.mark.parametrize("guide", GUIDES)
def test_a_saved_agent_goes_on_bit_by_bit(guide, tmp_path):
    made, world = agent(guide=guide), brmdp.World("brmdp/RiverSwim-v0", DISCOUNT)
    state = 0
    rng = np.random.default_rng(2)
    for step in range(12):
        if step == 6:
            made.save(tmp_path / "agent.npz")
            loaded = BAMCP.load(tmp_path / "agent.npz")
            assert repr(loaded) == repr(made)
        action = made.act(state)
        following = int(rng.integers(2)) if (state, action) != (0, 0) else 0
        if step >= 6:
            assert loaded.act(state) == action
            loaded.observe(state, action, following)
        made.observe(state, action, following)
        state = following
    here, there = made.arrays(), loaded.arrays()
    assert here.keys() == there.keys()
    for name in here:
        np.testing.assert_array_equal(here[name], there[name])
    found, again = made.search(0), loaded.search(0)
    np.testing.assert_array_equal(found.values, again.values)
    assert world.n_actions == 2


def test_equal_seeds_give_equal_searches_and_others_differ():
    first, second = agent().search(1), agent().search(1)
    np.testing.assert_array_equal(first.values, second.values)
    assert not np.array_equal(first.values, agent(rng=6).search(1).values)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"simulations": 0}, "simulations must be"),
        ({"exploration": -1.0}, "exploration must be at least 0; got -1.0"),
        ({"exploration": np.nan}, "exploration"),
        ({"epsilon": 1.5}, r"epsilon must lie in \[0, 1\]; got 1.5"),
        ({"depth": 0}, "depth must be"),
        ({"rollout": -1}, "rollout must be"),
        ({"guide": brmdp.Mean}, "guide must be None or a risk measure that draws nothing"),
        (
            {"guide": brmdp.PosteriorSample(rng=1)},
            "guide must be None or a risk measure that draws",
        ),
    ],
)
def test_bad_settings_are_named(settings, words):
    with pytest.raises(brmdp.InvalidInputError, match=words):
        agent(**settings)


def test_other_beliefs_and_states_are_refused():
    shared = brmdp.DisturbanceBelief.from_function(lambda s, a, w: (s + a + w) % 3, 3, 2, 3)
    with pytest.raises(brmdp.InvalidInputError, match=r"brmdp.DirichletBelief.*DisturbanceBelief"):
        BAMCP(shared, np.zeros((3, 2)), DISCOUNT)
    made = agent()
    with pytest.raises(brmdp.InvalidInputError, match="state"):
        made.act(2)
    with pytest.raises(brmdp.ImpossibleTransitionError):
        made.observe(0, 0, 1)
    assert made.belief.counts().sum() == 0


def test_a_damaged_file_is_refused(tmp_path):
    from brmdp.beliefs.storage import save_arrays

    made = agent()
    arrays = made.arrays()
    for name, wrong in (("q", np.zeros((3, 2))), ("numbers", np.array([2.0, 1.0, 0.5]))):
        save_arrays(tmp_path / "agent.npz", "BAMCP", {**arrays, name: wrong})
        with pytest.raises(brmdp.CorruptFileError):
            BAMCP.load(tmp_path / "agent.npz")
    save_arrays(tmp_path / "agent.npz", "BAMCP", {k: v for k, v in arrays.items() if k != "stream"})
    with pytest.raises(brmdp.CorruptFileError):
        BAMCP.load(tmp_path / "agent.npz")
