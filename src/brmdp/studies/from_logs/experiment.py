"""Logs with a known truth, and the decisions that the library makes from them.

``from-logs`` asks whether promises are kept: one row per log, with the certificate, the true value
of the recommended policy and that of what was done before. ``alarms`` asks what the checks say of
models that are wrong in a known way, and of models that are right.

Worlds are of three kinds:

- *wear*: a machine wears by some steps of twelve; renewing it is known to make it new;
- *queue*: a queue of up to eleven goes up and down, faster with a second clerk;
- *clinic*: eight conditions without an order, and three treatments.

A truth is *drawn*: strength, law and rows come from the very prior that the model states; or it is
*fixed*: a world that somebody might have written down, and that no prior knows of.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from brmdp._streams import independent_streams
from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.beliefs.gammas import dirichlet_rows
from brmdp.decisions.families import ShapeName, family_of
from brmdp.decisions.learned_prior import RANGE
from brmdp.decisions.partial import prior_entries
from brmdp.logs import Categories, Log, ReadingReport, StateSpace
from brmdp.mdp import TabularMDP
from brmdp.models import Dynamics, Model
from brmdp.pattern import full_pattern
from brmdp.planning import evaluate_in_mdp, solve
from brmdp.runs import REQUIRED, Columns, Computation, Experiment, Program, column

__all__ = ["ALARMS", "CHECKED", "CONFIDENCE", "DECIDED", "PROMISES", "AlarmColumns", "LogColumns"]

DISCOUNT = 0.95

Defect = Literal["none", "groups", "drift", "memory"]


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of problem: its sizes, what it costs or pays, and what is known about it.

    Attributes
    ----------
    n_states, n_actions : int
    shape : str
        How the rows of a drawn truth resemble each other.
    word : "cost" or "reward"
    amounts : (S, A) array
    renewing : int or None
        The action that is known to lead to state 0.
    ordered : bool
    """

    n_states: int
    n_actions: int
    shape: ShapeName
    word: Literal["cost", "reward"]
    amounts: FloatArray
    renewing: int | None
    ordered: bool


_AGE, _QUEUE = np.arange(12.0), np.arange(12.0)

KINDS = {
    "wear": Kind(12, 2, "increments", "cost", np.stack([_AGE, 0 * _AGE + 12.0], 1), 1, True),
    "queue": Kind(12, 2, "increments", "cost", np.stack([_QUEUE, _QUEUE + 2.5], 1), None, True),
    "clinic": Kind(
        8,
        3,
        "destinations",
        "reward",
        np.linspace(0.0, 1.0, 8)[:, None] - np.array([0.0, 0.05, 0.1]),
        None,
        False,
    ),
}


@dataclass(frozen=True, eq=False)
class World:
    """The truth behind a log.

    Attributes
    ----------
    kernels : (groups, S, A, S) array
    later : (groups, S, A, S) array
        The kernels in the second half of the time.
    sticky : float
        Probability that a change is made once more instead of drawn anew, after a large one.
    """

    kernels: FloatArray
    later: FloatArray
    sticky: float = 0.0


def world_of(
    name: str, truth: Literal["drawn", "fixed"], defect: Defect, rng: np.random.Generator
) -> World:
    """The truth of a kind of problem, with or without a defect."""
    kind = KINDS[name]
    n_groups = 3 if defect == "groups" else 1
    if truth == "drawn":
        kernels = np.repeat(_drawn(kind, rng)[None], n_groups, axis=0)
    else:
        kernels = np.stack([_fixed(name, kind, speed) for speed in SPEEDS[:n_groups]])
    later = kernels
    if defect == "drift":
        later = np.stack([_fixed(name, kind, SPEEDS[1])])
    return World(kernels, later, 0.6 if defect == "memory" else 0.0)


SPEEDS = (1.0, 2.2, 0.45)
"""How fast things change: the usual way, and those of other groups or of later."""


