"""A run on disk is complete or absent, verified when read, and never mixed with others."""

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from brmdp.errors import CorruptFileError, ExperimentError, InvalidInputError, OtherOriginError
from brmdp.runs import (
    Experiment,
    Replication,
    Store,
    columns_of,
    execute,
    find_stores,
    run_experiment,
)
from brmdp.runs.encoding import decode, differences, encode, versions
from brmdp.runs.parquet import _pages
from brmdp.runs.store import _columns_class
from former_stores import content_digest
from tiny_experiments import Throws, dicing, throw_dice, tiny, with_tests_on_the_path

TINY = tiny()
CASE = TINY.cases[0]


@pytest.fixture(scope="module")
def record():
    return execute(CASE, TINY.seed, 1)


@pytest.fixture(scope="module")
def data(record):
    return encode(record, CASE, TINY.seed, 1)


@pytest.fixture
def store(undisturbed, tmp_path):
    """A finished store to spoil."""
    copy = tmp_path / "out" / "tiny"
    (copy / "runs").mkdir(parents=True)
    for path in undisturbed.directory.rglob("*"):
        if path.is_file():
            (copy / path.relative_to(undisturbed.directory)).write_bytes(path.read_bytes())
    return Store(copy, TINY)


def again(store, **changes):
    """Run it again; returns the store and the messages."""
    messages = []
    done = run_experiment(
        replace(store.experiment, **changes),
        store.directory.parent,
        workers=1,
        on_message=messages.append,
    )
    return done, messages


def modification_times(store):
    return {path.name: path.stat().st_mtime_ns for path in store.directory.glob("runs/*")}


# --- one run --------------------------------------------------------------------------------------


def test_a_run_comes_back_as_it_was(record, data):
    stored = decode(data, CASE, TINY.seed, 1, "here")
    history = record.history
    for name in ("state", "action", "reward", "episode", "true_regret", "robust_regret"):
        np.testing.assert_array_equal(stored.table[name].to_numpy(), getattr(history, name))
    first = stored.table["status"].is_valid().to_numpy()
    np.testing.assert_array_equal(np.flatnonzero(first), history.episodes.first_step)
    for name in ("iterations", "residual", "error_bound", "status"):
        assert stored.table[name].drop_null().to_pylist() == getattr(history.episodes, name)
    levels = stored.table["levels"].drop_null().to_pylist()
    np.testing.assert_array_equal(levels, [level.ravel() for level in history.episodes.levels])
    quantiles = stored.table["quantile_value"]
    np.testing.assert_array_equal(
        np.flatnonzero(quantiles.is_valid().to_numpy()), history.quantile_step
    )
    np.testing.assert_array_equal(quantiles.drop_null().to_numpy(), history.quantile_value)
    assert stored.seconds == record.seconds
    assert stored.n_states == 4


def test_anyone_can_read_a_file_and_see_what_it_is(undisturbed):
    table = pq.read_table(undisturbed.path(TINY.case("sampled/reused"), 2))
    assert table.num_rows == 60
    assert table["robust_regret"].null_count == 60
    facts = json.loads(table.schema.metadata[b"brmdp"])
    assert facts["case"]["agent_parameters"] == {
        "delta": 5.0,
        "method": "monte-carlo-reused",
        "coefficient": 20.0,
    }
    assert (facts["run"], facts["seed"], facts["versions"]) == (2, TINY.seed, versions())
    assert set(versions()) == {"brmdp", "numpy", "scipy", "numba", "gymnasium", "python"}


@pytest.mark.long
def test_every_changed_byte_is_noticed_or_harmless(data):
    """Wherever a bit flips, reading fails or gives exactly the same content."""
    truth = decode(data, CASE, TINY.seed, 1, "here")
    noticed = 0
    for position in np.random.default_rng(0).choice(len(data), 400, replace=False):
        spoilt = bytearray(data)
        spoilt[position] ^= 1 << int(position % 8)
        try:
            stored = decode(bytes(spoilt), CASE, TINY.seed, 1, "the file")
        except CorruptFileError as error:
            noticed += str(error).startswith("the file ")
        else:
            assert stored.content == truth.content
            assert (stored.seconds, stored.versions) == (truth.seconds, truth.versions)
    assert noticed > 200


@pytest.mark.long
def test_no_changed_bit_of_the_description_ends_the_process(data):
    """As pyarrow's own view of a damaged description does."""
    size = int.from_bytes(data[-8:-4], "little") + 8
    positions = range(len(data) - 1, len(data) - size, -3)
    refused = 0
    for position in positions:
        spoilt = bytearray(data)
        spoilt[position] ^= 1 << position * 5 % 8
        # the number of the format may be hit
        with contextlib.suppress(CorruptFileError, OtherOriginError):
            decode(bytes(spoilt), CASE, TINY.seed, 1, "the file")
            continue
        refused += 1
    assert refused > len(positions) / 2


