"""Unknown rewards: a Dirichlet belief over the outcomes (s', r) of every pair.

If the rewards are unknown too, an outcome of a pair (s, a) is a next state together with a reward,
and one Dirichlet vector P(·|s,a) holds the probabilities of all outcomes, rows independent. The
target of an outcome is w = r + γV(s'), so w·P is linear in P as before: quantiles, CVaR, means and
draws are exact, by the same code. The next states alone have the Dirichlet law whose concentrations
are those of the outcomes, added up over the rewards.

**A finite set of possible rewards** (:meth:`OutcomeBelief.uniform`, or a table of outcomes) is a
proper model: observing (s, a, s', r) adds one to the concentration of that outcome. Everything that
holds for independent Dirichlet rows holds here, Proposition 1 included.

**Rewards anywhere between two bounds** (:meth:`OutcomeBelief.bootstrap`): the observed values are
the atoms, each with the weight of its observations, beside prior atoms at the lowest and the
highest possible reward. That is a Bayesian bootstrap, a *working approximation, not a posterior*:
its prior gives no probability to the values that are then observed. Everything computed from it
carries that caveat (:attr:`OutcomeBelief.caveat`), and no certificate is issued. For a certificate,
round the rewards *down* to a finite list: a policy's true value is at least its value with those.

**Merging.** Atoms would grow with the data without end. If a transition (s, a, s') has more than
``max_atoms``, one of them is dissolved: its weight m at r goes to its neighbours at r₁ < r < r₂, in
the proportion that keeps the mean, m·(r₂ − r)/(r₂ − r₁) to r₁ and the rest to r₂. The one chosen
adds least to the second moment of the reward, m·(r₂ − r)(r − r₁). The bounds are never dissolved,
so every value has neighbours, and prior and data stay apart. Then, up to rounding,

- every mean of w·P is that of the unmerged atoms, whatever the values V;
- the law of w·P is a mean-preserving spread of theirs: given the other coordinates, P_r is divided
  between r₁ and r₂ by a Beta variable with the right mean. So variances and losses in the lower
  tail (CVaR) err on the wide side; a single quantile may move either way;
- the variance of w·P exceeds theirs by A/(Φ(Φ + 1)), where Φ is the total concentration of the pair
  and A the sum of all second moments added: :meth:`OutcomeBelief.added_variance` states it.

``max_atoms=2`` leaves only the bounds: every reward then counts as a coin toss with its own mean.
The order of the observations matters once atoms are merged, and only then.

**The pattern.** An entry of the pattern is an outcome, so new atoms make a new pattern. The pattern
object is replaced whenever an atom appears or dissolves and never changes itself: who keeps one
learns from its identity whether it is still the belief's. :attr:`OutcomeBelief.transitions`, the
possible (s, a, s'), stays.

A reward that somebody guesses between two numbers and nobody observes is neither of the two kinds.
Plan for several guesses and compare: that is a sensitivity, not a posterior.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brmdp._sparse import ArrayOrSparse
from brmdp._validation import (
    FloatArray,
    IntArray,
    as_array,
    as_float_array,
    as_index_array,
    as_positive_int,
    as_positive_number,
    first_bad,
)
from brmdp.beliefs.gammas import LARGEST, check_concentrations, dirichlet_rows
from brmdp.beliefs.observations import broadcast_observations
from brmdp.beliefs.storage import Saveable, corrupt_if_invalid, require_arrays, shape_of
from brmdp.errors import ImpossibleTransitionError, InvalidInputError
from brmdp.mdp import TabularMDP, counted, possible_pattern
from brmdp.pattern import (
    LARGEST_FULL,
    Format,
    KernelBelief,
    TransitionPattern,
    pattern_from_arrays,
)

__all__ = ["BOOTSTRAP_CAVEAT", "REWARD_ROUNDING", "OutcomeBelief"]

REWARD_ROUNDING = 1e-9
"""A reward may be off by this much, relative to the largest |reward| of its transition.

