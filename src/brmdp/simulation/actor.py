"""Agents from outside the library: what they must have, what they may have, and their adapter."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, runtime_checkable

import numpy as np

from brmdp._validation import BoolArray, FloatArray, as_array, as_index, as_policy_weights
from brmdp.errors import InvalidInputError
from brmdp.planning.finite_horizon import as_stages
from brmdp.simulation.loop import Details

__all__ = ["Actor", "ActorAdapter", "require_actor", "tells_policy"]

OFFERED = ("reward", "disturbance", "info")
"""What ``observe`` is told besides the transition, if its signature asks for it."""


@runtime_checkable
class Actor(Protocol):
    """Anything that can act in a :class:`brmdp.World`: the methods act and observe are enough.

    An agent may have more, which is then used:

    - ``observe`` may take ``reward``, ``disturbance`` and ``info`` by keyword. It receives those
      that its signature names, and ``reward`` and ``info`` if it takes arbitrary keywords.
    - ``policy`` holds the (S,) actions that the agent would now take in each state, or, if it
      explores at random, (S, A) probabilities. With it, true regret is measured for the policy that
      each step follows, and an action that this policy never takes is refused; without it, true
      regret is not measured.
    - ``episode`` is a number that grows whenever ``policy`` may have changed. Without it,
      ``policy`` is read after every action.
    - ``new_episode()`` is called whenever the world has been reset. In a world with a horizon H,
      ``policy`` may depend on the step of the episode: (H, S) actions or (H, S, A) probabilities.
    - ``belief``, ``rewards`` and ``discount``, besides ``policy`` and ``episode``, are needed by
      diagnostics that depend on the belief.

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
    admissible : (S, A) booleans
        The actions that the world admits in each state.
    follow : bool
        Whether to look at the agent's policy.
    horizon : int, optional
        The horizon of the world.

    Attributes
    ----------
    policy : (S, A) or (H, S, A) array, or None
        The policy that the last action followed, as probabilities; None unless ``follow`` is set.
    """

    def __init__(
        self, agent: Actor, admissible: BoolArray, *, follow: bool, horizon: int | None = None
    ) -> None:
        self.agent: Any = agent
        self.horizon = horizon
        self._step = 0
        self.episode = 0
        self.follow = follow
        self.policy: FloatArray | None = None
        self._admissible = admissible
        self._numbered = hasattr(agent, "episode")
        self.observe = agent.observe

    def new_episode(self) -> None:
        """Tell the agent, if it wants to know, that the world has been reset."""
        self._step = 0
        begin = getattr(self.agent, "new_episode", None)
        if callable(begin):
            begin()

    def act(self, state: int) -> int:
        """The agent's action, after checking that the world and the agent's policy have it."""
        action = as_index(self.agent.act(state), self._admissible.shape[1], "the agent's action")
        before = self.episode
        if self._numbered:
            self.episode = as_index(self.agent.episode, 2**31, "agent.episode")
        if self.follow and (not self._numbered or self.episode != before or self.policy is None):
            policy = as_probabilities(self.agent.policy, self._admissible, self.horizon)
            if not self._numbered:
                self.episode += self.policy is None or not np.array_equal(policy, self.policy)
            self.policy = policy
        elif not self._numbered:
            self.episode = 1
        step, self._step = self._step, self._step + 1
        now = (
            self.policy[step] if self.policy is not None and self.policy.ndim == 3 else self.policy
        )
        if now is not None and now[state, action] <= 0.0:
            raise InvalidInputError(
                f"the agent took action {action} in state {state}, which its policy never takes "
                "there: regret would be that of another policy. Give a policy that explores as "
                "(S, A) probabilities, let agent.episode grow when the policy changes, or pass "
                "Diagnostics(true_regret=False)"
            )
        return action

    def details(self) -> Details | None:
        """A function that selects what else ``observe`` takes; None if it takes nothing else."""
        names = _keywords(self.agent.observe)
        if not names:
            return None

        def chosen(reward: float, info: dict[str, Any]) -> dict[str, Any]:
            known = {"reward": reward, "info": info, "disturbance": info.get("disturbance")}
            return {name: known[name] for name in names}

        return chosen


def tells_policy(agent: Any) -> bool:
    """Whether an agent has a policy to look at, now or after its first action."""
    if hasattr(type(agent), "policy"):
        return type(agent).policy is not None
    return getattr(agent, "policy", None) is not None


def as_probabilities(policy: Any, admissible: BoolArray, horizon: int | None = None) -> FloatArray:
    """(S, A) probabilities of actions; with a horizon also by step, (H, S, A)."""
    array = as_array(policy, "policy", "actions or probabilities")
    if horizon is None or array.ndim == 1:
        return as_policy_weights(array, admissible)
    stages = as_stages(array, admissible, horizon)
    by_step: FloatArray = (
        np.eye(admissible.shape[1])[stages] if stages.ndim == 2 else np.array(stages)
    )
    return by_step


def _keywords(observe: Any) -> tuple[str, ...]:
    """The keywords that are passed to ``observe``."""
    try:
        signature = inspect.signature(observe)
    except (TypeError, ValueError):  # some compiled functions have no signature
        return ()
    parameters = signature.parameters.values()
    named = {
        one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    }
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        named |= {"reward", "info"}
    names = tuple(name for name in OFFERED if name in named)
    try:
        signature.bind(0, 0, 0, **dict.fromkeys(names))
    except TypeError as error:
        raise InvalidInputError(
            "observe must take state, action and next_state first, by position, and nothing else "
            f"but {', '.join(OFFERED)}, by keyword; got observe{signature}: {error}"
        ) from None
    return names
