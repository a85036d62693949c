"""A decision problem with a log: what is known, what is assumed, and the beliefs that follow.

A :class:`Model` holds everything that a decision rests on. It plans with :meth:`Model.plan_belief`,
which is fast and exact, and proves with :meth:`Model.belief`, whose draws leave nothing that is
uncertain out. What the log contradicts (an action that is said to lead to one state, but led to
another) is left out of the counts and listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.ndimage import gaussian_filter1d
from scipy.special import gammaln

from brmdp._streams import independent_streams
from brmdp._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_discount,
    as_float_array,
    as_level,
    as_number,
    as_positive_int,
    as_positive_number,
)
from brmdp.beliefs.dirichlet import DirichletBelief
from brmdp.decisions import LearnedPrior, Practice, Transitions, draws_needed, learn_prior
from brmdp.decisions.families import SHAPES
from brmdp.decisions.learned_prior import POOLINGS
from brmdp.decisions.policies import as_start_weights
from brmdp.errors import InvalidInputError
from brmdp.logs import Log, StateSpace
from brmdp.mdp import counted
from brmdp.models.amounts import LearnedAmounts, LearnedRewards, learn_amounts
from brmdp.models.costs import Costs
from brmdp.models.file import Word
from brmdp.models.wording import policy_in_words
from brmdp.pattern import TransitionPattern, pattern_and_entries
from brmdp.planning.text import call_like

if TYPE_CHECKING:
    from brmdp.models.decision import Decision
    from brmdp.models.results import Check

__all__ = ["Dynamics", "Model"]

LARGEST_FULL = 3_000_000
"""Up to this many transitions, all are possible unless something else is said."""

FEWEST_STORED, SPARE = 2_000, 2.6
"""Joint draws stored by a learned prior, and how many times what a certificate needs at least."""

SUREST = 0.996
"""With a learned prior, a higher confidence would need more joint draws than can be afforded."""

PRACTICE_WEIGHTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
PRACTICE_WIDTHS = (math.inf, 16.0, 8.0, 4.0, 2.0, 1.0)
"""Weights of the prior over practice, in observations, and how many states wide the neighbourhood
is from which it is taken; the log chooses one of each."""

FAR = 0.1
"""Decisions nearby that count as much as all that is done elsewhere."""

STREAMS = ("prior", "policies", "certificate", "comparison", "information", "checks", "amounts")
"""Names of the random streams; each has numbers of its own."""


@dataclass(frozen=True)
class Dynamics:
    """What is assumed about the transition probabilities; see the table in ``model.toml``.

    Attributes
    ----------
    prior : "learned", "uniform" or "observed"
        Learned from the log (:func:`brmdp.learn_prior`), or spread evenly over the possible
        successors. "observed" is uniform over the successors that were seen: what was never seen
        is taken to be impossible.
    strength : float, optional
        Weight of a uniform prior per row, in observations; by default one per successor.
    shape : str
        How rows resemble each other, for a learned prior; by default held-out prediction decides,
        among the shapes that keep actions apart.
    reach : int, optional
        Largest change of an ordered state in one step.
    possible : "all" or "observed", optional
        Which successors a state can have: all states, or those that were seen to follow it under
        any action. By default all, unless that would be more than three million transitions.
    pooling : str, optional
        "pooled", "partial" or "separate", for groups; by default partial, or separate where that
        predicts held-out units clearly better.
    draws : int, optional
        Joint draws of the hyperparameters that a learned prior stores; by default as many as the
        confidence needs, at least 2,000.

    Examples
    --------
    >>> from brmdp.models import Dynamics
    >>> Dynamics(prior="uniform", strength=2.0).prior
    'uniform'
    """

    prior: Literal["learned", "uniform", "observed"] = "learned"
    strength: float | None = None
    shape: str = "auto"
    reach: int | None = None
    possible: Literal["all", "observed"] | None = None
    pooling: str | None = None
    draws: int | None = None

    def __post_init__(self) -> None:
        _require_one_of(self.prior, ("learned", "uniform", "observed"), "prior")
        _require_one_of(self.shape, ("auto", *SHAPES), "shape")
        _require_one_of(self.possible, (None, "all", "observed"), "possible")
        _require_one_of(self.pooling, (None, *POOLINGS), "pooling")
        if self.reach is not None:
            as_positive_int(self.reach, "reach")
            if self.possible is not None or self.prior == "observed":
                raise InvalidInputError("reach must not be given together with observed successors")
        if self.draws is not None:
            as_positive_int(self.draws, "draws")
        if self.strength is not None:
            as_positive_number(self.strength, "strength")
            if self.prior == "learned":
                raise InvalidInputError(
                    "strength must not be given for a learned prior, whose strength the log decides"
                )
        if self.prior != "learned":
            if self.shape != "auto":
                raise InvalidInputError(f"shape belongs to a learned prior; got {self.prior!r}")
            if self.pooling == "partial":
                raise InvalidInputError(
                    "pooling 'partial' needs a learned prior; use 'separate' or 'pooled'"
                )


class Model:
    """A decision problem: a log, what its costs or rewards are, and what is assumed.

    Parameters
    ----------
    log : Log
        What :func:`brmdp.read_log` made of a log.
    costs, rewards : Costs, mapping or array
        One of the two: what each action costs or pays. A mapping has for every action a number, or
        ``{"base": …, "per": …}``: base + per × the number of the state (its lower edge, or the
        number in its label). Arrays have shape (S, A) or (S, A, S).
        ``brmdp.models.costs.Costs("cost", None, column=…, bounds=(low, high))`` learns them from
        the amounts of the log (:mod:`brmdp.models.amounts`).
    discount : float
        γ per time step of the log, below 1.
    confidence : float
        Posterior probability with which the certificate holds.
    start : state or (S,) probabilities, optional
        Where values are judged from: a label, a reading, or probabilities; by default the log's
        distribution of states.
    reset : mapping from action to state, optional
        What is known: these actions lead to these states.
    ends : sequence of states, optional
        Where everything ends; nothing is paid from there on.
    dynamics : Dynamics
    admissible : "all", "observed" or (S, A) booleans
        Which actions can be taken: all, those that were taken in a state (all, where it was never
        seen), or as given.
    level : float, optional
        Plan at this quantile level, instead of choosing the policy with the best guarantee.
    title, file : str
        For the page.
    digest : str
        SHA-256 of the model file.
    seed : int

    Examples
    --------
    >>> import brmdp, pandas
    >>> table = {"day": range(60), "stock": ["full", "low", "low"] * 20}
    >>> table["order"] = ["no", "no", "yes"] * 20
    >>> log = brmdp.read_log(pandas.DataFrame(table), time="day", state="stock", action="order")
    >>> model = brmdp.Model(log, costs={"no": 0.0, "yes": 1.0}, discount=0.9)
    >>> model
    Model(2 states, 2 actions, 59 transitions, costs, discount=0.9, confidence=0.9)
    """

    def __init__(
        self,
        log: Log,
        *,
        discount: float,
        costs: Costs | Mapping[str, Any] | ArrayLike | None = None,
        rewards: Costs | Mapping[str, Any] | ArrayLike | None = None,
        confidence: float = 0.9,
        start: Any = None,
        reset: Mapping[str, Any] | None = None,
        ends: tuple[Any, ...] = (),
        dynamics: Dynamics | None = None,
        admissible: Any = "all",
        level: float | None = None,
        title: str = "",
        file: str = "",
        digest: str = "",
        seed: int = 0,
    ) -> None:
        if not isinstance(log, Log):
            raise InvalidInputError(f"log must be a Log (see read_log); got {type(log).__name__}")
        if (costs is None) == (rewards is None):
            raise InvalidInputError("exactly one of costs and rewards must be given")
        self.log = log
        self.states: StateSpace = log.states
        self.actions: tuple[str, ...] = log.actions
        self.discount = as_discount(discount)
        self.confidence = as_level(confidence, "confidence")
        self.dynamics = Dynamics() if dynamics is None else dynamics
        if self.confidence > SUREST and self.dynamics.prior == "learned":
            raise InvalidInputError(
                f"confidence must be at most {SUREST} with a learned prior, whose draws would not "
                f"suffice; got {self.confidence:.10g}. Use it, or prior='uniform' or 'observed'"
            )
        self.level = None if level is None else as_level(level, "level")
        self.title, self.file, self.digest = title or "A decision", file, digest
        self.seed = seed
        n, k = self.states.n_states, len(self.actions)
        self.ends: IntArray = np.unique([self.states.index(end) for end in ends]).astype(np.int64)
        self.known: dict[int, int] = {
            self._action(action): self.states.index(state)
            for action, state in (reset or {}).items()
        }
        self.costs: Costs = (
            _as_costs(costs, "cost", self.states, self.actions)
            if rewards is None
            else _as_costs(rewards, "reward", self.states, self.actions)
        )
        self.sign = self.costs.sign
        self._start = None if start is None else self._as_start(start)
        self.groups: tuple[str | None, ...] = log.group_names or (None,)
        if self.dynamics.pooling not in (None, "pooled") and self.groups == (None,):
            raise InvalidInputError(
                f"pooling must be 'pooled' without groups; got {self.dynamics.pooling!r}"
            )
        self.admissible = self._as_admissible(admissible, (n, k))
        self._beliefs: dict[str | None, Any] = {}
        self._learned_amounts: dict[str | None, LearnedAmounts] = {}
        learned = self.learned_amounts()
        amounts = self.costs.amounts if learned is None else learned.mean
        assert amounts is not None
        self.amounts: FloatArray = self.ended(amounts)
        self.rewards: Any = self.rewards_of(amounts)

    # --- what was logged --------------------------------------------------------------------------

    @property
    def word(self) -> Word:
        """What the amounts are: "cost" or "reward"."""
        return self.costs.word

    @cached_property
    def contradictions(self) -> IntArray:
        """Rows of the log that contradict what is known: resets, ends, impossible changes."""
        log = self.log
        wrong = np.isin(log.state, self.ends)
        for action, state in self.known.items():
            wrong |= (log.action == action) & (log.next_state != state)
        if self.dynamics.reach is not None:
            free = ~np.isin(log.action, list(self.known))
            wrong |= free & (np.abs(log.next_state - log.state) > self.dynamics.reach)
        return np.flatnonzero(wrong)

    @cached_property
    def _kept(self) -> BoolArray:
        kept = np.ones(self.log.state.size, dtype=bool)
        kept[self.contradictions] = False
        return kept

    def rows(self, group: str | None = None) -> IntArray:
        """Rows of the log that count, of one group or of all."""
        kept = self._kept
        if group is not None and self.log.group is not None:
            kept = kept & (self.log.group == self.groups.index(group))
        return np.flatnonzero(kept)

    def transitions(self, group: str | None = None) -> Transitions:
        """The transitions that count, with units, and with groups if all are asked for."""
        log, rows = self.log, self.rows(group)
        groups = names = None
        if group is None and log.group is not None:
            names = np.array(self.groups)
            groups = names[log.group[rows]]
        return Transitions(
            log.state[rows],
            log.action[rows],
            log.next_state[rows],
            unit=log.unit[rows],
            group=groups,
            groups=names,
            n_states=self.states.n_states,
            n_actions=len(self.actions),
        )

    def counts(self, group: str | None = None) -> IntArray:
        """(S, A) number of transitions of every pair."""
        rows, k = self.rows(group), len(self.actions)
        pairs = self.log.state[rows] * k + self.log.action[rows]
        found = np.bincount(pairs, minlength=self.states.n_states * k)
        return found.reshape(self.states.n_states, k).astype(np.int64)

    def evidence(self, group: str | None = None) -> IntArray:
        """(S, A) number of transitions that tell about each pair: those of the pair itself."""
        return self.counts(group)

    def units(self, group: str | None = None) -> int:
        """Number of units behind the transitions."""
        return int(np.unique(self.log.unit[self.rows(group)]).size)

    def start(self, group: str | None = None) -> FloatArray:
        """(S,) probabilities of the states from which values are judged."""
        if self._start is not None:
            return self._start
        log = self.log
        mine = np.ones(log.line_state.size, dtype=bool)
        if group is not None and log.line_group is not None:
            mine = log.line_group == self.groups.index(group)
        seen = np.bincount(log.line_state[mine], minlength=self.states.n_states).astype(np.float64)
        seen[self.ends] = 0.0
        if not seen.any():
            seen[:] = 1.0
        weights: FloatArray = seen / seen.sum()
        return weights

    def practice(self, group: str | None = None) -> Practice:
        """What was done so far, with its doubt.

        In each state, the prior is spread like the actions of the other states: all of them, or
        those nearby if states have an order. Width and weight are learned from the log: where every
        state had an action of its own, a state that was hardly seen says little about what is done
        there, and one that was often seen says all.
        """
        log = self.log
        mine = np.ones(log.line_state.size, dtype=bool)
        if group is not None and log.line_group is not None:
            mine = log.line_group == self.groups.index(group)
        shape = self.admissible.shape
        pairs = log.line_state[mine] * shape[1] + log.line_action[mine]
        counts = np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64)
        counts[~self.admissible] = 0
        widths = PRACTICE_WIDTHS if self.states.ordered else PRACTICE_WIDTHS[:1]
        tried = [_practice_priors(counts, self.admissible, width) for width in widths]
        _, prior = max(chain.from_iterable(tried), key=lambda found: found[0])
        return Practice(counts, counts + prior)

    # --- what is believed -------------------------------------------------------------------------

    @cached_property
    def possible(self) -> sparse.csr_array:
        """The possible transitions, as a sparse (S·A, S) matrix of ones."""
        n, k = self.admissible.shape
        keep: list[IntArray] = []
        free = np.array([a not in self.known for a in range(k)])
        mask = self.admissible & free
        mask[self.ends] = False
        states, actions = np.nonzero(mask)
        pairs = states * k + actions
        successors = self._successors()
        widths = np.diff(successors.indptr)[states]
        rows = np.repeat(pairs, widths)
        keep = [successors.indices[successors.indptr[s] : successors.indptr[s + 1]] for s in states]
        columns = np.concatenate(keep) if keep else np.zeros(0, dtype=np.int64)
        known = np.array([self.known.get(a, -1) for a in range(k)])
        one_s, one_a = np.nonzero(self.admissible & ~mask)
        one = np.where(np.isin(one_s, self.ends), one_s, known[one_a])
        rows = np.concatenate((rows, one_s * k + one_a))
        columns = np.concatenate((columns, one))
        return sparse.csr_array((np.ones(rows.size), (rows, columns)), shape=(n * k, n))

    def _successors(self) -> sparse.csr_array:
        """The successors that a state can have under an action whose outcome is not known."""
        n, k = self.admissible.shape
        dynamics = self.dynamics
        kind = "observed" if dynamics.prior == "observed" else dynamics.possible
        if dynamics.reach is not None:
            low = np.maximum(np.arange(n) - dynamics.reach, 0)
            high = np.minimum(np.arange(n) + dynamics.reach, n - 1)
            widths = high - low + 1
            indptr = np.concatenate(([0], np.cumsum(widths)))
            columns = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - low, widths)
            return sparse.csr_array((np.ones(columns.size), columns, indptr), shape=(n, n))
        if kind == "all" or (kind is None and n * n * k <= LARGEST_FULL):
            return sparse.csr_array(np.ones((n, n)))
        rows = np.flatnonzero(self._kept & ~np.isin(self.log.action, list(self.known)))
        states = np.concatenate((self.log.state[rows], np.arange(n)))
        following = np.concatenate((self.log.next_state[rows], np.arange(n)))
        keys = np.unique(states * n + following)
        return sparse.csr_array((np.ones(keys.size), np.divmod(keys, n)), shape=(n, n))

    @property
    def observed_only(self) -> bool:
        """Whether successors that were never seen are taken to be impossible."""
        n, k = self.admissible.shape
        dynamics = self.dynamics
        if dynamics.prior == "observed" or dynamics.possible == "observed":
            return True
        return dynamics.possible is None and dynamics.reach is None and n * n * k > LARGEST_FULL

    @cached_property
    def pattern(self) -> TransitionPattern:
        """The possible transitions."""
        return pattern_and_entries(self.possible, "possible", self.admissible)[0]

    @property
    def shapes(self) -> tuple[str, ...]:
        """The shapes that are tried if none is named.

        Increments need states with an order. Rows are never shared between the actions of a state:
        that often predicts best, since actions differ little, and takes away what the decision is
        about.
        """
        left_out = {"actions"} if self.states.ordered else {"actions", "increments"}
        return tuple(shape for shape in SHAPES if shape not in left_out)

    @cached_property
    def learned(self) -> LearnedPrior | None:
        """The prior that was learned from the log; None if it was given."""
        dynamics = self.dynamics
        if dynamics.prior != "learned":
            return None
        return learn_prior(
            self.transitions(),
            shape=self.shapes if dynamics.shape == "auto" else dynamics.shape,  # type: ignore[arg-type]
            possible=self.possible,
            admissible=self.admissible,
            pooling=self._pooling(),
            draws=self._stored_draws(),
            rng=self.stream("prior"),
        )

    def _stored_draws(self) -> int:
        """Joint draws that leave the certificate some room beyond what its confidence needs."""
        if self.dynamics.draws is not None:
            return self.dynamics.draws
        return max(FEWEST_STORED, math.ceil(SPARE * draws_needed(1.0 - self.confidence)))

    def _pooling(self) -> Any:
        if self.groups == (None,):
            return "pooled"
        return ("partial", "separate") if self.dynamics.pooling is None else self.dynamics.pooling

    @property
    def pooled(self) -> bool:
        """Whether all groups are believed to be alike."""
        return self.groups == (None,) or self.dynamics.pooling == "pooled"

    def plan_belief(self, group: str | None = None) -> DirichletBelief:
        """The belief to plan with: independent Dirichlet rows, exact quantiles."""
        key = None if self.pooled else group
        if self.learned is not None:
            return self.learned.posterior(key if self.learned.groups != (None,) else None)
        return self._given(key)

    def matched_belief(self, group: str | None = None) -> DirichletBelief:
        """The belief to plan with by caution: every row as open as draws of :meth:`belief` are.

        Independent rows with the means and the spread that follow from everything that is
        uncertain; at point hyperparameters, rows without data would be as narrow as others are.
        """
        if self.learned is None:
            return self.plan_belief(group)
        matched: DirichletBelief = self.belief(group).matched(rng=self.stream("prior", 1))
        return matched

    def belief(self, group: str | None = None) -> Any:
        """The belief to prove with; its draws leave nothing that is uncertain out."""
        key = None if self.pooled else group
        if key not in self._beliefs:
            if self.learned is None:
                self._beliefs[key] = self._given(key)
            else:
                known = self.learned.groups != (None,)
                self._beliefs[key] = self.learned.belief(key if known else None)
        return self._beliefs[key]

    def unit_prior(self, group: str | None = None) -> DirichletBelief:
        """The belief before the log, which learns its prior anew when units are resampled."""
        if self.learned is None:
            return self.prior_belief(group)
        key = None if self.pooled else group
        return self.learned.relearned(key if self.learned.groups != (None,) else None)

    def prior_belief(self, group: str | None = None) -> DirichletBelief:
        """The belief to plan with, without the data; a learned prior is taken for known."""
        belief = self.plan_belief(group)
        arrays = belief.arrays()
        arrays["counts"] = np.zeros_like(arrays["counts"])
        return DirichletBelief.from_arrays(arrays, "the model")

    def _given(self, group: str | None) -> DirichletBelief:
        pattern, strength = self.pattern, self.dynamics.strength
        weight = np.ones(pattern.n_transitions)
        if strength is not None:
            weight *= (strength / np.maximum(pattern.widths, 1))[pattern.pair_of_transition]
        matrix = sparse.csr_array(
            (weight, pattern.next_states, pattern.indptr),
            shape=(pattern.n_pairs, pattern.n_states),
        )
        belief = DirichletBelief(matrix, admissible=self.admissible)
        rows, log = self.rows(group), self.log
        belief.observe(log.state[rows], log.action[rows], log.next_state[rows])
        return belief

    # --- what follows -----------------------------------------------------------------------------

    def check(self, policies: Mapping[str | None, IntArray] | None = None) -> tuple[Check, ...]:
        """Check the model against its log; see :mod:`brmdp.models.checks`.

        Parameters
        ----------
        policies : mapping from group to (S,) integers, optional
            The policies to judge; by default the plan at the mean of the belief.
        """
        from brmdp.models.checks import check_model

        return check_model(self, policies)

    def decide(self, **settings: Any) -> Decision:
        """Recommend a policy, prove what it is worth and compare it with what was done.

        See :func:`brmdp.models.decision.decide` for the settings.
        """
        from brmdp.models.decision import decide

        return decide(self, **settings)

    def stream(self, name: str, number: int = 0) -> np.random.Generator:
        """The random stream of a name, with numbers of its own for every number."""
        if name not in STREAMS:
            raise InvalidInputError(f"name must be one of {', '.join(STREAMS)}; got {name!r}")
        sequence = np.random.SeedSequence(self.seed, spawn_key=(STREAMS.index(name), number))
        return next(iter(independent_streams(sequence, 1)))

    def __repr__(self) -> str:
        parts = [
            counted(self.states.n_states, "state"),
            counted(len(self.actions), "action"),
            counted(int(self._kept.sum()), "transition"),
        ]
        if self.groups != (None,):
            parts.append(counted(len(self.groups), "group"))
        parts += [
            f"{self.word}s",
            f"discount={self.discount:.10g}",
            f"confidence={self.confidence:.10g}",
        ]
        return call_like(type(self).__name__, parts)

    # --- checks of the arguments ------------------------------------------------------------------

    def _action(self, label: Any) -> int:
        name = str(label)
        if name not in self.actions:
            shown = ", ".join(repr(action)[:40] for action in self.actions[:8])
            raise InvalidInputError(
                f"reset must name actions of the log ({shown}); got {name[:40]!r}"
            )
        return self.actions.index(name)

    def _as_start(self, start: Any) -> FloatArray:
        n = self.states.n_states
        if isinstance(start, np.ndarray) and start.shape == (n,) and n > 1:
            return as_start_weights(start, n)
        return as_start_weights(self.states.index(start), n)

    def _as_admissible(self, admissible: Any, shape: tuple[int, int]) -> BoolArray:
        if isinstance(admissible, str):
            _require_one_of(admissible, ("all", "observed"), "admissible")
            mask = np.ones(shape, dtype=bool)
            if admissible == "observed":
                pairs = self.log.line_state * shape[1] + self.log.line_action
                mask = np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape) > 0
                mask[~mask.any(axis=1)] = True
            return mask
        mask = as_array(admissible, "admissible", "booleans")
        if mask.shape != shape or mask.dtype != np.bool_ or not mask.any(axis=1).all():
            raise InvalidInputError(
                f"admissible must be booleans of shape {shape} with an action in every state; got "
                f"{mask.dtype} of shape {mask.shape}"
            )
        return np.array(mask)

    def learned_amounts(self, group: str | None = None) -> LearnedAmounts | None:
        """Amounts learned from the log's column, of a group or of all; None if they are given.

        Groups that are not pooled have pairs of their own. Unless they are separate, the law of an
        action is learned from the pairs of all groups.
        """
        if self.costs.amounts is not None:
            return None
        key = None if self.pooled else group
        if key in self._learned_amounts:
            return self._learned_amounts[key]
        name = f"{self.word}s" if self.costs.column is None else f"the column {self.costs.column!r}"
        if self.log.amount is None or self.costs.bounds is None:
            raise InvalidInputError(
                f"{name} must be read with the log (read_log: amount=…), and its bounds be given, "
                "to be learned"
            )
        shared = key is not None and self.dynamics.pooling != "separate"
        rows = self.rows(None if shared else key)
        n = self.states.n_states
        number = 0 if key is None or not shared else self.groups.index(key)
        state = self.log.state[rows]
        if shared and self.log.group is not None:
            state = state + n * self.log.group[rows]
        blocks = len(self.groups) if shared else 1
        numbers = self.states.numbers
        if numbers is not None:
            numbers = None if np.isnan(numbers).any() else np.tile(numbers, blocks)
        low, high = self.costs.bounds
        found = learn_amounts(
            state,
            self.log.action[rows],
            self.log.amount[rows],
            shape=(n * blocks, len(self.actions)),
            low=low,
            high=high,
            sign=self.sign,
            numbers=numbers,
            name=name,
        )
        self._learned_amounts[key] = found.rows(n * number, n * (number + 1))
        return self._learned_amounts[key]

    def plan_rewards(self, group: str | None = None) -> Any:
        """What to plan with: known rewards, or the means of learned ones."""
        doubtful = self.doubtful_rewards(group)
        return doubtful.mean_rewards if isinstance(doubtful, LearnedRewards) else doubtful

    def doubtful_rewards(self, group: str | None = None) -> Any:
        """What to prove with: known rewards, or learned ones with their doubt."""
        learned = self.learned_amounts(group)
        return self.rewards if learned is None else LearnedRewards(learned, self.sign, self.ends)

    def rewards_of(self, amounts: FloatArray) -> Any:
        """What the engine maximises, for other amounts than those of the model."""
        return self.sign * self.ended(amounts)

    def words(self, policy: IntArray, visits: FloatArray) -> tuple[str, ...]:
        """What a policy does, in sentences; ``visits`` are the shares of its time in each state."""
        return policy_in_words(self.states, self.actions, policy, visits, self.ends)

    def before_end(self, visits: FloatArray) -> FloatArray:
        """Shares of time (…, S) without the time after everything has ended, if any is left."""
        left = np.array(visits)
        left[..., self.ends] = 0.0
        total = left.sum(axis=-1, keepdims=True)
        shares: FloatArray = np.divide(left, total, out=np.array(visits), where=total > 0.0)
        return shares

    def ended(self, amounts: FloatArray) -> FloatArray:
        """The amounts with nothing paid where everything has ended."""
        found = np.array(amounts, dtype=np.float64)
        found[self.ends] = 0.0
        return found


def _practice_priors(
    counts: IntArray, admissible: BoolArray, width: float
) -> Iterator[tuple[float, FloatArray]]:
    """Dirichlet priors of practice in every state, for each weight, and how well they predict it.

    The shares are those of the actions in the other states, weighted by their distance in units of
    the width. So no state predicts itself.
    """
    number, usual = counts.astype(np.float64), counts.sum(axis=0) + 0.5 / counts.shape[1]
    if math.isfinite(width):
        near = gaussian_filter1d(number, width, axis=0, mode="constant")
        near = np.maximum(near * (width * math.sqrt(2.0 * math.pi)) - number, 0.0)
    else:
        near = number.sum(axis=0) - number
    # where nothing is near, all states together decide
    share = near + FAR * usual / usual.sum()
    share = np.where(admissible, share, 0.0)
    share /= share.sum(axis=1, keepdims=True)
    total = counts.sum(axis=1)
    for weight in PRACTICE_WEIGHTS:
        prior = weight * share
        own = np.maximum(prior, 1e-300)
        rows = gammaln(weight) - gammaln(weight + total)
        cells = np.where(counts > 0, gammaln(own + counts) - gammaln(own), 0.0)
        yield float(rows.sum() + cells.sum()), prior


def _require_one_of(value: Any, allowed: tuple[Any, ...], name: str) -> None:
    if value not in allowed:
        words = ", ".join(repr(one) for one in allowed if one is not None)
        raise InvalidInputError(f"{name} must be one of {words}; got {value!r}")


def _as_finite(value: Any, name: str) -> float:
    number = as_number(value, name, "a finite number")
    if not math.isfinite(number):
        raise InvalidInputError(f"{name} must be a finite number; got {value!r}")
    return number


def _as_costs(value: Any, word: Word, states: StateSpace, actions: tuple[str, ...]) -> Costs:
    """Amounts by action, as an array, or as the model file has them."""
    if isinstance(value, Costs):
        return value
    name = f"{word}s"
    n, k = states.n_states, len(actions)
    if not isinstance(value, Mapping):
        amounts = as_float_array(value, name)
        if amounts.shape not in ((n, k), (n, k, n)):
            raise InvalidInputError(
                f"{name} must have shape {(n, k)} or {(n, k, n)}; got {amounts.shape}"
            )
        return Costs(word, amounts)
    unknown = [action for action in value if action not in actions]
    missing = [action for action in actions if action not in value]
    if unknown or missing:
        raise InvalidInputError(
            f"{name} must name every action of the log ({', '.join(actions)[:200]}) and no other; "
            f"got {', '.join(map(str, value))[:200]}"
        )
    amounts = np.empty((n, k))
    for a, action in enumerate(actions):
        given = value[action] if isinstance(value[action], Mapping) else {"base": value[action]}
        if not set(given) <= {"base", "per"}:
            raise InvalidInputError(
                f"{name}[{action!r}] must have base, per or both; got {sorted(map(str, given))}"
            )
        per = _as_finite(given.get("per", 0.0), f"{name}[{action!r}]['per']")
        amounts[:, a] = _as_finite(given.get("base", 0.0), f"{name}[{action!r}]['base']")
        if per:
            if states.numbers is None or np.isnan(states.numbers).any():
                raise InvalidInputError(
                    f"{name}[{action!r}]['per'] needs states with numbers; these have none"
                )
            amounts[:, a] += per * states.numbers
    return Costs(word, amounts)
