"""Level schedules: which quantile of the posterior to plan against, from what has been seen.

A schedule is any object with ``levels(progress)``, a number or an (S, A) array in (0, 1), called
when a pseudo-episode begins. It must depend on ``progress`` alone: then an agent that was saved and
loaded goes on exactly as before.
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


class Schedule(Protocol):
    """Levels for the next plan."""

    def levels(self, progress: Progress) -> float | FloatArray:
        """One level, or one for every pair."""
        ...


@dataclass(frozen=True)
class FixedLevel:
    """The same level always (the paper's BRMDP-α).

    Parameters
    ----------
    alpha : float in (0, 1)
    """

    alpha: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", as_level(self.alpha))

    def levels(self, progress: Progress) -> float:
        """α."""
        return self.alpha


@dataclass(frozen=True)
class AdaptiveLevel:
    """From cautious to curious as data arrive, later where visits are many (the paper's eq.

    Alphak).

    α_k(s,a) = max{1 − δ r_k(s,a) g_k, α̲} with g_k = ln(2k)/√k and r_k(s,a) = N⁺_k(s,a)/mean N⁺_k,
    N⁺ = max{N, 1}, the mean over admissible pairs.

    Parameters
    ----------
    delta : float
        Sensitivity δ > 0.
    floor : float in (0, 1)
        Most cautious level α̲.
    """

    delta: float
    floor: float = 0.2

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", as_positive_number(self.delta, "delta"))
        object.__setattr__(self, "floor", as_level(self.floor, "floor"))

    def levels(self, progress: Progress) -> FloatArray:
        """α_k, (S, A)."""
        k = progress.episode
        adjusted = np.maximum(progress.visits_at_start, 1)
        relative = adjusted / adjusted[progress.admissible].mean()
        scale = math.log(2 * k) / math.sqrt(k)
        # in exact arithmetic below one; rounding must not reach it
        levels: FloatArray = np.clip(1.0 - self.delta * scale * relative, self.floor, BELOW_ONE)
        return levels
