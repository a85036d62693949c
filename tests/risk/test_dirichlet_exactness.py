"""Exactness of the Dirichlet functions: CDF, quantile, CVaR and rows against independent oracles.

Contract: the CDF to a relative error of 1e-9 in min(F, 1 - F); the quantile within 2 ulp of max|w|
or to a relative tail error of 1e-9, whichever is looser. A case is one (φ, w, level): the library's
quantile q is compared with the oracle's CDF, and the library's CDF at q with the same oracle value.
"""

import numpy as np
import pytest
from scipy import stats

import brmdp
from oracles import dirichlet_functional as oracle

CHUNKS = range(5)
TWO_VALUES, INTEGERS, THREE_VALUES, GENERAL = 950, 450, 300, 500  # cases in each chunk
TOTAL = len(CHUNKS) * (TWO_VALUES + INTEGERS + THREE_VALUES + GENERAL)  # slow ones included


def chunks(fast):
    """The chunks as seeds of a test; those after the first ``fast`` run in the slow suite."""
    slow = [pytest.param(seed, marks=pytest.mark.slow) for seed in CHUNKS[fast:]]
    return pytest.mark.parametrize("seed", [*CHUNKS[:fast], *slow])


beta_tails = oracle.merged(oracle.beta_tails)
three_value_tails = oracle.merged(oracle.three_value_tails)


def test_at_least_ten_thousand_cases():
    assert TOTAL >= 10_000


def cdf_error(tails, phi, values, z):
    """Relative error of the library's CDF and its complement at z, in the smaller tail."""
    lower = float(brmdp.dirichlet.cdf(phi, values, z))
    upper = float(brmdp.dirichlet.cdf(phi, values, z, complement=True))
    return oracle.cdf_fault(lower, upper, *tails(phi, values, z)[:2])


def faults(tails, phi, values, alpha, z=None, known=None):
    """Every breach of the contract in one case, as text; also checks the CDF at a free point z."""
    tails = cache_points(tails, known)
    q = float(brmdp.dirichlet.quantile(phi, values, alpha, method="exact"))
    if not np.isfinite(q):
        return [f"quantile {q}"]
    found = []
    if text := oracle.quantile_fault(tails, phi, values, q, alpha):
        found.append(f"quantile {q!r}: {text}")
    low, high = values[phi > 0].min(), values[phi > 0].max()
    for point in (q,) if z is None else (q, z):
        if (
            low < point < high
            and not (error := cdf_error(tails, phi, values, point)) <= oracle.TOLERANCE
        ):
            found.append(f"cdf at {point!r}: relative error {error:.3e}")
    return found


def cache_points(tails, known=None):
    """The oracle of one problem, with its value at each z remembered, some of which are known."""
    known = {} if known is None else known

    def remembered(phi, values, z):
        if z not in known:
            known[z] = tails(phi, values, z)
        return known[z]

    return remembered


def at_quantiles(cases, tails):
    """The oracle of all cases at once: at the library's quantiles, and beside those that miss.

    Where a quantile misses its level, the points two ulp on either side are added.
    ``tails`` takes many problems with equally many distinct values. Gives the tails of every case
    by the point.
    """
    problems = [oracle.merge_ties(phi, values) for phi, values, _ in cases]
    weights, distinct = (np.stack(part) for part in zip(*problems, strict=True))
    q = np.array([float(brmdp.dirichlet.quantile(*case, method="exact")) for case in cases])
    margin = 2 * np.spacing(np.abs(distinct).max(axis=1))
    alpha = np.array([level for _, _, level in cases])
    asked, known = np.ones(len(cases), dtype=bool), [{} for _ in cases]
    for z in (q, q - margin, q + margin):
        inside = np.flatnonzero(asked & (distinct[:, 0] < z) & (z < distinct[:, -1]))
        lower, upper = tails(weights[inside], distinct[inside], z[inside])
        for k, *both in zip(inside, lower.tolist(), upper.tolist(), strict=True):
            known[k][float(z[k])] = tuple(both)
        if z is q:
            missed = np.minimum(abs(lower - alpha[inside]), abs(upper - (1 - alpha[inside])))
            asked[inside] = missed > oracle.TOLERANCE * np.minimum(alpha, 1 - alpha)[inside]
    return known


