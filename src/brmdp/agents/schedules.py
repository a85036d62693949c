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

from brmdp._validation import FloatArray, as_level, as_positive_number
from brmdp.agents.progress import Progress

__all__ = ["AdaptiveLevel", "FixedLevel", "Schedule"]

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
