"""The agent against second implementations along common trajectories.

Also ties, what it reports about itself, and bad input.
"""

import copy
import dataclasses
import json
from functools import cache, partial

import numpy as np
import pytest
from scipy import stats

import brmdp
import problems
from brmdp import agents
from brmdp.envs import TabularEnv, frozenlake, riverswim
from oracles import dirichlet_functional, online, planning
from problems import presets_with

RIVER = riverswim(6)
LAKE = frozenlake(0.9)
WORLDS = {"riverswim": (RIVER, 5.0, 150.0), "frozenlake": (LAKE, 10.0, 250.0)}
"""MDP, δ and the coefficient of the paper's budgets."""


def uniform(mdp):
    return brmdp.DirichletBelief.uniform(mdp.n_states, mdp.n_actions)


def monte_carlo(reuse=False, **options):
    return brmdp.MonteCarlo(**({"coefficient": 20.0, "cap": 300} | options), reuse=reuse)


METHODS = {
    "exact": lambda: "exact",
    "saddlepoint": lambda: "saddlepoint",
    "monte-carlo": lambda: monte_carlo(),
    "monte-carlo-reused": lambda: monte_carlo(reuse=True),
}

PRESETS = presets_with(METHODS)
"""Every preset with every method."""


def preset(name, belief, rewards, discount, *, rng, delta=5.0, alpha=0.3, **options):
    if name.startswith("aq-brmdp"):
        options["delta"] = delta
    elif name.startswith("brmdp"):
        options["alpha"] = alpha
    return PRESETS[name](belief, rewards, discount, rng=rng, **options)


def risk_agent(belief, rewards, discount, risk, **options):
    """An agent that plans again after every step, unless told otherwise."""
    return agents.Agent(
        belief, rewards, discount, **({"risk": risk, "restart": agents.EveryStep()} | options)
    )


def walk_on(agent, env, state, steps):
    """Let the agent act and return its transitions, each with its pseudo-episode."""
    record = []
    for _ in range(steps):
        action = agent.act(state)
        following, *_ = env.step(action)
        agent.observe(state, action, following)
        record.append((state, action, following, agent.episode))
        state = following
    return record


def started(mdp, seed):
    env = TabularEnv(mdp)
    state, _ = env.reset(seed=seed)
    return env, state


def contents(agent):
    """The full state of an agent, as bytes."""
    return {
        name: (array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes())
        for name, array in agent.arrays().items()
    }


# --- the quantile of the oracle itself ------------------------------------------------------------


def test_the_oracles_quantile_agrees_with_the_other_oracles():
    rng = np.random.default_rng(5)
    worst = {"beta": 0.0, "spline": 0.0, "ray": 0.0}
    for case in range(120):
        n = 2 if case % 3 == 0 else int(rng.integers(3, 17))
        heavy = rng.poisson(rng.choice([1, 30, 300]), n) * (rng.random(n) < 0.4)
        phi = 1.0 + (heavy if case % 3 else 4 * rng.random(n))
        values = np.sort(rng.random(n)) * rng.choice([0.01, 1.0, 10.0])
        alpha = rng.uniform(0.01, 0.99)
        q = online.dirichlet_quantiles(phi[None], values[None], np.array([alpha]))
        below, density = online.gil_pelaez(phi[None], values[None], q)
        assert abs(below[0] - alpha) < 1e-12
        near = 1e-4 * (q - values.min())
        slope = np.subtract(
            *(online.gil_pelaez(phi[None], values[None], q + d)[0] for d in (near, -near))
        ) / (2 * near)
        assert density == pytest.approx(slope, rel=1e-3)
        if n == 2:
            worst["beta"] = max(
                worst["beta"], abs(dirichlet_functional.beta_tails(phi, values, q[0])[0] - alpha)
            )
        else:
            worst["ray"] = max(
                worst["ray"],
                abs(float(dirichlet_functional.ray_tails(phi, values, q[0])[0]) - alpha),
            )
        if phi.sum() <= 30 and n > 2:
            exact = float(dirichlet_functional.spline_tails(phi, values, q[0])[0])
            worst["spline"] = max(worst["spline"], abs(exact - alpha))
    assert all(0.0 < error < 1e-12 for error in worst.values()), worst


def test_the_oracles_policy_iteration_agrees_with_value_iteration():
    for mdp in (RIVER, LAKE):
        kernel, rewards = mdp.kernel(), np.array(mdp.rewards)
        values, _ = online.policy_iteration(kernel, rewards, mdp.discount)
        expected = planning.value_iteration(
            planning.mean_risk(kernel), rewards, mdp.discount, 1e-11
        )
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10)


# --- fidelity: one trajectory, two implementations ------------------------------------------------


class Noted:
    """A restart rule that keeps its answers."""

    def __init__(self, rule):
        self.rule = rule
        self.answers = []

    def ends(self, progress, rng):
        self.answers.append(self.rule.ends(progress, rng=rng))
        return self.answers[-1]


@dataclasses.dataclass(frozen=True, eq=False)
class Planned:
    """What the library planned at the start of a pseudo-episode."""

    report: agents.EpisodeReport
    policy: np.ndarray
    belief: brmdp.DirichletBelief
    stream: np.random.Generator | None
    """Where the stream of the draws stood."""


STEPS = 300


@cache
def recorded(world, name, method=None):
    """(walk, plans) of an agent of the paper in one of its worlds."""
    mdp, delta, coefficient = WORLDS[world]
    rule = Noted(agents.GeometricLength(mdp.discount))
    given = uniform(mdp), mdp.rewards, mdp.discount
    if name == "aq-brmdp":
        method = brmdp.MonteCarlo(coefficient) if method == "monte-carlo" else "exact"
        agent = agents.aq_brmdp(*given, delta=delta, floor=0.2, method=method, restart=rule, rng=31)
    elif name == "brmdp":
        agent = agents.fixed_quantile(*given, alpha=0.3, restart=rule, rng=32)
    else:
        agent = agents.continuing_psrl(*given, restart=rule, rng=33)
    source = getattr(agent.risk, "method", agent.risk)
    env, state = started(mdp, 34)
    states, actions, plans = [state], [], []
    for _ in range(STEPS):
        before, stream = agent.episode, copy.deepcopy(getattr(source, "rng", None))
        action = agent.act(state)
        if agent.episode != before:
            plans.append(Planned(agent.report, agent.policy, agent.belief, stream))
        following, *_ = env.step(action)
        agent.observe(state, action, following)
        actions.append(action)
        states.append(following)
        state = following
    continues = [False] + [not ended for ended in rule.answers[:-1]]
    return online.Walk(states, actions, continues), plans


