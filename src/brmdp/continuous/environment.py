"""The continuous-state FrozenLake as a Gymnasium environment.

It is described in the paper's appendix "Continuous-State FrozenLake Experiment". On an ordinary
cell a movement has mode M with the slip probabilities. In a hole it is activated (E = 1) with
probability p_h. Its length is L = ℓ0 + U with U uniform on [0, θ_L]; a movement that would leave
[0, 4]² is not made. From the goal the next state is uniform by area on the ordinary cells, whatever
the action. Entering the goal pays 1, and the task never ends. ``info`` reveals M, E and L, from
which :class:`~brmdp.continuous.belief.LakeBelief` learns.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from brmdp._validation import FloatArray, as_index
from brmdp.continuous.checks import as_parameters, as_state
from brmdp.continuous.lake import (
    DIRECTIONS,
    GOAL,
    HOLES,
    MODES,
    ORDINARY,
    SHORTEST,
    SIDE,
    START,
    TRUTH,
    LakeParameters,
)
from brmdp.envs.rendering import GridPainter
from brmdp.envs.tabular_env import RenderMode
from brmdp.errors import InvalidInputError

__all__ = ["ContinuousFrozenLakeEnv"]

_ACTION_NAMES = ("Left", "Right", "Up", "Down")
_STEPS: list[tuple[float, float]] = [(float(x), float(y)) for x, y in DIRECTIONS]
_MODES: list[list[int]] = MODES.tolist()


class ContinuousFrozenLakeEnv(gymnasium.Env[Any, Any]):
    """The paper's continuous lake; the observation is the position (x, y) in [0, 4]².

    Every step uses exactly three uniform numbers from ``np_random``. So a seed and the actions
    determine the trajectory, and environments with the same seed share their random numbers.

    Parameters
    ----------
    parameters : LakeParameters
        The true model; by default the paper's.
    render_mode : {None, "ansi", "rgb_array"}
        What :meth:`render` returns: nothing, text or a picture.

    Notes
    -----
    ``info`` of a step has the keys ``"mode"`` (M: 0, 1 or 2 on ordinary cells), ``"mobile"`` (E: 0
    or 1 in holes) and ``"length"`` (L: the attempted length of an activated movement, even if it is
    blocked). Each is None where it does not apply.

    Examples
    --------
    >>> from brmdp.continuous import ContinuousFrozenLakeEnv
    >>> env = ContinuousFrozenLakeEnv()
    >>> state, _ = env.reset(seed=1)
    >>> state.tolist()
    [0.5, 0.5]
    >>> state, reward, _, _, info = env.step(1)
    >>> sorted(info)
    ['length', 'mobile', 'mode']
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], ("render_fps"): 4}  # noqa: RUF012 (as in the base)

    def __init__(
        self, parameters: LakeParameters = TRUTH, *, render_mode: RenderMode | None = None
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise InvalidInputError(
                f"render_mode must be None, 'ansi' or 'rgb_array'; got {render_mode!r}"
            )
        self.parameters = as_parameters(parameters)
        self.render_mode = render_mode
        self.observation_space = Box(0.0, float(SIDE), (2,), np.float64)
        self.action_space = Discrete(len(_ACTION_NAMES))
        modes = np.cumsum(self.parameters.slip)
        self._cumulative_slip: list[float] = (modes / modes[-1]).tolist()
        self._mobility = float(self.parameters.mobility)
        self._spread = float(self.parameters.spread)
        self._position: tuple[float, float] | None = None
        self._action: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Start again at (0.5, 0.5), or at ``options["state"]``; uses no random number."""
        if not (options is None or (isinstance(options, dict) and options.keys() <= {"state"})):
            raise InvalidInputError(
                f"options must be None or a dictionary with the key 'state'; got {options!r}"
            )
        x, y = as_state(options["state"], "options['state']") if options else START
        super().reset(seed=seed)
        self._position = float(x), float(y)
        self._action = None
        return np.array(self._position), {"mode": None, "mobile": None, "length": None}

    def step(self, action: int) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """Take an action; returns (next state, reward, False, False, info): the task never ends.

        Raises
        ------
        InvalidInputError
            If the action is not one of 0..3, or if :meth:`reset` has not been called yet.
        """
        action = as_index(action, len(_ACTION_NAMES), "action")
        if self._position is None:
            raise InvalidInputError("call reset() before the first step()")
        cell = _cell(self._position)
        mode: int | None = None
        mobile: int | None = None
        length: float | None = None
        choice, first, second = self.np_random.random(3).tolist()
        if cell == GOAL:
            row, column = divmod(ORDINARY[int(choice * len(ORDINARY))], SIDE)
            self._position = column + first, row + second
        else:
            if cell in HOLES:
                mobile = int(choice < self._mobility)
                direction = action if mobile else None
            else:
                mode = bisect_right(self._cumulative_slip, choice)
                direction = _MODES[action][mode]
            if direction is not None:
                length = SHORTEST + self._spread * first
                self._position = _moved(self._position, direction, length)
        self._action = action
        reward = float(_cell(self._position) == GOAL)
        return (
            np.array(self._position),
            reward,
            False,
            False,
            {"mode": mode, "mobile": mobile, "length": length},
        )

    def render(self) -> Any:
        """The current state as text ("ansi") or as an (H, W, 3) array of bytes ("rgb_array")."""
        if self.render_mode is None:
            # as in Gymnasium, not an error, so that generic loops run
            gymnasium.logger.warn(
                "render() shows nothing without a render_mode; choose 'ansi' or 'rgb_array'"
            )
            return None
        if self._position is None:
            raise InvalidInputError("call reset() before render()")
        x, y = self._position
        if self.render_mode == "rgb_array":
            return _PAINTER.picture_at(x, y)
        after = "" if self._action is None else f", after {_ACTION_NAMES[self._action]}"
        return f"state ({x:.3f}, {y:.3f}){after}\n{_PAINTER.text(_cell(self._position))}\n"


def _cell(position: tuple[float, float]) -> int:
    """The cell of one position, without the overhead of arrays."""
    x, y = position
    return SIDE * min(int(y), SIDE - 1) + min(int(x), SIDE - 1)


def _moved(position: tuple[float, float], direction: int, length: float) -> tuple[float, float]:
    """The position after a movement; one that would leave the square is not made."""
    x, y = position[0] + length * _STEPS[direction][0], position[1] + length * _STEPS[direction][1]
    return (x, y) if 0.0 <= x <= SIDE and 0.0 <= y <= SIDE else position


def _painter() -> GridPainter:
    letters = {_cell(START): "S", GOAL: "G"} | dict.fromkeys(HOLES, "H")
    return GridPainter(
        tuple(
            "".join(letters.get(SIDE * row + column, "F") for column in range(SIDE))
            for row in range(SIDE)
        )
    )


_PAINTER = _painter()
