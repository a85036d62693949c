"""Files from before the belief classes were renamed still load."""

import json

import numpy as np
import pytest

import brmdp
from brmdp import agents
from brmdp.beliefs.storage import FORMER_KINDS, load_arrays, save_arrays
from brmdp.envs import inventory, riverswim

RIVER = riverswim(4)
STOCK = inventory(3, 2, (0.5, 0.3, 0.2))


def dirichlet():
    belief = brmdp.DirichletBelief.uniform(4, 2)
    belief.observe(0, 1, 1)
    return belief, RIVER.rewards


def disturbance():
    belief = brmdp.DisturbanceBelief(STOCK.outcomes)
    belief.observe_disturbance([0, 2, 1])
    return belief, brmdp.DisturbanceRewards(STOCK.disturbance_rewards)


def scenarios():
    other = brmdp.TabularMDP(np.full((4, 2, 4), 0.25), RIVER.rewards, 0.9)
    return brmdp.ScenarioBelief([RIVER, other], [0.4, 0.6]), RIVER.rewards


BELIEFS = {"dirichlet": dirichlet, "disturbance": disturbance, "scenarios": scenarios}


@pytest.mark.parametrize("name", BELIEFS)
def test_beliefs_under_their_former_names(name, tmp_path):
    belief, _ = BELIEFS[name]()
    path = tmp_path / "belief.npz"
    former = FORMER_KINDS[type(belief).__name__]
    assert former.endswith("Posterior")
    save_arrays(path, former, belief.arrays())
    loaded = type(belief).load(path)
    assert type(loaded) is type(belief)
    for key, array in belief.arrays().items():
        np.testing.assert_array_equal(loaded.arrays()[key], array)
    # once saved again, the file has the new name
    loaded.save(path)
    assert load_arrays(path, type(belief).__name__).keys() == belief.arrays().keys()


def test_another_former_name_is_another_kind(tmp_path):
    belief, _ = dirichlet()
    save_arrays(tmp_path / "belief.npz", "ScenarioPosterior", belief.arrays())
    with pytest.raises(
        brmdp.CorruptFileError, match="'ScenarioPosterior', not a 'DirichletBelief'"
    ):
        brmdp.DirichletBelief.load(tmp_path / "belief.npz")


def walked(agent, steps):
    """Actions of an agent that meets the transitions of a fixed stream."""
    rng, state, actions = np.random.default_rng(3), 0, []
    for _ in range(steps):
        actions.append(agent.act(state))
        following = int(rng.choice(np.flatnonzero(agent.belief.mean()[state, actions[-1]])))
        kind = type(agent.belief)
        shock = {"disturbance": 0} if kind is brmdp.DisturbanceBelief else {}
        if shock:
            following = int(STOCK.outcomes[state, actions[-1], 0])
        agent.observe(state, actions[-1], following, **shock)
        state = following
    return actions


@pytest.mark.parametrize("name", BELIEFS)
def test_agents_whose_beliefs_had_former_names(name, tmp_path):
    belief, rewards = BELIEFS[name]()
    agent = agents.fixed_quantile(belief, rewards, 0.9, alpha=0.3, rng=1)
    walked(agent, 12)
    path = tmp_path / "agent.npz"
    arrays = agent.arrays()
    parts = json.loads(str(arrays["parts"]))
    assert parts["belief"] == type(belief).__name__
    parts["belief"] = FORMER_KINDS[parts["belief"]]
    del parts["horizon"]  # files had none then
    save_arrays(path, "Agent", arrays | {"parts": np.array(json.dumps(parts))})
    loaded = agents.Agent.load(path)
    assert type(loaded.belief) is type(belief)
    assert loaded.horizon is None
    assert walked(loaded, 12) == walked(agent, 12)


def test_an_unknown_belief_is_no_former_one(tmp_path):
    belief, rewards = dirichlet()
    agent = agents.posterior_mean(belief, rewards, 0.9, rng=1)
    arrays = agent.arrays()
    parts = json.loads(str(arrays["parts"])) | {"belief": "GammaPosterior"}
    path = tmp_path / "agent.npz"
    save_arrays(path, "Agent", arrays | {"parts": np.array(json.dumps(parts))})
    with pytest.raises(brmdp.CorruptFileError, match="does not describe an agent"):
        agents.Agent.load(path)
