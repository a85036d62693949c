"""The Markov chain of a policy: its matrix, its visit frequencies and its trajectories.

A stationary policy turns a kernel into the matrix P_π(s, s') = P(s'|s, π(s)). If every state can be
reached from every other, the share of time spent in s converges almost surely to n̄_s > 0, the
solution of n̄ P_π = n̄ with Σ n̄_s = 1, whatever the start. This is what Assumption 1 (i) of the
paper asks for. Periodic chains are fine: shares of time converge for them too.

The equation is solved by the elimination of Grassmann, Taksar and Heyman. It never subtracts, so
rare states come out as accurately as common ones.
"""

from __future__ import annotations

from bisect import bisect

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from brmdp._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_index,
    as_policy,
    as_positive_int,
)
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import require_belief
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = [
    "format_states",
    "long_run_frequencies",
    "policy_matrix",
    "policy_pairs",
    "reachable_from",
    "transition_counts",
    "visit_frequencies",
]


def policy_pairs(belief: Belief, policy: ArrayLike) -> IntArray:
    """(S,) index s·A + π(s) of the pair that a valid policy uses in each state."""
    require_belief(belief)
    pattern = belief.pattern
    return np.arange(pattern.n_states) * pattern.n_actions + as_policy(policy, pattern.admissible)


def policy_matrix(belief: Belief, policy: ArrayLike) -> FloatArray:
    """(S, S) matrix P_π under a known kernel, or under the mean kernel of a belief."""
    pairs = policy_pairs(belief, policy)
    pattern = belief.pattern
    matrix = np.zeros((pattern.n_states, pattern.n_states))
    owners = np.repeat(np.arange(pattern.n_states), pattern.widths[pairs])
    # a shared disturbance may reach the same state by several outcomes
    np.add.at(
        matrix,
        (owners, pattern.take(pattern.next_states, pairs)),
        pattern.take(belief.mean_entries(), pairs),
    )
    return matrix


def visit_frequencies(belief: Belief, policy: ArrayLike) -> FloatArray:
    """(S,) share of time n̄_s that a policy spends in each state in the long run.

    Parameters
    ----------
    belief : TabularMDP or Belief
        A known kernel, or a belief, of which the mean kernel is used.
    policy : (S,) integers
        π.

    Raises
    ------
    InvalidInputError
        If the chain is not ergodic. The message names its closed classes or its transient states.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.theory import visit_frequencies
    >>> mdp = brmdp.TabularMDP([[[0.5, 0.5]], [[1.0, 0.0]]], [[0.0], [1.0]], discount=0.9)
    >>> visit_frequencies(mdp, [0, 0]).round(3).tolist()
    [0.667, 0.333]
    """
    matrix = policy_matrix(belief, policy)
    _require_one_class(matrix)
    return _positive_frequencies(matrix)


def long_run_frequencies(belief: Belief, policy: ArrayLike, start: int) -> FloatArray:
    """(S,) share of time that a policy which begins at ``start`` spends in each state.

    The chain need not be ergodic: transient and unreachable states have frequency 0. But it must
    reach the same closed class whatever happens on the way; otherwise the shares would be random.

    Parameters
    ----------
    belief, policy
        As in :func:`visit_frequencies`.
    start : int
        First state.

    Raises
    ------
    InvalidInputError
        If several closed classes can be reached from ``start``. The message names them.
    """
    matrix = policy_matrix(belief, policy)
    begin = as_index(start, len(matrix), "start")
    closed = [
        states for states in _closed_classes(matrix)[0] if reachable_from(matrix, begin)[states[0]]
    ]
    if len(closed) > 1:
        raise InvalidInputError(
            f"policy must lead from state {begin} to one closed class; {_several(closed)}"
        )
    frequencies = np.zeros(len(matrix))
    frequencies[closed[0]] = _positive_frequencies(matrix[np.ix_(closed[0], closed[0])])
    return frequencies


def reachable_from(matrix: FloatArray, start: int) -> BoolArray:
    """(S,) whether each state can be reached from ``start``, which counts as reached itself."""
    reached = np.zeros(len(matrix), dtype=bool)
    reached[breadth_first_order(sparse.csr_array(matrix), start, return_predecessors=False)] = True
    return reached


