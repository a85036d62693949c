"""What the pages on logs show is what the commands print.

Digits may differ with the versions of libraries; words may not.
"""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOG = ROOT / "docs" / "log"
BLOCK = re.compile(r"^```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


@pytest.fixture(scope="module")
def screenshots():
    """The program docs/log/screenshots.py."""
    spec = importlib.util.spec_from_file_location("screenshots", LOG / "screenshots.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fleet(tmp_path_factory, screenshots):
    """A folder after step 1 of the tutorial, and what that printed."""
    folder = tmp_path_factory.mktemp("fleet")
    shutil.copyfile(screenshots.LOG, folder / "log.csv")
    return folder, screenshots.brmdp("init", "log.csv", folder=folder)


def blocks(page):
    return BLOCK.findall((LOG / page).read_text())


def words(text):
    """A text without its digits, line breaks and spaces, as versions may wrap it otherwise."""
    return "".join(NUMBER.sub("#", text).split())


def test_the_first_step_prints_what_the_tutorial_shows(fleet):
    folder, said = fleet
    head, wrote, *_ = blocks("tutorial.md")
    assert (folder / "log.csv").read_text().startswith(head)
    assert said == wrote


def test_the_edits_of_the_tutorial_can_be_made(fleet, screenshots):
    folder, _ = fleet
    text = (folder / "model.toml").read_text()
    edited = screenshots.edited(text)
    page = (LOG / "tutorial.md").read_text()
    for line in ("per = 1e-5", "base = 10", "reset = { replace = 0 }", "start = 0"):
        assert f"\n{line}\n" in edited
        assert f"\n{line}\n" in page
    with pytest.raises(ValueError, match="once"):
        screenshots.edited(edited)


@pytest.mark.parametrize("picture", ["answer.png", "dial.png"])
def test_pictures_are_small(picture):
    assert 5_000 < (LOG / "figures" / picture).stat().st_size < 300_000


@pytest.mark.slow
def test_checks_and_decision_print_what_the_tutorial_shows(fleet, screenshots):
    folder, _ = fleet
    text = screenshots.edited((folder / "model.toml").read_text())
    pooled = text.replace('prior = "learned"', 'prior = "learned"\npooling = "pooled"')
    for name, content in (("own.toml", text), ("pooled.toml", pooled)):
        (folder / name).write_text(content)
    said = [
        screenshots.brmdp("check", "own.toml", folder=folder),
        screenshots.brmdp("check", "pooled.toml", folder=folder),
        screenshots.brmdp("decide", "own.toml", folder=folder),
    ]
    *_, memory, groups, answer = blocks("tutorial.md")
    for shown, printed in zip((memory, groups, answer), said, strict=True):
        assert words(shown) in words(printed)
    assert "Checks: 8 fine." in said[0]


@pytest.mark.long
def test_the_shop_prints_what_its_page_shows(tmp_path, screenshots):
    for name in ("log.csv", "model.toml"):
        shutil.copyfile(ROOT / "examples" / "shop" / name, tmp_path / name)
    answer, coverage = blocks("lost-sales.md")
    assert words(answer) in words(screenshots.brmdp("decide", "model.toml", folder=tmp_path))
    assert words(coverage) in words(screenshots.brmdp("check", "model.toml", folder=tmp_path))
