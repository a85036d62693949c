"""The one interface between beliefs and planners: a value and a risk-adjusted row.

A risk measure, bound to a belief, turns next-state targets w = r + γV into a value q(s,a) for each
pair and a probability row p̂(·|s,a) with q(w + dw) ≈ q(w) + p̂·dw. Planners know nothing else.
Every measure is monotone and translation invariant in w, so the Bellman operator built from it is a
γ-contraction (the saddlepoint approximation is not; it says so).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from brmdp._kernels import linear
from brmdp._validation import FloatArray, IntArray
from brmdp.beliefs.base import Belief
from brmdp.errors import InvalidInputError
from brmdp.pattern import TransitionPattern

__all__ = [
    "APPROXIMATE",
    "BASES",
    "EXACT",
    "SAMPLED",
    "FixedKernel",
    "RiskMeasure",
    "RiskOperator",
    "levels_by_pair",
    "rounding",
]

EXACT, SAMPLED, APPROXIMATE = "exact", "sampled", "approximate"
BASES = (EXACT, SAMPLED, APPROXIMATE)
"""What the values of a bound measure are.

Those of the belief itself, up to the reported error; those of draws from it, which tell how far a
solution is from the solution *for these draws*; or estimates without a bound.
"""


def rounding(pattern: TransitionPattern, targets_size: float) -> float:
    """Bound on the rounding error of Σ p w for targets of at most this size.

    Half an epsilon for each of the n terms of the sum, as much for the sum by which p was divided,
    and a few more.
    """
    return (pattern.widest + 8) * float(np.finfo(np.float64).eps) * targets_size


class RiskOperator(Protocol):
    """A risk measure applied to one belief, frozen for the length of a solve."""

    basis: str
    """What the values are, one of :data:`BASES`: "exact", "sampled" or "approximate"."""

    def fixed_entries(self) -> FloatArray | None:
        """The rows of all pairs, where they do not depend on the targets (a linear measure).

        Else None.
        """
        ...

    def evaluate(self, targets: FloatArray, pairs: IntArray, out: FloatArray) -> float:
        """Write q into out[pairs], and nowhere else.

        Return a bound on the numerical error of each.
        """
        ...

    def rows(
        self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True
    ) -> FloatArray:
        """Risk-adjusted rows of ``pairs``, one after another.

        ``values`` is what ``evaluate`` wrote.

        Each is a probability vector over the pair's possible transitions. With ``precise=False`` an
        estimate good enough for Newton's method will do.
        """
        ...

    def approximation(self) -> RiskOperator | None:
        """A much cheaper measure with nearly the same values, to start from.

        None if there is none.
        """
        ...


class RiskMeasure(Protocol):
    """A way to turn doubt about the kernel into a single value; see :meth:`bind`.

    A measure with a level has ``at_level(alpha)``, which gives the same measure at another one. A
    measure that remembers something from plan to plan (a random stream, draws) has ``memory()``,
    named arrays, and ``restore(memory)``; an agent goes back to them when a plan fails or is
    interrupted. Where ``memory()`` is costly, ``checkpoint()`` may give a function that goes back,
    or None; it must work more than once.
    """

    def bind(self, belief: Belief) -> RiskOperator:
        """Apply to a belief, taking a snapshot of what it needs."""
        ...


class FixedKernel:
    """The expectation under one kernel: the posterior mean, a posterior draw, or a known kernel."""

    def __init__(
        self, pattern: TransitionPattern, probabilities: FloatArray, basis: str = EXACT
    ) -> None:
        if probabilities.shape != (pattern.n_transitions,):
            raise InvalidInputError(
                f"probabilities must be one per possible transition, ({pattern.n_transitions},); "
                f"got {probabilities.shape}"
            )
        self.pattern = pattern
        self.probabilities = probabilities
        self.basis = basis

    def evaluate(self, targets: FloatArray, pairs: IntArray, out: FloatArray) -> float:
        """Σ p w for each pair."""
        largest = linear.weighted_sums(pairs, self.pattern.indptr, self.probabilities, targets, out)
        return rounding(self.pattern, float(largest))

    def rows(
        self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True
    ) -> FloatArray:
        """The kernel's own rows."""
        pointers = np.empty(pairs.size + 1, dtype=np.int64)
        linear.row_pointers(pairs, self.pattern.indptr, pointers)
        out = np.empty(int(pointers[-1]))
        linear.copy_rows(pairs, self.pattern.indptr, self.probabilities, out)
        return out

    def fixed_entries(self) -> FloatArray | None:
        """The kernel itself."""
        return self.probabilities

    def approximation(self) -> RiskOperator | None:
        """Nothing is cheaper."""
        return None


def levels_by_pair(
    levels: FloatArray, pattern: TransitionPattern, name: str = "alpha"
) -> FloatArray:
    """A scalar or (S, A) array of levels as one level per pair."""
    shape = (pattern.n_states, pattern.n_actions)
    if levels.ndim and levels.shape != shape:
        raise InvalidInputError(
            f"{name} must be a number or have shape {shape}, one level per (s, a); got "
            f"{levels.shape}"
        )
    return np.broadcast_to(levels, shape).reshape(-1).astype(np.float64)
