"""Claims as data, and the rules by which runs judge them.

A claim is a list of comparisons. A comparison estimates one number from the runs (a measure of one case, or a difference,
ratio or reduction between two cases on common seeds) and claims that it lies in a region: below or above a number, or, for
statements of closeness, within a margin. The 95 % interval decides:

- *reproduced*: the interval lies inside the region;
- *contradicted*: it lies outside altogether;
- *not resolved at this number of runs*: it reaches over an end of the region, or there are too few runs for an interval.

The verdict on a claim is that of its worst comparison. A statement that something *can* happen is an exception: it asks for
one experiment in which it does, so it is contradicted only when all experiments that it speaks of are in and contradict it.

A true difference of exactly zero is called reproduced, wrongly, in 2.5 % of repetitions, and contradicted in as many.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

import numpy as np

from brmdp._validation import FloatArray
from brmdp.analysis.curves import common_runs
from brmdp.analysis.estimates import MINIMUM_RUNS, Estimate, estimate, ratio_samples
from brmdp.analysis.measures import Measure
from brmdp.experiments import CaseRecords

__all__ = [
    "ABOVE_ZERO",
    "BELOW_ZERO",
    "Claim",
    "Comparison",
    "JudgedClaim",
    "JudgedComparison",
    "Region",
    "Verdict",
    "judge",
    "merged",
]


class Verdict(StrEnum):
    """What the runs say about a claim, from best to worst; ``MEASURED`` where nothing was claimed."""

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
        if self.low < low and high < self.high:
            return Verdict.REPRODUCED
        if high < self.low or self.high < low:
            return Verdict.CONTRADICTED
        return Verdict.NOT_RESOLVED

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"below {self.high:g}"
        if math.isinf(self.high):
            return f"above {self.low:g}"
        return f"between {self.low:.4g} and {self.high:.4g}"


BELOW_ZERO = Region(high=0.0)
ABOVE_ZERO = Region(low=0.0)

Operation = Literal["value", "difference", "ratio", "reduction"]
_WORDING: dict[Operation, str] = {
    "value": "{case}: {measure}",
    "difference": "{case} − {baseline}: {measure}",
    "ratio": "{case} / {baseline}: {measure}",
    "reduction": "reduction from {baseline} to {case} in %: {measure}",
}


@dataclass(frozen=True)
class Comparison:
    """One number, and where it is claimed to lie.

    Attributes
    ----------
    measure : Measure
    case : str
    baseline : str
        Name of the other case; unused by "value".
    operation : {"difference", "value", "ratio", "reduction"}
        case − baseline run by run; the case alone; case / baseline; 100 (baseline − case) / baseline. The last two are
        ratios of means.
    claimed : Region or None
        None: only measured.
    paper : float, optional
        The paper's number.
    """

    measure: Measure
    case: str
    baseline: str = ""
    operation: Operation = "difference"
    claimed: Region | None = None
    paper: float | None = None

    def samples(self, records: Mapping[str, CaseRecords]) -> tuple[FloatArray, str]:
        """Per-run numbers whose mean is the number compared, and what stands in the way where there are none."""
        names = [self.case] if self.operation == "value" else [self.case, self.baseline]
        known: list[FloatArray] = []
        for name in names:
            found = self.measure.samples(records[name]) if name in records else None
            if found is None:
                return np.empty(0), f"{'not recorded for' if name in records else 'no runs of'} {name}"
            known.append(found)
        if self.operation == "value":
            return known[0], ""
        mine, theirs = common_runs(*(records[name].run for name in names))
        case, baseline = known[0][mine], known[1][theirs]
        if self.operation == "ratio":
            return ratio_samples(case, baseline), ""
        if self.operation == "reduction":
            return 100.0 * ratio_samples(baseline - case, baseline), ""
        equal = case.size > 1 and bool((case == baseline).all())
        return case - baseline, f"equal in all {case.size} runs" if equal else ""

    def judge(self, experiment: str, records: Mapping[str, CaseRecords]) -> JudgedComparison:
        """Estimate the number and judge the claim."""
        samples, note = self.samples(records)
        some = records.get(self.case)
        quantity = _WORDING[self.operation].format(
            case=self.case,
            baseline=self.baseline,
            measure=self.measure.name.format(steps="shown") if some is None else self.measure.named(some),
        )
        return JudgedComparison.of(experiment, quantity, estimate(samples), self.claimed, paper=self.paper, note=note)


@dataclass(frozen=True, eq=False)
class JudgedComparison:
    """A comparison with its numbers.

    Attributes
    ----------
    experiment : str
    quantity, claimed : str
        What was estimated, and where it was claimed to lie ("" if nothing was claimed).
    estimate : Estimate
    verdict : Verdict
    paper : float or None
    note : str
        What a reader should know beside the numbers.
    """

    experiment: str
    quantity: str
    claimed: str
    estimate: Estimate
    verdict: Verdict
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
        if not note and not found.has_interval:
            note = f"an interval needs {MINIMUM_RUNS} runs"
        verdict = Verdict.MEASURED if claimed is None else claimed.judge(found)
        return cls(experiment, quantity, "" if claimed is None else str(claimed), found, verdict, paper, note)

    @property
    def standard_errors_from_paper(self) -> float | None:
        """(estimate − paper) in our standard errors.

        The paper gives none of its own; if they were as large as ours, the difference would have √2 times as much.
        """
        if self.paper is None or not self.estimate.has_interval or not float(self.estimate.standard_error) > 0.0:
            return None
        return (float(self.estimate.mean) - self.paper) / float(self.estimate.standard_error)

    def numbers(self) -> str:
        """The numbers in one line."""
        parts = [str(self.estimate)]
        if self.claimed:
            parts.append(f"claimed {self.claimed}")
        if self.paper is not None:
            apart = self.standard_errors_from_paper
            parts.append(f"paper {self.paper:g}" + ("" if apart is None else f", {apart:+.1f} s.e. apart"))
        if self.note:
            parts.append(self.note)
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
        if self.paper is not None:
            content |= {"paper": self.paper, "standard_errors_from_paper": self.standard_errors_from_paper}
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
        For a statement that something *can* happen: the experiments of which one suffices. Empty otherwise.
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
    """

    identifier: str
    paper: str
    test: str
    comparisons: tuple[JudgedComparison, ...]
    somewhere_in: tuple[str, ...] = ()

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
        return ranked[0] if all_in or ranked[0] is not Verdict.CONTRADICTED else Verdict.NOT_RESOLVED

    def as_json(self) -> dict[str, Any]:
        """For ``claims.json``."""
        return {
            "id": self.identifier,
            "paper": self.paper,
            "test": self.test,
            "experiments": list(self.experiments),
            "verdict": str(self.verdict),
            "comparisons": [comparison.as_json() for comparison in self.comparisons],
        }


def judge(claims: Sequence[Claim], experiment: str, records: Mapping[str, CaseRecords]) -> tuple[JudgedClaim, ...]:
    """Judge the claims about one experiment by its records, a :class:`CaseRecords` per case name."""
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
    """Bring together, under their common identifier, claims that were tested in several experiments."""
    together: dict[str, JudgedClaim] = {}
    for claim in judged:
        known = together.setdefault(claim.identifier, claim)
        if known is not claim:
            together[claim.identifier] = replace(known, comparisons=known.comparisons + claim.comparisons)
    return tuple(together.values())
