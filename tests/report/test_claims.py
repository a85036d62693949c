"""Verdicts where the truth is known: the rules, their error rates, and made-up runs.

The made-up runs tell the paper's story or its reverse.
"""

import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

from brmdp import solve
from brmdp.envs import riverswim
from brmdp.report import Claim, Comparison, Region, Verdict, estimate, judge, merged
from brmdp.report.claims import ABOVE_ZERO, BELOW_ZERO, JudgedClaim, JudgedComparison
from brmdp.report.estimates import exact_number, proportion
from brmdp.report.statistics import ROBUST_REGRET, SECONDS, TRUE_REGRET, Statistic
from brmdp.report.verdicts import (
    claims_as_markdown,
    claims_as_text,
    error_statement,
    verdict_counts,
)
from brmdp.runs import CaseRecords
from brmdp.studies.paper import STUDIES
from brmdp.studies.paper.analysis import CLAIMS, DELTA_TABLE
from brmdp.studies.paper.statistics import HALF_OF_RIGHT
from oracles import analysis as oracle

STEPS, SHOWN, RUNS = 900, 600, 60
EXPERIMENTS = {study.name: study.experiment for study in STUDIES}
ALL = [study.name for study in STUDIES if study.in_paper]


def made_up(
    case,
    seed,
    *,
    regret=0.5,
    growth=1.0,
    robust=0.1,
    reward=0.1,
    rise=0.2,
    left=0.3,
    right=0.3,
    holes=0.2,
    shortcut=0.05,
    quantile=0.2,
    seconds=1.0,
    runs=RUNS,
):
    """Runs with this regret per step, growing as T^p, and these shares of states.

    The reward is paid from the given part of the steps on.
    """
    rng = np.random.default_rng(seed)
    case = dataclasses.replace(case, steps=STEPS, reported_steps=min(case.reported_steps, SHOWN))
    shown = case.reported_steps
    n_states = 16 if case.environment == "frozenlake" else case.environment_parameters["n"]
    shape = (runs, STEPS)
    luck = rng.normal(1.0, 0.02, size=(runs, 1))
    total = shown**growth
    clock = np.arange(STEPS + 1) ** growth / total * shown
    if case.environment == "frozenlake":
        state = np.where(rng.random(shape) < holes, 5, np.where(rng.random(shape) < shortcut, 2, 0))
    else:
        place = rng.random(shape)
        state = np.where(
            place < left, 0, np.where(place < left + right, n_states - 1, n_states // 2)
        )
    times = np.arange(0, STEPS, 200)
    return CaseRecords(
        case=case,
        run=np.arange(runs),
        state=state,
        action=np.full(shape, 3),
        next_state=None,
        disturbance=None,
        episode=np.ones(shape, dtype=np.int64),
        reward=np.where(np.arange(STEPS) >= rise * shown, reward * luck, 0.0),
        true_regret=regret * luck * np.diff(clock),
        robust_regret=robust * luck * np.ones(STEPS),
        quantile_step=times,
        quantile_value=quantile * luck * np.ones(times.size),
        seconds=seconds * luck[:, 0],
        n_states=n_states,
    )


def told(experiment, story, runs=RUNS):
    """Records of an experiment by a story: case name → what is made up about it."""
    return {
        case.name: made_up(case, position, runs=runs, **story[case.name])
        for position, case in enumerate(EXPERIMENTS[experiment].cases)
    }


RIVER = {
    "aq-brmdp": {"regret": 0.2, "reward": 0.25, "rise": 0.1, "right": 0.6, "left": 0.1},
    "continuing-psrl": {"regret": 0.4, "reward": 0.25, "rise": 0.5, "right": 0.3, "left": 0.3},
    "brmdp-0.1": {"regret": 1.0, "reward": 0.005, "rise": 0.0, "left": 0.95, "right": 0.0},
    "brmdp-0.3": {"regret": 0.9, "reward": 0.01, "rise": 0.0, "left": 0.9, "right": 0.02},
    "brmdp-0.5": {"regret": 0.5, "reward": 0.1, "rise": 0.0, "left": 0.5, "right": 0.3},
}
LONG_RIVER = {name: RIVER[name] for name in ("aq-brmdp", "continuing-psrl")} | {
    f"brmdp-{level}": {"regret": 1.0, "reward": 0.005, "rise": 0.0, "left": 0.95, "right": 0.0}
    for level in (0.1, 0.3, 0.5)
}
LAKE = {
    "aq-brmdp": {"regret": 0.1, "robust": 0.01, "holes": 0.1, "shortcut": 0.02, "quantile": 0.3},
    "continuing-psrl": {
        "regret": 0.5,
        "robust": 0.1,
        "holes": 0.4,
        "shortcut": 0.2,
        "quantile": 0.1,
    },
    "brmdp-0.1": {"regret": 0.3, "robust": 0.02, "holes": 0.1, "shortcut": 0.02, "quantile": 0.2},
    "brmdp-0.3": {"regret": 0.2, "robust": 0.02, "holes": 0.1, "shortcut": 0.02, "quantile": 0.2},
    "brmdp-0.5": {"regret": 0.4, "robust": 0.02, "holes": 0.1, "shortcut": 0.02, "quantile": 0.2},
}
TABLE = {
    f"aq-brmdp-delta-{delta}": {"regret": regret / SHOWN} for delta, regret in DELTA_TABLE.items()
}

PAPER = {
    "riverswim-6": RIVER,
    "riverswim-10": LONG_RIVER,
    "frozenlake-0.7": LAKE,
    "frozenlake-0.9": LAKE,
    "delta-sensitivity": TABLE,
}


def exchanged(story, *pairs, **changes):
    swap = dict(pairs) | {second: first for first, second in pairs}
    return {
        name: story[swap.get(name, name)] | changes.get(name.replace("-", "_").replace(".", ""), {})
        for name in story
    }


ADAPTIVE = ("aq-brmdp", "continuing-psrl")
REVERSE = {
    "riverswim-6": exchanged(RIVER, ADAPTIVE, ("brmdp-0.1", "brmdp-0.5")),
    "riverswim-10": exchanged(
        LONG_RIVER,
        ADAPTIVE,
        brmdp_01={"growth": 0.5, "left": 0.2, "regret": 0.5},
        brmdp_03={"growth": 0.5, "left": 0.2, "regret": 0.7},
        brmdp_05={"growth": 0.5, "left": 0.2, "regret": 1.0},
    ),
    "frozenlake-0.7": {
        "aq-brmdp": LAKE["continuing-psrl"],
        "continuing-psrl": LAKE["aq-brmdp"],
        "brmdp-0.1": LAKE["continuing-psrl"] | {"regret": 0.2, "quantile": 0.4},
        "brmdp-0.3": LAKE["continuing-psrl"] | {"regret": 0.6, "quantile": 0.4},
        "brmdp-0.5": LAKE["continuing-psrl"] | {"regret": 0.5, "quantile": 0.4},
    },
    "delta-sensitivity": {
        f"aq-brmdp-delta-{delta}": {"regret": regret / SHOWN}
        for delta, regret in ((5, 400.0), (10, 450.0), (15, 550.0))
    },
}
REVERSE["frozenlake-0.9"] = REVERSE["frozenlake-0.7"]


# --- the rules ------------------------------------------------------------------------------------


def spread(low, high, runs=6):
    """Samples whose 95 % interval is [low, high]."""
    raw = np.linspace(-1.0, 1.0, runs)
    reach = float(estimate(raw).high)
    return (low + high) / 2 + raw / reach * (high - low) / 2


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-3.0, -1.0),
        (1.0, 3.0),
        (-1.0, 2.0),
        (-0.1, 0.1),
        (-0.1, 0.6),
        (0.6, 0.9),
        (-9.0, 9.0),
        (-9.0, -0.4),
    ],
)
def test_rules_agree_with_the_plain_ones(low, high):
    found = estimate(spread(low, high))
    assert [float(found.low), float(found.high)] == pytest.approx([low, high])
    assert BELOW_ZERO.judge(found) == oracle.directional_verdict(low, high, "below")
    assert ABOVE_ZERO.judge(found) == oracle.directional_verdict(low, high, "above")
    assert Region.around(0.0, 0.5).judge(found) == oracle.closeness_verdict(low, high, 0.0, 0.5)


