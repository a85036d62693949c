"""Slow, independent oracles for the linear functional X = w·P of a Dirichlet vector P ~ Dir(φ).

Each ``*_tails`` function returns the two tails (F, S) = (Pr(X <= z), Pr(X > z)). The five methods
share no formula with one another, and none uses a contour through the saddlepoint:

* ``beta_tails``: two distinct values, the regularised incomplete Beta function;
* ``spline_tails``: integer φ, the Curry–Schoenberg B-spline in exact rational arithmetic;
* ``three_value_tails``: three distinct values, a positive integral over the stick-breaking
  proportion;
* ``ray_tails``: anything, Gil-Pelaez inversion along a ray from the origin, in extended precision;
* ``mp_tails``: the same inversion in multiple precision, done twice along different rays.
"""

from copy import copy
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import comb

import mpmath
import numpy as np
from scipy import special


def merge_ties(phi, values):
    """Distinct values in increasing order, each with the total φ of its ties, without φ_i = 0."""
    phi, values = np.asarray(phi, float), np.asarray(values, float)
    distinct, group = np.unique(values[phi > 0], return_inverse=True)
    return np.bincount(group, weights=phi[phi > 0]), distinct


# --- two distinct values: Beta --------------------------------------------------------------------


def _beta_cdf(a, b, x, y):
    """Pr(B <= x) for B ~ Beta(a, b); relatively accurate, as y = 1 - x is given separately."""
    a, b, x, y = np.broadcast_arrays(a, b, x, y)
    out = np.empty(x.shape)
    special.betainc(a, b, x, out=out, where=x <= 0.5)
    special.betaincc(b, a, y, out=out, where=x > 0.5)
    return out


def beta_tails(phi, values, z):
    """Two distinct values w1 < w2: w1 + (w2 - w1) B <= z with B ~ Beta(φ2, φ1)."""
    (a1, a2), (w1, w2) = (np.asarray(v, float).T for v in (phi, values))
    z = np.clip(z, w1, w2)
    x, y = (z - w1) / (w2 - w1), (w2 - z) / (w2 - w1)
    return _beta_cdf(a2, a1, x, y), _beta_cdf(a1, a2, y, x)


# --- integer φ: B-splines in rational arithmetic --------------------------------------------------


def _divided_difference(knots, taylor):
    """Divided difference f[knots], knots possibly confluent; ``taylor(x, k)`` is f^(k)(x) / k!."""
    row = [taylor(x, 0) for x in knots]
    for order in range(1, len(knots)):
        row = [
            taylor(a, order) if a == b else (upper - lower) / (b - a)
            for a, b, lower, upper in zip(knots, knots[order:], row, row[1:], strict=False)
        ]
    return row[0]


def _truncated_power(phi, values, z, degree):
    """Divided difference of (x - z)_+^degree at the knots w_i, φ_i times each, as a Fraction."""
    shift = Fraction(float(z))
    knots = sorted(
        Fraction(float(w)) - shift for w, k in zip(values, phi, strict=True) for _ in range(int(k))
    )

    def taylor(x, k):
        return comb(degree, k) * x ** (degree - k) if x > 0 and k <= degree else Fraction(0)

    return _divided_difference(knots, taylor)


def spline_tails(phi, values, z):
    """Tails for integer φ as exact Fractions.

    Pr(X > z) is the divided difference of (x - z)_+^(N-1) with N = Σφ.
    """
    upper = _truncated_power(phi, values, z, int(np.sum(phi)) - 1)
    return 1 - upper, upper


def spline_row(phi, values, z):
    """E[P_i | X = z] = (φ_i / N) f_{φ+e_i}(z) / f_φ(z), exactly.

    The density f(z) is N - 1 times the divided difference of (x - z)_+^(N-2).
    """
    total = int(np.sum(phi))
    density = (total - 1) * _truncated_power(phi, values, z, total - 2)
    return [
        Fraction(int(k), total) * total * _truncated_power(bumped, values, z, total - 1) / density
        for k, bumped in zip(phi, _size_biased(phi), strict=True)
    ]


# --- three distinct values: one positive integral -------------------------------------------------

