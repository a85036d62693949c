"""Proposition 1 as a number a practitioner can quote, and the posterior quantile value."""

import math

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp.planning import certify_nested
from brmdp.planning.guarantees import _order_statistic_interval
from oracles import planning
from problems import dense, disturbance, inadmissible, problem, scenarios, sparse_rows

# --- levels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-12, 0.01, 0.1, 0.5, 0.999])
@pytest.mark.parametrize("n", [1, 2, 16, 100_000])
def test_certified_level(alpha, n):
    level = brmdp.certified_level(alpha, n)
    if alpha > 1e-6:
        assert level == pytest.approx(1 - (1 - alpha) ** (1 / n), rel=1e-9, abs=1e-17)
    assert math.expm1(n * math.log1p(-level)) == pytest.approx(-alpha, rel=1e-12)
    union = brmdp.certified_level(alpha, n, independent=False)
    assert union == pytest.approx(alpha / n, rel=1e-15)
    assert union <= level * (1 + 1e-12), "the union level is never less cautious"
    if n == 1:
        assert level == pytest.approx(alpha, rel=1e-12)


def test_levels_are_checked():
    for alpha in (0.0, 1.0, float("nan"), -0.1):
        with pytest.raises(brmdp.InvalidInputError, match="alpha"):
            brmdp.certified_level(alpha, 3)
    with pytest.raises(brmdp.InvalidInputError, match="n_states"):
        brmdp.certified_level(0.1, 0)
    case = problem("dense-1")
    for confidence in (0.0, 1.0, 2.0):
        with pytest.raises(brmdp.InvalidInputError, match="confidence"):
            certify_nested(case.belief, case.rewards, 0.8, confidence)


# --- certificates ---------------------------------------------------------------------------------

CASES = {
    "dense": lambda: dense(11),
    "sparse": lambda: sparse_rows(12),
    "inadmissible": lambda: inadmissible(13),
    "riverswim": lambda: problem("riverswim"),
    "frozenlake": lambda: problem("risky-frozenlake"),
    "disturbance": lambda: disturbance(14),
    "scenarios": lambda: scenarios(15),
}


def independent_values(case, policy, n, seed):
    """V^π in ``n`` kernels from NumPy's own Dirichlet sampler, by one linear solve each."""
    rng = np.random.default_rng(seed)
    states = np.arange(case.n_states)
    rewards = case.rewards[states, policy]
    out = np.empty((n, case.n_states))
    if hasattr(case.belief, "scenario_entries"):
        kernels = case.belief.pattern.dense(case.belief.scenario_entries)
        which = rng.choice(len(kernels), n, p=case.belief.weights)
    for m in range(n):
        rows = np.zeros((case.n_states, case.n_states))
        if hasattr(case.belief, "scenario_entries"):
            rows = kernels[which[m]][states, policy]
        elif hasattr(case.belief, "outcomes"):
            share = rng.dirichlet(case.belief.concentration())
            for s in states:
                np.add.at(rows[s], case.belief.outcomes[s, policy[s]], share)
        else:
            phi = case.belief.concentration()[states, policy]
            for s in states:
                rows[s, phi[s] > 0] = rng.dirichlet(phi[s, phi[s] > 0])
        out[m] = np.linalg.solve(
            np.eye(case.n_states) - case.discount * rows, (rows * rewards).sum(axis=1)
        )
    return out


def at_least(successes, trials, probability):
    """Whether a binomial count agrees with a success probability of at least ``probability``."""
    return stats.binomtest(int(successes), trials, probability, alternative="less").pvalue > 1e-3


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("name", CASES)
def test_certificate_holds(name, confidence):
    case = CASES[name]()
    got = certify_nested(
        case.belief, case.rewards, case.discount, confidence, coverage_samples=500, rng=1
    )
    alpha, n = 1 - confidence, case.n_states
    independent = name not in ("disturbance", "scenarios")
    wanted = 1 - (1 - alpha) ** (1 / n) if independent else alpha / n
    assert got.level == pytest.approx(wanted, rel=1e-12)
    assert got.confidence == confidence
    assert ("Proposition 1" in got.rule) == independent
    assert ("union" in got.rule) != independent
    assert got.rule in str(got)
    assert f"{confidence:.3g}" in str(got)
    # the numbers: the nested value of the policy at that level, solver error subtracted
    own = case.evaluate(got.policy, brmdp.Quantile(got.level), tolerance=1e-10)
    assert (got.values <= own.values + own.error_bound).all()
    assert (own.values - got.values).max() <= 2.1e-8
    best = case.plan(brmdp.Quantile(got.level), tolerance=1e-10)
    assert (best.values - got.values).max() <= got.policy_gap + best.error_bound + 1e-12
    # their coverage, by the certificate's own draws and by an independent sampler
    low, high = got.coverage_interval
    assert low <= got.coverage <= high
    assert got.coverage_samples == 500
    assert at_least(round(got.coverage * 500), 500, confidence)
    assert high >= confidence
    drawn = independent_values(case, got.policy, 500, 2)
    held = (drawn >= got.values - 1e-12).all(axis=1).sum()
    assert at_least(held, 500, confidence)
    # both samplers estimate the same probability
    table = [[held, 500 - held], [round(got.coverage * 500), 500 - round(got.coverage * 500)]]
    if table[0][1] + table[1][1] > 0:
        assert stats.fisher_exact(table).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.5, 0.9])
