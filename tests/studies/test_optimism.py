"""A small version of the study ``optimism``: its numbers recomputed, its claims and picture."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from brmdp import theory
from brmdp.errors import InvalidInputError
from brmdp.runs import Replications, execute, run_experiment
from brmdp.studies.optimism import experiment as experiment_module
from brmdp.studies.optimism.analysis import by_world, claims, informative, summary
from brmdp.studies.optimism.experiment import EXPERIMENT, OptimismColumns, steps_for
from brmdp.studies.optimism.figures import draw

pytestmark = pytest.mark.long

FEW = {"n_states": 2, "episodes": 6, "worlds": 2, "discount": 0.6}


def tiny(runs=3):
    cases = [replace(case, parameters={**case.parameters, **FEW}) for case in EXPERIMENT.cases]
    return replace(EXPERIMENT, cases=tuple(cases), runs=runs)


def test_a_run_is_several_worlds_of_the_theory():
    case = tiny().cases[1]
    columns = execute(case, 7, 1).columns
    streams = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(1,))).spawn(2)
    steps = steps_for(6, 0.6)
    for world, stream in enumerate(streams):
        reports = theory.replicate_optimism(
            2, 2, steps, delta=case.parameters["delta"], discount=0.6, rng=stream
        )
        part = slice(6 * world, 6 * world + 6)
        for name in (
            "episode",
            "event",
            "optimistic",
            "robust_optimistic",
            "stated_probability",
            "union_probability",
            "event_probability",
        ):
            found = getattr(columns, name)[part].tolist()
            assert found == [getattr(report, name) for report in reports[:6]]
        assert set(columns.episodes_begun[part]) == {len(reports)}


def test_the_summary_recomputed(stored):
    experiment, _, records = stored
    found = summary(experiment, records)["cases"]["delta-0.1"]
    columns = records["delta-0.1"].columns
    assert found["worlds"] == 6
    for k in range(6):
        happened = [columns.event[run, 6 * world + k] for run in range(3) for world in range(2)]
        assert found["event"]["mean"][k] == pytest.approx(np.mean(happened))
        assert found["stated_probability"][k] == pytest.approx(
            1 - 0.1 * 4 * math.log(2 * (k + 1)) / math.sqrt(k + 1)
        )
    assert found["expected_episodes"] == pytest.approx(1 + (steps_for(6, 0.6) - 1) * 0.4)
    assert found["first_informative_episode"] == 1


def test_workers_change_nothing(stored, workers, tmp_path):
    experiment, store, _ = stored
    assert run_experiment(experiment, tmp_path, executor=workers).digest() == store.digest()


def told(delta, event, *, robust=1.0, optimistic=1.0, begun=None, product=0.7):
    """Made-up replications: 400 runs of two worlds; events happen in a share of the runs."""
    case = replace(tiny().cases[0], parameters={**tiny().cases[0].parameters, "delta": delta})
    shape = (400, 12)
    k = np.tile(np.arange(1, 7), 2) * np.ones((400, 1))
    happened = (np.arange(400) < 400 * event)[:, None] * np.ones(12)
    counted = theory.expected_episodes(steps_for(6, 0.6), 0.6) if begun is None else begun
    columns = OptimismColumns(
        episode=k,
        event=happened,
        optimistic=np.full(shape, optimistic),
        robust_optimistic=np.full(shape, robust),
        stated_probability=1 - 4 * delta * np.log(2 * k) / np.sqrt(k),
        union_probability=np.full(shape, 0.5 * product),
        event_probability=np.full(shape, product),
        episodes_begun=np.full(shape, counted) + 0.1 * (-1.0) ** np.arange(400)[:, None],
    )
    return Replications(case, np.arange(400), columns, np.ones(400))


def verdicts(found):
    judged = claims("optimism", {"one": found})
    return {claim.identifier.removeprefix("optimism/"): str(claim.verdict) for claim in judged}


def test_claims_can_fail():
    """Stated: 0.584 to 0.757 at δ = 0.1, and 0.7 is the product."""
    assert set(verdicts(told(0.1, 0.7)).values()) == {"reproduced"}
    assert verdicts(told(0.1, 0.3))["stated-probability"] == "contradicted"
    assert verdicts(told(0.1, 0.3))["product"] == "contradicted"
    assert verdicts(told(0.1, 0.9))["product"] == "contradicted"
    assert verdicts(told(0.1, 0.7, robust=0.0))["both-benchmarks"] == "contradicted"
    assert verdicts(told(0.1, 0.7, optimistic=0.0))["both-benchmarks"] == "contradicted"
    assert verdicts(told(0.1, 0.7, begun=3.0))["episodes"] == "contradicted"
    assert "stated-probability" not in verdicts(told(5.0, 0.7))


def test_unknown_plans_are_exceptions():
    """A plan of unknown optimism counts against the lemma."""
    assert verdicts(told(0.1, 0.7, optimistic=np.nan))["both-benchmarks"] == "contradicted"


def compared(found, claim):
    (judged,) = (
        c for c in claims("optimism", {"one": found}) if c.identifier == f"optimism/{claim}"
    )
    return judged.comparisons


def test_only_plans_in_which_the_event_held_are_counted():
    first, second = compared(told(0.1, 0.25), "both-benchmarks")
    assert (first.estimate.runs, second.estimate.runs) == (1200, 4800)
    assert (first.note, second.note) == ("in 1200 plans", "in 4800 plans")
    never, always = compared(told(0.1, 0.0, optimistic=0.0), "both-benchmarks")
    assert str(never.verdict) == "not resolved at this number of runs"
    assert never.numbers() == "unknown; claimed below 0.5; in 0 plans"
    assert json.dumps(never.as_json(), allow_nan=False)
    assert str(always.verdict) == "reproduced"


@pytest.mark.parametrize("product", [0.7, 0.1])
def test_the_product_is_judged_by_a_ratio(product):
    """Of 4,800 plans, 3,360 or 480 should have the event; half or twice as many is noticed."""
    (found,) = compared(told(5.0, 0.5, product=product), "product")
    assert float(found.estimate.mean) == pytest.approx(0.5 / product)
    # two worlds a run with the same events: the error of a binomial share of 800
    error = math.sqrt(0.25 / 799) / product
    assert float(found.estimate.standard_error) == pytest.approx(error)
    for event in (0.5 * product, min(2.0 * product, 1.0)):
        assert verdicts(told(5.0, event, product=product))["product"] == "contradicted"
    assert found.note == f"{4800 * product:.0f} events expected"


def test_few_expected_events_are_only_measured():
    (found,) = compared(told(5.0, 0.02, product=0.08), "product")
    assert str(found.verdict) == "measured"
    assert found.note == "384 events expected, too few to judge"
    assert float(found.estimate.mean) == pytest.approx(0.25)


def test_no_event_is_not_certainty():
    """If none of 800 worlds has an event, at most 1 − 0.025^{1/800} of all do, at 97.5 %."""
    (found,) = compared(told(5.0, 0.0, product=0.1), "product")
    assert float(found.estimate.low) == float(found.estimate.mean) == 0.0
    assert float(found.estimate.high) == pytest.approx((1 - 0.025 ** (1 / 800)) / 0.1)
    assert str(found.verdict) == "contradicted"
    (rare,) = compared(told(5.0, 0.0, product=0.004), "product")
    assert float(rare.estimate.high) > 1.0
    (always,) = compared(told(5.0, 1.0, product=0.9), "product")
    assert float(always.estimate.low) == pytest.approx(0.025 ** (1 / 800) / 0.9)
    assert float(always.estimate.high) == float(always.estimate.mean) == pytest.approx(1 / 0.9)


def test_lone_points_are_drawn():
    """At δ = 0.3 the lemma promises something at k = 1 alone; at δ = 0.1 a line shows all k."""

    def drawn(found):
        axes = draw(EXPERIMENT, {"one": found})["optimism"].axes[0]
        return [line.get_xydata() for line in axes.lines if line.get_marker() == "o"]

    (points,) = drawn(told(0.3, 0.7))
    np.testing.assert_allclose(points, [[1.0, 1 - 1.2 * math.log(2)]])
    (none,) = drawn(told(0.1, 0.7))
    assert none.size == 0


def test_only_informative_episodes_are_judged():
    found = told(0.3, 0.7)
    expected = [1 - 1.2 * math.log(2 * k) / math.sqrt(k) > 0 for k in range(1, 7)]
    assert informative(found).tolist() == expected
    assert 0 < sum(expected) < 6
    (comparison,) = compared(found, "stated-probability")
    stated = [1 - 1.2 * math.log(2 * k) / math.sqrt(k) for k in range(1, 7) if expected[k - 1]]
    assert float(comparison.estimate.mean) == pytest.approx(0.7 - np.mean(stated))
    assert by_world(found).event.shape == (800, 6)


def test_a_panel_without_a_promise_says_so():
    """With 4 pairs and δ = 5, 1 − 20 ln(2k)/√k is not positive before k = 53,675."""
    first = next(k for k in itertools.count(1) if 20 * math.log(2 * k) < math.sqrt(k))

    def written(found):
        axes = draw(EXPERIMENT, {"one": found})["optimism"].axes[0]
        return [text.get_text() for text in axes.texts]

    assert written(told(5.0, 0.0)) == [f"the lemma promises nothing before k = {first:,}"]
    assert written(told(0.1, 0.7)) == []


def test_too_few_pseudo_episodes_are_named(monkeypatch):
    monkeypatch.setattr(experiment_module, "steps_for", lambda episodes, discount: 2)
    with pytest.raises(
        InvalidInputError, match=r"episodes must all begin within 2 steps; in one .* only \d of 6"
    ):
        execute(tiny().cases[0], 1, 0)


def test_steps_suffice():
    """The chance of too few pseudo-episodes, by the binomial distribution."""
    from scipy import stats

    for episodes, discount, chance in ((40, 0.8, 1e-6), (6, 0.6, 1e-4), (60, 0.9, 1e-6)):
        steps = steps_for(episodes, discount)
        # the first pseudo-episode begins at once, each later step begins one with probability 1 − γ
        assert stats.binom.cdf(episodes - 2, steps - 1, 1 - discount) < chance
