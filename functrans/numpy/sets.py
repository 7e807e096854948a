"""Sets as sorted vectors: unique, isin and their relatives; under tracing their sizes are given."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from functrans import lax
from functrans.core.dtypes import kind
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import (
    axis_index,
    broadcast,
    concrete,
    converted,
    filled,
    index_dtype,
    is_traced,
    operand,
    promote_dtypes,
    size_of,
    slice_axis,
    static_int,
    wrap,
)
from functrans.numpy.creation import asarray
from functrans.numpy.joining import concatenate
from functrans.numpy.manipulation import moveaxis, ravel
from functrans.numpy.searching import count_into, scatter_rows, take
from functrans.numpy.ufuncs import less_equal
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike

_FIX = "{}(..., size=n), which pads with fill_value"


class UniqueAllResult(NamedTuple):
    """What unique_all returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What unique_counts returns."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What unique_inverse returns."""

    values: Array
    inverse_indices: Array


def _differs(rows: Array, equal_nan: bool) -> Array:
    """For each row but the first of a sorted matrix whether it differs from the one before."""
    n = rows.shape[0]
    x, y = slice_axis(rows, 1, n, 0), slice_axis(rows, 0, n - 1, 0)
    different = lax.ne(x, y)
    if equal_nan and kind(x.dtype) in "fc":
        both = lax.bitwise_and(lax.ne(x, x), lax.ne(y, y))
        different = lax.bitwise_and(different, lax.bitwise_not(both))
    return lax.reduce_or(different, (1,))


def _unique_rows(rows: Array, size: int | None, fill: ArrayLike | None, equal_nan: bool, name: str
                 ) -> tuple[Array, Array, Array, Array]:
    """Sorted different rows, the first index of each, the inverse and the counts."""
    n, width = rows.shape
    dtype = index_dtype(n)
    places = lax.iota(dtype, n)
    columns = [lax.squeeze(slice_axis(rows, j, j + 1, 1), (1,)) for j in range(width)]
    order = lax.sort((*columns, places), dimension=0, is_stable=True, num_keys=width)[-1] \
        if width else places  # rows without elements are equal
    ordered = take(rows, order, axis=0, mode="clip")
    if n:
        first = lax.full((1,), True, np.dtype(bool))
        new = lax.concatenate([first, _differs(ordered, equal_nan)], 0)
    else:
        new = lax.full((0,), True, np.dtype(bool))
    group = lax.cumsum(lax.convert_element_type(new, dtype), axis=0)
    group = lax.sub(group, lax.full_like(group, 1))
    if size is None:
        size = int(concrete(name, new, "ar", _FIX.format(name)).sum())
    target = lax.select_n(new, lax.full_like(group, size), group)
    inverse = scatter_rows(lax.scatter, filled((n,), 0, dtype), order, group)
    counts = count_into(group, None, size, dtype)
    index = lax.full((size,), 0, dtype)
    if n:
        index = broadcast(slice_axis(order, 0, 1, 0), (size,))
    if fill is not None:
        start = broadcast(converted("unique", fill, rows.dtype), (size, width))
    elif n:
        start = broadcast(slice_axis(ordered, 0, 1, 0), (size, width))
    else:
        start = filled((size, width), 0, rows.dtype)
    values = scatter_rows(lax.scatter, start, target, ordered)
    index = scatter_rows(lax.scatter, index, target, order)
    return values, index, inverse, counts


@overload
def unique(
    ar: ArrayLike, return_index: Literal[False] = False, return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False, axis: int | None = None, *, equal_nan: bool = True,
    size: int | None = None, fill_value: ArrayLike | None = None, sorted: bool = True,
) -> Array: ...


@overload
def unique(
    ar: ArrayLike, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
    size: int | None = None, fill_value: ArrayLike | None = None, sorted: bool = True,
) -> Array | tuple[Array, ...]: ...


@composite
def unique(
    ar: ArrayLike, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
    size: int | None = None, fill_value: ArrayLike | None = None, sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """The different elements, or slices along axis, in order.

    Their number depends on the data: under tracing give size=; what is missing repeats the
    smallest one, or is fill_value, with a count of 0 and the smallest one's index.

    >>> import functrans.numpy as jnp
    >>> jnp.unique(jnp.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    del sorted
    x = asarray(ar)
    if size is not None:
        size = static_int("unique", size, "size")
    elif is_traced(x):
        concrete("unique", x, "ar", _FIX.format("unique"))
    shape = x.shape
    if axis is None:
        rows = lax.reshape(x, (size_of(x), 1))
    else:
        axis = axis_index(axis, x.ndim, "unique")
        x = moveaxis(x, axis, 0)
        rows = lax.reshape(x, (x.shape[0], size_of(x, range(1, x.ndim))))
    values, index, inverse, counts = _unique_rows(rows, size, fill_value, equal_nan, "unique")
    if axis is None:
        values = lax.reshape(values, (values.shape[0],))
        inverse = lax.reshape(inverse, shape)
    else:
        values = lax.reshape(values, (values.shape[0], *x.shape[1:]))
        values = moveaxis(values, 0, axis)
    result: list[Array] = [values]
    for wanted, part in ((return_index, index), (return_inverse, inverse), (return_counts, counts)):
        if wanted:
            result.append(part)
    return tuple(result) if len(result) > 1 else values


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
                  ) -> Array:
    """The different elements; every NaN is one of its own.

    >>> jnp.unique_values(jnp.array([5, 3, 5]))
    Array([3, 5], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
                  ) -> UniqueCountsResult:
    """The different elements and how often each occurs.

    >>> values, counts = jnp.unique_counts(jnp.array([5, 3, 5]))
    >>> values, counts
    (Array([3, 5], dtype=int32), Array([1, 2], dtype=int32))
    """
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size,
                                      fill_value=fill_value))


