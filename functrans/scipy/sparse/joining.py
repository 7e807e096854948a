"""Sparse arrays of blocks, Kronecker products, triangles, axes and files."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced, staged, wrap
from functrans.scipy.sparse.arithmetic import (
    CLASSES,
    SparseArithmetic,
    bcoo_of,
    from_scipy,
    is_sparse,
    sparray,
)
from functrans.scipy.sparse.construction import eye_array, is_matrix, square
from functrans.scipy.sparse.merging import merged_side_by_side
from functrans.scipy.sparse.places import (
    chosen,
    columns_of,
    index_math,
    known_places,
    of_columns,
    without_zeros,
)
from functrans.scipy.sparse.reading import wrong
from functrans.sparse.base import index_dtype_for
from functrans.sparse.bcoo import BCOO, bcoo_fromdense
from functrans.typing import Array


def _read(x: Any) -> BCOO:
    if is_sparse(x):
        return bcoo_of(x)
    dense = jnp.atleast_2d(jnp.asarray(x))
    return bcoo_fromdense(dense, nse=dense.size if is_traced(dense) else None)


def _made(mat: BCOO, format: str | None, *xs: Any, default: str = "coo") -> SparseArithmetic:
    made: SparseArithmetic = CLASSES["coo", is_matrix(*xs)]._of(mat).asformat(format or default)
    return made


def _joined(name: str, blocks: Any, dtype: Any) -> tuple[BCOO, list[Any]]:
    rows = [list(row) for row in blocks]
    if not any(rows):
        raise wrong(name, "no blocks.", "a table of blocks, None for zeros")
    if len({len(r) for r in rows}) != 1:
        raise wrong(name, "rows of blocks of different lengths.", "a table of blocks, None for "
                    "zeros")
    given = [b for row in rows for b in row if b is not None]
    table = [[None if b is None else _read(b) for b in row] for row in rows]
    heights, widths = [0] * len(rows), [0] * len(rows[0])
    for sizes, axis in ((heights, 0), (widths, 1)):
        for i, row in enumerate(table):
            for j, b in enumerate(row):
                if b is None:
                    continue
                at = i if axis == 0 else j
                if len(b.shape) != 2:
                    raise wrong(name, f"block {i, j} has shape {b.shape}.", "two axes")
                if sizes[at] not in (0, b.shape[axis]) and any(
                        r is not None for r in ([row[k] for k in range(j)] if axis == 0 else
                                                [table[k][j] for k in range(i)])):
                    raise wrong(name, f"block {i, j} has {b.shape[axis]} "
                                f"{'rows' if axis == 0 else 'columns'}, and others {sizes[at]}.")
                sizes[at] = b.shape[axis]
    if not given:
        raise wrong(name, "no blocks.")
    parts = []
    for i, row in enumerate(table):
        for j, b in enumerate(row):
            if b is None:
                continue
            r, c = columns_of(b)
            up, left = sum(heights[:i]), sum(widths[:j])
            inside = (lambda xp, r, c, up=up, left=left, b=b: (
                xp.where(r < b.shape[0], r + up, sum(heights)),
                xp.where(c < b.shape[1], c + left, sum(widths))))
            parts.append((b.data, *index_math(inside, r, c)))
    dtype = jnp.result_type(*[p[0] for p in parts]) if dtype is None else dtype
    data = jnp.concatenate([p[0].astype(dtype) for p in parts])
    r, c = (index_math(lambda xp, *x: xp.concatenate(x), *[p[k] for p in parts]) for k in (1, 2))
    return of_columns([r, c], data, (sum(heights), sum(widths))), given


def block_array(blocks: Sequence[Sequence[Any]], *, format: str | None = None,
                dtype: Any = None) -> SparseArithmetic:
    """The array of a table of blocks, sparse or dense ones, None for zeros.

    Raises ShapeError where blocks do not fit.

    >>> from functrans.scipy import sparse
    >>> e = sparse.eye_array(2)
    >>> sparse.block_array([[e, None], [None, 2 * e]]).diagonal().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    mat, _ = _joined("block_array", blocks, dtype)
    made: SparseArithmetic = CLASSES["coo", False]._of(mat).asformat(format)
    return made


