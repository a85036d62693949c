"""RiverSwim: a chain that must be swum against the current (the paper's exploration-demanding world)."""

from __future__ import annotations

import numpy as np

from brmdp._validation import as_positive_int
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["LEFT", "RIGHT", "riverswim"]

LEFT, RIGHT = 0, 1


def riverswim(n: int = 6, *, discount: float = 0.9) -> TabularMDP:
    """RiverSwim-n, exactly as in the paper (states 0…n−1, left = 0, right = 1).

    Left always moves one step left (and stays at the left end). Right at an interior state moves right with probability
    0.35, stays with 0.60 and falls back with 0.05; at the left end it moves on with 0.60, at the right end it stays with 0.60.
    Rewards: 0.005 for left at state 0, whatever follows; 1 for (n−1, right, n−1); 0 otherwise.

    Parameters
    ----------
    n : int
        Number of states, at least 2.
    discount : float
        The paper uses 0.9.
    """
    n = as_positive_int(n, "n")
    if n < 2:
        raise InvalidInputError(f"n must be at least 2; got {n}")
    kernel = np.zeros((n, 2, n))
    for s in range(n):
        kernel[s, LEFT, max(s - 1, 0)] = 1.0
    kernel[0, RIGHT, [0, 1]] = 0.40, 0.60
    for s in range(1, n - 1):
        kernel[s, RIGHT, [s - 1, s, s + 1]] = 0.05, 0.60, 0.35
    kernel[n - 1, RIGHT, [n - 2, n - 1]] = 0.40, 0.60
    rewards = np.zeros((n, 2, n))
    rewards[0, LEFT, :] = 0.005
    rewards[n - 1, RIGHT, n - 1] = 1.0
    return TabularMDP(kernel, rewards, discount, start=0, action_names=("left", "right"))
