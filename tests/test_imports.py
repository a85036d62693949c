"""Importing is light, and the names that users rely on exist with their documented signatures."""

import inspect
import pickle
import subprocess
import sys
from importlib.metadata import version

import pytest

import brmdp
from tiny_experiments import with_tests_on_the_path

HEAVY = (
    "scipy.stats",
    "matplotlib",
    "jax",
    "pandas",
    "pyarrow",
    "loky",
    "rich",
    "distributed",
    "quantecon",
    "mpmath",
    "pytest",
)

NAMES = [
    "TabularMDP",
    "solve",
    "evaluate_in_mdp",
    "DirichletBelief",
    "ScenarioBelief",
    "DisturbanceBelief",
    "Quantile",
    "CVaR",
    "Mean",
    "MonteCarlo",
    "PosteriorSample",
    "plan",
    "evaluate_under_belief",
    "certify",
    "dirichlet",
    "Solution",
    "Certificate",
    "envs",
    "certified_level",
    "posterior_quantile_value",
    "prior_reliance",
    "PriorReliance",
    "PriorWarning",
    "ContradictionError",
    "RiskMeasureError",
]


def test_import_brings_in_nothing_heavy():
    code = f"import sys, brmdp; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == []


LATER = ("analysis", "continuous", "experiments", "theory")

ASK_FOR_PARTS = f"""
import sys, brmdp
loaded = [name for name in {LATER!r} if "brmdp." + name in sys.modules]
assert not loaded, loaded
assert {{*{LATER!r}, "__version__"}} <= set(dir(brmdp))
assert brmdp.theory.regret_bound and brmdp.continuous.FittedQ and brmdp.runs.Store and brmdp.report
assert not hasattr(brmdp, "nothing")
print(brmdp.__version__, "matplotlib" in sys.modules)
"""


def test_parts_load_when_first_asked_for():
    done = subprocess.run(
        [sys.executable, "-c", ASK_FOR_PARTS],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.split() == [version("brmdp"), "False"]


COMPUTE = """
import sys
from tiny_experiments import tiny
from brmdp.runs.runner import Task, compute
case = tiny(runs=1).cases[0]
assert compute(Task(case, 0, 0))
print("matplotlib" in sys.modules)
"""


def test_workers_do_not_load_matplotlib():
    done = subprocess.run(
        [sys.executable, "-c", COMPUTE],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env=with_tests_on_the_path(),
    )
    assert done.stdout.split() == ["False"]


@pytest.mark.parametrize("name", NAMES)
def test_public_name_exists(name):
    assert name in brmdp.__all__
    assert getattr(brmdp, name) is not None


def test_everything_exported_exists_and_is_documented():
    for name in brmdp.__all__:
        item = getattr(brmdp, name)
        assert inspect.getdoc(item), name


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (brmdp.TabularMDP, ["transitions", "rewards", "discount", "start"]),
        (brmdp.solve, ["mdp"]),
        (brmdp.evaluate_in_mdp, ["mdp", "policy"]),
        (brmdp.DirichletBelief, ["concentration"]),
        (brmdp.DirichletBelief.uniform, ["n_states", "n_actions", "concentration"]),
        (brmdp.ScenarioBelief, ["kernels", "weights"]),
        (brmdp.Quantile, ["alpha", "method"]),
        (brmdp.CVaR, ["alpha"]),
        (brmdp.plan, ["belief", "rewards", "discount"]),
        (brmdp.evaluate_under_belief, ["belief", "rewards", "discount", "policy"]),
        (brmdp.certify, ["belief", "rewards", "discount", "confidence"]),
        (brmdp.dirichlet.quantile, ["concentration", "values", "alpha", "method"]),
        (brmdp.dirichlet.cdf, ["concentration", "values", "z"]),
    ],
)
def test_leading_parameters(function, parameters):
    assert list(inspect.signature(function).parameters)[: len(parameters)] == parameters


@pytest.mark.parametrize(
    ("function", "parameter", "default"),
    [
        (brmdp.TabularMDP, "start", 0),
        (brmdp.DirichletBelief.uniform, "concentration", 1.0),
        (brmdp.plan, "tolerance", None),
        (brmdp.certify, "confidence", 0.9),
        (brmdp.Quantile, "method", "exact"),
        (brmdp.dirichlet.quantile, "method", "exact"),
        (brmdp.MonteCarlo, "cap", 2048),
    ],
)
def test_defaults(function, parameter, default):
    assert inspect.signature(function).parameters[parameter].default == default


@pytest.mark.parametrize("method", ["observe", "mean", "sample", "save", "load", "copy", "uniform"])
def test_dirichlet_posterior_methods(method):
    assert callable(getattr(brmdp.DirichletBelief, method))


def test_solution_fields():
    wanted = [
        "values",
        "q_values",
        "policy",
        "tied",
        "residual",
        "error_bound",
        "policy_gap",
        "iterations",
        "status",
    ]
    assert set(wanted) <= set(brmdp.Solution.__dataclass_fields__)
    assert {"level", "values", "policy", "coverage"} <= set(brmdp.Certificate.__dataclass_fields__)


def test_a_missing_extra_is_an_import_error_that_names_the_package():
    from brmdp._extras import optional

    with pytest.raises(
        ImportError,
        match=r"no_such_package is missing; install it with: pip install 'brmdp\[cluster\]'",
    ) as caught:
        optional("no_such_package", "cluster")
    assert isinstance(caught.value, brmdp.MissingExtraError)
    assert isinstance(caught.value, brmdp.ExperimentError)
    assert caught.value.name == "no_such_package"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.name) == (str(caught.value), "no_such_package")
