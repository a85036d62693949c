"""What every batch method starts from: a belief after a log, and the log's own counts."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from brmdp._validation import FloatArray, PolicyArray, as_float_array
from brmdp.batch.plan import BatchPlan
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import mean_of
from brmdp.beliefs.disturbance import Rewards
from brmdp.decisions.policies import as_start_weights, mean_policy
from brmdp.errors import InvalidInputError
from brmdp.pattern import TransitionPattern
from brmdp.planning.planner import Problem
from brmdp.planning.prior import reliance
from brmdp.planning.solution import Solution
from brmdp.planning.text import call_like
from brmdp.risk.base import FixedKernel, RiskMeasure

__all__ = ["Batch", "Clock", "Kernel"]


class Batch:
    """A belief after a log, known rewards, and what some methods need besides: counts, a baseline.

    Parameters
    ----------
    belief, rewards, discount
        As in :func:`brmdp.plan`; the belief has learned from the log.
    start : int or (S,) probabilities
        Where the policy will begin.
    counts : (S, A, S) or (transitions,) array, optional
        How often each possible transition was logged. The frequentist methods and those with a
        baseline need them: a belief does not separate the log from its prior.
    baseline : (S,) actions, (S, A) probabilities or Practice, optional
        The policy that is followed today, known or estimated (its mean is used).

    Examples
    --------
    >>> import brmdp
    >>> from brmdp import batch
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> belief.observe([0, 0, 1], 0, [0, 1, 1])
    >>> counts = [[[1, 1]], [[0, 1]]]
    >>> batch.Batch(belief, [[1.0], [0.0]], 0.5, start=0, counts=counts)
    Batch(2 states, 1 action, 3 logged transitions)
    """

    def __init__(
        self,
        belief: Belief,
        rewards: Rewards,
        discount: float,
        *,
        start: ArrayLike,
        counts: ArrayLike | None = None,
        baseline: Any = None,
    ) -> None:
        self.problem = Problem.of(belief, rewards, discount)
        self.belief = belief
        self.rewards = rewards
        self.discount: float = self.problem.discount
        self.start: FloatArray = as_start_weights(start, self.pattern.n_states)
        self._counts = None if counts is None else _as_counts(counts, self.pattern)
        self._baseline = (
            None if baseline is None else mean_policy(baseline, self.pattern.admissible, "baseline")
        )

    @property
    def pattern(self) -> TransitionPattern:
        """Possible transitions."""
        return self.problem.pattern

    @property
    def counts(self) -> FloatArray:
        """(transitions,) logged transitions; an error if the batch has none."""
        if self._counts is None:
            raise InvalidInputError(
                "counts must be given for this method, which looks at the log without a prior: "
                "Batch(…, counts=…)"
            )
        return self._counts

    @property
    def baseline(self) -> FloatArray:
        """(S, A) probabilities of the baseline; an error if the batch has none."""
        if self._baseline is None:
            raise InvalidInputError(
                "baseline must be given for this method, which improves on it: Batch(…, "
                "baseline=…); brmdp.practice estimates it from a log"
            )
        return self._baseline

    @cached_property
    def visits(self) -> FloatArray:
        """(S·A,) number of logged transitions of each pair."""
        pairs, n = self.pattern.pair_of_transition, self.pattern.n_pairs
        return np.bincount(pairs, weights=self.counts, minlength=n).astype(np.float64)

    @cached_property
    def frequencies(self) -> FloatArray:
        """(transitions,) logged frequencies; of pairs that were never logged, the belief's mean."""
        seen = self.visits[self.pattern.pair_of_transition]
        shares: FloatArray = np.where(
            seen > 0.0, self.counts / np.maximum(seen, 1.0), mean_of(self.belief)
        )
        return shares

    def solve(self, risk: RiskMeasure, policy: PolicyArray | None = None) -> Solution:
        """The best plan under a measure, or the value of a policy."""
        return self.problem.solve(self.belief, risk, policy=policy)

    def targets(self, values: FloatArray) -> FloatArray:
        """(transitions,) targets r + γV."""
        return self.problem.rewards + self.discount * values[self.pattern.next_states]

    def bound_at_start(self, bounds: FloatArray) -> float:
        """The mean of bounds at the start, rounded down."""
        slack = 4.0 * float(np.finfo(np.float64).eps) * float(np.abs(bounds) @ self.start)
        return float(bounds @ self.start) - slack

    def __repr__(self) -> str:
        states, actions = self.pattern.n_states, self.pattern.n_actions
        parts = [
            f"{states} state{'s' * (states != 1)}",
            f"{actions} action{'s' * (actions != 1)}",
        ]
        if self._counts is not None:
            parts.append(f"{self._counts.sum():g} logged transitions")
        if self._baseline is not None:
            parts.append("with a baseline")
        return call_like("Batch", parts)


def _as_counts(counts: ArrayLike, pattern: TransitionPattern) -> FloatArray:
    given = as_float_array(counts, "counts")
    shape = (pattern.n_states, pattern.n_actions, pattern.n_states)
    if given.shape not in (shape, (pattern.n_transitions,)):
        raise InvalidInputError(
            f"counts must have shape {shape} or one entry per possible transition, "
            f"({pattern.n_transitions},); got {given.shape}"
        )
    if (given < 0.0).any() or (given != np.floor(given)).any():
        raise InvalidInputError(
            "counts must be whole numbers, not negative; got "
            f"{given[(given < 0.0) | (given != np.floor(given))][0]}"
        )
    if given.ndim == 1:
        return given.copy()
    entries = pattern.gather(given, "counts")
    if entries.sum() != given.sum():
        raise InvalidInputError(
            f"counts must be of possible transitions; got {given.sum() - entries.sum():g} of others"
        )
    return entries


class Kernel:
    """The expectation under given rows."""

    def __init__(self, entries: FloatArray) -> None:
        self.entries = entries

    def bind(self, belief: Belief) -> FixedKernel:
        """The rows, whatever is believed."""
        return FixedKernel(belief.pattern, self.entries)


class Clock:
    """Takes the processor time of a method since it was made, and writes its result.

    ``believes`` says whether the method's policy follows from the belief, and so from its prior.
    """

    def __init__(self, batch: Batch, *, believes: bool = True) -> None:
        self._begin = time.process_time()
        self._batch, self._believes = batch, believes

    def plan(
        self,
        method: str,
        policy: PolicyArray,
        promise: str,
        assumes: str,
        *,
        confidence: float | None = None,
        bound: float | None = None,
        bounds: FloatArray | None = None,
        margin: float | None = None,
    ) -> BatchPlan:
        """The result, with the time that it took, and how far it rests on the prior."""
        seconds = time.process_time() - self._begin
        one = self._batch
        prior = reliance(one.belief, policy, one.discount, one.start) if self._believes else None
        return BatchPlan(
            method, policy, bound, bounds, promise, confidence, assumes, seconds, margin, prior
        )
