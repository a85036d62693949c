"""Every public name of the package has an example that runs."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

from brmdp import decisions

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("name", [m.name for m in pkgutil.iter_modules(decisions.__path__)])
def test_examples_run(name):
    module = importlib.import_module(f"brmdp.decisions.{name}")
    failed, _ = doctest.testmod(module, optionflags=OPTIONS)
    assert failed == 0


def test_every_public_name_has_an_example():
    lacking = [
        name
        for name in decisions.__all__
        if callable(getattr(decisions, name))
        and ">>>" not in (inspect.getdoc(getattr(decisions, name)) or "")
    ]
    assert not lacking
