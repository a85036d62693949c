"""The errors that brmdp raises on purpose, and its one warning.

All errors derive from :class:`BrmdpError` and from the built-in exception a caller would expect, so
``except ValueError`` keeps working. Messages name the argument, what is allowed and what was given.
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
    """Base class of all errors that brmdp raises on purpose.

    Examples
    --------
    >>> import brmdp
    >>> try:
    ...     brmdp.Quantile(1.5)
    ... except brmdp.BrmdpError as error:
    ...     print(error)
    alpha must lie strictly between 0 and 1; got 1.5
    """


class InvalidInputError(BrmdpError, ValueError):
    """An argument is outside the range that the function documents.

    Examples
    --------
    >>> import brmdp
    >>> brmdp.DirichletBelief.uniform(3, 0)
    Traceback (most recent call last):
    ...
    brmdp.errors.InvalidInputError: n_actions must be a positive integer; got 0
    """


class ImpossibleTransitionError(InvalidInputError):
    """An observed transition has probability zero under the belief.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> try:
    ...     belief.observe(0, 0, 1)
    ... except brmdp.ImpossibleTransitionError:
    ...     print("the belief rules this transition out")
    the belief rules this transition out
    """


class RiskMeasureError(InvalidInputError):
    """A custom risk measure breaks an assumption of the solver and its certificates.

    :class:`brmdp.risk.RiskOperator` states these assumptions.

    Examples
    --------
    >>> import brmdp
    >>> class Nothing:
    ...     def bind(self, belief):
    ...         return None
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> try:
    ...     brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=Nothing())
    ... except brmdp.RiskMeasureError as error:
    ...     print(str(error).split(";")[1].strip())
    the NoneType lacks evaluate(), rows(), fixed_entries(), approximation(), basis
    """


class ContradictionError(BrmdpError, RuntimeError):
    """A guarantee failed its own check: the belief breaks an assumption the guarantee rests on.

    :func:`brmdp.certify` raises it when far too few posterior draws respect its bounds.

    Examples
    --------
    >>> import brmdp
    >>> issubclass(brmdp.ContradictionError, RuntimeError)
    True
    """


class RewardMismatchError(BrmdpError, ValueError):
    """An environment pays, or an agent plans with, a reward that differs from the world's model.

    Examples
    --------
    >>> import brmdp
    >>> issubclass(brmdp.RewardMismatchError, ValueError)
    True
    """


class ConvergenceError(BrmdpError, RuntimeError):
    """A computation could not reach, or could not certify, the required accuracy.

    Attributes
    ----------
    solution : brmdp.Solution, brmdp.HorizonSolution, brmdp.continuous.LakeValues or None
        What was reached. For a plan it is the last accepted iterate, with its residual and error
        bound; its status is ``"not converged"``. None if there is nothing to return, as in
        :func:`brmdp.dirichlet.cdf`.

    Examples
    --------
    >>> import brmdp
    >>> world = brmdp.envs.riverswim(6)
    >>> try:
    ...     brmdp.solve(world, method="value-iteration", max_iterations=3)
    ... except brmdp.ConvergenceError as error:
    ...     print(error.solution.status)
    not converged
    """

    def __init__(self, message: str, solution: object = None) -> None:
        super().__init__(message)
        self.solution = solution


class CorruptFileError(BrmdpError, ValueError):
    """A saved file is truncated, altered, of another kind or of an unknown version.

    Examples
    --------
    >>> import pathlib, tempfile, brmdp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "belief.npz")
    ...     _ = path.write_text("not a belief")
    ...     try:
    ...         brmdp.DirichletBelief.load(path)
    ...     except brmdp.CorruptFileError:
    ...         print("corrupt")
    corrupt
    """


class ExperimentError(BrmdpError, RuntimeError):
    """An experiment cannot continue.

    A run or a worker failed, or the experiment's folder is unusable or holds something else.
    Finished runs are kept: once the cause is removed, starting the experiment again resumes it.

    Examples
    --------
    >>> import brmdp
    >>> issubclass(brmdp.ExperimentError, RuntimeError)
    True
    """


class MissingExtraError(ExperimentError, ImportError):
    """An optional package is missing; the message says how to install it.

    Attributes
    ----------
    name : str
        Name of the missing package.

    Examples
    --------
    >>> import brmdp
    >>> brmdp.MissingExtraError("jax is missing", "jax").name
    'jax'
    """

    def __init__(self, message: str, name: str | None = None) -> None:
        ImportError.__init__(self, message, name=name)


class OtherOriginError(ExperimentError):
    """A run comes from other code, or from another world, than the runs it would be mixed with.

    Examples
    --------
    >>> from brmdp.errors import ExperimentError, OtherOriginError
    >>> issubclass(OtherOriginError, ExperimentError)
    True
    """


class PriorWarning(UserWarning):
    """A plan or certificate rests heavily on the prior; its ``prior`` field holds the figures.

    Examples
    --------
    Planning before there are any data gives this warning. To silence it:

    >>> import warnings
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", brmdp.PriorWarning)
    ...     found = brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=brmdp.Mean())
    >>> found.prior.outweighs
    True
    """
