"""Files that are either complete or absent, and digests of their content.

A file is written next to its final place under a hidden name, flushed to disk, and moved into
place. The writer holds a lock on it, which ends when its process ends, however that happens. A
hidden file that nobody holds was left by a killed process, and the next writer of the same file
removes it. Several processes may write the same file at once: each writes its own copy, and the
last to finish wins.
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
from typing import BinaryIO

from brmdp.errors import InvalidInputError

try:
    import fcntl
except ModuleNotFoundError:  # pragma: no cover - not a Unix
    fcntl = None  # type: ignore[assignment]

__all__ = ["digest", "write_atomically", "write_bytes"]

PLACES = 8
"""Number of hidden names per file, each for one writer at a time.

Further writers draw random names; if they are killed, nobody removes their files.
"""

_LOCKS = fcntl is not None
_LONGEST_NAME = 200
_PRIVATE, _USUAL = 0o600, 0o666
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
_NO_FLUSHING = {errno.EACCES, errno.EINVAL, errno.ENOTSUP}


def digest(parts: Iterable[str | bytes]) -> str:
    """SHA-256 of the parts, one after another, in hexadecimal; text is encoded as UTF-8."""
    result = hashlib.sha256()
    for part in parts:
        result.update(part.encode() if isinstance(part, str) else part)
    return result.hexdigest()


def write_atomically(path: str | os.PathLike[str], write: Callable[[BinaryIO], None]) -> None:
    """Let ``write`` fill a file that appears under ``path`` only once it is complete and on disk.

    A link is followed, and its target replaced. A new file gets the usual permissions of the
    process; a replaced file keeps its own. If ``write`` fails, nothing has changed.

    Parameters
    ----------
    path : str or path
    write : callable
        Function that writes to the open binary stream it is given.

    Raises
    ------
    InvalidInputError
        If ``path`` exists and is not a regular file.
    OSError
        If the folder is missing or not writable, or the disk is full.
    """
    try:
        target = Path(os.path.realpath(os.fspath(path)))
    except (TypeError, ValueError):
        raise InvalidInputError(f"path must be the name of a file; got {path!r}") from None
    replaced: os.stat_result | None = None
    with contextlib.suppress(FileNotFoundError):
        replaced = target.stat()
    if replaced is not None and not stat.S_ISREG(replaced.st_mode):
        raise InvalidInputError(f"path must be a file or a new name; {target} is neither")
    created, temporary = _create_beside(target, _USUAL if replaced is None else _PRIVATE)
    with created as stream:  # closing it releases the lock
        try:
            if replaced is not None:
                _copy_ownership(replaced, stream.fileno())
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
            if not _LOCKS:  # pragma: no cover - such systems cannot move an open file
                stream.close()
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    _flush_folder(target.parent)


def _create_beside(target: Path, mode: int) -> tuple[BinaryIO, Path]:
    """A new file in the same folder, locked by this process; abandoned ones are removed first.

    It is returned as a stream, not a descriptor: a stream lost to an interruption closes itself,
    and the next writer removes its file.
    """
    if not _LOCKS:  # pragma: no cover - not a Unix
        return _create_anywhere(target, mode)
    found: tuple[BinaryIO, Path] | None = None
    try:
        for place in range(PLACES):
            name = _hidden(target, place)
            taken = os.path.lexists(name) and _is_held(name)
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
    """A new, locked file under ``name``; None if another process was faster."""
    try:
        stream = _new(name, mode)
    except FileExistsError:
        return None
    try:
        if _lock(stream.fileno()) and _still_named(name, stream.fileno()):
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
    # no Python function in between, where an interruption could lose the descriptor
    return open(name, "x+b", opener=partial(os.open, mode=mode))


def _is_held(name: Path) -> bool:
    """Whether another process is writing this file; removes a file that nobody holds."""
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:  # not one of ours: a link, a folder, another user's file
        return True
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or not _lock(descriptor):
            return True
        if _still_named(name, descriptor):
            name.unlink()
        return False
    except PermissionError:  # another user's file, in a folder where only owners may remove files
        return True
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _still_named(name: Path, descriptor: int) -> bool:
    """Whether the open file still has this name; its writer may have moved it into place."""
    try:
        return os.path.samestat(os.stat(name, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _create_anywhere(target: Path, mode: int) -> tuple[BinaryIO, Path]:
    """A new file under a random name, for disks that cannot lock files (some network disks)."""
    name = _hidden(target, f"{os.getpid()}-{secrets.token_hex(8)}")
    return _new(name, mode), name


def _hidden(target: Path, place: int | str) -> Path:
    name = target.name
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = digest([os.fsencode(name)])
    return target.with_name(f".{name}.unfinished-{place}")


def _copy_ownership(replaced: os.stat_result, descriptor: int) -> None:
    """Give the open file the owner and permissions of the replaced one, if the system allows."""
    if os.name != "posix":  # pragma: no cover
        return
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (replaced.st_uid, replaced.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(descriptor, replaced.st_uid, replaced.st_gid)
    os.fchmod(descriptor, replaced.st_mode & 0o777)


def _flush_folder(folder: Path) -> None:
    """Flush the folder's entry for the moved file to disk, where the system allows it."""
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


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Put ``content`` into a file that appears under ``path`` all at once."""

    def write(stream: BinaryIO) -> None:
        stream.write(content)

    write_atomically(path, write)
