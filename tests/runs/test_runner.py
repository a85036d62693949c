"""Whoever computes, and however often it is killed: the same results, and nothing is lost."""

import contextlib
import importlib
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from brmdp.errors import ExperimentError, InvalidInputError
from brmdp.runs import Case, Experiment, Store, execute, run_experiment
from brmdp.runs import runner as runner_module
from brmdp.runs.execution import extra_of, validate
from brmdp.runs.lake import LAKE
from brmdp.studies import FOLDERS, find_study
from tiny_experiments import children, deadly, longer, tiny, with_tests_on_the_path

TINY = tiny()


@pytest.fixture
def computed(monkeypatch):
    """Names of the runs computed in this process."""
    names = []
    compute = runner_module.compute

    def counted(task):
        names.append(str(task))
        return compute(task)

    monkeypatch.setattr(runner_module, "compute", counted)
    return names


def history(**changes):
    return execute(replace(TINY.cases[0], **changes), TINY.seed, 1).history


# --- one run --------------------------------------------------------------------------------------


def test_diagnostics_change_no_trajectory():
    everything, nothing = history(), history(robust_level=None, quantile_level=None)
    assert everything.robust_regret is not None
    assert nothing.robust_regret is None
    for name in ("state", "action", "reward", "episode", "true_regret"):
        np.testing.assert_array_equal(getattr(everything, name), getattr(nothing, name))


def test_more_steps_go_on_from_fewer():
    np.testing.assert_array_equal(history(steps=90).state[:60], history().state)


def test_cases_share_their_luck_run_by_run():
    """Agents that behave alike see the same world, whatever their case is called."""
    other = replace(TINY.cases[0], name="other")
    np.testing.assert_array_equal(execute(other, TINY.seed, 1).history.state, history().state)
    assert (execute(other, TINY.seed, 2).history.state != history().state).any()
    assert (execute(other, TINY.seed + 1, 1).history.state != history().state).any()


@pytest.mark.long
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_interaction_of_a_study_runs(folder):
    """Those in the lake, whose first plan takes seconds, run in small in the tests of reports."""
    studies = importlib.import_module(f"brmdp.studies.{folder}").STUDIES
    for case in (case for study in studies for case in study.experiment.cases):
        if extra_of(case) != "icu":  # which is not among the packages of the tests
            validate(case)
        if isinstance(case, Case) and case.environment != LAKE:
            record = execute(replace(case, steps=3, reported_steps=0), 1, 0)
            assert len(record.history) == 3
            assert record.seconds > 0


@pytest.mark.parametrize("restart", ["geometric", "every-step", "visit-doubling", 7])
def test_restart_rules_by_name(restart):
    parameters = {**TINY.cases[0].agent_parameters, "restart": restart}
    episodes = history(agent_parameters=parameters).episodes.first_step
    if restart == "every-step":
        assert episodes == list(range(60))
    elif restart == 7:
        assert episodes == list(range(0, 60, 7))
    else:
        assert 1 < len(episodes) < 60


