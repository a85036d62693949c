"""CensoredDisturbanceBelief: a demand that a lost sale shows only as "at least"."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp.planning import certify_nested
from oracles import censored as oracle

CAPACITY, DEMANDS = 5, 6
S = CAPACITY + 1
PRIOR = np.array([0.5, 1.0, 2.0, 0.7, 1.3, 0.4])


def admissible_orders():
    return np.add.outer(np.arange(S), np.arange(S)) <= CAPACITY


def shop(concentration=PRIOR, kind=brmdp.CensoredDisturbanceBelief):
    return kind.from_function(
        lambda stock, order, demand: max(stock + order - demand, 0),
        *(S, S, DEMANDS, concentration),
        admissible=admissible_orders(),
    )


def profits(shortage=0.5):
    s, a, d = np.ogrid[:S, :S, :DEMANDS]
    sold = np.minimum(s + a, d)
    return 3.0 * sold - 1.0 * a - 0.1 * s - shortage * (d - sold)


def plain(concentration):
    """A belief about the disturbance alone."""
    size = np.size(concentration)
    return brmdp.CensoredDisturbanceBelief(np.zeros((1, 1, size), dtype=int), concentration)


def told(belief, seen):
    """The belief after data given as the sets of values that each observation leaves possible."""
    for possible in seen:
        if len(possible) == 1:
            belief.observe_disturbance(min(possible))
        else:
            belief.observe_at_least(min(possible))
    return belief


def from_(c, size):
    return set(range(c, size))


def state_of(belief):
    return tuple(array.tobytes() for array in belief.arrays().values())


# --- the posterior --------------------------------------------------------------------------------

THREE = [[], [{0}], [from_(1, 3)], [{0}, {2}, from_(1, 3), from_(1, 3), {1}], [from_(1, 3)] * 8]


@pytest.mark.parametrize("seen", THREE)
@pytest.mark.parametrize("prior", [(2.0, 3.0, 2.0), (2.5, 2.0, 4.0)])
def test_updates_are_bayes_on_a_grid_of_the_simplex(prior, seen):
    belief = told(plain(prior), seen)
    mean, variance = oracle.on_the_simplex(prior, seen)
    np.testing.assert_allclose(belief.disturbance_mean(), mean, atol=2e-5)
    np.testing.assert_allclose(belief.disturbance_variance(), variance, rtol=2e-4)


FOUR = [
    [from_(1, 4), from_(2, 4), {0}, {3}],
    [from_(2, 4)] * 5 + [{1}, {1}],
    [from_(1, 4), {2}, {2}, {0}, from_(2, 4), from_(3, 4)],
    [from_(0, 4), from_(1, 4)],
]


@pytest.mark.parametrize("seen", FOUR)
@pytest.mark.parametrize("prior", [(1.0, 1.0, 1.0, 1.0), (2.0, 1.0, 3.0, 2.0)])
def test_updates_are_bayes_on_a_grid_of_hazards(prior, seen):
    belief = told(plain(prior), seen)
    mean, variance = oracle.on_the_hazards(prior, seen)
    np.testing.assert_allclose(belief.disturbance_mean(), mean, rtol=1e-11)
    np.testing.assert_allclose(belief.disturbance_variance(), variance, rtol=1e-10)


@pytest.mark.parametrize("seen", FOUR)
def test_moments_are_those_of_the_mixture_over_what_was_hidden(seen):
    prior = (0.3, 0.05, 1.7, 0.6)
    weights, phis = oracle.as_a_mixture(prior, seen)
    totals = phis.sum(axis=1, keepdims=True)
    mean = weights @ (phis / totals)
    second = weights @ (phis * (phis + 1.0) / (totals * (totals + 1.0)))
    belief = told(plain(prior), seen)
    np.testing.assert_allclose(belief.disturbance_mean(), mean, rtol=1e-12)
    np.testing.assert_allclose(belief.disturbance_variance(), second - mean**2, rtol=1e-10)


def test_hazards_count_who_was_there_to_see():
    belief = told(plain(PRIOR), [{2}, {0}, from_(3, 6), from_(1, 6)])
    a, b = belief.hazards()
    tails = PRIOR[::-1].cumsum()[::-1]
    np.testing.assert_allclose(a - PRIOR[:-1], [1, 0, 1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(b - tails[1:], [3, 2, 1, 0, 0], atol=1e-15)
    assert belief.n_observations == 4


def test_the_order_of_observations_is_irrelevant():
    seen = [{1}, from_(2, 6), from_(4, 6), {5}]
    states = {state_of(told(plain(PRIOR), order)) for order in permutations(seen)}
    assert len(states) == 1


def test_bounds_at_the_ends_are_nothing_or_exact():
    belief, twin = plain(PRIOR), plain(PRIOR)
    belief.observe_at_least([0, 0, 5, 0])
    twin.observe_disturbance(5)
    assert state_of(belief) == state_of(twin)
    assert belief.is_dirichlet
    assert belief.n_observations == 1


# --- without hidden values: the Dirichlet belief --------------------------------------------------


def test_without_hidden_values_it_is_the_disturbance_belief_to_the_bit():
    belief, twin = shop(), shop(kind=brmdp.DisturbanceBelief)
    for one in (belief, twin):
        one.observe([5, 4, 5], 0, [3, 4, 0])  # the demands 2, 0, 5
        one.observe(1, 1, 0, disturbance=3)
        one.observe_disturbance([1, 1, 4])
    assert belief.is_dirichlet
    for name in ("disturbance_mean", "disturbance_variance", "counts", "mean_entries"):
        np.testing.assert_array_equal(getattr(belief, name)(), getattr(twin, name)())
    np.testing.assert_array_equal(belief.concentration_entries, twin.concentration())
    np.testing.assert_array_equal(belief.sample(5, rng=1), twin.sample(5, rng=1))
    pairs = belief.pattern.pairs
    np.testing.assert_array_equal(belief.evidence(pairs), twin.evidence(pairs))
    rewards = brmdp.DisturbanceRewards(profits())
    for risk in (brmdp.Quantile(0.2), brmdp.CVaR(0.3), brmdp.Mean()):
        one, two = (brmdp.plan(b, rewards, 0.9, risk=risk) for b in (belief, twin))
        np.testing.assert_array_equal(one.q_values, two.q_values)
        assert one.status == two.status == "converged"
        assert one.error_bound == two.error_bound
    one, two = (
        certify_nested(b, rewards, 0.8, confidence=0.9, coverage_samples=200, rng=0)
        for b in (belief, twin)
    )
    np.testing.assert_array_equal(one.values, two.values)


def test_the_generalised_law_continues_the_dirichlet_one():
    """The formulas of both branches agree where both hold."""
    belief = told(plain(PRIOR), [{0}, {3}, {3}])
    exact = belief.disturbance_mean(), belief.disturbance_variance()
    draws = belief.sample_disturbance(4000, rng=np.random.default_rng(1))
    general = Generalised(np.zeros((1, 1, DEMANDS), dtype=int), PRIOR)
    told(general, [{0}, {3}, {3}])
    assert not general.is_dirichlet
    np.testing.assert_allclose(general.disturbance_mean(), exact[0], rtol=1e-14)
    np.testing.assert_allclose(general.disturbance_variance(), exact[1], rtol=1e-12)
    others = general.sample_disturbance(4000, rng=np.random.default_rng(2))
    for j in range(DEMANDS):
        assert stats.ks_2samp(draws[:, j], others[:, j]).pvalue > 1e-3
    assert general.evidence(np.arange(1))[1] == pytest.approx(3.0, rel=1e-12)


class Generalised(brmdp.CensoredDisturbanceBelief):
    """Takes the general formulas even where the law is a Dirichlet law."""

    is_dirichlet = False


def test_with_hidden_values_nothing_takes_it_for_a_dirichlet_law():
    belief = shop()
    rewards = brmdp.DisturbanceRewards(profits())
    assert brmdp.plan(belief, rewards, 0.9, risk=brmdp.Quantile(0.2)).status == "converged"
    belief.observe(1, 1, 0)
    assert not belief.is_dirichlet
    assert not hasattr(belief, "concentration_entries")
    for risk in (brmdp.Quantile(0.2), brmdp.CVaR(0.2)):
        plan = brmdp.plan(belief, rewards, 0.9, risk=risk)
        assert plan.status == "sampled"
        again = brmdp.plan(belief, rewards, 0.9, risk=risk)
        np.testing.assert_array_equal(plan.values, again.values)
    assert brmdp.plan(belief, rewards, 0.9, risk=brmdp.Mean()).status == "converged"
    with pytest.raises(brmdp.InvalidInputError, match="CensoredDisturbanceBelief"):
        certify_nested(belief, rewards, 0.9, rng=0)


def test_saddlepoints_are_refused_before_anything_is_hidden():
    with pytest.raises(brmdp.InvalidInputError, match=r"saddlepoint.*CensoredDisturbanceBelief"):
        brmdp.plan(
            *(shop(), brmdp.DisturbanceRewards(profits()), 0.9),
            risk=brmdp.Quantile(0.2, method="saddlepoint"),
        )


# --- draws ----------------------------------------------------------------------------------------

HIDDEN = [{0}, {1}, {1}, {2}, from_(1, 6), from_(2, 6), from_(2, 6), from_(4, 6)]


def test_moments_of_draws():
    belief = told(plain(PRIOR), HIDDEN)
    n = 40_000
    draws = belief.sample_disturbance(n, rng=np.random.default_rng(5))
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, atol=1e-14)
    mean, variance = belief.disturbance_mean(), belief.disturbance_variance()
    assert mean.sum() == pytest.approx(1.0, abs=1e-14)
    assert (np.abs(draws.mean(axis=0) - mean) < 4.5 * np.sqrt(variance / n)).all()
    fourth = ((draws - mean) ** 4).mean(axis=0)
    off = np.abs(((draws - mean) ** 2).mean(axis=0) - variance)
    assert (off < 4.5 * np.sqrt((fourth - variance**2) / n)).all()


@pytest.mark.parametrize("alpha", [0.05, 0.3, 0.9])
def test_sampled_quantiles_are_near_the_exact_law_of_the_mixture(alpha):
    """w·p has the law of a mixture of Dirichlet laws: the quantile's exact probability is near α.

    The plan's draws are fixed, so its quantile is an order statistic of 2,048 of them.
    """
    belief = told(shop(), HIDDEN)
    rewards = brmdp.DisturbanceRewards(profits())
    found = brmdp.backup(belief, rewards, 0.0, np.zeros(S), risk=brmdp.Quantile(alpha))
    near = 4.5 * np.sqrt(alpha * (1.0 - alpha) / 2048)
    for s, a in ((0, 5), (0, 2), (3, 1)):
        reached = oracle.cdf(PRIOR, HIDDEN, profits()[s, a], found.q_values[s, a])
        assert abs(reached - alpha) < near


def test_all_pairs_of_a_draw_share_the_distribution():
    belief = told(shop(), HIDDEN)
    flat = belief.sample(50, rng=3, format="flat").reshape(50, -1, DEMANDS)
    assert (flat == flat[:, :1]).all()
    assert len({row.tobytes() for row in flat[:, 0]}) == 50
    some = belief.sample_entries(2, np.array([1, 5]), rng=np.random.default_rng(0))
    assert some.shape == (2, 2 * DEMANDS)


@pytest.mark.parametrize("size", [1e-30, 1e-3, 1.0, 1e12])
def test_draws_survive_any_concentration(size):
    belief = plain(np.full(5, size))
    belief.observe_at_least([2, 3])
    draws = belief.sample_disturbance(2000, rng=np.random.default_rng(0))
    assert np.isfinite(draws).all()
    assert (draws >= 0.0).all()
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, atol=1e-14)
    mean, variance = belief.disturbance_mean(), belief.disturbance_variance()
    assert np.isfinite(variance).all()
    assert (variance >= 0.0).all()
    assert (np.abs(draws.mean(axis=0) - mean) <= 4.5 * np.sqrt(variance / 2000) + 1e-12).all()


def test_tiny_concentrations_decide_for_one_value():
    belief = plain(np.full(4, 1e-30))
    belief.observe_at_least(2)
    draws = belief.sample_disturbance(2000, rng=np.random.default_rng(0))
    np.testing.assert_allclose(draws.max(axis=1), 1.0)
    shares = draws.mean(axis=0)
    np.testing.assert_allclose(shares[:2], 0.0, atol=1e-12)
    assert abs(shares[2] - 0.5) < 4.5 * np.sqrt(0.25 / 2000)


# --- what a transition says -----------------------------------------------------------------------


def test_a_transition_says_exactly_or_at_least():
    belief = shop()
    belief.observe(4, 1, 2)  # three sold of five
    belief.observe(3, 0, 0)  # sold out: at least three
    belief.observe(0, 0, 0)  # an empty shop learns nothing
    belief.observe(5, 0, 0)  # only the largest demand empties this shelf
    belief.observe(2, 0, 0, disturbance=4)  # somebody counted
    np.testing.assert_array_equal(belief.counts(), [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(belief.at_least_counts(), [0, 0, 0, 1, 0, 0])
    assert repr(belief) == (
        "CensoredDisturbanceBelief(6 states, 6 actions, 6 disturbances, 3 observed, 1 at least)"
    )
    batch = shop()
    batch.observe([4, 3, 0, 5], [1, 0, 0, 0], [2, 0, 0, 0])
    batch.observe([2], [0], [0], [4])
    assert state_of(batch) == state_of(belief)


@pytest.mark.parametrize(
    ("arguments", "error", "culprit"),
    [
        ((4, 0, 5), brmdp.ImpossibleTransitionError, "state=4, action=0, next_state=5.*impossible"),
        ((5, 0, 0, 4), brmdp.ImpossibleTransitionError, "disturbance 4 leads.*to 1, not"),
        ((6, 0, 0), brmdp.InvalidInputError, "state must.*6"),
        ((0, 0, 0, 6), brmdp.InvalidInputError, "disturbance must.*6"),
        ((0, 0, 0, -1), brmdp.InvalidInputError, "disturbance must.*-1"),
        ((5, 1, 0), brmdp.InvalidInputError, "action 1 is not admissible in state 5"),
    ],
)
def test_bad_transitions_change_nothing(arguments, error, culprit):
    belief = told(shop(), HIDDEN)
    before = state_of(belief)
    with pytest.raises(error, match=culprit):
        belief.observe(*arguments)
    columns = [[good, bad] for good, bad in zip((4, 1, 2, 3), arguments, strict=False)]
    with pytest.raises(error, match=culprit):
        belief.observe(*columns)
    assert state_of(belief) == before


@pytest.mark.parametrize("bad", [-1, 6, 7, 2.0, "2", None, True, [1, -1], [1, 6], [[1], [2, 3]]])
def test_bad_bounds_change_nothing(bad):
    belief = told(shop(), HIDDEN)
    before = state_of(belief)
    with pytest.raises(brmdp.InvalidInputError, match="bound must"):
        belief.observe_at_least(bad)
    assert state_of(belief) == before


def test_sets_that_are_not_at_least_are_refused():
    outcomes = [[[0, 1, 0, 1], [1, 1, 0, 0]], [[0, 0, 0, 1], [1, 0, 0, 1]]]
    belief = brmdp.CensoredDisturbanceBelief(outcomes)
    for transition, left in (
        ((0, 0, 0), r"\[0, 2\]"),
        ((0, 0, 1), r"\[1, 3\]"),
        ((0, 1, 1), r"\[0, 1\]"),
        ((1, 0, 0), r"\[0, 1, 2\]"),
        ((1, 1, 1), r"\[0, 3\]"),
    ):
        with pytest.raises(
            brmdp.InvalidInputError, match=rf"not say.*'at least'.*{left} of 0\.\.3.*disturbance="
        ):
            belief.observe(*transition)
    assert belief.n_observations == 0
    belief.observe(0, 1, 0)
    np.testing.assert_array_equal(belief.at_least_counts(), [0, 0, 1, 0])
    belief.observe(0, 0, 1, disturbance=3)
    np.testing.assert_array_equal(belief.counts(), [0, 0, 0, 1])


def test_the_exact_belief_points_here():
    twin = shop(kind=brmdp.DisturbanceBelief)
    with pytest.raises(brmdp.InvalidInputError, match="CensoredDisturbanceBelief"):
        twin.observe(3, 0, 0)


def test_copies_are_independent():
    original = told(shop(), HIDDEN)
    twin = original.copy()
    assert state_of(twin) == state_of(original)
    twin.observe_at_least(3)
    assert original.at_least_counts()[3] == 0
    original.at_least_counts()[:] = 9
    original.counts()[:] = 9
    assert original.n_observations == len(HIDDEN)


# --- prior and data -------------------------------------------------------------------------------


def counted(seen, prior=1.0, size=6):
    belief = told(plain(np.broadcast_to(prior, size)), seen)
    weight, data = belief.evidence(np.arange(3))
    assert weight == pytest.approx(np.broadcast_to(prior, size).sum())
    assert (data == data[0]).all()
    return float(data[0])


@pytest.mark.parametrize("prior", [np.ones(6), PRIOR, 0.01 * PRIOR, 40.0 * PRIOR])
def test_data_count_as_much_as_they_hold_the_mean_against_the_prior(prior):
    """Move weight of the prior, and see how far the posterior mean follows."""
    m, step = prior.sum(), 1e-6
    for seen in (HIDDEN, [from_(1, 6)] * 30 + [{0}] * 9 + [{4}], [{0}] * 20 + [from_(4, 6)]):
        mean = told(plain(prior), seen).disturbance_mean()
        shares = []
        for k in range(6):
            target = np.eye(6)[k]
            moved = told(plain((1 - step) * prior + step * m * target), seen).disturbance_mean()
            shares.append(np.abs(moved - mean).sum() / (step * np.abs(target - prior / m).sum()))
        n = m * (1.0 / min(max(shares), 0.99) - 1.0)
        assert counted(seen, prior) == pytest.approx(n, rel=1e-3)


def test_how_much_at_least_counts():
    exact = [{0}] * 10 + [{1}] * 10 + [{3}] * 10
    assert counted(exact) == 30.0
    # a single sale that was cut off costs little
    assert 20.0 < counted([*exact, from_(4, 6)]) < 30.0
    # never followed beyond two: half of the mass is split up by the prior alone
    always = [{0}] * 500 + [{1}] * 500 + [from_(2, 6)] * 1000
    assert counted(always) < 6.0
    assert counted([from_(2, 6)] * 1000) == pytest.approx(6 / 99)
    # however weak the prior is
    assert counted(always, prior=1e-3) < 6e-3
    # and an observation never counts for more than an exact one
    rng = np.random.default_rng(0)
    for _ in range(50):
        seen = [
            {int(d)} if rng.random() < 0.5 else from_(int(d), 6)
            for d in rng.integers(0, 6, rng.integers(1, 12))
        ]
        informative = sum(min(one) > 0 or len(one) == 1 for one in seen)
        assert 0.0 <= counted(seen) <= informative + 1e-9
    assert counted([from_(0, 6)] * 5) == 0.0
    assert counted([from_(3, 6)], prior=[1e12, 1e-30, 1e-30, 1e-30, 1.0, 1e-30]) > 0.0


def test_a_shop_that_always_sells_out_is_told_that_it_rests_on_the_prior():
    """A thousand days with two units a day; what three units would bring, nobody has seen."""
    belief = told(shop(1.0), [{0}] * 250 + [{1}] * 250 + [from_(2, 6)] * 500)
    rewards = brmdp.DisturbanceRewards(profits())
    with pytest.warns(brmdp.PriorWarning, match="rests heavily on the prior"):
        plan = brmdp.plan(belief, rewards, 0.9, risk=brmdp.Quantile(0.2))
    assert plan.prior.outweighs
    belief = told(shop(1.0), [{0}] * 250 + [{1}] * 250 + [from_(2, 6)] * 50 + [{2}, {4}] * 200)
    assert not brmdp.plan(belief, rewards, 0.9, risk=brmdp.Quantile(0.2)).prior.outweighs


# --- rewards --------------------------------------------------------------------------------------


def test_a_shortage_cost_is_expected_over_what_was_not_seen():
    """The mean plan is that of the known MDP in which unserved demand costs its expectation."""
    belief = told(shop(), HIDDEN)
    p = belief.disturbance_mean()
    kernel = np.zeros((S, S, S))
    mask = admissible_orders()
    for s, a in np.argwhere(mask):
        for d in range(DEMANDS):
            kernel[s, a, max(s + a - d, 0)] += p[d]
    expected = np.where(mask, profits(2.0) @ p, 0.0)
    truth = brmdp.solve(brmdp.TabularMDP(kernel, expected, 0.9, admissible=mask))
    rewards = brmdp.DisturbanceRewards(profits(2.0))
    plan = brmdp.plan(belief, rewards, 0.9, risk=brmdp.Mean())
    np.testing.assert_allclose(plan.values, truth.values, atol=1e-7)
    with pytest.raises(brmdp.InvalidInputError, match=r"rewards must have shape \(S, A, D\)"):
        brmdp.plan(*(belief, brmdp.DisturbanceRewards(profits()[..., :3]), 0.9), risk=brmdp.Mean())


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"at_least": [1, 0, 0, 0, 0, 0]},
        {"at_least": [0, 0, 0, 0, 0, 1]},
        {"at_least": [0, -1, 0, 0, 0, 0]},
        {"at_least": [0, 1, 0]},
        {"at_least": [0.0] * 6},
        {"counts": [0, 1]},
        {"prior": [0.0] * 6},
    ],
)
def test_arrays_of_a_file_must_fit(wrong):
    belief = told(shop(), HIDDEN)
    arrays = belief.arrays()
    assert state_of(type(belief).from_arrays(arrays, "file")) == state_of(belief)
    bad = {name: np.array(value) for name, value in wrong.items()}
    with pytest.raises(brmdp.CorruptFileError, match=f"file.*{next(iter(bad))}|file.*concentr"):
        type(belief).from_arrays(arrays | bad, "file")
    with pytest.raises(brmdp.CorruptFileError, match="must hold the arrays"):
        brmdp.DisturbanceBelief.from_arrays(arrays, "file")


# --- calibration ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_ranks_of_the_truth_are_uniform():
    """Truth drawn from the prior, a log whose stock depends on the past, ranks among 99 draws."""
    rng = np.random.default_rng(11)
    weights = np.stack([np.eye(DEMANDS)[4], np.arange(DEMANDS), np.eye(DEMANDS)[2]])
    ranks, naive = [], []
    for _ in range(4000):
        truth = rng.dirichlet(PRIOR)
        belief, wrong = plain(PRIOR), plain(PRIOR)
        stock = 2
        for _ in range(15):
            demand = int(rng.choice(DEMANDS, p=truth))
            if demand < stock:
                belief.observe_disturbance(demand)
            else:
                belief.observe_at_least(stock)
            wrong.observe_disturbance(min(demand, stock))
            stock = 1 + (stock + demand) % 4  # from the past, as an agent's orders are
        for one, found in ((belief, ranks), (wrong, naive)):
            draws = one.sample_disturbance(99, rng=rng) @ weights.T
            found.append((draws < weights @ truth).sum(axis=0))
    for k in range(len(weights)):
        counts = np.bincount(np.array(ranks)[:, k] // 10, minlength=10)
        assert stats.chisquare(counts).pvalue > 1e-3
        # the same test finds out a belief that takes sales for demand
        wrong_counts = np.bincount(np.array(naive)[:, k] // 10, minlength=10)
        assert stats.chisquare(wrong_counts).pvalue < 1e-6
