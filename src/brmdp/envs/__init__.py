"""The paper's worlds as known MDPs."""

from brmdp.envs.frozenlake import frozenlake
from brmdp.envs.riverswim import riverswim

__all__ = ["frozenlake", "riverswim"]
