"""Results on disk: a folder per experiment, a Parquet file per run, each complete or absent.

::

    DIR/NAME/experiment.json              what was asked for, and the digests of the worlds and of the code
    DIR/NAME/runs/aq-brmdp--0007.parquet  run 7 of the case aq-brmdp, one row per step (or as a computation has it)
    DIR/NAME/set-aside/                   files that failed verification: never used, never deleted

A file is written under a name that begins with a dot, flushed, and moved into place. It carries
what it is (case, seed, run), what made it (digests of world and code, versions), how long it took,
and a SHA-256 digest over all of that and over every column. Reading verifies everything; a file
that fails is not used.

Runs made by other code, or in another world, are never mixed: such a folder can be read and
reported, but is not added to. Files of format 1 carry neither digest; they are read as made by
something unknown.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from brmdp._extras import EXTRAS, optional
from brmdp._files import write_atomically
from brmdp._version import installed_version
from brmdp.errors import CorruptFileError, ExperimentError, InvalidInputError, OtherOriginError
from brmdp.runs.execute import Replication, RunRecord, extra_of, worlds_of
from brmdp.runs.origin import CODE, UNKNOWN, Origin, short
from brmdp.runs.parquet import (
    LARGEST,
    metadata_of,
    read_within_limits,
    require_within_limits,
)
from brmdp.runs.records import CaseRecords, Replications
from brmdp.runs.spec import Case, Computation, Experiment, file_name

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

FORMAT = 2
"""Of the files; to be raised when the same description would no longer give the same content."""

WITHOUT_DIGESTS = 1
"""The format of files that do not say what world and code made them.

