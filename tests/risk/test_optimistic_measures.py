"""Bonuses, balls, Bernstein bounds and hopeful posteriors: by hand, by loops, and what holds."""

import math

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp.planning.planner import Problem
from brmdp.risk import (
    BernsteinBound,
    Bonus,
    CountBonus,
    GuidanceBonus,
    OptimisticBall,
    OptimisticPosterior,
    RootBonus,
    UnknownBonus,
    VarianceBonus,
)
from brmdp.risk.optimism import _Lifted
from oracles import optimism

INVALID = brmdp.InvalidInputError


def two_states(seed=1):
    """A model for the oracle, and the same as a belief."""
    rng = np.random.default_rng(seed)
    prior = rng.uniform(0.3, 2.0, (2, 2, 2))
    counts = rng.integers(0, 9, (2, 2, 2))
    counts[1, 1] = 0
    rewards = rng.uniform(-0.5, 1.0, (2, 2, 2))
    belief = brmdp.DirichletBelief(prior)
    for s, a, t in np.argwhere(counts):
        belief.observe([s] * counts[s, a, t], a, t)
    return (prior, counts, rewards, 0.7), belief


CASES = {
    "beb": (lambda m: Bonus(CountBonus(0.8)), optimism.beb(0.8)),
    "vbrb": (lambda m: Bonus(VarianceBonus(0.8)), optimism.vbrb(0.8)),
    "r-max": (
        lambda m: Bonus(UnknownBonus(6), ceiling=optimism.largest_value(m)),
        optimism.r_max(6),
    ),
    "ucrl2": (lambda m: OptimisticBall(0.1, 0.08), optimism.ucrl2(0.1, 0.08)),
    "ucbvi-gamma": (
        lambda m: BernsteinBound(
            0.5, float(np.ptp(m[2])) / (1 - m[3]), optimism.largest_value(m), 0.05
        ),
        optimism.ucbvi_gamma(0.5, 0.05),
    ),
}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_plans_are_the_fixed_points_of_the_formulas(name, seed):
    model, belief = two_states(seed)
    make, q = CASES[name]
    plan = brmdp.plan(belief, model[2], model[3], risk=make(model))
    expected = optimism.fixed_point(model, q, 60 if name == "ucrl2" else 200)
    np.testing.assert_allclose(plan.q_values, expected, rtol=0, atol=1e-8)
    assert plan.status == "converged"
    slow = brmdp.plan(belief, model[2], model[3], risk=make(model), method="value-iteration")
    np.testing.assert_allclose(slow.values, plan.values, rtol=0, atol=1e-7)
    warm = brmdp.plan(belief, model[2], model[3], risk=make(model), initial=plan.values + 3.0)
    np.testing.assert_allclose(warm.values, plan.values, rtol=0, atol=1e-7)


def test_a_bonus_by_hand():
    """One action, uniform prior: V = 0.9·mean(V) + r + 0.1, so V = (5.5, 6.5)."""
    belief = brmdp.DirichletBelief.uniform(2, 1)
    rewards = [[0.0], [1.0]]
    plan = brmdp.plan(belief, rewards, 0.9, risk=Bonus(CountBonus(0.3)))
    np.testing.assert_allclose(plan.values, [5.5, 6.5], atol=1e-8)
    belief.observe([0] * 3, 0, 1)  # Dir(1, 4), n = 3: bonuses 0.3/6, 0.3/3 and 0.3/√3, 0.3
    np.testing.assert_allclose(CountBonus(0.3).amounts(belief), [0.05, 0.1], rtol=1e-15)
    np.testing.assert_allclose(RootBonus(0.3).amounts(belief), [0.3 / 3**0.5, 0.3], rtol=1e-15)
    # Var of Beta(1, 4) is 4/150 and of Beta(1, 1) 1/12, each for two successors
    expected = [math.sqrt(8 / 150), math.sqrt(1 / 6)]
    np.testing.assert_allclose(VarianceBonus(1.0).amounts(belief), expected, rtol=1e-14)
    assert UnknownBonus(3).amounts(belief).tolist() == [0.0, np.inf]


def test_guidance_replaces_rewards():
    model, belief = two_states(4)
    empty = (model[0], np.zeros_like(model[1]), *model[2:])
    largest = max(optimism.doubt(empty, s, a) for s in range(2) for a in range(2))
    rule = GuidanceBonus(1.3, largest, model[2].ravel())
    plan = brmdp.plan(belief, model[2], model[3], risk=Bonus(rule))
    expected = optimism.fixed_point(model, optimism.eubrl(1.3), 200)
    np.testing.assert_allclose(plan.q_values, expected, atol=1e-8)