def report(cases, tails, points=None, known=None):
    """All breaches over the cases, with inputs that reproduce them."""
    lines = []
    for i, (phi, values, alpha) in enumerate(cases):
        z = None if points is None else points[i]
        for text in faults(tails, phi, values, alpha, z, {} if known is None else known[i]):
            lines.append(f"phi={phi.tolist()} values={values.tolist()} alpha={alpha!r}: {text}")
    return lines


def draw(seed, size, problem, smallest=1e-8):
    rng = np.random.default_rng(seed)
    levels = oracle.random_levels(rng, size, smallest)
    return [(*problem(rng), float(level)) for level in levels]


def free_points(seed, cases):
    """Points chosen without the library: the mean plus a few standard deviations."""
    normals = 2 * np.random.default_rng(seed).normal(size=len(cases))
    moments = [oracle.mean_and_deviation(phi, values) for phi, values, _ in cases]
    return [
        float(mean + z * deviation) for z, (mean, deviation) in zip(normals, moments, strict=True)
    ]


@pytest.mark.long
@chunks(1)
def test_two_values_against_beta(seed):
    cases = draw([1, seed], TWO_VALUES, lambda rng: oracle.random_tied_problem(rng, 2))
    assert len(cases) == TWO_VALUES
    assert report(cases, beta_tails, free_points(seed, cases)) == []


@pytest.mark.long
@chunks(1)
def test_integer_concentration_against_rational_splines(seed):
    cases = draw([2, seed], INTEGERS, oracle.random_integer_problem)
    assert len(cases) == INTEGERS
    assert report(cases, oracle.spline_tails, free_points(seed, cases)) == []


@pytest.mark.long
@chunks(1)
def test_three_values_against_stick_breaking(seed):
    cases = draw([3, seed], THREE_VALUES, lambda rng: oracle.random_tied_problem(rng, 3))
    assert len(cases) == THREE_VALUES
    known = at_quantiles(cases, oracle.three_value_tails)
    assert report(cases, three_value_tails, known=known) == []


@pytest.mark.long
@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="needs an 80-bit long double")
@chunks(1)
def test_general_against_inversion_along_a_ray(seed):
    # not 1e-8: below 1e-7 this oracle has no digits to spare; the slow suite goes on to 1e-8
    cases = draw([4, seed], GENERAL, oracle.random_problem, smallest=1e-7)
    assert len(cases) == GENERAL
    assert report(cases, oracle.ray_tails) == []


def test_cdf_in_very_deep_tails():
    rng = np.random.default_rng(5)
    for _ in range(300):
        phi, values = oracle.random_integer_problem(rng)
        active = values[phi > 0]
        low, high = active.min(), active.max()
        depth = 10 ** rng.uniform(-6, -1)
        z = low + depth * (high - low) if rng.random() < 0.5 else high - depth * (high - low)
        if low < z < high:
            assert cdf_error(oracle.spline_tails, phi, values, z) <= oracle.TOLERANCE, (
                phi,
                values,
                z,
            )


# --- rows -----------------------------------------------------------------------------------------


def check_row(phi, values, target, row):
    """The row is a probability vector on the support of φ and averages w to ``target``."""
    active = values[phi > 0]
    slack = 1e-9 * np.ptp(active) + 4 * np.spacing(np.abs(active).max())
    assert np.all(np.isfinite(row))
    assert np.all(row >= 0)
    assert np.all(row[phi == 0] == 0)
    assert abs(row.sum() - 1) <= 1e-12
    low = active.min()
    assert abs(np.sum(row * (values - low)) - (target - low)) <= slack, (phi, values, target)


