"""The level schedule of the continuous setting.

Cautious where the posterior is sure, curious where it is not.

    α_k(s,a) = clip(1 − δ · c_k(s,a)/c̄_k · g_k, α̲, ᾱ),    c_k = 1/(u_k + ε),    g_k = ln(2k)/√k,

where u_k(s,a) is the posterior standard deviation of the Bellman target under the previous network
and c̄_k the mean of c_k over the normalisation set (the paper's appendix "Continuous-State
FrozenLake Experiment", with ᾱ = 0.95). Where the transition is known, as from the goal, the ratio
is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brmdp._validation import FloatArray, as_level, as_positive_number
from brmdp.errors import InvalidInputError

__all__ = ["UncertaintyLevel"]


@dataclass(frozen=True)
class UncertaintyLevel:
    """Levels from the uncertainty of the targets.

    Parameters
    ----------
    delta : float
        Sensitivity δ > 0.
    floor, ceiling : float in (0, 1)
        α̲ and ᾱ, between which the levels are clipped.
    epsilon : float
        ε as a fraction of the mean uncertainty over the normalisation set, so that the levels
        depend on neither the scale of the rewards nor how far the posterior has contracted.

    Notes
    -----
    The paper leaves ε open, and it decides the levels almost alone: of the lake's 60 normalisation
    pairs four have u_k = 0 exactly, because their only movement leaves the map, and they contribute
    4/(60 ε) to c̄_k. The smaller ε, the smaller the ratio of every other pair and the higher its
    level. With the paper's δ = 10 and 900 pseudo-episodes, a pair of average uncertainty stays at
    the floor for ε ≥ 0.1 and is above 0.85 from the start for ε ≤ 0.001; for ε = 0.01, the default,
    its level rises from the floor (k = 30) over 0.4 (k = 100) to 0.75 (k = 900): the schedule runs
    through its range.
    """

    delta: float
    floor: float = 0.2
    ceiling: float = 0.95
    epsilon: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", as_positive_number(self.delta, "delta"))
        object.__setattr__(self, "epsilon", as_positive_number(self.epsilon, "epsilon"))
        for name in ("floor", "ceiling"):
            object.__setattr__(self, name, as_level(getattr(self, name), name))
        if self.floor > self.ceiling:
            raise InvalidInputError(
                f"floor must not exceed ceiling; got {self.floor} and {self.ceiling}"
            )

    def levels(
        self,
        episode: int,
        uncertainty: FloatArray,
        at_centres: FloatArray,
        known: NDArray[np.bool_],
    ) -> FloatArray:
        """α_k.

        Parameters
        ----------
        episode : int
            k ≥ 1.
        uncertainty : (n, A) array
            u_k of the states asked for.
        at_centres : (C, A) array
            u_k of the normalisation set.
        known : (n,) booleans
            States with a known transition.
        """
        scale = float(at_centres.mean())
        # without any uncertainty all pairs are alike
        constant = self.epsilon * scale if scale > 0.0 else 1.0
        ratio = 1.0 / (uncertainty + constant) / np.mean(1.0 / (at_centres + constant))
        ratio[known] = 1.0
        levels: FloatArray = np.clip(
            1.0 - self.delta * ratio * math.log(2 * episode) / math.sqrt(episode),
            self.floor,
            self.ceiling,
        )
        return levels
