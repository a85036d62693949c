"""Transitions split into classes: whether these differ, and what would then be believed.

Three hypotheses are fitted at the mode of their hyperparameters (:mod:`brmdp.decisions.marginal`,
:mod:`brmdp.decisions.partial`) and compared by held-out prediction: all classes share their rows
(*pooled*), each has rows that vary about common ones (*partial*), or rows of its own (*separate*).
Only entries that occur in the log are touched, so the cost grows with the log and not with the
number of possible transitions. Full rows are made for the consequences alone.

Where groups have beliefs of their own, each of them is a *stratum*: every hypothesis is fitted to
each stratum on its own, so that differences between groups are not taken for something else.

Prediction is held out by units. With fewer than :data:`FEW_UNITS` of them, blocks of consecutive
steps take their place: if the model is right, what happens in one block given its states and
actions tells nothing about another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.beliefs.gammas import SMALLEST
from brmdp.decisions.families import Family
from brmdp.decisions.held_out import Evidence, compare_held_out
from brmdp.decisions.learned_prior import RANGE
from brmdp.decisions.marginal import Mode, Tally, differences, merged, mode_of
from brmdp.decisions.partial import newton_step, prior_entries
from brmdp.decisions.transitions import Cells
from brmdp.models.checks.verdicts import Sign

__all__ = ["Fixed", "How", "Observed", "Split", "blocks_of", "compared", "sign_of"]

How: TypeAlias = Literal["pooled", "partial", "separate"]

BOUNDS = (math.log(RANGE[0]), math.log(RANGE[1]))
FOLDS = 5

FEW_UNITS, BLOCKS = 20, 40
"""With fewer units than this, their steps are cut into about so many blocks."""

MOST_SEPARATE = 20
"""Up to this many classes, separate rows are tried, too."""

LOOSE = 2_000.0
"""Modes need not be closer than so many times the tolerance of learned priors."""

MOST_STEPS, NEAR = 25, 3e-2
"""Rounds between the levels of partial pooling, and the change of ln κ that ends them."""


@dataclass(frozen=True, eq=False)
class Observed:
    """Transitions counted by what they are, and where that is in the pattern.

    Attributes
    ----------
    cells : Cells
        ``group`` holds the stratum and the class, ``stratum · classes + class``; ``unit`` the unit
        or block.
    place : (cells,) integers
        Position in ``seen``.
    seen : (k,) integers
        Entries of the pattern that occur.
    strata, classes : int
    """

    cells: Cells
    place: IntArray
    seen: IntArray
    strata: int
    classes: int

    @classmethod
    def of(
        cls,
        entry: IntArray,
        block: IntArray,
        label: IntArray | None = None,
        stratum: IntArray | None = None,
    ) -> Observed:
        """Count transitions, given by their entries."""
        label = np.zeros(entry.size, dtype=np.int64) if label is None else label
        stratum = np.zeros(entry.size, dtype=np.int64) if stratum is None else stratum
        seen, place = np.unique(entry, return_inverse=True)
        _, block = np.unique(block, return_inverse=True)
        classes = int(label.max(initial=0)) + 1
        strata = int(stratum.max(initial=0)) + 1
        n = max(seen.size, 1)
        key = (block * (strata * classes) + stratum * classes + label) * n + place
        distinct, count = np.unique(key, return_counts=True)
        rest, place = np.divmod(distinct, n)
        unit, group = np.divmod(rest, strata * classes)
        nothing = np.zeros(distinct.size, dtype=np.int64)
        n_units = int(block.max(initial=-1)) + 1
        groups = tuple(range(strata * classes))
        cells = Cells(0, 0, groups, n_units, nothing, nothing, group, unit, count)
        return cls(cells, place, seen, strata, classes)


def blocks_of(unit: IntArray) -> IntArray:
    """What is held out together: units, or stretches of their rows if there are few units.

    Rows must be sorted by unit and time.
    """
    _, block, sizes = np.unique(unit, return_inverse=True, return_counts=True)
    if sizes.size >= FEW_UNITS or unit.size < BLOCKS:
        return np.asarray(block, dtype=np.int64)
    length = max(1, unit.size // BLOCKS)
    first = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    order = np.argsort(block, kind="stable")
    rank = np.empty(unit.size, dtype=np.int64)
    rank[order] = np.arange(unit.size) - np.repeat(first, sizes)
    return np.asarray(block * (unit.size // length + 1) + rank // length, dtype=np.int64)


@dataclass(eq=False)
class _Layout:
    """The family at the entries that occur."""

    family: Family
    seen: IntArray
    kind: IntArray = field(init=False)
    row: IntArray = field(init=False)
    pairs: IntArray = field(init=False)
    strength: IntArray = field(init=False)

    def __post_init__(self) -> None:
        family = self.family
        self.kind = family.kind_of_entry[self.seen]
        self.pairs, row = np.unique(
            family.pattern.pair_of_transition[self.seen], return_inverse=True
        )
        self.row = row.astype(np.int64)
        self.strength = family.strength_of_pair[self.pairs]

    def totals(self, counts: FloatArray) -> FloatArray:
        """Counts of rows from counts of entries."""
        return np.bincount(self.row, counts, self.pairs.size).astype(np.float64)

    def mode(self, counts: FloatArray, near: Mode | None) -> Mode:
        used = np.flatnonzero(counts > 0)
        totals = self.totals(counts)
        rows = np.flatnonzero(totals > 0)
        tally = Tally(
            *merged(self.kind[used], counts[used]), *merged(self.strength[rows], totals[rows])
        )
        start = None if near is None else (near.log_strength, near.law)
        return mode_of(self.family, tally, BOUNDS, start, tolerance=LOOSE)

    def prior(self, mode: Mode) -> tuple[FloatArray, FloatArray]:
        """κ m of the entries, and κ of their rows."""
        strength = np.exp(mode.log_strength)
        weight = strength[self.family.strength_of_kind] * self.family.shares(mode.law)
        return np.maximum(weight[self.kind], SMALLEST), strength[self.strength]

    def logs(self, prior: FloatArray, whole: FloatArray, counts: FloatArray) -> FloatArray:
        """Log predictive probabilities of the entries."""
        totals = whole + self.totals(counts)
        found: FloatArray = np.log(prior + counts) - np.log(totals)[self.row]
        return found


@dataclass(eq=False)
class _Grouped:
    """Counts (classes, entries) as Newton's step wants them."""

    n_groups: int
    group: IntArray
    entry: IntArray
    count: FloatArray
    row_group: IntArray
    row_total: FloatArray

    @classmethod
    def of(cls, counts: FloatArray, layout: _Layout) -> _Grouped:
        group, entry = np.nonzero(counts)
        n = layout.pairs.size
        totals = np.bincount(
            group * n + layout.row[entry], counts[group, entry], counts.shape[0] * n
        )
        rows = np.flatnonzero(totals)
        return cls(
            counts.shape[0],
            group,
            entry,
            counts[group, entry],
            rows // n,
            totals[rows].astype(np.float64),
        )


