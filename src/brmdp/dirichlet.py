"""The exact law of a weighted sum of a Dirichlet vector.

For P ~ Dir(φ) and fixed values w, these functions compute the distribution function F of w·P =
Σ w_i P_i, its quantiles, its lower-tail mean (CVaR), and the gradients of the last two in w. The
whole library rests on them, but they need nothing else from it. All take arrays and broadcast like
NumPy functions.

**Law.** The quantile is the left one, q_α = inf{z: F(z) ≥ α}, and CVaR is E[w·P | w·P ≤ q_α]. Their
gradients are probability vectors, E[P_i | w·P = q_α] and E[P_i | w·P ≤ q_α]: the *risk-adjusted
rows*.

**Accuracy.** Nothing is sampled. For concentrations from 0.01 to 1e10 the relative error in
min(F, 1 − F) is at most 1e-9, and a quantile is within 2 ulp of max|w| (or 1e-250) or within a
relative error of 1e-9 in its tail probability, whichever is looser. Above 1e10, rounding grows like
1e-14 times the square root of Σφ (1e-8 at 1e12). If some concentrations are below 0.01, a small
tail may be known only to about 1e-15 in absolute terms. :func:`cdf` raises
:class:`~brmdp.ConvergenceError` rather than return a number that its own error estimate does not
support. The method is described in ``brmdp/_kernels/dirichlet.py``.

Examples
--------
The 5 % quantile of a success rate after 2 failures and 8 successes, under a uniform prior:

>>> from brmdp import dirichlet
>>> round(dirichlet.quantile([1 + 2, 1 + 8], [0.0, 1.0], 0.05), 6)
0.529913
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from brmdp._kernels import dirichlet as kernels
from brmdp._validation import FloatArray, IntArray, as_float_array, as_levels, first_bad
from brmdp.beliefs.gammas import LARGEST, SMALLEST
from brmdp.errors import ConvergenceError, InvalidInputError

__all__ = [
    "cdf",
    "cvar",
    "cvar_row",
    "quantile",
    "quantile_row",
]

LARGEST_VALUE = 1e150
"""Larger values are refused: their differences and squares would overflow."""

UNRESOLVED, ABSOLUTE = 1e-6, 1e-13
"""Largest estimated error of a distribution function that is returned.

The first is relative to the smaller tail, the second absolute; the limit is their sum.
"""

SHARPNESS = 1e-12
"""Tolerance of the saddlepoint's normal score."""


def cdf(
    concentration: ArrayLike, values: ArrayLike, z: ArrayLike, *, complement: bool = False
) -> Any:
    """Pr(values·P ≤ z) for P ~ Dir(concentration), computed exactly.

    Parameters
    ----------
    concentration : (..., n) array
        Each 0 or between 1e-30 and 1e12. Zero marks an impossible component, whose value does not
        matter.
    values : (..., n) array
        Each within ±1e150.
    z : (...) array
        Points. A point that differs from an inner value by less than 1e-150 × the spread of the
        values counts as that value.
    complement : bool
        Return Pr(values·P > z) instead, without cancellation.

    Returns
    -------
    float or array
        Signature (n),(n),()→(), with NumPy broadcasting. The relative error in min(F, 1 − F) is at
        most 1e-9 for concentrations from 0.01 to 1e10. Above that, rounding grows like 1e-14 times
        the square root of their sum (1e-8 at 1e12). If some concentrations are below 0.01, a small
        tail may be known only to about 1e-15 in absolute terms. The error bounds of quantiles
        include both effects.

    Raises
    ------
    ConvergenceError
        If the quadrature estimates its own error to be large.

    Examples
    --------
    >>> from brmdp import dirichlet
    >>> round(dirichlet.cdf([1, 1, 1], [0.0, 1.0, 2.0], 0.5), 12)
    0.125
    >>> dirichlet.cdf([1, 1, 1], [0.0, 1.0, 2.0], [0.5, 1.0, 1.5]).round(12)
    array([0.125, 0.5  , 0.875])
    """
    phi, w, (points,), shape = _rows(concentration, values, as_float_array(z, "z"))
    below = np.empty(points.size)
    above = np.empty(points.size)
    error = np.empty(points.size)
    kernels.cdf_rows(phi, w, points, below, above, error)
    unresolved = ~(error <= UNRESOLVED * np.minimum(below, above) + ABSOLUTE)
    if unresolved.any():
        row = int(np.argmax(unresolved))
        raise ConvergenceError(
            f"the distribution function at z={float(points[row])!r} could not be resolved (its "
            f"estimated error is {error[row]:.1g}) for concentration={phi[row].tolist()} and "
            f"values={w[row].tolist()}; please report this"
        )
    return _shaped(above if complement else below, shape)


