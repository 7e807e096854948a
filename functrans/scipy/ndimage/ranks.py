"""Filters by the order of the elements of a neighbourhood, which keep the dtype of the input."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import axis_index, axis_tuple
from functrans.scipy.axes import neighbours, per_axis
from functrans.scipy.ndimage.filters import Axes, Modes, Sizes, around, padded
from functrans.typing import Array, ArrayLike


def around_each(name: str, input: ArrayLike, size: Any, footprint: Any, mode: Modes, cval: Any,
                origin: Sizes, axes: Axes = None) -> Array:
    """The elements of all neighbourhoods over `axes`, along a new first axis."""
    x = jnp.asarray(input)
    if axes is not None:
        size, footprint, mode, origin = _of_all_axes(name, x, size, footprint, mode, origin, axes)
    if footprint is None and size is None:
        raise ArgumentError(f"functrans.scipy.ndimage.{name} needs size or footprint.",
                            where=user_source(), fix="size=3")
    if footprint is None:
        shape = np.ones([int(n) for n in per_axis(f"ndimage.{name}", "size", size,
                                                  range(x.ndim))], bool)
    else:
        shape = np.asarray(footprint) != 0
    if shape.ndim != x.ndim or not shape.any():
        raise ShapeError(f"functrans.scipy.ndimage.{name}: the footprint has shape {shape.shape}, "
                         f"the input {x.shape}.", where=user_source(),
                         why="both have the same axes, and an element is in it.")
    origins = per_axis(f"ndimage.{name}", "origin", origin, range(x.ndim))
    modes = per_axis(f"ndimage.{name}", "mode", mode, range(x.ndim))
    for a, (n, o, m) in enumerate(zip(shape.shape, origins, modes)):
        x = padded(name, x, a, *around(name, n, o), m, cval)
    return neighbours(x, shape)


def _of_all_axes(name: str, x: Array, size: Any, footprint: Any, mode: Modes, origin: Sizes,
                 axes: Axes) -> tuple[Any, Any, Any, Any]:
    """What is given for some axes as that of all: one element along the others."""
    over = axis_tuple(axes, x.ndim, name)
    lists = []
    for argument, value, default in (("size", size, 1), ("mode", mode, "nearest"),
                                     ("origin", origin, 0)):
        filled: Any = [default] * x.ndim
        for a, v in zip(over, per_axis(f"ndimage.{name}", argument, value, over)):
            filled[a] = v
        lists.append(filled)
    if footprint is not None:
        given = np.asarray(footprint)
        if given.ndim != len(over):
            raise ShapeError(f"functrans.scipy.ndimage.{name}: the footprint has shape "
                             f"{given.shape}.", where=user_source(),
                             why=f"there are {len(over)} axes.")
        ahead = sorted(over)  # its axes are those of the array in their order, as in SciPy
        footprint = given.reshape([given.shape[ahead.index(a)] if a in over else 1
                                   for a in range(x.ndim)])
    return (None if size is None else lists[0]), footprint, lists[1], lists[2]


def rank_filter(input: ArrayLike, rank: int, size: Any = None, footprint: Any = None,
                output: None = None, mode: Modes = "reflect", cval: ArrayLike = 0.0,
                origin: Sizes = 0, *, axes: Axes = None) -> Array:
    """The element of a rank in the neighbourhood of each; a negative rank counts from the largest.

    The neighbourhood has `size` elements along each of `axes` (all), or is where `footprint` is not
    0.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.rank_filter(ft.numpy.array([3, 1, 2]), 1, size=3).tolist()
    [3, 2, 2]
    """
    found = around_each("rank_filter", input, size, footprint, mode, cval, origin, axes)
    return _ranked("rank_filter", found, int(rank))


def _ranked(name: str, found: Array, rank: int) -> Array:
    count = found.shape[0]
    if not -count <= rank < count:
        raise ArgumentError(f"functrans.scipy.ndimage.{name}: rank is {rank}.",
                            where=user_source(), why=f"a neighbourhood has {count} elements.")
    return jnp.sort(found, axis=0)[rank]


def median_filter(input: ArrayLike, size: Any = None, footprint: Any = None, output: None = None,
                  mode: Modes = "reflect", cval: ArrayLike = 0.0, origin: Sizes = 0, *,
                  axes: Axes = None) -> Array:
    """The median of the neighbourhood of each element, the upper one of two; see `rank_filter`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.median_filter(ft.numpy.array([1, 9, 2, 3]), size=3).tolist()
    [1, 2, 3, 3]
    """
    found = around_each("median_filter", input, size, footprint, mode, cval, origin, axes)
    return _ranked("median_filter", found, found.shape[0] // 2)


def percentile_filter(input: ArrayLike, percentile: float, size: Any = None, footprint: Any = None,
                      output: None = None, mode: Modes = "reflect", cval: ArrayLike = 0.0,
                      origin: Sizes = 0, *, axes: Axes = None) -> Array:
    """The element at a percentile of the neighbourhood of each; see `rank_filter`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.percentile_filter(ft.numpy.array([3, 1, 2]), 100, size=3).tolist()
    [3, 3, 2]
    """
    share = percentile + 100.0 if percentile < 0 else percentile
    if not 0 <= share <= 100:
        raise ArgumentError(f"functrans.scipy.ndimage.percentile_filter: percentile is "
                            f"{percentile}.", where=user_source(), why="it is up to 100.")
    found = around_each("percentile_filter", input, size, footprint, mode, cval, origin, axes)
    count = found.shape[0]
    rank = count - 1 if share == 100 else int(float(count) * share / 100)
    return _ranked("percentile_filter", found, rank)


def minimum_filter(input: ArrayLike, size: Any = None, footprint: Any = None, output: None = None,
                   mode: Modes = "reflect", cval: ArrayLike = 0.0, origin: Sizes = 0, *,
                  axes: Axes = None) -> Array:
    """The least element of the neighbourhood of each; see `rank_filter`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.minimum_filter(ft.numpy.array([3, 1, 2]), size=3).tolist()
    [1, 1, 1]
    """
    return _extreme("minimum_filter", jnp.min, input, size, footprint, mode, cval, origin, axes)


def maximum_filter(input: ArrayLike, size: Any = None, footprint: Any = None, output: None = None,
                   mode: Modes = "reflect", cval: ArrayLike = 0.0, origin: Sizes = 0, *,
                  axes: Axes = None) -> Array:
    """The largest element of the neighbourhood of each; see `rank_filter`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.maximum_filter(ft.numpy.array([3, 1, 2]), size=3).tolist()
    [3, 3, 2]
    """
    return _extreme("maximum_filter", jnp.max, input, size, footprint, mode, cval, origin, axes)


def _extreme(name: str, reduce: Any, input: ArrayLike, size: Any, footprint: Any, mode: Modes,
             cval: Any, origin: Sizes, axes: Axes) -> Array:
    x = jnp.asarray(input)
    if axes is not None:
        size, footprint, mode, origin = _of_all_axes(name, x, size, footprint, mode, origin, axes)
    if footprint is not None or size is None:
        found: Array = reduce(around_each(name, x, size, footprint, mode, cval, origin), axis=0)
        return found
    sizes, origins, modes = (per_axis(f"ndimage.{name}", n, v, range(x.ndim)) for n, v in (
        ("size", size), ("origin", origin), ("mode", mode)))
    for a in range(x.ndim):  # of a box along one axis after the other
        shape = [sizes[a] if i == a else 1 for i in range(x.ndim)]
        where = [origins[a] if i == a else 0 for i in range(x.ndim)]
        if sizes[a] > 1:
            x = reduce(around_each(name, x, shape, None, modes[a], cval, where), axis=0)
    return x


def minimum_filter1d(input: ArrayLike, size: int, axis: int = -1, output: None = None,
                     mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0) -> Array:
    """The least of `size` elements along an axis.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.minimum_filter1d(ft.numpy.array([3, 1, 2]), 3).tolist()
    [1, 1, 1]
    """
    return _along("minimum_filter1d", jnp.min, input, size, axis, mode, cval, origin)


def maximum_filter1d(input: ArrayLike, size: int, axis: int = -1, output: None = None,
                     mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0) -> Array:
    """The largest of `size` elements along an axis.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.maximum_filter1d(ft.numpy.array([3, 1, 2]), 3).tolist()
    [3, 3, 2]
    """
    return _along("maximum_filter1d", jnp.max, input, size, axis, mode, cval, origin)


def _along(name: str, reduce: Any, input: ArrayLike, size: int, axis: int, mode: str, cval: Any,
           origin: int) -> Array:
    x = jnp.asarray(input)
    axis = axis_index(axis, x.ndim, name)
    shape = [int(size) if i == axis else 1 for i in range(x.ndim)]
    where = [origin if i == axis else 0 for i in range(x.ndim)]
    found: Array = reduce(around_each(name, x, shape, None, mode, cval, where), axis=0)
    return found