@dataclass(frozen=True, eq=False)
class _Point:
    """Partial pooling at its mode: the upper level, its tables, the rows and every ln κ."""

    upper: Mode
    customers: FloatArray
    rows: FloatArray
    log_strength: FloatArray


def _point(layout: _Layout, counts: FloatArray, near: _Point | None) -> _Point:
    """As :func:`brmdp.decisions.partial.group_point`, on the entries that occur."""
    cells = _Grouped.of(counts, layout)
    if near is None:
        log_strength = np.full(counts.shape[0], math.log(10.0))
        customers = (counts > 0).sum(axis=0).astype(np.float64)
        upper = None
    else:
        log_strength, upper = near.log_strength, near.upper
        customers = np.minimum(near.customers, counts.sum(axis=0))
    for step in range(MOST_STEPS):
        following = layout.mode(customers, upper)
        prior, whole = layout.prior(following)
        rows = (prior + customers) / (whole + layout.totals(customers))[layout.row]
        before = log_strength
        for _ in range(20):
            log_strength, change = newton_step(cells, log_strength, rows, BOUNDS)
            if change < NEAR / 10:
                break
        theta = np.exp(log_strength)[cells.group] * rows[cells.entry]
        tables = theta * differences(theta, cells.count)[0]
        customers = np.bincount(cells.entry, tables, layout.seen.size).astype(np.float64)
        moved = float(np.abs(log_strength - before).max(initial=0.0))
        if upper is not None and step:
            moved = max(moved, float(np.abs(following.log_strength - upper.log_strength).max()))
        upper = following
        if step and moved < NEAR:
            break
    assert upper is not None
    return _Point(upper, customers, rows, log_strength)


