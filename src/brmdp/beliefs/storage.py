"""Lossless files without pickle.

An ``.npz`` archive with a header and a digest, complete or absent.

A file appears under its name when it is complete (:func:`brmdp._files.write_atomically`). On
loading, the kind, the format version and a SHA-256 digest over all arrays are verified, and before
anything is read, the sizes that the archive declares: our archives are not compressed, so what a
file can make us hold in memory is bounded by its own length.
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

MOST_ARRAYS = 1000
LONGEST_HEADER = 4096
"""Of an array, in bytes; NumPy's are 128 long unless there are very many axes."""

_HEADER = ("format", "kind", "digest")
_KINDS = "biufU"
FORMER_KINDS = {
    "DirichletBelief": "DirichletPosterior",
    "DisturbanceBelief": "DisturbancePosterior",
    "ScenarioBelief": "ScenarioPosterior",
    "LakeBelief": "LakePosterior",
}
"""What files written before the classes were renamed call them."""

_STRAY = "allow_pickle"
"""NumPy 2.0 and 2.1 took this keyword for the name of an array, which files written there hold."""


def save_arrays(path: Any, kind: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Write named arrays as one file of the given kind.

    It is there when complete, and an existing one intact until then.

    Raises
    ------
    InvalidInputError
        If an array holds anything but numbers, truth values or text, which could not be read again.
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
            # the file is thrown away; closing the archive could fail over a member still open, and
            # hide an interruption
            archive.fp = None
            raise

    write_atomically(path, write)


def load_arrays(path: Any, kind: str) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file of the given kind, verifying it.

    Raises
    ------
    CorruptFileError
        If the file is truncated or altered, of another kind, of an unknown version, or not of the
        size that it claims.
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
    # a file that may not be opened, or not now, is not a corrupt one
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
    """The arrays of an archive in a file of ``length`` bytes.

    Nothing is read that does not fit into it.
    """
    members = archive.infolist()
    if len(members) > MOST_ARRAYS:
        raise InvalidInputError(f"it must hold at most {MOST_ARRAYS} arrays; got {len(members)}")
    names = [member.filename.removesuffix(".npy") for member in members]
    if len(set(names)) < len(names) or any(
        not member.filename.endswith(".npy") for member in members
    ):
        raise InvalidInputError("it must hold arrays of different names, and nothing else")
    if any(
        member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size
        for member in members
    ):
        raise InvalidInputError("its arrays must not be compressed")
    total = sum(member.file_size for member in members)
    if total > length:
        raise InvalidInputError(f"its arrays claim {total} bytes, but it is only {length} long")
    return {name: _array(archive, member) for name, member in zip(names, members, strict=True)}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array, whose header must account for every byte of the member."""
    with archive.open(member) as stream:
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise InvalidInputError(
                f"{member.filename} must have the version 1.0 or 2.0; got {version}"
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
        raise InvalidInputError(f"{member.filename} must hold characters")
    return array


def _text(array: NDArray[Any] | None) -> str:
    """What a header says, as far as it is a short text."""
    if (
        array is None
        or array.ndim != 0
        or array.dtype.kind != "U"
        or array.dtype.itemsize > 4 * 200
    ):
        return "unknown"
    return str(array)


class Saveable:
    """Saving and loading for what can be written as named arrays.

    A subclass has ``arrays()`` and ``from_arrays(arrays, source)``, which verifies them and names
    ``source`` in its errors.
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
        raise CorruptFileError(
            f"{source} must hold the arrays {sorted(names)}; got {sorted(arrays)}"
        )


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
    return digest(_parts(kind, arrays))


def _parts(kind: str, arrays: dict[str, NDArray[Any]]) -> Iterator[str | bytes]:
    yield kind
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        yield f"{name}|{array.dtype.str}|{array.shape}|"
        yield array.tobytes()
