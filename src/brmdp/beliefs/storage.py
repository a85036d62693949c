"""Lossless files without pickle: ``.npz`` archives with a header and a digest.

A file appears under its name only once it is complete (:func:`brmdp._files.write_atomically`).
Loading verifies its kind, its format version and a SHA-256 digest of all arrays. Before anything is
read, the sizes that the archive declares are checked: the archives are not compressed, so a file
cannot make us hold more in memory than its own length.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from brmdp._files import digest, write_atomically
from brmdp.errors import CorruptFileError, InvalidInputError

__all__ = [
    "FORMER_KINDS",
    "Saveable",
    "corrupt_if_invalid",
    "load_arrays",
    "require_arrays",
    "save_arrays",
    "shape_of",
]

FORMAT = "brmdp-1"

MAX_ARRAYS = 1000
"""Largest number of arrays in a file."""

LONGEST_HEADER = 4096
"""Longest header of an array in bytes; NumPy's take 128 unless there are very many axes."""

_HEADER = ("format", "kind", "digest")
_KINDS = "biufU"
FORMER_KINDS = {
    "DirichletBelief": "DirichletPosterior",
    "DisturbanceBelief": "DisturbancePosterior",
    "ScenarioBelief": "ScenarioPosterior",
    "LakeBelief": "LakePosterior",
}
"""Names of the classes in files written before they were renamed."""

_STRAY = "allow_pickle"
"""An array that NumPy 2.0 and 2.1 wrote by mistake, taking a keyword for an array's name."""


