"""Today's practice, estimated from a log: which action is taken in which state, and how surely.

π0(·|s) has a Dirichlet posterior in each state. The prior is weak, by default worth one observation
per state and spread evenly over the admissible actions: with 25 actions and ten observations,
Dir(1, …, 1) would say more than the log. Where a state was never seen, the mean is that even
spread, which is nobody's practice; :attr:`Practice.never_seen` names these states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from brmdp._validation import (
    FloatArray,
    IntArray,
    Seed,
    as_array,
    as_float_array,
    as_positive_int,
    as_positive_number,
    as_rng,
    first_bad,
)
from brmdp.beliefs.gammas import LARGEST, check_concentrations, dirichlet_rows
from brmdp.beliefs.observations import as_observed
from brmdp.errors import InvalidInputError
from brmdp.planning.text import call_like, wrapped

__all__ = ["Practice", "practice"]

LARGEST_DRAWS = 250_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Practice:
    """Logged behaviour π0(a|s) with a Dirichlet posterior per state; see :func:`practice`.

    It can be used wherever a policy is compared or drawn; :attr:`mean` is a policy of its own.

    Attributes
    ----------
    counts : (S, A) integers
        How often each action was taken in each state.
    concentration : (S, A) array
        Concentrations of the posterior; zero for inadmissible actions.

    Examples
    --------
    >>> from brmdp.decisions import practice
    >>> found = practice([[3, 1], [0, 0]])
    >>> found
    Practice(2 states, 2 actions, 4 observations, 1 state never seen)
    >>> found.mean
    array([[0.7, 0.3],
           [0.5, 0.5]])
    """

    counts: IntArray
    concentration: FloatArray

    @property
    def mean(self) -> FloatArray:
        """(S, A) mean probabilities: a policy."""
        share: FloatArray = self.concentration / self.concentration.sum(axis=1, keepdims=True)
        return share

    @property
    def never_seen(self) -> IntArray:
        """States that do not occur in the log; only the prior speaks there."""
        return np.flatnonzero(self.counts.sum(axis=1) == 0)

    def draw(self, n: int = 1, *, rng: Seed = None) -> FloatArray:
        """``n`` policies drawn from the posterior, (n, S, A)."""
        number = as_positive_int(n, "n")
        if number * self.counts.size > LARGEST_DRAWS:
            raise InvalidInputError(
                f"n × states × actions must be at most {LARGEST_DRAWS:,}; got {number:,} policies "
                f"of {self.counts.size:,} pairs"
            )
        mask = self.concentration > 0.0
        drawn = np.zeros((number, *self.counts.shape))
        drawn[:, mask] = dirichlet_rows(
            self.concentration[mask], number, as_rng(rng), mask.sum(axis=1)
        )
        return drawn

    def __str__(self) -> str:
        n_states, n_actions = self.counts.shape
        unseen = self.never_seen
        text = (
            f"Logged practice in {n_states} states with {n_actions} actions, from "
            f"{int(self.counts.sum())} observations."
        )
        if unseen.size:
            shown = ", ".join(str(int(s)) for s in unseen[:8]) + (", …" if unseen.size > 8 else "")
            text += (
                f" Never seen: {unseen.size} of the states ({shown}); there, the mean spreads "
                "evenly over the admissible actions, which is an assumption and not practice."
            )
        return wrapped(text)

    def __repr__(self) -> str:
        n_states, n_actions = self.counts.shape
        unseen = self.never_seen.size
        return call_like(
            "Practice",
            (
                f"{n_states} state{'s' * (n_states != 1)}",
                f"{n_actions} action{'s' * (n_actions != 1)}",
                f"{int(self.counts.sum())} observations",
                f"{unseen} state{'s' * (unseen != 1)} never seen",
            ),
        )


def practice(
    log: ArrayLike,
    actions: ArrayLike | None = None,
    *,
    n_states: int | None = None,
    n_actions: int | None = None,
    admissible: ArrayLike | None = None,
    prior: float = 1.0,
) -> Practice:
    """The behaviour that made a log, π0(a|s), with its own doubt.

    Parameters
    ----------
    log : (S, A) or (S, A, S) counts, or the column of states
        How often each action was taken in each state (next states are summed over); or, together
        with ``actions``, the state of every logged step.
    actions : (n,) integers, optional
        The action of every logged step.
    n_states, n_actions : int, optional
        Needed for columns; for counts they follow from the shape.
    admissible : (S, A) booleans, optional
        Actions that can be taken; by default all. The mean gives every admissible action some
        probability; to leave out what was never done, pass ``counts > 0`` where a state was seen.
    prior : float
        Weight of the prior in each state, in observations.

    Returns
    -------
    Practice

    Examples
    --------
    >>> from brmdp.decisions import practice
    >>> found = practice([0, 0, 0, 2], [1, 1, 0, 1], n_states=3, n_actions=2)
    >>> found.mean.round(3)
    array([[0.375, 0.625],
           [0.5  , 0.5  ],
           [0.25 , 0.75 ]])
    >>> found.never_seen
    array([1])
    """
    weight = as_positive_number(prior, "prior")
    counts = (
        _counts_given(log, n_states, n_actions)
        if actions is None
        else _counts_of(log, actions, n_states, n_actions)
    )
    if admissible is None:
        mask = np.ones(counts.shape, dtype=bool)
    else:
        mask = as_array(admissible, "admissible", "booleans")
        if mask.shape != counts.shape or mask.dtype != np.bool_:
            raise InvalidInputError(
                f"admissible must be booleans of shape {counts.shape}; got {mask.dtype} of shape "
                f"{mask.shape}"
            )
    stuck = ~mask.any(axis=1)
    if stuck.any():
        raise InvalidInputError(f"admissible rules out every action of state {int(stuck.argmax())}")
    wrong = (counts > 0) & ~mask
    if wrong.any():
        s, a = first_bad(wrong)
        raise InvalidInputError(
            f"the log has action {a} in state {s} {counts[s, a]} times, but admissible rules it out"
        )
    even = np.where(mask, weight / mask.sum(axis=1, keepdims=True), 0.0)
    check_concentrations(even[mask])
    concentration = even + counts.astype(np.float64)
    counts.flags.writeable = concentration.flags.writeable = False
    return Practice(counts, concentration)


def _counts_given(log: Any, n_states: int | None, n_actions: int | None) -> IntArray:
    numbers = as_float_array(log, "log")
    if numbers.ndim == 3 and numbers.shape[0] == numbers.shape[2]:
        bad = (numbers < 0.0) | (numbers != np.round(numbers))
        if bad.any():
            where = first_bad(bad)
            raise InvalidInputError(
                f"log must hold counts, whole numbers that are not negative; got {numbers[where]} "
                f"at index {where}"
            )
        numbers = numbers.sum(axis=2)
    shape = (
        numbers.shape[0] if n_states is None and numbers.ndim else n_states,
        numbers.shape[1] if n_actions is None and numbers.ndim > 1 else n_actions,
    )
    if numbers.ndim != 2 or 0 in numbers.shape or numbers.shape != shape:
        raise InvalidInputError(
            "log must be counts of shape (S, A) or (S, A, S), or a column of states next to "
            f"actions; got shape {numbers.shape}"
            + (
                ""
                if n_states is None and n_actions is None
                else f" with n_states={n_states}, n_actions={n_actions}"
            )
        )
    bad = (numbers < 0.0) | (numbers != np.round(numbers))
    if bad.any():
        s, a = first_bad(bad)
        raise InvalidInputError(
            "log must hold counts, whole numbers that are not negative; got "
            f"{numbers[s, a]} at (s={s}, a={a})"
        )
    if (numbers > LARGEST).any():
        s, a = first_bad(numbers > LARGEST)
        raise InvalidInputError(
            f"log must hold counts of at most {LARGEST:g}; got {numbers[s, a]} at (s={s}, a={a})"
        )
    return numbers.astype(np.int64)


def _counts_of(states: Any, actions: Any, n_states: int | None, n_actions: int | None) -> IntArray:
    if n_states is None or n_actions is None:
        raise InvalidInputError("n_states and n_actions must be given with columns of a log")
    shape = (as_positive_int(n_states, "n_states"), as_positive_int(n_actions, "n_actions"))
    where = as_observed(states, shape[0], "state")
    done = as_observed(actions, shape[1], "action")
    if where.ndim != 1 or where.shape != done.shape:
        raise InvalidInputError(
            f"log and actions must be columns of one length; got shapes {where.shape} and "
            f"{done.shape}"
        )
    counts = np.bincount(where * shape[1] + done, minlength=shape[0] * shape[1])
    return counts.astype(np.int64).reshape(shape)
