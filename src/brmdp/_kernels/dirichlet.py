"""Exact law of a linear functional of a Dirichlet vector.

For P ~ Dir(φ), values w, and independent G_i ~ Gamma(φ_i), with c_i = (w_i − z)/(max w − min w),

    F(z) = Pr(w·P ≤ z) = Pr(Σ c_i G_i ≤ 0),
    E[exp(t Σ c_i G_i)] = Π (1 − c_i t)^{−φ_i} = exp K(t).

**One tail, one side.** By mirroring c → −c if z lies below the mean, we may assume K'(0) ≤ 0. Then
the saddlepoint t̂ (K'(t̂) = 0) is not negative, and the tail above z is

    Pr(Σ c_i G_i > 0) = (1/π) ∫_0^∞ Re[ exp K(τ + iy) / (τ + iy) ] dy,      0 < τ < 1/max c.

The line goes through t̂, pushed off the pole at 0 if t̂ is smaller than the saddle's width 1/√K''.
With κ_i = c_i/(1 − c_i τ), the integrand is exp K(τ) · Π (1 − iκ_i y)^{−φ_i} / (τ + iy), whose
modulus falls monotonically in y.

**Quadrature.** Set y = s·sinh(x), where s is the distance from τ to the nearest branch point, and
apply the trapezoidal rule in x. Near the saddle the rule is linear in y and suits a Gaussian;
farther out, a constant number of nodes per e-fold resolves all scales of y. The pole at t = 0, x =
i·arcsin(τ/s), would spoil the rule if it is close. With a its distance from the x axis, its
contribution to the rule of step h is known, +1/(e^{2πa/h} − 1) with nodes at kh and −1/(e^{2πa/h} +
1) with nodes at (k+½)h, and is taken out where it matters. The two rules then differ by ε, and
their mean, which is the rule of half the step, errs by about ε². The step is halved, keeping the
old nodes, until ε is small.

**Slow tails.** For small Σφ the integrand decays slowly. A Dirichlet vector is a mixture of
Dirichlet vectors with r more draws among their counts (size biasing). So with b_i = 1/(1 − c_i t),
and h_r the coefficient of s^r in Π (1 − b_i s)^{−φ_i}, the factor h_r(t)/h_r(0) in the integrand
changes nothing and gains r powers of y. In particular, with a(t) = Σ φ_i b_i:

    tail            (1/Φ) ∫ exp(K) a / t
    density         ∫ exp(K) a   (= (Φ − 1) ∫ exp(K))
    row (quantile)  ∂q/∂w_i = E[P_i | w·P = q] ∝ φ_i ∫ exp(K) b_i (a + b_i)
    row (CVaR)      E[P_i; w·P ≤ q] = (φ_i/Φ) F_{φ+e_i}(q),
                    where the tail of φ+e_i is (1/(Φ+1)) ∫ exp(K) b_i (a + b_i) / t

**Powers.** (1 − iκy)^{−φ} is multiplied out if φ is an integer; otherwise its logarithm is taken,
by polynomials, for four nodes at once (:mod:`brmdp._kernels.lanes`), and the logarithms of all
coordinates share one exponential, sine and cosine.

**Moving z for free.** Substituting t → t/(1 − δt), the tail at z + δ is (1/2πi) ∫ (1 − δt)^{Φ−1}
exp(K(t)) dt/t, with K still taken at z. The nodes of z thus give the whole Taylor series in δ, and
a quantile costs about one evaluation of the distribution function if the start is good.

**The start** is the saddlepoint quantile. Parametrised by u (1 − c_i t = (1 − v_i u)/(1 − zu), v
centred at the mean), z(u) = Σ p_i v_i with p_i ∝ φ_i/(1 − v_i u) is explicit, which leaves one
scalar equation, r*(u) = Φ⁻¹(α).
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from brmdp._kernels.compiled import apart, kernel
from brmdp._kernels.lanes import (
    LANES,
    angle,
    cos_and_sin,
    every,
    exponential,
    load,
    log_of_one_plus,
    square_root,
    store,
)

# First trapezoidal step, in units of the saddle's width if that is the narrower scale, and at most
# MAX_STEP.
STEP_IN_WIDTHS = 0.8
MAX_STEP = 0.3
# Largest accepted difference between the two rules, relative to the result. Their mean then errs by
# about its square, but the power 1.5 is reported, since the difference can be small by accident;
# in 20,000 cases of every kind that covered the error.
COARSE_TOLERANCE = 2e-8
# The same for rows.
ROW_TOLERANCE = 1e-6
# Rounding of the powers. Where a node matters, Σ φ|log(1 − iκy)| is at most some 8 √Σφ (Cauchy and
# Schwarz), of which LANES_ERROR or, multiplied out, a few EPS go wrong.
POWER_ROUNDING = 1e-14
# Rounding error of a sum, in units of EPS times the sum of its terms' moduli. It matters where the
# terms cancel, next to very light successors.
ROUNDING = 16.0
# An integral ends at the first node whose modulus is below this fraction of the sum.
TAIL_CUT = 1e-15
MAX_NODES = 20000
# In the distribution function, values closer to z than this fraction of the spread count as equal
# to it.
CLOSEST = 1e-150
# If the integrand turns by more than a right angle from one node to the next while still above this
# fraction of the sum, it is not resolved, whatever the two rules say.
TURN_MATTERS = 1e-5
MAX_HALVINGS = 8
# exp(K) is 1 at τ in our units and should fall along the path; if it grows beyond this, the path is
# wrong.
MAX_GROWTH = 1e6
FIRST_HALVINGS = 4
# Largest integer concentration that is multiplied out instead of logged.
MAX_POWER = 1024
# Nodes kept so that z can be moved without a new pass; longer integrals are evaluated again.
MAX_STORED = 128
# Above this Σφ, the plain integrands decay fast enough to need no division per node. Below it,
# enough draws are added to the counts (size biasing) to bring Σφ to BIASED_DECAY.
FAST_DECAY = 6.0
BIASED_DECAY = 8.0
MAX_BIAS = 8
# Next to a φ below this, only one draw is added: more would put all their weight on its branch
# point.
LEAST_BIASED = 1e-3
# A tail may then be wrong by this much, whatever its error estimate says: the light successor's
# share of it can be lost.
LOST_TAIL = 2e-16
# An evaluation whose relative error may exceed this cannot end the search for a quantile.
MAX_ERROR = 1e-7
# What the Taylor series in z may omit, relative to the tail, and how far it may move z, as |δ|
# times the largest |t| of the path: beyond that lie values where the distribution function changes
# its form.
SERIES_TOLERANCE = 1e-11
SERIES_REACH = 0.5
# Relative error of a tail that a linear step repairs: its square is beyond rounding.
NEGLIGIBLE_MISS = 1e-8
# Tolerance of the saddlepoint's normal score if it only starts the exact search.
START_SHARPNESS = 1e-3
# Largest number of bends of the path, needed in the rare case of very different scales.
MAX_BENDS = 6

EPS = 2.220446049250313e-16
SUBNORMAL = 5e-324


@kernel
def workspace(n):
    """Scratch memory for rows of at most n successors.

    It holds φ, c, 1 − cτ, κ and two accumulators; the order of the coordinates; nodes (t and
    weight); bends; the lanes of one block; what ``shares_block`` and ``biased_block`` need.
    """
    return (
        np.empty((6, n)),
        np.empty(n, np.int64),
        np.empty((2, MAX_STORED), np.complex128),
        np.empty((2, MAX_BENDS)),
        np.empty((8, LANES)),
        np.empty((2, n, LANES)),
        np.empty((4, MAX_BIAS + 3, LANES)),
    )


@kernel
def compact(phi, values, n, z, active_phi, c):
    """Keep coordinates with φ > 0 and w ≠ z, mirrored so that K'(0) ≤ 0, scaled so that max c = 1.

    Returns (m, mirrored, unit, Σφ kept, Σφ, min φ kept), where c = ±(w − z)/unit.
    """
    m = 0
    slope = 0.0
    total = 0.0
    everything = 0.0
    least = np.inf
    low = 0.0
    high = 0.0
    for i in range(n):
        everything += phi[i]
        c_i = values[i] - z
        if phi[i] > 0.0 and c_i != 0.0:
            active_phi[m] = phi[i]
            c[m] = c_i
            slope += phi[i] * c_i
            total += phi[i]
            least = min(least, phi[i])
            low = min(low, c_i)
            high = max(high, c_i)
            m += 1
    mirrored = slope > 0.0
    unit = -low if mirrored else high
    for i in range(m):
        c[i] = -c[i] / unit if mirrored else c[i] / unit
    return m, mirrored, unit, total, everything, least


@kernel
def one_minus(c, t, epsilon):
    """1 − ct for ε = 1 − t, computed from the smaller of t and ε, which is more accurate."""
    return 1.0 - c * t if t < epsilon else (1.0 - c) + c * epsilon


@kernel
def saddle(phi, c, n):
    """(t, 1 − t) with K'(t) = 0, given K'(0) ≤ 0 and max c = 1, to two digits of the width.

    This is Newton's method on (1 − t)(t + L) K'(t), L = 1/|min c|, which has no poles and is linear
    in t for two values.
    """
    least = 0.0
    top = 0.0
    total = 0.0
    for i in range(n):
        least = min(least, c[i])
        total += phi[i]
        if c[i] == 1.0:
            top += phi[i]
    distance = -1.0 / least
    # K'(t) > 0 at 1 − t = floor, so the saddle has a larger 1 − t
    floor = 0.5 * top / total
    at_floor = False
    low = 0.0
    high = 1.0
    t = 0.0
    epsilon = 1.0
    for _ in range(200):
        gradient = 0.0
        curvature = 0.0
        for i in range(n):
            k = c[i] / one_minus(c[i], t, epsilon)
            gradient += phi[i] * k
            curvature += phi[i] * k * k
        if gradient > 0.0:
            high = t
        else:
            low = t
        both = epsilon * (t + distance)
        step = -both * gradient / ((epsilon - t - distance) * gradient + both * curvature)
        if not (t + step > low and t + step < high):
            if high + distance > 4.0 * (low + distance):
                step = math.sqrt((low + distance) * (high + distance)) - distance - t
            else:
                step = 0.5 * (low + high) - t
        if t < 0.5:
            t += step
            epsilon = 1.0 - t
        else:
            epsilon -= step
            t = 1.0 - epsilon
        if epsilon < floor:
            epsilon = floor
            t = 1.0 - floor
            if at_floor:
                # the bracket is finer than double precision
                break
            at_floor = True
            continue
        if abs(step) * math.sqrt(curvature) <= 0.02 or abs(step) <= 1e-14 * min(t, epsilon):
            break
    return t, epsilon


@kernel
def biased_saddle(phi, c, n, total, bias, t, epsilon, sums):
    """(t, 1 − t) at the minimum of exp(K) h_r on [0, 1), r = ``bias``.

    Also returns the second derivative of its logarithm there. With θ = t d/dt, θ(exp(K) h_r) =
    exp(K) ((r + 1) h_{r+1} − (Φ + r) h_r). Bracketed Newton starts from the saddle of exp(K) and
    ends at two digits of the width.
    """
    power = sums[0, :, 0]
    h = sums[1, :, 0]
    low = 0.0
    least_epsilon = 0.0
    curvature = 0.0
    for _ in range(60):
        for j in range(1, bias + 3):
            power[j] = 0.0
        for i in range(n):
            b = 1.0 / one_minus(c[i], t, epsilon)
            g = phi[i]
            for j in range(1, bias + 3):
                g *= b
                power[j] += g
        h[0] = 1.0
        for k in range(1, bias + 3):
            h[k] = 0.0
            for j in range(1, k + 1):
                h[k] += power[j] * h[k - j]
            h[k] /= k
        ratio = (bias + 1) * h[bias + 1] / h[bias]
        slope = (ratio - (total + bias)) / t
        # θ² of the logarithm is t² times its second derivative plus t times its first
        curvature = (
            ratio * ((bias + 2) * h[bias + 2] / h[bias + 1] - 1.0 - ratio) / (t * t) - slope / t
        )
        step = -slope / curvature
        if abs(slope) <= 0.1 * math.sqrt(curvature):
            break
        if slope > 0.0:
            least_epsilon = epsilon
        else:
            low = t
        if not (t + step > low and epsilon - step > least_epsilon):
            if epsilon < 0.5 and slope < 0.0:
                step = epsilon - math.sqrt(max(least_epsilon, 1e-3 * epsilon) * epsilon)
            else:
                step = 0.5 * (low + 1.0 - least_epsilon) - t
        if t < 0.5:
            t += step
            epsilon = 1.0 - t
        else:
            epsilon -= step
            t = 1.0 - epsilon
    return t, epsilon, curvature


@kernel
def choose_line(phi, c, n, total, bias, e, kappa, bends, sums):
    """Place the path and fill e = 1 − cτ and κ = c/e.

    The path is t = τ + iy + Σ_m b_m (√(ρ_m² + y²) − ρ_m), y = s·sinh(x). It crosses the real axis
    at τ and has one bend, with ρ = s and the curvature of the path of steepest descent, b = s K₃/(3
    K₂) (third and second derivative). Returns (τ, s, first step, K(τ), pole), where pole is the
    distance of t = 0 from the x axis.
    """
    tau, epsilon = saddle(phi, c, n)
    curvature = 0.0
    left = 0.0
    for i in range(n):
        k = c[i] / one_minus(c[i], tau, epsilon)
        curvature += phi[i] * k * k
        left = min(left, c[i])
    if bias > 1:
        # scaling all of φ does not move the saddle
        curvature *= (total + bias) / total
        if tau > 0.7 / math.sqrt(curvature):
            tau, epsilon, curvature = biased_saddle(phi, c, n, total, bias, tau, epsilon, sums)
    width = 1.0 / math.sqrt(curvature)
    if tau < 0.7 * width:
        tau = min(0.7 * width, tau + 0.5 * epsilon)
        epsilon = 1.0 - tau
    log_peak = 0.0
    second = 0.0
    third = 0.0
    for i in range(n):
        x = c[i] * tau
        e[i] = one_minus(c[i], tau, epsilon)
        k = c[i] / e[i]
        kappa[i] = k
        second += phi[i] * k * k
        third += phi[i] * k * k * k
        log_peak -= phi[i] * (math.log1p(-x) if abs(x) < 0.5 else math.log(e[i]))
    scale = min(epsilon, tau - 1.0 / left)
    step = min(MAX_STEP, STEP_IN_WIDTHS * width / scale)
    slope = 2.0 * scale * third / (3.0 * second)
    bends[0, 0] = scale
    bends[1, 0] = slope
    # next to a branch point the pole is not simple enough to be taken out
    sine = (tau / scale - slope) / math.sqrt(1.0 + slope * slope)
    pole = math.asin(sine) + math.atan(slope) if tau * left > -1.0 and sine < 1.0 else 0.0
    if pole * step > 2.0 * math.pi * (width / scale) ** 2:
        # beyond the saddle of the rule's own error term there is nothing to take out
        pole = 0.0
    return tau, scale, step, log_peak, pole


@kernel
def bend_by_scale(phi, kappa, n, first, bends):
    """Let the path follow the decay of exp(K) at every scale; returns the number of bends.

    At |t − τ| = ρ, the coordinates with |κ|ρ < 1 act like exp(S(t − τ)), where S is the sum of
    their φκ. So the path should lean right where S < 0 and left where S > 0. S can change sign if
    the coordinates have very different scales.
    """
    scale = np.empty(n)
    slope_sum = 0.0
    for i in range(n):
        scale[i] = -abs(kappa[i])
        slope_sum += phi[i] * kappa[i]
    order = sorted_order(scale)
    count = 1
    bends[0, 0] = first
    current = bends[1, 0]
    for position in range(n):
        j = order[position]
        slope_sum -= phi[j] * kappa[j]
        if position + 1 == n:
            break
        near = 1.0 / abs(kappa[j])
        far = 1.0 / abs(kappa[order[position + 1]])
        # a lean is worthwhile if it spans more than a radian of oscillation
        if abs(slope_sum) * far < 1.0:
            continue
        wanted = 0.9 if slope_sum < 0.0 else -0.9
        if position == 0 or near <= 1.5 * first:
            bends[1, 0] = wanted
            current = wanted
        elif wanted != current and count < bends.shape[1]:
            bends[0, count] = near
            bends[1, count] = wanted - current
            current = wanted
            count += 1
    return count


@kernel
def sorted_order(keys):
    """Indices that sort ``keys``, by Shell's method; np.argsort takes a second to compile."""
    n = keys.shape[0]
    order = np.arange(n)
    gap = n // 2
    while gap > 0:
        for i in range(gap, n):
            moving = order[i]
            j = i
            while j >= gap and keys[order[j - gap]] > keys[moving]:
                order[j] = order[j - gap]
                j -= gap
            order[j] = moving
        gap = 1 if gap == 2 else gap * 5 // 11
    return order


