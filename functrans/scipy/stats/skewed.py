"""Skewed and peaked continuous distributions, most of which have formulas for their tails."""

from __future__ import annotations

import math

from functrans import lax, random
from functrans import numpy as jnp
from functrans.nn.functions import log1mexp
from functrans.scipy import special
from functrans.scipy.special.common import HALF_LOG_2PI
from functrans.scipy.special.elementary import log1p_over
from functrans.scipy.stats.base import Continuous
from functrans.scipy.stats.bounded import VonMisesLine
from functrans.scipy.stats.tailed import HalfLine, Tailed
from functrans.typing import Array

__all__ = ["crystalball", "dpareto_lognorm", "genexpon", "jf_skew_t", "kappa4", "vonmises_line"]


class CrystalBall(Continuous):
    """The crystal ball function: normal, with a power m for its lower tail from -beta on.

    Source: Skwarnicki, thesis DESY F31-86-02 (1986).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.crystalball.cdf(0.0, 2.0, 3.0)), 4)
    0.5087
    """

    shapes = ("beta", "m")

    def possible(self, beta: Array, m: Array) -> Array:
        return (beta > 0) & (m > 1)

    @staticmethod
    def _logs(beta: Array, m: Array) -> tuple[Array, Array]:
        """The logarithms of the mass of the tail and of all, of the curve of height 1."""
        tail = lax.log(m / beta / (m - 1.0)) - 0.5 * beta * beta
        return tail, jnp.logaddexp(tail, HALF_LOG_2PI + special.log_ndtr(beta))

    @staticmethod
    def _fall(z: Array, beta: Array, m: Array) -> Array:
        """log of how much farther z is from the pole than -beta."""
        return lax.log1p(jnp.maximum(-beta - z, 0.0) * beta / m)

    def division(self, beta: Array, m: Array) -> Array:
        return -beta

    def log_density(self, z: Array, beta: Array, m: Array) -> Array:
        far = -0.5 * beta * beta - m * self._fall(z, beta, m)
        return jnp.where(z > -beta, -0.5 * z * z, far) - self._logs(beta, m)[1]

    def log_below(self, z: Array, beta: Array, m: Array) -> Array:
        tail, whole = self._logs(beta, m)
        far = tail - whole - (m - 1.0) * self._fall(z, beta, m)
        low = special.ndtr(-jnp.maximum(z, -beta))
        rest = special.ndtr(beta) - low  # of the normal part, up to z
        rest = jnp.where(z < 0, special.ndtr(z) - special.ndtr(-beta), rest)
        near = lax.log(lax.exp(tail) + lax.exp(HALF_LOG_2PI) * jnp.maximum(rest, 0.0)) - whole
        above = HALF_LOG_2PI + special.log_ndtr(-jnp.maximum(z, 0.0)) - whole
        return jnp.where(z > 0, log1mexp(-above), jnp.where(z > -beta, near, far))

    def log_above(self, z: Array, beta: Array, m: Array) -> Array:
        near = HALF_LOG_2PI + special.log_ndtr(-jnp.maximum(z, -beta)) - self._logs(beta, m)[1]
        far = jnp.minimum(self.log_below(jnp.minimum(z, -beta), beta, m), -1e-30)
        return jnp.where(z > -beta, near, log1mexp(-far))

    def below(self, z: Array, beta: Array, m: Array) -> Array:
        return lax.exp(self.log_below(z, beta, m))

    def above(self, z: Array, beta: Array, m: Array) -> Array:
        return lax.exp(self.log_above(z, beta, m))

    def quantile(self, q: Array, beta: Array, m: Array) -> Array:
        return self._found(lax.log(q), lax.log1p(-q), beta, m)

    def upper_quantile(self, q: Array, beta: Array, m: Array) -> Array:
        return self._found(lax.log1p(-q), lax.log(q), beta, m)

    def _found(self, log_below: Array, log_above: Array, beta: Array, m: Array) -> Array:
        tail, whole = self._logs(beta, m)
        far = log_below < tail - whole
        off = jnp.where(far, tail - whole - log_below, 0.0) / (m - 1.0)
        inner = jnp.minimum(log_above + whole - HALF_LOG_2PI, special.log_ndtr(beta))
        near = -special.ndtri_exp(jnp.where(far, -1.0, inner))
        return jnp.where(far, -beta - m / beta * lax.expm1(off), near)


