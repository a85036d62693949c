"""Runs of other code or of another world are never mixed, and tables say what made them."""

import ast
import importlib.util
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import tokenize
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import gymnasium
import numpy as np
import pyarrow.parquet as pq
import pytest

import brmdp
import former_stores
from brmdp import TabularMDP, cli
from brmdp.envs.tabular_env import TabularEnv
from brmdp.errors import (
    CorruptFileError,
    ExperimentError,
    InvalidInputError,
    OtherOriginError,
)
from brmdp.report import writing
from brmdp.runs import (
    Case,
    Computation,
    Experiment,
    Program,
    Store,
    execute,
    execution,
    origin,
    run_experiment,
)
from brmdp.runs import encoding as encoding_module
from brmdp.runs import runner as runner_module
from brmdp.runs import store as store_module
from brmdp.runs.encoding import decode, encode
from brmdp.runs.execution import digest_of, digests_of
from brmdp.runs.origin import (
    ANALYSIS,
    CODE,
    CONTINUOUS,
    DECISIONS,
    MODELS,
    package_digests,
    program_digest,
    short,
    world_digest,
)
from brmdp.runs.references import bare_code
from brmdp.simulation import World
from brmdp.studies import FOLDERS, Study
from tiny_experiments import Throws, dicing, throw_dice, tiny

TINY = tiny(runs=2)
CASE = TINY.cases[1]
OTHER = "f" * 64


class MoodyEnv(TabularEnv):
    """Pays what it likes today."""

    pay = 1.0

    def __init__(self):
        rewards = np.array([[0.0, 0.0], [0.0, self.pay]])
        super().__init__(TabularMDP(np.full((2, 2, 2), 0.5), rewards, 0.8))


gymnasium.register("tests/Moody-v0", entry_point=MoodyEnv)
MOODY = Experiment("moody", "", (Case("any", "tests/Moody-v0", "continuing-psrl", 0.8, 20),), 2)


@pytest.fixture
def store(tmp_path):
    return run_experiment(TINY, tmp_path, workers=1)


@pytest.fixture
def other_code(monkeypatch):
    """From now on, this process has other code."""

    def change():
        for module in (runner_module, store_module, encoding_module):
            monkeypatch.setattr(module, "CODE", OTHER)

    return change


def everything_in(folder):
    return {path.name: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


# --- worlds ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_an_environment_that_changed_between_two_runs_is_refused(tmp_path, monkeypatch):
    store = run_experiment(MOODY, tmp_path, workers=1)
    before = everything_in(tmp_path)
    monkeypatch.setattr(MoodyEnv, "pay", 2.0)
    with pytest.raises(
        OtherOriginError, match="'any' made in another world or with other parts: their digest was"
    ) as caught:
        run_experiment(replace(MOODY, runs=4), tmp_path, workers=1)
    assert short(store.origin.worlds["any"]) in str(caught.value)
    assert short(digest_of(MOODY.cases[0])) in str(caught.value)
    assert everything_in(tmp_path) == before
    # nor does it help to insist, or to take the description away
    with pytest.raises(OtherOriginError, match="another world"):
        run_experiment(MOODY, tmp_path, workers=1, accept_other_code=True)
    (store.directory / "experiment.json").unlink()
    with pytest.raises(OtherOriginError, match="another world"):
        run_experiment(MOODY, tmp_path, workers=1)
    monkeypatch.setattr(MoodyEnv, "pay", 1.0)
    run_experiment(replace(MOODY, runs=4), tmp_path, workers=1)


def test_a_worker_with_another_environment_is_refused_before_it_runs(tmp_path, monkeypatch):
    class Elsewhere(Executor):
        def submit(self, fn, /, *arguments):
            future = Future()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(MoodyEnv, "pay", 3.0)
                patch.setattr(execution, "simulate", None)
                try:
                    future.set_result(fn(*arguments))
                except Exception as error:
                    future.set_exception(error)
            return future

    with pytest.raises(
        OtherOriginError,
        match=r"run \d of any was refused by a worker.*environment 'tests/Moody-v0', or a part",
    ):
        run_experiment(MOODY, tmp_path, executor=Elsewhere())
    assert not list(tmp_path.glob("moody/runs/*"))


def tables(kernel=0.5, reward=1.0, discount=0.8, start=0, admissible=None):
    rows = np.full((2, 2, 2), 0.5)
    rows[0, 0] = kernel, 1.0 - kernel
    rewards = np.array([[0.0, 0.1 + 0.2], [0.0, reward]])
    return TabularMDP(rows, rewards, discount, start, admissible=admissible)


def digest_of_tables(mdp, kind=TabularEnv):
    return world_digest(World(kind(mdp), mdp.discount))


@pytest.mark.parametrize(
    "changes",
    [
        {"kernel": 0.5 + 1e-9},
        {"kernel": 1.0},
        {"reward": 1.0 + 1e-9},
        {"discount": 0.81},
        {"start": 1},
        {"start": [0.5, 0.5]},
        {"admissible": [[True, True], [False, True]]},
    ],
)
def test_every_table_of_a_world_counts(changes):
    assert digest_of_tables(tables(**changes)) != digest_of_tables(tables())


def test_the_last_bits_do_not_count():
    """They may differ from machine to machine, also about powers of two and zero."""
    base = digest_of_tables(tables())
    for reward in (np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0)):
        assert digest_of_tables(tables(reward=reward)) == base
    assert digest_of_tables(tables(reward=-0.0)) == digest_of_tables(tables(reward=0.0))


