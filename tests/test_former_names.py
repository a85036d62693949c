"""Names of earlier versions work, with a warning that gives the present name."""

import importlib
import subprocess
import sys
import warnings

import pytest

import brmdp
from brmdp._renamed import _MODULES, _NAMES, former_name

RENAMED = [
    (module, name, place) for module, names in _NAMES.items() for name, place in names.items()
]
MOVED = [
    (module, name)
    for module, place in _MODULES.items()
    for name in importlib.import_module(place).__all__
]


@pytest.mark.parametrize(("module", "name", "place"), RENAMED)
def test_a_former_name_is_what_it_is_called_now(module, name, place):
    owner, _, attribute = place.partition(":")
    wanted = getattr(importlib.import_module(owner), attribute)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert getattr(importlib.import_module(module), name) is wanted
    (warning,) = caught
    assert warning.category is FutureWarning
    assert str(warning.message) == (
        f"{module}.{name} is now {owner}.{attribute}; the old name will go with the next version"
    )
    assert warning.filename == __file__


@pytest.mark.parametrize(("module", "name"), MOVED)
def test_names_of_modules_that_moved_are_found_there(module, name):
    place = _MODULES[module]
    wanted = getattr(importlib.import_module(place), name)
    with pytest.warns(FutureWarning, match=rf"{module}\.{name} is now {place}\.{name};"):
        assert getattr(importlib.import_module(module), name) is wanted


@pytest.mark.parametrize(
    "statement",
    [
        "from brmdp import DirichletPosterior",
        "from brmdp.agents import brmdp",
        "from brmdp.experiments import Case",
        "from brmdp.analysis import estimate",
        "from brmdp.posterior import DisturbancePosterior",
        "from brmdp.theory import world_from_prior",
        "from brmdp.continuous import LakePosterior",
    ],
)
def test_an_import_warns_once_where_it_stands(statement):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(statement, "theirs.py", "exec"), {"__name__": "theirs"})
    (warning,) = caught
    assert (warning.category, warning.filename, warning.lineno) == (FutureWarning, "theirs.py", 1)


def test_what_never_was_is_no_attribute():
    for module in {*_NAMES, *_MODULES}:
        with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
            _ = importlib.import_module(module).nothing
        assert not hasattr(importlib.import_module(module), "__wrapped__")
    with pytest.raises(ImportError, match=r"cannot import name 'nothing' from 'brmdp\.exp"):
        from brmdp.experiments import nothing  # noqa: F401
    with pytest.raises(AttributeError, match=r"module .brmdp\.mdp. has no attribute .Case."):
        former_name("brmdp.mdp", "Case")


def test_former_names_are_not_among_those_of_today():
    for module, name, _ in RENAMED:
        found = importlib.import_module(module)
        assert name not in getattr(found, "__all__", ())
        assert name not in dir(found)
    assert not {"analysis", "experiments", "posterior"} & set(brmdp.__all__)


def test_nobody_is_warned_who_uses_the_names_of_today():
    """Everything that the library exports, and its command line, with warnings as errors."""
    code = """
import importlib, brmdp
import brmdp.cli
for name in ("agents", "beliefs", "dirichlet", "envs", "planning", "risk", "simulation", "runs",
             "report", "studies", "theory", "continuous"):
    module = importlib.import_module(f"brmdp.{name}")
    for one in module.__all__:
        getattr(module, one)
    getattr(brmdp, name)
from brmdp import *
brmdp.studies.all_studies()
"""
    done = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