def quantile(
    concentration: ArrayLike,
    values: ArrayLike,
    alpha: ArrayLike,
    method: Literal["exact", "saddlepoint"] = "exact",
) -> Any:
    """The left α-quantile of values·P for P ~ Dir(concentration).

    Parameters
    ----------
    concentration, values : (..., n) arrays
        As in :func:`cdf`.
    alpha : (...) array in (0, 1)
        Levels, at least 1e-100.
    method : {"exact", "saddlepoint"}
        "exact": within 2 ulp of max|values| (or 1e-250), or within a relative error of 1e-9 in the
        tail probability, whichever is looser; see :func:`cdf` for concentrations below 0.01 or
        above 1e10. "saddlepoint": a much faster approximation, off by about 1e-4 in probability for
        16 values.

    Returns
    -------
    float or array
        Signature (n),(n),()→(), with NumPy broadcasting.

    Examples
    --------
    >>> from brmdp import dirichlet
    >>> round(dirichlet.quantile([1, 1, 1], [0.0, 1.0, 2.0], 0.125), 12)
    0.5
    >>> dirichlet.quantile([4, 2, 1], [0.0, 1.0, 2.0], [0.1, 0.5, 0.9]).round(4)
    array([0.2556, 0.5467, 0.9185])
    """
    measures = {"exact": kernels.EXACT, "saddlepoint": kernels.SADDLEPOINT}
    if not isinstance(method, str) or method not in measures:
        raise InvalidInputError(f"method must be 'exact' or 'saddlepoint'; got {method!r}")
    phi, w, (levels,), shape = _rows(concentration, values, as_levels(alpha))
    return _shaped(_evaluate(measures[method], phi, w, levels), shape)


def quantile_row(
    concentration: ArrayLike, values: ArrayLike, alpha: ArrayLike
) -> tuple[Any, FloatArray]:
    """The exact quantile q and its gradient in the values, the row E[P_i | values·P = q].

    Parameters
    ----------
    concentration, values, alpha
        As in :func:`quantile`.

    Returns
    -------
    q : float or array
        The quantile.
    row : (..., n) array
        Its gradient, a probability vector. Signature (n),(n),()→(),(n).

    Examples
    --------
    >>> from brmdp import dirichlet
    >>> q, row = dirichlet.quantile_row([1, 1, 1], [0.0, 1.0, 2.0], 0.125)
    >>> round(q, 6), row.round(6)
    (0.5, array([0.625, 0.25 , 0.125]))
    """
    return _with_row(kernels.EXACT, concentration, values, as_levels(alpha))


def cvar(concentration: ArrayLike, values: ArrayLike, alpha: ArrayLike) -> Any:
    """Lower-tail CVaR of values·P, the mean of its worst α: E[values·P | values·P ≤ q_α].

    Parameters
    ----------
    concentration, values : (..., n) arrays
        As in :func:`cdf`.
    alpha : (...) array in (0, 1]
        Levels, at least 1e-100; 1 gives the mean.

    Returns
    -------
    float or array
        Signature (n),(n),()→(), with NumPy broadcasting; exact, not sampled.

    Examples
    --------
    >>> from brmdp import dirichlet
    >>> dirichlet.cvar([1, 1, 1], [0.0, 1.0, 2.0], [0.125, 1.0]).round(6)
    array([0.333333, 1.      ])
    """
    phi, w, (levels,), shape = _rows(concentration, values, as_levels(alpha, one_allowed=True))
    return _shaped(_evaluate(kernels.CVAR, phi, w, levels), shape)


def cvar_row(
    concentration: ArrayLike, values: ArrayLike, alpha: ArrayLike
) -> tuple[Any, FloatArray]:
    """CVaR and its gradient in the values, the row E[P_i | values·P ≤ q_α].

    Parameters
    ----------
    concentration, values, alpha
        As in :func:`cvar`.

    Returns
    -------
    value : float or array
        The CVaR.
    row : (..., n) array
        Its gradient, a probability vector. Signature (n),(n),()→(),(n).

    Examples
    --------
    >>> from brmdp import dirichlet
    >>> value, row = dirichlet.cvar_row([1, 1, 1], [0.0, 1.0, 2.0], 0.125)
    >>> round(value, 6), round(float(row @ [0.0, 1.0, 2.0]), 6)
    (0.333333, 0.333333)
    """
    return _with_row(kernels.CVAR, concentration, values, as_levels(alpha, one_allowed=True))


