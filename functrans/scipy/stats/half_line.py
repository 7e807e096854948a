"""Continuous distributions on a half line."""

from __future__ import annotations

import math
from typing import Final

from functrans import lax, random
from functrans import numpy as jnp
from functrans.scipy import special
from functrans.scipy.special.beta_integral import beta_at_odds
from functrans.scipy.special.common import HALF_LOG_2PI, in_double, partials
from functrans.scipy.special.densities import log1p_square
from functrans.scipy.stats.gamma_powers import Transformed
from functrans.scipy.stats.real_line import norm
from functrans.scipy.stats.slopes import log_mills
from functrans.scipy.stats.tailed import HalfLine
from functrans.typing import Array

__all__ = ["betaprime", "f", "fisk", "halfcauchy", "halflogistic", "halfnorm", "invgamma",
           "invgauss", "levy", "lognorm"]

_LOG_2: Final = math.log(2.0)


class LogNorm(Transformed):
    """The log-normal distribution: log(x) is normal of standard deviation s.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.lognorm.cdf(1.0, 0.5)), 4)
    0.5
    """

    shapes = positive = ("s",)

    def inner(self, z: Array, s: Array) -> tuple[Array, tuple[Array, ...]]:
        return lax.log(z) / s, ()

    def outer(self, y: Array, s: Array) -> Array:
        return lax.exp(s * y)

    def log_density(self, z: Array, s: Array) -> Array:
        some = z > 0
        log = lax.log(jnp.where(some, z, 1.0))
        return jnp.where(some, -0.5 * (log / s) ** 2 - lax.log(s) - log - HALF_LOG_2PI, -math.inf)

    def expected(self, s: Array) -> Array:
        return lax.exp(0.5 * s * s)

    def variance(self, s: Array) -> Array:
        return lax.expm1(s * s) * lax.exp(s * s)

    def information(self, s: Array) -> Array:
        return 0.5 + HALF_LOG_2PI + lax.log(s)


LogNorm.base = norm


class HalfNorm(HalfLine):
    """The half-normal distribution: the size of a normal variable.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.halfnorm.pdf(0.0)), 4)
    0.7979
    """

    def log_density(self, z: Array) -> Array:
        return 0.5 * math.log(2 / math.pi) - 0.5 * z * z

    def below(self, z: Array) -> Array:
        return lax.erf(z * math.sqrt(0.5))

    def above(self, z: Array) -> Array:
        return lax.erfc(z * math.sqrt(0.5))

    def log_above(self, z: Array) -> Array:
        near = z < 0.5
        small, large = jnp.where(near, z, 0.25), jnp.where(near, 1.0, z)
        return jnp.where(near, lax.log1p(-lax.erf(small * math.sqrt(0.5))),
                         _LOG_2 + special.log_ndtr(-large))

    def quantile(self, q: Array) -> Array:
        return math.sqrt(2.0) * lax.erf_inv(q)

    def upper_quantile(self, q: Array) -> Array:
        return -special.ndtri(0.5 * q)

    def expected(self) -> float:
        return math.sqrt(2 / math.pi)

    def variance(self) -> float:
        return 1 - 2 / math.pi

    def information(self) -> float:
        return 0.5 * math.log(math.pi / 2) + 0.5

    def draw(self, key: Array, like: Array) -> Array:
        return lax.abs(random.normal(key, like.shape, like.dtype))


class HalfCauchy(HalfLine):
    """The half-Cauchy distribution: the size of a Cauchy variable.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.halfcauchy.cdf(1.0)), 4)
    0.5
    """

    def log_density(self, z: Array) -> Array:
        return math.log(2 / math.pi) - log1p_square(z)

    def below(self, z: Array) -> Array:
        return (2 / math.pi) * lax.atan(z)

    def above(self, z: Array) -> Array:
        return (2 / math.pi) * lax.atan2(jnp.ones_like(z), z)

    def quantile(self, q: Array) -> Array:
        return lax.tan(0.5 * math.pi * q)

    def upper_quantile(self, q: Array) -> Array:
        return 1.0 / lax.tan(0.5 * math.pi * q)

    def information(self) -> float:
        return math.log(2 * math.pi)


