"""Theorem 1: the limit against series and enumeration, replications against the expansion."""

import math

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp.errors import InvalidInputError
from brmdp.theory import (
    asymptotic_normality,
    normal_fit,
    one_step_adjustment,
    random_ergodic_mdp,
    replicate_normality,
    visit_frequencies,
)
from brmdp.theory.chains import policy_matrix, transition_counts
from oracles import planning
from oracles import theory_normality as oracle
from problems import random_kernel

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
VARIANCE_ERROR = math.sqrt(2.0)
"""Standard error of the variance of R normal numbers, over their variance and times √(R − 1)."""


def random_problem(seed, n_states=4, n_actions=2, discount=0.8):
    return random_ergodic_mdp(
        n_states, n_actions, discount=discount, rng=np.random.default_rng(seed)
    )


def chain(matrix, start=0, discount=0.9):
    """An MDP with one action."""
    matrix = np.asarray(matrix, dtype=float)
    rewards = np.random.default_rng(3).random((len(matrix), 1, len(matrix)))
    return brmdp.TabularMDP(matrix[:, None, :], rewards, discount, start)


# --- the chain of a policy ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_visit_frequencies_are_long_run_shares(seed):
    rng = np.random.default_rng(seed)
    kernel = random_kernel(rng, 5, 3, keep=0.6)
    kernel = (
        0.9 * kernel + 0.1 * np.roll(np.eye(5), 1, axis=1)[:, None, :]
    )  # a cycle through all states
    mdp = brmdp.TabularMDP(kernel, np.zeros((5, 3)), 0.9)
    policy = rng.integers(3, size=5)
    found = visit_frequencies(mdp, policy)
    rows = kernel[np.arange(5), policy]
    np.testing.assert_allclose(policy_matrix(mdp, policy), rows, atol=1e-15)
    np.testing.assert_allclose(found @ rows, found, rtol=1e-14)
    # the sum of the transient part leaves an error of the order of 1/steps
    np.testing.assert_allclose(found, oracle.long_run_shares(rows, 0, 20_000), atol=1e-3)


def test_rare_states_are_as_accurate_as_common_ones():
    found = visit_frequencies(brmdp.envs.riverswim(30), np.ones(30, dtype=int))
    # a birth-and-death chain is in detailed balance
    wanted = np.ones(30)
    for s in range(29):
        forward = 0.60 if s == 0 else 0.35
        back = 0.40 if s + 1 == 29 else 0.05
        wanted[s + 1] = wanted[s] * forward / back
    np.testing.assert_allclose(found, wanted / wanted.sum(), rtol=1e-12)
    assert found[0] < 1e-20


def test_a_period_does_no_harm():
    cycle = np.roll(np.eye(4), 1, axis=1)
    np.testing.assert_allclose(
        visit_frequencies(chain(cycle), np.zeros(4, dtype=int)), 0.25, rtol=1e-15
    )
    np.testing.assert_allclose(oracle.long_run_shares(cycle, 2, 4_000), 0.25, atol=1e-3)
    assert visit_frequencies(chain([[1.0]]), [0]) == 1.0


def test_posterior_mean_has_frequencies():
    phi = np.random.default_rng(2).uniform(0.5, 3.0, (3, 2, 3))
    found = visit_frequencies(brmdp.DirichletBelief(phi), [0, 1, 0])
    rows = (phi / phi.sum(axis=2, keepdims=True))[np.arange(3), [0, 1, 0]]
    np.testing.assert_allclose(found, oracle.long_run_shares(rows, 0, 20_000), atol=1e-3)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], ["states {2} are transient"]),
        (np.eye(3), ["3 closed classes, {0} and {1} and {2}"]),
        (
            [[0.2, 0.4, 0.4], [0, 1, 0], [0, 0, 1]],
            ["states {0} are transient", "2 closed classes, {1} and {2}"],
        ),
    ],
)
def test_chains_that_are_not_ergodic_are_told_why(matrix, words):
    mdp = chain(matrix)
    for call in (
        lambda: visit_frequencies(mdp, [0, 0, 0]),
        lambda: asymptotic_normality(mdp, [0, 0, 0], 0.1),
    ):
        with pytest.raises(InvalidInputError) as caught:
            call()
        assert all(word in str(caught.value) for word in ["ergodic", *words])


