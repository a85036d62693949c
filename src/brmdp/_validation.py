"""Argument checks shared by the public functions.

Every error names the argument, what is allowed and what was given.
"""

from __future__ import annotations

import json
import math
import operator
import zlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from brmdp.errors import InvalidInputError

__all__ = [
    "as_actions_or_weights",
    "as_array",
    "as_discount",
    "as_float_array",
    "as_index",
    "as_index_array",
    "as_json",
    "as_level",
    "as_levels",
    "as_number",
    "as_policies",
    "as_policy",
    "as_policy_weights",
    "as_positive_int",
    "as_positive_number",
    "as_rng",
    "check_transition_count",
    "first_bad",
    "rng_for",
    "rounding_of",
    "sum_tolerance",
]

MIN_LEVEL = 1e-100
"""Smallest risk level accepted."""

SUM_TOLERANCE, COARSEST_SUM = 1e-8, 0.01
"""How far a sum of probabilities may be from one: in double precision, and in any precision."""

MAX_ENTRIES = 20_000_000
"""Largest number of transitions of a generated world; each takes about 100 bytes to build."""

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
IntArray: TypeAlias = NDArray[np.int64]
PolicyArray: TypeAlias = NDArray[Any]
"""Actions (S,), which are integers, or probabilities of actions (S, A)."""

Seed: TypeAlias = (
    int
    | Sequence[int]
    | np.random.SeedSequence
    | np.random.BitGenerator
    | np.random.Generator
    | None
)
"""Anything that :func:`numpy.random.default_rng` accepts; None takes fresh entropy."""


def first_bad(bad: NDArray[np.bool_]) -> tuple[int, ...]:
    """Index of the first True entry."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))


def as_array(value: Any, name: str, what: str) -> NDArray[Any]:
    """Convert to an array; ragged input and masked entries raise an error."""
    try:
        masked = _has_masked(value)
        array = np.asanyarray(value)
        if masked or _has_masked(array):
            raise InvalidInputError(
                f"{name} must be {what} without masked entries; fill or remove them"
            )
        return np.asarray(array)
    except InvalidInputError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must be {what}; NumPy says: {error}") from None


def _has_masked(value: Any) -> bool:
    """Whether a masked array hides an entry, also inside lists, where NumPy ignores the mask."""
    if isinstance(value, np.ma.MaskedArray):
        return bool(np.ma.is_masked(value))
    if isinstance(value, list | tuple):
        return any(
            _has_masked(item)
            for item in value
            if isinstance(item, list | tuple | np.ma.MaskedArray)
        )
    return False


def rounding_of(array: Any) -> float:
    """Machine epsilon of an array in less than double precision; 0 for any other array."""
    dtype = array.dtype
    return float(np.finfo(dtype).eps) if dtype.kind == "f" and dtype.itemsize < 8 else 0.0


def sum_tolerance(rounding: float, width: Any) -> Any:
    """How far the sum of ``width`` probabilities may be from one: 1e-8, or more if rounded."""
    return np.maximum(SUM_TOLERANCE, np.minimum(rounding * np.asarray(width), COARSEST_SUM))


def as_json(value: Any, name: str, longest: int) -> Any:
    """Parse the JSON text, of at most ``longest`` characters, in a zero-dimensional array."""
    array = as_array(value, name, "text")
    if array.ndim != 0 or array.dtype.kind != "U" or array.dtype.itemsize > 4 * longest:
        raise InvalidInputError(
            f"{name} must be text of at most {longest} characters; got {array.dtype}"
        )
    try:
        return json.loads(str(array))
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{name} must be JSON: {error}") from None


def as_number(value: Any, name: str, allowed: str) -> float:
    """A real number (not a string, boolean or array)."""
    if isinstance(value, bool | np.bool_ | str | bytes) or as_array(value, name, allowed).ndim != 0:
        raise InvalidInputError(f"{name} must be {allowed}; got {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(f"{name} must be {allowed}; got {value!r}") from None


def as_float_array(value: Any, name: str) -> FloatArray:
    """A float64 array of finite numbers."""
    array = as_array(value, name, "an array of real numbers")
    if array.dtype.kind not in "biuf":
        raise InvalidInputError(f"{name} must be an array of real numbers; got dtype {array.dtype}")
    array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        bad = first_bad(~np.isfinite(array))
        raise InvalidInputError(f"{name} must be finite; got {array[bad]} at index {bad}")
    return array


def as_positive_number(value: Any, name: str) -> float:
    """A finite number above zero."""
    number = as_number(value, name, "a positive finite number")
    if not (np.isfinite(number) and number > 0.0):
        raise InvalidInputError(f"{name} must be a positive finite number; got {value!r}")
    return number


def as_positive_int(value: Any, name: str) -> int:
    """An integer above zero."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidInputError(f"{name} must be a positive integer; got {value!r}") from None
    if number <= 0 or isinstance(value, bool | np.bool_):
        raise InvalidInputError(f"{name} must be a positive integer; got {value!r}")
    return number


