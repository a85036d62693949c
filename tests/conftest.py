"""What tests of several folders share, and how they are handed out to processes."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits

LAKE = (
    "tests/studies/test_reports.py",
    "tests/studies/test_continuous.py",
    "tests/continuous/",
)
"""Files that compile the same functions with JAX: one process does so for all."""

LONGEST = (
    *LAKE,
    "tests/test_extending.py",
    "tests/runs/test_runner.py",
    "tests/runs/test_cluster.py",
    "tests/test_deployment.py",
    "tests/test_cli.py",
    "tests/models/",
    "tests/decisions/",
    "tests/report/test_figures.py",
    "tests/risk/",
    "tests/runs/",
)
"""Where tests take long: these begin, so that no process has a long file left at the end."""


def pytest_configure(config):
    # else pytest-xdist begins with the files that have the most tests, which are short ones
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    def place(item):
        return next((k for k, one in enumerate(LONGEST) if item.nodeid.startswith(one)), 99)

    items.sort(key=place)


def pytest_xdist_make_scheduler(config, log):
    """By file, as ``--dist loadfile`` does, but all files of the lake go to one process."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "the lake" if file.startswith(LAKE) else file

    return ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def one_thread_of_linear_algebra():
    """Each process of the tests has one processor; more threads would only wait for each other.

    Processes that tests start keep the number they have.
    """
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="session")
def forks():
    """Runs programs in forks of a process that has imported the library; see ``forked``."""
    from forked import Forks

    with Forks() as running:
        yield running
