"""Further spherical Bessel functions, nodes on other intervals, and functions of a few lines."""

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
from functrans.scipy.special.common import elementwise, in_double, operands, partials
from functrans.scipy.special.modified_bessel import iv
from functrans.scipy.special.quadrature import (
    roots_chebyt,
    roots_chebyu,
    roots_jacobi,
    roots_legendre,
)
from functrans.typing import Array, ArrayLike

__all__ = ["diric", "euler", "factorialk", "roots_chebyc", "roots_chebys", "roots_sh_chebyt",
           "roots_sh_chebyu", "roots_sh_jacobi", "roots_sh_legendre", "sinc", "softplus",
           "spherical_in", "spherical_kn", "spherical_yn", "stirling2"]


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
    >>> print(ft.scipy.special.roots_sh_chebyt(1)[0].round(4))
    [0.5]
    """
    return _moved(roots_chebyt(n), mu, 0.5, 0.5, 1.0)


def roots_sh_chebyu(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over [0, 1] of sqrt(x - x^2) f(x).

    >>> import functrans as ft
    >>> print(ft.scipy.special.roots_sh_chebyu(1)[0].round(4))
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
    >>> print(ft.scipy.special.roots_chebys(2)[0].round(4))
    [-1.  1.]
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