_STEPS = 1e-4 * 2.0 ** np.arange(27)
_OFFSETS = np.concatenate((-_STEPS[::-1], [0.0], _STEPS))
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def _log_share(share, v):
    """log(u / u0) for logit(u) = logit(u0) + v, without cancellation; ``share`` is (u0, 1 - u0)."""
    u0, not_u0 = share
    direct = ((v < 0) | (u0 >= 0.5)) & (v > -700)
    near, far = np.where(direct, v, 0.0), np.where(direct, 0.0, v)
    far_log = np.where(far > 600, -np.log(u0), far - np.log1p(u0 * np.expm1(np.minimum(far, 600))))
    return np.where(direct, -np.log1p(not_u0 * np.expm1(-near)), far_log)


class _Stick:
    """The integrand over u = P3 / (P2 + P3) ~ Beta(φ3, φ2).

    u is independent of P1 ~ Beta(φ1, φ2 + φ3). For w1 < z <= w2 and m(u) = w2 - z + (w3 - w2) u,
    the event X <= z is P1 >= x(u) = m / (m + z - w1). The case z > w2 is the mirror image w -> -w.
    The variable of integration is v = logit(u) - logit(E u); k indexes the cases.
    """

    def __init__(self, phi, values, z):
        phi, values = (
            np.atleast_2d(np.asarray(phi, float)),
            np.atleast_2d(np.asarray(values, float)),
        )
        z = np.atleast_1d(np.asarray(z, float))
        self.mirror = z > values[:, 1]
        phi = np.where(self.mirror[:, None], phi[:, ::-1], phi)
        values = np.where(self.mirror[:, None], -values[:, ::-1], values)
        z = np.where(self.mirror, -z, z)
        self.phi = phi.T
        self.share = phi.T[[2, 1]] / (phi[:, 2] + phi[:, 1])
        with np.errstate(divide="ignore"):
            self.logs = np.log([z - values[:, 0], values[:, 1] - z, values[:, 2] - values[:, 1]])

    def select(self, keep):
        """The same object for some of the cases."""
        part = copy(self)
        part.mirror, part.phi = self.mirror[keep], self.phi[:, keep]
        part.share, part.logs = self.share[:, keep], self.logs[:, keep]
        return part

    def weight(self, k, v):
        """Log of the density of v, up to a constant: φ3 log(u) + φ2 log(1 - u)."""
        _, a2, a3 = self.phi[:, k]
        return a3 * _log_share(self.share[:, k], v) + a2 * _log_share(self.share[::-1, k], -v)

    def threshold(self, k, v):
        """The logarithms of m(u), x(u) and 1 - x(u)."""
        below, above, gap = self.logs[:, k]
        log_m = np.logaddexp(
            above, gap + np.log(self.share[0, k]) + _log_share(self.share[:, k], v)
        )
        return log_m, -np.logaddexp(0, below - log_m), -np.logaddexp(0, log_m - below)

    def log_integrand(self, kind, k, v):
        """Log of the integrand over v of F ("lower"), S ("upper") or the density ("density")."""
        a, b = self.phi[0, k], self.phi[1, k] + self.phi[2, k]
        log_m, log_x, log_y = self.threshold(k, v)
        if kind == "density":
            beta = (a - 1) * log_x + (b - 1) * log_y
            return self.weight(k, v) + beta - np.logaddexp(log_m, self.logs[0, k])
        x, y = np.exp(log_x), np.exp(log_y)
        power = np.minimum(
            a * log_x - np.log(a) - special.betaln(a, b), 0
        )  # Pr(P1 <= x) as x -> 0, in logs
        with np.errstate(divide="ignore"):
            if kind == "lower":
                log_p, limit = np.log(_beta_cdf(b, a, y, x)), np.log(-np.expm1(power))
            else:
                log_p, limit = np.log(_beta_cdf(a, b, x, y)), power
        return self.weight(k, v) + np.where(log_x < -650, limit, log_p)  # x itself would underflow

    def grid(self, kind):
        """Panel edges, geometrically graded around every feature and the peak of the integrand."""
        k = np.arange(self.phi.shape[1])[:, None]
        below, above, gap = self.logs[:, k]
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = below + np.log(self.phi[0, k] / (self.phi[1, k] + self.phi[2, k]))
            turn = special.logit(np.exp(odds - gap) - np.exp(above - gap))
            origin = np.log(self.share[0, k] / self.share[1, k])
            centres = [
                np.nan_to_num(c - origin, posinf=0, neginf=0) for c in (origin, above - gap, turn)
            ]
        edges = np.sort(np.concatenate([c + _OFFSETS for c in centres], axis=1), axis=1)
        best = np.argmax(self.log_integrand(kind, k, edges), axis=1)[:, None]
        reach = len(centres)  # because the centres may coincide
        lo = np.take_along_axis(edges, np.maximum(best - reach, 0), axis=1)
        hi = np.take_along_axis(edges, np.minimum(best + reach, edges.shape[1] - 1), axis=1)
        for _ in range(35):
            a, b = lo + 0.382 * (hi - lo), lo + 0.618 * (hi - lo)
            left = self.log_integrand(kind, k, a) > self.log_integrand(kind, k, b)
            lo, hi = np.where(left, lo, a), np.where(left, b, hi)
        return np.sort(np.concatenate((edges, lo + _OFFSETS), axis=1), axis=1)

    def quadrature(self, edges, log_f):
        """Cases, nodes and Gauss–Legendre weights of the panels where exp(log_f) matters."""
        k = np.arange(len(edges))[:, None]
        height = log_f(k, edges)
        alive = height > height.max(axis=1, keepdims=True) - 45
        case, panel = np.nonzero(alive[:, 1:] | alive[:, :-1])
        lo, hi = edges[case, panel, None], edges[case, panel + 1, None]
        half = (hi - lo) / 2
        return case, lo + half * (1 + _NODES), half * _WEIGHTS

    def integrate(self, kind, moments=False):
        """∫ integrand / ∫ weight for every case.

        With ``moments``, ∫ integrand · P_i for i = 1, 2, 3 instead, up to a common factor.
        """
        edges = self.grid(kind)
        case, v, weights = self.quadrature(edges, lambda k, v: self.log_integrand(kind, k, v))
        height = self.log_integrand(kind, case[:, None], v)
        if moments:
            top = np.full(len(edges), -np.inf)
            np.maximum.at(top, case, height.max(axis=1))
            mass = np.exp(height - top[case, None]) * weights
            _, log_x, log_y = self.threshold(case[:, None], v)
            u = self.share[0, case, None] * np.exp(_log_share(self.share[:, case, None], v))
            shares = np.exp(log_x), np.exp(log_y) * (1 - u), np.exp(log_y) * u
            return np.stack(
                [np.bincount(case, (mass * p).sum(axis=1), len(edges)) for p in shares], axis=1
            )
        total = np.bincount(case, (np.exp(height) * weights).sum(axis=1), len(edges))
        case, v, weights = self.quadrature(edges, self.weight)
        norm = np.bincount(
            case, (np.exp(self.weight(case[:, None], v)) * weights).sum(axis=1), len(edges)
        )
        return total / norm


