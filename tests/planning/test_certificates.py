"""The bounds are true: error_bound and policy_gap cover the distance to an accurate solution.

The references are plain value iterations to 1e-12, by the contraction bound. If the measure allows
it, they use the oracle's own measure: the posterior mean, loops over scenarios, a sort of the same
draws, a Beta quantile by bisection. Otherwise they use the package's backup, and once more the
oracle's quantile on the paper's worlds (slow).
"""

from functools import cache

import mpmath
import numpy as np
import pytest
from scipy import sparse, special

import brmdp
from oracles import dirichlet_functional, planning
from problems import (
    MEASURES,
    RANDOM,
    WORLDS,
    Problem,
    dense_draws,
    iterate_backup,
    measure,
    problem,
)

ACCURACY = 1e-12
TOLERANCES = (1.0, 1e-1, 1e-4)
METHODS = ("newton", "value-iteration")
KINDS = [f"{kind}-{seed}" for kind in RANDOM for seed in (1, 2, 3)]
EXACT = [name for name in MEASURES if name != "posterior-sample"]


@cache
def optimum(kind, name):
    return iterate_backup(problem(kind), name, accuracy=ACCURACY)


@cache
def worth(kind, name, policy):
    return iterate_backup(problem(kind), name, np.array(policy), accuracy=ACCURACY)


def assert_covered(got, best, own):
    """``best`` is V*, ``own`` is the value of the returned policy; both to ACCURACY."""
    assert np.abs(got.values - best).max() <= got.error_bound + ACCURACY
    assert (best - own).max() <= got.policy_gap + 2 * ACCURACY
    assert (best - own).min() >= -2 * ACCURACY, "the reference is not optimal"


def starts(best, seed):
    """Starts: zero, and near the solution, where a poor iterate meets a loose tolerance."""
    rng = np.random.default_rng(seed)
    yield None
    for size in (1e-3, 3e-2, 0.5):
        yield best + size * rng.normal(size=best.size)


# --- random problems and the paper's worlds, every exact measure ----------------------------------


@pytest.mark.long
@pytest.mark.parametrize("kind", [*KINDS, *WORLDS])
@pytest.mark.parametrize("name", EXACT)
def test_certificates_cover(kind, name):
    case = problem(kind)
    best = optimum(kind, name)
    for tolerance in TOLERANCES:
        for method in METHODS:
            for initial in starts(best, 1):
                got = case.plan(
                    measure(name, case.shape), tolerance=tolerance, method=method, initial=initial
                )
                assert got.error_bound <= tolerance
                assert_covered(got, best, worth(kind, name, tuple(got.policy.tolist())))


@pytest.mark.long
def test_the_cases_above_are_not_trivial():
    """Iterates are really off, policies really lose, and yet the bounds are not wasteful."""
    errors, losses = [], []
    for kind in ["dense-1", "dense-2", "dense-3", "inadmissible-1", "inadmissible-2"]:
        case, best = problem(kind), optimum(kind, "quantile-array")
        for initial in starts(best, 1):
            risk = measure("quantile-array", case.shape)
            got = case.plan(risk, tolerance=1.0, method="value-iteration", initial=initial)
            errors.append(np.abs(got.values - best).max() / got.error_bound)
            losses.append(
                (best - worth(kind, "quantile-array", tuple(got.policy.tolist()))).max()
                / got.policy_gap
            )
    assert max(errors) > 0.5
    assert max(losses) > 0.01


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("shift", [0.37, -0.37])
@pytest.mark.parametrize(
    "kind", ["dense-1", "inadmissible-2", "disturbance-1", "scenarios-1", "riverswim"]
)
def test_error_bound_is_attained(kind, name, shift):
    """From V* + c the first sweep gives V* + γc, and the bound is γ|c|.

    No smaller bound would be true.
    """
    case = problem(kind)
    best = optimum(kind, name)
    got = case.plan(
        measure(name, case.shape),
        tolerance=case.discount * 0.3701,
        method="value-iteration",
        initial=best + shift,
    )
    assert got.iterations == 1
    np.testing.assert_allclose(got.values - best, case.discount * shift, rtol=0, atol=1e-9)
    assert got.error_bound == pytest.approx(case.discount * abs(shift), rel=1e-6)
    assert_covered(got, best, worth(kind, name, tuple(got.policy.tolist())))


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99, 0.9999])
def test_policy_gap_covers_what_ties_give_away(gamma):
    """The first action is tied, so it is taken, and loses almost the width of a tie per step."""
    kernel, best = np.ones((1, 2, 1)), 2.0
    width = brmdp.solve(brmdp.TabularMDP(kernel, np.array([[0.0, best]]), gamma)).tie_width
    mdp = brmdp.TabularMDP(kernel, np.array([[best - 0.9 * width, best]]), gamma)
    loss = best - (best - 0.9 * width)
    assert loss > 0.8 * width > 0.0
    got = brmdp.solve(mdp)
    assert got.policy.tolist() == [0]
    assert got.policy_gap >= loss / (1 - gamma) * (1 - 1e-3)
    assert abs(got.values[0] - best / (1 - gamma)) <= got.error_bound


