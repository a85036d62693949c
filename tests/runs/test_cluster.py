"""The same code path on a Dask cluster: a real scheduler and two worker processes."""

import contextlib
import importlib.util
import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace

import pytest

import brmdp
from brmdp import cli
from brmdp.errors import ExperimentError
from brmdp.report import writing
from brmdp.runs import Computation, Store, cluster, cluster_executor, run_experiment, runner
from brmdp.studies import Study
from tiny_experiments import children, dicing, tiny

pytestmark = pytest.mark.long

pytest.importorskip("distributed")

TINY = tiny(runs=2, steps=30)
STARTING = 60.0


def dask(*arguments, folder, first_on_path=""):
    """A Dask process that can import the library, this module and its helpers."""
    here = Path(__file__).parent
    path = (first_on_path, here, here.parent, Path(brmdp.__file__).parents[1])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "DASK_TEMPORARY_DIRECTORY": str(folder),
    }
    # whatever warns in there is none of this process's business
    environment.pop("PYTHONWARNINGS", None)
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


class Cluster:
    """A scheduler, and the workers that joined it; all are ended at the end."""

    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "scheduler.json"
        options = ("--scheduler-file", str(self.file), "--host", "127.0.0.1", "--port", "0")
        scheduler = ("distributed.cli.dask_scheduler", *options)
        self.scheduler = dask(*scheduler, "--dashboard-address", "127.0.0.1:0", folder=folder)
        self.workers = []

    @cached_property
    def address(self):
        deadline = time.monotonic() + STARTING
        while not self.file.exists() or not self.file.read_text():
            assert time.monotonic() < deadline
            assert self.scheduler.poll() is None
            time.sleep(0.05)
        return json.loads(self.file.read_text())["address"]

    def join(self, *options, folder=None, first_on_path=""):
        """A new worker of one thread."""
        worker = ("distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-dashboard")
        folder = self.folder if folder is None else folder
        process = dask(*worker, *options, folder=folder, first_on_path=first_on_path)
        self.workers.append(process)
        return process

    def end(self):
        for process in (*reversed(self.workers), self.scheduler):
            end(process)


