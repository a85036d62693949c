"""The interaction loop.

Regrets against second implementations, diagnostics that change nothing, streams and records.
"""

import dataclasses
from functools import cache

import gymnasium
import numpy as np
import pytest

import brmdp
from brmdp import Diagnostics, World, agents, simulate
from brmdp.envs import TabularEnv, frozenlake, riverswim
from oracles import online, planning
from problems import presets_with

RIVER = riverswim(6)
LAKE = frozenlake(0.9)
WORLDS = {"riverswim": (RIVER, 5.0), "frozenlake": (LAKE, 1.0)}
"""MDP and δ. With the paper's δ = 10 the first 300 steps on the lake would all be cautious."""
ALL_DIAGNOSTICS = Diagnostics(robust_level=0.2, quantile_level=0.1, quantile_every=50)

METHODS = {
    "exact": lambda: "exact",
    "saddlepoint": lambda: "saddlepoint",
    "monte-carlo": lambda: brmdp.MonteCarlo(20.0, cap=200),
    "monte-carlo-reused": lambda: brmdp.MonteCarlo(20.0, cap=200, reuse=True),
}
PRESETS = presets_with(METHODS)


def preset(name, mdp, *, rng, delta=5.0, **options):
    if name.startswith("aq-brmdp"):
        options["delta"] = delta
    elif name.startswith("brmdp"):
        options.setdefault("alpha", 0.3)
    belief = brmdp.DirichletBelief.uniform(mdp.n_states, mdp.n_actions)
    return PRESETS[name](belief, mdp.rewards, mdp.discount, rng=rng, **options)


def world_of(mdp):
    return World(TabularEnv(mdp), mdp.discount)


def contents(agent):
    """The full state of an agent, as bytes."""
    return {name: np.ascontiguousarray(array).tobytes() for name, array in agent.arrays().items()}


def trajectory(history):
    return [getattr(history, name).tolist() for name in ("state", "action", "reward", "episode")]


# --- fidelity -------------------------------------------------------------------------------------

STEPS = 300


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """A recorded history, and what the same agent believed and did when it was driven by hand."""

    history: brmdp.History
    phi: list
    policies: list
    beliefs: list
    states: list


def recorded_agent(world, name):
    mdp, delta = WORLDS[world]
    return preset(
        name, mdp, rng=41, **({"alpha": 0.9} if name.startswith("brmdp") else {"delta": delta})
    )


@cache
def run_of(world, name):
    mdp, _ = WORLDS[world]
    history = simulate(
        recorded_agent(world, name),
        *(world_of(mdp), STEPS),
        seed=42,
        diagnostics=ALL_DIAGNOSTICS,
        diagnostics_rng=43,
    )
    agent = recorded_agent(world, name)
    env = TabularEnv(mdp)
    state, _ = env.reset(seed=42)
    phi, policies, beliefs, states = [], [], [], [state]
    for t in range(STEPS):
        before = agent.episode
        action = agent.act(state)
        if agent.episode != before:
            phi.append(agent.belief.concentration())
            policies.append(agent.policy)
            beliefs.append(agent.belief)
        following, reward, *_ = env.step(action)
        agent.observe(state, action, following)
        # the loop is nothing but this
        assert (history.state[t], history.action[t]) == (state, action)
        assert (history.reward[t], history.episode[t]) == (reward, len(policies))
        state = following
        states.append(state)
    return Run(history, phi, policies, beliefs, states)


