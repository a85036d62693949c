"""Compiled kernels are kept where that is possible, and nothing fails where it is not."""

import importlib.util
import logging
import os
import re
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import brmdp
from brmdp._kernels.compiled import CONFIG, apart
from brmdp.errors import InvalidInputError
from brmdp.risk.threads import for_chunks, one_thread, thread_count
from brmdp.runs import run_experiment, runner
from tiny_experiments import tiny

USE_A_KERNEL = """
import errno, logging, sys
import numpy as np
from numba.core import event

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stdout)
logging.getLogger("numba").setLevel(logging.WARNING)

class Compilations(event.Listener):
    count = 0
    def on_start(self, event):
        self.count += 1
    def on_end(self, event):
        pass

compilations = Compilations()
event.register("numba:compile", compilations)
from brmdp._kernels import compiled, linear

def disk_full(path, content):
    raise OSError(errno.ENOSPC, "No space left on device", str(path))

{prepare}
for kind in (np.int64, np.int32):  # two versions of a kernel
    pointers = np.empty(3, dtype=kind)
    linear.row_pointers(np.arange(2), np.array([0, 2, 5]), pointers)
    assert pointers.tolist() == [0, 2, 5]
print("compiled", compilations.count)
"""


class Installation:
    """A copy of the kernels alone, with nothing compiled, used by processes of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.kernels = folder / "brmdp" / "_kernels"
        self.in_tree = self.kernels / "__pycache__"
        self.cache, self.temporary = folder / "cache", folder / "temporary"
        source = Path(brmdp.__file__).parent / "_kernels"
        shutil.copytree(source, self.kernels, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "brmdp" / "__init__.py").touch()
        self.temporary.mkdir()

    def use(self, prepare="", **environment):
        """Lines printed and logged by a process that uses a kernel, but for times."""
        inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        own = {"PYTHONPATH": self.folder, "XDG_CACHE_HOME": self.cache, "TMPDIR": self.temporary}
        done = subprocess.run(
            [sys.executable, "-B", "-c", USE_A_KERNEL.format(prepare=prepare)],
            env={
                **inherited,
                **{name: str(value) for name, value in {**own, **environment}.items()},
            },
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        # how long it took is said where it took long, as on a busy machine
        lines = done.stdout.splitlines()
        return [line for line in lines if not line.startswith("INFO compiled row_pointers")]

    def forbid_in_tree(self):
        """Root may write to any folder, but nobody to one that is a file."""
        self.in_tree.write_text("")


@pytest.fixture
def installation(tmp_path):
    return Installation(tmp_path)


NOWHERE = {"XDG_CACHE_HOME": "/dev/null/cache", "TMPDIR": "/dev/null/temporary"}
COMPILING = (
    "INFO compiling numerical kernels for this machine: the first plans take up to a minute longer"
)


@pytest.mark.long
def test_compiled_kernels_are_kept_beside_the_sources(installation):
    assert installation.use() == [COMPILING, "compiled 2"]
    assert len(list(installation.in_tree.glob("*.kernel"))) == 2
    assert not installation.cache.exists()
    # nor need the folder be writable to be read, as in an image
    assert installation.use("compiled._write = disk_full", **NOWHERE) == ["compiled 0"]


@pytest.mark.long
def test_where_nothing_can_be_written_everything_works(installation):
    installation.forbid_in_tree()
    first, warning, last = installation.use(**NOWHERE)
    assert (first, last) == (COMPILING, "compiled 2")
    assert warning.startswith("WARNING compiled kernels cannot be kept (")
    assert "set NUMBA_CACHE_DIR" in warning


@pytest.mark.long
def test_the_users_cache_takes_the_place_of_a_folder_that_cannot_be_written(installation):
    installation.forbid_in_tree()
    lines = installation.use(TMPDIR="/dev/null/temporary")
    assert [line for line in lines if str(installation.cache) in line] == lines[1:2]
    assert lines[1].startswith("INFO compiled kernels are kept in ")
    assert installation.use(TMPDIR="/dev/null/temporary") == ["compiled 0"]


@pytest.mark.long
def test_a_private_temporary_folder_comes_last(installation):
    installation.forbid_in_tree()
    elsewhere = {"XDG_CACHE_HOME": "/dev/null/cache"}
    lines = installation.use(**elsewhere)
    assert lines[1].startswith(f"WARNING compiled kernels are kept in {installation.temporary}")
    assert installation.use(**elsewhere) == ["compiled 0"]
    (folder,) = installation.temporary.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    # somebody else could put code of their own there
    folder.chmod(0o777)
    lines = installation.use(**elsewhere)
    assert lines[-1] == "compiled 2"
    assert lines[1].startswith("WARNING compiled kernels cannot be kept (")


@pytest.mark.long
def test_a_folder_asked_for_comes_first(installation):
    asked = installation.folder / "asked for"
    assert installation.use(NUMBA_CACHE_DIR=asked)[-1] == "compiled 2"
    assert len(list(asked.glob("*/*.kernel"))) == 2
    assert not installation.in_tree.exists()


@pytest.mark.long
def test_a_full_disk_costs_a_line_and_nothing_else(installation):
    lines = installation.use("compiled._write = disk_full")
    assert len(lines) == 3
    assert "No space left on device" in lines[1]
    assert lines[2] == "compiled 2"


@pytest.mark.long
def test_an_entry_that_is_damaged_or_of_other_sources_is_compiled_again(installation):
    installation.use()
    first, second = installation.in_tree.glob("*.kernel")
    first.write_bytes(first.read_bytes()[:1000])
    second.write_bytes(second.read_bytes()[:-1] + b"\0")
    assert installation.use()[-1] == "compiled 2"
    assert installation.use(NUMBA_BOUNDSCHECK="1")[-1] == "compiled 2"

    # kernels are compiled into one another, from file to file
    other = installation.kernels / "lake.py"
    other.write_text(other.read_text() + "\n# another\n")
    assert installation.use()[-1] == "compiled 2"


PARTS = """
from brmdp._kernels.compiled import apart, kernel

