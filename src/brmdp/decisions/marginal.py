"""The exact marginal likelihood of a log given κ and the laws, and its mode.

With the rows integrated out,

    ln L = Σ_i [ lnΓ(κ) − lnΓ(κ + n_i) + Σ_j ( lnΓ(κ m_ij + n_ij) − lnΓ(κ m_ij) ) ].

Entries of one kind with equal counts contribute the same, and so do rows with equal totals. A
:class:`Tally` keeps each such case once with its multiplicity, so the cost hardly depends on the
number of rows.

The mode is that of the posterior density of (ln κ, ln m), ln L + Σ_c a_c ln m_c, where a = a₀m₀ is
the base of the laws and ln κ is flat on its range. In these coordinates no category has probability
zero at the mode. It is found by Minka's fixed point for m (an EM step on the expected number of
tables) with Newton steps for ln κ, accelerated by SQUAREM (Varadhan & Roland 2008). It serves as a
start for the draws and for held-out prediction. It is no basis for a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from brmdp._kernels.tables import rises
from brmdp._validation import FloatArray, IntArray
from brmdp.decisions.families import Family

__all__ = [
    "Mode",
    "Tally",
    "differences",
    "log_evidence",
    "merged",
    "mode_of",
    "sums",
    "tally_of",
    "uphill",
]

MOST_ITERATIONS = 2000
LAW_TOLERANCE, STRENGTH_TOLERANCE = 1e-9, 1e-6
"""The iteration ends when no probability and no ln κ changes by more."""

SMALLEST_SHARE = 1e-30
"""No probability of a law is taken to be smaller."""


@dataclass(frozen=True, eq=False)
class Tally:
    """A log, reduced to what the marginal likelihood depends on.

    Attributes
    ----------
    kind, count, times : arrays
        ``times`` entries of ``kind`` were observed ``count`` > 0 times each.
    strength, total, rows : arrays
        ``rows`` rows with κ number ``strength`` were observed ``total`` > 0 times each.
    """

    kind: IntArray
    count: FloatArray
    times: FloatArray
    strength: IntArray
    total: FloatArray
    rows: FloatArray


def tally_of(family: Family, counts: IntArray | FloatArray) -> Tally:
    """Reduce counts, one per entry; rows with one possible successor drop out."""
    used = np.flatnonzero(family.uncertain & (counts > 0))
    kind, count, times = merged(family.kind_of_entry[used], counts[used])
    pattern = family.pattern
    owners = pattern.pair_of_transition[used]
    totals = np.bincount(owners, counts[used], pattern.n_pairs)
    rows = np.flatnonzero(totals > 0)
    return Tally(kind, count, times, *merged(family.strength_of_pair[rows], totals[rows]))


def merged(
    label: IntArray, number: IntArray | FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Equal (label, number) once, with their multiplicities."""
    order = np.lexsort((number, label))
    label, number = label[order], np.asarray(number, dtype=np.float64)[order]
    fresh = np.ones(label.size, dtype=bool)
    fresh[1:] = (label[1:] != label[:-1]) | (number[1:] != number[:-1])
    first = np.flatnonzero(fresh)
    return label[first], number[first], np.diff(np.append(first, label.size)).astype(np.float64)


def log_evidence(family: Family, tally: Tally, log_strength: FloatArray, law: FloatArray) -> float:
    """Log likelihood of the counts given κ and the laws, exact up to rounding."""
    strength = np.exp(log_strength)
    weight = (strength[family.strength_of_kind] * family.shares(law))[tally.kind]
    total = strength[tally.strength]
    entries = tally.times @ (gammaln(weight + tally.count) - gammaln(weight))
    rows = tally.rows @ (gammaln(total) - gammaln(total + tally.total))
    return float(entries + rows)


@dataclass(frozen=True, eq=False)
class Mode:
    """The mode of (ln κ, ln m), and how it was found."""

    log_strength: FloatArray
    law: FloatArray
    iterations: int
    converged: bool


def mode_of(
    family: Family,
    tally: Tally,
    bounds: tuple[float, float],
    start: tuple[FloatArray, FloatArray] | None = None,
    *,
    tolerance: float = 1.0,
) -> Mode:
    """The mode of (ln κ, ln m), with ln κ within ``bounds``.

    Where there are no data, ln κ stays in the middle of its range. The iteration ends at
    ``tolerance`` times the module's tolerances.
    """
    if start is None:
        low, high = bounds
        middle = np.full(family.n_strengths, np.clip(np.log(10.0), low, high))
        seen = np.bincount(tally.strength, tally.total, family.n_strengths) > 0
        start = np.where(seen, middle, 0.5 * (low + high)), _first_law(family, tally)
    at = _improved(family, tally, bounds, start)
    objective = _objective(family, tally, at)
    changed = np.inf
    iterations = 1
    while iterations < MOST_ITERATIONS:
        once = _improved(family, tally, bounds, at)
        changed = _change(at, once)
        iterations += 1
        if changed <= tolerance:
            return Mode(*once, iterations, True)
        twice = _improved(family, tally, bounds, once)
        iterations += 1
        at, objective = _leap(family, tally, bounds, at, once, twice, objective)
        iterations += 1
    return Mode(*at, iterations, False)


