"""The continuous agent: its fits, bad input, files, and equal bits for any number of threads."""

import copy
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass

import jax
import numpy as np
import pytest

import brmdp
from brmdp import ConvergenceError, CorruptFileError, InvalidInputError, agents, continuous
from brmdp.beliefs.storage import load_arrays, save_arrays
from brmdp.continuous import (
    ContinuousAgent,
    ContinuousFrozenLakeEnv,
    FittedQ,
    LakeBelief,
    LakeModel,
    UncertaintyLevel,
)
from brmdp.continuous import agent as agent_module
from brmdp.continuous.fitted_q import targets
from drifting import module as drifting
from interruptions import StopAt
from oracles import continuous_targets

pytestmark = pytest.mark.long

DISCOUNT = 0.8
SMALL = FittedQ(
    hidden=(16,),
    states=8,
    iterations=2,
    gradient_steps=3,
    first_rounds=3,
    draws=60,
    replay_capacity=30,
)
COEFFICIENT = 20.0

PRESETS = {
    "aq-brmdp": lambda *parts, **more: continuous.aq_brmdp(
        *parts, coefficient=COEFFICIENT, epsilon=1e-3, **more
    ),
    "brmdp": lambda *parts, **more: continuous.fixed_quantile(
        *parts, alpha=0.3, coefficient=COEFFICIENT, **more
    ),
    "continuing-psrl": continuous.continuing_psrl,
    "posterior-mean": continuous.posterior_mean,
}


def preset(name, *, rng=5, **options):
    return PRESETS[name](
        LakeBelief(), LakeModel(), DISCOUNT, **({"fitting": SMALL, "rng": rng} | options)
    )


class Walk:
    """An agent in the lake that can be run a few steps at a time."""

    def __init__(self, agent, seed=3):
        self.agent = agent
        self.env = ContinuousFrozenLakeEnv()
        self.state, _ = self.env.reset(seed=seed)
        self.record = []

    def on(self, steps):
        for _ in range(steps):
            action = self.agent.act(self.state)
            following, _, _, _, info = self.env.step(action)
            self.agent.observe(self.state, action, following, info)
            self.record.append((*self.state, action, self.agent.episode))
            self.state = following
        return self.record


def draws_stream(agent):
    """Where the agent's draws come from: the stream of the measure, if it has one."""
    return getattr(
        getattr(agent.risk, "method", agent.risk), "rng", agent._settled()[1].streams["own draws"]
    )


def contents(agent):
    """The full state of an agent, as bytes."""
    return {
        name: (array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes())
        for name, array in agent.arrays().items()
    }


# --- what it fits ---------------------------------------------------------------------------------


class Noted:
    """Records the arguments of ``fit``."""

    def __init__(self, monkeypatch):
        self.calls = []
        monkeypatch.setattr(agent_module, "fit", self)

    def __call__(self, model, settings, learner, states, draws, ranks, discount):
        self.calls.append((learner, states, draws, ranks))
        return FIT(model, settings, learner, states, draws, ranks, discount)


FIT = agent_module.fit


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_learns_and_begins_pseudo_episodes(name):
    walk = Walk(preset(name))
    record = walk.on(25)
    agent = walk.agent
    assert agent.episode == record[-1][-1] > 2
    assert agent.progress.steps == 25
    assert agent.progress.visits.sum() == 25
    # one transition may be out of the goal, and one blocked in a hole
    assert (
        20
        <= agent._settled()[1].latest.slip.sum() - 3 + agent._settled()[1].latest.mobility.sum() - 2
        <= 25
    )
    assert agent.q_values([(0.5, 0.5)]).shape == (1, 4)
    assert agent.greedy(np.empty((0, 2))).shape == (0,)
    report = agent.report
    assert report.episode == agent.episode
    assert 0.0 < report.residual < 10.0
    if name in ("aq-brmdp", "brmdp"):
        assert report.levels.shape == (15, 4)
        assert (report.levels >= 0.2).all()
        assert (report.levels <= 0.95).all()
    else:
        assert report.levels is None
        assert agent.levels([(0.5, 0.5)]) is None
    assert (report.uncertainty is None) == (name != "aq-brmdp")
    assert name.split("-")[0] in ("aq", "brmdp") or "Quantile" not in repr(agent)


