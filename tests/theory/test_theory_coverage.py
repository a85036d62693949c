"""Worlds from the prior, Proposition 1 over random worlds, and the exposure of a policy."""

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp import theory
from oracles import online, planning, theory_examples
from problems import dense, disturbance, inadmissible, known, scenarios

# --- worlds from the prior ------------------------------------------------------------------------


def test_worlds_are_draws_from_the_prior():
    """An entry of Dir(φ₀, …, φ₀) is Beta(φ₀, (S − 1)φ₀).

    Kolmogorov–Smirnov test with one entry of each of 1,200 independent rows.
    """
    rng = np.random.default_rng(1)
    for concentration in (0.3, 1.0, 4.0):
        entries = [
            theory.draw_mdp(6, 4, 0.9, concentration=concentration, rng=rng)
            .kernel()[..., 0]
            .ravel()
            for _ in range(50)
        ]
        law = stats.beta(concentration, 5 * concentration)
        assert stats.kstest(np.concatenate(entries), law.cdf).pvalue > 1e-4


def test_worlds_are_reproducible_and_their_rewards_known():
    one, again, other = (theory.draw_mdp(3, 2, 0.8, rng=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.kernel(), again.kernel())
    assert (one.kernel() != other.kernel()).any()
    assert one.rewards.shape == (3, 2)
    assert one.discount == 0.8
    rewards = np.linspace(0, 1, 18).reshape(3, 2, 3)
    np.testing.assert_array_equal(
        theory.draw_mdp(3, 2, 0.8, rewards=rewards, rng=5).rewards, rewards
    )


# --- coverage -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_states", "n_actions", "confidence"), [(1, 2, 0.8), (3, 2, 0.9), (4, 3, 0.5)]
)
def test_levels_and_bounds_of_the_three_rules(n_states, n_actions, confidence):
    report = theory.replicate_coverage(
        n_states, n_actions, confidence, samples=50, discount=0.6, rng=3
    )
    alpha = 1 - confidence
    rules = (
        (report.certified, 1 - (1 - alpha) ** (1 / n_states)),
        (report.union_of_states, alpha / n_states),
        (report.union_of_pairs, alpha / (n_states * n_actions)),
    )
    phi = report.belief.concentration()
    assert phi.sum() == pytest.approx(n_states**2 * n_actions + 200)
    rewards = np.repeat(np.array(report.world.rewards)[:, :, None], n_states, axis=2)
    for certificate, level in rules:
        assert certificate.level == pytest.approx(level, rel=1e-12)
        assert certificate.confidence == pytest.approx((1 - level) ** n_states, rel=1e-12)
        assert certificate.confidence >= confidence * (1 - 1e-12)
        (values,), _ = online.quantile_value_iteration(phi[None], rewards, 0.6, level)
        np.testing.assert_allclose(certificate.values, values, rtol=0, atol=1e-7)
    assert (report.loss_of_union_of_states >= -1e-7).all()
    assert (report.loss_of_union_of_pairs >= report.loss_of_union_of_states - 1e-7).all()
    np.testing.assert_array_equal(
        report.gap_to_quantile, report.quantile.values - report.certified.values
    )
    kernel = report.world.kernel()
    np.testing.assert_allclose(
        report.true_values,
        online.policy_values(kernel, rewards, 0.6, report.certified.policy),
        atol=1e-10,
    )
    assert report.held_in_truth == (report.true_values >= report.certified.values).all()


def test_the_certified_bound_is_below_the_quantile_value():
    """The bounds do not exceed the posterior quantile, up to its interval, and there is a gap."""
    gaps = []
    for seed in range(12):
        report = theory.replicate_coverage(4, 2, 0.9, samples=400, rng=seed)
        assert (report.certified.values <= report.quantile.upper).all()
        assert report.certified.coverage_interval[1] >= 0.9
        gaps.append(report.gap_to_quantile.mean())
    assert min(gaps) > 0


