"""What tests of several folders share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def forks():
    """Runs programs in forks of a process that has imported the library; see ``forked``."""
    from forked import Forks

    with Forks() as running:
        yield running