def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
                   ) -> UniqueInverseResult:
    """The different elements and for each element of x the index of its value.

    >>> values, inverse = jnp.unique_inverse(jnp.array([5, 3, 5]))
    >>> values[inverse]
    Array([5, 3, 5], dtype=int32)
    """
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size,
                                       fill_value=fill_value))


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
               ) -> UniqueAllResult:
    """The different elements, their first indices, the inverse and the counts.

    >>> jnp.unique_all(jnp.array([5, 3, 5]))._asdict()["counts"]
    Array([1, 2], dtype=int32)
    """
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size,
                                   fill_value=fill_value))


def _vectors(name: str, *xs: ArrayLike) -> list[Array]:
    return [operand(name, ravel(operand(name, x)))
            for x in promote_dtypes(name, *(asarray(x) for x in xs))]


def _smallest(ordered: Array, keep: Array) -> Array:
    """The first kept element of a sorted vector, 0 where there is none."""
    if ordered.shape[0] == 0:
        return lax.full((), 0, ordered.dtype)
    first = lax.argmax(keep, 0, index_dtype(ordered.shape[0]))
    found = take(ordered, first, mode="clip")
    return lax.select_n(take(keep, first, mode="clip"), lax.full_like(found, 0), found)


def _finish(name: str, ordered: Array, keep: Array, size: int | None, fill: ArrayLike | None
            ) -> Array:
    """The kept elements of a sorted vector: exactly these, or `size` of them and fill."""
    if size is None:
        places = np.flatnonzero(concrete(name, keep, "its arguments", _FIX.format(name)))
        return take(ordered, wrap(places.astype(index_dtype(ordered.shape[0]))), mode="clip")
    rank = lax.cumsum(lax.convert_element_type(keep, index_dtype(keep.shape[0])), axis=0)
    target = lax.select_n(keep, lax.full_like(rank, size), lax.sub(rank, lax.full_like(rank, 1)))
    filler = 0 if fill is None else fill
    start = broadcast(converted(name, filler, ordered.dtype), (size,))
    return scatter_rows(lax.scatter, start, target, ordered)


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike | None = None) -> Array:
    """The different elements of both arrays.

    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([2, 1]))
    Array([1, 2, 3], dtype=int32)
    """
    return unique(concatenate(_vectors("union1d", ar1, ar2)), size=size, fill_value=fill_value)


def _neighbours(x: Array) -> Array:
    """For a sorted vector whether each element equals the next; False at the end."""
    n = x.shape[0]
    same = lax.eq(slice_axis(x, 0, n - 1, 0), slice_axis(x, 1, n, 0))
    return lax.concatenate([same, lax.full((1,), False, np.dtype(bool))], 0)


@overload
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False,
    return_indices: Literal[False] = False, *, size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...


@overload
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
    return_indices: Literal[True], size: int | None = None, fill_value: ArrayLike | None = None,
) -> tuple[Array, Array, Array]: ...


def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False, *,
    size: int | None = None, fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:
    """The elements that both arrays have, each once, and on request where they stand in both.

    >>> jnp.intersect1d(jnp.array([1, 2, 3]), jnp.array([3, 2, 5]))
    Array([2, 3], dtype=int32)
    """
    x, y = _vectors("intersect1d", ar1, ar2)
    dtype = index_dtype(x.shape[0] + y.shape[0])
    places = [lax.iota(dtype, x.shape[0]), lax.iota(dtype, y.shape[0])]
    if not assume_unique:
        first = _distinct("intersect1d", x, size, dtype)
        second = _distinct("intersect1d", y, size, dtype)
        (x, places[0], valid_x), (y, places[1], valid_y) = first, second
    else:
        valid_x, valid_y = (lax.full(v.shape, True, np.dtype(bool)) for v in (x, y))
    n = x.shape[0]
    joined = lax.concatenate([x, y], 0)
    if joined.shape[0] == 0:
        empty = filled((0 if size is None else size,), 0, joined.dtype)
        none = lax.full(empty.shape, 0, dtype)
        return (empty, none, none) if return_indices else empty
    source = lax.concatenate([places[0], places[1]], 0)
    invalid = lax.bitwise_not(lax.concatenate([valid_x, valid_y], 0))
    # invalid ones last, then by value; the sort is stable, so that x comes before y
    dead, ordered, source = lax.sort((lax.convert_element_type(invalid, np.dtype(np.int8)), joined,
                                      source), dimension=0, is_stable=True, num_keys=2)
    alive = lax.eq(dead, lax.full_like(dead, 0))
    keep = lax.bitwise_and(_neighbours(ordered), alive)
    following = lax.concatenate([slice_axis(alive, 1, alive.shape[0]),
                                 lax.full((1,), False, np.dtype(bool))], 0)
    keep = lax.bitwise_and(keep, following)
    if size is not None and fill_value is None:
        fill_value = _smallest(ordered, keep)
    values = _finish("intersect1d", ordered, keep, size, fill_value)
    if not return_indices:
        return values
    after = lax.concatenate([slice_axis(source, 1, source.shape[0]),
                             lax.full((1,), 0, source.dtype)], 0)
    return (values, _finish("intersect1d", source, keep, size, n),
            _finish("intersect1d", after, keep, size, y.shape[0]))


