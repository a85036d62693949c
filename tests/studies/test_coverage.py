"""The study of coverage end to end in small, its numbers recomputed, and its picture."""

import json
import warnings

import numpy as np
import pytest
from scipy import stats

from brmdp import theory
from brmdp.report.estimates import exact_number, proportion
from brmdp.runs import Computation, Experiment, Replications, execute, run_experiment
from brmdp.studies.coverage import STUDIES
from brmdp.studies.coverage.analysis import BOUNDS, along, claims, summary
from brmdp.studies.coverage.experiment import BASE, EXPERIMENT, CoverageColumns
from brmdp.studies.coverage.figures import draw
from oracles import analysis as oracle

pytestmark = pytest.mark.long

(STUDY,) = STUDIES
PROGRAM = "brmdp.studies.coverage.experiment:COVERAGE"
SMALL = {
    "n_states": 3,
    "n_actions": 2,
    "observations_per_pair": 4,
    "discount": 0.5,
    "confidence": 0.8,
}
FEW = {"worlds": 3, "samples": 60}


def tiny(runs=4):
    changes = {
        "base": {},
        "nearsighted": {"discount": 0.1},
        "data": {"observations_per_pair": 60},
        "large": {"n_states": 5},
    }
    cases = [
        Computation(name, PROGRAM, {**SMALL, **FEW, **change}) for name, change in changes.items()
    ]
    return Experiment("coverage", "Coverage in small", tuple(cases), runs=runs, seed=5)


def test_a_run_is_several_worlds_of_the_theory():
    columns = execute(tiny().cases[0], 5, 2).columns
    streams = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(2,))).spawn(3)
    for world, stream in enumerate(streams):
        report = theory.replicate_coverage(
            3, 2, 0.8, observations=24, discount=0.5, samples=60, rng=stream
        )
        assert columns.coverage[world] == report.certified.coverage
        assert columns.held_in_truth[world] == report.held_in_truth
        np.testing.assert_allclose(
            columns.quantile[world] - columns.certified[world],
            report.gap_to_quantile.mean(),
            rtol=1e-12,
        )
        np.testing.assert_allclose(
            columns.certified[world] - columns.union_of_pairs[world],
            report.loss_of_union_of_pairs.mean(),
            rtol=1e-9,
        )
        assert columns.states_above_quantile[world] == sum(
            report.certified.values > report.quantile.upper
        )


def test_report(stored, tmp_path):
    experiment, _, records = stored
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = STUDY.of(experiment).report(records, tmp_path)
    assert {path.name for path in report.files} == {
        *("summary.json", "summary.md", "claims.json", "claims.md", "coverage.png", "coverage.pdf")
    }
    assert max(map(len, report.text.splitlines())) <= 100
    written = json.loads((tmp_path / "summary.json").read_text())
    assert {"experiment", "title", "runs", "parameters", "cases"} == set(written)
    assert written["runs"] == {"least": 4, "most": 4}
    found = written["cases"]["nearsighted"]
    columns = records["nearsighted"].columns
    assert found["worlds"] == 12
    assert found["coverage"]["mean"] == pytest.approx(
        np.mean([np.mean(run) for run in columns.coverage])
    )
    _, low, high = oracle.interval(columns.coverage.ravel(), bounds=(0.0, 1.0))
    assert found["coverage"]["ci95"] == pytest.approx([low, high])
    assert found["least_coverage"] == columns.coverage.min()
    ratio = [
        100 * (q - c) / q
        for q, c in zip(columns.quantile.ravel(), columns.union_of_states.ravel(), strict=True)
    ]
    assert found["percent_below_quantile"]["union_of_states"]["mean"] == pytest.approx(
        np.mean(ratio)
    )
    assert set(found["percent_below_quantile"]) == set(BOUNDS)


def test_workers_change_nothing(stored, workers, tmp_path):
    experiment, store, _ = stored
    assert run_experiment(experiment, tmp_path, executor=workers).digest() == store.digest()