def _drawn(kind: Kind, rng: np.random.Generator) -> FloatArray:
    """A kernel from the hierarchy of a learned prior."""
    family = family_of(kind.shape, full_pattern(kind.n_states, kind.n_actions))
    low, high = np.log(RANGE)
    log_strength = rng.uniform(low, high, size=family.n_strengths)
    law = dirichlet_rows(family.base, 1, rng, family.law_sizes)[0]
    concentration = prior_entries(family, log_strength, law)
    rows = dirichlet_rows(concentration, 1, rng, family.pattern.row_widths)[0]
    return _renewed(kind, rows.reshape(kind.n_states, kind.n_actions, kind.n_states))


def _renewed(kind: Kind, kernel: FloatArray) -> FloatArray:
    if kind.renewing is not None:
        kernel[:, kind.renewing] = np.eye(kind.n_states)[0]
    return kernel


def _fixed(name: str, kind: Kind, speed: float) -> FloatArray:
    """A kernel that somebody might have written down."""
    n, k = kind.n_states, kind.n_actions
    kernel = np.zeros((n, k, n))
    if kind.ordered:
        for s in range(n):
            for a in range(k):
                steps, chances = _steps(name, a, s / (n - 1), speed)
                np.add.at(kernel[s, a], np.clip(s + steps, 0, n - 1), chances)
        return _renewed(kind, kernel)
    better = np.arange(n)
    for s in range(n):
        for a in range(k):
            pull = 0.25 * speed * (a + 1)
            weight = np.exp(-0.5 * (better - s - pull) ** 2) + 0.02
            kernel[s, a] = weight / weight.sum()
    return kernel


def _steps(name: str, action: int, age: float, speed: float) -> tuple[IntArray, FloatArray]:
    """By how much a state changes, with which chances."""
    if name == "wear":
        move = np.clip(0.3 * speed * (1.0 + 0.4 * age), 0.0, 0.95)
        return np.array([0, 1, 2]), np.array([1.0 - move, 0.7 * move, 0.3 * move])
    up = np.clip(0.42 * speed, 0.0, 0.6)
    down = np.clip(0.30 + 0.18 * action, 0.0, 0.99 - up)
    return np.array([-1, 0, 1]), np.array([down, 1.0 - up - down, up])


def log_of(
    name: str, world: World, units: int, steps: int, rng: np.random.Generator
) -> tuple[Log, FloatArray]:
    """A log of ``units`` over ``steps`` lines each, and the behaviour (S, A) that made it."""
    kind = KINDS[name]
    n, k = kind.n_states, kind.n_actions
    behaviour = rng.dirichlet(np.full(k, 0.8), size=n)
    if kind.renewing is not None:
        # people renew more often the older the machine
        chance = rng.uniform(0.1, 0.5) * np.linspace(0.0, 1.0, n) ** 2
        behaviour = np.stack((1.0 - chance, chance), axis=1)
    n_groups = world.kernels.shape[0]
    group = np.arange(units) % n_groups
    state = np.zeros(units, dtype=np.int64) if kind.ordered else rng.integers(n, size=units)
    states, actions = (np.empty((units, steps), dtype=np.int64) for _ in range(2))
    change = np.zeros(units, dtype=np.int64)
    for t in range(steps):
        action = _choose(behaviour[state], rng)
        states[:, t], actions[:, t] = state, action
        kernels = world.kernels if 2 * t < steps else world.later
        following = _choose(kernels[group, state, action], rng)
        if world.sticky:
            again = (rng.random(units) < world.sticky) & (np.abs(change) >= 1)
            free = action != kind.renewing
            following = np.where(again & free, np.clip(state + change, 0, n - 1), following)
        change = np.where(action == kind.renewing, 0, following - state)
        state = following
    return _as_log(kind, states, actions, group if n_groups > 1 else None), behaviour


def _choose(chances: FloatArray, rng: np.random.Generator) -> IntArray:
    """One column per row, by its chances."""
    ladder = np.cumsum(chances, axis=1)
    found: IntArray = (rng.random((ladder.shape[0], 1)) * ladder[:, -1:] >= ladder).sum(axis=1)
    chosen: IntArray = np.minimum(found, chances.shape[1] - 1).astype(np.int64)
    return chosen


