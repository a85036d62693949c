"""The optimistic methods: their formulas on two states, their parts, their files; Q-learning."""

import math
from dataclasses import replace

import numpy as np
import pytest

import brmdp
from brmdp import agents
from brmdp.agents import QLearning
from brmdp.envs import ChainEnv, TabularEnv, riverswim
from brmdp.runs import Case, Experiment, run_experiment
from brmdp.runs.catalogue import AGENTS
from oracles import optimism
from problems import OPTIMISTS

INVALID = brmdp.InvalidInputError
RIVER = riverswim(4)
CHAIN = ChainEnv().mdp


def two_states(counts, seed=1):
    """A model for the oracle, and its belief before the data."""
    rng = np.random.default_rng(seed)
    prior, rewards = rng.uniform(0.3, 2.0, (2, 2, 2)), rng.uniform(-0.5, 1.0, (2, 2, 2))
    return (prior, np.array(counts), rewards, 0.7), brmdp.DirichletBelief(prior)


def taught(agent, counts):
    """The agent after these transitions."""
    for s, a, t in np.argwhere(counts):
        for _ in range(counts[s, a, t]):
            agent.observe(int(s), int(a), int(t))
    return agent


def q_of(agent):
    return np.array([[report.value for report in agent.explain(s)] for s in range(2)])