@kernel
def without_pole(rule, residue, pole, step, shifted):
    """Take the known contribution of the pole out of a trapezoidal sum."""
    if pole == 0.0:
        return rule
    x = 2.0 * math.pi * pole / step
    if x > 700.0:
        return rule
    if shifted:
        return rule + residue / (math.exp(x) + 1.0)
    return rule - residue / math.expm1(x)


@kernel
def split_powers(phi, n, order):
    """Order coordinates by how (1 − κ(t − τ))^φ is best computed; returns ``head``.

    Before ``head``: integer φ up to MAX_POWER, which are multiplied out. The rest are logged.
    """
    head = 0
    last = n
    for i in range(n):
        if phi[i] <= MAX_POWER and phi[i] == math.floor(phi[i]):
            order[head] = i
            head += 1
        else:
            last -= 1
            order[last] = i
    return head


@kernel
def path_block(scale, bends, bend_count, first, step, lanes):
    """At the nodes first, first + step, …: t − τ into lanes[0:2], t'(x)/i into lanes[2:4]."""
    growth = math.exp(first)
    factor = math.exp(step)
    for lane in range(LANES):
        lanes[0, lane] = growth
        growth *= factor
    up = load(lanes, 0)
    y = (0.5 * scale) * (up - 1.0 / up)
    speed = (0.5 * scale) * (up + 1.0 / up)
    right = every(0.0)
    drift = every(0.0)
    for m in range(bend_count):
        rho = bends[0, m]
        root = square_root(rho * rho + y * y)
        right = right + (bends[1, m] * y) * (y / (root + rho))
        drift = drift + (bends[1, m] * y) / root
    store(lanes, 0, right)
    store(lanes, 1, y)
    store(lanes, 2, speed)
    store(lanes, 3, (0.0 - drift) * speed)


