"""Put fresh results into the pages of docs/.

``make reproduction``, ``theory`` and ``continuous`` run studies and then this.

It fills the blocks between ``<!-- results: PATH -->`` and ``<!-- end -->`` with the Markdown tables
that the studies wrote, and copies the figures that the pages show to docs/figures/. What the folder
of results does not hold stays as it is. Blocks that begin with ``<!-- columns: NAME -->`` list the
columns that the code declares. Rows of docs/reproduce/index.md count the verdicts of each page.

``python docs/refresh.py --outputs`` runs the Python blocks of the pages and puts what they print
into the ``text`` blocks that follow them.

Below every table of results stands what code made its runs and what code made the table. ``python
docs/refresh.py --check`` (``make docs-status``) says which tables are older than the code of today,
and ends with 1 if one is.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from brmdp.report.tables import Table
from brmdp.report.writing import write_figures
from brmdp.runs import RUN_COLUMNS, columns_of, load_sweep
from brmdp.runs.execution import digest_of
from brmdp.runs.origin import ANALYSIS, CODE, run_digest, short
from brmdp.runs.references import load
from brmdp.studies import all_studies
from brmdp.studies.paper.schematics import schematics

DOCS = Path(__file__).parent
MADE = ("generated", "reference/api")
"""Folders that the site's build fills."""
FIGURES = DOCS / "figures"
BLOCK = re.compile(r"(<!-- results: (?P<path>\S+) -->\n)(?P<content>.*?)(<!-- end -->)", re.DOTALL)
COLUMNS = re.compile(
    r"(<!-- columns: (?P<name>\S+) -->\n)(?P<content>.*?)(<!-- end -->)", re.DOTALL
)
PRINTING = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)```\n)?", re.DOTALL | re.MULTILINE
)
STARRED = re.compile(r"(?<=\w)\*_")
"""As in V*_φ, which Markdown would take for emphasis."""
COUNTS = re.compile(
    r"^(?P<head>\| \[[^]|]*\]\((?P<page>\S+\.md)\) \|[^|\n]*)(?:\| *\d* *){3}\|$", re.MULTILINE
)
VERDICTS = ("reproduced", "not resolved", "contradicted")
NEXT = "--- next block ---"
MADE_BY = re.compile(
    r"^<sub>Runs: (?P<runs>brmdp .*); analysis (?P<analysis>\w+)\.</sub>$", re.MULTILINE
)


def pages_of_docs() -> list[Path]:
    """Every page that is written by hand."""
    made = [DOCS / one for one in MADE]
    pages = DOCS.rglob("*.md")
    return sorted(page for page in pages if not any(map(page.is_relative_to, made)))


def refresh(page: Path, results: Path) -> None:
    """Refresh one page from the folder of results."""

    def filled(block: re.Match[str]) -> str:
        table = results / block["path"]
        if not table.exists():
            return block[0]
        content = table.read_text().strip()
        if not MADE_BY.search(content):
            raise SystemExit(
                f"{table} does not say what made it: write it anew with `brmdp report "
                f"{table.parent}`"
            )
        content = STARRED.sub(r"\\*\\_", content)
        return f"{block[1]}\n{content}\n\n{block[4]}"

    text = with_counts(with_columns(BLOCK.sub(filled, page.read_text())), page.parent)
    page.write_text(text)
    for name in re.findall(r"\((?:\.\./)*figures/(\S+)\.png\)", text):
        for found in results.glob(f"*/{name}.png"):
            shutil.copyfile(found, FIGURES / f"{name}.png")


def with_columns(text: str) -> str:
    """The text of a page with the columns that the code declares."""
    return COLUMNS.sub(lambda block: f"{block[1]}\n{_listed(block['name'])}\n\n{block[4]}", text)


def with_counts(text: str, folder: Path) -> str:
    """The text of a page with the verdicts counted, in rows that link to the page of a study."""

    def counted(row: re.Match[str]) -> str:
        study = (folder / row["page"]).read_text()
        numbers = [
            len(re.findall(rf"^\| \*\*{word}\*\*", study, re.MULTILINE)) for word in VERDICTS
        ]
        return f"{row['head']}| {' | '.join(str(number) for number in numbers)} |"

    return COUNTS.sub(counted, text)


