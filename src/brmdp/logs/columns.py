"""Columns of a log as distinct values and codes, and what these values mean.

A column is kept as its distinct values and, for each line, the number of its value. Labels, numbers
and times are then worked out once per distinct value, whatever the number of lines.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brmdp._extras import optional
from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.errors import InvalidInputError
from brmdp.logs.spaces import LONGEST_LABEL, first_twice, number_in, number_label, shown

__all__ = ["Column", "Labels", "encoded", "joined", "look_alikes"]

SPACE = " \t\n\r\v\f\u00a0\ufeff"
"""Removed around text: white space, the space that does not break, and the byte order mark."""

LARGEST_EXACT = 2**53
"""Integers up to here are exact as floating-point numbers."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Distinct labels, and the number of the label of each line; -1 where it is missing."""

    names: tuple[str, ...]
    codes: IntArray


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a log.

    Attributes
    ----------
    name : str
    values : pyarrow array
        Distinct values in their order of appearance, none missing: text without space around,
        integers, floats, truth values, dates or timestamps.
    codes : (n,) integers
        Number of the value of each line; -1 where it is missing.
    """

    name: str
    values: Any
    codes: IntArray

    @property
    def is_text(self) -> bool:
        """Whether the values are text."""
        return bool(_types().is_string(self.values.type))

    def value(self, line: int) -> str:
        """The value of a line, for a message."""
        code = int(self.codes[line])
        return "missing" if code < 0 else self.shown_value(code)

    def shown_value(self, code: int) -> str:
        """A distinct value, for a message."""
        value = self.values[code].as_py()
        return shown(value) if isinstance(value, str) else shown(value_label(value))

    def labels(self) -> Labels:
        """The values as labels; numbers in one form each."""
        texts = self.values.to_pylist()
        if not self.is_text:
            texts = [value_label(value) for value in texts]
        numbered: dict[str, int] = {}
        places = [numbered.setdefault(text, len(numbered)) for text in texts]
        for text in numbered:
            if len(text) > LONGEST_LABEL:
                raise InvalidInputError(
                    f"labels in column {shown(self.name)} must have at most {LONGEST_LABEL} "
                    f"characters; got {len(text)}, beginning {shown(text[:30])}. Is a quotation "
                    "mark left open, or is it the wrong column?"
                )
            if "\0" in text:
                raise InvalidInputError(
                    f"labels in column {shown(self.name)} must not have the character NUL; got "
                    f"{shown(text)}"
                )
        return Labels(tuple(numbered), self.over_lines(np.array(places, dtype=np.int64), -1))

    def numbers(self, decimal: str) -> FloatArray:
        """(values,) the numbers that the values are; NaN for those that are no finite number."""
        kind, types = self.values.type, _types()
        if self.is_text:
            return _numbers_in(self.values, decimal)
        if types.is_integer(kind) or types.is_floating(kind):
            numbers: FloatArray = self.values.to_numpy(zero_copy_only=False).astype(np.float64)
            numbers[~np.isfinite(numbers)] = np.nan
            return numbers
        return np.full(len(self.values), np.nan)

    def whole_numbers(self, valid: BoolArray) -> IntArray | None:
        """(values,) exact integers, zero where not valid; None unless they fit into 64 bits."""
        pa, pc = optional("pyarrow", "decide"), optional("pyarrow.compute", "decide")
        values = self.values
        if self.is_text:
            whole = pc.match_substring_regex(values, r"^[+-]?0*[0-9]{1,19}$")
            if (valid & ~whole.to_numpy(zero_copy_only=False)).any():
                return None
            values = pc.replace_substring_regex(pc.if_else(whole, values, "0"), r"^\+", "")
        elif not _types().is_integer(values.type):
            return None
        try:
            exact: IntArray = pc.cast(values, pa.int64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            return None
        return exact

    def over_lines(self, per_value: NDArray[Any], missing: Any) -> NDArray[Any]:
        """One entry per line, from one per distinct value and one for missing values."""
        return np.append(per_value, np.array([missing], dtype=per_value.dtype))[self.codes]

    def digest(self) -> bytes:
        """SHA-256 of name and content, the same for every kind of table."""
        result = hashlib.sha256(repr(self.name).encode("utf-8", "backslashreplace"))
        for part in self._content():
            result.update(len(part).to_bytes(8, "little") + part)
        result.update(self.codes.astype("<i8").tobytes())
        return result.digest()

    def _content(self) -> Iterator[bytes]:
        values = self.values
        if _types().is_integer(values.type) or _types().is_floating(values.type):
            numbers = values.to_numpy(zero_copy_only=False)
            if numbers.dtype.kind == "f" and (np.abs(numbers) < LARGEST_EXACT).all():
                whole = numbers.astype(np.int64)
                # a table with missing values may have floats for what others have integers
                numbers = whole if (whole == numbers).all() else numbers
            yield numbers.dtype.kind.encode()
            yield numbers.astype("<f8" if numbers.dtype.kind == "f" else "<i8").tobytes()
            return
        texts = [
            text if isinstance(text, str) else value_label(text) for text in values.to_pylist()
        ]
        yield np.array([len(text) for text in texts], dtype="<i8").tobytes()
        yield "".join(texts).encode("utf-8", "backslashreplace")


def _types() -> Any:
    return optional("pyarrow.types", "decide")


def value_label(value: Any, *, exact: bool = False) -> str:
    """A value of a table as text: one form for each number, ISO for dates."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | np.floating) and exact and not float(value).is_integer():
        return repr(float(value))
    if isinstance(value, int | float | np.integer | np.floating):
        return number_label(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def encoded(name: str, array: Any, missing: frozenset[str]) -> Column:
    """A column from an Arrow array, with missing values recognised."""
    pa, pc = optional("pyarrow", "decide"), optional("pyarrow.compute", "decide")
    types = _types()
    try:
        if types.is_dictionary(array.type):
            array = pc.cast(array, array.type.value_type)
        kind = array.type
        if types.is_large_string(kind) or str(kind) == "string_view":
            array = pc.cast(array, pa.string())
        elif types.is_decimal(kind):
            array = pc.cast(array, pa.float64())
        elif types.is_null(kind):
            array = pc.cast(array, pa.string())
        elif not (
            types.is_string(kind)
            or types.is_boolean(kind)
            or types.is_integer(kind)
            or types.is_floating(kind)
            or types.is_date(kind)
            or types.is_timestamp(kind)
        ):
            raise InvalidInputError(
                f"column {shown(name)} must hold text, numbers, truth values, dates or timestamps; "
                f"got {shown(str(kind))}"
            )
        values, codes = _dictionary(array)
        if types.is_string(values.type):
            return _without_missing(name, values, codes, missing)
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"column {shown(name)} must be readable; Arrow says: {shown(str(error), 200)}"
        ) from None
    if types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        if numbers.dtype != np.float64:
            # 0.1 in single precision is meant as 0.1
            numbers = numbers.astype(np.str_).astype(np.float64)
        present = ~np.isnan(numbers)
        places = np.where(present, np.cumsum(present) - 1, -1)
        return Column(name, pa.array(numbers[present]), np.append(places, -1)[codes])
    return Column(name, values, codes)