@kernel
def integrand_block(phi, kappa, n, order, head, lanes):
    """Π (1 − κ_j (t − τ))^{−φ_j} at the block's nodes into lanes[4:6].

    Powers before ``head`` are computed by repeated squaring, without logarithms.
    """
    u = load(lanes, 0)
    v = load(lanes, 1)
    square = u * u + v * v
    re = every(1.0)
    im = every(0.0)
    log_modulus = every(0.0)
    phase = every(0.0)
    logged = head < n
    for position in range(n):
        j = order[position]
        k = kappa[j]
        x = 1.0 - k * u
        y = -k * v
        power = 0
        if position < head:
            power = int(phi[j])
            if power > 3:
                # the last lane is the farthest out
                x_last = x[LANES - 1]
                y_last = y[LANES - 1]
                if power * math.log(x_last * x_last + y_last * y_last) > 200.0:
                    power = 0
        if power == 0:
            logged = True
            shift = k * (k * square - 2.0 * u)
            log_modulus = log_modulus - (0.5 * phi[j]) * log_of_one_plus(shift)
            # y has the same sign in all lanes
            phase = phase + math.copysign(phi[j], k) * angle(x, abs(y))
            continue
        while True:
            if power & 1:
                re, im = re * x - im * y, re * y + im * x
            power >>= 1
            if power == 0:
                break
            x, y = x * x - y * y, 2.0 * x * y
        if position & 1 == 1 and abs(re[LANES - 1]) + abs(im[LANES - 1]) > 1e60:
            logged = True
            size = abs(re) + abs(im)
            log_modulus = log_modulus - log_of_one_plus(size - 1.0)
            re = re / size
            im = im / size
    size = 1.0 / (re * re + im * im)
    if logged:
        size = size * exponential(log_modulus)
        cos, sin = cos_and_sin(phase)
        cos = cos * size
        sin = sin * size
        store(lanes, 4, cos * re + sin * im)
        store(lanes, 5, sin * re - cos * im)
    else:
        store(lanes, 4, re * size)
        store(lanes, 5, (0.0 - im) * size)


@kernel
def biased_block(phi, e, kappa, n, total, bias, lanes, sums):
    """h_r(t)/h_r(0), r = ``bias``, at the block's nodes into lanes[6:8].

    h_r is the coefficient of s^r in Π (1 − b_j s)^{−φ_j}, from the power sums p_k = Σ φ_j b_j^k: k
    h_k = Σ p_j h_{k−j}.
    """
    p_re, p_im, h_re, h_im = sums[0], sums[1], sums[2], sums[3]
    zero = every(0.0)
    for k in range(bias + 1):
        store(p_re, k, zero)
        store(p_im, k, zero)
    u = load(lanes, 0)
    v = load(lanes, 1)
    for i in range(n):
        x = 1.0 - kappa[i] * u
        y = kappa[i] * v
        g = 1.0 / (e[i] * (x * x + y * y))
        x = x * g
        y = y * g
        re = every(phi[i])
        im = zero
        for k in range(1, bias + 1):
            re, im = re * x - im * y, re * y + im * x
            store(p_re, k, load(p_re, k) + re)
            store(p_im, k, load(p_im, k) + im)
    store(h_re, 0, every(1.0))
    store(h_im, 0, zero)
    for k in range(1, bias + 1):
        re = zero
        im = zero
        # everything divided by h_k(0) = Φ (Φ + 1) ⋯ (Φ + k − 1)/k!
        weight = 1.0 / (total + (k - 1.0))
        for j in range(1, k + 1):
            a = load(p_re, j)
            b = load(p_im, j)
            c = load(h_re, k - j)
            d = load(h_im, k - j)
            re = re + weight * (a * c - b * d)
            im = im + weight * (a * d + b * c)
            if j < k:
                weight *= (k - j) / (total + (k - j - 1.0))
        store(h_re, k, re)
        store(h_im, k, im)
    store(lanes, 6, load(h_re, bias))
    store(lanes, 7, load(h_im, bias))


@kernel
def terms_block(tau, peak, bias, lanes):
    """Terms of the integrals at the block's nodes, but for the factor ``step``.

    With f = exp(K) h_r dt/i: Re f into lanes[2], Re f τ/t² into lanes[3], f/t into lanes[6:8].
    """
    a = load(lanes, 4)
    b = load(lanes, 5)
    c = load(lanes, 2) * peak
    d = load(lanes, 3) * peak
    a, b = a * c - b * d, a * d + b * c
    if bias > 0:
        c = load(lanes, 6)
        d = load(lanes, 7)
        a, b = a * c - b * d, a * d + b * c
    store(lanes, 2, a)
    x = tau + load(lanes, 0)
    y = load(lanes, 1)
    square = x * x + y * y
    a, b = (a * x + b * y) / square, (b * x - a * y) / square
    store(lanes, 6, a)
    store(lanes, 7, b)
    if bias > 0:
        store(lanes, 3, (a * x + b * y) * tau / square)


@kernel
def shares_block(phi, e, kappa, n, lanes, shares):
    """b_j (a + b_j) at the block's nodes, with b_j = 1/(1 − c_j t) and a = Σ φ_j b_j.

    Also Σ φ_j (|Re| + |Im|) of them into lanes[6].
    """
    b_re, b_im = shares[0], shares[1]
    u = load(lanes, 0)
    v = load(lanes, 1)
    a_re = every(0.0)
    a_im = every(0.0)
    for j in range(n):
        x = 1.0 - kappa[j] * u
        y = kappa[j] * v
        g = 1.0 / (e[j] * (x * x + y * y))
        store(b_re, j, g * x)
        store(b_im, j, g * y)
        a_re = a_re + (phi[j] * g) * x
        a_im = a_im + (phi[j] * g) * y
    modulus = every(0.0)
    for j in range(n):
        re = load(b_re, j)
        im = load(b_im, j)
        x = a_re + re
        y = a_im + im
        x, y = re * x - im * y, re * y + im * x
        store(b_re, j, x)
        store(b_im, j, y)
        modulus = modulus + phi[j] * (abs(x) + abs(y))
    store(lanes, 6, modulus)


@apart
def tail_on_line(m, head, line, bend_count, bias, total, halvings, scratch):
    """The tail, the integral of exp(K) h_r/h_r(0) with r = ``bias``, and an error estimate.

    Returns (tail, integral, relative error, rounding, step, count). The error is relative to the
    tail. It is 1 plus the last difference of the two rules if they could not be made to agree on
    tail and density, and 2 if the path is wrong altogether. ``rounding`` is what cancelling terms
    may add to the relative error. nodes[0, :count] holds t, and nodes[1, :count] holds exp(K)
    dt/(πi t), biased, without the factor ``step``; count is 0 if they did not fit.
    """
    work, order, nodes, bends, lanes, _, sums = scratch
    phi = work[0]
    e = work[2]
    kappa = work[3]
    tau, scale, step, log_peak, pole = line
    peak = math.exp(log_peak) / math.pi
    tail = 0.0
    integral = 0.0
    moment = 0.0
    modulus = 0.0
    error = 1.0
    count = 0
    room = nodes.shape[1]
    plain_rounding = POWER_ROUNDING * (20.0 + math.sqrt(total))
    for stage in range(halvings):
        # stage 0: nodes at k·step; later stages add the midpoints
        new_tail = 0.0
        new_integral = 0.0
        new_moment = 0.0
        new_modulus = 0.0
        offset = 0.0 if stage == 0 else 0.5
        last = 0.0j
        turned = False
        lane = LANES
        for k in range(MAX_NODES):
            if lane == LANES:
                path_block(scale, bends, bend_count, (k + offset) * step, step, lanes)
                integrand_block(phi, kappa, m, order, head, lanes)
                if bias > 0:
                    biased_block(phi, e, kappa, m, total, bias, lanes, sums)
                terms_block(tau, peak, bias, lanes)
                if k == 0 and stage == 0:
                    for row in range(2, 8):
                        lanes[row, 0] *= 0.5
                lane = 0
            ratio = complex(lanes[6, lane], lanes[7, lane])
            growth = abs(lanes[4, lane]) + abs(lanes[5, lane])
            new_tail += ratio.real
            new_integral += lanes[2, lane]
            if bias > 0:
                # The density's integrand decays later than the tail's; the check of the rule must
                # decay with the tail's.
                new_moment += lanes[3, lane]
            if count < room:
                nodes[0, count] = complex(tau + lanes[0, lane], lanes[1, lane])
                nodes[1, count] = ratio
            count += 1
            lane += 1
            size = abs(ratio.real) + abs(ratio.imag)
            new_modulus += size
            if size <= TAIL_CUT * abs(new_tail):
                break
            if bias <= 1:
                # with more bias, Φ is so small that nothing oscillates
                if (
                    size > TURN_MATTERS * abs(new_tail)
                    and ratio.real * last.real + ratio.imag * last.imag < 0.0
                ):
                    turned = True
                last = ratio
            if not growth < MAX_GROWTH:
                return tail, integral, 2.0, 0.0, step, 0
        new_tail *= step
        new_integral *= step
        new_moment *= step
        new_modulus *= step
        if stage > 0 and turned and halvings < MAX_HALVINGS:
            return tail, integral, 1.0, 0.0, step, 0
        if stage == 0:
            tail = without_pole(new_tail, 1.0, pole, step, False)
            integral = new_integral
            moment = new_moment
            modulus = new_modulus
            continue
        new_tail = without_pole(new_tail, 1.0, pole, step, True)
        apart = abs(tail - new_tail) / (abs(tail) + 1e-300)
        difference = apart
        if bias == 0:
            difference = max(
                apart, abs(integral - new_integral) / (abs(integral) + abs(new_integral) + 1e-300)
            )
        elif pole == 0.0:
            difference = max(
                apart, abs(moment - new_moment) / (abs(moment) + abs(new_moment) + 1e-300)
            )
        tail = 0.5 * (tail + new_tail)
        integral = 0.5 * (integral + new_integral)
        moment = 0.5 * (moment + new_moment)
        modulus = 0.5 * (modulus + new_modulus)
        step *= 0.5
        if difference <= COARSE_TOLERANCE and not turned:
            error = difference * math.sqrt(difference) + plain_rounding
            break
        # next to a value, the tail may be resolved although the density is out of reach
        error = 1.0 + (difference if turned else apart)
    if count > room or bias == 1:
        count = 0
    rounding = max(ROUNDING * EPS * modulus / (abs(tail) + SUBNORMAL) - plain_rounding, 0.0)
    return tail, integral, error, rounding, step, count


