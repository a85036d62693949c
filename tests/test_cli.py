"""The command line: what it does, and one clear line about what it cannot do."""

import errno
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brmdp import cli
from brmdp.report.writing import Report
from brmdp.runs import Case, Experiment, Store, load_sweep, run_experiment
from brmdp.studies import Study, find_study, study_of
from tiny_experiments import dicing

SWEEP = """
name = "small"
runs = 3
steps = 40

[[environment]]
name = "riverswim"
n = 4

[[agent]]
name = "aq-brmdp"
delta = 5

[[agent]]
name = "continuing-psrl"
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Work in an empty folder that has a sweep."""
    monkeypatch.chdir(tmp_path)
    Path("sweep.toml").write_text(SWEEP)


@pytest.fixture
def no_report(monkeypatch):
    """Skip the figures, which take seconds."""

    def write(study, records, directory):
        assert set(records) == {case.name for case in study.experiment.cases}
        return Report(f"report of {study.name}", {}, (), ())

    monkeypatch.setattr(Study, "report", write)


COMMAND = (sys.executable, Path(sys.executable).with_name("brmdp"))
"""The installed command.

Under ``python -m``, an interrupt that passed through an ``exec`` (importing a dataclass is enough)
would end the process by the signal itself, after all its output. A shell sees 130 either way.
"""


