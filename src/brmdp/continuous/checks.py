"""Checks for the continuous lake: states on the map, and parameters of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from brmdp._validation import FloatArray, as_float_array, first_bad
from brmdp.continuous.lake import SIDE, LakeParameters
from brmdp.errors import InvalidInputError

__all__ = ["as_parameters", "as_state", "as_states"]


def as_states(value: ArrayLike, name: str = "states") -> FloatArray:
    """(n, 2) states on the map."""
    states = as_float_array(value, name)
    if states.ndim != 2 or states.shape[1] != 2:
        raise InvalidInputError(f"{name} must have shape (n, 2); got {states.shape}")
    bad = (states < 0.0) | (states > SIDE)
    if bad.any():
        where = first_bad(bad)[0]
        raise InvalidInputError(
            f"{name} must lie in [0, {SIDE}]²; got {tuple(states[where].tolist())} at index {where}"
        )
    return states


def as_state(value: ArrayLike, name: str = "state") -> FloatArray:
    """(2,) one state on the map."""
    state = as_float_array(value, name)
    if state.shape != (2,):
        raise InvalidInputError(f"{name} must be two numbers (x, y); got shape {state.shape}")
    if (state < 0.0).any() or (state > SIDE).any():
        raise InvalidInputError(f"{name} must lie in [0, {SIDE}]²; got {tuple(state.tolist())}")
    return state


def as_parameters(value: Any, name: str = "parameters") -> LakeParameters:
    """One model of the lake: mode probabilities, a mobility in [0, 1] and a positive spread."""
    if not isinstance(value, LakeParameters):
        raise InvalidInputError(f"{name} must be LakeParameters; got {type(value).__name__}")
    slip, mobility, spread = (
        as_float_array(part, f"{name}.{field}")
        for field, part in zip(LakeParameters._fields, value, strict=True)
    )
    if slip.shape != (3,) or (slip < 0.0).any() or abs(slip.sum() - 1.0) > 1e-9:
        raise InvalidInputError(
            f"{name}.slip must be three probabilities that sum to 1; got {slip.tolist()}"
        )
    if mobility.shape != () or not 0.0 <= mobility <= 1.0:
        raise InvalidInputError(
            f"{name}.mobility must be a number in [0, 1]; got {mobility.tolist()}"
        )
    if spread.shape != () or not spread > 0.0:
        raise InvalidInputError(f"{name}.spread must be a positive number; got {spread.tolist()}")
    return LakeParameters(slip / slip.sum(), mobility, np.array(spread))
