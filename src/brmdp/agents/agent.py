"""The tabular agent: a belief, a risk measure, a level schedule and a restart rule.

At the start of each pseudo-episode the agent takes a snapshot of its belief, asks the schedule for
levels and plans (the paper's algorithm AQ-BRMDP). It follows that plan while it collects data,
until the restart rule ends the pseudo-episode. Every method of the paper is a choice of these four
parts; see :mod:`brmdp.agents.presets`.

**Episodes of the world.** An agent with an ``episode_length`` H plans for H steps
(:mod:`brmdp.planning.finite_horizon`) and follows the policy of the step h = 0, …, H − 1 that the
episode has reached. It is told that a new episode begins by ``new_episode()``; every observed
transition is a step. An episode may end early. After H steps the plan has nothing to say, so
``act`` raises an error until ``new_episode()`` is called; ``observe`` goes on learning. By default
the agent plans once per episode, at its first action. If another restart rule ends a pseudo-episode
within an episode, the new plan is for H steps too, and is followed from the step that has been
reached.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from brmdp._streams import independent_streams, stream_from_state, stream_state
from brmdp._validation import (
    FloatArray,
    IntArray,
    Seed,
    as_array,
    as_float_array,
    as_index,
    as_index_array,
    as_json,
    as_level,
    as_levels,
    as_number,
    as_policies,
    as_policy,
    as_positive_int,
)
from brmdp.agents.episodic import (
    MAX_PARTS_LENGTH,
    EpisodicAgent,
    Record,
    Working,
    arrays_with_prefix,
    check_restart,
    corrupt_if_undecodable,
    make_record,
)
from brmdp.agents.parts import (
    build_part,
    describe_belief,
    describe_part,
    is_own,
    require_foreign_parts,
)
from brmdp.agents.progress import Progress
from brmdp.agents.restarts import EachEpisode, RestartRule
from brmdp.agents.schedules import Schedule
from brmdp.beliefs import (
    Belief,
    CensoredDisturbanceBelief,
    DirichletBelief,
    DisturbanceBelief,
    OutcomeBelief,
    ScenarioBelief,
)
from brmdp.beliefs.checked import caveat_of, dirichlet_rows_of, learns_rewards
from brmdp.beliefs.disturbance import DrivenBelief, Rewards
from brmdp.beliefs.storage import FORMER_KINDS, corrupt_if_invalid, load_arrays
from brmdp.errors import InvalidInputError
from brmdp.mdp import counted
from brmdp.planning import HorizonSolution, Problem, Solution, backup
from brmdp.planning.compiled import Memory
from brmdp.planning.finite_horizon import KEPT_Q_VALUES, as_horizon
from brmdp.planning.planner import LARGEST_VALUE
from brmdp.planning.solution import CONVERGED, SAMPLED, STATUSES
from brmdp.risk import Mean, MonteCarlo, PosteriorSample, Quantile
from brmdp.risk.base import RiskMeasure
from brmdp.risk.dirichlet import has_dirichlet_rows

__all__ = ["ActionReport", "Agent", "EpisodeReport", "Ties"]

Ties: TypeAlias = Literal["uniform", "lowest"]
TIES: tuple[Ties, ...] = get_args(Ties)

NEW_EPISODE: tuple[Any, ...] = ()
"""The entry of the journal for the beginning of an episode of the world."""

BELIEFS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        DirichletBelief,
        DisturbanceBelief,
        CensoredDisturbanceBelief,
        OutcomeBelief,
        ScenarioBelief,
    )
}
READABLE_BELIEFS = BELIEFS | {
    former: BELIEFS[name] for name, former in FORMER_KINDS.items() if name in BELIEFS
}


@dataclass(frozen=True)
class ActionReport:
    """How the current plan evaluates one action; see :meth:`Agent.explain`.

    Attributes
    ----------
    action : int
        The action.
    value : float
        Its value q(s,a) in the plan.
    chosen : bool
        Whether the plan takes it.
    tied : bool
        Whether it shares the best value with other actions.
    level : float or None
        Its level in the plan; None for measures without levels.
    visits : int
        Number of times this agent had observed it in this state when the plan was made.
    observations : int or None
        Number of observations of this pair in the belief, including those from before the agent
        began. If one disturbance drives all transitions, every observation teaches about every
        action, and this is the total, including what was seen only as "at least". None if the
        belief does not count observations.
    mean : float
        Posterior mean of E[r + γV(s')], where E is over s' given the kernel and V are the plan's
        values.
    quantile : float
        Posterior quantile of the same expectation, at ``quantile_level``.
    quantile_level : float
        The level passed to :meth:`Agent.explain`; otherwise ``level``, or 0.1 for measures without
        levels.
    caveat : str
        What to know about the belief, if it is only an approximation of a posterior; else empty.

    Examples
    --------
    >>> import brmdp
    >>> river, belief = brmdp.envs.riverswim(3), brmdp.DirichletBelief.uniform(3, 2)
    >>> agent = brmdp.agents.fixed_quantile(belief, river.rewards, 0.9, alpha=0.2, rng=0)
    >>> for report in agent.explain(2):
    ...     print(report.action, report.chosen, report.level, report.visits)
    0 False 0.2 0
    1 True 0.2 0
    >>> print(agent.explain(2)[1])
    action 1, chosen: value 0.2262 at level 0.2; mean 0.4751; tried 0 times
    """

    action: int
    value: float
    chosen: bool
    tied: bool
    level: float | None
    visits: int
    observations: int | None
    mean: float
    quantile: float
    quantile_level: float
    caveat: str = ""

    def __str__(self) -> str:
        taken = (", tied" if self.tied else "") + (", chosen" if self.chosen else "")
        at = "" if self.level is None else f" at level {self.level:.3g}"
        if self.level != self.quantile_level:
            at += f", quantile {self.quantile:.4g} at {self.quantile_level:.3g}"
        text = (
            f"action {self.action}{taken}: value {self.value:.4g}{at}; mean {self.mean:.4g}; "
            f"tried {counted(self.visits, 'time')}"
        )
        if self.observations not in (None, self.visits):
            text += f", {self.observations} observed in all"
        return f"{text}. {self.caveat}" if self.caveat else text


@dataclass(frozen=True, eq=False)
class EpisodeReport:
    """How the current pseudo-episode was planned.

    Attributes
    ----------
    episode : int
        Number k of the pseudo-episode.
    first_step : int
        Number of transitions observed before it.
    levels : (S, A) array or None
        Levels α_k; None for measures without levels.
    iterations, residual, error_bound, policy_gap, status
        As in :class:`brmdp.Solution`. For an episode of H steps, as in
        :class:`brmdp.HorizonSolution` at the first step, with H iterations and no residual.
    solution : Solution, HorizonSolution or None
        The plan itself; None for a plan made before the agent was saved and loaded.

    Examples
    --------
    >>> import brmdp
    >>> river, belief = brmdp.envs.riverswim(3), brmdp.DirichletBelief.uniform(3, 2)
    >>> agent = brmdp.agents.aq_brmdp(belief, river.rewards, 0.9, delta=5, rng=0)
    >>> action = agent.act(0)
    >>> agent.report.episode, agent.report.first_step, agent.report.status
    (1, 0, 'converged')
    """

    episode: int
    first_step: int
    levels: FloatArray | None
    iterations: int
    residual: float
    error_bound: float
    policy_gap: float
    status: str
    solution: Solution | HorizonSolution | None

    @classmethod
    def of(
        cls,
        episode: int,
        first_step: int,
        levels: FloatArray | None,
        solution: Solution | HorizonSolution,
    ) -> EpisodeReport:
        """The report of a plan just made."""
        if isinstance(solution, HorizonSolution):
            return cls(
                episode,
                first_step,
                levels,
                solution.horizon,
                0.0,
                float(solution.error_bound[0]),
                float(solution.policy_gap[0]),
                solution.status,
                solution,
            )
        return cls(
            episode,
            first_step,
            levels,
            solution.iterations,
            solution.residual,
            solution.error_bound,
            solution.policy_gap,
            solution.status,
            solution,
        )


@dataclass(eq=False, slots=True)  # not frozen, which would cost a microsecond per plan
class _Plan:
    """The plan that a pseudo-episode follows; never changed.

    For episodes of H steps, values are (H + 1, S), q-values (H, S, A), the policy has one list per
    step, and there is one tie width per step.
    """

    values: FloatArray
    backups: FloatArray | Solution | HorizonSolution
    """The q-values, or the solution that has them when they are needed."""
    policy: list[Any]
    levels: FloatArray | None
    tie_width: float | FloatArray
    report: EpisodeReport
    memory: Memory | None = None

    @property
    def q_values(self) -> FloatArray:
        """Values of all actions."""
        found = self.backups if isinstance(self.backups, np.ndarray) else self.backups.q_values
        assert found is not None
        return found

    @classmethod
    def of(
        cls,
        solution: Solution | HorizonSolution,
        policy: IntArray | FloatArray,
        levels: FloatArray | None,
        report: EpisodeReport,
    ) -> _Plan:
        """The plan for a solution, with ``policy`` chosen among the tied actions."""
        memory = solution.memory if isinstance(solution, Solution) else None
        return cls(
            solution.values, solution, policy.tolist(), levels, solution.tie_width, report, memory
        )


class Agent(EpisodicAgent):
    """An agent that learns online, with or without :func:`brmdp.simulate`.

    Parameters
    ----------
    belief : DirichletBelief, DisturbanceBelief, OutcomeBelief, ScenarioBelief or another Belief
        The belief before the first step. The agent keeps a copy.
    rewards
        As in :func:`brmdp.plan`; None if the belief learns the rewards.
    discount : float in [0, 1), or in [0, 1] with an ``episode_length``
        Discount factor γ.
    risk : RiskMeasure
        How uncertainty about the kernel is turned into a value.
    restart : RestartRule
        When to update the belief and plan again. With an ``episode_length`` by default once per
        episode, :class:`brmdp.agents.EachEpisode`.
    schedule : Schedule, optional
        Levels for ``risk`` at each plan; by default the measure's own level.
    tolerance : float, optional
        Tolerance of the plans, as in :func:`brmdp.plan`; by default relative to their values.
    ties : {"uniform", "lowest"}
        Which of several tied actions to take, decided once per plan: one at random, or the one with
        the lowest index. The latter is what a plain argmax does; it makes the numbering of the
        actions matter.
    horizon : int, optional
        Total number of transitions the agent expects, for schedules that use it.
    episode_length : int, optional
        Number of steps H of an episode of the world. The agent then plans for H steps, with a
        policy for each of them and nothing paid afterwards, and must be told when an episode begins
        (:meth:`new_episode`). It has nothing to do with ``horizon``.
    rng : numpy.random.Generator or seed, optional
        Source of the agent's two streams, one for ties and one for the restart rule; or a list of
        these two streams. Risk measures that draw have their own stream.

    Notes
    -----
    ``agent.act(state)`` returns an action. Report what happened with ``agent.observe(state, action,
    next_state)``, and with ``reward=…`` if the belief learns the rewards. Several threads may share
    an agent: calls take turns. A call that is interrupted takes effect completely or not at all.

    Examples
    --------
    >>> import brmdp
    >>> river, belief = brmdp.envs.riverswim(3), brmdp.DirichletBelief.uniform(3, 2)
    >>> risk, restart = brmdp.CVaR(0.2), brmdp.agents.EveryStep()
    >>> agent = brmdp.Agent(belief, river.rewards, 0.9, risk=risk, restart=restart, rng=0)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, next_state=1)
    >>> agent.progress.steps
    1
    """

    risk: RiskMeasure
    schedule: Schedule | None

    def __init__(
        self,
        belief: Belief,
        rewards: Rewards,
        discount: float,
        *,
        risk: RiskMeasure,
        restart: RestartRule | None = None,
        schedule: Schedule | None = None,
        tolerance: float | None = None,
        ties: Ties = "uniform",
        horizon: int | None = None,
        episode_length: int | None = None,
        rng: Seed | list[np.random.Generator] = None,
    ) -> None:
        if isinstance(belief, type) or not (
            hasattr(belief, "observe") and hasattr(belief, "pattern")
        ):
            raise InvalidInputError(
                "belief must be a brmdp belief with a method observe, such as DirichletBelief; got "
                f"{type(belief).__name__}"
            )
        _require_members(belief, ("copy", "observe", "mean_entries", "gather_rewards"))
        if restart is None and episode_length is not None:
            restart = EachEpisode()
        _check_parts(risk, schedule, restart)
        assert restart is not None
        if isinstance(restart, EachEpisode) and episode_length is None:
            raise InvalidInputError(
                "restart=EachEpisode() needs an episode_length: without one, no episodes begin"
            )
        if not isinstance(ties, str) or ties not in TIES:
            raise InvalidInputError(f"ties must be one of {TIES}; got {ties!r}")
        self._problem = Problem.of(
            belief, rewards, discount, tolerance, undiscounted=episode_length is not None
        )
        # a belief that learns rewards may lay its own out anew, so the known ones are kept apart
        self._learns_rewards = learns_rewards(belief)
        self._known_rewards = (
            _known_on_transitions(belief, rewards)
            if self._learns_rewards
            else self._problem.rewards
        )
        if episode_length is not None:
            episode_length = _as_length(episode_length, belief.pattern)
        ties_stream, restart_stream = independent_streams(rng, 2)
        super().__init__(
            belief,
            risk=risk,
            schedule=schedule,
            restart=restart,
            admissible=belief.pattern.admissible,
            streams={"ties": ties_stream, "restart": restart_stream},
            discount=self._problem.discount,
            horizon=None if horizon is None else as_positive_int(horizon, "horizon"),
            episode_length=episode_length,
        )
        self.ties: Ties = ties

    # --- acting and learning ----------------------------------------------------------------------

    def act(self, state: int) -> int:
        """The action for ``state``; plans first if a new pseudo-episode begins.

        If planning fails or is interrupted, the agent is unchanged, including its random streams.

        Raises
        ------
        InvalidInputError
            If the state is out of range, or the episode has had all its steps.
        """
        if self._record.progress.episode_length is None:
            policy = self._planned().plan.policy
        else:
            record, step = self._planned_step()
            policy = record.plan.policy[step]
        action: int = policy[as_index(state, len(policy), "state")]
        return action

    def new_episode(self) -> None:
        """Say that an episode of the world begins: the next transition is its first step.

        The one before may have ended early. :func:`brmdp.simulate` calls this after every reset of
        the world; in a loop of your own, call it yourself. Before the first transition of an
        episode it changes nothing, nor for an agent without an ``episode_length``.
        """
        if self._record.progress.episode_length is not None:
            self._learn(NEW_EPISODE)

    def observe(
        self,
        state: int,
        action: int,
        next_state: int,
        *,
        disturbance: int | None = None,
        reward: float | None = None,
    ) -> None:
        """Learn from a transition, whoever chose the action.

        For an agent with an ``episode_length``, it is the next step of the episode.

        Parameters
        ----------
        state, action, next_state : int
            The transition. If there are two actions, the action may be a boolean.
        disturbance : int, optional
            The disturbance that drove it, for a :class:`DisturbanceBelief` or
            :class:`CensoredDisturbanceBelief`, if the next state does not reveal it. The latter
            learns something without it as well.
        reward : float, optional
            What the transition paid, needed if and only if the belief learns rewards
            (:class:`brmdp.OutcomeBelief`). Known rewards that the agent was given are not part of
            it.

        Raises
        ------
        InvalidInputError, ImpossibleTransitionError
            As for the belief's ``observe``. The agent is then unchanged, as it is if the call is
            interrupted.
        """
        belief = self._record.base
        pattern = belief.pattern
        state = as_index(state, pattern.n_states, "state")
        if isinstance(action, bool | np.bool_) and pattern.n_actions == 2:
            action = int(action)
        action = as_index(action, pattern.n_actions, "action")
        next_state = as_index(next_state, pattern.n_states, "next_state")
        if reward is not None or self._learns_rewards:
            self._learn_reward(state, action, next_state, reward, disturbance)
        elif disturbance is None:
            self._learn((state, action, next_state))
        elif isinstance(belief, DrivenBelief):
            self._learn(
                (
                    state,
                    action,
                    next_state,
                    as_index(disturbance, belief.n_disturbances, "disturbance"),
                )
            )
        else:
            raise InvalidInputError(
                "disturbance can be passed only if the belief is a DisturbanceBelief or "
                f"CensoredDisturbanceBelief; it is a {type(belief).__name__}"
            )

    def _learn_reward(
        self, state: int, action: int, next_state: int, reward: Any, disturbance: Any
    ) -> None:
        if not self._learns_rewards:
            raise InvalidInputError(
                "reward can be passed only if the belief learns rewards, such as an OutcomeBelief; "
                f"it is a {type(self.belief).__name__}, and the agent plans with known rewards"
            )
        if reward is None or disturbance is not None:
            raise InvalidInputError(
                f"reward, and no disturbance, must be given: the {type(self.belief).__name__} "
                f"learns the rewards; got reward={reward!r} and disturbance={disturbance!r}"
            )
        paid = as_number(reward, "reward", "a finite number")
        if not math.isfinite(paid):
            raise InvalidInputError(f"reward must be a finite number; got {reward!r}")
        self._learn((state, action, next_state, paid))

    def _take_in(self, working: Working, transition: tuple[Any, ...]) -> None:
        if transition == NEW_EPISODE:
            if working.progress.clock > 0:
                working.progress.clock = 0
                working.stale |= bool(getattr(self.restart, "at_new_episode", False))
            return
        working.latest.observe(*transition)
        working.progress.add(transition[0], transition[1])
        self._ask_restart(working)

    def _planned_step(self) -> tuple[Record, int]:
        """The record of the current plan, and the step that the episode has reached."""
        with self._lock:
            progress = self._settled()[1].progress
            if progress.clock >= (progress.episode_length or 0):
                raise InvalidInputError(
                    f"the episode has had its {progress.episode_length} steps, and the plan says "
                    "nothing about more; call new_episode() when the next one begins"
                )
            record = self._planned()
            return record, self._settled()[1].progress.clock

    def _make_plan(
        self, belief: Any, record: Record, working: Working
    ) -> tuple[_Plan, tuple[str, ...]]:
        """Set the levels, plan, and break ties."""
        progress, before = working.progress, record.plan
        risk: Any = self.risk
        if self.schedule is not None:
            risk = _at_levels_of(self.schedule, risk, progress, belief)
        problem = self._problem_of(belief)
        solution: Solution | HorizonSolution
        if progress.episode_length is not None:
            solution = problem.solve_over(belief, risk, progress.episode_length)
        else:
            # what a belief about rewards may pay changes with what it has seen
            solution = problem.solve(
                belief,
                risk,
                None if before is None else before.values,
                memory=None if before is None else before.memory,
                remember=not self._learns_rewards,
            )
        levels = None
        if hasattr(risk, "alpha"):
            levels = np.empty(progress.visits.shape)
            levels[...] = risk.alpha
        report = EpisodeReport.of(progress.episode + 1, progress.steps, levels, solution)
        if self.ties == "lowest" or not solution.tied.any():
            return _Plan.of(solution, solution.policy, levels, report), ()
        chosen = _break_ties(solution, working.streams["ties"])
        return _Plan.of(solution, chosen, levels, report), ("ties",)

    def _problem_of(self, belief: Any) -> Problem:
        """The problem for a belief; made again if that has laid out new outcomes."""
        problem = self._problem
        if self._learns_rewards and problem.pattern is not belief.pattern:
            problem = Problem.of(
                belief,
                self._known_rewards,
                problem.discount,
                problem.tolerance,
                undiscounted=problem.discount == 1.0,
            )
            self._problem = problem  # only a cache: nothing else depends on which one is kept
        return problem

    @property
    def rewards(self) -> FloatArray | None:
        """Known rewards, one per possible transition; None if the agent learns all of them."""
        return self._known_rewards

    @property
    def discount(self) -> float:
        """γ."""
        return self._problem.discount

    @property
    def horizon(self) -> int | None:
        """Total number of transitions the agent expects; None if unknown."""
        return self._record.progress.horizon

    @property
    def episode_length(self) -> int | None:
        """Number of steps of an episode of the world; None for an agent without episodes."""
        return self._record.progress.episode_length

    @property
    def tolerance(self) -> float | None:
        """Tolerance of the plans; None for the default, which is relative to their values."""
        return self._problem.tolerance

    # --- what it thinks ---------------------------------------------------------------------------

    @property
    def policy(self) -> IntArray:
        """(S,) action of the current plan in every state; plans first if there is none.

        (H, S), one row per step, for an agent with an ``episode_length``.
        """
        return np.array(self._planned().plan.policy, dtype=np.int64)

    @property
    def levels(self) -> FloatArray | None:
        """(S, A) levels of the current plan; None if it has none or there is no plan yet."""
        plan: _Plan | None = self._record.plan
        return None if plan is None else plan.levels

    @property
    def report(self) -> EpisodeReport:
        """How the current plan was made.

        Raises
        ------
        InvalidInputError
            If the agent has not planned yet.
        """
        plan: _Plan | None = self._record.plan
        if plan is None:
            raise InvalidInputError("the agent has not planned yet, so it has no report; call act")
        return plan.report

    def explain(self, state: int, *, quantile_level: float | None = None) -> list[ActionReport]:
        """How the current plan evaluates each admissible action in ``state``.

        Plans first if there is no current plan. With an ``episode_length``, the values are those
        at the step that the episode has reached.

        Parameters
        ----------
        state : int
            The state.
        quantile_level : float in (0, 1), optional
            Level of the reported posterior quantile; by default that of the plan, or 0.1 for
            measures without levels.

        Returns
        -------
        list of ActionReport
        """
        s = as_index(state, self._problem.pattern.n_states, "state")
        level = 0.1 if quantile_level is None else as_level(quantile_level, "quantile_level")
        if self.episode_length is None:
            record = self._planned()
            plan: Any = record.plan
            values, q_values, policy, width = (
                *(plan.values, plan.q_values, plan.policy),
                plan.tie_width,
            )
        else:
            record, step = self._planned_step()
            plan = record.plan
            values, q_values = plan.values[step + 1], plan.q_values[step]
            policy, width = plan.policy[step], plan.tie_width[step]
        belief, visits = record.belief, record.progress.visits_at_start
        shown = np.full(visits.shape, level)
        if quantile_level is None and plan.levels is not None:
            shown = np.minimum(plan.levels, np.nextafter(1.0, 0.0))
        mean = backup(belief, self.rewards, self.discount, values, risk=Mean()).q_values[s]
        quantile = backup(
            belief, self.rewards, self.discount, values, risk=Quantile(shown)
        ).q_values[s]
        best = q_values[s] >= q_values[s].max() - width
        observations = _observations(belief, s)
        return [
            ActionReport(
                action=a,
                value=float(q_values[s, a]),
                chosen=bool(a == policy[s]),
                tied=bool(best[a] and best.sum() > 1),
                level=None if plan.levels is None else float(plan.levels[s, a]),
                visits=int(visits[s, a]),
                observations=None if observations is None else int(observations[a]),
                mean=float(mean[a]),
                quantile=float(quantile[a]),
                quantile_level=float(shown[s, a]),
                caveat=caveat_of(belief),
            )
            for a in np.flatnonzero(self._problem.pattern.admissible[s]).tolist()
        ]

    # --- files ------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that future steps depend on, as named arrays, for :meth:`save`.

        Raises
        ------
        InvalidInputError
            If the belief is not one of the library's and has no ``arrays`` or ``from_arrays``.
        """
        with self._lock:
            record, working = self._settled()
            plan: _Plan | None = record.plan
            parts = {
                "belief": describe_belief(working.latest, BELIEFS),
                "risk": describe_part(self.risk),
                "schedule": describe_part(self.schedule),
                "restart": describe_part(self.restart),
                "ties": self.ties,
                "horizon": self.horizon,
            }
            if self.episode_length is not None:
                parts["episode_length"] = self.episode_length
            content: dict[str, NDArray[Any]] = {
                "parts": np.array(json.dumps(parts)),
                **({} if self.rewards is None else {"rewards": self.rewards}),
                "numbers": np.array(
                    [self.discount, np.nan if self.tolerance is None else self.tolerance]
                ),
                "tie_stream": stream_state(working.streams["ties"]),
            }
            content |= self._common_arrays(record, working)
            if self.episode_length is not None:
                content["clock"] = np.array(working.progress.clock)
        if plan is not None:
            content |= {
                "values": plan.values,
                "q_values": plan.q_values,
                "policy": np.array(plan.policy),
            }
            report = plan.report
            content["plan"] = np.array([report.first_step, report.iterations])
            width = plan.tie_width
            if isinstance(width, np.ndarray):
                content["tie_widths"] = width
                width = float(width[0])
            content["accuracy"] = np.array(
                [report.residual, report.error_bound, report.policy_gap, width]
            )
            content["status"] = np.array(report.status)
            if plan.memory is not None:
                content |= {f"memory.{name}": array for name, array in plan.memory.arrays().items()}
            if plan.levels is not None:
                content["levels"] = plan.levels
        return content

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        belief: type[Any] | None = None,
        risk: RiskMeasure | None = None,
        schedule: Schedule | None = None,
        restart: RestartRule | None = None,
    ) -> Self:
        """Load an agent that :meth:`save` wrote; it continues exactly as the saved one would have.

        Parameters
        ----------
        path : path
            The file.
        belief : type, optional
            The class of the belief, if it is not one of the library's. Its ``from_arrays`` must
            read what its ``arrays`` wrote.
        risk, schedule, restart : optional
            Parts that are not the library's; files cannot store these. Parts of the library are
            rebuilt from the file.

        Raises
        ------
        CorruptFileError
            If the file is truncated, altered, of another kind or of an unknown version.
        InvalidInputError
            If a part that is not the library's is not passed.
        """
        return cls.from_arrays(
            load_arrays(path, cls.__name__),
            path,
            belief=belief,
            risk=risk,
            schedule=schedule,
            restart=restart,
        )

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, NDArray[Any]],
        source: Any,
        *,
        belief: type[Any] | None = None,
        risk: RiskMeasure | None = None,
        schedule: Schedule | None = None,
        restart: RestartRule | None = None,
    ) -> Self:
        """The agent that :meth:`arrays` described; other arguments as in :meth:`load`."""
        given = {"risk": risk, "schedule": schedule, "restart": restart}
        foreign = any(part is not None for part in given.values())
        with corrupt_if_undecodable(source):
            with corrupt_if_invalid(source):
                parts = as_json(arrays["parts"], "parts", MAX_PARTS_LENGTH)
            require_foreign_parts(
                {name: parts[name] for name in ("belief", *given)}, given | {"belief": belief}
            )
            belief_type: Any = (
                belief if isinstance(parts["belief"], dict) else READABLE_BELIEFS[parts["belief"]]
            )
            with corrupt_if_invalid(source):
                chosen: dict[str, Any] = {
                    name: build_part(parts[name], part) for name, part in given.items()
                }
            if foreign:
                # a mismatch here is an error in the arguments, not in the file
                _check_parts(**chosen)
            with corrupt_if_invalid(source):
                latest = belief_type.from_arrays(arrays_with_prefix(arrays, "latest."), source)
                discount, tolerance = arrays["numbers"].tolist()
                settings = {
                    "tolerance": None if np.isnan(tolerance) else tolerance,
                    "ties": parts["ties"],
                    "horizon": parts.get("horizon"),
                    "episode_length": parts.get("episode_length"),
                    "rng": 0,
                }
                agent = cls(latest, arrays.get("rewards"), discount, **settings, **chosen)
                agent._resume(arrays, source)
        return agent

    def _resume(self, arrays: dict[str, NDArray[Any]], source: Any) -> None:
        """Check the state that ``arrays`` describe and take it over."""
        streams = {"ties": stream_from_state(arrays["tie_stream"])}
        belief, working = self._resumed(arrays, source, streams)
        kept = arrays.get("risk.phi")
        if kept is not None and kept.shape != (working.latest.pattern.n_transitions,):
            raise InvalidInputError(
                f"risk.phi must have one entry per possible transition; got shape {kept.shape}"
            )
        if type(working.latest) in (DirichletBelief, OutcomeBelief):
            _, observed = working.latest.evidence(np.arange(working.latest.pattern.n_pairs))
            if (observed < working.progress.visits.ravel()).any():
                raise InvalidInputError("latest.counts must not be less than visits")
        if self.episode_length is not None:
            clock = as_index_array(arrays["clock"], working.progress.steps + 1, "clock")
            working.progress.clock = as_index(clock, working.progress.steps + 1, "clock")
        plan = (
            self._resumed_plan(arrays, working.progress, belief)
            if working.progress.episode > 0
            else None
        )
        self._record = make_record(belief, plan, working, working.latest.copy())

    def _resumed_plan(
        self, arrays: dict[str, NDArray[Any]], progress: Progress, belief: Any
    ) -> _Plan:
        admissible = progress.admissible
        length = progress.episode_length
        leading = () if length is None else (length,)
        values = self._resumed_values(arrays["values"], length)
        q_values = as_array(arrays["q_values"], "q_values", "numbers")
        shape = (*leading, *admissible.shape)
        if q_values.shape != shape or q_values.dtype != np.float64:
            raise InvalidInputError(
                f"q_values must be numbers of shape {shape}; got {q_values.shape}"
            )
        if (
            not (np.abs(q_values[..., admissible]) <= LARGEST_VALUE).all()
            or (q_values[..., ~admissible] != -np.inf).any()
        ):
            raise InvalidInputError(
                f"q_values must lie within ±{LARGEST_VALUE:g}, and be -inf for inadmissible actions"
            )
        if length is None:
            policy = as_policy(arrays["policy"], admissible).tolist()
        else:
            stages = as_policies(arrays["policy"], admissible, "policy")
            if len(stages) != length:
                raise InvalidInputError(f"policy must have {length} steps; got {len(stages)}")
            policy = stages.tolist()
        levels = None
        if self.schedule is not None or hasattr(self.risk, "alpha") or "levels" in arrays:
            levels = as_levels(arrays["levels"], "levels", one_allowed=True)
            if levels.shape != admissible.shape:
                raise InvalidInputError(
                    f"levels must have shape {admissible.shape}; got {levels.shape}"
                )
        first_step, iterations = as_index_array(arrays["plan"], 2**62, "plan").tolist()
        as_index(first_step, progress.steps + 1, "first_step")
        accuracy = [as_number(value, "accuracy", "a number") for value in arrays["accuracy"]]
        if len(accuracy) == 3 and self.tolerance is not None:
            accuracy.append(10.0 * self.tolerance)  # the width used before files stored it
        residual, error_bound, policy_gap, tie_width = accuracy
        status = str(arrays["status"])
        if not all(number >= 0.0 for number in accuracy) or status not in STATUSES:
            raise InvalidInputError(
                f"accuracy must not be negative, and status must be one of {STATUSES}; got "
                f"{accuracy} and {status!r}"
            )
        if status == CONVERGED and not np.isfinite(accuracy).all():
            raise InvalidInputError(
                f"accuracy must be finite where the status is {status!r}; got {accuracy}"
            )
        sampled = isinstance(self.risk, PosteriorSample) or isinstance(
            getattr(self.risk, "method", None), MonteCarlo
        )
        if sampled and status == CONVERGED:
            # older files call plans from draws "converged"
            status = SAMPLED
        report = EpisodeReport(
            progress.episode,
            first_step,
            levels,
            iterations,
            residual,
            error_bound,
            policy_gap,
            status,
            None,
        )
        widths: Any = tie_width
        if length is not None:
            widths = as_float_array(arrays["tie_widths"], "tie_widths")
            if widths.shape != (length,) or (widths < 0.0).any():
                raise InvalidInputError(
                    f"tie_widths must be {length} numbers that are not negative; got shape "
                    f"{widths.shape}"
                )
        memory = None
        known = arrays_with_prefix(arrays, "memory.")
        if known and has_dirichlet_rows(belief):
            memory = Memory.from_arrays(known, *dirichlet_rows_of(belief), self._problem.pattern)
        return _Plan(values, q_values, policy, levels, widths, report, memory)

    def _resumed_values(self, stored: Any, length: int | None) -> FloatArray:
        if length is None:
            values = self._problem.start(stored, "values")
            assert values is not None
            return values
        by_step = as_float_array(stored, "values")
        shape = (length + 1, self._problem.pattern.n_states)
        if by_step.shape != shape or float(np.abs(by_step).max()) > LARGEST_VALUE:
            raise InvalidInputError(
                f"values must have shape {shape} and lie within ±{LARGEST_VALUE:g}; got "
                f"{by_step.shape}"
            )
        return by_step

    def __repr__(self) -> str:
        length = self.episode_length
        episodes = "" if length is None else f"episodes of {length} steps, "
        return (
            f"Agent({type(self.belief).__name__}, risk={self.risk!r}, schedule={self.schedule!r}, "
            f"restart={self.restart!r}, {episodes}pseudo-episode {self.episode}, "
            f"{self.progress.steps} steps observed)"
        )