They are read, and never added to.
"""

LARGEST_DESCRIPTION = 2**26
"""Most bytes of an ``experiment.json``."""

DESCRIPTION = "experiment.json"
STEPPED = ("state", "action", "reward", "episode", "true_regret", "robust_regret")
EPISODIC = ("levels", "iterations", "residual", "error_bound", "status")
ABSENT = object()


# --- one run as bytes -----------------------------------------------------------------------------


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
    code, world : str
        Digests of what made it; empty if it does not say.
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
        If it is so large that it would not be read again.
    """
    parquet = optional("pyarrow.parquet")
    facts = {
        "format": FORMAT,
        **_identity(case, seed, run),
        "code": CODE,
        "world": record.world,
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
        If it has a format of the future.
    """
    with _damage_named(source):
        metadata = metadata_of(data)
        text, seal = metadata[b"brmdp"].decode(), metadata[b"sha256"].decode()
        facts = _facts(text, source)
        steps = case.steps if isinstance(case, Case) else None
    differing = _differences(facts, _plain(_identity(case, seed, run)))
    if differing:
        raise CorruptFileError(f"{source} holds another run: {differing}")
    with _damage_named(source):
        table = read_within_limits(data, steps, _schema() if isinstance(case, Case) else None)
        content = _content(table)
        seconds, made_with = (
            float(facts["seconds"]),
            {str(name): str(n) for name, n in facts["versions"].items()},
        )
        n_states = int(facts.get("n_states", 0))
    if _seal(content, text) != seal:
        raise CorruptFileError(f"{source} is damaged: its content does not match its digest")
    return StoredRun(
        run, table, n_states, seconds, made_with, content, facts["code"], facts["world"]
    )


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


def _facts(text: str, source: Any) -> dict[str, Any]:
    """What a file says about itself, in today's terms."""
    facts = dict(json.loads(text))
    if facts["format"] not in (WITHOUT_DIGESTS, FORMAT):
        raise OtherOriginError(
            f"{source} has format {facts['format']}; this version of brmdp reads {_formats()}"
        )
    if facts["format"] == WITHOUT_DIGESTS:
        facts |= {"code": UNKNOWN, "world": UNKNOWN}
    if not isinstance(facts["code"], str) or not isinstance(facts["world"], str):
        raise ValueError("code and world must be text")
    return facts


def _formats() -> str:
    return f"{WITHOUT_DIGESTS} and {FORMAT}"


def _identity(case: Case | Computation, seed: int, run: int) -> dict[str, Any]:
    """What is asked for."""
    return {"case": _essential(case.describe()), "seed": seed, "run": run}


def _essential(case: Mapping[str, Any]) -> dict[str, Any]:
    """Without what determines no result."""
    return {key: value for key, value in case.items() if key not in ("reported_steps", "max_runs")}


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of what results depend on, here and now."""
    packages = {name: version(name) for name in ("numpy", "scipy", "numba", "gymnasium")}
    return {"brmdp": installed_version(), **packages, "python": platform.python_version()}


def extra_versions(case: Case | Computation) -> dict[str, str]:
    """Of what the results of a case depend on besides."""
    extra = extra_of(case)
    return {} if extra is None else {name: version(name) for name in EXTRAS[extra]}


def _schema() -> Any:
    pa = optional("pyarrow")
    types = {
        **dict.fromkeys(("state", "action", "episode", "iterations"), pa.int32()),
        **dict.fromkeys(
            ("reward", "true_regret", "robust_regret", "residual", "error_bound", "quantile_value"),
            pa.float64(),
        ),
        "levels": pa.list_(pa.field("element", pa.float64())),  # as Parquet calls it
        "status": pa.string(),
    }
    return pa.schema([(name, types[name]) for name in (*STEPPED, *EPISODIC, "quantile_value")])


def _table(record: RunRecord) -> Any:
    """One row per step.

    What belongs to a pseudo-episode stands at its first step, and is null elsewhere.
    """
    pa = optional("pyarrow")
    history = record.history
    steps = len(history)

    def at(positions: Any, values: Any) -> list[Any]:
        column: list[Any] = [None] * steps
        for position, value in zip(positions, values, strict=True):
            column[position] = value
        return column

    columns: dict[str, Any] = {name: getattr(history, name) for name in STEPPED}
    columns |= {
        name: at(history.episodes.first_step, getattr(history.episodes, name)) for name in EPISODIC
    }
    columns["levels"] = [None if levels is None else levels.ravel() for levels in columns["levels"]]
    columns["quantile_value"] = at(history.quantile_step, history.quantile_value)
    schema = _schema()
    return pa.table(
        [
            pa.nulls(steps, field.type)
            if columns[field.name] is None
            else pa.array(columns[field.name], field.type)
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
            yield from _differing(
                stored.get(key, ABSENT), asked.get(key, ABSENT), f"{where}.{key}" if where else key
            )
    elif isinstance(stored, list) and isinstance(asked, list) and len(stored) == len(asked):
        for position, (left, right) in enumerate(zip(stored, asked, strict=True)):
            yield from _differing(left, right, f"{where}[{position}]")
    elif stored != asked:
        yield f"{where} is {_short(stored)}, asked for {_short(asked)}"


def _short(value: Any) -> str:
    text = "absent" if value is ABSENT else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


# --- the folder -----------------------------------------------------------------------------------


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
    foreign : mapping
        Runs made by other code, or in another world, than the store's, with what differs; never
        used.
    """

    case: Case | Computation
    finished: tuple[int, ...]
    missing: tuple[int, ...]
    damaged: Mapping[int, str]
    versions: frozenset[tuple[str, str]]
    foreign: Mapping[int, str]


@dataclass(frozen=True)
class Store:
    """The folder of one experiment.

    Attributes
    ----------
    directory : Path
        DIR/NAME.
    experiment : Experiment
        What is asked for; the store may hold more runs.
    origin : Origin or None
        What its runs were made by: others are not read. None if that is not known, and then all
        must agree.
    """

    directory: Path
    experiment: Experiment
    origin: Origin | None = None

    @classmethod
    @contextmanager
    def opened(
        cls, directory: Any, experiment: Experiment, *, accept_other_code: bool = False
    ) -> Iterator[Self]:
        """The store of ``experiment`` under ``directory``, for writing by this process alone.

        Made if need be, extended if more runs are wanted, and cleared of what killed processes left
        unfinished.

        Parameters
        ----------
        directory : path
        experiment : Experiment
        accept_other_code : bool
            Whether runs of today's code may be added to those of another. The store remembers both.

        Raises
        ------
        ExperimentError
            If the folder holds an experiment with other parameters, cannot be written, or is in
            use.
        OtherOriginError
            If its runs were made in another world or by other code.
        """
        store = cls(
            Path(directory) / experiment.name,
            experiment,
            Origin((CODE,), worlds_of(experiment.cases)),
        )
        description = store.directory / DESCRIPTION
        with _explained(store.directory):
            store.directory.mkdir(parents=True, exist_ok=True)
            lock = _lock_file(store.directory / ".lock")
        try:
            _claim(lock, store.directory)
            known = _read_description(description) if description.exists() else None
            if known is None:
                store = store._joined(store._found_origin(), accept_other_code)
            else:
                store._require_same(known.experiment)
                store = store._joined(known.origin, accept_other_code)
            with _explained(store.directory):
                (store.directory / "runs").mkdir(exist_ok=True)
                store._clear()
            if (
                known is None
                or known.experiment.runs < experiment.runs
                or known.origin != store.origin
            ):
                wanted = (
                    experiment
                    if known is None or known.experiment.runs < experiment.runs
                    else known.experiment
                )
                _write(description, _described(wanted, store.origin))
            yield store
        finally:
            os.close(lock)

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
        known = _read_description(path)
        return cls(Path(directory), known.experiment, known.origin)

    def _require_same(self, known: Experiment) -> None:
        differing = _differences(_comparable(known), _comparable(self.experiment))
        if differing:
            raise ExperimentError(
                f"{self.directory} was made with other parameters, and results must not be mixed: "
                f"{differing}. Choose another folder, or move this one away"
            )

    def _joined(self, stored: Origin | None, accept_other_code: bool) -> Self:
        """The store, if what made its runs is what would go on with them."""
        if stored is None or not self._run_files():
            return self
        assert self.origin is not None
        where = f"{self.directory} holds runs"
        remedy = (
            "results must not be mixed. Choose another folder, or move this one away; it can still "
            "be reported"
        )
        if UNKNOWN in stored.code:
            raise OtherOriginError(
                f"{where} that do not say what code and world made them (format 1), and {remedy}"
            )
        others = [
            name
            for name, world in self.origin.worlds.items()
            if stored.worlds.get(name, UNKNOWN) != world
        ]
        if others:
            theirs, ours = stored.worlds.get(others[0], UNKNOWN), self.origin.worlds[others[0]]
            raise OtherOriginError(
                f"{where} of {others[0]!r} made in another world: the digest of its tables was "
                f"{short(theirs)} and is now {short(ours)}; {remedy}"
            )
        code = tuple(dict.fromkeys((*stored.code, CODE)))
        if len(code) > len(stored.code) and not accept_other_code:
            raise OtherOriginError(
                f"{where} made by other code: the digest was {', '.join(map(short, stored.code))} "
                f"and is now {short(CODE)} (brmdp {installed_version()}); {remedy}. If you are "
                "sure that the results are the same, say so: --accept-other-code, or "
                "accept_other_code=True"
            )
        return type(self)(self.directory, self.experiment, Origin(code, self.origin.worlds))

    def _found_origin(self) -> Origin | None:
        """What made the runs in a folder without a description, by their own account.

        None if there are none.
        """
        found = []
        for path in self._run_files():
            try:
                facts = _facts(metadata_of(_content_of(path, LARGEST))[b"brmdp"].decode(), path)
                found.append((facts["case"]["name"], facts["code"], facts["world"]))
            except OtherOriginError:
                raise
            except Exception:  # damaged: to be named and set aside later
                continue
        assert self.origin is not None
        ours = self.origin.worlds
        worlds = {**ours, **{name: world for name, _, world in found if world != ours.get(name)}}
        return Origin(tuple(dict.fromkeys(code for _, code, _ in found)), worlds) if found else None

    def _run_files(self) -> list[Path]:
        folder = self.directory / "runs"
        with _explained(folder):
            names = sorted(os.listdir(folder)) if folder.exists() else []
        return [folder / name for name in names if re.fullmatch(r"[^.].*--\d+\.parquet", name)]

    def _clear(self) -> None:
        """Remove what killed processes left unfinished.

        Files of ours by name, in a folder of ours, and no links.
        """
        runs = self.directory / "runs"
        if runs.is_symlink():
            return
        for entry in os.scandir(runs):
            if UNFINISHED.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                os.unlink(entry)

    def world_of(self, case: Case | Computation) -> str | None:
        """Digest of the world of a case; None if that is not known."""
        return None if self.origin is None else self.origin.worlds.get(case.name, UNKNOWN)

    def path(self, case: Case | Computation, run: int) -> Path:
        """Where a run is, or will be."""
        return self.directory / "runs" / f"{file_name(case.name)}--{run:04d}.parquet"

    def write(self, case: Case | Computation, run: int, data: bytes) -> None:
        """Keep what :func:`encode` made, completely or not at all.

        Raises
        ------
        OtherOriginError
            If whoever made it has other code, or another world.
        ExperimentError
            If the disk is full or the folder cannot be written.
        """
        if self.origin is not None:
            what = f"run {run} of {case.name}, which a worker sent,"
            try:
                facts = _facts(metadata_of(data)[b"brmdp"].decode(), what)
            except OtherOriginError:
                raise
            except Exception as error:
                raise ExperimentError(f"{what} cannot be read: {error}") from error
            try:
                Origin((CODE,), self.origin.worlds).require(
                    what, case.name, facts["code"], facts["world"]
                )
            except OtherOriginError as error:
                theirs = dict(facts.get("versions") or {}).get("brmdp", "unknown")
                raise OtherOriginError(
                    f"{error} (brmdp {theirs} there, {installed_version()} here). Results must not "
                    "be mixed: give all workers the same brmdp and the same environments"
                ) from None
        _write(self.path(case, run), data)

    def read(self, case: Case | Computation, run: int) -> StoredRun:
        """A stored run, verified.

        Raises
        ------
        CorruptFileError
            If it is not what it should be.
        OtherOriginError
            If it was made by other code, or in another world, than the store's runs.
        ExperimentError
            If it is not there or cannot be read.
        """
        path = self.path(case, run)
        if not os.path.lexists(path):
            raise ExperimentError(f"run {run} of {case.name} is not finished: there is no {path}")
        with _explained(path):
            data = _content_of(path, LARGEST)
        stored = decode(data, case, self.experiment.seed, run, path)
        if self.origin is not None:
            self.origin.require(str(path), case.name, stored.code, stored.world)
        return stored

    def status(self, case: Case | Computation) -> CaseStatus:
        """Which of the wanted runs are finished, missing, damaged or foreign.

        Verifies every file.
        """
        finished, missing = [], []
        damaged: dict[int, str] = {}
        foreign: dict[int, str] = {}
        versions: set[tuple[str, str]] = set()
        present = {path.name for path in self._run_files()}
        for run in range(self.experiment.runs_of(case)):
            if self.path(case, run).name not in present:
                missing.append(run)
                continue
            try:
                versions.update(self.read(case, run).versions.items())
                finished.append(run)
            except CorruptFileError as error:
                damaged[run] = str(error)
            except OtherOriginError as error:
                foreign[run] = str(error)
        return CaseStatus(
            case, tuple(finished), tuple(missing), damaged, frozenset(versions), foreign
        )

    def require_no_foreign(self, statuses: Iterable[CaseStatus]) -> None:
        """Refuse to go on with a folder into which runs of another origin were put.

        Raises
        ------
        OtherOriginError
            With the first of them.
        """
        reasons = [reason for found in statuses for reason in found.foreign.values()]
        if reasons:
            more = f", and {len(reasons) - 1} more are alike" if len(reasons) > 1 else ""
            raise OtherOriginError(f"{reasons[0]}{more}. Results must not be mixed: move them away")

    def set_aside(self, case: Case | Computation, run: int) -> Path:
        """Move a file out of the way, and say where to."""
        path = self.path(case, run)
        folder = self.directory / "set-aside"
        with _explained(folder):
            folder.mkdir(exist_ok=True)
            names = itertools.chain(
                [path.name], (f"{path.stem}.{n}.parquet" for n in itertools.count(2))
            )
            target = next(folder / name for name in names if not (folder / name).exists())
            path.rename(target)
        return target

    def files_set_aside(self) -> list[str]:
        """Names of what was moved out of the way."""
        return sorted(path.name for path in self.directory.glob("set-aside/*"))

    def records(
        self, case_name: str, runs: Sequence[int] | None = None
    ) -> CaseRecords | Replications:
        """Runs of a case side by side.

        Parameters
        ----------
        case_name : str
        runs : sequence of int, optional
            Which; by default all that are wanted.

        Raises
        ------
        ExperimentError, CorruptFileError
            If a run is missing or damaged.
        OtherOriginError
            If they were not all made by the same code in the same world.
        """
        case = self.experiment.case(case_name)
        chosen = list(range(self.experiment.runs_of(case))) if runs is None else list(runs)
        if not chosen:
            raise InvalidInputError(f"runs must be one or more; got {runs!r}")
        stored = [self.read(case, run) for run in chosen]
        origin = (
            Origin((stored[0].code,), {case.name: stored[0].world})
            if self.origin is None
            else self.origin
        )
        for item in stored:
            origin.require(str(self.path(case, item.run)), case.name, item.code, item.world)
        numbers, seconds = np.array(chosen), np.array([item.seconds for item in stored])
        made = tuple(
            sorted({(item.versions.get("brmdp", "unknown"), item.code) for item in stored})
        )

        def stacked(name: str) -> Any:
            return np.stack([_values(item.table[name]) for item in stored])

        if isinstance(case, Computation):
            columns = {name: stacked(name) for name in stored[0].table.column_names}
            return Replications(case, numbers, columns, seconds, made)
        recorded = stored[0].table["quantile_value"].is_valid().to_numpy()
        return CaseRecords(
            case=case,
            run=numbers,
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
            made_by=made,
        )

    def digest(self) -> str:
        """SHA-256 over the results of all wanted runs.

        Equal for equal results, however and in what time computed.
        """
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
        raise ExperimentError(
            f"{folder} holds no experiment: neither it nor a folder in it has an {DESCRIPTION}"
        )
    return [Store.at(path) for path in found]


UNFINISHED = re.compile(r"\..+--\d+\.parquet\.unfinished-[\da-f-]+")
"""Names of runs that are being written; see :func:`brmdp._files.write_atomically`."""


@dataclass(frozen=True)
class _Described:
    """What an ``experiment.json`` says."""

    experiment: Experiment
    origin: Origin


def _lock_file(path: Path) -> int:
    """Open it without changing it, nor what somebody may have linked to that name."""
    return os.open(
        path,
        os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0),
        0o666,
    )


