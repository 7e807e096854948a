"""Compressed rows, columns and blocks with the names of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.numpy.common import is_traced, staged
from functrans.scipy.sparse.arithmetic import CLASSES, is_sparse, sparray, spmatrix
from functrans.scipy.sparse.base import ScipyFormat
from functrans.scipy.sparse.elementwise import COMPARISONS
from functrans.scipy.sparse.merging import can_merge, merged_pairwise, merged_product
from functrans.scipy.sparse.places import (
    columns_of,
    compact,
    compressed,
    index_math,
    known_places,
    of_columns,
    summed,
)
from functrans.scipy.sparse.reading import (
    inside,
    is_shape,
    places_of,
    read_coordinates,
    sizes_of,
    typed,
    wrong,
)
from functrans.sparse.bcoo import BCOO
from functrans.sparse.bcsr import BCSR
from functrans.sparse.formats import CSC
from functrans.sparse.rows import coordinates
from functrans.tree_util import register_pytree_node_class
from functrans.typing import Array


class _Pointers(ScipyFormat):
    """Parts of data, indices and pointers."""

    indices: Array
    indptr: Array
    _flags: tuple[bool, bool]  # in order, and without duplicates

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """The three parts, and what is static."""
        return (self.data, self.indices, self.indptr), (self._shape, self._flags)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        """The array of `tree_flatten`."""
        found = object.__new__(cls)
        found.data, found.indices, found.indptr = children
        found._shape, found._flags = aux
        return found

    @property
    def nnz(self) -> int:
        """The number of stored elements, zeros included; what there is room for under `jit`."""
        return self.nse if is_traced(self.indptr) else int(np.asarray(self.indptr)[-1]) * (
            self.nse // max(self.indices.size, 1) or 1)

    @property
    def indices_sorted(self) -> bool:
        """Whether indices are known to be in order."""
        return self._flags[0]

    def _read(self, name: str, arg: Any, shape: Any, dtype: Any, block: tuple[int, ...],
              by_columns: bool) -> None:
        """Data, indices and pointers as they are given."""
        data, indices, indptr = typed(arg[0], dtype), *(places_of(name, p, ()) for p in arg[1:])
        if data.ndim != 1 + len(block) or indices.ndim != 1 or indptr.ndim != 1 or \
                data.shape[0] != indices.shape[0] or not indptr.size:
            raise wrong(name, f"data of shape {data.shape}, indices {indices.shape} and indptr "
                        f"{indptr.shape}.", "(data, indices, indptr), the first two of one length")
        r, c = block or (1, 1)
        major, unit = (indptr.size - 1) * r, c
        if shape is None:
            (known,) = known_places(name, indices, why="the shape is that of the largest.",
                                    fix="shape=(m, n)")
            minor = (int(known.max()) + 1 if known.size else 0) * unit
            shape = (minor, major) if by_columns else (major, minor)
        sizes = sizes_of(name, shape, (1, 2) if self.format == "csr" else (2,))
        wide = sizes if len(sizes) == 2 else (1, *sizes)
        lines, across = wide[::-1] if by_columns else wide
        if lines != major or across % unit:
            raise wrong(name, f"{indptr.size} pointers for shape {sizes}.",
                        f"{lines // r + 1} of them")
        inside(name, indices, across // unit, "indices")
        if not is_traced(indptr):
            at = np.asarray(indptr)
            if at[0] != 0 or (np.diff(at) < 0).any() or at[-1] > data.shape[0]:
                raise wrong(name, f"pointers from {at[0]} to {at[-1]} into {data.shape[0]} "
                            "elements.", "pointers from 0 on that do not decrease")
        index = np.promote_types(indices.dtype, indptr.dtype)
        self.data = data
        self.indices, self.indptr = (index_math(lambda xp, p: p.astype(index), p)
                                     for p in (indices, indptr))
        self._shape, self._flags = sizes, _order(self.indices, self.indptr)

    def check_format(self, full_check: bool = True) -> None:
        """Raise where parts do not fit; with `full_check` where known indices do not either."""
        parts = (self.data, self.indices, self.indptr)
        if full_check:
            options = {"blocksize": tuple(self.data.shape[1:])} if self.data.ndim == 3 else {}
            CLASSES[self.format, False](parts, shape=self._shape, **options)

    def _take(self, made: Any) -> None:
        """The parts of another array."""
        parts, (self._shape, self._flags) = made.tree_flatten()
        self.data, self.indices, self.indptr = parts


def _order(indices: Any, indptr: Any) -> tuple[bool, bool]:
    """Whether known indices are in order within lines, and whether none occurs twice."""
    if is_traced(indices) or is_traced(indptr):
        return False, False
    at, starts = np.asarray(indices), np.asarray(indptr)
    steps = np.diff(at[:starts[-1]].astype(np.int64))
    same = np.ones(max(starts[-1] - 1, 0), bool)
    ends = starts[1:-1]
    same[ends[(ends > 0) & (ends < starts[-1])] - 1] = False
    in_order = bool((steps[same] >= 0).all())
    return in_order, in_order and bool((steps[same] > 0).all())


class _LinesOf(_Pointers):
    """Compressed rows or columns of elements."""

    @property
    def has_sorted_indices(self) -> bool:
        """Whether indices are known to be in order within lines."""
        return self._flags[0]

    @property
    def has_canonical_format(self) -> bool:
        """Whether indices are known to be in order within lines, and to occur once."""
        return all(self._flags)


class _Csr(_LinesOf):
    format = "csr"
    _long_name = "Compressed Sparse Row"

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *,
                 maxprint: int | None = None, nse: int | None = None) -> None:
        name = type(self).__name__
        if isinstance(arg1, tuple) and len(arg1) == 3 and not is_shape(arg1):
            self._read(name, arg1, shape, dtype, (), False)
        else:
            if type(arg1).__name__ in ("csr_array", "csr_matrix") and shape is dtype is None and \
                    not isinstance(arg1, ScipyFormat):
                self._read(name, (arg1.data, arg1.indices, arg1.indptr), arg1.shape, None, (),
                           False)
                return
            ranks = (2,) if isinstance(self, spmatrix) else (1, 2)
            mat = read_coordinates(name, arg1, shape, dtype, nse, ranks)
            self._take(arg1 if isinstance(arg1, _Csr) and dtype is None else self._of(mat))

    @classmethod
    def _of(cls, mat: BCOO) -> Any:
        shape = mat.shape
        if len(shape) == 1:
            (c,) = columns_of(mat)
            mat = of_columns([index_math(lambda xp, c: xp.zeros_like(c), c), c], mat.data,
                             (1, *shape), mat.indices_sorted, mat.unique_indices)
        mat = mat if mat.unique_indices and not is_traced(mat.indices) else summed(mat)
        data, indices, indptr = compressed(mat)
        return cls.tree_unflatten((shape, (True, mat.unique_indices)), (data, indices, indptr))

    def __getitem__(self, index: Any) -> Any:
        window = _row_window(self, index)
        if window is None:
            return super().__getitem__(index)
        rows, left = window
        if all(isinstance(p, slice) and p == slice(None) for p in left):
            return rows
        return super(_Csr, rows).__getitem__(left)

    def _sum(self, other: Any, sign: int) -> Any:
        if isinstance(other, _Csr) and self.shape == other.shape and len(self.shape) == 2 and \
                not staged(self.data, self.indptr, other.data, other.indptr) and \
                np.dtype(bool) not in (self.dtype, other.dtype):
            rows = self._batched() + (other if sign > 0 else -other)._batched()
            found = type(self).tree_unflatten((self.shape, (True, True)),
                                              rows.tree_flatten()[0])
            return found if np.asarray(found.data).all() else found.eliminate_zeros()
        return super()._sum(other, sign)

    def _merged_with(self, other: Any, fun: Callable[[Any, Any], Any]) -> Any:
        """The array of `fun` of the elements of two, where `fun(0, 0)` is 0."""
        return type(self).tree_unflatten((self.shape, (True, True)),
                                         merged_pairwise(self, other, fun))

    def multiply(self, other: Any) -> Any:
        """The elementwise product with a number, a dense or a sparse array that broadcasts."""
        if is_sparse(other) and can_merge(self, other):
            return type(self).tree_unflatten((self.shape, (True, True)),
                                             merged_product(self, other))
        return super().multiply(other)

    def _either(self, other: Any, largest: bool) -> Any:
        if is_sparse(other) and can_merge(self, other):
            return self._merged_with(other, jnp.maximum if largest else jnp.minimum)
        return super()._either(other, largest)

    def _compared(self, name: str, other: Any) -> Any:
        compare = COMPARISONS[name]
        if is_sparse(other) and not compare(0, 0) and can_merge(self, other):
            return self._merged_with(other, compare)
        return super()._compared(name, other)

    def _batched(self) -> BCSR:
        found: BCSR = BCSR.tree_unflatten((self._shape[-1], *self._flags),
                                          (self.data, self.indices, self.indptr))
        return found

    def _plain(self) -> Any:
        return self._batched() if len(self._shape) == 2 else self.to_bcoo()

    def to_bcoo(self) -> BCOO:
        """The array as the coordinates of `functrans.experimental.sparse`."""
        rows = _lines(self)
        used = self.nnz if not is_traced(self.indptr) else self.nse
        data = self.data if used == self.nse else self.data[:used]
        columns = index_math(lambda xp, c: c[:used], self.indices)
        if len(self._shape) == 1:
            return of_columns([index_math(lambda xp, r, c: xp.where(r == 0, c, self._shape[0]),
                                          rows, columns)], data, self._shape, *self._flags)
        return of_columns([rows, columns], data, self._shape, *self._flags)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transpose, as compressed columns."""
        if len(self._shape) == 1 or not _turns(axes):
            return super().transpose(axes)
        cls = CLASSES["csc", isinstance(self, spmatrix)]
        return cls.tree_unflatten((self._shape[::-1], self._flags), self.tree_flatten()[0])


