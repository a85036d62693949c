"""Means over independent runs and their Student t intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from brmdp._validation import FloatArray

__all__ = ["CONFIDENCE", "MINIMUM_RUNS", "Estimate", "estimate", "ratio_samples"]

CONFIDENCE = 0.95
MINIMUM_RUNS = 3
"""Fewest runs with an interval: two leave one degree of freedom, and an interval of ±12.7 standard errors."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A mean over runs with its 95 % interval; arrays of one shape, or single numbers.

    Attributes
    ----------
    mean, standard_error : array
        NaN where there is no run, and no second run.
    low, high : array
        Ends of the interval; NaN for fewer than :data:`MINIMUM_RUNS` runs.
    runs : int
    """

    mean: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    runs: int

    @property
    def has_interval(self) -> bool:
        """Whether there are enough runs for an interval."""
        return self.runs >= MINIMUM_RUNS

    def at(self, index: Any) -> Estimate:
        """The entries at ``index``."""
        mean, error, low, high = (
            np.asarray(part[index]) for part in (self.mean, self.standard_error, self.low, self.high)
        )
        return Estimate(mean, error, low, high, self.runs)

    def as_json(self) -> dict[str, Any]:
        """``{"mean": …, "ci95": [low, high]}`` with None for what is not known; lists where this is an array."""
        ends = np.stack([self.low, self.high], axis=-1)
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
            form = f".{int(np.clip(3 - np.floor(np.log10(largest)), 0, 6)) if largest > 0.0 else 0}f"
        return f"{mean:{form}}" if np.isnan(low) else f"{mean:{form}} [{low:{form}}, {high:{form}}]"


def estimate(samples: Any) -> Estimate:
    """Mean and 95 % Student t interval over the first axis (the runs).

    Parameters
    ----------
    samples : (R, …) array
        One entry per independent run; R may be 0.
    """
    values = np.asarray(samples, dtype=np.float64)
    runs = values.shape[0]
    unknown = np.full(values.shape[1:], np.nan)
    mean = np.asarray(values.mean(axis=0)) if runs > 0 else unknown
    error = np.asarray(values.std(axis=0, ddof=1) / np.sqrt(runs)) if runs > 1 else unknown
    reach = _t_quantile(runs) * error if runs >= MINIMUM_RUNS else unknown
    return Estimate(mean, error, mean - reach, mean + reach, runs)


def ratio_samples(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Per-run numbers whose mean is mean(numerator) / mean(denominator).

    Their standard error is that of the ratio of means to first order (the delta method), with the correlation of
    numerator and denominator on common seeds taken into account.
    """
    if numerator.size == 0:
        return numerator
    scale = float(denominator.mean())
    if scale == 0.0:
        return np.full(numerator.shape, np.nan)
    ratio = float(numerator.mean()) / scale
    samples: FloatArray = ratio + (numerator - ratio * denominator) / scale
    return samples


def _plain(array: FloatArray) -> Any:
    """Python numbers, None for NaN, for JSON."""
    plain = array.astype(object)
    plain[np.isnan(array)] = None
    return plain.tolist()


def _t_quantile(runs: int) -> float:
    from scipy.special import stdtrit  # the same number as scipy.stats.t.ppf, without its second of import

    return float(stdtrit(runs - 1, 0.5 + CONFIDENCE / 2.0))