def test_chains_too_rare_for_double_precision_are_refused():
    with pytest.raises(InvalidInputError, match="rarely"):
        visit_frequencies(brmdp.envs.riverswim(450), np.ones(450, dtype=int))


def test_transition_counts_follow_the_chain_exactly():
    matrix = np.array([[0.3, 0.7, 0.0], [0.5, 0.0, 0.5], [0.0, 0.2, 0.8]])
    mdp = chain(matrix, start=1)
    rng = np.random.default_rng(5)
    wanted = oracle.path_probabilities(matrix, 1, 4)
    runs = 4_000
    found = dict.fromkeys(wanted, 0)
    for _ in range(runs):
        found[tuple(transition_counts(mdp, [0, 0, 0], 4, rng=rng).ravel().tolist())] += 1
    expected = [runs * wanted[key] for key in wanted]
    assert stats.chisquare([found[key] for key in wanted], expected).pvalue > 1e-3


def test_transition_counts_of_long_trajectories():
    problem = random_problem(1)
    rows = policy_matrix(problem.mdp, problem.policy)
    drawn = np.array(
        [
            transition_counts(problem.mdp, problem.policy, 200, rng=np.random.default_rng(i))
            for i in range(400)
        ]
    )
    assert (drawn.sum(axis=(1, 2)) == 200).all()
    # a trajectory leaves every state as often as it enters it, but for its two ends
    assert np.abs(drawn.sum(axis=1) - drawn.sum(axis=2)).max() <= 1
    score = (drawn.mean(axis=0) - oracle.expected_counts(rows, 0, 200)) / (
        drawn.std(axis=0) / math.sqrt(400)
    )
    assert np.abs(score).max() < 4.0  # 16 entries


def test_trajectories_begin_where_the_mdp_does():
    mdp = chain(np.roll(np.eye(3), 1, axis=1), start=[0.0, 0.25, 0.75])
    rng = np.random.default_rng(8)
    first = sum(transition_counts(mdp, [0, 0, 0], 1, rng=rng) for _ in range(400)).sum(axis=1)
    assert first[0] == 0
    assert stats.binomtest(int(first[2]), 400, 0.75).pvalue > 1e-3


