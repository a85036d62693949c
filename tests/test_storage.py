"""Saved posteriors: lossless, complete or absent, and any damage is a CorruptFileError, never another posterior."""

import os
import pickle
import zipfile

import numpy as np
import pytest

import brmdp
from brmdp.posterior.storage import load_arrays, save_arrays


def dirichlet():
    rng = np.random.default_rng(0)
    concentration = rng.gamma(0.5, size=(3, 2, 3)) + 1e-3
    concentration[0, 1, 2] = 0.0
    concentration[2, 0, 0] = np.nextafter(0.1, 1.0)
    admissible = np.ones((3, 2), dtype=bool)
    admissible[1, 1] = False
    posterior = brmdp.DirichletPosterior(concentration, admissible=admissible)
    posterior.observe([0, 0, 2, 2], [0, 1, 1, 1], [1, 0, 2, 2])
    return posterior


def disturbance():
    outcomes = np.array([[[0, 1, 1], [2, 2, 0]], [[0, 1, 2], [-1, -1, -1]], [[2, 1, 0], [0, 0, 1]]])
    posterior = brmdp.DisturbancePosterior(outcomes, [0.1, 1.7, np.pi])
    posterior.observe_disturbance([0, 0, 2])
    return posterior


def scenario():
    kernels = np.random.default_rng(1).dirichlet(np.ones(3), size=(4, 3, 2))
    posterior = brmdp.ScenarioPosterior(kernels, [0.1, 0.2, 0.3, 0.4])
    posterior.observe([0, 1], [1, 1], [2, 0])
    return posterior


MAKERS = [dirichlet, disturbance, scenario]


def content(posterior):
    """Everything observable, as bytes; two posteriors with the same content are the same."""
    pattern = posterior.pattern
    parts = [
        type(posterior).__name__.encode(),
        np.array([pattern.n_states, pattern.n_actions]).tobytes(),
        pattern.indptr.astype(np.int64).tobytes(),
        pattern.next_states.astype(np.int64).tobytes(),
        posterior.mean_entries().tobytes(),
        posterior.sample(3, rng=0, format="flat").tobytes(),
    ]
    if isinstance(posterior, brmdp.ScenarioPosterior):
        parts += [posterior.scenario_entries.tobytes(), posterior.weights.tobytes()]
    elif isinstance(posterior, brmdp.DisturbancePosterior):
        parts += [posterior.outcomes.tobytes(), posterior.concentration().tobytes(), posterior.counts().tobytes()]
    else:
        parts += [posterior.concentration("flat").tobytes(), posterior.counts("flat").tobytes()]
    return tuple(parts)


@pytest.fixture(params=MAKERS, ids=lambda make: make.__name__)
def saved(request, tmp_path):
    posterior = request.param()
    path = tmp_path / "posterior.npz"
    posterior.save(path)
    return posterior, path


def test_round_trip_is_bit_identical(saved):
    posterior, path = saved
    loaded = type(posterior).load(path)
    assert content(loaded) == content(posterior)
    loaded.save(path)
    assert content(type(posterior).load(str(path))) == content(posterior)
    assert content(loaded.copy()) == content(posterior)


def test_a_loaded_posterior_learns_on_like_the_original():
    posterior = dirichlet()
    twin = posterior.copy()
    for p in (posterior, twin):
        p.observe([0, 2], [0, 0], [0, 0])
    assert content(posterior) == content(twin)
    assert content(posterior) != content(dirichlet())


def test_a_loaded_posterior_plans_like_the_original(saved):
    posterior, path = saved
    rewards = np.arange(18.0).reshape(3, 2, 3)
    risk = brmdp.Quantile(0.3)
    one = brmdp.plan(posterior, rewards, 0.9, risk=risk).values
    two = brmdp.plan(type(posterior).load(path), rewards, 0.9, risk=risk).values
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("size", [1e-30, 0.1, 1.0 + 2**-52, 1e12])
def test_no_bit_of_a_concentration_is_lost(tmp_path, size):
    concentration = np.full((2, 1, 2), size)
    posterior = brmdp.DirichletPosterior(concentration)
    posterior.save(tmp_path / "p")
    loaded = brmdp.DirichletPosterior.load(tmp_path / "p")
    assert loaded.concentration().tobytes() == concentration.tobytes()


def test_saving_leaves_exactly_one_file_and_overwrites_completely(saved):
    posterior, path = saved
    assert os.listdir(path.parent) == [path.name]
    path.write_bytes(b"old")
    posterior.save(path)
    assert os.listdir(path.parent) == [path.name]
    assert content(type(posterior).load(path)) == content(posterior)