def _row_window(x: Any, index: Any) -> tuple[Any, Any] | None:
    """The rows that an index speaks of, where they stand side by side, and the index in these."""
    parts = index if isinstance(index, tuple) else (index,)
    if len(x.shape) != 2 or not parts or len(parts) > 2 or is_traced(x.indptr) or \
            is_traced(x.indices) or any(p is None or p is Ellipsis for p in parts):
        return None
    first, n = parts[0], x.shape[0]
    left: Any
    if isinstance(first, (int, np.integer)) and not isinstance(first, bool) and -n <= first < n:
        start, stop, left = int(first) % n, int(first) % n + 1, 0
    elif isinstance(first, slice) and first.step in (None, 1) and not any(
            is_traced(b) for b in (first.start, first.stop)):
        start, stop, _ = first.indices(n)
        stop, left = max(start, stop), slice(None)
    else:
        return None
    starts = np.asarray(x.indptr)
    a, b = int(starts[start]), int(starts[stop])
    made = type(x).tree_unflatten(((stop - start, x.shape[1]), x._flags), (
        x.data[a:b], jnp.asarray(np.asarray(x.indices)[a:b]),
        jnp.asarray(starts[start:stop + 1] - starts[start])))
    return made, (left, *parts[1:])


def _turns(axes: Any) -> bool:
    return axes is None or tuple(int(a) % 2 for a in axes if -2 <= int(a) < 2) == (1, 0)