@pytest.mark.parametrize("length", [0, 3, 4, 100, -200, -8, -1])
def test_truncated_content_is_named(data, length):
    with pytest.raises(CorruptFileError, match=r"^the file is damaged"):
        decode(data[:length], CASE, TINY.seed, 1, "the file")


@pytest.mark.parametrize(
    ("case", "seed", "run", "named"),
    [
        (CASE, TINY.seed, 2, "run is 1, but 2 was asked for"),
        (CASE, 5, 1, "seed is 11, but 5 was asked for"),
        (replace(CASE, steps=61), TINY.seed, 1, "case.steps is 60, but 61 was asked for"),
        (replace(CASE, discount=0.7), TINY.seed, 1, "case.discount is 0.8, but 0.7 was asked for"),
        (TINY.cases[1], TINY.seed, 1, 'case.name is "adaptive", but "psrl" was asked for'),
    ],
)
def test_another_run_is_not_taken_for_this_one(data, case, seed, run, named):
    with pytest.raises(CorruptFileError) as caught:
        decode(data, case, seed, run, "the file")
    assert "the file holds another run: " in str(caught.value)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("then", "now", "named"),
    [
        (1, True, "x is 1, but true was asked for"),
        (0.0, False, "x is 0.0, but false was asked for"),
        ({"flag": [0, True]}, {"flag": [0, 1]}, r"x\.flag\[1\] is true, but 1 was asked for"),
        ([True], [True, 1], r"x is \[true\], but \[true, 1\] was asked for"),
    ],
)
def test_a_truth_value_is_no_number(then, now, named):
    assert re.fullmatch(named, differences(then, now, "x"))


def test_a_whole_number_may_be_written_either_way():
    assert differences({"n": [5, {"m": 6.0}]}, {"n": [5.0, {"m": 6}]}, "x") == ""


def test_a_store_made_with_a_number_is_not_continued_with_a_truth_value(tmp_path):
    def parameterised(flag):
        parameters = {"is_slippery": flag}
        case = replace(CASE, environment="FrozenLake-v1", environment_parameters=parameters)
        return replace(TINY, cases=(case,))

    with Store.opened(tmp_path, parameterised(1)):
        pass
    with Store.opened(tmp_path, parameterised(1.0)):
        pass
    with (
        pytest.raises(
            ExperimentError, match=r"parameters\.is_slippery is 1, but true was asked for"
        ),
        Store.opened(tmp_path, parameterised(True)),
    ):
        pass


def test_what_only_figures_need_does_not_matter(data):
    decode(data, replace(CASE, reported_steps=7), TINY.seed, 1, "here")


# --- the folder -----------------------------------------------------------------------------------


def test_layout(undisturbed):
    names = sorted(path.name for path in undisturbed.directory.glob("runs/*"))
    assert len(names) == 12
    assert names[0] == "adaptive--0000.parquet"
    assert "sampled%2Freused--0002.parquet" in names
    description = json.loads((undisturbed.directory / "experiment.json").read_text())
    assert Experiment.from_description(description["experiment"]) == TINY
    assert Store.at(undisturbed.directory).digest() == undisturbed.digest()


def test_records_side_by_side(undisturbed):
    records = undisturbed.records("adaptive")
    assert records.case == CASE
    assert records.run.tolist() == [0, 1, 2]
    for name in ("state", "action", "episode", "reward", "true_regret", "robust_regret"):
        assert getattr(records, name).shape == (3, 60)
    assert records.state.dtype == np.int64
    assert records.quantile_step.tolist() == [0]
    assert records.quantile_value.shape == (3, 1)
    assert records.n_states == 4
    assert (records.seconds > 0).all()
    history = execute(CASE, TINY.seed, 2).history
    np.testing.assert_array_equal(records.true_regret[2], history.true_regret)
    np.testing.assert_array_equal(records.state[2], history.state)


def test_records_without_diagnostics(undisturbed):
    records = undisturbed.records("sampled/reused")
    assert records.robust_regret is None
    assert records.quantile_value.shape == (3, 0)


def test_records_of_an_unknown_case(undisturbed):
    with pytest.raises(InvalidInputError, match="unknown case 'adaptiv'; did you mean 'adaptive'"):
        undisturbed.records("adaptiv")


@pytest.mark.parametrize("method", ["to_arrow", "to_frame"])
def test_no_table_leaves_out_damaged_or_foreign_runs(store, method):
    """A folder that knows its origin, and one whose runs only have to agree."""
    path = store.path(CASE, 1)
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    store.path(CASE, 2).write_bytes(b"")
    for found in (store, Store.at(store.directory)):
        with pytest.raises(
            CorruptFileError, match=r"adaptive--0001\.parquet is damaged.*\(and 1 more like it\)"
        ):
            getattr(found, method)(["adaptive"])
        assert getattr(found, method)(["psrl"]).shape[0] == 180
    resealed(path, whole, code="f" * 64)
    store.path(CASE, 2).unlink()
    for found in (store, Store.at(store.directory)):
        with pytest.raises(OtherOriginError, match=r"adaptive--0001\.parquet was made by other"):
            getattr(found, method)(["adaptive"])