def _as_log(kind: Kind, states: IntArray, actions: IntArray, group: Any) -> Log:
    units, steps = states.shape
    rows = units * (steps - 1)
    unit = np.repeat(np.arange(units), steps - 1)
    previous = np.arange(rows) - 1
    previous[:: steps - 1] = -1
    width = len(str(kind.n_states - 1))
    labels = [f"{s}" if kind.ordered else f"condition {s:0{width}}" for s in range(kind.n_states)]
    return Log(
        source="simulated",
        digest="0" * 64,
        states=StateSpace((Categories("state", tuple(labels)),)),
        actions=tuple("abc"[: kind.n_actions]),
        unit_names=tuple(f"unit {u}" for u in range(units)),
        group_names=None if group is None else tuple(f"group {g}" for g in range(3)),
        state=states[:, :-1].ravel(),
        action=actions[:, :-1].ravel(),
        next_state=states[:, 1:].ravel(),
        unit=unit,
        group=None if group is None else group[unit],
        time=np.tile(np.arange(steps - 1.0), units),
        amount=None,
        previous=previous,
        line_state=states.ravel(),
        line_action=actions.ravel(),
        line_unit=np.repeat(np.arange(units), steps),
        line_group=None if group is None else np.repeat(group, steps),
        report=ReadingReport(states.size, states.size, units, rows),
    )


# --- decisions ----------------------------------------------------------------------------------

CONFIDENCE = 0.9
LEVELS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
"""Levels of the candidates; a page has more, which changes little."""


@dataclass(frozen=True, eq=False)
class LogColumns(Columns):
    """One row per log; values are those at the start, in the sign of the problem (cost, reward)."""

    log: IntArray = column("number of the log within the run")
    bound: FloatArray = column("certified bound of the recommended policy")
    predicted: FloatArray = column("posterior mean of its value")
    true_value: FloatArray = column("its true value")
    practice_value: FloatArray = column("true value of what was done before")
    optimum: FloatArray = column("value of the best policy, if all were known")
    held: BoolArray = column("whether the bound holds in truth")
    probability_better: FloatArray = column("stated probability that it is better than practice")
    better: BoolArray = column("whether it is better than practice in truth, or as good")
    gain_within: BoolArray = column("whether the true gain lies in the stated 95 % interval")
    stops: IntArray = column("number of checks that say stop")
    stopped_by: NDArray[np.str_] = column("names of the checks that say stop")
    seconds: FloatArray = column("processor time of checks and decision")


@dataclass(frozen=True, eq=False)
class AlarmColumns(Columns):
    """One row per log."""

    log: IntArray = column("number of the log within the run")
    stops: IntArray = column("number of checks that say stop")
    looks: IntArray = column("number of checks that say look")
    named: BoolArray = column("whether the check for this defect says stop")
    noticed: BoolArray = column("whether the check for this defect says stop or look")
    stopped_by: NDArray[np.str_] = column("names of the checks that say stop")
    seconds: FloatArray = column("processor time of the checks")


def _model(name: str, log: Any, dynamics: Dynamics, seed: int) -> Model:
    kind = KINDS[name]
    return Model(
        log,
        discount=DISCOUNT,
        confidence=CONFIDENCE,
        start="0" if kind.ordered else None,
        reset={} if kind.renewing is None else {log.actions[kind.renewing]: "0"},
        dynamics=dynamics,
        seed=seed,
        **{f"{kind.word}s": kind.amounts},  # type: ignore[arg-type]
    )


