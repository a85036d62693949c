"""The one solver: value iteration, and Newton with value iteration as its safety net.

T is a γ-contraction in the maximum norm (monotone, and T(V + c) = TV + γc), so with residual = max|TV − V|

    max|TV − V*| ≤ γ·residual/(1 − γ),

whatever produced V. Value iteration sets V ← TV. Newton sets V ← V + d (see ``bellman``); the quantile is neither convex nor
concave in V, so a step is accepted only if it lowers the residual at least to γ times the previous one, otherwise a
value-iteration step is taken, which always does. Between sweeps over all actions Newton may iterate on the rows of the
greedy policy alone, which costs a fraction 1/A of a sweep.

Rounding and quadrature perturb T by at most η, which every bound includes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brmdp._kernels import linear
from brmdp._validation import FloatArray, IntArray
from brmdp.planning.bellman import Bellman

__all__ = ["METHODS", "FixedPoint", "iterate"]

METHODS = ("newton", "value-iteration")

FLOOR = 16.0 * np.finfo(np.float64).eps
"""Residuals below FLOOR × max|V| are rounding: iterating further cannot help."""


@dataclass
class FixedPoint:
    """Where an iteration stands: V, its targets, q, the greedy policy, TV and the residual."""

    values: FloatArray
    targets: FloatArray
    q: FloatArray
    policy: IntArray
    best: FloatArray
    residual: float
    numerical_error: float
    sweeps: int
    converged: bool = False

    def bound(self, discount: float) -> float:
        """Bound on max|TV − V*|."""
        return (discount * self.residual + self.numerical_error) / (1.0 - discount)


def _sweep(bellman: Bellman, values: FloatArray, pairs: IntArray, sweeps: int) -> FixedPoint:
    targets = bellman.targets(values)
    q, error = bellman.backup(targets, pairs)
    policy = np.empty(values.size, dtype=np.int64)
    best = np.empty(values.size)
    residual = float(linear.greedy(q, values, policy, best))
    return FixedPoint(values, targets, q, policy, best, residual, error, sweeps)


def iterate(bellman: Bellman, initial: FloatArray, tolerance: float, method: str, max_iterations: int) -> FixedPoint:
    """Iterate from ``initial`` until the error bound is at most ``tolerance``, or give up after ``max_iterations`` sweeps.

    The result's last sweep covers all of ``bellman.pairs``.
    """
    discount = bellman.discount
    now = _sweep(bellman, initial, bellman.pairs, 1)
    while True:
        now.converged = now.bound(discount) <= tolerance
        at_floor = now.residual <= FLOOR * max(float(np.abs(now.best).max()), float(np.abs(now.values).max()))
        if now.converged or at_floor or now.sweeps >= max_iterations or not np.isfinite(now.residual):
            return now
        if method == "newton":
            values, sweeps = _policy_newton(bellman, now, tolerance, max_iterations)
            following = _sweep(bellman, values, bellman.pairs, sweeps + 1)
            if following.residual <= discount * now.residual:
                now = following
                continue
            now.sweeps = following.sweeps
        now = _sweep(bellman, now.best, bellman.pairs, now.sweeps + 1)


def _policy_newton(
    bellman: Bellman, start: FixedPoint, tolerance: float, max_iterations: int
) -> tuple[FloatArray, int]:
    """Newton steps on T^π for the greedy π of ``start`` until its residual is small enough; returns (V, sweeps)."""
    discount = bellman.discount
    pairs = bellman.pairs_of(start.policy)
    now = start
    values = start.values + bellman.newton_step(now.targets, now.q, now.policy, now.best - now.values)
    sweeps = start.sweeps
    # Worth while only where a policy sweep is cheaper than a full one and the measure is not linear.
    if bellman.pairs.size == pairs.size or bellman.risk.approximation() is None:
        return values, sweeps
    while sweeps < max_iterations - 1:
        following = _sweep(bellman, values, pairs, sweeps + 1)
        sweeps = following.sweeps
        if not following.residual <= discount * now.residual:
            return start.best if now is start else now.values, sweeps
        now = following
        if now.bound(discount) <= 0.5 * tolerance:
            return now.best, sweeps
        values = now.values + bellman.newton_step(now.targets, now.q, now.policy, now.best - now.values)
        if now.residual * now.residual <= 1e-4 * tolerance * (1.0 - discount):
            # Newton squares the residual: the next full sweep will confirm
            return values, sweeps
    return values, sweeps