def resealed(path, data, **facts):
    """The run in ``data``, with other facts under a digest that fits."""
    table = pq.read_table(io.BytesIO(data))
    facts = json.loads(table.schema.metadata[b"brmdp"]) | facts
    path.write_bytes(under_seal(table, json.dumps(facts, sort_keys=True)))


def under_seal(table, facts):
    """A file with that table and these facts, under a digest that fits."""
    seal = f"{content_digest(table, lengths=True)}|{facts}"
    metadata = {"brmdp": facts, "sha256": hashlib.sha256(seal.encode()).hexdigest()}
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), sink)
    return sink.getvalue()


@pytest.mark.parametrize("method", ["to_arrow", "to_frame"])
def test_missing_runs_are_counted_in_a_warning(store, method):
    store.path(CASE, 1).unlink()
    store.path(CASE, 2).unlink()
    store.path(TINY.cases[1], 0).unlink()
    with pytest.warns(
        RuntimeWarning, match="lacks 2 of 3 runs of adaptive, 1 of 3 runs of psrl"
    ) as caught:
        assert getattr(store, method)().shape[0] == 9 * 60
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([], r"cases must name at least one case; got \[\]"),
        (["psrl", "store", "psrl"], "cases must name each case once; got 'psrl' 2 times"),
    ],
)
def test_cases_of_a_table_are_named_once(undisturbed, cases, message):
    for method in (undisturbed.to_arrow, undisturbed.to_frame):
        with pytest.raises(InvalidInputError, match=message):
            method(cases)


def test_finished_runs_are_not_touched(store):
    before = modification_times(store)
    done, messages = again(store)
    assert modification_times(done) == before
    assert messages == []


def spoil_truncate(path, other):
    path.write_bytes(path.read_bytes()[:-100])


def spoil_empty(path, other):
    path.write_bytes(b"")


def spoil_flip(path, other):
    data = bytearray(path.read_bytes())
    data[40] ^= 255
    path.write_bytes(data)


def spoil_swap(path, other):
    mine = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(mine)


def spoil_forge(path, other):
    """Other content under the old digest."""
    table = pq.read_table(path)
    column = table.schema.get_field_index("reward")
    table = table.set_column(column, table.schema.field(column), [np.zeros(60)])
    pq.write_table(table, path)


@pytest.mark.parametrize(
    "spoil", [spoil_truncate, spoil_empty, spoil_flip, spoil_swap, spoil_forge]
)
def test_a_spoilt_file_is_named_set_aside_and_computed_again(store, undisturbed, spoil):
    path, other = store.path(CASE, 1), store.path(TINY.cases[1], 1)
    before = modification_times(store)
    spoil(path, other)
    spoilt = path.read_bytes()
    with pytest.raises(CorruptFileError, match="adaptive--0001"):
        store.records("adaptive")
    done, messages = again(store)
    expected = 2 if spoil is spoil_swap else 1
    assert len(messages) == expected
    assert str(path) in messages[0]
    assert "set aside as" in messages[0]
    assert (store.directory / "set-aside" / path.name).read_bytes() == spoilt
    assert done.digest() == undisturbed.digest()
    after = modification_times(done)
    assert sum(after[name] != before[name] for name in after) == expected


def test_nothing_set_aside_is_overwritten(store):
    for attempt in range(3):
        store.path(CASE, 0).write_bytes(bytes([attempt]) * 5)
        again(store)
    assert store.files_set_aside() == [
        "adaptive--0000.2.parquet",
        "adaptive--0000.3.parquet",
        "adaptive--0000.parquet",
    ]


def test_by_default_a_spoilt_file_is_a_warning(store):
    store.path(CASE, 0).write_bytes(b"")
    with pytest.warns(RuntimeWarning, match=r"adaptive--0000\.parquet is damaged"):
        run_experiment(TINY, store.directory.parent, workers=1)


def test_other_versions_are_mentioned(store, monkeypatch):
    monkeypatch.setattr("brmdp.runs.runner.versions", lambda: {**versions(), "numpy": "9.9"})
    _, messages = again(store)
    assert len(messages) == 1
    assert f"numpy {versions()['numpy']}" in messages[0]


def test_more_runs_extend_and_fewer_use_the_first(store, undisturbed):
    before = modification_times(store)
    extended, _ = again(store, runs=4)
    after = modification_times(extended)
    assert len(after) == 16
    assert all(after[name] == before[name] for name in before)
    assert Store.at(store.directory).experiment.runs == 4
    fewer, _ = again(store, runs=2)
    assert modification_times(fewer) == after
    assert fewer.records("psrl").run.tolist() == [0, 1]
    assert Store.at(store.directory).experiment.runs == 4
    assert again(store)[0].digest() == undisturbed.digest()


