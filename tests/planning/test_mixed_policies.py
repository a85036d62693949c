"""Policies that draw their actions, wherever a policy is taken.

The references: a linear system put together term by term for a known kernel, in fractions where the
last digit counts; for risk measures, a fixed-point iteration that mixes the oracle's own values.
"""

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse, stats

import brmdp
from brmdp import theory
from brmdp.decisions import certify
from brmdp.planning.guarantees import certificate_of
from brmdp.risk.dirichlet import DirichletMeasure
from foreign import Jittered
from oracles import dirichlet_functional, planning
from oracles.decisions import one_hot, policy_value
from problems import (
    MEASURES,
    RANDOM,
    Problem,
    dense_draws,
    drawn_policy,
    followed,
    inadmissible,
    iterate_backup,
    known,
    level_array,
    measure,
    problem,
    scenarios,
    solved,
)

sys.path.append(str(Path(__file__).parents[2] / "examples" / "extend"))
from own_risk_measure import Entropic

KINDS = [f"{kind}-{seed}" for kind in RANDOM for seed in (1, 2)]
METHODS = ("newton", "value-iteration")
ACCURACY = 1e-12
beta_tails = dirichlet_functional.merged(dirichlet_functional.beta_tails)


def plain_values(kernel, rewards, weights, discount):
    """V^π by one linear system, for more states than a triple loop can handle."""
    rows = (weights[:, :, None] * kernel).sum(axis=1)
    paid = (weights[:, :, None] * kernel * rewards).sum(axis=(1, 2))
    return np.linalg.solve(np.eye(len(rows)) - discount * rows, paid)


def mean_kernel(case):
    return case.belief.mean()


# --- known kernels and the posterior mean ---------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_mean_is_a_linear_system(kind):
    case = problem(kind)
    weights = drawn_policy(case.admissible, 1)
    wanted = policy_value(mean_kernel(case), case.rewards, weights, case.discount)
    for method in METHODS:
        got = case.evaluate(weights, brmdp.Mean(), method=method)
        assert np.abs(got.values - wanted).max() <= got.error_bound + ACCURACY
        assert got.error_bound <= 1e-7
        np.testing.assert_allclose(
            got.kernel(), (weights[:, :, None] * mean_kernel(case)).sum(axis=1), atol=1e-14
        )


