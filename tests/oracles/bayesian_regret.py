"""Growth exponents once more: from variances and a covariance, and by leaving out one run at a time."""

import math
import statistics

from scipy import stats


def growth_interval(early, late, tenfold):
    """ln(mean late / mean early) / ln(tenfold) with its 95 % interval by the delta method, from the moments."""
    runs = len(early)
    first, last = statistics.fmean(early), statistics.fmean(late)
    variance = (
        statistics.variance(early) / first**2
        + statistics.variance(late) / last**2
        - 2.0 * statistics.covariance(early, late) / (first * last)
    )
    slope = math.log(last / first) / math.log(tenfold)
    reach = float(stats.t.ppf(0.975, runs - 1)) * math.sqrt(variance / runs) / math.log(tenfold)
    return slope, slope - reach, slope + reach


def jackknife_error(early, late, tenfold):
    """Standard error of the exponent from the exponents without one of the runs each."""
    runs = len(early)
    slopes = []
    for left_out in range(runs):
        first = sum(x for i, x in enumerate(early) if i != left_out)
        last = sum(x for i, x in enumerate(late) if i != left_out)
        slopes.append(math.log(last / first) / math.log(tenfold))
    centre = statistics.fmean(slopes)
    return math.sqrt((runs - 1) / runs * sum((slope - centre) ** 2 for slope in slopes))
