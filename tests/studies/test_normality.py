"""A small version of the study ``normality``: its numbers recomputed, claims on made-up data."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp.errors import InvalidInputError
from brmdp.report.claims import Verdict
from brmdp.report.estimates import estimate
from brmdp.runs import Computation, Experiment, Replications, execute, run_experiment
from brmdp.studies.normality import STUDIES
from brmdp.studies.normality.analysis import analyse, claims
from brmdp.studies.normality.experiment import (
    EXPERIMENT,
    LEVELS,
    NormalityColumns,
    SampleSizeColumns,
    _collection,
    problem,
)
from brmdp.studies.normality.figures import draw
from brmdp.studies.normality.samples import (
    plans_of,
    pseudo_values,
    settings_of,
    squared_bias,
    squared_correlation,
    squared_variance_error,
)
from brmdp.theory import (
    asymptotic_normality,
    exact_caution_cost,
    observations_needed,
    replicate_normality,
)

pytestmark = pytest.mark.long

HERE = "brmdp.studies.normality.experiment"
NORMALITY, SAMPLE_SIZE = f"{HERE}:NORMALITY", f"{HERE}:SAMPLE_SIZE"

RUNS, BATCH = 3, 3
TINY = Experiment(
    "normality",
    "Tiny",
    (
        Computation(
            "random-1/30", NORMALITY, {"world_seed": 1, "steps": 30, "replications": BATCH}
        ),
        Computation(
            "random-1/300", NORMALITY, {"world_seed": 1, "steps": 300, "replications": BATCH}
        ),
        Computation(
            "riverswim-6/30",
            NORMALITY,
            {"world": "riverswim", "steps": 30, "replications": BATCH},
        ),
        *(
            Computation(
                f"sample-size/random-1/{way}/{observed}",
                SAMPLE_SIZE,
                {
                    "world_seed": 1,
                    "way": way,
                    "observed": observed,
                    "share": 0.6,
                    "replications": 2,
                },
                max_runs=most,
            )
            for way, observed, most in (("policy", 10, 0), ("policy", 40, 2), ("pairs", 10, 0))
        ),
    ),
    runs=RUNS,
    seed=5,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return run_experiment(TINY, tmp_path_factory.mktemp("normality"), workers=1)


@pytest.fixture(scope="module")
def records(store):
    return {case.name: store.records(case.name) for case in TINY.cases}


# --- replications ---------------------------------------------------------------------------------


def test_replications_are_those_of_the_theory(records):
    found = records["random-1/30"].columns
    mdp, policy = problem("random", 1)
    streams = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(1,))).spawn(BATCH)
    wanted = np.stack(
        [replicate_normality(mdp, policy, 30, LEVELS, rng=stream) for stream in streams]
    )
    np.testing.assert_array_equal(found.deviation[1], wanted.reshape(-1))
    row = 2 * 25 + 3 * 5 + 4
    assert (found.replication[1, row], found.level[1, row], found.state[1, row]) == (2, 0.8, 4)


def test_needed_observations_are_where_the_cost_reaches_epsilon():
    """Between planned and needed observations the cost falls as the first order says."""
    parameters = {"world_seed": 1, "way": "pairs", "observed": 200, "share": 0.5, "replications": 4}
    found = execute(Computation("c", SAMPLE_SIZE, parameters), 3, 0).columns
    assert (found.predicted > 1_000).all()
    assert (np.abs(found.cost_ratio - 1.0) < 0.1).all()
    # to first order the cost falls like n^{−1/2}, n with the 201 + 5 known of each of five pairs
    known = 5 * 206.0
    implied = (known + found.needed) / (known + found.predicted)
    np.testing.assert_allclose(implied, found.cost_ratio**2, rtol=0.04)


def test_collected_transitions_grow_by_appending():
    made = problem("random", 2)
    belief = brmdp.DirichletBelief(np.full((5, 2, 5), 4.0))
    cost = float(exact_caution_cost(belief, made.mdp.rewards, 0.9, made.policy, 0.1)[0])
    plan = observations_needed(belief, made.mdp.rewards, 0.9, made.policy, 0.1, 0, 0.5 * cost)
    for way, wanted in (("policy", plan.on_policy_steps), ("pairs", plan.cheapest_total)):
        total, collected = _collection(made, plan, way, np.random.SeedSequence(1).spawn(5))
        assert total == wanted
        assert collected(total).sum() == total
        assert (collected(total) >= collected(total // 2)).all()
        np.testing.assert_array_equal(collected(total), collected(total))
    np.testing.assert_array_equal(collected(total).sum(axis=1), plan.cheapest)


def test_one_and_two_workers_agree(store, workers, tmp_path):
    assert run_experiment(TINY, tmp_path, executor=workers).digest() == store.digest()


@pytest.mark.parametrize(
    ("program", "parameters", "words"),
    [
        (NORMALITY, {"steps": 10, "world": "lake"}, "unknown world 'lake'"),
        (NORMALITY, {"steps": 10, "replications": 1}, "replications must be at least 2; got 1"),
        (NORMALITY, {"steps": 0}, "steps"),
        (NORMALITY, {"steps": 10, "levels": [0.0]}, "alphas must lie strictly"),
        (SAMPLE_SIZE, {"way": "air", "observed": 5}, "unknown way 'air'"),
        (SAMPLE_SIZE, {"way": "pairs", "observed": 0}, "observed"),
        (SAMPLE_SIZE, {"way": "pairs", "observed": 5, "share": 1.0}, "share must lie strictly"),
    ],
)
def test_bad_input(program, parameters, words):
    with pytest.raises(InvalidInputError, match=words):
        execute(Computation("c", program, parameters), 1, 0)


def test_default_experiment():
    (study,) = STUDIES
    assert study.experiment is EXPERIMENT
    assert not study.in_paper
    assert EXPERIMENT.runs * 50 >= 1_000
    assert {case.parameters.get("steps") for case in EXPERIMENT.cases} >= {
        100,
        1_000,
        10_000,
        100_000,
    }
    for seed in (1, 2, 3):
        mdp, policy = problem("random", seed)
        assert asymptotic_normality(mdp, policy, 0.5).visit_frequencies.min() >= 0.02


# --- numbers --------------------------------------------------------------------------------------


def test_standardised_and_fit_against_loops(records):
    setting = settings_of(records)["random-1"][1]
    limit = setting.limit
    z = np.empty((RUNS, BATCH, 5, 5))
    raw = records["random-1/300"].columns.deviation
    for run, replication, level in np.ndindex(RUNS, BATCH, 5):
        deviation = raw[run].reshape(BATCH, 5, 5)[replication, level]
        for state in range(5):
            one_step = sum(limit.system[state, other] * deviation[other] for other in range(5))
            score = stats.norm.ppf(LEVELS[level])
            z[run, replication, level, state] = one_step / limit.one_step_sd[state] - score
    np.testing.assert_allclose(setting.standardised, z, rtol=1e-9, atol=1e-9)
    pooled = z.reshape(-1, 5, 5)
    distance = np.mean(
        [stats.kstest(pooled[:, a, s], "norm").statistic for a, s in np.ndindex(5, 5)]
    )
    assert float(setting.distances["distance"].mean) == pytest.approx(distance, rel=1e-9)
    assert setting.fit.critical_distance == pytest.approx(
        1.3581 / math.sqrt(RUNS * BATCH), rel=1e-4
    )
    np.testing.assert_allclose(setting.expected_visits, 300 * limit.visit_frequencies)


def test_squared_bias_without_the_share_of_chance():
    """The jackknife gives the average product of means of different runs."""
    z = np.random.default_rng(1).normal(0.3, 1.0, (4, 3, 2, 2))
    means = z.mean(axis=1)
    others = [(means[i] * means[j]).mean() for i in range(4) for j in range(4) if i != j]
    assert pseudo_values(squared_bias, z).mean() == pytest.approx(np.mean(others), rel=1e-12)


@pytest.mark.parametrize(
    ("statistic", "sd", "mean", "wanted"),
    [
        (squared_bias, 1.0, 0.0, 0.0),
        (squared_bias, 1.0, 0.2, 0.04),
        (squared_variance_error, 1.0, 0.3, 0.0),
        (squared_variance_error, 1.2, 0.0, 0.44**2),
        (squared_correlation, 1.0, 0.0, 0.0),
    ],
)
def test_intervals_cover_the_truth(statistic, sd, mean, wanted):
    """Of 60 intervals of 95 %, at least 51 cover.

    Fewer have probability below 0.001 at 95 % coverage, and 0.02 at 92 %.
    """
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(60):
        found = estimate(pseudo_values(statistic, rng.normal(mean, sd, (20, 20, 2, 3))))
        covered += bool(found.low <= wanted <= found.high)
    assert covered >= 51


# --- claims ---------------------------------------------------------------------------------------


def made_up(bias, spread=1.0, tilt=0.0, hard_bias=3.0):
    """Twelve runs of two hundred replications, whose z is normal with mean bias/√N."""
    rng = np.random.default_rng(8)
    found = {}
    for world, seed, longest in (("random", 1, 1_000_000), ("riverswim", 0, 100_000)):
        mdp, policy = problem(world, seed)
        limit = asymptotic_normality(mdp, policy, LEVELS)
        for steps in (100, 10_000, longest):
            name = f"random-1/{steps}" if world == "random" else f"riverswim-6/{steps}"
            off = (
                bias / math.sqrt(steps)
                if world == "random"
                else hard_bias / np.sqrt(steps * limit.visit_frequencies)
            )
            # the same noise at all levels, but for the tilt and a little more
            z = (
                spread
                * rng.normal(size=(12, 200, 1, mdp.n_states))
                * (1.0 + tilt * np.arange(5.0)[:, None])
                + off
            )
            z = z + 0.01 * rng.normal(size=(12, 200, 5, mdp.n_states))
            one_step = limit.one_step_mean + limit.one_step_sd * z
            deviation = one_step @ np.linalg.inv(limit.system).T
            case = Computation(
                name, NORMALITY, {"world": world, "world_seed": seed, "steps": steps}
            )
            replication, level, state = (
                np.tile(index.reshape(-1), (12, 1)) for index in np.indices(deviation.shape[1:])
            )
            columns = NormalityColumns(
                replication, np.asarray(LEVELS)[level], state, deviation.reshape(12, -1)
            )
            found[name] = Replications(case, np.arange(12), columns, np.ones(12))
    return found


def verdicts(records):
    judged = claims("normality", settings_of(records), plans_of(records))
    return {claim.identifier: claim.verdict for claim in judged}


def test_claims_hold_for_what_follows_the_theorem():
    found = verdicts(made_up(bias=8.0))
    shrinking = {
        "normality/variance",
        "normality/law",
    }  # which follow the limit at every N, and have nowhere to fall
    assert {
        name for name, verdict in found.items() if verdict is not Verdict.REPRODUCED
    } <= shrinking
    assert found["normality/mean"] is Verdict.REPRODUCED
    assert set(found) == {
        f"normality/{name}"
        for name in (
            "mean",
            "variance",
            "independence",
            "law",
            "neutral",
            "shift",
            "bound",
            "level",
            "visits",
        )
    }


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"bias": 1_000.0}, {"normality/mean", "normality/law", "normality/neutral"}),
        ({"bias": 8.0, "spread": 1.3}, {"normality/variance", "normality/law"}),
        ({"bias": 8.0, "tilt": 0.1}, {"normality/level", "normality/variance"}),
        ({"bias": 8.0, "hard_bias": 0.0}, set()),
    ],
)
def test_claims_fail_for_what_does_not(changes, broken):
    found = verdicts(made_up(**changes))
    for name in broken:
        assert found[name] is Verdict.CONTRADICTED
    if not broken:
        assert found["normality/visits"] is not Verdict.REPRODUCED


def test_plans_are_judged_by_their_errors(records):
    plans = plans_of(records)
    assert list(plans) == ["random-1, policy", "random-1, pairs"]
    fewer, more = plans["random-1, policy"]
    assert (fewer.observed, more.observed) == (10, 40)
    (claim,) = (c for c in claims("normality", {}, plans) if c.identifier == "sample-size/accuracy")
    fallen = claim.comparisons[0]
    ratios = [records[f"sample-size/random-1/policy/{n}"].columns.cost_ratio for n in (40, 10)]
    assert fallen.estimate.runs == 2
    wanted = np.abs(ratios[0] - 1).mean() - np.abs(ratios[1][:2] - 1).mean()
    assert float(fallen.estimate.mean) == pytest.approx(wanted, rel=1e-12)


# --- summary and pictures -------------------------------------------------------------------------


def test_the_summary_covers_all_settings_and_plans(records):
    findings = analyse(TINY, records)
    settings = findings.summary["settings"]
    assert settings["random-1/300"]["replications"] == RUNS * BATCH
    assert np.shape(settings["riverswim-6/30"]["by_level_and_state"]["bias"]) == (5, 6)
    assert set(findings.summary["plans"]) == {
        "random-1, policy, 10 observed",
        "random-1, policy, 40 observed",
        "random-1, pairs, 10 observed",
    }
    assert len(findings.table.rows) == 3


def test_the_figure_and_the_claims_have_one_statistic(records):
    """Observations needed over planned: the ratio of the means, not the mean of the ratios."""
    name = "sample-size/random-1/policy/10"
    found = records[name]
    columns = SampleSizeColumns(
        predicted=np.array([[10, 20], [100, 50]]),
        needed=np.array([[30, 20], [90, 60]]),
        cost_ratio=np.array([[1.5, 1.0], [1.0, 0.5]]),
    )
    made = {name: Replications(found.case, found.run[:2], columns, found.seconds[:2])}
    text, left, right = draw(TINY, made)["normality-sample-size"].axes
    (claim,) = analyse(TINY, made).claims
    (ratio,) = (
        c for c in claim.comparisons if c.quantity.endswith("observations needed / predicted")
    )
    assert _points(left) == pytest.approx([200 / 180])
    assert _points(right) == pytest.approx([1.0])
    assert float(ratio.estimate.mean) == pytest.approx(200 / 180)
    written = [part.get_text() for part in text.texts]
    assert written[-3:] == ["10", "45", "50"]  # observed, planned, needed


def _points(axes):
    return [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "o"]


def test_report_of_a_single_run_or_of_few_cases(records):
    one = {
        name: Replications(
            found.case,
            found.run[:1],
            type(found.columns)(**{k: v[:1] for k, v in found.columns.arrays().items()}),
            found.seconds[:1],
        )
        for name, found in records.items()
    }
    few = {name: records[name] for name in ("sample-size/random-1/pairs/10",)}
    for figure in draw(TINY, one).values():
        figure.canvas.draw()
    assert list(draw(TINY, few)) == ["normality-sample-size"]
    findings = analyse(TINY, one)
    json.dumps(findings.summary, allow_nan=False)
    assert not {claim.verdict for claim in findings.claims} & {
        Verdict.REPRODUCED,
        Verdict.CONTRADICTED,
    }