def test_policy_gap_covers_a_greedy_policy_that_loses():
    """The classic bad case: a greedy policy of a poor iterate loses nearly 2γ·error/(1 − γ)."""
    gamma, error = 0.9, 0.5
    kernel = np.zeros((2, 2, 2))
    kernel[0, 0, 0] = kernel[0, 1, 1] = kernel[1, :, 1] = 1.0
    loss = 2 * gamma * error
    rewards = np.zeros((2, 2))
    rewards[0, 0] = (
        -loss * 0.98
    )  # from V = (error, −error) staying looks better, but it loses 2γ·error at every step
    mdp = brmdp.TabularMDP(kernel, rewards, gamma)
    initial = np.array([error, -error])
    got = brmdp.solve(mdp, tolerance=10.0, initial=initial, method="value-iteration")
    assert got.iterations == 1
    assert_covered(got, np.zeros(2), brmdp.evaluate_in_mdp(mdp, got.policy))
    assert got.policy.tolist()[0] == 0


@pytest.mark.long
def test_evaluation_bounds_cover():
    for kind in KINDS:
        case = problem(kind)
        policy = case.admissible.argmax(axis=1)
        for name in EXACT:
            own = worth(kind, name, tuple(policy.tolist()))
            for tolerance in TOLERANCES:
                for method in METHODS:
                    for initial in starts(own, 2):
                        got = case.evaluate(
                            policy,
                            measure(name, case.shape),
                            tolerance=tolerance,
                            method=method,
                            initial=initial,
                        )
                        assert got.error_bound <= tolerance
                        assert np.abs(got.values - own).max() <= got.error_bound + ACCURACY


# --- with the oracle's own measures ---------------------------------------------------------------


def check_with_oracle(case, risk_maker, oracle_risk, tolerances=TOLERANCES, reference=None):
    best = reference
    if best is None:
        best = planning.value_iteration(
            oracle_risk, case.rewards, case.discount, ACCURACY, case.admissible
        )
    known = {}
    for tolerance in (*tolerances, 1e-8):
        for method in METHODS:
            for initial in starts(best, 3):
                got = case.plan(risk_maker(), tolerance=tolerance, method=method, initial=initial)
                policy = tuple(got.policy.tolist())
                if policy not in known:
                    known[policy] = planning.evaluate_under_belief(
                        oracle_risk, case.rewards, case.discount, got.policy, ACCURACY
                    )
                assert_covered(got, best, known[policy])


@pytest.mark.parametrize("kind", [*KINDS, *WORLDS])
def test_mean_with_the_oracle(kind):
    case = problem(kind)
    if hasattr(case.belief, "scenario_entries"):
        kernels = case.belief.pattern.dense(case.belief.scenario_entries)
        mean = sum(w * k for w, k in zip(case.belief.weights, kernels, strict=True))
    elif hasattr(case.belief, "outcomes"):
        share = case.belief.concentration() / case.belief.concentration().sum()
        mean = np.zeros((*case.shape, case.n_states))
        for s, a in np.argwhere(case.admissible):
            for d, successor in enumerate(case.belief.outcomes[s, a]):
                mean[s, a, successor] += share[d]
    else:
        phi = case.belief.concentration()
        mean = phi / np.maximum(phi.sum(axis=2, keepdims=True), 1e-300)
    check_with_oracle(case, brmdp.Mean, planning.mean_risk(mean))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("lower_tail", [False, True])
def test_scenarios_with_the_oracle(seed, lower_tail):
    case = problem(f"scenarios-{seed}")
    levels = np.random.default_rng(seed).uniform(0.05, 0.95, case.shape)
    kernels = case.belief.pattern.dense(case.belief.scenario_entries)
    risk = planning.scenario_risk(kernels, case.belief.weights, levels, lower_tail=lower_tail)
    check_with_oracle(case, lambda: (brmdp.CVaR if lower_tail else brmdp.Quantile)(levels), risk)


@pytest.mark.parametrize("kind", ["dense-1", "sparse-2", "inadmissible-1"])
def test_sampled_quantile_with_the_oracle(kind):
    """The bound holds for the sampled problem: an order statistic of the very same draws."""
    case = problem(kind)
    levels = np.random.default_rng(4).uniform(0.05, 0.95, case.shape)

    def maker():
        return brmdp.Quantile(levels, brmdp.MonteCarlo(samples=25, rng=5))

    drawn = dense_draws(maker(), case.belief)
    check_with_oracle(case, maker, planning.sampled_quantile_risk(drawn, levels))


