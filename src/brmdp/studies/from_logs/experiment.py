"""Logs with a known truth, and the decisions that the library makes from them.

``from-logs`` asks whether promises are kept: one row per log, with the certificate, the true value
of the recommended policy and that of what was done before. ``alarms`` asks what the checks say of
models that are wrong in a known way, and of models that are right.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brmdp._streams import independent_streams
from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.mdp import TabularMDP
from brmdp.models import Dynamics, Model
from brmdp.planning import evaluate_in_mdp, solve
from brmdp.runs import REQUIRED, Columns, Computation, Experiment, Program, column
from brmdp.studies.from_logs.worlds import DISCOUNT, KINDS, log_of, world_of

__all__ = ["ALARMS", "CHECKED", "CONFIDENCE", "DECIDED", "PROMISES", "AlarmColumns", "LogColumns"]

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