@pytest.mark.parametrize("n", [1, 2, 7, 48, 49, 80])
def test_policies_in_a_known_mdp_are_linear_systems(n):
    """Both sides of the size up to which elimination is hand-written."""
    rng = np.random.default_rng(n)
    admissible = rng.random((n, 3)) < 0.7
    admissible[np.arange(n), rng.integers(3, size=n)] = True
    kernel = rng.dirichlet(np.full(n, 0.3), size=(n, 3)) * admissible[:, :, None]
    rewards = rng.normal(size=(n, 3, n))
    mdp = brmdp.TabularMDP(kernel, rewards, 0.97, admissible=admissible)
    policies = np.stack([drawn_policy(admissible, seed) for seed in range(4)])
    found = brmdp.evaluate_all_in_mdp(mdp, policies)
    assert found.shape == (4, n)
    for weights, values in zip(policies, found, strict=True):
        wanted = policy_value(kernel, rewards, weights, 0.97)
        np.testing.assert_allclose(values, wanted, rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(brmdp.evaluate_in_mdp(mdp, weights), values)


def random_graph(n, seed):
    """Three random successors of every pair; action 1 is ruled out in every fifth state."""
    rng = np.random.default_rng(seed)
    kernel = np.zeros((n, 2, n))
    for pair in kernel.reshape(2 * n, n):
        pair[rng.choice(n, 3, replace=False)] = rng.dirichlet(np.ones(3))
    kernel[::5, 1] = 0.0
    return kernel, rng.normal(size=(n, 2)), kernel.any(axis=2)


def long_chain(n):
    """Left is certain; right moves on or stays, and pays at the end."""
    states = np.arange(n)
    kernel = np.zeros((n, 2, n))
    kernel[states, 0, np.maximum(states - 1, 0)] = 1.0
    kernel[states, 1, states] += 0.3
    kernel[states, 1, np.minimum(states + 1, n - 1)] += 0.7
    rewards = np.zeros((n, 2))
    rewards[n - 1, 1] = 1.0
    return kernel, rewards, np.ones((n, 2), dtype=bool)


@pytest.mark.parametrize("discount", [0.9, 0.9999])
@pytest.mark.parametrize("world", ["graph", "chain"])
def test_many_states(world, discount):
    """Beyond 600 states systems are solved iteratively, or in a band where that fails."""
    kernel, rewards, admissible = random_graph(700, 8) if world == "graph" else long_chain(700)
    weights = drawn_policy(admissible, 3)
    wanted = plain_values(kernel, rewards[:, :, None], weights, discount)
    rows = sparse.csr_array(kernel.reshape(-1, 700))
    mdp = brmdp.TabularMDP(rows, rewards, discount, admissible=admissible)
    size = np.abs(wanted).max()
    np.testing.assert_allclose(brmdp.evaluate_in_mdp(mdp, weights), wanted, atol=1e-9 * size)
    got = brmdp.evaluate_under_belief(mdp, rewards, discount, weights, risk=brmdp.Mean())
    assert np.abs(got.values - wanted).max() <= got.error_bound + 1e-12 * size / (1 - discount)
    assert got.error_bound <= 1e-7 * size


@pytest.mark.long
@pytest.mark.parametrize("world", ["graph", "chain"])
def test_quantiles_of_many_states_are_a_fixed_point(world):
    kernel, rewards, admissible = random_graph(700, 9) if world == "graph" else long_chain(700)
    phi = sparse.csr_array(np.where(kernel > 0, 1 + 20 * kernel, 0).reshape(-1, 700))
    case = Problem(brmdp.DirichletBelief(phi, admissible=admissible), rewards, 0.99)
    weights = drawn_policy(admissible, 4)
    got = case.evaluate(weights, brmdp.Quantile(0.3))
    q_values = brmdp.backup(case.belief, rewards, 0.99, got, risk=brmdp.Quantile(0.3)).q_values
    distance = np.abs(followed(weights, q_values) - got.values).max()
    assert got.error_bound <= 1e-6 * np.abs(got.values).max()
    assert distance <= 1.99 * got.error_bound + ACCURACY


def test_the_bound_covers_the_last_digit():
    """Thirds are rounded, and so is their sum: the reference is solved in fractions."""
    third, gamma = Fraction(1, 3), Fraction(0.999)
    kernel = np.array([[[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]], [[0.125, 0.875]] * 3])
    missed = []
    for seed in range(40):
        rewards = np.random.default_rng(seed).normal(size=(2, 3))
        rows = [[sum(third * Fraction(p[t]) for p in kernel[s]) for t in (0, 1)] for s in (0, 1)]
        paid = [sum(third * Fraction(r) for r in rewards[s]) for s in (0, 1)]
        (a, b), (c, d) = ([(s == t) - gamma * rows[s][t] for t in (0, 1)] for s in (0, 1))
        exact = [(d * paid[0] - b * paid[1]), (a * paid[1] - c * paid[0])]
        mdp = brmdp.TabularMDP(kernel, rewards, 0.999)
        got = brmdp.evaluate_under_belief(
            mdp, rewards, 0.999, np.full((2, 3), 1 / 3), risk=brmdp.Mean()
        )
        off = [abs(Fraction(got.values[s]) - exact[s] / (a * d - b * c)) for s in (0, 1)]
        if max(off) > got.error_bound:
            missed.append((seed, float(max(off)), got.error_bound))
    assert not missed


# --- risk measures, with the oracle's own values --------------------------------------------------


def check_with_oracle(case, maker, risk, seeds=(1, 2)):
    for seed in seeds:
        weights = drawn_policy(case.admissible, seed)
        wanted = planning.evaluate_mixture(risk, case.rewards, case.discount, weights, ACCURACY)
        for tolerance in (1.0, 1e-3, None):
            for method in METHODS:
                for initial in (None, wanted + 0.1):
                    got = case.evaluate(
                        weights, maker(), tolerance=tolerance, method=method, initial=initial
                    )
                    assert np.abs(got.values - wanted).max() <= got.error_bound + ACCURACY
                    assert got.error_bound <= (tolerance or 1e-6)
    return got


def two_states(seed, discount):
    rng = np.random.default_rng(seed)
    phi = np.exp(rng.uniform(np.log(0.2), np.log(20.0), (2, 3, 2)))
    phi[0, 0, 1] = 0.0
    return Problem(brmdp.DirichletBelief(phi), rng.normal(size=(2, 3, 2)), discount)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_quantiles_with_a_beta_quantile_by_bisection(seed):
    case = two_states(seed, 0.4)
    levels = level_array(case.shape)
    risk = planning.dirichlet_quantile_risk(beta_tails, case.belief.concentration(), levels)
    assert check_with_oracle(case, lambda: brmdp.Quantile(levels), risk).status == "converged"


@pytest.mark.long
def test_cvar_with_beta_functions():
    case = two_states(5, 0.4)
    levels = level_array(case.shape)
    risk = planning.dirichlet_cvar_risk(beta_tails, case.belief.concentration(), levels)
    assert check_with_oracle(case, lambda: brmdp.CVaR(levels), risk, (1,)).status == "converged"


@pytest.mark.long
@pytest.mark.parametrize("lower_tail", [False, True])
def test_scenarios_with_the_oracle(lower_tail):
    case = scenarios(3)
    levels = level_array(case.shape)
    kernels = case.belief.pattern.dense(case.belief.scenario_entries)
    risk = planning.scenario_risk(kernels, case.belief.weights, levels, lower_tail=lower_tail)
    kind = brmdp.CVaR if lower_tail else brmdp.Quantile
    assert check_with_oracle(case, lambda: kind(levels), risk).status == "converged"


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sparse-2", "inadmissible-1"])
def test_sampled_quantile_with_the_oracle(kind):
    case = problem(kind)
    levels = level_array(case.shape)

    def maker():
        return brmdp.Quantile(levels, brmdp.MonteCarlo(samples=25, rng=5))

    drawn = dense_draws(maker(), case.belief)
    risk = planning.sampled_quantile_risk(drawn, levels)
    assert check_with_oracle(case, maker, risk).status == "sampled"


@pytest.mark.long
def test_a_measure_of_ones_own_with_the_oracle():
    case = inadmissible(2)
    draws = case.belief.sample_entries(60, rng=np.random.default_rng(0))
    kernels = case.belief.pattern.dense(draws)

    def risk(s, a, targets):
        return -np.log(np.mean(np.exp(-1.5 * (kernels[:, s, a] @ targets)))) / 1.5

    assert check_with_oracle(case, lambda: Entropic(1.5, samples=60), risk).status == "sampled"


@pytest.mark.long
@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_measure_is_the_fixed_point_of_its_backup(kind, name):
    case = problem(kind)
    weights = drawn_policy(case.admissible, 2)
    wanted = iterate_backup(case, name, weights, accuracy=ACCURACY)
    got = case.evaluate(weights, measure(name, case.shape))
    assert np.abs(got.values - wanted).max() <= got.error_bound + ACCURACY
    assert got.status == solved(name)


# --- the solution ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mean", "quantile-array", "cvar", "sampled-quantile"])
@pytest.mark.parametrize("kind", ["dense-1", "inadmissible-1", "disturbance-1", "scenarios-1"])
def test_probabilities_of_one_are_actions(kind, name):
    case = problem(kind)
    policy = case.admissible.argmax(axis=1)
    sure = one_hot(policy, case.shape[1])
    one, other = (case.evaluate(p, measure(name, case.shape)) for p in (policy, sure))
    assert np.abs(one.values - other.values).max() <= one.error_bound + other.error_bound
    assert other.error_bound <= 1.1 * one.error_bound + 1e-7
    np.testing.assert_allclose(one.kernel(), other.kernel(), atol=1e-6)
    np.testing.assert_allclose(one.q_values, other.q_values, atol=1e-7)
    np.testing.assert_array_equal(other.policy, sure)
    arguments = (case.belief, case.rewards, case.discount)
    drawn = [brmdp.posterior_quantile_value(*arguments, p, rng=1).values for p in (policy, sure)]
    np.testing.assert_array_equal(*drawn)
    priors = [brmdp.prior_reliance(case.belief, p, case.discount) for p in (policy, sure)]
    assert str(priors[0]) == str(priors[1])


def test_actions_of_probability_one_have_the_same_values_in_a_known_mdp():
    case = known(3)
    policy = np.array([0, 1, 2, 1, 0])
    np.testing.assert_array_equal(
        brmdp.evaluate_in_mdp(case.belief, policy),
        brmdp.evaluate_in_mdp(case.belief, one_hot(policy, 3)),
    )


@pytest.mark.parametrize("name", ["mean", "quantile-array", "cvar"])
def test_what_a_solution_says(name):
    case = problem("inadmissible-1")
    weights = drawn_policy(case.admissible, 1)
    risk = measure(name, case.shape)
    got = case.evaluate(weights, risk)
    np.testing.assert_allclose(got.policy, weights, rtol=1e-15)
    assert not got.policy.flags.writeable
    assert not got.tied.any()
    assert got.policy_gap == 0.0
    np.testing.assert_allclose(followed(weights, got.q_values), got.values, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(np.isneginf(got.q_values), ~case.admissible)
    # the kernel: the mixed rows of a single backup, and the values' own equation up to second order
    once = brmdp.backup(case.belief, case.rewards, case.discount, got, risk=risk)
    mixed = (weights[:, :, None] * once.kernel).sum(axis=1)
    np.testing.assert_allclose(got.kernel(), mixed, atol=1e-6)
    np.testing.assert_allclose(got.kernel("csr").toarray(), got.kernel())
    # a warm start, also for a plan and from one
    again = case.evaluate(weights, risk, initial=got)
    assert again.iterations <= got.iterations
    assert np.abs(again.values - got.values).max() <= again.error_bound + got.error_bound
    best = case.plan(risk, initial=got)
    assert (best.values >= got.values - best.error_bound - got.error_bound).all()
    case.evaluate(weights, risk, initial=best)
    assert "error_bound" in repr(got)


def test_only_the_actions_of_the_policy_are_evaluated(monkeypatch):
    case = problem("dense-1")
    weights = drawn_policy(case.admissible, 1)
    assert (weights == 0.0).any()
    asked = []
    plain = DirichletMeasure.evaluate

    def recorded(self, targets, pairs, out):
        asked.extend(pairs.tolist())
        return plain(self, targets, pairs, out)

    monkeypatch.setattr(DirichletMeasure, "evaluate", recorded)
    part = case.evaluate(weights, brmdp.Quantile(0.2), all_actions=False)
    assert set(asked) == set(np.flatnonzero(weights).tolist())
    np.testing.assert_array_equal(np.isneginf(part.q_values), weights == 0.0)
    np.testing.assert_allclose(followed(weights, part.q_values), part.values, rtol=0, atol=1e-12)
    whole = case.evaluate(weights, brmdp.Quantile(0.2))
    assert set(asked) == set(range(weights.size))
    np.testing.assert_array_equal(whole.values, part.values)


def test_a_penalty_on_an_action_that_is_never_taken_does_not_coarsen_the_values():
    case = problem("dense-1")
    weights = drawn_policy(case.admissible, 1)
    rewards = np.where((weights == 0.0)[:, :, None], -1e9, case.rewards)
    for risk in (brmdp.Mean(), brmdp.Quantile(0.2)):
        plain = case.evaluate(weights, risk)
        punished = Problem(case.belief, rewards, case.discount).evaluate(weights, risk)
        assert punished.error_bound <= 1e-7
        np.testing.assert_allclose(punished.values, plain.values, atol=1e-7)


def test_a_measure_that_is_no_contraction_is_refused():
    class Doubling:
        def bind(self, belief):
            operator = Entropic(1.0, samples=5).bind(belief)
            operator.evaluate = lambda targets, pairs, out: (
                out.__setitem__(pairs, 2.0 * targets[belief.pattern.indptr[pairs]]) or 0.0
            )
            return operator

    case = problem("dense-1")
    with pytest.raises(brmdp.errors.RiskMeasureError):
        case.evaluate(drawn_policy(case.admissible), Doubling(), max_iterations=50)


def test_a_failure_carries_the_last_iterate():
    case = problem("dense-1")
    weights = drawn_policy(case.admissible)
    with pytest.raises(brmdp.ConvergenceError) as caught:
        case.evaluate(weights, brmdp.Quantile(0.2), max_iterations=2, method="value-iteration")
    np.testing.assert_allclose(caught.value.solution.policy, weights, rtol=1e-15)
    kept = case.evaluate(weights, brmdp.Quantile(0.2), max_iterations=2, raise_on_failure=False)
    assert kept.values.shape == (case.n_states,)


# --- values in posterior draws --------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["dense-1", "sparse-1", "inadmissible-1", "disturbance-1", "scenarios-1"]
)
def test_posterior_quantile_value_against_the_oracle(kind):
    """The oracle gets the same draws of the policy's rows, from the same stream."""
    case = problem(kind)
    weights = drawn_policy(case.admissible, 1)
    got = brmdp.posterior_quantile_value(
        case.belief, case.rewards, case.discount, weights, 0.1, samples=60, rng=6
    )
    pattern = case.belief.pattern
    pairs = np.flatnonzero(weights)
    flat = case.belief.sample_entries(60, pairs, rng=np.random.default_rng(6))
    kernels = np.zeros((60, *case.shape, case.n_states))
    position = 0
    for pair in pairs:
        for entry in range(pattern.indptr[pair], pattern.indptr[pair + 1]):
            kernels[:, *divmod(pair, case.shape[1]), pattern.next_states[entry]] += flat[
                :, position
            ]
            position += 1
    values = [policy_value(kernel, case.rewards, weights, case.discount) for kernel in kernels]
    wanted = np.sort(values, axis=0)[5]
    np.testing.assert_allclose(got.values, wanted, rtol=0, atol=1e-11)


# --- certificates ---------------------------------------------------------------------------------


def truths(case, n, seed):
    """``n`` kernels from NumPy's own Dirichlet sampler."""
    rng = np.random.default_rng(seed)
    if hasattr(case.belief, "scenario_entries"):
        kernels = case.belief.pattern.dense(case.belief.scenario_entries)
        return kernels[rng.choice(len(kernels), n, p=case.belief.weights)]
    drawn = np.zeros((n, *case.shape, case.n_states))
    if hasattr(case.belief, "outcomes"):
        shares = rng.dirichlet(case.belief.concentration(), n)
        for s, a in np.argwhere(case.admissible):
            for d, successor in enumerate(case.belief.outcomes[s, a]):
                drawn[:, s, a, successor] += shares[:, d]
        return drawn
    phi = case.belief.concentration()
    for s, a in np.argwhere(case.admissible):
        possible = np.flatnonzero(phi[s, a])
        drawn[:, s, a, possible] = rng.dirichlet(phi[s, a, possible], n)
    return drawn


UNLUCKY = 1e-5
"""Smallest p-value that passes: there are about a hundred comparisons."""


def check_certificate(case, weights, confidence, n, seed):
    """The level, the nested values, and the truths that they bound: violations at most α."""
    got = certificate_of(
        case.belief,
        case.rewards,
        case.discount,
        confidence,
        policy=weights,
        coverage_samples=n,
        rng=seed,
    )
    used, alpha = np.count_nonzero(weights), 1 - confidence
    independent = case.belief.rows_independent
    assert got.level == pytest.approx(
        1 - (1 - alpha) ** (1 / used) if independent else alpha / used, rel=1e-12
    )
    own = case.evaluate(weights, brmdp.Quantile(got.level), tolerance=1e-10)
    assert (got.values <= own.values + own.error_bound).all()
    assert (own.values - got.values).max() <= 1e-6
    np.testing.assert_allclose(got.policy, weights, rtol=1e-15)
    assert got.policy_gap is None
    values = np.array(
        [
            plain_values(kernel, case.rewards, weights, case.discount)
            for kernel in truths(case, n, 5)
        ]
    )
    violations = int((values < got.values - 1e-12).any(axis=1).sum())
    assert stats.binomtest(violations, n, alpha, alternative="greater").pvalue > UNLUCKY
    # the certificate's own check estimates the same probability
    missed = round(n * (1 - got.coverage))
    table = [[violations, n - violations], [missed, n - missed]]
    assert stats.fisher_exact(table).pvalue > UNLUCKY
    low, high = got.coverage_interval
    assert low <= got.coverage <= high
    return got, violations / n


@pytest.mark.parametrize("confidence", [0.5, 0.9])
@pytest.mark.parametrize("kind", ["dense-1", "sparse-1", "inadmissible-1", "disturbance-1"])
def test_truths_lie_above_their_certificates(kind, confidence):
    case = problem(kind)
    check_certificate(case, drawn_policy(case.admissible, 1), confidence, 400, 1)


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("kind", [*KINDS, "riverswim"])
def test_truths_lie_above_their_certificates_often(kind, confidence):
    case = problem(kind)
    for seed in (1, 2):
        check_certificate(case, drawn_policy(case.admissible, seed), confidence, 5000, seed)


def test_every_pair_needs_its_own_event():
    """With one event per state instead of one per pair, this certificate would be false.

    There are twenty uncertain actions in one state, and nothing else to learn: their average is
    almost certainly below the average of their quantiles at a level above one half.
    """
    n_actions, alpha = 20, 0.9
    phi = np.zeros((2, n_actions, 2))
    phi[0], phi[1, :, 1] = 30.0, 1.0
    rewards = np.zeros((2, n_actions, 2))
    rewards[0, :, 0] = 1.0
    case = Problem(brmdp.DirichletBelief(phi), rewards, 0.0)
    weights = np.stack([np.full(n_actions, 1 / n_actions), np.eye(n_actions)[0]])
    got, violations = check_certificate(case, weights, 1 - alpha, 4000, 2)
    by_state = case.evaluate(weights, brmdp.Quantile(1 - (1 - alpha) ** (1 / 2))).values
    values = truths(case, 4000, 6)[:, 0, :, 0].mean(axis=1)
    assert violations <= alpha < (values < by_state[0]).mean() - 0.02
    assert got.values[0] < by_state[0]


def test_a_given_policy_of_actions_is_certified_as_before():
    case = problem("dense-1")
    arguments = (case.belief, case.rewards, case.discount, 0.9)
    best = certificate_of(*arguments, coverage_samples=0)
    given = certificate_of(*arguments, policy=best.policy, coverage_samples=0)
    assert given.level == best.level
    np.testing.assert_allclose(given.values, best.values, rtol=0, atol=1e-7)
    sure = certificate_of(
        *arguments, policy=one_hot(best.policy, case.shape[1]), coverage_samples=0
    )
    assert sure.level == best.level
    np.testing.assert_allclose(sure.values, best.values, rtol=0, atol=1e-7)
    assert "policy_gap" not in repr(given)
    assert "policy_gap" in repr(best)
    assert given.policy_gap is None


@pytest.mark.parametrize("kind", ["scenarios-1", "disturbance-1"])
def test_dependent_rows_use_the_union_bound(kind):
    case = problem(kind)
    weights = drawn_policy(case.admissible, 1)
    got, _ = check_certificate(case, weights, 0.8, 300, 3)
    assert got.level == pytest.approx(0.2 / np.count_nonzero(weights))
    assert "union" in got.rule


# --- how far it rests on the prior ----------------------------------------------------------------


@pytest.mark.parametrize("discount", [0.0, 0.9])
@pytest.mark.parametrize("start", [0, 3, np.eye(6)[2]])
def test_time_is_split_over_actions(start, discount):
    belief = problem("riverswim").belief
    weights = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [0.1, 0.9], [0.3, 0.7], [0.8, 0.2]])
    found = brmdp.prior_reliance(belief, weights, discount, start=start)
    counts = belief.counts().sum(axis=2)
    prior = (belief.concentration() - belief.counts()).sum(axis=2)
    mixed = (weights[:, :, None] * belief.mean()).sum(axis=1, keepdims=True)
    begin = np.eye(6)[start] if isinstance(start, int) else start
    time = planning.discounted_time(mixed, np.zeros(6, dtype=int), discount, begin)
    in_pairs = time[:, None] * weights
    assert found.share == pytest.approx((in_pairs * prior / (prior + counts)).sum(), abs=1e-9)
    assert found.outweighed == pytest.approx(in_pairs[prior > counts].sum(), abs=1e-9)
    unseen = (counts == 0) & (weights > 0)
    assert unseen.any()
    np.testing.assert_array_equal(found.never_observed, np.flatnonzero(unseen.any(axis=1)))
    np.testing.assert_array_equal(found.pairs_never_observed, np.argwhere(unseen))
    assert found.never_observed_visits == pytest.approx(in_pairs[unseen].sum(), abs=1e-9)
    assert found.observations == counts[weights > 0].sum()
    assert (found.n_states, found.n_pairs) == (6, np.count_nonzero(weights))
    assert f"{unseen.sum()} of its {found.n_pairs} pairs" in " ".join(str(found).split())


