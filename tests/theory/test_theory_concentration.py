"""Deviation bounds, the optimism lemma and value decompositions.

Bounds are compared with exact quantiles, the lemma with the truth, decompositions with simulation.
"""

import doctest
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

import brmdp
from brmdp import agents, theory
from brmdp.envs import TabularEnv, riverswim
from brmdp.theory import optimism
from oracles import online, theory_lemmas
from problems import dense, random_kernel

relaxed = settings(derandomize=True, deadline=None, max_examples=150)
INVALID = brmdp.InvalidInputError

# --- Dirichlet quantile deviation -----------------------------------------------------------------


@st.composite
def rows(draw):
    """Concentrations, heavy and light, and values in [0, 1/(1 − γ)], among them the corners."""
    n = draw(st.integers(2, 6))
    phi = 10 ** draw(arrays(float, n, elements=st.floats(-1.5, 3.0)))
    gamma = draw(st.sampled_from([0.0, 0.5, 0.9, 0.99]))
    unit = draw(
        arrays(float, n, elements=st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1, width=32)))
    )
    return phi, unit / (1 - gamma), 1 / (1 - gamma)


levels = st.one_of(st.floats(1e-6, 1 - 1e-6), st.sampled_from([1e-9, 0.001, 0.5, 0.999, 1 - 1e-9]))


@pytest.mark.long
@relaxed
@given(rows(), levels)
def test_quantiles_stay_within_the_bounds(row, alpha):
    phi, values, size = row
    quantile, mean = brmdp.dirichlet.quantile(phi, values, alpha), phi @ values / phi.sum()
    above, below = theory.quantile_deviation_bounds(phi.sum(), alpha, value_range=size)
    assert quantile - mean <= above + 1e-9 * size
    assert mean - quantile <= below + 1e-9 * size


@pytest.mark.long
@relaxed
@given(rows(), st.floats(0.001, 0.9))
def test_tails_stay_within_the_bound(row, share):
    phi, values, size = row
    mean, deviation = phi @ values / phi.sum(), share * size
    bound = theory.dirichlet_tail_bound(phi.sum(), deviation, value_range=size)
    # strictly above or below; the law is continuous unless all values are equal
    assert brmdp.dirichlet.cdf(phi, values, mean + deviation, complement=True) <= bound * (1 + 1e-9)
    assert brmdp.dirichlet.cdf(phi, values, mean - deviation) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("alpha", [1e-8, 0.05, 0.5, 0.95, 1 - 1e-8])
@pytest.mark.parametrize(("total", "gamma"), [(2.0, 0.9), (37.5, 0.0), (1e6, 0.99)])
def test_the_bounds_invert_the_tail(alpha, total, gamma):
    above, below = theory.quantile_deviation_bounds(total, alpha, value_range=1 / (1 - gamma))
    assert above == pytest.approx(
        theory_lemmas.smallest_deviation(1 - alpha, total, gamma), rel=1e-7
    )
    assert below == pytest.approx(theory_lemmas.smallest_deviation(alpha, total, gamma), rel=1e-7)
    for deviation, tail in ((above, 1 - alpha), (below, alpha)):
        assert theory.dirichlet_tail_bound(
            total, deviation, value_range=1 / (1 - gamma)
        ) == pytest.approx(tail, rel=1e-7)


def test_bounds_of_a_whole_posterior():
    case = dense(1)
    total = case.belief.effective_sample_size()
    alpha = np.linspace(0.1, 0.9, total.size).reshape(total.shape)
    bounds = theory.quantile_deviation_bounds(total, alpha, value_range=2.0)
    assert bounds.above.shape == bounds.below.shape == total.shape
    for index in np.ndindex(total.shape):
        single = theory.quantile_deviation_bounds(total[index], alpha[index], value_range=2.0)
        assert (bounds.above[index], bounds.below[index]) == pytest.approx(tuple(single))
    many = theory.quantile_deviation_bounds(5.0, alpha)
    assert many.above.shape == alpha.shape


