"""What Theorem 1 and the plans made from it say, judged by replications.

The theorem is about limits. That numbers approach them is judged by what is left falling with N,
and by what is left at the largest N being small: a tenth of a standard deviation, of a variance, of
a correlation, and five per cent where both sides of a comparison share their luck.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from brmdp._validation import FloatArray
from brmdp.report.claims import BELOW_ZERO, JudgedClaim, JudgedComparison, Region
from brmdp.report.curves import common_runs
from brmdp.report.estimates import estimate, ratio_samples
from brmdp.runs import Experiment
from brmdp.studies.normality.analysis import (
    PlanRecords,
    Plans,
    Setting,
    Worlds,
    ks_distance,
    pseudo_values,
    squared_bias,
    squared_correlation,
    squared_variance_error,
)

__all__ = ["judge_normality"]

NEUTRAL = 0.5

TENTH = 0.1
"""Of a standard deviation, of a variance, of a correlation: what counts as small."""

FEW, MANY = 100.0, 1_000.0
"""Expected visits N·n̄_s of states seen rarely and often."""


def judge_normality(
    experiment: Experiment, worlds: Worlds, plans: Plans
) -> tuple[JudgedClaim, ...]:
    """What Theorem 1 and the plans made from it say, and what was found."""
    name = experiment.name
    regular = [settings for settings in worlds.values() if not settings[0].hard]
    hard = [settings[-1] for settings in worlds.values() if settings[0].hard]
    last = [settings[-1] for settings in regular]
    claims = (
        JudgedClaim(
            "normality/mean",
            "The mean of √N (I − γP_π)(V_{φ,α} − V) becomes γλ_π.",
            "Squared distance of the means, in standard deviations of the limit, averaged over "
            "levels and states: falls from the smallest N to the largest, and ends below 0.01 (a "
            "tenth of a standard deviation). Steps between are measured.",
            (
                *_shrinking(name, regular, squared_bias, "squared bias"),
                *(_ending(name, one, squared_bias, "squared bias", TENTH**2) for one in last),
            ),
        ),
        JudgedClaim(
            "normality/variance",
            "Its covariance becomes diag((γσ_π)²): the variances.",
            "Squared relative error of the variance, averaged over levels and states: falls from "
            "the smallest N to the largest, and ends below 0.01 (a tenth of the variance). Steps "
            "between are measured.",
            (
                *_shrinking(name, regular, squared_variance_error, "squared error of the variance"),
                *(
                    _ending(
                        name, one, squared_variance_error, "squared error of the variance", TENTH**2
                    )
                    for one in last
                ),
            ),
        ),
        JudgedClaim(
            "normality/independence",
            "Its covariance becomes diag((γσ_π)²): no correlation between states.",
            "Squared correlation of different states at the largest N, averaged over pairs and "
            "levels: below 0.01.",
            tuple(
                _ending(name, one, squared_correlation, "squared correlation", TENTH**2)
                for one in last
            ),
        ),
        JudgedClaim(
            "normality/law",
            "Its law becomes normal.",
            "Kolmogorov–Smirnov distance, averaged over levels and states: falls from the smallest "
            "N to the largest, and ends below what one sample of this size from the limit exceeds "
            "with probability 0.05. Steps between are measured.",
            (
                *_shrinking(name, regular, ks_distance, "distance"),
                *(
                    _ending(name, one, ks_distance, "distance", one.fit.critical_distance)
                    for one in last
                ),
            ),
        ),
        JudgedClaim(
            "normality/neutral",
            "α = ½ is asymptotically neutral.",
            "Squared mean of √N (V_{φ,½} − V), in standard deviations of the limit, averaged over "
            "states: falls from the smallest N to the largest, and ends below 0.01.",
            tuple(
                comparison
                for settings in regular
                if len(settings) > 1
                for comparison in (
                    _fall(
                        name,
                        settings[0],
                        settings[-1],
                        _neutral,
                        squared_bias,
                        "squared shift at ½",
                    ),
                    _judged(
                        name,
                        f"{settings[-1].world}, N = {settings[-1].steps}: squared shift at ½",
                        pseudo_values(squared_bias, _neutral(settings[-1])),
                        Region(high=TENTH**2),
                    ),
                )
            ),
        ),
        JudgedClaim(
            "normality/shift",
            "The level shifts the mean of the value by z_α (I − γP_π)⁻¹γσ_π/√N.",
            "Difference of the mean values at 1 − α and α, averaged over states, over its "
            "prediction at the largest N: within 5 % of 1.",
            tuple(
                _judged(
                    name,
                    f"{one.world}, N = {one.steps}: mean at {1.0 - alpha:g} − mean at {alpha:g}, "
                    "over its prediction",
                    _spread_ratio(one, alpha),
                    Region.around(1.0, 0.05),
                )
                for one in last
                for alpha in _lower_levels(one)
            ),
        ),
        JudgedClaim(
            "normality/bound",
            "In no state is the mean shift larger than γ abs(z_α) max σ_π/((1 − γ)√N).",
            "Largest mean shift over its bound at the largest N, at the state where it is largest: "
            "below 1. Measured only where the limit is not reached.",
            tuple(
                _judged(
                    name,
                    f"{one.world}, N = {one.steps}: largest shift at {one.limit.alpha[level]:g}, "
                    "over its bound",
                    _largest_shift(one, level),
                    None if one.hard else Region(high=1.0),
                )
                for one in (*last, *hard)
                for level in (0, one.limit.alpha.size - 1)
            ),
        ),
        JudgedClaim(
            "normality/level",
            "The level leaves the covariance alone.",
            "Variance of the value at the highest level over that at the lowest, averaged over "
            "states, at the largest N: within 5 % of 1.",
            tuple(
                _judged(
                    name,
                    f"{one.world}, N = {one.steps}: variance at {one.limit.alpha[-1]:g} / variance "
                    f"at {one.limit.alpha[0]:g}",
                    pseudo_values(_variance_ratio, one.deviations),
                    Region.around(1.0, 0.05),
                )
                for one in last
            ),
        ),
        JudgedClaim(
            "normality/visits",
            "The limit needs many visits of every state, not only many transitions.",
            "RiverSwim-6, always right: distance of the states with at least 1,000 expected visits "
            "N·n̄_s less that of those with fewer than 100, at the largest N: below 0. The "
            "distance and the bias of all states together are only measured.",
            tuple(comparison for one in hard for comparison in _rarely_seen(name, one)),
        ),
        JudgedClaim(
            "sample-size/accuracy",
            "The number of observations that the first order predicts brings the cost of caution "
            "to ε (our reading of Theorem 1; the paper makes no such plans).",
            "Mean distance of cost/ε from 1 after collecting what was predicted: falls with every "
            "tenfold of the observations that the plan was made from. Its size, and the "
            "observations needed over those predicted, are only measured.",
            tuple(comparison for group in plans.values() for comparison in _planned(name, group)),
        ),
    )
    return tuple(claim for claim in claims if claim.comparisons)


def _judged(
    experiment: str, quantity: str, samples: FloatArray, claimed: Region | None
) -> JudgedComparison:
    return JudgedComparison.of(experiment, quantity, estimate(samples), claimed)


def _ending(
    experiment: str,
    setting: Setting,
    statistic: Callable[[FloatArray], float],
    called: str,
    limit: float,
) -> JudgedComparison:
    samples = pseudo_values(statistic, setting.standardised)
    return _judged(
        experiment, f"{setting.world}, N = {setting.steps}: {called}", samples, Region(high=limit)
    )


def _shrinking(
    experiment: str,
    worlds: Sequence[Sequence[Setting]],
    statistic: Callable[[FloatArray], float],
    called: str,
) -> tuple[JudgedComparison, ...]:
    """From the smallest N to the largest.

    Single steps, of which the last are lost in noise, are only measured.
    """
    found = []
    for settings in worlds:
        steps = list(pairwise(settings))
        if steps:
            found.append(
                _fall(experiment, settings[0], settings[-1], _standardised, statistic, called)
            )
        if len(steps) > 1:
            found += [
                _fall(experiment, *step, _standardised, statistic, called, claimed=None)
                for step in steps
            ]
    return tuple(found)


def _fall(
    experiment: str,
    shorter: Setting,
    longer: Setting,
    samples_of: Callable[[Setting], FloatArray],
    statistic: Callable[[FloatArray], float],
    called: str,
    claimed: Region | None = BELOW_ZERO,
) -> JudgedComparison:
    mine, theirs = common_runs(longer.run, shorter.run)
    fallen = pseudo_values(statistic, samples_of(longer)[mine]) - pseudo_values(
        statistic, samples_of(shorter)[theirs]
    )
    quantity = f"{longer.world}, N = {longer.steps} − N = {shorter.steps}: {called}"
    return _judged(experiment, quantity, fallen, claimed)


def _standardised(setting: Setting) -> FloatArray:
    return setting.standardised


def _neutral(setting: Setting) -> FloatArray:
    """√N (V_{φ,½} − V) in standard deviations of its limit, (R, B, S)."""
    shift: FloatArray = setting.deviations[:, :, setting.level(NEUTRAL)] / setting.limit.sd
    return shift


def _lower_levels(setting: Setting) -> list[float]:
    """Levels below ½ whose mirror image was taken too."""
    levels = setting.limit.alpha
    return [float(a) for a in levels if a < NEUTRAL and np.isclose(levels, 1.0 - a).any()]


def _spread_ratio(setting: Setting, alpha: float) -> FloatArray:
    """Per run: mean over states of V at 1 − α less V at α, over its prediction."""
    low, high = setting.level(alpha), setting.level(1.0 - alpha)
    spread = (setting.deviations[:, :, high] - setting.deviations[:, :, low]).mean(axis=(1, 2))
    samples: FloatArray = spread / (setting.limit.mean[high] - setting.limit.mean[low]).mean()
    return samples


def _largest_shift(setting: Setting, level: int) -> FloatArray:
    """Per run: the mean shift at the state where it is largest over all runs, over the bound."""
    shifts = setting.deviations[:, :, level].mean(axis=1)
    means = shifts.mean(axis=0)
    state = int(np.argmax(np.abs(means)))
    samples: FloatArray = np.sign(means[state]) * shifts[:, state] / setting.limit.mean_bound[level]
    return samples


def _variance_ratio(deviations: FloatArray) -> float:
    variances = deviations.var(axis=0, ddof=1)
    return float((variances[-1] / variances[0]).mean())


def _rarely_seen(experiment: str, setting: Setting) -> tuple[JudgedComparison, ...]:
    """In the hard world: states seen often against states seen rarely, and all together."""
    often, rarely = setting.expected_visits >= MANY, setting.expected_visits < FEW
    where = f"{setting.world}, N = {setting.steps}"
    measured = tuple(
        _judged(experiment, f"{where}: {called}", pseudo_values(of, setting.standardised), None)
        for called, of in (("distance", ks_distance), ("squared bias", squared_bias))
    )
    if not often.any() or not rarely.any():
        return measured
    z = setting.standardised
    apart = pseudo_values(ks_distance, z[..., often]) - pseudo_values(ks_distance, z[..., rarely])
    quantity = f"{where}: distance, states seen often − states seen rarely"
    return (_judged(experiment, quantity, apart, BELOW_ZERO), *measured)


def _planned(experiment: str, group: Sequence[PlanRecords]) -> list[JudgedComparison]:
    """Plans of one world and way: falling errors, and how large they are at the end."""
    found = []
    for fewer, more in pairwise(group):
        mine, theirs = common_runs(more.run, fewer.run)
        fallen = more.error()[mine] - fewer.error()[theirs]
        quantity = (
            f"{more.label}, {more.observed} − {fewer.observed} observed: mean distance of cost/ε "
            "from 1"
        )
        found.append(_judged(experiment, quantity, fallen, BELOW_ZERO))
    for plan in group:
        where = f"{plan.label}, {plan.observed} observed"
        ratio = ratio_samples(plan.needed.mean(axis=1), plan.predicted.mean(axis=1))
        found.append(
            _judged(experiment, f"{where}: mean distance of cost/ε from 1", plan.error(), None)
        )
        found.append(_judged(experiment, f"{where}: observations needed / predicted", ratio, None))
    return found