def command(*arguments, **options):
    """The command in its own process."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
        **options,
    )


# --- what it does ---------------------------------------------------------------------------------


def test_list(capsys):
    assert cli.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "riverswim-6",
        "riverswim-10",
        "frozenlake-0.7",
        "frozenlake-0.9",
        "delta-sensitivity",
        "quantile-methods",
        *(
            "coverage",
            "examples",
            "normality",
            "optimism",
            "lemmas",
            "bayesian-regret",
            "continuous",
            "certificates",
            "certificates-icu",
            "unknown-rewards",
            "from-logs",
            "alarms",
            "exploration",
            "bbrl",
            "bbrl-tuning",
            "batch",
        ),
        "all",
    ]
    assert "RiverSwim-6: 5 cases, 4500 steps" in lines[0]


def test_run_a_sweep_and_run_it_again(no_report, capsys):
    assert cli.main(["run", "sweep.toml", "--workers", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "report of small\n"
    assert "6/6" in printed.err
    runs = {path: path.stat().st_mtime_ns for path in Path("results/small/runs").iterdir()}
    assert len(runs) == 6
    assert cli.main(["run", "sweep.toml", "--workers", "1", "--runs", "4"]) == 0
    assert all(path.stat().st_mtime_ns == made for path, made in runs.items())
    assert len(list(Path("results/small/runs").iterdir())) == 8


def test_reproduce_with_all_options(no_report, capsys):
    options = [
        "--runs",
        "1",
        "--steps",
        "20",
        "--workers",
        "1",
        "--out",
        "there",
        "--method",
        "saddlepoint",
    ]
    assert cli.main(["reproduce", "riverswim-6", *options]) == 0
    store = Store.at("there/riverswim-6")
    assert store.experiment.case("aq-brmdp").agent_parameters["method"] == "saddlepoint"
    assert store.records("brmdp-0.1").reward.shape == (1, 20)


@pytest.mark.long
def test_all_means_those_of_the_paper(no_report, capsys):
    assert cli.main(["reproduce", "all", "--runs", "1", "--steps", "3", "--workers", "1"]) == 0
    names = ["riverswim-6", "riverswim-10", "frozenlake-0.7", "frozenlake-0.9", "delta-sensitivity"]
    assert capsys.readouterr().out.splitlines() == [f"report of {name}" for name in names]
    assert sorted(path.name for path in Path("results").iterdir() if path.is_dir()) == sorted(names)
    assert Path("results/claims.json").exists()


@pytest.mark.parametrize("name", ["riverswim-6", "coverage", "continuous"])
def test_a_sweep_does_not_take_the_name_of_a_study(name, capsys):
    """Its folder would be taken for the study's, and reported with the paper's claims."""
    Path("sweep.toml").write_text(SWEEP.replace('"small"', f'"{name}"'))
    assert cli.main(["run", "sweep.toml", "--workers", "1"]) == 1
    assert capsys.readouterr().err == (
        f"brmdp: sweep.toml: name must not be that of a study of the library; got {name!r}\n"
    )
    assert not Path("results").exists()


def river(name="aq-brmdp", agent="aq-brmdp", n=6, **agent_parameters):
    return Case(name, "riverswim", agent, 0.9, 20, {"n": n}, agent_parameters)


@pytest.mark.parametrize(
    "cases",
    [
        (river(delta=5.0), river("mine", "posterior-mean")),
        (river(n=4, delta=5.0),),
        (river(agent="posterior-mean"),),
        (river("brmdp-0.1", "fixed-quantile", alpha=0.1), river("BRMDP-0.1", "posterior-mean")),
    ],
)
def test_cases_of_ones_own_under_the_name_of_a_study_are_not_that_study(cases):
    experiment = Experiment("riverswim-6", "Mine", cases, runs=1)
    assert study_of(experiment) == Study(experiment)
    assert not study_of(experiment).in_paper


def test_a_folder_that_only_looks_like_a_study_has_none_of_its_claims(monkeypatch, capsys):
    monkeypatch.setattr("brmdp.report.writing.picture", lambda *_: b"a picture")
    run_experiment(Experiment("riverswim-6", "Mine", (river(n=4, delta=5.0),), 1), ".", workers=1)
    assert cli.main(["report", "riverswim-6"]) == 0
    assert "Claims" not in capsys.readouterr().out
    assert json.loads(Path("riverswim-6/claims.json").read_text()) == []


def test_a_part_of_a_study_is_still_that_study():
    study = find_study("riverswim-6")
    for experiment in (
        study.adjusted(runs=2, steps=30, method="saddlepoint").experiment,
        Experiment("riverswim-6", "Some of it", study.experiment.cases[:2], runs=3),
    ):
        assert study_of(experiment) == study.of(experiment)
        assert study_of(experiment).in_paper


def test_a_study_of_ones_own_by_reference(no_report, monkeypatch, capsys):
    Path("my_study.py").write_text(
        "from brmdp.runs import Case, Experiment\n"
        "from brmdp.studies import Study\n"
        "case = Case('mean', 'riverswim', 'posterior-mean', 0.9, 20, {'n': 4})\n"
        "STUDY = Study(Experiment('mine', 'Mine', (case,), runs=5))\n"
    )
    monkeypatch.syspath_prepend(".")
    options = ["--runs", "2", "--steps", "10", "--workers", "1"]
    assert cli.main(["reproduce", "my_study:STUDY", *options]) == 0
    assert capsys.readouterr().out == "report of mine\n"
    assert Store.at("results/mine").records("mean").reward.shape == (2, 10)
    for reference, message in (
        ("my_study:case", "'my_study:case' must be a Study; got Case"),
        ("my_study:NOTHING", "my_study has no attribute 'NOTHING'"),
        ("no_study:STUDY", "No module named 'no_study'"),
    ):
        assert cli.main(["reproduce", reference]) == 1
        assert message in capsys.readouterr().err


def test_the_report_of_a_study_of_ones_own_is_not_replaced_by_nothing(capsys):
    """Its folder names programs, not how they are judged; reading imports nothing."""
    store = run_experiment(dicing(), "results", workers=1)
    report = store.directory / "claims.json"
    report.write_text("judged by its own study")
    assert cli.main(["report", "results"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    left = "the report of a study of your own is left"
    assert printed.err.startswith(f"brmdp: results/dicing: {left}")
    assert "pass --study module:attribute" in printed.err
    assert report.read_text() == "judged by its own study"
    assert not (store.directory / "summary.json").exists()


@pytest.mark.long
def test_a_report_is_written_and_printed():
    done = command("run", "sweep.toml", "--workers", "1")
    out, err = done.communicate(timeout=120)
    assert done.returncode == 0, err
    assert "aq-brmdp" in out
    folder = Path("results/small")
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["experiment"], summary["runs"]) == ("small", {"least": 3, "most": 3})
    assert set(summary["agents"]) == {"aq-brmdp", "continuing-psrl"}
    assert (folder / "claims.json").exists()
    assert list(folder.rglob("*.png"))
    assert list(folder.rglob("*.pdf"))


def test_status(no_report, capsys):
    cli.main(["run", "sweep.toml", "--workers", "1"])
    runs = Path("results/small/runs")
    (runs / "aq-brmdp--0000.parquet").unlink()
    (runs / "aq-brmdp--0001.parquet").unlink()
    (runs / "continuing-psrl--0002.parquet").write_bytes(b"PAR1")
    capsys.readouterr()
    for folder in ("results", "results/small"):
        assert cli.main(["status", folder]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines == [
            "results/small: small, 3 runs of each case",
            "  aq-brmdp: 1 finished, 2 missing (0-1)",
            "  continuing-psrl: 2 finished, 1 damaged (2)",
        ]
    cli.main(["run", "sweep.toml", "--workers", "1"])
    printed = " ".join(capsys.readouterr().err.split())
    assert "brmdp: results/small/runs/continuing-psrl--0002.parquet is damaged" in printed
    assert "set aside as results/small/set-aside/continuing-psrl--0002.parquet" in printed
    cli.main(["status", "results"])
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  aq-brmdp: 3 finished",
        "  continuing-psrl: 3 finished",
        "  set aside: continuing-psrl--0002.parquet",
    ]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["reproduce", "--help"], ["run", "--help"], ["--version"]]
)
def test_help(arguments, capsys):
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out


# --- what it cannot do ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["reproduce", "riverswim6"],
            "unknown study 'riverswim6'; did you mean 'riverswim-6'? valid: riverswim-6, ",
        ),
        (["reproduce"], "requires an argument"),
        (["reproduce", "riverswim-6", "--runs", "0"], "runs must be a positive integer; got 0"),
        (["reproduce", "riverswim-6", "--runs", "-3"], "runs must be a positive integer; got -3"),
        (["reproduce", "riverswim-6", "--runs", "few"], '--runs: unable to convert "few" into int'),
        (["reproduce", "riverswim-6", "--runs", "1.9"], '--runs: unable to convert "1.9" into int'),
        (["reproduce", "riverswim-6", "--runs", "1e9"], '--runs: unable to convert "1e9" into int'),
        (["reproduce", "riverswim-6", "--runs", "9" * 5000], '--runs: unable to convert "999'),
        (
            ["reproduce", "riverswim-6", "--runs", "1000000000"],
            "runs must be at most 100,000; got 1,000,000,000",
        ),
        (
            ["reproduce", "all", "--runs", "1000000000"],
            "runs must be at most 100,000; got 1,000,000,000",
        ),
        (
            ["reproduce", "normality", "--runs", "99999"],
            "the total number of runs must be at most 1,000,000; got 1,6",
        ),
        (
            ["reproduce", "riverswim-6", "--steps", "1000000000"],
            "steps must be at most 10,000,000; got 1,000,000,000",
        ),
        (
            ["reproduce", "riverswim-6", "--workers", "1000000"],
            "workers must be at most 1,024; got 1,000,000",
        ),
        (["report", "nowhere"], "nowhere holds no experiment"),
        (["reproduce", "riverswim-6", "--steps", "0"], "steps must be a positive integer; got 0"),
        (
            ["reproduce", "riverswim-6", "--workers", "0"],
            "workers must be a positive integer; got 0",
        ),
        (
            ["reproduce", "riverswim-6", "--method", "exakt"],
            "unknown method 'exakt'; did you mean 'exact'? valid: exact, ",
        ),
        (["reproduce", "riverswim-6", "--run", "3"], "Did you mean --runs?"),
        (
            ["reproduce", "riverswim-6", "--out", "sweep.toml"],
            "sweep.toml/riverswim-6: Not a directory",
        ),
        (
            ["reproduce", "quantile-methods", "--method", "exact"],
            "method cannot be chosen for quantile-methods",
        ),
        (
            ["reproduce", "riverswim-6", "--workers", "2", "--cluster", "tcp://x:1"],
            "--workers and --cluster cannot be used together",
        ),
        (["run", "none.toml"], "none.toml cannot be read: No such file or directory"),
        (["run", "sweep.toml", "--steps", "-1"], "steps must be a positive integer; got -1"),
        (["status", "nowhere"], "nowhere holds no experiment"),
        (["repoduce", "riverswim-6"], "Unknown command"),
    ],
)
def test_one_clear_line(arguments, message, capsys):
    assert cli.main(arguments) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("brmdp: ")
    assert printed.err.count("\n") == 1
    # some versions of cyclopts quote options, others do not
    assert message.replace('"', "") in printed.err.replace('"', "")
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("runs = 3", "runs = "),
            "sweep.toml is not valid TOML: Invalid value (at line 3, column 8)",
        ),
        (
            ("delta = 5", "delta = -5"),
            "sweep.toml: case 'aq-brmdp': delta must be a positive finite number; got -5",
        ),
        (("delta = 5", "delta = 5\nfloor = 1"), "floor must lie strictly between 0 and 1; got 1"),
        (
            ("runs = 3", "runs = 3\ntitle = 2026-11-17"),
            "title must be text; got datetime.date(2026, 11, 17)",
        ),
        (("runs = 3", "runs = 3\ntitle = 0"), "title must be text; got 0"),
        (
            ("runs = 3", 'runs = 3\ntitle = "\\u001b[2J"'),
            "title must have no control characters; got '\\x1b[2J'",
        ),
        (("runs = 3", "runs = 1.9"), "runs must be a positive integer; got 1.9"),
        (("runs = 3", "runs = 1000000000"), "runs must be at most 100,000"),
        (
            ("runs = 3", f"runs = 3\nseed = {'[' * 5000}1{']' * 5000}"),
            "sweep.toml is nested too deeply",
        ),
        (
            ('"small"', f'"{"s" * 300}"'),
            "name of an experiment must take at most 200 bytes in the name of a file; got 300",
        ),
        (
            ("delta = 5", f"delta = {list(range(1, 3000))}"),
            "combinations in [[agent]] aq-brmdp must be at most 2,000; got 2",
        ),
        (("n = 4", "m = 4"), "unknown key of the environment riverswim 'm'"),
        (('"riverswim"\nn = 4', '"CartPole-v1"'), "env must have a Discrete observation_space"),
    ],
)
def test_one_clear_line_about_a_sweep(change, message, capsys):
    Path("sweep.toml").write_text(SWEEP.replace(*change))
    assert cli.main(["run", "sweep.toml"]) == 1
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


@pytest.mark.long
def test_a_blocked_report_is_one_clear_line_and_can_be_written_later(monkeypatch, capsys):
    """A folder in the place of a file, then a full disk, when all runs are finished."""
    monkeypatch.setattr("brmdp.report.writing.picture", lambda *_: b"a picture")
    Path("results/small/summary.md").mkdir(parents=True)
    assert cli.main(["run", "sweep.toml", "--workers", "1"]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("brmdp: results/small/summary.md cannot be written: ")
    assert last.endswith(
        "The runs are intact: fix the cause, then write the report with `brmdp report`"
    )
    assert not [path for path in Path("results/small").iterdir() if "unfinished" in path.name]
    Path("results/small/summary.md").rmdir()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert cli.main(["report", "results"]) == 1
    assert (
        "results/small/summary.json cannot be written: No space left on device"
        in capsys.readouterr().err
    )
    assert cli.main(["report", "results"]) == 0
    assert "aq-brmdp" in capsys.readouterr().out
    assert Path("results/small/summary.md").is_file()


def test_a_long_silence_is_explained_on_a_terminal(no_report, monkeypatch, capsys):
    """It says what is being verified or written; where nobody watches, it says nothing."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert cli.main(["run", "sweep.toml", "--workers", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "report of small\n"
    assert "small: verifying finished runs" in printed.err
    assert "small: writing the report" in printed.err
    assert cli.main(["status", "results"]) == 0
    printed = capsys.readouterr()
    assert "verifying aq-brmdp" in printed.err
    assert "verifying" not in printed.out
    monkeypatch.delenv("FORCE_COLOR")
    assert cli.main(["status", "results"]) == 0
    assert capsys.readouterr().err == ""


