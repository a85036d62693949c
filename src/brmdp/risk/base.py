"""The interface between beliefs and planners: values and risk-adjusted rows.

A risk measure bound to a belief turns next-state targets w = r + γV into a value q(s,a) for each
pair and a probability row p̂(·|s,a) with q(w + dw) ≈ q(w) + p̂·dw. Planners need nothing else. Every
measure is monotone and translation invariant in w, so its Bellman operator is a γ-contraction. Some
optimistic measures only satisfy q(w + c) ≤ q(w) + c for c ≥ 0, with rows that sum to less than one;
that suffices (:mod:`brmdp.risk.optimism`). The saddlepoint approximation is the exception, and
plans made with it are marked as approximate.
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

"exact": those of the belief itself, up to the reported error. "sampled": those of draws from it, so
an error bound holds for the problem *of these draws*. "approximate": estimates without a bound.
"""


def rounding(pattern: TransitionPattern, targets_size: float) -> float:
    """Bound on the rounding error of Σ p w for targets of at most this size.

    It allows half an epsilon for each of the n terms, as much again for the sum that p was divided
    by, and a few more.
    """
    return (pattern.widest + 8) * float(np.finfo(np.float64).eps) * targets_size


class RiskOperator(Protocol):
    """A risk measure applied to one belief, frozen for the duration of a solve.

    Unless :attr:`basis` is "approximate", its values must be monotone in the targets and translate
    with them, q(w + c) = q(w) + c: error bounds and certificates rest on it.

    Examples
    --------
    >>> import numpy as np
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> operator = brmdp.Quantile(0.1).bind(belief)
    >>> operator.basis
    'exact'
    >>> values = np.empty(2)
    >>> error = operator.evaluate(np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 1]), values)
    >>> values.round(6)
    array([0.1, 0.1])
    """

    basis: str
    """What the values are, one of :data:`BASES`: "exact", "sampled" or "approximate"."""

    def fixed_entries(self) -> FloatArray | None:
        """The rows of all pairs if the measure is linear and they never change, else None."""
        ...

    def evaluate(self, targets: FloatArray, pairs: IntArray, out: FloatArray) -> float:
        """Write the values of ``pairs`` into ``out``, and bound their errors.

        Parameters
        ----------
        targets : (transitions,) array
            The target w of every possible transition, in the order of the belief's pattern.
        pairs : integers
            Indices s·A + a of the pairs to evaluate.
        out : (S·A,) array
            Receives q(s,a) at the entries ``pairs``; the others must not be changed.

        Returns
        -------
        float
            One bound that covers the numerical error of every value written.
        """
        ...

    def rows(
        self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True
    ) -> FloatArray:
        """Risk-adjusted rows of ``pairs``, one after another; ``values`` are from ``evaluate``.

        Each row is a probability vector over the pair's possible transitions. With
        ``precise=False``, an estimate good enough for Newton's method will do.
        """
        ...

    def approximation(self) -> RiskOperator | None:
        """A much cheaper measure with nearly the same values to start from, or None."""
        ...


class RiskMeasure(Protocol):
    """A rule that turns uncertainty about the kernel into a single value per pair.

    Custom measures only need :meth:`bind`. A measure with a level may also have
    ``at_level(alpha)``, which returns the same measure at another level. A measure that remembers
    something from plan to plan, such as a random stream or draws, has ``memory()``, which returns
    named arrays, and ``restore(memory)``; agents use these to go back when a plan fails or is
    interrupted. If ``memory()`` is costly, ``checkpoint()`` may return a function that restores the
    present state each time it is called, or None.

    Examples
    --------
    A custom measure: the expectation under the mean kernel, mixed with 1 % of a uniform one.

    >>> import numpy as np
    >>> import brmdp
    >>> from brmdp.risk.base import FixedKernel
    >>> class Blurred:
    ...     def bind(self, belief):
    ...         pattern = belief.pattern
    ...         even = np.repeat(1.0 / pattern.widths, pattern.widths)
    ...         return FixedKernel(pattern, 0.99 * belief.mean_entries() + 0.01 * even)
    >>> belief = brmdp.DirichletBelief.informative([[[0.9, 0.1]], [[0.0, 1.0]]], 10.0)
    >>> plan = brmdp.plan(belief, [[1.0], [0.0]], 0.9, risk=Blurred())
    >>> plan.status
    'converged'
    """

    def bind(self, belief: Belief) -> RiskOperator:
        """Apply the measure to a belief, taking a snapshot of what it needs."""
        ...


class FixedKernel:
    """The expectation under one kernel: the posterior mean, a posterior draw or a known kernel."""

    def __init__(
        self, pattern: TransitionPattern, probabilities: FloatArray, basis: str = EXACT
    ) -> None:
        if probabilities.shape != (pattern.n_transitions,):
            raise InvalidInputError(
                f"probabilities must hold one number per possible transition, "
                f"({pattern.n_transitions},); got {probabilities.shape}"
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
        """None: nothing is cheaper."""
        return None


def levels_by_pair(
    levels: FloatArray, pattern: TransitionPattern, name: str = "alpha"
) -> FloatArray:
    """Spread a single level or an (S, A) array of levels over the pairs."""
    shape = (pattern.n_states, pattern.n_actions)
    if levels.ndim and levels.shape != shape:
        raise InvalidInputError(
            f"{name} must be a number or have shape {shape}, one level per (s, a); got "
            f"{levels.shape}"
        )
    return np.broadcast_to(levels, shape).reshape(-1).astype(np.float64)
