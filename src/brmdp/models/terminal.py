"""Checks and results in words, for a terminal, and where results may be written."""

from __future__ import annotations

import json
import math
import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from brmdp.errors import InvalidInputError
from brmdp.models.model import Model
from brmdp.models.results import Check, Verdict
from brmdp.models.toml import shown

__all__ = ["checks_in_words", "checks_json", "plain", "require_free"]

VERDICTS: tuple[Verdict, ...] = ("stop", "look", "fine")
"""From the worst to the best."""


def plain(text: str) -> str:
    """Text in which nothing can steer a terminal: what is not printable is escaped."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )


def checks_in_words(checks: Sequence[Check]) -> str:
    """All checks, the worst first: verdict and question, finding, consequence and remedy."""
    named = {
        verdict: [check for check in checks if check.verdict == verdict] for verdict in VERDICTS
    }
    summary = ", ".join(
        f"{len(found)} {verdict.upper() if verdict == 'stop' else verdict}"
        for verdict, found in named.items()
        if found
    )
    parts = [f"Checks: {summary}." if checks else "Checks: none could be made."]
    for verdict in VERDICTS:
        for check in named[verdict]:
            where = f" ({check.group})" if check.group else ""
            head = f"{verdict.upper():5} {check.name}{where}: {check.question}"
            remedy = f"What to do: {check.remedy}" if check.remedy else ""
            sentences = [f"  {one}" for one in (check.finding, check.consequence, remedy) if one]
            parts.append("\n".join([_filled(head), *map(_filled, sentences)]))
    return "\n\n".join(parts)


def _filled(text: str) -> str:
    return textwrap.fill(
        text, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def checks_json(model: Model, checks: Iterable[Check]) -> str:
    """The checks as a JSON document."""
    found = {
        "title": model.title,
        "checks": [
            {
                "name": check.name,
                "group": check.group,
                "question": check.question,
                "verdict": check.verdict,
                "finding": check.finding,
                "consequence": check.consequence,
                "remedy": check.remedy,
                "figures": {key: _finite(value) for key, value in check.figures.items()},
            }
            for check in checks
        ],
        "fingerprint": {"data": model.log.digest, "model": model.digest, "seed": model.seed},
    }
    return json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def require_free(
    outputs: Mapping[str, tuple[Path | None, tuple[str, ...]]], inputs: Iterable[Path]
) -> None:
    """Refuse to write over what is read, twice to one file, or to a place that does not exist.

    Parameters
    ----------
    outputs : mapping
        For each option, the path given with it (or None), and the endings that it may have.
    inputs : iterable of Path
        Files that are read.
    """
    read = [path.resolve() for path in inputs]
    written: dict[Path, str] = {}
    for option, (path, endings) in outputs.items():
        if path is None:
            continue
        if path.suffix.lower() not in endings:
            raise InvalidInputError(
                f"{option} must name a file that ends in {' or '.join(endings)}; got "
                f"{shown(str(path))}"
            )
        if not path.parent.is_dir():
            raise InvalidInputError(
                f"{option} must lie in a folder that exists; got {shown(str(path))}"
            )
        if path.is_dir():
            raise InvalidInputError(f"{option} must be a file; {shown(str(path))} is a folder")
        place = path.resolve()
        if any(place == one or _same(place, one) for one in read):
            raise InvalidInputError(
                f"{option} must not be a file that is read; got {shown(str(path))}"
            )
        if place in written:
            raise InvalidInputError(
                f"{option} and {written[place]} must be different files; got {shown(str(path))}"
            )
        written[place] = option


def _same(one: Path, other: Path) -> bool:
    """Whether two names belong to one file, as with hard links."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