@pytest.mark.parametrize("name", PRESETS)
def test_draws_budgets_and_ranks_are_the_papers(name, monkeypatch):
    noted = Noted(monkeypatch)
    walk = Walk(preset(name))
    walk.on(12)
    del noted.calls[:]
    agent = walk.agent
    while not agent._settled()[1].stale:
        walk.on(1)
    previous, belief = agent._record.plan.learner.network, agent._settled()[1].latest.copy()
    stream = agent_module.stream_from_state(agent_module.stream_state(draws_stream(agent)))
    walk.on(1)
    [(_, states, draws, ranks)] = noted.calls
    expected = belief.sample(1 if name == "continuing-psrl" else 60, rng=stream)
    for found, wanted in zip(draws, expected, strict=True):
        np.testing.assert_array_equal(found, wanted.astype(np.float32))
    assert states.shape == (2, 8, 2)
    visited = np.float32([record[:2] for record in walk.record])
    assert all((state == visited).all(axis=1).any() for state in states[:, :4].reshape(-1, 2))
    assert not any((state == visited).all(axis=1).any() for state in states[:, 4:].reshape(-1, 2))
    if name not in ("aq-brmdp", "brmdp"):
        assert ranks is None
        return
    flat = states.reshape(-1, 2)
    levels = np.full((16, 4), 0.3)
    if name == "aq-brmdp":
        levels = levels_of_the_paper(agent, previous, draws, flat)
        assert ((levels > 0.2) & (levels < 0.95)).mean() > 0.3
        np.testing.assert_allclose(agent.levels(flat), levels, rtol=1e-3)
    wanted = brmdp.MonteCarlo(COEFFICIENT, cap=60).budget(levels)
    assert 10 < wanted.min() < wanted.max() if name == "aq-brmdp" else wanted.max() < 60
    # a level that differs in the last bits may be rounded to another rank
    assert (abs(ranks.count.reshape(16, 4) - wanted) > 0).mean() < 0.02
    ceilings = np.ceil(ranks.count.reshape(16, 4) * levels - 1e-9)
    assert (abs(ranks.rank.reshape(16, 4) - ceilings) > 0).mean() < 0.02


