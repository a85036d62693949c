"""Stores of earlier formats are read in today's terms, and never silently mixed with new runs."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import former_stores
from brmdp.errors import InvalidInputError, OtherOriginError
from brmdp.runs import Computation, Experiment, Store, columns_of, former, run_experiment
from brmdp.runs import encoding as encoding_module
from brmdp.runs import runner as runner_module
from brmdp.runs import store as store_module
from brmdp.runs.program import program_of
from brmdp.simulation import Steps
from brmdp.studies import study_of
from tiny_experiments import tiny

TINY = tiny()
COVERAGE = "brmdp.studies.coverage.experiment:COVERAGE"


@pytest.fixture(params=[1, 2])
def older(request, undisturbed, tmp_path):
    """The same store in an older format, and its number."""
    return request.param, rewritten(undisturbed, tmp_path, request.param)


def rewritten(store, folder, number, programs=None):
    copy = folder / store.directory.name
    shutil.copytree(store.directory, copy)
    former_stores.rewrite(Store.at(copy), number, programs)
    return Store.at(copy)


def test_an_older_store_has_the_same_experiment_and_runs(older, undisturbed):
    number, store = older
    assert store.experiment == TINY
    for case in TINY.cases:
        status = store.status(case)
        assert (status.finished, status.damaged, status.foreign) == ((0, 1, 2), {}, {})
        then, now = store.records(case.name), undisturbed.records(case.name)
        for one in columns_of(Steps):
            if one.since == 3:
                assert getattr(then, one.name) is None
            else:
                np.testing.assert_array_equal(getattr(then, one.name), getattr(now, one.name))
        np.testing.assert_array_equal(then.quantile_value, now.quantile_value)
        assert (then.n_states, then.case) == (now.n_states, case)
    code = "" if number == 1 else store_module.CODE
    assert {origin for _, origin in store.records("psrl").made_by} == {code}


def test_what_the_older_format_lacks_is_empty_or_refused(older):
    _, store = older
    table = store.to_arrow(["psrl"])
    assert table["next_state"].null_count == table.num_rows == 180
    assert table["state"].null_count == 0
    with pytest.raises(InvalidInputError, match=r"run 0 of 'psrl' .*without next states"):
        store.belief_after("psrl", 0)


def test_an_older_store_is_reported(older, tmp_path):
    _, store = older
    records = {case.name: store.records(case.name) for case in store.experiment.cases}
    findings = study_of(store.experiment).findings(records)
    assert set(findings.summary["agents"]) == {case.name for case in TINY.cases}
    assert findings.summary["parameters"]["cases"]["store"]["agent"] == "fixed-quantile"


def test_format_2_goes_on_in_format_3_if_one_insists(undisturbed, tmp_path, monkeypatch):
    """Old files stay as they are; what they lack is unknown for all, whichever come first."""
    store = rewritten(undisturbed, tmp_path, 2)
    before = {path.name: path.read_bytes() for path in store.directory.glob("runs/*")}
    for module in (runner_module, store_module, encoding_module):
        monkeypatch.setattr(module, "CODE", "f" * 64)
    with pytest.raises(OtherOriginError, match="made by other code"):
        run_experiment(replace(TINY, runs=4), tmp_path, workers=1)
    more = run_experiment(replace(TINY, runs=4), tmp_path, workers=1, accept_other_code=True)
    assert json.loads((store.directory / "experiment.json").read_text())["format"] == 3
    for name, content in before.items():
        assert (store.directory / "runs" / name).read_bytes() == content
    everything = Store.at(more.directory)
    for runs in (None, [3, 1], [0, 3]):
        records = everything.records("store", runs)
        assert records.next_state is None
        assert records.disturbance is None
        assert np.isfinite(records.true_regret).all()
    alone = everything.records("store", [3])
    assert alone.next_state.dtype == alone.disturbance.dtype == np.int64
    assert everything.to_arrow(["store"])["next_state"].null_count == 3 * 60
    assert everything.belief_after("store", 3) is not None


def test_programs_of_earlier_versions_are_found_by_their_former_names(tmp_path):
    parameters = {
        **{"n_states": 2, "n_actions": 2, "observations_per_pair": 3, "discount": 0.5},
        **{"confidence": 0.8, "worlds": 2, "samples": 20},
    }
    case = Computation("base", COVERAGE, parameters, max_runs=1)
    experiment = Experiment("coverage", "In small", (case,), 2)
    store = run_experiment(experiment, tmp_path / "today", workers=1)
    then = rewritten(store, tmp_path, 2, {COVERAGE: "coverage"})
    described = json.loads((then.directory / "experiment.json").read_text())
    assert described["experiment"]["cases"][0]["program"] == "coverage"
    assert then.experiment == experiment
    found = then.records("base")
    np.testing.assert_array_equal(found.columns.coverage, store.records("base").columns.coverage)
    # they had no digest, so nothing is added to their runs
    with pytest.raises(OtherOriginError, match=r"'base' made by another program: .* was unknown"):
        run_experiment(experiment, tmp_path, workers=1, accept_other_code=True)


@pytest.mark.parametrize("name", former._STUDIES)
def test_every_former_program_exists(name):
    described = former.upgraded({"name": "c", "program": name, "parameters": {}}, 2)
    program = program_of(Computation(**described))
    assert columns_of(program.columns)


def test_an_unknown_program_of_an_earlier_version_is_left_as_it_is():
    case = {"name": "c", "program": "somebody's", "parameters": {}, "most_runs": 3}
    assert former.upgraded(case, 2) == {
        **{"name": "c", "program": "somebody's", "parameters": {}, "max_runs": 3}
    }
    assert former.upgraded(case, 3) == case


def test_formats_in_words():
    assert former.in_words() == "1, 2 and 3"
