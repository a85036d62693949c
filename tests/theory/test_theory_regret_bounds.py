"""Regret bounds against multiple precision, all horizons, and the inequalities of the proof."""

import itertools
import math

import numpy as np
import pytest

from brmdp.errors import InvalidInputError
from brmdp.theory import (
    balanced_delta,
    first_informative_horizon,
    regret_bound,
    robust_regret_bound,
)
from oracles import theory_regret_bounds as oracle

SETTINGS = list(
    itertools.product(
        [(1, 1), (6, 2), (16, 4)], [0.0, 0.5, 0.9, 0.999], [0.05, 10.0], [0.01, 0.2, 0.9]
    )
)


@pytest.mark.parametrize("steps", [1, 2, 7, 4_500, 10**9, 10**30])
def test_bounds_agree_with_the_paper(steps):
    for (n_states, n_actions), discount, delta, floor in SETTINGS:
        arguments = (n_states, n_actions, discount, steps, delta, floor)
        found, robust = regret_bound(*arguments), robust_regret_bound(*arguments)
        assert found.total == pytest.approx(float(oracle.bayesian_regret(*arguments)), rel=1e-12)
        assert robust.total == pytest.approx(
            float(oracle.bayesian_robust_regret(*arguments)), rel=1e-12
        )
        for bound in (found, robust):
            assert bound.total == pytest.approx(math.fsum(bound.terms.values()), rel=1e-15)
            assert all(size >= 0.0 for size in bound.terms.values())
            assert bound.trivial == pytest.approx(steps / (1 - discount), rel=1e-15)
            assert bound.value == min(bound.total, bound.trivial)
            assert bound.informative == (bound.total < bound.trivial)
            assert bound.order_horizon == n_states**2 * n_actions
            assert bound.dominant_horizon == pytest.approx(
                n_states * n_actions * max(n_states, (1 - discount) ** -2), rel=1e-12
            )


def test_terms_are_named():
    found = regret_bound(6, 2, 0.9, 4_500, 10.0, 0.2)
    robust = robust_regret_bound(6, 2, 0.9, 4_500, 10.0, 0.2)
    assert set(found.terms) - set(robust.terms) == {"lost optimism"}
    assert set(robust.terms) - set(found.terms) == {"robust deviation"}
    for name in ("robustness floor", "optimistic schedule"):
        assert robust.terms[name] == found.terms[name]
    for name in (
        "posterior concentration",
        "doubled counts",
        "concentration failures",
        "long episodes",
    ):
        assert robust.terms[name] == 2 * found.terms[name]
    assert found.terms["lost optimism"] == pytest.approx(
        2 * 10 * 12 * math.sqrt(4_500) * math.log(9_000) / 0.01
    )
    for bound, name in ((found, "BR(4500)"), (robust, "BR-R(4500)")):
        text = str(bound)
        assert name in text
        assert "not informative" in text
        assert all(term in text for term in bound.terms)
    with pytest.raises(TypeError):
        found.terms["lost optimism"] = 0.0


def test_bounds_grow_with_the_horizon_and_the_problem():
    horizons = [int(x) for x in np.geomspace(1, 1e12, 200)]
    for function in (regret_bound, robust_regret_bound):
        totals = [function(6, 2, 0.9, t, 1.0, 0.2).total for t in horizons]
        assert (np.diff(totals) >= 0).all()
        assert (
            np.diff([function(s, 2, 0.9, 1_000, 1.0, 0.2).total for s in range(1, 20)]) > 0
        ).all()
        assert (
            np.diff([function(4, a, 0.9, 1_000, 1.0, 0.2).total for a in range(1, 20)]) > 0
        ).all()
        assert (
            np.diff([function(4, 2, g, 1_000, 1.0, 0.2).total for g in np.linspace(0.05, 0.99, 30)])
            > 0
        ).all()


def test_growth_tends_to_the_square_root():
    """The slope of log bound against log T is ½ plus what logarithms add.

    That is less and less: m_T² ln T adds at most 2.5/ln u.
    """
    for function in (regret_bound, robust_regret_bound):
        slopes = []
        for exponent in (12, 20, 28):
            low, high = (function(6, 2, 0.9, 10 ** (exponent + d), 0.3, 0.2).total for d in (-1, 1))
            slopes.append(math.log(high / low) / math.log(100.0))
        assert slopes[0] > slopes[1] > slopes[2] > 0.5
        assert slopes[2] - 0.5 < 2.5 / math.log(1e28)


