"""Put fresh results into the pages of docs/: ``make reproduction``, ``theory`` and ``continuous`` run experiments and then this.

Fills the blocks between ``<!-- results: PATH -->`` and ``<!-- end -->`` with the Markdown tables that the experiments wrote, and
copies the figures that the pages show to docs/figures/. What the folder of results does not hold stays as it is.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from brmdp.figures.report import write_schematics

DOCS = Path(__file__).parent
FIGURES = DOCS / "figures"
BLOCK = re.compile(r"(<!-- results: (?P<path>\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def refresh(page: Path, results: Path) -> None:
    """Refresh one page from the folder of results."""

    def filled(block: re.Match[str]) -> str:
        table = results / block["path"]
        return f"{block[1]}\n{table.read_text().strip()}\n\n{block[3]}" if table.exists() else block[0]

    text = BLOCK.sub(filled, page.read_text())
    page.write_text(text)
    for name in re.findall(r"\(figures/(\S+)\.png\)", text):
        for found in results.glob(f"*/{name}.png"):
            shutil.copyfile(found, FIGURES / f"{name}.png")


def main(results: Path) -> None:
    """Refresh all pages."""
    FIGURES.mkdir(exist_ok=True)
    for page in sorted(DOCS.glob("*.md")):
        refresh(page, results)
    for picture in write_schematics(FIGURES):
        if picture.suffix == ".pdf":
            picture.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
