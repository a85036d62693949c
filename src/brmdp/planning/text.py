"""Results in words and numbers that fit a screen, whatever the number of states."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable

from brmdp._validation import FloatArray

__all__ = ["at_least", "at_most", "call_like", "extent", "percent", "wrapped"]

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


def at_least(value: float, digits: int = 4) -> str:
    """A number with so many digits, rounded down: a lower bound stays one."""
    text = f"{value:.{digits}g}"
    if not float(text) > value:
        return text
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    lower = f"{float(text) - unit:.{digits}g}"
    # next to a power of ten one digit less may be a tenth of it
    return lower if float(lower) <= value else f"{value:.17g}"


def at_most(value: float, digits: int = 4) -> str:
    """A number with so many digits, rounded up: an upper bound stays one."""
    text = at_least(-value, digits)
    return text[1:] if text.startswith("-") else text if float(text) == 0.0 else f"-{text}"


def extent(values: FloatArray, *, bounds: bool = False) -> str:
    """All numbers if they are few, else the smallest and the largest, each with its state.

    Lower ``bounds`` are rounded down.
    """

    def shown(value: float) -> str:
        return at_least(value) if bounds else f"{value:.4g}"

    if values.size <= FEW:
        return ", ".join(shown(float(value)) for value in values)
    low, high = int(values.argmin()), int(values.argmax())
    return f"from {shown(values[low])} (state {low}) to {shown(values[high])} (state {high})"


def percent(share: float) -> str:
    """A share as a percentage with three digits."""
    return f"{100.0 * share:.3g} %"
