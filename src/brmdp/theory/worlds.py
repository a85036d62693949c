"""Worlds drawn from the prior: every Bayesian statement is an average over them.

Statements about posterior probability (coverage, optimism, Bayesian regret) hold when the true
kernel is a draw from the prior that the agent starts from, with independent rows Dir(φ₀, …, φ₀).
They do not hold for one fixed world.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from brmdp._validation import (
    FloatArray,
    Seed,
    as_float_array,
    as_positive_int,
    as_rng,
    check_transition_count,
    first_bad,
)
from brmdp.beliefs import DirichletBelief
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["draw_mdp"]


def draw_mdp(
    n_states: int,
    n_actions: int,
    discount: float,
    *,
    concentration: float = 1.0,
    rewards: ArrayLike | None = None,
    rng: Seed = None,
) -> TabularMDP:
    """Draw an MDP from the prior ``DirichletBelief.uniform(n_states, n_actions, concentration)``.

    Parameters
    ----------
    n_states, n_actions : int
        S and A.
    discount : float in [0, 1)
        Discount factor γ.
    concentration : float
        φ₀, the concentration of every successor.
    rewards : (S, A) or (S, A, S) array in [0, 1], optional
        Known rewards. By default r(s,a) is drawn uniformly from [0, 1].
    rng : numpy.random.Generator or seed, optional
        Source of the kernel and of the rewards.

    Returns
    -------
    TabularMDP

    Examples
    --------
    >>> from brmdp.theory import draw_mdp
    >>> world = draw_mdp(3, 2, 0.9, rng=1)
    >>> world.n_states, world.n_actions, world.discount
    (3, 2, 0.9)
    """
    stream = as_rng(rng)
    n_states, n_actions = (
        as_positive_int(n_states, "n_states"),
        as_positive_int(n_actions, "n_actions"),
    )
    check_transition_count(n_states * n_actions * n_states, "n_states and n_actions")
    kernel = DirichletBelief.uniform(n_states, n_actions, concentration).sample(rng=stream)[0]
    known = stream.random((n_states, n_actions)) if rewards is None else _in_unit_interval(rewards)
    return TabularMDP(kernel, known, discount)


def _in_unit_interval(rewards: ArrayLike) -> FloatArray:
    array = as_float_array(rewards, "rewards")
    outside = (array < 0.0) | (array > 1.0)
    if outside.any():
        bad = first_bad(outside)
        raise InvalidInputError(f"rewards must lie in [0, 1]; got {array[bad]} at index {bad}")
    return array
