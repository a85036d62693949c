"""The commands that lead from a log to a decision, and what they refuse."""

import json
import os
import warnings
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from brmdp import cli
from brmdp.errors import PriorWarning
from brmdp.models import Model
from brmdp.models.results import Check

LOG = "day,machine,did\n" + "".join(
    f"{day},{'worn' if day % 3 else 'new'},{'repair' if day % 3 == 2 else 'run'}\n"
    for day in range(60)
)
MODEL = """\
discount = 0.9
[log]
file = "log.csv"
time = "day"
[state]
column = "machine"
[action]
column = "did"
[cost.run]
base = 1
[cost.repair]
base = 3
"""
CHECKS = (
    Check("coverage", "Seen enough?", "fine", "All pairs were seen.", "Nothing follows.", {"n": 2}),
    Check(
        *("groups", "Do groups differ?", "stop"),
        *("They do, by 7 \x1b[31mstandard errors.", "It costs 5 more.", {"x": float("nan")}),
        remedy="Name the groups.",
        group="old <b>",
    ),
    Check("drift", "Is it still so?", "look", "Perhaps not.", "It may cost 1 more.", {}),
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)
    Path("model.toml").write_text(MODEL)


class Decided:
    """Stands for a decision; remembers with what it was made and writes what it is told to."""

    def __init__(self, model, settings, stops=()):
        self.model, self.settings, self.stops = model, settings, stops

    def __str__(self):
        return "\n".join([*(f"STOP, {one}" for one in self.stops), "Repair where it is \x9bworn."])

    def write(self, report, *, numbers=None, policy=None):
        for path in (report, numbers, policy):
            if path is not None:
                path.write_text("written")


@pytest.fixture
def made(monkeypatch):
    """Skip checks and decisions, which take seconds; the list holds what was decided."""
    made = []

    def decide(self, *, on_progress, **settings):
        on_progress("deciding", 1, 2)
        for _ in range(3):
            warnings.warn("the plan rests on\nthe prior", PriorWarning, stacklevel=1)
        made.append(Decided(self, settings, made.stops))
        return made[-1]

    class Made(list):
        stops = ()

    made = Made()
    monkeypatch.setattr(Model, "decide", decide)
    monkeypatch.setattr(Model, "check", lambda self: CHECKS)
    return made


@pytest.fixture
def fails(capsys):
    """The one line with which a command fails."""

    def fails(*arguments, code=1):
        before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
        assert cli.main(arguments) == code
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("brmdp: ")
        assert printed.err.count("\n") == 1
        after = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
        assert after == before
        return printed.err

    return fails


# --- init -----------------------------------------------------------------------------------------


