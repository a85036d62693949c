"""Threads for large backups, and one thread for linear algebra.

Rows are independent, so large backups are split over threads, with the same result for any number
of them. Many small linear systems are the opposite case: for them BLAS gets one thread; see
:data:`one_blas_thread`.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from brmdp._validation import IntArray
from brmdp.errors import InvalidInputError

__all__ = [
    "MANY_STATES",
    "WORTH_SPLITTING",
    "for_chunks",
    "for_ranges",
    "one_blas_thread",
    "one_thread",
    "over_threads",
    "thread_count",
]

MANY_STATES = 64
"""BLAS solves systems of fewer states in one thread anyway."""

WORTH_SPLITTING = 20_000
"""Below this many possible transitions, a second thread costs more than it saves."""

MAX_THREADS = 1024
"""Largest number of threads; no machine has more processors, so asking for more is a mistake."""

_limited_to_one: ContextVar[bool] = ContextVar("_limited_to_one", default=False)


def thread_count() -> int:
    """Number of threads for large backups.

    This is BRMDP_NUM_THREADS, or else the number of processors available to this process.

    Raises
    ------
    InvalidInputError
        If BRMDP_NUM_THREADS is not an integer from 1 to 1024.
    """
    if _limited_to_one.get():
        return 1
    wanted = os.environ.get("BRMDP_NUM_THREADS", "").strip()
    if not wanted:
        available = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else (os.cpu_count() or 1)
        )
        return min(available, MAX_THREADS)
    threads = int(wanted) if re.fullmatch("[0-9]{1,9}", wanted) else 0
    if not 1 <= threads <= MAX_THREADS:
        raise InvalidInputError(
            f"BRMDP_NUM_THREADS must be an integer from 1 to {MAX_THREADS}, or unset; got "
            f"{wanted[:40]!r}"
        )
    return threads


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep the backups of this thread from being split, whatever the environment says."""
    token = _limited_to_one.set(True)
    try:
        yield
    finally:
        _limited_to_one.reset(token)


@lru_cache(maxsize=1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="brmdp")


def for_chunks(work: int, pairs: IntArray, run: Callable[[IntArray, int], float]) -> list[float]:
    """Call ``run(chunk, position of its first pair)`` on chunks of ``pairs``.

    The chunks go to several threads if that saves time.
    """
    threads = thread_count() if work >= WORTH_SPLITTING else 1
    if threads == 1:
        return [run(pairs, 0)]
    chunks = np.array_split(pairs, min(4 * threads, max(1, pairs.size)))
    starts = np.concatenate(([0], np.cumsum([c.size for c in chunks])[:-1]))
    return list(_pool(os.getpid(), threads).map(run, chunks, [int(s) for s in starts]))


def for_ranges(n: int, work: int, run: Callable[[int, int], None]) -> None:
    """Call ``run(first, last)`` on ranges that make up 0 … n − 1, as :func:`for_chunks` does."""
    threads = thread_count() if work >= WORTH_SPLITTING else 1
    if threads == 1:
        run(0, n)
        return
    cuts = np.linspace(0, n, min(4 * threads, n) + 1).astype(np.int64).tolist()
    for _ in _pool(os.getpid(), threads).map(run, cuts[:-1], cuts[1:]):
        pass


def over_threads(run: Callable[[Any], None], jobs: Sequence[Any]) -> None:
    """Call ``run`` on every job, in several threads if there are any; none splits its backups."""

    def alone(job: Any) -> None:
        # a thread of the pool that waits for the pool might wait forever
        with one_thread():
            run(job)

    threads = min(thread_count(), len(jobs))
    if threads <= 1:
        for job in jobs:
            alone(job)
        return
    for _ in _pool(os.getpid(), thread_count()).map(alone, jobs):
        pass


class _OneBlasThread:
    """A context in which linear algebra uses one thread, for the whole process.

    With several threads, the last bits of a dense solve may depend on their number from about a
    hundred states on; and on busy processors, threads waiting for each other cost more than the
    solve.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = threadpool_limits(limits=1)
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


one_blas_thread = _OneBlasThread()
