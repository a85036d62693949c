"""Undiscounted plans: closed forms, limits, bounds, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp.pattern import KernelBelief, TransitionPattern
from brmdp.planning import certify_nested, endings
from oracles import endings as oracle

pytestmark = pytest.mark.filterwarnings("ignore::brmdp.PriorWarning")


def walk(n, up, duration=False):
    """Gambler's ruin between 0 and n: kernel, and rewards for winning, or −1 per step."""
    kernel, rewards = np.zeros((n + 1, 1, n + 1)), np.zeros((n + 1, 1, n + 1))
    kernel[0, 0, 0] = kernel[n, 0, n] = 1.0
    for i in range(1, n):
        kernel[i, 0, i + 1], kernel[i, 0, i - 1] = up, 1 - up
        rewards[i, 0] = -float(duration)
    if not duration:
        rewards[n - 1, 0, n] = 1.0
    return kernel, rewards


def exit_of(a, b, reward):
    """One state with an exit of probability Beta(a, b), and the end."""
    belief = brmdp.DirichletBelief([[[b, a]], [[0.0, 1.0]]])
    return belief, [[reward], [0.0]]


def with_ends(seed, kind="dirichlet", n_states=5, n_actions=3, scale=1.0):
    """A random problem in which every action may lead to one of two ends."""
    rng = np.random.default_rng(seed)
    n = n_states + 2
    shape = (n, n_actions, n)
    mask = rng.random(shape) < 0.5
    mask[..., -1] = True
    mask[n_states:] = False
    rewards = rng.normal(size=shape) * scale
    for end in (n_states, n_states + 1):
        mask[end, :, end] = True
        rewards[end] = 0.0
    phi = rng.uniform(0.5, 6.0, shape) * mask
    if kind == "dirichlet":
        return brmdp.DirichletBelief(phi), rewards
    if kind == "scenarios":
        kernels = np.stack([_normalised(rng.uniform(0.5, 6.0, shape) * mask) for _ in range(6)])
        return brmdp.ScenarioBelief(kernels, rng.dirichlet(np.ones(6))), rewards
    outcomes = rng.integers(0, n, (n, n_actions, 4))
    outcomes[..., 0] = n - 1
    for end in (n_states, n_states + 1):
        outcomes[end] = end
    return brmdp.DisturbanceBelief(outcomes, rng.uniform(0.5, 4.0, 4)), rewards


def _normalised(array):
    return array / array.sum(axis=-1, keepdims=True)


RISKS = {
    "mean": brmdp.Mean(),
    "low": brmdp.Quantile(0.1),
    "high": brmdp.Quantile(0.8),
    "cvar": brmdp.CVaR(0.3),
}


# --- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("up", [Fraction(1, 2), Fraction(9, 20), Fraction(7, 10)])
def test_gamblers_ruin(up):
    n = 12
    win = oracle.ruin_probabilities(n, up)
    found = brmdp.solve(brmdp.TabularMDP(*walk(n, float(up)), 1.0))
    expected = np.array([float(p) for p in win[:-1]] + [0.0])  # the last state is an end
    # the kernel is rounded, so the oracle and the program differ by more than the bound
    assert np.abs(found.values - expected).max() <= found.error_bound + 1e-14
    assert found.error_bound < 1e-11
    known = brmdp.TabularMDP(*walk(n, float(up), duration=True), 1.0)
    duration = -np.array([float(d) for d in oracle.ruin_durations(n, up)])
    values = brmdp.evaluate_in_mdp(known, np.zeros(n + 1, dtype=int))
    assert np.abs(values - duration).max() <= 1e-11
    several = brmdp.evaluate_all_in_mdp(known, np.zeros((2, n + 1), dtype=int))
    np.testing.assert_array_equal(several, np.stack([values, values]))