def bmat(blocks: Sequence[Sequence[Any]], format: str | None = None, dtype: Any = None
         ) -> SparseArithmetic:
    """The matrix of a table of blocks; an array where one of them is. See `block_array`.

    >>> from functrans.scipy import sparse
    >>> sparse.bmat([[sparse.eye(2), None], [None, sparse.eye(1)]]).shape
    (3, 3)
    """
    mat, given = _joined("bmat", blocks, dtype)
    return _made(mat, format, *given)


def _stack(name: str, table: Any, fast: str, format: str | None, dtype: Any
           ) -> SparseArithmetic:
    blocks = [b for row in table for b in row]
    if fast in ("csr", "csc") and _are_known_lines(blocks, fast):
        join = _one_after_the_other if fast == ("csr" if name == "vstack" else "csc") else _merged
        found = join(name, blocks, fast, dtype)
        return found if format is None else found.asformat(format)
    mat, given = _joined(name, table, dtype)
    alike = all(getattr(x, "format", "") == fast for x in given)
    return _made(mat, format, *given, default=fast if alike else "coo")


def _are_known_lines(blocks: list[Any], format: str) -> bool:
    """Whether all blocks are of compressed rows, or columns, of known places."""
    return bool(blocks) and all(
        not from_scipy(b) and getattr(b, "format", "") == format and len(b.shape) == 2 and
        not staged(b.data, b.indices, b.indptr) for b in blocks)


def _common_size(name: str, blocks: list[Any], axis: int) -> int:
    """The size along an axis that all blocks have."""
    size: int = blocks[0].shape[axis]
    for k, b in enumerate(blocks):
        if b.shape[axis] != size:
            raise wrong(name, f"block {(k, 0) if axis else (0, k)} has {b.shape[axis]} "
                        f"{'columns' if axis else 'rows'}, and others {size}.")
    return size


def _one_after_the_other(name: str, blocks: list[Any], format: str, dtype: Any
                         ) -> SparseArithmetic:
    """Compressed rows below each other, or columns side by side."""
    axis = 1 if format == "csr" else 0
    across = _common_size(name, blocks, axis)
    used = [b.nnz for b in blocks]
    before = np.cumsum([0, *used])
    lines = sum(b.shape[1 - axis] for b in blocks)
    index = np.result_type(*[b.indices.dtype for b in blocks],
                           index_dtype_for(np.int32, (lines, across, int(before[-1]))))
    at = np.concatenate([np.asarray(b.indices)[:n] for b, n in zip(blocks, used)])
    starts = np.concatenate([np.zeros(1, index), *[
        (np.asarray(b.indptr)[1:] + n).astype(index) for b, n in zip(blocks, before)]])
    data = jnp.concatenate([b.data if n == b.nse else b.data[:n] for b, n in zip(blocks, used)])
    flags = all(b.has_sorted_indices for b in blocks), all(b.has_canonical_format for b in blocks)
    shape = (lines, across) if axis else (across, lines)
    made: SparseArithmetic = CLASSES[format, is_matrix(*blocks)].tree_unflatten((shape, flags), (
        data if dtype is None else data.astype(dtype), wrap(at.astype(index, copy=False)),
        wrap(starts.astype(index, copy=False))))
    return made


def _merged(name: str, blocks: list[Any], format: str, dtype: Any) -> SparseArithmetic:
    """Compressed rows side by side, or columns below each other."""
    axis = 0 if format == "csr" else 1
    lines = _common_size(name, blocks, axis)
    if not all(b.has_canonical_format for b in blocks):
        blocks = [b.sum_duplicates() for b in blocks]
    across = sum(b.shape[1 - axis] for b in blocks)
    dtype = jnp.result_type(*[b.data for b in blocks]) if dtype is None else dtype
    parts = merged_side_by_side([(b.data.astype(dtype), b.indices, b.indptr) for b in blocks],
                                [b.shape[1 - axis] for b in blocks])
    shape = (across, lines) if axis else (lines, across)
    made: SparseArithmetic = CLASSES[format, is_matrix(*blocks)].tree_unflatten(
        (shape, (True, True)), parts)
    return made


