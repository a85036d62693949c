"""Optimism of the adaptive schedule.

AQ-BRMDP learns in worlds drawn from its prior, and the dual-benchmark lemma is checked at every
plan. The same runs count pseudo-episodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from brmdp._streams import independent_streams
from brmdp._validation import BoolArray, FloatArray, IntArray, as_positive_int
from brmdp.errors import InvalidInputError
from brmdp.runs import REQUIRED, Columns, Computation, Experiment, Program, column
from brmdp.theory import balanced_delta, replicate_optimism

__all__ = ["EXPERIMENT", "OPTIMISM", "OptimismColumns", "steps_for"]

SPARE_DEVIATIONS = 6.0
"""How far a run's steps exceed the mean number needed, in standard deviations of that number."""


@dataclass(frozen=True, eq=False)
class OptimismColumns(Columns):
    """One row per pseudo-episode, one world after the other."""

    episode: IntArray = column("number k of the pseudo-episode, from 1")
    event: BoolArray = column("whether the event G_k occurs for the true kernel")
    optimistic: BoolArray = column("whether V* ≤ V_k in all states")
    robust_optimistic: BoolArray = column("whether V*_{φ_k,α̲} ≤ V_k in all states")
    stated_probability: FloatArray = column(
        "lower bound 1 − δSA ln(2k)/√k on the probability of G_k; may be negative"
    )
    union_probability: FloatArray = column("union bound 1 − Σ (1 − α_k(s,a)) on that probability")
    event_probability: FloatArray = column("posterior probability Π α_k(s,a) of G_k")
    episodes_begun: IntArray = column("pseudo-episodes begun in this world within all its steps")


def steps_for(episodes: int, discount: float) -> int:
    """Number of steps within which that many pseudo-episodes almost certainly begin.

    Fewer begin with probability below 10⁻⁴; from 40 pseudo-episodes on, below 10⁻⁶.
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
) -> OptimismColumns:
    """The first pseudo-episodes of several worlds."""
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
            f"episodes must all begin within {steps} steps; in one world only {fewest} of "
            f"{episodes} did"
        )
    return OptimismColumns.of_rows(
        {**vars(report), "episodes_begun": len(run)} for run in runs for report in run[:episodes]
    )


OPTIMISM = Program(
    _replicate,
    OptimismColumns,
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
    return Computation(name, f"{__name__}:OPTIMISM", parameters)


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