def test_stores_are_not_mixed(no_report, capsys):
    cli.main(["run", "sweep.toml", "--workers", "1"])
    capsys.readouterr()
    for options in (["--steps", "50"], ["--method", "saddlepoint"]):
        assert cli.main(["run", "sweep.toml", *options]) == 1
        printed = capsys.readouterr().err
        assert "results/small was made with other parameters" in printed
        assert printed.count("\n") == 1


def test_codes_are_not_mixed_unless_one_insists(no_report, capsys, monkeypatch):
    cli.main(["run", "sweep.toml", "--workers", "1"])
    for module in ("runner", "store", "encoding"):
        monkeypatch.setattr(f"brmdp.runs.{module}.CODE", "f" * 64)
    capsys.readouterr()
    more = ["run", "sweep.toml", "--runs", "4", "--workers", "1"]
    assert cli.main(more) == 1
    printed = capsys.readouterr().err
    assert "results/small holds runs made by other code" in printed
    assert "--accept-other-code" in printed
    assert printed.count("\n") == 1
    assert len(list(Path("results/small/runs").iterdir())) == 6
    assert cli.main([*more, "--accept-other-code"]) == 0
    assert len(list(Path("results/small/runs").iterdir())) == 8


@pytest.mark.long
def test_no_traceback_from_the_shell():
    done = command("reproduce", "riverswim-7")
    _, err = done.communicate(timeout=60)
    assert done.returncode == 1
    assert err.startswith("brmdp: unknown study 'riverswim-7'; did you mean 'riverswim-6'?")
    assert err.count("\n") == 1


