"""The paper's Monte Carlo quantile: the order statistic ⌈nα⌉ of n posterior draws.

A pair gets min{cap, ⌈c·α(1 − α)/φ_std(Φ⁻¹(α))²⌉} draws (the paper's "Monte Carlo budget for
quantile estimation"), so levels in the tails get more. Draws are fixed during a solve, so the
operator is deterministic, and the error bound of a plan holds *for the sampled problem*: the plan's
status is "sampled".

**Reused draws.** With G ~ Gamma(φ) unnormalised, adding an independent Gamma(Δ) when φ grows by Δ
gives an exact draw of the new posterior. So a plan after a few observations redraws only the rows
that changed, and in these only what was added. Each draw has exactly the right distribution *if the
data were collected independently of the draws*. Online, the visits were chosen by looking at these
very draws, which biases them (a winner's curse). Keep the number of draws large, and measure the
effect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from brmdp._streams import stream_checkpoint, stream_from_state, stream_state
from brmdp._validation import (
    FloatArray,
    IntArray,
    Seed,
    as_float_array,
    as_levels,
    as_positive_int,
    as_positive_number,
    as_rng,
)
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import draws_of
from brmdp.beliefs.dirichlet import DirichletBelief
from brmdp.beliefs.gammas import LARGEST, SMALLEST, log_gammas, normalise_log_rows
from brmdp.errors import InvalidInputError
from brmdp.pattern import TransitionPattern
from brmdp.risk.base import SAMPLED, RiskOperator, rounding

__all__ = ["MonteCarlo", "SampledQuantile", "order_statistic_rank"]

RANK_TOLERANCE = 1e-9
"""Slack of the rank, ⌈nα − 1e-9⌉: α = 0.07 has rank 7 of 100 although 100·0.07 > 7 in binary."""

LARGEST_LOG = 40.0
"""No log gamma is larger: e⁴⁰ is 100,000 times the largest concentration that may be stored."""


def order_statistic_rank(n: ArrayLike, alpha: ArrayLike) -> Any:
    """The paper's rank ⌈nα⌉, counted from 1 and at least 1.

    Examples
    --------
    >>> from brmdp.risk import order_statistic_rank
    >>> int(order_statistic_rank(147, 0.1))
    15
    """
    return np.maximum(np.ceil(np.asarray(n) * np.asarray(alpha) - RANK_TOLERANCE), 1).astype(
        np.int64
    )


LARGEST_SAMPLE = 250_000_000
"""Largest sample of kernels, in numbers (2 GB)."""

MAX_DRAWS = 10_000_000
"""Largest number of draws of a row; no plan can use more."""


def _as_draws(value: Any, name: str) -> int:
    number = as_positive_int(value, name)
    if number > MAX_DRAWS:
        raise InvalidInputError(f"{name} must be at most {MAX_DRAWS:,}; got {number:,}")
    return number


class MonteCarlo:
    """Quantiles estimated from posterior draws, for the ``method`` of :class:`brmdp.Quantile`.

    The budget rule gives a pair with level α min{cap, ⌈c·α(1 − α)/φ_std(Φ⁻¹(α))²⌉} draws, where
    φ_std and Φ are the density and the distribution function of the standard normal law.

    Parameters
    ----------
    coefficient : float
        c in the budget rule; the paper uses 150, 200 and 250.
    cap : int
        Largest number of draws per pair; the paper uses 2,048.
    samples : int, optional
        A fixed number of draws for every pair, instead of the budget rule.
    reuse : bool
        Keep ``cap`` (or ``samples``) unnormalised draws per row between plans and update them with
        new data. This needs a :class:`brmdp.DirichletBelief`, and memory for ``cap`` numbers per
        possible transition. The object then has a memory: use one per belief.
    rng : numpy.random.Generator or seed, optional
        Source of the draws. Every plan takes new ones from it, unless ``reuse`` is set.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> risk = brmdp.Quantile(0.1, method=brmdp.MonteCarlo(samples=500, rng=0))
    >>> brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=risk).status
    'sampled'
    """

    def __init__(
        self,
        coefficient: float = 250.0,
        *,
        cap: int = 2048,
        samples: int | None = None,
        reuse: bool = False,
        rng: Seed = None,
    ) -> None:
        self.coefficient = as_positive_number(coefficient, "coefficient")
        self.cap = _as_draws(cap, "cap")
        self.samples = None if samples is None else _as_draws(samples, "samples")
        self.reuse = bool(reuse)
        self.rng = as_rng(rng)
        self._kept: _KeptDraws | None = None
        self._remembered: tuple[FloatArray, FloatArray] | None = None

    def __repr__(self) -> str:
        size = (
            f"coefficient={self.coefficient:g}, cap={self.cap}"
            if self.samples is None
            else f"samples={self.samples}"
        )
        return f"MonteCarlo({size}{', reuse=True' if self.reuse else ''})"

    def memory(self) -> dict[str, NDArray[Any]]:
        """State of the random stream, and the draws kept, as named arrays."""
        kept = self._remembered if self._kept is None else (self._kept.phi, self._kept.logs)
        return {"stream": stream_state(self.rng)} | (
            {} if kept is None else {"phi": kept[0], "logs": kept[1]}
        )

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        """Continue from a state that :meth:`memory` returned."""
        self.rng = stream_from_state(memory["stream"])
        self._remembered = self._kept = None
        if "phi" in memory or "logs" in memory:
            phi, logs = as_float_array(memory["phi"], "phi"), as_float_array(memory["logs"], "logs")
            if phi.ndim != 1 or logs.shape != (self.samples or self.cap, phi.size):
                raise InvalidInputError(
                    f"phi and logs must have the shapes (n,) and ({self.samples or self.cap}, n); "
                    f"got {phi.shape} and {logs.shape}"
                )
            if (phi < SMALLEST).any() or (phi > 2.0 * LARGEST).any() or (logs > LARGEST_LOG).any():
                raise InvalidInputError(
                    f"phi must be concentrations in [{SMALLEST:g}, {2.0 * LARGEST:g}] and logs at "
                    f"most {LARGEST_LOG:g}"
                )
            self._remembered = (phi, logs)

    def checkpoint(self) -> Callable[[], None]:
        """A function that resets the stream and the draws to their current state."""
        stream_back, kept, remembered = stream_checkpoint(self.rng), self._kept, self._remembered

        def back() -> None:
            stream_back()
            self._kept, self._remembered = kept, remembered

        return back

    def budget(self, alpha: ArrayLike) -> Any:
        """Number of draws at each level: ``samples``, or by default that of the budget rule."""
        levels = as_levels(alpha)
        if self.samples is not None:
            return np.full(levels.shape, self.samples, dtype=np.int64)
        score = ndtri(levels)
        # in logarithms: the density underflows long before the level does
        log_ratio = np.log(levels) + np.log1p(-levels) + score * score + np.log(2.0 * np.pi)
        wanted = np.ceil(
            self.coefficient * np.exp(np.minimum(log_ratio, 700.0 - np.log(self.coefficient)))
            - RANK_TOLERANCE
        )
        return np.clip(wanted, 1, self.cap).astype(np.int64)

    def bind(self, belief: Belief, levels: FloatArray) -> SampledQuantile:
        """Draw for every pair and keep the draws fixed."""
        pattern = belief.pattern
        budgets = self.budget(levels)
        used = np.full(budgets.shape, self.samples or self.cap) if self.reuse else budgets
        numbers = float((used[pattern.pairs] * pattern.row_widths.astype(np.float64)).sum())
        if numbers > LARGEST_SAMPLE:
            raise InvalidInputError(
                f"samples (or cap) is too large: draws × transitions must be at most "
                f"{LARGEST_SAMPLE:,}; got {numbers:,.0f} from up to "
                f"{int(used[pattern.pairs].max()):,} draws of {pattern.n_transitions:,} transitions"
            )
        if self.reuse:
            if not isinstance(belief, DirichletBelief):
                raise InvalidInputError(
                    f"reuse=True needs a DirichletBelief; got {type(belief).__name__}"
                )
            if self._remembered is not None and self._remembered[0].size != pattern.n_transitions:
                raise InvalidInputError(
                    f"the restored draws belong to {self._remembered[0].size} transitions, but "
                    f"the belief has {pattern.n_transitions}"
                )
            kept = (
                self._kept
                if self._remembered is None
                else _KeptDraws.of(pattern, *self._remembered)
            )
            if kept is None or not kept.can_follow(belief):
                phi = belief.concentration_entries.copy()
                kept = _KeptDraws.of(
                    pattern, phi, log_gammas(phi, self.samples or self.cap, self.rng)
                )
            kept = kept.updated(belief, self.rng)
            self._kept, self._remembered = kept, None
            draws = [kept.rows[p][: budgets[p]] for p in pattern.pairs.tolist()]
        else:
            draws = [
                draws_of(belief, int(budgets[p]), self.rng, pattern.pairs[k : k + 1])
                for k, p in enumerate(pattern.pairs)
            ]
        return SampledQuantile(
            pattern, dict(zip(pattern.pairs.tolist(), draws, strict=True)), levels
        )


@dataclass(frozen=True, eq=False, slots=True)
class _KeptDraws:
    """Logarithms of the unnormalised gammas of every row, and their concentrations; immutable.

    Attributes
    ----------
    pattern : TransitionPattern
        Possible transitions.
    phi : (transitions,) array
        Concentrations that the draws belong to.
    blocks, rows : dict
        The logarithms, and the normalised draws, of each pair: (draws, successors).
    """

    pattern: TransitionPattern
    phi: FloatArray
    blocks: dict[int, FloatArray]
    rows: dict[int, FloatArray]

    @classmethod
    def of(cls, pattern: TransitionPattern, phi: FloatArray, logs: FloatArray) -> _KeptDraws:
        """Split the logarithms of all rows, (draws, transitions), by pair."""
        indptr = pattern.indptr
        blocks = {p: np.array(logs[:, indptr[p] : indptr[p + 1]]) for p in pattern.pairs.tolist()}
        return cls(pattern, phi, blocks, {p: _normalised(block) for p, block in blocks.items()})

    @property
    def logs(self) -> FloatArray:
        """The logarithms of all rows, (draws, transitions)."""
        return np.concatenate([self.blocks[p] for p in self.pattern.pairs.tolist()], axis=1)

    def can_follow(self, belief: DirichletBelief) -> bool:
        """Whether the belief can be a later state of the one that was drawn from."""
        return self.pattern.same_as(belief.pattern) and bool(
            (belief.concentration_entries >= self.phi).all()
        )

    def updated(self, belief: DirichletBelief, rng: np.random.Generator) -> _KeptDraws:
        """Add Gamma(Δφ) where the concentrations grew, and normalise those rows again."""
        grown = np.flatnonzero(belief.concentration_entries > self.phi)
        if grown.size == 0:
            return self
        blocks, rows = dict(self.blocks), dict(self.rows)
        n_draws = next(iter(blocks.values())).shape[0]
        added = log_gammas(belief.concentration_entries[grown] - self.phi[grown], n_draws, rng)
        pairs = self.pattern.pair_of_transition[grown]
        for pair in np.unique(pairs).tolist():
            here = pairs == pair
            block = blocks[pair].copy()
            columns = grown[here] - self.pattern.indptr[pair]
            block[:, columns] = np.logaddexp(block[:, columns], added[:, here])
            blocks[pair], rows[pair] = block, _normalised(block)
        return _KeptDraws(self.pattern, belief.concentration_entries.copy(), blocks, rows)


def _normalised(block: FloatArray) -> FloatArray:
    return normalise_log_rows(block, np.array([block.shape[1]]))


class SampledQuantile:
    """Order statistic ⌈nα⌉ of w·P over fixed draws; its row is the draw that attains it."""

    basis = SAMPLED

    def __init__(
        self, pattern: TransitionPattern, draws: dict[int, FloatArray], levels: FloatArray
    ) -> None:
        self.pattern = pattern
        self.draws = draws
        self.ranks = {p: int(order_statistic_rank(d.shape[0], levels[p])) for p, d in draws.items()}

    def evaluate(self, targets: FloatArray, pairs: IntArray, out: FloatArray) -> float:
        """Empirical quantiles, exact for the sampled problem up to rounding."""
        indptr = self.pattern.indptr
        for p in pairs.tolist():
            sampled = self.draws[p] @ targets[indptr[p] : indptr[p + 1]]
            rank = self.ranks[p] - 1
            sampled.partition(rank)
            out[p] = sampled[rank]
        return rounding(self.pattern, float(np.abs(targets).max()))

    def rows(
        self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True
    ) -> FloatArray:
        """The draws that attain the quantiles."""
        indptr = self.pattern.indptr
        chosen = []
        for p in pairs.tolist():
            sampled = self.draws[p] @ targets[indptr[p] : indptr[p + 1]]
            chosen.append(
                self.draws[p][np.argpartition(sampled, self.ranks[p] - 1)[self.ranks[p] - 1]]
            )
        return np.concatenate(chosen)

    def fixed_entries(self) -> FloatArray | None:
        """The rows depend on the targets."""
        return None

    def approximation(self) -> RiskOperator | None:
        """None: nothing is cheaper for the sampled problem."""
        return None
