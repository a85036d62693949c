"""Exactness of the Dirichlet functional, searched by structure rather than by chance (contract: the other exactness tests).

Every small integer total and every way to share it out; levels whose quantile lies beside a value, so that the search must step
over it; and both sides of every place at which the kernel changes its mind.
"""

import itertools
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

import brmdp
from brmdp._kernels import dirichlet
from brmdp.risk.base import FixedKernel
from oracles import dirichlet_functional as oracle

TOTALS = range(2, 9)
LEVELS = (1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999)


def problems(totals):
    """(φ, w) for every composition of every total and every spread of the values."""
    for total in totals:
        for phi in oracle.compositions(total):
            for values in oracle.spreads(len(phi)).values():
                yield phi, values


def quantile_faults(phi, values, levels):
    """Breaches of the contract by the quantiles of one row, as text."""
    quantiles = brmdp.dirichlet_quantile(phi, values, np.asarray(levels))
    found = []
    for alpha, q in zip(levels, quantiles, strict=True):
        if text := oracle.quantile_fault(oracle.spline_tails, phi, values, float(q), alpha):
            found.append(f"phi={phi.tolist()} values={values.tolist()} alpha={alpha!r}: {float(q)!r}: {text}")
    return found


def levels_beside_values(phi, values, distances):
    """Levels F(w) (1 ± distance), of the smaller tail, at every inner value w: their quantiles lie just beside w."""
    levels = []
    for value in np.unique(values)[1:-1]:
        lower, upper = (float(x) for x in oracle.spline_tails(phi, values, value))
        for distance, sign in itertools.product(distances, (-1, 1)):
            level = lower * (1 + sign * distance) if lower <= 0.5 else 1 - upper * (1 + sign * distance)
            if 1e-9 <= level <= 1 - 1e-9:
                levels.append(level)
    return levels


def test_a_step_over_a_value_where_the_concentrations_sum_to_six():
    phi, values = np.array([1.0, 1, 1, 3]), np.array([0.0, 1000, 10, 3])
    assert quantile_faults(phi, values, [0.001]) == []


def test_the_plan_of_a_row_whose_concentrations_sum_to_six():
    concentration = np.zeros((4, 1, 4))
    concentration[0, 0] = [3, 1, 1, 1]
    concentration[[1, 2, 3], 0, [1, 2, 3]] = 1
    rewards = np.array([3.0, 0, 1000, 10])
    plan = brmdp.plan(
        brmdp.DirichletPosterior(concentration), np.tile(rewards, (4, 1, 1)), discount=0.5, risk=brmdp.Quantile(0.001)
    )
    absorbed = rewards[1:] / 0.5
    assert np.abs(plan.values[1:] - absorbed).max() <= plan.error_bound
    # V(0) is the fixed point of v = quantile of r + γ (v, 0, 2000, 20), by bisection on the exact distribution function

    def too_high(v):
        targets = rewards + 0.5 * np.concatenate(([v], absorbed))
        return oracle.spline_tails([3, 1, 1, 1], targets, v)[0] > 0.001

    low, high = 0.0, 100.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if too_high(middle) else (middle, high)
    assert abs(plan.values[0] - low) <= plan.error_bound


