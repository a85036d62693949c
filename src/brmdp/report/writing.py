"""The report of an experiment: a folder of numbers, claims and figures, and a text to print.

Every file is either complete or absent. Equal records give equal files.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure

from brmdp._files import write_bytes
from brmdp.errors import ExperimentError, InvalidInputError
from brmdp.report.claims import JudgedClaim, merged
from brmdp.report.findings import Findings
from brmdp.report.style import picture
from brmdp.report.summary import count_of_runs
from brmdp.report.tables import TERMINAL
from brmdp.report.verdicts import (
    claims_as_markdown,
    claims_as_text,
    error_statement,
    verdict_counts,
)
from brmdp.runs import CaseRecords, Experiment, Replications
from brmdp.runs.origin import ANALYSIS, short

__all__ = ["Report", "made_by_line", "write_figures", "write_overview", "write_report"]

LONGEST_NAME = 150
"""Longest name of a figure, in bytes."""

KINDS: tuple[Literal["png", "pdf"], ...] = ("png", "pdf")
"""File formats in which figures are written."""


@dataclass(frozen=True, eq=False)
class Report:
    """What an experiment showed.

    Attributes
    ----------
    text : str
        The report for a terminal of 100 columns: final regrets with intervals, and claims with
        verdicts.
    summary : dict
        The content of ``summary.json``.
    claims : tuple of JudgedClaim
    files : tuple of Path
        All files that were written.
    made_by : tuple of (str, str)
        Versions of brmdp, and digests of the code, that made the runs.
    """

    text: str
    summary: dict[str, Any]
    claims: tuple[JudgedClaim, ...]
    files: tuple[Path, ...]
    made_by: tuple[tuple[str, str], ...] = ()


def write_report(
    experiment: Experiment,
    records: Mapping[str, CaseRecords | Replications[Any]],
    findings: Findings,
    figures: Mapping[str, Figure],
    directory: str | os.PathLike[str],
    *,
    analysis: str = ANALYSIS,
) -> Report:
    """Write the report of an experiment into ``directory``.

    The files are ``summary.json``, ``summary.md``, ``claims.json``, ``claims.md`` and every figure
    as PNG and PDF. Without claims, ``claims.json`` holds an empty list and ``claims.md`` is empty.
    A line below each table names the code that made its runs and the code that made the table.

    Parameters
    ----------
    experiment : Experiment
    records : mapping
        The records behind findings and figures.
    findings : Findings
    figures : mapping
        Figures by file name without extension.
    directory : path
        Folder to write into; created if it does not exist.
    analysis : str
        Digest of the code that made the findings; by default the library's.

    Raises
    ------
    ExperimentError
        If a file cannot be written.
    """
    claims, table = findings.claims, findings.table
    made_by = tuple(sorted({origin for found in records.values() for origin in found.made_by}))
    line = made_by_line(made_by, analysis)
    below = f"\n<sub>{line}</sub>\n" if line else ""
    texts = {
        "summary.json": _json(findings.summary),
        "summary.md": table.as_markdown() + "\n" + below,
        "claims.json": _json([claim.as_json() for claim in claims]),
        "claims.md": _markdown(claims) + below if claims else "",
    }
    files = _write_all(directory, texts, _pictures(figures))
    heading = f"{experiment.title}: {count_of_runs(records)}, mean [95 % interval]"
    parts = [heading, table.as_text()]
    if claims:
        parts += [f"Claims: {verdict_counts(claims)}", claims_as_text(claims)]
        parts += [textwrap.fill(said, TERMINAL)] if (said := error_statement(claims)) else []
    parts += [textwrap.fill(line, TERMINAL)] if line else []
    return Report("\n\n".join(parts), findings.summary, claims, files, made_by)


def write_figures(
    figures: Mapping[str, Figure], directory: str | os.PathLike[str]
) -> tuple[Path, ...]:
    """Write figures as PNG and PDF, and return the paths of the files."""
    return _write_all(directory, {}, _pictures(figures))


def _pictures(figures: Mapping[str, Figure]) -> dict[str, bytes]:
    return {
        f"{name}.{kind}": picture(figure, kind)
        for name, figure in zip(_file_names(figures), figures.values(), strict=True)
        for kind in KINDS
    }


def made_by_line(made_by: Iterable[tuple[str, str]], analysis: str = ANALYSIS) -> str:
    """A line that names the code that made the runs and the code that judges them here.

    Empty if nothing is known about the runs.
    """
    runs = " and ".join(f"brmdp {version}, code {short(code)}" for version, code in made_by)
    return f"Runs: {runs}; analysis {short(analysis)}." if runs else ""


def _file_names(names: Iterable[str]) -> list[str]:
    """Distinct names that every file system accepts."""
    chosen: list[str] = []
    taken: set[str] = set()
    for name in names:
        if not isinstance(name, str):
            raise InvalidInputError(f"names of figures must be text; got {name!r}")
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


def write_overview(
    reports: Sequence[Report], directory: str | os.PathLike[str]
) -> tuple[JudgedClaim, ...]:
    """Write the claims of several reports together as ``claims.json`` and ``claims.md``.

    Claims that cover several experiments, because something *can* happen, are judged over all of
    them here.
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


def _markdown(claims: Sequence[JudgedClaim]) -> str:
    """The table of claims, followed by how often verdicts are wrong."""
    return "\n\n".join(filter(None, [claims_as_markdown(claims), error_statement(claims)])) + "\n"


def _json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _write_all(
    directory: str | os.PathLike[str], texts: Mapping[str, str], pictures: Mapping[str, bytes]
) -> tuple[Path, ...]:
    directory = Path(directory)
    contents = {name: text.encode() for name, text in texts.items()} | dict(pictures)
    target = directory
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            target = directory / name
            write_bytes(target, content)
    except (OSError, InvalidInputError) as error:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise ExperimentError(
            f"{target} cannot be written: {reason}. The runs are intact: fix the cause, then write "
            "the report with `brmdp report`"
        ) from error
    return tuple(directory / name for name in contents)