def oracle_episodes(world, name, method=None):
    mdp, delta, _ = WORLDS[world]
    walk, _ = recorded(world, name, method)
    prior = np.ones((mdp.n_states, mdp.n_actions, mdp.n_states))
    if name == "aq-brmdp":
        return online.replay(
            walk, prior, lambda visits, k: online.adaptive_levels(visits, k, delta, 0.2)
        )
    return online.replay(walk, prior, lambda visits, k: np.full(visits.shape, 0.3))


def spread_out(plans, wanted):
    """Positions of about ``wanted`` plans, the first and the last among them."""
    return sorted({round(x) for x in np.linspace(0, len(plans) - 1, wanted)})


def assert_same_q_values(world, name, checked, method=None):
    """Q-values against plain value iteration, and the policy among the best actions.

    It starts at the values of the plans; the contraction proves where it ends.
    """
    mdp, _, _ = WORLDS[world]
    _, plans = recorded(world, name, method)
    episodes = oracle_episodes(world, name, method)
    phi, levels = (
        np.stack([getattr(episodes[k], part) for k in checked]) for part in ("phi", "levels")
    )
    values, q_values = online.quantile_value_iteration(
        phi,
        np.array(mdp.rewards),
        mdp.discount,
        levels,
        start=np.stack([plans[k].report.solution.values for k in checked]),
    )
    for position, k in enumerate(checked):
        solution = plans[k].report.solution
        np.testing.assert_allclose(solution.q_values, q_values[position], rtol=0, atol=1e-8)
        np.testing.assert_allclose(solution.values, values[position], rtol=0, atol=1e-8)
        assert_best(plans[k].policy, q_values[position])


def assert_best(policy, q_values):
    """The policy takes actions within 10 × 1e-8 of the best, up to the comparison's accuracy."""
    chosen = q_values[np.arange(len(policy)), policy]
    assert (chosen >= q_values.max(axis=1) - 1e-7 - 2e-8).all()


NAMES = ("aq-brmdp", "brmdp", "continuing-psrl")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("world", WORLDS)
def test_pseudo_episodes_posteriors_and_levels_agree_with_the_algorithm(world, name):
    walk, plans = recorded(world, name)
    episodes = oracle_episodes(world, name)
    assert len(plans) == len(episodes) > 20
    for plan, episode in zip(plans, episodes, strict=True):
        assert (plan.report.episode, plan.report.first_step) == (episode.number, episode.first_step)
        np.testing.assert_array_equal(plan.belief.concentration(), episode.phi)
        if name == "continuing-psrl":
            assert plan.report.levels is None
        else:
            np.testing.assert_allclose(plan.report.levels, episode.levels, rtol=0, atol=1e-14)
    if name == "aq-brmdp":
        assert (np.ptp(plans[-1].report.levels) > 0.1) or world == "frozenlake", (
            "an uninteresting trajectory"
        )
    for step, episode in enumerate(online.episode_of_step(walk)):
        assert walk.actions[step] == plans[episode - 1].policy[walk.states[step]]


@pytest.mark.long
@pytest.mark.parametrize(("world", "wanted"), [("riverswim", 7), ("frozenlake", 4)])
@pytest.mark.parametrize("name", ["aq-brmdp", "brmdp"])
def test_q_values_agree_with_plain_value_iteration(world, wanted, name):
    _, plans = recorded(world, name)
    assert_same_q_values(world, name, spread_out(plans, wanted))


@pytest.mark.long
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", ["aq-brmdp", "brmdp"])
def test_every_plan_solves_the_bellman_equation_of_the_oracle(world, name):
    mdp, _, _ = WORLDS[world]
    _, plans = recorded(world, name)
    for plan, episode in zip(plans, oracle_episodes(world, name), strict=True):
        solution = plan.report.solution
        targets = np.array(mdp.rewards) + mdp.discount * solution.values
        flat = online.dirichlet_quantiles(
            episode.phi.reshape(-1, mdp.n_states),
            targets.reshape(-1, mdp.n_states),
            episode.levels.ravel(),
        )
        np.testing.assert_allclose(
            solution.q_values, flat.reshape(mdp.n_states, -1), rtol=0, atol=1e-8
        )
        np.testing.assert_allclose(
            solution.values, solution.q_values.max(axis=1), rtol=0, atol=1e-15
        )
        assert solution.error_bound <= 1e-8
        assert_best(plan.policy, solution.q_values)


@pytest.mark.parametrize("world", WORLDS)
def test_continuing_psrl_is_optimal_for_its_draw(world):
    mdp, _, _ = WORLDS[world]
    _, plans = recorded(world, "continuing-psrl")
    draws = []
    for plan in plans:
        kernel = plan.belief.sample(1, rng=plan.stream)[0]
        values, q_values = online.policy_iteration(kernel, np.array(mdp.rewards), mdp.discount)
        solution = plan.report.solution
        np.testing.assert_allclose(solution.q_values, q_values, rtol=0, atol=1e-8)
        np.testing.assert_allclose(solution.values, values, rtol=0, atol=1e-8)
        assert_best(plan.policy, q_values)
        draws.append(kernel[0, 0, 0])
    assert len(set(draws)) == len(plans), "one draw per pseudo-episode"


def test_draws_of_continuing_psrl_follow_the_posterior():
    """Probability-integral transforms of one entry of the draw, over agents with the same data."""
    belief = brmdp.DirichletBelief(np.random.default_rng(2).uniform(0.5, 4.0, (2, 2, 2)))
    belief.observe([0, 0, 1, 1, 1], [0, 1, 0, 1, 1], [0, 1, 1, 0, 0])
    rewards = np.array([[[0.0, 0.0], [0.3, 0.3]], [[0.0, 1.0], [0.2, 0.2]]])
    transforms = []
    for seed in range(400):
        agent = agents.continuing_psrl(belief, rewards, 0.5, rng=seed)
        agent.act(0)
        solution = agent.report.solution
        # q(1, 0) = p·(0.5 V(0)) + (1 − p)(1 + 0.5 V(1)) gives the drawn p = P(0|1,0) back
        at_zero, at_one = 0.5 * solution.values[0], 1.0 + 0.5 * solution.values[1]
        p = (at_one - solution.q_values[1, 0]) / (at_one - at_zero)
        transforms.append(stats.beta.cdf(p, *belief.concentration()[1, 0]))
    assert stats.kstest(transforms, "uniform").pvalue > 1e-3


