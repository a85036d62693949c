"""The report of an experiment.

Numbers, claims and figures in one folder, and a text for the terminal.

Every file is complete or absent, and equal records give equal files.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from brmdp._files import write_atomically
from brmdp.errors import ExperimentError, InvalidInputError
from brmdp.figures import (
    bayesian_regret,
    continuous,
    coverage,
    examples,
    lemmas,
    normality,
    optimism,
)
from brmdp.report.claims import JudgedClaim, judge, merged
from brmdp.report.content import Content
from brmdp.report.layouts import figures_of
from brmdp.report.style import picture
from brmdp.report.summary import (
    TERMINAL,
    claims_as_markdown,
    claims_as_text,
    count_of_runs,
    error_statement,
    summarise,
    summary_table,
    verdict_counts,
)
from brmdp.runs import CaseRecords, Experiment, Replications
from brmdp.runs.origin import ANALYSIS, short
from brmdp.studies.paper.analysis import CLAIMS
from brmdp.studies.paper.schematics import schematics

__all__ = [
    "REPORTERS",
    "Content",
    "Report",
    "made_by_line",
    "write_overview",
    "write_report",
    "write_schematics",
]

LONGEST_NAME = 150
"""Most bytes of the name of a figure."""


REPORTERS: dict[str, Callable[[Experiment, Mapping[str, Any]], Content]] = {
    "bayesian-regret": bayesian_regret.reporter,
    "continuous": continuous.reporter,
    "coverage": coverage.reporter,
    "examples": examples.reporter,
    "lemmas": lemmas.reporter,
    "normality": normality.reporter,
    "optimism": optimism.reporter,
}
"""Experiments with a report of their own.

