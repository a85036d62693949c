"""Worlds with random rewards: the law, its means, and the Gymnasium environments."""

import copy

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy import stats

import brmdp
from brmdp.envs import OutcomeEnv, bandit, bernoulli_riverswim, riverswim, with_bernoulli_rewards

LAWS = [0.3, {-1.0: 0.5, 2.0: 0.25, 4.0: 0.25}, [[5.0, 0.1], [0.0, 0.9]]]

WORLDS = {
    "bandit": ("brmdp/Bandit-v0", {}),
    "bandit-laws": ("brmdp/Bandit-v0", {"arms": LAWS, "discount": 0.5}),
    "riverswim": ("brmdp/BernoulliRiverSwim-v0", {}),
    "riverswim-3": ("brmdp/BernoulliRiverSwim-v0", {"n": 3, "discount": 0.7}),
}


def made(name, **more):
    world, options = WORLDS[name]
    return gymnasium.make(world, **options, **more)


@pytest.mark.parametrize("name", WORLDS)
def test_gymnasium_accepts_the_environment(name):
    check_env(made(name).unwrapped)
    assert made(name).spec.max_episode_steps is None


def test_specifications_survive_json():
    for name in ("bandit", "riverswim-3"):
        spec = gymnasium.envs.registration.EnvSpec.from_json(made(name).spec.to_json())
        again = gymnasium.make(spec).unwrapped
        np.testing.assert_array_equal(
            again.law.probabilities, made(name).unwrapped.law.probabilities
        )


def test_a_bandit_has_the_means_of_its_arms():
    law = bandit(LAWS, discount=0.5)
    np.testing.assert_allclose(law.mdp.rewards, [[0.3, 1.0, 0.5]])
    assert law.possible_rewards == (-1.0, 0.0, 1.0, 2.0, 4.0, 5.0)
    assert brmdp.solve(law.mdp).values[0] == pytest.approx(2.0)
    assert len(bandit().mdp.rewards[0]) == 10
    assert bandit().mdp.discount == 0.0
    # a chance of zero is no possibility
    assert bandit([0.0, 0.0]).possible_rewards == (0.0,)


def test_the_river_pays_with_the_papers_rewards_as_chances():
    law, river = bernoulli_riverswim(6), riverswim(6)
    np.testing.assert_array_equal(law.mdp.kernel(), river.kernel())
    np.testing.assert_array_equal(law.mdp.rewards, river.rewards)
    by_pair = np.add.reduceat(law.probabilities, law.indptr[:-1])
    np.testing.assert_allclose(by_pair, 1.0)
    paid = np.add.reduceat(law.probabilities * law.rewards, law.indptr[:-1])
    assert paid[0] == pytest.approx(0.005)
    assert paid[-1] == pytest.approx(0.6)
    assert law.possible_rewards == (0.0, 1.0)


@pytest.mark.parametrize("name", WORLDS)
def test_the_table_converts_back_to_the_means(name):
    env = made(name).unwrapped
    again = brmdp.TabularMDP.from_gymnasium(env, env.mdp.discount)
    assert again.pattern.same_as(env.mdp.pattern)
    np.testing.assert_allclose(again.probabilities, env.mdp.probabilities, rtol=0, atol=2e-16)
    np.testing.assert_allclose(
        again.transition_rewards, env.mdp.transition_rewards, rtol=1e-13, atol=1e-15
    )


@pytest.mark.parametrize("name", ["bandit-laws", "riverswim-3"])
def test_frequencies_follow_the_law(name):
    env = made(name).unwrapped
    env.reset(seed=21)
    draws, statistic, freedom = 400, 0.0, 0
    for state in range(env.mdp.n_states):
        for action in range(env.mdp.n_actions):
            seen = {}
            for _ in range(draws):
                env.reset(options={"state": state})
                outcome = env.step(action)[:2]
                seen[outcome] = seen.get(outcome, 0) + 1
            chances = {}
            for p, t, r, _ in env.P[state][action]:
                chances[t, r] = chances.get((t, r), 0.0) + p
            assert all(chances.get(outcome, 0.0) > 0.0 for outcome in seen)
            likely = {outcome: p for outcome, p in chances.items() if p * draws >= 4}
            statistic += sum(
                (seen.get(outcome, 0) - draws * p) ** 2 / (draws * p)
                for outcome, p in likely.items()
            )
            freedom += len(likely) - 1
    assert 1e-4 < stats.chi2.sf(statistic, freedom) < 1 - 1e-4


def test_one_uniform_number_per_step_and_a_seed_determines_everything():
    env = made("riverswim").unwrapped

    def walk(seed):
        env.reset(seed=seed)
        return [env.step(int(k % 3 != 0))[:2] for k in range(300)]

    first = walk(5)
    assert walk(5) == first
    assert walk(6) != first
    env.reset(seed=5)
    twin = copy.deepcopy(env.np_random)
    env.step(1)
    twin.random()
    assert env.np_random.bit_generator.state == twin.bit_generator.state
    assert all(type(reward) is float and type(state) is int for state, reward in first)


def test_text_and_pictures():
    env = OutcomeEnv(bandit([0.0, {2.5: 1.0}]), render_mode="ansi")
    env.reset(seed=1)
    assert env.render() == "a bandit with 2 arms\n[.]\n"
    env.step(1)
    assert env.render() == "a bandit with 2 arms, after arm 1, which paid 2.5\n[.]\n"
    env.reset()
    assert env.render() == "a bandit with 2 arms\n[.]\n"
    river = made("riverswim-3", render_mode="ansi")
    river.reset(options={"state": 2})
    _, reward, *_ = river.step(0)
    assert river.render() == f"state 1, after left, which paid {reward:g}\n S [~] G \n"
    picture = made("bandit", render_mode="rgb_array")
    picture.reset(seed=1)
    assert picture.render().shape[2] == 3


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([], "arms must be a non-empty sequence"),
        (0.5, "arms must be a non-empty sequence"),
        ("01", "arms must be a non-empty sequence"),
        ([1.5], r"arms\[0\] must be a chance in \[0, 1\]"),
        ([0.5, np.nan], r"arms\[1\] must be a chance"),
        ([0.5, None], r"arms\[1\] must be a chance"),
        ([{0.0: 0.5}], r"arms\[0\] must have probabilities that .* sum to one"),
        ([{0.0: 1.5, 1.0: -0.5}], r"arms\[0\] must have probabilities"),
        ([[[1.0, 0.5], [1.0, 0.5]]], r"arms\[0\] must name every reward once"),
        ([[1.0, 0.5]], r"arms\[0\] must map rewards to probabilities"),
    ],
)
def test_bad_arms_are_named(arms, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        bandit(arms)


def test_other_bad_input_is_named():
    with pytest.raises(brmdp.InvalidInputError, match=r"rewards in \[0, 1\].*got -1"):
        with_bernoulli_rewards(brmdp.TabularMDP([[[1.0]]], [[-1.0]], 0.5))
    with pytest.raises(brmdp.InvalidInputError, match="mdp must be a"):
        with_bernoulli_rewards(bandit())
    with pytest.raises(brmdp.InvalidInputError, match="law must be an OutcomeLaw"):
        OutcomeEnv(riverswim(3))