def test_coverage_is_no_more_than_stated_when_nothing_compounds():
    """For γ → 0 coverage is 1 − α up to O(γ): the bounds hold iff S independent events occur."""
    samples = 20_000
    report = theory.replicate_coverage(3, 2, 0.9, discount=1e-3, samples=samples, rng=8)
    assert abs(report.certified.coverage - 0.9) < 1e-3 + 4 * np.sqrt(0.09 / samples)
    stated = (1 - 0.1 / 6) ** 3
    assert abs(report.union_of_pairs.coverage - stated) < 1e-3 + 4 * np.sqrt(
        stated * (1 - stated) / samples
    )


def test_coverage_agrees_with_an_independent_sampler():
    report = theory.replicate_coverage(
        3, 2, 0.7, discount=0.3, observations=20, samples=4000, rng=11
    )
    rng = np.random.default_rng(0)
    kernels = planning.sample_kernels(report.belief.concentration(), 4000, rng)
    rewards = np.repeat(np.array(report.world.rewards)[:, :, None], 3, axis=2)
    policy = report.certified.policy
    drawn = np.array([online.policy_values(kernel, rewards, 0.3, policy) for kernel in kernels])
    coverage = (drawn >= report.certified.values).all(axis=1).mean()
    error = np.sqrt(2 * coverage * (1 - coverage) / 4000)
    assert 0.7 < coverage < 0.9
    assert abs(coverage - report.certified.coverage) < 4 * error
    quantile = np.quantile(drawn, 0.3, axis=0, method="inverted_cdf")
    assert ((report.quantile.lower <= quantile) & (quantile <= report.quantile.upper)).all()


def test_coverage_is_reproducible():
    one, again, other = (
        theory.replicate_coverage(3, 2, samples=100, rng=seed) for seed in (4, 4, 5)
    )
    for get in (lambda r: r.certified.values, lambda r: r.quantile.values, lambda r: r.true_values):
        np.testing.assert_array_equal(get(one), get(again))
        assert (get(one) != get(other)).any()
    assert one.certified.coverage == again.certified.coverage


@pytest.mark.slow
def test_the_truth_is_covered_as_often_as_stated():
    """With γ = 0.001 nothing compounds, so the bounds hold in 80 % of the worlds, to 4 σ."""
    held = [
        theory.replicate_coverage(
            2, 2, 0.8, discount=1e-3, observations=30, samples=1, rng=seed
        ).held_in_truth
        for seed in range(1500)
    ]
    assert abs(np.mean(held) - 0.8) < 1e-3 + 4 * np.sqrt(0.16 / len(held))


# --- downside exposure ----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [dense, inadmissible, disturbance])
def test_sampled_exposure(make):
    """Regret in the same posterior draws, by looking at every policy; the interval is SciPy's."""
    case = make(3)
    policy = case.admissible.argmax(axis=1)
    found = theory.downside_exposure(
        case.belief,
        case.rewards,
        case.discount,
        policy,
        0.7,
        state=2,
        samples=60,
        confidence=0.9,
        rng=9,
    )
    kernels = case.belief.sample(60, rng=9)
    expected = [
        theory_examples.enumerated_regret(
            kernel, case.rewards, case.discount, policy, 2, case.admissible
        )
        for kernel in kernels
    ]
    np.testing.assert_allclose(found.regret, expected, rtol=0, atol=1e-8)
    reached = int(np.sum(np.array(expected) >= 0.7))
    assert 0 < reached < 60
    assert not found.exact
    assert found.probability == pytest.approx(reached / 60)
    interval = stats.binomtest(reached, 60).proportion_ci(0.9, method="exact")
    assert found.interval == pytest.approx((interval.low, interval.high), abs=1e-12)
    assert found.weights.sum() == pytest.approx(1)


