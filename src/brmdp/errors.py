"""Every error brmdp raises on purpose, and its one warning.

All derive from :class:`BrmdpError`, and from the built-in exception a caller would expect, so that
``except ValueError`` keeps working. Messages name the argument, what is allowed and what came.
"""

from __future__ import annotations

__all__ = [
    "BrmdpError",
    "ContradictionError",
    "ConvergenceError",
    "CorruptFileError",
    "ExperimentError",
    "ImpossibleTransitionError",
    "InvalidInputError",
    "MissingExtraError",
    "OtherOriginError",
    "PriorWarning",
    "RewardMismatchError",
    "RiskMeasureError",
]


class BrmdpError(Exception):
    """Base class of all errors raised on purpose by brmdp."""


class InvalidInputError(BrmdpError, ValueError):
    """An argument is outside what the function documents."""


class ImpossibleTransitionError(InvalidInputError):
    """A transition was observed to which the belief gives probability zero."""


class RiskMeasureError(InvalidInputError):
    """A risk measure of one's own breaks what the solver and its certificates rest on.

    (see ``brmdp.risk.RiskOperator``).
    """


class ContradictionError(BrmdpError, RuntimeError):
    """A guarantee failed its own check.

    The belief breaks an assumption that the guarantee rests on.
    """


class RewardMismatchError(BrmdpError, ValueError):
    """An environment paid, or an agent plans with.

    Another reward than the model of the world has for that transition.
    """


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
    """An experiment cannot go on.

    Its folder, a run or a worker failed, or the folder holds something else.

    Finished runs stay where they are; once the cause is removed, running it again goes on from
    there.
    """


class MissingExtraError(ExperimentError, ImportError):
    """A package is missing that only a part of the library needs; the message says how to get it.

    Attributes
    ----------
    name : str
        Of the package.
    """

    def __init__(self, message: str, name: str | None = None) -> None:
        ImportError.__init__(self, message, name=name)


class OtherOriginError(ExperimentError):
    """A run was made by other code, or in another world, than those it would be mixed with."""


class PriorWarning(UserWarning):
    """A plan or a certificate rests heavily on the prior; its field ``prior`` has the figures."""
