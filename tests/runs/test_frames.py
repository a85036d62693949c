"""Stored runs as tables for other tools, and what an agent believed at any step of a run."""

import sys

import numpy as np
import pandas as pd
import pytest

import brmdp
from brmdp.errors import ExperimentError, InvalidInputError, OtherOriginError
from brmdp.runs import RUN_COLUMNS, Case, Experiment, Store, run_experiment
from brmdp.runs.execution import build
from brmdp.runs.streams import run_seed, streams_of
from tiny_experiments import dicing, tiny

TINY = tiny(runs=2, steps=30)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return run_experiment(TINY, tmp_path_factory.mktemp("frames"), workers=1)


@pytest.fixture(scope="module")
def dice(tmp_path_factory):
    return run_experiment(dicing(), tmp_path_factory.mktemp("dice"), workers=1)


# --- tables ---------------------------------------------------------------------------------------


def test_a_frame_has_a_row_for_every_step_of_every_run(store):
    frame = store.to_frame()
    assert list(frame.columns) == ["case", "run", "step", *(one.name for one in RUN_COLUMNS)]
    assert len(frame) == 4 * 2 * 30
    assert frame["case"].unique().tolist() == [case.name for case in TINY.cases]
    for case in TINY.cases:
        records = store.records(case.name)
        for run in range(2):
            rows = frame[(frame["case"] == case.name) & (frame["run"] == run)]
            assert rows["step"].tolist() == list(range(30))
            for name in ("state", "action", "reward", "next_state", "true_regret"):
                np.testing.assert_array_equal(rows[name], getattr(records, name)[run])
    alone = frame[frame["case"] == "psrl"]
    assert alone["robust_regret"].isna().all()
    assert alone["disturbance"].isna().all()
    assert not frame[frame["case"] == "store"]["disturbance"].isna().any()


def test_next_states_are_the_states_that_follow(store):
    """Except after resets, of which these worlds have none."""
    for case in TINY.cases:
        records = store.records(case.name)
        np.testing.assert_array_equal(records.next_state[:, :-1], records.state[:, 1:])


def test_cases_can_be_chosen(store):
    frame = store.to_frame(["store", "psrl"])
    assert frame["case"].unique().tolist() == ["store", "psrl"]
    assert frame.equals(store.to_arrow(["store", "psrl"]).to_pandas())
    with pytest.raises(InvalidInputError, match="unknown case 'psr'; did you mean 'psrl'"):
        store.to_frame(["psr"])
    with pytest.raises(InvalidInputError, match=r"cases must be a list of names; got 'psrl'"):
        store.to_frame("psrl")


def test_only_finished_runs_are_in_a_table(tmp_path):
    partial = run_experiment(TINY.adjusted(runs=1), tmp_path, workers=1)
    more = Store(partial.directory, TINY, partial.origin)
    for method in (more.to_arrow, more.to_frame):
        with pytest.warns(RuntimeWarning, match="the table lacks 1 of 2 runs of psrl") as caught:
            assert len(method(["psrl"])) == 30
        assert caught[0].filename == __file__
    partial.path(TINY.case("psrl"), 0).unlink()
    with pytest.raises(ExperimentError, match="has no finished run of psrl"):
        more.to_arrow(["psrl"])


def test_replications_have_rows_in_place_of_steps(dice):
    frame = dice.to_frame(["cube", "icosahedron"])
    assert list(frame.columns) == ["case", "run", "row", "throw", "points", "share", "high", "word"]
    assert len(frame) == 4 * 5 + 2 * 7
    assert frame["row"].tolist() == frame["throw"].tolist()
    assert (frame["high"] == (frame["share"] > 0.5)).all()
    assert frame["word"][0] == f"{frame['points'][0]} of 6"
    assert pd.api.types.is_bool_dtype(frame["high"])


def test_cases_with_other_columns_do_not_share_a_table(tmp_path):
    river = Case("river", "riverswim", "continuing-psrl", 0.8, 5, {"n": 3})
    both = Experiment("both", "Both", (river, dicing().cases[0]), 1)
    mixed = run_experiment(both, tmp_path, workers=1)
    with pytest.raises(InvalidInputError, match=r"the same columns.*cases=\[…\]"):
        mixed.to_frame()
    assert len(mixed.to_frame(["river"])) == len(mixed.to_frame(["cube"])) == 5


