"""Values of the continuous lake against other discretisations, quadrature and rollouts."""

import itertools

import numpy as np
import pytest

import brmdp
from brmdp.continuous import oracle
from brmdp.continuous.lake import CENTRES, GOAL, HOLES, ORDINARY, TRUTH, LakeParameters, cells
from brmdp.continuous.oracle import LakeValues, optimal_values, policy_nodes, policy_values
from oracles import continuous_lake as slow

pytestmark = pytest.mark.long

DISCOUNT = 0.8
OTHERS = [
    LakeParameters(np.array([0.6, 0.1, 0.3]), np.array(0.35), np.array(0.4)),
    LakeParameters(np.array([0.2, 0.3, 0.5]), np.array(0.9), np.array(2.2)),
    LakeParameters(np.array([1.0, 0.0, 0.0]), np.array(0.0), np.array(40.0)),
]


@pytest.fixture(scope="module")
def best():
    return optimal_values(DISCOUNT)


def random_states(n, seed, cell=None):
    states = 4 * np.random.default_rng(seed).random((n, 2))
    return states if cell is None else states[np.isin(cells(states), cell)]


class Waves:
    """Action values: optimal ones of a coarse grid, or none, plus random smooth waves."""

    def __init__(self, amplitude, seed, around=None):
        rng = np.random.default_rng(seed)
        self.frequencies = 2.0 * rng.standard_normal((4, 12, 2))
        self.phases = rng.uniform(0, 2 * np.pi, (4, 12))
        self.amplitude, self.around = amplitude, around

    def __call__(self, states):
        waves = np.cos(np.einsum("afk,nk->naf", self.frequencies, states) + self.phases).sum(
            axis=2
        ) / np.sqrt(6)
        return self.amplitude * waves + (
            0.0 if self.around is None else self.around.action_values(states)
        )


