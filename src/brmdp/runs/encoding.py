"""One run as the content of a Parquet file, and back.

A file carries what it is (case, seed, run), what made it (digests of world and code, versions), how
long it took, and a SHA-256 digest over all of that and over every column. Reading verifies
everything. Which columns there are, and of what type, is declared where they are recorded
(:mod:`brmdp.simulation.history`, or a study's program).
"""

from __future__ import annotations

import io
import itertools
import json
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from keyword import iskeyword
from typing import Any

import numpy as np

from brmdp._columns import Column, columns_of
from brmdp._extras import EXTRAS, optional
from brmdp._files import digest
from brmdp._version import installed_version
from brmdp.errors import CorruptFileError, ExperimentError, OtherOriginError
from brmdp.runs.execution import Replication, RunRecord, extra_of
from brmdp.runs.former import (
    FORMAT,
    FORMATS,
    WITH_LENGTHS_OF_TEXTS,
    WITHOUT_DIGESTS,
    in_words,
    upgraded,
)
from brmdp.runs.origin import CODE, UNKNOWN
from brmdp.runs.parquet import metadata_of, read_within_limits, require_within_limits
from brmdp.runs.program import RESERVED, known_program
from brmdp.runs.spec import Case, Computation, value_key
from brmdp.simulation import Episodes, History, Steps

__all__ = [
    "RUN_COLUMNS",
    "StoredRun",
    "decode",
    "differences",
    "encode",
    "essential",
    "extra_versions",
    "facts_of",
    "plain",
    "values_of",
    "versions",
]

NOT_ESSENTIAL = ("reported_steps", "max_runs", "label")
"""Fields of a case that do not change its runs."""

AT_LOOKS: tuple[Column, ...] = tuple(
    one for one in columns_of(History) if one not in columns_of(Steps)
)
RUN_COLUMNS: tuple[Column, ...] = (*columns_of(Steps), *columns_of(Episodes), *AT_LOOKS)
"""Columns of a stored interaction, one row per step.

Values for a pseudo-episode stand in the row of its first step, those of a diagnostic in the row of
the step that it looked at; elsewhere they are null.
"""

