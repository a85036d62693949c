"""The BBRL study: worlds, priors and yardsticks, scores, and its verdicts."""

from dataclasses import replace

import numpy as np
import pytest

import brmdp
from brmdp.report.claims import Verdict
from brmdp.runs import Experiment, execute
from brmdp.runs.catalogue import make_agent, make_setting
from brmdp.studies.bbrl import STUDIES
from brmdp.studies.bbrl.analysis import (
    FIRST,
    OURS,
    REFERENCES,
    SCORE,
    analyse,
    analyse_tuning,
    table,
)
from brmdp.studies.bbrl.experiment import (
    CHOSEN,
    DISCOUNT,
    EXPERIMENT,
    EXPERIMENTS,
    METHODS,
    TUNING,
)

pytestmark = pytest.mark.long

RUNS, STEPS = 3, 12


def tiny():
    small = EXPERIMENT.adjusted(runs=RUNS, steps=STEPS)
    return Experiment(
        "bbrl",
        small.title,
        tuple(
            replace(case, agent_parameters={**case.agent_parameters, "simulations": 20})
            if case.agent == "bamcp"
            else case
            for case in small.cases
            if case.name.startswith(("gc-", "gdl-inaccurate"))
        ),
        RUNS,
    )


def scored(records, scores):
    """The same records with these scores: all is paid at the first step."""
    reward = np.zeros((len(scores), STEPS))
    reward[:, 0] = scores
    return replace(records, reward=reward, run=np.arange(len(scores)), seconds=np.ones(len(scores)))


def test_every_method_has_every_setting_and_settings_come_from_the_lists():
    assert set(CHOSEN) == {method.name for method in METHODS if method.settings}
    for method in METHODS:
        if method.settings:
            assert len(CHOSEN[method.name]) == len(EXPERIMENTS)
            assert set(CHOSEN[method.name]) <= set(method.settings)
    assert set(FIRST) == set(EXPERIMENTS)
    assert set(FIRST.values()) <= set(OURS)
    names = {case.name for case in EXPERIMENT.cases}
    assert set(REFERENCES) <= names


def test_agents_meet_the_same_worlds_whatever_their_prior():
    kernels = []
    for name in ("gc-accurate/beb", "gc-inaccurate/level", "gc-accurate/optimal"):
        from brmdp.runs.streams import run_seed, streams_of

        setting = make_setting(EXPERIMENT.case(name), streams_of(run_seed(2026, 1)).world)
        kernels.append(setting.world.truth.kernel())
    np.testing.assert_array_equal(kernels[0], kernels[1])
    np.testing.assert_array_equal(kernels[0], kernels[2])


def test_the_optimal_agent_follows_the_optimal_policy_of_its_world():
    case = EXPERIMENT.case("grid-accurate/optimal")
    setting = make_setting(case, 5)
    agent = make_agent(case, setting, 1)
    best = brmdp.solve(setting.world.truth)
    values = brmdp.evaluate_in_mdp(setting.world.truth, agent.policy)
    np.testing.assert_allclose(values, best.values, rtol=1e-7)


def test_random_takes_every_action_and_nobody_beats_the_optimal_agent_on_average():
    found = {
        name: [execute(EXPERIMENT.case(f"gdl-accurate/{name}"), 1, run) for run in range(12)]
        for name in ("random", "optimal", "greedy")
    }
    actions = np.concatenate([one.history.action for one in found["random"]])
    assert np.bincount(actions).min() > 0.45 * actions.size
    weights = DISCOUNT ** np.arange(250)
    means = {
        name: np.mean([one.history.reward @ weights for one in runs])
        for name, runs in found.items()
    }
    assert means["optimal"] > means["greedy"]
    assert means["optimal"] > means["random"]


def test_the_score_is_the_discounted_return(stored):
    _, _, records = stored
    found = records["gc-accurate/greedy"]
    by_hand = [sum(DISCOUNT**t * r for t, r in enumerate(row)) for row in found.reward]
    np.testing.assert_allclose(SCORE.samples(found), by_hand)


