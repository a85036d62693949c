"""A known MDP as a Gymnasium environment.

:class:`TabularEnv` simulates a :class:`~brmdp.TabularMDP`: the state is the observation, every step
uses exactly one uniform random number, and the task never ends. Simulations take millions of steps,
so a step takes only a microsecond or two.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import Any, Literal, TypeAlias

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from brmdp._validation import FloatArray, IntArray, as_index
from brmdp.envs.rendering import GridPainter, Painter
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["RenderMode", "TabularEnv"]

RenderMode: TypeAlias = Literal["ansi", "rgb_array"]


class TabularEnv(gymnasium.Env[Any, Any]):
    """A continuing Gymnasium environment that simulates a known MDP.

    The next state is the inverse of the row's cumulative distribution at one uniform number from
    ``np_random``. So a seed and the actions determine the trajectory, and environments with the
    same seed share their random numbers.

    Parameters
    ----------
    mdp : TabularMDP
        The MDP. :meth:`reset` begins at its start (a state or a distribution).
    render_mode : {None, "ansi", "rgb_array"}
        What :meth:`render` returns: nothing, text or a picture.
    painter : Painter, optional
        How states are drawn; by default as cells of a grid.

    Attributes
    ----------
    mdp : TabularMDP
        The truth, for regret and for checks. A learning agent must not look at its kernel.

    Examples
    --------
    >>> import brmdp
    >>> env = brmdp.envs.TabularEnv(brmdp.envs.riverswim(4))
    >>> state, info = env.reset(seed=1)
    >>> env.step(0)
    (0, 0.005, False, False, {})
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], ("render_fps"): 4}  # noqa: RUF012 (as in the base)

    def __init__(
        self, mdp: TabularMDP, render_mode: RenderMode | None = None, painter: Painter | None = None
    ) -> None:
        if not isinstance(mdp, TabularMDP):
            raise InvalidInputError(f"mdp must be a brmdp.TabularMDP; got {type(mdp).__name__}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise InvalidInputError(
                f"render_mode must be None, 'ansi' or 'rgb_array'; got {render_mode!r}"
            )
        self.mdp = mdp
        self.render_mode = render_mode
        self.painter: Painter = GridPainter.of_states(mdp.n_states) if painter is None else painter
        self.observation_space = Discrete(mdp.n_states)
        self.action_space = Discrete(mdp.n_actions)
        self._state: int | None = None
        self._action: int | None = None
        self._outcome: int | None = None
        # filled when a pair is first visited, so that a large MDP costs nothing in advance
        self._rows: dict[tuple[int | None, int], tuple[list[float], list[int], list[float]]] = {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start again at the MDP's start, or at ``options["state"]``.

        A random number is used only if the start is a distribution and no state is given.
        """
        if not (options is None or (isinstance(options, dict) and options.keys() <= {"state"})):
            raise InvalidInputError(
                f"options must be None or a dictionary with the key 'state'; got {options!r}"
            )
        state: int | FloatArray = self.mdp.start
        if options:
            state = as_index(options["state"], self.mdp.n_states, "options['state']")
        super().reset(seed=seed)
        if not isinstance(state, int):
            state = bisect_right(_cumulative(state), self.np_random.random())
        self._state = state
        self._action = self._outcome = None
        return state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action; returns (next state, reward, False, False, {}): the task never ends.

        Raises
        ------
        InvalidInputError
            If the action is out of range or inadmissible in the current state, or if
            :meth:`reset` has not been called yet.
        """
        if type(action) is not int:
            action = as_index(action, self.mdp.n_actions, "action")
        row = self._rows.get((self._state, action))
        if row is None:
            row = self._prepare(action)
        cumulative, next_states, rewards = row
        outcome = bisect_right(cumulative, self.np_random.random())
        state = next_states[outcome]
        self._state = state
        self._action = action
        self._outcome = outcome
        return state, rewards[outcome], False, False, {}

    def _prepare(self, action: int) -> tuple[list[float], list[int], list[float]]:
        """Check the action and store its row as plain lists."""
        state = self._state
        if state is None:
            raise InvalidInputError("call reset() before the first step()")
        as_index(action, self.mdp.n_actions, "action")
        if not self.mdp.admissible[state, action]:
            allowed = np.flatnonzero(self.mdp.admissible[state]).tolist()
            raise InvalidInputError(
                f"action must be one of {allowed} in state {state}; got {action}"
            )
        probabilities, next_states, rewards = self._outcomes(state, action)
        row = _cumulative(probabilities), next_states.tolist(), rewards.tolist()
        self._rows[state, action] = row
        return row

    def _outcomes(self, state: int, action: int) -> tuple[FloatArray, IntArray, FloatArray]:
        """Probabilities, next states and rewards of the outcomes of an admissible pair."""
        pattern = self.mdp.pattern
        pair = state * pattern.n_actions + action
        row = slice(int(pattern.indptr[pair]), int(pattern.indptr[pair + 1]))
        return (
            self.mdp.probabilities[row],
            pattern.next_states[row],
            self.mdp.transition_rewards[row],
        )

    def action_mask(self, state: int) -> NDArray[np.int8]:
        """Admissible actions in a state, in the form that ``action_space.sample(mask)`` takes."""
        mask: NDArray[np.int8] = self.mdp.admissible[
            as_index(state, self.mdp.n_states, "state")
        ].astype(np.int8)
        return mask

    @cached_property
    def P(self) -> dict[int, dict[int, list[tuple[float, int, float, bool]]]]:
        """Gymnasium's table: P[s][a] lists (probability, next state, reward, terminated).

        The list is empty for inadmissible actions. The table is built on first access;
        :meth:`TabularMDP.from_gymnasium` reads it.
        """
        pattern = self.mdp.pattern
        entries = list(
            zip(
                self.mdp.probabilities.tolist(),
                pattern.next_states.tolist(),
                self.mdp.transition_rewards.tolist(),
                [False] * pattern.n_transitions,
                strict=True,
            )
        )
        ends = pattern.indptr.tolist()
        n_actions = pattern.n_actions
        return {
            s: {
                a: entries[ends[s * n_actions + a] : ends[s * n_actions + a + 1]]
                for a in range(n_actions)
            }
            for s in range(pattern.n_states)
        }

    @property
    def initial_state_distrib(self) -> FloatArray:
        """(S,) distribution of the start, under the name used by Gymnasium's environments."""
        start = self.mdp.start
        return np.eye(1, self.mdp.n_states, start)[0] if isinstance(start, int) else start

    def render(self) -> Any:
        """The current state as text ("ansi") or as an (H, W, 3) array of bytes ("rgb_array")."""
        if self.render_mode is None:
            # as in Gymnasium, not an error, so that generic loops run
            gymnasium.logger.warn(
                "render() shows nothing without a render_mode; choose 'ansi' or 'rgb_array'"
            )
            return None
        if self._state is None:
            raise InvalidInputError("call reset() before render()")
        if self.render_mode == "rgb_array":
            return self.painter.picture(self._state)
        return f"{self._title()}\n{self.painter.text(self._state)}\n"

    def _title(self) -> str:
        """The current state and the last action in words."""
        state, names = self._state, self.mdp.state_names
        assert state is not None
        title = f"state {state}" if names is None else names[state]
        if self._action is not None:
            actions = self.mdp.action_names
            title += (
                f", after {f'action {self._action}' if actions is None else actions[self._action]}"
            )
        return title


def _cumulative(probabilities: FloatArray) -> list[float]:
    """Cumulative probabilities that reach exactly 1 at the last possible outcome."""
    sums = np.cumsum(probabilities)
    cumulative: list[float] = (sums / sums[-1]).tolist()
    return cumulative