def _dictionary(array: Any) -> tuple[Any, IntArray]:
    """Distinct values in their order of appearance, and their numbers; -1 for nulls."""
    pa, pc = optional("pyarrow", "decide"), optional("pyarrow.compute", "decide")
    found = pc.dictionary_encode(array)
    parts = found.chunks if isinstance(found, pa.ChunkedArray) else [found]
    if not parts:
        return pa.array([], type=array.type), np.zeros(0, dtype=np.int32)
    # Arrow gives all parts the same dictionary; to compare addresses is cheap, to unify is not
    buffers = [part.dictionary.buffers()[-1] for part in parts]
    if len({0 if buffer is None else buffer.address for buffer in buffers}) > 1:
        parts = found.unify_dictionaries().chunks
    codes = [pc.fill_null(part.indices, -1).to_numpy(zero_copy_only=False) for part in parts]
    return parts[0].dictionary, np.concatenate(codes)


def _without_missing(name: str, values: Any, codes: Any, missing: frozenset[str]) -> Column:
    pa, pc = optional("pyarrow", "decide"), optional("pyarrow.compute", "decide")
    trimmed = pc.utf8_trim(values, characters=SPACE)
    absent = pc.is_in(trimmed, value_set=pa.array(sorted(missing), type=pa.string()))
    if not pc.any(absent).as_py() and trimmed.equals(values):
        return Column(name, values, codes)
    kept = pc.if_else(absent, pa.scalar(None, pa.string()), trimmed)
    distinct, places = _dictionary(kept)
    return Column(name, distinct, np.append(places, places.dtype.type(-1))[codes])


