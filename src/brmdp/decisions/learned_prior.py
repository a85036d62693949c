"""A prior learned from the log: rows that resemble each other lend each other strength.

The rows of a *family* (:mod:`brmdp.decisions.families`) have priors Dir(κ m_i), where m_i is the
image of one law m. A large κ means that rows are nearly alike, a small one that they share nothing;
κ → ∞ with m uncertain is one shared law, :class:`brmdp.DisturbanceBelief`. The log decides.

**Hyperprior.** It is proper, and it is all that is assumed besides the shape:

- ln κ is uniform on its range, by default ln 0.01 to ln 10⁶, independently for every κ;
- m ~ Dir(a₀m₀), independently for every law, with ½ per category but at most 5 in all;
- in partially pooled groups, the rows over all groups are Dir(κ m_i), those of group g are
  Dir(κ_g Q_i) about them, and every ln κ_g is uniform on the same range.

Draws from the posterior of this hierarchy are calibrated in worlds drawn from it, and the sampled
certificate holds as it says; the tests simulate both. In other worlds the range matters if κ
reaches its end (:attr:`Strength.edge`), and the base of the laws if there are many categories:

**Sparse laws.** If few of many possible successors ever occur, the base keeps predicting the others
until the data outweigh its five observations. Rows then seem to differ more than they do, and κ is
found too low: with 3 of 150 successors and 4 observations per row it was 13 instead of 20, and 25
instead of 100; with 12 of 150, about right. A weaker base would err on the other side, which is
worse: κ too high makes a belief too sure. The remedy is ``possible`` or ``reach``.

**Plan with what is fast and exact, prove with draws of everything that is uncertain.** At point
hyperparameters the rows are independent Dirichlets (:meth:`LearnedPrior.posterior`), so quantiles
are exact and Proposition 1 holds *given* these hyperparameters. As a guarantee that is too much:
where one law is shared by many rows, the law itself is uncertain, and all rows err together. Joint
draws (:meth:`LearnedPrior.belief`) include this.

**Two choices, one after the other.** The shape is chosen first, on all groups together, and then,
for that shape, how groups are pooled. Choosing both at once would be fifteen comparisons for a
question that rarely interacts; if groups differ so much that all of them together hide the shape,
name the shape yourself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brmdp._sparse import ArrayOrSparse
from brmdp._validation import (
    FloatArray,
    IntArray,
    Seed,
    as_array,
    as_positive_int,
    as_positive_number,
    as_rng,
)
from brmdp.beliefs.dirichlet import DirichletBelief
from brmdp.beliefs.gammas import SMALLEST
from brmdp.decisions.families import (
    SHAPES,
    Family,
    ShapeName,
    condensed,
    family_of,
    require_possible,
)
from brmdp.decisions.gibbs import CHAINS, Mixing, Schedule, SharedSampler, run_chains, watched_kinds
from brmdp.decisions.held_out import Evidence, compare_held_out, without_data
from brmdp.decisions.hierarchical import (
    GroupDraws,
    HierarchicalBelief,
    HyperDraws,
    SharedDraws,
)
from brmdp.decisions.marginal import Mode, differences, mode_of, tally_of
from brmdp.decisions.partial import GroupSampler, group_point, prior_entries
from brmdp.decisions.transitions import Cells, Transitions, cells_of
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP, counted
from brmdp.pattern import TransitionPattern, full_pattern, pattern_and_entries
from brmdp.planning.text import call_like, wrapped

__all__ = ["LearnedPrior", "Pooling", "Strength", "learn_prior"]

Pooling: TypeAlias = Literal["pooled", "partial", "separate"]
POOLINGS: tuple[Pooling, ...] = ("pooled", "partial", "separate")
"""From the simplest to the richest."""

POOLED = {
    "pooled": "pooled, as if they were one",
    "partial": "partially pooled, each with rows that vary about common ones",
    "separate": "separate, each on its own",
}

RANGE = (1e-2, 1e6)
"""Default range of κ."""

NEAR_EDGE, EDGE_SHARE = 1.0, 0.02
"""κ reaches an edge if this share of its draws is within this distance of it, in ln κ."""

UPPER_END = "the rows may all have one law"
LOWER_END = "the rows may share nothing"

LARGEST_STORE = 50_000_000
"""Largest number of numbers in the stored draws (400 MB)."""

FEWEST_DRAWS = 40

PARTIAL = Schedule(burn_in=120, pilot=100, worth=0.35, least=0.15)
"""Sweeps over partially pooled groups cost more than those over one, and mix more slowly."""

FEW = 6
"""Up to this many strengths are listed one by one."""

TAKEN_FOR_KNOWN = (
    "This belief takes the prior that was learned from the log for known, so it is too sure; the "
    "learned prior's belief() is not."
)


@dataclass(frozen=True)
class Strength:
    """How alike the rows of a family are: κ, in observations.

    Attributes
    ----------
    name : str
        The rows it applies to, such as "action 0".
    value : float
        Posterior median of κ.
    low, high : float
        90 % posterior interval.
    mode : float
        κ at the joint mode of all hyperparameters, which overrates it if rows are few.
    edge : str
        "lower" or "upper" if the posterior of κ reaches that end of its range, else "". At the
        upper end, the rows may all have one law; at the lower end, they may share nothing. What
        lies beyond was not searched.
    observations : int
        Number of transitions behind it; without any, κ is only what was assumed.

    Examples
    --------
    >>> import numpy as np
    >>> from brmdp.decisions import learn_prior
    >>> counts = np.random.default_rng(0).multinomial(20, [0.1, 0.6, 0.3], size=(3, 1))
    >>> found = learn_prior(counts, shape="destinations", rng=0)
    >>> found.strength[0].name, found.strength[0].edge
    ('action 0', 'upper')
    """

    name: str
    value: float
    low: float
    high: float
    mode: float
    edge: str
    observations: int

    def __str__(self) -> str:
        if not self.observations:
            return f"{self.name}: no data that bear on κ"
        text = f"{self.name}: κ = {self.value:.3g} (90 % interval {self.low:.3g} to {self.high:.3g}"
        if self.edge == "upper":
            text += f"; it reaches the upper end of its range: {UPPER_END}"
        elif self.edge == "lower":
            text += f"; it reaches the lower end of its range: {LOWER_END}"
        return text + ")"


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What was learned about the rows of one group, or of all."""

    counts: IntArray
    prior_mode: FloatArray
    prior_mean: FloatArray
    hyper: HyperDraws
    mixing: Mixing
    law: FloatArray
    borrowed: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class LearnedPrior:
    """A prior learned from a log, and the beliefs that follow from it; see :func:`learn_prior`.

    Attributes
    ----------
    shape : str
        How the rows of a family resemble each other.
    pooling : str
        "pooled", "partial" or "separate".
    groups : tuple
        Labels of the groups; (None,) if there are none.
    strength : tuple of Strength
        κ of every family, and of every group if they are partially pooled.
    evidence : Evidence or None
        Held-out comparison of the shapes; None if the shape was given.
    pooling_evidence : Evidence or None
        Held-out comparison of the ways to pool; None if there was no choice.
    mixing : Mixing
        What the joint draws are worth; the worst of all groups.
    range : (float, float)
        Range of κ that was searched; ln κ is uniform on it a priori.
    family : Family
        The map from the categories of the laws to the possible transitions.

    Examples
    --------
    >>> import numpy as np
    >>> import brmdp
    >>> from brmdp.decisions import learn_prior
    >>> counts = np.random.default_rng(0).multinomial(20, [0.1, 0.6, 0.3], size=(3, 2))
    >>> learned = learn_prior(counts, shape="destinations", rng=0)
    >>> plan = brmdp.plan(learned.posterior(), np.eye(3)[:, :2], 0.9, risk=brmdp.Quantile(0.1))
    >>> plan.status
    'converged'
    >>> learned.belief().sample(2, rng=0).shape
    (2, 3, 2, 3)
    """

    shape: str
    pooling: str
    groups: tuple[Any, ...]
    strength: tuple[Strength, ...]
    evidence: Evidence | None
    pooling_evidence: Evidence | None
    mixing: Mixing
    range: tuple[float, float]
    family: Family
    _fitted: Mapping[Any, _Fitted] = field(repr=False)
    _seed: int = field(repr=False)

    def posterior(
        self, group: Any = None, *, point: Literal["mean", "mode"] = "mean"
    ) -> DirichletBelief:
        """The belief at point hyperparameters: prior Dir(κ m_i), and the counts observed.

        Rows are independent, quantiles exact. All of this is *given* the hyperparameters, so the
        belief is too sure: results say so (``caveat``), and :func:`brmdp.certify` refuses it. For a
        guarantee use :meth:`belief`, which does not take them for known. New observations change
        the rows alone. A file of this belief keeps its prior, but not that it was learned: a loaded
        one has no caveat, and may warn that the prior outweighs the data.

        Parameters
        ----------
        group : label, optional
            Needed unless groups are pooled, or there are none.
        point : {"mean", "mode"}
            The posterior median of κ with the posterior mean of the law, from the joint draws (if
            partially pooled, the mean of the rows over groups, each draw weighted by what it
            contributes to the group's row, κ_g/(κ_g + n)); or the joint mode of (ln κ, ln m), which
            needs no draws but overrates κ if rows are few.
        """
        if point not in ("mean", "mode"):
            raise InvalidInputError(f"point must be 'mean' or 'mode'; got {point!r}")
        found = self._of(group)
        pattern = self.family.pattern
        prior = found.prior_mean if point == "mean" else found.prior_mode
        arrays = {
            "shape": np.array([pattern.n_states, pattern.n_actions]),
            "indptr": pattern.indptr,
            "next_states": pattern.next_states,
            "prior": np.maximum(prior, SMALLEST),
            "counts": found.counts.copy(),
        }
        belief = DirichletBelief.from_arrays(arrays, "the learned prior")
        belief.prior_shares_learned = found.borrowed
        belief.caveat = TAKEN_FOR_KNOWN
        return belief

    def belief(self, group: Any = None) -> HierarchicalBelief:
        """The belief with everything that is uncertain, as joint draws.

        Parameters
        ----------
        group : label, optional
            Needed unless groups are pooled, or there are none.
        """
        found = self._of(group)
        return HierarchicalBelief(
            self.family.pattern, found.counts, found.hyper, found.mixing, found.borrowed, self._seed
        )

    def relearned(self, group: Any = None) -> DirichletBelief:
        """The belief before the log, for resampling the units behind it.

        Its mean after other data is that of a prior learned anew from these data, unless groups are
        partially pooled: then the prior is the one that was learned.

        Parameters
        ----------
        group : label, optional
            Needed unless groups are pooled, or there are none.
        """
        arrays = self.posterior(group).arrays()
        arrays["counts"] = np.zeros_like(arrays["counts"])
        if self.pooling == "partial":
            return DirichletBelief.from_arrays(arrays, "the learned prior")
        belief = _Relearned.from_arrays(arrays, "the learned prior")
        low, high = self.range
        belief.family, belief.bounds = self.family, (math.log(low), math.log(high))
        return belief

    def law(self, number: int = 0, group: Any = None) -> tuple[IntArray, FloatArray]:
        """Categories of a law (increments or destinations; −1 is "stay"), and its posterior mean.

        Parameters
        ----------
        number : int
            The action, or, in the shape "actions", the state.
        group : label, optional
            Needed if groups are separate.
        """
        if self.shape == "uniform":
            raise InvalidInputError("the shape 'uniform' has no law: all successors weigh the same")
        n = self.family.law_sizes.size
        if (
            isinstance(number, bool)
            or not isinstance(number, int | np.integer)
            or not 0 <= number < n
        ):
            raise InvalidInputError(f"number must be an integer in 0..{n - 1}; got {number!r}")
        mine = self.family.law_of_category == number
        found = self._fitted[self.groups[0]] if self.pooling == "partial" else self._of(group)
        return self.family.labels[mine].copy(), found.law[mine].copy()

    def _of(self, group: Any) -> _Fitted:
        if group is None and self.pooling == "pooled":
            group = self.groups[0]
        try:
            known = group in self._fitted
        except TypeError:  # not hashable
            known = False
        if not known:
            shown = ", ".join(repr(label) for label in self.groups[:8])
            raise InvalidInputError(
                f"group must be one of {shown}{', …' * (len(self.groups) > 8)}; got {group!r}"
            )
        return self._fitted[group]

    def __str__(self) -> str:
        how = "given"
        if self.evidence is not None:
            how = "by held-out prediction" if self.evidence.folds else "by default, without data"
        parts = [f"Prior learned from the log; shape of its rows: {self.shape} ({how})."]
        if self.groups != (None,):
            parts.append(f"{counted(len(self.groups), 'group')}: {POOLED[self.pooling]}.")
        shown = self.strength if len(self.strength) <= FEW else self.strength[: FEW - 1]
        parts += [f"Strength, {found}." for found in shown]
        if len(shown) < len(self.strength):
            edges = sum(bool(found.edge) for found in self.strength)
            parts.append(
                f"… and {len(self.strength) - len(shown)} more; {edges} of {len(self.strength)} "
                "reach an end of their range."
            )
        parts.append(f"What is uncertain about κ and the laws is kept as {self.mixing}")
        lines = [*map(wrapped, parts)]
        lines += [str(found) for found in (self.evidence, self.pooling_evidence) if found]
        lines.append(
            wrapped(
                "posterior() takes the hyperparameters for known: plan with it, and prove with "
                "belief()."
            )
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        first = self.strength[0]
        parts = [
            f"shape={self.shape!r}",
            f"pooling={self.pooling!r}",
            f"{len(self.strength)} strengths",
            f"{first.name}: κ={first.value:.3g} [{first.low:.3g}, {first.high:.3g}]",
            f"draws={self.mixing.draws}",
            f"r_hat={self.mixing.r_hat:.3f}",
        ]
        edges = sum(bool(found.edge) for found in self.strength)
        parts += [f"{edges} at the edge of the range"] if edges else []
        return call_like("LearnedPrior", parts)


class _Relearned(DirichletBelief):
    """A belief whose prior is learned anew, at the mode, for whatever data it is given."""

    family: Family
    bounds: tuple[float, float]

    def means_of_counts(self, counts: FloatArray) -> FloatArray:
        """Mean kernels (n, transitions) after counts (n, transitions)."""
        pattern = self.pattern
        means = np.empty_like(counts)
        for mean, seen in zip(means, counts, strict=True):
            mode = mode_of(self.family, tally_of(self.family, seen), self.bounds)
            weight = prior_entries(self.family, mode.log_strength, mode.law) + seen
            sums = np.bincount(pattern.pair_of_transition, weight, pattern.n_pairs)
            mean[:] = weight / sums[pattern.pair_of_transition]
        return means


def learn_prior(
    counts: ArrayOrSparse | Transitions | Mapping[Any, ArrayOrSparse],
    *,
    shape: Literal["auto"] | ShapeName | Sequence[ShapeName] = "auto",
    possible: ArrayOrSparse | TabularMDP | None = None,
    admissible: ArrayLike | None = None,
    reach: int | None = None,
    groups: ArrayLike | None = None,
    units: ArrayLike | None = None,
    pooling: Literal["auto"] | Pooling | Sequence[Pooling] = "auto",
    folds: int = 5,
    draws: int = 2000,
    strength_range: tuple[float, float] = RANGE,
    rng: Seed = None,
) -> LearnedPrior:
    """Learn from the log how alike its rows are, and use that as their prior.

    A uniform prior over many successors outweighs most logs. But rows usually resemble each other,
    and the log tells how much: rows with few data then lean on those with many.

    Parameters
    ----------
    counts : (S, A, S) array, sparse (S·A, S), Transitions, or a mapping from group to counts
        The log. Only a :class:`Transitions` record can name units (buses, patients). With units,
        shapes are compared by predicting whole units; without, by folds of transitions, as if
        these were independent.
    shape : {"auto", "uniform", "increments", "destinations", "staying", "actions"}
        How rows resemble each other. *Increments*: states are ordered, s' = clip(s + d), and all
        states share the law of d under an action. *Destinations*: all states share the law of s'.
        *Staying*: the same, with extra weight on s' = s. *Actions*: all actions of a state share
        the law of s'. *Uniform*: nothing is shared but κ. By default held-out prediction decides,
        and where nothing is clearly better, the simplest is taken. Several names: the same among
        these.
    possible : (S, A, S) array, sparse (S·A, S) or TabularMDP, optional
        Transitions considered possible, marked by non-zero entries; by default all. Go by what you
        know, not by the log. Not every shape can have every support: *uniform* any, *increments*
        what one set of increments reaches from every state, *destinations* (*staying*) the same
        successors in all states (and the state itself), *actions* the same for all actions of a
        state. A shape that cannot is refused if you name it, and left out otherwise.
    admissible : (S, A) booleans, optional
        Admissible actions; by default all, or those of the TabularMDP.
    reach : int, optional
        Instead of ``possible``: largest change |s' − s| of an ordered state.
    groups, units : (n,) labels, optional
        Columns of a :class:`Transitions` record that has none of its own.
    pooling : {"auto", "pooled", "partial", "separate"}
        Whether groups share their rows, have rows that resemble each other, or learn on their own.
        Partially pooled groups resemble each other row by row, so what the rows of one group have
        in common, it learns only through the rows over all groups. By default held-out prediction
        decides, for the shape chosen on all groups together. Several names: the same among these.
    folds : int
        Number of folds of the comparisons, at least 2.
    draws : int
        Joint draws of the hyperparameters to store; fewer where they would take too much memory.
        A sampled certificate is no sharper than this many draws allow.
    strength_range : (float, float)
        Range of κ; ln κ is uniform on it a priori.
    rng : numpy.random.Generator or seed, optional
        Random stream of folds and draws.

    Returns
    -------
    LearnedPrior
        With ``shape``, ``strength`` (κ with its interval), ``evidence`` (the held-out comparison),
        ``posterior()`` to plan with and ``belief()`` to prove with.

    Raises
    ------
    InvalidInputError
        If counts are not whole numbers, labels do not match the log, or the shape named cannot have
        the support.
    ImpossibleTransitionError
        If the log contains a transition that is not possible.

    Notes
    -----
    What is assumed beyond the shape, and where it matters, is in
    :mod:`brmdp.decisions.learned_prior`.

    Examples
    --------
    A state that drifts alike everywhere, seen thirty times in each place:

    >>> import numpy as np
    >>> from brmdp.decisions import learn_prior
    >>> rng = np.random.default_rng(1)
    >>> counts = np.zeros((12, 1, 12), dtype=int)
    >>> for s in range(12):
    ...     steps = rng.choice([-1, 0, 1, 2], size=30, p=[0.1, 0.4, 0.3, 0.2])
    ...     np.add.at(counts, (s, 0, np.clip(s + steps, 0, 11)), 1)
    >>> learned = learn_prior(counts, reach=3, rng=0)
    >>> learned.shape, learned.strength[0].edge
    ('increments', 'upper')
    >>> increments, probabilities = learned.law()
    >>> probabilities.round(2)
    array([0.  , 0.  , 0.12, 0.39, 0.3 , 0.18, 0.  ])
    """
    cells = cells_of(counts, groups, units)
    shapes = _choices(shape, SHAPES, "shape")
    poolings = _choices(pooling, POOLINGS, "pooling")
    n_folds = as_positive_int(folds, "folds")
    if n_folds < 2:
        raise InvalidInputError(f"folds must be at least 2; got {n_folds}")
    n_draws = as_positive_int(draws, "draws")
    if n_draws < FEWEST_DRAWS:
        raise InvalidInputError(f"draws must be at least {FEWEST_DRAWS}; got {n_draws}")
    bounds = _bounds(strength_range)
    stream = as_rng(rng)
    pattern = _support(cells, possible, admissible, reach)
    entry = require_possible(pattern, cells.pair, cells.next_state)
    problem = _Problem(cells, pattern, entry, bounds, stream)
    family, evidence = _chosen_shape(problem, shapes, n_folds)
    how, pooling_evidence = _chosen_pooling(problem, family, poolings, n_folds)
    return _learned(problem, family, how, n_draws, evidence, pooling_evidence)


def _choices(value: Any, allowed: tuple[str, ...], name: str) -> tuple[str, ...]:
    """The names to choose from, from the simplest to the richest."""
    given = value if isinstance(value, tuple | list) else [value]
    if given == ["auto"]:
        return allowed
    for one in given:
        if not isinstance(one, str) or one not in allowed:
            raise InvalidInputError(
                f"{name} must be one of {', '.join(('auto', *allowed))}; got {one!r}"
            )
    if not given:
        raise InvalidInputError(f"{name} must have at least one name; got none")
    return tuple(one for one in allowed if one in given)


def _bounds(strength_range: Any) -> tuple[float, float]:
    if not isinstance(strength_range, tuple | list) or len(strength_range) != 2:
        raise InvalidInputError(
            f"strength_range must be a pair of numbers (low, high); got {strength_range!r}"
        )
    low, high = (as_positive_number(end, "strength_range") for end in strength_range)
    if not 1e-6 <= low < high <= 1e9:
        raise InvalidInputError(
            f"strength_range must satisfy 1e-6 ≤ low < high ≤ 1e9; got {strength_range!r}"
        )
    return math.log(low), math.log(high)


def _support(
    cells: Cells, possible: Any, admissible: ArrayLike | None, reach: Any
) -> TransitionPattern:
    """The possible transitions, by what the caller knows."""
    n_states, n_actions = cells.n_states, cells.n_actions
    if reach is not None:
        if possible is not None:
            raise InvalidInputError("reach must not be given together with possible")
        return _band(n_states, n_actions, as_positive_int(reach, "reach"), admissible)
    if possible is None:
        return full_pattern(n_states, n_actions, admissible)
    if isinstance(possible, TabularMDP):
        pattern = possible.pattern
        if admissible is not None:
            pattern, _ = pattern_and_entries(possible.kernel("csr"), "possible", admissible)
    else:
        pattern, _ = pattern_and_entries(possible, "possible", admissible)
    if (pattern.n_states, pattern.n_actions) != (n_states, n_actions):
        raise InvalidInputError(
            f"possible must describe {n_states} states and {n_actions} actions, as counts does; "
            f"got {pattern.n_states} and {pattern.n_actions}"
        )
    return pattern


def _band(
    n_states: int, n_actions: int, reach: int, admissible: ArrayLike | None
) -> TransitionPattern:
    """All transitions with |s' − s| ≤ reach."""
    shape = (n_states, n_actions)
    mask: NDArray[Any] = np.ones(shape, dtype=bool)
    if admissible is not None:
        mask = as_array(admissible, "admissible", "booleans")
        if mask.shape != shape or mask.dtype != np.bool_:
            raise InvalidInputError(
                f"admissible must be booleans of shape {shape}; got {mask.dtype} of shape "
                f"{mask.shape}"
            )
    states = np.arange(n_states)
    low, high = np.maximum(states - reach, 0), np.minimum(states + reach, n_states - 1)
    widths = np.where(mask, (high - low + 1)[:, None], 0).ravel()
    indptr = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
    begin = np.repeat(low, n_actions)
    next_states = np.arange(indptr[-1]) + np.repeat(begin - indptr[:-1], widths)
    return TransitionPattern(n_states, n_actions, indptr, next_states)


# --- fits -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Problem:
    cells: Cells
    pattern: TransitionPattern
    entry: IntArray
    bounds: tuple[float, float]
    rng: np.random.Generator

    @property
    def n_groups(self) -> int:
        return len(self.cells.groups)

    def pooled(self, counts: IntArray) -> IntArray:
        """Counts by entry, from counts by cell."""
        return _whole(np.bincount(self.entry, counts, self.pattern.n_transitions))

    def by_group(self, counts: IntArray) -> IntArray:
        """(groups, transitions) counts, from counts by cell."""
        n = self.pattern.n_transitions
        if self.n_groups * n > 2 * LARGEST_STORE:
            raise InvalidInputError(
                f"pooling must be 'pooled' for {self.n_groups} groups with {n:,} possible "
                "transitions each; pass a possible with fewer"
            )
        key = self.cells.group * n + self.entry
        return _whole(np.bincount(key, counts, self.n_groups * n)).reshape(self.n_groups, n)


def _whole(sums: NDArray[Any]) -> IntArray:
    whole: IntArray = np.rint(sums).astype(np.int64)
    return whole


def _log_prediction(prior: FloatArray, counts: IntArray, pattern: TransitionPattern) -> FloatArray:
    """Log of the predictive probability of every entry."""
    weight = prior + counts
    sums = np.bincount(pattern.pair_of_transition, weight, pattern.n_pairs)
    # pairs that are not admissible have no sum
    logs: FloatArray = (
        np.log(weight) - np.log(np.maximum(sums, SMALLEST))[pattern.pair_of_transition]
    )
    return logs


def _fit(problem: _Problem, family: Family, counts: IntArray) -> Mode:
    return mode_of(family, tally_of(family, counts), problem.bounds)


def _pooled_predictor(problem: _Problem, family: Family) -> Callable[[IntArray], FloatArray]:
    def predict(given: IntArray) -> FloatArray:
        counts = problem.pooled(given)
        mode = _fit(problem, family, counts)
        prior = prior_entries(family, mode.log_strength, mode.law)
        return _log_prediction(prior, counts, family.pattern)[problem.entry]

    return predict


def _separate_predictor(problem: _Problem, family: Family) -> Callable[[IntArray], FloatArray]:
    def predict(given: IntArray) -> FloatArray:
        result = np.zeros(problem.entry.size)
        for group in range(problem.n_groups):
            mine = problem.cells.group == group
            counts = problem.pooled(np.where(mine, given, 0))
            mode = _fit(problem, family, counts)
            prior = prior_entries(family, mode.log_strength, mode.law)
            result[mine] = _log_prediction(prior, counts, family.pattern)[problem.entry[mine]]
        return result

    return predict


def _partial_predictor(problem: _Problem, family: Family) -> Callable[[IntArray], FloatArray]:
    def predict(given: IntArray) -> FloatArray:
        counts = problem.by_group(given)
        point = group_point(family, counts, problem.bounds)
        result = np.zeros(problem.entry.size)
        for group in range(problem.n_groups):
            mine = problem.cells.group == group
            prior = np.maximum(np.exp(point.log_strength[group]) * point.rows, SMALLEST)
            logs = _log_prediction(prior, counts[group], family.pattern)
            result[mine] = logs[problem.entry[mine]]
        return result

    return predict


# --- choices --------------------------------------------------------------------------------------


def _chosen_shape(
    problem: _Problem, shapes: tuple[str, ...], folds: int
) -> tuple[Family, Evidence | None]:
    if len(shapes) == 1:
        return family_of(shapes[0], problem.pattern), None
    families: dict[str, Family] = {}
    notes: dict[str, str] = {}
    for name in shapes:
        if name == "actions" and problem.pattern.n_actions == 1:
            notes[name] = "there is only one action"
            continue
        try:
            families[name] = family_of(name, problem.pattern)
        except InvalidInputError as error:
            notes[name] = str(error)
    order = sorted(families, key=lambda name: families[name].parameters)
    names = {name: families[name].parameters for name in order} | dict.fromkeys(notes, 0)
    if problem.cells.n_transitions < 2:
        found = without_data(names, notes, problem.cells.n_transitions)
    else:
        predictors = {name: _pooled_predictor(problem, families[name]) for name in order}
        found = compare_held_out(problem.cells, names, predictors, notes, folds, problem.rng)
    return families[found.chosen], found


def _chosen_pooling(
    problem: _Problem, family: Family, poolings: tuple[str, ...], folds: int
) -> tuple[str, Evidence | None]:
    if "pooled" not in poolings and problem.cells.groups == (None,):
        raise InvalidInputError(
            f"pooling must be 'auto' or 'pooled' without groups; got {poolings[0]!r}"
        )
    if len(poolings) == 1 or problem.n_groups == 1:
        return poolings[0], None
    n, k = problem.n_groups, family.parameters
    sizes = {"pooled": k, "partial": k, "separate": n * k}
    names = {name: sizes[name] for name in poolings}
    if problem.cells.n_transitions < 2:
        found = without_data(names, {}, problem.cells.n_transitions)
    else:
        make = {
            "pooled": _pooled_predictor,
            "partial": _partial_predictor,
            "separate": _separate_predictor,
        }
        predictors = {name: make[name](problem, family) for name in poolings}
        found = compare_held_out(problem.cells, names, predictors, {}, folds, problem.rng)
    return found.chosen, found


# --- results --------------------------------------------------------------------------------------


def _learned(
    problem: _Problem,
    family: Family,
    pooling: str,
    draws: int,
    evidence: Evidence | None,
    pooling_evidence: Evidence | None,
) -> LearnedPrior:
    cells = problem.cells
    fitted: dict[Any, _Fitted] = {}
    strengths: list[Strength] = []
    if pooling == "pooled":
        one, strengths = _shared(problem, family, problem.pooled(cells.count), draws, "")
        fitted = dict.fromkeys(cells.groups, one)
    elif pooling == "separate":
        for k, label in enumerate(cells.groups):
            counts = problem.pooled(np.where(cells.group == k, cells.count, 0))
            fitted[label], found = _shared(problem, family, counts, draws, f", group {label!r}")
            strengths += found
    else:
        fitted, strengths = _partially_pooled(problem, family, draws)
    mixings = [found.mixing for found in fitted.values()]
    low, high = problem.bounds
    return LearnedPrior(
        shape=family.name,
        pooling=pooling,
        groups=cells.groups,
        strength=tuple(strengths),
        evidence=evidence,
        pooling_evidence=pooling_evidence,
        mixing=max(mixings, key=lambda mixing: mixing.r_hat),
        range=(math.exp(low), math.exp(high)),
        family=family,
        _fitted=fitted,
        _seed=int(problem.rng.integers(2**63 - 1)),
    )


def _affordable(draws: int, size: int) -> int:
    """How many draws of this size may be stored."""
    return max(min(draws, LARGEST_STORE // max(size, 1)), FEWEST_DRAWS)


def _shared(
    problem: _Problem, family: Family, counts: IntArray, draws: int, suffix: str
) -> tuple[_Fitted, list[Strength]]:
    """Learn the rows of one group, or of all."""
    tally = tally_of(family, counts)
    mode = mode_of(family, tally, problem.bounds)
    seen = np.arange(family.n_kinds) if family.fixed is not None else np.unique(tally.kind)
    smaller, place = condensed(family, seen)
    brief = replace(tally, kind=np.searchsorted(seen, tally.kind))
    sampler = SharedSampler(smaller, brief, problem.bounds, problem.rng)
    law_seen = np.bincount(place, mode.law, smaller.n_categories).astype(np.float64)
    start = replace(mode, law=law_seen)
    kinds = watched_kinds(smaller, brief)
    busy = np.unique(tally.strength)

    def watch(log_strength: FloatArray, law: FloatArray) -> FloatArray:
        parts = (log_strength[:, busy], smaller.shares(law)[:, kinds])
        return np.concatenate(parts if family.fixed is None else parts[:1], axis=1)

    size = smaller.n_categories + family.n_strengths
    kept, mixing = run_chains(
        sampler.sweep, sampler.start(start, CHAINS), watch, _affordable(draws, size)
    )
    log_strength, law = kept
    hyper = SharedDraws(family, log_strength, law, place)
    middle, mean_law = np.median(log_strength, axis=0), law.mean(axis=0)
    if family.fixed is None:
        mean_law = hyper.whole(mean_law[None])[0]
    fitted = _Fitted(
        counts=counts,
        prior_mode=prior_entries(family, mode.log_strength, mode.law),
        prior_mean=prior_entries(family, middle, mean_law),
        hyper=hyper,
        mixing=mixing,
        law=mean_law,
        borrowed=_borrowed(
            family, _tables(family, counts, prior_entries(family, middle, mean_law))
        ),
    )
    data = np.bincount(tally.strength, tally.total * tally.rows, family.n_strengths)
    strengths = [
        _strength(name + suffix, log_strength[:, k], mode.log_strength[k], data[k], problem.bounds)
        for k, name in enumerate(family.strength_names)
    ]
    return fitted, strengths


def _strength(
    name: str, draws: FloatArray, mode: float, seen: float, bounds: tuple[float, float]
) -> Strength:
    low, high = bounds
    near = min(NEAR_EDGE, 0.25 * (high - low))
    edge = ""
    if seen:
        if np.mean(draws > high - near) >= EDGE_SHARE:
            edge = "upper"
        elif np.mean(draws < low + near) >= EDGE_SHARE:
            edge = "lower"
    ends = np.exp(np.quantile(draws, [0.05, 0.5, 0.95]))
    return Strength(
        name, float(ends[1]), float(ends[0]), float(ends[2]), math.exp(mode), edge, round(seen)
    )


def _partially_pooled(
    problem: _Problem, family: Family, draws: int
) -> tuple[dict[Any, _Fitted], list[Strength]]:
    cells = problem.cells
    counts = problem.by_group(cells.count)
    point = group_point(family, counts, problem.bounds)
    sampler = GroupSampler(family, counts, problem.bounds, problem.rng)
    most = np.argsort(-counts.sum(axis=0)[sampler.entries], kind="stable")[:50]

    def watch(
        upper: FloatArray, lower: FloatArray, law: FloatArray, rows: FloatArray, rest: FloatArray
    ) -> FloatArray:
        parts = (upper, lower[:, sampler.busy], rows[:, most], sampler.watched_shares(law))
        return np.concatenate(parts, axis=1)

    size = family.n_categories + family.pattern.n_transitions
    if size * FEWEST_DRAWS > 4 * LARGEST_STORE:
        raise InvalidInputError(
            f"pooling='partial' needs fewer possible transitions than {size:,}; pass possible or "
            "reach"
        )
    kept, mixing = run_chains(
        sampler.sweep,
        sampler.start(point, CHAINS),
        watch,
        _affordable(draws, size),
        sampler.whole,
        PARTIAL,
    )
    upper, lower, law, rows = kept
    mean_law = law.mean(axis=0)
    fitted: dict[Any, _Fitted] = {}
    owners = family.strength_of_pair[family.pattern.pair_of_transition]
    seen = np.bincount(owners, counts.sum(axis=0) * family.uncertain, family.n_strengths)
    strengths = [
        _strength(
            f"{name}, over groups",
            upper[:, k],
            point.upper.log_strength[k],
            seen[k],
            problem.bounds,
        )
        for k, name in enumerate(family.strength_names)
    ]
    above = prior_entries(family, np.median(upper, axis=0), mean_law)
    mean_rows = rows.mean(axis=0)
    middle_of = np.exp(np.median(lower, axis=0))
    tables = np.array(
        [
            _tables(family, own, np.maximum(strength * mean_rows, SMALLEST))
            for own, strength in zip(counts, middle_of, strict=True)
        ]
    )
    # what the law itself contributes, if the rows over groups were the data
    by_law = _borrowed(family, _tables(family, tables.sum(axis=0), above))
    of_pair = np.bincount(family.pattern.pair_of_transition, above, family.pattern.n_pairs)
    for g, label in enumerate(cells.groups):
        middle = float(np.median(lower[:, g]))
        others = np.bincount(
            family.pattern.pair_of_transition,
            tables.sum(axis=0) - tables[g],
            family.pattern.n_pairs,
        )
        from_groups = others / np.maximum(others + of_pair, SMALLEST)
        fitted[label] = _Fitted(
            counts=counts[g],
            prior_mode=np.exp(point.log_strength[g]) * point.rows,
            prior_mean=math.exp(middle) * _weighted(rows, lower[:, g], counts[g], family.pattern),
            hyper=GroupDraws(family.pattern, lower[:, g], rows),
            mixing=mixing,
            law=mean_law,
            borrowed=from_groups + (1.0 - from_groups) * by_law,
        )
        own = float((counts[g] * family.uncertain).sum())
        strengths.append(
            _strength(f"group {label!r}", lower[:, g], point.log_strength[g], own, problem.bounds)
        )
    return fitted, strengths


def _tables(family: Family, counts: IntArray | FloatArray, prior: FloatArray) -> FloatArray:
    """Expected number of tables of every entry: how often its prior was drawn from."""
    result = np.zeros(counts.size)
    seen = np.flatnonzero(family.uncertain & (counts > 0))
    theta = prior[seen]
    result[seen] = theta * differences(theta, counts[seen].astype(np.float64))[0]
    return result


def _borrowed(family: Family, tables: FloatArray) -> FloatArray:
    """Share of every row's prior that the other rows of its family supplied, (pairs,).

    With the row's own data set aside, its law is Dir(a₀m₀ + T) with T tables of the other rows, so
    the share is T/(a₀ + T). The rest was assumed. A shape without a law borrows nothing but κ.
    """
    pattern = family.pattern
    if family.fixed is not None:
        return np.zeros(pattern.n_pairs)
    own = np.bincount(pattern.pair_of_transition, tables, pattern.n_pairs)
    states, actions = np.divmod(np.arange(pattern.n_pairs), pattern.n_actions)
    law = states if family.name == "actions" else actions
    n = family.law_sizes.size
    others = np.maximum(np.bincount(law, own, n)[law] - own, 0.0)
    assumed = np.bincount(family.law_of_category, family.base, n)[law]
    return np.where(pattern.widths > 0, others / np.maximum(others + assumed, SMALLEST), 0.0)


def _weighted(
    rows: FloatArray, log_strength: FloatArray, counts: IntArray, pattern: TransitionPattern
) -> FloatArray:
    """Mean of the rows over groups, each draw weighted by its part in the group's rows.

    κ_g is large just where the rows over groups are close to this group's, so their plain mean
    would not do beside a typical κ_g.
    """
    totals = np.bincount(pattern.pair_of_transition, counts, pattern.n_pairs)[pattern.pairs]
    strength = np.exp(log_strength)[:, None]
    part = strength / (strength + totals)
    part /= part.sum(axis=0)
    result = np.empty(counts.size)
    begins = pattern.indptr[pattern.pairs].tolist()
    for k, (begin, width) in enumerate(zip(begins, pattern.row_widths.tolist(), strict=True)):
        result[begin : begin + width] = part[:, k] @ rows[:, begin : begin + width]
    return result
