"""The interface that every belief offers to risk measures and planners."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.pattern import TransitionPattern

__all__ = ["Belief"]


class Belief(Protocol):
    """A distribution over transition kernels on a pattern of possible transitions.

    Custom beliefs implement this protocol; deriving from :class:`brmdp.pattern.KernelBelief` is the
    easiest way. What they return is checked before the kernels use it.

    Quantiles and CVaR are exact for a belief with Dirichlet rows
    (:class:`brmdp.risk.dirichlet.DirichletRows`), for a :class:`brmdp.ScenarioBelief` and for a
    known kernel. For any other belief they are computed from draws; the plan's status says so, and
    :func:`brmdp.certify` refuses the belief.

    These members are optional:

    - ``kernel_known = True`` says that every draw equals the mean, as for a
      :class:`brmdp.TabularMDP`. Only then does the mean serve as a quantile.
    - ``evidence(pairs)`` separates prior from data, for the warning that a plan rests on the prior
      (see :class:`brmdp.PriorReliance`). It returns two arrays with one number per pair: the weight
      of the prior, in observations, and the number of observations. ``observed_states()`` returns
      the (S,) number of observations made in each state. ``borrowed(pairs)`` returns the part of
      the prior's weight that was learned from other rows of the same log, and so is no assumption.
    - ``independent_draws`` is a number, for a belief whose draws are not all fresh: what they are
      worth in independent draws, however many are taken. Sampled certificates count no more.
    - ``learns_rewards = True`` says that rewards are part of the belief, as for
      :class:`brmdp.OutcomeBelief`. ``gather_rewards`` then accepts None, ``observe`` takes the
      reward as its fourth argument, and ``pattern`` is the same object, in copies too, until the
      outcomes change.
    - ``caveat`` is a sentence that results from this belief repeat, if it is only an approximation
      of a posterior. Such a belief gets no certificate.
    - ``arrays()`` and ``from_arrays(arrays, source)`` allow agents with this belief to be saved.

    Agents also need ``observe(state, action, next_state)`` and ``copy()``, which returns an
    independent belief.

    Examples
    --------
    A custom belief, with one unknown probability of switching between two states:

    >>> import numpy as np
    >>> import brmdp
    >>> from brmdp.pattern import KernelBelief, full_pattern
    >>> class UnknownSwitch(KernelBelief):
    ...     pattern = full_pattern(n_states=2, n_actions=1)
    ...     rows_independent = False
    ...
    ...     def mean_entries(self):
    ...         return np.array([0.75, 0.25, 0.25, 0.75])
    ...
    ...     def sample_entries(self, n, pairs=None, *, rng):
    ...         p = rng.uniform(0.0, 0.5, size=n)
    ...         draws = np.stack([1 - p, p, p, 1 - p], axis=1)
    ...         return draws if pairs is None else self.pattern.take(draws, pairs)
    >>> plan = brmdp.plan(UnknownSwitch(), [[0.0], [1.0]], 0.9, risk=brmdp.Quantile(0.1))
    >>> plan.status
    'sampled'
    """

    @property
    def pattern(self) -> TransitionPattern:
        """Possible transitions."""
        ...

    @property
    def rows_independent(self) -> bool:
        """Whether rows of different pairs are independent, as Proposition 1 of the paper needs."""
        ...

    def mean_entries(self) -> FloatArray:
        """Mean probability of every possible transition."""
        ...

    def sample_entries(
        self, n: int, pairs: IntArray | None = None, *, rng: np.random.Generator
    ) -> FloatArray:
        """``n`` joint draws of the kernel, (n, transitions).

        If ``pairs`` are given, a draw holds only their rows, one after another.
        """
        ...

    def gather_rewards(self, rewards: Any) -> FloatArray:
        """Lay out rewards, in any form this belief accepts, as one number per transition."""
        ...
