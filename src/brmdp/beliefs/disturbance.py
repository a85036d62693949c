"""One unknown disturbance shared by all pairs.

s' = f(s, a, d) with known f and d ~ p, p ~ Dir(φ): demand in an inventory, arrivals in a queue.
Every observation teaches about every pair, which independent rows cannot express. For a single pair
w·P = Σ_d p_d w(d), so the same exact quantile applies with the disturbance's concentrations; rows
of different pairs are dependent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

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
from brmdp.pattern import KernelBelief, TransitionPattern

__all__ = ["DisturbanceBelief", "DisturbanceRewards"]

_ARRAYS = ("outcomes", "prior", "counts")


@dataclass(frozen=True)
class DisturbanceRewards:
    """Rewards r(s, a, d) that depend on the disturbance itself, an (S, A, D) array."""

    rewards: NDArray[np.float64]


class DisturbanceBelief(KernelBelief, Saveable):
    """A Dirichlet belief about one disturbance that drives all transitions.

    Parameters
    ----------
    outcomes : (S, A, D) integers
        The next state f(s, a, d). Use −1 throughout a pair to make the action inadmissible.
        :meth:`from_function` builds it from a function.
    concentration : (D,) positive numbers, or one number for all
        Prior over the disturbance.
    """

    rows_independent: ClassVar[bool] = False

    def __init__(self, outcomes: Any, concentration: Any = 1.0) -> None:
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
        self.concentration_entries: FloatArray = prior + counts
        self.concentration_offsets: IntArray = np.zeros(n_states * n_actions, dtype=np.int64)

    @classmethod
    def from_function(
        cls,
        transition: Callable[[int, int, int], int],
        n_states: int,
        n_actions: int,
        n_disturbances: int,
        concentration: Any = 1.0,
        *,
        admissible: Any = None,
    ) -> DisturbanceBelief:
        """Tabulate s' = transition(state, action, disturbance) for admissible pairs."""
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

    def observe(self, state: Any, action: Any, next_state: Any, disturbance: Any = None) -> None:
        """Add observed transitions, in place (integers, or arrays of one shape.

        All or none are added).

        Where several disturbances lead from (state, action) to ``next_state``, the transition alone
        does not tell which one occurred (a lost sale hides the demand): pass ``disturbance``.

        Raises
        ------
        ImpossibleTransitionError
            If no disturbance, or not the given one, leads to ``next_state``.
        InvalidInputError
            If an index is out of range, an action is inadmissible, or the disturbance is ambiguous
            and not given.
        """
        given = (state, action, next_state) + (() if disturbance is None else (disturbance,))
        sizes = (self.n_states, self.n_actions, self.n_states, self.n_disturbances)
        columns = broadcast_observations(given, sizes)
        found = [self._identify(*item) for item in zip(*(c.flat for c in columns), strict=True)]
        self._add(np.array(found, dtype=np.int64))

    def observe_disturbance(self, disturbance: Any) -> None:
        """Add observed disturbances (an integer or an array), in place."""
        self._add(as_index_array(disturbance, self.n_disturbances, "disturbance").ravel())

    def _add(self, disturbances: IntArray) -> None:
        np.add.at(self._counts, disturbances, 1)
        np.add(self._prior, self._counts, out=self.concentration_entries)

    def _identify(self, state: Any, action: Any, next_state: Any, disturbance: Any = None) -> int:
        s = as_index(state, self.n_states, "state")
        a = as_index(action, self.n_actions, "action")
        t = as_index(next_state, self.n_states, "next_state")
        row = self.outcomes[s, a]
        if row[0] < 0:
            raise InvalidInputError(f"action {a} is not admissible in state {s}")
        if disturbance is not None:
            d = as_index(disturbance, self.n_disturbances, "disturbance")
            if row[d] != t:
                raise ImpossibleTransitionError(
                    f"disturbance {d} leads from (state={s}, action={a}) to {row[d]}, not to "
                    f"next_state={t}"
                )
            return d
        candidates = np.flatnonzero(row == t)
        if candidates.size == 0:
            raise ImpossibleTransitionError(
                f"the transition (state={s}, action={a}, next_state={t}) is impossible: no "
                "disturbance leads there"
            )
        if candidates.size > 1:
            raise InvalidInputError(
                f"the transition (state={s}, action={a}, next_state={t}) does not reveal the "
                f"disturbance, which may be any of {candidates.tolist()}; pass disturbance="
            )
        return int(candidates[0])

    def copy(self) -> Self:
        """An independent posterior with the same prior and counts, and of the same type."""
        twin = type(self).__new__(type(self))
        # what a subclass keeps besides
        twin.__dict__.update(self.__dict__)
        twin._set(self.outcomes, self._prior.copy(), self._counts.copy())
        return twin

    def concentration(self) -> FloatArray:
        """Current concentrations of the disturbance, (D,)."""
        return self.concentration_entries.copy()

    def counts(self) -> IntArray:
        """Observed disturbances, (D,)."""
        return self._counts.copy()

    def effective_sample_size(self) -> float:
        """Total concentration, prior and data."""
        return float(self.concentration_entries.sum())

    def evidence(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Weight of the prior and number of observations, the same for every pair.

        Each observation teaches about all.
        """
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

    def mean_entries(self) -> FloatArray:
        """Mean probability of every outcome, pair after pair."""
        return np.tile(self.disturbance_mean(), self.pattern.pairs.size)

    def sample_entries(
        self, n: int, rng: np.random.Generator, pairs: IntArray | None = None
    ) -> FloatArray:
        """``n`` joint draws; within a draw all pairs share the disturbance's distribution."""
        draws = dirichlet_rows(self.concentration_entries, n, rng, np.array([self.n_disturbances]))
        return np.tile(draws, (1, self.pattern.pairs.size if pairs is None else len(pairs)))

    def gather_rewards(self, rewards: Any) -> FloatArray:
        """Rewards per outcome.

        Any form by (s, a, s'), or :class:`DisturbanceRewards` by (s, a, d).
        """
        if not isinstance(rewards, DisturbanceRewards):
            return self.pattern.gather(rewards)
        array = as_float_array(rewards.rewards, "rewards")
        if array.shape != self.outcomes.shape:
            raise InvalidInputError(
                f"rewards must have shape (S, A, D) = {self.outcomes.shape}; got {array.shape}"
            )
        return array[self.pattern.admissible].ravel()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Outcomes, prior and counts as named arrays, for :meth:`save`."""
        return {"outcomes": self.outcomes, "prior": self._prior, "counts": self._counts}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], source: Any) -> Self:
        """What :meth:`arrays` described."""
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
            f"DisturbanceBelief({self.n_states} states, {self.n_actions} actions, "
            f"{self.n_disturbances} disturbances, {int(self._counts.sum())} observed)"
        )