@pytest.mark.parametrize(
    "environment", ["FrozenLake-v1", "CliffWalking-v1", "brmdp/RiskyFrozenLake-v0"]
)
def test_gymnasium_environments_by_id(environment):
    assert len(execute(Case("any", environment, "continuing-psrl", 0.9, 30), 1, 0).history) == 30


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"environment": "riverswin"}, "unknown environment 'riverswin'; did you mean 'riverswim'"),
        ({"environment": "FrozenLake-v9"}, "did you mean 'FrozenLake"),
        (
            {"environment": "no_such_module:Thing-v0"},
            "Gymnasium cannot make 'no_such_module:Thing-v0'",
        ),
        (
            {"environment": "CartPole-v1", "environment_parameters": {}},
            "Discrete observation_space",
        ),
        (
            {"environment_parameters": {"m": 4}},
            "unknown parameter of riverswim 'm'; did you mean|valid: n",
        ),
        ({"environment_parameters": {"n": -4}}, "n must be"),
        (
            {"environment": "FrozenLake-v1", "environment_parameters": {"slip": 1}},
            "Gymnasium cannot make 'FrozenLake-v1'",
        ),
        ({"agent": "aq-brmpd"}, "unknown agent 'aq-brmpd'; did you mean 'aq-brmdp'"),
        ({"agent_parameters": {}}, "aq-brmdp needs delta"),
        ({"agent_parameters": {"delta": -1}}, "delta must be a positive finite number; got -1"),
        (
            {"agent_parameters": {"delta": 1, "floor": 1.0}},
            "floor must lie strictly between 0 and 1; got 1.0",
        ),
        (
            {"agent_parameters": {"delta": 1, "methd": "exact"}},
            "unknown parameter of aq-brmdp 'methd'; did you mean",
        ),
        (
            {"agent_parameters": {"delta": 1, "method": "exakt"}},
            "unknown method 'exakt'; did you mean 'exact'",
        ),
        ({"agent_parameters": {"delta": 1, "restart": "daily"}}, "unknown restart 'daily'"),
        (
            {"agent_parameters": {"delta": 1, "restart": 0}},
            "length must be a positive integer; got 0",
        ),
    ],
)
def test_impossible_cases_are_named_before_anything_runs(changes, message, tmp_path, computed):
    case = replace(TINY.cases[0], **changes)
    with pytest.raises(InvalidInputError, match=f"case 'adaptive': .*({message})"):
        run_experiment(replace(TINY, cases=(TINY.cases[1], case)), tmp_path, workers=1)
    assert computed == []
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps must be a positive integer; got 0"),
        ({"discount": 1.0}, r"discount must lie in \[0, 1\); got 1.0"),
        ({"robust_level": 0.0}, "robust_level must lie strictly"),
        ({"quantile_level": 2}, "quantile_level must lie strictly"),
        ({"name": ""}, "name of a case"),
        (
            {"agent_parameters": {"delta": np.ones(2)}},
            "delta must be a finite number, text, or a list of these; got arr",
        ),
        ({"environment_parameters": {"n": float("nan")}}, "n must be a finite number, text"),
        ({"name": "two\nlines"}, "name of a case"),
        (
            {"name": "n" * 256},
            "name of a case must take at most 200 bytes in the name of a file; got 256 from 'nnn",
        ),
        ({"name": "é" * 40}, "at most 200 bytes in the name of a file; got 240"),
        ({"name": "\ud800"}, "name of a case must be printable text"),
        ({"environment": ["riverswim"]}, "environment must be text"),
        ({"max_runs": "3"}, "max_runs must be a positive integer"),
        ({"steps": 10**12}, "steps must be at most 10,000,000"),
    ],
)
def test_cases_check_themselves(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        replace(TINY.cases[0], **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"runs": 0}, "runs must be a positive integer; got 0"),
        ({"runs": 1.9}, "runs must be a positive integer; got 1.9"),
        ({"runs": 10**9}, "runs must be at most 100,000; got 1,000,000,000"),
        ({"title": 3}, "title must be text; got 3"),
        ({"name": "n" * 256}, "name of an experiment must take at most 200 bytes"),
        ({"seed": -1}, "seed must be a non-negative integer; got -1"),
        ({"seed": 0.5}, "seed must be a non-negative integer"),
        ({"name": "../elsewhere"}, "name of an experiment"),
        ({"cases": ()}, "there must be at least one case"),
        ({"cases": TINY.cases[:1] * 2}, "names must differ"),
    ],
)
def test_experiments_check_themselves(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        replace(TINY, **changes)


def test_adjusted():
    river = find_study("riverswim-6").experiment
    changed = river.adjusted(runs=7, steps=3000, method="saddlepoint")
    assert changed.runs == 7
    assert {(case.steps, case.reported_steps) for case in changed.cases} == {(3000, 2000)}
    assert changed.case("aq-brmdp").agent_parameters["method"] == "saddlepoint"
    assert changed.case("continuing-psrl").agent_parameters == {}
    assert river.adjusted(steps=10).cases[0].reported_steps == 10
    with pytest.raises(InvalidInputError, match=r"reported_steps must be at most 30; got 1,000,00"):
        replace(TINY.cases[0], steps=30, reported_steps=10**6)
    with pytest.raises(InvalidInputError, match="quantile-methods, which compares methods"):
        find_study("quantile-methods").adjusted(method="exact")


# --- many runs ------------------------------------------------------------------------------------


@pytest.mark.long
def test_two_workers_give_the_same_bits_as_one(undisturbed, tmp_path):
    progress = []
    store = run_experiment(
        TINY, tmp_path, workers=2, on_progress=lambda *numbers: progress.append(numbers)
    )
    assert store.digest() == undisturbed.digest()
    assert progress == [(finished, 12) for finished in range(13)]


def test_any_executor_will_do(undisturbed, tmp_path):
    with ThreadPoolExecutor(3) as threads:
        store = run_experiment(TINY, tmp_path, executor=threads)
    assert store.digest() == undisturbed.digest()


def test_results_differ_with_the_seed(undisturbed, tmp_path):
    assert (
        run_experiment(replace(TINY, seed=12), tmp_path, workers=1).digest() != undisturbed.digest()
    )


@pytest.mark.long
def test_resuming_computes_only_what_is_missing(undisturbed, tmp_path, computed):
    class Stopped(Exception):
        pass

    def stop(finished, wanted):
        if finished == 5:
            raise Stopped

    with pytest.raises(Stopped):
        run_experiment(TINY, tmp_path, workers=1, on_progress=stop)
    assert len(computed) == 5
    store = run_experiment(TINY, tmp_path, workers=1)
    assert len(computed) == len(set(computed)) == 12
    run_experiment(TINY, tmp_path, workers=1)
    assert len(computed) == 12
    assert store.digest() == undisturbed.digest()


def test_runs_are_ordered_in_rounds_the_longest_first(tmp_path, computed):
    run_experiment(TINY, tmp_path, workers=1)
    names = ["sampled/reused", "adaptive", "store", "psrl"]
    assert computed == [f"run {run} of {name}" for run in range(3) for name in names]


def test_linear_algebra_gets_its_threads_back(tmp_path):
    from threadpoolctl import threadpool_info, threadpool_limits

    with threadpool_limits(2):
        before = threadpool_info()
        run_experiment(TINY, tmp_path, workers=1)
        assert threadpool_info() == before


@pytest.mark.parametrize("workers", [0, -1, 1.5, True])
def test_workers_are_checked(workers, tmp_path):
    with pytest.raises(InvalidInputError, match="workers must be a positive integer"):
        run_experiment(TINY, tmp_path, workers=workers)


# --- failures -------------------------------------------------------------------------------------


def test_a_failing_run_is_named_and_the_others_finish(tmp_path, monkeypatch):
    compute = runner_module.compute

    def fragile(task):
        if (task.case.name, task.run) == ("psrl", 1):
            raise ZeroDivisionError("of all things")
        return compute(task)

    with monkeypatch.context() as patch:
        patch.setattr(runner_module, "compute", fragile)
        with pytest.raises(
            ExperimentError,
            match=r"1 of 12 runs failed.*run 1 of psrl failed: ZeroDivisionError\('of all",
        ):
            run_experiment(TINY, tmp_path, workers=1)
    assert len(list(tmp_path.glob("tiny/runs/*.parquet"))) == 11
    run_experiment(TINY, tmp_path, workers=1)


@pytest.mark.long
def test_errors_of_the_library_survive_the_way_back(tmp_path):
    """A world that leaves the model fails in the worker, in words."""
    case = Case("leaves", "tiny_experiments:tests/Leaves-v0", "continuing-psrl", 0.8, 60)
    with pytest.raises(
        ExperimentError,
        match=r"1 of 1 runs failed.*run 0 of leaves failed: the environment's observation must "
        r"lie in 0..1; got 2",
    ):
        run_experiment(Experiment("leaves", "", (case,), 1), tmp_path, workers=2)


@pytest.mark.long
def test_a_dead_worker_is_replaced(tmp_path):
    messages = []
    store = run_experiment(
        deadly(tmp_path / "dead", 1), tmp_path, workers=2, on_message=messages.append
    )
    assert len(list((tmp_path / "dead").iterdir())) >= 1
    assert messages
    assert "a worker died" in messages[0]
    assert len(store.records("deadly").run) == 3


@pytest.mark.long
def test_a_run_that_keeps_killing_its_worker_is_given_up_and_the_others_finish(tmp_path):
    messages = []
    experiment = replace(deadly(tmp_path / "dead", 1000), runs=1)
    with pytest.raises(
        ExperimentError,
        match=r"1 of 2 runs failed.*run 0 of deadly killed its worker 2 times: out of mem",
    ):
        run_experiment(experiment, tmp_path, workers=2, on_message=messages.append)
    assert messages[-1] == "a worker died; computing again: run 0 of deadly"
    store = Store.at(tmp_path / "deadly")
    assert store.status(store.experiment.case("harmless")).finished == (0,)
    assert store.status(store.experiment.case("deadly")).missing == (0,)


def test_when_everything_fails_it_stops_early(tmp_path, monkeypatch):
    asked = []

    def fails(task):
        asked.append(task)
        raise ZeroDivisionError

    monkeypatch.setattr(runner_module, "compute", fails)
    with pytest.raises(ExperimentError, match="20 of 400 runs failed"):
        run_experiment(TINY.adjusted(runs=100), tmp_path, workers=1)
    assert len(asked) == 20


class Broken(Executor):
    """Breaks at once, when asked or when answering."""

    def __init__(self, on_submit):
        self.on_submit = on_submit

    def submit(self, *_):
        if self.on_submit:
            raise BrokenProcessPool("gone")
        future = Future()
        future.set_exception(BrokenProcessPool("gone"))
        return future


@pytest.mark.parametrize("on_submit", [True, False])
def test_a_broken_executor_that_was_given_cannot_be_replaced(on_submit, tmp_path):
    with pytest.raises(
        ExperimentError,
        match=r"the executor broke down while computing run 0 of .*Finished runs are kept",
    ):
        run_experiment(TINY, tmp_path, executor=Broken(on_submit))


def test_cancelled_runs_are_named(tmp_path):
    class Cancels(Executor):
        def submit(self, *_):
            future = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with pytest.raises(
        ExperimentError, match=r"12 of 12 runs failed.*was cancelled by the executor"
    ):
        run_experiment(TINY, tmp_path, executor=Cancels())


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "loky", None)
    with pytest.raises(
        ExperimentError,
        match=r"loky is missing; install it with: pip install 'brmdp\[experiments\]'",
    ):
        run_experiment(TINY, tmp_path, workers=2)