@apart
def innermost(x):
    return x + 0.5

@apart
def inner(x):
    return innermost(x) + 0.5

@kernel
def middle(x):
    return 2.0 * inner(x)

@kernel
def outer(x):
    return middle(x) - 1.0
"""
OUTER = "from brmdp._kernels import parts; print(parts.outer(1.0))"
MIDDLE = "from brmdp._kernels import parts; print(parts.middle(1.0))"


@pytest.fixture
def parts(installation):
    """An installation with kernels compiled apart, of which one calls the other."""
    (installation.kernels / "parts.py").write_text(PARTS)
    return installation


@pytest.mark.long
def test_kernels_compiled_apart_are_called_and_never_missed(parts):
    """Machine code that calls a compilation that is gone would end the process."""
    assert parts.use(OUTER) == [COMPILING, "3.0", "compiled 6"]
    assert parts.use(OUTER) == ["3.0", "compiled 0"]
    # in another process, the same kernel has another name in machine code
    (entry,) = parts.in_tree.glob("parts.inner-*.kernel")
    entry.unlink()
    assert parts.use(MIDDLE) == [COMPILING, "4.0", "compiled 2"]
    assert parts.use(OUTER) == [COMPILING, "3.0", "compiled 1"]
    assert parts.use(OUTER) == ["3.0", "compiled 0"]
    entry.unlink()
    for place in (NOWHERE, {}):
        assert parts.use("compiled._write = disk_full\n" + OUTER, **place)[-2] == "3.0"


@pytest.mark.long
@pytest.mark.parametrize("name", ["innermost", "outer"])
def test_whichever_entry_is_missing_or_damaged_is_compiled_again(parts, name):
    parts.use(OUTER)
    (entry,) = parts.in_tree.glob(f"parts.{name}-*.kernel")
    content = entry.read_bytes()
    entry.unlink()
    assert parts.use(OUTER)[-2] == "3.0"
    assert parts.use(OUTER) == ["3.0", "compiled 0"]
    entry.write_bytes(content[: len(content) // 2])
    assert parts.use(OUTER)[-2] == "3.0"
    # an entry of a former compilation
    entry.write_bytes(content)
    assert parts.use(OUTER)[-2] == "3.0"
    assert parts.use(OUTER) == ["3.0", "compiled 0"]


@pytest.mark.long
def test_processes_may_compile_into_the_same_folder_at_once(parts):
    """They give kernels different names if they compile them in a different order."""
    with ThreadPoolExecutor(3) as pool:
        first = list(pool.map(parts.use, [OUTER, MIDDLE + "\n" + OUTER, OUTER]))
    assert {lines[-2] for lines in first} == {"3.0"}
    assert parts.use(OUTER)[-2] == "3.0"
    assert parts.use(OUTER) == ["3.0", "compiled 0"]


@pytest.mark.skipif(bool(CONFIG.DISABLE_JIT), reason="needs compiled kernels")
def test_an_inner_kernel_refuses_to_be_called_from_python():
    """It would end the process: nothing is compiled that takes arguments from there."""
    with pytest.raises(TypeError, match="value_of is called by other kernels, not from Python"):
        apart(value_of)(1.0)


def value_of(x):
    return x


OTHER_NUMBA = """
from numba.core.codegen import CPUCodeLibrary

