"""Integrals of sampled functions along an axis."""

from __future__ import annotations

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import axis_index, converted
from functrans.scipy.arguments import inexact
from functrans.typing import Array, ArrayLike


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
              ) -> Array:
    """The integral by trapezoids, of samples at x or dx apart.

    >>> import functrans as ft
    >>> float(ft.scipy.integrate.trapezoid(ft.numpy.array([1.0, 2.0, 3.0])))
    4.0
    """
    return jnp.trapezoid(y, x, dx, axis)


def cumulative_trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0,
                         axis: int = -1, initial: ArrayLike | None = None) -> Array:
    """The integrals from the first sample to each later one by trapezoids, after `initial`.

    >>> import functrans as ft
    >>> ft.scipy.integrate.cumulative_trapezoid(ft.numpy.array([1.0, 2.0, 3.0])).tolist()
    [1.5, 4.0]
    """
    v, steps, axis = _samples("cumulative_trapezoid", y, x, dx, axis)
    parts = steps * (v[..., 1:] + v[..., :-1]) / 2
    return _summed(parts, initial, axis, False)


def simpson(y: ArrayLike, x: ArrayLike | None = None, *, dx: ArrayLike = 1.0, axis: int = -1
            ) -> Array:
    """The integral by Simpson's rule, of samples at x or dx apart.

    The last of an odd number of intervals is that of the parabola through the last three samples.
    Source: Cartwright, Simpson's rule cumulative integration with MS Excel and irregularly-spaced
    data (2017).

    >>> import functrans as ft
    >>> round(float(ft.scipy.integrate.simpson(ft.numpy.arange(3.0) ** 2)), 4)
    2.6667
    """
    v, steps, _ = _samples("simpson", y, x, dx, axis)
    size = v.shape[-1]
    if size < 3:
        return jnp.sum(steps * (v[..., 1:] + v[..., :-1]) / 2, axis=-1)
    steps = jnp.broadcast_to(steps, (*v.shape[:-1], size - 1))
    even = size - 1 - (size - 1) % 2
    first, second = _halves(v[..., :even + 1:2], v[..., 1:even:2], steps[..., :even:2],
                            steps[..., 1:even:2])
    total = jnp.sum(first + second, axis=-1)
    if size % 2 == 0:
        _, last = _halves(v[..., -3:][..., ::2], v[..., -2:-1], steps[..., -2:-1], steps[..., -1:])
        total = total + last[..., 0]
    return total


def _halves(ends: Array, middle: Array, h0: Array, h1: Array) -> tuple[Array, Array]:
    """The integrals of parabolas over the first and the second interval of each pair."""
    left, right, whole = ends[..., :-1], ends[..., 1:], h0 + h1

    def over(h: Array, other: Array, near: Array, far: Array) -> Array:
        bend = h * h / (whole * other)
        return h / 6 * ((3 - h / whole) * near + (3 + bend + h / whole) * middle - bend * far)

    return over(h0, h1, left, right), over(h1, h0, right, left)


def cumulative_simpson(y: ArrayLike, *, x: ArrayLike | None = None, dx: ArrayLike = 1.0,
                       axis: int = -1, initial: ArrayLike | None = None) -> Array:
    """The integrals from the first sample to each later one by parabolas through three samples.

    >>> import functrans as ft
    >>> print(ft.scipy.integrate.cumulative_simpson(ft.numpy.arange(3.0) ** 2).round(4))
    [0.3333 2.6667]
    """
    v, steps, axis = _samples("cumulative_simpson", y, x, dx, axis)
    size = v.shape[-1]
    if size < 3:
        return _summed(steps * (v[..., 1:] + v[..., :-1]) / 2, initial, axis, True)
    steps = jnp.broadcast_to(steps, (*v.shape[:-1], size - 1))
    first, second = _each(v, steps)
    places = jnp.arange(size - 1)
    # even intervals begin a pair, odd ones and the last one end a pair
    begins = jnp.concatenate([first, second[..., -1:]], axis=-1)
    ends = jnp.concatenate([first[..., :1], second], axis=-1)
    parts = jnp.where((places % 2 == 0) & (places < size - 2), begins, ends)
    return _summed(parts, initial, axis, True)