@pytest.mark.long
def test_monte_carlo_agent_sorts_its_draws():
    mdp, _, coefficient = WORLDS["riverswim"]
    _, plans = recorded("riverswim", "aq-brmdp", "monte-carlo")
    episodes = oracle_episodes("riverswim", "aq-brmdp", "monte-carlo")
    for k in spread_out(plans, 3):
        plan, episode = plans[k], episodes[k]
        again = (
            brmdp.Quantile(episode.levels, brmdp.MonteCarlo(coefficient, rng=plan.stream))
            .bind(plan.belief)
            .draws
        )
        for (s, a), level in np.ndenumerate(episode.levels):
            assert again[2 * s + a].shape == (planning.budget(level, coefficient), 6)
        risk = planning.sampled_quantile_risk(lambda s, a: again[2 * s + a], episode.levels)  # noqa: B023
        values = planning.value_iteration(risk, np.array(mdp.rewards), mdp.discount, 1e-9)
        solution = plan.report.solution
        np.testing.assert_allclose(solution.values, values, rtol=0, atol=1e-8)
        q_values = planning.backup(risk, np.array(mdp.rewards), mdp.discount, values)
        np.testing.assert_allclose(solution.q_values, q_values, rtol=0, atol=1e-8)
        assert_best(plan.policy, q_values)


# --- what is frozen, and when ---------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_belief_levels_and_policy_are_frozen_within_a_pseudo_episode(name):
    agent = preset(name, uniform(RIVER), RIVER.rewards, 0.9, restart=agents.FixedLength(25), rng=1)
    env, state = started(RIVER, 2)
    seen, frozen = np.zeros((6, 2, 6)), None
    for t in range(100):
        action = agent.act(state)
        assert agent.episode == t // 25 + 1
        now = agent.belief.counts(), agent.policy, agent.levels, agent.report
        if t % 25 == 0:
            np.testing.assert_array_equal(now[0], seen)
            frozen = copy.deepcopy(now[:3])
        for part, before in zip(now[:3], frozen, strict=True):
            np.testing.assert_array_equal(part, before)
        assert now[3].first_step == t - t % 25
        assert action == now[1][state]
        following, *_ = env.step(action)
        agent.observe(state, action, following)
        seen[state, action, following] += 1
        state = following


def test_the_callers_belief_is_left_alone():
    belief = uniform(RIVER)
    agent = agents.fixed_quantile(
        belief, RIVER.rewards, 0.9, alpha=0.2, restart=agents.EveryStep(), rng=0
    )
    agent.act(0)
    agent.observe(0, 1, 1)
    belief.observe(5, 1, 5)
    agent.act(1)
    assert belief.counts().sum() == 1
    assert np.argwhere(agent.belief.counts()).tolist() == [[0, 1, 1]]


def test_transitions_chosen_by_others_are_learned():
    """Transitions count alike, before the first action and for actions the agent would not take."""
    agent = agents.aq_brmdp(
        uniform(RIVER), RIVER.rewards, 0.9, delta=5.0, restart=agents.FixedLength(10), rng=0
    )
    rng = np.random.default_rng(3)
    seen, visits = np.zeros((6, 2, 6)), np.zeros((6, 2), dtype=int)
    for t in range(60):
        s, a, following = (int(rng.integers(n)) for n in (6, 2, 6))
        agent.observe(np.int64(s), a, following)
        seen[s, a, following] += 1
        visits[s, a] += 1
        if t == 14:
            assert agent.episode == 0, "nothing is planned before somebody asks for an action"
            agent.act(0)
            np.testing.assert_array_equal(agent.belief.counts(), seen)
            np.testing.assert_allclose(
                agent.levels, online.adaptive_levels(visits, 1, 5.0, 0.2), rtol=1e-14
            )
    agent.act(0)
    assert agent.episode == 2
    np.testing.assert_array_equal(agent.belief.counts(), seen)
    np.testing.assert_array_equal(agent.progress.visits_at_start, visits)
    np.testing.assert_allclose(
        agent.levels, online.adaptive_levels(visits, 2, 5.0, 0.2), rtol=1e-14
    )


def test_visits_belong_to_the_agent_and_not_to_the_prior():
    belief = uniform(RIVER)
    belief.observe([0] * 50, [0] * 50, [0] * 50)
    agent = agents.aq_brmdp(belief, RIVER.rewards, 0.9, delta=0.5, rng=0)
    agent.act(0)
    np.testing.assert_allclose(agent.levels, 1 - 0.5 * np.log(2.0))
    assert agent.explain(0)[0].visits == 0


@pytest.mark.parametrize("name", PRESETS)
def test_a_seed_determines_the_agent(name):
    def run(rng):
        agent = preset(name, uniform(RIVER), RIVER.rewards, 0.9, rng=rng)
        return walk_on(agent, *started(RIVER, 4), 60)

    assert run(7) == run(7) == run(np.random.default_rng(7)) == run(np.random.SeedSequence(7))
    assert run(7) != run(8)


def test_looking_changes_nothing():
    def run(look):
        agent = agents.aq_brmdp(uniform(LAKE), LAKE.rewards, 0.8, delta=10.0, rng=7)
        env, state = started(LAKE, 5)
        record = []
        for _ in range(80):
            if look:
                agent.explain(state)
                repr(agent)
                contents(agent)
                agent.policy[:] = 0
            record += walk_on(agent, env, state, 1)
            state = record[-1][2]
        return record

    assert run(True) == run(False)


# --- ties -----------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", PRESETS)
def test_ties_are_broken_uniformly_under_the_uniform_prior(name):
    """Under the uniform prior on FrozenLake no action is better than another, in any state."""
    counts = np.zeros((16, 4))
    for seed in range(60):
        agent = preset(name, uniform(LAKE), LAKE.rewards, 0.8, delta=10.0, rng=seed)
        counts[np.arange(16), agent.policy] += 1
        if name.endswith("exact"):
            assert agent.report.solution.tied.all()
    assert stats.chisquare(counts.sum(axis=0)).pvalue > 1e-3
    # over all states at once: 16 × 3 degrees of freedom
    statistic = ((counts - 15.0) ** 2 / 15.0).sum()
    assert 1e-3 < stats.chi2.sf(statistic, 48) < 1 - 1e-3


