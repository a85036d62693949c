"""Second implementations of growth exponents, by the delta method and by the jackknife."""

import math
import statistics

from oracles.analysis import interval


def growth_interval(early, late, tenfold):
    """ln(mean late / mean early) / ln(tenfold), with a 95 % interval from first-order effects."""
    first, last = statistics.fmean(early), statistics.fmean(late)
    slope = math.log(last / first) / math.log(tenfold)
    moved = [
        slope + (y / last - x / first) / math.log(tenfold) for x, y in zip(early, late, strict=True)
    ]
    return interval(moved)


def growth_error(early, late, tenfold):
    """Standard error of the exponent by the delta method, from variances and covariance."""
    first, last = statistics.fmean(early), statistics.fmean(late)
    variance = (
        statistics.variance(early) / first**2
        + statistics.variance(late) / last**2
        - 2.0 * statistics.covariance(early, late) / (first * last)
    )
    return math.sqrt(variance / len(early)) / math.log(tenfold)


def jackknife_error(early, late, tenfold):
    """Standard error of the exponent, from the exponents with one run left out."""
    runs = len(early)
    slopes = []
    for left_out in range(runs):
        first = sum(x for i, x in enumerate(early) if i != left_out)
        last = sum(x for i, x in enumerate(late) if i != left_out)
        slopes.append(math.log(last / first) / math.log(tenfold))
    centre = statistics.fmean(slopes)
    return math.sqrt((runs - 1) / runs * sum((slope - centre) ** 2 for slope in slopes))