class HalfLogistic(HalfLine):
    """The half-logistic distribution: the size of a logistic variable.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.halflogistic.pdf(0.0))
    0.5
    """

    def log_density(self, z: Array) -> Array:
        return _LOG_2 - z - 2.0 * lax.log1p(lax.exp(-z))

    def below(self, z: Array) -> Array:
        return lax.tanh(0.5 * z)

    def above(self, z: Array) -> Array:
        return 2.0 * lax.logistic(-z)

    def quantile(self, q: Array) -> Array:
        return 2.0 * lax.atanh(q)

    def upper_quantile(self, q: Array) -> Array:
        return lax.log1p(1.0 - q) - lax.log(q)

    def expected(self) -> float:
        return 2 * _LOG_2

    def variance(self) -> float:
        return math.pi**2 / 3 - 4 * _LOG_2**2

    def information(self) -> float:
        return 2 - _LOG_2


class InvGamma(HalfLine):
    """The inverse gamma distribution of shape a.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.invgamma.logpdf(1.0, 1.0)), 4)
    -1.0
    """

    shapes = positive = ("a",)

    def log_density(self, z: Array, a: Array) -> Array:
        some = z > 0
        safe = jnp.where(some, z, 1.0)
        value = -(a + 1.0) * lax.log(safe) - lax.lgamma(a) - 1.0 / safe
        return jnp.where(some, value, -math.inf)

    def below(self, z: Array, a: Array) -> Array:
        return special.gammaincc(a, 1.0 / z)

    def above(self, z: Array, a: Array) -> Array:
        return special.gammainc(a, 1.0 / z)

    def quantile(self, q: Array, a: Array) -> Array:
        return 1.0 / special.gammainccinv(a, q)

    def upper_quantile(self, q: Array, a: Array) -> Array:
        return 1.0 / special.gammaincinv(a, q)

    def expected(self, a: Array) -> Array:
        return jnp.where(a > 1, 1.0 / jnp.where(a > 1, a - 1.0, 1.0), math.inf)

    def variance(self, a: Array) -> Array:
        b = jnp.where(a > 2, a, 3.0)
        return jnp.where(a > 2, 1.0 / ((b - 1.0) ** 2 * (b - 2.0)), math.inf)

    def information(self, a: Array) -> Array:
        return a - (a + 1.0) * lax.digamma(a) + lax.lgamma(a)

    def draw(self, key: Array, like: Array, a: Array) -> Array:
        return 1.0 / random.gamma(key, a, like.shape, like.dtype)


class F(HalfLine):
    """The F distribution with dfn and dfd degrees of freedom.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.f.cdf(1.0, 2.0, 2.0)), 4)
    0.5
    """

    shapes = positive = ("dfn", "dfd")

    def log_density(self, z: Array, dfn: Array, dfd: Array) -> Array:
        m, n = 0.5 * dfn, 0.5 * dfd
        return m * lax.log(dfn / dfd) + special.xlogy(m - 1.0, z) - special.betaln(m, n) \
            - (m + n) * lax.log1p(dfn / dfd * z)

    def below(self, z: Array, dfn: Array, dfd: Array) -> Array:
        return special.fdtr(dfn, dfd, z)

    def above(self, z: Array, dfn: Array, dfd: Array) -> Array:
        return special.fdtrc(dfn, dfd, z)

    def quantile(self, q: Array, dfn: Array, dfd: Array) -> Array:
        return special.fdtri(dfn, dfd, q)

    def upper_quantile(self, q: Array, dfn: Array, dfd: Array) -> Array:
        return 1.0 / special.fdtri(dfd, dfn, q)

    def expected(self, dfn: Array, dfd: Array) -> Array:
        return jnp.where(dfd > 2, dfd / jnp.where(dfd > 2, dfd - 2.0, 1.0), math.inf)

    def draw(self, key: Array, like: Array, dfn: Array, dfd: Array) -> Array:
        one, two = random.split(key)
        return random.gamma(one, 0.5 * dfn, like.shape, like.dtype) / dfn \
            / (random.gamma(two, 0.5 * dfd, like.shape, like.dtype) / dfd)


