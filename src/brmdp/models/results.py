"""What a decision says: plain data, in the units and the sign of the model file.

Where the model file has costs, all values here are costs, and smaller is better; where it has
rewards, they are rewards. A *gain* is positive where the recommendation is better, for costs, too.
States and actions are named by the labels of the log. The page, the JSON file and the data frames
are written from these records alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from brmdp._validation import FloatArray, IntArray

__all__ = [
    "RARE",
    "Amount",
    "Caution",
    "Check",
    "Curve",
    "Fingerprint",
    "GroupDecision",
    "Guarantee",
    "MoreData",
    "Picture",
    "PolicyValue",
    "Sensitivity",
    "StateWorth",
    "ThinPair",
    "Verdict",
]

Verdict: TypeAlias = Literal["fine", "look", "stop"]

RARE = 5
"""Decisions that must have been logged in a state for practice there not to count as inferred."""

INFERRED = 0.05
"""Share of its time that practice may spend in other states without a caveat."""


@dataclass(frozen=True)
class Curve:
    """One series of a picture.

    Attributes
    ----------
    name : str
        What the legend says.
    x : tuple of numbers or labels
    y : tuple of numbers
    low, high : tuple of numbers
        Ends of intervals about y; empty if there are none.
    """

    name: str
    x: tuple[float | str, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True)
class Picture:
    """A small chart as data; the page draws it.

    Attributes
    ----------
    kind : "bars", "points" or "lines"
        Bars over labels; points with intervals over labels; lines (with bands) over numbers.
    title : str
        What the reader should see in it, as a sentence.
    x, y : str
        Labels of the axes.
    curves : tuple of Curve
    """

    kind: Literal["bars", "points", "lines"]
    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Check:
    """A check of the model against the log.

    Attributes
    ----------
    name : str
        Short and stable, such as "groups" or "memory".
    question : str
        What is asked, as a question to a reader who is no statistician.
    verdict : "fine", "look" or "stop"
    finding : str
        The figure behind the verdict, in a sentence.
    consequence : str
        What it means for the decision, in the problem's own units, in a sentence.
    figures : dict
        The numbers behind both sentences, by name.
    remedy : str
        What to do about it; empty if nothing need be done.
    picture : Picture or None
    group : str or None
        The group it is about; None if it is about all of them.
    """

    name: str
    question: str
    verdict: Verdict
    finding: str
    consequence: str
    figures: dict[str, float | int | str | None]
    remedy: str = ""
    picture: Picture | None = None
    group: str | None = None


@dataclass(frozen=True)
class Amount:
    """A mean with a 95 % credible interval, and the Monte Carlo error of the mean.

    What information is worth is a mean over what it may say; its interval is that of the Monte
    Carlo error alone.
    """

    mean: float
    low: float
    high: float
    error: float = 0.0


@dataclass(frozen=True)
class PolicyValue:
    """A policy and what it is worth at the start.

    Attributes
    ----------
    name : str
        Where it comes from, such as "level 0.1", "mean" or "practice".
    actions : (S,) integers
    words : tuple of str
        The policy in sentences, with thresholds where there are any.
    mean : Amount
    guaranteed : float
        The value that holds with the stated confidence by the draws that compared the candidates.
        Only the certificate has a proof, from draws of its own.
    """

    name: str
    actions: IntArray
    words: tuple[str, ...]
    mean: Amount
    guaranteed: float


@dataclass(frozen=True)
class Caution:
    """One stop of the dial: a level, and the number of the policy that is planned at it."""

    level: float
    policy: int


@dataclass(frozen=True)
class Guarantee:
    """What is promised about the recommended policy at the start.

    Attributes
    ----------
    confidence : float
    value : float
        The bound: a lower one for rewards, an upper one for costs.
    nested_value : float or None
        The bound of the paper's Proposition 1, with the policy that is best for it; None if it was
        not computed.
    gap : float
        What the sharp bound gives away, as a share of the estimated quantile.
    words : tuple of str
        The statement, and what it assumes.
    nested_words : str
        The same for the nested bound.
    worst_value : float or None
        The bound if every cost or reward is at the worse end of its range: it holds wherever they
        lie in their ranges. None if none has a range.
    """

    confidence: float
    value: float
    nested_value: float | None
    gap: float
    words: tuple[str, ...]
    nested_words: str
    worst_value: float | None = None


@dataclass(frozen=True)
class StateWorth:
    """A state in which recommendation and practice differ, and what the change there is worth."""

    state: int
    gain: Amount
    visits: float


@dataclass(frozen=True)
class ThinPair:
    """A pair that the policy uses although it was hardly ever observed.

    Attributes
    ----------
    state, action : int
    observations : int
    visits : float
        Share of discounted time that the policy spends there.
    """

    state: int
    action: int
    observations: int
    visits: float


@dataclass(frozen=True)
class MoreData:
    """What more observations of a pair would be worth.

    Attributes
    ----------
    state, action, transitions : int
    gain : Amount
        Average over what they may show, with the interval of its Monte Carlo error.
    changed : float
        Share of cases in which they change the plan.
    """

    state: int
    action: int
    transitions: int
    gain: Amount
    changed: float


@dataclass(frozen=True)
class Sensitivity:
    """What happens to the recommendation if an assumption is another.

    Attributes
    ----------
    assumption : str
        What was changed, such as "discount 0.98 instead of 0.99".
    states_changed : int
        Number of states in which another action would be planned.
    value : float
        Value of the recommended policy under the changed assumption.
    best : float
        Value of the policy planned under it.
    words : str
        The same as a sentence.
    """

    assumption: str
    states_changed: int
    value: float
    best: float
    words: str


@dataclass(frozen=True, eq=False)
class GroupDecision:
    """The decision for one group, or for all units if there are no groups.

    Attributes
    ----------
    name : str or None
        Label of the group.
    units, transitions : int
        Size of its log.
    policies : tuple of PolicyValue
        All distinct candidates; practice is not among them.
    recommended : int
        Number of the recommended one.
    dial : tuple of Caution
        From cautious to curious.
    guarantee : Guarantee
    practice : Amount
        Value of what was done so far, with its own doubt.
    gain : Amount
        Of the recommendation over practice; positive is better.
    probability_better : (float, float, float)
        Probability that it is better, with a 95 % interval.
    units_interval : (float, float) or None
        95 % interval of the gain over resampled units.
    worths : tuple of StateWorth
    perfect_information : Amount
        What knowing the transition probabilities would be worth.
    more_data : tuple of MoreData
        The pairs whose observation would be worth most, best first.
    sensitivities : tuple of Sensitivity
    thin : tuple of ThinPair
    observations : (S, A) integers
        How often each pair was logged.
    visits : (S,) array
        Share of discounted time that the recommended policy spends in each state.
    start : (S,) array
        The distribution of states from which values are judged.
    practice_inferred : float
        Share of practice's discounted time in states where fewer than five decisions were logged.
        What is done there is inferred from other states.
    followed : bool
        Whether practice took the recommended action wherever anything was logged.
    notes : tuple of str
        What a careful reader should also know, such as how far the result rests on the prior.
    """

    name: str | None
    units: int
    transitions: int
    policies: tuple[PolicyValue, ...]
    recommended: int
    dial: tuple[Caution, ...]
    guarantee: Guarantee
    practice: Amount
    gain: Amount
    probability_better: tuple[float, float, float]
    units_interval: tuple[float, float] | None
    worths: tuple[StateWorth, ...]
    perfect_information: Amount
    more_data: tuple[MoreData, ...]
    sensitivities: tuple[Sensitivity, ...]
    thin: tuple[ThinPair, ...]
    observations: IntArray
    visits: FloatArray
    start: FloatArray
    practice_inferred: float = 0.0
    followed: bool = False
    notes: tuple[str, ...] = ()

    @property
    def practice_caveat(self) -> str:
        """What the value of practice rests on, if much of it is not in the log; else empty."""
        if self.practice_inferred <= INFERRED:
            return ""
        share = f"{100.0 * self.practice_inferred:.0f} %"
        return (
            f"Practice spends {share} of its discounted time in states where fewer than {RARE} "
            "decisions were logged. What is done there is inferred from other states, so its value "
            "and the gain over it are less certain than their intervals say."
        )

    @property
    def policy(self) -> IntArray:
        """The recommended action of every state."""
        return np.asarray(self.policies[self.recommended].actions)


@dataclass(frozen=True)
class Fingerprint:
    """What made a decision: enough to make it again.

    Attributes
    ----------
    data, model : str
        SHA-256 of the log and of the model file.
    command : str
    versions : dict
        Versions of brmdp, Python and the libraries that matter.
    seed : int
    made : str
        Date and time, UTC.
    """

    data: str
    model: str
    command: str
    versions: dict[str, str]
    seed: int
    made: str