def test_the_quantile_with_a_fictitious_state_by_hand():
    """Both real successors are worth 0, so q is v times the quantile of a Beta marginal."""
    belief = brmdp.DirichletBelief([[[2.0, 1.5]], [[1.0, 1.0]]])
    for inflation in (1.0, 2.5):
        risk = OptimisticPosterior(brmdp.Quantile(0.8), 10.0, 0.7, inflation)
        found = brmdp.backup(belief, [[0.0], [0.0]], 0.9, [0.0, 0.0], risk=risk)
        law = stats.beta(0.7 / inflation, np.array([3.5, 2.0]) / inflation)
        np.testing.assert_allclose(found.q_values[:, 0], 10.0 * law.ppf(0.8), rtol=1e-7)
    # the mean of each row, of which the fictitious state has 0.7/4.2 and 0.7/2.7
    mean = OptimisticPosterior(brmdp.Mean(), 10.0, 0.7)
    rows = brmdp.backup(belief, [[0.0], [0.0]], 0.9, [0.0, 0.0], risk=mean)
    np.testing.assert_allclose(rows.q_values[:, 0], [7.0 / 4.2, 7.0 / 2.7], rtol=1e-12)
    np.testing.assert_allclose(rows.kernel[0, 0], [2.0 / 4.2, 1.5 / 4.2], rtol=1e-12)


@pytest.mark.parametrize(
    "base", [brmdp.Mean(), brmdp.Quantile(0.7), brmdp.CVaR(0.4), brmdp.Quantile([[0.6], [0.9]])]
)
def test_a_fictitious_state_is_an_absorbing_one_of_that_value(base):
    """The same plan as in the larger problem, where the state pays v(1 − γ) at every step."""
    phi = np.random.default_rng(3).uniform(0.5, 3.0, (2, 1, 2))
    larger = np.zeros((3, 1, 3))
    larger[:2, :, :2], larger[:2, :, 2], larger[2, :, 2] = phi, 0.8, 1.0
    rewards, gamma, worth = np.array([[0.0], [1.0]]), 0.8, 6.0
    # the target of the fictitious state is its value, without reward and discount
    wide = np.zeros((3, 1, 3))
    wide[:2] = rewards[:, :, None]
    wide[:2, :, 2] = worth - gamma * worth
    wide[2] = worth * (1 - gamma)
    level = getattr(base, "alpha", None)
    other = base if level is None or level.ndim == 0 else base.at_level([[0.6], [0.9], [0.5]])
    expected = brmdp.plan(brmdp.DirichletBelief(larger), wide, gamma, risk=other)
    risk = OptimisticPosterior(base, worth, 0.8)
    found = brmdp.plan(brmdp.DirichletBelief(phi), rewards, gamma, risk=risk)
    np.testing.assert_allclose(found.values, expected.values[:2], rtol=1e-7)
    assert expected.values[2] == pytest.approx(worth)
    assert found.status == "converged"


def test_the_best_of_several_draws():
    """Draws taken by hand from the same stream, and their largest value in every pair."""
    model, belief = two_states(2)
    samples = 5
    level = 1.0 - 0.5 / samples
    worth = optimism.largest_value(model)
    method = brmdp.MonteCarlo(samples=samples, rng=7)
    risk = OptimisticPosterior(brmdp.Quantile(level, method), worth, 0.6, 2.0)
    plan = brmdp.plan(belief, model[2], model[3], risk=risk)
    assert plan.status == "sampled"
    wider = np.zeros((3, 2, 3))
    wider[:2, :, :2] = belief.concentration() / 2.0
    wider[:2, :, 2], wider[2, :, 2] = 0.3, 1.0
    hopeful = brmdp.DirichletBelief(wider)
    rng = np.random.default_rng(7)
    pairs = hopeful.pattern.pairs
    drawn = [hopeful.sample_entries(samples, pairs[k : k + 1], rng=rng) for k in range(pairs.size)]
    q = optimism.best_of_draws([drawn[:2], drawn[2:4]], worth)
    np.testing.assert_allclose(plan.q_values, optimism.fixed_point(model, q, 200), atol=1e-8)


# --- what error bounds rest on --------------------------------------------------------------------


def measures(model):
    found = {name: make(model) for name, (make, _) in CASES.items()}
    found["bonus of a quantile"] = Bonus(RootBonus(0.5), brmdp.Quantile(0.3), ceiling=2.0)
    found["hopeful quantile"] = OptimisticPosterior(brmdp.Quantile(0.8), 3.0, 0.5, 2.0)
    return found


