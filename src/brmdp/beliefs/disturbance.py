"""One unknown disturbance shared by all pairs.

s' = f(s, a, d) with known f and d ~ p, p ~ Dir(φ): demand in an inventory, arrivals in a queue.
Every observation teaches something about every pair, which independent rows cannot express. For a
single pair w·P = Σ_d p_d w(d), so the same exact quantile applies with the disturbance's
concentrations. Rows of different pairs are dependent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brmdp._sparse import ArrayOrSparse
from brmdp._validation import (
    FloatArray,
    IntArray,
    as_array,
    as_float_array,
    as_index,
    as_index_array,
    as_positive_int,
    as_positive_number,
    first_bad,
)
from brmdp.beliefs.gammas import LARGEST, check_concentrations, dirichlet_rows
from brmdp.beliefs.observations import broadcast_observations
from brmdp.beliefs.storage import Saveable, corrupt_if_invalid, require_arrays
from brmdp.errors import ImpossibleTransitionError, InvalidInputError
from brmdp.mdp import counted
from brmdp.pattern import KernelBelief, TransitionPattern

__all__ = ["DisturbanceBelief", "DisturbanceRewards", "DrivenBelief", "Rewards"]

_ARRAYS = ("outcomes", "prior", "counts")


@dataclass(frozen=True)
class DisturbanceRewards:
    """Rewards r(s, a, d) that depend on the disturbance itself.

    Attributes
    ----------
    rewards : (S, A, D) array

    Examples
    --------
    Sales depend on the demand, not only on the stock left over:

    >>> import numpy as np
    >>> import brmdp
    >>> sold = np.minimum.outer(np.arange(3), np.arange(4))[:, None, :]  # stock, one action, demand
    >>> brmdp.DisturbanceRewards(sold).rewards.shape
    (3, 1, 4)
    """

    rewards: ArrayLike


Rewards: TypeAlias = ArrayOrSparse | DisturbanceRewards | None
"""Rewards in any form that one of the library's beliefs accepts; None if it learns them."""


