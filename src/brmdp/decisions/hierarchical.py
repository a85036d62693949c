"""The belief behind a learned prior, with everything that is uncertain: κ, the laws and the rows.

It offers draws and means, but no exact quantiles: rows are dependent through the shared law.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.beliefs.gammas import SMALLEST, dirichlet_rows, log_gammas, normalise_log_rows
from brmdp.decisions.families import Family
from brmdp.decisions.gibbs import Mixing
from brmdp.errors import InvalidInputError
from brmdp.mdp import counted
from brmdp.pattern import KernelBelief, TransitionPattern

__all__ = ["GroupDraws", "HierarchicalBelief", "HyperDraws", "SharedDraws"]

LARGEST_SAMPLE = 250_000_000
"""Largest sample of kernels, in numbers (2 GB)."""

CHUNK = 5_000_000


class HyperDraws(Protocol):
    """Draws of what the rows' priors depend on."""

    def __len__(self) -> int:
        """Number of draws."""

    def prior(
        self, draws: IntArray, entries: IntArray | None, rng: np.random.Generator
    ) -> FloatArray:
        """Prior concentrations κ m of the entries (by default all), (draws, entries)."""

    def strengths(self) -> FloatArray:
        """κ of every pair, (draws, pairs)-like after :meth:`strength_of_pair`."""

    def strength_of_pair(self) -> IntArray:
        """Column of :meth:`strengths` for every pair."""

    def mean_entries(self, counts: IntArray, totals: FloatArray) -> FloatArray:
        """Posterior mean of the rows, averaged over the draws."""