def levels_of_the_paper(agent, previous, draws, states):
    """From the standard deviations of the targets of the previous network, pair by pair."""

    def unsure(places):
        # sixteen at a time, for which it is compiled already
        padded = np.float32(places)[np.arange(-(-len(places) // 16) * 16) % len(places)].reshape(
            -1, 16, 2
        )
        sampled = [
            np.asarray(targets(agent.model, previous, some, draws, DISCOUNT)) for some in padded
        ]
        return np.concatenate(sampled)[: len(places)].astype(np.float64).std(axis=2)

    centres = unsure(agent.model.centres)
    return np.array(
        [
            [
                continuous_targets.level(
                    agent.episode, u, centres, bool(known), 10.0, 0.2, 0.95, 1e-3
                )
                for u in row
            ]
            for row, known in zip(unsure(states), agent.model.known(states), strict=True)
        ]
    )


class Forgetful:
    """Restarts the count of steps, and forgets to answer."""

    def ends(self, progress, *, rng):
        progress.steps_in_episode = 0


def test_a_restart_rule_must_answer_and_cannot_spoil_the_agent():
    agent = preset("continuing-psrl", restart=Forgetful())
    with pytest.raises(InvalidInputError, match=r"Forgetful\.ends must return True or False; got"):
        Walk(agent).on(1)
    assert agent.progress.steps == 0


def test_early_pseudo_episodes_are_fitted_longer(monkeypatch):
    noted = Noted(monkeypatch)
    rounds = []
    agent = preset("continuing-psrl", restart=agents.EveryStep())
    for _ in range(4):
        before = len(noted.calls)
        Walk(agent).on(1)
        rounds.append(len(noted.calls) - before)
        assert agent.report.iterations == SMALL.iterations * rounds[-1]
    assert rounds == [3, 2, 1, 1]


def test_all_presets_share_their_luck():
    """A seed gives all the same first network, training states and ends of pseudo-episodes."""
    streams = []
    for name in PRESETS:
        stored = preset(name).arrays()
        streams.append(
            {
                key: stored[key].tobytes()
                for key in ("learner.0", "training_stream", "restart_stream")
            }
        )
    assert all(found == streams[0] for found in streams)
    assert preset("brmdp", rng=6).arrays()["learner.0"].tobytes() != streams[0]["learner.0"]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_and_the_same_parts_share_their_luck(name):
    draws = np.random.default_rng(8).spawn(5)[4]
    level = {"aq-brmdp": 0.2, "brmdp": 0.3}.get(name)
    risk = brmdp.PosteriorSample(rng=draws) if name == "continuing-psrl" else brmdp.Mean()
    if level is not None:
        risk = brmdp.Quantile(level, brmdp.MonteCarlo(COEFFICIENT, cap=SMALL.draws, rng=draws))
    by_hand = ContinuousAgent(
        *(LakeBelief(), LakeModel(), DISCOUNT),
        risk=risk,
        restart=agents.GeometricLength(DISCOUNT),
        schedule=continuous.UncertaintyLevel(10.0, epsilon=1e-3) if name == "aq-brmdp" else None,
        fitting=SMALL,
        rng=8,
    )
    walks = Walk(preset(name, rng=8)), Walk(by_hand)
    for walk in walks:
        walk.on(9)
    assert walks[0].record == walks[1].record
    assert contents(walks[0].agent) == contents(walks[1].agent)


def test_replay_forgets_the_oldest(monkeypatch):
    noted = Noted(monkeypatch)
    walk = Walk(preset("continuing-psrl", restart=agents.FixedLength(70)))
    walk.on(71)
    recent = np.float32([record[:2] for record in walk.record[40:70]])
    replayed = noted.calls[-1][1][:, :4].reshape(-1, 2)
    assert all((state == recent).all(axis=1).any() for state in replayed)


def test_the_rule_of_the_levels_is_fixed_for_the_pseudo_episode():
    walk = Walk(preset("aq-brmdp", restart=agents.FixedLength(6)))
    walk.on(7)
    places = np.random.default_rng(0).uniform(0, 4, (16, 2))
    begun = walk.agent.levels(places)
    walk.on(4)
    np.testing.assert_array_equal(walk.agent.levels(places), begun)
    walk.on(4)
    assert (walk.agent.levels(places) != begun).any()


def test_looking_changes_nothing():
    quiet, watched = Walk(preset("aq-brmdp")), Walk(preset("aq-brmdp"))
    quiet.on(12)
    for _ in range(12):
        watched.on(1)
        if not watched.agent._settled()[1].stale:
            watched.agent.levels([(1.2, 3.4)])
            watched.agent.explain((1.2, 3.4))
            watched.agent.q_values([(1.2, 3.4)])
            assert watched.agent.report is not None
    assert quiet.record == watched.record
    assert contents(quiet.agent) == contents(watched.agent)


def test_a_policy_stays_as_it_is():
    walk = Walk(preset("continuing-psrl", restart=agents.EveryStep()))
    walk.on(2)
    places = np.random.default_rng(0).uniform(0, 4, (9, 2))
    policy = walk.agent.policy_preferences()
    values = policy(places)
    np.testing.assert_array_equal(values, walk.agent.policy_preferences()(places) * 0 + values)
    walk.on(2)
    np.testing.assert_array_equal(policy(places), values)
    assert (walk.agent.q_values(places) != values).any()
    np.testing.assert_array_equal(policy.actions(places), values.argmax(axis=1))


def test_explain():
    walk = Walk(preset("aq-brmdp"))
    walk.on(8)
    state = (2.4, 1.7)
    reports = walk.agent.explain(state)
    places = np.tile(np.float32(state), (16, 1))
    fitted = walk.agent._record.plan
    sampled = np.asarray(
        targets(walk.agent.model, fitted.learner.network, places, fitted.plan.draws, DISCOUNT)
    )[0]
    levels = walk.agent.levels([state])[0]
    assert [report.action for report in reports] == [0, 1, 2, 3]
    assert sum(report.chosen for report in reports) == 1
    assert reports[walk.agent.act(state)].chosen
    for a, report in enumerate(reports):
        assert report.value == pytest.approx(walk.agent.q_values([state])[0, a], rel=1e-5)
        assert report.level == report.quantile_level == pytest.approx(levels[a], rel=1e-4)
        assert report.mean == pytest.approx(sampled[a].mean(), rel=1e-5)
        assert report.uncertainty == pytest.approx(sampled[a].std(), rel=1e-3)
        assert report.quantile == np.sort(sampled[a])[int(np.ceil(60 * report.level - 1e-9)) - 1]
    with pytest.raises(
        InvalidInputError, match="quantile_level must lie strictly between 0 and 1; got 2"
    ):
        walk.agent.explain(state, quantile_level=2)
    lower = walk.agent.explain(state, quantile_level=0.05)
    assert all(report.quantile == np.sort(sampled[report.action])[2] for report in lower)
    assert preset("continuing-psrl").explain(state)[0].level is None


# --- bad input ------------------------------------------------------------------------------------


def test_a_network_that_diverges_stops_with_a_remedy():
    walk = Walk(preset("continuing-psrl", restart=agents.EveryStep()))
    walk.on(2)
    # as a learning rate that is much too large would have left it
    fitted = walk.agent._record.plan
    huge = jax.tree.map(lambda leaf: np.float32(3e37) * np.asarray(leaf), fitted.learner.network)
    learner = fitted.learner._replace(network=huge)
    walk.agent._record.plan = dataclasses.replace(fitted, learner=learner)
    before = contents(walk.agent)
    with pytest.raises(
        ConvergenceError,
        match=r"NaN in pseudo-episode 3.*Lower the learning_rate \(now 0.003\) or gradient_steps",
    ):
        walk.on(1)
    assert contents(walk.agent) == before


@dataclass(frozen=True)
class Broken(LakeModel):
    """One of the draws makes no sense."""

    def targets(self, value, states, draws, discount):
        return super().targets(value, states, draws, discount).at[..., 7].set(np.nan)


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "continuing-psrl"])
def test_a_model_with_nan_stops_the_training(name):
    agent = PRESETS[name](LakeBelief(), Broken(), DISCOUNT, fitting=SMALL, rng=5)
    with pytest.raises(
        ConvergenceError, match=r"became infinite or NaN in pseudo-episode 1.*targets in the model"
    ):
        agent.act((0.5, 0.5))
    assert agent.episode == 0