def test_a_failed_save_leaves_the_old_file_and_no_litter(saved, monkeypatch):
    posterior, path = saved
    before = path.read_bytes()

    def broken(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises(OSError, match="disk full"):
        posterior.save(path)
    assert os.listdir(path.parent) == [path.name]
    assert path.read_bytes() == before


def test_the_file_holds_no_pickle(saved):
    _, path = saved
    with np.load(path, allow_pickle=False) as archive:
        for name in archive.files:
            assert archive[name].dtype.kind in "iufU"


def test_a_missing_file_is_file_not_found(saved):
    posterior, path = saved
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npz"):
        type(posterior).load(path.with_name("nowhere.npz"))


def test_a_missing_folder_is_file_not_found_on_saving(saved):
    posterior, path = saved
    with pytest.raises(FileNotFoundError):
        posterior.save(path.parent / "nowhere" / "p.npz")


# --- damage ------------------------------------------------------------------------------------------


def assert_refused_or_identical(posterior, path):
    """Damage to bytes that carry nothing (a time stamp) may go unnoticed; any other is refused, naming the file."""
    try:
        loaded = type(posterior).load(path)
    except brmdp.CorruptFileError as error:
        loaded, message = None, str(error)
    if loaded is None:
        assert path.name in message
        return True
    assert content(loaded) == content(posterior)
    return False


def test_every_truncation_is_refused(saved):
    posterior, path = saved
    whole = path.read_bytes()
    lengths = sorted({*range(0, len(whole), max(1, len(whole) // 150)), *range(40), len(whole) - 1, len(whole) - 2})
    for length in lengths:
        path.write_bytes(whole[:length])
        with pytest.raises(brmdp.CorruptFileError, match=r"posterior\.npz"):
            type(posterior).load(path)


@pytest.mark.parametrize("flip", [0xFF, 0x01])
def test_flipped_bytes_never_give_another_posterior(saved, flip):
    posterior, path = saved
    whole = path.read_bytes()
    positions = range(flip % 3, len(whole), 3)
    refused = 0
    for position in positions:
        damaged = bytearray(whole)
        damaged[position] ^= flip
        path.write_bytes(damaged)
        refused += assert_refused_or_identical(posterior, path)
    assert refused > 0.7 * len(positions)


def test_lost_and_inserted_blocks_never_give_another_posterior(saved):
    posterior, path = saved
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
            assert_refused_or_identical(posterior, path)


def rewrite(path, change):
    """Rewrite the archive with valid checksums after ``change`` has altered its arrays."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    change(arrays)
    with path.open("wb") as stream:
        np.savez(stream, **arrays)


def test_an_altered_array_in_a_valid_archive_is_refused(saved):
    posterior, path = saved
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
        with pytest.raises(brmdp.CorruptFileError, match=r"posterior\.npz"):
            type(posterior).load(path)
        path.write_bytes(whole)
        rewrite(path, lambda arrays, name=name: arrays.pop(name))
        with pytest.raises(brmdp.CorruptFileError, match=r"posterior\.npz"):
            type(posterior).load(path)
    path.write_bytes(whole)
    rewrite(path, lambda arrays: arrays.update(extra=np.zeros(3)))
    with pytest.raises(brmdp.CorruptFileError, match=r"posterior\.npz"):
        type(posterior).load(path)


def test_a_newer_format_is_refused_by_name(saved):
    posterior, path = saved
    rewrite(path, lambda arrays: arrays.update(format=np.array("brmdp-999")))
    with pytest.raises(brmdp.CorruptFileError, match=r"brmdp-999.*brmdp-1"):
        type(posterior).load(path)


@pytest.mark.parametrize(("make", "other"), [(make, other) for make in MAKERS for other in MAKERS if make is not other])
def test_another_kind_is_refused_by_name(tmp_path, make, other):
    path = tmp_path / "posterior.npz"
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


# --- files whose digest is right but whose content makes no sense ------------------------------------


def forged(path, make, **changes):
    """A file with a correct digest over altered arrays, as a faulty writer would leave."""
    make().save(path)
    kind = type(make()).__name__
    arrays = load_arrays(path, kind)
    for name, value in changes.items():
        arrays[name] = value(arrays[name])
    save_arrays(path, kind, arrays)
    return type(make())


def test_an_unknown_array_with_a_correct_digest_is_refused(tmp_path):
    path = tmp_path / "forged.npz"
    save_arrays(path, "DirichletPosterior", dirichlet().arrays() | {"extra": np.zeros(3)})
    with pytest.raises(brmdp.CorruptFileError, match="extra"):
        brmdp.DirichletPosterior.load(path)


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
        (disturbance, "counts", last_set(-1)),
        (scenario, "weights", last_set(-0.5)),
        (scenario, "weights", last_set(np.nan)),
        (scenario, "weights", lambda a: 2 * a),
        (scenario, "weights", lambda a: a[:-1]),
        (scenario, "probabilities", lambda a: 2 * a),
        (scenario, "probabilities", last_set(np.inf)),
        (scenario, "shape", lambda a: a + 1),
    ],
)
def test_nonsense_with_a_correct_digest_is_refused(tmp_path, make, name, change):
    cls = forged(tmp_path / "forged.npz", make, **{name: change})
    with pytest.raises(brmdp.CorruptFileError, match=r"forged\.npz"):
        cls.load(tmp_path / "forged.npz")
