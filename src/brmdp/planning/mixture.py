"""Policies that draw their actions: a problem with one mixed row per state.

For probabilities π(a|s) the operator is

    T^π V(s) = Σ_a π(a|s) ρ_{s,a}(r + γV).

A mixture of monotone, translation-invariant values is monotone and translation invariant, so T^π is
a γ-contraction, and the solver's bounds hold for it: the error of a mixed backup is at most the
largest error of its parts, and the rounding of the sum. The gradient of the mixture is the mixture
of the risk-adjusted rows, Σ_a π(a|s) p̂(·|s,a), which is what Newton's method needs.

So the problem of π is an ordinary one with a single action per state, whose possible transitions
are those of all actions that π takes there, one after another. :class:`PolicyRows` lays it out and
:class:`MixedRisk` is its risk measure; the solver does not know the difference. Actions with
π(a|s) = 0 are not part of it and are never evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brmdp._validation import FloatArray, IntArray, PolicyArray
from brmdp.pattern import TransitionPattern
from brmdp.risk.base import RiskOperator

__all__ = ["MixedRisk", "PolicyRows", "pairs_used"]


def pairs_used(policy: PolicyArray, n_actions: int) -> IntArray:
    """The pairs s·A + a with π(a|s) > 0, increasing, of (S,) actions or (S, A) probabilities."""
    if policy.ndim == 2:
        return np.flatnonzero(policy)
    return np.arange(policy.size) * n_actions + policy


@dataclass(frozen=True, eq=False)
class PolicyRows:
    """The rows of a policy, one per state, laid out from the pairs that it uses.

    Attributes
    ----------
    source : TransitionPattern
        Possible transitions of all pairs.
    pairs : (K,) integers
        The pairs that the policy uses, increasing.
    weights : (K,) array
        Probability of each of them in its state.
    begins : (S,) integers
        Where the pairs of each state begin among ``pairs``.
    pattern : TransitionPattern
        Possible transitions of the policy, as those of a single action per state.
    shares : (transitions,) array
        The weight of the pair behind each of these transitions.
    """

    source: TransitionPattern
    pairs: IntArray
    weights: FloatArray
    begins: IntArray
    pattern: TransitionPattern
    shares: FloatArray

    @classmethod
    def of(cls, source: TransitionPattern, policy: PolicyArray) -> PolicyRows:
        """The rows of (S,) actions or (S, A) probabilities, which have been checked."""
        n = source.n_states
        pairs = pairs_used(policy, source.n_actions)
        weights = policy.reshape(-1)[pairs] if policy.ndim == 2 else np.ones(n)
        begins = np.searchsorted(pairs // source.n_actions, np.arange(n))
        widths = source.widths[pairs]
        pointers = np.concatenate(([0], np.cumsum(np.add.reduceat(widths, begins))))
        own = TransitionPattern(n, 1, pointers, source.take(source.next_states, pairs))
        return cls(source, pairs, weights, begins, own, np.repeat(weights, widths))

    def take(self, entries: NDArray[Any]) -> NDArray[Any]:
        """Entries (…, all transitions) at the policy's own transitions."""
        return self.source.take(entries, self.pairs)

    @cached_property
    def entries(self) -> IntArray:
        """The place of each of the policy's transitions among all of them."""
        return self.take(np.arange(self.source.n_transitions))

    @cached_property
    def most_actions(self) -> int:
        """Largest number of actions that the policy takes in a state."""
        return int(np.diff(np.append(self.begins, self.pairs.size)).max())


class MixedRisk:
    """A bound risk measure, mixed over the actions of a policy: one value and row per state.

    Parameters
    ----------
    inner : RiskOperator
        The measure, on the transitions of all pairs.
    rows : PolicyRows
        The policy.
    """

    def __init__(self, inner: RiskOperator, rows: PolicyRows) -> None:
        self.basis = inner.basis
        self.rows_of_policy = rows
        self._inner = inner
        fixed = inner.fixed_entries()
        self._fixed: FloatArray | None = None if fixed is None else rows.shares * rows.take(fixed)
        self._last: tuple[FloatArray, FloatArray, float] | None = None

    def evaluate(self, targets: FloatArray, pairs: IntArray, out: FloatArray) -> float:
        """Σ_a π(a|s) q(s,a) for each state, and a bound on its error."""
        policy = self.rows_of_policy
        q, error = self.values_of_pairs(targets)
        values = q[policy.pairs]
        out[pairs] = np.add.reduceat(policy.weights * values, policy.begins)[pairs]
        # for k actions, half an epsilon for each weight, product and sum, and as much again
        rounding = 4 * (policy.most_actions - 1) * float(np.finfo(np.float64).eps)
        return error + rounding * float(np.abs(values).max())

    def values_of_pairs(self, targets: FloatArray) -> tuple[FloatArray, float]:
        """(S·A,) values of the pairs that the policy uses, −inf for others, and their error.

        The last ones are kept: Newton's method asks for the rows where it has just asked for the
        values.
        """
        if self._last is None or self._last[0] is not targets:
            q = np.full(self.rows_of_policy.source.n_pairs, -np.inf)
            error = self._inner.evaluate(self._spread(targets), self.rows_of_policy.pairs, q)
            self._last = (targets, q, error)
        return self._last[1:]

    def rows(
        self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True
    ) -> FloatArray:
        """The mixed rows of the states ``pairs``, over the policy's transitions."""
        policy = self.rows_of_policy
        q, _ = self.values_of_pairs(targets)
        found = self._inner.rows(self._spread(targets), q, policy.pairs, precise=precise)
        taken: FloatArray = policy.pattern.take(policy.shares * found, pairs)
        return taken

    def fixed_entries(self) -> FloatArray | None:
        """The mixed rows if the measure is linear, else None."""
        return self._fixed

    def approximation(self) -> RiskOperator | None:
        """The mixture of the measure's own approximation."""
        cheaper = self._inner.approximation()
        return None if cheaper is None else MixedRisk(cheaper, self.rows_of_policy)

    def _spread(self, targets: FloatArray) -> FloatArray:
        """Targets of all transitions; those of pairs that the policy does not use are zero."""
        everywhere = np.zeros(self.rows_of_policy.source.n_transitions)
        everywhere[self.rows_of_policy.entries] = targets
        return everywhere