@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.9])
@pytest.mark.parametrize(("a", "b"), [(1.0, 4.0), (0.6, 2.0), (30.0, 70.0)])
def test_geometric_times_with_an_unknown_exit(a, b, alpha):
    exit = stats.beta(a, b)
    belief, costs = exit_of(a, b, -1.0)
    low = brmdp.plan(belief, costs, 1.0, risk=brmdp.Quantile(alpha))
    assert low.values[0] == pytest.approx(-1.0 / exit.ppf(alpha), rel=1e-8)
    assert low.values[1] == 0.0
    belief, gains = exit_of(a, b, 1.0)
    high = brmdp.plan(belief, gains, 1.0, risk=brmdp.Quantile(alpha))
    assert high.values[0] == pytest.approx(1.0 / exit.ppf(1.0 - alpha), rel=1e-8)
    mean = brmdp.plan(belief, gains, 1.0, risk=brmdp.Mean())
    assert abs(mean.values[0] - (a + b) / a) <= mean.error_bound + 1e-12
    # the mean of the smallest exits: E[p; p ≤ q] = (a/(a + b))·F_{a+1,b}(q)
    q = exit.ppf(alpha)
    tail = a / (a + b) * stats.beta(a + 1, b).cdf(q) / alpha
    cvar = brmdp.plan(*exit_of(a, b, -1.0), 1.0, risk=brmdp.CVaR(alpha))
    assert cvar.values[0] == pytest.approx(-1.0 / tail, rel=1e-7)
    for plan in (low, high, mean, cvar):
        assert plan.status == "converged"
        assert plan.error_bound <= 1e-6 * abs(plan.values[0])


# --- limits and bounds ----------------------------------------------------------------------------


