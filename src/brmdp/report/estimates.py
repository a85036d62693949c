"""Means over independent runs and their intervals.

Runs of learning agents often fall into two groups: most learn, a few are trapped. Student's t
misses the mean of such numbers far more often than it says. So two intervals are taken, and at each
end the wider one counts:

- Student's t, right for normal numbers;
- Gaffke's. Its upper end is the upper quantile of Σ_i P_i x_i + P_{n+1} b with P ~ Dir(1, …, 1):
  the runs x_1, …, x_n weighted at random, and one run more at b, the most that a run could be; its
  lower end is the mirror image. Where the range of the numbers is *known*, as that of a share is,
  this interval stands alone and assumes nothing else; for runs that are 0 or 1 it is the one of
  Clopper and Pearson. That it always covers is a conjecture to which no exception is known (Gaffke
  2005; Learned-Miller and Thomas, arXiv:1905.06208). Where the range is not known, the extremes of
  the runs seen stand in for it.

**What no such interval can see.** A group of runs with probability p is missed by all n runs with
probability (1 − p)^n. So where the range is unknown, 100 runs may miss a group of 3 %
(:func:`unseen_share`), and if it lies far away, the interval knows nothing of it. Judged numbers
tell where such a group would have to lie to undo their verdict.

**All runs equal.** Without spread and without a known range there is no interval: equal runs do not
show that all are.

Measured coverage stands in docs/intervals.md (``python -m benchmarks.intervals``).
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
    "unseen_share",
]

CONFIDENCE = 0.95
MINIMUM_RUNS = 3
"""Fewest runs with an interval.

Two leave one degree of freedom, and an interval of ±12.7 standard errors.
"""

ROUNDING = 1e-12
"""Spread relative to the size of the numbers that counts as none."""

AT_ONCE = 1_000_000
"""Numbers handed to the quantile at once."""

SHARE = (0.0, 1.0)
"""The range of a share or a probability."""

Ends: TypeAlias = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Estimate:
    """A mean over runs with its interval; arrays of one shape, or single numbers.

    Attributes
    ----------
    mean, standard_error : array
        NaN where there is no run, and no second run.
    low, high : array
        Ends of the interval; NaN for fewer than :data:`MINIMUM_RUNS` runs, and where all runs are
        equal.
    runs : int
    confidence : float
        Of the interval.
    exact : bool
        Whether the number is no average and nothing about it is left to chance.
    seen : pair of arrays, or None
        Smallest and largest number of a run, where they stand in for a range that is not known.
    ends : function of a confidence, or None
        The interval anew.
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
        """Whether a single number has no interval because all runs are equal."""
        return self.has_interval and bool(np.isnan(self.low)) and not bool(np.isnan(self.mean))

    @property
    def reach(self) -> FloatArray:
        """How far the interval reaches below and above the mean, (2, …), as error bars want it.

        0 where there is none.
        """
        reach: FloatArray = np.nan_to_num(np.stack([self.mean - self.low, self.high - self.mean]))
        return reach

    def at_confidence(self, confidence: float) -> Estimate:
        """The same with an interval of another confidence."""
        if self.exact or confidence == self.confidence:
            return self
        if self.ends is None:
            raise InvalidInputError(
                f"confidence must be {self.confidence:g}, that of the only interval known"
            )
        low, high = self.ends(confidence)
        return replace(self, low=low, high=high, confidence=confidence)

    def at(self, index: Any) -> Estimate:
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
        """All numbers times a positive ``factor``."""
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
        """``{"mean": …, "ci95": [low, high]}`` with None for what is not known.

        Lists where this is an array.
        """
        usual = self.at_confidence(CONFIDENCE)
        ends = np.stack([usual.low, usual.high], axis=-1)
        return {"mean": _plain(self.mean), "ci95": _plain(ends) if self.has_interval else None}

    def __str__(self) -> str:
        """A single number as "mean [low, high]" to four figures."""
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
    """Mean and 95 % interval over the first axis (the runs); see the module.

    Parameters
    ----------
    samples : (R, …) array
        One entry per independent run; R may be 0. Where one is not finite, neither mean nor
        interval is known.
    bounds : (float, float), optional
        Range in which every run's number must lie, if that is known.
    scale : float
        Size of the numbers that the samples were computed from, if they are larger than the
        samples: spread below their rounding is none.
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

    ``happened`` holds truth values, or 0, 1 and NaN. Where one is unknown, or there is no trial,
    the share is unknown, too.
    """
    trials = np.asarray(happened, dtype=np.float64).reshape(-1)
    if trials.size == 0 or not np.isfinite(trials).all():
        return estimate(trials)
    if not np.isin(trials, SHARE).all():
        raise InvalidInputError("happened must be truth values, 0 or 1; got other numbers")
    share = float(trials.mean())
    error = np.sqrt(share * (1.0 - share) / trials.size)

    def ends(confidence: float) -> Ends:
        low, high = clopper_pearson(int(trials.sum()), trials.size, confidence)
        return np.asarray(low), np.asarray(high)

    return Estimate(np.asarray(share), np.asarray(error), *ends(CONFIDENCE), trials.size, ends=ends)


def exact_number(value: float, trials: int) -> Estimate:
    """A number that is no average: it was looked at in all trials, and chance plays no part in it.

    Without a trial nothing is known.
    """
    if trials < 1:
        return estimate(np.empty(0))
    number = np.asarray(float(value))
    return Estimate(number, np.zeros_like(number), number, number, trials, exact=True)


def unseen_share(runs: int) -> float:
    """The largest group of runs, as a share, that ``runs`` runs miss with a probability of 5 %."""
    return float(1.0 - (1.0 - CONFIDENCE) ** (1.0 / runs)) if runs > 0 else 1.0


def ratio_samples(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Per-run numbers whose mean is mean(numerator) / mean(denominator).

    Their standard error is that of the ratio of means to first order (the delta method), with the
    correlation of numerator and denominator on common seeds taken into account.
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
    """Ends for every one of.

    (m, R) rows, with one run more at ``least`` and at ``most``, (m,) each.
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
            # in units of the range, so that quantiles are as accurate for any numbers
            points = (np.column_stack([rows[some], extreme[some]]) - centre[some]) / spread[some]
            quantile = dirichlet.quantile(np.ones(runs + 1), points, level)
            end[some] = centre[some, 0] + spread[some, 0] * quantile
    # rounding must not carry an end beyond the range
    return np.maximum(low, least), np.minimum(high, most)


def _as_bounds(bounds: tuple[float, float], least: Any, most: Any) -> Ends:
    """Both ends for every entry, which the numbers must not exceed but by rounding."""
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
    """Python numbers, None for NaN, for JSON."""
    plain = array.astype(object)
    plain[np.isnan(array)] = None
    return plain.tolist()


def _t_quantile(runs: int, confidence: float) -> float:
    from scipy.special import (
        stdtrit,
    )  # the same number as scipy.stats.t.ppf, without its second of import

    return float(stdtrit(runs - 1, 0.5 + confidence / 2.0))