def test_claims_are_judged_by_paired_differences(stored):
    experiment, _, records = stored
    some = records["gc-accurate/greedy"]
    rng = np.random.default_rng(1)
    luck = 30.0 * rng.random(40)
    made = {
        f"{one}/{method.name}": scored(some, luck + rng.normal(0.0, 0.5, 40))
        for one in EXPERIMENTS
        for method in METHODS
    }
    for one in EXPERIMENTS:
        made[f"{one}/{FIRST[one]}"] = scored(some, luck + 3.0 + rng.normal(0.0, 0.5, 40))
        made[f"{one}/aq-brmdp"] = scored(some, luck - 3.0 + rng.normal(0.0, 0.5, 40))
    judged = {claim.identifier: claim for claim in analyse(experiment, made).claims}
    assert judged["bbrl/ahead"].verdict is Verdict.REPRODUCED
    assert judged["bbrl/paper-schedule"].verdict is Verdict.REPRODUCED
    assert judged["bbrl/plan-below-the-tree"].verdict is Verdict.NOT_RESOLVED
    worse = {**made, f"gc-accurate/{FIRST['gc-accurate']}": scored(some, luck - 3.0)}
    judged = {claim.identifier: claim for claim in analyse(experiment, worse).claims}
    assert judged["bbrl/ahead"].verdict is Verdict.CONTRADICTED


def test_agreement_with_the_benchmarks_own_program(stored):
    experiment, _, records = stored
    some = records["gc-accurate/greedy"]
    spread = np.linspace(-0.01, 0.01, 30)
    made = {case: scored(some, reference.mean + spread) for case, reference in REFERENCES.items()}
    first = analyse(experiment, made).claims[0]
    assert first.identifier == "bbrl/agreement"
    assert first.verdict is Verdict.REPRODUCED
    judged = {one.quantity.partition(":")[0] for one in first.comparisons}
    assert "gc-accurate/beb" in judged
    assert "gdl-accurate/random" not in judged  # its interval is not known
    made["gc-accurate/random"] = scored(some, 40.0 + spread)
    assert analyse(experiment, made).claims[0].verdict is Verdict.CONTRADICTED


def test_the_table_has_the_best_mean_in_bold(stored):
    _, _, records = stored
    some = records["gc-accurate/greedy"]
    made = {
        "gc-accurate/optimal": scored(some, [9.0, 9.5, 10.0]),
        "gc-accurate/greedy": scored(some, [1.0, 2.0, 3.0]),
        "gc-accurate/beb": scored(some, [2.0, 3.0, 5.0]),
    }
    rows = {row[0]: row for row in table(made).rows}
    assert rows["gc-accurate, BEB"][2].startswith("**3.333")
    assert rows["gc-accurate, BEB"][3].startswith("1.333")
    assert rows["gc-accurate, BEB"][5] == "42.3 ± 2"
    assert not rows["gc-accurate, Optimal, kernel known"][2].startswith("**")


def test_tuning_races_the_settings_in_worlds_of_the_prior():
    name = "gdl-inaccurate/level"
    case = TUNING.case(name)
    small = replace(case, parameters={**case.parameters, "worlds": 4, "steps": 10})
    made = execute(small, 1, 0).columns
    assert made.setting.tolist() == [0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert made.chosen.sum() == 1
    assert made.worlds.tolist() == [4] * 6
    assert made.value[made.chosen][0] == made.value.max()


def test_the_report_of_tuning_compares_with_the_settings_used(tmp_path):
    from brmdp.runs import run_experiment

    cases = tuple(
        replace(case, parameters={**case.parameters, "worlds": 4, "steps": 8})
        for case in TUNING.cases
        if case.name in ("gc-accurate/level", "gdl-accurate/beb")
    )
    small = Experiment("bbrl-tuning", "Small", cases, runs=1)
    store = run_experiment(small, tmp_path, workers=1)
    records = {case.name: store.records(case.name) for case in cases}
    findings = analyse_tuning(small, records)
    assert len(findings.table.rows) == 6 + 7
    assert sum(row[1] == "**chosen**" for row in findings.table.rows) == 2
    (used,) = findings.claims
    assert used.verdict is Verdict.REPRODUCED
    assert len(used.comparisons) == 3
    races = records["gc-accurate/level"].columns
    at = races.setting[0] == CHOSEN["level"][0]
    races.low[0][at] = 0.1
    assert analyse_tuning(small, records).claims[0].verdict is Verdict.CONTRADICTED
    assert STUDIES[1].draw(records).keys() == {"bbrl-tuning"}
