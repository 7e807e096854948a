"""Discrete cosine and sine transforms of types 1 to 4, by Fourier transforms of complex numbers.

Unscaled, with N the number of points: type 2 is 2 sum x[n] cos(pi k (2n+1) / 2N) (sine: k+1), type
3 its transpose with the first (sine: last) point counted once, types 1 and 4 their own transposes.
`norm` is "backward" (the inverse is divided by 2N; 2(N-1) for cosines of type 1, 2(N+1) for sines
of it), "forward" or "ortho". With `orthogonalize`, which "ortho" implies, the end points of types 1
to 3 are scaled so that the matrix is orthogonal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import axis_index, axis_tuple
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.typing import Array, ArrayLike

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_NORMS = ("backward", "ortho", "forward", None)
_OTHER_SIDE = {"backward": "forward", None: "forward", "forward": "backward", "ortho": "ortho"}
_HALF = math.sqrt(0.5)


def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1,
        norm: str | None = None, *, orthogonalize: bool | None = None) -> Array:
    """The discrete cosine transform along an axis, cut or filled up with zeros to `n` points.

    Raises ArgumentError for another type than 1 to 4. Source: J. Makhoul, A fast cosine transform
    in one and two dimensions, IEEE Trans. ASSP 28 (1980), for types 2 and 3.

    >>> import functrans as ft
    >>> ft.scipy.fft.dct(ft.numpy.array([1.0, 1.0, 1.0, 1.0])).round(4).tolist()
    [8.0, 0.0, 0.0, 0.0]
    """
    return _along("dct", _cosine, x, type, n, axis, norm, orthogonalize)


def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1,
         norm: str | None = None, *, orthogonalize: bool | None = None) -> Array:
    """The inverse of `dct` of the same type.

    >>> import functrans as ft
    >>> ft.scipy.fft.idct(ft.numpy.array([8.0, 0.0, 0.0, 0.0])).round(4).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _along("idct", _cosine, x, type, n, axis, norm, orthogonalize, inverse=True)


def dst(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1,
        norm: str | None = None, *, orthogonalize: bool | None = None) -> Array:
    """The discrete sine transform along an axis; see `dct` for the arguments.

    >>> import functrans as ft
    >>> ft.scipy.fft.dst(ft.numpy.array([1.0, -1.0])).round(4).tolist()
    [0.0, 4.0]
    """
    return _along("dst", _sine, x, type, n, axis, norm, orthogonalize)


def idst(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1,
         norm: str | None = None, *, orthogonalize: bool | None = None) -> Array:
    """The inverse of `dst` of the same type.

    >>> import functrans as ft
    >>> ft.scipy.fft.idst(ft.numpy.array([0.0, 4.0])).round(4).tolist()
    [1.0, -1.0]
    """
    return _along("idst", _sine, x, type, n, axis, norm, orthogonalize, inverse=True)


def dctn(x: ArrayLike, type: int = 2, s: Sequence[int] | int | None = None,
         axes: Sequence[int] | int | None = None, norm: str | None = None, *,
         orthogonalize: bool | None = None) -> Array:
    """The discrete cosine transform along several axes (all, or the last of those in `s`).

    >>> import functrans as ft
    >>> ft.scipy.fft.dctn(ft.numpy.ones((2, 2))).round(4).tolist()
    [[16.0, 0.0], [0.0, 0.0]]
    """
    return _along_axes("dctn", dct, x, type, s, axes, norm, orthogonalize)


