"""The BBRL benchmark: MDPs drawn from a Dirichlet distribution, 250 steps, discounted return.

Castronovo, Ernst, Couëtoux and Fonteneau (PLOS ONE 2016, doi 10.1371/journal.pone.0157088) draw
MDPs from three distributions (:mod:`brmdp.envs.bbrl`). The prior is *accurate*, which is the
distribution itself, or *inaccurate*, which is uniform over all successors. Run i of every agent
meets the same MDP and the same luck. Agents plan at every step unless their name says otherwise.

Settings are chosen by ``bbrl-tuning`` (:func:`brmdp.tune`) in worlds drawn from the agent's own
*prior*: with an inaccurate prior, from the uniform one. They are worlds of their own: the streams
of a race have spawn keys that no run of an experiment has, so that not even the same seed could
make a world of a race one of the test. MDPs that were looked at while methods were built had
another seed than :data:`SEED`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brmdp._validation import BoolArray, FloatArray, IntArray, as_rng
from brmdp.beliefs import DirichletBelief
from brmdp.runs import REQUIRED, Case, Columns, Computation, Experiment, Program, column, tune
from brmdp.runs.catalogue import BBRL
from brmdp.runs.streams import RunStreams

__all__ = [
    "CHOSEN",
    "DISCOUNT",
    "EXPERIMENT",
    "EXPERIMENTS",
    "GUESSED",
    "METHODS",
    "SEED",
    "STEPS",
    "TUNE",
    "TUNING",
    "Method",
    "TuningColumns",
    "racing_stream",
]

DISCOUNT = 0.95
STEPS = 250
HALVE_FROM = 80
"""Worlds from which a race sets its lower half aside; after fewer, the order is mostly luck."""

SEED = 157088
"""Of the test MDPs. Those of the seed 2026 were seen while methods were built."""
PRIORS = {"accurate": True, "inaccurate": False}
"""Whether the possible successors are known; all concentrations are 1."""

EXPERIMENTS = tuple(f"{worlds}-{prior}" for prior in PRIORS for worlds in BBRL)
"""Such as "gc-accurate"."""

EVERY_STEP = {"restart": "every-step"}
NEUTRAL = {"name": "quantile", "alpha": 0.5}


@dataclass(frozen=True, eq=False)
class Method:
    """A method with its list of settings.

    Attributes
    ----------
    name, label : str
    agent : str
        As in :class:`brmdp.runs.Case`.
    parameters : mapping, or function of a setting
        The parameters of the agent.
    settings : tuple of float
        The settings among which ``bbrl-tuning`` chooses; none if there is nothing to choose.
    max_runs : int
        Fewer runs for a slow method.
    worlds : int
        In which its last two settings are compared.
    """

    name: str
    label: str
    agent: str
    parameters: Mapping[str, Any] | Callable[[float], dict[str, Any]] = field(default_factory=dict)
    settings: tuple[float, ...] = ()
    max_runs: int = 0
    worlds: int = 320

    def with_setting(self, setting: float | None) -> dict[str, Any]:
        """All parameters, with one setting."""
        if callable(self.parameters):
            assert setting is not None
            return self.parameters(setting)
        return dict(self.parameters)


def _beta(beta: float) -> dict[str, Any]:
    return {"beta": beta}


def _level(alpha: float) -> dict[str, Any]:
    return {"alpha": alpha, **EVERY_STEP}


def _falling(start: float) -> dict[str, Any]:
    """From a level above one half down to the median."""
    schedule = {"name": "falling-level", "start": start, "end": 0.5, "rate": DISCOUNT}
    return {"risk": NEUTRAL, "schedule": schedule, **EVERY_STEP}


def _by_visits(scale: float) -> dict[str, Any]:
    return {"risk": NEUTRAL, "schedule": {"name": "visit-level", "scale": scale}, **EVERY_STEP}


def _search(exploration: float, **others: Any) -> dict[str, Any]:
    return {"simulations": 500, "exploration": exploration, **others}


METHODS = (
    Method("greedy", "Posterior mean", "posterior-mean", EVERY_STEP),
    Method("beb", "BEB", "beb", _beta, (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)),
    Method("vbrb", "VBRB", "vbrb", _beta, (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)),
    Method("psrl", "Posterior sampling", "continuing-psrl"),
    Method("opsrl", "OPSRL", "opsrl", EVERY_STEP),
    Method("aq-brmdp", "AQ-BRMDP, δ = 5", "aq-brmdp", {"delta": 5.0}),
    Method("level", "Fixed level", "fixed-quantile", _level, (0.5, 0.6, 0.7, 0.8, 0.9)),
    Method("falling", "Falling level", "agent", _falling, (0.6, 0.7, 0.8, 0.9)),
    Method("visits", "Level by visits", "agent", _by_visits, (0.25, 0.5, 1.0, 2.0)),
    Method("bamcp", "BAMCP", "bamcp", _search, (1.0, 3.0, 10.0), 100, 20),
    Method(
        "bamcp-plan",
        "BAMCP over our plan",
        "bamcp",
        partial(_search, guide="mean", rollout=0, depth=30),
        (1.0, 3.0, 10.0),
        100,
        40,
    ),
)
"""To add a method, add a line; its settings then belong into :data:`CHOSEN`."""

CHOSEN: dict[str, tuple[float, ...]] = {
    "beb": (1.0, 0.5, 0.5, 0.5, 0.25, 0.5),
    "vbrb": (4.0, 0.25, 0.5, 2.0, 0.25, 0.5),
    "level": (0.7, 0.6, 0.5, 0.6, 0.5, 0.5),
    "falling": (0.9, 0.6, 0.6, 0.7, 0.6, 0.6),
    "visits": (1.0, 0.25, 0.25, 0.5, 0.25, 0.25),
    "bamcp": (10.0, 1.0, 3.0, 10.0, 1.0, 3.0),
    "bamcp-plan": (10.0, 1.0, 3.0, 10.0, 1.0, 3.0),
}
"""The setting of each method in each experiment, in the order of :data:`EXPERIMENTS`.

