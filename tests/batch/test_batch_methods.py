"""Batch methods: a problem with two states by hand, independent oracles, bad input.

By hand: in state 0, action 0 pays 1 and goes on with the unknown probability p ~ Beta(a, b), action
1 pays a known amount and ends; state 1 is the end. With γ = ½ the value of action 0 is 1/(1 − p/2).
"""

import inspect

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp import batch
from brmdp.batch.credible import value_weights
from brmdp.batch.sensible import smallest_ball
from brmdp.decisions import learn_prior
from oracles import batch as oracle
from problems import dense, disturbance

A, B = 31.0, 11.0
STAYS, LEAVES = 30, 10


def by_hand(known=0.5, **settings):
    concentration = np.zeros((2, 2, 2))
    concentration[0, 0] = A, B
    concentration[0, 1, 1] = concentration[1, :, 1] = 1.0
    rewards = [[1.0, known], [0.0, 0.0]]
    counts = np.zeros((2, 2, 2))
    counts[0, 0] = STAYS, LEAVES
    counts[0, 1, 1] = 3.0
    given = {"start": 0, "counts": counts, "baseline": [[0.8, 0.2], [1.0, 0.0]], **settings}
    return batch.Batch(brmdp.DirichletBelief(concentration), rewards, 0.5, **given)


def going_on(p):
    return 1.0 / (1.0 - 0.5 * p)


METHODS = {
    "mean": batch.mean,
    "nested quantile": batch.nested_quantile,
    "value at risk": batch.value_at_risk,
    "sampled": lambda one: batch.sampled_certificate(one, rng=1),
    "RSVF": batch.rsvf,
    "BCR": lambda one: batch.credible_sets(one, rng=1),
    "BCR weighted": lambda one: batch.credible_sets(one, weighted=True, rng=1),
    "BCR global": lambda one: batch.credible_sets(one, scope="global", rng=1),
    "Hoeffding": batch.hoeffding_sets,
    "soft-robust": lambda one: batch.soft_robust(one, rng=1),
    "soft-robust entropic": lambda one: batch.soft_robust(one, measure="entropic", rng=1),
    "SPIBB": batch.spibb,
    "SPIBB, at most": lambda one: batch.spibb(one, variant="<=b"),
    "Soft-SPIBB": batch.soft_spibb,
}
BOUNDS = [name for name in METHODS if name not in ("mean",) and "soft" not in name.lower()]
BOUNDS = [name for name in BOUNDS if "SPIBB" not in name]
every_method = pytest.mark.parametrize("name", METHODS)


# --- by hand --------------------------------------------------------------------------------------


def test_mean_by_hand():
    threshold = going_on(A / (A + B))
    assert batch.mean(by_hand(threshold - 0.01)).policy[0] == 0
    assert batch.mean(by_hand(threshold + 0.01)).policy[0] == 1


@pytest.mark.parametrize(
    ("method", "level"),
    [
        (batch.nested_quantile, 1.0 - 0.9**0.5),
        (batch.value_at_risk, 0.1 / 2),
        (lambda one: batch.value_at_risk(one, union="pairs"), 0.1 / 4),
        (batch.rsvf, 0.1 / 4),
    ],
)
def test_quantiles_by_hand(method, level):
    expected = going_on(stats.beta(A, B).ppf(level))
    found = method(by_hand())
    assert found.bound == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(found.bounds, [expected, 0.0], atol=1e-5)
    assert method(by_hand(expected + 1e-3)).policy[0] == 1
    assert method(by_hand(expected - 1e-3)).policy[0] == 0


def test_credible_sets_by_hand():
    """The radius 2|p − m| is just above its posterior quantile, by order statistics."""
    mean = A / (A + B)
    law = stats.beta(A, B)
    for scope, events in (("local", 4), ("global", 1)):
        found = batch.credible_sets(by_hand(), scope=scope, draws=200_000, rng=2)
        p = 2.0 * (1.0 - 1.0 / found.bound)
        outside = law.cdf(p) + law.sf(2.0 * mean - p)
        assert 0.8 * 0.1 / events < outside < 0.1 / events


def test_weights_by_hand():
    """With two successors, both are half the range away from the middle: no weights at all."""
    one = by_hand()
    np.testing.assert_allclose(value_weights(one, one.targets(np.array([2.0, 0.0]))), 1.0)
    plain = batch.credible_sets(one, draws=200_000, rng=3)
    weighted = batch.credible_sets(one, weighted=True, draws=200_000, rng=3)
    assert weighted.bound == pytest.approx(plain.bound, abs=5e-3)


