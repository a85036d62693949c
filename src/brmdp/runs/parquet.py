"""Reading Parquet files from untrusted sources, with limits on the memory they take.

A file of a few megabytes may hold billions of equal numbers, or one long text many times over, and
what it states about its own size need not be true. So sizes are checked before anything is
unpacked: the number of rows must be the expected one, columns must be flat or known, and the sizes,
numbers of values and encodings are taken from the header of every page, which is what the reader
goes by.
"""

from __future__ import annotations

from typing import Any

from brmdp._extras import optional
from brmdp.errors import CorruptFileError

__all__ = ["LARGEST", "metadata_of", "read_within_limits", "require_within_limits"]

LARGEST = 2**30
"""Largest size of a file, and of its content in memory, in bytes."""

LARGEST_HEADER = 2**24
"""Largest size of a text in the file's description of itself, in bytes."""

MAX_PARTS = 10**6
"""Largest number of entries of a list in the description."""

WRITER = "parquet-cpp"


def metadata_of(data: bytes) -> dict[bytes, bytes]:
    """The metadata of a file; the rest is not read."""
    found: dict[bytes, bytes] = dict(_opened(data).metadata.metadata or {})
    return found


def read_within_limits(data: bytes, rows: int | None, schema: Any) -> Any:
    """Read the table in a file.

    Parameters
    ----------
    data : bytes
        Content of the file.
    rows : int or None
        Number of rows that it must have; None for any number within the limits.
    schema : pyarrow.Schema or None
        Columns that it must have; None for any columns of numbers, booleans or text.

    Raises
    ------
    CorruptFileError
        If the file is something else, or too large.
    pyarrow.ArrowException, OSError
        If the file is damaged.
    """
    pa = optional("pyarrow")
    file = _opened(data)
    # in files of some other writers, pyarrow reads beyond the end of a column
    if not str(file.metadata.created_by).startswith(WRITER):
        raise CorruptFileError(
            f"it must have been written by Arrow; got {str(file.metadata.created_by)[:40]!r}"
        )
    columns = file.schema_arrow.remove_metadata()
    if schema is not None and not columns.equals(schema):
        raise CorruptFileError(
            f"it must have the columns {schema.names} with their types; got {columns.names}"
        )
    flat = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_string)
    for field in columns:
        if schema is None and not any(suits(field.type) for suits in flat):
            raise CorruptFileError(
                f"column {field.name} must hold numbers, booleans or text; got {field.type}"
            )
    _check_sizes(data, rows)
    # a text may be stored once for many rows: add up sizes before it is repeated
    texts = [field.name for field in columns if pa.types.is_string(field.type)]
    # with threads, one of Arrow's could drop the last reference to ``data`` while Python is ending
    table = _opened(data, read_dictionary=texts).read(use_threads=False)
    for name in texts:
        _check_texts(table[name])
        position = table.schema.get_field_index(name)
        table = table.set_column(position, columns.field(name), table[name].cast(pa.string()))
    return table.replace_schema_metadata(None)


def require_within_limits(data: bytes) -> None:
    """Check, before a file is written, that it could be read again.

    Raises
    ------
    CorruptFileError
        If it is too large.
    """
    _check_sizes(data, None)


def _opened(data: bytes, **options: Any) -> Any:
    return optional("pyarrow.parquet").ParquetFile(
        optional("pyarrow").BufferReader(data),
        thrift_string_size_limit=LARGEST_HEADER,
        thrift_container_size_limit=MAX_PARTS,
        **options,
    )


def _check_sizes(data: bytes, rows: int | None) -> None:
    """Add up the sizes that the file states, and compare them with the limits.

    The description is read here rather than by pyarrow, which crashes on some damaged ones.
    """
    footer = _footer(data)
    wanted = _integer(footer, NUMBER_OF_ROWS) if rows is None else rows
    found = needed = 0
    for group in _structs(footer, ROW_GROUPS):
        height = _integer(group, ROWS_OF_GROUP)
        found += height
        for column in _structs(group, COLUMNS):
            chunk = column.get(CHUNK)
            if not isinstance(chunk, dict):
                raise CorruptFileError("the description of a column is missing")
            begin = _integer(chunk, FIRST_PAGE)
            if chunk.get(DICTIONARY_PAGE):
                begin = min(begin, _integer(chunk, DICTIONARY_PAGE))
            sizes, values = _pages(data, begin, begin + _integer(chunk, PACKED_SIZE))
            needed += sizes + max(values, _integer(chunk, NUMBER_OF_VALUES), height) * 8
    if not found == wanted == _integer(footer, NUMBER_OF_ROWS):
        raise CorruptFileError(f"it must have {wanted} rows; got {found}")
    if needed > LARGEST:
        raise CorruptFileError(
            f"its content must take at most {LARGEST:,} bytes; it would take {needed:,}"
        )


