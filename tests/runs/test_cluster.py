"""The same code path on a Dask cluster: a real scheduler and two worker processes."""

import json
import os
import pickle
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from brmdp.figures import report

import brmdp
from brmdp import cli
from brmdp.errors import ExperimentError
from brmdp.runs import Store, cluster, cluster_executor, run_experiment
from tiny_experiments import tiny

pytest.importorskip("distributed")

TINY = tiny()
STARTING = 60.0


def dask(*arguments, folder, first_on_path=""):
    path = os.pathsep.join(
        (str(first_on_path), str(Path(__file__).parents[1]), str(Path(brmdp.__file__).parents[1]))
    )
    environment = {**os.environ, "PYTHONPATH": path, "DASK_TEMPORARY_DIRECTORY": str(folder)}
    # whatever warns in there is none of this process's business
    environment.pop("PYTHONWARNINGS", None)
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def scheduler_in(folder):
    """A scheduler: its address, the options of a worker that joins it.

    And the list of processes to be ended.
    """
    file = folder / "scheduler.json"
    scheduler = (
        "distributed.cli.dask_scheduler",
        "--scheduler-file",
        str(file),
        "--host",
        "127.0.0.1",
        "--port",
        "0",
    )
    processes = [dask(*scheduler, "--dashboard-address", "127.0.0.1:0", folder=folder)]
    try:
        deadline = time.monotonic() + STARTING
        while not file.exists() or not file.read_text():
            assert time.monotonic() < deadline
            assert processes[0].poll() is None
            time.sleep(0.1)
        worker = (
            "distributed.cli.dask_worker",
            "--scheduler-file",
            str(file),
            "--nthreads",
            "1",
            "--no-dashboard",
        )
        yield json.loads(file.read_text())["address"], worker, processes
    finally:
        for process in reversed(processes):
            end(process)


def end(process):
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:  # it does not always listen
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def dask_cluster(tmp_path_factory):
    """Address of a scheduler with two workers of one thread each.

    One with a nanny and one without; and the processes.
    """
    folder = tmp_path_factory.mktemp("cluster")
    with scheduler_in(folder) as (address, worker, processes):
        processes += [dask(*worker, folder=folder), dask(*worker, "--no-nanny", folder=folder)]
        yield address, processes


def wait_for_workers(executor, number):
    executor._client.wait_for_workers(number, timeout=STARTING)


def test_a_cluster_gives_the_same_bits_and_resumes(dask_cluster, tmp_path):
    address, _ = dask_cluster
    alone = run_experiment(TINY, tmp_path / "alone", workers=1)
    with cluster_executor(address) as executor:
        wait_for_workers(executor, 2)
        there = run_experiment(TINY, tmp_path / "there", executor=executor)
    assert there.digest() == alone.digest()

    with cluster_executor(address) as executor:
        more = run_experiment(TINY.adjusted(runs=4), tmp_path / "there", executor=executor)
    assert (
        more.digest()
        == run_experiment(TINY.adjusted(runs=4), tmp_path / "alone", workers=1).digest()
    )


def test_the_command_line_computes_on_a_cluster(dask_cluster, tmp_path, monkeypatch, capsys):
    address, _ = dask_cluster
    monkeypatch.setattr(report, "write_report", lambda *_: report.Report("", {}, (), ()))
    options = ["--runs", "1", "--steps", "20", "--out", str(tmp_path), "--cluster", address]
    assert cli.main(["reproduce", "riverswim-6", *options]) == 0
    assert Store.at(tmp_path / "riverswim-6").records("aq-brmdp").reward.shape == (1, 20)
    assert f"brmdp: connecting to the Dask scheduler at {address}" in capsys.readouterr().err


def test_a_run_has_one_thread_on_a_cluster_and_leaves_no_limit(dask_cluster):
    with cluster_executor(dask_cluster[0]) as executor:
        client = executor._client
        before = client.run(limits)
        within = executor.submit(limits).result()
        assert within["backups"] == 1
        assert set(within["libraries"]) <= {1}
        assert client.run(limits) == before


