"""Parts of an agent as plain data, so that a file can hold them without pickle."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from brmdp.agents.restarts import EveryStep, FixedLength, GeometricLength, VisitDoubling
from brmdp.agents.schedules import AdaptiveLevel, FixedLevel
from brmdp.errors import InvalidInputError
from brmdp.risk import CVaR, Mean, MonteCarlo, PosteriorSample, Quantile

__all__ = ["build_part", "describe_part"]

KNOWN: dict[str, Any] = {
    part.__name__: part
    for part in (
        *(Mean, PosteriorSample, Quantile, CVaR, MonteCarlo),
        *(FixedLevel, AdaptiveLevel),
        *(GeometricLength, EveryStep, FixedLength, VisitDoubling),
    )
}


def describe_part(part: Any) -> Any:
    """Type and parameters; for a type that is not the library's, its name alone."""
    if part is None:
        return None
    kind = type(part).__name__
    if KNOWN.get(kind) is not type(part):
        return {"foreign": kind}
    names = [name for name in inspect.signature(type(part)).parameters if name != "rng"]
    return {"type": kind} | {name: _plain(getattr(part, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return describe_part(value) if type(value) in KNOWN.values() else value


def build_part(description: Any, given: Any, role: str) -> Any:
    """The part that :func:`describe_part` described, or the one ``given``."""
    if given is not None:
        return given
    if description is None:
        return None
    if "foreign" in description:
        raise InvalidInputError(
            f"{role} was a {description['foreign']}, which is not part of brmdp: pass it as load(path, {role}=…)"
        )
    fields = {name: _built(value, role) for name, value in description.items() if name != "type"}
    return KNOWN[description["type"]](**fields)


def _built(value: Any, role: str) -> Any:
    return build_part(value, None, role) if isinstance(value, dict) else value