*Measured*, in worlds of the prior: all three methods with levels in gc-accurate and gdl-accurate,
by the races of ``bbrl-tuning`` itself; VBRB in gc-accurate, by an earlier race of 160 worlds.
*First guesses*, without a race: all that :data:`GUESSED` names. The table of ``bbrl-tuning`` is to
replace them before ``bbrl`` is run, and its verdict compares.
"""

_MEASURED = {
    *(f"gc-accurate/{name}" for name in ("vbrb", "level", "falling", "visits")),
    *(f"gdl-accurate/{name}" for name in ("level", "falling", "visits")),
}

GUESSED = frozenset(f"{one}/{name}" for one in EXPERIMENTS for name in CHOSEN) - _MEASURED
"""Cases whose setting was not measured; the study's table marks them."""


def _case(experiment: str, name: str, agent: str, **others: Any) -> Case:
    worlds, _, prior = experiment.partition("-")
    return Case(
        name=f"{experiment}/{name}",
        environment="bbrl",
        environment_parameters={"worlds": worlds},
        agent=agent,
        discount=DISCOUNT,
        steps=STEPS,
        **{"prior": {"known_successors": PRIORS[prior]}, **others},
    )


def _cases(position: int, experiment: str) -> tuple[Case, ...]:
    here = __name__.rpartition(".")[0] + ".yardsticks"
    known = {"prior": {"name": f"{here}:truth"}, "agent_parameters": {"restart": STEPS}}
    yardsticks = (
        _case(experiment, "random", f"{here}:Random"),
        _case(experiment, "optimal", "posterior-mean", **known),
    )
    return yardsticks[: 2 if experiment.endswith("-accurate") else 0] + tuple(
        _case(
            experiment,
            method.name,
            method.agent,
            agent_parameters=method.with_setting(
                CHOSEN[method.name][position] if method.settings else None
            ),
            max_runs=method.max_runs,
        )
        for method in METHODS
    )


EXPERIMENT = Experiment(
    "bbrl",
    "BBRL: worlds drawn from a prior",
    tuple(case for place, name in enumerate(EXPERIMENTS) for case in _cases(place, name)),
    runs=500,
    seed=SEED,
)


# --- tuning ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TuningColumns(Columns):
    """One row per setting."""

    setting: FloatArray = column("the setting")
    chosen: BoolArray = column("whether it is the choice")
    value: FloatArray = column("mean discounted return")
    worlds: IntArray = column("number of worlds in which it was tried")
    difference: FloatArray = column("mean of the choice minus its own, in common worlds")
    low: FloatArray = column("lower end of the interval of that difference")
    high: FloatArray = column("upper end; all intervals of a race hold jointly")
    stopped_by: NDArray[np.str_] = column("the setting that was better beyond doubt, if any")
    set_aside: BoolArray = column("whether it was in the lower half after a stage: no proof")


def racing_stream(seed: np.random.SeedSequence) -> np.random.Generator:
    """The source of a race, with a key of its own beside those of a run's streams."""
    key = (*seed.spawn_key, len(RunStreams._fields))
    return as_rng(np.random.SeedSequence(seed.entropy, spawn_key=key))


def _tuned(
    seed: np.random.SeedSequence, *, experiment: str, method: str, worlds: int, steps: int
) -> TuningColumns:
    """Race the settings of a method in worlds drawn from the prior of an experiment."""
    name, _, prior = experiment.partition("-")
    given = BBRL[name]()
    possible = given.concentration if PRIORS[prior] else np.ones_like(given.concentration)
    chosen = next(one for one in METHODS if one.name == method)
    candidates = {
        f"{setting:g}": {"name": chosen.agent, **chosen.with_setting(setting)}
        for setting in chosen.settings
    }
    found = tune(
        DirichletBelief(possible),
        given.rewards,
        DISCOUNT,
        steps,
        candidates=candidates,
        start=given.start,
        worlds=worlds,
        halve_from=HALVE_FROM,
        rng=racing_stream(seed),
    )
    return TuningColumns.of_rows(
        [
            {
                "setting": float(one.name),
                "chosen": one.name == found.choice,
                "value": one.value,
                "worlds": one.worlds,
                "difference": one.difference,
                "low": one.low,
                "high": one.high,
                "stopped_by": one.stopped_by,
                "set_aside": one.set_aside,
            }
            for one in found.entrants
        ]
    )


TUNE = Program(
    _tuned,
    TuningColumns,
    {"experiment": REQUIRED, "method": REQUIRED, "worlds": 320, "steps": STEPS},
)

TUNING = Experiment(
    "bbrl-tuning",
    "BBRL: settings chosen in worlds drawn from the prior",
    tuple(
        Computation(
            f"{experiment}/{method.name}",
            f"{__name__}:TUNE",
            {
                "experiment": experiment,
                "method": method.name,
                "worlds": method.worlds,
                "steps": STEPS,
            },
            max_runs=1,
        )
        for experiment in EXPERIMENTS
        for method in METHODS
        if method.settings
    ),
    runs=1,
    seed=77,
)
