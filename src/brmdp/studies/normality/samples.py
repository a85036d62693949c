"""The replications of ``normality`` in the form of Theorem 1, and their distances from the limit.

The theorem says that z = (√N (I − γP_π)(V_{φ,α} − V) − γλ_π)/γσ_π becomes standard normal in every
state and at every level. Three distances from that law are averaged over levels and states: the
squared mean of z, the squared error of its variance, and the Kolmogorov–Smirnov distance.

Their intervals come from the jackknife over runs, each of which holds several replications: with θ
the number from all R runs and θ_i that without run i, the pseudo-values R θ − (R − 1) θ_i have the
standard error of θ to first order. Their mean is θ without the part of order 1/R that chance alone
adds to a square. The Kolmogorov–Smirnov distance keeps what chance adds, about 0.87 divided by the
root of the number of replications. It is compared with the distance that a sample from the law
itself exceeds with probability 0.05.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.report.estimates import Estimate, estimate
from brmdp.runs import Replications
from brmdp.runs.program import parameters_of
from brmdp.studies.normality.experiment import NormalityColumns, SampleSizeColumns, problem
from brmdp.theory import NormalFit, NormalityLimit, asymptotic_normality, normal_fit

__all__ = [
    "DISTANCES",
    "PlanRecords",
    "Plans",
    "Setting",
    "Worlds",
    "ks_distance",
    "plans_of",
    "pseudo_values",
    "settings_of",
    "squared_bias",
    "squared_correlation",
    "squared_variance_error",
]

HARD = "riverswim"
"""Beginning of the name of the world that stays far from its limit."""


# --- the limit ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Setting:
    """Replications in one world after N transitions.

    Attributes
    ----------
    world : str
        Name of the world.
    steps : int
        Number of transitions N.
    run : (R,) integers
        Run numbers.
    limit : NormalityLimit
        The limit that Theorem 1 predicts.
    deviations : (R, B, L, S) array
        √N (V_{φ,α} − V) of B replications in each of R runs, at L levels and S states.
    """

    world: str
    steps: int
    run: IntArray
    limit: NormalityLimit
    deviations: FloatArray

    @classmethod
    def of(cls, found: Replications[NormalityColumns]) -> Setting:
        """The setting of a case, from its records."""
        parameters = parameters_of(found.case)
        mdp, policy = problem(parameters["world"], parameters["world_seed"])
        limit = asymptotic_normality(mdp, policy, parameters["levels"])
        shape = (found.run.size, -1, limit.alpha.size, mdp.n_states)
        world = found.case.name.rpartition("/")[0]
        deviations = found.columns.deviation.reshape(shape)
        return cls(world, parameters["steps"], found.run, limit, deviations)

    @property
    def hard(self) -> bool:
        """Whether this is the world that stays far from its limit."""
        return self.world.startswith(HARD)

    @property
    def expected_visits(self) -> FloatArray:
        """Expected visits N·n̄_s of each state, (S,)."""
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
        """All replications together, compared with the standard normal law."""
        return normal_fit(_together(self.standardised), 0.0, 1.0)

    @cached_property
    def distances(self) -> dict[str, Estimate]:
        """Each of :data:`DISTANCES` with its interval."""
        return {
            name: estimate(pseudo_values(distance, self.standardised))
            for name, distance in DISTANCES.items()
        }

    def level(self, alpha: float) -> int:
        """Position of the level closest to ``alpha``."""
        return int(np.argmin(np.abs(self.limit.alpha - alpha)))


Worlds: TypeAlias = Mapping[str, tuple[Setting, ...]]
"""Settings by world, with N increasing."""


def settings_of(records: Mapping[str, Replications[Any]]) -> Worlds:
    """The settings by world, with N increasing."""
    found = [
        Setting.of(one) for one in records.values() if isinstance(one.columns, NormalityColumns)
    ]
    worlds = dict.fromkeys(setting.world for setting in found)
    return {
        world: tuple(
            sorted((one for one in found if one.world == world), key=lambda one: one.steps)
        )
        for world in worlds
    }


def _together(samples: FloatArray) -> FloatArray:
    """The replications of all runs along one axis."""
    return samples.reshape(-1, *samples.shape[2:])


# --- distances from the limit ---------------------------------------------------------------------


def squared_bias(z: FloatArray) -> float:
    """Squared mean of z."""
    return float((z.mean(axis=0) ** 2).mean())


def squared_variance_error(z: FloatArray) -> float:
    """Squared error of the variance of z."""
    return float(((z.var(axis=0, ddof=1) - 1.0) ** 2).mean())


def ks_distance(z: FloatArray) -> float:
    """Kolmogorov–Smirnov distance of z from the standard normal law."""
    return float(normal_fit(z, 0.0, 1.0).distance.mean())


def squared_correlation(z: FloatArray) -> float:
    """Squared correlation between different states, averaged over levels."""
    centred = (z - z.mean(axis=0)) / z.std(axis=0)
    correlations = np.einsum("rls,rlt->lst", centred, centred) / len(z)
    others = ~np.eye(z.shape[2], dtype=bool)
    return float((correlations[:, others] ** 2).mean())


DISTANCES: dict[str, Callable[[FloatArray], float]] = {
    "squared_bias": squared_bias,
    "squared_variance_error": squared_variance_error,
    "distance": ks_distance,
}
"""Distances of z, (n, L, S), from the standard normal law, averaged over levels and states."""


def pseudo_values(statistic: Callable[[FloatArray], float], samples: FloatArray) -> FloatArray:
    """Jackknife pseudo-values of a statistic of replications (R, B, …), one for each run.

    Those of the Kolmogorov–Smirnov distance are centred at the distance itself, which keeps what
    chance adds to it.
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


