"""Checks shared by the theory: known MDPs, beliefs about them, and values of their states."""

from __future__ import annotations

from typing import Any

import numpy as np

from brmdp._validation import FloatArray, as_float_array
from brmdp.beliefs.checked import require_belief
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["as_state_values", "require_belief_about", "require_mdp"]


def require_mdp(mdp: Any, name: str) -> None:
    """Raise unless ``mdp``, the argument called ``name``, is a known MDP with discounting."""
    if not isinstance(mdp, TabularMDP):
        raise InvalidInputError(f"{name} must be a brmdp.TabularMDP; got {type(mdp).__name__}")
    if mdp.discount == 1.0:
        raise InvalidInputError(f"{name} must have a discount below 1; got {mdp.discount}")


def require_belief_about(belief: Any, mdp: Any, name: str) -> None:
    """Raise unless ``belief`` has the states and admissible actions of ``mdp``, called ``name``."""
    require_mdp(mdp, name)
    require_belief(belief)
    believed, known = belief.pattern.admissible, mdp.admissible
    if believed.shape != known.shape:
        raise InvalidInputError(
            f"belief must have the states and actions of {name}, {known.shape}; got "
            f"{believed.shape}"
        )
    if not np.array_equal(believed, known):
        raise InvalidInputError(f"belief must have the admissible actions of {name}; they differ")


def as_state_values(values: Any, n_states: int, name: str) -> FloatArray:
    """(S,) array with one finite number per state."""
    array = as_float_array(values, name)
    if array.shape != (n_states,):
        raise InvalidInputError(
            f"{name} must hold one number per state, shape ({n_states},); got {array.shape}"
        )
    return array