def _at_levels_of(schedule: Schedule, risk: Any, progress: Progress, belief: Any) -> Any:
    """The measure at the levels that the schedule sets; an error names the schedule."""
    # the library's own schedules change nothing, and copying a large belief takes time
    shown = belief if is_own(schedule) else belief.copy()
    levels = schedule.levels(progress.upcoming(shown))
    name, shape = f"{type(schedule).__name__}.levels", progress.visits.shape
    if np.shape(as_array(levels, name, "a number or an array of numbers")) not in ((), shape):
        raise InvalidInputError(
            f"{name} must return a number or an array of shape {shape}, one level per (s, a); got "
            f"shape {np.shape(levels)}"
        )
    try:
        return risk.at_level(levels)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{name} must return levels that {type(risk).__name__} accepts: {error}"
        ) from error


def _break_ties(solution: Solution | HorizonSolution, rng: np.random.Generator) -> IntArray:
    """Policy that takes one of the tied actions at random in every tied state: (S,) or (H, S)."""
    if isinstance(solution, HorizonSolution):
        assert solution.q_values is not None
        tickets = rng.random(solution.q_values.shape)
        tied = np.stack([solution.tied_actions(h) for h in range(solution.horizon)])
    else:
        tickets = rng.random(solution.known_q.shape)
        tied = solution.tied_actions()
    chosen: IntArray = np.where(tied, tickets, -1.0).argmax(axis=-1)
    return chosen


