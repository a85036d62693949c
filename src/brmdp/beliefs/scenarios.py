"""Finitely many weighted kernels.

The belief of the paper's two illustrative examples: φ = Σ_k μ_k δ_{P^k}. Observing (s,a,s')
multiplies each weight by P^k(s'|s,a). Rows of different pairs are dependent: they share the
scenario.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from brmdp._sparse import ArrayOrSparse
from brmdp._validation import (
    FloatArray,
    IntArray,
    as_array,
    as_float_array,
    first_bad,
    rounding_of,
    sum_tolerance,
)
from brmdp.beliefs.observations import broadcast_observations
from brmdp.beliefs.storage import Saveable, corrupt_if_invalid, require_arrays, shape_of
from brmdp.errors import ImpossibleTransitionError, InvalidInputError
from brmdp.mdp import TabularMDP, counted, normalised_rows, pattern_and_probabilities
from brmdp.pattern import KernelBelief, TransitionPattern, pattern_and_entries, pattern_from_arrays

__all__ = ["ScenarioBelief", "as_weights"]

_ARRAYS = ("shape", "indptr", "next_states", "probabilities", "weights")


class ScenarioBelief(KernelBelief, Saveable):
    """Finitely many kernels with weights, updated by Bayes' rule.

    Parameters
    ----------
    kernels : (K, S, A, S) array, or a sequence of K kernels
        Each is a dense (S, A, S) array, a sparse (S·A, S) matrix or a :class:`brmdp.TabularMDP`.
    weights : (K,) array
        Probabilities of the kernels: not negative, summing to one.

    Examples
    --------
    Either the states stay put, or they swap:

    >>> import brmdp
    >>> stay, swap = [[[1, 0]], [[0, 1]]], [[[0.2, 0.8]], [[0.8, 0.2]]]
    >>> belief = brmdp.ScenarioBelief([stay, swap], weights=[0.5, 0.5])
    >>> belief.observe(state=0, action=0, next_state=0)
    >>> belief.weights.round(3)
    array([0.833, 0.167])
    """

    rows_independent: ClassVar[bool] = False

    def __init__(
        self,
        kernels: NDArray[Any] | Sequence[ArrayOrSparse | TabularMDP],
        weights: ArrayLike,
    ) -> None:
        listed = isinstance(kernels, Sequence) or (
            isinstance(kernels, np.ndarray) and kernels.ndim > 0
        )
        if not listed or isinstance(kernels, str) or len(kernels) == 0:
            raise InvalidInputError(
                "kernels must be a non-empty sequence of kernels or a (K, S, A, S) array"
            )
        parsed = []
        for k, kernel in enumerate(kernels):
            if isinstance(kernel, TabularMDP):
                parsed.append((kernel.pattern, kernel.probabilities))
            else:
                parsed.append(pattern_and_probabilities(kernel, f"kernels[{k}]"))
        shapes = {(pattern.n_states, pattern.n_actions) for pattern, _ in parsed}
        if len(shapes) > 1:
            raise InvalidInputError(
                f"kernels must all have the same states and actions; got {sorted(shapes)}"
            )
        union = _union([pattern for pattern, _ in parsed])
        probabilities = np.stack(
            [union.gather(pattern.csr(entries)) for pattern, entries in parsed]
        )
        mass = as_weights(weights, len(parsed))
        self._set(union, probabilities, mass / mass.sum())

    def _set(
        self, pattern: TransitionPattern, probabilities: FloatArray, weights: FloatArray
    ) -> None:
        self.pattern = pattern
        self.scenario_entries = probabilities
        self.weights = weights

    @property
    def n_scenarios(self) -> int:
        """Number of kernels."""
        return int(self.weights.size)

    def observe(
        self, state: int | ArrayLike, action: int | ArrayLike, next_state: int | ArrayLike
    ) -> None:
        """Update the weights by Bayes' rule for observed transitions, in place.

        Pass three integers, or three arrays. If one transition is refused, none is used.

        Raises
        ------
        InvalidInputError
            If an index is out of range or an action is not admissible.
        ImpossibleTransitionError
            If a transition is impossible in every scenario that still has weight.
        """
        sizes = (self.n_states, self.n_actions, self.n_states)
        states, actions, next_states = broadcast_observations((state, action, next_state), sizes)
        weights = self.weights
        for s, a, t in zip(states.flat, actions.flat, next_states.flat, strict=True):
            likelihood = self.scenario_entries[:, self.pattern.locate(int(s), int(a), int(t))]
            if (likelihood == likelihood[0]).all():
                continue
            updated = weights * likelihood
            total = updated.sum()
            if not total > 0.0:
                raise ImpossibleTransitionError(
                    f"the transition (state={s}, action={a}, next_state={t}) is impossible "
                    "in every scenario that still has weight"
                )
            weights = updated / total
        self.weights = weights

    def copy(self) -> Self:
        """An independent belief of the same type, with the same kernels and weights."""
        twin = type(self).__new__(type(self))
        # attributes that a subclass added
        twin.__dict__.update(self.__dict__)
        twin._set(self.pattern, self.scenario_entries, self.weights.copy())
        return twin

    def mean_entries(self) -> FloatArray:
        """Mean probability of every possible transition."""
        mean: FloatArray = self.weights @ self.scenario_entries
        return mean

    def sample_entries(
        self, n: int, pairs: IntArray | None = None, *, rng: np.random.Generator
    ) -> FloatArray:
        """``n`` joint draws of the kernel; all rows of a draw come from one scenario."""
        chosen = self.scenario_entries[rng.choice(self.n_scenarios, size=n, p=self.weights)]
        return chosen if pairs is None else self.pattern.take(chosen, pairs)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Kernels and weights as named arrays, for :meth:`save`."""
        return {
            "shape": np.array([self.n_states, self.n_actions]),
            "indptr": self.pattern.indptr,
            "next_states": self.pattern.next_states,
            "probabilities": self.scenario_entries,
            "weights": self.weights,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], source: object) -> Self:
        """The belief that :meth:`arrays` described."""
        require_arrays(arrays, _ARRAYS, source)
        n_states, n_actions = shape_of(arrays["shape"], source)
        belief = cls.__new__(cls)
        with corrupt_if_invalid(source):
            pattern = pattern_from_arrays(
                n_states, n_actions, arrays["indptr"], arrays["next_states"]
            )
            weights = as_weights(
                as_float_array(arrays["weights"], "weights"), arrays["weights"].size
            )
            probabilities = as_float_array(arrays["probabilities"], "probabilities")
            if (
                probabilities.shape != (weights.size, pattern.n_transitions)
                or (probabilities < 0).any()
            ):
                raise InvalidInputError(
                    "probabilities must have one row per kernel and no negative entry"
                )
            for row in probabilities:
                normalised_rows(pattern, row, "probabilities")
        belief._set(pattern, probabilities, weights)
        return belief

    def __repr__(self) -> str:
        return (
            f"ScenarioBelief({counted(self.n_scenarios, 'kernel')}, "
            f"{counted(self.n_states, 'state')}, {counted(self.n_actions, 'action')})"
        )


