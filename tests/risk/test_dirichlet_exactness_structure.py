"""Exactness of the Dirichlet functions, searched by structure rather than by chance.

The contract is that of the other exactness tests. The cases are: every small integer total and
every way to split it; levels whose quantile lies next to a value, so that the search must step over
it; and both sides of every point at which the kernel takes another branch.
"""

import itertools
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numba
import numpy as np
import pytest
from scipy import special

import brmdp
from brmdp._kernels import dirichlet
from brmdp.risk.base import FixedKernel
from oracles import dirichlet_functional as oracle

TOTALS = range(2, 9)
LEVELS = (1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999)


def problems(totals):
    """All (φ, w): every composition of every total, with every spread of the values."""
    for total in totals:
        for phi in oracle.compositions(total):
            for values in oracle.spreads(len(phi)).values():
                yield phi, values


def quantile_faults(phi, values, levels):
    """Breaches of the contract by the quantiles of one row, as text."""
    quantiles = brmdp.dirichlet.quantile(phi, values, np.asarray(levels))
    found = []
    for alpha, q in zip(levels, quantiles, strict=True):
        if text := oracle.quantile_fault(oracle.spline_tails, phi, values, float(q), alpha):
            found.append(
                f"phi={phi.tolist()} values={values.tolist()} alpha={alpha!r}: {float(q)!r}: {text}"
            )
    return found


def evaluated(measure, phi, values, level):
    """The value and error bound of one row, as a plan sees them."""
    n = len(phi)
    rows = dirichlet.Rows.of(
        np.array([0, n]), np.array([0]), np.asarray(phi, float), np.array([float(level)]), n
    )
    out = np.empty(1)
    error = dirichlet.evaluate_pairs(
        measure, np.array([0]), rows, np.asarray(values, float), 1e-12, out
    )
    return float(out[0]), float(error)


