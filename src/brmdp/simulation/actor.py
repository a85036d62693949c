"""Agents that are not the library's: what they must have, what they may have, and their adapter."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, runtime_checkable

import numpy as np

from brmdp._validation import IntArray, as_index, as_policy
from brmdp.errors import InvalidInputError
from brmdp.simulation.loop import Details

__all__ = ["Actor", "Guest", "require_actor"]


@runtime_checkable
class Actor(Protocol):
    """Anything that can act in a :class:`brmdp.World`: two methods are enough.

    More is used where it is there:

    - ``observe`` may take ``reward``, ``disturbance`` and ``info`` by keyword. It is given those
      that its signature names, or ``reward`` and ``info`` if it takes any keyword.
    - ``policy``, the (S,) action that the agent would now take in every state. True regret is
      measured if it is there, for the policy that each step follows, and not otherwise.
    - ``episode``, a number that grows whenever ``policy`` may have changed. Without it ``policy``
      is looked at after every action.
    - ``belief``, ``rewards`` and ``discount``, for the diagnostics that look at what is believed.

    Examples
    --------
    An agent that always takes the action that paid most so far:

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
    """Refuse what cannot act."""
    missing = [name for name in ("act", "observe") if not callable(getattr(agent, name, None))]
    if missing or isinstance(agent, type):
        lacking = f"; it lacks {', '.join(missing)}" if missing else ", a class"
        raise InvalidInputError(
            "agent must have the methods act(state) and observe(state, action, next_state); got "
            f"{agent!r:.80}{lacking}"
        )


class Guest:
    """An agent of somebody else's, as the loop wants it: checked, and with numbered policies.

    Parameters
    ----------
    agent : Actor
    n_states, n_actions : int
        Of the world.
    """

    def __init__(self, agent: Actor, n_states: int, n_actions: int) -> None:
        self.agent = agent
        self.episode = 0
        self._admissible = np.ones((n_states, n_actions), dtype=np.bool_)
        self._numbered = hasattr(agent, "episode")
        self._policy: bytes | None = None
        self.observe = agent.observe

    def act(self, state: int) -> int:
        """The agent's action, which must be one of the world's."""
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
        """What the agent would now do in every state."""
        return as_policy(self.agent.policy, self._admissible)  # type: ignore[attr-defined]

    def details(self) -> Details | None:
        """What the agent wants to be told beside the transition; None for nothing."""
        names = _keywords(self.agent.observe)
        if not names:
            return None

        def chosen(reward: float, info: dict[str, Any]) -> dict[str, Any]:
            known = {"reward": reward, "info": info, "disturbance": info.get("disturbance")}
            return {name: known[name] for name in names}

        return chosen


def _keywords(observe: Any) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(observe).parameters.values()
    except (TypeError, ValueError):  # a compiled one, which does not say
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