NAMES = ("aq-brmdp/exact", "brmdp/exact", "continuing-psrl")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("world", WORLDS)
def test_true_regret_agrees_with_linear_systems(world, name):
    mdp, _ = WORLDS[world]
    run = run_of(world, name)
    kernel, rewards = mdp.kernel(), np.array(mdp.rewards)
    optimum, _ = online.policy_iteration(kernel, rewards, mdp.discount)
    expected = np.empty(STEPS)
    for t in range(STEPS):
        policy = run.policies[run.history.episode[t] - 1]
        expected[t] = (
            optimum[run.states[t]]
            - online.policy_values(kernel, rewards, mdp.discount, policy)[run.states[t]]
        )
    np.testing.assert_allclose(run.history.true_regret, expected, rtol=0, atol=1e-8)
    assert expected.max() > 0.01, "an uninteresting trajectory"


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("world", "wanted"), [("riverswim", 6), ("frozenlake", 3)])
def test_robust_regret_agrees_with_plain_value_iteration(world, wanted, name):
    mdp, _ = WORLDS[world]
    run = run_of(world, name)
    rewards = np.array(mdp.rewards)
    # the first, the last, and those of the largest regret
    largest = run.history.episode[np.argsort(run.history.robust_regret)[::-1]] - 1
    checked = [0, len(run.phi) - 1, *dict.fromkeys(largest.tolist())][:wanted]
    phi, policies = (np.stack([part[k] for k in checked]) for part in (run.phi, run.policies))
    # the iterations start near their ends, which the contraction proves
    beliefs, risk = [brmdp.DirichletBelief(part) for part in phi], brmdp.Quantile(0.2)
    task = (rewards, mdp.discount)
    near = np.stack([brmdp.plan(belief, *task, risk=risk).values for belief in beliefs])
    best, _ = online.quantile_value_iteration(phi, *task, 0.2, start=near)
    near = np.stack(
        [
            brmdp.evaluate_under_belief(belief, *task, policy, risk=risk).values
            for belief, policy in zip(beliefs, policies, strict=True)
        ]
    )
    followed = online.quantile_policy_values(phi, *task, policies, 0.2, start=near)
    steps = 0
    for position, k in enumerate(checked):
        for t in np.flatnonzero(run.history.episode == k + 1):
            state = run.states[t]
            assert run.history.robust_regret[t] == pytest.approx(
                best[position, state] - followed[position, state], abs=1e-8
            )
            steps += 1
    assert steps >= len(checked)
    assert run.history.robust_regret.max() > 1e-5, "an uninteresting trajectory"
    assert run.history.robust_regret.min() >= 0.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("world", WORLDS)
def test_posterior_quantile_value_agrees_with_loops(world, name):
    """The same 147 kernels, drawn again from the diagnostics' stream, evaluated one by one."""
    mdp, _ = WORLDS[world]
    run = run_of(world, name)
    n, rng = mdp.n_states, np.random.default_rng(43)
    assert run.history.quantile_step.tolist() == [0, 50, 100, 150, 200, 250]
    for step, value in zip(run.history.quantile_step, run.history.quantile_value, strict=True):
        k = run.history.episode[step] - 1
        policy = run.policies[k]
        pairs = np.arange(n) * mdp.n_actions + policy
        kernels = run.beliefs[k].sample_entries(147, pairs, rng=rng).reshape(147, n, n)
        expected = online.posterior_quantile_value(
            kernels, np.array(mdp.rewards), mdp.discount, policy, 0, 0.1
        )
        assert value == pytest.approx(expected, abs=1e-10)


@pytest.mark.long
def test_posterior_quantile_value_agrees_with_other_draws():
    """Far more draws of another generator: the estimate lies between their order statistics."""
    mdp, _ = WORLDS["riverswim"]
    run = run_of("riverswim", "brmdp/exact")
    rewards = np.array(mdp.rewards)
    rng = np.random.default_rng(5)
    for step, value in zip(run.history.quantile_step, run.history.quantile_value, strict=True):
        k = run.history.episode[step] - 1
        policy = run.policies[k]
        rows = np.array(
            [[rng.dirichlet(run.phi[k][s, policy[s]]) for s in range(6)] for _ in range(1500)]
        )
        # Pr(15th of 147 outside the 1 % and 28 % quantiles) < 1e-4
        low, high = (
            online.posterior_quantile_value(rows, rewards, mdp.discount, policy, 0, level)
            for level in (0.01, 0.28)
        )
        assert low <= value <= high


def test_the_papers_number_of_draws():
    assert Diagnostics().quantile_samples == planning.budget(0.1, 50.0) == 147
    assert Diagnostics().quantile_every == 200


