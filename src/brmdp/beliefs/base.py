"""What every belief about the transition kernel offers to risk measures and planners."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.pattern import TransitionPattern

__all__ = ["Belief"]


class Belief(Protocol):
    """A distribution over transition kernels on a fixed pattern of possible transitions.

    Measures that need the law of w·P beyond its mean and its draws look for :class:`DirichletRows`
    or for :class:`ScenarioBelief`; of any other belief quantiles and CVaR are taken from draws,
    and the plan says so (:func:`brmdp.certify` then refuses). What a belief of one's own returns is
    checked where it meets the kernels.

    Three members are optional:

    - ``without_doubt = True`` says that every draw is the mean, as for a known
      :class:`brmdp.TabularMDP`. Only then is the mean taken for a quantile.
    - ``evidence(pairs)`` tells prior and data apart, for the warning that a plan rests on the prior
      (see :class:`brmdp.PriorReliance`): two arrays, the prior's weight in observations and the
      number of observations, one number per pair. ``observed_states()`` is the (S,) number of
      observations made in each state.
    - ``arrays()`` and ``from_arrays(arrays, source)`` let an agent be saved.

    Agents also need ``observe(state, action, next_state)`` and ``copy()``, which gives an
    independent belief.
    """

    @property
    def pattern(self) -> TransitionPattern:
        """Possible transitions."""
        ...

    @property
    def rows_independent(self) -> bool:
        """Whether rows of different pairs are independent (Proposition 1 of the paper needs it)."""
        ...

    def mean_entries(self) -> FloatArray:
        """Mean probability of every possible transition."""
        ...

    def sample_entries(
        self, n: int, rng: np.random.Generator, pairs: IntArray | None = None
    ) -> FloatArray:
        """``n`` joint draws of the kernel,.

        (n, transitions), of the given pairs only (one after another) if given.
        """
        ...

    def gather_rewards(self, rewards: Any) -> FloatArray:
        """Rewards in any accepted form as one number per possible transition."""
        ...
