"""Which transitions are possible.

A :class:`TransitionPattern` lists the possible next states of every state-action pair in one flat
array of compressed rows: pair ``s·A + a`` owns the entries ``indptr[pair]`` to ``indptr[pair + 1]``
of ``next_states``. Kernels, beliefs, rewards and risk-adjusted rows are flat arrays over the same
entries, so memory and time grow with the number of possible transitions, never with S². A pair
without entries is an inadmissible action.

The entries of a pair are usually distinct next states in increasing order. For a shared disturbance
they are the disturbance's outcomes, for unknown rewards pairs (s', r), and a next state may repeat.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from brmdp._sparse import ArrayOrSparse, as_csr, is_sparse
from brmdp._validation import (
    FloatArray,
    IntArray,
    Seed,
    as_array,
    as_float_array,
    as_index,
    as_index_array,
    as_positive_int,
    as_rng,
)
from brmdp.errors import ImpossibleTransitionError, InvalidInputError

__all__ = [
    "Format",
    "KernelBelief",
    "TransitionPattern",
    "full_pattern",
    "pattern_and_entries",
    "pattern_from_arrays",
]

Format: TypeAlias = Literal["dense", "csr", "flat"]
"""Formats of a kernel: dense (S, A, S), CSR (S·A, S), or flat over the possible transitions."""

DENSE_LIMIT = 50_000_000
"""Largest dense array, in numbers, that is made from a sparse pattern."""

DENSE_REWARDS = 4_000_000
"""Up to this size, built-in worlds list the rewards of all transitions, possible or not."""

LARGEST_FULL = 500_000_000
"""Largest number of transitions (about 12 GB) if every transition is possible."""


@dataclass(frozen=True, eq=False)
class TransitionPattern:
    """Possible transitions of ``n_states`` × ``n_actions`` pairs in compressed rows.

    Attributes
    ----------
    n_states, n_actions : int
    indptr : (S·A + 1,) integers
        Pair s·A + a owns the entries ``indptr[pair]`` to ``indptr[pair + 1]``.
    next_states : (transitions,) integers
        Next state of each entry.

    Examples
    --------
    >>> import brmdp
    >>> pattern = brmdp.envs.riverswim(6).pattern
    >>> pattern.n_states, pattern.n_actions, pattern.n_transitions
    (6, 2, 22)
    >>> pattern.next_states[pattern.indptr[3] : pattern.indptr[4]]  # state 1, action 1
    array([0, 1, 2])
    """

    n_states: int
    n_actions: int
    indptr: IntArray
    next_states: IntArray

    def __post_init__(self) -> None:
        stuck = ~self.admissible.any(axis=1)
        if stuck.any():
            raise InvalidInputError(f"state {int(np.argmax(stuck))} has no admissible action")

    @property
    def n_pairs(self) -> int:
        """Number of state-action pairs, S·A."""
        return self.n_states * self.n_actions

    @property
    def n_transitions(self) -> int:
        """Number of possible transitions."""
        return int(self.next_states.size)

    @cached_property
    def widths(self) -> IntArray:
        """Number of possible successors of each pair."""
        return np.diff(self.indptr)

    @cached_property
    def widest(self) -> int:
        """The largest number of successors of a pair."""
        return int(self.widths.max())

    @cached_property
    def admissible(self) -> NDArray[np.bool_]:
        """(S, A) mask of admissible actions."""
        mask: NDArray[np.bool_] = (self.widths > 0).reshape(self.n_states, self.n_actions)
        return mask

    @cached_property
    def pairs(self) -> IntArray:
        """The admissible pairs s·A + a, increasing."""
        return np.flatnonzero(self.widths > 0)

    @cached_property
    def row_widths(self) -> IntArray:
        """Number of possible successors of each admissible pair."""
        return self.widths[self.pairs]

    @cached_property
    def pair_of_transition(self) -> IntArray:
        """The pair s·A + a that owns each entry."""
        return np.repeat(np.arange(self.n_pairs), self.widths)

    @cached_property
    def is_full(self) -> bool:
        """Whether every pair lists every state, in order."""
        return self.n_transitions == self.n_pairs * self.n_states and bool(
            (self.next_states.reshape(self.n_pairs, -1) == np.arange(self.n_states)).all()
        )

    @cached_property
    def is_simple(self) -> bool:
        """Whether every pair lists distinct next states in increasing order."""
        if self.n_transitions < 2:
            return True
        # one byte per transition; the pairs' own numbers would take eight
        rising = np.empty(self.n_transitions + 1, dtype=bool)
        np.greater(self.next_states[1:], self.next_states[:-1], out=rising[1:-1])
        rising[self.indptr] = True
        return bool(rising.all())

    def locate(self, state: int, action: int, next_state: int) -> int:
        """Entry of the transition (state, action, next_state) of a simple pattern.

        Raises
        ------
        InvalidInputError
            If an index is out of range or the action is not admissible.
        ImpossibleTransitionError
            If the transition is not in the pattern.
        """
        n, n_actions = self.n_states, self.n_actions
        state = as_index(state, n, "state")
        action = as_index(action, n_actions, "action")
        next_state = as_index(next_state, n, "next_state")
        pair = state * n_actions + action
        if self.is_full:
            return pair * n + next_state
        begin, end = int(self.indptr[pair]), int(self.indptr[pair + 1])
        if begin == end:
            raise InvalidInputError(f"action {action} is not admissible in state {state}")
        entry = begin + int(np.searchsorted(self.next_states[begin:end], next_state))
        if entry == end or self.next_states[entry] != next_state:
            raise ImpossibleTransitionError(
                f"the transition (state={state}, action={action}, next_state={next_state}) is "
                f"impossible: next_state must be one of {_shorten(self.next_states[begin:end])}"
            )
        return entry

    def locate_many(self, states: IntArray, actions: IntArray, next_states: IntArray) -> IntArray:
        """Entries of many transitions of a simple pattern, given by indices that are in range.

        Raises
        ------
        InvalidInputError, ImpossibleTransitionError
            As :meth:`locate`, for the first transition that is not in the pattern.
        """
        pairs = (states * self.n_actions + actions).ravel()
        keys = self.pair_of_transition * self.n_states + self.next_states
        wanted = pairs * self.n_states + next_states.ravel()
        entries = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        missing = keys[entries] != wanted
        if missing.any():
            k = int(np.argmax(missing))
            s, a = divmod(int(pairs[k]), self.n_actions)
            self.locate(s, a, int(next_states.ravel()[k]))
            raise ImpossibleTransitionError(f"observation {k} is impossible")
        return entries.astype(np.int64)

    def gather(self, rewards: ArrayOrSparse, name: str = "rewards") -> FloatArray:
        """Lay rewards out as one number per possible transition.

        They may be given as r(s,a), as r(s,a,s'), as a sparse (S·A, S) matrix (missing entries are
        zero), or flat.
        """
        shapes = (
            f"({self.n_states}, {self.n_actions}), ({self.n_states}, {self.n_actions}, "
            f"{self.n_states}), sparse ({self.n_pairs}, {self.n_states}), or flat "
            f"({self.n_transitions},) over the possible transitions"
        )
        if is_sparse(rewards):
            if rewards.shape != (self.n_pairs, self.n_states):
                raise InvalidInputError(
                    f"{name} must have shape {shapes}; got sparse {rewards.shape}"
                )
            matrix = as_csr(rewards, name)
            if np.array_equal(matrix.indptr, self.indptr) and np.array_equal(
                matrix.indices, self.next_states
            ):
                return np.asarray(matrix.data)
            flat = np.asarray(matrix[self.pair_of_transition, self.next_states]).ravel()
            return np.ascontiguousarray(flat, dtype=np.float64)
        array = as_float_array(rewards, name)
        if array.shape == (self.n_states, self.n_actions):
            return np.repeat(array.ravel(), self.widths)
        if array.shape == (self.n_states, self.n_actions, self.n_states):
            if self.is_full:
                return array.reshape(-1).copy()
            return array.reshape(self.n_pairs, self.n_states)[
                self.pair_of_transition, self.next_states
            ]
        if array.shape == (self.n_transitions,):
            return np.array(array)
        raise InvalidInputError(f"{name} must have shape {shapes}; got {array.shape}")

    def take(self, entries: NDArray[Any], pairs: IntArray) -> NDArray[Any]:
        """Entries (…, transitions) of the given pairs, one after another."""
        if pairs is self.pairs:
            return entries
        widths = self.widths[pairs]
        ends = np.cumsum(widths)
        return entries[
            ..., np.arange(ends[-1]) + np.repeat(self.indptr[pairs] - ends + widths, widths)
        ]

    def dense(self, entries: NDArray[Any]) -> NDArray[Any]:
        """Entries (..., transitions) as arrays (..., S, A, S); repeated next states add up."""
        leading = entries.shape[:-1]
        shape = (*leading, self.n_states, self.n_actions, self.n_states)
        if self.is_full:
            return entries.reshape(shape).copy()
        size = int(np.prod(shape, dtype=np.float64))
        if size > DENSE_LIMIT:
            raise InvalidInputError(
                f"a dense array of shape {shape} would hold {size} numbers; ask for format='csr' "
                "or format='flat'"
            )
        out = np.zeros((*leading, self.n_pairs, self.n_states), dtype=entries.dtype)
        if self.is_simple:
            out[..., self.pair_of_transition, self.next_states] = entries
        else:
            flat = out.reshape(-1, self.n_pairs * self.n_states)
            where = self.pair_of_transition * self.n_states + self.next_states
            for row, given in zip(flat, entries.reshape(-1, entries.shape[-1]), strict=True):
                np.add.at(row, where, given)
        return out.reshape(shape)

    def csr(self, entries: NDArray[Any]) -> sparse.csr_array:
        """Entries as a CSR array of shape (S·A, S)."""
        matrix = sparse.csr_array(
            (entries.copy(), self.next_states.copy(), self.indptr.copy()),
            shape=(self.n_pairs, self.n_states),
        )
        matrix.sum_duplicates()
        return matrix

    def export(self, entries: NDArray[Any], format: Format) -> Any:
        """Entries in the given format; "csr" is for a single kernel only."""
        if format == "dense":
            return self.dense(entries)
        if format == "csr" and entries.ndim == 1:
            return self.csr(entries)
        if format == "flat":
            return entries.copy()
        raise InvalidInputError(
            f"format must be 'dense', 'csr' (one kernel) or 'flat'; got {format!r}"
        )

    def same_as(self, other: TransitionPattern) -> bool:
        """Whether both patterns list the same entries in the same order."""
        return self is other or (
            self.n_states == other.n_states
            and self.n_actions == other.n_actions
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.next_states, other.next_states)
        )


class KernelBelief:
    """Base class of the beliefs about a transition kernel on a fixed pattern.

    A subclass defines :attr:`pattern`, :meth:`mean_entries` and :meth:`sample_entries`; the other
    members follow from these.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.pattern import KernelBelief
    >>> isinstance(brmdp.DirichletBelief.uniform(3, 2), KernelBelief)
    True
    """

    pattern: TransitionPattern
    """Possible transitions."""

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.pattern.n_states

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return self.pattern.n_actions

    def mean_entries(self) -> FloatArray:
        """Mean probability of every possible transition."""
        raise NotImplementedError

    def sample_entries(
        self, n: int, pairs: IntArray | None = None, *, rng: np.random.Generator
    ) -> FloatArray:
        """``n`` joint draws of the kernel, (n, transitions); see :class:`brmdp.Belief`."""
        raise NotImplementedError

    def mean(self, format: Format = "dense") -> Any:
        """Mean kernel: "dense" (S, A, S), "csr" (S·A, S), or "flat" over possible transitions."""
        return self.pattern.export(self.mean_entries(), format)

    def sample(
        self, n: int = 1, *, format: Literal["dense", "flat"] = "dense", rng: Seed = None
    ) -> Any:
        """``n`` kernels drawn from the belief: "dense" (n, S, A, S), or "flat" (n, transitions)."""
        return self.pattern.export(
            self.sample_entries(as_positive_int(n, "n"), rng=as_rng(rng)), format
        )

    def gather_rewards(self, rewards: ArrayOrSparse) -> FloatArray:
        """Lay rewards out as one number per possible transition."""
        return self.pattern.gather(rewards)


def _shorten(states: IntArray) -> str:
    shown = ", ".join(str(int(s)) for s in states[:8])
    return f"[{shown}, …]" if states.size > 8 else f"[{shown}]"


def pattern_and_entries(
    kernel: ArrayOrSparse, name: str, admissible: ArrayLike | None = None
) -> tuple[TransitionPattern, FloatArray]:
    """Pattern and values of the non-zero entries of a dense (S, A, S) or sparse (S·A, S) kernel.

    Entries must be finite and not negative. Every admissible pair (by default every pair) needs at
    least one.

    Examples
    --------
    >>> from brmdp.pattern import pattern_and_entries
    >>> pattern, entries = pattern_and_entries([[[1.0, 0.0]], [[0.5, 0.5]]], "kernel")
    >>> pattern.next_states.tolist(), entries.tolist()
    ([0, 0, 1], [1.0, 0.5, 0.5])
    """
    matrix = _as_csr(kernel, name)
    n_pairs, n_states = matrix.shape
    n_actions = n_pairs // n_states
    entries = as_float_array(matrix.data, name)
    next_states = matrix.indices.astype(np.int64)
    widths = np.diff(matrix.indptr).astype(np.int64)
    mask = _as_mask(admissible, n_states, n_actions)
    if (entries < 0).any():
        position = int(np.argmax(entries < 0))
        s, a = divmod(int(np.searchsorted(matrix.indptr, position, side="right")) - 1, n_actions)
        raise InvalidInputError(
            f"{name} must not be negative; got {entries[position]} at (s={s}, a={a}, "
            f"s'={next_states[position]})"
        )
    empty = mask.ravel() & (widths == 0)
    if empty.any():
        s, a = divmod(int(np.argmax(empty)), n_actions)
        raise InvalidInputError(
            f"{name} must not be all zero for an admissible action, but is at (s={s}, a={a}); "
            "pass admissible= to rule an action out"
        )
    if not mask.all():
        keep = np.repeat(mask.ravel(), widths)
        entries, next_states = entries[keep], next_states[keep]
        widths = np.where(mask.ravel(), widths, 0)
    indptr = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
    return TransitionPattern(n_states, n_actions, indptr, next_states), entries


def full_pattern(
    n_states: int, n_actions: int, admissible: ArrayLike | None = None
) -> TransitionPattern:
    """The pattern in which every state may follow every admissible pair (by default every pair).

    Examples
    --------
    >>> from brmdp.pattern import full_pattern
    >>> full_pattern(3, 2).n_transitions
    18
    """
    mask = _as_mask(admissible, n_states, n_actions).ravel()
    entries = int(np.count_nonzero(mask)) * n_states
    if entries > LARGEST_FULL:
        raise InvalidInputError(
            f"possible must be given for {n_states:,} states and {n_actions:,} actions: if every "
            f"transition were possible, there would be {entries:,} of them, and at most "
            f"{LARGEST_FULL:,} are allowed"
        )
    return TransitionPattern(
        n_states,
        n_actions,
        np.concatenate(([0], np.cumsum(np.where(mask, n_states, 0)))).astype(np.int64),
        np.tile(np.arange(n_states, dtype=np.int64), int(np.count_nonzero(mask))),
    )


def _as_mask(admissible: ArrayLike | None, n_states: int, n_actions: int) -> NDArray[np.bool_]:
    if admissible is None:
        return np.ones((n_states, n_actions), dtype=bool)
    mask = as_array(admissible, "admissible", "booleans")
    if mask.shape != (n_states, n_actions) or mask.dtype != np.bool_:
        raise InvalidInputError(
            f"admissible must be booleans of shape {(n_states, n_actions)}; got {mask.dtype} of "
            f"shape {mask.shape}"
        )
    return mask


def pattern_from_arrays(
    n_states: int, n_actions: int, indptr: ArrayLike, next_states: ArrayLike
) -> TransitionPattern:
    """Check stored arrays and make a simple pattern from them.

    Examples
    --------
    >>> from brmdp.pattern import pattern_from_arrays
    >>> pattern = pattern_from_arrays(2, 1, [0, 1, 3], [0, 0, 1])
    >>> pattern.n_states
    2
    """
    columns = as_index_array(next_states, n_states, "next_states").ravel()
    pointers = as_index_array(indptr, columns.size + 1, "indptr").ravel()
    if (
        pointers.size != n_states * n_actions + 1
        or pointers[0] != 0
        or pointers[-1] != columns.size
    ):
        raise InvalidInputError(
            f"indptr must run from 0 to {columns.size} over {n_states * n_actions} pairs"
        )
    if (np.diff(pointers) < 0).any():
        raise InvalidInputError("indptr must not decrease")
    pattern = TransitionPattern(n_states, n_actions, pointers, columns)
    if not pattern.is_simple:
        raise InvalidInputError("next_states must be distinct and increasing within each pair")
    return pattern


def _as_csr(kernel: ArrayOrSparse, name: str) -> sparse.csr_array:
    """A kernel as canonical CSR of shape (S·A, S): sorted, no duplicates, no stored zeros."""
    if is_sparse(kernel):
        if kernel.ndim != 2 or 0 in kernel.shape or kernel.shape[0] % kernel.shape[1]:
            raise InvalidInputError(
                f"{name} must be a sparse matrix of shape (S·A, S) with row s·A + a; got "
                f"{kernel.shape}"
            )
        matrix = as_csr(kernel, name)
        matrix.eliminate_zeros()
        return matrix
    array = as_float_array(kernel, name)
    if array.ndim != 3 or array.shape[0] != array.shape[2] or 0 in array.shape:
        raise InvalidInputError(
            f"{name} must have shape (S, A, S) or be sparse (S·A, S); got shape {array.shape}"
        )
    return sparse.csr_array(array.reshape(-1, array.shape[2]))
