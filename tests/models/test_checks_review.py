"""Checks judge the recommended policy, also where logs end, groups hide and effects are small."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import chi2_contingency

import brmdp.models.checks
from brmdp.errors import InvalidInputError
from brmdp.logs import Dropped, ReadingReport
from brmdp.models import Dynamics, Model
from brmdp.models.checks import check_model
from brmdp.models.checks.actions import check_actions, difference_of
from brmdp.models.checks.bench import Bench
from brmdp.models.checks.coverage import check_coverage
from brmdp.models.checks.drift import halves
from brmdp.models.checks.prediction import check_prediction, logged, simulated
from brmdp.models.checks.prior import check_prior
from brmdp.models.checks.reading import check_reading
from brmdp.models.checks.units import check_units, simulated_spread
from brmdp.models.checks.walks import Chains, chains_of, followed, walks
from brmdp.models.results import Check
from models.simulated import fleet, log_of

UNIFORM = Dynamics(prior="uniform")
LAW = [0.3, 0.4, 0.2, 0.1]


def by_name(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks}


# --- the policy that is judged --------------------------------------------------------------------


def test_the_recommended_policy_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brmdp.models.checks, "CHECKS", (check_reading, check_coverage))
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


# --- logs in which units come to an end -----------------------------------------------------------


def mortal(*, units: int = 40, steps: int = 20, frailty: float = 0.0, seed: int = 0) -> Model:
    """Units that die, or leave the log after some steps; deaths vary between them by frailty."""
    rng = np.random.default_rng(seed)
    risk = np.array([[0.03, 0.06], [0.15, 0.1]])
    unit, state, action = [], [], []
    for u in range(units):
        factor, s = np.exp(frailty * rng.normal()), int(rng.integers(2))
        for _ in range(int(rng.integers(steps // 2, steps)) + 1):
            a = int(rng.random() < 0.4) if s < 2 else 0
            unit.append(u)
            state.append(s)
            action.append(a)
            if s == 2:
                break
            dies = rng.random() < min(0.9, factor * risk[s, a])
            s = 2 if dies else int(rng.random() < (0.3 if a else 0.5))
    log = log_of(unit, state, action, n_states=3, n_actions=2, ordered=False)
    costs = np.array([[1.0, 1.5], [2.0, 2.5], [0.0, 0.0]])
    return Model(log, costs=costs, discount=0.95, ends=("s002",), dynamics=UNIFORM)


def test_units_are_simulated_until_they_end() -> None:
    bench = Bench(mortal())
    rng = np.random.default_rng(0)
    chains = chains_of(bench, 10**9, rng)
    assert 10 < chains.ended.sum() < 40
    for k, (first, length) in enumerate(zip(chains.first, chains.length, strict=True)):
        following = bench.model.log.next_state[chains.rows[first : first + length]]
        assert (following[:-1] != 2).all()
        assert (following[-1] == 2) == chains.ended[k]
    alive = np.ones((40, chains.first.size), dtype=bool)
    limits = followed(chains, 40, np.random.default_rng(1))
    for step in walks(bench, chains, 40, np.random.default_rng(1)):
        at = step.replicate, step.chain
        assert alive[at].all()
        assert (step.number < limits[at]).all()
        assert (step.state != 2).all()
        alive[at] = bench.pattern.next_states[step.entry] != 2
    found = simulated(bench, chains, np.array([False, True, False]), 40, rng)
    assert (found.times[:, 2] == 0.0).all()
    seen = logged(bench, chains, np.array([False, True, False]))
    assert seen.ended[0] == chains.ended.sum()
    for name in ("amounts", "times", "passage", "ended"):
        assert getattr(found, name).mean() == pytest.approx(getattr(seen, name).mean(), rel=0.3)


def test_how_long_the_dead_would_have_been_followed() -> None:
    length = np.array([3, 5, 5, 8])
    chains = Chains(
        np.arange(21), np.array([0, 3, 8, 13]), length, np.arange(4), np.zeros(4, dtype=int),
        np.array([True, False, False, True]),
    )  # fmt: skip
    found = followed(chains, 4_000, np.random.default_rng(0))
    np.testing.assert_array_equal(found[:, 1:3], 5)
    # two of three who were still there left after 5 steps; nobody left later
    assert set(found[:, 0]) == {5, 16}
    assert (found[:, 0] == 5).mean() == pytest.approx(2 / 3, abs=0.03)
    assert (found[:, 3] == 16).all()


def test_ends_are_no_reason_to_stop() -> None:
    for seed in range(4):
        bench = Bench(mortal(seed=seed))
        for check in (check_units(bench), check_prediction(bench)):
            assert check is not None
            assert check.verdict == "fine"


def test_late_steps_are_not_those_before_an_end() -> None:
    bench = Bench(mortal())
    later, _ = halves(bench)
    _, first, unit = np.unique(
        bench.model.log.unit[bench.free], return_index=True, return_inverse=True
    )
    rank = np.arange(later.size) - first[unit]
    assert rank[later == 0].max() < rank[later == 1].min()


def test_units_that_die_sooner_than_others_are_found() -> None:
    bench = Bench(mortal(units=150, frailty=2.5))
    rng = np.random.default_rng(0)
    found = simulated_spread(bench, chains_of(bench, 10**9, rng), 60, rng)
    assert found is not None
    assert found.chance < 1e-3


def test_a_long_log_of_one_unit_is_cut() -> None:
    model = fleet([LAW], n=6, units=1, steps=50, rng=np.random.default_rng(0), dynamics=UNIFORM)
    bench = Bench(model)
    chains = chains_of(bench, 20, np.random.default_rng(0))
    assert chains.rows.size == chains.length.sum() == 20
    assert logged(bench, chains, np.zeros(6, dtype=bool)).times.sum() == 20


# --- groups ---------------------------------------------------------------------------------------


def test_the_worst_group_decides() -> None:
    """One group of three was hardly seen; an average over units would hide it."""
    rng = np.random.default_rng(0)
    group = np.array([0] * 20 + [1] * 20 + [2])
    unit = np.repeat(np.arange(41), 12)
    keep = (group[unit] < 2) | (np.arange(unit.size) % 12 < 4)
    state, action = rng.integers(4, size=unit.size), rng.integers(2, size=unit.size)
    log = log_of(
        unit[keep], state[keep], action[keep], n_states=4, n_actions=2, group=group[unit][keep]
    )
    dynamics = Dynamics(prior="uniform", pooling="separate")
    costs = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.5], [3.0, 2.0]])
    bench = Bench(Model(log, costs=costs, discount=0.9, dynamics=dynamics))
    coverage, prior = check_coverage(bench), check_prior(bench)
    assert coverage.verdict != "fine"
    assert coverage.group == prior.group == "g2"
    assert coverage.figures["thin_time"] > 0.5  # type: ignore[operator]
    assert "the plan for group g2" in coverage.finding
    assert prior.verdict != "fine"
    assert prior.figures["prior_share"] > 0.5  # type: ignore[operator]
    verdicts = ["look", "stop", "fine", "stop"]
    several = Bench(
        fleet([LAW] * 4, n=4, units=4, steps=5, rng=rng, dynamics=Dynamics(prior="uniform"))
    )
    assert several.worst(verdicts, [9.0, 1.0, 0.0, 2.0]) == ("stop", 3)  # type: ignore[arg-type]
    assert several.worst(["fine"] * 4, [1.0] * 4) == ("fine", None)


# --- actions --------------------------------------------------------------------------------------


def test_actions_that_differ_a_little_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    state, action = rng.integers(6, size=600), rng.integers(2, size=600)
    up = rng.random(600) < np.where(action == 1, 0.65, 0.35)
    following = (state + np.where(up, 1, -1)) % 6
    chance, detectable = difference_of(state, action, following, 1.0 * following, rng)
    assert chance < 1e-6
    assert 0.05 < detectable < 0.3  # the difference is 0.3
    chance, _ = difference_of(state, rng.permutation(action), following, 1.0 * following, rng)
    assert chance > 0.02
    # actions that depend on the state alone cannot be compared
    assert difference_of(state, state % 2, following, 1.0 * following, rng) == (1.0, 1.0)


def test_squares_are_those_of_tables() -> None:
    """Differences in one state with two outcomes: the usual χ² with one degree of freedom."""
    action, following = np.repeat([0, 1], 500), np.tile([0, 1], 500)
    following[:90] = 0
    chance, _ = difference_of(
        np.zeros(1_000, dtype=int), action, following, 1.0 * following, np.random.default_rng(0)
    )
    table = np.array([np.bincount(following[action == a]) for a in range(2)])
    assert chance == pytest.approx(2.0 * chi2_contingency(table, correction=False).pvalue, rel=0.9)


def test_an_action_without_alternatives_says_nothing() -> None:
    """Rounding must not become a sign."""
    rng = np.random.default_rng(0)
    state = rng.integers(7, size=2_000)
    action = np.where(state < 6, rng.integers(2, size=state.size), 2)
    following = rng.integers(7, size=state.size)
    worth = rng.normal(size=7)[following] * 1e3
    with np.errstate(all="raise"):
        chance, _ = difference_of(state, action, following, worth, np.random.default_rng(1))
    assert chance > 0.01


def test_actions_alike_are_compared_with_what_is_done() -> None:
    """With laws alike, every policy is best; the plan itself must not be the one compared with."""
    action = (np.random.default_rng(0).random(400) < 0.2).astype(np.int64)
    state = np.concatenate(([0], action[:-1]))  # an action leads to the state of its number
    log = log_of(np.repeat(np.arange(4), 100), state, action, n_states=2, n_actions=2,
                 ordered=False)  # fmt: skip
    model = Model(log, rewards=[[0.0, 0.0], [1.0, 1.0]], discount=0.9, dynamics=UNIFORM)
    found = check_actions(Bench(model))
    assert found is not None
    assert found.figures["gain_share"] > 0.5  # type: ignore[operator]


def test_lack_of_power_is_no_evidence() -> None:
    rng = np.random.default_rng(0)
    log = log_of(np.repeat(np.arange(8), 8), rng.integers(3, size=64), rng.integers(2, size=64),
                 n_states=3, n_actions=2, ordered=False)  # fmt: skip
    model = Model(log, rewards=rng.random((3, 2)), discount=0.9, dynamics=UNIFORM)
    found = check_actions(Bench(model))
    assert found is not None
    assert found.verdict == "look"
    assert "Only differences between actions" in found.finding
    assert "hardly supports" not in found.consequence


# --- the log --------------------------------------------------------------------------------------


def test_lines_without_an_action_that_end_steps_are_not_lost() -> None:
    whole = mortal()
    dead = int((whole.log.next_state == 2).sum())
    report = ReadingReport(
        whole.log.line_state.size, whole.log.line_state.size - dead, 40, whole.log.state.size,
        (
            Dropped("missing", dead, "no action", column="action"),
            Dropped("last line", 40 - dead, "last lines", line_kept=True),
        ),
    )  # fmt: skip
    log = dataclasses.replace(whole.log, report=report)
    model = Model(log, costs=np.ones((3, 2)), discount=0.95, ends=("s002",), dynamics=UNIFORM)
    found = check_reading(Bench(model))
    assert found.verdict == "fine"
    assert found.figures["lost"] == 0
    assert f"{dead} lines without an action only say where steps led; none lost" in found.finding


def test_steps_larger_than_possible_are_a_stop() -> None:
    rng = np.random.default_rng(0)
    state = np.cumsum(rng.choice([-1, 0, 1], size=600)) % 8
    state[::12] = rng.integers(8, size=50)
    log = log_of(np.zeros(600), state, rng.integers(2, size=600), n_states=8, n_actions=2)
    costs = {"a": {"per": 1.0}, "b": {"base": 1.0, "per": 1.0}}
    model = Model(log, costs=costs, discount=0.9, dynamics=Dynamics(prior="uniform", reach=1))
    assert model.contradictions.size > 60
    found = check_reading(Bench(model))
    assert found.verdict == "stop"
    left, right = found.consequence.split(" instead of ")
    assert left.split()[-1] != right.split(",")[0]