def _decide(
    seed: np.random.SeedSequence, *, kind: str, truth: str, units: int, steps: int, logs: int
) -> LogColumns:
    """Decisions from several logs, each with a truth of its own."""
    rows = []
    for number, rng in enumerate(independent_streams(seed, logs)):
        world = world_of(kind, truth, "none", rng)  # type: ignore[arg-type]
        log, behaviour = log_of(kind, world, units, steps, rng)
        shape = KINDS[kind].shape if truth == "drawn" else "auto"
        model = _model(kind, log, Dynamics(shape=shape, draws=1_000), int(rng.integers(2**31)))
        clock = time.process_time()
        decided = model.decide(levels=LEVELS, draws=400)
        seconds = time.process_time() - clock
        (group,) = decided.groups
        mdp = TabularMDP(world.kernels[0], model.rewards, DISCOUNT)
        start = model.start()
        mine, done = (
            model.sign * float(evaluate_in_mdp(mdp, policy) @ start)
            for policy in (group.policy, behaviour)
        )
        gain = model.sign * (mine - done)
        # two values that differ by rounding are equal
        slack = 1e-9 * (abs(mine) + abs(done))
        rows.append(
            {
                "log": number,
                "bound": group.guarantee.value,
                "predicted": group.policies[group.recommended].mean.mean,
                "true_value": mine,
                "practice_value": done,
                "optimum": model.sign * float(solve(mdp).values @ start),
                "held": model.sign * (mine - group.guarantee.value) >= -slack,
                "probability_better": group.probability_better[0],
                "better": gain >= -slack,
                "gain_within": group.gain.low - slack <= gain <= group.gain.high + slack,
                "stops": len(decided.stops),
                "stopped_by": ", ".join(sorted({check.name for check in decided.stops})),
                "seconds": seconds,
            }
        )
    return LogColumns.of_rows(rows)


def _check(
    seed: np.random.SeedSequence, *, kind: str, defect: str, units: int, steps: int, logs: int
) -> AlarmColumns:
    """What the checks say of several logs with the same defect."""
    rows = []
    for number, rng in enumerate(independent_streams(seed, logs)):
        world = world_of(kind, "fixed", defect, rng)  # type: ignore[arg-type]
        log, _ = log_of(kind, world, units, steps, rng)
        pooling = "pooled" if defect == "groups" else None
        model = _model(kind, log, Dynamics(pooling=pooling, draws=400), int(rng.integers(2**31)))
        clock = time.process_time()
        checks = model.check()
        seconds = time.process_time() - clock
        stops = [check.name for check in checks if check.verdict == "stop"]
        looks = [check.name for check in checks if check.verdict == "look"]
        rows.append(
            {
                "log": number,
                "stops": len(stops),
                "looks": len(looks),
                "named": defect in stops,
                "noticed": defect in stops + looks,
                "stopped_by": ", ".join(sorted(set(stops))),
                "seconds": seconds,
            }
        )
    return AlarmColumns.of_rows(rows)


_PARTS = ("decisions", "models")

DECIDED = Program(
    _decide,
    LogColumns,
    {"kind": REQUIRED, "truth": REQUIRED, "units": REQUIRED, "steps": 20, "logs": 5},
    parts=_PARTS,
)

CHECKED = Program(
    _check,
    AlarmColumns,
    {"kind": REQUIRED, "defect": REQUIRED, "units": REQUIRED, "steps": 25, "logs": 5},
    parts=_PARTS,
)

PROMISES = Experiment(
    "from-logs",
    "Decisions from simulated logs",
    tuple(
        Computation(
            f"{kind}-{truth}-{units}",
            f"{__name__}:DECIDED",
            {"kind": kind, "truth": truth, "units": units},
        )
        for kind in KINDS
        for truth in ("drawn", "fixed")
        for units in (10, 60)
    ),
    runs=10,
)

ALARMS = Experiment(
    "alarms",
    "What the checks say of right and wrong models",
    tuple(
        Computation(
            f"{kind}-{defect}-{units}",
            f"{__name__}:CHECKED",
            {"kind": kind, "defect": defect, "units": units},
        )
        for kind in ("wear", "queue")
        for defect in ("none", "groups", "drift", "memory")
        for units in (9, 30, 90)
    ),
    runs=8,
)