@dataclass(frozen=True, eq=False)
class SharedDraws:
    """Draws of ln κ (draws, strengths) and of the laws of a family.

    Attributes
    ----------
    family : Family
    log_strength : (draws, strengths) array
    law : (draws, places) array
        Laws in which categories that were never seen are counted together
        (:func:`brmdp.decisions.families.condensed`). Their shares are drawn when they are needed.
    place : (categories,) integers
        Where each category is in ``law``.
    """

    family: Family
    log_strength: FloatArray
    law: FloatArray
    place: IntArray

    def __len__(self) -> int:
        return int(self.log_strength.shape[0])

    def prior(
        self, draws: IntArray, entries: IntArray | None, rng: np.random.Generator
    ) -> FloatArray:
        """Prior concentrations κ m, (draws, entries)."""
        family = self.family
        weight = self._weights(draws, rng)
        kinds = family.kind_of_entry if entries is None else family.kind_of_entry[entries]
        return np.maximum(weight[:, kinds], SMALLEST)

    def _weights(self, draws: IntArray, rng: np.random.Generator | None = None) -> FloatArray:
        """κ m of the kinds; without a stream, m is averaged over the shares that are not stored."""
        family = self.family
        weight = np.exp(self.log_strength[draws])[:, family.strength_of_kind]
        if family.fixed is None:
            weight *= family.shares(self.whole(self.law[draws], rng))
        else:
            weight *= family.fixed
        return weight

    def whole(self, law: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
        """Laws (draws, places) as (draws, categories)."""
        family, place = self.family, self.place
        sizes = np.bincount(place, minlength=law.shape[1])
        together = np.flatnonzero(sizes[place] > 1)
        result = law[:, place]
        base = family.base[together]
        if rng is None:
            result[:, together] *= base / np.bincount(place, family.base)[place[together]]
        elif together.size:
            logs = log_gammas(base, law.shape[0], rng)
            result[:, together] *= normalise_log_rows(logs, sizes[sizes > 1])
        return result

    def strengths(self) -> FloatArray:
        """All κ, (draws, strengths)."""
        return np.exp(self.log_strength)

    def strength_of_pair(self) -> IntArray:
        """Column of :meth:`strengths` for every pair."""
        return self.family.strength_of_pair

    def mean_entries(self, counts: IntArray, totals: FloatArray) -> FloatArray:
        """E[(κ m_e + n_e)/(κ + n_i)], once for entries that agree in kind and in n_i."""
        family, pattern = self.family, self.family.pattern
        distinct, place = np.unique(totals, return_inverse=True)
        place = place[pattern.pair_of_transition]
        keys, which = np.unique(family.kind_of_entry * distinct.size + place, return_inverse=True)
        kind, total = keys // distinct.size, distinct[keys % distinct.size]
        prior, factor = np.zeros(keys.size), np.zeros(keys.size)
        step = max(1, CHUNK // max(keys.size, family.n_kinds))
        for begin in range(0, len(self), step):
            draws = np.arange(begin, min(begin + step, len(self)))
            strength = np.exp(self.log_strength[draws])[:, family.strength_of_kind[kind]]
            prior += (self._weights(draws)[:, kind] / (strength + total)).sum(axis=0)
            factor += (1.0 / (strength + total)).sum(axis=0)
        found: FloatArray = (prior[which] + counts * factor[which]) / len(self)
        return found


@dataclass(frozen=True, eq=False)
class GroupDraws:
    """Draws of ln κ_g (draws,) and of the rows over groups (draws, transitions), for one group."""

    pattern: TransitionPattern
    log_strength: FloatArray
    rows: FloatArray

    def __len__(self) -> int:
        return int(self.log_strength.size)

    def prior(
        self, draws: IntArray, entries: IntArray | None, rng: np.random.Generator
    ) -> FloatArray:
        """Prior concentrations κ_g Q, (draws, entries)."""
        rows = self.rows[draws] if entries is None else self.rows[np.ix_(draws, entries)]
        return np.maximum(np.exp(self.log_strength[draws])[:, None] * rows, SMALLEST)

    def strengths(self) -> FloatArray:
        """κ_g, (draws, 1)."""
        return np.exp(self.log_strength)[:, None]

    def strength_of_pair(self) -> IntArray:
        """Zero for every admissible pair."""
        return np.where(self.pattern.widths > 0, 0, -1)

    def mean_entries(self, counts: IntArray, totals: FloatArray) -> FloatArray:
        """E[(κ_g Q_e + n_e)/(κ_g + n_i)]."""
        total = totals[self.pattern.pair_of_transition]
        result = np.zeros(counts.size)
        for strength, rows in zip(np.exp(self.log_strength), self.rows, strict=True):
            result += (strength * rows + counts) / (strength + total)
        found: FloatArray = result / len(self)
        return found


class HierarchicalBelief(KernelBelief):
    """Joint draws of κ, the shared laws and the rows; see :func:`learn_prior`.

    The hyperparameters (κ and the laws) come from a store of draws, made once by Gibbs sampling;
    :attr:`mixing` says how good these are. Every draw of the kernel takes one of them, each equally
    often, and fresh rows given it. Quantiles under this belief are computed from draws, and
    :func:`brmdp.certify` refuses it, since rows are dependent.

    Attributes
    ----------
    pattern : TransitionPattern
    mixing : Mixing
        How the stored draws were made, and what they are worth.

    Examples
    --------
    >>> import numpy as np
    >>> from brmdp.decisions import learn_prior
    >>> counts = np.random.default_rng(0).poisson(3.0, (4, 1, 4))
    >>> belief = learn_prior(counts, shape="destinations", rng=0).belief()
    >>> belief
    HierarchicalBelief(4 states, 1 action, 16 possible transitions, 47 observed, 1000 stored draws)
    >>> belief.sample(5, rng=0).shape
    (5, 4, 1, 4)
    """

    rows_independent: ClassVar[bool] = False

    def __init__(
        self, pattern: TransitionPattern, counts: IntArray, hyper: HyperDraws, mixing: Mixing
    ) -> None:
        self.pattern = pattern
        self.mixing = mixing
        self._counts = counts
        self._hyper = hyper
        self._totals = np.bincount(pattern.pair_of_transition, counts, pattern.n_pairs).astype(
            np.float64
        )
        self._mean: FloatArray | None = None

    def mean_entries(self) -> FloatArray:
        """Mean probability of every possible transition, averaged over the stored draws."""
        if self._mean is None:
            self._mean = self._hyper.mean_entries(self._counts, self._totals)
        return self._mean.copy()

    def sample_entries(
        self, n: int, pairs: IntArray | None = None, *, rng: np.random.Generator
    ) -> FloatArray:
        """``n`` joint draws of the kernel, (n, transitions).

        Each stored draw of the hyperparameters is used equally often (up to one time), in random
        order, so up to ``mixing.draws`` kernels have different ones.
        """
        pattern = self.pattern
        if pairs is None:
            entries, widths, counts = None, pattern.row_widths, self._counts
        else:
            entries = pattern.take(np.arange(pattern.n_transitions), pairs)
            widths, counts = pattern.widths[pairs], self._counts[entries]
        if n * counts.size > LARGEST_SAMPLE:
            raise InvalidInputError(
                f"n must be at most {LARGEST_SAMPLE // max(counts.size, 1):,} for {counts.size:,} "
                f"transitions at a time; got {n:,}"
            )
        stored = len(self._hyper)
        whole, rest = divmod(n, stored)
        draws = np.concatenate((np.tile(np.arange(stored), whole), rng.permutation(stored)[:rest]))
        rng.shuffle(draws)
        weight = self._hyper.prior(draws, entries, rng) + counts
        return dirichlet_rows(weight.ravel(), 1, rng, np.tile(widths, n)).reshape(n, -1)

    def counts(self) -> IntArray:
        """N(s,a,s'), observations of each transition, dense (S, A, S)."""
        dense: IntArray = self.pattern.dense(self._counts)
        return dense

    def evidence(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Median κ, the weight of the prior, and number of observations, for each of ``pairs``."""
        weights: FloatArray = np.median(self._hyper.strengths(), axis=0)
        return weights[self._hyper.strength_of_pair()[pairs]], self._totals[pairs]

    def observed_states(self) -> FloatArray:
        """(S,) number of observations made in each state."""
        totals: FloatArray = self._totals.reshape(self.n_states, self.n_actions)
        return np.asarray(totals.sum(axis=1), dtype=np.float64)

    def __repr__(self) -> str:
        text = (
            f"HierarchicalBelief({counted(self.n_states, 'state')}, "
            f"{counted(self.n_actions, 'action')}, "
            f"{counted(self.pattern.n_transitions, 'possible transition')}, "
            f"{int(self._counts.sum())} observed, {counted(len(self._hyper), 'stored draw')}"
        )
        return text + (")" if self.mixing.mixed else ", NOT MIXED)")
