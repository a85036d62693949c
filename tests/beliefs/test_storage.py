"""Saved beliefs: lossless, complete or absent, and any damage is a CorruptFileError."""

import io
import os
import pickle
import stat
import tracemalloc
import zipfile

import numpy as np
import pytest

import brmdp
from brmdp.beliefs.storage import MAX_ARRAYS, load_arrays, save_arrays


def dirichlet():
    rng = np.random.default_rng(0)
    concentration = rng.gamma(0.5, size=(3, 2, 3)) + 1e-3
    concentration[0, 1, 2] = 0.0
    concentration[2, 0, 0] = np.nextafter(0.1, 1.0)
    admissible = np.ones((3, 2), dtype=bool)
    admissible[1, 1] = False
    belief = brmdp.DirichletBelief(concentration, admissible=admissible)
    belief.observe([0, 0, 2, 2], [0, 1, 1, 1], [1, 0, 2, 2])
    return belief


def disturbance():
    outcomes = np.array([[[0, 1, 1], [2, 2, 0]], [[0, 1, 2], [-1, -1, -1]], [[2, 1, 0], [0, 0, 1]]])
    belief = brmdp.DisturbanceBelief(outcomes, [0.1, 1.7, np.pi])
    belief.observe_disturbance([0, 0, 2])
    return belief


def censored():
    outcomes = np.array(
        [[[0, 1, 1, 1], [2, 0, 0, 0]], [[0, 1, 2, 2], [-1] * 4], [[2, 1, 0, 0]] * 2]
    )
    belief = brmdp.CensoredDisturbanceBelief(outcomes, [0.1, 1.7, np.pi, 1e-3])
    belief.observe([0, 0, 2], [0, 0, 0], [0, 1, 0])
    belief.observe_at_least(2)
    return belief


def scenario():
    kernels = np.random.default_rng(1).dirichlet(np.ones(3), size=(4, 3, 2))
    belief = brmdp.ScenarioBelief(kernels, [0.1, 0.2, 0.3, 0.4])
    belief.observe([0, 1], [1, 1], [2, 0])
    return belief


MAKERS = [dirichlet, disturbance, censored, scenario]


def content(belief):
    """Everything observable, as bytes; two beliefs with the same content are the same."""
    pattern = belief.pattern
    parts = [
        type(belief).__name__.encode(),
        np.array([pattern.n_states, pattern.n_actions]).tobytes(),
        pattern.indptr.astype(np.int64).tobytes(),
        pattern.next_states.astype(np.int64).tobytes(),
        belief.mean_entries().tobytes(),
        belief.sample(3, rng=0, format="flat").tobytes(),
    ]
    if isinstance(belief, brmdp.ScenarioBelief):
        parts += [belief.scenario_entries.tobytes(), belief.weights.tobytes()]
    elif isinstance(belief, brmdp.CensoredDisturbanceBelief):
        parts += [belief.outcomes.tobytes(), belief.counts().tobytes()]
        parts += [belief.at_least_counts().tobytes(), *(h.tobytes() for h in belief.hazards())]
    elif isinstance(belief, brmdp.DisturbanceBelief):
        parts += [
            belief.outcomes.tobytes(),
            belief.concentration().tobytes(),
            belief.counts().tobytes(),
        ]
    else:
        parts += [belief.concentration("flat").tobytes(), belief.counts("flat").tobytes()]
    return tuple(parts)


@pytest.fixture(params=MAKERS, ids=lambda make: make.__name__)
def saved(request, tmp_path):
    belief = request.param()
    path = tmp_path / "belief.npz"
    belief.save(path)
    return belief, path


def test_round_trip_is_bit_identical(saved):
    belief, path = saved
    loaded = type(belief).load(path)
    assert content(loaded) == content(belief)
    loaded.save(path)
    assert content(type(belief).load(str(path))) == content(belief)
    assert content(loaded.copy()) == content(belief)


def test_a_loaded_posterior_learns_on_like_the_original():
    belief = dirichlet()
    twin = belief.copy()
    for p in (belief, twin):
        p.observe([0, 2], [0, 0], [0, 0])
    assert content(belief) == content(twin)
    assert content(belief) != content(dirichlet())


