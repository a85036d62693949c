"""What an agent has done so far, the basis of level schedules and restart rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import evidence_of
from brmdp.errors import InvalidInputError

__all__ = ["Progress"]

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(slots=True)
class Progress:
    """Counts kept by the agent.

    They start at zero, even if the agent's belief starts with prior data. Schedules and restart
    rules of your own are given a Progress that they cannot spoil: arrays that belong to the agent
    are read-only (copy what you want to change), and the belief is a copy.

    Attributes
    ----------
    episode : int
        Number k of the current pseudo-episode; 0 before the first plan.
    steps : int
        Number of transitions observed so far.
    steps_in_episode : int
        Number of transitions observed since the current pseudo-episode began.
    visits : (S, A) integers
        N(s,a), the number of visits so far.
    visits_at_start : (S, A) integers
        N_k(s,a), the number of visits when the current pseudo-episode began.
    admissible : (S, A) booleans
        Which actions are admissible.
    last_pair : (int, int)
        State and action of the last transition; (−1, −1) before the first.
    discount : float or None
        The agent's γ; None if unknown.
    horizon : int or None
        Total number of transitions the agent expects; None if unknown.
    belief : Belief or None
        The belief that the next plan will be based on. Level schedules see it; restart rules, which
        are asked after every transition, get None.
    episode_length : int or None
        Number of steps of an episode of the world, for agents that plan for one; else None.
    clock : int
        Number of transitions observed since the current episode of the world began; always 0 for
        agents without episodes.

    Examples
    --------
    >>> import brmdp
    >>> agent = brmdp.agents.posterior_mean(
    ...     brmdp.DirichletBelief.uniform(3, 2), brmdp.envs.riverswim(3).rewards, 0.9, rng=0
    ... )
    >>> agent.observe(0, 1, 1)
    >>> agent.progress.steps, agent.progress.visits.tolist()
    (1, [[0, 1], [0, 0], [0, 0]])
    """

    episode: int
    steps: int
    steps_in_episode: int
    visits: IntArray
    visits_at_start: IntArray
    admissible: BoolArray
    last_pair: tuple[int, int]
    discount: float | None = None
    horizon: int | None = None
    belief: Belief | None = None
    episode_length: int | None = None
    clock: int = 0

    @classmethod
    def initial(
        cls,
        admissible: BoolArray,
        *,
        discount: float | None = None,
        horizon: int | None = None,
        episode_length: int | None = None,
    ) -> Progress:
        """The progress of an agent that has observed nothing yet."""
        nothing = np.zeros(admissible.shape, dtype=np.int64)
        begun = cls(0, 0, 0, nothing, nothing.copy(), admissible, (-1, -1), discount, horizon)
        begun.episode_length = episode_length
        return begun

    @property
    def prior_strength(self) -> FloatArray:
        """(S, A) weight of the prior, in observations: for a Dirichlet row, the sum of its prior φ.

        Raises
        ------
        InvalidInputError
            If there is no belief, or it does not distinguish prior and data.
        """
        return self._evidence("prior_strength")[0]

    @property
    def observations(self) -> FloatArray:
        """(S, A) observations in the belief, including those from before the agent began.

        Raises
        ------
        InvalidInputError
            If there is no belief, or it does not distinguish prior and data.
        """
        return self._evidence("observations")[1]

    def _evidence(self, name: str) -> tuple[FloatArray, FloatArray]:
        if self.belief is None:
            raise InvalidInputError(
                f"{name} needs a belief, which only a level schedule is given, when the agent plans"
            )
        prior, observed = evidence_of(self.belief, self.visits.size, name)
        return prior.reshape(self.visits.shape), observed.reshape(self.visits.shape)

    def shown(self) -> Progress:
        """The same progress for others to look at: its arrays are read-only and follow the agent's.

        Whatever is done to it leaves the agent's own progress as it is.
        """
        return Progress(
            self.episode,
            self.steps,
            self.steps_in_episode,
            _read_only(self.visits),
            _read_only(self.visits_at_start),
            _read_only(self.admissible),
            self.last_pair,
            self.discount,
            self.horizon,
            self.belief,
            self.episode_length,
            self.clock,
        )

    def upcoming(self, belief: Belief | None = None) -> Progress:
        """The progress as it will be when the next pseudo-episode begins with that belief."""
        visits = self.visits.copy()  # a schedule may keep or change it
        return Progress(
            self.episode + 1,
            self.steps,
            0,
            visits,
            visits,
            _read_only(self.admissible),
            self.last_pair,
            self.discount,
            self.horizon,
            belief,
            self.episode_length,
            self.clock,
        )

    def copy(self) -> Progress:
        """A snapshot of the counts."""
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
            self.episode_length,
            self.clock,
        )

    def begin_episode(self) -> None:
        """Note that a new pseudo-episode begins."""
        self.episode += 1
        self.steps_in_episode = 0
        self.visits_at_start = self.visits.copy()

    def add(self, state: int, action: int) -> None:
        """Count one more transition from (state, action)."""
        self.steps += 1
        self.steps_in_episode += 1
        self.visits[state, action] += 1
        self.last_pair = (state, action)
        if self.episode_length is not None:
            self.clock += 1


def _read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A read-only view; the array itself stays writable."""
    view = array.view()
    view.flags.writeable = False
    return view
