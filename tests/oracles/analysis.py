"""Second implementations of curves, intervals and verdicts, one run and one step at a time."""

import math
import statistics

import numpy as np
from scipy import integrate, optimize, stats


def random_weights_below(points, q):
    """P(Σ P_i x_i ≤ q) for P ~ Dir(1, …, 1), inverted by Gil-Pelaez.

    It equals P(Σ E_i (x_i − q) ≤ 0) for exponential E.
    """
    gaps = np.asarray(points) - q
    gaps = gaps / np.abs(gaps).max()

    def integrand(t):
        size = math.exp(-0.5 * np.log1p((t * gaps) ** 2).sum())
        return math.sin(np.arctan(t * gaps).sum()) * size / t

    # start where it matters: the characteristic function of a long sum is concentrated near zero
    width = 1.0 / math.sqrt((gaps * gaps).sum())
    parts = [(1e-14, 8.0 * width), (8.0 * width, 80.0 * width), (80.0 * width, math.inf)]
    settings = {"epsabs": 1e-13, "epsrel": 1e-12, "limit": 400}
    return (
        0.5 - math.fsum(integrate.quad(integrand, *part, **settings)[0] for part in parts) / math.pi
    )


def random_weights_quantile(points, level):
    least, most = min(points), max(points)
    if least == most:
        return least
    reach = 1e-9 * (most - least)
    found = optimize.brentq(
        lambda q: random_weights_below(points, q) - level,
        least + reach,
        most - reach,
        xtol=1e-13 * (most - least),
    )
    return float(found)


def interval(samples, confidence=0.95, bounds=None):
    """Mean of numbers and its interval: at each end the wider of Student's t and Gaffke's.

    Where ``bounds`` are known it is Gaffke's alone.
    """
    numbers = [float(x) for x in samples]
    mean, tail = statistics.fmean(numbers), (1.0 - confidence) / 2.0
    least, most = (min(numbers), max(numbers)) if bounds is None else bounds
    low = random_weights_quantile([*numbers, least], tail)
    high = random_weights_quantile([*numbers, most], 1.0 - tail)
    if bounds is None:
        reach = (
            -stats.t.ppf(tail, len(numbers) - 1)
            * statistics.stdev(numbers)
            / math.sqrt(len(numbers))
        )
        low, high = min(low, mean - reach), max(high, mean + reach)
    return mean, low, high


def running_sum(values):
    total, sums = 0.0, []
    for value in values:
        total += value
        sums.append(total)
    return sums


def moving_average(rewards, window):
    """The paper's average r̄_t for t = window − 1, …, T − 1."""
    return [sum(rewards[t - window + 1 : t + 1]) / window for t in range(window - 1, len(rewards))]


def occupancy(states, n_states, steps):
    """The paper's measure d̂_T(s)."""
    return [sum(1 for s in states[:steps] if s == state) / steps for state in range(n_states)]


def first_time(rewards, window, threshold, steps):
    """Number of steps when the moving average first reaches the threshold, or ``steps``."""
    for n in range(window, steps + 1):
        if sum(rewards[n - window : n]) / window >= threshold:
            return n
    return steps


def paired(first, second):
    """Differences of two dictionaries run number → value, over their common runs in order."""
    return [first[run] - second[run] for run in sorted(first) if run in second]


def ratio_interval(numerator, denominator, confidence=0.95):
    """Ratio of means with its interval, from each run's first-order effect on it."""
    top, bottom = statistics.fmean(numerator), statistics.fmean(denominator)
    ratio = top / bottom
    moved = [
        ratio + x / bottom - top * y / bottom**2
        for x, y in zip(numerator, denominator, strict=True)
    ]
    return interval(moved, confidence)


def ratio_error(numerator, denominator):
    """Standard error of a ratio of means by the delta method, from variances and covariance."""
    bottom = statistics.fmean(denominator)
    ratio = statistics.fmean(numerator) / bottom
    variance = (
        statistics.variance(numerator)
        + ratio**2 * statistics.variance(denominator)
        - 2.0 * ratio * statistics.covariance(numerator, denominator)
    ) / bottom**2
    return math.sqrt(variance / len(numerator))


def directional_verdict(low, high, side):
    """Verdict for a ``side`` "below" or "above" zero."""
    if side == "above":
        low, high = -high, -low
    if high < 0:
        return "reproduced"
    if low > 0:
        return "contradicted"
    return "not resolved at this number of runs"


def closeness_verdict(low, high, centre, margin):
    if centre - margin < low and high < centre + margin:
        return "reproduced"
    if low > centre + margin or high < centre - margin:
        return "contradicted"
    return "not resolved at this number of runs"