def test_exposure_of_scenarios_is_exact():
    case = scenarios(4)
    policy = np.zeros(case.n_states, dtype=int)
    kernels = case.belief.pattern.dense(case.belief.scenario_entries)
    expected = [
        theory_examples.enumerated_regret(kernel, case.rewards, case.discount, policy, 1)
        for kernel in kernels
    ]
    for threshold in (*expected, 0.5 * min(expected), 1.01 * max(expected)):
        found = theory.downside_exposure(
            case.belief, case.rewards, case.discount, policy, threshold, state=1, samples=1
        )
        weight = sum(
            w
            for w, regret in zip(case.belief.weights, expected, strict=True)
            if regret >= threshold - 1e-9
        )
        assert found.exact
        assert found.probability == pytest.approx(weight, abs=1e-15)
        assert found.interval == (found.probability, found.probability)
        np.testing.assert_allclose(found.regret, expected, rtol=0, atol=1e-9)


def test_scenarios_without_weight_are_no_exposure():
    kernels = np.array(
        [[[[1.0, 0], [0, 1.0]], [[0, 1.0], [0, 1.0]]], [[[1.0, 0], [1.0, 0]], [[0, 1.0], [0, 1.0]]]]
    )
    rewards = [[0.0, 0.0], [1.0, 1.0]]
    for weight in (0.0, 0.4):
        belief = brmdp.ScenarioBelief(kernels, [weight, 1 - weight])
        found = theory.downside_exposure(belief, rewards, 0.5, [0, 0], 1.0)
        assert found.probability == weight
    certain = brmdp.TabularMDP(kernels[0], rewards, 0.5)
    assert theory.downside_exposure(certain, rewards, 0.5, [0, 0], 1.0).probability == 1.0
    assert theory.downside_exposure(certain, rewards, 0.5, [0, 0], 1.0 + 1e-6).probability == 0.0
    case = known(2)
    best = brmdp.solve(case.belief).policy
    assert (
        theory.downside_exposure(case.belief, case.rewards, case.discount, best, 1e-6).probability
        == 0.0
    )


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1"),
        ({"confidence": np.nan}, "confidence must lie strictly between 0 and 1"),
        ({"n_states": 0}, "n_states must be a positive integer; got 0"),
        ({"n_actions": 1.5}, "n_actions must be a positive integer"),
        ({"observations": 0}, "observations must be a positive integer; got 0"),
        ({"samples": 0}, "samples must be a positive integer; got 0"),
        ({"discount": 1.0}, r"discount must lie in \[0, 1\)"),
        ({"concentration": -1.0}, "concentration must be a positive finite number"),
        ({"rewards": np.zeros((2, 2))}, "rewards must have shape"),
        (
            {"rewards": np.full((3, 2), 1.5)},
            r"rewards must lie in \[0, 1\]; got 1\.5 at index \(0, 0\)",
        ),
        ({"rewards": np.full((3, 2), np.nan)}, "rewards must be finite"),
        ({"rng": "x"}, "rng must be a numpy"),
    ],
)
def test_bad_coverage_is_refused(options, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        theory.replicate_coverage(**{"rng": 0, "n_states": 3, "n_actions": 2, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.0}, r"threshold must be a positive finite number; got 0\.0"),
        ({"threshold": np.nan}, "threshold must be a positive finite number"),
        ({"policy": [0, 0]}, r"policy must hold one action per state, shape \(4,\)"),
        ({"policy": [0, 0, 0, 3]}, r"policy must lie in 0\.\.2; got 3"),
        ({"state": 4}, r"state must lie in 0\.\.3; got 4"),
        ({"samples": 0}, "samples must be a positive integer"),
        ({"confidence": 0}, "confidence must lie strictly between 0 and 1"),
        ({"belief": None}, "belief must be a brmdp belief"),
        ({"discount": -0.1}, "discount must lie in"),
    ],
)
def test_bad_exposure_is_refused(options, message):
    case = dense(1)
    call = {
        "belief": case.belief,
        "rewards": case.rewards,
        "discount": 0.8,
        "policy": [0] * 4,
        "threshold": 1.0,
        **options,
    }
    with pytest.raises(brmdp.InvalidInputError, match=message):
        theory.downside_exposure(**call)
