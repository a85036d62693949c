"""How far a posterior quantile can be from the posterior mean.

(the lemma on Dirichlet quantile deviation).

For P ~ Dir(φ) with total concentration φ₀ = Σφ, values w of range R (R = 1/(1 − γ) for values of
rewards in [0, 1]; with r(s,a,s') inside, w = r + γV has that range too), and ε > 0,

    Pr( w·P − E[w·P] ≥ ε ) ≤ exp(−φ₀ε²/(2R²)),   and the same for the lower tail.

So, for the α-quantile ρ of w·P,

    ρ − E[w·P] ≤ R √(2 ln(1/(1 − α))/φ₀),   E[w·P] − ρ ≤ R √(2 ln(1/α)/φ₀).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from brmdp._validation import FloatArray, as_float_array, as_levels, as_positive_number, first_bad
from brmdp.errors import InvalidInputError

__all__ = ["DeviationBounds", "dirichlet_tail_bound", "quantile_deviation_bounds"]


class DeviationBounds(NamedTuple):
    """Largest distances of a quantile from the mean.

    Attributes
    ----------
    above : float or array
        Of quantile − mean.
    below : float or array
        Of mean − quantile.
    """

    above: Any
    below: Any


def quantile_deviation_bounds(
    total_concentration: Any, alpha: Any, *, value_range: float = 1.0
) -> DeviationBounds:
    """Bounds on the distance of the posterior α-quantile of w·P from its posterior mean.

    Both sides.

    Parameters
    ----------
    total_concentration : array
        φ₀, such as ``posterior.effective_sample_size()``.
    alpha : array in (0, 1)
        Levels; broadcast against ``total_concentration``.
    value_range : float
        R = max w − min w, or a bound on it.

    Returns
    -------
    DeviationBounds
        Plain numbers where both arguments are.
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
    total_concentration: Any, deviation: Any, *, value_range: float = 1.0
) -> Any:
    """Bound exp(−φ₀ε²/(2R²)) on the probability that w·P exceeds its mean by ``deviation`` or more, or falls short of it.

    Parameters
    ----------
    total_concentration : array
        φ₀.
    deviation : array
        ε > 0; broadcast against ``total_concentration``.
    value_range : float
        R = max w − min w, or a bound on it.

    Returns
    -------
    float or array
        A plain number where both arguments are.
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
    """A single number as such."""
    return numbers if np.ndim(numbers) else float(numbers)


def _positive(value: Any, name: str) -> FloatArray:
    array = as_float_array(value, name)
    if (array <= 0.0).any():
        bad = first_bad(array <= 0.0)
        raise InvalidInputError(
            f"{name} must be positive; got {array[bad]}{f' at index {bad}' if bad else ''}"
        )
    return array
