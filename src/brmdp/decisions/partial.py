"""Partially pooled groups: one level more.

The rows of group g have priors Dir(κ_g Q_i), where Q_i is the row over all groups, and the Q_i have
the learned prior Dir(κ m_i) of their family. The tables of the groups' rows are the customers of
the rows Q_i: given the numbers of tables, the upper two levels are those of one family with the
tables as counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from brmdp._validation import FloatArray, IntArray
from brmdp.beliefs.gammas import SMALLEST, dirichlet_rows
from brmdp.decisions.families import Family
from brmdp.decisions.gibbs import SharedSampler, slice_step
from brmdp.decisions.marginal import Mode, mode_of, tally_of

__all__ = ["GroupPoint", "GroupSampler", "group_point"]

MOST_STEPS = 100
TOLERANCE = 1e-4
"""The iteration for the point ends when no ln κ changes by more."""


class GroupCells:
    """Observed entries of all groups, in rows with more than one possible successor.

    Parameters
    ----------
    family : Family
    counts : (groups, transitions) integers
    """

    def __init__(self, family: Family, counts: IntArray) -> None:
        pattern = family.pattern
        self.n_groups = int(counts.shape[0])
        self.group, self.entry = np.nonzero(counts * family.uncertain)
        self.count = counts[self.group, self.entry].astype(np.float64)
        key = self.group * pattern.n_pairs + pattern.pair_of_transition[self.entry]
        totals = np.bincount(key, self.count, self.n_groups * pattern.n_pairs)
        rows = np.flatnonzero(totals)
        self.row_group, self.row_total = rows // pattern.n_pairs, totals[rows]
        more = (self.count - 1).astype(np.int64)
        ends = np.cumsum(more)
        self.seat_cell = np.repeat(np.arange(more.size), more)
        self.seat = (np.arange(int(more.sum())) - np.repeat(ends - more, more) + 1).astype(
            np.float64
        )

    def log_evidence(self, log_strength: FloatArray, rows: FloatArray) -> FloatArray:
        """Log likelihood by group, given the rows over groups."""
        strength = np.exp(log_strength)
        weight = np.maximum(strength[self.group] * rows[self.entry], SMALLEST)
        total = strength[self.row_group]
        terms = gammaln(weight + self.count) - gammaln(weight)
        losses = gammaln(total) - gammaln(total + self.row_total)
        return np.asarray(
            np.bincount(self.group, terms, self.n_groups)
            + np.bincount(self.row_group, losses, self.n_groups)
        )


class GroupSampler:
    """Draws of (ln κ of the family, ln κ of the groups, m, Q), several chains at once."""

    def __init__(
        self,
        family: Family,
        counts: IntArray,
        bounds: tuple[float, float],
        rng: np.random.Generator,
    ) -> None:
        self.family, self.bounds, self.rng = family, bounds, rng
        self.cells = GroupCells(family, counts)

    def start(self, point: GroupPoint, chains: int) -> tuple[FloatArray, ...]:
        """Dispersed states around the point."""
        low, high = self.bounds

        def dispersed(log_strength: FloatArray) -> FloatArray:
            spread = self.rng.uniform(-2.0, 2.0, (chains, log_strength.size))
            return np.clip(log_strength + spread, low, high)

        return (
            dispersed(point.upper.log_strength),
            dispersed(point.log_strength),
            np.tile(point.upper.law, (chains, 1)),
            np.tile(point.rows, (chains, 1)),
        )

    def sweep(
        self, upper: FloatArray, lower: FloatArray, law: FloatArray, rows: FloatArray
    ) -> tuple[FloatArray, ...]:
        """One round; (chains, strengths), (chains, groups), (chains, categories or entries)."""
        found = [self._one(*state) for state in zip(upper, lower, law, rows, strict=True)]
        return tuple(np.stack(parts) for parts in zip(*found, strict=True))

    def _one(
        self, upper: FloatArray, lower: FloatArray, law: FloatArray, rows: FloatArray
    ) -> tuple[FloatArray, ...]:
        family, cells, rng = self.family, self.cells, self.rng
        lower = slice_step(lower, lambda x: cells.log_evidence(x, rows), self.bounds, rng)
        weight = np.exp(lower)[cells.group] * rows[cells.entry]
        at_seat = weight[cells.seat_cell]
        opened = rng.random(cells.seat.size) * (at_seat + cells.seat) < at_seat
        tables = 1.0 + np.bincount(cells.seat_cell[opened], minlength=cells.count.size)
        pattern = family.pattern
        customers = np.bincount(cells.entry, tables, pattern.n_transitions)
        shared = SharedSampler(family, tally_of(family, customers), self.bounds, rng, once=True)
        upper, law = (part[0] for part in shared.sweep(upper[None], law[None]))
        prior = prior_entries(family, upper, law)
        rows = dirichlet_rows(prior + customers, 1, rng, pattern.row_widths)[0]
        return upper, lower, law, rows


def prior_entries(family: Family, log_strength: FloatArray, law: FloatArray) -> FloatArray:
    """Prior concentrations κ m of all entries."""
    weight = np.exp(log_strength)[family.strength_of_kind] * family.shares(law)
    return np.maximum(weight[family.kind_of_entry], SMALLEST)


@dataclass(frozen=True, eq=False)
class GroupPoint:
    """Point values: the upper levels, the rows over groups, and ln κ of every group."""

    upper: Mode
    log_strength: FloatArray
    rows: FloatArray


def group_point(family: Family, counts: IntArray, bounds: tuple[float, float]) -> GroupPoint:
    """Point values by alternating between the levels, with expected numbers of tables.

    This is an approximation, good enough to start draws and to predict held-out transitions.
    """
    cells = GroupCells(family, counts)
    pattern = family.pattern
    log_strength = np.full(cells.n_groups, np.clip(np.log(10.0), *bounds))
    customers = np.bincount(cells.entry, minlength=pattern.n_transitions).astype(np.float64)
    upper: Mode | None = None
    for _ in range(MOST_STEPS):
        begin = None if upper is None else (upper.log_strength, upper.law)
        following = mode_of(family, tally_of(family, customers), bounds, begin)
        prior = prior_entries(family, following.log_strength, following.law)
        weight = prior + customers
        sums = np.bincount(pattern.pair_of_transition, weight, pattern.n_pairs)
        rows = weight / sums[pattern.pair_of_transition]
        before = log_strength
        for _ in range(20):
            log_strength, step = _newton(cells, log_strength, rows, bounds)
            if step < TOLERANCE / 10:
                break
        theta = np.exp(log_strength)[cells.group] * rows[cells.entry]
        tables = theta * (digamma(theta + cells.count) - digamma(theta))
        customers = np.bincount(cells.entry, tables, pattern.n_transitions).astype(np.float64)
        moved = float(np.abs(log_strength - before).max(initial=0.0))
        if upper is not None:
            moved = max(
                moved, float(np.abs(following.log_strength - upper.log_strength).max(initial=0.0))
            )
        upper = following
        if moved < TOLERANCE:
            break
    assert upper is not None
    return GroupPoint(upper, log_strength, rows)


def _newton(
    cells: GroupCells, log_strength: FloatArray, rows: FloatArray, bounds: tuple[float, float]
) -> tuple[FloatArray, float]:
    """One Newton step for every ln κ_g, and the largest change."""
    strength = np.exp(log_strength)
    theta = np.maximum(strength[cells.group] * rows[cells.entry], SMALLEST)
    total = strength[cells.row_group]
    gain = theta * (digamma(theta + cells.count) - digamma(theta))
    bend = theta**2 * (polygamma(1, theta + cells.count) - polygamma(1, theta))
    loss = total * (digamma(total + cells.row_total) - digamma(total))
    turn = total**2 * (polygamma(1, total + cells.row_total) - polygamma(1, total))
    n = cells.n_groups
    first = np.bincount(cells.group, gain, n) - np.bincount(cells.row_group, loss, n)
    second = np.bincount(cells.group, gain + bend, n) - np.bincount(cells.row_group, loss + turn, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(second < 0.0, -first / second, np.sign(first))
    step = np.clip(np.where(np.isfinite(step), step, 0.0), -1.0, 1.0)
    moved = np.clip(log_strength + step, *bounds)
    return moved, float(np.abs(moved - log_strength).max(initial=0.0))