def test_single_bounds_are_plain_numbers():
    bounds = theory.quantile_deviation_bounds(5, 0.1)
    assert repr(bounds) == f"DeviationBounds(above={bounds.above}, below={bounds.below})"
    assert type(theory.dirichlet_tail_bound(5, 0.1)) is float


# --- the stated probability of optimism -----------------------------------------------------------


@pytest.mark.parametrize("scale", [0.3, 0.96, 0.97, 1.2, 1.45, 3.0, 7.7, 20.0])
@pytest.mark.parametrize("for_good", [True, False])
def test_first_informative_episode(scale, for_good):
    found = theory.first_informative_episode(3, scale / 3, for_good=for_good)
    assert found == theory_lemmas.first_informative(scale, for_good, 60_000)


@pytest.mark.parametrize(
    ("pairs", "delta"), [(12, 5.0), (64, 10.0), (12, 12**-0.5), (64, 1 / 8), (1000, 1e6)]
)
def test_first_informative_episode_in_closed_form(pairs, delta):
    """√k = δn ln(2k) by Lambert's function: y = √(2k) solves y/ln y = 2√2·δn."""
    k = math.exp(-2 * special.lambertw(-1 / (2 * math.sqrt(2) * pairs * delta), -1).real) / 2
    assert theory.first_informative_episode(pairs, delta) == pytest.approx(k, rel=1e-9, abs=1)


def test_stated_probability():
    assert theory.optimism_probability(12, 5.0, 1) == pytest.approx(1 - 60 * math.log(2))
    assert theory.optimism_probability(12, 5.0, 400) == pytest.approx(1 - 60 * math.log(800) / 20)
    k = theory.first_informative_episode(12, 5.0)
    assert (
        theory.optimism_probability(12, 5.0, k) > 0 >= theory.optimism_probability(12, 5.0, k - 1)
    )


# --- the lemma in runs ----------------------------------------------------------------------------


class Witness(theory.OptimismMeter):
    """Records the input of each report."""

    def __init__(self, agent, truth):
        super().__init__(agent, truth)
        self.seen = []
        self.steps = []

    def begin_episode(self, t):
        super().begin_episode(t)
        self.seen.append((self.agent.belief.concentration(), self.agent.levels))
        self.steps.append(t)


@cache
def watched(delta=0.1, floor=0.2, steps=60):
    truth = theory.draw_mdp(3, 2, 0.7, rng=17)
    agent = agents.aq_brmdp(
        brmdp.DirichletBelief.uniform(3, 2), truth.rewards, 0.7, delta=delta, floor=floor, rng=2
    )
    world = brmdp.World(TabularEnv(truth), 0.7)
    meter = Witness(agent, truth)
    path = brmdp.simulate(agent, world, steps, seed=3, on_episode=meter.begin_episode)
    return truth, meter, path


@pytest.mark.long
def test_reports_agree_with_plain_value_iteration():
    truth, meter, _ = watched()
    rewards = np.repeat(np.array(truth.rewards)[:, :, None], 3, axis=2)
    outcomes = set()
    for report, (phi, alpha) in zip(meter.reports[:6], meter.seen, strict=False):
        event, optimistic, robust, margin = theory_lemmas.optimism(
            phi, rewards, 0.7, truth.kernel(), alpha, 0.2
        )
        assert margin > 1e-6, "too close to call"
        assert (report.event, report.optimistic, report.robust_optimistic) == (
            event,
            optimistic,
            robust,
        )
        visits = (phi - 1).sum(axis=2).astype(int)
        np.testing.assert_allclose(
            alpha, online.adaptive_levels(visits, report.episode, 0.1, 0.2), atol=1e-14
        )
        assert report.event_probability == pytest.approx(math.prod(alpha.ravel()))
        assert report.union_probability == pytest.approx(1 - math.fsum(1 - alpha.ravel()))
        assert report.stated_probability == theory.optimism_probability(6, 0.1, report.episode)
        outcomes.add((event, optimistic))
    assert len(outcomes) > 1


