"""Tables from files and data frames: only the columns that are needed, every line accounted for."""

from __future__ import annotations

import codecs
import csv
import difflib
import hashlib
import io
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from brmdp._extras import optional
from brmdp._files import digest
from brmdp._validation import IntArray
from brmdp.errors import InvalidInputError
from brmdp.logs.columns import SPACE, Column, encoded, plain_object
from brmdp.logs.spaces import shown

__all__ = ["PARQUET", "TEXT", "Table", "check_file", "header_of", "table_of"]

BLOCK = 16 * 2**20
"""Bytes that are read at a time; a line must fit into them."""

LONGEST_HEADER = 2**20
TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET = (".parquet", ".pq")
SENTINEL = "end of the log"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a log that are needed.

    Attributes
    ----------
    source : str
    digest : str
    columns : dict from name to Column
    broken : (b,) integers
        Places, among all lines, of those with the wrong number of fields; they are in no column.
    n_lines : int
        All lines, with the broken ones.
    places : (n,) integers
        Place of each line of the columns among all lines.
    name_of : callable
        What to call the line at a place, such as "line 17".
    notes : tuple of str
    """

    source: str
    digest: str
    columns: dict[str, Column]
    broken: IntArray
    n_lines: int
    places: IntArray
    name_of: Callable[[int], str]
    notes: tuple[str, ...] = ()


def table_of(
    source: Any,
    names: Sequence[str],
    *,
    delimiter: str | None,
    decimal: str,
    encoding: str,
    missing: frozenset[str],
) -> Table:
    """Read the named columns of a file or data frame."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        check_file(path)
        name = path.name.lower()
        if name.endswith(PARQUET):
            return _of_parquet(path, names, missing)
        if name.endswith(TEXT):
            if delimiter is None:
                delimiter = "\t" if ".tsv" in name else ","
            if delimiter == decimal:
                raise InvalidInputError(
                    f"delimiter must differ from decimal; got {delimiter!r} for both"
                )
            return _of_text(path, names, delimiter, encoding, missing)
        raise InvalidInputError(
            f"source must be a file that ends in {', '.join(TEXT + PARQUET)}, or a data frame; got "
            f"{shown(path.name)}"
        )
    return _of_frame(source, names, missing)


def check_columns(names: Sequence[str], found: Sequence[str]) -> None:
    """Every column that is asked for must be there, once."""
    for name in names:
        times = list(found).count(name)
        if times == 1:
            continue
        if times > 1:
            raise InvalidInputError(
                f"columns of the log must have distinct names; got {times} called {shown(name)}"
            )
        few = ", ".join(shown(one, 40) for one in found[:20]) + (", …" if len(found) > 20 else "")
        near = difflib.get_close_matches(name, [one[:100] for one in found[:1000]], 1)
        hint = f" (perhaps {shown(near[0])}?)" if near else ""
        raise InvalidInputError(
            f"columns of the log must include {shown(name)}{hint}; the log has {few or 'none'}"
        )


