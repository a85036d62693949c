"""Comparisons and the value of information, against loops over draws."""

import numpy as np
import pytest
from cases import KINDS, dense_kernel, random_policy
from scipy import stats

import brmdp
from brmdp.decisions import (
    Sampler,
    UnitLog,
    compare,
    comparison,
    practice,
    value_of_information,
    values_in_draws,
)
from brmdp.decisions.policies import as_policy_weights
from oracles import decisions as oracle
from problems import problem


def pair_of_policies(case, seed):
    return random_policy(case, seed, stochastic=True), random_policy(case, seed + 1)


def loop(case, n, seed, evaluate):
    """``evaluate(kernel)`` in draws of whole kernels."""
    draws = case.belief.sample_entries(n, rng=np.random.default_rng(seed))
    return np.array([evaluate(dense_kernel(case, draw)) for draw in draws])


def close(estimate, values):
    """Whether a mean agrees with independent values, within four standard errors."""
    error = np.hypot(estimate.error, values.std(ddof=1) / np.sqrt(len(values)))
    return abs(estimate.mean - values.mean()) <= 4 * error + 1e-9


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", ["dense", "inadmissible", "disturbance", "censored", "scenarios", "blend"]
)
def test_comparison_against_a_loop(kind):
    case = KINDS[kind](5)
    policy, baseline = pair_of_policies(case, 3)
    weights = as_policy_weights(policy, case.admissible)
    base = as_policy_weights(baseline, case.admissible)
    start = np.full(case.n_states, 1 / case.n_states)
    got = compare(
        case.belief, case.rewards, case.discount, policy, baseline, start=start, draws=4000, rng=1
    )
    rest = (case.rewards, case.discount)

    def both(kernel):
        mine = oracle.policy_value(kernel, rest[0], weights, rest[1])
        theirs = oracle.policy_value(kernel, rest[0], base, rest[1])
        best = oracle.optimal_value(kernel, *rest, case.admissible, 1e-9)
        return start @ mine, start @ theirs, start @ best

    mine, theirs, best = loop(case, 400, 2, both).T
    gains = mine - theirs
    assert close(got.gain, gains)
    assert close(got.regret, best - mine)
    assert close(got.baseline_regret, best - theirs)
    assert got.regret.mean - got.baseline_regret.mean == pytest.approx(
        -got.gain.mean, abs=6 * (got.gain.error + got.regret.error)
    )
    table = [[(gains > 0).sum(), (gains <= 0).sum()]]
    table.append([round(4000 * got.better), 4000 - round(4000 * got.better)])
    assert stats.fisher_exact(table).pvalue > 1e-4
    low, high = got.better_interval
    assert low <= got.better <= high
    inside = ((gains >= got.interval[0] - 1e-9) & (gains <= got.interval[1] + 1e-9)).mean()
    assert inside > 0.92
    if kind != "scenarios":
        assert inside < 0.98
    # single states
    switched = loop(
        case,
        400,
        3,
        lambda kernel: oracle.switched_gains(kernel, rest[0], weights, base, rest[1], start),
    )
    mean = dense_kernel(case, case.belief.mean_entries())
    assert {d.state for d in got.differences} == set(got.different_states.tolist())
    assert got.n_different == (weights != base).any(axis=1).sum()
    for found in got.differences:
        assert close(found.worth, switched[:, found.state])
        assert found.interval[0] <= found.worth.mean <= found.interval[1]
        for share, chosen in ((found.baseline_visits, base), (found.policy_visits, weights)):
            wanted = oracle.visits(mean, chosen, case.discount, start)[found.state]
            assert share == pytest.approx(wanted, abs=1e-9)
    worths = [abs(d.worth.mean) for d in got.differences]
    assert worths == sorted(worths, reverse=True)


def test_gains_are_exact_in_each_draw(monkeypatch):
    """The very draws of a comparison, recomputed one by one."""
    blocks = []

    class Spy(Sampler):
        def __init__(self, *given, **named):
            super().__init__(*given, **{**named, "kernels": True})

        def blocks(self, n):
            for block in super().blocks(n):
                blocks.append(block)
                yield block

    monkeypatch.setattr(comparison, "Sampler", Spy)
    case = KINDS["dense"](8)
    policy, baseline = pair_of_policies(case, 1)
    weights, base = (as_policy_weights(p, case.admissible) for p in (policy, baseline))
    got = compare(
        case.belief,
        case.rewards,
        case.discount,
        policy,
        baseline,
        start=2,
        draws=100,
        regret_draws=0,
        differences=0,
        rng=3,
    )
    gains = []
    for entries in np.concatenate([block.kernels for block in blocks]):
        kernel = dense_kernel(case, entries)
        both = [
            oracle.policy_value(kernel, case.rewards, w, case.discount) for w in (weights, base)
        ]
        gains.append(both[0][2] - both[1][2])
    gains = np.array(gains)
    assert got.gain.mean == pytest.approx(gains.mean(), abs=1e-10)
    assert got.gain.error == pytest.approx(gains.std(ddof=1) / 10, abs=1e-10)
    # the k-th smallest of 100 draws is taken for the k/101 quantile
    ordered, places = np.sort(gains), np.array([0.025, 0.975]) * 101 - 1
    wanted = np.interp(places, np.arange(100), ordered)
    np.testing.assert_allclose(got.interval, wanted, atol=1e-10)
    assert got.better == (gains > 0).mean()
    wanted = stats.binomtest(int((gains > 0).sum()), 100).proportion_ci(0.95, method="exact")
    np.testing.assert_allclose(got.better_interval, wanted, atol=1e-9)
    assert got.regret is None
    assert got.differences == ()


