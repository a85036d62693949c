"""The paper's Monte Carlo quantile.

Fixed posterior draws, order statistic ⌈nα⌉, more draws for levels in the tails.

The budget of a pair is min{cap, ⌈c·α(1 − α)/φ_std(Φ⁻¹(α))²⌉} (the paper's eq. app-nsa). Draws are
fixed during a solve, so the operator is deterministic, and the error bound of a plan is a bound
*for the sampled problem*: the plan's status is "sampled".

**Reused draws.** With G ~ Gamma(φ) unnormalised, adding an independent Gamma(Δ) when φ grows by Δ
gives an exact draw of the new posterior, so a plan after a few observations redraws only the rows
that changed, and of these only what was added. Each draw is exactly distributed *if the data were
collected independently of the draws*; online the visits were chosen by looking at these very draws,
which biases them (a winner's curse). Keep the number of draws large, and measure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from brmdp._streams import stream_from_state, stream_state, stream_checkpoint
from brmdp._validation import (
    FloatArray,
    IntArray,
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
"""⌈nα⌉ is taken of nα − 1e-9.

So that a level such as 0.07 with n = 100 has rank 7 although 100·0.07 > 7 in binary.
"""

LARGEST_LOG = 40.0
"""No logarithm of a gamma of a concentration that is allowed is above.

E⁴⁰ is a hundred thousand times the largest.
"""


def order_statistic_rank(n: Any, alpha: Any) -> Any:
    """The paper's rank ⌈nα⌉, 1-based, at least 1."""
    return np.maximum(np.ceil(np.asarray(n) * np.asarray(alpha) - RANK_TOLERANCE), 1).astype(
        np.int64
    )


LARGEST_SAMPLE = 250_000_000
"""Most numbers (2 GB) that a sample of kernels may hold."""

MAX_DRAWS = 10_000_000
"""Draws of a row: more than any plan can use."""


def _as_draws(value: Any, name: str) -> int:
    number = as_positive_int(value, name)
    if number > MAX_DRAWS:
        raise InvalidInputError(f"{name} must be at most {MAX_DRAWS:,}; got {number:,}")
    return number


class MonteCarlo:
    """How to estimate quantiles by posterior draws.

    Parameters
    ----------
    coefficient : float
        c in the budget rule (the paper: 150, 200, 250).
    cap : int
        Most draws per pair (the paper: 2,048).
    samples : int, optional
        A fixed number of draws for every pair, instead of the budget rule.
    reuse : bool
        Keep ``cap`` (or ``samples``) unnormalised draws per row between plans and update them with
        new data (Dirichlet posteriors only). The object then remembers; use one per posterior.
        Memory: ``cap`` numbers per possible transition.
    rng : numpy.random.Generator or seed
        Source of the draws; every plan takes fresh ones from it unless ``reuse``.
    """

    def __init__(
        self,
        coefficient: float = 250.0,
        *,
        cap: int = 2048,
        samples: int | None = None,
        reuse: bool = False,
        rng: Any = None,
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
        """Where the random stream stands, and the draws kept."""
        kept = self._remembered if self._kept is None else (self._kept.phi, self._kept.logs)
        return {"stream": stream_state(self.rng)} | (
            {} if kept is None else {"phi": kept[0], "logs": kept[1]}
        )

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        """Go on from there."""
        self.rng = stream_from_state(memory["stream"])
        self._remembered = self._kept = None
        if "phi" in memory or "logs" in memory:
            phi, logs = as_float_array(memory["phi"], "phi"), as_float_array(memory["logs"], "logs")
            if phi.ndim != 1 or logs.shape != (self.samples or self.cap, phi.size):
                raise InvalidInputError(
                    f"phi and logs must be the draws of one row each; got {phi.shape}, {logs.shape}"
                )
            if (phi < SMALLEST).any() or (phi > 2.0 * LARGEST).any() or (logs > LARGEST_LOG).any():
                raise InvalidInputError(
                    f"phi must be concentrations in [{SMALLEST:g}, {2.0 * LARGEST:g}] and logs at "
                    f"most {LARGEST_LOG:g}"
                )
            self._remembered = (phi, logs)

    def checkpoint(self) -> Callable[[], None]:
        """A function that undoes what follows."""
        stream_back, kept, remembered = stream_checkpoint(self.rng), self._kept, self._remembered

        def back() -> None:
            stream_back()
            self._kept, self._remembered = kept, remembered

        return back

    def budget(self, alpha: Any) -> Any:
        """Number of draws at each level."""
        levels = as_levels(alpha)
        if self.samples is not None:
            return np.full(levels.shape, self.samples, dtype=np.int64)
        score = ndtri(levels)
        # in logarithms: the density vanishes long before the level does
        log_ratio = np.log(levels) + np.log1p(-levels) + score * score + np.log(2.0 * np.pi)
        wanted = np.ceil(
            self.coefficient * np.exp(np.minimum(log_ratio, 700.0 - np.log(self.coefficient)))
            - RANK_TOLERANCE
        )
        return np.clip(wanted, 1, self.cap).astype(np.int64)

    def bind(self, belief: Belief, levels: FloatArray) -> SampledQuantile:
        """Draw for every pair and fix the draws."""
        pattern = belief.pattern
        budgets = self.budget(levels)
        used = np.full(budgets.shape, self.samples or self.cap) if self.reuse else budgets
        numbers = float((used[pattern.pairs] * pattern.row_widths.astype(np.float64)).sum())
        if numbers > LARGEST_SAMPLE:
            raise InvalidInputError(
                "samples (or cap) must be such that draws × transitions are at most "
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
                    f"the draws restored belong to {self._remembered[0].size} transitions, the "
                    f"belief has {pattern.n_transitions}"
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
            kept = kept.following(belief, self.rng)
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
    """Unnormalised gammas of every row, in logarithms, and the concentrations they belong to.

    Never changed in place.

    Attributes
    ----------
    pattern : TransitionPattern
    phi : (transitions,) array
    blocks, rows : dict
        By pair, (draws, successors): the logarithms, and the normalised draws.
    """

    pattern: TransitionPattern
    phi: FloatArray
    blocks: dict[int, FloatArray]
    rows: dict[int, FloatArray]

    @classmethod
    def of(cls, pattern: TransitionPattern, phi: FloatArray, logs: FloatArray) -> _KeptDraws:
        """From the logarithms of all rows, (draws, transitions)."""
        indptr = pattern.indptr
        blocks = {p: np.array(logs[:, indptr[p] : indptr[p + 1]]) for p in pattern.pairs.tolist()}
        return cls(pattern, phi, blocks, {p: _normalised(block) for p, block in blocks.items()})

    @property
    def logs(self) -> FloatArray:
        """The logarithms of all rows, (draws, transitions)."""
        return np.concatenate([self.blocks[p] for p in self.pattern.pairs.tolist()], axis=1)

    def can_follow(self, belief: DirichletBelief) -> bool:
        """Whether the belief is a later state of the one drawn from."""
        return self.pattern.same_as(belief.pattern) and bool(
            (belief.concentration_entries >= self.phi).all()
        )

    def following(self, belief: DirichletBelief, rng: np.random.Generator) -> _KeptDraws:
        """With Gamma(Δφ) added where the concentrations grew, and those rows normalised again."""
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
        """Empirical quantiles; exact for the sampled problem up to rounding."""
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
        """The attaining draws."""
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
        """Nothing is cheaper for the sampled problem."""
        return None