def test_hoeffding_by_hand():
    n = STAYS + LEAVES
    radius = np.sqrt(2.0 / n * np.log((2**2 - 2) * 4 / 0.1))
    found = batch.hoeffding_sets(by_hand())
    assert found.bound == pytest.approx(going_on(STAYS / n - radius / 2.0))
    assert found.promise == batch.FREQUENTIST


def test_pairs_that_were_never_logged_may_do_anything():
    counts = np.zeros((2, 2, 2))
    found = batch.hoeffding_sets(by_hand(counts=counts))
    assert found.bound == pytest.approx(1.0)  # 1 is paid, then the worst happens


def test_sampled_certificate_by_hand():
    exact = going_on(stats.beta(A, B).ppf(0.1))
    found = batch.sampled_certificate(by_hand(), rng=4)
    assert 0.985 * exact < found.bound < exact
    assert found.bounds is None


@pytest.mark.parametrize("measure", ["cvar", "entropic"])
def test_soft_robust_by_hand(measure):
    levels = (np.arange(20_000) + 0.5) / 20_000
    values = going_on(stats.beta(A, B).ppf(levels))
    tail = values[:2_000].mean() if measure == "cvar" else -np.log(np.exp(-values).mean())
    objective = 0.5 * values.mean() + 0.5 * tail
    settings = {"measure": measure, "draws": 20_000, "rng": 5}
    assert batch.soft_robust(by_hand(objective - 0.02), **settings).policy[0] == 0
    assert batch.soft_robust(by_hand(objective + 0.02), **settings).policy[0] == 1


def test_spibb_by_hand():
    # the second action was logged three times; both are known: the better one is taken for good
    np.testing.assert_allclose(batch.spibb(by_hand(0.1), fewest=3).policy[0], [1.0, 0.0])
    np.testing.assert_allclose(batch.spibb(by_hand(9.0), fewest=3).policy[0], [0.0, 1.0])
    # it is not known: as often as before, or at most as often
    np.testing.assert_allclose(batch.spibb(by_hand(0.1)).policy[0], [0.8, 0.2])
    found = batch.spibb(by_hand(0.1), variant="<=b")
    np.testing.assert_allclose(found.policy[0], [1.0, 0.0])
    np.testing.assert_allclose(batch.spibb(by_hand(9.0), variant="<=b").policy[0], [0.8, 0.2])


def test_the_margin_of_spibb_is_that_of_the_theorem():
    found = batch.spibb(by_hand(9.0), 0.95, fewest=3)
    kernel = np.zeros((2, 2, 2))
    kernel[0, 0] = STAYS / (STAYS + LEAVES), LEAVES / (STAYS + LEAVES)
    kernel[0, 1, 1] = kernel[1, :, 1] = 1.0
    rewards = np.broadcast_to(np.array([[1.0, 9.0], [0.0, 0.0]])[..., None], kernel.shape)
    before, after = (
        oracle.policy_value(kernel, rewards, 0.5, policy)[0]
        for policy in (np.array([[0.8, 0.2], [1.0, 0.0]]), found.policy)
    )
    largest = 9.0 / (1.0 - 0.5)
    deviation = np.sqrt(2.0 / 3.0 * np.log(2.0 * 4 * 2**2 / 0.05))
    assert found.margin == pytest.approx(4.0 * largest / 0.5 * deviation - (after - before))
    assert found.promise == batch.BASELINE


def test_soft_spibb_by_hand():
    errors = np.sqrt(2.0 * np.log(2 * 4 / 0.1) / np.array([STAYS + LEAVES, 3]))
    found = batch.soft_spibb(by_hand(9.0), distance=0.5)
    moved = 0.5 / errors.sum()
    np.testing.assert_allclose(found.policy[0], [0.8 - moved, 0.2 + moved])


# --- against oracles ------------------------------------------------------------------------------


def small(seed=6, states=3, actions=2):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 12, (states, actions, states)).astype(float)
    counts[:, :, 0] += 1.0  # every pair was logged
    belief = brmdp.DirichletBelief(1.0 + counts)
    rewards = rng.normal(size=(states, actions, states))
    baseline = rng.dirichlet(np.ones(actions), size=states)
    return batch.Batch(belief, rewards, 0.8, start=0, counts=counts, baseline=baseline), rewards


