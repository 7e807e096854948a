"""Grids of coordinates, by meshgrid and mgrid, and arrays joined in brackets, by r_ and c_."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from functrans import lax
from functrans.core import dtypes
from functrans.core.dtypes import as_dtype
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import filled, promote_dtypes, shape_tuple
from functrans.numpy.creation import arange, asarray, linspace
from functrans.numpy.joining import concatenate
from functrans.typing import Array, ArrayLike, DTypeLike


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False,
             indexing: Literal["xy", "ij"] = "xy") -> list[Array]:
    """Coordinate arrays from coordinate vectors; "xy" swaps the first two axes, "ij" does not.

    Vectors of sizes n, m, k give arrays of shape (m, n, k), or (n, m, k) for "ij".

    >>> jnp.meshgrid(jnp.array([1, 2]), jnp.array([10, 20, 30]))[0]
    Array([[1, 2],
           [1, 2],
           [1, 2]], dtype=int32)
    """
    del copy
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"functrans.numpy.meshgrid: indexing is 'xy' or 'ij', and not "
                            f"{indexing!r}.", where=user_source())
    vectors = [asarray(x) for x in xi]
    vectors = [lax.reshape(x, (1,)) if not x.ndim else x for x in vectors]
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(axes) >= 2:
        axes[0], axes[1] = 1, 0
    shape: list[Any] = [0] * len(vectors)
    for axis, x in zip(axes, vectors, strict=True):
        if x.ndim != 1:
            raise ArgumentError(f"functrans.numpy.meshgrid takes vectors, and got shape {x.shape}.",
                                where=user_source())
        shape[axis] = x.shape[0]
    result = []
    for axis, x in zip(axes, vectors, strict=True):
        sizes = tuple(s if i == axis or not sparse else 1 for i, s in enumerate(shape))
        result.append(lax.broadcast_in_dim(x, sizes, (axis,)))
    return result


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
            ) -> Array | tuple[Array, ...]:
    """The index of every element along every axis, stacked; a tuple of open grids if sparse.

    >>> rows, columns = jnp.indices((2, 2))
    >>> columns
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    dtype = dtypes.default_int() if dtype is None else as_dtype(dtype)
    shape = shape_tuple(dimensions, "indices")
    if sparse:
        return tuple(
            lax.broadcast_in_dim(lax.iota(dtype, s), tuple(
                s if i == axis else 1 for i in range(len(shape))), (axis,))
            for axis, s in enumerate(shape))
    if not shape:
        return filled((0,), 0, dtype)
    grids = [lax.expand_dims(lax.broadcasted_iota(dtype, shape, axis), (0,))
             for axis in range(len(shape))]
    return lax.concatenate(grids, 0)


class _Grid:
    """The objects mgrid and ogrid: grids written as slices, with a complex step as a count."""

    def __init__(self, name: str, open_grid: bool) -> None:
        self._name, self._open = name, open_grid

    def _axis(self, key: Any) -> Array:
        if not isinstance(key, slice):
            raise ArgumentError(f"functrans.numpy.{self._name} takes slices, and got {key!r}.",
                                where=user_source(), fix=f"{self._name}[0:3, 0:1:5j]")
        start = 0 if key.start is None else key.start
        if isinstance(key.step, complex):
            return linspace(start, key.stop, math.floor(np.abs(key.step)))
        return arange(start, key.stop, 1 if key.step is None else key.step)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self._axis(key)
        if not key:
            return [] if self._open else filled((0,), 0, dtypes.default_int())
        vectors = promote_dtypes(self._name, *(self._axis(k) for k in key))
        grids = meshgrid(*vectors, sparse=self._open, indexing="ij")
        if self._open:
            return list(grids)
        return lax.concatenate([lax.expand_dims(g, (0,)) for g in grids], 0)

    def __repr__(self) -> str:
        return f"<functrans.numpy.{self._name}>"


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)


class _How(NamedTuple):
    """How items are joined: along which axis, and with how many axes each at least.

    The axes of an item with fewer begin at `place`; -1 puts them last.
    """

    axis: int
    least: int
    place: int
    matrix: str = ""  # "r" or "c": a vector as result is a row or a column

    def fitted(self, x: Array) -> Array:
        missing = self.least - x.ndim
        if missing <= 0:
            return x
        place = self.place + missing + 1 if self.place < 0 else self.place
        own = range(place, place + x.ndim)
        return lax.expand_dims(x, tuple(d for d in range(self.least) if d not in own))


class _Join:
    """Vectors, numbers and slices joined as rows or as columns.

    A text in front says otherwise, as in NumPy: "axis", "axis,least", "axis,least,place", "r", "c".
    """

    def __init__(self, name: str, how: _How) -> None:
        self._name, self._how = name, how

    def __getitem__(self, key: Any) -> Array:
        how = self._how
        items = key if isinstance(key, tuple) else (key,)
        if items and isinstance(items[0], str):
            how, items = self._directed(items[0]), items[1:]
        parts = []
        for item in items:
            if isinstance(item, str):
                raise self._refused(item)
            x = mgrid[item] if isinstance(item, slice) else asarray(item)
            parts.append(how.fitted(x if x.ndim else lax.reshape(x, (1,))))
        out = concatenate(parts, how.axis)
        if how.matrix and out.ndim == 1:
            return lax.expand_dims(out, (0,) if how.matrix == "r" else (1,))
        return out

    def _directed(self, text: str) -> _How:
        if text in ("r", "c"):
            return self._how._replace(matrix=text)
        words = text.split(",")
        try:
            numbers = [int(word) for word in words]
        except ValueError:
            raise self._refused(text) from None
        if len(numbers) > 3:
            raise self._refused(text)
        axis, least, place = (*numbers, *(self._how.axis, self._how.least,
                                          self._how.place)[len(numbers):])
        return _How(axis, least, place)

    def _refused(self, text: str) -> ArgumentError:
        return ArgumentError(f"functrans.numpy.{self._name} does not take {text!r} here.",
                             where=user_source(), why="a text comes first, and is 'axis', "
                             "'axis,least axes', 'axis,least axes,place', 'r' or 'c'.",
                             fix=f"functrans.numpy.{self._name}['0,2', x, y]")

    def __repr__(self) -> str:
        return f"<functrans.numpy.{self._name}>"


r_, c_ = _Join("r_", _How(0, 1, -1)), _Join("c_", _How(-1, 2, 0))
s_, index_exp = np.s_, np.index_exp
