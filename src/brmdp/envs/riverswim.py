"""RiverSwim: a chain to be swum against the current (the paper's exploration-demanding world)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from brmdp._validation import as_positive_int, check_transition_count
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP
from brmdp.pattern import DENSE_REWARDS

__all__ = ["LEFT", "RIGHT", "riverswim"]

LEFT, RIGHT = 0, 1


def riverswim(n: int = 6, *, discount: float = 0.9) -> TabularMDP:
    """RiverSwim-n, exactly as in the paper, with states 0…n−1 and actions left = 0, right = 1.

    Left always moves one step to the left (and stays at the left end). Right at an interior state
    moves right with probability 0.35, stays with probability 0.60 and falls back with probability
    0.05; at the left end it moves on with probability 0.60, at the right end it stays with
    probability 0.60. The reward is 0.005 for left at state 0, whatever follows; 1 for (n−1, right,
    n−1); and 0 otherwise.

    Parameters
    ----------
    n : int
        Number of states, at least 2.
    discount : float in [0, 1]
        γ (0.9 in the paper).

    Returns
    -------
    TabularMDP

    Notes
    -----
    Time and memory grow with n. From n = 1,415 on, ``rewards`` are a sparse (2n, n) matrix instead
    of an (n, 2, n) array.

    Examples
    --------
    >>> import brmdp
    >>> river = brmdp.envs.riverswim(6)
    >>> brmdp.solve(river).policy.tolist()
    [1, 1, 1, 1, 1, 1]
    """
    n = as_positive_int(n, "n")
    if n < 2:
        raise InvalidInputError(f"n must be at least 2; got {n}")
    check_transition_count(4 * n, "n")
    states = np.arange(n)
    inner = states[1:-1]
    ends = np.array([0, n - 1])
    moves = [  # action, from, to, probability
        (LEFT, states, np.maximum(states - 1, 0), 1.0),
        (RIGHT, inner, inner - 1, 0.05),
        (RIGHT, inner, inner, 0.60),
        (RIGHT, inner, inner + 1, 0.35),
        (RIGHT, ends, np.array([0, n - 2]), 0.40),
        (RIGHT, ends, np.array([1, n - 1]), 0.60),
    ]
    shape = (2 * n, n)
    rows = np.concatenate([2 * begin + action for action, begin, _, _ in moves])
    columns = np.concatenate([end for _, _, end, _ in moves])
    chances = np.concatenate([np.full(begin.size, chance) for _, begin, _, chance in moves])
    kernel = sparse.coo_array((chances, (rows, columns)), shape=shape)
    paid = np.append(np.full(n, 0.005), 1.0)
    where = np.append(np.full(n, LEFT), shape[0] - 1), np.append(states, n - 1)
    rewards: Any = sparse.coo_array((paid, where), shape=shape)
    if shape[0] * n <= DENSE_REWARDS:
        rewards = rewards.toarray().reshape(n, 2, n)
    return TabularMDP(kernel, rewards, discount, start=0, action_names=("left", "right"))
