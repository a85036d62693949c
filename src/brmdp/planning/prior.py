"""How far a policy rests on the prior instead of data.

A Dirichlet prior over many successors is worth many observations: Dir(1, …, 1) over 90 states
outweighs the first 90 observations of *every* pair, and says that a machine may jump from any state
of wear to any other. A plan or certificate for such a belief is right about the belief and may
still be useless in the world.

**The rule.** Follow the policy under the posterior mean kernel from a start distribution, and let
d(s) = (1 − γ) Σ_t γ^t Pr(s_t = s) be the share of discounted time spent in s. At a pair, the
prior's share is m/(m + n), where m is its weight in observations and n the number of observations;
it is zero if only one successor is possible, for then the row is known. The prior *outweighs the
data* (:attr:`PriorReliance.outweighs`) if

- the policy spends more than :data:`MAX_OUTWEIGHED_TIME` of its time in pairs with m > n, or
- the prior's share, averaged over that time, is more than :data:`MAX_PRIOR_SHARE`.

A policy that draws its actions spends the share d(s)π(a|s) of its time in the pair (s, a).

A prior that was learned from the log (:func:`brmdp.decisions.learn_prior`) is not all assumption:
other rows supplied part of its weight. That part counts as *borrowed* data here, b: the prior's
share is then (m − b)/(m + n), and it outweighs the data where m − b > n + b. Borrowing rests on the
assumption that rows resemble each other, so its share is stated too.

The rule only looks at the pairs that the policy uses. A policy that avoids an action about which
there are no data is often just as cautious as it should be, and no reason for a warning.

The rule counts time, not money. A pair that was never observed and is rarely met does not trigger
it, however much depends on that pair. If rare states are costly, look at
:attr:`PriorReliance.pairs_never_observed`; a certificate states the number of such pairs. An action
that is taken with any positive probability counts as used, however small that is: a practice that
was smoothed uses every action, and :attr:`PriorReliance.never_observed_visits` says how much of its
time that is about.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, bicgstab

from brmdp._validation import (
    FloatArray,
    IntArray,
    PolicyArray,
    as_actions_or_weights,
    as_discount,
    as_float_array,
)
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import is_builtin, learns_rewards, mean_of, require_belief
from brmdp.errors import InvalidInputError, PriorWarning
from brmdp.mdp import as_start
from brmdp.planning.bellman import solve_in_band
from brmdp.planning.mixture import PolicyRows
from brmdp.planning.text import call_like, percent, wrapped
from brmdp.risk.threads import one_blas_thread

__all__ = [
    "MAX_OUTWEIGHED_TIME",
    "MAX_PRIOR_SHARE",
    "PriorReliance",
    "beginning",
    "check_start",
    "prior_reliance",
    "reliance",
    "reliance_in",
    "separates_prior",
    "warn_about_prior",
]

MAX_OUTWEIGHED_TIME = 0.05
"""Share of its time that a policy may spend where the prior outweighs the data."""

MAX_PRIOR_SHARE = 0.25
"""Largest mean share of the prior that passes without a warning."""

_SMALL = 200
_ACCURACY = 5e-3
_CHEAP_SWEEPS = 200
_MAX_SWEEPS = 2000


@dataclass(frozen=True, eq=False, repr=False)
class PriorReliance:
    """How far a policy rests on the prior instead of data; see :func:`prior_reliance`.

    *Time* is discounted: (1 − γ) Σ_t γ^t Pr(s_t = s), under the posterior mean kernel. Printing the
    object describes it in words.

    Attributes
    ----------
    share : float
        The prior's share in the pairs that the policy uses, averaged over its time.
    outweighed : float
        Share of its time in pairs where the prior outweighs the data.
    never_observed : (k,) integers
        States where the policy takes an action that was never observed there, with whatever
        positive probability, unless only one outcome is possible.
    never_observed_visits : float
        Share of its time in which it takes such an action: its time in these states, if it takes
        only one action in each.
    observations : int
        Number of observations of the pairs that the policy uses. An observation of a shared
        disturbance counts for every pair.
    start : str
        Where time begins: "given", "observed states" (the distribution of the states that the data
        come from) or "uniform".
    accuracy : float
        Bound on the error of the shares of time, which are computed iteratively beyond 200 states.
    n_states : int
        Number of states.
    pairs_never_observed : (k, 2) integers
        The states and actions behind ``never_observed``.
    n_pairs : int
        Number of pairs that the policy uses: one per state, or all with π(a|s) > 0.
    borrowed : float
        Share of the weight that other rows of the same log supplied, averaged over time; 0 unless
        the prior was learned from the log. The share of the prior is without it.
    steps : int or None
        Number of steps that time runs over; None if there is no horizon.

    Examples
    --------
    >>> import brmdp
    >>> world = brmdp.envs.riverswim(6)
    >>> belief = brmdp.DirichletBelief.uniform(6, 2, possible=world)
    >>> belief.observe([0, 1, 2, 3, 4] * 20, 1, [1, 2, 3, 4, 5] * 20)
    >>> found = brmdp.prior_reliance(belief, policy=[1, 1, 1, 1, 1, 1], discount=0.9)
    >>> print(found)  # doctest: +NORMALIZE_WHITESPACE
    In the state-action pairs that the policy uses, the prior has 53.9 % of the weight (averaged
    over its discounted time); for 47.1 % of the time, it outweighs the data.
    Never observed: 1 of its 6 pairs, in which it spends 47.1 % of its time (start: observed
    states).
    >>> found.never_observed
    array([5])
    """

    share: float
    outweighed: float
    never_observed: IntArray
    never_observed_visits: float
    observations: int
    start: str
    accuracy: float
    n_states: int
    pairs_never_observed: IntArray
    n_pairs: int
    borrowed: float = 0.0
    steps: int | None = None

    @property
    def outweighs(self) -> bool:
        """Whether the prior outweighs the data, or may do so within the accuracy of the shares.

        The rule is that of :mod:`brmdp.planning.prior`.
        """
        doubt = self.accuracy if self.accuracy > _ACCURACY else 0.0
        return self.outweighed + doubt > MAX_OUTWEIGHED_TIME or self.share + doubt > MAX_PRIOR_SHARE

    def __str__(self) -> str:
        if self.borrowed:
            first = (
                "The prior was learned from the log. In the state-action pairs that the policy "
                f"uses, {percent(self.borrowed)} of the weight (averaged over its discounted time) "
                "is borrowed from other rows of the log, assuming that rows resemble each other, "
                f"and {percent(self.share)} was assumed outright; for {percent(self.outweighed)} "
                "of the time, what was assumed outweighs the data."
            )
        else:
            first = (
                "In the state-action pairs that the policy uses, the prior has "
                f"{percent(self.share)} of the weight (averaged over its discounted time); for "
                f"{percent(self.outweighed)} of the time, it outweighs the data."
            )
        second = f"{self.unseen()} (start: {self.start})."
        if self.accuracy > _ACCURACY:
            second += f" These shares are known only to within {percent(self.accuracy)}."
        if self.observations == 0 and self.share > 0.0 and not self.borrowed:
            second += (
                " None of its pairs was observed. Data already included in a concentration count "
                "as prior: pass them to observe instead."
            )
        return f"{wrapped(first)}\n{wrapped(second)}"

    def __repr__(self) -> str:
        return call_like(
            "PriorReliance",
            (
                f"share={self.share:.3g}",
                f"outweighed={self.outweighed:.3g}",
                f"never_observed={self.never_observed.size} of {self.n_states} states",
                f"never_observed_visits={self.never_observed_visits:.3g}",
                f"observations={self.observations}",
                f"start={self.start!r}",
                f"accuracy={self.accuracy:.2g}",
                *([f"borrowed={self.borrowed:.3g}"] if self.borrowed else []),
            ),
        )

    def unseen(self) -> str:
        """The pairs that were never observed, in words."""
        over = "" if self.steps is None else f" in {self.steps} steps"
        return (
            f"Never observed: {len(self.pairs_never_observed)} of its {self.n_pairs} pairs{over}, "
            f"in which it spends {percent(self.never_observed_visits)} of its time"
        )


def prior_reliance(
    belief: Belief, policy: ArrayLike, discount: float, *, start: ArrayLike | None = None
) -> PriorReliance | None:
    """How far a policy rests on the prior instead of data.

    Parameters
    ----------
    belief : DirichletBelief, DisturbanceBelief, OutcomeBelief, or another with ``evidence(pairs)``
        Data are what was passed to ``observe``; what a concentration already contains counts as
        prior. In a :class:`brmdp.CensoredDisturbanceBelief`, an "at least" counts in part.
    policy : (S,) integers or (S, A) probabilities
        Action of each state, or π(a|s).
    discount : float in [0, 1)
    start : int or (S,) probabilities, optional
        Where the policy begins. By default the states that the data come from, in proportion, or
        all states equally if there are no data or the belief does not record their states.

    Returns
    -------
    PriorReliance or None
        None if the belief does not separate prior and data, as for scenarios and known kernels.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> belief.observe([0, 1] * 50, 0, [1, 0] * 50)
    >>> found = brmdp.prior_reliance(belief, [0, 0], discount=0.9)
    >>> found.outweighs, round(found.share, 3)
    (False, 0.038)
    """
    require_belief(belief)
    chosen = as_actions_or_weights(policy, belief.pattern.admissible)
    return reliance(belief, chosen, as_discount(discount), start)


def check_start(belief: Belief, start: ArrayLike | None) -> FloatArray | None:
    """(S,) probabilities of the start, if given; a bad one is refused before a long solve."""
    require_belief(belief)
    return None if start is None else beginning(belief, start)[0]


def warn_about_prior(found: PriorReliance | None, what: str, depth: int) -> None:
    """Warn the caller ``depth`` frames up if the prior outweighs the data."""
    if found is not None and found.outweighs:
        remedy = (
            "learn_prior: possible=…, reach=…" if found.borrowed else "DirichletBelief: possible=…"
        )
        warnings.warn(
            f"this {what} rests heavily on the prior. {found}\nCollect more data, or use a prior "
            f"that rules out what is impossible ({remedy}). The prior field of the result holds "
            "these figures",
            PriorWarning,
            stacklevel=depth + 1,
        )


def reliance(
    belief: Belief, policy: PolicyArray, discount: float, start: ArrayLike | None = None
) -> PriorReliance | None:
    """:func:`prior_reliance` for arguments that have been checked."""
    begin, origin = beginning(belief, start)
    if not separates_prior(belief):
        return None
    pattern = belief.pattern
    rows = PolicyRows.of(pattern, policy)
    with nullcontext() if pattern.n_states <= _SMALL else one_blas_thread:
        in_states, accuracy = _discounted_time(belief, rows, discount, begin)
    time = rows.weights * in_states[rows.pairs // pattern.n_actions]
    return reliance_in(belief, rows.pairs, time, origin, accuracy)


def separates_prior(belief: Belief) -> bool:
    """Whether the belief tells its prior from data."""
    return callable(getattr(belief, "evidence", None))


def beginning(belief: Belief, start: ArrayLike | None) -> tuple[FloatArray, str]:
    """(S,) probabilities of the first state, and where they come from."""
    n = belief.pattern.n_states
    if start is not None:
        given = as_start(start, n)
        return np.eye(1, n, given)[0] if isinstance(given, int) else given, "given"
    observed: Any = getattr(belief, "observed_states", None)
    if callable(observed) and separates_prior(belief):
        seen = observed()
        if not is_builtin(belief):
            seen = _checked(seen, n, belief, "observed_states", "state")
        total = float(seen.sum())
        if total > 0.0:
            return seen / total, "observed states"
    return np.full(n, 1.0 / n), "uniform"


def reliance_in(
    belief: Belief,
    pairs: IntArray,
    time: FloatArray,
    origin: str,
    accuracy: float,
    steps: int | None = None,
) -> PriorReliance:
    """How far a policy that spends ``time`` in ``pairs`` rests on the prior."""
    pattern = belief.pattern
    evidence: Any = getattr(belief, "evidence", None)
    prior, data = (
        evidence(pairs) if is_builtin(belief) else _checked_evidence(evidence(pairs), belief, pairs)
    )
    doubtful = ~_known(belief, pairs)
    borrowed = _borrowed(belief, pairs, prior)
    assumed = prior - borrowed
    whole = np.where(doubtful, prior + data, 1.0)
    shares = np.where(doubtful, assumed, 0.0) / whole
    unseen = doubtful & (data == 0)
    return PriorReliance(
        share=float(time @ shares),
        outweighed=float(time[doubtful & (assumed > data + borrowed)].sum()),
        never_observed=np.unique(pairs[unseen] // pattern.n_actions),
        never_observed_visits=float(time[unseen].sum()),
        observations=max(round(float(data.sum())), int(data.any())),
        start=origin,
        accuracy=accuracy,
        n_states=pattern.n_states,
        pairs_never_observed=np.stack(np.divmod(pairs[unseen], pattern.n_actions), axis=1),
        n_pairs=pairs.size,
        borrowed=float(time @ (np.where(doubtful, borrowed, 0.0) / whole)),
        steps=steps,
    )


def _borrowed(belief: Any, pairs: IntArray, prior: FloatArray) -> FloatArray:
    """The part of the prior's weight that other rows of the same log supplied."""
    method = getattr(belief, "borrowed", None)
    if not callable(method):
        return np.zeros(pairs.size)
    if is_builtin(belief):
        found: FloatArray = method(pairs)
        return found
    given = _checked(method(pairs), pairs.size, belief, "borrowed", "state-action pair")
    return np.minimum(given, prior)


