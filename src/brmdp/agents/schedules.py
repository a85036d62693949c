"""Level schedules: which posterior quantile to plan against, given the data so far.

A schedule is any object with a method ``levels(progress)`` that returns a number or an (S, A) array
in (0, 1). It is called when a pseudo-episode begins. The levels must depend on nothing but
``progress``; then an agent that was saved and loaded continues exactly as before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from brmdp._validation import MIN_LEVEL, FloatArray, as_discount, as_level, as_positive_number
from brmdp.agents.progress import Progress

__all__ = [
    "AdaptiveLevel",
    "FallingLevel",
    "FixedLevel",
    "RisingLevel",
    "Schedule",
    "VisitLevel",
]

BELOW_ONE = float(np.nextafter(1.0, 0.0))
"""The largest float below one."""


class Schedule(Protocol):
    """Sets the levels for the next plan.

    Examples
    --------
    A schedule that is cautious in the first 1,000 steps:

    >>> class CautiousAtFirst:
    ...     def levels(self, progress):
    ...         return 0.1 if progress.steps < 1000 else 0.5
    """

    def levels(self, progress: Progress) -> float | FloatArray:
        """One level for all pairs, or an (S, A) array with one per pair."""
        ...


@dataclass(frozen=True)
class FixedLevel:
    """The same level for every plan (the paper's BRMDP-α).

    Parameters
    ----------
    alpha : float in (0, 1)
        Level.

    Examples
    --------
    >>> from brmdp.agents import FixedLevel
    >>> FixedLevel(0.2)
    FixedLevel(alpha=0.2)
    """

    alpha: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", as_level(self.alpha))

    def levels(self, progress: Progress) -> float:
        """α."""
        return self.alpha


@dataclass(frozen=True)
class AdaptiveLevel:
    """Levels that rise from cautious to curious as data arrive.

    This is the schedule of the paper's section "Adaptive Quantile Scheduling". Levels rise later
    for pairs with many visits: α_k(s,a) = max{1 − δ r_k(s,a) g_k, α̲} with g_k = ln(2k)/√k,
    r_k(s,a) = N⁺_k(s,a)/mean N⁺_k and N⁺ = max{N, 1}. The mean is over admissible pairs.

    Parameters
    ----------
    delta : float
        Sensitivity δ > 0.
    floor : float in (0, 1)
        Most cautious level α̲.

    Examples
    --------
    >>> from brmdp.agents import AdaptiveLevel
    >>> AdaptiveLevel(5.0)
    AdaptiveLevel(delta=5.0, floor=0.2)
    """

    delta: float
    floor: float = 0.2

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", as_positive_number(self.delta, "delta"))
        object.__setattr__(self, "floor", as_level(self.floor, "floor"))

    def levels(self, progress: Progress) -> FloatArray:
        """(S, A) levels α_k."""
        k = progress.episode
        adjusted = np.maximum(progress.visits_at_start, 1)
        counted = adjusted[progress.admissible]
        relative = adjusted / (float(counted.sum()) / counted.size)
        scale = math.log(2 * k) / math.sqrt(k)
        # below one in exact arithmetic; rounding must not change that
        wished = 1.0 - self.delta * scale * relative
        levels: FloatArray = np.minimum(np.maximum(wished, self.floor), BELOW_ONE)
        return levels


@dataclass(frozen=True)
class FallingLevel:
    """Levels that fall with time from curious to neutral: end + (start − end)·rate^t.

    t is the number of transitions observed so far.

    Parameters
    ----------
    start, end : float in (0, 1)
        First and last level; an ``end`` above ``start`` lets levels rise.
    rate : float in [0, 1)
        What remains of the difference after each step.

    Examples
    --------
    >>> from brmdp.agents import FallingLevel
    >>> FallingLevel()
    FallingLevel(start=0.9, end=0.5, rate=0.95)
    """

    start: float = 0.9
    end: float = 0.5
    rate: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", as_level(self.start, "start"))
        object.__setattr__(self, "end", as_level(self.end, "end"))
        object.__setattr__(self, "rate", as_discount(self.rate, "rate"))

    def levels(self, progress: Progress) -> float:
        """The level at this step."""
        return self.end + (self.start - self.end) * self.rate**progress.steps


@dataclass(frozen=True)
class VisitLevel:
    """Levels that fall with what is known about a pair: Φ(scale/√(n₀ + n)).

    n₀ is the weight of the prior and n the observations of the pair in the belief; Φ is the normal
    distribution function. The quantile then exceeds the mean by about scale·σ/(n₀ + n), with σ the
    standard deviation of one observation: a bonus that fades like that of BEB.

    Parameters
    ----------
    scale : float
        Curiosity; all levels are above one half.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(4, 1)  # n₀ = 4
    >>> agent = brmdp.agents.fixed_quantile(belief, [[0.0]] * 4, 0.9, alpha=0.5, rng=0)
    >>> schedule = brmdp.agents.VisitLevel()
    >>> schedule.levels(agent.progress.upcoming(agent.belief)).ravel().round(4)
    array([0.5987, 0.5987, 0.5987, 0.5987])
    """

    scale: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_positive_number(self.scale, "scale"))

    def levels(self, progress: Progress) -> FloatArray:
        """(S, A) levels."""
        known = progress.prior_strength + progress.observations
        with np.errstate(divide="ignore", over="ignore"):  # inadmissible pairs know nothing
            levels: FloatArray = np.minimum(ndtr(self.scale / np.sqrt(known)), BELOW_ONE)
        return levels


@dataclass(frozen=True)
class RisingLevel:
    """Levels that rise with time towards one: 1 − delta/(t + 1).

    t is the number of transitions observed so far. With ``delta`` close to one this is the level of
    Bayes-UCB (Kaufmann, Cappé and Garivier 2012).

    Parameters
    ----------
    delta : float in (0, 1)
        How far the first level is below one.

    Examples
    --------
    >>> from brmdp.agents import RisingLevel
    >>> RisingLevel()
    RisingLevel(delta=0.5)
    """

    delta: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", as_level(self.delta, "delta"))

    def levels(self, progress: Progress) -> float:
        """The level at this step."""
        return min(max(1.0 - self.delta / (progress.steps + 1), MIN_LEVEL), BELOW_ONE)
