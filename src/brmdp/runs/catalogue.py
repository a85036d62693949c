"""What a case may name: environments, agents and their parts, by name or as ``module:attribute``.

An agent of your own is made like a preset: ``make(belief, rewards, discount, **parameters,
rng=…)``; it needs ``act`` and ``observe`` (:class:`brmdp.Actor`). Risk measures, schedules and
restart rules are called with their parameters, and with ``rng`` if they take one. An environment is
a :class:`brmdp.World`, a Gymnasium environment or a :class:`brmdp.TabularMDP`, or a function that
returns one; it is called with its parameters, and with ``discount`` if it takes that.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from brmdp import envs
from brmdp._streams import independent_streams
from brmdp._validation import Seed, as_rng
from brmdp.agents import (
    BAMCP,
    AdaptiveLevel,
    Agent,
    EveryStep,
    FallingLevel,
    FixedLength,
    FixedLevel,
    GeometricLength,
    GrowingLength,
    QLearning,
    RisingLevel,
    StepDoubling,
    VisitDoubling,
    VisitLevel,
    aq_brmdp,
    bayes_ucbvi,
    beb,
    continuing_psrl,
    cvar_bonus,
    eubrl,
    fixed_quantile,
    opsrl,
    posterior_mean,
    r_max,
    ucbvi_gamma,
    ucrl2,
    vbrb,
)
from brmdp.beliefs import DirichletBelief
from brmdp.beliefs.disturbance import DrivenBelief
from brmdp.envs.random_rewards import OutcomeEnv
from brmdp.envs.tabular_env import TabularEnv
from brmdp.errors import BrmdpError, InvalidInputError
from brmdp.mdp import TabularMDP
from brmdp.risk import CVaR, Mean, MonteCarlo, PosteriorSample, Quantile
from brmdp.runs.lake import AGENTS as LAKE_AGENTS
from brmdp.runs.lake import LAKE
from brmdp.runs.program import REQUIRED, with_defaults
from brmdp.runs.references import is_reference, load, module_source, source_of
from brmdp.runs.spec import METHODS, Case, require_known
from brmdp.simulation import Actor, World, draw_world
from brmdp.simulation.actor import require_actor
from brmdp.theory import draw_mdp

__all__ = [
    "AGENTS",
    "BBRL",
    "DRAWN",
    "ENVIRONMENTS",
    "PARTS",
    "PRIOR",
    "Setting",
    "agents_of",
    "environment_parameters_of",
    "make_agent",
    "make_setting",
    "named_agent",
    "numbers_of",
    "references_of",
    "sources_of",
]


# --- environments ---------------------------------------------------------------------------------

ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "riverswim": ("n",),
    "frozenlake": ("shortcut_risk",),
    "inventory": (
        *("capacity", "max_order", "demand"),
        *("price", "unit_cost", "order_cost", "holding_cost", "shortage_cost"),
        "reveal_lost_sales",
    ),
    "chain": ("n", "slip"),
    "double-loop": ("length",),
    "deep-sea": ("n", "stochastic", "seed"),
    "six-arms": (),
    "garnet": ("n_states", "n_actions", "branching", "seed"),
    "wet-chicken": ("length", "width"),
    "machine-replacement": (),
    "population": ("capacity",),
    "tumour": ("sizes", "concentrations", "dose_penalty"),
    "bandit": ("arms",),
    "bernoulli-riverswim": ("n",),
    "prior": ("n_states", "n_actions", "concentration"),
    "bbrl": ("worlds",),
    LAKE: (),
}
"""Environments of the library, and their parameters.

