"""The lemmas behind the regret bounds.

Quantile deviation, both value decompositions, and the number of pseudo-episodes.

*deviation*: Dirichlet rows as data leave them, their exact quantiles and tails against the stated
bounds; values are spread over [0, R], or stand at its ends, where the law of w·P is widest.
*decomposition*: random worlds, posteriors, policies and levels; both sides of both lemmas exactly,
and their averages over simulated pseudo-episodes. *episodes*: K_T, counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from brmdp import dirichlet
from brmdp._streams import independent_streams
from brmdp._validation import FloatArray, as_level, as_positive_int
from brmdp.beliefs import DirichletBelief
from brmdp.errors import InvalidInputError
from brmdp.runs.program import REQUIRED, Columns, Program
from brmdp.runs.spec import Computation, Experiment, require_known
from brmdp.theory import (
    ValueDecomposition,
    count_episodes,
    dirichlet_tail_bound,
    draw_mdp,
    quantile_deviation_bounds,
    robust_value_decomposition,
    sample_decomposition,
    value_decomposition,
)

__all__ = ["EXPERIMENT", "LEVELS", "PROGRAMS", "decompositions", "random_rows"]

LEVELS = (1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0 - 1e-4)
"""At which every row is looked at."""

SUCCESSORS = (2, 50)
PRIOR = (0.1, 1.0)
OBSERVATIONS = (0.1, 1e4)
"""Ends of the logarithmic scales from which rows are drawn.

Observations are rounded down, so that some rows have none.
"""

FARTHEST = 2.0
"""Largest distance from the mean at which tails are looked at, in R/√(φ₀ + 1).