def test_without_pandas_there_are_tables_of_arrow(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(brmdp.MissingExtraError, match="pip install pandas") as caught:
        store.to_frame()
    assert caught.value.name == "pandas"
    assert store.to_arrow(["psrl"]).num_rows == 60


# --- beliefs --------------------------------------------------------------------------------------


def case(name, environment, parameters, **more):
    return Case(name, environment, "continuing-psrl", 0.9, 25, parameters, **more)


STOCK = {"capacity": 4, "max_order": 2}
BELIEVING = Experiment(
    "believing",
    "Believing",
    (
        case("dirichlet", "riverswim", {"n": 4}),
        case("informed", "frozenlake", {}, prior={"concentration": 0.3, "known_successors": True}),
        case("disturbance", "inventory", STOCK),
        case("censored", "inventory", STOCK | {"reveal_lost_sales": False}),
        case("drawn", "prior", {"n_states": 4, "n_actions": 2, "concentration": 0.5}),
        case("episodic", "FrozenLake-v1", {"is_slippery": False}),
    ),
    2,
    seed=4,
)


@pytest.fixture(scope="module")
def believing(tmp_path_factory):
    return run_experiment(BELIEVING, tmp_path_factory.mktemp("beliefs"), workers=1)


def weights(belief):
    """The numbers that observations add to."""
    if isinstance(belief, brmdp.CensoredDisturbanceBelief):
        return np.concatenate(belief.hazards())
    return np.array(belief.concentration_entries)


def latest(agent):
    """What the agent believes now, not when it planned."""
    return agent._settled()[1].latest


@pytest.mark.parametrize("name", [case.name for case in BELIEVING.cases])
@pytest.mark.parametrize("run", [0, 1])
def test_the_belief_after_each_step_is_the_agents_own(believing, name, run):
    """An agent of the same seeds goes through the run, and is asked at every step."""
    chosen = BELIEVING.case(name)
    streams = streams_of(run_seed(BELIEVING.seed, run))
    world, agent = build(chosen, world_rng=streams.world, rng=streams.agent)
    seen = [weights(latest(agent))]
    observe = agent.observe

    def watched(*transition, **details):
        observe(*transition, **details)
        seen.append(weights(latest(agent)))

    agent.observe = watched
    brmdp.simulate(agent, world, chosen.steps, seed=streams.environment)
    assert len(seen) == chosen.steps + 1
    assert (seen[0] != seen[-1]).any()
    for steps, wanted in enumerate(seen):
        belief = believing.belief_after(name, run, steps, trust=True)
        np.testing.assert_array_equal(weights(belief), wanted)
    at_the_end = believing.belief_after(name, run, trust=True)
    np.testing.assert_array_equal(weights(at_the_end), seen[-1])


def test_worlds_that_are_drawn_differ_from_run_to_run(believing):
    first, second = (believing.belief_after("drawn", run) for run in range(2))
    assert (weights(first) != weights(second)).any()


def test_environments_registered_with_gymnasium_need_no_trust(believing):
    assert believing.belief_after("episodic", 0).n_states == 17


def test_a_belief_can_be_planned_with(believing):
    belief = believing.belief_after("dirichlet", 0)
    rewards = brmdp.envs.riverswim(4).rewards
    assert brmdp.plan(belief, rewards, 0.9, risk=brmdp.Quantile(0.2)).policy.shape == (4,)


@pytest.mark.parametrize(
    ("steps", "message"), [(-1, "steps must"), (26, "steps must"), (2.5, "steps must")]
)
def test_steps_are_those_of_the_run(believing, steps, message):
    with pytest.raises(InvalidInputError, match=message):
        believing.belief_after("dirichlet", 0, steps)


def test_what_has_no_belief_over_a_finite_world_is_refused(believing, dice, tmp_path):
    with pytest.raises(InvalidInputError, match="'cube' is a computation"):
        dice.belief_after("cube", 0)
    lake = Case("lake", "continuous-frozenlake", "continuing-psrl", 0.8, 5)
    with pytest.raises(InvalidInputError, match="'lake' is in continuous-frozenlake"):
        Store(tmp_path, Experiment("lake", "Lake", (lake,), 1)).belief_after("lake", 0)
    with pytest.raises(ExperimentError, match="run 7 of dirichlet is not finished"):
        believing.belief_after("dirichlet", 7)


def test_a_world_that_changed_gives_no_belief(believing, monkeypatch):
    from brmdp.envs import riverswim as make

    monkeypatch.setattr("brmdp.envs.riverswim", lambda n, discount: make(n + 1, discount=discount))
    with pytest.raises(OtherOriginError, match="run 0 of 'dirichlet' took place in another world"):
        believing.belief_after("dirichlet", 0)
