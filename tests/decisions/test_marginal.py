"""The marginal likelihood and its mode, against products of predictions and a slow optimiser."""

import numpy as np
import pytest

from brmdp.decisions.families import SHAPES, family_of
from brmdp.decisions.marginal import log_evidence, mode_of, tally_of
from brmdp.pattern import full_pattern
from oracles.learned_prior import sequential_log_evidence, slow_mode
from problems_of_priors import rows_of, simulated

BOUNDS = (np.log(1e-2), np.log(1e6))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("strength", [0.3, 20.0])
def test_the_evidence_is_the_product_of_sequential_predictions(shape, strength):
    rng = np.random.default_rng(2)
    family, law, counts, _ = simulated(shape, 4, 2, strength, 6, rng)
    log_strength = rng.normal(np.log(strength), 0.5, family.n_strengths)
    rows = rows_of(family, law)
    kappa = np.exp(log_strength)[family.strength_of_pair][:, None]
    table = family.pattern.dense(counts).reshape(8, 4)
    wanted = sequential_log_evidence(kappa * rows, table, rng)
    found = log_evidence(family, tally_of(family, counts), log_strength, law)
    assert found == pytest.approx(wanted, rel=1e-11)


@pytest.mark.parametrize("shape", ["increments", "destinations", "staying"])
@pytest.mark.parametrize("strength", [1.0, 5.0])
def test_the_mode_is_that_of_a_slow_optimiser(shape, strength):
    rng = np.random.default_rng(3)
    family, _, counts, _ = simulated(shape, 6, 1, strength, 25, rng, reach=None)
    found = mode_of(family, tally_of(family, counts), BOUNDS)
    table = family.pattern.dense(counts).reshape(6, 6)
    x, law, best = slow_mode(
        lambda law: rows_of(family, law), table, family.base, BOUNDS, [0.0, 3.0]
    )
    value = log_evidence(family, tally_of(family, counts), found.log_strength, found.law)
    value += family.base @ np.log(found.law)
    assert found.converged
    assert value >= best - 1e-6
    assert found.log_strength[0] == pytest.approx(x, abs=2e-3)
    np.testing.assert_allclose(found.law, law, atol=1e-3)


def test_one_shared_law_puts_the_mode_at_the_upper_end():
    counts = np.tile([6, 3, 1], 8)
    family = family_of("destinations", full_pattern(3, 1))
    found = mode_of(family, tally_of(family, counts[:9]), BOUNDS)
    assert found.log_strength[0] == BOUNDS[1]


def test_rows_that_share_nothing_put_it_at_the_lower_end():
    counts = (50 * np.eye(30)[np.random.default_rng(0).permutation(30)]).astype(int).ravel()
    family = family_of("destinations", full_pattern(30, 1))
    found = mode_of(family, tally_of(family, counts), (np.log(0.5), np.log(1e6)))
    assert found.log_strength[0] == pytest.approx(np.log(0.5))


def test_without_data_the_mode_is_the_middle_and_the_base():
    family = family_of("destinations", full_pattern(3, 2))
    found = mode_of(family, tally_of(family, np.zeros(18, dtype=int)), BOUNDS)
    np.testing.assert_allclose(found.log_strength, np.mean(BOUNDS))
    np.testing.assert_allclose(found.law, np.full(6, 1 / 3))


def test_rows_with_one_successor_drop_out():
    family = family_of("destinations", full_pattern(1, 2))
    tally = tally_of(family, np.array([5, 7]))
    assert tally.kind.size == tally.total.size == 0
