"""A small version of the study ``lemmas``: its numbers recomputed, its claims and pictures."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from brmdp import theory
from brmdp.errors import InvalidInputError
from brmdp.runs import Replications, execute, run_experiment
from brmdp.runs.program import program_of
from brmdp.studies.lemmas.analysis import (
    analyse,
    claims,
    deviation_ratio,
    standardised,
    summary,
    tail_ratio,
)
from brmdp.studies.lemmas.experiment import (
    EXPERIMENT,
    LEVELS,
    DecompositionColumns,
    DeviationColumns,
    EpisodeColumns,
    decompositions,
    random_rows,
)
from brmdp.studies.lemmas.figures import SHOWN_ROWS, draw
from oracles import online, theory_lemmas

pytestmark = pytest.mark.long

FEW = {
    DeviationColumns: {"rows": 12},
    DecompositionColumns: {"worlds": 3, "samples": 200},
    EpisodeColumns: {"steps": 30, "repetitions": 20},
}


def tiny(runs=4):
    cases = [
        replace(case, parameters={**case.parameters, **FEW[program_of(case).columns]})
        for case in EXPERIMENT.cases
    ]
    return replace(EXPERIMENT, cases=tuple(cases), runs=runs)


def stream_of(run, seed=7):
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(run,)))


# --- what a run holds -----------------------------------------------------------------------------


def test_rows_are_as_data_leave_them():
    phi, w, size = random_rows(2000, "uniform", rng=np.random.default_rng(3))
    successors = (phi > 0).sum(axis=1)
    assert (successors.min(), successors.max()) == (2, 50)
    without = 0
    for row, n, values, largest in zip(phi, successors, w, size, strict=True):
        assert (row[n:] == 0).all()
        assert 0 <= values.min() <= values.max() <= largest
        # one prior for all successors, and whole counts on top of it
        counts = row[:n] - row[:n].min()
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
        without += counts.sum() == 0
    assert phi[phi > 0].min() >= 0.1
    assert 5_000 < phi.max() < 10_001
    assert ((size >= 1) & (size <= 100)).all()
    # a fifth of the logarithmic scale of observations lies below one; to 4 standard errors
    assert abs(without - 400) < 4 * math.sqrt(2000 * 0.2 * 0.8)
    extreme = random_rows(2000, "extreme", rng=np.random.default_rng(3))
    np.testing.assert_array_equal(extreme.concentration, phi)
    for row, values, largest in zip(phi, extreme.values, extreme.value_range, strict=True):
        assert set(values[row > 0]) == {0.0, largest}


def test_deviations_at_the_ends_are_those_of_beta_laws():
    """With values 0 and R, w·P/R is Beta(φ of successors at R, φ of the others)."""
    case = tiny().case("deviation-extreme")
    columns = {
        name: column.reshape(12, len(LEVELS))
        for name, column in execute(case, 7, 1).columns.arrays().items()
    }
    phi, w, size = random_rows(12, "extreme", rng=stream_of(1))
    for row in range(12):
        high = w[row] > 0
        law = stats.beta(phi[row, high].sum(), phi[row, ~high].sum(), scale=size[row])
        total = phi[row].sum()
        for position, level in enumerate(LEVELS):
            found = {name: column[row, position] for name, column in columns.items()}
            assert found["level"] == level
            assert found["successors"] == (phi[row] > 0).sum()
            assert found["total_concentration"] == pytest.approx(total)
            assert found["value_range"] == size[row]
            quantile = law.isf(1 - level) if level > 0.5 else law.ppf(level)
            assert found["deviation"] == pytest.approx(
                quantile - law.mean(), rel=1e-7, abs=1e-9 * size[row]
            )
            assert found["bound_above"] == pytest.approx(
                size[row] * math.sqrt(2 * math.log(1 / (1 - level)) / total)
            )
            assert found["bound_below"] == pytest.approx(
                size[row] * math.sqrt(2 * math.log(1 / level) / total)
            )
            distance = found["distance"]
            assert 0 < distance * math.sqrt(total + 1) <= 2 * size[row]
            assert found["tail_above"] == pytest.approx(
                law.sf(law.mean() + distance), rel=1e-7, abs=1e-30
            )
            assert found["tail_below"] == pytest.approx(
                law.cdf(law.mean() - distance), rel=1e-7, abs=1e-30
            )
            assert found["tail_bound"] == pytest.approx(
                math.exp(-total * (distance / size[row]) ** 2 / 2)
            )


def test_deviations_of_spread_values():
    """Quantiles and tails by another integral, whose error is absolute.

    Its integrand decays slowly for light rows, which are left out.
    """
    case = tiny().case("deviation-uniform")
    columns = {
        name: column.reshape(12, len(LEVELS))
        for name, column in execute(case, 7, 2).columns.arrays().items()
    }
    phi, w, size = random_rows(12, "uniform", rng=stream_of(2))
    chosen = np.flatnonzero((phi.sum(axis=1) > 1) & (phi.sum(axis=1) < 300))
    assert chosen.size >= 5
    for row in chosen:
        mean = phi[row] @ w[row] / phi[row].sum()
        many, values = np.tile(phi[row], (len(LEVELS), 1)), np.tile(w[row], (len(LEVELS), 1))
        quantiles = online.dirichlet_quantiles(many, values, np.array(LEVELS))
        np.testing.assert_allclose(
            columns["deviation"][row], quantiles - mean, rtol=0, atol=1e-7 * size[row]
        )
        for side, sign in (("above", 1), ("below", -1)):
            z = mean + sign * columns["distance"][row]
            inside = (z > w[row][phi[row] > 0].min()) & (z < w[row][phi[row] > 0].max())
            expected = np.zeros(len(LEVELS))
            if inside.any():
                below, _ = online.gil_pelaez(many[inside], values[inside], z[inside])
                expected[inside] = below if sign < 0 else 1 - below
            np.testing.assert_allclose(columns[f"tail_{side}"][row], expected, rtol=0, atol=1e-9)


def test_decompositions_against_series():
    """Both sides from second implementations of values and quantiles, in a run's worlds."""
    case = tiny().case("decomposition-3-2-0.5")
    columns = execute(case, 7, 3).columns
    for world, stream in enumerate(stream_of(3).spawn(3)):
        rewards = stream.random((3, 2, 3))
        kernel = theory.draw_mdp(3, 2, 0.5, rewards=rewards, rng=stream).kernel()
        visits = np.floor(10 ** stream.uniform(-1, 2.5, (3, 2))).astype(int)
        phi = 1 + stream.multinomial(visits, kernel)
        policy, floor = stream.integers(0, 2, 3), stream.uniform(0.05, 0.3)
        levels, s = stream.uniform(floor, 0.95, (3, 2)), np.arange(3)

        def nested(alpha, phi=phi, rewards=rewards, policy=policy, kernel=kernel):
            values, quantiles = theory_lemmas.nested_values(
                phi.astype(float), rewards, 0.5, policy, alpha
            )
            return values, quantiles - [
                kernel[x, policy[x]] @ (rewards[x, policy[x]] + 0.5 * values) for x in range(3)
            ]

        values, high = nested(levels)
        robust_values, low = nested(np.full((3, 2), floor))
        true_values = online.policy_values(kernel, rewards, 0.5, policy)
        both = ((values - true_values, high), (values - robust_values, high - low))
        for robust, (difference, discrepancy) in enumerate(both):
            left, right = theory_lemmas.decomposition_series(
                difference, discrepancy, kernel[s, policy], 0.5
            )
            row = 2 * world + robust
            assert columns.robust[row] == robust
            assert columns.left[row] == pytest.approx(left[0], abs=1e-8)
            assert columns.right[row] == pytest.approx(right[0], abs=1e-8)
            assert columns.identity_error[row] < 1e-8