@pytest.mark.parametrize("total", TOTALS)
def test_every_small_total(total):
    """A part of the scan below: every spread meets every composition, with two of the levels each."""
    found = []
    for number, (phi, values) in enumerate(problems([total])):
        if total == 8 and number % 3:
            continue
        found += quantile_faults(phi, values, [LEVELS[number % 9], LEVELS[(number // 3 + 4) % 9]])
    assert found == []


@pytest.mark.parametrize("total", [5, 6, 7])
def test_quantiles_beside_values(total):
    found = []
    for number, (phi, values) in enumerate(problems([total])):
        distances = [10.0 ** -(1 + number % 5)]
        found += quantile_faults(phi, values, levels_beside_values(phi, values, distances))
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("total", TOTALS)
def test_every_small_total_at_many_levels(total):
    levels = np.concatenate(
        (np.geomspace(1e-3, 0.5, 30), 1 - np.geomspace(0.5, 1e-3, 30)[1:], [1e-8, 1e-5, 1 - 1e-5])
    ).tolist()
    checked = 0
    found = []
    for phi, values in problems([total]):
        everywhere = levels + levels_beside_values(phi, values, [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
        found += quantile_faults(phi, values, everywhere)
        checked += len(everywhere)
    print(f"total {total}: {len(found)} faults in {checked} quantiles")
    assert found == []


# --- both sides of the kernel's constants -----------------------------------------------------------------------------------


@pytest.mark.parametrize("total", [1.0, 2.0, 5.0, 6.0, 7.0, 8.0])
@pytest.mark.parametrize("offset", [-1e-3, -1e-9, 1e-9, 1e-3])
def test_totals_beside_integers(total, offset):
    """FAST_DECAY, BIASED_DECAY and the binomials of the Taylor series change at integer totals: three values, by stick-breaking."""
    tails = oracle.merged(oracle.three_value_tails)
    phi = np.array([0.2, 0.5, 0.3]) * (total + offset)
    for values in (np.array([0.0, 3.0, 1000.0]), np.array([0.0, 0.5, 0.6])):
        for alpha in (0.001, 0.3, 0.99):
            q = float(brmdp.dirichlet_quantile(phi, values, alpha))
            assert oracle.quantile_fault(tails, phi, values, q, alpha) == ""


@pytest.mark.parametrize("heavy", [1023.0, 1024.0, 1024.0 + 1e-9, 1024.5, 1025.0])
@pytest.mark.parametrize("light", [0.5, 1.0, 1.5])
def test_concentrations_beside_the_largest_power(heavy, light):
    """MAX_POWER, and powers with or without a common fraction."""
    tails = oracle.merged(oracle.three_value_tails)
    phi, values = np.array([light, heavy, light]), np.array([0.0, 0.7, 1.0])
    for alpha in (0.01, 0.6):
        q = float(brmdp.dirichlet_quantile(phi, values, alpha))
        assert oracle.quantile_fault(tails, phi, values, q, alpha) == ""


@pytest.mark.parametrize("light", [1e-3 * (1 - 1e-9), 1e-3])
def test_concentrations_beside_the_least_that_are_biased(light):
    """LEAST_BIASED, in multiple precision: the other oracles lose their digits there."""
    for phi in ([light, light, 1.5], [light, 1.5, light], [1.5, light, light]):
        phi, values = np.array(phi), np.array([0.0, 0.7, 1.0])
        for alpha in (0.01, 0.6):
            q = float(brmdp.dirichlet_quantile(phi, values, alpha))
            assert oracle.quantile_fault(oracle.mp_tails, phi, values, q, alpha) == ""


# --- no false confidence ----------------------------------------------------------------------------------------------------


def test_a_distribution_function_of_unknown_error_is_refused():
    phi = [0.44, 0.38, 0.37, 2e6, 0.05, 0.01, 0.6]
    values = [4e-17, 1e-56, 1e-50, -4e-47, -9e-38, -1, 6e-44]
    with pytest.raises(brmdp.ConvergenceError, match="resolved only"):
        brmdp.dirichlet_cdf(phi, values, 1.3e-51)


@pytest.mark.parametrize("scale", [1e-150, 1e-157, 1e-200, 1e-240])
@pytest.mark.parametrize("phi", [[0.05, 0.02, 0.1], [1.0, 2.0, 3.0]])
def test_tiny_values_are_those_of_the_same_problem_in_other_units(scale, phi):
    values, levels = np.array([0.0, 0.3, 1.0]), np.array([0.01, 0.3, 0.9])
    found = brmdp.dirichlet_quantile(phi, values * scale, levels) / scale
    np.testing.assert_allclose(found, brmdp.dirichlet_quantile(phi, values, levels), rtol=0, atol=1e-15)


def test_the_mean_over_many_successors_errs_within_its_bound():
    for n in (1500, 3000):
        for seed in range(8):
            rng = np.random.default_rng(seed)
            concentration = np.ones(n) if seed % 2 else rng.random(n) + 1e-3
            targets = 1.0 + (seed // 2) * 1e-3 * rng.random(n)
            pattern = SimpleNamespace(indptr=np.array([0, n]), widest=n, n_transitions=n)
            kernel = FixedKernel(pattern, concentration / np.add.reduce(concentration))
            out = np.empty(1)
            bound = kernel.evaluate(targets, np.array([0]), out)
            weights = [Fraction(x) for x in concentration.tolist()]
            exact = sum(p * Fraction(w) for p, w in zip(weights, targets.tolist(), strict=True)) / sum(weights)
            assert abs(Fraction(float(out[0])) - exact) <= bound


def test_constant_values_have_an_error_bound():
    """The targets themselves are rounded: no bound is zero."""
    for measure in (dirichlet.EXACT, dirichlet.CVAR):
        rows = dirichlet.Rows.of(np.array([0, 2]), np.array([0]), np.ones(2), np.array([0.3]), 2)
        assert dirichlet.evaluate_pairs(measure, np.array([0]), rows, np.full(2, 0.7), 1e-12, np.empty(1)) >= 1e-16


def evaluated(measure, phi, values, level):
    """(value, error bound) of one row, as a plan sees them."""
    n = len(phi)
    rows = dirichlet.Rows.of(np.array([0, n]), np.array([0]), np.asarray(phi, float), np.array([float(level)]), n)
    out = np.empty(1)
    error = dirichlet.evaluate_pairs(measure, np.array([0]), rows, np.asarray(values, float), 1e-12, out)
    return float(out[0]), float(error)


def test_cvar_at_a_quantile_between_values_of_neighbouring_numbers():
    """The point is moved off the values that it meets, as often as it meets one; CVaR of the mirrored problem is the other half."""
    phi = np.full(6, 1.5)
    values = np.array([2.0**-50, 1.0, 2.0**-50, 1.0 + 2.0**-51, 2.0 + 2.0**-50, 2.0])
    exact = 1 - 5 / 24  # as Dir(3, 3, 3) on 0, 1, 2: E|X − 1| = E[Beta(6, 3)] E|2 Beta(3, 3) − 1| = (2/3) (5/16)
    for order in itertools.permutations(range(1, 6), 5):
        arranged = values[[0, *order]]
        for sign in (1, -1):
            found, error = evaluated(dirichlet.CVAR, phi, sign * arranged, 0.5)
            assert abs(found - sign + (1 - exact)) <= error + 1e-14


@pytest.mark.parametrize("light", [1e-16, 1e-20, 1e-27, 1e-30])
@pytest.mark.parametrize("level", [1e-6, 0.3, 1 - 2.0**-25])
def test_cvar_of_an_unresolved_quantile_says_so(light, level):
    """So light a row is one of its values, with probabilities φ/Φ, up to a few hundred times Φ."""
    phi, values = light * np.array([3.0, 5.0]), np.array([0.25, 2.25])
    found, error = evaluated(dirichlet.CVAR, phi, values, level)
    below = min(3 / 8, level)
    exact = (0.25 * below + 2.25 * (level - below)) / level
    assert abs(found - exact) <= error + 1e3 * light


@pytest.mark.parametrize(
    ("phi", "level"),
    [
        ([0.0001638696174707797, 0.016419370369634057], 0.010443854948609952),
        ([0.0715426749174365, 8.152480499419361e-06], 0.9999252739565845),
        ([1.4931129118621747e-07, 0.10931589268389024], 2.153844325840599e-06),
        ([1e-6, 4.0], 2.0**-26),
        ([1e-6, 4.0], 2.0**-22),
        ([9e-4, 0.5], 1e-4),
    ],
)
def test_the_error_bound_of_quantiles_beside_a_light_successor(phi, level):
    """Terms cancel there, and the density is not resolved. Two values: Pr(X ≤ z) in multiple precision from its own series."""
    phi = np.array(phi)
    q, error = evaluated(dirichlet.EXACT, phi, [0.0, 1.0], level)
    with mpmath.workdps(40):
        a, b = mpmath.mpf(phi[1]), mpmath.mpf(phi[0])

        def below(z):
            return mpmath.betainc(a, b, 0, mpmath.mpf(z), regularized=True)

        assert below(q - error) <= level <= below(q + error)
    assert error <= 1e-8