Within it, a reward counts as the possible one, or as the bound that it exceeds.
"""

LARGEST_REWARD = 1e140
"""Largest |reward| accepted."""

BOOTSTRAP_CAVEAT = (
    "The rewards are a Bayesian bootstrap of the observed values: a working approximation, not a "
    "posterior."
)

_ARRAYS = ("shape", "indptr", "next_states", "pointers", "rewards", "prior", "weights")
_MERGING = ("max_atoms", "added")


class OutcomeBelief(KernelBelief, Saveable):
    """Independent Dirichlet distributions over the outcomes (s', r) of every pair.

    The rewards are part of this belief, so plans take none: ``brmdp.plan(belief, None, discount,
    risk=…)``. Known rewards r(s,a) or r(s,a,s') may be given all the same; they are added to the
    unknown ones, and ``observe`` must then be told the unknown part alone.

    :meth:`uniform` makes a belief from lists of possible rewards, and the constructor one from a
    table of outcomes: both are proper models. :meth:`bootstrap` serves rewards anywhere between two
    bounds, as a working approximation; :attr:`caveat` says so, and :func:`brmdp.certify` refuses
    it.

    Parameters
    ----------
    outcomes : (n, 4) array
        The possible outcomes, each a row (state, action, next state, reward). An action without
        outcomes in a state is inadmissible there.
    concentration : float or (n,) array
        Prior concentration of each outcome.
    n_states, n_actions : int, optional
        By default as many as the table mentions.

    Attributes
    ----------
    transitions : TransitionPattern
        The possible transitions (s, a, s'), which never change.
    pattern : TransitionPattern
        The outcomes, by pair, next state and reward. It is replaced, never changed, whenever an
        atom appears or dissolves.
    outcome_rewards : (outcomes,) array
        The reward of each outcome.
    max_atoms : int or None
        The most atoms of a transition before values are merged; None if the possible rewards are
        known.

    Examples
    --------
    A machine that pays 0 or 5, or breaks:

    >>> import brmdp
    >>> table = [(0, 0, 0, 0.0), (0, 0, 0, 5.0), (0, 0, 1, 0.0), (1, 0, 1, 0.0)]
    >>> belief = brmdp.OutcomeBelief(table)
    >>> belief.observe(state=[0, 0], action=[0, 0], next_state=[0, 0], reward=[5.0, 0.0])
    >>> belief
    OutcomeBelief(2 states, 1 action, 4 outcomes, 2 observed)
    >>> belief.mean_rewards().ravel()
    array([2., 0.])
    >>> plan = brmdp.plan(belief, None, 0.5, risk=brmdp.Quantile(0.2))
    >>> plan.values.round(3)
    array([1.683, 0.   ])
    """

    rows_independent: ClassVar[bool] = True
    learns_rewards: ClassVar[bool] = True

    def __init__(
        self,
        outcomes: ArrayLike,
        concentration: ArrayLike = 1.0,
        *,
        n_states: int | None = None,
        n_actions: int | None = None,
    ) -> None:
        table = as_float_array(outcomes, "outcomes")
        if table.ndim != 2 or table.shape[1] != 4 or table.shape[0] == 0:
            raise InvalidInputError(
                "outcomes must be rows (state, action, next state, reward), shape (n, 4); got "
                f"shape {table.shape}"
            )
        named = ("state", "action", "next state")
        whole = table[:, :3] == np.floor(table[:, :3])
        if not whole.all():
            k, column = first_bad(~whole)
            raise InvalidInputError(
                f"outcomes must have integers as {named[column]}; got {table[k, column]} in row {k}"
            )
        states, actions, next_states = table[:, :3].T.astype(np.int64)
        n = _size(n_states, "n_states", max(int(states.max()), int(next_states.max())))
        n_own = _size(n_actions, "n_actions", int(actions.max()))
        columns = zip((states, actions, next_states), (n, n_own, n), named, strict=True)
        for column, size, name in columns:
            as_index_array(column, size, f"{name} in outcomes")
        prior = _as_prior(concentration, len(table))
        order = np.lexsort((table[:, 3], next_states, states * n_own + actions))
        keys = ((states * n_own + actions) * n + next_states)[order]
        begins = np.flatnonzero(np.concatenate(([True], np.diff(keys) > 0)))
        pairs, reached = np.divmod(keys[begins], n)
        widths = np.bincount(pairs, minlength=n * n_own)
        indptr = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
        transitions = TransitionPattern(n, n_own, indptr, reached)
        pointers = np.append(begins, keys.size).astype(np.int64)
        _require_distinct(transitions, pointers, table[order, 3])
        self._set(transitions, pointers, table[order, 3], prior[order], np.zeros(keys.size))

    def _set(
        self,
        transitions: TransitionPattern,
        pointers: IntArray,
        rewards: FloatArray,
        prior: FloatArray,
        weights: FloatArray,
        max_atoms: int | None = None,
        added: FloatArray | None = None,
        pattern: TransitionPattern | None = None,
    ) -> None:
        """Set all state; only ``weights``, ``added`` and the concentrations are ever changed."""
        self.transitions = transitions
        self.outcome_rewards = rewards
        self.max_atoms = max_atoms
        self._pointers = pointers
        self._prior = prior
        self._weights = weights
        self._added = np.zeros(transitions.n_transitions) if added is None else added
        self.pattern = pattern or TransitionPattern(
            transitions.n_states,
            transitions.n_actions,
            pointers[transitions.indptr],
            np.repeat(transitions.next_states, np.diff(pointers)),
        )
        self.concentration_entries: FloatArray = prior + weights

    # --- priors -----------------------------------------------------------------------------------

    @classmethod
    def uniform(
        cls,
        n_states: int,
        n_actions: int,
        rewards: ArrayLike | Mapping[tuple[int, int], ArrayLike],
        concentration: float = 1.0,
        *,
        total: float | None = None,
        possible: ArrayOrSparse | TabularMDP | None = None,
        admissible: ArrayLike | None = None,
    ) -> Self:
        """A prior with the same concentration for every outcome, from lists of possible rewards.

        Parameters
        ----------
        n_states, n_actions : int
        rewards : list of numbers, mapping of pairs to lists, or nested lists
            The rewards that any transition may pay, or those of each pair: ``{(state, action):
            [r, …]}`` or ``rewards[state][action]``. A pair with one reward pays it for certain.
        concentration : float
            φ of every outcome; 1 gives the uniform prior Dir(1, …, 1) over outcomes.
        total : float, optional
            Instead of ``concentration``: the weight of the prior of every pair, in observations,
            spread evenly over its outcomes.
        possible, admissible
            As in :meth:`brmdp.DirichletBelief.uniform`.

        Examples
        --------
        Two arms that win or lose, each with a Beta(1, 1) prior for its chance:

        >>> import brmdp
        >>> belief = brmdp.OutcomeBelief.uniform(1, 2, rewards=[0, 1])
        >>> belief.observe(0, [0, 0, 1], 0, reward=[1, 1, 0])
        >>> belief.mean_rewards()
        array([[0.75      , 0.33333333]])
        """
        size = (as_positive_int(n_states, "n_states"), as_positive_int(n_actions, "n_actions"))
        value = as_positive_number(concentration, "concentration")
        if total is not None and value != 1.0:
            raise InvalidInputError("concentration and total must not both be given")
        transitions = possible_pattern(*size, possible, admissible)
        if isinstance(rewards, Mapping) or _is_nested(rewards):
            lists = _lists_by_pair(rewards, transitions)
            widths = np.array([lists[pair].size for pair in transitions.pair_of_transition])
            laid_out = np.concatenate([lists[pair] for pair in transitions.pair_of_transition])
        else:
            common = _as_list(rewards, "rewards")
            widths = np.full(transitions.n_transitions, common.size)
            _require_few(transitions.n_transitions * common.size)
            laid_out = np.tile(common, transitions.n_transitions)
        pointers = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
        prior = np.full(laid_out.size, value)
        if total is not None:
            per_pair = np.diff(pointers[transitions.indptr])[transitions.pair_of_transition]
            prior = np.repeat(as_positive_number(total, "total") / per_pair, widths)
        check_concentrations(prior)
        belief = cls.__new__(cls)
        belief._set(transitions, pointers, laid_out, prior, np.zeros(laid_out.size))
        return belief

    @classmethod
    def bootstrap(
        cls,
        n_states: int,
        n_actions: int,
        lowest: ArrayLike,
        highest: ArrayLike,
        concentration: float = 1.0,
        *,
        max_atoms: int = 32,
        possible: ArrayOrSparse | TabularMDP | None = None,
        admissible: ArrayLike | None = None,
    ) -> Self:
        """Rewards anywhere between two bounds: a bootstrap of the observed values.

        This is a working approximation, not a posterior, and says so in everything computed from
        it; see :mod:`brmdp.beliefs.outcomes`.

        Parameters
        ----------
        n_states, n_actions : int
        lowest, highest : float or (S, A) array
            The bounds. Where they are equal, the reward is known.
        concentration : float
            Prior weight of every possible transition (s, a, s'), in observations: half of it at
            either bound.
        max_atoms : int, at least 2
            The most atoms of a transition, bounds included; beyond, values are merged.
        possible, admissible
            As in :meth:`brmdp.DirichletBelief.uniform`.

        Examples
        --------
        >>> import brmdp
        >>> belief = brmdp.OutcomeBelief.bootstrap(1, 1, lowest=0.0, highest=10.0)
        >>> belief.observe(0, 0, 0, reward=[2.5, 3.1, 2.7])
        >>> belief
        OutcomeBelief(1 state, 1 action, 5 atoms in [0, 10], 3 observed, a bootstrap approximation)
        >>> belief.mean_rewards().round(6)  # (5 + 2.5 + 3.1 + 2.7) / 4
        array([[3.325]])
        """
        size = (as_positive_int(n_states, "n_states"), as_positive_int(n_actions, "n_actions"))
        value = as_positive_number(concentration, "concentration")
        check_concentrations(np.array([0.5 * value]))
        most = as_positive_int(max_atoms, "max_atoms")
        if most < 2:
            raise InvalidInputError(f"max_atoms must be at least 2, the two bounds; got {most}")
        transitions = possible_pattern(*size, possible, admissible)
        pairs = transitions.pair_of_transition
        low, high = (
            _as_bound(bound, name, size)[pairs]
            for bound, name in ((lowest, "lowest"), (highest, "highest"))
        )
        if (low > high).any():
            k = int(np.argmax(low > high))
            s, a = divmod(int(pairs[k]), size[1])
            raise InvalidInputError(
                f"lowest must not exceed highest; got {low[k]} and {high[k]} at (s={s}, a={a})"
            )
        known = low == high
        kept = np.column_stack([np.ones(known.size, dtype=bool), ~known]).ravel()
        pointers = np.concatenate(([0], np.cumsum(np.where(known, 1, 2)))).astype(np.int64)
        atoms = np.column_stack([low, high]).ravel()[kept]
        prior = np.repeat(np.where(known, value, 0.5 * value), np.diff(pointers))
        belief = cls.__new__(cls)
        belief._set(transitions, pointers, atoms, prior, np.zeros(atoms.size), most)
        return belief

    # --- data -------------------------------------------------------------------------------------

    @property
    def is_bootstrap(self) -> bool:
        """Whether the rewards are a bootstrap between bounds, not a finite set that is known."""
        return self.max_atoms is not None

    @property
    def caveat(self) -> str:
        """What results from this belief must say about it; empty for a proper model."""
        return BOOTSTRAP_CAVEAT if self.is_bootstrap else ""

    def observe(
        self,
        state: int | ArrayLike,
        action: int | ArrayLike,
        next_state: int | ArrayLike,
        reward: float | ArrayLike | None = None,
    ) -> None:
        """Add observed transitions and the rewards that they paid, in place.

        Pass numbers, or arrays of one shape; a single number next to arrays applies to all of their
        entries. If one observation is refused, none is added.

        A reward counts as one of the possible rewards if it differs from it by at most 1e-9 times
        the largest |reward| of the transition. By as much it may exceed a bound.

        Raises
        ------
        InvalidInputError
            If an index is out of range, an action is not admissible, or a reward is missing, not
            finite, or outside the bounds.
        ImpossibleTransitionError
            If the transition is impossible, or its reward is none of the possible ones.
        """
        if reward is None:
            raise InvalidInputError(
                "reward must be given with every transition, since this belief learns the rewards; "
                "got None"
            )
        if (
            type(state) is int
            and type(action) is int
            and type(next_state) is int
            and type(reward) is float
            and math.isfinite(reward)
        ):
            where = self.transitions.locate(state, action, next_state)
            self._add(np.array([where]), np.array([reward]))
            return
        sizes = (self.n_states, self.n_actions, self.n_states)
        columns = broadcast_observations((state, action, next_state), sizes)
        paid = as_float_array(reward, "reward")
        shape = columns[0].shape
        if shape and paid.shape and shape != paid.shape:
            raise InvalidInputError(
                "reward must be one number, or have the shape of the transitions; got "
                f"{paid.shape} and {shape}"
            )
        states, actions, next_states, values = np.broadcast_arrays(*columns, paid)
        if states.ndim == 0:
            where = self.transitions.locate(int(states), int(actions), int(next_states))
            self._add(np.array([where]), values.reshape(1))
        else:
            self._add(self.transitions.locate_many(states, actions, next_states), values.ravel())

    def _add(self, where: IntArray, values: FloatArray) -> None:
        """Add rewards of the given transitions: all of them, or none."""
        if where.size == 0:
            return
        order = np.argsort(where, kind="stable")
        touched, begins = np.unique(where[order], return_index=True)
        groups = [
            (int(t), self._matched(int(t), group))
            for t, group in zip(touched, np.split(values[order], begins[1:]), strict=True)
        ]
        if self.max_atoms is None:
            found = []
            for t, group in groups:
                atoms = self.outcome_rewards[self._pointers[t] : self._pointers[t + 1]]
                found.append(self._pointers[t] + np.searchsorted(atoms, group))
            entries = np.concatenate(found)
            np.add.at(self._weights, entries, 1.0)
            self.concentration_entries[entries] = self._prior[entries] + self._weights[entries]
            return
        changed = {}
        added = self._added.copy()
        weights = self._weights.copy()
        for t, group in groups:
            here = slice(int(self._pointers[t]), int(self._pointers[t + 1]))
            atoms, prior, masses = (
                part[here].tolist() for part in (self.outcome_rewards, self._prior, self._weights)
            )
            before = list(atoms)
            for value in group.tolist():
                moment = _absorb(atoms, prior, masses, value, self.max_atoms)
                added[t] += moment
            if atoms == before:
                weights[here] = masses
            else:
                changed[t] = (atoms, prior, masses)
        if changed:
            self._rebuild(weights, added, changed)
            return
        self._weights, self._added = weights, added
        self.concentration_entries = self._prior + weights

    def _matched(self, transition: int, values: FloatArray) -> FloatArray:
        """The rewards as those of this belief: possible ones, or within the bounds."""
        atoms = self.outcome_rewards[self._pointers[transition] : self._pointers[transition + 1]]
        slack = REWARD_ROUNDING * float(np.abs(atoms).max())
        if self.max_atoms is not None:
            inside: FloatArray = np.clip(values, atoms[0], atoms[-1])
            off = np.abs(values - inside) > slack
            if off.any():
                raise InvalidInputError(
                    f"reward must lie within [{atoms[0]:.10g}, {atoms[-1]:.10g}] "
                    f"{self._at(transition)}; got {values[off][0]:.17g}"
                )
            return inside
        above = np.searchsorted(atoms, values).clip(1, max(atoms.size - 1, 1))
        lower, upper = atoms[above - 1], atoms[np.minimum(above, atoms.size - 1)]
        nearest: FloatArray = np.where(values - lower <= upper - values, lower, upper)
        off = np.abs(values - nearest) > slack
        if off.any():
            k = int(np.argmax(off))
            shown = ", ".join(f"{atom:.10g}" for atom in atoms[:8])
            raise ImpossibleTransitionError(
                f"reward must be one of [{shown}{', …' if atoms.size > 8 else ''}] "
                f"{self._at(transition)}; got {values[k]:.17g}"
            )
        return nearest

    def _at(self, transition: int) -> str:
        pair, t = (
            int(self.transitions.pair_of_transition[transition]),
            int(self.transitions.next_states[transition]),
        )
        s, a = divmod(pair, self.n_actions)
        return f"for (state={s}, action={a}, next_state={t})"

    def _rebuild(
        self,
        weights: FloatArray,
        added: FloatArray,
        changed: Mapping[int, tuple[list[float], list[float], list[float]]],
    ) -> None:
        """Replace the atoms of the changed transitions, and the pattern."""
        old = (self.outcome_rewards, self._prior, weights)
        pieces: tuple[list[FloatArray], ...] = ([], [], [])
        widths = np.diff(self._pointers)
        last = 0
        for t, new in sorted(changed.items()):
            begin, end = int(self._pointers[t]), int(self._pointers[t + 1])
            for piece, array, replaced in zip(pieces, old, new, strict=True):
                piece += [array[last:begin], np.array(replaced)]
            last, widths[t] = end, len(new[0])
        rewards, prior, masses = (
            np.concatenate([*piece, array[last:]]) for piece, array in zip(pieces, old, strict=True)
        )
        pointers = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
        self._set(self.transitions, pointers, rewards, prior, masses, self.max_atoms, added)

    def copy(self) -> Self:
        """An independent belief of the same type, with the same prior and data."""
        twin = type(self).__new__(type(self))
        # attributes that a subclass added
        twin.__dict__.update(self.__dict__)
        # what never changes is shared
        twin._set(
            *(self.transitions, self._pointers, self.outcome_rewards, self._prior),
            *(self._weights.copy(), self.max_atoms, self._added.copy(), self.pattern),
        )
        return twin

    # --- summaries --------------------------------------------------------------------------------

    def concentration(self, format: Format = "dense") -> Any:
        """Concentrations: "flat" over outcomes; "dense" (S, A, S) or "csr", added up over rewards.

        Added up, they are the concentrations of the next states.
        """
        return self.pattern.export(self.concentration_entries, format)

    def counts(self, format: Format = "dense") -> Any:
        """N(s,a,s'), observations of each transition whatever it paid, on :attr:`transitions`."""
        return self.transitions.export(self._visits(), format)

    def _visits(self) -> IntArray:
        # merging divides whole observations between atoms of one transition
        sums = np.add.reduceat(self._weights, self._pointers[:-1])
        return np.rint(sums).astype(np.int64)

    def mean_rewards(self) -> FloatArray:
        """(S, A) mean of the reward of each pair; 0 if inadmissible."""
        means = np.bincount(
            self.pattern.pair_of_transition,
            self.mean_entries() * self.outcome_rewards,
            self.pattern.n_pairs,
        )
        return np.asarray(means, dtype=np.float64).reshape(self.n_states, self.n_actions)

    def effective_sample_size(self) -> FloatArray:
        """(S, A) total concentration of prior and data; 0 if inadmissible."""
        return self._totals().reshape(self.n_states, self.n_actions)

    def added_variance(self) -> FloatArray:
        """(S, A) by how much merging has raised the variance of w·P, whatever the values V.

        The variance is that of the bootstrap; the mean is not affected. Zero if nothing was merged.
        """
        totals = np.maximum(self._totals(), np.finfo(np.float64).tiny)
        owners, n = self.transitions.pair_of_transition, self.transitions.n_pairs
        raised: FloatArray = np.bincount(owners, self._added, n) / totals / (totals + 1.0)
        return raised.reshape(self.n_states, self.n_actions)

    def _totals(self) -> FloatArray:
        pattern = self.pattern
        totals = np.bincount(
            pattern.pair_of_transition, self.concentration_entries, pattern.n_pairs
        )
        return np.asarray(totals, dtype=np.float64)

    def evidence(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Weight of the prior, and number of observations, for each of ``pairs``."""
        n = self.pattern.n_pairs
        prior = np.bincount(self.pattern.pair_of_transition, self._prior, n)
        data = np.bincount(self.transitions.pair_of_transition, self._visits(), n)
        return np.asarray(prior, dtype=np.float64)[pairs], np.asarray(data, dtype=np.float64)[pairs]

    def observed_states(self) -> FloatArray:
        """(S,) number of observations made in each state."""
        owners = self.transitions.pair_of_transition // self.n_actions
        return np.asarray(np.bincount(owners, self._visits(), self.n_states), dtype=np.float64)

    # --- belief -----------------------------------------------------------------------------------

    @property
    def concentration_offsets(self) -> IntArray:
        """Where each pair's concentrations begin in ``concentration_entries``."""
        return self.pattern.indptr

    def mean_entries(self) -> FloatArray:
        """Mean probability of every outcome."""
        mean: FloatArray = (
            self.concentration_entries / self._totals()[self.pattern.pair_of_transition]
        )
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

    def gather_rewards(self, rewards: ArrayOrSparse | None) -> FloatArray:
        """The reward of every outcome, with known rewards r(s,a) or r(s,a,s') added if given.

        These may also be flat over :attr:`transitions`.
        """
        if rewards is None:
            return self.outcome_rewards.copy()
        known = self.transitions.gather(rewards)
        total: FloatArray = self.outcome_rewards + np.repeat(known, np.diff(self._pointers))
        return total

    # --- files ------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Outcomes, prior and data as named arrays, for :meth:`save`."""
        content: dict[str, NDArray[Any]] = {
            "shape": np.array([self.n_states, self.n_actions]),
            "indptr": self.transitions.indptr,
            "next_states": self.transitions.next_states,
            "pointers": self._pointers,
            "rewards": self.outcome_rewards,
            "prior": self._prior,
            "weights": self._weights,
        }
        if self.max_atoms is not None:
            content |= {"max_atoms": np.array(self.max_atoms), "added": self._added}
        return content

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], source: object) -> Self:
        """The belief that :meth:`arrays` described."""
        merges = "max_atoms" in arrays
        require_arrays(arrays, _ARRAYS + (_MERGING if merges else ()), source)
        n_states, n_actions = shape_of(arrays["shape"], source)
        belief = cls.__new__(cls)
        with corrupt_if_invalid(source):
            transitions = pattern_from_arrays(
                n_states, n_actions, arrays["indptr"], arrays["next_states"]
            )
            rewards, prior, weights = (
                as_float_array(arrays[name], name) for name in ("rewards", "prior", "weights")
            )
            pointers = as_index_array(arrays["pointers"], rewards.size + 1, "pointers")
            if (
                rewards.ndim != 1
                or not rewards.shape == prior.shape == weights.shape
                or pointers.shape != (transitions.n_transitions + 1,)
                or pointers[0] != 0
                or pointers[-1] != rewards.size
                or (np.diff(pointers) < 1).any()
            ):
                raise InvalidInputError(
                    "pointers must divide rewards, prior and weights, of one length, into one part "
                    "per possible transition"
                )
            most: int | None = None
            added: FloatArray | None = None
            if merges:
                stored = as_index_array(arrays["max_atoms"], 2**31, "max_atoms")
                if stored.shape != () or stored < 2:
                    raise InvalidInputError(f"max_atoms must be at least 2; got {stored}")
                most = int(stored)
                added = np.array(as_float_array(arrays["added"], "added"))
                if added.shape != (transitions.n_transitions,) or (added < 0.0).any():
                    raise InvalidInputError("added must be one number per transition, not negative")
            _require_sound(pointers, rewards, prior, weights, most)
            if most is None:
                _require_distinct(transitions, pointers, rewards)
        # copies: these are changed in place
        belief._set(transitions, pointers, rewards, prior, np.array(weights), most, added)
        return belief

    def __repr__(self) -> str:
        parts = [counted(self.n_states, "state"), counted(self.n_actions, "action")]
        observed = f"{int(self._visits().sum())} observed"
        if self.max_atoms is None:
            parts += [counted(self.pattern.n_transitions, "outcome"), observed]
        else:
            low, high = self.outcome_rewards.min(), self.outcome_rewards.max()
            atoms = counted(self.pattern.n_transitions, "atom")
            parts += [f"{atoms} in [{low:.6g}, {high:.6g}]", observed, "a bootstrap approximation"]
        return f"OutcomeBelief({', '.join(parts)})"


def _absorb(
    atoms: list[float], prior: list[float], weights: list[float], value: float, most: int
) -> float:
    """Add an observed value to the atoms of a transition, and merge if there are too many.

    Returns the second moment that merging added.
    """
    k = bisect_left(atoms, value)
    if atoms[k] == value:
        weights[k] += 1.0
        return 0.0
    atoms.insert(k, value)
    prior.insert(k, 0.0)
    weights.insert(k, 1.0)
    if len(atoms) <= most:
        return 0.0
    moments = [
        weights[i] * (atoms[i + 1] - atoms[i]) * (atoms[i] - atoms[i - 1])
        for i in range(1, len(atoms) - 1)
    ]
    k = 1 + moments.index(min(moments))
    below = weights[k] * ((atoms[k + 1] - atoms[k]) / (atoms[k + 1] - atoms[k - 1]))
    weights[k - 1] += below
    weights[k + 1] += weights[k] - below
    del atoms[k], prior[k], weights[k]
    return moments[k - 1]


# --- checks ---------------------------------------------------------------------------------------


def _size(given: int | None, name: str, largest: int) -> int:
    return largest + 1 if given is None else as_positive_int(given, name)


def _as_prior(concentration: ArrayLike, n: int) -> FloatArray:
    """Positive concentrations of ``n`` outcomes, from one number or as many."""
    given = as_array(concentration, "concentration", "a positive number or one per outcome")
    if given.ndim == 0:
        prior = np.full(n, as_positive_number(concentration, "concentration"))
    else:
        prior = np.array(as_float_array(given, "concentration"))
    if prior.shape != (n,):
        raise InvalidInputError(
            f"concentration must be one number, or one per outcome, ({n},); got {prior.shape}"
        )
    if (prior <= 0.0).any():
        k = int(np.argmax(prior <= 0.0))
        raise InvalidInputError(f"concentration must be positive; got {prior[k]} for outcome {k}")
    check_concentrations(prior)
    return prior


def _is_nested(rewards: Any) -> bool:
    """Whether rewards are given by state and action, not as one list."""
    if isinstance(rewards, np.ndarray):
        return rewards.ndim > 1
    return (
        isinstance(rewards, Sequence)
        and not isinstance(rewards, str)
        and any(
            np.ndim(item) > 0 if isinstance(item, np.ndarray) else isinstance(item, Sequence)
            for item in rewards
        )
    )


def _as_list(rewards: Any, name: str) -> FloatArray:
    """Possible rewards in increasing order."""
    found = np.sort(as_float_array(rewards, name))
    if found.ndim != 1 or found.size == 0:
        raise InvalidInputError(
            f"{name} must be a non-empty list of the possible rewards; got shape {found.shape}"
        )
    largest = float(np.abs(found).max())
    if largest > LARGEST_REWARD:
        raise InvalidInputError(f"{name} must lie within ±{LARGEST_REWARD:g}; got {largest:g}")
    close = np.diff(found) <= 2.0 * REWARD_ROUNDING * largest
    if close.any():
        k = int(np.argmax(close))
        raise InvalidInputError(
            f"{name} must differ by more than {2.0 * REWARD_ROUNDING:g} of the largest, so that "
            f"rounding cannot confuse them; got {found[k]:.17g} and {found[k + 1]:.17g}"
        )
    return found


def _lists_by_pair(rewards: Any, transitions: TransitionPattern) -> list[FloatArray]:
    """The possible rewards of every pair; empty for inadmissible ones."""
    n_actions = transitions.n_actions
    lists = [np.empty(0)] * transitions.n_pairs
    if not isinstance(rewards, Mapping):
        shapes = {len(row) if hasattr(row, "__len__") else -1 for row in rewards}
        if len(rewards) != transitions.n_states or shapes != {n_actions}:
            raise InvalidInputError(
                "rewards must be a list of numbers, or hold a list for every state "
                f"({transitions.n_states}) and action ({n_actions})"
            )
    total = 0
    for pair in transitions.pairs.tolist():
        s, a = divmod(pair, n_actions)
        try:
            given = rewards[s, a] if isinstance(rewards, Mapping) else rewards[s][a]
        except KeyError:
            raise InvalidInputError(
                f"rewards must have a list for every admissible pair; none for (state={s}, "
                f"action={a})"
            ) from None
        lists[pair] = _as_list(given, f"rewards of (state={s}, action={a})")
        total += lists[pair].size * int(transitions.widths[pair])
    if isinstance(rewards, Mapping):
        known = {(pair // n_actions, pair % n_actions) for pair in transitions.pairs.tolist()}
        unknown = [key for key in rewards if key not in known]
        if unknown:
            raise InvalidInputError(
                f"rewards must name admissible pairs (state, action) alone; got {unknown[0]!r}"
            )
    _require_few(total)
    return lists


def _require_few(outcomes: int) -> None:
    if outcomes > LARGEST_FULL:
        raise InvalidInputError(
            f"possible transitions × rewards must be at most {LARGEST_FULL:,}; got {outcomes:,}"
        )


def _as_bound(bound: ArrayLike, name: str, shape: tuple[int, int]) -> FloatArray:
    """(S·A,) bounds of the rewards, from one number or an (S, A) array."""
    array = as_float_array(bound, name)
    if array.shape not in ((), shape):
        raise InvalidInputError(
            f"{name} must be a number or have shape {shape}, one per (s, a); got {array.shape}"
        )
    if float(np.abs(array).max(initial=0.0)) > LARGEST_REWARD:
        raise InvalidInputError(f"{name} must lie within ±{LARGEST_REWARD:g}")
    return np.broadcast_to(array, shape).reshape(-1)


def _require_distinct(
    transitions: TransitionPattern, pointers: IntArray, rewards: FloatArray
) -> None:
    """Refuse outcomes of one transition whose rewards rounding could confuse."""
    largest = np.maximum.reduceat(np.abs(rewards), pointers[:-1])
    if (largest > LARGEST_REWARD).any():
        raise InvalidInputError(f"rewards must lie within ±{LARGEST_REWARD:g}")
    owner = np.repeat(np.arange(transitions.n_transitions), np.diff(pointers))
    same = owner[1:] == owner[:-1]
    close = same & (np.diff(rewards) <= 2.0 * REWARD_ROUNDING * largest[owner[1:]])
    if close.any():
        k = int(np.argmax(close))
        pair = int(transitions.pair_of_transition[owner[k]])
        s, a = divmod(pair, transitions.n_actions)
        raise InvalidInputError(
            f"outcomes of one transition must have rewards that differ by more than "
            f"{2.0 * REWARD_ROUNDING:g} of the largest; got {rewards[k]:.17g} and "
            f"{rewards[k + 1]:.17g} for (state={s}, action={a}, "
            f"next_state={int(transitions.next_states[owner[k]])})"
        )


def _require_sound(
    pointers: IntArray,
    rewards: FloatArray,
    prior: FloatArray,
    weights: FloatArray,
    most: int | None,
) -> None:
    """Check stored concentrations, and the atoms of a bootstrap."""
    if (prior < 0.0).any() or (weights < 0.0).any() or (weights > LARGEST).any():
        raise InvalidInputError("prior and weights must not be negative, nor weights too large")
    check_concentrations(prior + weights)
    if most is None:
        if (prior <= 0.0).any() or (weights != np.floor(weights)).any():
            raise InvalidInputError("prior must be positive, and weights whole numbers")
        return
    ends = np.concatenate((pointers[:-1], pointers[1:] - 1))
    inner = np.ones(rewards.size, dtype=bool)
    inner[ends] = False
    rising = np.ones(rewards.size, dtype=bool)
    rising[1:] = np.diff(rewards) > 0.0
    rising[pointers[:-1]] = True
    sums = np.add.reduceat(weights, pointers[:-1])
    if (
        (np.diff(pointers) > most).any()
        or not rising.all()
        or (prior[ends] <= 0.0).any()
        or (prior[inner] != 0.0).any()
        or (np.abs(sums - np.rint(sums)) > 1e-6 * np.maximum(sums, 1.0)).any()
        or float(np.abs(rewards).max()) > LARGEST_REWARD
    ):
        raise InvalidInputError(
            f"rewards must rise within each transition, at most {most} of them, the prior must lie "
            "on the bounds alone, and the weights of a transition must add up to a whole number"
        )