def test_init(capsys):
    assert cli.main(["init", "log.csv", "--out", "new.toml"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "Wrote new.toml, with these guesses; the file says what else could be meant."
    assert "  action: 'did' (its name)" in out
    assert out[-1].endswith("then: brmdp check new.toml")
    assert Path("new.toml").read_text().startswith("# A model of 'log.csv' (60 lines)")


def test_init_replaces_nothing_unasked(fails, capsys):
    assert "model.toml is there already; --force replaces it" in fails("init", "log.csv")
    assert Path("model.toml").read_text() == MODEL
    assert cli.main(["init", "log.csv", "--force"]) == 0
    assert Path("model.toml").read_text() != MODEL


def test_init_of_what_is_no_log(fails):
    assert "must be a file that exists" in fails("init", "none.csv", "--out", "a.toml")
    assert "ends in .csv" in fails("init", "model.toml", "--out", "a.toml")
    assert "requires an argument" in fails("init")


# --- check ----------------------------------------------------------------------------------------


def test_check(made, capsys):
    assert cli.main(["check", "model.toml", "--json", "checks.json"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "Checks: 1 STOP, 1 look, 1 fine.\n\n"
        "STOP  groups (old <b>): Do groups differ?\n"
        "  They do, by 7 \\x1b[31mstandard errors.\n"
        "  It costs 5 more.\n"
        "  What to do: Name the groups.\n\n"
        "LOOK  drift: Is it still so?\n"
    )
    assert out.index("FINE  coverage") < out.index("60 lines: 60 kept")
    assert out.endswith("Wrote checks.json\n")
    found = json.loads(Path("checks.json").read_text())
    assert [one["verdict"] for one in found["checks"]] == ["fine", "stop", "look"]
    assert found["checks"][1]["figures"] == {"x": None}
    assert len(found["fingerprint"]["data"]) == 64


def test_strict_checks_end_with_a_code_of_their_own(made, monkeypatch):
    assert cli.main(["check", "model.toml", "--strict"]) == 3
    monkeypatch.setattr(Model, "check", lambda self: CHECKS[:1])
    assert cli.main(["check", "model.toml", "--strict"]) == 0


def test_no_check_at_all(made, monkeypatch, capsys):
    monkeypatch.setattr(Model, "check", lambda self: ())
    assert cli.main(["check", "model.toml"]) == 0
    assert capsys.readouterr().out.startswith("Checks: none could be made.")


# --- decide ---------------------------------------------------------------------------------------


def test_decide_prints_the_answer(made, capsys):
    assert cli.main(["decide", "model.toml"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "Repair where it is \\x9bworn.",
        "Note: the plan rests on the prior",
        "From 60 lines of 1 unit: 59 transitions. What was left out: brmdp check model.toml",
    ]
    assert printed.err == ""
    assert set(os.listdir()) == {"log.csv", "model.toml"}
    assert made[0].settings == {"level": None, "command": "brmdp decide model.toml"}


def test_decide_writes_what_is_asked_for(made, capsys):
    Path("out").mkdir()
    assert cli.main(["decide", "model.toml", "--report", "out/page.html"]) == 0
    assert sorted(os.listdir("out")) == ["decision.json", "page.html"]
    assert "Wrote out/page.html\nWrote out/decision.json\n" in capsys.readouterr().out
    arguments = ["--report", "out/p.html", "--json", "all.json", "--policy", "policy.csv"]
    assert cli.main(["decide", "model.toml", *arguments, "--level", "0.2", "--quick"]) == 0
    assert sorted(os.listdir("out")) == ["decision.json", "p.html", "page.html"]
    assert {"all.json", "policy.csv"} < set(os.listdir())
    settings = made[1].settings
    assert settings["level"] == 0.2
    assert settings["command"] == (
        "brmdp decide model.toml --report out/p.html --json all.json --policy policy.csv "
        "--level 0.2 --quick"
    )
    assert len(settings["levels"]) < 10
    assert cli.main(["decide", "model.toml", "--report", "out/page.html"]) == 0  # its own output


def test_stop_stands_at_the_top(made, capsys):
    made.stops = ("groups",)
    assert cli.main(["decide", "model.toml"]) == 0
    assert capsys.readouterr().out.startswith("STOP, groups\n")
    assert cli.main(["decide", "model.toml", "--strict"]) == 3
    made.stops = ()
    assert cli.main(["decide", "model.toml", "--strict"]) == 0


def test_outputs_that_would_do_harm(made, fails):
    Path("amounts.csv").write_text("state,action,value\n")
    os.link("log.csv", "linked.csv")
    Path("here.html").symlink_to("log.csv")
    Path("folder.html").mkdir()
    for arguments, message in [
        (["--policy", "log.csv"], "--policy must not be a file that is read; got 'log.csv'"),
        (["--policy", "./x/../log.csv"], "--policy must lie in a folder that exists"),
        (["--policy", "linked.csv"], "--policy must not be a file that is read"),
        (["--report", "here.html"], "--report must not be a file that is read"),
        (["--report", "folder.html"], "--report must be a file"),
        (["--report", "model.toml"], "--report must name a file that ends in .html or .htm"),
        (["--json", "log.csv"], "--json must name a file that ends in .json"),
        (["--report", "none/page.html"], "--report must lie in a folder that exists"),
        (["--level", "0"], "--level must lie strictly between 0 and 1"),
        (["--level", "nan"], "--level must lie strictly between 0 and 1"),
    ]:
        assert message in fails("decide", "model.toml", *arguments)
    assert made == []
    text = MODEL[: MODEL.index("[cost.run]")] + "[cost]\nfile = 'amounts.csv'\n"
    Path("model.toml").write_text(text)
    assert "must not be a file that is read" in fails(
        "decide", "model.toml", "--policy", "amounts.csv"
    )


def test_errors_name_file_line_and_key(made, fails):
    Path("model.toml").write_text(MODEL.replace("[cost.run]", "[cost.rnu]"))
    assert "model.toml, line 9: [cost.rnu] is no action of the log; did you mean 'run'?" in fails(
        "check", "model.toml"
    )
    Path("model.toml").write_text(MODEL.replace('"machine"', '"machin"'))
    assert (
        "model.toml, line 6: [state] column must name a column of the log; got 'machin' (perhaps "
        "'machine'?)" in fails("decide", "model.toml")
    )
    for key, message in [
        ('start = "wron"', "model.toml, line 1: start must be a state: machine must be one of"),
        ('dynamics.reset.repiar = "new"', "line 1: [dynamics] reset.repiar is no action of the"),
        ('dynamics.reset.repair = "old"', "line 1: [dynamics] reset.repair must be a state"),
        ('dynamics.ends = ["old"]', "line 1: [dynamics] ends must be a state"),
    ]:
        Path("model.toml").write_text(f"{key}\n{MODEL}")
        assert message in fails("check", "model.toml")
    assert "log.csv is not a model file; if it is a log, 'brmdp init'" in fails("check", "log.csv")
    assert "cannot be read: No such file" in fails("decide", "none.toml")


def test_interrupted(made, monkeypatch, fails):
    def interrupted(self, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(Model, "decide", interrupted)
    assert fails("decide", "model.toml", "--report", "p.html", code=130) == "brmdp: stopped\n"


def test_without_the_extra(monkeypatch, fails):
    from brmdp import _extras

    def import_module(name, real=_extras.importlib.import_module):
        if name.startswith("pyarrow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name)

    monkeypatch.setattr(_extras.importlib, "import_module", import_module)
    message = "pyarrow is missing; install it with: pip install 'brmdp[decide]'"
    assert message in fails("check", "model.toml")


@pytest.mark.long
def test_from_log_to_page(capsys):
    assert cli.main(["init", "log.csv", "--out", "own.toml"]) == 0
    text = Path("own.toml").read_text()
    for amount in (3, 1):
        text = text.replace("# base = 0", f"base = {amount}", 1)
    Path("own.toml").write_text(text)
    assert cli.main(["decide", "own.toml", "--report", "page.html", "--quick"]) == 0
    assert "Expected cost" in capsys.readouterr().out
    found = json.loads(Path("decision.json").read_text())
    assert found["policy"] == {"new": "run", "worn": found["policy"]["worn"]}
    assert "<html" in Path("page.html").read_text()
