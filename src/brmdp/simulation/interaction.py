"""Simulation of an agent in a tabular world, with regrets and diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import spsolve

from brmdp._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    as_array,
    as_level,
    as_policy,
    as_positive_int,
    as_rng,
)
from brmdp.agents import Agent
from brmdp.beliefs.checked import learns_rewards, rewards_of
from brmdp.beliefs.disturbance import DrivenBelief
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP
from brmdp.planning import (
    Problem,
    Solution,
    evaluate_all_in_mdp,
    evaluate_in_mdp,
    posterior_quantile_value,
    solve,
)
from brmdp.risk import Quantile
from brmdp.simulation.actor import Actor, ActorAdapter, require_actor, tells_policy
from brmdp.simulation.history import Episodes, History
from brmdp.simulation.loop import Details, interact
from brmdp.simulation.world import World

__all__ = ["Diagnostics", "check_diagnostics", "simulate"]


@dataclass(frozen=True)
class Diagnostics:
    """What to measure during a simulation. Measuring does not change the trajectory.

    Parameters
    ----------
    true_regret : bool, optional
        Whether to record V*(s_t) − V^{π_k}(s_t) at every step, by exact evaluation. This needs a
        world with a known truth and an agent with a ``policy``; by default it is recorded if both
        are available. In a world with a horizon, V*_0 − V^π_0 at the first step of every episode is
        recorded, and zero at the others (see :class:`brmdp.History`).
    robust_level : float in (0, 1), optional
        α̲. If given, V*_{φ_k,α̲}(s_t) − V^{π_k}_{φ_k,α̲}(s_t) is recorded at every step, with exact
        quantiles whatever method the agent uses. Not in a world with a horizon.
    quantile_level : float in (0, 1), optional
        If given, the posterior quantile of the current policy's value at the first state is
        recorded, by the paper's estimator. Not in a world with a horizon.
    quantile_every : int
        The quantile is estimated at steps 0, ``quantile_every``, 2 ``quantile_every``, …
    quantile_samples : int
        Number of draws M of that estimator (147 in the paper).

    Examples
    --------
    >>> import brmdp
    >>> world = brmdp.World("brmdp/RiverSwim-v0", discount=0.9)
    >>> agent = brmdp.agents.posterior_mean(world.prior(), world.rewards, 0.9, rng=1)
    >>> wanted = brmdp.Diagnostics(robust_level=0.2, quantile_level=0.1, quantile_every=20)
    >>> history = brmdp.simulate(agent, world, 50, seed=1, diagnostics=wanted, diagnostics_rng=2)
    >>> history.robust_regret.shape, history.quantile_step.tolist()
    ((50,), [0, 20, 40])
    """

    true_regret: bool | None = None
    robust_level: float | None = None
    quantile_level: float | None = None
    quantile_every: int = 200
    quantile_samples: int = 147

    def __post_init__(self) -> None:
        if not isinstance(self.true_regret, bool | np.bool_ | None):
            raise InvalidInputError(
                f"true_regret must be True, False or None; got {self.true_regret!r}"
            )
        for name in ("robust_level", "quantile_level"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_level(getattr(self, name), name))
        for name in ("quantile_every", "quantile_samples"):
            object.__setattr__(self, name, as_positive_int(getattr(self, name), name))


def simulate(
    agent: Actor,
    world: World,
    steps: int,
    *,
    seed: int | None = None,
    diagnostics: Diagnostics | None = None,
    diagnostics_rng: Seed = None,
    on_step: Callable[[int], None] | None = None,
    on_episode: Callable[[int], None] | None = None,
) -> History:
    """Let ``agent`` act in ``world`` for ``steps`` steps.

    The world is reset first, and the agent is told that an episode begins.

    Parameters
    ----------
    agent : Agent or Actor
        An agent of the library, or anything with ``act`` and ``observe``; see
        :class:`brmdp.Actor`. It continues to learn from its current state.
    world : World
        The world.
    steps : int
        Number of steps T.
    seed : int, optional
        Seed of the environment.
    diagnostics : Diagnostics, optional
        What to measure. By default true regret if it can be measured, and nothing else.
    diagnostics_rng : numpy.random.Generator or seed, optional
        Stream of the diagnostics, separate from all others.
    on_step : function, optional
        Called every 100 steps with the number of steps done, to show progress.
    on_episode : function, optional
        Called with the number of steps done whenever the agent has made a new plan: for your own
        diagnostics, or for :class:`brmdp.theory.OptimismMeter`.

    Returns
    -------
    History

    Raises
    ------
    RewardMismatchError
        If the agent plans with rewards other than those of the world's model, or the environment
        pays other rewards; or if rewards are known to the agent and unknown in the world, or the
        other way round. See :class:`World`.
    ImpossibleTransitionError
        If the environment makes a move that is impossible in the world's truth.

    Examples
    --------
    >>> import brmdp
    >>> world = brmdp.World("brmdp/RiverSwim-v0", discount=0.9)
    >>> agent = brmdp.agents.continuing_psrl(world.prior(), world.rewards, 0.9, rng=1)
    >>> len(brmdp.simulate(agent, world, 50, seed=1))
    50
    """
    n = as_positive_int(steps, "steps")
    require_actor(agent)
    if not isinstance(world, World):
        raise InvalidInputError(
            f"world must be a brmdp.World, as made by World(env, discount); got "
            f"{type(world).__name__}"
        )
    wanted = Diagnostics() if diagnostics is None else diagnostics
    measured = check_diagnostics(agent, world, wanted)
    state = world.reset(seed)
    actor: Any = agent
    details: Details | None = _disturbance if _is_driven(agent) else None
    if isinstance(agent, Agent) and learns_rewards(agent.belief):
        details = _paid
    if not _is_ours(agent):
        follow = measured.true_regret or measured.robust_level is not None
        actor = ActorAdapter(agent, _admissible(world), follow=bool(follow), horizon=world.horizon)
        if getattr(type(agent), "observe", None) is not Agent.observe:
            details = actor.details()
    disturbances: list[int] = []
    if world.reveals_disturbance:
        details = _noting(disturbances, details)
    meter = _Meter(actor, agent, world, measured, state, as_rng(diagnostics_rng), on_episode)
    actor.new_episode()
    path = interact(
        actor,
        world,
        n,
        meter,
        state=state,
        details=details,
        on_step=on_step,
        new_episode=actor.new_episode,
    )
    return History(
        state=path.state,
        action=path.action,
        reward=path.reward,
        next_state=path.next_state,
        disturbance=np.array(disturbances) if min(disturbances, default=-1) >= 0 else None,
        episode=path.episode,
        true_regret=meter.true_regret(path.state, n, path.starts),
        robust_regret=meter.robust_regret(path.state, n),
        quantile_step=np.array(meter.quantile_step, dtype=np.int64),
        quantile_value=np.array(meter.quantile_value),
        episodes=meter.episodes,
        starts=path.starts,
        horizon=world.horizon,
    )


def check_diagnostics(agent: Any, world: World, wanted: Diagnostics) -> Diagnostics:
    """The diagnostics, with ``true_regret`` decided; refuses what cannot be measured.

    Raises
    ------
    InvalidInputError
        If sizes or discounts differ, or the agent or the world lacks what a diagnostic needs.
    RewardMismatchError
        If the agent plans with rewards other than those of the world.
    """
    belief: Any = getattr(agent, "belief", None)
    pattern = getattr(belief, "pattern", None)
    if pattern is not None:
        sizes = (pattern.n_states, pattern.n_actions)
        if sizes != (world.n_states, world.n_actions):
            raise InvalidInputError(
                f"agent and world must have the same sizes: the agent knows {sizes[0]} states and "
                f"{sizes[1]} actions, the world has {world.n_states} and {world.n_actions}"
            )
        world.require_same_knowledge(agent)
        if getattr(agent, "rewards", None) is not None:
            world.require_same_rewards(belief, rewards_of(belief, agent.rewards))
    _check_episodes(agent, world, wanted)
    true_regret = wanted.true_regret
    if true_regret is None:
        true_regret = world.truth is not None and tells_policy(agent)
    if true_regret and world.truth is None:
        raise InvalidInputError(
            "true_regret=True needs a world whose truth is known; pass World(…, truth=mdp), or "
            "true_regret=False"
        )
    discount = getattr(agent, "discount", world.discount)
    if true_regret and discount != world.discount:
        raise InvalidInputError(
            "agent and world must have the same discount for true regret; got "
            f"{discount} and {world.discount}"
        )
    by_belief = ("belief", "rewards", "discount", "episode", "policy")
    needed: dict[str, tuple[str, ...]] = {"true_regret": ("policy",)} if true_regret else {}
    for name in ("robust_level", "quantile_level"):
        if getattr(wanted, name) is not None:
            needed[name] = by_belief
    for name, attributes in needed.items():
        missing = [
            attribute
            for attribute in attributes
            if not (tells_policy(agent) if attribute == "policy" else hasattr(agent, attribute))
        ]
        if missing:
            raise InvalidInputError(
                f"{name} needs an agent with the attributes {', '.join(attributes)}; "
                f"{type(agent).__name__} lacks {', '.join(missing)}"
            )
    return replace(wanted, true_regret=bool(true_regret))


def _check_episodes(agent: Any, world: World, wanted: Diagnostics) -> None:
    """Refuse episodes of different lengths, and diagnostics that know of none."""
    length = getattr(agent, "episode_length", None) if isinstance(agent, Agent) else None
    if length is not None and length != world.horizon:
        has = "none" if world.horizon is None else f"episodes of {world.horizon} steps"
        raise InvalidInputError(
            f"agent and world must have episodes of the same length: the agent plans for {length} "
            f"steps, the world has {has}; pass World(…, horizon={length})"
        )
    for name in ("robust_level", "quantile_level"):
        if getattr(wanted, name) is not None and world.horizon is not None:
            raise InvalidInputError(
                f"{name} cannot be measured in a world with a horizon: it is defined for "
                "discounted values of a policy that does not depend on the step"
            )


def _is_ours(agent: Any) -> bool:
    """Whether the agent acts and learns like the library's, and so follows its policy."""
    kind = type(agent)
    return (
        isinstance(agent, Agent)
        and (kind.act, kind.observe) == (Agent.act, Agent.observe)
        and "act" not in vars(agent)  # replaced on this agent alone
    )


