"""Derivatives of Bessel functions, further spherical ones, zeros, and functions of a few lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.numpy.common import cast
from functrans.scipy.arguments import known_size
from functrans.scipy.special.bessel import yn
from functrans.scipy.special.bessel_orders import jv
from functrans.scipy.special.common import elementwise, in_double, operands, partials
from functrans.scipy.special.modified_bessel import iv, kv
from functrans.scipy.special.quadrature import (
    roots_chebyt,
    roots_chebyu,
    roots_jacobi,
    roots_legendre,
)
from functrans.typing import Array, ArrayLike

__all__ = ["diric", "euler", "factorialk", "ivp", "jn_zeros", "jnp_zeros", "jvp", "kvp",
           "roots_chebyc", "roots_chebys", "roots_sh_chebyt", "roots_sh_chebyu", "roots_sh_jacobi",
           "roots_sh_legendre", "sinc", "softplus", "spherical_in", "spherical_kn",
           "spherical_yn", "stirling2", "yn_zeros", "ynp_zeros"]


@elementwise
def softplus(x: Array) -> Array:
    """log(1 + exp(x)), without overflow.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.softplus(0.0)), 4)
    0.6931
    """
    return jnp.logaddexp(x, 0)


def sinc(x: ArrayLike) -> Array:
    """sin(pi x) / (pi x), and 1 at 0.

    >>> import functrans as ft
    >>> float(ft.scipy.special.sinc(0.0))
    1.0
    """
    return jnp.sinc(x)


def diric(x: ArrayLike, n: int) -> Array:
    """Dirichlet's function sin(n x / 2) / (n sin(x / 2)), which is 1 or -1 at multiples of 2 pi.

    >>> import functrans as ft
    >>> float(ft.scipy.special.diric(0.0, 7))
    1.0
    """
    (y,) = operands("diric", x)
    count = known_size("special.diric", "n", n)
    turns = jnp.round(y / (2 * math.pi))
    rest = y - 2 * math.pi * lax.stop_gradient(turns)
    near = jnp.abs(rest) < 1e-4
    safe = jnp.where(near, 1.0, rest)
    far = jnp.sin(0.5 * count * safe) / (count * jnp.sin(0.5 * safe))
    sign = jnp.where(turns % 2 == 0, 1.0, -1.0) if count % 2 == 0 else 1.0
    around = 1.0 - rest * rest * (count * count - 1) / 24.0
    return cast(sign * jnp.where(near, around, far), y.dtype)


# Derivatives -----------------------------------------------------------------------------------


def _derivative(name: str, fun: Callable[..., Array], v: ArrayLike, z: ArrayLike, n: int,
                alternating: bool, sign: int) -> Array:
    """The n-th derivative by the orders beside v (DLMF 10.6.7 and 10.29.5)."""
    count = known_size(f"special.{name}", "n", n, 0)
    order, x = operands(name, v, z)
    total: Any = 0
    for k in range(count + 1):
        weight = math.comb(count, k) * (-1) ** (k if alternating else 0)
        total = total + weight * fun(order - count + 2 * k, x)
    return cast(total * (sign**count / 2**count), x.dtype)


def jvp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """The n-th derivative in z of the Bessel function of the first kind of order v.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.jvp(0, 1.0)), 4)
    -0.4401
    """
    return _derivative("jvp", jv, v, z, n, True, 1)


def ivp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """The n-th derivative in z of the modified Bessel function of the first kind of order v.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ivp(0, 1.0)), 4)
    0.5652
    """
    return _derivative("ivp", iv, v, z, n, False, 1)


def kvp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """The n-th derivative in z of the modified Bessel function of the second kind of order v.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.kvp(0, 1.0)), 4)
    -0.6019
    """
    return _derivative("kvp", kv, v, z, n, False, -1)


# Spherical functions ---------------------------------------------------------------------------


def _upwards(n: Array, first: Array, second: Array, factor: Callable[[Any], Any], sign: float
             ) -> Array:
    """The function of order n, by f_(k+1) = factor(k) f_k + sign f_(k-1)."""
    top = jnp.max(jnp.where(n < 1e5, n, 0))

    def step(state: Any) -> Any:
        k, low, high, found = state
        new = factor(k) * high + sign * low
        return k + 1, high, new, jnp.where(n == k + 1, new, found)

    found = jnp.where(n == 0, first, jnp.where(n == 1, second, math.nan))
    return lax.while_loop(lambda s: s[0] < top, step, (jnp.ones((), n.dtype), first, second,
                                                       found))[3]


def _spherical(second: bool) -> Any:
    """y_n and its slope, or k_n and its slope, which are stable upwards."""
    def value(n: Array, z: Array) -> Array:
        if second:
            first, next_ = -jnp.cos(z) / z, -(jnp.cos(z) / z + jnp.sin(z)) / z
            return _upwards(n, first, next_, lambda k: (2 * k + 1) / z, -1.0)
        first = 0.5 * math.pi * jnp.exp(-z) / z
        return _upwards(n, first, first * (1 + 1 / z), lambda k: (2 * k + 1) / z, 1.0)

    def slope(n: Array, z: Array) -> Array:
        # f_n' = -f_(n+1) + n f_n / z, for both
        return -ruled(n + 1.0, z) + n / z * ruled(n, z)

    ruled: Callable[..., Array] = partials(None, lambda out, n, z: slope(n, z))(value)
    return ruled, slope


_YN, _YN_SLOPE = _spherical(True)
_KN, _KN_SLOPE = _spherical(False)


def spherical_yn(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """The spherical Bessel function of the second kind of integer order n >= 0, or its derivative.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.spherical_yn(0, 1.0)), 4)
    -0.5403
    """
    out: Array = in_double(_YN_SLOPE if derivative else _YN, operands("spherical_yn", n, z))
    return out


def spherical_kn(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """The modified spherical Bessel function of the second kind of order n, or its derivative.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.spherical_kn(0, 1.0)), 4)
    0.5779
    """
    out: Array = in_double(_KN_SLOPE if derivative else _KN, operands("spherical_kn", n, z))
    return out


def spherical_in(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """The modified spherical Bessel function of the first kind of order n, or its derivative.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.spherical_in(0, 1.0)), 4)
    1.1752
    """
    def value(n: Array, z: Array) -> Array:
        some = z > 0
        safe = jnp.where(some, z, 1.0)
        inner = jnp.sqrt(0.5 * math.pi / safe) * iv(n + 0.5, safe)
        return jnp.where(some, inner, jnp.where(z == 0, jnp.where(n == 0, 1.0, 0.0), math.nan))

    def slope(n: Array, z: Array) -> Array:
        lower = value(jnp.maximum(n - 1.0, 0.0), z)
        upper = value(n + 1.0, z)
        return jnp.where(n == 0, upper, (n * lower + (n + 1.0) * upper) / (2.0 * n + 1.0))

    out: Array = in_double(slope if derivative else value, operands("spherical_in", n, z))
    return out


# Zeros -----------------------------------------------------------------------------------------


def _zeros(name: str, fun: Callable[[Any], Any], n: Any, nt: Any) -> Array:
    """The first nt zeros in x > 0 of a function of float64, whose zeros are more than 1 apart."""
    order = known_size(f"special.{name}", "n", n, 0)
    count = known_size(f"special.{name}", "nt", nt)
    last = order + 2.6 * order ** (1 / 3) + math.pi * (count + 2) + 0.2 * count
    grid = np.concatenate([[1e-3], np.arange(0.25, max(last, 4.0) + 2.0, 0.5)])
    values = np.asarray(fun(grid))
    at = np.flatnonzero(np.sign(values[1:]) * np.sign(values[:-1]) < 0)[:count]
    while len(at) < count:
        grid = np.concatenate([grid, grid[-1] + np.arange(0.5, 0.5 * len(grid), 0.5)])
        values = np.asarray(fun(grid))
        at = np.flatnonzero(np.sign(values[1:]) * np.sign(values[:-1]) < 0)[:count]
    low, high, sign = grid[at], grid[at + 1], np.sign(values[at])
    for _ in range(8):
        middle = 0.5 * (low + high)
        left = np.sign(np.asarray(fun(middle))) == sign
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    # from an interval of 1/500 secants need four steps
    f_low, f_high = np.asarray(fun(low)), np.asarray(fun(high))
    for _ in range(6):
        apart = f_high - f_low
        step = np.where(apart == 0, 0.0, f_high * (high - low) / np.where(apart == 0, 1.0, apart))
        low, f_low, high = high, f_high, high - step
        f_high = np.asarray(fun(high))
    return jnp.asarray(high, default_float())


def jn_zeros(n: int, nt: int) -> Array:
    """The first nt zeros above 0 of the Bessel function of the first kind of integer order n.

    >>> import functrans as ft
    >>> print(ft.scipy.special.jn_zeros(0, 2).round(4))
    [2.4048 5.5201]
    """
    return _zeros("jn_zeros", lambda x: jv(np.float64(n), x), n, nt)


def jnp_zeros(n: int, nt: int) -> Array:
    """The first nt zeros above 0 of the derivative of the Bessel function of the first kind.

    >>> import functrans as ft
    >>> print(ft.scipy.special.jnp_zeros(1, 1).round(4))
    [1.8412]
    """
    return _zeros("jnp_zeros", lambda x: jvp(np.float64(n), x), n, nt)


def yn_zeros(n: int, nt: int) -> Array:
    """The first nt zeros above 0 of the Bessel function of the second kind of integer order n.

    >>> import functrans as ft
    >>> print(ft.scipy.special.yn_zeros(0, 1).round(4))
    [0.8936]
    """
    return _zeros("yn_zeros", lambda x: yn(np.float64(n), x), n, nt)


def ynp_zeros(n: int, nt: int) -> Array:
    """The first nt zeros above 0 of the derivative of the Bessel function of the second kind.

    >>> import functrans as ft
    >>> print(ft.scipy.special.ynp_zeros(0, 1).round(4))
    [2.1971]
    """
    def slope(x: Any) -> Any:  # the order -1 is minus that of 1
        return yn(np.float64(n - 1), x) - yn(np.float64(n + 1), x) if n else -yn(np.float64(1), x)

    return _zeros("ynp_zeros", slope, n, nt)


# Nodes -----------------------------------------------------------------------------------------


def _moved(found: tuple[Array, ...], mu: bool, scale: float, shift: float, factor: float
           ) -> tuple[Array, ...]:
    x, w = found[0] * scale + shift, found[1] * factor
    return (x, w, jnp.sum(w)) if mu else (x, w)


def roots_sh_legendre(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over [0, 1].

    >>> import functrans as ft
    >>> [v.tolist() for v in ft.scipy.special.roots_sh_legendre(1)]
    [[0.5], [1.0]]
    """
    return _moved(roots_legendre(n), mu, 0.5, 0.5, 0.5)


