"""Importing is light, and the names that users rely on exist with their documented signatures."""

import inspect
import pickle
import subprocess
import sys
from importlib.metadata import version

import pytest

import brmdp
from brmdp.planning import certify_nested
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
    "CensoredDisturbanceBelief",
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


@pytest.mark.long
def test_import_brings_in_nothing_heavy():
    code = f"import sys, brmdp; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == []


LATER = ("continuous", "report", "runs", "studies", "theory")

ASK_FOR_PARTS = f"""
import sys, brmdp
loaded = [name for name in {LATER!r} if "brmdp." + name in sys.modules]
assert not loaded, loaded
assert {{*{LATER!r}, "__version__"}} <= set(dir(brmdp))
assert brmdp.theory.regret_bound and brmdp.continuous.FittedQ and brmdp.runs.Store and brmdp.report
assert brmdp.studies.all_studies()
assert not hasattr(brmdp, "nothing")
print(brmdp.__version__, "matplotlib" in sys.modules)
"""


@pytest.mark.long
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
from brmdp.runs import Computation
from brmdp.runs.execution import execute
from brmdp.runs.program import program_of
from brmdp.runs.former import upgraded, _STUDIES
from brmdp.runs.runner import Task, compute
from tiny_experiments import dicing, tiny
for case in (*tiny(runs=1, steps=20).cases, *dicing().cases):
    assert compute(Task(case, 0, 0))
small = {"n_states": 2, "n_actions": 2, "observations_per_pair": 2, "discount": 0.5}
small |= {"confidence": 0.8, "worlds": 1, "samples": 10}
coverage = Computation("small", "brmdp.studies.coverage.experiment:COVERAGE", small)
assert compute(Task(coverage, 0, 0))
for name in _STUDIES:  # and whatever else a worker may be asked for
    program_of(Computation(**upgraded({"name": name, "program": name, "parameters": {}}, 2)))
loaded = ("matplotlib", "PIL", "jax", "loky", "rich", "cyclopts", "distributed")
print(*[name for name in loaded if name in sys.modules])
"""


@pytest.mark.long
def test_workers_load_nothing_that_draws():
    done = subprocess.run(
        [sys.executable, "-c", COMPUTE],
        capture_output=True,
        text=True,
        timeout=300,
        env=with_tests_on_the_path(),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


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
        (certify_nested, ["belief", "rewards", "discount", "confidence"]),
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
        (certify_nested, "confidence", 0.9),
        (brmdp.Quantile, "method", "exact"),
        (brmdp.dirichlet.quantile, "method", "exact"),
        (brmdp.MonteCarlo, "cap", 2048),
    ],
)
def test_defaults(function, parameter, default):
    assert inspect.signature(function).parameters[parameter].default == default


@pytest.mark.parametrize("method", ["observe", "mean", "sample", "save", "load", "copy", "uniform"])
def test_methods_of_a_dirichlet_belief(method):
    assert callable(getattr(brmdp.DirichletBelief, method))


def test_solution_fields():
    wanted = [
        "values",
        "policy",
        "tied",
        "residual",
        "error_bound",
        "policy_gap",
        "iterations",
        "status",
    ]
    assert set(wanted) <= set(brmdp.Solution.__dataclass_fields__)
    assert hasattr(brmdp.Solution, "q_values")  # computed when somebody asks
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