@pytest.mark.parametrize("name", measures(two_states()[0]))
def test_values_are_monotone_and_rise_by_no_more_than_the_targets(name):
    model, belief = two_states()
    risk = measures(model)[name].bind(belief)
    pattern, rng = belief.pattern, np.random.default_rng(1)
    span = float(np.ptp(model[2])) / (1 - model[3])

    def values(targets):
        out = np.empty(pattern.n_pairs)
        risk.evaluate(targets, pattern.pairs, out)
        return out

    for _ in range(60):
        here = rng.uniform(model[2].min(), model[2].min() + span, pattern.n_transitions)
        base = values(here)
        raised = here.copy()
        chosen = rng.random(here.size) < 0.5
        raised[chosen] += rng.uniform(0.0, model[2].min() + span - here[chosen])
        rise = (raised - here).max()
        there = values(raised)
        assert (there >= base - 1e-9).all()
        assert (there <= base + rise + 1e-9).all()
        shifted = values(here + 0.7)
        assert (shifted <= base + 0.7 + 1e-9).all()
        rows = risk.rows(here, base, pattern.pairs)
        step = 1e-6 * rng.normal(size=here.size)
        change = np.bincount(pattern.pair_of_transition, rows * step)
        np.testing.assert_allclose(values(here + step) - base, change, atol=3e-9)
        sums = np.bincount(pattern.pair_of_transition, rows)
        assert (rows >= 0.0).all()
        assert (sums <= 1.0 + 1e-9).all()


def test_the_error_bound_of_a_plan_with_a_ceiling_holds():
    """Values stopped early lie within their bound of the fixed point."""
    model, belief = two_states()
    risk = Bonus(CountBonus(2.0), brmdp.Quantile(0.6), ceiling=2.5)
    exact = brmdp.plan(belief, model[2], 0.9, risk=risk, tolerance=1e-10)
    assert (exact.values <= 2.5).all()
    assert exact.tied_actions().any()
    for rounds in (1, 3, 10):
        early = brmdp.plan(
            *(belief, model[2], 0.9),
            risk=risk,
            method="value-iteration",
            max_iterations=rounds,
            raise_on_failure=False,
        )
        assert np.abs(early.values - exact.values).max() <= early.error_bound + 1e-9


def test_a_pair_at_the_ceiling_has_an_empty_row():
    belief = brmdp.DirichletBelief.uniform(2, 1)
    belief.observe(0, 0, 1)
    risk = Bonus(UnknownBonus(1), ceiling=10.0)
    found = brmdp.backup(belief, [[0.0], [1.0]], 0.9, [1.0, 2.0], risk=risk)
    np.testing.assert_allclose(found.q_values[:, 0], [0.9 * 5 / 3, 10.0])
    np.testing.assert_allclose(found.kernel[:, 0], [[1 / 3, 2 / 3], [0.0, 0.0]])