# --- killed ---------------------------------------------------------------------------------------

SCRIPT = """
import sys
from tiny_experiments import longer
from brmdp.runs import run_experiment
folder, workers, runs = sys.argv[1:]
def tell(*_):
    print("on", flush=True)
run_experiment(longer(int(runs)), folder, workers=int(workers), on_progress=tell)
"""


def kill_at_random(folder, workers, runs, whole_group, chance):
    """Start a runner, and kill it: some time from its start, or soon after it made progress."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), str(workers), str(runs)],
        env=with_tests_on_the_path(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with process:
        if chance.random() < 0.8:
            process.stdout.readline()  # the store is open
            process.stdout.readline()  # a run is finished
            time.sleep(chance.uniform(0.0, 0.25))
        else:
            time.sleep(chance.uniform(0.0, 1.5))
        workers_of_it = children(process.pid)
        if whole_group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.stdout.close()
        process.wait()
    return workers_of_it


def assert_gone(processes):
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in processes):
        assert time.monotonic() < deadline, "workers outlived the process that started them"
        time.sleep(0.05)


def kill_often(folder, times, runs, seed):
    """Kill that many runners, finish, and compare with a store that was left in peace."""
    chance = random.Random(seed)
    finished = 0
    for attempt in range(times):
        orphans = kill_at_random(folder, 1 + attempt % 2, runs, chance.random() < 0.5, chance)
        assert_gone(orphans)
        if (folder / "longer" / "experiment.json").exists():
            store = Store.at(folder / "longer")
            statuses = [store.status(case) for case in store.experiment.cases]
            assert not any(status.damaged for status in statuses)
            assert sum(len(status.finished) for status in statuses) >= finished
            finished = sum(len(status.finished) for status in statuses)
    assert 0 < finished < 4 * runs
    messages = []
    store = run_experiment(longer(runs), folder, workers=2, on_message=messages.append)
    assert messages == []
    assert not store.files_set_aside()
    assert not list(store.directory.glob("runs/.*"))
    assert store.digest() == run_experiment(longer(runs), folder / "in peace", workers=1).digest()


@pytest.mark.long
@pytest.mark.parametrize("times", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_killed_a_few_times_nothing_is_lost(times, tmp_path):
    """The first time with one process, the second with two."""
    kill_often(tmp_path, times, runs=12, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_killed_many_times_nothing_is_lost(seed, tmp_path):
    kill_often(tmp_path, 20, runs=60, seed=seed)