def test_a_difference_of_exactly_nothing_is_not_resolved_either_way():
    nothing = estimate(np.zeros(10))
    assert BELOW_ZERO.judge(nothing) is ABOVE_ZERO.judge(nothing) is Verdict.NOT_RESOLVED
    assert Region.around(0.0, 0.1).judge(nothing) is Verdict.NOT_RESOLVED


@pytest.mark.parametrize(
    "samples", [np.full(100, -5.0), np.full(100, 0.1) + 0.2, -5.0 + 1e-15 * np.arange(100)]
)
def test_equal_runs_resolve_nothing_but_exact_numbers_do(samples):
    """A hundred runs that are equal up to rounding leave no spread to judge by.

    A number that is not an average needs no spread.
    """
    found = estimate(samples)
    for region in (Region(high=1.0), Region.around(float(samples[0]), 1.0), Region(low=7.0)):
        judged = JudgedComparison.of("x", "q", found, region)
        assert judged.verdict is Verdict.NOT_RESOLVED
        assert "no spread to judge by" in judged.numbers()
        assert judged.as_json()["interval"] is None
    assert Region(high=0.0).judge(exact_number(-5.0, 100)) is Verdict.REPRODUCED
    assert Region(low=0.0).judge(exact_number(-5.0, 100)) is Verdict.CONTRADICTED
    # an interval without width from elsewhere is not trusted either
    assert (
        Region(high=0.0).judge(dataclasses.replace(exact_number(-5.0, 100), exact=False))
        is Verdict.NOT_RESOLVED
    )