def two_states(seed, discount):
    rng = np.random.default_rng(seed)
    phi = np.exp(rng.uniform(np.log(0.2), np.log(20.0), (2, 2, 2)))
    if seed % 3 == 0:
        phi[0, 0, 1] = 0.0
    return Problem(brmdp.DirichletBelief(phi), rng.normal(size=(2, 2, 2)), discount)


beta_tails = dirichlet_functional.merged(dirichlet_functional.beta_tails)


@pytest.mark.long
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4, 5))]
)
def test_quantile_of_two_states_with_a_beta_quantile_by_bisection(seed):
    case = two_states(seed, discount=0.7)
    levels = np.random.default_rng(seed).uniform(0.02, 0.98, case.shape)
    risk = planning.dirichlet_quantile_risk(beta_tails, case.belief.concentration(), levels)
    check_with_oracle(case, lambda: brmdp.Quantile(levels), risk)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_cvar_of_two_states_with_beta_functions(seed):
    case = two_states(seed, discount=0.6)
    levels = np.random.default_rng(seed).uniform(0.05, 0.95, case.shape)
    risk = planning.dirichlet_cvar_risk(beta_tails, case.belief.concentration(), levels)
    check_with_oracle(case, lambda: brmdp.CVaR(levels), risk)


@cache
def chains():
    """Sixty chains (a, b, α, x) that may break, x by bisection."""
    rng = np.random.default_rng(9)
    found = []
    for _ in range(60):
        a, b = np.exp(rng.uniform(np.log(0.3), np.log(1e3), 2))
        alpha = float(rng.uniform(0.01, 0.99))
        x = planning.bisected_quantile(
            lambda z, a=a, b=b: beta_tails([b, a], [0.0, 1.0], z), 0.0, 1.0, alpha
        )
        found.append((a, b, alpha, x))
    return found


@pytest.mark.long
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("method", METHODS)
def test_a_chain_that_may_break_has_a_closed_form(discount, method):
    """Pay 1 and stay with p ~ Beta(a, b), or stop: V = 1/(1 − γx), x the α-quantile of p.

    Tight tolerances are met too.
    """
    rewards = np.array([[1.0], [0.0]])
    for a, b, alpha, x in chains():
        belief = brmdp.DirichletBelief(np.array([[[a, b]], [[0.0, 1.0]]]))
        exact = 1 / (1 - discount * x)
        for tolerance in (*TOLERANCES, 1e-8, 1e-10):
            got = brmdp.plan(
                belief,
                rewards,
                discount,
                risk=brmdp.Quantile(alpha),
                tolerance=tolerance * exact,
                method=method,
            )
            assert abs(got.values[0] - exact) <= got.error_bound + ACCURACY * exact
            assert got.error_bound <= tolerance * exact


def chain_value(a, b, alpha, discount):
    """1/(1 − γx), where x is the α-quantile of Beta(a, b), in multiple precision."""
    with mpmath.workdps(30):
        x = mpmath.mpf(float(special.betaincinv(a, b, alpha)))
        for _ in range(4):
            density = x ** (a - 1) * (1 - x) ** (b - 1) / mpmath.beta(a, b)
            x -= (mpmath.betainc(a, b, 0, x, regularized=True) - alpha) / density
        return 1 / (1 - mpmath.mpf(discount) * x)


HARD_CHAINS = [
    (25.233178589764012, 0.36830818658474906, 0.4521316565610067, 0.9),
    (82.316352923236, 0.19428618633562775, 0.4426479077918221, 0.999),
]


def test_error_bound_covers_to_the_last_digit():
    """There is no allowance for the reference: the bound includes the error of a backup."""
    rng = np.random.default_rng(10)
    rows = 10 ** rng.uniform(-1, 2, (150, 2))
    chains = [
        (*row, rng.uniform(0.05, 0.95), rng.choice([0.9, 0.99, 0.999])) for row in rows.tolist()
    ]
    missed = []
    for a, b, alpha, discount in [*HARD_CHAINS, *chains]:
        belief = brmdp.DirichletBelief(np.array([[[a, b]], [[0.0, 1.0]]]))
        rewards = np.array([[1.0], [0.0]])
        got = brmdp.plan(belief, rewards, discount, risk=brmdp.Quantile(alpha), tolerance=1e-7)
        distance = float(abs(mpmath.mpf(float(got.values[0])) - chain_value(a, b, alpha, discount)))
        if distance > got.error_bound:
            missed.append((a, b, alpha, float(discount), distance, got.error_bound))
    assert not missed