def test_the_meter_sees_every_plan_and_changes_nothing():
    truth, meter, path = watched()
    agent = agents.aq_brmdp(
        brmdp.DirichletBelief.uniform(3, 2), truth.rewards, 0.7, delta=0.1, rng=2
    )
    history = brmdp.simulate(agent, brmdp.World(TabularEnv(truth), 0.7), 60, seed=3)
    np.testing.assert_array_equal(history.state, path.state)
    np.testing.assert_array_equal(history.action, path.action)
    np.testing.assert_array_equal(history.true_regret, path.true_regret)
    assert meter.steps == history.episodes.first_step
    assert [report.episode for report in meter.reports] == list(range(1, history.episode[-1] + 1))


def test_a_loaded_agent_can_be_watched(tmp_path):
    """A loaded agent has no plan to check: the meter sees the next one, and the run is the same."""
    truth, whole, path = watched()
    agent = agents.aq_brmdp(
        brmdp.DirichletBelief.uniform(3, 2), truth.rewards, 0.7, delta=0.1, rng=2
    )
    agent.act(0)
    agent.save(tmp_path / "agent.npz")
    loaded = agents.Agent.load(tmp_path / "agent.npz")
    meter = theory.OptimismMeter(loaded, truth)
    again = brmdp.simulate(
        loaded, brmdp.World(TabularEnv(truth), 0.7), 60, seed=3, on_episode=meter.begin_episode
    )
    np.testing.assert_array_equal(again.state, path.state)
    assert meter.reports == whole.reports[1:]


def test_the_example_of_the_meter():
    results = doctest.testmod(optimism)
    assert results.attempted > 5
    assert results.failed == 0


@pytest.mark.parametrize("delta", [0.02, 0.3, 5.0])
def test_the_lemma_is_true_in_every_run(delta):
    """G_k implies V* ≤ V_k; part ii always; and the bounds on the probability are in order."""
    for seed in range(6):
        for report in theory.replicate_optimism(
            3, 2, 60, delta=delta, floor=0.3, discount=0.8, rng=seed
        ):
            assert report.optimistic or not report.event
            assert report.robust_optimistic
            assert report.event_probability >= report.union_probability - 1e-12
            assert report.union_probability >= report.stated_probability - 1e-12


def test_optimism_for_a_fixed_river_is_only_a_diagnostic():
    """Scenarios have dependent rows: no product. And a fixed world may be watched."""
    river = riverswim(3)
    belief = brmdp.ScenarioBelief(
        [river, random_kernel(np.random.default_rng(1), 3, 2)], [0.5, 0.5]
    )
    plan = brmdp.plan(belief, river.rewards, 0.9, risk=brmdp.Quantile(0.6))
    report = theory.check_optimism(
        river, belief, plan, 0.6, schedule=agents.AdaptiveLevel(1.0, 0.2), episode=4
    )
    assert report.event_probability is None
    assert report.union_probability == pytest.approx(1 - 6 * 0.4)
    assert report.robust_optimistic


def frequency(k, runs, first_seed, **options):
    """Share of runs with G_k and V* ≤ V_k at the k-th plan, and the mean of Π α_k."""
    reports = [
        theory.replicate_optimism(2, 2, k, discount=0.0, rng=first_seed + run, **options)[k - 1]
        for run in range(runs)
    ]
    return (
        np.mean([report.event for report in reports]),
        np.mean([report.optimistic for report in reports]),
        np.mean([report.event_probability for report in reports]),
        reports[0].stated_probability,
    )


@pytest.mark.long
def test_the_event_is_as_frequent_as_its_probability():
    """One plan per step at γ = 0, to 4 standard errors.

    Rewards are r(s,a,s'), so that w is known and not constant.
    """
    rewards = np.random.default_rng(5).random((2, 2, 2))
    event, optimistic, probability, stated = frequency(6, 300, 100, delta=0.1, rewards=rewards)
    assert abs(event - probability) < 4 * np.sqrt(probability * (1 - probability) / 300)
    assert optimistic >= event
    assert stated < probability


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_the_event_is_as_frequent_as_its_probability_in_real_runs(delta):
    """The last plan of independent runs at discount 0.8 exceeds the stated probability, to 4 σ."""
    last = [
        theory.replicate_optimism(3, 2, 40, delta=delta, discount=0.8, rng=seed)[-1]
        for seed in range(500)
    ]
    event = np.mean([report.event for report in last])
    probability = np.mean([report.event_probability for report in last])
    error = np.sqrt(
        np.mean([p * (1 - p) for p in (report.event_probability for report in last)]) / len(last)
    )
    assert abs(event - probability) < 4 * error
    assert np.mean([report.optimistic for report in last]) >= event
    assert event > np.mean([report.stated_probability for report in last]) - 4 * error


