"""Observed transitions as indices, whatever kind of number, list or array they come in."""

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
    """An integer in range(size), or many, from anything that NumPy can read.

    (a column of a table, a JAX array).

    Booleans are taken for the actions 0 and 1 where there are just these two; elsewhere they are
    more likely a mask.
    """
    array = as_array(value, name, "integers")
    if name == "action" and size == 2 and _are_truths(array):
        return array.astype(np.int64)
    if array.ndim == 0:
        return np.array(as_index(array.item(), size, name))
    return as_index_array(array, size, name)


def _are_truths(array: NDArray[Any]) -> bool:
    """Whether all are booleans, which some tables keep as objects."""
    if array.dtype.kind == "O":
        return array.size > 0 and all(isinstance(item, bool | np.bool_) for item in array.flat)
    return array.dtype.kind == "b"


def broadcast_observations(columns: Sequence[Any], sizes: Sequence[int]) -> tuple[IntArray, ...]:
    """State, action, next state (and disturbance) as arrays of one shape, each below its size.

    A single one is repeated.

    Nothing else is: a column of shape (n, 1) beside one of shape (n,) would count n² transitions.
    """
    arrays = [as_observed(*item) for item in zip(columns, sizes, NAMES, strict=False)]
    if len({array.shape for array in arrays if array.ndim}) > 1:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise InvalidInputError(
            f"state, action and next_state must have the same shape; got {shapes}"
        )
    return tuple(np.broadcast_arrays(*arrays))
