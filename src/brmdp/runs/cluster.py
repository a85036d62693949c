"""Computing on a Dask cluster that others may use, too.

Nothing is left behind on it, and it is said what is going on.

Workers are asked who they are before anything runs, and again when a run fails, since others may
have joined; those that would compute something else are refused by name. Thread limits hold while a
run is computed and not longer.
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
"""How long to try to reach a scheduler, which may be starting."""

SPEAKING = 30.0
"""Seconds for it to greet us, once reached."""

GREETINGS = 3
"""How often to be greeted before giving up."""

ANSWERING = 60.0
"""Seconds for a scheduler or its workers to answer a question.

Importing brmdp may be part of the answer.
"""

PATIENCE = 300.0
"""Seconds to wait for workers where there are none."""

LOOKING = 2.0
"""Seconds between two looks at the cluster while runs are under way."""

DECISIVE = ("brmdp", "code", "python")
"""What must be the same on all machines; other versions are only named."""

LOG = logging.getLogger("brmdp")
# Sent as text, and work as bytes: where brmdp is missing, the scheduler included, Dask fails to
# unpickle functions of ours, in ways from which it does not always recover.
OURS = "__import__('brmdp.runs.cluster', fromlist=['identity'])"
PARTS = "__import__('brmdp.runs.references', fromlist=['require_loadable'])"
WHO_ARE_YOU = f"{OURS}.identity()"
COMPUTE = f"{OURS}.compute_here(work)"


@lru_cache(maxsize=1)
def identity() -> dict[str, str]:
    """What computes here: versions, and the digest of the code."""
    ours = {"brmdp": installed_version(), "code": short(CODE)}
    others = {package: version(package) for package in ("numpy", "scipy", "numba")}
    return {"python": ".".join(platform.python_version_tuple()[:2]), **ours, **others}


@contextmanager
def cluster_executor(
    address: str, *, patience: float = PATIENCE, on_message: Callable[[str], None] | None = None
) -> Iterator[ClusterExecutor]:
    """An executor on the Dask cluster whose scheduler has that address.

    Brmdp must be installed on its workers.

    Parameters
    ----------
    address : str
    patience : float
        Seconds to wait for workers where there are none.
    on_message : function, optional
        Called with what is going on. By default it is logged.

    Raises
    ------
    ExperimentError
        If there is no scheduler, no worker, or a worker that would compute something else.
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
            # the scheduler had news for all clients just then, and Dask takes nothing but a
            # greeting
            reason = "its greeting was not understood"
            continue
        except (OSError, ValueError, TypeError) as error:
            reason = str(error)
        break
    if client is None:
        # a client that failed closes itself when collected: here, not in a thread of the next one,
        # which hangs
        gc.collect()
        raise ExperimentError(f"no Dask scheduler answers at {address!r}: {reason}")
    with client:
        yield client


def _within(seconds: float, call: Callable[[], Any]) -> Any:
    """What ``call`` gives, if it does in time.

    Dask waits forever for something that takes a connection and says nothing.
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
    """Runs on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
    address : str
        Of its scheduler.
    patience : float
        Seconds to wait for workers where there are none.
    """

    def __init__(self, client: Any, address: str, patience: float) -> None:
        self._client = client
        self._address = address
        self._patience = patience
        self._executor = client.get_executor(pure=False)
        self._looked = time.monotonic()
        self._deserted: float | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Compute on any worker."""
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
        """Refuse workers that would not compute what this process would, by name.

        Tell of other differences.
        """
        for worker, answer in self.require_fit_workers().items():
            if other := _difference(answer, tuple(answer)):
                say(f"worker {worker} {other}: last digits may differ")

    def require_fit_workers(self) -> Mapping[str, Mapping[str, str]]:
        """What the workers are, if each would compute what this process would."""
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
        """Refuse workers that cannot load parts of one's own, given as ``module:attribute``.

        Raises
        ------
        ExperimentError
            Naming the workers and what they lack.
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
        """What every worker answers: the value of an expression, or the error it raised."""
        try:
            # an argument of Client.sync, which run passes it to
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
        """Look at the cluster while runs are under way.

        Raises when nothing will come of them any more.
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
        """What to say when the cluster has dropped our runs."""
        gone = self._client.status != "running" or not self._answers()
        what = (
            "the connection to the Dask scheduler at {} is lost"
            if gone
            else "the Dask cluster at {} cancelled our runs"
        )
        return ExperimentError(f"{what.format(self._address)}. Finished runs are kept; run again")

    def _answers(self) -> bool:
        """Whether the scheduler is there.

        That our runs are lost may be known before the connection is known to be.
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
    """How a worker differs from this process, in words; empty if it does not."""
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
    """Call a function in a worker, on one thread, if the worker is what the sender takes it for.

    Parameters
    ----------
    work : bytes
        Pickle of the sender's identity, and of the function, its arguments and its keyword
        arguments.
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