# --- value decompositions -------------------------------------------------------------------------


def decomposition_case(seed, gamma=0.7, n_states=4, n_actions=2):
    """A truth, a belief after data from another world, a policy and levels."""
    rng = np.random.default_rng(seed)
    truth = brmdp.TabularMDP(
        random_kernel(rng, n_states, n_actions), rng.random((n_states, n_actions, n_states)), gamma
    )
    belief = brmdp.DirichletBelief(rng.uniform(0.5, 8.0, (n_states, n_actions, n_states)))
    policy = rng.integers(0, n_actions, n_states)
    return truth, belief, policy, rng.uniform(0.1, 0.9, (n_states, n_actions))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_value_decompositions(seed):
    """Both sides, against series with values and quantiles from second implementations."""
    truth, belief, policy, alpha = decomposition_case(seed)
    kernel, rewards, gamma = truth.kernel(), np.array(truth.rewards), truth.discount
    phi, s = belief.concentration(), np.arange(4)
    true_values = online.policy_values(kernel, rewards, gamma, policy)

    def discrepancy(levels):
        values, quantiles = theory_lemmas.nested_values(phi, rewards, gamma, policy, levels)
        true = [kernel[x, policy[x]] @ (rewards[x, policy[x]] + gamma * values) for x in s]
        return values, quantiles - true

    values, high = discrepancy(alpha)
    robust_values, low = discrepancy(np.full((4, 2), 0.15))
    cases = (
        (theory.value_decomposition(truth, belief, policy, alpha), values - true_values, high),
        (
            theory.robust_value_decomposition(truth, belief, policy, alpha, 0.15),
            values - robust_values,
            high - low,
        ),
    )
    for found, difference, one_step in cases:
        np.testing.assert_allclose(found.difference, difference, rtol=0, atol=1e-8)
        np.testing.assert_allclose(found.discrepancy, one_step, rtol=0, atol=1e-8)
        left, right = theory_lemmas.decomposition_series(
            difference, one_step, kernel[s, policy], gamma
        )
        np.testing.assert_allclose(found.left, left, rtol=0, atol=1e-7)
        np.testing.assert_allclose(found.right, right, rtol=0, atol=1e-7)
        np.testing.assert_allclose(found.left, found.right, rtol=0, atol=1e-8)
        assert np.abs(found.left).min() > 1e-3


def test_value_decomposition_with_rewards_of_pairs_is_the_papers():
    """For r(s,a) the discrepancy is γ times the paper's E."""
    rng = np.random.default_rng(9)
    truth = theory.draw_mdp(3, 2, 0.8, rng=rng)
    belief, policy = brmdp.DirichletBelief(rng.uniform(1, 5, (3, 2, 3))), np.array([1, 0, 1])
    found = theory.value_decomposition(truth, belief, policy, 0.3)
    values = brmdp.evaluate_under_belief(
        belief, truth.rewards, 0.8, policy, risk=brmdp.Quantile(0.3), tolerance=1e-11
    ).values
    phi, kernel, s = belief.concentration(), truth.kernel(), np.arange(3)
    error = brmdp.dirichlet.quantile(phi[s, policy], values, 0.3) - kernel[s, policy] @ values
    np.testing.assert_allclose(found.discrepancy, 0.8 * error, rtol=0, atol=1e-9)