def test_nothing_is_added_where_there_is_nothing_to_learn():
    """Rows with one possible outcome are known, whatever the method."""
    belief = brmdp.DirichletBelief([[[0.0, 3.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    rewards, values = [[0.0, 0.0], [1.0, 0.0]], [0.0, 1.0]
    for risk in (
        Bonus(CountBonus(2.0)),
        Bonus(UnknownBonus(2), ceiling=10.0),
        BernsteinBound(0.1, 10.0, 10.0),
        OptimisticBall(0.1),
        OptimisticPosterior(brmdp.Quantile(0.9), 10.0),
    ):
        q = brmdp.backup(belief, rewards, 0.9, values, risk=risk).q_values
        np.testing.assert_allclose(q[[0, 1, 1], [0, 0, 1]], [0.9, 1.9, 0.0], atol=1e-9)
        assert q[0, 1] > 0.451  # the mean is 0.45


def test_over_a_horizon_and_without_a_discount():
    belief = brmdp.DirichletBelief.uniform(2, 1)
    rewards = [[0.0], [1.0]]
    plan = brmdp.plan(belief, rewards, 1.0, risk=Bonus(CountBonus(0.3)), horizon=2)
    np.testing.assert_allclose(plan.values[0], [0.7, 1.7])  # 0.1 + (0.1 + 1.1)/2 and one more
    ending = brmdp.DirichletBelief([[[1.0, 1.0]], [[0.0, 1.0]]])
    for risk in (
        Bonus(CountBonus(0.3)),
        OptimisticPosterior(brmdp.Mean(), 2.0),
        OptimisticBall(0.1),
        BernsteinBound(0.1, 1.0, 1.0),
    ):
        with pytest.raises(INVALID, match="discount must be below 1 for a measure of this kind"):
            brmdp.plan(ending, [[1.0], [0.0]], 1.0, risk=risk)


def test_levels_and_memory_are_those_of_the_base():
    assert not hasattr(Bonus(CountBonus(1.0)), "alpha")
    assert not hasattr(Bonus(CountBonus(1.0)), "at_level")
    lower = Bonus(CountBonus(1.0), brmdp.CVaR(0.3), ceiling=4.0).at_level(0.1)
    assert (float(lower.alpha), lower.ceiling, lower.rule) == (0.1, 4.0, CountBonus(1.0))
    assert Bonus(CountBonus(1.0)).memory() == {}
    sampled = Bonus(CountBonus(1.0), brmdp.PosteriorSample(rng=3))
    back, before = sampled.checkpoint(), sampled.memory()
    belief = brmdp.DirichletBelief.uniform(2, 1)
    first = brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=sampled).values
    back()
    assert (brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=sampled).values == first).all()
    sampled.restore(before)
    assert (brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=sampled).values == first).all()


def test_a_quantile_with_a_bonus_starts_from_its_approximation():
    _, belief = two_states()
    bound = Bonus(CountBonus(1.0), brmdp.Quantile(0.3), ceiling=3.0).bind(belief)
    assert isinstance(bound.approximation(), _Lifted)
    assert bound.approximation().basis == "approximate"
    assert bound.approximation().approximation() is None
    assert Bonus(CountBonus(1.0)).bind(belief).approximation() is None


# --- what is refused ------------------------------------------------------------------------------


class Rule:
    def __init__(self, amounts):
        self.made = amounts

    def amounts(self, belief):
        return self.made


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ([1.0], r"shape \(2,\); got float64 of shape \(1,\)"),
        (["a", "b"], r"must return one number per pair"),
        ([np.nan, 0.0], r"must return numbers within ±1e\+100; got nan at \(s=0, a=0\)"),
        ([0.0, 1e200], r"must return numbers within ±1e\+100; got 1e\+200 at \(s=1, a=0\)"),
        ([0.0, np.inf], r"got inf at \(s=1, a=0\); infinite ones need a ceiling"),
        ([-np.inf, 0.0], r"must return numbers within ±1e\+100; got -inf"),
    ],
)
def test_bad_amounts_are_refused(amounts, message):
    belief = brmdp.DirichletBelief.uniform(2, 1)
    with pytest.raises(INVALID, match=f"Rule.amounts {message}|{message}"):
        brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=Bonus(Rule(amounts)))


@pytest.mark.parametrize("amount", [np.nan, -np.inf])
def test_a_ceiling_does_not_hide_nonsense(amount):
    belief = brmdp.DirichletBelief.uniform(2, 1)
    with pytest.raises(INVALID, match=r"must return numbers within ±1e\+100, or inf; got"):
        brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=Bonus(Rule([0.0, amount]), ceiling=1.0))


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1", None, True, [1.0]])
def test_bad_numbers_are_refused(bad):
    for kind in (CountBonus, RootBonus, VarianceBonus):
        with pytest.raises(INVALID, match="scale must be a positive finite number; got"):
            kind(bad)
    for make, name in (
        (lambda: OptimisticBall(0.1, bad), "scale"),
        (lambda: BernsteinBound(0.1, bad, 1.0), "span"),
        (lambda: BernsteinBound(0.1, 1.0, 1.0, bad), "scale"),
        (lambda: OptimisticPosterior(brmdp.Mean(), 1.0, bad), "strength"),
        (lambda: OptimisticPosterior(brmdp.Mean(), 1.0, 1.0, bad), "inflation"),
        (lambda: GuidanceBonus(bad, 1.0, [0.0]), "scale"),
        (lambda: GuidanceBonus(1.0, bad, [0.0]), "largest"),
    ):
        with pytest.raises(INVALID, match=f"{name} must be a positive finite number; got"):
            make()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200, "1", True, [1.0]])
def test_bad_values_are_refused(bad):
    for make, name in (
        (lambda: Bonus(CountBonus(1.0), ceiling=bad), "ceiling"),
        (lambda: BernsteinBound(0.1, 1.0, bad), "ceiling"),
        (lambda: OptimisticPosterior(brmdp.Mean(), bad), "value"),
    ):
        with pytest.raises(
            INVALID, match=f"{name} must (be a finite number|lie within ±1e.100); got"
        ):
            make()


