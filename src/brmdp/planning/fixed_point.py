"""The solver: value iteration, and Newton's method with value iteration as its safety net.

T is a γ-contraction in the maximum norm (monotone, and T(V + c) = TV + γc), so with residual =
max|TV − V|

    max|TV − V*| ≤ γ·residual/(1 − γ),

whatever produced V. Value iteration sets V ← TV. Newton sets V ← V + d (see ``bellman``). The
quantile is neither convex nor concave in V, so a Newton step is accepted only if it lowers the
residual to at most γ times the previous one; otherwise a value-iteration step is taken, which
always does.

On a long chain that test rejects steps that make progress: the policy improves, but the residual
does not fall until information has travelled the whole chain. So once PATIENCE steps have failed to
halve the residual, steps become wide (see ``bellman``), and up to EXCURSION of them are taken in a
row without descent. The lowest residual seen must then be at most γ times the one before; if it is
not, the excursion is undone, value iteration continues from where it began, and the next excursion
waits twice as long. So the residual falls by γ at every step except in excursions, whose number is
logarithmic: the iteration cannot cycle.

Between sweeps over all actions, once the greedy policy has settled, Newton iterates on the rows of
that policy alone. They cost a fraction 1/A of a sweep, but only a full sweep can certify. For a
linear measure and a small problem Newton is policy iteration, done in one compiled call before the
sweep that certifies it.

Rounding and quadrature perturb T by at most η, which every bound includes. So no bound falls below
η/(1 − γ); :class:`Accuracy` says what is required by default.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from brmdp._kernels import linear
from brmdp._validation import FloatArray, IntArray
from brmdp.planning.bellman import FLOOR, Bellman, Sweep
from brmdp.risk.base import APPROXIMATE

__all__ = ["METHODS", "RELATIVE", "Accuracy", "FixedPoint", "iterate", "settle_ties", "tie_width"]

METHODS = ("newton", "value-iteration")

PATIENCE = 10
"""Number of steps that may fail to halve the residual before all actions are linearised."""

EXCURSION = 6
"""Number of wide steps in a row that need not lower the residual."""

RELATIVE = 1e-8
"""The error bound required by default, relative to max|V|."""

COARSEST = 1e-3
"""The coarsest default if arithmetic cannot resolve more; beyond it, a plan has failed."""

TINY = 1e-280
"""The smallest default error bound; below it, products of rounding errors underflow to zero."""

FINE = 1e-6
"""Ties are settled if the tolerance is at most FINE × max|V|; a coarser one asks for speed."""

SETTLING_STEPS = 6

UNSTATED = 1e-11
"""How far values of an approximate measure, which reports no error, may depend on its start.