def _lines(x: _Pointers) -> Any:
    """The row of each element of compressed rows; beyond all rows for those of no row."""
    if is_traced(x.indices) or is_traced(x.indptr):
        return coordinates([jnp.asarray(x.indices)], [jnp.asarray(x.indptr)])[:, 0]
    starts = np.asarray(x.indptr)
    return jnp.asarray(np.repeat(np.arange(starts.size - 1, dtype=starts.dtype), np.diff(starts)))


@register_pytree_node_class
class csr_array(_Csr, sparray):
    """Compressed rows: of (data, indices, indptr), (data, (row, col)), a shape, or any array.

    The pytree of `data`, `indices` and `indptr`: values may be traced, batched and differentiated.
    `nse` is the room for elements of a dense array whose values are traced. Methods that change an
    array of SciPy's return another here. Raises ShapeError for parts that do not fit, ArgumentError
    for indices out of bounds.

    >>> from functrans.scipy import sparse
    >>> m = sparse.csr_array(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> print(repr(m))
    <Compressed Sparse Row sparse array of dtype 'float32'
        with 2 stored elements and shape (2, 2)>
    >>> (m @ jnp.array([1.0, 10.0])).tolist(), (m * m).toarray().tolist(), m.indptr.tolist()
    ([20.0, 1.0], [[0.0, 4.0], [1.0, 0.0]], [0, 1, 2])
    """


@register_pytree_node_class
class csr_matrix(spmatrix, _Csr):
    """A matrix of compressed rows: as `csr_array`, but `*` is the matrix product.

    >>> from functrans.scipy import sparse
    >>> m = sparse.csr_matrix(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> (m * m).toarray().tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """


class _Csc(_LinesOf):
    format = "csc"
    _long_name = "Compressed Sparse Column"

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *,
                 maxprint: int | None = None, nse: int | None = None) -> None:
        name = type(self).__name__
        if isinstance(arg1, tuple) and len(arg1) == 3 and not is_shape(arg1):
            self._read(name, arg1, shape, dtype, (), True)
        elif type(arg1).__name__ in ("csc_array", "csc_matrix") and shape is dtype is None and \
                not isinstance(arg1, ScipyFormat):
            self._read(name, (arg1.data, arg1.indices, arg1.indptr), arg1.shape, None, (), True)
        else:
            mat = read_coordinates(name, arg1, shape, dtype, nse)
            self._take(arg1 if isinstance(arg1, _Csc) and dtype is None else self._of(mat))

    @classmethod
    def _of(cls, mat: BCOO) -> Any:
        r, c = columns_of(mat)
        turned = of_columns([c, r], mat.data, mat.shape[::-1], False, mat.unique_indices)
        if is_traced(mat.indices) or not mat.unique_indices:
            turned = summed(turned)
        return cls.tree_unflatten((mat.shape, (True, turned.unique_indices)), compressed(turned))

    def _turned(self) -> Any:
        cls = CLASSES["csr", False]
        return cls.tree_unflatten((self._shape[::-1], self._flags), self.tree_flatten()[0])

    def _plain(self) -> Any:
        return CSC.tree_unflatten(self._shape, (self.data, self.indices, self.indptr))

    def to_bcoo(self) -> BCOO:
        """The array as the coordinates of `functrans.experimental.sparse`."""
        mat = self._turned().to_bcoo()
        c, r = columns_of(mat)
        return of_columns([r, c], mat.data, self._shape, False, mat.unique_indices)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transpose, as compressed rows."""
        if not _turns(axes):
            return super().transpose(axes)
        cls = CLASSES["csr", isinstance(self, spmatrix)]
        return cls.tree_unflatten((self._shape[::-1], self._flags), self.tree_flatten()[0])


@register_pytree_node_class
class csc_array(_Csc, sparray):
    """Compressed columns; see `csr_array`.

    >>> from functrans.scipy import sparse
    >>> m = sparse.csc_array(jnp.array([[0.0, 2.0], [0.0, 3.0]]))
    >>> m.indptr.tolist(), m.indices.tolist()
    ([0, 0, 2], [0, 1])
    """


@register_pytree_node_class
class csc_matrix(spmatrix, _Csc):
    """A matrix of compressed columns: as `csc_array`, but `*` is the matrix product.

    >>> from functrans.scipy import sparse
    >>> sparse.csc_matrix((2, 3)).nnz
    0
    """


class _Bsr(_Pointers):
    format = "bsr"
    _long_name = "Block Sparse Row"

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False,
                 blocksize: tuple[int, int] | None = None, *, maxprint: int | None = None,
                 nse: int | None = None) -> None:
        name = type(self).__name__
        if isinstance(arg1, tuple) and len(arg1) == 3 and not is_shape(arg1):
            block = jnp.shape(arg1[0])[1:]
            if len(block) != 2 or 0 in block or (blocksize and tuple(blocksize) != tuple(block)):
                raise wrong(name, f"blocks of shape {tuple(block)}.",
                            "data of shape (blocks, rows, columns)")
            self._read(name, arg1, shape, dtype, tuple(block), False)
        elif is_sparse(arg1) and getattr(arg1, "format", "") == "bsr" and shape is dtype is None \
                and not isinstance(arg1, ScipyFormat) and blocksize in (None, arg1.blocksize):
            self._read(name, (arg1.data, arg1.indices, arg1.indptr), arg1.shape, None,
                       tuple(arg1.blocksize), False)
        else:
            mat = read_coordinates(name, arg1, shape, dtype, nse)
            same = isinstance(arg1, _Bsr) and blocksize in (None, arg1.blocksize)
            self._take(arg1 if same and dtype is None else self._of(mat, blocksize))

    @classmethod
    def _of(cls, mat: BCOO, blocksize: tuple[int, int] | None = None) -> Any:
        mat = compact(mat)
        rows, columns = known_places("bsr_array", *columns_of(mat))
        m, n = mat.shape
        r, c = _good_blocks(rows, columns, mat.shape) if blocksize is None else blocksize
        if m % r or n % c:
            raise wrong(cls.__name__, f"blocks of {r} by {c} of shape {mat.shape}.",
                        "sizes that divide those of the array")
        place = rows.astype(np.int64) // r * max(n // c, 1) + columns // c
        blocks, number = np.unique(place, return_inverse=True)
        kept = np.int32 if mat.dtype == bool else mat.dtype
        data = jnp.zeros((blocks.size, r, c), kept).at[number, rows % r, columns % c].add(
            mat.data.astype(kept)).astype(mat.dtype)
        starts = np.zeros(m // r + 1, np.int32)
        np.cumsum(np.bincount(blocks // max(n // c, 1), minlength=m // r)[:m // r], out=starts[1:])
        return cls.tree_unflatten((mat.shape, (True, True)), (
            data, jnp.asarray((blocks % max(n // c, 1)).astype(np.int32)), jnp.asarray(starts)))

    @property
    def blocksize(self) -> tuple[int, int]:
        """The rows and columns of a block."""
        _, rows, columns = self.data.shape
        return rows, columns

    def _detail(self) -> str:
        return f" (blocksize={self.blocksize[0]}x{self.blocksize[1]})"

    @property
    def nnz(self) -> int:
        """The number of stored elements, those of all blocks."""
        r, c = self.blocksize
        return (self.data.shape[0] if is_traced(self.indptr) else
                int(np.asarray(self.indptr)[-1])) * r * c

    def to_bcoo(self) -> BCOO:
        """The array as the coordinates of `functrans.experimental.sparse`."""
        r, c = self.blocksize
        rows, used = _lines(self), self.data.shape[0]
        used = used if is_traced(self.indptr) else int(np.asarray(self.indptr)[-1])

        def spread(xp: Any, rows: Any, columns: Any) -> tuple[Any, ...]:
            shape = (used, r, c)
            i = rows[:used, None, None] * r + np.arange(r, dtype=np.int32)[:, None]
            j = columns[:used, None, None] * c + np.arange(c, dtype=np.int32)
            return (xp.broadcast_to(i, shape).reshape(-1), xp.broadcast_to(j, shape).reshape(-1))

        i, j = index_math(spread, rows, self.indices)
        return of_columns([i, j], self.data[:used].reshape(-1), self._shape, False, self._flags[1])

    def _like(self, mat: BCOO, format: str) -> Any:
        found = super()._like(mat, "csr" if format == "bsr" else format)
        if format != "bsr" or found.ndim != 2:
            return found
        cls = CLASSES["bsr", isinstance(self, spmatrix)]
        r, c = self.blocksize
        fits = mat.shape[0] % r == 0 and mat.shape[1] % c == 0
        if is_traced(mat.indices):
            return found
        return cls._of(mat, (r, c) if fits else None)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transpose, in blocks that are those of this one transposed."""
        if not _turns(axes):
            return super().transpose(axes)
        r, c = columns_of(self.to_bcoo())
        mat = of_columns([c, r], self.to_bcoo().data, self._shape[::-1])
        if is_traced(mat.indices):
            return super()._like(mat, "csr")
        return type(self)._of(mat, self.blocksize[::-1])


