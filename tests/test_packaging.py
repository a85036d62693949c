"""The lowest versions that are tested are the lowest that are allowed."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTED = ("experiments", "decide", "cluster", "continuous", "test", "bench")


def test_the_tested_lowest_versions_are_the_allowed_ones():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    allowed = dict(
        line.split(">=")
        for line in [
            *project["dependencies"],
            *(line for extra in TESTED for line in extras[extra]),
        ]
    )
    lines = (ROOT / "constraints-lowest.txt").read_text().split()
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", line) for line in lines)
    pinned = dict(line.split("==") for line in lines)
    del pinned[
        "pyparsing"
    ]  # a dependency of matplotlib, whose lowest version warns with the newest pyparsing
    assert pinned.keys() == allowed.keys()
    for name, version in allowed.items():
        assert (pinned[name] + ".0.0").startswith(version + "."), (
            f"{name} {pinned[name]} is not the lowest, {version}"
        )
        assert set(pinned[name].removeprefix(version)) <= set(".0"), (
            f"{name}: {pinned[name]} is above {version}"
        )


def test_the_lowest_versions_run_the_tests_that_the_makefile_says():
    recipe = (ROOT / "Makefile").read_text()
    assert f'--editable ".[{",".join(TESTED)}]"' in recipe