From an experiment and its records to what is said of them, by name.
"""


@dataclass(frozen=True, eq=False)
class Report:
    """What an experiment showed.

    Attributes
    ----------
    text : str
        For a terminal of 100 columns: final regrets with intervals, and the claims with verdicts.
    summary : dict
        What stands in ``summary.json``.
    claims : tuple of JudgedClaim
    files : tuple of Path
        All that was written.
    made_by : tuple of (str, str)
        Versions of brmdp and digests of the code that made the runs.
    """

    text: str
    summary: dict[str, Any]
    claims: tuple[JudgedClaim, ...]
    files: tuple[Path, ...]
    made_by: tuple[tuple[str, str], ...] = ()


def write_report(
    experiment: Experiment, records: Mapping[str, CaseRecords | Replications], directory: Path
) -> Report:
    """Write the report of an experiment into ``directory``.

    It holds ``summary.json``, ``summary.md``, ``claims.json``, ``claims.md`` and every figure as
    PNG and PDF. An experiment that is not the paper's has no claims, and their files are empty of
    them. Each table says below what code made its runs and what code made it of them.

    Parameters
    ----------
    experiment : Experiment
    records : mapping
        Records by case name. Cases may be missing or have different numbers of runs: pairs are made
        of common runs.
    directory : Path
        Made if it does not exist.

    Raises
    ------
    InvalidInputError
        If there are no runs.
    ExperimentError
        If a file cannot be written.
    """
    present = {case.name: records[case.name] for case in experiment.cases if case.name in records}
    if not any(found.run.size for found in present.values()):
        raise InvalidInputError(
            f"records must hold at least one run of a case of {experiment.name}; got none"
        )
    present = {name: found for name, found in present.items() if found.run.size}
    content = REPORTERS.get(experiment.name, _interactions)(experiment, present)
    claims, table = content.claims, content.table
    made_by = tuple(sorted({origin for found in present.values() for origin in found.made_by}))
    line = made_by_line(made_by)
    below = f"\n<sub>{line}</sub>\n" if line else ""
    texts = {
        "summary.json": _json(content.summary),
        "summary.md": table.as_markdown() + "\n" + below,
        "claims.json": _json([claim.as_json() for claim in claims]),
        "claims.md": _markdown(claims) + below if claims else "",
    }
    pictures = {
        f"{name}.{kind}": picture(figure, kind)
        for name, figure in zip(_file_names(content.figures), content.figures.values(), strict=True)
        for kind in ("png", "pdf")
    }
    files = _write_all(directory, texts, pictures)
    heading = f"{experiment.title}: {count_of_runs(present)}, mean [95 % interval]"
    parts = [heading, table.as_text()]
    if claims:
        parts += [f"Claims: {verdict_counts(claims)}", claims_as_text(claims)]
        parts += (
            [textwrap.fill(statement, TERMINAL)] if (statement := error_statement(claims)) else []
        )
    parts += [line] if line else []
    return Report("\n\n".join(parts), content.summary, claims, files, made_by)


def made_by_line(made_by: Iterable[tuple[str, str]]) -> str:
    """What code made runs, and what code judges them here.

    Empty if nothing is known of the runs.
    """
    runs = " and ".join(f"brmdp {version}, code {short(code)}" for version, code in made_by)
    return f"Runs: {runs}; analysis {short(ANALYSIS)}." if runs else ""


def _file_names(names: Iterable[str]) -> list[str]:
    """Names that every file system takes, all different."""
    chosen: list[str] = []
    taken: set[str] = set()
    for name in names:
        plain = (
            re.sub(r"[^\w.+=,@ -]+", "-", name)
            .encode()[:LONGEST_NAME]
            .decode(errors="ignore")
            .strip(" .")
        )
        unique, number = plain or "figure", 1
        while unique.casefold() in taken:
            number += 1
            unique = f"{plain}-{number}"
        taken.add(unique.casefold())
        chosen.append(unique)
    return chosen


def _interactions(experiment: Experiment, records: Mapping[str, CaseRecords]) -> Content:
    """Agents compared by their regrets."""
    return Content(
        summary=summarise(experiment, records),
        table=summary_table(records),
        claims=judge(CLAIMS.get(experiment.name, ()), experiment.name, records),
        figures=figures_of(experiment, records),
    )


def write_overview(reports: Sequence[Report], directory: Path) -> tuple[JudgedClaim, ...]:
    """Write the claims of several reports together as ``claims.json`` and ``claims.md``.

    Statements that span experiments (something *can* happen) are judged over all of them here.
    """
    claims = merged([claim for report in reports for claim in report.claims])
    line = made_by_line(sorted({origin for report in reports for origin in report.made_by}))
    below = f"\n<sub>{line}</sub>\n" if line else ""
    contents = {
        "claims.json": _json([claim.as_json() for claim in claims]),
        "claims.md": f"{verdict_counts(claims)}.\n\n{_markdown(claims)}{below}",
    }
    _write_all(directory, contents, {})
    return claims


def write_schematics(directory: Path) -> tuple[Path, ...]:
    """Write the schematics of the two worlds as PNG and PDF."""
    pictures = {
        f"{name}.{kind}": picture(figure, kind)
        for name, figure in schematics().items()
        for kind in ("png", "pdf")
    }
    return _write_all(directory, {}, pictures)


def _markdown(claims: Sequence[JudgedClaim]) -> str:
    """The table of claims, and how often their verdicts are wrong."""
    return "\n\n".join(filter(None, [claims_as_markdown(claims), error_statement(claims)])) + "\n"


def _json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _write_all(
    directory: Path, texts: Mapping[str, str], pictures: Mapping[str, bytes]
) -> tuple[Path, ...]:
    directory = Path(directory)
    contents = {name: text.encode() for name, text in texts.items()} | dict(pictures)
    target = directory
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            target = directory / name
            write_atomically(target, partial(_put, content))
    except (OSError, InvalidInputError) as error:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise ExperimentError(
            f"{target} cannot be written: {reason}. Runs are intact; remove the cause, and `brmdp "
            "report` writes the report anew"
        ) from error
    return tuple(directory / name for name in contents)


def _put(content: bytes, stream: BinaryIO) -> None:
    stream.write(content)