def _share_of_odds(a: Array, b: Array, odds: Array) -> Array:
    out: Array = in_double(beta_at_odds, [a, b, odds])
    return out


class BetaPrime(HalfLine):
    """The beta prime distribution: x / (1 + x) is a beta variable.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.betaprime.cdf(1.0, 2.0, 2.0)), 4)
    0.5
    """

    shapes = positive = ("a", "b")

    def log_density(self, z: Array, a: Array, b: Array) -> Array:
        return special.xlogy(a - 1.0, z) - (a + b) * lax.log1p(z) - special.betaln(a, b)

    def below(self, z: Array, a: Array, b: Array) -> Array:
        return _share_of_odds(a, b, z)

    def above(self, z: Array, a: Array, b: Array) -> Array:
        return _share_of_odds(b, a, 1.0 / z)

    def quantile(self, q: Array, a: Array, b: Array) -> Array:
        return special.fdtri(2.0 * a, 2.0 * b, q) * (a / b)

    def upper_quantile(self, q: Array, a: Array, b: Array) -> Array:
        return (a / b) / special.fdtri(2.0 * b, 2.0 * a, q)

    def expected(self, a: Array, b: Array) -> Array:
        return jnp.where(b > 1, a / jnp.where(b > 1, b - 1.0, 1.0), math.inf)


class Fisk(HalfLine):
    """The log-logistic distribution of shape c.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.fisk.cdf(1.0, 2.0))
    0.5
    """

    shapes = positive = ("c",)

    def log_density(self, z: Array, c: Array) -> Array:
        some = z > 0
        log = lax.log(jnp.where(some, z, 1.0))
        value = lax.log(c) - log + special.log_expit(c * log) + special.log_expit(-c * log)
        at_zero = jnp.where(c == 1, 0.0, jnp.where(c > 1, -math.inf, math.inf))
        return jnp.where(some, value, at_zero)

    def below(self, z: Array, c: Array) -> Array:
        return lax.logistic(c * lax.log(z))

    def above(self, z: Array, c: Array) -> Array:
        return lax.logistic(-c * lax.log(z))

    def quantile(self, q: Array, c: Array) -> Array:
        return lax.exp(special.logit(q) / c)

    def upper_quantile(self, q: Array, c: Array) -> Array:
        return lax.exp(-special.logit(q) / c)


class Levy(HalfLine):
    """The Lévy distribution: one over the square of a normal variable.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.levy.cdf(1.0)), 4)
    0.3173
    """

    def log_density(self, z: Array) -> Array:
        some = z > 0
        safe = jnp.where(some, z, 1.0)
        return jnp.where(some, -0.5 / safe - 1.5 * lax.log(safe) - HALF_LOG_2PI, -math.inf)

    def below(self, z: Array) -> Array:
        return lax.erfc(lax.sqrt(0.5 / z))

    def above(self, z: Array) -> Array:
        return lax.erf(lax.sqrt(0.5 / z))

    def quantile(self, q: Array) -> Array:
        return 1.0 / special.ndtri(0.5 * q) ** 2

    def upper_quantile(self, q: Array) -> Array:
        return 0.5 / lax.erf_inv(q) ** 2