def _good_blocks(rows: Any, columns: Any, shape: tuple[Any, ...]) -> tuple[int, int]:
    """The largest of some block sizes that stores three zeros in ten or fewer."""
    for size in (6, 4, 3, 2):
        if rows.size and not (shape[0] % size or shape[1] % size):
            width = shape[1] // size
            count = np.unique(rows.astype(np.int64) // size * width + columns // size).size
            if rows.size > 0.7 * count * size * size:
                return size, size
    return 1, 1


@register_pytree_node_class
class bsr_array(_Bsr, sparray):
    """Rows of compressed blocks: of (data (blocks, r, c), indices, indptr), or as `csr_array`.

    Places that are not stored in a block are stored as zeros. Where blocks stand has to be known
    when they are made; without `blocksize` they have a size that stores few zeros.

    >>> from functrans.scipy import sparse
    >>> m = sparse.bsr_array(jnp.ones((2, 4)), blocksize=(2, 2))
    >>> m.data.shape, m.indices.tolist()
    ((2, 2, 2), [0, 1])
    """


@register_pytree_node_class
class bsr_matrix(spmatrix, _Bsr):
    """A matrix of compressed blocks: as `bsr_array`, but `*` is the matrix product.

    >>> from functrans.scipy import sparse
    >>> sparse.bsr_matrix(jnp.ones((2, 2)), blocksize=(2, 2)).blocksize
    (2, 2)
    """


CLASSES.update({("csr", False): csr_array, ("csr", True): csr_matrix, ("csc", False): csc_array,
                ("csc", True): csc_matrix, ("bsr", False): bsr_array, ("bsr", True): bsr_matrix})
