"""Put fresh results into docs/reproduction.md: ``make reproduction`` runs the experiments and then this.

Copies the figures to docs/figures/ and fills the blocks between ``<!-- results: PATH -->`` and ``<!-- end -->`` with the
Markdown tables that the experiments wrote.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from brmdp.figures.report import write_schematics

DOCS = Path(__file__).parent
BLOCK = re.compile(r"(<!-- results: (?P<path>\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main(results: Path) -> None:
    """Refresh the page from the folder of results."""
    page = DOCS / "reproduction.md"

    def filled(block: re.Match[str]) -> str:
        return f"{block[1]}\n{(results / block['path']).read_text().strip()}\n\n{block[3]}"

    page.write_text(BLOCK.sub(filled, page.read_text()))
    figures = DOCS / "figures"
    figures.mkdir(exist_ok=True)
    for name in re.findall(r"\(figures/(\S+)\.png\)", page.read_text()):
        found = list(results.glob(f"*/{name}.png"))
        if found:
            shutil.copyfile(found[0], figures / f"{name}.png")
    for picture in write_schematics(figures):
        if picture.suffix == ".pdf":
            picture.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
