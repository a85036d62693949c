"""The paper's sampled quantile: budgets, order statistics, fixed draws, and reused draws."""

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp.risk import order_statistic_rank
from oracles import planning
from problems import Frozen, dense, level_array, problem


def draws_of(risk, belief):
    """The fixed draws of every admissible pair, {pair: (n, successors)}."""
    return risk.bind(belief).draws


def sampled(alpha, **options):
    return brmdp.Quantile(alpha, brmdp.MonteCarlo(**options))


# --- budgets --------------------------------------------------------------------------------------


def test_the_papers_147():
    assert brmdp.MonteCarlo(50).budget(0.1) == 147
    assert brmdp.MonteCarlo(50).budget(0.9) == 147


@pytest.mark.parametrize("coefficient", [1, 50, 150, 200, 250])
def test_budget_rule_and_cap(coefficient):
    levels = np.concatenate((np.linspace(0.001, 0.999, 400), [1e-9, 1e-4, 0.2, 0.3, 0.5, 1 - 1e-6]))
    got = brmdp.MonteCarlo(coefficient).budget(levels)
    np.testing.assert_array_equal(got, [planning.budget(a, coefficient) for a in levels])
    assert got.max() == 2048 or coefficient == 1
    np.testing.assert_array_equal(
        brmdp.MonteCarlo(coefficient, cap=100).budget(levels),
        [planning.budget(a, coefficient, 100) for a in levels],
    )


@pytest.mark.parametrize("alpha", [1e-100, 1e-16, 1 - 1e-16, 0.5])
def test_budget_of_extreme_levels_is_the_cap_or_less(alpha):
    assert 1 <= brmdp.MonteCarlo(250).budget(alpha) <= 2048
    if alpha != 0.5:
        assert brmdp.MonteCarlo(250).budget(alpha) == 2048


def test_number_of_draws_follows_the_budget():
    case = problem("dense-1")
    levels = level_array(case.shape)
    draws = draws_of(sampled(levels, coefficient=40, rng=1), case.belief)
    for pair, rows in draws.items():
        assert rows.shape == (planning.budget(levels.flat[pair], 40), case.n_states)
    fixed = draws_of(sampled(levels, samples=17, rng=1), case.belief)
    assert {rows.shape[0] for rows in fixed.values()} == {17}


@pytest.mark.parametrize(
    "options",
    [{"coefficient": 0}, {"coefficient": -1}, {"cap": 0}, {"samples": 0}, {"samples": 1.5}],
)
def test_budget_arguments_are_checked(options):
    with pytest.raises(brmdp.InvalidInputError, match=next(iter(options))):
        brmdp.MonteCarlo(**options)


# --- order statistic ------------------------------------------------------------------------------


def test_rank_is_the_ceiling_of_the_decimal_product():
    for n in (1, 2, 7, 10, 100, 147, 1000, 2048):
        for hundredths in range(1, 100):
            alpha = hundredths / 100
            sample = np.arange(1, n + 1)
            assert order_statistic_rank(n, alpha) == planning.order_statistic(sample, alpha), (
                n,
                alpha,
            )
    assert order_statistic_rank(147, 0.1) == 15
    assert order_statistic_rank(2048, 1e-12) == 1


@pytest.mark.parametrize("kind", ["dense-1", "sparse-1", "inadmissible-1", "scenarios-1"])
def test_order_statistic_against_a_sort_of_the_same_draws(kind):
    case = problem(kind)
    levels = level_array(case.shape)
    frozen = Frozen(sampled(levels, coefficient=30, rng=3), case.belief)
    draws, pattern = frozen.bound.draws, case.belief.pattern
    rng = np.random.default_rng(1)
    for _ in range(5):
        values = rng.normal(size=case.n_states)
        got = brmdp.backup(case.belief, case.rewards, case.discount, values, risk=frozen)
        for pair in pattern.pairs:
            s, a = divmod(int(pair), case.shape[1])
            successors = pattern.next_states[pattern.indptr[pair] : pattern.indptr[pair + 1]]
            targets = (case.rewards[s, a] + case.discount * values)[successors]
            wanted = planning.monte_carlo_quantile(draws[int(pair)], targets, levels[s, a])
            assert got.q_values[s, a] == pytest.approx(wanted, rel=0, abs=1e-14)
            row = got.kernel[s, a, successors]
            assert np.abs(draws[int(pair)] - row).max(axis=1).min() == 0, (
                "the row must be one of the draws"
            )
            assert row @ targets == pytest.approx(wanted, rel=0, abs=1e-14)


def test_many_draws_approach_the_exact_quantile():
    case = problem("dense-2")
    values = np.random.default_rng(2).normal(size=case.n_states)
    exact = case.backup(brmdp.Quantile(0.2), values)
    n = 20_000
    near = case.backup(sampled(0.2, samples=n, rng=4), values)
    below = brmdp.dirichlet.cdf(
        case.belief.concentration(), case.rewards + case.discount * values, near
    )
    assert np.abs(below - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / n)
    assert np.abs(near - exact).max() < 0.05


# --- draws are fixed during a solve ---------------------------------------------------------------


