"""What an agent has lived through: all that level schedules and restart rules may look at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brmdp._validation import FloatArray, IntArray, as_float_array
from brmdp.errors import InvalidInputError

__all__ = ["Progress"]


@dataclass(slots=True)
class Progress:
    """Counts kept by the agent, not by its belief, which may begin with prior knowledge.

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
    discount : float or None
        The agent's γ; None where nobody told.
    horizon : int or None
        How many transitions the agent is to live through, if it was told.
    belief : belief or None
        What the next plan will be made from. A level schedule sees it; a restart rule, which is
        asked after every transition, does not.
    """

    episode: int
    steps: int
    steps_in_episode: int
    visits: IntArray
    visits_at_start: IntArray
    admissible: NDArray[np.bool_]
    last_pair: tuple[int, int]
    discount: float | None = None
    horizon: int | None = None
    belief: Any = None

    @classmethod
    def none(
        cls,
        admissible: NDArray[np.bool_],
        *,
        discount: float | None = None,
        horizon: int | None = None,
    ) -> Progress:
        """Before anything happened."""
        nothing = np.zeros(admissible.shape, dtype=np.int64)
        return cls(0, 0, 0, nothing, nothing.copy(), admissible, (-1, -1), discount, horizon)

    @property
    def prior_strength(self) -> FloatArray:
        """(S, A) weight of the prior in observations, such as φ₀ of a Dirichlet row.

        Raises
        ------
        InvalidInputError
            If there is no belief to ask, or it does not tell prior and data apart.
        """
        if self.belief is None:
            raise InvalidInputError("prior_strength is known only when a plan is about to be made")
        evidence = getattr(self.belief, "evidence", None)
        if not callable(evidence):
            raise InvalidInputError(
                f"belief must have a method evidence(pairs) to tell the strength of the prior; "
                f"{type(self.belief).__name__} has none"
            )
        strength = as_float_array(evidence(np.arange(self.visits.size))[0], "evidence")
        if strength.shape != (self.visits.size,):
            raise InvalidInputError(
                f"{type(self.belief).__name__}.evidence must give one number per pair, "
                f"({self.visits.size},); got shape {strength.shape}"
            )
        return strength.reshape(self.visits.shape)

    def upcoming(self, belief: Any = None) -> Progress:
        """What this will be once the next pseudo-episode has begun with that belief."""
        return replace(
            self,
            episode=self.episode + 1,
            steps_in_episode=0,
            visits_at_start=self.visits.copy(),
            belief=belief,
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
            self.discount,
            self.horizon,
            self.belief,
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