def three_value_tails(phi, values, z):
    """Tails for three distinct values w1 < w2 < w3, (k, 3) arrays, and w1 < z < w3.

    φ must be at least 1e-9, since the grid ends at ±6,700 in logits.
    """
    assert np.min(phi) >= 1e-9
    stick = _Stick(phi, values, z)
    lower = stick.integrate("lower")
    upper = 1 - lower
    if (
        large := lower > 0.5
    ).any():  # integrate the smaller tail, so that both are relatively accurate
        upper[large] = stick.select(large).integrate("upper")
        lower[large] = 1 - upper[large]
    return np.where(stick.mirror, upper, lower), np.where(stick.mirror, lower, upper)


def three_value_row(phi, values, z):
    """E[P_i | X = z] for three values: the density integral weighted by P_i, normalised."""
    stick = _Stick(phi, values, z)
    weights = stick.integrate("density", moments=True)
    weights = np.where(stick.mirror[:, None], weights[:, ::-1], weights)
    return weights / weights.sum(axis=1, keepdims=True)


# --- general case: Gil-Pelaez along a ray ---------------------------------------------------------
# With G_i ~ Gamma(φ_i), c_i = w_i - z and M(t) = E exp(t Σ c_i G_i) = Π (1 - c_i t)^-φ_i, for
# 0 < ψ < π, Pr(Σ c_i G_i > 0) = [ψ + Im ∫_0^∞ M(r e^{iψ}) dr/r] / π. ψ = π/2 is Gil-Pelaez; tilting
# the ray damps the oscillation caused by a heavy φ_i with a tiny c_i.