def save_arrays(path: str | os.PathLike[str], kind: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Write named arrays as one file of the given kind.

    The file appears once it is complete; until then, an existing file stays as it was.

    Raises
    ------
    InvalidInputError
        If an array holds anything but numbers, booleans or text, and so could not be read again.
    """
    header = {
        "format": np.array(FORMAT),
        "kind": np.array(kind),
        "digest": np.array(_digest(kind, arrays)),
    }
    content = header | arrays
    for name, array in content.items():
        if array.dtype.kind not in _KINDS:
            raise InvalidInputError(
                f"{name} must hold numbers or text to be saved; got dtype {array.dtype}"
            )

    def write(stream: BinaryIO) -> None:
        archive = zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED)
        try:
            for name, array in content.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array(member, np.asanyarray(array), allow_pickle=False)
            archive.close()
        except BaseException:
            # The file is thrown away. Closing the archive could fail because a member is still
            # open, and so hide an interruption.
            archive.fp = None
            raise

    write_atomically(path, write)


def load_arrays(path: str | os.PathLike[str], kind: str) -> dict[str, NDArray[Any]]:
    """Verify a file of the given kind and return its arrays.

    Raises
    ------
    CorruptFileError
        If the file is truncated or altered, of another kind, of an unknown version, or not of the
        size it declares.
    OSError
        If there is no such file (FileNotFoundError), or it cannot be opened.
    """
    try:
        target = Path(path)
    except TypeError:
        raise InvalidInputError(f"path must be the name of a file; got {path!r}") from None
    if not target.exists():
        raise FileNotFoundError(f"no such file: {target}")
    if not stat.S_ISREG(target.stat().st_mode):
        raise CorruptFileError(f"{target} is not a file")
    # a file that cannot be opened (now) is not a corrupt one
    opened = target.open("rb")
    try:
        with opened as stream, zipfile.ZipFile(stream) as archive:
            content = _read(archive, os.fstat(stream.fileno()).st_size)
    except (InvalidInputError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise CorruptFileError(f"{target} is not a readable brmdp file: {error}") from error
    except Exception as error:
        # a damaged archive can fail anywhere inside zipfile or the npy parser
        raise CorruptFileError(f"{target} is damaged: {error!r}") from error
    found, found_kind, found_digest = (_text(content.pop(name, None)) for name in _HEADER)
    if found != FORMAT:
        raise CorruptFileError(f"{target} has format {found!r}; this version reads {FORMAT!r}")
    if found_kind not in (kind, FORMER_KINDS.get(kind)):
        raise CorruptFileError(f"{target} holds a {found_kind!r}, not a {kind!r}")
    stray = content.get(_STRAY)
    if stray is not None and stray.dtype == np.bool_ and stray.ndim == 0 and not stray:
        del content[_STRAY]
    if found_digest != _digest(found_kind, content):
        raise CorruptFileError(f"{target} is damaged: its digest does not match its content")
    return content


def _read(archive: zipfile.ZipFile, length: int) -> dict[str, NDArray[Any]]:
    """The arrays of an archive in a file of ``length`` bytes; together they may claim no more."""
    members = archive.infolist()
    if len(members) > MAX_ARRAYS:
        raise InvalidInputError(f"it must hold at most {MAX_ARRAYS} arrays; got {len(members)}")
    names = [member.filename.removesuffix(".npy") for member in members]
    if len(set(names)) < len(names) or any(
        not member.filename.endswith(".npy") for member in members
    ):
        raise InvalidInputError("it must hold arrays with different names, and nothing else")
    if any(
        member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size
        for member in members
    ):
        raise InvalidInputError("its arrays must not be compressed")
    total = sum(member.file_size for member in members)
    if total > length:
        raise InvalidInputError(f"its arrays claim {total} bytes, but it has only {length}")
    return {name: _array(archive, member) for name, member in zip(names, members, strict=True)}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Read one array, whose header must account for every byte of the archive's member."""
    with archive.open(member) as stream:
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise InvalidInputError(
                f"{member.filename} must have version 1.0 or 2.0; got {version}"
            )
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(stream, max_header_size=LONGEST_HEADER)
        size = dtype.itemsize
        for axis in shape:
            size *= axis
        if dtype.kind not in _KINDS or dtype.itemsize == 0 or dtype.subdtype is not None:
            raise InvalidInputError(f"{member.filename} must hold numbers or text; got {dtype}")
        if any(axis < 0 for axis in shape) or size != member.file_size - stream.tell():
            raise InvalidInputError(
                f"{member.filename} must hold {size} bytes for an array of shape {shape}"
            )
    with archive.open(member) as stream:
        array: NDArray[Any] = npy.read_array(
            stream, allow_pickle=False, max_header_size=LONGEST_HEADER
        )
    if (
        dtype.kind == "U"
        and (np.frombuffer(array.tobytes(), f"{dtype.byteorder}u4") > sys.maxunicode).any()
    ):
        raise InvalidInputError(f"{member.filename} must hold valid Unicode characters")
    return array


def _text(array: NDArray[Any] | None) -> str:
    """A header field, or "unknown" if it is not a short text."""
    if (
        array is None
        or array.ndim != 0
        or array.dtype.kind != "U"
        or array.dtype.itemsize > 4 * 200
    ):
        return "unknown"
    return str(array)


class Saveable:
    """Saving and loading of objects that can be written as named arrays.

    A subclass defines ``arrays()`` and ``from_arrays(arrays, source)``, which verifies the arrays
    and names ``source`` in its errors.
    """

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays."""
        raise NotImplementedError

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], source: object) -> Self:
        """The object that ``arrays()`` described; ``source`` says where they come from."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to ``path`` without loss and without pickle; the file is complete or absent."""
        save_arrays(path, type(self).__name__, self.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote.

        Raises
        ------
        CorruptFileError
            If the file is truncated, altered, of another kind or of an unknown version.
        """
        return cls.from_arrays(load_arrays(path, cls.__name__), path)


def require_arrays(arrays: dict[str, NDArray[Any]], names: tuple[str, ...], source: object) -> None:
    """Raise an error unless exactly the named arrays are there."""
    if set(arrays) != set(names):
        raise CorruptFileError(
            f"{source} must hold the arrays {sorted(names)}; got {sorted(arrays)}"
        )


@contextlib.contextmanager
def corrupt_if_invalid(path: object) -> Iterator[None]:
    """Report invalid content as a corrupt file."""
    try:
        yield
    except InvalidInputError as error:
        raise CorruptFileError(f"{path} holds invalid content: {error}") from error


def shape_of(array: NDArray[Any], path: object) -> tuple[int, int]:
    """The stored sizes (S, A)."""
    if array.shape != (2,) or array.dtype.kind not in "iu" or (array <= 0).any():
        raise CorruptFileError(f"{path} must hold two positive sizes; got {array!r}")
    return int(array[0]), int(array[1])


def _digest(kind: str, arrays: dict[str, NDArray[Any]]) -> str:
    return digest(_parts(kind, arrays))


def _parts(kind: str, arrays: dict[str, NDArray[Any]]) -> Iterator[str | bytes]:
    yield kind
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        yield f"{name}|{array.dtype.str}|{array.shape}|"
        yield array.tobytes()
