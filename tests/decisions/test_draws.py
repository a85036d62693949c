"""Values of policies in posterior draws, against plain linear systems."""

import numpy as np
import pytest
from cases import KINDS, Blend, dense_kernel, random_policy
from scipy import stats

import brmdp
from brmdp.decisions import Sampler, draws, practice, values_in_draws
from oracles import decisions as oracle


def check_against_systems(case, sampler, block, weights):
    assert block.kernels is not None
    for m, entries in enumerate(block.kernels):
        kernel = dense_kernel(case, entries)
        for k, policy in enumerate(weights):
            wanted = oracle.policy_value(kernel, case.rewards, policy, case.discount)
            off = np.abs(block.values[m, k] - wanted).max()
            assert off <= block.errors[m, k] + 1e-11
            assert block.errors[m, k] <= 1e-7 * max(1.0, np.abs(wanted).max())


REGIMES = {"eliminate": (96, 2000), "correct": (0, 2000), "iterate": (0, 0)}


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("kind", KINDS)
def test_values_against_linear_systems(kind, regime, monkeypatch):
    direct, dense = REGIMES[regime]
    monkeypatch.setattr(draws, "DIRECT_STATES", direct)
    monkeypatch.setattr(draws, "DENSE_STATES", dense)
    case = KINDS[kind](3)
    n_actions = case.shape[1]
    policies = {
        "first": random_policy(case, 1),
        "toss": random_policy(case, 2, stochastic=True),
        "second": random_policy(case, 3),
        "other toss": random_policy(case, 4, stochastic=True),
    }
    weights = [
        p if p.ndim == 2 else oracle.one_hot(p, n_actions) for p in map(np.array, policies.values())
    ]
    sampler = Sampler(
        case.belief, case.rewards, case.discount, policies, kernels=True, optimal=True, rng=1
    )
    (block,) = sampler.blocks(12)
    check_against_systems(case, sampler, block, weights)
    for m, entries in enumerate(block.kernels):
        best = oracle.optimal_value(
            dense_kernel(case, entries), case.rewards, case.discount, case.admissible
        )
        assert np.abs(block.optimal[m] - best).max() <= block.optimal_errors[m] + 1e-10
        assert block.optimal_errors[m] < 1e-7
    # and in given kernels, of which only the rows of the policies count
    some = Sampler(case.belief, case.rewards, case.discount, policies)
    again = some.evaluate(block.kernels)
    np.testing.assert_allclose(again.values, block.values, rtol=0, atol=3e-8)


def test_large_optima_against_value_iteration():
    """Beyond 600 states optima are found by the planner."""
    rng = np.random.default_rng(0)
    n = 650
    possible = np.zeros((n, 2, n), dtype=bool)
    for s in range(n):
        for a in range(2):
            possible[s, a, rng.choice(n, 4, replace=False)] = True
    belief = brmdp.DirichletBelief.uniform(n, 2, possible=possible)
    rewards = rng.normal(size=(n, 2))
    sampler = Sampler(belief, rewards, 0.9, [np.zeros(n, int)], optimal=True, kernels=True, rng=0)
    (block,) = sampler.blocks(2)
    dense = belief.pattern.dense(block.kernels)
    wide = np.repeat(rewards[:, :, None], n, axis=2)
    for m in range(2):
        best = oracle.optimal_value(dense[m], wide, 0.9, np.ones((n, 2), bool), 1e-9)
        assert np.abs(block.optimal[m] - best).max() <= block.optimal_errors[m] + 1e-9
        assert block.optimal_errors[m] < 1e-6