def changed_case(**changes):
    return (replace(CASE, **changes), *TINY.cases[1:])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"seed": 12}, "seed is 11, but 12 was asked for"),
        ({"cases": changed_case(steps=90)}, "cases.adaptive.steps is 60, but 90 was asked for"),
        (
            {"cases": changed_case(discount=0.5)},
            "cases.adaptive.discount is 0.8, but 0.5 was asked for",
        ),
        (
            {"cases": changed_case(robust_level=None)},
            "cases.adaptive.robust_level is 0.2, but null was asked for",
        ),
        (
            {
                "cases": changed_case(
                    agent_parameters={"delta": 5.0, "floor": 0.2, "method": "saddlepoint"}
                )
            },
            'cases.adaptive.agent_parameters.method is "exact", but "saddlepoint" was asked for',
        ),
        ({"cases": TINY.cases[1:]}, "but absent was asked for"),
    ],
)
def test_other_parameters_are_refused(store, changes, named):
    before = modification_times(store)
    with pytest.raises(ExperimentError, match="must not be mixed") as caught:
        again(store, **changes)
    assert named in str(caught.value)
    assert str(store.directory) in str(caught.value)
    assert modification_times(store) == before
    assert not store.files_set_aside()


def test_wording_may_change(store):
    path = store.directory / "experiment.json"
    for changes in (
        {"title": "Another title", "cases": changed_case(reported_steps=30)},
        {"cases": changed_case(label="Adaptive")},
        {"runs": 2, "cases": changed_case(max_runs=1)},
        {"cases": TINY.cases[::-1]},
    ):
        _, messages = again(store, **changes)
        assert messages == []
        wanted = replace(TINY, **changes)
        kept = tuple(replace(case, max_runs=0) for case in wanted.cases)
        assert Store.at(store.directory).experiment == replace(wanted, cases=kept, runs=3)
        before = path.stat().st_mtime_ns
        again(store, **changes)
        assert path.stat().st_mtime_ns == before


def test_a_description_asks_for_the_most_runs_ever_wanted(tmp_path):
    for limits, kept in [((2, 1), (2, 1)), ((1, 3), (2, 3)), ((1, 0), (2, 0)), ((4, 2), (4, 0))]:
        pairs = zip(TINY.cases, limits, strict=False)
        cases = tuple(replace(case, max_runs=most) for case, most in pairs)
        with Store.opened(tmp_path, replace(TINY, cases=cases)) as opened:
            assert opened.experiment.cases == cases
        stored = Store.at(opened.directory).experiment
        assert tuple(case.max_runs for case in stored.cases) == kept


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"format": 1, "experiment": {"name": 3}}', b"\xff\xfe"]
)
def test_a_damaged_description_is_named(store, content, undisturbed):
    (store.directory / "experiment.json").write_bytes(content)
    with pytest.raises(ExperimentError, match=r"experiment\.json is damaged"):
        again(store)
    (store.directory / "experiment.json").unlink()
    before = modification_times(store)
    done, messages = again(store)
    assert (modification_times(done), messages) == (before, [])


def test_a_later_format_is_refused(store):
    path = store.directory / "experiment.json"
    path.write_text(json.dumps({"format": 99, "experiment": {}}))
    with pytest.raises(ExperimentError, match="format 99"):
        again(store)


def test_unfinished_files_are_removed_and_not_seen(store):
    stale = store.directory / "runs" / ".adaptive--0007.parquet.unfinished-0"
    stale.write_bytes(b"half")
    assert pq.read_table(store.directory / "runs", columns=["state"]).num_rows == 12 * 60
    again(store)
    assert not stale.exists()


