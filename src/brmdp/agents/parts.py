"""Parts of an agent as plain data, so that files can store them without pickle."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from brmdp.agents.restarts import (
    EachEpisode,
    EveryStep,
    FixedLength,
    GeometricLength,
    GrowingLength,
    StepDoubling,
    VisitDoubling,
)
from brmdp.agents.schedules import (
    AdaptiveLevel,
    FallingLevel,
    FixedLevel,
    RisingLevel,
    VisitLevel,
)
from brmdp.errors import InvalidInputError
from brmdp.risk import (
    BernsteinBound,
    Bonus,
    CountBonus,
    CVaR,
    GuidanceBonus,
    Mean,
    MonteCarlo,
    OptimisticBall,
    OptimisticPosterior,
    PosteriorSample,
    Quantile,
    RootBonus,
    UnknownBonus,
    VarianceBonus,
)

__all__ = ["build_part", "describe_belief", "describe_part", "is_own", "require_foreign_parts"]

KNOWN: dict[str, Any] = {
    part.__name__: part
    for part in (
        *(Mean, PosteriorSample, Quantile, CVaR, MonteCarlo),
        *(Bonus, BernsteinBound, OptimisticBall, OptimisticPosterior),
        *(CountBonus, RootBonus, VarianceBonus, UnknownBonus, GuidanceBonus),
        *(FixedLevel, AdaptiveLevel, FallingLevel, VisitLevel, RisingLevel),
        *(GeometricLength, EveryStep, FixedLength, VisitDoubling, EachEpisode),
        *(StepDoubling, GrowingLength),
    )
}


def is_own(part: Any) -> bool:
    """Whether a part is of one of the library's classes; a subclass may override anything."""
    kind = type(part)
    return KNOWN.get(kind.__name__) is kind


def describe_part(part: Any) -> Any:
    """Type and parameters of a part; only the type's name if any of it is not the library's."""
    if part is None:
        return None
    kind = type(part).__name__
    if not is_own(part):
        return {"foreign": kind}
    names = [name for name in inspect.signature(type(part)).parameters if name != "rng"]
    fields = {name: _plain(getattr(part, name)) for name in names}
    if any(isinstance(value, dict) and "foreign" in value for value in fields.values()):
        return {"foreign": kind}
    return {"type": kind} | fields


def describe_belief(belief: Any, known: dict[str, Any]) -> Any:
    """The name of a belief's type, marked as foreign if it is not one of ``known``.

    Raises
    ------
    InvalidInputError
        If the belief cannot be written and read.
    """
    kind = type(belief)
    missing = [
        name for name in ("arrays", "from_arrays") if not callable(getattr(kind, name, None))
    ]
    if missing:
        raise InvalidInputError(
            f"an agent whose belief is a {kind.__name__} cannot be saved: the belief must have a "
            "method arrays() and a class method from_arrays(arrays, source); missing: "
            f"{', '.join(missing)}"
        )
    return kind.__name__ if known.get(kind.__name__) is kind else {"foreign": kind.__name__}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return (
        value
        if value is None or isinstance(value, bool | int | float | str)
        else describe_part(value)
    )


def require_foreign_parts(descriptions: dict[str, Any], given: dict[str, Any]) -> None:
    """Raise if a part that is not the library's was not given."""
    for role, description in descriptions.items():
        if isinstance(description, dict) and "foreign" in description and given[role] is None:
            raise InvalidInputError(
                f"{role} was a {description['foreign']} that brmdp cannot rebuild from the file: "
                f"pass it as load(path, {role}=…)"
            )


def build_part(description: Any, given: Any = None) -> Any:
    """Rebuild the part that :func:`describe_part` described, unless one is ``given``."""
    if given is not None or description is None:
        return given
    fields = {
        name: build_part(value) if isinstance(value, dict) else value
        for name, value in description.items()
        if name != "type"
    }
    return KNOWN[description["type"]](**fields)
