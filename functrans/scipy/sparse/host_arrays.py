"""Sparse arrays on the host whose elements are set one by one, to be made compressed ones of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ConcretizationError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.sparse.arithmetic import CLASSES, is_sparse, sparray, spmatrix
from functrans.scipy.sparse.indexing import parsed
from functrans.scipy.sparse.places import of_columns, summed
from functrans.scipy.sparse.reading import read_coordinates
from functrans.sparse.bcoo import BCOO

Place = tuple[int, ...]


class _Host:
    """A dictionary of values by their places."""

    format = ""
    _long_name = ""
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *,
                 maxprint: int | None = None) -> None:
        ranks = (1, 2) if self.format == "dok" and isinstance(self, sparray) else (2,)
        self._fill(read_coordinates(type(self).__name__, arg1, shape, dtype, None, ranks))

    def _fill(self, mat: BCOO) -> None:
        mat = summed(mat)
        if is_traced(mat.data) or is_traced(mat.indices):
            raise ConcretizationError(
                f"functrans.scipy.sparse.{type(self).__name__}: an array that is traced.",
                where=user_source(), why="it is kept on the host.", fix="csr_array or coo_array")
        self._shape, self._dtype = mat.shape, np.dtype(mat.dtype)
        data = np.asarray(mat.data)
        self._items: dict[Place, Any] = {
            tuple(at): x for at, x in zip(np.asarray(mat.indices).tolist(), data)}

    @classmethod
    def _of(cls, mat: BCOO) -> Any:
        found = cls.__new__(cls)
        found._fill(mat)
        return found

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the dense array."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def nnz(self) -> int:
        """The number of stored elements."""
        return len(self._items)

    def tocoo(self, copy: bool = False) -> Any:
        """The array as coordinates."""
        return CLASSES["coo", isinstance(self, spmatrix)]._of(self._coordinates())

    def _coordinates(self) -> BCOO:
        places = sorted(self._items)
        at = np.asarray(places, np.int64).reshape(len(places), self.ndim)
        data = np.asarray([self._items[p] for p in places], self._dtype)
        return of_columns(list(at.T), jnp.asarray(data), self._shape, True, True)

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """The array in a format; see `csr_array.asformat`."""
        return self if format in (None, self.format) else self.tocoo().asformat(format)

    def copy(self) -> Any:
        """An array that changes by itself."""
        return self._of(self._coordinates())

    def __getattr__(self, name: str) -> Any:
        # what does not change the array is done by coordinates
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.tocoo(), name)

    def __repr__(self) -> str:
        sort = "matrix" if isinstance(self, spmatrix) else "array"
        return (f"<{self._long_name} sparse {sort} of dtype '{self.dtype}'\n\twith {self.nnz} "
                f"stored elements and shape {self.shape}>")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple) and len(index) == self.ndim and all(
                isinstance(i, (int, np.integer)) for i in index):
            return self._items.get(self._place(index), self._dtype.type(0))
        found = self.tocoo().tocsr()[index] if self.ndim == 2 else self.tocoo()[index]
        return found.asformat(self.format) if is_sparse(found) and found.ndim == 2 else found

    def _place(self, index: tuple[Any, ...]) -> Place:
        for k, (i, n) in enumerate(zip(index, self._shape)):
            if not -n <= i < n:
                raise IndexError(f"index {i} is out of bounds for axis {k} of size {n}")
        return tuple([int(i) % n for i, n in zip(index, self._shape)])

    def __setitem__(self, index: Any, value: Any) -> None:
        if is_sparse(index):
            index = np.asarray(index.toarray())
        parts = parsed(index, self._shape)
        if any(map(is_traced, parts)) or is_traced(value) or any(p is None for p in parts):
            raise ConcretizationError(
                f"functrans.scipy.sparse.{type(self).__name__}: an index or a value is traced, or "
                "a new axis.", where=user_source(), why="the array is kept on the host.",
                fix="coo_array((data, (row, col)), shape=shape)")
        ranges = [np.arange(n)[p] if isinstance(p, slice) else np.asarray(p)
                  for p, n in zip(parts, self._shape)]
        if any(isinstance(p, slice) for p in parts):
            axes = np.ix_(*[np.atleast_1d(r) for r in ranges])
            kept = tuple([r.size for r in ranges if r.ndim])
        else:
            axes = tuple(np.broadcast_arrays(*ranges))
            kept = axes[0].shape
        dense = value.toarray() if is_sparse(value) else value
        full = np.broadcast_shapes(*[a.shape for a in axes])
        dense = np.asarray(dense)
        while dense.ndim > len(kept) and dense.shape[0] == 1:
            dense = dense[0]
        values = np.broadcast_to(dense, kept).reshape(full).astype(self._dtype)
        for *at, x in zip(*[np.broadcast_to(a, full).ravel().tolist() for a in axes],
                          values.ravel()):
            place = self._place(tuple(at))
            if x == 0:
                self._items.pop(place, None)
            else:
                self._items[place] = x

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(self._shape[0])])

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Set diagonal `k`, in place: to one number, or to a vector from its start."""
        self._fill(self.tocoo().setdiag(values, k).to_bcoo())

    def resize(self, *shape: Any) -> None:
        """Cut the array or fill it up with zeros, in place."""
        self._fill(self.tocoo().resize(*shape).to_bcoo())