_DEAD = 62.0  # exp(-62) ~ 1e-27: once |M| stays that small, the integral stops
_SERIES = 90  # terms of the expansion at infinity, which converges like 1/4^k


def _log_terms(c, r, cos, sin):
    """Real and imaginary parts of log(1 - c_j r e^{iψ}), one row for every radius r."""
    x, y = np.multiply.outer(r * cos, c), np.multiply.outer(r * sin, c)
    return np.log1p(x * (x - 2) + y * y) / 2, np.arctan2(-y, 1 - x)


def _choose_ray(phi, c, tilts):
    """The tilt off the imaginary axis with the least oscillation, and where |M| has decayed."""
    start, stop = 1e-3 / np.sqrt(phi @ c**2), 10 / np.min(np.abs(c))
    r = np.geomspace(min(start, stop / 10), stop, 200)
    best = None
    for tilt in tilts:
        size, angle = (-(term @ phi) for term in _log_terms(c, r, -np.sin(tilt), np.cos(tilt)))
        alive = np.maximum.accumulate(size[::-1])[::-1] > -_DEAD
        turns = np.abs(np.diff(angle))[alive[1:]].sum()
        cost = turns + 1e6 * max(0.0, size.max() - 12)
        end = r[min(np.count_nonzero(alive), len(r) - 1)]
        if best is None or cost < best[0]:
            best = cost, tilt, end
    return best[1:]


def _panels(phi, c, psi, end):
    """Panel edges on [0, R]: at most doubling, and at most a dozen units of log M per panel."""
    direction = np.exp(1j * psi)

    def slope(r):
        return abs(np.sum(phi * c / (1 - c * r * direction))) + 1e-300

    edges = [0.0, min(0.5 / np.max(np.abs(c)), 1 / np.sqrt(phi @ c**2), 12 / slope(0.0))]
    stop = min(end, 4 / np.min(np.abs(c)))
    while edges[-1] < stop:
        here = edges[-1]
        step = min(here, 12 / slope(here))
        step = min(step, 12 / slope(here + step))
        edges.append(here + step)
    return np.array(edges)


def _tail_series(phi, c, direction, radius, mgf):
    """∫_R^∞ M dr/r for R >= 4 / min|c|.

    M(r) = C r^-N Π (1 - 1/(c_j t))^-φ_j = C r^-N Σ g_k r^-k.
    """
    total = sum(phi)
    ratio = [1 / (cj * direction * radius) for cj in c]
    power, sums, g = list(phi), [], [1]
    for k in range(1, _SERIES):
        power = [p * q for p, q in zip(power, ratio, strict=True)]
        sums.append(sum(power))
        g.append(sum(sums[j] * g[k - 1 - j] for j in range(k)) / k)
    return mgf * sum(gk / (total + k) for k, gk in enumerate(g)) / sum(g)


@cache
def _legendre(order, digits):
    """Gauss–Legendre nodes and weights on (-1, 1) in multiple precision, by Newton's method."""
    nodes, weights = [], []
    with mpmath.workdps(digits + 10):
        for k in range(order):
            x = mpmath.cos(mpmath.pi * (k + mpmath.mpf(3) / 4) / (order + mpmath.mpf(1) / 2))
            for _ in range(8):
                before, value = mpmath.mpf(1), x
                for j in range(2, order + 1):
                    before, value = value, ((2 * j - 1) * x * value - (j - 1) * before) / j
                derivative = order * (x * value - before) / (x * x - 1)
                x -= value / derivative
            nodes.append(x)
            weights.append(2 / ((1 - x * x) * derivative**2))
    return nodes, weights


_TILTS = (0.0, np.pi / 8, -np.pi / 8)
_OTHER_TILTS = (np.pi / 16, -np.pi / 16, np.pi / 6, -np.pi / 6)


@cache
def _long_legendre(order):
    """The same nodes and weights as long doubles."""
    with mpmath.workdps(40):
        return [
            np.array([np.longdouble(mpmath.nstr(x, 30)) for x in column])
            for column in _legendre(order, 30)
        ]


