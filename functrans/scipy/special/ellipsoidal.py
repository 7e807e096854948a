"""Ellipsoidal harmonics: Lamé functions of both kinds and their norms (Dassios, 2012)."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import in_double, operands, over_nodes
from functrans.scipy.special.tridiagonal import eigenvalue, eigenvector
from functrans.typing import Array, ArrayLike

__all__ = ["ellip_harm", "ellip_harm_2", "ellip_normal"]

_COUNT: Final = 24
_MOST: Final = 40.0
"""The largest degree, of a polynomial in s^2 of at most 21 terms."""
_HALF_TURN: Final = 0.5 * math.pi
_POINTS: Final = 64
_CIRCLE: Final = (np.arange(_POINTS) + 0.5) * _HALF_TURN / _POINTS
_CIRCLE_WEIGHTS: Final = np.full(_POINTS, _HALF_TURN / _POINTS)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(80)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS


class LameFunction:
    """A function s^a |s^2 - h^2|^b |s^2 - k^2|^c P(s^2 - h^2), P a polynomial of leading term 1.

    The coefficients of P are an eigenvector of a tridiagonal matrix: powers around the middle
    singular point make it symmetric.
    """

    def __init__(self, h2: Array, k2: Array, n: Array, p: Array) -> None:
        self.valid = (n >= 0) & (n == lax.floor(n)) & (n <= _MOST) & (p >= 1) & (
            p == lax.floor(p)) & (p <= 2.0 * n + 1.0) & (h2 > 0) & (k2 > h2)
        one = jnp.ones_like(h2)
        self.h2, self.k2 = jnp.where(self.valid, h2, one), jnp.where(self.valid, k2, 2.0 * one)
        n, p = jnp.where(self.valid, n, 0.0), jnp.where(self.valid, p, 1.0)
        half = lax.floor(0.5 * n)
        rest = n - half
        # the four types: of neither root, of that of s^2 - h^2, of that of s^2 - k^2, and of both
        ends = [half + 1.0, half + 1.0 + rest, half + 1.0 + 2.0 * rest]
        kind = sum(jnp.where(p > end, 1.0, 0.0) for end in ends)
        first = jnp.where(kind == 0, 0.0, jnp.where(kind == 1, ends[0], jnp.where(
            kind == 2, ends[1], ends[2])))
        size = jnp.where(kind == 0, half + 1.0, jnp.where(kind == 3, half, rest))
        mixed = (kind == 1) | (kind == 2)
        parity = n - 2.0 * half
        self.a = jnp.where(mixed, 1.0 - parity, parity)
        self.b = jnp.where((kind == 1) | (kind == 3), 1.0, 0.0)
        self.c = jnp.where(kind >= 2, 1.0, 0.0)
        self.size = size
        self.coefficients = self._solve(n, p - 1.0 - first)

    def _solve(self, n: Array, index: Array) -> Array:
        # around t = s^2 = h^2, the singular points are at u, 0 and w; exponents there are halves
        u, w = -self.h2, self.k2 - self.h2
        a, b, c = 0.5 + self.a, 0.5 + self.b, 0.5 + self.c
        cross = [0.5 * x * y + 0.25 * (x + y) for x, y in (
            (self.a, self.b), (self.b, self.c), (self.a, self.c))]
        j = jnp.reshape(jnp.arange(_COUNT, dtype=np.float64), (-1, *(1,) * n.ndim))
        inside = j < self.size
        d = j * (j - 1.0) * (u + w) + j * (b * (u + w) + a * w + c * u) + cross[0] * w \
            + cross[1] * u + 0.25 * n * (n + 1.0) * self.h2
        lower = j * (j - 1.0) + (a + b + c) * j + (cross[0] + cross[1] + cross[2]) \
            - 0.25 * n * (n + 1.0)
        upper = (j + 1.0) * (j + b) * u * w
        coupled = j + 1.0 < self.size
        ones = jnp.ones_like(d)
        lower, upper = jnp.where(coupled, lower, -ones), jnp.where(coupled, upper, -ones)
        e = jnp.where(coupled, lax.sqrt(lower * upper), 0.0)[:-1]
        # what is past the last term has eigenvalues above the others
        past = 1.0 + 4.0 * jnp.max(jnp.where(inside, lax.abs(d), 0.0), 0) + 4.0 * jnp.max(e, 0)
        d = jnp.where(inside, d, lax.stop_gradient(past))
        vector = eigenvector(d, e, eigenvalue(d, e, index))
        scale = jnp.exp(jnp.cumsum(jnp.where(coupled, 0.5 * lax.log(lower / upper), 0.0), 0))
        scale = jnp.concatenate([ones[:1], scale[:-1]])
        found = jnp.where(inside, vector * scale, 0.0)
        last = jnp.sum(jnp.where(j == self.size - 1.0, found, 0.0), 0)
        return found / last

    def __call__(self, s: Array) -> Array:
        """The value at s, of the shape of the parameters or with another axis at its end."""
        def wide(x: Array) -> Array:
            return x[..., None] if s.ndim > x.ndim else x

        h2, k2 = wide(self.h2), wide(self.k2)
        square = s * s
        total = jnp.zeros_like(s)
        for row in range(_COUNT - 1, -1, -1):
            total = total * (square - h2) + wide(self.coefficients[row])
        for power, root in ((self.b, lax.abs(square - h2)), (self.c, lax.abs(square - k2))):
            some = wide(power) > 0
            total = total * jnp.where(some, lax.sqrt(jnp.where(some, root, 1.0)), 1.0)
        return total * jnp.where(wide(self.a) > 0, s, 1.0)


def ellip_harm(h2: ArrayLike, k2: ArrayLike, n: ArrayLike, p: ArrayLike, s: ArrayLike,
               signm: float = 1, signn: float = 1) -> Array:
    """The ellipsoidal harmonic (Lamé function) of degree n <= 40 and order 1 <= p <= 2 n + 1.

    With 0 < h2 < k2. `signm` and `signn` are signs of its second and third type, and their product
    of the fourth. h2, k2 and s have derivatives.

    >>> import functrans as ft
    >>> float(ft.scipy.special.ellip_harm(5.0, 8.0, 1, 1, 2.5))
    2.5
    """
    def value(h2: Array, k2: Array, n: Array, p: Array, s: Array) -> Array:
        lame = LameFunction(h2, k2, n, p)
        sign = jnp.where(lame.b > 0, float(signm), 1.0) * jnp.where(lame.c > 0, float(signn), 1.0)
        return jnp.where(lame.valid, sign * lame(s), math.nan)

    out: Array = in_double(value, operands("ellip_harm", h2, k2, n, p, s))
    return out


def ellip_harm_2(h2: ArrayLike, k2: ArrayLike, n: ArrayLike, p: ArrayLike, s: ArrayLike) -> Array:
    """The ellipsoidal harmonic of the second kind of degree n and order p, for s > sqrt(k2).

    (2 n + 1) times that of the first kind and an integral of its reciprocal square, by Gauss's
    rule over an angle.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ellip_harm_2(5.0, 8.0, 1, 1, 10.0)), 6)
    0.01041
    """
    def value(h2: Array, k2: Array, n: Array, p: Array, s: Array) -> Array:
        lame = LameFunction(h2, k2, n, p)
        valid = lame.valid & (s * s > k2)
        k = lax.sqrt(lame.k2)
        place = jnp.where(valid, s, 2.0 * k)
        angle = lax.asin(k / place)

        def part(node: Any, angle: Array, k: Array, share: Array) -> Array:
            sine = lax.sin(node * angle)
            return 1.0 / (lame(k / sine) ** 2 * k * lax.sqrt(1.0 - share * sine * sine))

        total = angle * over_nodes(part, _NODES, _WEIGHTS, angle, k, lame.h2 / lame.k2)
        return jnp.where(valid, (2.0 * n + 1.0) * lame(place) * total, math.nan)

    out: Array = in_double(value, operands("ellip_harm_2", h2, k2, n, p, s))
    return out


def ellip_normal(h2: ArrayLike, k2: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The norm of the ellipsoidal harmonic of degree n and order p over the ellipsoid.

    A double integral that is a difference of products of single ones, by the midpoint rule over
    angles, in which they are periodic.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ellip_normal(5.0, 8.0, 3, 7)), 1)
    1723.4
    """
    def value(h2: Array, k2: Array, n: Array, p: Array) -> Array:
        lame = LameFunction(h2, k2, n, p)

        def inner(power: int) -> Array:
            def part(node: Any, h2: Array, k2: Array) -> Array:
                square = h2 * np.sin(node) ** 2
                x = lax.sqrt(square)
                found: Array = square**power * lame(x) ** 2 / lax.sqrt(k2 - square)
                return found

            return over_nodes(part, _CIRCLE, _CIRCLE_WEIGHTS, lame.h2, lame.k2)

        def outer(power: int) -> Array:
            def part(node: Any, h2: Array, k2: Array) -> Array:
                square = h2 + (k2 - h2) * np.sin(node) ** 2
                y = lax.sqrt(square)
                found: Array = square**power * lame(y) ** 2 / y
                return found

            return over_nodes(part, _CIRCLE, _CIRCLE_WEIGHTS, lame.h2, lame.k2)

        total = 8.0 * (outer(1) * inner(0) - outer(0) * inner(1))
        return jnp.where(lame.valid, total, math.nan)

    out: Array = in_double(value, operands("ellip_normal", h2, k2, n, p))
    return out
