"""Checks judge the recommended policy, also where logs end, groups hide and effects are small."""

from __future__ import annotations

import numpy as np
import pytest

from brmdp.errors import InvalidInputError
from brmdp.models import Dynamics
from brmdp.models.checks import check_model
from brmdp.models.checks.bench import Bench
from brmdp.models.results import Check
from models.problems import fleet

UNIFORM = Dynamics(prior="uniform")
LAW = [0.3, 0.4, 0.2, 0.1]


def by_name(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks}


# --- the policy that is judged --------------------------------------------------------------------


def test_the_recommended_policy_is_judged() -> None:
    model = fleet([LAW], n=10, units=12, steps=15, rng=np.random.default_rng(0), dynamics=UNIFORM)
    mean, lazy = Bench(model), Bench(model, {None: np.zeros(10, dtype=np.int64)})
    plan = lazy.plans[0]
    np.testing.assert_array_equal(plan.policy, 0)
    assert plan.best == pytest.approx(mean.plans[0].value)
    assert plan.best > plan.value
    kernel = model.plan_belief().mean()[:, 0]
    exact = np.linalg.solve(np.eye(10) - 0.95 * kernel, model.rewards[:, 0])
    assert plan.value == pytest.approx(plan.start @ exact)
    promised = lazy.guarantee(plan)
    assert promised is not None
    assert promised < plan.value < mean.guarantee(mean.plans[0])  # type: ignore[operator]
    checks = by_name(check_model(model, {None: plan.policy}))
    assert "the recommended policy" in checks["log"].consequence
    assert lazy.shown(plan.value) in checks["coverage"].consequence
    # what it loses already by the model is no reason to doubt the model
    kernel = model.plan_belief().mean_entries()
    assert plan.loss(kernel) == pytest.approx(plan.best - plan.value)
    assert "at the mean of the belief" in by_name(check_model(model))["log"].consequence


def test_policies_belong_to_groups() -> None:
    model = fleet([LAW, LAW], n=6, units=6, steps=8, rng=np.random.default_rng(0), dynamics=UNIFORM)
    lazy, eager = np.zeros(6, dtype=np.int64), np.ones(6, dtype=np.int64)
    plans = Bench(model, {"g0": lazy, "g1": eager}).plans
    assert [plan.policy.sum() for plan in plans] == [0, 6]
    with pytest.raises(InvalidInputError, match="one policy for each of 2 groups"):
        Bench(model, {None: lazy})
