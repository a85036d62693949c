"""The lemmas behind the regret bounds: deviations, value decompositions, pseudo-episodes.

*deviation*: exact quantiles and tails of Dirichlet rows of beliefs after observations, against the
stated bounds. Values are spread over [0, R], or placed at its ends, where the distribution of w·P
is widest. *decomposition*: random worlds, beliefs, policies and levels; both sides of both lemmas,
exactly and as averages over simulated pseudo-episodes. *episodes*: K_T, counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from brmdp import dirichlet
from brmdp._streams import independent_streams
from brmdp._validation import BoolArray, FloatArray, IntArray, as_level, as_positive_int
from brmdp.beliefs import DirichletBelief
from brmdp.errors import InvalidInputError
from brmdp.runs import REQUIRED, Columns, Computation, Experiment, Program, column
from brmdp.runs.spec import require_known
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

__all__ = [
    "DECOMPOSITION",
    "DEVIATION",
    "EPISODE_COUNT",
    "EXPERIMENT",
    "LEVELS",
    "DecompositionColumns",
    "DeviationColumns",
    "EpisodeColumns",
    "Rows",
    "decompositions",
    "random_rows",
]

LEVELS = (1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0 - 1e-4)
"""Levels at which each row is checked."""

SUCCESSORS = (2, 50)
PRIOR = (0.1, 1.0)
OBSERVATIONS = (0.1, 1e4)
"""Ends of the logarithmic scales from which rows are drawn.

Numbers of observations are rounded down, so that some rows have none.
"""

FARTHEST = 2.0
"""Largest distance from the mean at which tails are checked, in units of R/√(φ₀ + 1).

This is four times the largest standard deviation that w·P can have.
"""


# --- deviation ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DeviationColumns(Columns):
    """One row per Dirichlet row and level."""

    successors: IntArray = column("number of successors of the Dirichlet row")
    total_concentration: FloatArray = column("total concentration φ₀ of the Dirichlet row")
    value_range: FloatArray = column("range R = 1/(1 − γ) of the values")
    level: FloatArray = column("level α of the quantile")
    deviation: FloatArray = column("quantile of w·P minus its mean")
    bound_above: FloatArray = column("the lemma's bound on the quantile minus the mean")
    bound_below: FloatArray = column("the lemma's bound on the mean minus the quantile")
    distance: FloatArray = column("distance ε from the mean at which the tails are taken")
    tail_above: FloatArray = column("probability that w·P exceeds its mean by more than ε")
    tail_below: FloatArray = column("probability that w·P falls short of its mean by more than ε")
    tail_bound: FloatArray = column("bound exp(−φ₀ε²/(2R²)) on each tail")


class Rows(NamedTuple):
    """Dirichlet rows.

    Attributes
    ----------
    concentration : (rows, n) array
        Concentrations, zero where there is no successor.
    values : (rows, n) array
        Values of the successors.
    value_range : (rows,) array
        Ranges R of the values.
    """

    concentration: FloatArray
    values: FloatArray
    value_range: FloatArray


def random_rows(rows: int, values: str, *, rng: np.random.Generator) -> Rows:
    """Rows after observations: a symmetric prior plus counts from a kernel drawn from it.

    Parameters
    ----------
    rows : int
        Number of rows.
    values : {"uniform", "extreme"}
        Uniform on [0, R], or at its ends, with both ends taken. R = 1/(1 − γ) for γ uniform on
        [0, 0.99].
    rng : numpy.random.Generator
        Source of randomness.
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


def _deviation(seed: np.random.SeedSequence, *, rows: int, values: str) -> DeviationColumns:
    """Quantiles of random rows at all levels, and tails at one random distance per level."""
    rng = np.random.default_rng(seed)
    phi, w, sizes = random_rows(rows, values, rng=rng)
    total = phi.sum(axis=1)
    mean = (phi * w).sum(axis=1) / total
    shape = (len(total), len(LEVELS))
    size, levels = np.broadcast_to(sizes[:, None], shape), np.broadcast_to(LEVELS, shape)
    # bounds are proportional to the range
    bounds = quantile_deviation_bounds(total[:, None], levels)
    # 1 − u, as no distance may be zero
    distance = FARTHEST * (1.0 - rng.random(shape)) * size / np.sqrt(total[:, None] + 1.0)
    each = (phi[:, None, :], w[:, None, :])
    return DeviationColumns(
        successors=np.broadcast_to((phi > 0.0).sum(axis=1)[:, None], shape),
        total_concentration=np.broadcast_to(total[:, None], shape),
        value_range=size,
        level=levels,
        deviation=dirichlet.quantile(*each, levels) - mean[:, None],
        bound_above=size * bounds.above,
        bound_below=size * bounds.below,
        distance=distance,
        tail_above=dirichlet.cdf(*each, mean[:, None] + distance, complement=True),
        tail_below=dirichlet.cdf(*each, mean[:, None] - distance),
        tail_bound=np.asarray(dirichlet_tail_bound(total[:, None], distance / size)),
    ).flat()