def _listed(name: str) -> str:
    """Columns as a table: those of a stored interaction, or those of a study's program."""
    columns = RUN_COLUMNS if name == "interaction" else columns_of(load(name, "program").columns)
    rows = [
        (
            f"`{one.name}`",
            one.type + (", or none" if one.optional else ""),
            re.sub(r"([*_])", r"\\\1", one.meaning),
        )
        for one in columns
    ]
    table = Table(("column", "type", "meaning"), tuple(rows))
    return table.as_markdown(numbers=False)


def program_of(text: str) -> str:
    """The Python blocks of a page as one program, which prints ``NEXT`` after each of them."""
    blocks = [block["code"] for block in PRINTING.finditer(text)]
    return "".join(f"{block}print({NEXT!r}, flush=True)\n" for block in blocks)


def with_outputs(text: str, printed: str) -> str:
    """The page with what its program printed."""
    outputs = iter(printed.split(f"{NEXT}\n"))

    def filled(block: re.Match[str]) -> str:
        output = next(outputs)
        if block["output"] is None:
            return block[0]
        return f"```python\n{block['code']}```\n\n```text\n{output}```\n"

    return PRINTING.sub(filled, text)


def outputs() -> None:
    """Run the pages that show what their blocks print."""
    for page in pages_of_docs():
        text = page.read_text()
        if any(block["output"] is not None for block in PRINTING.finditer(text)):
            command = [sys.executable, "-c", program_of(text)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            page.write_text(with_outputs(text, done.stdout))
            print(f"{page.name}: outputs written")


def made_by(page: Path) -> Iterator[tuple[str, set[str], str]]:
    """For every table of a page: its name, and the digests of the code behind runs and analysis.

    An empty block waits for its first results.

    Raises
    ------
    ValueError
        If a table does not say.
    """
    for block in BLOCK.finditer(page.read_text()):
        if not block["content"].strip():
            continue
        line = MADE_BY.search(block["content"])
        if line is None:
            raise ValueError(f"{page.name}: the table {block['path']} does not say what made it")
        yield block["path"], set(re.findall(r"code (\w+)", line["runs"])), line["analysis"]


def stale(page: Path) -> Iterator[str]:
    """What is older than the code it rests on, or has not been made yet."""
    for block in BLOCK.finditer(page.read_text()):
        if not block["content"].strip():
            yield f"{page.name}: {block['path']}: not made yet"
    try:
        tables = list(made_by(page))
    except ValueError as error:
        yield str(error)
        return
    for name, runs, analysis in tables:
        today = digests_of_today(name)
        if runs != today:
            yield (
                f"{page.name}: {name}: runs made by code {', '.join(sorted(runs))}, now "
                f"{', '.join(sorted(today))}"
            )
        elif analysis != short(ANALYSIS):
            yield f"{page.name}: {name}: made by analysis {analysis}, now {short(ANALYSIS)}"


def digests_of_today(table: str) -> set[str]:
    """Digests of the code that would make the runs behind a table now."""
    name = table.partition("/")[0]
    studies = all_studies()
    if name in studies:
        cases = studies[name].experiment.cases
    elif name == "lake-settings":
        cases = load_sweep(DOCS.parent / "examples" / f"{name}.toml").cases
    else:  # claims of several studies
        cases = [case for one in studies.values() if one.in_paper for case in one.experiment.cases]
    return {short(run_digest(case, CODE, digest_of(case))) for case in cases}


def check() -> int:
    """Say which tables are older than the code they rest on."""
    pages = pages_of_docs()
    older = [line for page in pages for line in stale(page)]
    tables = sum(len(BLOCK.findall(page.read_text())) for page in pages)
    print(
        "\n".join([*older, f"{len(older)} of {tables} tables are older than the code they rest on"])
    )
    return 1 if older else 0


def main(results: Path) -> None:
    """Refresh all pages."""
    FIGURES.mkdir(exist_ok=True)
    for page in pages_of_docs():
        refresh(page, results)
    for picture in write_figures(schematics(), FIGURES):
        if picture.suffix == ".pdf":
            picture.unlink()


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(check())
    if sys.argv[1:] == ["--outputs"]:
        sys.exit(outputs())
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
