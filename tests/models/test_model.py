"""What a model makes of its log, against counting by hand."""

import numpy as np
import pytest

from brmdp.decisions import certify
from brmdp.errors import InvalidInputError
from brmdp.models import Dynamics, Model
from models.simulated import log_of

COSTS = {"a": {"base": 1.0, "per": 0.5}, "b": 3.0}


def a_log(**settings):
    rng = np.random.default_rng(3)
    unit = np.repeat(np.arange(12), 20)
    state, action = rng.integers(4, size=unit.size), rng.integers(2, size=unit.size)
    return log_of(unit, state, action, n_states=4, n_actions=2, **settings)


def a_model(log=None, **settings):
    settings = {"costs": COSTS, "discount": 0.9, **settings}
    return Model(a_log() if log is None else log, **settings)


def test_costs_by_formula_and_their_sign():
    model = a_model()
    assert model.amounts.tolist() == [[1.0, 3.0], [1.5, 3.0], [2.0, 3.0], [2.5, 3.0]]
    assert (model.rewards == -model.amounts).all()
    assert model.word == "cost"
    turned = a_model(costs=None, rewards=model.amounts)
    assert (turned.rewards == model.amounts).all()


def likeliest_prior(done):
    """By the chance of every action in turn, given those before it and those in other states."""
    best, n = (-np.inf, None), len(done)
    usual = (done.sum(axis=0) + 0.25) / (done.sum() + 0.5)
    for width in (np.inf, 16.0, 8.0, 4.0, 2.0, 1.0):
        for weight in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0):
            prior, log_chance = np.zeros((n, 2)), 0.0
            for s in range(n):
                share = 0.1 * usual
                for other in range(n):
                    if other != s:
                        share += np.exp(-0.5 * ((other - s) / width) ** 2) * done[other]
                prior[s] = weight * share / share.sum()
                seen = np.zeros(2)
                for action in np.repeat([0, 1], done[s].astype(int)):
                    log_chance += np.log((prior[s] + seen)[action] / (weight + seen.sum()))
                    seen[action] += 1
            if log_chance > best[0]:
                best = (log_chance, prior)
    return best[1]


def test_counts_practice_and_start_against_loops():
    log = a_log(group=np.repeat([0, 1], 120))
    model = a_model(log, dynamics=Dynamics(draws=40))
    for name, g in (("g0", 0), ("g1", 1)):
        counts, done, seen = np.zeros((4, 2)), np.zeros((4, 2)), np.zeros(4)
        for s, a, k in zip(log.state, log.action, log.group, strict=True):
            counts[s, a] += k == g
        for s, a, k in zip(log.line_state, log.line_action, log.line_group, strict=True):
            done[s, a] += k == g
            seen[s] += k == g
        assert (model.counts(name) == counts).all()
        prior = likeliest_prior(done)
        expected = (done + prior) / (done + prior).sum(axis=1, keepdims=True)
        assert model.practice(name).mean == pytest.approx(expected, rel=1e-4)
        assert model.start(name) == pytest.approx(seen / seen.sum())
    assert model.transitions("g1").state.size == 114


def test_practice_in_rare_states_is_that_of_their_neighbours():
    """A rule that changes with age is not drawn to what is done in all states together."""
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(300), 20)
    chance = np.geomspace(1.0, 1e-3, 30)
    state = rng.choice(30, size=unit.size, p=chance / chance.sum())
    truth = 1.0 / (1.0 + np.exp(-(np.arange(30) - 15.0) / 2.0))
    action = (rng.random(unit.size) < truth[state]).astype(np.int64)
    log = log_of(unit, state, action, n_states=30, n_actions=2)
    found = a_model(log, costs=np.ones((30, 2))).practice().mean[:, 1]
    assert np.abs(found - truth).max() < 0.2
    assert abs(found[29] - truth[29]) < 0.1


def test_practice_that_is_inferred_is_said_to_be():
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(40), 10)
    state = np.minimum(np.tile(np.arange(10), 40), 9)
    action = (rng.random(unit.size) < 0.03).astype(np.int64)
    log = log_of(unit, state, action, n_states=40, n_actions=2)
    costs = np.column_stack([np.arange(40.0), np.full(40, 50.0)])
    model = a_model(log, costs=costs, discount=0.98, reset={"b": "0"}, start=0)
    decision = model.decide(checks=False, levels=[0.2, 0.5], draws=400)
    group = decision.groups[0]
    assert group.practice_inferred > 0.3
    assert "is inferred from other states" in group.practice_caveat
    assert "is inferred from other states" in str(decision).replace("\n", " ")


def test_a_reset_is_known_and_what_contradicts_it_is_listed():
    log = a_log()
    model = a_model(log, reset={"b": "2"})
    wrong = [k for k in range(len(log)) if log.action[k] == 1 and log.next_state[k] != 2]
    assert model.contradictions.tolist() == wrong
    kernel = model.plan_belief().mean()
    assert (kernel[:, 1] == np.eye(4)[2]).all()
    assert model.counts()[:, 1].sum() == (log.action == 1).sum() - len(wrong)
    assert (model.belief().sample(3, rng=0)[:, :, 1] == np.eye(4)[2]).all()


@pytest.mark.parametrize("known", [{"reset": {"b": 2}}, {"ends": ("4",)}])
def test_what_is_known_rules_out_no_shape(known):
    """A reset to a state in the middle, or an end, says nothing about the other rows."""
    states, unit = np.tile([0, 1, 2, 3, 4], 8), np.repeat(range(8), 5)
    log = log_of(unit, states, [0] * 40, n_states=5, n_actions=2)
    model = Model(log, costs=np.ones((5, 2)), discount=0.9, dynamics=Dynamics(draws=400), **known)
    assert [one.note for one in model.learned.evidence.candidates if one.note] == []


