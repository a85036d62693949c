"""Every study of the library from its runs, in small, to its report."""

import json
import re
import subprocess
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import tiny_hospital
from brmdp.report import Findings, style
from brmdp.report.tables import TERMINAL
from brmdp.report.writing import Report, write_report
from brmdp.runs import Computation, Store, columns_of, run_experiment
from brmdp.runs.program import program_of
from brmdp.simulation import Episodes, History, Steps
from brmdp.studies import all_studies, find_study, study_of
from tiny_lake import tiny_lake

pytestmark = pytest.mark.long

STUDIES = all_studies()
RUNS = 3
STEPS = 105
SMALL = {
    "COVERAGE": {"worlds": 2, "samples": 40},
    "ROBUSTNESS": {"problems": 6},
    "TRAP": {"problems": 3, "steps": 12},
    "EXPOSURE": {"points": 8},
    "PROBING": {"steps": 60},
    "NORMALITY": {"replications": 2},
    "SAMPLE_SIZE": {"replications": 2},
    "OPTIMISM": {"episodes": 5, "worlds": 2},
    "DEVIATION": {"rows": 12},
    "DECOMPOSITION": {"worlds": 2, "samples": 100},
    "EPISODE_COUNT": {"repetitions": 10},
    "CERTIFICATES": {"logs": 1, "size": 20, "judging_draws": 200, "draws": 300},
    "DECIDED": {"logs": 1, "units": 6, "steps": 8},
    "CHECKED": {"logs": 1, "units": 6, "steps": 8},
    "TUNE": {"worlds": 4, "steps": 5},
    "BATCH": {"world": "machine", "size": 30, "judging_draws": 100},
    "SEPSIS": {"size": 20, "judging_draws": 200, "draws": 300},
}
"""Parameters that make a replication short, by program."""

FEWER = {"bbrl": 8}
"""Steps of a study with many cases, or with slow ones."""


def small(name):
    """A study with all its cases, and few short runs of them."""
    study = STUDIES[name]
    if name == "continuous":
        return study.of(tiny_lake(RUNS, 20))
    has_steps = any(not isinstance(case, Computation) for case in study.experiment.cases)
    steps = FEWER.get(name, STEPS)
    study = study.adjusted(runs=RUNS, steps=steps if has_steps else None)
    return study.of(replace(study.experiment, cases=tuple(map(_small, study.experiment.cases))))


def _small(case):
    if not isinstance(case, Computation):
        searches = {"simulations": 10} if case.agent == "bamcp" else {}
        return replace(case, agent_parameters={**case.agent_parameters, **searches})
    changes = SMALL[case.program.partition(":")[2]]
    given = dict(case.parameters)
    for key, most in (("steps", 20_000), ("observed", 200)):
        if key in given:
            given[key] = min(given[key], most)
    return replace(case, parameters={**given, **changes})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studies")


@pytest.fixture(scope="module", autouse=True)
def hospital(tmp_path_factory):
    """A small stand-in for the package that the hospital's study reads."""
    folder = tmp_path_factory.mktemp("packages")
    tiny_hospital.install(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield


@pytest.fixture(scope="module")
def stored(folder):
    """Gives the study of that name and a store of its runs, which are made once."""

    @cache
    def make(name):
        study = small(name)
        return study, run_experiment(study.experiment, folder, workers=1)

    return make


def records_of(store, runs=None):
    return {case.name: store.records(case.name, runs) for case in store.experiment.cases}


class Written(NamedTuple):
    findings: Findings
    figures: Mapping[str, Figure]
    report: Report


@pytest.fixture(scope="module")
def written(stored, tmp_path_factory):
    """Gives what a study found, drew and wrote, all of it made once; nothing may warn."""

    @cache
    def write(name):
        study, store = stored(name)
        records = records_of(store)
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("error")
            patch.setitem(style.STYLE, "savefig.dpi", 70)  # which is faster, and as good here
            patch.setitem(style.STYLE, "pdf.fonttype", 3)  # likewise; no subset of a font is made
            findings, figures = study.findings(records), study.draw(records)
            for figure in figures.values():  # laid out once, not for every file
                figure.draw_without_rendering()
                figure.set_layout_engine("none")
            folder = tmp_path_factory.mktemp("reports") / name
            report = write_report(study.experiment, records, findings, figures, folder)
        return Written(findings, figures, report)

    return write


def strict_json(path):
    def refuse(constant):
        raise AssertionError(f"{path} holds {constant}")

    return json.loads(path.read_text(), parse_constant=refuse)


COSTLY = ("from-logs", "alarms", "exploration", "bbrl", "bbrl-tuning", "batch")
"""Studies whose reports take half a minute each; tiny ones are in files of their own."""

each_study = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in COSTLY else name for name in STUDIES],
)