def test_equal_shares_are_judged_by_what_their_range_leaves_open():
    """Clopper and Pearson: 100 of 100 leaves 0.0362 open, 12 of 12 leaves 0.265."""
    for runs, verdict in ((100, Verdict.REPRODUCED), (12, Verdict.NOT_RESOLVED)):
        found = estimate(np.ones(runs), bounds=(0.0, 1.0))
        assert float(found.low) == pytest.approx(0.025 ** (1 / runs), rel=1e-9)
        assert float(found.high) == 1.0
        assert Region(low=0.8).judge(found) is verdict


def test_differences_of_rounding_are_none():
    """Two agents whose regrets differ in the last digit are not told apart."""
    records = told("frozenlake-0.7", LAKE)
    twin = records["aq-brmdp"]
    records["twin"] = dataclasses.replace(twin, true_regret=twin.true_regret * (1.0 + 1e-15))
    for operation, region in (("difference", ABOVE_ZERO), ("reduction", Region(high=0.0))):
        found = Comparison(TRUE_REGRET, "twin", "aq-brmdp", operation, region).judge("x", records)
        assert found.estimate.mean != 0.0
        assert found.verdict is Verdict.NOT_RESOLVED


@pytest.mark.parametrize("runs", [0, 1, 2])
def test_few_runs_resolve_nothing(runs):
    for region in (BELOW_ZERO, ABOVE_ZERO, Region.around(5.0, 1.0)):
        assert region.judge(estimate(np.full(runs, 5.0))) is Verdict.NOT_RESOLVED


def verdicts_on(draw, region, repetitions=4000, runs=20):
    rng = np.random.default_rng(7)
    found = [region.judge(estimate(draw(rng, runs))) for _ in range(repetitions)]
    return {verdict: found.count(verdict) / repetitions for verdict in Verdict}


@pytest.mark.long
@pytest.mark.parametrize("region", [BELOW_ZERO, ABOVE_ZERO])
def test_directional_rule_errs_in_one_of_forty_at_most_when_nothing_differs(region):
    rates = verdicts_on(lambda rng, runs: rng.normal(size=runs), region)
    tolerance = 4 * np.sqrt(0.025 * 0.975 / 4000)
    for verdict in (Verdict.REPRODUCED, Verdict.CONTRADICTED):
        # not much less either: the interval costs a seventh of the width of Student's t
        assert 0.01 - tolerance < rates[verdict] < 0.025 + tolerance


@pytest.mark.long
def test_directional_rule_stands_skewed_regrets_on_common_seeds():
    def draw(rng, runs):
        # both agents share half of their luck; regrets are skewed, their expectations equal
        shared = rng.exponential(size=runs)
        return (shared + rng.exponential(size=runs)) - (shared + rng.exponential(size=runs))

    rates = verdicts_on(draw, BELOW_ZERO)
    assert rates[Verdict.REPRODUCED] + rates[Verdict.CONTRADICTED] < 0.05


