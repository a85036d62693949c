"""Results on disk: one folder per experiment, one Parquet file per run, each complete or absent.

::

    DIR/NAME/experiment.json              what was asked for, and digests of worlds and code
    DIR/NAME/runs/aq-brmdp--0007.parquet  run 7 of the case aq-brmdp, one row per step
    DIR/NAME/set-aside/                   files that failed verification: neither used nor deleted

A file is written under a name that begins with a dot, flushed, and moved into place. Its content
is described in :mod:`brmdp.runs.encoding`. Reading verifies everything; a file that fails is not
used.

Runs made by other code, or in another world, are never mixed with those made here. Their folder can
be read and reported, but nothing is added to it. Files of format 1 carry no digests; their origin
counts as unknown.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import re
import reprlib
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from brmdp._columns import Columns, column, columns_of
from brmdp._extras import optional
from brmdp._files import digest, write_bytes
from brmdp._validation import BoolArray, FloatArray, IntArray, as_index
from brmdp._version import installed_version
from brmdp.beliefs import Belief
from brmdp.beliefs.checked import is_builtin, learns_rewards
from brmdp.errors import (
    CorruptFileError,
    ExperimentError,
    InvalidInputError,
    MissingExtraError,
    OtherOriginError,
)
from brmdp.runs.catalogue import make_setting, references_of
from brmdp.runs.encoding import (
    StoredRun,
    decode,
    differences,
    essential,
    facts_of,
    plain,
    values_of,
)
from brmdp.runs.execution import digest_of, digests_of
from brmdp.runs.former import FORMAT, FORMATS, WITHOUT_DIGESTS, in_words, upgraded
from brmdp.runs.lake import LAKE
from brmdp.runs.origin import CODE, UNKNOWN, Origin, run_digest, short
from brmdp.runs.parquet import LARGEST, metadata_of
from brmdp.runs.program import known_program
from brmdp.runs.records import CaseRecords, Replications
from brmdp.runs.spec import MAX_RUNS, Case, Computation, Experiment, file_name
from brmdp.runs.streams import run_seed, streams_of
from brmdp.simulation import Steps

try:
    import fcntl
except ModuleNotFoundError:  # pragma: no cover - not a Unix
    fcntl = None  # type: ignore[assignment]

__all__ = ["CaseStatus", "Store", "find_stores"]

LARGEST_DESCRIPTION = 2**26
"""Largest size of an ``experiment.json``, in bytes."""

DESCRIPTION = "experiment.json"

# --- the folder -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CaseStatus:
    """The state of one case in a store.

    Attributes
    ----------
    case : Case or Computation
    finished : tuple of int
        Runs whose files passed verification.
    missing : tuple of int
        Wanted runs without a file.
    damaged : mapping
        Runs whose files failed verification, with the reason.
    versions : set of (package, version)
        Packages and versions that made the finished runs.
    foreign : mapping
        Runs made by other code or in another world than the store's, with the difference. They are
        never used.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     status = store.status(case)
    >>> status.finished, status.missing
    ((0, 1), ())
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
        The folder, DIR/NAME.
    experiment : Experiment
        The experiment asked for; the folder may hold more runs than it asks for.
    origin : Origin or None
        The code and worlds that made the runs; runs of another origin are not read. If None, the
        origin is not known and only has to be the same for all runs.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, Store, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     store = Store.at(f"{folder}/try")
    ...     table = store.to_arrow()
    >>> table.num_rows
    400
    """

    directory: Path
    experiment: Experiment
    origin: Origin | None = None

    @classmethod
    @contextmanager
    def opened(
        cls,
        directory: str | os.PathLike[str],
        experiment: Experiment,
        *,
        accept_other_code: bool = False,
    ) -> Iterator[Self]:
        """Open the store of ``experiment`` under ``directory`` for writing by this process alone.

        The folder is created if it does not exist. The stored description is updated with the
        experiment's title, labels and reported steps, and never asks for fewer runs than before.
        Unfinished files left behind by killed processes are removed.

        Parameters
        ----------
        directory : path
            Parent folder; the store is its folder named after the experiment.
        experiment : Experiment
            The experiment; it may ask for more runs than the store holds.
        accept_other_code : bool
            Whether runs of the present code may be added to runs made by other code. The store
            remembers both.

        Raises
        ------
        ExperimentError
            If the folder holds an experiment with other parameters, cannot be written, or is in
            use by another process.
        OtherOriginError
            If its runs were made in another world or by other code.
        """
        store = cls(
            Path(directory) / experiment.name,
            experiment,
            Origin((CODE,), digests_of(experiment.cases)),
        )
        description = store.directory / DESCRIPTION
        with _explained(store.directory):
            store.directory.mkdir(parents=True, exist_ok=True)
            lock = _lock_file(store.directory / ".lock")
        try:
            _claim(lock, store.directory)
            known = _read_description(description) if description.exists() else None
            if known is None:
                found = store._found_origin()
                store = store._joined(found, (CODE,), accept_other_code)
            else:
                store._require_same(known.experiment)
                stored = known.origin.code
                accepted = stored if CODE in stored else ()
                store = store._joined(known.origin, accepted, accept_other_code)
            with _explained(store.directory):
                (store.directory / "runs").mkdir(exist_ok=True)
                store._clear()
            wanted = experiment if known is None else _with_runs_of(experiment, known.experiment)
            if (
                known is None
                or known.origin != store.origin
                or plain(known.experiment.describe()) != plain(wanted.describe())
            ):
                _write(description, _described(wanted, store.origin))
            yield store
        finally:
            os.close(lock)

    @classmethod
    def at(cls, directory: str | os.PathLike[str]) -> Self:
        """Open the store in a folder for reading.

        Raises
        ------
        ExperimentError
            If the folder holds no store, or its description is damaged.
        """
        path = Path(directory) / DESCRIPTION
        if not path.is_file():
            raise ExperimentError(f"{directory} holds no experiment: there is no {DESCRIPTION}")
        known = _read_description(path)
        return cls(Path(directory), known.experiment, known.origin)

    def _require_same(self, known: Experiment) -> None:
        differing = differences(_comparable(known), _comparable(self.experiment))
        if differing:
            raise ExperimentError(
                f"{self.directory} was made with other parameters, and results must not be mixed: "
                f"{differing}. Choose another folder, or move this one away"
            )

    def _joined(
        self, stored: Origin | None, accepted: Sequence[str], accept_other_code: bool
    ) -> Self:
        """The store, if its runs have the origin that further runs would have.

        Parameters
        ----------
        stored : Origin or None
            The origin of its runs; None if there are none.
        accepted : sequence of str
            Digests of code whose runs may be together with those of the present code.
        accept_other_code : bool
            Whether runs of any code may be.
        """
        if stored is None or not self._run_files():
            return self
        assert self.origin is not None
        where = f"{self.directory} holds runs"
        remedy = (
            "results must not be mixed. Choose another folder, or move this one away; `brmdp "
            "report` still reads it"
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
            what = "in another world or with other parts: their digest"
            if isinstance(self.experiment.case(others[0]), Computation):
                what = "by another program: the digest of its file"
            raise OtherOriginError(
                f"{where} of {others[0]!r} made {what} was {short(theirs)} and is now "
                f"{short(ours)}; {remedy}"
            )
        code = tuple(dict.fromkeys((*stored.code, CODE)))
        others = [one for one in stored.code if one not in accepted]
        if others and not accept_other_code:
            raise OtherOriginError(
                f"{where} made by other code: the digest was {', '.join(map(short, others))} "
                f"and is now {short(CODE)} (brmdp {installed_version()}); {remedy}. If you are "
                "sure that the results are the same, say so: --accept-other-code, or "
                "accept_other_code=True"
            )
        return type(self)(self.directory, self.experiment, Origin(code, self.origin.worlds))

    def _found_origin(self) -> Origin | None:
        """The origin of the runs in a folder without a description, as the runs state it.

        None if there are no runs.
        """
        found = []
        for path in self._run_files():
            try:
                facts = facts_of(metadata_of(_content_of(path, LARGEST))[b"brmdp"].decode(), path)
                found.append((facts["case"]["name"], facts["code"], facts["world"]))
            except OtherOriginError:
                raise
            except Exception:  # damaged: reported and set aside later
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
        """Remove unfinished files left behind by killed processes.

        Only regular files with names of ours are removed, and only from a folder of ours.
        """
        runs = self.directory / "runs"
        if runs.is_symlink():
            return
        for entry in os.scandir(runs):
            if UNFINISHED.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                os.unlink(entry)

    def world_of(self, case: Case | Computation) -> str | None:
        """Digest of the world of a case; None if it is not known."""
        return None if self.origin is None else self.origin.worlds.get(case.name, UNKNOWN)

    def path(self, case: Case | Computation, run: int) -> Path:
        """Path of the file of a run, whether it exists or not."""
        return self.directory / "runs" / f"{file_name(case.name)}--{run:04d}.parquet"

    def write(self, case: Case | Computation, run: int, data: bytes) -> None:
        """Write the file of a run, completely or not at all.

        Parameters
        ----------
        case : Case or Computation
        run : int
        data : bytes
            The content of the file, from :func:`brmdp.runs.encoding.encode`.

        Raises
        ------
        OtherOriginError
            If the run was made by other code or in another world.
        ExperimentError
            If the disk is full or the folder cannot be written.
        """
        if self.origin is not None:
            what = f"run {run} of {case.name}, which a worker sent,"
            try:
                facts = facts_of(metadata_of(data)[b"brmdp"].decode(), what)
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
        """Read a run and verify it.

        Raises
        ------
        CorruptFileError
            If the file fails verification.
        OtherOriginError
            If the run was made by other code, or in another world, than the store's runs.
        ExperimentError
            If there is no such file, or it cannot be read.
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
        """Verify every file of a case: which runs are finished, missing, damaged or foreign."""
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
        """Raise an error if there are runs of another origin in the folder.

        Raises
        ------
        OtherOriginError
            The message names the first of them.
        """
        reasons = [reason for found in statuses for reason in found.foreign.values()]
        if reasons:
            more = f" (and {len(reasons) - 1} more like it)" if len(reasons) > 1 else ""
            raise OtherOriginError(
                f"{reasons[0]}{more}. Results must not be mixed: move these runs elsewhere"
            )

    def set_aside(self, case: Case | Computation, run: int) -> Path:
        """Move the file of a run to ``set-aside``, and return its new path."""
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
        """Names of the files in ``set-aside``."""
        return sorted(path.name for path in self.directory.glob("set-aside/*"))

    def records(
        self, case_name: str, runs: Sequence[int] | None = None
    ) -> CaseRecords | Replications[Any]:
        """The runs of a case as arrays with one row per run.

        Parameters
        ----------
        case_name : str
        runs : sequence of int, optional
            Numbers of the runs to read, each once; by default all wanted runs.

        Raises
        ------
        InvalidInputError
            If ``runs`` is empty or holds anything but distinct integers from 0 to 99,999.
        ExperimentError, CorruptFileError
            If a run is missing or damaged, or runs of a computation have different numbers of rows.
        OtherOriginError
            If the runs were not all made by the same code in the same world.
        """
        case = self.experiment.case(case_name)
        chosen = list(range(self.experiment.runs_of(case))) if runs is None else _as_runs(runs)
        stored = self._read_together(case, chosen)
        numbers, seconds = np.array(chosen), np.array([item.seconds for item in stored])
        made = {
            (item.versions.get("brmdp", "unknown"), run_digest(case, item.code, item.world))
            for item in stored
        }

        def stacked(name: str) -> Any:
            return np.stack([values_of(item.table[name]) for item in stored])

        if isinstance(case, Computation):
            lengths = sorted({item.table.num_rows for item in stored})
            if len(lengths) > 1:
                raise ExperimentError(
                    f"runs of {case_name} must have the same number of rows to be read as arrays; "
                    f"got {' and '.join(map(str, lengths[:3]))} rows. Use to_arrow() or "
                    "to_frame(), which put one run below the other"
                )
            names = stored[0].table.column_names
            columns = _columns_class(case, stored[0].table)(
                **{name: stacked(name) for name in names}
            )
            return Replications(case, numbers, columns, seconds, tuple(sorted(made)))
        first = stored[0].table
        steps: dict[str, Any] = {}
        for one in columns_of(Steps):
            # a run of an older format may lack columns that the others have
            absent = one.optional and any(
                item.table[one.name].null_count == item.table.num_rows for item in stored
            )
            steps[one.name] = None if absent else stacked(one.name)
            if not absent and one.type == "integer":
                steps[one.name] = steps[one.name].astype(np.int64)
        looked = first["quantile_value"].is_valid().to_numpy()
        return CaseRecords(
            **steps,
            quantile_step=np.flatnonzero(looked),
            quantile_value=stacked("quantile_value")[:, looked],
            case=case,
            run=numbers,
            seconds=seconds,
            n_states=stored[0].n_states,
            made_by=tuple(sorted(made)),
        )

    def _read_together(self, case: Case | Computation, runs: Iterable[int]) -> list[StoredRun]:
        """Runs of a case, all made by the same code in the same world."""
        stored = [self.read(case, run) for run in runs]
        origin = self.origin
        if origin is None and stored:
            origin = Origin((stored[0].code,), {case.name: stored[0].world})
        for item in stored:
            assert origin is not None
            origin.require(str(self.path(case, item.run)), case.name, item.code, item.world)
        return stored

    def to_arrow(self, cases: Sequence[str] | None = None) -> Any:
        """All finished runs as one :class:`pyarrow.Table`; see :meth:`to_frame`."""
        return self._table(cases)

    def _table(self, cases: Sequence[str] | None) -> Any:
        """The table of :meth:`to_arrow`; warnings point at the caller of the calling method."""
        pa = optional("pyarrow")
        statuses = [self.status(case) for case in self._chosen(cases)]
        self.require_no_foreign(statuses)
        _require_no_damaged(statuses)
        tables = []
        for found in statuses:
            case = found.case
            for stored in self._read_together(case, found.finished):
                table, n = stored.table, stored.table.num_rows
                row = "step" if isinstance(case, Case) else "row"
                keys = {
                    "case": pa.array([case.name] * n, pa.string()),
                    "run": pa.array(np.full(n, stored.run, dtype=np.int32)),
                    row: pa.array(np.arange(n, dtype=np.int32)),
                }
                columns = {**keys, **{key: table[key] for key in table.column_names}}
                tables.append(pa.table(columns))
        if not tables:
            names = ", ".join(found.case.name for found in statuses)
            raise ExperimentError(f"{self.directory} has no finished run of {names}")
        missing = [
            f"{len(found.missing)} of {self.experiment.runs_of(found.case)} runs of "
            f"{found.case.name}"
            for found in statuses
            if found.missing
        ]
        if missing:
            warnings.warn(
                f"{self.directory}: the table lacks {', '.join(missing)}, which are not finished",
                RuntimeWarning,
                stacklevel=3,
            )
        for table in tables:
            if table.schema != tables[0].schema:
                raise InvalidInputError(
                    "cases must have the same columns to be put into one table: choose such cases "
                    "with cases=[…]"
                )
        return pa.concat_tables(tables)

    def _chosen(self, names: Sequence[str] | None) -> list[Case | Computation]:
        """The cases with these names; by default all."""
        if names is None:
            return list(self.experiment.cases)
        if isinstance(names, str):
            raise InvalidInputError(f"cases must be a list of names; got {names!r}")
        chosen = [self.experiment.case(name) for name in names]
        if not chosen:
            raise InvalidInputError(f"cases must name at least one case; got {names!r}")
        name, times = Counter(case.name for case in chosen).most_common(1)[0]
        if times > 1:
            raise InvalidInputError(f"cases must name each case once; got {name!r} {times} times")
        return chosen

    def to_frame(self, cases: Sequence[str] | None = None) -> Any:
        """All finished runs as one pandas data frame, with one row per step.

        A warning says how many runs are missing.

        Parameters
        ----------
        cases : sequence of str, optional
            Names of cases with the same columns; by default all cases.

        Returns
        -------
        pandas.DataFrame
            The columns are ``case``, ``run`` and ``step`` (``row`` for a computation), followed by
            those listed in docs/reference/records.md. For polars and other libraries use
            :meth:`to_arrow`, which does not need pandas.

        Raises
        ------
        InvalidInputError
            If the cases do not have the same columns, or ``cases`` is empty or names one twice.
        ExperimentError
            If there is no finished run.
        CorruptFileError
            If a file fails verification.
        OtherOriginError
            If the runs of a case were not all made by the same code in the same world.
        MissingExtraError
            If pandas is not installed.
        """
        try:
            importlib.import_module("pandas")
        except ModuleNotFoundError:
            raise MissingExtraError(
                "pandas is missing; install it with: pip install pandas. Or use to_arrow(), which "
                "does not need it",
                "pandas",
            ) from None
        return self._table(cases).to_pandas(use_threads=False)

    def belief_after(
        self, case_name: str, run: int, steps: int | None = None, *, trust: bool = False
    ) -> Belief:
        """The agent's belief after some number of steps of a run; by default after the last.

        The belief is rebuilt from the case's prior and the stored transitions. This also builds the
        case's environment.

        Parameters
        ----------
        case_name : str
            Name of the case.
        run : int
            Number of the run.
        steps : int, optional
            Number of steps.
        trust : bool
            Whether to import and call what the folder names, if the case has an environment or a
            prior that is not the library's. Do so only with a folder whose origin you know.

        Raises
        ------
        InvalidInputError
            If the case has no belief about a finite world, ``run`` is not an integer from 0 to
            99,999, ``steps`` is not one from 0 to the steps of the case, or the run was stored in
            an older format, without next states.
        OtherOriginError
            If the case's environment is no longer the one in which the run took place.
        """
        case = self.experiment.case(case_name)
        if not isinstance(case, Case):
            raise InvalidInputError(f"case must be an interaction; {case_name!r} is a computation")
        if case.environment == LAKE:
            raise InvalidInputError(
                f"case must be one in a finite world; {case_name!r} is in {LAKE}"
            )
        run = as_index(run, MAX_RUNS, "run")
        n = case.steps if steps is None else as_index(steps, case.steps + 1, "steps")
        named = set(references_of(case).values())
        named |= {case.environment} if ":" in case.environment else set()
        if named and not trust:
            raise InvalidInputError(
                f"{self.directory} names parts that are not the library's "
                f"({', '.join(sorted(named))}), which would be imported and called; if you trust "
                "the folder, pass trust=True"
            )
        stored = self.read(case, run)
        table, here = stored.table, digest_of(case)
        if stored.world not in (UNKNOWN, here):
            raise OtherOriginError(
                f"run {run} of {case_name!r} took place in another world: the digest of its tables "
                f"is {short(stored.world)}, that of the present ones {short(here)}"
            )
        if table["next_state"].null_count:
            raise InvalidInputError(
                f"run {run} of {case_name!r} was stored without next states, in an older format"
            )
        stream = streams_of(run_seed(self.experiment.seed, run)).world
        belief: Any = make_setting(case, stream).belief
        names = ["state", "action", "next_state"]
        if table["disturbance"].null_count == 0:
            names.append("disturbance")
        columns = [values_of(table[name])[:n].astype(np.int64) for name in names]
        if learns_rewards(belief):
            columns.append(values_of(table["reward"])[:n])
        if is_builtin(belief) and n:
            belief.observe(*columns)
        elif not is_builtin(belief):
            for transition in zip(*(column.tolist() for column in columns), strict=True):
                belief.observe(*transition)
        return cast(Belief, belief)

    def digest(self) -> str:
        """SHA-256 digest of the results of all wanted runs.

        It depends only on the results, not on how or how fast they were computed.
        """
        return digest(
            f"{case.name}|{run}|{self.read(case, run).content}|"
            for case in self.experiment.cases
            for run in range(self.experiment.runs_of(case))
        )