@pytest.mark.long
def test_two_runners_keep_out_of_each_others_way(store):
    code = "import sys; from tiny_experiments import tiny; from brmdp.runs import run_experiment\n"
    code += "run_experiment(tiny(), sys.argv[1], workers=1)"
    with Store.opened(store.directory.parent, TINY):
        other = subprocess.run(
            [sys.executable, "-c", code, str(store.directory.parent)],
            env=with_tests_on_the_path(),
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert other.returncode == 1
    assert "another process is working on" in other.stderr
    again(store)


def test_find_stores(store, tmp_path):
    assert [found.directory for found in find_stores(store.directory)] == [store.directory]
    assert [found.directory for found in find_stores(store.directory.parent)] == [store.directory]
    with pytest.raises(ExperimentError, match="holds no experiment"):
        find_stores(tmp_path)
    with pytest.raises(ExperimentError, match="holds no experiment"):
        Store.at(tmp_path)


def test_status_of_a_case(store):
    store.path(CASE, 0).unlink()
    spoil_truncate(store.path(CASE, 2), None)
    status = store.status(CASE)
    assert (status.finished, status.missing, list(status.damaged)) == ((1,), (0,), [2])
    assert store.path(CASE, 2).exists()


# --- disks ----------------------------------------------------------------------------------------


def assert_intact(store, before):
    """Nothing lost, nothing half done, and it can go on."""
    assert modification_times(store) == before
    assert not list(store.directory.glob("runs/.*"))
    done, messages = again(store, runs=4)
    assert messages == []
    assert len(modification_times(done)) == 16


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_full_disk_is_a_clear_error(store, record, failing, monkeypatch):
    before = modification_times(store)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Store.opened(store.directory.parent, TINY) as opened, monkeypatch.context() as patch:
        patch.setattr(os, failing, full)
        with pytest.raises(
            ExperimentError, match=r"adaptive--0003\.parquet: No space left on device.*intact"
        ):
            opened.write(CASE, 3, encode(record, CASE, TINY.seed, 3))
    assert_intact(store, before)


@pytest.mark.long
def test_a_file_that_really_does_not_fit(store):
    """The operating system refuses a write in the middle of a run's file."""
    pytest.importorskip("resource")
    before = modification_times(store)
    code = """
import resource, sys
from tiny_experiments import tiny
from brmdp.runs import execute, run_experiment
for case in tiny().cases:
    execute(case, 1, 1)     # whatever must be compiled is, before there is no more room
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
run_experiment(tiny(runs=4), sys.argv[1], workers=1)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(store.directory.parent)],
        env=with_tests_on_the_path(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "ExperimentError" in done.stderr
    assert "File too large. Finished runs are intact" in done.stderr
    assert_intact(store, before)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ExperimentError, match=r"file.*: Not a directory"):
        run_experiment(TINY, tmp_path / "file", workers=1)


def test_an_unwritable_folder(store):
    """Root may write anywhere, so as somebody else where the tests run as root."""
    before = modification_times(store)
    runs = store.directory / "runs"
    root = os.geteuid() == 0
    for folder in (store.directory, *store.directory.parents[:3]):
        folder.chmod(0o755)
    runs.chmod(0o555)
    (store.directory / ".lock").chmod(0o666)
    if root:
        os.seteuid(65534)
    try:
        with pytest.raises(ExperimentError, match=r"Permission denied\. Finished runs are intact"):
            run_experiment(TINY.adjusted(runs=4), store.directory.parent, workers=1)
    finally:
        if root:
            os.seteuid(0)
        runs.chmod(0o755)
    assert_intact(store, before)


# --- what others put there ------------------------------------------------------------------------


def test_a_linked_lock_is_refused_and_its_target_left_alone(store, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("years of work")
    lock = store.directory / ".lock"
    lock.unlink(missing_ok=True)
    lock.symlink_to(precious)
    with pytest.raises(ExperimentError, match=r"\.lock: "):
        again(store)
    assert precious.read_text() == "years of work"


def test_the_lock_keeps_its_content(store):
    (store.directory / ".lock").write_text("a note")
    again(store)
    assert (store.directory / ".lock").read_text() == "a note"


def test_hidden_files_of_others_are_left_alone(store):
    runs = store.directory / "runs"
    kept = [".gitignore", ".adaptive--0007.parquet", ".notes.unfinished-0", ".DS_Store"]
    for name in kept:
        (runs / name).write_text("mine")
    (runs / ".adaptive--0008.parquet.unfinished-0").symlink_to(runs / ".gitignore")
    again(store)
    assert {path.name for path in runs.glob(".*")} == {
        *kept,
        ".adaptive--0008.parquet.unfinished-0",
    }


def test_nothing_is_deleted_through_a_link(store, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (store.directory / "runs").rename(elsewhere)
    (store.directory / "runs").symlink_to(elsewhere)
    unfinished = elsewhere / ".adaptive--0007.parquet.unfinished-0"
    unfinished.write_text("whose?")
    _, messages = again(store)
    assert messages == []
    assert unfinished.exists()


def test_a_case_whose_name_begins_with_a_dot(tmp_path):
    hidden = replace(TINY, cases=(replace(CASE, name=".hidden"),), runs=1)
    store = run_experiment(hidden, tmp_path, workers=1)
    assert [path.name for path in store.directory.glob("runs/*")] == ["%2Ehidden--0000.parquet"]
    assert store.status(hidden.cases[0]).finished == (0,)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_disk_that_cannot_lock_is_a_clear_error(number, tmp_path, monkeypatch):
    import fcntl

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(
        ExperimentError,
        match=f"{os.strerror(number)}. Choose a folder on a disk that can lock files",
    ):
        run_experiment(TINY, tmp_path, workers=1)


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"format": 2, "experiment": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
        b'{"format": 2, "experiment": {"name": "x", "title": "", "cases": 3}}',
        b'{"format": 2, "experiment": {"name": "x", "title": 5, "cases": []}}',
    ],
)
def test_a_strange_description_is_named(content, store):
    (store.directory / "experiment.json").write_bytes(content)
    for attempt in (again, lambda found: Store.at(found.directory)):
        with pytest.raises(ExperimentError, match=r"experiment\.json is damaged"):
            attempt(store)


def test_a_huge_description_is_not_read(store, monkeypatch):
    monkeypatch.setattr("brmdp.runs.store.LARGEST_DESCRIPTION", 1000)
    with pytest.raises(ExperimentError, match=r"experiment\.json is damaged .*at most 1,000 bytes"):
        Store.at(store.directory)


# --- files that would unpack to far more ----------------------------------------------------------


@pytest.fixture
def never_unpacked(monkeypatch):
    """Fails as soon as a column is read."""

    def read(*_, **__):
        raise AssertionError("unpacked")

    monkeypatch.setattr(pq.ParquetFile, "read", read)


def with_facts_of(data, table, **options):
    """The table in a file that says it is the run in ``data``."""
    sink = io.BytesIO()
    metadata = pq.read_schema(io.BytesIO(data)).metadata
    pq.write_table(table.replace_schema_metadata(metadata), sink, **options)
    return sink.getvalue()


def test_more_rows_than_steps_are_not_unpacked(data, never_unpacked):
    schema = pq.read_schema(io.BytesIO(data)).remove_metadata()
    table = pa.table([pa.nulls(1_000_000, field.type) for field in schema], schema=schema)
    bomb = with_facts_of(data, table, compression="zstd")
    assert len(bomb) < 50_000
    with pytest.raises(
        CorruptFileError, match="the file is damaged: it must have 60 rows; got 1000000"
    ):
        decode(bomb, CASE, TINY.seed, 1, "the file")


def test_other_columns_are_not_unpacked(data, never_unpacked):
    for table in (
        pa.table({"state": pa.nulls(60, pa.int32())}),
        pa.table({"x": pa.nulls(60, pa.string())}),
    ):
        with pytest.raises(CorruptFileError, match="it must have the columns"):
            decode(with_facts_of(data, table), CASE, TINY.seed, 1, "the file")


def test_long_lists_are_not_unpacked(data, never_unpacked, monkeypatch):
    """The levels of an episode are a list, which a few bytes can make very long."""
    monkeypatch.setattr("brmdp.runs.parquet.LARGEST", 5_000_000)
    schema = pq.read_schema(io.BytesIO(data)).remove_metadata()
    columns = [
        pa.array([np.zeros(20_000)] * 60, field.type)
        if field.name == "levels"
        else pa.nulls(60, field.type)
        for field in schema
    ]
    bomb = with_facts_of(data, pa.table(columns, schema=schema), compression="zstd")
    assert len(bomb) < 50_000
    with pytest.raises(
        CorruptFileError,
        match=r"its content must take at most 5,000,000 bytes; it would take [1-9]",
    ):
        decode(bomb, CASE, TINY.seed, 1, "the file")


def test_the_number_of_values_is_that_of_the_pages(data, never_unpacked, monkeypatch):
    """A row may hold a list of any length, whatever the file's description says about it."""
    monkeypatch.setattr("brmdp.runs.parquet.LARGEST", 5_000_000)
    schema = pq.read_schema(io.BytesIO(data)).remove_metadata()
    long = pa.array([np.zeros(1_000_000), *[None] * 59], schema.field("levels").type)
    columns = [long if field.name == "levels" else pa.nulls(60, field.type) for field in schema]
    bomb = with_facts_of(
        data, pa.table(columns, schema=schema), compression="zstd", write_statistics=False
    )
    truth, lie = (
        b"\x16" + number(1_000_059),
        b"\x16" + number(60, length=3),
    )  # the fifth field, a long integer
    assert len(truth) == len(lie)
    begin = len(bomb) - 8 - int.from_bytes(bomb[-8:-4], "little")
    assert bomb.count(truth, begin) == 1
    bomb = bomb[:begin] + bomb[begin:].replace(truth, lie)
    chunk = next(
        c
        for c in map(pq.read_metadata(io.BytesIO(bomb)).row_group(0).column, range(12))
        if c.num_values == 60
    )
    assert chunk.num_values == 60
    with pytest.raises(
        CorruptFileError, match=r"its content must take at most 5,000,000 bytes; it would take 8,"
    ):
        decode(bomb, CASE, TINY.seed, 1, "the file")


def number(value, length=0):
    """As Thrift writes it, of at least so many bytes."""
    value *= 2
    digits = []
    while value or len(digits) < length or not digits:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits[:-1], digits[-1] & 127])


