"""Curves, intervals and verdicts once more: one run and one step at a time."""

import math
import statistics

from scipy import stats


def interval(samples):
    """Mean and 95 % Student t interval of a list of numbers, by SciPy."""
    numbers = [float(x) for x in samples]
    mean = statistics.fmean(numbers)
    low, high = stats.ttest_1samp(numbers, mean).confidence_interval(0.95)
    return mean, float(low), float(high)


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
    """Steps done when the moving average first reaches the threshold, or ``steps``."""
    for n in range(window, steps + 1):
        if sum(rewards[n - window : n]) / window >= threshold:
            return n
    return steps


def paired(first, second):
    """Differences of two dictionaries run number → value, over the runs that both have, in order of the runs."""
    return [first[run] - second[run] for run in sorted(first) if run in second]


def ratio_interval(numerator, denominator):
    """Ratio of means with its 95 % interval by the delta method, from variances and covariance."""
    runs = len(numerator)
    top, bottom = statistics.fmean(numerator), statistics.fmean(denominator)
    ratio = top / bottom
    variance = (
        statistics.variance(numerator)
        + ratio**2 * statistics.variance(denominator)
        - 2.0 * ratio * statistics.covariance(numerator, denominator)
    ) / bottom**2
    reach = float(stats.t.ppf(0.975, runs - 1)) * math.sqrt(variance / runs)
    return ratio, ratio - reach, ratio + reach


def directional_verdict(low, high, side):
    """``side`` is "below" or "above" zero."""
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
