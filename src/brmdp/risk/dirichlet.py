"""Exact quantile, exact CVaR and saddlepoint quantile of Dirichlet rows.

The numerical method is described in ``brmdp/_kernels/dirichlet.py``.
"""

from __future__ import annotations

from typing import Protocol, TypeGuard

import numpy as np

from brmdp._kernels import dirichlet, linear
from brmdp._validation import FloatArray, IntArray
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import dirichlet_rows_of
from brmdp.risk.base import APPROXIMATE, EXACT, FixedKernel, RiskOperator
from brmdp.risk.threads import for_chunks

__all__ = ["DirichletMeasure", "DirichletRows", "has_dirichlet_rows"]


class DirichletRows(Belief, Protocol):
    """A belief in which every row, taken alone, is a Dirichlet vector."""

    @property
    def concentration_entries(self) -> FloatArray:
        """Concentrations, pair after pair, or shared by all pairs."""
        ...

    @property
    def concentration_offsets(self) -> IntArray:
        """Where each pair's concentrations begin."""
        ...


def has_dirichlet_rows(belief: object) -> TypeGuard[DirichletRows]:
    """Whether the belief describes its rows by concentrations."""
    return hasattr(belief, "concentration_entries")


class DirichletMeasure:
    """A measure of Dirichlet rows on a snapshot of the concentrations."""

    def __init__(self, belief: DirichletRows, measure: int, levels: FloatArray) -> None:
        entries, offsets = dirichlet_rows_of(belief)
        self.pattern = belief.pattern
        self.measure = measure
        self.basis = APPROXIMATE if measure == dirichlet.SADDLEPOINT else EXACT
        self.data = dirichlet.Rows.of(
            self.pattern.indptr,
            offsets,
            entries,
            levels,
            self.pattern.widest,
        )
        """The concentrations and levels, as the kernels take them."""
        self._sharpness = 1e-10

    def evaluate(self, targets: FloatArray, pairs: IntArray, out: FloatArray) -> float:
        """Write the values of ``pairs``; return the largest bound on their numerical errors."""

        def run(chunk: IntArray, _: int) -> float:
            error: float = dirichlet.evaluate_pairs(
                self.measure, chunk, self.data, targets, self._sharpness, out
            )
            return error

        return max(for_chunks(self.pattern.n_transitions, pairs, run))

    def rows(
        self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True
    ) -> FloatArray:
        """Conditional expectations of the rows of ``pairs``, or a cheap estimate of them."""
        pointers = np.empty(pairs.size + 1, dtype=np.int64)
        linear.row_pointers(pairs, self.pattern.indptr, pointers)
        out = np.empty(int(pointers[-1]))

        def run(chunk: IntArray, first: int) -> float:
            dirichlet.rows_of_pairs(
                self.measure, precise, chunk, self.data, targets, values, pointers[first:], out
            )
            return 0.0

        for_chunks(out.size, pairs, run)
        return out

    def fixed_entries(self) -> FloatArray | None:
        """The rows depend on the targets."""
        return None

    def approximation(self) -> RiskOperator | None:
        """The saddlepoint quantile for the exact one, the posterior mean for the others."""
        if self.measure != dirichlet.EXACT:
            mean = np.empty(self.pattern.n_transitions)
            dirichlet.mean_rows(self.pattern.pairs, self.data, mean)
            return FixedKernel(self.pattern, mean)
        twin = object.__new__(DirichletMeasure)
        twin.__dict__.update(
            self.__dict__, measure=dirichlet.SADDLEPOINT, basis=APPROXIMATE, _sharpness=1e-5
        )
        return twin