@pytest.mark.parametrize("name", NAMES)
def test_episodes_are_recorded(name):
    history = run_of("riverswim", name).history
    episodes = history.episodes
    starts = [t for t in range(STEPS) if t == 0 or history.episode[t] != history.episode[t - 1]]
    assert episodes.first_step == starts
    assert (np.diff(history.episode) >= 0).all()
    assert history.episode[-1] == len(starts)
    for record in (
        episodes.levels,
        episodes.iterations,
        episodes.residual,
        episodes.error_bound,
        episodes.status,
    ):
        assert len(record) == len(starts)
    assert max(episodes.error_bound) <= 1e-8 * 1.0 / (
        1.0 - 0.9
    )  # relative to values, which no reward above 1 can exceed
    assert min(episodes.iterations) >= 1
    assert set(episodes.status) == {"sampled" if name == "continuing-psrl" else "converged"}
    if name == "continuing-psrl":
        assert set(episodes.levels) == {None}
        return
    visits = np.zeros((6, 2), dtype=int)
    for number, levels in enumerate(episodes.levels, 1):
        begin = starts[number - 2] if number > 1 else 0
        np.add.at(
            visits,
            (history.state[begin : starts[number - 1]], history.action[begin : starts[number - 1]]),
            1,
        )
        expected = (
            online.adaptive_levels(visits, number, 5.0, 0.2)
            if name.startswith("aq")
            else np.full((6, 2), 0.9)
        )
        np.testing.assert_allclose(levels, expected, rtol=0, atol=1e-14)


# --- diagnostics ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_diagnostics_change_no_trajectory(name):
    def run(diagnostics, rng=None):
        agent = preset(name, RIVER, rng=3)
        history = simulate(
            agent, world_of(RIVER), 120, seed=4, diagnostics=diagnostics, diagnostics_rng=rng
        )
        return history, contents(agent)

    plain, agent = run(Diagnostics(true_regret=False))
    assert plain.true_regret is None
    assert plain.robust_regret is None
    assert plain.quantile_value.size == plain.quantile_step.size == 0
    everything = dataclasses.replace(ALL_DIAGNOSTICS, quantile_every=7)
    for diagnostics in (Diagnostics(), Diagnostics(robust_level=0.1), everything):
        full, twin = run(diagnostics, 5)
        assert trajectory(full) == trajectory(plain)
        assert twin == agent
        np.testing.assert_array_equal(full.true_regret, run(Diagnostics())[0].true_regret)
    assert full.quantile_value.size == 18


def test_the_stream_of_the_diagnostics_is_their_own():
    def run(rng):
        diagnostics = dataclasses.replace(ALL_DIAGNOSTICS, quantile_every=20)
        return simulate(
            preset("continuing-psrl", RIVER, rng=3),
            *(world_of(RIVER), 100),
            seed=4,
            diagnostics=diagnostics,
            diagnostics_rng=rng,
        )

    one, again, other = run(5), run(np.random.default_rng(5)), run(6)
    assert trajectory(one) == trajectory(again) == trajectory(other)
    np.testing.assert_array_equal(one.quantile_value, again.quantile_value)
    assert (one.quantile_value != other.quantile_value).all()
    np.testing.assert_array_equal(one.robust_regret, other.robust_regret)


def test_diagnostics_are_exact_whatever_the_agents_method():
    """Robust regret of sampled plans is that of their policies under exact quantiles."""
    agent = preset("brmdp/monte-carlo", RIVER, rng=1)
    history = simulate(
        agent, world_of(RIVER), 60, seed=2, diagnostics=Diagnostics(robust_level=0.2)
    )
    best = brmdp.plan(agent.belief, RIVER.rewards, 0.9, risk=brmdp.Quantile(0.2))
    # the policy of the last pseudo-episode of the record
    policy = np.array(agent.arrays()["policy"])
    followed = brmdp.evaluate_under_belief(
        agent.belief, RIVER.rewards, 0.9, policy, risk=brmdp.Quantile(0.2)
    )
    gap = (best.values - followed.values)[history.state[-1]]
    assert history.robust_regret[-1] == pytest.approx(gap, abs=2e-8)


# --- regret in cases that are known ---------------------------------------------------------------


def test_regret_is_zero_when_the_policy_is_optimal():
    belief = brmdp.DirichletBelief.informative(RIVER, 1e8)
    agent = agents.Agent(
        belief, RIVER.rewards, 0.9, risk=brmdp.Mean(), restart=agents.FixedLength(20), rng=0
    )
    history = simulate(agent, world_of(RIVER), 200, seed=1)
    np.testing.assert_allclose(history.true_regret, 0.0, atol=1e-8)


