"""The Bellman operator of a bound risk measure, and Newton's linear system for it.

(TV)(s) = max_a q(s,a; r + γV). Linearised at V with the greedy policy π and the risk-adjusted rows
p̂ of its pairs, Newton's step d solves (I − γP̂_π) d = TV − V. For a linear measure this is policy
iteration.

Such a step moves the border between two actions by about one state, so a long chain needs as many
steps as it has states. The *wide* step linearises all actions, not only the greedy ones, and solves
the ordinary decision problem that results, whose backups are mere sums of products. It does so by
policy iteration, with Gauss–Seidel sweeps in between that carry information along the chain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import solve_banded
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import LinearOperator, bicgstab

from brmdp._kernels import linear
from brmdp._validation import FloatArray, IntArray, PolicyArray
from brmdp.pattern import TransitionPattern
from brmdp.planning.mixture import pairs_used
from brmdp.risk.base import RiskOperator
from brmdp.risk.threads import WORTH_SPLITTING, for_ranges

__all__ = ["DENSE_STATES", "FLOOR", "Bellman", "Sweep", "solve_in_band"]

DENSE_STATES = 600
"""Up to this many states, Newton's system is solved by dense elimination.

Larger systems are solved iteratively or in a band.
"""

BAND_ENTRIES = 25_000_000
"""Largest banded factorisation, in entries; wider systems are left to the iterative solver."""

SETTLING_ROUNDS = 30
"""Largest number of rounds of plain policy iteration at the start of a small linear problem."""

WIDE_ROUNDS = 200
"""Largest number of policies tried in a wide step.