@apart
def tail_at(phi, values, n, z, scratch):
    """The tail at z, min w < z < max w, and its density; see ``tail_on_line``.

    Returns (tail, density, error, rounding, mirrored, unit, Σφ + bias, step, count).
    """
    work, order, _, bends, _, _, sums = scratch
    m, mirrored, unit, total, everything, least = compact(phi, values, n, z, work[0], work[1])
    bias = 0
    if total < FAST_DECAY:
        bias = math.ceil(BIASED_DECAY - total) if least >= LEAST_BIASED else 1
    head = split_powers(work[0], m, order)
    line = choose_line(work[0], work[1], m, total, bias, work[2], work[3], bends, sums)
    bend_count = 1
    halvings = FIRST_HALVINGS
    while True:
        tail, integral, error, rounding, step, count = tail_on_line(
            m, head, line, bend_count, bias, total, halvings, scratch
        )
        if error < 1.0 or halvings == MAX_HALVINGS:
            break
        # rare: the scales are so different that one bend is not enough
        tau, scale, first, log_peak, _ = line
        bend_count = bend_by_scale(work[0], work[3], m, scale, bends)
        line = (tau, min(scale, tau), first, log_peak, 0.0)
        halvings = MAX_HALVINGS
    if error >= 1.0:
        error = np.inf if error == 2.0 else error - 1.0
    density = integral * (total + bias - 1.0) / unit
    if everything != total:
        # some coordinate has w = z, so the nodes do not describe a neighbourhood of z
        count = 0
        density = density * (everything - 1.0) / (total - 1.0) if total > 1.0 else np.inf
    return tail, density, error, rounding, mirrored, unit, everything + bias, step, count


@kernel
def value_range(phi, values, n):
    low = np.inf
    high = -np.inf
    for i in range(n):
        if phi[i] > 0.0:
            low = min(low, values[i])
            high = max(high, values[i])
    return low, high


@apart
def cdf_row(phi, values, n, z, scratch):
    """(F(z), 1 − F(z), density, estimate of their absolute error)."""
    low, high = value_range(phi, values, n)
    if z >= high:
        return 1.0, 0.0, 0.0, 0.0
    if z <= low:
        return 0.0, 1.0, 0.0, 0.0
    closest = CLOSEST * (high - low)
    if z - low < closest:
        return beside_end(phi, values, n, low, z - low, low + 2.0 * closest, scratch)
    if high - z < closest:
        return beside_end(phi, values, n, high, high - z, high - 2.0 * closest, scratch)
    for i in range(n):
        # closer than this, the square of a difference in units of the spread would underflow
        if phi[i] > 0.0 and abs(values[i] - z) < closest:
            z = values[i]
    return cdf_between(phi, values, n, z, scratch)


@kernel
def beside_end(phi, values, n, end, distance, anchor, scratch):
    """``cdf_row`` at a tiny distance from the lowest or highest value.

    It is extrapolated from ``anchor``, a little farther away: there the tail is proportional to
    distance^ψ, where ψ is the sum of all other φ, up to a fraction anchor/(distance of the next
    value).
    """
    away = abs(anchor - end)
    power = 0.0
    nearest = np.inf
    for i in range(n):
        if phi[i] > 0.0 and values[i] != end:
            power += phi[i]
            nearest = min(nearest, abs(values[i] - end))
    below, above, density, error = cdf_between(phi, values, n, anchor, scratch)
    lower = anchor > end
    tail = below if lower else above
    part = math.pow(distance / away, power)
    if nearest < 1e12 * away:
        # Another value is as close: the tail is at most that at the anchor, nothing else is known.
        error += tail
    else:
        error = (error + 1e-12 * tail) * part
    tail *= part
    density *= part * away / distance
    if lower:
        return tail, 1.0 - tail, density, error
    return 1.0 - tail, tail, density, error


@kernel
def cdf_between(phi, values, n, z, scratch):
    """``cdf_row`` for z between the lowest and highest value, and not too close to them."""
    tail, density, error, _, mirrored, _, _, _, _ = tail_at(phi, values, n, z, scratch)
    raw = tail
    tail = min(max(tail, 0.0), 1.0)
    # an infinite relative error stays infinite, whatever the tail
    error = error * max(abs(raw), SUBNORMAL) + abs(raw - tail)
    if mirrored:
        return tail, 1.0 - tail, density, error
    return 1.0 - tail, tail, density, error


@kernel
def cdf_rows(phi, values, z, below, above, error):
    """Distribution functions of many rows, and their error estimates; ``phi`` is (rows, n)."""
    rows, n = phi.shape
    scratch = workspace(n)
    for row in range(rows):
        below[row], above[row], _, error[row] = cdf_row(phi[row], values[row], n, z[row], scratch)


@kernel
def modified_score(phi, v, n, total, u, epsilon, multiply, e):
    """(r*, dr*/du, z, dz/du, d²z/du²) of the saddlepoint approximation at tilt u.

    The values have mean 0 and maximum 1. With x = (v − z)/(1 − vu) and S_k = Σ φ x^k: û² = u²S₂,
    dz/du = S₂/Φ and r dr/du = uS₂/(1 − zu). With ``multiply``, the factors with φ = 1 share a
    logarithm, which is accurate enough away from the mean.
    """
    log_sum = 0.0
    first = 0.0
    norm = 0.0
    product = 1.0
    for i in range(n):
        e_i = one_minus(v[i], u, epsilon)
        e[i] = e_i
        if multiply and phi[i] == 1.0:
            product *= e_i
            if not 1e-100 < product < 1e100:
                log_sum += math.log(product)
                product = 1.0
        else:
            x = v[i] * u
            log_sum += phi[i] * (math.log1p(-x) if abs(x) < 0.5 else math.log(e_i))
        g = phi[i] / e_i
        norm += g
        first += g * v[i]
    if multiply:
        log_sum += math.log(product)
    z = first / norm
    s2 = 0.0
    s3 = 0.0
    s4 = 0.0
    for i in range(n):
        x = (v[i] - z) / e[i]
        g = phi[i] * x * x
        s2 += g
        s3 += g * x
        s4 += g * x * x
    beyond = 1.0 - z * u
    z_slope = s2 / total
    s2_slope = 2.0 * (s3 + (z * (s2 + u * s3) - z_slope * u * s2) / beyond)
    u_hat = u * math.sqrt(s2)
    rho3 = 2.0 * s3 / (s2 * math.sqrt(s2))
    if u_hat < 2e-3:
        rho4 = 6.0 * s4 / (s2 * s2)
        score = (
            u_hat * (1.0 - rho3 * u_hat / 6.0)
            + rho3 / 6.0
            + u_hat * (rho3 * rho3 / 18.0 - rho4 / 24.0)
        )
        return score, math.sqrt(s2), z, z_slope, s2_slope / total
    k = total * math.log1p(-z * u) - log_sum
    r = math.sqrt(max(-2.0 * k, 1e-300))
    log_ratio = math.log(u_hat / r)
    slope = u * s2 / (beyond * r)
    slope += (1.0 / u + 0.5 * s2_slope / s2 - (1.0 + log_ratio) * slope / r) / r
    return r + log_ratio / r, slope, z, z_slope, s2_slope / total


