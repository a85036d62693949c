"""What a plan returns: values, a policy, and how far they can be from the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from brmdp._validation import FloatArray, IntArray
from brmdp.errors import InvalidInputError
from brmdp.pattern import TransitionPattern
from brmdp.planning.prior import PriorReliance
from brmdp.risk.base import APPROXIMATE, SAMPLED

__all__ = ["APPROXIMATE", "CONVERGED", "NOT_CONVERGED", "SAMPLED", "STATUSES", "Solution"]

CONVERGED = "converged"
NOT_CONVERGED = "not converged"
STATUSES = (CONVERGED, APPROXIMATE, NOT_CONVERGED, SAMPLED)
"""Statuses of a plan. What is made of draws or approximations never says "converged"."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of :func:`brmdp.plan`, :func:`brmdp.evaluate_under_belief` or :func:`brmdp.solve`.

    With residual = max|TV − V| at the last iterate V and η the largest numerical error of a backup:

    Attributes
    ----------
    values : (S,) array
        TV.
    q_values : (S, A) array
        Backup of every action at V; −inf for inadmissible actions.
    policy : (S,) integers
        The lowest-index action among those tied with the best (for an evaluation: the policy
        evaluated).
    tied : (S,) booleans
        States in which several actions are within ``tie_width`` of the best.
    residual : float
    error_bound : float
        Bounds max|values − V*| by (γ·residual + η)/(1 − γ). V* is the fixed point of the measure
        that was solved: where ``basis`` is "exact", the one asked for; where it is "sampled", that
        of the draws, and how far these are from the belief the bound does *not* say; infinite where
        it is "approximate".
    policy_gap : float
        Bounds max(V* − V^policy), the loss of following ``policy``, by (2γ·residual + 2η + ξ)/(1 −
        γ), where ξ is what a tied action gives away; of the same problem as ``error_bound``. For an
        evaluation it is zero by definition of the task.
    iterations : int
        Sweeps of the measure itself (for large problems, sweeps over the policy's rows only count
        like any other).
    status : str
        "converged": the error bound holds for the problem asked for. "sampled": solved, but for
        draws from the belief (Monte Carlo, one posterior draw, a belief that offers nothing but
        draws). "approximate": solved, without a bound (saddlepoint). "not converged".
    basis : str
        What the values are made of, converged or not: "exact", "sampled" or "approximate".
    tolerance : float
        The error bound asked for; by default 1e-8 × max|values|, or four times what arithmetic
        resolves where that is more (see :func:`brmdp.plan`).
    tie_width : float
        Differences of q-values up to this are not resolved: 2η + 32ε·max|values|/(1 − γ), with ε =
        2.2e-16. It depends on the scale of the problem and on the measure, not on ``tolerance`` nor
        on how the values were reached. For tolerances of at most 1e-6 × max|values|, the values are
        then refined down to rounding wherever the error bound leaves a tie open, so a warm start, a
        cold one and either method give the same ties. Only a difference that equals the width up to
        rounding of the values (in trials, a median of 0.0005 of it) can fall on either side. A tied
        action gives away at most the width per step.
    prior : PriorReliance or None
        How far the policy rests on the prior instead of data, for plans made by :func:`brmdp.plan`
        and :func:`brmdp.evaluate_under_belief`. None for beliefs that do not tell the two apart, and for
        the plans of agents, which are made too often to look (:func:`brmdp.prior_reliance` looks at
        any policy).
    """

    values: FloatArray
    q_values: FloatArray
    policy: IntArray
    tied: NDArray[np.bool_]
    residual: float
    error_bound: float
    policy_gap: float
    iterations: int
    status: str
    basis: str
    tolerance: float
    tie_width: float
    _pattern: TransitionPattern = field(repr=False)
    _rows: Callable[[], FloatArray] = field(repr=False)
    prior: PriorReliance | None = None

    def tied_actions(self) -> NDArray[np.bool_]:
        """(S, A) mask of the actions tied with the best in each state."""
        best = self.q_values.max(axis=1, keepdims=True)
        mask: NDArray[np.bool_] = self.q_values >= best - self.tie_width
        return mask

    def kernel(self, format: str = "dense") -> Any:
        """The risk-adjusted kernel of the policy, P̂(s'|s, policy(s)): "dense" (S, S) or "csr".

        The values solve the ordinary evaluation equation of this kernel up to second order: it
        shows which transitions the plan is worried about, or hoping for.
        """
        if format not in ("dense", "csr"):
            raise InvalidInputError(f"format must be 'dense' or 'csr'; got {format!r}")
        n = self.values.size
        pairs = np.arange(n) * self._pattern.n_actions + self.policy
        indptr = np.concatenate(([0], np.cumsum(self._pattern.widths[pairs])))
        columns = self._pattern.take(self._pattern.next_states, pairs)
        matrix = sparse.csr_array((self._rows(), columns, indptr), shape=(n, n))
        matrix.sum_duplicates()
        return matrix if format == "csr" else matrix.toarray()

    def __repr__(self) -> str:
        return (
            f"Solution(status={self.status!r}, {self.values.size} states, "
            f"iterations={self.iterations}, residual={self.residual:.2g}, "
            f"error_bound={self.error_bound:.2g}, "
            f"policy_gap={self.policy_gap:.2g}{' (both of the sampled problem)' if self.basis == SAMPLED else ''}, "
            f"tied={int(self.tied.sum())} "
            f"states{', rests on the prior' if self.prior and self.prior.outweighs else ''})"
        )
