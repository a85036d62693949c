"""Robustness with sensible value functions (RSVF): sets built around the values that matter.

Petrik and Russel (2019): a set of rows need not hold the true one. For a bound it is enough that,
for the value function V at which the robust plan ends, the worst row is no better than the
posterior quantile of its target, min_p p·w ≤ g(w) with Pr(P·w ≥ g(w)) ≥ 1 − α/(SA): then one step
in the true kernel is, with that probability, no worse than the robust step. So a set must touch the
half-space {p : p·w ≤ g(w)} of each value function in a list. The list begins with the values of the
mean plan. The robust plan is made over the smallest L1 balls that touch all half-spaces, centres
chosen freely; if the plan's own half-spaces are missed, its values join the list, and the balls of
those pairs are fitted anew.

The quantiles are exact here, and each ball comes from a linear program. Whenever the search stops,
the largest excess e = max (min_p p·w − g(w)) over the pairs of the policy lowers the bound by e/(1
− γ), so it holds even if the list was cut short.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from brmdp._validation import FloatArray, as_level, as_positive_int
from brmdp.batch.plan import POSTERIOR, BatchPlan
from brmdp.batch.problem import Batch, Clock
from brmdp.batch.quantiles import BELIEF_IS_RIGHT
from brmdp.beliefs.checked import mean_of
from brmdp.errors import ConvergenceError
from brmdp.planning.guarantees import require_exact_quantiles
from brmdp.planning.mixture import pairs_used
from brmdp.risk.measures import Mean, Quantile
from brmdp.risk.worst_case import WorstCase

__all__ = ["rsvf", "smallest_ball"]

EXCESS = 1e-6
"""An excess of this share of the targets' range is small enough to stop."""

STRAY = 1e-4
"""Price of the centre's distance from the mean, relative to that of the radius; it decides ties."""


def rsvf(batch: Batch, confidence: float = 0.9, *, rounds: int = 20) -> BatchPlan:
    """Robust plan and bound over the smallest balls that touch the half-spaces of value functions.

    Parameters
    ----------
    batch : Batch
    confidence : float in (0, 1)
        1 − α.
    rounds : int
        Largest number of value functions in the list.

    Returns
    -------
    BatchPlan

    Examples
    --------
    >>> import brmdp
    >>> from brmdp import batch
    >>> belief = brmdp.DirichletBelief([[[9, 1], [1, 9]], [[9, 1], [1, 9]]])
    >>> problem = batch.Batch(belief, [[0.0] * 2, [1.0] * 2], 0.5, start=0)
    >>> found = batch.rsvf(problem)
    >>> found.policy, round(found.bound, 4)
    (array([1, 1]), 0.6637)
    """
    clock = Clock(batch)
    alpha = 1.0 - as_level(confidence, "confidence")
    most = as_positive_int(rounds, "rounds")
    require_exact_quantiles(batch.belief)
    pattern = batch.pattern
    quantile = Quantile(alpha / pattern.pairs.size).bind(batch.belief)

    def half_spaces(targets: FloatArray) -> FloatArray:
        levels = np.zeros(pattern.n_pairs)
        error = quantile.evaluate(targets, pattern.pairs, levels)
        return levels - error

    mean = mean_of(batch.belief)
    centre, radii = mean.copy(), np.zeros(pattern.n_pairs)
    listed = [batch.targets(batch.solve(Mean()).values)]
    thresholds = [half_spaces(listed[0])]
    wrong = pattern.pairs
    while True:
        for pair in wrong:
            own = slice(pattern.indptr[pair], pattern.indptr[pair + 1])
            if own.stop - own.start > 1:
                centre[own], radii[pair] = smallest_ball(
                    mean[own],
                    np.array([targets[own] for targets in listed]),
                    np.array([levels[pair] for levels in thresholds]),
                )
        measure = WorstCase(radii.reshape(pattern.n_states, pattern.n_actions), centre=centre)
        solution = batch.solve(measure)
        targets = batch.targets(solution.values)
        levels = half_spaces(targets)
        worst = np.zeros(pattern.n_pairs)
        error = measure.bind(batch.belief).evaluate(targets, pattern.pairs, worst)
        excess = np.maximum(worst + error - levels, 0.0)
        slack = EXCESS * max(float(np.ptp(targets)), np.finfo(np.float64).tiny)
        wrong = pattern.pairs[excess[pattern.pairs] > slack]
        if not wrong.size or len(listed) >= most:
            break
        listed.append(targets)
        thresholds.append(levels)
    used = pairs_used(solution.policy, pattern.n_actions)
    lost = float(excess[used].max()) / (1.0 - batch.discount)
    bounds = solution.values - solution.error_bound - solution.policy_gap - lost
    return clock.plan(
        "RSVF",
        solution.policy,
        POSTERIOR,
        BELIEF_IS_RIGHT,
        confidence=1.0 - alpha,
        bound=batch.bound_at_start(bounds),
        bounds=bounds,
    )


def smallest_ball(
    mean: FloatArray, targets: FloatArray, thresholds: FloatArray
) -> tuple[FloatArray, float]:
    """Centre and radius of the smallest L1 ball that touches {p : p·w ≤ g} for each (w, g).

    Among equally small ones, the centre near the mean. ``targets`` are (K, n), ``thresholds`` (K,).
    """
    count, n = targets.shape
    # g may lie below min w by the error of a quantile; and scales must not matter to the program
    least, most = targets.min(axis=1), targets.max(axis=1)
    spread = np.where(most > least, most - least, 1.0)
    scaled = (targets - least[:, None]) / spread[:, None]
    within = np.clip((thresholds - least) / spread, 0.0, 1.0)
    # variables: centre, its distance from the mean by entry, radius; then K times a row of the ball
    # and its distance from the centre by entry
    size = 2 * n + 1 + 2 * n * count
    price = np.zeros(size)
    price[n : 2 * n], price[2 * n] = STRAY, 1.0
    unit = np.eye(n)
    upper, limits, sums = [], [], [np.concatenate((np.ones(n), np.zeros(size - n)))[None]]

    def at_most(limit: FloatArray, *blocks: tuple[int, FloatArray]) -> None:
        rows = np.zeros((limit.size, size))
        for begin, block in blocks:
            rows[:, begin : begin + block.shape[1]] += block
        upper.append(rows)
        limits.append(limit)

    for sign in (1.0, -1.0):
        at_most(sign * mean, (0, sign * unit), (n, -unit))
    for k in range(count):
        row = 2 * n + 1 + 2 * n * k
        away = row + n
        at_most(within[k : k + 1], (row, scaled[k : k + 1]))
        at_most(np.zeros(1), (away, np.ones((1, n))), (2 * n, -np.ones((1, 1))))
        for sign in (1.0, -1.0):
            at_most(np.zeros(n), (row, sign * unit), (0, -sign * unit), (away, -unit))
        whole = np.zeros((1, size))
        whole[0, row : row + n] = 1.0
        sums.append(whole)
    found = linprog(
        price,
        A_ub=np.concatenate(upper),
        b_ub=np.concatenate(limits),
        A_eq=np.concatenate(sums),
        b_eq=np.ones(len(sums)),
        method="highs",
    )
    if found.x is None:
        raise ConvergenceError(f"the linear program of a ball was not solved: {found.message}")
    centre = np.maximum(found.x[:n], 0.0)
    return centre / centre.sum(), max(float(found.x[2 * n]), 0.0)