Any other name is the id of a Gymnasium environment, or an environment of your own as
``module:attribute``. In "prior" every run has a world of its own, drawn from Dir(concentration, …),
which is the agent's prior too unless another is given. In "bbrl" worlds are drawn from one of
:data:`BBRL`. In "bandit" and "bernoulli-riverswim" the
rewards are random and unknown: agents learn them. A Gymnasium id of your own is written
"module:id": every process that runs it imports the module, which registers it.
"""

BBRL: dict[str, Callable[[], envs.WorldDistribution]] = {
    "gc": envs.chain_worlds,
    "gdl": envs.double_loop_worlds,
    "grid": envs.grid_worlds,
}
"""The distributions of the BBRL benchmark."""

DRAWN = frozenset({"prior", "bbrl"})
"""Environments that are drawn anew in every run."""

RANDOM_REWARDS: dict[str, Callable[..., envs.OutcomeLaw]] = {
    "bandit": envs.bandit,
    "bernoulli-riverswim": envs.bernoulli_riverswim,
}
"""Environments with random rewards, which agents have to learn."""

PRIOR = ("concentration", "known_successors", "possible_rewards", "reward_bounds")
"""Settings of the prior, besides the ``name`` of a function that makes one."""


class Setting(NamedTuple):
    """Where an agent acts, what it believes at first, and the rewards that it knows, if any."""

    world: World
    belief: Any
    rewards: Any


def make_setting(case: Case, rng: Seed) -> Setting:
    """World, prior and rewards of a case; ``rng`` is for a world that is drawn."""
    world = _world(case, rng)
    belief = _prior(case, world)
    return Setting(world, belief, world.rewards)


def environment_parameters_of(name: str) -> tuple[str, ...] | None:
    """The parameters that an environment takes; None if that is not known."""
    return ENVIRONMENTS.get(name)


def _world(case: Case, rng: Seed) -> World:
    name, parameters = case.environment, dict(case.environment_parameters)
    if name not in ENVIRONMENTS:
        return _foreign_world(name, parameters, case.discount)
    for key in parameters:
        require_known(key, ENVIRONMENTS[name], f"parameter of {name}")
    if name == "inventory":
        return World(envs.InventoryEnv(**parameters, discount=case.discount), case.discount)
    if name == "prior":
        missing = [key for key in ("n_states", "n_actions") if key not in parameters]
        if missing:
            raise InvalidInputError(f"the environment 'prior' needs {', '.join(missing)}")
        drawn = draw_mdp(**parameters, discount=case.discount, rng=rng)
        return World(TabularEnv(drawn), case.discount)
    if name == "bbrl":
        require_known(parameters.get("worlds"), BBRL, "distribution of worlds")
        worlds = BBRL[parameters["worlds"]]()
        prior = DirichletBelief(worlds.concentration)
        drawn = draw_world(prior, worlds.rewards, case.discount, start=worlds.start, rng=rng)
        return World(TabularEnv(drawn), case.discount)
    if name in RANDOM_REWARDS:
        law = RANDOM_REWARDS[name](**parameters, discount=case.discount)
        return World(OutcomeEnv(law), case.discount, rewards="unknown")
    # without Gymnasium's wrappers, which cost more than the step itself
    mdp = getattr(envs, name.replace("-", "_"))(**parameters, discount=case.discount)
    return World(TabularEnv(mdp), case.discount)


def _foreign_world(name: str, parameters: dict[str, Any], discount: float) -> World:
    made = _own_environment(name, parameters, discount) if is_reference(name) else None
    if made is None:
        made = _gymnasium(name, parameters)
    if isinstance(made, World):
        if made.discount != discount:
            raise InvalidInputError(
                f"the world of {name!r} must have the case's discount {discount:g}; got "
                f"{made.discount:g}"
            )
        if made.horizon is not None:
            raise InvalidInputError(
                f"the world of {name!r} has a horizon, so its regret is one number per episode, "
                "which stored runs do not know; simulate it with brmdp.simulate"
            )
        return made
    return World(TabularEnv(made) if isinstance(made, TabularMDP) else made, discount)


def _own_environment(name: str, parameters: dict[str, Any], discount: float) -> Any:
    """The environment that a reference names; None if it is a module with a Gymnasium id."""
    try:
        made = load(name, "environment")
    except InvalidInputError:
        identifier = name.partition(":")[2]
        if identifier in gymnasium.registry:
            return None
        raise
    if callable(made):
        _require_free(parameters, ("discount",), name)
        made = _called(made, {**parameters, **_wanted(made, discount=discount)}, name)
    elif parameters:
        raise InvalidInputError(f"{name!r} takes no parameters; got {', '.join(parameters)}")
    else:
        made = copy.deepcopy(made)  # runs may be carried out at the same time
    if not isinstance(made, World | TabularMDP | gymnasium.Env):
        raise InvalidInputError(
            f"{name!r} must give a World, a Gymnasium environment or a TabularMDP; got "
            f"{type(made).__name__}"
        )
    return made


def _gymnasium(name: str, parameters: dict[str, Any]) -> Any:
    if ":" not in str(name):  # "module:id" imports the module first, which registers the id
        known = [*ENVIRONMENTS, "or the id of a Gymnasium environment"]
        require_known(name, known, "environment", gymnasium.registry)
    try:
        return gymnasium.make(name, disable_env_checker=True, **parameters)
    except Exception as error:  # a module or environment of somebody else may raise anything
        raise InvalidInputError(
            f"Gymnasium cannot make {name!r} with {parameters}: {type(error).__name__}: {error}"
        ) from error


def _prior(case: Case, world: World) -> Any:
    settings = dict(case.prior)
    if "name" in settings:
        name = settings.pop("name")
        _require_free(settings, ("world",), name)
        made = _called(load(name, "prior"), {"world": world, **settings}, name)
        if not callable(getattr(made, "copy", None)):
            raise InvalidInputError(
                f"{name!r} must give a belief with a method copy(); got {made!r:.60}"
            )
        return made.copy()  # a function may return the same object again
    for key in settings:
        require_known(key, (*PRIOR, "name"), "key of prior")
    if case.environment == "prior":
        drawn_from = dict(case.environment_parameters).get("concentration", 1.0)
        settings.setdefault("concentration", drawn_from)
    belief = world.prior(**settings)
    if isinstance(belief, DrivenBelief) and "known_successors" in settings:
        raise InvalidInputError(
            f"known_successors cannot be chosen in {case.environment!r}, whose prior is one for "
            "the disturbance; leave it out"
        )
    return belief


# --- agents ---------------------------------------------------------------------------------------

_QUANTILE = {"method": "exact", "coefficient": 250.0}
_COMMON = {"restart": "geometric", "ties": "uniform", "tolerance": None}
_EVERY_STEP = {**_COMMON, "restart": "every-step"}


def _of_parts(
    belief: Any,
    rewards: Any,
    discount: float,
    *,
    risk: Any,
    schedule: Any,
    rng: Seed,
    **others: Any,
) -> Agent:
    """The agent of four parts; given those of a preset, it draws the same random numbers."""
    source = _source(rng)
    *own, draws = independent_streams(source, 3)
    measure = _part("risk", risk, lambda: draws)
    levels = None if schedule is None else _part("schedule", schedule, _spawning(source))
    return Agent(belief, rewards, discount, risk=measure, schedule=levels, **others, rng=own)


AGENTS: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "aq-brmdp": (aq_brmdp, {"delta": REQUIRED, "floor": 0.2, **_QUANTILE, **_COMMON}),
    "fixed-quantile": (fixed_quantile, {"alpha": REQUIRED, **_QUANTILE, **_COMMON}),
    "continuing-psrl": (continuing_psrl, _COMMON),
    "posterior-mean": (posterior_mean, _COMMON),
    "bamcp": (
        BAMCP,
        {
            "simulations": 500,
            "exploration": 3.0,
            "epsilon": 0.5,
            "guide": None,
            "rollout": None,
            "depth": None,
        },
    ),
    "beb": (beb, {"beta": REQUIRED, **_EVERY_STEP}),
    "vbrb": (vbrb, {"beta": REQUIRED, **_EVERY_STEP}),
    "eubrl": (eubrl, {"eta": REQUIRED, **_EVERY_STEP}),
    "r-max": (r_max, {"visits": REQUIRED, **_EVERY_STEP}),
    "ucrl2": (ucrl2, {"delta": 0.1, "scale": 1.0, **_COMMON, "restart": "visit-doubling"}),
    "ucbvi-gamma": (ucbvi_gamma, {"delta": 0.1, "scale": 1.0, **_EVERY_STEP}),
    "bayes-ucbvi": (bayes_ucbvi, {"strength": 1.0, "delta": 0.5, **_COMMON}),
    "opsrl": (opsrl, {"samples": 8, "strength": 1.0, "inflation": 1.0, **_COMMON}),
    "cvar-bonus": (cvar_bonus, {"alpha": REQUIRED, "beta": REQUIRED, **_COMMON}),
    "q-learning": (QLearning, {"epsilon": 0.1, "power": 0.77}),
    "agent": (_of_parts, {"risk": REQUIRED, "schedule": None, "horizon": None, **_COMMON}),
}
"""By name: how to make it, and its parameters with their defaults."""


@dataclass(frozen=True)
class _Known:
    """Parts of one kind by name, and what a bare number stands for."""

    by_name: Mapping[str, Callable[..., Any] | None]
    of_number: Callable[[Any], Any] | None = None


PARTS: dict[str, _Known] = {
    "risk": _Known(
        {"mean": Mean, "quantile": Quantile, "cvar": CVaR, "posterior-sample": PosteriorSample}
    ),
    "schedule": _Known(
        {
            "fixed-level": FixedLevel,
            "adaptive-level": AdaptiveLevel,
            "falling-level": FallingLevel,
            "visit-level": VisitLevel,
            "rising-level": RisingLevel,
        }
    ),
    "restart": _Known(
        {
            "geometric": None,  # with the agent's discount
            "every-step": EveryStep,
            "visit-doubling": VisitDoubling,
            "fixed-length": FixedLength,
            "geometric-length": GeometricLength,
            "step-doubling": StepDoubling,
            "growing-length": GrowingLength,
        },
        FixedLength,
    ),
}
"""Parts of agents, by role and name; a number as ``restart`` means that many steps."""


def agents_of(environment: str) -> dict[str, Mapping[str, Any]]:
    """The agents that can act in an environment, by name: their parameters with their defaults."""
    if environment == LAKE:
        return LAKE_AGENTS
    return {name: defaults for name, (_, defaults) in AGENTS.items()}


def make_agent(case: Case, setting: Setting, rng: Seed) -> Actor:
    """The agent of a case.

    Raises
    ------
    InvalidInputError
        If a name or parameter is not allowed.
    """
    given = (setting.belief, setting.rewards, case.discount)
    return named_agent(case.agent, case.agent_parameters, *given, rng=rng)


def named_agent(
    name: str, chosen: Mapping[str, Any], belief: Any, rewards: Any, discount: float, *, rng: Seed
) -> Actor:
    """The agent with this name and these parameters, as in :func:`make_agent`."""
    given = (belief, rewards, discount)
    source = _source(rng)
    if is_reference(name):
        make = load(name, "agent")
        _require_free(chosen, ("rng",), name)
        parameters = {
            key: _part(key, value, _spawning(source))
            if key in PARTS and isinstance(value, Mapping | str)
            else value
            for key, value in chosen.items()
        }
        made = _called(make, {**parameters, "rng": source}, name, *given)
        require_actor(made)
        actor: Actor = made
        return actor
    require_known(name, [*AGENTS, "or module:attribute"], "agent")
    make, defaults = AGENTS[name]
    parameters = with_defaults(chosen, defaults, name)
    if "restart" in parameters:
        restart = _part("restart", parameters["restart"], _spawning(source))
        parameters["restart"] = restart or GeometricLength(discount)
    if parameters.get("guide") is not None:
        parameters["guide"] = _part("risk", parameters["guide"], _spawning(source))
    if "method" in parameters:
        parameters["method"] = _method(parameters["method"], parameters.pop("coefficient"))
    named: Actor = make(*given, **parameters, rng=source)
    return named


def _source(rng: Seed) -> Any:
    """What streams are spawned from: ``rng``, or the seed sequence that it stands for."""
    return rng if hasattr(rng, "spawn") else as_rng(rng).bit_generator.seed_seq


def _spawning(source: Any) -> Callable[[], np.random.Generator]:
    """A function that spawns one more stream; until it is called, the others stay as they are."""
    return lambda: as_rng(source.spawn(1)[0])


def _part(role: str, described: Any, stream: Callable[[], np.random.Generator]) -> Any:
    """A part from its name, its table, or a number.

    Parameters
    ----------
    role : {"risk", "schedule", "restart"}
    described : str, mapping or number
    stream : function
        Returns the random stream for a part that takes ``rng``; it is called for no other.
    """
    known = PARTS[role]
    if known.of_number is not None and not isinstance(described, Mapping | str):
        return known.of_number(described)
    if isinstance(described, str):
        described = {"name": described}
    if not isinstance(described, Mapping) or not isinstance(described.get("name"), str):
        raise InvalidInputError(f"{role} must be a name or a table with a name; got {described!r}")
    parameters = {key: value for key, value in described.items() if key != "name"}
    name = described["name"]
    if is_reference(name):
        make = load(name, role)
    else:
        require_known(name, [*known.by_name, "or module:attribute"], role)
        make = known.by_name[name]
        if make is None and not parameters:
            return None
    if role == "risk" and "method" in parameters:
        coefficient = parameters.pop("coefficient", _QUANTILE["coefficient"])
        method = _method(parameters["method"], coefficient)
        if isinstance(method, MonteCarlo):
            method = MonteCarlo(method.coefficient, reuse=method.reuse, rng=stream())
        parameters["method"] = method
    if _wanted(make, rng=stream):
        _require_free(parameters, ("rng",), name)
        parameters["rng"] = stream()
    return _called(make, parameters, name)


def _method(name: Any, coefficient: Any) -> Any:
    require_known(name, METHODS, "method")
    if name in ("exact", "saddlepoint"):
        return name
    return MonteCarlo(coefficient, reuse=name == "monte-carlo-reused")


# --- parts of your own ----------------------------------------------------------------------------


def references_of(case: Case) -> dict[str, str]:
    """The references of a case to parts of your own, by role."""
    found = dict(_references({"environment": case.environment, "agent": case.agent}))
    found |= dict(_references({key: case.agent_parameters.get(key) for key in PARTS}))
    found |= dict(_references({"prior": dict(case.prior)}))
    return found


def _references(named: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for role, value in named.items():
        name = value.get("name") if isinstance(value, Mapping) else value
        if is_reference(name):
            yield role, str(name)


def sources_of(case: Case, setting: Setting, agent: Actor) -> list[str]:
    """Texts of the files that define parts of your own.

    These are the files of the modules that the case names, and those that define the classes of
    the objects made from them, bases included.
    """
    modules = {name.partition(":")[0] for name in references_of(case).values()}
    if ":" in case.environment:
        modules.add(case.environment.partition(":")[0])
    parts = [agent, setting.belief, *(getattr(agent, role, None) for role in PARTS)]
    kinds = [kind for part in parts if part is not None for kind in type(part).__mro__]
    texts = [module_source(module) for module in sorted(modules)]
    return texts + [text for kind in dict.fromkeys(kinds) if (text := source_of(kind))]


def numbers_of(case: Case, belief: Any) -> dict[str, Any]:
    """The arrays of a prior of your own, whose numbers may come from anywhere.

    If a belief has no ``arrays``, its mean counts; if it has no mean either, nothing does.
    """
    asked = ("arrays", "mean_entries") if "name" in case.prior else ()
    for member in asked:
        ask = getattr(belief, member, None)
        if callable(ask):
            try:
                return dict(ask()) if member == "arrays" else {member: ask()}
            except NotImplementedError:
                continue
            except Exception as error:  # a belief of somebody else may raise anything
                raise InvalidInputError(
                    f"{member}() of the prior {case.prior['name']!r} failed: "
                    f"{type(error).__name__}: {error}"
                ) from error
    return {}


def _require_free(parameters: Mapping[str, Any], reserved: tuple[str, ...], name: str) -> None:
    """Refuse parameters that are passed by the library itself."""
    taken = [key for key in reserved if key in parameters]
    if taken:
        raise InvalidInputError(f"the library passes {taken[0]} to {name!r} itself; leave it out")


def _wanted(make: Any, **offered: Any) -> dict[str, Any]:
    """The offered arguments that ``make`` takes."""
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError):
        return {}
    return {name: value for name, value in offered.items() if name in parameters}


def _called(make: Any, parameters: Mapping[str, Any], name: str, *given: Any) -> Any:
    """What ``make`` returns; errors name the part that raised them."""
    if not callable(make):
        raise InvalidInputError(f"{name!r} must be a class or a function; got {make!r:.60}")
    try:
        return make(*given, **parameters)
    except BrmdpError:
        raise
    except (Exception, SystemExit) as error:  # a part of somebody else may raise anything
        shown = {key: value for key, value in parameters.items() if key not in ("rng", "world")}
        raise InvalidInputError(
            f"{name!r} cannot be made with {shown}: {type(error).__name__}: {error}"
        ) from error
