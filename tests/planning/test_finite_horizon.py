"""Finite horizons: against plain loops, and against problems with time as part of the state."""

import numpy as np
import pytest

import brmdp
from brmdp.planning import HorizonSolution, finite_horizon
from oracles import finite_horizon as oracle
from oracles.planning import mean_risk
from problems import Frozen, Problem, measure, problem, solved

pytestmark = pytest.mark.filterwarnings("ignore::brmdp.PriorWarning")

NAMES = ("dense-1", "sparse-2", "inadmissible-3", "disturbance-4", "scenarios-5")
EXACT = ("mean", "quantile-low", "quantile-array", "cvar")
H = 4


def over(case, risk, horizon=H, discount=None, **options):
    gamma = case.discount if discount is None else discount
    return brmdp.plan(case.belief, case.rewards, gamma, risk=risk, horizon=horizon, **options)


def followed(case, policy, risk, horizon=H, discount=None, **options):
    gamma = case.discount if discount is None else discount
    return brmdp.evaluate_under_belief(
        case.belief, case.rewards, gamma, policy, risk=risk, horizon=horizon, **options
    )


def terminal_of(case, seed=3):
    return np.random.default_rng(seed).normal(size=case.n_states)


def with_time(case, horizon, terminal):
    """The same problem with the states (h, s) and an end."""
    belief = case.belief
    rewards = oracle.rewards_with_time(case.rewards, horizon, terminal)
    mask = oracle.mask_with_time(case.admissible, horizon)
    if isinstance(belief, brmdp.DisturbanceBelief):
        pattern = belief.pattern
        outcomes = np.full((*case.shape, belief.n_disturbances), -1)
        for pair in pattern.pairs:
            begin, end = pattern.indptr[pair : pair + 2]
            outcomes[divmod(int(pair), case.shape[1])] = pattern.next_states[begin:end]
        larger = brmdp.DisturbanceBelief(
            oracle.outcomes_with_time(outcomes, horizon), belief.concentration_entries
        )
    elif isinstance(belief, brmdp.ScenarioBelief):
        kernels = np.stack([belief.pattern.dense(k) for k in belief.scenario_entries])
        larger = brmdp.ScenarioBelief(oracle.with_time(kernels, horizon, 1.0), belief.weights)
    else:
        phi = belief.pattern.dense(belief.concentration_entries)
        larger = brmdp.DirichletBelief(oracle.with_time(phi, horizon, 1.0), admissible=mask)
    return Problem(larger, rewards, case.discount)


def levels_with_time(risk, horizon):
    if np.ndim(getattr(risk, "alpha", 0.0)) == 0:
        return risk
    end = np.full((1, risk.alpha.shape[1]), 0.5)
    return risk.at_level(np.concatenate([np.tile(risk.alpha, (horizon + 1, 1)), end]))


@pytest.mark.parametrize("discount", [0.8, 1.0])
@pytest.mark.parametrize("risk_name", EXACT)
@pytest.mark.parametrize("name", NAMES)
def test_a_horizon_is_time_as_part_of_the_state(name, risk_name, discount):
    case = problem(name)
    terminal = terminal_of(case)
    risk = measure(risk_name, case.shape)
    plan = over(case, risk, discount=discount, terminal=terminal)
    larger = with_time(case, H, terminal)
    known = brmdp.plan(
        larger.belief, larger.rewards, discount, risk=levels_with_time(risk, H), tolerance=1e-9
    )
    n = case.n_states
    expected = known.values[: (H + 1) * n].reshape(H + 1, n)
    assert np.abs(plan.values - expected).max() <= plan.error_bound.max() + known.error_bound
    clear = ~plan.tied & ~known.tied[: H * n].reshape(H, n)
    assert clear.any()
    assert (plan.policy == known.policy[: H * n].reshape(H, n))[clear].all()
    assert plan.status == "converged"
    # the bound of the values of the policy itself
    own = followed(case, plan.policy, risk, discount=discount, terminal=terminal)
    lost = plan.values - own.values
    assert (lost.max(axis=1) <= plan.policy_gap + own.error_bound + 1e-300).all()
    assert (lost >= -(plan.error_bound + own.error_bound)[:, None]).all()


