"""Environments with versioned Gymnasium ids; importing brmdp registers them.

They are continuing tasks, so none has a time limit. A version number changes whenever the same seed
and actions would no longer give the same trajectory.
"""

from __future__ import annotations

import gymnasium

from brmdp.envs.frozenlake import GOAL, HOLES, SHORTCUT_STATE, SIDE, frozenlake
from brmdp.envs.rendering import GridPainter
from brmdp.envs.riverswim import riverswim
from brmdp.envs.tabular_env import RenderMode, TabularEnv

__all__ = ["FrozenLakeEnv", "RiverSwimEnv"]


class RiverSwimEnv(TabularEnv):
    """The paper's RiverSwim as an environment.

    It is drawn as start S, water ~ and goal G.

    Parameters
    ----------
    n, discount
        As in :func:`brmdp.envs.riverswim`.
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.

    Examples
    --------
    >>> import brmdp
    >>> env = brmdp.envs.RiverSwimEnv(render_mode="ansi")
    >>> state, _ = env.reset(seed=1)
    >>> print(env.render().rstrip())
    state 0
    [S] ~  ~  ~  ~  G
    """

    def __init__(
        self, n: int = 6, *, discount: float = 0.9, render_mode: RenderMode | None = None
    ) -> None:
        mdp = riverswim(n, discount=discount)
        river = "S" + "~" * (mdp.n_states - 2) + "G"
        super().__init__(mdp, render_mode, GridPainter((river,)))


class FrozenLakeEnv(TabularEnv):
    """The paper's FrozenLake as an environment.

    It is drawn as start S, ice F, holes H, goal G and risky shortcut J.

    Parameters
    ----------
    shortcut_risk, discount
        As in :func:`brmdp.envs.frozenlake`.
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.

    Examples
    --------
    >>> from brmdp.envs import FrozenLakeEnv
    >>> env = FrozenLakeEnv(0.7)
    >>> state, _ = env.reset(seed=1)
    >>> state, int(env.observation_space.n), int(env.action_space.n)
    (0, 16, 4)
    """

    def __init__(
        self,
        shortcut_risk: float | None = None,
        *,
        discount: float = 0.8,
        render_mode: RenderMode | None = None,
    ) -> None:
        mdp = frozenlake(shortcut_risk, discount=discount)
        cells = {0: "S", GOAL: "G"} | dict.fromkeys(HOLES, "H")
        if shortcut_risk is not None:
            cells[SHORTCUT_STATE] = "J"
        lake = "".join(cells.get(cell, "F") for cell in range(SIDE * SIDE))
        rows = tuple(lake[begin : begin + SIDE] for begin in range(0, SIDE * SIDE, SIDE))
        super().__init__(mdp, render_mode, GridPainter(rows))


gymnasium.register("brmdp/RiverSwim-v0", entry_point=f"{__name__}:RiverSwimEnv")
gymnasium.register("brmdp/FrozenLake-v0", entry_point=f"{__name__}:FrozenLakeEnv")
gymnasium.register(
    "brmdp/RiskyFrozenLake-v0",
    entry_point=f"{__name__}:FrozenLakeEnv",
    kwargs={"shortcut_risk": 0.7},
)
gymnasium.register("brmdp/Inventory-v0", entry_point="brmdp.envs.inventory:InventoryEnv")
gymnasium.register("brmdp/WetChicken-v0", entry_point="brmdp.envs.wet_chicken:WetChickenEnv")
gymnasium.register(
    "brmdp/MachineReplacement-v0",
    entry_point="brmdp.envs.machine_replacement:MachineReplacementEnv",
)
gymnasium.register("brmdp/Population-v0", entry_point="brmdp.envs.population:PopulationEnv")
gymnasium.register("brmdp/Tumour-v0", entry_point="brmdp.envs.tumour:TumourEnv")
gymnasium.register("brmdp/Bandit-v0", entry_point="brmdp.envs.random_rewards:BanditEnv")
gymnasium.register(
    "brmdp/BernoulliRiverSwim-v0",
    entry_point="brmdp.envs.random_rewards:BernoulliRiverSwimEnv",
)
gymnasium.register("brmdp/Chain-v0", entry_point="brmdp.envs.chain:ChainEnv")
gymnasium.register("brmdp/DoubleLoop-v0", entry_point="brmdp.envs.double_loop:DoubleLoopEnv")
gymnasium.register("brmdp/DeepSea-v0", entry_point="brmdp.envs.deep_sea:DeepSeaEnv")
gymnasium.register("brmdp/SixArms-v0", entry_point="brmdp.envs.six_arms:SixArmsEnv")
gymnasium.register("brmdp/Garnet-v0", entry_point="brmdp.envs.garnet:GarnetEnv")
gymnasium.register(
    "brmdp/ContinuousFrozenLake-v0",
    entry_point="brmdp.continuous.environment:ContinuousFrozenLakeEnv",
)