class DrivenBelief(KernelBelief, Saveable):
    """A belief about one disturbance that drives all transitions: the table, and what follows.

    The base of :class:`DisturbanceBelief` and :class:`brmdp.CensoredDisturbanceBelief`, which
    differ in what they can learn from.

    Parameters
    ----------
    outcomes : (S, A, D) integers
        The next state f(s, a, d). Fill a pair with −1 to make the action inadmissible.
        :meth:`from_function` tabulates a function.
    concentration : (D,) positive numbers, or one number for all
        Dirichlet prior over the disturbance.
    """

    rows_independent: ClassVar[bool] = False

    def __init__(self, outcomes: ArrayLike, concentration: ArrayLike = 1.0) -> None:
        table = as_array(outcomes, "outcomes", "integers")
        if table.ndim != 3 or 0 in table.shape or table.dtype.kind not in "iu":
            raise InvalidInputError(
                f"outcomes must be integers of shape (S, A, D); got {table.dtype} of shape "
                f"{table.shape}"
            )
        n_states, _, n_disturbances = table.shape
        left_out = (table == -1).all(axis=2)
        bad = ((table < 0) | (table >= n_states)) & ~left_out[:, :, None]
        if bad.any():
            where = first_bad(bad)
            raise InvalidInputError(
                f"outcomes must lie in 0..{n_states - 1}; got {table[where]} at "
                f"(s={where[0]}, a={where[1]}, d={where[2]})"
            )
        given = as_array(concentration, "concentration", "a positive number or one per disturbance")
        if given.ndim == 0:
            prior = np.full(n_disturbances, as_positive_number(concentration, "concentration"))
        else:
            prior = np.array(as_float_array(given, "concentration"))
        if prior.shape != (n_disturbances,):
            raise InvalidInputError(
                f"concentration must have shape ({n_disturbances},), one per disturbance; got "
                f"{prior.shape}"
            )
        if (prior <= 0).any():
            where = first_bad(prior <= 0)
            raise InvalidInputError(
                f"concentration must be positive; got {prior[where]} at d={where[0]}"
            )
        check_concentrations(prior)
        self._set(table.astype(np.int64), prior, np.zeros(n_disturbances, dtype=np.int64))

    def _set(self, outcomes: IntArray, prior: FloatArray, counts: IntArray) -> None:
        n_states, n_actions, n_disturbances = outcomes.shape
        admissible = outcomes[:, :, 0] >= 0
        widths = np.where(admissible.ravel(), n_disturbances, 0)
        self.outcomes = outcomes
        self.pattern = TransitionPattern(
            n_states,
            n_actions,
            np.concatenate(([0], np.cumsum(widths))),
            outcomes[admissible].ravel(),
        )
        self._prior = prior
        self._counts = counts

    @classmethod
    def from_function(
        cls,
        transition: Callable[[int, int, int], int],
        n_states: int,
        n_actions: int,
        n_disturbances: int,
        concentration: ArrayLike = 1.0,
        *,
        admissible: ArrayLike | None = None,
    ) -> Self:
        """Tabulate s' = transition(state, action, disturbance) for the admissible pairs."""
        shape = (
            as_positive_int(n_states, "n_states"),
            as_positive_int(n_actions, "n_actions"),
            as_positive_int(n_disturbances, "n_disturbances"),
        )
        if not callable(transition):
            raise InvalidInputError(
                f"transition must be a function (state, action, disturbance); got {transition!r}"
            )
        mask = (
            np.ones(shape[:2], dtype=bool)
            if admissible is None
            else as_array(admissible, "admissible", "booleans")
        )
        if mask.shape != shape[:2]:
            raise InvalidInputError(f"admissible must have shape {shape[:2]}; got {mask.shape}")
        outcomes = np.full(shape, -1, dtype=np.int64)
        for s, a in np.argwhere(mask):
            for d in range(shape[2]):
                outcomes[s, a, d] = as_index(
                    transition(int(s), int(a), d), shape[0], f"transition({s}, {a}, {d})"
                )
        return cls(outcomes, concentration)

    @property
    def n_disturbances(self) -> int:
        """Number of values the disturbance can take."""
        return int(self._prior.size)

    def observe_disturbance(self, disturbance: ArrayLike) -> None:
        """Add observed disturbances (an integer or an array), in place."""
        self._add(as_index_array(disturbance, self.n_disturbances, "disturbance").ravel())

    def _add(self, disturbances: IntArray) -> None:
        """Add disturbances that have been checked."""
        raise NotImplementedError

    def _candidates(
        self, state: Any, action: Any, next_state: Any, disturbance: Any
    ) -> list[tuple[IntArray, str]]:
        """For each observed transition, what may have driven it, and the transition in words.

        If the disturbance is given and leads there, it is the only candidate.
        """
        given = (state, action, next_state) + (() if disturbance is None else (disturbance,))
        sizes = (self.n_states, self.n_actions, self.n_states, self.n_disturbances)
        columns = broadcast_observations(given, sizes)
        return [self._leading(*item) for item in zip(*(c.flat for c in columns), strict=True)]

    def _leading(self, s: Any, a: Any, t: Any, d: Any = None) -> tuple[IntArray, str]:
        row = self.outcomes[s, a]
        if row[0] < 0:
            raise InvalidInputError(f"action {a} is not admissible in state {s}")
        transition = f"the transition (state={s}, action={a}, next_state={t})"
        if d is not None:
            if row[d] != t:
                raise ImpossibleTransitionError(
                    f"disturbance {d} leads from (state={s}, action={a}) to {row[d]}, not to "
                    f"next_state={t}"
                )
            return np.array([d]), transition
        candidates = np.flatnonzero(row == t)
        if candidates.size == 0:
            raise ImpossibleTransitionError(
                f"{transition} is impossible: no disturbance leads there"
            )
        return candidates, transition

    @property
    def n_observations(self) -> int:
        """Number of observations that the belief has learned from."""
        return int(self._counts.sum())

    def counts(self) -> IntArray:
        """Number of times each disturbance was observed, (D,)."""
        return self._counts.copy()

    def disturbance_mean(self) -> FloatArray:
        """Posterior mean of the disturbance's distribution, (D,)."""
        raise NotImplementedError

    def sample_disturbance(self, n: int, *, rng: np.random.Generator) -> FloatArray:
        """``n`` draws of the disturbance's distribution, (n, D)."""
        raise NotImplementedError

    def mean_entries(self) -> FloatArray:
        """Mean probability of every outcome, pair after pair."""
        return np.tile(self.disturbance_mean(), self.pattern.pairs.size)

    def sample_entries(
        self, n: int, pairs: IntArray | None = None, *, rng: np.random.Generator
    ) -> FloatArray:
        """``n`` joint draws; within a draw, all pairs share one distribution of the disturbance."""
        draws = self.sample_disturbance(n, rng=rng)
        return np.tile(draws, (1, self.pattern.pairs.size if pairs is None else len(pairs)))

    def gather_rewards(self, rewards: Rewards) -> FloatArray:
        """Lay rewards out as one number per outcome.

        They depend on (s, a, s'), or on (s, a, d) as :class:`DisturbanceRewards`.
        """
        if not isinstance(rewards, DisturbanceRewards):
            return self.pattern.gather(rewards)
        array = as_float_array(rewards.rewards, "rewards")
        if array.shape != self.outcomes.shape:
            raise InvalidInputError(
                f"rewards must have shape (S, A, D) = {self.outcomes.shape}; got {array.shape}"
            )
        return array[self.pattern.admissible].ravel()