def test_sampled_sums_and_their_errors():
    case = tiny().case("decomposition-6-3-0.8")
    columns = execute(case, 7, 0).columns
    for world, stream in enumerate(stream_of(0).spawn(3)):
        for robust, lemma in enumerate(decompositions(6, 3, 0.8, rng=stream)):
            left, right = theory.sample_decomposition(lemma, 0, 200, rng=stream)
            row = 2 * world + robust
            for name, sums in (("left", left), ("right", right), ("gap", left - right)):
                assert getattr(columns, f"{name}_sampled")[row] == pytest.approx(sum(sums) / 200)
                error = math.sqrt(sum((sums - sum(sums) / 200) ** 2) / 199 / 200)
                assert getattr(columns, f"{name}_error")[row] == pytest.approx(error)


def test_episodes_are_those_of_the_restart_rule():
    case = tiny().case("episodes-100-0.9")
    rng = stream_of(1)
    assert execute(case, 7, 1).columns.episodes.tolist() == [
        theory.count_episodes(30, 0.9, rng=rng) for _ in range(20)
    ]


def test_the_widest_laws_stay_within_half_of_the_bounds():
    """Moving all values to the ends of [0, R] gives a wider Beta law; a grid of these laws."""
    total = 10.0 ** np.linspace(-1, 6, 29)[:, None, None]
    share = np.array([1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999])[:, None]
    tail = 10.0 ** np.linspace(-12, -0.05, 40)
    law = stats.beta(total * share, total * (1 - share))
    bound = np.sqrt(2 * np.log(1 / tail) / total)
    ratios = np.maximum(law.isf(tail) - share, share - law.ppf(tail)) / bound
    assert 0.46 < ratios.max() < 0.5


