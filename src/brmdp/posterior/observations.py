"""Observed transitions as arrays of one shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from brmdp._validation import as_array
from brmdp.errors import InvalidInputError

__all__ = ["broadcast_observations"]


NAMES = ("state", "action", "next_state", "disturbance")


def broadcast_observations(*columns: Any) -> tuple[NDArray[Any], ...]:
    """State, action, next state (and disturbance) broadcast together."""
    arrays = [as_array(column, name, "integers") for column, name in zip(columns, NAMES, strict=False)]
    try:
        return tuple(np.broadcast_arrays(*arrays))
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise InvalidInputError(f"state, action and next_state must have the same shape; got {shapes}") from None