@pytest.mark.parametrize("robust", [False, True])
def test_value_decompositions_by_simulation(robust):
    """Both sides agree in simulated pseudo-episodes, within 4 standard errors.

    There are 40,000 of the library's, and 2,000 of a plain loop.
    """
    truth, belief, policy, alpha = decomposition_case(4)
    found = (
        theory.robust_value_decomposition(truth, belief, policy, alpha, 0.1)
        if robust
        else theory.value_decomposition(truth, belief, policy, alpha)
    )
    arguments = found.difference, found.discrepancy, found.transitions, truth.discount
    rng = np.random.default_rng(8)
    for state in (0, 3):
        plain = np.array(
            [theory_lemmas.simulated_pseudo_episode(*arguments, state, rng) for _ in range(2000)]
        ).T
        for left, right in (theory.sample_decomposition(found, state, 40_000, rng=rng), plain):
            for side, expected in ((left, found.left[state]), (right, found.right[state])):
                assert abs(side.mean() - expected) < 4 * side.std() / np.sqrt(side.size)


def test_decomposition_without_discount():
    """At γ = 0 a pseudo-episode has one step and both sides are the discrepancy itself."""
    truth, belief, policy, alpha = decomposition_case(5, gamma=0.0)
    found = theory.value_decomposition(truth, belief, policy, alpha)
    np.testing.assert_allclose(found.left, found.discrepancy, atol=1e-12)
    left, right = theory.sample_decomposition(found, 1, 7, rng=0)
    np.testing.assert_allclose(left, np.full(7, found.left[1]))
    np.testing.assert_allclose(right, left, atol=1e-9)


# --- pseudo-episodes ------------------------------------------------------------------------------


def test_number_of_pseudo_episodes():
    """K_T − 1 is binomial: its mean to 4 standard errors, its law by a chi-square test."""
    steps, gamma, runs = 25, 0.8, 3000
    rng = np.random.default_rng(2)
    counts = np.array([theory.count_episodes(steps, gamma, rng=rng) for _ in range(runs)])
    law = stats.binom(steps - 1, 1 - gamma)
    assert theory.expected_episodes(steps, gamma) == pytest.approx(1 + law.mean(), rel=1e-14)
    assert abs(counts.mean() - theory.expected_episodes(steps, gamma)) < 4 * law.std() / np.sqrt(
        runs
    )
    bins = np.clip(counts - 1, 1, 9)
    expected = runs * np.append(np.diff(law.cdf([-1, *range(1, 9)])), law.sf(8))
    assert stats.chisquare(np.bincount(bins, minlength=10)[1:], expected).pvalue > 1e-4


def test_pseudo_episodes_at_the_ends():
    assert theory.expected_episodes(1, 0.9) == theory.count_episodes(1, 0.9, rng=0) == 1
    assert theory.expected_episodes(30, 0.0) == theory.count_episodes(30, 0.0, rng=0) == 30


def test_agents_have_as_many_pseudo_episodes():
    """The episodes of simulated agents, 100 runs of 30 steps, to 4 standard errors."""
    counts = []
    for seed in range(100):
        truth = theory.draw_mdp(2, 2, 0.75, rng=seed)
        agent = agents.continuing_psrl(
            brmdp.DirichletBelief.uniform(2, 2), truth.rewards, 0.75, rng=seed
        )
        brmdp.simulate(agent, brmdp.World(brmdp.envs.TabularEnv(truth), 0.75), 30, seed=seed)
        counts.append(agent.episode)
    error = np.sqrt(29 * 0.75 * 0.25 / 100)
    assert abs(np.mean(counts) - theory.expected_episodes(30, 0.75)) < 4 * error


# --- bad input ------------------------------------------------------------------------------------

TRUTH, BELIEF, POLICY, LEVELS = decomposition_case(6)
PLAN = brmdp.plan(BELIEF, TRUTH.rewards, 0.7, risk=brmdp.Quantile(LEVELS))
SCHEDULE = agents.AdaptiveLevel(1.0)


OTHER_REWARDS = brmdp.TabularMDP(TRUTH.kernel(), 0.5 * TRUTH.rewards, 0.7)
OTHER_DISCOUNT = brmdp.TabularMDP(TRUTH.kernel(), TRUTH.rewards, 0.8)
FEWER_ACTIONS = np.array([[True, True]] * 3 + [[True, False]])
SMALLER = brmdp.TabularMDP(
    TRUTH.kernel() * FEWER_ACTIONS[:, :, None], TRUTH.rewards, 0.7, admissible=FEWER_ACTIONS
)
SAMPLED = brmdp.Quantile(LEVELS, brmdp.MonteCarlo(rng=0))


