"""The Markov chain of a policy: its matrix, how often it visits each state, and its trajectories.

A stationary policy turns a kernel into the matrix P_π(s, s') = P(s'|s, π(s)). Where every state can
be reached from every other, the share of time spent in s converges almost surely to n̄_s > 0, the
solution of n̄ P_π = n̄ with Σ n̄_s = 1, from any start: what Assumption 1 (i) of the paper asks
for. A period does no harm: shares of time converge all the same.

The equation is solved by the elimination of Grassmann, Taksar and Heyman, which never subtracts, so
that rare states are as accurate as common ones.
"""

from __future__ import annotations

from bisect import bisect
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from brmdp._validation import FloatArray, IntArray, as_index, as_policy, as_positive_int
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import require_belief
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = [
    "listed",
    "long_run_frequencies",
    "policy_matrix",
    "policy_pairs",
    "reachable_from",
    "transition_counts",
    "visit_frequencies",
]


def policy_pairs(belief: Belief, policy: Any) -> IntArray:
    """The pair s·A + π(s) of every state; the policy is validated."""
    require_belief(belief)
    pattern = belief.pattern
    return np.arange(pattern.n_states) * pattern.n_actions + as_policy(policy, pattern.admissible)


def policy_matrix(belief: Belief, policy: Any) -> FloatArray:
    """P_π, (S, S), under a known kernel, or under the mean of a posterior."""
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


def visit_frequencies(belief: Belief, policy: Any) -> FloatArray:
    """Share of time n̄_s that a policy spends in each state in the long run, (S,).

    Parameters
    ----------
    belief : TabularMDP or posterior
        A known kernel, or a posterior, whose mean kernel is taken.
    policy : (S,) integers

    Raises
    ------
    InvalidInputError
        If the chain is not ergodic: the message names its closed classes or its transient states.
    """
    matrix = policy_matrix(belief, policy)
    _require_one_class(matrix)
    return _positive_frequencies(matrix)


def long_run_frequencies(belief: Belief, policy: Any, start: int) -> FloatArray:
    """Share of time that a policy spends in each state in the long run if it begins at ``start``, (S,).

    The chain need not be ergodic: states that are transient, or out of reach, have frequency 0. It must end in the same
    closed class whatever happens on the way, or the shares would be left to chance.

    Parameters
    ----------
    belief, policy
        As in :func:`visit_frequencies`.
    start : int

    Raises
    ------
    InvalidInputError
        If several closed classes can be reached from ``start``; the message names them.
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


def reachable_from(matrix: FloatArray, start: int) -> NDArray[np.bool_]:
    """Whether each state can be reached from ``start``, which counts as reached,.

    (S,) truth values.
    """
    reached = np.zeros(len(matrix), dtype=bool)
    reached[breadth_first_order(sparse.csr_array(matrix), start, return_predecessors=False)] = True
    return reached


def transition_counts(
    mdp: TabularMDP, policy: Any, steps: int, rng: np.random.Generator
) -> IntArray:
    """How often each transition s → s' occurs in one on-policy trajectory of ``steps`` steps,.

    (S, S).

    The trajectory begins where the MDP does (``mdp.start``). About 0.2 µs a step.
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
    """Of an irreducible chain."""
    frequencies = _stationary(matrix)
    if not (frequencies > 0.0).all():
        raise InvalidInputError(
            "policy visits some states so rarely that double precision cannot tell it from never"
        )
    return frequencies


def _stationary(matrix: FloatArray) -> FloatArray:
    """Stationary distribution of an irreducible chain."""
    flow = matrix.copy()
    n = len(flow)
    weights = np.ones(n)
    # rarities beyond double precision are found by the caller
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
            f"states {listed(transient)} are transient (visited finitely often, then never again)"
        )
    if len(closed) > 1:
        reasons.append(_several(closed))
    raise InvalidInputError(
        "policy must make an ergodic chain, in which every state can be reached from every other; "
        + "; ".join(reasons)
    )


def _closed_classes(matrix: FloatArray) -> tuple[list[IntArray], IntArray]:
    """The closed classes by their first states, and the transient states."""
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
    classes = " and ".join(listed(states) for states in closed[:3]) + (
        " and more" if len(closed) > 3 else ""
    )
    return (
        f"there are {len(closed)} closed classes, {classes}, and a trajectory sees only one of them"
    )


def listed(states: IntArray) -> str:
    """States in words, the first of many."""
    shown = ", ".join(str(int(s)) for s in states[:8])
    return "{" + shown + (", …}" if states.size > 8 else "}")