def hstack(blocks: Sequence[Any], format: str | None = None, dtype: Any = None) -> SparseArithmetic:
    """Arrays side by side.

    >>> from functrans.scipy import sparse
    >>> sparse.hstack([sparse.eye_array(2), sparse.eye_array(2)]).shape
    (2, 4)
    """
    blocks = list(blocks)
    fast = "csr" if all(getattr(b, "format", "") == "csr" for b in blocks) else "csc"
    return _stack("hstack", [blocks], fast, format, dtype)


def vstack(blocks: Sequence[Any], format: str | None = None, dtype: Any = None) -> SparseArithmetic:
    """Arrays one below the other.

    >>> from functrans.scipy import sparse
    >>> sparse.vstack([sparse.eye_array(2), sparse.eye_array(2)]).shape
    (4, 2)
    """
    blocks = list(blocks)
    fast = "csc" if all(getattr(b, "format", "") == "csc" for b in blocks) else "csr"
    return _stack("vstack", [[b] for b in blocks], fast, format, dtype)


def block_diag(mats: Sequence[Any], format: str | None = None, dtype: Any = None
               ) -> SparseArithmetic:
    """The array with arrays along its diagonal.

    >>> from functrans.scipy import sparse
    >>> sparse.block_diag([sparse.eye_array(1), [[2.0, 3.0]]]).toarray().tolist()
    [[1.0, 0.0, 0.0], [0.0, 2.0, 3.0]]
    """
    mats = list(mats)
    table = [[m if i == j else None for j in range(len(mats))] for i, m in enumerate(mats)]
    mat, given = _joined("block_diag", table, dtype)
    return _made(mat, format, *given)


def kron(A: Any, B: Any, format: str | None = None) -> SparseArithmetic:
    """The Kronecker product of two matrices: blocks `A[i, j] * B`.

    Where half of B or more is stored the result is in blocks, unless `format` says another.

    >>> from functrans.scipy import sparse
    >>> sparse.kron(sparse.eye_array(2), sparse.csr_array([[1.0, 2.0]])).toarray().tolist()
    [[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]]
    """
    x, y = _read(A), _read(B)
    if len(x.shape) != 2 or len(y.shape) != 2:
        raise wrong("kron", f"shapes {x.shape} and {y.shape}.", "two matrices")
    (m, n), (p, q) = x.shape, y.shape
    first, second = np.repeat(np.arange(x.nse), y.nse), np.tile(np.arange(y.nse), x.nse)

    def spread(xp: Any, r: Any, c: Any, s: Any, t: Any) -> tuple[Any, ...]:
        inside = ((r < m) & (c < n))[first] & ((s < p) & (t < q))[second]
        return (xp.where(inside, r[first].astype(np.int64) * p + s[second], m * p),
                xp.where(inside, c[first].astype(np.int64) * q + t[second], n * q))

    rows, columns = index_math(spread, *columns_of(x), *columns_of(y))
    out = of_columns([rows, columns], x.data[first] * y.data[second], (m * p, n * q),
                     is_unique=x.unique_indices and y.unique_indices)
    blocks = 2 * y.nse >= p * q > 0 and not is_traced(out.indices)
    if format in (None, "bsr") and blocks:
        made: SparseArithmetic = CLASSES["bsr", is_matrix(A, B)]._of(out, (p, q))
        return made
    return _made(out, format, A, B)


