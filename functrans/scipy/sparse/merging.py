"""Two arrays of compressed rows at a time: both are in order, and one pass merges them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.numpy.common import on_host, wrap
from functrans.primitives.native_matrices import CODES
from functrans.primitives.sparse_sums import sum_places_p
from functrans.scipy.sparse.places import NDArray, elements_of
from functrans.sparse.base import index_dtype_for

Rows = tuple[Any, Any, Any]
"""Data, columns and pointers."""

# An element of the first array is its number and 2**50, one of the second 2**25 times its number
# and 2**50: sums of both, which float64 has exactly, are those from 2**51 on, and tell the numbers.
_BITS = 25
_ONE = 2.0 ** (2 * _BITS)


def can_merge(x: Any, y: Any) -> bool:
    """Whether two arrays are of known compressed rows of one shape, each place once and in order.

    Values are known as well, and no derivative is taken in them.
    """
    return x.format == getattr(y, "format", "") == "csr" and x.shape == y.shape and \
        len(x.shape) == 2 and x.has_canonical_format and y.has_canonical_format and \
        max(x.nse, y.nse) < 2**_BITS and \
        on_host(x.data, x.indices, x.indptr, y.data, y.indices, y.indptr)


def _parts(x: Any, y: Any) -> list[NDArray]:
    """Columns and pointers of two arrays."""
    index = index_dtype_for(jnp.result_type(x.indices, y.indices), (*x.shape, x.nse + y.nse))
    return [np.asarray(p).astype(index, copy=False)
            for p in (x.indices, x.indptr, y.indices, y.indptr)]


def _summed(data: Sequence[NDArray], parts: list[NDArray], columns: int) -> list[NDArray]:
    """Data, columns and pointers of the sum of compressed rows."""
    rows, room = parts[1].size - 1, sum(x.size for x in data)
    operands = [p[None] for k, x in enumerate(data) for p in (x, *parts[2 * k:2 * k + 2])]
    found = [x[0] for x in sum_places_p.run(*operands, sizes=(rows, columns), room=room,
                                            compressed=True, to_rows=True, numbered=False)]
    used = int(found[2][-1])
    return [found[0][:used], found[1][:used], found[2]]


def _shared(parts: list[NDArray], pointers: NDArray, columns: int
            ) -> tuple[NDArray, NDArray, NDArray]:
    """The numbers in two arrays and in their sum of the elements at places that both have.

    `pointers` are those of the sum.
    """
    lines = np.flatnonzero(np.diff(pointers) != np.diff(parts[1]) + np.diff(parts[3]))
    if 2 * lines.size > pointers.size:
        return _shared_of_all(parts, columns)
    if not lines.size:
        none = np.zeros(0, np.int64)
        return none, none, none
    # few rows have a place that both arrays have: these alone are merged once more
    mine, theirs, both = (elements_of(lines, p) for p in (parts[1], parts[3], pointers))
    some = [parts[0][mine[0]], mine[1], parts[2][theirs[0]], theirs[1]]
    i, j, at = _shared_of_all([p.astype(parts[0].dtype, copy=False) for p in some], columns)
    return mine[0][i], theirs[0][j], both[0][at]


def _shared_of_all(parts: list[NDArray], columns: int) -> tuple[NDArray, NDArray, NDArray]:
    left, right = (np.arange(p.size, dtype=np.float64) for p in parts[::2])
    left += _ONE
    right *= 2.0 ** _BITS
    right += _ONE
    code = _summed((left, right), parts, columns)[0]
    at = np.flatnonzero(code >= 2 * _ONE)
    j, i = np.divmod((code[at] - 2 * _ONE).astype(np.int64), 2**_BITS)
    return i, j, at


def merged_pairwise(x: Any, y: Any, fun: Callable[[Any, Any], Any]) -> Rows:
    """The rows of `fun` of the elements of two arrays, where `fun(0, 0)` is 0."""
    alone = [np.asarray(fun(x.data, jnp.zeros((), y.dtype))),
             np.asarray(fun(jnp.zeros((), x.dtype), y.data))]
    parts, columns, dtype = _parts(x, y), x.shape[1], alone[0].dtype
    left, right = alone
    if dtype.name not in CODES:
        # what the sum does not take is read by the numbers that it has of elements that are alone
        left, right = (np.arange(v.size, dtype=np.float64) for v in alone)
        right += left.size
    data, places, pointers = _summed((left, right), parts, columns)
    i, j, at = _shared(parts, pointers, columns)
    both = np.asarray(fun(x.data[i], y.data[j])) if i.size else np.zeros(0, dtype)
    if dtype.name not in CODES:
        data[at] = 0
        data = np.concatenate(alone)[data.astype(np.int64)]
    data[at] = both
    return _without_zeros(data, places, pointers)


def merged_product(x: Any, y: Any) -> Rows:
    """The rows of the elementwise product of two arrays."""
    parts = _parts(x, y)
    none = [np.zeros(m.nse, np.float32) for m in (x, y)]
    pointers = _summed(none, parts, x.shape[1])[2]
    i, j, at = _shared(parts, pointers, x.shape[1])
    pointers = np.searchsorted(at, pointers).astype(pointers.dtype)
    return _without_zeros(np.asarray(x.data[i] * y.data[j]), parts[0][i], pointers)


def merged_side_by_side(blocks: Sequence[Rows], widths: Sequence[int]) -> Rows:
    """The rows of blocks with as many rows as each other, each after those before it."""
    lefts = np.cumsum([0, *widths])
    total = sum(int(b[0].shape[0]) for b in blocks)
    index = index_dtype_for(jnp.result_type(*[p for b in blocks for p in b[1:]]),
                            (int(lefts[-1]), total))
    parts = []
    for (_, columns, pointers), left in zip(blocks, lefts):
        parts += [(np.asarray(columns) + left).astype(index),
                  np.asarray(pointers).astype(index, copy=False)]
    datas = [b[0] for b in blocks]
    if datas[0].dtype.name in CODES and on_host(*datas):
        found = _summed([np.asarray(d) for d in datas], parts, int(lefts[-1]))
        return wrap(found[0]), wrap(found[1]), wrap(found[2])
    # values that the sum does not take follow the numbers that it puts in order
    starts = np.cumsum([0, *[d.shape[0] for d in datas]])
    numbers = [np.arange(a, b, dtype=np.float64) for a, b in itertools.pairwise(starts.tolist())]
    order, places, pointers = _summed(numbers, parts, int(lefts[-1]))
    return jnp.concatenate(datas)[order.astype(np.int64)], wrap(places), wrap(pointers)


def _without_zeros(data: NDArray, places: NDArray, pointers: NDArray) -> Rows:
    if not data.all():
        kept = np.flatnonzero(data)
        pointers = np.searchsorted(kept, pointers).astype(pointers.dtype)
        data, places = data[kept], places[kept]
    return wrap(data), wrap(places), wrap(pointers)
