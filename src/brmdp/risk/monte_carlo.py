"""The paper's Monte Carlo quantile: fixed posterior draws, order statistic ⌈nα⌉, more draws for levels in the tails.

The budget of a pair is min{cap, ⌈c·α(1 − α)/φ_std(Φ⁻¹(α))²⌉} (the paper's eq. app-nsa). Draws are fixed during a solve, so the
operator is deterministic and a certificate holds *for the sampled problem*.

**Reused draws.** With G ~ Gamma(φ) unnormalised, adding an independent Gamma(Δ) when φ grows by Δ gives an exact draw of the
new posterior, so a plan after a few observations redraws only the rows that changed, and of these only what was added. Each
draw is exactly distributed *if the data were collected independently of the draws*; online the visits were chosen by looking
at these very draws, which biases them (a winner's curse). Keep the number of draws large, and measure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from brmdp._streams import stream_from_state, stream_state
from brmdp._validation import (
    FloatArray,
    IntArray,
    as_float_array,
    as_levels,
    as_positive_int,
    as_positive_number,
    as_rng,
)
from brmdp.errors import InvalidInputError
from brmdp.pattern import TransitionPattern
from brmdp.posterior.base import Belief
from brmdp.posterior.dirichlet import DirichletPosterior
from brmdp.posterior.gammas import log_gammas, normalise_log_rows
from brmdp.risk.base import BoundRisk, rounding

__all__ = ["MonteCarlo", "SampledQuantile", "order_statistic_rank"]

RANK_TOLERANCE = 1e-9
"""⌈nα⌉ is taken of nα − 1e-9, so that a level such as 0.07 with n = 100 has rank 7 although 100·0.07 > 7 in binary."""


def order_statistic_rank(n: Any, alpha: Any) -> Any:
    """The paper's rank ⌈nα⌉, 1-based, at least 1."""
    return np.maximum(np.ceil(np.asarray(n) * np.asarray(alpha) - RANK_TOLERANCE), 1).astype(np.int64)


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
        Keep ``cap`` (or ``samples``) unnormalised draws per row between plans and update them with new data (Dirichlet
        posteriors only). The object then remembers; use one per posterior. Memory: ``cap`` numbers per possible transition.
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
        self.cap = as_positive_int(cap, "cap")
        self.samples = None if samples is None else as_positive_int(samples, "samples")
        self.reuse = bool(reuse)
        self.rng = as_rng(rng)
        self._kept: _KeptDraws | None = None
        self._remembered: tuple[FloatArray, FloatArray] | None = None

    def __repr__(self) -> str:
        size = (
            f"coefficient={self.coefficient:g}, cap={self.cap}" if self.samples is None else f"samples={self.samples}"
        )
        return f"MonteCarlo({size}{', reuse=True' if self.reuse else ''})"

    def memory(self) -> dict[str, NDArray[Any]]:
        """Where the random stream stands, and the draws kept."""
        kept = self._remembered if self._kept is None else (self._kept.phi, self._kept.logs)
        return {"stream": stream_state(self.rng)} | ({} if kept is None else {"phi": kept[0], "logs": kept[1]})

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        """Go on from there."""
        self.rng = stream_from_state(memory["stream"])
        self._remembered = self._kept = None
        if "phi" in memory or "logs" in memory:
            phi, logs = as_float_array(memory["phi"], "phi"), as_float_array(memory["logs"], "logs")
            if phi.ndim != 1 or logs.shape != (self.samples or self.cap, phi.size) or (phi <= 0.0).any():
                raise InvalidInputError(
                    f"phi and logs must be the draws of one row each; got {phi.shape}, {logs.shape}"
                )
            self._remembered = (phi, logs)

    def budget(self, alpha: Any) -> Any:
        """Number of draws at each level."""
        levels = as_levels(alpha)
        if self.samples is not None:
            return np.full(levels.shape, self.samples, dtype=np.int64)
        score = ndtri(levels)
        # in logarithms: the density vanishes long before the level does
        log_ratio = np.log(levels) + np.log1p(-levels) + score * score + np.log(2.0 * np.pi)
        wanted = np.ceil(
            self.coefficient * np.exp(np.minimum(log_ratio, 700.0 - np.log(self.coefficient))) - RANK_TOLERANCE
        )
        return np.clip(wanted, 1, self.cap).astype(np.int64)

    def bind(self, belief: Belief, levels: FloatArray) -> SampledQuantile:
        """Draw for every pair and fix the draws."""
        pattern = belief.pattern
        budgets = self.budget(levels)
        if self.reuse:
            if not isinstance(belief, DirichletPosterior):
                raise InvalidInputError(f"reuse=True needs a DirichletPosterior; got {type(belief).__name__}")
            if self._remembered is not None:
                self._kept = _KeptDraws(pattern, *self._remembered)
                self._remembered = None
            if self._kept is None or not self._kept.can_follow(belief):
                phi = belief.concentration_entries.copy()
                self._kept = _KeptDraws(pattern, phi, log_gammas(phi, self.samples or self.cap, self.rng))
            self._kept.follow(belief, self.rng)
            draws = [self._kept.rows[p][: budgets[p]] for p in pattern.pairs]
        else:
            draws = [
                belief.sample_entries(int(budgets[p]), self.rng, pairs=pattern.pairs[k : k + 1])
                for k, p in enumerate(pattern.pairs)
            ]
        return SampledQuantile(pattern, dict(zip(pattern.pairs.tolist(), draws, strict=True)), levels)