def test_an_environment_that_acts_otherwise_is_another_world():
    class Still(TabularEnv):
        pass

    class Restless(TabularEnv):
        def step(self, action):
            return super().step(1 - action)

    digests = {digest_of_tables(tables(), kind) for kind in (TabularEnv, Still, Restless)}
    assert len(digests) == 3


SLIPPERY = """
from brmdp.envs.tabular_env import TabularEnv
SLIP = 0.5
def slips(rng):
    return rng.random() < SLIP
class Slippery(TabularEnv):
    def step(self, action):
        return super().step(1 - action if slips(self.np_random) else action)
"""


@contextmanager
def loaded(path, text):
    """A module of that text, until it is no longer needed."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    try:
        specification.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[path.stem]


def test_what_stands_beside_an_environment_counts_too(tmp_path):
    digests = set()
    for number, text in enumerate((SLIPPERY, SLIPPERY, SLIPPERY.replace("0.5", "0.9"))):
        with loaded(tmp_path / str(number) / "slippery.py", text) as module:
            digests.add(digest_of_tables(tables(), module.Slippery))
    assert len(digests) == 2


@pytest.mark.parametrize(
    "edit", [("1 - action", "action"), ("def slips", "\n\ndef slips"), ("class", "klass")]
)
def test_an_environment_edited_after_it_was_loaded_is_refused(tmp_path, edit):
    """The old version would run, while its file says something else."""
    path = tmp_path / "slippery_edited.py"
    with loaded(path, SLIPPERY) as module:
        path.write_text(SLIPPERY.replace(*edit))
        with pytest.raises(
            OtherOriginError, match=r"slippery_edited\.py was edited after it was loaded.*Slippery"
        ):
            digest_of_tables(tables(), module.Slippery)
        path.write_text(SLIPPERY)
        assert digest_of_tables(tables(), module.Slippery)


def test_members_of_any_kind_are_no_edits(tmp_path):
    """Decorated methods, and attributes that pretend to wrap something without end."""
    text = f"import functools\nfrom unittest.mock import call\n{SLIPPERY}" + (
        "    endless = call\n"
        "    @staticmethod\n    def one():\n        return 1\n"
        "    @classmethod\n    def two(cls):\n        return 2\n"
        "    @property\n    def three(self):\n        return 3\n"
        "    @functools.cache\n    def four(self):\n        return [n for n in range(4)]\n"
    )
    with loaded(tmp_path / "slippery_members.py", text) as module:
        assert digest_of_tables(tables(), module.Slippery)


def test_worlds_that_are_drawn_or_made_of_code(tmp_path):
    drawn = Case("drawn", "prior", "continuing-psrl", 0.8, 10, {"n_states": 3, "n_actions": 2})
    assert digest_of(drawn) == execute(drawn, 1, 0).world == execute(drawn, 1, 1).world
    assert digest_of(drawn) != digest_of(
        replace(drawn, environment_parameters={"n_states": 3, "n_actions": 3})
    )
    lake = Case("lake", "continuous-frozenlake", "continuing-psrl", 0.8, 10)
    assert digest_of(lake) == CONTINUOUS


# --- code -----------------------------------------------------------------------------------------


@pytest.mark.long
def test_which_code_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(origin, "bare_code", cache(bare_code))  # most files stay as they are
    package = tmp_path / "brmdp"
    shutil.copytree(
        Path(brmdp.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    assert package_digests(package) == (CODE, ANALYSIS, CONTINUOUS, DECISIONS, MODELS)

    def digests_after(place, change=lambda text: text + b"\nanother = 1\n"):
        path = package / place
        text = path.read_bytes()
        path.write_bytes(change(text))
        found = package_digests(package)
        path.write_bytes(text)
        return found

    for place in (
        *("_kernels/dirichlet.py", "planning/fixed_point.py", "beliefs/gammas.py", "dirichlet.py"),
        *("risk/measures.py", "pattern.py", "mdp.py", "_streams.py", "envs/riverswim.py"),
        *("agents/agent.py", "simulation/loop.py", "theory/worlds.py", "_columns.py"),
        *("runs/execution.py", "runs/streams.py", "runs/encoding.py", "runs/catalogue.py"),
    ):
        assert digests_after(place)[0] != CODE, place
        assert digests_after(place)[1] == ANALYSIS
    for place in (
        *("cli.py", "_renamed.py", "runs/store.py", "runs/runner.py", "runs/cluster.py"),
        *("runs/former.py", "report/style.py", "report/panels.py", "studies/lemmas/figures.py"),
        "studies/lemmas/experiment.py",  # counts with its program
        "models/page/svg.py",
    ):
        assert digests_after(place) == (CODE, ANALYSIS, CONTINUOUS, DECISIONS, MODELS), place
    for place in ("report/claims.py", "report/estimates.py", "studies/lemmas/analysis.py"):
        assert digests_after(place)[0] == CODE
        assert digests_after(place)[1] != ANALYSIS
    for place, part in (
        ("continuous/fitted_q.py", 2),
        ("decisions/draws.py", 3),
        ("logs/log.py", 4),
    ):
        found = digests_after(place)
        others = [k for k in range(5) if k != part]
        assert found[part] != package_digests(package)[part]
        assert all(found[k] == package_digests(package)[k] for k in others), place
    assert digests_after("mdp.py", lambda text: text.replace(b"\n", b"\r\n"))[0] == CODE
    assert digests_after("mdp.py", lambda text: text + b"\n\n# a comment\n")[0] == CODE
    (package / "new.py").touch()
    assert package_digests(package)[0] != CODE


def test_a_program_names_the_parts_that_it_depends_on():
    def made_of(*parts):
        return program_digest("tiny_experiments:DICE", len, {}, parts)

    digests = {made_of(), made_of("decisions"), made_of("continuous")}
    assert len(digests) == 3
    assert Program(throw_dice, Throws, {}, "continuous").parts == ("continuous",)
    assert Program(throw_dice, Throws, {}, "continuous", ("decisions",)).parts == (
        "decisions",
        "continuous",
    )
    with pytest.raises(InvalidInputError, match="part of brmdp"):
        Program(throw_dice, Throws, {}, parts=("engine",))


WRITTEN = r'''
"What it is for."

LIMIT = 3
"""What it "limits": \""""


def scaled(
    value,  # in "metres"
    # a comment by itself
    factor=2,
    words=(
        "first"
        "second"
    ),
):
    """A docstring. # no comment"""

    text = """# no comment

    kept """  # dropped
    shown = f"{value!r:>{factor}} # {{kept}}" 'and \' # this'
    return value \
        * factor, text, shown, 'é' \
        "end"