# --- the limit ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_limit_agrees_with_series(seed):
    mdp, policy = random_problem(seed, n_states=3 + seed)
    found = asymptotic_normality(mdp, policy, LEVELS)
    shares = visit_frequencies(mdp, policy)
    for level, one_step_mean, mean in zip(LEVELS, found.one_step_mean, found.mean, strict=True):
        values, sd, *wanted, covariance = oracle.limit(
            mdp.kernel(), mdp.rewards, mdp.discount, policy, level, shares
        )
        np.testing.assert_allclose(found.values, values, rtol=1e-12)
        np.testing.assert_allclose(found.one_step_sd, sd, rtol=1e-12)
        np.testing.assert_allclose(one_step_mean, wanted[0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(mean, wanted[1], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found.covariance, covariance, rtol=1e-12)
        np.testing.assert_allclose(found.sd, np.sqrt(np.diag(covariance)), rtol=1e-12)
    np.testing.assert_allclose(
        found.one_step(found.mean), found.one_step_mean, rtol=1e-10, atol=1e-13
    )


def test_limit_is_the_papers_where_the_reward_does_not_depend_on_the_next_state():
    rng = np.random.default_rng(6)
    kernel = random_kernel(rng, 4, 2)
    mdp = brmdp.TabularMDP(kernel, rng.random((4, 2)), 0.7)
    policy = np.array([1, 0, 0, 1])
    found = asymptotic_normality(mdp, policy, 0.9)
    rows, values = kernel[np.arange(4), policy], brmdp.evaluate_in_mdp(mdp, policy)
    variance = rows @ values**2 - (rows @ values) ** 2
    sigma = np.sqrt(variance / visit_frequencies(mdp, policy))
    np.testing.assert_allclose(found.sigma, sigma, rtol=1e-9)
    np.testing.assert_allclose(found.lambda_, stats.norm.ppf(0.9) * sigma, rtol=1e-9)
    np.testing.assert_allclose(
        found.mean_bound, 0.7 / 0.3 * stats.norm.ppf(0.9) * sigma.max(), rtol=1e-9
    )


def test_levels_move_the_mean_only():
    mdp, policy = random_problem(11)
    found = asymptotic_normality(mdp, policy, LEVELS)
    assert found.mean.shape == found.one_step_mean.shape == (5, 4)
    assert (np.diff(found.mean, axis=0) > 0).all()
    np.testing.assert_allclose(found.mean, -found.mean[::-1], atol=1e-12)
    assert (found.mean[2] == 0.0).all()
    assert (np.abs(found.mean).max(axis=1) <= found.mean_bound * (1 + 1e-12)).all()
    single = asymptotic_normality(mdp, policy, 0.05)
    assert single.mean.shape == (4,)
    np.testing.assert_array_equal(single.mean, found.mean[0])
    np.testing.assert_array_equal(single.covariance, found.covariance)
    table = asymptotic_normality(mdp, policy, LEVELS[:4].reshape(2, 2))
    np.testing.assert_array_equal(table.mean, found.mean[:4].reshape(2, 2, 4))


def test_the_bound_on_the_mean_is_reached_where_all_states_are_alike():
    mdp = brmdp.TabularMDP(np.full((3, 1, 3), 1 / 3), np.tile([0.0, 0.5, 1.0], (3, 1, 1)), 0.8)
    found = asymptotic_normality(mdp, [0, 0, 0], 0.1)
    np.testing.assert_allclose(np.abs(found.mean), found.mean_bound, rtol=1e-12)


def test_expansion_and_adjustment():
    mdp, policy = random_problem(12)
    found = asymptotic_normality(mdp, policy, LEVELS)
    np.testing.assert_allclose(found.expansion(400), found.values + found.mean / 20.0, rtol=1e-13)
    np.testing.assert_allclose(found.adjustment(400), found.one_step_mean / 20.0, rtol=1e-13)
    noise = np.random.default_rng(1).normal(size=(4_000, 4))
    drawn = np.array([found.expansion(400, z)[1] for z in noise])
    fit = normal_fit(drawn, found.values + found.mean[1] / 20.0, found.sd / 20.0)
    assert (np.abs(fit.bias) < 4 * fit.bias_error).all()
    assert (np.abs(fit.variance_ratio - 1) < 4 * VARIANCE_ERROR / math.sqrt(3_999)).all()
    drawn_covariance = np.cov(20.0 * drawn.T)
    scale = np.sqrt(np.outer(np.diag(found.covariance), np.diag(found.covariance)))
    assert np.abs((drawn_covariance - found.covariance) / scale).max() < 4 * math.sqrt(2 / 4_000)


def test_one_step_adjustment_against_beta_quantiles():
    rng = np.random.default_rng(9)
    phi = rng.uniform(0.5, 9.0, (2, 3, 2))
    mdp = brmdp.TabularMDP(random_kernel(rng, 2, 3), rng.random((2, 3, 2)), 0.8)
    values = rng.random(2) * 4
    found = one_step_adjustment(brmdp.DirichletBelief(phi), mdp, values, 0.15)
    risk = oracle.two_state_risk(phi, 0.15)
    for s in range(2):
        for a in range(3):
            targets = mdp.rewards[s, a] + 0.8 * values
            assert found[s, a] == pytest.approx(
                risk(s, a, targets) - mdp.kernel()[s, a] @ targets, abs=1e-9
            )


def test_one_step_adjustment_of_inadmissible_actions():
    kernel = np.full((2, 2, 2), 0.5)
    mask = np.array([[True, False], [True, True]])
    mdp = brmdp.TabularMDP(kernel, np.zeros((2, 2)), 0.8, admissible=mask)
    found = one_step_adjustment(
        brmdp.DirichletBelief(2 * kernel, admissible=mask), mdp, [0.0, 1.0], 0.5
    )
    assert np.isneginf(found[0, 1])
    np.testing.assert_allclose(
        found[mask], 0.0, atol=1e-9
    )  # the median of a symmetric law is its mean
    with pytest.raises(InvalidInputError, match="admissible"):
        one_step_adjustment(brmdp.DirichletBelief(2 * kernel), mdp, [0.0, 1.0], 0.5)


# --- replications ---------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [1.0, 3.0])
def test_a_replication_is_the_nested_quantile_value(prior):
    mdp, policy = random_problem(21, n_states=2)
    levels = [0.9, 0.1, 0.4]
    found = replicate_normality(mdp, policy, 60, levels, prior=prior, rng=np.random.default_rng(7))
    phi = np.full((2, 2, 2), prior)
    phi[np.arange(2), policy] += transition_counts(mdp, policy, 60, rng=np.random.default_rng(7))
    for level, deviation in zip(levels, found, strict=True):
        risk = oracle.two_state_risk(phi, level)
        values = planning.evaluate_under_belief(
            risk, mdp.rewards, mdp.discount, policy, tolerance=1e-9
        )
        wanted = math.sqrt(60) * (values - brmdp.evaluate_in_mdp(mdp, policy))
        np.testing.assert_allclose(deviation, wanted, atol=1e-7)
    single = replicate_normality(mdp, policy, 60, 0.1, prior=prior, rng=np.random.default_rng(7))
    assert single.shape == (2,)
    np.testing.assert_allclose(single, found[1], atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_replications_follow_the_expansion_of_the_proof(seed):
    """√N times the remainder shrinks like N^{−1/2}.

    From N = 10³ to 10⁵ that is a factor of 10, less what its own scatter allows.
    """
    mdp, policy = random_problem(30 + seed)
    kernel, scaled = mdp.kernel(), {}
    for steps in (1_000, 100_000):
        remainders = []
        for run in range(6):
            stream = (seed, steps, run)
            got = replicate_normality(mdp, policy, steps, LEVELS, rng=np.random.default_rng(stream))
            counts = transition_counts(mdp, policy, steps, rng=np.random.default_rng(stream))
            for level, deviation in zip(LEVELS, got, strict=True):
                values, leading = oracle.expansion_of_the_proof(
                    kernel, mdp.rewards, mdp.discount, policy, level, counts
                )
                remainders.append(np.abs(deviation - math.sqrt(steps) * (leading - values)).max())
        scaled[steps] = np.mean(remainders)
    spread = asymptotic_normality(mdp, policy, 0.5).sd.max()
    assert scaled[100_000] < 0.05 * spread
    assert scaled[1_000] / scaled[100_000] > 5.0


def test_adjustments_have_the_stated_mean():
    mdp, policy = random_problem(41, n_states=3, discount=0.7)
    limit = asymptotic_normality(mdp, policy, 0.1)
    steps, found = 20_000, []
    for run in range(60):
        phi = np.ones((3, 2, 3))
        phi[np.arange(3), policy] += transition_counts(
            mdp, policy, steps, rng=np.random.default_rng((4, run))
        )
        found.append(
            one_step_adjustment(brmdp.DirichletBelief(phi), mdp, limit.values, 0.1)[
                np.arange(3), policy
            ]
        )
    fit = normal_fit(found, limit.adjustment(steps), limit.one_step_sd / math.sqrt(steps))
    assert (np.abs(fit.bias) < 4 * fit.bias_error).all()
    assert (np.abs(fit.variance_ratio - 1) < 4 * VARIANCE_ERROR / math.sqrt(59)).all()


@pytest.mark.long
def test_replications_approach_the_limit():
    """150 replications tell 20 steps from the limit, and not 5,000; 5 levels and 3 states each."""
    mdp, policy = random_problem(42, n_states=3, discount=0.6)
    limit = asymptotic_normality(mdp, policy, LEVELS)
    fits = {}
    for steps in (20, 5_000):
        drawn = [
            replicate_normality(mdp, policy, steps, LEVELS, rng=np.random.default_rng((5, run)))
            for run in range(150)
        ]
        fits[steps] = normal_fit(drawn, limit.mean, limit.sd)
    assert (np.abs(fits[20].bias) / fits[20].bias_error).max() > 8.0
    assert fits[20].distance.max() > stats.kstwo.isf(1e-6, 150)
    assert (np.abs(fits[5_000].bias) < 4 * fits[5_000].bias_error).all()
    assert (np.abs(fits[5_000].variance_ratio - 1) < 4 * VARIANCE_ERROR / math.sqrt(149)).all()
    # probability 0.001 for each, and the 15 are far from independent
    assert fits[5_000].distance.max() < stats.kstwo.isf(1e-3, 150)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_limit_law_at_large_samples(seed):
    """800 replications of 20,000 steps follow the law.

    The bias of order N^{−1/2} may be 0.05 standard deviations.
    """
    mdp, policy = random_problem(50 + seed, n_states=5)
    limit = asymptotic_normality(mdp, policy, LEVELS)
    drawn = np.array(
        [
            replicate_normality(mdp, policy, 20_000, LEVELS, rng=np.random.default_rng((seed, run)))
            for run in range(800)
        ]
    )
    for samples, mean, sd in (
        (drawn, limit.mean, limit.sd),
        (limit.one_step(drawn), limit.one_step_mean, limit.one_step_sd),
    ):
        fit = normal_fit(samples, mean, sd)
        assert (np.abs(fit.bias) < 4 * sd / math.sqrt(800) + 0.05 * sd).all()
        assert (np.abs(fit.variance_ratio - 1) < 4 * VARIANCE_ERROR / math.sqrt(799)).all()
        # a hundred comparisons in all
        assert fit.distance.max() < stats.kstwo.isf(1e-4, 800)
    # entries of the one-step limit are independent
    correlation = np.corrcoef(limit.one_step(drawn)[:, 2].T)
    assert np.abs(correlation[np.triu_indices(5, 1)]).max() < 4 / math.sqrt(800)


def test_random_problems_visit_every_state():
    rng = np.random.default_rng(1)
    for least in (0.02, 0.1):
        problem = random_ergodic_mdp(5, 3, least, rng=rng)
        assert visit_frequencies(problem.mdp, problem.policy).min() >= least
        assert problem.mdp.rewards.shape == (5, 3, 5)
        assert ((problem.mdp.rewards >= 0) & (problem.mdp.rewards <= 1)).all()
    twin = random_ergodic_mdp(5, 3, 0.02, rng=np.random.default_rng(1))
    again = random_ergodic_mdp(5, 3, 0.02, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(twin.mdp.kernel(), again.mdp.kernel())
    np.testing.assert_array_equal(twin.policy, again.policy)


# --- comparing with a law -------------------------------------------------------------------------


def test_normal_fit_agrees_with_scipy():
    rng = np.random.default_rng(2)
    samples = rng.gamma(3.0, size=(80, 2, 3))
    mean, sd = rng.normal(2.5, 0.3, (2, 3)), np.array([1.0, 1.5, 2.0])
    fit = normal_fit(samples, mean, sd)
    assert fit.replications == 80
    for i in range(2):
        for j in range(3):
            column = samples[:, i, j]
            wanted = stats.kstest(column, stats.norm(mean[i, j], sd[j]).cdf).statistic
            assert fit.distance[i, j] == pytest.approx(wanted, rel=1e-12)
            assert fit.bias[i, j] == pytest.approx(np.mean(column) - mean[i, j], rel=1e-12)
            assert fit.bias_error[i, j] == pytest.approx(stats.sem(column), rel=1e-12)
            assert fit.variance_ratio[i, j] == pytest.approx(
                np.var(column, ddof=1) / sd[j] ** 2, rel=1e-12
            )
    np.testing.assert_allclose(
        fit.variance_ratio_error, fit.variance_ratio * VARIANCE_ERROR / math.sqrt(79)
    )
    assert fit.critical_distance == pytest.approx(
        stats.kstwobign.isf(0.05) / math.sqrt(80), rel=1e-9
    )


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [[0, 0], [0, 0, 2, 0], [0, 0, -1, 0], [0.0] * 4, "left", None])
def test_bad_policies(policy):
    mdp, _ = random_problem(0)
    for call in (
        lambda: asymptotic_normality(mdp, policy, 0.1),
        lambda: visit_frequencies(mdp, policy),
        lambda: replicate_normality(mdp, policy, 10, 0.1, rng=np.random.default_rng(0)),
    ):
        with pytest.raises(InvalidInputError, match="policy"):
            call()


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, [0.5, 1.2], float("nan"), "half"])
def test_bad_levels(alpha):
    mdp, policy = random_problem(0)
    with pytest.raises(InvalidInputError, match="alpha"):
        asymptotic_normality(mdp, policy, alpha)
    with pytest.raises(InvalidInputError, match="alphas"):
        replicate_normality(mdp, policy, 10, alpha, rng=np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="alpha"):
        one_step_adjustment(brmdp.DirichletBelief.uniform(4, 2), mdp, np.zeros(4), alpha)


@pytest.mark.parametrize("steps", [0, -3, 2.5, True, "many"])
def test_bad_steps(steps):
    mdp, policy = random_problem(0)
    limit = asymptotic_normality(mdp, policy, 0.1)
    for call in (
        lambda: replicate_normality(mdp, policy, steps, 0.1, rng=np.random.default_rng(0)),
        lambda: limit.expansion(steps),
        lambda: limit.adjustment(steps),
    ):
        with pytest.raises(InvalidInputError, match="steps"):
            call()


def test_other_bad_input():
    mdp, policy = random_problem(0)
    limit = asymptotic_normality(mdp, policy, 0.1)
    myopic = brmdp.TabularMDP(mdp.kernel(), mdp.rewards, 0.0)
    uniform = brmdp.DirichletBelief.uniform(4, 2)

    def adjusted(belief=uniform, mdp=mdp, values=(0, 0, 0, 0)):
        return one_step_adjustment(belief, mdp, values, 0.1)

    cases = {
        "mdp": lambda: asymptotic_normality(mdp.kernel(), policy, 0.1),
        "discount": lambda: asymptotic_normality(myopic, policy, 0.1),
        "prior": lambda: replicate_normality(
            mdp, policy, 10, 0.1, prior=0.0, rng=np.random.default_rng(0)
        ),
        "deviations": lambda: limit.one_step(np.zeros((3, 5))),
        "noise": lambda: limit.expansion(10, np.zeros(3)),
        "n_states": lambda: random_ergodic_mdp(0, 2, rng=np.random.default_rng(0)),
        "least_visited must lie": lambda: random_ergodic_mdp(
            4, 2, 0.25, rng=np.random.default_rng(0)
        ),
        "samples must be finite": lambda: normal_fit([[1.0], [float("nan")]], 0.0, 1.0),
        "samples must hold": lambda: normal_fit([[1.0]], 0.0, 1.0),
        "sd": lambda: normal_fit(np.ones((5, 2)), 0.0, [1.0, 0.0]),
        "mean": lambda: normal_fit(np.ones((5, 2)), np.zeros(3), 1.0),
        "belief": lambda: visit_frequencies(np.eye(3), [0, 0, 0]),
        r"alpha must hold at least one level; got shape \(0,\)": lambda: asymptotic_normality(
            mdp, policy, []
        ),
        "alphas must hold at least one level": lambda: replicate_normality(
            mdp, policy, 10, [], rng=0
        ),
        r"values must hold one number per state, shape \(4,\); got \(2,\)": lambda: adjusted(
            values=[0, 0]
        ),
        "values must be finite; got nan": lambda: adjusted(values=[0, 0, float("nan"), 0]),
        r"mdp must be a brmdp\.TabularMDP; got DirichletBelief": lambda: adjusted(mdp=uniform),
        "belief must be a brmdp belief": lambda: adjusted(belief=None),
        r"belief must have the states and actions of mdp, \(4, 2\); got \(3, 2\)": lambda: adjusted(
            belief=brmdp.DirichletBelief.uniform(3, 2)
        ),
    }
    for words, call in cases.items():
        with pytest.raises(InvalidInputError, match=words):
            call()


def test_an_impossible_demand_on_visits_ends(monkeypatch):
    monkeypatch.setattr("brmdp.theory.normality.MAX_DRAWS", 5)
    with pytest.raises(InvalidInputError, match=r"least_visited=0\.2499 .* none of 5"):
        random_ergodic_mdp(4, 2, 0.2499, rng=np.random.default_rng(0))