def check(
    truth=TRUTH,
    belief=BELIEF,
    plan=PLAN,
    levels=LEVELS,
    schedule=SCHEDULE,
    episode=1,
    optimum=None,
):
    return theory.check_optimism(
        truth, belief, plan, levels, schedule=schedule, episode=episode, optimum=optimum
    )


def meter(truth=TRUTH, **options):
    return theory.OptimismMeter(
        agents.aq_brmdp(BELIEF, TRUTH.rewards, 0.7, delta=1.0, rng=0, **options), truth
    )


def test_what_is_refused_below_is_accepted_when_right():
    assert check(optimum=brmdp.solve(TRUTH).values) == check()
    assert meter().reports == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: theory.quantile_deviation_bounds(0.0, 0.5),
            r"total_concentration must be positive; got 0\.0",
        ),
        (
            lambda: theory.quantile_deviation_bounds([1, -2], 0.5),
            r"total_concentration .* got -2\.0 at index \(1,\)",
        ),
        (
            lambda: theory.quantile_deviation_bounds(np.nan, 0.5),
            "total_concentration must be finite",
        ),
        (
            lambda: theory.quantile_deviation_bounds(1.0, 1.0),
            "alpha must lie strictly between 0 and 1",
        ),
        (
            lambda: theory.quantile_deviation_bounds([1.0, 2.0], [0.1, 0.2, 0.3]),
            "do not broadcast together",
        ),
        (
            lambda: theory.quantile_deviation_bounds(1.0, 0.5, value_range=0.0),
            "value_range must be a positive",
        ),
        (lambda: theory.dirichlet_tail_bound(1.0, 0.0), "deviation must be positive"),
        (
            lambda: theory.dirichlet_tail_bound([1.0, 2.0], [0.1, 0.2, 0.3]),
            "do not broadcast together",
        ),
        (lambda: theory.optimism_probability(0, 1.0, 1), "n_pairs must be a positive integer"),
        (lambda: theory.optimism_probability(1, 0.0, 1), "delta must be a positive finite number"),
        (
            lambda: theory.optimism_probability(1, 1.0, 0),
            "episode must be a positive integer; got 0",
        ),
        (
            lambda: theory.first_informative_episode(2, 1e200),
            r"delta·n_pairs must be at most 1e\+100",
        ),
        (lambda: check(truth=None), r"truth must be a brmdp\.TabularMDP; got NoneType"),
        (lambda: check(belief=None), "belief must be a brmdp belief"),
        (
            lambda: check(belief=brmdp.DirichletBelief.uniform(3, 2)),
            r"belief must have the states and actions of truth, \(4, 2\); got \(3, 2\)",
        ),
        (
            lambda: check(truth=SMALLER),
            "belief must have the admissible actions of truth; they differ",
        ),
        (
            lambda: check(truth=OTHER_REWARDS),
            "solution must be the plan under belief at levels, .* rewards and discount",
        ),
        (lambda: check(truth=OTHER_DISCOUNT), "solution must be the plan under belief at levels"),
        (
            lambda: check(levels=np.minimum(LEVELS + 1e-4, 0.99)),
            "solution must be the plan under belief at levels",
        ),
        (
            lambda: check(plan=brmdp.plan(BELIEF, TRUTH.rewards, 0.7, risk=SAMPLED)),
            "solution must be a converged plan with exact quantiles; got .*sampled",
        ),
        (
            lambda: check(optimum=np.zeros(3)),
            r"optimum must hold one number per state, shape \(4,\); got \(3,\)",
        ),
        (lambda: check(optimum=np.full(4, np.nan)), "optimum must be finite; got nan"),
        (lambda: check(plan=None), "solution must be a converged plan with exact quantiles"),
        (
            lambda: check(
                plan=brmdp.plan(BELIEF, TRUTH.rewards, 0.7, risk=brmdp.Quantile(0.5, "saddlepoint"))
            ),
            "solution must be a converged plan with exact quantiles",
        ),
        (
            lambda: check(truth=riverswim(3), belief=brmdp.DirichletBelief.uniform(3, 2)),
            r"solution must be a plan for the truth's states and actions, \(3, 2\); got \(4, 2\)",
        ),
        (
            lambda: check(levels=np.full((2, 2), 0.5)),
            r"levels must be a number or have shape \(4, 2\)",
        ),
        (lambda: check(levels=1.5), "levels must lie strictly between 0 and 1"),
        (
            lambda: check(schedule=agents.FixedLevel(0.5)),
            r"schedule must be a brmdp\.agents\.AdaptiveLevel, as in the lemma",
        ),
        (lambda: check(episode=0), "episode must be a positive integer; got 0"),
        (lambda: theory.OptimismMeter(None, TRUTH), r"agent must be a brmdp\.Agent"),
        (
            lambda: theory.OptimismMeter(
                agents.fixed_quantile(BELIEF, TRUTH.rewards, 0.7, alpha=0.5), TRUTH
            ),
            "schedule must be a brmdp.agents.AdaptiveLevel",
        ),
        (lambda: meter(None), r"truth must be a brmdp\.TabularMDP; got NoneType"),
        (
            lambda: meter(riverswim(3)),
            r"truth must have the states and actions of the agent's belief, \(4, 2\); got \(3, 2\)",
        ),
        (lambda: meter(SMALLER), "truth must have the admissible actions of the agent's belief"),
        (
            lambda: meter(OTHER_DISCOUNT),
            r"truth must have the discount of the agent, 0\.7; got 0\.8",
        ),
        (lambda: meter(OTHER_REWARDS), "truth must have the rewards that the agent plans with"),
        (lambda: meter(method="saddlepoint"), "agent must plan with exact quantiles"),
        (lambda: meter(method=brmdp.MonteCarlo()), "agent must plan with exact quantiles"),
        (
            lambda: theory.replicate_optimism(2, 2, 0, delta=1.0, rng=0),
            "steps must be a positive integer; got 0",
        ),
        (
            lambda: theory.replicate_optimism(2, 2, 5, delta=-1.0, rng=0),
            "delta must be a positive finite number",
        ),
        (
            lambda: theory.value_decomposition(None, BELIEF, POLICY, 0.5),
            r"truth must be a brmdp\.TabularMDP",
        ),
        (
            lambda: theory.value_decomposition(TRUTH, None, POLICY, 0.5),
            "belief must be a brmdp belief",
        ),
        (
            lambda: theory.value_decomposition(riverswim(3), BELIEF, [0, 0, 0], 0.5),
            r"belief must have the states and actions of truth, \(3, 2\); got \(4, 2\)",
        ),
        (
            lambda: theory.value_decomposition(TRUTH, BELIEF, [0], 0.5),
            "policy must hold one action per state",
        ),
        (
            lambda: theory.value_decomposition(TRUTH, BELIEF, [0, 0, 0, 2], 0.5),
            "policy must lie in 0..1; got 2",
        ),
        (
            lambda: theory.value_decomposition(TRUTH, BELIEF, POLICY, 0.0),
            "alpha must lie strictly between 0 and 1",
        ),
        (
            lambda: theory.robust_value_decomposition(TRUTH, BELIEF, POLICY, 0.5, 2.0),
            "floor must lie strictly between 0 and 1",
        ),
        (
            lambda: theory.sample_decomposition(
                theory.value_decomposition(TRUTH, BELIEF, POLICY, 0.5), 4, 10, rng=0
            ),
            r"state must lie in 0\.\.3; got 4",
        ),
        (
            lambda: theory.sample_decomposition(None, 0, 10, rng=0),
            "decomposition must be a ValueDecomposition, .* got NoneType",
        ),
        (lambda: theory.expected_episodes(0, 0.9), "steps must be a positive integer; got 0"),
        (lambda: theory.expected_episodes(5, 1.0), r"discount must lie in \[0, 1\)"),
        (lambda: theory.count_episodes(5, -0.1, rng=0), r"discount must lie in \[0, 1\)"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(INVALID, match=message):
        call()
