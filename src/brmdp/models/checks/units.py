"""Whether units differ beyond chance.

Let ε be what a step turned out to be worth beyond what the belief expects
(:attr:`brmdp.models.checks.bench.Bench.moments`). If all units of a group follow the same
probabilities, these surprises can be exchanged among equal pairs of state and action, so the sum of
each unit's surprises is compared with those after exchanging them at random. Units that differ, or
steps of a unit that depend on each other, make the sums larger. A difference that does not change
the value cannot be seen this way, and does not matter either.

Where everything ends in some states, a unit's length depends on its steps, which cannot be
exchanged then. The sums are compared with those of units simulated by the model
(:mod:`brmdp.models.checks.walks`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincc, ndtr

from brmdp._validation import FloatArray, IntArray
from brmdp.decisions.families import locate
from brmdp.models.checks.bench import Bench
from brmdp.models.checks.verdicts import (
    CLEAR,
    MATERIAL,
    SHORTFALL,
    STRONG,
    percentage,
    verdict_of,
)
from brmdp.models.checks.walks import Chains, chains_of, walks
from brmdp.models.results import Check, Curve, Picture
from brmdp.models.wording import figure

__all__ = ["Spread", "check_units", "simulated_spread", "spread_of"]

QUESTION = "Do single units behave like each other?"

FEWEST_UNITS = 3
WORK = 4_000_000
"""Steps that are exchanged in all."""

MOST_STEPS = 100_000
MOST_EXCHANGES, FEWEST_EXCHANGES = 300, 40
REPLICATES, SIMULATED = 200, 3_000_000
"""Simulated logs, and their steps in all, where everything ends in some states."""

PICTURED = 30


@dataclass(frozen=True)
class Spread:
    """How much the units' sums of surprises vary.

    Attributes
    ----------
    ratio : float
        Their sum of squares over what exchanging steps at random gives.
    chance : float
        Probability that chance alone gives as much.
    between : float
        Standard deviation of the mean surprise per step between units.
    detectable : float
        Standard deviation between units from which the difference would be clear.
    """

    ratio: float
    chance: float
    between: float
    detectable: float


def spread_of(
    surprise: FloatArray,
    variance: FloatArray,
    unit: IntArray,
    pair: IntArray,
    exchanges: int,
    rng: np.random.Generator,
) -> Spread | None:
    """Compare the units' sums with those of steps exchanged among equal pairs."""
    n_units = int(unit.max()) + 1
    size = np.bincount(unit, minlength=n_units).astype(np.float64)
    expected = np.bincount(unit, variance, n_units)
    counts = expected > 0.0
    if counts.sum() < FEWEST_UNITS:
        return None
    _, rank = np.unique(pair, return_inverse=True)
    # what all units have in common is no difference between them
    common = np.bincount(rank, surprise) / np.bincount(rank)
    surprise = surprise - common[rank]
    order = np.argsort(rank, kind="stable")
    sorted_rank, sorted_unit, values = rank[order].astype(np.float64), unit[order], surprise[order]

    def sums(exchanged: FloatArray) -> tuple[float, float]:
        total = np.bincount(sorted_unit, exchanged, n_units)[counts]
        return float((total**2 / expected[counts]).sum()), float((total**2).sum())

    seen, square = sums(values)
    random = np.array(
        [sums(values[np.argsort(sorted_rank + rng.random(values.size))]) for _ in range(exchanges)]
    )
    return _judged(np.array([seen, square]), random, size[counts])


def _judged(seen: FloatArray, random: FloatArray, size: FloatArray) -> Spread | None:
    """Compare sums of squares, weighted and not, with those that chance gives."""
    mean, deviation = float(random[:, 0].mean()), float(random[:, 0].std(ddof=1))
    if deviation <= 1e-12 * mean or mean <= 0.0:
        return None
    # a multiple of χ² with the moments of those by chance
    form, width = (mean / deviation) ** 2, deviation**2 / mean
    chance = float(gammaincc(form, seen[0] / width))
    weight = float((size**2).sum())
    between = math.sqrt(max(0.0, float(seen[1] - random[:, 1].mean())) / weight)
    # χ² tails at level CLEAR lie some 2.4 deviations above the mean
    rises = 2.4 * float(random[:, 1].std(ddof=1))
    return Spread(float(seen[0]) / mean, chance, between, math.sqrt(rises / weight))


def simulated_spread(
    bench: Bench, chains: Chains, n: int, rng: np.random.Generator
) -> Spread | None:
    """Compare the units' sums with those of units simulated by the model."""
    log, pattern = bench.model.log, bench.pattern
    n_units = int(chains.unit.max()) + 1
    if n_units < FEWEST_UNITS:
        return None
    beyond = np.array([bench.beyond(plan)[0] for plan in bench.plans])

    def squares(replicate: IntArray, chain: IntArray, entry: IntArray, count: int) -> FloatArray:
        """Sums of squares of the units' sums in every replicate."""
        plan = chains.plan[chain]
        surprise = beyond[plan, entry]
        pair = plan * pattern.n_pairs + pattern.pair_of_transition[entry]
        key = replicate * (len(bench.plans) * pattern.n_pairs) + pair
        _, rank = np.unique(key, return_inverse=True)
        # what all units have in common is no difference between them
        rest = surprise - (np.bincount(rank, surprise) / np.bincount(rank))[rank]
        total = np.bincount(replicate * n_units + chains.unit[chain], rest, count * n_units)
        return np.asarray((total.reshape(count, n_units) ** 2).sum(axis=1))

    steps = [(s.replicate, s.chain, s.entry) for s in walks(bench, chains, n, rng)]
    replicate, chain, entry = (np.concatenate(parts) for parts in zip(*steps, strict=True))
    random = squares(replicate, chain, entry, n)
    own = np.repeat(np.arange(chains.first.size), chains.length)
    pairs = log.state[chains.rows] * pattern.n_actions + log.action[chains.rows]
    entry = locate(pattern, pairs, log.next_state[chains.rows])
    seen = float(squares(np.zeros_like(own), own, entry, 1)[0])
    size = np.bincount(chains.unit, chains.length, n_units).astype(np.float64)
    return _judged(np.array([seen, seen]), np.column_stack((random, random)), size)