FORMULAS = {
    "beb": ({"beta": 0.8}, optimism.beb(0.8)),
    "vbrb": ({"beta": 0.8}, optimism.vbrb(0.8)),
    "eubrl": ({"eta": 1.2}, optimism.eubrl(1.2)),
    "r_max": ({"visits": 3}, optimism.r_max(3)),
    "ucrl2": ({"delta": 0.2, "scale": 0.1}, optimism.ucrl2(0.2, 0.1)),
    "ucbvi_gamma": ({"delta": 0.2, "scale": 0.05}, optimism.ucbvi_gamma(0.2, 0.05)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_agents_value_actions_by_their_formulas(name):
    counts = np.array([[[4, 2], [0, 1]], [[3, 0], [0, 5]]])
    model, belief = two_states(counts)
    parameters, q = FORMULAS[name]
    make = getattr(agents, name)
    agent = taught(make(belief, model[2], model[3], **parameters, rng=0), counts)
    expected = optimism.fixed_point(model, q, 60 if name == "ucrl2" else 150)
    np.testing.assert_allclose(q_of(agent), expected, rtol=0, atol=1e-7)
    assert agent.act(0) == int(expected[0].argmax())


def test_bayes_ucbvi_by_hand():
    """One action and equal rewards: only the fictitious state can differ from V = 0."""
    belief = brmdp.DirichletBelief([[[2.0, 1.0]], [[1.0, 1.0]]])
    agent = agents.bayes_ucbvi(belief, [[0.0], [1.0]], 0.0, strength=0.5, delta=0.4, rng=0)
    # without a discount, state 1 is worth 1 already, like the fictitious state
    np.testing.assert_allclose(agent.explain(1)[0].value, 1.0, rtol=1e-9)
    from scipy import stats

    law = stats.beta(0.5, 3.0)
    np.testing.assert_allclose(agent.explain(0)[0].value, law.ppf(0.6), rtol=1e-8)
    agent.observe(0, 0, 1)
    agent.observe(1, 0, 0)
    agent.act(0)  # with discount 0 every step is a pseudo-episode
    law = stats.beta(0.5, 4.0)
    np.testing.assert_allclose(agent.explain(0)[0].value, law.ppf(1 - 0.4 / 3), rtol=1e-8)
    assert agent.levels[0, 0] == pytest.approx(1 - 0.4 / 3)


def test_opsrl_is_the_best_of_its_draws():
    """With more draws the value rises, towards that of the fictitious state."""
    found = []
    for samples in (1, 4, 64, 1024):
        belief = brmdp.DirichletBelief.uniform(2, 1)
        agent = agents.opsrl(belief, [[0.0], [1.0]], 0.9, samples=samples, rng=3)
        found.append(agent.explain(0)[0].value)
        assert agent.report.status == "sampled"
        assert agent.risk.base.method.samples == samples
        assert int(np.ceil(float(agent.risk.alpha) * samples)) == samples
    assert (np.diff(found) > 0).all()
    assert found[-1] < 10.0


def test_cvar_with_a_bonus_by_hand():
    """Beta(1, 1): the mean of its worst 20 % is 0.1, so V = 0.9·(0 + 0.1·ΔV) + r + β."""
    belief = brmdp.DirichletBelief.uniform(2, 1)
    agent = agents.cvar_bonus(belief, [[0.0], [1.0]], 0.9, alpha=0.2, beta=0.5, rng=0)
    # V₁ = V₀ + 1, and V₀ = 0.9·(V₀ + 0.1) + 0.5
    np.testing.assert_allclose([agent.explain(s)[0].value for s in (0, 1)], [5.9, 6.9], rtol=1e-8)
    assert float(agent.levels[0, 0]) == 0.2


def test_restart_rules_are_the_sources():
    belief, rewards = brmdp.DirichletBelief.uniform(4, 2), RIVER.rewards
    expected = {
        "beb": "EveryStep()",
        "vbrb": "EveryStep()",
        "eubrl": "EveryStep()",
        "r-max": "EveryStep()",
        "ucrl2": "VisitDoubling()",
        "ucbvi-gamma": "EveryStep()",
        "bayes-ucbvi": "GeometricLength(continuation=0.9)",
        "opsrl": "GeometricLength(continuation=0.9)",
        "cvar-bonus": "GeometricLength(continuation=0.9)",
    }
    for name, make in OPTIMISTS.items():
        assert repr(make(belief, rewards, 0.9, rng=1).restart) == expected[name]
        rule = agents.FixedLength(7)
        assert make(belief, rewards, 0.9, restart=rule, rng=1).restart == rule
        episodic = make(belief, rewards, 1.0, episode_length=3, rng=1)
        assert episodic.restart == agents.EachEpisode()
        assert episodic.act(0) in (0, 1)


def test_the_largest_value_over_a_horizon():
    """Bounds on values: r_max·H, with a discount less; a negative reward is paid at least once."""
    belief = brmdp.DirichletBelief.uniform(2, 1)
    for rewards, discount, steps, expected in (
        ([[0.0], [2.0]], 1.0, 3, 6.0),
        ([[0.0], [2.0]], 0.5, 3, 3.5),
        ([[-3.0], [-2.0]], 1.0, 3, -2.0),
    ):
        agent = agents.r_max(belief, rewards, discount, visits=1, episode_length=steps, rng=0)
        assert agent.risk.ceiling == pytest.approx(expected)
    plain = agents.r_max(belief, [[0.0], [2.0]], 0.75, visits=1, rng=0)
    assert plain.risk.ceiling == pytest.approx(8.0)


def test_unknown_rewards():
    """A belief about rewards works where the method needs no more than counts or variances."""
    world = brmdp.World(brmdp.envs.BernoulliRiverSwimEnv(3), 0.9, rewards="unknown")
    for name in ("beb", "vbrb", "r-max", "ucrl2", "ucbvi-gamma", "cvar-bonus"):
        agent = OPTIMISTS[name](world.prior(), world.rewards, 0.9, rng=0)
        assert len(brmdp.simulate(agent, world, 30, seed=1)) == 30
    with pytest.raises(INVALID, match="must not learn rewards for eubrl"):
        OPTIMISTS["eubrl"](world.prior(), world.rewards, 0.9)
    with pytest.raises(INVALID, match="must be a DirichletBelief for an OptimisticPosterior"):
        OPTIMISTS["opsrl"](world.prior(), world.rewards, 0.9).act(0)


def test_without_doubt_or_differences_nothing_breaks():
    known = brmdp.DirichletBelief([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    for rewards in ([[0.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]):
        best = brmdp.plan(known, rewards, 0.9, risk=brmdp.Mean()).values
        for name, make in OPTIMISTS.items():
            agent = make(known, rewards, 0.9, rng=0)
            agent.act(0)
            np.testing.assert_allclose(agent.report.solution.values, best, err_msg=name)


# --- files and workers ----------------------------------------------------------------------------


def lived(agent, mdp, steps, seed, state=0):
    """Actions and states of a life in a world that is drawn anew from ``seed``."""
    env = TabularEnv(mdp)
    env.reset(seed=seed, options={"state": state})
    done = []
    for _ in range(steps):
        action = agent.act(state)
        following, reward, *_ = env.step(action)
        told = {"reward": reward} if isinstance(agent, QLearning) else {}
        agent.observe(state, action, following, **told)
        done.append((state, action, following))
        state = following
    return done, state


@pytest.mark.parametrize("name", [*OPTIMISTS, "q-learning"])
def test_a_saved_agent_continues_bit_by_bit(name, tmp_path):
    make = {**OPTIMISTS, "q-learning": QLearning}[name]
    belief = brmdp.DirichletBelief.uniform(CHAIN.n_states, 2)
    agent = make(belief, CHAIN.rewards, 0.9, rng=5)
    _, state = lived(agent, CHAIN, 25, 1)
    agent.save(tmp_path / "agent.npz")
    twin = type(agent).load(tmp_path / "agent.npz")
    assert lived(twin, CHAIN, 40, 2, state) == lived(agent, CHAIN, 40, 2, state)
    left, right = twin.arrays(), agent.arrays()
    assert left.keys() == right.keys()
    for key in left:
        np.testing.assert_array_equal(left[key], right[key], err_msg=key)
    again = make(belief, CHAIN.rewards, 0.9, rng=5)
    other = make(belief, CHAIN.rewards, 0.9, rng=5)
    assert lived(again, CHAIN, 25, 1) == lived(other, CHAIN, 25, 1)


PARAMETERS = {
    "beb": {"beta": 1.0},
    "vbrb": {"beta": 1.0},
    "eubrl": {"eta": 1.0},
    "r-max": {"visits": 2},
    "cvar-bonus": {"alpha": 0.2, "beta": 0.5},
}
OURS = [*OPTIMISTS, "q-learning"]


def cases(steps=25):
    return tuple(
        Case(
            name=f"chain/{name}",
            environment="chain",
            agent=name,
            agent_parameters=PARAMETERS.get(name, {}),
            steps=steps,
            discount=0.9,
        )
        for name in OURS
    )


@pytest.mark.long
def test_runs_are_the_same_for_any_number_of_workers(tmp_path):
    experiment = Experiment(name="optimists", title="", runs=2, seed=3, cases=cases())
    alone = run_experiment(experiment, tmp_path / "alone", workers=1)
    together = run_experiment(experiment, tmp_path / "together", workers=2)
    assert alone.digest() == together.digest()


def test_names_of_sweeps_make_the_presets():
    """Built by name, an agent acts as the preset with the same stream does."""
    from brmdp.runs.catalogue import make_agent, make_setting

    for case in cases():
        setting = make_setting(case, 1)
        named = make_agent(case, setting, 9)
        make = (
            QLearning
            if case.agent == "q-learning"
            else getattr(agents, case.agent.replace("-", "_"))
        )
        own = make(*setting[1:], 0.9, **PARAMETERS.get(case.agent, {}), rng=9)
        assert repr(named) == repr(own)
        assert lived(named, CHAIN, 12, 4) == lived(own, CHAIN, 12, 4)
    geometric = replace(cases()[0], agent_parameters={"beta": 1.0, "restart": "geometric"})
    made = make_agent(geometric, make_setting(geometric, 1), 9)
    assert made.restart == agents.GeometricLength(0.9)
    with pytest.raises(INVALID, match="beta"):
        make_agent(replace(cases()[0], agent_parameters={}), make_setting(cases()[0], 1), 9)
    assert set(OURS) <= set(AGENTS)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("beb", {"beta": 0.0}, "beta must be a positive finite number; got 0"),
        ("vbrb", {"beta": np.nan}, "beta must be a positive finite number; got nan"),
        ("eubrl", {"eta": -1}, "eta must be a positive finite number; got -1"),
        ("r_max", {"visits": 0}, "visits must be a positive integer; got 0"),
        ("ucrl2", {"delta": 1.0}, "delta must lie strictly between 0 and 1"),
        ("ucrl2", {"scale": "1"}, "scale must be a positive finite number; got '1'"),
        ("ucbvi_gamma", {"scale": 2.0}, "scale must lie in"),
        ("bayes_ucbvi", {"strength": 0}, "strength must be a positive finite number"),
        ("bayes_ucbvi", {"delta": 0}, "delta must lie strictly between 0 and 1"),
        ("opsrl", {"samples": 0}, "samples must be a positive integer; got 0"),
        ("opsrl", {"inflation": 0.5}, "inflation must be at least 1"),
        ("cvar_bonus", {"alpha": 2, "beta": 1}, "alpha must lie strictly between 0 and 1"),
        ("beb", {"beta": 1.0, "restart": 3}, "restart must be an object with a method ends"),
        ("beb", {"beta": 1.0, "episode_length": 0}, "episode_length must be a positive integer"),
        ("r_max", {"visits": 1, "episode_length": -1}, "episode_length must be a positive"),
    ],
)
def test_bad_settings_are_named(name, parameters, message):
    belief = brmdp.DirichletBelief.uniform(4, 2)
    with pytest.raises(INVALID, match=message):
        getattr(agents, name)(belief, RIVER.rewards, 0.9, **parameters)


@pytest.mark.parametrize("name", OPTIMISTS)
def test_bad_problems_are_named(name):
    make, belief = OPTIMISTS[name], brmdp.DirichletBelief.uniform(4, 2)
    for bad in (1.0, -0.1, np.nan, "0.9"):
        with pytest.raises(INVALID, match="discount must"):
            make(belief, RIVER.rewards, bad)
    with pytest.raises(INVALID, match="belief must be a brmdp belief"):
        make("belief", RIVER.rewards, 0.9)
    with pytest.raises(INVALID, match="rewards must"):
        make(belief, np.full((4, 2), np.inf), 0.9)


# --- Q-learning -----------------------------------------------------------------------------------


def test_q_learning_by_hand_and_by_loops():
    belief = brmdp.DirichletBelief.uniform(2, 2)
    agent = QLearning(belief, None, 0.5, epsilon=0.2, power=0.5, rng=0)
    agent.observe(0, 1, 1, reward=2.0)  # rate 1: Q = 2
    agent.observe(1, 0, 0, reward=0.0)  # Q = 0.5 · 2
    agent.observe(0, 1, 0, reward=0.0)  # rate 1/√2 towards 0.5 · 2 = 1
    expected = [[0.0, 2.0 - math.sqrt(0.5)], [1.0, 0.0]]
    np.testing.assert_allclose(agent.q_values, expected, rtol=1e-15)
    np.testing.assert_allclose(agent.policy, [[0.1, 0.9], [0.9, 0.1]])
    rng, steps = np.random.default_rng(2), []
    agent = QLearning(belief, None, 0.8, rng=0)
    for _ in range(200):
        s, a, t = (int(k) for k in rng.integers(2, size=3))
        steps.append((s, a, float(rng.normal()), t))
        agent.observe(s, a, t, reward=steps[-1][2])
    expected = optimism.q_learning(steps, 2, 2, 0.8, 0.77)
    np.testing.assert_allclose(agent.q_values, expected, rtol=1e-12)


def test_q_learning_acts_by_its_policy():
    """Frequencies of actions, with ties and an inadmissible action."""
    admissible = np.array([[True, True, False, True], [True, False, False, False]])
    belief = brmdp.DirichletBelief(np.ones((2, 4, 2)), admissible=admissible)
    agent = QLearning(belief, None, 0.5, epsilon=0.3, rng=1)
    agent.observe(0, 3, 1, reward=-1.0)
    np.testing.assert_allclose(agent.policy, [[0.45, 0.45, 0.0, 0.1], [1.0, 0.0, 0.0, 0.0]])
    taken = np.bincount([agent.act(0) for _ in range(20_000)], minlength=4) / 20_000
    np.testing.assert_allclose(taken, agent.policy[0], atol=0.015)
    assert agent.q_values[0, 2] == -np.inf
    world = brmdp.World("brmdp/Chain-v0", 0.9)
    history = brmdp.simulate(QLearning(world.prior(), world.rewards, 0.9, rng=0), world, 50, seed=1)
    assert history.true_regret is not None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": -0.1}, r"epsilon must lie in \[0, 1\]; got -0.1"),
        ({"epsilon": np.nan}, r"epsilon must lie in \[0, 1\]"),
        ({"epsilon": "0"}, r"epsilon must be a number in \[0, 1\]"),
        ({"power": 0.0}, r"power must lie in \(0, 1\]; got 0.0"),
        ({"power": 1.1}, r"power must lie in \(0, 1\]"),
        ({"discount": 1.0}, "discount must lie in"),
        ({"belief": 3}, "belief must be a brmdp belief"),
    ],
)
def test_bad_settings_of_q_learning(settings, message):
    given = {"belief": brmdp.DirichletBelief.uniform(2, 2), "rewards": None, "discount": 0.9}
    with pytest.raises(INVALID, match=message):
        QLearning(**(given | settings))


def test_bad_transitions_change_nothing():
    admissible = np.array([[True, False], [True, True]])
    belief = brmdp.DirichletBelief(np.ones((2, 2, 2)), admissible=admissible)
    agent = QLearning(belief, None, 0.9, rng=0)
    agent.observe(0, 0, 1, reward=1.0)
    before = {name: array.copy() for name, array in agent.arrays().items()}
    for transition, reward, message in (
        ((2, 0, 0), 1.0, "state must lie in"),
        ((0, 2, 0), 1.0, "action must lie in"),
        ((0, 0, 9), 1.0, "next_state must lie in"),
        ((0, 1, 0), 1.0, "action must be admissible in state 0; got 1"),
        ((0, 0, 0), np.nan, "reward must be a finite number"),
        ((0, 0, 0), 1e140, "lie within ±1e.140; got 1e.140"),
        ((0, 0, 0), None, "reward must be a finite number"),
    ):
        with pytest.raises(INVALID, match=message):
            agent.observe(*transition, reward=reward)
    with pytest.raises(INVALID, match="state must lie in"):
        agent.act(-1)
    for name, array in agent.arrays().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("q", np.zeros((3, 2))),
        ("q", np.full((2, 2), np.nan)),
        ("visits", np.full((2, 2), -1)),
        ("admissible", np.zeros((2, 2), dtype=bool)),
        ("admissible", np.zeros(2)),
        ("numbers", np.array([0.9, 0.1])),
        ("numbers", np.array([2.0, 0.1, 0.5])),
        ("stream", np.array("{}")),
    ],
)
def test_damaged_files_of_q_learning(name, value, tmp_path):
    from brmdp.beliefs.storage import save_arrays

    agent = QLearning(brmdp.DirichletBelief.uniform(2, 2), None, 0.9, rng=0)
    save_arrays(tmp_path / "agent.npz", "QLearning", agent.arrays() | {name: value})
    with pytest.raises(brmdp.CorruptFileError):
        QLearning.load(tmp_path / "agent.npz")
    arrays = agent.arrays()
    del arrays[name]
    save_arrays(tmp_path / "other.npz", "QLearning", arrays)
    with pytest.raises(brmdp.CorruptFileError, match="must hold the arrays"):
        QLearning.load(tmp_path / "other.npz")
