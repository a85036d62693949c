"""Saved agents: N steps, save, load and N more are 2N steps, bit for bit.

Any damage is a CorruptFileError.
"""

import json
import os

import numpy as np
import pytest

import brmdp
import problems
from brmdp import agents
from brmdp._streams import stream_from_state, stream_state
from brmdp.beliefs.storage import load_arrays, save_arrays
from brmdp.envs import InventoryEnv, TabularEnv, frozenlake, riverswim
from problems import OPTIMISTS, presets_with

RIVER = riverswim(6)
LAKE = frozenlake(0.9)

METHODS = {
    "exact": lambda: "exact",
    "saddlepoint": lambda: "saddlepoint",
    "monte-carlo": lambda: brmdp.MonteCarlo(5.0, cap=60),
    "monte-carlo-reused": lambda: brmdp.MonteCarlo(5.0, cap=60, reuse=True),
    "monte-carlo-samples": lambda: brmdp.MonteCarlo(samples=17, reuse=True),
}

PRESETS = presets_with(METHODS)
EVERY_PRESET = PRESETS | OPTIMISTS

RESTARTS = {
    "geometric": agents.GeometricLength(0.8),
    "every step": agents.EveryStep(),
    "fixed length": agents.FixedLength(4),
    "visit doubling": agents.VisitDoubling(),
}


def preset(name, mdp, *, rng=5, restart=None):
    options = (
        {"delta": 5.0}
        if name.startswith("aq-brmdp")
        else {"alpha": 0.3}
        if name.startswith("brmdp")
        else {}
    )
    belief = brmdp.DirichletBelief.uniform(mdp.n_states, mdp.n_actions)
    return EVERY_PRESET[name](
        belief, mdp.rewards, mdp.discount, rng=rng, restart=restart, **options
    )


def contents(agent):
    """The full state of an agent, as bytes."""
    return {
        name: (array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes())
        for name, array in agent.arrays().items()
    }


def interact(agent, env, state, steps, interrupt=None):
    """Transitions, pseudo-episodes, policies and levels of ``steps`` steps.

    ``interrupt(agent)`` returns the agent to continue with. The environment's state lives outside
    the agent and is not touched.
    """
    interrupt = interrupt or (lambda agent: agent)
    record = []
    for _ in range(steps):
        agent = interrupt(agent)
        action = agent.act(state)
        agent = interrupt(agent)
        following, _, _, _, info = env.step(action)
        assert agent.act(state) == action
        levels = None if agent.levels is None else agent.levels.tobytes()
        agent.observe(state, action, following, disturbance=info.get("disturbance"))
        record.append(
            (state, action, following, agent.episode, agent.belief.mean_entries().tobytes(), levels)
        )
        state = following
    agent = interrupt(agent)
    return record, agent, state


def started(mdp, seed=8):
    env = TabularEnv(mdp)
    state, _ = env.reset(seed=seed)
    return env, state


class Interruptions:
    """At random moments the agent is saved, dropped and loaded, or rebuilt from its arrays."""

    def __init__(self, folder, seed, often=0.15, **parts):
        self.path = folder / "agent.npz"
        self.rng = np.random.default_rng(seed)
        self.often = often
        self.parts = parts
        self.moments = 0
        self.saved = 0

    def __call__(self, agent):
        self.moments += 1
        ticket = self.rng.random()
        if self.moments == 1 or ticket < self.often:  # always before the first action
            before = contents(agent)
            agent.save(self.path)
            agent = agents.Agent.load(self.path, **self.parts)
            assert contents(agent) == before
            self.saved += 1
        elif ticket < 2 * self.often:
            arrays = {name: array.copy() for name, array in agent.arrays().items()}
            agent = agents.Agent.from_arrays(arrays, "memory", **self.parts)
        return agent


# --- N + N = 2N -----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("restart", RESTARTS)
@pytest.mark.parametrize("name", PRESETS)
def test_interruptions_at_random_moments_change_nothing(name, restart, tmp_path):
    """Also before the first action, between acting and observing, and right after a restart."""
    rule = RESTARTS[restart]
    whole, agent, _ = interact(preset(name, RIVER, restart=rule), *started(RIVER), 25)
    interruptions = Interruptions(tmp_path, seed=len(name))
    parts, twin, _ = interact(preset(name, RIVER, restart=rule), *started(RIVER), 25, interruptions)
    assert parts == whole
    assert contents(twin) == contents(agent)
    assert interruptions.saved >= 3
    if restart == "every step":
        assert agent.episode == 25, "every interruption after observing came right after a decision"