@pytest.mark.parametrize(
    "make", [partial(agents.aq_brmdp, delta=5.0), partial(agents.fixed_quantile, alpha=0.3)]
)
def test_the_lowest_of_tied_actions_on_request(make, tmp_path):
    agent = make(uniform(LAKE), LAKE.rewards, 0.8, ties="lowest", rng=1, restart=agents.EveryStep())
    np.testing.assert_array_equal(agent.policy, 0)
    agent.observe(14, 0, 13)
    agent.save(tmp_path / "agent.npz")
    loaded = brmdp.Agent.load(tmp_path / "agent.npz")
    assert loaded.ties == "lowest"
    for one in (agent, loaded):
        policy = one.policy
        tied = one.report.solution.tied_actions()
        assert tied.sum() > len(tied)
        np.testing.assert_array_equal(policy, tied.argmax(axis=1))
    with pytest.raises(brmdp.InvalidInputError, match=r"ties must be one of .*; got 'first'"):
        make(uniform(LAKE), LAKE.rewards, 0.8, ties="first")


def test_choices_are_independent_over_states_and_plans():
    agent = risk_agent(uniform(LAKE), LAKE.rewards, 0.8, brmdp.Mean(), rng=3)
    pairs = np.zeros((3, 4, 4))
    before = agent.policy
    for _ in range(400):
        agent.observe(15, 0, 3)
        now = agent.policy
        pairs[0, now[0], now[1]] += 1
        pairs[1, now[7], now[12]] += 1
        pairs[2, before[4], now[4]] += 1
        before = now
    assert agent.episode == 401
    for table in pairs:
        assert stats.chi2_contingency(table).pvalue > 1e-3


def test_a_choice_holds_for_the_whole_pseudo_episode():
    agent = agents.fixed_quantile(
        uniform(LAKE), LAKE.rewards, 0.8, alpha=0.2, restart=agents.FixedLength(50), rng=1
    )
    first = [agent.act(s) for s in range(16)]
    for _ in range(49):
        agent.observe(15, 0, 3)
        assert [agent.act(s) for s in range(16)] == first
    agent.observe(15, 0, 3)
    assert [agent.act(s) for s in range(16)] != first  # a new plan chooses anew
    assert len(set(first)) == 4


@pytest.mark.parametrize("method", ["exact", "saddlepoint"])
def test_only_tied_actions_are_chosen_and_all_of_them(method):
    """After data some actions are better and the unvisited ones still tie."""
    prior = problems.problem("frozenlake").belief.concentration()
    prior[:, [1, 2]] = 1.0  # two actions of every state never tried
    belief = brmdp.DirichletBelief(prior)
    counts = np.zeros((16, 4), dtype=int)
    for seed in range(200):
        agent = agents.fixed_quantile(belief, LAKE.rewards, 0.8, alpha=0.3, method=method, rng=seed)
        counts[np.arange(16), agent.policy] += 1
    tied = agent.report.solution.tied_actions()
    assert {1, 2} <= set(tied.sum(axis=1)), "the example must have ties and states without"
    np.testing.assert_array_equal(counts > 0, tied)
    for s in np.flatnonzero(tied.sum(axis=1) > 1):
        assert stats.chisquare(counts[s, tied[s]]).pvalue > 1e-4


def test_the_choice_comes_from_the_agents_own_stream():
    def choice():
        return agents.fixed_quantile(uniform(LAKE), LAKE.rewards, 0.8, alpha=0.2, rng=11).policy

    first = choice()
    np.random.seed(0)  # noqa: NPY002 (the point is that it does not matter)
    np.random.random(5)  # noqa: NPY002
    np.testing.assert_array_equal(choice(), first)


def test_restarts_do_not_depend_on_ties():
    """Agents with the same seed share their pseudo-episodes, whatever they draw otherwise."""
    episodes = []
    for name in PRESETS:
        agent = preset(name, uniform(LAKE), LAKE.rewards, 0.8, delta=10.0, rng=21)
        episodes.append([episode for *_, episode in walk_on(agent, *started(LAKE, 6), 60)])
    assert all(numbers == episodes[0] for numbers in episodes)
    assert episodes[0][-1] > 5


# --- the four parts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["dense-1", "sparse-2", "inadmissible-3", "disturbance-4", "scenarios-5"]
)
@pytest.mark.parametrize(
    "make",
    [
        lambda: {"risk": brmdp.Mean()},
        lambda: {"risk": brmdp.CVaR(0.3)},
        lambda: {"risk": brmdp.CVaR(0.3), "schedule": agents.AdaptiveLevel(2.0, 0.1)},
        lambda: {"risk": brmdp.Quantile(0.3)},
        lambda: {"risk": brmdp.Quantile(0.5), "schedule": agents.AdaptiveLevel(2.0, 0.1)},
        lambda: {"risk": brmdp.PosteriorSample(rng=1)},
        lambda: {
            "risk": brmdp.Quantile(0.5, monte_carlo(samples=20, rng=1)),
            "schedule": agents.FixedLevel(0.4),
        },
    ],
    ids=["mean", "cvar", "cvar-adaptive", "quantile", "quantile-adaptive", "psrl", "monte-carlo"],
)
def test_every_belief_works_with_every_measure(name, make):
    """Each plan agrees with a direct one, and inadmissible actions are never chosen."""
    case = problems.problem(name)
    parts = make()
    agent = risk_agent(case.belief, case.rewards, case.discount, **parts, rng=3)
    twin_risk, twin_belief = make()["risk"], case.belief.copy()
    rng, truth = np.random.default_rng(4), case.belief.sample(1, rng=9)[0]
    state, visits, before = 0, np.zeros(case.shape, dtype=int), None
    for step in range(25):
        action = agent.act(state)
        risk = twin_risk
        if "schedule" in parts:
            rule = parts["schedule"]
            levels = 0.4
            if isinstance(rule, agents.AdaptiveLevel):
                levels = online.adaptive_levels(
                    visits, step + 1, rule.delta, rule.floor, case.admissible
                )
            np.testing.assert_allclose(
                agent.levels[case.admissible], np.broadcast_to(levels, case.shape)[case.admissible]
            )
            risk = twin_risk.at_level(agent.levels)
        direct = brmdp.plan(twin_belief, case.rewards, case.discount, risk=risk, initial=before)
        before = direct.values
        own = agent.report.solution
        if own.memory is None:
            np.testing.assert_array_equal(own.q_values, direct.q_values)
        else:
            # it began with what the last plan had found out
            apart = own.q_values[case.admissible] - direct.q_values[case.admissible]
            assert np.abs(apart).max() <= own.error_bound + direct.error_bound
        np.testing.assert_array_equal(own.tied_actions(), direct.tied_actions())
        policy = agent.policy
        assert case.admissible[np.arange(case.n_states), policy].all()
        assert direct.tied_actions()[np.arange(case.n_states), policy].all()
        assert action == policy[state]
        following = int(rng.choice(case.n_states, p=truth[state, action]))
        if isinstance(case.belief, brmdp.DisturbanceBelief):
            candidates = np.flatnonzero(case.belief.outcomes[state, action] == following)
            agent.observe(state, action, following, disturbance=int(candidates[0]))
            twin_belief.observe_disturbance(int(candidates[0]))
        else:
            agent.observe(state, action, following)
            twin_belief.observe(state, action, following)
        visits[state, action] += 1
        state = following


