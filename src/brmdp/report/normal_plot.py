"""Normal quantile plots of samples."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from scipy.special import ndtri

from brmdp._validation import FloatArray, IntArray
from brmdp.report.style import CurveStyle

__all__ = ["draw_against_normal", "spread_ranks"]

RANKS = 45
"""Number of points in a plot."""


def spread_ranks(size: int) -> IntArray:
    """Ranks of a sample, counted from 0 and evenly spread over the normal scale.

    The first and the last rank are among them.
    """
    levels = (np.arange(size) + 0.5) / size
    wanted = np.linspace(ndtri(levels[0]), ndtri(levels[-1]), RANKS)
    return np.unique(np.searchsorted(ndtri(levels), wanted - 1e-9).clip(0, size - 1))


def draw_against_normal(axes: Axes, sample: FloatArray, style: CurveStyle, label: str) -> None:
    """Plot order statistics of ``sample`` against the normal quantiles of their ranks."""
    kept = spread_ranks(sample.size)
    axes.plot(
        ndtri((kept + 0.5) / sample.size),
        np.sort(sample, axis=None)[kept],
        color=style.colour,
        linestyle="",
        marker=style.marker,
        markersize=3.5,
        markerfacecolor="none",
        label=label,
    )
