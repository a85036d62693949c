"""One unknown disturbance that is sometimes seen only as "at least c": lost sales.

A shop that sells out sees its stock go to zero, not the demand. Leaving such days out makes the
demand look smaller than it is, and so does counting them as if demand had equalled the stock.

**The posterior.** Let h_j = Pr(d = j | d ≥ j) be the hazards of the disturbance d in 0, …, D − 1,
so p_j = h_j Π_{i<j} (1 − h_i). Under p ~ Dir(φ) they are independent, h_j ~ Beta(a_j, b_j) with
a_j = φ_j and b_j = Σ_{i>j} φ_i. Seeing j exactly multiplies the likelihood by h_j Π_{i<j} (1 − h_i)
and so adds one to a_j and to b_i for i < j; seeing "at least c" multiplies it by Π_{i<c} (1 − h_i)
and adds one to b_i for i < c. Both are conjugate, so all that matters is how often each was seen.
"At least 0" says nothing; "at least D − 1" is D − 1 itself.

This takes for granted that c says nothing else about the day's disturbance: the stock may depend on
all that happened before, but whoever chose it must not have known what was coming.

**What is exact.** The posterior is a Dirichlet law if and only if b_j = a_{j+1} + b_{j+1}, that is,
until the first "at least c" with 1 ≤ c ≤ D − 2. Up to then the belief equals
:class:`~brmdp.DisturbanceBelief` in every number, and quantiles are exact. Afterwards it is a
generalised Dirichlet law. Means and variances are still closed formulas, and draws are draws of
this very law; but no exact quantile of w·p is known, so quantiles and CVaR are computed from
fixed draws and the plan's status is "sampled" (see :class:`brmdp.Quantile`). Use
:func:`brmdp.certify` for a guarantee.

**How much an "at least" counts** as data, for the warning that a plan rests on the prior
(:meth:`CensoredDisturbanceBelief.evidence`). With weight m = Σφ of the prior and n exact
observations, the posterior mean follows every shift of the prior's mean by the share m/(m + n).
With hidden values the share depends on the direction: what was cut off at c leaves it to the prior
how the rest is split up. Let the share be the largest, over all values k, by which the posterior
mean follows if a little of the prior's weight is moved to k, both measured in total variation. The
belief reports the number n for which m/(m + n) is this share. Without hidden values it is the
number of observations; it is never more. A shop that always sells out at 3 may have thousands of
days on record, and still has only the prior to split up 3 and more: they count for next to nothing.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brmdp._validation import FloatArray, IntArray, as_index_array
from brmdp.beliefs.disturbance import DrivenBelief
from brmdp.beliefs.gammas import LARGEST, dirichlet_rows, log_gammas
from brmdp.beliefs.storage import corrupt_if_invalid, require_arrays
from brmdp.errors import InvalidInputError
from brmdp.mdp import counted

__all__ = ["CensoredDisturbanceBelief"]

LARGEST_SHARE = 0.99
"""Largest share of the prior that is reported once anything was observed.