def test_a_disturbance_that_the_transition_hides_must_be_told():
    problem = brmdp.envs.inventory()
    rewards = brmdp.DisturbanceRewards(problem.disturbance_rewards)
    agent = agents.aq_brmdp(
        brmdp.DisturbanceBelief(problem.outcomes), rewards, 0.95, delta=5.0, rng=0
    )
    agent.act(0)
    before = contents(agent)
    with pytest.raises(brmdp.InvalidInputError, match="does not reveal the disturbance"):
        agent.observe(0, 2, 0)
    with pytest.raises(brmdp.ImpossibleTransitionError, match="disturbance 1 leads"):
        agent.observe(0, 2, 0, disturbance=1)
    assert contents(agent) == before
    agent.observe(0, 2, 0, disturbance=4)
    agent.observe(0, 2, 1)
    while agent.episode == 1:  # until the pseudo-episode is over
        agent.observe(5, 0, 5)
        agent.act(0)
    counts = agent.belief.counts()
    assert counts[4] == counts[1] == 1
    assert counts.sum() == agent.progress.steps


def test_scenarios_are_told_apart():
    kernels = np.array([[[[0.9, 0.1], [0.1, 0.9]]] * 2, [[[0.1, 0.9], [0.9, 0.1]]] * 2])
    mdp = brmdp.TabularMDP(kernels[1], [[0.0, 0.0], [1.0, 1.0]], 0.9)
    belief = brmdp.ScenarioBelief(kernels, [0.9, 0.1])
    agent = agents.fixed_quantile(belief, mdp.rewards, 0.9, alpha=0.3, rng=2)
    assert agent.policy.tolist() == [1, 1]  # the wrong scenario is believed at first
    walk_on(agent, *started(mdp, 3), 60)
    assert agent.belief.weights[1] > 0.999
    assert agent.policy.tolist() == [0, 0]


class Countdown:
    """A user's schedule: bolder with every pseudo-episode."""

    def levels(self, progress):
        return (
            1.0 - 0.9 / progress.episode
            if progress.episode < 5
            else np.full(progress.visits.shape, 0.9)
        )


class AfterEvenStates:
    """A user's restart rule: plan again after every step from an even state."""

    def ends(self, progress, rng):
        return progress.last_pair[0] % 2 == 0


class Halfway:
    """A user's risk measure: halfway between the posterior mean and one kernel of the user's."""

    def __init__(self, kernel):
        self.kernel = kernel

    def bind(self, belief):
        blend = 0.5 * belief.mean() + 0.5 * self.kernel
        return brmdp.Mean().bind(brmdp.TabularMDP(blend, np.zeros(blend.shape[:2]), 0.0))


def test_parts_written_by_a_user():
    agent = risk_agent(
        *(uniform(RIVER), RIVER.rewards, 0.9, brmdp.Quantile(0.5)),
        schedule=Countdown(),
        restart=AfterEvenStates(),
        rng=0,
    )
    levels, env_state = [], started(RIVER, 1)
    record = []
    for _ in range(100):
        record += walk_on(agent, env_state[0], env_state[1] if not record else record[-1][2], 1)
        levels.append(agent.levels[0, 0])
    numbers = [episode for *_, episode in record]
    expected, number = [], 1
    for state, *_ in record:
        expected.append(number)
        number += state % 2 == 0
    assert numbers == expected
    assert numbers[-1] > 5
    for level, number in zip(levels, numbers, strict=True):
        assert level == (1.0 - 0.9 / number if number < 5 else 0.9)


def test_a_risk_measure_written_by_a_user():
    agent = risk_agent(uniform(RIVER), RIVER.rewards, 0.9, Halfway(RIVER.kernel()), rng=0)
    walk_on(agent, *started(RIVER, 1), 30)
    agent.act(0)
    blend = 0.5 * agent.belief.mean() + 0.5 * RIVER.kernel()
    values, _ = online.policy_iteration(blend, np.array(RIVER.rewards), 0.9)
    np.testing.assert_allclose(agent.report.solution.values, values, atol=1e-8)
    assert agent.levels is None


def test_a_plan_that_fails_does_not_count():
    """A schedule that fails once: the agent can be asked again, and nothing has changed."""

    class Hesitant:
        failures = 1

        def levels(self, progress):
            assert progress.episode == 1
            self.failures -= 1
            return 1.5 if self.failures == 0 else 0.25

    agent = risk_agent(
        uniform(RIVER), RIVER.rewards, 0.9, brmdp.Quantile(0.5), schedule=Hesitant(), rng=0
    )
    with pytest.raises(
        brmdp.InvalidInputError, match=r"alpha must lie strictly between 0 and 1; got 1\.5"
    ):
        agent.act(0)
    assert agent.episode == 0
    agent.act(0)
    assert agent.episode == 1
    assert (agent.levels == 0.25).all()


# --- what it says of itself -----------------------------------------------------------------------


def explained(name="aq-brmdp/exact", steps=200, **options):
    agent = preset(name, uniform(RIVER), RIVER.rewards, 0.9, rng=5, **options)
    walk_on(agent, *started(RIVER, 6), steps)
    agent.act(0)
    return agent


