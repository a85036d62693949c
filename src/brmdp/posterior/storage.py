"""Lossless files without pickle: an ``.npz`` archive with a header and a digest, complete or absent.

A file is written under a temporary name in the same folder, flushed to disk and moved into place. On loading, the
archive's checksums, the kind, the format version and a SHA-256 digest over all arrays are verified.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from brmdp.errors import CorruptFileError, InvalidInputError

__all__ = ["Stored", "corrupt_if_invalid", "load_arrays", "require_arrays", "save_arrays", "shape_of"]

FORMAT = "brmdp-1"


def save_arrays(path: Any, kind: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Write named arrays as one file of the given kind; replaces an existing file only when complete."""
    target = Path(path)
    header = {"format": np.array(FORMAT), "kind": np.array(kind), "digest": np.array(_digest(kind, arrays))}
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            np.savez(stream, allow_pickle=False, **(header | arrays))
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load_arrays(path: Any, kind: str) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file of the given kind, verifying it.

    Raises
    ------
    CorruptFileError
        If the file is truncated or altered, of another kind, or of an unknown version.
    FileNotFoundError
        If there is no such file.
    """
    target = Path(path)
    if not target.exists():
        raise FileNotFoundError(f"no such file: {target}")
    try:
        with target.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise CorruptFileError(f"{target} is not a readable brmdp file: {error}") from error
    except Exception as error:  # a damaged archive can fail anywhere inside zlib or the npy parser
        raise CorruptFileError(f"{target} is damaged: {error!r}") from error
    found = str(content.pop("format", "unknown"))
    if found != FORMAT:
        raise CorruptFileError(f"{target} has format {found!r}; this version reads {FORMAT!r}")
    found_kind = str(content.pop("kind", "unknown"))
    if found_kind != kind:
        raise CorruptFileError(f"{target} holds a {found_kind!r}, not a {kind!r}")
    digest = str(content.pop("digest", ""))
    if digest != _digest(kind, content):
        raise CorruptFileError(f"{target} is damaged: its digest does not match its content")
    return content


class Stored:
    """Saving and loading for what can be written as named arrays.

    A subclass has ``arrays()`` and ``from_arrays(arrays, source)``, which verifies them and names ``source`` in its errors.
    """

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that matters, as named arrays."""
        raise NotImplementedError

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], source: Any) -> Self:
        """The object that ``arrays()`` described."""
        raise NotImplementedError

    def save(self, path: Any) -> None:
        """Write to ``path`` losslessly, without pickle; the file is complete or absent."""
        save_arrays(path, type(self).__name__, self.arrays())

    @classmethod
    def load(cls, path: Any) -> Self:
        """Read what :meth:`save` wrote.

        Raises
        ------
        CorruptFileError
            If the file is truncated, altered, of another kind or of an unknown version.
        """
        return cls.from_arrays(load_arrays(path, cls.__name__), path)


def require_arrays(arrays: dict[str, NDArray[Any]], names: tuple[str, ...], source: Any) -> None:
    """Refuse content that lacks some of the named arrays, or has others."""
    if set(arrays) != set(names):
        raise CorruptFileError(f"{source} must hold the arrays {sorted(names)}; got {sorted(arrays)}")


@contextlib.contextmanager
def corrupt_if_invalid(path: Any) -> Iterator[None]:
    """Report content that makes no sense as a corrupt file."""
    try:
        yield
    except InvalidInputError as error:
        raise CorruptFileError(f"{path} holds content that makes no sense: {error}") from error


def shape_of(array: NDArray[Any], path: Any) -> tuple[int, int]:
    """(S, A) as stored."""
    if array.shape != (2,) or array.dtype.kind not in "iu" or (array <= 0).any():
        raise CorruptFileError(f"{path} must hold two positive sizes; got {array!r}")
    return int(array[0]), int(array[1])


def _digest(kind: str, arrays: dict[str, NDArray[Any]]) -> str:
    result = hashlib.sha256(kind.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        result.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        result.update(array.tobytes())
    return result.hexdigest()
