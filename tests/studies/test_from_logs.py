"""Studies of decisions from simulated logs: one tiny case each; test_reports has them all."""

from dataclasses import replace

import pytest

from brmdp.runs import run_experiment
from brmdp.studies import find_study

TINY = {"logs": 1, "units": 6, "steps": 8}


@pytest.mark.long
@pytest.mark.parametrize("name", ["from-logs", "alarms"])
def test_one_case_is_run_and_judged(name, tmp_path):
    study = find_study(name).adjusted(runs=1)
    case = study.experiment.cases[0]
    case = replace(case, parameters={**case.parameters, **TINY})
    study = study.of(replace(study.experiment, cases=(case,)))
    store = run_experiment(study.experiment, tmp_path, workers=1)
    found = study.findings({case.name: store.records(case.name)})
    assert {len(row) for row in found.table.rows} == {len(found.table.header)}
    assert found.claims
    assert all(claim.identifier.startswith(name + "/") for claim in found.claims)
