"""Curves, estimates and summaries against slow second implementations and simulated truths."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from brmdp.errors import InvalidInputError
from brmdp.report import (
    Curve,
    accumulated,
    cumulative_reward,
    cumulative_robust_regret,
    cumulative_true_regret,
    estimate,
    exact_number,
    moving_average_reward,
    occupancy,
    proportion,
    quantile_value,
    statistics,
)
from brmdp.report.claims import Region, Verdict
from brmdp.report.curves import common_runs, reported_steps
from brmdp.report.estimates import MINIMUM_RUNS, ratio_samples, unseen_share
from brmdp.report.summary import agents_summary, agents_table, count_of_runs, same_world
from brmdp.report.tables import TERMINAL, Table
from brmdp.runs import Case, CaseRecords, Experiment
from brmdp.studies.paper import statistics as paper
from oracles import analysis as oracle


def records_of(name="a", runs=5, steps=700, shown=300, n_states=6, seed=0, numbers=None, **changes):
    """Random records, all of whose parts are drawn independently."""
    rng = np.random.default_rng(seed)
    environment = changes.pop("environment", "riverswim")
    content = {
        "case": Case(
            name, environment, "aq-brmdp", 0.9, steps, {"n": n_states}, {}, shown, 0.2, 0.1
        ),
        "run": np.arange(runs) if numbers is None else np.asarray(numbers),
        "state": rng.integers(n_states, size=(runs, steps)),
        "action": rng.integers(4, size=(runs, steps)),
        "next_state": None,
        "disturbance": None,
        "episode": np.tile(np.arange(1, steps + 1), (runs, 1)),
        "reward": rng.exponential(size=(runs, steps)) * rng.integers(2, size=(runs, steps)),
        "true_regret": rng.exponential(size=(runs, steps)),
        "robust_regret": rng.exponential(size=(runs, steps)),
        "quantile_step": np.arange(0, steps, 200),
        "quantile_value": rng.normal(size=(runs, len(range(0, steps, 200)))),
        "seconds": rng.exponential(size=runs),
        "n_states": n_states,
    }
    return CaseRecords(**(content | changes))


def test_worlds_are_compared_by_their_parameters():
    def case(**parameters):
        return Case("a", "riverswim", "aq-brmdp", 0.9, 5, parameters)

    assert same_world(case(n=6, extra=[1]), case(n=6.0, extra=[1.0]))
    assert not same_world(case(n=6, extra=[1]), case(n=6, extra=[True]))


# --- estimates ------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("runs", [3, 4, 5, 10, 100])
def test_estimate_agrees_with_the_oracle(runs):
    samples = np.random.default_rng(runs).gamma(0.3, size=(runs, 7))
    samples[: runs - 1, 0] = 0.25  # one run apart from the others
    found = estimate(samples)
    for column in range(7):
        wanted = oracle.interval(samples[:, column])
        np.testing.assert_allclose(
            [found.mean[column], found.low[column], found.high[column]],
            wanted,
            rtol=1e-9,
            atol=1e-10,
        )
        one = estimate(samples[:, column])
        assert float(one.low) == pytest.approx(float(found.at(column).low), rel=1e-12)
        assert one.runs == runs


@pytest.mark.parametrize("runs", range(MINIMUM_RUNS))
def test_few_runs_have_no_interval_and_no_warning(runs):
    found = estimate(np.arange(runs, dtype=float))
    assert np.isnan(found.low)
    assert np.isnan(found.high)
    assert not found.has_interval
    assert found.as_json() == {"mean": None if runs == 0 else (runs - 1) / 2, "ci95": None}
    assert "nan" not in str(found)


@pytest.mark.parametrize("runs", [3, 30])
def test_known_bounds_agree_with_the_oracle_and_with_binomial_intervals(runs):
    samples = np.random.default_rng(runs).beta(0.5, 3.0, size=(runs, 3))
    found = estimate(samples, bounds=(0.0, 1.0)).at_confidence(0.99)
    for column in range(3):
        wanted = oracle.interval(samples[:, column], 0.99, (0.0, 1.0))
        np.testing.assert_allclose(
            [found.mean[column], found.low[column], found.high[column]],
            wanted,
            rtol=1e-9,
            atol=1e-10,
        )
    for successes in (0, 1, runs // 2, runs):
        counted = estimate(np.arange(runs) < successes, bounds=(0.0, 1.0))
        exact = stats.binomtest(successes, runs).proportion_ci(0.95, method="exact")
        assert (float(counted.low), float(counted.high)) == pytest.approx(
            (exact.low, exact.high), abs=1e-9
        )


COVERED = 4 * np.sqrt(0.95 * 0.05 / 4_000)


def coverage(draw, mean, runs, bounds=None):
    """The shares of 4,000 intervals that do not miss the mean, and that exist."""
    found = estimate(draw(np.random.default_rng((1, runs)), (runs, 4_000)), bounds=bounds)
    return 1.0 - np.mean((found.low > mean) | (found.high < mean)), np.mean(~np.isnan(found.low))


@pytest.mark.parametrize("runs", [3, 8, 16, 100])
def test_interval_covers_the_mean_of_normal_numbers(runs):
    covered, given = coverage(lambda rng, shape: rng.normal(3.0, 2.0, size=shape), 3.0, runs)
    assert 0.95 - COVERED < covered < 0.985
    assert given == 1.0


@pytest.mark.parametrize(
    ("share", "runs"),
    [(0.01, 16), (0.01, 100), (0.05, 16), (0.05, 100), (0.2, 16), (0.2, 24), (0.2, 100)],
)
def test_interval_covers_the_mean_of_two_groups_of_runs(share, runs):
    """Groups without spread of their own: no interval unless both are seen, and then it covers.

    Student's t covers 63 % of the time for a group of 1 % and 100 runs.
    """
    covered, given = coverage(lambda rng, shape: (rng.random(shape) < share) * 1.0, share, runs)
    assert covered > 0.95 - COVERED
    assert given == pytest.approx(1.0 - (1.0 - share) ** runs - share**runs, abs=0.03)


def blurred(share):
    """Two groups of runs with a spread of their own, within [0, 1], and the mean."""

    def draw(rng, shape):
        near = rng.uniform(0.0, 0.02, size=shape)
        return np.where(rng.random(shape) < share, 1.0 - near, near)

    return draw, share * 0.99 + (1.0 - share) * 0.01


@pytest.mark.parametrize("runs", [16, 24, 100])
@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_known_range_covers_where_no_runs_alone_can(share, runs):
    """Without a known range, the mean is missed whenever a rare group is unseen; with one, not."""
    draw, mean = blurred(share)
    covered, _ = coverage(draw, mean, runs, bounds=(0.0, 1.0))
    assert covered > 0.95 - COVERED
    blind, _ = coverage(draw, mean, runs)
    seen = 1.0 - (1.0 - share) ** runs
    assert blind > min(0.95, seen) - COVERED
    if unseen_share(runs) > share:
        assert blind < seen + COVERED, (
            "no interval from the runs alone can know of what they do not show"
        )


def test_skewed_numbers_are_covered_at_100_runs():
    """Student's t covers 91 % of the means of lognormal numbers."""
    covered, _ = coverage(lambda rng, shape: rng.lognormal(size=shape), np.exp(0.5), 100)
    assert covered > 0.95 - COVERED