def _known(belief: Belief, pairs: IntArray) -> Any:
    """Which of the pairs have only one possible next state, and one reward if that is unknown."""
    pattern = belief.pattern
    single = pattern.widths[pairs] == 1
    if pattern.is_simple or learns_rewards(belief):
        return single
    next_states = pattern.take(pattern.next_states, pairs)
    begins = np.concatenate(([0], np.cumsum(pattern.widths[pairs])[:-1]))
    return np.minimum.reduceat(next_states, begins) == np.maximum.reduceat(next_states, begins)


def _discounted_time(
    belief: Belief, policy: PolicyRows, discount: float, start: FloatArray
) -> tuple[FloatArray, float]:
    """(1 − γ)(I − γPᵀ)⁻¹ start for the policy's mean kernel P, and the accuracy of its sums."""
    n = policy.pattern.n_states
    rows, next_states = policy.shares * policy.take(mean_of(belief)), policy.pattern.next_states
    owners = policy.pattern.pair_of_transition
    arriving = (1.0 - discount) * start
    if n <= _SMALL:
        entries = np.bincount(next_states * n + owners, -discount * rows, n * n)
        system: FloatArray = np.asarray(entries, dtype=np.float64).reshape(n, n)
        system.flat[:: n + 1] += 1.0
        return np.asarray(np.linalg.solve(system, arriving), dtype=np.float64), 1e-9
    back = sparse.csr_array((rows, (next_states, owners)), shape=(n, n))
    time = start
    if discount**_CHEAP_SWEEPS > _ACCURACY:
        operator = LinearOperator(
            (n, n), matvec=lambda x: x - discount * (back @ x), dtype=np.float64
        )
        near, _ = bicgstab(operator, arriving, x0=start, rtol=1e-3, atol=0.0, maxiter=100)
        time = near if np.isfinite(near).all() else start
    for sweep in range(_MAX_SWEEPS):
        # (I − γPᵀ)⁻¹ has 1-norm 1/(1 − γ), and every sweep shrinks the error by γ
        following = arriving + discount * (back @ time)
        error = discount * float(np.abs(following - time).sum()) / (1.0 - discount)
        time = following
        if error <= _ACCURACY:
            break
        if sweep == _CHEAP_SWEEPS:
            # most likely a long chain
            direct = solve_in_band(back, discount, arriving)
            time = time if direct is None else direct
    return time, max(error, 1e-9)


def _checked_evidence(found: Any, belief: Belief, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
    name = type(belief).__name__
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise InvalidInputError(
            f"{name}.evidence must return two arrays, for prior and data; got "
            f"{type(found).__name__}"
        )
    prior, data = (
        _checked(weights, pairs.size, belief, "evidence", "state-action pair") for weights in found
    )
    if (prior + data <= 0.0).any():
        s, a = divmod(int(pairs[np.argmax(prior + data <= 0.0)]), belief.pattern.n_actions)
        raise InvalidInputError(
            f"{name}.evidence must not be zero in both arrays, but is for action {a} in state {s}"
        )
    return prior, data


def _checked(numbers: Any, n: int, belief: Belief, method: str, unit: str) -> FloatArray:
    """One number per state or pair, which must not be negative."""
    source = f"{type(belief).__name__}.{method}"
    array = as_float_array(numbers, source)
    if array.shape != (n,):
        raise InvalidInputError(
            f"{source} must return one number per {unit}, ({n},); got shape {array.shape}"
        )
    if (array < 0.0).any():
        raise InvalidInputError(
            f"{source} must not be negative; got {array.min()} for {unit} number "
            f"{int(array.argmin())}"
        )
    return array