@apart
def saddlepoint_row(phi, values, n, low, high, score, tolerance, start, scratch):
    """Quantile with normal score ``score``, by the saddlepoint approximation.

    ``low`` = min w < max w = ``high``. ``start`` is (u, t). On entry u is the tilt of a similar row
    to start from, 0 if none is known; on return they are the tilt of this row and its saddlepoint
    in units of 1/(high − low).
    """
    v = scratch[0][1]
    e = scratch[0][2]
    total = 0.0
    for i in range(n):
        total += phi[i]
    # all in units of the spread, from the middle, so that no square can overflow or underflow
    middle = 0.5 * (low + high)
    spread = high - low
    inverse_spread = 1.0 / spread
    inverse_total = 1.0 / total
    if not (inverse_spread < np.inf and inverse_total < np.inf):
        start[0] = start[1] = 0.0
        return middle
    mean = 0.0
    for i in range(n):
        v[i] = (values[i] - middle) * inverse_spread if phi[i] > 0.0 else 0.0
        mean += phi[i] * inverse_total * v[i]
    variance = 0.0
    skew = 0.0
    for i in range(n):
        v[i] = v[i] - mean if phi[i] > 0.0 else 0.0
        share = phi[i] * inverse_total * v[i] * v[i]
        variance += share
        skew += share * v[i]
    central = skew / (3.0 * variance * math.sqrt(variance * total))
    sign = 1.0 if score >= central else -1.0
    unit = 0.5 - mean if sign > 0.0 else mean + 0.5
    if not (unit > 0.0 and variance > 0.0):
        start[0] = start[1] = 0.0
        return middle + spread * mean
    target = sign * score
    least = 0.0
    for i in range(n):
        v[i] *= sign / unit
        least = min(least, v[i])
    distance = -1.0 / least
    steepness = math.sqrt(variance * total) / unit
    if sign * start[0] > 0.0:
        u = sign * start[0]
        epsilon = 1.0 - u
    else:
        gap = max((target - sign * central) / steepness, 0.0)
        u = gap / (1.0 + gap)
        epsilon = 1.0 / (1.0 + gap)
    low_u = 0.0
    least_epsilon = 0.0
    z = 0.0
    for _ in range(100):
        multiply = u * steepness > 0.3
        value, slope, z, z_slope, z_bend = modified_score(phi, v, n, total, u, epsilon, multiply, e)
        miss = target - value
        if abs(miss) <= tolerance:
            break
        step = miss / slope
        if slope > 0.0 and abs(step) < 0.1 * epsilon and miss * step <= tolerance * epsilon:
            # Newton's next step is the last one, and z can make it without another evaluation
            z += step * (z_slope + 0.5 * step * z_bend)
            u += step
            epsilon -= step
            break
        if miss > 0.0:
            low_u = u
        else:
            least_epsilon = epsilon
        if not slope > 0.0:
            step = np.inf if miss > 0.0 else -np.inf
        if epsilon < 0.5:
            # the score grows like √log(1/ε): Newton in log ε
            candidate = epsilon * math.exp(max(min(-step / epsilon, 3.0), -30.0))
            if not (candidate > least_epsilon and 1.0 - candidate > low_u):
                candidate = math.sqrt(max(least_epsilon, 1e-300) * (1.0 - low_u))
            moved = abs(candidate - epsilon)
            epsilon = candidate
            u = 1.0 - epsilon
        else:
            candidate = u + step
            if not (candidate > low_u and 1.0 - candidate > least_epsilon):
                top = 1.0 - least_epsilon
                if top + distance > 4.0 * (low_u + distance):
                    candidate = math.sqrt((low_u + distance) * (top + distance)) - distance
                else:
                    candidate = 0.5 * (low_u + top)
            moved = abs(candidate - u)
            u = candidate
            epsilon = 1.0 - u
        if moved <= 4.0 * EPS * min(u, epsilon) or epsilon < 1e-290:
            break
    result = middle + spread * (mean + sign * unit * z)
    known = epsilon > 1e-3 and low <= result <= high
    # closer to 1, a tilt is determined by its ε alone, which is not kept
    start[0] = sign * u if known else 0.0
    start[1] = sign * u / ((1.0 - z * u) * unit) if known else 0.0
    if low <= result <= high:
        return result
    # the concentrations are so small that the approximation is meaningless
    return high if result > high else (low if result < low else middle + spread * mean)


@apart
def saddlepoint_gradient(phi, values, n, low, high, z, start, scratch, out):
    """Gradient of the saddlepoint quantile z in the values, a vector summing to one.

    r* = r + log(û/r)/r with r² = −2K, û² = t²K₂, all at the saddle of z; the gradient is −∂r*/∂w
    divided by its sum. Near the mean the formula cancels, and for small φ it can be negative; then
    its leading term, the tilted row φ_i/(1 − c_i t), is used. ``start`` is what the evaluation of
    the row left there.
    """
    work = scratch[0]
    m, mirrored, unit, _, _, _ = compact(phi, values, n, z, work[0], work[1])
    f = work[0]
    c = work[1]
    t = (-start[1] if mirrored else start[1]) * unit / (high - low)
    epsilon = 1.0 - t
    steps = 1
    if not 0.0 < t < 1.0:
        t, epsilon = saddle(f, c, m)
        steps = 2
    for _ in range(steps):
        # Newton, since ``saddle`` stops at two digits and z need not be the saddlepoint quantile
        first = 0.0
        k2 = 0.0
        for j in range(m):
            x = c[j] / one_minus(c[j], t, epsilon)
            first += f[j] * x
            k2 += f[j] * x * x
        step = -first / k2
        if 0.0 < t + step < 1.0:
            t += step
            epsilon -= step
    k = 0.0
    k2 = 0.0
    k3 = 0.0
    product = 1.0
    inverse = work[2]
    for j in range(m):
        e = one_minus(c[j], t, epsilon)
        inverse[j] = 1.0 / e
        x = c[j] * inverse[j]
        if f[j] == 1.0 and 1e-100 < product < 1e100:
            product *= e
        else:
            k -= f[j] * math.log(e)
        k2 += f[j] * x * x
        k3 += 2.0 * f[j] * x * x * x
    k -= math.log(product)
    u_hat = t * math.sqrt(k2)
    r = math.sqrt(max(-2.0 * k, 0.0))
    # −∂r*/∂w_i = φ_i b (flat + b (lean − curl c b)) with b = 1/(1 − c_i t)
    flat = 1.0
    lean = 0.0
    curl = 0.0
    if u_hat > 0.05 and r > 0.0:
        flat = t * (1.0 - (1.0 + math.log(u_hat / r)) / (r * r)) / r
        curl = 1.0 / (k2 * r)
        lean = curl * (1.0 / t + 0.5 * k3 / k2)
    lowest = 0.0
    summed = 0.0
    j = 0
    for i in range(n):
        out[i] = 0.0
        if phi[i] > 0.0 and values[i] != z:
            out[i] = f[j] * inverse[j] * (flat + inverse[j] * (lean - curl * c[j] * inverse[j]))
            j += 1
        elif phi[i] > 0.0:
            out[i] = phi[i] * (flat + lean)
        lowest = min(lowest, out[i])
        summed += out[i]
    if lowest < 0.0 or not summed > 0.0:
        tilted_row(phi, values, n, z, scratch, out)
        return
    for i in range(n):
        out[i] /= summed


@apart
def tilted_row(phi, values, n, z, scratch, out):
    """The row φ_i/(1 − c_i t), normalised, at the saddle of z (min w < z < max w).

    It is positive and has mean z. If concentrations differ so much that the saddle cannot be
    resolved, the mean row is taken instead, provided it comes closer to z.
    """
    work = scratch[0]
    m, mirrored, unit, _, total, _ = compact(phi, values, n, z, work[0], work[1])
    t, epsilon = saddle(work[0], work[1], m)
    summed = 0.0
    drift = 0.0
    mean_drift = 0.0
    for i in range(n):
        out[i] = 0.0
        if phi[i] > 0.0:
            c = (z - values[i]) / unit if mirrored else (values[i] - z) / unit
            out[i] = phi[i] / one_minus(c, t, epsilon)
            summed += out[i]
            drift += out[i] * c
            mean_drift += phi[i] / total * c
    if not abs(drift) <= abs(mean_drift) * summed or not summed < np.inf:
        mean_into(phi, n, out)
        return
    for i in range(n):
        out[i] /= summed


