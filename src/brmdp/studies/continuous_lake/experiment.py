"""The continuous lake: agents with one fitted-Q solver, and a closer look at one run.

*portrait* shows what the agent of a run of AQ-BRMDP has learned, early and late, beside the truth.
*epsilon* computes the levels that other choices of ε would have given along such a run; they follow
from u_k alone, so nothing is run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from brmdp import continuous
from brmdp._validation import FloatArray, IntArray, as_positive_int
from brmdp.continuous.lake import SIDE, cells
from brmdp.continuous.schedule import UncertaintyLevel
from brmdp.runs import REQUIRED, Case, Columns, Computation, Experiment, Program, column
from brmdp.runs.lake import EXTRA, FITTING, LAKE, lake_agent
from brmdp.runs.streams import streams_of

if TYPE_CHECKING:
    from brmdp.continuous import ContinuousAgent, LakeValues

__all__ = ["EPSILON", "EXPERIMENT", "PORTRAIT", "EpsilonColumns", "PortraitColumns"]

DISCOUNT = 0.8
STEPS = 4500
FIXED_LEVELS = (0.2, 0.5)
CONTROL_RUNS = 30

_BUDGET = {"coefficient": 250.0, **FITTING}
_ADAPTIVE = {"delta": 10.0, "floor": 0.2, "ceiling": 0.95, "epsilon": 0.01, **_BUDGET}
_RUN = {"agent_parameters": REQUIRED, "discount": REQUIRED, "steps": REQUIRED}


# --- the portrait ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PortraitColumns(Columns):
    """One row per moment and state. Actions are 0 left, 1 right, 2 up, 3 down."""

    after: IntArray = column("steps done at that moment")
    x: FloatArray = column("horizontal coordinate of the state")
    y: FloatArray = column("vertical coordinate of the state, growing downwards")
    optimal_value: FloatArray = column("V* at the state")
    optimal_action: IntArray = column("optimal action")
    learned_value: FloatArray = column("largest value of the agent's network at the state")
    learned_action: IntArray = column("action of the agent's plan")
    policy_value: FloatArray = column("true value of the agent's policy")
    level_left: FloatArray = column("α_k(s, left)")
    level_right: FloatArray = column("α_k(s, right)")
    level_up: FloatArray = column("α_k(s, up)")
    level_down: FloatArray = column("α_k(s, down)")

    @property
    def states(self) -> FloatArray:
        """The states, (…, 2)."""
        return np.stack([self.x, self.y], axis=-1)

    @property
    def levels(self) -> FloatArray:
        """The levels of all four actions, (…, 4)."""
        return np.stack(
            [self.level_left, self.level_right, self.level_up, self.level_down], axis=-1
        )


def _portrait(
    seed: np.random.SeedSequence,
    *,
    agent_parameters: Mapping[str, Any],
    discount: float,
    steps: int,
    early: int,
    points: int,
) -> PortraitColumns:
    """The agent of that run at its first plan with ``early`` steps done, and after the last step.

    Each moment has a row for each of ``points`` × ``points`` states per cell. None of these lies on
    a border; with an odd number the centres are among them.
    """
    agent, environment = _adaptive(seed, agent_parameters, discount, steps)
    optimum = continuous.optimal_values(discount)
    axis = (np.arange(SIDE * as_positive_int(points, "points")) + 0.5) / points
    states = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    moments: list[PortraitColumns] = []

    def look(done: int) -> None:
        if done >= early and not moments:
            moments.append(_moment(agent, done, states, optimum))

    continuous.follow_lake(agent, steps, seed=environment, on_episode=look)
    moments.append(_moment(agent, steps, states, optimum))
    return PortraitColumns.concatenated(moments)


def _moment(
    agent: ContinuousAgent, done: int, states: FloatArray, optimum: LakeValues
) -> PortraitColumns:
    """What the agent has learned about states after ``done`` steps, and what is true."""
    policy = agent.policy_preferences()
    values, levels = policy(states), agent.levels(states)
    assert levels is not None
    left, right, up, down = levels.T
    return PortraitColumns(
        after=np.full(len(states), done),
        x=states[:, 0],
        y=states[:, 1],
        optimal_value=optimum.at(states),
        optimal_action=optimum.actions(states),
        learned_value=values.max(axis=1),
        learned_action=values.argmax(axis=1),
        policy_value=continuous.policy_values(policy, agent.discount).at(states),
        level_left=left,
        level_right=right,
        level_up=up,
        level_down=down,
    )


PORTRAIT = Program(_portrait, PortraitColumns, {**_RUN, "early": 300, "points": 9}, EXTRA)


# --- ε --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EpsilonColumns(Columns):
    """One row per pseudo-episode, ε, cell and action."""

    episode: IntArray = column("pseudo-episode k")
    after: IntArray = column("steps done when it began")
    epsilon: FloatArray = column("ε, as a fraction of the mean uncertainty")
    cell: IntArray = column("number of the cell; the state is its centre")
    action: IntArray = column("action: 0 left, 1 right, 2 up, 3 down")
    uncertainty: FloatArray = column("u_k, the posterior standard deviation of the target")
    level: FloatArray = column("α_k that this ε gives")


def _epsilon(
    seed: np.random.SeedSequence,
    *,
    agent_parameters: Mapping[str, Any],
    discount: float,
    steps: int,
    episodes: Sequence[int],
    choices: Sequence[float],
) -> EpsilonColumns:
    """Levels at the cell centres for several ε, in those ``episodes`` that the run reaches."""
    agent, environment = _adaptive(seed, agent_parameters, discount, steps)
    schedule = {field.name: agent_parameters[field.name] for field in fields(UncertaintyLevel)}
    schedules = [UncertaintyLevel(**{**schedule, "epsilon": choice}) for choice in choices]
    centres = agent.model.centres
    cell, action = (index.ravel() for index in np.indices((len(centres), agent.model.n_actions)))
    known = agent.model.known(centres)
    tables: list[EpsilonColumns] = []

    def look(done: int) -> None:
        report = agent.report
        if report.episode not in episodes:
            return
        unsure = report.uncertainty
        assert unsure is not None
        tables.extend(
            EpsilonColumns(
                episode=np.full(cell.size, report.episode),
                after=np.full(cell.size, done),
                epsilon=np.full(cell.size, rule.epsilon),
                cell=cells(centres)[cell],
                action=action,
                uncertainty=unsure.ravel(),
                level=rule.levels(report.episode, unsure, unsure, known).ravel(),
            )
            for rule in schedules
        )

    continuous.follow_lake(agent, steps, seed=environment, on_episode=look)
    return EpsilonColumns.concatenated(tables)


EPSILON = Program(
    _epsilon,
    EpsilonColumns,
    {
        **_RUN,
        "episodes": [1, 10, 30, 100, 300, 800],
        "choices": [0.001, 0.003, 0.01, 0.03, 0.1],
    },
    EXTRA,
)


def _adaptive(
    seed: np.random.SeedSequence, agent_parameters: Mapping[str, Any], discount: float, steps: int
) -> tuple[ContinuousAgent, int]:
    """Agent and environment seed, as in the run of AQ-BRMDP that has this seed."""
    streams = streams_of(seed)
    case = Case("aq-brmdp", LAKE, "aq-brmdp", discount, steps, agent_parameters=agent_parameters)
    return lake_agent(case, streams.agent), streams.environment


# --- the experiment -------------------------------------------------------------------------------


def _case(name: str, agent: str, max_runs: int = 0, **agent_parameters: Any) -> Case:
    return Case(
        name, LAKE, agent, DISCOUNT, STEPS, agent_parameters=agent_parameters, max_runs=max_runs
    )


def _closer_look(name: str, attribute: str) -> Computation:
    parameters = {"agent_parameters": _ADAPTIVE, "discount": DISCOUNT, "steps": STEPS}
    return Computation(name, f"{__name__}:{attribute}", parameters, max_runs=1)


EXPERIMENT = Experiment(
    "continuous",
    "Continuous FrozenLake",
    (
        _case("aq-brmdp", "aq-brmdp", **_ADAPTIVE),
        _case("continuing-psrl", "continuing-psrl", **FITTING),
        _case("posterior-mean", "posterior-mean", CONTROL_RUNS, **FITTING),
        *(
            _case(f"brmdp-{alpha}", "fixed-quantile", CONTROL_RUNS, alpha=alpha, **_BUDGET)
            for alpha in FIXED_LEVELS
        ),
        _closer_look("portrait", "PORTRAIT"),
        _closer_look("epsilon", "EPSILON"),
    ),
)