def test_ends_absorb_and_pay_nothing():
    log = a_log()
    model = a_model(log, ends=("3",))
    assert (model.plan_belief().mean()[3] == np.eye(4)[3]).all()
    assert (model.rewards[3] == 0.0).all()
    assert model.start()[3] == 0.0
    assert set(np.flatnonzero(log.state == 3)) <= set(model.contradictions.tolist())


def test_a_uniform_prior_is_the_plain_dirichlet():
    log = a_log()
    model = a_model(log, dynamics=Dynamics(prior="uniform", strength=2.0))
    expected = np.full((4, 2, 4), 0.5)
    np.add.at(expected, (log.state, log.action, log.next_state), 1.0)
    assert model.plan_belief().concentration() == pytest.approx(expected)
    assert model.learned is None
    prior = model.prior_belief()
    assert prior.concentration() == pytest.approx(np.full((4, 2, 4), 0.5))


def test_observed_successors_and_reach():
    log = a_log()
    seen = np.zeros((4, 4), dtype=bool)
    seen[log.state, log.next_state] = True
    observed = a_model(log, dynamics=Dynamics(prior="observed"))
    assert ((observed.plan_belief().mean() > 0) == (seen | np.eye(4, dtype=bool))[:, None]).all()
    assert observed.observed_only
    near = a_model(log, dynamics=Dynamics(prior="uniform", reach=1))
    far = [k for k in range(len(log)) if abs(log.next_state[k] - log.state[k]) > 1]
    assert near.contradictions.tolist() == far
    band = abs(np.subtract.outer(np.arange(4), np.arange(4))) <= 1
    assert ((near.plan_belief().mean() > 0) == band[:, None]).all()


def test_groups_are_never_pooled_unless_somebody_says_so():
    log = a_log(group=np.repeat([0, 1], 120))
    assert a_model(log, dynamics=Dynamics(draws=40)).learned.pooling in ("partial", "separate")
    pooled = a_model(log, dynamics=Dynamics(pooling="pooled", draws=40))
    assert (pooled.plan_belief("g0").mean() == pooled.plan_belief("g1").mean()).all()
    apart = a_model(log, dynamics=Dynamics(prior="uniform"))
    assert apart.plan_belief("g0").counts().sum() == apart.counts("g0").sum()


def test_what_proves_is_not_the_belief_that_plans():
    model = a_model()
    assert model.plan_belief().caveat
    with pytest.raises(InvalidInputError, match="too sure"):
        certify(model.plan_belief(), model.rewards, 0.9)
    assert certify(model.belief(), model.rewards, 0.9, policy=[0] * 4, start=0, rng=0).value < 0


def test_unordered_states_have_no_increments():
    model = a_model(a_log(ordered=False), costs={"a": 1.0, "b": 2.0})
    assert "increments" not in [one.name for one in model.learned.evidence.candidates]


def test_actions_are_not_taken_to_be_alike():
    """Where actions differ little, sharing their rows predicts best, and decides nothing."""
    for ordered in (True, False):
        model = a_model(a_log(ordered=ordered), costs={"a": 1.0, "b": 2.0})
        assert "actions" not in model.shapes
    named = a_model(dynamics=Dynamics(shape="actions", draws=40))
    assert named.learned.shape == "actions"


def test_streams_have_numbers_of_their_own():
    model = a_model()
    drawn = {
        float(model.stream(name, k).random()) for name in ("prior", "checks") for k in range(3)
    }
    assert len(drawn) == 6
    assert model.stream("prior").random() == a_model().stream("prior").random()
    assert model.stream("prior").random() != a_model(seed=1).stream("prior").random()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"costs": None}, "exactly one of costs and rewards"),
        ({"rewards": COSTS}, "exactly one of costs and rewards"),
        ({"costs": {"a": 1.0}}, "must name every action"),
        ({"costs": {**COSTS, "c": 1.0}}, "must name every action"),
        ({"costs": {"a": {"based": 1.0}, "b": 1.0}}, "base, per or both"),
        ({"costs": {"a": np.nan, "b": 1.0}}, "finite"),
        ({"costs": np.zeros((3, 2))}, "shape"),
        ({"discount": 1.0}, "discount"),
        ({"confidence": 1.0}, "confidence"),
        ({"level": 0.0}, "level"),
        ({"reset": {"c": 0}}, "reset must name actions"),
        ({"reset": {"a": 9}}, "9"),
        ({"start": "nowhere"}, "nowhere"),
        ({"ends": ("x",)}, "x"),
        ({"admissible": "some"}, "admissible"),
        ({"admissible": np.zeros((4, 2), dtype=bool)}, "admissible"),
        ({"dynamics": Dynamics(pooling="separate")}, "without groups"),
    ],
)
def test_bad_arguments_are_named(settings, words):
    with pytest.raises(InvalidInputError, match=words):
        a_model(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"prior": "flat"},
        {"shape": "round"},
        {"possible": "some"},
        {"pooling": "half"},
        {"strength": 1.0},
        {"prior": "uniform", "strength": -1.0},
        {"prior": "uniform", "shape": "increments"},
        {"prior": "uniform", "pooling": "partial"},
        {"reach": 0},
        {"reach": 1, "possible": "observed"},
        {"draws": 0},
    ],
)
def test_dynamics_are_checked(settings):
    with pytest.raises(InvalidInputError):
        Dynamics(**settings)


def test_states_without_numbers_cannot_cost_per_number():
    with pytest.raises(InvalidInputError, match="needs states with numbers"):
        a_model(a_log(ordered=False))
