"""The only agent–environment loop.

An agent plans when a new pseudo-episode begins, on being asked to act; so the loop asks for the
action first, then lets the meter look at the plan, then acts. Nothing that is measured changes what
happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from brmdp._validation import FloatArray, IntArray

__all__ = ["Actor", "Meter", "Surroundings", "Trajectory", "interact"]

PROGRESS_EVERY = 100


class Actor(Protocol):
    """What the loop needs of an agent."""

    @property
    def episode(self) -> int:
        """Number of the current pseudo-episode."""
        ...

    def act(self, state: Any) -> int:
        """An action; plans first when a new pseudo-episode begins."""
        ...

    def observe(self, state: Any, action: int, next_state: Any) -> None:
        """Learn from a transition, and from what else the world tells about it, passed by name."""
        ...


class Surroundings(Protocol):
    """What the loop needs of a world."""

    def reset(self, seed: int | None = None) -> Any:
        """Begin; the first state."""
        ...

    def step(self, action: int) -> tuple[Any, float, Any, dict[str, Any]]:
        """Next state of the transition, reward, state to go on from.

        (another after a reset), and Gymnasium's info.
        """
        ...


class Meter(Protocol):
    """What looks on."""

    def begin_episode(self, t: int) -> None:
        """The plan that step ``t`` follows is new."""
        ...

    def measure(self, t: int) -> int | None:
        """Look at what the agent is doing at step ``t``.

        The next step to do so, if there is one.
        """
        ...


class Trajectory(NamedTuple):
    """T steps.

    Attributes
    ----------
    state : (T, ...) array
    action : (T,) integers
    reward : (T,) array
    episode : (T,) integers
        Pseudo-episode, from 1.
    """

    state: NDArray[Any]
    action: IntArray
    reward: FloatArray
    episode: IntArray


def interact(
    agent: Actor,
    world: Surroundings,
    steps: int,
    meter: Meter,
    *,
    state: Any,
    clues: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
    on_step: Callable[[int], None] | None = None,
) -> Trajectory:
    """Let ``agent`` act in ``world``, which has been reset to ``state``, for ``steps`` steps.

    Parameters
    ----------
    agent : Actor
    world : Surroundings
    steps : int
    meter : Meter
    state : any
        Of the same shape and type in every step.
    clues : function, optional
        From Gymnasium's info to the named arguments with which the agent observes, besides the
        transition.
    on_step : function, optional
        Called with the number of steps done every 100 steps.
    """
    first = np.asarray(state)
    states = np.empty((steps, *first.shape), dtype=first.dtype)
    actions = np.empty(steps, dtype=np.int64)
    rewards = np.empty(steps)
    episodes = np.empty(steps, dtype=np.int64)
    act, observe, step = agent.act, agent.observe, world.step
    episode = -1
    due: int | None = 0
    for t in range(steps):
        action = act(state)
        if agent.episode != episode:
            episode = agent.episode
            meter.begin_episode(t)
        if t == due:
            due = meter.measure(t)
        following, reward, then, info = step(action)
        if clues is None:
            observe(state, action, following)
        else:
            observe(state, action, following, **clues(info))
        states[t] = state
        actions[t] = action
        rewards[t] = reward
        episodes[t] = episode
        state = then
        if on_step is not None and t % PROGRESS_EVERY == PROGRESS_EVERY - 1:
            on_step(t + 1)
    return Trajectory(states, actions, rewards, episodes)