class Split:
    """The three hypotheses about some classes of transitions.

    Parameters
    ----------
    family : Family
    observed : Observed
    """

    def __init__(self, family: Family, observed: Observed) -> None:
        self.observed = observed
        self.family = family
        self.layout = _Layout(family, observed.seen)
        self._modes: dict[tuple[int, int], Mode] = {}
        self._points: dict[int, _Point] = {}
        self._all = self._tables(observed.cells.count)
        for stratum in range(observed.strata):
            self._modes[stratum, -1] = self.layout.mode(self._all[stratum].sum(axis=0), None)

    def _tables(self, count: IntArray) -> FloatArray:
        """(strata, classes, entries) counts, from counts by cell."""
        found = self.observed
        k, n = found.strata * found.classes, found.seen.size
        sums = np.bincount(found.cells.group * n + found.place, count, k * n)
        shape = found.strata, found.classes, n
        return np.asarray(sums, dtype=np.float64).reshape(shape)

    def mode(self, stratum: int, label: int) -> Mode:
        """The mode of one class, or of all (−1), of a stratum."""
        key = stratum, label
        if key not in self._modes:
            near = self._modes[stratum, -1]
            self._modes[key] = self.layout.mode(self._all[key], near)
        return self._modes[key]

    def point(self, stratum: int) -> _Point:
        """Partial pooling of the classes of a stratum."""
        if stratum not in self._points:
            self._points[stratum] = _point(self.layout, self._all[stratum], None)
        return self._points[stratum]

    # --- prediction -------------------------------------------------------------------------------

    @property
    def hypotheses(self) -> tuple[How, ...]:
        """From the simplest to the richest that is affordable."""
        if self.observed.classes < 2:
            return ("pooled",)
        few = self.observed.classes <= MOST_SEPARATE
        return ("pooled", "partial", "separate") if few else ("pooled", "partial")

    def predictor(self, how: How) -> Callable[[IntArray], FloatArray]:
        """From counts by cell to ln p̂ of the transition of each cell."""
        layout, observed = self.layout, self.observed

        def predict(given: IntArray) -> FloatArray:
            tables = self._tables(given)
            logs = np.zeros(tables.shape)
            for stratum, counts in enumerate(tables):
                if how == "partial":
                    point = _point(layout, counts, self.point(stratum))
                    for label, own in enumerate(counts):
                        strength = math.exp(point.log_strength[label])
                        prior = np.maximum(strength * point.rows, SMALLEST)
                        whole = np.full(layout.pairs.size, strength)
                        logs[stratum, label] = layout.logs(prior, whole, own)
                    continue
                parts = [counts.sum(axis=0)] if how == "pooled" else list(counts)
                for label, own in enumerate(parts):
                    near = self.mode(stratum, label if how == "separate" else -1)
                    prior, whole = layout.prior(layout.mode(own, near))
                    found = layout.logs(prior, whole, own)
                    logs[stratum, slice(None) if how == "pooled" else label] = found
            found = logs.reshape(-1, observed.seen.size)
            return np.asarray(found[observed.cells.group, observed.place])

        return predict

    def sign(self, rng: np.random.Generator) -> tuple[Sign, How]:
        """How much better telling the classes apart predicts, and how it is done best."""
        names = self.hypotheses
        steps, blocks = self.observed.cells.n_transitions, self.observed.cells.n_units
        if steps < 2 or blocks < 2 or len(names) < 2:
            return Sign(-math.inf, 0.0, blocks, steps), "partial"
        found = compare_held_out(
            self.observed.cells,
            dict.fromkeys(names, 0),
            {name: self.predictor(name) for name in names},
            {},
            FOLDS,
            rng,
        )
        richer = max(names[1:], key=lambda name: found[name].score)
        return sign_of(found, "pooled", richer, len(names) - 1), richer

    # --- full rows --------------------------------------------------------------------------------

    def kernels(self, stratum: int, how: How) -> list[FloatArray]:
        """Mean probabilities of all possible transitions: of each class, or of all if pooled."""
        counts = self._all[stratum]
        if how == "pooled":
            return [self._full(self.mode(stratum, -1), counts.sum(axis=0))]
        if how == "separate":
            # a class without data is taken to be like the others
            return [
                self._full(self.mode(stratum, c), own)
                if own.any()
                else self._full(self.mode(stratum, -1), counts.sum(axis=0))
                for c, own in enumerate(counts)
            ]
        point = self.point(stratum)
        rows = self._full(point.upper, point.customers)
        return [
            self._mean(rows * math.exp(k), own)
            for k, own in zip(point.log_strength, counts, strict=True)
        ]

    def _full(self, mode: Mode, counts: FloatArray) -> FloatArray:
        return self._mean(prior_entries(self.family, mode.log_strength, mode.law), counts)

    def _mean(self, prior: FloatArray, counts: FloatArray) -> FloatArray:
        pattern = self.family.pattern
        weight = prior.copy()
        weight[self.layout.seen] += counts
        sums = np.bincount(pattern.pair_of_transition, weight, pattern.n_pairs)
        found: FloatArray = weight / sums[pattern.pair_of_transition]
        return found


