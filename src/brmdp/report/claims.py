"""Claims as data, and the rules by which runs judge them.

A claim is a list of comparisons. A comparison estimates one number from the runs: a statistic of
one case, or a difference, ratio or reduction between two cases on common seeds. It claims that this
number lies in a region: below or above some value or, for statements of closeness, within a margin.
The interval of the estimate (:mod:`brmdp.report.estimates`) decides:

- *reproduced*: the interval lies inside the region;
- *contradicted*: the interval lies entirely outside the region;
- *not resolved at this number of runs*: the interval crosses an end of the region, or there is no
  interval, because there are too few runs or because all runs are equal, which leaves no spread to
  judge by. Only a number that is not an average may have an interval of zero width.

The verdict on a claim is that of its worst comparison. The exception is a statement that something
*can* happen. One experiment in which it does happen suffices, so the claim is contradicted only
once all the experiments it covers have been run and contradict it.

**How often a verdict is wrong.** If a claim has m comparisons to judge, each gets an interval of
confidence 1 − 0.05/m (Bonferroni, counted over all experiments that the claim covers). All
intervals of a claim then hold jointly with probability 0.95, so a verdict is wrong with probability
at most :data:`CLAIM_ERROR` = 0.05 per claim, provided that the intervals cover as often as stated.
There is no correction across claims: among K claims, up to 0.05 K wrong verdicts must be expected.
Numbers that are measured but not judged have 95 % intervals.

**What would undo a verdict.** Where the range of the numbers is unknown, a small group of runs may
have gone unseen. Take the largest group that is missed with probability 5 %: each verdict says
where that group would have to lie to undo it.
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
"""Largest probability of a wrong verdict on a claim."""


class Verdict(StrEnum):
    """What the runs say about a claim, from best to worst.

    ``MEASURED`` means that nothing was claimed.

    Examples
    --------
    >>> from brmdp.report import Verdict
    >>> Verdict.REPRODUCED.value
    'reproduced'
    """

    MEASURED = "measured"
    REPRODUCED = "reproduced"
    NOT_RESOLVED = "not resolved at this number of runs"
    CONTRADICTED = "contradicted"


_WORSE = list(Verdict)


@dataclass(frozen=True)
class Region:
    """The open interval (``low``, ``high``) in which a number is claimed to lie.

    Examples
    --------
    >>> from brmdp.report import Region
    >>> Region(high=0.0)
    Region(low=-inf, high=0.0)
    """

    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def around(cls, centre: float, margin: float) -> Region:
        """The region within ``margin`` of ``centre``."""
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
        """The point at or beyond which an unseen group of runs would undo the verdict.

        The group makes up the share :func:`~brmdp.report.estimates.unseen_share` of all runs. None
        if there is no verdict, or if the interval already allows for such a group.
        """
        verdict = self.judge(found)
        if found.seen is None or verdict is Verdict.NOT_RESOLVED:
            return None
        low, high = float(found.low), float(found.high)
        inside = verdict is Verdict.REPRODUCED
        # the end of the interval that has to move, and the end of the region it has to reach
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
"""Region for the number of exceptions to a statement that must always hold: none is allowed."""

Operation = Literal["value", "difference", "ratio", "reduction"]
_WORDING: dict[Operation, str] = {
    "value": "{case}: {statistic}",
    "difference": "{case} − {baseline}: {statistic}",
    "ratio": "{case} / {baseline}: {statistic}",
    "reduction": "reduction from {baseline} to {case} in %: {statistic}",
}


@dataclass(frozen=True)
class Comparison:
    """One number, and the region in which it is claimed to lie.

    Attributes
    ----------
    statistic : Statistic
    case : str
        Name of the case.
    baseline : str
        Name of the case to compare with; unused by "value".
    operation : {"difference", "value", "ratio", "reduction"}
        "difference" is case − baseline, run by run; "value" is the case alone; "ratio" is case /
        baseline; "reduction" is 100 (baseline − case) / baseline. The last two are ratios of means.
    claimed : Region or None
        None if the number is only measured.
    paper : float, optional
        The number that the paper reports.

    Examples
    --------
    >>> from brmdp.report import Comparison, Region, Statistic
    >>> total = Statistic("total reward", lambda records, steps:
    ...     records.reward[:, :steps].sum(axis=1))
    >>> Comparison(total, "psrl", "mean", claimed=Region(low=0.0)).operation
    'difference'
    """

    statistic: Statistic
    case: str
    baseline: str = ""
    operation: Operation = "difference"
    claimed: Region | None = None
    paper: float | None = None

    def estimate(self, records: Mapping[str, CaseRecords]) -> tuple[Estimate, str]:
        """The estimated number, and the reason why it is unknown, or ""."""
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
        """Estimate the number and judge it as if it were the claim's only comparison."""
        found, note = self.estimate(records)
        some = records.get(self.case)
        quantity = _WORDING[self.operation].format(
            case=self.case,
            baseline=self.baseline,
            statistic=self.statistic.name.format(steps="n")
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
        Name of the experiment.
    quantity : str
        What was estimated, in words.
    region : Region or None
        The region in which it was claimed to lie; None if nothing was claimed.
    estimate : Estimate
        The number with the interval that decides.
    paper : float or None
        The number that the paper reports.
    note : str
        What a reader should know besides the numbers.

    Examples
    --------
    >>> from brmdp.report import JudgedComparison, Region, exact_number
    >>> comparison = JudgedComparison(
    ...     "try", "a number", Region(low=0.0), exact_number(np.float64(1.0), 20), None, ""
    ... )
    >>> comparison.verdict.value
    'reproduced'
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
        """Judge an estimated number; without a ``claimed`` region it is only measured."""
        if not note and not found.has_interval and not found.exact:
            note = f"an interval needs {MINIMUM_RUNS} runs"
        if claimed is not None and found.all_equal:
            note = "; ".join(filter(None, [note, "no spread to judge by"]))
        return cls(experiment, quantity, claimed, found, paper, note)

    @property
    def claimed(self) -> str:
        """The claimed region in words; "" if nothing was claimed."""
        return "" if self.region is None else str(self.region)

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows from the interval."""
        return Verdict.MEASURED if self.region is None else self.region.judge(self.estimate)

    @property
    def left_to_chance(self) -> bool:
        """Whether something was claimed and chance could make the verdict wrong."""
        return self.region is not None and not self.estimate.exact

    @property
    def overturned_by(self) -> float | None:
        """Where unseen runs would have to lie to undo the verdict.

        See :meth:`Region.overturned_by`.
        """
        return None if self.region is None else self.region.overturned_by(self.estimate)

    @property
    def fragile(self) -> bool:
        """Whether runs within the range of those seen could undo the verdict."""
        beyond, seen = self.overturned_by, self.estimate.seen
        return (
            beyond is not None and seen is not None and float(seen[0]) <= beyond <= float(seen[1])
        )

    def at_confidence(self, confidence: float) -> JudgedComparison:
        """The same comparison judged by an interval of another confidence."""
        return replace(self, estimate=self.estimate.at_confidence(confidence))

    @property
    def standard_errors_from_paper(self) -> float | None:
        """(estimate − paper) in units of our standard error.

        The paper reports no standard errors. If they were as large as ours, that of the difference
        would be √2 times ours.
        """
        if (
            self.paper is None
            or not self.estimate.has_interval
            or not float(self.estimate.standard_error) > 0.0
        ):
            return None
        return (float(self.estimate.mean) - self.paper) / float(self.estimate.standard_error)

    def numbers(self) -> str:
        """The numbers as one line of text."""
        found = self.estimate
        usual = found.exact or found.confidence == CONFIDENCE or bool(np.isnan(found.low))
        parts = [str(found) + ("" if usual else f" ({100.0 * found.confidence:.4g} %)")]
        if self.claimed:
            parts.append(f"claimed {self.claimed}")
        if self.paper is not None:
            apart = self.standard_errors_from_paper
            parts.append(
                f"paper {self.paper:g}"
                + ("" if apart is None else f", difference {apart:+.1f} s.e.")
            )
        if self.note:
            parts.append(self.note)
        if self.fragile:
            share = 100.0 * unseen_share(found.runs)
            parts.append(
                f"the verdict would change if {share:.2g} % of runs, unseen here, lay at "
                f"{self.overturned_by:.3g} or beyond"
            )
        return "; ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """The entry in ``claims.json``."""
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
    """A statement of the paper, and how it is tested.

    Attributes
    ----------
    identifier : str
    paper : str
        What the paper says.
    test : str
        How the paper's words are turned into a comparison of numbers.
    comparisons : tuple of Comparison
    somewhere_in : tuple of str
        For a statement that something *can* happen: the experiments, one of which must show it.
        Empty for all other statements.

    Examples
    --------
    >>> from brmdp.report import Claim, Comparison, Region, Statistic
    >>> total = Statistic("total reward", lambda records, steps:
    ...     records.reward[:, :steps].sum(axis=1))
    >>> claim = Claim(
    ...     "psrl", "PSRL earns more than the posterior mean.", "Total reward.",
    ...     (Comparison(total, "psrl", "mean", claimed=Region(low=0.0)),),
    ... )
    >>> claim.comparisons[0].operation
    'difference'
    """

    identifier: str
    paper: str
    test: str
    comparisons: tuple[Comparison, ...]
    somewhere_in: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class JudgedClaim:
    """A claim and the verdict of the runs.

    Attributes
    ----------
    identifier, paper, test, somewhere_in
        As in :class:`Claim`.
    comparisons : tuple of JudgedComparison
        They may be passed with intervals of any confidence. The claim keeps them with intervals
        that hold jointly with probability 0.95.

    Examples
    --------
    >>> from brmdp.report import Claim, Comparison, Region, Statistic
    >>> total = Statistic("total reward", lambda records, steps:
    ...     records.reward[:, :steps].sum(axis=1))
    >>> claim = Claim(
    ...     "psrl", "PSRL earns more than the posterior mean.", "Total reward.",
    ...     (Comparison(total, "psrl", "mean", claimed=Region(low=0.0)),),
    ... )
    >>> import tempfile
    >>> from brmdp.report import judge
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> cases = tuple(
    ...     Case(name, "riverswim", agent, 0.9, 200, {"n": 6})
    ...     for name, agent in (("psrl", "continuing-psrl"), ("mean", "posterior-mean"))
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", cases, runs=10), folder, workers=1)
    ...     records = {case.name: store.records(case.name) for case in cases}
    >>> (judged,) = judge((claim,), "try", records)
    >>> judged.identifier, judged.verdict.value
    ('psrl', 'not resolved at this number of runs')
    """

    identifier: str
    paper: str
    test: str
    comparisons: tuple[JudgedComparison, ...]
    somewhere_in: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # corrected only here, so that every claim is corrected, also after merging experiments
        judged = sum(comparison.left_to_chance for comparison in self.comparisons)
        joint = 1.0 - CLAIM_ERROR / max(1, judged)
        corrected = (
            one.at_confidence(joint) if one.left_to_chance else one for one in self.comparisons
        )
        object.__setattr__(self, "comparisons", tuple(corrected))

    @property
    def error_rate(self) -> float | None:
        """Largest probability of a wrong verdict.

        0 if nothing is left to chance; None if nothing was claimed.
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
        """Names of the experiments in which the claim was tested."""
        return tuple(dict.fromkeys(comparison.experiment for comparison in self.comparisons))

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows from those on the comparisons."""
        ranked = sorted((comparison.verdict for comparison in self.comparisons), key=_WORSE.index)
        if not self.somewhere_in:
            return ranked[-1]
        all_in = set(self.somewhere_in) <= set(self.experiments)
        return (
            ranked[0] if all_in or ranked[0] is not Verdict.CONTRADICTED else Verdict.NOT_RESOLVED
        )

    def as_json(self) -> dict[str, Any]:
        """The entry in ``claims.json``."""
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
    """Judge the claims about one experiment by its records, given by case name.

    Examples
    --------
    Ten short runs do not settle it:

    >>> from brmdp.report import Claim, Comparison, Region, Statistic
    >>> total = Statistic("total reward", lambda records, steps:
    ...     records.reward[:, :steps].sum(axis=1))
    >>> claim = Claim(
    ...     "psrl", "PSRL earns more than the posterior mean.", "Total reward.",
    ...     (Comparison(total, "psrl", "mean", claimed=Region(low=0.0)),),
    ... )
    >>> import tempfile
    >>> from brmdp.report import judge
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> cases = tuple(
    ...     Case(name, "riverswim", agent, 0.9, 200, {"n": 6})
    ...     for name, agent in (("psrl", "continuing-psrl"), ("mean", "posterior-mean"))
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", cases, runs=10), folder, workers=1)
    ...     records = {case.name: store.records(case.name) for case in cases}
    >>> (judged,) = judge((claim,), "try", records)
    >>> judged.verdict.value
    'not resolved at this number of runs'
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
    """Merge claims that share an identifier because they were tested in several experiments.

    Examples
    --------
    >>> from brmdp.report import JudgedClaim, JudgedComparison, Region, exact_number, merged
    >>> judged = []
    >>> for name, number in (("try", 1.0), ("another", -1.0)):
    ...     found = exact_number(number, trials=20)
    ...     comparison = JudgedComparison(name, "it", Region(low=0.0), found, None, "")
    ...     judged.append(JudgedClaim("positive", "It is positive.", "The number.", (comparison,)))
    >>> (both,) = merged(judged)
    >>> both.verdict.value
    'contradicted'
    """
    together: dict[str, JudgedClaim] = {}
    for claim in judged:
        known = together.setdefault(claim.identifier, claim)
        if known is not claim:
            together[claim.identifier] = replace(
                known, comparisons=known.comparisons + claim.comparisons
            )
    return tuple(together.values())