def test_a_loaded_posterior_plans_like_the_original(saved):
    belief, path = saved
    rewards = np.arange(18.0).reshape(3, 2, 3)
    risk = brmdp.Quantile(0.3)
    one = brmdp.plan(belief, rewards, 0.9, risk=risk).values
    two = brmdp.plan(type(belief).load(path), rewards, 0.9, risk=risk).values
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("size", [1e-30, 0.1, 1.0 + 2**-52, 1e12])
def test_no_bit_of_a_concentration_is_lost(tmp_path, size):
    concentration = np.full((2, 1, 2), size)
    belief = brmdp.DirichletBelief(concentration)
    belief.save(tmp_path / "p")
    loaded = brmdp.DirichletBelief.load(tmp_path / "p")
    assert loaded.concentration().tobytes() == concentration.tobytes()


def test_saving_leaves_exactly_one_file_and_overwrites_completely(saved):
    belief, path = saved
    assert os.listdir(path.parent) == [path.name]
    path.write_bytes(b"old")
    belief.save(path)
    assert os.listdir(path.parent) == [path.name]
    assert content(type(belief).load(path)) == content(belief)


def test_a_failed_save_leaves_the_old_file_and_no_litter(saved, monkeypatch):
    belief, path = saved
    before = path.read_bytes()

    def broken(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np.lib.format, "write_array", broken)
    with pytest.raises(OSError, match="disk full"):
        belief.save(path)
    assert os.listdir(path.parent) == [path.name]
    assert path.read_bytes() == before


def test_the_file_holds_no_pickle(saved):
    _, path = saved
    with np.load(path, allow_pickle=False) as archive:
        for name in archive.files:
            assert archive[name].dtype.kind in "iufU"


def test_a_missing_file_is_file_not_found(saved):
    belief, path = saved
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npz"):
        type(belief).load(path.with_name("nowhere.npz"))


def test_a_missing_folder_is_file_not_found_on_saving(saved):
    belief, path = saved
    with pytest.raises(FileNotFoundError):
        belief.save(path.parent / "nowhere" / "p.npz")


# --- damage ---------------------------------------------------------------------------------------


def assert_refused_or_identical(belief, path):
    """Damage is refused by an error that names the file.

    Damage to bytes that carry nothing, such as a time stamp, may go unnoticed.
    """
    try:
        loaded = type(belief).load(path)
    except brmdp.CorruptFileError as error:
        loaded, message = None, str(error)
    if loaded is None:
        assert path.name in message
        return True
    assert content(loaded) == content(belief)
    return False


