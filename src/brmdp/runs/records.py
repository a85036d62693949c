"""The stored runs of one case, side by side: what reports and figures work on."""

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

    Beside the columns of :class:`brmdp.simulation.Steps`, each an (R, T) array, or None if it was
    not recorded:

    Attributes
    ----------
    quantile_step : (D,) integers
        When the posterior quantile value was looked at.
    quantile_value : (R, D) array
        Empty if not recorded.
    case : Case
    run : (R,) integers
        Run numbers; equal numbers of different cases share their seeds.
    seconds : (R,) array
        Processor time of each run, which other work on the machine hardly disturbs.
    n_states : int
    made_by : tuple of (str, str)
        Version of brmdp and digest of the code that made the runs: one pair, unless somebody
        insisted on more.
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
        Run numbers; equal numbers of different cases share their seeds.
    columns : Columns
        As the program declares them, each an (R, n) array.
    seconds : (R,) array
        Processor time of each run, which other work on the machine hardly disturbs.
    made_by : tuple of (str, str)
        Version of brmdp and digest of the code that made the runs: one pair, unless somebody
        insisted on more.
    """

    case: Computation
    run: IntArray
    columns: T
    seconds: FloatArray
    made_by: tuple[tuple[str, str], ...] = ()

    @property
    def pooled(self) -> T:
        """The columns of all runs behind one another, each an (R·n,) array."""
        return self.columns.flat()
