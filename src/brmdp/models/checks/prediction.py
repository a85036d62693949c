"""Whether the model would have produced this log.

The logged units are simulated (:mod:`brmdp.models.checks.walks`): from the same starts, for as long
as they were followed or until everything ends, with probabilities drawn from the belief and actions
drawn from practice. What the log shows is then one more simulation if the model
is right, so each figure of it should lie among the simulated ones. Belief and practice were learned
from the same log, which makes this test lenient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.models.checks.bench import Bench
from brmdp.models.checks.verdicts import CLEAR, MATERIAL, STRONG, verdict_of
from brmdp.models.checks.walks import Chains, chains_of, walks
from brmdp.models.results import Check, Curve, Picture
from brmdp.models.wording import figure

__all__ = ["check_prediction", "logged", "simulated"]

QUESTION = "Would the model have produced a log like this one?"

REPLICATES = 100
STEPS = 1_500_000
"""Steps simulated in all."""

PICTURED = 24

RARE = 0.1
"""The worst states are those that make up this share of the logged time."""


@dataclass(frozen=True, eq=False)
class Figures:
    """What is counted, for each of n simulations (or the log, n = 1).

    Attributes
    ----------
    amounts : (n, units) array
    times : (n, S) array
        Steps begun in each state.
    taken : (n, A) array
    passage : (n, chains) array
        Steps until one of the worst states is reached; the chain's length if none is.
    reached, ended : (n,) arrays
        Number of chains that reach one of these, and that come to an end.
    """

    amounts: FloatArray
    times: FloatArray
    taken: FloatArray
    passage: FloatArray
    reached: FloatArray
    ended: FloatArray


def simulated(
    bench: Bench, chains: Chains, dear: BoolArray, n: int, rng: np.random.Generator
) -> Figures:
    """Simulate the chains ``n`` times."""
    model, pattern = bench.model, bench.pattern
    amounts = np.zeros((n, int(chains.unit.max()) + 1))
    times, taken = np.zeros((n, pattern.n_states)), np.zeros((n, pattern.n_actions))
    length, ended = np.zeros((n, chains.first.size)), np.zeros(n)
    passage = np.full(length.shape, np.inf)
    final = np.isin(pattern.next_states, model.ends)
    for step in walks(bench, chains, n, rng):
        paid = model.sign * bench.plans[step.plan].world.rewards
        _add(amounts, step.replicate, chains.unit[step.chain], paid[step.entry])
        _add(times, step.replicate, step.state)
        _add(taken, step.replicate, step.action)
        length[step.replicate, step.chain] = step.number + 1
        at = np.flatnonzero(dear[step.state])
        where = step.replicate[at], step.chain[at]
        passage[where] = np.minimum(passage[where], step.number)
        ended += np.bincount(step.replicate[final[step.entry]], minlength=n)
    reached = np.isfinite(passage).sum(axis=1).astype(np.float64)
    return Figures(amounts, times, taken, np.minimum(passage, length), reached, ended)


def _add(
    table: FloatArray, row: IntArray, column: IntArray, weight: FloatArray | None = None
) -> None:
    """Add weights, by default ones, to the entries of a table."""
    if table.size > 4 * row.size:
        np.add.at(table, (row, column), 1.0 if weight is None else weight)
    else:
        key = row * table.shape[1] + column
        table += np.bincount(key, weight, table.size).reshape(table.shape)


def logged(bench: Bench, chains: Chains, dear: BoolArray) -> Figures:
    """The same figures of the log itself."""
    log, rows = bench.model.log, chains.rows
    pattern = bench.pattern
    chain = np.repeat(np.arange(chains.first.size), chains.length)
    step = np.arange(rows.size) - np.repeat(chains.first, chains.length)
    pair = log.state[rows] * pattern.n_actions + log.action[rows]
    keys = pattern.pair_of_transition * pattern.n_states + pattern.next_states
    entry = np.searchsorted(keys, pair * pattern.n_states + log.next_state[rows])
    plan = chains.plan[chain]
    paid = np.zeros(rows.size)
    for k in np.unique(plan):
        mine = plan == k
        paid[mine] = bench.model.sign * bench.plans[k].world.rewards[entry[mine]]
    units = int(chains.unit.max()) + 1
    amounts = np.bincount(chains.unit[chain], paid, units)[None].astype(np.float64)
    times = np.bincount(log.state[rows], minlength=pattern.n_states)[None].astype(np.float64)
    taken = np.bincount(log.action[rows], minlength=pattern.n_actions)[None].astype(np.float64)
    passage = chains.length.astype(np.float64)
    here = dear[log.state[rows]]
    np.minimum.at(passage, chain[here], step[here])
    reached = np.array([np.unique(chain[here]).size], dtype=np.float64)
    ended = np.array([chains.ended.sum()], dtype=np.float64)
    return Figures(amounts, times, taken, passage[None], reached, ended)


def check_prediction(bench: Bench) -> Check | None:
    """Compare figures of the log with simulated ones."""
    model = bench.model
    if bench.rows.size < 2:
        return None
    rng = model.stream("checks", 8)
    n = REPLICATES
    chains = chains_of(bench, STEPS // n, rng)
    dear = _dear(bench, chains)
    found, seen = simulated(bench, chains, dear, n, rng), logged(bench, chains, dear)
    statistics = _statistics(found, seen)
    chance = min(1.0, len(statistics) * min(s.chance for s in statistics))
    worst = min(statistics, key=lambda s: s.chance)
    mean = found.amounts.mean(axis=1)
    observed = float(seen.amounts.mean())
    low, high = np.quantile(mean, [0.025, 0.975])
    expected = float(mean.mean())
    scale = max(abs(observed), abs(expected), 1e-300)
    off = abs(observed - expected) / scale
    strong, clear = chance <= STRONG, chance <= CLEAR
    verdict = verdict_of(strong, clear, off >= MATERIAL and clear)
    unit = "unit" if int(chains.unit.max()) else "log"
    if clear:
        finding = (
            f"The log does not look like simulated ones: {worst.name} is {worst.seen}, where the "
            f"model gives {worst.expected} (rank {worst.rank} of {n + 1} simulations and the log)."
        )
    else:
        finding = (
            f"The log looks like simulated ones in all {len(statistics)} figures compared; the "
            f"most unusual is {worst.name}: {worst.seen} (rank {worst.rank} of {n + 1})."
        )
    over = "until its end or that of its log" if model.ends.size else "over its logged steps"
    consequence = (
        f"The model predicts a {model.word} of {figure(expected)} per {unit} {over} "
        f"(95 % interval {figure(float(low))} to {figure(float(high))}); it was "
        f"{figure(observed)}."
    )
    figures: dict[str, float | int | str | None] = {
        "chance": chance,
        "replicates": n,
        "steps": int(chains.length.sum()),
        "predicted": expected,
        "predicted_low": float(low),
        "predicted_high": float(high),
        "observed": observed,
        "off_share": off,
    }
    figures |= {f"rank, {s.name}": s.rank for s in statistics}
    return Check(
        "prediction",
        QUESTION,
        verdict,
        finding,
        consequence,
        figures,
        "" if verdict == "fine" else "See the other checks for what the model misses.",
        _picture(bench, found, seen),
    )


@dataclass(frozen=True)
class _Statistic:
    name: str
    chance: float
    rank: int
    seen: str
    expected: str


def _compare(
    name: str, drawn: FloatArray, seen: float, *, root: bool = False, above: bool = False
) -> _Statistic:
    """By Student's t; figures that are counts are compared by their roots.

    Two-sided, unless only values ``above`` the simulated ones are against the model.
    """
    x = np.sqrt(drawn + 0.375) if root else drawn
    y = math.sqrt(seen + 0.375) if root else seen
    spread = float(x.std(ddof=1)) * math.sqrt(1.0 + 1.0 / x.size)
    gap = y - float(x.mean())
    gap = max(gap, 0.0) if above else abs(gap)
    floor = 1e-9 * max(abs(y), 1.0)
    if spread <= floor:
        chance = 1.0 if gap <= floor else 0.0
    else:
        chance = (1.0 if above else 2.0) * float(stdtr(x.size - 1, -gap / spread))
    rank = 1 + int((drawn < seen).sum())
    return _Statistic(name, chance, rank, figure(seen, 3), figure(float(drawn.mean()), 3))


def _statistics(found: Figures, seen: Figures) -> list[_Statistic]:
    """What is compared: amounts, their spread, times in states, actions, passages, ends."""
    total, own = found.amounts.mean(axis=1), float(seen.amounts.mean())
    parts = [_compare("the total per unit", total, own)]
    if seen.amounts.shape[1] >= 5:
        spread, own = found.amounts.std(axis=1), float(seen.amounts.std())
        logs = np.log(spread + 1e-300), math.log(own + 1e-300)
        parts.append(_compare("the log of the spread between units", *logs))
    distance, own = _distances(found.times, seen.times[0])
    parts.append(
        _compare(
            "the log distance of times in states from expectation",
            np.log(distance),
            math.log(own),
            above=True,
        )
    )
    most = int(np.argmax(seen.taken[0]))
    others = found.taken.sum(axis=1) - found.taken[:, most]
    own = float(seen.taken[0].sum() - seen.taken[0, most])
    parts.append(_compare("the number of less usual actions", others, own, root=True))
    name = "the number of stretches that reach the worst states"
    parts.append(_compare(name, found.reached, float(seen.reached[0]), root=True))
    if seen.ended[0] or found.ended.any():
        name = "the number of stretches that come to an end"
        parts.append(_compare(name, found.ended, float(seen.ended[0]), root=True))
    name = "the mean time until the worst states are reached"
    parts.append(_compare(name, found.passage.mean(axis=1), float(seen.passage.mean())))
    return parts


def _distances(drawn: FloatArray, seen: FloatArray) -> tuple[FloatArray, float]:
    """χ²-like distances of times in states from the mean simulation; one's own is left out."""
    n = drawn.shape[0]
    total = drawn.sum(axis=0)
    others = (total - drawn) / (n - 1)
    mean = total / n
    found = ((drawn - others) ** 2 / (others + 1.0)).sum(axis=1) + 1e-9
    return found, float(((seen - mean) ** 2 / (mean + 1.0)).sum()) + 1e-9