@pytest.mark.parametrize("name", PRESETS)
def test_explanations_agree_with_direct_backups(name):
    agent = explained(name)
    solution, phi = agent.report.solution, agent.belief.concentration()
    policy, visits = agent.policy, agent.progress.visits_at_start
    targets = np.array(RIVER.rewards) + 0.9 * solution.values
    mean = ((phi / phi.sum(axis=2, keepdims=True)) * targets).sum(axis=2)
    levels = agent.levels if agent.levels is not None else np.full((6, 2), 0.1)
    quantile = online.dirichlet_quantiles(
        phi.reshape(12, 6), targets.reshape(12, 6), levels.ravel()
    ).reshape(6, 2)
    np.testing.assert_array_equal(visits, agent.belief.counts().sum(axis=2))
    assert visits.sum() > 100
    for s in range(6):
        best = solution.q_values[s] >= solution.q_values[s].max() - solution.tie_width
        for a, report in enumerate(agent.explain(s)):
            assert report.action == a
            assert report.value == solution.q_values[s, a]
            assert report.chosen is bool(policy[s] == a)
            assert report.tied is bool(best[a] and best.sum() > 1)
            assert report.visits == report.observations == visits[s, a]
            assert report.mean == pytest.approx(mean[s, a], abs=1e-12)
            assert report.quantile == pytest.approx(quantile[s, a], abs=1e-9)
            assert report.quantile_level == levels[s, a]
            if agent.levels is None:
                assert report.level is None
            else:
                assert report.level == agent.levels[s, a]
            if name.endswith("exact"):
                assert report.value == pytest.approx(report.quantile, abs=1e-8)


def test_explanations_at_another_level():
    agent = explained("continuing-psrl")
    low, high = agent.explain(2, quantile_level=0.05), agent.explain(2, quantile_level=0.95)
    for one, other in zip(low, high, strict=True):
        assert (one.quantile_level, other.quantile_level) == (0.05, 0.95)
        assert one.quantile < one.mean == other.mean < other.quantile
        assert one.level is None


def test_explanations_list_the_admissible_actions():
    case = problems.problem("inadmissible-3")
    agent = risk_agent(case.belief, case.rewards, case.discount, brmdp.CVaR(1.0), rng=0)
    for s in range(case.n_states):
        reports = agent.explain(s)
        assert [report.action for report in reports] == np.flatnonzero(case.admissible[s]).tolist()
        assert sum(report.chosen for report in reports) == 1
        assert all(report.value == pytest.approx(report.mean, abs=1e-8) for report in reports)


@pytest.mark.parametrize("discount", [0.9, 0.9999, 0.999999])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_acting_needs_no_tolerance_for_the_scale(discount, scale):
    """At a discount of 0.999999 ``act`` used to raise."""
    agent = agents.aq_brmdp(
        uniform(RIVER), scale * np.array(RIVER.rewards), discount, delta=5.0, rng=0
    )
    rng = np.random.default_rng(0)
    state = 0
    for _ in range(30):
        action = agent.act(state)
        following = int(rng.choice(6, p=RIVER.kernel()[state, action]))
        agent.observe(state, action, following)
        state = following
    assert agent.tolerance is None
    assert agent.report.status == "converged"
    assert (
        agent.report.error_bound
        <= agent.report.solution.tolerance
        <= 1e-3 * agent.report.solution.values.max()
    )


def test_explanations_of_ties():
    agent = agents.fixed_quantile(uniform(LAKE), LAKE.rewards, 0.8, alpha=0.2, rng=0)
    for s in range(16):
        reports = agent.explain(s)
        assert all(report.tied for report in reports)
        assert [report.chosen for report in reports].count(True) == 1
        assert reports[agent.act(s)].chosen


def test_explanations_are_plain_data():
    report = explained().explain(1)[1]
    assert json.loads(json.dumps(dataclasses.asdict(report))) == dataclasses.asdict(report)


def test_explanations_plan_first():
    agent = agents.fixed_quantile(uniform(RIVER), RIVER.rewards, 0.9, alpha=0.2, rng=0)
    assert agent.episode == 0
    with pytest.raises(brmdp.InvalidInputError, match="the agent has not planned yet"):
        _ = agent.report
    assert agent.levels is None
    assert [report.visits for report in agent.explain(0)] == [0, 0]
    assert agent.episode == 1
    assert agent.report.episode == 1


def test_a_description_in_words():
    agent = explained(steps=10)
    text = repr(agent)
    for part in (
        "DirichletBelief",
        "Quantile",
        "AdaptiveLevel(delta=5.0, floor=0.2)",
        "GeometricLength",
        "10 steps",
    ):
        assert part in text


def test_explanations_count_what_the_belief_came_with():
    belief = uniform(RIVER)
    belief.observe([0] * 30, [1] * 30, [1] * 30)
    agent = agents.fixed_quantile(belief, RIVER.rewards, 0.9, alpha=0.2, rng=0)
    agent.observe(0, 1, 1)
    assert [(r.visits, r.observations) for r in agent.explain(0)] == [(0, 0), (1, 31)]
    problem = brmdp.envs.inventory()
    demand = brmdp.DisturbanceBelief(problem.outcomes)
    demand.observe_disturbance([2, 0, 3])
    agent = agents.fixed_quantile(
        demand, brmdp.DisturbanceRewards(problem.disturbance_rewards), 0.9, alpha=0.2, rng=0
    )
    assert {r.observations for r in agent.explain(4)} == {3}
    scenarios = brmdp.ScenarioBelief([RIVER], [1.0])
    agent = agents.fixed_quantile(scenarios, RIVER.rewards, 0.9, alpha=0.2, rng=0)
    assert {r.observations for r in agent.explain(4)} == {None}


def test_a_sole_best_action_is_not_tied():
    tied = [report.tied for s in range(6) for report in explained().explain(s)]
    assert not any(tied)


# --- bad input ------------------------------------------------------------------------------------


def river_agent(**options):
    given = {"risk": brmdp.Quantile(0.2), "restart": agents.EveryStep()} | options
    return agents.Agent(uniform(RIVER), RIVER.rewards, 0.9, **given)


