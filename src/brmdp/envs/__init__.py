"""Known MDPs, and Gymnasium environments for them with ids such as ``brmdp/RiverSwim-v0``."""

from brmdp.envs.bbrl import (
    WorldDistribution,
    chain_worlds,
    double_loop_worlds,
    grid_worlds,
)
from brmdp.envs.frozenlake import frozenlake
from brmdp.envs.icu_sepsis import ICUSepsis, icu_sepsis
from brmdp.envs.inventory import InventoryEnv, InventoryProblem, inventory
from brmdp.envs.random_rewards import (
    BanditEnv,
    BernoulliRiverSwimEnv,
    OutcomeEnv,
    OutcomeLaw,
    bandit,
    bernoulli_riverswim,
    with_bernoulli_rewards,
)
from brmdp.envs.registration import FrozenLakeEnv, RiverSwimEnv
from brmdp.envs.riverswim import riverswim
from brmdp.envs.tabular_env import TabularEnv

__all__ = [
    "BanditEnv",
    "BernoulliRiverSwimEnv",
    "FrozenLakeEnv",
    "ICUSepsis",
    "InventoryEnv",
    "InventoryProblem",
    "OutcomeEnv",
    "OutcomeLaw",
    "RiverSwimEnv",
    "TabularEnv",
    "WorldDistribution",
    "bandit",
    "bernoulli_riverswim",
    "chain_worlds",
    "double_loop_worlds",
    "frozenlake",
    "grid_worlds",
    "icu_sepsis",
    "inventory",
    "riverswim",
    "with_bernoulli_rewards",
]
