"""How far quantile values are from their normal limit, with intervals.

And how good plans of sample sizes were.

Theorem 1 is looked at in its own form: z = (√N (I − γP_π)(V_{φ,α} − V) − γλ_π)/γσ_π, which becomes
standard normal in every state at every level. Three distances from that law are averaged over
levels and states: the squared mean of z, the squared error of its variance, and the
Kolmogorov–Smirnov distance.

Their intervals come from the jackknife over runs, each of which holds several replications: with θ
the number from all R runs and θ_i that without run i, the pseudo-values R θ − (R − 1) θ_i have the
standard error of θ to first order. Their mean is θ without the part of order 1/R that chance alone
adds to a square. The Kolmogorov–Smirnov distance keeps what chance adds, about 0.87 over the root
of the number of replications, and is compared with what a sample of the law itself exceeds with
probability 0.05.

Longer trajectories begin with the shorter ones of the same run, so that differences between their
lengths are taken run by run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.report.estimates import Estimate, estimate
from brmdp.report.replications import heading
from brmdp.report.summary import Table
from brmdp.runs import Experiment, Replications
from brmdp.runs.programs import parameters_of
from brmdp.studies.normality.experiment import problem
from brmdp.theory import NormalFit, NormalityLimit, asymptotic_normality, normal_fit

__all__ = [
    "DISTANCES",
    "PlanRecords",
    "Plans",
    "Setting",
    "Worlds",
    "ks_distance",
    "normality_summary",
    "normality_table",
    "plans_of",
    "pseudo_values",
    "settings_of",
    "squared_bias",
    "squared_correlation",
    "squared_variance_error",
]

HARD = "riverswim"
"""What the world is called whose limit is not reached."""


# --- the samples ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Setting:
    """Replications of one world after N transitions.

    Attributes
    ----------
    world : str
    steps : int
        N.
    run : (R,) integers
    limit : NormalityLimit
    deviations : (R, B, L, S) array
        √N (V_{φ,α} − V) of B replications in each of R runs, at L levels.
    """

    world: str
    steps: int
    run: IntArray
    limit: NormalityLimit
    deviations: FloatArray

    @classmethod
    def of(cls, found: Replications) -> Setting:
        """From the records of a case."""
        parameters = parameters_of(found.case)
        mdp, policy = problem(parameters["world"], parameters["world_seed"])
        limit = asymptotic_normality(mdp, policy, parameters["levels"])
        shape = (found.run.size, -1, limit.alpha.size, mdp.n_states)
        deviations = np.asarray(found.columns["deviation"], dtype=np.float64).reshape(shape)
        return cls(
            found.case.name.rpartition("/")[0], parameters["steps"], found.run, limit, deviations
        )

    @property
    def hard(self) -> bool:
        """Whether it is the world whose limit is not reached."""
        return self.world.startswith(HARD)

    @property
    def expected_visits(self) -> FloatArray:
        """N·n̄_s, (S,)."""
        visits: FloatArray = self.steps * self.limit.visit_frequencies
        return visits

    @cached_property
    def standardised(self) -> FloatArray:
        """The z of the theorem, (R, B, L, S)."""
        limit = self.limit
        z: FloatArray = (limit.one_step(self.deviations) - limit.one_step_mean) / limit.one_step_sd
        return z

    @cached_property
    def fit(self) -> NormalFit:
        """All replications together against the standard normal law."""
        return normal_fit(_together(self.standardised), 0.0, 1.0)

    @cached_property
    def distances(self) -> dict[str, Estimate]:
        """Each of :data:`DISTANCES` with its interval."""
        return {
            name: estimate(pseudo_values(of, self.standardised)) for name, of in DISTANCES.items()
        }

    def level(self, alpha: float) -> int:
        """Position of a level."""
        return int(np.argmin(np.abs(self.limit.alpha - alpha)))


Worlds: TypeAlias = Mapping[str, tuple[Setting, ...]]
"""By world, with N increasing."""


def settings_of(records: Mapping[str, Replications]) -> Worlds:
    """By world, with N increasing."""
    found = [Setting.of(one) for one in records.values() if one.case.program == "normality"]
    worlds = dict.fromkeys(setting.world for setting in found)
    return {
        world: tuple(
            sorted((one for one in found if one.world == world), key=lambda one: one.steps)
        )
        for world in worlds
    }


def _together(samples: FloatArray) -> FloatArray:
    """Replications of all runs behind one another."""
    return samples.reshape(-1, *samples.shape[2:])


# --- distances from the law -----------------------------------------------------------------------


def squared_bias(z: FloatArray) -> float:
    """Of the mean of z."""
    return float((z.mean(axis=0) ** 2).mean())


def squared_variance_error(z: FloatArray) -> float:
    """Of the variance of z."""
    return float(((z.var(axis=0, ddof=1) - 1.0) ** 2).mean())


def ks_distance(z: FloatArray) -> float:
    """Kolmogorov–Smirnov."""
    return float(normal_fit(z, 0.0, 1.0).distance.mean())


def squared_correlation(z: FloatArray) -> float:
    """Between different states, averaged over levels."""
    centred = (z - z.mean(axis=0)) / z.std(axis=0)
    correlations = np.einsum("rls,rlt->lst", centred, centred) / len(z)
    others = ~np.eye(z.shape[2], dtype=bool)
    return float((correlations[:, others] ** 2).mean())


DISTANCES: dict[str, Callable[[FloatArray], float]] = {
    "squared_bias": squared_bias,
    "squared_variance_error": squared_variance_error,
    "distance": ks_distance,
}
"""From z, (n, L, S), to its distances from the standard normal law.

