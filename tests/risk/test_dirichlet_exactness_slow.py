"""Exactness of the Dirichlet functions against multiple-precision inversion.

The contract is that of the fast suite.
"""

import mpmath
import numpy as np
import pytest

import brmdp
from oracles import dirichlet_functional as oracle

pytestmark = pytest.mark.slow

CHUNKS, SIZE = range(26), 40
LEVELS = (1e-8, 1e-6, 1e-3, 0.05, 0.5, 0.95, 1 - 1e-3, 1 - 1e-6, 1 - 1e-8)

HARD = {
    "heavy among very light": ([1e6, 0.01, 0.01, 5], [0.3, 0.0, 1.0, 0.7]),
    "heavy at the bottom": ([1e6, 0.01, 0.01, 5], [0.0, 0.3, 1.0, 0.7]),
    "heavy at the top": ([0.01, 5, 0.01, 1e6], [0.0, 0.3, 0.7, 1.0]),
    "one thousand and ones": ([1000.0] + [1.0] * 19, np.linspace(0, 1, 20)),
    "one thousand and many ones": ([1000.0] + [1.0] * 99, np.sin(np.arange(100.0))),
    "all light": ([0.01] * 40, np.cos(np.arange(40.0))),
    "three atoms": ([0.01] * 3, [0.0, 0.5, 1.0]),
    "all heavy": ([1e6, 3e5, 8e5, 1e6], [0.0, 0.4, 0.7, 1.0]),
    "two heavy near ties and a light one": ([1e6, 1e6, 0.5], [1.0, 1.0 + 1e-12, 2.0]),
    "near ties at every scale": ([0.3, 2.0, 5.0, 0.7], [1.0, 1.0 + 1e-14, 1.0 + 1e-9, 1.0 + 1e-4]),
    "large offset": ([0.5, 3.0, 40.0, 1e3], [1e6, 1e6 + 1e-3, 1e6 + 2e-3, 1e6 + 5e-3]),
    "wide scales": ([1.0, 1.0, 1.0, 1.0], [-1e-9, 1e-6, 1.0, 1e6]),
}


def exact_tails(phi, values, z):
    """The multiple-precision tails, with their error checked."""
    lower, upper, error = oracle.mp_tails(phi, values, z)
    assert error <= max(1e-12 * min(lower, upper), 1e-26), (phi, values, z, error)
    return lower, upper


def check(phi, values, alpha):
    """The quantile at one level and the CDF there, against the same oracle value."""
    where = f"phi={phi.tolist()} values={values.tolist()} alpha={alpha!r}"
    known = {}

    def tails(_, __, z):
        if z not in known:
            known[z] = exact_tails(phi, values, z)
        return known[z]

    q = float(brmdp.dirichlet.quantile(phi, values, alpha, method="exact"))
    assert np.isfinite(q), where
    fault = oracle.quantile_fault(tails, phi, values, q, alpha)
    assert fault == "", f"{where}: quantile {q!r}: {fault}"
    active = values[phi > 0]
    if active.min() < q < active.max():
        ours = [float(brmdp.dirichlet.cdf(phi, values, q, complement=c)) for c in (False, True)]
        error = oracle.cdf_fault(*ours, *tails(phi, values, q))
        assert error <= oracle.TOLERANCE, (
            f"{where}: cdf at {q!r}: {ours}, relative error {error:.3e}"
        )


def test_at_least_one_thousand_cases():
    assert len(CHUNKS) * SIZE >= 1000


@pytest.mark.parametrize("seed", CHUNKS)
def test_random_cases(seed):
    rng = np.random.default_rng([20, seed])
    largest = 200 if seed % 5 == 0 else 30
    for alpha in oracle.random_levels(rng, SIZE):
        phi, values = oracle.random_problem(rng, largest)
        check(phi, values, float(alpha))


@pytest.mark.parametrize("alpha", LEVELS)
@pytest.mark.parametrize("name", HARD)
def test_hard_cases(name, alpha):
    phi, values = (np.array(v, float) for v in HARD[name])
    check(phi, values, alpha)