def kronsum(A: Any, B: Any, format: str | None = None) -> SparseArithmetic:
    """The Kronecker sum of square matrices, `kron(I, A) + kron(B, I)`.

    >>> from functrans.scipy import sparse
    >>> A = sparse.csr_array([[0.0, 1.0], [2.0, 0.0]])
    >>> sparse.kronsum(A, 3 * sparse.eye_array(1)).toarray().tolist()
    [[3.0, 1.0], [2.0, 3.0]]
    """
    x, y = (CLASSES["coo", False]._of(_read(z)) for z in (A, B))
    dtype = jnp.result_type(x.data, y.data)
    left = kron(eye_array(square("kronsum", y), dtype=dtype), x, "coo")
    right = kron(y, eye_array(square("kronsum", x), dtype=dtype), "coo")
    total = (left + right).to_bcoo()
    return _made(total, format, A, B, default="csr")


def _triangle(name: str, A: Any, k: int, format: str | None, lower: bool
              ) -> SparseArithmetic:
    mat = _read(A)
    if len(mat.shape) != 2:
        raise wrong(name, f"shape {mat.shape}.", "a matrix")
    r, c = columns_of(mat)
    if not is_traced(mat.indices):
        away = np.asarray(c).astype(np.int64) - np.asarray(r)
        mat = chosen(mat, np.flatnonzero(away <= k if lower else away >= k))
    else:
        kept = (c - r <= k) if lower else (c - r >= k)
        mat = mat.with_data(jnp.where(kept, mat.data, jnp.zeros((), mat.dtype)))
    return _made(mat, format, A)


def tril(A: Any, k: int = 0, format: str | None = None) -> SparseArithmetic:
    """The elements on diagonal `k` and below.

    >>> from functrans.scipy import sparse
    >>> sparse.tril(sparse.csr_array([[1.0, 2.0], [3.0, 4.0]])).toarray().tolist()
    [[1.0, 0.0], [3.0, 4.0]]
    """
    return _triangle("tril", A, k, format, True)


def triu(A: Any, k: int = 0, format: str | None = None) -> SparseArithmetic:
    """The elements on diagonal `k` and above.

    >>> from functrans.scipy import sparse
    >>> sparse.triu(sparse.csr_array([[1.0, 2.0], [3.0, 4.0]])).toarray().tolist()
    [[1.0, 2.0], [0.0, 4.0]]
    """
    return _triangle("triu", A, k, format, False)


def find(A: Any) -> tuple[Array, Array, Array]:
    """The rows, columns and values of what is not zero; places have to be known, and values.

    >>> from functrans.scipy import sparse
    >>> [x.tolist() for x in sparse.find(sparse.csr_array([[0.0, 2.0], [3.0, 0.0]]))]
    [[0, 1], [1, 0], [2.0, 3.0]]
    """
    mat = without_zeros(_read(A))
    known_places("find", mat.data, mat.indices, why="how many there are is the shape of the "
                 "result.")
    rows, columns = columns_of(mat)
    return rows, columns, mat.data


def _coo_of(A: Any) -> Any:
    if not is_sparse(A):
        raise ArgumentError("functrans.scipy.sparse: an array that is not sparse.",
                            where=user_source(), fix="coo_array(x)")
    return A if hasattr(A, "tocoo") and not from_scipy(A) else CLASSES["coo", False]._of(_read(A))