@dataclass(frozen=True, eq=False)
class Fixed:
    """A prior that is given, with its rows in their strata.

    Attributes
    ----------
    observed : Observed
    prior : (entries,) array
        Concentrations of the entries that occur.
    whole : (rows,) array
        Concentrations of their rows, in the order of their pairs.
    row : (entries,) integers
    """

    observed: Observed
    prior: FloatArray
    whole: FloatArray
    row: IntArray

    def predict(self, given: IntArray) -> FloatArray:
        """From counts by cell to ln p̂ of the transition of each cell."""
        found = self.observed
        n, strata = found.seen.size, found.strata
        stratum = found.cells.group // found.classes
        sums = np.bincount(stratum * n + found.place, given, strata * n).reshape(strata, n)
        totals = np.array([np.bincount(self.row, own, self.whole.size) for own in sums])
        logs = np.log(self.prior + sums) - np.log(self.whole + totals)[:, self.row]
        return np.asarray(logs[stratum, found.place])


def sign_of(found: Evidence, simple: str, richer: str, tried: int) -> Sign:
    """How much better one candidate of a comparison predicts than another that is simpler.

    One of the two must be the best of all.
    """
    if found[richer].difference == 0.0:
        gain, error = found[simple].difference, found[simple].standard_error
    else:
        gain, error = -found[richer].difference, found[richer].standard_error
    return Sign(gain, error, found.blocks, found.transitions, tried)


def compared(
    observed: Observed,
    predictors: dict[str, Callable[[IntArray], FloatArray]],
    rng: np.random.Generator,
) -> Evidence:
    """Held-out comparison of candidates that predict the same cells."""
    return compare_held_out(
        observed.cells, dict.fromkeys(predictors, 0), predictors, {}, FOLDS, rng
    )