@pytest.mark.long
@pytest.mark.parametrize("n", [150, 2300])
def test_long_chains(n):
    """Krylov methods and corrections fail on long chains; the values are right all the same."""
    possible = np.zeros((n, 1, n), dtype=bool)
    for s in range(n):
        possible[s, 0, [max(s - 1, 0), min(s + 1, n - 1)]] = True
    belief = brmdp.DirichletBelief.uniform(n, 1, 0.5, possible=possible)
    rewards = np.zeros((n, 1))
    rewards[-1] = 1.0
    sampler = Sampler(belief, rewards, 0.999, [np.zeros(n, int)], kernels=True, rng=0)
    (block,) = sampler.blocks(3)
    assert block.errors.max() < 1e-4 * np.abs(block.values).max()
    for m in range(3):
        kernel = belief.pattern.csr(block.kernels[m]).toarray()
        wanted = np.linalg.solve(np.eye(n) - 0.999 * kernel, kernel @ np.ones(n) * rewards[:, 0])
        assert np.abs(block.values[m, 0] - wanted).max() <= block.errors[m, 0] + 1e-9


def test_draws_far_from_the_mean_need_no_elimination(monkeypatch):
    rng = np.random.default_rng(0)
    n = 150
    possible = np.zeros((n, 1, n), dtype=bool)
    for s in range(n):
        possible[s, 0, rng.choice(n, 8, replace=False)] = True
    belief = brmdp.DirichletBelief.uniform(n, 1, 0.1, possible=possible)
    rewards = rng.normal(size=(n, 1))
    sampler = Sampler(belief, rewards, 0.95, [np.zeros(n, dtype=int)], kernels=True, rng=0)
    exact = np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", None)
    (block,) = sampler.blocks(10)
    for m, entries in enumerate(block.kernels):
        kernel = np.zeros((n, n))
        kernel[possible[:, 0]] = entries
        wanted = exact(np.eye(n) - 0.95 * kernel, rewards[:, 0])
        off = np.abs(block.values[m, 0] - wanted).max()
        assert off <= block.errors[m, 0] <= 1e-7 * np.abs(wanted).max()


def test_error_bound_is_honest_when_iteration_ends_early(monkeypatch):
    monkeypatch.setattr(draws, "DIRECT_STATES", 0)
    monkeypatch.setattr(draws, "DENSE_STATES", 0)
    monkeypatch.setattr(draws, "SWEEPS", 1)
    monkeypatch.setattr(draws, "bicgstab", lambda system, right, **_: (np.zeros_like(right), 1))
    case = KINDS["dense"](5)
    policy = random_policy(case, 1)
    sampler = Sampler(case.belief, case.rewards, case.discount, [policy], kernels=True, rng=0)
    (block,) = sampler.blocks(20)
    assert block.errors.max() > 1e-3
    for m, entries in enumerate(block.kernels):
        wanted = oracle.policy_value(
            dense_kernel(case, entries),
            case.rewards,
            oracle.one_hot(policy, case.shape[1]),
            case.discount,
        )
        assert np.abs(block.values[m, 0] - wanted).max() <= block.errors[m, 0]


@pytest.mark.parametrize("kind", ["dense", "disturbance", "scenarios", "blend"])
def test_law_of_the_values(kind):
    """Drawing only the rows in use leaves the law of the values as it is."""
    case = KINDS[kind](7)
    policy = random_policy(case, 1, stochastic=True)
    found = values_in_draws(
        case.belief, case.rewards, case.discount, [policy], start=1, draws=1500, rng=1
    )
    kernels = case.belief.sample_entries(700, rng=np.random.default_rng(2))
    wanted = [
        oracle.policy_value(dense_kernel(case, k), case.rewards, policy, case.discount)[1]
        for k in kernels
    ]
    # rounded, because scenarios give the same values up to rounding
    got, wanted = found.values[:, 0].round(9), np.round(wanted, 9)
    assert stats.ks_2samp(got, wanted).pvalue > 1e-3


class Watched(Blend):
    """Remembers which pairs were drawn."""

    def sample_entries(self, n, pairs=None, *, rng):
        self.asked = pairs
        return super().sample_entries(n, pairs, rng=rng)


