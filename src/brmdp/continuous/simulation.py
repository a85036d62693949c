"""Simulation of an agent in the continuous lake, with the true regret of every step.

It uses the loop of :mod:`brmdp.simulation`. V^{π_k} is computed when pseudo-episode k is over, at
the states visited in it.
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
        The record, with the cell of s_t as its state. For each pseudo-episode, ``levels`` are those
        at the centres of all cells except the goal, and ``residual`` is that of the fit. There is
        no error bound for a network.
    position : (T, 2) array
        s_t.

    Examples
    --------
    >>> from brmdp import continuous
    >>> belief, model = continuous.LakeBelief(), continuous.LakeModel()
    >>> agent = continuous.posterior_mean(belief, model, 0.9, rng=1)
    >>> record = continuous.simulate_lake(agent, 100, seed=1)  # doctest: +SKIP
    >>> record.position.shape, record.history.state.shape  # doctest: +SKIP
    ((100, 2), (100,))
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
        The agent. It continues to learn from its current state.
    steps : int
        Number of steps T.
    seed : int, optional
        Seed of the environment.
    on_step : function, optional
        Called every 100 steps with the number of steps done, to show progress.

    Returns
    -------
    LakeHistory

    Examples
    --------
    >>> from brmdp import continuous
    >>> belief, model = continuous.LakeBelief(), continuous.LakeModel()
    >>> agent = continuous.aq_brmdp(belief, model, 0.9, rng=1)
    >>> record = continuous.simulate_lake(agent, 100, seed=1)  # doctest: +SKIP
    >>> record.history.true_regret.shape  # doctest: +SKIP
    (100,)
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
        # negative by at most the accuracy of the two values; clipping at zero would bias the sum
        # over many steps
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
    """The same interaction as :func:`simulate_lake`, but without regret or other records.

    Use it to inspect the agent during a run.

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

    Examples
    --------
    >>> from brmdp import continuous
    >>> belief, model = continuous.LakeBelief(), continuous.LakeModel()
    >>> agent = continuous.continuing_psrl(belief, model, 0.9, rng=1)
    >>> continuous.follow_lake(agent, 50, seed=1, on_episode=print).shape  # doctest: +SKIP
    (50, 2)
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
    """The environment in the form that the loop needs; notes the visited states."""

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
    """Announces new plans and measures nothing."""

    on_episode: Callable[[int], None]

    def begin_episode(self, t: int) -> None:
        self.on_episode(t)

    def measure(self, t: int) -> int | None:
        return None


class _Meter:
    """Values of each policy at the states visited under it, and reports of all plans."""

    def __init__(self, agent: ContinuousAgent, world: _Lake) -> None:
        self.agent = agent
        self.world = world
        self.followed: LakeValues | None = None
        self.values: list[FloatArray] = []
        self.episodes = Episodes()

    def begin_episode(self, t: int) -> None:
        """Finish the last pseudo-episode and evaluate the policy of the new one."""
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
        """Record V^{π_k}(s_t) for the steps of the last pseudo-episode."""
        if self.followed is not None and self.world.visited:
            self.values.append(self.followed.at(np.array(self.world.visited)))
            self.world.visited.clear()

    def measure(self, t: int) -> int | None:
        """Measure nothing else."""
        return None


@lru_cache(maxsize=4)
def _optimum(discount: float) -> LakeValues:
    return optimal_values(discount)