def test_true_differences_are_found_and_false_ones_contradicted():
    rates = verdicts_on(lambda rng, runs: rng.normal(-1.0, 1.0, size=runs), BELOW_ZERO, 500)
    assert rates[Verdict.REPRODUCED] > 0.95
    rates = verdicts_on(lambda rng, runs: rng.normal(1.0, 1.0, size=runs), BELOW_ZERO, 500)
    assert rates[Verdict.CONTRADICTED] > 0.95


@pytest.mark.long
def test_closeness_rule_errs_rarely_at_the_margin():
    rates = verdicts_on(lambda rng, runs: rng.normal(0.5, 1.0, size=runs), Region.around(0.0, 0.5))
    assert rates[Verdict.REPRODUCED] < 0.025 + 4 * np.sqrt(0.025 * 0.975 / 4000)


# --- claims about claims --------------------------------------------------------------------------


def test_every_paper_experiment_has_claims_and_every_claim_its_cases():
    assert set(ALL) <= set(CLAIMS) <= set(EXPERIMENTS)
    for experiment, claims in CLAIMS.items():
        names = {case.name for case in EXPERIMENTS[experiment].cases}
        for claim in claims:
            assert claim.comparisons
            assert not claim.somewhere_in or experiment in claim.somewhere_in
            for comparison in claim.comparisons:
                assert comparison.case in names
                assert comparison.operation == "value" or comparison.baseline in names
                assert (comparison.claimed is None) == (experiment == "quantile-methods")


def test_identifiers_are_unique_but_for_statements_over_several_experiments():
    identifiers = [
        claim.identifier for claims in CLAIMS.values() for claim in claims if not claim.somewhere_in
    ]
    assert len(identifiers) == len(set(identifiers))


def test_reductions_are_those_of_the_table():
    papers = [
        c.paper
        for claim in CLAIMS["delta-sensitivity"]
        for c in claim.comparisons
        if c.paper is not None
    ]
    assert papers == [297.2396, 291.4018, 287.7603, 1.96, 3.19]


@pytest.mark.parametrize("n", [6, 10])
def test_half_of_right_is_half_of_the_long_run_reward(n):
    world = riverswim(n)
    policy = solve(world).policy
    assert policy.tolist() == [1] * n
    chain = world.kernel()[np.arange(n), policy]
    long_run = np.linalg.matrix_power(chain, 1 << 14)[0]
    earned = long_run @ (chain * np.asarray(world.rewards)[np.arange(n), policy]).sum(axis=1)
    assert earned / 2 == pytest.approx(HALF_OF_RIGHT, abs=1e-4)


@pytest.mark.parametrize("experiment", ALL)
def test_the_story_of_the_paper_is_reproduced(experiment):
    for claim in judge(CLAIMS[experiment], experiment, told(experiment, PAPER[experiment])):
        assert claim.verdict is Verdict.REPRODUCED, claims_as_text([claim])


@pytest.mark.parametrize("experiment", ALL)
def test_the_reverse_is_contradicted(experiment):
    for claim in judge(CLAIMS[experiment], experiment, told(experiment, REVERSE[experiment])):
        if claim.somewhere_in:
            assert claim.verdict is Verdict.NOT_RESOLVED
        else:
            assert claim.verdict is Verdict.CONTRADICTED, claims_as_text([claim])


@pytest.mark.parametrize("experiment", CLAIMS)
@pytest.mark.parametrize("runs", [1, 2])
def test_few_runs_give_a_report_without_verdicts(experiment, runs):
    story = PAPER.get(experiment) or {case.name: {} for case in EXPERIMENTS[experiment].cases}
    judged = judge(CLAIMS[experiment], experiment, told(experiment, story, runs=runs))
    assert {claim.verdict for claim in judged} <= {Verdict.NOT_RESOLVED, Verdict.MEASURED}
    json.dumps([claim.as_json() for claim in judged], allow_nan=False)
    assert "nan" not in claims_as_text(judged)


def test_methods_are_measured_not_judged():
    story = {case.name: {} for case in EXPERIMENTS["quantile-methods"].cases}
    story["riverswim-6/monte-carlo"] = {"regret": 0.6, "seconds": 20.0}
    judged = judge(CLAIMS["quantile-methods"], "quantile-methods", told("quantile-methods", story))
    assert {claim.verdict for claim in judged} == {Verdict.MEASURED}
    regret, seconds = judged[0].comparisons
    assert float(regret.estimate.mean) == pytest.approx(0.1 * SHOWN, rel=0.2)
    assert float(seconds.estimate.mean) == pytest.approx(20.0, rel=0.05)