def as_weights(weights: ArrayLike, n: int) -> FloatArray:
    """Check the weights of ``n`` kernels: not negative, summing to one."""
    given = as_array(weights, "weights", "numbers")
    mass = as_float_array(given, "weights")
    if mass.shape != (n,):
        raise InvalidInputError(f"weights must have shape ({n},), one per kernel; got {mass.shape}")
    if (mass < 0).any():
        bad = first_bad(mass < 0)
        raise InvalidInputError(f"weights must not be negative; got {mass[bad]} at index {bad[0]}")
    if abs(mass.sum() - 1.0) > sum_tolerance(rounding_of(given), n):
        raise InvalidInputError(f"weights must sum to one; got {mass.sum():.12g}")
    return mass


def _union(patterns: list[TransitionPattern]) -> TransitionPattern:
    """The transitions that are possible in at least one of the patterns."""
    first = patterns[0]
    total = sum(sparse.csr_array(p.csr(np.ones(p.n_transitions))) for p in patterns)
    admissible = np.logical_or.reduce([p.admissible for p in patterns])
    if any((p.admissible != first.admissible).any() for p in patterns):
        raise InvalidInputError("kernels must all have the same admissible actions")
    pattern, _ = pattern_and_entries(total, "kernels", admissible)
    return pattern
