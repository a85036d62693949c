"""DeepSea: a treasure in one corner of a grid that only the right action at every depth reaches."""

from __future__ import annotations

import numpy as np

from brmdp._sparse import kernel_of_moves
from brmdp._validation import IntArray, as_index, as_positive_int, check_transition_count
from brmdp.envs.rendering import GridPainter
from brmdp.envs.tabular_env import RenderMode, TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["DeepSeaEnv", "deep_sea"]

MOVE_COST = 0.01
"""What a whole dive to the right costs."""


def deep_sea(
    n: int = 10, *, stochastic: bool = False, seed: int | None = 0, discount: float = 0.99
) -> TabularMDP:
    """DeepSea with n × n cells (Osband, Aslanides and Cassirer 2018; bsuite, Osband et al. 2020).

    A diver starts in the upper left cell and sinks one row per step, to the left or to the right,
    as far as there are cells. Going right costs 0.01/n; in the lower right cell it also finds a
    treasure worth 1. From the last row the diver returns to the start, so that the task continues;
    n steps are a dive. Which action goes right differs from cell to cell. Without exploration that
    looks ahead, finding the treasure takes about 2ⁿ dives.

    Parameters
    ----------
    n : int
        Depth and width, at least 2. State n·row + column.
    stochastic : bool
        Whether the diver fails to move right, and sinks straight down, with probability 1/n.
    seed : int or None
        Decides which action goes right in each cell; with None it is always action 1.
    discount : float in [0, 1]
        γ.

    Returns
    -------
    TabularMDP

    Notes
    -----
    In the source an episode ends after n steps, and the stochastic version also adds noise to
    rewards at the bottom.

    Examples
    --------
    >>> import brmdp
    >>> sea = brmdp.envs.deep_sea(3, seed=None)
    >>> sea.kernel().argmax(axis=2)[[0, 4, 8]]
    array([[3, 4],
           [6, 8],
           [0, 0]])
    >>> float(sea.rewards[8, 1].round(4))
    0.9967
    """
    n = as_positive_int(n, "n")
    if n < 2:
        raise InvalidInputError(f"n must be at least 2; got {n}")
    check_transition_count(3 * n * n, "n")
    if not isinstance(stochastic, bool | np.bool_):
        raise InvalidInputError(f"stochastic must be True or False; got {stochastic!r}")
    size = n * n
    right = np.ones(size, dtype=np.int64)
    if seed is not None:
        right = np.random.default_rng(as_index(seed, 2**63, "seed")).integers(0, 2, size)
    cells = np.arange(size)
    row, column = np.divmod(cells, n)
    fails = 1.0 / n if stochastic else 0.0

    def below(columns: IntArray) -> IntArray:
        return np.where(row == n - 1, 0, n * (row + 1) + columns)

    states = np.concatenate([cells, cells, cells])
    actions = np.concatenate([1 - right, right, right])
    next_states = np.concatenate(
        [below(np.maximum(column - 1, 0)), below(np.minimum(column + 1, n - 1)), below(column)]
    )
    chances = np.repeat([1.0, 1.0 - fails, fails], size)
    kernel = kernel_of_moves((size, 2), states, actions, next_states, chances)
    rewards = np.zeros((size, 2))
    rewards[cells, right] = -MOVE_COST / n
    rewards[size - 1, right[-1]] += 1.0
    return TabularMDP(kernel, rewards, discount, start=0)


class DeepSeaEnv(TabularEnv):
    """DeepSea as an environment, drawn with start S, treasure G and the water ~ within reach.

    Parameters
    ----------
    n, stochastic, seed, discount
        As in :func:`brmdp.envs.deep_sea`.
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.

    Examples
    --------
    >>> from brmdp.envs import DeepSeaEnv
    >>> env = DeepSeaEnv(3, seed=None, render_mode="ansi")
    >>> state, _ = env.reset(seed=1)
    >>> state, *_ = env.step(1)
    >>> for line in env.render().splitlines():
    ...     print(line.rstrip())
    state 4, after action 1
     S  .  .
     ~ [~] .
     ~  ~  G
    """

    def __init__(
        self,
        n: int = 10,
        *,
        stochastic: bool = False,
        seed: int | None = 0,
        discount: float = 0.99,
        render_mode: RenderMode | None = None,
    ) -> None:
        mdp = deep_sea(n, stochastic=stochastic, seed=seed, discount=discount)
        depth = round(mdp.n_states**0.5)
        rows = ["~" * (row + 1) + "." * (depth - row - 1) for row in range(depth)]
        rows[0] = f"S{rows[0][1:]}"
        rows[-1] = f"{rows[-1][:-1]}G"
        super().__init__(mdp, render_mode, GridPainter(tuple(rows)))