def _as_length(value: Any, pattern: Any) -> int:
    """A number of steps of an episode, such that the q-values of a plan can be kept."""
    length = as_positive_int(value, "episode_length")
    most = KEPT_Q_VALUES // pattern.n_pairs
    if length > most:
        raise InvalidInputError(
            f"episode_length must be at most {most:,} for {pattern.n_states:,} states and "
            f"{pattern.n_actions} actions, since an agent keeps the values of all of them; got "
            f"{length:,}"
        )
    return as_horizon(length, pattern.n_states)


def _observations(belief: Any, state: int) -> IntArray | None:
    """(A,) observations of each action in ``state``; None if the belief does not count them."""
    if isinstance(belief, DrivenBelief):
        return np.full(belief.n_actions, belief.n_observations)
    if isinstance(belief, OutcomeBelief):
        pairs = state * belief.n_actions + np.arange(belief.n_actions)
        return belief.evidence(pairs)[1].astype(np.int64)
    if not isinstance(belief, DirichletBelief):
        return None
    pattern = belief.pattern
    rows = pattern.indptr[state * pattern.n_actions : (state + 1) * pattern.n_actions + 1]
    counted: IntArray = np.diff(np.concatenate(([0], np.cumsum(belief.counts("flat"))))[rows])
    return counted


