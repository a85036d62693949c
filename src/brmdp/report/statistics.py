"""Statistics, one number per run, that claims and tables compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from brmdp._validation import FloatArray
from brmdp.report.curves import (
    WINDOW,
    Curve,
    cumulative_reward,
    cumulative_robust_regret,
    cumulative_true_regret,
    moving_average_reward,
    occupancy,
    quantile_value,
    reported_steps,
)
from brmdp.report.estimates import SHARE, ratio_samples
from brmdp.runs import CaseRecords

__all__ = [
    "AVERAGE_REWARD",
    "LAST_REWARD",
    "LATE_SHARE",
    "QUANTILE_VALUE",
    "ROBUST_REGRET",
    "SECONDS",
    "SECOND_HALF_SHARE",
    "TRUE_REGRET",
    "Statistic",
    "share_of_steps",
]


@dataclass(frozen=True)
class Statistic:
    """A number for every run.

    Attributes
    ----------
    name : str
        What it is, in words; ``{steps}`` stands for the number of reported steps, which all
        statistics cover.
    of : function of (CaseRecords, steps)
        Returns (R,) numbers, or None if they were not recorded.
    bounds : (float, float), optional
        Range in which the number of every run must lie, if there is one. Intervals for its mean
        then assume nothing else. Intervals for differences do not use it: allowing for unseen runs
        at the far end of [−1, 1] would leave no difference below 0.04 resolved at 100 runs.

    Examples
    --------
    >>> from brmdp.report import Statistic
    >>> total = Statistic("total reward in {steps} steps", lambda records, steps:
    ...     records.reward[:, :steps].sum(axis=1))
    >>> total.name.format(steps=100)
    'total reward in 100 steps'
    """

    name: str
    of: Callable[[CaseRecords, int], FloatArray | None]
    bounds: tuple[float, float] | None = None

    def samples(self, records: CaseRecords) -> FloatArray | None:
        """(R,) numbers over the reported steps, or None if they were not recorded."""
        return self.of(records, reported_steps(records))

    def named(self, records: CaseRecords) -> str:
        """The name with the number of steps filled in."""
        return self.name.format(steps=reported_steps(records))


def share_of_steps(records: CaseRecords, steps: int, states: Sequence[int]) -> FloatArray:
    """(R,) share of the first ``steps`` steps spent in any of ``states``."""
    share: FloatArray = occupancy(records, steps)[:, list(states)].sum(axis=1)
    return share


def _after(curve: Curve | None, steps: int) -> FloatArray | None:
    return None if curve is None else curve.after(steps)


def _last_reward(records: CaseRecords, steps: int) -> FloatArray | None:
    return moving_average_reward(records).after(steps) if steps >= WINDOW else None


def _second_half(records: CaseRecords, steps: int) -> FloatArray | None:
    regret = cumulative_true_regret(records)
    if regret is None:
        return None
    total = regret.after(steps)
    late = total - regret.after(max(1, steps // 2))
    # zero regret counts as linear growth; if it is only rounding, a part may exceed the whole
    share: FloatArray = np.divide(late, total, out=np.full(total.shape, 0.5), where=~(total <= 0.0))
    return np.clip(share, *SHARE)


def _late_share(records: CaseRecords, steps: int) -> FloatArray | None:
    """Per-run numbers whose mean is the share of the mean regret in the second half."""
    regret = cumulative_true_regret(records)
    if regret is None or steps < 2:
        return None
    total = regret.after(steps)
    return ratio_samples(total - regret.after(steps // 2), total)


def _mean_quantile_value(records: CaseRecords, steps: int) -> FloatArray | None:
    curve = quantile_value(records)
    return None if curve is None else np.asarray(curve.until(steps).values.mean(axis=1))


TRUE_REGRET = Statistic(
    "cumulative true regret after {steps} steps",
    lambda records, steps: _after(cumulative_true_regret(records), steps),
)
ROBUST_REGRET = Statistic(
    "cumulative robust regret after {steps} steps",
    lambda records, steps: _after(cumulative_robust_regret(records), steps),
)
AVERAGE_REWARD = Statistic(
    "average reward over the first {steps} steps",
    lambda records, steps: cumulative_reward(records).after(steps) / steps,
)
LAST_REWARD = Statistic(f"average reward over the last {WINDOW} of {{steps}} steps", _last_reward)
SECOND_HALF_SHARE = Statistic(
    "share of the true regret of the first {steps} steps that falls in their second half",
    _second_half,
    SHARE,
)
LATE_SHARE = Statistic(
    "share of the mean true regret of the first {steps} steps that falls in their second half",
    _late_share,
)
"""How regret grows: 1 − 2^(−p) for regret of order T^p, so 0.5 if it is linear and 0.29 for √T.

It is a ratio of means over the runs, since a single run may have no regret to divide by.
"""
QUANTILE_VALUE = Statistic(
    "posterior quantile value at the first state, averaged over the diagnostic times",
    _mean_quantile_value,
)
SECONDS = Statistic("seconds per run", lambda records, _: records.seconds)
