"""Nested certificates over a horizon: the level, the bounds, their coverage."""

import numpy as np
import pytest

import brmdp
from brmdp.planning import certify_nested
from brmdp.planning.horizon_guarantees import uncertain_steps
from oracles import finite_horizon as oracle
from oracles.planning import mean_risk
from problems import problem

pytestmark = pytest.mark.filterwarnings("ignore::brmdp.PriorWarning")


@pytest.mark.parametrize(
    ("name", "independent"),
    [("dense-1", True), ("sparse-2", True), ("disturbance-4", False), ("scenarios-5", False)],
)
@pytest.mark.parametrize("discount", [0.8, 1.0])
def test_bounds_are_nested_values_at_the_level_of_the_rule(name, independent, discount):
    case = problem(name)
    horizon, terminal = 3, np.linspace(0.0, 1.0, case.n_states)
    found = certify_nested(
        case.belief, case.rewards, discount, 0.8, horizon=horizon, terminal=terminal, rng=0
    )
    level = brmdp.certified_level(0.2, case.n_states, independent=independent) / horizon
    assert found.level == pytest.approx(level, rel=1e-14)
    # the events of the rule together have at least the stated probability
    n = case.n_states
    together = (1 - horizon * level) ** n if independent else 1 - n * horizon * level
    assert together == pytest.approx(0.8, abs=1e-12)
    best = brmdp.plan(
        case.belief,
        case.rewards,
        discount,
        risk=brmdp.Quantile(level),
        horizon=horizon,
        terminal=terminal,
    )
    assert np.array_equal(found.policy, best.policy)
    assert (found.values <= best.values[0]).all()
    assert np.abs(found.values - best.values[0]).max() <= 4.0 * best.error_bound[0] + 1e-12
    assert found.coverage >= 0.8
    assert found.coverage_samples == 1000
    assert f"a union bound over {horizon} steps" in found.rule
    words = " ".join(str(found).split())
    assert "a union bound over 3 steps" in words
    assert "the true value over 3 steps of this policy" in words
    assert found.horizon == 3


@pytest.mark.parametrize("seed", range(3))
def test_coverage_agrees_with_plain_loops(seed):
    case = problem(f"dense-{seed}")
    found = certify_nested(
        case.belief, case.rewards, 1.0, 0.7, horizon=3, coverage_samples=200, rng=seed
    )
    rng = np.random.default_rng(seed)
    held = 0
    for kernel in case.belief.sample(200, rng=rng):
        values = oracle.backward(
            mean_risk(kernel), case.rewards, 1.0, 3, np.zeros(4), found.policy
        )[0]
        held += bool((values >= found.values).all())
    assert found.coverage == held / 200


def test_a_step_without_doubt_does_not_count():
    belief = problem("dense-1").belief
    paid = np.random.default_rng(0).normal(size=(4, 3))
    zero = np.zeros(4)
    flat = belief.gather_rewards(paid)
    assert uncertain_steps(belief.pattern, flat, zero, 5) == 4
    assert uncertain_steps(belief.pattern, flat, zero + 3.0, 5) == 4
    assert uncertain_steps(belief.pattern, flat, np.arange(4.0), 5) == 5
    by_successor = belief.gather_rewards(problem("dense-1").rewards)
    assert uncertain_steps(belief.pattern, by_successor, zero, 5) == 5
    assert uncertain_steps(belief.pattern, flat, zero, 1) == 1
    found = certify_nested(belief, paid, 1.0, 0.9, horizon=2, rng=0)
    assert found.level == brmdp.certified_level(1.0 - 0.9, 4)
    assert "a union bound over 1 step" in found.rule
    # with one step nothing is uncertain, and the bound is the reward
    sure = certify_nested(belief, paid, 1.0, 0.9, horizon=1, rng=0)
    np.testing.assert_allclose(sure.values, paid.max(axis=1), atol=1e-12)
    assert sure.coverage == 1.0


def test_sharing_a_row_between_steps_is_paid_for():
    """The same row at every step: ignoring the dependence would promise too much."""
    belief = brmdp.DirichletBelief([[[3.0, 2.0]], [[0.0, 1.0]]])
    rewards = np.array([[[1.0, 0.0]], [[0.0, 0.0]]])
    for horizon in (1, 2, 5):
        found = certify_nested(
            belief, rewards, 1.0, 0.5, horizon=horizon, coverage_samples=4000, rng=1
        )
        assert found.coverage >= 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon must be a positive integer"),
        ({"horizon": 3, "terminal": [0.0]}, "terminal must hold one value per state"),
        ({"terminal": [0.0] * 4}, "terminal must be given only together with a horizon"),
        ({"horizon": 3, "discount": 1.5}, r"discount must lie in \[0, 1\]; got 1.5"),
        ({"horizon": 3, "confidence": 1.0}, "confidence must"),
        ({"horizon": 3, "coverage_samples": -1}, "coverage_samples must"),
    ],
)
def test_bad_arguments_are_named(options, message):
    case = problem("dense-1")
    given = {"discount": 1.0 if "horizon" in options else 0.9, "confidence": 0.9} | options
    with pytest.raises(brmdp.InvalidInputError, match=message):
        certify_nested(case.belief, case.rewards, **given)
