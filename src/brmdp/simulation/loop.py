"""The only agent–environment loop.

An agent plans when it is asked to act and a new pseudo-episode begins. So the loop first asks for
the action, then lets the meter look at the plan, then takes the action. Measurements do not affect
the interaction.
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
"""Maps a reward and Gymnasium's info to the keywords passed to ``observe``."""


class PlanningActor(Protocol):
    """What the loop needs from an agent: it acts, observes, and numbers its plans."""

    @property
    def episode(self) -> int:
        """Number of the current pseudo-episode."""
        ...

    def act(self, state: Any) -> int:
        """An action; plans first if a new pseudo-episode begins."""
        ...

    def observe(self, state: Any, action: int, next_state: Any) -> None:
        """Learn from a transition and its details, which are passed by keyword."""
        ...


class SteppedWorld(Protocol):
    """What the loop needs from a world.

    It may have an attribute ``restarted``: whether the last step was followed by a reset. If so,
    the loop notes it and tells the agent.
    """

    def reset(self, seed: int | None = None) -> Any:
        """Start anew and return the first state."""
        ...

    def step(self, action: int) -> tuple[Any, float, Any, dict[str, Any]]:
        """Next state of the transition, reward, state to continue from, and Gymnasium's info.

        The two states differ after a reset.
        """
        ...


class Meter(Protocol):
    """Measures the agent during the interaction."""

    def begin_episode(self, t: int) -> None:
        """Called when step ``t`` is the first to follow a new plan."""
        ...

    def measure(self, t: int) -> int | None:
        """Measure the agent at step ``t`` and return the next step to do so, if any."""
        ...


class Trajectory(NamedTuple):
    """The T steps of an interaction.

    Attributes
    ----------
    state : (T, ...) array
        State in which each action was taken.
    action : (T,) integers
        The action.
    reward : (T,) array
        The reward.
    next_state : (T, ...) array
        State that the transition led to; after a reset the next step begins elsewhere.
    episode : (T,) integers
        Number of the pseudo-episode, from 1.
    starts : (E,) integers
        Steps at which an episode of the world began, from 0.
    """

    state: NDArray[Any]
    action: IntArray
    reward: FloatArray
    next_state: NDArray[Any]
    episode: IntArray
    starts: IntArray


def interact(
    agent: PlanningActor,
    world: SteppedWorld,
    steps: int,
    meter: Meter,
    *,
    state: Any,
    details: Details | None = None,
    on_step: Callable[[int], None] | None = None,
    new_episode: Callable[[], None] | None = None,
) -> Trajectory:
    """Let ``agent`` act in ``world``, which has been reset to ``state``, for ``steps`` steps.

    Parameters
    ----------
    agent : PlanningActor
        The agent.
    world : SteppedWorld
        The world.
    steps : int
        Number of steps T.
    meter : Meter
        What to measure.
    state : any
        The first state. All states must have the same shape and type.
    details : function, optional
        Selects what the agent observes besides the transition.
    on_step : function, optional
        Called every 100 steps with the number of steps done.
    new_episode : function, optional
        Called when the world has been reset within the interaction.
    """
    first = np.asarray(state)
    states, next_states = (np.empty((steps, *first.shape), dtype=first.dtype) for _ in range(2))
    actions = np.empty(steps, dtype=np.int64)
    rewards = np.empty(steps)
    episodes = np.empty(steps, dtype=np.int64)
    act, observe, step = agent.act, agent.observe, world.step
    episode = -1
    due: int | None = 0
    starts = [0]
    watched: Any = world if hasattr(world, "restarted") else None
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
        if watched is not None and watched.restarted:
            starts.append(t + 1)
            if new_episode is not None:
                new_episode()
        if on_step is not None and t % PROGRESS_EVERY == PROGRESS_EVERY - 1:
            on_step(t + 1)
    begun = np.array([t for t in starts if t < steps], dtype=np.int64)
    return Trajectory(states, actions, rewards, next_states, episodes, begun)