@pytest.mark.parametrize("moment", ["before acting", "between acting and observing"])
@pytest.mark.parametrize(
    "name", ["aq-brmdp/exact", "aq-brmdp/monte-carlo-reused", "continuing-psrl"]
)
def test_an_interruption_at_every_single_moment_changes_nothing(name, moment, tmp_path):
    """Each step of a run is the place of the only interruption of another run."""
    steps = 30
    whole, agent, _ = interact(preset(name, RIVER), *started(RIVER), steps)
    assert agent.episode > 2
    path = tmp_path / "agent.npz"
    for place in range(0, steps, 3):
        moments = iter(range(3 * steps))

        def once(agent, moments=moments, wanted=2 * place + (moment != "before acting")):
            if next(moments) != wanted:
                return agent
            agent.save(path)
            return agents.Agent.load(path)

        parts, twin, _ = interact(preset(name, RIVER), *started(RIVER), steps, once)
        assert parts == whole
        assert contents(twin) == contents(agent)


@pytest.mark.parametrize("name", EVERY_PRESET)
def test_n_steps_and_n_more_are_2n_steps(name, tmp_path):
    path, n = tmp_path / "agent.npz", 40
    whole, agent, _ = interact(preset(name, LAKE), *started(LAKE), 2 * n)
    env, state = started(LAKE)
    first, half, state = interact(preset(name, LAKE), env, state, n)
    half.save(path)
    del half
    second, twin, _ = interact(agents.Agent.load(path), env, state, n)
    assert first + second == whole
    assert contents(twin) == contents(agent)
    assert len({episode for *_, episode, _, _ in second}) > 3


@pytest.mark.parametrize("name", ["dense-1", "sparse-2", "inadmissible-3", "scenarios-5"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: {"risk": brmdp.Mean()},
        lambda: {"risk": brmdp.CVaR(0.3)},
        lambda: {"risk": brmdp.CVaR(0.3), "schedule": agents.AdaptiveLevel(1.0, 0.1)},
        lambda: {"risk": brmdp.PosteriorSample(rng=1)},
        lambda: {
            "risk": brmdp.Quantile(0.5, brmdp.MonteCarlo(samples=7, rng=1)),
            "schedule": agents.FixedLevel(0.4),
        },
    ],
    ids=["mean", "cvar", "cvar-adaptive", "psrl", "monte-carlo"],
)
def test_any_belief_and_measure_can_be_interrupted(name, make, tmp_path):
    case = problems.problem(name)
    truth = brmdp.TabularMDP(
        case.belief.sample(1, rng=3)[0], case.rewards, case.discount, admissible=case.admissible
    )

    def run(interruptions):
        agent = agents.Agent(
            *(case.belief, case.rewards, case.discount),
            restart=agents.GeometricLength(0.6),
            rng=4,
            **make(),
        )
        return interact(agent, *started(truth), 25, interruptions)

    whole, agent, _ = run(None)
    parts, twin, _ = run(Interruptions(tmp_path, seed=6))
    assert parts == whole
    assert contents(twin) == contents(agent)


@pytest.mark.parametrize("reward", ["by disturbance", "by next state"])
def test_an_agent_that_learns_a_disturbance_can_be_interrupted(reward, tmp_path):
    env = InventoryEnv()
    problem = env.problem
    rewards = problem.mdp.rewards
    if reward == "by disturbance":
        rewards = brmdp.DisturbanceRewards(problem.disturbance_rewards)

    def run(interruptions):
        agent = agents.aq_brmdp(
            brmdp.DisturbanceBelief(problem.outcomes), rewards, 0.9, delta=5.0, rng=4
        )
        state, _ = env.reset(seed=1)
        return interact(agent, env, state, 40, interruptions)

    whole, agent, _ = run(None)
    parts, twin, _ = run(Interruptions(tmp_path, seed=6))
    assert parts == whole
    assert contents(twin) == contents(agent)
    assert agent.belief.counts().sum() > 20


