"""Files are complete or absent, follow links, keep permissions and leave nothing behind."""

import errno
import hashlib
import os
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import brmdp
from brmdp import _files
from brmdp._files import digest, write_atomically


def writing(data):
    return lambda stream: stream.write(data)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def names(folder):
    return sorted(os.listdir(folder))


@pytest.fixture
def umask():
    """Set the umask for the test, since the machine's is unknown."""
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def hidden_names(path):
    """Names of the hidden files next to ``path`` while it is being written."""
    seen = []

    def write(stream):
        seen.extend(set(os.listdir(path.parent)) - {path.name})
        stream.write(b"whole")

    write_atomically(path, write)
    return seen


def test_the_content_arrives_and_nothing_else_stays(tmp_path):
    path = tmp_path / "file"
    for data in (b"one", b"", b"three" * 1000):
        write_atomically(path, writing(data))
        assert path.read_bytes() == data
        assert names(tmp_path) == ["file"]


def test_a_new_file_has_the_permissions_of_new_files(tmp_path, umask):
    write_atomically(tmp_path / "file", writing(b"x"))
    assert mode(tmp_path / "file") == 0o666 & ~umask


@pytest.mark.parametrize("bits", [0o600, 0o664, 0o440, 0o755])
def test_a_replaced_file_keeps_its_permissions(tmp_path, umask, bits):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(bits)
    write_atomically(path, writing(b"new"))
    assert path.read_bytes() == b"new"
    assert mode(path) == bits


def test_what_is_private_is_private_while_it_is_written(tmp_path, umask):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o600)
    seen = []
    write_atomically(
        path, lambda stream: seen.append(stat.S_IMODE(os.fstat(stream.fileno()).st_mode))
    )
    assert seen == [0o600]


def test_a_link_is_followed_and_stays(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target = folder / "target"
    target.write_bytes(b"old")
    (tmp_path / "middle").symlink_to("elsewhere/target")
    link = tmp_path / "link"
    link.symlink_to("middle")
    write_atomically(link, writing(b"new"))
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == ["elsewhere", "link", "middle"]
    assert names(folder) == ["target"]


def test_a_link_to_a_file_that_is_not_there_yet_is_followed(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("target")
    write_atomically(link, writing(b"new"))
    assert link.is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "disk full"), KeyboardInterrupt(), ValueError("odd")]
)
def test_a_failure_leaves_all_as_it_was(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write(stream):
        stream.write(b"half")
        raise error

    with pytest.raises(type(error)):
        write_atomically(path, write)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "file"
    (name,) = hidden_names(path)
    for _ in range(15):
        (tmp_path / name).write_bytes(
            b"unfinished" * 100
        )  # as a killed process leaves it: its lock is gone
        (tmp_path / name.replace("-0", "-3")).write_bytes(b"unfinished")
        write_atomically(path, writing(b"new"))
        assert path.read_bytes() == b"new"
        assert names(tmp_path) == ["file"]


def test_a_file_that_another_is_writing_is_left_to_it(tmp_path):
    """Locks belong to open files, so two writers in one process stand for two processes."""
    path = tmp_path / "file"
    inside = []

    def outer(stream):
        stream.write(b"outer, ")
        stream.flush()
        write_atomically(path, writing(b"inner"))
        inside.append(path.read_bytes())
        write_atomically(tmp_path / "other", writing(b"other"))
        stream.write(b"whole")

    write_atomically(path, outer)
    assert inside == [b"inner"]
    assert path.read_bytes() == b"outer, whole"
    assert names(tmp_path) == ["file", "other"]


def test_many_writers_at_a_time_never_mix(tmp_path):
    path = tmp_path / "file"
    contents = {bytes([65 + k]) * (3000 + k) for k in range(12)}
    failures = []

    def write(stream, data):
        for begin in range(0, len(data), 500):
            stream.write(data[begin : begin + 500])
            stream.flush()

    def work(data):
        try:
            for _ in range(12):
                write_atomically(path, lambda stream: write(stream, data))
                assert path.read_bytes() in contents
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(data,)) for data in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP])
def test_a_disk_without_locks_will_do(tmp_path, monkeypatch, umask, code):
    def refuse(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(_files.fcntl, "flock", refuse)
    for data in (b"one", b"two"):
        write_atomically(tmp_path / "file", writing(data))
        assert (tmp_path / "file").read_bytes() == data
        assert names(tmp_path) == ["file"]
        assert mode(tmp_path / "file") == 0o666 & ~umask


def test_hidden_names_that_are_taken_by_something_else_are_left_alone(tmp_path):
    path = tmp_path / "file"
    (name,) = hidden_names(path)
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    (tmp_path / name).symlink_to("precious")
    (tmp_path / name.replace("-0", "-1")).mkdir()
    os.mkfifo(tmp_path / name.replace("-0", "-2"))
    write_atomically(path, writing(b"new"))
    assert path.read_bytes() == b"new"
    assert precious.read_bytes() == b"precious"
    assert len(names(tmp_path)) == 5


def test_a_second_name_of_a_hidden_file_is_never_written_through(tmp_path):
    path = tmp_path / "file"
    (name,) = hidden_names(path)
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    os.link(precious, tmp_path / name)
    write_atomically(path, writing(b"new"))
    assert precious.read_bytes() == b"precious"


@pytest.mark.parametrize("length", [1, 200, 201, 255])
def test_names_of_any_allowed_length(tmp_path, length):
    path = tmp_path / ("n" * length)
    write_atomically(path, writing(b"x"))
    assert names(tmp_path) == [path.name]


def test_what_is_no_file_is_refused(tmp_path):
    for path in (tmp_path, "/dev/null"):
        with pytest.raises(brmdp.InvalidInputError, match="path must be a file"):
            write_atomically(path, writing(b"x"))
    assert not stat.S_ISREG(os.stat("/dev/null").st_mode)
    for path in (None, 3.5, "a\0b"):
        with pytest.raises(brmdp.InvalidInputError, match="path must be the name of a file"):
            write_atomically(path, writing(b"x"))
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "nowhere" / "file", writing(b"x"))


