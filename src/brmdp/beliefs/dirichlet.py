"""Independent Dirichlet rows: the paper's belief about the kernel.

P(·|s,a) ~ Dir(φ(s,a)), independent over pairs; observing (s,a,s') adds one to φ(s,a,s') (the
paper's appendix "Dirichlet Posterior Update for the Transition Kernel"). Impossible transitions
have φ = 0 and take no memory.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brmdp._kernels import linear
from brmdp._sparse import ArrayOrSparse
from brmdp._validation import (
    FloatArray,
    IntArray,
    as_float_array,
    as_index_array,
    as_positive_int,
    as_positive_number,
)
from brmdp.beliefs.gammas import LARGEST, check_concentrations, dirichlet_rows
from brmdp.beliefs.observations import broadcast_observations
from brmdp.beliefs.storage import Saveable, corrupt_if_invalid, require_arrays, shape_of
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP, counted, pattern_and_probabilities, possible_pattern
from brmdp.pattern import (
    Format,
    KernelBelief,
    TransitionPattern,
    pattern_and_entries,
    pattern_from_arrays,
)

__all__ = ["DirichletBelief"]

_ARRAYS = ("shape", "indptr", "next_states", "prior", "counts")


class DirichletBelief(KernelBelief, Saveable):
    """Independent Dirichlet distributions over the rows of a transition kernel.

    Parameters
    ----------
    concentration : (S, A, S) array or sparse (S·A, S)
        Prior φ(s,a,s') ≥ 0. Zero means that the transition is known to be impossible. Every
        admissible row needs a positive entry.
    admissible : (S, A) booleans, optional
        Admissible actions; by default all.

    Notes
    -----
    ``observe`` changes the belief in place; ``copy`` returns an independent one. Prior and counts
    are kept apart, so :meth:`counts` returns exactly what was observed.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(n_states=3, n_actions=2)
    >>> belief.observe(state=[0, 0, 0], action=[1, 1, 1], next_state=[1, 1, 2])
    >>> belief
    DirichletBelief(3 states, 2 actions, 18 possible transitions, 3 observed)
    >>> belief.mean()[0, 1]
    array([0.16666667, 0.5       , 0.33333333])
    """

    rows_independent: ClassVar[bool] = True

    prior_shares_learned: FloatArray | None = None
    """(S·A,) share of each row's prior that was learned from other rows of the same log, if any."""

    caveat: str = ""
    """What results must say of this belief, if it is only an approximation of a posterior."""

    def __init__(
        self, concentration: ArrayOrSparse, *, admissible: ArrayLike | None = None
    ) -> None:
        pattern, prior = pattern_and_entries(concentration, "concentration", admissible)
        check_concentrations(prior)
        self._set(pattern, np.array(prior), np.zeros(pattern.n_transitions, dtype=np.int64))

    def _set(self, pattern: TransitionPattern, prior: FloatArray, counts: IntArray) -> None:
        self.pattern = pattern
        self._prior = prior
        self._counts = counts
        self.concentration_entries: FloatArray = prior + counts

    # --- priors -----------------------------------------------------------------------------------

    @classmethod
    def uniform(
        cls,
        n_states: int,
        n_actions: int,
        concentration: float = 1.0,
        *,
        possible: ArrayOrSparse | TabularMDP | None = None,
        admissible: ArrayLike | None = None,
    ) -> Self:
        """A prior with the same concentration for every possible successor.

        Parameters
        ----------
        n_states, n_actions : int
        concentration : float
            φ of every possible transition; 1 gives the paper's uniform prior Dir(1, …, 1).
        possible : (S, A, S) array, sparse (S·A, S) or TabularMDP, optional
            Transitions considered possible, marked by non-zero entries. By default any state can
            follow any state, itself included.
        admissible : (S, A) booleans, optional
            Admissible actions; by default all, or those of the TabularMDP.

        Examples
        --------
        >>> import brmdp
        >>> world = brmdp.envs.riverswim(6)
        >>> brmdp.DirichletBelief.uniform(6, 2, possible=world)
        DirichletBelief(6 states, 2 actions, 22 possible transitions, 0 observed)
        """
        n_states = as_positive_int(n_states, "n_states")
        n_actions = as_positive_int(n_actions, "n_actions")
        value = as_positive_number(concentration, "concentration")
        check_concentrations(np.array([value]))
        pattern = possible_pattern(n_states, n_actions, possible, admissible)
        return cls.from_entries(pattern, np.full(pattern.n_transitions, value))

    @classmethod
    def jeffreys(
        cls,
        n_states: int,
        n_actions: int,
        *,
        possible: ArrayOrSparse | TabularMDP | None = None,
        admissible: ArrayLike | None = None,
    ) -> Self:
        """Jeffreys' prior, Dir(½, …, ½); ``possible`` and ``admissible`` as in :meth:`uniform`."""
        return cls.uniform(n_states, n_actions, 0.5, possible=possible, admissible=admissible)

    @classmethod
    def informative(
        cls,
        kernel: ArrayOrSparse | TabularMDP,
        strength: float,
        *,
        admissible: ArrayLike | None = None,
    ) -> Self:
        """A prior centred at ``kernel`` and worth ``strength`` observations per row.

        Transitions of probability zero stay impossible. If ``kernel`` is a TabularMDP, its
        admissible actions are used, and ``admissible`` must not be given.
        """
        size = as_positive_number(strength, "strength")
        check_concentrations(np.array([size]))
        if isinstance(kernel, TabularMDP):
            if admissible is not None:
                raise InvalidInputError(
                    "admissible must not be given if kernel is a TabularMDP, which has its own "
                    "admissible actions"
                )
            pattern, entries = kernel.pattern, kernel.probabilities
        else:
            pattern, entries = pattern_and_probabilities(kernel, "kernel", admissible)
        return cls.from_entries(pattern, size * entries)

    @classmethod
    def from_entries(cls, pattern: TransitionPattern, concentration: FloatArray) -> Self:
        """The prior with one concentration per entry of a pattern."""
        prior = np.array(as_float_array(concentration, "concentration"))
        if prior.shape != (pattern.n_transitions,):
            raise InvalidInputError(
                f"concentration must hold one number per possible transition, "
                f"({pattern.n_transitions},); got {prior.shape}"
            )
        check_concentrations(prior)
        belief = cls.__new__(cls)
        belief._set(pattern, prior, np.zeros(pattern.n_transitions, dtype=np.int64))
        return belief

    # --- data -------------------------------------------------------------------------------------

    def observe(
        self, state: int | ArrayLike, action: int | ArrayLike, next_state: int | ArrayLike
    ) -> None:
        """Add observed transitions, in place.

        Pass three integers, or arrays in any form NumPy can read: lists, columns of tables, JAX
        arrays. A single integer next to arrays applies to all of their entries. If there are
        exactly two actions, they may be given as booleans. If one transition is refused, none is
        added.

        Raises
        ------
        InvalidInputError
            If an index is out of range or an action is not admissible.
        ImpossibleTransitionError
            If the prior gives an observed transition probability zero.
        """
        if not (type(state) is int and type(action) is int and type(next_state) is int):
            sizes = (self.n_states, self.n_actions, self.n_states)
            states, actions, next_states = broadcast_observations(
                (state, action, next_state), sizes
            )
            if states.ndim:
                entries = self.pattern.locate_many(states, actions, next_states)
                np.add.at(self._counts, entries, 1)
                self.concentration_entries[entries] = self._prior[entries] + self._counts[entries]
                return
            state, action, next_state = int(states), int(actions), int(next_states)
        entry = self.pattern.locate(state, action, next_state)
        count = self._counts[entry] + 1
        self._counts[entry] = count
        self.concentration_entries[entry] = self._prior[entry] + count

    def copy(self) -> Self:
        """An independent belief of the same type, with the same prior and counts."""
        twin = type(self).__new__(type(self))
        # attributes that a subclass added
        twin.__dict__.update(self.__dict__)
        # the prior never changes
        twin._set(self.pattern, self._prior, self._counts.copy())
        return twin

    # --- summaries --------------------------------------------------------------------------------

    def concentration(self, format: Format = "dense") -> Any:
        """Current φ(s,a,s'): "dense" (S, A, S), "csr" (S·A, S), or "flat" over transitions."""
        return self.pattern.export(self.concentration_entries, format)

    def counts(self, format: Format = "dense") -> Any:
        """N(s,a,s'), observations of each transition; formats as in :meth:`concentration`."""
        return self.pattern.export(self._counts, format)

    def effective_sample_size(self) -> FloatArray:
        """(S, A) total concentration Σ_s' φ(s,a,s') of prior and data; 0 if inadmissible."""
        totals = self._totals()
        return totals.reshape(self.n_states, self.n_actions)

    def variance(self, format: Format = "dense") -> Any:
        """Posterior variance of every probability; formats as in :meth:`concentration`."""
        mean = self.mean_entries()
        totals = self._totals()[self.pattern.pair_of_transition]
        return self.pattern.export(mean * (1.0 - mean) / (totals + 1.0), format)

    def _totals(self) -> FloatArray:
        return self._sums(self.concentration_entries)

    def _sums(self, entries: NDArray[Any]) -> FloatArray:
        """Sum of the entries of every pair."""
        totals = np.empty(self.pattern.n_pairs)
        linear.row_sums(self.pattern.indptr, entries, totals)
        return totals

    def evidence(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Weight of the prior, and number of observations, for each of ``pairs``."""
        return self._sums(self._prior)[pairs], self._sums(self._counts)[pairs]

    def borrowed(self, pairs: IntArray) -> FloatArray:
        """The part of the prior's weight that was learned from other rows of the same log."""
        if self.prior_shares_learned is None:
            return np.zeros(pairs.size)
        found: FloatArray = self.evidence(pairs)[0] * self.prior_shares_learned[pairs]
        return found

    def observed_states(self) -> FloatArray:
        """(S,) number of observations made in each state."""
        by_pair = self._sums(self._counts).reshape(self.n_states, self.n_actions)
        return np.asarray(by_pair.sum(axis=1), dtype=np.float64)

    # --- belief -----------------------------------------------------------------------------------

    @property
    def concentration_offsets(self) -> IntArray:
        """Where each pair's concentrations begin in ``concentration_entries``."""
        return self.pattern.indptr

    def mean_entries(self) -> FloatArray:
        """Mean probability of every possible transition."""
        mean = np.empty(self.pattern.n_transitions)
        linear.shares_of_rows(self.pattern.indptr, np.asarray(self.concentration_entries), mean)
        return mean

    def sample_entries(
        self, n: int, pairs: IntArray | None = None, *, rng: np.random.Generator
    ) -> FloatArray:
        """``n`` draws of the rows of ``pairs`` (by default all admissible pairs): (n, entries)."""
        pattern = self.pattern
        if pairs is None:
            return dirichlet_rows(self.concentration_entries, n, rng, pattern.row_widths)
        return dirichlet_rows(
            pattern.take(self.concentration_entries, pairs), n, rng, pattern.widths[pairs]
        )

    # --- files ------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Prior and counts as named arrays, for :meth:`save`."""
        return {
            "shape": np.array([self.n_states, self.n_actions]),
            "indptr": self.pattern.indptr,
            "next_states": self.pattern.next_states,
            "prior": self._prior,
            "counts": self._counts,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], source: object) -> Self:
        """The belief that :meth:`arrays` described."""
        require_arrays(arrays, _ARRAYS, source)
        n_states, n_actions = shape_of(arrays["shape"], source)
        belief = cls.__new__(cls)
        with corrupt_if_invalid(source):
            pattern = pattern_from_arrays(
                n_states, n_actions, arrays["indptr"], arrays["next_states"]
            )
            prior = as_float_array(arrays["prior"], "prior")
            counts = as_index_array(arrays["counts"], int(LARGEST) + 1, "counts")
            if not prior.shape == counts.shape == (pattern.n_transitions,) or (prior <= 0).any():
                raise InvalidInputError(
                    "prior must be positive and counts not negative, one per possible transition"
                )
            check_concentrations(prior)
        belief._set(pattern, prior, counts)
        return belief

    def __repr__(self) -> str:
        return (
            f"DirichletBelief({counted(self.n_states, 'state')}, "
            f"{counted(self.n_actions, 'action')}, "
            f"{counted(self.pattern.n_transitions, 'possible transition')}, "
            f"{int(self._counts.sum())} observed)"
        )
