"""Computing on a Dask cluster, which may be shared with others.

Workers are asked for their versions before anything runs, and again when a run fails, since others
may have joined. Workers that would compute something else are refused by name. Thread limits apply
only while a run is computed. Nothing is left behind on the cluster.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import pickle
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from brmdp._extras import optional
from brmdp._validation import as_positive_number
from brmdp._version import installed_version
from brmdp.errors import ExperimentError
from brmdp.risk.threads import one_blas_thread, one_thread
from brmdp.runs.origin import CODE, short

__all__ = ["ClusterExecutor", "cluster_executor", "identity"]

CONNECTING = "10s"
"""How long to try to reach a scheduler, which may still be starting."""

SPEAKING = 30.0
"""Seconds within which the scheduler must greet us once it is reached."""

GREETINGS = 3
"""Number of attempts to be greeted."""

ANSWERING = 60.0
"""Seconds within which a scheduler or its workers must answer a question.

To answer, a worker may have to import brmdp first.
"""

PATIENCE = 300.0
"""Seconds to wait for a worker if there is none."""

LOOKING = 2.0
"""Seconds between two checks of the cluster while runs are in progress."""

DECISIVE = ("brmdp", "code", "python")
"""What must be the same on all machines; other differences only cause a message."""

LOG = logging.getLogger("brmdp")
# Questions are sent as text and work as bytes. Where brmdp is missing, the scheduler included, Dask
# cannot unpickle our functions and does not always recover from that.
OURS = "__import__('brmdp.runs.cluster', fromlist=['identity'])"
PARTS = "__import__('brmdp.runs.references', fromlist=['require_loadable'])"
WHO_ARE_YOU = f"{OURS}.identity()"
COMPUTE = f"{OURS}.compute_here(work)"


@lru_cache(maxsize=1)
def identity() -> dict[str, str]:
    """The versions of packages in this process, and the digest of the code."""
    ours = {"brmdp": installed_version(), "code": short(CODE)}
    others = {package: version(package) for package in ("numpy", "scipy", "numba")}
    return {"python": ".".join(platform.python_version_tuple()[:2]), **ours, **others}


@contextmanager
def cluster_executor(
    address: str, *, patience: float = PATIENCE, on_message: Callable[[str], None] | None = None
) -> Iterator[ClusterExecutor]:
    """A context with an executor on a Dask cluster.

    The workers of the cluster must have the same brmdp installed.

    Parameters
    ----------
    address : str
        Address of the Dask scheduler.
    patience : float
        Seconds to wait for a worker if there is none.
    on_message : function, optional
        Called with messages about the connection. By default they are logged.

    Raises
    ------
    ExperimentError
        If there is no scheduler, no worker, or a worker that would compute something else.

    Examples
    --------
    A scheduler must be running, such as that of ``dask scheduler``:

    >>> from brmdp.runs import cluster_executor, run_experiment
    >>> with cluster_executor("tcp://scheduler:8786") as executor:  # doctest: +SKIP
    ...     store = run_experiment(experiment, "results", executor=executor)
    """
    patience = as_positive_number(patience, "patience")
    say = LOG.info if on_message is None else on_message
    say(f"connecting to the Dask scheduler at {address}")
    with _connected(address) as client:
        executor = ClusterExecutor(client, address, patience)
        executor.wait_for_workers(say)
        executor.ask_workers(say)
        yield executor


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    distributed = optional("distributed", "cluster")
    client, reason = None, ""
    for _ in range(GREETINGS):
        try:
            client = _within(
                SPEAKING,
                lambda: distributed.Client(address, timeout=CONNECTING, set_as_default=False),
            )
        except AssertionError:
            # the scheduler happened to send news to all clients, where Dask expects a greeting
            reason = "its greeting was not understood"
            continue
        except (OSError, ValueError, TypeError) as error:
            reason = str(error)
        break
    if client is None:
        # a failed client closes itself when collected: do that here, since it hangs if it happens
        # in a thread of the next client
        gc.collect()
        raise ExperimentError(f"no Dask scheduler answers at {address!r}: {reason}")
    with client:
        yield client


def _within(seconds: float, call: Callable[[], Any]) -> Any:
    """The result of ``call``, if it returns in time.

    Dask would wait forever for a server that accepts the connection but never answers.
    """
    result: Future[Any] = Future()

    def answer() -> None:
        try:
            result.set_result(call())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=answer, daemon=True).start()
    try:
        return result.result(seconds)
    except TimeoutError:
        if result.done():
            raise
        raise TimeoutError(f"no answer within {seconds:g} s") from None


class ClusterExecutor(Executor):
    """An executor that computes on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
    address : str
        Address of the scheduler.
    patience : float
        Seconds to wait for a worker if there is none.
    """

    def __init__(self, client: Any, address: str, patience: float) -> None:
        self._client = client
        self._address = address
        self._patience = patience
        self._executor = client.get_executor(pure=False)
        self._looked = time.monotonic()
        self._deserted: float | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function on any worker."""
        if self._client.status != "running":
            raise self.loss()
        work = optional("cloudpickle", "cluster").dumps((identity(), fn, args, kwargs))
        future: Future[Any] = self._executor.submit(
            eval, COMPUTE, {"work": work}, key=f"brmdp-{uuid.uuid4().hex}"
        )
        return future

    def wait_for_workers(self, say: Callable[[str], None]) -> None:
        """Wait until there is a worker."""
        deadline = time.monotonic() + self._patience
        if not self._workers():
            say(
                f"the Dask scheduler at {self._address} has no workers; waiting for one, "
                f"{self._patience:.0f} s at most"
            )
        while not self._workers():
            if time.monotonic() > deadline:
                raise ExperimentError(
                    f"the Dask scheduler at {self._address} had no workers for "
                    f"{self._patience:.0f} s"
                )
            time.sleep(min(0.5, self._patience))

    def ask_workers(self, say: Callable[[str], None]) -> None:
        """Refuse workers that would compute something else; report all other differences.

        Raises
        ------
        ExperimentError
            If there are such workers; the message names them.
        """
        for worker, answer in self.require_fit_workers().items():
            if other := _difference(answer, tuple(answer)):
                say(f"worker {worker} {other}: the last digits of results may differ")

    def require_fit_workers(self) -> Mapping[str, Mapping[str, str]]:
        """The identity of each worker, if all would compute what this process would."""
        answers = self._asked(WHO_ARE_YOU)
        refused = {worker: _difference(answer, DECISIVE) for worker, answer in answers.items()}
        named = [f"{worker} {reason}" for worker, reason in refused.items() if reason]
        if named:
            more = f" and {len(named) - 5} more" if len(named) > 5 else ""
            raise ExperimentError(
                f"workers of the Dask scheduler at {self._address} would not compute what this "
                f"machine does: {'; '.join(named[:5])}{more}. Install the same brmdp there"
            )
        return answers

    def require_parts(self, parts: Sequence[str]) -> None:
        """Refuse workers that cannot load parts of your own, given as ``module:attribute``.

        Raises
        ------
        ExperimentError
            If there are such workers; the message names them and what they lack.
        """
        answers = self._asked(f"{PARTS}.require_loadable({list(parts)!r})")
        named = [f"{worker}: {answer}" for worker, answer in answers.items() if answer is not None]
        if named:
            more = f" and {len(named) - 5} more" if len(named) > 5 else ""
            raise ExperimentError(
                f"workers of the Dask scheduler at {self._address} cannot load what the runs need: "
                f"{'; '.join(named[:5])}{more}. Put the modules where these workers find them"
            )

    def _asked(self, question: str) -> dict[str, Any]:
        """The answer of every worker: the value of an expression, or the error it raised."""
        try:
            # callback_timeout is an argument of Client.sync, to which run passes it on
            answers: dict[str, Any] = self._client.run(
                eval, question, on_error="return", callback_timeout=ANSWERING
            )
        except TimeoutError:
            raise ExperimentError(
                f"not all workers of {self._address} answered within {ANSWERING:.0f} s"
            ) from None
        except OSError as error:
            raise ExperimentError(
                f"the Dask scheduler at {self._address} does not answer: {error}"
            ) from None
        return answers

    def watch(self, say: Callable[[str], None]) -> None:
        """Check the cluster while runs are in progress.

        Raises
        ------
        ExperimentError
            If the runs will never finish, because no worker is left.
        """
        now = time.monotonic()
        if now - self._looked < LOOKING:
            return
        self._looked = now
        if self._workers():
            self._deserted = None
        elif self._deserted is None:
            self._deserted = now
            say(
                f"all workers of {self._address} are gone; waiting for others, "
                f"{self._patience:.0f} s at most"
            )
        elif now - self._deserted > self._patience:
            raise ExperimentError(
                f"the Dask scheduler at {self._address} had no workers for {self._patience:.0f} s. "
                "Finished runs are kept; run again"
            )

    def loss(self) -> ExperimentError:
        """The error to raise when the cluster has dropped our runs."""
        gone = self._client.status != "running" or not self._answers()
        what = (
            "the connection to the Dask scheduler at {} is lost"
            if gone
            else "the Dask cluster at {} cancelled our runs"
        )
        return ExperimentError(f"{what.format(self._address)}. Finished runs are kept; run again")

    def _answers(self) -> bool:
        """Whether the scheduler answers.

        The loss of our runs may be noticed before the loss of the connection.
        """
        try:
            self._client.sync(self._client.scheduler.ncores, callback_timeout=LOOKING)
        except (OSError, TimeoutError, asyncio.CancelledError):
            return False
        return bool(self._client.status == "running")

    def _workers(self) -> int:
        if self._client.status != "running":
            raise self.loss()
        try:
            return len(self._client.sync(self._client.scheduler.ncores, callback_timeout=ANSWERING))
        except TimeoutError:
            raise ExperimentError(
                f"the Dask scheduler at {self._address} has not answered for {ANSWERING:.0f} s. "
                "Finished runs are kept; run again"
            ) from None
        except OSError:
            raise self.loss() from None