class DisturbanceBelief(DrivenBelief):
    """A Dirichlet belief about one disturbance that drives all transitions.

    Parameters
    ----------
    outcomes : (S, A, D) integers
        The next state f(s, a, d). Fill a pair with −1 to make the action inadmissible.
        :meth:`from_function` tabulates a function.
    concentration : (D,) positive numbers, or one number for all
        Prior over the disturbance.

    Examples
    --------
    A stock of at most two; nothing is ordered, and demand takes what it can:

    >>> import brmdp
    >>> belief = brmdp.DisturbanceBelief.from_function(
    ...     lambda stock, order, demand: max(stock - demand, 0),
    ...     n_states=3, n_actions=1, n_disturbances=3,
    ... )
    >>> belief.observe_disturbance([0, 1, 1])
    >>> belief
    DisturbanceBelief(3 states, 1 action, 3 disturbances, 3 observed)
    >>> belief.mean()[2, 0]  # stock 2 goes to 0, 1 or 2
    array([0.16666667, 0.5       , 0.33333333])
    """

    def _set(self, outcomes: IntArray, prior: FloatArray, counts: IntArray) -> None:
        super()._set(outcomes, prior, counts)
        self.concentration_entries: FloatArray = prior + counts
        self.concentration_offsets: IntArray = np.zeros(self.pattern.n_pairs, dtype=np.int64)

    def observe(
        self,
        state: int | ArrayLike,
        action: int | ArrayLike,
        next_state: int | ArrayLike,
        disturbance: int | ArrayLike | None = None,
    ) -> None:
        """Add observed transitions, in place.

        Pass integers, or arrays of one shape. If one transition is refused, none is added. Where
        several disturbances lead from (state, action) to ``next_state``, the transition does not
        reveal which one occurred (a lost sale hides the demand): pass ``disturbance`` as well.

        Raises
        ------
        ImpossibleTransitionError
            If no disturbance leads to ``next_state``, or the given one does not.
        InvalidInputError
            If an index is out of range, an action is inadmissible, or the disturbance is needed and
            not given.
        """
        found = []
        for candidates, transition in self._candidates(state, action, next_state, disturbance):
            if candidates.size > 1:
                raise InvalidInputError(
                    f"{transition} does not reveal the disturbance, which may be any of "
                    f"{candidates.tolist()}; pass disturbance=, or use a "
                    "CensoredDisturbanceBelief, which also learns from 'at least'"
                )
            found.append(candidates[0])
        self._add(np.array(found, dtype=np.int64))

    def _add(self, disturbances: IntArray) -> None:
        np.add.at(self._counts, disturbances, 1)
        np.add(self._prior, self._counts, out=self.concentration_entries)

    def copy(self) -> Self:
        """An independent belief of the same type, with the same prior and counts."""
        twin = type(self).__new__(type(self))
        # attributes that a subclass added
        twin.__dict__.update(self.__dict__)
        twin._set(self.outcomes, self._prior.copy(), self._counts.copy())
        return twin

    def concentration(self) -> FloatArray:
        """Current concentrations of the disturbance, (D,)."""
        return self.concentration_entries.copy()

    def effective_sample_size(self) -> float:
        """Total concentration of prior and data."""
        return float(self.concentration_entries.sum())

    def evidence(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Weight of the prior, and number of observations: the same for every pair."""
        return np.full(len(pairs), self._prior.sum()), np.full(
            len(pairs), float(self._counts.sum())
        )

    def disturbance_mean(self) -> FloatArray:
        """Posterior mean of the disturbance's distribution, (D,)."""
        mean: FloatArray = self.concentration_entries / self.concentration_entries.sum()
        return mean

    def disturbance_variance(self) -> FloatArray:
        """Posterior variance of the disturbance's probabilities, (D,)."""
        mean = self.disturbance_mean()
        variance: FloatArray = mean * (1.0 - mean) / (self.effective_sample_size() + 1.0)
        return variance

    def sample_disturbance(self, n: int, *, rng: np.random.Generator) -> FloatArray:
        """``n`` draws of the disturbance's distribution, (n, D)."""
        return dirichlet_rows(self.concentration_entries, n, rng, np.array([self.n_disturbances]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Outcomes, prior and counts as named arrays, for :meth:`save`."""
        return {"outcomes": self.outcomes, "prior": self._prior, "counts": self._counts}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], source: object) -> Self:
        """The belief that :meth:`arrays` described."""
        require_arrays(arrays, _ARRAYS, source)
        with corrupt_if_invalid(source):
            belief = cls(arrays["outcomes"], arrays["prior"])
            counts = as_index_array(arrays["counts"], int(LARGEST) + 1, "counts")
            if counts.shape != (belief.n_disturbances,):
                raise InvalidInputError(
                    f"counts must be one per disturbance; got shape {counts.shape}"
                )
        belief._set(belief.outcomes, belief._prior, counts)
        return belief

    def __repr__(self) -> str:
        return (
            f"DisturbanceBelief({counted(self.n_states, 'state')}, "
            f"{counted(self.n_actions, 'action')}, "
            f"{counted(self.n_disturbances, 'disturbance')}, {int(self._counts.sum())} observed)"
        )