def _operator(name: str) -> Any:
    def method(self: Any, *other: Any) -> Any:
        found = getattr(self.tocoo().tocsr(), name)(*other)
        return found

    method.__name__ = name
    return method


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "matmul", "rmatmul", "truediv", "pow",
              "neg", "abs", "round", "rtruediv", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(_Host, f"__{_name}__", _operator(f"__{_name}__"))


class _Lil(_Host):
    format = "lil"
    _long_name = "List of Lists"

    @property
    def rows(self) -> np.ndarray[Any, Any]:
        """The columns of the elements of each row, an array of lists."""
        return self._lists(lambda place: place[1])

    @property
    def data(self) -> np.ndarray[Any, Any]:
        """The elements of each row, an array of lists."""
        return self._lists(lambda place: self._items[place].item())

    def _lists(self, part: Any) -> np.ndarray[Any, Any]:
        found = np.empty(self._shape[0], object)
        for k in range(self._shape[0]):
            found[k] = []
        for place in sorted(self._items):
            found[place[0]].append(part(place))
        return found


class lil_array(_Lil, sparray):
    """Lists of rows on the host, whose elements are set by `m[i, j] = value`.

    It is no pytree: `tocsr()` and its like make an array to compute with. What does not set
    elements is done by that. Raises ConcretizationError for values that are traced.

    >>> from functrans.scipy import sparse
    >>> m = sparse.lil_array((2, 3))
    >>> m[0, 1] = 4.0
    >>> m[1] = [1.0, 0.0, 2.0]
    >>> m.tocsr().toarray().tolist()
    [[0.0, 4.0, 0.0], [1.0, 0.0, 2.0]]
    """


class lil_matrix(spmatrix, _Lil):
    """A matrix of lists of rows on the host: as `lil_array`, but `*` is the matrix product.

    >>> from functrans.scipy import sparse
    >>> sparse.lil_matrix((2, 3)).nnz
    0
    """


class _Dok(_Host):
    format = "dok"
    _long_name = "Dictionary Of Keys"

    def _key(self, place: Place) -> Any:
        return place if len(self._shape) > 1 else place[0]

    def keys(self) -> Iterator[Any]:
        """The places of stored elements."""
        return iter([self._key(p) for p in self._items])

    def values(self) -> Iterator[Any]:
        """The stored elements."""
        return iter(list(self._items.values()))

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Places and elements."""
        return iter([(self._key(p), x) for p, x in self._items.items()])

    def get(self, key: Any, default: Any = 0.0) -> Any:
        """The element at a place, `default` where none is stored."""
        index = key if isinstance(key, tuple) else (key,)
        return self._items.get(self._place(index), default)

    def pop(self, key: Any, *default: Any) -> Any:
        """Take an element out of the dictionary; `default` where none is stored there."""
        return self._items.pop(self._place(key if isinstance(key, tuple) else (key,)), *default)

    def setdefault(self, key: Any, default: Any) -> Any:
        """The element at a place, which is set to `default` where none is stored."""
        index = key if isinstance(key, tuple) else (key,)
        if self._place(index) not in self._items:
            self[index] = default
        return self[index]

    def clear(self) -> None:
        """Store no elements."""
        self._items.clear()

    def __delitem__(self, key: Any) -> None:
        del self._items[self._place(key if isinstance(key, tuple) else (key,))]

    def __contains__(self, key: Any) -> bool:
        return (key if isinstance(key, tuple) else (key,)) in self._items

    def __len__(self) -> int:
        return len(self._items)


class dok_array(_Dok, sparray):
    """A dictionary of elements by their places on the host, set by `m[i, j] = value`.

    See `lil_array`.

    >>> from functrans.scipy import sparse
    >>> m = sparse.dok_array((2, 2))
    >>> m[1, 0] = 3.0
    >>> dict(m.items()), m.tocsr().toarray().tolist()
    ({(1, 0): np.float32(3.0)}, [[0.0, 0.0], [3.0, 0.0]])
    """


class dok_matrix(spmatrix, _Dok):
    """A matrix of a dictionary of places: as `dok_array`, but `*` is the matrix product.

    >>> from functrans.scipy import sparse
    >>> sparse.dok_matrix((2, 3)).shape
    (2, 3)
    """


CLASSES.update({("lil", False): lil_array, ("lil", True): lil_matrix, ("dok", False): dok_array,
                ("dok", True): dok_matrix})