def _difference(answer: Mapping[str, str] | BaseException, keys: tuple[str, ...]) -> str:
    """How a worker differs from this process, in words; "" if it does not."""
    if isinstance(answer, ModuleNotFoundError) and answer.name == "brmdp":
        return "has no brmdp"
    if isinstance(answer, ModuleNotFoundError) and str(answer.name).startswith("brmdp."):
        return "has another brmdp"
    if isinstance(answer, BaseException):
        return f"failed: {answer!r}"
    ours = identity()
    other = [key for key in keys if answer.get(key) != ours.get(key)]
    return ", ".join(
        f"has {key} {answer.get(key, 'unknown')}, not {ours.get(key, 'unknown')}" for key in other
    )


# --- in a worker ----------------------------------------------------------------------------------


def compute_here(work: bytes) -> Any:
    """Call a function in a worker on one thread, if the worker has the sender's identity.

    Parameters
    ----------
    work : bytes
        Pickle of the sender's identity, the function, its arguments and its keyword arguments.
    """
    expected, function, args, kwargs = pickle.loads(work)
    ours = identity()
    other = [key for key in DECISIVE if ours.get(key) != expected.get(key)]
    if other:
        differences = ", ".join(f"{key} {ours.get(key)}, not {expected.get(key)}" for key in other)
        raise ExperimentError(
            f"the worker on {platform.node()}, process {os.getpid()}, has {differences}"
        )
    with one_thread(), one_blas_thread:
        return function(*args, **kwargs)
