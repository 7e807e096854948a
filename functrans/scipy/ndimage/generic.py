"""Filters by a function of the user: of lines, of derivatives, of all neighbourhoods at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.source import user_source
from functrans.numpy.common import axis_index, axis_tuple
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.axes import per_axis
from functrans.scipy.ndimage.filters import MODES, Axes, Modes, around, padded
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike


def generic_filter1d(input: ArrayLike, function: Callable[..., Any], filter_size: int,
                     axis: int = -1, output: None = None, mode: str = "reflect",
                     cval: ArrayLike = 0.0, origin: int = 0,
                     extra_arguments: tuple[Any, ...] = (),
                     extra_keywords: Mapping[str, Any] | None = None) -> Array:
    """`function` of each line along an axis, continued for filters of `filter_size` elements.

    It is called with a line of n + filter_size - 1 elements, and gives one of n; SciPy's writes
    into a second argument instead. Raises ArgumentError for a function of two.

    >>> import functrans as ft
    >>> x = ft.numpy.array([1.0, 2.0, 4.0])
    >>> ft.scipy.ndimage.generic_filter1d(x, lambda v: v[:-2] + v[2:], 3).tolist()
    [3.0, 5.0, 6.0]
    """
    name = "generic_filter1d"
    one_of(f"ndimage.{name}", "output", output, (None,))
    size = known_size(f"ndimage.{name}", "filter_size", filter_size)
    x = jnp.asarray(input)
    axis = axis_index(axis, x.ndim, name)
    more = dict(extra_keywords or {})
    try:
        inspect.signature(function).bind(x, *extra_arguments, **more)
    except TypeError:
        raise ArgumentError(f"functrans.scipy.ndimage.{name}: the function does not take one line.",
                            where=user_source(), why="arrays are immutable: it gives a line, and "
                            "writes none.", fix="def function(line): return line[:-2] + line[2:]"
                            ) from None
    except ValueError:  # of C, without a signature
        pass
    before, after = around(name, size, origin)
    lines = jnp.moveaxis(padded(name, x, axis, before, after, mode, cval), axis, -1)

    def filtered(line: Array) -> Array:
        found = jnp.asarray(function(line, *extra_arguments, **more))
        if found.shape != (x.shape[axis],):
            raise ShapeError(f"functrans.scipy.ndimage.{name}: the function gives {found.shape}.",
                             where=user_source(), why=f"a line of {line.shape[0]} elements becomes "
                             f"one of {x.shape[axis]}.")
        return found

    out = vmap(filtered)(lines.reshape(-1, lines.shape[-1])).astype(x.dtype)
    return jnp.moveaxis(out.reshape(*lines.shape[:-1], x.shape[axis]), -1, axis)


def generic_gradient_magnitude(input: ArrayLike, derivative: Callable[..., ArrayLike],
                               output: None = None, mode: Modes = "reflect",
                               cval: ArrayLike = 0.0, extra_arguments: tuple[Any, ...] = (),
                               extra_keywords: Mapping[str, Any] | None = None, *,
                               axes: Axes = None) -> Array:
    """The norm of `derivative(input, axis, output, mode, cval, ...)` over `axes` (all).

    >>> import functrans as ft
    >>> x = ft.numpy.array([1.0, 2.0, 4.0])
    >>> ft.scipy.ndimage.generic_gradient_magnitude(x, ft.scipy.ndimage.sobel).tolist()
    [1.0, 3.0, 2.0]
    """
    one_of("ndimage.generic_gradient_magnitude", "output", output, (None,))
    (x,) = inexact(input)
    over = axis_tuple(axes, x.ndim, "generic_gradient_magnitude")
    modes = per_axis("ndimage.generic_gradient_magnitude", "mode", mode, over)
    square = None
    for a, m in zip(over, modes):
        part = jnp.asarray(derivative(x, a, None, m, cval, *extra_arguments,
                                      **dict(extra_keywords or {})))
        square = part * part if square is None else square + part * part
    if square is None:
        return x
    # the root has no derivative at 0, where that of the norm is taken as 0
    some = square != 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, square, 1)), 0)


def vectorized_filter(input: ArrayLike, function: Callable[..., Any], *, size: Any = None,
                      footprint: Any = None, output: None = None, mode: str = "reflect",
                      cval: ArrayLike | None = None, origin: Any = None, axes: Axes = None,
                      batch_memory: int = 2**30) -> Array:
    """`function(windows, axis=...)` of all neighbourhoods at once, which are the last axes.

    The function reduces the axes that it is told, as `jnp.mean` does. A neighbourhood has `size`
    elements along each of `axes` (all), or is where `footprint` is true: one axis then. `mode` is
    one of `correlate1d`, or "valid", where only whole neighbourhoods count. The result has the
    dtype of the function; `batch_memory` is accepted.

    >>> import functrans as ft
    >>> x = ft.numpy.array([3.0, 1.0, 2.0])
    >>> ft.scipy.ndimage.vectorized_filter(x, ft.numpy.median, size=3).tolist()
    [3.0, 2.0, 2.0]
    """
    name = "vectorized_filter"
    one_of(f"ndimage.{name}", "output", output, (None,))
    one_of(f"ndimage.{name}", "mode", mode, (*MODES, "valid"))
    x = jnp.asarray(input)
    over = axis_tuple(axes, x.ndim, name)
    if (size is None) == (footprint is None):
        raise ArgumentError(f"functrans.scipy.ndimage.{name} needs size or footprint, not both.",
                            where=user_source(), fix="size=3")
    inside = None if footprint is None else np.asarray(footprint) != 0
    sizes = tuple(known_size(f"ndimage.{name}", "size", n) for n in (
        per_axis(f"ndimage.{name}", "size", size, over) if inside is None else inside.shape))
    if len(sizes) != len(over):
        raise ShapeError(f"functrans.scipy.ndimage.{name}: neighbourhoods have {len(sizes)} axes.",
                         where=user_source(), why=f"there are {len(over)} axes to filter.",
                         fix="axes=...")
    if cval is not None and MODES.get(mode) != "constant":
        raise ArgumentError(f"functrans.scipy.ndimage.{name}: mode is {mode!r}, and cval "
                            f"{shown(cval)}.", where=user_source(), fix="mode='constant'")
    origins = per_axis(f"ndimage.{name}", "origin", 0 if origin is None else origin, over)
    if mode == "valid" and any(origins):
        raise ArgumentError(f"functrans.scipy.ndimage.{name}: mode is 'valid', with an origin.",
                            where=user_source(), why="only whole neighbourhoods count.")
    if not x.size:
        return x
    last = tuple(range(x.ndim - len(over), x.ndim))
    x = jnp.moveaxis(x, over, last)
    if mode != "valid":
        for a, n, o in zip(last, sizes, origins):
            x = padded(name, x, a, *around(name, n, o), mode, 0.0 if cval is None else cval)
    windows = _windows(x, last, sizes)
    working = tuple(range(-len(over), 0))
    found = function(windows[..., inside], axis=-1) if inside is not None else function(
        windows, axis=working)
    return jnp.moveaxis(jnp.asarray(found), last, over)


def _windows(x: Array, axes: tuple[int, ...], sizes: tuple[int, ...]) -> Array:
    """All neighbourhoods inside x, whose axes are the last of the result."""
    counts = [x.shape[a] - n + 1 for a, n in zip(axes, sizes)]
    if min(counts, default=1) < 1:
        raise ShapeError(f"functrans.scipy.ndimage.vectorized_filter: neighbourhoods {sizes} are "
                         f"larger than {tuple(x.shape[a] for a in axes)}.", where=user_source())
    rows = []
    for offset in product(*map(range, sizes)):
        index = [slice(None)] * x.ndim
        for a, o, n in zip(axes, offset, counts):
            index[a] = slice(o, o + n)
        rows.append(x[tuple(index)])
    return jnp.stack(rows, axis=-1).reshape(*rows[0].shape, *sizes)