def test_unseen_share_is_what_the_runs_miss_with_5_percent():
    for runs in (1, 16, 100):
        assert (1.0 - unseen_share(runs)) ** runs == pytest.approx(0.05)
    assert unseen_share(0) == 1.0


@pytest.mark.parametrize("factor", [1e-100, 1.0, 1e100])
def test_intervals_do_not_depend_on_unit_or_origin(factor):
    samples = np.random.default_rng(6).gamma(0.5, size=20)
    one, other = estimate(samples), estimate(factor * samples)
    assert [float(other.low), float(other.high)] == pytest.approx(
        [factor * float(one.low), factor * float(one.high)]
    )
    moved = estimate(samples + 1e6)
    assert [float(moved.low) - 1e6, float(moved.high) - 1e6] == pytest.approx(
        [float(one.low), float(one.high)], abs=1e-8
    )


def test_odd_samples_have_no_interval():
    """Columns with NaN, with infinity, of equal numbers, and ordinary: each stands for itself."""
    samples = np.random.default_rng(7).normal(size=(10, 4))
    samples[3, 0], samples[4, 1], samples[:, 2] = np.nan, np.inf, 5.0
    found = estimate(samples)
    np.testing.assert_array_equal(np.isnan(found.mean), [True, True, False, False])
    np.testing.assert_array_equal(np.isnan(found.low), [True, True, True, False])
    assert found.at(2).all_equal
    assert not found.at(0).all_equal
    alone = estimate(samples[:, 3])
    assert found.at(3).at_confidence(0.99).low == pytest.approx(
        float(alone.at_confidence(0.99).low)
    )
    np.testing.assert_array_equal(found.reach[:, :3], 0.0)
    for words, call in {
        "samples must have one entry per run": lambda: estimate(3.0),
        "samples must lie within their bounds": lambda: estimate(
            [0.5, 1.5, 0.2], bounds=(0.0, 1.0)
        ),
        "bounds must be two increasing numbers": lambda: estimate(
            [0.5, 0.5, 0.2], bounds=(1.0, 0.0)
        ),
    }.items():
        with pytest.raises(InvalidInputError, match=words):
            call()