def test_only_rows_in_use_are_drawn():
    rng = np.random.default_rng(0)
    one, two = rng.dirichlet(np.ones(4), (2, 4, 3))
    belief = Watched(one, two)
    rewards = rng.normal(size=(4, 3))
    toss = np.eye(3)[[0, 0, 2, 1]]
    toss[2] = (0.5, 0.0, 0.5)
    values_in_draws(belief, rewards, 0.9, [[0, 1, 2, 1]], draws=5, rng=0)
    np.testing.assert_array_equal(belief.asked, [0, 4, 8, 10])
    values_in_draws(belief, rewards, 0.9, [[0, 1, 2, 1], toss], draws=5, rng=0)
    np.testing.assert_array_equal(belief.asked, [0, 3, 4, 6, 8, 10])
    values_in_draws(belief, rewards, 0.9, [[0, 1, 2, 1]], draws=5, optimal=True, rng=0)
    assert belief.asked is None


def test_draws_depend_on_the_seed_alone(monkeypatch):
    case = KINDS["dense"](9)
    policy = random_policy(case, 1)
    monkeypatch.setattr(draws, "LARGEST_BLOCK", 50)
    arguments = (case.belief, case.rewards, case.discount, [policy])
    one = values_in_draws(*arguments, draws=420, rng=5)
    monkeypatch.setattr(draws, "WORTH_A_THREAD", 0)
    monkeypatch.setenv("BRMDP_NUM_THREADS", "3")
    two = values_in_draws(*arguments, draws=420, rng=5)
    np.testing.assert_array_equal(one.values, two.values)
    # asked for in two portions; whole blocks are the same
    sampler = Sampler(*arguments, rng=5)
    parts = [block.values for n in (250, 170) for block in sampler.blocks(n)]
    np.testing.assert_array_equal(np.concatenate(parts), one.values)
    # a stream goes on
    stream = np.random.default_rng(5)
    first = values_in_draws(*arguments, draws=420, rng=stream)
    np.testing.assert_array_equal(first.values, one.values)
    assert (values_in_draws(*arguments, draws=420, rng=stream).values != one.values).all()
    assert np.unique(one.values[:, 0, 0]).size == 420


def test_start_distribution_and_names():
    case = KINDS["inadmissible"](4)
    start = np.arange(1.0, case.n_states + 1) / np.arange(1, case.n_states + 1).sum()
    policies = {"a": random_policy(case, 1), "b": random_policy(case, 2, stochastic=True)}
    arguments = (case.belief, case.rewards, case.discount, policies)
    everywhere = values_in_draws(*arguments, draws=30, rng=1, optimal=True)
    there = values_in_draws(*arguments, start=start, draws=30, rng=1, optimal=True)
    np.testing.assert_allclose(there.values, everywhere.values @ start, rtol=0, atol=1e-12)
    np.testing.assert_allclose(there.optimal, everywhere.optimal @ start, rtol=0, atol=1e-12)
    assert there.names == ("a", "b")
    assert (everywhere.optimal[:, None] >= everywhere.values - 1e-9).all()
    flat = values_in_draws(case.belief, case.rewards, 0.8, list(policies["a"]), draws=3, rng=1)
    assert flat.values.shape == (3, 1, case.n_states)


def test_a_practice_is_drawn_with_the_kernel():
    """Its values vary even in a known kernel."""
    case = KINDS["dense"](2)
    known = brmdp.TabularMDP(case.belief.mean(), case.rewards, case.discount)
    logged = practice(np.array([[3, 1, 0], [0, 5, 2], [2, 2, 2], [1, 0, 9]]))
    found = values_in_draws(
        known, case.rewards, case.discount, {"log": logged, "mean": logged.mean}, draws=400, rng=1
    )
    assert (found.values[:, 0].std(axis=0) > 1e-3).all()
    assert np.ptp(found.values[:, 1], axis=0).max() < 1e-12
    policies = logged.draw(400, rng=3)
    wanted = [
        oracle.policy_value(case.belief.mean(), case.rewards, p, case.discount)[0] for p in policies
    ]
    assert stats.ks_2samp(found.values[:, 0, 0], wanted).pvalue > 1e-3


