"""Random streams: independent ones from one seed, and their exact state without pickle."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brmdp._validation import Seed, as_json, as_rng
from brmdp.errors import InvalidInputError

__all__ = ["independent_streams", "stream_checkpoint", "stream_from_state", "stream_state"]

LONGEST_STATE = 20_000
"""Longest stored state accepted, in characters; the longest, MT19937's, stays below 8,000."""

_WAITING = {"has_uint32": (None, 2), "uinteger": (None, 2**32)}
_PCG: dict[str, tuple[int | None, int]] = {
    "state.state": (None, 2**128),
    "state.inc": (None, 2**128),
    **_WAITING,
}
_LAYOUTS: dict[str, dict[str, tuple[int | None, int]]] = {
    "PCG64": _PCG,
    "PCG64DXSM": _PCG,
    "Philox": {
        "state.counter": (4, 2**64),
        "state.key": (2, 2**64),
        "buffer": (4, 2**64),
        "buffer_pos": (None, 5),
        **_WAITING,
    },
    "SFC64": {"state.state": (4, 2**64), **_WAITING},
    "MT19937": {"state.key": (624, 2**32), "state.pos": (None, 625)},
}
"""Fields of NumPy's bit generators: the number of integers (None: a single one) and their limit.

NumPy does not check them, and some index memory.
"""


def independent_streams(rng: Seed | list[np.random.Generator], n: int) -> list[np.random.Generator]:
    """``n`` independent streams, from a seed or SeedSequence or spawned from a Generator.

    A list of ``n`` Generators is returned unchanged.
    """
    if (
        isinstance(rng, list)
        and len(rng) == n
        and all(isinstance(stream, np.random.Generator) for stream in rng)
    ):
        return rng
    return as_rng(rng).spawn(n)


def stream_checkpoint(rng: np.random.Generator) -> Callable[[], None]:
    """A function that resets ``rng`` to its current state, as often as it is called."""
    generator = rng.bit_generator
    return partial(setattr, generator, "state", generator.state)


def stream_state(rng: np.random.Generator) -> NDArray[Any]:
    """The state of a stream, as text in an array.

    Raises
    ------
    InvalidInputError
        If the bit generator is not one of NumPy's, so :func:`stream_from_state` could not restore
        it.
    """
    state = rng.bit_generator.state
    if not isinstance(state, dict) or state.get("bit_generator") not in _LAYOUTS:
        raise InvalidInputError(
            f"rng must use one of NumPy's bit generators {sorted(_LAYOUTS)} to be saved; "
            f"got {type(rng.bit_generator).__name__}"
        )
    return np.array(json.dumps(state, default=_plain))


def stream_from_state(state: Any) -> np.random.Generator:
    """The stream that continues from ``state``.

    Raises
    ------
    InvalidInputError
        If ``state`` is not the state of one of NumPy's bit generators.
    """
    content = as_json(state, "the state of a random stream", LONGEST_STATE)
    fields = _flat(content) if isinstance(content, dict) else {}
    kind = fields.pop("bit_generator", None)
    layout = _LAYOUTS.get(kind) if isinstance(kind, str) else None
    if layout is None:
        raise InvalidInputError(
            "the state of a random stream must belong to one of the bit generators "
            f"{sorted(_LAYOUTS)}; got {_short(kind)}"
        )
    if fields.keys() != layout.keys():
        raise InvalidInputError(
            f"the state of a random stream ({kind}) must have the fields {sorted(layout)}; got "
            f"{_short(sorted(fields))}"
        )
    for name, (length, limit) in layout.items():
        _check(fields[name], length, limit, f"{name} in the state of a random stream ({kind})")
    if kind == "MT19937" and not any(fields["state.key"]):
        raise InvalidInputError(
            "state.key in the state of a random stream (MT19937) must not be all zero"
        )
    if kind.startswith("PCG64") and fields["state.inc"] % 2 == 0:
        raise InvalidInputError(f"state.inc in the state of a random stream ({kind}) must be odd")
    generator = getattr(np.random, kind)(0)
    generator.state = _nested(kind, fields)
    return np.random.Generator(generator)


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    """Fields by path; the only nested dictionary is ``state``."""
    inner = content.get("state")
    outer = {name: value for name, value in content.items() if name != "state"}
    return outer | (
        {f"state.{name}": value for name, value in inner.items()} if isinstance(inner, dict) else {}
    )


def _nested(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The state as NumPy expects it, with lists as arrays of the generator's word size."""
    word = np.uint32 if kind == "MT19937" else np.uint64
    result: dict[str, Any] = {"bit_generator": kind, "state": {}}
    for name, value in fields.items():
        place = result["state"] if name.startswith("state.") else result
        place[name.removeprefix("state.")] = (
            np.array(value, dtype=word) if isinstance(value, list) else value
        )
    return result


def _check(value: Any, length: int | None, limit: int, name: str) -> None:
    items = [value] if length is None else value
    if not isinstance(items, list) or len(items) != (1 if length is None else length):
        raise InvalidInputError(f"{name} must be {length} integers; got {_short(value)}")
    if not all(type(item) is int and 0 <= item < limit for item in items):
        raise InvalidInputError(f"{name} must lie in 0..{limit - 1}; got {_short(value)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _plain(value: Any) -> Any:
    """JSON form of the arrays in the state of some generators."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"cannot write {type(value).__name__}")
