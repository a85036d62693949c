"""Safe policy improvement with baseline bootstrapping (SPIBB).

The plan is made for the logged frequencies, and departs from the baseline only where the log knows
enough. *SPIBB* (Laroche, Trichelair and Tachet des Combes 2019): pairs that were logged fewer than
N∧ times are taken as often as by the baseline (Π_b), or no more often (Π_≤b). *Soft-SPIBB*
(Nadjahi, Laroche and Tachet des Combes 2019): Σ_a e(s,a)·|π(a|s) − π_b(a|s)| ≤ ε in every state,
with errors e(s,a) = √(2/N(s,a) · ln(2SA/δ)).

All are policy iterations with their own improvement step. That of Soft-SPIBB is a linear program
over a weighted L1 ball around the baseline, the same as the worst case of a robust plan with the
signs turned (:mod:`brmdp._kernels.ambiguity`), so it is solved exactly; Approx-Soft-SPIBB, made
because the program was expensive, is not needed.

Pairs that were never logged have no frequencies. Where a policy takes them (only where the baseline
does), the belief's mean row stands in, which the sources do not need because they call the values
of such pairs zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from brmdp._validation import BoolArray, FloatArray, as_level, as_positive_int, as_positive_number
from brmdp.batch.plan import BASELINE, NOTHING, BatchPlan
from brmdp.batch.problem import Batch, Clock, Kernel
from brmdp.errors import ConvergenceError, InvalidInputError
from brmdp.risk.worst_case import least_mean

__all__ = ["soft_spibb", "spibb"]

ROUNDS = 1_000
SMALLEST_GAIN = 1e-11
"""Improvements below this share of the largest value are rounding."""


def spibb(
    batch: Batch,
    confidence: float = 0.9,
    *,
    fewest: int = 10,
    variant: Literal["b", "<=b"] = "b",
) -> BatchPlan:
    """SPIBB: bootstrap rarely logged pairs with the baseline.

    Parameters
    ----------
    batch : Batch
        With counts and a baseline.
    confidence : float in (0, 1)
        1 − δ of the promise.
    fewest : int
        N∧: pairs logged less often follow the baseline.
    variant : {"b", "<=b"}
        Take such pairs exactly as often as the baseline, or at most as often.

    Returns
    -------
    BatchPlan
        For "b", the promise of Theorem 2 of Laroche and others (2019) for a baseline that is known:
        the policy is at most ``margin`` = 4·V_max/(1 − γ)·√(2/N∧·ln(2SA·2^S/δ)) below the baseline,
        less what it gains in the logged frequencies; V_max = max|r|/(1 − γ). It is far larger than
        any value unless N∧ is in the thousands.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp import batch
    >>> belief = brmdp.DirichletBelief.uniform(1, 2)
    >>> problem = batch.Batch(
    ...     belief, [[0.0, 1.0]], 0.5, start=0, counts=[[[40], [4]]], baseline=[[0.9, 0.1]]
    ... )
    >>> batch.spibb(problem, fewest=5).policy  # 4 observations are too few to do it more often
    array([[0.9, 0.1]])
    >>> batch.spibb(problem, fewest=4).policy
    array([[0., 1.]])
    """
    clock = Clock(batch, believes=False)
    delta = 1.0 - as_level(confidence, "confidence")
    enough = as_positive_int(fewest, "fewest")
    if variant not in ("b", "<=b"):
        raise InvalidInputError(f"variant must be 'b' or '<=b'; got {variant!r}")
    safe = (batch.visits >= enough).reshape(batch.baseline.shape) & batch.pattern.admissible
    step = _as_often if variant == "b" else _no_more_often
    policy, gained = _improved(batch, lambda q: step(q, batch.baseline, safe))
    name = f"SPIBB, Π_{'b' if variant == 'b' else '≤b'}, {enough}"
    if variant != "b":
        return clock.plan(name, policy, NOTHING, "Its authors prove no promise for this variant.")
    n_states, largest = batch.pattern.n_states, float(np.abs(batch.problem.rewards).max())
    events = math.log(2.0 * batch.pattern.pairs.size / delta) + n_states * math.log(2.0)
    deviation = math.sqrt(2.0 / enough * events)
    margin = 4.0 * largest / (1.0 - batch.discount) ** 2 * deviation - gained
    return clock.plan(
        name,
        policy,
        BASELINE,
        "It assumes that the baseline is known and was followed, and that the next states of each "
        "pair are independent draws.",
        confidence=1.0 - delta,
        margin=margin,
    )


def soft_spibb(batch: Batch, confidence: float = 0.9, *, distance: float = 1.0) -> BatchPlan:
    """Soft-SPIBB with an exact improvement step: depart from the baseline as far as errors allow.

    Parameters
    ----------
    batch : Batch
        With counts and a baseline.
    confidence : float in (0, 1)
        1 − δ in the errors e(s,a).
    distance : float > 0
        ε: the largest Σ_a e(s,a)·|π(a|s) − π_b(a|s)|.

    Returns
    -------
    BatchPlan
        Without a promise: Scholl, Dietrich, Otte and Udluft (2022) show that the one of the source
        does not hold.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp import batch
    >>> belief = brmdp.DirichletBelief.uniform(1, 2)
    >>> problem = batch.Batch(
    ...     belief, [[0.0, 1.0]], 0.5, start=0, counts=[[[40], [4]]], baseline=[[0.9, 0.1]]
    ... )
    >>> batch.soft_spibb(problem, distance=0.5).policy.round(3)
    array([[0.62, 0.38]])
    """
    clock = Clock(batch, believes=False)
    delta = 1.0 - as_level(confidence, "confidence")
    farthest = as_positive_number(distance, "distance")
    pattern = batch.pattern
    chance = math.log(2.0 * pattern.pairs.size / delta)
    known = batch.visits.reshape(batch.baseline.shape) > 0.0
    errors = np.sqrt(2.0 * chance / np.maximum(batch.visits, 1.0)).reshape(known.shape)

    def step(q: FloatArray) -> FloatArray:
        policy = batch.baseline.copy()
        for s in range(pattern.n_states):
            free = known[s]  # what was never logged is taken as often as before
            mass = float(policy[s, free].sum())
            if free.sum() > 1 and mass > 0.0:
                row, _ = least_mean(
                    policy[s, free] / mass, errors[s, free], farthest / mass, -q[s, free]
                )
                policy[s, free] = mass * row
        return policy

    policy, _ = _improved(batch, step)
    return clock.plan(
        f"Soft-SPIBB, {farthest:g}",
        policy,
        NOTHING,
        "The promise of its authors was shown not to hold.",
    )


def _improved(batch: Batch, step: Callable[[FloatArray], FloatArray]) -> tuple[FloatArray, float]:
    """Policy iteration from the baseline; returns the policy and its gain at the start."""
    kernel, policy = Kernel(batch.frequencies), batch.baseline
    first: float | None = None
    for _ in range(ROUNDS):
        solution = batch.solve(kernel, policy)
        at_start = float(solution.values @ batch.start)
        first = at_start if first is None else first
        q = np.where(batch.pattern.admissible, solution.q_values, 0.0)
        proposed = step(q)
        gain = (proposed * q).sum(axis=1) - (policy * q).sum(axis=1)
        better = gain > SMALLEST_GAIN * float(np.abs(q).max())
        if not better.any():
            return policy, at_start - first
        policy = np.where(better[:, None], proposed, policy)
        policy = policy / policy.sum(axis=1, keepdims=True)
    raise ConvergenceError(f"policy iteration did not end in {ROUNDS} rounds")


def _as_often(q: FloatArray, baseline: FloatArray, safe: BoolArray) -> FloatArray:
    """Π_b: all the mass of well-known actions goes to the best of them."""
    policy = np.where(safe, 0.0, baseline)
    states = np.flatnonzero(safe.any(axis=1))
    best = np.argmax(np.where(safe, q, -np.inf), axis=1)[states]
    policy[states, best] = 1.0 - policy[states].sum(axis=1)
    return np.maximum(policy, 0.0)


def _no_more_often(q: FloatArray, baseline: FloatArray, safe: BoolArray) -> FloatArray:
    """Π_≤b: from the best action down, little-known ones get at most the baseline's mass."""
    policy = np.zeros_like(baseline)
    for s in range(len(q)):
        left = 1.0
        for a in np.argsort(-q[s], kind="stable"):
            policy[s, a] = left if safe[s, a] else min(baseline[s, a], left)
            left -= policy[s, a]
    policy /= policy.sum(axis=1, keepdims=True)
    return policy