class _KeptDraws:
    """Unnormalised gammas of every row, in logarithms, and the concentrations they belong to."""

    def __init__(self, pattern: TransitionPattern, phi: FloatArray, logs: FloatArray) -> None:
        self.pattern = pattern
        self.phi = phi
        self.logs = logs
        self.rows: dict[int, FloatArray] = {int(p): self._normalised(int(p)) for p in self.pattern.pairs}

    def _normalised(self, pair: int) -> FloatArray:
        block = self.logs[:, self.pattern.indptr[pair] : self.pattern.indptr[pair + 1]]
        return normalise_log_rows(block, np.array([block.shape[1]]))

    def can_follow(self, belief: DirichletPosterior) -> bool:
        """Whether the belief is a later state of the one drawn from."""
        return self.pattern.same_as(belief.pattern) and bool((belief.concentration_entries >= self.phi).all())

    def follow(self, belief: DirichletPosterior, rng: np.random.Generator) -> None:
        """Add Gamma(Δφ) where the concentrations grew, and normalise those rows again."""
        grown = np.flatnonzero(belief.concentration_entries > self.phi)
        if grown.size == 0:
            return
        added = log_gammas(belief.concentration_entries[grown] - self.phi[grown], self.logs.shape[0], rng)
        self.logs[:, grown] = np.logaddexp(self.logs[:, grown], added)
        self.phi = belief.concentration_entries.copy()
        for pair in np.unique(self.pattern.pair_of_transition[grown]):
            self.rows[int(pair)] = self._normalised(int(pair))


class SampledQuantile:
    """Order statistic ⌈nα⌉ of w·P over fixed draws; its row is the draw that attains it."""

    certified = True

    def __init__(self, pattern: TransitionPattern, draws: dict[int, FloatArray], levels: FloatArray) -> None:
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

    def rows(self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True) -> FloatArray:
        """The attaining draws."""
        indptr = self.pattern.indptr
        chosen = []
        for p in pairs.tolist():
            sampled = self.draws[p] @ targets[indptr[p] : indptr[p + 1]]
            chosen.append(self.draws[p][np.argpartition(sampled, self.ranks[p] - 1)[self.ranks[p] - 1]])
        return np.concatenate(chosen)

    def fixed_entries(self) -> FloatArray | None:
        """The rows depend on the targets."""
        return None

    def approximation(self) -> BoundRisk | None:
        """Nothing is cheaper for the sampled problem."""
        return None
