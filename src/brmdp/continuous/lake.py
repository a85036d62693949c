"""The map of the continuous-state FrozenLake: the cells of the discrete lake on the square [0, 4]².

A state is (x, y); its cell is 4·⌊y⌋ + ⌊x⌋, and the far edges belong to the last cells. Left and
Right change x, Up and Down change y: Left = 0, Right = 1, Up = 2, Down = 3. Down leads to larger y,
so cells are numbered row by row as in the discrete lake. A movement has one of three modes, with
probabilities given by the slip distribution: the intended direction, and the two perpendicular ones
in the order of :data:`MODES`. Its length is ℓ0 + U with U uniform on [0, θ_L]. A movement that
would leave the square is not made.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.envs.frozenlake import DOWN, GOAL, HOLES, LEFT, RIGHT, SIDE, UP

__all__ = [
    "CENTRES",
    "DIRECTIONS",
    "GOAL",
    "HOLES",
    "MODES",
    "ORDINARY",
    "SHORTEST",
    "SIDE",
    "START",
    "TRUTH",
    "LakeParameters",
    "cells",
]

START = (0.5, 0.5)
SHORTEST = 0.75
"""ℓ0, the shortest length of a movement."""

ORDINARY = tuple(cell for cell in range(SIDE * SIDE) if cell not in HOLES and cell != GOAL)
"""Cells that are neither hole nor goal; from the goal the agent restarts uniformly on them."""

CENTRES: FloatArray = np.array(
    [(cell % SIDE + 0.5, cell // SIDE + 0.5) for cell in range(SIDE * SIDE)]
)
"""(16, 2) centres of the cells."""

DIRECTIONS: FloatArray = np.array([(-1.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 1.0)])
"""(4, 2) unit vectors of Left, Right, Up, Down."""

MODES: IntArray = np.array(
    [(LEFT, UP, DOWN), (RIGHT, UP, DOWN), (UP, LEFT, RIGHT), (DOWN, LEFT, RIGHT)]
)
"""(4, 3) direction taken for each action and mode; mode 0 is the intended direction."""


class LakeParameters(NamedTuple):
    """The unknown parameters of the transitions: one model, or many along the first axis.

    Attributes
    ----------
    slip : (..., 3) array
        Probabilities of the three modes on ordinary cells.
    mobility : (...) array
        p_h, the probability that a movement in a hole is activated.
    spread : (...) array
        θ_L; the length is uniform on [ℓ0, ℓ0 + θ_L].

    Examples
    --------
    >>> from brmdp.continuous import LakeBelief
    >>> LakeBelief().mean().slip.round(3).tolist()
    [0.333, 0.333, 0.333]
    """

    slip: FloatArray
    mobility: FloatArray
    spread: FloatArray


TRUTH = LakeParameters(np.array([0.5, 0.25, 0.25]), np.array(0.2), np.array(0.5))
"""The paper's true values."""


def cells(states: FloatArray) -> IntArray:
    """(...) cells of states (..., 2), which must lie in [0, 4]²."""
    column, row = np.moveaxis(np.minimum(states.astype(np.int64), SIDE - 1), -1, 0)
    found: IntArray = SIDE * row + column
    return found
