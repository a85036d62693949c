"""A grid over the lake for functions that jump between cells, and where movements land on it.

There are n + 1 nodes along the side of a cell. Nodes on the border of two cells occur twice, once
for each. If n is a multiple of 4, movements of the smallest and the largest true length, ℓ0 = 3/4
and ℓ0 + θ = 5/4, lead from nodes to nodes. Arrays over nodes are indexed [y, x].
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
"""(16,) kind of each cell: 0 for ordinary cells, 1 for holes, 2 for the goal."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Nodes along one axis (the other is the same), and where movements from them land.

    Attributes
    ----------
    nodes : (N,) array
        Coordinates, N = 4(n + 1).
    lengths : (N − 1,) array
        Lengths of the intervals between nodes; zero between the two nodes of a border.
    begins, ends : tuples of (2, N) arrays
        First and last landing place of movements towards smaller and larger coordinates, as
        returned by :func:`located`.
    blocked : (2, N) array
        Share of the lengths that leave the square.
    kinds : (N, N) integers
        Kind of the cell of each node.
    restart : (N, N) array
        Weights of the uniform distribution on the ordinary cells (trapezoidal rule).
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
        """Index of the nodes in the goal, which is the last cell."""
        last = slice(-(len(self.nodes) // SIDE), None)
        return last, last


@lru_cache(maxsize=16)
def grid(n: int, spread: float) -> Grid:
    """The grid with n intervals per side of a cell, for lengths from ℓ0 to ℓ0 + ``spread``."""
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
    """First and last landing place within the square of movements from ``places``.

    ``side`` is 0 for movements to smaller coordinates, 1 for movements to larger ones.
    """
    shift = np.where(side, SHORTEST, -SHORTEST - spread)
    return np.clip(places + shift, 0.0, SIDE), np.clip(places + shift + spread, 0.0, SIDE)


def blocked_part(begin: FloatArray, end: FloatArray, spread: float) -> FloatArray:
    """Share of the lengths that leave the square."""
    return 1.0 - (end - begin) / spread


def located(points: FloatArray, n: int) -> tuple[IntArray, FloatArray]:
    """The last node before each point in its cell, and its position in the interval that follows.

    The position is 0 at that node and 1 at the next.
    """
    cell = np.minimum(points.astype(np.int64), SIDE - 1)
    steps = (points - cell) * n
    whole = np.minimum(steps.astype(np.int64), n - 1)
    return cell * (n + 1) + whole, steps - whole


def doubled(array: FloatArray) -> FloatArray:
    """Linear interpolation of an (N, N, ...) array to the grid twice as fine."""
    side = len(array) // SIDE
    coarse = array.reshape(SIDE, side, SIDE, side, *array.shape[2:])
    fine = np.empty((SIDE, 2 * side - 1, SIDE, 2 * side - 1, *array.shape[2:]))
    fine[:, ::2, :, ::2] = coarse
    fine[:, 1::2, :, ::2] = 0.5 * (coarse[:, :-1] + coarse[:, 1:])
    fine[:, :, :, 1::2] = 0.5 * (fine[:, :, :, :-1:2] + fine[:, :, :, 2::2])
    return fine.reshape(SIDE * (2 * side - 1), -1, *array.shape[2:])


def thinned(array: FloatArray, stride: int) -> FloatArray:
    """Every ``stride``-th node of every cell of an (N, N, ...) array."""
    side = len(array) // SIDE
    kept = array.reshape(SIDE, side, SIDE, side, *array.shape[2:])[:, ::stride, :, ::stride]
    return kept.reshape(SIDE * kept.shape[1], -1, *array.shape[2:])
