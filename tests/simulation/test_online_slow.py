"""Slow checks of the online learner.

Flat memory, calibration of reused draws, fidelity over whole runs.
"""

import gc
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import brmdp
from brmdp import Diagnostics, World, agents, simulate
from brmdp.envs import TabularEnv, frozenlake, riverswim
from oracles import online

pytestmark = pytest.mark.slow

LAKE = frozenlake(0.9)


def uniform(mdp):
    return brmdp.DirichletBelief.uniform(mdp.n_states, mdp.n_actions)


def walk_on(agent, env, state, steps):
    """Act and observe without any loop of the library's; the state reached."""
    act, observe, step = agent.act, agent.observe, env.step
    for _ in range(steps):
        action = act(state)
        following = step(action)[0]
        observe(state, action, following)
        state = following
    return state


# --- memory ---------------------------------------------------------------------------------------


def resident_bytes():
    """Memory of this process that is in use now."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return 1024 * int(fields["VmRSS"].split()[0])


AGENTS = {
    "aq-brmdp": lambda given: agents.aq_brmdp(*given, delta=5.0, rng=1),
    "aq-brmdp-reused": lambda given: agents.aq_brmdp(
        *given, delta=5.0, method=brmdp.MonteCarlo(5.0, cap=50, reuse=True), rng=1
    ),
    "continuing-psrl": lambda given: agents.continuing_psrl(*given, rng=1),
}


@pytest.mark.parametrize("name", AGENTS)
def test_memory_is_flat_over_a_million_steps(name):
    """From step 100,000 to 1,000,000 only the current plan is kept, in Python and below it."""
    mdp = riverswim(6, discount=0.99)
    env = TabularEnv(mdp)
    state, _ = env.reset(seed=2)
    # from the beginning, so that what is replaced now and then, such as the draws of a rarely tried
    # pair, is known when it is freed
    tracemalloc.start()
    try:
        agent = AGENTS[name]((uniform(mdp), mdp.rewards, 0.99))
        state = walk_on(agent, env, state, 100_000)
        gc.collect()
        kept_early, _ = tracemalloc.get_traced_memory()
        state = walk_on(agent, env, state, 50_000)
        gc.collect()
        kept_late, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # a forgotten number per step would be 1.6 MB, a forgotten array per pseudo-episode at least 60
    # KB
    assert kept_late - kept_early < 30_000
    gc.collect()
    before = resident_bytes()
    walk_on(agent, env, state, 850_000)
    gc.collect()
    assert agent.progress.steps == 1_000_000
    assert 9_000 < agent.episode < 11_000
    assert (
        resident_bytes() - before < 4_000_000
    )  # a forgotten plan of 1 KB per pseudo-episode would be 9 MB
    counts = agent.belief.counts()
    assert 990_000 < counts.sum() <= 1_000_000


# --- reused draws ---------------------------------------------------------------------------------


def levels_hit(method, runs, steps=150, alpha=0.5):
    """F(q̂) − E F(q̂) of every pair in the last plan of each run, and whether it was visited.

    q̂ is the sampled quantile of the plan and F the exact distribution function of its target; the
    ⌈nα⌉-th of n independent draws has E F(q̂) = ⌈nα⌉/(n + 1).
    """
    n = method["samples"]
    expected = np.ceil(n * alpha) / (n + 1)
    misses, unvisited = [], []
    for run in range(runs):
        agent = agents.fixed_quantile(
            *(uniform(LAKE), LAKE.rewards, LAKE.discount),
            alpha=alpha,
            method=brmdp.MonteCarlo(**method),
            rng=run,
        )
        env = TabularEnv(LAKE)
        state, _ = env.reset(seed=run)
        walk_on(agent, env, state, steps)
        agent.act(0)
        solution, phi = agent.report.solution, agent.belief.concentration()
        targets = np.array(LAKE.rewards) + LAKE.discount * solution.values
        below, _ = online.gil_pelaez(
            phi.reshape(64, 16), targets.reshape(64, 16), solution.q_values.ravel()
        )
        misses.append(below - expected)
        unvisited.append(agent.belief.counts().sum(axis=2).ravel() == 0)
    return np.array(misses), np.array(unvisited)


def bias(misses, chosen):
    """Mean over runs of the mean over chosen pairs, and its standard error."""
    means = np.array(
        [miss[some].mean() for miss, some in zip(misses, chosen, strict=True) if some.any()]
    )
    return means.mean(), means.std(ddof=1) / np.sqrt(means.size)


def test_fresh_draws_are_calibrated():
    misses, unvisited = levels_hit({"samples": 20}, 60)
    for chosen in (unvisited, ~unvisited):
        mean, error = bias(misses, chosen)
        assert error < 0.01
        assert abs(mean) < 4 * error


def test_few_reused_draws_suffer_the_winners_curse_and_many_do_not():
    """Rows that look bad in the kept draws are never visited: their quantiles stay too low."""
    misses, unvisited = levels_hit({"samples": 20, "reuse": True}, 60)
    mean, error = bias(misses, unvisited)
    assert mean < -0.02
    assert mean + 4 * error < 0
    misses, unvisited = levels_hit({"samples": 2048, "reuse": True}, 20)
    for chosen in (unvisited, ~unvisited):
        mean, error = bias(misses, chosen)
        assert abs(mean) < 0.015
        assert error < 0.005


# --- fidelity over whole runs ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mdp", "delta", "steps"),
    [(riverswim(6), 5.0, 1000), (LAKE, 10.0, 250)],
    ids=["riverswim", "frozenlake"],
)
def test_every_pseudo_episode_agrees_with_plain_value_iteration(mdp, delta, steps):
    """AQ-BRMDP: Q-values, levels and robust regret, recomputed from the history's counts."""
    agent, twin = (
        agents.aq_brmdp(uniform(mdp), mdp.rewards, mdp.discount, delta=delta, rng=1)
        for _ in range(2)
    )
    world = World(TabularEnv(mdp), mdp.discount)
    history = simulate(agent, world, steps, seed=2, diagnostics=Diagnostics(robust_level=0.2))
    q_values, policies = [], []
    env = TabularEnv(mdp)
    state, _ = env.reset(seed=2)
    for _ in range(steps):
        before = twin.episode
        twin.act(state)
        if twin.episode != before:
            q_values.append(twin.report.solution.q_values)
            policies.append(twin.policy)
        state = walk_on(twin, env, state, 1)
    states = history.state.tolist()
    walk = online.Walk(
        states,
        history.action.tolist(),
        [t > 0 and history.episode[t] == history.episode[t - 1] for t in range(steps)],
    )
    prior = np.ones((mdp.n_states, mdp.n_actions, mdp.n_states))
    episodes = online.replay(
        walk, prior, lambda visits, k: online.adaptive_levels(visits, k, delta, 0.2)
    )
    assert len(episodes) == len(policies) == history.episode[-1]
    phi, levels = (
        np.stack([getattr(episode, part) for episode in episodes]) for part in ("phi", "levels")
    )
    np.testing.assert_allclose(np.array(history.episodes.levels), levels, rtol=0, atol=1e-13)
    rewards = np.array(mdp.rewards)
    _, expected = online.quantile_value_iteration(phi, rewards, mdp.discount, levels)
    np.testing.assert_allclose(np.array(q_values), expected, rtol=0, atol=1e-8)
    best, _ = online.quantile_value_iteration(phi, rewards, mdp.discount, 0.2)
    followed = online.quantile_policy_values(phi, rewards, mdp.discount, np.array(policies), 0.2)
    regret = np.array(
        [(best - followed)[k - 1, s] for k, s in zip(history.episode, states, strict=True)]
    )
    np.testing.assert_allclose(history.robust_regret, regret, rtol=0, atol=1e-8)


def test_a_long_run_with_interruptions(tmp_path):
    """1,500 steps of AQ-BRMDP on the lake, saved and loaded every 50 steps or so."""
    env, twin_env = TabularEnv(LAKE), TabularEnv(LAKE)
    agent, twin = (
        agents.aq_brmdp(uniform(LAKE), LAKE.rewards, 0.8, delta=10.0, rng=3) for _ in range(2)
    )
    state, _ = env.reset(seed=4)
    twin_state, _ = twin_env.reset(seed=4)
    rng = np.random.default_rng(5)
    while agent.progress.steps < 1500:
        steps = int(rng.integers(1, 100))
        state = walk_on(agent, env, state, steps)
        twin_state = walk_on(twin, twin_env, twin_state, steps)
        twin.save(tmp_path / "agent")
        twin = agents.Agent.load(tmp_path / "agent")
        assert twin_state == state
    one, other = agent.arrays(), twin.arrays()
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.tobytes() == other[name].tobytes(), name
