"""Known MDPs, and Gymnasium environments for them with ids such as ``brmdp/RiverSwim-v0``."""

from brmdp.envs.frozenlake import frozenlake
from brmdp.envs.icu_sepsis import ICUSepsis, icu_sepsis
from brmdp.envs.inventory import InventoryEnv, InventoryProblem, inventory
from brmdp.envs.machine_replacement import MachineReplacementEnv, machine_replacement
from brmdp.envs.population import PopulationEnv, population
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
from brmdp.envs.tumour import TumourEnv, tumour
from brmdp.envs.wet_chicken import WetChickenEnv, wet_chicken

__all__ = [
    "BanditEnv",
    "BernoulliRiverSwimEnv",
    "FrozenLakeEnv",
    "ICUSepsis",
    "InventoryEnv",
    "InventoryProblem",
    "MachineReplacementEnv",
    "OutcomeEnv",
    "OutcomeLaw",
    "PopulationEnv",
    "RiverSwimEnv",
    "TabularEnv",
    "TumourEnv",
    "WetChickenEnv",
    "bandit",
    "bernoulli_riverswim",
    "frozenlake",
    "icu_sepsis",
    "inventory",
    "machine_replacement",
    "population",
    "riverswim",
    "tumour",
    "wet_chicken",
    "with_bernoulli_rewards",
]
