"""SixArms: six arms that are ever harder to reach and pay ever more (Strehl and Littman)."""

from __future__ import annotations

import numpy as np

from brmdp.envs.rendering import GridPainter
from brmdp.envs.tabular_env import RenderMode, TabularEnv
from brmdp.mdp import TabularMDP

__all__ = ["CHANCES", "PAYS", "SixArmsEnv", "six_arms"]

CHANCES = (1.0, 0.15, 0.10, 0.05, 0.03, 0.01)
"""The chance that action k leads from the centre to arm k + 1."""

PAYS = (50.0, 133.0, 300.0, 800.0, 1660.0, 6000.0)
"""What staying at arm k + 1 pays."""


def six_arms(*, discount: float = 0.95) -> TabularMDP:
    """SixArms of Strehl and Littman (JCSS 2008, figure 4): seven states, six actions.

    From the centre 0, action k leads to the arm k + 1 with probability 1, 0.15, 0.10, 0.05, 0.03 or
    0.01, and stays otherwise. At arm 1, action 4 returns to the centre and every other one stays
    and pays 50. At arm k + 1 of the others only action k stays, and pays 133, 300, 800, 1660 or
    6000; any other returns to the centre and pays nothing.

    Parameters
    ----------
    discount : float in [0, 1]
        γ.

    Returns
    -------
    TabularMDP

    Examples
    --------
    >>> import brmdp
    >>> arms = brmdp.envs.six_arms()
    >>> arms.kernel()[0, 5]
    array([0.99, 0.  , 0.  , 0.  , 0.  , 0.  , 0.01])
    >>> brmdp.solve(arms).policy[0]
    np.int64(5)
    """
    kernel, rewards = np.zeros((7, 6, 7)), np.zeros((7, 6))
    kernel[1:, :, 0] = 1.0
    for action, (chance, pay) in enumerate(zip(CHANCES, PAYS, strict=True)):
        arm = action + 1
        kernel[0, action, 0] = 1.0 - chance
        kernel[0, action, arm] = chance
        staying = [0, 1, 2, 3, 5] if arm == 1 else [action]
        kernel[arm, staying, 0] = 0.0
        kernel[arm, staying, arm] = 1.0
        rewards[arm, staying] = pay
    return TabularMDP(kernel, rewards, discount, start=0)


class SixArmsEnv(TabularEnv):
    """SixArms as an environment, drawn as the centre S and the arms.

    Parameters
    ----------
    discount
        As in :func:`brmdp.envs.six_arms`.
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.

    Examples
    --------
    >>> from brmdp.envs import SixArmsEnv
    >>> env = SixArmsEnv(render_mode="ansi")
    >>> state, _ = env.reset(seed=1)
    >>> state, *_ = env.step(0)
    >>> print(env.render().rstrip())
    state 1, after action 0
     S [.] .  .  .  .  G
    """

    def __init__(self, *, discount: float = 0.95, render_mode: RenderMode | None = None) -> None:
        super().__init__(six_arms(discount=discount), render_mode, GridPainter(("S.....G",)))
