"""What figures show, run by run: regrets, rewards, occupancy and posterior quantile values.

A curve is indexed by the number of steps *done*: its value at n covers the paper's steps
t = 0, …, n − 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.errors import InvalidInputError
from brmdp.report.estimates import Estimate, estimate
from brmdp.runs import CaseRecords

__all__ = [
    "WINDOW",
    "Curve",
    "accumulated",
    "common_runs",
    "cumulative_reward",
    "cumulative_robust_regret",
    "cumulative_true_regret",
    "moving_average_reward",
    "occupancy",
    "quantile_value",
    "reported_steps",
]

WINDOW = 100
"""Window of the moving-average reward in the paper."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A quantity along the steps of R runs.

    Attributes
    ----------
    run : (R,) integers
        Run numbers; runs of the same number in different cases share their seeds.
    step : (D,) integers
        Numbers of steps done, increasing.
    values : (R, D) array
        The quantity in each run after each of these steps.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records("mean")
    >>> from brmdp.report import cumulative_reward
    >>> curve = cumulative_reward(records)
    >>> curve.values.shape
    (2, 200)
    """

    run: IntArray
    step: IntArray
    values: FloatArray

    def estimate(self) -> Estimate:
        """Mean and interval over the runs, at every step."""
        return estimate(self.values)

    def until(self, step: int) -> Curve:
        """The part up to and including ``step`` steps."""
        end = int(np.searchsorted(self.step, step, side="right"))
        return Curve(self.run, self.step[:end], self.values[:, :end])

    def after(self, step: int) -> FloatArray:
        """Every run's value after exactly ``step`` steps."""
        position = int(np.searchsorted(self.step, step))
        if position == self.step.size or self.step[position] != step:
            known = f"{self.step[0]}..{self.step[-1]}" if self.step.size else "none"
            raise InvalidInputError(f"step must be one of the curve's steps ({known}); got {step}")
        return self.values[:, position]

    def __sub__(self, other: Curve) -> Curve:
        """The difference run by run, over the runs and steps that both curves have."""
        mine, theirs = common_runs(self.run, other.run)
        steps, columns, other_columns = np.intersect1d(self.step, other.step, return_indices=True)
        difference = (
            self.values[np.ix_(mine, columns)] - other.values[np.ix_(theirs, other_columns)]
        )
        return Curve(self.run[mine], steps, difference)


def common_runs(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Positions, in each array, of the run numbers that both have: pairs with common seeds."""
    _, in_first, in_second = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    return in_first, in_second


def reported_steps(records: CaseRecords) -> int:
    """How many steps figures and claims cover.

    This is the case's ``reported_steps``, or all steps if there are fewer.
    """
    total = int(records.reward.shape[1])
    return min(records.case.reported_steps, total)


def accumulated(records: CaseRecords, column: str) -> Curve | None:
    """The sum of a column over the steps done; None if it was not recorded.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records("mean")
    >>> from brmdp.report import accumulated
    >>> curve = accumulated(records, "reward")
    >>> bool(abs(curve.values[:, -1] - records.reward.sum(axis=1)).max() < 1e-9)
    True
    """
    per_step = getattr(records, column)
    if per_step is None:
        return None
    return Curve(records.run, np.arange(1, per_step.shape[1] + 1), np.cumsum(per_step, axis=1))


def cumulative_true_regret(records: CaseRecords) -> Curve | None:
    """Σ_{t<n} (V*(s_t) − V^{π_k}(s_t)), or None if it was not recorded.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records("mean")
    >>> from brmdp.report import cumulative_true_regret
    >>> bool((cumulative_true_regret(records).values >= 0).all())
    True
    """
    return accumulated(records, "true_regret")


def cumulative_robust_regret(records: CaseRecords) -> Curve | None:
    """Σ_{t<n} (V*_{φ_k,α̲}(s_t) − V^{π_k}_{φ_k,α̲}(s_t)), or None if it was not recorded.

    Examples
    --------
    It is recorded if the case has a ``robust_level``:

    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6}, robust_level=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records("mean")
    >>> from brmdp.report import cumulative_robust_regret
    >>> cumulative_robust_regret(records).values.shape
    (2, 200)
    """
    return accumulated(records, "robust_regret")


def cumulative_reward(records: CaseRecords) -> Curve:
    """Σ_{t<n} r_t.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records("mean")
    >>> from brmdp.report import cumulative_reward
    >>> cumulative_reward(records).values.shape
    (2, 200)
    """
    curve = accumulated(records, "reward")
    assert curve is not None
    return curve


def moving_average_reward(records: CaseRecords, window: int = WINDOW) -> Curve:
    """The mean of the last ``window`` rewards.

    The paper's r̄_t = w⁻¹ Σ_{τ=t−w+1}^{t} r_τ stands at n = t + 1 steps. It needs w rewards, so the
    curve begins at n = w, with no shorter averages before. It is empty if there are fewer than w
    steps.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records("mean")
    >>> from brmdp.report import moving_average_reward
    >>> int(moving_average_reward(records, window=50).step[0])
    50
    """
    sums = np.cumsum(np.pad(records.reward, ((0, 0), (1, 0))), axis=1)
    return Curve(
        records.run,
        np.arange(window, sums.shape[1]),
        (sums[:, window:] - sums[:, :-window]) / window,
    )


def quantile_value(records: CaseRecords) -> Curve | None:
    """Estimated posterior quantile value of the policy at the first state; None if not recorded.

    Examples
    --------
    It is recorded if the case has a ``quantile_level``:

    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6}, quantile_level=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records("mean")
    >>> from brmdp.report import quantile_value
    >>> quantile_value(records).values.shape[0]
    2
    """
    if records.quantile_value.size == 0:
        return None
    return Curve(records.run, records.quantile_step, records.quantile_value)


def occupancy(records: CaseRecords, steps: int | None = None) -> FloatArray:
    """d̂(s), (R, S): the share of the first ``steps`` steps that each run spent in each state.

    ``steps`` defaults to the reported steps.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records("mean")
    >>> from brmdp.report import occupancy
    >>> occupancy(records).sum(axis=1).round(12).tolist()
    [1.0, 1.0]
    """
    count = reported_steps(records) if steps is None else min(steps, int(records.state.shape[1]))
    states = records.state[:, :count]
    runs = states.shape[0]
    cells = np.arange(runs)[:, None] * records.n_states + states
    visits = np.bincount(cells.ravel(), minlength=runs * records.n_states)
    shares: FloatArray = visits.reshape(runs, records.n_states) / count
    return shares
