"""The properties behind every certificate: monotone, translation invariant, a γ-contraction.

Also the nested value.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import brmdp
from oracles import dirichlet_functional, planning
from problems import MEASURES, problem

relaxed = settings(derandomize=True, deadline=None, max_examples=120)

KINDS = st.sampled_from(
    [
        *(
            f"{kind}-{seed}"
            for kind in ("dense", "sparse", "inadmissible", "disturbance", "scenarios")
            for seed in (1, 2)
        )
    ]
)
NAMES = st.sampled_from(sorted(MEASURES))


def vectors(n, size=10.0):
    return arrays(float, n, elements=st.floats(-size, size, allow_nan=False, width=32))


@st.composite
def beliefs(draw):
    """Dirichlet rows of any shape, heavy and light, with structural zeros; rewards; a discount."""
    n, k = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    exponents = draw(arrays(float, (n, k, n), elements=st.floats(-1.5, 3.0)))
    phi = 10**exponents
    zeros = draw(arrays(bool, (n, k, n), elements=st.booleans()))
    phi[zeros] = 0.0
    phi[..., 0] = np.where(phi.sum(axis=-1) == 0, 1.0, phi[..., 0])
    rewards = draw(arrays(float, (n, k, n), elements=st.floats(-5, 5, width=32)))
    discount = draw(st.sampled_from([0.0, 0.3, 0.9, 0.99]))
    return brmdp.DirichletBelief(phi), rewards, discount


def measures(shape, draw):
    level = draw(st.floats(0.001, 0.999))
    return draw(
        st.sampled_from(
            [
                brmdp.Mean(),
                brmdp.Quantile(level),
                brmdp.Quantile(np.linspace(level, 0.5, shape[0] * shape[1]).reshape(shape)),
                brmdp.CVaR(level),
            ]
        )
    )


def operators(belief, rewards, discount, risk, values):
    """TV, and T^π V for the first admissible action of every state."""
    q_values = brmdp.backup(belief, rewards, discount, values, risk=risk).q_values
    first = belief.pattern.admissible.argmax(axis=1)
    return q_values.max(axis=1), q_values[np.arange(len(first)), first]


def slack(*arrays_):
    """What rounding, and the accuracy of 1e-9 in the tail probability, may add."""
    return 1e-8 * (1 + max(np.abs(a).max() for a in arrays_))


@pytest.mark.long
@relaxed
@given(st.data(), beliefs())
def test_monotone(data, case):
    belief, rewards, _ = case
    n = belief.n_states
    risk = measures((n, belief.n_actions), data.draw)
    low = data.draw(vectors(n))
    high = low + np.abs(data.draw(vectors(n)))
    for below, above in zip(operators(*case, risk, low), operators(*case, risk, high), strict=True):
        assert (below <= above + slack(rewards, high, low)).all()


@pytest.mark.long
@relaxed
@given(st.data(), beliefs(), st.floats(-50, 50))
def test_translation(data, case, shift):
    belief, rewards, discount = case
    n = belief.n_states
    risk = measures((n, belief.n_actions), data.draw)
    values = data.draw(vectors(n))
    for here, there in zip(
        operators(*case, risk, values), operators(*case, risk, values + shift), strict=True
    ):
        np.testing.assert_allclose(
            there, here + discount * shift, rtol=0, atol=slack(rewards, values, np.array(shift))
        )


@pytest.mark.long
@relaxed
@given(st.data(), beliefs())
def test_contraction(data, case):
    belief, rewards, discount = case
    n = belief.n_states
    risk = measures((n, belief.n_actions), data.draw)
    first, second = data.draw(vectors(n)), data.draw(vectors(n))
    distance = np.abs(first - second).max()
    for one, other in zip(
        operators(*case, risk, first), operators(*case, risk, second), strict=True
    ):
        assert np.abs(one - other).max() <= discount * distance + slack(rewards, first, second)


@pytest.mark.long
@relaxed
@given(st.data(), KINDS, NAMES)
def test_contraction_for_every_belief_and_measure(data, kind, name):
    """Monotone, translation invariant and a contraction, also for scenarios and fixed draws."""
    case = problem(kind)
    n = case.n_states
    low, size = data.draw(vectors(n)), np.abs(data.draw(vectors(n)))
    shift = data.draw(st.floats(-20, 20))

    def backup(values):
        return case.backup(MEASURES[name](case.shape), values)[case.admissible]

    here, above, shifted = backup(low), backup(low + size), backup(low + shift)
    tiny = slack(case.rewards, low, size)
    assert (above - here >= -tiny).all()
    assert (above - here <= case.discount * size.max() + tiny).all()
    np.testing.assert_allclose(shifted, here + case.discount * shift, rtol=0, atol=tiny)


@pytest.mark.long
@relaxed
@given(st.data(), beliefs())
def test_quantile_increases_with_the_level_and_bounds_cvar(data, case):
    belief, rewards, discount = case
    values = data.draw(vectors(belief.n_states))
    low, high = sorted(data.draw(st.tuples(st.floats(0.001, 0.999), st.floats(0.001, 0.999))))

    def q_values(risk):
        return brmdp.backup(belief, rewards, discount, values, risk=risk).q_values

    tiny = slack(rewards, values)
    quantile, cvar = q_values(brmdp.Quantile(low)), q_values(brmdp.CVaR(low))
    assert (quantile <= q_values(brmdp.Quantile(high)) + tiny).all()
    assert (cvar <= q_values(brmdp.CVaR(high)) + tiny).all()
    assert (cvar <= quantile + tiny).all()
    assert (cvar <= q_values(brmdp.Mean()) + tiny).all()


@relaxed
@given(st.data(), KINDS, st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_order_of_measures_for_every_belief(data, kind, first, second):
    case = problem(kind)
    values = data.draw(vectors(case.n_states))
    low, high = sorted((first, second))
    tiny = slack(case.rewards, values)
    quantile, cvar = case.backup(brmdp.Quantile(low), values), case.backup(brmdp.CVaR(low), values)
    assert (quantile <= case.backup(brmdp.Quantile(high), values) + tiny).all()
    assert (cvar <= case.backup(brmdp.CVaR(high), values) + tiny).all()
    assert (cvar <= quantile + tiny).all()
    assert (cvar <= case.backup(brmdp.Mean(), values) + tiny).all()


@relaxed
@given(st.data(), beliefs())
def test_between_the_worst_and_the_best_successor(data, case):
    belief, rewards, discount = case
    n = belief.n_states
    risk = measures((n, belief.n_actions), data.draw)
    values = data.draw(vectors(n))
    possible = belief.concentration() > 0
    targets = rewards + discount * values
    got = brmdp.backup(belief, rewards, discount, values, risk=risk).q_values
    tiny = 1e-12 * (1 + np.abs(targets).max())
    assert (got >= np.where(possible, targets, np.inf).min(axis=2) - tiny).all()
    assert (got <= np.where(possible, targets, -np.inf).max(axis=2) + tiny).all()


@pytest.mark.long
@relaxed
@given(st.data(), beliefs())
def test_plans_are_fixed_points_and_inherit_the_order(data, case):
    """Every belief has a finite, certified answer; V* grows with rewards and with the level."""
    belief, rewards, discount = case
    n = belief.n_states
    risk = measures((n, belief.n_actions), data.draw)
    tolerance = 1e-5 * (1 + np.abs(rewards).max()) / (1 - discount)
    got = brmdp.plan(belief, rewards, discount, risk=risk, tolerance=tolerance)
    assert got.status == "converged"
    best, _ = operators(*case, risk, got.values)
    assert np.abs(best - got.values).max() <= (1 + discount) * (
        got.error_bound + slack(got.values, rewards)
    )
    more = brmdp.plan(belief, rewards + 1.0, discount, risk=risk, tolerance=tolerance)
    np.testing.assert_allclose(
        more.values, got.values + 1 / (1 - discount), rtol=0, atol=2.001 * tolerance
    )


# --- the nested representation --------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("policy", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_nested_value_converges_to_the_evaluation(policy):
    """The paper's eq. (nested V), unrolled stage by stage, converges at the rate γ^depth.

    The quantile is that of a Beta law, by bisection.
    """
    rng = np.random.default_rng(3)
    phi = rng.uniform(0.5, 8.0, (2, 2, 2))
    rewards, gamma = rng.random((2, 2, 2)), 0.5
    levels = np.array([[0.1, 0.8], [0.35, 0.6]])
    tails = dirichlet_functional.merged(dirichlet_functional.beta_tails)
    risk = planning.dirichlet_quantile_risk(tails, phi, levels)
    belief = brmdp.DirichletBelief(phi)
    got = brmdp.evaluate_under_belief(
        belief, rewards, gamma, policy, risk=brmdp.Quantile(levels), tolerance=1e-11
    )
    reach = rewards.max() / (1 - gamma)
    previous = np.inf
    for depth in range(1, 7):
        nested = [
            planning.nested_value(risk, rewards, gamma, np.array(policy), s, depth)
            for s in range(2)
        ]
        distance = np.abs(got.values - nested).max()
        assert distance <= gamma**depth * reach + 1e-10
        assert distance <= gamma * previous + 1e-10
        previous = distance
    assert previous > gamma**7 * rewards.min(), "otherwise the horizon has not been felt"


@pytest.mark.slow
def test_nested_value_to_six_digits():
    rng = np.random.default_rng(4)
    phi, rewards, gamma = rng.uniform(0.5, 8.0, (2, 1, 2)), rng.random((2, 1, 2)), 0.2
    tails = dirichlet_functional.merged(dirichlet_functional.beta_tails)
    risk = planning.dirichlet_quantile_risk(tails, phi, 0.2)
    got = brmdp.evaluate_under_belief(
        brmdp.DirichletBelief(phi),
        rewards,
        gamma,
        (0, 0),
        risk=brmdp.Quantile(0.2),
        tolerance=1e-11,
    )
    nested = [
        planning.nested_value(risk, rewards, gamma, np.zeros(2, dtype=int), s, 9) for s in range(2)
    ]
    np.testing.assert_allclose(
        got.values, nested, rtol=0, atol=gamma**9 * rewards.max() / (1 - gamma) + 1e-10
    )