def permute_dims(A: Any, axes: Sequence[int] | None = None, copy: bool = False) -> SparseArithmetic:
    """The array with its axes in another order, reversed by default, as coordinates.

    >>> from functrans.scipy import sparse
    >>> sparse.permute_dims(sparse.coo_array((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    made: SparseArithmetic = _coo_of(A).tocoo().transpose(axes)
    return made


def swapaxes(A: Any, axis1: int, axis2: int) -> SparseArithmetic:
    """The array with two axes exchanged, as coordinates.

    >>> from functrans.scipy import sparse
    >>> sparse.swapaxes(sparse.coo_array((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    coo = _coo_of(A).tocoo()
    order = list(range(coo.ndim))
    if not all(-coo.ndim <= a < coo.ndim for a in (axis1, axis2)):
        raise wrong("swapaxes", f"axes {axis1} and {axis2} of {coo.ndim}.")
    order[axis1], order[axis2] = order[axis2], order[axis1]
    made: SparseArithmetic = coo.transpose(order)
    return made


def expand_dims(A: Any, /, *, axis: int = 0) -> SparseArithmetic:
    """The array with a new axis of size 1, as coordinates.

    >>> from functrans.scipy import sparse
    >>> sparse.expand_dims(sparse.eye_array(2), axis=1).shape
    (2, 1, 2)
    """
    coo = _coo_of(A).tocoo()
    if not -coo.ndim - 1 <= axis <= coo.ndim:
        raise wrong("expand_dims", f"axis={axis} of an array of {coo.ndim} axes.")
    at = axis % (coo.ndim + 1)
    made: SparseArithmetic = coo.reshape(*coo.shape[:at], 1, *coo.shape[at:])
    return made


_PARTS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "bsr": ("indices", "indptr"),
          "dia": ("offsets",), "coo": ("row", "col")}


def save_npz(file: str | os.PathLike[str] | io.BufferedIOBase, matrix: Any,
             compressed: bool = True) -> None:
    """Write a sparse array to a file that `load_npz`, here and in SciPy, reads.

    Raises ArgumentError for formats on the host, and ConcretizationError for traced values.

    >>> import io
    >>> from functrans.scipy import sparse
    >>> file = io.BytesIO()
    >>> sparse.save_npz(file, sparse.eye_array(3))
    >>> sparse.load_npz(io.BytesIO(file.getvalue())).shape
    (3, 3)
    """
    format = getattr(matrix, "format", None)
    if format not in _PARTS:
        raise ArgumentError(f"functrans.scipy.sparse.save_npz: {type(matrix).__name__}.",
                            where=user_source(), fix="save_npz(file, m.tocsr())")
    names = _PARTS[format] if len(matrix.shape) == 2 else (
        ("coords",) if format == "coo" else _PARTS[format])
    parts = {name: np.asarray(getattr(matrix, name)) for name in names}
    known_places("save_npz", matrix.data, why="they are written to a file.")
    parts |= {"format": np.asarray(format.encode()), "shape": np.asarray(matrix.shape),
              "data": np.asarray(matrix.data)}
    if isinstance(matrix, sparray) or (from_scipy(matrix) and
                                       type(matrix).__name__.endswith("_array")):
        parts["_is_array"] = np.asarray(True)
    write: Any = np.savez_compressed if compressed else np.savez
    write(file, **parts)


def load_npz(file: str | os.PathLike[str] | io.BufferedIOBase) -> SparseArithmetic:
    """The sparse array of a file that `save_npz` wrote, here or in SciPy.

    Raises ArgumentError for a file without one.

    >>> import io
    >>> from functrans.scipy import sparse
    >>> file = io.BytesIO()
    >>> sparse.save_npz(file, sparse.csr_array([[0.0, 2.0]]), compressed=False)
    >>> sparse.load_npz(io.BytesIO(file.getvalue())).toarray().tolist()
    [[0.0, 2.0]]
    """
    with np.load(file, allow_pickle=False) as stored:
        found = dict(stored)
    format = found["format"].item().decode() if "format" in found and \
        found["format"].dtype.kind == "S" else str(found.get("format", ""))
    if format not in _PARTS or "data" not in found or "shape" not in found:
        raise ArgumentError("functrans.scipy.sparse.load_npz: the file has no sparse array.",
                            where=user_source(), fix="numpy.load(file)")
    cls = CLASSES[format, "_is_array" not in found]
    shape = tuple(found["shape"].tolist())
    if format == "dia":
        parts: tuple[Any, ...] = (found["data"], found["offsets"])
    elif format == "coo":
        at = tuple(found["coords"]) if "coords" in found else (found["row"], found["col"])
        parts = (found["data"], at)
    else:
        parts = (found["data"], found["indices"], found["indptr"])
    made: SparseArithmetic = cls(parts, shape=shape)
    return made
