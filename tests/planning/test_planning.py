"""One solver for every measure: Newton, value iteration and plain loops agree."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse, stats

import brmdp
from brmdp.planning import bellman, certify_nested, fixed_point
from brmdp.planning.bellman import DENSE_STATES
from oracles import planning
from problems import (
    MEASURES,
    RANDOM,
    WORLDS,
    Problem,
    known,
    level_array,
    measure,
    problem,
    random_kernel,
    solved,
)

KINDS = [f"{kind}-{seed}" for kind in RANDOM for seed in (1, 2, 3)]
METHODS = ("newton", "value-iteration")
TIGHT = 1e-9


def policy_values(kernel, rewards, discount, policy):
    """V^π = (I − γP_π)⁻¹ r_π."""
    states = np.arange(kernel.shape[0])
    rows = kernel[states, policy]
    expected = np.einsum("st,st->s", rows, rewards[states, policy])
    return np.linalg.solve(np.eye(len(states)) - discount * rows, expected)


# --- agreement ------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("kind", [*KINDS, *WORLDS])
@pytest.mark.parametrize("name", MEASURES)
def test_newton_and_value_iteration_agree(kind, name):
    case = problem(kind)
    newton, sweeps = (
        case.plan(measure(name, case.shape), tolerance=TIGHT, method=method) for method in METHODS
    )
    for got in (newton, sweeps):
        assert got.status == solved(name)
        assert got.error_bound <= TIGHT
        assert got.values.shape == (case.n_states,)
        np.testing.assert_array_equal(got.values, got.q_values.max(axis=1))
        assert case.admissible[np.arange(case.n_states), got.policy].all()
    assert np.abs(newton.values - sweeps.values).max() <= newton.error_bound + sweeps.error_bound
    assert newton.iterations < sweeps.iterations


@pytest.mark.parametrize("kind", [*KINDS, *WORLDS])
@pytest.mark.parametrize("name", MEASURES)
def test_the_plan_is_worth_what_it_says(kind, name):
    """Evaluating the returned policy gives the plan's values, by both methods."""
    case = problem(kind)
    got = case.plan(measure(name, case.shape), tolerance=TIGHT)
    for method in METHODS:
        own = case.evaluate(got.policy, measure(name, case.shape), tolerance=TIGHT, method=method)
        assert own.status == solved(name)
        loss = got.values - own.values
        assert loss.max() <= got.policy_gap + got.error_bound + own.error_bound
        assert loss.min() >= -got.error_bound - own.error_bound
        np.testing.assert_array_equal(own.policy, got.policy)


@pytest.mark.parametrize("kind", [*KINDS, *WORLDS])
@pytest.mark.parametrize("name", MEASURES)
def test_warm_start_gives_the_same_fixed_point(kind, name):
    case = problem(kind)
    cold = case.plan(measure(name, case.shape), tolerance=TIGHT)
    noise = np.random.default_rng(1).normal(scale=3.0, size=case.n_states)
    for initial in (cold, cold.values + noise, np.full(case.n_states, 1e3)):
        kept = np.array(initial.values if initial is cold else initial)
        warm = case.plan(measure(name, case.shape), tolerance=TIGHT, initial=initial)
        assert np.abs(warm.values - cold.values).max() <= warm.error_bound + cold.error_bound
        np.testing.assert_array_equal(initial.values if initial is cold else initial, kept)
    assert (
        case.plan(measure(name, case.shape), tolerance=TIGHT, initial=cold).iterations
        <= cold.iterations
    )


