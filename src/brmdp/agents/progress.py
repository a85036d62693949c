"""What an agent has lived through: all that level schedules and restart rules may look at."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from brmdp._validation import IntArray

__all__ = ["Progress"]


@dataclass(slots=True)
class Progress:
    """Counts kept by the agent.

    (they belong to it, not to the posterior, which may begin with prior knowledge).

    Attributes
    ----------
    episode : int
        Number k of the current pseudo-episode; 0 before the first plan.
    steps : int
        Transitions observed so far.
    steps_in_episode : int
        Transitions observed since the current pseudo-episode began.
    visits : (S, A) integers
        N(s,a) up to now.
    visits_at_start : (S, A) integers
        N_k(s,a), when the current pseudo-episode began.
    admissible : (S, A) booleans
    last_pair : (int, int)
        State and action of the last transition; (−1, −1) before the first.
    """

    episode: int
    steps: int
    steps_in_episode: int
    visits: IntArray
    visits_at_start: IntArray
    admissible: NDArray[np.bool_]
    last_pair: tuple[int, int]

    @classmethod
    def none(cls, admissible: NDArray[np.bool_]) -> Progress:
        """Before anything happened."""
        nothing = np.zeros(admissible.shape, dtype=np.int64)
        return cls(0, 0, 0, nothing, nothing.copy(), admissible, (-1, -1))

    def upcoming(self) -> Progress:
        """What this will be once the next pseudo-episode has begun."""
        return replace(
            self, episode=self.episode + 1, steps_in_episode=0, visits_at_start=self.visits.copy()
        )

    def copy(self) -> Progress:
        """The same counts, which no longer change."""
        return Progress(
            self.episode,
            self.steps,
            self.steps_in_episode,
            self.visits.copy(),
            self.visits_at_start,  # replaced, never changed in place
            self.admissible,
            self.last_pair,
        )

    def begin_episode(self) -> None:
        """A new pseudo-episode begins."""
        self.episode += 1
        self.steps_in_episode = 0
        self.visits_at_start = self.visits.copy()

    def add(self, state: int, action: int) -> None:
        """One more transition from (state, action)."""
        self.steps += 1
        self.steps_in_episode += 1
        self.visits[state, action] += 1
        self.last_pair = (state, action)
