"""The public names of the library, and the one address that each has in the reference.

A part such as ``brmdp.beliefs.DirichletBelief`` is described once, at its shortest public name,
``brmdp.DirichletBelief``. References by its other names lead there.
"""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.addnodes import desc_signature, pending_xref

PACKAGES = (
    *("brmdp", "brmdp.agents", "brmdp.batch", "brmdp.beliefs", "brmdp.continuous"),
    *("brmdp.decisions", "brmdp.dirichlet", "brmdp.envs", "brmdp.errors", "brmdp.logs"),
    *("brmdp.models", "brmdp.pattern", "brmdp.planning", "brmdp.report", "brmdp.risk"),
    *("brmdp.runs", "brmdp.simulation", "brmdp.studies", "brmdp.theory"),
)
"""Packages whose ``__all__`` is described in the reference."""

UNLINKED = (nodes.reference, nodes.title, nodes.rubric, pending_xref, desc_signature)
"""Within these, code is not made a link."""


def public_names() -> dict[str, str]:
    """For every public name with its package, the name at which the reference describes it."""
    first: dict[int, str] = {}
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            part = getattr(module, name)
            if isinstance(part, ModuleType):
                continue
            full = f"{package}.{name}"
            described = inspect.isclass(part) or inspect.isfunction(part)
            found[full] = first.setdefault(id(part), full) if described else full
    return found


def file_names() -> dict[str, str]:
    """Names of files for names that differ from others in nothing but capitals."""
    names = set(public_names().values())
    classes = {name.lower() for name in names if name.rpartition(".")[2][0].isupper()}
    return {
        name: f"{name}-function"
        for name in names
        if name.rpartition(".")[2][0].islower() and name in classes
    }


def _resolve(app: Any, env: Any, node: pending_xref, content: Any) -> Any:
    """Lead a reference by another public name, or by that of the defining module, home."""
    if node.get("refdomain") != "py":
        return None
    homes, domain = public_names(), env.get_domain("py")
    within = [".".join(filter(None, (node.get("py:module"), node.get("py:class")))), "brmdp"]
    for target in (node["reftarget"], *(f"{place}.{node['reftarget']}" for place in within)):
        owner, _, member = target.rpartition(".")
        for name, rest in ((target, ""), (owner, f".{member}")):
            home = homes.get(name) or _home_of(name, homes)
            if home is not None and home + rest != node["reftarget"]:
                found = domain.resolve_xref(
                    env, node["refdoc"], app.builder, "obj", home + rest, node, content
                )
                if found is not None:
                    return found
                if rest:  # described with its class
                    return domain.resolve_xref(
                        env, node["refdoc"], app.builder, "obj", home, node, content
                    )
    return None


def _home_of(name: str, homes: dict[str, str]) -> str | None:
    """The public name of something that is named by the module that defines it."""
    place, _, last = name.rpartition(".")
    if not place.startswith("brmdp"):
        return None
    try:
        part = getattr(importlib.import_module(place), last)
    except (ImportError, AttributeError):
        return None
    for home in homes.values():
        package, _, known = home.rpartition(".")
        if known == last and getattr(importlib.import_module(package), known) is part:
            return home
    return None


def _skip(app: Any, what: str, name: str, part: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what is inherited from other libraries."""
    part = getattr(part, "fget", None) or getattr(part, "func", None) or part
    if inspect.isbuiltin(part) or inspect.ismethoddescriptor(part):
        return True
    module = getattr(part, "__module__", None)
    return True if module is not None and not module.startswith("brmdp") else None


def _escape(app: Any, what: str, name: str, part: Any, options: Any, lines: list[str]) -> None:
    """Keep bars, as in max|V|, from being read as substitutions; examples stay as they are."""
    for number, line in enumerate(lines):
        if line.strip() == "Examples":
            return
        pieces = line.split("``")
        pieces[::2] = [piece.replace("|", "\\|") for piece in pieces[::2]]
        lines[number] = "``".join(pieces)


def names_in_code() -> dict[str, str]:
    """What a page may write as code and mean a public name by: where the reference has it.

    Full names, and the short names of classes, unless two classes share one. Short names of
    functions are words such as ``plan``, and mean other things, too.
    """
    homes = public_names()
    short: dict[str, set[str]] = {}
    for home in set(homes.values()):
        last = home.rpartition(".")[2]
        if last[0].isupper() and not last.isupper():
            short.setdefault(last, set()).add(home)
    return homes | {name: min(found) for name, found in short.items() if len(found) == 1}


def _link(app: Any, doctree: nodes.document) -> None:
    """Make code that is a public name a link to its entry."""
    known = names_in_code()
    for code in list(doctree.findall(nodes.literal)):
        home = known.get(code.astext().partition("(")[0])
        outer = code.parent
        while outer is not None and not isinstance(outer, UNLINKED):
            outer = outer.parent
        if home and outer is None and app.env.docname != f"reference/api/{home}":
            link = pending_xref(
                "",
                code.deepcopy(),
                refdomain="py",
                reftype="obj",
                reftarget=home,
                refdoc=app.env.docname,
                refexplicit=True,
            )
            code.replace_self(link)


def setup(app: Any) -> dict[str, Any]:
    """Lead references home."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("doctree-read", _link)
    app.connect("missing-reference", _resolve)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _escape, priority=100)  # before numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