Each is tried after at most WIDE_SWEEPS Gauss–Seidel sweeps up and down the states.
"""

WIDE_SWEEPS = 50

FLOOR = 16.0 * np.finfo(np.float64).eps
"""Residuals below FLOOR × max|V| are rounding: further iterations cannot help."""


@dataclass(slots=True)
class Sweep:
    """One application of the operator at V: targets, q, greedy policy and pairs, TV, residual."""

    values: FloatArray
    targets: FloatArray
    q: FloatArray
    policy: IntArray
    pairs: IntArray
    best: FloatArray
    residual: float
    size: float
    numerical_error: float

    def bound(self, discount: float) -> float:
        """Bound on max|TV − V*|."""
        return (discount * self.residual + self.numerical_error) / (1.0 - discount)


class Bellman:
    """T for all admissible actions, or for the pairs of ``policy`` alone, which is T^π.

    A policy that draws its actions uses several pairs in a state; its T^π is that of another
    problem, with one mixed row per state (:mod:`brmdp.planning.mixture`).
    """

    def __init__(
        self,
        pattern: TransitionPattern,
        risk: RiskOperator,
        rewards: FloatArray,
        discount: float,
        policy: PolicyArray | None = None,
    ) -> None:
        self.pattern = pattern
        self.risk = risk
        self.rewards = rewards
        self.discount = discount
        self.pairs = pattern.pairs if policy is None else pairs_used(policy, pattern.n_actions)
        self._krylov_failed = False
        self._reused: FloatArray | None = None
        self._reuses = False

    def targets(self, values: FloatArray) -> FloatArray:
        """Targets w = r + γV(s') on the possible transitions."""
        out = np.empty(self.rewards.size)
        self._fill(values, out)
        return out

    def _fill(self, values: FloatArray, out: FloatArray) -> None:
        rewards, next_states = self.rewards, self.pattern.next_states

        def run(first: int, last: int) -> None:
            here = slice(first, last)
            linear.targets_into(rewards[here], next_states[here], self.discount, values, out[here])

        for_ranges(out.size, out.size, run)

    def reuse_targets(self) -> None:
        """From now on, let a sweep of a large problem overwrite the targets of the one before."""
        self._reuses = self.rewards.size >= WORTH_SPLITTING

    def keep_targets(self, sweep: Sweep) -> None:
        """End this, and give a sweep its own targets again."""
        if self._reused is not None:
            self._fill(sweep.values, self._reused)
        self._reuses, self._reused = False, None

    def backup(self, targets: FloatArray, pairs: IntArray) -> tuple[FloatArray, float]:
        """Values q as an (S, A) array, −inf outside ``pairs``, and the largest numerical error."""
        q = np.empty((self.pattern.n_states, self.pattern.n_actions))
        q.fill(-np.inf)
        error = self.risk.evaluate(targets, pairs, q.reshape(-1))
        return q, error

    def sweep(self, values: FloatArray, pairs: IntArray) -> Sweep:
        """Apply the operator, restricted to ``pairs`` (at least one per state)."""
        targets = np.empty(self.rewards.size) if self._reused is None else self._reused
        self._reused = targets if self._reuses else None
        self._fill(values, targets)
        q, error = self.backup(targets, pairs)
        n = values.size
        policy = np.empty(n, dtype=np.int64)
        chosen = np.empty(n, dtype=np.int64)
        best = np.empty(n)
        residual, size = linear.greedy(q, values, policy, chosen, best)
        return Sweep(values, targets, q, policy, chosen, best, residual, size, error)

    def settle(self, values: FloatArray, max_rounds: int) -> tuple[FloatArray, int]:
        """Compiled policy iteration if the measure is linear and the problem small: (V, rounds)."""
        fixed = self.risk.fixed_entries()
        pattern = self.pattern
        if fixed is None or pattern.n_states > DENSE_STATES:
            return values, 0
        settled: tuple[FloatArray, int] = linear.policy_iteration(
            self.pairs,
            pattern.indptr,
            pattern.next_states,
            fixed,
            self.rewards,
            self.discount,
            pattern.n_actions,
            values,
            min(max_rounds, SETTLING_ROUNDS),
            FLOOR,
        )
        return settled

    def newton(self, sweep: Sweep, *, precise: bool = False) -> FloatArray:
        """V + d with (I − γP̂_π) d = TV − V; exact if small, with a small residual if large."""
        pattern = self.pattern
        fixed = self.risk.fixed_entries()
        dense = pattern.n_states <= DENSE_STATES
        if dense and fixed is not None:
            rows = fixed
        else:
            rows = self.risk.rows(sweep.targets, sweep.q.reshape(-1), sweep.pairs, precise=precise)
        if not dense:
            return sweep.values + self._large_step(sweep.pairs, rows, sweep.best - sweep.values)
        following: FloatArray = linear.newton_step(
            sweep.pairs,
            pattern.indptr,
            pattern.next_states,
            rows,
            fixed is None,
            self.discount,
            sweep.values,
            sweep.best,
        )
        return following

    def wide_newton(self, sweep: Sweep) -> FloatArray:
        """Optimal values of the problem linearised at V in all actions.

        With only one action per state this is Newton's step.
        """
        pattern = self.pattern
        if self.pairs.size == pattern.n_states:
            return self.newton(sweep)
        rows = self.risk.fixed_entries()
        if rows is None:
            rows = self.risk.rows(sweep.targets, sweep.q.reshape(-1), self.pairs, precise=False)
        structure = (self.pairs, pattern.indptr, pattern.next_states, rows)
        paid = np.empty(pattern.n_states * pattern.n_actions)
        linear.constant_parts(*structure, self.discount, sweep.values, sweep.q.reshape(-1), paid)
        problem = (*structure, paid, self.discount, pattern.n_actions)
        values, best = sweep.best.copy(), np.empty(pattern.n_states)
        chosen, before = sweep.pairs.copy(), np.full(pattern.n_states, -1)
        for _ in range(WIDE_ROUNDS):
            linear.relax(*problem, values, chosen, WIDE_SWEEPS)
            residual, size = linear.best_pairs(*problem, values, chosen, best)
            if np.array_equal(chosen, before) or not residual > FLOOR * size:
                break
            values = self._policy_values(chosen, rows, values, best)
            before[:] = chosen
        return values

    def _policy_values(
        self, pairs: IntArray, rows: FloatArray, values: FloatArray, best: FloatArray
    ) -> FloatArray:
        """Values of one policy in a linear problem: Newton's step from ``values``.

        ``best`` is their backup.
        """
        pattern = self.pattern
        if pattern.n_states > DENSE_STATES:
            return values + self._large_step(pairs, pattern.take(rows, pairs), best - values)
        exact: FloatArray = linear.newton_step(
            pairs, pattern.indptr, pattern.next_states, rows, False, self.discount, values, best
        )
        return exact

    def _large_step(self, pairs: IntArray, rows: FloatArray, gap: FloatArray) -> FloatArray:
        """Solve (I − γP̂) d = gap for many states."""
        n = self.pattern.n_states
        pointers = np.empty(n + 1, dtype=np.int64)
        linear.row_pointers(pairs, self.pattern.indptr, pointers)
        columns = np.empty(rows.size, dtype=np.int64)
        linear.copy_rows(pairs, self.pattern.indptr, self.pattern.next_states, columns)
        columns = columns.astype(np.int32)

        def moved(x: FloatArray) -> FloatArray:
            """P̂x."""
            out = np.empty(n)
            for_ranges(
                n,
                rows.size,
                lambda first, last: linear.times_rows(first, last, pointers, columns, rows, x, out),
            )
            return out

        def directly() -> FloatArray | None:
            kernel = sparse.csr_array((rows, columns, pointers), shape=(n, n))
            return solve_in_band(kernel, self.discount, gap)

        if self._krylov_failed:
            direct = directly()
            if direct is not None:
                return direct
        step, solved = self._iterative(moved, gap)
        if not solved and not self._krylov_failed:
            self._krylov_failed = True
            direct = directly()
            return step if direct is None else direct
        return step

    def _iterative(
        self, moved: Callable[[FloatArray], FloatArray], gap: FloatArray
    ) -> tuple[FloatArray, bool]:
        """BiCGSTAB, then sweeps; returns the step and whether its error is small."""
        n = gap.size
        system = LinearOperator(
            (n, n), matvec=lambda x: x - self.discount * moved(x), dtype=np.float64
        )
        scale = float(np.abs(gap).max())
        if not scale > 0.0:
            return gap, True
        step, _ = bicgstab(system, gap / scale, rtol=1e-4, atol=0.0, maxiter=200)
        step = np.asarray(step) * scale
        if not np.isfinite(step).all():
            step = gap.copy()
        # Sweeps damp the remaining error in the maximum norm, and are a safety net if the Krylov
        # method broke down.
        for _ in range(200):
            following: FloatArray = gap + self.discount * moved(step)
            change = float(np.abs(following - step).max())
            step = following
            if change <= 1e-3 * scale * (1.0 - self.discount):
                return step, True
        return step, False


def solve_in_band(
    kernel: sparse.csr_array, discount: float, right: FloatArray
) -> FloatArray | None:
    """(I − γ kernel)⁻¹ right by banded elimination, or None if the band is too wide.

    States are renumbered so that neighbours have close numbers. Krylov methods carry
    information one state per iteration, so they fail on long chains; there the band is narrow.
    """
    n = right.size
    order = reverse_cuthill_mckee(kernel)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    rows = place[np.repeat(np.arange(n), np.diff(kernel.indptr))]
    columns = place[kernel.indices]
    below, above = max(0, int((rows - columns).max())), max(0, int((columns - rows).max()))
    if n * (2 * below + above + 1) > BAND_ENTRIES:
        return None
    band = np.zeros((below + above + 1, n))
    np.add.at(band, (above + rows - columns, columns), -discount * kernel.data)
    band[above] += 1.0
    step = np.empty(n)
    try:
        step[order] = solve_banded(
            (below, above), band, right[order], overwrite_ab=True, check_finite=False
        )
    except np.linalg.LinAlgError:  # only if the rows are not probabilities
        return None
    return step if np.isfinite(step).all() else None
