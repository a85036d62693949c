"""The one agent: a belief, a risk measure, a level schedule and a restart rule (the paper's Algorithm AQ-BRMDP).

At the start of each pseudo-episode the agent takes a snapshot of what it believes, asks the schedule for levels, plans, and
then follows that plan, while data are collected, until the restart rule ends the pseudo-episode. Every method of the paper is
a choice of the four parts; see :mod:`brmdp.agents.presets`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from brmdp._streams import independent_streams, stream_from_state, stream_state
from brmdp._validation import (
    FloatArray,
    IntArray,
    as_array,
    as_index,
    as_index_array,
    as_level,
    as_levels,
    as_number,
    as_policy,
)
from brmdp.agents.episodic import EpisodicAgent, check_restart, meaningless_is_corrupt, stored_below
from brmdp.agents.parts import build_part, describe_part, require_foreign_parts
from brmdp.agents.progress import Progress
from brmdp.agents.restarts import RestartRule
from brmdp.agents.schedules import Schedule
from brmdp.errors import InvalidInputError
from brmdp.planning import Problem, Solution, backup
from brmdp.planning.solution import STATUSES
from brmdp.posterior import DirichletPosterior, DisturbancePosterior, ScenarioPosterior
from brmdp.posterior.storage import corrupt_if_invalid, load_arrays
from brmdp.risk import Mean, Quantile
from brmdp.risk.base import RiskMeasure

__all__ = ["ActionReport", "Agent", "EpisodeReport"]

TIES = ("uniform", "lowest")

BELIEFS = {cls.__name__: cls for cls in (DirichletPosterior, DisturbancePosterior, ScenarioPosterior)}


@dataclass(frozen=True)
class ActionReport:
    """What the current plan thinks of one action; see :meth:`Agent.explain`.

    Attributes
    ----------
    action : int
    value : float
        The plan's q(s,a).
    chosen : bool
        Whether the plan takes it.
    tied : bool
        Whether it is as good as the best.
    level : float or None
        The level at which the plan judges it; None for measures without levels.
    visits : int
        How often the agent took it in this state when the plan was made.
    mean : float
        Posterior mean of r + γV(s'), V the plan's values.
    quantile : float
        Posterior quantile of the same, at ``quantile_level``.
    quantile_level : float
        ``level``, or the one asked for.
    """

    action: int
    value: float
    chosen: bool
    tied: bool
    level: float | None
    visits: int
    mean: float
    quantile: float
    quantile_level: float


@dataclass(frozen=True, eq=False)
class EpisodeReport:
    """How the current pseudo-episode was planned.

    Attributes
    ----------
    episode : int
    first_step : int
        Transitions observed before it.
    levels : (S, A) array or None
        None for measures without levels.
    iterations : int
    residual, error_bound, policy_gap : float
    status : str
        As in :class:`brmdp.Solution`.
    solution : Solution or None
        The plan itself; None for one made before the agent was saved and loaded.
    """

    episode: int
    first_step: int
    levels: FloatArray | None
    iterations: int
    residual: float
    error_bound: float
    policy_gap: float
    status: str
    solution: Solution | None

    @classmethod
    def of(cls, progress: Progress, levels: FloatArray | None, solution: Solution) -> EpisodeReport:
        """The report of a plan just made."""
        return cls(
            progress.episode,
            progress.steps,
            levels,
            solution.iterations,
            solution.residual,
            solution.error_bound,
            solution.policy_gap,
            solution.status,
            solution,
        )


class Agent(EpisodicAgent):
    """Learns online and acts; works without any loop of ours.

    Parameters
    ----------
    belief : DirichletPosterior, DisturbancePosterior or ScenarioPosterior
        What is believed before the first step. The agent keeps a copy.
    rewards : as in :func:`brmdp.plan`
    discount : float in [0, 1)
    risk : RiskMeasure
        How to turn doubt into a value.
    restart : RestartRule
        When to learn and plan again.
    schedule : Schedule, optional
        Levels for ``risk`` at each plan; by default its own.
    tolerance : float, optional
        Of the plans, as in :func:`brmdp.plan`; by default relative to their values.
    ties : {"uniform", "lowest"}
        Which of several tied actions to take, decided once per plan: one at random, or the first. The first is what a plain
        arg max takes; it makes the numbering of the actions matter.
    rng : numpy.random.Generator or seed
        Source of the agent's two streams: one for ties, one for the restart rule. Measures that draw have their own.

    Notes
    -----
    ``agent.act(state)`` gives an action; tell it what happened by ``agent.observe(state, action, next_state)``.
    """

    risk: RiskMeasure
    schedule: Schedule | None

    def __init__(
        self,
        belief: Any,
        rewards: Any,
        discount: float,
        *,
        risk: RiskMeasure,
        restart: RestartRule,
        schedule: Schedule | None = None,
        tolerance: float | None = None,
        ties: str = "uniform",
        rng: Any = None,
    ) -> None:
        if isinstance(belief, type) or not (hasattr(belief, "observe") and hasattr(belief, "pattern")):
            raise InvalidInputError(f"belief must be a brmdp posterior that can observe; got {type(belief).__name__}")
        _check_parts(risk, schedule, restart)
        if not isinstance(ties, str) or ties not in TIES:
            raise InvalidInputError(f"ties must be one of {TIES}; got {ties!r}")
        self._problem = Problem.of(belief, rewards, discount, tolerance)
        self._tie_stream, restart_stream = independent_streams(rng, 2)
        super().__init__(
            belief,
            risk=risk,
            schedule=schedule,
            restart=restart,
            admissible=belief.pattern.admissible,
            restart_stream=restart_stream,
        )
        self.ties = ties
        self._levels: FloatArray | None = None
        self._values: FloatArray | None = None
        self._q_values: FloatArray | None = None
        self._tie_width = 0.0
        self._policy: list[int] = []
        self._report: EpisodeReport | None = None

    # --- acting and learning -----------------------------------------------------------------------------------

    def act(self, state: int) -> int:
        """The action for ``state``; plans first when a new pseudo-episode begins."""
        self._ensure_plan()
        return self._policy[as_index(state, len(self._policy), "state")]

    def observe(self, state: int, action: int, next_state: int, *, disturbance: int | None = None) -> None:
        """Learn from a transition, whoever chose the action.

        Parameters
        ----------
        state, action, next_state : int
        disturbance : int, optional
            What drove it, for a :class:`DisturbancePosterior` whose next state does not reveal it.

        Raises
        ------
        InvalidInputError, ImpossibleTransitionError
            As the belief's ``observe``; the agent is then unchanged.
        """
        belief = self._latest
        state = as_index(state, belief.n_states, "state")
        action = as_index(action, belief.n_actions, "action")
        next_state = as_index(next_state, belief.n_states, "next_state")
        if disturbance is None:
            belief.observe(state, action, next_state)
        elif isinstance(belief, DisturbancePosterior):
            belief.observe(state, action, next_state, disturbance)
        else:
            raise InvalidInputError(
                f"disturbance is for a DisturbancePosterior; the belief is a {type(belief).__name__}"
            )
        self._count(state, action)

    def _begin_episode(self) -> None:
        """Learn what was observed, set the levels and plan; nothing changes if that fails."""
        belief = self._latest.copy()
        risk: Any = self.risk
        if self.schedule is not None:
            risk = risk.at_level(self.schedule.levels(self.progress.upcoming()))
        solution = self._problem.solve(belief, risk, self._values)
        self.progress.begin_episode()
        self.belief = belief
        self._levels = None
        if hasattr(risk, "alpha"):
            self._levels = np.array(np.broadcast_to(risk.alpha, self.progress.visits.shape))
        self._values = solution.values
        self._q_values = solution.q_values
        self._tie_width = solution.tie_width
        self._policy = self._break_ties(solution).tolist()
        self._report = EpisodeReport.of(self.progress, self._levels, solution)
        self._stale = False

    def _break_ties(self, solution: Solution) -> IntArray:
        """One of the tied actions in every tied state."""
        if self.ties == "lowest" or not solution.tied.any():
            return solution.policy
        tickets = self._tie_stream.random(solution.q_values.shape)
        chosen: IntArray = np.where(solution.tied_actions(), tickets, -1.0).argmax(axis=1)
        return chosen

    @property
    def rewards(self) -> FloatArray:
        """Known rewards, one per possible transition."""
        return self._problem.rewards

    @property
    def discount(self) -> float:
        """γ."""
        return self._problem.discount

    @property
    def tolerance(self) -> float | None:
        """Of the plans; None for the default, which is relative to their values."""
        return self._problem.tolerance

    # --- what it thinks ----------------------------------------------------------------------------------------

    @property
    def policy(self) -> IntArray:
        """The current plan's action in every state; plans first when none is current."""
        self._ensure_plan()
        return np.array(self._policy, dtype=np.int64)

    @property
    def levels(self) -> FloatArray | None:
        """(S, A) levels of the current plan; None for measures without levels."""
        return self._levels

    @property
    def report(self) -> EpisodeReport:
        """How the current plan came about.

        Raises
        ------
        InvalidInputError
            If no plan has been made yet.
        """
        if self._report is None:
            raise InvalidInputError("report is there once the agent has planned: call act first")
        return self._report

    def explain(self, state: int, *, quantile_level: float | None = None) -> list[ActionReport]:
        """What the current plan thinks of each admissible action in ``state``; plans first when none is current.

        Parameters
        ----------
        state : int
        quantile_level : float in (0, 1), optional
            Level of the reported posterior quantile; by default that of the plan, or 0.1 for measures without levels.
        """
        s = as_index(state, self._latest.n_states, "state")
        policy = self.policy
        assert self._values is not None
        assert self._q_values is not None
        shown = np.full(
            self.progress.visits.shape, 0.1 if quantile_level is None else as_level(quantile_level, "quantile_level")
        )
        if quantile_level is None and self._levels is not None:
            shown = np.minimum(self._levels, np.nextafter(1.0, 0.0))
        mean = backup(self.belief, self.rewards, self.discount, self._values, risk=Mean()).q_values[s]
        quantile = backup(self.belief, self.rewards, self.discount, self._values, risk=Quantile(shown)).q_values[s]
        best = self._q_values[s].max()
        return [
            ActionReport(
                action=a,
                value=float(self._q_values[s, a]),
                chosen=bool(a == policy[s]),
                tied=bool(self._q_values[s, a] >= best - self._tie_width),
                level=None if self._levels is None else float(self._levels[s, a]),
                visits=int(self.progress.visits_at_start[s, a]),
                mean=float(mean[a]),
                quantile=float(quantile[a]),
                quantile_level=float(shown[s, a]),
            )
            for a in np.flatnonzero(self.progress.admissible[s]).tolist()
        ]

    # --- files -------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything the next step depends on, as named arrays, for :meth:`save`."""
        parts = {
            "belief": type(self._latest).__name__,
            "risk": describe_part(self.risk),
            "schedule": describe_part(self.schedule),
            "restart": describe_part(self.restart),
            "ties": self.ties,
        }
        content: dict[str, NDArray[Any]] = {
            "parts": np.array(json.dumps(parts)),
            "rewards": self.rewards,
            "numbers": np.array([self.discount, np.nan if self.tolerance is None else self.tolerance]),
            "tie_stream": stream_state(self._tie_stream),
        }
        content |= self._common_arrays()
        if self._values is not None and self._q_values is not None:
            content |= {"values": self._values, "q_values": self._q_values, "policy": np.array(self._policy)}
            report = self.report
            content["plan"] = np.array([report.first_step, report.iterations])
            content["accuracy"] = np.array([report.residual, report.error_bound, report.policy_gap, self._tie_width])
            content["status"] = np.array(report.status)
        if self._levels is not None:
            content["levels"] = self._levels
        return content

    @classmethod
    def load(
        cls,
        path: Any,
        *,
        risk: RiskMeasure | None = None,
        schedule: Schedule | None = None,
        restart: RestartRule | None = None,
    ) -> Self:
        """Read what :meth:`save` wrote; the agent goes on exactly as the saved one would have.

        Parameters
        ----------
        path : path
        risk, schedule, restart : optional
            Parts of your own making, which a file cannot hold; those of the library are rebuilt.

        Raises
        ------
        CorruptFileError
            If the file is truncated, altered, of another kind or of an unknown version.
        InvalidInputError
            If a part of your own making is not passed.
        """
        return cls.from_arrays(load_arrays(path, cls.__name__), path, risk=risk, schedule=schedule, restart=restart)

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, NDArray[Any]],
        source: Any,
        *,
        risk: RiskMeasure | None = None,
        schedule: Schedule | None = None,
        restart: RestartRule | None = None,
    ) -> Self:
        """What :meth:`arrays` described."""
        given = {"risk": risk, "schedule": schedule, "restart": restart}
        foreign = any(part is not None for part in given.values())
        with meaningless_is_corrupt(source):
            parts = json.loads(str(arrays["parts"]))
            belief_type = BELIEFS[parts["belief"]]
            require_foreign_parts({name: parts[name] for name in given}, given)
            with corrupt_if_invalid(source):
                chosen: dict[str, Any] = {name: build_part(parts[name], part) for name, part in given.items()}
            if foreign:
                # what does not fit now is the argument, not the file
                _check_parts(**chosen)
            with corrupt_if_invalid(source):
                latest = belief_type.from_arrays(stored_below(arrays, "latest."), source)
                discount, tolerance = arrays["numbers"].tolist()
                settings = {"tolerance": None if np.isnan(tolerance) else tolerance, "ties": parts["ties"], "rng": 0}
                agent = cls(latest, arrays["rewards"], discount, **settings, **chosen)
                agent._resume(arrays, source)
        return agent

    def _resume(self, arrays: dict[str, NDArray[Any]], source: Any) -> None:
        """Take over the state that ``arrays`` describe, if it makes sense."""
        self._resume_common(arrays, source)
        self._tie_stream = stream_from_state(arrays["tie_stream"])
        if self.progress.episode > 0:
            self._resume_plan(arrays)

    def _resume_plan(self, arrays: dict[str, NDArray[Any]]) -> None:
        admissible = self.progress.admissible
        self._values = self._problem.start(arrays["values"])
        q_values = as_array(arrays["q_values"], "q_values", "numbers")
        if q_values.shape != admissible.shape or not np.isfinite(q_values[admissible]).all():
            raise InvalidInputError(f"q_values must be finite, of shape {admissible.shape}")
        self._q_values = q_values
        self._policy = as_policy(arrays["policy"], admissible).tolist()
        if self.schedule is not None or hasattr(self.risk, "alpha") or "levels" in arrays:
            self._levels = as_levels(arrays["levels"], "levels", one_allowed=True)
            if self._levels.shape != admissible.shape:
                raise InvalidInputError(f"levels must have shape {admissible.shape}; got {self._levels.shape}")
        first_step, iterations = as_index_array(arrays["plan"], 2**62, "plan").tolist()
        accuracy = [as_number(value, "accuracy", "a number") for value in arrays["accuracy"]]
        if len(accuracy) == 3 and self.tolerance is not None:
            accuracy.append(10.0 * self.tolerance)  # the width when files did not say
        residual, error_bound, policy_gap, tie_width = accuracy
        status = str(arrays["status"])
        if not all(number >= 0.0 for number in accuracy) or status not in STATUSES:
            raise InvalidInputError(f"accuracy must not be negative and status one of {STATUSES}; got {status!r}")
        self._tie_width = tie_width
        self._report = EpisodeReport(
            self.progress.episode,
            first_step,
            self._levels,
            iterations,
            residual,
            error_bound,
            policy_gap,
            status,
            None,
        )

    def __repr__(self) -> str:
        return (
            f"Agent({type(self._latest).__name__}, risk={self.risk!r}, schedule={self.schedule!r}, "
            f"restart={self.restart!r}, pseudo-episode {self.episode}, {self.progress.steps} steps observed)"
        )


def _check_parts(risk: Any, schedule: Any, restart: Any) -> None:
    if isinstance(risk, type) or not hasattr(risk, "bind"):
        raise InvalidInputError(f"risk must be a brmdp risk measure such as Quantile(0.2); got {risk!r}")
    if schedule is not None and (isinstance(schedule, type) or not hasattr(schedule, "levels")):
        raise InvalidInputError(f"schedule must have a method levels(progress); got {schedule!r}")
    if schedule is not None and not hasattr(risk, "at_level"):
        raise InvalidInputError(f"risk must have a level for a schedule to set; got {risk!r}")
    check_restart(restart)
