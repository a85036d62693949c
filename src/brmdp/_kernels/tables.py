"""Tables of Chinese restaurants, and what is asked of Γ along with them.

Of n customers and for a weight θ, the customer on seat i opens a table with probability θ/(θ + i),
i = 0 … n − 1, independently of the others.
"""

from __future__ import annotations

import math

import numpy as np

from brmdp._kernels.compiled import kernel

# Chances between these are compared with a random number seat by seat.
UNLIKELY, LIKELY = 0.25, 0.75
# From this variance on, and for weights from this size on, a sum of seats is drawn through its
# first four cumulants; its distribution function is then off by less than 3e-5.
LARGE_VARIANCE, LARGE_WEIGHT = 20.0, 8.0
# The series for lnΓ is used from here on.
STIRLING = 7.0
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# The series for the derivatives of lnΓ are used from here on.
ASYMPTOTIC = 10.0
# No weight is taken to be smaller.
SMALLEST = 1e-30
# Up to so many factors, Γ(θ + n)/Γ(θ) is multiplied out.
FEW_FACTORS = 9.0


@kernel
def log_gamma(x):
    """lnΓ(x), for x > 0."""
    product = 1.0
    while x < STIRLING:
        product *= x
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    series = 1.0 / 1680.0 - square * (1.0 / 1188.0 - square * (691.0 / 360360.0))
    series = 1.0 / 360.0 - square * (1.0 / 1260.0 - square * series)
    series = inverse * (1.0 / 12.0 - square * series)
    result = (x - 0.5) * math.log(x) - x + HALF_LOG_TWO_PI + series
    if product != 1.0:
        result -= math.log(product)
    return result


@kernel
def log_rise(theta, n):
    """lnΓ(θ + n) − lnΓ(θ), for θ > 0 and whole n ≥ 0."""
    if n <= FEW_FACTORS:
        product = 1.0
        for j in range(int(n)):
            product *= theta + j
        return math.log(product)
    return log_gamma(theta + n) - log_gamma(theta)


@kernel
def slopes(x):
    """The first two derivatives of lnΓ at x > 0."""
    first = second = 0.0
    while x < ASYMPTOTIC:
        inverse = 1.0 / x
        first -= inverse
        second += inverse * inverse
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    series = 1.0 / 252.0 - square * (1.0 / 240.0 - square * (1.0 / 132.0))
    series = 1.0 / 12.0 - square * (1.0 / 120.0 - square * series)
    first += math.log(x) - 0.5 * inverse - square * series
    series = 1.0 / 42.0 - square * (1.0 / 30.0 - square * (5.0 / 66.0))
    series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * series)
    second += inverse + 0.5 * square + inverse * square * series
    return first, second


@kernel
def rises(theta, n, first, second):
    """Differences of the first two derivatives of lnΓ between θ + n and θ, for θ > 0 and n ≥ 0."""
    for i in range(theta.size):
        if n[i] <= FEW_FACTORS and n[i] == math.floor(n[i]):
            first[i] = second[i] = 0.0
            for j in range(int(n[i])):
                inverse = 1.0 / (theta[i] + j)
                first[i] += inverse
                second[i] -= inverse * inverse
        else:
            low = slopes(theta[i])
            high = slopes(theta[i] + n[i])
            first[i] = high[0] - low[0]
            second[i] = high[1] - low[1]


@kernel
def opened(n, theta, rng):
    """Tables opened by all of n customers but the first: exact."""
    last = n - 1.0
    # where nearly every customer opens a table, those who do not are found from the top down: the
    # chance for this is at most that on the seat reached, and a share of the candidates is refused
    high = min(last, math.floor(theta * (1.0 / LIKELY - 1.0)))
    tables = max(high, 0.0)
    seat = high
    while seat >= 1.0:
        skipped = rng.standard_exponential() / math.log1p(seat / theta)
        if skipped >= seat:
            break
        candidate = seat - math.floor(skipped)
        if rng.random() * seat * (theta + candidate) < candidate * (theta + seat):
            tables -= 1.0
        seat = candidate - 1.0
    middle = min(last, math.floor(theta * (1.0 / UNLIKELY - 1.0)))
    seat = max(high, 0.0) + 1.0
    while seat <= middle:
        if rng.random() * (theta + seat) < theta:
            tables += 1.0
        seat += 1.0
    # where few do, these are found in the same way from the bottom up
    while seat <= last:
        skipped = rng.standard_exponential() / math.log1p(theta / seat)
        if skipped >= last - seat + 1.0:
            break
        candidate = seat + math.floor(skipped)
        if rng.random() * (theta + candidate) < theta + seat:
            tables += 1.0
        seat = candidate + 1.0
    return tables