def check_file(path: Path) -> None:
    """Refuse what is no regular file, or is empty."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        raise InvalidInputError(
            f"source must be a file that exists; got {shown(str(path), 200)}"
        ) from None
    if not stat.S_ISREG(mode):
        raise InvalidInputError(f"source must be a regular file; got {shown(str(path), 200)}")
    if path.stat().st_size == 0:
        raise InvalidInputError(f"source must hold a log; {shown(path.name)} is empty")


# --- text ----------------------------------------------------------------------------------------


def _of_text(
    path: Path, names: Sequence[str], delimiter: str, encoding: str, missing: frozenset[str]
) -> Table:
    pa = optional("pyarrow", "decide")
    header, header_bytes, header_lines = header_of(path, delimiter, encoding)
    _check_delimiter(header, delimiter, path.name)
    check_columns(names, header)
    wanted = [header.index(name) for name in names]
    try:
        _check_encoding(path, encoding)
        rows, broken = _rows(path, header_bytes, len(header), wanted, delimiter, encoding)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(_in_plain_words(str(error), path)) from None
    except (OSError, EOFError, UnicodeError) as error:
        raise InvalidInputError(
            f"source must be a readable file; {shown(path.name)}: {shown(str(error), 200)}"
        ) from None
    n_lines = rows.num_rows + broken.size
    if n_lines == 0:
        raise InvalidInputError(
            f"source must hold lines of data; {shown(path.name)} has a header only"
        )
    columns = {
        name: encoded(name, rows.column(str(k)), missing)
        for name, k in zip(names, wanted, strict=True)
    }
    places = np.arange(n_lines)
    if broken.size:
        places = np.delete(places, broken)
    numbering = _Numbering(path, header_bytes, header_lines, n_lines)
    return Table(
        path.name,
        _digest_of_file(path),
        columns,
        broken,
        n_lines,
        places,
        numbering.name_of,
    )


def _opened(path: Path) -> Any:
    """The uncompressed bytes of a file, as a stream of Arrow."""
    pa = optional("pyarrow", "decide")
    compression = "gzip" if path.name.lower().endswith(".gz") else None
    return pa.input_stream(str(path), compression=compression)


def _digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def header_of(path: Path, delimiter: str, encoding: str) -> tuple[list[str], int, int]:
    """Names of the columns, and the bytes and lines that they take."""
    try:
        with _opened(path) as stream:
            start = stream.read(LONGEST_HEADER)
    except (OSError, EOFError) as error:
        raise InvalidInputError(
            f"source must be a readable file; {shown(path.name)}: {shown(str(error), 200)}"
        ) from None
    kinds = {b"PK\x03\x04": "an Excel file or a zip archive", b"PAR1": "a Parquet file"}
    kinds |= {b"\xff\xfe": "text in UTF-16", b"\xfe\xff": "text in UTF-16", b"\x1f\x8b": "gzip"}
    for magic, kind in kinds.items():
        if start.startswith(magic):
            raise InvalidInputError(
                f"source must be text in UTF-8 or another encoding based on ASCII; "
                f"{shown(path.name)} looks like {kind}"
            )
    if b"\0" in start:
        raise InvalidInputError(
            f"source must be text; {shown(path.name)} has NUL bytes, as binary files do"
        )
    mark = len(BYTE_ORDER_MARK) if start.startswith(BYTE_ORDER_MARK) else 0
    # decoded as Latin-1, bytes and characters are counted alike, and every byte means something
    counted = _Counted(io.StringIO(start[mark:].decode("latin-1"), newline=""))
    fields: list[str] = []
    try:
        for fields in csv.reader(counted, delimiter=delimiter):
            if fields:
                break
    except csv.Error as error:
        raise InvalidInputError(
            f"source must begin with a line of column names; {shown(path.name)}: {error}"
        ) from None
    try:
        names = [field.encode("latin-1").decode(encoding).strip(SPACE) for field in fields]
    except UnicodeError:
        raise _wrong_encoding(path.name, encoding, " in the header") from None
    if not any(names):
        raise InvalidInputError(
            f"source must begin with a line of column names; {shown(path.name)} has none"
        )
    return names, mark + counted.characters, counted.lines


class _Counted:
    """Lines of a text, counted as they are taken; a lone carriage return ends a line, too."""

    def __init__(self, text: io.StringIO) -> None:
        self.text, self.characters, self.lines = text, 0, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self.text)
        self.characters += len(line)
        self.lines += 1
        return line


def _check_delimiter(header: Sequence[str], delimiter: str, name: str) -> None:
    if len(header) == 1:
        for other in (";", "\t", ",", "|"):
            if other != delimiter and other in header[0]:
                raise InvalidInputError(
                    f"delimiter must separate the columns; with {delimiter!r}, {shown(name)} has "
                    f"one column, {shown(header[0])}. Perhaps delimiter={other!r}?"
                )


def _wrong_encoding(name: str, encoding: str, where: str) -> InvalidInputError:
    return InvalidInputError(
        f"encoding must be that of the file; {shown(name)} is not text in {encoding}{where}. Save "
        "it as UTF-8, or give its encoding, such as encoding='cp1252'"
    )


def _check_encoding(path: Path, encoding: str) -> None:
    """Arrow would pass over broken lines in silence if they were not text."""
    decoder = codecs.getincrementaldecoder(encoding)()
    lines = 1
    with _opened(path) as stream:
        while True:
            block = stream.read(BLOCK)
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                lines += error.object[: error.start].count(b"\n")
                raise _wrong_encoding(path.name, encoding, f" on line {lines}") from None
            if not block:
                return
            lines += block.count(b"\n")


def _rows(
    path: Path,
    skip: int,
    n_columns: int,
    wanted: Sequence[int],
    delimiter: str,
    encoding: str,
) -> tuple[Any, IntArray]:
    """The wanted columns, named by their numbers, and the places of broken lines."""
    broken: list[int | None] = []

    def note(row: Any) -> str:
        broken.append(row.number)
        return "skip"

    rows = _parsed(path, skip, n_columns, wanted, delimiter, encoding, note, threads=True)
    if broken:
        broken.clear()
        rows = _parsed(path, skip, n_columns, wanted, delimiter, encoding, note, threads=False)
    return rows, np.array(broken, dtype=np.int64) - 1


def _parsed(
    path: Path,
    skip: int,
    n_columns: int,
    wanted: Sequence[int],
    delimiter: str,
    encoding: str,
    note: Callable[[Any], str],
    *,
    threads: bool,
) -> Any:
    pa, csv_of = optional("pyarrow", "decide"), optional("pyarrow.csv", "decide")
    names = [str(k) for k in range(n_columns)]
    included = [str(k) for k in dict.fromkeys(wanted)]
    # a line of our own at the end shows whether a quotation mark was left open
    last = delimiter.join([SENTINEL] * n_columns)
    with _opened(path) as stream:
        stream.read(skip)
        rows = csv_of.read_csv(
            pa.PythonFile(_WithLastLine(stream, f"\n{last}\n".encode()), mode="r"),
            read_options=csv_of.ReadOptions(
                column_names=names, block_size=BLOCK, use_threads=threads, encoding=encoding
            ),
            parse_options=csv_of.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note
            ),
            convert_options=csv_of.ConvertOptions(
                column_types=dict.fromkeys(included, pa.string()),
                include_columns=included,
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    n = rows.num_rows - 1
    if n < 0 or any(rows.column(k)[n].as_py() != SENTINEL for k in range(len(included))):
        raise InvalidInputError(
            f"source must close every quotation mark it opens; {shown(path.name)} ends within a "
            "quoted field"
        )
    return rows.slice(0, n)


class _WithLastLine(io.RawIOBase):
    """A stream of bytes, and after it some more."""

    def __init__(self, stream: Any, more: bytes) -> None:
        self.stream, self.more = stream, io.BytesIO(more)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        found: bytes = self.stream.read(None if size < 0 else size)
        if found and size >= 0:
            return found
        return found + self.more.read(size)


def _in_plain_words(error: str, path: Path) -> str:
    if "straddling" in error or "block" in error:
        return (
            f"source must have lines of at most {BLOCK // 2**20} MB; {shown(path.name)} has a "
            "longer one. Is a quotation mark left open?"
        )
    return f"source must be text in columns; {shown(path.name)}: {shown(error, 200)}"


class _Numbering:
    """Numbers of lines in a text file, for messages.

    Worked out only when first asked for. Where blank lines or line breaks in quotes leave a doubt,
    lines are named by their place among the lines of data.
    """

    def __init__(self, path: Path, skip: int, header_lines: int, n_lines: int) -> None:
        self.path, self.skip, self.header_lines, self.n_lines = path, skip, header_lines, n_lines
        self.starts: IntArray | None = None

    def name_of(self, place: int) -> str:
        if self.starts is None:
            self.starts = self._found()
        if self.starts.size != self.n_lines:
            return f"data line {place + 1}"
        return f"line {self.header_lines + int(self.starts[place]) + 1}"

    def _found(self) -> IntArray:
        """Numbers of the lines of the file in which lines of data begin."""
        starts: list[IntArray] = []
        lines = quotes = 0
        for block in _whole_lines(self.path, self.skip):
            data = np.frombuffer(block, dtype=np.uint8)
            ends = np.flatnonzero(data == 10)
            begins = np.append(0, ends[:-1] + 1)
            empty = ends == begins
            empty |= (ends == begins + 1) & (data[begins] == 13)
            marks = np.flatnonzero(data == 34)
            before = quotes + np.searchsorted(marks, begins)
            starts.append(lines + np.flatnonzero(~empty & (before % 2 == 0)))
            lines, quotes = lines + ends.size, quotes + marks.size
        return np.concatenate(starts) if starts else np.zeros(0, dtype=np.int64)


def _whole_lines(path: Path, skip: int) -> Iterator[bytes]:
    """A file's bytes in blocks that each end with a line, after the bytes to skip."""
    with _opened(path) as stream:
        stream.read(skip)
        rest = b""
        while block := stream.read(BLOCK):
            whole, end, rest = (rest + block).rpartition(b"\n")
            if end:
                yield whole + end
        if rest:
            yield rest + b"\n"


