"""Results on disk: a folder per experiment, a Parquet file per run, each complete or absent.

::

    DIR/NAME/experiment.json              what was asked for
    DIR/NAME/runs/aq-brmdp--0007.parquet  run 7 of the case aq-brmdp, one row per step (or as a computation has it)
    DIR/NAME/set-aside/                   files that failed verification: never used, never deleted

A file is written under a name that begins with a dot, flushed, and moved into place. It carries what it is (case, seed, run),
what made it (versions), how long it took, and a SHA-256 digest over all of that and over every column. Reading verifies
everything; a file that fails is not used.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import numpy as np

from brmdp._extras import EXTRAS, optional
from brmdp.errors import CorruptFileError, ExperimentError, InvalidInputError
from brmdp.experiments.one_run import Replication, RunRecord, extra_of
from brmdp.experiments.records import CaseRecords, Replications
from brmdp.experiments.spec import Case, Computation, Experiment

try:
    import fcntl
except ModuleNotFoundError:  # pragma: no cover - not a Unix
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "FORMAT",
    "CaseStatus",
    "Store",
    "StoredRun",
    "decode",
    "encode",
    "extra_versions",
    "find_stores",
    "versions",
]

FORMAT = 1
"""Of the files; to be raised when the same description would no longer give the same content."""

DESCRIPTION = "experiment.json"
STEPPED = ("state", "action", "reward", "episode", "true_regret", "robust_regret")
EPISODIC = ("levels", "iterations", "residual", "error_bound", "status")
ABSENT = object()


# --- one run as bytes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A verified file.

    Attributes
    ----------
    run : int
    table : pyarrow.Table
        One row per step of an interaction; of a computation what its program gave.
    n_states : int
        Of an interaction's world; 0 for a computation.
    seconds : float
        Of the processor.
    versions : mapping
        Of the packages that made it.
    content : str
        Digest of the columns alone: equal for equal results, whatever the time they took.
    """

    run: int
    table: Any
    n_states: int
    seconds: float
    versions: Mapping[str, str]
    content: str


def encode(record: RunRecord | Replication, case: Case | Computation, seed: int, run: int) -> bytes:
    """A run as the content of a Parquet file."""
    parquet = optional("pyarrow.parquet")
    facts = {
        **_identity(case, seed, run),
        "seconds": record.seconds,
        "versions": {**versions(), **extra_versions(case)},
    }
    if isinstance(record, RunRecord):
        table = _table(record)
        facts |= {"n_states": record.n_states, "n_actions": record.n_actions}
    else:
        table = optional("pyarrow").table(dict(record.columns))
    text = json.dumps(facts, sort_keys=True)
    seal = _seal(_content(table), text)
    sink = io.BytesIO()
    parquet.write_table(
        table.replace_schema_metadata({"brmdp": text, "sha256": seal}),
        sink,
        compression="zstd",
        # levels hardly repeat
        use_dictionary=[name for name in table.column_names if name != "levels"],
    )
    return sink.getvalue()


def decode(data: bytes, case: Case | Computation, seed: int, run: int, source: Any) -> StoredRun:
    """The run that :func:`encode` wrote, verified to be what is asked for.

    Raises
    ------
    CorruptFileError
        If the content is truncated or altered, or belongs to another case, seed or run; the message names ``source``.
    """
    parquet = optional("pyarrow.parquet")
    try:
        table = parquet.read_table(io.BytesIO(data))
        metadata = table.schema.metadata or {}
        text, seal = metadata[b"brmdp"].decode(), metadata[b"sha256"].decode()
        facts = json.loads(text)
        table = table.replace_schema_metadata(None)
        known = isinstance(case, Computation) or table.schema.equals(_schema())
        sound = known and _seal(_content(table), text) == seal
    except Exception as error:  # damage can surface anywhere inside Arrow
        summary = str(error).splitlines()[0] if str(error) else ""
        raise CorruptFileError(f"{source} is damaged: {type(error).__name__} {summary}".rstrip()) from error
    if not sound:
        raise CorruptFileError(f"{source} is damaged: its content does not match its digest")
    differing = _differences(facts, _plain(_identity(case, seed, run)))
    if differing:
        raise CorruptFileError(f"{source} holds another run: {differing}")
    return StoredRun(run, table, facts.get("n_states", 0), facts["seconds"], facts["versions"], _content(table))


