"""Units simulated as they were logged: from the same starts, for as long as they were followed.

Where everything ends in some states, a logged length has one of two reasons: the end was reached,
or the log stopped. A simulated unit goes on until either happens to it. How long a unit that
reached its end would have been followed otherwise is not known; it is drawn from the lengths of
those that the log left before their end (by the estimator of Kaplan and Meier).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.models.checks.bench import Bench

__all__ = ["Chains", "Step", "chains_of", "followed", "walks"]

DRAWN_NUMBERS = 6_000_000
"""Probabilities drawn for the kernels."""

LONGER = 2
"""How many times as long as the longest are followed those that only their end would stop."""


@dataclass(frozen=True, eq=False)
class Chains:
    """Uninterrupted stretches of the log.

    Attributes
    ----------
    rows : (steps,) integers
        Rows of the log, chain by chain.
    first : (chains,) integers
        Where each chain begins in ``rows``.
    length : (chains,) integers
    unit : (chains,) integers
        Numbered from zero.
    plan : (chains,) integers
        Number of the group's plan.
    ended : (chains,) booleans
        Whether the chain reached a state in which everything ends.
    """

    rows: IntArray
    first: IntArray
    length: IntArray
    unit: IntArray
    plan: IntArray
    ended: BoolArray


def chains_of(bench: Bench, most: int, rng: np.random.Generator) -> Chains:
    """The chains of the log, or those of so many units as make up ``most`` steps."""
    log, rows = bench.model.log, bench.rows
    distinct, unit, size = np.unique(log.unit[rows], return_inverse=True, return_counts=True)
    if rows.size > most:
        order = rng.permutation(distinct.size)
        kept = np.zeros(distinct.size, dtype=bool)
        kept[order[np.cumsum(size[order]) <= most]] = True
        kept[order[0]] = True
        rows = rows[kept[unit]]
        _, unit = np.unique(log.unit[rows], return_inverse=True)
    previous = log.previous[rows]
    follows = np.zeros(rows.size, dtype=bool)
    follows[1:] = previous[1:] == rows[:-1]
    begins = np.flatnonzero(~follows)
    length = np.diff(np.append(begins, rows.size))
    rank = np.arange(rows.size) - np.repeat(begins, length)
    rows, unit = rows[rank < most], unit[rank < most]
    length = np.minimum(length, most)
    first = np.cumsum(length) - length
    plan = np.zeros(first.size, dtype=np.int64)
    if log.group is not None and len(bench.plans) > 1:
        plan = np.asarray(log.group[rows[first]], dtype=np.int64)
    ended = np.isin(log.next_state[rows[first + length - 1]], bench.model.ends)
    return Chains(rows, first, length, np.asarray(unit[first], dtype=np.int64), plan, ended)


def followed(chains: Chains, n: int, rng: np.random.Generator) -> IntArray:
    """(n, chains) numbers of steps after which the log stops, unless the end comes first."""
    found: IntArray = np.tile(chains.length, (n, 1))
    dead = np.flatnonzero(chains.ended)
    if not dead.size:
        return found
    most = int(chains.length.max())
    left = np.bincount(chains.length[~chains.ended], minlength=most + 1)
    longer = chains.length.size - np.cumsum(np.bincount(chains.length, minlength=most + 1))
    at_risk = longer + left
    stays = np.cumprod(np.where(at_risk > 0, longer / np.maximum(at_risk, 1), 1.0))
    # still followed when the end came
    bound = rng.random((n, dead.size)) * stays[chains.length[dead] - 1]
    drawn = np.searchsorted(-stays, -bound, side="left")
    found[:, dead] = np.where(drawn > most, LONGER * most, drawn)
    return found


@dataclass(frozen=True, eq=False)
class Step:
    """The same step of many simulated chains; arrays of equal length.

    Attributes
    ----------
    number : int
    plan : int
        Number of the group's plan.
    replicate, chain : integers
    state, action : integers
    entry : integers
        The transition, as its place in the pattern.
    """

    number: int
    plan: int
    replicate: IntArray
    chain: IntArray
    state: IntArray
    action: IntArray
    entry: IntArray


def walks(bench: Bench, chains: Chains, n: int, rng: np.random.Generator) -> Iterator[Step]:
    """Simulate the chains ``n`` times, with kernels drawn from the belief, and practice."""
    model, pattern, log = bench.model, bench.pattern, bench.model.log
    limits = followed(chains, n, rng)
    final = np.zeros(pattern.n_states, dtype=bool)
    final[model.ends] = True
    drawn: dict[str | None, tuple[FloatArray, IntArray, int]] = {}
    for k, plan in enumerate(bench.plans):
        mine = np.flatnonzero(chains.plan == k)
        if not mine.size:
            continue
        key = None if model.pooled else plan.group
        if key not in drawn:
            drawn[key] = _drawn(bench, plan.group, n, rng)
        cumulated, starts, kernels = drawn[key]
        ladder = np.cumsum(model.practice(plan.group).draw(kernels, rng=rng), axis=2)
        ladder /= ladder[:, :, -1:]
        # all simulations at once, the longest chains first, so those still going come first
        chain, replicate = np.repeat(mine, n), np.tile(np.arange(n), mine.size)
        limit = limits[replicate, chain]
        order = np.argsort(-limit, kind="stable")
        chain, replicate, limit = chain[order], replicate[order], -limit[order]
        state = log.state[chains.rows[chains.first[chain]]]
        number = 0
        while chain.size:
            which = replicate % kernels
            steps = ladder[which, state]
            action = (rng.random(chain.size)[:, None] > steps).sum(axis=1)
            pair = state * pattern.n_actions + action
            row = which * pattern.n_pairs + pair
            place = np.searchsorted(cumulated, row + rng.random(chain.size), side="right")
            low = starts[row]
            place = np.clip(place, low, low + pattern.widths[pair] - 1)
            entry = place - which * pattern.n_transitions
            yield Step(number, k, replicate, chain, state, action, entry)
            number += 1
            state = pattern.next_states[entry]
            going = int(np.searchsorted(limit, -number, side="left"))
            if going < chain.size:
                chain, replicate = chain[:going], replicate[:going]
                limit, state = limit[:going], state[:going]
            if model.ends.size:
                alive = ~final[state]
                chain, replicate = chain[alive], replicate[alive]
                limit, state = limit[alive], state[alive]


def _drawn(
    bench: Bench, group: str | None, n: int, rng: np.random.Generator
) -> tuple[FloatArray, IntArray, int]:
    """Kernels, cumulated row by row (row number + distribution), and where their rows begin."""
    pattern = bench.pattern
    share = max(1, len(bench.plans)) if not bench.model.pooled else 1
    kernels = int(np.clip(DRAWN_NUMBERS // (pattern.n_transitions * share), 2, n))
    entries = bench.model.belief(group).sample_entries(kernels, rng=rng)
    sums = np.cumsum(entries, axis=1)
    ends = pattern.indptr[1:] - 1
    whole = np.concatenate((np.zeros((kernels, 1)), sums), axis=1)
    before = whole[:, pattern.indptr[:-1]]
    total = whole[:, ends + 1] - before
    owner = pattern.pair_of_transition
    inner = (sums - before[:, owner]) / total[:, owner]
    number = np.arange(kernels)[:, None] * pattern.n_pairs + owner
    cumulated = (number + np.clip(inner, 0.0, 1.0)).ravel()
    starts = (np.arange(kernels)[:, None] * pattern.n_transitions + pattern.indptr[:-1]).ravel()
    return cumulated, starts, kernels