def roots_sh_jacobi(n: int, p1: ArrayLike, q1: ArrayLike, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over [0, 1] of (1 - x)^(p - q) x^(q - 1) f(x).

    >>> import functrans as ft
    >>> ft.scipy.special.roots_sh_jacobi(1, 1.0, 1.0)[0].tolist()
    [0.5]
    """
    p, q = operands("roots_sh_jacobi", p1, q1)
    x, w = roots_jacobi(n, p - q, q - 1)
    factor = 0.5 ** p
    x, w = 0.5 * x + 0.5, w * factor
    return (x, w, jnp.sum(w)) if mu else (x, w)


def roots_sh_chebyt(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over [0, 1] of f(x) / sqrt(x - x^2).

    >>> import functrans as ft
    >>> ft.scipy.special.roots_sh_chebyt(1)[0].round(4).tolist()
    [0.5]
    """
    return _moved(roots_chebyt(n), mu, 0.5, 0.5, 1.0)


def roots_sh_chebyu(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over [0, 1] of sqrt(x - x^2) f(x).

    >>> import functrans as ft
    >>> ft.scipy.special.roots_sh_chebyu(1)[0].round(4).tolist()
    [0.5]
    """
    return _moved(roots_chebyu(n), mu, 0.5, 0.5, 0.25)


def roots_chebyc(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over [-2, 2] of f(x) / sqrt(1 - x^2 / 4).

    >>> import functrans as ft
    >>> print(ft.scipy.special.roots_chebyc(2)[0].round(4))
    [-1.4142  1.4142]
    """
    return _moved(roots_chebyt(n), mu, 2.0, 0.0, 2.0)


def roots_chebys(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over [-2, 2] of sqrt(1 - x^2 / 4) f(x).

    >>> import functrans as ft
    >>> ft.scipy.special.roots_chebys(2)[0].round(4).tolist()
    [-1.0, 1.0]
    """
    return _moved(roots_chebyu(n), mu, 2.0, 0.0, 2.0)


# Counts ----------------------------------------------------------------------------------------


def stirling2(N: ArrayLike, K: ArrayLike, *, exact: bool = False) -> Array:
    """The number of ways to part N into K sets that are not empty, as a floating number.

    By exact numbers of Python's for known N and K, rounded once; `exact` is accepted.

    >>> import functrans as ft
    >>> float(ft.scipy.special.stirling2(4, 2))
    7.0
    """
    n, k = np.broadcast_arrays(np.asarray(N), np.asarray(K))
    most = int(n.max(initial=0))
    rows = [[1]]
    for i in range(1, most + 1):
        last = [*rows[-1], 0]
        rows.append([j * last[j] + (last[j - 1] if j else 0) for j in range(i + 1)])
    values = [float(rows[a][b]) if 0 <= b <= a else 0.0 for a, b in zip(n.flat, k.flat)]
    return jnp.asarray(np.array(values).reshape(n.shape), default_float())


def euler(n: int) -> Array:
    """Euler's numbers E_0 to E_n, at least two of them.

    >>> import functrans as ft
    >>> ft.scipy.special.euler(4).tolist()
    [1.0, 0.0, -1.0, 0.0, 5.0]
    """
    count = max(known_size("special.euler", "n", n, 0), 2)
    found = [1]
    for k in range(1, count // 2 + 1):
        found.append(-sum(math.comb(2 * k, 2 * j) * e for j, e in enumerate(found)))
    values = np.zeros(count + 1)
    values[::2] = found
    return jnp.asarray(values, default_float())


def factorialk(n: ArrayLike, k: int, exact: bool = False) -> Array:
    """n (n - k) (n - 2 k) ... of known whole n, as a floating number; 0 for negative n.

    >>> import functrans as ft
    >>> float(ft.scipy.special.factorialk(5, 3))
    10.0
    """
    step = known_size("special.factorialk", "k", k)
    given = np.asarray(n)
    values = [float(math.prod(range(int(v), 0, -step))) if v >= 0 else 0.0 for v in given.flat]
    return jnp.asarray(np.array(values).reshape(given.shape), default_float())