@kernel
def series_root(nodes, count, step, tail, total, wanted, scale):
    """The δ, in units of c, at which the tail is ``wanted``, by a Taylor series.

    The series is Σ_k binom(Φ − 1, k) (−δ)^k ∫ exp(K) t^{k−1} dt/(πi). It describes one analytic
    piece of the tail, which ends at the nearest value. A step over a value, or the end of the path
    at t = T, can contribute about as much as the integrand at |t| = 1/|δ|; with |δ| T ≤
    SERIES_REACH, that has decayed long before. The remainder of the binomial series after k = 6 is
    then at most |binom(Φ − 1, 7)| |δt|^7 times |1 − sδt|^{Φ − 8}, 0 ≤ s ≤ 1.

    Returns (δ, d tail/dδ there, bound on what the series omits relative to ``scale``); the bound is
    infinite beyond its reach.
    """
    s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    farthest = 0.0
    for k in range(count):
        t = nodes[0, k]
        power = nodes[1, k] * t
        s1 += power.real
        power *= t
        s2 += power.real
        power *= t
        s3 += power.real
        power *= t
        s4 += power.real
        power *= t
        s5 += power.real
        power *= t
        s6 += power.real
        power *= t
        s7 += abs(power.real) + abs(power.imag)
        farthest = max(farthest, abs(t.real) + abs(t.imag))
    weight = step * (1.0 - total)
    s1 *= weight
    weight *= (2.0 - total) / 2.0
    s2 *= weight
    weight *= (3.0 - total) / 3.0
    s3 *= weight
    weight *= (4.0 - total) / 4.0
    s4 *= weight
    weight *= (5.0 - total) / 5.0
    s5 *= weight
    weight *= (6.0 - total) / 6.0
    s6 *= weight
    weight *= (7.0 - total) / 7.0
    s7 *= abs(weight)
    delta = 0.0
    for _ in range(10):
        miss = (
            tail
            - wanted
            + delta * (s1 + delta * (s2 + delta * (s3 + delta * (s4 + delta * (s5 + delta * s6)))))
        )
        slope = s1 + delta * (
            2.0 * s2
            + delta * (3.0 * s3 + delta * (4.0 * s4 + delta * (5.0 * s5 + delta * 6.0 * s6)))
        )
        move = -miss / slope
        delta += move
        if abs(move) <= 1e-14 * abs(delta):
            break
    reach = abs(delta) * farthest
    if not (abs(move) <= 1e-12 * abs(delta) and reach <= SERIES_REACH):
        return delta, slope, np.inf
    # (1 + |δt|)^{Φ − 8} or, for Φ < 8, (1 − |δt|)^{Φ − 8}, at the end of the path
    growth = math.exp(abs(total - 8.0) * reach * (1.0 if total > 8.0 else 2.0))
    return delta, slope, growth * s7 * abs(delta) ** 7 / scale


