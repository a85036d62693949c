"""One number per run: what claims and tables compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from brmdp._validation import FloatArray
from brmdp.envs.frozenlake import DOWN, HOLES, SHORTCUT_STATE
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
from brmdp.runs import CaseRecords

__all__ = [
    "AVERAGE_REWARD",
    "HOLE_SHARE",
    "LAST_REWARD",
    "LEFT_SHARE",
    "QUANTILE_VALUE",
    "RIGHT_SHARE",
    "RISE_TIME",
    "ROBUST_REGRET",
    "SECONDS",
    "SECOND_HALF_SHARE",
    "SHARE",
    "SHORTCUT_USES",
    "TRUE_REGRET",
    "Statistic",
]

HALF_OF_RIGHT = 0.1286
"""Half of what always swimming right earns per step of RiverSwim in the long run (0.2572)."""

SHARE = (0.0, 1.0)


@dataclass(frozen=True)
class Statistic:
    """A number for every run.

    Attributes
    ----------
    name : str
        What it is; ``{steps}`` stands for the number of shown steps, at which all measures look.
    of : function of (CaseRecords, steps)
        Returns (R,) numbers, or None where they were not recorded.
    bounds : (float, float), optional
        Range in which the number of every run must lie, if there is one. Intervals of its mean then
        assume nothing else. (Those of differences do not use it: runs unseen at the far end of [−1,
        1] would leave no difference below 0.04 resolved at 100 runs.)
    """

    name: str
    of: Callable[[CaseRecords, int], FloatArray | None]
    bounds: tuple[float, float] | None = None

    def samples(self, records: CaseRecords) -> FloatArray | None:
        """(R,) numbers of the shown steps, or None where they were not recorded."""
        return self.of(records, reported_steps(records))

    def named(self, records: CaseRecords) -> str:
        """Its name with the number of steps."""
        return self.name.format(steps=reported_steps(records))


def _after(curve: Curve | None, steps: int) -> FloatArray | None:
    return None if curve is None else curve.after(steps)


def _last_reward(records: CaseRecords, steps: int) -> FloatArray | None:
    return moving_average_reward(records).after(steps) if steps >= WINDOW else None


def _rise_time(records: CaseRecords, steps: int) -> FloatArray:
    curve = moving_average_reward(records).until(steps)
    risen = np.column_stack([curve.values >= HALF_OF_RIGHT, np.ones(records.run.size, dtype=bool)])
    times: FloatArray = np.append(curve.step, steps)[risen.argmax(axis=1)].astype(np.float64)
    return times


def _left(records: CaseRecords, steps: int) -> FloatArray:
    return _share(records, steps, range(max(1, records.n_states // 3)))


def _right(records: CaseRecords, steps: int) -> FloatArray:
    return _share(
        records, steps, range(records.n_states - max(1, records.n_states // 3), records.n_states)
    )


def _holes(records: CaseRecords, steps: int) -> FloatArray:
    return _share(records, steps, HOLES)


def _share(records: CaseRecords, steps: int, states: Sequence[int]) -> FloatArray:
    share: FloatArray = occupancy(records, steps)[:, list(states)].sum(axis=1)
    return share


def _second_half(records: CaseRecords, steps: int) -> FloatArray:
    regret = cumulative_true_regret(records)
    total = regret.after(steps)
    late = total - regret.after(max(1, steps // 2))
    # no regret at all grows as linearly as any; where that is rounding, parts may exceed the whole
    share: FloatArray = np.divide(late, total, out=np.full(total.shape, 0.5), where=~(total <= 0.0))
    return np.clip(share, *SHARE)


def _mean_quantile_value(records: CaseRecords, steps: int) -> FloatArray | None:
    curve = quantile_value(records)
    return None if curve is None else np.asarray(curve.until(steps).values.mean(axis=1))


def _shortcut_uses(records: CaseRecords, steps: int) -> FloatArray:
    taken = (records.state[:, :steps] == SHORTCUT_STATE) & (records.action[:, :steps] == DOWN)
    uses: FloatArray = taken.sum(axis=1).astype(np.float64)
    return uses


TRUE_REGRET = Statistic(
    "cumulative true regret after {steps} steps", lambda r, n: cumulative_true_regret(r).after(n)
)
ROBUST_REGRET = Statistic(
    "cumulative robust regret after {steps} steps",
    lambda r, n: _after(cumulative_robust_regret(r), n),
)
AVERAGE_REWARD = Statistic(
    "average reward over the first {steps} steps", lambda r, n: cumulative_reward(r).after(n) / n
)
LAST_REWARD = Statistic(f"average reward over the last {WINDOW} of {{steps}} steps", _last_reward)
RISE_TIME = Statistic(
    f"steps until the moving-average reward reaches {HALF_OF_RIGHT:g}, {{steps}} if it never does",
    _rise_time,
)
LEFT_SHARE = Statistic("share of the first {steps} steps in the leftmost third", _left, SHARE)
RIGHT_SHARE = Statistic("share of the first {steps} steps in the rightmost third", _right, SHARE)
SECOND_HALF_SHARE = Statistic(
    "share of the true regret of the first {steps} steps that falls into their second half",
    _second_half,
    SHARE,
)
QUANTILE_VALUE = Statistic(
    "posterior quantile value at the first state, averaged over the diagnostic times",
    _mean_quantile_value,
)
SHORTCUT_USES = Statistic("uses of the shortcut (2, Down) in {steps} steps", _shortcut_uses)
HOLE_SHARE = Statistic("share of the first {steps} steps in holes", _holes, SHARE)
SECONDS = Statistic("seconds per run", lambda r, _: r.seconds)
