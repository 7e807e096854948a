"""Sums of uniform variables, and Tukey's lambda."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.scipy import special
from functrans.scipy.special.common import partials
from functrans.scipy.special.roots import increasing_root
from functrans.scipy.stats.base import Continuous
from functrans.scipy.stats.tailed import HalfLine
from functrans.typing import Array

__all__ = ["irwinhall", "tukeylambda"]

_FEW: Final = 16  # up to which a sum is piecewise polynomial, and from which on a contour integral
_TAU: Final = 0.25 * np.arange(1.0, 241.0)


class IrwinHall(HalfLine):
    """The sum of n uniform numbers on [0, 1].

    Of up to 16 by the recurrence of B-splines, of more by Fourier's integral through the saddle
    point, which keeps the digits of tails. Source: de Boor (1972); Daniels (1954).

    >>> import functrans as ft
    >>> float(ft.scipy.stats.irwinhall.cdf(1.0, 2.0))
    0.5
    """

    shapes = ("n",)

    def possible(self, n: Array) -> Array:
        return (n >= 1) & (n == lax.floor(n))

    def ends(self, n: Array) -> tuple[float, Array]:
        return 0.0, n

    @staticmethod
    def _spline(z: Array, n: Array, more: float) -> tuple[Array, Array]:
        """B-splines of order n + more at the fraction of z and all whole steps from it."""
        order = jnp.minimum(n, float(_FEW))[..., None] + more
        whole = lax.floor(z)
        u = (z - whole)[..., None] + jnp.arange(_FEW + 1.0, dtype=z.dtype)
        first = (jnp.arange(_FEW + 1) == 0) & (u == u)

        def step(m: Any, b: Array) -> Array:
            size = jnp.asarray(m).astype(z.dtype)
            before = jnp.concatenate([jnp.zeros_like(b[..., :1]), b[..., :-1]], -1)
            new = (u * b + jnp.maximum(size - u, 0.0) * before) / (size - 1.0)
            return jnp.where(size <= order, new, b)

        return lax.fori_loop(2, _FEW + 2, step, first.astype(z.dtype)), whole[..., None]

    @staticmethod
    def _contour(y: Array, n: Array, upper: bool) -> Array:
        """The logarithm of the density at y >= 0 from the middle, or of what is above."""
        ratio = jnp.clip(2.0 * y / n, 0.0, 1.0 - 1e-12)
        s = 2.0 * ratio * (3.0 - ratio * ratio) / (1.0 - ratio * ratio)

        def slopes(s: Array) -> tuple[Array, Array]:
            """The derivatives of log(sinh(s / 2) / (s / 2))."""
            small = s < 0.1
            safe = jnp.where(small, 1.0, s)
            first = jnp.where(small, s / 12.0 - s**3 / 720.0,
                              0.5 / lax.tanh(0.5 * safe) - 1.0 / safe)
            tall = lax.exp(-safe)
            second = jnp.where(small, 1.0 / 12.0 - s * s / 240.0,
                               1.0 / (safe * safe) - tall / (1.0 - tall) ** 2)
            return first, second

        def newton(i: Any, s: Array) -> Array:
            first, second = slopes(s)
            return jnp.maximum(s - (first - y / n) / second, 0.0)

        s = lax.stop_gradient(lax.fori_loop(0, 6, newton, s))
        width = lax.stop_gradient(1.0 / lax.sqrt(n * slopes(s)[1]))
        if upper:
            s = jnp.maximum(s, 1.6 * width)
        tall = lax.exp(-s)
        front = n * (0.5 * s + lax.log(jnp.where(s > 1e-8, -lax.expm1(-s) / jnp.where(
            s > 1e-8, s, 1.0), 1.0))) - s * y
        s_, t, tall = s[..., None], width[..., None] * _TAU, tall[..., None]
        # of sinh(z / 2) / (z / 2) relative to its value at s
        swing = 2.0 * lax.sin(0.5 * t)
        gap = jnp.where(s_ > 1e-8, 1.0 - tall, 1e-8)
        size = 0.5 * (lax.log1p(tall * (swing / gap) ** 2) - lax.log1p((t / jnp.maximum(
            s_, 1e-8)) ** 2))
        angle = lax.atan2(lax.sin(0.5 * t) * (1.0 + tall), lax.cos(0.5 * t) * gap) - lax.atan2(
            t, jnp.maximum(s_, 1e-8))
        phase = n[..., None] * angle - t * y[..., None]
        heights = lax.exp(n[..., None] * size)
        if upper:
            real = lax.cos(phase) * s_ + lax.sin(phase) * t
            total = 0.5 / s + jnp.sum(heights * real / (s_ * s_ + t * t), -1)
        else:
            total = 0.5 + jnp.sum(heights * lax.cos(phase), -1)
        total = 0.25 * width * total / math.pi
        return front + lax.log(jnp.maximum(total, 1e-300))

    def _sides(self, z: Array, n: Array) -> tuple[Array, Array]:
        dtype = z.dtype
        z, n = z.astype(np.float64), n.astype(np.float64)
        few = n <= _FEW
        parts, whole = self._spline(jnp.where(few, z, 0.0), n, 1.0)
        at = jnp.arange(_FEW + 1.0)
        low = jnp.sum(jnp.where(at <= whole, parts, 0.0), -1)
        high = jnp.sum(jnp.where(at > whole, parts, 0.0), -1)
        many = jnp.where(few, 20.0, n)
        y = jnp.where(few, 0.0, z - 0.5 * many)
        tail = lax.exp(self._contour(jnp.abs(y), many, True))
        own = jnp.where(y > 0, 1.0 - tail, tail)
        return (jnp.where(few, low, own).astype(dtype),
                jnp.where(few, high, jnp.where(y > 0, tail, 1.0 - tail)).astype(dtype))

    def log_density(self, z: Array, n: Array) -> Array:
        dtype = z.dtype
        z, n = z.astype(np.float64), n.astype(np.float64)
        few = n <= _FEW
        parts, whole = self._spline(jnp.where(few, z, 0.0), n, 0.0)
        # of the last point as of those before it
        at = jnp.minimum(whole, n[..., None] - 1.0)
        found = jnp.sum(jnp.where(jnp.arange(_FEW + 1.0) == at, parts, 0.0), -1)
        found = jnp.where((n == 1) & few, 1.0, found)
        many = jnp.where(few, 20.0, n)
        y = jnp.where(few, 0.0, jnp.abs(z - 0.5 * many))
        return jnp.where(few, lax.log(found), self._contour(y, many, False)).astype(dtype)

    def below(self, z: Array, n: Array) -> Array:
        return self._sides(z, n)[0]

    def above(self, z: Array, n: Array) -> Array:
        return self._sides(z, n)[1]

    def expected(self, n: Array) -> Array:
        return 0.5 * n

    def variance(self, n: Array) -> Array:
        return n / 12.0

    def draw(self, key: Array, like: Array, n: Array) -> Array:
        most = jnp.max(n)

        def step(state: Any) -> Any:
            k, total = state
            u = random.uniform(random.fold_in(key, k), like.shape, like.dtype)
            return k + 1, total + jnp.where(k < n, u, 0.0)

        start = (jnp.zeros((), np.int32), jnp.zeros_like(like))
        out: Array = lax.while_loop(lambda state: state[0] < most, step, start)[1]
        return out


class TukeyLambda(Continuous):
    """Tukey's lambda distribution, which states its quantiles: (q^lam - (1 - q)^lam) / lam.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.tukeylambda.cdf(0.5, 1.0)), 4)
    0.75
    """

    shapes = ("lam",)

    def ends(self, lam: Array) -> tuple[Array, Array]:
        end = jnp.where(lam > 0, 1.0 / jnp.where(lam > 0, lam, 1.0), math.inf)
        return -end, end

    @staticmethod
    def _place(log_q: Array, log_rest: Array, lam: Array) -> Array:
        return log_q * special.exprel(lam * log_q) - log_rest * special.exprel(lam * log_rest)

    @staticmethod
    def _logs(y: Array) -> tuple[Array, Array]:
        return -special.softplus(-y), -special.softplus(y)

    def _logit(self, z: Array, lam: Array) -> Array:
        """The logit of the probability below z."""
        def slope(y: Array, lam: Array) -> Array:
            low, high = self._logs(y)
            return lax.exp(lam * low + high) + lax.exp(low + lam * high)

        def found(z: Array, lam: Array) -> Array:
            def miss(y: Array) -> tuple[Array, Array]:
                return self._place(*self._logs(y), lam) - z, slope(y, lam)

            far = jnp.full_like(z, 800.0) / jnp.maximum(1.0, jnp.abs(lam))
            far = jnp.where(lam < 0, far, 800.0)
            return increasing_root(miss, -far, far, 0.0 * z)

        def turn(y: Array, z: Array, lam: Array) -> Array:
            low, high = self._logs(y)

            def part(log: Array) -> Array:  # d/dlam of (exp(lam log) - 1) / lam
                w = lam * log
                small = jnp.abs(w) < 1e-3
                safe = jnp.where(small, 1.0, w)
                series = 0.5 + w * (1 / 3 + w * (1 / 8 + w / 30))
                rest = (lax.exp(safe) * (safe - 1.0) + 1.0) / (safe * safe)
                return log * log * jnp.where(small, series, rest)

            return -(part(low) - part(high)) / slope(y, lam)

        out: Array = partials(lambda y, z, lam: 1.0 / slope(y, lam), turn)(found)(
            z.astype(np.float64), lam.astype(np.float64))
        return out

    def log_density(self, z: Array, lam: Array) -> Array:
        low, high = self._logs(self._logit(z, lam))
        power = lam.astype(np.float64) - 1.0
        return -jnp.logaddexp(power * low, power * high).astype(z.dtype)

    def log_below(self, z: Array, lam: Array) -> Array:
        return self._logs(self._logit(z, lam))[0].astype(z.dtype)

    def log_above(self, z: Array, lam: Array) -> Array:
        return self._logs(self._logit(z, lam))[1].astype(z.dtype)

    def below(self, z: Array, lam: Array) -> Array:
        return lax.exp(self.log_below(z, lam))

    def above(self, z: Array, lam: Array) -> Array:
        return lax.exp(self.log_above(z, lam))

    def quantile(self, q: Array, lam: Array) -> Array:
        return self._place(lax.log(q), lax.log1p(-q), lam)

    def upper_quantile(self, q: Array, lam: Array) -> Array:
        return -self.quantile(q, lam)

    def division(self, lam: Array) -> Array:
        return jnp.zeros_like(lam)

    def expected(self, lam: Array) -> Array:
        return jnp.where(lam > -1, 0.0, math.nan)


irwinhall, tukeylambda = IrwinHall("irwinhall"), TukeyLambda("tukeylambda")