def test_ratio_agrees_with_the_delta_method():
    rng = np.random.default_rng(2)
    denominator = rng.gamma(20.0, size=40)
    numerator = 0.7 * denominator + rng.normal(size=40)
    found = estimate(ratio_samples(numerator, denominator))
    np.testing.assert_allclose(
        [found.mean, found.low, found.high],
        oracle.ratio_interval(list(numerator), list(denominator)),
        rtol=1e-9,
    )
    assert float(found.standard_error) == pytest.approx(
        oracle.ratio_error(list(numerator), list(denominator)), rel=1e-10
    )


@pytest.mark.long
def test_ratio_interval_covers_the_truth():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(2000):
        common = rng.gamma(9.0, size=50)
        found = estimate(
            ratio_samples(common * rng.uniform(0.5, 1.5, 50), common * rng.uniform(1.5, 2.5, 50))
        )
        covered += bool(found.low < 0.5 < found.high)
    assert 0.94 < covered / 2000 < 0.985


def test_ratio_to_nothing_is_unknown_not_an_error():
    found = estimate(ratio_samples(np.ones(4), np.zeros(4)))
    assert found.as_json() == {"mean": None, "ci95": [None, None]}
    assert str(found) == "unknown"


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        ([1.0], "1.000"),
        ([1234.5], "1234"),
        ([0.005, 0.005, 0.005], "0.005000 in every run"),
        ([0.0, 0.0, 0.0], "0 in every run"),
        ([100.0, 101.0, 102.0], "101.0 [98.5, 103.5]"),
        ([-3e-9, -3e-9, -3e-9], "-3e-09 in every run"),
        ([], "unknown"),
    ],
)
def test_estimate_as_text(samples, text):
    assert str(estimate(samples)) == text


def test_what_is_not_known_is_not_counted_as_held():
    """In a share, NaN is neither success nor failure.

    Without trials nothing is known; only 0 and 1 are booleans.
    """
    assert str(proportion([1.0, np.nan, 1.0, 1.0])) == str(proportion([])) == "unknown"
    assert Region(low=0.1).judge(proportion([1.0, np.nan, 1.0, 1.0])) is Verdict.NOT_RESOLVED
    with pytest.raises(InvalidInputError, match="happened must be booleans"):
        proportion([0.0, 0.7])
    assert Region(high=0.5).judge(exact_number(0.0, 0)) is Verdict.NOT_RESOLVED


def test_unknown_regret_does_not_grow_linearly():
    """Nor does a report fail where regret is only rounding, its second half more than the whole."""
    regret = np.zeros((3, 700))
    regret[0, 5] = np.nan
    regret[1, 10], regret[1, 200] = -1e-12, 3e-12
    share = statistics.SECOND_HALF_SHARE.samples(records_of(runs=3, true_regret=regret))
    np.testing.assert_array_equal(share, [np.nan, 1.0, 0.5])
    assert str(estimate(share, bounds=(0.0, 1.0))) == "unknown"


