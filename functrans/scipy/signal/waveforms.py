"""Waves of known shapes at given times."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import shape_tuple
from functrans.scipy.arguments import one_of, real
from functrans.typing import Array, ArrayLike, DTypeLike, ShapeLike


def sawtooth(t: ArrayLike, width: ArrayLike = 1) -> Array:
    """Rises from -1 to 1 over the part `width` of a period of 2 pi, and falls over the rest.

    NaN where width is not from 0 to 1.

    >>> import functrans as ft
    >>> ft.scipy.signal.sawtooth(ft.numpy.array([0.0, ft.numpy.pi])).round(4).tolist()
    [-1.0, 0.0]
    """
    t, width = real("signal.sawtooth", t, width)
    phase = jnp.mod(t, 2 * math.pi)
    rise = width * 2 * math.pi
    rising = phase / (math.pi * jnp.where(width > 0, width, 1)) - 1
    falling = (math.pi * (width + 1) - phase) / (math.pi * jnp.where(width < 1, 1 - width, 1))
    value = jnp.where(phase < rise, rising, falling)
    return jnp.where((width >= 0) & (width <= 1), value, math.nan)


def square(t: ArrayLike, duty: ArrayLike = 0.5) -> Array:
    """1 over the part `duty` of a period of 2 pi, and -1 over the rest.

    NaN where duty is not from 0 to 1.

    >>> import functrans as ft
    >>> ft.scipy.signal.square(ft.numpy.array([0.5, 4.0])).tolist()
    [1.0, -1.0]
    """
    t, duty = real("signal.square", t, duty)
    value = jnp.where(jnp.mod(t, 2 * math.pi) < duty * 2 * math.pi, 1.0, -1.0).astype(t.dtype)
    return jnp.where((duty >= 0) & (duty <= 1), value, math.nan)


def gausspulse(t: ArrayLike, fc: ArrayLike = 1000, bw: ArrayLike = 0.5, bwr: ArrayLike = -6,
               tpr: ArrayLike = -60, retquad: bool = False, retenv: bool = False
               ) -> Array | tuple[Array, ...]:
    """A wave of frequency fc under a Gaussian, exp(-a t**2) cos(2 pi fc t).

    `bw` is the bandwidth as a fraction of fc, `bwr` dB down. With `retquad` the wave in quadrature
    is returned too, and with `retenv` the Gaussian. `tpr` is of SciPy's t="cutoff", which is not
    taken.

    >>> import functrans as ft
    >>> float(ft.scipy.signal.gausspulse(0.0, fc=5))
    1.0
    """
    if isinstance(t, str):
        raise ArgumentError("functrans.scipy.signal.gausspulse: t is a string.",
                            where=user_source(), fix="an array of times")
    t, fc, bw, bwr = real("signal.gausspulse", t, fc, bw, bwr)
    level = bwr * (math.log(10) / 20)  # of the amplitude, at the edges of the band
    a = -((math.pi * fc * bw) ** 2) / (4 * level)
    envelope = jnp.exp(-a * t * t)
    found = [envelope * jnp.cos(2 * math.pi * fc * t)]
    if retquad:
        found.append(envelope * jnp.sin(2 * math.pi * fc * t))
    if retenv:
        found.append(envelope)
    return found[0] if len(found) == 1 else tuple(found)


def chirp(t: ArrayLike, f0: ArrayLike, t1: ArrayLike, f1: ArrayLike, method: str = "linear",
          phi: ArrayLike = 0, vertex_zero: bool = True, *, complex: bool = False) -> Array:
    """A cosine whose frequency goes from f0 at time 0 to f1 at time t1.

    `method` is "linear", "quadratic" (with its vertex at 0, or at t1 without `vertex_zero`),
    "logarithmic" or "hyperbolic"; `phi` is a phase in degrees. With `complex` the exponential.

    >>> import functrans as ft
    >>> ft.scipy.signal.chirp(ft.numpy.array([0.0, 1.0]), 1.0, 1.0, 1.0).round(4).tolist()
    [1.0, 1.0]
    """
    full = {"lin": "linear", "li": "linear", "quad": "quadratic", "q": "quadratic",
            "log": "logarithmic", "lo": "logarithmic", "hyp": "hyperbolic"}
    kind = full.get(method, method)
    one_of("signal.chirp", "method", kind, ("linear", "quadratic", "logarithmic", "hyperbolic"))
    t, f0, t1, f1, phi = real("signal.chirp", t, f0, t1, f1, phi)
    same = f0 == f1
    if kind == "linear":
        turns = f0 * t + 0.5 * (f1 - f0) / t1 * t * t
    elif kind == "quadratic":
        beta = (f1 - f0) / t1**2
        turns = f0 * t + beta * t**3 / 3 if vertex_zero \
            else f1 * t + beta * ((t1 - t) ** 3 - t1**3) / 3
    elif kind == "logarithmic":
        ratio = jnp.where(same, 2.0, f1 / f0)
        beta = t1 / jnp.log(ratio)
        turns = jnp.where(same, f0 * t, beta * f0 * (ratio ** (t / t1) - 1))
    else:
        at = jnp.where(same, 1.0, -f1 * t1 / jnp.where(same, 1.0, f0 - f1))
        turns = jnp.where(same, f0 * t, -at * f0 * jnp.log(jnp.abs(1 - t / at)))
    phase = 2 * math.pi * turns + phi * (math.pi / 180)
    return jnp.exp(1j * phase) if complex else jnp.cos(phase)


def sweep_poly(t: ArrayLike, poly: ArrayLike, phi: ArrayLike = 0) -> Array:
    """A cosine whose frequency is a polynomial of time; `phi` is a phase in degrees.

    >>> import functrans as ft
    >>> ft.scipy.signal.sweep_poly(ft.numpy.array([0.0, 1.0]), [1.0]).round(4).tolist()
    [1.0, 1.0]
    """
    t, coefficients, phi = real("signal.sweep_poly", t, poly, phi)
    turns = jnp.polyval(jnp.polyint(coefficients), t)
    return jnp.cos(2 * math.pi * turns + phi * (math.pi / 180))


def unit_impulse(shape: ShapeLike, idx: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Zeros and one 1: at the index `idx`, at 0 by default, or in the "mid"dle.

    >>> import functrans as ft
    >>> ft.scipy.signal.unit_impulse(3, "mid").tolist()
    [0.0, 1.0, 0.0]
    """
    sizes = shape_tuple(shape, "unit_impulse", "functrans.scipy.signal")
    out = np.zeros(tuple(sizes), default_float() if dtype is None else jnp.dtype(dtype))
    if idx is None:
        idx = (0,) * out.ndim
    elif isinstance(idx, str):
        one_of("signal.unit_impulse", "idx", idx, ("mid",))
        idx = tuple(n // 2 for n in out.shape)
    elif not isinstance(idx, (tuple, list)):
        idx = (int(idx),) * out.ndim
    out[tuple(idx)] = 1
    return jnp.asarray(out)
