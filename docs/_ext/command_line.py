"""The directive ``command-line``: every command and option, as the parser of brmdp has them."""

from __future__ import annotations

import inspect
import types
import typing
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from numpydoc.docscrape import FunctionDoc
from sphinx.util.docutils import SphinxDirective

from brmdp.cli import application

KINDS = {"Path": "path", "int": "number", "float": "number", "str": "text", "bool": ""}
"""What is to be given, by type."""


def _kind(hint: Any) -> str:
    names = [one for one in typing.get_args(hint) if one is not types.NoneType] or [hint]
    return KINDS[names[0].__name__]


def commands() -> dict[str, tuple[Any, list[Any]]]:
    """Every command: its function, and its arguments."""
    app = application()
    names = [name for name in app if not name.startswith("-")]
    return {
        name: (app[name].default_command, list(app[name].assemble_argument_collection()))
        for name in names
    }


class CommandLine(SphinxDirective):
    """All commands, each a section with a table of its options."""

    def run(self) -> list[nodes.Node]:
        """Describe the commands."""
        found: list[nodes.Node] = []
        for name, (command, arguments) in commands().items():
            section = nodes.section(ids=[f"brmdp-{name}"])
            section += nodes.title("", "", nodes.literal("", f"brmdp {name}"))
            self.state.document.note_explicit_target(
                nodes.target("", "", names=[f"brmdp {name}"]), section
            )
            lines = self.lines_of(name, command, arguments)
            source = StringList(lines, source=f"brmdp {name}")
            self.state.nested_parse(source, self.content_offset, section)
            found.append(section)
        return found

    def lines_of(self, name: str, command: Any, arguments: list[Any]) -> list[str]:
        """The description of a command, in Markdown."""
        described = FunctionDoc(command)
        meaning = {one.name: " ".join(one.desc) for one in described["Parameters"]}
        usage = [f"brmdp {name}", *(_usage(one) for one in arguments)]
        lines = [*described["Summary"], "", *described["Extended Summary"], ""]
        lines += ["```text", *_wrapped(usage), "```", ""]
        if arguments:
            lines += ["| argument | meaning | default |", "| :-- | :-- | :-- |"]
        for one in arguments:
            default = one.field_info.default
            shown = {inspect.Parameter.empty: "required", None: "", False: "off", True: "on"}.get(
                default, f"`{default}`"
            )
            words = f"`{one.names[0]}`" + (f" *{_kind(one.hint)}*" if _named(one) else "")
            lines.append(f"| {words} | {meaning[one.field_info.name]} | {shown} |")
        return lines


def _named(one: Any) -> bool:
    return bool(one.names[0].startswith("-") and _kind(one.hint))


def _usage(one: Any) -> str:
    name = one.names[0]
    if not name.startswith("-"):
        return str(name)
    kind = _kind(one.hint).upper()
    return f"[{name} {kind}]" if kind else f"[{name}]"


def _wrapped(words: list[str]) -> list[str]:
    """Usage on lines that fit a phone."""
    lines = [" ".join([words[0], *(word for word in words[1:] if word[0] != "[")])]
    return [*lines, *(f"    {word}" for word in words[1:] if word[0] == "[")]


def setup(app: Any) -> dict[str, Any]:
    """Offer the directive."""
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