# --- several comparisons, several experiments -----------------------------------------------------


def both(first, second):
    """The non-monotone claim with what the two lakes tell."""
    judged = []
    for experiment, story in (("frozenlake-0.7", first), ("frozenlake-0.9", second)):
        if story is not None:
            judged += judge(CLAIMS[experiment], experiment, told(experiment, story))
    (claim,) = (
        claim
        for claim in merged(judged)
        if claim.identifier == "frozenlake/0.1-not-always-below-0.3"
    )
    return claim


def test_one_lake_suffices_for_what_can_happen():
    lower = REVERSE["frozenlake-0.7"]
    assert both(LAKE, lower).verdict is both(lower, LAKE).verdict is Verdict.REPRODUCED
    assert both(LAKE, None).verdict is Verdict.REPRODUCED
    assert both(lower, lower).verdict is Verdict.CONTRADICTED
    assert both(lower, None).verdict is Verdict.NOT_RESOLVED
    assert both(LAKE, lower).experiments == ("frozenlake-0.7", "frozenlake-0.9")
    assert "frozenlake-0.9, brmdp-0.1 − brmdp-0.3" in claims_as_markdown([both(LAKE, lower)])


def test_verdict_is_that_of_the_worst_comparison():
    records = told("frozenlake-0.7", LAKE)
    good = Comparison(TRUE_REGRET, "aq-brmdp", "brmdp-0.1", claimed=BELOW_ZERO)
    bad = Comparison(TRUE_REGRET, "aq-brmdp", "brmdp-0.1", claimed=ABOVE_ZERO)
    open_ = Comparison(TRUE_REGRET, "aq-brmdp", "aq-brmdp", claimed=ABOVE_ZERO)
    for comparisons, verdict in (
        ((good, good), Verdict.REPRODUCED),
        ((good, open_), Verdict.NOT_RESOLVED),
        ((bad, open_, good), Verdict.CONTRADICTED),
    ):
        (claim,) = judge([Claim("x", "says", "test", comparisons)], "frozenlake-0.7", records)
        assert claim.verdict is verdict
        assert [c.verdict for c in claim.comparisons].count(
            Verdict.REPRODUCED
        ) == comparisons.count(good)
    assert (
        claim.comparisons[1].numbers() == "0 in every run; claimed above 0; no spread to judge by"
    )


def test_what_is_missing_is_said():
    records = told("frozenlake-0.7", LAKE)
    records["brmdp-0.3"] = dataclasses.replace(records["brmdp-0.3"], robust_regret=None)
    for comparison, note in (
        (Comparison(TRUE_REGRET, "aq-brmdp", "nobody", claimed=BELOW_ZERO), "no runs of nobody"),
        (
            Comparison(TRUE_REGRET, "nobody", operation="value", claimed=BELOW_ZERO),
            "no runs of nobody",
        ),
        (
            Comparison(ROBUST_REGRET, "aq-brmdp", "brmdp-0.3", claimed=BELOW_ZERO),
            "not recorded for brmdp-0.3",
        ),
    ):
        found = comparison.judge("x", records)
        assert found.verdict is Verdict.NOT_RESOLVED
        assert found.note == note
        assert "{" not in found.quantity
        assert found.as_json()["estimate"] is None


def test_numbers_of_a_comparison_are_those_of_the_oracle():
    records = told("delta-sensitivity", TABLE)
    first, second = (
        records[f"aq-brmdp-delta-{delta}"].true_regret[:, :SHOWN].sum(axis=1) for delta in (5, 10)
    )
    names = ("aq-brmdp-delta-10", "aq-brmdp-delta-5")
    wanted = {
        "difference": oracle.interval(second - first),
        "ratio": oracle.ratio_interval(list(second), list(first)),
        "reduction": [100 * x for x in oracle.ratio_interval(list(first - second), list(first))],
        "value": oracle.interval(second),
    }
    for operation, numbers in wanted.items():
        found = Comparison(TRUE_REGRET, *names, operation).judge("x", records).estimate
        np.testing.assert_allclose([found.mean, found.low, found.high], numbers, rtol=1e-8)