def test_ties_count_apart():
    """Two actions with the same row and reward are as good as each other."""
    case = KINDS["scenarios"](2)
    kernels = case.belief.pattern.dense(case.belief.scenario_entries)
    kernels[:, :, 1] = kernels[:, :, 0]
    belief = brmdp.ScenarioBelief(kernels, case.belief.weights)
    rewards = np.zeros(case.rewards.shape)
    rewards[:, :2] = case.rewards[:, :1]
    zeros, ones = np.zeros(4, int), np.ones(4, int)
    same = compare(belief, rewards, 0.8, zeros, zeros, draws=100, rng=0)
    twin = compare(belief, rewards, 0.8, ones, zeros, draws=100, rng=0)
    for got in (same, twin):
        assert got.ties == 1.0
        assert got.better == 0.0
        assert got.better_interval[0] == 0.0
    assert "the same actions everywhere" in str(same)
    assert "as good in another 100 %" in " ".join(str(twin).split())
    assert twin.n_different == 4


def test_default_starts():
    case = problem("riverswim")
    arguments = (case.rewards, case.discount, np.ones(6, int), np.zeros(6, int))
    options = {"draws": 100, "regret_draws": 0, "differences": 0, "rng": 0}
    seen = compare(case.belief, *arguments, **options)
    assert seen.start == "observed states"
    share = case.belief.observed_states() / case.belief.observed_states().sum()
    assert seen.gain == compare(case.belief, *arguments, start=share, **options).gain
    bare = brmdp.DirichletBelief.uniform(6, 2)
    assert compare(bare, *arguments, **options).start == "all states equally"
    assert compare(bare, *arguments, start=2, **options).start == "given"


def test_the_doubt_about_practice_widens_the_interval():
    case = KINDS["dense"](4)
    counts = np.random.default_rng(0).integers(0, 3, case.shape)
    few = practice(counts)
    policy = random_policy(case, 1)
    arguments = (case.belief, case.rewards, case.discount, policy)
    options = {"start": 0, "draws": 3000, "regret_draws": 0, "rng": 1}
    doubtful = compare(*arguments, few, **options)
    fixed = compare(*arguments, few.mean, **options)
    assert np.ptp(doubtful.interval) > 1.05 * np.ptp(fixed.interval)
    assert doubtful.differences


def test_words():
    case = problem("riverswim")
    got = compare(
        case.belief, case.rewards, case.discount, np.ones(6, int), np.zeros(6, int), start=0, rng=0
    )
    text = " ".join(str(got).split())
    for part in (
        "need not add up",
        "Monte Carlo interval",
        "with probability 0.95",
        "start: given",
    ):
        assert part in text
    assert max(map(len, str(got).splitlines())) <= 100
    assert len(repr(got)) < 400


# --- units ----------------------------------------------------------------------------------------


def units_log(seed, spread, n_units=40, steps=30):
    """Action 0 leads to state 1 with a chance of its own in each unit, unless ``spread`` is 0."""
    rng = np.random.default_rng(seed)
    columns = []
    for unit in range(n_units):
        chance = 0.5 + spread * rng.choice([-1, 1])
        s, a = rng.integers(2, size=(2, steps))
        t = rng.random(steps) < np.where(a == 0, chance, 0.5)
        columns.append(np.stack([np.full(steps, unit), s, a, t]))
    return np.concatenate(columns, axis=1)


def compare_units(seed, spread):
    unit, s, a, t = units_log(seed, spread)
    prior = brmdp.DirichletBelief.uniform(2, 2)
    belief = prior.copy()
    belief.observe(s, a, t)
    log = UnitLog(prior, unit, s, a, t)
    rewards = [[0.0, 0.0], [1.0, 1.0]]
    return compare(
        belief, rewards, 0.8, [0, 0], [1, 1], start=0, units=log, draws=1000, regret_draws=0, rng=0
    )


@pytest.mark.long
def test_units_that_differ_show():
    alike = [compare_units(seed, 0.0).units.ratio for seed in range(4)]
    assert 0.8 < np.mean(alike) < 1.25
    got = compare_units(1, 0.4)
    assert got.units.ratio > 1.5
    assert "the belief is too sure" in " ".join(str(got).split())
    assert got.units.n_units == 40


def test_units_are_those_that_the_belief_learned_from():
    """Others would be compared with a doubt that is not theirs, and could reassure falsely."""
    unit, s, a, t = units_log(0, 0.0)
    prior = brmdp.DirichletBelief.uniform(2, 2)
    log = UnitLog(prior, unit, s, a, t)
    prior.observe(0, 0, 1)  # the caller's belief is no longer the one before the log
    belief = brmdp.DirichletBelief.uniform(2, 2)
    belief.observe(s, a, t)
    settings = {"start": 0, "draws": 100, "regret_draws": 0, "rng": 0}
    rewards = [[0.0, 0.0], [1.0, 1.0]]
    assert compare(belief, rewards, 0.8, [0, 0], [1, 1], units=log, **settings).units.n_units == 40
    half = UnitLog(log.prior, unit[::2], s[::2], a[::2], t[::2])
    other = UnitLog(log.prior, unit, s, a, 1 - t)
    for units, words in ((half, "units have"), (other, "others")):
        with pytest.raises(brmdp.InvalidInputError, match=f"learned from.*{words}"):
            compare(belief, rewards, 0.8, [0, 0], [1, 1], units=units, **settings)


@pytest.mark.long
def test_resampled_units_against_a_loop(monkeypatch):
    monkeypatch.setattr(comparison, "RESAMPLES", 300)
    unit, s, a, t = units_log(2, 0.3, 8, 10)
    prior = brmdp.DirichletBelief.jeffreys(2, 2)
    belief = prior.copy()
    belief.observe(s, a, t)
    names = np.array(list("abcdefgh"))[unit]
    rewards = np.array([[0.0, 0.5], [1.0, 1.0]])
    got = compare(
        belief, rewards, 0.8, [0, 0], [1, 1], start=0, units=UnitLog(prior, names, s, a, t), rng=4
    ).units
    rng, wide = np.random.default_rng(5), np.repeat(rewards[:, :, None], 2, axis=2)
    gains = []
    for _ in range(1500):
        phi = np.full((2, 2, 2), 0.5)
        for u in rng.integers(8, size=8):
            for k in np.flatnonzero(unit == u):
                phi[s[k], a[k], t[k]] += 1
        kernel = phi / phi.sum(axis=2, keepdims=True)
        values = [
            oracle.policy_value(kernel, wide, oracle.one_hot([b, b], 2), 0.8)[0] for b in (0, 1)
        ]
        gains.append(values[0] - values[1])
    assert got.spread == pytest.approx(np.std(gains), rel=0.2)
    np.testing.assert_allclose(
        got.interval, np.quantile(gains, (0.025, 0.975)), atol=0.35 * got.spread
    )


# --- the value of information ---------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("kind", ["dense", "disturbance", "censored", "scenarios"])
def test_perfect_information_against_value_iteration(kind):
    case = KINDS[kind](11)
    policy = case.plan(brmdp.Mean()).policy
    got = value_of_information(
        case.belief, case.rewards, case.discount, candidates=[policy], start=0, draws=3000, rng=1
    )
    weights = oracle.one_hot(policy, case.shape[1])

    def lost(kernel):
        best = oracle.optimal_value(kernel, case.rewards, case.discount, case.admissible, 1e-9)
        mine = oracle.policy_value(kernel, case.rewards, weights, case.discount)
        return best[0] - mine[0], mine[0]

    regrets, values = loop(case, 500, 2, lost).T
    assert close(got.perfect, regrets)
    assert close(got.value, values)
    assert got.sample is None
    assert got.perfect.mean >= -1e-9


@pytest.mark.long
def test_sample_information_of_two_arms():
    """A bandit: the value of n more pulls is known from the Beta-binomial law.

    Arm 0 pays 1/2 for sure; arm 1 pays with unknown probability p ~ Beta(2, 3). The next states are
    the payments. After k of n successes, arm 1 is chosen if (2 + k)/(5 + n) > 1/2.
    """
    phi = np.zeros((3, 2, 3))
    phi[0, 0, 2] = 1.0
    phi[0, 1] = (3.0, 2.0, 0.0)
    phi[1:] = 0.0
    phi[1, :, 0] = phi[2, :, 0] = 1.0
    # state 0: choose; state 1: arm 1 paid; state 2: arm 0 was chosen. Failure stays in 0.
    belief = brmdp.DirichletBelief(phi)
    rewards = np.zeros((3, 2, 3))
    rewards[0, 0, 2] = 0.5
    rewards[0, 1, 1] = 1.0
    discount = 0.0
    for n in (1, 4, 20):
        got = value_of_information(
            belief, rewards, discount, pairs=[(0, 1)], transitions=n, start=0, draws=4000, rng=n
        )
        law = stats.betabinom(n, 2, 3)
        k = np.arange(n + 1)
        after = (2 + k) / (5 + n)
        wanted = law.pmf(k) @ np.maximum(after, 0.5) - 0.5
        assert abs(got.sample.mean - wanted) <= 4 * got.sample.error + 1e-12
        assert got.changed == pytest.approx(law.pmf(k) @ (after > 0.5), abs=0.04)
        low, high = got.sample.interval
        assert low <= got.sample.mean <= high
    p = stats.beta(2, 3)
    perfect = p.expect(lambda x: np.maximum(x, 0.5)) - 0.5
    assert abs(got.perfect.mean - perfect) <= 4 * got.perfect.error
    text = " ".join(str(got).split())
    assert "20 more transitions of each of 1 pairs" in text


@pytest.mark.long
@pytest.mark.parametrize("kind", ["disturbance", "censored", "scenarios", "inadmissible"])
def test_sample_information_of_other_beliefs(kind):
    case = KINDS[kind](3)
    pairs = np.argwhere(case.admissible)[:3]
    before = case.belief.mean_entries().copy()
    got = value_of_information(
        case.belief,
        case.rewards,
        case.discount,
        pairs=pairs,
        transitions=30,
        start=0,
        draws=150,
        rng=0,
    )
    np.testing.assert_array_equal(case.belief.mean_entries(), before)
    assert got.sample.interval[0] <= got.perfect.interval[1]
    assert 0.0 <= got.changed <= 1.0


# --- bad input ------------------------------------------------------------------------------------


def test_bad_arguments():
    case = KINDS["dense"](1)
    good = random_policy(case, 1)

    def call(policy=good, baseline=good, **named):
        compare(case.belief, case.rewards, 0.8, policy, baseline, **{"rng": 0, **named})

    for named, message in (
        ({"baseline": [[0.5, 0.4, 0.0]] * 4}, "baseline must have probabilities that sum to one"),
        ({"baseline": [[np.nan, 0.5, 0.5]] * 4}, "baseline"),
        ({"policy": [0, 0]}, "policy"),
        ({"draws": 99}, "draws must be at least 100"),
        ({"draws": -1}, "draws"),
        ({"regret_draws": -1}, "regret_draws"),
        ({"differences": 1.5}, "differences"),
        ({"start": 17}, "start"),
        ({"units": [1, 2]}, "UnitLog"),
    ):
        with pytest.raises(brmdp.InvalidInputError, match=message):
            call(**named)
    other = brmdp.DirichletBelief.uniform(4, 2)
    with pytest.raises(brmdp.InvalidInputError, match="same possible transitions"):
        call(units=UnitLog(other, [1], [0], [0], [0]))
    for columns, message in (
        (([1, 2], [0], [0], [0]), "one length"),
        (([1.0, np.nan], [0, 0], [0, 0], [0, 0]), "missing"),
        (([1], [7], [0], [0]), "state"),
        (([], [], [], []), "one length"),
    ):
        with pytest.raises(brmdp.InvalidInputError, match=message):
            UnitLog(other, *columns)

    def information(**named):
        value_of_information(case.belief, case.rewards, 0.8, **{"rng": 0, **named})

    for named, message in (
        ({"pairs": [(0, 0)]}, "together"),
        ({"transitions": 3}, "together"),
        ({"pairs": [(0, 9)], "transitions": 3}, "action"),
        ({"pairs": [(9, 0)], "transitions": 3}, "state"),
        ({"pairs": [(0, 0), (0, 0)], "transitions": 3}, "distinct"),
        ({"pairs": [0, 0], "transitions": 3}, "shape"),
        ({"pairs": [(0, 0)], "transitions": 0}, "transitions"),
        ({"draws": 5}, "draws"),
        ({"candidates": {}}, "at least one"),
    ):
        with pytest.raises(brmdp.InvalidInputError, match=message):
            information(**named)
    mute = KINDS["blend"](1)
    with pytest.raises(brmdp.InvalidInputError, match="copy"):
        value_of_information(mute.belief, mute.rewards, 0.8, pairs=[(0, 0)], transitions=3, rng=0)
    assert values_in_draws(mute.belief, mute.rewards, 0.8, [[0] * 4], draws=3, rng=0).values.size