class DParetoLogNorm(HalfLine):
    """The double Pareto lognormal distribution: lognormal of u and s, with powers a and b as tails.

    Source: Reed and Jorgensen, Communications in Statistics 33 (2004).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.dpareto_lognorm.cdf(1.0, 0.0, 1.0, 2.0, 2.0)), 4)
    0.5
    """

    shapes = ("u", "s", "a", "b")

    def possible(self, u: Array, s: Array, a: Array, b: Array) -> Array:
        return (s > 0) & (a > 0) & (b > 0) & (jnp.abs(u) < math.inf)

    @staticmethod
    def _log_mills(t: Array) -> Array:
        """log((1 - Phi(t)) / phi(t))."""
        right = t > 0
        far = lax.log(special.erfcx(jnp.where(right, t, 0.0) * math.sqrt(0.5)))
        near = special.log_ndtr(-jnp.where(right, 0.0, t)) + 0.5 * t * t
        return jnp.where(right, far + 0.5 * math.log(0.5 * math.pi), near + HALF_LOG_2PI)

    def _parts(self, z: Array, u: Array, s: Array, a: Array, b: Array) -> tuple[Array, ...]:
        y = (lax.log(z) - u) / s
        return (y, -0.5 * y * y - HALF_LOG_2PI, self._log_mills(a * s - y),
                self._log_mills(b * s + y))

    def log_density(self, z: Array, u: Array, s: Array, a: Array, b: Array) -> Array:
        _, normal, upper, lower = self._parts(z, u, s, a, b)
        return (lax.log(a) + lax.log(b) - lax.log(a + b) - lax.log(z) + normal
                + jnp.logaddexp(upper, lower))

    def log_below(self, z: Array, u: Array, s: Array, a: Array, b: Array) -> Array:
        y, normal, upper, lower = self._parts(z, u, s, a, b)
        # of the normal part, which the power of the other side takes a share of
        own = self._log_mills(-y)
        less = jnp.minimum(lax.log(b / (a + b)) + upper - own, -1e-30)
        return normal + jnp.logaddexp(own + log1mexp(-less), lax.log(a / (a + b)) + lower)

    def log_above(self, z: Array, u: Array, s: Array, a: Array, b: Array) -> Array:
        return self.log_below(1.0 / z, -u, s, b, a)

    def below(self, z: Array, u: Array, s: Array, a: Array, b: Array) -> Array:
        return lax.exp(self.log_below(z, u, s, a, b))

    def above(self, z: Array, u: Array, s: Array, a: Array, b: Array) -> Array:
        return lax.exp(self.log_above(z, u, s, a, b))

    def _raw(self, n: int, u: Array, s: Array, a: Array, b: Array) -> Array:
        some = a > n
        value = a * b / (jnp.where(some, a - n, 1.0) * (b + n)) * lax.exp(
            n * u + 0.5 * n * n * s * s)
        return jnp.where(some, value, math.inf)

    def expected(self, u: Array, s: Array, a: Array, b: Array) -> Array:
        return self._raw(1, u, s, a, b)

    def variance(self, u: Array, s: Array, a: Array, b: Array) -> Array:
        mean = self._raw(1, u, s, a, b)
        return jnp.where(a > 2, self._raw(2, u, s, a, b) - mean * mean, math.inf)

    def draw(self, key: Array, like: Array, u: Array, s: Array, a: Array, b: Array) -> Array:
        one, two = random.split(key)
        up, down = random.exponential(one, (2, *like.shape), like.dtype)
        return lax.exp(u + s * random.normal(two, like.shape, like.dtype) + up / a - down / b)


class GenExpon(Tailed):
    """The generalized exponential distribution, of hazard a + b (1 - exp(-c x)).

    Source: Ryu, J. Applied Probability 30 (1993).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.genexpon.cdf(1.0, 1.0, 1.0, 1.0)), 4)
    0.7454
    """

    shapes = positive = ("a", "b", "c")

    @staticmethod
    def _rise(z: Array, c: Array) -> Array:
        return -lax.expm1(-c * z)

    def log_density(self, z: Array, a: Array, b: Array, c: Array) -> Array:
        return lax.log(a + b * self._rise(z, c)) + self.log_above(z, a, b, c)

    def log_above(self, z: Array, a: Array, b: Array, c: Array) -> Array:
        w = c * z
        near = w < 0.1
        small = jnp.where(near, w, 0.0)
        # w - (1 - exp(-w)) = w^2 (1/2 - w/6 + ...), where the two cancel
        series = jnp.zeros_like(w)
        for k in range(11, 1, -1):
            series = (-1.0) ** k / math.factorial(k) + small * series
        return -a * z - b / c * jnp.where(near, small * small * series, w - self._rise(z, c))

    def from_log(self, log: Array, a: Array, b: Array, c: Array) -> Array:
        # Newton's method on a convex function, from above: the hazard is at least a and at most
        # a + b, which it is after 1 / c
        goal = -log
        z = jnp.minimum(goal / a, (goal + b / c) / (a + b))
        z = lax.fori_loop(0, 6, lambda i, z: jnp.maximum(z + (
            goal + self.log_above(z, a, b, c)) / (a + b * self._rise(z, c)), 0.0),
            lax.stop_gradient(z))
        z = lax.stop_gradient(z)
        return z + (goal + self.log_above(z, a, b, c)) / lax.stop_gradient(
            a + b * self._rise(z, c))


