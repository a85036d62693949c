"""Every example in a docstring runs, and every public name has one."""

import doctest
import importlib
import inspect
import pkgutil
import warnings

import pytest

import brmdp

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
DOCUMENTED = (
    *("brmdp", "brmdp.agents", "brmdp.beliefs", "brmdp.continuous", "brmdp.decisions"),
    *("brmdp.dirichlet", "brmdp.envs", "brmdp.logs", "brmdp.models", "brmdp.pattern"),
    *("brmdp.planning", "brmdp.report", "brmdp.risk", "brmdp.runs", "brmdp.simulation"),
    *("brmdp.studies", "brmdp.theory"),
)
"""Packages whose public names each have an example."""


def modules():
    for found in pkgutil.walk_packages(brmdp.__path__, "brmdp."):
        if not found.name.startswith(("brmdp._kernels", "brmdp.cli")):
            yield found.name


@pytest.mark.long
@pytest.mark.parametrize("name", list(modules()))
def test_examples_in_docstrings_run(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # some save a file
    module = importlib.import_module(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", brmdp.PriorWarning)
        failed, _ = doctest.testmod(module, optionflags=OPTIONS)
    assert failed == 0


@pytest.mark.parametrize("package", DOCUMENTED)
def test_every_public_class_and_function_has_an_example(package):
    module = importlib.import_module(package)
    lacking = []
    for name in module.__all__:
        part = getattr(module, name)
        plain = inspect.isclass(part) or inspect.isfunction(part)
        if (
            plain
            and not issubclass_of_exception(part)
            and ">>>" not in (inspect.getdoc(part) or "")
        ):
            lacking.append(name)
    assert not lacking, f"{package}: no example for {', '.join(lacking)}"


def issubclass_of_exception(part):
    return inspect.isclass(part) and issubclass(part, BaseException)