def test_every_truncation_is_refused(saved):
    belief, path = saved
    whole = path.read_bytes()
    lengths = sorted(
        {
            *range(0, len(whole), max(1, len(whole) // 150)),
            *range(40),
            len(whole) - 1,
            len(whole) - 2,
        }
    )
    for length in lengths:
        path.write_bytes(whole[:length])
        with pytest.raises(brmdp.CorruptFileError, match=r"belief\.npz"):
            type(belief).load(path)


@pytest.mark.long
@pytest.mark.parametrize("step", [9, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("flip", [0xFF, 0x01])
def test_flipped_bytes_never_give_another_posterior(saved, flip, step):
    belief, path = saved
    whole = path.read_bytes()
    scanned, edge = range(flip % 3, len(whole), step), 64
    refused = 0
    for position in sorted({*range(edge), *scanned, *range(len(whole) - edge, len(whole))}):
        damaged = bytearray(whole)
        damaged[position] ^= flip
        path.write_bytes(damaged)
        found = assert_refused_or_identical(belief, path)
        refused += found and position in scanned
    assert refused > 0.7 * len(scanned)


def test_lost_and_inserted_blocks_never_give_another_posterior(saved):
    belief, path = saved
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    for _ in range(80):
        begin, length = int(rng.integers(len(whole))), int(rng.integers(1, 64))
        for damaged in (
            whole[:begin] + whole[begin + length :],
            whole[:begin] + bytes(length) + whole[begin + length :],
            whole[:begin] + rng.bytes(length) + whole[begin:],
        ):
            path.write_bytes(damaged)
            assert_refused_or_identical(belief, path)


def rewrite(path, change):
    """Rewrite the archive with valid checksums after ``change`` has altered its arrays."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    change(arrays)
    with path.open("wb") as stream:
        np.savez(stream, **arrays)


def test_an_altered_array_in_a_valid_archive_is_refused(saved):
    belief, path = saved
    whole = path.read_bytes()
    with np.load(path) as archive:
        names = archive.files
    for name in names:
        path.write_bytes(whole)

        def change(arrays, name=name):
            array = arrays[name]
            if array.dtype.kind == "U":
                arrays[name] = np.array(str(array)[::-1])
            else:
                flat = array.copy().reshape(-1)
                flat[-1] += 1
                arrays[name] = flat.reshape(array.shape)

        rewrite(path, change)
        with pytest.raises(brmdp.CorruptFileError, match=r"belief\.npz"):
            type(belief).load(path)
        path.write_bytes(whole)
        rewrite(path, lambda arrays, name=name: arrays.pop(name))
        with pytest.raises(brmdp.CorruptFileError, match=r"belief\.npz"):
            type(belief).load(path)
    path.write_bytes(whole)
    rewrite(path, lambda arrays: arrays.update(extra=np.zeros(3)))
    with pytest.raises(brmdp.CorruptFileError, match=r"belief\.npz"):
        type(belief).load(path)


def test_a_newer_format_is_refused_by_name(saved):
    belief, path = saved
    rewrite(path, lambda arrays: arrays.update(format=np.array("brmdp-999")))
    with pytest.raises(brmdp.CorruptFileError, match=r"brmdp-999.*brmdp-1"):
        type(belief).load(path)


@pytest.mark.parametrize(
    ("make", "other"), [(make, other) for make in MAKERS for other in MAKERS if make is not other]
)
def test_another_kind_is_refused_by_name(tmp_path, make, other):
    path = tmp_path / "belief.npz"
    make().save(path)
    wrong = type(other())
    with pytest.raises(brmdp.CorruptFileError, match=f"{type(make()).__name__}.*{wrong.__name__}"):
        wrong.load(path)


def foreign_files(folder):
    empty = folder / "empty"
    empty.write_bytes(b"")
    text = folder / "text"
    text.write_text("state,action,next\n0,0,1\n")
    noise = folder / "noise"
    noise.write_bytes(np.random.default_rng(0).bytes(3000))
    npy = folder / "array.npy"
    np.save(npy, np.ones((2, 1, 2)))
    npz = folder / "arrays.npz"
    np.savez(npz, concentration=np.ones((2, 1, 2)))
    archive = folder / "archive.zip"
    with zipfile.ZipFile(archive, "w") as stream:
        stream.writestr("readme.txt", "nothing of ours")
    void = folder / "void.zip"
    with zipfile.ZipFile(void, "w"):
        pass
    pickled = folder / "pickled"
    pickled.write_bytes(pickle.dumps({"counts": [1, 2, 3]}))
    objects = folder / "objects.npz"
    np.savez(objects, format=np.array({"a": 1}, dtype=object))
    return [empty, text, noise, npy, npz, archive, void, pickled, objects, folder]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("index", range(10))
def test_what_is_not_ours_is_refused(tmp_path, make, index):
    path = foreign_files(tmp_path)[index]
    with pytest.raises(brmdp.CorruptFileError, match=path.name):
        type(make()).load(path)


# --- files with a correct digest and invalid content ----------------------------------------------


def forged(path, make, **changes):
    """A file with a correct digest of altered arrays, as a faulty writer would leave."""
    make().save(path)
    kind = type(make()).__name__
    arrays = load_arrays(path, kind)
    for name, value in changes.items():
        arrays[name] = value(arrays[name])
    save_arrays(path, kind, arrays)
    return type(make())


def test_an_unknown_array_with_a_correct_digest_is_refused(tmp_path):
    path = tmp_path / "forged.npz"
    save_arrays(path, "DirichletBelief", dirichlet().arrays() | {"extra": np.zeros(3)})
    with pytest.raises(brmdp.CorruptFileError, match="extra"):
        brmdp.DirichletBelief.load(path)


def last_set(value):
    def change(array):
        array = array.copy()
        array.reshape(-1)[-1] = value
        return array

    return change


@pytest.mark.parametrize(
    ("make", "name", "change"),
    [
        (dirichlet, "shape", lambda a: a[:1]),
        (dirichlet, "shape", lambda a: a + 1),
        (dirichlet, "shape", lambda a: -a),
        (dirichlet, "prior", last_set(np.nan)),
        (dirichlet, "prior", last_set(-1.0)),
        (dirichlet, "prior", lambda a: a[:-1]),
        (dirichlet, "prior", last_set(1e300)),
        (dirichlet, "prior", last_set(1.1e12)),
        (dirichlet, "prior", last_set(1e-31)),
        (dirichlet, "counts", last_set(2**61)),
        (dirichlet, "counts", last_set(10**12 + 1)),
        (dirichlet, "counts", last_set(-3)),
        (dirichlet, "counts", lambda a: a.astype(float)),
        (dirichlet, "counts", lambda a: a[:-1]),
        (dirichlet, "next_states", last_set(3)),
        (dirichlet, "next_states", lambda a: a[::-1].copy()),
        (dirichlet, "indptr", last_set(99)),
        (disturbance, "outcomes", last_set(7)),
        (disturbance, "outcomes", lambda a: a[0]),
        (disturbance, "prior", last_set(0.0)),
        (disturbance, "prior", lambda a: a[:-1]),
        (disturbance, "prior", last_set(1e300)),
        (disturbance, "counts", last_set(2**61)),
        (disturbance, "counts", last_set(-1)),
        (scenario, "weights", last_set(-0.5)),
        (scenario, "weights", last_set(np.nan)),
        (scenario, "weights", lambda a: 2 * a),
        (scenario, "weights", lambda a: a[:-1]),
        (scenario, "weights", lambda a: a.astype(np.float32)),
        (scenario, "probabilities", lambda a: 2 * a),
        (scenario, "probabilities", last_set(np.inf)),
        (scenario, "shape", lambda a: a + 1),
    ],
)
def test_nonsense_with_a_correct_digest_is_refused(tmp_path, make, name, change):
    cls = forged(tmp_path / "forged.npz", make, **{name: change})
    with pytest.raises(brmdp.CorruptFileError, match=r"forged\.npz"):
        cls.load(tmp_path / "forged.npz")


def test_the_largest_concentrations_and_counts_that_are_allowed_are_read(tmp_path):
    cls = forged(
        tmp_path / "p", dirichlet, prior=lambda a: np.full_like(a, 1e12), counts=last_set(10**12)
    )
    assert cls.load(tmp_path / "p").concentration("flat").max() == 2e12


# --- on any version of NumPy ----------------------------------------------------------------------


def test_files_of_numpy_2_0_and_2_1_are_read(saved):
    """There, np.savez took its keyword allow_pickle=False for an array of that name."""
    belief, path = saved
    stray = io.BytesIO()
    np.save(stray, np.array(False))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("allow_pickle.npy", stray.getvalue())
    assert content(type(belief).load(path)) == content(belief)


@pytest.mark.parametrize("value", [np.array(True), np.array([False]), np.array(0)])
def test_nothing_else_goes_under_that_name(saved, value):
    belief, path = saved
    stray = io.BytesIO()
    np.save(stray, value)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("allow_pickle.npy", stray.getvalue())
    with pytest.raises(brmdp.CorruptFileError, match="digest does not match"):
        type(belief).load(path)


def test_a_file_holds_what_was_given_and_the_header_alone(saved):
    belief, path = saved
    with zipfile.ZipFile(path) as archive:
        names = {name.removesuffix(".npy") for name in archive.namelist()}
    assert names == {"format", "kind", "digest", *belief.arrays()}


def test_objects_are_not_written(tmp_path):
    with pytest.raises(
        brmdp.InvalidInputError, match="odd must hold numbers or text to be saved; got dtype object"
    ):
        save_arrays(tmp_path / "p", "Something", {"odd": np.array([{}], dtype=object)})
    assert os.listdir(tmp_path) == []


# --- permissions and links ------------------------------------------------------------------------


def test_a_saved_file_has_ordinary_permissions_and_keeps_them(saved):
    belief, path = saved
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o640)
    belief.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_saving_through_a_link_replaces_what_it_points_to(saved):
    belief, path = saved
    link = path.with_name("link.npz")
    link.symlink_to(path.name)
    path.write_bytes(b"old")
    belief.save(link)
    assert link.is_symlink()
    assert content(type(belief).load(path)) == content(belief)


# --- files that claim more than they hold ---------------------------------------------------------


def npy_bytes(descr="<f8", shape=(2,), data=bytes(16), version=1):
    """An array file with any header."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return (
        b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 * version, "little") + text + data
    )


def with_member(path, data, name="prior.npy", **options):
    """The file with one member replaced."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    members[name] = data
    with zipfile.ZipFile(path, "w", **options) as archive:
        for member, stored in members.items():
            archive.writestr(member, stored)


def lying_archive(path, size):
    """An archive whose directory claims ``size`` bytes for an array of 16."""
    data = npy_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("prior.npy", data)
        archive.getinfo("prior.npy").file_size = archive.getinfo("prior.npy").compress_size = size


BOMBS = {
    "compressed": lambda path: with_member(
        path, npy_bytes(shape=(2**20,), data=bytes(2**23)), compression=zipfile.ZIP_DEFLATED
    ),
    "huge shape": lambda path: with_member(path, npy_bytes(shape=(10**12,))),
    "huge axes": lambda path: with_member(path, npy_bytes(shape=(2**33, 2**33, 2**33))),
    "negative axes": lambda path: with_member(path, npy_bytes(shape=(-1, -2))),
    "more data than the shape": lambda path: with_member(path, npy_bytes(data=bytes(1600))),
    "less data than the shape": lambda path: with_member(path, npy_bytes(data=bytes(8))),
    "items without size": lambda path: with_member(path, npy_bytes("<U0", (10**15,), b"")),
    "text of a gigabyte": lambda path: with_member(path, npy_bytes("<U268435456", (), bytes(16))),
    "objects": lambda path: with_member(path, npy_bytes("|O", (2,))),
    "records": lambda path: with_member(path, npy_bytes([("a", "<f8")], (2,))),
    "arrays in arrays": lambda path: with_member(
        path, npy_bytes([("a", "<f8", (10**6, 10**6))], (2,))
    ),
    "dates": lambda path: with_member(path, npy_bytes("<M8[s]", (2,))),
    "long header": lambda path: with_member(path, npy_bytes(shape=(1,) * 3000, version=2)),
    "deep header": lambda path: with_member(path, npy_bytes("(" * 3000, version=2)),
    "unknown version": lambda path: with_member(path, npy_bytes(version=3)),
    "a directory that lies": lambda path: lying_archive(path, 2**31 - 1),
    "too many arrays": lambda path: [
        with_member(path, npy_bytes()),
        zip_of(path, {f"a{k}.npy": npy_bytes() for k in range(MAX_ARRAYS + 1)}),
    ],
    "no array": lambda path: with_member(path, b"hello", "readme.txt"),
}


def zip_of(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_claims_more_than_it_holds_is_refused_before_it_is_read(tmp_path, bomb):
    path = tmp_path / "belief.npz"
    dirichlet().save(path)
    BOMBS[bomb](path)
    tracemalloc.start()
    try:
        with pytest.raises(brmdp.CorruptFileError, match=r"belief\.npz"):
            brmdp.DirichletBelief.load(path)
        assert tracemalloc.get_traced_memory()[1] < 3e6
    finally:
        tracemalloc.stop()


def test_the_same_file_without_a_lie_is_read(tmp_path):
    """The forger of the cases above can also write what is accepted."""
    path = tmp_path / "belief.npz"
    dirichlet().save(path)
    prior = dirichlet().arrays()["prior"]
    with_member(path, npy_bytes("<f8", prior.shape, prior.tobytes()))
    assert content(brmdp.DirichletBelief.load(path)) == content(dirichlet())


def test_what_is_no_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(brmdp.CorruptFileError, match="pipe is not a file"):
        brmdp.DirichletBelief.load(tmp_path / "pipe")


@pytest.mark.parametrize("name", ["format", "kind", "digest", "prior"])
def test_text_beyond_unicode_is_refused(tmp_path, name):
    content = {"format": "brmdp-1", "kind": "DirichletBelief", "digest": "0", "prior": "1"}
    arrays = {key: np.array(text) for key, text in content.items()}
    arrays[name] = np.array([0x110000], dtype=np.uint32).view("U1").reshape(())
    np.savez(tmp_path / "file.npz", **arrays)
    with pytest.raises(brmdp.CorruptFileError, match=f"{name}.npy must hold valid Unicode"):
        brmdp.DirichletBelief.load(tmp_path / "file.npz")


def test_what_interrupts_a_save_is_what_is_raised(saved, monkeypatch):
    """The error is not that an archive cannot be closed in the middle of a member."""
    belief, path = saved
    opened = zipfile.ZipFile.open

    def interrupted(*args, **kwargs):
        member = opened(*args, **kwargs)  # noqa: F841 - still open
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        belief.save(path)
    monkeypatch.undo()
    type(belief).load(path)
