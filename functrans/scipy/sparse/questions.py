"""What kind of sparse array something is, and which dtype indices have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.sparse.arithmetic import is_sparse, spmatrix
from functrans.typing import Array


class SparseWarning(Warning):
    """The base class of warnings about sparse arrays.

    >>> from functrans.scipy import sparse
    >>> issubclass(sparse.SparseWarning, Warning)
    True
    """


def issparse(x: object) -> bool:
    """Whether x is a sparse array or matrix: of this module, of functrans.experimental, or SciPy's.

    >>> from functrans.scipy import sparse
    >>> sparse.issparse(sparse.eye_array(2)), sparse.issparse([1.0])
    (True, False)
    """
    return is_sparse(x)


def isspmatrix(x: object) -> bool:
    """Whether x is a sparse matrix, and no sparse array.

    >>> from functrans.scipy import sparse
    >>> sparse.isspmatrix(sparse.eye(2)), sparse.isspmatrix(sparse.eye_array(2))
    (True, False)
    """
    return isinstance(x, spmatrix)


def _is_format(format: str, long: str) -> Callable[[object], bool]:
    def question(x: object) -> bool:
        return isinstance(x, spmatrix) and getattr(x, "format", "") == format

    question.__name__ = question.__qualname__ = f"isspmatrix_{format}"
    question.__doc__ = f"""Whether x is a matrix of {long}.

    >>> from functrans.scipy import sparse
    >>> sparse.isspmatrix_{format}(sparse.{format}_matrix((2, 2)))
    True
    """
    return question


isspmatrix_coo = _is_format("coo", "coordinates")
isspmatrix_csr = _is_format("csr", "compressed rows")
isspmatrix_csc = _is_format("csc", "compressed columns")
isspmatrix_dia = _is_format("dia", "diagonals")
isspmatrix_bsr = _is_format("bsr", "blocks")
isspmatrix_lil = _is_format("lil", "lists")
isspmatrix_dok = _is_format("dok", "places")


def get_index_dtype(arrays: Any = (), maxval: float | None = None,
                    check_contents: bool = False) -> np.dtype[Any]:
    """int32 where indices and `maxval` fit it, else int64.

    With `check_contents` the values of arrays decide, without it their dtypes.

    >>> from functrans.scipy import sparse
    >>> sparse.get_index_dtype(maxval=2**40)
    dtype('int64')
    """
    most = np.iinfo(np.int32).max
    if maxval is not None and maxval > most:
        return np.dtype(np.int64)
    for x in arrays if isinstance(arrays, (tuple, list)) else (arrays,):
        if np.can_cast(np.dtype(getattr(x, "dtype", np.int64)), np.int32):
            continue
        known = check_contents and not is_traced(x)
        values = np.asarray(x) if known else None
        if values is not None and values.dtype.kind in "iu" and (not values.size or (
                values.min() >= -most - 1 and values.max() <= most)):
            continue
        return np.dtype(np.int64)
    return np.dtype(np.int32)


def safely_cast_index_arrays(A: Any, idx_dtype: Any = np.int32, msg: str = ""
                             ) -> Array | tuple[Array, ...]:
    """The index arrays of a sparse array in a dtype; ArgumentError where they do not fit it.

    Of rows, columns and blocks these are `indices` and `indptr`, of coordinates `coords`, of
    diagonals `offsets`.

    >>> from functrans.scipy import sparse
    >>> sparse.safely_cast_index_arrays(sparse.csr_array([[1.0, 2.0]]), "int64")[1].dtype
    dtype('int64')
    """
    dtype = np.dtype(idx_dtype)
    format = getattr(A, "format", "")
    if format in ("csr", "csc", "bsr"):
        parts: tuple[Any, ...] = (A.indices, A.indptr)
    elif format in ("coo", "dia"):
        parts = tuple(A.coords) if format == "coo" else (A.offsets,)
    else:
        raise ArgumentError(f"functrans.scipy.sparse.safely_cast_index_arrays: "
                            f"{type(A).__name__} {msg}".rstrip() + ".", where=user_source(),
                            fix="a sparse array with index arrays")
    most = np.iinfo(dtype).max
    if any(n > most for n in (*A.shape, *(p.size for p in parts))):
        raise ArgumentError(f"functrans.scipy.sparse.safely_cast_index_arrays: {dtype} for shape "
                            f"{A.shape} {msg}".rstrip() + ".", where=user_source(),
                            why="it has no number for each index.", fix="int64")
    cast: tuple[Array, ...] = tuple([p.astype(dtype) for p in parts])
    return cast[0] if format == "dia" else cast