@pytest.mark.parametrize("name", CASES)
def test_certificate_holds_in_many_draws(name, confidence):
    case = CASES[name]()
    got = certify_nested(
        case.belief, case.rewards, case.discount, confidence, coverage_samples=20_000, rng=3
    )
    assert at_least(round(got.coverage * 20_000), 20_000, confidence)
    held = (independent_values(case, got.policy, 5000, 4) >= got.values - 1e-12).all(axis=1).sum()
    assert at_least(held, 5000, confidence)


def test_the_bound_is_tight_for_one_uncertain_row():
    """With S = 1 uncertain state, the bound fails with probability exactly α.

    For more states the level ᾱ is cautious.
    """
    belief = brmdp.DirichletBelief(np.array([[[3.0, 2.0]], [[0.0, 1.0]]]))
    rewards = np.array([[1.0], [0.0]])
    got = certify_nested(belief, rewards, 0.9, 0.8, coverage_samples=20_000, rng=5)
    assert got.level == pytest.approx(1 - 0.8**0.5)
    # V(0) = 1/(1 − 0.9 p) with p ~ Beta(3, 2), so the bound fails with probability exactly ᾱ
    p = stats.beta(3, 2).ppf(got.level)
    assert got.values[0] == pytest.approx(1 / (1 - 0.9 * p), rel=1e-6)
    error = 4 * math.sqrt(got.level * (1 - got.level) / 20_000)
    assert got.coverage == pytest.approx(1 - got.level, abs=error)


def test_scenarios_by_enumeration():
    """With finitely many kernels, the probability that all bounds hold is a sum of weights."""
    for seed in range(20, 30):
        case = scenarios(seed)
        for confidence in (0.3, 0.6, 0.9):
            got = certify_nested(
                case.belief, case.rewards, case.discount, confidence, coverage_samples=0
            )
            held = 0.0
            states = np.arange(case.n_states)
            kernels = case.belief.pattern.dense(case.belief.scenario_entries)
            for kernel, weight in zip(kernels, case.belief.weights, strict=True):
                rows = kernel[states, got.policy]
                expected = (rows * case.rewards[states, got.policy]).sum(axis=1)
                values = np.linalg.solve(np.eye(case.n_states) - case.discount * rows, expected)
                held += weight * (values >= got.values - 1e-12).all()
            assert held >= confidence - 1e-9


def test_loose_tolerance_is_subtracted():
    """The certified values stay lower bounds however loosely the equations are solved."""
    case = problem("risky-frozenlake")
    exact = certify_nested(
        case.belief, case.rewards, case.discount, 0.9, tolerance=1e-10, coverage_samples=0
    )
    for tolerance in (1e-1, 1e-2, 1e-4):
        got = certify_nested(
            case.belief, case.rewards, case.discount, 0.9, tolerance=tolerance, coverage_samples=0
        )
        own = case.evaluate(got.policy, brmdp.Quantile(got.level), tolerance=1e-10)
        assert (got.values <= own.values + own.error_bound).all()
        assert (own.values - got.values).max() <= 2 * tolerance + 1e-10
        assert (exact.values - got.values).max() <= got.policy_gap + 1e-9


def test_a_known_mdp_is_certified_at_its_value():
    mdp = brmdp.envs.riverswim(6)
    got = certify_nested(mdp, mdp.rewards, mdp.discount, 0.9, coverage_samples=50, rng=1)
    np.testing.assert_allclose(got.values, brmdp.solve(mdp).values, rtol=0, atol=3e-8)
    assert got.coverage == 1.0
    assert got.coverage_interval[1] == 1.0