_LONG_PI = np.longdouble("3.14159265358979323846264338327950288")


def ray_tails(phi, values, z, tilts=_TILTS, order=24):
    """(F, S, absolute error bound) in extended precision.

    The accuracy is about 1e-18 (1 + max Σ φ_j |c_j t|).
    """
    phi, values = merge_ties(phi, values)
    c = values.astype(np.longdouble) - np.longdouble(z)
    phi, c = phi[c != 0], c[c != 0]
    rough = c.astype(float)
    tilt, end = _choose_ray(phi, rough, tilts)
    pi = _LONG_PI
    psi = pi / 2 + np.longdouble(tilt)
    edges = _panels(phi, rough, float(psi), end).astype(np.longdouble)
    nodes, weights = _long_legendre(order)
    half = np.diff(edges)[:, None] / 2
    r = (edges[:-1, None] + half + half * nodes).ravel()
    r = np.append(r, edges[-1])
    cos, sin = np.cos(psi), np.sin(psi)
    log_abs, angle = _log_terms(c, r, cos, sin)
    log_m, arg_m = -(log_abs @ phi), -(angle @ phi)
    size = np.exp(log_m)
    integral = np.sum(size[:-1] * np.sin(arg_m[:-1]) / r[:-1] * (half * weights).ravel())
    if log_m[-1] > -_DEAD:
        mgf = size[-1] * (np.cos(arg_m[-1]) + 1j * np.sin(arg_m[-1]))
        integral += _tail_series(phi, c, cos + 1j * sin, edges[-1], mgf).imag
    bound = np.finfo(np.longdouble).eps * np.max(
        size * (1 + (np.abs(log_abs) + np.abs(angle)) @ phi)
    )
    return (pi - psi - integral) / pi, (psi + integral) / pi, float(bound)


def _mp_upper(phi, c, tilts, order, digits):
    """Pr(Σ c_i G_i > 0) in multiple precision along one ray."""
    rough_phi, rough = np.array([float(p) for p in phi]), np.array([float(x) for x in c])
    tilt, end = _choose_ray(rough_phi, rough, tilts)
    edges = _panels(rough_phi, rough, np.pi / 2 + tilt, end)
    with mpmath.workdps(digits):
        psi = mpmath.pi / 2 + mpmath.mpf(tilt)
        direction = mpmath.expj(psi)
        slopes = [cj * direction for cj in c]

        def mgf(r):
            log_m = mpmath.mpf(0)
            for p, s in zip(phi, slopes, strict=True):
                log_m -= p * mpmath.log(1 - s * r)
            return mpmath.exp(log_m)

        integral = mpmath.mpf(0)
        for lo, hi in pairwise(edges):
            centre, half = (
                (mpmath.mpf(hi) + mpmath.mpf(lo)) / 2,
                (mpmath.mpf(hi) - mpmath.mpf(lo)) / 2,
            )
            for x, weight in zip(*_legendre(order, digits), strict=True):
                r = centre + half * x
                integral += weight * half * mgf(r).imag / r
        last = mgf(mpmath.mpf(edges[-1]))
        if abs(last) > mpmath.exp(-_DEAD):
            integral += _tail_series(phi, c, direction, mpmath.mpf(edges[-1]), last).imag
        return (psi + integral) / mpmath.pi


def mp_tails(phi, values, z, order=20, digits=32):
    """(F, S, error) as mpf.

    The error is the difference between two rays, node counts and precisions.
    """
    phi, values = merge_ties(phi, values)
    with mpmath.workdps(digits + 10):
        c = [mpmath.mpf(w) - mpmath.mpf(float(z)) for w in values.tolist()]
        phi = [mpmath.mpf(p) for p, x in zip(phi.tolist(), c, strict=True) if x]
        c = [x for x in c if x]
        first = _mp_upper(phi, c, _TILTS, order, digits)
        second = _mp_upper(phi, c, _OTHER_TILTS, order + 4, digits + 6)
        return 1 - second, +second, abs(first - second)


# --- expectations from any of the oracles ---------------------------------------------------------


def _size_biased(phi):
    """The parameters φ + e_i, one row for every i."""
    phi = np.asarray(phi)
    return phi + np.eye(len(phi), dtype=phi.dtype)


