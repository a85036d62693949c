"""The study of unknown rewards: its cases, how regret grows, and its verdicts."""

from dataclasses import replace

import numpy as np
import pytest

from brmdp.report.claims import Verdict
from brmdp.report.statistics import LATE_SHARE
from brmdp.studies.unknown_rewards import STUDIES
from brmdp.studies.unknown_rewards.analysis import CLAIMS, analyse
from brmdp.studies.unknown_rewards.experiment import ADAPTIVE, EXPERIMENT, SAMPLING

pytestmark = pytest.mark.long

RUNS, STEPS = 4, 30


def tiny():
    return EXPERIMENT.adjusted(runs=RUNS, steps=STEPS)


def growing(records, power, size=1.0):
    """The same records with regret of about size·T^power in every run, the powers a bit apart."""
    seed = len(records.case.name)
    powers = power + np.random.default_rng(seed).uniform(-1e-3, 1e-3, (RUNS, 1))
    return replace(records, true_regret=np.diff(size * np.arange(STEPS + 1.0) ** powers, axis=1))


def judged(records):
    return {claim.identifier.partition("/")[2]: claim for claim in analyse(tiny(), records).claims}


def test_regret_of_the_bandit_is_the_mean_lost_by_the_arm_pulled(stored):
    _, _, records = stored
    arms = np.array(EXPERIMENT.cases[0].environment_parameters["arms"])
    for name, found in records.items():
        if name.startswith("bandit/"):
            lost = arms.max() - arms[found.action]
            np.testing.assert_allclose(found.true_regret, lost, atol=1e-12)
            assert (found.episode == np.arange(1, STEPS + 1)).all()  # a plan for every step
        assert set(np.unique(found.reward)) <= {0.0, 1.0}


def test_agents_share_their_seeds_and_learn_the_rewards(stored):
    experiment, store, records = stored
    assert len({case.environment_key() for case in experiment.cases}) == 2
    for name in (f"bandit/{ADAPTIVE}", f"riverswim/{SAMPLING}"):
        belief = store.belief_after(name, 2)
        found = records[name]
        assert belief.counts().sum() == STEPS
        assert belief.concentration("flat").sum() == pytest.approx(
            STEPS + belief.pattern.n_transitions
        )
        paid = belief.concentration("flat")[belief.outcome_rewards == 1.0] - 1.0
        assert paid.sum() == found.reward[2].sum()


def test_the_late_share_tells_linear_growth_from_others(stored):
    _, _, records = stored
    some = records[f"bandit/{ADAPTIVE}"]
    for power, share in ((1.0, 0.5), (0.5, 1 - 0.5**0.5), (2.0, 0.75)):
        samples = LATE_SHARE.samples(growing(some, power))
        assert samples.mean() == pytest.approx(share, abs=1e-3)
    # runs without regret do not count as growth
    half = growing(some, 1.0)
    half.true_regret[: RUNS // 2] = 0.0
    assert LATE_SHARE.samples(half).mean() == pytest.approx(0.5, abs=1e-3)


def test_verdicts_follow_from_the_regrets(stored):
    _, _, records = stored
    expected = {name: growing(found, 0.5) for name, found in records.items()}
    for case in ("brmdp-0.2", "posterior-mean"):
        expected[f"bandit/{case}"] = growing(records[f"bandit/{case}"], 1.0)
    for world in ("bandit", "riverswim"):
        sampling = f"{world}/{SAMPLING}"
        expected[sampling] = growing(records[sampling], 0.5, size=2.0)
    found = judged(expected)
    assert [found[name].verdict for name in found] == [
        *(Verdict.REPRODUCED,) * 3,
        Verdict.MEASURED,
    ]
    for comparison in found["not-above-sampling"].comparisons:
        assert comparison.estimate.mean == pytest.approx(0.5, abs=0.01)
    worse = dict(expected)
    worse[f"riverswim/{ADAPTIVE}"] = growing(records[f"riverswim/{ADAPTIVE}"], 0.5, size=3.0)
    worse["bandit/posterior-mean"] = growing(records["bandit/posterior-mean"], 0.3)
    worse["bandit/brmdp-0.9"] = growing(records["bandit/brmdp-0.9"], 1.0)
    found = judged(worse)
    assert {found[name].verdict for name in list(found)[:3]} == {Verdict.CONTRADICTED}


def test_few_runs_resolve_nothing_they_cannot(stored):
    _, _, records = stored
    found = judged(records)
    assert set(found) == {claim.identifier.partition("/")[2] for claim in CLAIMS}
    assert found["fixed-levels"].verdict is Verdict.MEASURED


def test_one_figure_per_world_also_if_cases_are_missing(stored):
    _, _, records = stored
    assert set(STUDIES[0].draw(records)) == {
        "unknown-rewards-bandit",
        "unknown-rewards-riverswim",
    }
    alone = {name: found for name, found in records.items() if name == f"bandit/{ADAPTIVE}"}
    assert set(STUDIES[0].draw(alone)) == {"unknown-rewards-bandit"}
