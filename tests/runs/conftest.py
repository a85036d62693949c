"""What the tests of stores and runners share."""

from __future__ import annotations

import pytest

from brmdp.runs import run_experiment
from tiny_experiments import tiny


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """A finished store of ``tiny()``, to compare with and to copy; nobody writes into it."""
    return run_experiment(tiny(), tmp_path_factory.mktemp("undisturbed"), workers=1)
