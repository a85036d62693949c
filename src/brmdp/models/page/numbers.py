"""Numbers as they stand on the page: sensible digits, and bounds rounded in the safe direction."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Literal, TypeAlias

from brmdp.models.results import Amount

__all__ = [
    "Direction",
    "amount",
    "count",
    "decimals_for",
    "exact_percent",
    "level",
    "number",
    "percent",
    "plural",
    "probability",
]

Direction: TypeAlias = Literal["nearest", "down", "up"]

MOST_DECIMALS = 8
ROUNDING = 1e-9
LARGEST = 1e9
UNKNOWN = "unknown"
SPACE = "\u00a0"
_ROUNDING = {"nearest": ROUND_HALF_EVEN, "down": ROUND_FLOOR, "up": ROUND_CEILING}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def decimals_for(*amounts: Amount) -> int:
    """Decimals that show two significant digits of the narrowest half interval.

    Without a usable interval, the largest mean is shown with four significant digits. An interval
    that is no wider than the rounding of its mean is none.
    """
    widths = [((each.high - each.low) / 2, ROUNDING * abs(each.mean)) for each in amounts]
    usable = [width for width, least in widths if math.isfinite(width) and width > least]
    if usable:
        return _decimals(min(usable), 2)
    sizes = [abs(each.mean) for each in amounts if math.isfinite(each.mean)]
    return _decimals(max(sizes, default=1.0), 4)


def _decimals(size: float, digits: int) -> int:
    if size <= 0:
        return 0
    # the digits of what is shown: 9.9996 has two before the point
    size = float(f"{size:.{digits - 1}e}")
    return min(max(digits - 1 - math.floor(math.log10(size)), 0), MOST_DECIMALS)


def number(
    value: float | None, decimals: int | None = None, direction: Direction = "nearest"
) -> str:
    """A number in words of digits, such as "−1,234.5"; four significant digits if none are asked.

    Parameters
    ----------
    value : float or None
    decimals : int, optional
    direction : "nearest", "down" or "up"
        An upper bound is rounded up, a lower one down.

    Returns
    -------
    str
    """
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    value = float(value)
    size = abs(value)
    if size >= LARGEST or 0 < size < 10**-MOST_DECIMALS:
        return _scientific(value, direction)
    if decimals is None:
        exact = value == round(value) and size < 1e6
        decimals = 0 if exact else _decimals(size, 4)
    step = Decimal(1).scaleb(-decimals)
    rounded = Decimal(repr(value)).quantize(step, rounding=_ROUNDING[direction])
    return _signed(f"{abs(rounded):,.{decimals}f}", rounded < 0)


def _scientific(value: float, direction: Direction) -> str:
    exact = Decimal(repr(value))
    exponent = exact.adjusted()
    mantissa = exact.scaleb(-exponent).quantize(Decimal("0.001"), rounding=_ROUNDING[direction])
    power = str(exponent).translate(_SUPERSCRIPTS)
    return _signed(f"{abs(mantissa)}×10{power}", mantissa < 0)


def _signed(digits: str, negative: bool) -> str:
    return f"−{digits}" if negative else digits


def amount(value: Amount, decimals: int | None = None) -> tuple[str, str]:
    """The mean of an amount, and its interval as "low to high", with ends rounded outwards."""
    places = decimals_for(value) if decimals is None else decimals
    if not (math.isfinite(value.low) and math.isfinite(value.high)):
        return number(value.mean, places), ""
    interval = f"{number(value.low, places, 'down')} to {number(value.high, places, 'up')}"
    return number(value.mean, places), interval


def count(value: float) -> str:
    """A whole number with separators."""
    return f"{int(value):,}"


def plural(value: float, word: str, several: str | None = None) -> str:
    """A whole number and its noun, such as "1 unit" or "2 units"."""
    return f"{count(value)} {word if int(value) == 1 else several or word + 's'}"


def percent(
    share: float | None, direction: Direction = "nearest", decimals: int | None = None
) -> str:
    """A share in percent; one that is neither 0 nor 1 never reads as 0 or 100 %."""
    if share is None or not math.isfinite(share):
        return UNKNOWN
    share = min(max(float(share), 0.0), 1.0)
    if share in (0.0, 1.0):
        return f"{int(100 * share)}{SPACE}%"
    if share < 1e-4:
        return f"under 0.01{SPACE}%"
    if share > 0.999 and direction != "down":
        return f"over 99.9{SPACE}%"
    if decimals is None:
        decimals = 1 if share >= 0.01 else 2
    text = number(round(100 * share, 10), decimals, direction)
    if decimals and float(text) == round(float(text)):
        text = str(round(float(text)))
    return f"{text}{SPACE}%"


def probability(share: float, low: float, high: float) -> str:
    """A probability estimated from draws; if all draws agree, only the end of its interval."""
    if share == 1.0 and low < 1.0:
        return f"over {percent(low, 'down')}"
    if share == 0.0 and high > 0.0:
        return f"under {percent(high, 'up')}"
    return percent(share)


def exact_percent(share: float) -> str:
    """A stated share, such as a confidence, with all its digits."""
    return f"{100 * share:.10g}{SPACE}%"


def level(value: float) -> str:
    """A quantile level, short and exact enough to tell neighbours apart."""
    return UNKNOWN if not math.isfinite(value) else f"{value:.3g}"