def test_coverage_can_be_switched_off_and_repeats_with_a_seed():
    case = problem("dense-1")
    off = certify_nested(case.belief, case.rewards, 0.8, coverage_samples=0)
    assert off.coverage is None
    assert off.coverage_interval is None
    assert off.coverage_samples == 0
    assert "draws" not in str(off)
    one, two = (certify_nested(case.belief, case.rewards, 0.8, rng=4) for _ in range(2))
    assert one.coverage == two.coverage
    assert one.coverage_samples == 1000
    for bad in (-1, 1.5):
        with pytest.raises(brmdp.InvalidInputError, match="coverage_samples"):
            certify_nested(case.belief, case.rewards, 0.8, coverage_samples=bad)


@pytest.mark.parametrize("successes", [0, 1, 37, 99, 100])
def test_coverage_interval_is_clopper_pearson(successes):
    from brmdp.planning.guarantees import clopper_pearson

    wanted = stats.binomtest(successes, 100).proportion_ci(0.95, method="exact")
    np.testing.assert_allclose(
        clopper_pearson(successes, 100), (wanted.low, wanted.high), rtol=1e-9, atol=1e-12
    )


def blas_threads():
    from threadpoolctl import threadpool_info

    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


def test_draws_are_solved_in_one_blas_thread_and_progress_is_logged(monkeypatch, caplog):
    """For many systems of a hundred states, BLAS threads would only wait for each other."""
    from threadpoolctl import threadpool_limits

    from brmdp.planning import guarantees

    seen, solve = [], np.linalg.solve

    def spy(*arguments):
        seen.append(blas_threads())
        return solve(*arguments)

    monkeypatch.setattr(np.linalg, "solve", spy)
    monkeypatch.setattr(guarantees, "PROGRESS_SECONDS", 0.0)
    caplog.set_level("INFO", logger="brmdp")
    n = 100
    belief = brmdp.DirichletBelief.uniform(
        n, 1, possible=np.eye(n)[:, None] + np.eye(n, k=1)[:, None]
    )
    with threadpool_limits(2):
        before = blas_threads()
        certify_nested(belief, np.ones((n, 1)), 0.9, coverage_samples=500, rng=0)
        brmdp.posterior_quantile_value(belief, np.ones((n, 1)), 0.9, [0] * n, samples=5, rng=0)
        assert blas_threads() == before
    assert max(before) == 2, "the test needs a BLAS with threads"
    # two blocks of draws, then one; checking the prior also solves a small system
    assert [set(threads) for threads in seen].count({1}) == 3
    assert len(seen) == 4
    messages = [record.getMessage() for record in caplog.records]
    assert any("planning 100 states" in message for message in messages)
    assert any("policy evaluated in 399 of 500 posterior draws" in message for message in messages)


# --- posterior quantile of a policy's value -------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["dense-1", "sparse-1", "inadmissible-1", "riverswim", "disturbance-1", "scenarios-1"]
)
@pytest.mark.parametrize(("alpha", "samples"), [(0.1, 147), (0.5, 60), (0.07, 100), (0.95, 20)])
def test_posterior_quantile_value_against_the_oracle(kind, alpha, samples):
    """The oracle gets the same draws of the policy's rows, from the same stream."""
    case = problem(kind)
    policy = case.admissible.argmax(axis=1)
    got = brmdp.posterior_quantile_value(
        case.belief, case.rewards, case.discount, policy, alpha, samples=samples, rng=6
    )
    pattern = case.belief.pattern
    pairs = np.arange(case.n_states) * case.shape[1] + policy
    flat = case.belief.sample_entries(samples, pairs, rng=np.random.default_rng(6))
    kernels = np.zeros((samples, *case.shape, case.n_states))
    position = 0
    for s, pair in enumerate(pairs):
        for entry in range(pattern.indptr[pair], pattern.indptr[pair + 1]):
            kernels[:, s, policy[s], pattern.next_states[entry]] += flat[:, position]
            position += 1
    wanted = planning.posterior_quantile_value(kernels, case.rewards, case.discount, policy, alpha)
    np.testing.assert_allclose(got.values, wanted, rtol=0, atol=1e-11)
    assert (got.alpha, got.samples, got.confidence) == (alpha, samples, 0.95)
    assert (got.lower <= got.values).all()
    assert (got.values <= got.upper).all()


def test_the_papers_estimator_takes_rank_15_of_147():
    """With one uncertain row, values increase with p and show the estimate's rank among draws."""
    belief = brmdp.DirichletBelief(np.array([[[3.0, 2.0]], [[0.0, 1.0]]]))
    rewards = np.array([[1.0], [0.0]])
    got = brmdp.posterior_quantile_value(belief, rewards, 0.9, [0, 0], rng=7)
    assert got.samples == 147
    p = belief.sample_entries(147, np.array([0, 1]), rng=np.random.default_rng(7))[:, 0]
    values = np.sort(1 / (1 - 0.9 * p))
    assert got.values[0] == pytest.approx(values[14], rel=1e-12)
    assert got.values[1] == 0.0