def test_soft_robust_finds_the_best_of_all_policies():
    one, rewards = small()
    found = batch.soft_robust(one, draws=60, rng=7)
    kernels = one.belief.sample(60, rng=np.random.default_rng(7))  # other draws, of the same law

    def objective(policy, kernels):
        weights = np.eye(2)[list(policy)]
        values = [oracle.policy_value(k, rewards, 0.8, weights)[0] for k in kernels]
        return 0.5 * np.mean(values) + 0.5 * oracle.lower_tail(values, 0.1)

    best = max(oracle.deterministic_policies(3, 2), key=lambda one: objective(one, kernels))
    assert objective(found.policy, kernels) >= objective(best, kernels) - 0.3


@pytest.mark.parametrize("measure", ["cvar", "entropic"])
def test_the_search_ends_where_no_single_switch_helps(measure):
    from brmdp.batch.soft_robust import _Search

    one, rewards = small(8, 4, 3)
    rng = np.random.default_rng(9)
    kernels = one.belief.sample_entries(50, rng=rng)
    search = _Search(one, kernels, 0.5, measure, 0.1, 0.7)
    dense_kernels = kernels.reshape(50, 4, 3, 4)

    def objective(policy):
        weights = np.eye(3)[list(policy)]
        values = [oracle.policy_value(k, rewards, 0.8, weights)[0] for k in dense_kernels]
        tail = (
            oracle.lower_tail(values, 0.1)
            if measure == "cvar"
            else -np.log(np.mean(np.exp(-0.7 * np.array(values)))) / 0.7
        )
        return 0.5 * np.mean(values) + 0.5 * tail

    policies = list(oracle.deterministic_policies(4, 3))
    for policy in policies[::10]:
        assert search.objective(np.array(policy)) == pytest.approx(objective(policy))
    reached = search.climb(np.zeros(4, dtype=np.int64))
    best = max(map(objective, policies))
    assert objective(reached) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("fewest", [1, 15, 20, 25, 1000])
def test_spibb_is_the_best_of_its_policies(fewest):
    """Of all policies that depart from the baseline with whole free masses, none is better."""
    one, rewards = small(10, 3, 3)
    counts = one.pattern.dense(one.counts)
    visits = counts.sum(axis=2)
    safe = visits >= fewest
    kernel = counts / visits[..., None]
    found = batch.spibb(one, fewest=fewest)
    own = oracle.policy_value(kernel, rewards, 0.8, found.policy)
    for choice in oracle.deterministic_policies(3, 3):
        if all(safe[s, a] or not safe[s].any() for s, a in enumerate(choice)):
            policy = np.where(safe, 0.0, one.baseline)
            for s, a in enumerate(choice):
                if safe[s].any():
                    policy[s, a] = 1.0 - policy[s].sum()
            assert (own >= oracle.policy_value(kernel, rewards, 0.8, policy) - 1e-9).all()
    assert (np.abs(found.policy - one.baseline)[~safe] < 1e-12).all()


def test_at_most_as_often_is_no_worse_than_as_often():
    for seed in range(6):
        one, rewards = small(seed, 3, 3)
        counts = one.pattern.dense(one.counts)
        kernel = counts / counts.sum(axis=2, keepdims=True)
        safe = counts.sum(axis=2) >= 15
        exactly, at_most = (batch.spibb(one, fewest=15, variant=v).policy for v in ("b", "<=b"))
        values = [oracle.policy_value(kernel, rewards, 0.8, p) for p in (exactly, at_most)]
        assert (values[1] >= values[0] - 1e-9).all()
        assert (at_most <= one.baseline + 1e-12)[~safe].all()


def test_no_step_within_the_distance_improves_soft_spibb():
    one, rewards = small(11, 3, 3)
    counts = one.pattern.dense(one.counts)
    visits = counts.sum(axis=2)
    kernel = counts / visits[..., None]
    errors = np.sqrt(2.0 * np.log(2 * 9 / 0.1) / visits)
    found = batch.soft_spibb(one, distance=0.4).policy
    assert ((errors * np.abs(found - one.baseline)).sum(axis=1) <= 0.4 + 1e-9).all()
    values = oracle.policy_value(kernel, rewards, 0.8, found)
    q = np.einsum("sat,sat->sa", kernel, rewards) + 0.8 * kernel @ values
    for s in range(3):
        best = oracle.improvement(q[s], one.baseline[s], errors[s], 0.4)
        assert found[s] @ q[s] == pytest.approx(best, abs=1e-9)


