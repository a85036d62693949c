"""Every measure gives a value and a risk-adjusted row.

Scenarios behave at their atoms as the paper's propositions say.
"""

import numpy as np
import pytest

import brmdp
from brmdp.risk import ATOM_TOLERANCE
from foreign import Jittered
from oracles import dirichlet_functional, planning
from problems import MEASURES, RANDOM, level_array, measure, problem

KINDS = [f"{kind}-{seed}" for kind in RANDOM for seed in (1, 2)]


def values_of(case, seed=5):
    return np.random.default_rng(seed).normal(size=case.n_states)


# --- a value and a row, for every measure and belief ----------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MEASURES)
def test_row_is_a_probability_vector_and_the_gradient(kind, name):
    case = problem(kind)
    rng = np.random.default_rng(3)
    values, step = values_of(case), 1e-5

    def backup(v):
        return brmdp.backup(
            case.belief, case.rewards, case.discount, v, risk=measure(name, case.shape)
        )

    here = backup(values)
    assert here.q_values.shape == case.shape
    assert here.kernel.shape == (*case.shape, case.n_states)
    mask = case.admissible
    assert (here.q_values[~mask] == -np.inf).all()
    assert (here.kernel[~mask] == 0).all()
    assert np.isfinite(here.q_values[mask]).all()
    assert (here.kernel[mask] >= 0).all()
    np.testing.assert_allclose(here.kernel[mask].sum(axis=1), 1.0, rtol=0, atol=1e-12)
    for _ in range(3):
        direction = rng.normal(size=case.n_states)
        ahead, behind = backup(values + step * direction), backup(values - step * direction)
        slope = (ahead.q_values[mask] - behind.q_values[mask]) / (2 * step)
        np.testing.assert_allclose(
            slope, case.discount * (here.kernel[mask] @ direction), rtol=0, atol=1e-7
        )


