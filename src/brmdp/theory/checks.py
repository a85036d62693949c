"""Checks shared by the theory.

A known MDP, beliefs about its states and actions, and values of its states.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from brmdp._validation import FloatArray, as_float_array
from brmdp.beliefs.checked import require_belief
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["as_state_values", "require_about", "require_mdp"]


def require_mdp(mdp: Any, name: str) -> None:
    """Refuse what is not a known MDP."""
    if not isinstance(mdp, TabularMDP):
        raise InvalidInputError(f"{name} must be a brmdp.TabularMDP; got {type(mdp).__name__}")


def require_about(posterior: Any, mdp: Any, name: str) -> None:
    """Refuse a belief that is not about the states and admissible actions of the MDP called ``name``."""
    require_mdp(mdp, name)
    require_belief(posterior)
    believed, known = posterior.pattern.admissible, mdp.admissible
    if believed.shape != known.shape:
        raise InvalidInputError(
            f"posterior must be about the states and actions of {name}, {known.shape}; got "
            f"{believed.shape}"
        )
    if not np.array_equal(believed, known):
        raise InvalidInputError(
            f"posterior must have the admissible actions of {name}; they differ"
        )


def as_state_values(values: Any, n_states: int, name: str) -> FloatArray:
    """One finite number per state."""
    array = as_float_array(values, name)
    if array.shape != (n_states,):
        raise InvalidInputError(
            f"{name} must hold one number per state, shape ({n_states},); got {array.shape}"
        )
    return array
