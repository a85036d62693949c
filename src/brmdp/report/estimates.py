"""Means over independent runs, and their intervals.

Runs of learning agents often fall into two groups: most learn, a few are trapped. Student's t
interval misses the mean of such numbers far more often than it states. So two intervals are
computed, and at each end the wider one counts:

- Student's t interval, which is right for normal numbers;
- Gaffke's interval. Its upper end is the upper quantile of Σ_i P_i x_i + P_{n+1} b with
  P ~ Dir(1, …, 1): the runs x_1, …, x_n with random weights, and one extra run at b, the largest
  number possible. Its lower end is the mirror image. Where the range of the numbers is *known*, as
  for a share, this interval is used alone and assumes nothing else; for runs that are 0 or 1 it
  is the Clopper-Pearson interval. That it always covers is a conjecture without a known
  counterexample (Gaffke 2005; Learned-Miller and Thomas, arXiv:1905.06208). Where the range is
  unknown, the extremes of the runs seen stand in for it.

**What no such interval can see.** A group of runs with probability p is missed by all n runs with
probability (1 − p)^n. So where the range is unknown, 100 runs may miss a group of 3 %
(:func:`unseen_share`); if it lies far away, the interval does not account for it. Judged numbers
say where such a group would have to lie to undo their verdict.

**All runs equal.** Without spread and without a known range there is no interval: that all runs
seen are equal does not show that all runs are.

The measured coverage is given in docs/reproduce/intervals.md (``python -m benchmarks.intervals``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from brmdp import dirichlet
from brmdp._validation import FloatArray, as_number
from brmdp.errors import InvalidInputError
from brmdp.planning.guarantees import clopper_pearson

__all__ = [
    "CONFIDENCE",
    "MINIMUM_RUNS",
    "SHARE",
    "Estimate",
    "estimate",
    "exact_number",
    "proportion",
    "ratio_samples",
    "share_of_trials",
    "unseen_share",
]

CONFIDENCE = 0.95
MINIMUM_RUNS = 3
"""Fewest runs that get an interval.

Two runs would leave one degree of freedom and an interval of ±12.7 standard errors.
"""

ROUNDING = 1e-12
"""Spread, relative to the size of the numbers, that counts as no spread."""

AT_ONCE = 1_000_000
"""Most numbers passed to the quantile function in one call."""

SHARE = (0.0, 1.0)
"""The range of a share or a probability."""

Ends: TypeAlias = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Means over runs with their intervals: single numbers, or arrays of one shape.

    Attributes
    ----------
    mean, standard_error : array
        The mean is NaN without a run, the standard error without a second run.
    low, high : array
        Ends of the interval. For averages by :func:`estimate` they are NaN with fewer than
        :data:`MINIMUM_RUNS` runs and, unless bounds are known, where all runs are equal.
    runs : int
        Number of runs.
    confidence : float
        Confidence of the interval.
    exact : bool
        Whether the number is not an average, so that nothing about it is left to chance.
    seen : pair of arrays, or None
        Smallest and largest number of any run, where they stand in for an unknown range.
    ends : function of a confidence, or None
        Computes the ends of an interval of another confidence.

    Examples
    --------
    >>> import numpy as np
    >>> from brmdp.report import estimate
    >>> found = estimate(np.arange(20.0))
    >>> float(found.mean), found.runs
    (9.5, 20)
    >>> bool(found.low < 9.5 < found.high)
    True
    """

    mean: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    runs: int
    confidence: float = CONFIDENCE
    exact: bool = False
    seen: Ends | None = None
    ends: Callable[[float], Ends] | None = field(default=None, repr=False)

    @property
    def has_interval(self) -> bool:
        """Whether there are enough runs for an interval."""
        return self.runs >= MINIMUM_RUNS

    @property
    def all_equal(self) -> bool:
        """Whether this single number has no interval because all runs are equal."""
        return self.has_interval and bool(np.isnan(self.low)) and not bool(np.isnan(self.mean))

    @property
    def reach(self) -> FloatArray:
        """How far the interval reaches below and above the mean, (2, …), for error bars.

        0 where there is no interval.
        """
        reach: FloatArray = np.nan_to_num(np.stack([self.mean - self.low, self.high - self.mean]))
        return reach

    def at_confidence(self, confidence: float) -> Estimate:
        """The same estimate with an interval of another confidence."""
        if self.exact or confidence == self.confidence:
            return self
        if self.ends is None:
            raise InvalidInputError(
                f"confidence must be {self.confidence:g}, the only one with a known interval; got "
                f"{confidence:g}"
            )
        low, high = self.ends(confidence)
        return replace(self, low=low, high=high, confidence=confidence)

    def at(self, index: int | slice | tuple[int | slice, ...]) -> Estimate:
        """The entries at ``index``."""
        mean, error, low, high = (
            np.asarray(part[index])
            for part in (self.mean, self.standard_error, self.low, self.high)
        )
        seen = None if self.seen is None else _each(self.seen, lambda part: part[index])
        again = self.ends
        ends = (
            None
            if again is None
            else lambda confidence: _each(again(confidence), lambda part: part[index])
        )
        return Estimate(mean, error, low, high, self.runs, self.confidence, self.exact, seen, ends)

    def scaled(self, factor: float) -> Estimate:
        """The estimate with all numbers multiplied by a positive ``factor``."""
        mean, error, low, high = (
            np.asarray(factor * part)
            for part in (self.mean, self.standard_error, self.low, self.high)
        )
        seen = None if self.seen is None else _each(self.seen, lambda part: factor * part)
        again = self.ends
        ends = (
            None
            if again is None
            else lambda confidence: _each(again(confidence), lambda part: factor * part)
        )
        return Estimate(mean, error, low, high, self.runs, self.confidence, self.exact, seen, ends)

    def as_json(self) -> dict[str, Any]:
        """``{"mean": …, "ci95": [low, high]}``, with None for what is not known.

        Arrays become lists.
        """
        usual = self.at_confidence(CONFIDENCE)
        ends = np.stack([usual.low, usual.high], axis=-1)
        return {"mean": _plain(self.mean), "ci95": _plain(ends) if self.has_interval else None}

    def __str__(self) -> str:
        """A single number as "mean [low, high]", to four figures."""
        mean, low, high = float(self.mean), float(self.low), float(self.high)
        if np.isnan(mean):
            return "unknown"
        largest = max(abs(mean), np.nan_to_num(abs(low)), np.nan_to_num(abs(high)))
        if 0.0 < largest < 1e-6:
            form = ".0e"
        else:
            form = (
                f".{int(np.clip(3 - np.floor(np.log10(largest)), 0, 6)) if largest > 0.0 else 0}f"
            )
        if self.all_equal:
            return f"{mean:{form}} in every run"
        return f"{mean:{form}}" if np.isnan(low) else f"{mean:{form}} [{low:{form}}, {high:{form}}]"