def _numbers_in(texts: Any, decimal: str) -> FloatArray:
    pa, pc = optional("pyarrow", "decide"), optional("pyarrow.compute", "decide")
    mark = "\\" + decimal
    pattern = rf"^[+-]?([0-9]+{mark}?[0-9]*|{mark}[0-9]+)([eE][+-]?[0-9]+)?$"
    valid = pc.match_substring_regex(texts, pattern)
    plain = pc.replace_substring(texts, decimal, ".") if decimal != "." else texts
    numbers: FloatArray = (
        pc.cast(pc.if_else(valid, plain, pa.scalar(None, pa.string())), pa.float64())
        .to_numpy(zero_copy_only=False)
        .astype(np.float64)
    )
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def joined(parts: Sequence[Labels], between: str, role: str) -> Labels:
    """Labels of several columns together; a line that lacks one of them lacks the whole."""
    if len(parts) == 1:
        return parts[0]
    pa = optional("pyarrow", "decide")
    codes, names = parts[0].codes.astype(np.int64), list(parts[0].names)
    for part in parts[1:]:
        width = max(len(part.names), 1)
        lacking = (codes < 0) | (part.codes < 0)
        both = np.where(lacking, -1, codes * width + part.codes)
        found, places = _dictionary(pa.array(both))
        pairs = found.to_numpy(zero_copy_only=False)
        present = pairs >= 0
        ranks = np.where(present, np.cumsum(present) - 1, -1)
        names = [
            f"{names[pair // width]}{between}{part.names[pair % width]}"
            for pair in pairs[present].tolist()
        ]
        codes = ranks[places] if ranks.size else places.astype(np.int64)
    twice = first_twice(names)
    if twice is not None:
        raise InvalidInputError(
            f"{role} must have labels that stay distinct when joined by {between!r}; got "
            f"{shown(twice)} for two of them"
        )
    return Labels(tuple(names), codes)


def look_alikes(names: Sequence[str]) -> tuple[str, str, str] | None:
    """Two labels that a reader may take for one, and why; None if there are none."""
    numbers: dict[float, str] = {}
    forms: dict[str, str] = {}
    for name in names:
        number = number_in(name)
        if not math.isnan(number):
            other = numbers.setdefault(number, name)
            if other != name:
                return other, name, "are the same number"
        folded = unicodedata.normalize("NFKC", name).casefold()
        form = "".join(c for c in folded if c.isprintable() and not c.isspace())
        other = forms.setdefault(form, name)
        if other != name:
            return other, name, "look alike"
    return None


def plain_object(value: Any) -> str | None:
    """An entry of a column of mixed kinds as text; None if it is missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, float | np.floating) and math.isnan(value):
        return None
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, str):
        return value
    if isinstance(
        value,
        bool | np.bool_ | int | float | np.integer | np.floating | datetime.date | datetime.time,
    ):
        return value_label(value, exact=True)
    raise InvalidInputError(
        f"entries must be text, numbers, truth values, dates or timestamps; got "
        f"{type(value).__name__}"
    )
