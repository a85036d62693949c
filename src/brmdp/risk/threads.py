"""Rows are independent: large backups are split over threads, with the same result for any number of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from brmdp._validation import IntArray, as_positive_int

__all__ = ["for_chunks", "thread_count"]

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
