"""The same code path on a Dask cluster: a real scheduler and two worker processes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brmdp import cli
from brmdp.errors import ExperimentError
from brmdp.experiments import Store, cluster_executor, run_experiment
from brmdp.figures import report
from tiny_experiments import tiny

pytest.importorskip("distributed")

TINY = tiny()
STARTING = 60.0


def dask(*arguments, folder):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "DASK_TEMPORARY_DIRECTORY": str(folder)}
    # whatever warns in there is none of this process's business
    environment.pop("PYTHONWARNINGS", None)
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Address of a scheduler with two workers of one thread each, one with a nanny and one without; and the processes."""
    folder = tmp_path_factory.mktemp("cluster")
    file = folder / "scheduler.json"
    scheduler = ("distributed.cli.dask_scheduler", "--scheduler-file", str(file), "--host", "127.0.0.1", "--port", "0")
    processes = [dask(*scheduler, "--dashboard-address", "127.0.0.1:0", folder=folder)]
    try:
        deadline = time.monotonic() + STARTING
        while not file.exists() or not file.read_text():
            assert time.monotonic() < deadline
            assert processes[0].poll() is None
            time.sleep(0.1)
        worker = ("distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-dashboard")
        processes += [dask(*worker, folder=folder), dask(*worker, "--no-nanny", folder=folder)]
        yield json.loads(file.read_text())["address"], processes
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in reversed(processes):
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:  # it does not always listen
                process.kill()
                process.wait()


def wait_for_workers(executor, number):
    executor._client.wait_for_workers(number, timeout=STARTING)


def test_a_cluster_gives_the_same_bits_and_resumes(cluster, tmp_path):
    address, _ = cluster
    alone = run_experiment(TINY, tmp_path / "alone", workers=1)
    with cluster_executor(address) as executor:
        wait_for_workers(executor, 2)
        there = run_experiment(TINY, tmp_path / "there", executor=executor)
        threads = executor._client.run(lambda: os.environ.get("BRMDP_NUM_THREADS"))
        assert list(threads.values()) == ["1", "1"]
    assert there.digest() == alone.digest()

    with cluster_executor(address) as executor:
        more = run_experiment(TINY.adjusted(runs=4), tmp_path / "there", executor=executor)
    assert more.digest() == run_experiment(TINY.adjusted(runs=4), tmp_path / "alone", workers=1).digest()


def test_the_command_line_computes_on_a_cluster(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "write_report", lambda *_: report.Report("", {}, (), ()))
    options = ["--runs", "1", "--steps", "20", "--out", str(tmp_path), "--cluster", cluster[0]]
    assert cli.main(["reproduce", "riverswim-6", *options]) == 0
    assert Store.at(tmp_path / "riverswim-6").records("aq-brmdp").reward.shape == (1, 20)


def test_a_worker_of_the_cluster_dies(cluster, tmp_path):
    """Dask computes its runs again elsewhere; must come last, since a worker is gone then."""
    address, processes = cluster
    experiment = tiny(runs=8, steps=100)

    def kill(finished, wanted):
        if finished == 3:
            processes[2].kill()

    with cluster_executor(address) as executor:
        wait_for_workers(executor, 2)
        there = run_experiment(experiment, tmp_path / "there", executor=executor, on_progress=kill)
    assert there.digest() == run_experiment(experiment, tmp_path / "alone", workers=1).digest()


@pytest.mark.parametrize("address", ["127.0.0.1:9", "not an address", "tcp://", ""])
def test_no_scheduler_is_a_clear_error(address, monkeypatch):
    monkeypatch.setattr("brmdp.experiments.runner.CONNECTING", "1s")
    with pytest.raises(ExperimentError, match="no Dask scheduler answers at"), cluster_executor(address):
        pass


def test_dask_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ExperimentError, match=r"pip install 'brmdp\[cluster\]'"), cluster_executor("tcp://127.0.0.1:9"):
        pass