class Network:
    """Action values of a random network of the paper's shape, on its features."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        sizes = (20, 64, 64, 4)
        self.layers = [
            (rng.standard_normal((a, b)) * np.sqrt(2 / a), 0.3 * rng.standard_normal(b))
            for a, b in itertools.pairwise(sizes)
        ]

    def __call__(self, states):
        cell = cells(states)
        signals = np.hstack(
            [
                states / 2 - 1,
                np.eye(16)[cell],
                np.isin(cell, HOLES)[:, None],
                (cell == GOAL)[:, None],
            ]
        )
        for weights, offsets in self.layers[:-1]:
            signals = np.maximum(signals @ weights + offsets, 0.0)
        return signals @ self.layers[-1][0] + self.layers[-1][1]


def right(states):
    return np.ones(len(states), dtype=int)


# --- the optimum ----------------------------------------------------------------------------------


def test_another_discretisation_agrees_with_the_optimum(best):
    # squares 3 times smaller share midpoints, and the error is of second order, so that of
    # (9 fine − coarse)/8 is of higher order
    states, coarse = slow.values_on_squares(12, DISCOUNT)
    fine = slow.values_on_squares(36, DISCOUNT)[1].reshape(144, 144)[1::3, 1::3].ravel()
    found = best.at(states)
    assert np.abs(coarse - found).max() > 1e-3  # each alone is far off
    assert np.abs(fine - found).max() > 1e-4
    np.testing.assert_allclose(found, (9 * fine - coarse) / 8, rtol=0, atol=1e-5)
    assert best.error <= 1e-5


def test_doubling_the_grid_quarters_the_error(best, monkeypatch):
    monkeypatch.setattr(oracle, "SLACK", 1e-4)  # so that only the grid's error is left
    elsewhere = random_states(300, 1)
    sizes, errors = [], []
    for accuracy in (1e-2, 1e-3, 1e-4):
        found = optimal_values(DISCOUNT, accuracy=accuracy)
        sizes.append(len(found.nodes) // 4 - 1)
        errors.append(np.abs(found.at(CENTRES) - best.at(CENTRES)).max())
        assert errors[-1] < found.error <= accuracy
        assert np.abs(found.at(elsewhere) - best.at(elsewhere)).max() < found.error
    assert sizes == [16, 32, 64]
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 2.0, atol=0.1)
    assert len(best.nodes) // 4 - 1 == 256
    assert errors[-1] / 4**2 < 2e-6  # what this leaves on the grid of ``best``


def test_the_bellman_equation_holds_off_the_grid(best):
    states = np.concatenate([random_states(40, 2, ORDINARY)[:6], random_states(60, 3, HOLES)[:4]])
    for state, value, action_values in zip(
        states, best.at(states), best.action_values(states), strict=True
    ):
        backups = [slow.backup(best.at, state, action, DISCOUNT) for action in range(4)]
        np.testing.assert_allclose(action_values, backups, rtol=0, atol=5e-6)
        assert value == pytest.approx(max(backups), abs=5e-6)
    np.testing.assert_array_equal(best.actions(states), best.action_values(states).argmax(axis=1))


def test_the_goal_restarts_uniformly(best):
    fractions = (np.arange(12) + 0.5) / 12
    inside = np.stack(np.meshgrid(fractions, fractions), axis=-1).reshape(-1, 2)
    mean = np.mean([best.at(inside + CENTRES[cell] - 0.5).mean() for cell in ORDINARY])
    goal = best.at([[3.5, 3.5], [3.0, 3.0], [4.0, 4.0], [3.1, 3.9]])
    assert np.ptp(goal) == 0.0
    assert goal[0] == pytest.approx(DISCOUNT * mean, abs=1e-4)  # the midpoint rule
    np.testing.assert_array_equal(best.action_values([[3.5, 3.5]]), [[goal[0]] * 4])


def test_rollouts_of_the_best_policy_earn_its_values(best):
    coarse = optimal_values(DISCOUNT, accuracy=1e-3)
    for number, start in enumerate([(0.5, 0.5), (2.5, 2.2), (1.3, 1.6), (3.5, 3.5)]):
        mean, deviation = slow.rollouts(
            coarse.actions, start, DISCOUNT, 3000, 40, np.random.default_rng(number)
        )
        assert deviation < 8e-3
        assert mean == pytest.approx(best.at([start])[0], abs=4 * deviation)


@pytest.mark.slow
def test_long_rollouts_of_the_best_policy(best):
    coarse = optimal_values(DISCOUNT, accuracy=1e-3)
    for number, start in enumerate(CENTRES[::2]):
        mean, deviation = slow.rollouts(
            coarse.actions, start, DISCOUNT, 40_000, 50, np.random.default_rng(number)
        )
        assert deviation < 2.2e-3
        assert mean == pytest.approx(best.at([start])[0], abs=4 * deviation)


def test_without_a_future_only_the_next_step_counts():
    found = optimal_values(0.0)
    # Right from here always lands in the goal if it is taken; from (2.1, 3.5) only lengths above
    # 0.9 reach it
    states = [(2.5, 3.5), (2.1, 3.5), (3.5, 2.5), (0.5, 0.5), (3.5, 3.5)]
    np.testing.assert_allclose(found.at(states), [0.5, 0.5 * 0.7, 0.2, 0.0, 0.0], atol=1e-5)
    np.testing.assert_array_equal(found.actions(states[:3]), [1, 1, 3])


@pytest.mark.parametrize("parameters", OTHERS)
def test_other_models(parameters):
    found = optimal_values(DISCOUNT, parameters=parameters, accuracy=1e-4)
    model = {
        "slip": parameters.slip,
        "mobility": float(parameters.mobility),
        "spread": float(parameters.spread),
    }
    gaps = []
    for n in (8, 32):
        states, values = slow.values_on_squares(n, DISCOUNT, **model)
        gaps.append(np.abs(values - found.at(states)).max())
    assert gaps[1] < 6e-4
    assert gaps[1] < gaps[0] / 4


def test_other_discounts():
    for discount in (0.3, 0.95):
        found = optimal_values(discount, accuracy=1e-3)
        states, values = slow.values_on_squares(20, discount)
        assert np.abs(values - found.at(states)).max() < 5e-3 * found.values.max()


def test_an_accuracy_out_of_reach_is_refused(monkeypatch):
    monkeypatch.setattr(oracle, "FINEST", 32)
    with pytest.raises(
        brmdp.ConvergenceError, match=r"accuracy must be at least 0\.0003.*got 1e-12"
    ) as caught:
        optimal_values(DISCOUNT, accuracy=1e-12)
    assert isinstance(caught.value.solution, LakeValues)
    assert caught.value.solution.error < 5e-4


# --- policies -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finer():
    """Values of a policy with everything at least twice as fine, including its own nodes."""

    def evaluate(greedy, states):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(oracle, "POLICY_NODES", 64)
            patch.setattr(oracle, "POLICY_FINEST", 128)
            patch.setattr(oracle, "RAY", 48)
            policy_nodes.cache_clear()
            found = policy_values(greedy, DISCOUNT, accuracy=1e-7).at(states)
        policy_nodes.cache_clear()
        return found

    return evaluate


def test_nodes():
    nodes = policy_nodes()
    assert nodes.shape == (15 * 33**2, 2)
    assert nodes is policy_nodes()
    assert not nodes.flags.writeable
    assert (np.bincount(cells(nodes), minlength=16) == [33**2] * 15 + [0]).all()
    # also in single precision they lie in their cells
    np.testing.assert_array_equal(cells(nodes.astype(np.float32)), cells(nodes))


def test_the_best_policy_has_the_optimal_values(best):
    states = random_states(100, 4)
    for greedy in (best.action_values, best.actions):
        found = policy_values(greedy, DISCOUNT)
        assert found.error < 1e-3
        np.testing.assert_allclose(found.at(states), best.at(states), rtol=0, atol=found.error)
        np.testing.assert_array_equal(found.actions(states), best.actions(states))


def test_a_constant_policy_against_another_discretisation():
    states, coarse = slow.values_on_squares(12, DISCOUNT, right)
    fine = slow.values_on_squares(36, DISCOUNT, right)[1].reshape(144, 144)[1::3, 1::3].ravel()
    found = policy_values(right, DISCOUNT, accuracy=1e-4)
    np.testing.assert_allclose(found.at(states), (9 * fine - coarse) / 8, rtol=0, atol=2e-4)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_wavy_policy_against_another_discretisation(seed):
    waves = Waves(1.0, seed)
    found = policy_values(waves, DISCOUNT)
    states, values = slow.values_on_squares(
        40, DISCOUNT, lambda states: waves(states).argmax(axis=1)
    )
    chosen = np.random.default_rng(0).choice(len(states), 400, replace=False)
    gaps = np.abs(found.at(states[chosen]) - values[chosen])
    # the squares of 1/40 put borders off by up to 1/80 of the 1/2 that lengths range over, times
    # jumps of about 0.1
    assert np.sqrt((gaps**2).mean()) < 1.5e-3
    assert gaps.max() < 1e-2


def assert_accurate(greedy, finer, most, seed):
    """At random states, errors are within ``most`` and near the stated error, with a small rms."""
    states = random_states(150, seed)
    found = policy_values(greedy, DISCOUNT)
    gaps = np.abs(found.at(states) - finer(greedy, states))
    assert gaps.max() <= most
    assert gaps.max() <= 2.5 * found.error
    assert np.sqrt((gaps**2).mean()) <= 2e-4


@pytest.mark.parametrize("amplitude", [0.01, 0.03])
def test_policies_near_the_best_within_one_thousandth(best, finer, amplitude):
    assert_accurate(Waves(amplitude, 5, optimal_values(DISCOUNT, accuracy=1e-3)), finer, 1e-3, 6)


@pytest.mark.parametrize("seed", [0, 1])
def test_policies_of_networks_within_one_thousandth(finer, seed):
    assert_accurate(Network(seed), finer, 1e-3, 7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 10))
def test_more_policies_of_networks(finer, seed):
    assert_accurate(Network(seed), finer, 1e-3, 7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("amplitude", [0.01, 0.03, 0.1, 0.3])
def test_more_policies_around_the_best(finer, amplitude, seed):
    around = optimal_values(DISCOUNT, accuracy=1e-3)
    assert_accurate(Waves(amplitude, seed, around), finer, 1e-3 if amplitude < 0.1 else 3e-3, 8)


def test_bare_actions_cost_accuracy_and_say_so(finer):
    network, states = Network(0), random_states(200, 9)
    found = policy_values(lambda states: network(states).argmax(axis=1), DISCOUNT)
    gaps = np.abs(found.at(states) - finer(network, states))
    assert gaps.max() <= found.error
    assert np.sqrt((gaps**2).mean()) < 5e-4
    assert len(found.nodes) == 4 * 33


def test_rollouts_of_a_policy_earn_its_values():
    waves = Waves(1.0, 3)
    found = policy_values(waves, DISCOUNT)
    for number, start in enumerate([(0.5, 0.5), (2.5, 2.2), (2.6, 3.4), (1.3, 1.6)]):
        mean, deviation = slow.rollouts(
            lambda states: waves(states).argmax(axis=1),
            start,
            DISCOUNT,
            3000,
            40,
            np.random.default_rng(number),
        )
        assert deviation < 8e-3
        assert mean == pytest.approx(found.at([start])[0], abs=4 * deviation)


def test_the_policys_own_equation_holds_off_the_grid():
    waves = Waves(1.0, 4)
    found = policy_values(waves, DISCOUNT)
    states = np.concatenate([random_states(40, 2, ORDINARY)[:5], random_states(60, 3, HOLES)[:3]])
    for state, value in zip(states, found.at(states), strict=True):
        action = int(waves(state[None]).argmax())
        # many pieces, because borders may lie anywhere
        backup = slow.backup(found.at, state, action, DISCOUNT, pieces=8, points=4)
        assert value == pytest.approx(backup, abs=1e-3)


def test_a_policy_is_never_better_than_the_best(best):
    states = random_states(500, 10)
    for greedy in (Network(3), Waves(1.0, 6), right):
        found = policy_values(greedy, DISCOUNT)
        assert (found.at(states) <= best.at(states) + found.error).all()


def test_results_depend_on_the_policy_alone():
    network, states = Network(4), random_states(50, 11)
    first = policy_values(network, DISCOUNT)
    policy_values(Waves(1.0, 7), DISCOUNT)
    again = policy_values(network, DISCOUNT)
    assert first.error == again.error
    np.testing.assert_array_equal(first.values, again.values)
    np.testing.assert_array_equal(first.at(states), again.at(states))


def test_the_policy_is_asked_about_the_nodes_once():
    asked = []

    def greedy(states):
        asked.append(states)
        return right(states)

    found = policy_values(greedy, DISCOUNT)
    assert len(asked) == 1
    assert asked[0] is policy_nodes()
    found.at(random_states(5, 12))
    assert sum(map(len, asked[1:])) < 80 * 5


def test_many_states_are_treated_in_blocks(monkeypatch):
    found = policy_values(Waves(1.0, 8), DISCOUNT)
    states = random_states(101, 13)
    whole = found.at(states)
    monkeypatch.setattr(oracle, "BLOCK", 10)
    np.testing.assert_allclose(found.at(states), whole, rtol=0, atol=1e-14)
    assert found.at(np.empty((0, 2))).shape == (0,)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "culprit"),
    [
        ([[4.1, 0.0]], r"states must lie in \[0, 4\]².*4\.1.*index 0"),
        ([[0.0, 0.0], [np.nan, 0.0]], "states must be finite"),
        ([0.5, 0.5], r"states must have shape \(n, 2\)"),
        ([[0.5, 0.5, 0.5]], r"states must have shape \(n, 2\)"),
        ("here", "states must be"),
    ],
)
def test_bad_states(best, states, culprit):
    for method in (best.at, best.actions, best.action_values):
        with pytest.raises(brmdp.InvalidInputError, match=culprit):
            method(states)


@pytest.mark.parametrize(
    ("settings", "culprit"),
    [
        ({"discount": 1.0}, r"discount must lie in \[0, 1\)"),
        ({"discount": np.nan}, "discount"),
        ({"accuracy": 0.0}, "accuracy must be a positive finite number"),
        ({"accuracy": np.nan}, "accuracy"),
        ({"parameters": (0.5, 0.2)}, "parameters must be LakeParameters"),
        (
            {"parameters": TRUTH._replace(spread=np.array(-1.0))},
            r"parameters\.spread must be a positive number",
        ),
    ],
)
def test_bad_settings(settings, culprit):
    settings = {"discount": DISCOUNT} | settings
    with pytest.raises(brmdp.InvalidInputError, match=culprit):
        optimal_values(**settings)
    with pytest.raises(brmdp.InvalidInputError, match=culprit):
        policy_values(right, **settings)


@pytest.mark.parametrize(
    ("answer", "culprit"),
    [
        (lambda n: np.full(n, 4), r"the result of greedy must lie in 0\.\.3; got 4"),
        (lambda n: np.full(n, -1), r"the result of greedy must lie in 0\.\.3; got -1"),
        (lambda n: np.full(n, 1.0), r"the result of greedy must be integers"),
        (
            lambda n: np.zeros((n, 3)),
            r"the result of greedy must have shape \(16335,\) or \(16335, 4\).*\(16335, 3\)",
        ),
        (lambda n: np.zeros(n - 1, dtype=int), "the result of greedy must have shape"),
        (lambda n: np.full((n, 4), np.nan), "the result of greedy must be finite"),
        (lambda n: None, "the result of greedy must have shape"),
    ],
)
def test_bad_answers_of_a_policy(answer, culprit):
    with pytest.raises(brmdp.InvalidInputError, match=culprit):
        policy_values(lambda states: answer(len(states)), DISCOUNT)


def test_a_policy_must_be_a_function():
    with pytest.raises(brmdp.InvalidInputError, match="greedy must be a function"):
        policy_values(np.zeros(16), DISCOUNT)
