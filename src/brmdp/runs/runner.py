"""Running experiments in this process, in local worker processes, or on a cluster.

The results are the same. Runs are independent, so any :mod:`concurrent.futures` executor can
compute them. Only this process writes files, so workers need not share its file system. If it is
killed, only the runs in progress are lost.
"""

from __future__ import annotations

import logging
import os
import platform
import signal
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from typing import Any

from brmdp._extras import optional
from brmdp._validation import as_positive_int
from brmdp._version import installed_version
from brmdp.errors import BrmdpError, ExperimentError, InvalidInputError, OtherOriginError
from brmdp.runs.cluster import ClusterExecutor
from brmdp.runs.encoding import encode, extra_versions, versions
from brmdp.runs.execution import execute, extra_of, parts_of, validate
from brmdp.runs.origin import CODE, UNKNOWN, short
from brmdp.runs.references import require_loadable
from brmdp.runs.spec import Case, Computation, Experiment
from brmdp.runs.store import Store

__all__ = ["compute", "run_experiment"]

ONE_THREAD = dict.fromkeys(
    (
        "BRMDP_NUM_THREADS",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)
"""Environment variables of local workers, which use one thread each."""

DEATHS = 2
"""Number of workers that a run may kill, while no other is in progress, before it has failed."""

FAILURES = 20
"""Number of failed runs after which to stop, since something is wrong with all of them."""

MAX_WORKERS = 1024
"""Largest number of local worker processes."""

MEMORY_GROWTH = 2 * 10**9
"""Bytes by which a local worker may grow before it is replaced."""

LOOKING = 1.0
"""Seconds between two checks of a cluster whose runs do not finish."""


@dataclass(frozen=True)
class Task:
    """A run to compute.

    Attributes
    ----------
    case : Case or Computation
    seed : int
        Seed of the experiment.
    run : int
        Number of the run.
    code : str
        Digest that the worker's code must have.
    world : str or None
        Digest that the worker's world or program must have.
    """

    case: Case | Computation
    seed: int
    run: int
    code: str = UNKNOWN
    world: str | None = None

    def __str__(self) -> str:
        return f"run {self.run} of {self.case.name}"


def run_experiment(
    experiment: Experiment,
    directory: str | os.PathLike[str],
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_message: Callable[[str], None] | None = None,
    accept_other_code: bool = False,
) -> Store:
    """Compute the missing runs of an experiment.

    Parameters
    ----------
    experiment : Experiment
    directory : path
        Results go to ``directory``/``experiment.name``.
    workers : int, optional
        Number of local worker processes; 1 computes in this process. By default one per processor.
    executor : concurrent.futures.Executor, optional
        Computes the runs instead of local workers, for example :func:`brmdp.runs.cluster_executor`.
    on_progress : function, optional
        Called with the numbers of finished and of wanted runs, at the start and after every run.
    on_message : function, optional
        Called with messages for the user: files that were set aside, workers that died, and work
        that takes long. By default the first two are warnings and the last is logged.
    accept_other_code : bool
        Whether to add to runs that other code made; see :meth:`brmdp.runs.Store.opened`.

    Returns
    -------
    Store
        The store, with every run finished.

    Raises
    ------
    InvalidInputError
        If a case cannot be built.
    ExperimentError
        If the folder holds an experiment with other parameters or cannot be written, or if runs
        failed. Finished runs are kept, and the next call continues from there, as it does after an
        interrupt.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     records = store.records("mean")
    >>> records.run.tolist()
    [0, 1]
    """
    if workers is not None:
        workers = as_positive_int(workers, "workers")
        if workers > MAX_WORKERS:
            raise InvalidInputError(f"workers must be at most {MAX_WORKERS:,}; got {workers:,}")
    say = _warn if on_message is None else on_message
    for case in experiment.cases:
        validate(case)
    with Store.opened(directory, experiment, accept_other_code=accept_other_code) as store:
        tasks = _missing(store, say)
        wanted = sum(experiment.runs_of(case) for case in experiment.cases)
        finished = wanted - len(tasks)
        if on_progress is not None:
            on_progress(finished, wanted)

        def keep(task: Task, data: bytes) -> None:
            nonlocal finished
            store.write(task.case, task.run, data)
            finished += 1
            if on_progress is not None:
                on_progress(finished, wanted)

        if tasks:
            with nullcontext() if on_message is None else _logged_to(on_message):
                _compute_all(tasks, _Engine.chosen(executor, workers), keep, say)
        return store


def compute(task: Task) -> bytes:
    """Compute one run in a worker, and return the content of its file."""
    try:
        if task.code not in (CODE, UNKNOWN):
            raise OtherOriginError(
                f"the digest of its code is {short(CODE)} (brmdp {installed_version()}), but "
                f"{short(task.code)} was asked for"
            )
        record = execute(task.case, task.seed, task.run, world=task.world)
        return encode(record, task.case, task.seed, task.run)
    except OtherOriginError as error:
        raise OtherOriginError(
            f"{task} was refused by a worker on {platform.node()}: {error}. Results must not be "
            "mixed: give all workers the same brmdp and the same environments"
        ) from None
    except BrmdpError as error:
        # as text: attributes of an error may be lost on the way back
        raise ExperimentError(f"{task} failed: {error}") from None
    except SystemExit as error:
        raise ExperimentError(f"{task} failed: it called sys.exit({error.code!r})") from None


# --- missing runs ---------------------------------------------------------------------------------


def _missing(store: Store, say: Callable[[str], None]) -> list[Task]:
    """The runs to compute, after damaged files have been set aside.

    They come in rounds of one run per case, the longest first. Rounds keep the cases level if the
    work is interrupted; with the short runs last, workers finish at about the same time.
    """
    experiment = store.experiment
    tasks = []
    others: set[tuple[str, str]] = set()
    statuses = [store.status(case) for case in experiment.cases]
    store.require_no_foreign(statuses)
    for case, status in zip(experiment.cases, statuses, strict=True):
        others |= status.versions - {**versions(), **extra_versions(case)}.items()
        for run, reason in status.damaged.items():
            say(f"{reason}; set aside as {store.set_aside(case, run)}, and computed again")
        tasks += [
            Task(case, experiment.seed, run, CODE, store.world_of(case))
            for run in (*status.missing, *status.damaged)
        ]
    if others:
        packages = ", ".join(sorted(f"{package} {number}" for package, number in others))
        say(
            f"{store.directory} holds runs made with {packages}; they are kept. The versions here "
            f"are {versions()}"
        )
    return sorted(tasks, key=lambda task: (task.run, -_expected_cost(task.case)))


def _expected_cost(case: Case | Computation) -> float:
    """A rough measure of how long a run takes, by which runs are ordered."""
    if isinstance(case, Computation):
        return 0.0
    default = "none" if case.agent == "continuing-psrl" else "exact"
    weights = {"none": 1, "saddlepoint": 2, "exact": 3, "monte-carlo-reused": 10, "monte-carlo": 30}
    method = str(case.agent_parameters.get("method", default))
    return float(case.steps * weights.get(method, weights["exact"]))


# --- where to compute -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Engine:
    """How to start and stop executors.

    Attributes
    ----------
    start : function
        Returns a new executor, given the number of runs that are waiting.
    stop : function
        Ends an executor of ours, whatever it is doing; on a foreign executor, cancels the runs that
        are not done.
    in_flight : int or None
        How many runs to submit at a time; None for all.
    local : bool
        Whether it computes on this machine, where compiled kernels are shared.
    replaceable : bool
        Whether a new executor can replace one whose workers died.
    """

    start: Callable[[int], Executor]
    stop: Callable[[Any, Iterable[Future[bytes]]], None]
    in_flight: int | None = None
    local: bool = False
    replaceable: bool = False

    @classmethod
    def chosen(cls, executor: Executor | None, workers: int | None) -> _Engine:
        if executor is not None:
            return cls(lambda _: executor, lambda _, unfinished: _take_back(unfinished))
        if workers == 1:
            return cls(lambda _: _InProcess(), lambda *_: None, in_flight=1, local=True)
        processes = optional("loky").cpu_count() if workers is None else workers
        return cls(
            start=lambda most: _local_pool(min(processes, most)),
            stop=lambda pool, _: pool.shutdown(kill_workers=True),
            in_flight=2 * processes,
            local=True,
            replaceable=True,
        )


class _InProcess(Executor):
    """Computes immediately, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the function and return a finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except (Exception, SystemExit) as error:
            future.set_exception(error)
        return future


def _take_back(unfinished: Iterable[Future[bytes]]) -> None:
    for future in unfinished:
        future.cancel()


def _local_pool(processes: int) -> Executor:
    """A pool of worker processes, which are already starting."""
    pool: Executor = optional("loky").ProcessPoolExecutor(
        processes, env=ONE_THREAD, initializer=_begin_worker, initargs=(os.getpid(),)
    )
    with _interrupts_held():
        pool.submit(os.getpid)
    return pool


def _begin_worker(parent: int) -> None:
    """Prepare a worker; it ends soon after its parent, even if the parent was killed.

    Nobody would use its results then.
    """
    # JAX keeps compiled code in memory. Loky would take this for a leak and restart the worker,
    # which would have to compile everything again.
    optional("loky.process_executor")._MAX_MEMORY_LEAK_SIZE = MEMORY_GROWTH

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A context in which worker processes are started that never see Ctrl-C.

    Only this process responds to it.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # the resource tracker unblocks the signal when it starts, so it must be running already
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _warm(tasks: Iterable[Task], *, programs: bool) -> None:
    """Compile what the runs will need, so that workers find it compiled.

    The library's ``programs`` are carried out once for that; those of others may take long.
    """
    kinds: dict[tuple[str, ...], Task] = {}
    for task in tasks:
        case = task.case
        if extra_of(case) is not None:
            # JAX has no such cache, and must not be started in a process that starts others
            continue
        if isinstance(case, Case):
            short = replace(task, case=replace(case, steps=2, reported_steps=0))
            chosen = [str(case.agent_parameters.get(name)) for name in ("method", "risk")]
            kinds.setdefault((case.environment, case.agent, *chosen), short)
        elif programs and case.program.startswith("brmdp."):
            kinds.setdefault((case.program,), task)
    for task in kinds.values():
        # whatever fails here fails again in its run, where the error is reported
        with _interrupts_late(), suppress(Exception, SystemExit):
            execute(task.case, task.seed, task.run)


@contextmanager
def _interrupts_late() -> Iterator[None]:
    """A context in which Ctrl-C takes effect only at the end.

    The compiler would print the interrupt and carry on as if nothing had happened.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    arrived: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: arrived.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if arrived:
        raise KeyboardInterrupt


# --- computing ------------------------------------------------------------------------------------


def _compute_all(
    tasks: list[Task],
    engine: _Engine,
    keep: Callable[[Task, bytes], None],
    say: Callable[[str], None],
) -> None:
    """Compute and keep every task; a run that fails does not stop the others.

    When a worker dies, all runs in progress are lost, and one of them may be the cause. They are
    computed again one at a time, so that the others finish and the culprit is found.
    """
    waiting, suspects = deque(tasks), deque[Task]()
    deaths: Counter[str] = Counter()
    failures: list[ExperimentError] = []
    warm = not engine.local
    parts = _foreign_parts(tasks)
    while (waiting or suspects) and len(failures) < FAILURES:
        queue, in_flight = (suspects, 1) if suspects else (waiting, engine.in_flight)
        executor = engine.start(1 if suspects else len(waiting))
        running: dict[Future[bytes], Task] = {}
        try:
            if parts:
                _require_parts(parts, executor)
                parts = []
            if not warm:
                # while workers are starting; in this process programs compile as they run
                _warm(tasks, programs=engine.in_flight != 1)
                warm = True
            lost = _work_through(queue, running, executor, in_flight, keep, failures, say)
        finally:
            engine.stop(executor, running)
        if lost:
            names = ", ".join(sorted(str(task) for task in lost)[:5]) + (
                ", …" if len(lost) > 5 else ""
            )
            if not engine.replaceable:
                raise ExperimentError(
                    f"the executor broke down while computing {names}. Finished runs are kept; run "
                    "again"
                )
            say(f"a worker died; computing again: {names}")
        for task in lost:
            deaths[str(task)] += queue is suspects
            if deaths[str(task)] < DEATHS:
                suspects.append(task)
            else:
                failures.append(
                    ExperimentError(f"{task} killed its worker {DEATHS} times: out of memory?")
                )
    if failures:
        raise ExperimentError(
            f"{len(failures)} of {len(tasks)} runs failed; finished runs are kept. The first "
            f"failure: {failures[0]}"
        ) from failures[0]


def _foreign_parts(tasks: Iterable[Task]) -> list[str]:
    """References to parts outside the library, which workers must be able to load."""
    named = {part for task in tasks for part in parts_of(task.case)}
    return sorted(part for part in named if not part.startswith("brmdp."))


def _require_parts(parts: list[str], executor: Executor) -> None:
    """Make workers load parts of your own before they are given runs.

    Raises
    ------
    ExperimentError
        If a worker cannot load a part; the message names it.
    """
    if isinstance(executor, ClusterExecutor):
        executor.require_parts(parts)
        return
    try:
        executor.submit(require_loadable, parts).result()
    except InvalidInputError as error:
        raise ExperimentError(
            f"a worker process cannot load a part that this process can: {error}. Put the module "
            "where every Python process finds it, for example on PYTHONPATH"
        ) from None
    except BrokenExecutor:
        raise ExperimentError(
            f"a worker process died while loading {', '.join(parts)}; nothing was run"
        ) from None


def _work_through(
    waiting: deque[Task],
    running: dict[Future[bytes], Task],
    executor: Executor,
    in_flight: int | None,
    keep: Callable[[Task, bytes], None],
    failures: list[ExperimentError],
    say: Callable[[str], None],
) -> list[Task]:
    """Compute the waiting tasks until all are done, too many fail, or the executor breaks.

    Returns the tasks that were lost when it broke.
    """
    lost: list[Task] = []
    while (waiting or running) and not lost and len(failures) < FAILURES:
        while waiting and (in_flight is None or len(running) < in_flight):
            task = waiting.popleft()
            try:
                running[executor.submit(compute, task)] = task
            except BrokenExecutor:
                lost.append(task)
                break
        cluster = executor if isinstance(executor, ClusterExecutor) else None
        finished = wait(
            running, timeout=None if cluster is None else LOOKING, return_when=FIRST_COMPLETED
        ).done
        cancelled: list[Task] = []
        failed = len(failures)
        for future in finished:
            task = running.pop(future)
            try:
                data = future.result()
            except BrokenExecutor:
                lost.append(task)
            except OtherOriginError:
                raise  # every run of that worker would fail like this
            except CancelledError:
                cancelled.append(task)
            except ExperimentError as error:
                failures.append(error)
            except Exception as error:
                failures.append(ExperimentError(f"{task} failed: {error!r}"))
            else:
                keep(task, data)
        if cluster is not None:
            if cancelled:
                raise cluster.loss()
            if len(failures) > failed:
                # the fault may lie with a worker that joined late, not with the run
                cluster.require_fit_workers()
            cluster.watch(say)
        failures += [ExperimentError(f"{task} was cancelled by the executor") for task in cancelled]
    return [*lost, *running.values()] if lost else []


@contextmanager
def _logged_to(tell: Callable[[str], None]) -> Iterator[None]:
    """A context that passes on log messages, such as that kernels are being compiled."""
    logger, handler = logging.getLogger("brmdp"), _Teller(tell)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(min(logging.INFO, logger.getEffectiveLevel()))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Teller(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(record.getMessage())


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)