def end(process):
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:  # it does not always listen
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """A scheduler without workers."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.end()


@pytest.fixture(scope="module")
def dask_cluster(scheduler):
    """The scheduler with two workers, one with a nanny and one without."""
    scheduler.join()
    scheduler.join("--no-nanny")
    return scheduler


@pytest.fixture
def impatient(monkeypatch):
    """Look at the cluster more often than in real use."""
    monkeypatch.setattr(cluster, "LOOKING", 0.1)
    monkeypatch.setattr(runner, "LOOKING", 0.1)


def wait_for_workers(executor, number):
    executor._client.wait_for_workers(number, timeout=STARTING)


def test_a_scheduler_without_workers(scheduler):
    """Must come first, before workers join."""
    said = []
    with (
        pytest.raises(
            ExperimentError,
            match=rf"the Dask scheduler at {scheduler.address} had no workers for 1 s",
        ),
        cluster_executor(scheduler.address, patience=0.6, on_message=said.append),
    ):
        pass
    assert said[1:] == [
        f"the Dask scheduler at {scheduler.address} has no workers; waiting for one, 1 s at most"
    ]


def test_a_cluster_gives_the_same_bits_and_resumes(dask_cluster, tmp_path):
    more = TINY.adjusted(runs=3)
    alone = run_experiment(TINY, tmp_path / "alone", workers=1).digest()
    with cluster_executor(dask_cluster.address) as executor:
        wait_for_workers(executor, 2)
        there = run_experiment(TINY, tmp_path / "there", executor=executor)
        assert there.digest() == alone
    with cluster_executor(dask_cluster.address) as executor:
        there = run_experiment(more, tmp_path / "there", executor=executor)
    assert there.digest() == run_experiment(more, tmp_path / "alone", workers=1).digest()


def test_programs_of_ones_own_run_where_workers_find_them(dask_cluster, tmp_path, monkeypatch):
    path = tmp_path / "only_here.py"
    path.write_text("from tiny_experiments import DICE\n")
    spec = importlib.util.spec_from_file_location("only_here", path)
    monkeypatch.setitem(sys.modules, "only_here", importlib.util.module_from_spec(spec))
    spec.loader.exec_module(sys.modules["only_here"])
    hidden = dicing(cases=(Computation("cube", "only_here:DICE", {"throws": 2}),), name="hidden")
    alone = run_experiment(dicing(), tmp_path / "alone", workers=1)
    with cluster_executor(dask_cluster.address) as executor:
        there = run_experiment(dicing(), tmp_path / "there", executor=executor)
        with pytest.raises(
            ExperimentError,
            match=r"workers of .* cannot load what the runs need: tcp://.*only_here.*Put the",
        ):
            run_experiment(hidden, tmp_path / "there", executor=executor)
    assert there.digest() == alone.digest()
    assert not list((tmp_path / "there" / "hidden" / "runs").iterdir())


def test_the_command_line_computes_on_a_cluster(dask_cluster, tmp_path, monkeypatch, capsys):
    address = dask_cluster.address
    monkeypatch.setattr(Study, "report", lambda *_: writing.Report("", {}, (), ()))
    options = ["--runs", "1", "--steps", "20", "--out", str(tmp_path), "--cluster", address]
    assert cli.main(["reproduce", "riverswim-6", *options]) == 0
    assert Store.at(tmp_path / "riverswim-6").records("aq-brmdp").reward.shape == (1, 20)
    assert f"brmdp: connecting to the Dask scheduler at {address}" in capsys.readouterr().err


def test_a_run_has_one_thread_on_a_cluster_and_leaves_no_limit(dask_cluster):
    with cluster_executor(dask_cluster.address) as executor:
        client = executor._client
        before = client.run(limits)
        within = executor.submit(limits).result()
        assert within["backups"] == 1
        assert set(within["libraries"]) <= {1}
        assert client.run(limits) == before


def limits():
    """In a worker: threads of a backup and of linear algebra, and the variable for the former."""
    import threadpoolctl

    from brmdp.risk.threads import thread_count

    libraries = [library["num_threads"] for library in threadpoolctl.threadpool_info()]
    return {
        "backups": thread_count(),
        "libraries": libraries,
        "variable": os.environ.get("BRMDP_NUM_THREADS"),
    }


def test_workers_with_other_code_are_refused_before_anything_runs(dask_cluster, monkeypatch):
    address = dask_cluster.address
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
    with cluster_executor(dask_cluster.address, on_message=said.append):
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
    """A worker without brmdp that joins later serves others; our runs end with its name."""
    address = dask_cluster.address
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_BRMDP)
    with cluster_executor(address) as executor:
        run_experiment(TINY.adjusted(runs=1), tmp_path / "there", executor=executor)
    with cluster_executor(address) as executor:
        client = executor._client
        workers = len(client.scheduler_info()["workers"])
        plain = dask_cluster.join(
            *("--name", "plain", "--no-nanny"), folder=tmp_path, first_on_path=tmp_path
        )
        try:
            assert client.run_on_scheduler(plugins) == []
            wait_for_workers(executor, workers + 1)
            mine = client.submit(abs, -7, workers=["plain"], pure=False)
            assert mine.result(timeout=STARTING) == 7
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


# --- what dies ------------------------------------------------------------------------------------

LONG = tiny(runs=8, steps=80)


def test_a_worker_of_the_cluster_dies(dask_cluster, tmp_path, impatient):
    """Dask computes its runs again elsewhere; one worker is gone afterwards."""
    victim = dask_cluster.join("--no-nanny")

    def kill(finished, wanted):
        if finished == 3:
            victim.kill()

    with cluster_executor(dask_cluster.address) as executor:
        wait_for_workers(executor, 3)
        there = run_experiment(LONG, tmp_path / "there", executor=executor, on_progress=kill)
    assert there.digest() == run_experiment(LONG, tmp_path / "alone", workers=1).digest()


def test_all_workers_of_the_cluster_die(dask_cluster, tmp_path, impatient):
    """We wait for others, but not for ever; no worker is left afterwards."""
    said = []

    def kill(finished, wanted):
        if finished == 1:
            for process in dask_cluster.workers:
                orphans = children(process.pid)
                process.kill()
                for orphan in orphans:  # a nanny's worker would follow, but finish runs until then
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(orphan, signal.SIGKILL)

    with (
        pytest.raises(ExperimentError, match=r"had no workers for 1 s\. Finished runs are kept"),
        cluster_executor(dask_cluster.address, patience=0.6) as executor,
    ):
        run_experiment(LONG, tmp_path, executor=executor, on_progress=kill, on_message=said.append)
    where = f"all workers of {dask_cluster.address} are gone"
    assert said[-1] == f"{where}; waiting for others, 1 s at most"


def test_the_scheduler_dies(dask_cluster, tmp_path, impatient):
    """Must come last: the cluster is gone afterwards."""
    dask_cluster.join("--no-nanny")
    lost = rf"connection to the Dask scheduler at {dask_cluster.address} is lost.*are kept"

    def kill(finished, wanted):
        if finished == 1:
            dask_cluster.scheduler.kill()

    with (
        pytest.raises(ExperimentError, match=lost),
        cluster_executor(dask_cluster.address) as executor,
    ):
        run_experiment(LONG, tmp_path, executor=executor, on_progress=kill)


# --- without a cluster ----------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1:9", "not an address", "tcp://", ""])
def test_no_scheduler_is_a_clear_error(address, monkeypatch):
    monkeypatch.setattr("brmdp.runs.cluster.CONNECTING", "300ms")
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
    monkeypatch.setattr("brmdp.runs.cluster.SPEAKING", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        with (
            pytest.raises(ExperimentError, match=r"no Dask scheduler answers .* within 0.5 s"),
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
