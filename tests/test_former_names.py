"""Names of earlier versions work, with a warning that gives the present name."""

import importlib
import subprocess
import sys
import warnings
from dataclasses import fields

import pytest

import brmdp
from brmdp._renamed import _GONE, _MODULES, _NAMES, former_name

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
        f"{module}.{name} is now {owner}.{attribute}; the old name will be removed in the next "
        "version"
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


@pytest.mark.parametrize("module", _MODULES)
def test_a_star_import_gives_the_former_names_and_warns_of_each(module):
    given = {"__name__": "theirs"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(f"from {module} import *", "theirs.py", "exec"), given)
    names = importlib.import_module(module).__all__
    assert set(names) == set(given) - {"__name__", "__builtins__", "__warningregistry__"}
    assert {*_NAMES.get(module, {})} <= {*names}
    assert [str(warning.message).split(" is now ")[0] for warning in caught] == [
        f"{module}.{name}" for name in names
    ]
    assert {(warning.category, warning.filename) for warning in caught} == {
        (FutureWarning, "theirs.py")
    }


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        ("brmdp.experiments", "ALL", r"use those studies of brmdp\.studies\.all_studies\(\) that"),
        (
            "brmdp.experiments",
            "EXPERIMENTS",
            r"use brmdp\.studies\.all_studies\(\), and experiment",
        ),
        ("brmdp.analysis", "CLAIMS", r"use claims of brmdp\.studies\.find_study\(name\)\.findings"),
        ("brmdp.analysis", "summarise", r"use summary of brmdp\.studies\.find_study\(name\)\.find"),
    ],
)
def test_a_name_that_nothing_replaces_says_what_to_use(module, name, instead):
    with pytest.raises(AttributeError, match=rf"{module}\.{name} no longer exists; {instead}"):
        getattr(importlib.import_module(module), name)
    assert name in _GONE[module]


def test_what_to_use_instead_exists():
    from brmdp.studies import all_studies, find_study
    from brmdp.studies.paper.analysis import CLAIMS

    in_paper = {name for name, study in all_studies().items() if study.in_paper}
    assert in_paper <= set(CLAIMS)
    study = find_study("riverswim-6")
    assert study.in_paper
    assert study.experiment.name == "riverswim-6"
    assert callable(study.findings)
    assert {"claims", "summary"} <= {field.name for field in fields(brmdp.report.Findings)}


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
        assert module in _MODULES or name not in getattr(found, "__all__", ())
        assert name not in dir(found)
    assert not {"analysis", "experiments", "posterior"} & set(brmdp.__all__)


@pytest.mark.long
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