def _dear(bench: Bench, chains: Chains) -> BoolArray:
    """(S,) booleans: the states that are worst for the plan, up to a share of the logged time."""
    weights = [float(p.weight) for p in bench.plans]
    values = np.average([p.values for p in bench.plans], axis=0, weights=weights)
    time = np.bincount(bench.model.log.state[chains.rows], minlength=values.size)
    order = np.argsort(values, kind="stable")
    order = order[~np.isin(order, bench.model.ends)]
    share = np.cumsum(time[order]) / max(int(time.sum()), 1)
    dear = np.zeros(values.size, dtype=bool)
    dear[order[share <= RARE]] = True
    dear[order[:1]] = True
    return dear


def _picture(bench: Bench, found: Figures, seen: Figures) -> Picture:
    """Time in states: simulated with 95 % intervals, and logged."""
    labels = bench.model.states.labels
    share = found.times / np.maximum(found.times.sum(axis=1, keepdims=True), 1.0)
    own = seen.times[0] / max(float(seen.times.sum()), 1.0)
    groups = np.arange(len(labels))
    if len(labels) > PICTURED:
        if bench.model.states.ordered:
            groups = groups * PICTURED // len(labels)
        else:
            rank = np.empty(len(labels), dtype=np.int64)
            rank[np.argsort(-own, kind="stable")] = np.arange(len(labels))
            groups = np.minimum(rank, PICTURED - 1)
    n = int(groups.max()) + 1
    join = np.zeros((len(labels), n))
    join[np.arange(len(labels)), groups] = 1.0
    share, own = 100.0 * share @ join, 100.0 * own @ join
    names = []
    for k in range(n):
        mine = np.flatnonzero(groups == k)
        alone = len(labels) <= PICTURED or (not bench.model.states.ordered and k < n - 1)
        names.append(
            labels[mine[0]]
            if alone
            else (f"{labels[mine[0]]} and on" if bench.model.states.ordered else "others")
        )
    low, high = np.quantile(share, [0.025, 0.975], axis=0)
    return Picture(
        "points",
        "Time in each state: simulated by the model, and logged",
        "state",
        "share of steps (%)",
        (
            Curve(
                "simulated",
                tuple(names),
                tuple(share.mean(axis=0).tolist()),
                tuple(low.tolist()),
                tuple(high.tolist()),
            ),
            Curve("logged", tuple(names), tuple(own.tolist())),
        ),
    )