@each_study
def test_every_file_of_a_report_is_there_and_parses(name, written):
    report = written(name).report
    folder = report.files[0].parent
    names = {path.name for path in folder.iterdir()}
    assert names == {path.name for path in report.files}
    assert {"summary.json", "summary.md", "claims.json", "claims.md"} <= names
    pictures = {path.stem for path in report.files if path.suffix == ".png"}
    assert pictures == {path.stem for path in report.files if path.suffix == ".pdf"} != set()
    summary = strict_json(folder / "summary.json")
    assert summary == json.loads(json.dumps(report.summary))
    assert summary["experiment"] == name
    assert set(summary["runs"]) == {"least", "most"}
    experiment = small(name).experiment
    most = max(map(experiment.runs_of, experiment.cases))
    assert 1 <= summary["runs"]["least"] <= summary["runs"]["most"] == most
    judged = strict_json(folder / "claims.json")
    assert [claim["id"] for claim in judged] == [claim.identifier for claim in report.claims]
    for text in (report.text, *(path.read_text() for path in folder.glob("*.md"))):
        assert not re.search(r"\b(nan|None|inf)\b", text)


@each_study
def test_the_text_of_a_report_fits_a_terminal(name, written):
    findings, _, report = written(name)
    table = findings.table
    for text in (report.text, table.as_text()):
        assert max(map(len, text.splitlines())) <= TERMINAL
    assert {len(row) for row in table.rows} == {len(table.header)}  # and there are some
    for line in (report.files[0].parent / "summary.md").read_text().splitlines():
        assert not line.startswith("|") or line.count("|") == len(table.header) + 1


@each_study
def test_claims_say_what_is_claimed_and_how_it_is_tested(name, written):
    claims = written(name).findings.claims
    for claim in claims:
        assert claim.paper.endswith(".")
        assert claim.test.endswith(".")
        assert claim.comparisons
        assert {comparison.experiment for comparison in claim.comparisons} == {name}
        assert all(comparison.quantity for comparison in claim.comparisons)
    judged = [one for claim in claims for one in claim.comparisons if one.region is not None]
    assert bool(judged) == (name != "quantile-methods")


@pytest.mark.slow
def test_identifiers_of_claims_are_unique_across_studies(written):
    found = [
        claim.identifier
        for name in STUDIES
        for claim in written(name).findings.claims
        if not claim.somewhere_in
    ]
    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"[a-z0-9./-]+/[a-z0-9.-]+", identifier) for identifier in found)


@each_study
def test_figures_show_something(name, written):
    for figure in written(name).figures.values():
        assert figure.get_axes()
        assert all(axes.has_data() for axes in figure.get_axes() if axes.axison)
    for path in written(name).report.files:
        if path.suffix == ".png":
            with Image.open(path) as image:
                shades = np.asarray(image.convert("L"))
                colours = image.getcolors(1 << 24)
            assert min(shades.shape) >= 100
            assert len(colours) > 30
            assert 0.01 < (shades < 250).mean() < 0.9
        elif path.suffix == ".pdf":
            assert path.read_bytes().startswith(b"%PDF")
            assert path.stat().st_size > 5_000


def check(study, records):
    """What is there is judged and drawn, in plain numbers and without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        findings = study.findings(records)
        figures = study.draw(records)
    json.dumps(findings.summary, allow_nan=False)
    json.dumps([claim.as_json() for claim in findings.claims], allow_nan=False)
    assert findings.table.as_text()
    return figures


@each_study
def test_one_run_is_judged_and_drawn(name, stored):
    study, store = stored(name)
    assert check(study, records_of(store, [0]))


@each_study
@pytest.mark.parametrize("alone", [True, False])
def test_cases_may_be_missing(name, alone, stored):
    """As after an interrupt: the first or the last case alone, and all but that one."""
    study, store = stored(name)
    records = records_of(store)
    for chosen in (next(iter(records)), next(reversed(records))):
        check(study, {key: found for key, found in records.items() if (key == chosen) == alone})


@each_study
def test_cases_may_have_different_numbers_of_runs(name, stored):
    study, store = stored(name)
    first, *_ = store.experiment.cases
    check(study, {**records_of(store), first.name: store.records(first.name, [0])})


@each_study
def test_a_folder_is_reported_as_the_study_it_holds(name, stored):
    """With the study's parameters; the small ones of these tests make it another experiment."""
    study, store = stored(name)
    kept = Store.at(store.directory).experiment
    same = kept == STUDIES[name].adjusted(runs=kept.runs).experiment
    assert (study_of(kept) == study) or not same
    assert study_of(STUDIES[name].experiment) == find_study(name) == STUDIES[name]


def test_columns_are_documented():
    programs = {
        case.program: program_of(case)
        for study in STUDIES.values()
        for case in study.experiment.cases
        if isinstance(case, Computation)
    }
    declared = [Steps, Episodes, History, *(program.columns for program in programs.values())]
    for record in declared:
        for one in columns_of(record):
            assert len(one.meaning) > 4, f"{record.__name__}.{one.name}"
            assert not one.meaning.endswith(".")
    for reference, program in programs.items():
        module, _, attribute = reference.partition(":")
        assert getattr(sys.modules[module], attribute) is program
        assert program.columns.__doc__


JUDGE = """
import sys
from brmdp.runs import find_stores
from brmdp.studies import all_studies, study_of
found = {}
for store in find_stores(sys.argv[1]):
    records = {case.name: store.records(case.name) for case in store.experiment.cases}
    study = study_of(store.experiment)
    found[study.name] = len(study.findings(records).claims)
assert set(found) == set(all_studies()), found
print(*[name for name in ("matplotlib", "PIL", "jax") if name in sys.modules])
"""


@pytest.mark.slow
def test_claims_are_judged_without_what_draws(folder, stored):
    for name in STUDIES:
        stored(name)
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, str(folder)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