def test_a_rare_action_without_data_is_named_but_weighs_little():
    belief = brmdp.DirichletBelief.uniform(2, 2)
    belief.observe([0, 1] * 500, 0, [1, 0] * 500)
    found = brmdp.prior_reliance(belief, np.array([[0.999, 0.001], [1.0, 0.0]]), 0.9, start=0)
    np.testing.assert_array_equal(found.pairs_never_observed, [[0, 1]])
    np.testing.assert_array_equal(found.never_observed, [0])
    assert 0.0 < found.never_observed_visits < 0.001
    assert not found.outweighs
    always = brmdp.prior_reliance(belief, [1, 0], 0.9, start=0)
    assert always.never_observed_visits > 0.5
    assert always.outweighs


def test_many_states_are_looked_at_iteratively():
    n = 300
    kernel, _, admissible = random_graph(n, 2)
    belief = brmdp.DirichletBelief(np.where(kernel > 0, 2.0, 0.0), admissible=admissible)
    weights = drawn_policy(admissible, 6)
    found = brmdp.prior_reliance(belief, weights, 0.95, start=0)
    assert found.share == pytest.approx(1.0, abs=found.accuracy)
    counts = np.zeros((n, 2))
    for s in range(n // 2):
        successor = int(np.flatnonzero(kernel[s, 0])[0])
        belief.observe([s] * 10, 0, [successor] * 10)
        counts[s, 0] = 10
    found = brmdp.prior_reliance(belief, weights, 0.95, start=0)
    mixed = (weights[:, :, None] * belief.mean()).sum(axis=1, keepdims=True)
    time = planning.discounted_time(mixed, np.zeros(n, dtype=int), 0.95, np.eye(n)[0])
    wanted = (time[:, None] * weights * 6.0 / (6.0 + counts)).sum()
    assert found.accuracy <= 5e-3
    assert found.share == pytest.approx(wanted, abs=found.accuracy)


def test_values_and_certificates_say_that_they_rest_on_the_prior():
    world = brmdp.envs.riverswim(6)
    belief = brmdp.DirichletBelief.uniform(6, 2)
    weights = np.full((6, 2), 0.5)
    with pytest.warns(brmdp.PriorWarning, match="this value rests heavily on the prior"):
        got = brmdp.evaluate_under_belief(
            belief, world.rewards, 0.9, weights, risk=brmdp.Quantile(0.1)
        )
    assert got.prior.n_pairs == 12
    assert "rests on the prior" in repr(got)
    found = certificate_of(belief, world.rewards, 0.9, 0.9, policy=weights, coverage_samples=0)
    assert found.prior.outweighs
    assert "Never observed: 12 of its 12 pairs" in " ".join(str(found).split())


def test_what_a_belief_of_ones_own_tells_is_checked_pair_by_pair():
    class Telling(Jittered):
        found = (np.full(3, 3.0), np.array([1.0, 9.0, 0.0]))

        def evidence(self, pairs):
            assert pairs.tolist() == [0, 1, 2]
            return self.found

    belief = Telling(np.ones((2, 2, 2)))
    weights = np.array([[0.5, 0.5], [1.0, 0.0]])
    got = brmdp.prior_reliance(belief, weights, 0.0, start=0)
    assert got.share == pytest.approx(0.5 * 0.75 + 0.5 * 0.25)
    np.testing.assert_array_equal(got.pairs_never_observed, [[1, 0]])
    for bad, message in (
        (
            (np.ones(2), np.ones(2)),
            r"evidence must return one number per state-action pair, \(3,\)",
        ),
        ((np.zeros(3), np.array([1.0, 0.0, 1.0])), "but is for action 1 in state 0"),
        ((np.ones(3), -np.ones(3)), "evidence must not be negative"),
    ):
        belief.found = bad
        with pytest.raises(brmdp.InvalidInputError, match=message):
            brmdp.prior_reliance(belief, weights, 0.9)


# --- bad input ------------------------------------------------------------------------------------

ADMISSIBLE = np.array([[True, True], [True, False], [True, True]])
GOOD = np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]])