Four of the largest standard deviations of w·P.
"""


class Rows(NamedTuple):
    """Dirichlet rows: (rows, n) concentrations, zero where there is no successor.

    Values; their range R, (rows,).
    """

    concentration: FloatArray
    values: FloatArray
    value_range: FloatArray


def random_rows(rng: np.random.Generator, rows: int, values: str) -> Rows:
    """Rows as data leave them.

    A symmetric prior, and multinomial counts from a kernel drawn from it.

    Parameters
    ----------
    rng : numpy.random.Generator
    rows : int
    values : {"uniform", "extreme"}
        Uniform on [0, R], or at the ends of it, both of them taken. R = 1/(1 − γ) for γ uniform on
        [0, 0.99].
    """
    require_known(values, ("uniform", "extreme"), "values")
    count, widest = as_positive_int(rows, "rows"), SUCCESSORS[1]
    concentration, unit = np.zeros((count, widest)), np.zeros((count, widest))
    for row in range(count):
        n, prior, observations = (
            _log_uniform(rng, *ends) for ends in (SUCCESSORS, PRIOR, OBSERVATIONS)
        )
        successors = round(n)
        kernel = rng.dirichlet(np.full(successors, prior))
        concentration[row, :successors] = prior + rng.multinomial(int(observations), kernel)
        unit[row, :successors] = rng.random(successors)
    if values == "extreme":
        unit = np.round(unit)
        unit[:, :2] = 0.0, 1.0
    value_range = 1.0 / (1.0 - rng.uniform(0.0, 0.99, count))
    return Rows(concentration, unit * value_range[:, None], value_range)


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _deviation(seed: np.random.SeedSequence, *, rows: int, values: str) -> Columns:
    """Quantiles of random rows at all levels, and their tails at a random distance for each.

    Beside the bounds.
    """
    rng = np.random.default_rng(seed)
    phi, w, sizes = random_rows(rng, rows, values)
    total = phi.sum(axis=1)
    mean = (phi * w).sum(axis=1) / total
    shape = (len(total), len(LEVELS))
    size, levels = np.broadcast_to(sizes[:, None], shape), np.broadcast_to(LEVELS, shape)
    # bounds are proportional to the range
    bounds = quantile_deviation_bounds(total[:, None], levels)
    # 1 − u, as no distance may be zero
    distance = FARTHEST * (1.0 - rng.random(shape)) * size / np.sqrt(total[:, None] + 1.0)
    each = (phi[:, None, :], w[:, None, :])
    columns = {
        "successors": np.broadcast_to((phi > 0.0).sum(axis=1)[:, None], shape),
        "total_concentration": np.broadcast_to(total[:, None], shape),
        "value_range": size,
        "level": levels,
        "deviation": dirichlet.quantile(*each, levels) - mean[:, None],
        "bound_above": size * bounds.above,
        "bound_below": size * bounds.below,
        "distance": distance,
        "tail_above": dirichlet.cdf(*each, mean[:, None] + distance, complement=True),
        "tail_below": dirichlet.cdf(*each, mean[:, None] - distance),
        "tail_bound": dirichlet_tail_bound(total[:, None], distance / size),
    }
    return {name: column.reshape(-1) for name, column in columns.items()}


def decompositions(
    rng: np.random.Generator, n_states: int, n_actions: int, discount: float
) -> tuple[ValueDecomposition, ValueDecomposition]:
    """Both lemmas for a random world, its posterior after some data, and a random policy.

    Floor and levels above the floor.

    Rewards r(s,a,s') are uniform on [0, 1]; pairs have from none to some hundred observations.
    """
    states, actions = as_positive_int(n_states, "n_states"), as_positive_int(n_actions, "n_actions")
    rewards = rng.random((states, actions, states))
    truth = draw_mdp(states, actions, discount, rewards=rewards, rng=rng)
    visits = np.floor(10.0 ** rng.uniform(-1.0, 2.5, (states, actions))).astype(np.int64)
    posterior = DirichletBelief(1.0 + rng.multinomial(visits, truth.kernel()))
    policy = rng.integers(0, actions, states)
    floor = float(rng.uniform(0.05, 0.3))
    levels = rng.uniform(floor, 0.95, (states, actions))
    return (
        value_decomposition(truth, posterior, policy, levels),
        robust_value_decomposition(truth, posterior, policy, levels, floor),
    )


def _decomposition(
    seed: np.random.SeedSequence,
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    worlds: int,
    samples: int,
) -> Columns:
    """Both lemmas in several worlds, one row for each lemma.

    Pseudo-episodes begin in the first state.
    """
    # without discount a pseudo-episode has one step, and nothing is left to sample
    gamma = as_level(discount, "discount")
    found = []
    for stream in independent_streams(seed, as_positive_int(worlds, "worlds")):
        for robust, lemma in enumerate(decompositions(stream, n_states, n_actions, gamma)):
            left, right = sample_decomposition(lemma, 0, samples, rng=stream)
            found.append(
                {
                    "robust": robust == 1,
                    "left": lemma.left[0],
                    "right": lemma.right[0],
                    "identity_error": np.abs(lemma.left - lemma.right).max(),
                    **_mean_and_error("left", left),
                    **_mean_and_error("right", right),
                    **_mean_and_error("gap", left - right),
                }
            )
    return {name: np.array([row[name] for row in found]) for name in found[0]}


def _mean_and_error(name: str, sums: FloatArray) -> dict[str, Any]:
    if np.ptp(sums) == 0.0:
        raise InvalidInputError(
            f"samples must be so many that pseudo-episodes differ; got {sums.size}, and all have "
            "the same sum"
        )
    return {f"{name}_sampled": sums.mean(), f"{name}_error": sums.std(ddof=1) / np.sqrt(sums.size)}


def _episodes(
    seed: np.random.SeedSequence, *, steps: int, discount: float, repetitions: int
) -> Columns:
    """K_T, several times."""
    rng = np.random.default_rng(seed)
    count = as_positive_int(repetitions, "repetitions")
    return {"episodes": np.array([count_episodes(steps, discount, rng=rng) for _ in range(count)])}


PROGRAMS: dict[str, Program] = {
    "quantile-deviation": Program(_deviation, {"rows": 100, "values": REQUIRED}),
    "value-decomposition": Program(
        _decomposition,
        {
            "n_states": REQUIRED,
            "n_actions": REQUIRED,
            "discount": REQUIRED,
            "worlds": 10,
            "samples": 5000,
        },
    ),
    "episode-count": Program(
        _episodes, {"steps": REQUIRED, "discount": REQUIRED, "repetitions": 50}
    ),
}
"""By name."""

_WORLDS = ((3, 2, 0.5), (6, 3, 0.8), (12, 2, 0.9), (6, 2, 0.95))
_HORIZONS = ((10, 0.5), (100, 0.9), (1000, 0.9), (1000, 0.99))

EXPERIMENT = Experiment(
    "lemmas",
    "Lemmas behind the regret bounds",
    (
        *(
            Computation(f"deviation-{values}", "quantile-deviation", {"values": values})
            for values in ("uniform", "extreme")
        ),
        *(
            Computation(
                f"decomposition-{states}-{actions}-{discount}",
                "value-decomposition",
                {"n_states": states, "n_actions": actions, "discount": discount},
            )
            for states, actions, discount in _WORLDS
        ),
        *(
            Computation(
                f"episodes-{steps}-{discount}",
                "episode-count",
                {"steps": steps, "discount": discount},
            )
            for steps, discount in _HORIZONS
        ),
    ),
    runs=100,
)
