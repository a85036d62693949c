"""One run of one case, from a seed and a run number alone.

An interaction of an agent with a world, or a replication.

Its :mod:`streams <brmdp.runs.streams>` depend on nothing else, so neither workers, nor
order, nor diagnostics change a result.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gymnasium

from brmdp import envs
from brmdp._extras import require_extra
from brmdp.agents import (
    Agent,
    EveryStep,
    FixedLength,
    RestartRule,
    VisitDoubling,
    aq_brmdp,
    brmdp,
    continuing_psrl,
)
from brmdp.beliefs import DisturbanceBelief, DisturbanceRewards
from brmdp.continuous.lake import DIRECTIONS, SIDE
from brmdp.envs.tabular_env import TabularEnv
from brmdp.errors import BrmdpError, InvalidInputError, OtherOriginError
from brmdp.risk import MonteCarlo
from brmdp.risk.threads import one_blas_thread
from brmdp.runs.lake import AGENTS as LAKE_AGENTS
from brmdp.runs.lake import EXTRA, LAKE, check_lake, run_lake
from brmdp.runs.origin import UNKNOWN, short, world_digest
from brmdp.runs.program import REQUIRED, Columns, with_defaults
from brmdp.runs.programs import PROGRAMS, parameters_of, replicate
from brmdp.runs.spec import METHODS, Case, Computation, require_known
from brmdp.runs.streams import run_seed, streams_of
from brmdp.simulation import Diagnostics, History, World, simulate
from brmdp.theory import draw_mdp

__all__ = [
    "AGENTS",
    "ENVIRONMENTS",
    "Replication",
    "RunRecord",
    "agents_of",
    "build",
    "execute",
    "extra_of",
    "validate",
    "world_of",
    "worlds_of",
]

_QUANTILE = {"method": "exact", "coefficient": 250.0}
_COMMON = {"restart": "geometric", "ties": "uniform", "tolerance": None}

AGENTS: dict[str, tuple[Callable[..., Agent], Mapping[str, Any]]] = {
    "aq-brmdp": (aq_brmdp, {"delta": REQUIRED, "floor": 0.2, **_QUANTILE, **_COMMON}),
    "brmdp": (brmdp, {"alpha": REQUIRED, **_QUANTILE, **_COMMON}),
    "continuing-psrl": (continuing_psrl, _COMMON),
}
"""By name: how to make it, and its parameters with their defaults."""

RESTARTS: dict[str, RestartRule | None] = {
    "geometric": None,
    "every-step": EveryStep(),
    "visit-doubling": VisitDoubling(),
}
"""Restart rules by name; None is the presets' own. A whole number means that many steps."""

ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "riverswim": ("n",),
    "frozenlake": ("shortcut_risk",),
    "inventory": (
        *("capacity", "max_order", "demand"),
        *("price", "unit_cost", "order_cost", "holding_cost", "shortage_cost"),
    ),
    "prior": ("n_states", "n_actions", "concentration"),
    LAKE: (),
}
"""Environments of the library, and their parameters.

Any other name is the id of a Gymnasium environment.

In "prior" every run has a world of its own, drawn from Dir(concentration, …), which is then the
agent's prior too.

An id of your own is written "module:id": every process that runs it then imports the module that
registers it. """


@dataclass(frozen=True, eq=False)
class RunRecord:
    """What one interaction gave.

    Its history, size and digest of its world, and the processor time it took.
    """

    history: History
    n_states: int
    n_actions: int
    seconds: float
    world: str = UNKNOWN


@dataclass(frozen=True, eq=False)
class Replication:
    """What one replication of a computation gave, and the processor time it took."""

    columns: Columns
    seconds: float
    world: str = UNKNOWN


def execute(
    case: Case | Computation, seed: int, run: int, *, world: str | None = None
) -> RunRecord | Replication:
    """Carry out run number ``run`` of ``case``.

    Parameters
    ----------
    case : Case or Computation
    seed : int
        Of the experiment.
    run : int
    world : str, optional
        Digest that its world must have; see :func:`world_of`.

    Raises
    ------
    OtherOriginError
        If it has another; nothing is carried out then.
    """
    begin = time.process_time()
    with one_blas_thread:
        if isinstance(case, Computation):
            columns = replicate(case, run_seed(seed, run))
            return Replication(columns, time.process_time() - begin)
        streams = streams_of(run_seed(seed, run))
        if case.environment == LAKE:
            recorded = run_lake(case, streams.environment, streams.agent)
            return RunRecord(
                recorded.history, SIDE * SIDE, len(DIRECTIONS), time.process_time() - begin
            )
        place, agent = build(case, streams.agent, streams.world)
        # a world that is drawn has one in every run: what it is drawn from counts
        digest = world_of(case) if case.environment == "prior" else world_digest(place)
        if world is not None and world != digest:
            raise OtherOriginError(
                f"the environment {case.environment!r} is another one here: the digest of its "
                f"tables is {short(digest)}, asked for {short(world)}"
            )
        history = simulate(
            agent,
            place,
            case.steps,
            seed=streams.environment,
            diagnostics=Diagnostics(
                robust_level=case.robust_level, quantile_level=case.quantile_level
            ),
            diagnostics_rng=streams.diagnostics,
        )
        return RunRecord(
            history, place.n_states, place.n_actions, time.process_time() - begin, digest
        )


def validate(case: Case | Computation) -> None:
    """Refuse a case that could not be carried out, before anything is.

    Raises
    ------
    InvalidInputError
        If a name or parameter is not allowed; the message names the case.
    ExperimentError
        If a package is missing.
    """
    with _named(case):
        if isinstance(case, Computation):
            parameters_of(case)
        elif case.environment == LAKE:
            check_lake(case)
        else:
            _built(case, None, None)
    extra = extra_of(case)
    if extra is not None:
        require_extra(extra)


