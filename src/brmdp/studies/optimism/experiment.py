"""Optimism of the adaptive schedule.

AQ-BRMDP in worlds drawn from its prior, the dual-benchmark lemma checked at every plan.

The same runs count pseudo-episodes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from brmdp._streams import independent_streams
from brmdp._validation import as_positive_int
from brmdp.errors import InvalidInputError
from brmdp.runs.program import REQUIRED, Columns, Program
from brmdp.runs.spec import Computation, Experiment
from brmdp.theory import balanced_delta, replicate_optimism

__all__ = ["EXPERIMENT", "PROGRAM", "steps_for"]

SPARE_DEVIATIONS = 6.0
"""By how many standard deviations the steps exceed those that the wanted pseudo-episodes take on average."""


def steps_for(episodes: int, discount: float) -> int:
    """Steps within which so many pseudo-episodes begin, but for a chance below 10⁻⁴.

    (below 10⁻⁶ from 40 of them on).
    """
    others = as_positive_int(episodes, "episodes") - 1
    return 1 + math.ceil(
        (others + SPARE_DEVIATIONS * math.sqrt(others * discount)) / (1.0 - discount)
    )


def _replicate(
    seed: np.random.SeedSequence,
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    delta: float,
    floor: float,
    episodes: int,
    worlds: int,
) -> Columns:
    """The first pseudo-episodes in several worlds, one world after the other."""
    steps = steps_for(episodes, discount)
    runs = [
        replicate_optimism(
            n_states, n_actions, steps, delta=delta, floor=floor, discount=discount, rng=stream
        )
        for stream in independent_streams(seed, worlds)
    ]
    fewest = min(map(len, runs))
    if fewest < episodes:
        raise InvalidInputError(
            f"episodes must begin within {steps} steps; only {fewest} of {episodes} did"
        )
    reports = [report for run in runs for report in run[:episodes]]
    return {
        "episode": np.array([report.episode for report in reports]),
        "event": np.array([report.event for report in reports]),
        "optimistic": np.array([report.optimistic for report in reports]),
        "robust_optimistic": np.array([report.robust_optimistic for report in reports]),
        "stated_probability": np.array([report.stated_probability for report in reports]),
        "union_probability": np.array([report.union_probability for report in reports]),
        "event_probability": np.array([report.event_probability for report in reports]),
        "episodes_begun": np.repeat([len(run) for run in runs], episodes),
    }


PROGRAM = Program(
    _replicate,
    {
        "n_states": REQUIRED,
        "n_actions": REQUIRED,
        "discount": REQUIRED,
        "delta": REQUIRED,
        "floor": 0.2,
        "episodes": 40,
        "worlds": 10,
    },
)


def _case(name: str, delta: float) -> Computation:
    parameters: dict[str, Any] = {"n_states": 3, "n_actions": 2, "discount": 0.8, "delta": delta}
    return Computation(name, "optimism", parameters)


EXPERIMENT = Experiment(
    "optimism",
    "Optimism of the adaptive schedule",
    (
        _case("delta-0.1", 0.1),
        _case("delta-0.2", 0.2),
        _case("delta-balanced", balanced_delta(3, 2)),
        _case("delta-5", 5.0),
    ),
    runs=100,
)