def without(library, name):
    if name == "{hidden}" and sys._getframe(1).f_globals["__name__"] == compiled.__name__:
        raise AttributeError(name)
    return object.__getattribute__(library, name)

CPUCodeLibrary.__getattribute__ = without
"""


@pytest.mark.long
@pytest.mark.parametrize("hidden", ["_final_module", "_shared_module"])
def test_kernels_are_compiled_into_each_other_where_numba_is_unlike_what_we_know(parts, hidden):
    outer = OTHER_NUMBA.format(hidden=hidden) + OUTER
    assert parts.use(outer) == [COMPILING, "3.0", "compiled 6"]
    for entry in parts.in_tree.glob("parts.inner*.kernel"):
        entry.unlink()
    # nothing is called, so nothing is missed
    assert parts.use(outer) == ["3.0", "compiled 0"]


WARM = """
import numpy as np
import brmdp
from brmdp import warm_up
from brmdp._kernels import dirichlet, linear

def versions():
    named = [*vars(dirichlet).values(), *vars(linear).values()]
    return sum(len(kernel.signatures) for kernel in named if hasattr(kernel, "signatures"))

warm_up.warm_up()
before = versions()
assert len(dirichlet.evaluate_pairs.signatures) == len(dirichlet.rows_of_pairs.signatures) == 1

world = brmdp.envs.frozenlake(0.7)
belief = brmdp.DirichletBelief.uniform(world.n_states, world.n_actions)
levels = np.full((16, 4), 0.2)
for risk in (brmdp.Quantile(0.2), brmdp.CVaR(0.2), brmdp.Mean(), brmdp.Quantile(levels)):
    brmdp.plan(belief, world.rewards, world.discount, risk=risk)
certificate = brmdp.certify(belief, np.ones((16, 4)), 0.9)
agent = brmdp.agents.aq_brmdp(belief, world.rewards, world.discount, delta=0.1)
for _ in range(5):
    agent.observe(0, agent.act(0), 0)
readonly = np.arange(4.0)
readonly.setflags(write=False)
layout = np.asfortranarray(np.ones((2, 4)))[:, None]
for values in (np.arange(4.0), readonly, np.ones((3, 1, 4)), layout):
    for level in (0.1, np.array([0.1, 0.2])):
        brmdp.dirichlet.quantile(np.ones(4), values, level)
        brmdp.dirichlet.cvar_row(np.ones((1, 4)), values, level)
        brmdp.dirichlet.cdf(readonly + 1.0, values, level)
