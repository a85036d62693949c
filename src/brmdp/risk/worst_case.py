"""The worst case over a ball around a kernel: robust plans with the solver of all others.

A set of rows, all of which are probability vectors, gives the value q = min p·w. The minimum is
monotone in w and translates with it, so it is a risk measure like any other, and the minimiser is
its risk-adjusted row. The ball is {p : Σ_j ω_j |p_j − c_j| ≤ ψ}; how large ψ must be for a promise
is not decided here but by who builds the set (:mod:`brmdp.batch`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from brmdp._kernels import ambiguity
from brmdp._validation import FloatArray, IntArray, as_float_array, first_bad
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import mean_of, require_belief
from brmdp.errors import InvalidInputError
from brmdp.mdp import normalised_rows
from brmdp.pattern import TransitionPattern
from brmdp.risk.base import EXACT, FixedKernel, RiskOperator, levels_by_pair, rounding

__all__ = ["WorstCase", "WorstCaseOperator", "least_mean"]


class WorstCase:
    """The least expectation over all rows near the mean kernel, in (weighted) L1 distance.

    Parameters
    ----------
    radius : float or (S, A) array
        Largest distance ψ ≥ 0 of a row from its centre; from 2 on, without weights, every row is
        possible.
    weights : (transitions,) array, optional
        ω > 0 of every possible transition, in the order of the belief's pattern; by default 1.
    centre : (transitions,) array, optional
        Rows around which the balls lie; by default the mean of the belief.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.risk import WorstCase
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> for radius in (0.0, 0.2, 1.0):
    ...     plan = brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=WorstCase(radius))
    ...     print(radius, plan.values.round(6))
    0.0 [4.5 5.5]
    0.2 [3.6 4.6]
    1.0 [0. 1.]
    """

    def __init__(
        self,
        radius: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        centre: ArrayLike | None = None,
    ) -> None:
        self.radius = np.array(as_float_array(radius, "radius"))
        if (self.radius < 0.0).any():
            where = first_bad(self.radius < 0.0)
            raise InvalidInputError(
                f"radius must not be negative; got {self.radius[where]}"
                + (f" at {where}" if where else "")
            )
        self.weights = None if weights is None else np.array(as_float_array(weights, "weights"))
        if self.weights is not None and (self.weights <= 0.0).any():
            where = first_bad(self.weights <= 0.0)
            raise InvalidInputError(
                f"weights must be positive; got {self.weights[where]} at entry {where[0]}"
            )
        self.centre = None if centre is None else np.array(as_float_array(centre, "centre"))
        if self.centre is not None and (self.centre < 0.0).any():
            where = first_bad(self.centre < 0.0)
            raise InvalidInputError(
                f"centre must not be negative; got {self.centre[where]} at entry {where[0]}"
            )

    def bind(self, belief: Belief) -> RiskOperator:
        """Lay the balls around the rows of the belief's mean, or around ``centre``."""
        require_belief(belief)
        pattern = belief.pattern
        radii = levels_by_pair(self.radius, pattern, "radius")
        weights = (
            np.ones(pattern.n_transitions)
            if self.weights is None
            else _of_pattern(self.weights, pattern, "weights")
        )
        centre = (
            mean_of(belief).copy()
            if self.centre is None
            else normalised_rows(pattern, _of_pattern(self.centre, pattern, "centre"), "centre")
        )
        return WorstCaseOperator(pattern, centre, weights, radii)

    def __repr__(self) -> str:
        radius = float(self.radius) if self.radius.ndim == 0 else f"array{self.radius.shape}"
        return f"WorstCase({radius}{', weighted' if self.weights is not None else ''})"


def _of_pattern(entries: FloatArray, pattern: TransitionPattern, name: str) -> FloatArray:
    if entries.shape != (pattern.n_transitions,):
        raise InvalidInputError(
            f"{name} must hold one number per possible transition, ({pattern.n_transitions},); "
            f"got {entries.shape}"
        )
    return entries


class WorstCaseOperator:
    """Balls on the rows of a pattern; everything has been checked."""

    basis = EXACT

    def __init__(
        self,
        pattern: TransitionPattern,
        centre: FloatArray,
        weights: FloatArray,
        radii: FloatArray,
    ) -> None:
        self.pattern = pattern
        self._balls: tuple[Any, ...] = (pattern.indptr, centre, weights, radii)

    def evaluate(self, targets: FloatArray, pairs: IntArray, out: FloatArray) -> float:
        """Write the least means of ``pairs``; return their largest duality gap, and rounding."""
        gap = ambiguity.least_means(pairs, *self._balls, targets, out)
        return float(gap) + 2.0 * rounding(self.pattern, float(np.abs(targets).max()))

    def rows(
        self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True
    ) -> FloatArray:
        """The worst rows."""
        out = np.empty(int(self.pattern.widths[pairs].sum()))
        ambiguity.least_rows(pairs, *self._balls, targets, out)
        return out

    def fixed_entries(self) -> FloatArray | None:
        """The worst rows depend on the targets."""
        return None

    def approximation(self) -> RiskOperator | None:
        """The centre."""
        return FixedKernel(self.pattern, self._balls[1])


def least_mean(
    centre: FloatArray, weights: FloatArray, radius: float, targets: FloatArray
) -> tuple[FloatArray, float]:
    """The minimiser of one row over its ball, and the least mean; arguments have been checked."""
    row = np.empty(targets.size)
    mean, _ = ambiguity.least_mean(centre, weights, radius, targets, row)
    return row, float(mean)
