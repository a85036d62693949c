"""How far a posterior quantile can be from the posterior mean (Dirichlet quantile deviation lemma).

For P ~ Dir(φ) with total concentration φ₀ = Σφ, values w of range R and ε > 0,

    Pr( w·P − E[w·P] ≥ ε ) ≤ exp(−φ₀ε²/(2R²)),   and the same for the lower tail.

So, for the α-quantile ρ of w·P,

    ρ − E[w·P] ≤ R √(2 ln(1/(1 − α))/φ₀),   E[w·P] − ρ ≤ R √(2 ln(1/α)/φ₀).

For rewards in [0, 1] the values have range R = 1/(1 − γ), and so do the targets w = r + γV when the
reward r(s,a,s') depends on the next state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from brmdp._validation import FloatArray, as_float_array, as_levels, as_positive_number, first_bad
from brmdp.errors import InvalidInputError

__all__ = ["DeviationBounds", "dirichlet_tail_bound", "quantile_deviation_bounds"]


class DeviationBounds(NamedTuple):
    """Largest distances of a quantile from the mean.

    Attributes
    ----------
    above : float or array
        Bound on quantile − mean.
    below : float or array
        Bound on mean − quantile.

    Examples
    --------
    >>> from brmdp.theory import quantile_deviation_bounds
    >>> above, below = quantile_deviation_bounds(50, 0.1, value_range=10)
    >>> round(above, 3), round(below, 3)
    (0.649, 3.035)
    """

    above: Any
    below: Any


def quantile_deviation_bounds(
    total_concentration: ArrayLike, alpha: ArrayLike, *, value_range: float = 1.0
) -> DeviationBounds:
    """Two-sided bounds on the distance of the posterior α-quantile of w·P from its mean.

    Parameters
    ----------
    total_concentration : float or array
        φ₀, such as ``belief.effective_sample_size()``.
    alpha : float or array in (0, 1)
        Levels, broadcast against ``total_concentration``.
    value_range : float
        R = max w − min w, or a bound on it.

    Returns
    -------
    DeviationBounds
        Floats if both arguments are numbers, arrays otherwise.

    Examples
    --------
    >>> from brmdp.theory import quantile_deviation_bounds
    >>> quantile_deviation_bounds([10, 1000], 0.1).below.round(3).tolist()
    [0.679, 0.068]
    """
    total = _positive(total_concentration, "total_concentration")
    levels = as_levels(alpha)
    size = as_positive_number(value_range, "value_range")
    try:
        scale = size * np.sqrt(2.0 / total) * np.ones_like(levels)
    except ValueError:
        raise InvalidInputError(
            f"total_concentration {total.shape} and alpha {levels.shape} do not broadcast together"
        ) from None
    return DeviationBounds(
        _plain(scale * np.sqrt(-np.log1p(-levels))),
        _plain(scale * np.sqrt(-np.log(levels))),
    )


def dirichlet_tail_bound(
    total_concentration: ArrayLike, deviation: ArrayLike, *, value_range: float = 1.0
) -> Any:
    """Bound exp(−φ₀ε²/(2R²)) on the probability that w·P is ε or more above its mean.

    The same bound holds for the probability that it is ε or more below its mean.

    Parameters
    ----------
    total_concentration : float or array
        φ₀.
    deviation : float or array
        ε > 0, broadcast against ``total_concentration``.
    value_range : float
        R = max w − min w, or a bound on it.

    Returns
    -------
    float or array
        A float if both arguments are numbers, an array otherwise.

    Examples
    --------
    >>> from brmdp.theory import dirichlet_tail_bound
    >>> round(dirichlet_tail_bound(50, 2.0, value_range=10), 3)
    0.368
    """
    total, distance = (
        _positive(total_concentration, "total_concentration"),
        _positive(deviation, "deviation"),
    )
    relative = distance / as_positive_number(value_range, "value_range")
    try:
        return _plain(np.exp(-0.5 * total * relative**2))
    except ValueError:
        raise InvalidInputError(
            f"total_concentration {total.shape} and deviation {distance.shape} do not broadcast "
            "together"
        ) from None


def _plain(numbers: FloatArray) -> Any:
    """A float for an array without axes, otherwise the array."""
    return numbers if np.ndim(numbers) else float(numbers)


def _positive(value: ArrayLike, name: str) -> FloatArray:
    array = as_float_array(value, name)
    if (array <= 0.0).any():
        bad = first_bad(array <= 0.0)
        raise InvalidInputError(
            f"{name} must be positive; got {array[bad]}{f' at index {bad}' if bad else ''}"
        )
    return array
