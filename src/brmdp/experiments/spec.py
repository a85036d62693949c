"""Experiments as data: cases (an agent in an environment), each run many times from common seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Case", "Experiment"]


@dataclass(frozen=True)
class Case:
    """One agent in one environment: a curve of a figure.

    Attributes
    ----------
    name : str
        Unique in the experiment, such as "aq-brmdp", "continuing-psrl" or "brmdp-0.1".
    environment : str
        "riverswim", "frozenlake", "inventory", or the id of a Gymnasium environment.
    environment_parameters : mapping
        Passed to it, such as n or shortcut_risk.
    agent : str
        "aq-brmdp", "brmdp" or "continuing-psrl".
    agent_parameters : mapping
        delta, floor, alpha; method ("exact", "saddlepoint", "monte-carlo", "monte-carlo-reused") and coefficient.
    discount : float
    steps : int
        T.
    shown_steps : int
        How many of them the figures show.
    robust_level, quantile_level : float or None
        Diagnostics, see :class:`brmdp.Diagnostics`.
    """

    name: str
    environment: str
    agent: str
    discount: float
    steps: int
    environment_parameters: Mapping[str, Any] = field(default_factory=dict)
    agent_parameters: Mapping[str, Any] = field(default_factory=dict)
    shown_steps: int = 0
    robust_level: float | None = None
    quantile_level: float | None = None


@dataclass(frozen=True)
class Experiment:
    """Cases compared on common seeds.

    Attributes
    ----------
    name : str
    title : str
    cases : tuple of Case
    runs : int
        Independent runs of each case; run i of all cases shares its seeds.
    seed : int
        Of everything random.
    """

    name: str
    title: str
    cases: tuple[Case, ...]
    runs: int = 100
    seed: int = 2026
