"""Quantile and lower-tail mean over finitely many weighted kernels: scenarios, or draws."""

from __future__ import annotations

import numpy as np

from brmdp._kernels import linear
from brmdp._validation import FloatArray, IntArray
from brmdp.pattern import TransitionPattern
from brmdp.risk.base import EXACT, RiskOperator, rounding

__all__ = ["ATOM_TOLERANCE", "ScenarioMeasure"]

ATOM_TOLERANCE = 1e-12
"""The left quantile is the least value whose cumulative weight reaches α − 1e-12.

So a cumulative weight of 1 − μ reaches the level α = 1 − μ however both are rounded, as the paper's
propositions require.
"""


class ScenarioMeasure:
    """Left quantile, or lower-tail mean, of the kernels' values.

    Parameters
    ----------
    pattern : TransitionPattern
        Possible transitions.
    entries : (K, transitions) array
        The kernels.
    weights : (K,) array
        Probabilities of the kernels.
    levels : (pairs,) array
        Level of every pair.
    lower_tail : bool
        Take the mean of the lower tail instead of the quantile.
    basis : str
        "exact" if the kernels are the belief itself, "sampled" if they are draws from it.
    """

    def __init__(
        self,
        pattern: TransitionPattern,
        entries: FloatArray,
        weights: FloatArray,
        levels: FloatArray,
        *,
        lower_tail: bool,
        basis: str = EXACT,
    ) -> None:
        self.pattern = pattern
        self.levels = levels
        self.lower_tail = lower_tail
        self.basis = basis
        self._entries = np.ascontiguousarray(entries)
        self._weights = weights.copy()

    def evaluate(self, targets: FloatArray, pairs: IntArray, out: FloatArray) -> float:
        """Write the values of ``pairs``; return a bound on their rounding errors."""
        linear.scenario_measure(
            pairs,
            self.pattern.indptr,
            self._entries,
            self._weights,
            targets,
            self.levels,
            self.lower_tail,
            ATOM_TOLERANCE,
            out,
        )
        return rounding(self.pattern, float(np.abs(targets).max()))

    def rows(
        self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True
    ) -> FloatArray:
        """The row of the scenario that attains the quantile, or the mixture in the lower tail."""
        out = np.empty(int(self.pattern.widths[pairs].sum()))
        linear.scenario_rows(
            pairs,
            self.pattern.indptr,
            self._entries,
            self._weights,
            targets,
            self.levels,
            self.lower_tail,
            ATOM_TOLERANCE,
            out,
        )
        return out

    def fixed_entries(self) -> FloatArray | None:
        """The rows depend on the targets."""
        return None

    def approximation(self) -> RiskOperator | None:
        """None: nothing is cheaper."""
        return None