@pytest.mark.parametrize("method", ["newton", "value-iteration"])
@pytest.mark.parametrize("kind", ["dense-1", "riverswim", "disturbance-1"])
def test_draws_are_fixed_during_a_solve(kind, method):
    case = problem(kind)
    risk = sampled(0.2, samples=50, rng=5)
    got = case.plan(risk, tolerance=1e-10, method=method)
    assert got.residual < 1e-9
    assert got.status == got.basis == "sampled"
    again = case.plan(sampled(0.2, samples=50, rng=5), tolerance=1e-10, method=method)
    np.testing.assert_array_equal(got.values, again.values)
    fresh = case.plan(risk, tolerance=1e-10, method=method)
    assert np.abs(fresh.values - got.values).max() > 1e-6, "without reuse every plan draws anew"


# --- reuse ----------------------------------------------------------------------------------------


def assert_law(rows, phi, level=1e-3):
    """Kolmogorov–Smirnov for every marginal, Beta(φ_i, Σφ − φ_i), at joint level ``level``."""
    for i in range(phi.size):
        p = stats.kstest(rows[:, i], stats.beta(phi[i], phi.sum() - phi[i]).cdf).pvalue
        assert p > level / phi.size, (i, p)


def assert_functional_law(rows, phi, rng):
    """The same for a random linear functional, which sees the dependence of the coordinates."""
    weights = rng.normal(size=phi.size)
    p = stats.kstest(rows @ weights, lambda z: brmdp.dirichlet.cdf(phi, weights, z)).pvalue
    assert p > 1e-3, p


def reuse_problem():
    rng = np.random.default_rng(6)
    phi = np.exp(rng.uniform(np.log(0.05), np.log(5.0), (3, 2, 3)))
    return brmdp.DirichletBelief(phi), rng


@pytest.mark.parametrize("rounds", [1, 6])
def test_reused_draws_have_exactly_the_posterior_law(rounds):
    """The data are chosen without looking at the draws."""
    belief, rng = reuse_problem()
    method = brmdp.MonteCarlo(samples=3000, reuse=True, rng=7)
    risk = brmdp.Quantile(0.3, method)
    draws_of(risk, belief)
    for _ in range(rounds):
        for _ in range(4):
            belief.observe(int(rng.integers(3)), int(rng.integers(2)), int(rng.integers(3)))
        belief.observe([0, 0, 2], [0, 0, 1], [1, 1, 0])
        draws = draws_of(risk, belief)
    concentration = belief.concentration().reshape(6, 3)
    for pair, rows in draws.items():
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
        assert_law(rows, concentration[pair])
        assert_functional_law(rows, concentration[pair], rng)


def test_reuse_changes_the_law_of_observed_rows():
    """The check above can fail: old draws do not have the new law."""
    belief, _ = reuse_problem()
    risk = brmdp.Quantile(0.3, brmdp.MonteCarlo(samples=3000, reuse=True, rng=7))
    before = draws_of(risk, belief)[0].copy()
    belief.observe([0] * 5, [0] * 5, [1] * 5)
    with pytest.raises(AssertionError):
        assert_law(before, belief.concentration()[0, 0])
    after = draws_of(risk, belief)[0]
    assert (after[:, 1] >= before[:, 1]).all(), "adding to a gamma can only raise its share"


def test_unchanged_rows_keep_identical_draws():
    belief, _ = reuse_problem()
    risk = brmdp.Quantile(0.3, brmdp.MonteCarlo(samples=200, reuse=True, rng=8))
    before = {pair: rows.copy() for pair, rows in draws_of(risk, belief).items()}
    np.testing.assert_equal(draws_of(risk, belief), before)
    belief.observe(1, 0, 2)
    after = draws_of(risk, belief)
    for pair, rows in before.items():
        assert (after[pair] == rows).all() == (pair != 2)


def test_a_plan_after_no_data_is_the_same_plan():
    case = dense(3)
    risk = sampled(0.2, samples=60, reuse=True, rng=9)
    first, second = case.plan(risk), case.plan(risk)
    np.testing.assert_array_equal(first.values, second.values)
    case.belief.observe(0, 0, 1)
    assert not np.array_equal(case.plan(risk).values, first.values)


def test_observations_do_not_reach_into_a_bound_measure():
    case = dense(4)
    risk = sampled(0.2, samples=60, reuse=True, rng=9)
    frozen = Frozen(risk, case.belief)
    values = np.arange(4.0)
    before = case.backup(frozen, values)
    case.belief.observe(0, 0, 1)
    case.plan(risk)
    np.testing.assert_array_equal(case.backup(frozen, values), before)


def test_a_shrunk_posterior_is_drawn_again():
    belief, rng = reuse_problem()
    prior = belief.copy()
    risk = brmdp.Quantile(0.3, brmdp.MonteCarlo(samples=3000, reuse=True, rng=10))
    belief.observe([0] * 30, [0] * 30, [1] * 30)
    ahead = {pair: rows.copy() for pair, rows in draws_of(risk, belief).items()}
    draws = draws_of(risk, prior)
    for pair, rows in draws.items():
        assert_law(rows, prior.concentration().reshape(6, 3)[pair])
    assert not np.array_equal(draws[5], ahead[5]), (
        "all rows are drawn again, not only the shrunk one"
    )
    assert_functional_law(draws[0], prior.concentration()[0, 0], rng)


