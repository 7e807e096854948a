"""Sums, extremes and counts along the axes of sparse arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_float, iinfo, kind
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import axis_tuple
from functrans.scipy.sparse.places import columns_of, index_math, is_inside, summed
from functrans.sparse.bcoo import BCOO
from functrans.typing import Array


def axes_of(name: str, axis: Any, mat: BCOO) -> tuple[int, ...]:
    """The axes of a reduction, all by default."""
    if axis is None:
        return tuple(range(mat.ndim))
    return tuple(axis_tuple(axis, mat.ndim, name))


def _groups(mat: BCOO, axes: tuple[int, ...]) -> tuple[Any, tuple[Any, ...], int]:
    """The number of the result's element for each stored one, its shape, and how many have one."""
    rest = [a for a in range(mat.ndim) if a not in axes]
    shape = tuple(mat.shape[a] for a in rest)
    columns = columns_of(mat)

    def number(xp: Any, *columns: Any) -> Any:
        out = xp.zeros(columns[0].shape, np.int64)
        beyond = xp.zeros(columns[0].shape, bool)
        for a in rest:
            out = out * mat.shape[a] + columns[a]
        for a, c in enumerate(columns):
            beyond = beyond | (c < 0) | (c >= mat.shape[a])
        return xp.where(beyond, math.prod(shape), out)

    numbers = index_math(number, *columns) if columns else jnp.zeros(mat.nse, np.int64)
    return numbers, shape, math.prod([mat.shape[a] for a in axes])


def total(mat: BCOO, axis: Any, dtype: Any = None) -> Array:
    """The sum over axes, which is dense."""
    axes = axes_of("sum", axis, mat)
    numbers, shape, _ = _groups(mat, axes)
    if kind(mat.dtype) == "b":  # of places that hold
        mat = summed(mat)
        numbers, shape, _ = _groups(mat, axes)
    wide = jnp.sum(jnp.zeros(1, mat.dtype), dtype=dtype).dtype
    out = jnp.zeros(math.prod(shape), wide).at[numbers].add(mat.data.astype(wide), mode="drop")
    return out.reshape(shape)


def mean(mat: BCOO, axis: Any, dtype: Any = None) -> Array:
    """The mean over axes, zeros included."""
    count = math.prod([mat.shape[a] for a in axes_of("mean", axis, mat)])
    if dtype is None and kind(mat.dtype) not in "fc":
        dtype = default_float()
    sums = total(mat, axis, dtype)
    return sums / jnp.asarray(count, sums.real.dtype)


def _lowest(dtype: Any, largest: bool) -> Any:
    if kind(dtype) == "b":
        return not largest
    if kind(dtype) == "f":
        return -np.inf if largest else np.inf
    return iinfo(dtype).min if largest else iinfo(dtype).max


def extremes(mat: BCOO, axis: Any, largest: bool, explicit: bool, skip_nan: bool = False) -> Array:
    """The largest or smallest elements along axes, dense; zeros that are not stored count."""
    name = "max" if largest else "min"
    if kind(mat.dtype) == "c":
        raise ArgumentError(f"functrans.scipy.sparse: {name} of complex numbers.",
                            where=user_source(), fix="abs(x)")
    axes = axes_of(name, axis, mat)
    mat = summed(mat)
    numbers, shape, count = _groups(mat, axes)
    size = math.prod(shape)
    if not count and size:
        raise ArgumentError(f"functrans.scipy.sparse: {name} of no elements.", where=user_source())
    data = mat.data
    is_nan = jnp.isnan(data) if kind(mat.dtype) == "f" else jnp.zeros(data.shape, bool)
    low = jnp.asarray(_lowest(mat.dtype, largest), mat.dtype)
    usable = jnp.where(is_nan, low, data)
    place = jnp.full(size, low).at[numbers]
    out = place.max(usable, mode="drop") if largest else place.min(usable, mode="drop")
    stored = jnp.zeros(size, np.int64).at[numbers].add(1, mode="drop")
    nans = jnp.zeros(size, np.int64).at[numbers].add(is_nan.astype(np.int64), mode="drop")
    zero = jnp.zeros((), mat.dtype)
    if explicit:
        out = jnp.where(stored == 0, zero, out)
    else:
        wanted = jnp.maximum(out, zero) if largest else jnp.minimum(out, zero)
        out = jnp.where(stored < count, wanted, out)
    if kind(mat.dtype) == "f":
        lost = (nans > 0) if not skip_nan else (nans > 0) & (nans == stored) & (
            (stored == count) | explicit)
        out = jnp.where(lost, jnp.asarray(np.nan, out.dtype), out)
    return out.reshape(shape)


def arg_extremes(mat: BCOO, axis: Any, largest: bool, explicit: bool) -> Array:
    """Where the first largest or smallest elements along an axis are, or in the whole array."""
    if axis is None:
        flat = [index_math(lambda xp, *c: _flat(xp, c, mat.shape), *columns_of(mat))]
        beyond = is_inside(mat)
        where = flat[0] if beyond is None else jnp.where(beyond, flat[0], mat.size)
        line = BCOO.tree_unflatten(((mat.size,), False, False),
                                   (mat.data, index_math(lambda xp, c: c[:, None], where)))
        return arg_extremes(line, 0, largest, explicit)
    axes = axes_of("argmax", axis, mat)
    if len(axes) != 1:
        raise ArgumentError(f"functrans.scipy.sparse: argmax along axes {axes}.",
                            where=user_source(), fix="one axis, or None")
    best = extremes(mat, axes[0], largest, explicit).reshape(-1)
    mat = summed(mat)
    numbers, shape, count = _groups(mat, axes)
    size = math.prod(shape)
    along = columns_of(mat)[axes[0]]
    here = best[jnp.minimum(numbers, max(size - 1, 0))] if size else mat.data
    is_best = mat.data == here
    if kind(mat.dtype) == "f":
        is_best = is_best | jnp.isnan(mat.data)
    place = jnp.where(is_best, along, count).astype(np.int64)
    out = jnp.full(size, count, np.int64).at[numbers].min(place, mode="drop")
    if not explicit:
        # of places in order along the axis the first that is not its own number is not stored
        stored = jnp.zeros(size, np.int64).at[numbers].add(1, mode="drop")
        order = jnp.lexsort((along, numbers))
        ranks = jnp.arange(mat.nse) - jnp.searchsorted(numbers[order], numbers[order])
        in_turn = (along[order] == ranks).astype(np.int64)
        first = jnp.zeros(size, np.int64).at[numbers[order]].add(in_turn, mode="drop")
        zero_wins = (best == 0) & (stored < count)
        out = jnp.where(zero_wins, jnp.minimum(out, first), out)
    return jnp.where(out == count, 0, out).reshape(shape)


def _flat(xp: Any, columns: Any, shape: tuple[Any, ...]) -> Any:
    out = xp.zeros(columns[0].shape, np.int64)
    for n, c in zip(shape, columns):
        out = out * n + c
    return out


def count_nonzero(mat: BCOO, axis: Any) -> Array:
    """The number of elements that are not zero along axes."""
    mat = summed(mat)
    numbers, shape, _ = _groups(mat, axes_of("count_nonzero", axis, mat))
    ones = (mat.data != 0).astype(np.int64)
    return jnp.zeros(math.prod(shape), np.int64).at[numbers].add(ones, mode="drop").reshape(shape)


