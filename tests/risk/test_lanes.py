"""Arithmetic on lanes, and their elementary functions against multiple precision."""

import mpmath
import numba
import numpy as np
import pytest

from brmdp._kernels import lanes
from brmdp._kernels.lanes import LANES, LANES_ERROR, load, store, where_less

pytestmark = pytest.mark.long
# without the cache of kernels, which knows functions by their names
compiled = numba.njit(error_model="numpy")


def over(function, results=1):
    """A kernel that applies a function of lanes to every row of a matrix, or of two."""

    @compiled
    def one(x, y, out):
        for row in range(x.shape[0]):
            store(out[0], row, function(load(x, row)))

    @compiled
    def two(x, y, out):
        for row in range(x.shape[0]):
            store(out[0], row, function(load(x, row), load(y, row)))

    @compiled
    def pair(x, y, out):
        for row in range(x.shape[0]):
            first, second = function(load(x, row))
            store(out[0], row, first)
            store(out[1], row, second)

    def call(x, y=None):
        x = np.asarray(x, float)
        padded = np.ones((2, -(-x.size // LANES), LANES))
        padded[0].flat[: x.size] = x
        if y is not None:
            padded[1].flat[: x.size] = y
        out = np.empty_like(padded)
        (pair if results == 2 else one if y is None else two)(padded[0], padded[1], out)
        flat = out.reshape(2, -1)[:, : x.size]
        return flat if results == 2 else flat[0]

    return call


def name(function):
    return function.__name__


def numbers(rng, low, high, n=3000):
    """Numbers of either sign and every magnitude in a range of exponents, and the extremes."""
    size = 10.0 ** np.append(rng.uniform(low, high, n), [low, high])
    return size * rng.choice([-1.0, 1.0], size.size)


def worst(found, exact, scale=None):
    """Largest error relative to the exact values, or to ``scale``."""
    with mpmath.workprec(200):
        errors = [
            abs(mpmath.mpf(float(f)) - e) / (abs(e) if s is None else s)
            for f, e, s in zip(found, exact, scale or [None] * len(found), strict=True)
            if e != 0
        ]
    return float(max(errors))


def each(function, *arguments):
    with mpmath.workprec(200):
        return [function(*map(mpmath.mpf, map(float, row))) for row in zip(*arguments, strict=True)]


def beside(*points):
    """Points and their neighbours at a distance of one and of a few thousand roundings."""
    points = np.asarray(points)
    return np.concatenate(
        [
            points,
            *(np.nextafter(points, side) for side in (-np.inf, np.inf)),
            *(points * (1.0 + shift) for shift in (-1e-12, 1e-12)),
        ]
    )


def test_logarithm():
    rng = np.random.default_rng(1)
    root = np.sqrt(0.5)
    x = np.concatenate(
        [
            numbers(rng, -300, -0.31),
            numbers(rng, -3, -0.31),
            10.0 ** rng.uniform(-1, 307, 2000),
            rng.uniform(-0.999, 3.0, 3000),
            beside(root - 1.0, 2.0 * root - 1.0, 1.0, -0.5, 3.0),
        ]
    )
    assert worst(over(lanes.log_of_one_plus)(x), each(mpmath.log1p, x)) < LANES_ERROR
    assert over(lanes.log_of_one_plus)([0.0])[0] == 0.0


def test_angle():
    rng = np.random.default_rng(2)
    eighth = np.tan(np.pi / 8)
    x = np.concatenate([numbers(rng, -3, 3), rng.uniform(-3, 3, 3000), [0.0, 1.0, -1.0, 1e300]])
    y = abs(
        np.concatenate([numbers(rng, -300, 5), rng.uniform(0, 3, 3000), [1.0, 0.0, 0.0, 1e300]])
    )
    edges = beside(eighth, 1.0 / eighth, 1.0)
    x = np.concatenate([x, np.ones(edges.size), -np.ones(edges.size)])
    y = np.concatenate([y, edges, edges])
    found = over(lanes.angle)(x, y)
    assert worst(found, each(lambda a, b: mpmath.atan2(b, a), x, y)) < LANES_ERROR
    assert found.min() == 0.0
    assert found.max() == np.pi


def test_exponential():
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [
            numbers(rng, -20, 2.8),
            [-lanes.MOST_LOGARITHM, lanes.MOST_LOGARITHM],
            rng.uniform(-40, 15, 3000),
            beside(*(np.log(2.0) * (np.arange(-5, 5) + 0.5))),
        ]
    )
    assert worst(over(lanes.exponential)(x), each(mpmath.exp, x)) < LANES_ERROR
    assert over(lanes.exponential)([0.0])[0] == 1.0
    ends = over(lanes.exponential)([-1e308, -np.inf, 701.0, np.inf])
    assert 0.0 < ends[0] == ends[1] < 1e-300
    assert 1e300 < ends[2] == ends[3] < np.inf


def test_cosine_and_sine():
    """As exact as the angle is, up to a million right angles."""
    rng = np.random.default_rng(4)
    x = np.concatenate(
        [
            numbers(rng, -300, 6),
            rng.uniform(-20, 20, 3000),
            beside(*(np.pi / 4 * np.arange(-9, 10))),
        ]
    )
    found = over(lanes.cos_and_sin, results=2)(x)
    one = [1] * x.size
    assert worst(found[0], each(mpmath.cos, x), one) < LANES_ERROR
    assert worst(found[1], each(mpmath.sin, x), one) < LANES_ERROR
    small = abs(x) < 0.5
    assert worst(found[1][small], each(mpmath.sin, x[small])) < LANES_ERROR
    huge = over(lanes.cos_and_sin, results=2)([1e12, -1e17, 1e200, -1e308])
    assert abs(huge).max() <= 1.0 + 1e-15


@pytest.mark.parametrize(
    "function", [lanes.log_of_one_plus, lanes.exponential, lanes.square_root], ids=name
)
def test_a_lane_without_a_number_does_not_disturb_the_others(function):
    x = np.array([0.3, np.nan, 0.7, 2.0])
    found = over(function)(x)
    assert np.array_equal(found[[0, 2, 3]], over(function)(x[[0, 2, 3]]))


def test_what_is_no_number_stays_none():
    """The integrand is then none either, whatever becomes of its modulus."""
    assert np.isnan(over(lanes.exponential)([np.nan])[0])
    assert np.isnan(over(lanes.cos_and_sin, results=2)([np.nan])).all()
    for x, y in ((np.nan, 1.0), (1.0, np.nan), (np.nan, np.nan)):
        assert np.isnan(over(lanes.angle)([x], [y])[0])


@compiled
def combined(x, y, out):
    a = load(x, 0)
    b = load(y, 0)
    store(out, 0, (a + b) * 2.0 - b / a)
    store(out, 1, where_less(a, b, 1.0 - a, abs(b)))
    store(out, 2, lanes.times_power(lanes.mantissa(abs(a)), lanes.exponent(abs(a))))
    store(out, 3, lanes.square_root(abs(a)) + lanes.every(a[LANES - 1]))


@pytest.mark.parametrize("run", [combined, combined.py_func], ids=["compiled", "in Python"])
def test_lanes_calculate_as_numbers_do(run):
    """To the last bit, compiled or not."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        x, y = rng.normal(size=(2, 1, LANES)) * 10.0 ** rng.integers(-9, 9, (2, 1, LANES))
        out = np.empty((4, LANES))
        run(x, y, out)
        a, b = x[0], y[0]
        assert out[0].tolist() == [(p + q) * 2.0 - q / p for p, q in zip(a, b, strict=True)]
        assert out[1].tolist() == [1.0 - p if p < q else abs(q) for p, q in zip(a, b, strict=True)]
        assert out[2].tolist() == abs(a).tolist()
        assert out[3].tolist() == [np.sqrt(abs(p)) + a[-1] for p in a]


@pytest.mark.parametrize("function", [lanes.log_of_one_plus, lanes.exponential], ids=name)
def test_functions_are_the_same_without_compilation(function):
    """Kernels are then run as they are written."""
    x = np.random.default_rng(6).uniform(-0.5, 4.0, LANES)
    assert np.array_equal(function.py_func(x), over(function)(x))
