"""The study ``continuous``: its runs, whoever computes or kills them, closer looks and claims."""

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from brmdp.continuous import optimal_values
from brmdp.errors import ExperimentError, InvalidInputError
from brmdp.report.claims import Verdict
from brmdp.runs import Case, CaseRecords, Computation, Store, execute, run_experiment
from brmdp.runs.encoding import extra_versions
from brmdp.runs.execution import extra_of, validate
from brmdp.runs.lake import AGENTS, LAKE
from brmdp.studies import all_studies
from brmdp.studies.continuous_lake import STUDIES
from brmdp.studies.continuous_lake.analysis import PARTS, claims, table
from brmdp.studies.continuous_lake.experiment import EXPERIMENT
from tiny_experiments import with_tests_on_the_path
from tiny_lake import FITTING, tiny_lake

pytestmark = pytest.mark.long

NAMES = (
    "aq-brmdp",
    "continuing-psrl",
    "posterior-mean",
    "brmdp-0.2",
    "brmdp-0.5",
    "portrait",
    "epsilon",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two runs of everything, computed in this process and left in peace."""
    return run_experiment(tiny_lake(), tmp_path_factory.mktemp("undisturbed"), workers=1)


@pytest.fixture(scope="module")
def records(store):
    return {case.name: store.records(case.name) for case in store.experiment.cases}


# --- what is asked for ----------------------------------------------------------------------------


def test_the_settings_are_those_of_the_paper():
    assert tuple(case.name for case in EXPERIMENT.cases) == NAMES
    assert [EXPERIMENT.runs_of(case) for case in EXPERIMENT.cases] == [100, 100, 30, 30, 30, 1, 1]
    for case in EXPERIMENT.cases[:5]:
        assert (case.environment, case.discount, case.steps) == (LAKE, 0.8, 4500)
        # written out, so that a store does not depend on defaults of the day
        assert set(case.agent_parameters) == set(AGENTS[case.agent])
    adaptive = EXPERIMENT.cases[0].agent_parameters
    wanted = {
        "delta": 10.0,
        "floor": 0.2,
        "ceiling": 0.95,
        "epsilon": 0.01,
        "coefficient": 250.0,
        "draws": 800,
    }
    assert {name: adaptive[name] for name in wanted} == wanted
    assert adaptive["hidden"] == (64, 64)


def test_fewer_steps_hold_for_the_closer_looks_too():
    short = EXPERIMENT.adjusted(runs=2, steps=50)
    assert {case.steps for case in short.cases if isinstance(case, Case)} == {50}
    assert {case.parameters["steps"] for case in short.cases if isinstance(case, Computation)} == {
        50
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agent": "aq-brmpd"}, "unknown agent 'aq-brmpd'; did you mean 'aq-brmdp'"),
        ({"agent_parameters": {}}, "aq-brmdp needs delta"),
        (
            {"agent_parameters": {"delta": 10.0, "epsilom": 0.1}},
            "unknown parameter of aq-brmdp 'epsilom'; did you mean",
        ),
        (
            {"agent_parameters": {"delta": 10.0, "method": "exact"}},
            "unknown parameter of aq-brmdp 'method'",
        ),
        ({"agent_parameters": {"delta": 0.0}}, "delta must be a positive finite number; got 0"),
        (
            {"agent_parameters": {"delta": 1.0, "floor": 0.97}},
            "floor must not exceed ceiling; got 0.97 and 0.95",
        ),
        (
            {"agent_parameters": {"delta": 1.0, "ceiling": 1.0}},
            "ceiling must lie strictly between 0 and 1",
        ),
        (
            {"agent_parameters": {"delta": 1.0, "epsilon": -1}},
            "epsilon must be a positive finite number",
        ),
        ({"agent_parameters": {"delta": 1.0, "coefficient": "c"}}, "coefficient must be"),
        (
            {"agent_parameters": {"delta": 1.0, "learning_rate": 0}},
            "learning_rate must be a positive finite number",
        ),
        (
            {"agent_parameters": {"delta": 1.0, "hidden": 64}},
            "hidden must be a tuple of positive integers; got 64",
        ),
        ({"agent": "fixed-quantile", "agent_parameters": {}}, "fixed-quantile needs alpha"),
        (
            {"agent": "fixed-quantile", "agent_parameters": {"alpha": 1.0}},
            "alpha must lie strictly between 0 and 1",
        ),
        (
            {"agent": "posterior-mean", "agent_parameters": {"alpha": 0.1}},
            "unknown parameter of posterior-mean 'alpha'",
        ),
        ({"environment_parameters": {"n": 4}}, f"unknown parameter of {LAKE} 'n'"),
        ({"environment": "continuous-frozenlak"}, f"unknown environment .*did you mean '{LAKE}'"),
        ({"robust_level": 0.2}, "robust_level must be None in continuous-frozenlake"),
        ({"quantile_level": 0.1}, "quantile_level must be None in continuous-frozenlake"),
    ],
)
def test_impossible_cases_are_named_before_anything_runs(changes, message, tmp_path):
    experiment = tiny_lake(names=["aq-brmdp"])
    with pytest.raises(InvalidInputError, match=f"case 'aq-brmdp': .*{message}"):
        run_experiment(
            replace(experiment, cases=(replace(experiment.cases[0], **changes),)),
            tmp_path,
            workers=1,
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["aq-brmdp", "portrait"])
@pytest.mark.parametrize("package", ["jax", "optax"])
def test_without_jax_the_extra_is_named_before_anything_runs(name, package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ExperimentError, match=rf"{package} is missing; .*pip install 'brmdp\[continuous\]'"
    ):
        run_experiment(tiny_lake(names=[name]), tmp_path, workers=1)
    assert not list(tmp_path.iterdir())


def test_checking_needs_no_jax():
    code = (
        "import sys; from brmdp.studies.continuous_lake import STUDIES; from brmdp.runs.execution "
        "import validate; [validate(case) for case in STUDIES[0].experiment.cases]; "
        "print('jax' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == ["False"]


def test_only_these_cases_need_the_extra():
    assert {extra_of(case) for case in EXPERIMENT.cases} == {"continuous"}
    assert all(
        extra_of(case) is None
        for name, study in all_studies().items()
        if name not in (EXPERIMENT.name, "certificates-icu")
        for case in study.experiment.cases
    )
    assert set(extra_versions(EXPERIMENT.cases[0])) == {"jax", "optax"}


# --- whoever computes -----------------------------------------------------------------------------

SCRIPT = """
import sys
from tiny_lake import tiny_lake
from brmdp.runs import run_experiment
folder, workers, *names = sys.argv[1:]
experiment = tiny_lake(3, names=names)
said = lambda *_: print("on", flush=True)
store = run_experiment(experiment, folder, workers=int(workers), on_progress=said)
print(store.digest(), "jax" in sys.modules)
"""
SOME = ("aq-brmdp", "continuing-psrl", "epsilon")


@pytest.fixture(scope="module")
def peaceful(tmp_path_factory):
    """Seven runs of some cases, computed in this process."""
    return run_experiment(tiny_lake(3, names=SOME), tmp_path_factory.mktemp("peaceful"), workers=1)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Variables by which processes keep what they compile for the next."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def started(folder, workers, compiled):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(folder), str(workers), *SOME],
        env=with_tests_on_the_path() | compiled,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_workers_give_the_same_bits_and_keep_jax_to_themselves(peaceful, compiled, tmp_path):
    """Without a warning, of JAX about forks or of loky about the memory that JAX takes."""
    with started(tmp_path, 2, compiled) as process:
        out, err = process.communicate(timeout=300)
    assert out.split()[-2:] == [peaceful.digest(), "False"], err


def test_killed_midway_nothing_is_lost(peaceful, compiled, tmp_path):
    with started(tmp_path, 1, compiled) as process:
        for _ in range(3):
            process.stdout.readline()  # the store is open, and two runs are finished
        process.kill()
    there = Store.at(tmp_path / "continuous")
    finished = sum(len(there.status(case).finished) for case in there.experiment.cases)
    assert 2 <= finished < 7
    counts = []
    resumed = run_experiment(
        tiny_lake(3, names=SOME),
        tmp_path,
        workers=1,
        on_progress=lambda *counted: counts.append(counted),
    )
    assert counts == [(number, 7) for number in range(finished, 8)]
    assert resumed.digest() == peaceful.digest()
    assert not resumed.files_set_aside()


def test_records_are_those_of_any_interaction(store, records):
    for name in NAMES[:5]:
        found = records[name]
        assert isinstance(found, CaseRecords)
        assert (found.n_states, found.state.shape) == (16, (2, 30))
        assert found.state[:, 0].tolist() == [0, 0]
        assert found.robust_regret is None
        assert np.isfinite(found.true_regret).all()
        assert (found.seconds > 0.0).all()
    status = store.status(store.experiment.cases[0])
    assert {"jax", "optax"} <= {package for package, _ in status.versions}
    agents = store.experiment.cases[:5]
    residuals = {
        tuple(store.read(case, run).table["residual"].to_pylist())
        for case in agents
        for run in (0, 1)
    }
    assert len(residuals) == 10


# --- the closer looks -----------------------------------------------------------------------------


def levels_by_hand(case, run=0):
    """Levels at the centres in a run of AQ-BRMDP, by the first step of the pseudo-episode."""
    episodes = execute(case, 5, run).history.episodes
    return dict(zip(episodes.first_step, episodes.levels, strict=True))


def test_the_portrait_shows_the_agent_of_run_0_beside_the_truth(store, records):
    columns = records["portrait"].pooled
    early, late = np.unique(columns.after)
    assert 10 <= early < late == 30
    assert columns.x.size == 2 * 16 * 9
    states = columns.states
    assert np.abs(states - np.round(states)).min() > 0.1
    best = optimal_values(0.8)
    np.testing.assert_array_equal(columns.optimal_value, best.at(states))
    np.testing.assert_array_equal(columns.optimal_action, best.actions(states))
    assert (columns.policy_value <= columns.optimal_value + 1e-3).all()
    assert columns.policy_value.max() > 0.1
    assert set(columns.learned_action) <= {0, 1, 2, 3}
    # at the centres, the levels which the record of the run has for that pseudo-episode
    recorded = levels_by_hand(store.experiment.case("aq-brmdp"))[int(early)]
    shown = columns.levels
    np.testing.assert_array_equal(
        shown.T, [columns.level_left, columns.level_right, columns.level_up, columns.level_down]
    )
    centre = (columns.after == early) & (np.abs(states % 1.0 - 0.5) < 1e-9).all(axis=1)
    assert centre.sum() == 16
    np.testing.assert_allclose(shown[centre][:15], recorded, rtol=0, atol=1e-6)
    assert (shown >= 0.2).all()
    assert (shown <= 0.95).all()


def test_levels_for_other_epsilons_by_plain_loops(store, records):
    columns = records["epsilon"].pooled
    assert set(columns.episode) == {1, 3}
    assert columns.level.size == 2 * 3 * 60
    parameters = store.experiment.case("aq-brmdp").agent_parameters
    recorded = levels_by_hand(store.experiment.case("aq-brmdp"))
    for k in (1, 3):
        for epsilon in (0.001, 0.01, 0.1):
            rows = np.flatnonzero((columns.episode == k) & (columns.epsilon == epsilon))
            unsure = [float(columns.uncertainty[row]) for row in rows]
            constant = epsilon * sum(unsure) / 60
            costs = [1.0 / (u + constant) for u in unsure]
            mean = sum(costs) / 60
            expected = [
                min(max(1.0 - 10.0 * cost / mean * math.log(2 * k) / math.sqrt(k), 0.2), 0.95)
                for cost in costs
            ]
            np.testing.assert_allclose(columns.level[rows], expected, rtol=0, atol=1e-9)
            if epsilon == parameters["epsilon"]:
                first = int(columns.after[rows[0]])
                np.testing.assert_allclose(
                    columns.level[rows], recorded[first].ravel(), rtol=0, atol=1e-12
                )
    assert columns.cell[:8].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    by_choice = [columns.level[columns.epsilon == epsilon].mean() for epsilon in (0.001, 0.01, 0.1)]
    assert by_choice == sorted(by_choice, reverse=True)


# --- what is said of them -------------------------------------------------------------------------


def made_up(name, regret, seconds, runs=None):
    case = replace(EXPERIMENT.case(name), steps=regret.shape[1], reported_steps=regret.shape[1])
    run = np.arange(len(regret)) if runs is None else np.array(runs)
    zeros = np.zeros(regret.shape, dtype=np.int64)
    return CaseRecords(
        state=zeros,
        action=zeros,
        reward=zeros * 1.0,
        next_state=None,
        disturbance=None,
        episode=zeros + 1,
        true_regret=regret,
        robust_regret=None,
        quantile_step=run[:0],
        quantile_value=np.empty((len(run), 0)),
        case=case,
        run=run,
        seconds=seconds,
        n_states=16,
    )


def test_claims_of_made_up_runs():
    """The adaptive agent saves 2 in each run, all in the first 300 steps, at 2.5 times the time."""
    rng = np.random.default_rng(3)
    sampling = rng.random((6, 4500))
    adaptive = sampling.copy()
    adaptive[:, 100:200] -= 0.02 * (1.0 + 0.1 * rng.random((6, 1)))
    records = {
        "aq-brmdp": made_up("aq-brmdp", adaptive, 25.0 + 0.1 * rng.random(6)),
        "continuing-psrl": made_up("continuing-psrl", sampling, 10.0 + 0.1 * rng.random(6)),
        "posterior-mean": made_up(
            "posterior-mean", sampling[2:5] - 1e-3, np.ones(3), runs=[2, 3, 4]
        ),
    }
    judged = {claim.identifier: claim for claim in claims("continuous", records)}
    gain = judged["continuous/adaptive-regret"]
    assert gain.verdict is Verdict.REPRODUCED
    saved = adaptive.sum(axis=1) - sampling.sum(axis=1)
    assert float(gain.comparisons[0].estimate.mean) == pytest.approx(saved.mean(), abs=1e-9)
    parts = [
        float(comparison.estimate.mean)
        for comparison in judged["continuous/where-it-arises"].comparisons
    ]
    assert parts == pytest.approx([saved.mean(), 0.0, 0.0], abs=1e-9)
    control = judged["continuous/against-controls"].comparisons
    assert control[0].estimate.runs == 3
    assert float(control[0].estimate.mean) == pytest.approx(saved[2:5].mean() + 4.5, abs=1e-9)
    assert control[1].note == "no runs of brmdp-0.2"
    time = judged["continuous/time"]
    assert time.verdict is Verdict.REPRODUCED
    assert time.comparisons[0].paper == 3.85
    for ends, statistic in zip([(0, 300), (300, 1500), (1500, 4500)], PARTS.values(), strict=True):
        np.testing.assert_allclose(
            statistic.samples(records["aq-brmdp"]),
            adaptive[:, slice(*ends)].sum(axis=1),
            rtol=0,
            atol=1e-9,
        )
    found = table(records)
    assert found.rows[0][0:2] == ("aq-brmdp", "6")
    assert "steps 301 to 1500" in found.header
    unknown = replace(records["aq-brmdp"], true_regret=None)
    assert table({"aq-brmdp": unknown}).rows[0][2:-1] == ("–", "–", "–", "–")


@pytest.mark.parametrize(
    "names",
    [
        NAMES,
        ["aq-brmdp"],
        ["continuing-psrl", "brmdp-0.5"],
        ["posterior-mean"],
        ["portrait"],
        ["epsilon"],
    ],
)
def test_few_runs_and_missing_cases_can_be_reported(names, store, records):
    (study,) = (one.of(store.experiment) for one in STUDIES)
    some = {name: records[name] for name in names}
    wanted = {"portrait": {"values", "levels"}, "epsilon": {"epsilon"}}
    expected = set().union(*(wanted.get(name, {"regret"}) for name in names))
    figures = study.draw(some)
    assert set(figures) == {f"continuous-{part}" for part in expected}
    for figure in figures.values():
        figure.draw_without_rendering()
    found = study.findings(some)
    assert len(found.claims) == 4
    assert not any(claim.verdict is Verdict.REPRODUCED for claim in found.claims)
    assert set(found.summary["agents"]) == set(names) & set(NAMES[:5])


def test_fitting_parameters_reach_the_agent():
    case = tiny_lake(names=["continuing-psrl"], steps=4).cases[0]
    validate(case)
    more = replace(
        case,
        agent_parameters={**case.agent_parameters, "gradient_steps": FITTING["gradient_steps"] + 9},
    )
    residuals = [execute(chosen, 5, 0).history.episodes.residual for chosen in (case, more)]
    assert residuals[0] != residuals[1]