def _distinct(name: str, x: Array, size: int | None, dtype: Any = None
              ) -> tuple[Array, Array, Array]:
    """A sorted vector with its indices; True where an element is the first of its value."""
    if is_traced(x) and size is None:
        concrete(name, x, "its arguments", _FIX.format(name))
    n = x.shape[0]
    ordered, places = lax.sort((x, lax.iota(dtype or index_dtype(n), n)), dimension=0,
                               is_stable=True, num_keys=1)
    if not n:
        return ordered, places, lax.full((0,), True, np.dtype(bool))
    new = lax.ne(slice_axis(ordered, 1, n, 0), slice_axis(ordered, 0, n - 1, 0))
    return ordered, places, lax.concatenate([lax.full((1,), True, np.dtype(bool)), new], 0)


def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
              size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The different elements of ar1 that ar2 does not have.

    >>> jnp.setdiff1d(jnp.array([1, 2, 3]), jnp.array([3]))
    Array([1, 2], dtype=int32)
    """
    x = ravel(asarray(ar1))
    missing = isin(x, ravel(asarray(ar2)), invert=True)
    if assume_unique:
        return _finish("setdiff1d", x, missing, size, fill_value)
    ordered, places, new = _distinct("setdiff1d", x, size)
    keep = lax.bitwise_and(new, take(missing, places, mode="clip"))
    return _finish("setdiff1d", ordered, keep, size, fill_value)


def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
             size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The different elements that one of the arrays has and the other has not.

    With a `size` they are followed by `fill_value`, by default the smallest of them.

    >>> jnp.setxor1d(jnp.array([1, 2, 3]), jnp.array([3, 4]))
    Array([1, 2, 4], dtype=int32)
    """
    x, y = _vectors("setxor1d", ar1, ar2)
    joined = lax.concatenate([x, y], 0)
    alone = lax.concatenate([isin(x, y, invert=True), isin(y, x, invert=True)], 0)
    ordered, places, new = _distinct("setxor1d", joined, size)
    keep = lax.bitwise_and(new, take(alone, places, mode="clip"))
    if size is not None and fill_value is None:
        fill_value = _smallest(ordered, keep)
    return _finish("setxor1d", ordered, keep, size, fill_value)


def isin(element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False,
         invert: bool = False, *, method: str = "auto") -> Array:
    """Whether each element is among test_elements.

    `method` is "compare_all", "binary_search", "sort", or "auto": comparisons where the elements to
    compare with are few, otherwise a search among them sorted.

    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([3, 1]))
    Array([ True, False,  True], dtype=bool)
    """
    del assume_unique
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ArgumentError(f"functrans.numpy.isin: unknown method={method!r}; it is auto, "
                            "compare_all, binary_search or sort.", where=user_source())
    x, tests = promote_dtypes("isin", element, test_elements)
    tests = lax.reshape(tests, (tests.size,))
    if tests.size == 0:
        return filled(x.shape, invert, bool)
    if method not in ("auto", "compare_all"):
        found = _found_in_sorted(x, lax.sort(tests))
        return lax.bitwise_not(found) if invert else found
    shape = (*x.shape, tests.shape[0])
    found = lax.eq(lax.broadcast_in_dim(x, shape, tuple(range(x.ndim))),
                   lax.broadcast_in_dim(tests, shape, (x.ndim,)))
    found = lax.reduce_or(found, (x.ndim,))
    return lax.bitwise_not(found) if invert else found


def _found_in_sorted(x: Array, row: Array) -> Array:
    """Whether each element is in a sorted vector, by halving the range in which it may be."""
    size = row.shape[0]
    dims = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,),
                                      start_index_map=(0,))

    def at(index: Array) -> Array:
        return lax.gather(row, lax.expand_dims(index, (index.ndim,)), dims, (1,), mode="clip")

    low = lax.full(x.shape, 0, np.dtype(np.int32))  # row[low] <= x, if anything is
    step = 1 << max(int(size).bit_length() - 1, 0)
    while step:
        ahead = lax.add(low, lax.full_like(low, step))
        inside = lax.bitwise_and(lax.lt(ahead, lax.full_like(low, size)),
                                 less_equal(at(ahead), x))
        low = lax.select_n(inside, low, ahead)
        step //= 2
    return lax.eq(at(low), x)