# --- sample sizes ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PlanRecords:
    """Plans made in one world from the same number of observations.

    Attributes
    ----------
    world : str
        Name of the world.
    way : {"policy", "pairs"}
        How observations are collected: by following the policy, or pair by pair at will.
    observed : int
        Transitions of every pair that were known when the plan was made.
    share : float
        The target ε as a share of the cost of caution when the plan was made.
    run : (R,) integers
        Run numbers.
    predicted, needed : (R, B) arrays
        Further observations that the plan asked for, and that were needed in the end.
    cost_ratio : (R, B) array
        Cost of caution after the planned observations, over ε.
    """

    world: str
    way: str
    observed: int
    share: float
    run: IntArray
    predicted: FloatArray
    needed: FloatArray
    cost_ratio: FloatArray

    @classmethod
    def of(cls, found: Replications[SampleSizeColumns]) -> PlanRecords:
        """The plans of a case, from its records."""
        parameters = parameters_of(found.case)
        columns = found.columns
        return cls(
            found.case.name.removeprefix("sample-size/").partition("/")[0],
            parameters["way"],
            parameters["observed"],
            parameters["share"],
            found.run,
            columns.predicted.astype(np.float64),
            columns.needed.astype(np.float64),
            columns.cost_ratio,
        )

    @property
    def label(self) -> str:
        """World and way."""
        return f"{self.world}, {self.way}"

    @property
    def needed_ratio(self) -> float:
        """Observations needed over observations planned: the ratio of the means."""
        return float(self.needed.mean() / self.predicted.mean())

    def error(self) -> FloatArray:
        """Mean |cost/ε − 1| of each run, (R,)."""
        error: FloatArray = np.abs(self.cost_ratio - 1.0).mean(axis=1)
        return error


Plans: TypeAlias = Mapping[str, tuple[PlanRecords, ...]]
"""Plans by world and way, with the number of observations increasing."""


def plans_of(records: Mapping[str, Replications[Any]]) -> Plans:
    """The plans by world and way, with the number of observations increasing."""
    found = [
        PlanRecords.of(one)
        for one in records.values()
        if isinstance(one.columns, SampleSizeColumns)
    ]
    labels = dict.fromkeys(plan.label for plan in found)
    return {
        label: tuple(
            sorted((one for one in found if one.label == label), key=lambda one: one.observed)
        )
        for label in labels
    }