def _as_runs(runs: Any) -> list[int]:
    """Numbers of runs, each once."""
    try:
        numbers = [as_index(run, MAX_RUNS, "run") for run in runs]
    except (TypeError, InvalidInputError):
        numbers = []
    if not numbers or len(set(numbers)) < len(numbers):
        raise InvalidInputError(
            "runs must name at least one run, by distinct non-negative integers; got "
            f"{reprlib.repr(runs)}"
        )
    return numbers


def _require_no_damaged(statuses: Iterable[CaseStatus]) -> None:
    reasons = [reason for found in statuses for reason in found.damaged.values()]
    if reasons:
        more = f" (and {len(reasons) - 1} more like it)" if len(reasons) > 1 else ""
        raise CorruptFileError(
            f"{reasons[0]}{more}. Run the experiment again: damaged files are set aside and "
            "computed anew"
        )


def _columns_class(case: Computation, table: Any) -> type[Columns]:
    """The columns that the program declares or, if it is not known, those in the file."""
    program = known_program(case)
    if program is not None:
        return program.columns
    kinds = {"b": BoolArray, "f": FloatArray, "O": np.typing.NDArray[np.str_]}
    fields = [
        (name, kinds.get(values_of(table[name]).dtype.kind, IntArray), column("undocumented"))
        for name in table.column_names
    ]
    made: type[Columns] = make_dataclass("StoredColumns", fields, bases=(Columns,), frozen=True)
    return made