def levels_beside_values(phi, values, distances):
    """Levels F(w) (1 ± distance), of the smaller tail, at every inner value w.

    Their quantiles lie right next to w.
    """
    levels = []
    for value in np.unique(values)[1:-1]:
        lower, upper = (float(x) for x in oracle.spline_tails(phi, values, value))
        for distance, sign in itertools.product(distances, (-1, 1)):
            level = (
                lower * (1 + sign * distance) if lower <= 0.5 else 1 - upper * (1 + sign * distance)
            )
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
        brmdp.DirichletBelief(concentration),
        np.tile(rewards, (4, 1, 1)),
        discount=0.5,
        risk=brmdp.Quantile(0.001),
    )
    absorbed = rewards[1:] / 0.5
    assert np.abs(plan.values[1:] - absorbed).max() <= plan.error_bound
    # V(0) is the fixed point of v = quantile of r + γ (v, 0, 2000, 20), by bisection on the exact
    # distribution function

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
    """A part of the scan below.

    Every spread meets every composition, with two of the levels each.
    """
    found = []
    for number, (phi, values) in enumerate(problems([total])):
        if total == 8 and number % 3:
            continue
        found += quantile_faults(phi, values, [LEVELS[number % 9], LEVELS[(number // 3 + 4) % 9]])
    assert found == []


@pytest.mark.long
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
        everywhere = levels + levels_beside_values(
            phi, values, [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]
        )
        found += quantile_faults(phi, values, everywhere)
        checked += len(everywhere)
    print(f"total {total}: {len(found)} faults in {checked} quantiles")
    assert found == []


# --- both sides of the kernel's constants ---------------------------------------------------------


@pytest.mark.parametrize("total", [1.0, 2.0, 5.0, 6.0, 7.0, 8.0])
@pytest.mark.parametrize("offset", [-1e-3, -1e-9, 1e-9, 1e-3])
def test_totals_beside_integers(total, offset):
    """FAST_DECAY, BIASED_DECAY and the Taylor binomials change at integer totals.

    The problems have three values; the oracle is stick-breaking.
    """
    tails = oracle.merged(oracle.three_value_tails)
    phi = np.array([0.2, 0.5, 0.3]) * (total + offset)
    for values in (np.array([0.0, 3.0, 1000.0]), np.array([0.0, 0.5, 0.6])):
        for alpha in (0.001, 0.3, 0.99):
            q = float(brmdp.dirichlet.quantile(phi, values, alpha))
            assert oracle.quantile_fault(tails, phi, values, q, alpha) == ""


@pytest.mark.parametrize("heavy", [1023.0, 1024.0, 1024.0 + 1e-9, 1024.5, 1025.0])
@pytest.mark.parametrize("light", [0.5, 1.0, 1.5])
def test_concentrations_beside_the_largest_power(heavy, light):
    """MAX_POWER, and powers with or without a common fraction."""
    tails = oracle.merged(oracle.three_value_tails)
    phi, values = np.array([light, heavy, light]), np.array([0.0, 0.7, 1.0])
    for alpha in (0.01, 0.6):
        q = float(brmdp.dirichlet.quantile(phi, values, alpha))
        assert oracle.quantile_fault(tails, phi, values, q, alpha) == ""


@pytest.mark.long
@pytest.mark.parametrize("fraction", [1e-12, 1e-3, 0.25, 0.5, 0.999, 1.0 - 1e-12])
@pytest.mark.parametrize("base", [0, 1, 3, 40])
def test_fractions_from_next_to_0_to_next_to_1(base, fraction):
    """Alone among integers, the same everywhere, and different everywhere."""
    tails = oracle.merged(oracle.three_value_tails)
    if base + fraction < 0.1:
        pytest.skip("the oracle loses its digits there; such rows are tried in multiple precision")
    values = np.array([0.0, 0.7, 1.0])
    for phi in (
        [base + fraction, 2.0, 3.0],
        [2.0, base + fraction, 1.0],
        [base + fraction] * 3,
        [base + fraction, base + 0.7 * fraction + 0.1, base + 1.3 * fraction],
    ):
        for alpha in (0.001, 0.3, 0.99):
            q = float(brmdp.dirichlet.quantile(phi, values, alpha))
            assert oracle.quantile_fault(tails, np.array(phi), values, q, alpha) == ""


@pytest.mark.parametrize("heavy", [1e4 + 0.5, 1e6 + 0.5])
def test_large_fractional_concentrations(heavy):
    tails = oracle.merged(oracle.three_value_tails)
    phi, values = np.array([heavy, 3.5, heavy - 0.75]), np.array([0.0, 0.3, 1.0])
    for alpha in (0.01, 0.6):
        q = float(brmdp.dirichlet.quantile(phi, values, alpha))
        assert oracle.quantile_fault(tails, phi, values, q, alpha) == ""


def test_a_vanishing_concentration_changes_nothing():
    """Two values remain, whose distribution is a beta distribution."""
    z = np.linspace(0.05, 0.95, 7)
    found = brmdp.dirichlet.cdf([1e-30, 1.5, 2.25], [0.3, 0.0, 1.0], z)
    np.testing.assert_allclose(found, special.betainc(2.25, 1.5, z), rtol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("alpha", [1e-3, 0.7])
def test_many_fractional_concentrations_in_multiple_precision(alpha):
    phi = np.array([0.3, 1.7, 12.25, 1.0, 5.5, 0.9])
    values = np.array([0.0, 0.1, 0.35, 0.6, 0.8, 1.0])
    q = float(brmdp.dirichlet.quantile(phi, values, alpha))
    assert oracle.quantile_fault(oracle.mp_tails, phi, values, q, alpha) == ""


@pytest.mark.long
@pytest.mark.parametrize("light", [1e-3 * (1 - 1e-9), 1e-3])
@pytest.mark.parametrize("alpha", [0.01, pytest.param(0.6, marks=pytest.mark.slow)])
def test_concentrations_beside_the_least_that_are_biased(light, alpha):
    """LEAST_BIASED, in multiple precision, since the other oracles lose their digits there."""
    for phi in ([light, light, 1.5], [light, 1.5, light], [1.5, light, light]):
        phi, values = np.array(phi), np.array([0.0, 0.7, 1.0])
        q = float(brmdp.dirichlet.quantile(phi, values, alpha))
        assert oracle.quantile_fault(oracle.mp_tails, phi, values, q, alpha) == ""


# The kernel's other constants:
# - MAX_BIAS cannot be exceeded: ⌈8 − Φ⌉ ≤ 8 (Φ just above 0 is tried below);
# - MAX_NODES cannot be reached: a tail's integrand falls at least like exp(−x), and has decayed
#   after about 40/step nodes;
# - TAIL_CUT, TURN_MATTERS, MAX_GROWTH, COARSE_TOLERANCE and the numbers of halvings act on a
#   quadrature's own estimates: their effect, whether the first path is kept, is approached below;
# - START_SHARPNESS and the ends of the saddlepoint's search and of ``saddle`` only move the start
#   or the path, not what is integrated;
# - MAX_ERROR only decides between a bound and none;
# - ROW_TOLERANCE concerns gradients, which are compared with finite differences.


@numba.njit
def tail_on_line(m, head, line, bend_count, bias, total, halvings, scratch):
    """The inner kernel, which Python cannot call."""
    return dirichlet.tail_on_line(m, head, line, bend_count, bias, total, halvings, scratch)


def line_at(phi, values, z):
    """What the kernel decides at z.

    (mirrored, τ, 1 − τ, s, step, pole, width, bias, first path kept, nodes kept).
    """
    n = len(phi)
    scratch = dirichlet.workspace(n)
    work, order, _, bends, _, _, sums = scratch
    m, mirrored, _, total, _, least = dirichlet.compact(phi, values, n, z, work[0], work[1])
    bias = 0
    if total < dirichlet.FAST_DECAY:
        bias = (
            int(np.ceil(dirichlet.BIASED_DECAY - total)) if least >= dirichlet.LEAST_BIASED else 1
        )
    head = dirichlet.split_powers(work[0], m, order)
    saddle, rest = dirichlet.saddle(work[0], work[1], m)
    line = dirichlet.choose_line(work[0], work[1], m, total, bias, work[2], work[3], bends, sums)
    first = tail_on_line(m, head, line, 1, bias, total, dirichlet.FIRST_HALVINGS, scratch)
    return SimpleNamespace(
        mirrored=mirrored,
        saddle_beyond_half=saddle > rest,
        pushed=line[0] > saddle * 1.01,
        capped_step=line[2] == dirichlet.MAX_STEP,
        pole_taken_out=line[4] != 0.0,
        first_path_kept=first[2] < 1.0,
        nodes_kept=first[5] > 0,
        bias=bias,
    )


def sides_of(decision, problem, start, end):
    """Neighbouring numbers between which a decision changes, found by bisection.

    The bisection starts from two numbers at which the decision differs.
    """
    first = getattr(line_at(*problem(start)), decision)
    assert getattr(line_at(*problem(end)), decision) != first, (
        "this stretch does not meet the constant"
    )
    while np.nextafter(start, end) != end:
        middle = 0.5 * (start + end)
        if middle in (start, end):
            break
        if getattr(line_at(*problem(middle)), decision) == first:
            start = middle
        else:
            end = middle
    return start, end


PHI, VALUES = np.array([1.3, 4.2, 2.9]), np.array([0.0, 0.4, 1.0])
LIGHT = np.array([0.4, 1.2, 0.7])


@pytest.mark.long
@pytest.mark.parametrize(
    ("decision", "problem", "start", "end"),
    [
        ("mirrored", lambda z: (PHI, VALUES, z), 0.5, 0.6),
        ("mirrored", lambda z: (LIGHT, VALUES, z), 0.3, 0.7),
        ("saddle_beyond_half", lambda z: (PHI, VALUES, z), 0.56, 0.99),
        ("pushed", lambda z: (PHI, VALUES, z), 0.56, 0.9),
        ("pushed", lambda z: (PHI, VALUES, z), 0.5, 0.1),
        ("pushed", lambda z: (LIGHT, VALUES, z), 0.55, 0.999),
        ("capped_step", lambda scale: (scale * PHI, VALUES, 0.62), 0.3, 300.0),
        ("pole_taken_out", lambda z: (PHI, VALUES, z), 0.56, 0.95),
        ("pole_taken_out", lambda z: (LIGHT, VALUES, z), 0.55, 0.95),
        (
            "first_path_kept",
            lambda z: (np.array([3.0, 1e4, 4.0]), VALUES, z),
            0.4 + 1e-6,
            0.4 + 1e-5,
        ),
        ("first_path_kept", lambda z: (np.array([1.3, 1e5, 2.9]), VALUES, z), 0.401, 0.403),
        (
            "nodes_kept",
            lambda s: (np.array([0.3 * s, 900.0, 0.2 * s]), VALUES, 0.4 + 1e-12),
            1.0,
            20.0,
        ),
        ("bias", lambda scale: (scale * PHI / 8.4, VALUES, 0.62), 6.5, 5.5),
        ("bias", lambda scale: (scale * PHI / 8.4, VALUES, 0.62), 1.5, 0.5),
        ("bias", lambda scale: (scale * PHI / 8.4, VALUES, 0.62), 0.5, 2.5),
    ],
)
def test_both_sides_of_what_the_kernel_decides(decision, problem, start, end):
    """The distribution function on both sides of a decision, and the quantile at its level.

    The oracle is stick-breaking.
    """
    tails = oracle.merged(oracle.three_value_tails)
    for parameter in sides_of(decision, problem, start, end):
        for point in (parameter, parameter * (1 - 1e-9), parameter * (1 + 1e-9)):
            phi, values, z = problem(point)
            exact = tails(phi, values, z)
            ours = [
                float(brmdp.dirichlet.cdf(phi, values, z, complement=side))
                for side in (False, True)
            ]
            assert oracle.cdf_fault(*ours, *exact) <= oracle.TOLERANCE
            if min(exact) > 1e-12:
                q = float(brmdp.dirichlet.quantile(phi, values, ours[0]))
                assert oracle.quantile_fault(tails, phi, values, q, ours[0]) == ""


@pytest.mark.long
@pytest.mark.parametrize("total", [1e-2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
def test_totals_that_are_integers_or_their_neighbours(total):
    """FAST_DECAY and BIASED_DECAY; the shares are binary, so their sum is exact."""
    tails = oracle.merged(oracle.three_value_tails)
    for beside in (np.nextafter(total, 0), total, np.nextafter(total, 9)):
        phi = np.array([0.25, 0.5, 0.25]) * beside
        assert phi.sum() == beside
        for alpha in (0.01, 0.4, 0.5, 0.97):
            q = float(brmdp.dirichlet.quantile(phi, [0.0, 0.3, 1.0], alpha))
            assert oracle.quantile_fault(tails, phi, np.array([0.0, 0.3, 1.0]), q, alpha) == ""


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("factor", [1 - 1e-9, 1.0, 1 + 1e-9])
def test_points_beside_the_closest_that_are_told_from_a_value(sign, factor):
    """CLOSEST: at the value itself, and that close to it.

    The distribution function is a Beta probability.
    """
    for phi in ([1.0, 3.0, 2.0], [0.5, 100.0, 1.5], [0.02, 0.01, 0.03]):
        found = float(
            brmdp.dirichlet.cdf(phi, [-1.0, 0.0, 2.0], sign * factor * 3 * dirichlet.CLOSEST)
        )
        expected = float(special.betainc(phi[2], phi[0], 1 / 3))
        # F has moved by (distance)^(φ₁ + φ₃) if that is less than 1
        assert abs(found - expected) <= 1e-9 * expected + 50 * (3 * dirichlet.CLOSEST) ** min(
            1.0, phi[0] + phi[2]
        )


@pytest.mark.parametrize(
    "phi", [(1.0, 1.0), (1.0, 4.5), (2.5, 2.5), (3.0, 3.0), (1.0, 5.0), (4.999, 1.0)]
)
def test_two_values_beside_the_edges_of_the_beta_quantile(phi):
    """Concentrations of 1, a total of FAST_DECAY, and levels next to ½.

    The quantiles lie next to the middle and next to the clip at 1e-10.
    """
    tails = oracle.merged(oracle.beta_tails)
    values = np.array([0.0, 1.0])
    for below in (np.nextafter(phi[0], 0), phi[0], np.nextafter(phi[0], 9)):
        for above in (np.nextafter(phi[1], 0), phi[1], np.nextafter(phi[1], 9)):
            row = np.array([below, above])
            middle = float(oracle.beta_tails(row, values, 0.5)[0])
            clip = float(oracle.beta_tails(row, values, 1e-10)[0])
            levels = [
                0.5,
                np.nextafter(0.5, 0),
                np.nextafter(0.5, 1),
                middle * (1 - 1e-9),
                middle,
                0.999999,
            ]
            for alpha in [
                *levels,
                max(clip, 1e-90) * 0.999,
                max(clip, 1e-90),
                max(clip, 1e-90) * 1.001,
            ]:
                q, error = evaluated(dirichlet.EXACT, row, values, alpha)
                assert oracle.quantile_fault(tails, row, values, q, alpha) == ""
                assert error <= 1e-9


@pytest.mark.parametrize("count", [20, 30, 40, 60, 120, 200])
@pytest.mark.parametrize("each", [1.0, 1.5, 2.0, 4.0, 40.0])
def test_products_beside_the_largest_that_are_kept(count, each):
    """Products are computed in parts before they overflow: at 1e60, and e^200 for one power."""
    tails = oracle.merged(oracle.three_value_tails)
    phi = np.full(count, each)
    values = np.array([0.0, 0.3, 1.0])[np.arange(count) % 3]
    for alpha in (1e-6, 0.2, 0.999):
        q = float(brmdp.dirichlet.quantile(phi, values, alpha))
        assert oracle.quantile_fault(tails, phi, values, q, alpha) == ""


@pytest.mark.parametrize("phi", [[1.0, 2, 1, 2], [2.0, 1, 3, 1], [3.0, 2, 1, 3]])
def test_levels_in_small_steps(phi):
    """SERIES_REACH and SERIES_TOLERANCE.

    The last step of the search, which they allow or forbid, takes every length.
    """
    assert (
        quantile_faults(
            np.array(phi), np.array([0.0, 1.0, 1.7, 4.0]), np.linspace(0.005, 0.995, 67).tolist()
        )
        == []
    )


@pytest.mark.parametrize("gap", [1, 2, 3, 4])
def test_values_a_few_roundings_apart(gap):
    """Values that are constant up to rounding, or not quite.

    The quantile is one of the numbers in between, and its error bound reaches all of them.
    """
    values = np.array([1.0, 1.0 + gap * 2.0**-52])
    for alpha in (0.01, 0.5, 0.99):
        q, error = evaluated(dirichlet.EXACT, [2.0, 3.0], values, alpha)
        x = float(special.betaincinv(3.0, 2.0, alpha))
        assert values[0] <= q <= values[1]
        assert abs((q - 1.0) - x * gap * 2.0**-52) <= error


# --- structure: problems that must agree ----------------------------------------------------------

STRUCTURED_PHI = np.array(
    [0.01, 0.5, 1, 1, 1.5, 2, 2.5, 3, 5, 5.5, 6, 7, 8, 100.5, 1024, 1025, 1e6, 1e10]
)
STRUCTURED_LEVELS = np.array([2.0**-26, 2.0**-10, 0.125, 0.5, 0.75, 1 - 2.0**-10, 1 - 2.0**-26])


def structured_values(rng, n):
    """Ties, values a few roundings apart, mixed magnitudes, and the spreads above."""
    kind = rng.integers(6)
    whole = rng.integers(0, 3, n).astype(float)
    if kind == 0:
        return whole
    if kind == 1:
        return whole + rng.integers(-2, 3, n) * 2.0 ** -float(rng.integers(20, 53))
    if kind == 2:
        return rng.choice([-1.0, 1.0], n) * 10.0 ** -rng.integers(0, 40, n).astype(float)
    if kind == 3:
        return whole + 10 ** rng.uniform(-15, -6, n)
    if kind == 4:
        return rng.normal(size=n)
    return rng.permutation(list(oracle.spreads(n).values())[rng.integers(12)])


@pytest.mark.parametrize("seed", range(3))
def test_problems_that_must_agree_do_within_their_error_bounds(seed):
    rng = np.random.default_rng([40, seed])
    for _ in range(400):
        n = int(rng.integers(2, 7))
        phi = (
            rng.choice(STRUCTURED_PHI, n)
            if rng.random() < 0.6
            else np.full(n, rng.choice(STRUCTURED_PHI))
        )
        values, alpha = structured_values(rng, n), float(rng.choice(STRUCTURED_LEVELS))
        low, high = values.min(), values.max()
        if low == high:
            continue
        ulp, order, j = np.spacing(np.abs(values).max()), rng.permutation(n), int(rng.integers(n))
        scale, where = (
            2.0 ** float(rng.integers(-60, 60)),
            f"{phi.tolist()} {values.tolist()} {alpha!r}",
        )
        split = np.append(phi, 0.25 * phi[j])
        split[j] *= 0.75
        raised = values.copy()
        raised[j] += 10 ** rng.uniform(-14, 0) * (high - low)
        for measure in (dirichlet.EXACT, dirichlet.CVAR):
            value, error = evaluated(measure, phi, values, alpha)
            for same in (
                evaluated(measure, phi[order], values[order], alpha),
                tuple(x / scale for x in evaluated(measure, phi, values * scale, alpha)),
                evaluated(measure, split, np.append(values, values[j]), alpha),
            ):
                assert abs(value - same[0]) <= error + same[1], where
            shifted = values + 3.0
            moved, moved_error = evaluated(measure, phi, shifted, alpha)
            rounded = np.abs((shifted - 3.0) - values).max() + 2 * np.spacing(np.abs(shifted).max())
            assert abs(moved - 3.0 - value) <= error + moved_error + rounded, where
            up, up_error = evaluated(measure, phi, raised, alpha)
            slack = error + up_error
            assert value - slack <= up <= value + (raised[j] - values[j]) + slack, where
            less, less_error = evaluated(
                measure, phi, values, alpha * (1 - 10 ** rng.uniform(-12, -1))
            )
            assert less <= value + error + less_error, where
            assert low - error <= value <= high + error, where
        q, q_error = evaluated(dirichlet.EXACT, phi, values, alpha)
        mirrored, mirrored_error = evaluated(dirichlet.EXACT, phi, -values, 1 - alpha)
        assert abs(q + mirrored) <= q_error + mirrored_error, where
        cvar, cvar_error = evaluated(dirichlet.CVAR, phi, values, alpha)
        other, other_error = evaluated(dirichlet.CVAR, phi, -values, 1 - alpha)
        assert cvar <= q + q_error + cvar_error, where
        # the two halves add up to the mean
        mean = low + phi / phi.sum() @ (values - low)
        slack = alpha * cvar_error + (1 - alpha) * other_error + 4 * ulp
        assert abs(alpha * cvar - (1 - alpha) * other - mean) <= slack, where


@pytest.mark.long
@pytest.mark.parametrize("total", [1e10, 1e11, 1e12])
def test_the_error_bound_beyond_the_range_of_the_promise(total):
    """Above 1e10 rounding grows, and the quantile's own bound grows with it."""
    rng = np.random.default_rng(int(np.log10(total)))
    for alpha in (1e-6, 0.3, 0.999):
        phi, values = total * rng.dirichlet(np.ones(3)), rng.normal(size=3)
        q, error = evaluated(dirichlet.EXACT, phi, values, alpha)
        below, above = (oracle.mp_tails(phi, values, z)[0] for z in (q - error, q + error))
        assert below <= alpha <= above
        lower, upper, doubt = oracle.mp_tails(phi, values, q)
        assert doubt <= 1e-12 * min(lower, upper)
        ours = [
            float(brmdp.dirichlet.cdf(phi, values, q, complement=side)) for side in (False, True)
        ]
        assert oracle.cdf_fault(*ours, lower, upper) <= 1e-14 * np.sqrt(total) + 1e-12


# --- no false confidence --------------------------------------------------------------------------


def test_a_distribution_function_of_unknown_error_is_refused():
    phi = [0.44, 0.38, 0.37, 2e6, 0.05, 0.01, 0.6]
    values = [4e-17, 1e-56, 1e-50, -4e-47, -9e-38, -1, 6e-44]
    with pytest.raises(
        brmdp.ConvergenceError,
        match=r"at z=1\.3e-51 could not be resolved .* concentration=\[0\.44, ",
    ):
        brmdp.dirichlet.cdf(phi, values, 1.3e-51)


@pytest.mark.parametrize("scale", [1e-150, 1e-157, 1e-200, 1e-240])
@pytest.mark.parametrize("phi", [[0.05, 0.02, 0.1], [1.0, 2.0, 3.0]])
def test_tiny_values_are_those_of_the_same_problem_in_other_units(scale, phi):
    values, levels = np.array([0.0, 0.3, 1.0]), np.array([0.01, 0.3, 0.9])
    found = brmdp.dirichlet.quantile(phi, values * scale, levels) / scale
    np.testing.assert_allclose(
        found, brmdp.dirichlet.quantile(phi, values, levels), rtol=0, atol=1e-15
    )


@pytest.mark.long
def test_the_mean_over_many_successors_errs_within_its_bound():
    for n in (1500, 3000):
        for seed in range(8):
            rng = np.random.default_rng(seed)
            concentration = np.ones(n) if seed % 2 else rng.random(n) + 1e-3
            targets = 1.0 + (seed // 2) * 1e-3 * rng.random(n)
            kernel = FixedKernel(
                SimpleNamespace(indptr=np.array([0, n]), widest=n, n_transitions=n),
                concentration / np.add.reduce(concentration),
            )
            out = np.empty(1)
            bound = kernel.evaluate(targets, np.array([0]), out)
            weights = [Fraction(x) for x in concentration.tolist()]
            exact = sum(
                p * Fraction(w) for p, w in zip(weights, targets.tolist(), strict=True)
            ) / sum(weights)
            assert abs(Fraction(float(out[0])) - exact) <= bound


def test_constant_values_have_an_error_bound():
    """The targets themselves are rounded, so no bound is zero."""
    for measure in (dirichlet.EXACT, dirichlet.CVAR):
        rows = dirichlet.Rows.of(np.array([0, 2]), np.array([0]), np.ones(2), np.array([0.3]), 2)
        assert (
            dirichlet.evaluate_pairs(
                measure, np.array([0]), rows, np.full(2, 0.7), 1e-12, np.empty(1)
            )
            >= 1e-16
        )


def test_cvar_at_a_quantile_between_values_of_neighbouring_numbers():
    """The point moves away from a value as often as it meets one.

    CVaR of the mirrored problem is the other half.
    """
    phi = np.full(6, 1.5)
    values = np.array([2.0**-50, 1.0, 2.0**-50, 1.0 + 2.0**-51, 2.0 + 2.0**-50, 2.0])
    exact = (
        1 - 5 / 24
    )  # as Dir(3, 3, 3) on 0, 1, 2: E|X − 1| = E[Beta(6, 3)] E|2 Beta(3, 3) − 1| = (2/3) (5/16)
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
    """Terms cancel there, and the density is not resolved.

    With two values, Pr(X ≤ z) comes from its own series in multiple precision.
    """
    phi = np.array(phi)
    q, error = evaluated(dirichlet.EXACT, phi, [0.0, 1.0], level)
    with mpmath.workdps(40):
        a, b = mpmath.mpf(phi[1]), mpmath.mpf(phi[0])

        def below(z):
            return mpmath.betainc(a, b, 0, mpmath.mpf(z), regularized=True)

        assert below(q - error) <= level <= below(q + error)
    assert error <= 1e-8


@pytest.mark.parametrize("own", [0.01, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("other", [0.01, 0.3, 2.5])
def test_distribution_function_at_no_distance_from_an_end(own, other):
    """Where squares of differences underflow, the tail is a power of the distance."""
    for distance in (3e-150, 1e-150, 0.999e-150, 1e-151, 1.18e-188, 1e-250, 2.2e-311):
        expected = float(mpmath.betainc(other, own, 0, mpmath.mpf(distance), regularized=True))
        assert brmdp.dirichlet.cdf([own, other], [0.0, 1.0], distance) == pytest.approx(
            expected, rel=1e-9, abs=1e-300
        )
    with pytest.raises(brmdp.ConvergenceError, match="could not be resolved"):
        brmdp.dirichlet.cdf([1.0, 0.5, 0.02], [0.0, 1e-200, 1.0], 1e-180)


@pytest.mark.parametrize("size", [1e-30, 1e-20, 1e-16, 1e-14, 1e-12])
def test_vanishing_totals_choose_a_corner(size):
    phi, values = size * np.array([3.0, 1.0, 2.0, 4.0]), np.array([0.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(
        brmdp.dirichlet.cdf(phi, values, [0.5, 1.5, 2.5]), [0.3, 0.4, 0.6], rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(
        brmdp.dirichlet.quantile(phi, values, [0.2, 0.35, 0.5, 0.7]), values, rtol=0, atol=1e-9
    )


def lost_tails():
    """All combinations; each light successor meets each multiple once in the fast suite."""
    lights = (1e-29, 1e-25, 1e-19, 8e-18, 1e-17, 1e-15, 1e-12)
    multiples, others = (1e-1, 1e-4, 1e-11, 1e-30), ((0.0025, 0.0025), (0.34, 1.28), (0.5,))
    for i, j, k in np.ndindex(len(lights), len(multiples), len(others)):
        marks = () if (i + j + k) % len(others) == 0 else pytest.mark.slow
        yield pytest.param(lights[i], multiples[j], others[k], marks=marks)


@pytest.mark.long
@pytest.mark.parametrize(("light", "times", "others"), list(lost_tails()))
def test_a_tail_that_is_lost_beside_a_light_successor_is_in_the_bound(light, times, others):
    """Pr(P₀ > ½) ≥ φ₀·2^−b/b·0.9, where b is the sum of the others, and then X < 0.55.

    So every quantile of a level below that is less than 0.55 too.
    """
    rest = sum(others)
    level = times * light
    assert level < 0.9 * light * 0.5**rest / rest / (1.0 + light / rest)
    for measure in (dirichlet.EXACT, dirichlet.CVAR):
        q, error = evaluated(
            measure, [light, *others], [0.0, *np.linspace(1.0, 1.1, len(others))], level
        )
        assert q - error <= 0.55