def continue_oracle(operator, near, discount):
    """Plain value iteration with the oracle's operator, started near the fixed point.

    Its own change proves where it ends.
    """
    values = near
    for _ in range(100):
        following = operator(values)
        change = np.abs(following - values).max()
        values = following
        if discount * change <= ACCURACY * (1 - discount):
            return values
    raise AssertionError(f"not at a fixed point: {change}")


def oracle_reference(case, risk, near):
    def operator(values):
        q_values = np.full(case.shape, -np.inf)
        for s, a in np.argwhere(case.admissible):
            q_values[s, a] = risk(s, a, case.rewards[s, a] + case.discount * values)
        return q_values.max(axis=1)

    return continue_oracle(operator, near, case.discount)


def check_near_oracle(case, risk, maker):
    """Only V* comes from the oracle, whose quantiles are expensive.

    The error bound is checked at loose and at tight tolerances.
    """
    best = oracle_reference(case, risk, case.plan(maker(), tolerance=1e-9).values)
    for tolerance in (*TOLERANCES, 1e-8):
        for method in METHODS:
            for initial in starts(best, 5):
                got = case.plan(maker(), tolerance=tolerance, method=method, initial=initial)
                assert np.abs(got.values - best).max() <= got.error_bound + ACCURACY
    return best


def test_quantile_of_three_states_with_splines():
    """Small integer parameters, a B-spline in rational arithmetic, and bisection."""
    rng = np.random.default_rng(6)
    phi = rng.integers(1, 4, (3, 2, 3)).astype(float)
    case = Problem(brmdp.DirichletBelief(phi), rng.normal(size=(3, 2, 3)), 0.3)
    levels = rng.uniform(0.05, 0.95, case.shape)
    risk = planning.dirichlet_quantile_risk(dirichlet_functional.spline_tails, phi, levels)
    check_near_oracle(case, risk, lambda: brmdp.Quantile(levels))


def ray_tails(phi, values, z):
    return dirichlet_functional.ray_tails(phi, values, z)[:2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense-1", "sparse-1", "inadmissible-2", "riverswim"])
def test_quantile_with_the_ray_oracle(kind):
    """Quantiles by bisection on an inversion along a ray; also the policy's own value."""
    case = problem(kind)
    levels = np.random.default_rng(7).uniform(0.05, 0.95, case.shape)
    phi = case.belief.concentration()
    risk = planning.dirichlet_quantile_risk(ray_tails, phi, levels)
    best = check_near_oracle(case, risk, lambda: brmdp.Quantile(levels))
    got = case.plan(brmdp.Quantile(levels), tolerance=1e-2, method="value-iteration")
    near = case.evaluate(got.policy, brmdp.Quantile(levels), tolerance=1e-9).values

    def operator(values):
        return np.array(
            [
                risk(s, int(a), case.rewards[s, a] + case.discount * values)
                for s, a in enumerate(got.policy)
            ]
        )

    assert_covered(got, best, continue_oracle(operator, near, case.discount))


@pytest.mark.slow
def test_frozenlake_with_the_ray_oracle():
    case = problem("risky-frozenlake")
    levels = np.full(case.shape, 0.1)
    risk = planning.dirichlet_quantile_risk(ray_tails, case.belief.concentration(), levels)
    got = case.plan(brmdp.Quantile(0.1), tolerance=1e-9)
    q_values = planning.backup(risk, case.rewards, case.discount, got.values)
    distance = np.abs(q_values.max(axis=1) - got.values).max() / (1 - case.discount)
    assert distance <= (1 + case.discount) / (1 - case.discount) * (got.error_bound + ACCURACY)
    for tolerance in TOLERANCES:
        loose = case.plan(brmdp.Quantile(0.1), tolerance=tolerance, method="value-iteration")
        assert np.abs(loose.values - got.values).max() <= loose.error_bound + distance


# --- a large problem ------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_iterative_path_certificates_cover(tolerance):
    rng = np.random.default_rng(8)
    n, width = 700, 3
    columns = np.stack([rng.choice(n, width, replace=False) for _ in range(2 * n)])
    kernel = sparse.csr_array(
        (
            rng.dirichlet(np.ones(width), 2 * n).ravel(),
            columns.ravel(),
            np.arange(2 * n + 1) * width,
        ),
        (2 * n, n),
    )
    rewards = rng.normal(size=(n, 2))
    values = np.zeros(n)
    for _ in range(300):
        values = (rewards + 0.9 * (kernel @ values).reshape(n, 2)).max(axis=1)
    mdp = brmdp.TabularMDP(kernel, rewards, 0.9)
    for method in METHODS:
        got = brmdp.solve(mdp, tolerance=tolerance, method=method)
        rows = sparse.csr_array(kernel[np.arange(n) * 2 + got.policy])
        own = np.linalg.solve(np.eye(n) - 0.9 * rows.toarray(), rewards[np.arange(n), got.policy])
        assert_covered(got, values, own)
