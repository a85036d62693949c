"""Indices and powers in running text: ``V_k`` and ``(1 − α)^{1/S}``, set low and high.

Claims, tables of columns and docstrings are plain text, so that they can be read anywhere.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

MORE = r"(?:[^{}]|\{[^{}]*\})+"
INDEX = re.compile(
    r"(?:(?<=(?<![A-Za-z0-9_])[A-Za-zΑ-ωᾱ])(?P<bar>[\u0304\u0332*]*)"  # a letter, its bar or star
    r"|(?<=[)}]))"
    rf"(?P<kind>[_^])(?:\{{(?P<more>{MORE})\}}|(?P<one>mean|[A-Za-zΑ-ω0-9])(?![A-Za-z0-9Α-ω]))"
)
"""An index or a power behind a letter that stands alone, or behind a bracket."""

KEPT = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment)
"""Within these, text stays as it is."""


def placed(text: str) -> list[nodes.Node]:
    """The text with its indices and powers as nodes of their own."""
    found: list[nodes.Node] = []
    end = 0
    for match in INDEX.finditer(text):
        place = nodes.subscript if match["kind"] == "_" else nodes.superscript
        found.append(nodes.Text(text[end : match.start()] + (match["bar"] or "")))
        found.append(place("", "", *placed(match["more"] or match["one"])))
        end = match.end()
    rest = text[end:]
    return [*found, nodes.Text(rest)] if rest else found


def _place(app: Any, doctree: nodes.document) -> None:
    """Set the indices of a page."""
    for text in list(doctree.findall(nodes.Text)):
        outer = text.parent
        while outer is not None and not isinstance(outer, KEPT):
            outer = outer.parent
        if outer is None and INDEX.search(text):
            text.parent.replace(text, placed(str(text)))


def setup(app: Any) -> dict[str, Any]:
    """Set indices on every page."""
    app.connect("doctree-read", _place)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
