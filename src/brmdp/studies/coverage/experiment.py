"""Coverage of the certified bound (Proposition 1) in random worlds.

Each case changes a single parameter of a common setting (:data:`BASE`). Worlds are drawn from the
prior, and observations of each give a belief. Coverage is a posterior probability, so it is sampled
anew for every belief.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from brmdp._streams import independent_streams
from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.runs import REQUIRED, Columns, Computation, Experiment, Program, column
from brmdp.theory import replicate_coverage

__all__ = ["BASE", "COVERAGE", "EXPERIMENT", "CoverageColumns"]


@dataclass(frozen=True, eq=False)
class CoverageColumns(Columns):
    """One row per world; bounds and values are means over states."""

    coverage: FloatArray = column("share of posterior draws in which all certified bounds hold")
    held_in_truth: BoolArray = column("whether all certified bounds hold in the true world")
    certified: FloatArray = column("bound certified by Proposition 1, at level ᾱ")
    union_of_states: FloatArray = column("bound at the union level α/S")
    union_of_pairs: FloatArray = column("bound at the union level α/(SA)")
    quantile: FloatArray = column("posterior α-quantile of the policy's value, sampled")
    states_above_quantile: IntArray = column(
        "number of states whose bound exceeds the whole interval of the sampled quantile"
    )
    true_value: FloatArray = column("the policy's value in the true world")


def _replicate(
    seed: np.random.SeedSequence,
    *,
    n_states: int,
    n_actions: int,
    observations_per_pair: int,
    discount: float,
    confidence: float,
    worlds: int,
    samples: int,
) -> CoverageColumns:
    """Certify several random worlds, one row each."""
    reports = [
        replicate_coverage(
            n_states,
            n_actions,
            confidence,
            observations=observations_per_pair * n_states * n_actions,
            discount=discount,
            samples=samples,
            rng=stream,
        )
        for stream in independent_streams(seed, worlds)
    ]
    return CoverageColumns.of_rows(
        {
            "coverage": report.certified.coverage,
            "held_in_truth": report.held_in_truth,
            "certified": report.certified.values.mean(),
            "union_of_states": report.union_of_states.values.mean(),
            "union_of_pairs": report.union_of_pairs.values.mean(),
            "quantile": report.quantile.values.mean(),
            "states_above_quantile": int((report.certified.values > report.quantile.upper).sum()),
            "true_value": report.true_values.mean(),
        }
        for report in reports
    )


COVERAGE = Program(
    _replicate,
    CoverageColumns,
    {
        "n_states": REQUIRED,
        "n_actions": REQUIRED,
        "observations_per_pair": REQUIRED,
        "discount": REQUIRED,
        "confidence": REQUIRED,
        "worlds": 10,
        "samples": 1000,
    },
)

BASE: dict[str, Any] = {
    "n_states": 6,
    "n_actions": 3,
    "observations_per_pair": 20,
    "discount": 0.9,
    "confidence": 0.9,
}
"""The common setting; every case but "base" changes one of these parameters."""

_VARIED: dict[str, tuple[float, ...]] = {
    "discount": (0.1, 0.3, 0.5, 0.7, 0.97),
    "n_states": (2, 12, 24),
    "n_actions": (1, 6, 12),
    "observations_per_pair": (1, 5, 100, 500),
    "confidence": (0.5, 0.75, 0.99),
}


def _case(name: str, **changes: Any) -> Computation:
    parameters = {**BASE, **changes}
    # half the runs where a world costs five times as much
    return Computation(
        name, f"{__name__}:COVERAGE", parameters, max_runs=50 if parameters["n_states"] > 12 else 0
    )


EXPERIMENT = Experiment(
    "coverage",
    "Coverage of the certified bound",
    (
        _case("base"),
        *(
            _case(f"{key.replace('_', '-')}-{value:g}", **{key: value})
            for key, values in _VARIED.items()
            for value in values
        ),
    ),
    runs=100,
)