@kernel
def add_cumulants(n, theta, sums):
    """Add Σ p, Σ p², Σ p³ and Σ p⁴ over all seats but the first to ``sums``; needs θ ≥ 8.

    By the formula of Euler and Maclaurin, with a relative error below 1e-8.
    """
    low, high = 1.0 / (theta + 1.0), 1.0 / (theta + n)
    a, b = theta * low, theta * high
    sums[0] += (
        theta * math.log(low / high)
        + 0.5 * (a - b)
        + (a * low - b * high) / 12.0
        - (a * low**3 - b * high**3) / 120.0
        + (a * low**5 - b * high**5) / 252.0
    )
    one, other = a, b
    for k in range(2, 5):
        whole = theta * (one - other) / (k - 1.0)
        one *= a
        other *= b
        sums[k - 1] += (
            whole
            + 0.5 * (one - other)
            + k / 12.0 * (one * low - other * high)
            - k * (k + 1.0) * (k + 2.0) / 720.0 * (one * low**3 - other * high**3)
            + (k * (k + 1.0) * (k + 2.0) * (k + 3.0) * (k + 4.0) / 30240.0)
            * (one * low**5 - other * high**5)
        )


@kernel
def drawn_sum(sums, most, rng):
    """A sum of independent seats, given Σ p^k and the largest value it can take."""
    first, second, third, fourth = sums[0], sums[1], sums[2], sums[3]
    # rounding adds 1/12 to the variance and takes 1/120 from the fourth cumulant
    variance = first - second - 1.0 / 12.0
    spread = math.sqrt(variance)
    skewness = (first - 3.0 * second + 2.0 * third) / (variance * spread)
    excess = (first - 7.0 * second + 12.0 * third - 6.0 * fourth + 1.0 / 120.0) / variance**2
    z = rng.standard_normal()
    square = z * z
    bent = (
        z
        + skewness * (square - 1.0) / 6.0
        + z * (excess * (square - 3.0) / 24.0 - skewness**2 * (2.0 * square - 5.0) / 36.0)
    )
    return min(max(math.floor(first + spread * bent + 0.5), 0.0), most)


@kernel
def is_large(sums):
    """Whether the variance of a sum of seats is large."""
    return sums[0] - sums[1] >= LARGE_VARIANCE


@kernel
def add_tables(kinds, customers, times, weights, rng, tables):
    """Add to each kind's tables those of all customers but the first.

    ``times[i]`` restaurants of the kind ``kinds[i]`` had ``customers[i]`` customers each.
    """
    own = np.empty(4)
    sums = np.zeros((tables.size, 4))
    most = np.zeros(tables.size)
    for i in range(kinds.size):
        k = kinds[i]
        if weights[k] >= LARGE_WEIGHT and customers[i] > 1.0:
            own[:] = 0.0
            add_cumulants(customers[i], weights[k], own)
            for j in range(4):
                sums[k, j] += times[i] * own[j]
            most[k] += times[i] * (customers[i] - 1.0)
    for i in range(kinds.size):
        k = kinds[i]
        if not is_large(sums[k]):
            weight = max(weights[k], SMALLEST)
            for _ in range(int(times[i])):
                tables[k] += opened(customers[i], weight, rng)
    for k in range(tables.size):
        if is_large(sums[k]):
            tables[k] += drawn_sum(sums[k], most[k], rng)
