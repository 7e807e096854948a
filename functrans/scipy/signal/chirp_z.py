"""The z transform on a spiral, and its part of the Fourier transform: prepared, or at once.

Source: Bluestein, IEEE Trans. Audio Electroacoust. 18 (1970); Rabiner, Schafer and Rader, ibid. 17
(1969).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.numpy.common import axis_index
from functrans.scipy.arguments import inexact, known_size
from functrans.scipy.fft.lengths import next_fast_len
from functrans.typing import Array, ArrayLike

C = TypeVar("C", bound="CZT")


@register_pytree_with_keys_class
class CZT:
    """The z transform of n samples at the m points a w**-k of a spiral, prepared.

    Called with x and an axis of n samples; `points()` are the points. By default w =
    exp(-2 pi i / m): the points of the discrete Fourier transform of m. It is a tree of its
    factors, and differentiated in w and a where these are traced. Raises ShapeError for an axis of
    another size.

    >>> import functrans as ft
    >>> transform = ft.scipy.signal.CZT(3)
    >>> abs(transform(ft.numpy.array([1.0, 2.0, 3.0]))).round(3)[0].item()
    6.0
    >>> transform.points().shape
    (3,)
    """

    def __init__(self, n: int, m: int | None = None, w: ArrayLike | None = None,
                 a: ArrayLike = 1 + 0j) -> None:
        self.n = known_size("signal.CZT", "n", n)
        self.m = self.n if m is None else known_size("signal.CZT", "m", m)
        k = np.arange(max(self.m, self.n), dtype=float)
        if w is None:
            self.w: Any = np.exp(-2j * np.pi / self.m)
            # squares of whole numbers modulo 2 m: the angles keep their digits
            chirp: Any = np.exp(-1j * np.pi * (k**2 % (2 * self.m)) / self.m)
        else:
            self.w, chirp = _power(w, k**2 / 2)
        self.a, powers = _power(a, -k[:self.n])
        self._prepare(chirp, powers)

    def _prepare(self, chirp: Any, powers: Any) -> None:
        n, m = self.n, self.m
        self._before = jnp.asarray(powers * chirp[:n])
        self._after = jnp.asarray(chirp[:m])
        around = jnp.concatenate([jnp.asarray(1 / chirp[n - 1:0:-1]), jnp.asarray(1 / chirp[:m])])
        self._kernel = jnp.fft.fft(around, next_fast_len(n + m - 1))

    _names: tuple[str, ...] = ("w", "a", "_before", "_after", "_kernel")

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """The points and the factors are children."""
        return tuple((GetAttrKey(n), getattr(self, n)) for n in self._names), (self.n, self.m)

    @classmethod
    def tree_unflatten(cls: type[C], aux: Any, children: Iterable[Any]) -> C:
        """A transform, without its construction."""
        made = object.__new__(cls)
        for name, child in zip(cls._names, children):
            setattr(made, name, child)
        made.n, made.m = aux
        return made

    def __call__(self, x: ArrayLike, *, axis: int = -1) -> Array:
        """The transform of x along an axis."""
        (signal,) = inexact(x)
        place = axis_index(axis, signal.ndim, "CZT")
        lines = jnp.moveaxis(signal, place, -1)
        if lines.shape[-1] != self.n:
            raise ShapeError(f"functrans.scipy.signal.{type(self).__name__}: x has shape "
                             f"{signal.shape}, axis is {axis}.", where=user_source(),
                             why=f"it was made for {self.n} samples.")
        kind = jnp.promote_types(lines.dtype, jnp.complex64)
        before, after, kernel = (v.astype(kind) for v in (self._before, self._after, self._kernel))
        product = jnp.fft.ifft(jnp.fft.fft(lines * before, kernel.shape[0]) * kernel)
        return jnp.moveaxis(product[..., self.n - 1:self.n + self.m - 1] * after, -1, place)

    def points(self) -> Array:
        """The points of the transform."""
        return czt_points(self.m, self.w, self.a)


@register_pytree_with_keys_class
class ZoomFFT(CZT):
    """The Fourier transform of n samples at m frequencies between the two of fn, prepared.

    The frequencies go from 0 to fn where it is one; the last is among them with `endpoint`. They
    are in the units of `fs`, the sampling rate. See `CZT`.

    >>> import functrans as ft
    >>> transform = ft.scipy.signal.ZoomFFT(4, [0.0, 0.5], 2)
    >>> abs(transform(ft.numpy.ones(4))).round(3)[0].item()
    4.0
    """

    _names = (*CZT._names, "f1", "f2", "fs")

    def __init__(self, n: int, fn: Any, m: int | None = None, *, fs: float = 2,
                 endpoint: bool = False) -> None:
        self.n = known_size("signal.ZoomFFT", "n", n)
        self.m = self.n if m is None else known_size("signal.ZoomFFT", "m", m)
        ends = np.asarray(fn, float).reshape(-1)
        if ends.size not in (1, 2):
            raise ArgumentError(f"functrans.scipy.signal.ZoomFFT: fn has {ends.size} values.",
                                where=user_source(), why="it is one frequency, or two.")
        self.f1, self.f2 = (0.0, *map(float, ends))[-2:]
        self.fs = float(fs)
        steps = self.m - 1 if endpoint else self.m
        if not steps:
            raise ArgumentError("functrans.scipy.signal.ZoomFFT: m is 1 with endpoint.",
                                where=user_source())
        turn = (self.f2 - self.f1) / (steps * self.fs)
        self.w = np.exp(-2j * np.pi * turn)
        self.a = np.exp(2j * np.pi * self.f1 / self.fs)
        k = np.arange(max(self.m, self.n), dtype=float)
        self._prepare(np.exp(-1j * np.pi * turn * k**2),
                      np.exp(-2j * np.pi * self.f1 / self.fs * k[:self.n]))


def _power(base: Any, exponents: Any) -> tuple[Any, Any]:
    """A base, and its powers: in all digits where it is known, else with its derivative."""
    if isinstance(base, Tracer):
        given: Any = base
        step = jnp.asarray(given).astype(jnp.promote_types(given.dtype, jnp.complex64))
        return step, jnp.exp(jnp.log(step) * jnp.asarray(exponents).astype(step.real.dtype))
    value = complex(np.asarray(base))
    return np.complex128(value), np.exp(np.log(value) * exponents)


def czt(x: ArrayLike, m: int | None = None, w: ArrayLike | None = None, a: ArrayLike = 1 + 0j, *,
        axis: int = -1) -> Array:
    """The z transform of x at the m points a w**-k of a spiral, along an axis; see `CZT`.

    By default w = exp(-2 pi i / m): the points of the discrete Fourier transform.

    >>> import functrans as ft
    >>> abs(ft.scipy.signal.czt(ft.numpy.array([1.0, 2.0, 3.0]))).round(3)[0].item()
    6.0
    """
    n = _samples("czt", x, axis)
    return CZT(n, m, w, a)(x, axis=axis)


def zoom_fft(x: ArrayLike, fn: Any, m: int | None = None, *, fs: float = 2.0,
             endpoint: bool = False, axis: int = -1) -> Array:
    """The Fourier transform at m frequencies between the two of fn (0 and fn, of one).

    >>> import functrans as ft
    >>> abs(ft.scipy.signal.zoom_fft(ft.numpy.ones(4), [0.0, 0.5], 2)).round(3)[0].item()
    4.0
    """
    n = _samples("zoom_fft", x, axis)
    return ZoomFFT(n, fn, m, fs=fs, endpoint=endpoint)(x, axis=axis)


def _samples(name: str, x: ArrayLike, axis: int) -> int:
    shape = jnp.shape(x)
    n = int(shape[axis_index(axis, len(shape), name)])
    if not n:
        raise ShapeError(f"functrans.scipy.signal.{name}: the signal is empty.",
                         where=user_source())
    return n


def czt_points(m: int, w: ArrayLike | None = None, a: ArrayLike = 1 + 0j) -> Array:
    """The points of `czt`.

    >>> import functrans as ft
    >>> print(ft.scipy.signal.czt_points(2).real.round(3))
    [ 1. -1.]
    """
    size = known_size("signal.czt_points", "m", m)
    step = jnp.exp(-2j * math.pi / size) if w is None else jnp.asarray(w)
    return jnp.asarray(a) * step ** -jnp.arange(size)
