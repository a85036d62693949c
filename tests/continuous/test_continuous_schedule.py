"""The continuous level schedule against the paper's formula, and what its constant does."""

import numpy as np
import pytest

from brmdp import InvalidInputError
from brmdp.continuous import UncertaintyLevel
from oracles import continuous_targets

RNG = np.random.default_rng(2)
CENTRES = RNG.gamma(1.0, 0.02, (15, 4))
CENTRES[[7, 11, 12, 12], [1, 1, 0, 3]] = 0.0
"""As on the lake: four pairs without uncertainty."""

UNSURE = RNG.gamma(1.0, 0.02, (30, 4))
UNSURE[0] = 0.0
KNOWN = np.arange(30) % 7 == 3


@pytest.mark.parametrize("episode", [1, 2, 10, 300, 5000])
@pytest.mark.parametrize("epsilon", [1e-6, 0.05, 1.0, 100.0])
def test_levels_are_the_papers(episode, epsilon):
    schedule = UncertaintyLevel(2.0, 0.2, epsilon=epsilon)
    found = schedule.levels(episode, UNSURE, CENTRES, KNOWN)
    expected = [
        [continuous_targets.level(episode, u, CENTRES, known, 2.0, 0.2, 0.95, epsilon) for u in row]
        for row, known in zip(UNSURE, KNOWN, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_cases_above_meet_floor_ceiling_and_what_lies_between():
    levels = np.array(
        [
            UncertaintyLevel(2.0, 0.2, epsilon=epsilon).levels(k, UNSURE, CENTRES, KNOWN)
            for k in (1, 2, 10, 300, 5000)
            for epsilon in (1e-6, 0.05, 1.0, 100.0)
        ]
    )
    assert levels.min() == 0.2
    assert levels.max() == 0.95
    assert ((levels > 0.2) & (levels < 0.95)).mean() > 0.2


def test_more_uncertainty_means_a_higher_level():
    unsure = np.linspace(0.0, 0.1, 50)[:, None]
    levels = UncertaintyLevel(10.0).levels(500, unsure, CENTRES, np.zeros(50, dtype=bool))[:, 0]
    assert (np.diff(levels) >= 0.0).all()
    assert levels[0] < levels[-1]


def test_a_smaller_constant_means_higher_levels_of_all_uncertain_pairs():
    """Four pairs without uncertainty make c̄ as large as 4/(60 ε)."""
    means = [
        UncertaintyLevel(10.0, epsilon=epsilon)
        .levels(50, CENTRES, CENTRES, np.zeros(15, dtype=bool))[CENTRES > 0]
        .mean()
        for epsilon in (1e-4, 1e-2, 1.0)
    ]
    assert means[0] > 0.9
    assert means[0] > means[1] > means[2] == pytest.approx(0.2, abs=0.02)


def test_the_scale_of_the_targets_does_not_matter():
    schedule = UncertaintyLevel(10.0)
    once = schedule.levels(40, UNSURE, CENTRES, KNOWN)
    again = schedule.levels(40, 1e-3 * UNSURE, 1e-3 * CENTRES, KNOWN)
    np.testing.assert_allclose(again, once, rtol=1e-10)


def test_known_states_and_no_uncertainty_at_all():
    certain = np.zeros((3, 4))
    levels = UncertaintyLevel(1.0).levels(
        100, certain, np.zeros((15, 4)), np.array([True, False, False])
    )
    np.testing.assert_allclose(levels, 1.0 - np.log(200) / 10)
    known = UncertaintyLevel(1.0).levels(100, UNSURE, CENTRES, np.ones(30, dtype=bool))
    np.testing.assert_allclose(known, 1.0 - np.log(200) / 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delta": 0.0}, "delta must be a positive finite number; got 0.0"),
        ({"delta": np.nan}, "delta must be a positive finite number"),
        ({"delta": 1.0, "floor": 0.0}, "floor must lie strictly between 0 and 1; got 0.0"),
        ({"delta": 1.0, "ceiling": 1.0}, "ceiling must lie strictly between 0 and 1; got 1.0"),
        ({"delta": 1.0, "floor": 0.97}, "floor must not exceed ceiling; got 0.97 and 0.95"),
        ({"delta": 1.0, "epsilon": -1.0}, "epsilon must be a positive finite number; got -1.0"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        UncertaintyLevel(**arguments)
