"""Tables of Chinese restaurants, against their exact law."""

import mpmath
import numpy as np
import pytest
from scipy.special import gammaln, ndtr

from brmdp._kernels import tables
from oracles.restaurants import convolved_law, stirling_law, transformed_law

CUSTOMERS = (1, 2, 3, 10, 60, 1000, 30_000, 10**6)
WEIGHTS = (1e-12, 1e-3, 0.3, 1.0, 4.0, 7.9, 8.1, 40.0, 400.0, 1e4, 1e6)


def law_of(n, weight):
    """First number of tables, and the probabilities from there on."""
    return (0, convolved_law(n, weight)) if n <= 60 else transformed_law(n, weight)


def drawn(n, weight, times, rng):
    """Numbers of tables, with the first."""
    out = np.ones(times)
    kinds, once = np.arange(times), np.ones(times)
    tables.add_tables(kinds, np.full(times, float(n)), once, np.full(times, weight), rng, out)
    return out


class Scored:
    """A stream of one normal number."""

    def __init__(self, score):
        self.score = score

    def standard_normal(self):
        return self.score


@pytest.mark.parametrize(("n", "weight"), [(1, 0.3), (5, 1e-3), (30, 2.0), (60, 45.0)])
def test_the_three_laws_agree(n, weight):
    whole = np.zeros(n + 1)
    first, law = transformed_law(n, weight)
    count = min(law.size, n + 1 - first)
    whole[first : first + count] = law[:count]
    np.testing.assert_allclose(convolved_law(n, weight), stirling_law(n, weight), atol=1e-13)
    np.testing.assert_allclose(whole, stirling_law(n, weight), atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("weight", WEIGHTS)
def test_tables_follow_their_exact_law(weight):
    rng = np.random.default_rng([31, int(np.log10(weight) * 10) + 200])
    times = 20_000
    for n in CUSTOMERS:
        first, law = law_of(n, weight)
        found = drawn(n, weight, times, rng)
        assert ((found >= 1) & (found <= n)).all()
        place = found.astype(int) - first
        assert ((place >= 0) & (place < law.size)).all()
        shares = np.bincount(place, minlength=law.size) / times
        # exceeded once in 10⁴ times, by Kolmogorov's law
        assert np.abs(np.cumsum(shares) - np.cumsum(law)).max() < 2.23 / np.sqrt(times), n
        mean = law @ np.arange(law.size)
        spread = np.sqrt(law @ (np.arange(law.size) - mean) ** 2)
        assert abs(place.mean() - mean) < 4.5 * spread / np.sqrt(times) + 1e-9, n


@pytest.mark.parametrize("weight", [8.0, 30.0, 400.0, 1e4, 1e5])
def test_large_sums_have_the_right_distribution_function(weight):
    scores = np.linspace(-6.0, 6.0, 4001)
    checked = 0
    for n in (60, 150, 700, 4000, 10**5, 10**6):
        sums = np.zeros(4)
        tables.add_cumulants(float(n), weight, sums)
        if not tables.is_large(sums):
            continue
        checked += 1
        found = np.array(
            [tables.drawn_sum.py_func(sums, n - 1.0, Scored(score)) for score in scores]
        )
        assert (np.diff(found) >= 0).all()
        first, law = transformed_law(n, weight)
        levels = np.cumsum(law)
        # a number of tables is reached between two neighbouring scores
        last = np.searchsorted(found, np.arange(law.size) + first - 1, side="right")
        inside = (last > 0) & (last < scores.size)
        assert inside.any()
        low, high = ndtr(scores[last[inside] - 1]), ndtr(scores[last[inside]])
        exact = levels[inside]
        assert (np.maximum(low - exact, exact - high) < 3e-5).all(), n
    assert checked >= 2


@pytest.mark.parametrize("weight", [8.0, 13.7, 500.0, 1e6])
@pytest.mark.parametrize("n", [2, 9, 400, 10**6])
def test_sums_over_seats(n, weight):
    seats = np.arange(1, n)
    chances = weight / (weight + seats)
    found = np.zeros(4)
    tables.add_cumulants(float(n), weight, found)
    for k in range(4):
        assert found[k] == pytest.approx((chances ** (k + 1)).sum(), rel=2e-7), k


def test_logarithms_of_gamma():
    x = np.concatenate((np.geomspace(1e-30, 1e9, 400), np.arange(1.0, 30.0)))
    found = np.array([tables.log_gamma(one) for one in x])
    np.testing.assert_allclose(found, gammaln(x), rtol=1e-12, atol=2e-12)
    for n in (0.0, 1.0, 5.0, 9.0, 10.0, 300.0, 1e6):
        rises = np.array([tables.log_rise(one, n) for one in x])
        exact = gammaln(x + n) - gammaln(x)
        np.testing.assert_allclose(rises, exact, rtol=1e-12, atol=1e-14 * np.abs(gammaln(x)).max())


@pytest.mark.parametrize("weight", [0.7, 30.0])
def test_tables_of_several_restaurants_add_up(weight):
    """Of one kind: three with 40 customers and two with 400; another kind has one with 5."""
    rng = np.random.default_rng(5)
    kinds, customers = np.array([0, 0, 1]), np.array([40.0, 400.0, 5.0])
    found = np.zeros((4_000, 2))
    for out in found:
        tables.add_tables(kinds, customers, np.array([3.0, 2.0, 1.0]), np.full(2, weight), rng, out)
    mean, variance = np.zeros(2), np.zeros(2)
    for kind, n, times in ((0, 40, 3), (0, 400, 2), (1, 5, 1)):
        chance = weight / (weight + np.arange(1, n))
        mean[kind] += times * chance.sum()
        variance[kind] += times * (chance * (1.0 - chance)).sum()
    errors = (found.mean(axis=0) - mean) / np.sqrt(variance / len(found))
    assert (np.abs(errors) < 4.0).all()
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.12)


def test_the_same_stream_gives_the_same_tables():
    n, weight = np.full(50, 500.0), np.geomspace(1e-3, 1e3, 50)
    found = []
    for _ in range(2):
        out = np.zeros(50)
        rng = np.random.default_rng(1)
        tables.add_tables(np.arange(50), n, np.ones(50), weight, rng, out)
        found.append(out)
    np.testing.assert_array_equal(*found)


def test_differences_of_slopes():
    weight = np.repeat(np.geomspace(1e-12, 1e7, 60), 9)
    n = np.tile([0.0, 1.0, 4.0, 9.0, 2.5, 10.0, 11.3, 400.0, 1e7], 60)
    first, second = np.empty(n.size), np.empty(n.size)
    tables.rises(weight, n, first, second)
    with mpmath.workdps(40):
        for i, (x, y) in enumerate(zip(map(mpmath.mpf, weight), map(mpmath.mpf, n), strict=True)):
            for k, found in enumerate((first[i], second[i])):
                exact = mpmath.psi(k, x + y) - mpmath.psi(k, x)
                loss = 1e-14 * abs(mpmath.psi(k, x))  # what a difference of large numbers costs
                assert abs(found - exact) <= 1e-12 * abs(exact) + loss, (x, y, k)