# --- curves ---------------------------------------------------------------------------------------


def test_cumulative_curves_agree_with_running_sums():
    records = records_of()
    for curve, per_step in (
        (cumulative_true_regret(records), records.true_regret),
        (cumulative_robust_regret(records), records.robust_regret),
        (cumulative_reward(records), records.reward),
    ):
        assert curve.step[0] == 1
        assert curve.step[-1] == 700
        for run in range(5):
            np.testing.assert_allclose(
                curve.values[run], oracle.running_sum(per_step[run]), rtol=1e-12
            )
        np.testing.assert_array_equal(curve.after(300), curve.values[:, 299])


@pytest.mark.parametrize("window", [1, 7, 100, 700])
def test_moving_average_agrees_and_begins_with_a_full_window(window):
    records = records_of()
    curve = moving_average_reward(records, window)
    assert curve.step[0] == window
    for run in range(5):
        np.testing.assert_allclose(
            curve.values[run], oracle.moving_average(list(records.reward[run]), window), atol=1e-12
        )


def test_moving_average_of_fewer_steps_than_the_window_is_empty():
    curve = moving_average_reward(records_of(steps=50, shown=50))
    assert curve.values.shape == (5, 0)
    assert curve.step.size == 0


def test_occupancy_agrees_with_counting():
    records = records_of()
    found = occupancy(records)
    for run in range(5):
        np.testing.assert_allclose(
            found[run], oracle.occupancy(list(records.state[run]), 6, 300), rtol=1e-15
        )
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(occupancy(records, 10_000).sum(axis=1), 1.0)


def test_what_was_not_recorded_is_none():
    records = records_of(
        robust_regret=None, quantile_value=np.empty((5, 0)), quantile_step=np.empty(0, dtype=int)
    )
    assert cumulative_robust_regret(records) is None
    assert quantile_value(records) is None
    assert statistics.ROBUST_REGRET.samples(records) is None
    assert statistics.QUANTILE_VALUE.samples(records) is None


def test_reported_steps_default_to_all():
    assert reported_steps(records_of(shown=0)) == 700
    assert reported_steps(records_of(shown=300)) == 300


def test_curve_cut_and_looked_up():
    curve = quantile_value(records_of())
    assert curve is not None
    assert curve.until(400).step.tolist() == [0, 200, 400]
    with pytest.raises(InvalidInputError, match="step must be one of"):
        curve.after(300)


def test_differences_pair_runs_by_number_not_by_position():
    first, second = records_of(numbers=[0, 2, 3, 5, 8]), records_of(numbers=[1, 2, 5, 6, 0], seed=1)
    difference = cumulative_true_regret(first) - cumulative_true_regret(second)
    assert difference.run.tolist() == [0, 2, 5]
    totals = [
        dict(zip(records.run.tolist(), cumulative_true_regret(records).after(700), strict=True))
        for records in (first, second)
    ]
    np.testing.assert_allclose(difference.after(700), oracle.paired(*totals), rtol=1e-12)
    mine, theirs = common_runs(first.run, second.run)
    assert first.run[mine].tolist() == second.run[theirs].tolist()


def test_pairing_removes_what_runs_share():
    luck = np.random.default_rng(4).normal(scale=100.0, size=(30, 1))
    one, other = (
        Curve(np.arange(30), np.array([1]), luck + 1.0),
        Curve(np.arange(30), np.array([1]), luck),
    )
    assert float((one - other).estimate().standard_error[0]) < 1e-10
    np.testing.assert_allclose((one - other).estimate().mean, 1.0)


# --- statistics -----------------------------------------------------------------------------------


