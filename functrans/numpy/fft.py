"""Discrete Fourier transforms, as in numpy.fft, with derivatives and vmap.

float32 gives complex64, float64 complex128; complex32 is transformed in complex64, and the result
rounded. `norm` says which direction is divided: "backward" (the inverse one by n, the default),
"forward" (the forward one by n) or "ortho" (both by sqrt n).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import lax
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.numpy.common import (
    axis_index,
    axis_tuple,
    cast,
    operand,
    promote_dtypes_inexact,
    slice_axis,
)
from functrans.numpy.creation import on_device
from functrans.numpy.manipulation import moveaxis, roll
from functrans.numpy.ufuncs import conj
from functrans.primitives.fft import FftType
from functrans.typing import Array, ArrayLike, Axis, DeviceLike, DTypeLike

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

_NORMS = ("backward", "ortho", "forward")


def _scale(name: str, norm: str | None, points: Any, inverse: bool) -> float:
    """What the result of the unscaled forward or the scaled inverse transform is multiplied by."""
    if norm not in (None, *_NORMS):
        raise ArgumentError(f"functrans.numpy.fft.{name}: there is no norm {norm!r}.",
                            where=user_source(), fix="norm='backward', 'ortho' or 'forward'")
    if norm in (None, "backward"):
        return 1.0
    factor = math.sqrt(points) if norm == "ortho" else float(points)
    return factor if inverse else 1.0 / factor


def _resize(x: Array, axis: int, size: Any) -> Array:
    """x cut, or filled up with zeros, to `size` along an axis."""
    have = x.shape[axis]
    if size == have:
        return x
    if size < have:
        return slice_axis(x, 0, size, axis)
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (0, size - have, 0)
    return lax.pad(x, np.zeros((), x.dtype), config)


def _transform(name: str, kind: FftType, a: ArrayLike, s: Sequence[Any] | None,
               axes: Sequence[int] | None, norm: str | None) -> Array:
    """Resize, convert, move the transformed axes to the end, transform, and move them back."""
    (x,) = promote_dtypes_inexact(f"fft.{name}", a)
    x = operand(f"fft.{name}", x)
    if x.dtype == dtypes.complex32 and kind is not FftType.RFFT:
        out = _transform(name, kind, cast(x, dtypes.complex64), s, axes, norm)
        return cast(out, dtypes.float16 if kind is FftType.IRFFT else dtypes.complex32)
    if axes is None:
        axes = tuple(range(-len(s), 0)) if s is not None else tuple(range(x.ndim))
    places = [axis_index(axis, x.ndim, f"fft.{name}") for axis in axes]
    real, inverse = kind in (FftType.RFFT, FftType.IRFFT), kind in (FftType.IFFT, FftType.IRFFT)
    if s is not None and len(s) != len(places):
        raise ArgumentError(f"functrans.numpy.fft.{name}: {len(s)} sizes for {len(places)} axes.",
                            where=user_source())
    if not places:
        if real:
            raise ArgumentError(f"functrans.numpy.fft.{name} needs at least one axis.",
                                where=user_source())
        return _complex(x)
    lengths = _lengths(name, x, s, places, kind)
    if len(set(places)) != len(places):
        raise ArgumentError(f"functrans.numpy.fft.{name}: axes={tuple(axes)} names one axis twice.",
                            where=user_source())
    if kind is FftType.RFFT:
        if dtypes.kind(x.dtype) == "c":
            raise ArgumentError(f"functrans.numpy.fft.{name} takes real numbers, and got "
                                f"{x.dtype}.", where=user_source(), fix="fft, or x.real")
        x = _wide(x)
    else:
        x = _complex(x)
    for i, (axis, n) in enumerate(zip(places, lengths, strict=True)):
        half = kind is FftType.IRFFT and i == len(places) - 1
        x = _resize(x, axis, n // 2 + 1 if half else n)
    last = tuple(range(x.ndim - len(places), x.ndim))
    out = moveaxis(x, places, last) if tuple(places) != last else x
    # the axis of which real transforms keep half is the one named last, and now stands last
    out = lax.fft(out, kind, tuple(lengths))
    if tuple(places) != last:
        out = moveaxis(out, last, places)
    if any(isinstance(n, int) and n == 0 for n in lengths):
        return out
    factor = _scale(name, norm, math.prod(lengths), inverse)
    return out if factor == 1.0 else lax.mul(out, factor)


def _lengths(name: str, x: Array, s: Sequence[Any] | None, places: Sequence[int],
             kind: FftType) -> list[Any]:
    """The number of points along each axis."""
    lengths = [x.shape[p] for p in places]
    if kind is FftType.IRFFT:
        lengths[-1] = 2 * (lengths[-1] - 1)
    if s is not None:
        lengths = [n if given is None or (isinstance(given, int) and given == -1) else given
                   for n, given in zip(lengths, s, strict=True)]
    # an axis without points, and none asked for, is transformed into itself
    given = lengths if s is None else s
    least = 0 if kind in (FftType.FFT, FftType.IFFT) else 1
    if any(isinstance(n, int) and n < (least if p is None or s is None else 1)
           for n, p in zip(lengths, given, strict=True)):
        raise ArgumentError(f"functrans.numpy.fft.{name}: cannot transform {tuple(lengths)} "
                            f"points of an array of shape {x.shape}.", where=user_source())
    return lengths


def _wide(x: Array) -> Array:
    return cast(x, np.dtype(np.float32)) if dtypes.is_half(x.dtype) else x


def _complex(x: Array) -> Array:
    return cast(x, dtypes.complex_dtype(x.dtype))


def _one(name: str, kind: FftType, a: ArrayLike, n: Any, axis: int, norm: str | None) -> Array:
    return _transform(name, kind, a, None if n is None else (n,), (operator.index(axis),), norm)


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The transform of `n` points along one axis; a is cut or filled up with zeros to n.

    The shape is a's, with n along the axis.

    >>> import functrans.numpy as jnp
    >>> jnp.fft.fft(jnp.ones(4)).real.tolist()
    [4.0, 0.0, 0.0, 0.0]
    """
    return _one("fft", FftType.FFT, a, n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse transform of `n` points along one axis.

    >>> import functrans.numpy as jnp
    >>> jnp.fft.ifft(jnp.ones(4)).real.tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    return _one("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The first n // 2 + 1 values of the transform of real a along one axis.

    The shape is a's, with n // 2 + 1 along the axis.

    Raises ArgumentError for complex a.

    >>> import functrans.numpy as jnp
    >>> jnp.fft.rfft(jnp.ones(4)).real.tolist()
    [4.0, 0.0, 0.0]
    """
    return _one("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real inverse of rfft, of `n` points: by default 2 (size - 1).

    >>> import functrans.numpy as jnp
    >>> jnp.fft.irfft(jnp.fft.rfft(jnp.ones(4))).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _one("irfft", FftType.IRFFT, a, n, axis, norm)


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real transform of a sequence that is Hermitian, given by its first n // 2 + 1 values.

    >>> jnp.fft.hfft(jnp.array([1.0, 2.0, 1.0]))
    Array([ 6.,  0., -2.,  0.], dtype=float32)
    """
    (x,) = promote_dtypes_inexact("fft.hfft", a)
    return _one("hfft", FftType.IRFFT, conj(_complex(x)), n, axis, _swapped("hfft", norm))


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of hfft: the first n // 2 + 1 values of the inverse transform of real a.

    >>> jnp.fft.ihfft(jnp.array([6.0, 0.0, -2.0, 0.0])).real
    Array([1., 2., 1.], dtype=float32)
    """
    return conj(_one("ihfft", FftType.RFFT, a, n, axis, _swapped("ihfft", norm)))


def _swapped(name: str, norm: str | None) -> str:
    """The norm that scales the opposite direction like `norm` scales this one."""
    _scale(name, norm, 1, False)
    return {"backward": "forward", "forward": "backward", "ortho": "ortho"}[norm or "backward"]


def fftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
         norm: str | None = None) -> Array:
    """The transform over several axes (all by default) of `s` points.

    >>> import functrans.numpy as jnp
    >>> jnp.fft.fftn(jnp.ones((2, 2))).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _transform("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None) -> Array:
    """The inverse transform over several axes (all by default) of `s` points.

    >>> jnp.fft.ifftn(jnp.ones((2, 2))).real
    Array([[1., 0.],
           [0., 0.]], dtype=float32)
    """
    return _transform("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None) -> Array:
    """The transform of real a over several axes, of the last of which half is kept.

    >>> jnp.fft.rfftn(jnp.ones((2, 2, 2))).shape
    (2, 2, 2)
    """
    return _transform("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
           norm: str | None = None) -> Array:
    """The real inverse of rfftn, of `s` points.

    >>> jnp.fft.irfftn(jnp.ones((2, 2)), s=(2, 2))
    Array([[1., 0.],
           [0., 0.]], dtype=float32)
    """
    return _transform("irfftn", FftType.IRFFT, a, s, axes, norm)


def fft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
         norm: str | None = None) -> Array:
    """The transform over two axes, by default the last.

    >>> jnp.fft.fft2(jnp.eye(2)).real
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    return _transform("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None) -> Array:
    """The inverse transform over two axes, by default the last.

    >>> jnp.fft.ifft2(jnp.array([[4.0, 0.0], [0.0, 0.0]])).real
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _transform("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None) -> Array:
    """The transform of real a over two axes, by default the last, of the second of which half.

    >>> jnp.fft.rfft2(jnp.array([[1.0, 2.0], [3.0, 4.0]])).real
    Array([[10., -2.],
           [-4.,  0.]], dtype=float32)
    """
    return _transform("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
           norm: str | None = None) -> Array:
    """The real inverse of rfft2.

    >>> jnp.fft.irfft2(jnp.fft.rfft2(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _transform("irfft2", FftType.IRFFT, a, s, axes, norm)


# Frequencies ---------------------------------------------------------------------------------


def _frequencies(first: Any, count: Any, n: int, d: ArrayLike, dtype: DTypeLike | None) -> Array:
    dtype = dtypes.default_float() if dtype is None else dtypes.as_dtype(dtype)
    whole = lax.add(lax.iota(dtype, count), float(first))
    return lax.div(whole, lax.mul(cast(operand("fft.fftfreq", d), dtype), float(n)))


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None,
            device: DeviceLike | None = None) -> Array:
    """The frequencies of the values of fft, in cycles per unit of the sample spacing `d`.

    >>> import functrans.numpy as jnp
    >>> jnp.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    n = operator.index(n)
    start = (n - 1) // 2 + 1
    return on_device(lax.concatenate([_frequencies(0, start, n, d, dtype),
                                      _frequencies(-(n // 2), n // 2, n, d, dtype)], 0), device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None,
             device: DeviceLike | None = None) -> Array:
    """The frequencies of the values of rfft, in cycles per unit of the sample spacing `d`.

    >>> import functrans.numpy as jnp
    >>> jnp.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    n = operator.index(n)
    return on_device(_frequencies(0, n // 2 + 1, n, d, dtype), device)


def fftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """x rolled so that frequency zero comes to the middle of each of `axes` (all by default).

    >>> import functrans.numpy as jnp
    >>> jnp.fft.fftshift(jnp.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    x = operand("fft.fftshift", x)
    places = axis_tuple(axes, x.ndim, "fft.fftshift")
    return roll(x, tuple(x.shape[p] // 2 for p in places), places)


def ifftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """The inverse of fftshift.

    >>> import functrans.numpy as jnp
    >>> jnp.fft.ifftshift(jnp.array([-1, 0, 1])).tolist()
    [0, 1, -1]
    """
    x = operand("fft.ifftshift", x)
    places = axis_tuple(axes, x.ndim, "fft.ifftshift")
    return roll(x, tuple(-(x.shape[p] // 2) for p in places), places)

publish(globals(), __all__)