Point = tuple[FloatArray, FloatArray]


def _first_law(family: Family, tally: Tally) -> FloatArray:
    """The share of entries in which each category occurred, and the base."""
    weight = np.bincount(tally.kind, tally.times, family.n_kinds)
    widths = np.maximum(np.diff(family.kinds.indptr), 1)
    return family.normalised(family.base + (family.kinds.T @ (weight / widths)))


def _change(before: Point, after: Point) -> float:
    """The largest change in units of the tolerances."""
    strength = float(np.abs(after[0] - before[0]).max(initial=0.0)) / STRENGTH_TOLERANCE
    law = float(np.abs(after[1] - before[1]).max(initial=0.0)) / LAW_TOLERANCE
    return max(strength, law)


def _objective(family: Family, tally: Tally, at: Point) -> float:
    log_strength, law = at
    return log_evidence(family, tally, log_strength, law) + float(family.base @ np.log(law))


def differences(weight: FloatArray, count: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ψ(θ + n) − ψ(θ) and ψ′(θ + n) − ψ′(θ), for θ > 0 and n ≥ 0."""
    first, second = np.empty(weight.shape), np.empty(weight.shape)
    rises(weight, count, first, second)
    return first, second


def _improved(family: Family, tally: Tally, bounds: tuple[float, float], at: Point) -> Point:
    """One step of the fixed point for the laws, and one of Newton's for every ln κ."""
    log_strength, law = at
    share = family.shares(law)
    strength = np.exp(log_strength)
    weight = (strength[family.strength_of_kind] * share)[tally.kind]
    first, second = differences(weight, tally.count)
    tables = np.bincount(tally.kind, tally.times * weight * first, family.n_kinds)
    if family.fixed is None:
        ratio = tables / np.maximum(share, SMALLEST_SHARE)
        law = family.normalised(
            np.maximum(family.base + law * (family.kinds.T @ ratio), SMALLEST_SHARE)
        )
        weight = (strength[family.strength_of_kind] * family.shares(law))[tally.kind]
        first, second = differences(weight, tally.count)
    gain: FloatArray = tally.times * weight * first
    bend: FloatArray = tally.times * weight**2 * second
    total = strength[tally.strength]
    first, second = differences(total, tally.total)
    loss: FloatArray = tally.rows * total * first
    turn: FloatArray = tally.rows * total**2 * second
    n = family.n_strengths
    of_cell = family.strength_of_kind[tally.kind]
    slope = sums(of_cell, gain, n) - sums(tally.strength, loss, n)
    curve = sums(of_cell, gain + bend, n) - sums(tally.strength, loss + turn, n)
    return np.clip(log_strength + uphill(slope, curve), *bounds), law


def sums(label: IntArray, value: FloatArray, n: int) -> FloatArray:
    """Sums of values by label, 0 … n − 1."""
    return np.bincount(label, value, n).astype(np.float64)


def uphill(slope: FloatArray, curve: FloatArray) -> FloatArray:
    """Newton's step to a maximum, of at most 1; where the curve is not concave, 1 uphill."""
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(curve < 0.0, -slope / curve, np.sign(slope))
    return np.clip(np.where(np.isfinite(step), step, 0.0), -1.0, 1.0)


def _leap(
    family: Family,
    tally: Tally,
    bounds: tuple[float, float],
    at: Point,
    once: Point,
    twice: Point,
    objective: float,
) -> tuple[Point, float]:
    """SQUAREM: extrapolate two steps, unless that is worse than the steps themselves."""
    points = [np.concatenate((x, np.log(m))) for x, m in (at, once, twice)]
    step = points[1] - points[0]
    curve = points[2] - points[1] - step
    size = float(np.linalg.norm(curve))
    if size > 0.0:
        length = max(1.0, float(np.linalg.norm(step)) / size)
        reached = points[0] + 2.0 * length * step + length**2 * curve
        n = family.n_strengths
        law = family.normalised(
            np.maximum(np.exp(np.clip(reached[n:], -80.0, 20.0)), SMALLEST_SHARE)
        )
        tried = _improved(family, tally, bounds, (np.clip(reached[:n], *bounds), law))
        found = _objective(family, tally, tried)
        if np.isfinite(found) and found >= objective:
            return tried, found
    return twice, _objective(family, tally, twice)
