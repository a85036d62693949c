"""The only agent–environment loop, and what it records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from brmdp._validation import FloatArray, IntArray, as_level, as_positive_int, as_rng
from brmdp.agents import Agent
from brmdp.errors import InvalidInputError
from brmdp.planning import evaluate, evaluate_policy, plan, posterior_quantile_value, solve
from brmdp.risk import Quantile
from brmdp.simulation.world import World

__all__ = ["Diagnostics", "Episodes", "History", "simulate"]


@dataclass(frozen=True)
class Diagnostics:
    """What to measure beside the interaction; nothing of it changes a trajectory.

    Parameters
    ----------
    true_regret : bool
        V*(s_t) − V^{π_k}(s_t) at every step, by exact evaluation; needs a world that knows the truth.
    robust_level : float, optional
        α̲: record V*_{φ_k,α̲}(s_t) − V^{π_k}_{φ_k,α̲}(s_t) at every step, exactly, whatever the agent's own method.
    quantile_level : float, optional
        Record the posterior quantile of the current policy's value at the first state, by the paper's estimator.
    quantile_every : int
        At steps 0, ``quantile_every``, 2 ``quantile_every``, …
    quantile_samples : int
        Draws M of that estimator (the paper: 147).
    """

    true_regret: bool = True
    robust_level: float | None = None
    quantile_level: float | None = None
    quantile_every: int = 200
    quantile_samples: int = 147

    def __post_init__(self) -> None:
        for name in ("robust_level", "quantile_level"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_level(getattr(self, name), name))
        for name in ("quantile_every", "quantile_samples"):
            object.__setattr__(self, name, as_positive_int(getattr(self, name), name))


@dataclass(slots=True)
class Episodes:
    """One entry per pseudo-episode: how it was planned.

    Attributes
    ----------
    first_step : list of int
    levels : list of (S, A) arrays or None
    iterations : list of int
    residual, error_bound : list of float
    status : list of str
    """

    first_step: list[int] = field(default_factory=list)
    levels: list[FloatArray | None] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    error_bound: list[float] = field(default_factory=list)
    status: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class History:
    """A recorded interaction of T steps.

    Attributes
    ----------
    state, action : (T,) integers
        s_t and a_t.
    reward : (T,) array
    episode : (T,) integers
        Pseudo-episode, from 1.
    true_regret, robust_regret : (T,) arrays or None
        Per step, not accumulated.
    quantile_step : (D,) integers
    quantile_value : (D,) array
        Posterior quantile value of the policy at those steps; empty if not asked for.
    episodes : Episodes
    """

    state: IntArray
    action: IntArray
    reward: FloatArray
    episode: IntArray
    true_regret: FloatArray | None
    robust_regret: FloatArray | None
    quantile_step: IntArray
    quantile_value: FloatArray
    episodes: Episodes

    def __len__(self) -> int:
        return int(self.state.size)


def simulate(
    agent: Agent,
    world: World,
    steps: int,
    *,
    seed: int | None = None,
    diagnostics: Diagnostics | None = None,
    diagnostics_rng: Any = None,
    on_step: Callable[[int], None] | None = None,
) -> History:
    """Let ``agent`` act in ``world`` for ``steps`` steps.

    Parameters
    ----------
    agent : Agent
        It goes on learning from where it stands.
    world : World
    steps : int
    seed : int, optional
        Of the environment.
    diagnostics : Diagnostics, optional
        By default true regret where the world knows the truth, and nothing else.
    diagnostics_rng : numpy.random.Generator or seed
        Stream of the diagnostics, apart from all others.
    on_step : function, optional
        Called with the number of steps done every 100 steps, for progress.
    """
    n = as_positive_int(steps, "steps")
    if (agent.belief.n_states, agent.belief.n_actions) != (world.n_states, world.n_actions):
        raise InvalidInputError(
            f"agent and world must agree: the agent knows {agent.belief.n_states} states and "
            f"{agent.belief.n_actions} actions, the world has {world.n_states} and {world.n_actions}"
        )
    wanted = Diagnostics(true_regret=world.truth is not None) if diagnostics is None else diagnostics
    states = np.empty(n, dtype=np.int64)
    actions = np.empty(n, dtype=np.int64)
    rewards = np.empty(n)
    episodes = np.empty(n, dtype=np.int64)
    state = world.reset(seed)
    meter = _Meter(agent, world, wanted, n, state, as_rng(diagnostics_rng))
    env_step = world.env.step
    for t in range(n):
        action = agent.act(state)
        meter.at(t, state)
        observation, reward, terminated, truncated, info = env_step(action)
        following = world.end_of(int(observation)) if terminated else int(observation)
        agent.observe(state, action, following, disturbance=info.get("disturbance"))
        states[t] = state
        actions[t] = action
        rewards[t] = reward
        episodes[t] = agent.episode
        state = world.reset() if terminated or truncated else following
        if on_step is not None and t % 100 == 99:
            on_step(t + 1)
    return History(
        states,
        actions,
        rewards,
        episodes,
        meter.true_regret,
        meter.robust_regret,
        np.array(meter.quantile_step, dtype=np.int64),
        np.array(meter.quantile_value),
        meter.episodes,
    )


class _Meter:
    """Regrets and diagnostics along the way, from what the agent believes and does."""

    def __init__(
        self, agent: Agent, world: World, wanted: Diagnostics, n: int, start: int, rng: np.random.Generator
    ) -> None:
        self.agent = agent
        self.wanted = wanted
        self.truth = world.truth
        self.start = start
        self.rng = rng
        self.episodes = Episodes()
        self.true_regret: FloatArray | None = None
        self.robust_regret: FloatArray | None = None
        self.quantile_step: list[int] = []
        self.quantile_value: list[float] = []
        self._episode = -1
        if wanted.true_regret:
            if self.truth is None:
                raise InvalidInputError("true_regret=True needs a world that knows the truth; pass true_regret=False")
            self.true_regret = np.empty(n)
            self._optimum = solve(self.truth, tolerance=1e-10).values
            self._true_gaps: dict[bytes, list[float]] = {}
        if wanted.robust_level is not None:
            self.robust_regret = np.empty(n)
            self._robust_values: FloatArray | None = None

    def at(self, t: int, state: int) -> None:
        """Measure before the step at time ``t`` in ``state`` is taken."""
        if self.agent.episode != self._episode:
            self._new_episode(t)
        if self.true_regret is not None:
            self.true_regret[t] = self._true_gap[state]
        if self.robust_regret is not None:
            self.robust_regret[t] = self._robust_gap[state]
        if self.wanted.quantile_level is not None and t % self.wanted.quantile_every == 0:
            estimate = posterior_quantile_value(
                self.agent.belief,
                self.agent.rewards,
                self.agent.discount,
                self.agent.policy,
                self.wanted.quantile_level,
                samples=self.wanted.quantile_samples,
                rng=self.rng,
            )
            self.quantile_step.append(t)
            self.quantile_value.append(float(estimate.values[self.start]))

    def _new_episode(self, t: int) -> None:
        self._episode = self.agent.episode
        report = self.agent.report
        solution = report.solution
        episodes = self.episodes
        episodes.first_step.append(t)
        episodes.levels.append(report.levels)
        episodes.iterations.append(solution.iterations)
        episodes.residual.append(solution.residual)
        episodes.error_bound.append(solution.error_bound)
        episodes.status.append(solution.status)
        if self.wanted.true_regret:
            self._true_gap = self._gap_in_truth(self.agent.policy)
        if self.wanted.robust_level is not None:
            self._robust_gap = self._gap_in_belief(self.agent.policy, self.wanted.robust_level)

    def _gap_in_truth(self, policy: IntArray) -> list[float]:
        """V* − V^π, remembered: policies return."""
        assert self.truth is not None
        key = policy.tobytes()
        if key not in self._true_gaps:
            if len(self._true_gaps) >= 1000:
                self._true_gaps.clear()
            self._true_gaps[key] = [float(gap) for gap in self._optimum - evaluate(self.truth, policy)]
        return self._true_gaps[key]

    def _gap_in_belief(self, policy: IntArray, level: float) -> list[float]:
        """V*_{φ,α̲} − V^π_{φ,α̲} under what the agent believes now."""
        belief, discount, risk = self.agent.belief, self.agent.discount, Quantile(level)
        best = plan(belief, self.agent.rewards, discount, risk=risk, initial=self._robust_values)
        self._robust_values = best.values
        if np.array_equal(policy, best.policy):
            return [0.0] * policy.size
        followed = evaluate_policy(
            belief, self.agent.rewards, discount, policy, risk=risk, initial=best, all_actions=False
        )
        return [float(gap) for gap in best.values - followed.values]
