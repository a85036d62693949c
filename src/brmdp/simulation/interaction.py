"""A tabular agent in a tabular world, and what is recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from brmdp._validation import FloatArray, IntArray, as_level, as_positive_int, as_rng
from brmdp.agents import Agent
from brmdp.errors import InvalidInputError
from brmdp.planning import evaluate_policies, posterior_quantile_value, solve
from brmdp.planning.planner import solution_of
from brmdp.posterior import DisturbancePosterior
from brmdp.risk import Quantile
from brmdp.simulation.loop import interact
from brmdp.simulation.world import World

__all__ = ["Diagnostics", "Episodes", "History", "simulate"]


@dataclass(frozen=True)
class Diagnostics:
    """What to measure beside the interaction; nothing of it changes a trajectory.

    Parameters
    ----------
    true_regret : bool
        V*(s_t) − V^{π_k}(s_t) at every step, by exact evaluation; needs a world that knows the
        truth.
    robust_level : float, optional
        α̲: record V*_{φ_k,α̲}(s_t) − V^{π_k}_{φ_k,α̲}(s_t) at every step, exactly, whatever the
        agent's own method.
    quantile_level : float, optional
        Record the posterior quantile of the current policy's value at the first state, by the
        paper's estimator.
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
    policy : list of int
        Number of the policy followed, in the order of first appearance: equal numbers, equal
        policies.
    """

    first_step: list[int] = field(default_factory=list)
    levels: list[FloatArray | None] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    error_bound: list[float] = field(default_factory=list)
    status: list[str] = field(default_factory=list)
    policy: list[int] = field(default_factory=list)


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
    on_episode: Callable[[int], None] | None = None,
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
    on_episode : function, optional
        Called with the number of steps done whenever the agent has made a new plan, for a look at
        it: a diagnostic of your own, or :class:`brmdp.theory.OptimismMeter`.

    Raises
    ------
    RewardMismatchError
        If the agent plans with other rewards than the world's model has, or the environment pays
        others; see :class:`World`.
    """
    n = as_positive_int(steps, "steps")
    if not isinstance(agent, Agent):
        raise InvalidInputError(f"agent must be a brmdp.Agent; got {type(agent).__name__}")
    if not isinstance(world, World):
        raise InvalidInputError(
            f"world must be a brmdp.World, such as World(env, discount); got {type(world).__name__}"
        )
    pattern = agent.belief.pattern
    if (pattern.n_states, pattern.n_actions) != (world.n_states, world.n_actions):
        raise InvalidInputError(
            f"agent and world must agree: the agent knows {pattern.n_states} states and "
            f"{pattern.n_actions} actions, the world has {world.n_states} and {world.n_actions}"
        )
    world.require_same_rewards(agent.belief, agent.rewards)
    wanted = (
        Diagnostics(true_regret=world.truth is not None) if diagnostics is None else diagnostics
    )
    state = world.reset(seed)
    meter = _Meter(agent, world, wanted, state, as_rng(diagnostics_rng), on_episode)
    clues = _disturbance if isinstance(agent.belief, DisturbancePosterior) else None
    path = interact(agent, world, n, meter, state=state, clues=clues, on_step=on_step)
    return History(
        *path,
        meter.true_regret(path.state, n),
        meter.robust_regret(path.state, n),
        np.array(meter.quantile_step, dtype=np.int64),
        np.array(meter.quantile_value),
        meter.episodes,
    )


def _disturbance(info: dict[str, Any]) -> dict[str, Any]:
    """What drove the transition, where the world tells."""
    return {"disturbance": info.get("disturbance")}


class _Meter:
    """Regrets and diagnostics, from what the agent believes and does in each pseudo-episode."""

    def __init__(
        self,
        agent: Agent,
        world: World,
        wanted: Diagnostics,
        start: int,
        rng: np.random.Generator,
        on_episode: Callable[[int], None] | None,
    ) -> None:
        if wanted.true_regret and world.truth is None:
            raise InvalidInputError(
                "true_regret=True needs a world that knows the truth; pass true_regret=False"
            )
        if wanted.true_regret and agent.discount != world.discount:
            raise InvalidInputError(
                "agent and world must have the same discount for true regret; got "
                f"{agent.discount} and {world.discount}"
            )
        self.agent = agent
        self.wanted = wanted
        self.truth = world.truth
        self.start = start
        self.rng = rng
        self.on_episode = on_episode
        self.episodes = Episodes()
        self.quantile_step: list[int] = []
        self.quantile_value: list[float] = []
        self._policies: dict[bytes, int] = {}
        self._robust_values: FloatArray | None = None
        self._robust_gaps: list[FloatArray] = []

    def begin_episode(self, t: int) -> None:
        """Note how the pseudo-episode that begins at step ``t`` was planned."""
        report = self.agent.report
        episodes = self.episodes
        episodes.first_step.append(t)
        episodes.levels.append(report.levels)
        episodes.iterations.append(report.iterations)
        episodes.residual.append(report.residual)
        episodes.error_bound.append(report.error_bound)
        episodes.status.append(report.status)
        policy = self.agent.policy
        # policies return: each is kept once
        episodes.policy.append(self._policies.setdefault(policy.tobytes(), len(self._policies)))
        if self.wanted.robust_level is not None:
            self._robust_gaps.append(self._gap_in_belief(policy, self.wanted.robust_level))
        if self.on_episode is not None:
            self.on_episode(t)

    def measure(self, t: int) -> int | None:
        """The posterior quantile of the current policy's value at the first state, under φ_k.

        If it is wanted.
        """
        if self.wanted.quantile_level is None:
            return None
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
        return t + self.wanted.quantile_every

    def _gap_in_belief(self, policy: IntArray, level: float) -> FloatArray:
        """V*_{φ,α̲} − V^π_{φ,α̲} under what the agent believes now."""
        belief, discount, risk = self.agent.belief, self.agent.discount, Quantile(level)
        best = solution_of(belief, self.agent.rewards, discount, risk, initial=self._robust_values)
        self._robust_values = best.values
        if np.array_equal(policy, best.policy):
            return np.zeros(policy.size)
        followed = solution_of(
            belief,
            self.agent.rewards,
            discount,
            risk,
            policy=policy,
            initial=best,
            all_actions=False,
        )
        return best.values - followed.values

    def true_regret(self, states: IntArray, n: int) -> FloatArray | None:
        """V*(s_t) − V^{π_k}(s_t) at every step."""
        if not self.wanted.true_regret:
            return None
        assert self.truth is not None
        policies = np.array([np.frombuffer(policy, dtype=np.int64) for policy in self._policies])
        gaps = solve(self.truth).values - evaluate_policies(self.truth, policies)
        return self._along(gaps[self.episodes.policy], states, n)

    def robust_regret(self, states: IntArray, n: int) -> FloatArray | None:
        """V*_{φ_k,α̲}(s_t) − V^{π_k}_{φ_k,α̲}(s_t) at every step."""
        if self.wanted.robust_level is None:
            return None
        return self._along(np.array(self._robust_gaps), states, n)

    def _along(self, gaps: FloatArray, states: IntArray, n: int) -> FloatArray:
        """From one row of gaps per pseudo-episode to one number per step."""
        lengths = np.diff(np.append(self.episodes.first_step, n))
        # nothing beats the optimum; what falls below zero is the solver's tolerance
        regret: FloatArray = np.maximum(
            gaps[np.repeat(np.arange(lengths.size), lengths), states], 0.0
        )
        return regret