def _with_row(
    measure: int, concentration: ArrayLike, values: ArrayLike, alpha: FloatArray
) -> tuple[Any, FloatArray]:
    phi, w, (levels,), shape = _rows(concentration, values, alpha)
    result = _evaluate(measure, phi, w, levels)
    rows, pairs = _independent(phi, levels)
    out = np.empty(phi.shape)
    kernels.rows_of_pairs(
        measure, True, pairs, rows, w.ravel(), result, rows.indptr, out.reshape(-1)
    )
    return _shaped(result, shape), out.reshape(*shape, -1)


def _evaluate(measure: int, phi: FloatArray, w: FloatArray, levels: FloatArray) -> FloatArray:
    rows, pairs = _independent(phi, levels)
    out = np.empty(pairs.size)
    kernels.evaluate_pairs(measure, pairs, rows, w.ravel(), SHARPNESS, out)
    return out


def _independent(phi: FloatArray, levels: FloatArray) -> tuple[kernels.Rows, IntArray]:
    """Concentrations (rows, n) as independent rows for the kernels, and the index of each row."""
    count, n = phi.shape
    pointers = np.arange(count + 1, dtype=np.int64) * n
    return kernels.Rows.of(pointers, pointers[:-1], phi.ravel(), levels, n), np.arange(count)


def _rows(
    concentration: ArrayLike, values: ArrayLike, last: FloatArray
) -> tuple[FloatArray, FloatArray, list[FloatArray], tuple[int, ...]]:
    """Check the arguments and broadcast them to (rows, n), (rows, n) and (rows,)."""
    phi = as_float_array(concentration, "concentration")
    w = as_float_array(values, "values")
    for array, name in ((phi, "concentration"), (w, "values")):
        if array.ndim == 0 or array.shape[-1] == 0:
            raise InvalidInputError(
                f"{name} must have at least one entry along its last axis; got shape {array.shape}"
            )
    if (np.abs(w) > LARGEST_VALUE).any():
        bad = first_bad(np.abs(w) > LARGEST_VALUE)
        raise InvalidInputError(
            f"values must lie within ±{LARGEST_VALUE:g}; got {w[bad]} at index {bad}"
        )
    if (phi > LARGEST).any():
        bad = first_bad(phi > LARGEST)
        raise InvalidInputError(
            f"concentration must be at most {LARGEST:g}; got {phi[bad]} at index {bad}"
        )
    if ((phi > 0) & (phi < SMALLEST)).any():
        bad = first_bad((phi > 0) & (phi < SMALLEST))
        raise InvalidInputError(
            f"concentration must be 0 or at least {SMALLEST:g}; got {phi[bad]} at index {bad}"
        )
    if (phi < 0).any():
        bad = first_bad(phi < 0)
        raise InvalidInputError(
            f"concentration must not be negative; got {phi[bad]} at index {bad}"
        )
    if not (phi > 0).any(axis=-1).all():
        raise InvalidInputError(
            "concentration must have a positive entry in every row; got a row of zeros"
        )
    if phi.shape[-1] != w.shape[-1]:
        raise InvalidInputError(
            f"concentration and values must have the same last axis; got {phi.shape[-1]} and "
            f"{w.shape[-1]}"
        )
    try:
        shape = np.broadcast_shapes(phi.shape[:-1], w.shape[:-1], last.shape)
    except ValueError:
        raise InvalidInputError(
            f"concentration, values and the last argument must broadcast together; got the shapes "
            f"{phi.shape}, {w.shape} and {last.shape}"
        ) from None
    n = phi.shape[-1]
    # Copy: some of these views are read-only, and numba would compile the kernels again for those.
    phi = np.array(np.broadcast_to(phi, (*shape, n)), order="C").reshape(-1, n)
    w = np.array(np.broadcast_to(w, (*shape, n)), order="C").reshape(-1, n)
    return phi, w, [np.array(np.broadcast_to(last, shape), order="C").reshape(-1)], shape


def _shaped(result: FloatArray, shape: tuple[int, ...]) -> Any:
    return float(result[0]) if shape == () else result.reshape(shape)
