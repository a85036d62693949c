"""FrozenLake with sticky holes and an optional risky shortcut.

This is the paper's exploration-costly world.
"""

from __future__ import annotations

import numpy as np

from brmdp._validation import as_number
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["DOWN", "GOAL", "HOLES", "LEFT", "RIGHT", "SHORTCUT_STATE", "SIDE", "UP", "frozenlake"]

SIDE = 4
GOAL = 15
HOLES = (5, 7, 11, 12)
LEFT, RIGHT, UP, DOWN = 0, 1, 2, 3
SHORTCUT_STATE, SHORTCUT_LANDING, SHORTCUT_HOLE = 2, 10, 5
INTENDED, SLIP = 0.5, 0.25
HOLE_ESCAPE = 0.2

_MOVES = {LEFT: (0, -1), RIGHT: (0, 1), UP: (-1, 0), DOWN: (1, 0)}
_PERPENDICULAR = {LEFT: (UP, DOWN), RIGHT: (UP, DOWN), UP: (LEFT, RIGHT), DOWN: (LEFT, RIGHT)}


def _moved(cell: int, direction: int) -> int:
    row, column = divmod(cell, SIDE)
    down, right = _MOVES[direction]
    row, column = row + down, column + right
    inside = 0 <= row < SIDE and 0 <= column < SIDE
    return row * SIDE + column if inside else cell


def frozenlake(shortcut_risk: float | None = None, *, discount: float = 0.8) -> TabularMDP:
    """The paper's 4×4 FrozenLake: a continuing task with sticky holes.

    Cells are numbered row by row; actions are Left = 0, Right = 1, Up = 2, Down = 3. On ordinary
    cells the intended move happens with probability 0.5 and each perpendicular move with
    probability 0.25; a blocked move leaves the agent in place. In a hole the intended move succeeds
    with probability 0.2, otherwise the agent stays. From the goal (15) the next cell is uniform
    over the 11 ordinary cells, whatever the action. Every transition into the goal pays 1.

    Parameters
    ----------
    shortcut_risk : float in [0, 1], optional
        θ. Taking Down in cell 2 leads to the hole 5 with probability θ and to cell 10 otherwise
        (0.7 and 0.9 in the paper). None makes it an ordinary slippery move.
    discount : float in [0, 1]
        γ (0.8 in the paper).

    Returns
    -------
    TabularMDP

    Examples
    --------
    >>> from brmdp.envs import frozenlake
    >>> lake = frozenlake(0.7)
    >>> lake.n_states, lake.n_actions, lake.action_names
    (16, 4, ('Left', 'Right', 'Up', 'Down'))
    >>> lake.kernel()[2, 3, [5, 10]].round(2).tolist()
    [0.7, 0.3]
    """
    n = SIDE * SIDE
    ordinary = [s for s in range(n) if s not in HOLES and s != GOAL]
    kernel = np.zeros((n, 4, n))
    for action in range(4):
        for s in ordinary:
            kernel[s, action, _moved(s, action)] += INTENDED
            for side in _PERPENDICULAR[action]:
                kernel[s, action, _moved(s, side)] += SLIP
        for s in HOLES:
            kernel[s, action, _moved(s, action)] += HOLE_ESCAPE
            kernel[s, action, s] += 1.0 - HOLE_ESCAPE
        kernel[GOAL, action, ordinary] = 1.0 / len(ordinary)
    if shortcut_risk is not None:
        theta = as_number(shortcut_risk, "shortcut_risk", "a number in [0, 1] or None")
        if not 0.0 <= theta <= 1.0:
            raise InvalidInputError(
                f"shortcut_risk must lie in [0, 1] or be None; got {shortcut_risk!r}"
            )
        kernel[SHORTCUT_STATE, DOWN, :] = 0.0
        kernel[SHORTCUT_STATE, DOWN, SHORTCUT_LANDING] += 1.0 - theta
        kernel[SHORTCUT_STATE, DOWN, SHORTCUT_HOLE] += theta
    rewards = np.zeros((n, 4, n))
    rewards[:, :, GOAL] = 1.0
    return TabularMDP(
        kernel, rewards, discount, start=0, action_names=("Left", "Right", "Up", "Down")
    )
