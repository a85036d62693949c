"""Rewards that are drawn together with the kernel, against plain linear systems."""

import numpy as np
import pytest
from cases import KINDS, dense_kernel, random_policy

import brmdp
from brmdp.decisions import (
    Sampler,
    UncertainRewards,
    UnitLog,
    certify,
    compare,
    draws,
    practice,
    value_of_information,
    values_in_draws,
)
from brmdp.decisions.uncertain_rewards import caveat_about, is_uncertain, mean_rewards
from brmdp.errors import InvalidInputError
from oracles import decisions as oracle


class About:
    """Normal about a mean, with a common shift and remembered draws."""

    def __init__(self, mean, spread=0.5, caveat=""):
        self.mean_rewards = np.asarray(mean, dtype=float)
        self.spread = spread
        self.caveat = caveat

    def draw_rewards(self, n, pairs, *, rng):
        shift = rng.normal(size=(n, 1))
        own = rng.normal(size=(n, len(pairs)))
        return self.mean_rewards.reshape(-1)[pairs] + self.spread * (shift + own)


def small(seed=0, n_states=3, n_actions=2):
    rng = np.random.default_rng(seed)
    belief = brmdp.DirichletBelief(rng.uniform(0.5, 4.0, (n_states, n_actions, n_states)))
    return belief, About(rng.normal(size=(n_states, n_actions)))


REGIMES = {"eliminate": (96, 2000), "correct": (0, 2000), "iterate": (0, 0)}


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("kind", ["dense", "sparse", "inadmissible", "disturbance", "blend"])
def test_values_and_optima_against_linear_systems(kind, regime, monkeypatch):
    direct, dense = REGIMES[regime]
    monkeypatch.setattr(draws, "DIRECT_STATES", direct)
    monkeypatch.setattr(draws, "DENSE_STATES", dense)
    case = KINDS[kind](3)
    rewards = About(np.random.default_rng(1).normal(size=case.shape))
    policies = [random_policy(case, 1), random_policy(case, 2, stochastic=True)]
    sampler = Sampler(
        case.belief, rewards, case.discount, policies, kernels=True, optimal=True, rng=1
    )
    (block,) = sampler.blocks(8)
    weights = [oracle.one_hot(policies[0], case.shape[1]), policies[1]]
    assert block.rewards.std(axis=0)[case.admissible.reshape(-1)].min() > 0.1
    for m, entries in enumerate(block.kernels):
        kernel = dense_kernel(case, entries)
        paid = np.repeat(block.rewards[m].reshape(*case.shape, 1), kernel.shape[2], axis=2)
        for k, policy in enumerate(weights):
            wanted = oracle.policy_value(kernel, paid, policy, case.discount)
            assert np.abs(block.values[m, k] - wanted).max() <= block.errors[m, k] + 1e-11
            assert block.errors[m, k] < 1e-6
        best = oracle.optimal_value(kernel, paid, case.discount, case.admissible)
        assert np.abs(block.optimal[m] - best).max() <= block.optimal_errors[m] + 1e-10
    # and in the same draws, given
    again = Sampler(case.belief, rewards, case.discount, policies)
    found = again.evaluate(block.kernels, block.rewards)
    np.testing.assert_allclose(found.values, block.values, rtol=0, atol=3e-8)


def test_values_over_a_horizon():
    belief, rewards = small()
    policy = np.array([1, 0, 1])
    sampler = Sampler(belief, rewards, 0.9, [policy], kernels=True, optimal=True, horizon=4, rng=0)
    (block,) = sampler.blocks(6)
    for m in range(6):
        kernel = belief.pattern.dense(block.kernels[m])
        paid = block.rewards[m].reshape(3, 2)
        followed, best = np.zeros(3), np.zeros(3)
        for _ in range(4):
            followed = (paid + 0.9 * kernel @ followed)[np.arange(3), policy]
            best = (paid + 0.9 * kernel @ best).max(axis=1)
        np.testing.assert_allclose(block.values[m, 0], followed, atol=1e-12)
        np.testing.assert_allclose(block.optimal[m], best, atol=1e-12)


def test_kernels_are_those_of_known_rewards():
    belief, rewards = small()
    settings = {"kernels": True, "rng": 5}
    first, second = (
        next(Sampler(belief, paid, 0.8, [[0, 1, 0]], **settings).blocks(7))
        for paid in (rewards, rewards.mean_rewards)
    )
    np.testing.assert_array_equal(first.kernels, second.kernels)
    assert second.rewards is None


