"""How far a policy for a finite horizon rests on the prior instead of data.

The rule is that of :mod:`brmdp.planning.prior`, and time is that of the H steps: d(s,a) is
proportional to Σ_h γ^h Pr(s_h = s, a_h = a), under the mean kernel from the start. A policy that
depends on the step may use several actions in a state.

Without discounting and horizon, time is the expected number of visits until the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from brmdp._validation import FloatArray, IntArray, PolicyArray
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import mean_of
from brmdp.planning.endings import absorbing_kernel, ends_of, expected_times, solve_linear
from brmdp.planning.mixture import PolicyRows
from brmdp.planning.prior import PriorReliance, beginning, reliance_in, separates_prior

__all__ = ["reliance_over", "reliance_until_end"]


def reliance_over(
    belief: Belief, stages: NDArray[Any], discount: float, start: ArrayLike | None = None
) -> PriorReliance | None:
    """How far a policy, (H, S) actions or (H, S, A) probabilities, rests on the prior.

    None if the belief does not separate prior and data.
    """
    begin, origin = beginning(belief, start)
    if not separates_prior(belief):
        return None
    used = _used(stages, belief.pattern.n_actions)
    visits = _visits(belief, stages, discount, begin)
    return reliance_in(belief, used, visits[used], origin, 1e-9, len(stages))


def reliance_until_end(
    belief: Belief, rewards: FloatArray, policy: PolicyArray, start: ArrayLike | None = None
) -> PriorReliance | None:
    """The same for (S,) actions or (S, A) probabilities until the end, without discounting.

    Time is the expected number of visits to the states that are no ends, as a share of all.
    """
    begin, origin = beginning(belief, start)
    if not separates_prior(belief):
        return None
    pattern = belief.pattern
    rows = PolicyRows.of(pattern, policy)
    going = ~ends_of(pattern, rewards)
    mean = rows.shares * rows.take(mean_of(belief))
    states = np.arange(pattern.n_states)
    absorbed = absorbing_kernel(rows.pattern, mean, states, ~going)
    kernel = sparse.csr_array(absorbed[np.flatnonzero(going)])
    back = sparse.csr_array(kernel.T)
    visits = np.zeros(pattern.n_states)
    visits[going] = solve_linear(back, begin[going])
    total = float(visits.sum())
    # what is left over, times the expected time to the end, bounds the error of the visits
    left = float(np.abs(begin[going] + back @ visits[going] - visits[going]).sum())
    times, least = expected_times(kernel)
    known = least > 0.0 and total > 0.0
    off = 2.0 * left * float(times.max()) / (least * total) if known else float(total > 0.0)
    accuracy = max(off, 1e-9) if np.isfinite(visits).all() else np.inf
    shares = visits / total if total > 0.0 else visits
    time = rows.weights * shares[rows.pairs // pattern.n_actions]
    return reliance_in(belief, rows.pairs, time, origin, accuracy)


def _used(stages: NDArray[Any], n_actions: int) -> IntArray:
    """The pairs that the policy uses at any step, increasing."""
    # a policy that is the same at every step repeats one row without copying it
    stages = stages[:1] if stages.strides[0] == 0 else stages
    if stages.ndim == 3:
        return np.flatnonzero((stages > 0.0).any(axis=0))
    return np.unique(np.arange(stages.shape[1]) * n_actions + stages)


def _visits(belief: Belief, stages: NDArray[Any], discount: float, begin: FloatArray) -> FloatArray:
    """(pairs,) shares of discounted time over the H steps, under the mean kernel."""
    pattern = belief.pattern
    n, n_actions = pattern.n_states, pattern.n_actions
    step = pattern.csr(mean_of(belief)).T.tocsr()
    total = np.zeros(pattern.n_pairs)
    now, weight, weights = begin, 1.0, 0.0
    for stage in stages:
        pairs = np.zeros(pattern.n_pairs)
        if stage.ndim == 1:
            pairs[np.arange(n) * n_actions + stage] = now
        else:
            pairs[:] = (now[:, None] * stage).reshape(-1)
        total += weight * pairs
        weights += weight
        weight *= discount
        now = step @ pairs
    visits: FloatArray = total / weights
    return visits
