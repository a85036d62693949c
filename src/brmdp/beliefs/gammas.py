"""Dirichlet draws that stay correct for tiny concentrations.

P = G/ΣG with independent G_i ~ Gamma(φ_i). For φ ≪ 1 the gammas underflow and whole rows vanish, so
their logarithms are drawn instead: log G = log Gamma(φ + 1) − E/φ with E ~ Exp(1).
"""

from __future__ import annotations

import numpy as np

from brmdp._kernels import linear
from brmdp._validation import FloatArray, IntArray
from brmdp.errors import InvalidInputError

__all__ = [
    "LARGEST",
    "SMALLEST",
    "check_concentrations",
    "dirichlet_rows",
    "log_gammas",
    "normalise_log_rows",
]

SMALLEST, LARGEST = 1e-30, 1e12
"""Range of concentrations accepted.

Above it, rounding would break the stated accuracy; below it, numbers would underflow.
"""


def check_concentrations(concentration: FloatArray) -> None:
    """Raise an error for a concentration outside [SMALLEST, LARGEST]."""
    bad = (concentration < SMALLEST) | (concentration > LARGEST)
    if bad.any():
        value = concentration[bad][0]
        raise InvalidInputError(
            f"concentration must be 0 or lie in [{SMALLEST:g}, {LARGEST:g}]; got {value}"
        )


def log_gammas(concentration: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """``n`` draws of log G_i, G_i ~ Gamma(φ_i), for each entry: (n, entries)."""
    light = concentration < 1.0
    draws = np.log(
        rng.standard_gamma(
            np.where(light, concentration + 1.0, concentration), (n, concentration.size)
        )
    )
    if light.any():
        draws[:, light] -= rng.standard_exponential((n, int(light.sum()))) / concentration[light]
    return draws


def dirichlet_rows(
    concentration: FloatArray, n: int, rng: np.random.Generator, widths: IntArray
) -> FloatArray:
    """``n`` draws of consecutive Dirichlet rows of the given positive widths: (n, entries)."""
    if (concentration < 1.0).any():
        return normalise_log_rows(log_gammas(concentration, n, rng), widths)
    # no row of these can vanish
    draws: FloatArray = rng.standard_gamma(concentration, (n, concentration.size))
    linear.normalise_rows(draws, widths)
    return draws


def normalise_log_rows(logs: FloatArray, widths: IntArray) -> FloatArray:
    """Turn log gammas (n, entries) of consecutive rows of positive widths into probabilities."""
    starts = np.concatenate(([0], np.cumsum(widths)[:-1]))
    logs = logs - np.repeat(np.maximum.reduceat(logs, starts, axis=1), widths, axis=1)
    np.exp(logs, out=logs)
    logs /= np.repeat(np.add.reduceat(logs, starts, axis=1), widths, axis=1)
    return logs