def test_regret_of_a_policy_that_never_tries():
    """Believing that the current wins, the agent stays at the left end for 0.005 a step."""
    kernel = np.zeros((6, 2, 6))
    kernel[np.arange(6), :, np.maximum(np.arange(6) - 1, 0)] = 1.0
    belief = brmdp.DirichletBelief(np.ones((6, 2, 6)) * 1e-3 + 1e8 * kernel)
    agent = agents.fixed_quantile(belief, RIVER.rewards, 0.9, alpha=0.5, rng=0)
    history = simulate(agent, world_of(RIVER), 100, seed=1)
    assert (history.state == 0).all()
    assert (history.action == 0).all()
    np.testing.assert_allclose(history.reward, 0.005)
    optimum, _ = online.policy_iteration(RIVER.kernel(), np.array(RIVER.rewards), 0.9)
    np.testing.assert_allclose(history.true_regret, optimum[0] - 0.005 / (1 - 0.9), atol=1e-8)


@pytest.mark.long
def test_robust_regret_of_the_robust_plan_is_zero():
    for mdp in (RIVER, LAKE):
        agent = preset("brmdp/exact", mdp, rng=2, alpha=0.2)
        history = simulate(
            agent, world_of(mdp), 300, seed=3, diagnostics=Diagnostics(robust_level=0.2)
        )
        np.testing.assert_allclose(
            history.robust_regret, 0.0, atol=1e-6
        )  # tied actions may give away 1e-7/(1 − γ)
        other = preset("brmdp/exact", mdp, rng=2, alpha=0.9)
        history = simulate(
            other, world_of(mdp), 300, seed=3, diagnostics=Diagnostics(robust_level=0.2)
        )
        assert history.robust_regret.max() > 1e-5


def test_regret_uses_the_policy_at_the_state_of_the_step():
    """A world of two separate loops: regret occurs only where the plan is wrong."""
    kernel = np.array([[[1.0, 0], [1.0, 0]], [[0, 1.0], [0, 1.0]]])
    rewards = np.array([[1.0, 0.0], [0.0, 0.25]])
    believed = brmdp.DirichletBelief(np.where(kernel > 0, 1.0, 0.0))
    for start, expected in ((0, 0.0), (1, 0.25 / (1 - 0.5))):
        # the agent's rewards are wrong on purpose, which must be declared
        world = World(
            TabularEnv(brmdp.TabularMDP(kernel, rewards, 0.5, start=start)),
            0.5,
            random_rewards=True,
        )
        agent = agents.fixed_quantile(
            believed, [[1.0, 0.0], [0.25, 0.0]], 0.5, alpha=0.5, rng=0
        )  # wrong in state 1
        np.testing.assert_allclose(
            simulate(agent, world, 5, seed=0).true_regret, expected, atol=1e-9
        )


# --- streams and seeds ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_seeds_reproduce_everything(name):
    def run(agent_seed, env_seed):
        return trajectory(
            simulate(preset(name, LAKE, rng=agent_seed), world_of(LAKE), 80, seed=env_seed)
        )

    assert run(1, 2) == run(1, 2)
    assert run(1, 2) != run(1, 3)
    assert run(1, 2) != run(4, 2)


def test_agents_share_the_noise_of_an_environment_seed():
    """One uniform number per step, at which the row's distribution function is inverted."""
    numbers = gymnasium.utils.seeding.np_random(9)[0].random(200)
    cumulative = np.cumsum(LAKE.kernel(), axis=2)
    histories = [
        simulate(preset(name, LAKE, rng=seed), world_of(LAKE), 200, seed=9)
        for seed, name in enumerate(NAMES)
    ]
    for history in histories:
        for t in range(199):
            row = cumulative[history.state[t], history.action[t]]
            assert history.state[t + 1] == np.argmax(row > numbers[t])
    assert len({tuple(history.state) for history in histories}) == 3


def test_pseudo_episodes_do_not_depend_on_the_environment_or_the_measure():
    numbers = {
        tuple(
            simulate(preset(name, mdp, rng=17), World(TabularEnv(mdp), 0.9), 150, seed=seed).episode
        )
        for name in NAMES
        for mdp in (RIVER, frozenlake(0.7, discount=0.9))
        for seed in (1, 2)
    }
    assert len(numbers) == 1