def limits():
    """In a worker: threads of a backup and of linear algebra.

    And the variable that sets the former.
    """
    import threadpoolctl

    from brmdp.risk.threads import thread_count

    libraries = [library["num_threads"] for library in threadpoolctl.threadpool_info()]
    return {
        "backups": thread_count(),
        "libraries": libraries,
        "variable": os.environ.get("BRMDP_NUM_THREADS"),
    }


def test_workers_with_other_code_are_refused_before_anything_runs(dask_cluster, monkeypatch):
    address, _ = dask_cluster
    ours = {**cluster.identity(), "brmdp": "99.0"}
    monkeypatch.setattr(cluster, "identity", lambda: ours)
    with (
        pytest.raises(
            ExperimentError,
            match=r"would not compute what this machine does: tcp://.* has brmdp .*, not 99\.0",
        ),
        cluster_executor(address),
    ):
        raise AssertionError("must not be reached")


def test_a_worker_that_joins_later_refuses_runs_of_other_code():
    def work(expected):
        return pickle.dumps((expected, abs, (-1,), {}))

    with pytest.raises(ExperimentError, match=r"process \d+, has code .*, not another"):
        cluster.compute_here(work({**cluster.identity(), "code": "another"}))
    assert cluster.compute_here(work(cluster.identity())) == 1


def test_other_versions_of_packages_are_said(dask_cluster, monkeypatch):
    ours = {**cluster.identity(), "numpy": "99.0"}
    monkeypatch.setattr(cluster, "identity", lambda: ours)
    said = []
    with cluster_executor(dask_cluster[0], on_message=said.append):
        pass
    assert any("has numpy" in message and "not 99.0" in message for message in said)


WITHOUT_BRMDP = """
import sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "brmdp":
            raise ModuleNotFoundError("No module named 'brmdp'", name="brmdp")
sys.meta_path.insert(0, Finder)
"""


def test_nothing_is_left_behind_and_workers_without_brmdp_are_named(dask_cluster, tmp_path):
    """A worker without brmdp that joins after us computes for others.

    The first run that it gets ends ours, naming it.
    """
    address, processes = dask_cluster
    with cluster_executor(address) as executor:
        run_experiment(TINY.adjusted(runs=1), tmp_path / "there", executor=executor)
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_BRMDP)
    options = (*processes[1].args[2:], "--name", "plain", "--no-nanny")
    with cluster_executor(address) as executor:
        client = executor._client
        plain = dask(*options, folder=tmp_path, first_on_path=tmp_path)
        try:
            assert client.run_on_scheduler(plugins) == []
            client.wait_for_workers(3, timeout=STARTING)
            assert (
                client.submit(abs, -7, workers=["plain"], pure=False).result(timeout=STARTING) == 7
            )
            executor._executor = client.get_executor(pure=False, workers=["plain"])
            with pytest.raises(ExperimentError, match=r"tcp://\S+ has no brmdp\. Install"):
                run_experiment(tiny(runs=30), tmp_path / "late", executor=executor)
            with (
                pytest.raises(ExperimentError, match=r"tcp://\S+ has no brmdp\. Install"),
                cluster_executor(address),
            ):
                pass
        finally:
            end(plain)


def plugins(dask_scheduler):
    own = ("shuffle", "stimulus")  # of Dask itself
    return [
        name
        for name in (*dask_scheduler.worker_plugins, *dask_scheduler.nanny_plugins)
        if not name.startswith(own)
    ]


def test_a_scheduler_without_workers(tmp_path, capsys):
    with scheduler_in(tmp_path) as (address, _, _):
        said = []
        with (
            pytest.raises(
                ExperimentError, match=rf"the Dask scheduler at {address} had no workers for 1 s"
            ),
            cluster_executor(address, patience=1.0, on_message=said.append),
        ):
            pass
        assert said[1:] == [
            f"the Dask scheduler at {address} has no workers; waiting for one, 1 s at most"
        ]