def _claim(lock: int, directory: Path) -> None:
    """Lock a file until it is closed, or its process ends in whatever way."""
    if fcntl is not None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExperimentError(
                f"another process is at work on {directory}; wait for it, or stop it"
            ) from None
        except OSError as error:
            raise ExperimentError(
                f"{directory} cannot be kept for this process alone: {error.strerror or error}. "
                "Choose a folder on a disk that can lock files"
            ) from error


def _described(experiment: Experiment, origin: Origin | None) -> bytes:
    assert origin is not None
    content = {
        "format": FORMAT,
        "experiment": experiment.describe(),
        "code": list(origin.code),
        "worlds": dict(origin.worlds),
    }
    return json.dumps(content, indent=1, ensure_ascii=False).encode()


def _read_description(path: Path) -> _Described:
    with _explained(path):
        if not path.is_file():
            raise InvalidInputError("it is not a regular file")
        size = path.stat().st_size
        data = path.read_bytes() if size <= LARGEST_DESCRIPTION else b""
    try:
        if size > LARGEST_DESCRIPTION:
            raise ValueError(f"it must have at most {LARGEST_DESCRIPTION:,} bytes; it has {size:,}")
        content = json.loads(data)
        if content["format"] not in (WITHOUT_DIGESTS, FORMAT):
            raise ExperimentError(
                f"{path} has format {content['format']}; this version of brmdp reads {_formats()}"
            )
        experiment = Experiment.from_description(content["experiment"])
        if content["format"] == WITHOUT_DIGESTS:
            return _Described(experiment, Origin((UNKNOWN,), {}))
        code, worlds = (
            tuple(map(str, content["code"])),
            {str(k): str(v) for k, v in content["worlds"].items()},
        )
        return _Described(experiment, Origin(code, worlds))
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        InvalidInputError,
    ) as error:
        raise ExperimentError(
            f"{path} is damaged ({type(error).__name__}: {error}). Delete it and run the "
            "experiment again: finished runs are kept, since each file carries its own description"
        ) from error