def test_sensitivity_trades_two_terms():
    bounds = [regret_bound(6, 2, 0.9, 10**6, delta, 0.2) for delta in np.geomspace(1e-3, 1e2, 20)]
    assert (np.diff([b.terms["lost optimism"] for b in bounds]) > 0).all()
    assert (np.diff([b.terms["optimistic schedule"] for b in bounds]) < 0).all()
    robust = [
        robust_regret_bound(6, 2, 0.9, 10**6, delta, 0.2).total
        for delta in np.geomspace(1e-3, 1e2, 20)
    ]
    assert (np.diff(robust) < 0).all(), "only the schedule's term depends on delta"


def test_floor_near_the_ends_costs():
    floors = [0.01, 0.2, 0.5, 0.9, 0.999]
    assert (np.diff([regret_bound(6, 2, 0.9, 10**6, 1.0, f).total for f in floors]) > 0).all()
    robust = [robust_regret_bound(6, 2, 0.9, 10**6, 1.0, f).total for f in (0.5, 0.1, 1e-3, 1e-9)]
    assert (np.diff(robust) > 0).all()
    mirrored = (robust_regret_bound(6, 2, 0.9, 10**6, 1.0, f).total for f in (0.1, 0.9))
    assert next(mirrored) == pytest.approx(next(mirrored), rel=1e-12)


def test_balanced_delta():
    assert balanced_delta(6, 2) == pytest.approx(1 / math.sqrt(12), rel=1e-15)
    # lost optimism then grows like √(SA): by √3 from 12 to 36 pairs
    sizes = [
        regret_bound(s, 2, 0.9, 10**6, balanced_delta(s, 2), 0.2).terms["lost optimism"]
        for s in (6, 18)
    ]
    assert sizes[1] / sizes[0] == pytest.approx(math.sqrt(3), rel=1e-12)


def test_rewards_that_depend_on_the_next_state_cost_the_factor():
    same = np.random.default_rng(0).random((6, 2))
    wide = np.repeat(same[:, :, None], 6, axis=2)
    paper = regret_bound(6, 2, 0.8, 4_500, 10.0, 0.2)
    for rewards in (same, wide):
        assert regret_bound(6, 2, 0.8, 4_500, 10.0, 0.2, rewards=rewards).total == paper.total
    wide[2, 1, 3] = 0.0
    found = regret_bound(6, 2, 0.8, 4_500, 10.0, 0.2, rewards=wide)
    for name, size in paper.terms.items():
        factor = 1.0 if name in ("concentration failures", "lost optimism") else 1 / 0.8
        assert found.terms[name] == pytest.approx(factor * size, rel=1e-12)


# --- the first horizon ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "most"),
    [
        ((1, 1, 0.0, 0.01, 0.2), 50),
        ((2, 2, 0.0, 0.3, 0.2), 5_000),
        ((1, 1, 0.01, 0.01, 0.2), 5_000),
        ((1, 1, 0.05, 0.01, 0.2), 5_000),
        ((2, 1, 0.05, 0.2, 0.5), 50_000),
        ((2, 1, 0.2, 0.1, 0.2), 200_000),
        ((3, 2, 0.1, 0.2, 0.2), 200_000),
    ],
)
def test_first_informative_horizon_against_trying_all(setting, most):
    assert first_informative_horizon(*setting) == oracle.informative_horizons(*setting, most)[0]


def test_first_informative_horizon_where_the_bound_jumps():
    """Just after a jump of m the bound may say nothing again; the first horizon comes before."""
    interrupted = 0
    for discount in np.linspace(0.02, 0.2, 40):
        setting = (1, 1, float(discount), 0.05, 0.2)
        horizons = oracle.informative_horizons(*setting, 60_000)
        assert first_informative_horizon(*setting) == horizons[0]
        interrupted += bool((np.diff(horizons) > 1).any())
    assert interrupted > 0


def test_first_informative_horizon_before_the_jump_of_a_logarithm():
    """Where m passes 2²⁶ the bound is uninformative again; later horizons are not the first."""
    setting = (6, 2, 1 - 1.2035495280493974e-06)
    first = first_informative_horizon(*setting, balanced_delta(6, 2), 0.2)

    def informative(steps):
        return oracle.bayesian_regret(*setting, steps, balanced_delta(6, 2), 0.2) < steps / (
            1 - setting[2]
        )

    verdicts = [
        informative(int(first * x))
        for x in (0.999, 1 - 1e-8, 1 + 1e-8, 1.00004, 1.0002, 1.0004, 1.001)
    ]
    assert verdicts == [False, False, True, True, False, True, True]