# --- how often a verdict is wrong -----------------------------------------------------------------


def claim_of(columns, region=BELOW_ZERO, measured=()):
    """A judged claim of one comparison per column, and of others that are only measured."""
    judged = [
        JudgedComparison.of("x", f"q{i}", estimate(column), region)
        for i, column in enumerate(columns)
    ]
    only = [
        JudgedComparison.of("x", f"m{i}", estimate(column)) for i, column in enumerate(measured)
    ]
    return JudgedClaim("x", "says", "test", (*judged, *only))


@pytest.mark.long
def test_intervals_of_a_claim_hold_jointly():
    """Each of m comparisons has confidence 1 − 0.05/m, whatever else is measured.

    Numbers not subject to chance do not count.
    """
    samples = np.random.default_rng(3).gamma(2.0, size=(4, 30)) - 2.0
    claim = claim_of(samples, measured=samples[:2])
    for comparison, column in zip(claim.comparisons[:4], samples, strict=True):
        assert comparison.estimate.confidence == pytest.approx(0.9875)
        found = comparison.estimate
        numbers = [float(part) for part in (found.mean, found.low, found.high)]
        np.testing.assert_allclose(numbers, oracle.interval(column, 0.9875), rtol=1e-8)
        content = comparison.as_json()
        assert content["confidence"] == pytest.approx(0.9875)
        assert content["interval"] == pytest.approx(numbers[1:])
        assert content["ci95"] == pytest.approx(oracle.interval(column)[1:])
        assert "(98.75 %)" in comparison.numbers()
    assert [comparison.estimate.confidence for comparison in claim.comparisons[4:]] == [0.95, 0.95]
    assert claim.error_rate == claim.as_json()["error_rate"] == 0.05
    looked_at = JudgedComparison.of("x", "exceptions", exact_number(0.0, 9), Region(high=0.5))
    with_certain = JudgedClaim("x", "says", "test", (looked_at, *claim.comparisons[:1]))
    assert with_certain.comparisons[1].estimate.confidence == 0.95
    assert JudgedClaim("x", "says", "test", (looked_at,)).error_rate == 0.0
    assert claim_of([], measured=samples).error_rate is None


def test_shares_are_corrected_by_the_same_rule():
    happened = np.arange(50) < 41
    claim = JudgedClaim(
        "x",
        "",
        "",
        tuple(JudgedComparison.of("x", "q", proportion(happened), ABOVE_ZERO) for _ in "ab"),
    )
    exact = stats.binomtest(41, 50).proportion_ci(0.975, method="exact")
    found = claim.comparisons[0].estimate
    assert (float(found.low), float(found.high)) == pytest.approx((exact.low, exact.high))


def test_claims_over_several_experiments_are_corrected_over_all_of_them():
    """One comparison in each of two lakes: alone at 95 %, together at 97.5 %."""
    assert [c.estimate.confidence for c in both(LAKE, None).comparisons] == [0.95]
    assert [c.estimate.confidence for c in both(LAKE, LAKE).comparisons] == [0.975, 0.975]


@pytest.mark.long
def test_a_true_claim_of_ten_comparisons_is_rarely_contradicted():
    """All ten are true by the smallest margin.

    With uncorrected 95 % intervals, a quarter of such claims would be contradicted.
    """
    rng = np.random.default_rng(8)
    wrong, alone = 0, 0
    for _ in range(150):
        samples = rng.normal(size=(10, 20))
        wrong += claim_of(samples).verdict is Verdict.CONTRADICTED
        alone += any(
            BELOW_ZERO.judge(estimate(column)) is Verdict.CONTRADICTED for column in samples
        )
    assert alone > 0.1 * 150
    assert wrong <= 0.025 * 150 + 3 * np.sqrt(0.025 * 0.975 * 150)


def test_error_rate_is_said():
    rng = np.random.default_rng(9)
    certainly = JudgedClaim(
        "y", "", "", (JudgedComparison.of("x", "q", exact_number(0.0, 9), Region(high=0.5)),)
    )
    claims = [*(claim_of(rng.normal(size=(2, 9))) for _ in range(30)), certainly]
    assert "30 claims are judged" in error_statement(claims)
    assert "up to 1.5 wrong verdicts" in error_statement(claims)
    assert error_statement(claims[:1]).startswith("1 claim is judged")
    assert error_statement([certainly]) == ""


