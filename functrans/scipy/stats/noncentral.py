"""Noncentral squares of normal variables, and what is made of them."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.scipy import special
from functrans.scipy.special.common import loop
from functrans.scipy.stats.base import Discrete
from functrans.scipy.stats.slopes import drawn_with_slopes
from functrans.scipy.stats.tailed import HalfLine
from functrans.typing import Array

__all__ = ["ncx2", "rice", "skellam"]

_TERMS: Final = 4000

def _mixture(df: Array, nc: Array, z: Array, upper: bool) -> Array:
    """The mean of gamma probabilities whose shapes have a Poisson distribution, in float64.

    From the largest weight on terms are added to both sides, until they are too small to count.
    """
    df, half, y = (factor * v.astype(np.float64) for factor, v in ((1, df), (0.5, nc), (0.5, z)))
    share = special.gammaincc if upper else special.gammainc
    start = lax.floor(half)

    def weight(k: Array) -> Array:
        some = k >= 0
        safe = jnp.where(some, k, 0.0)
        return jnp.where(some, lax.exp(special.xlogy(safe, half) - half - lax.lgamma(safe + 1.0)),
                         0.0)

    def step(i: Any, total: Array, last: Array) -> tuple[Array, Array]:
        up, down = start + i, start - i
        high = weight(up) * share(0.5 * df + up, y)
        low = weight(down) * share(0.5 * df + jnp.maximum(down, 0.0), y)
        # tails of the upper side grow with the shape, their weights fall
        return total + high + low, weight(up) + weight(down)

    first = weight(start) * share(0.5 * df + start, y)

    def going(total: Array, last: Array) -> Array:
        return last > 1e-18 * jnp.maximum(total, 1e-300)

    return loop(step, (first, jnp.ones_like(first)), going, _TERMS)[0].astype(z.dtype)


class NCX2(HalfLine):
    """The noncentral chi-squared distribution of df degrees of freedom and noncentrality nc.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.ncx2.cdf(2.0, 2.0, 1.0)), 4)
    0.4699
    """

    shapes = ("df", "nc")

    def possible(self, df: Array, nc: Array) -> Array:
        return (df > 0) & (nc >= 0)

    def log_density(self, z: Array, df: Array, nc: Array) -> Array:
        some = nc > 0
        safe = jnp.where(some, nc, 1.0)
        order = 0.5 * df - 1.0
        root = lax.sqrt(safe * z)
        apart = lax.sqrt(z) - lax.sqrt(safe)
        tall = special.ive(order, root)
        log = -0.5 * apart * apart + 0.5 * order * lax.log(z / safe) + lax.log(
            0.5 * jnp.where(tall > 0, tall, 1e-300))
        central = special.xlogy(order, z) - 0.5 * z - lax.lgamma(0.5 * df) - 0.5 * df * math.log(2)
        return jnp.where(some, log, central)

    def below(self, z: Array, df: Array, nc: Array) -> Array:
        return _mixture(df, nc, z, False)

    def above(self, z: Array, df: Array, nc: Array) -> Array:
        return _mixture(df, nc, z, True)

    def expected(self, df: Array, nc: Array) -> Array:
        return df + nc

    def variance(self, df: Array, nc: Array) -> Array:
        return 2.0 * (df + 2.0 * nc)

    def draw(self, key: Array, like: Array, df: Array, nc: Array) -> Array:
        one, two = random.split(key)
        more = random.poisson(one, 0.5 * lax.stop_gradient(nc), like.shape).astype(like.dtype)
        half = random.gamma(two, 0.5 * lax.stop_gradient(df) + more, like.shape, like.dtype)
        return drawn_with_slopes(self, 2.0 * half, df, nc)


class Rice(HalfLine):
    """Rice's distribution: the length of a plane normal vector around a point at distance b.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.rice.cdf(1.0, 1.0)), 4)
    0.2671
    """

    shapes = ("b",)
    _other = NCX2("ncx2")

    def possible(self, b: Array) -> Array:
        return b >= 0

    def log_density(self, z: Array, b: Array) -> Array:
        tall = special.i0e(z * b)
        return lax.log(z) - 0.5 * (z - b) ** 2 + lax.log(tall)

    def below(self, z: Array, b: Array) -> Array:
        return self._other.below(z * z, jnp.full_like(z, 2.0), b * b)

    def above(self, z: Array, b: Array) -> Array:
        return self._other.above(z * z, jnp.full_like(z, 2.0), b * b)

    def expected(self, b: Array) -> Array:
        y = 0.25 * b * b
        inner = (1.0 + 2.0 * y) * special.i0e(y) + 2.0 * y * special.i1e(y)
        return math.sqrt(math.pi / 2) * inner

    def variance(self, b: Array) -> Array:
        return 2.0 + b * b - self.expected(b) ** 2

    def draw(self, key: Array, like: Array, b: Array) -> Array:
        x, y = random.normal(key, (2, *like.shape), like.dtype)
        return jnp.hypot(x + b, y)


class Skellam(Discrete):
    """Skellam's distribution: the difference of two Poisson variables of means mu1 and mu2.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.skellam.pmf(0, 1.0, 1.0)), 4)
    0.3085
    """

    shapes = positive = ("mu1", "mu2")
    _other = NCX2("ncx2")

    def ends(self, mu1: Array, mu2: Array) -> tuple[float, float]:
        return -math.inf, math.inf

    def log_probability(self, k: Array, mu1: Array, mu2: Array) -> Array:
        apart = lax.sqrt(mu1) - lax.sqrt(mu2)
        tall = special.ive(jnp.abs(k), 2.0 * lax.sqrt(mu1 * mu2))
        return -apart * apart + 0.5 * k * (lax.log(mu1) - lax.log(mu2)) + lax.log(
            jnp.where(tall > 0, tall, 1e-300))

    def below(self, k: Array, mu1: Array, mu2: Array) -> Array:
        low = k < 0
        df = 2.0 * jnp.where(low, -k, k + 1.0)
        own, other = jnp.where(low, mu1, mu2), jnp.where(low, mu2, mu1)
        at_low = self._other.below(2.0 * other, df, 2.0 * own)
        at_high = self._other.above(2.0 * other, df, 2.0 * own)
        return jnp.where(low, at_low, at_high)

    def above(self, k: Array, mu1: Array, mu2: Array) -> Array:
        return self.below(-k - 1.0, mu2, mu1)

    def expected(self, mu1: Array, mu2: Array) -> Array:
        return mu1 - mu2

    def variance(self, mu1: Array, mu2: Array) -> Array:
        return mu1 + mu2

    def draw(self, key: Array, like: Array, mu1: Array, mu2: Array) -> Array:
        one, two = (random.poisson(k, mu, like.shape) for k, mu in zip(
            random.split(key), (mu1, mu2), strict=True))
        return (one - two).astype(like.dtype)


ncx2, rice, skellam = NCX2("ncx2"), Rice("rice"), Skellam("skellam")
