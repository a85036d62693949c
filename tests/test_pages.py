"""Every Python block of README and of the pages runs as written.

Each page runs in a process of its own, a fork. Links lead somewhere.
"""

import importlib.util
import re
from pathlib import Path

import pytest

from brmdp.decisions.families import SHAPES
from brmdp.decisions.learned_prior import POOLINGS
from brmdp.models.file import KEYS, PRICES, STOCK_KEYS
from brmdp.runs import METHODS, Computation, load_sweep, run_experiment
from brmdp.runs.catalogue import AGENTS, ENVIRONMENTS, PARTS, PRIOR
from brmdp.runs.sweep import COMMON, DEFAULTS

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
MADE = ("generated", "api", "jupyter_execute")
"""Folders of pages that the site's build makes."""
PAGES = [
    ROOT / "README.md",
    *sorted(
        page for page in (ROOT / "docs").rglob("*.md") if not set(MADE).intersection(page.parts)
    ),
]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```", re.DOTALL | re.MULTILINE)
NUMBER = r"-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?"
SWEEP = re.compile(r"^```toml\n(.*?)^```", re.DOTALL | re.MULTILINE)


def name_of(page):
    """The name of a page in the tests' output."""
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def refresh():
    """The program docs/refresh.py."""
    spec = importlib.util.spec_from_file_location("refresh", ROOT / "docs" / "refresh.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_links_to_is_there(page):
    targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.long
@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=name_of
)
def test_blocks_run_and_print_what_the_page_shows(page, tmp_path, forks, refresh):
    text = page.read_text()
    program = refresh.program_of(text)
    if "Store.at(" in program:
        run_the_sweep(tmp_path)
    done = forks.run(program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = refresh.with_outputs(text, done.stdout)
    assert re.sub(NUMBER, "#", printed) == re.sub(NUMBER, "#", text)
    # versions of the libraries may draw other numbers
    shown, now = (
        [float(number.replace(",", "")) for number in re.findall(NUMBER, one)]
        for one in (text, printed)
    )
    assert now == pytest.approx(shown, rel=0.05, abs=0.02)


@pytest.mark.slow  # `make docs` runs them, too
@pytest.mark.parametrize(
    "page", [page for page in PAGES if CELL.search(page.read_text())], ids=name_of
)
def test_cells_run_by_themselves_and_warn_of_nothing(page, tmp_path, forks):
    """Somebody who copies the code of a page, and nothing else, gets what the page shows."""
    cells = [re.sub(r"^:tags:.*\n", "", cell) for cell in CELL.findall(page.read_text())]
    program = "import matplotlib\nmatplotlib.use('agg')\n" + "\n".join(cells)
    done = forks.run(program, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def run_the_sweep(folder):
    """Carry out the sweep of the reference, in short runs."""
    sweep = folder / "sweep.toml"
    sweep.write_text(SWEEP.search((REFERENCE / "sweeps.md").read_text())[1])
    run_experiment(load_sweep(sweep).adjusted(runs=1, steps=500), folder / "results", workers=1)


def test_the_pages_list_the_columns_that_the_code_declares(refresh):
    page = REFERENCE / "records.md"
    assert refresh.with_columns(page.read_text()) == page.read_text()
    # and every program of every study is among them
    programs = {
        case.program
        for study in refresh.all_studies().values()
        for case in study.experiment.cases
        if isinstance(case, Computation)
    }
    assert programs == set(re.findall(r"columns: (brmdp\S+) -->", page.read_text()))


def test_the_verdicts_are_counted_as_the_studies_have_them(refresh):
    page = ROOT / "docs" / "reproduce" / "index.md"
    text = page.read_text()
    assert refresh.with_counts(text, page.parent) == text
    linked = set(re.findall(r"^\| \[.*?\]\((\S+)\)", text, re.MULTILINE))
    judged = {one.name for one in page.parent.glob("*.md") if "claims.md -->" in one.read_text()}
    assert linked == judged


def test_the_page_on_sweeps_names_every_key():
    text = (REFERENCE / "sweeps.md").read_text()
    names = [*DEFAULTS, *ENVIRONMENTS, *(key for keys in ENVIRONMENTS.values() for key in keys)]
    names += [*AGENTS, *(key for _, keys in AGENTS.values() for key in keys)]
    names += [name for known in PARTS.values() for name in known.by_name]
    names += [*PRIOR, *METHODS, *COMMON]
    missing = [name for name in names if f"`{name}`" not in text and f"[[{name}]]" not in text]
    assert not missing


def test_the_page_on_the_model_file_names_every_key():
    text = (REFERENCE / "model-toml.md").read_text()
    names = [key for keys in KEYS.values() for key in keys]
    names += [*STOCK_KEYS, *PRICES, "base", "per", "low", "high", "value"]
    names += ["start", "width", "count", "edges"]
    missing = [name for name in names if f"`{name}`" not in text and f"`[{name}]`" not in text]
    assert not missing
    assert not [name for name in [*SHAPES, *POOLINGS] if f'`"{name}"`' not in text]
