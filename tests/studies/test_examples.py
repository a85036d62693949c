"""The study ``examples`` in small: problems and numbers recomputed, claims and schematics."""

from dataclasses import replace

import numpy as np
import pytest

from brmdp import theory
from brmdp.agents import AdaptiveLevel
from brmdp.errors import InvalidInputError
from brmdp.runs import Computation, Replications, execute, run_experiment
from brmdp.studies.examples.analysis import claims, escape_steps, summary, table
from brmdp.studies.examples.experiment import EXPERIMENT, ProbingColumns
from brmdp.studies.examples.figures import draw

pytestmark = pytest.mark.long

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


def changed(found, **columns):
    """The same replications with other columns."""
    return replace(found, columns=replace(found.columns, **columns))


def test_numbers(stored):
    experiment, _, records = stored
    found = summary(experiment, records)
    assert found["propositions"]["proposition-2"]["problems"] == 18
    for proposition in found["propositions"].values():
        assert set(proposition["exceptions"].values()) == {0}
    # the fixed level stays: T(γ² − c)/(1 − γ)
    fixed = found["agents"]["brmdp-0.2"]
    assert fixed["true_regret"]["mean"] == pytest.approx(90 * (0.81 - 0.5) / 0.1)
    assert fixed["escaped"]["mean"] == 0.0
    assert found["agents"]["every-step"]["escape_step"]["mean"] == (
        theory.adaptive_escape_episode(
            theory.probing_example(0.7, 0.5, 0.9), AdaptiveLevel(5.0, 0.2)
        )
        - 1
    )
    rows = {row[0]: row[1:] for row in table(records).rows}
    assert rows["brmdp-0.2"] == ("279.0", "–", "0.00", "0.00")
    assert rows["every-step"][1] == "35.00"


def test_workers_change_nothing(stored, workers, tmp_path):
    experiment, store, _ = stored
    assert run_experiment(experiment, tmp_path, executor=workers).digest() == store.digest()


def test_the_problems_are_those_of_the_propositions(stored):
    """Every drawn parameter set, put into the conditions by hand."""
    _, _, records = stored
    first = records["robustness"].pooled
    mu, c, loss, gamma = first.good_probability, first.safe_reward, first.loss, first.discount
    assert (mu > 0.5).all()
    assert (gamma * (1 - loss) / 2 < c).all()
    assert (c < gamma * (mu - (1 - mu) * loss)).all()
    assert (first.alpha <= 1 - mu).all()
    assert ((gamma - c) / (1 - gamma) < first.threshold).all()
    assert (first.threshold <= (c + gamma * loss) / (1 - gamma)).all()
    at_the_atom = first.alpha == 1 - mu
    assert at_the_atom.any()
    assert not at_the_atom.all()
    trap = records["trap"].columns
    stated = 12 * (trap.discount**2 - trap.safe_reward) / (1 - trap.discount)
    np.testing.assert_allclose(trap.regret, stated, rtol=1e-9)
    np.testing.assert_array_equal(trap.escape, trap.stated_escape)


def test_exposures_jump_where_the_regrets_are(stored):
    """The risky policy's regret is (c + γL)/(1 − γ) = 7.5 with probability 1 − μ = 0.3.

    The safe one's is (γ − c)/(1 − γ) = 6 with probability μ = 0.7.
    """
    _, _, records = stored
    found = records["exposure"].pooled
    np.testing.assert_allclose(
        found.mean_exposure, np.where(found.threshold <= 7.5 + 1e-9, 0.3, 0.0)
    )
    np.testing.assert_allclose(
        found.quantile_exposure, np.where(found.threshold <= 6.0 + 1e-9, 0.7, 0.0)
    )


def test_exceptions_are_counted(stored):
    experiment, _, records = stored
    propositions = {name: records[name] for name in ("robustness", "trap")}

    def judged(some):
        found = summary(experiment, some)["propositions"]
        return {claim.identifier: str(claim.verdict) for claim in claims("examples", some)}, found

    sound, _ = judged(propositions)
    assert set(sound.values()) == {"reproduced"}
    assert len(sound) == 4
    for case, column, value, claim in (
        ("robustness", "quantile_safe", False, "proposition-2"),
        ("robustness", "mean_exposure", 0.01, "proposition-2"),
        ("trap", "regret", 1e-3, "proposition-3"),
        ("trap", "left_start", True, "proposition-3"),
        ("trap", "learnt", True, "proposition-3"),
        ("robustness", "risky_above_the_atom", False, "conditions"),
        ("trap", "escape", 0, "escape"),
    ):
        array = getattr(propositions[case].columns, column).copy()
        array[0, 0] = value
        broken, found = judged(
            {**propositions, case: changed(propositions[case], **{column: array})}
        )
        assert {name for name, verdict in broken.items() if verdict != "reproduced"} == {
            f"examples/{claim}"
        }
        assert broken[f"examples/{claim}"] == "contradicted"
        assert sum(found[claim]["exceptions"].values()) == 1


def test_what_is_not_known_is_an_exception(stored):
    _, _, records = stored
    unknown = records["robustness"].columns.mean_risky.astype(float)
    unknown[0, 0] = np.nan
    some = {**records, "robustness": changed(records["robustness"], mean_risky=unknown)}
    found = {claim.identifier: str(claim.verdict) for claim in claims("examples", some)}
    assert found["examples/proposition-2"] == "contradicted"


def test_escape_steps():
    case = Computation("a", EXPERIMENT.case("every-step").program)
    columns = ProbingColumns(
        state=np.array([[0, 0, 1], [0, 0, 0], [0, 1, 3]]),
        action=np.array([[0, 1, 2], [0, 0, 0], [1, 2, 0]]),
        regret=np.zeros((3, 3)),
    )
    found = Replications(case, np.arange(3), columns, np.ones(3))
    assert escape_steps(found).tolist() == [1, 3, 0]


def test_unknown_restarts_are_refused():
    case = EXPERIMENT.case("every-step")
    wrong = replace(case, parameters={**case.parameters, "restart": "never"})
    with pytest.raises(InvalidInputError, match="unknown restart 'never'"):
        execute(wrong, 1, 0)


def test_schematics_say_what_the_worlds_are(stored):
    experiment, _, records = stored
    figures = draw(experiment, {name: records[name] for name in ("exposure", "every-step")})
    (axes,) = figures["examples-schematic-robustness"].axes
    assert {text.get_text() for text in axes.texts} == {
        *("$s_0$", "$g$", "$b$", "safe: pays 0.3", "risky: pays 0"),
        *("pays 1 for ever", "pays −0.5 for ever"),
    }
    (axes,) = figures["examples-schematic-probing"].axes
    texts = [text.get_text() for text in axes.texts]
    assert texts.count("safe: pays 0.5") == 3
    assert texts.count("exploit: pays 0") == 2
    # safe loops at three states, two absorbing ones, and both kernels' arrows of three pairs
    arrows = [patch for patch in axes.patches if hasattr(patch, "set_arrowstyle")]
    assert len(arrows) == 5 + 6
    # exploiting at y_G under the bad kernel and at y_B under the good one cannot happen
    assert sum(patch.get_alpha() is not None for patch in arrows) == 2
