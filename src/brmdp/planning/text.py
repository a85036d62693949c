"""Results in words and numbers that fit a screen, whatever the number of states."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from brmdp._validation import FloatArray

__all__ = ["call_like", "extent", "percent", "wrapped"]

WIDTH = 100
FEW = 8
"""Up to this many numbers are listed one by one."""


def wrapped(sentences: str) -> str:
    """A paragraph broken into lines of at most 100 columns."""
    return textwrap.fill(sentences, WIDTH, break_long_words=False, break_on_hyphens=False)


def call_like(name: str, parts: Iterable[str]) -> str:
    """``name(part, part, …)``, broken between parts into lines of at most 100 columns."""
    lines = [f"{name}("]
    for k, part in enumerate(parts):
        text = part if k == 0 else f", {part}"
        if k > 0 and len(lines[-1]) + len(text) + 1 > WIDTH:
            lines[-1] += ","
            lines.append(" " * (len(name) + 1) + part)
        else:
            lines[-1] += text
    return "\n".join(lines) + ")"


def extent(values: FloatArray) -> str:
    """All numbers if they are few, else the smallest and the largest, each with its state."""
    if values.size <= FEW:
        return ", ".join(f"{value:.4g}" for value in values)
    low, high = int(values.argmin()), int(values.argmax())
    return f"from {values[low]:.4g} (state {low}) to {values[high]:.4g} (state {high})"


def percent(share: float) -> str:
    """A share as a percentage with three digits."""
    return f"{100.0 * share:.3g} %"
