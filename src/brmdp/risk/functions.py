"""Plain vectorised functions of a Dirichlet vector and a vector of values.

For people who want only that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from brmdp._kernels import dirichlet
from brmdp._validation import FloatArray, IntArray, as_float_array, as_levels, first_bad
from brmdp.beliefs.gammas import LARGEST, SMALLEST
from brmdp.errors import ConvergenceError, InvalidInputError

__all__ = [
    "dirichlet_cdf",
    "dirichlet_cvar",
    "dirichlet_cvar_row",
    "dirichlet_quantile",
    "dirichlet_quantile_row",
]

LARGEST_VALUE = 1e150
"""Values beyond are refused: their differences and squares would overflow."""

UNRESOLVED, ABSOLUTE = 1e-6, 1e-13
"""A distribution function whose estimated error is above this share of its smaller tail.

Plus this much, is not returned.
"""

SHARPNESS = 1e-12
"""Tolerance of the saddlepoint's normal score."""


def dirichlet_cdf(concentration: Any, values: Any, z: Any, *, complement: bool = False) -> Any:
    """Pr(values·P ≤ z) for P ~ Dir(concentration), exactly.

    Parameters
    ----------
    concentration, values : (..., n) arrays
        Concentrations from 1e-30 to 1e12; zeros are structural zeros, whose values do not matter.
        Values within ±1e150.
    z : (...) array
        Resolved to 1e-150 of the spread of the values: nearer to a value it counts as that value.
    complement : bool
        Return Pr(values·P > z) instead, without cancellation.

    Returns
    -------
    float or array
        Signature (n),(n),()→(), with NumPy broadcasting; relative error at most 1e-9 in min(F, 1 −
        F) for concentrations from 0.01 to 1e10. Beyond, rounding grows like 1e-14 times the root of
        their sum (1e-8 at 1e12), which the error bounds of quantiles include. Beside concentrations
        below 0.01 a small tail may be known to about 1e-15 absolutely only, which they include too.

    Raises
    ------
    ConvergenceError
        Rather than a wrong answer, should the quadrature's own estimate of its error be large.
    """
    phi, w, (points,), shape = _rows(concentration, values, as_float_array(z, "z"))
    below = np.empty(points.size)
    above = np.empty(points.size)
    error = np.empty(points.size)
    dirichlet.cdf_rows(phi, w, points, below, above, error)
    unresolved = ~(error <= UNRESOLVED * np.minimum(below, above) + ABSOLUTE)
    if unresolved.any():
        row = int(np.argmax(unresolved))
        raise ConvergenceError(
            f"the distribution function at z={points[row]!r} of concentration={phi[row]} and "
            f"values={w[row]} is resolved only to an error of {error[row]:.1g}; please report it"
        )
    return _shaped(above if complement else below, shape)


def dirichlet_quantile(concentration: Any, values: Any, alpha: Any, method: str = "exact") -> Any:
    """The left α-quantile of values·P for P ~ Dir(concentration).

    Parameters
    ----------
    concentration, values : (..., n) arrays
    alpha : (...) array in (0, 1), at least 1e-100
    method : {"exact", "saddlepoint"}
        "exact": within 2 ulp of max|values| (or 1e-250), or to a relative error of 1e-9 in the tail
        probability, whichever is looser; see :func:`dirichlet_cdf` for concentrations below 0.01 or
        above 1e10. "saddlepoint": an approximation (about 1e-4 in probability for 16 values), much
        faster.

    Returns
    -------
    float or array
        Signature (n),(n),()→(), with NumPy broadcasting.
    """
    measures = {"exact": dirichlet.EXACT, "saddlepoint": dirichlet.SADDLEPOINT}
    if not isinstance(method, str) or method not in measures:
        raise InvalidInputError(f"method must be 'exact' or 'saddlepoint'; got {method!r}")
    phi, w, (levels,), shape = _rows(concentration, values, as_levels(alpha))
    return _shaped(_evaluate(measures[method], phi, w, levels), shape)


def dirichlet_quantile_row(concentration: Any, values: Any, alpha: Any) -> tuple[Any, FloatArray]:
    """The exact quantile q and its gradient, the risk-adjusted row E[P_i | values·P = q].

    Signature (n),(n),()→(),(n). The row is a probability vector.
    """
    return _with_row(dirichlet.EXACT, concentration, values, as_levels(alpha))


def dirichlet_cvar(concentration: Any, values: Any, alpha: Any) -> Any:
    """Lower-tail CVaR E[values·P | values·P ≤ q_α], exactly; α in (0, 1], 1 is the mean.

    Signature (n),(n),()→().
    """
    phi, w, (levels,), shape = _rows(concentration, values, as_levels(alpha, one_allowed=True))
    return _shaped(_evaluate(dirichlet.CVAR, phi, w, levels), shape)


def dirichlet_cvar_row(concentration: Any, values: Any, alpha: Any) -> tuple[Any, FloatArray]:
    """CVaR and its gradient, the row E[P_i | values·P ≤ q_α]. Signature (n),(n),()→(),(n)."""
    return _with_row(dirichlet.CVAR, concentration, values, as_levels(alpha, one_allowed=True))


def _with_row(
    measure: int, concentration: Any, values: Any, alpha: FloatArray
) -> tuple[Any, FloatArray]:
    phi, w, (levels,), shape = _rows(concentration, values, alpha)
    result = _evaluate(measure, phi, w, levels)
    rows, pairs = _independent(phi, levels)
    out = np.empty(phi.shape)
    dirichlet.rows_of_pairs(
        measure, True, pairs, rows, w.ravel(), result, rows.indptr, out.reshape(-1)
    )
    return _shaped(result, shape), out.reshape(*shape, -1)


def _evaluate(measure: int, phi: FloatArray, w: FloatArray, levels: FloatArray) -> FloatArray:
    rows, pairs = _independent(phi, levels)
    out = np.empty(pairs.size)
    dirichlet.evaluate_pairs(measure, pairs, rows, w.ravel(), SHARPNESS, out)
    return out


def _independent(phi: FloatArray, levels: FloatArray) -> tuple[dirichlet.Rows, IntArray]:
    """The rows of (rows, n) concentrations, and the numbers of all of them."""
    count, n = phi.shape
    pointers = np.arange(count + 1, dtype=np.int64) * n
    return dirichlet.Rows.of(pointers, pointers[:-1], phi.ravel(), levels, n), np.arange(count)


def _rows(
    concentration: Any, values: Any, last: FloatArray
) -> tuple[FloatArray, FloatArray, list[FloatArray], Any]:
    """Broadcast to (rows, n), (rows, n) and (rows,), checked."""
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
            f"concentration {phi.shape}, values {w.shape} and the last argument {last.shape} do "
            "not broadcast together"
        ) from None
    n = phi.shape[-1]
    # copies: kernels would be compiled again for arrays that are read-only, as some but not all of
    # these views are
    phi = np.array(np.broadcast_to(phi, (*shape, n)), order="C").reshape(-1, n)
    w = np.array(np.broadcast_to(w, (*shape, n)), order="C").reshape(-1, n)
    return phi, w, [np.array(np.broadcast_to(last, shape), order="C").reshape(-1)], shape


def _shaped(result: FloatArray, shape: tuple[int, ...]) -> Any:
    return float(result[0]) if shape == () else result.reshape(shape)
