"""Fuzzing of the public functions: a documented error or a finite, correct answer, nothing else.

Inputs mix tame numbers with NaN, infinities, zeros, subnormals and huge numbers. Correctness is
checked by inequalities that hold for every distribution (the hull of the values, Cantelli's bounds
around the mean), by closed forms in the limits of tiny and huge concentrations, and by linear
algebra. Warnings are errors here, so a silent overflow fails too.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import special

import brmdp
from brmdp.planning import certify_nested

LARGEST = 1e150  # documented limit of the values
MOST = 1e12  # and of the concentrations
MIN_LEVEL = 1e-100
SMALLEST = 1e-30  # smaller concentrations may be refused or answered, but not answered wrongly
NASTY = [
    np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 2.5e-310, 2.2250738585072014e-308,
    1e-300, 1e-160, 1e-16, 1e-8, 1e-3, 1.0, -1.0, 1.0 + 2**-52, 1.0 - 2**-53, 1e8, 1e16, 1e100,
    1e149, 1e151, 1e160, 1e300, -1e300, 1.7e308,
]  # fmt: skip

FUZZ = settings(
    derandomize=True,
    deadline=None,
    max_examples=150,
    suppress_health_check=list(HealthCheck),
    database=None,
)

nasty = st.one_of(st.sampled_from(NASTY), st.floats(width=64))
tame = st.floats(-10.0, 10.0)
mixed = st.one_of(tame, nasty)
positive = st.one_of(
    st.floats(1e-2, 1e3),
    st.sampled_from([1e-3, 0.01, 0.5, 1.0, 2.0, 5.0, 100.0, 1e6]),
    st.floats(SMALLEST, MOST),
)
concentrations = st.one_of(positive, st.just(0.0))
any_concentration = st.one_of(concentrations, nasty)
levels = st.one_of(st.floats(1e-8, 1 - 1e-8), st.sampled_from([1e-8, 0.1, 0.5, 0.9, 1 - 1e-8]))
any_level = st.one_of(
    levels, st.sampled_from([0.0, 1.0, 5e-324, 1e-300, 1e-30, 1 - 2**-53, -0.1, 1.1]), nasty
)


def outcome(call):
    """The answer, or None for a documented error; anything else, warnings too, fails the test."""
    try:
        return call()
    except brmdp.BrmdpError as error:
        message = str(error)
    assert len(message) > 10
    return None


def rows(concentration, values, min_size=1, max_size=6):
    """Pairs of lists of equal length."""
    return st.integers(min_size, max_size).flatmap(
        lambda n: st.tuples(
            st.lists(concentration, min_size=n, max_size=n),
            st.lists(values, min_size=n, max_size=n),
        )
    )


def answered(found, phi, w, more=True):
    """Whether there is an answer to check.

    Documented input must have one, and bad input none.
    """
    allowed = more and documented(phi, w)
    required = allowed and bool((phi[phi > 0] >= SMALLEST).all())
    assert allowed or found is None
    assert found is not None or not required
    return found is not None


def documented(phi, w):
    """Whether the documentation allows an answer."""
    return bool(
        np.isfinite(phi).all()
        and np.isfinite(w).all()
        and (phi >= 0).all()
        and (phi > 0).any()
        and (phi <= MOST).all()
        and (np.abs(w) <= LARGEST).all()
    )


class Law:
    """Hull, mean and deviation of w·P, in units of max|w|."""

    def __init__(self, phi, w):
        phi, w = phi[phi > 0], w[phi > 0]
        self.scale = float(np.abs(w).max()) or 1.0
        self.resolved = (
            self.scale > 1e-290
        )  # below that, the values themselves are nearly subnormal
        w = w / self.scale
        self.low, self.high = w.min(), w.max()
        p = phi / phi.max()
        self.total = float(phi.sum())
        p = p / p.sum()
        self.mean = float(p @ w)
        spread = w - self.mean
        self.deviation = float(np.sqrt(p @ (spread * spread) / (1.0 + self.total)))
        self.slack = 1e-13 + 1e-8 * self.deviation

    def between(self, x, low, high):
        x = x / self.scale
        assert not self.resolved or low - self.slack <= x <= high + self.slack

    def in_hull(self, x):
        """Inside the values of positive concentration, up to 2 ulp of the largest."""
        slack = 4 * np.finfo(float).eps
        assert self.low - slack <= x / self.scale <= self.high + slack

    def tail(self, alpha):
        """Cantelli: no quantile or lower-tail mean at level α is further below the mean."""
        odds = (1 - alpha) / max(alpha, 1e-300)
        return self.deviation * np.sqrt(odds)

    def quantile(self, q, alpha):
        assert np.isfinite(q)
        self.in_hull(q)
        self.between(q, self.mean - self.tail(alpha), self.mean + self.tail(1 - alpha))

    def cvar(self, value, alpha):
        assert np.isfinite(value)
        self.in_hull(value)
        self.between(value, self.mean - self.tail(alpha), self.mean)

    def row(self, row, phi, w, value, tolerance=1e-7):
        assert np.isfinite(row).all()
        assert (row >= 0).all()
        assert abs(row.sum() - 1) <= 1e-12
        assert (row[phi == 0] == 0).all()
        if not self.resolved:
            return
        used = phi > 0
        reached = float(row[used] @ (w[used] / self.scale))
        assert abs(reached - value / self.scale) <= tolerance * (self.high - self.low) + 1e-13


# --- plain functions ------------------------------------------------------------------------------


@pytest.mark.long
@FUZZ
@given(rows(any_concentration, mixed), any_level)
def test_quantile(pair, alpha):
    phi, w = (np.array(x) for x in pair)
    found = outcome(lambda: brmdp.dirichlet.quantile(phi, w, alpha))
    if answered(found, phi, w, MIN_LEVEL <= alpha < 1):
        assert isinstance(found, float)
        Law(phi, w).quantile(found, alpha)


@FUZZ
@given(rows(concentrations, tame), levels)
def test_quantile_of_documented_input(pair, alpha):
    phi, w = (np.array(x) for x in pair)
    assume((phi > 0).any())
    Law(phi, w).quantile(brmdp.dirichlet.quantile(phi, w, alpha), alpha)


@FUZZ
@given(rows(concentrations, tame), levels, levels)
def test_quantiles_are_monotone_in_the_level_and_agree_with_the_cdf(pair, one, two):
    phi, w = (np.array(x) for x in pair)
    assume((phi > 0).any())
    law = Law(phi, w)
    alpha, beta = sorted((one, two))
    low, high = brmdp.dirichlet.quantile(phi, w, [alpha, beta])
    ulp = 4 * max(np.finfo(float).eps * law.scale, 1e-250)
    assert low <= high + ulp
    # F(q−) ≤ α ≤ F(q), up to 2 ulp in q or 1e-9 in the tails
    for level, q in ((alpha, low), (beta, high)):
        below, above = brmdp.dirichlet.cdf(phi, w, q - ulp), brmdp.dirichlet.cdf(phi, w, q + ulp)
        small = 5e-9 * min(level, 1 - level)
        assert below <= level + small
        assert above >= level - small


@FUZZ
@given(rows(any_concentration, mixed), mixed)
def test_cdf(pair, z):
    phi, w = (np.array(x) for x in pair)
    below = outcome(lambda: brmdp.dirichlet.cdf(phi, w, z))
    above = outcome(lambda: brmdp.dirichlet.cdf(phi, w, z, complement=True))
    assert (below is None) == (above is None)
    if not answered(below, phi, w, bool(np.isfinite(z))):
        return
    law = Law(phi, w)
    assert 0.0 <= below <= 1.0
    assert 0.0 <= above <= 1.0
    assert below + above == pytest.approx(1.0, abs=1e-9)
    used = w[phi > 0]
    if z < used.min():
        assert below == 0.0
    elif z >= used.max():
        assert below == 1.0
    gap = law.mean - float(z) / law.scale
    if law.resolved and law.deviation > 0 and abs(gap) > 1e-12:
        bound = 1.0 / (1.0 + min(abs(gap) / law.deviation, 1e150) ** 2)
        assert (below if gap > 0 else above) <= bound * (1 + 1e-6) + 1e-12


@FUZZ
@given(rows(concentrations, tame, max_size=5), tame, tame)
@example(
    ([0.015625, 1.0, 0.015625], [1.0, 1.7843093102850628e-212, -1.0]), 0.0, 1.7843093102850628e-212
)
def test_cdf_is_monotone(pair, one, two):
    phi, w = (np.array(x) for x in pair)
    assume((phi > 0).any())
    low, high = brmdp.dirichlet.cdf(phi, w, sorted((one, two)))
    assert low <= high * (1 + 2e-9) + 1e-300


@FUZZ
@given(st.floats(1e-2, 1e6), st.floats(1e-2, 1e6), tame, st.floats(1e-3, 10.0), st.floats(0.0, 1.0))
def test_cdf_of_two_values_is_a_beta(a, b, low, width, share):
    z = low + share * width
    x = (z - low) / ((low + width) - low)
    assume(0 < x < 1)
    found = brmdp.dirichlet.cdf([a, b], [low, low + width], z)
    # w·P = low + width·P_2 with P_2 ~ Beta(b, a); the slack is what rounding of z does to x
    error = 4 * np.finfo(float).eps * (abs(low) + width) / width
    floor, ceiling = (
        special.betainc(b, a, max(x - error, 0)),
        special.betainc(b, a, min(x + error, 1)),
    )
    assert floor * (1 - 1e-8) - 1e-13 <= found <= ceiling * (1 + 1e-8) + 1e-13


@pytest.mark.long
@FUZZ
@given(
    rows(st.floats(SMALLEST, 1e-13), st.integers(-5, 5).map(float), min_size=2),
    st.floats(0.01, 0.99),
)
def test_vanishing_concentrations_choose_a_corner(pair, alpha):
    """Σφ → 0: w·P is w_i with probability φ_i/Σφ."""
    phi, w = (np.array(x) for x in pair)
    order = np.argsort(w, kind="stable")
    share = phi / phi.max()
    cumulative = np.cumsum(share[order]) / share.sum()
    assume(np.abs(cumulative - alpha).min() > 1e-9)
    q = brmdp.dirichlet.quantile(phi, w, alpha)
    expected = w[order][np.searchsorted(cumulative, alpha)]
    assert q == pytest.approx(expected, abs=1e-9)
    middle = np.unique(w)
    for z in (middle[1:] + middle[:-1]) / 2:
        below = share[w < z].sum() / share.sum()
        assert brmdp.dirichlet.cdf(phi, w, z) == pytest.approx(below, abs=1e-9)


@pytest.mark.parametrize("size", [5e-324, 1e-308, 1e-200, 1e-90, SMALLEST])
def test_the_smallest_concentrations_are_refused_or_right(size):
    phi, w = np.full(4, size), np.array([0.0, 1.0, 2.0, 3.0])
    below = outcome(lambda: brmdp.dirichlet.cdf(phi, w, 1.5))
    assert below is None or below == pytest.approx(0.5, abs=1e-9)
    q = outcome(lambda: brmdp.dirichlet.quantile(phi, w, 0.6))
    assert q is None or q == pytest.approx(2.0, abs=1e-9)
    value = outcome(lambda: brmdp.dirichlet.cvar(phi, w, 0.5))
    assert value is None or value == pytest.approx(0.5, abs=1e-9)
    found = outcome(lambda: brmdp.DirichletBelief.uniform(4, 1, size).sample(50, rng=0))
    assert found is None or np.allclose(found.max(axis=-1), 1.0)
    rewards = np.broadcast_to(w, (4, 1, 4))
    plan = outcome(
        lambda: brmdp.plan(
            brmdp.DirichletBelief.uniform(4, 1, size), rewards, 0.0, risk=brmdp.CVaR(0.5)
        )
    )
    assert plan is None or plan.values == pytest.approx(0.5, abs=1e-8)


@pytest.mark.parametrize("scale", [1e-300, 1e-224, 1e-160, 1e-150, 1e-100, 1e100, 1e149])
@pytest.mark.parametrize("alpha", [0.01, 0.3, 0.8])
def test_every_measure_scales_with_the_values(scale, alpha):
    phi, w = np.array([0.7, 2.0, 1.0]), np.array([0.0, 1.0, 0.4])
    for measure in (
        brmdp.dirichlet.quantile,
        brmdp.dirichlet.cvar,
        lambda *args: brmdp.dirichlet.quantile(*args, method="saddlepoint"),
    ):
        assert measure(phi, scale * w, alpha) / scale == pytest.approx(
            measure(phi, w, alpha), rel=1e-9
        )
    assert brmdp.dirichlet.cdf(phi, scale * w, 0.5 * scale) == pytest.approx(
        brmdp.dirichlet.cdf(phi, w, 0.5), rel=1e-9
    )


@pytest.mark.parametrize("heavy", [1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("alpha", [0.01, 0.5, 0.99])
def test_one_heavy_successor_takes_the_whole_row(heavy, alpha):
    phi, w = np.array([1.0, 1.0, heavy, 1.0]), np.array([0.3, -1.0, 1.0, -0.2])
    for function in (brmdp.dirichlet.quantile_row, brmdp.dirichlet.cvar_row):
        value, row = function(phi, w, alpha)
        Law(phi, w).row(row, phi, w, value)
        assert row[2] == pytest.approx(1.0, abs=40 / heavy + 1e-12)
        assert value == pytest.approx(1.0, abs=80 / heavy + 1e-12)


@pytest.mark.parametrize("light", [1e-6, 1e-12, 1e-20, 1e-30])
def test_a_negligible_successor_changes_nothing(light):
    """Dropping a successor of concentration ε moves every probability by O(ε log ε)."""
    slack = 1e-9 + 100 * light
    phi, w = np.array([1.0, 1.0, light]), np.array([0.0, 0.0, -1.0])
    value, row = brmdp.dirichlet.cvar_row(phi, w, 0.5)
    assert value == pytest.approx(0.0, abs=slack)
    np.testing.assert_allclose(row, [0.5, 0.5, 0.0], atol=slack)
    for size in (1e-13, 0.07, 1.0):
        phi, w = np.array([size, light, 0.8 * size]), np.array([0.0, 1.0, -1.0])
        if light > 1e-6 * size:
            continue
        for z in (-0.5, -1e-3, -1e-9):
            expected = brmdp.dirichlet.cdf(phi[[0, 2]], w[[0, 2]], z)
            assert brmdp.dirichlet.cdf(phi, w, z) == pytest.approx(
                expected, abs=1e-9 + 100 * light / size
            )


@FUZZ
@given(rows(any_concentration, mixed), any_level)
def test_quantile_row(pair, alpha):
    phi, w = (np.array(x) for x in pair)
    found = outcome(lambda: brmdp.dirichlet.quantile_row(phi, w, alpha))
    if answered(found, phi, w, MIN_LEVEL <= alpha < 1):
        q, row = found
        law = Law(phi, w)
        law.quantile(q, alpha)
        law.row(row, phi, w, q)


@FUZZ
@given(rows(any_concentration, mixed), st.one_of(any_level, st.just(1.0)))
def test_cvar(pair, alpha):
    phi, w = (np.array(x) for x in pair)
    value = outcome(lambda: brmdp.dirichlet.cvar(phi, w, alpha))
    found = outcome(lambda: brmdp.dirichlet.cvar_row(phi, w, alpha))
    assert (value is None) == (found is None)
    if answered(value, phi, w, MIN_LEVEL <= alpha <= 1):
        law = Law(phi, w)
        law.cvar(value, alpha)
        assert found[0] == value
        law.row(found[1], phi, w, value)
        if alpha == 1 and law.resolved:
            assert value / law.scale == pytest.approx(law.mean, abs=1e-12)


@FUZZ
@given(rows(concentrations, tame), levels)
def test_saddlepoint_stays_in_the_hull(pair, alpha):
    phi, w = (np.array(x) for x in pair)
    assume((phi > 0).any())
    found = brmdp.dirichlet.quantile(phi, w, alpha, method="saddlepoint")
    assert np.isfinite(found)
    Law(phi, w).in_hull(found)


@settings(FUZZ, max_examples=25)
@given(
    npst.mutually_broadcastable_shapes(signature="(n),(n),()->()", max_dims=2, max_side=3),
    st.integers(0, 2**32 - 1),
)
def test_broadcasting_equals_one_at_a_time(shapes, seed):
    (shape_phi, shape_w, shape_z), result = shapes.input_shapes, shapes.result_shape
    rng = np.random.default_rng(seed)
    phi = rng.gamma(0.7, 2.0, size=shape_phi) + 1e-3
    w = rng.normal(size=shape_w)
    alpha = rng.uniform(0.01, 0.99, size=shape_z)
    n = phi.shape[-1]
    wide_phi, wide_w = (np.broadcast_to(x, (*result, n)) for x in (phi, w))
    wide = np.broadcast_to(alpha, result)
    for function in (brmdp.dirichlet.quantile, brmdp.dirichlet.cdf, brmdp.dirichlet.cvar):
        found = np.asarray(function(phi, w, alpha))
        assert found.shape == result
        for index in np.ndindex(*result):
            assert found[index] == function(wide_phi[index], wide_w[index], wide[index])
    q, row = brmdp.dirichlet.quantile_row(phi, w, alpha)
    assert np.shape(q) == result
    assert row.shape == (*result, n)


@FUZZ
@given(npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
       npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
       npst.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))  # fmt: skip
def test_shapes(shape_phi, shape_w, shape_alpha):
    found = outcome(
        lambda: brmdp.dirichlet.quantile(
            np.ones(shape_phi), np.ones(shape_w), np.full(shape_alpha, 0.5)
        )
    )
    try:
        valid = bool(shape_phi and shape_w) and shape_phi[-1] == shape_w[-1] > 0
        expected = np.broadcast_shapes(shape_phi[:-1], shape_w[:-1], shape_alpha) if valid else None
    except ValueError:
        expected = None
    assert (found is None) == (expected is None)
    if found is not None:
        assert np.shape(found) == expected
        assert (np.asarray(found) == 1.0).all()


junk = st.one_of(
    st.none(), st.text(max_size=3), st.booleans(), st.complex_numbers(), st.integers(), nasty,
    st.lists(st.one_of(nasty, st.none(), st.lists(nasty, max_size=2)), max_size=3),
    st.dictionaries(st.integers(0, 2), nasty, max_size=2), st.binary(max_size=3),
    st.just(object()), st.just(np.float64),
)  # fmt: skip


@pytest.mark.long
@FUZZ
@given(junk, junk, junk, st.one_of(st.just("exact"), junk))
def test_junk_arguments_of_the_plain_functions(concentration, values, level, method):
    outcome(lambda: brmdp.dirichlet.quantile(concentration, [0.0, 1.0], 0.5))
    outcome(lambda: brmdp.dirichlet.quantile([1.0, 1.0], values, 0.5))
    outcome(lambda: brmdp.dirichlet.quantile([1.0, 1.0], [0.0, 1.0], level))
    outcome(lambda: brmdp.dirichlet.cdf([1.0, 1.0], [0.0, 1.0], level))
    outcome(lambda: brmdp.dirichlet.cvar([1.0, 1.0], [0.0, 1.0], level))
    outcome(lambda: brmdp.dirichlet.quantile([1.0, 1.0], [0.0, 1.0], 0.5, method))


@pytest.mark.long
@FUZZ
@given(junk, junk, junk)
def test_junk_arguments_of_the_classes(one, two, three):
    kernel = np.full((2, 1, 2), 0.5)
    zeros = np.zeros((2, 1))
    belief = brmdp.DirichletBelief.uniform(2, 1)
    assert outcome(lambda: brmdp.TabularMDP(one, zeros, 0.5)) is None
    outcome(lambda: brmdp.TabularMDP(kernel, two, 0.5))
    outcome(lambda: brmdp.TabularMDP(kernel, zeros, three))
    outcome(lambda: brmdp.TabularMDP(kernel, zeros, 0.5, one))
    outcome(lambda: brmdp.TabularMDP(kernel, zeros, 0.5, admissible=two))
    assert outcome(lambda: brmdp.DirichletBelief(one)) is None
    assert outcome(lambda: brmdp.DisturbanceBelief(one)) is None
    assert outcome(lambda: brmdp.ScenarioBelief(one, two)) is None
    outcome(lambda: brmdp.ScenarioBelief([kernel], three))
    before = belief.concentration().tobytes()
    if not all(isinstance(x, int) for x in (one, two, three)):
        assert outcome(lambda: belief.observe(one, two, three)) is None
        assert belief.concentration().tobytes() == before
    for call in (
        lambda: brmdp.Quantile(one), lambda: brmdp.CVaR(two), lambda: brmdp.Quantile(0.5, three),
        lambda: brmdp.MonteCarlo(one), lambda: brmdp.MonteCarlo(cap=two),
        lambda: brmdp.MonteCarlo(samples=three),
        lambda: brmdp.plan(one, zeros, 0.5, risk=brmdp.Mean()),
        lambda: brmdp.plan(belief, zeros, 0.5, risk=two),
        lambda: brmdp.plan(belief, zeros, 0.5, risk=brmdp.Mean(), tolerance=three),
        lambda: brmdp.plan(belief, zeros, 0.5, risk=brmdp.Mean(), initial=one),
        lambda: brmdp.plan(belief, zeros, 0.5, risk=brmdp.Mean(), method=two),
        lambda: brmdp.evaluate_under_belief(belief, zeros, 0.5, three, risk=brmdp.Mean()),
        lambda: brmdp.evaluate_in_mdp(brmdp.TabularMDP(kernel, zeros, 0.5), one),
        lambda: certify_nested(two, zeros, 0.5),
        lambda: certify_nested(belief, zeros, 0.5, three, coverage_samples=0),
        lambda: brmdp.posterior_quantile_value(belief, zeros, 0.5, [0, 0], one, samples=3),
        lambda: brmdp.certified_level(two, 3),
    ):  # fmt: skip
        outcome(call)


# --- planning -------------------------------------------------------------------------------------


def measures(level):
    return st.one_of(
        level.map(brmdp.Quantile),
        level.map(brmdp.CVaR),
        level.map(lambda a: brmdp.Quantile(a, "saddlepoint")),
        level.map(lambda a: brmdp.Quantile(a, brmdp.MonteCarlo(20.0, cap=40, rng=0))),
        st.just(brmdp.Mean()),
        st.integers(0, 9).map(lambda seed: brmdp.PosteriorSample(rng=seed)),
    )


def arrays(shape, elements):
    return npst.arrays(np.float64, shape, elements=elements)


sizes = st.tuples(st.integers(1, 4), st.integers(1, 3))


def check_solution(solution, pattern, rewards, discount, tolerance):
    """What every returned plan must satisfy; ``rewards`` on the possible transitions."""
    admissible = pattern.admissible
    states = np.arange(pattern.n_states)
    assert np.isfinite(solution.values).all()
    assert admissible[states, solution.policy].all()
    assert np.isfinite(solution.q_values[admissible]).all()
    assert (solution.q_values[~admissible] == -np.inf).all()
    assert solution.status in ("converged", "sampled", "approximate")
    assert solution.residual >= 0
    if solution.status != "approximate":
        assert 0 <= solution.error_bound <= tolerance
        assert solution.policy_gap >= 0
        slack = solution.error_bound
    else:
        slack = tolerance
    limit = float(np.abs(rewards).max()) / (1 - discount)
    low, high = rewards.min() / (1 - discount), rewards.max() / (1 - discount)
    slack += 1e-12 * limit + 1e-320
    assert (solution.values >= low - slack).all()
    assert (solution.values <= high + slack).all()
    kernel = solution.kernel()
    assert (kernel >= 0).all()
    np.testing.assert_allclose(kernel.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.long
@FUZZ
@given(st.data(), sizes)
def test_plans_from_any_input(data, size):
    n_states, n_actions = size
    concentration = data.draw(arrays((n_states, n_actions, n_states), any_concentration))
    rewards = data.draw(
        arrays(data.draw(st.sampled_from([(n_states, n_actions), concentration.shape])), mixed)
    )
    discount = data.draw(st.one_of(st.sampled_from([0.0, 0.5, 0.9, 0.999, 1 - 2**-53]), nasty))
    tolerance = data.draw(st.sampled_from([1e-8, 1e-3, 1e-300, 1e300]))
    risk = outcome(lambda: data.draw(measures(any_level)))

    def call():
        belief = brmdp.DirichletBelief(concentration)
        return belief, brmdp.plan(belief, rewards, discount, risk=risk, tolerance=tolerance)

    found = outcome(call)
    if found is not None and risk is not None:
        belief, solution = found
        flat = belief.gather_rewards(rewards)
        check_solution(solution, belief.pattern, flat, discount, tolerance)


@pytest.mark.long
@FUZZ
@given(st.data(), sizes)
def test_plans_from_documented_input_never_fail(data, size):
    n_states, n_actions = size
    shape = (n_states, n_actions, n_states)
    spread = st.one_of(st.floats(1e-2, 1e6), st.sampled_from([0.0, 1e-2, 1.0, 1e6]))
    concentration = data.draw(arrays(shape, spread))
    admissible = data.draw(npst.arrays(bool, (n_states, n_actions))) & (concentration > 0).any(
        axis=2
    )
    admissible[:, 0] = True
    concentration[~(concentration > 0).any(axis=2), 0] = 1.0
    rewards = data.draw(arrays(shape, tame))
    discount = data.draw(st.floats(0.0, 0.97))
    risk = data.draw(measures(levels))
    belief = brmdp.DirichletBelief(concentration, admissible=admissible)
    method = data.draw(st.sampled_from(["newton", "value-iteration"]))
    # the saddlepoint approximation is not a contraction, so it alone may fail to settle
    gives_up = isinstance(risk, brmdp.Quantile) and risk.method == "saddlepoint"
    tolerance = 1e-6
    try:
        solution = brmdp.plan(
            belief, rewards, discount, risk=risk, tolerance=tolerance, method=method
        )
    except brmdp.ConvergenceError as error:
        status = error.solution.status if gives_up else f"failed: {error}"
        solution = None
    if solution is None:
        assert status == "not converged"
        return
    np.testing.assert_array_equal(belief.pattern.admissible, admissible)
    check_solution(solution, belief.pattern, belief.gather_rewards(rewards), discount, tolerance)
    if isinstance(risk, brmdp.Mean):
        mean = belief.mean()
        states = np.arange(n_states)
        kernel, reward = mean[states, solution.policy], np.einsum("sat,sat->sa", mean, rewards)
        values = np.linalg.solve(
            np.eye(n_states) - discount * kernel, reward[states, solution.policy]
        )
        assert (
            np.abs(values - solution.values) <= solution.policy_gap + solution.error_bound + 1e-9
        ).all()
        q = np.where(admissible, reward + discount * (mean @ values), -np.inf)
        assert (q.max(axis=1) <= values + 2 * solution.policy_gap + 1e-9).all()


@pytest.mark.long
@FUZZ
@given(st.data(), sizes)
def test_solve_from_any_input(data, size):
    n_states, n_actions = size
    shape = (n_states, n_actions, n_states)
    weights = data.draw(
        arrays(
            shape,
            st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 5e-324, 1e-300, 1.0]), nasty),
        )
    )
    with np.errstate(all="ignore"):
        kernel = weights / weights.sum(axis=2, keepdims=True)
    rewards = data.draw(arrays(shape, mixed))
    discount = data.draw(st.one_of(st.floats(0.0, 0.99), nasty))

    def call():
        mdp = brmdp.TabularMDP(kernel, rewards, discount)
        return mdp, brmdp.solve(mdp, tolerance=1e-6)

    found = outcome(call)
    if found is not None:
        mdp, solution = found
        assert np.isfinite(kernel).all()
        check_solution(solution, mdp.pattern, mdp.transition_rewards, discount, 1e-6)
        values = brmdp.evaluate_in_mdp(mdp, solution.policy)
        largest = float(np.abs(mdp.transition_rewards).max()) / (1 - discount)
        assert (
            np.abs(values - solution.values) <= solution.policy_gap + 2e-6 + 1e-9 * largest
        ).all()


@settings(FUZZ, max_examples=60)
@given(st.data(), sizes)
def test_certificates(data, size):
    n_states, n_actions = size
    shape = (n_states, n_actions, n_states)
    concentration = data.draw(arrays(shape, st.one_of(st.floats(0.05, 50.0), any_concentration)))
    rewards = data.draw(arrays((n_states, n_actions), mixed))
    discount = data.draw(st.one_of(st.floats(0.0, 0.95), nasty))
    confidence = data.draw(any_level)

    def call():
        belief = brmdp.DirichletBelief(concentration)
        return belief, certify_nested(
            belief, rewards, discount, confidence, tolerance=1e-5, coverage_samples=20, rng=0
        )

    found = outcome(call)
    if found is None:
        return
    belief, certificate = found
    assert certificate.confidence == confidence
    assert 0 < certificate.level < 1
    assert certificate.level == pytest.approx(-np.expm1(np.log(confidence) / n_states), rel=1e-9)
    assert np.isfinite(certificate.values).all()
    assert belief.pattern.admissible[np.arange(n_states), certificate.policy].all()
    assert 0.0 <= certificate.coverage <= 1.0
    low, high = certificate.coverage_interval
    assert 0.0 <= low <= certificate.coverage <= high <= 1.0
    assert certificate.coverage_samples == 20
    assert certificate.policy_gap >= 0
    limit = float(np.abs(rewards).max()) / (1 - discount)
    assert (np.abs(certificate.values) <= limit * (1 + 1e-9) + 2e-5).all()


@settings(FUZZ, max_examples=60)
@given(st.data(), sizes, st.integers(1, 3))
def test_disturbances(data, size, n_disturbances):
    n_states, n_actions = size
    outcomes = data.draw(
        npst.arrays(
            np.int64, (n_states, n_actions, n_disturbances), elements=st.integers(-1, n_states)
        )
    )
    concentration = data.draw(arrays((n_disturbances,), any_concentration))
    rewards = data.draw(arrays((n_states, n_actions, n_disturbances), tame))
    risk = data.draw(measures(levels))

    def call():
        belief = brmdp.DisturbanceBelief(np.minimum(outcomes, n_states - 1), concentration)
        belief.observe_disturbance(np.arange(n_disturbances))
        return belief, brmdp.plan(
            belief, brmdp.DisturbanceRewards(rewards), 0.8, risk=risk, tolerance=1e-6
        )

    found = outcome(call)
    if found is not None:
        belief, solution = found
        flat = belief.gather_rewards(brmdp.DisturbanceRewards(rewards))
        check_solution(solution, belief.pattern, flat, 0.8, 1e-6)


@settings(FUZZ, max_examples=60)
@given(st.data(), sizes, st.integers(1, 4))
def test_scenarios(data, size, n_scenarios):
    n_states, n_actions = size
    unit = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 5e-324, 1e-300, 1.0]))
    weights = data.draw(arrays((n_scenarios,), unit)) + 1e-310
    kernels = data.draw(arrays((n_scenarios, n_states, n_actions, n_states), unit)) + data.draw(
        st.sampled_from([1e-310, 0.1])
    )
    kernels = kernels / kernels.max(axis=3, keepdims=True)
    kernels = kernels / kernels.sum(axis=3, keepdims=True)
    weights = weights / weights.max()
    rewards = data.draw(arrays(kernels.shape[1:], tame))
    risk = data.draw(measures(levels).filter(lambda r: getattr(r, "method", "") != "saddlepoint"))
    belief = brmdp.ScenarioBelief(kernels, weights / weights.sum())
    transition = tuple(data.draw(st.integers(0, n - 1)) for n in (n_states, n_actions, n_states))
    before = belief.weights.copy()
    likelihood = kernels[(slice(None), *transition)]
    outcome(lambda: belief.observe(*transition))
    product = before * likelihood
    if product.sum() > 1e-290:
        np.testing.assert_allclose(belief.weights, product / product.sum(), rtol=1e-9, atol=1e-300)
    assert belief.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert (belief.weights >= 0).all()
    solution = brmdp.plan(belief, rewards, 0.8, risk=risk, tolerance=1e-6)
    check_solution(solution, belief.pattern, belief.gather_rewards(rewards), 0.8, 1e-6)


@FUZZ
@given(st.data(), sizes)
def test_summaries_and_draws_of_any_prior(data, size):
    n_states, n_actions = size
    concentration = data.draw(
        arrays((n_states, n_actions, n_states), st.one_of(any_concentration, positive))
    )

    def call():
        belief = brmdp.DirichletBelief(concentration)
        return belief, belief.mean(), belief.variance(), belief.sample(3, rng=0)

    found = outcome(call)
    if found is None:
        return
    _, mean, variance, draws = found
    for kernel in (mean, *draws):
        assert np.isfinite(kernel).all()
        assert (kernel >= 0).all()
        assert (kernel[concentration == 0] == 0).all()
        np.testing.assert_allclose(kernel.sum(axis=2), 1.0, rtol=0, atol=1e-12)
    assert np.isfinite(variance).all()
    assert (variance >= 0).all()


@FUZZ
@given(
    st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 2), st.integers(-1, 3)), max_size=6),
    st.booleans(),
)
def test_observations_are_added_all_or_none(items, zeros):
    concentration = np.ones((3, 2, 3))
    if zeros:
        concentration[0, 1, 2] = concentration[2, 0, 0] = 0.0
    belief = brmdp.DirichletBelief(concentration)
    inside = all(0 <= s < 3 and 0 <= a < 2 and 0 <= t < 3 for s, a, t in items)
    possible = inside and all(concentration[item] > 0 for item in items)
    columns = [[item[k] for item in items] for k in range(3)]
    counts = np.zeros(concentration.shape)
    if possible:
        belief.observe(*columns)
        for item in items:
            counts[item] += 1
    else:
        error = brmdp.ImpossibleTransitionError if inside else brmdp.InvalidInputError
        with pytest.raises(error):
            belief.observe(*columns)
    np.testing.assert_array_equal(belief.counts(), counts)
    np.testing.assert_array_equal(belief.concentration(), concentration + counts)
