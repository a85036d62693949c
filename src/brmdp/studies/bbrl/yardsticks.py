"""What scores are measured against: acting at random, and acting optimally in the known world."""

from __future__ import annotations

from typing import Any

import numpy as np

from brmdp._validation import Seed, as_rng
from brmdp.beliefs import Belief, ScenarioBelief
from brmdp.errors import InvalidInputError
from brmdp.simulation import World

__all__ = ["Random", "truth"]


class Random:
    """Takes an admissible action, uniformly at random."""

    def __init__(self, belief: Belief, rewards: Any, discount: float, *, rng: Seed = None) -> None:
        self._choices = [np.flatnonzero(row) for row in belief.pattern.admissible]
        self._rng = as_rng(rng)

    def act(self, state: int) -> int:
        """A random action."""
        choices = self._choices[state]
        return int(choices[self._rng.integers(choices.size)])

    def observe(self, state: int, action: int, next_state: int) -> None:
        """Learn nothing."""


def truth(world: World) -> ScenarioBelief:
    """The belief of somebody who knows the kernel of the world."""
    if world.truth is None:
        raise InvalidInputError("world must have a known truth")
    return ScenarioBelief(world.truth.kernel()[None], [1.0])
