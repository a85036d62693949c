"""Claims as data, and the rules by which runs judge them.

A claim is a list of comparisons. A comparison estimates one number from the runs (a measure of one
case, or a difference, ratio or reduction between two cases on common seeds) and claims that it lies
in a region: below or above a number, or, for statements of closeness, within a margin. Its interval
(:mod:`brmdp.report.estimates`) decides:

- *reproduced*: the interval lies inside the region;
- *contradicted*: it lies outside altogether;
- *not resolved at this number of runs*: it reaches over an end of the region, or there is none: too
  few runs, or all of them equal, which leaves no spread to judge by. Only a number that is no
  average may have an interval without width.

The verdict on a claim is that of its worst comparison. A statement that something *can* happen is
an exception: it asks for one experiment in which it does, so it is contradicted only when all
experiments that it speaks of are in and contradict it.

**How often a verdict is wrong.** With m comparisons to judge in a claim, each has an interval of
confidence 1 − 0.05/m (Bonferroni; over all experiments that a claim spans). So all intervals of a
claim cover at once with probability 0.95, and a wrong verdict has a probability of at most
:data:`CLAIM_ERROR` = 0.05 per claim, as far as the intervals hold what they promise. Claims are not
corrected for one another: of K claims, up to 0.05 K wrong verdicts must be expected. Numbers that
are only measured have intervals of 95 % each.

**What would undo a verdict.** Where the range of the numbers is not known, a small group of runs
may be unseen. For each verdict it is told where such a group, of the largest share that is missed
with a probability of 5 %, would have to lie to undo it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

import numpy as np

from brmdp._validation import FloatArray
from brmdp.report.curves import common_runs
from brmdp.report.estimates import (
    CONFIDENCE,
    MINIMUM_RUNS,
    Estimate,
    estimate,
    ratio_samples,
    unseen_share,
)
from brmdp.report.statistics import Statistic
from brmdp.runs import CaseRecords

__all__ = [
    "ABOVE_ZERO",
    "BELOW_ZERO",
    "CLAIM_ERROR",
    "NO_EXCEPTION",
    "Claim",
    "Comparison",
    "JudgedClaim",
    "JudgedComparison",
    "Region",
    "Verdict",
    "judge",
    "merged",
]

CLAIM_ERROR = 0.05
"""Probability of a wrong verdict on a claim, at most."""


class Verdict(StrEnum):
    """What the runs say about a claim, from best to worst.

    ``MEASURED`` where nothing was claimed.
    """

    MEASURED = "measured"
    REPRODUCED = "reproduced"
    NOT_RESOLVED = "not resolved at this number of runs"
    CONTRADICTED = "contradicted"


_WORSE = list(Verdict)


@dataclass(frozen=True)
class Region:
    """Where a number is claimed to lie: strictly between ``low`` and ``high``."""

    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def around(cls, centre: float, margin: float) -> Region:
        """Within ``margin`` of ``centre``."""
        return cls(centre - margin, centre + margin)

    def judge(self, found: Estimate) -> Verdict:
        """The verdict on an estimated number."""
        low, high = float(found.low), float(found.high)
        if low == high and not found.exact:
            return Verdict.NOT_RESOLVED
        if self.low < low and high < self.high:
            return Verdict.REPRODUCED
        if high < self.low or self.high < low:
            return Verdict.CONTRADICTED
        return Verdict.NOT_RESOLVED

    def overturned_by(self, found: Estimate) -> float | None:
        """Where a group of runs that were not seen would have to lie, or beyond.

        To undo the verdict.

        Its share is :func:`~brmdp.report.estimates.unseen_share`. None where there is no verdict,
        or where the interval reckons with such a group already.
        """
        verdict = self.judge(found)
        if found.seen is None or verdict is Verdict.NOT_RESOLVED:
            return None
        low, high = float(found.low), float(found.high)
        inside = verdict is Verdict.REPRODUCED
        # which end of the interval has to move to which end of the region
        moves = [(high if inside else low, self.high), (low if inside else high, self.low)]
        if not inside:
            moves = moves[:1] if self.high < low else moves[1:]
        share = unseen_share(found.runs)
        reached = [
            (abs(border - end), end + (border - end) / share)
            for end, border in moves
            if math.isfinite(border)
        ]
        return min(reached)[1] if reached else None

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"below {self.high:g}"
        if math.isinf(self.high):
            return f"above {self.low:g}"
        return f"between {self.low:.4g} and {self.high:.4g}"


BELOW_ZERO = Region(high=0.0)
ABOVE_ZERO = Region(low=0.0)
NO_EXCEPTION = Region(high=0.5)
"""Claimed of the number of exceptions to a statement that must always hold: one contradicts it."""

Operation = Literal["value", "difference", "ratio", "reduction"]
_WORDING: dict[Operation, str] = {
    "value": "{case}: {statistic}",
    "difference": "{case} − {baseline}: {statistic}",
    "ratio": "{case} / {baseline}: {statistic}",
    "reduction": "reduction from {baseline} to {case} in %: {statistic}",
}


@dataclass(frozen=True)
class Comparison:
    """One number, and where it is claimed to lie.

    Attributes
    ----------
    statistic : Statistic
    case : str
    baseline : str
        Name of the other case; unused by "value".
    operation : {"difference", "value", "ratio", "reduction"}
        case − baseline run by run; the case alone; case / baseline; 100 (baseline − case) /
        baseline. The last two are ratios of means.
    claimed : Region or None
        None: only measured.
    paper : float, optional
        The paper's number.
    """

    statistic: Statistic
    case: str
    baseline: str = ""
    operation: Operation = "difference"
    claimed: Region | None = None
    paper: float | None = None

    def estimate(self, records: Mapping[str, CaseRecords]) -> tuple[Estimate, str]:
        """The number compared, and what stands in the way where it is not known."""
        names = [self.case] if self.operation == "value" else [self.case, self.baseline]
        known: list[FloatArray] = []
        for name in names:
            found = self.statistic.samples(records[name]) if name in records else None
            if found is None:
                missing = f"{'not recorded for' if name in records else 'no runs of'} {name}"
                return estimate(np.empty(0)), missing
            known.append(found)
        if self.operation == "value":
            return estimate(known[0], bounds=self.statistic.bounds), ""
        mine, theirs = common_runs(*(records[name].run for name in names))
        case, baseline = known[0][mine], known[1][theirs]
        if self.operation == "ratio":
            return estimate(ratio_samples(case, baseline)), ""
        if self.operation == "reduction":
            return estimate(100.0 * ratio_samples(baseline - case, baseline), scale=100.0), ""
        return estimate(case - baseline, scale=float(np.abs([case, baseline]).max(initial=0.0))), ""

    def judge(self, experiment: str, records: Mapping[str, CaseRecords]) -> JudgedComparison:
        """Estimate the number and judge the claim, as if it were the only one."""
        found, note = self.estimate(records)
        some = records.get(self.case)
        quantity = _WORDING[self.operation].format(
            case=self.case,
            baseline=self.baseline,
            statistic=self.statistic.name.format(steps="shown")
            if some is None
            else self.statistic.named(some),
        )
        return JudgedComparison.of(
            experiment, quantity, found, self.claimed, paper=self.paper, note=note
        )


@dataclass(frozen=True, eq=False)
class JudgedComparison:
    """A comparison with its numbers.

    Attributes
    ----------
    experiment : str
    quantity : str
        What was estimated.
    region : Region or None
        Where it was claimed to lie; None if nothing was claimed.
    estimate : Estimate
        With the interval that decides.
    paper : float or None
    note : str
        What a reader should know beside the numbers.
    """

    experiment: str
    quantity: str
    region: Region | None
    estimate: Estimate
    paper: float | None
    note: str

    @classmethod
    def of(
        cls,
        experiment: str,
        quantity: str,
        found: Estimate,
        claimed: Region | None = None,
        *,
        paper: float | None = None,
        note: str = "",
    ) -> JudgedComparison:
        """Judge an estimated number; without a region it is only measured."""
        if not note and not found.has_interval and not found.exact:
            note = f"an interval needs {MINIMUM_RUNS} runs"
        if claimed is not None and found.all_equal:
            note = "; ".join(filter(None, [note, "no spread to judge by"]))
        return cls(experiment, quantity, claimed, found, paper, note)

    @property
    def claimed(self) -> str:
        """Where the number was claimed to lie, in words; "" if nothing was claimed."""
        return "" if self.region is None else str(self.region)

    @property
    def verdict(self) -> Verdict:
        """What the interval says."""
        return Verdict.MEASURED if self.region is None else self.region.judge(self.estimate)

    @property
    def left_to_chance(self) -> bool:
        """Whether there is a verdict to give that chance could make wrong."""
        return self.region is not None and not self.estimate.exact

    @property
    def overturned_by(self) -> float | None:
        """Where runs that were not seen would have to lie to undo the verdict.

        See :meth:`Region.overturned_by`.
        """
        return None if self.region is None else self.region.overturned_by(self.estimate)

    @property
    def fragile(self) -> bool:
        """Whether that is no farther away than the runs that were seen."""
        beyond, seen = self.overturned_by, self.estimate.seen
        return (
            beyond is not None and seen is not None and float(seen[0]) <= beyond <= float(seen[1])
        )

    def at_confidence(self, confidence: float) -> JudgedComparison:
        """Judged by an interval of another confidence."""
        return replace(self, estimate=self.estimate.at_confidence(confidence))

    @property
    def standard_errors_from_paper(self) -> float | None:
        """(estimate − paper) in our standard errors.

        The paper gives none of its own; if they were as large as ours, the difference would have √2
        times as much.
        """
        if (
            self.paper is None
            or not self.estimate.has_interval
            or not float(self.estimate.standard_error) > 0.0
        ):
            return None
        return (float(self.estimate.mean) - self.paper) / float(self.estimate.standard_error)

    def numbers(self) -> str:
        """The numbers in one line."""
        found = self.estimate
        usual = found.exact or found.confidence == CONFIDENCE or bool(np.isnan(found.low))
        parts = [str(found) + ("" if usual else f" ({100.0 * found.confidence:.4g} %)")]
        if self.claimed:
            parts.append(f"claimed {self.claimed}")
        if self.paper is not None:
            apart = self.standard_errors_from_paper
            parts.append(
                f"paper {self.paper:g}" + ("" if apart is None else f", {apart:+.1f} s.e. apart")
            )
        if self.note:
            parts.append(self.note)
        if self.fragile:
            share = 100.0 * unseen_share(found.runs)
            parts.append(
                f"undone if {share:.2g} % of runs, unseen here, lay at {self.overturned_by:.3g} or "
                "beyond"
            )
        return "; ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """For ``claims.json``."""
        found = self.estimate.as_json()
        content = {
            "experiment": self.experiment,
            "quantity": self.quantity,
            "claimed": self.claimed or None,
            "estimate": found["mean"],
            "ci95": found["ci95"],
            "runs": self.estimate.runs,
            "verdict": str(self.verdict),
        }
        if self.left_to_chance:
            ends = [_number(end) for end in (self.estimate.low, self.estimate.high)]
            content |= {
                "confidence": self.estimate.confidence,
                "interval": None if None in ends else ends,
            }
        if self.overturned_by is not None:
            content |= {
                "overturned_by": self.overturned_by,
                "unseen_share": unseen_share(self.estimate.runs),
            }
        if self.paper is not None:
            content |= {
                "paper": self.paper,
                "standard_errors_from_paper": self.standard_errors_from_paper,
            }
        return content | ({"note": self.note} if self.note else {})


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and how it is tested.

    Attributes
    ----------
    identifier : str
    paper : str
        What the paper says.
    test : str
        What is compared, where the paper's words leave it open.
    comparisons : tuple of Comparison
    somewhere_in : tuple of str
        For a statement that something *can* happen: the experiments of which one suffices. Empty
        otherwise.
    """

    identifier: str
    paper: str
    test: str
    comparisons: tuple[Comparison, ...]
    somewhere_in: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class JudgedClaim:
    """A claim with the verdict of the runs.

    Attributes
    ----------
    identifier, paper, test, somewhere_in
        As in :class:`Claim`.
    comparisons : tuple of JudgedComparison
        Given with intervals of any confidence; kept with those that hold jointly with probability
        0.95.
    """

    identifier: str
    paper: str
    test: str
    comparisons: tuple[JudgedComparison, ...]
    somewhere_in: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # here and nowhere else, so that no claim is judged without: also when claims of several
        # experiments are merged
        judged = sum(comparison.left_to_chance for comparison in self.comparisons)
        joint = 1.0 - CLAIM_ERROR / max(1, judged)
        corrected = (
            one.at_confidence(joint) if one.left_to_chance else one for one in self.comparisons
        )
        object.__setattr__(self, "comparisons", tuple(corrected))

    @property
    def error_rate(self) -> float | None:
        """Probability of a wrong verdict, at most.

        0 where nothing is left to chance, None where nothing was claimed.
        """
        if all(comparison.region is None for comparison in self.comparisons):
            return None
        return (
            CLAIM_ERROR
            if any(comparison.left_to_chance for comparison in self.comparisons)
            else 0.0
        )

    @property
    def experiments(self) -> tuple[str, ...]:
        """Where it was tested."""
        return tuple(dict.fromkeys(comparison.experiment for comparison in self.comparisons))

    @property
    def verdict(self) -> Verdict:
        """What follows from the verdicts on its comparisons."""
        ranked = sorted((comparison.verdict for comparison in self.comparisons), key=_WORSE.index)
        if not self.somewhere_in:
            return ranked[-1]
        all_in = set(self.somewhere_in) <= set(self.experiments)
        return (
            ranked[0] if all_in or ranked[0] is not Verdict.CONTRADICTED else Verdict.NOT_RESOLVED
        )

    def as_json(self) -> dict[str, Any]:
        """For ``claims.json``."""
        return {
            "id": self.identifier,
            "paper": self.paper,
            "test": self.test,
            "experiments": list(self.experiments),
            "verdict": str(self.verdict),
            "error_rate": self.error_rate,
            "comparisons": [comparison.as_json() for comparison in self.comparisons],
        }


def _number(value: FloatArray) -> float | None:
    return None if np.isnan(value) else float(value)


def judge(
    claims: Sequence[Claim], experiment: str, records: Mapping[str, CaseRecords]
) -> tuple[JudgedClaim, ...]:
    """Judge the claims about one experiment by its records.

    A :class:`CaseRecords` per case name.
    """
    return tuple(
        JudgedClaim(
            claim.identifier,
            claim.paper,
            claim.test,
            tuple(comparison.judge(experiment, records) for comparison in claim.comparisons),
            claim.somewhere_in,
        )
        for claim in claims
    )


def merged(judged: Sequence[JudgedClaim]) -> tuple[JudgedClaim, ...]:
    """Bring together, under their common identifier.

    Claims that were tested in several experiments.
    """
    together: dict[str, JudgedClaim] = {}
    for claim in judged:
        known = together.setdefault(claim.identifier, claim)
        if known is not claim:
            together[claim.identifier] = replace(
                known, comparisons=known.comparisons + claim.comparisons
            )
    return tuple(together.values())
