"""The level schedule for continuous states: cautious where the belief is sure, curious elsewhere.

It is that of the paper's appendix "Continuous-State FrozenLake Experiment".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from brmdp._validation import BoolArray, FloatArray, as_level, as_positive_number
from brmdp.errors import InvalidInputError

__all__ = ["UncertaintyLevel"]


@dataclass(frozen=True)
class UncertaintyLevel:
    """Levels that depend on the uncertainty of the targets.

        α_k(s,a) = clip(1 − δ · c_k(s,a)/c̄_k · g_k, α̲, ᾱ),
        c_k = 1/(u_k + ε·ū_k),    g_k = ln(2k)/√k,

    where u_k(s,a) is the posterior standard deviation of the Bellman target under the previous
    network, and ū_k and c̄_k are the means of u_k and c_k over the normalisation set. The ratio is
    one where the transition is known, as it is from the goal.

    Parameters
    ----------
    delta : float
        Sensitivity δ > 0.
    floor, ceiling : float in (0, 1)
        α̲ and ᾱ, the smallest and the largest level.
    epsilon : float
        ε > 0. Because it is multiplied by the mean uncertainty ū_k, the levels depend neither on
        the scale of the rewards nor on how far the belief has contracted.

    Notes
    -----
    The paper does not state ε, although ε almost determines the levels. Of the lake's 60
    normalisation pairs four have u_k = 0 exactly, because their only movement leaves the map, and
    they contribute 4/(60 ε·ū_k) to c̄_k. The smaller ε is, the smaller is the ratio of every other
    pair and the higher is its level. With the paper's δ = 10 and 900 pseudo-episodes, a pair of
    average uncertainty stays at the floor for ε ≥ 0.1 and is above 0.85 from the start for ε ≤
    0.001. For the default ε = 0.01 its level rises from the floor (k = 30) through 0.4 (k = 100) to
    0.75 (k = 900), so the schedule covers its whole range.

    Examples
    --------
    >>> from brmdp.continuous import UncertaintyLevel
    >>> UncertaintyLevel(10.0)
    UncertaintyLevel(delta=10.0, floor=0.2, ceiling=0.95, epsilon=0.01)
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
        known: BoolArray,
    ) -> FloatArray:
        """(n, A) levels α_k.

        Parameters
        ----------
        episode : int
            k ≥ 1.
        uncertainty : (n, A) array
            u_k at the states in question.
        at_centres : (C, A) array
            u_k on the normalisation set.
        known : (n,) booleans
            Whether the transition from each state is known.
        """
        scale = float(at_centres.mean())
        # without any uncertainty, all pairs are alike
        constant = self.epsilon * scale if scale > 0.0 else 1.0
        ratio = 1.0 / (uncertainty + constant) / np.mean(1.0 / (at_centres + constant))
        ratio[known] = 1.0
        levels: FloatArray = np.clip(
            1.0 - self.delta * ratio * math.log(2 * episode) / math.sqrt(episode),
            self.floor,
            self.ceiling,
        )
        return levels
