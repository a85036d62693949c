"""Rows are independent.

Large backups are split over threads, with the same result for any number of them.

Linear algebra on many small systems is the opposite case: there BLAS gets one thread, see
:data:`one_blas_thread`.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from brmdp._validation import IntArray
from brmdp.errors import InvalidInputError

__all__ = ["MANY_STATES", "for_chunks", "one_blas_thread", "one_thread", "thread_count"]

MANY_STATES = 64
"""Systems of fewer states are solved in one thread anyway."""

# Below this many possible transitions a second thread costs more than it saves.
WORTH_SPLITTING = 20_000


# More threads than any machine has processors are a mistake, and take long to start.
MAX_THREADS = 1024

_limited_to_one: ContextVar[bool] = ContextVar("_limited_to_one", default=False)


def thread_count() -> int:
    """Threads used by large backups.

    BRMDP_NUM_THREADS, or the processors available to this process.

    Raises
    ------
    InvalidInputError
        If BRMDP_NUM_THREADS is no integer from 1 to 1024.
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
            f"BRMDP_NUM_THREADS must be an integer from 1 to {MAX_THREADS}, or not be set; it is "
            f"{wanted[:40]!r}"
        )
    return threads


@contextmanager
def one_thread() -> Iterator[None]:
    """Backups in here, in this thread, are not split, whatever the environment says."""
    token = _limited_to_one.set(True)
    try:
        yield
    finally:
        _limited_to_one.reset(token)


@lru_cache(maxsize=1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="brmdp")


def for_chunks(work: int, pairs: IntArray, run: Callable[[IntArray, int], float]) -> list[float]:
    """Call run(chunk of pairs, position of the chunk's first pair) for all of ``pairs``.

    In threads if worth while.
    """
    threads = thread_count() if work >= WORTH_SPLITTING else 1
    if threads == 1:
        return [run(pairs, 0)]
    chunks = np.array_split(pairs, min(4 * threads, max(1, pairs.size)))
    starts = np.concatenate(([0], np.cumsum([c.size for c in chunks])[:-1]))
    return list(_pool(os.getpid(), threads).map(run, chunks, [int(s) for s in starts]))


class _OneBlasThread:
    """While anybody in this process is inside, one thread for linear algebra.

    With several, the last bits of a dense solve may depend on their number from about a hundred
    states on; and where processors are busy, threads waiting for each other cost more than the
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