def check_units(bench: Bench) -> Check | None:
    """Look for differences between the units of a group."""
    model, log = bench.model, bench.model.log
    unit = log.unit[bench.free]
    if np.unique(unit).size < FEWEST_UNITS:
        return None
    rng = model.stream("checks", 4)
    surprise, variance = bench.moments
    used = _sample(unit, rng)
    group = np.zeros(unit.size, dtype=np.int64) if log.group is None else log.group[bench.free]
    pair = group * bench.pattern.n_pairs + bench.pairs
    _, place = np.unique(unit[used], return_inverse=True)
    if model.ends.size:
        chains = chains_of(bench, SIMULATED // REPLICATES, rng)
        found, others = simulated_spread(bench, chains, REPLICATES, rng), "units simulated"
    else:
        exchanges = min(MOST_EXCHANGES, max(FEWEST_EXCHANGES, WORK // max(int(used.sum()), 1)))
        found = spread_of(surprise[used], variance[used], place, pair[used], exchanges, rng)
        others = "steps exchanged at random"
    if found is None:
        return None
    over = bench.average(float(plan.visits[model.ends].sum()) for plan in bench.plans)
    horizon = max(0.0, 1.0 - over) / (1.0 - model.discount)
    spread = found.between * horizon
    scale = bench.average(p.scale for p in bench.plans)
    below = _below(bench, spread)
    strong, clear = found.chance <= STRONG, found.chance <= CLEAR
    material = spread >= MATERIAL * scale
    verdict = verdict_of(strong, clear, material and clear)
    within = " of a group" if log.group is not None else ""
    seen = found.detectable * horizon
    if clear:
        finding = (
            f"Units{within} differ, or their steps depend on each other: the sums of their steps "
            f"vary {found.ratio:.2f} times as much as those of {others}."
        )
    else:
        finding = (
            f"No clear sign that units{within} differ: the sums of their steps vary "
            f"{found.ratio:.2f} times as much as those of {others}. Only "
            f"differences between units of more than about {figure(seen, 2)} in their "
            f"{model.word} would show."
        )
        if seen > scale:
            verdict = "look"
    value = bench.shown(bench.average(p.value for p in bench.plans))
    if spread <= 0.0:
        consequence = f"Under the plan, all units have about the same {model.word}, {value}."
    else:
        consequence = (
            f"If units keep such differences, their {model.word} under the plan varies by about "
            f"± {figure(spread, 3)} around {value}"
        )
        consequence += (
            "."
            if below is None
            else f"; for {percentage(below)} of them the guarantee would be false."
        )
    return Check(
        "units",
        QUESTION,
        verdict,
        finding,
        consequence,
        {
            "ratio": found.ratio,
            "chance": found.chance,
            "spread": spread,
            "spread_share": spread / scale,
            "detectable_spread": seen,
            "units_below_guarantee": below,
        },
        "" if verdict == "fine" else "Find out what the units differ in, and make it a group.",
        _picture(bench, surprise[used], variance[used], place, unit[used]),
    )


def _sample(unit: IntArray, rng: np.random.Generator) -> np.ndarray:
    """All rows, or those of so many units that the exchanges remain affordable."""
    if unit.size <= MOST_STEPS:
        return np.ones(unit.size, dtype=bool)
    distinct, place, size = np.unique(unit, return_inverse=True, return_counts=True)
    order = rng.permutation(distinct.size)
    kept = np.zeros(distinct.size, dtype=bool)
    kept[order[np.cumsum(size[order]) <= MOST_STEPS]] = True
    if kept.sum() < FEWEST_UNITS:
        kept[order[:FEWEST_UNITS]] = True
    return np.asarray(kept[place])


def _below(bench: Bench, spread: float) -> float | None:
    """Share of units whose value under the plan falls short of the guarantee."""
    shares = []
    for plan in bench.plans:
        promised = bench.guarantee(plan)
        if promised is None:
            return None
        short = promised - SHORTFALL * plan.scale - plan.value
        shares.append(float(ndtr(short / spread)) if spread > 0.0 else 0.0)
    return bench.average(shares)


def _picture(
    bench: Bench, surprise: FloatArray, variance: FloatArray, place: IntArray, unit: IntArray
) -> Picture:
    """Mean surprise per step of the units that stand out most, and of some others."""
    n = int(place.max()) + 1
    size = np.bincount(place, minlength=n).astype(np.float64)
    mean = np.bincount(place, surprise, n) / size
    error = np.sqrt(np.bincount(place, variance, n)) / size
    order = np.argsort(mean, kind="stable")
    if n > PICTURED:
        order = order[np.unique(np.linspace(0, n - 1, PICTURED).round().astype(int))]
    code = np.empty(n, dtype=np.int64)
    code[place] = unit
    names = tuple(bench.model.log.unit_names[code[k]] for k in order)
    word = bench.model.word
    return Picture(
        "points",
        "How units did against what the model expects; intervals are what chance allows",
        "unit",
        f"{word} beyond expectation, per step",
        (
            Curve(
                "units",
                names,
                tuple(mean[order].tolist()),
                tuple((mean - 1.96 * error)[order].tolist()),
                tuple((mean + 1.96 * error)[order].tolist()),
            ),
        ),
    )