def _check_texts(column: Any) -> None:
    compute = optional("pyarrow.compute")
    needed = 0
    for chunk in column.chunks:
        lengths = compute.take(compute.binary_length(chunk.dictionary), chunk.indices)
        needed += compute.sum(compute.cast(lengths, "int64")).as_py() or 0
    if needed > LARGEST:
        raise CorruptFileError(
            f"its texts must take at most {LARGEST:,} bytes; they would take {needed:,}"
        )


# --- a file's description of itself, in Thrift's compact protocol ---------------------------------

TRUE, FALSE, BYTE, INTEGERS, DOUBLE, BINARY, LISTS, STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 12
NUMBER_OF_ROWS, ROW_GROUPS = 3, 4
COLUMNS, ROWS_OF_GROUP = 1, 3
CHUNK = 3
NUMBER_OF_VALUES, PACKED_SIZE, FIRST_PAGE, DICTIONARY_PAGE = 5, 7, 9, 11
PAGE_UNPACKED, PAGE_PACKED = 2, 3
PAGE_VALUES = 1
PAGE_KINDS = {5: 2, 7: 2, 8: 4}
"""Headers of data, dictionary and version-2 data pages, with the field that holds the encoding."""
ENCODINGS = (0, 2, 3, 4, 8)
"""Encodings that are read: plain, dictionary and run-length.

With these, a value takes no more than its own bytes, or is stored once.
"""
DEEPEST = 12
TAIL = 8
"""Bytes at the end of a file that hold the length of its description and a magic number."""


def _footer(data: bytes) -> dict[int, Any]:
    """The description of the whole file."""
    size = int.from_bytes(data[-TAIL:-4], "little")
    if not 0 < size <= min(len(data) - TAIL, LARGEST_HEADER):
        raise CorruptFileError(
            f"its description must take at most {LARGEST_HEADER:,} bytes; got {size:,}"
        )
    return _Compact(data, len(data) - TAIL - size).struct()


def _pages(data: bytes, begin: int, end: int) -> tuple[int, int]:
    """Unpacked size, in bytes, and number of values of the pages between two positions."""
    if not 0 <= begin <= end <= len(data):
        raise CorruptFileError("a column lies outside the file")
    sizes = values = 0
    while begin < end:
        header = _Compact(data, begin)
        page = header.struct()
        sizes += _integer(page, PAGE_UNPACKED)
        for field, encoding in PAGE_KINDS.items():
            kind = page.get(field)
            if isinstance(kind, dict):
                values += _integer(kind, PAGE_VALUES)
                if _integer(kind, encoding) not in ENCODINGS:
                    raise CorruptFileError(
                        f"a page has an encoding that is not read here ({kind[encoding]})"
                    )
        begin = header.at + _integer(page, PAGE_PACKED)
    if begin != end:
        raise CorruptFileError("the pages of a column do not fill its place")
    return sizes, values


def _integer(struct: dict[int, Any], field: int) -> int:
    value = struct.get(field)
    if not isinstance(value, int) or value < 0:
        raise CorruptFileError(
            f"a number in its description is missing or negative (field {field})"
        )
    return value


def _structs(struct: dict[int, Any], field: int) -> list[dict[int, Any]]:
    values = struct.get(field, [])
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise CorruptFileError(f"a list in its description is damaged (field {field})")
    return values


class _Compact:
    """Reads structs as dictionaries by field number.

    Texts and floating-point numbers are skipped and become None.

    Parameters
    ----------
    data : bytes
    at : int
        Position at which to begin. The attribute then holds the position reached.
    """

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at
        self.left = MAX_PARTS

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The struct that begins at the present position."""
        found: dict[int, Any] = {}
        field = 0
        while (head := self._byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            if field in found:
                raise CorruptFileError(f"its description says something twice (field {field})")
            found[field] = None if kind in (TRUE, FALSE) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        self.left -= 1
        if depth > DEEPEST or self.left < 0:
            raise CorruptFileError("its description is nested too deeply, or has too many parts")
        if kind in INTEGERS:
            return self._integer()
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in LISTS:
            head = self._byte()
            length = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15, depth + 1) for _ in range(min(length, self.left + 1))]
        if kind in (TRUE, FALSE, BYTE):
            self.at += 1
        elif kind == DOUBLE:
            self.at += 8
        elif kind == BINARY:
            length = self._varint()
            self.at += length
        else:
            raise CorruptFileError(f"its description is damaged: there is no type {kind}")
        return None

    def _integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = shift = 0
        while shift < 70:
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
        raise CorruptFileError("a number in its description is too long")

    def _byte(self) -> int:
        if self.at >= len(self.data):
            raise CorruptFileError("its description is cut short")
        self.at += 1
        return self.data[self.at - 1]