def idctn(x: ArrayLike, type: int = 2, s: Sequence[int] | int | None = None,
          axes: Sequence[int] | int | None = None, norm: str | None = None, *,
          orthogonalize: bool | None = None) -> Array:
    """The inverse of `dctn`.

    >>> import functrans as ft
    >>> ft.scipy.fft.idctn(ft.numpy.array([[16.0, 0.0], [0.0, 0.0]])).round(4).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _along_axes("idctn", idct, x, type, s, axes, norm, orthogonalize)


def dstn(x: ArrayLike, type: int = 2, s: Sequence[int] | int | None = None,
         axes: Sequence[int] | int | None = None, norm: str | None = None, *,
         orthogonalize: bool | None = None) -> Array:
    """The discrete sine transform along several axes; see `dctn`.

    >>> import functrans as ft
    >>> ft.scipy.fft.dstn(ft.numpy.array([[1.0, -1.0]])).round(4).tolist()
    [[0.0, 8.0]]
    """
    return _along_axes("dstn", dst, x, type, s, axes, norm, orthogonalize)


def idstn(x: ArrayLike, type: int = 2, s: Sequence[int] | int | None = None,
          axes: Sequence[int] | int | None = None, norm: str | None = None, *,
          orthogonalize: bool | None = None) -> Array:
    """The inverse of `dstn`.

    >>> import functrans as ft
    >>> ft.scipy.fft.idstn(ft.numpy.array([[0.0, 8.0]])).round(4).tolist()
    [[1.0, -1.0]]
    """
    return _along_axes("idstn", idst, x, type, s, axes, norm, orthogonalize)


def _along_axes(name: str, transform: Callable[..., Array], x: ArrayLike, type: int, s: Any,
                axes: Any, norm: str | None, orthogonalize: bool | None) -> Array:
    (value,) = inexact(x)
    sizes = (s,) if isinstance(s, int) else s
    if axes is None and sizes is not None:
        axes = tuple(range(value.ndim - len(sizes), value.ndim))
    over = axis_tuple(axes, value.ndim, name)
    sizes = [None] * len(over) if sizes is None else list(sizes)
    if len(sizes) != len(over):
        raise ArgumentError(f"functrans.scipy.fft.{name}: {len(sizes)} sizes for {len(over)} axes.",
                            where=user_source())
    for axis, n in zip(over, sizes):
        value = transform(value, type, n, axis, norm, orthogonalize=orthogonalize)
    return value


def _along(name: str, transform: Callable[[Array, int], Array], x: ArrayLike, type: int,
           n: int | None, axis: int, norm: str | None, orthogonalize: bool | None,
           inverse: bool = False) -> Array:
    one_of(f"fft.{name}", "type", type, (1, 2, 3, 4))
    one_of(f"fft.{name}", "norm", norm, _NORMS)
    (value,) = inexact(x)
    if not value.ndim:
        raise ShapeError(f"functrans.scipy.fft.{name}: x is a scalar.", where=user_source())
    axis = axis_index(axis, value.ndim, name)
    if n is not None:
        value = _resized(value, known_size(f"fft.{name}", "n", n), axis)
    size = value.shape[axis]
    cosine = transform is _cosine
    if size < (2 if type == 1 and cosine else 1):
        raise ShapeError(f"functrans.scipy.fft.{name}: axis {axis} has {size} points.",
                         where=user_source(), why="type 1 needs two of them." if size else "")
    if inverse:
        type, norm = _INVERSE[type], _OTHER_SIDE[norm]
    if orthogonalize is None:
        orthogonalize = norm == "ortho"
    value = jnp.moveaxis(value, axis, -1)
    before, after = _end_factors(type, size, cosine) if orthogonalize else (None, None)
    if before is not None:
        value = value * before.astype(value.dtype)
    value = transform(value, type)
    points = 2 * (size + (0 if type > 1 else -1 if cosine else 1))
    factor = {"ortho": 1 / math.sqrt(points), "forward": 1 / points}.get(norm or "", 1.0)
    if after is not None:
        value = value * (after * factor).astype(value.dtype)
    elif factor != 1:
        value = value * factor
    return jnp.moveaxis(value, -1, axis)


def _end_factors(type: int, size: int, cosine: bool) -> tuple[Any, Any]:
    """What the points are multiplied by before and after, so that the matrix is orthogonal."""
    end = np.ones(size)
    if type == 1 and cosine:
        end[[0, -1]] = _HALF
        return 1 / end, end
    if type in (2, 3):
        end[0 if cosine else -1] = _HALF
    return (None, end) if type == 2 else (1 / end, None) if type == 3 else (None, None)


def _resized(x: Array, size: int, axis: int) -> Array:
    have = x.shape[axis]
    if size <= have:
        return jnp.take(x, np.arange(size), axis=axis) if size < have else x
    return jnp.pad(x, [(0, size - have if a == axis else 0) for a in range(x.ndim)])


def _cosine(x: Array, type: int) -> Array:
    if dtypes.kind(x.dtype) == "c":  # the transform is real, so that parts do not mix
        both = _cosine(jnp.stack([x.real, x.imag]), type)
        return (both[0] + 1j * both[1]).astype(x.dtype)
    n = x.shape[-1]
    if type == 1:
        return jnp.fft.rfft(jnp.concatenate([x, x[..., -2:0:-1]], axis=-1)).real
    if type == 4:
        spectrum = jnp.fft.fft(x * _turns(n, np.arange(n), x), 2 * n)[..., :n]
        return 2 * (spectrum * _turns(n, np.arange(n) + 0.5, x)).real
    if type == 2:
        both_ways = jnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], axis=-1)
        return 2 * (jnp.fft.fft(both_ways) * _turns(n, np.arange(n), x)).real
    # type 3: the transpose of type 2
    last = jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., :0:-1]], axis=-1)
    spectrum = (x - 1j * last) * jnp.conj(_turns(n, np.arange(n), x))
    both_ways = jnp.fft.ifft(spectrum).real * n
    half = (n + 1) // 2
    evens, odds = both_ways[..., :half], both_ways[..., half:][..., ::-1]
    if n % 2:
        odds = jnp.concatenate([odds, evens[..., :1]], axis=-1)
    return jnp.stack([evens, odds], axis=-1).reshape(*x.shape[:-1], 2 * half)[..., :n]


def _turns(n: int, k: np.ndarray[Any, Any], x: Array) -> Array:
    """exp(-i pi k / 2n)."""
    return jnp.asarray(np.exp(-0.5j * np.pi * k / n)).astype(np.result_type(x.dtype, np.complex64))


def _sine(x: Array, type: int) -> Array:
    n = x.shape[-1]
    if type == 1:
        if dtypes.kind(x.dtype) == "c":
            both = _sine(jnp.stack([x.real, x.imag]), type)
            return (both[0] + 1j * both[1]).astype(x.dtype)
        zero = jnp.zeros_like(x[..., :1])
        return -jnp.fft.rfft(jnp.concatenate([zero, x, zero, -x[..., ::-1]], axis=-1)
                             ).imag[..., 1:n + 1]
    signs = jnp.asarray(1 - 2 * (np.arange(n) % 2)).astype(x.dtype)
    if type == 2:
        return _cosine(x * signs, 2)[..., ::-1]
    return _cosine(x[..., ::-1], type) * signs