def test_agents_do_not_touch_the_environments_stream():
    """The environment uses one number per step, whatever the agent and the diagnostics draw."""
    for name in NAMES:
        world = world_of(RIVER)
        simulate(
            preset(name, RIVER, rng=1),
            world,
            70,
            seed=8,
            diagnostics=ALL_DIAGNOSTICS,
            diagnostics_rng=2,
        )
        twin = gymnasium.utils.seeding.np_random(8)[0]
        twin.random(70)
        assert world.env.np_random.bit_generator.state == twin.bit_generator.state


# --- records --------------------------------------------------------------------------------------


def test_histories_have_the_right_lengths():
    for steps in (1, 2, 99, 201):
        history = simulate(
            preset("aq-brmdp/saddlepoint", RIVER, rng=1),
            *(world_of(RIVER), steps),
            seed=2,
            diagnostics=Diagnostics(robust_level=0.2, quantile_level=0.1),
            diagnostics_rng=3,
        )
        assert len(history) == steps
        for name in ("state", "action", "reward", "episode", "true_regret", "robust_regret"):
            assert getattr(history, name).shape == (steps,)
        assert history.quantile_step.tolist() == list(range(0, steps, 200))
        assert history.quantile_value.shape == history.quantile_step.shape
        assert history.episode[0] == 1
        assert (history.state < 6).all()
        assert (
            history.state.dtype.kind
            == history.action.dtype.kind
            == history.episode.dtype.kind
            == "i"
        )


def test_the_policy_of_every_pseudo_episode_took_the_actions():
    history = simulate(
        preset("aq-brmdp/exact", LAKE, rng=1, delta=10.0), world_of(LAKE), 200, seed=2
    )
    for number in range(1, history.episode[-1] + 1):
        inside = history.episode == number
        taken = set(
            zip(history.state[inside].tolist(), history.action[inside].tolist(), strict=True)
        )
        assert len(taken) == len({state for state, _ in taken})


def test_progress_is_reported_every_hundred_steps():
    seen = []
    simulate(
        preset("continuing-psrl", RIVER, rng=1), world_of(RIVER), 350, seed=2, on_step=seen.append
    )
    assert seen == [100, 200, 300]


def test_an_agent_goes_on_from_where_it_stands():
    agent = preset("aq-brmdp/exact", RIVER, rng=1)
    first = simulate(agent, world_of(RIVER), 100, seed=2)
    second = simulate(agent, world_of(RIVER), 100, seed=3)
    assert agent.progress.steps == 200
    assert second.state[0] == 0
    assert second.episode[0] in (first.episode[-1], first.episode[-1] + 1)
    assert second.episodes.first_step[0] == 0
    assert agent.progress.visits.sum() == 200
    kernel, rewards = RIVER.kernel(), np.array(RIVER.rewards)
    optimum, _ = online.policy_iteration(kernel, rewards, 0.9)
    value = online.policy_values(kernel, rewards, 0.9, agent.arrays()["policy"])
    assert second.true_regret[-1] == pytest.approx((optimum - value)[second.state[-1]], abs=1e-8)


@pytest.mark.parametrize("name", ["aq-brmdp/exact", "continuing-psrl"])
def test_a_loaded_agent_can_be_simulated(name, tmp_path):
    """Also in the middle of a pseudo-episode: the result is that of an agent never saved."""
    agent = preset(name, RIVER, rng=1, restart=agents.FixedLength(30))
    simulate(agent, world_of(RIVER), 100, seed=2)
    agent.save(tmp_path / "agent")
    loaded = agents.Agent.load(tmp_path / "agent")
    histories = [
        simulate(one, world_of(RIVER), 100, seed=3, diagnostics=ALL_DIAGNOSTICS, diagnostics_rng=4)
        for one in (agent, loaded)
    ]
    assert trajectory(histories[0]) == trajectory(histories[1])
    for name in ("true_regret", "robust_regret", "quantile_value"):
        np.testing.assert_array_equal(getattr(histories[0], name), getattr(histories[1], name))


def test_independent_rows_may_be_believed_of_the_inventory():
    """The environment tells the demand; a belief that has no use for it must not mind."""
    world = World("brmdp/Inventory-v0", 0.9)
    mdp = world.env.unwrapped.mdp
    belief = brmdp.DirichletBelief(
        np.where(mdp.admissible[:, :, None], 1.0, 0.0) * np.ones(mdp.n_states),
        admissible=mdp.admissible,
    )
    agent = agents.continuing_psrl(belief, mdp.rewards, 0.9, rng=1)
    history = simulate(agent, world, 100, seed=2)
    assert mdp.admissible[history.state, history.action].all()
    assert agent.progress.steps == 100