class Sloppy:
    """A random policy whose draws are wrong, or outside its mean's support, only now and then."""

    mean = np.array([[1.0, 0.0, 0.0]] * 4)

    def __init__(self, wrong):
        self.wrong = np.array(wrong)

    def draw(self, n, *, rng):
        found = np.tile(self.mean, (n, 1, 1))
        found[n // 2, 2] = self.wrong
        return found


@pytest.mark.parametrize("wrong", [[0.5, 0.4, 0.0], [0.0, 1.0, 0.0], [np.nan, 0.0, 0.0]])
def test_draws_of_a_random_policy_are_checked(wrong):
    case = KINDS["dense"](2)
    with pytest.raises(brmdp.InvalidInputError, match=r"Sloppy\.draw must"):
        values_in_draws(case.belief, case.rewards, 0.8, [Sloppy(wrong)], draws=9, rng=0)
    values_in_draws(case.belief, case.rewards, 0.8, [Sloppy([1.0, 0, 0])], draws=9, rng=0)


@pytest.mark.long
def test_memory_does_not_grow_with_the_draws(monkeypatch):
    import tracemalloc

    monkeypatch.setenv("BRMDP_NUM_THREADS", "1")
    case = KINDS["dense"](2, 30, 2)
    policy = random_policy(case, 1)
    peaks = []
    for n in (10_000, 30_000):
        values_in_draws(case.belief, case.rewards, 0.9, [policy], start=0, draws=10, rng=0)
        tracemalloc.start()
        values_in_draws(case.belief, case.rewards, 0.9, [policy], start=0, draws=n, rng=0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # 20,000 more draws with two numbers each
    assert peaks[1] - peaks[0] < 20_000 * 16 + 2_000_000


BAD = {
    "sum": ([[0.5, 0.4, 0.0]] * 4, "sum to one"),
    "negative": ([[1.5, -0.5, 0.0]] * 4, "negative"),
    "nan": ([[np.nan, 1.0, 0.0]] * 4, "finite"),
    "shape": ([[0.5, 0.5]] * 4, "shape"),
    "action": ([0, 1, 2, 3], "0..2"),
    "float actions": ([0.0, 1.0, 2.0, 1.0], "integers"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_policies(name):
    given, message = BAD[name]
    case = KINDS["dense"](1)
    with pytest.raises(brmdp.InvalidInputError, match=message):
        values_in_draws(case.belief, case.rewards, 0.8, {"mine": given}, rng=0)


def test_inadmissible_actions_are_refused():
    case = KINDS["inadmissible"](1)
    weights = np.full(case.shape, 1 / case.shape[1])
    with pytest.raises(brmdp.InvalidInputError, match="not admissible"):
        values_in_draws(case.belief, case.rewards, 0.8, [weights], rng=0)


def test_bad_arguments():
    case = KINDS["dense"](1)
    good = random_policy(case, 1)

    def call(policies=(good,), **named):
        named = {"rng": 0, **named}
        values_in_draws(case.belief, case.rewards, 0.8, list(policies), **named)

    for named, message in (
        ({"draws": 0}, "draws"),
        ({"draws": 1.5}, "draws"),
        ({"draws": 10**9}, "draws × policies"),
        ({"start": 4}, "start"),
        ({"start": [0.5, 0.4, 0.0, 0.0]}, "start"),
        ({"start": [np.nan, 1.0, 0.0, 0.0]}, "start"),
        ({"rng": "seed"}, "rng"),
    ):
        with pytest.raises(brmdp.InvalidInputError, match=message):
            call(**named)
    with pytest.raises(brmdp.InvalidInputError, match="at least one policy"):
        call(())
    with pytest.raises(brmdp.InvalidInputError, match="in a list"):
        values_in_draws(case.belief, case.rewards, 0.8, np.full((4, 3), 1 / 3), rng=0)
    with pytest.raises(brmdp.InvalidInputError, match="discount"):
        values_in_draws(case.belief, case.rewards, 1.0, [good], rng=0)
    with pytest.raises(brmdp.InvalidInputError, match="rewards"):
        values_in_draws(case.belief, np.full((4, 3), np.nan), 0.8, [good], rng=0)
    with pytest.raises(brmdp.InvalidInputError, match="belief"):
        values_in_draws("belief", case.rewards, 0.8, [good], rng=0)
