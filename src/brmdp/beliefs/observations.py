"""Observed transitions as indices, from any kind of number, list or array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brmdp._validation import IntArray, as_array, as_index, as_index_array
from brmdp.errors import InvalidInputError

__all__ = ["as_observed", "broadcast_observations"]

NAMES = ("state", "action", "next_state", "disturbance")


def as_observed(value: Any, size: int, name: str) -> IntArray:
    """One or many integers in range(size), from anything NumPy can read.

    That includes columns of tables and JAX arrays. Booleans count as the actions 0 and 1 where
    these are the only two; anywhere else they are more likely a mask and are refused.
    """
    array = as_array(value, name, "integers")
    if name == "action" and size == 2 and _are_booleans(array):
        return array.astype(np.int64)
    if array.ndim == 0:
        return np.array(as_index(array.item(), size, name))
    return as_index_array(array, size, name)


def _are_booleans(array: NDArray[Any]) -> bool:
    """Whether all entries are booleans, which some tables store as objects."""
    if array.dtype.kind == "O":
        return array.size > 0 and all(isinstance(item, bool | np.bool_) for item in array.flat)
    return array.dtype.kind == "b"


def broadcast_observations(columns: Sequence[Any], sizes: Sequence[int]) -> tuple[IntArray, ...]:
    """Check state, action, next state (and disturbance) and bring them to one shape.

    A single integer is repeated. Nothing else is broadcast: a column of shape (n, 1) next to one of
    shape (n,) would count n² transitions.
    """
    arrays = [as_observed(*item) for item in zip(columns, sizes, NAMES, strict=False)]
    if len({array.shape for array in arrays if array.ndim}) > 1:
        *names, last = NAMES[: len(arrays)]
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise InvalidInputError(
            f"{', '.join(names)} and {last} must have the same shape; got {shapes}"
        )
    return tuple(np.broadcast_arrays(*arrays))
