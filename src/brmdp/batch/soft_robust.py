"""Soft-robust plans: the mean and the tail of a policy's value over posterior draws.

Lobo, Ghavamzadeh and Petrik (2020) maximise

    (1 − λ)·E[v] + λ·ρ[v],    v the policy's value at the start in one draw of the kernel,

with ρ the CVaR: the kernel is uncertain once, not at every step anew. The best policy is hard to
find (NP-hard, they show), so this is a search. Given a policy, its objective has a weight for each
draw (for the CVaR, λ/α more in the tail), and with these the gain of each action in each state is
linear to first order. All states are switched at once to their best actions if that raises the
objective, otherwise one state is, the most promising first; the search ends when no switch of one
state among the most promising does. It begins with the best of several plans. The entropic measure
−ln E[e^{−βv}]/β takes the place of the CVaR if asked for (Hau, Petrik and Ghavamzadeh 2023).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from brmdp._validation import (
    FloatArray,
    IntArray,
    Seed,
    as_level,
    as_positive_int,
    as_positive_number,
    rng_for,
)
from brmdp.batch.plan import NOTHING, BatchPlan
from brmdp.batch.problem import Batch, Clock
from brmdp.beliefs.checked import draws_of
from brmdp.decisions.certificate import candidate_policies
from brmdp.errors import InvalidInputError

__all__ = ["soft_robust"]

TRIES = 25
"""Switches of one state that are tried before the search ends."""

ROUNDS = 200
SMALLEST_GAIN = 1e-9
"""Gains below this share of the objective's size do not count."""

MOST = 400_000_000


def soft_robust(
    batch: Batch,
    *,
    weight: float = 0.5,
    measure: Literal["cvar", "entropic"] = "cvar",
    level: float = 0.1,
    aversion: float = 1.0,
    draws: int = 200,
    rng: Seed = None,
) -> BatchPlan:
    """Search for a policy with a good mean and a good tail over posterior draws; no bound.

    Parameters
    ----------
    batch : Batch
    weight : float in (0, 1)
        λ, the weight of the tail.
    measure : {"cvar", "entropic"}
        ρ.
    level : float in (0, 1)
        α of the CVaR: the mean of the worst α.
    aversion : float > 0
        β of the entropic measure, in one over the unit of the rewards.
    draws : int
        Number of posterior draws of the kernel.
    rng : numpy.random.Generator or seed, optional
        Random stream of the draws.

    Returns
    -------
    BatchPlan
        Certify its policy with :func:`brmdp.certify` if you need a bound.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp import batch
    >>> belief = brmdp.DirichletBelief([[[9, 1], [1, 9]], [[9, 1], [1, 9]]])
    >>> problem = batch.Batch(belief, [[0.0] * 2, [1.0] * 2], 0.5, start=0)
    >>> batch.soft_robust(problem, rng=0).policy
    array([1, 1])
    """
    clock = Clock(batch)
    share, alpha = as_level(weight, "weight"), as_level(level, "level")
    beta, n = as_positive_number(aversion, "aversion"), as_positive_int(draws, "draws")
    if measure not in ("cvar", "entropic"):
        raise InvalidInputError(f"measure must be 'cvar' or 'entropic'; got {measure!r}")
    size = n * max(batch.pattern.n_transitions, batch.pattern.n_states**2)
    if size > MOST:
        raise InvalidInputError(
            f"draws × the size of a kernel must be at most {MOST:,} numbers; got {size:,}"
        )
    source = rng_for("soft-robust plans", rng)
    search = _Search(batch, draws_of(batch.belief, n, source), share, measure, alpha, beta)
    starts = candidate_policies(
        batch.belief, batch.rewards, batch.discount, 1.0 - alpha, rng=source
    )
    policy = search.climb(max(starts.values(), key=search.objective))
    return clock.plan(
        f"soft-robust, {measure}",
        policy,
        NOTHING,
        "The objective is estimated from draws and searched, not solved; it is no bound.",
    )