def changed(state, probabilities):
    weights = GOOD.copy()
    weights[state] = probabilities
    return weights


BAD = {
    "a sum above one": (changed(0, [0.5, 0.6]), r"sum to one in every state; got the sum 1\.1 in"),
    "a sum below one": (changed(2, [0.5, 0.4]), r"got the sum 0\.9 in state 2"),
    "no action at all": (changed(2, [0.0, 0.0]), r"got the sum 0 in state 2"),
    "a negative one": (
        changed(2, [1.5, -0.5]),
        r"not negative.* got -0\.5 for action 1 in state 2",
    ),
    "an inadmissible action": (changed(1, [0.9, 0.1]), r"got 0\.1 for action 1 in state 1"),
    "NaN": (changed(0, [np.nan, 1.0]), r"must be finite; got nan at index \(0, 0\)"),
    "infinity": (changed(0, [np.inf, 0.0]), "must be finite; got inf"),
    "huge numbers": (changed(0, [1e308, 1e308]), "sum to one"),
    "(S, 1)": (np.ones((3, 1)), r"one action per state, shape \(3,\), or probabilities, \(3, 2\)"),
    "(1, S)": (np.zeros((1, 3), dtype=int), "one action per state"),
    "(A, S)": (np.full((2, 3), 0.5), "one action per state"),
    "one number": (0.5, "one action per state"),
    "booleans": (GOOD == 1.0, "probabilities in floating point.* got dtype bool"),
    "integers": (np.array([[1, 0], [1, 0], [0, 1]]), "in floating point.* got dtype int64"),
    "complex numbers": (GOOD + 0j, "real numbers"),
    "text": (GOOD.astype(str), "real numbers"),
    "objects": (GOOD.astype(object), "real numbers"),
    "masked": (np.ma.masked_array(GOOD, GOOD == 0.25), "masked"),
    "ragged": ([[0.5, 0.5], [1.0], [0.25, 0.75]], "NumPy says"),
}