def told(coverage, *, confidence=0.8, certified=0.9, above=0, held=True, name="base", **changes):
    """Made-up replications: thirty runs of two worlds."""
    shape = np.ones((30, 2))
    luck = 1.0 + 0.001 * (np.arange(30) - 14.5)[:, None]
    columns = CoverageColumns(
        coverage=coverage * shape,
        held_in_truth=held & (shape > 0),
        certified=certified * luck * shape,
        union_of_states=0.85 * shape,
        union_of_pairs=0.8 * shape,
        quantile=shape,
        states_above_quantile=above * shape.astype(int),
        true_value=1.1 * shape,
    )
    case = Computation(name, PROGRAM, {**SMALL, **FEW, "confidence": confidence, **changes})
    return Replications(case, np.arange(30), columns, np.ones(30))


def verdicts(*records):
    judged = claims("coverage", {found.case.name: found for found in records})
    return {claim.identifier: str(claim.verdict) for claim in judged}


def the_comparison(word, *records):
    """The only comparison of the claim with that word in its identifier."""
    judged = claims("coverage", {found.case.name: found for found in records})
    (comparison,) = next(claim for claim in judged if word in claim.identifier).comparisons
    return comparison


def test_claims_can_fail():
    sound = verdicts(told(0.9))
    assert sound["coverage/joint"] == "reproduced"
    assert sound["coverage/union-levels"] == "measured"
    # sixty beliefs are too few to exclude that more than 2.5 % fail
    assert sound["coverage/every-posterior"].startswith("not resolved")
    short = verdicts(told(0.5, above=1, held=False))
    for claim in ("joint", "every-posterior", "quantile-value", "truth"):
        assert short[f"coverage/{claim}"] == "contradicted"


def test_coverage_just_below_is_no_failure_of_a_posterior():
    """47 of 60 draws at 0.8 are within chance; 30 of 60 are not."""
    for coverage, share in ((47 / 60, 0.0), (30 / 60, 1.0)):
        assert float(the_comparison("every-posterior", told(coverage)).estimate.mean) == share


def test_unknown_coverage_is_no_success():
    assert verdicts(told(np.nan))["coverage/joint"].startswith("not resolved")
    assert str(the_comparison("every", told(np.nan)).estimate) == "unknown"


def test_trends():
    base, far = told(0.9), told(0.9, certified=0.7, name="far", discount=0.9)
    assert verdicts(base, far)["coverage/discount"] == "reproduced"
    assert (
        verdicts(base, told(0.9, certified=0.95, name="far", discount=0.9))["coverage/discount"]
        == "contradicted"
    )
    assert "coverage/n-states" not in verdicts(base, far)
    assert [found.case.name for found in along({"base": base, "far": far}, "discount")] == [
        "base",
        "far",
    ]
    found = summary(EXPERIMENT, {"base": base, "far": far})["cases"]["far"]
    assert found["percent_below_quantile"]["certified"]["mean"] == pytest.approx(30)


def test_every_case_differs_from_the_base_in_one_parameter():
    for case in EXPERIMENT.cases:
        assert sum(case.parameters[key] != value for key, value in BASE.items()) == (
            case.name != "base"
        )


def test_the_figure_shows_the_numbers(stored):
    _, _, records = stored
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (figure,) = draw(EXPERIMENT, records).values()
        assert list(draw(EXPERIMENT, {"base": records["base"]})) == ["coverage"]
    assert len(figure.axes) == 6
    left = figure.axes[0]
    means = [found.columns.coverage.mean() for found in along(records, "discount")]
    lines = [line.get_ydata() for line in left.get_lines() if len(line.get_ydata()) == len(means)]
    assert any(np.allclose(line, means) for line in lines)


def test_proportions():
    found = proportion([True] * 7 + [False] * 3)
    interval = stats.binomtest(7, 10).proportion_ci(0.95, method="exact")
    assert (float(found.mean), float(found.low), float(found.high)) == pytest.approx(
        (0.7, *interval)
    )
    assert found.runs == 10
    assert str(exact_number(3.0, 5)) == "3.000 [3.000, 3.000]"
