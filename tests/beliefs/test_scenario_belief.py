"""ScenarioBelief: Bayes' rule on finitely many kernels, by hand."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import brmdp
from oracles import planning as oracle

# Two states, one action; from state 0 the three scenarios move on with probability 1/4, 1/2 and 0.
MOVE = [Fraction(1, 4), Fraction(1, 2), Fraction(0)]
WEIGHTS = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]


def kernels():
    table = np.zeros((3, 2, 1, 2))
    for k, p in enumerate(MOVE):
        table[k, 0, 0] = [float(1 - p), float(p)]
        table[k, 1, 0] = [0.5, 0.5]
    return table


def three_kernels(weights=WEIGHTS):
    return brmdp.ScenarioBelief(kernels(), [float(w) for w in weights])


def random_scenarios(seed, n_scenarios=5, n_states=4, n_actions=2):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(n_states) * 0.7, size=(n_scenarios, n_states, n_actions))
    return (
        table,
        rng.dirichlet(np.ones(n_scenarios)),
        rng.normal(size=(n_states, n_actions, n_states)),
    )


def test_bayes_rule_by_hand():
    belief = three_kernels()
    weights = list(WEIGHTS)
    for t in (1, 0, 0, 1, 0):
        assert belief.observe(0, 0, t) is None
        likelihood = [p if t == 1 else 1 - p for p in MOVE]
        total = sum(w * f for w, f in zip(weights, likelihood, strict=True))
        weights = [w * f / total for w, f in zip(weights, likelihood, strict=True)]
        np.testing.assert_allclose(belief.weights, [float(w) for w in weights], rtol=1e-15)
    assert belief.weights[2] == 0.0
    assert belief.weights.sum() == pytest.approx(1.0, abs=1e-15)


def test_batch_equals_one_by_one():
    table, weights, _ = random_scenarios(0)
    one, many = (brmdp.ScenarioBelief(table, weights) for _ in range(2))
    rng = np.random.default_rng(1)
    data = [rng.integers(n, size=30) for n in (4, 2, 4)]
    for item in zip(*data, strict=True):
        one.observe(*item)
    assert many.observe(*data) is None
    assert one.weights.tobytes() == many.weights.tobytes()
    likelihood = np.prod(table[:, data[0], data[1], data[2]], axis=1)
    np.testing.assert_allclose(
        one.weights, weights * likelihood / (weights @ likelihood), rtol=1e-12
    )


def test_an_uninformative_observation_leaves_the_weights_bit_identical():
    # weights whose last bit would change if multiplied and divided by a common factor
    given = np.array([0.1, 0.2, 0.7])
    belief = brmdp.ScenarioBelief(kernels(), given)
    before = belief.weights.tobytes()
    for _ in range(100):
        belief.observe(1, 0, 0)
        belief.observe(1, 0, 1)
    assert belief.weights.tobytes() == before


def test_a_long_record_does_not_underflow():
    belief = three_kernels([Fraction(1, 2), Fraction(1, 2), 0])
    rng = np.random.default_rng(3)
    moves = (rng.random(20_000) < 0.25).astype(int)
    belief.observe(np.zeros(20_000, dtype=int), 0, moves)
    assert belief.weights[0] == pytest.approx(1.0)
    assert np.isfinite(belief.weights).all()
    np.testing.assert_allclose(belief.weights.sum(), 1.0, rtol=1e-14)


def test_an_impossible_transition_leaves_the_weights_unchanged():
    belief = three_kernels([0, 0, 1])
    before = belief.weights.tobytes()
    with pytest.raises(brmdp.ImpossibleTransitionError, match="state=0, action=0, next_state=1"):
        belief.observe(0, 0, 1)
    assert belief.weights.tobytes() == before
    belief = three_kernels()
    before = belief.weights.tobytes()
    stuck = np.zeros((2, 2, 1, 2))
    stuck[:, :, :, 0] = 1.0
    never = brmdp.ScenarioBelief(stuck, [0.5, 0.5])
    with pytest.raises(brmdp.ImpossibleTransitionError, match="state=1, action=0, next_state=1"):
        never.observe(1, 0, 1)
    np.testing.assert_array_equal(never.weights, [0.5, 0.5])


@pytest.mark.parametrize("bad", [(0, 0, 2), (0, 1, 0), (-1, 0, 0), (0, 0, 1.0)])
def test_a_failed_batch_leaves_the_weights_unchanged(bad):
    belief = three_kernels()
    belief.observe(0, 0, 1)
    before = belief.weights.tobytes()
    with pytest.raises(brmdp.InvalidInputError, match=r"state|action"):
        belief.observe(*bad)
    with pytest.raises(brmdp.InvalidInputError, match=r"state|action"):
        belief.observe([0, bad[0]], [0, bad[1]], [0, bad[2]])
    assert belief.weights.tobytes() == before


def test_an_impossible_observation_late_in_a_batch_leaves_the_weights_unchanged():
    belief = three_kernels([0, Fraction(1, 2), Fraction(1, 2)])
    table = kernels()
    table[1, 0, 0] = [0.0, 1.0]  # staying refutes scenario 1, moving refutes scenario 2
    belief = brmdp.ScenarioBelief(table, [0.0, 0.5, 0.5])
    before = belief.weights.tobytes()
    with pytest.raises(brmdp.ImpossibleTransitionError, match="state=0, action=0, next_state=1"):
        belief.observe([0, 0], [0, 0], [0, 1])
    assert belief.weights.tobytes() == before


def test_mean_is_the_weighted_kernel():
    table, weights, _ = random_scenarios(2)
    belief = brmdp.ScenarioBelief(table, weights)
    np.testing.assert_allclose(belief.mean(), np.einsum("k,ksat->sat", weights, table), rtol=1e-14)
    np.testing.assert_allclose(belief.mean("csr").toarray().reshape(4, 2, 4), belief.mean(), rtol=0)


def test_draws_are_scenarios_by_weight():
    table, weights, _ = random_scenarios(3)
    belief = brmdp.ScenarioBelief(table, weights)
    n = 4000
    draws = belief.sample(n, rng=np.random.default_rng(0))
    assert draws.shape == (n, 4, 2, 4)
    matches = np.array(
        [[np.allclose(draw, kernel, atol=1e-15) for kernel in table] for draw in draws[:500]]
    )
    assert (matches.sum(axis=1) == 1).all()  # all rows of a draw come from one scenario
    chosen = np.array([np.abs(table - draw).sum(axis=(1, 2, 3)).argmin() for draw in draws])
    shares = np.bincount(chosen, minlength=5) / n
    assert (np.abs(shares - weights) <= 4.5 * np.sqrt(weights * (1 - weights) / n)).all()


def test_kernels_may_be_given_in_any_form_with_different_supports():
    table = kernels()
    mdp = brmdp.TabularMDP(table[1], np.zeros((2, 1)), 0.9)
    mixed = brmdp.ScenarioBelief(
        [table[0], mdp, sparse.csr_array(table[2].reshape(2, 2))], [0.5, 0.25, 0.25]
    )
    np.testing.assert_array_equal(mixed.mean(), three_kernels().mean())
    assert (mixed.n_states, mixed.n_actions, mixed.n_scenarios) == (2, 1, 3)
    assert not mixed.rows_independent
    mixed.observe(0, 0, 1)
    np.testing.assert_allclose(mixed.weights, [0.5, 0.5, 0.0])


def test_copy_is_independent():
    original = three_kernels()
    twin = original.copy()
    twin.observe(0, 0, 1)
    np.testing.assert_array_equal(original.weights, [0.5, 0.25, 0.25])
    np.testing.assert_allclose(twin.weights, [0.5, 0.5, 0.0])


def test_later_changes_of_the_inputs_do_not_reach_the_posterior():
    table, weights, _ = random_scenarios(4)
    belief = brmdp.ScenarioBelief(table, weights)
    mean = belief.mean()
    table[:] = 0.25
    weights[:] = 0.2
    np.testing.assert_array_equal(belief.mean(), mean)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.93])
def test_plans_match_value_iteration_with_the_weighted_quantile(seed, alpha):
    table, weights, rewards = random_scenarios(seed)
    belief = brmdp.ScenarioBelief(table, weights)

    def quantile(s, a, w):
        return oracle.weighted_left_quantile(table[:, s, a] @ w, weights, alpha)

    def cvar(s, a, w):
        return oracle.weighted_lower_cvar(table[:, s, a] @ w, weights, alpha)

    for risk, functional in ((brmdp.Quantile(alpha), quantile), (brmdp.CVaR(alpha), cvar)):
        solution = brmdp.plan(belief, rewards, 0.8, risk=risk)
        truth = oracle.value_iteration(functional, rewards, 0.8, tolerance=1e-11)
        np.testing.assert_allclose(solution.values, truth, atol=solution.error_bound + 1e-10)
        assert solution.error_bound <= 1e-8


@pytest.mark.parametrize("mu", [0.1, 0.3, 0.7, 0.9, 1 / 3])
def test_a_level_at_an_atom_is_reached_by_it(mu):
    """Pr(bad) = 1 − μ, so at α = 1 − μ the left quantile is the bad value.

    Just above that level it is the good value.
    """
    table = np.zeros((2, 3, 1, 3))
    table[0, 0, 0, 1] = table[1, 0, 0, 2] = (
        1.0  # scenario 0 (bad) leads to 1, scenario 1 (good) to 2
    )
    table[:, 1, 0, 1] = table[:, 2, 0, 2] = 1.0
    rewards = np.zeros((3, 1, 3))
    rewards[0, 0, 2] = 1.0
    belief = brmdp.ScenarioBelief(table, [1 - mu, mu])
    for level, value in ((1 - mu, 0.0), (1 - mu - 1e-6, 0.0), (1 - mu + 1e-6, 1.0)):
        found = brmdp.plan(belief, rewards, 0.5, risk=brmdp.Quantile(level)).values[0]
        assert found == pytest.approx(value, abs=1e-8)


def test_save_and_load_are_bit_identical(tmp_path):
    table, weights, _ = random_scenarios(5)
    belief = brmdp.ScenarioBelief(table, weights)
    belief.observe([0, 1, 2], [0, 1, 0], [3, 2, 1])
    belief.save(tmp_path / "scenarios.npz")
    loaded = brmdp.ScenarioBelief.load(tmp_path / "scenarios.npz")
    assert loaded.weights.tobytes() == belief.weights.tobytes()
    assert loaded.mean("flat").tobytes() == belief.mean("flat").tobytes()
    np.testing.assert_array_equal(loaded.scenario_entries, belief.scenario_entries)
    for b in (belief, loaded):
        b.observe(3, 1, 0)
    assert loaded.weights.tobytes() == belief.weights.tobytes()
    np.testing.assert_array_equal(loaded.sample(9, rng=0), belief.sample(9, rng=0))
