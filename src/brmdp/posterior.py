"""The former name of :mod:`brmdp.beliefs`."""

from typing import Any

from brmdp._renamed import former_name

# ruff: noqa: F822 (__getattr__ finds these names)
__all__ = [
    "Belief",
    "DirichletPosterior",
    "DisturbancePosterior",
    "DisturbanceRewards",
    "ScenarioPosterior",
]


def __getattr__(name: str) -> Any:
    return former_name(__name__, name)