@pytest.mark.parametrize("risk_name", ["mean", "quantile-low", "sampled-quantile", "cvar"])
@pytest.mark.parametrize("name", NAMES)
def test_values_of_policies_agree_with_plain_loops(name, risk_name):
    case = problem(name)
    rng = np.random.default_rng(5)
    terminal = terminal_of(case)
    mask = case.admissible
    probabilities = rng.random((H, *case.shape)) * mask
    probabilities[:, 0] = 0.0
    probabilities[:, 0, np.flatnonzero(mask[0])[0]] = 1.0
    probabilities /= probabilities.sum(axis=2, keepdims=True)
    actions = probabilities.argmax(axis=2)
    bound = Frozen(measure(risk_name, case.shape), case.belief)

    def risk(s, a, targets):
        q = np.full(case.belief.pattern.n_pairs, np.nan)
        pattern = case.belief.pattern
        pair = s * case.shape[1] + a
        flat = np.zeros(pattern.n_transitions)
        here = slice(pattern.indptr[pair], pattern.indptr[pair + 1])
        flat[here] = targets[pattern.next_states[here]]
        bound.bound.evaluate(flat, np.array([pair]), q)
        return q[pair]

    for policy, stages in (
        (actions, actions),
        (probabilities, probabilities),
        (actions[0], np.tile(actions[0], (H, 1))),
        (probabilities[0], np.tile(probabilities[0], (H, 1, 1))),
    ):
        found = followed(case, policy, bound, terminal=terminal)
        expected = oracle.backward(risk, case.rewards, case.discount, H, terminal, stages, mask)
        assert np.abs(found.values - expected).max() <= 2.0 * found.error_bound.max() + 1e-13
        assert np.array_equal(found.policy, stages) or np.allclose(found.policy, stages)
        assert not found.tied.any()
        assert (found.policy_gap == 0.0).all()
        # q-values of all actions, or of the policy's alone
        few = followed(case, policy, bound, terminal=terminal, all_actions=False)
        assert np.abs(few.values - found.values).max() <= 2.0 * found.error_bound.max()
        assert np.isfinite(found.q_values[:, mask]).all()
        assert np.isfinite(few.q_values).sum() <= np.isfinite(found.q_values).sum()
    best = over(case, bound, terminal=terminal)
    optimal = oracle.backward(risk, case.rewards, case.discount, H, terminal, None, mask)
    assert np.abs(best.values - optimal).max() <= 2.0 * best.error_bound.max() + 1e-13
    assert best.status == solved(risk_name)


@pytest.mark.parametrize("discount", [0.0, 0.5, 1.0])
def test_a_known_mdp(discount):
    kernel, rewards = problem_of_mdp(1)
    mdp = brmdp.TabularMDP(kernel, rewards, discount)
    terminal = np.random.default_rng(2).normal(size=4)
    plan = brmdp.solve(mdp, horizon=7, terminal=terminal)
    expected = oracle.backward(mean_risk(kernel), rewards, discount, 7, terminal)
    assert np.abs(plan.values - expected).max() <= plan.error_bound.max()
    own = brmdp.evaluate_in_mdp(mdp, plan.policy, horizon=7, terminal=terminal)
    assert own.shape == (8, 4)
    assert np.abs(own - plan.values).max() <= 2.0 * plan.error_bound.max()
    fixed = brmdp.evaluate_in_mdp(mdp, [0, 1, 0, 1], horizon=7)
    stages = np.tile([0, 1, 0, 1], (7, 1))
    loops = oracle.backward(mean_risk(kernel), rewards, discount, 7, np.zeros(4), stages)
    np.testing.assert_allclose(fixed, loops, atol=1e-13)