@pytest.mark.slow
def test_a_learning_rate_that_is_too_large_stops_the_training():
    agent = preset("continuing-psrl", fitting=FittedQ(learning_rate=1e30))
    with pytest.raises(
        ConvergenceError, match=r"NaN in pseudo-episode 1.*Lower the learning_rate \(now 1e\+30\)"
    ):
        agent.act((0.5, 0.5))
    assert agent.episode == 0
    with pytest.raises(InvalidInputError, match="the agent has not planned yet"):
        agent.report  # noqa: B018


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ((4.2, 1.0), r"state must lie in \[0, 4\]²; got \(4.2, 1.0\)"),
        ((-0.1, 1.0), r"state must lie in \[0, 4\]²"),
        ((np.nan, 1.0), "state must be finite"),
        ((1.0, 1.0, 1.0), r"state must be one state of 2 numbers; got shape \(3,\)"),
        (3, r"state must be one state of 2 numbers; got shape \(\)"),
        (((1.0, 1.0),), r"state must be one state of 2 numbers; got shape \(1, 2\)"),
        ("here", "state must be an array of real numbers"),
    ],
)
def test_states_outside_the_map(state, message):
    agent = preset("continuing-psrl")
    for call in (agent.act, agent.explain, lambda s: agent.observe(s, 0, (0.5, 0.5), GOOD)):
        with pytest.raises(InvalidInputError, match=message):
            call(state)
    with pytest.raises(InvalidInputError, match="next_state"):
        agent.observe((0.5, 0.5), 0, state, GOOD)
    with pytest.raises(InvalidInputError, match="states"):
        agent.q_values([state] if isinstance(state, tuple) else state)
    assert agent.episode == agent.progress.steps == 0


GOOD = {"mode": 0, "mobile": None, "length": 0.9}


@pytest.mark.parametrize(
    ("action", "primitives", "message"),
    [
        (4, GOOD, "action must lie in 0..3; got 4"),
        (1.0, GOOD, r"action must be an integer in 0..3; got 1.0"),
        (0, None, "primitives must be a mapping"),
        (0, {"mode": 0, "mobile": None}, "'length' is missing"),
        (0, GOOD | {"mode": None}, "primitives"),
        (0, GOOD | {"length": 0.3}, "length"),
    ],
)
def test_transitions_that_cannot_be(action, primitives, message):
    agent = preset("continuing-psrl")
    before = contents(agent)
    with pytest.raises(InvalidInputError, match=message):
        agent.observe((0.5, 0.5), action, (0.5, 1.4), primitives)
    assert contents(agent) == before


QUANTILE = brmdp.Quantile(0.2, brmdp.MonteCarlo(cap=60))


class Unhashable(LakeModel):
    __hash__ = None


