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

__all__ = ["Details", "Meter", "PlanningActor", "SteppedWorld", "Trajectory", "interact"]

PROGRESS_EVERY = 100

Details = Callable[[float, dict[str, Any]], Mapping[str, Any]]
"""From a reward and Gymnasium's info to what an agent is told beside the transition, by name."""


class PlanningActor(Protocol):
    """What the loop needs of an agent: one that acts, observes, and numbers its plans."""

    @property
    def episode(self) -> int:
        """Number of the current pseudo-episode."""
        ...

    def act(self, state: Any) -> int:
        """An action; plans first when a new pseudo-episode begins."""
        ...

    def observe(self, state: Any, action: int, next_state: Any) -> None:
        """Learn from a transition, and from the details of it, passed by name."""
        ...


class SteppedWorld(Protocol):
    """What the loop needs of a world."""

    def reset(self, seed: int | None = None) -> Any:
        """Begin; the first state."""
        ...

    def step(self, action: int) -> tuple[Any, float, Any, dict[str, Any]]:
        """Next state of the transition, reward, state to resume from, and Gymnasium's info.

        The two states differ after a reset.
        """
        ...


class Meter(Protocol):
    """What looks on."""

    def begin_episode(self, t: int) -> None:
        """The plan that step ``t`` follows is new."""
        ...

    def measure(self, t: int) -> int | None:
        """Look at what the agent is doing at step ``t``; the next step to do so, if any."""
        ...


class Trajectory(NamedTuple):
    """T steps.

    Attributes
    ----------
    state : (T, ...) array
    action : (T,) integers
    reward : (T,) array
    next_state : (T, ...) array
        Where the transition led; the next step begins elsewhere after a reset.
    episode : (T,) integers
        Pseudo-episode, from 1.
    """

    state: NDArray[Any]
    action: IntArray
    reward: FloatArray
    next_state: NDArray[Any]
    episode: IntArray


def interact(
    agent: PlanningActor,
    world: SteppedWorld,
    steps: int,
    meter: Meter,
    *,
    state: Any,
    details: Details | None = None,
    on_step: Callable[[int], None] | None = None,
) -> Trajectory:
    """Let ``agent`` act in ``world``, which has been reset to ``state``, for ``steps`` steps.

    Parameters
    ----------
    agent : PlanningActor
    world : SteppedWorld
    steps : int
    meter : Meter
    state : any
        Of the same shape and type in every step.
    details : function, optional
        What the agent observes beside the transition.
    on_step : function, optional
        Called with the number of steps done every 100 steps.
    """
    first = np.asarray(state)
    states, next_states = (np.empty((steps, *first.shape), dtype=first.dtype) for _ in range(2))
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
        next_state, reward, resumed, info = step(action)
        if details is None:
            observe(state, action, next_state)
        else:
            observe(state, action, next_state, **details(reward, info))
        states[t] = state
        actions[t] = action
        rewards[t] = reward
        next_states[t] = next_state
        episodes[t] = episode
        state = resumed
        if on_step is not None and t % PROGRESS_EVERY == PROGRESS_EVERY - 1:
            on_step(t + 1)
    return Trajectory(states, actions, rewards, next_states, episodes)