def problem_of_mdp(seed):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(4), (4, 2)), rng.normal(size=(4, 2, 4))


def test_one_drawn_kernel_is_held_over_all_steps():
    case = problem("dense-1")
    plan = over(case, brmdp.PosteriorSample(rng=9), discount=1.0, horizon=6)
    (kernel,) = case.belief.sample(1, rng=np.random.default_rng(9))
    expected = oracle.backward(mean_risk(kernel), case.rewards, 1.0, 6, np.zeros(case.n_states))
    assert np.abs(plan.values - expected).max() <= plan.error_bound.max()
    assert plan.status == plan.basis == "sampled"


def test_draws_of_a_quantile_serve_all_steps():
    case = problem("dense-1")
    risk = brmdp.Quantile(0.3, method=brmdp.MonteCarlo(samples=20, rng=1))
    plan = over(case, risk, horizon=3)
    again = brmdp.Quantile(0.3, method=brmdp.MonteCarlo(samples=20, rng=1))
    frozen = Frozen(again, case.belief)
    values = np.zeros(case.n_states)
    for h in (2, 1, 0):
        values = case.backup(frozen, values).max(axis=1)
        np.testing.assert_array_equal(plan.values[h], values)


def test_a_long_horizon_tends_to_the_discounted_plan():
    case = problem("riverswim")
    risk = brmdp.Quantile(0.2)
    plan = over(case, risk, horizon=250)
    limit = case.plan(risk)
    left = case.discount**250 * np.abs(case.rewards).max() / (1 - case.discount)
    assert np.abs(plan.values[0] - limit.values).max() <= left + 1e-8
    clear = ~limit.tied & ~plan.tied[0]
    assert (plan.policy[0] == limit.policy)[clear].all()


def test_numerical_errors_add_up():
    case = problem("dense-1")
    short, long = (over(case, brmdp.Mean(), horizon=h, discount=1.0) for h in (1, 50))
    assert long.error_bound[-1] == short.error_bound[-1] == 0.0
    assert (np.diff(long.error_bound) < 0.0).all()
    # the bound holds against exact arithmetic
    from fractions import Fraction

    mean = case.belief.mean()
    values = [Fraction(0)] * case.n_states
    for _ in range(50):
        values = [
            max(
                sum(
                    Fraction(float(p)) * (Fraction(float(r)) + v)
                    for p, r, v in zip(mean[s, a], case.rewards[s, a], values, strict=True)
                )
                for a in range(case.shape[1])
            )
            for s in range(case.n_states)
        ]
    off = max(
        abs(float(exact - Fraction(float(v))))
        for exact, v in zip(values, long.values[0], strict=True)
    )
    assert 0.0 < off <= long.error_bound[0] < 1e-11


def test_ties_are_marked_and_the_lowest_index_is_taken():
    kernel = np.full((2, 3, 2), 0.5)
    rewards = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0]])
    plan = brmdp.solve(brmdp.TabularMDP(kernel, rewards, 1.0), horizon=3)
    assert plan.policy.tolist() == [[0, 1]] * 3
    assert plan.tied.all()
    assert plan.tied_actions(1).tolist() == [[True, True, False], [False, True, True]]
    # a difference that the error bound resolves is no tie
    rewards[0, 1] += 1e-10
    plan = brmdp.solve(brmdp.TabularMDP(kernel, rewards, 1.0), horizon=3)
    assert plan.policy[:, 0].tolist() == [1] * 3
    assert (plan.tie_width <= 2.0 * plan.error_bound[:-1]).all()


