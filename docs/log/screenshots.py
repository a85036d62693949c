"""The pictures of the tutorial: what its commands write, seen in a browser.

``python docs/log/screenshots.py`` follows the tutorial in a temporary folder and writes
``docs/log/figures/answer.png`` and ``dial.png``. It needs Chromium (or ``CHROMIUM=path``).
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops

HERE = Path(__file__).parent
LOG = HERE.parents[1] / "examples" / "fleet" / "log.csv"
WIDTH, HEIGHT = 900, 1600

EDITS = (
    ("# start = …", "start = 0"),
    ("# reset = { replace = 0 }", "reset = { replace = 0 }"),
    ("[cost.keep]\n# base = 0\n# per = 0", "[cost.keep]\nper = 1e-5"),
    ("[cost.replace]\n# base = 0\n# per = 0", "[cost.replace]\nbase = 10"),
)
"""What the tutorial edits in the file that ``brmdp init`` writes."""

ALONE = """<script>
const part = document.querySelector("%s");
if (part) {
  const kept = document.querySelector("main") || document.body;
  kept.replaceChildren(part);
  document.querySelectorAll("nav, header").forEach((one) => one.remove());
}
</script>"""
"""Leaves only one part of a page."""


def edited(text: str) -> str:
    """The model file after the edits of the tutorial.

    Raises
    ------
    ValueError
        If the file has no place for one of them.
    """
    for before, after in EDITS:
        if text.count(before) != 1:
            raise ValueError(f"the file that brmdp init writes does not have {before!r} once")
        text = text.replace(before, after)
    return text


def brmdp(*words: str, folder: Path) -> str:
    """What the command prints."""
    command = [sys.executable, "-m", "brmdp", *words]
    environment = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"brmdp {' '.join(words)}: {done.stderr}")
    return done.stdout


def screenshot(page: Path, part: str, target: Path) -> None:
    """Write a picture of one part of a page."""
    alone = page.with_name("part.html")
    text = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", page.read_text())
    alone.write_text(text.replace("</body>", ALONE % part + "</body>"))
    raw = page.with_name("raw.png")
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or "chromium"
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    size = (f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={raw}")
    subprocess.run([browser, *options, *size, alone.as_uri()], check=True, capture_output=True)
    with Image.open(raw) as found:
        image = found.convert("RGB")
    blank = Image.new("RGB", image.size, image.getpixel((1, 1)))
    box = ImageChops.difference(image, blank).getbbox()
    if box is None:
        raise ValueError(f"{part} is empty")
    margin = 16
    image = image.crop(
        (max(0, box[0] - margin), max(0, box[1] - margin), box[2] + margin, box[3] + margin)
    )
    buffer = io.BytesIO()
    image.quantize(128, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
    target.write_bytes(buffer.getvalue())
    print(f"{target.name}: {len(buffer.getvalue()) // 1024} kB")


def main() -> None:
    """Follow the tutorial and take the pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copyfile(LOG, folder / "log.csv")
        brmdp("init", "log.csv", folder=folder)
        model = folder / "model.toml"
        model.write_text(edited(model.read_text()))
        brmdp("decide", "model.toml", "--report", "page.html", folder=folder)
        (HERE / "figures").mkdir(exist_ok=True)
        for part, picture in (("#answer", "answer.png"), ("#group-1-dial", "dial.png")):
            screenshot(folder / "page.html", part, HERE / "figures" / picture)


if __name__ == "__main__":
    main()