def test_more_that_is_refused():
    belief = brmdp.DirichletBelief.uniform(2, 1)
    for bad in (0, 1, -0.1, np.nan, "0.1", None):
        with pytest.raises(INVALID, match="delta must"):
            OptimisticBall(bad)
        with pytest.raises(INVALID, match="delta must"):
            BernsteinBound(bad, 1.0, 1.0)
    for bad in (0, -2, 1.5, "3", None, True):
        with pytest.raises(INVALID, match="visits must be a positive integer; got"):
            UnknownBonus(bad)
    for bad in (1.0, CountBonus, "beb", None):
        with pytest.raises(INVALID, match="rule must be an object with a method amounts"):
            Bonus(bad)
    for bad in (brmdp.Mean, "mean", Bonus(CountBonus(1.0)), 0.1):
        with pytest.raises(INVALID, match="base must be one of Mean, Quantile, CVaR"):
            Bonus(CountBonus(1.0), bad)
        with pytest.raises(INVALID, match="base must be one of Mean, Quantile, CVaR"):
            OptimisticPosterior(bad, 1.0)
    with pytest.raises(INVALID, match=r"scale must lie in \(0, 1\]; got 1.5"):
        BernsteinBound(0.1, 1.0, 1.0, 1.5)
    with pytest.raises(INVALID, match=r"inflation must be at least 1; got 0\.5"):
        OptimisticPosterior(brmdp.Mean(), 1.0, inflation=0.5)
    with pytest.raises(INVALID, match=r"one number per possible transition, \(4,\); got \(2,\)"):
        GuidanceBonus(1.0, 1.0, [0.0, 1.0]).amounts(belief)
    risk = OptimisticPosterior(brmdp.Quantile([0.1, 0.2, 0.3]), 1.0)
    with pytest.raises(INVALID, match=r"alpha must be a number or have shape \(2, 1\)"):
        brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=risk)


def test_beliefs_that_do_not_fit_are_refused_by_name():
    scenarios = brmdp.ScenarioBelief(np.full((2, 2, 1, 2), 0.5), [0.5, 0.5])
    driven = brmdp.DisturbanceBelief(np.array([[[0, 1]], [[1, 0]]]), [1.0, 1.0])
    for risk in (Bonus(CountBonus(1.0)), OptimisticBall(0.1), BernsteinBound(0.1, 1.0, 1.0)):
        with pytest.raises(INVALID, match=r"needs a belief with a method evidence\(pairs\); Scen"):
            risk.bind(scenarios)
    with pytest.raises(INVALID, match=r"must have Dirichlet rows .* got a ScenarioBelief"):
        Bonus(VarianceBonus(1.0)).bind(scenarios)
    for belief in (scenarios, driven):
        with pytest.raises(INVALID, match="must be a DirichletBelief for an OptimisticPosterior"):
            OptimisticPosterior(brmdp.Mean(), 1.0).bind(belief)
    # one disturbance drives all pairs, and every pair counts all of its observations
    driven.observe(0, 0, 1)
    np.testing.assert_allclose(CountBonus(1.0).amounts(driven), [0.25, 0.25])
    np.testing.assert_allclose(VarianceBonus(1.0).amounts(driven), np.sqrt([1 / 9, 1 / 9]))


def test_priors_from_entries():
    pattern = brmdp.DirichletBelief.uniform(2, 1).pattern
    belief = brmdp.DirichletBelief.from_entries(pattern, [1.0, 2.0, 3.0, 4.0])
    assert belief.concentration().tolist() == [[[1.0, 2.0]], [[3.0, 4.0]]]
    for bad, message in (
        ([1.0, 2.0], r"one number per possible transition, \(4,\); got \(2,\)"),
        ([1.0, 2.0, 3.0, np.nan], "concentration must be finite"),
        ([1.0, 2.0, 3.0, -1.0], "concentration must be 0 or lie in"),
    ):
        with pytest.raises(INVALID, match=message):
            brmdp.DirichletBelief.from_entries(pattern, bad)


def test_without_rewards_curiosity_is_all_there_is():
    """All rewards zero: the solver's own scale is zero, but the bonus is not."""
    belief = brmdp.DirichletBelief.uniform(3, 2)
    problem = Problem.of(belief, np.zeros((3, 2)), 0.9)
    solution = problem.solve(belief, Bonus(CountBonus(4.0)))
    np.testing.assert_allclose(solution.values, 10.0, rtol=1e-9)
    assert solution.status == "converged"