def test_the_prior_is_judged_over_the_steps():
    belief = brmdp.DirichletBelief.uniform(3, 2)
    belief.observe([0] * 60 + [1] * 60, 0, [0, 1] * 60)
    rewards = np.zeros((3, 2))
    with pytest.warns(brmdp.PriorWarning, match="rests heavily on the prior"):
        plan = brmdp.plan(belief, rewards, 1.0, risk=brmdp.Mean(), horizon=3, start=2)
    # the first step in state 2, which was never seen; afterwards a third of the time each
    mean = belief.mean()[:, 0]
    begin = np.array([0.0, 0.0, 1.0])
    time = (begin + begin @ mean + begin @ mean @ mean) / 3
    assert plan.prior.never_observed_visits == pytest.approx(time[2])
    assert plan.prior.pairs_never_observed.tolist() == [[2, 0]]
    assert plan.prior.n_pairs == 3
    assert "3 steps" in str(plan.prior)
    assert "rests heavily on the prior" in str(plan)
    own = brmdp.evaluate_under_belief(
        belief, rewards, 1.0, [[0, 1, 0], [0, 0, 0]], risk=brmdp.Mean(), horizon=2, start=0
    )
    assert own.prior.pairs_never_observed.tolist() == [[1, 1], [2, 0]]
    assert (
        brmdp.plan(
            problem("scenarios-5").belief,
            problem("scenarios-5").rewards,
            1.0,
            risk=brmdp.Mean(),
            horizon=2,
        ).prior
        is None
    )


def test_q_values_are_dropped_by_a_clear_rule(monkeypatch):
    case = problem("dense-1")
    kept = over(case, brmdp.Mean())
    monkeypatch.setattr(finite_horizon, "KEPT_Q_VALUES", H * 4 * 3 - 1)
    plan = over(case, brmdp.Mean())
    assert plan.q_values is None
    assert np.array_equal(plan.policy, kept.policy)
    np.testing.assert_array_equal(kept.q_values[2], case.backup(brmdp.Mean(), plan.values[3]))
    with pytest.raises(brmdp.InvalidInputError, match="q_values are not kept"):
        plan.tied_actions(0)
    monkeypatch.setattr(finite_horizon, "LARGEST_PLAN", 19)
    with pytest.raises(brmdp.InvalidInputError, match="horizon must be at most 3 for 4 states"):
        over(case, brmdp.Mean())


def test_it_prints_in_words():
    case = problem("dense-1")
    plan = over(case, brmdp.Quantile(0.1), discount=1.0)
    assert str(plan).startswith("Plan for 4 steps in 4 states, with discount 1.\nValues at the")
    assert "error of at most" in str(plan)
    assert repr(plan).startswith("HorizonSolution(status='converged', 4 steps, 4 states")
    assert max(map(len, str(plan).splitlines() + repr(plan).splitlines())) <= 100
    sampled = over(case, brmdp.PosteriorSample(rng=0))
    assert "made from draws" in str(sampled)
    rough = over(case, brmdp.Quantile(0.1, method="saddlepoint"))
    assert rough.status == "approximate"
    assert np.isinf(rough.error_bound[:-1]).all()
    assert "no error bound" in str(rough)
    own = followed(case, plan.policy, brmdp.Mean())
    assert str(own).startswith("Values of a policy for 4 steps")
    assert isinstance(own, HorizonSolution)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon must be a positive integer; got 0"),
        ({"horizon": -3}, "horizon must be a positive integer; got -3"),
        ({"horizon": 2.0}, "horizon must be a positive integer; got 2.0"),
        ({"horizon": True}, "horizon must be a positive integer; got True"),
        ({"horizon": 3, "terminal": [0.0] * 5}, r"terminal must hold .* \(4,\); got \(5,\)"),
        ({"horizon": 3, "terminal": 1.0}, r"terminal must hold one value per state"),
        ({"horizon": 3, "terminal": [0.0, np.nan, 0.0, 0.0]}, "terminal must be finite"),
        ({"horizon": 3, "terminal": [1e200, 0.0, 0.0, 0.0]}, "rewards × horizon . terminal"),
        ({"terminal": [0.0] * 4}, "terminal must be given only together with a horizon"),
        ({"horizon": 3, "initial": [0.0] * 4}, "initial must not be given with a horizon"),
        ({"horizon": 3, "method": "value-iteration"}, "method must be left out with a horizon"),
        ({"horizon": 3, "max_iterations": 5}, "max_iterations must be left out"),
        ({"horizon": 3, "discount": 1.1}, r"discount must lie in \[0, 1\]; got 1.1"),
        ({"horizon": 3, "tolerance": -1.0}, "tolerance must be a positive finite number"),
        ({"horizon": 3, "start": 9}, "start"),
    ],
)
def test_bad_arguments_are_named(options, message):
    case = problem("dense-1")
    given = {"horizon": None} | options
    with pytest.raises(brmdp.InvalidInputError, match=message):
        over(case, brmdp.Mean(), **given)
    with pytest.raises(brmdp.InvalidInputError, match=message):
        followed(case, [0, 0, 0, 0], brmdp.Mean(), **given)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.zeros((3, 4), dtype=int), r"must hold actions, \(4,\) or \(2, 4\), or probabilities"),
        (np.zeros((2, 4, 2)), "must hold actions"),
        ([[0, 0, 0, 3], [0, 0, 0, 0]], r"policy must lie in 0..2; got 3 at index \(0, 3\)"),
        ([[0.0] * 4, [0.0] * 4], "policy must be integers"),
        (np.full((2, 4, 3), 0.5), r"policy\[0\] must have probabilities that sum to one"),
        (np.full((4, 3), np.nan), "policy must be finite"),
        ("left", "policy"),
    ],
)
def test_bad_policies_are_named(policy, message):
    case = problem("dense-1")
    with pytest.raises(brmdp.InvalidInputError, match=message):
        followed(case, policy, brmdp.Mean(), horizon=2)
    mdp = brmdp.TabularMDP(case.belief.mean(), case.rewards, 0.9)
    with pytest.raises(brmdp.InvalidInputError, match=message):
        brmdp.evaluate_in_mdp(mdp, policy, horizon=2)


