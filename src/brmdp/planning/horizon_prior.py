"""How far a policy for a finite horizon rests on the prior instead of data.

The rule is that of :mod:`brmdp.planning.prior`, and time is that of the H steps: d(s,a) is
proportional to Σ_h γ^h Pr(s_h = s, a_h = a), under the mean kernel from the start. A policy that
depends on the step may use several actions in a state, so pairs are counted in place of states.

Without discounting and horizon, time is the expected number of visits until the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from brmdp._validation import FloatArray, IntArray, as_float_array
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import is_builtin, mean_of
from brmdp.errors import InvalidInputError
from brmdp.mdp import as_start
from brmdp.planning.endings import absorbing_kernel, ends_of, expected_times, solve_linear
from brmdp.planning.prior import PriorReliance
from brmdp.planning.text import percent

__all__ = ["HorizonReliance", "reliance_over", "reliance_until_end"]


@dataclass(frozen=True, eq=False, repr=False)
class HorizonReliance(PriorReliance):
    """How far a policy for H steps rests on the prior; see :class:`brmdp.PriorReliance`.

    Attributes
    ----------
    steps : int
        Number of steps H.
    n_pairs : int
        Number of different pairs (state, action) that the policy uses at any step.
    never_observed_pairs : (k, 2) integers
        Those (state, action) that were never observed, unless only one outcome is possible;
        ``never_observed`` holds their states.

    Examples
    --------
    >>> import brmdp
    >>> world = brmdp.envs.riverswim(6)
    >>> belief = brmdp.DirichletBelief.uniform(6, 2, possible=world)
    >>> belief.observe([0, 1, 2, 3, 4] * 20, 1, [1, 2, 3, 4, 5] * 20)
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", brmdp.PriorWarning)
    ...     plan = brmdp.plan(belief, world.rewards, 1.0, risk=brmdp.Mean(), horizon=20, start=0)
    >>> plan.prior.n_pairs, plan.prior.never_observed_pairs.tolist()
    (11, [[5, 1]])
    """

    steps: int = 0
    n_pairs: int = 0
    never_observed_pairs: IntArray | None = None

    def unseen(self) -> str:
        """The pairs that were never observed, in words."""
        count = 0 if self.never_observed_pairs is None else len(self.never_observed_pairs)
        return (
            f"Never observed: {count} of the {self.n_pairs} pairs that it uses in {self.steps} "
            f"steps, in which it spends {percent(self.never_observed_visits)} of its time"
        )


def reliance_over(
    belief: Belief, stages: NDArray[Any], discount: float, start: ArrayLike | None = None
) -> HorizonReliance | None:
    """How far a policy, (H, S) actions or (H, S, A) probabilities, rests on the prior.

    None if the belief does not separate prior and data.
    """
    begin, origin = _begin(belief, start)
    if not callable(getattr(belief, "evidence", None)):
        return None
    used = _used(stages, belief.pattern.n_actions)
    visits = _visits(belief, stages, discount, begin)
    unseen, figures = _figures(belief, used, visits[used])
    n_actions = belief.pattern.n_actions
    return HorizonReliance(
        never_observed=np.unique(used[unseen] // n_actions),
        start=origin,
        accuracy=1e-9,
        n_states=belief.pattern.n_states,
        steps=len(stages),
        n_pairs=int(used.size),
        never_observed_pairs=np.stack(np.divmod(used[unseen], n_actions), axis=1),
        **figures,
    )


def reliance_until_end(
    belief: Belief, rewards: FloatArray, policy: IntArray, start: ArrayLike | None = None
) -> PriorReliance | None:
    """The same for one action per state until the end, without discounting.

    Time is the expected number of visits to the states that are no ends, as a share of all.
    """
    begin, origin = _begin(belief, start)
    if not callable(getattr(belief, "evidence", None)):
        return None
    pattern = belief.pattern
    n = pattern.n_states
    used = np.arange(n) * pattern.n_actions + policy
    going = ~ends_of(pattern, rewards)
    rows = pattern.take(mean_of(belief), used)
    kernel = sparse.csr_array(absorbing_kernel(pattern, rows, used, ~going)[np.flatnonzero(going)])
    back = sparse.csr_array(kernel.T)
    visits = np.zeros(n)
    visits[going] = solve_linear(back, begin[going])
    total = float(visits.sum())
    # what is left over, times the expected time to the end, bounds the error of the visits
    left = float(np.abs(begin[going] + back @ visits[going] - visits[going]).sum())
    times, least = expected_times(kernel)
    known = least > 0.0 and total > 0.0
    off = 2.0 * left * float(times.max()) / (least * total) if known else float(total > 0.0)
    unseen, figures = _figures(belief, used, visits / total if total > 0.0 else visits)
    return PriorReliance(
        never_observed=np.flatnonzero(unseen),
        start=origin,
        accuracy=max(off, 1e-9) if np.isfinite(visits).all() else np.inf,
        n_states=n,
        **figures,
    )


def _figures(
    belief: Belief, used: IntArray, time: FloatArray
) -> tuple[NDArray[np.bool_], dict[str, Any]]:
    """Which of the pairs were never observed, and the figures of a PriorReliance."""
    evidence: Any = getattr(belief, "evidence", None)
    prior, data = (
        _checked(weights, used.size, belief, "evidence") for weights in _two(evidence(used), belief)
    )
    pattern = belief.pattern
    doubtful = np.array([_several(pattern, pair) for pair in used.tolist()], dtype=bool)
    if (doubtful & (prior + data <= 0.0)).any():
        where = int(used[np.argmax(doubtful & (prior + data <= 0.0))])
        raise InvalidInputError(
            f"{type(belief).__name__}.evidence must not be zero in both arrays, but is for the "
            f"pair of state {where // pattern.n_actions}"
        )
    share = np.where(doubtful, prior, 0.0) / np.where(doubtful, prior + data, 1.0)
    unseen = doubtful & (data == 0)
    return unseen, {
        "share": float(time @ share),
        "outweighed": float(time[doubtful & (prior > data)].sum()),
        "never_observed_visits": float(time[unseen].sum()),
        "observations": round(float(data.sum())),
    }


def _begin(belief: Belief, start: ArrayLike | None) -> tuple[FloatArray, str]:
    n = belief.pattern.n_states
    if start is not None:
        given = as_start(start, n)
        return (np.eye(1, n, given)[0] if isinstance(given, int) else given), "given"
    observed: Any = getattr(belief, "observed_states", None)
    if callable(observed):
        seen = _checked(observed(), n, belief, "observed_states")
        if seen.sum() > 0.0:
            return seen / seen.sum(), "observed states"
    return np.full(n, 1.0 / n), "uniform"


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


def _several(pattern: Any, pair: int) -> bool:
    """Whether the pair has more than one possible next state."""
    row = pattern.next_states[pattern.indptr[pair] : pattern.indptr[pair + 1]]
    return bool((row != row[0]).any())


def _two(found: Any, belief: Belief) -> tuple[Any, Any]:
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise InvalidInputError(
            f"{type(belief).__name__}.evidence must return two arrays, for prior and data; got "
            f"{type(found).__name__}"
        )
    return found[0], found[1]


def _checked(numbers: Any, n: int, belief: Belief, method: str) -> FloatArray:
    if is_builtin(belief):
        return np.asarray(numbers, dtype=np.float64)
    source = f"{type(belief).__name__}.{method}"
    array = as_float_array(numbers, source)
    if array.shape != (n,) or (array < 0.0).any():
        raise InvalidInputError(
            f"{source} must return {n} numbers that are not negative; got shape {array.shape}"
        )
    return array
