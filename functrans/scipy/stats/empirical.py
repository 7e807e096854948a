"""The distances of empirical distributions from the true one: Kolmogorov's and Smirnov's."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.scipy import special
from functrans.scipy.arguments import known_values
from functrans.scipy.special.common import loop, partials
from functrans.scipy.stats.ranks import two_sided
from functrans.scipy.stats.tailed import HalfLine
from functrans.transforms import forward
from functrans.typing import Array

__all__ = ["ksone", "kstwo", "kstwobign"]

_GAUSS = np.polynomial.legendre.leggauss(64)
_NODES: Final = 0.5 * (_GAUSS[0] + 1.0)
_NODE_WEIGHTS: Final = 0.5 * _GAUSS[1]


def _distances(key: Array, like: Array, n: Array) -> tuple[Array, Array]:
    """The largest distances above and below of n uniform numbers, in order one after the other.

    They are partial sums of exponential variables over the whole sum, which is known after a
    first pass.
    """
    most = jnp.max(n)

    def gap(k: Array) -> Array:
        return random.exponential(random.fold_in(key, k), like.shape, like.dtype)

    def add(state: Any) -> Any:
        k, total = state
        return k + 1, total + jnp.where(k <= n, gap(k), 0.0)

    zero = jnp.zeros((), np.int32)
    whole = lax.while_loop(lambda state: state[0] <= most, add, (zero, jnp.zeros_like(like)))[1]

    def compare(state: Any) -> Any:
        k, total, above, below = state
        total = total + gap(k)
        at, inside = total / whole, k < n
        above = jnp.where(inside, jnp.maximum(above, (k + 1) / n - at), above)
        return k + 1, total, above, jnp.where(inside, jnp.maximum(below, at - k / n), below)

    none = jnp.zeros_like(like)
    out = lax.while_loop(lambda state: state[0] < most, compare, (zero, none, none, none))
    return out[2], out[3]


class KSOne(HalfLine):
    """The distance of an empirical distribution of n values above the true one.

    Source: Birnbaum and Tingey, Annals of Mathematical Statistics 22 (1951).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.ksone.sf(0.5, 2.0)), 4)
    0.25
    """

    shapes = ("n",)
    high = 1.0

    def possible(self, n: Array) -> Array:
        return (n >= 1) & (n == lax.floor(n))

    def draw(self, key: Array, like: Array, n: Array) -> Array:
        return _distances(key, like, n)[0]

    def _raw(self, m: int, n: Array) -> Array:
        """The mean of the m-th power: of each term's integral, by Gauss's rule."""
        count = n.astype(np.float64)

        def step(i: Any, k: Array, total: Array) -> tuple[Array, Array]:
            end = jnp.minimum(1.0 - k / count, 8.0 / lax.sqrt(count))
            z, each, at = end[..., None] * _NODES, count[..., None], k[..., None]
            choose = (lax.lgamma(each + 1.0) - lax.lgamma(at + 1.0)
                      - lax.lgamma(each - at + 1.0))
            logs = (choose + (at - 1.0) * lax.log(z + at / each) + m * lax.log(z)
                    + (each - at) * lax.log(jnp.maximum(1.0 - z - at / each, 1e-300)))
            return k + 1.0, total + m * end * jnp.sum(_NODE_WEIGHTS * lax.exp(logs), -1)

        zero = jnp.zeros_like(count)
        return loop(step, (zero, zero), lambda k, total: k < count, 10_000_000)[1].astype(n.dtype)

    def expected(self, n: Array) -> Array:
        return self._raw(1, n)

    def variance(self, n: Array) -> Array:
        return self._raw(2, n) - self._raw(1, n) ** 2

    @staticmethod
    def _sum(z: Array, n: Array, upper: bool) -> tuple[Array, Array]:
        """What is above, or what is below as the rest of the terms, and its slope in z."""
        z, n = z.astype(np.float64), n.astype(np.float64)
        last = lax.floor(n * (1.0 - z))
        last = jnp.where((last == n * (1.0 - z)) & upper, last - 1.0, last)

        def step(i: Any, k: Array, total: Array, slope: Array) -> tuple[Array, Array, Array]:
            at, rest = z + k / n, 1.0 - z - k / n
            far = n - k
            choose = lax.lgamma(n + 1.0) - lax.lgamma(k + 1.0) - lax.lgamma(far + 1.0)
            size = jnp.maximum(jnp.abs(rest), 1e-300)
            sign = jnp.where((rest < 0) & (far % 2 == 1), -1.0, 1.0)
            term = sign * lax.exp(choose + lax.log(z) + (k - 1.0) * lax.log(at)
                                  + special.xlogy(far, size))
            steep = 1.0 / z + (k - 1.0) / at - far / jnp.where(rest < 0, -size, size)
            return k + 1.0, total + term, slope + term * steep

        zero = jnp.zeros_like(z)
        start, end = (zero, last) if upper else (last + 1.0, n)
        _, total, slope = loop(step, (start, zero, zero), lambda k, total, slope: k <= end,
                               10_000_000)
        # the last term of what is below is that of which rest is -z
        return (total, slope) if upper else (-total, -slope)

    def _both(self, z: Array, n: Array) -> tuple[Array, Array, Array]:
        near = z * n < 3.0
        above, fall = self._sum(jnp.where(near, 0.5, z), n, True)
        other, rise = self._sum(jnp.where(near, z, 1.0 / n), n, False)
        below = 1.0 - self._rest(other)
        return (jnp.where(near, self._rest(other), 1.0 - above), jnp.where(
            near, below, above), jnp.where(near, self._rest(rise), -fall))

    @staticmethod
    def _rest(total: Array) -> Array:
        return -total

    def log_density(self, z: Array, n: Array) -> Array:
        return lax.log(jnp.maximum(self._both(z, n)[2], 0.0)).astype(z.dtype)

    def below(self, z: Array, n: Array) -> Array:
        return self._value(z, n, 0)

    def above(self, z: Array, n: Array) -> Array:
        return self._value(z, n, 1)

    def _value(self, z: Array, n: Array, which: int) -> Array:
        sign = -1.0 if which else 1.0
        rules = [lambda out, z, n: sign * lax.exp(self.log_density(z, n)), None]
        out: Array = partials(*rules)(lambda z, n: self._both(z, n)[which])(
            z.astype(np.float64), n.astype(np.float64))
        return out.astype(z.dtype)


class KSTwo(HalfLine):
    """The distance of an empirical distribution of n values from the true one, on both sides.

    The matrices of it are of the size of n, which has to be known: it is no argument of `jit`.
    Source: Marsaglia, Tsang and Wang, J. Statistical Software 8 (2003).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.kstwo.sf(0.5, 3)), 4)
    0.3333
    """

    shapes = ("n",)
    _far = 5.0

    def possible(self, n: Array) -> Array:
        return (n >= 1) & (n == lax.floor(n))

    def ends(self, n: Array) -> tuple[Array, float]:
        return 0.5 / n, 1.0

    def _each(self, z: Array, n: Array, below: bool) -> Array:
        sizes = known_values("stats.kstwo", "n", n, "matrices have its size.",
                             "close over n, or static_argnums")
        x = z.astype(np.float64)
        out = jnp.full_like(x, math.nan)
        for size in np.unique(sizes):
            if size >= 1 and size == np.floor(size):
                out = jnp.where(n == size, two_sided(x, int(size), self._far, below), out)
        return out

    def below(self, z: Array, n: Array) -> Array:
        return self._each(z, n, True).astype(z.dtype)

    def above(self, z: Array, n: Array) -> Array:
        return self._each(z, n, False).astype(z.dtype)

    def log_density(self, z: Array, n: Array) -> Array:
        x = z.astype(np.float64)
        slope = forward.jvp(lambda x: self._each(x, n, False), (x,), (jnp.ones_like(x),))[1]
        return lax.log(jnp.maximum(-slope, 0.0)).astype(z.dtype)

    def draw(self, key: Array, like: Array, n: Array) -> Array:
        above, below = _distances(key, like, n)
        return jnp.maximum(above, below)


class KSTwoBigN(HalfLine):
    """Kolmogorov's distribution, the limit of the distance of both sides times the root of n.

    Two series of Jacobi's theta function, each where it has few terms.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.kstwobign.sf(1.0)), 4)
    0.27
    """

    _split = 0.9
    _k = np.arange(1.0, 9.0)

    def _series(self, z: Array) -> tuple[Array, Array, Array]:
        x = z.astype(np.float64)
        near = x < self._split
        small, large = jnp.where(near, x, 0.5)[..., None], jnp.where(near, 1.0, x)[..., None]
        rate = (2.0 * self._k - 1.0) ** 2 * (math.pi**2 / 8.0)
        heights = lax.exp(-(rate - rate[0]) / (small * small))
        below = (0.5 * math.log(2 * math.pi) - lax.log(small[..., 0])
                 - rate[0] / small[..., 0] ** 2 + lax.log(jnp.sum(heights, -1)))
        rise = jnp.sum(heights * (2.0 * rate / small**3 - 1.0 / small), -1) / jnp.sum(heights, -1)
        signs = 2.0 * (-1.0) ** (self._k - 1.0)
        squares = self._k**2
        falls = signs * lax.exp(-2.0 * (squares - 1.0) * large * large)
        above = -2.0 * large[..., 0] ** 2 + lax.log(jnp.sum(falls, -1))
        density = -2.0 * large[..., 0] ** 2 + lax.log(jnp.sum(falls * 4.0 * squares * large, -1))
        low = jnp.where(near, below, lax.log1p(-lax.exp(above)))
        high = jnp.where(near, lax.log1p(-lax.exp(jnp.minimum(below, -1e-3))), above)
        return low, high, jnp.where(near, below + lax.log(rise), density)

    def log_below(self, z: Array) -> Array:
        return self._series(z)[0].astype(z.dtype)

    def log_above(self, z: Array) -> Array:
        return self._series(z)[1].astype(z.dtype)

    def log_density(self, z: Array) -> Array:
        return self._series(z)[2].astype(z.dtype)

    def below(self, z: Array) -> Array:
        return lax.exp(self.log_below(z))

    def above(self, z: Array) -> Array:
        return lax.exp(self.log_above(z))

    def quantile(self, q: Array) -> Array:
        return self._found(q, False)

    def upper_quantile(self, q: Array) -> Array:
        return self._found(q, True)

    def _found(self, q: Array, upper: bool) -> Array:
        """From the first term of the series, by Newton's method."""
        p = q.astype(np.float64)
        tail, rest = (p, 1.0 - p) if upper else (1.0 - p, p)
        upper_start = lax.sqrt(-0.5 * lax.log(0.5 * jnp.minimum(tail, 0.8)))
        goal = lax.log(rest) - 0.5 * math.log(2 * math.pi)
        low = jnp.full_like(p, 0.6)
        for _ in range(3):
            low = math.pi / lax.sqrt(8.0 * jnp.maximum(-goal - lax.log(low), 1e-3))
        near = rest < 0.6
        z = lax.stop_gradient(jnp.where(near, jnp.minimum(low, 0.95), upper_start))
        wanted = jnp.where(near, lax.log(rest), lax.log(tail))
        for _ in range(5):
            z = lax.stop_gradient(z)
            below, above, density = self._series(z)
            own = jnp.where(near, below, above)
            step = (own - wanted) * lax.exp(own - density)
            z = jnp.where(near, z - step, z + step)
        return z.astype(q.dtype)


ksone, kstwo, kstwobign = KSOne("ksone"), KSTwo("kstwo"), KSTwoBigN("kstwobign")
