"""The examples of the gallery run, are short, and draw one picture each; the first picture, too."""

import importlib.util
import re
import textwrap
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = sorted((DOCS / "gallery").glob("*/plot_*.py"))
SLOW = {"plot_drift", "plot_groups"}
"""More than ten seconds each: run by `make docs` and `make test-slow`."""

RUN = """
import runpy, sys, warnings
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
sys.path.insert(0, sys.argv[2])
from pictures import gallery_style
gallery_style()
with warnings.catch_warnings():
    warnings.simplefilter("error")  # what an example warns of, its text must explain
    runpy.run_path(sys.argv[1])
assert len(plt.get_fignums()) == 1, plt.get_fignums()
for axes in plt.gcf().axes:
    assert axes.has_data() and axes.get_title(), axes
"""


def test_there_are_enough_examples():
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_is_short_and_says_what_it_shows(example):
    text = example.read_text()
    assert len(text.splitlines()) <= 60
    title, line, blank, *description = text.split('"""')[1].strip().splitlines()
    assert (set(line), blank) == ({"="}, "")
    assert len(line) == len(title)
    prose = " ".join(description + re.findall(r"^# (?!%%)(.*)$", text, re.MULTILINE))
    sentences = re.findall(r"[.?!:](?:\s|$)", prose)
    assert 3 <= len(sentences) <= 16


@pytest.mark.long
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(one, marks=[pytest.mark.slow] * (one.stem in SLOW), id=one.stem)
        for one in EXAMPLES
    ],
)
def test_an_example_runs(example, forks, tmp_path):
    done = forks.run(textwrap.dedent(RUN), example, DOCS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_the_first_picture_is_drawn_and_small(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    monkeypatch.setattr(pictures, "DAYS", (20, 30, 40, 50))
    figure = pictures.dial(logs=3)
    assert len(figure.axes) == 2
    assert (DOCS / "figures" / "dial.png").stat().st_size <= 150_000
