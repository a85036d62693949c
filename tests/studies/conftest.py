"""What the tests of several studies share."""

from __future__ import annotations

import pytest

from brmdp.runs import run_experiment


@pytest.fixture(scope="session")
def workers():
    """An executor of two processes, for the runs of any study.

    That a runner starts workers of its own is tested with runners.
    """
    from loky import get_reusable_executor

    with get_reusable_executor(max_workers=2, timeout=None) as executor:
        yield executor


@pytest.fixture(scope="module")
def stored(request, tmp_path_factory):
    """The module's ``tiny()`` experiment, a store of its runs, and their records by case."""
    experiment = request.module.tiny()
    store = run_experiment(experiment, tmp_path_factory.mktemp("stored"), workers=1)
    return experiment, store, {case.name: store.records(case.name) for case in experiment.cases}