@pytest.mark.parametrize(
    "bad", [6, -1, 2**70, None, "3", 2.0, True, np.nan, [0], np.array([0, 1]), np.bool_(True)]
)
@pytest.mark.parametrize("planned", [True, False])
def test_acting_in_no_state_of_the_model(bad, planned):
    def rest(agent, spoilt):
        if planned:
            walk_on(agent, *started(RIVER, 3), 5)
        if spoilt:
            with pytest.raises(
                brmdp.InvalidInputError, match=r"state must (lie|be an integer) in 0\.\.5; got"
            ):
                agent.act(bad)
            with pytest.raises(
                brmdp.InvalidInputError, match=r"state must (lie|be an integer) in 0\.\.5; got"
            ):
                agent.explain(bad)
        return walk_on(agent, *started(RIVER, 4), 30)

    assert rest(agents.continuing_psrl(uniform(RIVER), RIVER.rewards, 0.9, rng=1), True) == rest(
        agents.continuing_psrl(uniform(RIVER), RIVER.rewards, 0.9, rng=1), False
    )


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        ((6, 0, 0), r"state must lie in 0\.\.5; got 6"),
        ((-1, 0, 0), r"state must lie in 0\.\.5; got -1"),
        ((None, 0, 0), "state must be an integer"),
        (("0", 0, 0), "state must be an integer"),
        ((0, 2, 0), r"action must lie in 0\.\.1; got 2"),
        ((0, None, 0), "action must be an integer"),
        ((0, 1.0, 0), "action must be an integer"),
        ((0, 0, 6), r"next_state must lie in 0\.\.5; got 6"),
        ((0, 0, None), "next_state must be an integer"),
        (([0, 1], [0, 0], [0, 0]), "state must"),
        ((np.array([0]), np.array([0]), np.array([0])), "state must"),
        ((np.array([0, 1]), 0, 0), "state must"),
        ((0, 0, [0, 1]), "next_state must"),
    ],
)
def test_observing_what_is_not_in_the_model(transition, message):
    agent = river_agent(rng=0)
    agent.act(0)
    before = contents(agent)
    with pytest.raises(brmdp.InvalidInputError, match=message):
        agent.observe(*transition)
    assert contents(agent) == before


def test_observing_the_impossible_or_inadmissible():
    mdp = brmdp.envs.inventory().mdp
    belief = brmdp.DirichletBelief.uniform(mdp.n_states, mdp.n_actions, possible=mdp)
    agent = agents.fixed_quantile(belief, mdp.rewards, 0.9, alpha=0.2, rng=0)
    agent.act(0)
    before = contents(agent)
    with pytest.raises(brmdp.ImpossibleTransitionError, match=r"state=0, action=0, next_state=3"):
        agent.observe(0, 0, 3)
    with pytest.raises(brmdp.InvalidInputError, match="action 5 is not admissible in state 10"):
        agent.observe(10, 5, 0)
    with pytest.raises(brmdp.InvalidInputError, match="disturbance"):
        agent.observe(0, 0, 0, disturbance=1)
    assert contents(agent) == before


@pytest.mark.parametrize(
    "bad", [[0, 1, 1, 1], (1,), np.array([1]), 1.0, True, "1", 6, -1, np.array([[1]])]
)
def test_a_disturbance_is_a_single_integer(bad):
    problem = brmdp.envs.inventory()
    agent = agents.fixed_quantile(
        brmdp.DisturbanceBelief(problem.outcomes), problem.mdp.rewards, 0.9, alpha=0.2, rng=0
    )
    agent.act(0)
    before = contents(agent)
    with pytest.raises(brmdp.InvalidInputError, match="disturbance must"):
        agent.observe(0, 0, 0, disturbance=bad)
    assert contents(agent) == before
    agent.observe(0, 0, 0, disturbance=np.int64(1))
    assert agent.arrays()["latest.counts"].sum() == agent.progress.steps == 1


def assembled(name, seed):
    """The parts of a preset, chosen by hand."""
    draws = np.random.default_rng(seed).spawn(3)[2]
    kind, _, method = name.partition("/")
    if kind == "continuing-psrl":
        parts = {"risk": brmdp.PosteriorSample(rng=draws)}
    elif kind == "posterior-mean":
        parts = {"risk": brmdp.Mean()}
    else:
        method = METHODS[method]()
        if isinstance(method, brmdp.MonteCarlo):
            method.rng = draws
        level = {"aq-brmdp": 0.2, "brmdp": 0.3}[kind]
        schedule = agents.AdaptiveLevel(5.0) if kind == "aq-brmdp" else agents.FixedLevel(level)
        parts = {"risk": brmdp.Quantile(level, method), "schedule": schedule}
    return agents.Agent(
        uniform(RIVER), RIVER.rewards, 0.9, restart=agents.GeometricLength(0.9), rng=seed, **parts
    )


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_and_the_same_parts_share_their_luck(name):
    given = uniform(RIVER), RIVER.rewards, 0.9
    pair = preset(name, *given, rng=11), assembled(name, 11)
    records = [walk_on(agent, *started(RIVER, 12), 60) for agent in pair]
    assert records[0] == records[1]
    assert contents(pair[0]) == contents(pair[1])
    assert pair[0].episode > 3


def test_presets_share_ties_and_restarts_with_any_agent_of_the_seed():
    agent = risk_agent(uniform(RIVER), RIVER.rewards, 0.9, brmdp.Mean(), rng=11).arrays()
    for name in PRESETS:
        stored = preset(name, uniform(RIVER), RIVER.rewards, 0.9, rng=11).arrays()
        for stream in ("tie_stream", "restart_stream"):
            assert str(stored[stream]) == str(agent[stream])


def test_everything_imported_leaves_the_library_its_name():
    for module in ("brmdp.agents", "brmdp.continuous.presets"):
        names = {}
        exec(f"import brmdp\nfrom {module} import *", names)
        assert names["brmdp"] is brmdp, module
    assert callable(agents.fixed_quantile)


class Bare:
    """A belief with what planning and learning need, and no more."""

    rows_independent = True

    def __init__(self, inner=None):
        self.inner = uniform(RIVER) if inner is None else inner
        self.pattern = self.inner.pattern
        self.mean_entries, self.sample_entries = self.inner.mean_entries, self.inner.sample_entries
        self.gather_rewards = self.inner.gather_rewards

    def observe(self, state, action, next_state):
        self.inner.observe(state, action, next_state)

    def copy(self):
        return type(self)(self.inner.copy())


class Written(Bare):
    """The same belief, which can be saved and loaded."""

    def arrays(self):
        return self.inner.arrays()

    @classmethod
    def from_arrays(cls, arrays, source):
        return cls(brmdp.DirichletBelief.from_arrays(arrays, source))


def test_a_belief_of_ones_own_can_be_saved_if_it_says_how(tmp_path):
    path = tmp_path / "agent"
    agent = risk_agent(Bare(), RIVER.rewards, 0.9, brmdp.Mean(), rng=0)
    walk_on(agent, *started(RIVER, 3), 5)
    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"belief is a Bare cannot be saved.*missing: arrays, from_arrays",
    ):
        agent.save(path)
    assert not path.exists()
    agent = risk_agent(Written(), RIVER.rewards, 0.9, brmdp.Mean(), rng=0)
    walk_on(agent, *started(RIVER, 3), 5)
    agent.save(path)
    with pytest.raises(
        brmdp.InvalidInputError, match=r"belief was a Written.*pass it as load\(path, belief=…\)"
    ):
        brmdp.Agent.load(path)
    twin = brmdp.Agent.load(path, belief=Written)
    assert contents(twin) == contents(agent)
    env = started(RIVER, 4)
    assert walk_on(twin, *env, 20) == walk_on(agent, *started(RIVER, 4), 20)


