"""The command line.

``brmdp init``, ``check`` and ``decide`` lead from a log to a decision; ``reproduce``, ``run``,
``list``, ``status`` and ``report`` are for experiments.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brmdp._extras import optional
from brmdp._files import write_bytes
from brmdp._validation import as_level
from brmdp._version import installed_version
from brmdp.errors import BrmdpError, ExperimentError, InvalidInputError
from brmdp.mdp import counted
from brmdp.runs import Case, Experiment, Store, cluster_executor, find_stores, run_experiment
from brmdp.runs import load_sweep as read_sweep
from brmdp.runs.origin import CODE, short
from brmdp.runs.references import load
from brmdp.studies import Study, all_studies, find_study, study_of

__all__ = ["application", "main"]

INTERRUPTED, BROKEN_PIPE = 130, 141
"""Exit codes after Ctrl-C, and when the reader of our output is gone, as in shells."""

STOPPED = 3
"""Exit code with ``--strict`` if a check says stop."""

QUICK_LEVELS, QUICK_DRAWS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9), 200
"""Levels and draws of ``brmdp decide --quick``."""

MOST_NOTES = 5
"""Most warnings that are shown as notes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default the arguments of the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    code = None
    try:
        cyclopts = optional("cyclopts")
        app = application()
        try:
            code = app(words, exit_on_error=False, print_error=False)
        except cyclopts.CycloptsError as error:
            raise InvalidInputError(f"{str(error).rstrip('.')} (see brmdp --help)") from error
        if sys.stdout is not None:  # None if it was closed from the start
            sys.stdout.flush()
    except BrmdpError as error:
        return _fail(" ".join(str(error).split()), 1)
    except KeyboardInterrupt:
        kept = ". Finished runs are kept; the same command continues from there"
        return _fail(f"stopped{kept if words[:1] in (['run'], ['reproduce']) else ''}", INTERRUPTED)
    except BrokenPipeError:
        # the reader of our output has seen enough, as with `| head`
        _settle_output()
        return BROKEN_PIPE
    except OSError as error:
        # for example a full disk behind standard output
        _settle_output()
        return _fail(" ".join(str(error).split()), 1)
    return code if isinstance(code, int) else 0