def lower_moments(tails, phi, values, z):
    """E[P_i; X <= z] = (φ_i / Σφ) F_{φ+e_i}(z) for every i (size biasing); ``tails`` gives F."""
    biased = [float(tails(bumped, values, z)[0]) for bumped in _size_biased(phi)]
    return np.asarray(phi) / np.sum(phi) * np.array(biased)


def lower_cvar(tails, phi, values, alpha, q):
    """CVaR = max_z z - E[(z - X)_+] / α, attained at the quantile.

    The maximum is taken over z within 2 ulp of q. The function of z is concave and flat at the top,
    so the rounding of q is harmless.
    """
    active = phi > 0
    phi, values = phi[active], values[active]
    ulp = np.spacing(np.abs(values).max())
    best = values.min()
    for z in q + ulp * np.arange(-2, 3):
        if values.min() < z < values.max():
            shortfall = np.sum((z - values) * lower_moments(tails, phi, values, z))
            best = max(best, z - shortfall / alpha)
    return best


# --- random problems ------------------------------------------------------------------------------


def random_levels(rng, size, smallest=1e-8):
    """Levels whose smaller tail is log-uniform from ``smallest`` to 1/2, on either side."""
    tail = 10 ** rng.uniform(np.log10(smallest), np.log10(0.5), size)
    return np.where(rng.random(size) < 0.5, tail, 1 - tail)


def random_size(rng, smallest=2, largest=200):
    """A number of successors, log-uniform."""
    return int(np.exp(rng.uniform(np.log(smallest), np.log(largest + 1))))


def random_concentration(rng, n):
    """φ log-uniform in 1e-2 .. 1e6, or all light, or all equal, or one heavy among many light."""
    kind = rng.integers(4)
    if kind == 0:
        return 10 ** rng.uniform(-2, 6, n)
    if kind == 1:
        return np.full(n, 10 ** rng.uniform(-2, 2))
    phi = 10 ** rng.uniform(-2, 1, n)
    if kind == 2:
        phi[rng.integers(n)] = 10 ** rng.uniform(2, 6)
    return phi


def random_values(rng, n):
    """Distinct values of any scale and offset, some nearly tied (relative 1e-14 .. 1e-9)."""
    kind = rng.integers(6)
    while True:
        values = rng.normal(size=n) if rng.random() < 0.5 else rng.random(n) ** rng.integers(1, 4)
        if n > 2 and rng.random() < 0.3:
            near = rng.permutation(n)[:2]
            values[near[0]] = values[near[1]] * (1 + 10 ** rng.uniform(-14, -9))
        if kind == 1:
            values = 1e6 + values
        elif kind == 2:
            values = 3 + 1e-9 * values
        elif kind == 3:
            values = -np.abs(values) * 10 ** rng.uniform(-9, 6)
        elif kind == 4:
            values = values * 10 ** rng.uniform(-9, 9)
        if len(np.unique(values)) == n:
            return values


def with_structural_zeros(rng, phi, values):
    """Insert a few coordinates with φ = 0 and extreme values, which must not matter."""
    if rng.random() < 0.7:
        return phi, values
    where = rng.integers(0, len(phi) + 1, rng.integers(1, 4))
    return np.insert(phi, where, 0), np.insert(
        values, where, 10 * rng.normal(size=len(where)) * np.abs(values).max()
    )


def random_tied_problem(rng, distinct):
    """φ and w over up to 200 successors with ``distinct`` values, and structural zeros."""
    n = random_size(rng, distinct)
    group = np.concatenate((np.arange(distinct), rng.integers(0, distinct, n - distinct)))
    group = rng.permutation(group)
    return with_structural_zeros(
        rng, random_concentration(rng, n), random_values(rng, distinct)[group]
    )