ABSENT = object()


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A verified file.

    Attributes
    ----------
    run : int
    table : pyarrow.Table
        One row per step of an interaction, with all columns of :data:`RUN_COLUMNS`; the rows of a
        computation as its program gave them.
    n_states : int
        Size of an interaction's world; 0 for a computation.
    seconds : float
        Processor time.
    versions : mapping
        Versions of the packages that made it.
    content : str
        Digest of the columns alone: equal for equal results, however long they took.
    code, world : str
        Digests of what made it; empty if the file does not say.
    """

    run: int
    table: Any
    n_states: int
    seconds: float
    versions: Mapping[str, str]
    content: str
    code: str
    world: str


def encode(record: RunRecord | Replication, case: Case | Computation, seed: int, run: int) -> bytes:
    """A run as the content of a Parquet file.

    Raises
    ------
    ExperimentError
        If it is too large to be read again.
    """
    facts = {
        "format": FORMAT,
        **_identity(case, seed, run),
        "code": CODE,
        "world": record.world,
        "seconds": record.seconds,
        "versions": {**versions(), **extra_versions(case)},
    }
    if isinstance(record, RunRecord):
        table = _table(record.history)
        facts |= {"n_states": record.n_states, "n_actions": record.n_actions}
    else:
        table = optional("pyarrow").table(record.columns.arrays())
    text = json.dumps(facts, sort_keys=True)
    sink = io.BytesIO()
    optional("pyarrow.parquet").write_table(
        table.replace_schema_metadata(
            {"brmdp": text, "sha256": _seal(_content(table, FORMAT), text)}
        ),
        sink,
        compression="zstd",
        # levels hardly repeat
        use_dictionary=[name for name in table.column_names if name != "levels"],
    )
    data = sink.getvalue()
    try:
        require_within_limits(data)
    except CorruptFileError as error:
        raise ExperimentError(
            f"run {run} of {case.name} is too large to be kept: {error}"
        ) from None
    return data


def decode(data: bytes, case: Case | Computation, seed: int, run: int, source: Any) -> StoredRun:
    """The run that :func:`encode` wrote, verified to be what is asked for.

    Raises
    ------
    CorruptFileError
        If the content is truncated, altered or too large, or belongs to another case, seed or run;
        the message names ``source``.
    OtherOriginError
        If its format is unknown to this version, or its columns are not those of its program.
    """
    with _damage_named(source):
        metadata = metadata_of(data)
        text, seal = metadata[b"brmdp"].decode(), metadata[b"sha256"].decode()
        facts = facts_of(text, source)
    asked = plain(_identity(case, seed, run))
    differing = differences(facts, asked)
    if differing:
        raise CorruptFileError(f"{source} holds another run: {differing}")
    with _damage_named(source):
        steps, schema = None, None
        if isinstance(case, Case):
            steps, schema = case.steps, _schema(facts["format"])
        table = read_within_limits(data, steps, schema)
        content = _content(table, facts["format"])
        seconds = float(facts["seconds"])
        made_with = {str(name): str(number) for name, number in facts["versions"].items()}
        n_states = int(facts.get("n_states", 0))
    if _seal(content, text) != seal:
        raise CorruptFileError(f"{source} is damaged: its content does not match its digest")
    if isinstance(case, Case):
        _require_entries(table, source)
    table = _with_all_columns(table, case, source)
    return StoredRun(
        run, table, n_states, seconds, made_with, content, facts["code"], facts["world"]
    )


def _require_entries(table: Any, source: Any) -> None:
    """Refuse steps without an entry, which would be read as some number.

    An optional column may lack all of its entries. The columns of pseudo-episodes and diagnostics
    have entries at some steps only.
    """
    for one in columns_of(Steps):
        if one.name in table.column_names:
            allowed = (0, table.num_rows) if one.optional else (0,)
            if table[one.name].null_count not in allowed:
                raise CorruptFileError(f"{source} is damaged: column {one.name} lacks entries")


def _with_all_columns(table: Any, case: Case | Computation, source: Any) -> Any:
    """The table with all present columns; those that an older format lacks are null."""
    if isinstance(case, Case):
        pa, schema = optional("pyarrow"), _schema(FORMAT)
        present = set(table.column_names)
        columns = [
            table[field.name] if field.name in present else pa.nulls(table.num_rows, field.type)
            for field in schema
        ]
        return pa.table(columns, schema=schema)
    for name in table.column_names:
        if not name.isidentifier() or iskeyword(name) or name in RESERVED:
            raise CorruptFileError(f"{source} is damaged: no column can have the name {name!r:.60}")
        if table[name].null_count:
            raise CorruptFileError(f"{source} is damaged: column {name} lacks entries")
    program = known_program(case)
    if program is not None:
        declared = [one.name for one in columns_of(program.columns)]
        if set(declared) != set(table.column_names):
            raise OtherOriginError(
                f"{source} was written by another version of {case.program}: it has the columns "
                f"{', '.join(table.column_names)}, the program now has {', '.join(declared)}"
            )
    return table


@contextmanager
def _damage_named(source: Any) -> Iterator[None]:
    """Say which file is damaged: damage can surface anywhere inside Arrow."""
    try:
        yield
    except OtherOriginError:
        raise
    except Exception as error:
        summary = str(error).splitlines()[0] if str(error) else ""
        kind = "" if isinstance(error, CorruptFileError) else f"{type(error).__name__} "
        raise CorruptFileError(f"{source} is damaged: {kind}{summary}".rstrip()) from error


def facts_of(text: str, source: Any) -> dict[str, Any]:
    """What a file says about itself, in today's terms."""
    facts = dict(json.loads(text))
    if facts["format"] not in FORMATS:
        raise OtherOriginError(
            f"{source} has format {facts['format']}; this version of brmdp reads {in_words()}"
        )
    if facts["format"] == WITHOUT_DIGESTS:
        facts |= {"code": UNKNOWN, "world": UNKNOWN}
    if not isinstance(facts["code"], str) or not isinstance(facts["world"], str):
        raise ValueError("code and world must be text")
    facts["case"] = essential(upgraded(facts["case"], facts["format"]))
    return facts


def _identity(case: Case | Computation, seed: int, run: int) -> dict[str, Any]:
    """What identifies a run."""
    return {"case": essential(case.describe()), "seed": seed, "run": run}


