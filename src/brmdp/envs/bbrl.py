"""Worlds of the BBRL benchmark: MDPs drawn from three Dirichlet distributions, known rewards.

Castronovo, Ernst, Couëtoux and Fonteneau, "Benchmarking for Bayesian Reinforcement Learning", PLOS
ONE 2016 (doi 10.1371/journal.pone.0157088). A draw has independent rows P(·|s,a) ~ Dir(φ(s,a)); in
all three distributions φ is 1 where a transition is possible. Rewards depend on (s, a, s') and are
known everywhere, also for transitions that no draw can make: an agent that does not know which
transitions are possible needs them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brmdp._validation import FloatArray

__all__ = ["WorldDistribution", "chain_worlds", "double_loop_worlds", "grid_worlds"]

CHAIN, SHORT, LONG = 5, 2.0, 10.0
LOOP = 4
SIDE, GOAL = 5, 10.0


@dataclass(frozen=True, eq=False)
class WorldDistribution:
    """A Dirichlet distribution over the kernels of an MDP with known rewards.

    Attributes
    ----------
    concentration : (S, A, S) array
        φ(s,a,s'); 0 where a transition is impossible.
    rewards : (S, A, S) array
        r(s,a,s').
    start : int

    Examples
    --------
    >>> import brmdp
    >>> chain = brmdp.envs.chain_worlds()
    >>> chain.concentration.shape, chain.start
    ((5, 3, 5), 0)
    >>> brmdp.DirichletBelief(chain.concentration)
    DirichletBelief(5 states, 3 actions, 30 possible transitions, 0 observed)
    """

    concentration: FloatArray
    rewards: FloatArray
    start: int = 0


def chain_worlds() -> WorldDistribution:
    """Generalised Chain (GC): every action either goes on or falls back to the first of 5 states.

    Falling back pays 2 and being in the last state after a step pays 10, for any of 3 actions.

    Examples
    --------
    >>> import brmdp
    >>> brmdp.envs.chain_worlds().concentration[1, 0].tolist()
    [1.0, 0.0, 1.0, 0.0, 0.0]
    """
    concentration = np.zeros((CHAIN, 3, CHAIN))
    concentration[:, :, 0] = 1.0
    for s in range(CHAIN):
        concentration[s, :, min(s + 1, CHAIN - 1)] = 1.0
    rewards = np.zeros_like(concentration)
    rewards[:, :, 0], rewards[:, :, CHAIN - 1] = SHORT, LONG
    return WorldDistribution(concentration, rewards)


def double_loop_worlds() -> WorldDistribution:
    """Generalised Double-Loop (GDL): 9 states, 2 actions, two loops through state 0.

    From 0, either action enters one of the loops. Loop 1-2-3-4 is sure and pays 1 at its end. In
    loop 5-6-7-8, every step but the last may fall back to 0; its end pays 2.

    Examples
    --------
    >>> import brmdp
    >>> loops = brmdp.envs.double_loop_worlds()
    >>> loops.concentration[5, 1].nonzero()[0].tolist(), float(loops.rewards[8, 1, 0])
    ([0, 6], 2.0)
    """
    n, last = 2 * LOOP + 1, 2 * LOOP
    concentration = np.zeros((n, 2, n))
    concentration[0, :, [1, LOOP + 1]] = 1.0
    for s in range(1, LOOP):
        concentration[s, :, s + 1] = 1.0
    for s in range(LOOP + 1, last):
        concentration[s, :, [0, s + 1]] = 1.0
    concentration[[LOOP, last], :, 0] = 1.0
    rewards = np.zeros_like(concentration)
    rewards[LOOP, :, 0], rewards[last, :, 0] = 1.0, 2.0
    return WorldDistribution(concentration, rewards)


def grid_worlds() -> WorldDistribution:
    """Grid: 5 × 5 cells, actions left, right, up, down; a move succeeds or leaves one in place.

    A move into the last cell pays 10 and leads back to cell 0. Moves against the wall leave one in
    place for sure.

    Examples
    --------
    >>> import brmdp
    >>> grid = brmdp.envs.grid_worlds()
    >>> grid.concentration[23, 1].nonzero()[0].tolist(), float(grid.rewards[23, 1, 0])
    ([0, 23], 10.0)
    """
    n = SIDE * SIDE
    concentration = np.zeros((n, 4, n))
    rewards = np.zeros_like(concentration)
    for s in range(n):
        row, column = divmod(s, SIDE)
        for action, (down, right) in enumerate(((0, -1), (0, 1), (-1, 0), (1, 0))):
            concentration[s, action, s] = 1.0
            there = (row + down, column + right)
            if min(there) < 0 or max(there) >= SIDE:
                continue
            if there == (SIDE - 1, SIDE - 1):
                concentration[s, action, 0] = 1.0
                rewards[s, action, 0] = GOAL
            else:
                concentration[s, action, there[0] * SIDE + there[1]] = 1.0
    return WorldDistribution(concentration, rewards)
