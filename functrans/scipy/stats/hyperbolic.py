"""Distributions whose densities have Bessel functions, and others that are integrated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.scipy import special
from functrans.scipy.special.common import HALF_LOG_2PI
from functrans.scipy.stats.accepting import accepted, moving_with
from functrans.scipy.stats.integrals import log_share
from functrans.scipy.stats.integrated import Integrated
from functrans.typing import Array

__all__ = ["gausshyper", "genhyperbolic", "geninvgauss", "norminvgauss", "rel_breitwigner"]


def _log_kve(order: Array, x: Array) -> Array:
    tall: Array = lax.log(special.kve(order, x))
    return tall


class GenInvGauss(Integrated):
    """The generalized inverse Gaussian distribution of shapes p and b.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.geninvgauss.cdf(1.0, 0.0, 1.0)), 4)
    0.5
    """

    shapes = ("p", "b")
    low = 0.0

    def possible(self, p: Array, b: Array) -> Array:
        return (p == p) & (b > 0)

    def middle(self, p: Array, b: Array) -> Array:
        root = jnp.hypot(p, b)
        return jnp.where(p > 0, (p + root) / b, b / (root - p))

    def log_density(self, z: Array, p: Array, b: Array) -> Array:
        root = lax.sqrt(z)
        return ((p - 1.0) * lax.log(z) - 0.5 * b * (root - 1.0 / root) ** 2 - math.log(2.0)
                - _log_kve(p, b))

    def _ratio(self, n: float, p: Array, b: Array) -> Array:
        return lax.exp(_log_kve(p + n, b) - _log_kve(p, b))

    def expected(self, p: Array, b: Array) -> Array:
        return self._ratio(1.0, p, b)

    def variance(self, p: Array, b: Array) -> Array:
        return self._ratio(2.0, p, b) - self._ratio(1.0, p, b) ** 2

    def draw(self, key: Array, like: Array, p: Array, b: Array) -> Array:
        def drawn(p: Array, b: Array) -> Array:
            return lax.exp(_log_of_gig(key, like, p, b))

        return moving_with(self, drawn, [p, b])


def _log_of_gig(key: Array, like: Array, p: Array, b: Array) -> Array:
    """Logarithms of generalized inverse Gaussian variables.

    Their density is log-concave: a flat piece and two exponential ones are above it.
    Source: Devroye, Statistics and Computing 24 (2014).
    """
    q, b = jnp.abs(p), jnp.broadcast_to(b, like.shape)
    a = b * b / (jnp.hypot(q, b) + q)

    def psi(x: Array) -> Array:
        return -a * (lax.cosh(x) - 1.0) - q * (lax.expm1(x) - x)

    def slope(x: Array) -> Array:
        return -a * lax.sinh(x) - q * lax.expm1(x)

    def place(size: Array, narrow: Array, wide: Array) -> Array:
        return jnp.where(size > 2.0, narrow, jnp.where(size < 0.5, wide, 1.0))

    one = jnp.ones_like(like)
    t = place(-psi(one), lax.sqrt(2.0 / (a + q)), lax.log(4.0 / (a + 2.0 * q)))
    steep = jnp.where(q > 0, 1.0 / jnp.where(q > 0, q, 1.0), math.inf)
    s = place(-psi(-one), lax.sqrt(4.0 / (a * math.cosh(1.0) + q)), jnp.minimum(
        steep, lax.log1p(1.0 / a + lax.sqrt(1.0 / (a * a) + 2.0 / a))))
    eta, zeta, theta, xi = -psi(t), -slope(t), -psi(-s), slope(-s)
    left, right = 1.0 / xi, 1.0 / zeta
    high, low = t - right * eta, s - left * theta
    flat = high + low

    def propose(key: Array) -> tuple[Array, Array]:
        tiny = float(np.finfo(np.float32).tiny)
        u, v, w = random.uniform(key, (3, *like.shape), like.dtype, minval=tiny)
        whole = u * (left + flat + right)
        x = jnp.where(whole < flat, -low + flat * v, jnp.where(
            whole < flat + right, high - right * lax.log(v), -low + left * lax.log(v)))
        above = jnp.where(x > high, -eta - zeta * (x - t), jnp.where(
            x < -low, -theta + xi * (x + s), 0.0))
        return x, lax.log(w) + above <= psi(x)

    x = accepted(key, like, propose)
    away = x + lax.asinh(q / b)
    return jnp.where(p < 0, -away, away)


class GenHyperbolic(Integrated):
    """The generalized hyperbolic distribution of shapes p, a and b, |b| < a.

    Source: Barndorff-Nielsen, Proc. Royal Society London A 353 (1977).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.genhyperbolic.cdf(0.0, 0.5, 1.5, 0.0)), 4)
    0.5
    """

    shapes = ("p", "a", "b")
    _mixing = GenInvGauss("geninvgauss")

    def possible(self, p: Array, a: Array, b: Array) -> Array:
        return (p == p) & (jnp.abs(b) < a)

    @staticmethod
    def _rate(a: Array, b: Array) -> Array:
        return lax.sqrt((a - b) * (a + b))

    def middle(self, p: Array, a: Array, b: Array) -> Array:
        return self.expected(p, a, b)

    def log_density(self, z: Array, p: Array, a: Array, b: Array) -> Array:
        rate, root = self._rate(a, b), jnp.hypot(z, jnp.ones_like(z))
        return (p * lax.log(rate) - HALF_LOG_2PI - (p - 0.5) * lax.log(a) - _log_kve(p, rate)
                + rate - a * root + b * z + (p - 0.5) * lax.log(root) + _log_kve(p - 0.5, a * root))

    def expected(self, p: Array, a: Array, b: Array) -> Array:
        rate = self._rate(a, b)
        return b / rate * self._mixing.expected(p, rate)

    def variance(self, p: Array, a: Array, b: Array) -> Array:
        rate = self._rate(a, b)
        return self._mixing.expected(p, rate) / rate + (b / rate) ** 2 * self._mixing.variance(
            p, rate)

    def draw(self, key: Array, like: Array, p: Array, a: Array, b: Array) -> Array:
        one, two = random.split(key)
        rate = self._rate(a, b)
        share = self._mixing.draw(one, like, p, rate) / rate
        return b * share + lax.sqrt(share) * random.normal(two, like.shape, like.dtype)


class NormInvGauss(Integrated):
    """The normal-inverse Gaussian distribution of shapes a and b, |b| < a.

    Source: Barndorff-Nielsen, Scandinavian J. Statistics 24 (1997).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.norminvgauss.cdf(0.0, 1.0, 0.0)), 4)
    0.5
    """

    shapes = ("a", "b")

    def possible(self, a: Array, b: Array) -> Array:
        return jnp.abs(b) < a

    @staticmethod
    def _rate(a: Array, b: Array) -> Array:
        return lax.sqrt((a - b) * (a + b))

    def middle(self, a: Array, b: Array) -> Array:
        return self.expected(a, b)

    def log_density(self, z: Array, a: Array, b: Array) -> Array:
        rate, root = self._rate(a, b), jnp.hypot(z, jnp.ones_like(z))
        # rate + b z - a root, of which a root is the larger part, squared and divided
        off = rate + b * z - a * root
        return lax.log(a / math.pi) + off - lax.log(root) + lax.log(special.k1e(a * root))

    def expected(self, a: Array, b: Array) -> Array:
        return b / self._rate(a, b)

    def variance(self, a: Array, b: Array) -> Array:
        return a * a / self._rate(a, b) ** 3

    def draw(self, key: Array, like: Array, a: Array, b: Array) -> Array:
        one, two = random.split(key)
        share = random.wald(one, 1.0 / self._rate(a, b), like.shape, like.dtype)
        return b * share + lax.sqrt(share) * random.normal(two, like.shape, like.dtype)


class RelBreitWigner(Integrated):
    """The relativistic Breit-Wigner distribution of shape rho, the mass over the width.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.rel_breitwigner.cdf(36.545, 36.545)), 3)
    0.517
    """

    shapes = positive = ("rho",)
    low = 0.0

    def middle(self, rho: Array) -> Array:
        return rho

    def log_density(self, z: Array, rho: Array) -> Array:
        # by the inverse of rho, squared, which is far from overflow
        root = jnp.hypot(1.0 / rho, jnp.ones_like(rho))
        front = 0.5 * lax.log(2.0 / (1.0 + root)) + lax.log(root) + math.log(2.0 / math.pi)
        off = (z - rho) * ((z + rho) / rho)
        size = jnp.abs(off)
        large = size > 1e8
        return front - jnp.where(large, 2.0 * lax.log(jnp.where(large, size, 1.0)),
                                 lax.log1p(jnp.where(large, 1.0, off) ** 2))

    def expected(self, rho: Array) -> Array:
        root = jnp.hypot(1.0 / rho, jnp.ones_like(rho))
        front = lax.sqrt(2.0 / (1.0 + root)) * root / math.pi
        return front * rho * (0.5 * math.pi + lax.atan(rho))

    def variance(self, rho: Array) -> Array:
        root = jnp.hypot(1.0 / rho, jnp.ones_like(rho))
        return rho * rho * root - self.expected(rho) ** 2

    def draw(self, key: Array, like: Array, rho: Array) -> Array:
        """By rejection from Cauchy variables, of rho or of 0."""
        def drawn(rho: Array) -> Array:
            low = rho < 0.5
            place, unit = jnp.where(low, 0.0, rho), jnp.where(low, lax.sqrt(rho), 1.0)

            def propose(key: Array) -> tuple[Array, Array]:
                one, two = random.split(key)
                z = place + unit * random.cauchy(one, like.shape, like.dtype)
                off = (z - rho) * ((z + rho) / rho)
                height = (1.0 + ((z - place) / unit) ** 2) / (1.0 + off * off)
                u = random.uniform(two, like.shape, like.dtype)
                return z, (z > 0) & (u * jnp.where(low, 1.8, 1.0) < height)

            return accepted(key, like, propose)

        return moving_with(self, drawn, [rho])


class GaussHyper(Integrated):
    """The Gauss hypergeometric distribution on [0, 1], of shapes a, b, c and z > -1.

    Source: Armero and Bayarri, J. Royal Statistical Society D 43 (1994).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.gausshyper.cdf(0.5, 1.0, 1.0, 0.0, 1.0)), 4)
    0.5
    """

    shapes = ("a", "b", "c", "z")
    low, high = 0.0, 1.0

    def possible(self, a: Array, b: Array, c: Array, z: Array) -> Array:
        return (a > 0) & (b > 0) & (c == c) & (z > -1)

    def middle(self, a: Array, b: Array, c: Array, z: Array) -> Array:
        return a / (a + b)

    @staticmethod
    def _log_curve(x: Array, y: Array, a: Array, b: Array, c: Array, z: Array) -> Array:
        return (special.xlogy(a - 1.0, x) + special.xlogy(b - 1.0, y)
                - c * lax.log1p(z * x))

    @staticmethod
    def _log_whole(a: Array, b: Array, c: Array, z: Array) -> Array:
        whole: Array = special.betaln(a, b) + lax.log(special.hyp2f1(c, a, a + b, -z))
        return whole

    def log_density(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return self._log_curve(z, 1.0 - z, *shapes) - self._log_whole(*shapes)

    def _log_tail(self, z: Array, *shapes: Array) -> tuple[Array, Array]:
        lower = z <= self.middle(*shapes)
        spread = [s[..., None] for s in shapes]

        def curve(near: Array) -> Array:
            """By the distances to the end of the tail."""
            x = jnp.where(lower[..., None], near, 1.0 - near)
            return self._log_curve(x, jnp.where(lower[..., None], 1.0 - near, near), *spread)

        return lower, log_share(curve, jnp.where(lower, z, 1.0 - z)) - self._log_whole(*shapes)

    def expected(self, a: Array, b: Array, c: Array, z: Array) -> Array:
        return lax.exp(self._log_whole(a + 1.0, b, c, z) - self._log_whole(a, b, c, z))

    def variance(self, a: Array, b: Array, c: Array, z: Array) -> Array:
        whole = self._log_whole(a, b, c, z)
        return lax.exp(self._log_whole(a + 2.0, b, c, z) - whole) - lax.exp(
            2.0 * (self._log_whole(a + 1.0, b, c, z) - whole))

    def draw(self, key: Array, like: Array, a: Array, b: Array, c: Array, z: Array) -> Array:
        """By rejection from beta variables, of the other factor's power at their mean.

        By the distance from 1 in place of x where the factor is log-concave in its logarithm.
        """
        def drawn(a: Array, b: Array, c: Array, z: Array) -> Array:
            turned = c * z < 0
            first, last = jnp.where(turned, b, a), jnp.where(turned, a, b)
            rise = jnp.where(turned, -z / (1.0 + z), z)
            power = jnp.zeros_like(c)
            for _ in range(4):
                near = (first - power) / (first + last - power)
                power = jnp.clip(c * rise * near / (1.0 + rise * near), 0.0, 0.9 * first)
            some = power > 0
            near = jnp.where(some, power / jnp.where(some, rise * (c - power), 1.0), 1e-30)

            def propose(key: Array) -> tuple[Array, Array]:
                one, two = random.split(key)
                x = random.beta(one, first - power, last, like.shape, like.dtype)
                u = random.uniform(two, like.shape, like.dtype)
                off = -c * (lax.log1p(rise * x) - lax.log1p(rise * near)) + power * (
                    lax.log(x) - lax.log(near))
                return jnp.where(turned, 1.0 - x, x), lax.log(u) <= off

            return accepted(key, like, propose)

        return moving_with(self, drawn, [a, b, c, z])


geninvgauss, genhyperbolic = GenInvGauss("geninvgauss"), GenHyperbolic("genhyperbolic")
norminvgauss, gausshyper = NormInvGauss("norminvgauss"), GaussHyper("gausshyper")
rel_breitwigner = RelBreitWigner("rel_breitwigner")
