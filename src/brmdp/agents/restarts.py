"""Restart rules: when to begin a new pseudo-episode, that is, to update the belief and plan again.

A rule is any object with a method ``ends(progress, *, rng)``, called after every observed
transition. Its answer must depend on nothing but its arguments; then an agent that was saved and
loaded continues exactly as before. ``rng`` is a stream that the agent uses only for this purpose. A
rule with ``at_new_episode = True`` also ends the pseudo-episode when an episode of the world begins
(:meth:`brmdp.Agent.new_episode`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from brmdp._validation import as_discount, as_positive_int
from brmdp.agents.progress import Progress

__all__ = [
    "EachEpisode",
    "EveryStep",
    "FixedLength",
    "GeometricLength",
    "GrowingLength",
    "RestartRule",
    "StepDoubling",
    "VisitDoubling",
]


class RestartRule(Protocol):
    """Decides whether the pseudo-episode ends with the transition just observed.

    Examples
    --------
    A rule that plans again whenever the agent has just visited state 0:

    >>> class AtStateZero:
    ...     def ends(self, progress, *, rng):
    ...         return progress.last_pair[0] == 0
    """

    def ends(self, progress: Progress, *, rng: np.random.Generator) -> bool:
        """Whether to plan again before the next action."""
        ...


@dataclass(frozen=True)
class GeometricLength:
    """End with probability 1 − ``continuation`` after every step.

    In the paper ``continuation`` is the discount factor.

    Parameters
    ----------
    continuation : float in [0, 1)
        Probability Pr(X_{t+1} = 1) that the pseudo-episode continues.

    Examples
    --------
    >>> from brmdp.agents import GeometricLength
    >>> GeometricLength(0.9)
    GeometricLength(continuation=0.9)
    """

    continuation: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "continuation", as_discount(self.continuation, "continuation"))

    def ends(self, progress: Progress, *, rng: np.random.Generator) -> bool:
        """Whether a uniform random number is at least ``continuation``."""
        return rng.random() >= self.continuation


@dataclass(frozen=True)
class EachEpisode:
    """Plan when an episode of the world begins, and only then.

    This needs an agent with an ``episode_length``, for which it is the default.

    Examples
    --------
    >>> from brmdp.agents import EachEpisode
    >>> EachEpisode()
    EachEpisode()
    """

    at_new_episode: ClassVar[bool] = True

    def ends(self, progress: Progress, *, rng: np.random.Generator) -> bool:
        """Never within an episode."""
        return False


@dataclass(frozen=True)
class EveryStep:
    """Plan again after every transition: slow, but the plan is never out of date.

    Examples
    --------
    >>> from brmdp.agents import EveryStep
    >>> EveryStep()
    EveryStep()
    """

    def ends(self, progress: Progress, *, rng: np.random.Generator) -> bool:
        """Always True."""
        return True


@dataclass(frozen=True)
class FixedLength:
    """Pseudo-episodes of a fixed length.

    Parameters
    ----------
    length : int
        Number of steps per pseudo-episode.

    Examples
    --------
    >>> from brmdp.agents import FixedLength
    >>> FixedLength(20)
    FixedLength(length=20)
    """

    length: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", as_positive_int(self.length, "length"))

    def ends(self, progress: Progress, *, rng: np.random.Generator) -> bool:
        """Whether the pseudo-episode has had ``length`` steps."""
        return progress.steps_in_episode >= self.length


@dataclass(frozen=True)
class VisitDoubling:
    """End when the visits to some pair have doubled since the pseudo-episode began (as in UCRL2).

    Examples
    --------
    >>> from brmdp.agents import VisitDoubling
    >>> VisitDoubling()
    VisitDoubling()
    """

    def ends(self, progress: Progress, *, rng: np.random.Generator) -> bool:
        """Whether N(s,a) − N_k(s,a) ≥ max{N_k(s,a), 1} at the last pair; no other has changed."""
        pair = progress.last_pair
        before = int(progress.visits_at_start[pair])
        return int(progress.visits[pair]) - before >= max(before, 1)


@dataclass(frozen=True)
class StepDoubling:
    """End when the number of all steps has doubled since the pseudo-episode began.

    This is the deterministic schedule of DS-PSRL (Theocharous, Wen, Abbasi-Yadkori and Vlassis
    2017): pseudo-episodes of 1, 1, 2, 4, 8, … steps.

    Examples
    --------
    >>> from brmdp.agents import StepDoubling
    >>> StepDoubling()
    StepDoubling()
    """

    def ends(self, progress: Progress, *, rng: np.random.Generator) -> bool:
        """Whether the pseudo-episode is as long as everything before it."""
        return progress.steps_in_episode >= progress.steps - progress.steps_in_episode


@dataclass(frozen=True)
class GrowingLength:
    """Pseudo-episodes of 1, 2, 3, … times ``length`` steps; a doubling of visits ends them, too.

    For TSDE (Ouyang, Gagrani, Nayyar and Jain 2017) a pseudo-episode is at most one step longer
    than the one before it, which visits may have cut short; here, what was cut off is made up for.

    Parameters
    ----------
    length : int
        Number of steps of the first pseudo-episode.

    Examples
    --------
    >>> from brmdp.agents import GrowingLength
    >>> GrowingLength()
    GrowingLength(length=1)
    """

    length: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", as_positive_int(self.length, "length"))

    def ends(self, progress: Progress, *, rng: np.random.Generator) -> bool:
        """Whether pseudo-episode k has had k·length steps, or the visits to a pair have doubled."""
        full = progress.steps_in_episode >= self.length * progress.episode
        return full or VisitDoubling().ends(progress, rng=rng)
