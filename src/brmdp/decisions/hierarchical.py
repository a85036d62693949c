"""The belief behind a learned prior, with everything that is uncertain: κ, the laws and the rows.

It offers draws and means, but no exact quantiles: rows are dependent through the shared law.

**New data.** The hyperparameters are known by draws h_1, …, h_H from their posterior. After more
transitions they keep their places and get weights, which Bayes' rule gives exactly: h's weight is
multiplied by the probability of the new data given h and all earlier data, a product of factors
(κ m_e + n_e)/(κ + n_i). So nothing is stale after :meth:`HierarchicalBelief.observe`. But unequal
weights are worth fewer draws: with Kish's share (Σw)²/(H Σw²) of their number. Data that leave too
few are refused, and the prior has to be learned again from the whole log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from brmdp._validation import (
    FloatArray,
    IntArray,
    Seed,
    as_float_array,
    as_index_array,
    as_number,
    as_positive_int,
    as_rng,
)
from brmdp.beliefs.dirichlet import DirichletBelief
from brmdp.beliefs.gammas import SMALLEST, dirichlet_rows, log_gammas, normalise_log_rows
from brmdp.beliefs.observations import broadcast_observations
from brmdp.beliefs.storage import Saveable, corrupt_if_invalid, require_arrays, shape_of
from brmdp.decisions.families import SHAPES, Family, family_of, locate
from brmdp.decisions.gibbs import Mixing
from brmdp.errors import ImpossibleTransitionError, InvalidInputError
from brmdp.mdp import counted
from brmdp.pattern import Format, KernelBelief, TransitionPattern, pattern_from_arrays

__all__ = ["GroupDraws", "HierarchicalBelief", "HyperDraws", "SharedDraws"]

LARGEST_SAMPLE = 250_000_000
"""Largest sample of kernels, in numbers (2 GB)."""

CHUNK = 5_000_000

FEWEST_INDEPENDENT = 10
"""Observations are refused if they leave draws worth fewer independent ones."""

LARGEST_COUNT = 2**53

_COMMON = ("shape", "indptr", "next_states", "counts", "borrowed", "weights", "mixing", "seed")
_SHARED = ("family", "log_strength", "law", "place")
_GROUP = ("log_strength", "rows")


class HyperDraws(Protocol):
    """Draws of what the rows' priors depend on."""

    def __len__(self) -> int:
        """Number of draws."""

    def prior(
        self, draws: IntArray, entries: IntArray | None, rng: np.random.Generator
    ) -> FloatArray:
        """Prior concentrations κ m of the entries (by default all), (draws, entries)."""

    def strengths(self) -> FloatArray:
        """All κ, (draws, strengths)."""

    def strength_of_pair(self) -> IntArray:
        """Column of :meth:`strengths` for every pair; −1 for inadmissible actions."""

    def mean_entries(self, counts: IntArray, totals: FloatArray, weights: FloatArray) -> FloatArray:
        """Posterior mean of the rows, averaged over the draws with weights that sum to one."""

    def told_apart(self, entries: IntArray, rng: np.random.Generator) -> HyperDraws:
        """The same draws, in which the entries have probabilities of their own."""

    def prior_of(self, entries: IntArray) -> FloatArray:
        """κ m of entries that were told apart, (draws, entries)."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The draws as named arrays."""


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

    def told_apart(self, entries: IntArray, rng: np.random.Generator) -> SharedDraws:
        """The same draws, in which the categories of the entries are not counted with others.

        The share of one in the probability of those counted together follows the base, since
        none of them was seen.
        """
        family, place, law = self.family, self.place, self.law
        kinds = np.unique(family.kind_of_entry[entries])
        if family.fixed is not None:
            return self
        wanted = np.unique(family.kinds[kinds].indices)
        for category in wanted[np.bincount(place)[place[wanted]] > 1].tolist():
            together = place[category]
            if np.count_nonzero(place == together) == 1:
                continue  # the last that was left
            own = float(family.base[category])
            rest = float(family.base[place == together].sum()) - own
            logs = log_gammas(np.array([own, max(rest, SMALLEST)]), len(self), rng)
            shares = normalise_log_rows(logs, np.array([2]))
            law = np.concatenate((law, law[:, [together]] * shares[:, :1]), axis=1)
            law[:, together] *= shares[:, 1]
            place = place.copy()
            place[category] = law.shape[1] - 1
        return replace(self, law=law, place=place)

    def prior_of(self, entries: IntArray) -> FloatArray:
        """κ m of entries that were told apart, (draws, entries)."""
        family = self.family
        kinds = family.kind_of_entry[entries]
        strength = np.exp(self.log_strength)[:, family.strength_of_kind[kinds]]
        share: FloatArray
        if family.fixed is not None:
            share = family.fixed[kinds]
        else:
            members = family.kinds[kinds]
            share = np.add.reduceat(
                self.law[:, self.place[members.indices]], members.indptr[:-1], axis=1
            )
        return np.maximum(strength * share, SMALLEST)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The draws as named arrays."""
        return {
            "family": np.array(self.family.name),
            "log_strength": self.log_strength,
            "law": self.law,
            "place": self.place,
        }

    def mean_entries(self, counts: IntArray, totals: FloatArray, weights: FloatArray) -> FloatArray:
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
            prior += weights[draws] @ (self._weights(draws)[:, kind] / (strength + total))
            factor += weights[draws] @ (1.0 / (strength + total))
        found: FloatArray = prior[which] + counts * factor[which]
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

    def told_apart(self, entries: IntArray, rng: np.random.Generator) -> GroupDraws:
        """The draws themselves: every entry has its own probability."""
        return self

    def prior_of(self, entries: IntArray) -> FloatArray:
        """κ_g Q of the entries, (draws, entries)."""
        strength = np.exp(self.log_strength)[:, None]
        return np.maximum(strength * self.rows[:, entries], SMALLEST)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The draws as named arrays."""
        return {"log_strength": self.log_strength, "rows": self.rows}

    def mean_entries(self, counts: IntArray, totals: FloatArray, weights: FloatArray) -> FloatArray:
        """E[(κ_g Q_e + n_e)/(κ_g + n_i)]."""
        total = totals[self.pattern.pair_of_transition]
        result = np.zeros(counts.size)
        draws = zip(np.exp(self.log_strength), self.rows, weights, strict=True)
        for strength, rows, weight in draws:
            result += weight * ((strength * rows + counts) / (strength + total))
        return result


