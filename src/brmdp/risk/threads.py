"""Rows are independent: large backups are split over threads, with the same result for any number of them.

Linear algebra on many small systems is the opposite case: there BLAS gets one thread, see :data:`one_blas_thread`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from brmdp._validation import IntArray, as_positive_int

__all__ = ["MANY_STATES", "for_chunks", "one_blas_thread", "thread_count"]

MANY_STATES = 64
"""Systems of fewer states are solved in one thread anyway."""

# Below this many possible transitions a second thread costs more than it saves.
WORTH_SPLITTING = 20_000


def thread_count() -> int:
    """Threads used by large backups: BRMDP_NUM_THREADS, or the processors available to this process."""
    wanted = os.environ.get("BRMDP_NUM_THREADS")
    if wanted:
        return as_positive_int(int(wanted) if wanted.isdigit() else wanted, "BRMDP_NUM_THREADS")
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


@lru_cache(maxsize=1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="brmdp")


def for_chunks(work: int, pairs: IntArray, run: Callable[[IntArray, int], float]) -> list[float]:
    """Call run(chunk of pairs, position of the chunk's first pair) for all of ``pairs``, in threads if worth while."""
    threads = thread_count() if work >= WORTH_SPLITTING else 1
    if threads == 1:
        return [run(pairs, 0)]
    chunks = np.array_split(pairs, 4 * threads)
    starts = np.concatenate(([0], np.cumsum([c.size for c in chunks])[:-1]))
    return list(_pool(os.getpid(), threads).map(run, chunks, [int(s) for s in starts]))


class _OneBlasThread:
    """While anybody in this process is inside, one thread for linear algebra.

    With several, the last bits of a dense solve may depend on their number from about a hundred states on; and where
    processors are busy, threads waiting for each other cost more than the solve.
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