class _Search:
    """Local search over deterministic policies in a fixed sample of kernels."""

    def __init__(
        self,
        batch: Batch,
        kernels: FloatArray,
        share: float,
        measure: str,
        level: float,
        aversion: float,
    ) -> None:
        self.batch, self.kernels = batch, kernels
        self.share, self.measure, self.level, self.aversion = share, measure, level, aversion
        pattern = batch.pattern
        self._paid = np.add.reduceat(
            kernels * batch.problem.rewards, pattern.indptr[pattern.pairs], axis=1
        )
        self._place = np.full(pattern.n_pairs, -1)
        self._place[pattern.pairs] = np.arange(pattern.pairs.size)

    def climb(self, policy: IntArray) -> IntArray:
        """Switch actions as long as the objective rises."""
        policy = np.array(policy)
        best = self.objective(policy)
        for _ in range(ROUNDS):
            gains = self._gains(policy)
            chosen = np.argmax(gains, axis=1)
            gain = gains.max(axis=1)
            states = np.flatnonzero(gain > 0.0)
            needed = best + SMALLEST_GAIN * max(abs(best), 1.0)
            order = states[np.argsort(-gain[states], kind="stable")]
            for some in (states, *(order[k : k + 1] for k in range(min(TRIES, order.size)))):
                trial = policy.copy()
                trial[some] = chosen[some]
                value = self.objective(trial)
                if value > needed:
                    policy, best = trial, value
                    break
            else:
                break
        return policy

    def objective(self, policy: IntArray) -> float:
        """The soft-robust objective of a policy."""
        values = np.sort(self._values(policy)[0] @ self.batch.start)
        if self.measure == "cvar":
            tail = float(values @ self._tail(values.size)) / self.level
        else:
            low = values[0]
            tail = float(
                low - np.log(np.exp(-self.aversion * (values - low)).mean()) / self.aversion
            )
        return (1.0 - self.share) * float(values.mean()) + self.share * tail

    def _tail(self, n: int) -> FloatArray:
        """Weights of the increasing values in the lower tail; their sum is the level."""
        return np.clip(self.level - np.arange(n) / n, 0.0, 1.0 / n)

    def _weights(self, at_start: FloatArray) -> FloatArray:
        """Derivative of the objective with respect to the value in each draw."""
        n = at_start.size
        order = np.argsort(at_start, kind="stable")
        tail = np.empty(n)
        if self.measure == "cvar":
            tail[order] = self._tail(n) / self.level
        else:
            tail = np.exp(-self.aversion * (at_start - at_start.min()))
            tail /= tail.sum()
        return (1.0 - self.share) / n + self.share * tail

    def _values(self, policy: IntArray) -> tuple[FloatArray, FloatArray]:
        """Values (n, S) in every draw, and the systems (n, S, S) that they solve."""
        batch, pattern = self.batch, self.batch.pattern
        n_states = pattern.n_states
        pairs = np.arange(n_states) * pattern.n_actions + policy
        owner = np.repeat(np.arange(n_states), pattern.widths[pairs])
        cells = owner * n_states + pattern.take(pattern.next_states, pairs)
        systems = np.zeros((n_states * n_states, len(self.kernels)))
        np.add.at(systems, cells, -batch.discount * pattern.take(self.kernels, pairs).T)
        whole = np.ascontiguousarray(systems.T).reshape(-1, n_states, n_states)
        whole += np.eye(n_states)
        paid = self._paid[:, self._place[pairs]]
        values = np.linalg.solve(whole, paid[..., None])[..., 0].astype(np.float64)
        return values, whole

    def _gains(self, policy: IntArray) -> FloatArray:
        """(S, A) first-order gain of taking each action; −inf for those that cannot be."""
        batch, pattern = self.batch, self.batch.pattern
        values, systems = self._values(policy)
        weights = self._weights(values @ batch.start)
        begin = np.broadcast_to(batch.start[:, None], (*values.shape, 1))
        visits = np.linalg.solve(systems.transpose(0, 2, 1), begin)[..., 0]
        begins = pattern.indptr[pattern.pairs]
        following = np.add.reduceat(self.kernels * values[:, pattern.next_states], begins, axis=1)
        states = pattern.pairs // pattern.n_actions
        advantage = self._paid + batch.discount * following - values[:, states]
        gains = np.full(pattern.n_pairs, -np.inf)
        gains[pattern.pairs] = weights @ (visits[:, states] * advantage)
        found = gains.reshape(pattern.n_states, pattern.n_actions)
        found[np.arange(pattern.n_states), policy] = 0.0
        return found