@pytest.mark.parametrize("seed", CHUNKS)
def test_rows_are_probability_vectors_that_reproduce_the_value(seed):
    for phi, values, alpha in draw([6, seed], 200, oracle.random_problem):
        q, row = brmdp.dirichlet.quantile_row(phi, values, alpha)
        assert q == brmdp.dirichlet.quantile(phi, values, alpha)
        check_row(phi, values, float(q), row)
        cvar, cvar_row = brmdp.dirichlet.cvar_row(phi, values, alpha)
        check_row(phi, values, float(cvar), cvar_row)
        mean = oracle.mean_and_deviation(phi, values)[0]
        slack = 4 * np.spacing(np.abs(values[phi > 0]).max()) + 1e-9 * np.ptp(values[phi > 0])
        assert cvar <= q + slack
        assert cvar <= mean + slack
        assert brmdp.dirichlet.cvar(phi, values, alpha) == pytest.approx(
            float(cvar), rel=0, abs=slack
        )


@pytest.mark.long
def test_quantile_row_against_rational_splines():
    for phi, values, alpha in draw(7, 400, oracle.random_integer_problem):
        if phi.sum() < 3:
            continue
        q, row = brmdp.dirichlet.quantile_row(phi, values, alpha)
        active = values[phi > 0]
        if (
            np.spacing(np.abs(active).max()) > 1e-12 * np.ptp(active)
            or not active.min() < q < active.max()
        ):
            continue  # q is then too coarse a number to condition on
        exact = np.array([float(x) for x in oracle.spline_row(phi, values, q)])
        np.testing.assert_allclose(row, exact, rtol=0, atol=1e-8, err_msg=f"{phi} {values} {alpha}")


@pytest.mark.long
def test_quantile_row_against_stick_breaking():
    rng = np.random.default_rng(8)
    for alpha in oracle.random_levels(rng, 300):
        phi, values = 10 ** rng.uniform(-0.3, 5, 3), np.sort(rng.normal(size=3))
        q, row = brmdp.dirichlet.quantile_row(phi, values, alpha)
        exact = oracle.three_value_row(phi, values, q)[0]
        np.testing.assert_allclose(row, exact, rtol=0, atol=1e-8, err_msg=f"{phi} {values} {alpha}")


def test_quantile_row_is_the_gradient_of_the_quantile():
    rng = np.random.default_rng(9)
    for alpha in oracle.random_levels(rng, 100, 1e-4):
        n = oracle.random_size(rng, 3, 12)
        phi, values = 10 ** rng.uniform(-0.3, 2, n), rng.normal(size=n)
        row = brmdp.dirichlet.quantile_row(phi, values, alpha)[1]
        step = 1e-4 * np.diag(np.full(n, np.ptp(values)))
        up, down = (brmdp.dirichlet.quantile(phi, values + s, alpha) for s in (step, -step))
        gradient = (up - down) / (2 * np.diag(step))
        np.testing.assert_allclose(
            row, gradient, rtol=0, atol=2e-5, err_msg=f"{phi} {values} {alpha}"
        )


# --- CVaR -----------------------------------------------------------------------------------------


def check_cvar(tails, phi, values, alpha):
    """Check CVaR against the oracle, and, where q is sharp, the row E[P_i | X <= q]."""
    active = phi > 0
    q = float(brmdp.dirichlet.quantile(phi, values, alpha))
    cvar, row = brmdp.dirichlet.cvar_row(phi, values, alpha)
    slack = 1e-9 * np.ptp(values[active]) + 4 * np.spacing(np.abs(values[active]).max())
    expected = oracle.lower_cvar(tails, phi, values, alpha, q)
    assert abs(cvar - expected) <= slack, (phi, values, alpha, cvar, expected)
    if not values[active].min() < q < values[active].max():
        return
    lower = float(tails(phi, values, q)[0])
    if abs(lower - alpha) <= oracle.TOLERANCE * alpha:
        moments = oracle.lower_moments(tails, phi[active], values[active], q)
        np.testing.assert_allclose(row[active], moments / lower, rtol=0, atol=4e-9)