@pytest.mark.parametrize("kind", [*KINDS, "riverswim"])
@pytest.mark.parametrize("name", MEASURES)
def test_the_kernel_solves_the_evaluation_equation(kind, name):
    """V = c + γP̂V for the risk-adjusted kernel, with c = q − γP̂V.

    It holds exactly if the measure is w·row.
    """
    case = problem(kind)
    got = case.plan(measure(name, case.shape), tolerance=1e-11 if "cvar" not in name else TIGHT)
    kernel = got.kernel()
    assert kernel.shape == (case.n_states, case.n_states)
    assert (kernel >= 0).all()
    np.testing.assert_allclose(kernel.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(got.kernel("csr").toarray(), kernel)
    states = np.arange(case.n_states)
    rows = brmdp.backup(
        case.belief, case.rewards, case.discount, got.values, risk=measure(name, case.shape)
    ).kernel
    np.testing.assert_allclose(kernel, rows[states, got.policy], atol=1e-7)
    expected = np.einsum("st,st->s", kernel, case.rewards[states, got.policy])
    solved = np.linalg.solve(np.eye(case.n_states) - case.discount * kernel, expected)
    # w·row is the value itself, because w·E[P | w·P = q] = q and likewise for the other measures
    np.testing.assert_allclose(solved, got.values, atol=1e-7)


# --- the risk-neutral problem ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("method", METHODS)
def test_solve_against_the_oracle(seed, method):
    case = known(seed)
    got = brmdp.solve(case.belief, tolerance=1e-10, method=method)
    kernel = case.belief.kernel()
    wanted = planning.value_iteration(planning.mean_risk(kernel), case.rewards, case.discount)
    np.testing.assert_allclose(got.values, wanted, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        policy_values(kernel, case.rewards, 0.8, got.policy), wanted, rtol=0, atol=1e-9
    )


@pytest.mark.long
@pytest.mark.parametrize("risk", [None, 0.7, 0.9])
def test_solve_the_papers_worlds(risk):
    for mdp, kernel, rewards in (
        (
            brmdp.envs.frozenlake(risk),
            planning.frozenlake_kernel(risk),
            planning.frozenlake_rewards(),
        ),
        (brmdp.envs.riverswim(6), planning.riverswim_kernel(6), planning.riverswim_rewards(6)),
    ):
        wanted = planning.value_iteration(planning.mean_risk(kernel), rewards, mdp.discount, 1e-12)
        got = brmdp.solve(mdp, tolerance=1e-10)
        np.testing.assert_allclose(got.values, wanted, rtol=0, atol=2e-10)
        np.testing.assert_allclose(
            brmdp.evaluate_in_mdp(mdp, got.policy), wanted, rtol=0, atol=1e-9
        )
    assert (brmdp.solve(brmdp.envs.riverswim(6)).policy == 1).all()


@pytest.mark.parametrize("seed", range(4))
def test_evaluate_against_a_linear_solve(seed):
    case = known(seed)
    policy = np.random.default_rng(seed).integers(0, 3, case.n_states)
    wanted = policy_values(case.belief.kernel(), case.rewards, case.discount, policy)
    np.testing.assert_allclose(
        brmdp.evaluate_in_mdp(case.belief, policy), wanted, rtol=0, atol=1e-10
    )
    scaled = brmdp.TabularMDP(case.belief.kernel(), 1e9 * case.rewards, case.discount)
    np.testing.assert_allclose(brmdp.evaluate_in_mdp(scaled, policy), 1e9 * wanted, rtol=1e-10)


@pytest.mark.slow  # quantecon compiles for seconds
@pytest.mark.filterwarnings("ignore")
def test_solve_against_quantecon():
    markov = pytest.importorskip("quantecon.markov")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        kernel, rewards = random_kernel(rng, 12, 4, 0.5), rng.normal(size=(12, 4, 12))
        expected = np.einsum("sat,sat->sa", kernel, rewards)
        theirs = markov.DiscreteDP(expected, kernel, 0.95).solve(method="policy_iteration")
        ours = brmdp.solve(brmdp.TabularMDP(kernel, rewards, 0.95), tolerance=1e-10)
        np.testing.assert_allclose(ours.values, theirs.v, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(ours.policy, theirs.sigma)


def test_rewards_in_every_form():
    case = problem("dense-1")
    rng = np.random.default_rng(2)
    simple = rng.normal(size=case.shape)
    full = np.repeat(simple[:, :, None], case.n_states, axis=2)
    plans = [
        brmdp.plan(case.belief, rewards, 0.8, risk=brmdp.Quantile(0.2), tolerance=1e-10).values
        for rewards in (
            simple,
            full,
            sparse.csr_array(full.reshape(-1, case.n_states)),
            full.astype(np.float32),
        )
    ]
    for other in plans[1:3]:
        np.testing.assert_allclose(other, plans[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(plans[3], plans[0], rtol=0, atol=1e-6)


def test_plans_change_none_of_their_inputs():
    case = problem("sparse-2")
    rewards = sparse.csr_array(case.rewards.reshape(-1, case.n_states))
    phi, data = case.belief.concentration(), rewards.data.copy()
    levels = level_array(case.shape)
    brmdp.plan(case.belief, rewards, 0.8, risk=brmdp.Quantile(levels))
    certify_nested(case.belief, rewards, 0.8, coverage_samples=10, rng=1)
    np.testing.assert_array_equal(case.belief.concentration(), phi)
    np.testing.assert_array_equal(rewards.data, data)
    np.testing.assert_array_equal(levels, level_array(case.shape))


def test_a_known_mdp_does_not_share_memory_with_its_arguments():
    rng = np.random.default_rng(3)
    kernel, rewards = rng.dirichlet(np.ones(3), (3, 2)), rng.normal(size=(3, 2, 3))
    mdp = brmdp.TabularMDP(kernel, rewards, 0.9)
    before = brmdp.solve(mdp).values.copy()
    rewards += 1.0
    kernel[:] = 1 / 3
    np.testing.assert_array_equal(brmdp.solve(mdp).values, before)


def test_a_known_mdp_leaves_a_sparse_argument_alone():
    rng = np.random.default_rng(3)
    matrix = sparse.csr_array(rng.dirichlet(np.ones(3), 6))
    stored = sparse.csr_array(rng.normal(size=(6, 3)))
    other = brmdp.TabularMDP(matrix, stored, 0.9)
    before = brmdp.solve(other).values.copy()
    stored.data += 1.0
    np.testing.assert_array_equal(brmdp.solve(other).values, before)


# --- special sizes --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", MEASURES)
def test_discount_zero_is_one_backup(name, method):
    case = problem("dense-1")
    got = brmdp.plan(case.belief, case.rewards, 0.0, risk=measure(name, case.shape), method=method)
    once = brmdp.backup(case.belief, case.rewards, 0.0, np.zeros(4), risk=measure(name, case.shape))
    np.testing.assert_allclose(got.values, once.q_values.max(axis=1), rtol=0, atol=1e-12)
    assert got.status == solved(name)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", MEASURES)
def test_one_state(name, method):
    belief = brmdp.DirichletBelief(np.array([[[2.0], [0.5]]]))
    got = brmdp.plan(
        belief,
        np.array([[1.0, 3.0]]),
        0.9,
        risk=measure(name, (1, 2)),
        method=method,
        tolerance=1e-9,
    )
    np.testing.assert_allclose(got.values, [30.0], rtol=0, atol=1e-8)
    assert got.policy.tolist() == [1]
    np.testing.assert_array_equal(got.kernel(), [[1.0]])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", MEASURES)
def test_one_action_is_an_evaluation(name, method):
    rng = np.random.default_rng(5)
    belief = brmdp.DirichletBelief(rng.uniform(0.5, 3, (4, 1, 4)))
    rewards = rng.normal(size=(4, 1, 4))
    risk = (measure(name, (4, 1)) for _ in range(2))
    got = brmdp.plan(belief, rewards, 0.8, risk=next(risk), method=method)
    own = brmdp.evaluate_under_belief(
        belief, rewards, 0.8, np.zeros(4, dtype=int), risk=next(risk), method=method
    )
    np.testing.assert_allclose(got.values, own.values, rtol=0, atol=2e-8)
    assert not got.tied.any()


def test_constant_rewards_have_constant_value():
    for name in MEASURES:
        case = problem("dense-1")
        got = brmdp.plan(case.belief, np.ones(case.shape), 0.8, risk=measure(name, case.shape))
        np.testing.assert_allclose(got.values, 5.0, rtol=0, atol=1e-8)
        assert got.tied.all()


def test_discount_near_one():
    case = problem("dense-1")
    got = brmdp.plan(case.belief, case.rewards, 0.9999, risk=brmdp.Quantile(0.2), tolerance=1e-6)
    assert got.status == "converged"
    q_values = brmdp.backup(
        case.belief, case.rewards, 0.9999, got.values, risk=brmdp.Quantile(0.2)
    ).q_values
    assert np.abs(q_values.max(axis=1) - got.values).max() <= 1e-6


# --- large sparse problems ------------------------------------------------------------------------


def large(n_states=900, n_actions=2, width=4, seed=0):
    rng = np.random.default_rng(seed)
    n_pairs = n_states * n_actions
    columns = np.stack([rng.choice(n_states, width, replace=False) for _ in range(n_pairs)])
    pointers = np.arange(n_pairs + 1) * width
    phi = sparse.csr_array(
        (rng.uniform(0.5, 5, n_pairs * width), columns.ravel(), pointers), (n_pairs, n_states)
    )
    return brmdp.DirichletBelief(phi), rng.normal(size=(n_states, n_actions))


@pytest.mark.long
@pytest.mark.parametrize("name", ["mean", "quantile-array", "cvar"])
def test_beyond_dense_elimination(name):
    """The iterative path, against value iteration and hand-written sweeps of the operator."""
    belief, rewards = large()
    assert belief.n_states > DENSE_STATES
    levels = measure(name, rewards.shape)
    tolerance = 1e-6
    newton = brmdp.plan(belief, rewards, 0.8, risk=levels, tolerance=tolerance)
    sweeps = brmdp.plan(
        belief, rewards, 0.8, risk=levels, tolerance=tolerance, method="value-iteration"
    )
    assert newton.status == sweeps.status == "converged"
    assert np.abs(newton.values - sweeps.values).max() <= newton.error_bound + sweeps.error_bound
    assert newton.iterations < sweeps.iterations / 3
    own = brmdp.evaluate_under_belief(
        belief, rewards, 0.8, newton.policy, risk=levels, tolerance=tolerance
    )
    assert (
        newton.values - own.values
    ).max() <= newton.policy_gap + newton.error_bound + own.error_bound
    assert newton.kernel("csr").shape == (900, 900)
    np.testing.assert_allclose(newton.kernel("csr").sum(axis=1), 1.0, atol=1e-12)


def test_large_risk_neutral_against_plain_value_iteration():
    belief, rewards = large(seed=1)
    mdp = brmdp.TabularMDP(belief.mean("csr"), rewards, 0.95)
    got = brmdp.solve(mdp, tolerance=1e-9)
    kernel, values = belief.mean("csr"), np.zeros(900)
    for _ in range(600):
        values = (rewards + 0.95 * (kernel @ values).reshape(rewards.shape)).max(axis=1)
    np.testing.assert_allclose(got.values, values, rtol=0, atol=2e-9)
    greedy = rewards + 0.95 * (kernel @ values).reshape(rewards.shape)
    np.testing.assert_array_equal(got.policy, greedy.argmax(axis=1))


def test_iterative_path_of_a_slowly_mixing_chain():
    """A deterministic ring with one reward.

    Value spreads one state per sweep, which is hard for Krylov methods.
    """
    n = 700
    columns = np.stack([(np.arange(n) + 1) % n, np.arange(n)], axis=1).ravel()
    kernel = sparse.csr_array((np.ones(2 * n), columns, np.arange(2 * n + 1)), (2 * n, n))
    rewards = np.zeros((n, 2))
    rewards[0] = 1.0
    got = brmdp.solve(brmdp.TabularMDP(kernel, rewards, 0.99), tolerance=1e-8)
    distance = (n - np.arange(n)) % n
    np.testing.assert_allclose(got.values, 0.99**distance * 100, rtol=0, atol=1e-8)
    assert got.status == "converged"


# --- long chains ----------------------------------------------------------------------------------


def chain(n, order=None, left=0.005):
    """Left is certain and pays at the left end.

    Right moves on or stays, and pays 1 at the right end.
    """
    states = np.arange(n)
    forward = np.minimum(states + 1, n - 1)
    kernel, rewards = np.zeros((n, 2, n)), np.zeros((n, 2, n))
    kernel[states, 0, np.maximum(states - 1, 0)] = 1.0
    kernel[states, 1, states] += 0.6
    kernel[states, 1, forward] += 0.4
    rewards[0, 0] = left
    rewards[n - 1, 1, n - 1] = 1.0
    if order is not None:
        kernel, rewards = (array[order][:, :, order] for array in (kernel, rewards))
    return kernel, rewards


def as_rows(array):
    return sparse.csr_array(array.reshape(-1, array.shape[2]))


def chain_belief(kernel):
    return brmdp.DirichletBelief(as_rows(np.where(kernel > 0, 1.0 + 20.0 * kernel, 0.0)))


def assert_mean_optimum(kernel, rewards, discount, got):
    """The values are those of the policy by a linear solve, and no action improves on it."""
    own = policy_values(kernel, rewards, discount, got.policy)
    q_values = (kernel * rewards).sum(axis=2) + discount * kernel @ own
    assert (q_values.max(axis=1) - own).max() <= 1e-8 * (1 - discount) * np.abs(own).max()
    np.testing.assert_allclose(got.values, own, rtol=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("n", [300, 900])
@pytest.mark.parametrize("discount", [0.999, 0.99999])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_long_chain_needs_few_sweeps(n, discount, shuffled):
    """Plain policy iteration took thousands: it moves the border between actions by one state."""
    kernel, rewards = chain(n, np.random.default_rng(1).permutation(n) if shuffled else None)
    got = brmdp.solve(
        brmdp.TabularMDP(as_rows(kernel), as_rows(rewards), discount),
        tolerance=1e-9 / (1 - discount),
    )
    assert got.iterations <= 60
    assert_mean_optimum(kernel, rewards, discount, got)


@pytest.mark.parametrize("n", [300, 900])
@pytest.mark.parametrize("discount", [0.999, 0.9999])
def test_a_cautious_plan_of_a_long_chain_needs_few_sweeps(n, discount):
    """With two successors the quantile is a Beta quantile.

    SciPy's confirms that the values are a fixed point.
    """
    kernel, rewards = chain(n, left=0.95)
    tolerance = 1e-9 / (1 - discount)
    got = brmdp.plan(
        chain_belief(kernel),
        as_rows(rewards),
        discount,
        risk=brmdp.Quantile(0.1),
        tolerance=tolerance,
    )
    assert got.iterations <= 30
    stay, move = (
        rewards[np.arange(n), 1, np.arange(n)] + discount * got.values,
        discount * np.append(got.values[1:], 0),
    )
    stay[-1], move[-1] = 1.0 + discount * got.values[-1], -np.inf
    high = stats.beta.ppf(
        0.1, 9.0, 13.0
    )  # share of the better successor, to move: 1 + 20 · 0.4 against 1 + 20 · 0.6
    low = stats.beta.ppf(0.1, 13.0, 9.0)
    with np.errstate(invalid="ignore"):
        right = np.where(move > stay, stay + high * (move - stay), move + low * (stay - move))
    right[-1] = stay[-1]
    left = rewards[:, 0, 0] + discount * np.append(got.values[0], got.values[:-1])
    best = np.maximum(left, right)
    assert np.abs(best - got.values).max() <= tolerance * (1 - discount) * 10
    np.testing.assert_array_equal(got.policy, right > left)
    assert 0 < (got.policy == 0).sum() < n, "a border in the middle of the chain"


def test_a_policy_of_a_long_chain_is_evaluated_in_few_sweeps():
    kernel, rewards = chain(900)
    belief, policy = chain_belief(kernel), np.ones(900, dtype=int)
    got = brmdp.evaluate_under_belief(
        belief, as_rows(rewards), 0.999, policy, risk=brmdp.Quantile(0.1), tolerance=1e-6
    )
    assert got.iterations <= 30
    share = stats.beta.ppf(0.1, 9.0, 13.0)
    wanted = 1000 * (0.999 * share / (1 - 0.999 * (1 - share))) ** np.arange(900)[::-1]
    np.testing.assert_allclose(got.values, wanted, rtol=0, atol=got.error_bound + 1e-9)


@pytest.mark.parametrize("entries", [0, bellman.BAND_ENTRIES])
def test_a_long_chain_where_no_band_is_narrow_enough(monkeypatch, entries):
    monkeypatch.setattr(bellman, "BAND_ENTRIES", entries)
    kernel, rewards = chain(700)
    got = brmdp.solve(brmdp.TabularMDP(as_rows(kernel), as_rows(rewards), 0.999), tolerance=1e-6)
    assert got.iterations <= 60
    assert_mean_optimum(kernel, rewards, 0.999, got)


class Misleading:
    """A quantile whose rows point Newton to the worst successor: valid, and of no use."""

    def __init__(self, alpha):
        self.inner = brmdp.Quantile(alpha)

    def bind(self, belief):
        found = self.inner.bind(belief)
        honest = found.rows

        def rows(targets, values, pairs, *, precise=True):
            out = honest(targets, values, pairs, precise=precise)
            widths = belief.pattern.widths[pairs]
            ends = np.cumsum(widths)
            flat = belief.pattern.take(targets, pairs)
            out[:] = 0.0
            for begin, end in zip(ends - widths, ends, strict=True):
                out[begin + flat[begin:end].argmax()] = 1.0
            return out

        found.rows = rows
        found.approximation = lambda: None
        return found


@pytest.mark.parametrize("patience", [0, fixed_point.PATIENCE])
@pytest.mark.parametrize("seed", range(3))
def test_wide_steps_cannot_cycle(monkeypatch, patience, seed):
    """The measure is neither convex nor concave, or its rows mislead.

    A logarithmic number of excursions delays value iteration.
    """
    monkeypatch.setattr(fixed_point, "PATIENCE", patience)
    rng = np.random.default_rng(seed)
    kernels = rng.dirichlet(np.full(5, 0.2), (6, 5, 3))
    rewards, levels = rng.normal(size=(5, 3, 5)), rng.uniform(0.05, 0.95, (5, 3))
    scenarios = brmdp.ScenarioBelief(kernels, rng.dirichlet(np.ones(6)))
    dirichlet = brmdp.DirichletBelief(rng.uniform(0.5, 2.0, (5, 3, 5)))
    for belief, risk in ((scenarios, brmdp.Quantile(levels)), (dirichlet, Misleading(levels))):
        case = Problem(belief, rewards, 0.8)
        plain = case.plan(brmdp.Quantile(levels), tolerance=1e-5, method="value-iteration")
        got = case.plan(risk, tolerance=1e-5)
        assert got.status == "converged"
        assert np.abs(got.values - plain.values).max() <= got.error_bound + plain.error_bound
        excursions = 2 + np.log2(plain.iterations)
        assert (
            got.iterations <= plain.iterations + 3 * patience + excursions * fixed_point.EXCURSION
        )
        wanted = planning.scenario_risk(kernels, scenarios.weights, levels, lower_tail=False)
        if belief is scenarios:
            oracle = planning.value_iteration(wanted, rewards, 0.8, 1e-8)
            assert np.abs(got.values - oracle).max() <= got.error_bound + 1e-8


def test_the_excursions_above_do_fail(monkeypatch):
    """Otherwise the test above would show nothing."""
    monkeypatch.setattr(fixed_point, "PATIENCE", 0)
    outcomes = []
    original = fixed_point._excursion

    def counted(bellman, begin, most):
        found = original(bellman, begin, most)
        outcomes.append(found[0].residual <= bellman.discount * begin.residual)
        return found

    monkeypatch.setattr(fixed_point, "_excursion", counted)
    rng = np.random.default_rng(0)
    belief = brmdp.DirichletBelief(rng.uniform(0.5, 2.0, (5, 3, 5)))
    case = Problem(belief, rng.normal(size=(5, 3, 5)), 0.8)
    case.plan(Misleading(0.3), tolerance=1e-5)
    assert outcomes.count(False) >= 3


# --- ties -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["mean", "quantile-low", "cvar"])
def test_uniform_prior_ties_everywhere(name, method):
    mdp = brmdp.envs.frozenlake(0.9)
    belief = brmdp.DirichletBelief.uniform(16, 4)
    got = brmdp.plan(belief, mdp.rewards, mdp.discount, risk=measure(name, (16, 4)), method=method)
    assert got.tied.all()
    assert (got.policy == 0).all()
    assert got.tied_actions().all()


def test_unvisited_actions_tie_later():
    mdp = brmdp.envs.frozenlake()
    belief = brmdp.DirichletBelief.uniform(16, 4)
    belief.observe([6] * 8, [1] * 8, [7] * 8)
    got = brmdp.plan(belief, mdp.rewards, mdp.discount, risk=brmdp.Quantile(0.1))
    np.testing.assert_array_equal(got.tied_actions()[6], [True, False, True, True])
    assert got.tied[6]
    assert got.policy[6] == 0
    other = np.delete(np.arange(16), 6)
    assert got.tied_actions()[other].all()


def test_lowest_index_among_exact_ties():
    kernel = np.ones((1, 4, 1))
    got = brmdp.solve(brmdp.TabularMDP(kernel, np.array([[0.0, 1.0, 0.5, 1.0]]), 0.9))
    assert got.policy.tolist() == [1]
    assert got.tied.tolist() == [True]
    np.testing.assert_array_equal(got.tied_actions(), [[False, True, False, True]])


@pytest.mark.parametrize("tolerance", [None, 1e-8, 1e-4, 1e-2])
@pytest.mark.parametrize("share", [0.0, 0.5, 2.0, 1e3])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_the_width_of_a_tie_follows_the_scale_not_the_tolerance(tolerance, share, scale):
    """The second action is better by a share of 2η + 2γη/(1 − γ).

    For a single successor, η = (1 + 8)ε·max|w|.
    """
    width = 2 * (9 + 0.5 * 9 / 0.5) * np.finfo(float).eps * 2.0 * scale
    kernel = np.zeros((2, 2, 2))
    kernel[:, :, 1] = 1.0
    rewards = scale * np.array([[0.5, 0.5], [1.0, -1.0]])
    rewards[0, 1] += share * width
    mdp = brmdp.TabularMDP(kernel, rewards, 0.5)
    got = brmdp.solve(mdp, tolerance=None if tolerance is None else tolerance * scale)
    assert got.tie_width == pytest.approx(width, rel=1e-12, abs=0.0)
    assert got.tied.tolist() == [share < 1, False]
    assert got.policy[0] == (0 if share < 1 else 1)
    np.testing.assert_array_equal(got.tied_actions()[0], [share < 1, True])
    loss = rewards[0, 1] - rewards[0, 0]
    assert got.policy_gap >= (loss if share < 1 else 0.0)


@pytest.mark.parametrize("tolerance", [None, 1e-5])
def test_a_resolved_difference_is_no_tie(tolerance):
    """When ten times the tolerance was a tie, the first action lost 9e-5 a step, 0.9 in all."""
    mdp = brmdp.TabularMDP(np.ones((1, 2, 1)), np.array([[1.0, 1.0 + 9e-5]]), 0.9999)
    got = brmdp.solve(mdp, tolerance=tolerance)
    assert got.policy.tolist() == [1]
    assert not got.tied.any()
    assert brmdp.evaluate_in_mdp(mdp, got.policy)[0] == pytest.approx(1.00009e4, rel=1e-9)
    assert got.policy_gap < 1e-4


@pytest.mark.parametrize("seed", range(40))
def test_what_the_error_bound_resolves_is_no_tie(seed):
    """Small differences on large values, and discounts up to 0.999999.

    What is called a tie lies within twice the bound.
    """
    rng = np.random.default_rng(seed)
    n, discount = int(rng.integers(2, 6)), 1.0 - 10.0 ** rng.uniform(-6, -3)
    kernel = rng.dirichlet(np.full(n, 0.3), (n, 2))
    mdp = brmdp.TabularMDP(kernel, 10.0 ** rng.uniform(0, 5) + rng.random((n, 2)), discount)
    got = brmdp.solve(mdp)
    assert got.tie_width <= 2.0 * got.error_bound * (1.0 + 1e-12)
    if not got.tied.any():
        return
    # wherever the lowest index was taken, no other action is better beyond doubt
    lost = got.q_values.max(axis=1) - got.q_values[np.arange(n), got.policy]
    assert lost.max() <= 2.0 * got.error_bound * (1.0 + 1e-12)


def test_a_difference_resolved_on_huge_values_is_no_tie():
    """Better by 0.499 a step, on values of 7e8 known to 0.16.

    When it was a tie, the first action lost 49,350 in all.
    """
    kernel = np.array(
        [
            [
                [0.9935386326822946, 0.006461367317705416],
                [0.005890747631776014, 0.9941092523682241],
            ],
            [[0.3254914523656319, 0.6745085476343682], [0.9923075219190665, 0.007692478080933583]],
        ]
    )
    rewards = np.array(
        [[6909.006605185631, 6909.345682588618], [6909.559298196325, 6909.11905361437]]
    )
    got = brmdp.solve(brmdp.TabularMDP(kernel, rewards, 0.9999900863283832))
    assert got.policy.tolist() == [1, 0]
    assert not got.tied.any()


def problem_with_ties(seed):
    """A problem with exact and near ties.

    Actions 0 and 2 are the same everywhere. There are two copies of one world, numbered
    differently, and a state that leads to either. In some states, action 1 is like action 0, but
    its reward is higher by 1e-16 to 1e-3.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    phi = rng.uniform(0.4, 6.0, (n, 3, n)) * (rng.random((n, 3, n)) < 0.7)
    phi[..., 0] += 0.5
    rewards = rng.normal(size=phi.shape)
    phi[:, 2], rewards[:, 2] = phi[:, 0], rewards[:, 0]
    for s in rng.integers(0, n, 2):
        phi[s, 1], rewards[s, 1] = phi[s, 0], rewards[s, 0] + 10.0 ** rng.uniform(-16, -3)
    other = n + rng.permutation(n)
    both, paid = np.zeros((2, 2 * n + 1, 3, 2 * n + 1))
    for states in (np.arange(n), other):
        both[np.ix_(states, range(3), states)] = phi
        paid[np.ix_(states, range(3), states)] = rewards
    both[2 * n, 0, 0] = both[2 * n, 1, other[0]] = both[2 * n, 2, 1] = 1.0
    return Problem(
        brmdp.DirichletBelief(both), paid, float(rng.choice([0.5, 0.9, 0.99, 0.999, 0.9999]))
    )


@pytest.mark.parametrize("name", ["mean", "quantile-low", "cvar"])
@pytest.mark.parametrize("seed", range(8))
def test_ties_do_not_depend_on_the_path(name, seed):
    """Cold, warm, from afar, by either method, to another tolerance: always the same ties.

    The exact ties are among them.
    """
    case = problem_with_ties(seed)
    n, rng = case.n_states, np.random.default_rng(seed)
    risk = measure(name, case.shape)
    cold = case.plan(risk)
    size = np.abs(cold.values).max()
    tied = cold.tied_actions()
    np.testing.assert_array_equal(tied[:-1, 0], tied[:-1, 2])
    assert tied[-1, 0] == tied[-1, 1]
    others = [case.plan(risk, initial=cold), case.plan(risk, tolerance=1e-7 * size)]
    others += [
        case.plan(risk, initial=cold.values + size * e * rng.normal(size=n))
        for e in (1e-9, 1e-6, 1e-2, 1.0)
    ]
    if case.discount <= 0.9:
        others.append(case.plan(risk, method="value-iteration"))
    for other in others:
        np.testing.assert_array_equal(other.tied_actions(), tied)
        np.testing.assert_array_equal(other.policy, cold.policy)
        np.testing.assert_array_equal(other.tied, cold.tied)
    # whichever tied action is taken, the loss is within what a tie may give away
    last = tied.shape[1] - 1 - tied[:, ::-1].argmax(axis=1)
    own = case.evaluate(last, risk)
    allowed = cold.policy_gap + cold.tie_width / (1 - case.discount)
    assert (cold.values - own.values).max() <= allowed + cold.error_bound + own.error_bound


def test_inadmissible_actions_never_tie():
    case = problem("inadmissible-1")
    got = brmdp.plan(case.belief, np.zeros(case.shape), 0.8, risk=brmdp.Quantile(0.1))
    np.testing.assert_array_equal(got.tied_actions(), case.admissible)
    np.testing.assert_array_equal(got.tied, case.admissible.sum(axis=1) > 1)
    np.testing.assert_array_equal(got.policy, case.admissible.argmax(axis=1))


# --- saddlepoint ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense-1", "sparse-1", "disturbance-1", *WORLDS])
@pytest.mark.parametrize("method", METHODS)
def test_saddlepoint_is_approximate_and_says_so(kind, method):
    case = problem(kind)
    near = case.plan(brmdp.Quantile(0.2, "saddlepoint"), method=method)
    exact = case.plan(brmdp.Quantile(0.2))
    assert near.status == "approximate"
    assert near.error_bound == near.policy_gap == np.inf
    scale = np.abs(exact.values).max()
    assert 0 < np.abs(near.values - exact.values).max() < 0.02 * scale
    own = case.evaluate(near.policy, brmdp.Quantile(0.2, "saddlepoint"), method=method)
    assert own.status == "approximate"
    assert own.error_bound == np.inf
    certified = case.evaluate(near.policy, brmdp.Quantile(0.2))
    assert certified.status == "converged"
    assert (exact.values - certified.values).max() < 0.02 * scale


# --- the Solution ---------------------------------------------------------------------------------


def test_solution_is_frozen():
    case = problem("dense-1")
    for got in (
        case.plan(brmdp.Quantile(0.2)),
        case.evaluate(np.zeros(4, dtype=int), brmdp.Quantile(0.2)),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            got.values = np.zeros(4)
        for array in (got.values, got.q_values, got.policy, got.tied):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


def test_the_policy_given_stays_writeable():
    policy = np.zeros(4, dtype=np.int64)
    problem("dense-1").evaluate(policy, brmdp.Quantile(0.2))
    policy[0] = 1


def test_changing_a_kernel_does_not_change_the_solution():
    got = problem("dense-1").plan(brmdp.Quantile(0.2))
    before = got.kernel()
    got.kernel()[:] = 0
    got.kernel("csr").data[:] = 0
    np.testing.assert_array_equal(got.kernel(), before)


def test_evaluation_shows_improving_actions():
    case = problem("dense-1")
    best = case.plan(brmdp.Quantile(0.2), tolerance=TIGHT)
    worse = (best.policy + 1) % 3
    own = case.evaluate(worse, brmdp.Quantile(0.2), tolerance=TIGHT)
    assert (own.values < best.values).all()
    assert (own.q_values.max(axis=1) > own.values + 1e-6).any()
    np.testing.assert_allclose(own.q_values[np.arange(4), worse], own.values, atol=1e-12)
    assert own.policy_gap == 0


@pytest.mark.parametrize("method", METHODS)
def test_too_few_sweeps_raise_and_carry_the_iterate(method):
    case = problem("dense-1")
    with pytest.raises(brmdp.ConvergenceError, match="max_iterations=2") as caught:
        case.plan(brmdp.CVaR(0.2), max_iterations=2, method=method, tolerance=1e-12)
    assert caught.value.solution.status == "not converged"
    got = case.plan(
        brmdp.CVaR(0.2), max_iterations=2, method=method, tolerance=1e-12, raise_on_failure=False
    )
    assert got.status == "not converged"
    reference = case.plan(brmdp.CVaR(0.2), tolerance=TIGHT)
    assert np.abs(got.values - reference.values).max() <= got.error_bound + TIGHT
    assert got.iterations <= 3


@pytest.mark.parametrize("method", METHODS)
def test_newton_is_advised_only_where_it_is_not_in_use(method):
    with pytest.raises(brmdp.ConvergenceError) as got:
        problem("dense-1").plan(brmdp.CVaR(0.2), max_iterations=2, method=method)
    assert ("use method='newton'" in str(got.value)) == (method == "value-iteration")


def test_unreachable_tolerance_is_named():
    case = problem("dense-1")
    advice = r"loosen tolerance \(an argument of plan and of agents; in a sweep, a key of \[\[agent"
    with pytest.raises(brmdp.ConvergenceError, match=advice):
        case.plan(brmdp.Quantile(0.2), tolerance=1e-18)


@pytest.mark.parametrize("values", [np.zeros(3), np.full(4, 1e300)])
def test_the_argument_at_fault_is_named(values):
    belief, rewards = brmdp.DirichletBelief.uniform(4, 2), np.zeros((4, 2))
    with pytest.raises(brmdp.InvalidInputError, match=r"^values must "):
        brmdp.backup(belief, rewards, 0.9, values, risk=brmdp.Mean())
    with pytest.raises(brmdp.InvalidInputError, match=r"^initial must "):
        brmdp.plan(belief, rewards, 0.9, risk=brmdp.Mean(), initial=values)


# --- the default tolerance ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mean", "quantile-low", "cvar", "saddlepoint"])
@pytest.mark.parametrize("discount", [0.0, 0.9, 0.99, 0.9999, 0.999999])
def test_the_default_tolerance_follows_the_scale(name, discount):
    """An absolute default made plans fail.

    Quantiles failed from rewards of 1e4 (γ = 0.9), 1e3 (0.99) and 1 (0.9999) on, and CVaR from 100
    at 0.9.
    """
    case = problem("dense-1")
    risk = (
        brmdp.Quantile(0.1, "saddlepoint") if name == "saddlepoint" else measure(name, case.shape)
    )
    unit = brmdp.plan(case.belief, case.rewards, discount, risk=risk)
    for scale in (1e-12, 100.0, 1e5, 1e12):
        got = brmdp.plan(case.belief, scale * case.rewards, discount, risk=risk)
        size = np.abs(got.values).max()
        assert got.status == unit.status != "not converged"
        assert got.iterations <= 40
        if name == "saddlepoint":
            np.testing.assert_allclose(got.values, scale * unit.values, rtol=0, atol=1e-7 * size)
            continue
        assert got.error_bound <= got.tolerance <= 1e-3 * size
        if discount <= 0.9 and name != "cvar":
            assert got.tolerance == pytest.approx(1e-8 * size)
        assert (
            np.abs(got.values - scale * unit.values).max()
            <= got.error_bound + scale * unit.error_bound
        )
        np.testing.assert_array_equal(got.policy, unit.policy)


@pytest.mark.parametrize("initial", [None, np.full(4, 1e3)])
@pytest.mark.parametrize("name", ["mean", "quantile-low", "cvar"])
def test_no_rewards_at_all(name, initial):
    case = problem("dense-1")
    got = brmdp.plan(
        case.belief, np.zeros(case.shape), 0.99, risk=measure(name, case.shape), initial=initial
    )
    assert got.status == "converged"
    assert np.abs(got.values).max() <= got.error_bound <= 1e-8
    assert got.tied.all()


def test_values_that_cancel():
    """±1 in turn, or nothing: V* = 0 in the second state has no scale of its own."""
    kernel = np.zeros((2, 1, 2))
    kernel[0, 0, 1] = kernel[1, 0, 0] = 1.0
    got = brmdp.solve(brmdp.TabularMDP(kernel, np.array([[-0.9], [1.0]]), 0.9))
    np.testing.assert_allclose(got.values, [0.0, 1.0], rtol=0, atol=1e-14)
    row = np.full((1, 1, 2), 0.5)
    still = brmdp.TabularMDP(
        np.concatenate([row, row]), np.array([[[1.0, -1.0]], [[1.0, -1.0]]]), 0.9
    )
    assert np.abs(brmdp.solve(still).values).max() <= 1e-14


def test_a_huge_penalty_does_not_coarsen_the_plan():
    """An action that is never taken does not set the scale of the problem."""
    case = problem("dense-2")
    forbidden = np.concatenate([case.rewards, np.full((4, 1, 4), -1e9)], axis=1)
    phi = np.concatenate([case.belief.concentration(), np.ones((4, 1, 4))], axis=1)
    plain = case.plan(brmdp.Quantile(0.2))
    got = brmdp.plan(brmdp.DirichletBelief(phi), forbidden, case.discount, risk=brmdp.Quantile(0.2))
    assert got.tolerance <= 1e-2
    assert np.abs(got.values - plain.values).max() <= got.error_bound + plain.error_bound
    np.testing.assert_array_equal(got.policy, plain.policy)


def test_a_default_beyond_three_digits_is_an_error():
    mdp = brmdp.TabularMDP(np.full((1, 1, 1), 1.0), np.array([[1.0]]), 1 - 1e-13)
    with pytest.raises(
        brmdp.ConvergenceError, match=r"default tolerance .*: arithmetic cannot resolve more"
    ) as caught:
        brmdp.solve(mdp)
    assert caught.value.solution.error_bound > 1e-3 * caught.value.solution.values[0]


def test_an_absolute_tolerance_stays_strict_and_the_message_helps_everywhere():
    case = problem("dense-1")
    with pytest.raises(
        brmdp.ConvergenceError, match=r"in a sweep, a key of \[\[agent\]\]\), or leave it out"
    ) as caught:
        brmdp.plan(case.belief, 1e7 * case.rewards, 0.9, risk=brmdp.Quantile(0.2), tolerance=1e-8)
    assert caught.value.solution.iterations <= 40
    assert caught.value.solution.tolerance == 1e-8


def test_large_policies_are_evaluated_as_far_as_arithmetic_goes():
    kernel, rewards = chain(700)
    mdp = brmdp.TabularMDP(as_rows(kernel), as_rows(1e6 * rewards), 0.999999)
    policy = np.ones(700, dtype=int)
    wanted = policy_values(kernel, 1e6 * rewards, 0.999999, policy)
    np.testing.assert_allclose(brmdp.evaluate_in_mdp(mdp, policy), wanted, rtol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 7, 48, 49, 80])
def test_many_policies_are_evaluated_like_linear_systems(n):
    """Both sides of the size up to which elimination is hand-written."""
    rng = np.random.default_rng(n)
    kernel = rng.dirichlet(np.full(n, 0.3), size=(n, 3))
    rewards = rng.normal(size=(n, 3, n))
    mdp = brmdp.TabularMDP(kernel, rewards, 0.97)
    policies = rng.integers(3, size=(5, n))
    found = brmdp.evaluate_all_in_mdp(mdp, policies)
    states = np.arange(n)
    for policy, values in zip(policies, found, strict=True):
        followed = kernel[states, policy]
        paid = (followed * rewards[states, policy]).sum(axis=1)
        expected = np.linalg.solve(np.eye(n) - 0.97 * followed, paid)
        np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(brmdp.evaluate_in_mdp(mdp, policy), values)


def test_policies_of_the_wrong_form_are_refused():
    mdp = brmdp.envs.riverswim(6)
    with pytest.raises(brmdp.InvalidInputError, match=r"policies must have shape \(n, 6\)"):
        brmdp.evaluate_all_in_mdp(mdp, np.zeros(6, dtype=int))
    with pytest.raises(
        brmdp.InvalidInputError, match=r"policies must lie in 0\.\.1; got 2 at index \(1, 5\)"
    ):
        brmdp.evaluate_all_in_mdp(mdp, [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 2]])


def test_evaluating_only_the_actions_of_the_policy():
    mdp = brmdp.envs.riverswim(6)
    belief = brmdp.DirichletBelief.uniform(6, 2)
    policy = np.array([1, 1, 0, 1, 0, 1])
    whole = brmdp.evaluate_under_belief(belief, mdp.rewards, 0.9, policy, risk=brmdp.Quantile(0.3))
    part = brmdp.evaluate_under_belief(
        belief, mdp.rewards, 0.9, policy, risk=brmdp.Quantile(0.3), all_actions=False
    )
    np.testing.assert_array_equal(part.values, whole.values)
    np.testing.assert_array_equal(
        part.q_values[np.arange(6), policy], whole.q_values[np.arange(6), policy]
    )
    assert np.isneginf(part.q_values[np.arange(6), 1 - policy]).all()


def test_flat_rewards_are_those_of_the_possible_transitions():
    mdp = brmdp.envs.riverswim(6)
    belief = brmdp.DirichletBelief.uniform(6, 2, possible=mdp)
    dense = brmdp.plan(belief, mdp.rewards, 0.9, risk=brmdp.Quantile(0.3))
    flat = brmdp.plan(belief, mdp.transition_rewards, 0.9, risk=brmdp.Quantile(0.3))
    np.testing.assert_array_equal(flat.values, dense.values)


@pytest.mark.parametrize("horizon", [None, 5])
def test_where_the_best_is_free_all_values_are_zero(horizon):
    """No value gives the error bound a scale then."""
    belief = brmdp.DirichletBelief.uniform(3, 2)
    belief.observe([0, 1, 2, 0, 1], [0, 0, 0, 1, 1], [1, 2, 0, 2, 2])
    rewards = np.stack((np.zeros(3), np.full(3, -1.0)), axis=1)
    for risk in (brmdp.Mean(), brmdp.Quantile(0.1)):
        plan = brmdp.plan(belief, rewards, 0.9, risk=risk, horizon=horizon)
        assert (np.asarray(plan.policy) == 0).all()
        assert np.abs(plan.values).max() <= 1e-12