@kernel
def between(phi, values, n, bottom, top, z, move, resolution, creeping, share):
    """Where to look next in the bracket if Newton's step from z cannot be used.

    For small Φ, the distribution function jumps at the values and varies with the logarithm of the
    distance from them. So try the values inside the bracket first: the one below which a ``share``
    of all φ lies, later the middle one. Then, between neighbouring values, search in x = log((z −
    left)/(right − z)), by Newton's step there unless it is ``creeping``.
    """
    inside = 0
    below = 0.0
    total = 0.0
    left = -np.inf
    right = np.inf
    for i in range(n):
        if phi[i] > 0.0:
            total += phi[i]
            if values[i] <= bottom:
                left = max(left, values[i])
                below += phi[i]
            elif values[i] >= top:
                right = min(right, values[i])
            else:
                inside += 1
    if inside > 0:
        found = np.empty(inside)
        weight = np.empty(inside)
        inside = 0
        for i in range(n):
            if phi[i] > 0.0 and bottom < values[i] < top:
                found[inside] = values[i]
                weight[inside] = phi[i]
                inside += 1
        order = sorted_order(found)
        if bottom == left and top == right:
            for position in order:
                below += weight[position]
                if below >= share * total:
                    return found[position]
        return found[order[inside // 2]]
    length = right - left
    least = math.log(max(bottom - left, resolution) / length)
    most = -math.log(max(right - top, resolution) / length)
    if bottom > left:
        least -= math.log((right - bottom) / length)
    if top < right:
        most += math.log((top - left) / length)
    x = 0.5 * (least + most)
    if not creeping and left < z < right:
        wish = math.log((z - left) / (right - z)) + move / ((z - left) * ((right - z) / length))
        if least < wish < most:
            x = wish
    if x < 0.0:
        return left + length / (1.0 + math.exp(-x))
    return right - length / (1.0 + math.exp(x))


@kernel
def beta_series(a, b, x):
    """Σ_k (1 − b)_k x^k/(k! (a + k)): Pr(B ≤ x) for B ~ Beta(a, b) is this times x^a/B(a, b)."""
    term = 1.0
    summed = 1.0 / a
    for k in range(1, 200):
        term *= (k - b) * x / k
        summed += term / (a + k)
        if abs(term) <= 0.25 * EPS:
            break
    return summed


@kernel
def beta_quantile(a, b, level, x):
    """(x with Pr(B ≤ x) = level, its error) for B ~ Beta(a, b), a and b from 1 to FAST_DECAY.

    The level is at most 1/2; the method is Newton's, in log x.
    """
    log_norm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    error = 1.0
    for _ in range(50):
        y = 1.0 - x
        density = math.exp(log_norm + (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x))
        if x <= 0.5:
            tail = density * x * math.exp((1.0 - b) * math.log1p(-x)) * beta_series(a, b, x)
        else:
            tail = 1.0 - density * y * math.exp((1.0 - a) * math.log(x)) * beta_series(b, a, y)
        miss = math.log(tail / level)
        error = (abs(miss) + 1e-13) * tail / density
        if abs(miss) <= 1e-14:
            break
        move = -miss * tail / (x * density)
        following = x * math.exp(max(move, -5.0))
        x = following if following < 1.0 else 0.5 * (1.0 + x)
        if abs(move) <= EPS:
            break
    return x, error


@kernel
def beta_row(phi, values, n, low, high, alpha, z):
    """The quantile of a row with two values and Φ < FAST_DECAY, searched from z.

    Returns (z, error); the error is negative if the row is not of this kind.
    """
    above = 0.0
    total = 0.0
    for i in range(n):
        if phi[i] > 0.0:
            total += phi[i]
            if values[i] == high:
                above += phi[i]
            elif values[i] != low:
                return z, -1.0
    below = total - above
    if not (total < FAST_DECAY and above >= 1.0 and below >= 1.0):
        return z, -1.0
    spread = high - low
    x = min(max((z - low) / spread, 1e-10), 1.0 - 1e-10)
    if alpha <= 0.5:
        x, error = beta_quantile(above, below, alpha, x)
        return low + x * spread, error * spread
    x, error = beta_quantile(below, above, 1.0 - alpha, 1.0 - x)
    return high - x * spread, error * spread


@kernel
def has_light(phi, n):
    """Whether a concentration is below LEAST_BIASED."""
    found = False
    for i in range(n):
        found = found or 0.0 < phi[i] < LEAST_BIASED
    return found


@kernel
def none_below_one(phi, n):
    """Whether all concentrations are at least 1."""
    found = True
    for i in range(n):
        found = found and phi[i] >= 1.0
    return found


@kernel
def confirmed_error(phi, values, n, low, high, target, lower, z, error, scratch):
    """``error``, enlarged until the distribution function at z ± error encloses ``target``.

    The errors of the distribution function itself are included. Next to concentrations below
    LEAST_BIASED, the density may be far too large although the tail is right, because its integral
    ends too soon. A probability counts as below or above the target only if it is so by more than
    LOST_TAIL.
    """
    for _ in range(20):
        enclosed = True
        for side in (-1.0, 1.0):
            end = z + side * error
            if not low < end < high:
                continue
            tail, _, doubt, rounding, mirrored, _, _, _, _ = tail_at(phi, values, n, end, scratch)
            probability = tail if mirrored == lower else 1.0 - tail
            doubt += rounding
            if mirrored != lower:
                doubt *= tail / max(probability, EPS)
            doubt = doubt * abs(probability) + LOST_TAIL
            if (side > 0.0) == lower:
                enclosed = enclosed and probability - doubt > target
            else:
                enclosed = enclosed and probability + doubt < target
        if enclosed:
            return error
        error *= 8.0
    return high - low


@apart
def quantile_row(phi, values, n, low, high, alpha, score, start, scratch):
    """(α-quantile, bound on its numerical error), starting from ``saddlepoint_row``."""
    size = max(abs(low), abs(high))
    resolution = max(size * EPS, SUBNORMAL)
    if high - low <= resolution:
        return low, resolution
    z = saddlepoint_row(phi, values, n, low, high, score, START_SHARPNESS, start, scratch)
    z, z_error = beta_row(phi, values, n, low, high, alpha, z)
    if z_error >= 0.0:
        return z, z_error + 4.0 * resolution
    lower = alpha <= 0.5
    target = alpha if lower else 1.0 - alpha
    bottom = low
    top = high
    if not (bottom < z < top):
        z = 0.5 * (bottom + top)
    z_error = top - bottom
    light = has_light(phi, n)
    doubtful = False
    previous = np.inf
    for _ in range(200):
        tail, density, error, rounding, mirrored, unit, total, step, count = tail_at(
            phi, values, n, z, scratch
        )
        same = mirrored == lower
        probability = tail if same else 1.0 - tail
        if not same:
            error *= tail / max(probability, EPS)
            rounding *= tail / max(probability, EPS)
        miss = math.log(probability / target) if probability > 0.0 else -np.inf
        too_high = (miss > 0.0) == lower
        if too_high:
            top = z
        else:
            bottom = z
        resolved = error <= MAX_ERROR
        # an evaluation that cannot tell which side of the target it is on makes the bracket
        # worthless
        doubtful = doubtful or not (resolved or error < 0.1 * abs(miss))
        z_error = top - bottom
        if density > 0.0:
            z_error = (error + rounding + abs(miss)) * abs(probability) / density + 4.0 * resolution
        if abs(miss) <= 1e-12:
            doubtful = not resolved
            break
        move = -miss * probability / density if lower else miss * probability / density
        if count > 0 and resolved and abs(miss) < 0.2:
            wanted = target if same else 1.0 - target
            inside, gradient, cut = series_root(
                scratch[2], count, step, tail, total, wanted, target
            )
            if gradient < 0.0:
                move = -inside * unit if mirrored else inside * unit
                if cut <= SERIES_TOLERANCE and bottom <= z + move <= top:
                    z += move
                    z_error = (
                        error + rounding + cut
                    ) * target * unit / -gradient + 4.0 * resolution
                    if not light or target > 1e6 * LOST_TAIL:
                        return z, z_error
                    doubtful = False
                    break
        candidate = z + move
        # a distribution function that hardly grows and then jumps makes Newton creep
        creeping = not abs(miss) < 0.5 * previous
        previous = abs(miss)
        if creeping or not (bottom < candidate < top):
            candidate = between(phi, values, n, bottom, top, z, move, resolution, creeping, alpha)
            # a step lost to rounding is confirmed from the other side
            candidate = min(max(candidate, bottom + resolution), top - resolution)
            if creeping:
                previous = np.inf
        z = candidate
        if top - bottom <= 2.0 * resolution or not (bottom < z < top):
            z = 0.5 * (bottom + top)
            z_error = top - bottom + resolution
            if rounding > 0.0:
                z_error += rounding * abs(probability) / density if density > 0.0 else high - low
            break
    if doubtful:
        return z, high - low
    if light:
        z_error = confirmed_error(phi, values, n, low, high, target, lower, z, z_error, scratch)
    return z, min(z_error, high - low)


@apart
def shares_on_line(m, head, line, bend_count, total, of_tail, halvings, scratch):
    """Fill work[4, j] with ∫ exp(K) b_j (a + b_j), or, if ``of_tail``, with the tail of φ + e_j.

    Returns the error of Σ φ_j work[4, j], which is infinite if not resolved.
    """
    work, order, _, bends, lanes, shares, _ = scratch
    phi = work[0]
    e = work[2]
    kappa = work[3]
    old = work[4]
    new = work[5]
    tau, scale, step, log_peak, pole = line
    peak = (math.exp(log_peak) if of_tail else 1.0) / math.pi
    tolerance = COARSE_TOLERANCE
    if not of_tail:
        # for a gradient, half the digits of a value are enough
        step *= 1.3
        tolerance = ROW_TOLERANCE
    moduli = 0.0
    for stage in range(halvings):
        offset = 0.0 if stage == 0 else 0.5
        for j in range(m):
            new[j] = 0.0
        summed = 0.0
        new_moduli = 0.0
        last = 0.0j
        turned = False
        lane = LANES
        for k in range(MAX_NODES):
            if lane == LANES:
                path_block(scale, bends, bend_count, (k + offset) * step, step, lanes)
                integrand_block(phi, kappa, m, order, head, lanes)
                shares_block(phi, e, kappa, m, lanes, shares)
                lane = 0
            value = complex(lanes[4, lane], lanes[5, lane]) * complex(
                lanes[2, lane] * peak, lanes[3, lane] * peak
            )
            growth = abs(lanes[4, lane]) + abs(lanes[5, lane])
            if k == 0 and stage == 0:
                value *= 0.5
            if of_tail:
                value /= complex(tau + lanes[0, lane], lanes[1, lane]) * (total + 1.0)
            for j in range(m):
                term = value.real * shares[0, j, lane] - value.imag * shares[1, j, lane]
                new[j] += term
                summed += phi[j] * term
            modulus = lanes[6, lane] * (abs(value.real) + abs(value.imag))
            new_moduli += modulus
            lane += 1
            if modulus <= TAIL_CUT * abs(summed):
                break
            if (
                modulus > TURN_MATTERS * abs(summed)
                and value.real * last.real + value.imag * last.imag < 0.0
            ):
                turned = True
            last = value
            if not growth < MAX_GROWTH:
                return np.inf
        if stage > 0 and turned and halvings < MAX_HALVINGS:
            return np.inf
        new_moduli *= step
        for j in range(m):
            new[j] *= step
            if of_tail:
                new[j] = without_pole(new[j], 1.0, pole, step, stage > 0)
        if stage == 0:
            for j in range(m):
                old[j] = new[j]
            moduli = new_moduli
            continue
        difference = 0.0
        size = 0.0
        for j in range(m):
            difference += phi[j] * abs(old[j] - new[j])
            size += phi[j] * abs(old[j])
            old[j] = 0.5 * (old[j] + new[j])
        moduli = 0.5 * (moduli + new_moduli)
        step *= 0.5
        if difference <= tolerance * size and not turned:
            return difference * math.sqrt(difference / size) + ROUNDING * EPS * moduli
    return np.inf


@apart
def row_at(phi, values, n, z, of_tail, scratch, out):
    """Risk-adjusted row at z: E[P_i | w·P = z], or, if ``of_tail``, E[P_i; w·P ≤ z].

    Returns its sum, which is 1 or F(z), and its error.
    """
    low, high = value_range(phi, values, n)
    total = 0.0
    for i in range(n):
        total += phi[i]
    nudge = max(EPS * max(abs(low), abs(high)), SUBNORMAL)
    beside = False
    while not beside:
        # once is not enough if another value lies a nudge away
        beside = True
        for i in range(n):
            if low < z < high and values[i] == z and phi[i] > 0.0:
                z += nudge
                beside = False
    if z <= low or z >= high:
        # at an extreme, all mass is on the coordinates that attain it
        end = low if z <= low else high
        summed = 0.0
        for i in range(n):
            out[i] = phi[i] if of_tail or values[i] == end else 0.0
            summed += out[i]
        below = 0.0 if of_tail and z <= low else 1.0
        for i in range(n):
            out[i] *= below / summed
        return below, 0.0
    work, order, _, bends, _, _, sums = scratch
    m, mirrored, _, _, _, _ = compact(phi, values, n, z, work[0], work[1])
    head = split_powers(work[0], m, order)
    line = choose_line(work[0], work[1], m, total, 0, work[2], work[3], bends, sums)
    bend_count = 1
    halvings = FIRST_HALVINGS
    while True:
        error = shares_on_line(m, head, line, bend_count, total, of_tail, halvings, scratch)
        if error < np.inf or halvings == MAX_HALVINGS:
            break
        tau, scale, first, log_peak, _ = line
        bend_count = bend_by_scale(work[0], work[3], m, scale, bends)
        line = (tau, min(scale, tau), first, log_peak, 0.0)
        halvings = MAX_HALVINGS
    if not (error < np.inf or of_tail):
        # some successors are so unlikely that the integral cancels to nothing
        tilted_row(phi, values, n, z, scratch, out)
        return 1.0, error
    old = work[4]
    summed = 0.0
    j = 0
    for i in range(n):
        out[i] = 0.0
        if phi[i] > 0.0 and values[i] != z:
            share = old[j]
            if of_tail and not mirrored:
                share = 1.0 - share
            out[i] = max(phi[i] * share, 0.0)
            summed += out[i]
            j += 1
    if of_tail:
        for i in range(n):
            out[i] /= total
        return summed / total, error / total
    if not summed < np.inf or not summed > 0.0:
        tilted_row(phi, values, n, z, scratch, out)
        return 1.0, np.inf
    for i in range(n):
        out[i] /= summed
    return 1.0, error / summed


@apart
def cvar_row(phi, values, n, level, score, start, scratch, out, extra):
    """(lower-tail CVaR, bound on its numerical error), and its row in ``out``.

    CVaR = max_q { q − E[(q − X)⁺]/α } is stationary at the quantile, so the quantile's own error
    enters squared. If the distribution function jumps within a rounding error of q, so that F(q) <
    α, the missing mass α − F(q) sits at q. The error bound has a floor that covered the rounding in
    every row tested.
    """
    low, high = value_range(phi, values, n)
    size = max(abs(low), abs(high))
    z, z_error = quantile_row(phi, values, n, low, high, level, score, start, scratch)
    below, error = row_at(phi, values, n, z, True, scratch, out)
    for _ in range(4):
        if below <= level * (1.0 + 1e-10) or z <= low:
            break
        z -= EPS * size
        if z > low:
            below, error = row_at(phi, values, n, z, True, scratch, out)
    if z <= low:
        below = error = 0.0
        z = low
        for i in range(n):
            out[i] = 0.0
    value = z + weighted_offset(out, values, n, z) / level
    missing = 1.0 - below / level
    if missing > 1e-10:
        row_at(phi, values, n, z, False, scratch, extra)
        for i in range(n):
            out[i] = out[i] / level + missing * extra[i]
    total = 0.0
    for i in range(n):
        total += out[i]
    for i in range(n):
        out[i] /= total
    spread = high - low
    if has_light(phi, n):
        error += LOST_TAIL
    error /= level
    error = (
        max(error * spread + z_error * (abs(missing) + error), (1e-11 + n * EPS) * spread)
        + 4.0 * EPS * size
    )
    return min(max(value, low), z), error if error < spread else spread


@kernel
def weighted_offset(row, values, n, z):
    """Σ row_i (w_i − z)."""
    result = 0.0
    for i in range(n):
        if row[i] > 0.0:
            result += row[i] * (values[i] - z)
    return result


@kernel
def mean_into(phi, n, out):
    total = 0.0
    for i in range(n):
        total += phi[i]
    for i in range(n):
        out[i] = phi[i] / total


# --- many rows ------------------------------------------------------------------------------------

EXACT = 0
SADDLEPOINT = 1
CVAR = 2


class Rows(NamedTuple):
    """Dirichlet rows of pairs, and the level at which each is measured.

    Pair p has the successors indptr[p] to indptr[p + 1], and as many concentrations, which begin at
    phi[offsets[p]].
    """

    indptr: NDArray[np.int64]
    offsets: NDArray[np.int64]
    phi: NDArray[np.float64]
    levels: NDArray[np.float64]
    scores: NDArray[np.float64]
    """Normal scores of the levels."""
    starts: NDArray[np.float64]
    """(pairs, 2): tilt and saddlepoint of each pair at its last evaluation; 0 if unknown.

    They only serve as starting points.
    """
    widest: int
    """Largest number of successors of a pair."""

    @classmethod
    def of(
        cls,
        indptr: NDArray[np.int64],
        offsets: NDArray[np.int64],
        phi: NDArray[np.float64],
        levels: NDArray[np.float64],
        widest: int,
    ) -> Rows:
        """Rows none of which has been evaluated yet."""
        scores = ndtri(np.minimum(levels, 1.0 - 1e-16))
        return cls(indptr, offsets, phi, levels, scores, np.zeros((levels.size, 2)), widest)


@apart
def evaluate_pair(measure, pair, rows, values, sharpness, scratch, row, extra):
    """(value of a risk measure for one pair, bound on its error).

    ``row`` and ``extra`` are scratch memory, too. ``sharpness`` is the tolerance of the
    saddlepoint's normal score.
    """
    begin = rows.indptr[pair]
    n = rows.indptr[pair + 1] - begin
    w = values[begin : begin + n]
    f = rows.phi[rows.offsets[pair] : rows.offsets[pair] + n]
    level = rows.levels[pair]
    score = rows.scores[pair]
    low, high = value_range(f, w, n)
    size = max(abs(low), abs(high))
    error = 0.0
    if measure == CVAR and level == 1.0:
        mean_into(f, n, row)
        value = low + weighted_offset(row, w, n, low)
        error = (n + 4.0) * EPS * (high - low) + 4.0 * EPS * size
    elif high - low <= EPS * size:
        value = low
        error = high - low + EPS * size
    elif measure == SADDLEPOINT:
        value = saddlepoint_row(f, w, n, low, high, score, sharpness, rows.starts[pair], scratch)
    elif measure == CVAR:
        value, error = cvar_row(f, w, n, level, score, rows.starts[pair], scratch, row, extra)
    else:
        value, error = quantile_row(f, w, n, low, high, level, score, rows.starts[pair], scratch)
    return value, error


@kernel
def evaluate_pairs(measure, pairs, rows, values, sharpness, out):
    """Value of a risk measure for each pair; returns the largest bound on their errors.

    ``sharpness`` is the tolerance of the saddlepoint's normal score.
    """
    scratch = workspace(rows.widest)
    row = np.empty(rows.widest)
    extra = np.empty(rows.widest)
    worst = 0.0
    for position in range(pairs.shape[0]):
        pair = pairs[position]
        out[pair], error = evaluate_pair(
            measure, pair, rows, values, sharpness, scratch, row, extra
        )
        worst = max(worst, error)
    return worst


@apart
def quantile_beside(pair, rows, values, z, scratch):
    """(quantile of a pair, bound on its error) from a z that nearly is the quantile.

    This is the last step of ``quantile_row``, without what leads there. The error is negative if
    that step is not enough, or the row not of the ordinary kind.
    """
    begin = rows.indptr[pair]
    n = rows.indptr[pair + 1] - begin
    w = values[begin : begin + n]
    f = rows.phi[rows.offsets[pair] : rows.offsets[pair] + n]
    low, high = value_range(f, w, n)
    resolution = max(max(abs(low), abs(high)) * EPS, SUBNORMAL)
    total = 0.0
    for i in range(n):
        total += f[i]
    if not (low < z < high and total >= FAST_DECAY) or has_light(f, n):
        return z, -1.0
    alpha = rows.levels[pair]
    lower = alpha <= 0.5
    target = alpha if lower else 1.0 - alpha
    tail, density, error, rounding, mirrored, unit, total, step, count = tail_at(
        f, w, n, z, scratch
    )
    same = mirrored == lower
    probability = tail if same else 1.0 - tail
    if not same:
        error *= tail / max(probability, EPS)
        rounding *= tail / max(probability, EPS)
    miss = probability / target - 1.0
    if not (error <= MAX_ERROR and abs(miss) < 0.1 and density > 0.0):
        return z, -1.0
    if abs(miss) <= NEGLIGIBLE_MISS:
        move = miss * target / density
        z += -move if lower else move
        return z, (error + rounding) * target / density + 4.0 * resolution
    if count == 0:
        return z, -1.0
    wanted = target if same else 1.0 - target
    inside, gradient, cut = series_root(scratch[2], count, step, tail, total, wanted, target)
    move = -inside * unit if mirrored else inside * unit
    if not (gradient < 0.0 and cut <= SERIES_TOLERANCE and low < z + move < high):
        return z, -1.0
    return z + move, (error + rounding + cut) * target * unit / -gradient + 4.0 * resolution


@apart
def halfway_below(pair, rows, values, limit, scratch):
    """(z, a lower bound on F(z)) with z halfway between a pair's estimated quantile and ``limit``.

    The second is 0 if there is no such z, or next to light successors, whose share of a tail can be
    lost.
    """
    begin = rows.indptr[pair]
    n = rows.indptr[pair + 1] - begin
    w = values[begin : begin + n]
    f = rows.phi[rows.offsets[pair] : rows.offsets[pair] + n]
    low, high = value_range(f, w, n)
    if high - low <= EPS * max(abs(low), abs(high)) or has_light(f, n):
        return limit, 0.0
    guess = saddlepoint_row(
        f, w, n, low, high, rows.scores[pair], START_SHARPNESS, rows.starts[pair], scratch
    )
    z = 0.5 * (guess + limit)
    if not guess < z < limit:
        return limit, 0.0
    below, _, _, error = cdf_row(f, w, n, z, scratch)
    # ``below`` may be 1 − tail, and rounded up
    return z, max(below - error - EPS * below, 0.0) if error < 1.0 else 0.0


@partial(kernel, apart=True)
def rows_of_pairs(measure, precise, pairs, rows, values, quantiles, out_indptr, out):
    """Risk-adjusted rows of the given pairs, one after another in ``out`` (at ``out_indptr``).

    Unless ``precise``, the gradient of the saddlepoint quantile replaces that of the exact one if
    all concentrations are at least 1. It is right to about three digits, which is enough for
    Newton's method, and several times cheaper.
    """
    scratch = workspace(rows.widest)
    extra = np.empty(rows.widest)
    for position in range(pairs.shape[0]):
        pair = pairs[position]
        begin = rows.indptr[pair]
        n = rows.indptr[pair + 1] - begin
        w = values[begin : begin + n]
        f = rows.phi[rows.offsets[pair] : rows.offsets[pair] + n]
        target = out[out_indptr[position] : out_indptr[position] + n]
        low, high = value_range(f, w, n)
        if (measure == CVAR and rows.levels[pair] == 1.0) or high - low <= EPS * max(
            abs(low), abs(high)
        ):
            mean_into(f, n, target)
        elif measure == SADDLEPOINT or (measure == EXACT and not precise and none_below_one(f, n)):
            saddlepoint_gradient(
                f, w, n, low, high, quantiles[pair], rows.starts[pair], scratch, target
            )
        elif measure == CVAR:
            cvar_row(
                f,
                w,
                n,
                rows.levels[pair],
                rows.scores[pair],
                rows.starts[pair],
                scratch,
                target,
                extra,
            )
        else:
            row_at(f, w, n, quantiles[pair], False, scratch, target)


@kernel
def mean_rows(pairs, rows, out):
    """Mean rows of the given pairs, each at its own place in ``out``."""
    for position in range(pairs.shape[0]):
        pair = pairs[position]
        begin = rows.indptr[pair]
        n = rows.indptr[pair + 1] - begin
        mean_into(rows.phi[rows.offsets[pair] : rows.offsets[pair] + n], n, out[begin : begin + n])
