"""Nodes over the lake for functions that jump between cells.

And where movements from them may land.

There are n + 1 nodes to the side of a cell; those on the border of two cells occur twice, once for
each. With n a multiple of 4 the ends ℓ0 = 3/4 and ℓ0 + θ = 5/4 of the true lengths lead from nodes
to nodes. Arrays over nodes are indexed [y, x].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.continuous.lake import GOAL, HOLES, ORDINARY, SHORTEST, SIDE

__all__ = ["KINDS", "Grid", "blocked_part", "doubled", "grid", "landing", "located", "thinned"]

KINDS: IntArray = np.array(
    [2 if cell == GOAL else int(cell in HOLES) for cell in range(SIDE * SIDE)]
)
"""Of every cell: 0 ordinary, 1 hole, 2 goal."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Nodes along one axis (the other is the same), and the landing places of movements from them.

    Attributes
    ----------
    nodes : (N,) array
        Coordinates, N = 4(n + 1).
    lengths : (N − 1,) array
        Of the stretches between nodes; zero between the two nodes of a border.
    begins, ends : tuples of (2, N) arrays
        First and last landing place of movements towards smaller and larger coordinates, as
        :func:`located` gives them.
    blocked : (2, N) array
        Part of the lengths that leave the square.
    kinds : (N, N) integers
        Kind of every node's cell.
    restart : (N, N) array
        Weights of the uniform distribution on the ordinary cells (the trapezoidal rule).
    """

    nodes: FloatArray
    lengths: FloatArray
    begins: tuple[IntArray, FloatArray]
    ends: tuple[IntArray, FloatArray]
    blocked: FloatArray
    kinds: IntArray
    restart: FloatArray

    @property
    def goal(self) -> tuple[slice, slice]:
        """Nodes of the goal, which is the last cell."""
        last = slice(-(len(self.nodes) // SIDE), None)
        return last, last


@lru_cache(maxsize=16)
def grid(n: int, spread: float) -> Grid:
    """The grid with n stretches to the side of a cell.

    For lengths between ℓ0 and ℓ0 + ``spread``.
    """
    nodes = np.concatenate([np.linspace(cell, cell + 1.0, n + 1) for cell in range(SIDE)])
    lengths = np.diff(nodes)
    begin, end = landing(nodes, np.array([[0], [1]]), spread)
    kinds = np.repeat(np.repeat(KINDS.reshape(SIDE, SIDE), n + 1, axis=0), n + 1, axis=1)
    weights = 0.5 * (np.append(lengths, 0.0) + np.insert(lengths, 0, 0.0))
    restart = np.outer(weights, weights) * (kinds == 0) / len(ORDINARY)
    return Grid(
        nodes,
        lengths,
        located(begin, n),
        located(end, n),
        blocked_part(begin, end, spread),
        kinds,
        restart,
    )


def landing(places: FloatArray, side: Any, spread: float) -> tuple[FloatArray, FloatArray]:
    """Ends of the landing places within the square.

    ``side`` is 0 for movements to smaller coordinates, 1 to larger.
    """
    shift = np.where(side, SHORTEST, -SHORTEST - spread)
    return np.clip(places + shift, 0.0, SIDE), np.clip(places + shift + spread, 0.0, SIDE)


def blocked_part(begin: FloatArray, end: FloatArray, spread: float) -> FloatArray:
    """Part of the lengths that leave the square."""
    return 1.0 - (end - begin) / spread


def located(points: FloatArray, n: int) -> tuple[IntArray, FloatArray]:
    """The node before each point, in the point's cell.

    And the part of the stretch from there to the next node.
    """
    cell = np.minimum(points.astype(np.int64), SIDE - 1)
    steps = (points - cell) * n
    whole = np.minimum(steps.astype(np.int64), n - 1)
    return cell * (n + 1) + whole, steps - whole


def doubled(array: FloatArray) -> FloatArray:
    """Linear interpolation of (N, N, ...) to the grid twice as fine."""
    side = len(array) // SIDE
    coarse = array.reshape(SIDE, side, SIDE, side, *array.shape[2:])
    fine = np.empty((SIDE, 2 * side - 1, SIDE, 2 * side - 1, *array.shape[2:]))
    fine[:, ::2, :, ::2] = coarse
    fine[:, 1::2, :, ::2] = 0.5 * (coarse[:, :-1] + coarse[:, 1:])
    fine[:, :, :, 1::2] = 0.5 * (fine[:, :, :, :-1:2] + fine[:, :, :, 2::2])
    return fine.reshape(SIDE * (2 * side - 1), -1, *array.shape[2:])


def thinned(array: FloatArray, stride: int) -> FloatArray:
    """Every ``stride``-th node of every cell, from (N, N, ...)."""
    side = len(array) // SIDE
    kept = array.reshape(SIDE, side, SIDE, side, *array.shape[2:])[:, ::stride, :, ::stride]
    return kept.reshape(SIDE * kept.shape[1], -1, *array.shape[2:])