def test_what_would_undo_a_verdict():
    """100 runs miss a group of 2.95 % with probability 0.05; it would have to lie at the border."""
    share = 1.0 - 0.05**0.01
    samples = np.random.default_rng(10).normal(-10.0, 4.0, size=100)
    found = JudgedComparison.of("x", "q", estimate(samples), BELOW_ZERO)
    high, beyond = float(found.estimate.high), found.overturned_by
    assert (1.0 - share) * high + share * beyond == pytest.approx(0.0, abs=1e-9)
    assert not found.fragile
    assert found.as_json()["overturned_by"] == beyond
    assert found.as_json()["unseen_share"] == pytest.approx(share)
    # a verdict by a hair, with runs seen farther away than it takes
    near = JudgedComparison.of("x", "q", estimate(samples), Region(high=high + 0.05))
    assert near.verdict is Verdict.REPRODUCED
    assert near.fragile
    assert "the verdict would change if 3 % of runs, unseen here, lay at" in near.numbers()
    # contradictions, either way, and margins
    low = float(found.estimate.low)
    for region, end, border in (
        (Region(low=0.0), high, 0.0),
        (Region(high=-30.0), low, -30.0),
        (Region(-30.0, high + 1.0), high, high + 1.0),
        (Region(low - 1.0, 30.0), low, low - 1.0),
    ):
        moved = (1.0 - share) * end + share * region.overturned_by(estimate(samples))
        assert moved == pytest.approx(border)
    # no verdict, nothing to undo; and a known range reckons with such groups already
    assert Region(-11.0, 0.0).overturned_by(estimate(samples)) is None
    assert Region(high=20.0).overturned_by(estimate(samples, bounds=(-40.0, 20.0))) is None


def test_distance_from_the_paper_is_in_standard_errors():
    records = told("delta-sensitivity", TABLE)
    name = "aq-brmdp-delta-5"
    found = Comparison(TRUE_REGRET, name, "", "value", paper=250.0).judge("x", records)
    totals = records[name].true_regret[:, :SHOWN].sum(axis=1)
    wanted = (totals.mean() - 250.0) / (totals.std(ddof=1) / np.sqrt(RUNS))
    assert found.standard_errors_from_paper == pytest.approx(wanted)
    assert f"paper 250, difference {wanted:+.1f} s.e." in found.numbers()
    assert found.as_json()["standard_errors_from_paper"] == pytest.approx(wanted)


def test_a_statistic_of_ones_own():
    records = told("frozenlake-0.7", LAKE)
    longest = Statistic("stay in {steps} steps", lambda found, steps: steps + 0.1 * found.run)
    found = Comparison(longest, "aq-brmdp", operation="value", claimed=Region(low=0.0)).judge(
        "x", records
    )
    assert found.quantity == "aq-brmdp: stay in 600 steps"
    assert found.verdict is Verdict.REPRODUCED


def test_claims_as_text_and_markdown():
    judged = judge(CLAIMS["riverswim-6"], "riverswim-6", told("riverswim-6", RIVER))
    text, table = claims_as_text(judged), claims_as_markdown(judged)
    assert max(map(len, text.splitlines())) <= 100
    assert len(table.splitlines()) == 2 + len(judged)
    assert len({line.count(" | ") for line in table.splitlines()}) == 1
    assert verdict_counts(judged) == f"{len(judged)} reproduced"
    for claim in judged:
        assert f"| **reproduced** | {claim.paper} <br><sub>riverswim-6</sub> | <details>" in table
        assert f"Tested as: {claim.test}" in table
        for comparison in claim.comparisons:
            assert comparison.numbers() in table
    assert SECONDS.name not in text


def test_what_was_found_stands_before_it_is_unfolded():
    samples = np.random.default_rng(3).normal(-3.0, size=(3, 20))
    for claim, shown in (
        (claim_of(samples[:1]), str(claim_of(samples[:1]).comparisons[0].estimate)),
        (claim_of([*samples[:2], -samples[2]]), "3 comparisons: 2 reproduced, 1 contradicted"),
        (claim_of(samples[:1], measured=samples), "1 comparison: 1 reproduced"),
        (claim_of([], measured=samples), "3 numbers"),
    ):
        assert f"<summary>{shown}</summary>" in claims_as_markdown([claim])