def _each(v: Array, steps: Array) -> tuple[Array, Array]:
    """As _halves, for every three samples that follow each other."""
    h0, h1 = steps[..., :-1], steps[..., 1:]
    left, middle, right, whole = v[..., :-2], v[..., 1:-1], v[..., 2:], h0 + h1

    def over(h: Array, other: Array, near: Array, far: Array) -> Array:
        bend = h * h / (whole * other)
        return h / 6 * ((3 - h / whole) * near + (3 + bend + h / whole) * middle - bend * far)

    return over(h0, h1, left, right), over(h1, h0, right, left)


def romb(y: ArrayLike, dx: ArrayLike = 1.0, axis: int = -1, show: bool = False) -> Array:
    """The integral by Romberg's rule, of 2**k + 1 samples that are dx apart.

    Raises ArgumentError for another number of samples.

    >>> import functrans as ft
    >>> float(ft.scipy.integrate.romb(ft.numpy.arange(5.0) ** 3))
    64.0
    """
    v, step = inexact(y, dx)
    v = jnp.moveaxis(v, axis_index(axis, v.ndim, "romb"), -1)
    count = v.shape[-1] - 1
    levels = count.bit_length() - 1
    if show or count < 1 or 2**levels != count:
        raise ArgumentError(f"functrans.scipy.integrate.romb: there are {count + 1} samples.",
                            where=user_source(), why="there are 2**k + 1; show is False.")
    h = step * count
    rows = [h * (v[..., 0] + v[..., -1]) / 2]
    for i in range(1, levels + 1):
        stride = count >> i
        rest = jnp.sum(v[..., stride:count:2 * stride], axis=-1)
        now = [rows[0] / 2 + h / 2**i * rest]
        for j in range(1, i + 1):
            now.append(now[j - 1] + (now[j - 1] - rows[j - 1]) / (4**j - 1))
        rows = now
    return rows[-1]


def _samples(name: str, y: ArrayLike, x: ArrayLike | None, dx: ArrayLike, axis: int
             ) -> tuple[Array, Array, int]:
    """Samples along the last axis, the steps between them, and the axis."""
    v, at = inexact(y, dx if x is None else x)
    if not v.ndim:
        raise ShapeError(f"functrans.scipy.integrate.{name}: y is a scalar.", where=user_source())
    axis = axis_index(axis, v.ndim, name)
    v = jnp.moveaxis(v, axis, -1)
    if not v.shape[-1]:
        raise ShapeError(f"functrans.scipy.integrate.{name}: there are no samples.",
                         where=user_source())
    if x is None:
        return v, at, axis
    if at.ndim > 1:
        at = jnp.moveaxis(at, axis, -1)
    if at.shape[-1:] != v.shape[-1:]:
        raise ShapeError(f"functrans.scipy.integrate.{name}: x has {at.shape[-1:]} places, y "
                         f"{v.shape[-1]} samples.", where=user_source())
    return v, jnp.diff(at, axis=-1), axis


def _summed(parts: Array, initial: ArrayLike | None, axis: int, added: bool) -> Array:
    """Running sums, after `initial`, which Simpson's are added to as well."""
    out = jnp.cumsum(parts, axis=-1)
    if initial is not None:
        first = converted("scipy.integrate", initial, out.dtype)
        first = jnp.moveaxis(first, axis, -1) if first.ndim else first[None]
        first = jnp.broadcast_to(first, (*out.shape[:-1], 1))
        out = jnp.concatenate([first, out + first if added else out], axis=-1)
    return jnp.moveaxis(out, -1, axis)