# --- what is said of them -------------------------------------------------------------------------


def test_the_summary_recomputed(stored):
    experiment, _, records = stored
    content = summary(experiment, records)
    columns = records["deviation-extreme"].pooled.arrays()
    found = content["deviation"]["deviation-extreme"]
    assert found["exceptions"] == {
        "deviation": {"quantile − mean": 0, "mean − quantile": 0},
        "tail": {"upper tail": 0, "lower tail": 0},
    }
    ratios, tails = [], []
    for i in range(columns["level"].size):
        if not 10 <= columns["total_concentration"][i] < 100:
            continue
        side = "above" if columns["deviation"][i] > 0 else "below"
        ratios.append(abs(columns["deviation"][i]) / columns[f"bound_{side}"][i])
        tails.append(
            max(columns["tail_above"][i], columns["tail_below"][i]) / columns["tail_bound"][i]
        )
    band = found["by_total_concentration"]["10 to 100"]
    assert band == pytest.approx(
        {
            "rows": len(ratios) / 9,
            "deviation_median": np.median(ratios),
            "deviation_largest": max(ratios),
            "tail_largest": max(tails),
        }
    )
    assert sum(part["rows"] for part in found["by_total_concentration"].values()) == 4 * 12
    assert content["decomposition"]["decomposition-6-2-0.95"]["worlds"] == 12
    z = []
    for name, found in records.items():
        if name.startswith("decomposition"):
            parts = found.pooled
            z += [
                (parts.right_sampled[i] - parts.right[i]) / parts.right_error[i]
                for i in range(parts.right.size)
                if parts.robust[i]
            ]
    said = content["standardised"]["against the robust value: right side − its exact value"]
    assert said["mean"]["mean"] == pytest.approx(np.mean(z))
    assert said["beyond"]["mean"] == pytest.approx(
        np.mean([abs(x) > stats.norm.isf(0.025) for x in z])
    )
    assert content["episodes"]["episodes-10-0.5"]["expected"] == pytest.approx(1 + 29 * 0.5)


def test_workers_change_nothing(stored, workers, tmp_path):
    experiment, store, _ = stored
    assert run_experiment(experiment, tmp_path, executor=workers).digest() == store.digest()


@pytest.mark.parametrize(
    ("part", "judged"),
    [
        ("deviation", {"deviation", "tail", "half"}),
        ("decomposition", {"identity", "simulated", "simulated-spread"}),
        ("episodes", {"episodes"}),
    ],
)
def test_a_single_run_of_some_cases_is_reported(part, judged):
    records = {}
    for case in tiny().cases:
        if case.name.startswith(part):
            found = execute(case, 1, 0).columns
            columns = type(found)(**{key: column[None] for key, column in found.arrays().items()})
            records[case.name] = Replications(case, np.arange(1), columns, np.ones(1))
    assert set(draw(tiny(), records)) == {f"lemmas-{part}"} - {"lemmas-episodes"}
    findings = analyse(tiny(), records)
    assert {claim.identifier for claim in findings.claims} == {f"lemmas/{name}" for name in judged}
    json.dumps(findings.summary, allow_nan=False)
    assert findings.table.as_text().startswith("values, φ₀")


# --- claims can fail ------------------------------------------------------------------------------

RUNS = 1000


def told(name, columns):
    """Made-up replications of a case of the experiment."""
    return Replications(EXPERIMENT.case(name), np.arange(RUNS), columns, np.ones(RUNS))


def told_deviations(**changes):
    """One row a run at nine levels, all at 0.4 of their bounds but for changes of the last."""
    level = np.tile(LEVELS, (RUNS, 1))
    sign = np.where(level < 0.5, -1.0, 1.0)
    columns = {
        "successors": np.full(level.shape, 7),
        "total_concentration": np.full(level.shape, 50.0),
        "value_range": np.ones(level.shape),
        "level": level,
        "deviation": 0.4 * sign,
        "bound_above": np.ones(level.shape),
        "bound_below": np.ones(level.shape),
        "distance": np.full(level.shape, 0.2),
        "tail_above": np.full(level.shape, 0.1),
        "tail_below": np.full(level.shape, 0.1),
        "tail_bound": np.full(level.shape, 0.3),
    }
    for name, value in changes.items():
        columns[name][-1, -1] = value
    return told("deviation-extreme", DeviationColumns(**columns))


def told_sums(*, shift=0.0, width=1.0, side="left", identity_error=1e-12):
    """Sums in one world a run: a perfect normal sample, shifted and stretched on one side."""
    z = np.tile(stats.norm.ppf((np.arange(RUNS) + 0.5) / RUNS)[:, None], (1, 2))
    exact = {"left": 3.0, "right": 3.0, "gap": 0.0}
    columns = {
        "robust": np.tile([False, True], (RUNS, 1)),
        "left": np.full(z.shape, 3.0),
        "right": np.full(z.shape, 3.0),
        "identity_error": np.full(z.shape, identity_error),
    }
    for name, value in exact.items():
        moved = width * z + shift if name == side else z
        columns |= {f"{name}_sampled": value + 0.2 * moved, f"{name}_error": np.full(z.shape, 0.2)}
    return told("decomposition-6-3-0.8", DecompositionColumns(**columns))


def told_counts(mean):
    counts = np.tile([mean - 0.1, mean, mean + 0.1], (RUNS, 1)).astype(float)
    return told("episodes-100-0.9", EpisodeColumns(counts))


def verdicts(*records):
    judged = claims("lemmas", {found.case.name: found for found in records})
    return {claim.identifier.removeprefix("lemmas/"): str(claim.verdict) for claim in judged}


def contradicted(*records):
    return {name for name, verdict in verdicts(*records).items() if verdict == "contradicted"}


def test_sound_records_are_reproduced():
    sound = verdicts(told_deviations(), told_sums(width=0.98), told_counts(10.9))
    assert set(sound) == {
        *("deviation", "tail", "half", "identity", "simulated", "simulated-spread", "episodes"),
    }
    # 1,000 numbers determine the share beyond 1.96 to ±0.02 and no better
    assert {name for name, verdict in sound.items() if verdict != "reproduced"} == {
        "simulated-spread"
    }
    assert not contradicted(told_sums(width=0.98))


def test_unknown_sums_are_not_within_chance():
    sums = told_sums(width=0.98)
    sums.columns.left_error[3, 0] = math.nan
    comparisons = next(
        c for c in claims("lemmas", {"d": sums}) if c.identifier.endswith("spread")
    ).comparisons
    assert [str(c.estimate) == "unknown" for c in comparisons] == [
        True,
        False,
        False,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"deviation": 1.01}, {"deviation", "half"}),
        ({"deviation": -1.01}, {"deviation", "half"}),
        ({"deviation": 0.6}, {"half"}),
        ({"bound_above": 0.39}, {"deviation", "half"}),
        ({"deviation": math.nan}, {"deviation"}),
        ({"tail_above": 0.31}, {"tail"}),
        ({"tail_below": 0.31}, {"tail"}),
        ({"tail_bound": 0.09}, {"tail"}),
    ],
)
def test_one_violated_bound_is_noticed(changes, broken):
    assert broken <= contradicted(told_deviations(**changes)) <= broken | {"half"}
    content = summary(EXPERIMENT, {"deviation-extreme": told_deviations(tail_below=0.31)})
    assert content["deviation"]["deviation-extreme"]["exceptions"]["tail"] == {
        "upper tail": 0,
        "lower tail": 1,
    }


@pytest.mark.parametrize("side", ["left", "right", "gap"])
def test_sums_that_disagree_are_noticed(side):
    assert contradicted(told_sums(side=side, shift=0.4)) == {"simulated"}
    assert contradicted(told_sums(side=side, shift=-0.4)) == {"simulated"}
    assert contradicted(told_sums(side=side, width=1.4)) == {"simulated-spread"}
    assert contradicted(told_sums(side=side, width=0.5)) == {"simulated-spread"}


def test_sides_that_differ_are_noticed():
    # relative to (1 − 0.8)⁻²
    assert contradicted(told_sums(identity_error=2e-8)) == set()
    assert contradicted(told_sums(identity_error=3e-8)) == {"identity"}


def test_wrong_counts_are_noticed():
    assert verdicts(told_counts(10.9)) == {"episodes": "reproduced"}
    assert verdicts(told_counts(11.2)) == {"episodes": "contradicted"}
    assert verdicts(told_counts(10.6)) == {"episodes": "contradicted"}