def test_another_pattern_is_drawn_again():
    belief, _ = reuse_problem()
    risk = brmdp.Quantile(0.3, brmdp.MonteCarlo(samples=2000, reuse=True, rng=11))
    draws_of(risk, belief)
    phi = belief.concentration() + 1.0
    phi[:, :, 0] = 0.0
    narrower = brmdp.DirichletBelief(phi)
    draws = draws_of(risk, narrower)
    assert {rows.shape for rows in draws.values()} == {(2000, 2)}
    for pair, rows in draws.items():
        assert_law(rows, phi.reshape(6, 3)[pair, 1:])
    bigger = brmdp.DirichletBelief.uniform(4, 2)
    assert {rows.shape for rows in draws_of(risk, bigger).values()} == {(2000, 4)}


def test_budget_takes_the_first_of_the_kept_draws():
    belief, _ = reuse_problem()
    method = brmdp.MonteCarlo(10, cap=500, reuse=True, rng=12)
    few = draws_of(brmdp.Quantile(0.5, method), belief)
    many = draws_of(brmdp.Quantile(0.01, method), belief)
    for pair, rows in few.items():
        assert (
            rows.shape[0]
            == planning.budget(0.5, 10)
            < many[pair].shape[0]
            == planning.budget(0.01, 10, 500)
        )
        np.testing.assert_array_equal(rows, many[pair][: rows.shape[0]])


def test_reuse_needs_dirichlet_rows():
    for kind in ("scenarios-1", "disturbance-1"):
        case = problem(kind)
        with pytest.raises(brmdp.InvalidInputError, match="reuse"):
            case.plan(sampled(0.2, reuse=True))


def test_fresh_draws_have_the_posterior_law_for_tiny_concentrations():
    belief = brmdp.DirichletBelief(
        np.array([[[1e-3, 2e-2, 5e-3]], [[0.5, 300.0, 1e-2]], [[1.0, 1.0, 1.0]]])
    )
    draws = draws_of(sampled(0.3, samples=4000, rng=13), belief)
    for pair, rows in draws.items():
        assert np.isfinite(rows).all()
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
        phi = belief.concentration()[pair, 0]
        mean, deviation = phi / phi.sum(), rows.std(axis=0)
        assert (np.abs(rows.mean(axis=0) - mean) <= 4.5 * deviation / np.sqrt(4000) + 1e-12).all()
        if phi.min() > 1e-2 or pair == 1:
            assert_law(rows, phi)


@pytest.mark.parametrize("options", [{}, {"raise_on_failure": False, "max_iterations": 1}])
def test_a_sampled_plan_says_so_and_what_its_bound_bounds(options):
    """Few draws give a tiny bound, far from the exact value.

    Nothing may read as if the bound held for the belief itself.
    """
    case = problem("dense-1")
    exact = case.plan(brmdp.Quantile(0.1))
    for risk in (sampled(0.1, samples=20, rng=1), brmdp.PosteriorSample(rng=1)):
        got = case.plan(risk, **options)
        assert got.basis == "sampled"
        assert got.status == ("not converged" if options else "sampled")
        assert f"policy_gap={got.policy_gap:.2g} (both of the sampled problem)" in repr(got)
        if not options:
            assert got.error_bound < 1e-8 < 0.1 < np.abs(got.values - exact.values).max()
    near = case.plan(brmdp.Quantile(0.1, "saddlepoint"))
    assert (near.basis, near.status, near.error_bound) == ("approximate", "approximate", np.inf)
    assert (exact.basis, exact.status) == ("exact", "converged")
    assert "sampled" not in repr(exact)


def test_repr():
    assert repr(brmdp.MonteCarlo()) == "MonteCarlo(coefficient=250, cap=2048)"
    assert repr(brmdp.MonteCarlo(samples=40, reuse=True)) == "MonteCarlo(samples=40, reuse=True)"


@pytest.mark.parametrize("name", ["samples", "cap"])
def test_more_draws_than_a_machine_holds_are_refused(name):
    with pytest.raises(
        brmdp.InvalidInputError, match=f"{name} must be at most 10,000,000; got 1,000,000,000,000"
    ):
        brmdp.MonteCarlo(**{name: 10**12})


@pytest.mark.parametrize("reuse", [False, True])
def test_draws_that_do_not_fit_the_problem_are_refused_before_they_are_made(reuse):
    """A small file or a typing error must not fill the memory."""
    belief = brmdp.DirichletBelief.uniform(4, 2)
    method = brmdp.MonteCarlo(samples=10**7, reuse=reuse, rng=0)
    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"at most 250,000,000; got 320,000,000 from up to 10,000,000 draws of 32",
    ):
        brmdp.plan(belief, np.zeros((4, 2)), 0.9, risk=brmdp.Quantile(0.5, method=method))
