"""Machine replacement: repair early, or run the machine until it costs much.

The example of Delage and Mannor (2010), "Percentile optimization for Markov decision processes with
parameter uncertainty". Public tabulations of it differ in when a repair is paid; here, as in the
table that comes with the CRAAM library, every step pays for the state that it reaches.
"""

from __future__ import annotations

import numpy as np

from brmdp.envs.rendering import GridPainter
from brmdp.envs.tabular_env import RenderMode, TabularEnv
from brmdp.mdp import TabularMDP

__all__ = ["MachineReplacementEnv", "machine_replacement"]

OLDEST, LONG_REPAIR, REPAIR = 7, 8, 9
"""The last state of wear, the long (costly) repair and the ordinary one."""

COSTS = {OLDEST: 20.0, LONG_REPAIR: 10.0, REPAIR: 2.0}


def machine_replacement(*, discount: float = 0.8) -> TabularMDP:
    """A machine with eight states of wear (0 new, 7 worn out) and two kinds of repair.

    *Run* (action 0) wears the machine by one state with probability 0.8. *Repair* (action 1) is an
    ordinary repair (state 9) with probability 0.6 and a long one (state 8) with 0.1; with 0.3 no
    repair begins, and the machine wears by one state. The ordinary repair ends with probability
    0.8 by *run*, which makes the machine new, and goes on for ever by *repair*; the long one goes
    on for ever by *run*, and becomes an ordinary one with probability 0.6 by *repair*. Reaching (or
    staying in) the worn-out state costs 20, the long repair 10 and the ordinary one 2.

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
    >>> machine = brmdp.envs.machine_replacement()
    >>> brmdp.solve(machine).policy.tolist()
    [0, 0, 0, 0, 0, 1, 1, 1, 1, 0]
    """
    run, repair = 0, 1
    kernel = np.zeros((10, 2, 10))
    for wear in range(OLDEST + 1):
        kernel[wear, run, wear] += 0.2
        kernel[wear, run, min(wear + 1, OLDEST)] += 0.8
        kernel[wear, repair, [min(wear + 1, OLDEST), REPAIR, LONG_REPAIR]] = 0.3, 0.6, 0.1
    kernel[LONG_REPAIR, run, LONG_REPAIR] = 1.0
    kernel[LONG_REPAIR, repair, [REPAIR, LONG_REPAIR]] = 0.6, 0.4
    kernel[REPAIR, run, [REPAIR, 0]] = 0.2, 0.8
    kernel[REPAIR, repair, REPAIR] = 1.0
    paid = np.zeros(10)
    paid[list(COSTS)] = [-cost for cost in COSTS.values()]
    names = (*(f"wear {k}" for k in range(OLDEST + 1)), "long repair", "repair")
    return TabularMDP(
        kernel,
        np.broadcast_to(paid, kernel.shape),
        discount,
        start=0,
        state_names=names,
        action_names=("run", "repair"),
    )


class MachineReplacementEnv(TabularEnv):
    """The machine as an environment.

    Drawn as a row: new S, worn out H, long repair J, ordinary repair F.

    Parameters
    ----------
    discount
        As in :func:`brmdp.envs.machine_replacement`.
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.

    Examples
    --------
    >>> import brmdp
    >>> env = brmdp.envs.MachineReplacementEnv(render_mode="ansi")
    >>> state, _ = env.reset(seed=1)
    >>> print(env.render().rstrip())
    wear 0
    [S] .  .  .  .  .  .  H  J  F
    """

    def __init__(self, *, discount: float = 0.8, render_mode: RenderMode | None = None) -> None:
        super().__init__(
            machine_replacement(discount=discount), render_mode, GridPainter(("S......HJF",))
        )
