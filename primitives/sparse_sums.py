"""Sums of sparse arrays: each place once, in order, and room for as many as are asked for.

Operands are lanes of parts: a part is the elements and either their index vectors or, of
compressed rows, their columns and pointers. What stands at one place is added up in the order of
parts and of elements in them. Elements out of bounds, and those of no row, count for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.dims import Size
from functrans.core.errors import DTypeError, OutOfMemoryError
from functrans.core.primitive import Cost, Primitive, Sample
from functrans.core.source import user_source
from functrans.primitives.arithmetic import add, mul
from functrans.primitives.base import full, sample_array, shapes_differ
from functrans.primitives.broadcast import align_batch, broadcast_in_dim, move_axis
from functrans.primitives.compare import bitwise_and, bitwise_or, ge, lt, ne, where
from functrans.primitives.convert import convert_element_type
from functrans.primitives.cumulative import cumsum
from functrans.primitives.index import scatter_add
from functrans.primitives.index_layout import GatherScatterMode, ScatterDimensionNumbers
from functrans.primitives.native_matrices import CODES, library_function
from functrans.primitives.scatter import scatter
from functrans.primitives.shape import (
    broadcasted_iota,
    concatenate,
    pad,
    reshape,
    slice_in_dim,
)
from functrans.primitives.sort import sort_p, take_along
from functrans.primitives.sparse import rows_of_lanes, stored_elements

__all__ = ["has_library_sums", "places_of_parts", "sum_places_p", "sums_of_places"]

NDArray = np.ndarray[Any, Any]


class SumPlaces(Primitive):
    """The sum of sparse arrays that have each place once, in order, in the first of `room` places.

    A part is data (lanes, nse) and indices (lanes, nse, len(sizes)); if `compressed`, data, columns
    (lanes, nse) and pointers (lanes, rows + 1). Results are the sums (lanes, room) and their
    indices (lanes, room, len(sizes)); if `to_rows`, their columns and pointers. Places that are
    left over have zeros, and indices that are `sizes`; sums that have no place are lost. If
    `numbered`, the last results are for each part the number of the place that each element went
    to, and `room` for one that went to none.
    """

    multiple_results = True

    def type(self, *operands: ShapedArray, sizes: tuple[Size, ...], room: Size, compressed: bool,
             to_rows: bool, numbered: bool) -> list[ShapedArray]:
        parts = _parts(operands, compressed)
        data, places = parts[0][0], parts[0][1]
        for x, *others in parts:
            if x.ndim != 2 or any(p.ndim != 2 + (not compressed) or p.shape[0] != data.shape[0]
                                  for p in others) or x.shape != others[0].shape[:2] or \
                    x.shape[0] != data.shape[0] or \
                    others[-1].shape[-1] != (sizes[0] + 1 if compressed else len(sizes)):
                raise shapes_differ(self.name, (x, *others), f"an array of sizes {sizes} has "
                                    "elements of shape (lanes, nse) and indices for each.")
            if any(dtypes.kind(p.dtype) not in "iu" or p.dtype != places.dtype for p in others):
                raise DTypeError(f"{self.name} takes integers of one dtype as indices, got "
                                 f"{' and '.join(map(str, others))}.", where=user_source())
            if x.dtype != data.dtype or dtypes.kind(x.dtype) not in "iufc":
                raise DTypeError(f"{self.name} needs numbers of one dtype, got {data} and {x}.",
                                 where=user_source())
        if not sizes or ((compressed or to_rows) and len(sizes) != 2) or any(
                isinstance(n, int) and n < 0 for n in (*sizes, room)):
            raise shapes_differ(self.name, operands, f"sizes {sizes} and room for {room} sums are "
                                                     "those of no array.")
        lanes, index = data.shape[0], places.dtype
        outs = [ShapedArray((lanes, room), data.dtype)]
        if to_rows:
            outs += [ShapedArray((lanes, n), index) for n in (room, sizes[0] + 1)]
        else:
            outs.append(ShapedArray((lanes, room, len(sizes)), index))
        return outs + [ShapedArray(x.shape, index) for x, *_ in parts if numbered]

    def evaluate(self, *operands: Any, sizes: tuple[int, ...], room: int, compressed: bool,
                 to_rows: bool, numbered: bool) -> list[NDArray]:
        parts = _parts(operands, compressed)
        data, places = parts[0][0], parts[0][1]
        params: dict[str, Any] = {"sizes": sizes, "room": room, "compressed": compressed,
                                  "to_rows": to_rows, "numbered": numbered}
        avals = self.type(*[ShapedArray(x.shape, x.dtype) for x in operands], **params)
        outs = [np.zeros(a.shape, a.dtype) for a in avals]
        if has_library_sums(data.dtype, places.dtype, sizes):
            _native(operands, outs, len(parts), params)
            return outs
        for lane in range(len(data)):
            _sum_lane([[x[lane] for x in part] for part in parts], [x[lane] for x in outs], sizes,
                      room, compressed, to_rows)
        return outs

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        step = 3 if params["compressed"] else 2
        ts = tangents[::step]
        if all(t is None for t in ts):
            outs = self.bind(*primals, **params)
            return outs, [None] * len(outs)
        outs = self.bind(*primals, **{**params, "numbered": True})
        numbers = outs[-len(ts):]
        total = _added_by_numbers(outs[0].dtype, primals[0].shape[0], params["room"],
                                  [(t, n) for t, n in zip(ts, numbers, strict=True)
                                   if t is not None])
        outs = outs if params["numbered"] else outs[:-len(ts)]
        return outs, [total, *[None] * (len(outs) - 1)]

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        step = 3 if params["compressed"] else 2
        if all(a is None for k, a in enumerate(axes) if k % step):
            return self._batch_data(operands, axes, step, params)
        aligned = align_batch(operands, axes)
        size, lanes = aligned[0].shape[:2]
        outs = self.bind(*[reshape(x, (size * lanes, *x.shape[2:])) for x in aligned], **params)
        return [reshape(x, (size, lanes, *x.shape[1:])) for x in outs], [0] * len(outs)

    def _batch_data(self, operands: Sequence[Any], axes: Sequence[int | None], step: int,
                    params: dict[str, Any]) -> Any:
        """Elements of many arrays at the same places: these are put in order once."""
        mapped = next(k for k, a in enumerate(axes) if a is not None)
        size = operands[mapped].shape[axes[mapped]]
        data = [move_axis(x, a, 2) if a is not None else
                broadcast_in_dim(x, (*x.shape, size), (0, 1))
                for x, a in zip(operands[::step], axes[::step], strict=True)]
        first = [x if k % step else full(data[k // step].shape[:2], 0, x.dtype)
                 for k, x in enumerate(operands)]
        outs = self.bind(*first, **{**params, "numbered": True})
        numbers = outs[-len(data):]
        sums = _added_by_numbers(outs[0].dtype, data[0].shape[0], params["room"],
                                 list(zip(data, numbers, strict=True)))
        outs = outs if params["numbered"] else outs[:-len(data)]
        others = [broadcast_in_dim(x, (size, *x.shape), range(1, x.ndim + 1)) for x in outs[1:]]
        return [sums, *others], [2, *[0] * len(others)]

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        outs = self.type(*avals, **params)
        moved = sum((a.nbytes for a in (*avals, *outs)), start=0)
        nse = sum((x.size for x in avals[::3 if params["compressed"] else 2]), start=0)
        return Cost(nse * (max(nse.bit_length(), 1) if isinstance(nse, int) else 1), moved)

    def samples(self) -> Iterator[Sample]:
        data, more = sample_array(2, 5), sample_array(2, 4, seed=1)
        rng = np.random.default_rng(0)
        indices, others = (rng.integers(-1, 4, (2, n, 2)).astype(np.int32) for n in (5, 4))
        params = {"sizes": (3, 4), "room": 7, "compressed": False, "to_rows": False,
                  "numbered": False}
        yield Sample((data, indices), params)
        yield Sample((data, indices, more, others), {**params, "room": 3, "numbered": True})
        yield Sample((data, indices), {**params, "to_rows": True})
        vectors = rng.integers(-1, 3, (2, 5, 3)).astype(np.int32)
        yield Sample((data, vectors), {**params, "sizes": (2, 1, 3)})
        columns = np.array([[0, 1, 3, 1, 1], [3, 2, 0, 9, 3]], np.int32)
        pointers = np.array([[0, 2, 3, 5], [1, 3, 3, 4]], np.int32)
        rows = {**params, "compressed": True, "to_rows": True}
        yield Sample((data, columns, pointers), rows)
        yield Sample((data, columns, pointers, more, columns[:, 1:], pointers[::-1] - 1),
                     {**rows, "numbered": True})
        yield Sample((data, columns, pointers), {**rows, "to_rows": False})


def _parts(operands: Sequence[Any], compressed: bool) -> list[Sequence[Any]]:
    step = 3 if compressed else 2
    return [operands[k:k + step] for k in range(0, len(operands), step)]


def has_library_sums(data: Any, index: Any, sizes: Sequence[Size]) -> bool:
    """Whether csrc/lib_sparse_sums.cpp has the dtypes, and numbers for all places."""
    return data in (np.float32, np.float64) and index in (np.int32, np.int64) and \
        all(isinstance(n, int) for n in sizes) and math.prod(sizes) < 1 << 62


def _native(operands: Sequence[Any], outs: Sequence[NDArray], parts: int,
            params: dict[str, Any]) -> None:
    arrays = [np.ascontiguousarray(x) for x in operands]
    step = len(arrays) // parts
    sizes = np.asarray(params["sizes"], np.int64)
    counts = np.asarray([x.shape[1] for x in arrays[::step]], np.int64)
    addresses = [np.asarray([x.ctypes.data for x in xs], np.int64) for xs in (arrays, outs)]
    numbers = (CODES[outs[0].dtype.name], int(arrays[1].dtype == np.int64), arrays[0].shape[0],
               parts, int(params["compressed"]), int(params["to_rows"]), int(params["numbered"]),
               len(sizes), params["room"])
    status = library_function("sum_places", len(numbers), 4)(
        *numbers, *[x.ctypes.data for x in (sizes, counts, *addresses)])
    if status:
        raise OutOfMemoryError(f"sum_places of {[x.shape for x in arrays[::step]]}: there is not "
                               "enough memory.")


def places_of_parts(parts: Sequence[Sequence[NDArray]], sizes: Sequence[int], compressed: bool
                    ) -> NDArray:
    """The index vectors of all elements of one lane; -1 for those of no row or column."""
    if not compressed:
        return np.concatenate([at.astype(np.int64) for _, at in parts])
    found = []
    for data, columns, pointers in parts:
        at = np.full((len(data), 2), -1, np.int64)
        e, row, column = stored_elements(columns, pointers, sizes[1])
        at[e] = np.stack([row, column], 1)
        found.append(at)
    return np.concatenate(found)


def _sum_lane(parts: Sequence[Sequence[NDArray]], outs: Sequence[NDArray], sizes: Sequence[int],
              room: int, compressed: bool, to_rows: bool) -> None:
    at = places_of_parts(parts, sizes, compressed)
    data = np.concatenate([part[0] for part in parts])
    inside = np.flatnonzero(((at >= 0) & (at < np.asarray(sizes))).all(1))
    order = inside[np.lexsort(at[inside].T[::-1])]
    at = at[order]
    number = np.cumsum(np.r_[np.ones(min(1, len(at)), bool), (at[1:] != at[:-1]).any(1)]) - 1
    number = np.minimum(number, room)
    sums, places = np.zeros(room + 1, data.dtype), np.tile(np.asarray(sizes), (room + 1, 1))
    np.add.at(sums, number, data[order])
    places[number] = at
    outs[0][...], places = sums[:room], places[:room]
    if to_rows:
        outs[1][...] = places[:, 1]
        outs[2][...] = np.searchsorted(places[:, 0], np.arange(sizes[0] + 1))
    else:
        outs[1][...] = places
    numbers = np.full(len(data), room)
    numbers[order] = number
    start = 0
    for out in outs[2 + to_rows:]:
        out[...] = numbers[start:start + len(out)]
        start += len(out)


def _added_by_numbers(dtype: Any, lanes: Size, room: Size, terms: Sequence[tuple[Any, Any]],
                      is_sorted: bool = False) -> Any:
    """Elements (lanes, nse, ...) added up where their numbers (lanes, nse) say, below `room`."""
    rest = terms[0][0].shape[2:]
    total = full((lanes * (room + 1), *rest), 0, dtype)
    windows = ScatterDimensionNumbers(tuple(range(1, 1 + len(rest))), (0,), (0,))
    for t, numbers in terms:
        n = t.shape[1]
        total = scatter_add(total, _flat(numbers, room), reshape(t, (lanes * n, *rest)), windows,
                            indices_are_sorted=is_sorted, mode=GatherScatterMode.FILL_OR_DROP)
    return slice_in_dim(reshape(total, (lanes, room + 1, *rest)), 0, room, axis=1)


def _flat(numbers: Any, room: Size) -> Any:
    """Numbers of all lanes one after the other, each with a place more than `room`."""
    lanes, n = numbers.shape
    lane = broadcasted_iota(numbers.dtype, numbers.shape, 0)
    flat = add(mul(lane, _wide(room + 1, lane)), numbers)
    return reshape(flat, (lanes * n, 1))


def _wide(value: Size, like: Any) -> Any:
    return broadcast_in_dim(full((), value, like.dtype), like.shape, ())


def sums_of_places(*operands: Any, sizes: tuple[Size, ...], room: Size, compressed: bool,
                   to_rows: bool, numbered: bool) -> list[Any]:
    """`sum_places` by sorting places and adding up runs of them."""
    parts = _parts(operands, compressed)
    dtype, index, lanes = operands[0].dtype, operands[1].dtype, operands[0].shape[0]
    count = sum((part[0].shape[1] for part in parts), start=0)
    wide = np.dtype(np.int64 if index.itemsize == 8 else np.int32)
    columns = _columns(parts, len(sizes), compressed, wide)
    data = convert_element_type(_joined([part[0] for part in parts]), dtypes.computed_dtype(dtype))
    inside = None
    for at, n in zip(columns, sizes, strict=True):
        here = bitwise_and(ge(at, _wide(0, at)), lt(at, _wide(n, at)))
        inside = here if inside is None else bitwise_and(inside, here)
    columns = [where(inside, at, _wide(n, at)) for at, n in zip(columns, sizes, strict=True)]
    *columns, order = sort_p.bind(*columns, broadcasted_iota(wide, (lanes, count), 1),
                                  dimension=1, is_stable=True, num_keys=len(columns))
    differs = None
    for at in columns:
        before = pad(at, full((), -1, wide), ((0, 0, 0), (1, -1, 0)))
        here = ne(at, before)
        differs = here if differs is None else bitwise_or(differs, here)
    is_place = lt(columns[0], _wide(sizes[0], columns[0]))
    number = cumsum(convert_element_type(bitwise_and(differs, is_place), wide), 1)
    number = add(number, _wide(-1, number))
    is_kept = bitwise_and(is_place, lt(number, _wide(room, number)))
    number = where(is_kept, number, _wide(room, number))
    sums = _added_by_numbers(data.dtype, lanes, room, [(take_along(data, order, 1), number)],
                             is_sorted=True)
    at = [_put(n, lanes, room, x, number) for n, x in zip(sizes, columns, strict=True)]
    outs = [convert_element_type(sums, dtype)]
    if to_rows:
        ones = full((lanes, room), 1, wide)
        # places of row i count from pointer i + 1 on; those left over are of none
        counts = _added_by_numbers(wide, lanes, sizes[0] + 1,
                                   [(ones, add(at[0], _wide(1, at[0])))], is_sorted=True)
        outs += [convert_element_type(x, index) for x in (at[1], cumsum(counts, 1))]
    else:
        outs.append(convert_element_type(concatenate(
            [reshape(x, (lanes, room, 1)) for x in at], 2), index))
    if numbered:
        back = _put(room, lanes, count, number, order)
        start: Size = 0
        for part in parts:
            n = part[0].shape[1]
            outs.append(convert_element_type(slice_in_dim(back, start, start + n, axis=1), index))
            start = start + n
    return outs


def _columns(parts: Sequence[Sequence[Any]], count: int, compressed: bool, wide: Any) -> list[Any]:
    """The indices of all elements along each axis."""
    found = []
    for part in parts:
        if compressed:
            columns, pointers = (convert_element_type(x, wide) for x in part[1:])
            found.append([rows_of_lanes(columns, pointers), columns])
        else:
            at = convert_element_type(part[1], wide)
            found.append([reshape(slice_in_dim(at, k, k + 1, axis=2), at.shape[:2])
                          for k in range(count)])
    return [_joined(xs) for xs in zip(*found, strict=True)]


def _joined(xs: Sequence[Any]) -> Any:
    return concatenate(xs, 1) if len(xs) > 1 else xs[0]


def _put(value: Size, lanes: Size, room: Size, x: Any, numbers: Any) -> Any:
    """(lanes, room) of `value`, with x where its numbers say; those of one number are equal."""
    out = full((lanes * (room + 1),), value, x.dtype)
    out = scatter(out, _flat(numbers, room), reshape(x, (lanes * x.shape[1],)),
                  ScatterDimensionNumbers((), (0,), (0,)), mode=GatherScatterMode.FILL_OR_DROP)
    return slice_in_dim(reshape(out, (lanes, room + 1)), 0, room, axis=1)


sum_places_p = SumPlaces()
