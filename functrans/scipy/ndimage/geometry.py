"""Arrays at other places: map_coordinates, affine maps, shifts, zooms and rotations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import kind
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.numpy.common import axis_index
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.axes import per_axis
from functrans.scipy.ndimage.splines import MODES, values_at
from functrans.typing import Array, ArrayLike

_ORDERS = (0, 1, 2, 3, 4, 5)


def map_coordinates(input: ArrayLike, coordinates: Sequence[ArrayLike] | ArrayLike, order: int,
                    mode: str = "constant", cval: ArrayLike = 0.0, *, prefilter: bool = True
                    ) -> Array:
    """`input` at places, which are an array for each of its axes, by splines of an order from 0.

    `mode` says what is beyond the edges: "constant" (`cval`), "nearest", "wrap", "mirror" or
    "reflect". As in JAX, orders 0 and 1 take "constant" and "wrap" for SciPy's "grid-constant" and
    "grid-wrap", which have no gap at the edges; higher orders are those of SciPy. Integers are
    rounded. Raises ShapeError for another number of coordinates.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(12.0).reshape(3, 4)
    >>> at = [ft.numpy.array([0.5, 1.0]), ft.numpy.array([1.0, 2.5])]
    >>> ft.scipy.ndimage.map_coordinates(x, at, 1).tolist()
    [3.0, 6.5]
    """
    one_of("ndimage.map_coordinates", "order", order, _ORDERS)
    one_of("ndimage.map_coordinates", "mode", mode, MODES)
    x = jnp.asarray(input)
    places = _places("map_coordinates", x, coordinates)
    integers = kind(x.dtype) in "iub"
    (values,) = inexact(x)
    if order < 2 and mode in ("constant", "wrap"):
        mode = f"grid-{mode}"
    out = values_at(values, places, order, mode, cval, prefilter, _half_away)
    return _half_away(out).astype(x.dtype) if integers else out


def _places(name: str, x: Array, coordinates: Any) -> list[Array]:
    if len(coordinates) != x.ndim or not x.ndim:
        raise ShapeError(f"functrans.scipy.ndimage.{name}: there are {len(coordinates)} "
                         f"coordinates for an input of shape {x.shape}.", where=user_source(),
                         why="each axis has one.")
    found = inexact(*coordinates)
    return jnp.broadcast_arrays(*found)


def _half_away(x: Array) -> Array:
    """The nearest integer, of two the one farther from 0."""
    return jnp.sign(x) * jnp.floor(jnp.abs(x) + 0.5) if kind(x.dtype) != "c" else jnp.round(x)


def _resampled(name: str, x: Array, places: Sequence[Array], order: int, mode: str, cval: Any,
               prefilter: bool) -> Array:
    one_of(f"ndimage.{name}", "order", order, _ORDERS)
    one_of(f"ndimage.{name}", "mode", mode, MODES)
    return values_at(x, list(places), order, mode, cval, prefilter)


def _grid(shape: Sequence[int], dtype: Any) -> list[Array]:
    return [jnp.arange(n, dtype=dtype).reshape([-1 if a == i else 1 for a in range(len(shape))])
            for i, n in enumerate(shape)]


def affine_transform(input: ArrayLike, matrix: ArrayLike, offset: ArrayLike = 0.0,
                     output_shape: Sequence[int] | None = None, output: None = None,
                     order: int = 3, mode: str = "constant", cval: ArrayLike = 0.0,
                     prefilter: bool = True) -> Array:
    """`input` at matrix @ o + offset for each place o of the result, of `output_shape`.

    `matrix` has shape (n, n), (n,) for a diagonal, or (n, n + 1) or (n + 1, n + 1) with the offset
    in its last column; matrix and offset may be traced. See `map_coordinates` for the modes, which
    are SciPy's.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.affine_transform(ft.numpy.arange(4.0), [2.0], order=1).tolist()
    [0.0, 2.0, 0.0, 0.0]
    """
    one_of("ndimage.affine_transform", "output", output, (None,))
    x, m, move = inexact(input, matrix, offset)
    n = x.ndim
    if m.shape == (n + 1, n + 1) or (m.shape == (n, n + 1)):
        m, move = m[:n, :n], m[:n, n]
    if m.shape not in ((n,), (n, n)):
        raise ShapeError(f"functrans.scipy.ndimage.affine_transform: matrix has shape {m.shape}, "
                         f"the input {x.shape}.", where=user_source())
    m, move = m.real, jnp.broadcast_to(move.real, (n,))
    shape = x.shape if output_shape is None else tuple(output_shape)
    grid = _grid(shape, m.dtype)
    if m.ndim == 1:
        places = [m[i] * grid[i] + move[i] for i in range(n)]
    else:
        places = [sum((m[i, j] * grid[j] for j in range(1, n)), m[i, 0] * grid[0]) + move[i]
                  for i in range(n)]
    places = [jnp.broadcast_to(p, shape) for p in places]
    return _resampled("affine_transform", x, places, order, mode, cval, prefilter)


def shift(input: ArrayLike, shift: ArrayLike | Sequence[ArrayLike], output: None = None,
          order: int = 3, mode: str = "constant", cval: ArrayLike = 0.0, prefilter: bool = True
          ) -> Array:
    """`input` moved by `shift` elements along each axis; it may be traced.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.shift(ft.numpy.array([1.0, 2.0, 3.0]), 1, order=1).tolist()
    [0.0, 1.0, 2.0]
    """
    one_of("ndimage.shift", "output", output, (None,))
    x = jnp.asarray(input)
    moves = shift if isinstance(shift, (list, tuple)) else [shift] if jnp.ndim(shift) == 0 \
        else list(jnp.asarray(shift))
    if len(moves) == 1:
        moves = list(moves) * x.ndim
    if len(moves) != x.ndim:
        raise ShapeError(f"functrans.scipy.ndimage.shift: there are {len(moves)} shifts for an "
                         f"input of shape {x.shape}.", where=user_source())
    x, *moved = inexact(x, *moves)
    grid = _grid(x.shape, x.real.dtype)
    places = [jnp.broadcast_to(g - m.real, x.shape) for g, m in zip(grid, moved)]
    return _resampled("shift", x, places, order, mode, cval, prefilter)


def zoom(input: ArrayLike, zoom: float | Sequence[float], output: None = None, order: int = 3,
         mode: str = "constant", cval: ArrayLike = 0.0, prefilter: bool = True, *,
         grid_mode: bool = False) -> Array:
    """`input` with `zoom` times (known) as many elements along each axis.

    The first and last elements stay, or with `grid_mode` the outer edges of elements.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.zoom(ft.numpy.array([0.0, 2.0]), 1.5, order=1).tolist()
    [0.0, 1.0, 2.0]
    """
    one_of("ndimage.zoom", "output", output, (None,))
    (x,) = inexact(input)
    if isinstance(zoom, ARRAYS):
        zoom = [float(z) for z in jnp.atleast_1d(zoom)]
    factors = per_axis("ndimage.zoom", "zoom", zoom, range(x.ndim))
    shape = tuple(round(n * float(z)) for n, z in zip(x.shape, factors))
    if any(n < 1 for n in shape):
        raise ArgumentError(f"functrans.scipy.ndimage.zoom: the result has shape {shape}.",
                            where=user_source(), fix="a larger zoom")
    places = []
    for g, n, wanted in zip(_grid(shape, x.real.dtype), x.shape, shape):
        if grid_mode:
            at = (g + 0.5) * (n / wanted) - 0.5
        else:
            at = g * ((n - 1) / (wanted - 1) if wanted > 1 else 1.0)
            at = jnp.minimum(at, n - 1)  # roundoff is not beyond the edge
        places.append(jnp.broadcast_to(at, shape))
    return _resampled("zoom", x, places, order, mode, cval, prefilter)


def rotate(input: ArrayLike, angle: ArrayLike, axes: tuple[int, int] = (1, 0),
           reshape: bool = True, output: None = None, order: int = 3, mode: str = "constant",
           cval: ArrayLike = 0.0, prefilter: bool = True) -> Array:
    """`input` rotated by an angle in degrees in the plane of two axes, about its middle.

    With `reshape` the result holds all of it, and the angle is known; otherwise it has the shape of
    the input, and the angle may be traced.

    >>> import functrans as ft
    >>> x = ft.numpy.array([[1.0, 2.0], [3.0, 4.0]])
    >>> ft.scipy.ndimage.rotate(x, 90, order=1).round(4).tolist()
    [[2.0, 4.0], [1.0, 3.0]]
    """
    one_of("ndimage.rotate", "output", output, (None,))
    (x,) = inexact(input)
    plane = sorted(axis_index(a, x.ndim, "rotate") for a in axes)
    if len(set(plane)) != 2:
        raise ArgumentError(f"functrans.scipy.ndimage.rotate: axes is {axes}.", where=user_source(),
                            why="two axes are a plane.")
    dtype = x.real.dtype
    c: Any
    s: Any
    if isinstance(angle, ARRAYS) and not reshape:
        turn = jnp.asarray(angle) * (math.pi / 180)
        c, s = jnp.cos(turn).astype(dtype), jnp.sin(turn).astype(dtype)
    else:
        try:
            degrees = float(jnp.asarray(angle)) if isinstance(angle, ARRAYS) else float(
                np.asarray(angle))
        except TypeError:
            raise ArgumentError("functrans.scipy.ndimage.rotate: the angle is traced.",
                                where=user_source(), why="the shape of the result depends on it.",
                                fix="reshape=False") from None
        # exact for quarters of a turn
        quarter = degrees % 360
        exact = {0.0: (1.0, 0.0), 90.0: (0.0, 1.0), 180.0: (-1.0, 0.0), 270.0: (0.0, -1.0)}
        c, s = exact.get(quarter, (math.cos(math.radians(degrees)),
                                   math.sin(math.radians(degrees))))
    sizes = [x.shape[a] for a in plane]
    shape = list(sizes)
    if reshape:
        corners = np.array([[c, s], [-s, c]]) @ np.array(
            [[0, 0, sizes[0], sizes[0]], [0, sizes[1], 0, sizes[1]]])
        shape = [int(n) for n in np.ptp(corners, axis=1) + 0.5]
    moved = jnp.moveaxis(x, plane, (0, 1))
    i, j = (g - (n - 1) / 2 for g, n in zip(_grid(shape, dtype), shape))
    places = [c * i + s * j + (sizes[0] - 1) / 2, -s * i + c * j + (sizes[1] - 1) / 2]
    out = _resampled("rotate", moved, places, order, mode, cval, prefilter)
    return jnp.moveaxis(out, (0, 1), plane)
