"""Statistics that are specific to the paper's worlds."""

from __future__ import annotations

import numpy as np

from brmdp._validation import FloatArray
from brmdp.envs.frozenlake import DOWN, HOLES, SHORTCUT_STATE
from brmdp.report.curves import moving_average_reward
from brmdp.report.estimates import SHARE
from brmdp.report.statistics import Statistic, share_of_steps
from brmdp.runs import CaseRecords

__all__ = [
    "HALF_OF_RIGHT",
    "HOLE_SHARE",
    "LEFT_SHARE",
    "RIGHT_SHARE",
    "RISE_TIME",
    "SHORTCUT_USES",
]

HALF_OF_RIGHT = 0.1286
"""Half of what always swimming right in RiverSwim earns per step in the long run (0.2572)."""


def _rise_time(records: CaseRecords, steps: int) -> FloatArray:
    curve = moving_average_reward(records).until(steps)
    risen = np.column_stack([curve.values >= HALF_OF_RIGHT, np.ones(records.run.size, dtype=bool)])
    times: FloatArray = np.append(curve.step, steps)[risen.argmax(axis=1)].astype(np.float64)
    return times


def _left(records: CaseRecords, steps: int) -> FloatArray:
    return share_of_steps(records, steps, range(max(1, records.n_states // 3)))


def _right(records: CaseRecords, steps: int) -> FloatArray:
    n = records.n_states
    return share_of_steps(records, steps, range(n - max(1, n // 3), n))


def _holes(records: CaseRecords, steps: int) -> FloatArray:
    return share_of_steps(records, steps, HOLES)


def _shortcut_uses(records: CaseRecords, steps: int) -> FloatArray:
    taken = (records.state[:, :steps] == SHORTCUT_STATE) & (records.action[:, :steps] == DOWN)
    uses: FloatArray = taken.sum(axis=1).astype(np.float64)
    return uses


RISE_TIME = Statistic(
    f"steps until the moving-average reward reaches {HALF_OF_RIGHT:g}, {{steps}} if it never does",
    _rise_time,
)
LEFT_SHARE = Statistic("share of the first {steps} steps in the leftmost third", _left, SHARE)
RIGHT_SHARE = Statistic("share of the first {steps} steps in the rightmost third", _right, SHARE)
SHORTCUT_USES = Statistic("uses of the shortcut (2, Down) in {steps} steps", _shortcut_uses)
HOLE_SHARE = Statistic("share of the first {steps} steps in holes", _holes, SHARE)