# --- Parquet and data frames ---------------------------------------------------------------------


def _of_parquet(path: Path, names: Sequence[str], missing: frozenset[str]) -> Table:
    pa, parquet = optional("pyarrow", "decide"), optional("pyarrow.parquet", "decide")
    try:
        with parquet.ParquetFile(path) as file:
            check_columns(names, file.schema_arrow.names)
            table = file.read(columns=list(names))
    except (pa.ArrowException, OSError) as error:
        raise InvalidInputError(
            f"source must be a Parquet file; {shown(path.name)}: {shown(str(error), 200)}"
        ) from None
    columns = {name: encoded(name, table.column(name), missing) for name in names}
    return _of_columns(path.name, _digest_of_file(path), columns, table.num_rows)


def _of_frame(source: Any, names: Sequence[str], missing: frozenset[str]) -> Table:
    pa = optional("pyarrow", "decide")
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        check_columns(names, source.column_names)
        columns = {name: encoded(name, source.column(name), missing) for name in names}
        n_lines, kind = source.num_rows, "an Arrow table"
    else:
        frame, kind = _narwhals_frame(source)
        check_columns(names, [str(name) for name in frame.columns])
        columns = {name: encoded(name, _arrow_of(frame[name]), missing) for name in names}
        n_lines = len(frame)
    content = digest(columns[name].digest() for name in sorted(columns))
    return _of_columns(kind, content, columns, n_lines)


