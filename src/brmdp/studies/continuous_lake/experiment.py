"""The continuous lake.

AQ-BRMDP, Continuing PSRL and controls with one fitted-Q solver, and a closer look at one run.

*portrait*: what the agent of a run of AQ-BRMDP believes early and late, beside the truth.
*epsilon*: the levels which other choices of ε would have given the pairs along such a run; they
follow from u_k alone, so nothing is run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from brmdp import continuous
from brmdp._validation import FloatArray, as_positive_int
from brmdp.continuous.lake import SIDE, cells
from brmdp.continuous.schedule import UncertaintyLevel
from brmdp.runs.lake import EXTRA, FITTING, LAKE, lake_agent
from brmdp.runs.program import REQUIRED, Columns, Program
from brmdp.runs.spec import Case, Computation, Experiment
from brmdp.runs.streams import streams_of

if TYPE_CHECKING:
    from brmdp.continuous import ContinuousAgent, LakeValues

__all__ = ["EXPERIMENT", "LEVEL_COLUMNS", "PROGRAMS"]

DISCOUNT = 0.8
STEPS = 4500
FIXED_LEVELS = (0.2, 0.5)
CONTROL_RUNS = 30

LEVEL_COLUMNS = ("level_left", "level_right", "level_up", "level_down")
"""Of the portrait: α_k(s,a) of the four actions."""

_BUDGET = {"coefficient": 250.0, **FITTING}
_ADAPTIVE = {"delta": 10.0, "floor": 0.2, "ceiling": 0.95, "epsilon": 0.01, **_BUDGET}


# --- a closer look --------------------------------------------------------------------------------


def _portrait(
    seed: np.random.SeedSequence,
    *,
    agent_parameters: Mapping[str, Any],
    discount: float,
    steps: int,
    early: int,
    points: int,
) -> Columns:
    """The agent of that run at the first plan from step ``early`` on, and after the last step.

    One row for each moment and each of ``points`` × ``points`` states per cell, none on a border;
    with an odd number the centres are among them.
    """
    agent, environment = _adaptive(seed, agent_parameters, discount, steps)
    optimum = continuous.optimal_values(discount)
    axis = (np.arange(SIDE * as_positive_int(points, "points")) + 0.5) / points
    states = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    looks: list[Columns] = []

    def look(done: int) -> None:
        if done >= early and not looks:
            looks.append(_look(agent, done, states, optimum))

    continuous.follow_lake(agent, steps, seed=environment, on_episode=look)
    looks.append(_look(agent, steps, states, optimum))
    return {name: np.concatenate([moment[name] for moment in looks]) for name in looks[0]}


def _look(agent: ContinuousAgent, done: int, states: FloatArray, optimum: LakeValues) -> Columns:
    """What the agent makes of states after ``done`` steps, and what is true."""
    policy = agent.policy_preferences()
    values, levels = policy(states), agent.levels(states)
    assert levels is not None
    return {
        "after": np.full(len(states), done),
        "x": states[:, 0],
        "y": states[:, 1],
        "optimal_value": optimum.at(states),
        "optimal_action": optimum.actions(states),
        "learned_value": values.max(axis=1),
        "learned_action": values.argmax(axis=1),
        "policy_value": continuous.policy_values(policy, agent.discount).at(states),
        **dict(zip(LEVEL_COLUMNS, levels.T, strict=True)),
    }


def _epsilon(
    seed: np.random.SeedSequence,
    *,
    agent_parameters: Mapping[str, Any],
    discount: float,
    steps: int,
    episodes: Sequence[int],
    choices: Sequence[float],
) -> Columns:
    """Levels at the centres for several ε, at those of the pseudo-episodes that the run reaches."""
    agent, environment = _adaptive(seed, agent_parameters, discount, steps)
    schedule = {field.name: agent_parameters[field.name] for field in fields(UncertaintyLevel)}
    schedules = [UncertaintyLevel(**{**schedule, "epsilon": choice}) for choice in choices]
    centres = agent.model.centres
    cell, action = (index.ravel() for index in np.indices((len(centres), agent.model.n_actions)))
    known = agent.model.known(centres)
    rows: list[Columns] = []

    def look(done: int) -> None:
        report = agent.report
        if report.episode not in episodes:
            return
        unsure = report.uncertainty
        assert unsure is not None
        rows.extend(
            {
                "episode": np.full(cell.size, report.episode),
                "after": np.full(cell.size, done),
                "epsilon": np.full(cell.size, rule.epsilon),
                "cell": cells(centres)[cell],
                "action": action,
                "uncertainty": unsure.ravel(),
                "level": rule.levels(report.episode, unsure, unsure, known).ravel(),
            }
            for rule in schedules
        )

    continuous.follow_lake(agent, steps, seed=environment, on_episode=look)
    return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}


def _adaptive(
    seed: np.random.SeedSequence, agent_parameters: Mapping[str, Any], discount: float, steps: int
) -> tuple[ContinuousAgent, int]:
    """Agent and seed of the environment, as in the run of AQ-BRMDP that has this seed."""
    streams = streams_of(seed)
    case = Case("aq-brmdp", LAKE, "aq-brmdp", discount, steps, agent_parameters=agent_parameters)
    return lake_agent(case, streams.agent), streams.environment


_RUN = {"agent_parameters": REQUIRED, "discount": REQUIRED, "steps": REQUIRED}

PROGRAMS: dict[str, Program] = {
    "continuous-portrait": Program(_portrait, {**_RUN, "early": 300, "points": 9}, EXTRA),
    "continuous-epsilon": Program(
        _epsilon,
        {
            **_RUN,
            "episodes": [1, 10, 30, 100, 300, 800],
            "choices": [0.001, 0.003, 0.01, 0.03, 0.1],
        },
        EXTRA,
    ),
}
"""By name."""


# --- the experiment -------------------------------------------------------------------------------


def _case(name: str, agent: str, max_runs: int = 0, **agent_parameters: Any) -> Case:
    return Case(
        name, LAKE, agent, DISCOUNT, STEPS, agent_parameters=agent_parameters, max_runs=max_runs
    )


def _closer_look(name: str, program: str) -> Computation:
    parameters = {"agent_parameters": _ADAPTIVE, "discount": DISCOUNT, "steps": STEPS}
    return Computation(name, program, parameters, max_runs=1)


EXPERIMENT = Experiment(
    "continuous",
    "Continuous FrozenLake",
    (
        _case("aq-brmdp", "aq-brmdp", **_ADAPTIVE),
        _case("continuing-psrl", "continuing-psrl", **FITTING),
        _case("posterior-mean", "posterior-mean", CONTROL_RUNS, **FITTING),
        *(
            _case(f"brmdp-{alpha}", "brmdp", CONTROL_RUNS, alpha=alpha, **_BUDGET)
            for alpha in FIXED_LEVELS
        ),
        _closer_look("portrait", "continuous-portrait"),
        _closer_look("epsilon", "continuous-epsilon"),
    ),
)
