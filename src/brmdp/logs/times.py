"""Times of a log: numbers or dates, and what one step of time is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from brmdp._extras import optional
from brmdp._validation import BoolArray, FloatArray, IntArray, as_positive_number
from brmdp.errors import InvalidInputError
from brmdp.logs.columns import Column
from brmdp.logs.spaces import shown

__all__ = ["Clock", "Moments", "clock_of", "moments_of", "number_of_steps"]

ISO = (
    r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]{1,9}))?)?"
    r" ?(?P<zone>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?)?$"
)
WORDS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
MONTHS = {"month": 1, "quarter": 3, "year": 12}
LARGEST = 2**62
LONGEST_STEP = 1_000_000


@dataclass(frozen=True, eq=False)
class Moments:
    """What the distinct values of a time column mean; entries that mean nothing are zero.

    Attributes
    ----------
    dates : bool
        Whether they are dates or timestamps; otherwise numbers.
    valid : (values,) booleans
    instant : (values,) integers or floats
        Numbers as they are; for dates, ticks since 1970, in universal time where zones are given.
    wall : (values,) integers
        For dates, ticks by the clock and calendar on the wall, as written; else empty.
    per_second : int
        Ticks of a second.
    notes : tuple of str
    """

    dates: bool
    valid: BoolArray
    instant: Any
    wall: IntArray
    per_second: int
    notes: tuple[str, ...] = ()


def moments_of(column: Column, decimal: str) -> Moments:
    """Read a time column: dates or numbers, whichever has more lines."""
    types = optional("pyarrow.types", "decide")
    kind = column.values.type
    if types.is_date(kind) or types.is_timestamp(kind):
        return _of_arrow_dates(column)
    numbers = column.numbers(decimal)
    if not column.is_text:
        return _of_numbers(column, numbers)
    dates, zoned = _of_iso_texts(column.values)
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.values))
    as_dates, as_numbers = counts[dates.valid].sum(), counts[np.isfinite(numbers)].sum()
    if as_dates < as_numbers or not as_dates:
        return _of_numbers(column, numbers)
    stamped = dates.valid & zoned
    if stamped.any() and (dates.valid & ~zoned).any():
        with_zone, without = int(np.argmax(stamped)), int(np.argmax(dates.valid & ~zoned))
        raise InvalidInputError(
            f"time must have a time zone everywhere or nowhere; column {shown(column.name)} has "
            f"{column.shown_value(with_zone)} and {column.shown_value(without)}"
        )
    return dates


def _of_numbers(column: Column, numbers: FloatArray) -> Moments:
    valid = np.isfinite(numbers)
    whole = column.whole_numbers(valid)
    if whole is not None and whole.size:
        if int(whole.max()) - int(whole.min()) < LARGEST:
            notes = _note_on_written_dates(column.name, whole[valid])
            return Moments(False, valid, whole, np.zeros(0, dtype=np.int64), 1, notes)
    elif valid.any() and (numbers[valid] == np.floor(numbers[valid])).all():
        largest = np.abs(numbers[valid]).max()
        if largest < 2**53:
            whole = np.where(valid, numbers, 0.0).astype(np.int64)
            return Moments(False, valid, whole, np.zeros(0, dtype=np.int64), 1)
    large = np.abs(numbers[valid]) >= 2**53
    if np.unique(numbers[valid][large]).size < large.sum():
        raise InvalidInputError(
            f"time must be numbers that can be told apart in double precision, or integers of 64 "
            f"bits; column {shown(column.name)} has several near {numbers[valid][large][0]:.6g}"
        )
    return Moments(False, valid, np.where(valid, numbers, 0.0), np.zeros(0, dtype=np.int64), 1)


def _note_on_written_dates(name: str, whole: IntArray) -> tuple[str, ...]:
    """Dates without hyphens are numbers: 20190131 and 20190201 are 70 apart."""
    for form, rest, example in (("YYYYMMDD", 10_000, "2019-01-31"), ("YYYYMM", 100, "2019-01")):
        year, inner = np.divmod(whole, rest)
        month, day = np.divmod(inner, 100) if rest > 100 else (inner, np.ones_like(inner))
        likely = (year >= 1900) & (year <= 2100) & (month >= 1) & (month <= 12)
        if whole.size > 1 and (likely & (day >= 1) & (day <= 31)).all():
            return (
                f"The numbers in {shown(name)} look like dates ({form}) but count as numbers; "
                f"write them as {example} to have them read as dates.",
            )
    return ()


def _of_arrow_dates(column: Column) -> Moments:
    pa, pc = optional("pyarrow", "decide"), optional("pyarrow.compute", "decide")
    values, zone = column.values, getattr(column.values.type, "tz", None)
    fine = getattr(values.type, "unit", "") == "ns"
    nanoseconds = values.cast(pa.int64()).to_numpy(zero_copy_only=False) if fine else None
    unit, per_second = "us", 1_000_000
    if nanoseconds is not None and (nanoseconds % 1000).any():
        unit, per_second = "ns", 1_000_000_000
    local = pc.local_timestamp(values) if zone else values

    def ticks(stamps: Any) -> IntArray:
        plain = pc.cast(stamps, pa.timestamp(unit, tz=getattr(stamps.type, "tz", None)))
        found: IntArray = plain.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return found

    try:
        instant, wall = ticks(values), ticks(local)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(
            f"time must lie within the range of timestamps; column {shown(column.name)}: "
            f"{shown(str(error))}"
        ) from None
    return Moments(True, np.ones(len(values), dtype=bool), instant, wall, per_second)


def _of_iso_texts(texts: Any) -> tuple[Moments, BoolArray]:
    """Dates in ISO form, and which of them have a time zone."""
    pa, pc = optional("pyarrow", "decide"), optional("pyarrow.compute", "decide")
    n = len(texts)
    fields = pc.extract_regex(texts, ISO)
    matched = pc.is_valid(fields).to_numpy(zero_copy_only=False)

    def field(name: str, default: str) -> Any:
        found = pc.fill_null(pc.struct_field(fields, name), default)
        return pc.if_else(pc.equal(found, ""), default, found)

    def number(name: str, default: str) -> IntArray:
        whole: IntArray = pc.cast(field(name, default), pa.int64()).to_numpy(zero_copy_only=False)
        return whole

    year, month, day = number("year", "1970"), number("month", "01"), number("day", "01")
    hour, minute, second = number("hour", "00"), number("minute", "00"), number("second", "00")
    padded = pc.utf8_rpad(field("part", "0"), 9, "0")
    part = pc.cast(padded, pa.int64()).to_numpy(zero_copy_only=False)
    zone = field("zone", "none")
    zoned = pc.not_equal(zone, "none").to_numpy(zero_copy_only=False)
    plain = pc.replace_substring(pc.replace_substring_regex(zone, "^(none|[Zz])$", "+00"), ":", "")
    east = pc.cast(pc.utf8_slice_codeunits(plain, 1, 3), pa.int64()).to_numpy(zero_copy_only=False)
    rest = pc.utf8_slice_codeunits(plain, 3, 5)
    rest = pc.cast(pc.if_else(pc.equal(rest, ""), "0", rest), pa.int64())
    more = rest.to_numpy(zero_copy_only=False)
    west = pc.starts_with(plain, "-").to_numpy(zero_copy_only=False)

    months = (year - 1970) * 12 + np.clip(month, 1, 12) - 1
    first = _first_days(months)
    valid = matched & (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    valid &= (day <= _first_days(months + 1) - first) & (hour < 24) & (minute < 60) & (second < 60)
    valid &= (east < 24) & (more < 60)
    seconds = (first + day - 1) * 86400 + hour * 3600 + minute * 60 + second
    offset = np.where(west, -1, 1) * (east * 3600 + more * 60)
    # nanoseconds since 1970 fit into 64 bits for three centuries only
    fine = bool((part[valid] % 1000).any())
    per_second = 1_000_000_000 if fine else 1_000_000
    if fine and n and np.abs(seconds[valid]).max() > 9_000_000_000:
        valid &= part % 1000 == 0
        per_second = 1_000_000
    ticks = part // (1_000_000_000 // per_second)
    wall = np.where(valid, seconds, 0) * per_second + np.where(valid, ticks, 0)
    instant = wall - np.where(valid, offset, 0) * per_second
    return Moments(True, valid, instant, wall, per_second), zoned


def _first_days(months: IntArray) -> IntArray:
    """Days from 1970 to the first of each month, counted from January 1970."""
    days: IntArray = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return days


@dataclass(frozen=True, eq=False)
class Clock:
    """What one step of time is.

    Attributes
    ----------
    index : (values,) integers or floats
        Of each distinct time, in the unit in which steps are counted.
    step : int or float
        One step, in that unit.
    words : str
        Such as "1 month".
    """

    index: Any
    step: float
    words: str

    def one_step(self, difference: Any) -> BoolArray:
        """Whether differences between indices are one step."""
        if self.index.dtype.kind == "i" and float(self.step).is_integer():
            return np.asarray(difference == int(self.step))
        size = float(np.abs(self.index).max()) if self.index.size else 0.0
        allowed = 1e-9 * self.step + 4.0 * np.spacing(size)
        return np.asarray(np.abs(difference - self.step) <= allowed)


def clock_of(
    column: Column,
    moments: Moments,
    step: float | str | None,
    earlier: IntArray,
    later: IntArray,
) -> Clock | None:
    """The clock for a given step, or for the commonest difference; None if there is none.

    ``earlier`` and ``later`` number the times of consecutive lines of units.
    """
    if step is None:
        return _commonest(moments, earlier, later)
    if not moments.dates:
        if isinstance(step, str):
            raise InvalidInputError(
                f"step must be a number, since column {shown(column.name)} holds numbers; got "
                f"{shown(step)}"
            )
        length = as_positive_number(step, "step")
        _check_resolution(moments, length)
        return Clock(moments.instant, length, f"{length:.12g}")
    if not isinstance(step, str):
        raise InvalidInputError(
            f"step must be one of {', '.join(WORDS)}, or such as '2 weeks', since column "
            f"{shown(column.name)} holds dates; got {shown(step)}"
        )
    count, word = number_of_steps(step)
    return Clock(_calendar(moments, word), count, _counted(count, word))


def number_of_steps(step: str) -> tuple[int, str]:
    """Split "2 weeks" into 2 and "week"."""
    found = re.fullmatch(r"\s*(?:([0-9]{1,7})\s+)?([a-z]+?)s?\s*", step.lower())
    if not found or found[2] not in WORDS or not 1 <= int(found[1] or 1) <= LONGEST_STEP:
        raise InvalidInputError(
            f"step must be a number or one of {', '.join(WORDS)}, or such as '2 weeks'; got "
            f"{shown(step)}"
        )
    return int(found[1] or 1), found[2]


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _check_resolution(moments: Moments, step: float) -> None:
    if moments.instant.dtype.kind == "f" and moments.instant.size:
        spacing = float(np.spacing(np.abs(moments.instant).max()))
        if spacing > 1e-3 * step:
            raise InvalidInputError(
                f"time must be precise enough to tell steps of {step:.6g} apart; got numbers up to "
                f"{np.abs(moments.instant).max():.6g}, which are {spacing:.2g} apart"
            )


def _calendar(moments: Moments, word: str) -> IntArray:
    """Number of the second, minute, …, year of each date.

    Seconds, minutes and hours are those of universal time where zones are given, so that a change
    of the clocks does not matter; days and longer are those of the calendar on the wall.
    """
    if word in ("second", "minute", "hour"):
        return np.asarray(moments.instant // (SECONDS[word] * moments.per_second))
    days = moments.wall // (86400 * moments.per_second)
    if word == "day":
        return days
    if word == "week":
        return (days + 3) // 7  # 1 January 1970 was a Thursday
    months: IntArray = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months // MONTHS[word]


def _commonest(moments: Moments, earlier: IntArray, later: IntArray) -> Clock | None:
    candidates = [Clock(moments.instant, 1.0, "")]
    if moments.dates:
        whole_days = not (moments.instant[moments.valid] % (86400 * moments.per_second)).any()
        plain = whole_days and np.array_equal(moments.instant, moments.wall)
        units = ("day", "month") if plain else ("hour", "day", "month")
        candidates = [] if plain else candidates
        candidates += [Clock(_calendar(moments, unit), 1, unit) for unit in units]
    best: Clock | None = None
    best_matches = np.zeros(0, dtype=bool)
    for candidate in candidates:
        difference = candidate.index[later] - candidate.index[earlier]
        if not (difference > 0).any():
            continue
        clock = Clock(candidate.index, _commonest_of(difference), candidate.words)
        matches = clock.one_step(difference)
        better, same = matches.sum() - best_matches.sum(), False
        if better == 0 and candidate.words == "month":
            same = _same_day_of_month(moments, earlier[matches], later[matches])
        if best is None or better > 0 or same:
            best, best_matches = clock, matches
    if best is None:
        return None
    if not moments.dates:
        _check_resolution(moments, best.step)
    return Clock(best.index, best.step, _in_words(best, moments))


def _commonest_of(difference: Any) -> float:
    positive = difference[difference > 0]
    if positive.dtype.kind == "i":
        low, high = int(positive.min()), int(positive.max())
        if high - low < max(10 * positive.size, 1000):
            return low + int(np.argmax(np.bincount(positive - low)))
        found, counts = np.unique(positive, return_counts=True)
        return int(found[np.argmax(counts)])
    # rounding must not split equal differences
    mantissa, exponent = np.frexp(positive)
    rounded = np.ldexp(np.round(mantissa * 2.0**30), exponent - 30)
    found, counts = np.unique(rounded, return_counts=True)
    return float(f"{found[np.argmax(counts)]:.8g}")


def _same_day_of_month(moments: Moments, earlier: IntArray, later: IntArray) -> bool:
    days = moments.wall // (86400 * moments.per_second)
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    day = days - _first_days(months)
    last = days + 1 == _first_days(months + 1)
    return bool(((day[earlier] == day[later]) | (last[earlier] & last[later])).all())


def _in_words(clock: Clock, moments: Moments) -> str:
    if not moments.dates:
        return f"{clock.step:.12g}"
    if clock.words:
        return _counted(int(clock.step), clock.words)
    ticks = int(clock.step)
    for word in ("day", "hour", "minute", "second"):
        if ticks % (SECONDS[word] * moments.per_second) == 0:
            return _counted(ticks // (SECONDS[word] * moments.per_second), word)
    return f"{ticks / moments.per_second:.12g} seconds"