def test_texts_that_share_beginnings_are_not_unpacked(never_unpacked):
    """Each takes a byte in the file, and a thousand in memory."""
    texts = ["a" * length for length in range(3000)]
    bomb = computed({"x": texts}, use_dictionary=False, column_encoding={"x": "DELTA_BYTE_ARRAY"})
    assert len(bomb) < 0.01 * sum(map(len, texts))
    with pytest.raises(CorruptFileError, match="encoding that is not read here"):
        decode(bomb, COMPUTED, 1, 0, "the file")


def test_what_is_no_file_cannot_hold_up_a_folder_without_a_description(store):
    path = store.path(CASE, 0)
    path.unlink()
    os.mkfifo(path)
    (store.directory / "experiment.json").unlink()
    with Store.opened(store.directory.parent, TINY) as opened:
        assert "is not a file" in opened.status(CASE).damaged[0]


COMPUTED = dicing().cases[0]


def computed(columns, **options):
    data = encode(Replication(throw_dice(0, throws=5, sides=6), 1.0), COMPUTED, 1, 0)
    return with_facts_of(data, pa.table(columns), compression="zstd", **options)


def test_the_size_of_a_page_is_its_own(never_unpacked, monkeypatch):
    """Whatever the file's description says: this is what the reader would unpack."""
    monkeypatch.setattr("brmdp.runs.parquet.LARGEST", 100_000)
    bomb = computed({"x": ["a" * 1_000_000]}, use_dictionary=False)
    assert len(bomb) < 10_000
    with pytest.raises(
        CorruptFileError, match="its content must take at most 100,000 bytes; it would take 1,0"
    ):
        decode(bomb, COMPUTED, 1, 0, "the file")


