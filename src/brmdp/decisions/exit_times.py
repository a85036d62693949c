"""Whether expected times to the end have finite posterior means.

With independent Dirichlet rows and one action per state, let T be the expected number of steps to
the end in the unknown kernel. T itself is finite, but its posterior mean may not be: if an exit has
probability p ~ Beta(1, b), T = 1/p and E[T] = ∞. There is an exact criterion (L. Tournier,
Integrability of exit times and ballisticity for random walks in Dirichlet environment, Electronic
Journal of Probability 14, 2009). A *trap* is a set C of states that are no ends, in which every
state can be reached from every other by possible transitions within C, at least one of them. Its
*outflow* is the sum of the concentrations φ of the transitions that lead out of C. Then for κ > 0

    E[T^κ] < ∞   if and only if   every trap that can be reached from the start has an outflow > κ:

all exits of a trap are below ε at once with a probability of about ε to the power of its outflow.
Two things are easily overlooked. Traps that do not contain the start count as well, if they can be
reached. And a state without a possible transition to itself is no trap by itself, however small the
concentrations of its row: something must keep the process inside.

The least outflow is found as an integer program: choose a set in which every state has a successor
in the set, with the least concentration leading out of it. Such a set need not be a trap, but it
contains one with no more outflow: a class of states that communicate, and that is not left within
the set.

The criterion concerns T. A value is at most max|r|·T, so its mean exists if that of T does; for
special rewards it may exist even otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse.csgraph import connected_components

from brmdp._validation import BoolArray, FloatArray, IntArray, as_policy
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import has_known_kernel, require_belief, rewards_of, scenarios_of
from brmdp.beliefs.dirichlet import DirichletBelief
from brmdp.beliefs.disturbance import Rewards
from brmdp.beliefs.scenarios import ScenarioBelief
from brmdp.decisions.policies import as_start_weights
from brmdp.errors import ConvergenceError, InvalidInputError
from brmdp.planning.endings import require_endings
from brmdp.planning.text import call_like, wrapped

__all__ = ["ExitMoments", "exit_moments"]

MARGIN = 1e-6
"""An outflow must exceed κ by this share of it: sums of concentrations are rounded."""

LARGEST_PROGRAM = 200_000
"""Largest number of transitions among which traps are searched for."""


@dataclass(frozen=True, eq=False, repr=False)
class ExitMoments:
    """Which moments of the expected time to the end are finite; see :func:`exit_moments`.

    Attributes
    ----------
    outflow : float
        E[T^κ] is finite for κ < outflow, and infinite for larger κ; infinite if there is no trap.
    trap : (k,) integers
        States of a trap with this outflow; empty if there is none.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.decisions import exit_moments
    >>> belief = brmdp.DirichletBelief([[[3.0, 1.5]], [[0.0, 1.0]]])
    >>> print(exit_moments(belief, [[-1.0], [0.0]], [0, 0], start=0))
    The expected time to the end has a finite posterior mean, but no finite variance: all ways
    out of the states [0] have a concentration of 1.5 in all.
    """

    outflow: float
    trap: IntArray

    def finite(self, power: float = 1.0) -> bool:
        """Whether E[T^power] is finite; an outflow that equals the power up to rounding is not."""
        return self.outflow > power * (1.0 + MARGIN)

    def __str__(self) -> str:
        what = (
            "a finite posterior mean and variance"
            if self.finite(2.0)
            else "a finite posterior mean, but no finite variance"
            if self.finite(1.0)
            else "no finite posterior mean"
        )
        text = f"The expected time to the end has {what}"
        if self.trap.size == 0:
            return wrapped(f"{text}: there is no trap.")
        shown = ", ".join(str(int(s)) for s in self.trap[:8]) + (
            ", …" if self.trap.size > 8 else ""
        )
        return wrapped(
            f"{text}: all ways out of the states [{shown}] have a concentration of "
            f"{self.outflow:.4g} in all."
        )

    def __repr__(self) -> str:
        parts = (f"outflow={self.outflow:.4g}", f"trap of {self.trap.size} states")
        return call_like("ExitMoments", parts)


def exit_moments(
    belief: Belief,
    rewards: Rewards,
    policy: ArrayLike,
    *,
    start: ArrayLike | None = None,
) -> ExitMoments:
    """Which posterior moments of the expected time to the end are finite under a policy.

    Parameters
    ----------
    belief : DirichletBelief, ScenarioBelief or a known kernel
        With finitely many scenarios, or a known kernel, all moments are finite if the policy ends
        in each of them. For other beliefs the answer is unknown.
    rewards
        As in :func:`brmdp.plan`; they say which states are ends.
    policy : (S,) integers
        Action of each state.
    start : int or (S,) probabilities, optional
        Where the policy begins; by default anywhere.

    Returns
    -------
    ExitMoments

    Raises
    ------
    InvalidInputError
        If the policy need not end, or the answer is unknown for this belief or policy.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.decisions import exit_moments
    >>> belief = brmdp.DirichletBelief([[[3.0, 1.0]], [[0.0, 1.0]]])
    >>> found = exit_moments(belief, [[-1.0], [0.0]], [0, 0], start=0)
    >>> found.outflow, found.finite(), found.trap.tolist()
    (1.0, False, [0])
    """
    require_belief(belief)
    pattern = belief.pattern
    chosen = as_policy(policy, pattern.admissible)
    pairs = np.arange(pattern.n_states) * pattern.n_actions + chosen
    flat = rewards_of(belief, rewards)
    ends = require_endings(pattern, flat, None, pairs)
    begin = None if start is None else as_start_weights(start, pattern.n_states)
    nothing = np.zeros(0, dtype=np.int64)
    if has_known_kernel(belief):
        return ExitMoments(math.inf, nothing)
    if isinstance(belief, ScenarioBelief):
        _require_every_scenario(belief, pairs, ends)
        return ExitMoments(math.inf, nothing)
    if type(belief) is not DirichletBelief:
        raise InvalidInputError(
            f"whether expected times to the end have finite means is unknown for a "
            f"{type(belief).__name__}: it is known for a DirichletBelief, a ScenarioBelief and a "
            "known kernel. Use a horizon, a discount below 1, or quantiles (certify)"
        )
    entries = belief.concentration_entries
    owners = np.repeat(np.arange(pattern.n_states), pattern.widths[pairs])
    table = sparse.csr_array(
        (pattern.take(entries, pairs), (owners, pattern.take(pattern.next_states, pairs))),
        shape=(pattern.n_states, pattern.n_states),
    )
    return _least_outflow(table, ends, begin)


def _require_every_scenario(belief: ScenarioBelief, pairs: IntArray, ends: BoolArray) -> None:
    """Raise unless the policy ends in every scenario that has a weight."""
    pattern = belief.pattern
    entries, weights = scenarios_of(belief)
    owners = np.repeat(np.arange(pattern.n_states), pattern.widths[pairs])
    next_states = pattern.take(pattern.next_states, pairs)
    for k in np.flatnonzero(weights > 0.0).tolist():
        positive = pattern.take(entries[k], pairs) > 0.0
        graph = sparse.csr_array(
            (np.ones(int(positive.sum())), (next_states[positive], owners[positive])),
            shape=(pattern.n_states, pattern.n_states),
        )
        reached = _reachable(graph, ends.astype(np.float64))
        if not reached.all():
            raise InvalidInputError(
                f"the policy must reach an end in every scenario, but in scenario {k} it never "
                f"does from state {int(np.argmin(reached))}. Use a horizon or a discount below 1"
            )


def _reachable(graph: sparse.csr_array, begin: FloatArray) -> BoolArray:
    """(S,) the states that can be reached from those with a positive weight."""
    seen = begin > 0.0
    frontier = seen
    step = sparse.csr_array(graph.T)
    while frontier.any():
        following = (step @ frontier.astype(np.float64)) > 0.0
        frontier = following & ~seen
        seen = seen | frontier
    return np.asarray(seen)


def _least_outflow(
    table: sparse.csr_array, ends: BoolArray, begin: FloatArray | None
) -> ExitMoments:
    """The least outflow of a trap, by an integer program; ``table`` holds concentrations."""
    n = table.shape[0]
    reached = np.ones(n, dtype=bool) if begin is None else _reachable(table, begin)
    considered = np.flatnonzero(reached & ~ends)
    # only states on a cycle can be in a trap
    inner = sparse.csr_array(table[considered][:, considered])
    _, label = connected_components(inner, directed=True, connection="strong")
    size = np.bincount(label, minlength=1)
    cyclic = (size[label] > 1) | (inner.diagonal() > 0.0) if considered.size else np.zeros(0, bool)
    states = considered[cyclic]
    nothing = np.zeros(0, dtype=np.int64)
    if states.size == 0:
        return ExitMoments(math.inf, nothing)
    graph = sparse.coo_array(table[states][:, states])
    if graph.nnz > LARGEST_PROGRAM:
        raise InvalidInputError(
            "whether expected times to the end have finite means is not computed beyond "
            f"{LARGEST_PROGRAM:,} transitions; got {graph.nnz:,}"
        )
    m = states.size
    tails, heads, weights = graph.row, graph.col, graph.data
    away = np.asarray(table[states].sum(axis=1)).ravel() - np.bincount(tails, weights, m)
    # an unknown per state (whether it is chosen), and one per edge (whether it leads out)
    edges = np.flatnonzero(tails != heads)
    k = edges.size
    leads_out = sparse.csr_array(
        (
            np.concatenate([np.ones(k), -np.ones(k), -np.ones(k)]),
            (
                np.tile(np.arange(k), 3),
                np.concatenate([tails[edges], heads[edges], m + np.arange(k)]),
            ),
        ),
        shape=(k, m + k),
    )
    loops = np.zeros(m, dtype=bool)
    loops[tails[tails == heads]] = True
    loose = np.flatnonzero(~loops)
    number = np.cumsum(~loops) - 1
    held = edges[~loops[tails[edges]]]
    stays = sparse.csr_array(
        (
            np.concatenate([np.ones(loose.size), -np.ones(held.size)]),
            (
                np.concatenate([np.arange(loose.size), number[tails[held]]]),
                np.concatenate([loose, heads[held]]),
            ),
        ),
        shape=(loose.size, m + k),
    )
    some = sparse.csr_array(np.concatenate([np.ones(m), np.zeros(k)])[None])
    constraints: list[Any] = [LinearConstraint(some, 1.0, np.inf)]
    if k:
        constraints.append(LinearConstraint(leads_out, -np.inf, 0.0))
    if loose.size:
        constraints.append(LinearConstraint(stays, -np.inf, 0.0))
    found = milp(
        np.concatenate([np.maximum(away, 0.0), weights[edges]]),
        integrality=np.concatenate([np.ones(m), np.zeros(k)]),
        bounds=Bounds(0.0, 1.0),
        constraints=constraints,
        options={"mip_rel_gap": 0.0},
    )
    if found.status != 0 or found.x is None:
        raise ConvergenceError(
            f"the search for traps did not come to an end ({found.message}); give a horizon, or a "
            "discount below 1"
        )
    inside = found.x[:m] > 0.5
    trap = _trap_in(graph, inside)
    return ExitMoments(_outflow(table, states[trap]), states[trap])


def _trap_in(graph: sparse.coo_array, inside: BoolArray) -> IntArray:
    """A class of communicating states within the set that is not left within it."""
    chosen = np.flatnonzero(inside)
    inner = sparse.csr_array(sparse.csr_array(graph)[chosen][:, chosen])
    count, label = connected_components(inner, directed=True, connection="strong")
    edges = sparse.coo_array(inner)
    left = np.zeros(count, dtype=bool)
    left[label[edges.row[label[edges.row] != label[edges.col]]]] = True
    closed = int(np.flatnonzero(~left)[0])
    return np.asarray(chosen[label == closed])


def _outflow(table: sparse.csr_array, trap: IntArray) -> float:
    outside = np.ones(table.shape[0], dtype=bool)
    outside[trap] = False
    return float(table[trap][:, np.flatnonzero(outside)].sum())