def find_stores(directory: str | os.PathLike[str]) -> list[Store]:
    """The store in ``directory``, or the stores in its subfolders.

    Raises
    ------
    ExperimentError
        If there is no store.

    Examples
    --------
    >>> import tempfile
    >>> from brmdp.runs import Case, Experiment, find_stores, run_experiment
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run_experiment(Experiment("try", "A try", (case,), runs=2), folder, workers=1)
    ...     stores = find_stores(folder)
    >>> [store.experiment.name for store in stores]
    ['try']
    """
    folder = Path(directory)
    if (folder / DESCRIPTION).is_file():
        return [Store.at(folder)]
    found = sorted(path.parent for path in folder.glob(f"*/{DESCRIPTION}"))
    if not found:
        raise ExperimentError(
            f"{folder} holds no experiment: neither it nor a subfolder contains {DESCRIPTION}"
        )
    return [Store.at(path) for path in found]


UNFINISHED = re.compile(r"\..+--\d+\.parquet\.unfinished-[\da-f-]+")
"""Names of runs that are being written; see :func:`brmdp._files.write_atomically`."""


@dataclass(frozen=True)
class _Described:
    """The content of an ``experiment.json``."""

    experiment: Experiment
    origin: Origin


def _lock_file(path: Path) -> int:
    """Open the lock file without changing it, and without following a link of that name."""
    return os.open(
        path,
        os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0),
        0o666,
    )


