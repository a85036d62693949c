"""The small programs under examples/ run, and print what they are there for."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize(
    ("script", "words"),
    [("pump.py", ("hour 400", "service", "chosen")), ("maintenance.py", ("90 %",))],
)
def test_a_script_runs(script, words, tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert all(word in done.stdout for word in words), done.stdout
    assert not list(tmp_path.iterdir())
