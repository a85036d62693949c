"""Joint draws of κ and the laws given a log.

Gibbs sampling with the numbers of tables of Chinese restaurants. Given (κ, m), an entry of weight
θ = κ m_e that was observed n times has t ~ CRT(n, θ) tables, the sum of independent indicators with
probabilities θ/(θ + j), j = 0 … n − 1. Given the tables, the likelihood is

    κ^T Π_c m_c^{T_c} Π_i Γ(κ)/Γ(κ + n_i),

so m | t ~ Dir(a₀m₀ + T_c), where the tables of an entry with several categories are first split
among them in proportion to m_c.

Tables tie κ to its last value wherever its distribution is wide. So ln κ moves by a slice step
given m alone, by the exact marginal likelihood; the tables are drawn anew right after it, which
keeps the joint distribution invariant. Only if a log has very many distinct counts, ln κ is drawn
given the tables: its log density is then concave, and is inverted numerically on a grid laid over
the place where it lives.

Entries of one kind have equal weights. So for every kind and j, the number of tables at seat j of
*all* its entries is one binomial draw, and a sweep costs as much as the largest counts of the kinds
add up to (or less, see :data:`EXACT_SEATS`), not as much as there are rows or transitions.

Several chains run at once from dispersed starts. Split R̂ and effective sample sizes (Geyer's
initial monotone sequence, averaged over chains) are computed for every ln κ and for the
probabilities of the kinds that were observed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import gammaln

from brmdp._kernels.tables import add_tables
from brmdp._validation import FloatArray, IntArray
from brmdp.beliefs.gammas import SMALLEST, log_gammas, normalise_log_rows
from brmdp.decisions.families import Family
from brmdp.decisions.marginal import SMALLEST_SHARE, Mode, Tally

__all__ = ["Mixing", "SharedSampler", "draw_log_strength", "mixing_of", "row_term", "run_chains"]

CHAINS = 8
BURN_IN = 200
PILOT = 200
"""Sweeps per chain that are thrown away, and those from which the thinning is chosen."""

MOST_THINNING = 40
LARGEST_R_HAT = 1.05
ROUNDS = 3
"""Draws with a larger R̂, or worth too little, are thrown away and replaced by sparser ones, up to
this many rounds."""

FEWEST_WATCHED = 50
"""Number of states per chain that R̂ is computed from, even if fewer are kept."""

MOST_WATCHED = 200
"""Number of kinds whose mixing is watched, the most observed ones first."""

MOST_CELLS = 100_000
"""Up to this many distinct counts, ln κ moves by slice steps."""

LEARNED_AT = (20, 60, BURN_IN)
SPREADS, NARROWEST = 6.0, 1e-3
"""Slice intervals are this many standard deviations wide, as seen after so many sweeps."""

FEW = 2
"""Entries are seated one by one if there are this many times fewer of them than different seats."""

EXACT_SEATS, BLOCK = 256, 1.0 / 64.0
"""Seats up to this number are looked at one by one; beyond, in blocks whose length is at most this
share of their number. The chances of a table in a block then differ by less than 1.6 %, which
changes the mean and the variance of the number of tables by less than one part in 40,000."""

COST_OF_GAMMA = 12
"""A logarithm of Γ takes as long as about this many ordinary ones."""

NODES, FINE = 1025, 257
DEPTH = 35.0
"""Points of the grids for ln κ; places where the log density is this far down are left out."""


def row_term(total: FloatArray, rows: FloatArray, log_strength: FloatArray) -> FloatArray:
    """Σ_i [lnΓ(κ) − lnΓ(κ + n_i)] at many ln κ."""
    result = np.empty(log_strength.shape)
    strength = np.exp(log_strength)
    flat, out = strength.ravel(), result.ravel()
    step = max(1, 2_000_000 // max(total.size, 1))
    for begin in range(0, flat.size, step):
        some = flat[begin : begin + step, None]
        out[begin : begin + step] = (gammaln(some) - gammaln(some + total)) @ rows
    return out.reshape(log_strength.shape)


def draw_log_strength(
    tables: FloatArray,
    term: Callable[[FloatArray], FloatArray],
    grid: FloatArray,
    on_grid: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw ln κ with log density T·x + term(x) on the range of ``grid``, once for every T.

    ``on_grid`` holds ``term(grid)``.
    """
    coarse = tables[:, None] * grid + on_grid
    coarse -= coarse.max(axis=1, keepdims=True)
    inside = coarse > -DEPTH
    first = np.maximum(np.argmax(inside, axis=1) - 1, 0)
    last = np.minimum(grid.size - 1 - np.argmax(inside[:, ::-1], axis=1) + 1, grid.size - 1)
    low, high = grid[first], grid[last]
    points = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, FINE)
    logs = tables[:, None] * points + term(points)
    density = np.exp(logs - logs.max(axis=1, keepdims=True))
    cumulative = np.zeros_like(density)
    np.cumsum(0.5 * (density[:, 1:] + density[:, :-1]), axis=1, out=cumulative[:, 1:])
    wanted = rng.random(tables.size) * cumulative[:, -1]
    cell = np.minimum((cumulative <= wanted[:, None]).sum(axis=1) - 1, FINE - 2)
    every = np.arange(tables.size)
    left, right = density[every, cell], density[every, cell + 1]
    rest = wanted - cumulative[every, cell]
    # invert left·u + (right − left)·u²/2 = rest without cancellation
    root = np.sqrt(np.maximum(left**2 + 2.0 * (right - left) * rest, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        inside_cell = np.nan_to_num(2.0 * rest / (left + root), nan=0.5, posinf=1.0)
    place = points[every, cell] + np.clip(inside_cell, 0.0, 1.0) * (high - low) / (FINE - 1)
    drawn: FloatArray = np.clip(place, grid[0], grid[-1])
    return drawn


def added(place: IntArray, terms: NDArray[Any], n: int) -> FloatArray:
    """Sums of terms (chains, …) by place, (chains, n)."""
    chains = terms.shape[0]
    where = (place + n * np.arange(chains)[:, None]).ravel()
    return np.bincount(where, terms.ravel(), chains * n).astype(np.float64).reshape(chains, n)


def slice_step(
    log_strength: FloatArray,
    log_density: Callable[[FloatArray], FloatArray],
    bounds: tuple[float, float],
    rng: np.random.Generator,
    width: FloatArray | float = np.inf,
) -> FloatArray:
    """One slice step for independent numbers of any shape.

    It shrinks an interval that is laid at random around each number, ``width`` wide, or the whole
    range if that is narrower (Neal 2003).
    """
    low, high = (np.full(log_strength.shape, bound) for bound in bounds)
    width = np.broadcast_to(width, log_strength.shape)
    narrow = width < high - low
    if narrow.any():
        left = log_strength - np.where(narrow, width, 0.0) * rng.random(log_strength.shape)
        low = np.where(narrow, np.maximum(low, left), low)
        high = np.where(narrow, np.minimum(high, left + width), high)
    level = log_density(log_strength) - rng.standard_exponential(log_strength.shape)
    result = log_strength.copy()
    searching = np.ones(log_strength.shape, dtype=bool)
    while searching.any():
        tried = np.where(searching, rng.uniform(low, high), result)
        accepted = log_density(tried) >= level
        result = np.where(searching & accepted, tried, result)
        searching &= ~accepted & (high - low > 1e-12)
        below = tried < log_strength
        low = np.where(searching & below, tried, low)
        high = np.where(searching & ~below, tried, high)
    return result


class Widths:
    """Widths of the slice steps, learned while the chains burn in and fixed from then on.

    Parameters
    ----------
    bounds : (float, float)
        Range of the numbers.
    """

    def __init__(self, bounds: tuple[float, float]) -> None:
        self._range = bounds[1] - bounds[0]
        self._seen: list[FloatArray] = []
        self.width: FloatArray | float = self._range

    def learn(self, log_strength: FloatArray) -> None:
        """Take note of the state (chains, numbers) after a sweep."""
        if len(self._seen) >= BURN_IN:
            return
        self._seen.append(log_strength)
        if len(self._seen) in LEARNED_AT:
            late = np.concatenate(self._seen[len(self._seen) // 2 :])
            self.width = np.maximum(SPREADS * late.std(axis=0), NARROWEST)


class LawSampler:
    """Draws of the laws given the tables of every kind."""

    def __init__(self, family: Family, tally: Tally, rng: np.random.Generator) -> None:
        self.family, self.rng = family, rng
        widths = np.diff(family.kinds.indptr)
        seen = np.bincount(tally.kind, minlength=family.n_kinds) > 0
        self._alone = np.flatnonzero(seen & (widths == 1))
        self._category = family.kinds.indices[family.kinds.indptr[self._alone]]
        several = np.flatnonzero(seen & (widths > 1))
        self._split = [
            (kinds, np.stack([_members(family, k) for k in kinds]))
            for size in np.unique(widths[several])
            for kinds in [several[widths[several] == size]]
        ]

    def draw(self, tables: FloatArray, law: FloatArray) -> FloatArray:
        """New laws, given tables (chains, kinds) and the last laws (chains, categories)."""
        family, rng = self.family, self.rng
        weight = np.tile(family.base, (law.shape[0], 1))
        weight[:, self._category] += tables[:, self._alone]
        for kinds, members in self._split:
            parts = law[:, members]
            parts = parts / parts.sum(axis=2, keepdims=True)
            split = rng.multinomial(tables[:, kinds].astype(np.int64), parts)
            # kinds overlap, so a category may occur several times
            for chain in range(law.shape[0]):
                weight[chain] += np.bincount(
                    members.ravel(), split[chain].ravel(), family.n_categories
                )
        logs = log_gammas(weight.ravel(), 1, rng).reshape(weight.shape)
        widths = family.law_sizes[family.law_sizes > 0]
        return np.maximum(normalise_log_rows(logs, widths), SMALLEST_SHARE)


class SharedSampler:
    """Draws of (ln κ, m) for one family, several chains at once.

    Parameters
    ----------
    family : Family
    tally : Tally
    bounds : (float, float)
        Range of ln κ.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        family: Family,
        tally: Tally,
        bounds: tuple[float, float],
        rng: np.random.Generator,
    ) -> None:
        self.family, self.rng, self.bounds = family, rng, bounds
        self._tally = tally
        self._collapsed = 0 < tally.kind.size <= MOST_CELLS
        self._widths = Widths(bounds)
        self._kind, self._seat, self._times, self._certain = _seats(family, tally)
        self._few = float(tally.times.sum()) * FEW <= self._kind.size
        # most seats belong to one entry only, and a comparison is cheaper than a binomial draw
        self._single = np.flatnonzero(self._times == 1)
        self._several = np.flatnonzero(self._times != 1)
        self._terms = _Terms(family, tally, self._kind, self._seat, self._times, self._certain)
        self._grid = np.linspace(*bounds, NODES)
        self._busy = np.unique(tally.strength)
        self._on_grid = np.zeros((NODES, self._busy.size))
        for position, k in enumerate(self._busy):
            mine = tally.strength == k
            self._on_grid[:, position] = row_term(tally.total[mine], tally.rows[mine], self._grid)
        self._spline: FloatArray = CubicSpline(self._grid, self._on_grid).c
        self._laws = LawSampler(family, tally, rng)

    def start(self, mode: Mode, chains: int) -> tuple[FloatArray, FloatArray]:
        """Dispersed states around the mode."""
        low, high = self.bounds
        spread = self.rng.uniform(-2.0, 2.0, (chains, self.family.n_strengths))
        log_strength = np.clip(mode.log_strength + spread, low, high)
        return log_strength, np.tile(mode.law, (chains, 1))

    def sweep(self, log_strength: FloatArray, law: FloatArray) -> tuple[FloatArray, FloatArray]:
        """One round of tables, laws and strengths; (chains, strengths), (chains, categories)."""
        family, rng = self.family, self.rng
        share = family.shares(law)
        if self._collapsed:
            log_strength = slice_step(
                log_strength,
                lambda x: self._marginal(x, share),
                self.bounds,
                rng,
                self._widths.width,
            )
            self._widths.learn(log_strength)
        weight = np.exp(log_strength)[:, family.strength_of_kind] * share
        tables = self._tables(weight)
        if family.fixed is None:
            law = self._laws.draw(tables, law)
        result = rng.uniform(*self.bounds, log_strength.shape)  # right where there are no data
        if self._collapsed:
            result[:, self._busy] = log_strength[:, self._busy]
            return result, law
        for position, k in enumerate(self._busy):
            result[:, k] = draw_log_strength(
                tables[:, family.strength_of_kind == k].sum(axis=1),
                partial(self._row_terms, position=position),
                self._grid,
                self._on_grid[:, position],
                rng,
            )
        return result, law

    def _tables(self, weight: FloatArray) -> FloatArray:
        """Tables of every kind, (chains, kinds), given the weights κ m of the kinds."""
        tally, rng = self._tally, self.rng
        if self._few:
            tables = np.tile(self._certain, (weight.shape[0], 1))
            for own, out in zip(weight, tables, strict=True):
                add_tables(tally.kind, tally.count, tally.times, own, rng, out)
            return tables
        at_seat = weight[:, self._kind]
        chance = at_seat / (at_seat + self._seat)
        drawn = np.empty(chance.shape)
        one, more = self._single, self._several
        drawn[:, one] = rng.random((weight.shape[0], one.size)) < chance[:, one]
        drawn[:, more] = rng.binomial(self._times[more], chance[:, more])
        return added(self._kind, drawn, self.family.n_kinds) + self._certain

    def _row_terms(
        self, log_strength: FloatArray, position: IntArray | int | None = None
    ) -> FloatArray:
        """The row terms of one strength, or of all those with data (chains, strengths)."""
        which = np.arange(self._busy.size) if position is None else position
        step = self._grid[1] - self._grid[0]
        cell = ((log_strength - self._grid[0]) / step).astype(np.int64)
        cell = np.clip(cell, 0, NODES - 2)
        offset = log_strength - self._grid[cell]
        cubic, square, slope, value = self._spline[:, cell, which]
        found: FloatArray = ((cubic * offset + square) * offset + slope) * offset + value
        return found

    def _marginal(self, log_strength: FloatArray, share: FloatArray) -> FloatArray:
        """Log likelihood by strength, (chains, strengths), with tables and rows integrated out."""
        weight = np.exp(log_strength)[:, self.family.strength_of_kind] * share
        result = self._terms.by_strength(weight)
        result[:, self._busy] += self._row_terms(log_strength[:, self._busy])
        return result


class _Terms:
    """Σ [lnΓ(θ + n) − lnΓ(θ)] over the observed entries, by strength.

    By the recursion of Γ each term is Σ_j ln(θ + j), which is cheaper if counts are small; entries
    of one kind share these logarithms.
    """

    def __init__(
        self,
        family: Family,
        tally: Tally,
        kind: IntArray,
        seat: FloatArray,
        times: IntArray,
        certain: FloatArray,
    ) -> None:
        few = tally.count.max(initial=0.0) <= EXACT_SEATS
        self._by_seat = few and seat.size <= 2 * COST_OF_GAMMA * tally.kind.size
        if self._by_seat:
            seen = np.flatnonzero(certain)
            kind = np.concatenate((seen, kind))
            number = np.concatenate((np.zeros(seen.size), seat))
            factor = np.concatenate((certain[seen], times))
        else:
            kind, number, factor = tally.kind, tally.count, tally.times
        strength = family.strength_of_kind[kind]
        order = np.argsort(strength, kind="stable")
        self._kind, self._number, self._factor = kind[order], number[order], factor[order]
        self._strength, self._begin = np.unique(strength[order], return_index=True)
        self._n = family.n_strengths

    def by_strength(self, weight: FloatArray) -> FloatArray:
        """The sums (chains, strengths), given the weights θ of the kinds (chains, kinds)."""
        theta = np.maximum(weight, SMALLEST)[:, self._kind]
        if self._by_seat:
            theta += self._number
            terms = np.log(theta, out=theta)
        else:
            terms = gammaln(theta + self._number) - gammaln(theta)
        terms *= self._factor
        result = np.zeros((weight.shape[0], self._n))
        if self._strength.size:
            result[:, self._strength] = np.add.reduceat(terms, self._begin, axis=1)
        return result


def _members(family: Family, kind: int) -> IntArray:
    begin, end = family.kinds.indptr[kind], family.kinds.indptr[kind + 1]
    members: IntArray = family.kinds.indices[begin:end].astype(np.int64)
    return members


def _seats(family: Family, tally: Tally) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
    """For each kind and seat j ≥ 1, how many of its entries have more than j observations.

    The last array is the number of observed entries of each kind: their first seats, which open a
    table for certain.
    """
    certain = np.bincount(tally.kind, tally.times, family.n_kinds).astype(np.float64)
    # cells are sorted by kind and count; seats from the last count up to this one are taken in
    # the entries of this cell and of those that follow it in its kind
    last = np.ones(tally.kind.size, dtype=bool)
    last[:-1] = tally.kind[1:] != tally.kind[:-1]
    above = np.append(np.cumsum(tally.times[::-1])[::-1], 0.0)
    ends = np.flatnonzero(last)
    of_cell = np.searchsorted(ends, np.arange(tally.kind.size))
    remaining = above[:-1] - above[ends + 1][of_cell]
    before = np.zeros(tally.kind.size)
    before[1:] = np.where(last[:-1], 0.0, tally.count[:-1])
    cell, first, size = seat_blocks(np.maximum(before, 1.0), tally.count)
    times = remaining[cell].astype(np.int64) * size
    return tally.kind[cell], first + 0.5 * (size - 1), times, certain


def seat_blocks(begin: FloatArray, end: FloatArray) -> tuple[IntArray, FloatArray, IntArray]:
    """Seats begin … end − 1 of every cell, in blocks: their cell, first seat and length.

    Up to :data:`EXACT_SEATS` a block is one seat. Beyond, the seats in it open a table with all but
    the same probability.
    """
    edges = _edges(float(end.max(initial=1.0)))
    inner = np.searchsorted(edges, begin, side="right")
    pieces = np.searchsorted(edges, end, side="left") - inner + 1
    pieces = np.where(end > begin, pieces, 0)
    cell = np.repeat(np.arange(begin.size), pieces)
    ends = np.cumsum(pieces)
    place = np.arange(cell.size) - (ends - pieces)[cell]
    low = np.where(place == 0, begin[cell], edges[inner[cell] + place - 1])
    top = np.minimum(inner[cell] + place, edges.size - 1)
    high = np.where(place == pieces[cell] - 1, end[cell], edges[top])
    return cell, low, (high - low).astype(np.int64)


def _edges(most: float) -> FloatArray:
    """Where blocks of seats begin: at every seat at first, then in growing steps."""
    every = np.arange(1.0, EXACT_SEATS + 1)
    if most <= EXACT_SEATS:
        return every
    steps = np.arange(1, int(np.log(most / EXACT_SEATS) / np.log1p(BLOCK)) + 2)
    return np.concatenate((every, np.floor(EXACT_SEATS * (1.0 + BLOCK) ** steps)))


# --- chains ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mixing:
    """How well the chains mixed.

    Attributes
    ----------
    chains, burn_in, thinning : int
        Number of chains, sweeps thrown away at the start of each, and sweeps per draw kept.
    draws : int
        Number of draws kept, of all chains together.
    effective : float
        Smallest effective number of draws of anything watched.
    r_hat : float
        Largest split R̂ of anything watched.

    Examples
    --------
    >>> import numpy as np
    >>> from brmdp.decisions import learn_prior
    >>> counts = np.random.default_rng(0).poisson(3.0, (4, 1, 4))
    >>> mixing = learn_prior(counts, shape="destinations", rng=0).mixing
    >>> mixing.draws, mixing.mixed
    (2000, True)
    """

    chains: int
    burn_in: int
    thinning: int
    draws: int
    effective: float
    r_hat: float

    @property
    def mixed(self) -> bool:
        """Whether the chains agree: R̂ is at most 1.05."""
        return self.r_hat <= LARGEST_R_HAT

    def __str__(self) -> str:
        text = (
            f"{self.draws} joint draws from {self.chains} chains (burn-in {self.burn_in}, thinned "
            f"by {self.thinning}), worth about {self.effective:.0f} independent ones; largest "
            f"R-hat {self.r_hat:.3f}"
        )
        return text + ("." if self.mixed else ": THE CHAINS DISAGREE, do not rely on the draws.")


def mixing_of(watched: FloatArray) -> tuple[float, float]:
    """Smallest effective number of draws and largest split R̂ of series (chains, draws, series)."""
    chains, n, _ = watched.shape
    half = n // 2
    if half < 4 or watched.shape[2] == 0:
        return float(chains * n), 1.0
    split = np.concatenate((watched[:, :half], watched[:, n - half :]))
    within = split.var(axis=1, ddof=1).mean(axis=0)
    between = split.mean(axis=1).var(axis=0, ddof=1)
    moving = within > 1e-300
    if not moving.any():
        return float(chains * n), 1.0
    split, within, between = split[:, :, moving], within[moving], between[moving]
    pooled = within * (half - 1) / half + between
    r_hat = np.sqrt(pooled / within)
    # autocorrelations of all chains together, by the fast Fourier transform
    centred = split - split.mean(axis=1, keepdims=True)
    size = 2 ** int(np.ceil(np.log2(2 * half)))
    power = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    covariance = np.fft.irfft(power, size, axis=1)[:, :half].mean(axis=0) / half
    rho = 1.0 - (within * (half - 1) / half - covariance) / pooled
    pairs = rho[: 2 * (half // 2)].reshape(-1, 2, rho.shape[1]).sum(axis=1)
    going = np.cumprod(pairs > 0.0, axis=0).astype(bool)
    monotone = np.minimum.accumulate(np.where(going, pairs, 0.0), axis=0)
    time = np.maximum(2.0 * monotone.sum(axis=0) - 1.0, 1.0 / np.log10(chains * n + 10.0))
    return float((chains * n / time).min()), float(r_hat.max())


@dataclass(frozen=True)
class Schedule:
    """How long chains run before draws are kept, and how far apart these are.

    Attributes
    ----------
    burn_in, pilot : int
        Sweeps per chain that are thrown away, and those from which the thinning is chosen.
    worth, least : float
        What a draw should be worth, in independent ones, and what it must be worth.
    """

    burn_in: int = BURN_IN
    pilot: int = PILOT
    worth: float = 1.0
    least: float = 0.25


def _itself(*state: FloatArray) -> tuple[FloatArray, ...]:
    return state


def run_chains(
    sweep: Callable[..., tuple[FloatArray, ...]],
    start: tuple[FloatArray, ...],
    watch: Callable[..., FloatArray],
    draws: int,
    keep: Callable[..., tuple[FloatArray, ...]] = _itself,
    schedule: Schedule = Schedule(),
) -> tuple[tuple[FloatArray, ...], Mixing]:
    """Run chains until enough draws are kept.

    Parameters
    ----------
    sweep : function
        Takes and returns the state: arrays whose first axis is the chain.
    start : tuple of arrays
    watch : function
        Takes the state and returns the numbers whose mixing is watched, (chains, numbers).
    draws : int
        Draws to keep, of all chains together.
    keep : function
        Takes the state and returns what is kept of it; by default the state itself.
    schedule : Schedule

    Returns
    -------
    tuple of arrays, Mixing
        What was kept of the states, (draws, …), chain after chain.
    """
    chains = start[0].shape[0]
    state, burn_in = start, schedule.burn_in
    for _ in range(burn_in):
        state = sweep(*state)
    seen = []
    for _ in range(schedule.pilot):
        state = sweep(*state)
        seen.append(watch(*state))
    effective, _ = mixing_of(np.stack(seen, axis=1))
    burn_in += schedule.pilot
    apart = np.ceil(schedule.worth * chains * schedule.pilot / effective)
    thinning = int(np.clip(apart, 1, MOST_THINNING))
    each = -(-draws // chains)
    positions = max(each, FEWEST_WATCHED)
    stored = np.rint(np.linspace(0, positions - 1, each)).astype(int).tolist()
    for attempt in range(ROUNDS):
        kept: list[FloatArray] = []
        watched = []
        for position in range(positions):
            for _ in range(thinning):
                state = sweep(*state)
            if position in stored:
                parts = keep(*state)
                if not kept:
                    kept = [np.empty((chains, each, *part.shape[1:])) for part in parts]
                for store, part in zip(kept, parts, strict=True):
                    store[:, stored.index(position)] = part
            watched.append(watch(*state))
        effective, r_hat = mixing_of(np.stack(watched, axis=1))
        effective *= each / positions
        enough = r_hat <= LARGEST_R_HAT and effective >= schedule.least * draws
        if enough or attempt == ROUNDS - 1 or thinning == MOST_THINNING:
            break
        burn_in += positions * thinning
        thinning = min(3 * thinning, MOST_THINNING)
    found = tuple(store.reshape(chains * each, *store.shape[2:])[:draws] for store in kept)
    return found, Mixing(chains, burn_in, thinning, draws, min(effective, draws), r_hat)


def watched_kinds(family: Family, tally: Tally) -> IntArray:
    """The kinds that were observed most."""
    seen = np.bincount(tally.kind, tally.times * tally.count, family.n_kinds)
    order = np.argsort(-seen, kind="stable")[:MOST_WATCHED]
    return order[seen[order] > 0]
