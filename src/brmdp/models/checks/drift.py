"""Whether probabilities change over time."""

from __future__ import annotations

import numpy as np

from brmdp._validation import IntArray
from brmdp.models.checks.bench import Bench, Plan
from brmdp.models.checks.consequences import Outcome, consequence_of
from brmdp.models.checks.splits import How
from brmdp.models.checks.verdicts import verdict_of
from brmdp.models.results import Check

__all__ = ["check_drift", "halves"]

QUESTION = "Is the second half of the log like the first?"


def halves(bench: Bench) -> tuple[IntArray, str]:
    """0 or 1 for every free row: the first or second half of the time, and whose time it is.

    With times in the log, its calendar; without, the order of each unit's own steps.
    """
    model, log, rows = bench.model, bench.model.log, bench.free
    if log.time is not None:
        time = log.time[rows]
        middle = float(np.median(time)) if time.size else 0.0
        later = (time > middle).astype(np.int64)
        if later.any() and not later.all():
            return later, "the log's time"
        later = (time >= middle).astype(np.int64)
        if later.any() and not later.all():
            return later, "the log's time"
    _, first, size = np.unique(log.unit[rows], return_index=True, return_counts=True)
    rank = np.arange(rows.size) - np.repeat(first, size)
    # where units end, their length must not decide what is late: it depends on their steps
    cut = np.full_like(size, np.median(rank) + 1) if model.ends.size else (size + 1) // 2
    return (rank >= np.repeat(cut, size)).astype(np.int64), "each unit's steps"


def check_drift(bench: Bench) -> Check | None:
    """Compare rows of the first and second half of the time."""
    model = bench.model
    label, whose = halves(bench)
    split = bench.split(label, bench.strata()) if bench.free.size > 1 else None
    if split is None or split.observed.classes < 2:
        return None
    sign, how = split.sign(model.stream("checks", 5))

    def outcome(plan: Plan, stratum: int, how: How) -> Outcome:
        later = split.kernels(stratum, how)[-1]
        return Outcome(plan.value_in(later), plan.loss(later))

    found = consequence_of(bench, split, how, outcome)
    matters = sign.clear and not found.negligible
    verdict = verdict_of(sign.strong, matters or sign.blind, found.material and sign.hinted)
    if_so = "If the future is like the second half"
    if not sign.clear:
        if_so += ", as far as it seems to differ"
    return Check(
        "drift",
        QUESTION,
        verdict,
        sign.words(f"transitions change over time (halves of {whose})"),
        found.words(bench, if_so),
        {
            "standard_errors": sign.errors,
            "detectable": sign.detectable,
            "loss": found.loss,
            "loss_share": found.share,
            "value": bench.own(found.value),
            "guarantee_false": found.broken,
        },
        ""
        if verdict == "fine"
        else "Look for what changed; use recent lines only, or make the period a group.",
        bench.mean_surprises(
            "steps",
            label,
            ("first half", "second half"),
            "How steps turned out against what the model expects, by half of the time",
            "half",
        ),
    )