def test_statistics_agree_with_counting():
    records = records_of(n_states=16, shown=450)
    steps, runs = 450, range(5)
    states, actions, rewards = (
        part.tolist() for part in (records.state, records.action, records.reward)
    )
    regret = records.true_regret
    wanted = {
        "TRUE_REGRET": [sum(regret[i, :steps]) for i in runs],
        "ROBUST_REGRET": [sum(records.robust_regret[i, :steps]) for i in runs],
        "AVERAGE_REWARD": [sum(rewards[i][:steps]) / steps for i in runs],
        "LAST_REWARD": [sum(rewards[i][steps - 100 : steps]) / 100 for i in runs],
        "LEFT_SHARE": [sum(s < 5 for s in states[i][:steps]) / steps for i in runs],
        "RIGHT_SHARE": [sum(s >= 11 for s in states[i][:steps]) / steps for i in runs],
        "HOLE_SHARE": [sum(s in (5, 7, 11, 12) for s in states[i][:steps]) / steps for i in runs],
        "SHORTCUT_USES": [
            sum(
                s == 2 and a == 3
                for s, a in zip(states[i][:steps], actions[i][:steps], strict=True)
            )
            for i in runs
        ],
        "SECOND_HALF_SHARE": [sum(regret[i, 225:steps]) / sum(regret[i, :steps]) for i in runs],
        "QUANTILE_VALUE": [sum(records.quantile_value[i, :3]) / 3 for i in runs],
        "SECONDS": records.seconds,
    }
    for name, values in wanted.items():
        np.testing.assert_allclose(
            getattr(statistics if hasattr(statistics, name) else paper, name).samples(records),
            values,
            rtol=1e-12,
            err_msg=name,
        )


def test_rise_time_agrees_with_looking():
    rng = np.random.default_rng(5)
    rewards = np.where(
        np.arange(700) > rng.integers(50, 800, size=(40, 1)), rng.integers(2, size=(40, 700)), 0.0
    )
    records = records_of(runs=40, shown=600, reward=rewards)
    wanted = [oracle.first_time(list(row), 100, paper.HALF_OF_RIGHT, 600) for row in rewards]
    assert paper.RISE_TIME.samples(records).tolist() == wanted
    assert max(wanted) == 600
    assert min(wanted) < 300


def test_rise_time_of_few_steps_is_the_end():
    assert paper.RISE_TIME.samples(records_of(steps=50, shown=0)).tolist() == [50.0] * 5
    assert statistics.LAST_REWARD.samples(records_of(steps=50, shown=0)) is None


def test_no_regret_grows_linearly():
    assert (
        statistics.SECOND_HALF_SHARE.samples(records_of(true_regret=np.zeros((5, 700)))).tolist()
        == [0.5] * 5
    )


# --- summary --------------------------------------------------------------------------------------


def experiment_of(*names, **settings):
    records = {
        name: records_of(name, seed=position, **settings) for position, name in enumerate(names)
    }
    return Experiment(
        "mine", "Mine", tuple(found.case for found in records.values()), runs=5
    ), records


def strict_json(content):
    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(json.dumps(content, allow_nan=False), parse_constant=refuse)


@pytest.mark.long
def test_summary_has_the_promised_shape():
    experiment, records = experiment_of("aq-brmdp", "brmdp-0.1", "brmdp-0.5", steps=1700, shown=800)
    summary = strict_json(agents_summary(experiment, records))
    assert summary["experiment"] == "mine"
    assert summary["runs"] == {"least": 5, "most": 5}
    assert summary["parameters"]["cases"]["brmdp-0.1"]["environment_parameters"] == {"n": 6}
    assert list(summary["agents"]) == ["aq-brmdp", "brmdp-0.1", "brmdp-0.5"]
    for name, agent in summary["agents"].items():
        assert agent["seconds_per_run"] == pytest.approx(records[name].seconds.mean())
        for key in ("true_regret", "robust_regret", "reward"):
            per_step = getattr(records[name], key)
            assert list(agent[key]["checkpoints"]) == ["500", "800", "1000", "1500"]
            for content, steps in ((agent[key], 1700), (agent[key]["checkpoints"]["800"], 800)):
                mean, low, high = oracle.interval([sum(row[:steps]) for row in per_step])
                assert content["mean"] == pytest.approx(mean)
                assert content["ci95"] == pytest.approx([low, high])
        assert len(agent["occupancy"]["mean"]) == len(agent["occupancy"]["ci95"]) == 6
        assert agent["quantile_value"]["mean"] == pytest.approx(records[name].quantile_value.mean())
        assert list(agent["quantile_value"]["checkpoints"]) == [
            str(step) for step in range(0, 1700, 200)
        ]
    pairs = [(entry["first"], entry["second"]) for entry in summary["differences"]]
    assert pairs == [
        ("aq-brmdp", "brmdp-0.1"),
        ("aq-brmdp", "brmdp-0.5"),
        ("brmdp-0.1", "brmdp-0.5"),
    ]
    gaps = (records["aq-brmdp"].true_regret - records["brmdp-0.1"].true_regret).sum(axis=1)
    assert summary["differences"][0]["true_regret"]["ci95"] == pytest.approx(
        list(oracle.interval(gaps)[1:])
    )