@pytest.mark.long
def test_balls_touch_their_half_spaces_and_none_smaller_does():
    rng = np.random.default_rng(12)
    for _ in range(20):
        n, count = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        mean = rng.dirichlet(np.ones(n))
        targets = rng.normal(size=(count, n))
        least = targets.min(axis=1)
        thresholds = least + rng.uniform(0.05, 0.9, count) * (targets @ mean - least)
        centre, radius = smallest_ball(mean, targets, thresholds)
        assert oracle.touches(centre, radius, targets, thresholds)
        if count == 1:
            assert radius < 1e-7
        for _ in range(20):  # other centres need at least this radius, up to the price of straying
            other = rng.dirichlet(np.ones(n))
            assert radius <= 1e-3 or not oracle.touches(other, radius - 1e-3, targets, thresholds)


def test_rsvf_is_below_the_exact_quantiles_and_above_credible_sets():
    for seed in range(4):
        one, _ = small(seed, 4, 3)
        pairs = batch.value_at_risk(one, union="pairs")
        sets = batch.rsvf(one)
        assert (sets.bounds <= pairs.bounds + 1e-6).all()
        assert (batch.credible_sets(one, rng=seed).bounds <= pairs.bounds + 1e-6).all()
        short = batch.rsvf(one, rounds=1)  # still a bound, if not a sharp one
        assert (short.bounds <= pairs.bounds + 1e-6).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_hold_as_often_as_promised(name):
    """Worlds drawn from the prior: the share of bounds that hold is at least 0.9."""
    rng = np.random.default_rng(13)
    held = 0
    for _ in range(150):
        prior = brmdp.DirichletBelief.uniform(3, 2)
        kernel = prior.sample(1, rng=rng)[0]
        rewards = rng.uniform(size=(3, 2))
        pairs = np.repeat(np.arange(6), 15)
        following = np.array([rng.choice(3, p=kernel[k // 2, k % 2]) for k in pairs])
        prior.observe(pairs // 2, pairs % 2, following)
        counts = np.zeros((3, 2, 3))
        np.add.at(counts, (pairs // 2, pairs % 2, following), 1.0)
        one = batch.Batch(prior, rewards, 0.9, start=0, counts=counts)
        found = METHODS[name](one)
        world = brmdp.TabularMDP(kernel, rewards, 0.9)
        held += brmdp.evaluate_in_mdp(world, found.policy)[0] >= found.bound
    assert stats.binom.cdf(held, 150, 0.9) > 1e-4


# --- every method ---------------------------------------------------------------------------------


@every_method
def test_results_say_what_they_promise(name):
    found = METHODS[name](by_hand())
    assert found.seconds >= 0.0
    assert (found.bound is None) == (found.promise in (batch.BASELINE, batch.NOTHING))
    assert (found.confidence is None) == (found.promise == batch.NOTHING)
    assert found.method in str(found)
    assert found.assumes
    assert repr(found).startswith("BatchPlan(")
    if name in BOUNDS:
        assert f"{found.confidence:g}" in str(found)
    if found.bounds is not None:
        assert found.bounds.shape == (2,)
        assert found.bound == pytest.approx(found.bounds[0])


@every_method
def test_a_seed_gives_the_same_plan_again(name):
    one, _ = small(14, 4, 3)
    first, again = METHODS[name](one), METHODS[name](one)
    np.testing.assert_array_equal(first.policy, again.policy)
    assert first.bound == again.bound


@every_method
def test_nothing_is_changed(name):
    one, _ = small(15)
    before = one.belief.concentration("dense").copy(), one.counts.copy(), one.baseline.copy()
    METHODS[name](one)
    after = one.belief.concentration("dense"), one.counts, one.baseline
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


@every_method
def test_shared_disturbances(name):
    """Rows that depend on each other: union bounds, counts by outcome."""
    case = disturbance(16)
    pattern = case.belief.pattern
    counts = np.random.default_rng(16).integers(0, 9, pattern.n_transitions)
    even = pattern.admissible / pattern.admissible.sum(axis=1, keepdims=True)
    one = batch.Batch(
        case.belief, case.rewards, case.discount, start=0, counts=counts, baseline=even
    )
    found = METHODS[name](one)
    assert found.bound is None or np.isfinite(found.bound)
    chosen = found.policy if found.policy.ndim == 2 else np.eye(pattern.n_actions)[found.policy]
    assert (chosen[~pattern.admissible] == 0.0).all()


@every_method
def test_results_rest_on_the_prior_and_say_so(name):
    one = batch.Batch(
        brmdp.DirichletBelief.uniform(3, 2),
        np.eye(3)[:, :2],
        0.9,
        start=0,
        counts=np.zeros((3, 2, 3)),
        baseline=np.full((3, 2), 0.5),
    )
    found = METHODS[name](one)
    if name == "Hoeffding" or "SPIBB" in name:
        assert found.prior is None
    else:
        assert found.prior.outweighs
        assert "rests heavily on the prior" in str(found)
        assert "rests on the prior" in repr(found)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"start": 2}, "start"),
        ({"start": [0.5, 0.6]}, "start"),
        ({"counts": np.zeros((2, 2))}, "counts must have shape"),
        ({"counts": -np.ones((2, 2, 2))}, "counts must be whole numbers"),
        ({"counts": np.full((2, 2, 2), 0.5)}, "counts must be whole numbers"),
        ({"counts": np.ones((2, 2, 2))}, "counts must be of possible transitions"),
        ({"counts": np.full((2, 2, 2), np.nan)}, "counts"),
        ({"baseline": [[0.8, 0.1], [1.0, 0.0]]}, "baseline"),
        ({"baseline": [0, 2]}, "baseline"),
    ],
)
def test_bad_batches_are_refused(given, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        by_hand(**given)


def test_discounts_below_one_only():
    case = dense(17)
    with pytest.raises(brmdp.InvalidInputError, match="discount"):
        batch.Batch(case.belief, case.rewards, 1.0, start=0)


@pytest.mark.parametrize("bad", [0.0, 1.0, float("nan"), "0.9", -0.1])
def test_confidence_is_checked(bad):
    for method in (getattr(batch, name) for name in batch.__all__):
        if inspect.isfunction(method) and "confidence" in inspect.signature(method).parameters:
            with pytest.raises(brmdp.InvalidInputError, match="confidence"):
                method(by_hand(), bad)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: batch.value_at_risk(one, union="rows"), "union must be"),
        (lambda one: batch.credible_sets(one, scope="both"), "scope must be"),
        (lambda one: batch.credible_sets(one, weighted=1), "weighted must be"),
        (lambda one: batch.credible_sets(one, draws=100), "draws must be at least"),
        (lambda one: batch.credible_sets(one, draws=10**9), "must be at most"),
        (lambda one: batch.credible_sets(one, failure=0.0), "failure"),
        (lambda one: batch.rsvf(one, rounds=0), "rounds"),
        (lambda one: batch.soft_robust(one, weight=1.0), "weight"),
        (lambda one: batch.soft_robust(one, measure="var"), "measure must be"),
        (lambda one: batch.soft_robust(one, level=0.0), "level"),
        (lambda one: batch.soft_robust(one, aversion=-1.0), "aversion"),
        (lambda one: batch.soft_robust(one, draws=10**9), "must be at most"),
        (lambda one: batch.spibb(one, fewest=0), "fewest"),
        (lambda one: batch.spibb(one, variant="c"), "variant must be"),
        (lambda one: batch.soft_spibb(one, distance=0.0), "distance"),
    ],
)
def test_bad_settings_are_refused(call, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        call(by_hand())


def test_what_a_method_needs_is_named():
    bare = by_hand(counts=None, baseline=None)
    for method in (batch.hoeffding_sets, lambda one: batch.spibb(by_hand(counts=None))):
        with pytest.raises(brmdp.InvalidInputError, match="counts must be given"):
            method(bare)
    for method in (batch.spibb, batch.soft_spibb):
        with pytest.raises(brmdp.InvalidInputError, match="baseline must be given"):
            method(by_hand(baseline=None))


def test_an_estimated_practice_is_a_baseline():
    counts = np.zeros((2, 2, 2))
    counts[0, 0], counts[0, 1, 1] = (STAYS, LEAVES), 3.0
    estimated = brmdp.practice(counts.sum(axis=2).astype(int))
    one = by_hand(baseline=estimated)
    np.testing.assert_allclose(one.baseline, estimated.mean)
    assert batch.spibb(one).policy.shape == (2, 2)


def test_stored_draws_are_refused_for_credible_sets():
    rng = np.random.default_rng(18)
    counts = rng.multinomial(12, [0.2, 0.3, 0.5], size=(3, 2))
    belief = learn_prior(counts, rng=rng).belief()
    one = batch.Batch(belief, np.ones((3, 2)), 0.9, start=0)
    with pytest.raises(brmdp.InvalidInputError, match="fresh draws"):
        batch.credible_sets(one)
    with pytest.raises(brmdp.InvalidInputError):
        batch.value_at_risk(one)


def test_it_says_what_it_holds():
    assert repr(by_hand()) == "Batch(2 states, 2 actions, 43 logged transitions, with a baseline)"