def application() -> Any:
    """The parser of the command line: a ``cyclopts.App`` with every command."""
    cyclopts = optional("cyclopts")
    app = cyclopts.App(
        name="brmdp",
        help=(
            "Decisions under scarce data. From a log to a decision: init, check, decide. "
            "Experiments: reproduce, run, list, status, report."
        ),
        version=installed_version(),
        default_parameter=cyclopts.Parameter(converter=_converted, negative=""),
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    commands: dict[str, Callable[..., int | None]] = {
        "init": init,
        "check": check,
        "decide": decide,
        "reproduce": reproduce,
        "run": run,
        "list": list_studies,
        "status": status,
        "report": report,
    }
    for name, command in commands.items():
        app.command(command, name=name)
    return app


def init(log: Path, /, *, out: Path = Path("model.toml"), force: bool = False) -> None:
    """Look at a log and write a model file to edit.

    Parameters
    ----------
    log : Path
        The log: a CSV file (also .tsv, .txt, .gz) or a Parquet file.
    out : Path
        The model file.
    force : bool
        Replace a model file that is there already.
    """
    starting = optional("brmdp.models.starting", "decide")
    with _busy(f"looking at {log.name}"):
        start = starting.write_starting_file(log, out, replace=force)
    _print_plain(f"Wrote {out}, with these guesses; the file says what else could be meant.")
    _print_plain("\n".join(f"  {line}" for line in start.words))
    _print_plain(f"Next: edit {out}, above all what actions cost; then: brmdp check {out}")


def check(file: Path, /, *, json: Path | None = None, strict: bool = False) -> int:
    """Check a model against its log: what is fine, what to look at, and what forbids a decision.

    Parameters
    ----------
    file : Path
        The model file.
    json : Path
        File for all numbers of the checks.
    strict : bool
        End with exit code 3 if a check says stop.
    """
    terminal = optional("brmdp.models.terminal", "decide")
    with _notes() as notes:
        model = _model(file, {"--json": (json, (".json",))})
        with _busy("checking the model"):
            found = model.check()
    _print_plain(terminal.checks_in_words(found))
    _print_plain(f"\nThe log:\n{model.log.report}")
    _print_notes(notes)
    if json is not None:
        write_bytes(json, terminal.checks_json(model, found).encode())
        _print_plain(f"Wrote {json}")
    return STOPPED if strict and any(one.verdict == "stop" for one in found) else 0


def decide(
    file: Path,
    /,
    *,
    report: Path | None = None,
    json: Path | None = None,
    policy: Path | None = None,
    level: float | None = None,
    quick: bool = False,
    strict: bool = False,
) -> int:
    """Recommend a policy: what to do in each state, what it is worth, and what is guaranteed.

    Parameters
    ----------
    file : Path
        The model file.
    report : Path
        File for the page (HTML). All numbers go to decision.json beside it.
    json : Path
        Another file for all numbers.
    policy : Path
        File for the policy (CSV).
    level : float
        Plan at this quantile level, between 0 (cautious) and 1; by default that of the model file,
        or else the level with the best guarantee.
    quick : bool
        Fewer levels and draws, for a first look.
    strict : bool
        End with exit code 3 if a check says stop.
    """
    if level is not None:
        as_level(level, "--level")
    numbers = report.with_name("decision.json") if json is None and report is not None else json
    outputs = {
        "--report": (report, (".html", ".htm")),
        "--json": (numbers, (".json",)),
        "--policy": (policy, (".csv",)),
    }
    given = {"--report": report, "--json": json, "--policy": policy, "--level": level}
    words = [str(word) for pair in given.items() if pair[1] is not None for word in pair]
    command = shlex.join(["brmdp", "decide", str(file), *words, *(["--quick"] if quick else [])])
    settings = {"levels": QUICK_LEVELS, "draws": QUICK_DRAWS} if quick else {}
    with _notes() as notes:
        model = _model(file, outputs)
        with _steps() as on_progress:
            decision = model.decide(
                level=level, command=command, on_progress=on_progress, **settings
            )
            decision.write(report, numbers=numbers, policy=policy)
    _print_plain(str(decision))
    _print_notes(notes)
    read = model.log.report
    _print_plain(
        f"From {counted(read.lines, 'line')} of {counted(read.units, 'unit')}: "
        f"{counted(read.transitions, 'transition')}. What was left out: brmdp check "
        f"{shlex.quote(str(file))}"
    )
    for path in (report, numbers, policy):
        if path is not None:
            _print_plain(f"Wrote {path}")
    return STOPPED if strict and decision.stops else 0


def reproduce(
    name: str,
    /,
    *,
    runs: int | None = None,
    workers: int | None = None,
    out: Path = Path("results"),
    method: str | None = None,
    steps: int | None = None,
    cluster: str | None = None,
    accept_other_code: bool = False,
) -> None:
    """Reproduce a study: run its experiment, judge its claims and draw its figures.

    Parameters
    ----------
    name : str
        A study that "brmdp list" shows, "all" for the paper's finite-state experiments, or a study
        of your own as module:attribute.
    runs : int
        Number of runs of each case; by default that of the study (100 for the paper's). Finished
        runs are not computed again.
    workers : int
        Number of processes on this machine; by default one per processor.
    out : Path
        Folder for the results, which go to OUT/NAME.
    method : str
        How to compute quantiles: exact, saddlepoint, monte-carlo or monte-carlo-reused; by
        default as the study says.
    steps : int
        Number of steps of each run, for a quick look; by default that of the study.
    cluster : str
        Address of a Dask scheduler on whose workers to compute.
    accept_other_code : bool
        Add to runs made by another version of the code; reports name both versions.
    """
    _look_for_parts_in(Path.cwd())
    chosen = _paper() if name == "all" else [find_study(name)]
    adjusted = [study.adjusted(runs=runs, steps=steps, method=method) for study in chosen]
    _carry_out(adjusted, out, workers, cluster, accept_other_code)


def run(
    file: Path,
    /,
    *,
    runs: int | None = None,
    workers: int | None = None,
    out: Path = Path("results"),
    method: str | None = None,
    steps: int | None = None,
    cluster: str | None = None,
    accept_other_code: bool = False,
) -> None:
    """Run a sweep of your own, described in a TOML file.

    Parameters
    ----------
    file : Path
        The TOML file, which names environments, agents and their parameters.
    runs : int
        Number of runs of each case; by default the file's.
    workers : int
        Number of processes on this machine; by default one per processor.
    out : Path
        Folder for the results, which go to OUT/NAME.
    method : str
        How to compute quantiles: exact, saddlepoint, monte-carlo or monte-carlo-reused; by
        default as the file says.
    steps : int
        Number of steps of each run; by default the file's.
    cluster : str
        Address of a Dask scheduler on whose workers to compute.
    accept_other_code : bool
        Add to runs made by another version of the code; reports name both versions.
    """
    _look_for_parts_in(Path.cwd(), file.parent.resolve())
    experiment = read_sweep(file).adjusted(runs=runs, steps=steps, method=method)
    if experiment.name in all_studies():
        raise InvalidInputError(
            f"{file}: name must not be that of a study of the library; got {experiment.name!r}"
        )
    _carry_out([Study(experiment)], out, workers, cluster, accept_other_code)


def list_studies() -> None:
    """List the studies that can be reproduced."""
    studies = all_studies()
    width = max(map(len, studies))
    for study in studies.values():
        cases = study.experiment.cases
        steps = f", {cases[0].steps} steps" if isinstance(cases[0], Case) else ""
        number = f"{len(cases)} case{'s' if len(cases) > 1 else ''}"
        print(f"{study.name:{width}}  {study.experiment.title}: {number}{steps}")
    names = ", ".join(study.name for study in _paper())
    print(f"{'all':{width}}  The paper's finite-state experiments: {names}")


def status(directory: Path, /) -> None:
    """Show which runs are finished, missing or set aside.

    Every file is verified, and none is changed.

    Parameters
    ----------
    directory : Path
        A folder of results, or the folder of one experiment in it.
    """
    for store in find_stores(directory):
        print(
            f"{store.directory}: {store.experiment.title}, "
            f"{_runs(store.experiment)}{_other_code(store)}"
        )
        for case in store.experiment.cases:
            with _busy(f"verifying {case.name}"):
                found = store.status(case)
            parts = [f"{len(found.finished)} finished"]
            parts += (
                [f"{len(found.missing)} missing ({_ranges(found.missing)})"]
                if found.missing
                else []
            )
            parts += (
                [f"{len(found.damaged)} damaged ({_ranges(found.damaged)})"]
                if found.damaged
                else []
            )
            parts += (
                [f"{len(found.foreign)} of another origin ({_ranges(found.foreign)})"]
                if found.foreign
                else []
            )
            print(f"  {case.name}: {', '.join(parts)}")
        for name in store.files_set_aside():
            print(f"  set aside: {name}")


def report(directory: Path, /, *, study: str | None = None) -> None:
    """Write the report of all finished runs, without computing any.

    Runs made by older code are reported, too.

    Parameters
    ----------
    directory : Path
        A folder of results, or the folder of one experiment in it.
    study : str
        A study of your own, as module:attribute, to which the experiment in the folder belongs.
    """
    reporting = optional("brmdp.report.writing")
    _look_for_parts_in(Path.cwd())
    own = None if study is None else find_study(study)
    together = []
    for store in find_stores(directory):
        chosen = study_of(store.experiment) if own is None else own.of(store.experiment)
        if own is not None and own.name != store.experiment.name:
            raise InvalidInputError(
                f"{store.directory} holds {store.experiment.name}, not {own.name} of {study}"
            )
        if chosen == Study(store.experiment) and _has_own_report(store):
            _tell(
                f"{store.directory}: the report of a study of your own is left as it is; pass "
                "--study module:attribute to write it again"
            )
            continue
        with _busy(f"{store.experiment.name}: reading runs"):
            statuses = [store.status(case) for case in store.experiment.cases]
            store.require_no_foreign(statuses)
            finished = {found.case.name: found.finished for found in statuses if found.finished}
            if not finished:
                raise ExperimentError(f"{store.directory} has no finished run to report")
            records = {name: store.records(name, runs) for name, runs in finished.items()}
        missing = sum(len(found.missing) + len(found.damaged) for found in statuses)
        if missing:
            print(
                f"brmdp: {store.directory}: left out {missing} missing or damaged "
                f"run{'s' if missing > 1 else ''}",
                file=sys.stderr,
            )
        with _busy(f"{store.experiment.name}: writing the report"):
            written = chosen.report(records, store.directory)
        print(written.text)
        together += [written] if chosen.in_paper else []
    if len(together) > 1:
        reporting.write_overview(together, directory)


# --- behind the commands --------------------------------------------------------------------------


def _model(file: Path, outputs: dict[str, tuple[Path | None, tuple[str, ...]]]) -> Any:
    """The model of a file; first, that all outputs can be written without harm."""
    loading = optional("brmdp.models.loading", "decide")
    described = loading.read_model_file(file)
    tables = [described.amounts.file] if described.amounts.file is not None else []
    terminal = optional("brmdp.models.terminal", "decide")
    terminal.require_free(outputs, [file, described.log.file, *tables])
    with _busy(f"reading {described.log.file.name}"):
        return loading.model_of(described, loading.log_of(described))


@contextmanager
def _notes() -> Iterator[list[str]]:
    """Collect what is warned of, to be shown as notes."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(" ".join(str(one.message).split()) for one in caught)


def _print_notes(notes: list[str]) -> None:
    for note in notes[:MOST_NOTES]:
        _print_plain(f"Note: {note}")


def _print_plain(text: str) -> None:
    """Print text that may hold labels of a log, so that none of it steers the terminal."""
    shown = optional("brmdp.models.terminal", "decide").plain(text)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(shown.encode(encoding, "replace").decode(encoding))


@contextmanager
def _steps() -> Iterator[Callable[[str, int, int], None]]:
    """A bar with the steps of a decision, on a terminal."""
    rich_progress, console = (
        optional("rich.progress"),
        optional("rich.console").Console(stderr=True),
    )
    columns = (
        rich_progress.SpinnerColumn(),
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.BarColumn(),
        rich_progress.TimeElapsedColumn(),
    )
    with rich_progress.Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(
            task, description=what, completed=done, total=total
        )


def _look_for_parts_in(*folders: Path) -> None:
    """Let modules in these folders be imported, after all others, here and in local workers."""
    sys.path += [str(folder) for folder in folders if str(folder) not in sys.path]


def _paper() -> list[Study]:
    return [study for study in all_studies().values() if study.in_paper]


def _has_own_report(store: Store) -> bool:
    """Whether a folder, which belongs to no study of the library, was reported by another one."""
    if not all(isinstance(case, Case) for case in store.experiment.cases):
        return True
    try:
        return bool(json.loads((store.directory / "claims.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False


def _runs(experiment: Experiment) -> str:
    fewer = any(experiment.runs_of(case) < experiment.runs for case in experiment.cases)
    return f"{'at most ' if fewer else ''}{experiment.runs} runs of each case"


def _converted(kind: Any, tokens: Sequence[Any]) -> Any:
    """Convert words of the command line; integers must be written as integers."""
    words = [token.value for token in tokens]
    if kind is int:
        try:
            return int(words[0])
        except ValueError:
            raise ValueError(f'unable to convert "{words[0][:40]}" into int') from None
    return optional("cyclopts").convert(kind, words)


def _other_code(store: Store) -> str:
    """The code that made a store, if it is not the present code."""
    if store.origin is None or store.origin.code == (CODE,):
        return ""
    return f", made by code {', '.join(map(short, store.origin.code))} (now {short(CODE)})"


@contextmanager
def _busy(text: str) -> Iterator[None]:
    """Show on a terminal what is in progress."""
    console = optional("rich.console").Console(stderr=True)
    with console.status(text) if console.is_terminal else nullcontext():
        yield


def _carry_out(
    studies: list[Study],
    out: Path,
    workers: int | None,
    cluster: str | None,
    accept_other_code: bool,
) -> None:
    if cluster is not None and workers is not None:
        raise InvalidInputError(
            "--workers and --cluster cannot be used together: a cluster has its own workers"
        )
    # needed at the end; loaded now, so that a missing extra is noticed before anything is computed
    reporting = optional("brmdp.report.writing")
    for study in studies:
        load(study.figures, "figures")
    reports = []
    connected = nullcontext() if cluster is None else cluster_executor(cluster, on_message=_tell)
    with connected as executor:
        for study in studies:
            with _display(study.name) as display:
                store = run_experiment(
                    study.experiment,
                    out,
                    workers=workers,
                    executor=executor,
                    on_progress=display.progress,
                    on_message=display.message,
                    accept_other_code=accept_other_code,
                )
            with _busy(f"{study.name}: writing the report"):
                records = {case.name: store.records(case.name) for case in store.experiment.cases}
                reports.append(study.of(store.experiment).report(records, store.directory))
            print(reports[-1].text)
    if len(reports) > 1:
        # some claims cover several experiments
        reporting.write_overview(reports, out)


@dataclass(frozen=True)
class _Display:
    progress: Callable[[int, int], None]
    message: Callable[[str], None]


@contextmanager
def _display(name: str) -> Iterator[_Display]:
    """A progress bar with the remaining time, on standard error."""
    rich_progress, console = (
        optional("rich.progress"),
        optional("rich.console").Console(stderr=True),
    )
    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TextColumn("left"),
        rich_progress.TimeRemainingColumn(elapsed_when_finished=False),
    )
    bar = rich_progress.Progress(*columns, console=console, speed_estimate_period=300)
    task = bar.add_task(name, total=None)
    before = console.status(f"{name}: verifying finished runs")

    def progress(finished: int, wanted: int) -> None:
        before.stop()
        bar.update(task, completed=finished, total=wanted)
        bar.start()  # only once there is something to show

    def message(text: str) -> None:
        console.print(f"brmdp: {text}", markup=False, highlight=False, soft_wrap=True)

    try:
        if console.is_terminal:
            before.start()
        yield _Display(progress, message)
    finally:
        before.stop()
        if bar.live.is_started:
            bar.stop()


def _ranges(runs: Iterable[int]) -> str:
    """Run numbers as ranges, such as "0-3, 7"."""
    spans: list[list[int]] = []
    for number in sorted(runs):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _settle_output() -> None:
    """Flush standard output, or discard it if that fails.

    Otherwise Python would try again on exit.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(message: str) -> None:
    print(f"brmdp: {message}", file=sys.stderr)


def _fail(message: str, code: int) -> int:
    _tell(message)
    return code


if __name__ == "__main__":
    sys.exit(main())