@pytest.mark.parametrize("runs", [1, 2])
def test_summary_of_few_runs_has_null_intervals(runs):
    experiment, records = experiment_of("a", "b", runs=runs, robust_regret=None)
    summary = strict_json(agents_summary(experiment, records))
    assert summary["agents"]["a"]["robust_regret"] is None
    assert summary["agents"]["a"]["true_regret"]["ci95"] is None
    assert summary["differences"][0]["robust_regret"] is None
    assert summary["differences"][0]["runs"] == runs


def test_cases_in_different_worlds_are_not_compared():
    one, other = records_of("a", n_states=6), records_of("b", n_states=10)
    summary = agents_summary(
        Experiment("mine", "Mine", (one.case, other.case)), {"a": one, "b": other}
    )
    assert summary["differences"] == []


def test_partial_records_are_summarised_as_they_are():
    experiment, records = experiment_of("a", "b", "c")
    del records["c"]
    records["b"] = records_of("b", runs=3, numbers=[4, 1, 7])
    summary = agents_summary(experiment, records)
    assert summary["runs"] == {"least": 3, "most": 5}
    assert list(summary["agents"]) == ["a", "b"]
    assert [entry["runs"] for entry in summary["differences"]] == [2]
    assert count_of_runs(records) == "3 to 5 runs"


def test_table_says_what_is_there():
    _, records = experiment_of("a", "b")
    assert agents_table(records).header == (
        "agent",
        "true regret, 300 steps",
        "true regret, total",
        "robust regret, total",
        "s/run",
    )
    _, records = experiment_of("a", "b", shown=0, robust_regret=None)
    table = agents_table(records)
    assert table.header == ("agent", "true regret, total", "s/run")
    assert str(estimate(records["a"].true_regret.sum(axis=1))) in table.as_text()
    assert Table(("x", "y"), (("1", "22"),)).as_markdown() == "| x | y |\n| :-- | --: |\n| 1 | 22 |"


def test_agents_without_regret_are_compared_by_their_rewards():
    nothing = {"true_regret": None, "robust_regret": None}
    _, records = experiment_of("a", "b", shown=0, **nothing)
    table = agents_table(records)
    assert table.header == ("agent", "reward, total", "s/run")
    assert str(estimate(records["a"].reward.sum(axis=1))) in table.as_text()
    records["c"] = records_of("c", shown=0, robust_regret=None)
    mixed = agents_table(records)
    assert mixed.header == ("agent", "true regret, total", "s/run")
    assert [row[1] == "–" for row in mixed.rows] == [True, True, False]
    assert accumulated(records["a"], "true_regret") is None
    assert agents_table({}).rows == ()


def test_long_names_stand_on_lines_of_their_own():
    names = ("short", "a name that is longer than half a line of a terminal, as sweeps make them")
    rows = tuple((name, "1.234 [1.000, 2.000]", "5.678 [5.000, 6.000]") for name in names)
    wide = Table(("agent", "one", "other"), rows).as_text().splitlines()
    assert max(map(len, wide)) <= TERMINAL
    assert [line for line in wide if line.strip() in names] == [*names]
    narrow = Table(("agent", "one", "other"), rows[:1]).as_text().splitlines()
    assert len(narrow) == 2
    assert len({len(line) for line in narrow}) == 1


@pytest.mark.long
def test_analysis_needs_neither_matplotlib_nor_the_slow_part_of_scipy():
    code = (
        "import sys, brmdp.report as a, numpy as np; a.estimate(np.arange(5.0)); print(*[m for m "
        "in ('matplotlib', 'scipy.stats', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == []
