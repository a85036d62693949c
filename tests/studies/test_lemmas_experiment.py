"""The experiment ``lemmas`` end to end in small, its numbers recomputed, and its pictures."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from brmdp import theory
from brmdp.errors import InvalidInputError
from brmdp.report.writing import REPORTERS, write_report
from brmdp.runs import Replications, execute, run_experiment
from brmdp.studies.lemmas.analysis import (
    deviation_ratio,
    lemmas_claims,
    lemmas_summary,
    standardised,
    tail_ratio,
)
from brmdp.studies.lemmas.experiment import EXPERIMENT, LEVELS, decompositions, random_rows
from brmdp.studies.lemmas.figures import SHOWN_ROWS, decomposition_figure, deviation_figure
from oracles import online, theory_lemmas

FEW = {
    "quantile-deviation": {"rows": 12},
    "value-decomposition": {"worlds": 3, "samples": 200},
    "episode-count": {"steps": 30, "repetitions": 20},
}


def tiny(runs=4):
    cases = [
        replace(case, parameters={**case.parameters, **FEW[case.program]})
        for case in EXPERIMENT.cases
    ]
    return replace(EXPERIMENT, cases=tuple(cases), runs=runs)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    experiment = tiny()
    store = run_experiment(experiment, tmp_path_factory.mktemp("lemmas"), workers=1)
    return experiment, store, {case.name: store.records(case.name) for case in experiment.cases}


def stream_of(run, seed=7):
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(run,)))


# --- what a run holds -----------------------------------------------------------------------------


def test_rows_are_as_data_leave_them():
    phi, w, size = random_rows(np.random.default_rng(3), 2000, "uniform")
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
    extreme = random_rows(np.random.default_rng(3), 2000, "extreme")
    np.testing.assert_array_equal(extreme.concentration, phi)
    for row, values, largest in zip(phi, extreme.values, extreme.value_range, strict=True):
        assert set(values[row > 0]) == {0.0, largest}


def test_deviations_at_the_ends_are_those_of_beta_laws():
    """With values 0 and R, w·P/R is Beta(φ of the rows at R, φ of the others)."""
    case = tiny().case("deviation-extreme")
    columns = {
        name: column.reshape(12, len(LEVELS))
        for name, column in execute(case, 7, 1).columns.items()
    }
    phi, w, size = random_rows(stream_of(1), 12, "extreme")
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
    """Against quantiles and tails by another integral.

    Its error is absolute, and it dies slowly for light rows.
    """
    case = tiny().case("deviation-uniform")
    columns = {
        name: column.reshape(12, len(LEVELS))
        for name, column in execute(case, 7, 2).columns.items()
    }
    phi, w, size = random_rows(stream_of(2), 12, "uniform")
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
    """Both sides, with values and quantiles from second implementations.

    In the worlds that a run draws.
    """
    case = tiny().case("decomposition-3-2-0.5")
    columns = execute(case, 7, 3).columns
    for world, stream in enumerate(stream_of(3).spawn(3)):
        rewards = stream.random((3, 2, 3))
        kernel = theory.draw_mdp(stream, 3, 2, 0.5, rewards=rewards).kernel()
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
            assert columns["robust"][row] == robust
            assert columns["left"][row] == pytest.approx(left[0], abs=1e-8)
            assert columns["right"][row] == pytest.approx(right[0], abs=1e-8)
            assert columns["identity_error"][row] < 1e-8


def test_sampled_sums_and_their_errors():
    case = tiny().case("decomposition-6-3-0.8")
    columns = execute(case, 7, 0).columns
    for world, stream in enumerate(stream_of(0).spawn(3)):
        for robust, lemma in enumerate(decompositions(stream, 6, 3, 0.8)):
            left, right = theory.sample_decomposition(lemma, 0, 200, stream)
            row = 2 * world + robust
            for name, sums in (("left", left), ("right", right), ("gap", left - right)):
                assert columns[f"{name}_sampled"][row] == pytest.approx(sum(sums) / 200)
                error = math.sqrt(sum((sums - sum(sums) / 200) ** 2) / 199 / 200)
                assert columns[f"{name}_error"][row] == pytest.approx(error)


def test_episodes_are_those_of_the_restart_rule():
    case = tiny().case("episodes-100-0.9")
    rng = stream_of(1)
    assert execute(case, 7, 1).columns["episodes"].tolist() == [
        theory.count_episodes(rng, 30, 0.9) for _ in range(20)
    ]


def test_the_widest_laws_stay_within_half_of_the_bounds():
    """Spreading w·P to the ends of [0, R] gives a Beta law of the same mean, which is wider.

    On a grid of these.
    """
    total = 10.0 ** np.linspace(-1, 6, 29)[:, None, None]
    share = np.array([1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999])[:, None]
    tail = 10.0 ** np.linspace(-12, -0.05, 40)
    law = stats.beta(total * share, total * (1 - share))
    bound = np.sqrt(2 * np.log(1 / tail) / total)
    ratios = np.maximum(law.isf(tail) - share, share - law.ppf(tail)) / bound
    assert 0.46 < ratios.max() < 0.5


# --- what is said of them -------------------------------------------------------------------------


def test_report(stored, tmp_path):
    experiment, _, records = stored
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = write_report(experiment, records, tmp_path)
    assert {path.name for path in report.files} == {
        *("summary.json", "summary.md", "claims.json", "claims.md"),
        *(
            f"lemmas-{name}.{kind}"
            for name in ("deviation", "decomposition")
            for kind in ("png", "pdf")
        ),
    }
    assert max(map(len, report.text.splitlines())) <= 100
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert set(summary) == {
        *("experiment", "title", "runs", "parameters"),
        *("deviation", "decomposition", "standardised", "episodes", "seconds_per_run"),
    }
    columns = {
        name: column.reshape(-1) for name, column in records["deviation-extreme"].columns.items()
    }
    found = summary["deviation"]["deviation-extreme"]
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
    assert summary["decomposition"]["decomposition-6-2-0.95"]["worlds"] == 12
    z = []
    for name, found in records.items():
        if name.startswith("decomposition"):
            parts = {key: column.reshape(-1) for key, column in found.columns.items()}
            z += [
                (parts["right_sampled"][i] - parts["right"][i]) / parts["right_error"][i]
                for i in range(parts["right"].size)
                if parts["robust"][i]
            ]
    said = summary["standardised"]["against the robust value: right side − its exact value"]
    assert said["mean"]["mean"] == pytest.approx(np.mean(z))
    assert said["beyond"]["mean"] == pytest.approx(
        np.mean([abs(x) > stats.norm.isf(0.025) for x in z])
    )
    assert summary["episodes"]["episodes-10-0.5"]["expected"] == pytest.approx(1 + 29 * 0.5)


def test_workers_change_nothing(stored, tmp_path):
    experiment, store, _ = stored
    assert run_experiment(experiment, tmp_path, workers=2).digest() == store.digest()


@pytest.mark.parametrize(
    ("part", "claims"),
    [
        ("deviation", {"deviation", "tail", "half"}),
        ("decomposition", {"identity", "simulated", "simulated-spread"}),
        ("episodes", {"episodes"}),
    ],
)
def test_a_single_run_of_some_cases_is_reported(part, claims):
    records = {}
    for case in tiny().cases:
        if case.name.startswith(part):
            columns = {name: column[None] for name, column in execute(case, 1, 0).columns.items()}
            records[case.name] = Replications(case, np.arange(1), columns, np.ones(1))
    content = REPORTERS["lemmas"](tiny(), records)
    assert set(content.figures) == {f"lemmas-{part}"} - {"lemmas-episodes"}
    assert {claim.identifier for claim in content.claims} == {f"lemmas/{name}" for name in claims}
    json.dumps(content.summary, allow_nan=False)
    assert content.table.as_text().startswith("values, φ₀")


# --- claims can fail ------------------------------------------------------------------------------

RUNS = 1000


def told(case, **columns):
    """Made-up replications of a case of the experiment."""
    shaped = {name: np.asarray(column) for name, column in columns.items()}
    return Replications(case, np.arange(RUNS), shaped, np.ones(RUNS))


def told_deviations(**changes):
    """Nine levels of one row a run, all at two fifths of what is allowed.

    But for ``changes`` of the last entry.
    """
    level = np.tile(LEVELS, (RUNS, 1))
    sign = np.where(level < 0.5, -1.0, 1.0)
    columns = {
        "total_concentration": np.full(level.shape, 50.0),
        "value_range": np.ones(level.shape),
        "level": level,
        "deviation": 0.4 * sign,
        "bound_above": np.ones(level.shape),
        "bound_below": np.ones(level.shape),
        "tail_above": np.full(level.shape, 0.1),
        "tail_below": np.full(level.shape, 0.1),
        "tail_bound": np.full(level.shape, 0.3),
    }
    for name, value in changes.items():
        columns[name][-1, -1] = value
    return told(EXPERIMENT.case("deviation-extreme"), **columns)


def told_sums(*, shift=0.0, width=1.0, side="left", identity_error=1e-12):
    """Sums of both lemmas in a world a run, standardised to a perfect normal sample.

    Shifted and stretched on one side.
    """
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
    return told(EXPERIMENT.case("decomposition-6-3-0.8"), **columns)


def told_counts(mean):
    return told(
        EXPERIMENT.case("episodes-100-0.9"),
        episodes=np.tile([mean - 0.1, mean, mean + 0.1], (RUNS, 1)).astype(float),
    )


def verdicts(*records):
    claims = lemmas_claims(EXPERIMENT, {found.case.name: found for found in records})
    return {claim.identifier.removeprefix("lemmas/"): str(claim.verdict) for claim in claims}


def contradicted(*records):
    return {name for name, verdict in verdicts(*records).items() if verdict == "contradicted"}


def test_sound_records_are_reproduced():
    sound = verdicts(told_deviations(), told_sums(width=0.98), told_counts(10.9))
    assert set(sound) == {
        *("deviation", "tail", "half", "identity", "simulated", "simulated-spread", "episodes"),
    }
    # 1000 numbers bound the share beyond 1.96 to ±0.02 and no better
    assert {name for name, verdict in sound.items() if verdict != "reproduced"} == {
        "simulated-spread"
    }
    assert not contradicted(told_sums(width=0.98))


def test_unknown_sums_are_not_within_chance():
    sums = told_sums(width=0.98)
    sums.columns["left_error"][3, 0] = math.nan
    comparisons = next(
        c for c in lemmas_claims(EXPERIMENT, {"d": sums}) if c.identifier.endswith("spread")
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
    summary = lemmas_summary(EXPERIMENT, {"deviation-extreme": told_deviations(tail_below=0.31)})
    assert summary["deviation"]["deviation-extreme"]["exceptions"]["tail"] == {
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
    _, _, records = stored
    deviations = {name: found for name, found in records.items() if name.startswith("deviation")}
    figure = deviation_figure(deviations)
    assert [axes.get_title() for axes in figure.axes] == [
        f"α = {a}" for a in ("0.9", "0.99", "0.9999", "0.1", "0.01", "0.0001")
    ]
    lowest = figure.axes[5]
    columns = {
        name: column.reshape(-1, 9)[:SHOWN_ROWS]
        for name, column in deviations["deviation-extreme"].columns.items()
    }
    points = next(line for line in lowest.get_lines() if line.get_label() == "values at the ends")
    np.testing.assert_allclose(points.get_xdata(), columns["total_concentration"][:, 0])
    np.testing.assert_allclose(
        points.get_ydata(), -columns["deviation"][:, 0] / columns["value_range"][:, 0]
    )
    bound = next(line for line in lowest.get_lines() if line.get_label() == "bound of the lemma")
    np.testing.assert_allclose(bound.get_ydata(), np.sqrt(2 * math.log(1e4) / bound.get_xdata()))


def test_no_standardised_sum_is_out_of_sight():
    figure = decomposition_figure({"one": told_sums(shift=9.0, side="right")})
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
            "samples must be so many that pseudo-episodes differ; got 1",
        ),
        (
            "decomposition-3-2-0.5",
            {"discount": 1e-9},
            "samples must be so many that pseudo-episodes differ; got 200",
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