def takers():
    """Everything that takes a policy, by name."""
    kernel = np.full((3, 2, 3), 1 / 3) * ADMISSIBLE[:, :, None]
    rewards = np.zeros((3, 2))
    belief = brmdp.DirichletBelief(3 * kernel, admissible=ADMISSIBLE)
    mdp = brmdp.TabularMDP(kernel, rewards, 0.5, admissible=ADMISSIBLE)
    problem_of = (belief, rewards, 0.5)
    return {
        "evaluate_under_belief": lambda p: brmdp.evaluate_under_belief(
            *problem_of, p, risk=brmdp.Quantile(0.2)
        ),
        "evaluate_in_mdp": lambda p: brmdp.evaluate_in_mdp(mdp, p),
        "posterior_quantile_value": lambda p: brmdp.posterior_quantile_value(
            *problem_of, p, samples=3
        ),
        "prior_reliance": lambda p: brmdp.prior_reliance(belief, p, 0.5),
        "certificate_of": lambda p: certificate_of(*problem_of, 0.9, policy=p, coverage_samples=0),
        "certify": lambda p: certify(*problem_of, policy=p, start=0, draws=200),
    }


@pytest.mark.parametrize("taker", takers())
@pytest.mark.parametrize("name", BAD)
def test_bad_policies_are_refused_by_name(taker, name):
    bad, message = BAD[name]
    with pytest.raises(brmdp.InvalidInputError, match=f"^policy.*{message}"):
        takers()[taker](bad)


