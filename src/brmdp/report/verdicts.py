"""Judged claims as text for a terminal and as Markdown, verdicts first."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from brmdp.report.claims import CLAIM_ERROR, JudgedClaim, JudgedComparison, Verdict
from brmdp.report.tables import TERMINAL, Table

__all__ = ["claims_as_markdown", "claims_as_text", "error_statement", "verdict_counts"]

_SHORT = {
    Verdict.MEASURED: "measured",
    Verdict.REPRODUCED: "reproduced",
    Verdict.NOT_RESOLVED: "not resolved",
    Verdict.CONTRADICTED: "contradicted",
}
_VERDICT_WIDTH = max(map(len, _SHORT.values())) + 2


def claims_as_text(claims: Sequence[JudgedClaim]) -> str:
    """Claims with verdicts and numbers, as text for a terminal of 100 columns."""
    lines = []
    for claim in claims:
        lines += _wrapped(_SHORT[claim.verdict].ljust(_VERDICT_WIDTH), claim.paper)
        for comparison in claim.comparisons:
            verdict = (
                _SHORT[comparison.verdict]
                if len(claim.comparisons) > 1 and comparison.claimed
                else ""
            )
            margin = "  " + verdict.ljust(_VERDICT_WIDTH)
            lines += _wrapped(margin, _quantity(claim, comparison))
            lines += _wrapped(" " * (len(margin) + 2), comparison.numbers())
    return "\n".join(lines)


def _quantity(claim: JudgedClaim, comparison: JudgedComparison) -> str:
    """What was compared, with the experiment if there are several."""
    where = f"{comparison.experiment}, " if len(claim.experiments) > 1 else ""
    return f"{where}{comparison.quantity}"


def _wrapped(margin: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        TERMINAL,
        initial_indent=margin,
        subsequent_indent=" " * len(margin),
        break_on_hyphens=False,
    )


def verdict_counts(claims: Sequence[JudgedClaim]) -> str:
    """The number of claims with each verdict, in words."""
    counts = Counter(claim.verdict for claim in claims)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def error_statement(claims: Sequence[JudgedClaim]) -> str:
    """How often verdicts on these claims are wrong, in words; "" if none is left to chance."""
    count = sum(claim.error_rate == CLAIM_ERROR for claim in claims)
    if count == 0:
        return ""
    are = "claim is" if count == 1 else "claims are"
    expected = (
        ""
        if count == 1
        else f"; among {count} claims, up to {CLAIM_ERROR * count:.2g} wrong verdicts are to be "
        "expected"
    )
    return (
        f"{count} {are} judged by numbers subject to chance. The intervals of one claim hold "
        f"jointly with probability {1.0 - CLAIM_ERROR:g}: each of m intervals has confidence 1 − "
        f"{CLAIM_ERROR:g}/m, which is stated unless it is 95 %. So a verdict is wrong with "
        f"probability at most {CLAIM_ERROR:g} per claim{expected}. This assumes that no unseen "
        "small group of runs would change the means. Where such a group could undo a verdict "
        "without lying outside the range of the runs seen, this is noted."
    )


def claims_as_markdown(claims: Sequence[JudgedClaim]) -> str:
    """A Markdown table with the verdict, the claim, and what was found.

    How a claim was tested, and all its numbers, can be unfolded.
    """
    rows = [(f"**{_SHORT[claim.verdict]}**", _statement(claim), _found(claim)) for claim in claims]
    return Table(("verdict", "claim", "found"), tuple(rows)).as_markdown(numbers=False)


def _statement(claim: JudgedClaim) -> str:
    return f"{claim.paper} <br><sub>{', '.join(claim.experiments)}</sub>"


def _found(claim: JudgedClaim) -> str:
    """The number, or how many of several comparisons agree, with the details folded."""
    several = len(claim.comparisons) > 1
    if several:
        judged = [one for one in claim.comparisons if one.claimed]
        counts = Counter(_SHORT[one.verdict] for one in judged)
        listed = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
        comparisons = f"{len(judged)} comparison{'s' if len(judged) > 1 else ''}: {listed}"
        shown = comparisons if judged else f"{len(claim.comparisons)} numbers"
    else:
        shown = str(claim.comparisons[0].estimate)
    lines = [f"Tested as: {claim.test}"]
    for one in claim.comparisons:
        verdict = f" → {_SHORT[one.verdict]}" if several and one.claimed else ""
        lines.append(f"{_quantity(claim, one)}: {one.numbers()}{verdict}")
    return f"<details><summary>{shown}</summary>{'<br>'.join(lines)}</details>"