@pytest.mark.long
def test_a_reader_that_leaves_is_no_error():
    with command("list") as done:
        done.stdout.close()
        assert done.stderr.read() == ""
    assert done.returncode == 141


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_cannot_be_written_is_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "list"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "brmdp: [Errno 28] No space left on device\n"


def test_what_was_said_before_a_failure_is_kept(monkeypatch, capsys):
    def broken(*_):
        print("the first half")
        raise OSError(5, "Input/output error", "somewhere")

    monkeypatch.setattr(cli, "find_stores", broken)
    assert cli.main(["status", "results"]) == 1
    assert capsys.readouterr() == (
        "the first half\n",
        "brmdp: [Errno 5] Input/output error: 'somewhere'\n",
    )


@pytest.mark.long
def test_output_may_be_closed():
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *COMMAND, "list"], stderr=subprocess.PIPE, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
@pytest.mark.filterwarnings(
    "ignore:os.fork.. was called"
)  # because of preexec_fn, just before an exec: not what JAX warns about
@pytest.mark.parametrize(
    ("workers", "finished"),
    [
        ("1", 2),
        ("2", 0),
        pytest.param("1", 0, marks=pytest.mark.slow),
        pytest.param("2", 2, marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_keeps_what_is_finished(workers, finished, no_report):
    """While workers are starting and kernels being loaded, and when runs are under way."""
    Path("sweep.toml").write_text(
        SWEEP.replace("runs = 3", "runs = 200").replace("steps = 40", "steps = 300")
    )
    # in a process group of its own, which gets the signal as from a terminal, workers included;
    # shells make background processes ignore it
    done = command(
        *("run", "sweep.toml", "--workers", workers),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    folder = Path("results/small")
    try:
        deadline = time.monotonic() + 60
        while (
            not (folder / "experiment.json").exists()
            or len(list(folder.glob("runs/[!.]*"))) < finished
        ):
            assert time.monotonic() < deadline
            assert done.poll() is None
            time.sleep(0.02)
        os.killpg(done.pid, signal.SIGINT)
        out, err = done.communicate(timeout=60)
    finally:
        done.kill()
    assert done.returncode == 130, err
    assert out == ""
    assert (
        err.splitlines()[-1]
        == "brmdp: stopped. Finished runs are kept; the same command continues from there"
    )
    assert "Traceback" not in err
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("runs/*")}
    assert finished <= len(kept) < 400
    assert all(path.suffix == ".parquet" and not path.name.startswith(".") for path in kept)
    assert cli.main(["run", "sweep.toml", "--workers", "1", "--runs", "3"]) == 0
    assert all(path.stat().st_mtime_ns == made for path, made in kept.items())


@pytest.mark.long
@pytest.mark.parametrize("package", ["cyclopts", "matplotlib", "pyarrow", "rich"])
def test_missing_packages_are_named(package, forks):
    hidden = (
        f"import sys; sys.modules[{package!r}] = None; from brmdp.cli import main; sys.exit(main())"
    )
    done = forks.run(hidden, "run", "sweep.toml", "--workers", "1", cwd=Path.cwd())
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert package in last
    assert last.startswith("brmdp: ")
    assert last.endswith("is missing; install it with: pip install 'brmdp[experiments]'")
    assert "Traceback" not in done.stderr


def test_the_command_and_the_library_share_their_stores(no_report):
    cli.main(["run", "sweep.toml", "--workers", "1"])
    before = Path("results/small/runs/aq-brmdp--0000.parquet").stat().st_mtime_ns
    run_experiment(load_sweep("sweep.toml"), "results", workers=1)
    assert Path("results/small/runs/aq-brmdp--0000.parquet").stat().st_mtime_ns == before


def test_python_m_is_the_command_too(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "brmdp.__main__", raising=False)  # another test's import
    monkeypatch.setattr(sys, "argv", ["brmdp", "list"])
    with pytest.raises(SystemExit) as left:
        runpy.run_module("brmdp", run_name="__main__")
    assert left.value.code == 0
    assert "riverswim-6" in capsys.readouterr().out