def test_ratios():
    found = told_deviations(deviation=-0.25, bound_below=0.5, tail_below=0.24)
    assert deviation_ratio(found)[-1] == 0.5
    assert deviation_ratio(found)[0] == 0.4
    assert tail_ratio(found)[-1] == pytest.approx(0.8)
    shifted = standardised({"one": told_sums(shift=2.0, side="right")}, "right", robust=True)
    assert shifted.shape == (RUNS,)
    assert shifted.mean() == pytest.approx(2.0)


# --- pictures -------------------------------------------------------------------------------------


def test_the_figures_show_the_numbers(stored):
    experiment, _, records = stored
    figure = draw(experiment, records)["lemmas-deviation"]
    assert figure.get_suptitle().startswith("None of 864 quantiles")
    assert [axes.get_title() for axes in figure.axes] == [
        f"α = {a}" for a in ("0.9", "0.99", "0.9999", "0.1", "0.01", "0.0001")
    ]
    lowest = figure.axes[5]
    columns = {
        name: column.reshape(-1, 9)[:SHOWN_ROWS]
        for name, column in records["deviation-extreme"].columns.arrays().items()
    }
    points = next(
        line for line in lowest.get_lines() if line.get_label() == "values at 0 and R only"
    )
    np.testing.assert_allclose(points.get_xdata(), columns["total_concentration"][:, 0])
    np.testing.assert_allclose(
        points.get_ydata(), -columns["deviation"][:, 0] / columns["value_range"][:, 0]
    )
    bound = next(line for line in lowest.get_lines() if line.get_label() == "bound of the lemma")
    np.testing.assert_allclose(bound.get_ydata(), np.sqrt(2 * math.log(1e4) / bound.get_xdata()))


def test_the_title_counts_exceptions():
    for changes, said in (({}, "None of 9,000"), ({"deviation": 1.01}, "1 of 9,000")):
        figures = draw(EXPERIMENT, {"deviation-extreme": told_deviations(**changes)})
        assert figures["lemmas-deviation"].get_suptitle().startswith(f"{said} quantiles")


def test_no_standardised_sum_is_out_of_sight():
    records = {"one": told_sums(shift=9.0, side="right")}
    figure = draw(EXPERIMENT, records)["lemmas-decomposition"]
    shown = figure.axes[1].get_lines()[0].get_ydata()
    low, high = figure.axes[1].get_ylim()
    z = stats.norm.ppf((np.arange(RUNS) + 0.5) / RUNS) + 9
    assert (shown.min(), shown.max()) == pytest.approx((z.min(), z.max()))
    assert low < shown.min() < shown.max() < high


# --- bad parameters -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("deviation-uniform", {"values": "even"}, "unknown values 'even'; valid: uniform, extreme"),
        ("deviation-uniform", {"rows": 0}, "rows must be a positive integer; got 0"),
        ("decomposition-3-2-0.5", {"discount": 0.0}, "discount must lie strictly between 0 and 1"),
        ("decomposition-3-2-0.5", {"discount": 1.0}, "discount must lie strictly between 0 and 1"),
        ("decomposition-3-2-0.5", {"n_states": 0}, "n_states must be a positive integer; got 0"),
        (
            "decomposition-3-2-0.5",
            {"n_actions": 1.5},
            r"n_actions must be a positive integer; got 1\.5",
        ),
        ("decomposition-3-2-0.5", {"worlds": 0}, "worlds must be a positive integer; got 0"),
        ("decomposition-3-2-0.5", {"samples": 0}, "samples must be a positive integer; got 0"),
        (
            "decomposition-3-2-0.5",
            {"samples": 1},
            "samples must be large enough for pseudo-episodes to differ; got 1",
        ),
        (
            "decomposition-3-2-0.5",
            {"discount": 1e-9},
            "samples must be large enough for pseudo-episodes to differ; got 200",
        ),
        ("episodes-100-0.9", {"steps": 0}, "steps must be a positive integer; got 0"),
        ("episodes-100-0.9", {"discount": 1.0}, r"discount must lie in \[0, 1\)"),
        ("episodes-100-0.9", {"repetitions": 0}, "repetitions must be a positive integer; got 0"),
    ],
)
def test_bad_parameters_are_refused(name, changes, message):
    case = tiny().case(name)
    with pytest.raises(InvalidInputError, match=message):
        execute(replace(case, parameters={**case.parameters, **changes}), 1, 0)
