"""Every error brmdp raises on purpose.

All derive from :class:`BrmdpError`, and from the built-in exception a caller would expect, so that
``except ValueError`` keeps working. Messages name the argument, what is allowed and what came.
"""

from __future__ import annotations

__all__ = [
    "BrmdpError",
    "ConvergenceError",
    "CorruptFileError",
    "ExperimentError",
    "ImpossibleTransitionError",
    "InvalidInputError",
    "RewardMismatchError",
]


class BrmdpError(Exception):
    """Base class of all errors raised on purpose by brmdp."""


class InvalidInputError(BrmdpError, ValueError):
    """An argument is outside what the function documents."""


class ImpossibleTransitionError(InvalidInputError):
    """A transition was observed to which the belief gives probability zero."""


class RewardMismatchError(BrmdpError, ValueError):
    """An environment paid, or an agent plans with, another reward than the model of the world has for that transition."""


class ConvergenceError(BrmdpError, RuntimeError):
    """The solver could not certify the requested tolerance.

    Attributes
    ----------
    solution : brmdp.Solution
        The best iterate, with its residual and error bound; its status is ``"not converged"``.
    """

    def __init__(self, message: str, solution: object = None) -> None:
        super().__init__(message)
        self.solution = solution


class CorruptFileError(BrmdpError, ValueError):
    """A saved file is truncated, altered, of another kind or of an unknown version."""


class ExperimentError(BrmdpError, RuntimeError):
    """An experiment cannot go on: its folder, a run or a worker failed, or the folder holds something else.

    Finished runs stay where they are; once the cause is removed, running it again goes on from there.
    """