def _known_on_transitions(belief: Any, rewards: Rewards) -> FloatArray | None:
    """Known rewards beside those that a belief learns, in a form that new outcomes do not change.

    A belief from outside keeps its pattern, so its own form will do.
    """
    if rewards is None:
        return None
    known: Any = rewards
    if isinstance(belief, OutcomeBelief):
        known = belief.transitions.gather(known)
    return np.array(as_float_array(known, "rewards"))


def _require_members(belief: Any, names: tuple[str, ...]) -> None:
    """Raise if a belief lacks one of the members that agents need."""
    missing = [name for name in names if not hasattr(belief, name)]
    if missing:
        raise InvalidInputError(
            "belief must have all members that an agent needs to plan and learn; "
            f"{type(belief).__name__} lacks {', '.join(missing)}"
        )


def _check_parts(risk: Any, schedule: Any, restart: Any) -> None:
    if isinstance(risk, type) or not hasattr(risk, "bind"):
        raise InvalidInputError(
            f"risk must be a risk measure with a method bind, such as Quantile(0.2); got {risk!r}"
        )
    if schedule is not None and (isinstance(schedule, type) or not hasattr(schedule, "levels")):
        raise InvalidInputError(
            f"schedule must be an object with a method levels(progress); got {schedule!r}"
        )
    if schedule is not None and not hasattr(risk, "at_level"):
        raise InvalidInputError(
            f"risk must have a level that the schedule can set, such as Quantile; got {risk!r}"
        )
    check_restart(restart)
