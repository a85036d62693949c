"""Restart rules.

When to begin a new pseudo-episode, that is to learn from the data at hand and plan again.

A rule is any object with ``ends(progress, rng)``, asked after every observed transition. It must
depend on its arguments alone: then an agent that was saved and loaded goes on exactly as before.
``rng`` is a stream of the agent's for this purpose only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from brmdp._validation import as_discount, as_positive_int
from brmdp.agents.progress import Progress

__all__ = ["EveryStep", "FixedLength", "GeometricLength", "RestartRule", "VisitDoubling"]


class RestartRule(Protocol):
    """Whether the pseudo-episode ends with the transition just observed."""

    def ends(self, progress: Progress, *, rng: np.random.Generator) -> bool:
        """True to plan again before the next action."""
        ...


@dataclass(frozen=True)
class GeometricLength:
    """End with probability 1 − ``continuation`` after every step (the paper.

    ``continuation`` = discount).

    Parameters
    ----------
    continuation : float in [0, 1)
        Probability that the pseudo-episode goes on, Pr(X_{t+1} = 1).
    """

    continuation: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "continuation", as_discount(self.continuation, "continuation"))

    def ends(self, progress: Progress, *, rng: np.random.Generator) -> bool:
        """One uniform number per step."""
        return rng.random() >= self.continuation


@dataclass(frozen=True)
class EveryStep:
    """Plan again after every transition: slow, and never out of date."""

    def ends(self, progress: Progress, *, rng: np.random.Generator) -> bool:
        """Always."""
        return True


@dataclass(frozen=True)
class FixedLength:
    """Pseudo-episodes of the same length.

    Parameters
    ----------
    length : int
        Steps per pseudo-episode.
    """

    length: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", as_positive_int(self.length, "length"))

    def ends(self, progress: Progress, *, rng: np.random.Generator) -> bool:
        """After ``length`` steps."""
        return progress.steps_in_episode >= self.length


@dataclass(frozen=True)
class VisitDoubling:
    """End when the visits of some pair have doubled since the pseudo-episode began.

    (as in UCRL2).
    """

    def ends(self, progress: Progress, *, rng: np.random.Generator) -> bool:
        """N(s,a) − N_k(s,a) ≥ max{N_k(s,a), 1} at the pair just visited.

        The others have not changed.
        """
        pair = progress.last_pair
        before = int(progress.visits_at_start[pair])
        return int(progress.visits[pair]) - before >= max(before, 1)