def _identity(case: Case | Computation, seed: int, run: int) -> dict[str, Any]:
    """What determines a run."""
    return {"format": FORMAT, "case": _essential(case.describe()), "seed": seed, "run": run}


def _essential(case: Mapping[str, Any]) -> dict[str, Any]:
    """Without what determines no result."""
    return {key: value for key, value in case.items() if key not in ("shown_steps", "most_runs")}


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of what results depend on, here and now."""
    packages = {name: version(name) for name in ("brmdp", "numpy", "scipy", "numba")}
    return {**packages, "python": platform.python_version()}


def extra_versions(case: Case | Computation) -> dict[str, str]:
    """Of what the results of a case depend on besides."""
    extra = extra_of(case)
    return {} if extra is None else {name: version(name) for name in EXTRAS[extra]}


def _schema() -> Any:
    pa = optional("pyarrow")
    types = {
        **dict.fromkeys(("state", "action", "episode", "iterations"), pa.int32()),
        **dict.fromkeys(
            ("reward", "true_regret", "robust_regret", "residual", "error_bound", "quantile_value"), pa.float64()
        ),
        "levels": pa.list_(pa.field("element", pa.float64())),  # as Parquet calls it
        "status": pa.string(),
    }
    return pa.schema([(name, types[name]) for name in (*STEPPED, *EPISODIC, "quantile_value")])


def _table(record: RunRecord) -> Any:
    """One row per step; what belongs to a pseudo-episode stands at its first step, and is null elsewhere."""
    pa = optional("pyarrow")
    history = record.history
    steps = len(history)

    def at(positions: Any, values: Any) -> list[Any]:
        column: list[Any] = [None] * steps
        for position, value in zip(positions, values, strict=True):
            column[position] = value
        return column

    columns: dict[str, Any] = {name: getattr(history, name) for name in STEPPED}
    columns |= {name: at(history.episodes.first_step, getattr(history.episodes, name)) for name in EPISODIC}
    columns["levels"] = [None if levels is None else levels.ravel() for levels in columns["levels"]]
    columns["quantile_value"] = at(history.quantile_step, history.quantile_value)
    schema = _schema()
    return pa.table(
        [
            pa.nulls(steps, field.type) if columns[field.name] is None else pa.array(columns[field.name], field.type)
            for field in schema
        ],
        schema=schema,
    )


def _content(table: Any) -> str:
    """SHA-256 over the values of all columns, whatever their layout in memory or on disk."""
    result = hashlib.sha256(f"{table.num_rows}".encode())
    for name in table.column_names:
        column = table[name].combine_chunks()
        result.update(f"|{name}|{column.type}|".encode())
        result.update(np.packbits(column.is_valid().to_numpy(zero_copy_only=False)).tobytes())
        values = column.drop_null()
        if str(column.type) == "string":
            result.update("|".join(values.to_pylist()).encode())
        elif str(column.type).startswith("list"):
            result.update(values.value_lengths().to_numpy(zero_copy_only=False).tobytes())
            result.update(values.flatten().to_numpy(zero_copy_only=False).tobytes())
        else:
            result.update(values.to_numpy(zero_copy_only=False).tobytes())
    return result.hexdigest()


def _seal(content: str, facts: str) -> str:
    return hashlib.sha256(f"{content}|{facts}".encode()).hexdigest()


def _plain(value: Any) -> Any:
    """As it comes back from a file."""
    return json.loads(json.dumps(value))


def _differences(stored: Any, asked: Any, where: str = "") -> str:
    """What differs, by path; entries that only ``stored`` has at the top do not count."""
    found = list(itertools.islice(_differing(stored, asked, where), 4))
    return "; ".join([*found[:3], "…"] if len(found) > 3 else found)


def _differing(stored: Any, asked: Any, where: str) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(asked, dict):
        for key in {**asked, **stored} if where else asked:
            yield from _differing(stored.get(key, ABSENT), asked.get(key, ABSENT), f"{where}.{key}" if where else key)
    elif isinstance(stored, list) and isinstance(asked, list) and len(stored) == len(asked):
        for position, (left, right) in enumerate(zip(stored, asked, strict=True)):
            yield from _differing(left, right, f"{where}[{position}]")
    elif stored != asked:
        yield f"{where} is {_short(stored)}, asked for {_short(asked)}"


def _short(value: Any) -> str:
    text = "absent" if value is ABSENT else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


# --- the folder ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CaseStatus:
    """What a store holds of one case.

    Attributes
    ----------
    case : Case or Computation
    finished : tuple of int
        Verified runs.
    missing : tuple of int
        Wanted runs without a file.
    damaged : mapping
        Runs whose file failed, with the reason.
    versions : set of (package, version)
        That made the finished ones.
    """

    case: Case | Computation
    finished: tuple[int, ...]
    missing: tuple[int, ...]
    damaged: Mapping[int, str]
    versions: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Store:
    """The folder of one experiment.

    Attributes
    ----------
    directory : Path
        DIR/NAME.
    experiment : Experiment
        What is asked for; the store may hold more runs.
    """

    directory: Path
    experiment: Experiment

    @classmethod
    @contextmanager
    def opened(cls, directory: Any, experiment: Experiment) -> Iterator[Self]:
        """The store of ``experiment`` under ``directory``, for writing by this process alone.

        Made if need be, extended if more runs are wanted, and cleared of what killed processes left unfinished.

        Raises
        ------
        ExperimentError
            If the folder holds an experiment with other parameters, cannot be written, or is in use.
        """
        store = cls(Path(directory) / experiment.name, experiment)
        description = store.directory / DESCRIPTION
        with _explained(store.directory):
            store.directory.mkdir(parents=True, exist_ok=True)
            lock = open(store.directory / ".lock", "w")  # noqa: SIM115 (closed below, which releases it)
        with lock:
            _claim(lock, store.directory)
            known = _read_description(description) if description.exists() else None
            if known is not None:
                store._require_same(known)
            with _explained(store.directory):
                (store.directory / "runs").mkdir(exist_ok=True)
                for stale in (_unfinished(description), *store.directory.glob("runs/.*")):
                    stale.unlink(missing_ok=True)
            if known is None or known.runs < experiment.runs:
                content = {"format": FORMAT, "experiment": experiment.describe()}
                _write(description, json.dumps(content, indent=1, ensure_ascii=False).encode())
            yield store

    @classmethod
    def at(cls, directory: Any) -> Self:
        """The store in a folder that has one, for reading.

        Raises
        ------
        ExperimentError
            If there is none, or its description is damaged.
        """
        path = Path(directory) / DESCRIPTION
        if not path.is_file():
            raise ExperimentError(f"{directory} holds no experiment: there is no {DESCRIPTION}")
        return cls(Path(directory), _read_description(path))

    def _require_same(self, known: Experiment) -> None:
        differing = _differences(_comparable(known), _comparable(self.experiment))
        if differing:
            raise ExperimentError(
                f"{self.directory} was made with other parameters, and results must not be mixed: {differing}. "
                f"Choose another folder, or move this one away"
            )

    def path(self, case: Case | Computation, run: int) -> Path:
        """Where a run is, or will be."""
        return self.directory / "runs" / f"{quote(case.name, safe='+=,@ ')}--{run:04d}.parquet"

    def write(self, case: Case | Computation, run: int, data: bytes) -> None:
        """Keep what :func:`encode` made, completely or not at all.

        Raises
        ------
        ExperimentError
            If the disk is full or the folder cannot be written.
        """
        _write(self.path(case, run), data)

    def read(self, case: Case | Computation, run: int) -> StoredRun:
        """A stored run, verified.

        Raises
        ------
        CorruptFileError
            If it is not what it should be.
        ExperimentError
            If it is not there or cannot be read.
        """
        path = self.path(case, run)
        if not path.exists():
            raise ExperimentError(f"run {run} of {case.name} is not finished: there is no {path}")
        with _explained(path):
            data = path.read_bytes()
        return decode(data, case, self.experiment.seed, run, path)

    def status(self, case: Case | Computation) -> CaseStatus:
        """Which of the wanted runs are finished, missing or damaged; verifies every file."""
        finished, missing, damaged = [], [], {}
        versions: set[tuple[str, str]] = set()
        for run in range(self.experiment.runs_of(case)):
            if not self.path(case, run).exists():
                missing.append(run)
                continue
            try:
                versions.update(self.read(case, run).versions.items())
                finished.append(run)
            except CorruptFileError as error:
                damaged[run] = str(error)
        return CaseStatus(case, tuple(finished), tuple(missing), damaged, frozenset(versions))

    def set_aside(self, case: Case | Computation, run: int) -> Path:
        """Move a file out of the way, and say where to."""
        path = self.path(case, run)
        folder = self.directory / "set-aside"
        with _explained(folder):
            folder.mkdir(exist_ok=True)
            names = itertools.chain([path.name], (f"{path.stem}.{n}.parquet" for n in itertools.count(2)))
            target = next(folder / name for name in names if not (folder / name).exists())
            path.rename(target)
        return target

    def files_set_aside(self) -> list[str]:
        """Names of what was moved out of the way."""
        return sorted(path.name for path in self.directory.glob("set-aside/*"))

    def records(self, case_name: str) -> CaseRecords | Replications:
        """The wanted runs of a case side by side.

        Raises
        ------
        ExperimentError, CorruptFileError
            If a run is missing or damaged.
        """
        case = self.experiment.case(case_name)
        stored = [self.read(case, run) for run in range(self.experiment.runs_of(case))]
        runs, seconds = np.arange(len(stored)), np.array([item.seconds for item in stored])

        def stacked(name: str) -> Any:
            return np.stack([_values(item.table[name]) for item in stored])

        if isinstance(case, Computation):
            columns = {name: stacked(name) for name in stored[0].table.column_names}
            return Replications(case, runs, columns, seconds)
        recorded = stored[0].table["quantile_value"].is_valid().to_numpy()
        return CaseRecords(
            case=case,
            run=runs,
            state=stacked("state").astype(np.int64),
            action=stacked("action").astype(np.int64),
            episode=stacked("episode").astype(np.int64),
            reward=stacked("reward"),
            true_regret=stacked("true_regret"),
            robust_regret=None if case.robust_level is None else stacked("robust_regret"),
            quantile_step=np.flatnonzero(recorded),
            quantile_value=stacked("quantile_value")[:, recorded],
            seconds=seconds,
            n_states=stored[0].n_states,
        )

    def digest(self) -> str:
        """SHA-256 over the results of all wanted runs: equal for equal results, however and in what time computed."""
        result = hashlib.sha256()
        for case in self.experiment.cases:
            for run in range(self.experiment.runs_of(case)):
                result.update(f"{case.name}|{run}|{self.read(case, run).content}|".encode())
        return result.hexdigest()


def find_stores(directory: Any) -> list[Store]:
    """The store in ``directory``, or those in its folders.

    Raises
    ------
    ExperimentError
        If there is none.
    """
    folder = Path(directory)
    if (folder / DESCRIPTION).is_file():
        return [Store.at(folder)]
    found = sorted(path.parent for path in folder.glob(f"*/{DESCRIPTION}"))
    if not found:
        raise ExperimentError(f"{folder} holds no experiment: neither it nor a folder in it has an {DESCRIPTION}")
    return [Store.at(path) for path in found]


def _claim(lock: Any, directory: Path) -> None:
    """Lock a file until it is closed, or its process ends in whatever way."""
    if fcntl is not None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExperimentError(f"another process is at work on {directory}; wait for it, or stop it") from None


def _read_description(path: Path) -> Experiment:
    with _explained(path):
        data = path.read_bytes()
    try:
        content = json.loads(data)
        if content["format"] != FORMAT:
            raise ExperimentError(f"{path} has format {content['format']}; this version of brmdp reads {FORMAT}")
        return Experiment.from_description(content["experiment"])
    except (ValueError, KeyError, TypeError, InvalidInputError) as error:
        raise ExperimentError(
            f"{path} is damaged ({type(error).__name__}: {error}). Delete it and run the experiment again: finished runs are "
            f"kept, since each file carries its own description"
        ) from error


def _comparable(experiment: Experiment) -> dict[str, Any]:
    """What must agree: all that determines the results but the number of runs."""
    description = experiment.describe()
    cases = {case["name"]: _essential(case) for case in description["cases"]}
    return dict(_plain({"name": experiment.name, "seed": experiment.seed, "cases": cases}))


def _values(column: Any) -> Any:
    return column.to_numpy(zero_copy_only=False)


def _unfinished(path: Path) -> Path:
    """Its name while being written: one process writes at a time, and readers of Parquet folders skip dots."""
    return path.with_name(f".{path.name}")


def _write(path: Path, data: bytes) -> None:
    """All or nothing, and on disk when this returns."""
    with _explained(path):
        temporary = _unfinished(path)
        try:
            with temporary.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if os.name == "posix":  # the folder's entry, too
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say which file or folder the operating system refuses, and that nothing is lost."""
    try:
        yield
    except OSError as error:
        raise ExperimentError(
            f"{error.filename or path}: {error.strerror or error}. Finished runs are intact; remove the cause, or choose another "
            f"folder, and run the same command again"
        ) from error
