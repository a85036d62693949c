"""Known worlds on arrays: what a policy is worth, and the best one, by policy iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from brmdp._validation import FloatArray, IntArray
from brmdp.pattern import TransitionPattern

__all__ = ["World"]

SMALL, DENSE = 500, 3_000
"""Up to these many states, systems are solved by elimination: always, or if it is faster."""

ACCURACY = 1e-7
"""Relative error beyond."""

ROUNDS = 100
"""Largest number of rounds of policy iteration."""


@dataclass(frozen=True, eq=False)
class World:
    """Transition probabilities and rewards on a pattern, and a discount below one.

    Attributes
    ----------
    pattern : TransitionPattern
    entries, rewards : (transitions,) arrays
    discount : float
    """

    pattern: TransitionPattern
    entries: FloatArray
    rewards: FloatArray
    discount: float

    @cached_property
    def paid(self) -> FloatArray:
        """(S·A,) expected rewards."""
        pattern = self.pattern
        sums = np.bincount(pattern.pair_of_transition, self.entries * self.rewards, pattern.n_pairs)
        return np.asarray(sums, dtype=np.float64)

    @cached_property
    def _rows(self) -> sparse.csr_array:
        pattern = self.pattern
        return sparse.csr_array(
            (self.entries, pattern.next_states, pattern.indptr),
            shape=(pattern.n_pairs, pattern.n_states),
        )

    def chain(self, policy: IntArray | FloatArray) -> tuple[sparse.csr_array, FloatArray]:
        """Transition probabilities and expected rewards under a policy."""
        n, k = self.pattern.n_states, self.pattern.n_actions
        if policy.ndim == 1:
            pairs = np.arange(n) * k + policy
            return self._rows[pairs], self.paid[pairs]
        mix = sparse.csr_array(
            (policy.ravel(), np.arange(n * k), np.arange(n + 1) * k), shape=(n, n * k)
        )
        return mix @ self._rows, mix @ self.paid

    def values(self, policy: IntArray | FloatArray) -> FloatArray:
        """(S,) values of (S,) actions or (S, A) probabilities."""
        kernel, paid = self.chain(policy)
        return self._solved(kernel, paid)

    def visits(self, policy: IntArray | FloatArray, start: FloatArray) -> FloatArray:
        """(S,) shares of discounted time."""
        kernel, _ = self.chain(policy)
        found = self._solved(kernel.T.tocsr(), (1.0 - self.discount) * start)
        return np.maximum(found, 0.0)

    def _solved(self, kernel: sparse.csr_array, right: FloatArray) -> FloatArray:
        n = kernel.shape[0]
        sweeps = math.log(ACCURACY) / math.log(self.discount) if self.discount > 0.0 else 1.0
        if n <= SMALL or (n <= DENSE and n**3 < 20.0 * sweeps * kernel.nnz):
            return np.asarray(np.linalg.solve(self.system(kernel), right), dtype=np.float64)
        values = right / (1.0 - self.discount)
        while True:
            following = right + self.discount * (kernel @ values)
            change = float(np.abs(following - values).max())
            values = following
            if change * self.discount <= ACCURACY * (1.0 - self.discount) * max(
                float(np.abs(values).max()), 1e-300
            ):
                return np.asarray(values, dtype=np.float64)

    def system(self, kernel: sparse.csr_array) -> FloatArray:
        """I − γP as a dense array."""
        found: FloatArray = -self.discount * kernel.toarray()
        found.flat[:: found.shape[0] + 1] += 1.0
        return found

    def action_values(self, values: FloatArray) -> FloatArray:
        """(S, A) values of taking an action once; −inf where it is not admissible."""
        pattern = self.pattern
        found = (self.paid + self.discount * (self._rows @ values)).reshape(
            pattern.n_states, pattern.n_actions
        )
        return np.where(pattern.admissible, found, -np.inf)

    def best(self, initial: IntArray | None = None) -> tuple[IntArray, FloatArray]:
        """A best policy and its values."""
        states = np.arange(self.pattern.n_states)
        if initial is None:
            initial = np.argmax(self.action_values(np.zeros(states.size)), axis=1)
        policy = np.array(initial, dtype=np.int64)
        for _ in range(ROUNDS):
            values = self.values(policy)
            worth = self.action_values(values)
            better = np.argmax(worth, axis=1)
            own = worth[states, policy]
            least = 10.0 * ACCURACY if states.size > SMALL else 1e-10
            improves = worth[states, better] > own + least * max(float(np.abs(values).max()), 1e-12)
            if not improves.any():
                break
            policy = np.where(improves, better, policy)
        return policy, values
