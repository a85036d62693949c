"""The study of batch methods: its logs, its quantiles over logs, its claims on a tiny run."""

import numpy as np
import pytest
from scipy import stats

from brmdp.runs import Computation, Experiment, run_experiment
from brmdp.studies import find_study
from brmdp.studies.batch.analysis import analyse, column_of, gain, quantile_over_logs
from brmdp.studies.batch.experiment import METHODS, SIZES, WORLDS


@pytest.mark.parametrize("world", WORLDS)
def test_logs_are_of_the_practice_in_the_true_world(world):
    size = 400
    logged = WORLDS[world](size, np.random.default_rng(1))
    pattern = logged.belief.pattern
    assert logged.counts.sum() == size
    assert (logged.counts[logged.counts > 0] >= 1).all()
    np.testing.assert_allclose(logged.practice.sum(axis=1), 1.0)
    assert (logged.practice[~logged.world.admissible] == 0.0).all()
    if world == "inventory":  # every day teaches about all pairs
        assert logged.belief.concentration_entries.sum() == pytest.approx(size + 6)
        return
    np.testing.assert_allclose(logged.belief.concentration_entries - 1.0, logged.counts)
    # states are left by the kernel: a score of all rows that were seen often
    pairs = pattern.pair_of_transition
    seen = np.bincount(pairs, weights=logged.counts, minlength=pattern.n_pairs)[pairs]
    often = (logged.world.probabilities * seen >= 5) & (logged.world.probabilities < 0.999)
    expected = (logged.world.probabilities * seen)[often]
    score = ((logged.counts[often] - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(score, max(int(often.sum()), 1)) > 1e-4


def test_the_practice_of_drawn_worlds_does_not_know_the_kernel():
    """The same successors and rewards with other probabilities give the same practice."""
    one, other = (WORLDS["garnet"](10, np.random.default_rng(seed)) for seed in (2, 2))
    np.testing.assert_array_equal(one.practice, other.practice)
    even = (one.world.kernel() > 0.0) / 3.0
    assert (np.abs(even.sum(axis=2) - 1.0) < 1e-12).all()


def test_quantiles_over_logs_cover():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(400):
        _, low, high = quantile_over_logs(rng.normal(size=100), 0.1)
        covered += low <= stats.norm.ppf(0.1) <= high
    assert stats.binom.cdf(covered, 400, 0.95) > 1e-3
    assert quantile_over_logs(np.array([3.0]), 0.1) == (3.0, -np.inf, np.inf)
    assert quantile_over_logs(np.arange(5.0), 0.01)[1:] == (-np.inf, 1.0)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    cases = tuple(
        Computation(
            f"{world}-{size}",
            "brmdp.studies.batch.experiment:BATCH",
            {"world": world, "size": size, "judging_draws": 200},
        )
        for world, size in (("riverswim", 30), ("garnet", 50))
    )
    experiment = Experiment("batch", "tiny", cases, runs=3)
    store = run_experiment(experiment, tmp_path_factory.mktemp("batch"), workers=1)
    return experiment, {case.name: store.records(case.name) for case in cases}


@pytest.mark.long
def test_a_tiny_run_is_judged_and_drawn(tiny, tmp_path):
    experiment, records = tiny
    found = analyse(experiment, records)
    assert len(found.table.rows) == 2 * (len(METHODS) + 2)
    assert {claim.identifier.partition("/")[2] for claim in found.claims} == {
        *("coverage", "truth", "without-prior", "quantiles-above-sets", "highest-bound"),
        *("better-than-practice", "rarely-worse", "against", "fixed-worlds"),
    }
    pytest.importorskip("matplotlib")
    drawn = find_study("batch").of(experiment).draw(records)
    assert set(drawn) == {"batch-policies", "batch-bounds"}


@pytest.mark.long
def test_numbers_of_a_tiny_run(tiny):
    _, records = tiny
    for found in records.values():
        for method in METHODS:
            true, optimum = (column_of(found, name, method) for name in ("true_value", "optimum"))
            assert (true <= optimum + 1e-9).all()
            assert (gain(found, method) <= 1.0 + 1e-9).all()
        for below in ("RSVF", "BCR", "BCR weighted"):
            bounds = column_of(found, "bound", below)
            assert (bounds <= column_of(found, "bound", "VaR") + 1e-6).all()


def test_every_world_has_sizes():
    assert SIZES.keys() == WORLDS.keys()
    assert find_study("batch").experiment.runs >= 100