SMALLEST_MATCH, LARGEST_MATCH = 1e-2, 1e9
"""Range of the strength of a matched row."""


class HierarchicalBelief(KernelBelief, Saveable):
    """Joint draws of κ, the shared laws and the rows; see :func:`learn_prior`.

    The hyperparameters (κ and the laws) come from a store of draws, made once by Gibbs sampling;
    :attr:`mixing` says how good these are. Every draw of the kernel takes one of them, each equally
    often, and fresh rows given it. Quantiles under this belief are computed from draws, so
    :func:`brmdp.certify` takes it only with the sampled method.

    New observations update the rows *and* the hyperparameters, exactly: the stored draws get
    weights (see :mod:`brmdp.decisions.hierarchical`). They tell nothing to the beliefs of other
    groups.

    Attributes
    ----------
    pattern : TransitionPattern
    mixing : Mixing
        How the stored draws were made, and what they were worth when they were made.

    Examples
    --------
    >>> import numpy as np
    >>> from brmdp.decisions import learn_prior
    >>> counts = np.random.default_rng(0).poisson(3.0, (4, 1, 4))
    >>> belief = learn_prior(counts, shape="destinations", rng=0).belief()
    >>> belief
    HierarchicalBelief(4 states, 1 action, 16 possible transitions, 47 observed, 2000 stored draws)
    >>> belief.sample(5, rng=0).shape
    (5, 4, 1, 4)
    >>> belief.observe(state=[0, 0, 1], action=0, next_state=[2, 2, 2])
    >>> belief.counts().sum()
    np.int64(50)
    """

    rows_independent: ClassVar[bool] = False

    def __init__(
        self,
        pattern: TransitionPattern,
        counts: IntArray,
        hyper: HyperDraws,
        mixing: Mixing,
        borrowed: FloatArray,
        seed: int,
    ) -> None:
        self.pattern = pattern
        self.mixing = mixing
        self._hyper = hyper
        self._borrowed = borrowed
        self._seed = seed
        self._log_weights = np.zeros(len(hyper))
        self._set_counts(counts.copy())

    def _set_counts(self, counts: IntArray) -> None:
        self._counts = counts
        self._totals = self._by_pair(counts)
        self._mean: FloatArray | None = None

    def _by_pair(self, entries: NDArray[Any]) -> FloatArray:
        owners, n = self.pattern.pair_of_transition, self.pattern.n_pairs
        return np.bincount(owners, entries, n).astype(np.float64)

    def matched(self, draws: int = 200, *, rng: Seed = None) -> DirichletBelief:
        """Independent Dirichlet rows with about the same means and the same spread, to plan with.

        What is uncertain about κ and the laws widens each row, as it does in draws; that rows then
        err together is lost. Where the log says nothing about κ, a row is as open as the prior has
        it, which it is not at any single κ. Rows are matched from some of the stored draws.

        Parameters
        ----------
        draws : int
        rng : numpy.random.Generator or seed, optional
            Random stream of what the draws do not store.
        """
        pattern, stream = self.pattern, as_rng(rng)
        n = min(as_positive_int(draws, "draws"), len(self._hyper))
        chosen = np.linspace(0, len(self._hyper) - 1, n).astype(np.int64)
        weights = self._weights()[chosen]
        weights /= weights.sum()
        owners = pattern.pair_of_transition
        mean, square, inner = (np.zeros(pattern.n_transitions) for _ in range(3))
        for draw, weight in zip(chosen, weights, strict=True):
            theta = self._hyper.prior(np.array([draw]), None, stream)[0] + self._counts
            total = self._by_pair(theta)[owners]
            row = theta / total
            mean += weight * row
            square += weight * row**2
            inner += weight * row * (1.0 - row) / (total + 1.0)
        variance = self._by_pair(np.maximum(square - mean**2, 0.0) + inner)
        whole = self._by_pair(mean * (1.0 - mean))
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(variance > 0.0, whole / variance - 1.0, LARGEST_MATCH)
        size = np.clip(size, SMALLEST_MATCH, LARGEST_MATCH)
        arrays = {
            "shape": np.array([pattern.n_states, pattern.n_actions]),
            "indptr": pattern.indptr,
            "next_states": pattern.next_states,
            "prior": np.maximum(mean * size[owners], SMALLEST),
            "counts": np.zeros_like(self._counts),
        }
        return DirichletBelief.from_arrays(arrays, "the hierarchy")

    def _weights(self) -> FloatArray:
        """Weights of the stored draws, which sum to one."""
        weights = np.exp(self._log_weights - self._log_weights.max())
        result: FloatArray = weights / weights.sum()
        return result

    @property
    def independent_draws(self) -> float:
        """What the stored draws are worth, in independent ones; 0 if the chains disagree.

        However many kernels are drawn, a statement about this belief is no better than one from so
        many independent draws.
        """
        if not self.mixing.mixed:
            return 0.0
        return self.mixing.effective * _kish(self._log_weights)

    # --- data -------------------------------------------------------------------------------------

    def observe(
        self,
        state: int | ArrayLike,
        action: int | ArrayLike,
        next_state: int | ArrayLike,
        *,
        fewest: float = FEWEST_INDEPENDENT,
    ) -> None:
        """Add observed transitions, in place; κ and the laws are updated with the rows.

        Pass three integers, or three arrays. If they are refused, none is added. New data give the
        stored draws unequal weights; what these are then worth must not fall below ``fewest``
        independent draws.

        Raises
        ------
        InvalidInputError
            If an index is out of range, an action is not admissible, or the data move κ and the
            laws so far that the stored draws cannot follow: then learn the prior again from the
            whole log.
        ImpossibleTransitionError
            If a transition is not possible.
        """
        least = as_number(fewest, "fewest", "a number of at least 0")
        if not least >= 0.0:
            raise InvalidInputError(f"fewest must be at least 0; got {fewest!r}")
        sizes = (self.n_states, self.n_actions, self.n_states)
        columns = broadcast_observations((state, action, next_state), sizes)
        states, actions, next_states = (np.atleast_1d(column).ravel() for column in columns)
        pattern = self.pattern
        if not states.size:
            return
        found = locate(pattern, states * pattern.n_actions + actions, next_states)
        if (found < 0).any():
            k = int(np.argmax(found < 0))
            pattern.locate(int(states[k]), int(actions[k]), int(next_states[k]))
            raise ImpossibleTransitionError(f"observation {k} is impossible")
        # a row with one successor tells nothing about κ
        entries, times = np.unique(found, return_counts=True)
        doubtful = pattern.widths[pattern.pair_of_transition[entries]] > 1
        hyper, log_weights = self._hyper, self._log_weights
        if doubtful.any():
            rng = np.random.default_rng([self._seed, int(self._counts.sum())])
            hyper = hyper.told_apart(entries[doubtful], rng)
            log_weights = log_weights + self._log_prediction(
                hyper, entries[doubtful], times[doubtful]
            )
            log_weights -= log_weights.max()
            left = self.mixing.effective * _kish(log_weights)
            if left < least:
                raise InvalidInputError(
                    f"after {counted(int(states.size), 'more observation')} the {len(hyper)} "
                    f"stored draws of κ and the laws would be worth only {left:.1f} independent "
                    "ones: learn the prior again from the whole log (learn_prior), or observe with "
                    "posterior(), where κ and the laws stay fixed"
                )
        counts = self._counts.copy()
        counts[entries] += times
        self._hyper, self._log_weights = hyper, log_weights
        self._set_counts(counts)

    def _log_prediction(self, hyper: HyperDraws, entries: IntArray, times: IntArray) -> FloatArray:
        """Log probability of more observations given each of the draws and all earlier data."""
        pattern = self.pattern
        weight = hyper.prior_of(entries) + self._counts[entries]
        pairs, owner = np.unique(pattern.pair_of_transition[entries], return_inverse=True)
        more = np.bincount(owner, times)
        total = hyper.strengths()[:, hyper.strength_of_pair()[pairs]] + self._totals[pairs]
        gained = (gammaln(weight + times) - gammaln(weight)).sum(axis=1)
        result: FloatArray = gained - (gammaln(total + more) - gammaln(total)).sum(axis=1)
        return result

    def copy(self) -> Self:
        """An independent belief with the same draws and counts."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        # draws, weights and counts are replaced, never changed in place
        return twin

    # --- belief -----------------------------------------------------------------------------------

    def mean_entries(self) -> FloatArray:
        """Mean probability of every possible transition, averaged over the stored draws."""
        if self._mean is None:
            self._mean = self._hyper.mean_entries(self._counts, self._totals, self._weights())
        return self._mean.copy()

    def sample_entries(
        self, n: int, pairs: IntArray | None = None, *, rng: np.random.Generator
    ) -> FloatArray:
        """``n`` joint draws of the kernel, (n, transitions).

        Each stored draw of the hyperparameters is used as often as its weight says (up to one
        time), in random order.
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
        weight = self._hyper.prior(self._chosen(n, rng), entries, rng) + counts
        return dirichlet_rows(weight.ravel(), 1, rng, np.tile(widths, n)).reshape(n, -1)

    def _chosen(self, n: int, rng: np.random.Generator) -> IntArray:
        """``n`` of the stored draws, in random order."""
        stored = len(self._hyper)
        if self._log_weights.any():
            ends = np.cumsum(self._weights())
            steps = (np.arange(n) + rng.random()) / n
            draws = np.minimum(np.searchsorted(ends, steps), stored - 1)
        else:
            whole, rest = divmod(n, stored)
            draws = np.concatenate(
                (np.tile(np.arange(stored), whole), rng.permutation(stored)[:rest])
            )
        rng.shuffle(draws)
        return draws.astype(np.int64)

    def counts(self, format: Format = "dense") -> Any:
        """N(s,a,s'), observations of each transition: "dense" (S, A, S), "csr" or "flat"."""
        return self.pattern.export(self._counts, format)

    def evidence(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Median κ, the weight of the prior, and number of observations, for each of ``pairs``.

        Most of that weight usually comes from the log itself; see :meth:`borrowed`.
        """
        weights, strengths = self._weights(), self._hyper.strengths()
        order = np.argsort(strengths, axis=0)
        reached = np.cumsum(weights[order], axis=0) >= 0.5
        middle = np.take_along_axis(order, reached.argmax(axis=0)[None], axis=0)
        median = np.take_along_axis(strengths, middle, axis=0)[0]
        return median[self._hyper.strength_of_pair()[pairs]], self._totals[pairs]

    def borrowed(self, pairs: IntArray) -> FloatArray:
        """The part of the prior's weight that other rows of the log supplied.

        The rest of it was assumed: the weight of the laws' own prior.
        """
        weight, _ = self.evidence(pairs)
        found: FloatArray = weight * self._borrowed[pairs]
        return found

    def observed_states(self) -> FloatArray:
        """(S,) number of observations made in each state."""
        totals: FloatArray = self._totals.reshape(self.n_states, self.n_actions)
        return np.asarray(totals.sum(axis=1), dtype=np.float64)

    # --- files ------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Draws, weights and counts as named arrays, for :meth:`save`."""
        mixing = self.mixing
        return {
            "shape": np.array([self.n_states, self.n_actions]),
            "indptr": self.pattern.indptr,
            "next_states": self.pattern.next_states,
            "counts": self._counts,
            "borrowed": self._borrowed,
            "weights": self._log_weights,
            "mixing": np.array(
                [
                    mixing.chains,
                    mixing.burn_in,
                    mixing.thinning,
                    mixing.draws,
                    mixing.effective,
                    mixing.r_hat,
                ]
            ),
            "seed": np.array(self._seed),
            **self._hyper.arrays(),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], source: object) -> Self:
        """The belief that :meth:`arrays` described."""
        shared = "rows" not in arrays
        require_arrays(arrays, _COMMON + (_SHARED if shared else _GROUP), source)
        n_states, n_actions = shape_of(arrays["shape"], source)
        with corrupt_if_invalid(source):
            pattern = pattern_from_arrays(
                n_states, n_actions, arrays["indptr"], arrays["next_states"]
            )
            hyper = _shared_draws(arrays, pattern) if shared else _group_draws(arrays, pattern)
            counts = as_index_array(arrays["counts"], LARGEST_COUNT + 1, "counts")
            weights = as_float_array(arrays["weights"], "weights")
            borrowed = as_float_array(arrays["borrowed"], "borrowed")
            _require(counts.shape == (pattern.n_transitions,), "counts", "one per transition")
            _require(weights.shape == (len(hyper),), "weights", "one per draw")
            _require(
                borrowed.shape == (pattern.n_pairs,)
                and bool(((borrowed >= 0.0) & (borrowed <= 1.0)).all()),
                "borrowed",
                "shares, one per pair",
            )
            seed = as_index_array(arrays["seed"].reshape(-1), 2**63 - 1, "seed")
            _require(seed.size == 1, "seed", "one number")
            belief = cls(pattern, counts, hyper, _mixing(arrays["mixing"]), borrowed, int(seed[0]))
        belief._log_weights = weights
        return belief

    def __repr__(self) -> str:
        text = (
            f"HierarchicalBelief({counted(self.n_states, 'state')}, "
            f"{counted(self.n_actions, 'action')}, "
            f"{counted(self.pattern.n_transitions, 'possible transition')}, "
            f"{int(self._counts.sum())} observed, {counted(len(self._hyper), 'stored draw')}"
        )
        if not self.mixing.mixed:
            return text + ", NOT MIXED)"
        if self._log_weights.any():
            text += f" worth {self.independent_draws:.0f} after new observations"
        return text + ")"


