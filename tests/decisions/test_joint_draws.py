"""Joint draws of κ, the laws and the rows: exact on a tiny case, calibrated on many."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, polygamma

import brmdp
from brmdp._kernels import groups
from brmdp._kernels.tables import LARGE_VARIANCE
from brmdp.beliefs.gammas import dirichlet_rows
from brmdp.decisions import learn_prior
from brmdp.decisions.families import family_of
from brmdp.decisions.gibbs import BLOCK, EXACT_SEATS, mixing_of, row_term, seat_blocks, slice_step
from brmdp.decisions.partial import GroupSampler, group_point
from brmdp.pattern import full_pattern
from oracles.learned_prior import group_moments, two_category_posterior, two_group_posterior
from problems_of_priors import logged, simulated

BOUNDS = (np.log(1e-2), np.log(1e6))


def close(draws, mean, deviation, effective, what):
    """Within five standard errors of the mean, and the spread within a tenth and noise."""
    error = deviation / np.sqrt(effective)
    assert abs(np.mean(draws) - mean) < 5 * error, what
    assert abs(np.std(draws) / deviation - 1) < 5 / np.sqrt(effective), what


@pytest.mark.long
@pytest.mark.parametrize("counts", [[[8, 2], [5, 5]], [[30, 1], [2, 25]], [[3, 0], [0, 0]]])
def test_draws_agree_with_a_grid_on_two_rows_and_two_categories(counts):
    exact = two_category_posterior(counts, 0.5, BOUNDS)
    learned = learn_prior(
        np.array(counts)[:, None, :], shape="destinations", draws=4000, rng=np.random.default_rng(5)
    )
    hyper = learned.belief()._hyper
    effective = learned.mixing.effective
    assert learned.mixing.mixed
    assert effective > 1000
    close(hyper.log_strength[:, 0], *exact["ln κ"], effective, "ln κ")
    close(hyper.law[:, 0], *exact["m"], effective, "m")
    rows = learned.belief().sample_entries(4000, rng=np.random.default_rng(6))
    close(rows[:, 0], *exact["row"], effective, "row")
    assert learned.belief().mean_entries()[0] == pytest.approx(
        exact["row"][0], abs=5 * exact["row"][1] / np.sqrt(effective)
    )
    levels = np.interp(hyper.log_strength[:, 0], exact["grid"], exact["cumulative"])
    assert stats.kstest(levels[:: max(1, int(4000 / effective))], "uniform").pvalue > 1e-3
    ends = np.interp([0.05, 0.95], exact["cumulative"], exact["grid"])
    found = learned.strength[0]
    np.testing.assert_allclose(np.log([found.low, found.high]), ends, atol=0.5)


@pytest.mark.long
@pytest.mark.parametrize("counts", [[[8, 2], [3, 5]], [[20, 4], [1, 30], [5, 5]], [[0, 0], [6, 1]]])
def test_draws_of_partially_pooled_groups_agree_with_a_grid(counts):
    bounds = (1.0, 300.0)
    exact = two_group_posterior(counts, tuple(np.log(bounds)))
    tables = {}
    for g, (first, second) in enumerate(counts):
        tables[g] = np.zeros((2, 1, 2), dtype=int)
        tables[g][0, 0] = first, second
    learned = learn_prior(
        tables, shape="uniform", pooling="partial", strength_range=bounds, draws=2000, rng=15
    )
    effective = learned.mixing.effective
    assert learned.mixing.mixed
    assert effective > 400
    belief = learned.belief(0)
    close(belief._hyper.log_strength, *exact["ln κ_0"], effective, "ln κ_0")
    close(belief._hyper.rows[:, 0], *exact["Q"], effective, "Q")
    rows = belief.sample_entries(2000, rng=np.random.default_rng(16))
    close(rows[:, 0], *exact["P_0"], effective, "P_0")
    error = 5 * exact["ln κ"][1] / np.sqrt(effective)
    assert np.log(learned.strength[0].value) == pytest.approx(exact["ln κ"][0], abs=error + 0.5)


def group_numbers(upper, lower, law, rows):
    both = upper[:, :1] * lower[:, :1]
    return np.concatenate((upper, lower, upper**2, lower**2, both, law, rows, rows**2), axis=1)


def group_sweeps(family, counts, bounds, chains, sweeps, rng):
    """Means of the same numbers over long chains, and their errors over chains."""
    sampler = GroupSampler(family, counts, bounds, rng)
    state = sampler.start(group_point(family, counts, bounds), chains)
    total = 0.0
    for sweep in range(200 + sweeps):
        state = sampler.sweep(*state)
        if sweep >= 200:
            total = total + group_numbers(*sampler.whole(*state))
    means = total / sweeps
    return means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(chains)


def group_deviations(shape, n_states, seed, samples, chains, sweeps):
    """Deviations of the chains from importance sampling, in standard errors."""
    rng = np.random.default_rng(seed)
    family = family_of(shape, full_pattern(n_states, 1))
    bounds = (np.log(0.5), np.log(200.0))
    rows = rng.dirichlet(np.ones(n_states), size=n_states)
    counts = rng.multinomial(4, rows, size=(3, n_states)).reshape(3, -1)
    mean, error = group_moments(family, counts, bounds, group_numbers, samples, rng)
    found, spread = group_sweeps(family, counts, bounds, chains, sweeps, rng)
    return (found - mean) / np.sqrt(error**2 + spread**2)


@pytest.mark.long
def test_sweeps_over_partially_pooled_groups_agree_with_importance_sampling():
    """Several rows that share a law, in several groups: no grid reaches this."""
    found = group_deviations("destinations", 2, 21, 200_000, 64, 250)
    assert np.abs(found).max() < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["uniform", "destinations", "increments", "staying"])
@pytest.mark.parametrize("n_states", [2, 3])
def test_long_sweeps_over_partially_pooled_groups_agree_with_importance_sampling(shape, n_states):
    found = group_deviations(shape, n_states, [22, n_states, len(shape)], 1_000_000, 64, 2000)
    assert np.abs(found).max() < 4.5


def test_blocks_of_seats_cover_every_seat_once():
    rng = np.random.default_rng(3)
    begin = rng.integers(1, 3000, 40).astype(float)
    end = np.maximum(begin, rng.integers(1, 10**6, 40).astype(float))
    cell, first, size = seat_blocks(begin, end)
    np.testing.assert_array_equal(np.bincount(cell, size, 40), end - begin)
    for k in range(40):
        mine = cell == k
        if mine.any():
            edges = np.append(first[mine], end[k])
            assert edges[0] == begin[k]
            np.testing.assert_array_equal(np.diff(edges), size[mine])
    assert (size[first < EXACT_SEATS] == 1).all()
    assert (size <= first * BLOCK + 1).all()


@pytest.mark.long
def test_tables_alone_and_slices_alone_agree(monkeypatch):
    """With very many distinct counts ln κ is drawn given the tables, from the same distribution."""
    counts = np.random.default_rng(8).multinomial(12, [0.5, 0.3, 0.2], size=(3, 1))
    found = []
    for cells in (5000, 0):
        monkeypatch.setattr("brmdp.decisions.gibbs.MOST_CELLS", cells)
        learned = learn_prior(counts, shape="destinations", draws=1000, rng=9)
        found.append(learned.belief()._hyper.log_strength[:, 0])
        assert learned.mixing.mixed
    assert stats.ks_2samp(found[0][::2], found[1][::2]).pvalue > 1e-3


def test_slice_steps_follow_a_known_density():
    rng = np.random.default_rng(1)
    x = np.zeros(400)
    for _ in range(60):
        x = slice_step(x, lambda y: -0.5 * (y - 1.0) ** 2, (-8.0, 9.0), rng)
    assert stats.kstest(x, stats.norm(1.0).cdf).pvalue > 1e-3


@pytest.mark.parametrize("width", [0.3, 4.0])
def test_narrow_slices_follow_the_same_density(width):
    rng = np.random.default_rng(6)
    x = np.zeros(400)
    for _ in range(400 if width < 1 else 60):
        x = slice_step(x, lambda y: -0.5 * (y - 1.0) ** 2, (-8.0, 1.5), rng, width)
    law = stats.truncnorm(-9.0, 0.5, loc=1.0)
    assert stats.kstest(x, law.cdf).pvalue > 1e-3


def test_row_terms_add_up_over_rows():
    total, rows = np.array([3.0, 7.0]), np.array([2.0, 1.0])
    x = np.array([[0.0], [2.0]])
    kappa = np.exp(x)
    wanted = -(
        2 * sum(np.log(kappa + j) for j in range(3)) + sum(np.log(kappa + j) for j in range(7))
    )
    np.testing.assert_allclose(row_term(total, rows, x), wanted, rtol=1e-12)


def test_mixing_sees_chains_that_disagree_and_counts_correlated_draws():
    rng = np.random.default_rng(2)
    plain = rng.standard_normal((8, 500, 3))
    effective, r_hat = mixing_of(plain)
    assert 2800 < effective < 6000
    assert r_hat < 1.01
    slow = np.zeros((8, 500, 1))
    for t in range(1, 500):
        slow[:, t] = 0.9 * slow[:, t - 1] + rng.standard_normal((8, 1))
    assert 4000 / 40 < mixing_of(slow)[0] < 4000 / 10  # 4,000/19 in the long run
    apart = plain + np.arange(8)[:, None, None]
    assert mixing_of(apart)[1] > 1.5
    assert mixing_of(np.ones((8, 100, 1))) == (800.0, 1.0)


# --- calibration ----------------------------------------------------------------------------------


def ranks(repeats, bounds, n, rng, *, shape="destinations", n_states=6, draws=200):
    """Where true ln κ and a true probability lie among joint draws and among those of the plug-in.

    κ, law, rows and log are drawn from the hierarchy, so ranks among the right posterior's draws
    are uniform.
    """
    low, high = np.log(bounds[0]), np.log(bounds[1])
    found = {"ln κ": [], "joint": [], "plug-in": []}
    for _ in range(repeats):
        x = rng.uniform(low, high)
        family, _, counts, rows = simulated(shape, n_states, 1, np.exp(x), n, rng, reach=None)
        table = family.pattern.dense(counts)
        learned = learn_prior(table, shape=shape, strength_range=bounds, draws=draws, rng=rng)
        belief = learned.belief()
        entry = int(rng.integers(rows.size))
        kernels = {
            "joint": belief.sample_entries(draws, rng=rng)[:, entry],
            "plug-in": learned.posterior(point="mode").sample_entries(draws, rng=rng)[:, entry],
        }
        for name, drawn in kernels.items():
            found[name].append(_rank(drawn, rows[entry], rng))
        found["ln κ"].append(_rank(belief._hyper.log_strength[:, 0], x, rng))
    return {name: np.array(values) for name, values in found.items()}


def _rank(draws, truth, rng):
    below, equal = np.sum(draws < truth), np.sum(draws == truth)
    return (below + rng.uniform() * (equal + 1)) / (draws.size + 1)


def outside(levels):
    """Share of truths outside the central 80 % of the draws; 0.2 if calibrated."""
    return float(np.mean((levels < 0.1) | (levels > 0.9)))


@pytest.mark.long
@pytest.mark.parametrize("trials", [24, pytest.param(60, marks=pytest.mark.slow)])
def test_one_shared_law_breaks_the_plug_in_and_not_the_joint_draws(trials):
    found = ranks(trials, (1e3, 1e6), 4, np.random.default_rng(10))
    # each would be 0.2; with 60 trials, up to 0.4 happens once in 5,000 times
    assert outside(found["joint"]) < 0.4
    assert stats.kstest(found["joint"], "uniform").pvalue > 1e-3
    assert outside(found["plug-in"]) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["destinations", "staying", "increments", "uniform"])
@pytest.mark.parametrize("bounds", [(1e-2, 1e6), (1e3, 1e6), (0.5, 50.0)])
def test_ranks_are_uniform_in_the_whole_hierarchy(shape, bounds):
    rng = np.random.default_rng([11, *map(int, np.array(bounds) * 100), len(shape)])
    found = ranks(400, bounds, 8, rng, shape=shape, n_states=5)
    for name in ("ln κ", "joint"):
        assert stats.kstest(found[name], "uniform").pvalue > 1e-4, name
    if shape != "uniform" and bounds[0] >= 1e3:
        assert outside(found["plug-in"]) > 0.5


def group_ranks(repeats, bounds, n, rng, *, shape="uniform", n_states=3, n_groups=3, draws=200):
    """The same for partially pooled groups.

    Ranks among correlated draws are too extreme: draws worth E independent ones put a share of
    0.2 + 0.8/E outside the central 80 %, which is 0.216 at E = 50.
    """
    low, high = np.log(bounds[0]), np.log(bounds[1])
    found = {"ln κ, group": [], "joint": []}
    for _ in range(repeats):
        x, own = rng.uniform(low, high), rng.uniform(low, high, n_groups)
        family, _, _, common = simulated(shape, n_states, 1, np.exp(x), n, rng)
        counts, rows = {}, None
        for g in reversed(range(n_groups)):
            weight = np.maximum(np.exp(own[g]) * common, 1e-30)
            rows = dirichlet_rows(weight, 1, rng, family.pattern.row_widths)[0]
            counts[g] = family.pattern.dense(logged(family.pattern, rows, n, rng))
        learned = learn_prior(
            counts, shape=shape, pooling="partial", strength_range=bounds, draws=draws, rng=rng
        )
        belief = learned.belief(0)
        entry = int(rng.integers(rows.size))
        drawn = belief.sample_entries(draws, rng=rng)[:, entry]
        found["joint"].append(_rank(drawn, rows[entry], rng))
        found["ln κ, group"].append(_rank(belief._hyper.log_strength, own[0], rng))
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["uniform", "destinations"])
def test_ranks_are_uniform_in_partially_pooled_groups(shape):
    found = group_ranks(150, (0.5, 200.0), 12, np.random.default_rng([14, len(shape)]), shape=shape)
    for name, levels in found.items():
        assert stats.kstest(levels, "uniform").pvalue > 1e-4, name


@pytest.mark.long
def test_one_shared_law_over_many_rows_approaches_a_shared_disturbance():
    rng = np.random.default_rng(12)
    law = np.array([0.15, 0.45, 0.3, 0.1])
    n_states = 60
    outcomes = np.clip(np.arange(n_states)[:, None, None] + np.arange(-1, 3), 0, n_states - 1)
    # away from the ends, so that every transition shows its increment
    inner = np.arange(5, 55)
    drawn = rng.choice(4, size=(inner.size, 4), p=law)
    counts = np.zeros((n_states, 1, n_states), dtype=int)
    np.add.at(counts, (inner[:, None], 0, inner[:, None] + drawn - 1), 1)
    shared = brmdp.DisturbanceBelief(outcomes, 0.5)
    shared.observe_disturbance(drawn.ravel())
    possible = np.zeros((n_states, 1, n_states))
    for d in range(-1, 3):
        possible[np.arange(n_states), 0, np.clip(np.arange(n_states) + d, 0, n_states - 1)] = 1.0
    learned = learn_prior(
        counts,
        shape="increments",
        possible=possible,
        strength_range=(1e5, 1e6),
        draws=2000,
        rng=rng,
    )
    mine = learned.belief().sample_entries(2000, rng=rng)
    theirs = shared.sample_entries(2000, rng=rng)
    pair = 30
    begin = learned.family.pattern.indptr[pair]
    for d in range(4):
        one, other = mine[:, begin + d], theirs[:, 4 * pair + d]
        assert one.mean() == pytest.approx(other.mean(), abs=5 * other.std() / np.sqrt(800))
        assert one.std() == pytest.approx(other.std(), rel=0.15)
    # rows move together
    far = learned.family.pattern.indptr[50]
    assert np.corrcoef(mine[:, begin], mine[:, far])[0, 1] > 0.9


@pytest.mark.long
def test_rows_without_data_lean_on_the_others():
    rng = np.random.default_rng(13)
    counts = rng.multinomial(50, [0.7, 0.2, 0.1], size=(3, 1))
    counts[2] = 0
    belief = learn_prior(counts, shape="destinations", rng=rng).belief()
    mean = belief.mean()[2, 0]
    np.testing.assert_allclose(mean, [0.7, 0.2, 0.1], atol=0.12)
    pattern_rows = logged(belief.pattern, belief.mean_entries(), 5, rng)
    assert pattern_rows.sum() == 15


def test_entries_without_data_share_what_the_others_leave():
    """In proportions that follow the prior, κ m."""
    counts = np.zeros((2, 25), dtype=np.int64)
    counts[:, [0, 1, 5, 6, 7]] = [[5, 2, 4, 1, 0], [3, 0, 6, 0, 2]]  # two of five rows
    family = family_of("destinations", full_pattern(5, 1))
    sampler = GroupSampler(family, counts, BOUNDS, np.random.default_rng(17))
    np.testing.assert_array_equal(sampler.entries, [0, 1, 5, 6, 7])
    rest = np.array([0.3, 0.1])
    rows = np.array([0.4, 0.3, 0.5, 0.3, 0.1])
    law = np.array([0.5, 0.2, 0.1, 0.2])  # 0, 1, 2, and 3 and 4 together
    n = 20_000
    state = (np.log([[4.0]]), np.zeros((1, 2)), law[None], rows[None], rest[None])
    _, _, laws, whole = sampler.whole(*(np.repeat(part, n, axis=0) for part in state))
    np.testing.assert_allclose(whole.reshape(n, 5, 5).sum(axis=2), 1.0, atol=1e-12)
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(laws[:, :3], np.tile(law[:3], (n, 1)))
    np.testing.assert_allclose(laws[:, 3:].mean(axis=0), 0.1, atol=0.002)
    np.testing.assert_array_equal(whole[:, sampler.entries], np.tile(rows, (n, 1)))
    mean = whole.mean(axis=0).reshape(5, 5)
    np.testing.assert_allclose(mean[0, 2:], 0.3 * np.array([0.25, 0.25, 0.25]) / 0.75, atol=0.005)
    np.testing.assert_allclose(mean[1, 3:], 0.05, atol=0.002)
    np.testing.assert_allclose(mean[3], [0.5, 0.2, 0.1, 0.1, 0.1], atol=0.01)
    # and given the law, the last three of the first row are Dir(4 (0.1, m_3, m_4))
    part = whole[:, 2] / 0.3
    third = 0.1 / 0.3
    assert part.var() == pytest.approx(third * (1 - third) / (4 * 0.3 + 1), rel=0.05)


@pytest.mark.long
def test_the_same_seed_gives_the_same_partially_pooled_groups():
    counts = {g: np.random.default_rng(g).poisson(3.0, (3, 2, 3)) for g in range(3)}
    one, two = (
        learn_prior(counts, shape="destinations", pooling="partial", draws=80, rng=18)
        for _ in range(2)
    )
    assert one.strength == two.strength
    assert one.mixing == two.mixing
    np.testing.assert_array_equal(one.belief(1)._hyper.rows, two.belief(1)._hyper.rows)


@pytest.mark.long
def test_tables_of_all_cells_of_an_entry_and_of_a_kind_add_up():
    """Large sums are drawn at once, small ones seat by seat; mean and variance are right."""
    rng = np.random.default_rng(19)
    family = family_of("destinations", full_pattern(4, 1))
    rows = rng.dirichlet([8.0, 4.0, 1.0, 0.02], size=4).ravel()
    counts = rng.poisson(np.array([[3.0], [400.0], [20_000.0]]) * rows)
    sampler = GroupSampler(family, counts, BOUNDS, rng)
    layout, entries = sampler._layout, sampler.entries
    lower, upper = np.log([3.0, 70.0, 900.0]), np.log([150.0])
    times = 4000

    def moments(customers, weight):
        """Means and variances of all tables but the first."""
        seen = customers > 0
        n, theta = np.maximum(customers, 1), np.where(seen, weight, 1.0)
        mean = theta * (digamma(theta + n) - digamma(theta + 1))
        square = theta**2 * (polygamma(1, theta + 1) - polygamma(1, theta + n))
        return np.where(seen, mean, 0.0), np.where(seen, mean - square, 0.0)

    def agree(found, mean, variance):
        assert (np.abs(found.mean(axis=0) - mean) < 5 * np.sqrt(variance / times) + 1e-9).all()
        np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.15, atol=0.02)

    found = np.empty((times, entries.size))
    for out in found:
        groups.seat_customers(layout, lower, rows[entries], rng, out)
    means, variances = moments(counts[:, entries], np.exp(lower)[:, None] * rows[entries])
    agree(found, (means + (counts[:, entries] > 0)).sum(axis=0), variances.sum(axis=0))
    assert variances.sum(axis=0).max() > 5 * LARGE_VARIANCE > 10 * variances.sum(axis=0).min()

    customers = found[0]
    share = np.array([0.5, 0.3, 0.19, 0.01])
    found = np.empty((times, 4))
    for out in found:
        groups.seat_kinds(layout, upper, share, customers, rng, out)
    means, variances = moments(customers, 150.0 * share[layout.entry_kind])
    agree(found, *(np.bincount(layout.entry_kind, part, 4) for part in (means + 1.0, variances)))