@dataclass(frozen=True)
class Transposed(LakeModel):
    def targets(self, value, states, draws, discount):
        return super().targets(value, states, draws, discount).swapaxes(1, 2)


class Sparing(LakeBelief):
    """Returns fewer draws than requested."""

    def sample(self, n, *, rng):
        return super().sample(n if n < 4 else n // 4, rng=rng)

    def copy(self):
        return Sparing()


def test_a_belief_that_gives_fewer_draws():
    agent = PRESETS["brmdp"](Sparing(), LakeModel(), DISCOUNT, fitting=SMALL)
    with pytest.raises(
        InvalidInputError, match=r"belief\.sample\(60\) must return 60 draws; got 15"
    ):
        agent.act((0.5, 0.5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"belief": LakeBelief}, "belief must have the methods of a ParametricBelief"),
        ({"belief": 3}, "belief must have the methods of a ParametricBelief; got 3"),
        ({"model": Unhashable()}, "model must be hashable"),
        (
            {"model": Transposed()},
            r"model.targets must have shape \(15, 4, 2\) .*; got \(15, 2, 4\)",
        ),
        ({"model": "lake"}, "model must have the members of a ParametricModel; got 'lake', which"),
        ({"discount": 1.0}, r"discount must lie in \[0, 1\); got 1.0"),
        ({"risk": brmdp.Quantile(0.2)}, "risk must use the method MonteCarlo"),
        ({"risk": brmdp.Quantile(0.2, brmdp.MonteCarlo(cap=60, reuse=True))}, "without reuse"),
        (
            {"risk": brmdp.Quantile([[0.2, 0.3]], brmdp.MonteCarlo(cap=60))},
            "a single level for all pairs",
        ),
        (
            {"risk": brmdp.Quantile(0.2, brmdp.MonteCarlo(cap=61))},
            "more than the 60 draws .* got up to 61",
        ),
        (
            {"risk": brmdp.Quantile(0.2, brmdp.MonteCarlo(samples=70))},
            "more than the 60 draws .* got up to 70",
        ),
        (
            {"risk": brmdp.CVaR(0.2)},
            r"risk must be a Quantile, Mean\(\) or PosteriorSample\(\); got CVaR",
        ),
        ({"schedule": agents.AdaptiveLevel(5.0)}, "schedule must be an UncertaintyLevel"),
        (
            {"schedule": UncertaintyLevel(5.0), "risk": brmdp.Mean()},
            "schedule must be an UncertaintyLevel, and risk a Quantile",
        ),
        ({"restart": agents.EveryStep}, "restart must be an object with a method ends"),
        ({"fitting": {"states": 3}}, "fitting must be a FittedQ"),
        ({"rng": "seed"}, "rng must be"),
    ],
)
def test_parts_that_do_not_fit(change, message):
    parts = {
        "belief": LakeBelief(),
        "model": LakeModel(),
        "discount": DISCOUNT,
        "risk": QUANTILE,
        "restart": agents.EveryStep(),
        "fitting": SMALL,
    }
    with pytest.raises(InvalidInputError, match=message):
        ContinuousAgent(**(parts | change))


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_saved_and_loaded_it_goes_on_bit_for_bit(name, tmp_path):
    whole, first = Walk(preset(name)), Walk(preset(name))
    whole.on(44)
    for _ in range(2):
        first.on(22)
        first.agent.save(tmp_path / "agent")
        loaded = ContinuousAgent.load(tmp_path / "agent")
        assert contents(loaded) == contents(first.agent)
        assert (loaded.schedule, loaded.restart, loaded.fitting) == (
            first.agent.schedule,
            first.agent.restart,
            SMALL,
        )
        assert loaded.report.residual == first.agent.report.residual
        first.agent = loaded
    assert first.record == whole.record
    assert contents(first.agent) == contents(whole.agent)
    place = [(2.2, 0.7)]
    np.testing.assert_array_equal(first.agent.q_values(place), whole.agent.q_values(place))
    if name == "aq-brmdp":
        np.testing.assert_array_equal(first.agent.levels(place), whole.agent.levels(place))


def test_an_agent_that_has_not_planned_yet_can_be_saved(tmp_path):
    whole = Walk(preset("aq-brmdp"))
    preset("aq-brmdp").save(tmp_path / "agent")
    loaded = Walk(ContinuousAgent.load(tmp_path / "agent"))
    assert loaded.on(5) == whole.on(5)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "agent"
    walk = Walk(preset("aq-brmdp"))
    walk.on(9)
    walk.agent.save(path)
    return path