def _content_of(path: Path, largest: int) -> bytes:
    """All of a file, unless it is too large or no file at all."""
    if not path.is_file():
        raise CorruptFileError(f"{path} is no file")
    size = path.stat().st_size
    if size > largest:
        raise CorruptFileError(f"{path} must have at most {largest:,} bytes; it has {size:,}")
    return path.read_bytes()


def _comparable(experiment: Experiment) -> dict[str, Any]:
    """What must agree: all that determines the results but the number of runs."""
    description = experiment.describe()
    cases = {case["name"]: _essential(case) for case in description["cases"]}
    return dict(_plain({"name": experiment.name, "seed": experiment.seed, "cases": cases}))


def _values(column: Any) -> Any:
    return column.to_numpy(zero_copy_only=False)


def _write(path: Path, data: bytes) -> None:
    """All or nothing, and on disk when this returns."""
    with _explained(path):
        write_atomically(path, partial(_put, data))


def _put(data: bytes, stream: BinaryIO) -> None:
    stream.write(data)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say which file or folder the operating system refuses, and that nothing is lost."""
    try:
        yield
    except (OSError, InvalidInputError) as error:
        reason = f"{path}: {error}"
        if isinstance(error, OSError):
            reason = f"{error.filename or path}: {error.strerror or error}"
        raise ExperimentError(
            f"{reason}. Finished runs are intact; remove the cause, or choose another folder, and "
            "run the same command again"
        ) from error
