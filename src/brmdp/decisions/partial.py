"""Partially pooled groups: one level more.

The rows of group g have priors Dir(κ_g Q_i), where Q_i is the row over all groups, and the Q_i have
the learned prior Dir(κ m_i) of their family. The tables of the groups' rows are the customers of
the rows Q_i: given the numbers of tables, the upper two levels are those of one family with the
tables as counts.

Tables tie the rows over groups to their last values, and the more data there are, the closer: a
group with n observations has some κ_g ln(n/κ_g) tables, although it tells no more about Q_i than
κ_g n/(κ_g + n) observations of it would. And wherever κ_g is large, Q is tied to the group's own
rows, which keeps κ_g large. So two steps have all tables of the groups integrated out (Metropolis–
Hastings, with Q drawn independently of its last value from what is nearly its distribution,

    Dir(κ m_i + Σ_g κ_g/(κ_g + n_gi) · n_gi·)):

one moves ln κ_g of a group, or exchanges those of two, and all rows Q at once; the other moves
every row Q_i on its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.beliefs.gammas import SMALLEST, dirichlet_rows
from brmdp.decisions.families import Family
from brmdp.decisions.gibbs import LawSampler, Widths, added, seat_blocks, slice_step
from brmdp.decisions.marginal import Mode, mode_of, tally_of

__all__ = ["GroupPoint", "GroupSampler", "Grouped", "group_point", "newton_step"]

JUMPS = (0.3, 1.5, 6.0)
"""Sizes of the steps of ln κ when it moves together with the rows."""

MOST_STEPS = 100
TOLERANCE = 1e-4
"""The iteration for the point ends when no ln κ changes by more."""


class Grouped(Protocol):
    """Observed entries and rows, by group."""

    n_groups: int
    group: IntArray
    entry: IntArray
    count: FloatArray
    row_group: IntArray
    row_total: FloatArray


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
        self.row_group = rows // pattern.n_pairs
        self.row_total = totals[rows].astype(np.float64)
        self.cell_total = totals[key]
        self.seats = Seats(self.count)

    def log_evidence(self, log_strength: FloatArray, rows: FloatArray) -> FloatArray:
        """Log likelihood (chains, groups), given the rows over groups (chains, transitions)."""
        weight = np.maximum(np.exp(log_strength)[:, self.group] * rows[:, self.entry], SMALLEST)
        terms = gammaln(weight + self.count) - gammaln(weight)
        return added(self.group, terms, self.n_groups) + self.losses(log_strength)

    def losses(self, log_strength: FloatArray) -> FloatArray:
        """The part of the log likelihood that depends on κ_g alone, (chains, groups)."""
        total = np.exp(log_strength)[:, self.row_group]
        terms = gammaln(total) - gammaln(total + self.row_total)
        return added(self.row_group, terms, self.n_groups)


class Seats:
    """All seats but the first of cells with up to ``most`` customers each."""

    def __init__(self, most: FloatArray) -> None:
        self._n = most.size
        self._cell, self._first, self._size = seat_blocks(np.ones(most.size), most)
        self._number = self._first + 0.5 * (self._size - 1)
        self._blocks = np.flatnonzero(self._size > 1)

    def tables(
        self, weight: FloatArray, rng: np.random.Generator, customers: FloatArray | None = None
    ) -> FloatArray:
        """Tables opened by all customers but the first of each cell, (chains, cells).

        By default there are as many customers as there can be; otherwise (chains, cells) of them.
        """
        at_seat = weight[:, self._cell]
        chance = at_seat / (at_seat + self._number)
        opened = rng.random(chance.shape) < chance
        if customers is not None:
            taken = customers[:, self._cell] - self._first
            opened &= taken > 0
        drawn = opened.astype(np.float64)
        some = self._blocks
        if some.size:
            times = np.broadcast_to(self._size[some], (weight.shape[0], some.size))
            if customers is not None:
                times = np.clip(taken[:, some], 0, times).astype(np.int64)
            drawn[:, some] = rng.binomial(times, chance[:, some])
        return added(self._cell, drawn, self._n)


class GroupSampler:
    """Draws of (ln κ of the family, ln κ of the groups, m, Q), several chains at once.

    Parameters
    ----------
    family : Family
    counts : (groups, transitions) integers
    bounds : (float, float)
        Range of every ln κ.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        family: Family,
        counts: IntArray,
        bounds: tuple[float, float],
        rng: np.random.Generator,
    ) -> None:
        self.family, self.bounds, self.rng = family, bounds, rng
        self._lower_widths, self._upper_widths = Widths(bounds), Widths(bounds)
        self.cells = GroupCells(family, counts)
        all_groups = np.where(family.uncertain, counts.sum(axis=0), 0)
        self._laws = LawSampler(family, tally_of(family, all_groups), rng)
        # the entries that have customers in the rows over groups, and seats for all they can have
        self._entry = np.flatnonzero(all_groups)
        self._place = np.zeros(all_groups.size, dtype=np.int64)
        self._place[self._entry] = np.arange(self._entry.size)
        self._kind = family.kind_of_entry[self._entry]
        self._seats = Seats(all_groups[self._entry].astype(np.float64))
        pattern = family.pattern
        owners = pattern.pair_of_transition[self._entry]
        self._rows, self._row = np.unique(owners, return_inverse=True)
        self._strength_of_row = family.strength_of_pair[self._rows]
        self._busy = np.unique(self._strength_of_row)
        self._row_of_cell = self._row[self._place[self.cells.entry]]

    def start(self, point: GroupPoint, chains: int) -> tuple[FloatArray, ...]:
        """Dispersed states around the point."""
        low, high = self.bounds

        def dispersed(log_strength: FloatArray) -> FloatArray:
            spread = self.rng.uniform(-2.0, 2.0, (chains, log_strength.size))
            near: FloatArray = np.clip(log_strength + spread, low, high)
            return near

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
        family, cells, rng = self.family, self.cells, self.rng
        chains = upper.shape[0]
        # κ of the groups with their tables integrated out, then the tables
        lower = slice_step(
            lower,
            lambda x: cells.log_evidence(x, rows),
            self.bounds,
            rng,
            self._lower_widths.width,
        )
        self._lower_widths.learn(lower)
        lower, rows = self._moved(upper, lower, law, rows)
        weight = np.exp(lower)[:, cells.group] * rows[:, cells.entry]
        tables = cells.seats.tables(weight, rng) + 1.0
        customers = added(self._place[cells.entry], tables, self._entry.size)
        # the same one level up, with the rows over groups integrated out
        share = family.shares(law)
        totals = added(self._row, customers, self._rows.size)
        moved = slice_step(
            upper,
            lambda x: self._upper_evidence(x, share, customers, totals),
            self.bounds,
            rng,
            self._upper_widths.width,
        )
        self._upper_widths.learn(moved)
        upper = rng.uniform(*self.bounds, upper.shape)  # right where there are no data
        upper[:, self._busy] = moved[:, self._busy]
        weight = (np.exp(upper)[:, family.strength_of_kind] * share)[:, self._kind]
        opened = self._seats.tables(weight, rng, customers)
        by_kind = added(self._kind, opened + (customers > 0), family.n_kinds)
        if family.fixed is None:
            law = self._laws.draw(by_kind, law)
        # and the rows over groups themselves
        weight = np.exp(upper)[:, family.strength_of_kind] * family.shares(law)
        weight = np.maximum(weight[:, family.kind_of_entry], SMALLEST)
        weight[:, self._entry] += customers
        widths = np.tile(family.pattern.row_widths, chains)
        rows = dirichlet_rows(weight.ravel(), 1, rng, widths).reshape(chains, -1)
        return upper, lower, law, rows

    def _moved(
        self, upper: FloatArray, lower: FloatArray, law: FloatArray, rows: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Move κ of one group and all rows over groups at once, then every row on its own."""
        family, rng = self.family, self.rng
        if not self._entry.size:
            return lower, rows
        chains = lower.shape[0]
        prior = np.exp(upper)[:, family.strength_of_kind] * family.shares(law)
        prior = np.maximum(prior[:, family.kind_of_entry], SMALLEST)
        strength = np.exp(upper)[:, self._strength_of_row]
        widths = np.tile(family.pattern.row_widths, chains)

        def drawn(own: FloatArray) -> FloatArray:
            weight = prior.copy()
            weight[:, self._entry] += own
            return dirichlet_rows(weight.ravel(), 1, rng, widths).reshape(chains, -1)

        def log_ratio(x: FloatArray, q: FloatArray, own: FloatArray) -> FloatArray:
            """Log density of each row given κ_g, less that of drawing it, (chains, rows)."""
            seen = prior[:, self._entry]
            terms = gammaln(seen + own) - gammaln(seen)
            terms -= own * np.log(np.maximum(q[:, self._entry], SMALLEST))
            whole = added(self._row, own, self._rows.size)
            theta = np.exp(x)[:, self.cells.group] * q[:, self.cells.entry]
            theta = np.maximum(theta, SMALLEST)
            gained = gammaln(theta + self.cells.count) - gammaln(theta)
            result = added(self._row, terms, self._rows.size)
            result += added(self._row_of_cell, gained, self._rows.size)
            result += gammaln(strength) - gammaln(strength + whole)
            return result

        tried, inside = self._tried(lower)
        own, own_tried = self._worth(lower), self._worth(tried)
        proposal = drawn(own_tried)
        gain = log_ratio(tried, proposal, own_tried) - log_ratio(lower, rows, own)
        losses = self.cells.losses(tried) - self.cells.losses(lower)
        taken = inside & (np.log(rng.random(chains)) < gain.sum(axis=1) + losses.sum(axis=1))
        lower = np.where(taken[:, None], tried, lower)
        rows = np.where(taken[:, None], proposal, rows)
        own = np.where(taken[:, None], own_tried, own)

        proposal = drawn(own)
        gain = log_ratio(lower, proposal, own) - log_ratio(lower, rows, own)
        accepted = np.ones((chains, family.pattern.n_pairs), dtype=bool)  # right without data
        accepted[:, self._rows] = np.log(rng.random(gain.shape)) < gain
        return lower, np.where(accepted[:, family.pattern.pair_of_transition], proposal, rows)

    def _tried(self, lower: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Another ln κ_g for one group, or two groups' exchanged; and whether it is in range."""
        rng, n = self.rng, self.cells.n_groups
        tried = lower.copy()
        if n > 1 and rng.random() < 0.5:
            one, other = rng.choice(n, 2, replace=False)
            tried[:, [one, other]] = lower[:, [other, one]]
        else:
            group = rng.integers(n)
            tried[:, group] += rng.choice(JUMPS) * rng.standard_normal(lower.shape[0])
        low, high = self.bounds
        inside: BoolArray = np.all((tried > low) & (tried < high), axis=1)
        return np.where(inside[:, None], tried, lower), inside

    def _worth(self, lower: FloatArray) -> FloatArray:
        """What the groups' data are worth as observations of Q, (chains, observed entries)."""
        cells = self.cells
        strength = np.exp(lower)[:, cells.group]
        own = cells.count * (strength / (strength + cells.cell_total))
        return added(self._place[cells.entry], own, self._entry.size)

    def _upper_evidence(
        self, log_strength: FloatArray, share: FloatArray, customers: FloatArray, totals: FloatArray
    ) -> FloatArray:
        family = self.family
        strength = np.exp(log_strength)
        weight = np.maximum((strength[:, family.strength_of_kind] * share)[:, self._kind], SMALLEST)
        terms = gammaln(weight + customers) - gammaln(weight)
        total = strength[:, self._strength_of_row]
        losses = gammaln(total) - gammaln(total + totals)
        n = family.n_strengths
        return added(family.strength_of_kind[self._kind], terms, n) + added(
            self._strength_of_row, losses, n
        )


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
            log_strength, step = newton_step(cells, log_strength, rows, bounds)
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


def newton_step(
    cells: Grouped, log_strength: FloatArray, rows: FloatArray, bounds: tuple[float, float]
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