@pytest.mark.parametrize("benchmark", ["true", "robust"])
@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99, 0.99999])
def test_first_informative_horizon_is_a_crossing(benchmark, discount):
    setting = (6, 2, discount)
    function = regret_bound if benchmark == "true" else robust_regret_bound
    for delta in (balanced_delta(6, 2), 10.0):
        first = first_informative_horizon(*setting, delta, 0.2, benchmark=benchmark)
        assert function(*setting, first, delta, 0.2).informative
        earlier = {first - 1, *(int(first * x) for x in np.geomspace(1e-6, 0.999, 400))}
        assert not any(function(*setting, t, delta, 0.2).informative for t in earlier if t >= 1)
        wide = np.zeros((6, 2, 6))
        wide[0, 0, 0] = 1.0
        later = first_informative_horizon(*setting, delta, 0.2, benchmark=benchmark, rewards=wide)
        assert later > first


def test_bounds_that_never_say_anything():
    assert first_informative_horizon(10**8, 10**6, 0.9999999, 1e3, 0.2) is None


@pytest.mark.parametrize("delta", [5e-324, 1e-308, 1e-100, 1e100])
@pytest.mark.parametrize("steps", [1, 10**30])
def test_extreme_sensitivities_do_not_overflow(delta, steps):
    for function, wanted in (
        (regret_bound, oracle.bayesian_regret),
        (robust_regret_bound, oracle.bayesian_robust_regret),
    ):
        found = function(5, 2, 0.9, steps, delta, 0.2).total
        assert math.isfinite(found)
        assert found == pytest.approx(float(wanted(5, 2, 0.9, steps, delta, 0.2)), rel=1e-12)


# --- the proof ------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.05, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("steps", [1, 100, 10**6])
def test_long_episodes_are_rare(gamma, steps):
    *_, fraktur_t, _, _ = oracle.constants(1, 1, gamma, steps, 1)
    assert 0 < oracle.long_episode_sum(gamma, steps) <= fraktur_t


@pytest.mark.parametrize(("n_states", "n_actions"), [(1, 1), (2, 2), (4, 3)])
@pytest.mark.parametrize("delta", [0.05, 10.0])
def test_sums_along_a_trajectory_obey_the_proof(n_states, n_actions, delta):
    """The three inequalities behind the first four terms.

    Visits are even, uneven, or to one pair only.
    """
    gamma, steps, n_pairs = 0.9, 3_000, n_states * n_actions
    _, m, _, extended, spread = (
        float(x) for x in oracle.constants(n_states, n_actions, gamma, steps, delta)
    )
    rng = np.random.default_rng((n_states, n_actions))
    for weights in (np.ones(n_pairs), 0.3 ** np.arange(n_pairs), np.eye(n_pairs)[0]):
        lengths = []
        while sum(lengths) < steps:
            lengths.append(int(rng.geometric(1 - gamma)))
        visits = rng.choice(n_pairs, size=sum(lengths), p=weights / weights.sum()).tolist()
        plain, weighted, doubled = oracle.proof_sums(visits, lengths, n_states, n_pairs, m, spread)
        assert 0 < plain <= math.sqrt(8 * n_pairs * extended)
        with_prior = extended + n_states * n_pairs
        assert weighted <= math.sqrt(
            8 * n_pairs * with_prior * (math.log1p(n_pairs * spread / with_prior) + 2)
        )
        assert doubled <= n_pairs * math.ceil(math.log2(m))
    assert weighted > 0


# --- bad input ------------------------------------------------------------------------------------


def test_bad_input():
    def bound(n_states=3, n_actions=2, discount=0.9, steps=100, delta=1.0, floor=0.2, **options):
        return regret_bound(n_states, n_actions, discount, steps, delta, floor, **options)

    outside = np.zeros((3, 2))
    outside[1, 1] = 1.5
    cases = {
        "n_states": lambda: bound(n_states=0),
        "n_actions": lambda: bound(n_actions=2.0),
        "discount": lambda: bound(discount=1.0),
        "steps must be a positive integer": lambda: bound(steps=0),
        "steps must be at most": lambda: bound(steps=10**31),
        "delta must be a positive": lambda: bound(delta=0.0),
        r"delta must be at most 1e\+100; got 1e\+308": lambda: bound(delta=1e308),
        "n_states²·n_actions must be at most": lambda: bound(n_states=10**200),
        "floor": lambda: bound(floor=1.0),
        r"rewards must have shape \(3, 2\)": lambda: bound(rewards=np.zeros((2, 3))),
        r"rewards must lie in \[0, 1\] .* got 1\.5 at \(1, 1\)": lambda: bound(rewards=outside),
        "rewards must be finite": lambda: bound(rewards=np.full((3, 2), np.nan)),
        "benchmark": lambda: first_informative_horizon(3, 2, 0.9, 1.0, 0.2, benchmark="both"),
    }
    for words, call in cases.items():
        with pytest.raises(InvalidInputError, match=words):
            call()
    with pytest.raises(InvalidInputError, match="n_states"):
        balanced_delta(-1, 2)
