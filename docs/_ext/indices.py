"""Indices and powers in running text: ``V_k`` and ``(1 − α)^{1/S}``, set low and high.

Claims, tables of columns and docstrings are plain text, so that they can be read anywhere.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

INDEX = re.compile(
    r"(?<=(?<![A-Za-z0-9_])[A-Za-zΑ-ωᾱ])(?P<bar>[\u0304\u0332*]*)"  # a letter, its bar or star
    r"(?P<kind>[_^])(?:\{(?P<more>(?:[^{}]|\{[^{}]*\})*)\}|(?P<one>mean|[A-Za-zΑ-ω0-9])(?!\w))"
    r"|(?<=\))(?P<power>\^)(?:\{(?P<long>[^{}]*)\}|(?P<short>\w)(?!\w))"
)
"""An index or a power behind one letter, or a power behind a bracket."""

KEPT = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment)
"""Within these, text stays as it is."""


def placed(text: str) -> list[nodes.Node]:
    """The text with its indices and powers as nodes of their own."""
    found: list[nodes.Node] = []
    end = 0
    for match in INDEX.finditer(text):
        inner = next(match[name] for name in ("more", "one", "long", "short") if match[name])
        low = match["kind"] == "_"
        found.append(nodes.Text(text[end : match.start()] + (match["bar"] or "")))
        found.append((nodes.subscript if low else nodes.superscript)("", "", *placed(inner)))
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
