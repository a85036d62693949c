"""Random streams: independent ones from one seed, and their exact state as an array that needs no pickle."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brmdp._validation import as_rng
from brmdp.errors import InvalidInputError

__all__ = ["independent_streams", "stream_from_state", "stream_state", "way_back"]


def independent_streams(rng: Any, n: int) -> list[np.random.Generator]:
    """``n`` streams, from a seed, a SeedSequence, or by spawning from a Generator; a list of ``n`` Generators is taken as it is."""
    if isinstance(rng, list) and len(rng) == n and all(isinstance(stream, np.random.Generator) for stream in rng):
        return rng
    return as_rng(rng).spawn(n)


def way_back(rng: np.random.Generator) -> Callable[[], None]:
    """A function that puts ``rng`` back to where it stands now; it may be called more than once."""
    generator = rng.bit_generator
    return partial(setattr, generator, "state", generator.state)


def stream_state(rng: np.random.Generator) -> NDArray[Any]:
    """The state of a stream, as text in an array."""
    return np.array(json.dumps(rng.bit_generator.state, default=_plain))


def stream_from_state(state: NDArray[Any]) -> np.random.Generator:
    """The stream that goes on from ``state``."""
    try:
        content = json.loads(str(state))
        generator = getattr(np.random, content["bit_generator"])()
        generator.state = content
        return np.random.Generator(generator)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInputError(f"the state of a random stream makes no sense: {error!r}") from None


def _plain(value: Any) -> Any:
    """Arrays inside the state of some generators."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"cannot write {type(value).__name__}")
