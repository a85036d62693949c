"""Agents from outside the library: what they must have, what they may have, and their adapter."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, runtime_checkable

import numpy as np

from brmdp._validation import IntArray, as_index, as_policy
from brmdp.errors import InvalidInputError
from brmdp.simulation.loop import Details

__all__ = ["Actor", "ActorAdapter", "require_actor"]


@runtime_checkable
class Actor(Protocol):
    """Anything that can act in a :class:`brmdp.World`: the methods act and observe are enough.

    An agent may have more, which is then used:

    - ``observe`` may take ``reward``, ``disturbance`` and ``info`` by keyword. It receives those
      that its signature names, or ``reward`` and ``info`` if it takes arbitrary keywords.
    - ``policy`` is the (S,) action that the agent would now take in each state. With it, true
      regret is measured for the policy that each step follows; without it, true regret is not
      measured.
    - ``episode`` is a number that grows whenever ``policy`` may have changed. Without it,
      ``policy`` is read after every action.
    - ``belief``, ``rewards`` and ``discount`` are needed by the diagnostics that depend on the
      belief.

    Examples
    --------
    An agent that always takes the action that has paid most so far:

    >>> import numpy as np
    >>> import brmdp
    >>> class Greedy:
    ...     def __init__(self, n_states, n_actions):
    ...         self.paid = np.zeros((n_states, n_actions))
    ...     @property
    ...     def policy(self):
    ...         return self.paid.argmax(axis=1)
    ...     def act(self, state):
    ...         return int(self.policy[state])
    ...     def observe(self, state, action, next_state, *, reward):
    ...         self.paid[state, action] += reward
    >>> world = brmdp.World("brmdp/RiverSwim-v0", discount=0.9)
    >>> history = brmdp.simulate(Greedy(world.n_states, world.n_actions), world, 100, seed=1)
    >>> len(history), history.true_regret is not None
    (100, True)
    """

    def act(self, state: int) -> int:
        """The action to take in ``state``."""
        ...

    def observe(self, state: int, action: int, next_state: int) -> None:
        """Learn from a transition."""
        ...


def require_actor(agent: Any) -> None:
    """Raise unless ``agent`` can act and observe."""
    missing = [name for name in ("act", "observe") if not callable(getattr(agent, name, None))]
    if missing or isinstance(agent, type):
        lacking = f", which lacks {' and '.join(missing)}" if missing else ", which is a class"
        raise InvalidInputError(
            "agent must have the methods act(state) and observe(state, action, next_state); got "
            f"{agent!r:.80}{lacking}"
        )


class ActorAdapter:
    """Adapts an agent from outside the library to the loop: checks it and numbers its policies.

    Parameters
    ----------
    agent : Actor
        The agent.
    n_states, n_actions : int
        Sizes of the world.
    """

    def __init__(self, agent: Actor, n_states: int, n_actions: int) -> None:
        self.agent = agent
        self.episode = 0
        self._admissible = np.ones((n_states, n_actions), dtype=np.bool_)
        self._numbered = hasattr(agent, "episode")
        self._policy: bytes | None = None
        self.observe = agent.observe

    def act(self, state: int) -> int:
        """The agent's action, after checking that the world has it."""
        action = as_index(self.agent.act(state), self._admissible.shape[1], "the agent's action")
        if self._numbered:
            self.episode = as_index(self.agent.episode, 2**62, "agent.episode")  # type: ignore[attr-defined]
        elif hasattr(self.agent, "policy"):
            policy = self.policy.tobytes()
            self.episode += policy != self._policy
            self._policy = policy
        else:
            self.episode = 1
        return action

    @property
    def policy(self) -> IntArray:
        """(S,) action that the agent would now take in each state."""
        return as_policy(self.agent.policy, self._admissible)  # type: ignore[attr-defined]

    def details(self) -> Details | None:
        """Selects what ``observe`` takes besides the transition; None if it takes nothing more."""
        names = _keywords(self.agent.observe)
        if not names:
            return None

        def chosen(reward: float, info: dict[str, Any]) -> dict[str, Any]:
            known = {"reward": reward, "info": info, "disturbance": info.get("disturbance")}
            return {name: known[name] for name in names}

        return chosen


def _keywords(observe: Any) -> tuple[str, ...]:
    """The keywords that are passed to ``observe``."""
    try:
        parameters = inspect.signature(observe).parameters.values()
    except (TypeError, ValueError):  # some compiled functions have no signature
        return ()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return ("reward", "info")
    named = {
        parameter.name
        for parameter in parameters
        if parameter.kind
        in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    }
    return tuple(name for name in ("reward", "disturbance", "info") if name in named)
