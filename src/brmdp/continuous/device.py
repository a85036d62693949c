"""One processor, one thread.

Where the compiled functions run, so that a seed determines every bit of a run.

XLA splits a matrix product over the threads of its pool, also along the summed axis, and sums in
another order for another number of threads; over a run of thousands of gradient steps that grows
into another trajectory. The size of the pool is read once, when JAX makes its CPU client: from the
environment variable ``NPROC``, else from the processors the process may use
(``XLA_FLAGS=--xla_cpu_multi_thread_eigen=false`` no longer changes it, and ``OMP_NUM_THREADS``
never did). So the client is made here, with a pool of one, when this module is imported. One thread
is also what a run among many workers should use.

If JAX computed anything in this process *before* this import, its client has the threads it has:
results are then repeatable on that number of processors only. Import :mod:`brmdp.continuous` first,
or set ``NPROC=1``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax

__all__ = ["CPU", "compiled"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _single_threaded_cpu() -> Any:
    before = os.environ.get("NPROC")
    os.environ["NPROC"] = "1"
    try:
        return jax.local_devices(backend="cpu")[0]
    finally:
        if before is None:
            del os.environ["NPROC"]
        else:
            os.environ["NPROC"] = before


CPU = _single_threaded_cpu()


def compiled(*static: str) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Decorator: compile for the one processor.

    Once for each value of the ``static`` arguments (which must be hashable).
    """

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        inner = jax.jit(function, static_argnames=static)

        @functools.wraps(function)
        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            with jax.default_device(CPU):
                result: Result = inner(*args, **kwargs)
            return result

        return call

    return decorate