@pytest.mark.filterwarnings("ignore::brmdp.PriorWarning")
@pytest.mark.parametrize("taker", takers())
def test_good_policies_are_taken(taker):
    """Also as lists, in single precision, and within the rounding of a sum."""
    for good in (GOOD, GOOD.tolist(), GOOD.astype(np.float32), GOOD * (1 + 1e-12)):
        takers()[taker](good)


@pytest.mark.parametrize("name", BAD)
def test_bad_policies_among_many_are_refused_by_name(name):
    bad, message = BAD[name]
    shape = np.shape(bad) if name != "ragged" else None
    mdp = brmdp.TabularMDP(
        np.full((3, 2, 3), 1 / 3) * ADMISSIBLE[:, :, None],
        np.zeros((3, 2)),
        0.5,
        admissible=ADMISSIBLE,
    )
    if shape == GOOD.shape and name not in ("booleans", "integers", "masked"):
        many, message = np.stack([GOOD.astype(np.asarray(bad).dtype), bad]), f"policies.*{message}"
    else:
        many, message = [bad], "policies"
    with pytest.raises(brmdp.InvalidInputError, match=message):
        brmdp.evaluate_all_in_mdp(mdp, many)


def test_the_policy_that_is_evaluated_sums_to_one():
    weights = GOOD * (1 + 5e-9)
    got = brmdp.evaluate_under_belief(
        brmdp.TabularMDP(np.full((3, 2, 3), 1 / 3), np.ones((3, 2)), 0.5),
        np.ones((3, 2)),
        0.5,
        weights,
        risk=brmdp.Mean(),
    )
    np.testing.assert_allclose(got.policy.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(got.values, 2.0, rtol=0, atol=1e-13)


def test_theory_still_wants_one_action_per_state():
    river = brmdp.envs.riverswim(4)
    half = np.full((4, 2), 0.5)
    with pytest.raises(brmdp.InvalidInputError, match="policy must hold one action per state"):
        theory.caution_cost(river, half, 0.1, 0, [100] * 4)
    belief = brmdp.DirichletBelief(1.0 + 100.0 * river.kernel())
    with pytest.raises(brmdp.InvalidInputError, match="policy must hold one action per state"):
        theory.observations_needed(belief, river.rewards, 0.9, half, 0.1, 0, epsilon=1.0)
    # the cost of caution itself is that of any policy
    assert (theory.exact_caution_cost(belief, river.rewards, 0.9, half, 0.1) > 0).all()
