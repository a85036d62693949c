"""Known MDPs, and Gymnasium environments for them with ids such as ``brmdp/RiverSwim-v0``."""

from brmdp.envs.bbrl import (
    WorldDistribution,
    chain_worlds,
    double_loop_worlds,
    grid_worlds,
)
from brmdp.envs.chain import ChainEnv, chain
from brmdp.envs.deep_sea import DeepSeaEnv, deep_sea
from brmdp.envs.double_loop import DoubleLoopEnv, double_loop
from brmdp.envs.frozenlake import frozenlake
from brmdp.envs.garnet import GarnetEnv, garnet
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
from brmdp.envs.six_arms import SixArmsEnv, six_arms
from brmdp.envs.tabular_env import TabularEnv
from brmdp.envs.tumour import TumourEnv, tumour
from brmdp.envs.wet_chicken import WetChickenEnv, wet_chicken

__all__ = [
    "BanditEnv",
    "BernoulliRiverSwimEnv",
    "ChainEnv",
    "DeepSeaEnv",
    "DoubleLoopEnv",
    "FrozenLakeEnv",
    "GarnetEnv",
    "ICUSepsis",
    "InventoryEnv",
    "InventoryProblem",
    "MachineReplacementEnv",
    "OutcomeEnv",
    "OutcomeLaw",
    "PopulationEnv",
    "RiverSwimEnv",
    "SixArmsEnv",
    "TabularEnv",
    "TumourEnv",
    "WetChickenEnv",
    "WorldDistribution",
    "bandit",
    "bernoulli_riverswim",
    "chain",
    "chain_worlds",
    "deep_sea",
    "double_loop",
    "double_loop_worlds",
    "frozenlake",
    "garnet",
    "grid_worlds",
    "icu_sepsis",
    "inventory",
    "machine_replacement",
    "population",
    "riverswim",
    "six_arms",
    "tumour",
    "wet_chicken",
    "with_bernoulli_rewards",
]
