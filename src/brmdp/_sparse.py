"""Checks of sparse matrices before compiled code reads them.

SciPy's constructors accept indices outside the shape and invalid pointers (from a program that
counts from 1, for example), and its compiled routines then read and write outside their arrays. So
everything is first checked here with NumPy, on the stored arrays, whatever the matrix's own flags
say.
"""

from __future__ import annotations

import itertools
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from brmdp._validation import FloatArray, IntArray, as_array, as_float_array, first_bad
from brmdp.errors import InvalidInputError

__all__ = ["ArrayOrSparse", "as_csr", "is_sparse", "kernel_of_moves"]

ArrayOrSparse: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
"""Anything NumPy can turn into an array, or a SciPy sparse array or matrix."""


def is_sparse(value: object) -> TypeGuard[Any]:
    """Whether this is a SciPy sparse array or matrix."""
    return bool(sparse.issparse(value))


def as_csr(matrix: Any, name: str) -> sparse.csr_array:
    """A copy in compressed rows and double precision.

    Columns are sorted, duplicates added up, and stored zeros kept.

    Parameters
    ----------
    matrix : two-dimensional SciPy sparse array or matrix, in any format
    name : str
        Name of the argument in error messages.

    Raises
    ------
    InvalidInputError
        If its entries are not finite real numbers, or its indices do not fit its shape.
    """
    if matrix.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"{name} must be real numbers; got a sparse matrix of dtype {matrix.dtype}"
        )
    if matrix.format in ("csr", "csc", "bsr"):
        checked = _compressed(matrix, name)
    elif matrix.format in _TO_COORDINATES:
        data, rows, columns = _TO_COORDINATES[matrix.format](matrix, name)
        checked = _coordinates(data, rows, columns, matrix.shape, name)
    else:
        raise InvalidInputError(
            f"{name} must be in one of SciPy's sparse formats; got {matrix.format!r}"
        )
    result = sparse.csr_array(checked)
    result.sum_duplicates()
    as_float_array(result.data, name)  # adding up duplicates may overflow
    return result


def _compressed(matrix: Any, name: str) -> Any:
    """Rebuild from the stored arrays: flags such as ``has_sorted_indices`` may be out of date."""
    data = as_float_array(matrix.data, name)
    if data.ndim != (3 if matrix.format == "bsr" else 1) or 0 in data.shape[1:]:
        raise InvalidInputError(
            f"{name}.data must have one axis (three for blocks); got shape {data.shape}"
        )
    height, width = data.shape[1:] or (1, 1)
    if matrix.shape[0] % height or matrix.shape[1] % width:
        raise InvalidInputError(
            f"{name} of shape {matrix.shape} must consist of whole blocks; got blocks of "
            f"{(height, width)}"
        )
    lines, positions = matrix.shape[0] // height, matrix.shape[1] // width
    if matrix.format == "csc":
        lines, positions = positions, lines
    indices = _integers(matrix.indices, f"{name}.indices", data.shape[0])
    pointers = _integers(matrix.indptr, f"{name}.indptr", lines + 1)
    if pointers[0] != 0 or pointers[-1] != indices.size or (pointers[1:] < pointers[:-1]).any():
        raise InvalidInputError(
            f"{name}.indptr must rise from 0 to {indices.size}, the number of indices; "
            f"got {pointers[0]} to {pointers[-1]}"
            + (", decreasing in between" if (pointers[1:] < pointers[:-1]).any() else "")
        )
    indices = _in_range(indices, positions, f"{name}.indices")
    make = getattr(sparse, f"{matrix.format}_array")
    return make((np.array(data), indices, pointers.astype(np.int64)), shape=matrix.shape)


def _coordinates(data: Any, rows: Any, columns: Any, shape: tuple[int, int], name: str) -> Any:
    values = as_float_array(data, name)
    if values.ndim != 1:
        raise InvalidInputError(f"{name}.data must have one axis; got shape {values.shape}")
    where = tuple(
        _in_range(_integers(index, f"{name}.{label}", values.size), size, f"{name}.{label}")
        for index, size, label in zip((rows, columns), shape, ("row", "col"), strict=True)
    )
    return sparse.coo_array((values, where), shape=shape)


def _from_coo(matrix: Any, name: str) -> tuple[Any, Any, Any]:
    return matrix.data, matrix.row, matrix.col


def _from_lists(matrix: Any, name: str) -> tuple[Any, Any, Any]:
    """Coordinates of a lil matrix, which holds two lists per row: columns and entries."""
    lengths = [len(columns) for columns in matrix.rows]
    if len(lengths) != matrix.shape[0] or lengths != [len(entries) for entries in matrix.data]:
        raise InvalidInputError(
            f"{name} must have {matrix.shape[0]} rows with a column for every entry"
        )
    entries, columns = (
        list(itertools.chain.from_iterable(part)) for part in (matrix.data, matrix.rows)
    )
    return entries, np.repeat(np.arange(len(lengths)), lengths), columns


def _from_dictionary(matrix: Any, name: str) -> tuple[Any, Any, Any]:
    """Coordinates of a dok matrix."""
    items = list(matrix.items())
    return [value for _, value in items], [key[0] for key, _ in items], [key[1] for key, _ in items]


def _from_diagonals(matrix: Any, name: str) -> tuple[Any, Any, Any]:
    """Coordinates of a dia matrix: ``data[k, j]`` is in column j of the diagonal ``offsets[k]``."""
    data = as_float_array(matrix.data, name)
    offsets = _integers(matrix.offsets, f"{name}.offsets", data.shape[0] if data.ndim == 2 else -1)
    n_rows, n_columns = matrix.shape
    if ((offsets <= -n_rows) | (offsets >= n_columns)).any():
        raise InvalidInputError(
            f"{name}.offsets must lie in {1 - n_rows}..{n_columns - 1}; got {offsets.tolist()}"
        )
    columns = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    rows = columns - offsets.astype(np.int64)[:, None]
    inside = (rows >= 0) & (rows < n_rows) & (columns < n_columns)
    return data[inside], rows[inside], columns[inside]


_TO_COORDINATES = {
    "coo": _from_coo,
    "lil": _from_lists,
    "dok": _from_dictionary,
    "dia": _from_diagonals,
}


def _integers(value: Any, name: str, size: int) -> NDArray[Any]:
    array = as_array(value, name, "integers")
    if array.shape != (size,):
        raise InvalidInputError(f"{name} must be {max(size, 0)} integers; got shape {array.shape}")
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidInputError(f"{name} must be integers; got dtype {array.dtype}")
    return array


def _in_range(indices: NDArray[Any], size: int, name: str) -> IntArray:
    bad = (indices < 0) | (indices >= size)
    if bad.any():
        (where,) = first_bad(bad)
        hint = (
            "; indices are counted from 0" if indices.min() == 1 and indices.max() == size else ""
        )
        raise InvalidInputError(
            f"{name} must lie in 0..{size - 1}; got {indices[where]} at position {where}{hint}"
        )
    return indices.astype(np.int64)


def kernel_of_moves(
    shape: tuple[int, int],
    states: IntArray,
    actions: IntArray,
    next_states: IntArray,
    chances: FloatArray,
) -> sparse.csr_array:
    """The kernel (S·A, S) of a list of moves; the chances of equal moves add up, zeros vanish."""
    n_states, n_actions = shape
    rows = states * n_actions + actions
    kernel = sparse.coo_array(
        (chances, (rows, next_states)), shape=(n_states * n_actions, n_states)
    ).tocsr()
    kernel.sum_duplicates()
    kernel.eliminate_zeros()
    return kernel