@pytest.mark.parametrize("seed", range(6))
def test_cvar(seed):
    rng = np.random.default_rng([21, seed])
    for alpha in oracle.random_levels(rng, 5).tolist():
        n = oracle.random_size(rng, 2, 5)
        phi, values = oracle.random_concentration(rng, n), np.sort(rng.normal(size=n))
        q = float(brmdp.dirichlet.quantile(phi, values, alpha))
        expected = oracle.lower_cvar(exact_tails, phi, values, alpha, q)
        slack = 1e-9 * np.ptp(values) + 4 * np.spacing(np.abs(values).max())
        cvar = float(brmdp.dirichlet.cvar(phi, values, alpha))
        assert abs(cvar - expected) <= slack, (phi, values, alpha, cvar, expected)


# --- the oracles against one another --------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_oracles_agree(seed):
    rng = np.random.default_rng([22, seed])
    for _ in range(20):
        phi, values = 10 ** rng.uniform(-2, 6, 3), np.sort(rng.normal(size=3))
        mean, deviation = oracle.mean_and_deviation(phi, values)
        z = float(
            np.clip(mean + 2 * rng.normal() * deviation, *np.quantile(values, [0.001, 0.999]))
        )
        lower, upper, error = oracle.mp_tails(phi, values, z)
        if min(lower, upper) > 1e-10:
            stick = [x.item() for x in oracle.three_value_tails(phi, values, z)]
            assert error <= 1e-13 * min(lower, upper)
            assert oracle.cdf_fault(*stick, lower, upper) <= 1e-11
        integers, knots = rng.integers(1, 4, 4), np.sort(rng.normal(size=4))
        z = float(rng.uniform(knots[0], knots[-1]))
        lower, upper, error = oracle.mp_tails(integers, knots, z)
        if min(lower, upper) > 1e-10:
            exact = [
                mpmath.mpf(x.numerator) / x.denominator
                for x in oracle.spline_tails(integers, knots, z)
            ]
            assert error <= 1e-13 * min(lower, upper)
            assert oracle.cdf_fault(lower, upper, *exact) <= 1e-14


def test_stick_breaking_at_the_middle_value_is_a_beta():
    rng = np.random.default_rng(25)
    phi = 10 ** rng.uniform(-2, rng.choice([0, 2, 6], (1000, 1)), (1000, 3))
    values = np.sort(rng.normal(size=(1000, 3)), axis=1)
    stick = oracle.three_value_tails(phi, values, values[:, 1])
    exact = oracle.beta_tails(phi[:, [0, 2]], values[:, [0, 2]], values[:, 1])
    for row in np.transpose([*stick, *exact]):
        if row[2:].min() > 1e-200:
            assert oracle.cdf_fault(*row) <= 1e-11


def test_row_oracles_agree():
    rng = np.random.default_rng(24)
    for _ in range(50):
        phi, values = rng.integers(1, 6, 3), np.sort(rng.normal(size=3))
        z = float(rng.uniform(values[0], values[2]))
        exact = np.array([float(x) for x in oracle.spline_row(phi, values, z)])
        np.testing.assert_allclose(
            oracle.three_value_row(phi, values, z)[0], exact, rtol=1e-11, atol=1e-13
        )
        assert abs(exact @ values - z) <= 1e-13


def test_oracles_agree_with_monte_carlo():
    rng = np.random.default_rng(23)
    for phi in ([0.3, 2.0, 5.0, 0.7], [30.0, 0.05, 1.0], [1000.0] + [1.0] * 19):
        phi, values = np.array(phi), rng.normal(size=len(phi))
        draws = rng.dirichlet(phi, 400_000) @ values
        for z in np.quantile(draws, [0.01, 0.3, 0.9]):
            lower = float(oracle.ray_tails(phi, values, z)[0])
            assert abs(np.mean(draws <= z) - lower) <= 5 * np.sqrt(lower * (1 - lower) / len(draws))
