"""From the replications of ``normality`` to numbers and judged claims.

Theorem 1 is about limits. Claims judge that what is left of a distance falls with N, and that it is
small at the largest N: a tenth of a standard deviation, of a variance or of a correlation, and five
per cent where both sides of a comparison come from the same replications.

Longer trajectories begin with the shorter ones of the same run, so differences between their
lengths are taken run by run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from brmdp._validation import FloatArray
from brmdp.report.claims import BELOW_ZERO, JudgedClaim, JudgedComparison, Region
from brmdp.report.curves import common_runs
from brmdp.report.estimates import Estimate, estimate, ratio_samples
from brmdp.report.findings import Findings
from brmdp.report.summary import heading
from brmdp.report.tables import Table
from brmdp.runs import Experiment, Replications
from brmdp.studies.normality.samples import (
    PlanRecords,
    Plans,
    Setting,
    Worlds,
    ks_distance,
    plans_of,
    pseudo_values,
    settings_of,
    squared_bias,
    squared_correlation,
    squared_variance_error,
)

__all__ = ["analyse"]

NEUTRAL = 0.5

TENTH = 0.1
"""What counts as small: a tenth of a standard deviation, of a variance, of a correlation."""

FEW, MANY = 100.0, 1_000.0
"""Expected visits N·n̄_s below which a state is seen rarely, and from which on it is seen often."""


def analyse(experiment: Experiment, records: Mapping[str, Replications[Any]]) -> Findings:
    """How far quantile values are from their normal limit, and how good planned samples were."""
    worlds, plans = settings_of(records), plans_of(records)
    return Findings(
        summary(experiment, records, worlds, plans),
        table(worlds),
        claims(experiment.name, worlds, plans),
    )


# --- numbers --------------------------------------------------------------------------------------


def summary(
    experiment: Experiment, records: Mapping[str, Replications[Any]], worlds: Worlds, plans: Plans
) -> dict[str, Any]:
    """The content of ``summary.json``: the fit of every setting, and the plans."""
    return {
        **heading(experiment, records),
        "settings": {
            f"{setting.world}/{setting.steps}": _setting_as_json(setting)
            for settings in worlds.values()
            for setting in settings
        },
        "plans": {
            f"{plan.label}, {plan.observed} observed": {
                "cost_error": estimate(plan.error()).as_json(),
                "predicted": estimate(plan.predicted.mean(axis=1)).as_json(),
                "needed": estimate(plan.needed.mean(axis=1)).as_json(),
            }
            for group in plans.values()
            for plan in group
        },
        "seconds_per_run": {name: float(found.seconds.mean()) for name, found in records.items()},
    }


def _setting_as_json(setting: Setting) -> dict[str, Any]:
    fit = setting.fit
    return {
        "replications": fit.replications,
        "levels": setting.limit.alpha.tolist(),
        "expected_visits": setting.expected_visits.tolist(),
        **{name: found.as_json() for name, found in setting.distances.items()},
        "critical_distance": fit.critical_distance,
        "by_level_and_state": {
            "bias": fit.bias.tolist(),
            "bias_error": fit.bias_error.tolist(),
            "variance_ratio": fit.variance_ratio.tolist(),
            "variance_ratio_error": fit.variance_ratio_error.tolist(),
            "distance": fit.distance.tolist(),
        },
    }


def table(worlds: Worlds) -> Table:
    """The three distances for every world and N, with roots taken of squares."""
    rows = []
    for settings in worlds.values():
        for setting in settings:
            found = setting.distances
            rows.append(
                (
                    f"{setting.world}, N = {setting.steps}",
                    f"{setting.expected_visits.min():.3g}",
                    _rooted(found["squared_bias"]),
                    _rooted(found["squared_variance_error"]),
                    _three_decimals(found["distance"]),
                    f"{setting.fit.critical_distance:.3f}",
                )
            )
    header = ("world", "fewest visits", "bias / sd", "variance error", "distance", "critical")
    return Table(header, tuple(rows))


def _rooted(squared: Estimate) -> str:
    """The root of an estimated square, whose interval may reach below zero."""
    mean, error, low, high = (
        np.sqrt(np.maximum(part, 0.0))
        for part in (squared.mean, squared.standard_error, squared.low, squared.high)
    )
    return _three_decimals(Estimate(mean, error, low, high, squared.runs))


def _three_decimals(found: Estimate) -> str:
    ends = "" if np.isnan(found.low) else f" [{float(found.low):.3f}, {float(found.high):.3f}]"
    return f"{float(found.mean):.3f}{ends}"


# --- claims ---------------------------------------------------------------------------------------


def claims(name: str, worlds: Worlds, plans: Plans) -> tuple[JudgedClaim, ...]:
    """What Theorem 1 says, and what plans made from it are worth, judged."""
    regular = [settings for settings in worlds.values() if not settings[0].hard]
    hard = [settings[-1] for settings in worlds.values() if settings[0].hard]
    last = [settings[-1] for settings in regular]
    judged = (
        JudgedClaim(
            "normality/mean",
            "In the limit, the mean of √N (I − γP_π)(V_{φ,α} − V) is γλ_π.",
            "Squared distance of the means, in standard deviations of the limit, averaged over "
            "levels and states: falls from the smallest N to the largest, and ends below 0.01 (a "
            "tenth of a standard deviation). Changes between successive N are only measured.",
            (
                *_shrinking(name, regular, squared_bias, "squared bias"),
                *(_ending(name, one, squared_bias, "squared bias", TENTH**2) for one in last),
            ),
        ),
        JudgedClaim(
            "normality/variance",
            "In the limit, √N (I − γP_π)(V_{φ,α} − V) has covariance diag((γσ_π)²); here, its "
            "variances.",
            "Squared relative error of the variance, averaged over levels and states: falls from "
            "the smallest N to the largest, and ends below 0.01 (a tenth of the variance). Changes "
            "between successive N are only measured.",
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
            "In the limit, √N (I − γP_π)(V_{φ,α} − V) has covariance diag((γσ_π)²): states are "
            "uncorrelated.",
            "Squared correlation of different states at the largest N, averaged over pairs of "
            "states and levels: below 0.01.",
            tuple(
                _ending(name, one, squared_correlation, "squared correlation", TENTH**2)
                for one in last
            ),
        ),
        JudgedClaim(
            "normality/law",
            "In the limit, the law of √N (I − γP_π)(V_{φ,α} − V) is normal.",
            "Kolmogorov–Smirnov distance, averaged over levels and states: falls from the smallest "
            "N to the largest, and ends below the distance that a sample of this size from the "
            "limit exceeds with probability 0.05. Changes between successive N are only measured.",
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
            "Difference between the mean values at 1 − α and at α, averaged over states, divided "
            "by its prediction, at the largest N: within 5 % of 1.",
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
            "Mean shift divided by its bound, in the state where the shift is largest, at the "
            "largest N: below 1. Only measured where the limit is not reached.",
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
            "The level does not change the covariance.",
            "Variance of the value at the highest level divided by that at the lowest, averaged "
            "over states, at the largest N: within 5 % of 1.",
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
            "The limit needs many visits to every state, not only many transitions.",
            "RiverSwim-6, always going right, at the largest N: the distance of the states with at "
            "least 1,000 expected visits N·n̄_s minus that of the states with fewer than 100 is "
            "below 0. Distance and bias of all states together are only measured.",
            tuple(comparison for one in hard for comparison in _rarely_seen(name, one)),
        ),
        JudgedClaim(
            "sample-size/accuracy",
            "The number of observations that the first-order approximation predicts brings the "
            "cost of caution to ε (our reading of Theorem 1; the paper makes no such plans).",
            "Mean distance of cost/ε from 1 after the planned observations: falls with every "
            "tenfold increase of the observations that the plan is made from. Its size, and the "
            "observations needed over those predicted, are only measured.",
            tuple(comparison for group in plans.values() for comparison in _planned(name, group)),
        ),
    )
    return tuple(claim for claim in judged if claim.comparisons)


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
    """The statistic at one N, claimed to be below ``limit``."""
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
    """How the statistic falls from the smallest N to the largest, and from each N to the next.

    Changes between successive N are only measured, as the last ones are lost in noise.
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
    """The statistic at the longer N minus that at the shorter."""
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
    """Levels α below ½ for which there is a level 1 − α too."""
    levels = setting.limit.alpha
    return [float(a) for a in levels if a < NEUTRAL and np.isclose(levels, 1.0 - a).any()]


def _spread_ratio(setting: Setting, alpha: float) -> FloatArray:
    """Mean over states of V at 1 − α minus V at α, over its prediction, for each run."""
    low, high = setting.level(alpha), setting.level(1.0 - alpha)
    spread = (setting.deviations[:, :, high] - setting.deviations[:, :, low]).mean(axis=(1, 2))
    samples: FloatArray = spread / (setting.limit.mean[high] - setting.limit.mean[low]).mean()
    return samples


def _largest_shift(setting: Setting, level: int) -> FloatArray:
    """Mean shift over its bound for each run, in the state with the largest mean over all runs."""
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
    """Plans of one world and way: whether errors fall, and how large they are."""
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