@pytest.mark.parametrize(
    "name", ["aq-brmdp/exact", "aq-brmdp/saddlepoint", "aq-brmdp/monte-carlo-reused"]
)
def test_agents_learn_the_river(name):
    """Early rewards come from the left end, later ones from the right end, 0.4 on average."""
    rewards = np.array(
        [
            simulate(preset(name, RIVER, rng=seed), world_of(RIVER), 1200, seed=50 + seed).reward
            for seed in range(3)
        ]
    )
    assert rewards[:, 900:].mean() > 0.2 > rewards[:, :50].mean()


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0, -5, 2.5, None, "100", True, np.nan])
def test_bad_numbers_of_steps_are_refused(bad):
    with pytest.raises(brmdp.InvalidInputError, match="steps must be a positive integer; got"):
        simulate(preset("brmdp/exact", RIVER, rng=0), world_of(RIVER), bad)


def test_an_agent_of_another_size_is_refused():
    with pytest.raises(
        brmdp.InvalidInputError,
        match="the agent knows 6 states and 2 actions, the world has 16 and 4",
    ):
        simulate(preset("brmdp/exact", RIVER, rng=0), world_of(LAKE), 10)
    with pytest.raises(
        brmdp.InvalidInputError,
        match="the agent knows 16 states and 4 actions, the world has 17 and 4",
    ):
        simulate(preset("brmdp/exact", LAKE, rng=0), World("FrozenLake-v1", 0.8), 10)


def test_what_is_no_agent_or_world_is_refused():
    with pytest.raises(brmdp.InvalidInputError, match="agent must have the methods act"):
        simulate(None, world_of(RIVER), 10)
    with pytest.raises(brmdp.InvalidInputError, match="world must be"):
        simulate(preset("brmdp/exact", RIVER, rng=0), "brmdp/RiverSwim-v0", 10)
    with pytest.raises(brmdp.InvalidInputError, match="world must be"):
        simulate(preset("brmdp/exact", RIVER, rng=0), TabularEnv(RIVER), 10)


def test_true_regret_needs_the_truth():
    class Blind(TabularEnv):
        """The river without its kernel."""

        @property
        def unwrapped(self):
            return gymnasium.Env()

    world = World(Blind(RIVER), 0.9, rewards=np.zeros((6, 2)))
    agent = agents.fixed_quantile(world.prior(), world.rewards, 0.9, alpha=0.2, rng=0)
    with pytest.raises(
        brmdp.InvalidInputError, match="true_regret=True needs a world whose truth is known"
    ):
        simulate(agent, world, 10, diagnostics=Diagnostics(true_regret=True))
    world = World(Blind(RIVER), 0.9, rewards=np.zeros((6, 2)), random_rewards=True)
    assert simulate(agent, world, 10, seed=1).true_regret is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"robust_level": 0.0}, r"robust_level must lie strictly between 0 and 1; got 0\.0"),
        ({"robust_level": 1.0}, "robust_level must lie strictly between 0 and 1"),
        ({"robust_level": "0.2"}, "robust_level must be a number"),
        ({"quantile_level": 1.5}, r"quantile_level must lie strictly between 0 and 1; got 1\.5"),
        ({"true_regret": "no"}, "true_regret must be True, False or None; got 'no'"),
        ({"true_regret": 1}, "true_regret must be True, False or None; got 1"),
        ({"quantile_every": 0}, "quantile_every must be a positive integer; got 0"),
        ({"quantile_every": 2.5}, "quantile_every must be a positive integer"),
        ({"quantile_samples": -1}, "quantile_samples must be a positive integer; got -1"),
    ],
)
def test_bad_diagnostics_are_refused(options, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        Diagnostics(**options)


def test_bad_streams_are_refused():
    with pytest.raises(
        brmdp.InvalidInputError, match=r"rng must be a numpy\.random\.Generator or a seed; got 'x'"
    ):
        simulate(preset("brmdp/exact", RIVER, rng=0), world_of(RIVER), 10, diagnostics_rng="x")
