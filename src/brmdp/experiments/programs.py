"""The programs of computations, by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from brmdp.errors import InvalidInputError
from brmdp.experiments import coverage, examples, normality, optimism
from brmdp.experiments.program import REQUIRED, Columns, Program
from brmdp.experiments.spec import Computation, require_known

__all__ = ["PROGRAMS", "parameters_of", "replicate"]

PROGRAMS: dict[str, Program] = {
    "coverage": coverage.PROGRAM,
    **examples.PROGRAMS,
    **normality.PROGRAMS,
    "optimism": optimism.PROGRAM,
}
"""By name."""


def parameters_of(case: Computation) -> dict[str, Any]:
    """All parameters of a computation.

    Raises
    ------
    InvalidInputError
        If the program or a parameter is unknown, or one is missing.
    """
    require_known(case.program, PROGRAMS, "program")
    defaults = PROGRAMS[case.program].parameters
    for key in case.parameters:
        require_known(key, defaults, f"parameter of {case.program}")
    parameters = {**defaults, **case.parameters}
    missing = [key for key, value in parameters.items() if value is REQUIRED]
    if missing:
        raise InvalidInputError(f"{case.program} needs {', '.join(missing)}")
    return parameters


def replicate(case: Computation, seed: np.random.SeedSequence) -> Columns:
    """One replication of a computation, with columns checked to be of one length."""
    columns = PROGRAMS[case.program].replicate(seed, **parameters_of(case))
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise InvalidInputError(f"columns of {case.program} must have one length; got {lengths}")
    return columns
