"""Rewards that are themselves uncertain: mean rewards of the pairs, drawn together with the kernel.

What a pair pays enters a value only through its mean r̄(s,a), so a draw of the whole model is a
kernel and one number per pair. In a draw, all policies are paid the same.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from brmdp._validation import FloatArray, IntArray, as_float_array
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import learns_rewards
from brmdp.beliefs.disturbance import Rewards
from brmdp.errors import InvalidInputError
from brmdp.planning.planner import LARGEST_VALUE

__all__ = [
    "RewardsOrDoubt",
    "UncertainRewards",
    "caveat_about",
    "drawn_rewards",
    "is_uncertain",
    "mean_rewards",
    "refuse_endless",
]


@runtime_checkable
class UncertainRewards(Protocol):
    """A belief about the mean rewards of all pairs, such as one learned from a column of a log.

    It may be given for ``rewards`` wherever values are taken in posterior draws
    (:func:`brmdp.decisions.values_in_draws`, :func:`brmdp.certify`, :func:`brmdp.compare`,
    :func:`brmdp.value_of_information`). Plans use the mean. An attribute ``caveat``, a sentence,
    says what is only approximate about it. Draws may be asked for by several threads at once.

    Examples
    --------
    >>> import numpy as np
    >>> import brmdp
    >>> from brmdp.decisions import UncertainRewards, values_in_draws
    >>> class About:
    ...     mean_rewards = np.array([[0.0], [1.0]])
    ...     def draw_rewards(self, n, pairs, *, rng):
    ...         return self.mean_rewards.reshape(-1)[pairs] + 0.1 * rng.normal(size=(n, len(pairs)))
    >>> isinstance(About(), UncertainRewards)
    True
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> values_in_draws(belief, About(), 0.5, [[0, 0]], start=0, draws=100, rng=0)
    ValueDraws(100 draws, 1 policy, policy 0: mean 0.4851, error_bound=1e-14)
    """

    @property
    def mean_rewards(self) -> FloatArray:
        """(S, A) posterior means."""
        ...

    def draw_rewards(self, n: int, pairs: IntArray, *, rng: np.random.Generator) -> FloatArray:
        """``n`` joint draws of the mean rewards of ``pairs``, numbered s·A + a: (n, pairs)."""
        ...


RewardsOrDoubt: TypeAlias = Rewards | UncertainRewards
"""Known rewards, or a belief about them."""


def is_uncertain(rewards: Any) -> bool:
    """Whether the rewards are drawn anew in every draw."""
    return isinstance(rewards, UncertainRewards)


def mean_rewards(belief: Belief, rewards: Any) -> Rewards:
    """The rewards to plan with: the given ones, or the means of uncertain ones."""
    if not is_uncertain(rewards):
        known: Rewards = rewards
        return known
    name = type(rewards).__name__
    if learns_rewards(belief):
        raise InvalidInputError(
            f"rewards must be None for a {type(belief).__name__}, which learns them itself; got a "
            f"{name}"
        )
    pattern = belief.pattern
    means = as_float_array(rewards.mean_rewards, f"{name}.mean_rewards")
    if means.shape != (pattern.n_states, pattern.n_actions):
        raise InvalidInputError(
            f"{name}.mean_rewards must have shape {(pattern.n_states, pattern.n_actions)}; got "
            f"{means.shape}"
        )
    return means


def drawn_rewards(
    rewards: UncertainRewards, n: int, pairs: IntArray, largest: float, rng: np.random.Generator
) -> FloatArray:
    """``n`` draws at ``pairs``, (n, pairs), checked; ``largest`` is the largest that may occur."""
    name = f"{type(rewards).__name__}.draw_rewards"
    found = as_float_array(rewards.draw_rewards(n, pairs, rng=rng), name)
    if found.shape != (n, pairs.size):
        raise InvalidInputError(f"{name} must return shape {(n, pairs.size)}; got {found.shape}")
    size = float(np.abs(found).max(initial=0.0))
    if not size <= largest:
        raise InvalidInputError(
            f"{name} must return rewards within ±{largest:g}, or values might exceed "
            f"±{LARGEST_VALUE:g}; got {size:g}"
        )
    return found


def caveat_about(rewards: Any) -> str:
    """What is only approximate about uncertain rewards; empty for known ones."""
    return str(getattr(rewards, "caveat", "")) if is_uncertain(rewards) else ""


def refuse_endless(rewards: Any, discount: float, horizon: int | None) -> None:
    """Uncertain rewards need discounting or a horizon, since an end must surely pay nothing."""
    if discount == 1.0 and horizon is None and is_uncertain(rewards):
        raise InvalidInputError(
            "discount must be below 1, or a horizon be given, with rewards that are themselves "
            "uncertain: what pays nothing for sure, and so is an end, cannot be seen from them"
        )
