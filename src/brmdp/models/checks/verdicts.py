"""When a check says *stop*, *look* or *fine*, and how figures are put into words.

A verdict needs both statistics and consequence. **Statistics**: does a richer model predict
transitions that it was not fitted to better, and by how many standard errors? **Consequence**: what
does the plan lose if the richer model is right?

- *stop*: chance alone would show such a difference in at most :data:`STRONG` of all logs, *and* the
  consequence is material.
- *look*: the difference is clear (at most :data:`CLEAR`); or the richer model predicts better, if
  not clearly so, and the consequence would be material; or the log is too small to tell.
- *fine*: neither. With few data a real difference may go unseen, so the finding says which
  difference could have been seen.

At most six checks of a log can say *stop* on such grounds, so all of them together raise a false
alarm in at most 6 × ½ = 3 % of the logs, and in fewer, since the consequence must be material, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from brmdp.models.results import Verdict

__all__ = [
    "CLEAR",
    "MATERIAL",
    "SHORTFALL",
    "STRONG",
    "Sign",
    "beyond_rounding",
    "percentage",
    "verdict_of",
]

CLEAR, STRONG = 0.02, 0.005
"""Probability with which chance alone shows as much, at most, for "clear" and for "strong"."""

ROUNDING = 1e-9
"""Differences below this share of the value are rounding."""

MATERIAL = 0.05
"""A loss is material from this share of the plan's value on."""

SHORTFALL = 0.02
"""A guarantee is false if the value falls short of it by more than this share of the value."""

NEGLIGIBLE = 0.01
"""A loss larger than the gain over practice is material only above this share of the value."""

BLIND = 0.5
"""If not even so large a difference would show, nothing can be said."""


@dataclass(frozen=True)
class Sign:
    """How much better a richer model predicts what it was not fitted to.

    Attributes
    ----------
    gain : float
        Gain in held-out log score; negative if the simpler model predicts better.
    standard_error : float
        Over units, or blocks of consecutive steps of a unit if there are few units.
    blocks : int
        Number of these.
    steps : int
        Number of transitions scored.
    tried : int
        Number of richer models of which this one predicts best.
    """

    gain: float
    standard_error: float
    blocks: int
    steps: int
    tried: int = 1

    @property
    def errors(self) -> float:
        """The gain in standard errors."""
        if self.standard_error <= 0.0 or not math.isfinite(self.gain):
            return 0.0
        return self.gain / self.standard_error

    @property
    def chance(self) -> float:
        """Probability that chance alone shows as much, at most."""
        if self.blocks < 2 or self.errors <= 0.0:
            return 1.0
        return min(1.0, self.tried * float(stdtr(self.blocks - 1, -self.errors)))

    @property
    def clear(self) -> bool:
        """Whether the richer model predicts clearly better."""
        return self.chance <= CLEAR

    @property
    def strong(self) -> bool:
        """Whether it does so beyond reasonable doubt."""
        return self.chance <= STRONG

    @property
    def detectable(self) -> float:
        """Share of steps that would have to lead elsewhere for the difference to be clear.

        A difference that is worth u in the held-out score is clear if u ≥ c + t·√(σ² + 2u), where c
        is what fitting the richer model cost and σ the standard error; and to be worth u in N
        steps, a total variation of √(u/2N) is needed (Pinsker).
        """
        if self.blocks < 3 or self.steps < 1:
            return 1.0
        factor = float(stdtrit(self.blocks - 1, 1.0 - CLEAR / self.tried))
        cost = max(0.0, -self.gain)
        centre = cost + factor**2
        root = centre**2 - cost**2 + (factor * self.standard_error) ** 2
        return min(1.0, math.sqrt((centre + math.sqrt(root)) / (2.0 * self.steps)))

    @property
    def blind(self) -> bool:
        """Whether hardly any difference could have been seen."""
        return not self.clear and self.detectable >= BLIND

    @property
    def hinted(self) -> bool:
        """Whether the richer model predicts better at all, if only by chance."""
        return self.gain > 0.0

    def words(self, richer: str) -> str:
        """The statistics in a sentence; ``richer`` says what would predict better."""
        if self.steps == 0 or self.blocks < 2:
            return f"The log has too few transitions to tell whether {richer}."
        if self.clear:
            return (
                f"There are signs that {richer}: taking this into account predicts held-out "
                f"transitions better, by {self.errors:.1f} standard errors ({self.steps:,} "
                "transitions)."
            )
        text = f"No clear sign that {richer} ({self.steps:,} transitions)."
        if self.detectable >= BLIND:
            return f"{text} But the log is too small to show any but an extreme difference."
        return (
            f"{text} Only differences that move more than about {percentage(self.detectable)} of "
            "the steps elsewhere would show in a log of this size."
        )


def verdict_of(strong: bool, clear: bool, material: bool) -> Verdict:
    """The verdict that statistics and consequence lead to."""
    if strong and material:
        return "stop"
    return "look" if clear or material else "fine"


def beyond_rounding(loss: float, scale: float) -> float:
    """A loss, or 0 if it is none, or no more than the rounding of values of this size."""
    return loss if loss > ROUNDING * scale else 0.0


def percentage(share: float) -> str:
    """A share in percent, with two digits."""
    if share < 1e-4:
        return "0 %" if share <= 0.0 else "less than 0.01 %"
    return f"{100.0 * share:.2g} %" if share < 0.995 else f"{100.0 * share:.0f} %"
