"""Batch methods side by side: bounds, promises kept, and true values over many logs.

A case is a world and the size of a log. Each run makes one log by following today's *practice* in
the true world, which is known to the methods that need a baseline, and gives the belief after it to
all methods. The prior is uniform over the successors that are possible in the world, which are
known; only *garnet* is drawn from it.

Settings were chosen beforehand, from the sources where they name one: N∧ = 10 and ε = 1 for the
methods with a baseline, λ = ½ and a tail of 10 % over 200 draws for the soft-robust objective.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from brmdp import batch, envs
from brmdp._streams import independent_streams
from brmdp._validation import FloatArray, IntArray
from brmdp.batch import Batch, BatchPlan
from brmdp.beliefs import Belief, DirichletBelief, DisturbanceBelief, DisturbanceRewards
from brmdp.decisions import values_in_draws
from brmdp.mdp import TabularMDP
from brmdp.planning import evaluate_in_mdp, solve
from brmdp.runs import REQUIRED, Columns, Computation, Experiment, Program, column

__all__ = ["BATCH", "CONFIDENCE", "EXPERIMENT", "METHODS", "WORLDS", "BatchColumns"]

CONFIDENCE = 0.9

Method = Callable[[Batch, np.random.Generator], BatchPlan]

METHODS: dict[str, Method] = {
    "mean": lambda one, _: batch.mean(one),
    "sampled": lambda one, rng: batch.sampled_certificate(one, CONFIDENCE, rng=rng),
    "nested": lambda one, _: batch.nested_quantile(one, CONFIDENCE),
    "VaR": lambda one, _: batch.value_at_risk(one, CONFIDENCE),
    "RSVF": lambda one, _: batch.rsvf(one, CONFIDENCE),
    "BCR": lambda one, rng: batch.credible_sets(one, CONFIDENCE, rng=rng),
    "BCR weighted": lambda one, rng: batch.credible_sets(one, CONFIDENCE, weighted=True, rng=rng),
    "BCR global": lambda one, rng: batch.credible_sets(one, CONFIDENCE, scope="global", rng=rng),
    "Hoeffding": lambda one, _: batch.hoeffding_sets(one, CONFIDENCE),
    "soft-robust": lambda one, rng: batch.soft_robust(one, rng=rng),
    "SPIBB": lambda one, _: batch.spibb(one, CONFIDENCE),
    "SPIBB ≤b": lambda one, _: batch.spibb(one, CONFIDENCE, variant="<=b"),
    "Soft-SPIBB": lambda one, _: batch.soft_spibb(one, CONFIDENCE),
}
"""The methods, in the order of their rows."""


@dataclass(frozen=True, eq=False)
class BatchColumns(Columns):
    """One row per log and method; bounds and values are those at the start of the world."""

    method: NDArray[np.str_] = column("which method")
    promise: NDArray[np.str_] = column("what its bound promises")
    bound: FloatArray = column("lower bound at the start; NaN without one")
    coverage: FloatArray = column("share of posterior draws in which the bound holds, or NaN")
    judging_draws: IntArray = column("number of those draws")
    held: FloatArray = column("1 if the bound holds in the true world, 0 if not, or NaN")
    true_value: FloatArray = column("true value of the policy")
    practice: FloatArray = column("true value of the practice that made the log")
    optimum: FloatArray = column("optimal value in the true world")
    seconds: FloatArray = column("processor time")


class _Logged(NamedTuple):
    """A true world, the practice there, and what a log of it taught."""

    world: TabularMDP
    practice: FloatArray
    rewards: Any
    belief: Belief
    counts: FloatArray


def _mixed(world: TabularMDP, actions: IntArray, shares: float) -> FloatArray:
    """These actions, but any admissible one with the probability ``shares``."""
    even = world.admissible / world.admissible.sum(axis=1, keepdims=True)
    mixed: FloatArray = (1.0 - shares) * np.eye(world.n_actions)[actions] + shares * even
    return mixed


def _walked(
    world: TabularMDP,
    practice: FloatArray,
    size: int,
    rng: np.random.Generator,
    episode: int | None = None,
) -> _Logged:
    """``size`` steps from the start, which comes again after every ``episode`` steps."""
    pattern, n_actions = world.pattern, world.n_actions
    kernel, choices = np.cumsum(world.probabilities), np.cumsum(practice, axis=1)
    before = np.append(0.0, kernel)[pattern.indptr[:-1]]
    counts = np.zeros(pattern.n_transitions)
    start = int(np.asarray(world.start))
    state = start
    for step in range(size):
        if episode and step % episode == 0:
            state = start
        chosen, moved = rng.random(2)
        action = min(int(np.searchsorted(choices[state], chosen, side="right")), n_actions - 1)
        pair = state * n_actions + action
        first, last = pattern.indptr[pair], pattern.indptr[pair + 1] - 1
        entry = np.searchsorted(kernel, before[pair] + moved, side="right")
        entry = min(max(int(entry), first), last)
        counts[entry] += 1.0
        state = int(pattern.next_states[entry])
    belief = DirichletBelief.uniform(world.n_states, n_actions, possible=world)
    seen = np.flatnonzero(counts)
    times = counts[seen].astype(np.int64)
    pairs = np.repeat(pattern.pair_of_transition[seen], times)
    belief.observe(
        pairs // n_actions, pairs % n_actions, np.repeat(pattern.next_states[seen], times)
    )
    return _Logged(world, practice, world.rewards, belief, counts)


def _riverswim(size: int, rng: np.random.Generator) -> _Logged:
    """Swims to the right, but acts at random in a third of the steps."""
    world = envs.riverswim(6)
    return _walked(world, _mixed(world, np.ones(6, dtype=np.int64), 1 / 3), size, rng)


def _garnet(size: int, rng: np.random.Generator) -> _Logged:
    """Twenty states, three actions and three successors each, known but for their probabilities.

    As Archibald, McKinnon and Thomas (1995) draw them: successors at random, probabilities uniform
    on the simplex. Reaching a fifth of the states pays a normal reward. Practice is the plan of the
    prior mean in half of the steps, and random in the others: it must not know the kernel, or the
    actions in the log would tell of it what no belief about transitions hears.
    """
    successors = rng.random((20, 3, 20)).argpartition(3, axis=2)[:, :, :3]
    kernel = np.zeros((20, 3, 20))
    np.put_along_axis(kernel, successors, rng.dirichlet(np.ones(3), size=(20, 3)), axis=2)
    paid = np.zeros(20)
    paid[rng.choice(20, size=4, replace=False)] = rng.normal(size=4)
    rewards = np.broadcast_to(paid, kernel.shape)
    world, guess = (TabularMDP(rows, rewards, 0.95) for rows in (kernel, (kernel > 0.0) / 3.0))
    return _walked(world, _mixed(world, solve(guess).policy, 0.5), size, rng)


def _machine(size: int, rng: np.random.Generator) -> _Logged:
    """Runs the machine until it is worn out, with a tenth of random decisions."""
    world = envs.machine_replacement()
    actions = np.zeros(10, dtype=np.int64)
    actions[[7, 8]] = 1
    return _walked(world, _mixed(world, actions, 0.1), size, rng)


def _wet_chicken(size: int, rng: np.random.Generator) -> _Logged:
    """The heuristic of Scholl and others (2022) with ε = 0.1: stay in the middle, near (2, 2)."""
    world = envs.wet_chicken()
    actions = np.empty(25, dtype=np.int64)
    for state in range(25):
        x, y = divmod(state, 5)
        drift, hold, back, left, right = range(5)
        if x > 2:
            actions[state] = back
        elif y != 2:
            actions[state] = right if y < 2 else left
        else:
            actions[state] = (drift, hold, back)[x]
    return _walked(world, _mixed(world, actions, 0.1), size, rng)


def _population(size: int, rng: np.random.Generator) -> _Logged:
    """Fields of 20 seasons; the first pesticide from 8 of 20 animals on, a fifth is random."""
    world = envs.population(20)
    actions = (np.arange(21) >= 8).astype(np.int64)
    return _walked(world, _mixed(world, actions, 0.2), size, rng, episode=20)


def _tumour(size: int, rng: np.random.Generator) -> _Logged:
    """Patients of 24 months, treated in every second one by chance."""
    world = envs.tumour()
    even = np.full((world.n_states, 2), 0.5)
    return _walked(world, even, size, rng, episode=24)


def _inventory(size: int, rng: np.random.Generator) -> _Logged:
    """``size`` days of demand; orders up to six, with a fifth of random orders."""
    shop = envs.inventory()
    world = shop.mdp
    belief = DisturbanceBelief(shop.outcomes)
    most = np.array([np.flatnonzero(row)[-1] for row in world.admissible])
    practice = _mixed(world, np.minimum(most, np.maximum(6 - np.arange(most.size), 0)), 0.2)
    counts = np.zeros(belief.pattern.n_transitions)
    demands = rng.choice(shop.demand.size, size=size, p=shop.demand)
    state = int(np.asarray(world.start))
    for demand in demands:
        action = int(rng.choice(world.n_actions, p=practice[state]))
        counts[belief.pattern.indptr[state * world.n_actions + action] + demand] += 1.0
        state = int(shop.outcomes[state, action, demand])
    belief.observe_disturbance(demands)
    rewards = DisturbanceRewards(shop.disturbance_rewards)
    return _Logged(world, practice, rewards, belief, counts)


WORLDS: dict[str, Callable[[int, np.random.Generator], _Logged]] = {
    "riverswim": _riverswim,
    "garnet": _garnet,
    "machine": _machine,
    "wet-chicken": _wet_chicken,
    "population": _population,
    "tumour": _tumour,
    "inventory": _inventory,
}


def _replicate(
    seed: np.random.SeedSequence, *, world: str, size: int, judging_draws: int
) -> BatchColumns:
    """All methods after one log, judged in draws of their own and in the true world."""
    data, judge, *streams = independent_streams(seed, 2 + len(METHODS))
    logged = WORLDS[world](size, data)
    truth = logged.world
    one = Batch(
        logged.belief,
        logged.rewards,
        truth.discount,
        start=truth.start,
        counts=logged.counts,
        baseline=logged.practice,
    )
    plans = [method(one, rng) for method, rng in zip(METHODS.values(), streams, strict=True)]
    values = values_in_draws(
        logged.belief,
        logged.rewards,
        truth.discount,
        [plan.policy for plan in plans],
        start=one.start,
        draws=judging_draws,
        rng=judge,
    ).values
    today = float(evaluate_in_mdp(truth, logged.practice) @ one.start)
    optimum = float(solve(truth).values @ one.start)
    rows = []
    for k, (name, plan) in enumerate(zip(METHODS, plans, strict=True)):
        true = float(evaluate_in_mdp(truth, plan.policy) @ one.start)
        bound = np.nan if plan.bound is None else plan.bound
        rows.append(
            {
                "method": name,
                "promise": plan.promise,
                "bound": bound,
                "coverage": np.nan if plan.bound is None else float((values[:, k] >= bound).mean()),
                "judging_draws": judging_draws,
                "held": np.nan if plan.bound is None else float(true >= bound),
                "true_value": true,
                "practice": today,
                "optimum": optimum,
                "seconds": plan.seconds,
            }
        )
    return BatchColumns.of_rows(rows)


BATCH = Program(
    _replicate,
    BatchColumns,
    {"world": REQUIRED, "size": REQUIRED, "judging_draws": 2_000},
    parts=("decisions", "batch"),
)

SIZES: dict[str, tuple[int, ...]] = {
    "riverswim": (30, 300, 3_000),
    "garnet": (50, 500, 5_000),
    "machine": (30, 300, 3_000),
    "wet-chicken": (100, 1_000, 10_000),
    "population": (30, 300, 3_000),
    "tumour": (48, 480, 4_800),
    "inventory": (10, 100, 1_000),
}
"""Sizes of the logs, in transitions (days, months)."""

EXPERIMENT = Experiment(
    "batch",
    "Batch methods side by side",
    tuple(
        Computation(f"{world}-{size}", f"{__name__}:BATCH", {"world": world, "size": size})
        for world, sizes in SIZES.items()
        for size in sizes
    ),
    runs=100,
)