print(versions() - before)
"""


@pytest.mark.long
def test_after_a_warm_up_nothing_is_left_to_compile():
    """Nor are functions compiled again for read-only arrays or other layouts."""
    done = subprocess.run(
        [sys.executable, "-c", WARM], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["0"]), done.stderr


# --- threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["1000000", "1025", "0", "-1", "1.5", "two", "²", "٣", "9" * 5000]
)
def test_an_odd_number_of_threads_is_refused_at_once(value, monkeypatch):
    monkeypatch.setenv("BRMDP_NUM_THREADS", value)
    with pytest.raises(
        InvalidInputError, match="BRMDP_NUM_THREADS must be an integer from 1 to 1024"
    ):
        for_chunks(10**6, np.arange(10), lambda *_: 0.0)


@pytest.mark.parametrize(("value", "threads"), [("3", 3), (" 3 ", 3), ("1024", 1024)])
def test_the_number_of_threads_can_be_set(value, threads, monkeypatch):
    monkeypatch.setenv("BRMDP_NUM_THREADS", value)
    assert thread_count() == threads
    with one_thread():
        assert thread_count() == 1
    assert thread_count() == threads


@pytest.mark.parametrize("value", ["", "  "])
def test_without_a_number_there_are_as_many_threads_as_processors(value, monkeypatch):
    monkeypatch.setenv("BRMDP_NUM_THREADS", value)
    assert 1 <= thread_count() <= (os.cpu_count() or 1)


# --- the version ----------------------------------------------------------------------------------


@pytest.fixture
def setup_script(monkeypatch, tmp_path):
    """The module setup.py, looking at an empty folder."""
    path = Path(__file__).parents[1] / "setup.py"
    if not path.exists():
        pytest.skip("not a checkout")
    pytest.importorskip("setuptools")
    spec = importlib.util.spec_from_file_location("brmdp_setup", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "HERE", tmp_path)
    return module


@pytest.mark.long
def test_the_version_is_plain_without_git_and_that_of_a_source_archive(
    setup_script, tmp_path, monkeypatch
):
    assert setup_script.version() == setup_script.PLAIN
    (tmp_path / ".git").mkdir()
    assert setup_script.version() == setup_script.PLAIN
    monkeypatch.setenv("PATH", "")
    assert setup_script.version() == setup_script.PLAIN
    (tmp_path / "PKG-INFO").write_text(
        "Metadata-Version: 2.4\nName: brmdp\nVersion: 1.2.0+5.g1a2b3c4\n"
    )
    assert setup_script.version() == "1.2.0+5.g1a2b3c4"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_version_comes_from_tags(setup_script, tmp_path):
    def git(*arguments):
        author = (
            "-c",
            "user.name=somebody",
            "-c",
            "user.email=somebody@example.org",
            "-c",
            "commit.gpgsign=false",
        )
        subprocess.run(
            ["git", *author, *arguments], cwd=tmp_path, check=True, capture_output=True, timeout=60
        )

    git("init")
    git("commit", "--allow-empty", "--message", "first")
    assert setup_script.version() == setup_script.PLAIN
    git("tag", "v1.2.0")
    git("tag", "something-else")
    assert setup_script.version() == "1.2.0"
    git("commit", "--allow-empty", "--message", "second")
    assert re.fullmatch(r"1\.2\.0\+1\.g[0-9a-f]{7,}", setup_script.version())


# --- what takes long is said ----------------------------------------------------------------------


def test_an_experiment_passes_on_that_kernels_are_compiled(monkeypatch, tmp_path):
    def warm(tasks, *, programs):
        logging.getLogger("brmdp").info("compiling %s", "kernels")
        logging.getLogger("brmdp").debug("details")

    monkeypatch.setattr(runner, "_warm", warm)
    said = []
    run_experiment(tiny(runs=1), tmp_path / "told", workers=1, on_message=said.append)
    assert "compiling kernels" in said
    assert "details" not in said
    assert logging.getLogger("brmdp").handlers == []
    run_experiment(tiny(runs=1), tmp_path / "silent", workers=1)  # no warning either
