"""Reading Parquet files from anywhere: what they would take in memory is checked before anything is unpacked.

A file of a few megabytes may hold billions of equal numbers, or one long text many times over, and what it says about its own
size need not be true. So the number of rows is that which is asked for, the columns are flat or known, and the size of every
page is taken from its own header, which is what the reader goes by.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from brmdp._extras import optional
from brmdp.errors import CorruptFileError

__all__ = ["LARGEST", "metadata_of", "read_within_limits", "require_within_limits"]

LARGEST = 2**30
"""Most bytes of a file, and of its content in memory."""

LARGEST_HEADER = 2**24
"""Most bytes of a text in the file's own description."""

MOST_PARTS = 10**6
"""Most entries of a list in it."""


def metadata_of(source: Any) -> dict[bytes, bytes]:
    """What the file at a path, or with this content, says about itself, without reading the rest."""
    found: dict[bytes, bytes] = dict(_opened(source).metadata.metadata or {})
    return found


def read_within_limits(data: bytes, rows: int | None, schema: Any) -> Any:
    """The table in a file.

    Parameters
    ----------
    data : bytes
        Of the file.
    rows : int or None
        How many it must have; None for any number that fits.
    schema : pyarrow.Schema or None
        What its columns must be; None for any names, with numbers, truth values or text.

    Raises
    ------
    CorruptFileError
        If it is something else, or too large.
    pyarrow.ArrowException, OSError
        If it is damaged.
    """
    pa = optional("pyarrow")
    file = _opened(data)
    columns = file.schema_arrow.remove_metadata()
    if schema is not None and not columns.equals(schema):
        raise CorruptFileError(f"it must have the columns {schema.names} of their types; got {columns.names}")
    flat = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_string)
    for field in columns:
        if schema is None and not any(suits(field.type) for suits in flat):
            raise CorruptFileError(f"column {field.name} must hold numbers, truth values or text; got {field.type}")
    _check_sizes(file.metadata, data, rows)
    # a text is stored once for many rows: count before it is repeated
    texts = [field.name for field in columns if pa.types.is_string(field.type)]
    table = _opened(data, read_dictionary=texts).read()
    for name in texts:
        _check_texts(table[name])
        position = table.schema.get_field_index(name)
        table = table.set_column(position, columns.field(name), table[name].cast(pa.string()))
    return table.replace_schema_metadata(None)


def require_within_limits(data: bytes) -> None:
    """Refuse to write what would not be read.

    Raises
    ------
    CorruptFileError
        If it is too large.
    """
    _check_sizes(_opened(data).metadata, data, None)


def _opened(source: Any, **options: Any) -> Any:
    if isinstance(source, bytes):
        source = optional("pyarrow").BufferReader(source)
    return optional("pyarrow.parquet").ParquetFile(
        source, thrift_string_size_limit=LARGEST_HEADER, thrift_container_size_limit=MOST_PARTS, **options
    )


def _check_sizes(metadata: Any, data: bytes, rows: int | None) -> None:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    found = sum(group.num_rows for group in groups)
    if found != metadata.num_rows or (rows is not None and found != rows):
        raise CorruptFileError(f"it must have {metadata.num_rows if rows is None else rows} rows; got {found}")
    needed = 0
    for group in groups:
        for number in range(group.num_columns):
            chunk = group.column(number)
            needed += max(chunk.num_values, group.num_rows) * 8
            begin = chunk.data_page_offset
            if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                begin = min(begin, chunk.dictionary_page_offset)
            needed += sum(_page_sizes(data, begin, begin + chunk.total_compressed_size))
    if needed > LARGEST:
        raise CorruptFileError(f"its content must take at most {LARGEST:,} bytes; it would take {needed:,}")


def _check_texts(column: Any) -> None:
    compute = optional("pyarrow.compute")
    needed = 0
    for chunk in column.chunks:
        lengths = compute.take(compute.binary_length(chunk.dictionary), chunk.indices)
        needed += compute.sum(compute.cast(lengths, "int64")).as_py() or 0
    if needed > LARGEST:
        raise CorruptFileError(f"its texts must take at most {LARGEST:,} bytes; they would take {needed:,}")


# --- headers of pages, in Thrift's compact protocol ------------------------------------------------------------

BOOLEANS, BYTE, INTEGERS, DOUBLE, BINARY, LISTS, STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
UNCOMPRESSED_SIZE, COMPRESSED_SIZE = 2, 3
DEEPEST = 8


def _page_sizes(data: bytes, begin: int, end: int) -> Iterator[int]:
    """Bytes that each page between two places takes once it is unpacked."""
    if not 0 <= begin <= end <= len(data):
        raise CorruptFileError("a column lies outside the file")
    while begin < end:
        sizes: dict[int, int] = {}
        begin = _struct(data, begin, sizes)
        unpacked, packed = sizes.get(UNCOMPRESSED_SIZE, -1), sizes.get(COMPRESSED_SIZE, -1)
        if unpacked < 0 or packed < 0:
            raise CorruptFileError("the header of a page is damaged")
        yield unpacked
        begin += packed


def _struct(data: bytes, at: int, integers: dict[int, int] | None = None, depth: int = 0) -> int:
    """Go over a struct, noting its integers by number; returns where it ends."""
    field = 0
    while data[at] != 0:
        kind, step = data[at] & 15, data[at] >> 4
        at += 1
        if step:
            field += step
        else:
            number, at = _varint(data, at)
            field = (number >> 1) ^ -(number & 1)
        if kind in INTEGERS and integers is not None:
            number, at = _varint(data, at)
            integers[field] = (number >> 1) ^ -(number & 1)
        elif kind not in BOOLEANS:
            at = _skip(data, at, kind, depth)
    return at + 1


def _skip(data: bytes, at: int, kind: int, depth: int) -> int:
    if depth > DEEPEST:
        raise CorruptFileError("the header of a page is nested too deeply")
    if kind in (*BOOLEANS, BYTE):
        return at + 1
    if kind in INTEGERS:
        return _varint(data, at)[1]
    if kind == DOUBLE:
        return at + 8
    if kind == BINARY:
        length, at = _varint(data, at)
        return at + length
    if kind == STRUCT:
        return _struct(data, at, None, depth + 1)
    if kind in LISTS:
        length, element, at = data[at] >> 4, data[at] & 15, at + 1
        if length == 15:
            length, at = _varint(data, at)
        for _ in range(min(length, len(data) - at)):
            at = _skip(data, at, element, depth + 1)
        return at
    raise CorruptFileError("the header of a page is damaged")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise CorruptFileError("a number in the header of a page is too long")