def as_discount(value: Any, name: str = "discount", *, one_allowed: bool = False) -> float:
    """A discount factor in [0, 1), or in [0, 1] where values are finite without discounting."""
    allowed = "[0, 1]" if one_allowed else "[0, 1)"
    number = as_number(value, name, f"a number in {allowed}")
    if not (0.0 <= number < 1.0 or (one_allowed and number == 1.0)):
        raise InvalidInputError(f"{name} must lie in {allowed}; got {value!r}")
    return number


def as_levels(value: Any, name: str = "alpha", *, one_allowed: bool = False) -> FloatArray:
    """Risk levels strictly between 0 and 1 (1 itself where allowed), as a scalar or array."""
    array = as_array(value, name, "a number or an array of numbers")
    if array.dtype.kind not in "iuf":
        raise InvalidInputError(f"{name} must be a number or an array of numbers; got {value!r}")
    array = array.astype(np.float64, copy=False)
    good = (array >= MIN_LEVEL) & ((array <= 1.0) if one_allowed else (array < 1.0))
    if not good.all():
        allowed = "lie in (0, 1]" if one_allowed else "lie strictly between 0 and 1"
        if (array[~good] > 0.0).any() and (array[~good] < MIN_LEVEL).any():
            allowed += f" and be at least {MIN_LEVEL:g}"
        if array.ndim == 0:
            raise InvalidInputError(f"{name} must {allowed}; got {value!r}")
        bad = first_bad(~good)
        where = f"(s={bad[0]}, a={bad[1]})" if array.ndim == 2 else f"index {bad}"
        raise InvalidInputError(f"{name} must {allowed}; got {array[bad]} at {where}")
    return array


def as_level(value: Any, name: str = "alpha") -> float:
    """A single level strictly between 0 and 1."""
    return float(as_levels(as_number(value, name, "a number strictly between 0 and 1"), name))


def check_transition_count(entries: int, what: str) -> None:
    """Refuse a world too large for memory before building any of it."""
    if entries > MAX_ENTRIES:
        raise InvalidInputError(
            f"{what} must give at most {MAX_ENTRIES:,} transitions; got {entries:,}"
        )


def as_index(value: Any, size: int, name: str) -> int:
    """An integer in range(size)."""
    if type(value) is int and 0 <= value < size:
        return value
    try:
        index = operator.index(value)
    except TypeError:
        raise InvalidInputError(
            f"{name} must be an integer in 0..{size - 1}; got {value!r}"
        ) from None
    # some libraries let booleans and arrays of one entry pass as integers
    truth = isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")
    if truth or getattr(value, "shape", ()) != () or _has_masked(value):
        raise InvalidInputError(f"{name} must be an integer in 0..{size - 1}; got {value!r}")
    if not 0 <= index < size:
        raise InvalidInputError(f"{name} must lie in 0..{size - 1}; got {index}")
    return index


def as_index_array(value: Any, size: int, name: str) -> IntArray:
    """Integers in range(size), any shape."""
    array = as_array(value, name, "integers")
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if array.dtype.kind == "O":
        array = _as_integers(array)
    if array.dtype.kind not in "iu":
        missing = next((k for k, item in enumerate(array.flat) if _is_missing(item)), None)
        if missing is not None:
            raise InvalidInputError(
                f"{name} must be integers in 0..{size - 1}; got a missing value, the first at "
                f"index {missing}"
            )
        first = next((item for item in array.flat if not _is_integer(item)), array.flat[0])
        example = repr(first.item() if isinstance(first, np.generic) else first)
        raise InvalidInputError(
            f"{name} must be integers in 0..{size - 1}; got dtype {array.dtype}, such as "
            f"{example:.40}"
        )
    bad = (array < 0) | (array >= size)
    if bad.any():
        where = first_bad(bad)
        at = f" at index {where}" if where else ""
        raise InvalidInputError(f"{name} must lie in 0..{size - 1}; got {array[where]}{at}")
    return array.astype(np.int64)


def _as_integers(array: NDArray[Any]) -> NDArray[Any]:
    """Turn integers stored as objects, as in some tables, into an integer array."""
    if all(_is_integer(item) for item in array.flat):
        return np.array([operator.index(item) for item in array.flat]).reshape(array.shape)
    return array


def _is_integer(item: Any) -> bool:
    return hasattr(item, "__index__") and not isinstance(item, bool | np.bool_ | np.ndarray)


def _is_missing(item: Any) -> bool:
    """Whether a table entry is missing: None, NaN, or one of pandas' markers."""
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(item, float | np.floating) and math.isnan(item)


