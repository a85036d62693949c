"""Finite Markov decision processes with a known kernel.

:class:`TabularMDP` only describes: it holds the kernel P(s'|s,a), rewards r(s,a,s'), discount γ and
start. :func:`brmdp.solve` solves it, and :func:`brmdp.evaluate_in_mdp` evaluates policies in it.
It also serves as a belief without any uncertainty, so the true values that define regret come from
the same solver as every Bayesian-risk plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from brmdp._sparse import ArrayOrSparse, as_csr, is_sparse
from brmdp._validation import (
    SUM_TOLERANCE,
    FloatArray,
    IntArray,
    as_array,
    as_discount,
    as_float_array,
    as_index,
    as_number,
    rounding_of,
    sum_tolerance,
)
from brmdp.errors import InvalidInputError
from brmdp.pattern import (
    Format,
    KernelBelief,
    TransitionPattern,
    full_pattern,
    pattern_and_entries,
)

if TYPE_CHECKING:
    import gymnasium

__all__ = [
    "TabularMDP",
    "as_start",
    "counted",
    "normalised_rows",
    "pattern_and_probabilities",
    "possible_pattern",
]


class TabularMDP(KernelBelief):
    """A finite discounted MDP whose kernel is known.

    Parameters
    ----------
    transitions : (S, A, S) array or SciPy sparse matrix (S·A, S) with row s·A + a
        P(s'|s,a). The rows of admissible actions must sum to one within 1e-8. A kernel in less than
        double precision may be off by its rounding error times the number of successors, but by no
        more than 0.01. The rows are then rescaled to sum to one exactly.
    rewards : (S, A) or (S, A, S) array, or sparse (S·A, S)
        r(s,a) or r(s,a,s'). Kept as given in :attr:`rewards`, including those of impossible
        transitions, which a belief with wider support needs.
    discount : float in [0, 1]
        Discount factor γ. With 1, only what has a horizon, or surely ends, can be computed.
    start : int or (S,) probabilities
        Initial state, or its distribution.
    admissible : (S, A) booleans, optional
        Admissible actions; by default all. The rows of other actions are ignored.
    state_names, action_names : sequences of str, optional
        Names of the states and actions.

    Attributes
    ----------
    pattern : TransitionPattern
        Possible transitions.
    probabilities, transition_rewards : (transitions,) arrays
        P and r on the possible transitions.

    Examples
    --------
    A machine that works (state 0) or is broken (state 1), and an action that repairs it:

    >>> import brmdp
    >>> machine = brmdp.TabularMDP(
    ...     transitions=[[[0.9, 0.1], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]],
    ...     rewards=[[10.0, 4.0], [0.0, -6.0]],
    ...     discount=0.9,
    ... )
    >>> machine
    TabularMDP(2 states, 2 actions, 5 possible transitions, discount=0.9)
    >>> brmdp.solve(machine).policy
    array([0, 1])
    """

    rows_independent: ClassVar[bool] = True
    kernel_known: ClassVar[bool] = True

    def __init__(
        self,
        transitions: ArrayOrSparse,
        rewards: ArrayOrSparse,
        discount: float,
        start: ArrayLike = 0,
        *,
        admissible: ArrayLike | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> None:
        pattern, probabilities = pattern_and_probabilities(transitions, "transitions", admissible)
        self.pattern: TransitionPattern = pattern
        self.probabilities: FloatArray = probabilities
        self.transition_rewards: FloatArray = pattern.gather(rewards)
        self.rewards: FloatArray | sparse.csr_array = _own_copy(rewards)
        self.discount: float = as_discount(discount, one_allowed=True)
        self.start: int | FloatArray = as_start(start, pattern.n_states)
        self.state_names: tuple[str, ...] | None = _as_names(
            state_names, pattern.n_states, "state_names"
        )
        self.action_names: tuple[str, ...] | None = _as_names(
            action_names, pattern.n_actions, "action_names"
        )
        self.probabilities.flags.writeable = False
        self.transition_rewards.flags.writeable = False

    @property
    def admissible(self) -> NDArray[np.bool_]:
        """(S, A) mask of admissible actions."""
        return self.pattern.admissible

    def kernel(self, format: Format = "dense") -> Any:
        """P(s'|s,a): "dense" (S, A, S), "csr" (S·A, S), or "flat" over possible transitions."""
        return self.pattern.export(self.probabilities, format)

    def mean_entries(self) -> FloatArray:
        """The kernel on the possible transitions: a known kernel is its own mean."""
        return self.probabilities

    def sample_entries(
        self, n: int, pairs: IntArray | None = None, *, rng: np.random.Generator
    ) -> FloatArray:
        """``n`` copies of the kernel, (n, transitions), or of the rows of ``pairs`` if given."""
        entries = self.probabilities
        if pairs is not None:
            entries = self.pattern.take(entries, pairs)
        return np.tile(entries, (n, 1))

    def __repr__(self) -> str:
        return (
            f"TabularMDP({counted(self.n_states, 'state')}, {counted(self.n_actions, 'action')}, "
            f"{counted(self.pattern.n_transitions, 'possible transition')}, "
            f"discount={self.discount})"
        )

    @classmethod
    def from_gymnasium(
        cls,
        source: gymnasium.Env[Any, Any] | Mapping[int, Mapping[int, Any]],
        discount: float,
        start: ArrayLike | None = None,
    ) -> TabularMDP:
        """Build from a Gymnasium environment with ``env.unwrapped.P``, or from such a dictionary.

        Parameters
        ----------
        source : gymnasium.Env or dict
            ``P[s][a]`` lists (probability, next state, reward, terminated). Repeated next states
            are merged: their probabilities add up, and their rewards are averaged, weighted by
            probability. A terminated transition leads to one extra state, the last, which is
            absorbing and pays nothing, so its value is zero.
        discount : float in [0, 1]
        start : int or (S,) probabilities, optional
            By default the environment's initial distribution, or state 0.

        Examples
        --------
        >>> import brmdp
        >>> table = {0: {0: [(0.5, 0, 0.0, False), (0.5, 0, 1.0, True)]}}
        >>> brmdp.TabularMDP.from_gymnasium(table, discount=0.9).state_names
        ('0', 'terminal')
        """
        table: Any = source
        unwrapped = getattr(source, "unwrapped", None)
        if unwrapped is not None:
            table = getattr(unwrapped, "P", None)
            if start is None and table is not None:
                start = getattr(unwrapped, "initial_state_distrib", None)
        if not isinstance(table, Mapping):
            raise InvalidInputError(
                "source must be a dictionary P[s][a] or an environment with env.unwrapped.P"
            )
        n = len(table)
        if n == 0 or not all(
            isinstance(actions, Mapping) and actions for actions in table.values()
        ):
            raise InvalidInputError("P must map every state to a non-empty dictionary of actions")
        n_actions = 1 + max(
            as_index(a, 2**31, "action in P") for actions in table.values() for a in actions
        )
        terminal = n
        data: list[float] = []
        reward_data: list[float] = []
        indices: list[int] = []
        indptr = [0]
        ends = False
        for s in range(n):
            if s not in table:
                raise InvalidInputError(f"P must have the states 0..{n - 1}; state {s} is missing")
            for a in range(n_actions):
                mass: dict[int, float] = {}
                paid: dict[int, float] = {}
                for entry in table[s].get(a, ()):
                    probability, next_state, reward, terminated = gymnasium_entry(
                        entry, f"P[{s}][{a}]"
                    )
                    target = (
                        terminal
                        if terminated
                        else as_index(next_state, n, f"next state in P[{s}][{a}]")
                    )
                    ends = ends or terminated
                    mass[target] = mass.get(target, 0.0) + probability
                    paid[target] = paid.get(target, 0.0) + probability * reward
                for target in sorted(t for t, p in mass.items() if p > 0.0):
                    indices.append(target)
                    data.append(mass[target])
                    reward_data.append(paid[target] / mass[target])
                indptr.append(len(indices))
        n_states = n
        if ends:
            n_states = n + 1
            for _ in range(n_actions):
                indices.append(terminal)
                data.append(1.0)
                reward_data.append(0.0)
                indptr.append(len(indices))
        shape = (n_states * n_actions, n_states)
        transitions = sparse.csr_array(
            (np.array(data), np.array(indices), np.array(indptr)), shape=shape
        )
        rewards = sparse.csr_array(
            (np.array(reward_data), np.array(indices), np.array(indptr)), shape=shape
        )
        if start is None:
            start = 0
        elif ends and isinstance(start, list | tuple | np.ndarray) and len(start) == n:
            start = np.append(as_float_array(start, "start"), 0.0)
        admissible = np.diff(indptr).reshape(n_states, n_actions) > 0
        names = [str(s) for s in range(n)] + ["terminal"] if ends else None
        return cls(transitions, rewards, discount, start, admissible=admissible, state_names=names)


def gymnasium_entry(entry: Any, name: str) -> tuple[float, Any, float, bool]:
    """Check one (probability, next state, reward, terminated) of Gymnasium's ``P[s][a]``."""
    try:
        probability, next_state, reward, terminated = entry
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"{name} must list (probability, next state, reward, terminated); got {entry!r}"
        ) from None
    chance = as_number(probability, f"probability in {name}", "a number in [0, 1]")
    if not 0.0 <= chance <= 1.0 + SUM_TOLERANCE:
        raise InvalidInputError(f"probability in {name} must lie in [0, 1]; got {probability!r}")
    paid = as_number(reward, f"reward in {name}", "a finite number")
    if not np.isfinite(paid):
        raise InvalidInputError(f"reward in {name} must be finite; got {reward!r}")
    return chance, next_state, paid, bool(terminated)


def counted(number: int, noun: str) -> str:
    """The number with its noun, such as "1 action" or "2 actions"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def pattern_and_probabilities(
    kernel: ArrayOrSparse, name: str, admissible: ArrayLike | None = None
) -> tuple[TransitionPattern, FloatArray]:
    """Check a dense (S, A, S) or sparse (S·A, S) kernel; return its pattern and probabilities."""
    given = kernel if is_sparse(kernel) else as_array(kernel, name, "an array of real numbers")
    pattern, entries = pattern_and_entries(given, name, admissible)
    return pattern, normalised_rows(pattern, entries, name, rounding_of(given))


def possible_pattern(
    n_states: int,
    n_actions: int,
    possible: ArrayOrSparse | TabularMDP | None,
    admissible: ArrayLike | None,
) -> TransitionPattern:
    """The pattern of the transitions marked by non-zero entries; by default all of them."""
    if possible is None:
        pattern = full_pattern(n_states, n_actions, admissible)
    elif not isinstance(possible, TabularMDP):
        pattern, _ = pattern_and_entries(possible, "possible", admissible)
    elif admissible is None:
        pattern = possible.pattern
    else:
        pattern, _ = pattern_and_entries(possible.kernel("csr"), "possible", admissible)
    if (pattern.n_states, pattern.n_actions) != (n_states, n_actions):
        raise InvalidInputError(
            f"possible must describe {n_states} states and {n_actions} actions; "
            f"got {pattern.n_states} and {pattern.n_actions}"
        )
    return pattern


def normalised_rows(
    pattern: TransitionPattern, probabilities: FloatArray, name: str, rounding: float = 0.0
) -> FloatArray:
    """Check that the rows of admissible pairs sum to one, and rescale them to do so exactly.

    ``rounding`` is the relative rounding of the original numbers if they came in less than double
    precision, else zero.
    """
    sums = np.bincount(pattern.pair_of_transition, weights=probabilities, minlength=pattern.n_pairs)
    off = pattern.admissible.ravel() & (
        np.abs(sums - 1.0) > sum_tolerance(rounding, pattern.widths)
    )
    if off.any():
        pair = int(np.argmax(off))
        s, a = divmod(pair, pattern.n_actions)
        raise InvalidInputError(
            f"{name} must sum to one over s'; got {sums[pair]:.12g} at (s={s}, a={a})"
        )
    return probabilities / sums[pattern.pair_of_transition]


def _own_copy(rewards: ArrayOrSparse) -> FloatArray | sparse.csr_array:
    if is_sparse(rewards):
        return as_csr(rewards, "rewards")
    copy = np.array(as_float_array(rewards, "rewards"))
    copy.flags.writeable = False
    return copy


def as_start(start: ArrayLike, n_states: int) -> int | FloatArray:
    """Check a start: a state, or a probability distribution over the states."""
    given = as_array(start, "start", f"a state or a distribution over {n_states} states")
    if given.ndim == 0:
        return as_index(start, n_states, "start")
    distribution, rounding = np.array(as_float_array(given, "start")), rounding_of(given)
    off = abs(distribution.sum() - 1.0) > sum_tolerance(rounding, distribution.size)
    if distribution.shape != (n_states,) or (distribution < 0).any() or off:
        raise InvalidInputError(
            f"start must be a state or a probability distribution over {n_states} states; "
            f"got shape {distribution.shape}, sum {distribution.sum():.12g}"
        )
    if rounding:
        distribution /= distribution.sum()
    distribution.flags.writeable = False
    return distribution


def _as_names(names: Sequence[str] | None, size: int, name: str) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray):
        raise InvalidInputError(f"{name} must be a sequence of {size} names; got {names!r}")
    result = tuple(str(n) for n in names)
    if len(result) != size:
        raise InvalidInputError(f"{name} must hold {size} names; got {len(result)}")
    return result