def estimate(
    samples: ArrayLike, *, bounds: tuple[float, float] | None = None, scale: float = 0.0
) -> Estimate:
    """Mean and 95 % interval over the runs, which are the first axis.

    The module's description says how intervals are computed.

    Parameters
    ----------
    samples : (R, …) array
        One entry per independent run; R may be 0. Where an entry is not finite, neither the mean
        nor the interval is known.
    bounds : (float, float), optional
        Range in which every run's number must lie, if it is known.
    scale : float
        Size of the numbers from which the samples were computed, if these are larger than the
        samples. Spread below their rounding error counts as none.

    Examples
    --------
    >>> print(estimate([0.2, 0.4, 0.3, 0.5]))
    0.3500 [0.1446, 0.5554]
    >>> print(estimate([0.2, 0.4, 0.3, 0.5], bounds=(0.0, 1.0)))
    0.3500 [0.1316, 0.7454]
    >>> print(estimate([0.3, 0.3, 0.3]))
    0.3000 in every run
    """
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim == 0:
        raise InvalidInputError(
            "samples must have one entry per run along the first axis; got a single number"
        )
    runs = values.shape[0]
    unknown = np.full(values.shape[1:], np.nan)
    values = np.where(np.isfinite(values).all(axis=0), values, np.nan)
    least, most = (values.min(axis=0), values.max(axis=0)) if runs > 0 else (unknown, unknown)
    size = np.maximum(
        np.maximum(np.abs(least), np.abs(most)), as_number(scale, "scale", "a number")
    )
    if bounds is None:
        known = np.asarray(most - least > ROUNDING * size)
        seen: Ends | None = (np.asarray(least), np.asarray(most))
        a, b = np.asarray(least), np.asarray(most)
    else:
        a, b = _as_bounds(bounds, least, most)
        known, seen = np.asarray(~np.isnan(least)), None
    mean = np.asarray(values.mean(axis=0)) if runs > 0 else unknown
    error = np.asarray(values.std(axis=0, ddof=1) / np.sqrt(runs)) if runs > 1 else unknown

    def ends(confidence: float) -> Ends:
        if runs < MINIMUM_RUNS:
            return unknown, unknown
        rows = np.moveaxis(values, 0, -1)[known]
        low, high = (np.array(unknown) for _ in range(2))
        low[known], high[known] = _gaffke(rows, a[known], b[known], confidence)
        if bounds is None:
            reach = _t_quantile(runs, confidence) * error
            low, high = np.minimum(low, mean - reach), np.maximum(high, mean + reach)
        return np.asarray(low), np.asarray(high)

    low, high = ends(CONFIDENCE)
    return Estimate(mean, error, low, high, runs, seen=seen, ends=ends)


def proportion(happened: ArrayLike) -> Estimate:
    """Share of independent trials in which something happened, with its Clopper-Pearson interval.

    ``happened`` holds booleans, or 0, 1 and NaN. The share is unknown if any entry is NaN, or
    if there is no trial.

    Examples
    --------
    >>> print(proportion([True, False, True, True]))
    0.7500 [0.1941, 0.9937]
    """
    trials = np.asarray(happened, dtype=np.float64).reshape(-1)
    if trials.size == 0 or not np.isfinite(trials).all():
        return estimate(trials)
    if not np.isin(trials, SHARE).all():
        raise InvalidInputError("happened must be booleans, 0 or 1; got other numbers")
    return share_of_trials(int(trials.sum()), trials.size)