def as_policy(value: Any, admissible: NDArray[np.bool_], name: str = "policy") -> IntArray:
    """A policy: one admissible action per state."""
    n_states = admissible.shape[0]
    array = as_array(value, name, "integers")
    if array.shape != (n_states,):
        raise InvalidInputError(
            f"{name} must hold one action per state, shape ({n_states},); got shape {array.shape}"
        )
    return _admissible_actions(array, admissible, name)


def as_actions_or_weights(value: Any, admissible: BoolArray, name: str = "policy") -> PolicyArray:
    """A policy: one admissible action per state, (S,), or probabilities of actions, (S, A)."""
    array = as_array(value, name, "actions (S,) or probabilities (S, A)")
    if array.ndim == 1:
        return as_policy(array, admissible, name)
    if array.shape != admissible.shape:
        raise InvalidInputError(
            f"{name} must hold one action per state, shape ({len(admissible)},), or probabilities, "
            f"{admissible.shape}; got shape {array.shape}"
        )
    return _probabilities(array, admissible, name)


def as_policy_weights(value: Any, admissible: BoolArray, name: str = "policy") -> FloatArray:
    """A policy, given as (S,) actions or (S, A) probabilities, as (S, A) probabilities."""
    policy = as_actions_or_weights(value, admissible, name)
    if policy.ndim == 2:
        return policy
    weights = np.zeros(admissible.shape)
    weights[np.arange(len(policy)), policy] = 1.0
    return weights


def as_policies(value: Any, admissible: BoolArray, name: str = "policies") -> PolicyArray:
    """Many policies: actions (n, S), or probabilities of actions (n, S, A)."""
    n_states, n_actions = admissible.shape
    array = as_array(value, name, "actions (n, S) or probabilities (n, S, A)")
    if array.ndim == 2 and array.shape[1] == n_states:
        return _admissible_actions(array, admissible, name)
    if array.ndim == 3 and array.shape[1:] == admissible.shape:
        found = np.empty(array.shape)
        for k, one in enumerate(array):
            found[k] = _probabilities(one, admissible, f"{name}[{k}]")
        return found
    raise InvalidInputError(
        f"{name} must have shape (n, {n_states}), one action per state, or (n, {n_states}, "
        f"{n_actions}), probabilities of actions; got {array.shape}"
    )


def _probabilities(array: NDArray[Any], admissible: BoolArray, name: str) -> FloatArray:
    """Check probabilities (S, A), up to the rounding of their own precision, and normalise them.

    Integers are refused: an array of them may be several policies, one per row, and still have rows
    that sum to one.
    """
    if array.dtype.kind in "biu":
        raise InvalidInputError(
            f"{name} must hold probabilities in floating point if it has shape {array.shape}, such "
            f"as 1.0 for an action that is always taken; got dtype {array.dtype}"
        )
    weights = as_float_array(array, name)
    refused = (weights < 0.0) | ((weights > 0.0) & ~admissible)
    if refused.any():
        s, a = first_bad(refused)
        raise InvalidInputError(
            f"{name} must have probabilities that are not negative, and zero for actions that are "
            f"not admissible; got {weights[s, a]:.12g} for action {a} in state {s}"
        )
    with np.errstate(over="ignore"):
        sums = weights.sum(axis=1)
    off = np.abs(sums - 1.0) > sum_tolerance(rounding_of(array), array.shape[1])
    if off.any():
        s = int(np.argmax(off))
        raise InvalidInputError(
            f"{name} must have probabilities that sum to one in every state; got the sum "
            f"{sums[s]:.12g} in state {s}"
        )
    exact: FloatArray = weights / sums[:, None]
    return exact


def _admissible_actions(array: NDArray[Any], admissible: NDArray[np.bool_], name: str) -> IntArray:
    """Check that actions (..., S) are admissible in their states."""
    n_states, n_actions = admissible.shape
    actions = as_index_array(array, n_actions, name)
    refused = ~admissible[np.arange(n_states), actions]
    if refused.any():
        where = first_bad(refused)
        raise InvalidInputError(
            f"{name} takes action {actions[where]} in state {where[-1]}, which is not admissible "
            "there"
        )
    return actions


def as_rng(value: Any, name: str = "rng") -> np.random.Generator:
    """A NumPy Generator, from a Generator, a seed or a SeedSequence."""
    if isinstance(value, np.random.Generator):
        return value
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"{name} must be a numpy.random.Generator or a seed; got {value!r}"
        ) from None


def rng_for(purpose: str, value: Any) -> np.random.Generator:
    """A Generator as it is; a seed becomes one that no other purpose shares.

    Whoever selects a policy with ``rng=0`` and certifies it with ``rng=0`` must not meet the same
    draws twice.
    """
    stream = as_rng(value)
    if value is None or isinstance(value, np.random.Generator | np.random.BitGenerator):
        return stream
    seed = value if isinstance(value, np.random.SeedSequence) else np.random.SeedSequence(value)
    key = (*seed.spawn_key, zlib.crc32(purpose.encode()))
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=key))