def essential(case: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a case without the fields that affect no result."""
    return {key: value for key, value in case.items() if key not in NOT_ESSENTIAL}


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of the packages on which results depend, here and now."""
    packages = {name: version(name) for name in ("numpy", "scipy", "numba", "gymnasium")}
    return {"brmdp": installed_version(), **packages, "python": platform.python_version()}


def extra_versions(case: Case | Computation) -> dict[str, str]:
    """Versions of further packages on which the results of a case depend."""
    extra = extra_of(case)
    return {} if extra is None else {name: version(name) for name in EXTRAS[extra]}


@lru_cache(maxsize=4)
def _schema(format_: int) -> Any:
    """The columns of an interaction in files of some format."""
    pa = optional("pyarrow")
    types = {
        "integer": pa.int32(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "text": pa.string(),
        "numbers": pa.list_(pa.field("element", pa.float64())),  # as Parquet calls it
    }
    return pa.schema([(one.name, types[one.type]) for one in RUN_COLUMNS if one.since <= format_])


def _table(history: History) -> Any:
    """The table of an interaction, with one row per step."""
    pa = optional("pyarrow")
    steps = len(history)

    def at(positions: Any, values: Any) -> list[Any]:
        column: list[Any] = [None] * steps
        for position, value in zip(positions, values, strict=True):
            column[position] = value.ravel() if isinstance(value, np.ndarray) else value
        return column

    columns: dict[str, Any] = {one.name: getattr(history, one.name) for one in columns_of(Steps)}
    episodes = history.episodes
    for one in columns_of(Episodes):
        columns[one.name] = at(episodes.first_step, getattr(episodes, one.name))
    for one in AT_LOOKS:
        columns[one.name] = at(history.quantile_step, getattr(history, one.name))
    schema = _schema(FORMAT)
    return pa.table(
        [
            pa.nulls(steps, field.type)
            if columns[field.name] is None
            else pa.array(columns[field.name], field.type)
            for field in schema
        ],
        schema=schema,
    )


def _content(table: Any, format_: int) -> str:
    """SHA-256 over the values of all columns, whatever their layout in memory or on disk.

    Up to format 2, texts with a bar were not told apart from two texts.
    """
    return digest(_parts(table, format_))


def _parts(table: Any, format_: int) -> Iterator[str | bytes]:
    yield f"{table.num_rows}"
    for name in table.column_names:
        column = table[name].combine_chunks()
        yield f"|{name}|{column.type}|"
        yield np.packbits(column.is_valid().to_numpy(zero_copy_only=False)).tobytes()
        values = column.drop_null()
        if str(column.type) == "string" and format_ < WITH_LENGTHS_OF_TEXTS:
            yield "|".join(values.to_pylist())
        elif str(column.type) == "string":
            texts = [text.encode() for text in values.to_pylist()]
            yield np.array([len(text) for text in texts], dtype=np.int64).tobytes()
            yield b"".join(texts)
        elif str(column.type).startswith("list"):
            yield values.value_lengths().to_numpy(zero_copy_only=False).tobytes()
            yield values.flatten().to_numpy(zero_copy_only=False).tobytes()
        else:
            yield values.to_numpy(zero_copy_only=False).tobytes()


def _seal(content: str, facts: str) -> str:
    return digest([f"{content}|{facts}"])


def values_of(column: Any) -> Any:
    """A column as an array."""
    return column.to_numpy(zero_copy_only=False)


def plain(value: Any) -> Any:
    """A value as it comes back from a file."""
    return json.loads(json.dumps(value))


def differences(stored: Any, asked: Any, where: str = "") -> str:
    """What differs, by path; top-level entries that only ``stored`` has do not count."""
    found = list(itertools.islice(_differing(stored, asked, where), 4))
    return "; ".join([*found[:3], "…"] if len(found) > 3 else found)


def _differing(stored: Any, asked: Any, where: str) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(asked, dict):
        for key in {**asked, **stored} if where else asked:
            path = f"{where}.{key}" if where else key
            yield from _differing(stored.get(key, ABSENT), asked.get(key, ABSENT), path)
    elif isinstance(stored, list) and isinstance(asked, list) and len(stored) == len(asked):
        for position, (left, right) in enumerate(zip(stored, asked, strict=True)):
            yield from _differing(left, right, f"{where}[{position}]")
    elif value_key(stored) != value_key(asked):
        yield f"{where} is {_short(stored)}, but {_short(asked)} was asked for"


def _short(value: Any) -> str:
    text = "absent" if value is ABSENT else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
