"""Splines of evenly spaced samples by recursive filters: coefficients, values, smoothing.

Signals are mirrored at their ends, the first and the last sample twice.
Source: Unser, Aldroubi and Eden, B-spline signal processing, parts I and II, IEEE Trans. Signal
Process. 41 (1993).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, of_rank, real
from functrans.scipy.ndimage.filters import convolve1d
from functrans.scipy.signal.filtering import lfilter
from functrans.typing import Array, ArrayLike

_CUBIC = math.sqrt(3) - 2
_QUADRATIC = math.sqrt(8) - 3
_LEAST_PRICE = 1 / 144  # of curvature, from which the poles of the smoothing filter are complex


def _lines(name: str, signal: ArrayLike) -> Array:
    (x,) = inexact(signal)
    if not 1 <= x.ndim <= 2 or not x.shape[-1]:
        raise ShapeError(f"functrans.scipy.signal.{name}: the signal has shape {x.shape}.",
                         where=user_source(), why="it has one or two axes, and samples.")
    return x


def _sum(weights: Any, x: Array) -> Array:
    return jnp.sum(jnp.asarray(weights).astype(x.real.dtype) * x, axis=-1, keepdims=True)


def symiirorder1(signal: ArrayLike, c0: float, z1: float, precision: float = -1.0) -> Array:
    """The signal filtered forth and back by one pole: c0 / ((1 - z1 / z) (1 - z1 z)).

    It is along the last axis of one or two. All of the mirrored signal counts in the first value,
    where SciPy stops at `precision`. Raises ArgumentError for a pole that is not within the unit
    circle.

    >>> import functrans as ft
    >>> print(ft.scipy.signal.symiirorder1(ft.numpy.ones(4), 0.25, 0.5).round(3))
    [1. 1. 1. 1.]
    """
    if not abs(z1) < 1:
        raise ArgumentError(f"functrans.scipy.signal.symiirorder1: z1 is {shown(z1)}.",
                            where=user_source(), why="|z1| is less than 1.")
    x = _lines("symiirorder1", signal)
    k, period = np.arange(x.shape[-1]), 2 * x.shape[-1]
    first = x[..., :1] + _sum((z1 ** (k + 1) + z1 ** (period - k)) / (1 - z1**period), x)
    forth = _continued([1.0], [1.0, -z1], x[..., 1:], first)
    last = -c0 / (z1 - 1) * forth[..., -1:]
    return jnp.flip(_continued([c0], [1.0, -z1], jnp.flip(forth[..., :-1], -1), last), -1)


def _continued(b: Any, a: Any, x: Array, known: Array) -> Array:
    """Known outputs of a recursive filter, and those of x that follow on them."""
    order = len(a) - 1
    # delay j of the transposed direct form II is the sum over the outputs that are still to come in
    state = [sum((-a[k] * known[..., order - k + j] for k in range(j + 1, order + 1)),
                 start=jnp.zeros_like(known[..., 0])) for j in range(order)]
    out, _ = lfilter(b, a, x, zi=jnp.stack(state, axis=-1))
    return jnp.concatenate([known, out], axis=-1)


def symiirorder2(input: ArrayLike, r: float, omega: float, precision: float = -1.0) -> Array:
    """The signal filtered forth and back by a pair of poles of the radius r and the angle omega.

    It is along the last axis of one or two; constants are kept. See `symiirorder1`.

    >>> import functrans as ft
    >>> ft.scipy.signal.symiirorder2(ft.numpy.ones(9), 0.1, 0.5).round(3).tolist()[:3]
    [1.0, 1.0, 1.0]
    """
    if not 0 <= r < 1:
        raise ArgumentError(f"functrans.scipy.signal.symiirorder2: r is {shown(r)}.",
                            where=user_source(), why="it is less than 1, and not negative.")
    x = _lines("symiirorder2", input)
    n = x.shape[-1]
    if n < 2:
        raise ShapeError(f"functrans.scipy.signal.symiirorder2: the signal has shape {x.shape}.",
                         where=user_source(), why="it has two samples or more.")
    cs = 1 - 2 * r * math.cos(omega) + r * r
    a = [1.0, -2 * r * math.cos(omega), r * r]
    k = np.arange(float(n))
    period = 2 * n

    # the first two are sums of the response in one direction, over the mirrored signal before them
    def once(lags: Any) -> Any:
        return cs * _periodic(lags, r, omega, period, 1.0)

    own = once(np.zeros(1))[0] - once(np.full(1, float(period)))[0]
    next_ = once(np.ones(1))[0] - once(np.full(1, period + 1.0))[0]
    first = own * x[..., :1] + _sum(once(k + 1) + once(period - k), x)
    second = own * x[..., 1:2] + next_ * x[..., :1] + _sum(once(k + 2) + once(period + 1 - k), x)
    forth = _continued([cs], a, x[..., 2:], jnp.concatenate([first, second], axis=-1))

    # the last two are sums of the response in both directions
    square = r * r
    scale = cs * cs * (1 + square) / (1 - square) / (
        1 - 2 * square * math.cos(2 * omega) + square * square)
    lags = np.abs(np.arange(-1.0, n + 2))
    ratio = (1 - square) / (1 + square)
    both = scale * (_periodic(lags, r, omega, period, ratio)
                    + _periodic(period - lags, r, omega, period, ratio))
    behind = jnp.flip(x, -1)
    last = _sum(both[1:n + 1] + both[2:n + 2], behind)
    before = _sum(both[:n] + both[3:], behind)
    back = _continued([cs], a, jnp.flip(forth[..., :-2], -1), jnp.concatenate([last, before], -1))
    return jnp.flip(back, -1)


def _periodic(k: Any, r: float, omega: float, period: int, ratio: float) -> Any:
    """r**k (cos(omega k) + ratio sin(omega k) / tan(omega)), summed over k + m period, m >= 0."""
    if math.sin(omega) == 0:
        pole = r * math.cos(omega)
        turn = pole**period
        return pole**k * ((1 + ratio * k) / (1 - turn) + ratio * period * turn / (1 - turn) ** 2)
    pole = r * np.exp(1j * omega)
    wave = pole**k / (1 - pole**period)
    return wave.real + ratio / math.tan(omega) * wave.imag


def _smoothing_poles(price: float) -> tuple[float, float]:
    """Radius and angle of the poles of the filter of a smoothing cubic spline."""
    root = math.sqrt(3 + 144 * price)
    xi = 1 - 96 * price + 24 * price * root
    omega = math.atan2(math.sqrt(144 * price - 1), math.sqrt(xi))
    r = (24 * price - 1 - math.sqrt(xi)) / (24 * price) * math.sqrt(
        (48 * price + 24 * price * root) / xi)
    return r, omega


def _price(name: str, lamb: Any, most: float = math.inf) -> float:
    try:
        price = float(lamb)
    except TypeError:
        raise ArgumentError(f"functrans.scipy.signal.{name}: lamb is {shown(lamb)}.",
                            where=user_source(), why="the filter is made of its value.",
                            fix="a float that is known at tracing") from None
    if price > most:
        raise ArgumentError(f"functrans.scipy.signal.{name}: lamb is {price}.",
                            where=user_source(), why="quadratic splines do not smooth.",
                            fix="cspline1d or cspline2d")
    return price


def cspline1d(signal: ArrayLike, lamb: float = 0.0) -> Array:
    """The coefficients of the cubic spline through a signal, or of the one that smooths it.

    `lamb` is the price of curvature: beyond 1 / 144 the spline has the least sum of the squares of
    its distances and lamb times that of its second derivative.

    >>> import functrans as ft
    >>> c = ft.scipy.signal.cspline1d(ft.numpy.array([0.0, 1.0, 4.0, 9.0]))
    >>> ft.scipy.signal.cspline1d_eval(c, [2.0]).round(2).tolist()
    [4.0]
    """
    x = of_rank("signal.cspline1d", "signal", _lines("cspline1d", signal), 1)
    return _cubic_along(x, _price("cspline1d", lamb))


def _cubic_along(x: Array, price: float) -> Array:
    """Coefficients along the last axis."""
    if x.shape[-1] == 1:
        return x  # that of a constant is its value
    if price > _LEAST_PRICE:
        return symiirorder2(x, *_smoothing_poles(price))
    return symiirorder1(x, -6 * _CUBIC, _CUBIC)


def qspline1d(signal: ArrayLike, lamb: float = 0.0) -> Array:
    """The coefficients of the quadratic spline through a signal; lamb is 0.

    >>> import functrans as ft
    >>> c = ft.scipy.signal.qspline1d(ft.numpy.array([0.0, 1.0, 4.0, 9.0]))
    >>> ft.scipy.signal.qspline1d_eval(c, [2.0]).round(2).tolist()
    [4.0]
    """
    x = of_rank("signal.qspline1d", "signal", _lines("qspline1d", signal), 1)
    _price("qspline1d", abs(lamb), 0.0)
    return x if x.shape[0] == 1 else symiirorder1(x, -8 * _QUADRATIC, _QUADRATIC)


def cspline2d(signal: ArrayLike, lamb: float = 0.0, precision: float = -1.0) -> Array:
    """The coefficients of the cubic spline of an image; see `cspline1d` and `symiirorder1`.

    >>> import functrans as ft
    >>> ft.scipy.signal.cspline2d(ft.numpy.ones((9, 9)))[4, 4:6].round(3).tolist()
    [1.0, 1.0]
    """
    x = of_rank("signal.cspline2d", "signal", _lines("cspline2d", signal), 2)
    price = _price("cspline2d", lamb)
    return _cubic_along(_cubic_along(x, price).T, price).T


def qspline2d(signal: ArrayLike, lamb: float = 0.0, precision: float = -1.0) -> Array:
    """The coefficients of the quadratic spline of an image; lamb is 0.

    >>> import functrans as ft
    >>> ft.scipy.signal.qspline2d(ft.numpy.ones((9, 9)))[4, 4:6].round(3).tolist()
    [1.0, 1.0]
    """
    x = of_rank("signal.qspline2d", "signal", _lines("qspline2d", signal), 2)
    _price("qspline2d", lamb, 0.0)
    for _ in range(2):
        x = (x if x.shape[1] == 1 else symiirorder1(x, -8 * _QUADRATIC, _QUADRATIC)).T
    return x


def spline_filter(Iin: ArrayLike, lmbda: float = 5.0) -> Array:
    """An image, smoothed by a cubic spline with the price lmbda of curvature.

    It is computed in the dtype of the image, where SciPy has float32.

    >>> import functrans as ft
    >>> ft.scipy.signal.spline_filter(ft.numpy.ones((9, 9)))[4, 4:6].round(3).tolist()
    [1.0, 1.0]
    """
    c = cspline2d(Iin, lmbda)
    taps: Any = [1 / 6, 4 / 6, 1 / 6]
    return sepfir2d(c, taps, taps)


def sepfir2d(input: ArrayLike, hrow: ArrayLike, hcol: ArrayLike) -> Array:
    """An image convolved with hrow along its rows and hcol along its columns, each of odd length.

    Raises ShapeError for other sizes.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(4.0).reshape(2, 2)
    >>> ft.scipy.signal.sepfir2d(x, [0.0, 0.0, 1.0], [1.0]).tolist()
    [[0.0, 0.0], [2.0, 2.0]]
    """
    x, row, column = inexact(input, hrow, hcol)
    of_rank("signal.sepfir2d", "input", x, 2)
    for name, h in (("hrow", row), ("hcol", column)):
        if h.ndim != 1 or h.shape[0] % 2 == 0:
            raise ShapeError(f"functrans.scipy.signal.sepfir2d: {name} has shape {h.shape}.",
                             where=user_source(), why="it is a vector of odd length.")
    return convolve1d(convolve1d(x, row, 1), column, 0)


def gauss_spline(x: ArrayLike, n: int) -> Array:
    """The Gaussian near to the B-spline of degree n.

    >>> import functrans as ft
    >>> round(float(ft.scipy.signal.gauss_spline(0.0, 3)), 3)
    0.691
    """
    (at,) = inexact(x)
    square = (n + 1) / 12
    return jnp.exp(-at**2 / (2 * square)) / math.sqrt(2 * math.pi * square)


def cspline1d_eval(cj: ArrayLike, newx: ArrayLike, dx: float = 1.0, x0: float = 0) -> Array:
    """The cubic spline of coefficients `cspline1d` at places; sample k stands at x0 + k dx.

    Beyond the ends places are mirrored at them. It is differentiated in coefficients and places.

    >>> import functrans as ft
    >>> ft.scipy.signal.cspline1d_eval(ft.numpy.ones(4), [0.5, 9.0]).round(3).tolist()
    [1.0, 1.0]
    """
    return _evaluated("cspline1d_eval", cj, newx, dx, x0, 3)


def qspline1d_eval(cj: ArrayLike, newx: ArrayLike, dx: float = 1.0, x0: float = 0) -> Array:
    """The quadratic spline of coefficients `qspline1d` at places; see `cspline1d_eval`.

    >>> import functrans as ft
    >>> ft.scipy.signal.qspline1d_eval(ft.numpy.ones(4), [0.5, 9.0]).round(3).tolist()
    [1.0, 1.0]
    """
    return _evaluated("qspline1d_eval", cj, newx, dx, x0, 2)


def _evaluated(name: str, cj: ArrayLike, newx: ArrayLike, dx: ArrayLike, x0: ArrayLike,
               degree: int) -> Array:
    c = of_rank(f"signal.{name}", "cj", _lines(name, cj), 1)
    (places,) = real(f"signal.{name}", newx)
    n = c.shape[0]
    at = (places - x0) / dx
    if n > 1:
        at = jnp.mod(at, 2 * (n - 1))
        at = jnp.minimum(at, 2 * (n - 1) - at)
    else:
        at = jnp.zeros_like(at)
    first = jnp.floor(at - (degree + 1) / 2) + 1
    total = jnp.zeros(at.shape, c.dtype)
    for i in range(degree + 1):
        index = jnp.clip(jnp.where(jnp.isfinite(first), first, 0).astype(np.int32) + i, 0, n - 1)
        distance = jnp.abs(at - first - i)
        if degree == 3:
            near = 2 / 3 - distance**2 + distance**3 / 2
            far = (2 - distance) ** 3 / 6
            weight = jnp.where(distance < 1, near, far)
        else:
            weight = jnp.where(distance < 0.5, 0.75 - distance**2, (1.5 - distance) ** 2 / 2)
        total = total + c[index] * weight.astype(c.real.dtype)
    return total
