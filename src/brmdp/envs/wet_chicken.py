"""Wet Chicken: a canoe near a waterfall, where the best place is right above it.

The benchmark of Tresp (1994), in the two-dimensional form with discrete states of Hans and Udluft
(2009), as Scholl, Dietrich, Otte and Udluft (2022) use it for safe policy improvement.
"""

from __future__ import annotations

import numpy as np

from brmdp._validation import FloatArray, as_positive_int
from brmdp.envs.rendering import GridPainter
from brmdp.envs.tabular_env import RenderMode, TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["WetChickenEnv", "wet_chicken"]

MOVES = {"drift": (0, 0), "hold": (-1, 0), "back": (-2, 0), "left": (0, -1), "right": (0, 1)}
"""What the actions add to the position (x, y)."""

FASTEST, TURBULENCE = 3.0, 3.5
"""Flow just beyond the right bank, and what flow and turbulence add up to."""


def wet_chicken(length: int = 5, width: int = 5, *, discount: float = 0.95) -> TabularMDP:
    """A canoe on a river that ends in a waterfall; the closer to it, the more is paid.

    State x·width + y: x = 0…length−1 down the river, y = 0…width−1 from the left bank. At y the
    river flows with v = 3y/width, and its turbulence is uniform on ±(3.5 − v): slow water is the
    wildest. Actions drift, hold (x − 1), paddle back (x − 2), and move left or right (y ∓ 1). The
    new x is rounded; from length − ½ on, the canoe falls and starts again at (0, 0). Positions
    outside the banks, or above the river's beginning, are moved to the nearest one inside. The
    reward is the new x.

    Parameters
    ----------
    length, width : int
        Size of the river; at least 2 and 1.
    discount : float in [0, 1]
        γ (0.95 in the benchmark).

    Returns
    -------
    TabularMDP

    Examples
    --------
    >>> import brmdp
    >>> river = brmdp.envs.wet_chicken()
    >>> river
    TabularMDP(25 states, 5 actions, 482 possible transitions, discount=0.95)
    >>> float(brmdp.solve(river).values[0].round(2))
    43.08
    """
    length, width = as_positive_int(length, "length"), as_positive_int(width, "width")
    if length < 2:
        raise InvalidInputError(f"length must be at least 2; got {length}")
    if length * width > 2_000:
        raise InvalidInputError(
            f"length × width must be at most 2000 states; got {length} × {width}"
        )
    n = length * width
    kernel = np.zeros((n, len(MOVES), n))
    for x in range(length):
        for y in range(width):
            for action, (down, across) in enumerate(MOVES.values()):
                reached = min(max(y + across, 0), width - 1)
                *stays, falls = _positions(x + down, y, length, width)
                kernel[x * width + y, action, reached::width] = stays
                kernel[x * width + y, action, 0] += falls
    rewards = np.broadcast_to((np.arange(n) // width).astype(np.float64), kernel.shape)
    return TabularMDP(kernel, rewards, discount, start=0, action_names=tuple(MOVES))


def _positions(x: int, y: int, length: int, width: int) -> FloatArray:
    """Probabilities of x' = 0, …, length − 1, and of a fall."""
    flow = FASTEST * y / width
    spread = TURBULENCE - flow
    edges = np.concatenate(([-np.inf], np.arange(length) + 0.5, [np.inf]))
    reached: FloatArray = np.diff(np.clip((edges - (x + flow - spread)) / (2.0 * spread), 0.0, 1.0))
    return reached


class WetChickenEnv(TabularEnv):
    """The canoe above the waterfall as an environment.

    Drawn from above, with the waterfall below the last row: start S, water ~.

    Parameters
    ----------
    length, width, discount
        As in :func:`brmdp.envs.wet_chicken`.
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.

    Examples
    --------
    >>> import brmdp
    >>> env = brmdp.envs.WetChickenEnv(3, 3, render_mode="ansi")
    >>> state, _ = env.reset(seed=1)
    >>> env.render().splitlines()[:2]
    ['state 0', '[S] ~  ~ ']
    """

    def __init__(
        self,
        length: int = 5,
        width: int = 5,
        *,
        discount: float = 0.95,
        render_mode: RenderMode | None = None,
    ) -> None:
        mdp = wet_chicken(length, width, discount=discount)
        cells = "S" + "~" * (mdp.n_states - 1)
        rows = tuple(cells[begin : begin + width] for begin in range(0, mdp.n_states, width))
        super().__init__(mdp, render_mode, GridPainter(rows))
