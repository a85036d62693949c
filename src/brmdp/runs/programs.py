"""The programs of computations, by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from brmdp.errors import InvalidInputError
from brmdp.runs import continuous, coverage, examples, lemmas, normality, optimism
from brmdp.runs.program import Columns, Program, with_defaults
from brmdp.runs.spec import Computation, require_known

__all__ = ["PROGRAMS", "parameters_of", "replicate"]

PROGRAMS: dict[str, Program] = {
    **continuous.PROGRAMS,
    "coverage": coverage.PROGRAM,
    **examples.PROGRAMS,
    **lemmas.PROGRAMS,
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
    return with_defaults(case.parameters, PROGRAMS[case.program].parameters, case.program)


def replicate(case: Computation, seed: np.random.SeedSequence) -> Columns:
    """One replication of a computation, with columns checked to be of one length."""
    columns = PROGRAMS[case.program].replicate(seed, **parameters_of(case))
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise InvalidInputError(f"columns of {case.program} must have one length; got {lengths}")
    return columns
