"""A learned prior that is learned anew from resampled units."""

import numpy as np
import pytest

from brmdp.decisions import Transitions, UnitLog, learn_prior


def a_log(rng):
    unit = np.repeat(np.arange(10), 30)
    state = rng.integers(6, size=unit.size)
    steps = np.where(rng.random(unit.size) < 0.02 + 0.08 * (unit % 2), 2, rng.integers(2, size=300))
    return unit, state, np.minimum(state + steps, 5)


def test_means_are_those_of_a_prior_learned_from_the_chosen_units():
    rng = np.random.default_rng(0)
    unit, state, following = a_log(rng)
    log = Transitions(state, 0, following, unit=unit, n_states=6, n_actions=1)
    learned = learn_prior(log, shape="increments", draws=40, rng=0)
    units = UnitLog(learned.relearned(), unit, state, 0 * state, following)
    means, _ = units.resampled(3, np.random.default_rng(7))
    again = np.random.default_rng(7)
    for mean in means:
        chosen = again.integers(10, size=10)
        rows = np.concatenate([np.flatnonzero(unit == u) for u in chosen])
        fresh = learn_prior(
            Transitions(state[rows], 0, following[rows], n_states=6, n_actions=1),
            shape="increments",
            draws=40,
            rng=0,
        )
        expected = fresh.posterior(point="mode").mean("flat")
        assert mean == pytest.approx(expected, abs=2e-3)


def test_resampling_sees_what_a_prior_taken_for_known_hides():
    rng = np.random.default_rng(1)
    unit, state, following = a_log(rng)
    log = Transitions(state, 0, following, unit=unit, n_states=6, n_actions=1)
    learned = learn_prior(log, shape="increments", draws=40, rng=0)
    arrays = learned.posterior().arrays()
    arrays["counts"] = np.zeros_like(arrays["counts"])
    known = type(learned.posterior()).from_arrays(arrays, "a test")

    def spread(prior):
        units = UnitLog(prior, unit, state, 0 * state, following)
        return units.resampled(50, np.random.default_rng(2))[0].std(axis=0).max()

    assert spread(learned.relearned()) > 1.5 * spread(known)
