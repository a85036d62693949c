"""Computations through the common runner and store: replications, columns and bad input."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tiny_experiments
from brmdp._columns import Column
from brmdp._validation import FloatArray, IntArray
from brmdp.errors import CorruptFileError, ExperimentError, InvalidInputError, OtherOriginError
from brmdp.runs import (
    REQUIRED,
    Case,
    Columns,
    Computation,
    Experiment,
    Program,
    Replication,
    Replications,
    Store,
    column,
    columns_of,
    execute,
    run_experiment,
)
from brmdp.runs.encoding import decode, encode
from tiny_experiments import Throws, dicing, throw_dice


def test_replications_are_those_of_their_seeds_and_come_back_whole(tmp_path):
    counted = []
    store = run_experiment(
        dicing(),
        tmp_path,
        workers=1,
        on_progress=lambda finished, wanted: counted.append((finished, wanted)),
    )
    assert counted[-1] == (6, 6)
    found = store.records("cube")
    assert isinstance(found, Replications)
    assert isinstance(found.columns, Throws)
    assert found.run.tolist() == [0, 1, 2, 3]
    assert found.seconds.shape == (4,)
    for run in range(4):
        made = throw_dice(np.random.SeedSequence(3, spawn_key=(run,)), throws=5, sides=6)
        for name, wanted in made.arrays().items():
            stored = getattr(found.columns, name)
            assert stored.shape == (4, 5)
            np.testing.assert_array_equal(stored[run], wanted)
            np.testing.assert_array_equal(
                getattr(found.pooled, name)[5 * run : 5 * run + 5], wanted
            )
    assert store.records("icosahedron").columns.points.shape == (2, 7)
    assert store.status(store.experiment.case("icosahedron")).finished == (0, 1)


def test_nothing_finished_is_computed_again(tmp_path, monkeypatch):
    first = run_experiment(dicing(), tmp_path, workers=1)
    digest = first.digest()
    first.path(first.experiment.case("cube"), 2).unlink()
    seeds = []

    class Watched(Program):
        def __call__(self, case, seed):
            seeds.append(seed.spawn_key)
            return super().__call__(case, seed)

    monkeypatch.setattr(
        tiny_experiments, "DICE", Watched(throw_dice, Throws, tiny_experiments.DICE.parameters)
    )
    again = run_experiment(dicing(), tmp_path, workers=1)
    assert set(seeds) == {(2,)}
    assert again.digest() == digest
    assert Store.at(again.directory).experiment == dicing()


@pytest.mark.long
def test_two_workers_give_the_same_bits_as_one(tmp_path):
    alone = run_experiment(dicing(), tmp_path / "alone", workers=1)
    assert run_experiment(dicing(), tmp_path / "two", workers=2).digest() == alone.digest()


def test_any_altered_column_is_noticed():
    case = dicing().cases[0]
    sound = execute(case, 3, 0)
    data = encode(sound, case, 3, 0)
    content = decode(data, case, 3, 0, "here").content
    assert decode(data, case, 3, 0, "there").content == content
    for name, array in sound.columns.arrays().items():
        changed = replace(sound.columns, **{name: array[::-1].copy()})
        other = encode(Replication(changed, sound.seconds), case, 3, 0)
        assert decode(other, case, 3, 0, "here").content != content
    with pytest.raises(
        CorruptFileError, match=r"here holds another run: run is 0, but 1 was asked for"
    ):
        decode(data, case, 3, 1, "here")
    with pytest.raises(CorruptFileError, match="here is damaged"):
        decode(data[:-40], case, 3, 0, "here")


def test_other_parameters_are_not_mixed(tmp_path):
    run_experiment(dicing(), tmp_path, workers=1)
    cube, icosahedron = dicing().cases
    other = (replace(cube, parameters={"throws": 6}), icosahedron)
    with pytest.raises(
        ExperimentError, match=r"other parameters.*throws is 5, but 6 was asked for"
    ):
        run_experiment(dicing(cases=other), tmp_path, workers=1)
    # how many runs of a case are wanted changes no result
    more = (cube, replace(icosahedron, max_runs=3))
    store = run_experiment(dicing(cases=more), tmp_path, workers=1)
    assert store.records("icosahedron").run.size == 3


@pytest.mark.parametrize(
    ("program", "parameters", "message"),
    [
        ("dice", {}, "case 'c': program must be written as module:attribute; got 'dice'"),
        ("tiny_experiments:DISE", {}, "tiny_experiments has no attribute 'DISE'"),
        ("no_such_module:DICE", {}, "No module named 'no_such_module'"),
        (
            "tiny_experiments:NOT_A_PROGRAM",
            {},
            "case 'c': program .* must be a brmdp.runs.Program; got function",
        ),
        (
            "tiny_experiments:DICE",
            {"throw": 2},
            "unknown parameter of tiny_experiments:DICE 'throw'; did you mean 'throws'",
        ),
        ("tiny_experiments:DICE", {}, "case 'c': tiny_experiments:DICE needs throws"),
    ],
)
def test_what_cannot_be_computed_is_refused_before_anything_is(
    program, parameters, message, tmp_path
):
    case = Computation("c", program, parameters)
    with pytest.raises(InvalidInputError, match=message):
        run_experiment(dicing(cases=(case,)), tmp_path, workers=1)
    assert not list(tmp_path.iterdir())


def test_what_files_cannot_hold_is_refused():
    with pytest.raises(InvalidInputError, match="throws must be a finite number"):
        Computation("c", "tiny_experiments:DICE", {"throws": float("nan")})
    with pytest.raises(InvalidInputError, match="name of a case must be printable text"):
        Computation("", "tiny_experiments:DICE", {})


def test_steps_and_methods_are_for_interactions():
    with pytest.raises(InvalidInputError, match="steps cannot be chosen for dicing"):
        dicing().adjusted(steps=5)
    with pytest.raises(
        InvalidInputError,
        match="method cannot be chosen for dicing, in which no agent takes a quantile",
    ):
        dicing().adjusted(method="exact")
    assert dicing().adjusted(runs=9).runs == 9


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


# --- declared columns -----------------------------------------------------------------------------


def test_types_of_columns_are_those_of_their_annotations():
    assert [(one.name, one.type) for one in columns_of(Throws)] == [
        ("throw", "integer"),
        ("points", "integer"),
        ("share", "number"),
        ("high", "boolean"),
        ("word", "text"),
    ]

    @dataclass
    class Record:
        plain: int
        counts: IntArray = column("counts", since=3, total="count")
        short: NDArray[np.int32] = column("short counts")
        perhaps: FloatArray | None = column("perhaps known")
        listed: list[float | None] = column("listed", empty=True)
        words: list[str] = column("words", empty=True)
        nested: list[FloatArray | None] = column("lists of numbers", empty=True)

    assert columns_of(Record) == (
        Column("counts", "integer", "counts", since=3, total="count"),
        Column("short", "integer", "short counts"),
        Column("perhaps", "number", "perhaps known", optional=True),
        Column("listed", "number", "listed", optional=True),
        Column("words", "text", "words"),
        Column("nested", "numbers", "lists of numbers", optional=True),
    )


@pytest.mark.parametrize(
    "annotation",
    [
        int,
        float | None,
        np.ndarray,
        NDArray[Any],
        NDArray[np.complex128],
        NDArray[np.floating[Any]],
        NDArray[np.object_],
        FloatArray | IntArray,
        dict[str, float],
        list[IntArray],
        list,
        list[complex],
        tuple[float, ...],
        Any,
    ],
    ids=str,
)
def test_annotations_that_are_no_column_are_refused_by_name(annotation):
    declared = {"__annotations__": {"x": annotation}, "x": column("odd")}
    Odd = dataclass(frozen=True, eq=False)(type("Odd", (Columns,), declared))
    with pytest.raises(InvalidInputError, match=r"column x of Odd must be an array or a list"):
        columns_of(Odd)


@dataclass(frozen=True, eq=False)
class Pair(Columns):
    count: IntArray = column("a count")
    number: FloatArray = column("a number")


def one_run(**columns):
    """One replication of a program that returns these columns, or the object ``made``."""
    made = columns.get("made") or Pair(**columns)
    program = Program(lambda seed: made, Pair, {})
    return program(Computation("c", "tests:PAIR"), np.random.SeedSequence(0))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"made": {"count": np.ones(2, int)}}, "tests:PAIR must return Pair; got dict"),
        ({"made": throw_dice(0, throws=2, sides=6)}, "tests:PAIR must return Pair; got Throws"),
        (
            {"count": np.ones(2), "number": np.ones(2)},
            r"column count of tests:PAIR must be one-dimensional, with entries of the type "
            r"integer; got float64 of shape \(2,\)",
        ),
        (
            {"count": np.ones(2, int), "number": np.ones((2, 1))},
            r"column number of .* of the type number; got float64 of shape \(2, 1\)",
        ),
        ({"count": np.ones(2, bool), "number": np.ones(2)}, "column count .* got bool"),
        ({"count": np.ones(2, int), "number": 3.0}, r"column number .* of shape \(\)"),
        ({"count": np.ones(2, int), "number": ["a", "b"]}, "column number .* got <U1"),
        ({"count": np.ones(2, int), "number": None}, "column number .* got object"),
        ({"count": np.ones(2, int), "number": np.ones(2, "g")}, "column number .* got float128"),
        (
            {"count": np.ones(2, int), "number": np.ones(3)},
            r"columns of tests:PAIR must all have the same length; got \{'count': 2, 'number': 3\}",
        ),
    ],
)
def test_columns_must_be_those_declared(columns, message):
    with pytest.raises(InvalidInputError, match=message):
        one_run(**columns)


def test_columns_of_rows_of_tables_and_laid_out_flat():
    rows = [{"count": 1, "number": 0.5, "more": "left out"}, {"count": 2, "number": 1.5}]
    table = Pair.of_rows(rows)
    assert one_run(made=table) is table
    both = Pair.concatenated([table, Pair.of_rows(rows[1:])])
    assert both.count.tolist() == [1, 2, 2]
    assert both.number.tolist() == [0.5, 1.5, 1.5]
    square = Pair(count=np.arange(4).reshape(2, 2), number=np.ones((2, 2)))
    assert square.flat().count.tolist() == [0, 1, 2, 3]
    assert set(square.arrays()) == {"count", "number"}


def test_a_program_declares_flat_columns_of_its_own():
    @dataclass(frozen=True, eq=False)
    class Nested(Columns):
        lists: list[FloatArray] = column("lists", empty=True)

    class Forgotten(Columns):  # without the decorator
        x: FloatArray = column("x")

    @dataclass(frozen=True, eq=False)
    class Shadowing(Columns):
        flat: FloatArray = column("whether it is flat")

    @dataclass(frozen=True, eq=False)
    class Keyed(Columns):
        run: IntArray = column("a number that has that name already")

    for columns, message in (
        (Nested, "column lists of Nested must hold one entry per row"),
        (Forgotten, "Forgotten must declare columns; is it a dataclass?"),
        (Columns, "Columns must declare columns"),
        (dict, "columns must be a subclass of brmdp.runs.Columns; got <class 'dict'>"),
        (Shadowing, "column flat of Shadowing must have another name"),
        (Keyed, "column run of Keyed must have another name"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            Program(throw_dice, columns, {})
    with pytest.raises(InvalidInputError, match="replicate must be a function"):
        Program("throw_dice", Pair, {"throws": REQUIRED})


def test_texts_that_would_be_cut_are_refused(monkeypatch):
    def words(seed, *, throws, sides):
        thrown = throw_dice(seed, throws=throws, sides=sides)
        return replace(thrown, word=np.array([f"{word}\0{word}" for word in thrown.word]))

    monkeypatch.setattr(
        tiny_experiments, "DICE", Program(words, Throws, tiny_experiments.DICE.parameters)
    )
    with pytest.raises(InvalidInputError, match=r"column word of .* must have no NUL characters"):
        execute(dicing().cases[0], 3, 0)


def test_runs_of_different_lengths_are_named(tmp_path, monkeypatch):
    """Each is a table of its own; only side by side do they not fit."""

    def some(seed, *, throws, sides):
        return throw_dice(seed, throws=throws + seed.spawn_key[0], sides=sides)

    monkeypatch.setattr(
        tiny_experiments, "DICE", Program(some, Throws, tiny_experiments.DICE.parameters)
    )
    store = run_experiment(dicing(runs=2), tmp_path, workers=1)
    with pytest.raises(
        ExperimentError, match=r"runs of cube must have the same number of rows.*5 and 6"
    ):
        store.records("cube")
    assert store.to_arrow(["cube"]).num_rows == 11


# --- columns of other programs --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Fewer(Columns):
    points: IntArray = column("points thrown")


def test_a_program_that_changed_its_columns_is_another_origin(tmp_path, monkeypatch):
    store = run_experiment(dicing(), tmp_path, workers=1)
    monkeypatch.setattr(tiny_experiments, "DICE", Program(throw_dice, Fewer, {"throws": REQUIRED}))
    with pytest.raises(
        OtherOriginError,
        match=r"written by another version of tiny_experiments:DICE: .*the program now has points$",
    ):
        Store.at(store.directory).records("cube")


def test_a_program_that_is_not_there_leaves_its_columns_as_they_are_stored(tmp_path, monkeypatch):
    store = run_experiment(dicing(), tmp_path, workers=1)
    known = store.records("cube")
    monkeypatch.delattr(tiny_experiments, "DICE")
    found = Store.at(store.directory).records("cube")
    assert [(one.name, one.type) for one in columns_of(type(found.columns))] == [
        (one.name, one.type) for one in columns_of(Throws)
    ]
    for name, array in known.columns.arrays().items():
        np.testing.assert_array_equal(getattr(found.columns, name), array)
    assert found.pooled.high.dtype == bool
