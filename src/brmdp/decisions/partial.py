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

Sweeps run in compiled code (:mod:`brmdp._kernels.groups`), one chain after another, from one stream
of random numbers. Numbers of tables are exact, but that sums with a variance of 20 and more are
drawn through their first four cumulants (:mod:`brmdp._kernels.tables`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from brmdp._kernels import groups
from brmdp._validation import FloatArray, IntArray
from brmdp.beliefs.gammas import SMALLEST
from brmdp.decisions.families import Family, condensed
from brmdp.decisions.gibbs import MOST_WATCHED, Widths
from brmdp.decisions.hierarchical import SharedDraws
from brmdp.decisions.marginal import Mode, differences, mode_of, sums, tally_of, uphill

__all__ = ["GroupPoint", "GroupSampler", "Grouped", "group_point", "newton_step"]

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
        self.row_group, self.row_pair = np.divmod(rows, pattern.n_pairs)
        self.row_total = totals[rows].astype(np.float64)


class GroupSampler:
    """Draws of (ln κ of the family, ln κ of the groups, m, Q), several chains at once.

    While the chains run, entries of Q that no group observed are counted together, row by row, and
    so are categories of m that belong to no entry observed. :meth:`whole` tells them apart.

    Parameters
    ----------
    family : Family
    counts : (groups, transitions) integers
    bounds : (float, float)
        Range of every ln κ.
    rng : numpy.random.Generator

    Attributes
    ----------
    entries : integers
        The entries that some group observed.
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
        cells = GroupCells(family, counts)
        self.busy = np.unique(cells.group)
        self.entries = np.unique(cells.entry)
        pattern = family.pattern
        kind_of_entry = family.kind_of_entry[self.entries]
        kinds = np.unique(kind_of_entry)
        self._smaller, self._place = condensed(family, kinds)
        if family.fixed is None:
            kind_of_entry = np.searchsorted(kinds, kind_of_entry)
        owners = pattern.pair_of_transition[self.entries]
        self._rows, entry_row = np.unique(owners, return_inverse=True)
        row_strength = family.strength_of_pair[self._rows]
        self._layout = self._laid_out(cells, entry_row, kind_of_entry)
        all_groups = counts.sum(axis=0)[self.entries]
        seen = np.bincount(kind_of_entry, all_groups, self._smaller.n_kinds)
        most = 0 if family.fixed is not None else MOST_WATCHED
        self._watched = np.argsort(-seen, kind="stable")[:most]
        n = family.n_strengths
        self._by_strength = (
            np.argsort(row_strength[entry_row], kind="stable"),
            _begins(row_strength[entry_row], n),
            np.argsort(row_strength, kind="stable"),
            _begins(row_strength, n),
        )
        # the entries that nobody observed, and the rows they belong to
        unseen = np.ones(pattern.n_transitions, dtype=bool)
        unseen[self.entries] = False
        self._unseen = np.flatnonzero(unseen)
        owners = pattern.pair_of_transition[self._unseen]
        self._unseen_begins = _begins(owners, pattern.n_pairs)

    def _laid_out(
        self, cells: GroupCells, entry_row: IntArray, entry_kind: IntArray
    ) -> groups.Layout:
        family, pattern = self._smaller, self.family.pattern
        keys = cells.row_group * pattern.n_pairs + cells.row_pair
        of_cell = cells.group * pattern.n_pairs + pattern.pair_of_transition[cells.entry]
        row_entries = _begins(entry_row, self._rows.size)
        return groups.Layout(
            group_cells=_begins(cells.group, cells.n_groups),
            group_rows=_begins(cells.row_group, cells.n_groups),
            cell_entry=np.searchsorted(self.entries, cells.entry),
            cell_count=cells.count,
            cell_total=cells.row_total[np.searchsorted(keys, of_cell)],
            total_count=cells.row_total,
            row_entries=row_entries,
            row_strength=self.family.strength_of_pair[self._rows],
            row_whole=np.diff(row_entries) == pattern.widths[self._rows],
            entry_row=entry_row.astype(np.int64),
            entry_kind=entry_kind.astype(np.int64),
            kind_strength=family.strength_of_kind,
            kind_members=family.kinds.indptr.astype(np.int64),
            members=family.kinds.indices.astype(np.int64),
            law_categories=np.concatenate(([0], np.cumsum(family.law_sizes))).astype(np.int64),
            base=np.ascontiguousarray(family.base, dtype=np.float64),
            fixed=np.zeros(0) if family.fixed is None else family.fixed,
        )

    def start(self, point: GroupPoint, chains: int) -> tuple[FloatArray, ...]:
        """Dispersed states around the point: ln κ, ln κ of the groups, laws, rows, what is left."""
        low, high = self.bounds

        def dispersed(log_strength: FloatArray) -> FloatArray:
            spread = self.rng.uniform(-2.0, 2.0, (chains, log_strength.size))
            near: FloatArray = np.clip(log_strength + spread, low, high)
            return near

        law = point.upper.law
        if self.family.fixed is None:
            law = np.bincount(self._place, law, self._smaller.n_categories).astype(np.float64)
        owners = self.family.pattern.pair_of_transition[self._unseen]
        left = np.bincount(owners, point.rows[self._unseen], self.family.pattern.n_pairs)
        return (
            dispersed(point.upper.log_strength),
            dispersed(point.log_strength),
            np.tile(law, (chains, 1)),
            np.tile(point.rows[self.entries], (chains, 1)),
            np.tile(left[self._rows], (chains, 1)),
        )

    def sweep(
        self,
        upper: FloatArray,
        lower: FloatArray,
        law: FloatArray,
        rows: FloatArray,
        rest: FloatArray,
    ) -> tuple[FloatArray, ...]:
        """One round; the arrays are (chains, strengths), (chains, groups), and so on."""
        state = tuple(part.copy() for part in (upper, lower, law, rows, rest))
        groups.sweep(
            self._layout,
            self._by_strength,
            self.bounds,
            self._lower_widths.width + np.zeros(lower.shape[1]),
            self._upper_widths.width + np.zeros(upper.shape[1]),
            *state,
            self.rng,
        )
        self._lower_widths.learn(state[1])
        self._upper_widths.learn(state[0])
        return state

    def watched_shares(self, law: FloatArray) -> FloatArray:
        """Probabilities of the kinds observed most, (chains, kinds)."""
        return self._smaller.shares(law)[:, self._watched]

    def whole(
        self,
        upper: FloatArray,
        lower: FloatArray,
        law: FloatArray,
        rows: FloatArray,
        rest: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """All ln κ, laws (chains, categories) and rows (chains, transitions).

        What was counted together is drawn apart: in proportions that follow the base of the laws,
        and the laws.
        """
        family, pattern = self.family, self.family.pattern
        if family.fixed is None:
            law = SharedDraws(family, upper, law, self._place).whole(law, self.rng)
        weight = np.exp(upper)[:, family.strength_of_kind] * family.shares(law)
        result = np.empty((upper.shape[0], pattern.n_transitions))
        result[:, self.entries] = rows
        left = np.ones((upper.shape[0], pattern.n_pairs))
        left[:, self._rows] = rest
        for drawn, weights, shares in zip(result, weight, left, strict=True):
            groups.spread(
                weights,
                family.kind_of_entry,
                self._unseen,
                self._unseen_begins,
                shares,
                self.rng,
                drawn,
            )
        return upper, lower, law, result


def _begins(number: IntArray, n: int) -> IntArray:
    """Where each of the numbers 0 … n − 1 begins if they are sorted, and the end."""
    return np.concatenate(([0], np.cumsum(np.bincount(number, minlength=n)))).astype(np.int64)


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
        tables = theta * differences(theta, cells.count)[0]
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
    first, second = differences(theta, cells.count)
    gain: FloatArray = theta * first
    bend: FloatArray = theta**2 * second
    first, second = differences(total, cells.row_total)
    loss: FloatArray = total * first
    turn: FloatArray = total**2 * second
    n = cells.n_groups
    slope = sums(cells.group, gain, n) - sums(cells.row_group, loss, n)
    curve = sums(cells.group, gain + bend, n) - sums(cells.row_group, loss + turn, n)
    moved = np.clip(log_strength + uphill(slope, curve), *bounds)
    return moved, float(np.abs(moved - log_strength).max(initial=0.0))