# --- decomposition --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DecompositionColumns(Columns):
    """One row per world and lemma; pseudo-episodes begin in state 0."""

    robust: BoolArray = column("whether the lemma is the one about the robust benchmark")
    left: FloatArray = column("left side of the lemma, exactly")
    right: FloatArray = column("right side of the lemma, exactly")
    identity_error: FloatArray = column(
        "largest difference between the two sides over all first states"
    )
    left_sampled: FloatArray = column("left side, averaged over simulated pseudo-episodes")
    left_error: FloatArray = column("standard error of that average")
    right_sampled: FloatArray = column("right side, averaged over simulated pseudo-episodes")
    right_error: FloatArray = column("standard error of that average")
    gap_sampled: FloatArray = column("left minus right side, averaged over the same simulations")
    gap_error: FloatArray = column("standard error of that average")


def decompositions(
    n_states: int, n_actions: int, discount: float, *, rng: np.random.Generator
) -> tuple[ValueDecomposition, ValueDecomposition]:
    """Both lemmas for a random world, belief, policy, floor and levels above the floor.

    Rewards r(s,a,s') are uniform on [0, 1]. The belief is the uniform prior after data from the
    world, from none to a few hundred observations of each pair.
    """
    states, actions = as_positive_int(n_states, "n_states"), as_positive_int(n_actions, "n_actions")
    rewards = rng.random((states, actions, states))
    truth = draw_mdp(states, actions, discount, rewards=rewards, rng=rng)
    visits = np.floor(10.0 ** rng.uniform(-1.0, 2.5, (states, actions))).astype(np.int64)
    belief = DirichletBelief(1.0 + rng.multinomial(visits, truth.kernel()))
    policy = rng.integers(0, actions, states)
    floor = float(rng.uniform(0.05, 0.3))
    levels = rng.uniform(floor, 0.95, (states, actions))
    return (
        value_decomposition(truth, belief, policy, levels),
        robust_value_decomposition(truth, belief, policy, levels, floor),
    )


def _decomposition(
    seed: np.random.SeedSequence,
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    worlds: int,
    samples: int,
) -> DecompositionColumns:
    """Both lemmas in several worlds."""
    # without discount a pseudo-episode has one step, and nothing is left to sample
    gamma = as_level(discount, "discount")
    rows = []
    for stream in independent_streams(seed, as_positive_int(worlds, "worlds")):
        both = decompositions(n_states, n_actions, gamma, rng=stream)
        for robust, lemma in zip((False, True), both, strict=True):
            left, right = sample_decomposition(lemma, 0, samples, rng=stream)
            rows.append(
                {
                    "robust": robust,
                    "left": lemma.left[0],
                    "right": lemma.right[0],
                    "identity_error": np.abs(lemma.left - lemma.right).max(),
                    **_mean_and_error("left", left),
                    **_mean_and_error("right", right),
                    **_mean_and_error("gap", left - right),
                }
            )
    return DecompositionColumns.of_rows(rows)


def _mean_and_error(name: str, sums: FloatArray) -> dict[str, Any]:
    if np.ptp(sums) == 0.0:
        raise InvalidInputError(
            f"samples must be large enough for pseudo-episodes to differ; got {sums.size}, all "
            "with the same sum"
        )
    return {f"{name}_sampled": sums.mean(), f"{name}_error": sums.std(ddof=1) / np.sqrt(sums.size)}


# --- episodes -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EpisodeColumns(Columns):
    """One row per repetition."""

    episodes: IntArray = column("pseudo-episodes K_T that begin within T steps")


def _episodes(
    seed: np.random.SeedSequence, *, steps: int, discount: float, repetitions: int
) -> EpisodeColumns:
    """K_T, counted several times."""
    rng = np.random.default_rng(seed)
    count = as_positive_int(repetitions, "repetitions")
    return EpisodeColumns(
        np.array([count_episodes(steps, discount, rng=rng) for _ in range(count)])
    )


# --- the experiment -------------------------------------------------------------------------------

DEVIATION = Program(_deviation, DeviationColumns, {"rows": 100, "values": REQUIRED})

DECOMPOSITION = Program(
    _decomposition,
    DecompositionColumns,
    {
        "n_states": REQUIRED,
        "n_actions": REQUIRED,
        "discount": REQUIRED,
        "worlds": 10,
        "samples": 5000,
    },
)

EPISODE_COUNT = Program(
    _episodes, EpisodeColumns, {"steps": REQUIRED, "discount": REQUIRED, "repetitions": 50}
)

_WORLDS = ((3, 2, 0.5), (6, 3, 0.8), (12, 2, 0.9), (6, 2, 0.95))
_HORIZONS = ((10, 0.5), (100, 0.9), (1000, 0.9), (1000, 0.99))

EXPERIMENT = Experiment(
    "lemmas",
    "Lemmas behind the regret bounds",
    (
        *(
            Computation(f"deviation-{values}", f"{__name__}:DEVIATION", {"values": values})
            for values in ("uniform", "extreme")
        ),
        *(
            Computation(
                f"decomposition-{states}-{actions}-{discount}",
                f"{__name__}:DECOMPOSITION",
                {"n_states": states, "n_actions": actions, "discount": discount},
            )
            for states, actions, discount in _WORLDS
        ),
        *(
            Computation(
                f"episodes-{steps}-{discount}",
                f"{__name__}:EPISODE_COUNT",
                {"steps": steps, "discount": discount},
            )
            for steps, discount in _HORIZONS
        ),
    ),
    runs=100,
)
