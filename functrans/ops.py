"""Reductions by segments, with the names of jax.ops: rows that have one number are combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.core.errors import ShapeError, publish
from functrans.core.source import user_source
from functrans.numpy.common import concrete, dimension, filled, operand
from functrans.numpy.creation import arange
from functrans.numpy.reductions import limit, max, min, prod, sum
from functrans.numpy.updates import UPDATES, update
from functrans.primitives.index import GatherScatterMode
from functrans.typing import Array, ArrayLike

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def segment_sum(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None,
                mode: str | GatherScatterMode | None = None) -> Array:
    """The sums of the rows of `data` that have one number in `segment_ids`; 0 where none has it.

    Numbers outside of range(num_segments), negative ones too, are left out. `num_segments` is the
    largest number plus one unless given, which needs numbers of known values. `bucket_size` adds
    so many rows at a time, and then their sums. Raises ShapeError where rows have no number.

    >>> import functrans as ft
    >>> ft.ops.segment_sum(ft.numpy.arange(4.0), ft.numpy.array([0, 2, 0, 5]), 3).tolist()
    [2.0, 0.0, 1.0]
    """
    return _segments("sum", "add", sum, data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode)


def segment_prod(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                 indices_are_sorted: bool = False, unique_indices: bool = False,
                 bucket_size: int | None = None,
                 mode: str | GatherScatterMode | None = None) -> Array:
    """The products of the rows that have one number, 1 where none has it; see `segment_sum`."""
    return _segments("prod", "multiply", prod, data, segment_ids, num_segments,
                     indices_are_sorted, unique_indices, bucket_size, mode)


def segment_max(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None,
                mode: str | GatherScatterMode | None = None) -> Array:
    """The largest of the rows that have one number; see `segment_sum`.

    Where none has it, the least value of the dtype: -inf of floats.
    """
    return _segments("max", "max", max, data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode)


def segment_min(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None,
                mode: str | GatherScatterMode | None = None) -> Array:
    """The least of the rows that have one number; see `segment_sum`.

    Where none has it, the largest value of the dtype: inf of floats.
    """
    return _segments("min", "min", min, data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode)


def _segments(name: str, kind: str, reduce: Callable[..., Array], data: ArrayLike,
              segment_ids: ArrayLike, num_segments: int | None, indices_are_sorted: bool,
              unique_indices: bool, bucket_size: int | None, mode: Any) -> Array:
    name = f"segment_{name}"
    rows, numbers = operand(name, data), operand(name, segment_ids)
    if numbers.ndim > rows.ndim or rows.shape[:numbers.ndim] != numbers.shape:
        raise ShapeError(f"{name}: segment_ids has shape {numbers.shape}, data {rows.shape}.",
                         where=user_source(), why="every row has a number.",
                         fix="segment_ids of data.shape[:1]")
    count = _count(name, numbers) if num_segments is None else \
        dimension(num_segments, f"{name}: num_segments")
    identity = {"add": 0, "multiply": 1}.get(kind)
    if identity is None:
        identity = limit(rows.dtype, kind == "min")
    shape: tuple[Any, ...] = (count, *rows.shape[numbers.ndim:])
    where: tuple[Array, ...] = (numbers,)
    if bucket_size is not None:
        bucket = arange(numbers.shape[0]) // bucket_size
        shape = (-(-numbers.shape[0] // bucket_size), *shape)
        where = (bucket.reshape(-1, *[1] * (numbers.ndim - 1)), numbers)
    out = update(filled(shape, identity, rows.dtype), where, rows, UPDATES[kind], mode=mode,
                 indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                 wrap_negative_indices=False)
    return out if bucket_size is None else reduce(out, axis=0).astype(rows.dtype)


def _count(name: str, numbers: Array) -> int:
    values = concrete(name, numbers, "segment_ids", f"{name}(data, segment_ids, num_segments=n)")
    return int(values.max(initial=-1)) + 1


publish(globals(), __all__)
