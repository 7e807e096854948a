"""What all sparse arrays have in common: operators, attributes and warnings about slow layouts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, overload

import numpy as np

from functrans import numpy as jnp
from functrans._runtime import ArrayBase
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.core.trace import run_in
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["CuSparseEfficiencyWarning", "JAXSparse", "SparseEfficiencyError",
           "SparseEfficiencyWarning"]

# what operators do, by name; functrans/sparse/operators.py fills it in
OPERATIONS: dict[str, Callable[..., Any]] = {}


class SparseEfficiencyError(ArgumentError):
    """A layout that would store many zeros, where the caller did not ask for it.

    >>> issubclass(ft.experimental.sparse.SparseEfficiencyError, ValueError)
    True
    """


class SparseEfficiencyWarning(UserWarning):
    """A layout that stores many zeros.

    >>> import warnings
    >>> warnings.simplefilter("error", ft.experimental.sparse.SparseEfficiencyWarning)
    """


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A layout that a library of CUDA does not have; never given, as kernels here need none.

    >>> sparse = ft.experimental.sparse
    >>> issubclass(sparse.CuSparseEfficiencyWarning, sparse.SparseEfficiencyWarning)
    True
    """


class JAXSparse(ABC):
    """An array of which only some elements are stored: a pytree of their values and places.

    Operators act as on the dense array: `@`, `+`, `-`, `*` and `/` with numbers, dense and sparse
    arrays. What keeps zeros returns a sparse array, all else a dense one.

    >>> m = ft.experimental.sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> isinstance(m, ft.experimental.sparse.JAXSparse), m.nse, m.shape, m.dtype
    (True, 1, (2, 2), dtype('float32'))
    >>> m @ jnp.ones(2), m.T.todense().tolist(), m.sum().item()
    (Array([2., 0.], dtype=float32), [[0.0, 0.0], [2.0, 0.0]], 2.0)
    >>> m.reshape(4).todense(), m.astype("int32").data
    (Array([0., 2., 0., 0.], dtype=float32), Array([2], dtype=int32))
    >>> m.transpose().shape, m.with_data(jnp.array([3.0])).block_until_ready().data
    ((2, 2), Array([3.], dtype=float32))
    """

    data: Array
    __hash__ = None  # type: ignore[assignment]
    # NumPy's and our arrays leave `array @ sparse` to the operators here
    __array_ufunc__: ClassVar[None] = None

    @property
    @abstractmethod
    def shape(self) -> tuple[Any, ...]:
        """The shape of the dense array."""

    @property
    @abstractmethod
    def nse(self) -> int:
        """The number of stored elements, of each element of a batch."""

    @abstractmethod
    def todense(self) -> Array:
        """The dense array."""

    @abstractmethod
    def transpose(self, axes: Any = None) -> Any:
        """The array with its axes in another order."""

    @abstractmethod
    def with_data(self, data: Any) -> Any:
        """An array with other values at the same places."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, zeros included."""
        return math.prod(self.shape)

    @property
    def T(self) -> Any:
        """The array with its axes reversed."""
        return self.transpose()

    def block_until_ready(self) -> Any:
        """The array itself, when its values are computed."""
        self.data.block_until_ready()
        return self

    def astype(self, dtype: Any) -> Any:
        """The array with elements of another dtype."""
        if keeps_sums(self.dtype, np.dtype(dtypes.as_dtype(dtype))):
            return self.with_data(self.data.astype(dtype))
        return OPERATIONS["unary"](self, lambda data: data.astype(dtype))

    def __repr__(self) -> str:
        try:
            shape = ",".join(map(str, self.shape))
            return f"{type(self).__name__}({self.dtype.name}[{shape}], nse={self.nse})"
        except (AttributeError, IndexError, TypeError):  # leaves that are no arrays
            return f"{type(self).__name__}({self.data!r})"

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("len() of a sparse array without axes.", where=user_source())
        size: int = self.shape[0]
        return size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __bool__(self) -> bool:
        raise ArgumentError("a sparse array is neither true nor false.", where=user_source(),
                            fix="x.todense().any() or x.nse > 0")

    def sum(self, axis: Any = None) -> Any:
        """The sum over `axis`, all axes by default: sparse where axes are left, else a number."""
        return OPERATIONS["sum"](self, axis)

    def reshape(self, *shape: Any) -> Any:
        """The array in another shape of the same size."""
        return OPERATIONS["reshape"](self, *shape)

    def __getitem__(self, index: Any) -> Any:
        return OPERATIONS["getitem"](self, index)

    @overload
    def __matmul__(self, other: ArrayLike) -> Array: ...

    @overload
    def __matmul__(self, other: JAXSparse) -> JAXSparse: ...

    def __matmul__(self, other: Any) -> Any:
        return OPERATIONS["matmul"](self, other)

    def __rmatmul__(self, other: ArrayLike) -> Array:
        product: Array = OPERATIONS["matmul"](other, self)
        return product

    def __add__(self, other: Any) -> Any:
        return OPERATIONS["add"](self, other)

    def __radd__(self, other: Any) -> Any:
        return OPERATIONS["add"](other, self)

    def __sub__(self, other: Any) -> Any:
        return OPERATIONS["subtract"](self, other)

    def __rsub__(self, other: Any) -> Any:
        return OPERATIONS["subtract"](other, self)

    def __mul__(self, other: Any) -> Any:
        return OPERATIONS["multiply"](self, other)

    def __rmul__(self, other: Any) -> Any:
        return OPERATIONS["multiply"](self, other)

    def __truediv__(self, other: Any) -> Any:
        return OPERATIONS["divide"](self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return OPERATIONS["divide"](other, self)

    def __pow__(self, power: Any) -> Any:
        return OPERATIONS["power"](self, power)

    def __neg__(self) -> Any:
        return self.with_data(-self.data)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return OPERATIONS["unary"](self, jnp.abs)


class OtherFormat(JAXSparse):
    """A sparse array of another format, which the functions here take as the coordinates it has."""

    @abstractmethod
    def to_bcoo(self) -> Any:
        """The array as batched coordinates."""


def known(fun: Callable[..., Any], *args: Any) -> Any:
    """`fun` of arrays, at once where their values are known, also while a program is traced."""
    if all(isinstance(a, ArrayBase) for a in args):
        return run_in(None, fun, *args)
    return fun(*args)


def per_lane(fun: Callable[..., Any], count: int, in_axes: Any = 0) -> Callable[..., Any]:
    """`fun` mapped over `count` leading axes."""
    for _ in range(count):
        fun = vmap(fun, in_axes)
    return fun


def keeps_sums(old: Any, new: Any) -> bool:
    """Whether a conversion of sums is the sum of conversions, up to rounding."""
    before, after = dtypes.kind(old), dtypes.kind(new)
    if before in "iu":
        return (after in "fc" and old.itemsize >= 4) or \
            (after in "iu" and new.itemsize <= old.itemsize)
    return old == new or (before in "fc" and after in "fc")


def index_dtype_for(dtype: Any, sizes: tuple[Any, ...]) -> np.dtype[Any]:
    """int32 or int64, as wide as `dtype`, and wide enough for sizes, which are no places."""
    wide = np.dtype(dtype).itemsize > (4 if np.dtype(dtype).kind == "i" else 2)
    large = any(isinstance(n, int) and n > np.iinfo(np.int32).max for n in sizes)
    return np.dtype(np.int64 if wide or large else np.int32)


def outside(indices: Array, sizes: tuple[Any, ...]) -> Array:
    """Whether each index vector is out of bounds."""
    found = jnp.zeros(indices.shape[:-1], bool)
    for k, n in enumerate(sizes):
        found = found | (indices[..., k] < 0) | (indices[..., k] >= n)
    return found


def places(indices: Array, sizes: tuple[Any, ...]) -> Array:
    """The place of each index vector in row-major order; the number of places where it is none.

    Raises ArgumentError where there are more places than int64 counts.
    """
    count = math.prod(sizes)
    if _is_beyond_int64(count):
        raise ArgumentError(f"sparse axes of sizes {sizes} have {count} places.",
                            where=user_source(), why="int64 has no number for each.")
    wide = np.dtype(np.int32 if isinstance(count, int) and count < 2**31 else np.int64)
    place = jnp.zeros(indices.shape[:-1], wide)
    for k, n in enumerate(sizes):
        at = indices[..., k].astype(wide)
        place = place * n + at if k else at
    return jnp.where(outside(indices, sizes), count, place).astype(wide)


def _is_beyond_int64(count: Any) -> bool:
    return isinstance(count, int) and count > np.iinfo(np.int64).max


def keys(sizes: tuple[Any, ...], *indices: Array) -> tuple[list[Array], Any]:
    """Numbers in the order of the places of index vectors, equal where these are, and a bound.

    The bound is the number of all that is out of bounds. Numbers are the places where int64 has
    these, and ranks among all that are given otherwise.
    """
    if not _is_beyond_int64(math.prod(sizes)):
        return [places(x, sizes) for x in indices], math.prod(sizes)
    joined = jnp.concatenate(indices, axis=0)
    key, bound = jnp.zeros(joined.shape[:-1], np.int64), 1
    for k, n in enumerate(sizes):
        at = jnp.clip(joined[..., k].astype(np.int64), 0, n - 1)
        if _is_beyond_int64(bound * n):
            key, bound = _ranks(key), joined.shape[0]
        if _is_beyond_int64(bound * n):
            at, n = _ranks(at), joined.shape[0]
        key, bound = key * n + at, bound * n
    key = jnp.where(outside(joined, sizes), bound, key)
    ends = np.cumsum([x.shape[0] for x in indices])[:-1]
    return list(jnp.split(key, ends)), bound


def _ranks(key: Array) -> Array:
    """The number of smaller keys that differ, for each key."""
    order = jnp.argsort(key)
    found = key[order]
    steps = jnp.cumsum((found[1:] != found[:-1]).astype(np.int64))
    ranks = jnp.concatenate([jnp.zeros(min(1, key.shape[0]), np.int64), steps])
    return jnp.zeros_like(key).at[order].set(ranks)


def vectors(place: Array, sizes: tuple[Any, ...], dtype: Any) -> Array:
    """The index vectors of places; the sizes themselves, which are out of bounds, for no place."""
    dtype = index_dtype_for(dtype, sizes)
    beyond = place >= math.prod(sizes)
    columns = []
    for n in reversed(sizes):
        columns.append(jnp.where(beyond, n, place % max(n, 1)))
        place = place // max(n, 1)
    if not columns:
        return jnp.zeros((*place.shape, 0), dtype)
    return jnp.stack(columns[::-1], axis=-1).astype(dtype)


def check_index_dtype(name: str, indices: Any) -> None:
    """Raise where indices are no integers."""
    if np.dtype(indices.dtype).kind not in "iu":
        raise ArgumentError(f"{name}: indices have dtype {indices.dtype}.", where=user_source(),
                            fix="indices.astype('int32')")


def mismatch(name: str, what: str, fix: str = "") -> ShapeError:
    """The error for parts that do not fit."""
    return ShapeError(f"{name}: {what}", where=user_source(), fix=fix)


publish(globals(), __all__)
