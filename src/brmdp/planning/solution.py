"""The result of a plan: values, a policy, and bounds on their errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from brmdp._validation import FloatArray, PolicyArray
from brmdp.errors import InvalidInputError
from brmdp.pattern import TransitionPattern
from brmdp.planning.compiled import Memory
from brmdp.planning.mixture import PolicyRows
from brmdp.planning.prior import PriorReliance
from brmdp.planning.text import call_like, extent
from brmdp.risk.base import APPROXIMATE, SAMPLED

__all__ = ["APPROXIMATE", "CONVERGED", "NOT_CONVERGED", "SAMPLED", "STATUSES", "Solution"]

CONVERGED = "converged"
NOT_CONVERGED = "not converged"
STATUSES = (CONVERGED, APPROXIMATE, NOT_CONVERGED, SAMPLED)
"""Statuses of a plan; one made from draws or approximations is never "converged"."""


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """Result of :func:`brmdp.plan`, :func:`brmdp.evaluate_under_belief` or :func:`brmdp.solve`.

    Below, V is the last accepted iterate, TV its backup, and η the largest numerical error of a
    backup.

    Attributes
    ----------
    values : (S,) array
        Values TV of the states.
    q_values : (S, A) array
        Backup of every action at V; −inf for inadmissible actions. An agent's plan computes only
        those that may matter; the others are computed when this is read.
    policy : (S,) integers, or (S, A) probabilities
        The lowest-index action among those tied with the best. For an evaluation, the policy that
        was evaluated: (S, A) probabilities if it was given as such.
    tied : (S,) booleans
        States in which several actions are within ``tie_width`` of the best. For an evaluation,
        none.
    residual : float
        max|TV − V|.
    error_bound : float
        Bound on max|values − V*|: (γ·residual + η)/(1 − γ). V* is the fixed point of the measure
        that was solved. If ``basis`` is "exact", that is the requested one. If it is "sampled", V*
        belongs to the draws, and the bound does *not* say how far these are from the belief. If it
        is "approximate", the bound is infinite. With discount 1, this and ``policy_gap`` come from
        vectors that enclose V* (:mod:`brmdp.planning.endings`), and the longest expected time to
        the end takes the place of 1/(1 − γ) in ``tie_width``.
    policy_gap : float
        Bound on max(V* − V^policy), the loss of following ``policy``: (2γ·residual + 2η + ξ)/(1 −
        γ), where ξ is what a tied action gives away. It refers to the same problem as
        ``error_bound``. For an evaluation it is zero by definition.
    iterations : int
        Number of sweeps of the measure itself; a sweep over only the policy's rows also counts as
        one.
    status : str
        "converged": the error bound holds for the requested problem. "sampled": solved, but for
        draws from the belief (Monte Carlo, one posterior draw, or a belief that offers nothing but
        draws). "approximate": solved, without a bound (saddlepoint). "not converged": not solved.
    basis : str
        What the values are computed from, converged or not: "exact", "sampled" or "approximate".
    tolerance : float
        The requested error bound; by default 1e-8 × max|values|, or four times what arithmetic
        resolves if that is more (see :func:`brmdp.plan`).
    tie_width : float
        Differences between q-values up to this size are not resolved: 2η + 2γ·min(η,
        16ε·max|values|)/(1 − γ) with ε = 2.2e-16. An approximate measure reports no η, and
        1e-11·max|values| takes the place of the minimum. The width depends on the scale of the
        problem and on the measure, not on ``tolerance`` or on how the values were reached. For
        tolerances of at most 1e-6 × max|values|, the values are refined down to rounding wherever
        the error bound leaves a tie open, so warm starts, cold starts and both methods give the
        same ties. Only a difference that equals the width up to rounding of the values (in trials,
        to within 0.0005 of the width at the median) can go either way. A tied action gives away at
        most this width per step.
    prior : PriorReliance or None
        How far the policy rests on the prior instead of data, for results of :func:`brmdp.plan` and
        :func:`brmdp.evaluate_under_belief`. None for beliefs that do not separate the two, and for
        the plans of agents, which are too frequent to check; :func:`brmdp.prior_reliance` checks
        any policy.
    caveat : str
        What to know about the belief, if it is only an approximation of a posterior; else empty.

    Examples
    --------
    >>> import brmdp
    >>> best = brmdp.solve(brmdp.envs.riverswim(6))
    >>> best.policy
    array([1, 1, 1, 1, 1, 1])
    >>> best.status, bool(best.error_bound < 1e-6)
    ('converged', True)
    """

    values: FloatArray
    known_q: FloatArray
    policy: PolicyArray
    tied: NDArray[np.bool_]
    residual: float
    error_bound: float
    policy_gap: float
    iterations: int
    status: str
    basis: str
    tolerance: float
    tie_width: float
    _pattern: TransitionPattern
    _rows: Callable[[], FloatArray]
    prior: PriorReliance | None = None
    caveat: str = ""
    _others: Callable[[FloatArray], FloatArray] | None = None
    memory: Memory | None = None

    @cached_property
    def q_values(self) -> FloatArray:
        """(S, A) backup of every action at V; −inf for inadmissible actions."""
        return self.known_q if self._others is None else self._others(self.known_q)

    def tied_actions(self) -> NDArray[np.bool_]:
        """(S, A) mask of the actions tied with the best in each state."""
        # what was not computed is worse by more than that
        best = self.known_q.max(axis=1, keepdims=True)
        mask: NDArray[np.bool_] = self.known_q >= best - self.tie_width
        return mask

    def kernel(self, format: Literal["dense", "csr"] = "dense") -> Any:
        """The risk-adjusted kernel of the policy, P̂(s'|s, policy(s)): "dense" (S, S) or "csr".

        For a policy that draws its actions, the rows are Σ_a π(a|s) P̂(s'|s, a). The values solve
        the ordinary evaluation equation for this kernel up to second order, so it shows which
        transitions the plan fears or hopes for.
        """
        if format not in ("dense", "csr"):
            raise InvalidInputError(f"format must be 'dense' or 'csr'; got {format!r}")
        n = self.values.size
        rows = PolicyRows.of(self._pattern, self.policy)
        matrix = sparse.csr_array(
            (rows.shares * self._rows(), rows.pattern.next_states, rows.pattern.indptr),
            shape=(n, n),
        )
        matrix.sum_duplicates()
        return matrix if format == "csr" else matrix.toarray()

    def __repr__(self) -> str:
        note = " (both of the sampled problem)" if self.basis == SAMPLED else ""
        parts = [
            f"status={self.status!r}",
            f"{self.values.size} states",
            f"values {extent(self.values)}",
            f"iterations={self.iterations}",
            f"residual={self.residual:.2g}",
            f"error_bound={self.error_bound:.2g}",
            f"policy_gap={self.policy_gap:.2g}{note}",
            f"tied={int(self.tied.sum())} states",
        ]
        if self.prior is not None and self.prior.outweighs:
            parts.append("rests on the prior")
        if self.caveat:
            parts.append("of an approximate belief (see caveat)")
        return call_like("Solution", parts)
