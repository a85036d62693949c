"""The layer decisions stands above planning and changes no run."""

import inspect
import subprocess
import sys

import pytest

from brmdp import decisions
from brmdp.runs.origin import WITHOUT_INFLUENCE


def test_it_cannot_change_a_run():
    assert "decisions" in WITHOUT_INFLUENCE


def test_every_public_name_has_an_example():
    for name in decisions.__all__:
        assert ">>>" in (inspect.getdoc(getattr(decisions, name)) or ""), name


@pytest.mark.long
def test_nobody_below_loads_it():
    code = "import sys, brmdp, brmdp.runs; print('brmdp.decisions' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == ["False"]