class InvGauss(HalfLine):
    """The inverse Gaussian distribution of mean mu.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.invgauss.pdf(1.0, 1.0)), 4)
    0.3989
    """

    shapes = positive = ("mu",)

    def log_density(self, z: Array, mu: Array) -> Array:
        some = z > 0
        safe = jnp.where(some, z, 1.0)
        score = (safe - mu) / mu / lax.sqrt(safe)
        value = -HALF_LOG_2PI - 1.5 * lax.log(safe) - 0.5 * score * score
        return jnp.where(some, value, -math.inf)

    def _parts(self, z: Array, mu: Array) -> tuple[Array, Array]:
        """The standard score, and the logarithm of what the normal distribution lacks."""
        root = lax.rsqrt(z)
        return root * (z - mu) / mu, 2.0 / mu + special.log_ndtr(-root * (z + mu) / mu)

    def below(self, z: Array, mu: Array) -> Array:
        score, rest = self._parts(z, mu)
        return special.ndtr(score) + lax.exp(rest)

    def above(self, z: Array, mu: Array) -> Array:
        return lax.exp(self.log_above(z, mu))

    def log_below(self, z: Array, mu: Array) -> Array:
        def value(z: Array, mu: Array) -> Array:
            score, rest = self._parts(z, mu)
            return jnp.logaddexp(special.log_ndtr(score), rest)

        def by_z(out: Array, z: Array, mu: Array) -> Array:
            plain = self.log_density(z, mu) - out
            return lax.exp(jnp.where(z < mu, self.log_rate_below(z, mu), plain))

        def by_mu(out: Array, z: Array, mu: Array) -> Array:
            own, other = self._mills(z, mu)
            share = jnp.where(z < mu, other - jnp.logaddexp(own, other),
                              self._parts(z, mu)[1] - out)
            return -2.0 / mu / mu * lax.exp(share)

        found: Array = partials(by_z, by_mu)(value)(z, mu)
        return found

    def log_above(self, z: Array, mu: Array) -> Array:
        def value(z: Array, mu: Array) -> Array:
            score, rest = self._parts(z, mu)
            right = score > 1.0
            one, share, near = self._far_tail(z, mu)
            tail = lax.log(one) + lax.log(share) - 0.5 * near * near - _LOG_2
            normal = special.log_ndtr(-jnp.where(right, 0.0, score))
            less = jnp.where(right, -1.0, rest) - normal
            return jnp.where(right, tail, normal + lax.log1p(-lax.exp(less)))

        def by_z(out: Array, z: Array, mu: Array) -> Array:
            plain = self.log_density(z, mu) - out
            right = self._parts(z, mu)[0] > 1.0
            return -lax.exp(jnp.where(right, self.log_rate_above(z, mu), plain))

        def by_mu(out: Array, z: Array, mu: Array) -> Array:
            # less the slope of the distribution function, which the second of its terms has
            score, rest = self._parts(z, mu)
            _, share, _ = self._far_tail(z, mu)
            right = score > 1.0
            plain = lax.exp(jnp.where(right, -1.0, rest - out))
            return 2.0 / mu / mu * jnp.where(right, (1.0 - share) / share, plain)

        found: Array = partials(by_z, by_mu)(value)(z, mu)
        return found

    def log_rate_above(self, z: Array, mu: Array) -> Array:
        one, share, _ = self._far_tail(z, mu)
        return _LOG_2 - HALF_LOG_2PI - 1.5 * lax.log(z) - lax.log(one) - lax.log(share)

    def log_rate_below(self, z: Array, mu: Array) -> Array:
        return -1.5 * lax.log(z) - jnp.logaddexp(*self._mills(z, mu))

    def _mills(self, z: Array, mu: Array) -> tuple[Array, Array]:
        """For z < mu the logarithms of both terms over the normal density of the score."""
        score, _ = self._parts(z, mu)
        return log_mills(jnp.minimum(score, 0.0)), log_mills(-lax.rsqrt(z) * (z + mu) / mu)

    def _far_tail(self, z: Array, mu: Array) -> tuple[Array, Array, Array]:
        """The tail for a score above 1 by two near scaled error functions, times half of exp.

        The first, what is left of it less the second, and the score or 1.
        """
        near = jnp.maximum(self._parts(z, mu)[0], 1.0)
        apart = 2.0 * lax.rsqrt(z)
        other = near + apart
        far = near > 1e4
        one, two = (special.erfcx(math.sqrt(0.5) * v) for v in (near, other))
        return one, jnp.where(far, apart / other, 1.0 - jnp.where(far, 0.5, two / one)), near

    def expected(self, mu: Array) -> Array:
        return mu

    def variance(self, mu: Array) -> Array:
        return mu * mu * mu


lognorm = LogNorm("lognorm")
halfnorm = HalfNorm("halfnorm")
halfcauchy = HalfCauchy("halfcauchy")
halflogistic = HalfLogistic("halflogistic")
invgamma = InvGamma("invgamma")
f = F("f")
betaprime = BetaPrime("betaprime")
fisk = Fisk("fisk")
levy = Levy("levy")
invgauss = InvGauss("invgauss")