def share_of_trials(happened: int, trials: int) -> Estimate:
    """The same for a number of trials of which only the count is known.

    Examples
    --------
    >>> print(share_of_trials(3, 4))
    0.7500 [0.1941, 0.9937]
    """
    if trials < 1:
        return estimate(np.empty(0))
    if not 0 <= happened <= trials:
        raise InvalidInputError(f"happened must be between 0 and {trials} trials; got {happened}")
    share = happened / trials
    error = np.sqrt(share * (1.0 - share) / trials)

    def ends(confidence: float) -> Ends:
        low, high = clopper_pearson(happened, trials, confidence)
        return np.asarray(low), np.asarray(high)

    return Estimate(np.asarray(share), np.asarray(error), *ends(CONFIDENCE), trials, ends=ends)


def exact_number(value: float, trials: int) -> Estimate:
    """A number that is not an average, such as a count over all trials; chance plays no part in it.

    It is unknown if there were no trials.

    Examples
    --------
    >>> print(exact_number(0, trials=200))
    0 [0, 0]
    """
    if trials < 1:
        return estimate(np.empty(0))
    number = np.asarray(float(value))
    return Estimate(number, np.zeros_like(number), number, number, trials, exact=True)


def unseen_share(runs: int) -> float:
    """Size of the largest group that a sample of runs misses entirely with probability 5 %.

    ``runs`` is the number of runs in the sample; the size is a share of all runs.

    Examples
    --------
    >>> round(unseen_share(100), 3)
    0.03
    """
    return float(1.0 - (1.0 - CONFIDENCE) ** (1.0 / runs)) if runs > 0 else 1.0


def ratio_samples(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Per-run numbers whose mean is mean(numerator) / mean(denominator).

    Their standard error is, to first order (the delta method), that of the ratio of means. It
    accounts for the correlation of numerator and denominator on common seeds.
    """
    if numerator.size == 0:
        return numerator
    scale = float(denominator.mean())
    if scale == 0.0:
        return np.full(numerator.shape, np.nan)
    ratio = float(numerator.mean()) / scale
    samples: FloatArray = ratio + (numerator - ratio * denominator) / scale
    return samples


def _gaffke(rows: FloatArray, least: FloatArray, most: FloatArray, confidence: float) -> Ends:
    """Ends of Gaffke's interval for each of (m, R) ``rows``.

    The extra run lies at ``least`` for the lower end and at ``most`` for the upper, (m,) each.
    """
    count, runs = rows.shape
    low, high = np.empty(count), np.empty(count)
    centre = rows.mean(axis=1, keepdims=True)
    spread = (most - least)[:, None]
    spread = np.where(spread > 0.0, spread, 1.0)
    tail = 0.5 * (1.0 - confidence)
    step = max(1, AT_ONCE // (runs + 1))
    for begin in range(0, count, step):
        some = slice(begin, begin + step)
        for end, extreme, level in ((low, least, tail), (high, most, 1.0 - tail)):
            # in units of the range, so that quantiles are equally accurate for numbers of any size
            points = (np.column_stack([rows[some], extreme[some]]) - centre[some]) / spread[some]
            quantile = dirichlet.quantile(np.ones(runs + 1), points, level)
            end[some] = centre[some, 0] + spread[some, 0] * quantile
    # rounding must not push an end out of the range
    return np.maximum(low, least), np.minimum(high, most)


def _as_bounds(bounds: tuple[float, float], least: Any, most: Any) -> Ends:
    """Both bounds for every entry; numbers may exceed them only by rounding."""
    low, high = (as_number(end, "bounds", "two numbers") for end in bounds)
    if not low < high:
        raise InvalidInputError(f"bounds must be two increasing numbers; got {bounds!r}")
    slack = ROUNDING * max(abs(low), abs(high))
    if (least < low - slack).any() or (most > high + slack).any():
        found = f"[{np.nanmin(least):g}, {np.nanmax(most):g}]"
        raise InvalidInputError(
            f"samples must lie within their bounds [{low:g}, {high:g}]; got numbers in {found}"
        )
    return np.asarray(np.minimum(low, least)), np.asarray(np.maximum(high, most))


def _each(ends: Ends, change: Callable[[FloatArray], Any]) -> Ends:
    return np.asarray(change(ends[0])), np.asarray(change(ends[1]))


def _plain(array: FloatArray) -> Any:
    """The array as Python numbers for JSON, with None for NaN."""
    plain = array.astype(object)
    plain[np.isnan(array)] = None
    return plain.tolist()


def _t_quantile(runs: int, confidence: float) -> float:
    # the same number as scipy.stats.t.ppf, which takes a second to import
    from scipy.special import stdtrit

    return float(stdtrit(runs - 1, 0.5 + confidence / 2.0))
