"""Legendre functions of whole degrees and orders, with derivatives, and all up to a degree."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import broadcast_all, operand, promote_dtypes_inexact
from functrans.scipy.special.common import loop, pushed
from functrans.scipy.special.orthogonal import sph_harm_y
from functrans.typing import Array, ArrayLike

__all__ = ["assoc_legendre_p", "assoc_legendre_p_all", "legendre_p", "legendre_p_all", "lqmn",
           "lqn", "sph_harm_y_all", "sph_legendre_p", "sph_legendre_p_all"]


def _static(name: str, what: str, value: Any, least: int = 0) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ArgumentError(f"scipy.special.{name}: {what} is {value!r}.", where=user_source(),
                            why=f"it says how many values there are: a whole number from {least} "
                            "on.", fix=f"{what}={max(least, 2)}")
    return number


def _derivatives(name: str, diff_n: Any) -> int:
    count = _static(name, "diff_n", diff_n)
    if count > 2:
        raise ArgumentError(f"scipy.special.{name}: diff_n is {count}.", where=user_source(),
                            why="it counts derivatives, of which there are two.", fix="diff_n=2")
    return count


def _numbers(name: str, z: ArrayLike, *whole: ArrayLike) -> tuple[list[Array], Any]:
    """Whole numbers as float64 and z in 64 bits a part, of one shape, and the narrow dtype."""
    (given,) = promote_dtypes_inexact(name, z)
    number = operand(name, given)
    narrow: Any = number.dtype
    number = number.astype(np.complex128 if dtypes.kind(narrow) == "c" else np.float64)
    counts = [operand(name, w).astype(np.float64) for w in whole]
    shape = np.broadcast_shapes(number.shape, *(c.shape for c in counts))
    return [jnp.broadcast_to(x, shape) for x in (*counts, number)], narrow


def _with_slopes(fun: Callable[..., Array], count: int, narrow: Any, *args: Array) -> Array:
    """The function and its derivatives in the last argument along a new first axis."""
    at = len(args) - 1
    rows, derivative = [fun(*args)], fun
    for _ in range(count):
        derivative = _next(derivative, at)
        rows.append(derivative(*args))
    return jnp.stack(rows).astype(narrow)


def _next(fun: Callable[..., Array], at: int) -> Callable[..., Array]:
    rule = pushed(fun, at)
    return lambda *args: rule(None, *args)


# P -----------------------------------------------------------------------------------------------


def _associated(norm: bool, cut: int) -> Callable[..., Array]:
    """P_n^m of whole n and m, by the recurrence over degrees from P_m^m, with slopes at +-1 too."""
    def value(n: Array, m: Array, z: Array) -> Array:
        valid = (n == lax.floor(n)) & (m == lax.floor(m)) & (lax.abs(n) < 1e5)
        degree = jnp.where(valid, jnp.where(n < 0, -n - 1.0, n), 0.0)
        order = jnp.where(valid, lax.abs(m), 0.0)
        inside = order <= degree
        order = jnp.where(inside, order, 0.0)
        u = (1.0 - z) * (1.0 + z) if cut == 2 else (z - 1.0) * (z + 1.0)
        pairs = lax.floor(0.5 * order)
        odd = order - 2.0 * pairs

        # a pair of factors is a polynomial: (2 k - 1) of each order, or the root of its share
        def twice(k: Any, total: Array, i: Array) -> tuple[Array, Array]:
            low, high = 4.0 * i - 3.0, 4.0 * i - 1.0
            factor = lax.sqrt(low * high / ((low + 1.0) * (high + 1.0))) if norm else low * high
            return total * (factor * u), i + 1.0

        one = jnp.ones_like(z)
        first, _ = loop(twice, (one, jnp.ones_like(n)), lambda total, i: i <= pairs, 50_000)
        if norm:
            share = jnp.where(odd > 0, lax.sqrt((2.0 * order - 1.0) / jnp.where(
                odd > 0, 2.0 * order, 1.0)), 1.0)
            first = first * lax.sqrt(order + 0.5)
        else:
            share = jnp.where(odd > 0, 2.0 * order - 1.0, 1.0)
        sign = jnp.where(odd > 0, -share, share) if cut == 2 else share
        first = first * sign

        def step(k: Any, low: Array, high: Array, i: Array) -> tuple[Array, ...]:
            if norm:
                scale = (i + 1.0) ** 2 - order * order
                a = lax.sqrt((2.0 * i + 3.0) * (2.0 * i + 1.0) / scale)
                b = lax.sqrt((2.0 * i + 3.0) * (i * i - order * order) / (
                    jnp.maximum(2.0 * i - 1.0, 1.0) * scale))
                new = a * z * high - b * low
            else:
                new = ((2.0 * i + 1.0) * z * high - (i + order) * low) / (i - order + 1.0)
            return high, new, i + 1.0

        _, found, _ = loop(step, (jnp.zeros_like(z), first, order),
                           lambda low, high, i: i < degree, 100_000)
        if dtypes.kind(z.dtype) == "c" and cut == 3:
            power = lax.sqrt(z - 1.0) * lax.sqrt(z + 1.0)
        else:
            power = lax.sqrt(jnp.where(odd > 0, u, 1.0))
        found = found * jnp.where(odd > 0, power, 1.0)
        if not norm:
            ratio = lax.exp(lax.lgamma(degree - order + 1.0) - lax.lgamma(degree + order + 1.0))
            found = found * jnp.where(m < 0, ratio, 1.0)
        if cut == 2:
            found = found * jnp.where((m < 0) & (odd > 0), -1.0, 1.0)
        if dtypes.kind(z.dtype) != "c":
            other = (order > 0) & (lax.abs(z) > 1 if cut == 2 else z < 1)
            found = jnp.where(other, math.nan, found)
        return jnp.where(valid, jnp.where(inside, found, 0.0), math.nan)

    return value


def _order_odd(m: Array) -> Array:
    return jnp.remainder(lax.abs(m), 2.0) == 1


def _at_ends(found: Array, n: Array, m: Array, z: Array) -> Array:
    """The derivatives of odd orders at +-1, where the root of 1 - z^2 has none."""
    rows = [found[0]]
    at = (z == 1) | (z == -1)
    for k in range(1, found.shape[0]):
        flat = lax.abs(m) > 2 * k
        turn = jnp.where(m < 0, -1.0, 1.0)
        parity = jnp.remainder(n + m, 2.0) == 1
        swap = (jnp.real(z) < 0) & (parity != (k % 2 == 1))
        end = jnp.where(flat, 0.0, jnp.where(swap, -math.inf, math.inf) * turn)
        end = jnp.where(lax.abs(m) > n, 0.0, end)
        rows.append(jnp.where(at & _order_odd(m), end.astype(found.dtype), found[k]))
    return jnp.stack(rows)


def legendre_p(n: ArrayLike, z: ArrayLike, /, *, diff_n: int = 0) -> Array:
    """Legendre's polynomial of whole degree n of real or complex z, and diff_n derivatives.

    They are along a new first axis, which there is also without derivatives. Raises ArgumentError
    for a diff_n that is not 0, 1 or 2.

    >>> import functrans as ft
    >>> ft.scipy.special.legendre_p(2, 0.5, diff_n=1).tolist()
    [-0.125, 1.5]
    """
    count = _derivatives("legendre_p", diff_n)
    (degree, x), narrow = _numbers("legendre_p", z, n)
    value = _associated(False, 2)
    return _with_slopes(lambda n, z: value(n, jnp.zeros_like(n), z), count, narrow, degree, x)


def legendre_p_all(n: int, z: ArrayLike, /, *, diff_n: int = 0) -> Array:
    """Legendre's polynomials of the degrees 0 to n: [diff_n + 1, n + 1, ...].

    >>> import functrans as ft
    >>> ft.scipy.special.legendre_p_all(2, 0.5)[0].tolist()
    [1.0, 0.5, -0.125]
    """
    top = _static("legendre_p_all", "n", n)
    given = jnp.asarray(z)
    degrees = np.arange(top + 1.0).reshape(-1, *(1,) * given.ndim)
    return legendre_p(degrees, given[None], diff_n=diff_n)


def assoc_legendre_p(n: ArrayLike, m: ArrayLike, z: ArrayLike, /, *, branch_cut: int = 2,
                     norm: bool = False, diff_n: int = 0) -> Array:
    """The associated Legendre function of whole degree n and order m, and diff_n derivatives.

    They are along a new first axis. With `branch_cut` 2 the function of -1 <= z <= 1 with the
    phase (-1)^m, with 3 that of |z| > 1; of a real z outside of these it is NaN. With `norm` the
    integral of its square over [-1, 1] is 1.

    >>> import functrans as ft
    >>> ft.scipy.special.assoc_legendre_p(1, 1, 0.0).tolist()
    [-1.0]
    """
    count = _derivatives("assoc_legendre_p", diff_n)
    if branch_cut not in (2, 3):
        raise ArgumentError(f"scipy.special.assoc_legendre_p: branch_cut is {branch_cut!r}.",
                            where=user_source(), why="it is 2 (the cuts are outside of [-1, 1]) "
                            "or 3 (the cut is below 1).", fix="branch_cut=2")
    (degree, order, x), narrow = _numbers("assoc_legendre_p", z, n, m)
    found = _with_slopes(_associated(bool(norm), branch_cut), count, narrow, degree, order, x)
    # outside of its interval a function has no slope either
    found = jnp.where(jnp.isnan(found[:1]), found[:1], found)
    return _at_ends(found, degree, order, x)


def _orders(m: int) -> Any:
    """0 to m and -m to -1, so that a negative order is an index from the end."""
    return np.concatenate([np.arange(m + 1.0), np.arange(-float(m), 0.0)])


def _grid(name: str, n: Any, m: Any, ndim: int) -> tuple[Any, Any]:
    top, most = _static(name, "n", n), _static(name, "m", m)
    degrees = np.arange(top + 1.0).reshape(-1, 1, *(1,) * ndim)
    return degrees, _orders(most).reshape(1, -1, *(1,) * ndim)


def assoc_legendre_p_all(n: int, m: int, z: ArrayLike, /, *, branch_cut: int = 2,
                         norm: bool = False, diff_n: int = 0) -> Array:
    """Associated Legendre functions of all degrees to n and orders to +-m.

    Of shape [diff_n + 1, n + 1, 2 m + 1, ...]. Orders are 0 to m and then -m to -1, so that a
    negative order is its own index.

    >>> import functrans as ft
    >>> ft.scipy.special.assoc_legendre_p_all(1, 1, 0.0)[0].tolist()
    [[1.0, 0.0, 0.0], [0.0, -1.0, 0.5]]
    """
    given = jnp.asarray(z)
    degrees, orders = _grid("assoc_legendre_p_all", n, m, given.ndim)
    return assoc_legendre_p(degrees, orders, given[None, None], branch_cut=branch_cut, norm=norm,
                            diff_n=diff_n)


# On the sphere -----------------------------------------------------------------------------------


def _meridian(n: Array, m: Array, theta: Array) -> Array:
    return lax.real(sph_harm_y(n, m, theta, jnp.zeros_like(theta)))


def sph_legendre_p(n: ArrayLike, m: ArrayLike, theta: ArrayLike, /, *, diff_n: int = 0) -> Array:
    """The spherical harmonic of degree n and order m at azimuth 0, and diff_n derivatives in theta.

    They are along a new first axis.

    >>> import functrans as ft
    >>> print(ft.scipy.special.sph_legendre_p(1, 0, 0.0).round(4))
    [0.4886]
    """
    count = _derivatives("sph_legendre_p", diff_n)
    (degree, order, angle), narrow = _numbers("sph_legendre_p", theta, n, m)
    return _with_slopes(_meridian, count, narrow, degree, order, angle)


def sph_legendre_p_all(n: int, m: int, theta: ArrayLike, /, *, diff_n: int = 0) -> Array:
    """Spherical harmonics at azimuth 0 of degrees to n and orders to +-m: [diff_n + 1, n + 1, ...].

    >>> import functrans as ft
    >>> ft.scipy.special.sph_legendre_p_all(1, 1, 0.5).shape
    (1, 2, 3)
    """
    given = jnp.asarray(theta)
    degrees, orders = _grid("sph_legendre_p_all", n, m, given.ndim)
    return sph_legendre_p(degrees, orders, given[None, None], diff_n=diff_n)


def sph_harm_y_all(n: int, m: int, theta: ArrayLike, phi: ArrayLike, /, *, diff_n: int = 0
                   ) -> Array | tuple[Array, ...]:
    """Spherical harmonics of degrees to n and orders to +-m, complex: [n + 1, 2 m + 1, ...].

    With diff_n 1 a pair with the gradient in theta and phi along a last axis, with 2 also the
    matrix of second derivatives.

    >>> import functrans as ft
    >>> ft.scipy.special.sph_harm_y_all(1, 1, 0.5, 0.2).shape
    (2, 3)
    """
    count = _derivatives("sph_harm_y_all", diff_n)
    polar, azimuth = broadcast_all("sph_harm_y_all", *(
        operand("sph_harm_y_all", x) for x in promote_dtypes_inexact("sph_harm_y_all", theta, phi)))
    wanted = np.complex128 if polar.dtype == np.float64 else np.complex64
    degrees, orders = _grid("sph_harm_y_all", n, m, polar.ndim)
    rows = sph_legendre_p(degrees, orders, polar.astype(np.float64)[None, None], diff_n=count)
    turn = orders * azimuth.astype(np.float64)[None, None]
    wave = lax.complex(lax.cos(turn), lax.sin(turn))
    rate = 1j * orders
    y: Array = (rows[0] * wave).astype(wanted)
    if count == 0:
        return y
    gradient = jnp.stack([rows[1] * wave, rate * rows[0] * wave], -1).astype(wanted)
    if count == 1:
        return y, gradient
    mixed = rate * rows[1] * wave
    second = jnp.stack([jnp.stack([rows[2] * wave, mixed], -1),
                        jnp.stack([mixed, rate * rate * rows[0] * wave], -1)], -2)
    return y, gradient, second.astype(wanted)


# Q -----------------------------------------------------------------------------------------------


def _second_kind(n: int, z: Array) -> tuple[Array, Array]:
    """Q_0 to Q_n and their derivatives along a first axis; |z| > 1 is off the cut."""
    outside = lax.abs(z) > 1
    u = (1.0 - z) * (1.0 + z)
    one = jnp.ones_like(z)
    base = (1.0 + z) / jnp.where(u == 0, one, 1.0 - z)
    first = 0.5 * lax.log(jnp.where(outside, -base, base))
    first = jnp.where(u == 0, math.inf * one, first)
    # on the cut upwards
    rows = [first, z * first - 1.0]
    for k in range(1, n + 1):
        rows.append(((2 * k + 1) * z * rows[k] - k * rows[k - 1]) / (k + 1))
    # off it by the ratios of neighbours, whose continued fraction goes down from the degree n + 1
    far = jnp.where(outside, z, 3.0 * one)
    root = lax.abs(lax.sqrt((far - 1.0) * (far + 1.0)) + far)
    growth = lax.log(jnp.maximum(root, 1.0 / root))
    start = lax.stop_gradient(lax.ceil(20.0 / jnp.maximum(growth, 1e-3)))

    def down(k: Any, ratio: Array, i: Array) -> tuple[Array, Array]:
        degree = n + 1 + i
        return degree / ((2.0 * degree + 1.0) * far - (degree + 1.0) * ratio), i - 1.0

    ratio, _ = loop(down, (0.0 * far, start), lambda ratio, i: i >= 0, 30_000)
    ratios = [ratio]
    for k in range(n, 0, -1):
        ratios.append(k / ((2 * k + 1) * far - (k + 1) * ratios[-1]))
    value, falling = first, [first]
    for ratio in reversed(ratios):
        value = value * ratio
        falling.append(value)
    q = [jnp.where(outside, b, a) for a, b in zip(rows, falling, strict=False)]
    safe = jnp.where(u == 0, one, u)
    slopes = [jnp.where(u == 0, math.inf * one, 1.0 / safe)]
    for k in range(1, n + 1):
        slopes.append(jnp.where(u == 0, math.inf * one, k * (q[k - 1] - z * q[k]) / safe))
    return jnp.stack(q[:n + 1]), jnp.stack(slopes)


def _q_numbers(name: str, z: ArrayLike) -> tuple[Array, Any]:
    (x,), narrow = _numbers(name, z)
    return x, narrow


def lqn(n: int, z: ArrayLike) -> tuple[Array, Array]:
    """Legendre functions of the second kind of the degrees 0 to n, and their derivatives.

    The degrees are along a new first axis; off the cut, |z| > 1, they fall with the degree.

    >>> import functrans as ft
    >>> print(ft.scipy.special.lqn(1, 0.5)[0].round(4))
    [ 0.5493 -0.7253]
    """
    top = _static("lqn", "n", n)
    x, narrow = _q_numbers("lqn", z)
    value, slope = _second_kind(top, x)
    return value.astype(narrow), slope.astype(narrow)


def lqmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """Associated Legendre functions of the second kind and their derivatives: [m + 1, n + 1, ...].

    Upwards over orders from 0 and 1 (DLMF 14.10.1 on the cut, 14.10.6 off it).

    >>> import functrans as ft
    >>> print(ft.scipy.special.lqmn(1, 1, 0.5)[0].round(4))
    [[ 0.5493 -0.7253]
     [-1.1547 -1.0531]]
    """
    most, top = _static("lqmn", "m", m), _static("lqmn", "n", n)
    x, narrow = _q_numbers("lqmn", z)
    outside = lax.abs(x) > 1
    sign = jnp.where(outside, -jnp.ones_like(x), jnp.ones_like(x))  # of 1 - z^2 under the root
    u = (1.0 - x) * (1.0 + x)
    root = lax.sqrt(sign * u)
    value, slope = _second_kind(top, x)
    k = jnp.arange(top + 1, dtype=np.float64).reshape(-1, *(1,) * x.ndim)
    rows = [value, -sign * root * slope]
    for order in range(most):
        rows.append(-2.0 * (order + 1) * x / root * rows[-1]
                    - sign * (k - order) * (k + order + 1.0) * rows[-2])
    slopes = [slope]
    for order in range(1, most + 1):
        slopes.append(-(order * x * rows[order] + root * rows[order + 1]) / u)
    return jnp.stack(rows[:most + 1]).astype(narrow), jnp.stack(slopes).astype(narrow)