This is relative to max|V|.
"""


@dataclass(frozen=True)
class Accuracy:
    """The error bound that is good enough.

    An absolute bound must be met, or the solver has failed. The default is RELATIVE × max|V|, or
    four times what arithmetic resolves, (η + rounding)/(1 − γ), if that is more. The latter
    counts only up to COARSEST × max|V|, or, for values that cancel, up to RELATIVE × the largest
    reward of the actions taken (:func:`coarsest`).
    """

    absolute: float | None
    relative: float = RELATIVE

    def enough(self, bellman: Bellman, sweep: Sweep) -> float:
        """The error bound required at this sweep."""
        if self.absolute is not None:
            return self.absolute
        largest = float(np.abs(sweep.best).max())
        wanted = max(self.relative * largest, TINY)
        resolved = 4.0 * (sweep.numerical_error + FLOOR * sweep.size) / (1.0 - bellman.discount)
        if resolved <= wanted:
            return wanted
        return max(wanted, min(resolved, coarsest(bellman, sweep.pairs, largest)))


def coarsest(bellman: Bellman, pairs: IntArray, largest: float) -> float:
    """The coarsest default error bound, for values up to ``largest`` and the pairs taken.

    Where nothing is paid and all values are zero, what other actions pay gives the scale: the
    smallest amount, so that a huge penalty does not.
    """
    paid = float(np.abs(bellman.pattern.take(bellman.rewards, pairs)).max())
    if largest == 0.0 and paid == 0.0:
        amounts = np.abs(bellman.rewards[bellman.rewards != 0.0])
        return COARSEST * float(amounts.min(initial=np.inf)) if amounts.size else 0.0
    return max(COARSEST * largest, RELATIVE * paid)


def tie_width(bellman: Bellman, sweep: Sweep) -> float:
    """The largest difference of q that is not resolved: 2η + 2γ × min(η, FLOOR × max|V|)/(1 − γ).

    Two equal actions may be computed with errors of η each, and rounding leaves V itself uncertain
    by the second term. Every path of the iteration computes the same operator, so η contributes
    nothing more to that uncertainty. The width is at most twice any error bound, so a difference
    that a bound resolves is never a tie. An approximate measure reports no η.
    """
    largest = float(np.abs(sweep.best).max())
    approximate = bellman.risk.basis == APPROXIMATE
    noise = UNSTATED * largest if approximate else min(FLOOR * largest, sweep.numerical_error)
    return 2.0 * (sweep.numerical_error + bellman.discount * noise / (1.0 - bellman.discount))


@dataclass(slots=True)
class FixedPoint:
    """The last full sweep, the number of sweeps, the required error bound, and whether it holds."""

    sweep: Sweep
    sweeps: int
    tolerance: float
    converged: bool


def iterate(
    bellman: Bellman,
    initial: FloatArray,
    accuracy: Accuracy,
    method: str,
    max_iterations: int,
    policy_pairs: IntArray | None = None,
) -> FixedPoint:
    """Iterate from ``initial`` until the error bound is small enough, at most ``max_iterations``.

    If ``policy_pairs``, the pairs of a good policy, are given, Newton first refines ``initial`` on
    these alone.
    """
    discount = bellman.discount
    values = initial
    sweeps = 0
    if policy_pairs is not None:
        values, sweeps = _refine(bellman, values, policy_pairs, accuracy, max_iterations - 1)
    elif method == "newton":
        values, sweeps = bellman.settle(values, max_iterations - 1)
    now = bellman.sweep(values, bellman.pairs)
    sweeps += 1
    known = policy_pairs
    is_linear = bellman.risk.fixed_entries() is not None
    slow = waiting = 0
    wait = 1
    while True:
        tolerance = accuracy.enough(bellman, now)
        converged = now.bound(discount) <= tolerance
        stuck = not math.isfinite(now.residual) or now.residual <= FLOOR * now.size
        hopeless = now.residual <= now.numerical_error and now.numerical_error > tolerance * (
            1.0 - discount
        )
        if converged or stuck or hopeless or sweeps >= max_iterations:
            return FixedPoint(now, sweeps, tolerance, converged)
        if method == "newton" and slow >= PATIENCE:
            if waiting == 0:
                lowest, spent = _excursion(bellman, now, max_iterations - sweeps)
                sweeps += spent
                if lowest.residual <= discount * now.residual or sweeps >= max_iterations:
                    now = lowest
                    continue
                waiting, wait = wait, 2 * wait
            waiting -= 1
        elif method == "newton":
            values = bellman.newton(now)
            # refining pays off once the policy has settled
            if known is not None and not is_linear and np.array_equal(known, now.pairs):
                values, spent = _refine(
                    bellman, values, now.pairs, accuracy, max_iterations - sweeps - 1
                )
                sweeps += spent
            known = now.pairs
            following = bellman.sweep(values, bellman.pairs)
            sweeps += 1
            last_chance = sweeps >= max_iterations
            slow += not following.residual <= 0.5 * now.residual
            if following.residual <= (1.0 if last_chance else discount) * now.residual:
                now = following
                continue
            if last_chance:
                return FixedPoint(now, sweeps, tolerance, False)
        now = bellman.sweep(now.best, bellman.pairs)
        sweeps += 1


def _excursion(bellman: Bellman, begin: Sweep, max_sweeps: int) -> tuple[Sweep, int]:
    """Wide steps until the residual is at most γ times that of ``begin``.

    Returns the sweep with the lowest residual, and the number of sweeps.
    """
    now = lowest = begin
    spent = 0
    while spent < min(max_sweeps, EXCURSION):
        spent += 1
        now = bellman.sweep(bellman.wide_newton(now), bellman.pairs)
        if now.residual < lowest.residual:
            lowest = now
        if not math.isfinite(now.residual) or now.residual <= bellman.discount * begin.residual:
            break
    return lowest, spent


def settle_ties(bellman: Bellman, found: FixedPoint, max_iterations: int) -> FixedPoint:
    """Apply Newton down to rounding if the error bound leaves open whether actions are tied.

    The ties then do not depend on the path that led here: differences between paths are far below
    the width of a tie, unless a difference of values happens to equal that width.
    """
    now = kept = found.sweep
    sweeps, discount = found.sweeps, bellman.discount
    if not found.converged or found.tolerance > FINE * now.size:
        return found
    for _ in range(min(SETTLING_STEPS, max_iterations - sweeps)):
        in_doubt = tie_width(bellman, now) + 2.0 * now.bound(discount)
        if now.residual <= 0.25 * FLOOR * now.size or not linear.any_rival(
            now.q, now.best, in_doubt
        ):
            break
        values = bellman.newton(now, precise=True)
        # The step itself tells how far V is off. The residual does not: it may come from a single
        # state that is pulled back and forth between two states of equal value, up to rounding.
        if float(np.abs(values - now.values).max()) <= 0.25 * FLOOR * now.size / (1.0 - discount):
            break
        now = bellman.sweep(values, bellman.pairs)
        sweeps += 1
        if now.bound(discount) <= found.tolerance:
            kept = now
    return FixedPoint(kept, sweeps, found.tolerance, True)


def _refine(
    bellman: Bellman, values: FloatArray, pairs: IntArray, accuracy: Accuracy, max_sweeps: int
) -> tuple[FloatArray, int]:
    """Newton on T^π for the policy of ``pairs`` until the next residual should be small enough.

    Returns V and the number of sweeps.
    """
    last = np.inf
    for spent in range(max_sweeps):
        now = bellman.sweep(values, pairs)
        # bring the residual on the policy's rows down to where Newton's next step suffices
        enough = accuracy.enough(bellman, now) * (1.0 - bellman.discount)
        if not now.residual <= bellman.discount * last:
            return now.best, spent + 1
        if now.residual <= enough or now.residual <= FLOOR * now.size:
            return now.best, spent + 1
        last = now.residual
        values = bellman.newton(now)
        if last * last <= 1e-2 * enough * now.size:
            # Newton squares the residual: the next full sweep will confirm
            return values, spent + 1
    return values, max(max_sweeps, 0)