@pytest.mark.parametrize("kind", ["dense-2", "disturbance-2"])
def test_posterior_quantile_value_with_another_sampler(kind):
    """Independently of seeds, the share of independent draws below the estimate is close to α."""
    case = problem(kind)
    policy = case.admissible.argmax(axis=1)
    n = 4000
    got = brmdp.posterior_quantile_value(
        case.belief, case.rewards, case.discount, policy, 0.1, samples=n, rng=8
    )
    share = (independent_values(case, policy, n, 9) <= got.values).mean(axis=0)
    assert np.abs(share - 0.1).max() <= 4 * math.sqrt(2 * 0.1 * 0.9 / n)


def test_certified_values_lie_below_the_posterior_quantile():
    """A consequence of Proposition 1, state by state."""
    for name in ("dense", "riverswim", "frozenlake"):
        case = CASES[name]()
        bound = certify_nested(case.belief, case.rewards, case.discount, 0.9, coverage_samples=0)
        value = brmdp.posterior_quantile_value(
            case.belief, case.rewards, case.discount, bound.policy, 0.1, samples=2000, rng=10
        )
        assert (bound.values <= value.upper).all()


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("n", [10, 147, 1000])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_order_statistic_interval_has_its_coverage(alpha, n, confidence):
    """For a continuous law, [X_(l), X_(u)] covers with Pr(l ≤ B < u), B ~ Bin(n, α).

    It is the shortest such interval.
    """
    low, high = _order_statistic_interval(n, alpha, confidence)
    binomial = stats.binom(n, alpha)
    assert binomial.cdf(high - 1) - binomial.cdf(low - 1) >= confidence - 1e-12
    tail = (1 - confidence) / 2
    assert binomial.cdf(low) > tail, "a higher lower end would do"
    assert high == 1 or binomial.sf(high - 2) > tail, "a lower upper end would do"
    assert 0 <= low < high <= n + 1


def test_order_statistic_interval_covers_a_known_quantile():
    """V(0) = 1/(1 − 0.9 p), p ~ Beta(3, 2), so the true quantile has a closed form."""
    belief = brmdp.DirichletBelief(np.array([[[3.0, 2.0]], [[0.0, 1.0]]]))
    rewards = np.array([[1.0], [0.0]])
    truth = 1 / (1 - 0.9 * stats.beta(3, 2).ppf(0.1))
    rng = np.random.default_rng(11)
    trials, covered, estimates = 400, 0, []
    for _ in range(trials):
        got = brmdp.posterior_quantile_value(
            belief, rewards, 0.9, [0, 0], 0.1, confidence=0.9, rng=rng
        )
        covered += got.lower[0] <= truth <= got.upper[0]
        estimates.append(got.values[0])
    assert at_least(covered, trials, 0.9)
    assert covered < trials, "an interval that never misses is too wide"
    assert np.median(estimates) == pytest.approx(truth, rel=0.03)


def test_too_few_draws_give_half_open_intervals():
    case = problem("dense-1")
    got = brmdp.posterior_quantile_value(
        case.belief, case.rewards, 0.8, [0] * 4, 0.01, samples=5, rng=1
    )
    assert (got.lower == -np.inf).all()
    assert np.isfinite(got.values).all()
    top = brmdp.posterior_quantile_value(
        case.belief, case.rewards, 0.8, [0] * 4, 0.99, samples=5, rng=1
    )
    assert (top.upper == np.inf).all()
    one = brmdp.posterior_quantile_value(
        case.belief, case.rewards, 0.8, [0] * 4, 0.5, samples=1, rng=1
    )
    assert (one.lower == -np.inf).all()
    assert (one.upper == np.inf).all()


def test_posterior_quantile_value_checks_its_arguments():
    case = problem("inadmissible-1")
    for options, message in (
        ({"samples": 0}, "samples"),
        ({"alpha": 0.0}, "alpha"),
        ({"confidence": 1.0}, "confidence"),
        ({"policy": [0] * 5}, "not admissible"),
        ({"policy": [1] * 4}, "one action per state"),
    ):
        policy = options.pop("policy", case.admissible.argmax(axis=1))
        with pytest.raises(brmdp.InvalidInputError, match=message):
            brmdp.posterior_quantile_value(case.belief, case.rewards, 0.8, policy, **options)
