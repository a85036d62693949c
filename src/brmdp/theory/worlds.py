"""Worlds drawn from the prior, over which everything Bayesian is an average.

Statements about posterior probability (coverage, optimism, Bayesian regret) hold for a true kernel
drawn from the prior from which the agent starts, rows independent and Dir(φ₀, …, φ₀), not for one
fixed world.
"""

from __future__ import annotations

from typing import Any

from brmdp._validation import (
    FloatArray,
    as_float_array,
    as_positive_int,
    as_rng,
    first_bad,
    require_moderate,
)
from brmdp.beliefs import DirichletBelief
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["draw_mdp"]


def draw_mdp(
    rng: Any,
    n_states: int,
    n_actions: int,
    discount: float,
    *,
    concentration: float = 1.0,
    rewards: Any = None,
) -> TabularMDP:
    """A world whose kernel is a draw from the prior ``DirichletBelief.uniform(n_states.

    N_actions, concentration)``.

    Parameters
    ----------
    rng : numpy.random.Generator or seed
    n_states, n_actions : int
    discount : float in [0, 1)
    concentration : float
        φ₀ of every successor.
    rewards : (S, A) or (S, A, S) array in [0, 1], optional
        Known rewards; by default r(s,a) uniform on [0, 1].
    """
    stream = as_rng(rng)
    n_states, n_actions = (
        as_positive_int(n_states, "n_states"),
        as_positive_int(n_actions, "n_actions"),
    )
    require_moderate(n_states * n_actions * n_states, "n_states and n_actions")
    kernel = DirichletBelief.uniform(n_states, n_actions, concentration).sample(rng=stream)[0]
    known = stream.random((n_states, n_actions)) if rewards is None else _in_unit_interval(rewards)
    return TabularMDP(kernel, known, discount)


def _in_unit_interval(rewards: Any) -> FloatArray:
    array = as_float_array(rewards, "rewards")
    outside = (array < 0.0) | (array > 1.0)
    if outside.any():
        bad = first_bad(outside)
        raise InvalidInputError(f"rewards must lie in [0, 1]; got {array[bad]} at index {bad}")
    return array