def test_draws_depend_on_neither_threads_nor_portions(monkeypatch):
    belief, rewards = small()
    monkeypatch.setattr(draws, "LARGEST_BLOCK", 16)
    monkeypatch.setattr(draws, "WORTH_A_THREAD", 0)
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(draws, "thread_count", lambda threads=threads: threads)
        sampler = Sampler(belief, rewards, 0.8, [[0, 1, 0]], rng=5)
        portions = (64,) if threads == 1 else (32, 32)
        found.append(np.concatenate([b.values for n in portions for b in sampler.blocks(n)]))
    np.testing.assert_array_equal(*found)


def test_one_pair_has_one_reward_in_all_policies():
    """Policies that agree have the same value in every draw, whatever else is drawn."""
    belief, rewards = small()
    mixed = np.array([[0.5, 0.5]] * 3)
    block = next(Sampler(belief, rewards, 0.0, [[0, 0, 0], [1, 1, 1], mixed], rng=0).blocks(5))
    middle = block.values[:, :2].mean(axis=1)
    np.testing.assert_allclose(block.values[:, 2], middle, atol=1e-12)


def test_certificate_is_the_order_statistic_of_such_values():
    belief, rewards = small()
    policy = np.array([1, 0, 1])
    settings = {"policy": policy, "start": 1, "draws": 5_000, "rng": 0}
    found = certify(belief, rewards, 0.6, 0.8, **settings)
    assert found.rewards_drawn
    assert found.nested is None
    assert "Rewards are known only by an estimate" in " ".join(str(found).split())
    many = values_in_draws(belief, rewards, 0.6, [policy], start=1, draws=20_000, rng=1)
    assert abs(found.quantile - np.quantile(many.values, 0.2)) < 0.15
    assert abs(found.value - np.quantile(many.values, found.share)) < 0.15
    known = certify(belief, rewards.mean_rewards, 0.6, 0.8, **settings)
    assert known.value - found.value > 0.3
    assert not known.rewards_drawn


def test_candidates_are_planned_with_the_mean_and_chosen_by_draws():
    belief, rewards = small()
    # pays more on average, but nobody knows how much
    rewards.mean_rewards[:, 0], rewards.mean_rewards[:, 1] = 1.0, 1.1

    class Risky(About):
        def draw_rewards(self, n, pairs, *, rng):
            doubt = np.where(pairs % 2 == 1, 2.0, 0.0)
            return self.mean_rewards.reshape(-1)[pairs] + doubt * rng.normal(size=(n, 1))

    risky = Risky(rewards.mean_rewards)
    found = certify(
        belief, risky, 0.5, 0.9, candidates=[[0, 0, 0], [1, 1, 1]], start=0, draws=2_000, rng=0
    )
    assert found.name == "policy 0"
    assert certify(belief, risky, 0.5, 0.9, start=0, rng=0, draws=2_000).value < 2.0


def test_comparison_draws_rewards_for_both():
    belief, rewards = small()
    policy, base = np.array([1, 0, 1]), practice([[3, 1], [2, 2], [0, 4]])
    found = compare(belief, rewards, 0.6, policy, base, start=0, draws=400, rng=0)
    assert found.rewards_drawn
    assert "knowing the kernel and the rewards" in " ".join(str(found).split())
    same = compare(belief, rewards, 0.6, policy, policy, start=0, draws=100, rng=0)
    assert same.gain.mean == 0.0
    known = compare(belief, rewards.mean_rewards, 0.6, policy, base, start=0, draws=400, rng=0)
    width, sure = (one.interval[1] - one.interval[0] for one in (found, known))
    assert width > 1.5 * sure
    assert found.regret.mean > known.regret.mean


def test_information_includes_the_rewards():
    belief, rewards = small()
    found = value_of_information(
        belief, rewards, 0.6, pairs=[(0, 1)], transitions=20, start=0, draws=200, rng=0
    )
    known = value_of_information(belief, rewards.mean_rewards, 0.6, start=0, draws=200, rng=0)
    assert found.perfect.mean > known.perfect.mean
    assert found.rewards_drawn
    assert found.sample.mean < found.perfect.mean
    assert "Knowing the kernel and the rewards" in str(found)


