"""The reference has every public name, and each has an example."""

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the site needs the extra docs")
pytest.importorskip("numpydoc", reason="the site needs the extra docs")

DOCS = Path(__file__).parents[2] / "docs"
ENTRY = re.compile(r"^   (\w+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def names():
    """The extension of the site that knows the public names; the others can be imported, too."""
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        yield import_module("public_names")
    finally:
        sys.path.remove(str(DOCS / "_ext"))


def listed():
    """The names in the lists of the reference, each with its package."""
    for page in sorted((DOCS / "reference").glob("*.*")):
        package = ""
        for line in page.read_text().splitlines():
            if line.startswith(".. currentmodule::"):
                package = line.split()[-1]
            elif package and ENTRY.match(line):
                yield f"{package}.{line.strip()}"


def test_every_public_name_is_listed_once(names):
    found = list(listed())
    assert sorted(found) == sorted(set(names.public_names().values()))


def test_every_public_package_is_considered(names):
    import brmdp

    parts = {f"brmdp.{name}" for name in brmdp._LATER}
    parts |= {f"brmdp.{name}" for name in brmdp.__all__ if inspect.ismodule(getattr(brmdp, name))}
    assert parts <= set(names.PACKAGES)


def test_every_listed_class_and_function_has_an_example(names):
    lacking = []
    for full in set(names.public_names().values()):
        package, _, name = full.rpartition(".")
        part = getattr(import_module(package), name)
        described = inspect.isclass(part) or inspect.isfunction(part)
        if described and ">>>" not in (inspect.getdoc(part) or ""):
            lacking.append(full)
    assert not lacking


def test_every_error_has_advice():
    import brmdp

    text = (DOCS / "reference" / "errors.md").read_text()
    advised = set(re.findall(r"^`(\w+)`(?:, an? `\w+`)?\n: ", text, re.MULTILINE))
    assert {*brmdp.errors.__all__} - {"BrmdpError"} <= advised


def test_no_two_pages_differ_in_capitals_alone(names):
    files = names.file_names()
    pages = [files.get(name, name).lower() for name in set(names.public_names().values())]
    assert len(pages) == len(set(pages))


def test_code_that_is_a_public_name_becomes_a_link(names):
    known = names.names_in_code()
    assert known["brmdp.plan"] == "brmdp.plan"
    assert known["brmdp.beliefs.DirichletBelief"] == known["DirichletBelief"]
    assert "Comparison" not in known  # of decisions, or of claims
    assert "plan" not in known  # a word


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("V*_{φ_k,α̲} ≤ V_k", "V*[φ[k],α̲] ≤ V[k]"),
        ("V^{π_k}_{φ_k,α̲}(s_t)", "V[π[k]][φ[k],α̲](s[t])"),
        ("ρ^α_φ(w·P)", "ρ[α][φ](w·P)"),
        ("1 − (1 − ᾱ)^{1/S}", "1 − (1 − ᾱ)[1/S]"),
        ("c_k/c̄_k, γP_π", "c[k]/c̄[k], γP[π]"),
        ("n_states, max_order, own_agent.py", "n_states, max_order, own_agent.py"),
    ],
)
def test_indices_are_set_as_indices(names, text, shown):
    placed = import_module("indices").placed

    def read(node):
        inner = "".join(map(read, node.children))
        return node.astext() if node.tagname == "#text" else f"[{inner}]"

    assert "".join(map(read, placed(text))) == shown


def test_the_command_line_has_every_command_and_option():
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        commands = import_module("command_line").commands()
    finally:
        sys.path.remove(str(DOCS / "_ext"))
    assert len(commands) == 8
    for command, arguments in commands.values():
        described = inspect.getdoc(command)
        for one in arguments:
            assert f"{one.field_info.name} : " in described