@pytest.mark.long
@pytest.mark.parametrize("count", [150, pytest.param(400, marks=pytest.mark.slow)])
def test_cvar_of_two_values_against_beta(count):
    for phi, values, alpha in draw(10, count, lambda rng: oracle.random_tied_problem(rng, 2)):
        check_cvar(beta_tails, phi, values, alpha)


@pytest.mark.long
@pytest.mark.parametrize("count", [120, pytest.param(300, marks=pytest.mark.slow)])
def test_cvar_of_integer_concentration_against_rational_splines(count):
    for phi, values, alpha in draw(11, count, oracle.random_integer_problem):
        check_cvar(oracle.spline_tails, phi, values, alpha)


@pytest.mark.long
@pytest.mark.parametrize("count", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_cvar_of_three_values_against_stick_breaking(count):
    rng = np.random.default_rng(12)
    for alpha in oracle.random_levels(rng, count):
        check_cvar(
            three_value_tails,
            10 ** rng.uniform(-2, 6, 3),
            oracle.random_values(rng, 3),
            float(alpha),
        )


def test_cvar_at_level_one_is_the_mean():
    rng = np.random.default_rng(13)
    for _ in range(200):
        phi, values = oracle.random_problem(rng)
        cvar, row = brmdp.dirichlet.cvar_row(phi, values, 1.0)
        slack = 1e-12 * np.ptp(values[phi > 0]) + 4 * np.spacing(np.abs(values[phi > 0]).max())
        assert abs(cvar - oracle.mean_and_deviation(phi, values)[0]) <= slack
        assert brmdp.dirichlet.cvar(phi, values, 1.0) == pytest.approx(
            float(cvar), rel=0, abs=slack
        )
        np.testing.assert_allclose(row, phi / phi.sum(), rtol=1e-12, atol=1e-15)


# --- special inputs -------------------------------------------------------------------------------


@pytest.mark.parametrize("phi", [[2.0], [0.01], [0.5, 3.0, 1e6], [0.0, 4.0, 0.0]])
@pytest.mark.parametrize("value", [0.0, -3.25, 1e6, 1e-9])
@pytest.mark.parametrize("alpha", [1e-8, 0.3, 1 - 1e-8])
def test_constant_values(phi, value, alpha):
    phi = np.array(phi)
    values = np.full(len(phi), value)
    q, row = brmdp.dirichlet.quantile_row(phi, values, alpha)
    cvar, cvar_row = brmdp.dirichlet.cvar_row(phi, values, alpha)
    assert q == value == brmdp.dirichlet.quantile(phi, values, alpha)
    assert (
        cvar == pytest.approx(value, rel=1e-15, abs=0) == brmdp.dirichlet.cvar(phi, values, alpha)
    )
    np.testing.assert_allclose(row, phi / phi.sum(), rtol=1e-14)
    np.testing.assert_allclose(cvar_row, phi / phi.sum(), rtol=1e-14)
    for z, lower in ((value - 1, 0), (value, 1), (value + 1, 1)):
        assert brmdp.dirichlet.cdf(phi, values, z) == lower
        assert brmdp.dirichlet.cdf(phi, values, z, complement=True) == 1 - lower


def test_points_outside_the_support():
    phi, values = np.array([0.5, 0.0, 2.0, 1.0]), np.array([1.0, 9.0, 2.0, 4.0])
    for z in (-1e300, 0.5, 1.0):
        assert brmdp.dirichlet.cdf(phi, values, z) == 0
        assert brmdp.dirichlet.cdf(phi, values, z, complement=True) == 1
    for z in (4.0, 5.0, 1e300):
        assert brmdp.dirichlet.cdf(phi, values, z) == 1
        assert brmdp.dirichlet.cdf(phi, values, z, complement=True) == 0


def test_point_equal_to_a_value():
    rng = np.random.default_rng(14)
    for _ in range(200):
        phi, values = rng.integers(1, 4, 4).astype(float), np.sort(rng.normal(size=4))
        for z in values[1:3]:
            assert cdf_error(oracle.spline_tails, phi, values, z) <= oracle.TOLERANCE, (
                phi,
                values,
                z,
            )


def test_point_equal_to_the_middle_value_leaves_a_beta():
    def others(
        phi, values, z
    ):  # the coordinate with w_i = z does not affect the sign of Σ (w_i - z) P_i
        return beta_tails(phi[[0, 2]], values[[0, 2]], z)

    rng = np.random.default_rng(16)
    for _ in range(500):
        phi, values = 10 ** rng.uniform(-2, 6, 3), np.sort(rng.normal(size=3))
        if min(others(phi, values, values[1])) > 1e-200:
            assert cdf_error(others, phi, values, values[1]) <= oracle.TOLERANCE, (phi, values)


def test_broadcasting():
    rng = np.random.default_rng(15)
    phi, values, level = (
        rng.random((3, 1, 5)) + 0.5,
        rng.normal(size=(4, 5)),
        np.array([[[0.1]], [[0.7]]]),
    )
    q = brmdp.dirichlet.quantile(phi, values, level)
    q2, row = brmdp.dirichlet.quantile_row(phi, values, level)
    cvar = brmdp.dirichlet.cvar(phi, values, level)
    cvar2, cvar_row = brmdp.dirichlet.cvar_row(phi, values, level)
    cdf = brmdp.dirichlet.cdf(phi, values, q)
    assert q.shape == q2.shape == cvar.shape == cvar2.shape == cdf.shape == (2, 3, 4)
    assert row.shape == cvar_row.shape == (2, 3, 4, 5)
    np.testing.assert_allclose(cdf, np.broadcast_to(level, cdf.shape), rtol=1e-9)
    for i, j, k in np.ndindex(2, 3, 4):
        arguments = phi[j, 0], values[k], level[i, 0, 0]
        assert q[i, j, k] == pytest.approx(brmdp.dirichlet.quantile(*arguments), rel=1e-13)
        assert cvar[i, j, k] == pytest.approx(brmdp.dirichlet.cvar(*arguments), rel=1e-12)
        np.testing.assert_allclose(
            row[i, j, k], brmdp.dirichlet.quantile_row(*arguments)[1], atol=1e-9
        )
        np.testing.assert_allclose(
            cvar_row[i, j, k], brmdp.dirichlet.cvar_row(*arguments)[1], atol=1e-9
        )
    assert np.ndim(brmdp.dirichlet.quantile(phi[0, 0], values[0], 0.2)) == 0
    assert brmdp.dirichlet.cdf(np.empty((0, 5)) + 1, values[0], 0.0).shape == (0,)


# --- rows as data leave them ----------------------------------------------------------------------

OVERSHOT = (
    np.array([5.0, 71.0, 49.0, 1.0, 1.0, 1.0]),
    0.9 * np.array([0.93046374, 0.91619272, 1.17463389, 1.63557206, 2.24155300, 3.05548092]),
)
"""A row of RiverSwim-6.

The search for its saddlepoint oversteps the branch point for z near 0.916.
"""


def test_the_saddlepoint_is_found_after_an_overstep():
    phi, values = OVERSHOT
    points = np.concatenate([np.linspace(0.88, 1.1, 20), np.linspace(0.9155, 0.9175, 10)])
    errors = [cdf_error(oracle.ray_tails, phi, values, float(z)) for z in points]
    assert max(errors) <= oracle.TOLERANCE
    dense = brmdp.dirichlet.cdf(phi, values, np.linspace(0.84, 1.1, 5001))
    assert (np.diff(dense) > 0.0).all()


def random_row_after_data(rng):
    """A few successors seen often, others never, and values with outliers."""
    n = int(rng.integers(3, 17))
    phi = 1.0 + rng.integers(0, 100, n) * (rng.random(n) < 0.5)
    values = (
        np.cumsum(10 ** rng.uniform(-2, 1, n))
        if rng.random() < 0.5
        else 10 ** rng.uniform(-3, 1, n)
    )
    return phi, values


@pytest.mark.parametrize("chunk", range(2))
def test_rows_after_data(chunk):
    assert not report(draw((9, chunk), 60, random_row_after_data, 1e-4), oracle.ray_tails)


@pytest.mark.long
def test_the_quadrature_resolves_every_point_of_many_rows():
    """An unresolved distribution function raises, so 200,000 of them search for such points."""
    rng = np.random.default_rng(11)
    for _ in range(500):
        phi, values = random_row_after_data(rng)
        mean, deviation = oracle.mean_and_deviation(phi, values)
        points = np.clip(mean + 2 * deviation * rng.normal(size=400), values.min(), values.max())
        found = brmdp.dirichlet.cdf(phi, values, np.sort(points))
        assert (np.diff(found) >= -1e-12).all()


@pytest.mark.long
@pytest.mark.parametrize("n", [5_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_beside_a_heavy_value(n):
    """Within 1e-10 of a heavy value, the distribution function is that at the value itself.

    The density may be out of reach there. F = Pr(a P_1 ≤ b P_3) is a Beta probability, and F(z)
    differs from it by O((Φ|z|)^min(1, φ_1 + φ_3)).
    """
    rng = np.random.default_rng(5)
    phi = np.stack(
        [10 ** rng.uniform(-1, 1, n), 10 ** rng.uniform(0, 4, n), 10 ** rng.uniform(-1, 1, n)],
        axis=1,
    )
    up, down = rng.integers(1, 4, (2, n)).astype(float)
    values = np.stack([up, np.zeros(n), -down], axis=1)
    distance = 10 ** rng.uniform(-16, -10, n)
    found = brmdp.dirichlet.cdf(phi, values, rng.choice([-1.0, 1.0], n) * distance)
    light = phi[:, 0] + phi[:, 2]
    slack = 50 * (distance * phi[:, 1]) ** np.minimum(1.0, light)
    expected = stats.beta.cdf(down / (up + down), phi[:, 0], phi[:, 2])
    assert (np.abs(found - expected) <= 1e-9 + slack).all()
    assert (slack[light > 1] < 1e-3).all()


@pytest.mark.long
def test_quantiles_beyond_which_a_negligible_value_lies():
    """A distribution function that hardly grows after a negligible value, and then jumps.

    If the level is far above ε, the quantile is that of the row without the negligible value, up to
    1e3 ε in probability.
    """
    rng = np.random.default_rng(6)
    n = 400
    light = 10.0 ** -rng.integers(6, 30, n)
    phi = 10 ** rng.uniform(-2, 1.5, (n, 3))
    phi[:, 0] = light
    values = rng.integers(-3, 4, (n, 3)).astype(float)
    values[:, 0] = rng.choice([-5.0, 5.0], n)
    values[:, 2] = np.where(values[:, 1] == values[:, 2], values[:, 1] + 1.0, values[:, 2])
    level = 10 ** rng.uniform(-3, -0.31, n)
    level = np.where(rng.random(n) < 0.5, level, 1 - level)
    q = brmdp.dirichlet.quantile(phi, values, level)
    step = 4 * np.spacing(5.0)
    top, bottom = values[:, 1:].max(axis=1), values[:, 1:].min(axis=1)
    upper = np.where(values[:, 1] > values[:, 2], phi[:, 1], phi[:, 2])
    lower = phi[:, 1] + phi[:, 2] - upper

    def without(z):
        return stats.beta.cdf((z - bottom) / (top - bottom), upper, lower)

    slack = 1e-8 + 1e3 * light
    # the argument of the Beta itself is known only up to rounding
    assert (without(q - 2 * step) <= level + slack).all()
    assert (without(q + 2 * step) >= level - slack).all()