@pytest.mark.parametrize("generator", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_any_random_generator_can_be_interrupted(generator, tmp_path):
    def run(interruptions):
        rng = np.random.Generator(getattr(np.random, generator)(9))
        return interact(
            preset("continuing-psrl", RIVER, rng=rng), *started(RIVER), 40, interruptions
        )

    whole, agent, _ = run(None)
    parts, twin, _ = run(Interruptions(tmp_path, seed=6))
    assert parts == whole
    assert contents(twin) == contents(agent)


def test_an_agent_with_levels_of_its_own_for_every_pair(tmp_path):
    levels = problems.level_array((6, 2))
    belief = brmdp.DirichletBelief.uniform(6, 2)

    def run(interruptions):
        agent = agents.Agent(
            *(belief, RIVER.rewards, 0.9),
            risk=brmdp.Quantile(levels),
            restart=agents.EveryStep(),
            rng=4,
            tolerance=1e-9,
        )
        return interact(agent, *started(RIVER), 20, interruptions)

    whole, agent, _ = run(None)
    parts, twin, _ = run(Interruptions(tmp_path, seed=6))
    assert parts == whole
    assert contents(twin) == contents(agent)
    assert twin.tolerance == 1e-9
    np.testing.assert_array_equal(twin.levels, levels)


@pytest.mark.parametrize("tolerance", [None, 1e-9])
def test_tolerance_and_ties_survive(tmp_path, tolerance):
    belief = brmdp.DirichletBelief.uniform(16, 4)
    belief.observe([6] * 8, [1] * 8, [7] * 8)
    agent = agents.fixed_quantile(belief, LAKE.rewards, 0.8, alpha=0.1, rng=4, tolerance=tolerance)
    tied = [[report.tied for report in agent.explain(s)] for s in range(16)]
    np.testing.assert_array_equal(tied, agent.report.solution.tied_actions())
    assert not np.all(tied)
    agent.save(tmp_path / "agent")
    twin = agents.Agent.load(tmp_path / "agent")
    assert twin.tolerance == tolerance
    assert [[report.tied for report in twin.explain(s)] for s in range(16)] == tied


def test_a_file_that_does_not_say_how_wide_a_tie_is(tmp_path):
    """Older files imply ten times the tolerance."""
    agent = agents.fixed_quantile(
        brmdp.DirichletBelief.uniform(16, 4), LAKE.rewards, 0.8, alpha=0.1, rng=4, tolerance=1e-8
    )
    agent.act(0)
    arrays = agent.arrays()
    before = agents.Agent.from_arrays(arrays | {"accuracy": arrays["accuracy"][:3]}, "file")
    assert before.arrays()["accuracy"].tolist() == [*arrays["accuracy"][:3], 1e-7]


def test_data_collected_before_the_first_action_are_kept(tmp_path):
    agent = preset("aq-brmdp/exact", RIVER)
    for _ in range(5):
        agent.observe(0, 1, 1)
    agent.save(tmp_path / "agent")
    twin = agents.Agent.load(tmp_path / "agent")
    assert twin.episode == 0
    assert twin.act(0) == agent.act(0)
    np.testing.assert_array_equal(twin.belief.counts(), agent.belief.counts())
    assert twin.belief.counts()[0, 1, 1] == 5
    assert contents(twin) == contents(agent)


def test_a_loaded_agent_explains_itself_like_the_original(tmp_path):
    _, agent, _ = interact(preset("aq-brmdp/exact", RIVER), *started(RIVER), 33)
    agent.act(0)
    agent.save(tmp_path / "agent")
    twin = agents.Agent.load(tmp_path / "agent")
    assert [twin.explain(s) for s in range(6)] == [agent.explain(s) for s in range(6)]
    assert repr(twin) == repr(agent)
    np.testing.assert_array_equal(twin.policy, agent.policy)
    for name in (
        "episode",
        "first_step",
        "iterations",
        "residual",
        "error_bound",
        "policy_gap",
        "status",
    ):
        assert getattr(twin.report, name) == getattr(agent.report, name)
    assert twin.report.solution is None


def test_copies_go_separate_ways(tmp_path):
    _, agent, _ = interact(preset("continuing-psrl", RIVER), *started(RIVER), 30)
    agent.save(tmp_path / "agent")
    before = contents(agent)
    twin = agents.Agent.load(tmp_path / "agent")
    interact(twin, *started(RIVER), 30)
    assert contents(agent) == before


# --- parts of the user's own ----------------------------------------------------------------------


class Bold:
    """A schedule."""

    def levels(self, progress):
        return 1.0 - 1.0 / (1.0 + progress.episode)


class Sometimes:
    """A restart rule that uses the agent's stream."""

    def ends(self, progress, rng):
        return bool(rng.integers(3) == 0)


class Alternating:
    """A measure that remembers how often it was used."""

    def __init__(self):
        self.uses = 0

    def bind(self, belief):
        self.uses += 1
        return brmdp.Quantile(0.2 if self.uses % 2 else 0.8).bind(belief)

    def memory(self):
        return {"uses": np.array(self.uses)}

    def restore(self, memory):
        self.uses = int(memory["uses"])


class ScarceQuantile(brmdp.Quantile):
    """A measure derived from one of the library's, with a level that a schedule sets."""

    def at_level(self, alpha):
        return ScarceQuantile(alpha)


class Unlevelled:
    """A measure that has a level only once a schedule has set it."""

    def bind(self, belief):
        return brmdp.Mean().bind(belief)

    def at_level(self, alpha):
        return brmdp.Quantile(alpha)


FOREIGN = {
    "schedule": lambda: {
        "risk": brmdp.Quantile(0.5),
        "schedule": Bold(),
        "restart": agents.EveryStep(),
    },
    "restart": lambda: {"risk": brmdp.CVaR(0.5), "restart": Sometimes()},
    "risk": lambda: {"risk": Alternating(), "restart": agents.EveryStep()},
    "derived risk": lambda: {
        "risk": ScarceQuantile(0.5),
        "schedule": agents.AdaptiveLevel(5.0),
        "restart": agents.EveryStep(),
    },
    "unlevelled risk": lambda: {"risk": Unlevelled(), "schedule": Bold(), "restart": Sometimes()},
    "all": lambda: {"risk": ScarceQuantile(0.5), "schedule": Bold(), "restart": Sometimes()},
}


def foreign_agent(which):
    return agents.Agent(
        brmdp.DirichletBelief.uniform(6, 2), RIVER.rewards, 0.9, rng=2, **FOREIGN[which]()
    )


def own_parts(which):
    """New instances of the parts that a file cannot store."""
    return {
        role: part for role, part in FOREIGN[which]().items() if type(part).__module__ == __name__
    }


@pytest.mark.long
@pytest.mark.parametrize("which", FOREIGN)
def test_parts_of_the_users_own_are_passed_again(which, tmp_path):
    whole, agent, _ = interact(foreign_agent(which), *started(RIVER), 30)
    path = tmp_path / "agent.npz"

    def interrupt(agent):
        agent.save(path)
        loaded = agents.Agent.load(path, **own_parts(which))
        assert contents(loaded) == contents(agent)
        return loaded

    parts, twin, _ = interact(foreign_agent(which), *started(RIVER), 30, interrupt)
    assert parts == whole
    assert contents(twin) == contents(agent)
    assert agent.episode > 5


@pytest.mark.parametrize("which", FOREIGN)
def test_parts_of_the_users_own_are_missed_by_name(which, tmp_path):
    path = tmp_path / "agent.npz"
    foreign_agent(which).save(path)
    given = own_parts(which)
    for role, part in given.items():
        others = {other: value for other, value in given.items() if other != role}
        with pytest.raises(
            brmdp.InvalidInputError, match=f"{role} was a {type(part).__name__}.*{role}="
        ) as caught:
            agents.Agent.load(path, **others)
        assert not isinstance(caught.value, brmdp.CorruptFileError)


class MySampler(brmdp.MonteCarlo):
    """A method derived from one of the library's."""


def test_a_sampler_of_the_users_own_makes_the_measure_the_users_own(tmp_path):
    def risk():
        return brmdp.Quantile(0.2, MySampler(samples=10, rng=0))

    belief = brmdp.DirichletBelief.uniform(6, 2)

    def agent():
        return agents.Agent(
            belief, RIVER.rewards, 0.9, risk=risk(), restart=agents.EveryStep(), rng=0
        )

    path = tmp_path / "agent.npz"
    agent().save(path)
    with pytest.raises(brmdp.InvalidInputError, match="risk was a"):
        agents.Agent.load(path)
    whole, _, _ = interact(agent(), *started(RIVER), 10)
    interrupted, _, _ = interact(
        agent(), *started(RIVER), 10, Interruptions(tmp_path, 1, risk=risk())
    )
    assert interrupted == whole


def test_a_part_of_the_wrong_kind_is_no_corrupt_file(tmp_path):
    """The file is fine; the argument is not."""
    path = tmp_path / "agent.npz"
    preset("aq-brmdp/exact", RIVER).save(path)
    for wrong in ({"restart": 3}, {"schedule": 0.2}, {"risk": 0.2}, {"risk": brmdp.Mean()}):
        with pytest.raises(brmdp.InvalidInputError, match=f"{next(iter(wrong))} must"):
            agents.Agent.load(path, **wrong)


# --- files ----------------------------------------------------------------------------------------


def a_saved_agent(path, name="aq-brmdp/exact"):
    _, agent, _ = interact(preset(name, RIVER), *started(RIVER), 25)
    agent.act(0)
    agent.save(path)
    return agent


@pytest.fixture(params=["aq-brmdp/exact", "aq-brmdp/monte-carlo-reused", "continuing-psrl"])
def saved(request, tmp_path):
    path = tmp_path / "agent.npz"
    return a_saved_agent(path, request.param), path


def test_saving_leaves_exactly_one_file(saved):
    agent, path = saved
    assert os.listdir(path.parent) == [path.name]
    path.write_bytes(b"old")
    agent.save(str(path))
    assert os.listdir(path.parent) == [path.name]
    assert contents(agents.Agent.load(str(path))) == contents(agent)


def test_a_failed_save_leaves_the_old_file_and_no_litter(saved, monkeypatch):
    agent, path = saved
    before = path.read_bytes()

    def broken(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", broken)
    agent.observe(0, 0, 0)
    with pytest.raises(OSError, match="disk full"):
        agent.save(path)
    assert os.listdir(path.parent) == [path.name]
    assert path.read_bytes() == before


def test_the_file_holds_no_pickle(saved):
    _, path = saved
    with np.load(path, allow_pickle=False) as archive:
        for name in archive.files:
            assert archive[name].dtype.kind in "iufUb"


def test_every_truncation_is_refused(saved):
    _, path = saved
    whole = path.read_bytes()
    for length in sorted({*range(0, len(whole), len(whole) // 60), len(whole) - 1}):
        path.write_bytes(whole[:length])
        with pytest.raises(brmdp.CorruptFileError, match=r"agent\.npz"):
            agents.Agent.load(path)


def loaded_or_none(path):
    """The agent in a file, None if it is refused as corrupt."""
    try:
        return agents.Agent.load(path)
    except brmdp.CorruptFileError:
        return None


@pytest.mark.long
def test_flipped_bytes_never_give_another_agent(saved):
    agent, path = saved
    whole, expected = path.read_bytes(), contents(agent)
    positions = np.random.default_rng(3).choice(len(whole), 150, replace=False)
    refused = 0
    for position in positions:
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        loaded = loaded_or_none(path)
        refused += loaded is None
        # bytes that carry nothing, such as a time stamp, may change
        assert loaded is None or contents(loaded) == expected
    assert refused > 0.7 * len(positions)


def test_another_kind_is_refused_by_name(tmp_path):
    path = tmp_path / "file.npz"
    brmdp.DirichletBelief.uniform(2, 2).save(path)
    with pytest.raises(
        brmdp.CorruptFileError, match=r"file\.npz holds a 'DirichletBelief', not a 'Agent'"
    ):
        agents.Agent.load(path)
    a_saved_agent(path)
    with pytest.raises(
        brmdp.CorruptFileError, match=r"file\.npz holds a 'Agent', not a 'DirichletBelief'"
    ):
        brmdp.DirichletBelief.load(path)


def test_what_is_not_ours_is_refused(tmp_path):
    path = tmp_path / "file"
    for content in (b"", b"state,action\n0,1\n", np.random.default_rng(0).bytes(2000)):
        path.write_bytes(content)
        with pytest.raises(brmdp.CorruptFileError, match="file"):
            agents.Agent.load(path)
    np.savez(tmp_path / "other.npz", parts=np.array("{}"))
    with pytest.raises(brmdp.CorruptFileError, match=r"other\.npz"):
        agents.Agent.load(tmp_path / "other.npz")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        agents.Agent.load(tmp_path / "nowhere")


def forged(path, name, change):
    """A file with a correct digest over altered arrays, as a faulty writer would leave."""
    arrays = load_arrays(path, "Agent")
    change(arrays, name)
    save_arrays(path, "Agent", arrays)


def dropped(arrays, name):
    del arrays[name]


def changed(function):
    def change(arrays, name):
        arrays[name] = function(arrays[name].copy())

    return change


def entry(value, position=-1):
    def function(array):
        array.reshape(-1)[position] = value
        return array

    return changed(function)


def parts_with(**changes):
    def change(arrays, name):
        described = json.loads(str(arrays[name]))
        for role, value in changes.items():
            described[role] = value
        arrays[name] = np.array(json.dumps(described))

    return change


def nested(depth):
    """A part nested ``depth`` levels deep."""
    part = {"type": "Mean"}
    for _ in range(depth):
        part = {"type": "Quantile", "alpha": part}
    return part


ALL = (
    *(
        "parts",
        "rewards",
        "numbers",
        "counters",
        "visits",
        "visits_at_start",
        "tie_stream",
        "restart_stream",
    ),
    *("latest.counts", "latest.prior", "values", "q_values", "policy", "belief.counts", "levels"),
    *("plan", "accuracy", "status"),
)


@pytest.mark.parametrize("name", ALL)
def test_a_missing_array_is_refused(name, tmp_path):
    path = tmp_path / "agent.npz"
    a_saved_agent(path)
    forged(path, name, dropped)
    with pytest.raises(brmdp.CorruptFileError, match=r"agent\.npz"):
        agents.Agent.load(path)


@pytest.mark.parametrize(
    ("name", "wanted"), [("continuing-psrl", "sampled"), ("aq-brmdp/exact", "converged")]
)
def test_plans_from_draws_in_older_files_say_so(name, wanted, tmp_path):
    """Before there was a status "sampled", every successful plan was saved as "converged"."""
    path = tmp_path / "agent.npz"
    a_saved_agent(path, name)
    forged(path, "status", changed(lambda a: np.array("converged")))
    assert agents.Agent.load(path).report.status == wanted


def test_draws_that_are_missing_are_refused(tmp_path):
    path = tmp_path / "agent.npz"
    for name in ("risk.stream", "risk.logs"):
        a_saved_agent(path, "aq-brmdp/monte-carlo-reused")
        forged(path, name, dropped)
        with pytest.raises(brmdp.CorruptFileError, match=r"agent\.npz"):
            agents.Agent.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("parts", changed(lambda a: np.array("not json"))),
        ("parts", changed(lambda a: np.array("[1, 2]"))),
        ("parts", changed(lambda a: np.array("{}"))),
        ("parts", parts_with(belief="Belief")),
        ("parts", parts_with(risk={"type": "Quantum"})),
        ("parts", parts_with(risk="Quantile")),
        ("parts", parts_with(risk=None)),
        ("parts", parts_with(restart=None)),
        ("parts", parts_with(restart={"type": "GeometricLength"})),
        ("parts", parts_with(restart={"type": "GeometricLength", "continuation": 1.5})),
        ("parts", parts_with(restart={"type": "Quantile", "alpha": 0.2, "method": "exact"})),
        ("parts", parts_with(schedule={"type": "AdaptiveLevel", "delta": -1.0, "floor": 0.2})),
        ("parts", parts_with(schedule={"type": "AdaptiveLevel", "delta": 5.0, "roof": 0.2})),
        ("rewards", changed(lambda a: a[:-1])),
        ("rewards", entry(np.nan)),
        ("numbers", changed(lambda a: a[:1])),
        ("numbers", entry(1.0, 0)),
        ("numbers", entry(-1e-8)),
        ("counters", changed(lambda a: a[:-1])),
        ("counters", entry(-1, 0)),
        ("counters", entry(-1, 1)),
        ("counters", entry(-1, 2)),
        ("counters", entry(99, 3)),
        ("counters", changed(lambda a: a + 0.5)),
        ("visits", changed(lambda a: a[:-1])),
        ("visits", changed(lambda a: a[0, 0])),
        ("visits", changed(lambda a: a[:1])),
        ("visits", entry(-1)),
        ("visits", changed(lambda a: a + 0.5)),
        ("visits_at_start", changed(lambda a: a[:1])),
        ("visits_at_start", entry(-1)),
        ("visits_at_start", entry(10**6)),
        ("values", changed(lambda a: a[:-1])),
        ("values", entry(np.nan)),
        ("q_values", changed(lambda a: a[:-1])),
        ("q_values", entry(np.nan)),
        ("policy", changed(lambda a: a[:-1])),
        ("policy", entry(2)),
        ("policy", entry(-1)),
        ("policy", changed(lambda a: a.astype(float))),
        ("levels", changed(lambda a: a[:-1])),
        ("levels", entry(0.0)),
        ("levels", entry(1.5)),
        ("tie_stream", changed(lambda a: np.array("not json"))),
        ("tie_stream", changed(lambda a: np.array('{"bit_generator": "PCG64"}'))),
        ("restart_stream", changed(lambda a: np.array('{"bit_generator": "Nothing"}'))),
        ("restart_stream", changed(lambda a: np.array('{"bit_generator": "seed"}'))),
        ("parts", changed(lambda a: np.array("[" * 100_000))),
        ("parts", parts_with(risk=nested(300))),
        ("parts", changed(lambda a: np.array(["{}"]))),
        ("counters", entry(2**62, 0)),
        ("counters", entry(2**53, 0)),
        ("counters", changed(lambda a: np.concatenate([[0], a[1:5], [0]]))),
        ("latest.counts", changed(lambda a: 0 * a)),
        ("counters", entry(10**6, 2)),
        ("counters", entry(7, 5)),
        ("counters", changed(lambda a: a.astype(np.uint64) + np.uint64(2**63))),
        ("values", entry(1e150)),
        ("q_values", entry(1e150)),
        ("q_values", entry(-np.inf)),
        ("latest.prior", entry(1e300)),
        ("belief.prior", entry(1e300)),
        ("latest.counts", entry(2**61)),
        ("plan", entry(10**6, 0)),
        ("latest.counts", changed(lambda a: a[:-1])),
        ("latest.counts", entry(-1)),
        ("belief.counts", changed(lambda a: a[:-1])),
        ("belief.prior", entry(-1.0)),
        ("plan", changed(lambda a: a[:-1])),
        ("plan", entry(-1)),
        ("plan", changed(lambda a: a + 0.5)),
        ("accuracy", changed(lambda a: a[:-1])),
        ("accuracy", entry(np.nan)),
        ("accuracy", changed(lambda a: a.astype(str))),
        ("status", changed(lambda a: np.array("splendid"))),
    ],
)
def test_a_correct_digest_over_nonsense_is_refused(name, change, tmp_path):
    path = tmp_path / "agent.npz"
    a_saved_agent(path)
    forged(path, name, change)
    with pytest.raises(brmdp.CorruptFileError, match=r"agent\.npz"):
        agents.Agent.load(path)


@pytest.mark.parametrize(
    ("name", "change", "got"),
    [
        ("status", changed(lambda a: np.array("splendid")), "'splendid'"),
        ("accuracy", entry(-1.0, 0), r"\[-1\.0, "),
    ],
)
def test_accuracy_and_status_are_named(name, change, got, tmp_path):
    path = tmp_path / "agent.npz"
    a_saved_agent(path)
    forged(path, name, change)
    message = rf"accuracy must not be negative, and status must be one of .*; got .*{got}"
    with pytest.raises(brmdp.CorruptFileError, match=message):
        agents.Agent.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("risk.logs", changed(lambda a: a[:, :-1])),
        ("risk.logs", entry(np.nan)),
        ("risk.phi", changed(lambda a: a[:-1])),
        ("risk.phi", entry(-1.0)),
        ("risk.phi", entry(1e-31)),
        ("risk.phi", entry(1e300)),
        ("risk.logs", entry(1e300)),
        ("risk.stream", changed(lambda a: np.array("nothing"))),
    ],
)
def test_draws_that_make_no_sense_are_refused(name, change, tmp_path):
    path = tmp_path / "agent.npz"
    a_saved_agent(path, "aq-brmdp/monte-carlo-reused")
    forged(path, name, change)
    with pytest.raises(brmdp.CorruptFileError, match=r"agent\.npz"):
        agents.Agent.load(path)


def test_fewer_draws_than_transitions_are_refused(tmp_path):
    path = tmp_path / "agent.npz"
    a_saved_agent(path, "aq-brmdp/monte-carlo-reused")
    arrays = load_arrays(path, "Agent")
    save_arrays(
        path,
        "Agent",
        arrays
        | {
            "risk.phi": arrays["risk.phi"][:-1].copy(),
            "risk.logs": arrays["risk.logs"][:, :-1].copy(),
        },
    )
    with pytest.raises(brmdp.CorruptFileError, match=r"risk\.phi"):
        agents.Agent.load(path)


# --- random streams -------------------------------------------------------------------------------


GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")


def drawn(rng):
    """Draws of all kinds that leave something buffered in the generator."""
    return [
        *rng.random(3),
        *rng.integers(2**31, size=3, dtype=np.uint32).tolist(),
        *rng.standard_normal(3),
        rng.random(dtype=np.float32),
    ]


@pytest.mark.parametrize("kind", GENERATORS)
@pytest.mark.parametrize("used", [0, 1, 5, 1300])
def test_every_bit_generator_of_numpy_goes_on_from_its_state(kind, used):
    rng = np.random.Generator(getattr(np.random, kind)(11))
    rng.integers(2**31, size=used, dtype=np.uint32)
    twin = stream_from_state(stream_state(rng))
    assert type(twin.bit_generator).__name__ == kind
    assert drawn(twin) == drawn(rng)
    assert stream_state(twin) == stream_state(rng)


def state_of(kind):
    return json.loads(str(stream_state(np.random.Generator(getattr(np.random, kind)(3)))))


def with_field(kind, path, value):
    state = state_of(kind)
    place = state
    *folders, name = path.split(".")
    for folder in folders:
        place = place[folder]
    assert name in place
    place[name] = value
    return state


WILD_STATES = {
    **{
        f"bit_generator {name}": {"bit_generator": name}
        for name in ("test", "seed", "Generator", "bytes", "__name__")
    },
    **{f"bit_generator {value!r}": {"bit_generator": value} for value in (None, 3, ["PCG64"], {})},
    "another generator's state": state_of("PCG64") | {"bit_generator": "MT19937"},
    "an unknown field": state_of("PCG64") | {"extra": 1},
    **{
        f"MT19937 pos {value!r}": with_field("MT19937", "state.pos", value)
        for value in (625, 10**6, 2**31 - 1, 2**70, -1, 1.5, True, None, "3", [3])
    },
    "MT19937 short key": with_field("MT19937", "state.key", [1] * 623),
    "MT19937 long key": with_field("MT19937", "state.key", [1] * 625),
    "MT19937 wide key": with_field("MT19937", "state.key", [2**32] * 624),
    "MT19937 empty key": with_field("MT19937", "state.key", [0] * 624),
    "MT19937 no list": with_field("MT19937", "state.key", 5),
    **{
        f"Philox buffer_pos {value!r}": with_field("Philox", "buffer_pos", value)
        for value in (5, -1, 10**9, 2**40, 0.5, None)
    },
    "Philox short buffer": with_field("Philox", "buffer", [0, 0, 0]),
    "Philox short key": with_field("Philox", "state.key", [1]),
    "Philox negative counter": with_field("Philox", "state.counter", [0, 0, 0, -1]),
    "SFC64 short state": with_field("SFC64", "state.state", [1, 2, 3]),
    "SFC64 fractions": with_field("SFC64", "state.state", [1, 2, 3, 0.5]),
    "PCG64 state": with_field("PCG64", "state.state", 2**128),
    "PCG64 negative state": with_field("PCG64", "state.state", -1),
    "PCG64 even increment": with_field("PCG64", "state.inc", 2),
    "PCG64 has_uint32": with_field("PCG64", "has_uint32", 2),
    "PCG64 uinteger": with_field("PCG64", "uinteger", 2**32),
    "PCG64 text": with_field("PCG64", "state.state", "1"),
    "a list": [1, 2],
}


@pytest.mark.parametrize("case", WILD_STATES)
def test_a_wild_state_is_refused_before_it_is_used(case, monkeypatch):
    def called(*args, **kwargs):
        raise AssertionError("a file had a function called")

    monkeypatch.setattr(np.random, "test", called)
    monkeypatch.setattr(np.random, "seed", called)
    with pytest.raises(brmdp.InvalidInputError, match="random stream"):
        stream_from_state(np.array(json.dumps(WILD_STATES[case])))


@pytest.mark.parametrize(
    "text", ["", "nothing", "[" * 10_000, "9" * 15_000, " " * 20_001, "NaN", '{"a": ' * 2000]
)
def test_a_state_that_is_no_description_is_refused(text):
    with pytest.raises(brmdp.InvalidInputError, match="random stream"):
        stream_from_state(np.array(text))


@pytest.mark.parametrize("name", ["tie_stream", "restart_stream"])
@pytest.mark.parametrize(
    "case", ["bit_generator test", "MT19937 pos 1000000", "Philox buffer_pos 1000000000"]
)
def test_a_wild_state_in_a_file_is_refused(tmp_path, case, name):
    path = tmp_path / "agent.npz"
    a_saved_agent(path)
    forged(path, name, changed(lambda a: np.array(json.dumps(WILD_STATES[case]))))
    with pytest.raises(brmdp.CorruptFileError, match=r"agent\.npz.*random stream"):
        agents.Agent.load(path)


def test_a_stream_of_another_make_is_refused_when_saving():
    class Foreign:
        bit_generator = type("Xoshiro", (), {"state": {"bit_generator": "Xoshiro", "state": 1}})()

    with pytest.raises(
        brmdp.InvalidInputError, match=r"rng must use one of NumPy's bit generators.*got Xoshiro"
    ):
        stream_state(Foreign())


# --- what fits no agent, and what is no damage ----------------------------------------------------


def with_other(path, **changes):
    content = {name.replace("__", "."): value for name, value in changes.items()}
    save_arrays(path, "Agent", load_arrays(path, "Agent") | content)


def test_beliefs_of_plan_and_present_must_belong_together(tmp_path):
    path = tmp_path / "agent.npz"
    a_saved_agent(path)
    smaller = brmdp.DirichletBelief.uniform(5, 2).arrays()
    with_other(path, **{f"belief__{name}": array for name, array in smaller.items()})
    with pytest.raises(
        brmdp.CorruptFileError, match="belief must have the same possible transitions as latest"
    ):
        agents.Agent.load(path)


def test_steps_of_the_episode_must_be_those_visited(tmp_path):
    path = tmp_path / "agent.npz"
    a_saved_agent(path)
    visits = load_arrays(path, "Agent")["visits"]
    with_other(path, visits_at_start=np.zeros_like(visits))
    with pytest.raises(
        brmdp.CorruptFileError, match="must sum to the number of steps in the pseudo-episode"
    ):
        agents.Agent.load(path)


def test_a_plan_that_converged_has_a_bound(tmp_path):
    path = tmp_path / "agent.npz"
    a_saved_agent(path)
    with_other(path, accuracy=np.array([0.0, np.inf, 0.0, 0.0]))
    with pytest.raises(
        brmdp.CorruptFileError, match="accuracy must be finite where the status is 'converged'"
    ):
        agents.Agent.load(path)


def test_an_error_is_told_once(tmp_path):
    path = tmp_path / "agent.npz"
    a_saved_agent(path)
    with_other(path, visits=np.zeros((6, 2), dtype=np.int64))
    with pytest.raises(brmdp.CorruptFileError) as caught:
        agents.Agent.load(path)
    assert "Error(" not in str(caught.value)


def test_a_file_that_may_not_be_opened_is_not_corrupt(tmp_path, monkeypatch):
    """Whoever discards corrupt files must not discard good ones."""
    path = tmp_path / "agent.npz"
    a_saved_agent(path)

    def refused(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(type(path), "open", refused)
    with pytest.raises(PermissionError):
        agents.Agent.load(path)