def test_paths_may_be_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_atomically("file", writing(b"x"))
    assert Path("file").read_bytes() == b"x"


def test_the_digest_is_that_of_the_joined_parts():
    assert (
        digest(["é|", b"\x00\xff", "end"])
        == hashlib.sha256("é|".encode() + b"\x00\xffend").hexdigest()
    )
    assert digest([]) == hashlib.sha256().hexdigest()


def test_permissions_are_those_of_the_open_file_whatever_has_its_name(tmp_path, monkeypatch):
    """Somebody else owns the folder and puts a link in the file's place."""
    path, victim = tmp_path / "file", tmp_path / "victim"
    path.write_bytes(b"old")
    path.chmod(0o666)
    victim.write_bytes(b"secret")
    victim.chmod(0o600)
    create = _files._create_beside

    def create_and_swap(target, mode):
        descriptor, name = create(target, mode)
        name.unlink()
        name.symlink_to(victim)
        return descriptor, name

    monkeypatch.setattr(_files, "_create_beside", create_and_swap)
    write_atomically(path, lambda stream: None)
    assert stat.S_IMODE(victim.stat().st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "fork"), reason="files are locked on Unix alone")
def test_what_another_user_left_and_only_he_may_remove_is_left_alone(tmp_path, monkeypatch):
    path = tmp_path / "file"
    left = _files._hidden(path, 0)
    left.write_bytes(b"left")
    unlink = Path.unlink

    def refused(self, *args, **kwargs):
        if self == left:
            raise PermissionError(errno.EPERM, "Operation not permitted", str(self))
        unlink(self, *args, **kwargs)

    monkeypatch.setattr(Path, "unlink", refused)
    write_atomically(path, lambda stream: stream.write(b"new") and None)
    assert path.read_bytes() == b"new"
    assert left.read_bytes() == b"left"


def test_a_folder_that_cannot_be_read_can_be_written(tmp_path, monkeypatch):
    path = tmp_path / "file"
    opened = os.open

    def refused(name, *args, **kwargs):
        if Path(name) == tmp_path:
            raise PermissionError(errno.EACCES, "Permission denied", str(name))
        return opened(name, *args, **kwargs)

    monkeypatch.setattr(os, "open", refused)
    write_atomically(path, lambda stream: stream.write(b"new") and None)
    assert path.read_bytes() == b"new"


@pytest.mark.long
def test_interruptions_leave_no_file_behind(tmp_path):
    """Saves are interrupted at any moment; what one leaves behind, the next one removes."""
    script = textwrap.dedent(
        """
        import os, signal, sys, time, brmdp
        belief = brmdp.DirichletBelief.uniform(3, 2)
        armed = False

        def interrupt(*_):
            if armed:
                raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        before, interrupted, end = len(os.listdir("/proc/self/fd")), 0, time.time() + 4
        signal.setitimer(signal.ITIMER_REAL, 0.003, 0.0031)
        while time.time() < end:
            try:
                armed = True
                while time.time() < end:
                    belief.save("p.npz")
                armed = False
            except KeyboardInterrupt:
                armed = False
                interrupted += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        belief.save("p.npz")
        print(interrupted, len(os.listdir("/proc/self/fd")) - before)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    interrupted, leaked = map(int, done.stdout.split())
    assert interrupted > 50
    assert leaked <= 0.02 * interrupted
    assert names(tmp_path) == ["p.npz"]
