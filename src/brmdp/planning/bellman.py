"""The Bellman operator of a bound risk measure, and Newton's linear system for it.

(TV)(s) = max_a q(s,a; r + γV). Linearised at V with the greedy policy π and the risk-adjusted rows p̂ of its pairs,
Newton's step d solves (I − γP̂_π) d = TV − V (policy iteration when the measure is linear).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import bicgstab

from brmdp._kernels import linear
from brmdp._validation import FloatArray, IntArray
from brmdp.pattern import TransitionPattern
from brmdp.risk.base import BoundRisk

__all__ = ["Bellman"]

DENSE_STATES = 600
"""Up to this many states Newton's system is solved by dense elimination, beyond it iteratively."""


class Bellman:
    """T for all admissible actions, or T^π when ``policy`` is given."""

    def __init__(
        self,
        pattern: TransitionPattern,
        risk: BoundRisk,
        rewards: FloatArray,
        discount: float,
        policy: IntArray | None = None,
    ) -> None:
        self.pattern = pattern
        self.risk = risk
        self.rewards = rewards
        self.discount = discount
        self.states = np.arange(pattern.n_states)
        self.pairs = pattern.pairs if policy is None else self.pairs_of(policy)
        self._errors = np.zeros(pattern.n_pairs)

    def pairs_of(self, policy: IntArray) -> IntArray:
        """The pairs a policy uses."""
        return self.states * self.pattern.n_actions + policy

    def targets(self, values: FloatArray) -> FloatArray:
        """W = r + γV(s') on the possible transitions."""
        out = np.empty(self.rewards.size)
        linear.targets_into(self.rewards, self.pattern.next_states, self.discount, values, out)
        return out

    def backup(self, targets: FloatArray, pairs: IntArray) -> tuple[FloatArray, float]:
        """Q as an (S, A) array, −inf outside ``pairs``, and the largest numerical error."""
        q = np.full(self.pattern.n_pairs, -np.inf)
        self.risk.evaluate(targets, pairs, q, self._errors)
        return q.reshape(self.pattern.n_states, self.pattern.n_actions), float(self._errors[pairs].max())

    def newton_step(self, targets: FloatArray, q: FloatArray, policy: IntArray, gap: FloatArray) -> FloatArray:
        """D with (I − γP̂_π) d = gap, exactly for small problems, to a small relative residual for large ones."""
        pairs = self.pairs_of(policy)
        rows = self.risk.rows(targets, q.reshape(-1), pairs)
        n = self.pattern.n_states
        if n <= DENSE_STATES:
            matrix = np.empty((n, n))
            linear.newton_matrix(pairs, self.pattern.indptr, self.pattern.next_states, rows, self.discount, matrix)
            return np.linalg.solve(matrix, gap)
        return self._iterative(pairs, rows, gap)

    def _iterative(self, pairs: IntArray, rows: FloatArray, gap: FloatArray) -> FloatArray:
        n = self.pattern.n_states
        pointers = np.empty(n + 1, dtype=np.int64)
        linear.row_pointers(pairs, self.pattern.indptr, pointers)
        columns = np.empty(rows.size, dtype=np.int64)
        linear.copy_rows(pairs, self.pattern.indptr, self.pattern.next_states, columns)
        kernel = sparse.csr_array((rows, columns, pointers), shape=(n, n))
        system = sparse.linalg.LinearOperator(
            (n, n), matvec=lambda x: x - self.discount * (kernel @ x), dtype=np.float64
        )
        size = float(np.abs(gap).max())
        step, _ = bicgstab(system, gap / size, rtol=1e-4, atol=0.0, maxiter=200)
        step = step * size
        # Sweeps damp what is left in the maximum norm, and are a safety net if the Krylov method broke down.
        if not np.isfinite(step).all():
            step = gap.copy()
        for _ in range(200):
            following = gap + self.discount * (kernel @ step)
            change = float(np.abs(following - step).max())
            step = following
            if change <= 1e-3 * size * (1.0 - self.discount):
                break
        return step