The posterior mean may follow the prior's by more than one to one. But a count of zero would say
that nothing was observed.
"""

_ARRAYS = ("outcomes", "prior", "counts", "at_least")


class CensoredDisturbanceBelief(DrivenBelief):
    """A belief about one disturbance that is seen exactly or as "at least c", as in lost sales.

    Without such observations it is the :class:`brmdp.DisturbanceBelief` with the same prior.

    Parameters
    ----------
    outcomes : (S, A, D) integers
        The next state f(s, a, d). Fill a pair with −1 to make the action inadmissible.
        :meth:`from_function` tabulates a function.
    concentration : (D,) positive numbers, or one number for all
        Dirichlet prior over the disturbance.

    Notes
    -----
    Rewards may depend on the disturbance (:class:`brmdp.DisturbanceRewards`), such as a cost for
    every customer turned away: plans take the expectation over what was not seen. But where the
    reward *received* depends on it, the reward gives the disturbance away; this belief does not
    look at rewards. If you can tell the disturbance from the books, pass ``disturbance``.

    Examples
    --------
    A shop with at most three units and no orders. Four days: one unit sold of three, then three
    days on which the shelf was empty in the evening.

    >>> import brmdp
    >>> belief = brmdp.CensoredDisturbanceBelief.from_function(
    ...     lambda stock, order, demand: max(stock - demand, 0),
    ...     n_states=4, n_actions=1, n_disturbances=6,
    ... )
    >>> belief.observe(state=[3, 2, 2, 3], action=0, next_state=[2, 0, 0, 0])
    >>> belief
    CensoredDisturbanceBelief(4 states, 1 action, 6 disturbances, 1 observed, 3 at least)
    >>> belief.counts(), belief.at_least_counts()
    (array([0, 1, 0, 0, 0, 0]), array([0, 0, 2, 1, 0, 0]))
    >>> belief.disturbance_mean().round(3)
    array([0.1  , 0.2  , 0.14 , 0.187, 0.187, 0.187])
    """

    def _set(
        self,
        outcomes: IntArray,
        prior: FloatArray,
        counts: IntArray,
        at_least: IntArray | None = None,
    ) -> None:
        super()._set(outcomes, prior, counts)
        self._at_least: IntArray = np.zeros_like(counts) if at_least is None else at_least

    # --- learning ---------------------------------------------------------------------------------

    def observe(
        self,
        state: int | ArrayLike,
        action: int | ArrayLike,
        next_state: int | ArrayLike,
        disturbance: int | ArrayLike | None = None,
    ) -> None:
        """Add observed transitions, in place.

        Pass integers, or arrays of one shape. If one transition is refused, none is added. Where
        only one disturbance leads from (state, action) to ``next_state``, it is learned exactly;
        where all from some c on do, "at least c" is learned.

        Parameters
        ----------
        state, action, next_state : int or array of integers
            The transitions.
        disturbance : int or array of integers, optional
            The disturbances that drove them, if they are known after all.

        Raises
        ------
        ImpossibleTransitionError
            If no disturbance leads to ``next_state``, or the given one does not.
        InvalidInputError
            If an index is out of range, an action is inadmissible, or the disturbances that lead to
            ``next_state`` are neither one value nor all values from some c on.
        """
        exact, lowest = [], []
        for candidates, transition in self._candidates(state, action, next_state, disturbance):
            if candidates.size == 1:
                exact.append(candidates[0])
            elif candidates.size == self.n_disturbances - candidates[0]:
                lowest.append(candidates[0])
            else:
                raise InvalidInputError(
                    f"{transition} does not say that the disturbance is 'at least' something: it "
                    f"may be any of {candidates.tolist()} of 0..{self.n_disturbances - 1}, and "
                    "only a single value or all values from some c on can be learned from. Pass "
                    "disturbance="
                )
        self._add(np.array(exact, dtype=np.int64), np.array(lowest, dtype=np.int64))

    def observe_at_least(self, bound: ArrayLike) -> None:
        """Learn that the disturbance was at least ``bound`` (an integer or an array), in place.

        "At least 0" says nothing and is not counted; "at least D − 1" counts as D − 1.

        Raises
        ------
        InvalidInputError
            If a bound is not an integer in 0, …, D − 1: no disturbance is larger than D − 1.
        """
        bounds = as_index_array(bound, self.n_disturbances, "bound").ravel()
        self._add(np.zeros(0, dtype=np.int64), bounds)

    def _add(self, disturbances: IntArray, bounds: IntArray | None = None) -> None:
        np.add.at(self._counts, disturbances, 1)
        if bounds is not None:
            largest = self.n_disturbances - 1
            self._counts[largest] += int((bounds == largest).sum())
            np.add.at(self._at_least, bounds[(bounds > 0) & (bounds < largest)], 1)

    def copy(self) -> Self:
        """An independent belief of the same type, with the same prior and counts."""
        twin = type(self).__new__(type(self))
        # attributes that a subclass added
        twin.__dict__.update(self.__dict__)
        twin._set(self.outcomes, self._prior.copy(), self._counts.copy(), self._at_least.copy())
        return twin

    # --- the law ----------------------------------------------------------------------------------

    def at_least_counts(self) -> IntArray:
        """Number of times "at least c" was observed, (D,); zero at c = 0 and c = D − 1.

        The former says nothing and the latter is exact, so it is among :meth:`counts`.
        """
        return self._at_least.copy()

    @property
    def n_observations(self) -> int:
        """Number of observations that the belief has learned from, exact or "at least"."""
        return int(self._counts.sum() + self._at_least.sum())

    @property
    def is_dirichlet(self) -> bool:
        """Whether the law is still a Dirichlet law, for which quantiles are exact."""
        return not self._at_least.any()

    @property
    def concentration_entries(self) -> FloatArray:
        """Concentrations of the disturbance, (D,), while the law is a Dirichlet law.

        Raises
        ------
        AttributeError
            If it no longer is one, so that no measure takes it for one.
        """
        if not self.is_dirichlet:
            raise AttributeError(
                "a CensoredDisturbanceBelief has no concentrations once it has learned from "
                "'at least': see hazards()"
            )
        return self._prior + self._counts

    @property
    def concentration_offsets(self) -> IntArray:
        """Where each pair's concentrations begin: all pairs share them."""
        return np.zeros(self.pattern.n_pairs, dtype=np.int64)

    def hazards(self) -> tuple[FloatArray, FloatArray]:
        """Parameters a and b, (D − 1,) each, of the independent hazards h_j ~ Beta(a_j, b_j).

        h_j = Pr(d = j | d ≥ j); that of the largest value is one.
        """
        known = self._prior + self._counts
        beyond = known + self._at_least
        return known[:-1], np.cumsum(beyond[::-1])[-2::-1]

    def disturbance_mean(self) -> FloatArray:
        """Posterior mean of the disturbance's distribution, (D,)."""
        mean: FloatArray
        if self.is_dirichlet:
            phi = self.concentration_entries
            mean = phi / phi.sum()
        else:
            a, b = self.hazards()
            total = a + b
            mean = np.append(a / total, 1.0) * np.cumprod(np.concatenate(([1.0], b / total)))
        return mean

    def disturbance_variance(self) -> FloatArray:
        """Posterior variance of the disturbance's probabilities, (D,)."""
        mean = self.disturbance_mean()
        variance: FloatArray
        if self.is_dirichlet:
            variance = mean * (1.0 - mean) / (self.concentration_entries.sum() + 1.0)
            return variance
        # E p_j² = (E p_j)² exp(excess), where each Beta factor adds its own; no cancellation
        a, b = self.hazards()
        above = np.append(np.log1p(b / (a * (a + b + 1.0))), 0.0)
        below = np.concatenate(([0.0], np.cumsum(np.log1p(a / (b * (a + b + 1.0))))))
        excess = above + below
        variance = np.exp(2.0 * np.log(mean) + excess) * -np.expm1(-excess)
        return variance

    def sample_disturbance(self, n: int, *, rng: np.random.Generator) -> FloatArray:
        """``n`` draws of the disturbance's distribution, (n, D)."""
        if self.is_dirichlet:
            phi = self.concentration_entries
            return dirichlet_rows(phi, n, rng, np.array([phi.size]))
        # stick breaking in logarithms, which survives tiny parameters
        a, b = self.hazards()
        logs = log_gammas(np.concatenate((a, b)), n, rng)
        hit, pass_by = logs[:, : a.size], logs[:, a.size :]
        total = np.logaddexp(hit, pass_by)
        draws = np.zeros((n, a.size + 1))
        np.cumsum(pass_by - total, axis=1, out=draws[:, 1:])
        draws[:, :-1] += hit - total
        np.exp(draws, out=draws)
        draws /= draws.sum(axis=1, keepdims=True)
        return draws

    def evidence(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Weight of the prior, and number of observations: the same for every pair.

        An "at least" counts in part; :mod:`brmdp.beliefs.censored` says how. Since rewards may
        depend on the disturbance itself, what a pair's next state would leave open counts as well.
        """
        return (
            np.full(len(pairs), self._prior.sum()),
            np.full(len(pairs), self._effective_observations()),
        )

    def _effective_observations(self) -> float:
        """The number n for which the prior's share is m/(m + n)."""
        if self.is_dirichlet:
            return float(self.n_observations)
        prior = self._prior
        others = np.where(np.eye(prior.size, dtype=bool), 0.0, prior).sum(axis=1)
        # row k moves weight to the value k: m(e_k − φ/m)
        moves = np.tile(-prior, (prior.size, 1))
        moves.flat[:: prior.size + 1] = others
        a, b = self.hazards()
        total, mean = a + b, self.disturbance_mean()
        beyond = np.cumsum(moves[:, ::-1], axis=1)[:, -2::-1]
        hazard_moves = (moves[:, :-1] * b - a * beyond) / total**2
        reached = np.cumprod(np.concatenate(([1.0], b / total)))
        mean_moves = np.zeros_like(moves)
        mean_moves[:, :-1] = reached[:-1] * hazard_moves
        mean_moves[:, 1:] -= mean[1:] * np.cumsum(hazard_moves * (total / b), axis=1)
        weight = float(prior.sum())
        share = float((0.5 * np.abs(mean_moves).sum(axis=1) / (others / weight)).max())
        return weight * (1.0 / min(share, LARGEST_SHARE) - 1.0)

    # --- files ------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Outcomes, prior and counts as named arrays, for :meth:`save`."""
        return {
            "outcomes": self.outcomes,
            "prior": self._prior,
            "counts": self._counts,
            "at_least": self._at_least,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], source: object) -> Self:
        """The belief that :meth:`arrays` described."""
        require_arrays(arrays, _ARRAYS, source)
        with corrupt_if_invalid(source):
            belief = cls(arrays["outcomes"], arrays["prior"])
            counts, at_least = (
                as_index_array(arrays[name], int(LARGEST) + 1, name)
                for name in ("counts", "at_least")
            )
            if not counts.shape == at_least.shape == (belief.n_disturbances,):
                raise InvalidInputError(
                    "counts and at_least must be one per disturbance; got shapes "
                    f"{counts.shape} and {at_least.shape}"
                )
            if at_least[0] or at_least[-1]:
                raise InvalidInputError(
                    "at_least must be 0 for the smallest and the largest disturbance; got "
                    f"{at_least[0]} and {at_least[-1]}"
                )
        belief._set(belief.outcomes, belief._prior, counts, at_least)
        return belief

    def __repr__(self) -> str:
        return (
            f"CensoredDisturbanceBelief({counted(self.n_states, 'state')}, "
            f"{counted(self.n_actions, 'action')}, "
            f"{counted(self.n_disturbances, 'disturbance')}, {int(self._counts.sum())} observed, "
            f"{int(self._at_least.sum())} at least)"
        )
