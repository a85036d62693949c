"""Computations through the common runner and store.

Replications, fewer runs of a case, and bad input.
"""

import numpy as np
import pytest

from brmdp.errors import CorruptFileError, ExperimentError, InvalidInputError
from brmdp.runs import (
    Case,
    Computation,
    Experiment,
    Replication,
    Replications,
    Store,
    execute,
    run_experiment,
)
from brmdp.runs.program import REQUIRED, Program
from brmdp.runs.programs import PROGRAMS


def dice(seed, throws, sides):
    rng = np.random.default_rng(seed)
    thrown = rng.integers(1, sides, size=throws, endpoint=True)
    return {
        "throw": np.arange(throws),
        "points": thrown,
        "share": thrown / sides,
        "high": 2 * thrown > sides,
        "word": np.array([f"{points} of {sides}" for points in thrown]),
    }


@pytest.fixture(autouse=True)
def _programs(monkeypatch):
    monkeypatch.setitem(PROGRAMS, "dice", Program(dice, {"throws": REQUIRED, "sides": 6}))
    monkeypatch.setitem(
        PROGRAMS, "ragged", Program(lambda seed: {"a": np.ones(2), "b": np.ones(3)}, {})
    )


def experiment(**changes):
    cases = (
        Computation("cube", "dice", {"throws": 5}),
        Computation("icosahedron", "dice", {"throws": 7, "sides": 20}, max_runs=2),
    )
    return Experiment(
        **({"name": "dicing", "title": "Dicing", "cases": cases, "runs": 4, "seed": 3} | changes)
    )


def test_replications_are_those_of_their_seeds_and_come_back_whole(tmp_path):
    counted = []
    store = run_experiment(
        experiment(),
        tmp_path,
        workers=1,
        on_progress=lambda finished, wanted: counted.append((finished, wanted)),
    )
    assert counted[-1] == (6, 6)
    found = store.records("cube")
    assert isinstance(found, Replications)
    assert found.run.tolist() == [0, 1, 2, 3]
    assert found.seconds.shape == (4,)
    for run in range(4):
        for name, column in dice(np.random.SeedSequence(3, spawn_key=(run,)), 5, 6).items():
            assert found.columns[name].shape == (4, 5)
            np.testing.assert_array_equal(found.columns[name][run], column)
    assert store.records("icosahedron").columns["points"].shape == (2, 7)
    assert store.status(store.experiment.case("icosahedron")).finished == (0, 1)


def test_nothing_finished_is_computed_again(tmp_path, monkeypatch):
    first = run_experiment(experiment(), tmp_path, workers=1)
    digest = first.digest()
    first.path(first.experiment.case("cube"), 2).unlink()
    seeds = []

    def watched(seed, throws, sides):
        seeds.append(seed.spawn_key)
        return dice(seed, throws, sides)

    monkeypatch.setitem(PROGRAMS, "dice", Program(watched, {"throws": REQUIRED, "sides": 6}))
    again = run_experiment(experiment(), tmp_path, workers=1)
    assert set(seeds) == {(2,)}
    assert again.digest() == digest
    assert Store.at(again.directory).experiment == experiment()


def test_any_altered_column_is_noticed(tmp_path):
    from brmdp.runs.store import decode, encode

    case = experiment().cases[0]
    sound = execute(case, 3, 0)
    data = encode(sound, case, 3, 0)
    assert decode(data, case, 3, 0, "here").content == decode(data, case, 3, 0, "there").content
    for name in sound.columns:
        changed = dict(sound.columns)
        changed[name] = changed[name][::-1].copy()
        other = encode(Replication(changed, sound.seconds), case, 3, 0)
        assert decode(other, case, 3, 0, "here").content != decode(data, case, 3, 0, "here").content
    with pytest.raises(CorruptFileError, match=r"here holds another run: run is 0, asked for 1"):
        decode(data, case, 3, 1, "here")
    with pytest.raises(CorruptFileError, match="here is damaged"):
        decode(data[:-40], case, 3, 0, "here")


def test_other_parameters_are_not_mixed(tmp_path):
    run_experiment(experiment(), tmp_path, workers=1)
    other = (Computation("cube", "dice", {"throws": 6}), experiment().cases[1])
    with pytest.raises(ExperimentError, match=r"other parameters.*throws is 5, asked for 6"):
        run_experiment(experiment(cases=other), tmp_path, workers=1)
    # how many runs of a case are wanted changes no result
    more = (
        experiment().cases[0],
        Computation("icosahedron", "dice", {"throws": 7, "sides": 20}, max_runs=3),
    )
    assert (
        run_experiment(experiment(cases=more), tmp_path, workers=1).records("icosahedron").run.size
        == 3
    )


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (Computation("c", "dise", {}), "case 'c': unknown program 'dise'; did you mean 'dice'"),
        (
            Computation("c", "dice", {"throw": 2}),
            "unknown parameter of dice 'throw'; did you mean 'throws'",
        ),
        (Computation("c", "dice", {}), "case 'c': dice needs throws"),
    ],
)
def test_what_cannot_be_computed_is_refused_before_anything_is(case, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        run_experiment(experiment(cases=(case,)), tmp_path, workers=1)
    assert not list(tmp_path.iterdir())


def test_columns_must_have_one_length():
    with pytest.raises(
        InvalidInputError, match=r"columns of ragged must have one length; got \{'a': 2, 'b': 3\}"
    ):
        execute(Computation("c", "ragged"), 1, 0)


def test_what_files_cannot_hold_is_refused():
    with pytest.raises(InvalidInputError, match="throws must be a finite number"):
        Computation("c", "dice", {"throws": float("nan")})
    with pytest.raises(InvalidInputError, match="name of a case must be printable text"):
        Computation("", "dice", {})


def test_steps_and_methods_are_for_interactions():
    with pytest.raises(InvalidInputError, match="steps cannot be chosen for dicing"):
        experiment().adjusted(steps=5)
    with pytest.raises(
        InvalidInputError, match="method cannot be chosen for dicing, which takes no quantiles"
    ):
        experiment().adjusted(method="exact")
    assert experiment().adjusted(runs=9).runs == 9


def test_fewer_runs_of_an_interaction(tmp_path):
    cases = tuple(
        Case(
            name,
            "riverswim",
            "continuing-psrl",
            0.9,
            5,
            environment_parameters={"n": 3},
            max_runs=most,
        )
        for name, most in (("all", 0), ("few", 1))
    )
    store = run_experiment(Experiment("river", "River", cases, runs=3), tmp_path, workers=1)
    assert [store.records(case.name).run.size for case in cases] == [3, 1]