def test_a_text_repeated_is_counted_as_often(monkeypatch):
    monkeypatch.setattr("brmdp.runs.parquet.LARGEST", 100_000)
    bomb = computed({"x": ["a" * 10_000] * 100})
    with pytest.raises(
        CorruptFileError,
        match="its texts must take at most 100,000 bytes; they would take 1,000,000",
    ):
        decode(bomb, COMPUTED, 1, 0, "the file")


def test_what_would_not_be_read_is_not_written(record, monkeypatch):
    monkeypatch.setattr("brmdp.runs.parquet.LARGEST", 5_000)
    with pytest.raises(
        ExperimentError, match=r"run 1 of adaptive is too large to be kept: .* at most 5,000 bytes"
    ):
        encode(record, CASE, TINY.seed, 1)


def test_nested_columns_are_no_replication(never_unpacked):
    with pytest.raises(CorruptFileError, match="column x must hold numbers, booleans or text"):
        decode(computed({"x": [[1.0, 2.0]]}), COMPUTED, 1, 0, "the file")


@pytest.mark.parametrize("name", ["run", "arrays", "class", "not a name", "x;y", ""])
def test_columns_of_others_have_names_that_can_be_used(name):
    data = sealed({name: [1.0, 2.0]})
    with pytest.raises(CorruptFileError, match="the file is damaged: no column can have the name"):
        decode(data, COMPUTED, 1, 0, "the file")


def test_entries_of_a_replication_are_all_there():
    """A missing integer would be read as NaN, and count as anything."""
    with pytest.raises(CorruptFileError, match="the file is damaged: column points lacks entries"):
        decode(sealed({"points": [1, None, 3]}), COMPUTED, 1, 0, "the file")


def sealed(columns):
    """A replication with columns that no program made, under a digest that fits."""
    table = pa.table(columns)
    facts = pq.read_schema(io.BytesIO(computed(columns))).metadata[b"brmdp"].decode()
    return under_seal(table, facts)


def with_nulls(data, name, rows):
    """A sealed file in which a column lacks the entries of some rows."""
    table = pq.read_table(io.BytesIO(data))
    facts = table.schema.metadata[b"brmdp"].decode()
    entries = table[name].to_pylist()
    for row in rows:
        entries[row] = None
    position = table.schema.get_field_index(name)
    field = table.schema.field(position)
    table = table.set_column(position, field, pa.array(entries, field.type))
    return under_seal(table, facts)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("state", [0]),
        ("action", [59]),
        ("reward", [3, 4]),
        ("episode", range(60)),
        ("next_state", [1]),
        ("true_regret", range(59)),
        ("robust_regret", [7]),
    ],
)
def test_steps_are_all_there(data, name, rows):
    with pytest.raises(CorruptFileError, match=f"the file is damaged: column {name} lacks entries"):
        decode(with_nulls(data, name, rows), CASE, TINY.seed, 1, "the file")


@pytest.mark.parametrize("name", ["next_state", "true_regret", "status", "quantile_value"])
def test_what_may_be_absent_is_not_damage(data, name):
    found = decode(with_nulls(data, name, range(60)), CASE, TINY.seed, 1, "the file")
    assert found.table[name].null_count == 60