def test_a_worker_of_the_cluster_dies(dask_cluster, tmp_path):
    """Dask computes its runs again elsewhere; a worker is gone then."""
    address, processes = dask_cluster
    experiment = tiny(runs=8, steps=100)

    def kill(finished, wanted):
        if finished == 3:
            processes[2].kill()

    with cluster_executor(address) as executor:
        wait_for_workers(executor, 2)
        there = run_experiment(experiment, tmp_path / "there", executor=executor, on_progress=kill)
    assert there.digest() == run_experiment(experiment, tmp_path / "alone", workers=1).digest()


def test_all_workers_of_the_cluster_die(dask_cluster, tmp_path):
    """Then others are waited for, not for ever; no worker is left then."""
    address, processes = dask_cluster
    said = []

    def kill(finished, wanted):
        if finished == 1:
            end(processes[1])

    with (
        pytest.raises(ExperimentError, match=r"had no workers for 1 s\. Finished runs are kept"),
        cluster_executor(address, patience=1.0) as executor,
    ):
        run_experiment(
            tiny(runs=8, steps=100),
            tmp_path,
            executor=executor,
            on_progress=kill,
            on_message=said.append,
        )
    assert said[-1] == f"all workers of {address} are gone; waiting for others, 1 s at most"


def test_the_scheduler_dies(dask_cluster, tmp_path):
    """Must come last: the cluster is gone then."""
    address, processes = dask_cluster
    worker = dask(*processes[1].args[2:], folder=tmp_path)
    try:
        with (
            pytest.raises(
                ExperimentError,
                match=rf"connection to the Dask scheduler at {address} is lost.*are kept",
            ),
            cluster_executor(address) as executor,
        ):
            run_experiment(
                tiny(runs=8, steps=100),
                tmp_path,
                executor=executor,
                on_progress=lambda finished, wanted: processes[0].kill() if finished == 1 else None,
            )
    finally:
        end(worker)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "not an address", "tcp://", ""])
def test_no_scheduler_is_a_clear_error(address, monkeypatch):
    monkeypatch.setattr("brmdp.runs.cluster.CONNECTING", "1s")
    with (
        pytest.raises(ExperimentError, match="no Dask scheduler answers at"),
        cluster_executor(address),
    ):
        pass


def test_dask_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ExperimentError, match=r"pip install 'brmdp\[cluster\]'"),
        cluster_executor("tcp://127.0.0.1:9"),
    ):
        pass


@pytest.mark.parametrize(
    ("reason", "said"), [(OSError(), "connection .* is lost"), (None, "cancelled our runs")]
)
def test_lost_runs_may_be_known_before_the_lost_connection(reason, said):
    def sync(*_, **__):
        if reason is not None:
            raise reason

    scheduler = SimpleNamespace(ncores=None)
    client = SimpleNamespace(
        status="running", sync=sync, scheduler=scheduler, get_executor=lambda **_: None
    )
    error = cluster.ClusterExecutor(client, "tcp://somewhere", 1.0).loss()
    assert re.search(said, str(error))


def test_a_scheduler_that_never_speaks_is_given_up(monkeypatch):
    monkeypatch.setattr("brmdp.runs.cluster.SPEAKING", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        with (
            pytest.raises(ExperimentError, match=r"no Dask scheduler answers .* within 2 s"),
            cluster_executor(address),
        ):
            pass


@pytest.mark.parametrize("failures", [2, 3])
def test_a_greeting_among_other_news_is_asked_for_again(failures, monkeypatch):
    """Dask's client fails an assertion when a worker comes or goes at the moment it connects."""
    import distributed

    asked = []

    class Client:
        def __init__(self, *_, **__):
            asked.append(self)
            assert len(asked) > failures

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(distributed, "Client", Client)
    if failures < cluster.GREETINGS:
        with cluster._connected("tcp://127.0.0.1:1") as client:
            assert client is asked[-1]
    else:
        with (
            pytest.raises(ExperimentError, match="greeting"),
            cluster._connected("tcp://127.0.0.1:1"),
        ):
            pass
    assert len(asked) == 3