def _claim(lock: int, directory: Path) -> None:
    """Lock a file until it is closed or the process ends, however it ends."""
    if fcntl is not None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExperimentError(
                f"another process is working on {directory}; wait for it, or stop it"
            ) from None
        except OSError as error:
            raise ExperimentError(
                f"{directory} cannot be locked: {error.strerror or error}. Choose a folder on a "
                "disk that can lock files"
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
        if content["format"] not in FORMATS:
            raise ExperimentError(
                f"{path} has format {content['format']}; this version of brmdp reads {in_words()}"
            )
        described = content["experiment"]
        cases = [upgraded(case, content["format"]) for case in described["cases"]]
        experiment = Experiment.from_description({**described, "cases": cases})
        if content["format"] == WITHOUT_DIGESTS:
            return _Described(experiment, Origin((UNKNOWN,), {}))
        code = tuple(map(str, content["code"]))
        worlds = {str(name): str(world) for name, world in content["worlds"].items()}
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
    """The content of a file, unless it is too large or not a regular file."""
    if not path.is_file():
        raise CorruptFileError(f"{path} is not a file")
    size = path.stat().st_size
    if size > largest:
        raise CorruptFileError(f"{path} must have at most {largest:,} bytes; it has {size:,}")
    return path.read_bytes()


def _with_runs_of(experiment: Experiment, known: Experiment) -> Experiment:
    """The experiment, with the larger number of runs where ``known`` asks for more."""
    limits = {case.name: case.max_runs for case in known.cases}
    cases = tuple(
        replace(case, max_runs=max(case.max_runs, limits[case.name]))
        if case.max_runs and limits[case.name]
        else replace(case, max_runs=0)
        for case in experiment.cases
    )
    return replace(experiment, cases=cases, runs=max(experiment.runs, known.runs))


def _comparable(experiment: Experiment) -> dict[str, Any]:
    """Everything that determines the results, except the number of runs."""
    description = experiment.describe()
    cases = {case["name"]: essential(case) for case in description["cases"]}
    return dict(plain({"name": experiment.name, "seed": experiment.seed, "cases": cases}))


def _write(path: Path, data: bytes) -> None:
    """Write all or nothing; the data are on disk when this returns."""
    with _explained(path):
        write_bytes(path, data)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into one that names the file and what to do."""
    try:
        yield
    except (OSError, InvalidInputError) as error:
        reason = f"{path}: {error}"
        if isinstance(error, OSError):
            reason = f"{error.filename or path}: {error.strerror or error}"
        raise ExperimentError(
            f"{reason}. Finished runs are intact: fix the cause or choose another folder, then run "
            "the same command again"
        ) from error
