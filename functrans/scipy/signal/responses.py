"""Responses of filters by frequency, and other forms of them."""

from __future__ import annotations

import math

from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, of_rank, refused
from functrans.scipy.products import matmul
from functrans.typing import Array, ArrayLike


def freqz(b: ArrayLike, a: ArrayLike = 1, worN: int | ArrayLike | None = 512, whole: bool = False,
          plot: None = None, fs: ArrayLike = 2 * math.pi, include_nyquist: bool = False
          ) -> tuple[Array, Array]:
    """Frequencies, and the response of a digital filter there.

    `worN` is their number, from 0 to the Nyquist frequency (or to `fs` where `whole`), or an array
    of them. `plot` is accepted as None alone.

    >>> import functrans as ft
    >>> w, h = ft.scipy.signal.freqz([0.5, 0.5], worN=2)
    >>> print(abs(h).round(4))
    [1.     0.7071]
    """
    if plot is not None:
        raise refused("signal.freqz", "plot", "it draws nothing.", "plot(*freqz(b, a))")
    top, bottom = (jnp.atleast_1d(v) for v in inexact(b, a))
    w = angles(worN, whole, include_nyquist, fs)
    at = jnp.exp(-1j * w)
    return w * fs / (2 * math.pi), jnp.polyval(top[::-1], at) / jnp.polyval(bottom[::-1], at)


def sosfreqz(sos: ArrayLike, worN: int | ArrayLike | None = 512, whole: bool = False,
             fs: ArrayLike = 2 * math.pi) -> tuple[Array, Array]:
    """Frequencies, and the response of sections of second order there; see `freqz`.

    >>> import functrans as ft
    >>> w, h = ft.scipy.signal.sosfreqz([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]], worN=2)
    >>> print(abs(h).round(4))
    [1.     0.7071]
    """
    (sections,) = inexact(sos)
    of_rank("signal.sosfreqz", "sos", sections, 2)
    w = angles(worN, whole, False, fs)
    at = jnp.exp(-1j * w)
    powers = jnp.stack([jnp.ones_like(at), at, at * at])
    response = jnp.prod(matmul(sections[:, :3], powers) / matmul(sections[:, 3:], powers), axis=0)
    return w * fs / (2 * math.pi), response


freqz_sos = sosfreqz


def angles(worN: int | ArrayLike | None, whole: bool, include_nyquist: bool, fs: ArrayLike
           ) -> Array:
    """The angles on the circle of a number of frequencies, or of those that are given."""
    if worN is None or isinstance(worN, int):
        count = 512 if worN is None else worN
        end = include_nyquist and not whole
        return jnp.linspace(0, 2 * math.pi if whole else math.pi, count, endpoint=end,
                            dtype=default_float())
    (w,) = inexact(worN)
    return 2 * math.pi * jnp.atleast_1d(w) / fs


def sos2tf(sos: ArrayLike) -> tuple[Array, Array]:
    """Numerator and denominator of sections of second order.

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.sos2tf([[1.0, 1.0, 0.0, 1.0, 0.5, 0.0]])
    >>> b.tolist(), a.tolist()
    ([1.0, 1.0, 0.0], [1.0, 0.5, 0.0])
    """
    (sections,) = inexact(sos)
    of_rank("signal.sos2tf", "sos", sections, 2)
    if sections.shape[1] != 6 or not sections.shape[0]:
        raise ShapeError(f"functrans.scipy.signal.sos2tf: sos has shape {sections.shape}.",
                         where=user_source(), why="a section has six coefficients.")
    b, a = sections[0, :3], sections[0, 3:]
    for i in range(1, sections.shape[0]):
        b = jnp.convolve(b, sections[i, :3])
        a = jnp.convolve(a, sections[i, 3:])
    return b, a


def zpk2tf(z: ArrayLike, p: ArrayLike, k: ArrayLike) -> tuple[Array, Array]:
    """Numerator and denominator, complex, of zeros, poles and a gain.

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.zpk2tf([1.0], [0.5], 2.0)
    >>> b.tolist(), a.tolist()
    ([2.0, -2.0], [1.0, -0.5])
    """
    zeros, poles, gain = inexact(z, p, k)
    return gain * jnp.atleast_1d(jnp.poly(zeros)), jnp.atleast_1d(jnp.poly(poles))
