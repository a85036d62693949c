"""Compiled functions run on one CPU with one thread, so that a seed determines every bit of a run.

XLA splits a matrix product over the threads of its pool, even along the summed axis, so the order
of summation depends on the number of threads. Over thousands of gradient steps this leads to a
different trajectory. The size of the pool is read once, when JAX makes its CPU client: from the
environment variable ``NPROC``, or else from the number of processors available to the process
(``XLA_FLAGS=--xla_cpu_multi_thread_eigen=false`` no longer changes it, and ``OMP_NUM_THREADS``
never did). So the client is made here, with a pool of one thread, when this module is imported. One
thread is also right for a run among many workers.

If JAX computes anything in this process *before* this import, its client keeps its threads, and
results are repeatable only with the same number of processors. Import
:mod:`brmdp.continuous.agent` first (:mod:`brmdp.continuous` alone does not load JAX), or set
``NPROC=1``.
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
    """Decorator that compiles a function for this CPU.

    It is compiled once for each value of the ``static`` arguments, which must be hashable.
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