def _kish(log_weights: FloatArray) -> float:
    """(Σw)²/(H Σw²)."""
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / (weights.size * (weights * weights).sum()))


def _require(condition: bool, name: str, what: str) -> None:
    if not condition:
        raise InvalidInputError(f"{name} must hold {what}")


def _mixing(numbers: NDArray[Any]) -> Mixing:
    found = as_float_array(numbers, "mixing")
    _require(found.shape == (6,) and bool((found >= 0).all()), "mixing", "six numbers")
    chains, burn_in, thinning, draws = (round(number) for number in found[:4])
    return Mixing(chains, burn_in, thinning, draws, float(found[4]), float(found[5]))


def _log_strengths(arrays: dict[str, NDArray[Any]]) -> FloatArray:
    found = as_float_array(arrays["log_strength"], "log_strength")
    _require(found.size > 0 and float(np.abs(found).max()) < 50.0, "log_strength", "draws of ln κ")
    return found


def _shared_draws(arrays: dict[str, NDArray[Any]], pattern: TransitionPattern) -> SharedDraws:
    name = str(arrays["family"]) if arrays["family"].ndim == 0 else ""
    _require(name in SHAPES, "family", "the name of a shape")
    family = family_of(name, pattern)
    log_strength = _log_strengths(arrays)
    law = as_float_array(arrays["law"], "law")
    n = 0 if family.fixed is not None else family.n_categories
    _require(
        log_strength.ndim == 2
        and log_strength.shape[1] == family.n_strengths
        and law.ndim == 2
        and law.shape[0] == log_strength.shape[0]
        and bool((law >= 0.0).all()),
        "law",
        "as many draws as log_strength, and nothing negative",
    )
    place = as_index_array(arrays["place"], max(law.shape[1], 1), "place")
    _require(place.shape == (n,), "place", "one number per category")
    first = np.unique(place, return_index=True)[1]
    owners = family.law_of_category[first]
    _require(first.size == law.shape[1], "place", "a category for every column of law")
    for number in np.unique(owners):
        sums = law[:, owners == number].sum(axis=1)
        _require(bool(np.allclose(sums, 1.0, atol=1e-8)), "law", "probabilities")
    return SharedDraws(family, log_strength, law, place)


def _group_draws(arrays: dict[str, NDArray[Any]], pattern: TransitionPattern) -> GroupDraws:
    log_strength = _log_strengths(arrays)
    rows = as_float_array(arrays["rows"], "rows")
    _require(
        log_strength.ndim == 1
        and rows.shape == (log_strength.size, pattern.n_transitions)
        and bool((rows >= 0.0).all()),
        "rows",
        "a kernel for each draw of ln κ, and nothing negative",
    )
    sums = np.add.reduceat(rows, pattern.indptr[pattern.pairs], axis=1)
    _require(bool(np.allclose(sums, 1.0, atol=1e-8)), "rows", "probabilities")
    return GroupDraws(pattern, log_strength, rows)
