"""An agent in the continuous lake, and what is recorded.

The common loop, with the true regret of every step.

V^{π_k} is computed when pseudo-episode k is over, at the states that were visited in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from brmdp._validation import FloatArray, as_positive_int
from brmdp.continuous.agent import ContinuousAgent
from brmdp.continuous.environment import ContinuousFrozenLakeEnv
from brmdp.continuous.lake import cells
from brmdp.continuous.oracle import LakeValues, optimal_values, policy_values
from brmdp.errors import InvalidInputError
from brmdp.planning.solution import APPROXIMATE
from brmdp.simulation import Episodes, History
from brmdp.simulation.loop import Meter, Trajectory, interact

__all__ = ["LakeHistory", "follow_lake", "simulate_lake"]


@dataclass(frozen=True, eq=False)
class LakeHistory:
    """A recorded interaction of T steps.

    Attributes
    ----------
    history : History
        With the cell of s_t as its state. Of a pseudo-episode, ``levels`` are those at the centres
        of the cells but the goal's, ``residual`` is that of the fit; there is no bound on the error
        of a network.
    position : (T, 2) array
        s_t itself.
    """

    history: History
    position: FloatArray


def simulate_lake(
    agent: ContinuousAgent,
    steps: int,
    *,
    seed: int | None = None,
    on_step: Callable[[int], None] | None = None,
) -> LakeHistory:
    """Let ``agent`` act in the paper's continuous lake for ``steps`` steps.

    Parameters
    ----------
    agent : ContinuousAgent
        It goes on learning from where it stands.
    steps : int
    seed : int, optional
        Of the environment.
    on_step : function, optional
        Called with the number of steps done every 100 steps, for progress.
    """
    world = _Lake()
    meter = _Meter(agent, world)
    path = _interaction(agent, world, meter, steps, seed, on_step)
    meter.settle()
    history = History(
        state=cells(path.state),
        action=path.action,
        reward=path.reward,
        next_state=cells(path.next_state),
        disturbance=None,
        episode=path.episode,
        # below zero by no more than the accuracy of the two values; cut off there, the sum over
        # many steps would be biased
        true_regret=_optimum(agent.discount).at(path.state) - np.concatenate(meter.values),
        robust_regret=None,
        quantile_step=np.empty(0, dtype=np.int64),
        quantile_value=np.empty(0),
        episodes=meter.episodes,
    )
    return LakeHistory(history, path.state)


def follow_lake(
    agent: ContinuousAgent,
    steps: int,
    *,
    seed: int | None = None,
    on_episode: Callable[[int], None],
) -> FloatArray:
    """The interaction of :func:`simulate_lake` without its records.

    For a look at the agent on the way.

    Parameters
    ----------
    agent, steps, seed
        As in :func:`simulate_lake`.
    on_episode : function
        Called with the number of steps done whenever the agent has made a new plan.

    Returns
    -------
    (steps, 2) array
        The states s_t.
    """
    return _interaction(agent, _Lake(), _Onlooker(on_episode), steps, seed, None).state


def _interaction(
    agent: ContinuousAgent,
    world: _Lake,
    meter: Meter,
    steps: int,
    seed: int | None,
    on_step: Callable[[int], None] | None,
) -> Trajectory:
    n = as_positive_int(steps, "steps")
    if not isinstance(agent, ContinuousAgent):
        raise InvalidInputError(f"agent must be a ContinuousAgent; got {type(agent).__name__}")
    return interact(
        agent, world, n, meter, state=world.reset(seed), details=_primitives, on_step=on_step
    )


def _primitives(_: float, info: dict[str, Any]) -> dict[str, Any]:
    return {"primitives": info}


class _Lake:
    """The environment, as the loop wants it.

    Remembers where the agent has been since it was last asked.
    """

    def __init__(self) -> None:
        self.env = ContinuousFrozenLakeEnv()
        self.state = np.empty(2)
        self.visited: list[FloatArray] = []

    def reset(self, seed: int | None = None) -> FloatArray:
        self.state, _ = self.env.reset(seed=seed)
        return self.state

    def step(self, action: int) -> tuple[FloatArray, float, FloatArray, dict[str, Any]]:
        self.visited.append(self.state)
        self.state, reward, _, _, info = self.env.step(action)
        return self.state, reward, self.state, info


@dataclass(frozen=True)
class _Onlooker:
    """Measures nothing."""

    on_episode: Callable[[int], None]

    def begin_episode(self, t: int) -> None:
        self.on_episode(t)

    def measure(self, t: int) -> int | None:
        return None


class _Meter:
    """Values of the policies at the states where they were followed.

    And the report of every pseudo-episode.
    """

    def __init__(self, agent: ContinuousAgent, world: _Lake) -> None:
        self.agent = agent
        self.world = world
        self.followed: LakeValues | None = None
        self.values: list[FloatArray] = []
        self.episodes = Episodes()

    def begin_episode(self, t: int) -> None:
        """Settle the pseudo-episode that is over, and value the policy of the one that begins."""
        self.settle()
        self.followed = policy_values(self.agent.policy_preferences(), self.agent.discount)
        report, episodes = self.agent.report, self.episodes
        episodes.first_step.append(t)
        episodes.levels.append(report.levels)
        episodes.iterations.append(report.iterations)
        episodes.residual.append(report.residual)
        episodes.error_bound.append(np.inf)
        episodes.status.append(APPROXIMATE)
        episodes.policy.append(len(episodes.policy))

    def settle(self) -> None:
        """V^{π_k}(s_t) at the steps of the pseudo-episode that is over."""
        if self.followed is not None and self.world.visited:
            self.values.append(self.followed.at(np.array(self.world.visited)))
            self.world.visited.clear()

    def measure(self, t: int) -> int | None:
        """Nothing else is measured."""
        return None


@lru_cache(maxsize=4)
def _optimum(discount: float) -> LakeValues:
    return optimal_values(discount)
