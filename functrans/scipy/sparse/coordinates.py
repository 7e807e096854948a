"""Coordinates and diagonals with the names of SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.numpy.common import is_traced
from functrans.scipy.sparse.arithmetic import CLASSES, from_scipy, sparray, spmatrix
from functrans.scipy.sparse.base import ScipyFormat
from functrans.scipy.sparse.places import (
    columns_of,
    compact,
    index_math,
    known_places,
    of_columns,
    values_known,
)
from functrans.scipy.sparse.reading import (
    is_shape,
    places_of,
    read_coordinates,
    sizes_of,
    typed,
    wrong,
)
from functrans.sparse.bcoo import BCOO
from functrans.tree_util import register_pytree_node_class
from functrans.typing import Array


class _Coo(ScipyFormat):
    format = "coo"
    _long_name = "COOrdinate"
    coords: tuple[Array, ...]
    _flags: tuple[bool, bool]

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *,
                 maxprint: int | None = None, nse: int | None = None) -> None:
        ranks = (2,) if isinstance(self, spmatrix) else (0,)
        if ranks == (0,) and is_shape(arg1):
            ranks = (len(arg1),)
        made = self._of(read_coordinates(type(self).__name__, arg1, shape, dtype, nse, ranks))
        self.data, self.coords = made.data, made.coords
        self._shape, self._flags = made._shape, made._flags

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """The values and the columns of index vectors, and what is static."""
        return (self.data, *self.coords), (self._shape, self._flags)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        """The array of `tree_flatten`."""
        found = object.__new__(cls)
        found.data, *coords = children
        found.coords = tuple(coords)
        found._shape, found._flags = aux
        return found

    @classmethod
    def _of(cls, mat: BCOO) -> Any:
        flags = (mat.indices_sorted, mat.unique_indices)
        return cls.tree_unflatten((mat.shape, flags), (mat.data, *columns_of(mat)))

    def to_bcoo(self) -> BCOO:
        """The array as the coordinates of `functrans.experimental.sparse`."""
        return of_columns(self.coords, self.data, self._shape, *self._flags)

    @property
    def row(self) -> Array:
        """The row of each element."""
        return self.coords[-2] if self.ndim > 1 else jnp.zeros_like(self.coords[0])

    @property
    def col(self) -> Array:
        """The column of each element."""
        return self.coords[-1]


@register_pytree_node_class
class coo_array(_Coo, sparray):
    """Coordinates, of any number of axes: of (data, (row, col)), a shape, or any array.

    The pytree of `data` and `coords`. Places may occur twice and are added up. Under `jit`, where
    places are traced, elements out of bounds count for nothing. See `csr_array`.

    >>> from functrans.scipy import sparse
    >>> m = sparse.coo_array((jnp.array([1.0, 2.0, 3.0]), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    >>> m.nnz, m.toarray().tolist(), m.tocsr().data.tolist()
    (3, [[0.0, 3.0], [3.0, 0.0]], [3.0, 3.0])
    >>> (m @ m.T).toarray().tolist()
    [[9.0, 0.0], [0.0, 9.0]]
    """


@register_pytree_node_class
class coo_matrix(spmatrix, _Coo):
    """A matrix of coordinates: as `coo_array`, but `*` is the matrix product.

    >>> from functrans.scipy import sparse
    >>> sparse.coo_matrix(([1.0], ([0], [2]))).shape
    (1, 3)
    """


class _Dia(ScipyFormat):
    format = "dia"
    _long_name = "DIAgonal"
    offsets: Array

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *,
                 maxprint: int | None = None, nse: int | None = None) -> None:
        name = type(self).__name__
        if from_scipy(arg1) and arg1.format == "dia" and shape is None:
            shape, arg1 = arg1.shape, (arg1.data, arg1.offsets)
        if isinstance(arg1, tuple) and len(arg1) == 2 and not is_shape(arg1) and \
                not isinstance(arg1[1], tuple):
            if shape is None:
                raise wrong(name, "diagonals without a shape.", "shape=(m, n)")
            self._shape = sizes_of(name, shape, (2,))
            data = typed(arg1[0], dtype)
            offsets = arg1[1] if is_traced(arg1[1]) else np.atleast_1d(np.asarray(arg1[1]))
            self.data = data[None] if data.ndim == 1 else data
            self.offsets = places_of(name, offsets, self._shape)
            if self.data.ndim != 2 or self.offsets.shape != self.data.shape[:1]:
                raise wrong(name, f"data of shape {data.shape} for offsets of shape "
                            f"{self.offsets.shape}.", "a row of data for each offset")
            if not is_traced(self.offsets) and \
                    np.unique(np.asarray(self.offsets)).size < self.offsets.size:
                raise wrong(name, f"offsets {np.asarray(self.offsets).tolist()}.",
                            "each diagonal once")
        else:
            made = arg1 if isinstance(arg1, _Dia) and dtype is None and shape is None else \
                self._of(read_coordinates(name, arg1, shape, dtype, nse))
            self.data, self.offsets, self._shape = made.data, made.offsets, made._shape

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """The diagonals and their numbers, and the shape."""
        return (self.data, self.offsets), self._shape

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        """The array of `tree_flatten`."""
        found = object.__new__(cls)
        found.data, found.offsets = children
        found._shape = aux
        return found

    @classmethod
    def _of(cls, mat: BCOO) -> Any:
        mat = compact(mat)
        rows, columns = known_places("dia_array", *columns_of(mat), why="where diagonals are "
                                     "says how many are stored.")
        offsets, number = np.unique(columns.astype(np.int64) - rows, return_inverse=True)
        width = int(columns.max()) + 1 if columns.size else 0
        kept = np.int32 if mat.dtype == bool else mat.dtype
        data = jnp.zeros((offsets.size, width), kept).at[number, columns].add(
            mat.data.astype(kept)).astype(mat.dtype)
        return cls.tree_unflatten(mat.shape, (data, jnp.asarray(offsets.astype(np.int32))))

    def _detail(self) -> str:
        return f" ({self.data.shape[0]} diagonals)"

    @property
    def nnz(self) -> int:
        """The number of elements of the diagonals that are in the array."""
        if is_traced(self.offsets):
            return self.nse
        (m, n), width = self._shape, self.data.shape[1]
        return sum(max(0, min(m + k, n, width) - max(k, 0))
                   for k in np.asarray(self.offsets).tolist())

    def to_bcoo(self) -> BCOO:
        """The array as the coordinates of `functrans.experimental.sparse`, without known zeros."""
        (m, n), (count, width) = self._shape, self.data.shape

        def spread(xp: Any, offsets: Any) -> tuple[Any, ...]:
            columns = xp.broadcast_to(xp.arange(width, dtype=offsets.dtype), (count, width))
            rows = columns - offsets[:, None]
            out = (rows < 0) | (rows >= m) | (columns >= n)
            return (xp.where(out, m, rows).reshape(-1), xp.where(out, n, columns).reshape(-1))

        rows, columns = index_math(spread, self.offsets)
        return compact(of_columns([rows, columns], self.data.reshape(-1), self._shape, False, True))

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """The array in a format, without zeros where values are known; see `csr_array.asformat`."""
        if format in (None, "dia"):
            return self
        found = super().asformat("coo")
        if values_known(found.data) and not is_traced(self.offsets):
            found = found.eliminate_zeros()
        return found.asformat(format)

    def tobsr(self, blocksize: tuple[int, int] | None = None, copy: bool = False) -> Any:
        """The array as blocks; see `csr_array.tobsr`."""
        return self.tocoo().tobsr(blocksize)

    def sum_duplicates(self) -> Any:
        """The array itself: a diagonal has each place once."""
        return self

    def sort_indices(self) -> Any:
        """The array itself: diagonals are in order."""
        return self

    def _sum(self, other: Any, sign: int) -> Any:
        found = super()._sum(other, sign)
        same = getattr(other, "format", "") == "dia" and isinstance(found, ScipyFormat)
        return found.todia() if same and not is_traced(found.indices) else found


@register_pytree_node_class
class dia_array(_Dia, sparray):
    """Diagonals: of (data, offsets) and a shape, or as `csr_array`.

    `data[k, j]` is the element in column j of diagonal `offsets[k]`. Which diagonals there are has
    to be known when an array is made of another format.

    >>> from functrans.scipy import sparse
    >>> m = sparse.dia_array((jnp.array([[1.0, 2.0], [0.0, 3.0]]), [0, 1]), shape=(2, 2))
    >>> m.toarray().tolist(), m.nnz
    ([[1.0, 3.0], [0.0, 2.0]], 3)
    """


@register_pytree_node_class
class dia_matrix(spmatrix, _Dia):
    """A matrix of diagonals: as `dia_array`, but `*` is the matrix product.

    >>> from functrans.scipy import sparse
    >>> sparse.dia_matrix(([[1.0, 2.0]], [0]), shape=(2, 2)).diagonal().tolist()
    [1.0, 2.0]
    """


CLASSES.update({("coo", False): coo_array, ("coo", True): coo_matrix, ("dia", False): dia_array,
                ("dia", True): dia_matrix})
