"""The experiment ``examples`` end to end in small, its numbers recomputed, and its pictures."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

from brmdp import theory
from brmdp.agents import AdaptiveLevel
from brmdp.errors import InvalidInputError
from brmdp.report.writing import write_report
from brmdp.runs import Computation, Replications, execute, run_experiment
from brmdp.studies.examples.analysis import escape_steps, examples_claims, examples_summary
from brmdp.studies.examples.experiment import EXPERIMENT
from brmdp.studies.examples.figures import example_schematic

SMALL = {
    "robustness": {"problems": 6},
    "trap": {"problems": 3, "steps": 12},
    "exposure": {"points": 8},
}


def tiny(runs=3):
    cases = [
        replace(case, parameters={**case.parameters, **SMALL.get(case.name, {"steps": 90})})
        for case in EXPERIMENT.cases
    ]
    return replace(EXPERIMENT, cases=tuple(cases), runs=runs)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    experiment = tiny()
    store = run_experiment(experiment, tmp_path_factory.mktemp("examples"), workers=1)
    return experiment, store, {case.name: store.records(case.name) for case in experiment.cases}


def test_report(stored, tmp_path):
    experiment, _, records = stored
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = write_report(experiment, records, tmp_path)
    pictures = {path.stem for path in report.files if path.suffix == ".png"}
    assert pictures == {
        f"examples-{name}"
        for name in ("schematic-robustness", "schematic-probing", "exposure", "regret")
    }
    assert max(map(len, report.text.splitlines())) <= 100
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert {"experiment", "title", "runs", "parameters", "propositions", "agents"} == set(summary)
    assert summary["runs"] == 3
    assert summary["propositions"]["proposition-2"]["problems"] == 18
    for found in summary["propositions"].values():
        assert set(found["exceptions"].values()) == {0}
    # the fixed level stays: T(γ² − c)/(1 − γ)
    assert summary["agents"]["brmdp-0.2"]["true_regret"]["mean"] == pytest.approx(
        90 * (0.81 - 0.5) / 0.1
    )
    assert summary["agents"]["every-step"]["escape_step"]["mean"] == (
        theory.adaptive_escape_episode(
            theory.probing_example(0.7, 0.5, 0.9), AdaptiveLevel(5.0, 0.2)
        )
        - 1
    )


def test_workers_change_nothing(stored, tmp_path):
    experiment, store, _ = stored
    assert run_experiment(experiment, tmp_path, workers=2).digest() == store.digest()


def test_the_problems_are_those_of_the_propositions(stored):
    """Every drawn parameter set, put into the conditions by hand."""
    _, _, records = stored
    mu, c, loss, gamma, alpha, threshold = (
        records["robustness"].columns[name].ravel()
        for name in ("good_probability", "safe_reward", "loss", "discount", "alpha", "threshold")
    )
    assert (mu > 0.5).all()
    assert (gamma * (1 - loss) / 2 < c).all()
    assert (c < gamma * (mu - (1 - mu) * loss)).all()
    assert (alpha <= 1 - mu).all()
    assert ((gamma - c) / (1 - gamma) < threshold).all()
    assert (threshold <= (c + gamma * loss) / (1 - gamma)).all()
    at_the_atom = alpha == 1 - mu
    assert at_the_atom.any()
    assert not at_the_atom.all()
    trap = records["trap"].columns
    stated = 12 * (trap["discount"] ** 2 - trap["safe_reward"]) / (1 - trap["discount"])
    np.testing.assert_allclose(trap["regret"], stated, rtol=1e-9)
    np.testing.assert_array_equal(trap["escape"], trap["stated_escape"])


def test_exposures_jump_where_the_regrets_are(stored):
    """Of the risky policy.

    (c + γL)/(1 − γ) with probability 1 − μ, of the safe one (γ − c)/(1 − γ) with probability μ.
    """
    _, _, records = stored
    columns = {name: column[0] for name, column in records["exposure"].columns.items()}
    np.testing.assert_allclose(
        columns["mean_exposure"], np.where(columns["threshold"] <= 7.5 + 1e-9, 0.3, 0.0)
    )
    np.testing.assert_allclose(
        columns["quantile_exposure"], np.where(columns["threshold"] <= 6.0 + 1e-9, 0.7, 0.0)
    )


def test_exceptions_are_counted():
    def verdicts(**changes):
        records = {}
        for name in ("robustness", "trap"):
            case = tiny().case(name)
            columns = {key: column[None] for key, column in execute(case, 1, 0).columns.items()}
            for key, change in changes.items():
                if key in columns:
                    columns[key] = columns[key] + 0
                    columns[key][0, 0] = change
            records[name] = Replications(case, np.arange(1), columns, np.ones(1))
        summary = examples_summary(EXPERIMENT, records)["propositions"]
        claims = examples_claims(EXPERIMENT, records)
        return {claim.identifier: str(claim.verdict) for claim in claims}, summary

    sound, _ = verdicts()
    assert set(sound.values()) == {"reproduced"}
    for column, value, claim in (
        ("quantile_safe", 0, "proposition-2"),
        ("mean_exposure", 0.01, "proposition-2"),
        ("regret", 1e-3, "proposition-3"),
        ("left_start", 1, "proposition-3"),
        ("risky_above_the_atom", 0, "conditions"),
        ("escape", 0, "escape"),
    ):
        broken, summary = verdicts(**{column: value})
        assert {name for name, verdict in broken.items() if verdict != "reproduced"} == {
            f"examples/{claim}"
        }
        assert broken[f"examples/{claim}"] == "contradicted"
        assert sum(summary[claim]["exceptions"].values()) == 1


def test_escape_steps():
    case = Computation(
        "a", "probing-example", {"good_probability": 0.7, "safe_reward": 0.5, "discount": 0.9}
    )
    columns = {
        "state": np.array([[0, 0, 1], [0, 0, 0], [0, 1, 3]]),
        "action": np.array([[0, 1, 2], [0, 0, 0], [1, 2, 0]]),
    }
    found = Replications(case, np.arange(3), columns, np.ones(3))
    assert escape_steps(found).tolist() == [1, 3, 0]


def test_unknown_restarts_are_refused():
    case = replace(
        EXPERIMENT.case("every-step"),
        parameters={**EXPERIMENT.case("every-step").parameters, "restart": "never"},
    )
    with pytest.raises(InvalidInputError, match="unknown restart 'never'"):
        execute(case, 1, 0)


def test_schematics_say_what_the_worlds_are():
    figure = example_schematic(theory.robustness_example(0.8, 0.25, 0.75, 0.9))
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert texts == {"s₀", "g", "b", "safe, pays 0.25", "risky, pays 0", "pays 1", "pays -0.75"}
    figure = example_schematic(theory.probing_example(0.6, 0.3, 0.8))
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("safe, pays 0.3") == 3
    assert texts.count("exploit, pays 0") == 2
    # safe loops at three states, two absorbing ones, and both kernels' arrows of three pairs
    assert (
        len([patch for patch in figure.axes[0].patches if hasattr(patch, "set_arrowstyle")])
        == 5 + 6
    )


def test_what_is_not_known_is_an_exception(stored):
    experiment, _, records = stored
    robustness = records["robustness"]
    columns = {name: np.array(column, dtype=float) for name, column in robustness.columns.items()}
    columns["mean_risky"][0, 0] = np.nan
    changed = {**records, "robustness": replace(robustness, columns=columns)}
    found = {claim.identifier: str(claim.verdict) for claim in examples_claims(experiment, changed)}
    assert found["examples/proposition-2"] == "contradicted"
    assert {claim.identifier: str(claim.verdict) for claim in examples_claims(experiment, records)}[
        "examples/proposition-2"
    ] == "reproduced"
