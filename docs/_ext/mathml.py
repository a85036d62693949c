"""Formulas as MathML, which browsers draw without scripts, fonts or a network.

The translation is that of docutils. What it does not know is rewritten first, or breaks the build.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)

REWRITTEN = (
    (r"\\label\{[^}]*\}|\\(?:notag|nonumber)\b", ""),
    (r"\\middle(?![a-zA-Z])", ""),
    (r"\\arg(max|min)(?![a-zA-Z])", r"\\arg\\\1"),
    (r"\\Dir(?![a-zA-Z])", r"\\mathrm{Dir}"),
    (r"\\diag(?![a-zA-Z])", r"\\operatorname{diag}"),
    (r"\\([td]?frac)\s*(\d)\s*(\d)", r"\\\1{\2}{\3}"),
    (r"\\stackrel(?![a-zA-Z])", r"\\overset"),
    (r"\\dots(?![a-zA-Z])", r"\\ldots"),
    (r"\\([bB]igg?)(?![a-zA-Z])", r"\\\1l"),
    (r"\\begin\{(?:align|gather|equation|split)\*?\}", r"\\begin{aligned}"),
    (r"\\end\{(?:align|gather|equation|split)\*?\}", r"\\end{aligned}"),
)
"""Patterns that the translation does not know, and what is put in their place."""


def _operator(found: re.Match[str]) -> str:
    r"""Operators named by several words: ``\operatorname*{arg\,max}`` is ``\arg\max``."""
    words = re.split(r"\\[,;: ]|\s+", found[1].strip())
    if words[0] == "arg" and words[1:] in (["max"], ["min"]):
        return rf"\arg\{words[1]} "
    return rf"\operatorname{{{'~'.join(words)}}}"


def as_mathml(latex: str, block: bool) -> str:
    """A formula as MathML.

    Raises
    ------
    MathError
        If something in the formula is not known.
    """
    latex = re.sub(r"\\operatorname\*?\{([^}]*)\}", _operator, latex)
    for pattern, replacement in REWRITTEN:
        latex = re.sub(pattern, replacement, latex)
    try:
        return latex2mathml.tex2mathml(latex.strip(), as_block=block)
    except (AttributeError, IndexError, TypeError) as error:
        raise MathError(str(error)) from error


def _translated(translator: Any, node: nodes.Element, block: bool) -> str:
    latex = node.astext()
    try:
        found = as_mathml(latex, block)
    except MathError as error:
        LOGGER.warning("formula %r: %s", latex, error, location=node)
        found = f"<code>{translator.encode(latex)}</code>"
    return re.sub(r"\n\s*", "", found).replace("<mo>'</mo>", '<mo lspace="0" rspace="0">′</mo>')


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(_translated(translator, node, False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own, with its number if it has one."""
    translator.body.append(translator.starttag(node, "div", CLASS="formula"))
    translator.body.append(_translated(translator, node, True))
    if node.get("number"):
        translator.body.append(f'<span class="eqno">({node["number"]})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Offer the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