def _admissible(world: World) -> BoolArray:
    """(S, A) whether an action is admissible; every action if the truth is unknown."""
    if world.truth is None:
        return np.ones((world.n_states, world.n_actions), np.bool_)
    return world.truth.admissible


def _is_driven(agent: Any) -> bool:
    """Whether the agent's belief is about one disturbance that drives all transitions."""
    return isinstance(agent, Agent) and isinstance(agent.belief, DrivenBelief)


def _disturbance(_: float, info: dict[str, Any]) -> dict[str, Any]:
    """Pass on the disturbance, if the world reveals it."""
    return {"disturbance": info.get("disturbance")}


def _paid(reward: float, _: dict[str, Any]) -> dict[str, Any]:
    """Pass on the reward."""
    return {"reward": reward}


def _noting(noted: list[int], details: Details | None) -> Details:
    """The same details, with the disturbance noted (−1 if the world does not reveal it)."""

    def both(reward: float, info: dict[str, Any]) -> Mapping[str, Any]:
        driver = info.get("disturbance")
        noted.append(-1 if driver is None else int(driver))
        return {} if details is None else details(reward, info)

    return both


class _Meter:
    """Regrets and diagnostics, from the agent's belief and policy in each pseudo-episode.

    ``actor`` is what the loop drives: the agent itself, or its adapter.
    """

    def __init__(
        self,
        actor: Any,
        agent: Any,
        world: World,
        wanted: Diagnostics,
        start: int,
        rng: np.random.Generator,
        on_episode: Callable[[int], None] | None,
    ) -> None:
        self.actor = actor
        self.agent = agent
        self.wanted = wanted
        self.world = world
        self.start = start
        self.rng = rng
        self.on_episode = on_episode
        self.episodes = Episodes()
        self.quantile_step: list[int] = []
        self.quantile_value: list[float] = []
        self._policies: dict[bytes, int] = {}
        self._problem: Problem | None = None
        self._best: Solution | None = None
        self._followed: Solution | None = None
        self._robust_gaps: list[FloatArray] = []

    def begin_episode(self, t: int) -> None:
        """Note how the pseudo-episode that begins at step ``t`` was planned."""
        report = self.agent.report if isinstance(self.agent, Agent) else None
        episodes = self.episodes
        episodes.first_step.append(t)
        for column in ("levels", "iterations", "residual", "error_bound", "status"):
            getattr(episodes, column).append(None if report is None else getattr(report, column))
        policy = self.actor.policy
        if policy is not None:
            # the same policy may come back: each is kept once
            number = self._policies.setdefault(policy.tobytes(), len(self._policies))
            episodes.policy.append(number)
        if self.wanted.robust_level is not None:
            gap = self._gap_in_belief(self._actions(), self.wanted.robust_level)
            self._robust_gaps.append(gap)
        if self.on_episode is not None:
            self.on_episode(t)

    def measure(self, t: int) -> int | None:
        """Estimate the posterior quantile of the policy's value at the first state, if wanted."""
        if self.wanted.quantile_level is None:
            return None
        estimate = posterior_quantile_value(
            self.agent.belief,
            self.agent.rewards,
            self.agent.discount,
            self._actions(),
            self.wanted.quantile_level,
            samples=self.wanted.quantile_samples,
            rng=self.rng,
        )
        self.quantile_step.append(t)
        self.quantile_value.append(float(estimate.values[self.start]))
        return t + self.wanted.quantile_every

    def _actions(self) -> IntArray:
        """(S,) action of the current policy in each state, for diagnostics that need one."""
        policy: Any = self.agent.policy
        if self.actor is self.agent:
            ours: IntArray = policy
            return ours
        actions = as_array(policy, "policy", "actions")
        if actions.ndim != 1:
            raise InvalidInputError(
                "robust_level and quantile_level need a policy with one action per state; got "
                f"shape {actions.shape}"
            )
        return as_policy(actions, _admissible(self.world))

    def _gap_in_belief(self, policy: IntArray, level: float) -> FloatArray:
        """(S,) V*_{φ,α̲} − V^π_{φ,α̲} under the agent's current belief."""
        belief, risk = self.agent.belief, Quantile(level)
        # what one plan found out serves the next, if only the data have changed
        ours = isinstance(self.agent, Agent) and not learns_rewards(belief)
        problem = self._problem if ours else None
        if problem is None:
            problem = Problem.of(belief, self.agent.rewards, self.agent.discount)
            self._problem = problem
        best = problem.solve(
            belief,
            risk,
            None if self._best is None else self._best.values,
            memory=None if self._best is None else self._best.memory,
            remember=ours,
        )
        self._best = best
        if np.array_equal(policy, best.policy):
            return np.zeros(policy.size)
        before = self._followed if ours and self._followed is not None else best
        self._followed = problem.solve(
            belief,
            risk,
            before.values,
            policy=policy,
            all_actions=False,
            memory=before.memory,
            remember=ours,
        )
        return best.values - self._followed.values

    def true_regret(self, states: IntArray, n: int, starts: IntArray) -> FloatArray | None:
        """(T,) V*(s_t) − V^{π_k}(s_t), or None if it was not measured.

        In a world with a horizon, V*_0 − V^π_0 at the first steps of episodes, ``starts``.
        """
        if not self.wanted.true_regret:
            return None
        truth = self.world.truth
        assert truth is not None
        if self.world.horizon is not None:
            return self._regret_by_episode(truth, self.world.horizon, states, n, starts)
        if isinstance(self.actor, ActorAdapter):
            shape = (self.world.n_states, self.world.n_actions)
            values = np.array(
                [
                    _values_in(truth, np.frombuffer(policy).reshape(shape))
                    for policy in self._policies
                ]
            )
        else:
            policies = [np.frombuffer(policy, dtype=np.int64) for policy in self._policies]
            values = evaluate_all_in_mdp(truth, np.array(policies))
        gaps = solve(truth).values - values
        return self._along(gaps[self.episodes.policy], states, n)

    def _regret_by_episode(
        self, truth: TabularMDP, horizon: int, states: IntArray, n: int, starts: IntArray
    ) -> FloatArray:
        n_states, n_actions = self.world.n_states, self.world.n_actions
        foreign = isinstance(self.actor, ActorAdapter)
        shape = (-1, n_states, n_actions) if foreign else (-1, n_states)
        policies: list[NDArray[Any]] = []
        for policy in self._policies:
            stages = np.frombuffer(policy, np.float64 if foreign else np.int64).reshape(shape)
            # a policy that does not depend on the step is the same at each of them
            policies.append(stages if len(stages) == horizon else stages[0])
        values = np.array([evaluate_in_mdp(truth, one, horizon=horizon)[0] for one in policies])
        gaps = solve(truth, horizon=horizon).values[0] - values
        plans = np.searchsorted(self.episodes.first_step, starts, side="right") - 1
        begun = states[starts]
        regret = np.zeros(n)
        # nothing beats the optimum: negative gaps are rounding
        regret[starts] = np.maximum(gaps[np.array(self.episodes.policy)[plans], begun], 0.0)
        return regret

    def robust_regret(self, states: IntArray, n: int) -> FloatArray | None:
        """(T,) V*_{φ_k,α̲}(s_t) − V^{π_k}_{φ_k,α̲}(s_t), or None if it was not measured."""
        if self.wanted.robust_level is None:
            return None
        return self._along(np.array(self._robust_gaps), states, n)

    def _along(self, gaps: FloatArray, states: IntArray, n: int) -> FloatArray:
        """(T,) one number per step, from one row of gaps per pseudo-episode."""
        lengths = np.diff(np.append(self.episodes.first_step, n))
        # nothing beats the optimum: negative gaps are within the solver's tolerance
        regret: FloatArray = np.maximum(
            gaps[np.repeat(np.arange(lengths.size), lengths), states], 0.0
        )
        return regret


def _values_in(mdp: TabularMDP, policy: FloatArray) -> FloatArray:
    """(S,) exact values of a policy, given as (S, A) probabilities, in a known MDP."""
    if (policy.max(axis=1) == 1.0).all():
        return evaluate_in_mdp(mdp, policy.argmax(axis=1))
    pattern = mdp.pattern
    states = np.repeat(np.arange(mdp.n_states), mdp.n_actions)
    mixing = sparse.csr_array((policy.ravel(), (states, np.arange(policy.size))))
    paid = np.bincount(
        pattern.pair_of_transition, mdp.probabilities * mdp.transition_rewards, pattern.n_pairs
    )
    system = sparse.eye_array(mdp.n_states) - mdp.discount * (mixing @ mdp.kernel("csr"))
    values: FloatArray = spsolve(system.tocsc(), mixing @ paid)
    return values
