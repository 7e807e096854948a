"""What SciPy's sparse arrays have in common: attributes, operators and methods.

An array is a pytree of its parts. What it computes it computes as the coordinates or compressed
rows of `functrans.sparse` that it is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import (
    ArgumentError,
    ConcretizationError,
    ImmutableArrayError,
    ShapeError,
)
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.sparse import elementwise, indexing, reductions
from functrans.scipy.sparse.arithmetic import CLASSES, SparseArithmetic, spmatrix
from functrans.scipy.sparse.places import (
    columns_of,
    compact,
    index_math,
    known_places,
    of_columns,
    summed,
    values_known,
)
from functrans.sparse.base import keeps_sums
from functrans.sparse.bcoo import BCOO
from functrans.typing import Array


class ScipyFormat(SparseArithmetic):
    """A sparse array of one of SciPy's formats."""

    _long_name = ""
    _shape: tuple[Any, ...]

    @classmethod
    def _of(cls, mat: BCOO) -> Any:
        raise TypeError("a format must say how it is made of coordinates")

    def _like(self, mat: BCOO, format: str) -> Any:
        """Coordinates in a format, as an array or a matrix as this is one."""
        is_matrix = isinstance(self, spmatrix)
        if is_matrix and mat.ndim == 1:
            mat = elementwise.broadcast(mat, (1, *mat.shape))
        if mat.ndim != 2 and not (format == "csr" and mat.ndim == 1):
            format = "coo"
        if format in ("dia", "bsr") and is_traced(mat.indices):
            format = "csr"  # which diagonals or blocks there are is not known
        return CLASSES[format, is_matrix]._of(mat)

    # attributes

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the dense array."""
        return self._shape

    @property
    def nse(self) -> int:
        """The number of elements that there is room for."""
        return self.data.size

    @property
    def nnz(self) -> int:
        """The number of stored elements, zeros included; what there is room for under `jit`."""
        return self.nse

    @property
    def real(self) -> Any:
        """The real parts."""
        return self.with_data(jnp.real(self.data))

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return self.with_data(jnp.imag(self.data))

    def __repr__(self) -> str:
        sort = "matrix" if isinstance(self, spmatrix) else "array"
        try:
            return (f"<{self._long_name} sparse {sort} of dtype '{self.dtype}'\n\twith {self.nnz} "
                    f"stored elements{self._detail()} and shape {self.shape}>")
        except (AttributeError, IndexError, TypeError):  # leaves that are no arrays
            return f"<{self._long_name} sparse {sort} of {self.data!r}>"

    def _detail(self) -> str:
        return ""

    def __str__(self) -> str:
        if not values_known(self.data) or any(map(is_traced, (self.to_bcoo().indices,))):
            return repr(self)
        mat = compact(self.to_bcoo())
        lines = [f"  {tuple(map(int, at))}\t{x}" for at, x in
                 zip(np.asarray(mat.indices), np.asarray(mat.data))]
        if len(lines) > 50:
            lines[25:-25] = ["  :\t:"]
        return "\n".join([repr(self), "  Coords\tValues", *lines])

    def __len__(self) -> int:
        raise ArgumentError("len() of a sparse array.", where=user_source(),
                            why="it might mean elements or rows.", fix="x.nnz or x.shape[0]")

    def __iter__(self) -> Any:
        return iter([self[k] for k in range(self.shape[0])])

    # conversions

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """The array in a format: "coo", "csr", "csc", "dia", "bsr", "lil" or "dok"."""
        if format is None or format == self.format:
            return self
        if (format, False) not in CLASSES:
            raise ArgumentError(f"functrans.scipy.sparse: the format {format!r}.",
                                where=user_source(),
                                fix="'coo', 'csr', 'csc', 'dia', 'bsr', 'lil' or 'dok'")
        if self.ndim != 2 and not (format in ("coo", "dok") or (format == "csr" and
                                                                 self.ndim == 1)):
            raise ShapeError(f"functrans.scipy.sparse: shape {self.shape} in format {format!r}.",
                             where=user_source(), why="it has two axes.")
        return CLASSES[format, isinstance(self, spmatrix)]._of(self.to_bcoo())

    def tocoo(self, copy: bool = False) -> Any:
        """The array as coordinates."""
        return self.asformat("coo")

    def tocsr(self, copy: bool = False) -> Any:
        """The array as compressed rows."""
        return self.asformat("csr")

    def tocsc(self, copy: bool = False) -> Any:
        """The array as compressed columns."""
        return self.asformat("csc")

    def todia(self, copy: bool = False) -> Any:
        """The array as diagonals; their numbers have to be known."""
        return self.asformat("dia")

    def tobsr(self, blocksize: tuple[int, int] | None = None, copy: bool = False) -> Any:
        """The array as blocks, of a size that few zeros are stored with unless it is given."""
        if self.ndim != 2:
            return self.asformat("bsr")
        return CLASSES["bsr", isinstance(self, spmatrix)]._of(self.to_bcoo(), blocksize)

    def tolil(self, copy: bool = False) -> Any:
        """The array as lists on the host, whose elements can be set."""
        return self.asformat("lil")

    def todok(self, copy: bool = False) -> Any:
        """The array as a dictionary on the host, whose elements can be set."""
        return self.asformat("dok")

    def todense(self, order: str | None = None, out: None = None) -> Array:
        """The dense array."""
        dense: Array = self._plain().todense()
        return dense

    def toarray(self, order: str | None = None, out: None = None) -> Array:
        """The dense array."""
        return self.todense(order, out)

    def copy(self) -> Any:
        """The array itself: arrays do not change."""
        return self

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        """The array with elements of another dtype."""
        if keeps_sums(self.dtype, np.dtype(dtypes.as_dtype(dtype))):
            return self.with_data(self.data.astype(dtype))
        return self._unary(lambda data: data.astype(dtype))

    def conj(self, copy: bool = True) -> Any:
        """The complex conjugate."""
        return self.with_data(jnp.conj(self.data))

    def conjugate(self, copy: bool = True) -> Any:
        """The complex conjugate."""
        return self.conj()

    def with_data(self, data: Any) -> Any:
        """An array with other values at the same places."""
        parts, aux = self.tree_flatten()
        return type(self).tree_unflatten(aux, (data, *parts[1:]))

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """The parts, and what is static."""
        raise TypeError("a format must say what its parts are")

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        """The array of `tree_flatten`."""
        raise TypeError("a format must say what its parts are")

    # places: as SciPy's methods, but that they return what these make of the array in place

    def sum_duplicates(self) -> Any:
        """The array with each place once and in order."""
        return self._like(summed(self.to_bcoo()), self.format)

    def eliminate_zeros(self) -> Any:
        """The array without zeros that are stored; their values have to be known."""
        mat = compact(self.to_bcoo())
        if not values_known(mat.data):
            raise ConcretizationError(
                "functrans.scipy.sparse: eliminate_zeros of values that are traced.",
                where=user_source(), why="how much is stored depends on them.",
                fix="sum_duplicates(), which keeps zeros")
        _, data = known_places("eliminate_zeros", mat.indices, mat.data)
        kept = np.flatnonzero(data != 0)
        flags = (mat.sparse_shape, mat.indices_sorted, mat.unique_indices)
        return self._like(BCOO.tree_unflatten(flags, (mat.data[kept], mat.indices[kept])),
                          self.format)

    def sort_indices(self) -> Any:
        """The array with its places in order."""
        return self._like(summed(self.to_bcoo()), self.format)

    def sorted_indices(self) -> Any:
        """The array with its places in order."""
        return self.sort_indices()

    def prune(self) -> Any:
        """The array without room for more elements than it has."""
        return self._like(compact(self.to_bcoo()), self.format)

    @property
    def has_sorted_indices(self) -> bool:
        """Whether places are known to be in order."""
        return self.to_bcoo().indices_sorted

    @property
    def has_canonical_format(self) -> bool:
        """Whether places are known to be in order and to occur once."""
        mat = self.to_bcoo()
        return mat.indices_sorted and mat.unique_indices

    def setdiag(self, values: Any, k: int = 0) -> Any:
        """The array with other values on diagonal `k`: one for all, or a vector from its start."""
        return self._like(elementwise.with_diagonal(self.to_bcoo(), values, k), self.format)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise ImmutableArrayError("a sparse array does not change.", where=user_source(),
                            fix="m = x.tolil(); m[i, j] = value; x = m.tocsr()")

    def nonzero(self) -> tuple[Array, ...]:
        """The index vectors of what is not zero; values have to be known."""
        mat = summed(self.to_bcoo())
        data, at = known_places("nonzero", mat.data, mat.indices, why="how many there are is the "
                                "shape of the result.")
        kept = at[data != 0]
        return tuple([jnp.asarray(kept[:, k]) for k in range(self.ndim)])

    def __getitem__(self, index: Any) -> Any:
        found = indexing.taken(self.to_bcoo(), index)
        if not isinstance(found, BCOO):
            if self.format != "coo" or not found.ndim:
                return found
            found = BCOO.fromdense(found, nse=found.size if is_traced(found) else None)
        if isinstance(self, spmatrix) and found.ndim == 1:
            parts = index if isinstance(index, tuple) else (index,)
            column = len(parts) == 2 and not isinstance(parts[1], slice) and np.ndim(parts[1]) == 0
            found = self._column_or_row(found, column)
        if found.ndim != 2:
            return self._like(found, "csr" if self.ndim == 1 and self.format == "csr" else "coo")
        return self._like(found, self.format if self.format in ("csr", "csc", "coo") else "csr")

    @staticmethod
    def _column_or_row(line: BCOO, column: bool) -> BCOO:
        zeros = lambda xp, c: xp.zeros_like(c)
        (c,) = columns_of(line)
        none = index_math(zeros, c)
        (n,) = line.shape
        return of_columns([c, none] if column else [none, c], line.data,
                          (n, 1) if column else (1, n))

    def getrow(self, i: int) -> Any:
        """Row `i`, as a matrix of one row."""
        return self._like(indexing.taken(self.to_bcoo(), ([i], slice(None))), self._rows)

    def getcol(self, j: int) -> Any:
        """Column `j`, as a matrix of one column."""
        return self._like(indexing.taken(self.to_bcoo(), (slice(None), [j])), self._rows)

    def getnnz(self, axis: int | None = None) -> Any:
        """The number of stored elements, of each column (axis 0) or row (axis 1) if asked for."""
        if axis is None:
            return self.nnz
        mat = self.to_bcoo()
        return reductions.total(mat.with_data(jnp.ones(mat.nse, np.int64)), axis)

    def getformat(self) -> str:
        """The name of the format."""
        return self.format

    def getH(self) -> Any:
        """The conjugate transpose."""
        return self.T.conj()

    def get_shape(self) -> tuple[Any, ...]:
        """The shape."""
        return self.shape

    def asfptype(self) -> Any:
        """The array in a floating dtype."""
        return self if dtypes.kind(self.dtype) in "fc" else self.astype(dtypes.default_float())

    # shapes

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Any:
        """The array in another shape of the same size."""
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        sizes = [int(n) for n in given]
        if sizes.count(-1) == 1:
            others = -math.prod(sizes)
            sizes[sizes.index(-1)] = self.size // others if others else 0
        if order not in ("C", "F") or math.prod(sizes) != self.size or min(sizes, default=0) < 0:
            raise ShapeError(f"functrans.scipy.sparse: {self.shape} in the shape {tuple(given)}, "
                             f"order {order!r}.", where=user_source(),
                             why=f"there are {self.size} elements, and orders 'C' and 'F'.")
        if order == "F":
            turned = self.transpose().tocoo().reshape(*sizes[::-1])
            return turned.transpose()
        if isinstance(self, spmatrix) and len(sizes) != 2:
            raise ShapeError("functrans.scipy.sparse: a matrix has two axes.", where=user_source())
        mat = self.to_bcoo()
        old = self.shape

        def moved(xp: Any, *columns: Any) -> tuple[Any, ...]:
            flat, beyond = xp.zeros(columns[0].shape, np.int64), xp.zeros(columns[0].shape, bool)
            for n, c in zip(old, columns):
                flat, beyond = flat * n + c, beyond | (c < 0) | (c >= n)
            out = []
            for n in sizes[::-1]:
                out.append(xp.where(beyond, n, flat % max(n, 1)))
                flat = flat // max(n, 1)
            return tuple(out[::-1])

        columns = list(index_math(moved, *columns_of(mat)))
        out = of_columns(columns, mat.data, tuple(sizes), mat.indices_sorted, mat.unique_indices)
        return self._like(out, "coo")

    def resize(self, *shape: Any) -> Any:
        """The array cut or filled up with zeros to a shape."""
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        sizes = tuple(map(int, given))
        if len(sizes) != self.ndim:
            raise ShapeError(f"functrans.scipy.sparse: resize of {self.shape} to {sizes}.",
                             where=user_source(), why="the number of axes stays.")
        mat = compact(self.to_bcoo())
        moved = [index_math(lambda xp, c, n=n, m=m: xp.where(c < n, c, m), c)
                 for c, n, m in zip(columns_of(mat), self.shape, sizes)]
        return self._like(compact(of_columns(moved, mat.data, sizes,
                                             is_unique=mat.unique_indices)), self.format)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The array with its axes in another order, reversed by default."""
        order = tuple(range(self.ndim)[::-1]) if axes is None else tuple(int(a) for a in axes)
        order = tuple(a + self.ndim if a < 0 else a for a in order)
        if sorted(order) != list(range(self.ndim)):
            raise ShapeError(f"functrans.scipy.sparse: axes={axes}.", where=user_source(),
                             why=f"the array has {self.ndim} axes.")
        if order == tuple(range(self.ndim)):
            return self
        mat = self.to_bcoo()
        columns = columns_of(mat)
        out = of_columns([columns[a] for a in order], mat.data, tuple(mat.shape[a] for a in order),
                         is_unique=mat.unique_indices)
        return self._like(out, self.format)

    # reductions

    def _reduced(self, out: Array, axis: Any) -> Array:
        """A result of a matrix keeps its axes."""
        if not isinstance(self, spmatrix) or axis is None:
            return out
        return jnp.expand_dims(out, reductions.axes_of("axis", axis, self.to_bcoo()))

    def sum(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        """The sum over axes, a dense array."""
        return self._reduced(reductions.total(self.to_bcoo(), axis, dtype), axis)

    def mean(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        """The mean over axes, zeros included."""
        return self._reduced(reductions.mean(self.to_bcoo(), axis, dtype), axis)

    def _extreme(self, axis: Any, largest: bool, explicit: bool, skip: bool = False) -> Any:
        found = self._reduced(reductions.extremes(self.to_bcoo(), axis, largest, explicit, skip),
                              axis)
        if not found.ndim or axis is None:
            return found
        nse = found.size if is_traced(found) else None
        return self._like(BCOO.fromdense(found, nse=nse), "coo")

    def max(self, axis: Any = None, out: None = None, *, explicit: bool = False) -> Any:
        """The largest element, of each row or column if asked for: sparse then."""
        return self._extreme(axis, True, explicit)

    def min(self, axis: Any = None, out: None = None, *, explicit: bool = False) -> Any:
        """The smallest element, of each row or column if asked for: sparse then."""
        return self._extreme(axis, False, explicit)

    def nanmax(self, axis: Any = None, out: None = None, *, explicit: bool = False) -> Any:
        """The largest element that is not NaN."""
        return self._extreme(axis, True, explicit, True)

    def nanmin(self, axis: Any = None, out: None = None, *, explicit: bool = False) -> Any:
        """The smallest element that is not NaN."""
        return self._extreme(axis, False, explicit, True)

    def argmax(self, axis: Any = None, out: None = None, *, explicit: bool = False) -> Any:
        """Where the first largest element is."""
        return self._reduced(reductions.arg_extremes(self.to_bcoo(), axis, True, explicit), axis)

    def argmin(self, axis: Any = None, out: None = None, *, explicit: bool = False) -> Any:
        """Where the first smallest element is."""
        return self._reduced(reductions.arg_extremes(self.to_bcoo(), axis, False, explicit), axis)

    def count_nonzero(self, axis: Any = None) -> Any:
        """The number of elements that are not zero."""
        return reductions.count_nonzero(self.to_bcoo(), axis)

    def diagonal(self, k: int = 0) -> Array:
        """The elements on diagonal `k`."""
        return elementwise.diagonal(self.to_bcoo(), k)

    def trace(self, offset: int = 0) -> Array:
        """The sum of a diagonal."""
        return self.diagonal(offset).sum()
