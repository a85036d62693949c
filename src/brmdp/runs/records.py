"""The stored runs of one case, side by side: what analysis and figures work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from brmdp._validation import FloatArray, IntArray
from brmdp.runs.spec import Case, Computation

__all__ = ["CaseRecords", "Replications"]


@dataclass(frozen=True, eq=False)
class CaseRecords:
    """R runs of T steps of one case, in the order of their run numbers.

    Attributes
    ----------
    case : Case
    run : (R,) integers
        Run numbers; equal numbers of different cases share their seeds.
    state, action, episode : (R, T) integers
    reward : (R, T) array
    true_regret : (R, T) array
        Per step, not accumulated.
    robust_regret : (R, T) array or None
        Likewise.
    quantile_step : (D,) integers
    quantile_value : (R, D) array
        Empty if not recorded.
    seconds : (R,) array
        Processor time of each run, which other work on the machine hardly disturbs.
    n_states : int
    made_by : tuple of (str, str)
        Version of brmdp and digest of the code that made the runs: one pair, unless somebody
        insisted on more.
    """

    case: Case
    run: IntArray
    state: IntArray
    action: IntArray
    episode: IntArray
    reward: FloatArray
    true_regret: FloatArray
    robust_regret: FloatArray | None
    quantile_step: IntArray
    quantile_value: FloatArray
    seconds: FloatArray
    n_states: int
    made_by: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Replications:
    """R replications of a computation, in the order of their run numbers.

    Attributes
    ----------
    case : Computation
    run : (R,) integers
        Run numbers; equal numbers of different cases share their seeds.
    columns : mapping
        (R, n) arrays by name.
    seconds : (R,) array
        Processor time of each run, which other work on the machine hardly disturbs.
    made_by : tuple of (str, str)
        Version of brmdp and digest of the code that made the runs: one pair, unless somebody
        insisted on more.
    """

    case: Computation
    run: IntArray
    columns: Mapping[str, NDArray[Any]]
    seconds: FloatArray
    made_by: tuple[tuple[str, str], ...] = ()