def test_a_square_table_is_read_by_its_type():
    rng = np.random.default_rng(1)
    kernel, rewards = rng.dirichlet(np.ones(2), (2, 2)), rng.normal(size=(2, 2))
    mdp = brmdp.TabularMDP(kernel, rewards, 1.0)
    by_step = brmdp.evaluate_in_mdp(mdp, np.array([[1, 0], [0, 1]]), horizon=2)
    mixed = brmdp.evaluate_in_mdp(mdp, np.array([[1.0, 0.0], [0.0, 1.0]]), horizon=2)
    same = brmdp.evaluate_in_mdp(mdp, [0, 1], horizon=2)
    np.testing.assert_allclose(mixed, same, atol=1e-15)
    assert np.abs(by_step - mixed).max() > 1e-3


def test_a_tolerance_that_cannot_be_met_is_refused():
    case = problem("dense-1")
    with pytest.raises(brmdp.ConvergenceError, match="over 4 steps, tolerance 1e-18") as caught:
        over(case, brmdp.Quantile(0.1), tolerance=1e-18)
    assert caught.value.solution.status == "not converged"
    plan = over(case, brmdp.Quantile(0.1), tolerance=1e-18, raise_on_failure=False)
    assert plan.status == "not converged"
    assert "more than the tolerance" in str(plan)
    fine = over(case, brmdp.Quantile(0.1), tolerance=1e-6)
    assert fine.tolerance == 1e-6


def test_a_measure_of_ones_own_is_checked():
    class Twice:
        def bind(self, belief):
            inner = brmdp.Mean().bind(belief)
            inner_evaluate = inner.evaluate

            class Bound:
                basis = "exact"
                rows, fixed_entries = inner.rows, staticmethod(lambda: None)
                approximation = staticmethod(lambda: None)

                def evaluate(self, targets, pairs, out):
                    return inner_evaluate(2.0 * targets, pairs, out)

            return Bound()

    with pytest.raises(brmdp.RiskMeasureError, match="must grow"):
        over(problem("dense-1"), Twice())