'''
BARE = r'''LIMIT = 3
def scaled(
    value,
    factor=2,
    words=(
        "first"
        "second"
    ),
):
    text = """# no comment

    kept """
    shown = f"{value!r:>{factor}} # {{kept}}" 'and \' # this'
    return value \
        * factor, text, shown, 'é' \
        "end"'''


def statements(text):
    """Tokens of all statements but docstrings, without comments and layout."""
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    found = [[]]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            found.append([])
        elif token.type not in layout:
            found[-1].append((token.type, token.start[1] * (not found[-1]), token.string))
    return [one for one in found if one and {kind for kind, *_ in one} != {tokenize.STRING}]


def test_code_counts_without_comments_docstrings_and_blank_lines():
    assert bare_code(WRITTEN) == BARE
    assert bare_code(WRITTEN.replace("\n", "\r\n")) == BARE
    assert bare_code("") == bare_code("# nothing") == bare_code('"""Nothing"""') == ""


@pytest.mark.long
def test_every_statement_of_the_library_counts_and_nothing_else():
    for path in Path(brmdp.__file__).parent.rglob("*.py"):
        text = path.read_text()
        bare = bare_code(text)
        assert statements(bare) == statements(text), path
        tokens = tokenize.generate_tokens(io.StringIO(bare).readline)
        assert tokenize.COMMENT not in {token.type for token in tokens}, path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("factor=2", "factor=3"),
        ("no comment\n\n", "no comment\n"),
        ('kept "', 'kept"'),
        ("# {{kept}}", ""),
        ("# this", ""),
        ('"second"', ""),
        ('"end"', '"end!"'),
        ("        * factor", "        + factor"),
        ("    return value", "return value"),
    ],
)
def test_an_edit_that_can_change_a_result_counts(old, new):
    assert old in WRITTEN
    assert bare_code(WRITTEN.replace(old, new)) != BARE


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_programs_of_a_study_stand_in_one_file_that_uses_no_other(folder):
    """That file counts with each run of its programs, and no other file of the studies does."""
    module = importlib.import_module(f"brmdp.studies.{folder}.experiment")
    for name, value in vars(module).items():
        if isinstance(value, Program):
            assert value.replicate.__module__ == module.__name__, name
    nodes = list(ast.walk(ast.parse(Path(module.__file__).read_text())))
    imported = {
        *(node.module for node in nodes if isinstance(node, ast.ImportFrom)),
        *(one.name for node in nodes if isinstance(node, ast.Import) for one in node.names),
    }
    assert not [name for name in imported if name.startswith(("brmdp.studies", "brmdp.report"))]


ODDS = """
from tiny_experiments import Program, Throws, throw_dice
SIDES = 6
def odds(seed, *, throws):
    return throw_dice(seed, throws=throws, sides=SIDES)
DICE = Program(odds, Throws, {"throws": 3})
"""


def test_a_program_that_was_edited_is_another_origin(tmp_path):
    digests = set()
    for number, text in enumerate((ODDS, ODDS, ODDS.replace("SIDES = 6", "SIDES = 7"))):
        with loaded(tmp_path / str(number) / "other_dice.py", text):
            case = Computation("cube", "other_dice:DICE", {"throws": 2})
            digests.add(digest_of(case))
            assert execute(case, 1, 0).world == digest_of(case)
            if number == 0:
                store = run_experiment(dicing(cases=(case,)), tmp_path, workers=1)
    assert len(digests) == 2
    with loaded(tmp_path / "2" / "other_dice.py", text):
        with pytest.raises(OtherOriginError, match="'cube' made by another program: the digest of"):
            run_experiment(dicing(cases=(case,)), tmp_path, workers=1)
        with pytest.raises(OtherOriginError, match="the program 'other_dice:DICE' differs"):
            execute(case, 1, 0, world=store.world_of(case))
    assert Store.at(store.directory).records("cube").run.size == 4


WRAPPED = """
from functools import cache, partial
from wrapped_tools import Throws, odds, Thrower, thrower, decorated
from tiny_experiments import Program
PARTIAL = Program(partial(odds, sides=6), Throws, {"throws": 3})
METHOD = Program(Thrower().throw, Throws, {"throws": 3})
OBJECT = Program(thrower, Throws, {"throws": 3})
DECORATED = Program(decorated, Throws, {"throws": 3})
"""
TOOLS = """
from functools import cache
from tiny_experiments import Throws, throw_dice
def odds(seed, *, throws, sides):
    return throw_dice(seed, throws=throws, sides=sides)
class Thrower:
    def throw(self, seed, *, throws):
        return odds(seed, throws=throws, sides=6)
    __call__ = throw
thrower = Thrower()
@cache
def decorated(seed, *, throws):
    return odds(seed, throws=throws, sides=6)
"""


@pytest.mark.parametrize("name", ["PARTIAL", "METHOD", "OBJECT", "DECORATED"])
def test_programs_of_any_callable_have_the_digest_of_its_file(name, tmp_path):
    """The file with the function lies in a folder of its own: what the object wraps counts."""
    digests = set()
    for number, text in enumerate((TOOLS, TOOLS, TOOLS.replace("sides=6", "sides=7"), TOOLS + "#")):
        with (
            loaded(tmp_path / f"tools{number}" / "wrapped_tools.py", text),
            loaded(tmp_path / "own" / "wrapping.py", WRAPPED),
        ):
            case = Computation("cube", f"wrapping:{name}", {"throws": 2})
            digests.add(digest_of(case))
            assert execute(case, 1, 0).world == digest_of(case)
    assert len(digests) == 3


def test_each_world_is_built_once_for_its_digest(monkeypatch):
    built = []
    setting = execution.make_setting

    def counted(case, rng):
        built.append(case.name)
        return setting(case, rng)

    monkeypatch.setattr(execution, "make_setting", counted)
    digests = digests_of([*TINY.cases, *dicing().cases])
    assert built == ["adaptive", "store"]
    assert digests["adaptive"] == digests["psrl"] != digests["store"]
    assert digests["cube"] == digests["icosahedron"]
    for case in TINY.cases:
        assert digests[case.name] == digest_of(case)


def test_a_store_of_other_code_is_refused_and_can_be_read(store, other_code, tmp_path):
    before = everything_in(tmp_path)
    other_code()
    with pytest.raises(OtherOriginError, match="made by other code") as caught:
        run_experiment(replace(TINY, runs=3), tmp_path, workers=1)
    assert str(store.directory) in str(caught.value)
    assert f"was {short(CODE)} and is now {short(OTHER)}" in str(caught.value)
    assert everything_in(tmp_path) == before
    assert Store.at(store.directory).digest() == store.digest()
    assert Store.at(store.directory).records("psrl").made_by == ((brmdp_version(), CODE),)


def brmdp_version():
    return encoding_module.versions()["brmdp"]


def test_a_store_of_other_code_without_its_description(store, other_code, tmp_path):
    (store.directory / "experiment.json").unlink()
    other_code()
    with pytest.raises(OtherOriginError, match="made by other code"):
        run_experiment(TINY, tmp_path, workers=1)
    assert not (store.directory / "experiment.json").exists()


@pytest.mark.long
def test_runs_of_two_codes_without_their_description(store, other_code, tmp_path):
    """That some runs were made by the present code does not say that the others are wanted."""
    other_code()
    both = run_experiment(replace(TINY, runs=3), tmp_path, workers=1, accept_other_code=True)
    (store.directory / "experiment.json").unlink()
    with pytest.raises(OtherOriginError, match=rf"digest was {short(CODE)} and is now"):
        run_experiment(replace(TINY, runs=3), tmp_path, workers=1)
    assert not (store.directory / "experiment.json").exists()
    again = run_experiment(replace(TINY, runs=3), tmp_path, workers=1, accept_other_code=True)
    assert again.digest() == both.digest()
    run_experiment(replace(TINY, runs=3), tmp_path, workers=1)


@pytest.mark.long
def test_whoever_insists_gets_both_and_is_told(store, other_code, tmp_path):
    other_code()
    more = run_experiment(replace(TINY, runs=3), tmp_path, workers=1, accept_other_code=True)
    both = ((brmdp_version(), CODE), (brmdp_version(), OTHER))
    assert more.records("psrl").made_by == both
    assert Store.at(store.directory).origin.code == (CODE, OTHER)
    assert short(OTHER) in writing.made_by_line(both)
    # and need not insist again
    run_experiment(replace(TINY, runs=3), tmp_path, workers=1)


def test_a_run_that_was_put_there_is_not_used(store, other_code, tmp_path):
    record = execute(CASE, TINY.seed, 1)
    other_code()
    foreign = encode(record, CASE, TINY.seed, 1)
    store.path(CASE, 1).write_bytes(foreign)
    status = store.status(CASE)
    assert (status.finished, list(status.foreign), status.damaged) == ((0,), [1], {})
    for where in (store, replace(store, origin=None), Store.at(store.directory)):
        with pytest.raises(OtherOriginError, match=r"psrl--0001.parquet was made by other code"):
            where.records("psrl")
    with pytest.MonkeyPatch.context() as patch:
        for module in (runner_module, store_module, encoding_module):
            patch.setattr(module, "CODE", CODE)
        with pytest.raises(OtherOriginError, match="move these runs elsewhere"):
            run_experiment(TINY, tmp_path, workers=1)
    assert store.path(CASE, 1).read_bytes() == foreign


@pytest.mark.long
def test_a_worker_with_other_code_is_refused_before_it_runs(tmp_path):
    """A real one: another process, which imports a package with other rewards."""
    package = tmp_path / "elsewhere" / "brmdp"
    shutil.copytree(
        Path(brmdp.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    with (package / "envs" / "riverswim.py").open("a") as stream:
        stream.write("\nSTAY_REWARD = 7.0\n")

    class Elsewhere(Executor):
        def submit(self, fn, /, *arguments):
            code = (
                "import pickle, sys\nfn, arguments = pickle.load(sys.stdin.buffer)\n"
                "import brmdp.runs.runner\nsys.modules['brmdp.runs.execution'].simulate = None\n"
                "try: answer = fn(*arguments)\nexcept Exception as error: answer = error\n"
                "sys.stdout.buffer.write(pickle.dumps(answer))"
            )
            done = subprocess.run(
                [sys.executable, "-c", code],
                input=pickle.dumps((fn, arguments)),
                env={**os.environ, "PYTHONPATH": str(package.parent)},
                capture_output=True,
                check=True,
                timeout=120,
            )
            future = Future()
            future.set_exception(pickle.loads(done.stdout))
            return future

    with pytest.raises(
        OtherOriginError, match=r"refused by a worker on .*digest of its code is \w{12} \(brmdp"
    ) as caught:
        run_experiment(replace(TINY, cases=(CASE,), runs=1), tmp_path / "out", executor=Elsewhere())
    assert f"but {short(CODE)} was asked for" in str(caught.value)
    assert not list((tmp_path / "out").glob("*/runs/*"))


@pytest.mark.parametrize("format", [1, 2])
def test_a_run_of_other_code_is_refused_when_it_arrives(format, tmp_path, monkeypatch):
    """From a worker too old to know that it should refuse, and one too old to say what it is."""
    true_facts = store_module.facts_of

    def without_digests(task):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(encoding_module, "CODE", OTHER)
            return encode(execute(task.case, task.seed, task.run), task.case, task.seed, task.run)

    monkeypatch.setattr(runner_module, "compute", without_digests)
    if format == 1:
        monkeypatch.setattr(
            store_module, "facts_of", lambda text, source: {**true_facts(text, source), "code": ""}
        )
    theirs = "unknown" if format == 1 else short(OTHER)
    with pytest.raises(
        OtherOriginError,
        match=f"which a worker sent, was made by other code: its digest is {theirs}",
    ):
        run_experiment(TINY, tmp_path, workers=1)
    assert not list(tmp_path.glob("*/runs/*"))


def test_what_a_worker_sends_must_be_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(runner_module, "compute", lambda task: b"nonsense")
    with pytest.raises(ExperimentError, match="which a worker sent, cannot be read"):
        run_experiment(TINY, tmp_path, workers=1)


# --- older stores ---------------------------------------------------------------------------------


def test_a_store_without_digests_is_read_and_never_added_to(store, tmp_path, monkeypatch, capsys):
    regret = store.records("psrl").true_regret
    former_stores.rewrite(store, 1)
    before = everything_in(tmp_path)
    found = Store.at(store.directory).records("psrl")
    np.testing.assert_array_equal(found.true_regret, regret)
    assert found.made_by == ((brmdp_version(), ""),)
    for insist in (False, True):
        with pytest.raises(
            OtherOriginError, match=r"do not say what code and world made them \(format 1\)"
        ):
            run_experiment(replace(TINY, runs=3), tmp_path, workers=1, accept_other_code=insist)
    assert everything_in(tmp_path) == before
    assert cli.main(["status", str(tmp_path)]) == 0
    assert "made by code unknown" in capsys.readouterr().out


def test_a_file_of_the_future_is_refused_not_set_aside(store, tmp_path):
    path = store.path(CASE, 0)
    table = pq.read_table(path)
    facts = {**json.loads(table.schema.metadata[b"brmdp"]), "format": 4}
    pq.write_table(table.replace_schema_metadata({"brmdp": json.dumps(facts), "sha256": "0"}), path)
    with pytest.raises(OtherOriginError, match=r"has format 4; this version .* reads 1, 2 and 3"):
        run_experiment(TINY, tmp_path, workers=1)
    assert path.exists()


def test_altered_digests_are_damage(store):
    path = store.path(CASE, 0)
    table = pq.read_table(path)
    facts = {**json.loads(table.schema.metadata[b"brmdp"]), "code": OTHER}
    pq.write_table(
        table.replace_schema_metadata({**table.schema.metadata, b"brmdp": json.dumps(facts)}), path
    )
    with pytest.raises(CorruptFileError, match="does not match its digest"):
        decode(path.read_bytes(), CASE, TINY.seed, 0, path)


def test_report_of_what_is_there(store, other_code, tmp_path, monkeypatch, capsys):
    """Also after the code has changed, and if a run is missing."""
    seen = {}

    def write(study, records, directory):
        assert directory == store.directory
        seen.update({name: found.run.tolist() for name, found in records.items()})
        return writing.Report("the text", {}, (), ())

    monkeypatch.setattr(Study, "report", write)
    monkeypatch.setattr(cli, "CODE", OTHER)
    other_code()
    store.path(CASE, 0).unlink()
    assert cli.main(["report", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == "the text\n"
    assert "left out 1 missing or damaged run" in printed.err
    assert seen == {"adaptive": [0, 1], "psrl": [1], "sampled/reused": [0, 1], "store": [0, 1]}
    assert cli.main(["status", str(tmp_path)]) == 0
    assert f"made by code {short(CODE)} (now {short(OTHER)})" in capsys.readouterr().out


# --- tables ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def refresh():
    path = Path(__file__).parents[2] / "docs" / "refresh.py"
    specification = importlib.util.spec_from_file_location("refresh", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_every_table_in_the_pages_says_what_made_it(refresh):
    tables = [name for page in refresh.pages_of_docs() for name, *_ in refresh.made_by(page)]
    assert len(tables) >= 23
    assert "claims.md" in tables


@pytest.mark.long
def test_a_report_says_what_made_it_and_pages_keep_it(refresh, tmp_path, monkeypatch):
    small = replace(TINY, cases=TINY.cases[1:2], runs=2)
    store = run_experiment(small, tmp_path, workers=1)
    report = Study(small).report({"psrl": store.records("psrl")}, store.directory)
    line = f"Runs: brmdp {brmdp_version()}, code {short(CODE)}; analysis {short(ANALYSIS)}."
    assert report.text.endswith(line)
    page = tmp_path / "page.md"
    page.write_text("Before\n<!-- results: tiny/summary.md -->\n\n<!-- end -->\nAfter\n")
    assert list(refresh.stale(page)) == ["page.md: tiny/summary.md: not made yet"]
    refresh.refresh(page, tmp_path)
    text = page.read_text()
    assert f"\n<sub>{line}</sub>\n\n<!-- end -->\nAfter\n" in text
    assert list(refresh.stale(page)) == []
    page.write_text(text.replace(short(ANALYSIS), "0" * 12))
    assert list(refresh.stale(page)) == [
        f"page.md: tiny/summary.md: made by analysis {'0' * 12}, now {short(ANALYSIS)}"
    ]
    page.write_text(text.replace(short(CODE), "unknown"))
    monkeypatch.setattr(refresh, "DOCS", tmp_path)
    assert refresh.check() == 1
    (store.directory / "summary.md").write_text("| no | origin |\n")
    with pytest.raises(SystemExit, match="does not say what made it"):
        refresh.refresh(page, tmp_path)