@pytest.mark.parametrize("risk_name", RISKS)
@pytest.mark.parametrize("kind", ["dirichlet", "scenarios", "disturbance"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_values_are_the_limits_of_horizons_and_of_discounts(seed, kind, risk_name):
    belief, rewards = with_ends(seed, kind)
    risk = RISKS[risk_name]
    plan = brmdp.plan(belief, rewards, 1.0, risk=risk)
    assert plan.status == "converged"
    long = brmdp.plan(belief, rewards, 1.0, risk=risk, horizon=400)
    settled = np.abs(long.values[0] - long.values[100]).max()
    assert settled <= 1e-12  # the horizon is long enough
    off = np.abs(plan.values - long.values[0]).max()
    assert off <= plan.error_bound + long.error_bound[0] + settled
    assert plan.error_bound < 1e-7
    near = brmdp.plan(belief, rewards, 1.0 - 1e-7, risk=risk)
    assert np.abs(plan.values - near.values).max() <= 1e-4
    own = brmdp.evaluate_under_belief(belief, rewards, 1.0, plan.policy, risk=risk)
    lost = (plan.values - own.values).max()
    assert lost <= plan.policy_gap + own.error_bound
    assert own.policy_gap == 0.0
    assert np.isfinite(plan.policy_gap)
    followed = brmdp.evaluate_under_belief(
        belief, rewards, 1.0, plan.policy, risk=risk, horizon=400, all_actions=False
    )
    off = np.abs(own.values - followed.values[0]).max()
    assert off <= own.error_bound + followed.error_bound[0] + 1e-12
    warm = brmdp.plan(belief, rewards, 1.0, risk=risk, initial=plan)
    assert np.abs(warm.values - plan.values).max() <= 2.0 * plan.error_bound
    assert np.array_equal(warm.policy, plan.policy)
    # the risk-adjusted rows are probabilities, and ends stay ends
    kernel = plan.kernel()
    np.testing.assert_allclose(kernel.sum(axis=1), 1.0, atol=1e-7)
    assert (kernel[-2:] == np.eye(len(rewards))[-2:]).all()
    far = brmdp.plan(belief, rewards, 1.0, risk=risk, initial=np.full(len(rewards), 1e3))
    assert np.abs(far.values - plan.values).max() <= far.error_bound + plan.error_bound


@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_against_rational_arithmetic(seed):
    rng = np.random.default_rng(seed)
    n = 5
    kernel = np.zeros((n + 1, 1, n + 1))
    leave = 10.0 ** rng.uniform(-4, -1, n)
    kernel[:n, 0, :n] = rng.dirichlet(np.ones(n), n) * (1 - leave)[:, None]
    kernel[:n, 0, n] = leave
    kernel[n, 0, n] = 1.0
    rewards = np.append(rng.normal(size=n), 0.0)[:, None]
    mdp = brmdp.TabularMDP(kernel, rewards, 1.0)
    found = brmdp.solve(mdp)
    # the end takes what the other probabilities leave over: rows must sum to one exactly
    exact = oracle.solve_exactly(mdp.kernel()[:n, 0, :n], rewards[:n, 0])
    off = max(abs(float(e - Fraction(float(v)))) for e, v in zip(exact, found.values, strict=False))
    assert off <= found.error_bound
    assert found.error_bound <= 1e-8 * np.abs(found.values).max()


def test_draws_and_sampled_quantiles():
    belief, rewards = with_ends(3)
    drawn = brmdp.plan(belief, rewards, 1.0, risk=brmdp.PosteriorSample(rng=4))
    (kernel,) = belief.sample(1, rng=np.random.default_rng(4))
    known = brmdp.solve(brmdp.TabularMDP(kernel, rewards, 1.0))
    assert np.abs(drawn.values - known.values).max() <= drawn.error_bound + known.error_bound
    assert drawn.status == "sampled"
    risk = brmdp.Quantile(0.3, method=brmdp.MonteCarlo(samples=40, rng=1))
    plan = brmdp.plan(belief, rewards, 1.0, risk=risk)
    assert plan.status == "sampled"
    again = brmdp.Quantile(0.3, method=brmdp.MonteCarlo(samples=40, rng=1))
    long = brmdp.plan(belief, rewards, 1.0, risk=again, horizon=400)
    assert np.abs(plan.values - long.values[0]).max() <= plan.error_bound + long.error_bound[0]


def test_tied_actions_that_take_different_times():
    # both actions pay nothing; one leaves at once, the other takes a thousand steps
    kernel = np.array([[[0.0, 1.0], [0.999, 0.001]], [[0.0, 1.0], [0.0, 1.0]]])
    mdp = brmdp.TabularMDP(kernel, np.zeros((2, 2)), 1.0)
    plan = brmdp.solve(mdp)
    assert plan.values.tolist() == [0.0, 0.0]
    assert plan.tied[0]
    # and where they tie at a value that is not zero
    rewards = np.array([[1.0, 0.001], [0.0, 0.0]])
    plan = brmdp.solve(brmdp.TabularMDP(kernel, rewards, 1.0))
    assert abs(plan.values[0] - 1.0) <= plan.error_bound < 1e-8
    belief = brmdp.DirichletBelief(kernel * 5_000)
    for risk in RISKS.values():
        plan = brmdp.plan(belief, np.zeros((2, 2)), 1.0, risk=risk)
        assert np.abs(plan.values).max() <= plan.error_bound < 1e-8


def test_kinks_of_the_quantile_are_enclosed():
    # all successors of state 0 have the same value, where the quantile is not differentiable
    phi = np.zeros((4, 1, 4))
    phi[0, 0] = [2.0, 1.0, 3.0, 1.0]
    phi[1, 0] = phi[2, 0] = [1.0, 1.0, 0.0, 2.0]
    phi[3, 0, 3] = 1.0
    belief = brmdp.DirichletBelief(phi)
    for alpha in (0.01, 0.3, 0.99):
        plan = brmdp.plan(belief, np.zeros((4, 1)), 1.0, risk=brmdp.Quantile(alpha))
        assert np.abs(plan.values).max() <= plan.error_bound


@pytest.mark.long
def test_long_chains_and_many_states():
    n = 3_000
    rows, columns, data = [], [], []
    for i in range(n):
        for j, p in ((max(i - 1, 0), 0.2), (i + 1, 0.8)):
            rows.append(i)
            columns.append(j)
            data.append(p)
    rows.append(n)
    columns.append(n)
    data.append(1.0)
    from scipy import sparse

    kernel = sparse.csr_array((data, (rows, columns)), shape=(n + 1, n + 1))
    rewards = np.append(np.full(n, -1.0), 0.0)[:, None]
    plan = brmdp.solve(brmdp.TabularMDP(kernel, rewards, 1.0))
    # far from the left end, the expected time grows by 1/(p − q) per state
    steps = np.diff(plan.values[100:])
    assert np.abs(steps - 1.0 / 0.6).max() < 1e-9
    assert plan.error_bound < 1e-4
    belief = brmdp.DirichletBelief(kernel * 40.0)
    low = brmdp.plan(belief, rewards, 1.0, risk=brmdp.Quantile(0.3))
    assert low.status == "converged"
    assert (low.values[:-1] < plan.values[:-1]).all()


@pytest.mark.long
def test_large_problems_are_solved_iteratively(monkeypatch):
    rng = np.random.default_rng(5)
    n = endings.DENSE_STATES + 200
    phi = np.zeros((n + 1, 2, n + 1))
    for s in range(n):
        for a in range(2):
            phi[s, a, rng.integers(n, size=3)] = rng.uniform(0.5, 3.0, 3)
            phi[s, a, n] = 0.2
    phi[n, :, n] = 1.0
    belief = brmdp.DirichletBelief(phi)
    rewards = rng.normal(size=(n + 1, 2))
    rewards[n] = 0.0
    for risk in (brmdp.Mean(), brmdp.Quantile(0.2)):
        large = brmdp.plan(belief, rewards, 1.0, risk=risk)
        with monkeypatch.context() as patch:
            patch.setattr(endings, "DENSE_STATES", 10 * n)
            small = brmdp.plan(belief, rewards, 1.0, risk=risk)
        off = np.abs(large.values - small.values).max()
        assert off <= large.error_bound + small.error_bound
        assert large.error_bound <= 1e-8 * np.abs(large.values).max()


# --- what is refused ------------------------------------------------------------------------------


def test_a_policy_that_never_ends_is_named():
    kernel = np.zeros((4, 2, 4))
    kernel[0, 0, 1] = kernel[0, 1, 3] = 1.0
    kernel[1, 0, 2], kernel[1, 1, 3] = 1.0, 1.0
    kernel[2, 0, 1] = kernel[2, 1, 3] = 1.0
    kernel[3, :, 3] = 1.0
    rewards = np.array([[-1.0, -1.0]] * 3 + [[0.0, 0.0]])
    mdp = brmdp.TabularMDP(kernel, rewards, 1.0)
    message = r"takes action 0 in state 0 can stay among the states \[0, 1, 2\] for ever"
    with pytest.raises(brmdp.InvalidInputError, match=message):
        brmdp.solve(mdp)
    with pytest.raises(brmdp.InvalidInputError, match="action 0 in state 1 can stay among"):
        brmdp.evaluate_in_mdp(mdp, [1, 0, 0, 0])
    with pytest.raises(brmdp.InvalidInputError, match=r"\[1, 2\] for ever. Give a horizon"):
        brmdp.evaluate_under_belief(mdp, rewards, 1.0, [1, 0, 0, 0], risk=brmdp.Mean())
    # a policy that ends has a value although others do not
    np.testing.assert_allclose(brmdp.evaluate_in_mdp(mdp, [0, 1, 0, 0]), [-2, -1, -2, 0])
    with pytest.raises(brmdp.InvalidInputError, match="there is no such state"):
        brmdp.solve(brmdp.envs.riverswim(6, discount=1.0))
    # an absorbing state that pays is no end
    rewards[3] = 1.0
    with pytest.raises(brmdp.InvalidInputError, match="there is no such state"):
        brmdp.solve(brmdp.TabularMDP(kernel, rewards, 1.0))


def test_every_scenario_must_end():
    good = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
    bad = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    costs = [[-1.0], [0.0]]
    both = brmdp.ScenarioBelief(np.stack([good, bad]), [0.9, 0.1])
    for risk in (brmdp.Quantile(0.5), brmdp.CVaR(0.5)):
        with pytest.raises(brmdp.InvalidInputError, match="action 0 in state 0 can stay"):
            brmdp.plan(both, costs, 1.0, risk=risk)
    # the mean kernel ends
    mean = brmdp.plan(both, costs, 1.0, risk=brmdp.Mean())
    assert mean.values[0] == pytest.approx(-1 / 0.45)
    unlikely = brmdp.ScenarioBelief(np.stack([good, bad]), [1.0, 0.0])
    assert brmdp.plan(unlikely, costs, 1.0, risk=brmdp.Quantile(0.5)).values[0] == -2.0


@pytest.mark.parametrize("seed", range(40))
def test_closed_sets_agree_with_all_subsets(seed):
    rng = np.random.default_rng(seed)
    n, n_actions = 5, 2
    ends = {n - 1}
    kernels = rng.random((2, n, n_actions, n)) < 0.3
    kernels[..., -1] |= ~kernels.any(axis=-1)
    kernels[:, n - 1] = np.eye(n, dtype=bool)[n - 1]
    possible = kernels.any(axis=0)
    belief = brmdp.DirichletBelief(possible.astype(float))
    pattern = belief.pattern
    flat = np.stack([kernel[possible] for kernel in kernels])
    mask = np.arange(n) == n - 1
    for rows, tables in (
        (endings._Alternatives.of_pattern(pattern), possible[None]),
        (endings._Alternatives.of_entries(pattern, flat.astype(float)), kernels),
    ):
        table = {
            (s, a): [set(np.flatnonzero(one[s, a]).tolist()) for one in tables]
            for s in range(n)
            for a in range(n_actions)
        }
        found = endings._closed(pattern, mask, rows, None)
        assert set(np.flatnonzero(found).tolist()) == oracle.closed_states(table, n, ends)
        policy = rng.integers(n_actions, size=n)
        own = {(s, int(policy[s])): table[s, int(policy[s])] for s in range(n)}
        found = endings._closed(pattern, mask, rows, np.arange(n) * n_actions + policy)
        assert set(np.flatnonzero(found).tolist()) == oracle.closed_states(own, n, ends)


def test_times_that_arithmetic_cannot_resolve_are_refused():
    kernel = np.array([[[1.0 - 1e-18, 1e-18]], [[0.0, 1.0]]])
    mdp = brmdp.TabularMDP(kernel, [[-1.0], [0.0]], 1.0)
    with pytest.raises(brmdp.ConvergenceError, match="horizon, or a discount below 1") as caught:
        brmdp.solve(mdp)
    assert caught.value.solution.status == "not converged"
    assert caught.value.solution.error_bound == np.inf
    # at 1e-12 the value is known to a few digits
    kernel = np.array([[[1.0 - 1e-12, 1e-12]], [[0.0, 1.0]]])
    found = brmdp.solve(brmdp.TabularMDP(kernel, [[-1.0], [0.0]], 1.0), raise_on_failure=False)
    assert found.error_bound == np.inf or abs(found.values[0] + 1e12) <= found.error_bound


def test_measures_without_a_proof_are_refused():
    belief, rewards = with_ends(1)
    with pytest.raises(brmdp.InvalidInputError, match="saddlepoint"):
        brmdp.plan(belief, rewards, 1.0, risk=brmdp.Quantile(0.1, method="saddlepoint"))

    class Own:
        def bind(self, belief):
            class Bound:
                basis = "exact"

                def __init__(self):
                    self.inner = brmdp.Quantile(0.1).bind(belief)

                def __getattr__(self, name):
                    return getattr(self.inner, name)

            return Bound()

    with pytest.raises(brmdp.InvalidInputError, match="a measure of this kind"):
        brmdp.plan(belief, rewards, 1.0, risk=Own())

    class Linear:
        def bind(self, belief):
            from brmdp.risk.base import FixedKernel

            return FixedKernel(belief.pattern, belief.mean_entries())

    found = brmdp.plan(belief, rewards, 1.0, risk=Linear())
    known = brmdp.plan(belief, rewards, 1.0, risk=brmdp.Mean())
    assert np.abs(found.values - known.values).max() <= 2.0 * known.error_bound
    with pytest.raises(brmdp.InvalidInputError, match="method must be 'newton' with discount 1"):
        brmdp.plan(belief, rewards, 1.0, risk=brmdp.Mean(), method="value-iteration")


def test_a_belief_that_offers_only_draws():
    class Shared(KernelBelief):
        rows_independent = False
        pattern = TransitionPattern(3, 1, np.array([0, 2, 4, 5]), np.array([0, 1, 0, 2, 2]))

        def mean_entries(self):
            return np.array([0.5, 0.5, 0.5, 0.5, 1.0])

        def sample_entries(self, n, pairs=None, *, rng):
            p = rng.uniform(0.25, 0.75, size=n)
            draws = np.stack([1 - p, p, 1 - p, p, np.ones(n)], axis=1)
            return draws if pairs is None else self.pattern.take(draws, pairs)

    costs = [[-1.0], [-1.0], [0.0]]
    plan = brmdp.plan(Shared(), costs, 1.0, risk=brmdp.Quantile(0.2))
    assert plan.status == "sampled"
    long = brmdp.plan(Shared(), costs, 1.0, risk=brmdp.Quantile(0.2), horizon=600)
    assert np.abs(plan.values - long.values[0]).max() <= plan.error_bound + long.error_bound[0]


def test_too_few_sweeps_and_tight_tolerances():
    belief, rewards = with_ends(2)
    with pytest.raises(brmdp.ConvergenceError, match="raise max_iterations=2"):
        brmdp.plan(belief, rewards, 1.0, risk=brmdp.Quantile(0.1), max_iterations=2)
    with pytest.raises(brmdp.ConvergenceError, match="arithmetic cannot resolve more"):
        brmdp.plan(belief, rewards, 1.0, risk=brmdp.Quantile(0.1), tolerance=1e-18)
    plan = brmdp.plan(belief, rewards, 1.0, risk=brmdp.Quantile(0.1), tolerance=1e-4)
    assert plan.tolerance == 1e-4


def test_the_prior_is_judged_by_expected_visits():
    kernel, rewards = walk(4, 0.5)
    belief = brmdp.DirichletBelief(np.where(kernel > 0, 1.0, 0.0))
    belief.observe([2] * 40, 0, [1, 3] * 20)
    with pytest.warns(brmdp.PriorWarning):
        plan = brmdp.plan(belief, rewards, 1.0, risk=brmdp.Mean(), start=2)
    # from the middle: two visits there and one to each neighbour, on average
    assert plan.prior.never_observed.tolist() == [1, 3]
    assert plan.prior.never_observed_visits == pytest.approx(0.5)
    at_end = brmdp.plan(belief, rewards, 1.0, risk=brmdp.Mean(), start=4)
    assert at_end.prior.outweighed == 0.0


def test_other_functions_refuse_discount_one():
    belief, rewards = with_ends(1)
    mdp = brmdp.TabularMDP(belief.mean(), rewards, 1.0)
    policy = np.zeros(7, dtype=int)
    below = r"discount must (lie in \[0, 1\)|be below 1)|must have a discount below 1|Theorem 1"
    for call in (
        lambda: certify_nested(belief, rewards, 1.0),
        lambda: brmdp.posterior_quantile_value(belief, rewards, 1.0, policy),
        lambda: brmdp.prior_reliance(belief, policy, 1.0),
        lambda: brmdp.agents.posterior_mean(belief, rewards, 1.0),
        lambda: brmdp.Agent(
            belief, rewards, 1.0, risk=brmdp.Mean(), restart=brmdp.agents.EveryStep()
        ),
        lambda: brmdp.World(brmdp.envs.TabularEnv(mdp), 1.0),
        lambda: brmdp.theory.asymptotic_normality(mdp, policy, 0.5),
        lambda: brmdp.theory.caution_cost(mdp, policy, 0.1, 0, np.ones(7)),
        lambda: brmdp.theory.replicate_normality(mdp, policy, 10, 0.5, rng=0),
    ):
        with pytest.raises(brmdp.InvalidInputError, match=below):
            call()


def test_a_backup_without_discounting():
    belief, rewards = with_ends(1)
    values = np.arange(7.0)
    found = brmdp.backup(belief, rewards, 1.0, values, risk=brmdp.Mean())
    expected = (belief.mean() * (rewards + values)).sum(axis=2)
    np.testing.assert_allclose(found.q_values, expected, atol=1e-12)