def test_a_belief_without_copy_is_refused_by_name():
    class NoCopy:
        def __init__(self):
            self.pattern = uniform(RIVER).pattern

        def observe(self, state, action, next_state):
            raise AssertionError

    with pytest.raises(
        brmdp.InvalidInputError, match=r"belief must have all members .*; NoCopy lacks copy, "
    ):
        risk_agent(NoCopy(), RIVER.rewards, 0.9, brmdp.Mean())


@pytest.mark.parametrize("bad", [np.array([0]), np.array([[0]]), np.array(True), [0], (0,)])
def test_an_array_with_one_entry_is_no_state(bad):
    agent = river_agent(rng=0)
    for call in (
        lambda: agent.act(bad),
        lambda: agent.explain(bad),
        lambda: agent.observe(bad, 0, 0),
    ):
        with pytest.raises(
            brmdp.InvalidInputError, match=r"state must be an integer in 0\.\.5; got"
        ):
            call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"risk": brmdp.Quantile}, "risk must be a risk measure"),
        ({"risk": 0.2}, r"risk must be a risk measure .*got 0\.2"),
        (
            {"restart": agents.EveryStep},
            r"restart must be an object with a method ends\(progress, \*, rng\)",
        ),
        (
            {"restart": 10},
            r"restart must be an object with a method ends\(progress, \*, rng\); got 10",
        ),
        (
            {"schedule": 0.3},
            r"schedule must be an object with a method levels\(progress\); got 0\.3",
        ),
        (
            {"schedule": agents.AdaptiveLevel},
            r"schedule must be an object with a method levels\(progress\)",
        ),
        (
            {"schedule": agents.FixedLevel(0.2), "risk": brmdp.Mean()},
            r"risk must have a level .*got Mean\(\)",
        ),
        (
            {"schedule": agents.FixedLevel(0.2), "risk": brmdp.PosteriorSample(rng=0)},
            "risk must have a level",
        ),
        ({"tolerance": 0.0}, r"tolerance must be a positive finite number; got 0\.0"),
        ({"tolerance": "small"}, "tolerance must be a positive finite number; got 'small'"),
        ({"rng": "seed"}, "rng must be a numpy.random.Generator or a seed; got 'seed'"),
        ({"rng": -1}, "rng must be a numpy.random.Generator or a seed; got -1"),
    ],
)
def test_bad_parts_are_refused(options, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        river_agent(**options)


def test_bad_beliefs_rewards_and_discounts_are_refused():
    parts = {"risk": brmdp.Mean(), "restart": agents.EveryStep()}
    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"belief must be a brmdp belief with a method observe, .* got TabularMDP",
    ):
        agents.Agent(RIVER, RIVER.rewards, 0.9, **parts)
    with pytest.raises(brmdp.InvalidInputError, match="belief must be"):
        agents.Agent(brmdp.DirichletBelief, RIVER.rewards, 0.9, **parts)
    with pytest.raises(
        brmdp.InvalidInputError, match=r"rewards must have shape .*got \(16, 4, 16\)"
    ):
        agents.Agent(uniform(RIVER), LAKE.rewards, 0.9, **parts)
    for bad in (1.0, -0.1, None, "0.9"):
        with pytest.raises(brmdp.InvalidInputError, match="discount must"):
            agents.Agent(uniform(RIVER), RIVER.rewards, bad, **parts)
        with pytest.raises(brmdp.InvalidInputError, match="discount must"):
            agents.continuing_psrl(uniform(RIVER), RIVER.rewards, bad, rng=0)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (agents.aq_brmdp, {"delta": 0}, "delta must be a positive finite number; got 0"),
        (agents.aq_brmdp, {"delta": -5.0}, r"delta must be a positive finite number; got -5\.0"),
        (agents.aq_brmdp, {"delta": np.inf}, "delta must be a positive finite number; got inf"),
        (agents.aq_brmdp, {"delta": "5"}, "delta must be a positive finite number; got '5'"),
        (
            agents.aq_brmdp,
            {"delta": 5, "floor": 0.0},
            r"floor must lie strictly between 0 and 1; got 0\.0",
        ),
        (
            agents.aq_brmdp,
            {"delta": 5, "floor": 1.0},
            r"floor must lie strictly between 0 and 1; got 1\.0",
        ),
        (
            agents.aq_brmdp,
            {"delta": 5, "floor": np.nan},
            "floor must lie strictly between 0 and 1; got nan",
        ),
        (agents.aq_brmdp, {"delta": 5, "floor": None}, "floor must be a number"),
        (
            agents.aq_brmdp,
            {"delta": 5, "method": "montecarlo"},
            "method must be 'exact', 'saddlepoint' or",
        ),
        (
            agents.aq_brmdp,
            {"delta": 5, "method": brmdp.MonteCarlo},
            "method must be 'exact', 'saddlepoint' or",
        ),
        (
            agents.aq_brmdp,
            {"delta": 5, "restart": "geometric"},
            "restart must be an object with a method ends",
        ),
        (
            agents.fixed_quantile,
            {"alpha": 0.0},
            r"alpha must lie strictly between 0 and 1; got 0\.0",
        ),
        (
            agents.fixed_quantile,
            {"alpha": 1.2},
            r"alpha must lie strictly between 0 and 1; got 1\.2",
        ),
        (agents.fixed_quantile, {"alpha": [0.2, 0.3]}, "alpha must be a number"),
    ],
)
def test_bad_presets_are_refused(make, options, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        make(uniform(RIVER), RIVER.rewards, 0.9, rng=0, **options)


def test_two_actions_may_be_told_as_booleans():
    agent = agents.continuing_psrl(uniform(RIVER), RIVER.rewards, 0.9, rng=1)
    agent.observe(0, True, 1)
    agent.observe(0, np.False_, 0)
    np.testing.assert_array_equal(agent.progress.visits[0], [1, 1])
    belief = uniform(RIVER)
    belief.observe([0, 0], np.array([True, False], dtype=object), [1, 0])
    np.testing.assert_array_equal(belief.counts()[0].sum(axis=1), [1, 1])
