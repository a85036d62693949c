"""What a study is, and to which one an experiment belongs."""

import importlib
import sys
import types
from dataclasses import replace

import pytest

import brmdp
from brmdp.runs.origin import ANALYSIS
from brmdp.studies import Study, all_studies, find_study, study_of


def test_an_experiment_belongs_to_its_study_whatever_can_be_adjusted():
    for study in all_studies().values():
        assert study_of(study.experiment).analyse is study.analyse
    river = all_studies()["riverswim-6"]
    shorter = river.experiment.adjusted(runs=2, steps=30, method="saddlepoint")
    assert study_of(shorter).analyse is river.analyse
    assert study_of(shorter).experiment == shorter


def test_a_report_names_the_analysis_that_made_it(tmp_path, monkeypatch):
    """The library's for studies of the library and plain sweeps, otherwise also one's own file."""
    river = all_studies()["riverswim-6"]
    assert river.analysis_digest() == Study(river.experiment).analysis_digest() == ANALYSIS
    monkeypatch.syspath_prepend(tmp_path)
    text = "from brmdp.report.summary import compare_agents\n\n\ndef analyse(*given):\n"
    digests = set()
    for number, end in enumerate(("return compare_agents(*given)", "return None")):
        (tmp_path / f"own_{number}.py").write_text(f"{text}    {end}\n")
        own = importlib.import_module(f"own_{number}")
        digests.add(Study(river.experiment, own.analyse).analysis_digest())
    assert len(digests) == 2
    assert ANALYSIS not in digests


@pytest.mark.parametrize(
    "change",
    [
        {"discount": 0.3},
        {"agent_parameters": {"delta": 1e6, "floor": 0.2, "method": "exact", "coefficient": 150.0}},
        {"prior": {"concentration": 2.0}},
        {"environment_parameters": {"n": 7}},
        {"robust_level": 0.4},
    ],
)
def test_another_experiment_of_that_name_has_none_of_its_claims(change):
    experiment = all_studies()["riverswim-6"].experiment
    first, *others = experiment.cases
    changed = replace(experiment, cases=(replace(first, **change), *others))
    assert study_of(changed) == Study(changed)


def test_a_study_of_ones_own_cannot_take_a_name_of_the_library(monkeypatch):
    module = types.ModuleType("imposter")
    module.STUDY = Study(all_studies()["riverswim-6"].experiment)
    module.NOTHING = 3
    monkeypatch.setitem(sys.modules, "imposter", module)
    with pytest.raises(brmdp.InvalidInputError, match="must not have the name of a study"):
        find_study("imposter:STUDY")
    with pytest.raises(brmdp.InvalidInputError, match="must be a Study; got int"):
        find_study("imposter:NOTHING")
    with pytest.raises(brmdp.InvalidInputError, match="unknown study 'riverswim'"):
        find_study("riverswim")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("text",), "experiment must be an Experiment; got str"),
        ((None, "text"), "analyse must be a function"),
        ((None, print, "nowhere"), "figures must be written as module:attribute"),
    ],
)
def test_what_makes_no_study_is_refused(given, message):
    experiment = all_studies()["coverage"].experiment
    first, *others = given
    with pytest.raises(brmdp.InvalidInputError, match=message):
        Study(first or experiment, *others)
