"""The stored runs of one case as arrays, from which reports and figures are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from brmdp._columns import Columns
from brmdp._validation import FloatArray, IntArray
from brmdp.runs.spec import Case, Computation
from brmdp.simulation import Steps

__all__ = ["CaseRecords", "Replications"]

T = TypeVar("T", bound=Columns)


@dataclass(frozen=True, eq=False, kw_only=True)
class CaseRecords(Steps):
    """R runs of T steps of one case, in the order of their run numbers.

    Each column of :class:`brmdp.simulation.Steps` is an (R, T) array, or None if it was not
    recorded. In addition there are:

    Attributes
    ----------
    quantile_step : (D,) integers
        Steps at which the posterior quantile value was computed.
    quantile_value : (R, D) array
        Posterior quantile values at these steps; empty if they were not recorded.
    case : Case
    run : (R,) integers
        Run numbers; runs of the same number in different cases share their seeds.
    seconds : (R,) array
        Processor time of each run, which other work on the machine hardly affects.
    n_states : int
        Number of states.
    made_by : tuple of (str, str)
        Version of brmdp and digest of the code that made the runs; one pair, unless runs of other
        code were accepted.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records("mean")
    >>> records.reward.shape, records.n_states
    ((2, 200), 6)
    """

    quantile_step: IntArray
    quantile_value: FloatArray
    case: Case
    run: IntArray
    seconds: FloatArray
    n_states: int
    made_by: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Replications(Generic[T]):
    """R replications of a computation, in the order of their run numbers.

    Attributes
    ----------
    case : Computation
    run : (R,) integers
        Run numbers; runs of the same number in different cases share their seeds.
    columns : Columns
        The columns that the program declares, each an (R, n) array.
    seconds : (R,) array
        Processor time of each run, which other work on the machine hardly affects.
    made_by : tuple of (str, str)
        Version of brmdp and digest of the code that made the runs; one pair, unless runs of other
        code were accepted.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Experiment, run_experiment
    >>> from brmdp.studies import find_study
    >>> case = find_study("lemmas").experiment.cases[0]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records(case.name)
    >>> records.run.tolist()
    [0, 1]
    """

    case: Computation
    run: IntArray
    columns: T
    seconds: FloatArray
    made_by: tuple[tuple[str, str], ...] = ()

    @property
    def pooled(self) -> T:
        """The columns with all runs concatenated, each an (R·n,) array."""
        return self.columns.flat()