def transition_counts(
    mdp: TabularMDP, policy: ArrayLike, steps: int, *, rng: np.random.Generator
) -> IntArray:
    """(S, S) number of transitions s → s' in one on-policy trajectory of ``steps`` steps.

    The trajectory begins where the MDP does (``mdp.start``). A step takes about 0.2 µs.
    """
    pairs = policy_pairs(mdp, policy)
    n = as_positive_int(steps, "steps")
    pattern = mdp.pattern
    cumulative: list[list[float]] = []
    successors: list[list[int]] = []
    for pair in pairs:
        row = slice(pattern.indptr[pair], pattern.indptr[pair + 1])
        thresholds = np.cumsum(mdp.probabilities[row]).tolist()
        thresholds[-1] = 1.0  # rounding must not leave a gap below one
        cumulative.append(thresholds)
        successors.append(pattern.next_states[row].tolist())
    state = (
        mdp.start if isinstance(mdp.start, int) else int(rng.choice(pattern.n_states, p=mdp.start))
    )
    visited = [state]
    visit = visited.append
    for chance in rng.random(n).tolist():
        state = successors[state][bisect(cumulative[state], chance)]
        visit(state)
    states = np.array(visited)
    moves = states[:-1] * pattern.n_states + states[1:]
    return np.bincount(moves, minlength=pattern.n_states**2).reshape(
        pattern.n_states, pattern.n_states
    )


def _positive_frequencies(matrix: FloatArray) -> FloatArray:
    """Stationary distribution of an irreducible chain; raises if it underflows somewhere."""
    frequencies = _stationary(matrix)
    if not (frequencies > 0.0).all():
        raise InvalidInputError(
            "policy visits some states so rarely that their frequency is zero in double precision"
        )
    return frequencies


def _stationary(matrix: FloatArray) -> FloatArray:
    """Stationary distribution of an irreducible chain, by the elimination described above."""
    flow = matrix.copy()
    n = len(flow)
    weights = np.ones(n)
    # the caller checks for underflow
    with np.errstate(all="ignore"):
        for k in range(n - 1, 0, -1):
            flow[:k, k] /= flow[k, :k].sum()
            flow[:k, :k] += np.outer(flow[:k, k], flow[k, :k])
        for k in range(1, n):
            weights[k] = weights[:k] @ flow[:k, k]
        frequencies: FloatArray = weights / weights.sum()
    return frequencies


def _require_one_class(matrix: FloatArray) -> None:
    closed, transient = _closed_classes(matrix)
    if len(closed) == 1 and not transient.size:
        return
    reasons = []
    if transient.size:
        reasons.append(
            f"states {format_states(transient)} are transient (visited finitely often, then never "
            "again)"
        )
    if len(closed) > 1:
        reasons.append(_several(closed))
    raise InvalidInputError(
        "policy must give an ergodic chain, in which every state can be reached from every other; "
        + "; ".join(reasons)
    )


def _closed_classes(matrix: FloatArray) -> tuple[list[IntArray], IntArray]:
    """The closed classes, ordered by their first states, and the transient states."""
    count, label = connected_components(
        sparse.csr_array(matrix), directed=True, connection="strong"
    )
    leaves = (matrix > 0.0) & (label[:, None] != label[None, :])
    open_classes = np.unique(label[leaves.any(axis=1)])
    closed = sorted(
        (np.flatnonzero(label == c) for c in range(count) if c not in open_classes),
        key=lambda states: int(states[0]),
    )
    return closed, np.flatnonzero(np.isin(label, open_classes))


def _several(closed: list[IntArray]) -> str:
    classes = " and ".join(format_states(states) for states in closed[:3]) + (
        " and more" if len(closed) > 3 else ""
    )
    return (
        f"there are {len(closed)} closed classes, {classes}, and a trajectory stays in one of them"
    )


def format_states(states: IntArray) -> str:
    """The states in braces; only the first eight if there are more."""
    shown = ", ".join(str(int(s)) for s in states[:8])
    return "{" + shown + (", …}" if states.size > 8 else "}")