def random_problem(rng, largest=200):
    """φ and w over 2 .. ``largest`` successors, with some exact ties and structural zeros."""
    n = random_size(rng, 2, largest)
    values = random_values(rng, n)
    if n > 3 and rng.random() < 0.3:
        values[: n // 3] = values[n // 3]
    return with_structural_zeros(rng, random_concentration(rng, n), values)


def random_integer_problem(rng):
    """Small integer φ (as floats) and w, with ties, near ties and zeros; at most 12 knots."""
    n = int(rng.integers(2, 7))
    phi, values = rng.integers(1, 5, n), random_values(rng, n)
    while phi.sum() > 12:
        phi = np.maximum(phi - 1, 1)
    if n > 2 and rng.random() < 0.3:
        values[0] = values[1]
    return with_structural_zeros(rng, phi.astype(float), values)


# --- problems by structure ------------------------------------------------------------------------


def compositions(total):
    """Every way to write ``total`` as an ordered sum of at least two positive integers."""

    def parts(left):
        if left == 0:
            yield ()
        for first in range(1, left + 1):
            for rest in parts(left - first):
                yield (first, *rest)

    return [np.array(found, float) for found in parts(total) if len(found) > 1]


def spreads(n):
    """Increasing values of n successors: even, geometric, clustered or nearly tied."""
    k = np.arange(n, dtype=float)
    ends = np.where(k == n - 1, 1.0, 0.0)
    return {
        "even": k,
        "from three to a thousand": np.concatenate(
            ([0.0], 3 * (1000 / 3) ** np.linspace(0, 1, n - 1) if n > 2 else [1000.0])
        ),
        "powers of ten": 10**k,
        "minus powers of ten": -(10 ** k[::-1]),
        "powers of two": 2**k - 17,
        "to a millionth": 1e-6 ** (1 - k / (n - 1)),
        "one far above": k + 1e4 * ends,
        "one far below": k - 1e4 * ends[::-1],
        "a cluster": 0.5 + 1e-5 * k + ends - ends[::-1],
        "nearly tied": 1 + k // 2 + 1e-9 * (k % 2),
        "large offset": 1e6 + k**2,
        "irrational": np.cumsum(1 + np.sin(3 * k)) / 7,
    }


def mean_and_deviation(phi, values):
    """Mean and standard deviation of X: Var X = Σ p_i (w_i - E X)^2 / (Σφ + 1) with p = φ / Σφ."""
    p = phi / phi.sum()
    mean = p @ values
    return mean, np.sqrt(p @ (values - mean) ** 2 / (phi.sum() + 1))


# --- the exactness contract -----------------------------------------------------------------------

TOLERANCE = 1e-9


def cdf_fault(lower, upper, exact_lower, exact_upper):
    """The larger error of the two tails, relative to the smaller tail.

    The larger tail may be rounded by 4 ulp of 1.
    """
    errors = [abs(float(lower - exact_lower)), abs(float(upper - exact_upper))]
    large = int(exact_upper > exact_lower)
    errors[large] = max(0.0, errors[large] - 4 * np.finfo(float).eps)
    tail = float(min(exact_lower, exact_upper))
    return max(errors) / tail if tail > 0 else max(errors)


def quantile_fault(tails, phi, values, q, alpha):
    """Empty if q is a quantile by the contract, else what is wrong.

    Either F(q) differs from α by at most 1e-9 min(α, 1 - α), or F crosses α within 2 ulp of max|w|.
    ``tails`` is an oracle for any z.
    """
    active = values[phi > 0]
    low, high = active.min(), active.max()
    if not low <= q <= high:
        return f"outside the support [{low!r}, {high!r}]"

    def excess(z):
        """(F(z) - α) / min(α, 1 - α), from the smaller tail."""
        if z <= low or z >= high:
            lower, upper = (0, 1) if z <= low else (1, 0)
        else:
            lower, upper = tails(phi, values, z)[:2]
        return (
            float(lower - alpha) / alpha
            if alpha <= 0.5
            else float((1 - alpha) - upper) / (1 - alpha)
        )

    here = excess(q)
    if abs(here) <= TOLERANCE:
        return ""
    margin = 2 * np.spacing(np.abs(active).max())
    if excess(q - margin) <= TOLERANCE and excess(q + margin) >= -TOLERANCE:
        return ""
    return f"relative tail error {here:.3e}, and no crossing within 2 ulp"


def merged(tails):
    """An oracle for distinct values, made to accept ties and zeros and to return scalars."""

    def scalar_tails(phi, values, z):
        lower, upper = tails(*merge_ties(phi, values), z)
        return np.asarray(lower).item(), np.asarray(upper).item()

    return scalar_tails
