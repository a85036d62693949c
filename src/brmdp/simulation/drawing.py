"""Worlds drawn from a belief, for whoever asks what would happen if they were true."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from brmdp._validation import Seed, as_rng
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import has_known_kernel, learns_rewards, require_belief
from brmdp.beliefs.disturbance import DrivenBelief
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["draw_world"]


def draw_world(
    belief: Belief, rewards: Any, discount: float, *, start: ArrayLike = 0, rng: Seed = None
) -> TabularMDP:
    """One kernel drawn from a belief, as a world with the known rewards.

    Parameters
    ----------
    belief : DirichletBelief, ScenarioBelief or another belief about a kernel
        Not one about a shared disturbance or about unknown rewards.
    rewards : (S, A) or (S, A, S) array, or sparse (S·A, S)
        Known rewards.
    discount : float in [0, 1]
    start : int or (S,) probabilities
        Where the world begins.
    rng : numpy.random.Generator or seed, optional
        Source of the draw.

    Examples
    --------
    >>> import brmdp
    >>> river, belief = brmdp.envs.riverswim(3), brmdp.DirichletBelief.uniform(3, 2)
    >>> brmdp.simulation.draw_world(belief, river.rewards, 0.9, rng=1)
    TabularMDP(3 states, 2 actions, 18 possible transitions, discount=0.9)
    """
    require_belief(belief)
    if isinstance(belief, DrivenBelief) or learns_rewards(belief) or has_known_kernel(belief):
        raise InvalidInputError(
            "belief must be one about the kernel alone, such as DirichletBelief; got "
            f"{type(belief).__name__}"
        )
    (entries,) = belief.sample_entries(1, rng=as_rng(rng))
    pattern = belief.pattern
    kernel = pattern.export(entries, "csr")
    return TabularMDP(kernel, rewards, discount, start, admissible=pattern.admissible)
