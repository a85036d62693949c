"""Where everything ends in some states, shares of time are those before the end."""

import numpy as np
import pandas
import pytest

import brmdp
from brmdp.models import Dynamics
from brmdp.models.checks.bench import Bench
from brmdp.models.checks.prior import check_prior


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    lines = []
    for unit in range(40):
        state, step = "ill", 0
        while state in ("ill", "worse"):
            action = str(rng.choice(["wait", "treat"]))
            lines.append((unit, step, state, action))
            state = str(rng.choice(["ill", "worse", "well", "dead"], p=[0.4, 0.2, 0.2, 0.2]))
            step += 1
        lines.append((unit, step, state, "wait"))
    table = pandas.DataFrame(lines, columns=["unit", "step", "state", "action"])
    log = brmdp.read_log(table, unit="unit", time="step", state="state", action="action")
    return brmdp.Model(
        log,
        costs={"wait": 1.0, "treat": 2.0},
        discount=0.999,
        start="ill",
        ends=("well", "dead"),
        dynamics=Dynamics(prior="uniform", possible="observed"),
    )


def test_shares_of_time_are_those_before_the_end(model):
    left = model.before_end(np.array([0.1, 0.2, 0.3, 0.4]))
    assert left.sum() == pytest.approx(1.0)
    assert not left[model.ends].any()
    ends = model.before_end(np.eye(4)[model.ends])
    np.testing.assert_array_equal(ends, np.eye(4)[model.ends])
    (plan,) = Bench(model).plans
    assert plan.visits.sum() == pytest.approx(1.0)
    assert not plan.visits[model.ends].any()


def test_the_weight_of_the_prior_is_not_hidden_by_the_time_after_the_end(model):
    share = check_prior(Bench(model)).figures["prior_share"]
    counts = model.counts()
    (plan,) = Bench(model).plans
    going = np.setdiff1d(np.arange(4), model.ends)
    prior = 4.0 / (4.0 + counts[going, plan.policy[going]])
    assert share == pytest.approx(float(plan.visits[going] @ prior))


def test_a_decision_states_shares_before_the_end(model):
    (group,) = model.decide(checks=False, levels=(0.1, 0.5), draws=200).groups
    assert group.visits.sum() == pytest.approx(1.0)
    assert not group.visits[model.ends].any()