def _narwhals_frame(source: Any) -> tuple[Any, str]:
    narwhals = optional("narwhals", "decide")
    package = type(source).__module__.partition(".")[0]
    kind = f"a {package} {type(source).__name__}"
    try:
        frame = narwhals.from_native(source)
        if isinstance(frame, narwhals.LazyFrame):
            frame = frame.collect()
    except TypeError:
        raise InvalidInputError(
            "source must be the path of a file or a data frame, such as one of pandas, polars or "
            f"Arrow; got {shown(type(source).__name__)}"
        ) from None
    except Exception as error:
        # each library of data frames has errors of its own, such as for names given twice
        raise InvalidInputError(f"source must be a readable data frame; {error!s:.200}") from None
    if not isinstance(frame, narwhals.DataFrame):
        raise InvalidInputError(f"source must be a data frame; got {kind}")
    return frame, kind


def _arrow_of(series: Any) -> Any:
    pa = optional("pyarrow", "decide")
    try:
        return series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        # numbers and text in one column
        try:
            return pa.array([plain_object(value) for value in series.to_list()], type=pa.string())
        except InvalidInputError as error:
            raise InvalidInputError(f"column {shown(series.name)}: {error}") from None


def _of_columns(source: str, content: str, columns: dict[str, Column], n_lines: int) -> Table:
    if n_lines == 0:
        raise InvalidInputError(f"source must hold lines of data; {shown(source)} has none")
    return Table(
        source,
        content,
        columns,
        np.zeros(0, dtype=np.int64),
        n_lines,
        np.arange(n_lines),
        lambda place: f"row {place + 1}",
    )
