"""Files that are complete or absent, and digests of what they hold.

A file is written beside its final place under a name that begins with a dot, flushed to disk, and
moved into place. The writer holds a lock on it, which ends with its process in whatever way: a
hidden file that nobody holds was left by a process that was killed, and the next one to write the
same file removes it. Several processes may write the same file at a time; each writes its own, and
the last to finish wins.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from brmdp.errors import InvalidInputError

try:
    import fcntl
except ModuleNotFoundError:  # pragma: no cover - not a Unix
    fcntl = None  # type: ignore[assignment]

__all__ = ["digest", "write_atomically"]

PLACES = 8
"""How many may write one file at a time before names are drawn at random.

Which nobody cleans up.
"""

_LOCKS = fcntl is not None
_LONGEST_NAME = 200
_PRIVATE, _USUAL = 0o600, 0o666
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
_NO_FLUSHING = {errno.EACCES, errno.EINVAL, errno.ENOTSUP}


def digest(parts: Iterable[str | bytes]) -> str:
    """SHA-256 over the parts, one after another, in hexadecimal; text is taken as UTF-8."""
    result = hashlib.sha256()
    for part in parts:
        result.update(part.encode() if isinstance(part, str) else part)
    return result.hexdigest()


def write_atomically(path: Any, write: Callable[[BinaryIO], None]) -> None:
    """Let ``write`` fill a file that appears under ``path`` all at once.

    When it is complete and on disk.

    A link is followed: what it points to is replaced. A new file gets the permissions that the
    process gives to new files, a replaced one keeps its own. If ``write`` fails, all is as before.

    Parameters
    ----------
    path : path
    write : function
        Takes the open binary stream.

    Raises
    ------
    InvalidInputError
        If there is something at ``path`` that is no file.
    OSError
        If the folder is missing or cannot be written, or the disk is full.
    """
    try:
        target = Path(os.path.realpath(os.fspath(path)))
    except (TypeError, ValueError):
        raise InvalidInputError(f"path must be the name of a file; got {path!r}") from None
    replaced: os.stat_result | None = None
    with contextlib.suppress(FileNotFoundError):
        replaced = target.stat()
    if replaced is not None and not stat.S_ISREG(replaced.st_mode):
        raise InvalidInputError(f"path must be a file or a free name; {target} is neither")
    created, temporary = _create_beside(target, _USUAL if replaced is None else _PRIVATE)
    with created as stream:  # closing it releases the lock
        try:
            if replaced is not None:
                _like(replaced, stream.fileno())
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
            if not _LOCKS:  # pragma: no cover - an open file cannot be moved there
                stream.close()
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    _flush_folder(target.parent)


def _create_beside(target: Path, mode: int) -> tuple[BinaryIO, Path]:
    """A new file in the same folder that this process holds.

    After removal of those that nobody holds.

    A stream, not a descriptor: one that an interruption loses closes itself, and the next writer
    removes its file.
    """
    if not _LOCKS:  # pragma: no cover - not a Unix
        return _create_anywhere(target, mode)
    found: tuple[BinaryIO, Path] | None = None
    try:
        for place in range(PLACES):
            name = _hidden(target, place)
            taken = os.path.lexists(name) and _held(name)
            if found is None and not taken:
                stream = _create_held(name, mode)
                found = None if stream is None else (stream, name)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    except BaseException:
        if found is not None:
            _discard(*found)
        raise
    return _create_anywhere(target, mode) if found is None else found


def _create_held(name: Path, mode: int) -> BinaryIO | None:
    """A new file under ``name``, locked; None if another process was faster."""
    try:
        stream = _new(name, mode)
    except FileExistsError:
        return None
    try:
        if _lock(stream.fileno()) and _is(name, stream.fileno()):
            return stream
    except BaseException:
        _discard(stream, name)
        raise
    stream.close()
    return None


def _discard(stream: BinaryIO, name: Path) -> None:
    stream.close()
    with contextlib.suppress(OSError):
        name.unlink()


def _new(name: Path, mode: int) -> BinaryIO:
    # no function of Python in between, in which an interruption could lose the descriptor
    return open(name, "x+b", opener=partial(os.open, mode=mode))


def _held(name: Path) -> bool:
    """Whether another process writes this file; one that nobody holds is removed."""
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:  # not ours: a link, a folder, another user's file
        return True
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or not _lock(descriptor):
            return True
        if _is(name, descriptor):
            name.unlink()
        return False
    except PermissionError:  # another user's, in a folder where only owners remove files
        return True
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is(name: Path, descriptor: int) -> bool:
    """Whether the open file still has this name.

    Its writer may have moved it into place meanwhile.
    """
    try:
        return os.path.samestat(os.stat(name, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _create_anywhere(target: Path, mode: int) -> tuple[BinaryIO, Path]:
    """A new file under a random name, where files cannot be locked (some network disks)."""
    name = _hidden(target, f"{os.getpid()}-{secrets.token_hex(8)}")
    return _new(name, mode), name


def _hidden(target: Path, place: int | str) -> Path:
    name = target.name
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = digest([os.fsencode(name)])
    return target.with_name(f".{name}.unfinished-{place}")


def _like(replaced: os.stat_result, descriptor: int) -> None:
    """Owner and permissions as before, as far as the system allows.

    Of the open file, whatever has its name by now.
    """
    if os.name != "posix":  # pragma: no cover
        return
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (replaced.st_uid, replaced.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(descriptor, replaced.st_uid, replaced.st_gid)
    os.fchmod(descriptor, replaced.st_mode & 0o777)


def _flush_folder(folder: Path) -> None:
    """The entry of the moved file, too, where the system allows; the file itself is in place."""
    if os.name != "posix":  # pragma: no cover
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_FLUSHING:
            raise
