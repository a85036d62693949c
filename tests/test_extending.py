"""The rows of ARCHITECTURE.md's table "to add X, touch these files", each carried out from outside.

The parts are the complete files of examples/extend, put on the path as a user would.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import brmdp
from brmdp.runs import Store, load_sweep, run_experiment

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
EXTEND = ROOT / "examples" / "extend"
FILES = ("own_risk_measure", "own_belief", "own_agent", "own_environment", "own_schedule")


@pytest.fixture
def on_the_path(monkeypatch):
    """The examples' folder on the path of this process and of its workers."""
    monkeypatch.syspath_prepend(str(EXTEND))
    monkeypatch.setenv("PYTHONPATH", str(EXTEND), prepend=os.pathsep)
    yield
    for name in [*FILES, *(name for name in sys.modules if name.split(".")[0] == "coin")]:
        sys.modules.pop(name, None)


def environment(*folders):
    paths = [*map(str, folders), str(Path(brmdp.__file__).parents[1])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


@pytest.mark.parametrize("name", FILES)
def test_every_file_of_the_examples_runs(name, tmp_path, forks):
    code = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
    done = forks.run(code, EXTEND / f"{name}.py", paths=[EXTEND], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_an_agent_a_measure_a_belief_and_an_environment_enter_a_sweep(on_the_path, tmp_path):
    sweep = load_sweep(EXTEND / "sweep.toml").adjusted(runs=1, steps=40)
    store = run_experiment(sweep, tmp_path, workers=1)
    records = {case.name: store.records(case.name) for case in sweep.cases}
    assert set(records) == {"aq-brmdp", "QLearning", "agent", "fixed-quantile"}
    for found in records.values():
        assert found.true_regret.shape == (1, 40)
        assert np.isfinite(found.true_regret).all()
    assert sweep.case("QLearning").label == "Q-learning"
    # plans of the library's agent were made from the measure, and say that it draws
    statuses = store.to_arrow(["agent"])["status"].drop_null().to_pylist()
    assert set(statuses) == {"sampled"}
    assert type(store.belief_after("fixed-quantile", 0, trust=True)).__name__ == "FadingBelief"


def test_two_processes_and_one_give_the_same_runs(on_the_path, tmp_path):
    sweep = load_sweep(EXTEND / "sweep.toml").adjusted(runs=2, steps=30)
    alone = run_experiment(sweep, tmp_path / "alone", workers=1)
    together = run_experiment(sweep, tmp_path / "together", workers=2)
    assert alone.digest() == together.digest()


def command(*words, cwd=EXTEND, path=None):
    """What the installed command prints: in the examples' folder, or elsewhere with a path."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if path is not None:
        env["PYTHONPATH"] = str(path)
    program = [Path(sys.executable).parent / "brmdp", *map(str, words)]
    done = subprocess.run(program, cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def coin(tmp_path_factory):
    """The folder of a study from outside, as the page's command leaves it, and what it said."""
    folder = tmp_path_factory.mktemp("outside")
    options = ("--runs", 12, "--workers", 1, "--out", folder)
    return folder / "coin", command("reproduce", "coin:STUDY", *options)


def test_a_study_and_its_claim_and_column_from_outside(coin):
    folder, said = coin
    assert "A 90 % interval covers 90 % of the biases" in said
    (claim,) = json.loads((folder / "claims.json").read_text())
    assert claim["verdict"] in ("reproduced", "not resolved at this number of runs")
    assert (folder / "coin.png").stat().st_size > 1000
    # a column is declared once: it was stored, and is read, framed and summed up
    store = Store.at(folder)
    assert store.records("tosses-10").columns.width.shape == (12, 50)
    assert store.to_arrow(["tosses-10"]).column_names == [
        *("case", "run", "row"),
        *("bias", "width", "covered"),
    ]


def test_the_commands_of_the_page_work_in_the_folder_of_the_examples(tmp_path):
    command(*("run", "sweep.toml", "--runs", 1, "--steps", 20, "--workers", 1, "--out", tmp_path))
    assert list(tmp_path.rglob("claims.json"))


def test_a_report_does_not_lose_the_verdicts_of_a_study_from_outside(coin, tmp_path):
    """Nor from another folder, with the study's on the path."""
    folder = shutil.copytree(coin[0], tmp_path / "coin")
    claims = (folder / "claims.json").read_text()
    command("report", folder)
    assert (folder / "claims.json").read_text() == claims
    command("report", folder, "--study", "coin:STUDY", cwd=tmp_path, path=EXTEND)
    assert (folder / "claims.json").read_text() == claims


def test_reading_results_imports_nothing_from_outside(coin, forks):
    """A folder of results may come from anybody."""
    code = """
    import sys
    from brmdp.runs import Store
    found = Store.at(sys.argv[1]).records("tosses-10")
    assert found.columns.width.shape == (12, 50)
    assert found.columns.covered.dtype == bool
    assert "coin" not in sys.modules
    """
    done = forks.run(textwrap.dedent(code), coin[0], paths=[EXTEND])
    assert done.returncode == 0, done.stderr


def test_a_claim_about_agents_from_outside(tmp_path):
    """A claim is data: a statistic, two cases, and where their difference is said to lie."""
    from brmdp.report.claims import BELOW_ZERO, Claim, Comparison
    from brmdp.report.statistics import TRUE_REGRET
    from brmdp.report.summary import compare_agents
    from brmdp.runs import Case, Experiment
    from brmdp.studies import Study

    cases = tuple(
        Case(agent, "riverswim", agent, 0.9, 30, environment_parameters={"n": 3})
        for agent in ("continuing-psrl", "posterior-mean")
    )
    claim = Claim(
        "mine/regret",
        "Sampling learns faster than the mean.",
        "Regret at the end.",
        (Comparison(TRUE_REGRET, *(case.name for case in cases), claimed=BELOW_ZERO),),
    )
    study = Study(
        Experiment("mine", "A claim of mine", cases, runs=3),
        lambda experiment, records: compare_agents(experiment, records, (claim,)),
    )
    store = run_experiment(study.experiment, tmp_path, workers=1)
    records = {case.name: store.records(case.name) for case in cases}
    (judged,) = study.findings(records).claims
    assert judged.identifier == "mine/regret"
    assert judged.comparisons[0].estimate.runs == 3


STEPS = '    episode: IntArray = column("number of the pseudo-episode, from 1")\n'
FILLED = "        episode=path.episode,\n"


def test_a_new_column_is_one_field_and_the_line_that_fills_it(tmp_path):
    """In a copy of the package, which needs no compiling for three steps in three states."""
    package = tmp_path / "src" / "brmdp"
    shutil.copytree(
        Path(brmdp.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    for place, line, more in (
        ("simulation/history.py", STEPS, '    luck: FloatArray = column("luck", total="luck")\n'),
        ("simulation/interaction.py", FILLED, "        luck=path.reward + 0.5,\n"),
        ("continuous/simulation.py", FILLED, "        luck=path.reward,\n"),
    ):
        text = (package / place).read_text()
        assert text.count(line) == 1, f"{place} no longer has the line {line!r}"
        (package / place).write_text(text.replace(line, line + more))
    code = """
    import sys
    import brmdp
    from brmdp.runs import Case, Experiment, run_experiment
    from brmdp.studies import Study
    assert brmdp.__file__.startswith(sys.argv[1]), brmdp.__file__
    case = Case("psrl", "riverswim", "continuing-psrl", 0.5, 3, environment_parameters={"n": 3})
    study = Study(Experiment("lucky", "Luck", (case,), runs=1))
    store = run_experiment(study.experiment, sys.argv[1], workers=1)
    records = {"psrl": store.records("psrl")}
    assert (records["psrl"].luck == records["psrl"].reward + 0.5).all()
    assert "luck" in store.to_arrow().column_names
    total = study.findings(records).summary["agents"]["psrl"]["luck"]["mean"]
    assert abs(total - records["psrl"].luck.sum()) < 1e-12
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
        env={**environment(), "PYTHONPATH": str(package.parent), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_table_of_the_page_names_what_these_tests_do():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| (a[n]? [a-z ]+) \|", text, re.MULTILINE)
    assert set(rows) >= {
        *("a study", "an agent", "a risk measure", "a belief"),
        *("an environment", "a column", "a claim"),
    }