def test_columns_without_rows_have_the_declared_types():
    for empty in (Throws.of_rows([]), Throws.concatenated([])):
        kinds = {name: array.dtype.kind for name, array in empty.arrays().items()}
        assert kinds == {"throw": "i", "points": "i", "share": "f", "high": "b", "word": "U"}
        assert all(array.shape == (0,) for array in empty.arrays().values())
    rows = [{"throw": 0, "points": 3, "share": 0.5, "high": False, "word": "3 of 6"}]
    assert Throws.of_rows(rows).points.dtype == np.int64


def test_columns_of_an_unknown_program_are_declared_as_they_are_stored():
    table = pa.table(
        {
            "single": pa.array([0.5], pa.float32()),
            "double": pa.array([0.5], pa.float64()),
            "small": pa.array([1], pa.int8()),
            "flag": [True],
            "word": ["x"],
        }
    )
    declared = columns_of(_columns_class(replace(COMPUTED, program="nobody:KNOWS"), table))
    assert {one.name: one.type for one in declared} == {
        "single": "number",
        "double": "number",
        "small": "integer",
        "flag": "boolean",
        "word": "text",
    }


def test_texts_are_told_apart_by_their_lengths():
    """A bar between two texts, or in one of them: other content, and another digest."""
    first, second = ({"word": words} for words in (["a|b", "c", "é"], ["a", "b|c", "é"]))
    unknown = replace(COMPUTED, program="nobody:KNOWS")

    def read(columns):
        facts = json.loads(pq.read_schema(io.BytesIO(computed(columns))).metadata[b"brmdp"])
        facts["case"]["program"] = unknown.program
        data = under_seal(pa.table(columns), json.dumps(facts, sort_keys=True))
        return decode(data, unknown, 1, 0, "the file")

    assert read(first).content != read(second).content
    data = encode(Replication(throw_dice(0, throws=5, sides=6), 1.0), COMPUTED, 1, 0)
    table = pq.read_table(io.BytesIO(data))
    assert decode(data, COMPUTED, 1, 0, "it").content == content_digest(table, lengths=True)


def test_page_sizes_agree_with_what_the_writer_says(data):
    """An independent count.

    The sum over pages is the unpacked size of the column without its headers.
    """
    metadata = pq.read_metadata(io.BytesIO(data)).row_group(0)
    for number in range(metadata.num_columns):
        chunk = metadata.column(number)
        begin = chunk.dictionary_page_offset or chunk.data_page_offset
        size, values = _pages(data, begin, begin + chunk.total_compressed_size)
        headers = chunk.total_uncompressed_size - size
        assert 0 < headers < 300
        assert chunk.num_values <= values <= 2 * chunk.num_values, "the dictionary's count, too"
        with pytest.raises(CorruptFileError, match="the pages of a column do not fill its place"):
            _pages(data, begin, begin + chunk.total_compressed_size - 1)


def test_what_is_no_file_is_damage(store):
    path = store.path(CASE, 0)
    path.unlink()
    os.mkfifo(path)
    assert "is not a file" in store.status(CASE).damaged[0]


def test_a_huge_file_is_not_read(store, monkeypatch):
    monkeypatch.setattr("brmdp.runs.store.LARGEST", 1000)
    assert "must have at most 1,000 bytes" in store.status(CASE).damaged[0]


def test_a_description_that_is_no_file_is_refused_at_once(store):
    description = store.directory / "experiment.json"
    description.unlink()
    os.mkfifo(description)
    with (
        pytest.raises(ExperimentError, match="it is not a regular file"),
        Store.opened(store.directory.parent, TINY),
    ):
        pass


# --- numbers of runs ------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [[2, 0], (2, 0), np.array([2, 0]), np.array([2, 0], dtype="u1")])
def test_runs_are_chosen_by_integers_of_any_kind(undisturbed, runs):
    records = undisturbed.records("psrl", runs)
    assert records.run.tolist() == [2, 0]
    np.testing.assert_array_equal(records.state, undisturbed.records("psrl").state[[2, 0]])
    assert undisturbed.belief_after("psrl", runs[0]) is not None


@pytest.mark.parametrize(
    "runs", [[], [0.0], "01", [True], np.array([True]), [-1], [0, 0], 1, [[0]], [None], [10**9]]
)
def test_runs_that_are_no_numbers_of_runs_are_refused(undisturbed, runs):
    with pytest.raises(
        InvalidInputError,
        match="runs must name at least one run, by distinct non-negative integers; got",
    ):
        undisturbed.records("psrl", runs)


@pytest.mark.parametrize("run", [0.0, "0", True, -1, [0], None])
def test_a_run_that_is_no_number_of_a_run_is_refused(undisturbed, run):
    with pytest.raises(InvalidInputError, match="run must"):
        undisturbed.belief_after("psrl", run)
