"""Values in draws, certificates and comparisons over a horizon, and without discounting."""

import numpy as np
import pytest
from cases import KINDS, dense_kernel, random_policy
from scipy import stats

import brmdp
from brmdp.decisions import (
    Sampler,
    candidate_policies,
    certify,
    compare,
    practice,
    value_of_information,
    values_in_draws,
)
from brmdp.decisions import draws as draws_module
from oracles import finite_horizon as oracle
from oracles.planning import mean_risk

pytestmark = pytest.mark.filterwarnings("ignore::brmdp.PriorWarning")

H = 4


def stages(case, seed, stochastic=False):
    return np.stack([random_policy(case, seed + h, stochastic) for h in range(H)])


def terminal_of(case):
    return np.random.default_rng(1).normal(size=case.n_states)


def exit_of(a, b):
    """Costs of 1 per step until an exit of probability Beta(a, b)."""
    return brmdp.DirichletBelief([[[b, a]], [[0.0, 1.0]]]), [[-1.0], [0.0]]


# --- values over a horizon ------------------------------------------------------------------------


@pytest.mark.parametrize("discount", [0.8, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_each_draw_is_held_over_all_steps(kind, discount):
    case = KINDS[kind](3)
    terminal = terminal_of(case)
    policies = {
        "same": random_policy(case, 1),
        "mixed": random_policy(case, 2, stochastic=True),
        "by step": stages(case, 3),
        "mixed by step": stages(case, 4, stochastic=True),
    }
    sampler = Sampler(
        case.belief,
        case.rewards,
        discount,
        policies,
        optimal=True,
        kernels=True,
        horizon=H,
        terminal=terminal,
        rng=5,
    )
    checked = 0
    for block in sampler.blocks(12):
        for m, entries in enumerate(block.kernels):
            kernel = dense_kernel(case, entries)
            risk = mean_risk(kernel)
            for k, policy in enumerate(policies.values()):
                by_step = policy
                if policy.ndim == 1 or policy.shape == case.shape:
                    by_step = np.tile(policy, (H, *[1] * policy.ndim))
                expected = oracle.backward(
                    risk, case.rewards, discount, H, terminal, by_step, case.admissible
                )[0]
                assert np.abs(block.values[m, k] - expected).max() <= block.errors[m, k]
            best = oracle.backward(
                risk, case.rewards, discount, H, terminal, None, case.admissible
            )[0]
            assert np.abs(block.optimal[m] - best).max() <= block.optimal_errors[m]
            checked += 1
        assert (block.errors < 1e-12).all()
    assert checked == 12


def test_draws_are_the_same_with_and_without_a_horizon():
    case = KINDS["dense"](1)
    policy = random_policy(case, 1)
    long = values_in_draws(case.belief, case.rewards, 0.5, [policy], horizon=200, draws=50, rng=3)
    endless = values_in_draws(case.belief, case.rewards, 0.5, [policy], draws=50, rng=3)
    np.testing.assert_allclose(long.values, endless.values, atol=1e-12)


def test_a_practice_is_drawn_once_and_held():
    case = KINDS["dense"](1)
    own = practice(np.arange(12).reshape(4, 3) + 1)
    found = values_in_draws(
        case.belief, case.rewards, 1.0, {"own": own}, horizon=3, draws=400, start=0, rng=1
    )
    at_mean = values_in_draws(
        case.belief, case.rewards, 1.0, {"mean": own.mean}, horizon=3, draws=400, start=0, rng=1
    )
    assert found.values.std() > at_mean.values.std()
    assert found.values.mean() == pytest.approx(at_mean.values.mean(), abs=0.3)


# --- certificates over a horizon ------------------------------------------------------------------


def test_a_certificate_for_a_horizon():
    case = KINDS["dense"](2)
    options = {"horizon": 5, "start": 0, "draws": 2_000, "rng": 1}
    found = certify(case.belief, case.rewards, 1.0, 0.9, **options)
    assert found.policy.shape == (5, 4)
    assert found.horizon == 5
    assert "the true value over 5 steps of this policy" in str(found)
    assert found.nested_value <= found.value
    assert "a union bound over 5 steps" in str(found)
    # the bound is near the quantile of fresh values
    fresh = values_in_draws(
        case.belief, case.rewards, 1.0, [found.policy], horizon=5, start=0, draws=4_000, rng=9
    )
    quantile = np.quantile(fresh.values, 0.1)
    assert found.value <= quantile + 0.02 * abs(quantile)
    assert found.value >= np.quantile(fresh.values, 0.05) - 0.02 * abs(quantile)
    joint = certify(
        case.belief, case.rewards, 1.0, 0.9, horizon=5, policy=found.policy, draws=2_000, rng=1
    )
    held = values_in_draws(
        case.belief, case.rewards, 1.0, [found.policy], horizon=5, draws=4_000, rng=9
    ).values[:, 0]
    assert (held >= joint.values).all(axis=1).mean() >= 0.9
    mixed = certify(
        case.belief,
        case.rewards,
        1.0,
        0.9,
        policy=np.full((4, 3), 1 / 3),
        **options,
    )
    assert mixed.policy.shape == (5, 4, 3)
    assert mixed.prior.steps == 5
    assert mixed.prior.n_pairs == case.belief.pattern.pairs.size


def test_candidates_for_a_horizon():
    case = KINDS["dense"](2)
    found = candidate_policies(case.belief, case.rewards, 1.0, horizon=3, rng=1)
    assert all(policy.shape == (3, 4) for policy in found.values())
    mean = brmdp.plan(case.belief, case.rewards, 1.0, risk=brmdp.Mean(), horizon=3)
    assert np.array_equal(found["mean"], mean.policy)
    with pytest.raises(brmdp.InvalidInputError, match="terminal must be given only together"):
        candidate_policies(case.belief, case.rewards, 0.9, terminal=np.zeros(4))


def coverage_over_a_horizon(trials, draws, seed):
    """How often the truth, drawn from the prior, lies above its certificate."""
    rng = np.random.default_rng(seed)
    prior = brmdp.DirichletBelief(rng.uniform(0.5, 2.0, (3, 2, 3)))
    rewards = rng.normal(size=(3, 2, 3))
    held = nested = 0
    for trial in range(trials):
        (truth,) = prior.sample(1, rng=rng)
        belief = prior.copy()
        for _ in range(6):
            s, a = rng.integers(3), rng.integers(2)
            belief.observe(s, a, rng.choice(3, p=truth[s, a]))
        found = certify(belief, rewards, 1.0, 0.8, horizon=4, start=0, draws=draws, rng=trial)
        value = oracle.backward(mean_risk(truth), rewards, 1.0, 4, np.zeros(3), found.policy)
        held += value[0, 0] >= found.value
        other = found.nested
        value = oracle.backward(mean_risk(truth), rewards, 1.0, 4, np.zeros(3), other.policy)
        nested += bool((value[0] >= other.values).all())
    return held, nested


@pytest.mark.long
def test_truths_lie_above_their_certificates():
    held, nested = coverage_over_a_horizon(40, 200, 1)
    # fewer would have a probability below 1e-4 if the confidence of 0.8 were right
    least = stats.binom(40, 0.8).ppf(1e-4)
    assert held >= least
    assert nested >= least


@pytest.mark.slow
def test_truths_lie_above_their_certificates_often():
    held, nested = coverage_over_a_horizon(600, 1_000, 2)
    least = stats.binom(600, 0.8).ppf(1e-4)
    assert held >= least
    assert nested >= least
    # and the sampled one is no more cautious than it must be
    assert held <= stats.binom(600, 0.87).ppf(1.0 - 1e-4)


# --- comparisons over a horizon -------------------------------------------------------------------


def test_a_comparison_over_a_horizon():
    case = KINDS["dense"](3)
    terminal = terminal_of(case)
    policy, baseline = stages(case, 1), random_policy(case, 9)
    over = {"horizon": H, "terminal": terminal}
    found = compare(
        *(case.belief, case.rewards, 1.0, policy, baseline),
        start=1,
        draws=300,
        rng=np.random.default_rng(4),
        **over,
    )
    drawn = values_in_draws(
        case.belief,
        case.rewards,
        1.0,
        {"policy": policy, "baseline": baseline},
        start=1,
        draws=300,
        rng=np.random.default_rng(4),
        **over,
    )
    gains = drawn.values[:, 0] - drawn.values[:, 1]
    assert found.gain.mean == pytest.approx(gains.mean(), rel=1e-12)
    assert found.better == (gains > 0).mean()
    assert found.regret.mean >= 0.0
    # the regrets differ by the gain, up to the noise of other draws
    gap = found.baseline_regret.mean - found.regret.mean
    noise = found.regret.error + found.baseline_regret.error + found.gain.error
    assert abs(gap - found.gain.mean) <= 5.0 * noise
    differ = np.flatnonzero((policy != baseline).any(axis=0))
    assert found.different_states.tolist() == differ.tolist()
    # a single state changed at all steps
    first = found.differences[0]
    changed = np.tile(baseline, (H, 1))
    changed[:, first.state] = policy[:, first.state]
    worth = values_in_draws(
        case.belief, case.rewards, 1.0, [changed, baseline], start=1, draws=4_000, rng=7, **over
    ).values
    worth = worth[:, 0] - worth[:, 1]
    spread = worth.std() / np.sqrt(4_000) + first.worth.error
    assert abs(first.worth.mean - worth.mean()) <= 5.0 * spread
    # time under the mean kernel, step by step
    begin, mean, time = np.eye(4)[1], case.belief.mean(), np.zeros(4)
    for _ in range(H):
        time += begin / H
        begin = begin @ mean[np.arange(4), baseline]
    assert first.baseline_visits == pytest.approx(time[first.state])


def test_information_over_a_horizon():
    case = KINDS["dense"](3)
    found = value_of_information(
        case.belief,
        case.rewards,
        1.0,
        pairs=[(0, 0), (1, 1)],
        transitions=30,
        start=0,
        horizon=3,
        draws=150,
        rng=2,
    )
    assert found.policy.shape == (3, 4)
    assert found.perfect.mean > 0.0
    assert found.sample.mean <= found.perfect.mean + 5.0 * found.perfect.error
    both = values_in_draws(
        case.belief,
        case.rewards,
        1.0,
        [found.policy],
        start=0,
        draws=2_000,
        optimal=True,
        horizon=3,
        rng=5,
    )
    lost = both.optimal - both.values[:, 0]
    error = lost.std() / np.sqrt(2_000) + found.perfect.error
    assert abs(found.perfect.mean - lost.mean()) <= 5.0 * error


# --- without discounting --------------------------------------------------------------------------


def ended(seed):
    """Three states, two actions, and an end that every action may lead to."""
    rng = np.random.default_rng(seed)
    phi = rng.uniform(0.8, 4.0, (4, 2, 4))
    phi[-1] = np.eye(4)[-1]
    rewards = rng.normal(size=(4, 2, 4))
    rewards[-1] = 0.0
    return brmdp.DirichletBelief(phi), rewards


@pytest.mark.parametrize("direct", [True, False])
def test_undiscounted_values_in_draws(direct, monkeypatch):
    if not direct:
        monkeypatch.setattr(draws_module, "DIRECT_STATES", 1)
    belief, rewards = ended(1)
    policies = {"sure": np.array([0, 1, 0, 0]), "mixed": np.full((4, 2), 0.5)}
    sampler = Sampler(belief, rewards, 1.0, policies, optimal=True, kernels=True, rng=2)
    for block in sampler.blocks(25):
        for m, entries in enumerate(block.kernels):
            kernel = belief.pattern.dense(entries)
            for k, policy in enumerate(policies.values()):
                weights = np.eye(2)[policy] if policy.ndim == 1 else policy
                system = np.eye(3) - np.einsum("sa,sat->st", weights, kernel)[:3, :3]
                paid = np.einsum("sa,sat,sat->s", weights, kernel, rewards)[:3]
                expected = np.append(np.linalg.solve(system, paid), 0.0)
                assert np.abs(block.values[m, k] - expected).max() <= block.errors[m, k]
            best = brmdp.solve(brmdp.TabularMDP(kernel, rewards, 1.0))
            off = np.abs(block.optimal[m] - best.values).max()
            assert off <= block.optimal_errors[m] + best.error_bound
    assert block.errors.max() < 1e-10


def test_a_certificate_without_discounting():
    # the value is −1/p, whose 10 % quantile is −1/q with q the 10 % quantile of the exit
    belief, costs = exit_of(1.0, 4.0)
    found = certify(belief, costs, 1.0, 0.9, policy=[0, 0], start=0, rng=1)
    exact = -1.0 / stats.beta(1.0, 4.0).ppf(0.1)
    assert found.value <= exact
    assert found.value >= -1.0 / stats.beta(1.0, 4.0).ppf(0.08)
    assert found.nested is None
    chosen = certify(*ended(2), 1.0, 0.8, start=0, draws=500, rng=1)
    assert chosen.name in candidate_policies(*ended(2), 1.0, 0.8)
    with pytest.raises(brmdp.InvalidInputError, match="nested must not be True with discount 1"):
        certify(belief, costs, 1.0, 0.9, policy=[0, 0], start=0, nested=True)


def test_means_that_may_be_infinite_are_refused():
    quiet = {"differences": 0, "start": 0, "draws": 200, "rng": 0}
    for a, words in ((1.0, "no finite posterior mean"), (1.5, "but no finite variance")):
        belief, costs = exit_of(a, 4.0)
        with pytest.raises(brmdp.InvalidInputError, match=words):
            compare(belief, costs, 1.0, [0, 0], [0, 0], **quiet)
        # with a horizon every value is bounded
        assert compare(belief, costs, 1.0, [0, 0], [0, 0], horizon=9, **quiet).gain.mean == 0.0
    belief, costs = exit_of(2.5, 4.0)
    found = compare(belief, costs, 1.0, [0, 0], [0, 0], **quiet)
    assert (found.gain.mean, found.ties, found.regret) == (0.0, 1.0, None)
    with pytest.raises(brmdp.InvalidInputError, match="differences and regret_draws must be 0"):
        compare(belief, costs, 1.0, [0, 0], [0, 0])
    with pytest.raises(brmdp.InvalidInputError, match="must hold one action per state"):
        compare(belief, costs, 1.0, [0, 0], [[1.0], [1.0]], **quiet)
    with pytest.raises(brmdp.InvalidInputError, match=r"discount must lie in \[0, 1\); got 1.0"):
        value_of_information(belief, costs, 1.0)


def test_a_gain_without_discounting():
    phi = np.array([[[3.0, 4.0], [3.0, 8.0]], [[0.0, 1.0], [0.0, 1.0]]])
    belief = brmdp.DirichletBelief(phi)
    costs = [[-1.0, -1.0], [0.0, 0.0]]
    found = compare(belief, costs, 1.0, [1, 0], [0, 0], differences=0, start=0, draws=4_000, rng=3)
    expected = (4 + 3 - 1) / (4 - 1) - (8 + 3 - 1) / (8 - 1)
    assert abs(found.gain.mean - expected) <= 5.0 * found.gain.error


@pytest.mark.parametrize(
    "call",
    [
        lambda b, r, **o: values_in_draws(b, r, 1.0, [[0] * 4], **o),
        lambda b, r, **o: certify(b, r, 1.0, policy=[0] * 4, **o),
        lambda b, r, **o: compare(b, r, 1.0, [0] * 4, [0] * 4, **o),
        lambda b, r, **o: value_of_information(b, r, 1.0, candidates=[[0] * 4], **o),
    ],
)
def test_bad_arguments_are_named(call):
    belief, rewards = ended(1)
    for bad in (0, -1, 2.5):
        with pytest.raises(brmdp.InvalidInputError, match="horizon must be a positive integer"):
            call(belief, rewards, horizon=bad)
    with pytest.raises(brmdp.InvalidInputError, match="terminal must be finite"):
        call(belief, rewards, horizon=2, terminal=[0.0, np.inf, 0.0, 0.0])
    with pytest.raises(brmdp.InvalidInputError, match="terminal must hold one value per state"):
        call(belief, rewards, horizon=2, terminal=[0.0])


def test_a_policy_that_never_ends_is_named():
    phi = np.array([[[1.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    belief, costs = brmdp.DirichletBelief(phi), [[-1.0, -1.0], [0.0, 0.0]]
    with pytest.raises(brmdp.InvalidInputError, match="action 1 in state 0 can stay"):
        values_in_draws(belief, costs, 1.0, [[1, 0]])
    # a policy that sometimes takes the exit ends
    values_in_draws(belief, costs, 1.0, [[[0.1, 0.9], [1.0, 0.0]]], draws=10, rng=0)
    with pytest.raises(brmdp.InvalidInputError, match="can stay"):
        values_in_draws(belief, costs, 1.0, [[0, 0]], optimal=True)
    tiny = brmdp.DirichletBelief([[[1.0, 1e-3]], [[0.0, 1.0]]])
    with pytest.raises(brmdp.ConvergenceError, match="so long that arithmetic cannot resolve"):
        values_in_draws(tiny, [[-1.0], [0.0]], 1.0, [[0, 0]], draws=200, rng=0)