DAMAGE = {
    "parts": lambda a: np.array("{"),
    "discount": lambda a: np.array(1.5),
    "counters": lambda a: a - 100,
    "visits": lambda a: a + 1,
    "visited": lambda a: a[:1],
    "learner.0": lambda a: a[:3],
    "learner.1": lambda a: a * np.nan,
    "previous.0": lambda a: a.astype(np.float64),
    "draws.2": lambda a: a[:7],
    "uncertainty": lambda a: -a - 1.0,
    "first_step": lambda a: a + 1000,
    "training_stream": lambda a: np.array("{}"),
    "latest.slip": lambda a: -a,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_files_that_make_no_sense(name, saved, tmp_path):
    arrays = load_arrays(saved, "ContinuousAgent")
    for changed in (
        arrays | {name: DAMAGE[name](arrays[name])},
        {k: v for k, v in arrays.items() if k != name},
    ):
        save_arrays(tmp_path / "bad", "ContinuousAgent", changed)
        with pytest.raises(CorruptFileError):
            ContinuousAgent.load(tmp_path / "bad")


def test_files_of_other_kinds_and_damaged_ones(saved, tmp_path):
    LakeBelief().save(tmp_path / "posterior")
    with pytest.raises(CorruptFileError, match="holds a 'LakeBelief', not a 'ContinuousAgent'"):
        ContinuousAgent.load(tmp_path / "posterior")
    content = bytearray(saved.read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "flipped").write_bytes(content)
    with pytest.raises(CorruptFileError):
        ContinuousAgent.load(tmp_path / "flipped")


def test_files_from_before_the_belief_was_renamed(saved, tmp_path):
    belief = LakeBelief((2.0, 1.0, 3.0), (1.0, 4.0), (5.0, 0.5))
    save_arrays(tmp_path / "belief", "LakePosterior", belief.arrays())
    loaded = LakeBelief.load(tmp_path / "belief")
    for name, array in belief.arrays().items():
        np.testing.assert_array_equal(loaded.arrays()[name], array)
    arrays = load_arrays(saved, "ContinuousAgent")
    parts = json.loads(str(arrays["parts"]))
    assert parts["belief"] == {"type": "LakeBelief"}
    former = json.dumps(parts | {"belief": {"type": "LakePosterior"}})
    save_arrays(tmp_path / "agent", "ContinuousAgent", arrays | {"parts": np.array(former)})
    renamed = ContinuousAgent.load(tmp_path / "agent")
    assert contents(renamed) == contents(ContinuousAgent.load(saved))


# --- interruptions --------------------------------------------------------------------------------


def test_a_call_that_is_stopped_at_some_moment_happened_or_did_not():
    """As for tabular agents, whose tests try every moment."""
    walk = Walk(preset("aq-brmdp", restart=agents.FixedLength(4)))
    walk.on(8)
    original, state = walk.agent, np.array(walk.state)
    following, _, _, _, info = walk.env.step(1)
    calls = {
        "act": (lambda agent: agent.act(state), 199),
        "observe": (lambda agent: agent.observe(state, 1, following, info), 67),
    }
    before = contents(original)
    for name, (call, step) in calls.items():
        whole = copy.deepcopy(original)
        call(whole)
        after = contents(whole)
        moment = 0
        while True:
            agent = copy.deepcopy(original)
            if not StopAt(moment).run(lambda agent=agent, call=call: call(agent)):
                break
            found = contents(agent)
            assert found in (before, after), name
            if found == before:
                call(agent)
                assert contents(agent) == after
            moment += step
        assert moment > 2 * step


# --- another model --------------------------------------------------------------------------------


def drifting_agent(restart=None):
    fitting = FittedQ(
        hidden=(8,), states=8, iterations=2, gradient_steps=4, first_rounds=10, draws=40
    )
    return continuous.aq_brmdp(
        drifting.DriftBelief(),
        drifting.DriftModel(),
        drifting.DISCOUNT,
        delta=0.5,
        coefficient=20.0,
        fitting=fitting,
        restart=restart,
        rng=1,
    )


class EveryThird:
    def ends(self, progress, rng):
        return progress.steps_in_episode == 3


def test_a_model_and_a_belief_of_ones_own(tmp_path):
    agent, rng, state, inside = (
        drifting_agent(EveryThird()),
        np.random.default_rng(2),
        np.array([0.9]),
        0,
    )
    for _ in range(24):
        action = agent.act(state)
        following = np.clip(
            state + drifting.PUSHES[action] + drifting.CURRENT + 0.1 * rng.normal(size=1), -1, 1
        )
        agent.observe(state, action, following)
        state = following
        inside += abs(state[0]) < 1.0
    assert agent.episode == 8
    assert agent._settled()[1].latest.precision == pytest.approx(25 + 100 * inside)
    assert agent.report.levels.shape == (5, 2)
    agent.save(tmp_path / "agent")
    with pytest.raises(
        InvalidInputError, match=r"belief was a DriftBelief.*pass it as load\(path, belief=…\)"
    ):
        ContinuousAgent.load(tmp_path / "agent")
    own = {"belief": drifting.DriftBelief, "model": drifting.DriftModel(), "restart": EveryThird()}
    with pytest.raises(InvalidInputError, match="model was a DriftModel"):
        ContinuousAgent.load(tmp_path / "agent", belief=drifting.DriftBelief)
    loaded = ContinuousAgent.load(tmp_path / "agent", **own)
    assert contents(loaded) == contents(agent)
    assert loaded.act([0.2]) == agent.act([0.2])
    with pytest.raises(InvalidInputError, match="lie in"):
        agent.act([1.2])


# --- installation and threads ---------------------------------------------------------------------


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_without_jax_the_rest_works_and_the_extra_is_named():
    code = """
import sys
sys.modules["jax"] = None
import brmdp, brmdp.continuous, brmdp.continuous.environment
import brmdp.continuous.belief, brmdp.continuous.oracle
from brmdp.continuous import ContinuousFrozenLakeEnv, LakeBelief, optimal_values
try:
    from brmdp.continuous import aq_brmdp
except brmdp.ExperimentError as error:
    print(error)
"""
    assert run(code) == ["jax is missing; install it with: pip install 'brmdp[continuous]'"]


def test_everything_exported_exists_and_is_documented():
    assert dir(continuous) == sorted(continuous.__all__)
    for name in continuous.__all__:
        assert getattr(continuous, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        continuous.nothing  # noqa: B018


def digest(name):
    """Digest of an agent after some pseudo-episodes, in the lake or in the example.

    The example compiles faster, and its batches are so large that XLA would split their sums among
    threads.
    """
    if name == "example":
        parts = (drifting.DriftBelief(), drifting.DriftModel(), drifting.DISCOUNT)
        large = FittedQ(states=4096, iterations=2, gradient_steps=4, first_rounds=1)
        agent = continuous.continuing_psrl(*parts, fitting=large, restart=agents.EveryStep(), rng=0)
    else:
        parts = (LakeBelief(), LakeModel(), DISCOUNT)
        agent = getattr(continuous, name)(*parts, restart=agents.EveryStep(), rng=0)
    for state in agent.model.centres[:4]:
        agent.observe(state, agent.act(state), state, GOOD)
    return hashlib.sha256(repr(contents(agent)).encode()).hexdigest()


@pytest.mark.parametrize(
    "name",
    [
        "example",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("continuing_psrl", "aq_brmdp")),
    ],
)
def test_threads_and_processors_change_no_bit(name):
    code = f"""
import os, sys
os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})
sys.path[:0] = {[os.path.dirname(__file__), os.path.dirname(os.path.dirname(__file__))]!r}
from test_continuous_agent import digest
print(digest({name!r}))
"""
    here = digest(name)
    assert run(code, NPROC="8", OMP_NUM_THREADS="1") == [here]
    if name != "example":
        assert run(code.replace("os.sched", "# os.sched"), OMP_NUM_THREADS="3") == [here]


def test_a_network_that_is_described_but_not_stored_is_refused_before_it_is_made():
    from brmdp.continuous.agent import _check_network
    from brmdp.continuous.settings import FittedQ

    stored = {
        str(i): np.zeros(shape)
        for i, shape in enumerate([(5, 8), (8,), (8, 4), (4,), (4, 3), (3,)])
    }
    _check_network(FittedQ(hidden=(8, 4)), stored)
    for hidden in ((10**9,), (8, 10**6), (4, 8), (8, 8, 4)):
        with pytest.raises(brmdp.InvalidInputError, match="the network must have hidden layers"):
            _check_network(FittedQ(hidden=hidden), stored)
