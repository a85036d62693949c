"""The page: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from brmdp._extras import optional
from brmdp._files import write_bytes
from brmdp.errors import InvalidInputError
from brmdp.models.page.glossary import Glossary
from brmdp.models.page.numbers import exact_percent
from brmdp.models.page.svg import Charts, Drawing
from brmdp.models.page.text import clean
from brmdp.models.page.views import Detail, PageView, view

if TYPE_CHECKING:
    from brmdp.models.decision import Decision

__all__ = ["LARGEST", "page_of", "write_page"]

LARGEST = 1_500_000
"""Most bytes of a page."""

DETAILS = (
    Detail(),
    Detail(cells=720, policies=200_000, rows=1_000, sections=12, words=300),
    Detail(cells=240, policies=60_000, rows=300, sections=6, words=160),
    Detail(cells=120, policies=20_000, rows=60, sections=2, words=80),
)


def page_of(decision: Decision) -> str:
    """Write a decision as one HTML page that works offline and loads nothing.

    All text from the log and the model file is shown as text: nothing of it is run or read as
    markup. Where the page would grow beyond 1.5 MB, tables and pictures show less, and say so.

    Parameters
    ----------
    decision : Decision

    Returns
    -------
    str
    """
    if not decision.groups:
        raise InvalidInputError("decision.groups must have at least one entry; got none")
    text = ""
    for detail in DETAILS:
        text = _render(view(decision, detail))
        if len(text.encode()) <= LARGEST:
            break
    return text


def write_page(decision: Decision, path: str | os.PathLike[str]) -> None:
    """Write the page of a decision to a file, which appears complete or not at all.

    Parameters
    ----------
    decision : Decision
    path : str or path
    """
    write_bytes(path, page_of(decision).encode())


def _render(page: PageView) -> str:
    style, script = _part("page.css"), _part("page.js")
    glossary, ids = Glossary(page.word), Charts()
    text: str = _template().render(
        page=page,
        style=Drawing(style),
        script=Drawing(script),
        data=Drawing(_json(page.data)),
        policy=_security_policy(style, script),
        terms=glossary.linked,
        entries=glossary.entries,
        new_id=ids.new_id,
        confidence=exact_percent(page.confidence),
    )
    return text.strip() + "\n"


@cache
def _template() -> Any:
    jinja2 = optional("jinja2", "decide")
    environment = jinja2.Environment(
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.from_string(_part("page.html.j2"))


@cache
def _part(name: str) -> str:
    return resources.files("brmdp.models.page").joinpath(name).read_text(encoding="utf-8")


def _shown(value: object) -> object:
    return clean(value) if type(value) is str else value


def _json(data: Mapping[str, Any]) -> str:
    """JSON that no browser can take for the end of its script element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _security_policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