def world_of(case: Case | Computation) -> str:
    """Digest of the world of a case, as it is in this process.

    Empty for a case that is made of code alone.
    """
    if isinstance(case, Computation) or case.environment == LAKE:
        return UNKNOWN
    with _named(case):
        return world_digest(_setting(case, 0)[0])


def worlds_of(cases: Iterable[Case | Computation]) -> dict[str, str]:
    """Digests of the worlds of cases by name; each world is built once."""
    known: dict[str, str] = {}
    digests = {}
    for case in cases:
        place = (
            [case.environment, dict(case.environment_parameters), case.discount]
            if isinstance(case, Case)
            else None
        )
        key = json.dumps(place, sort_keys=True)
        if key not in known:
            known[key] = world_of(case)
        digests[case.name] = known[key]
    return digests


def agents_of(environment: str) -> dict[str, Mapping[str, Any]]:
    """The agents that can act in an environment, by name: their parameters with their defaults."""
    return (
        LAKE_AGENTS
        if environment == LAKE
        else {name: defaults for name, (_, defaults) in AGENTS.items()}
    )


def extra_of(case: Case | Computation) -> str | None:
    """The extra of the package that a case needs beside that of experiments."""
    if isinstance(case, Computation):
        return PROGRAMS[case.program].extra
    return EXTRA if case.environment == LAKE else None


@contextmanager
def _named(case: Case | Computation) -> Iterator[None]:
    """Say in which case something is not allowed."""
    try:
        yield
    except BrmdpError as error:
        raise InvalidInputError(f"case {case.name!r}: {error}") from error


def build(case: Case, rng: Any = None, world_rng: Any = None) -> tuple[World, Agent]:
    """The world of a finite case, and its agent with the prior Dir(1, …, 1).

    Or the one from which the world is drawn.

    Parameters
    ----------
    case : Case
    rng : numpy.random.Generator or seed
        Of the agent.
    world_rng : numpy.random.Generator or seed
        Of a world that is drawn from the prior; unused by others.

    Raises
    ------
    InvalidInputError
        If a name or parameter is not allowed; the message names the case.
    """
    with _named(case):
        return _built(case, rng, world_rng)


def _built(case: Case, rng: Any, world_rng: Any) -> tuple[World, Agent]:
    world, belief, rewards = _setting(case, world_rng)
    return world, _agent(case, belief, rewards, rng)


def _setting(case: Case, world_rng: Any) -> tuple[World, Any, Any]:
    """World, prior and rewards."""
    name, parameters = case.environment, dict(case.environment_parameters)
    if name not in ENVIRONMENTS:
        world = World(_gymnasium(name, parameters), case.discount)
        return world, world.prior(), world.rewards
    for key in parameters:
        require_known(key, ENVIRONMENTS[name], f"parameter of {name}")
    if name == "inventory":
        env = envs.InventoryEnv(**parameters, discount=case.discount)
        belief = DisturbanceBelief(env.problem.outcomes)
        return (
            World(env, case.discount),
            belief,
            DisturbanceRewards(env.problem.disturbance_rewards),
        )
    if name == "prior":
        return _drawn(world_rng, case.discount, parameters)
    # without Gymnasium's wrappers, which cost more than the step itself
    world = World(
        TabularEnv(getattr(envs, name)(**parameters, discount=case.discount)), case.discount
    )
    return world, world.prior(), world.rewards


def _drawn(rng: Any, discount: float, parameters: dict[str, Any]) -> tuple[World, Any, Any]:
    missing = [key for key in ("n_states", "n_actions") if key not in parameters]
    if missing:
        raise InvalidInputError(f"prior needs {', '.join(missing)}")
    world = World(TabularEnv(draw_mdp(rng, **parameters, discount=discount)), discount)
    return world, world.prior(parameters.get("concentration", 1.0)), world.rewards


def _gymnasium(name: str, parameters: dict[str, Any]) -> Any:
    if ":" not in str(name):  # "module:id" imports the module first, which registers the id
        require_known(
            name,
            [*ENVIRONMENTS, "or the id of a Gymnasium environment"],
            "environment",
            gymnasium.registry,
        )
    try:
        return gymnasium.make(name, disable_env_checker=True, **parameters)
    except Exception as error:  # whatever a module or an environment of somebody else may raise
        raise InvalidInputError(
            f"Gymnasium cannot make {name!r} with {parameters}: {type(error).__name__}: {error}"
        ) from error


def _agent(case: Case, belief: Any, rewards: Any, rng: Any) -> Agent:
    require_known(case.agent, AGENTS, "agent")
    make, defaults = AGENTS[case.agent]
    parameters = with_defaults(case.agent_parameters, defaults, case.agent)
    parameters["restart"] = _restart(parameters["restart"])
    if "method" in parameters:
        parameters["method"] = _method(parameters["method"], parameters.pop("coefficient"))
    return make(belief, rewards, case.discount, **parameters, rng=rng)


def _restart(rule: Any) -> RestartRule | None:
    if isinstance(rule, str):
        require_known(rule, RESTARTS, "restart")
        return RESTARTS[rule]
    return FixedLength(rule)


def _method(name: Any, coefficient: Any) -> Any:
    require_known(name, METHODS, "method")
    if name in ("exact", "saddlepoint"):
        return name
    return MonteCarlo(coefficient, reuse=name == "monte-carlo-reused")