def test_units_are_resampled_with_what_they_paid():
    rng = np.random.default_rng(0)
    unit, s, a, t = (rng.integers(k, size=300) for k in (12, 2, 2, 2))
    paid = 3.0 * rng.normal(size=12)[unit] * a
    prior = brmdp.DirichletBelief.uniform(2, 2)
    belief = prior.copy()
    belief.observe(s, a, t)

    def learn(times):
        sums, sizes = np.zeros((2, 2)), np.zeros((2, 2))
        np.add.at(sums, (s, a), times * paid)
        np.add.at(sizes, (s, a), times)
        return sums / sizes

    rewards = About(learn(np.ones(300)), 0.1)
    log = UnitLog(prior, unit, s, a, t, learn_rewards=learn)
    found = compare(belief, rewards, 0.5, [1, 1], [0, 0], units=log, draws=200, rng=0)
    # what a step pays depends on the unit, which the draws know nothing of
    assert found.units.ratio > 2.0
    means, resampled = log.resampled(3, np.random.default_rng(1))
    assert means.shape == (3, belief.pattern.n_transitions)
    chosen = np.random.default_rng(1).integers(12, size=12)
    wanted = learn(np.bincount(chosen, minlength=12)[unit])
    np.testing.assert_allclose(resampled[0].reshape(2, 2), wanted)
    with pytest.raises(InvalidInputError, match="learn_rewards must be given if and only if"):
        compare(belief, rewards.mean_rewards, 0.5, [1, 1], [0, 0], units=log, rng=0)
    log = UnitLog(prior, unit, s, a, t)
    with pytest.raises(InvalidInputError, match="learn_rewards must be given if and only if"):
        compare(belief, rewards, 0.5, [1, 1], [0, 0], units=log, rng=0)
    log = UnitLog(prior, unit, s, a, t, learn_rewards=lambda times: times)
    with pytest.raises(InvalidInputError, match="learn_rewards must return shape"):
        compare(belief, rewards, 0.5, [1, 1], [0, 0], units=log, rng=0)


def test_caveats_are_passed_on():
    belief, rewards = small()
    rewards.caveat = "These rewards are guesses."
    assert caveat_about(rewards) == rewards.caveat
    settings = {"start": 0, "rng": 0}
    made = certify(belief, rewards, 0.5, policy=[0, 0, 0], draws=500, **settings)
    assert rewards.caveat in str(made)
    found = compare(belief, rewards, 0.5, [0, 0, 0], [1, 1, 1], draws=100, **settings)
    assert rewards.caveat in str(found)
    assert values_in_draws(belief, rewards, 0.5, [[0, 0, 0]], draws=10, rng=0).caveat


def test_what_is_uncertain():
    belief, rewards = small()
    assert isinstance(rewards, UncertainRewards)
    assert is_uncertain(rewards)
    for known in (None, rewards.mean_rewards, practice([[1, 1]]), belief):
        assert not is_uncertain(known)
    assert mean_rewards(belief, None) is None


def test_refusals():
    belief, rewards = small()
    policy = [0, 0, 0]
    outcomes = brmdp.OutcomeBelief.uniform(2, 1, rewards=[0.0, 1.0])

    def refused(match, call, *arguments, **settings):
        with pytest.raises(InvalidInputError, match=match):
            call(*arguments, **settings)

    refused("discount must be below 1", values_in_draws, belief, rewards, 1.0, [policy])
    refused("discount must be below 1", certify, belief, rewards, 1.0, policy=policy)
    refused("discount must be below 1", compare, belief, rewards, 1.0, policy, policy)
    refused('method must not be "nested"', certify, belief, rewards, 0.5, method="nested")
    refused("nested must not be True", certify, belief, rewards, 0.5, nested=True)
    refused("rewards must be None", values_in_draws, outcomes, About([[0.0], [0.0]]), 0.5, [[0, 0]])
    refused("must have shape", values_in_draws, belief, About([[0.0]]), 0.5, [policy])

    class Wrong(About):
        def draw_rewards(self, n, pairs, *, rng):
            return self.returned(n, len(pairs))

    wrong = Wrong(rewards.mean_rewards)
    for match, made in {
        "must return shape": lambda n, k: np.zeros((n, k + 1)),
        "must be finite": lambda n, k: np.full((n, k), np.nan),
        "must return rewards within": lambda n, k: np.full((n, k), 1e150),
    }.items():
        wrong.returned = made
        refused(match, values_in_draws, belief, wrong, 0.5, [policy], draws=3)