class JFSkewT(Continuous):
    """The skewed t distribution of Jones and Faddy, of shapes a and b.

    Source: Jones and Faddy, J. Royal Statistical Society B 65 (2003).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.jf_skew_t.cdf(0.0, 2.0, 2.0)), 4)
    0.5
    """

    shapes = positive = ("a", "b")

    @staticmethod
    def _shares(z: Array, a: Array, b: Array) -> tuple[Array, Array]:
        """(1 + w) / 2 and (1 - w) / 2 for w = z / sqrt(a + b + z^2)."""
        root = jnp.hypot(z, lax.sqrt(a + b))
        small = 0.5 * (a + b) / (root * (root + jnp.abs(z)))
        large = 1.0 - small
        return jnp.where(z > 0, large, small), jnp.where(z > 0, small, large)

    def log_density(self, z: Array, a: Array, b: Array) -> Array:
        x, y = self._shares(z, a, b)
        return ((a + 0.5) * lax.log(x) + (b + 0.5) * lax.log(y) + math.log(4.0)
                - special.betaln(a, b) - 0.5 * lax.log(a + b))

    def below(self, z: Array, a: Array, b: Array) -> Array:
        x, y = self._shares(z, a, b)
        return jnp.where(z > 0, special.betaincc(b, a, y), special.betainc(a, b, x))

    def above(self, z: Array, a: Array, b: Array) -> Array:
        return self.below(-z, b, a)

    def quantile(self, q: Array, a: Array, b: Array) -> Array:
        return self._place(special.betaincinv(a, b, q), special.betainccinv(b, a, q), a, b)

    def upper_quantile(self, q: Array, a: Array, b: Array) -> Array:
        return self._place(special.betainccinv(a, b, q), special.betaincinv(b, a, q), a, b)

    @staticmethod
    def _place(x: Array, y: Array, a: Array, b: Array) -> Array:
        return (x - y) * lax.sqrt(a + b) / (2.0 * lax.sqrt(x * y))

    def draw(self, key: Array, like: Array, a: Array, b: Array) -> Array:
        one, two = random.split(key)
        x = random.loggamma(one, a, like.shape, like.dtype)
        y = random.loggamma(two, b, like.shape, like.dtype)
        return lax.sinh(0.5 * (x - y)) * lax.sqrt(a + b)

    def expected(self, a: Array, b: Array) -> Array:
        some = (a > 0.5) & (b > 0.5)
        p, r = jnp.where(some, a, 1.0), jnp.where(some, b, 1.0)
        logs = (lax.lgamma(p - 0.5) + lax.lgamma(r - 0.5) - lax.lgamma(p) - lax.lgamma(r))
        return jnp.where(some, 0.5 * (p - r) * lax.sqrt(p + r) * lax.exp(logs), math.nan)


class Kappa4(Continuous):
    """Kappa's distribution of shapes h and k: 0 and -1 and 1 are other families.

    Source: Hosking, IBM J. Research and Development 38 (1994).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.kappa4.cdf(0.0, -1.0, 0.0)), 4)
    0.5
    """

    shapes = ("h", "k")

    def ends(self, h: Array, k: Array) -> tuple[Array, Array]:
        some = h > 0
        log = lax.log(jnp.where(some, h, 1.0))
        # where h exp(-w) is 1
        low = log * special.exprel(-k * log)
        below = jnp.where(k < 0, 1.0 / jnp.where(k < 0, k, 1.0), -math.inf)
        high = jnp.where(k > 0, 1.0 / jnp.where(k > 0, k, 1.0), math.inf)
        return jnp.where(some, low, below), high

    def _logs(self, z: Array, h: Array, k: Array) -> tuple[Array, Array]:
        w = log1p_over(z, -k)
        return w, -log1p_over(lax.exp(-w), -h)

    def log_density(self, z: Array, h: Array, k: Array) -> Array:
        w, log = self._logs(z, h, k)
        return (k - 1.0) * w + (1.0 - h) * log

    def log_below(self, z: Array, h: Array, k: Array) -> Array:
        return self._logs(z, h, k)[1]

    def below(self, z: Array, h: Array, k: Array) -> Array:
        return lax.exp(self.log_below(z, h, k))

    def above(self, z: Array, h: Array, k: Array) -> Array:
        return -lax.expm1(self.log_below(z, h, k))

    def log_above(self, z: Array, h: Array, k: Array) -> Array:
        return log1mexp(-self.log_below(z, h, k))

    @staticmethod
    def _from_log(log: Array, h: Array, k: Array) -> Array:
        w = -lax.log(-log * special.exprel(h * log))
        return w * special.exprel(-k * w)

    def quantile(self, q: Array, h: Array, k: Array) -> Array:
        return self._from_log(lax.log(q), h, k)

    def upper_quantile(self, q: Array, h: Array, k: Array) -> Array:
        return self._from_log(lax.log1p(-q), h, k)


crystalball, kappa4 = CrystalBall("crystalball"), Kappa4("kappa4")
dpareto_lognorm, genexpon = DParetoLogNorm("dpareto_lognorm"), GenExpon("genexpon")
jf_skew_t, vonmises_line = JFSkewT("jf_skew_t"), VonMisesLine("vonmises_line")