@pytest.mark.parametrize("kind", [k for k in KINDS if not k.startswith("disturbance")])
@pytest.mark.parametrize("name", MEASURES)
def test_row_leaves_out_what_is_impossible(kind, name):
    case = problem(kind)
    row = brmdp.backup(
        case.belief, case.rewards, case.discount, values_of(case), risk=measure(name, case.shape)
    ).kernel
    assert (row[case.belief.mean() == 0] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_mean_is_the_posterior_mean(kind):
    case = problem(kind)
    got = brmdp.backup(case.belief, case.rewards, case.discount, values_of(case), risk=brmdp.Mean())
    wanted = np.einsum(
        "sat,sat->sa", case.belief.mean(), case.rewards + case.discount * values_of(case)
    )
    np.testing.assert_allclose(
        got.q_values[case.admissible], wanted[case.admissible], rtol=1e-13, atol=1e-14
    )
    np.testing.assert_allclose(got.kernel, case.belief.mean(), rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_cvar_at_one_is_the_mean(kind):
    case = problem(kind)
    one, mean = (
        brmdp.backup(case.belief, case.rewards, case.discount, values_of(case), risk=risk)
        for risk in (brmdp.CVaR(1.0), brmdp.Mean())
    )
    np.testing.assert_allclose(one.q_values, mean.q_values, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.kernel, mean.kernel, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["mean", "cvar", "cvar-array", "posterior-sample", "sampled-quantile"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_positively_homogeneous_measures_are_their_row_applied(kind, name):
    """For these measures the value is exactly w·row, not only to first order."""
    case = problem(kind)
    values = values_of(case)
    got = brmdp.backup(
        case.belief, case.rewards, case.discount, values, risk=measure(name, case.shape)
    )
    wanted = np.einsum("sat,sat->sa", got.kernel, case.rewards + case.discount * values)
    np.testing.assert_allclose(
        got.q_values[case.admissible], wanted[case.admissible], rtol=0, atol=1e-11
    )


# --- Dirichlet rows against the oracle's quantile -------------------------------------------------


def oracle_tails(phi, values, z):
    return dirichlet_functional.ray_tails(phi, values, z)[:2]


@pytest.mark.parametrize("kind", ["dense-1", "sparse-1"])
def test_levels_are_taken_pair_by_pair(kind):
    """A quantile with a level for every pair, against bisection on another CDF."""
    case = problem(kind)
    levels, values = level_array(case.shape), values_of(case)
    got = brmdp.backup(
        case.belief, case.rewards, case.discount, values, risk=brmdp.Quantile(levels)
    ).q_values
    risk = planning.dirichlet_quantile_risk(oracle_tails, case.belief.concentration(), levels)
    for s, a in [(0, 0), (1, 1), (2, 0), (3, 1)]:
        wanted = risk(s, a, case.rewards[s, a] + case.discount * values)
        assert got[s, a] == pytest.approx(wanted, rel=0, abs=1e-9)


def test_disturbance_quantile_uses_the_shared_concentrations():
    case = problem("disturbance-1")
    levels, values = level_array(case.shape), values_of(case)
    got = brmdp.backup(
        case.belief, case.rewards, case.discount, values, risk=brmdp.Quantile(levels)
    ).q_values
    for s, a in [(0, 0), (1, 1), (4, 1)]:
        by_state = case.rewards[s, a] + case.discount * values
        targets = by_state[case.belief.outcomes[s, a]]
        wanted = planning.bisected_quantile(
            lambda z, w=targets: oracle_tails(case.belief.concentration(), w, z),
            targets.min(),
            targets.max(),
            levels[s, a],
        )
        assert got[s, a] == pytest.approx(wanted, rel=0, abs=1e-9)


def test_disturbance_rewards_by_disturbance():
    rng = np.random.default_rng(8)
    outcomes = rng.integers(0, 3, (3, 2, 4))
    belief = brmdp.DisturbanceBelief(outcomes, [1.0, 2.0, 0.5, 3.0])
    rewards, values = rng.normal(size=(3, 2, 4)), rng.normal(size=3)
    risk = brmdp.Quantile(0.25)
    got = brmdp.backup(belief, brmdp.DisturbanceRewards(rewards), 0.9, values, risk=risk).q_values
    wanted = brmdp.dirichlet.quantile(
        belief.concentration(), rewards + 0.9 * values[outcomes], 0.25
    )
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)


def test_scalar_and_array_levels_agree():
    case = problem("dense-1")
    for kind in (brmdp.Quantile, brmdp.CVaR):
        scalar, array = (
            brmdp.backup(case.belief, case.rewards, 0.8, values_of(case), risk=kind(level))
            for level in (0.2, np.full(case.shape, 0.2))
        )
        np.testing.assert_array_equal(scalar.q_values, array.q_values)
        np.testing.assert_array_equal(scalar.kernel, array.kernel)


def test_the_level_array_is_copied():
    case = problem("dense-1")
    levels = np.full(case.shape, 0.2)
    risk = brmdp.Quantile(levels)
    before = case.backup(risk, values_of(case))
    levels[:] = 0.9
    np.testing.assert_array_equal(case.backup(risk, values_of(case)), before)


@pytest.mark.parametrize("name", MEASURES)
def test_a_known_mdp_is_the_same_for_every_measure(name):
    rng = np.random.default_rng(4)
    kernel, rewards = rng.dirichlet(np.ones(4), (4, 2)), rng.normal(size=(4, 2, 4))
    mdp = brmdp.TabularMDP(kernel, rewards, 0.9)
    values = rng.normal(size=4)
    got = brmdp.backup(mdp, rewards, 0.9, values, risk=measure(name, (4, 2)))
    np.testing.assert_allclose(
        got.q_values, np.einsum("sat,sat->sa", kernel, rewards + 0.9 * values), atol=1e-14
    )
    np.testing.assert_allclose(got.kernel, kernel, atol=1e-15)
    plan = brmdp.plan(mdp, rewards, 0.9, risk=measure(name, (4, 2)))
    np.testing.assert_allclose(plan.values, brmdp.solve(mdp).values, rtol=0, atol=2e-8)


def test_posterior_sample_draws_anew_and_from_its_stream():
    case = problem("dense-1")
    risk = brmdp.PosteriorSample(rng=5)
    first = brmdp.backup(case.belief, case.rewards, 0.8, values_of(case), risk=risk).kernel
    second = brmdp.backup(case.belief, case.rewards, 0.8, values_of(case), risk=risk).kernel
    again = brmdp.backup(
        case.belief, case.rewards, 0.8, values_of(case), risk=brmdp.PosteriorSample(rng=5)
    ).kernel
    assert np.abs(first - second).max() > 0.01
    np.testing.assert_array_equal(first, again)


def test_posterior_sample_of_scenarios_is_one_scenario():
    case = problem("scenarios-1")
    kernels = case.belief.pattern.dense(case.belief.scenario_entries)
    risk = brmdp.PosteriorSample(rng=6)
    seen = set()
    for _ in range(40):
        row = brmdp.backup(case.belief, case.rewards, 0.8, values_of(case), risk=risk).kernel
        distance = np.abs(kernels - row).max(axis=(1, 2, 3))
        assert distance.min() < 1e-15
        seen.add(int(distance.argmin()))
    assert len(seen) > 1


def test_saddlepoint_is_near_the_exact_quantile():
    case = problem("frozenlake")
    values = np.linspace(0, 1, 16)
    near, exact = (
        brmdp.backup(case.belief, case.rewards, 0.8, values, risk=brmdp.Quantile(0.1, method))
        for method in ("saddlepoint", "exact")
    )
    assert 0 < np.abs(near.q_values - exact.q_values).max() < 2e-3
    np.testing.assert_allclose(near.kernel.sum(axis=2), 1.0, atol=1e-9)
    np.testing.assert_allclose(near.kernel, exact.kernel, atol=0.02)


# --- scenarios ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_scenario_quantile_and_cvar_against_loops(seed):
    rng = np.random.default_rng(seed)
    n_states, n_actions, n_scenarios = 3, 2, int(rng.integers(1, 7))
    kernels = rng.dirichlet(np.ones(n_states), (n_scenarios, n_states, n_actions))
    weights = rng.dirichlet(np.ones(n_scenarios))
    if n_scenarios > 2:
        weights = np.append(
            weights[:-2] / weights[:-2].sum(), [0.0, 0.0]
        )  # scenarios that are ruled out
        kernels[1] = kernels[0]  # and two that agree
    belief = brmdp.ScenarioBelief(kernels, weights)
    rewards, values = rng.normal(size=(n_states, n_actions, n_states)), rng.normal(size=n_states)
    for _ in range(20):
        levels = rng.uniform(0.001, 0.999, (n_states, n_actions))
        for risk, lower_tail in ((brmdp.Quantile(levels), False), (brmdp.CVaR(levels), True)):
            got = brmdp.backup(belief, rewards, 0.9, values, risk=risk)
            loops = planning.scenario_risk(kernels, weights, levels, lower_tail=lower_tail)
            wanted = planning.backup(loops, rewards, 0.9, values)
            np.testing.assert_allclose(got.q_values, wanted, rtol=0, atol=1e-13)
            if not lower_tail:
                distance = np.abs(kernels[weights > 0] - got.kernel).max(axis=3).min(axis=0)
                assert distance.max() < 1e-15, "the row must be that of one scenario"


def two_coins(mu):
    """One action, leading to state 0 (value 1) in the good scenario and to state 1 in the bad.

    The good scenario has weight μ; state 1 has value 0.
    """
    good, bad = np.zeros((2, 1, 2)), np.zeros((2, 1, 2))
    good[:, 0, 0] = 1.0
    bad[:, 0, 1] = 1.0
    return good, bad


@pytest.mark.long
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_level_one_minus_mu_attains_the_bad_scenario(order, step):
    """α = 1 − μ in floating point, for many μ.

    The left quantile is the bad value, whatever the rounding.
    """
    rng = np.random.default_rng(9)
    special = [0.001, 0.999, 1 / 3, 2 / 3, 1 / 7, 1e-6, 1 - 1e-6]
    grid = np.concatenate((np.arange(step, 1000, step) / 1000, rng.random(500 // step), special))
    for mu in grid:
        kernels = [two_coins(mu)[i] for i in order]
        weights = [(mu, 1 - mu)[i] for i in order]
        belief = brmdp.ScenarioBelief(kernels, weights)
        for alpha in (1 - mu, np.nextafter(1 - mu, 2), 1.0 - float(belief.weights[order.index(0)])):
            assert (
                brmdp.backup(
                    belief, np.zeros((2, 1)), 0.5, [1.0, 0.0], risk=brmdp.Quantile(alpha)
                ).q_values[0, 0]
                == 0
            )
        above = 1 - mu + 10 * ATOM_TOLERANCE
        got = brmdp.backup(
            belief, np.zeros((2, 1)), 0.5, [1.0, 0.0], risk=brmdp.Quantile(above)
        ).q_values[0, 0]
        assert got == 0.5


def test_atoms_of_many_scenarios_survive_accumulated_rounding():
    """With ten scenarios of weight 0.1, the k-th reaches the level k/10, not the next one."""
    kernels = np.zeros((10, 11, 1, 11))
    for k in range(10):
        kernels[k, :, 0, k] = 1.0
    belief = brmdp.ScenarioBelief(kernels, np.full(10, 0.1))
    values = np.append(np.arange(10.0), 99.0)
    for k in range(1, 10):
        for alpha in (k / 10, sum([0.1] * k), 1 - (10 - k) / 10):
            got = brmdp.backup(
                belief, np.zeros((11, 1)), 0.5, values, risk=brmdp.Quantile(alpha)
            ).q_values[0, 0]
            assert got == 0.5 * (k - 1)


# --- the paper's Propositions 2 and 3 -------------------------------------------------------------

S0 = 0


def downside_example(c, loss):
    """States s0, g, b; actions safe = 0, risky = 1."""
    kernels = np.zeros((2, 3, 2, 3))
    kernels[:, S0, 0, S0] = 1.0
    kernels[0, S0, 1, 1] = 1.0
    kernels[1, S0, 1, 2] = 1.0
    kernels[:, 1, :, 1] = 1.0
    kernels[:, 2, :, 2] = 1.0
    return kernels, np.array([[c, 0.0], [1.0, 1.0], [-loss, -loss]])


@pytest.mark.parametrize(
    ("gamma", "mu", "loss", "c"),
    [
        (0.9, 0.8, 0.5, 0.4),
        (0.9, 0.7, 1.0, 0.2),
        (0.5, 0.95, 3.0, 0.05),
        (0.99, 2 / 3, 0.6, 0.4),
        (0.8, 0.6, 1.2, 0.05),
    ],
)
@pytest.mark.parametrize("method", ["newton", "value-iteration"])
def test_proposition_2_robustness_is_needed(gamma, mu, loss, c, method):
    assert gamma * (1 - loss) / 2 < c < gamma * (mu - (1 - mu) * loss)
    kernels, rewards = downside_example(c, loss)
    belief = brmdp.ScenarioBelief(kernels, [mu, 1 - mu])
    safe, risky = 0, 1

    def policy(risk):
        return brmdp.plan(belief, rewards, gamma, risk=risk, method=method).policy

    neutral = policy(brmdp.Mean())
    assert neutral[S0] == risky
    for alpha in (1 - mu, 0.5 * (1 - mu), 1e-6):
        assert policy(brmdp.Quantile(alpha))[S0] == safe
    assert policy(brmdp.Quantile(1 - mu + 1e-6))[S0] == risky
    cautious = policy(brmdp.Quantile(1 - mu))
    regret = {}
    for name, chosen in (("neutral", neutral), ("cautious", cautious)):
        worlds = [brmdp.TabularMDP(kernel, rewards, gamma) for kernel in kernels]
        regret[name] = [
            brmdp.solve(w).values[S0] - brmdp.evaluate_in_mdp(w, chosen)[S0] for w in worlds
        ]
    np.testing.assert_allclose(
        regret["neutral"], [0.0, (c + gamma * loss) / (1 - gamma)], atol=1e-7
    )
    np.testing.assert_allclose(regret["cautious"], [(gamma - c) / (1 - gamma), 0.0], atol=1e-7)


def probing_example(c):
    """States s0, y_G, y_B, g, b.

    Actions safe = 0, explore = 1 (a_E at s0, a_X at the diagnostic states).
    """
    kernels = np.zeros((2, 5, 2, 5))
    kernels[:, 0, 0, 0] = 1.0
    kernels[0, 0, 1, 1] = 1.0
    kernels[1, 0, 1, 2] = 1.0
    for y in (1, 2):
        kernels[:, y, 0, y] = 1.0
        kernels[0, y, 1, 3] = 1.0
        kernels[1, y, 1, 4] = 1.0
    kernels[:, 3, :, 3] = 1.0
    kernels[:, 4, :, 4] = 1.0
    return kernels, np.array([[c, 0.0], [c, 0.0], [c, 0.0], [1.0, 1.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("gamma", "mu", "c"), [(0.9, 0.7, 0.5), (0.8, 0.9, 0.3), (0.95, 1 / 3, 0.6), (0.9, 0.6, 0.1)]
)
def test_proposition_3_the_trap(gamma, mu, c):
    assert c < gamma**2
    kernels, rewards = probing_example(c)
    belief = brmdp.ScenarioBelief(kernels, [mu, 1 - mu])
    weights = belief.weights.copy()
    truth = brmdp.TabularMDP(kernels[0], rewards, gamma)
    best = brmdp.solve(truth).values
    assert best[S0] == pytest.approx(gamma**2 / (1 - gamma), abs=1e-7)
    state, regret, horizon = S0, 0.0, 25
    for _ in range(horizon):
        chosen = brmdp.plan(belief, rewards, gamma, risk=brmdp.Quantile(1 - mu)).policy
        assert chosen[state] == 0
        regret += best[state] - brmdp.evaluate_in_mdp(truth, chosen)[state]
        successor = int(np.argmax(kernels[0, state, chosen[state]]))
        belief.observe(state, int(chosen[state]), successor)
        np.testing.assert_array_equal(belief.weights, weights)
        state = successor
        assert state == S0
    assert regret == pytest.approx(horizon * (gamma**2 - c) / (1 - gamma), rel=1e-7)


def test_probing_reveals_the_kernel():
    kernels, rewards = probing_example(0.5)
    for successor, wanted in ((1, [1.0, 0.0]), (2, [0.0, 1.0])):
        belief = brmdp.ScenarioBelief(kernels, [0.7, 0.3])
        belief.observe(0, 1, successor)
        np.testing.assert_array_equal(belief.weights, wanted)
        chosen = brmdp.plan(belief, rewards, 0.9, risk=brmdp.Quantile(0.3)).policy
        assert chosen[successor] == (1 if successor == 1 else 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: brmdp.Quantile(0.5, method="sorted"), "method"),
        (lambda: brmdp.Quantile(0.0), "alpha"),
        (lambda: brmdp.Quantile(1.0), "alpha"),
        (lambda: brmdp.Quantile(np.array([[0.1, np.nan]])), "alpha"),
        (lambda: brmdp.CVaR(1.5), "alpha"),
        (lambda: brmdp.CVaR(0.0), "alpha"),
    ],
)
def test_levels_are_checked(make, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        make()


def test_wrong_shapes_and_mismatched_measures_are_named():
    case = problem("dense-1")
    for risk in (brmdp.Quantile([0.1, 0.2]), brmdp.CVaR(np.full((3, 4), 0.5))):
        with pytest.raises(brmdp.InvalidInputError, match="alpha must be a number or have shape"):
            case.plan(risk)
    with pytest.raises(brmdp.InvalidInputError, match="saddlepoint"):
        problem("scenarios-1").plan(brmdp.Quantile(0.1, "saddlepoint"))
    with pytest.raises(
        brmdp.InvalidInputError, match=r"risk must be .* or another object with a method bind; got"
    ):
        case.plan(0.1)


@pytest.mark.parametrize(
    ("alpha", "problem_with_it"),
    [(1e-9, "alpha=1e-09 is too small"), (1.0 - 1e-9, r"alpha=0\.999999999 is too close to 1")],
)
def test_a_level_that_needs_too_many_draws_is_named(alpha, problem_with_it):
    belief = Jittered(np.ones((2, 1, 2)))
    with pytest.raises(brmdp.InvalidInputError, match=f"{problem_with_it} for a Jittered"):
        brmdp.Quantile(alpha).bind(belief)


def test_a_measure_on_other_transitions_is_refused():
    class Elsewhere:
        def bind(self, belief):
            return brmdp.Mean().bind(problem("sparse-1").belief)

    with pytest.raises(
        brmdp.RiskMeasureError, match="; the one returned has different transitions"
    ):
        problem("dense-1").plan(Elsewhere())
