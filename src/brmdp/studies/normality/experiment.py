"""Asymptotic normality (Theorem 1) and the sample sizes planned from it, by simulation.

*normality*: quantile values after on-policy trajectories of growing length, in random ergodic MDPs
and, as the hard case, in RiverSwim-6 when always going right, which hardly ever visits the left
states. *sample-size*: a plan is made from some observations; then data are collected as planned
until caution costs no more than ε.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from brmdp._streams import independent_streams
from brmdp._validation import FloatArray, IntArray, as_level, as_positive_int
from brmdp.beliefs import DirichletBelief
from brmdp.envs import riverswim
from brmdp.envs.riverswim import RIGHT
from brmdp.errors import InvalidInputError
from brmdp.runs import REQUIRED, Columns, Computation, Experiment, Program, column
from brmdp.runs.spec import require_known
from brmdp.theory import (
    ErgodicProblem,
    SampleSizePlan,
    exact_caution_cost,
    observations_needed,
    random_ergodic_mdp,
    replicate_normality,
)
from brmdp.theory.chains import policy_matrix, transition_counts

__all__ = [
    "EXPERIMENT",
    "LEVELS",
    "NORMALITY",
    "PLANNED_STATE",
    "SAMPLE_SIZE",
    "NormalityColumns",
    "SampleSizeColumns",
    "problem",
]

LEVELS = (0.05, 0.2, 0.5, 0.8, 0.95)
STEPS = (100, 1_000, 10_000, 100_000)
WORLD_SEEDS = (1, 2, 3)
OBSERVED = (10, 100, 1_000)

STATES, ACTIONS, RIVER = 5, 2, 6
WORLDS = ("random", "riverswim")
WAYS = ("policy", "pairs")

PLANNED_STATE = 0
"""State at which the cost of caution is measured."""

SEARCHED = 0.01
"""Relative accuracy to which the number of observations needed is searched for."""


def problem(world: str, world_seed: int) -> ErgodicProblem:
    """A random ergodic MDP with a random policy, or RiverSwim-6 with always going right.

    Parameters
    ----------
    world : {"random", "riverswim"}
        A random MDP has five states and two actions.
    world_seed : int
        Seed of a random world; RiverSwim does not use it.
    """
    require_known(world, WORLDS, "world")
    if world == "riverswim":
        return ErgodicProblem(riverswim(RIVER), np.full(RIVER, RIGHT))
    return random_ergodic_mdp(STATES, ACTIONS, rng=np.random.default_rng(world_seed))


def _several(replications: int) -> int:
    """At least two, so that each run has a variance."""
    count = as_positive_int(replications, "replications")
    if count < 2:
        raise InvalidInputError(f"replications must be at least 2; got {replications!r}")
    return count


# --- the limit ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NormalityColumns(Columns):
    """One row per replication, level and state."""

    replication: IntArray = column("number of the replication within the run, from 0")
    level: FloatArray = column("level α of the quantile value")
    state: IntArray = column("state")
    deviation: FloatArray = column("√N (V_{φ,α} − V), the scaled error of the quantile value")


def _normality(
    seed: np.random.SeedSequence,
    *,
    world: str,
    world_seed: int,
    steps: int,
    levels: list[float],
    replications: int,
) -> NormalityColumns:
    """√N (V_{φ,α} − V) after independent trajectories, at every level and state.

    Longer trajectories of the same seed begin with the shorter ones.
    """
    mdp, policy = problem(world, world_seed)
    streams = independent_streams(seed, _several(replications))
    deviations = np.stack(
        [replicate_normality(mdp, policy, steps, levels, rng=stream) for stream in streams]
    )
    replication, level, state = np.unravel_index(np.arange(deviations.size), deviations.shape)
    return NormalityColumns(replication, np.asarray(levels)[level], state, deviations.reshape(-1))


# --- sample sizes ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SampleSizeColumns(Columns):
    """One row per plan."""

    predicted: IntArray = column("further observations that the plan asks for")
    needed: IntArray = column("further observations after which caution costs no more than ε")
    cost_ratio: FloatArray = column("cost of caution after the planned observations, over ε")


def _sample_size(
    seed: np.random.SeedSequence,
    *,
    world: str,
    world_seed: int,
    way: str,
    observed: int,
    alpha: float,
    share: float,
    replications: int,
) -> SampleSizeColumns:
    """Plans made after ``observed`` transitions of every pair, and what was needed in the end.

    ε is a ``share`` of what caution costs when the plan is made.
    """
    require_known(way, WAYS, "way")
    made = problem(world, world_seed)
    return SampleSizeColumns.of_rows(
        _one_plan(
            made, fate, way, as_positive_int(observed, "observed"), alpha, as_level(share, "share")
        )
        for fate in seed.spawn(_several(replications))
    )


def _one_plan(
    made: ErgodicProblem,
    fate: np.random.SeedSequence,
    way: str,
    observed: int,
    alpha: float,
    share: float,
) -> dict[str, float]:
    mdp, policy = made
    states = np.arange(mdp.n_states)
    first, *later = fate.spawn(1 + mdp.n_states)
    known = np.ones((mdp.n_states, mdp.n_actions, mdp.n_states))
    known[states, policy] += np.random.default_rng(first).multinomial(
        observed, policy_matrix(mdp, policy)
    )

    def cost(counts: IntArray) -> float:
        """Cost of caution once these (S, S) transitions are added to what is known."""
        grown = known.copy()
        grown[states, policy] += counts
        found = exact_caution_cost(DirichletBelief(grown), mdp.rewards, mdp.discount, policy, alpha)
        return float(found[PLANNED_STATE])

    epsilon = share * cost(np.zeros((mdp.n_states, mdp.n_states), dtype=np.int64))
    plan = observations_needed(
        DirichletBelief(known), mdp.rewards, mdp.discount, policy, alpha, PLANNED_STATE, epsilon
    )
    predicted, collected = _collection(made, plan, way, later)
    return {
        "predicted": predicted,
        "needed": _reached(lambda n: cost(collected(n)) <= epsilon, predicted),
        "cost_ratio": cost(collected(predicted)) / epsilon,
    }


def _collection(
    made: ErgodicProblem, plan: SampleSizePlan, way: str, fates: list[np.random.SeedSequence]
) -> tuple[int, Callable[[int], IntArray]]:
    """The planned number of observations, and the (S, S) transitions after the first n of them."""
    mdp, policy = made
    if way == "policy":
        assert plan.on_policy_steps is not None
        # a trajectory begins with the shorter ones of the same seed
        return plan.on_policy_steps, lambda n: transition_counts(
            mdp, policy, n, rng=np.random.default_rng(fates[0])
        )
    rows = policy_matrix(mdp, policy)

    def pairs(n: int) -> IntArray:
        parts = np.ceil(plan.cheapest * (n / plan.cheapest_total)).astype(np.int64)
        drawn = [
            np.random.default_rng(fate).choice(len(row), part, p=row)
            for fate, row, part in zip(fates, rows, parts, strict=True)
        ]
        return np.stack([np.bincount(successors, minlength=len(rows)) for successors in drawn])

    return plan.cheapest_total, pairs


def _reached(enough: Callable[[int], bool], guess: int) -> int:
    """The number of observations that is just enough, to a relative accuracy of :data:`SEARCHED`.

    The search begins at the guess.
    """
    high = guess
    while not enough(high):
        high *= 2
    low = high // 2
    while low > 0 and enough(low):
        low, high = low // 2, low
    while high - low > max(1.0, SEARCHED * high):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


# --- the experiment -------------------------------------------------------------------------------

NORMALITY = Program(
    _normality,
    NormalityColumns,
    {
        "world": "random",
        "world_seed": 0,
        "steps": REQUIRED,
        "levels": list(LEVELS),
        "replications": 50,
    },
)

SAMPLE_SIZE = Program(
    _sample_size,
    SampleSizeColumns,
    {
        "world": "random",
        "world_seed": 0,
        "way": REQUIRED,
        "observed": REQUIRED,
        "alpha": 0.1,
        "share": 0.3,
        "replications": 10,
    },
)

_RANDOM = {f"random-{seed}": {"world": "random", "world_seed": seed} for seed in WORLD_SEEDS}
_RIVER = {f"riverswim-{RIVER}": {"world": "riverswim"}}
# going right hardly ever visits the left of the river, so a trajectory is no way to sample it
_PLANNED = [(name, way) for name in list(_RANDOM)[:2] for way in WAYS] + [
    (name, "pairs") for name in _RIVER
]

EXPERIMENT = Experiment(
    "normality",
    "Asymptotic normality of the quantile value",
    (
        *(
            Computation(f"{name}/{steps}", f"{__name__}:NORMALITY", {**world, "steps": steps})
            for name, world in (_RANDOM | _RIVER).items()
            for steps in STEPS
        ),
        *(
            Computation(
                f"sample-size/{name}/{way}/{observed}",
                f"{__name__}:SAMPLE_SIZE",
                {**(_RANDOM | _RIVER)[name], "way": way, "observed": observed},
                max_runs=10,
            )
            for name, way in _PLANNED
            for observed in OBSERVED
        ),
    ),
    runs=40,
)