Averaged over levels and states.
"""


def pseudo_values(statistic: Callable[[FloatArray], float], samples: FloatArray) -> FloatArray:
    """Of a statistic of replications (R, B, …), one for each run.

    The distance keeps what chance adds to it.
    """
    runs = len(samples)
    whole = statistic(_together(samples))
    if runs < 2:
        return np.full(runs, whole)
    without = np.array(
        [statistic(_together(np.delete(samples, run, axis=0))) for run in range(runs)]
    )
    values: FloatArray = runs * whole - (runs - 1) * without
    # sup-norms are not smooth, and their bias is not of the order that the jackknife removes
    return values - values.mean() + whole if statistic is ks_distance else values


# --- plans of sample sizes ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PlanRecords:
    """Plans made in one world from the same number of observations.

    Attributes
    ----------
    label : str
        World and way.
    observed : int
        Transitions of every pair that were known when the plan was made.
    run : (R,) integers
    predicted, needed : (R, B) arrays
        Further observations.
    cost_ratio : (R, B) array
        What caution cost after the predicted number, over ε.
    """

    label: str
    observed: int
    run: IntArray
    predicted: FloatArray
    needed: FloatArray
    cost_ratio: FloatArray

    def error(self) -> FloatArray:
        """Mean |cost/ε − 1| of each run, (R,)."""
        error: FloatArray = np.abs(self.cost_ratio - 1.0).mean(axis=1)
        return error


Plans: TypeAlias = Mapping[str, tuple[PlanRecords, ...]]
"""By world and way, with the number of observations increasing."""


def plans_of(records: Mapping[str, Replications]) -> Plans:
    """By world and way, with the number of observations increasing."""
    found = []
    for name, one in records.items():
        if one.case.program == "sample-size":
            columns = [
                np.asarray(one.columns[key], dtype=np.float64)
                for key in ("predicted", "needed", "cost_ratio")
            ]
            label = name.removeprefix("sample-size/").rpartition("/")[0].replace("/", ", ")
            found.append(PlanRecords(label, parameters_of(one.case)["observed"], one.run, *columns))
    labels = dict.fromkeys(plan.label for plan in found)
    return {
        label: tuple(
            sorted((one for one in found if one.label == label), key=lambda one: one.observed)
        )
        for label in labels
    }


# --- summary --------------------------------------------------------------------------------------


def normality_summary(
    experiment: Experiment, records: Mapping[str, Replications], worlds: Worlds, plans: Plans
) -> dict[str, Any]:
    """What ``summary.json`` holds.

    Every setting's fit, level by level and state by state, and the plans.
    """
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


def normality_table(worlds: Worlds) -> Table:
    """The three distances of every world and N, roots taken of squares."""
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
    header = ("world", "rarest state", "bias / sd", "variance error", "distance", "critical")
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
