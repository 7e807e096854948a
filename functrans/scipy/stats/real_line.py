"""Continuous distributions on the whole real line."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.scipy import special
from functrans.scipy.special.common import HALF_LOG_2PI
from functrans.scipy.special.densities import log1p_square
from functrans.scipy.stats.base import Continuous
from functrans.typing import Array

__all__ = ["cauchy", "exponnorm", "gennorm", "gumbel_l", "gumbel_r", "hypsecant", "johnsonsu",
           "laplace", "logistic", "norm", "skewnorm", "t"]

EULER: Final = float(np.euler_gamma)
_GAUSS = np.polynomial.legendre.leggauss(64)
_EXPONENT: Final = 40.0  # a tail ends where its density has fallen by exp(-40)


class Norm(Continuous):
    """The normal distribution of mean loc and standard deviation scale.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.norm.logpdf(0.0)), 4)
    -0.9189
    >>> float(ft.scipy.stats.norm.cdf(1.0, loc=1.0))
    0.5
    >>> ft.scipy.stats.norm.rvs(ft.random.key(0), loc=2.0, shape=(3,)).shape
    (3,)
    """

    def log_density(self, z: Array) -> Array:
        return -0.5 * z * z - HALF_LOG_2PI

    def below(self, z: Array) -> Array:
        return special.ndtr(z)

    def above(self, z: Array) -> Array:
        return special.ndtr(-z)

    def log_below(self, z: Array) -> Array:
        return special.log_ndtr(z)

    def log_above(self, z: Array) -> Array:
        return special.log_ndtr(-z)

    def quantile(self, q: Array) -> Array:
        return special.ndtri(q)

    def upper_quantile(self, q: Array) -> Array:
        return -special.ndtri(q)

    def expected(self) -> float:
        return 0.0

    def variance(self) -> float:
        return 1.0

    def information(self) -> float:
        return 0.5 + HALF_LOG_2PI

    def draw(self, key: Array, like: Array) -> Array:
        return random.normal(key, like.shape, like.dtype)


class Cauchy(Continuous):
    """The Cauchy distribution.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.cauchy.logpdf(0.0)), 4)
    -1.1447
    """

    def log_density(self, z: Array) -> Array:
        return -math.log(math.pi) - log1p_square(z)

    def below(self, z: Array) -> Array:
        # far below 0 the angle of 1 / z, where that of z and a quarter turn cancel
        return lax.atan2(jnp.ones_like(z), -z) / math.pi

    def above(self, z: Array) -> Array:
        return self.below(-z)

    def quantile(self, q: Array) -> Array:
        low, high = q < 0.25, q > 0.75
        middle = lax.tan(math.pi * (jnp.where(low | high, 0.5, q) - 0.5))
        # around the ends the tangent is one over that of the distance to the end
        first = -1.0 / lax.tan(math.pi * jnp.where(low, q, 0.25))
        last = 1.0 / lax.tan(math.pi * (1.0 - jnp.where(high, q, 0.75)))
        return jnp.where(low, first, jnp.where(high, last, middle))

    def upper_quantile(self, q: Array) -> Array:
        return -self.quantile(q)

    def information(self) -> float:
        return math.log(4 * math.pi)


class Laplace(Continuous):
    """The Laplace distribution.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.laplace.logpdf(1.0)), 4)
    -1.6931
    """

    def log_density(self, z: Array) -> Array:
        return -lax.abs(z) - math.log(2.0)

    def below(self, z: Array) -> Array:
        tail = 0.5 * lax.exp(-lax.abs(z))
        return jnp.where(z > 0, 1.0 - tail, tail)

    def above(self, z: Array) -> Array:
        return self.below(-z)

    def log_below(self, z: Array) -> Array:
        low = jnp.minimum(z, 0.0) - math.log(2.0)
        return jnp.where(z > 0, lax.log1p(-0.5 * lax.exp(-lax.abs(z))), low)

    def log_above(self, z: Array) -> Array:
        return self.log_below(-z)

    def quantile(self, q: Array) -> Array:
        low = q < 0.5
        return jnp.where(low, lax.log(2.0 * jnp.where(low, q, 0.5)),
                         -lax.log(2.0 * (1.0 - jnp.where(low, 0.5, q))))

    def upper_quantile(self, q: Array) -> Array:
        return -self.quantile(q)

    def expected(self) -> float:
        return 0.0

    def variance(self) -> float:
        return 2.0

    def information(self) -> float:
        return 1.0 + math.log(2.0)

    def draw(self, key: Array, like: Array) -> Array:
        return random.laplace(key, like.shape, like.dtype)


class LogisticDistribution(Continuous):
    """The logistic distribution.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.logistic.logpdf(0.0)), 4)
    -1.3863
    """

    functions = Continuous.functions | {"ppf": "x", "isf": "x"}  # the names of JAX

    def log_density(self, z: Array) -> Array:
        size = lax.abs(z)  # the density is even
        return -size - 2.0 * lax.log1p(lax.exp(-size))

    def below(self, z: Array) -> Array:
        return lax.logistic(z)

    def above(self, z: Array) -> Array:
        return lax.logistic(-z)

    def log_below(self, z: Array) -> Array:
        return special.log_expit(z)

    def log_above(self, z: Array) -> Array:
        return special.log_expit(-z)

    def quantile(self, q: Array) -> Array:
        return special.logit(q)

    def upper_quantile(self, q: Array) -> Array:
        return -special.logit(q)

    def expected(self) -> float:
        return 0.0

    def variance(self) -> float:
        return math.pi**2 / 3

    def information(self) -> float:
        return 2.0


class GumbelR(Continuous):
    """The Gumbel distribution of maxima.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.gumbel_r.logpdf(0.0))
    -1.0
    """

    functions = Continuous.functions | {"ppf": "p", "isf": "p"}  # the names of JAX

    def log_density(self, z: Array) -> Array:
        return -z - lax.exp(-z)

    def below(self, z: Array) -> Array:
        return lax.exp(-lax.exp(-z))

    def above(self, z: Array) -> Array:
        return -lax.expm1(-lax.exp(-z))

    def log_below(self, z: Array) -> Array:
        return -lax.exp(-z)

    def quantile(self, q: Array) -> Array:
        return -lax.log(-lax.log(q))

    def upper_quantile(self, q: Array) -> Array:
        return -lax.log(-lax.log1p(-q))

    def expected(self) -> float:
        return EULER

    def variance(self) -> float:
        return math.pi**2 / 6

    def information(self) -> float:
        return EULER + 1.0


class GumbelL(Continuous):
    """The Gumbel distribution of minima.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.gumbel_l.logpdf(0.0))
    -1.0
    """

    functions = Continuous.functions | {"ppf": "p", "isf": "p"}  # the names of JAX

    def log_density(self, z: Array) -> Array:
        return z - lax.exp(z)

    def below(self, z: Array) -> Array:
        return -lax.expm1(-lax.exp(z))

    def above(self, z: Array) -> Array:
        return lax.exp(-lax.exp(z))

    def log_above(self, z: Array) -> Array:
        return -lax.exp(z)

    def quantile(self, q: Array) -> Array:
        return lax.log(-lax.log1p(-q))

    def upper_quantile(self, q: Array) -> Array:
        return lax.log(-lax.log(q))

    def expected(self) -> float:
        return -EULER

    def variance(self) -> float:
        return math.pi**2 / 6

    def information(self) -> float:
        return EULER + 1.0


class HypSecant(Continuous):
    """The hyperbolic secant distribution.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.hypsecant.pdf(0.0)), 4)
    0.3183
    """

    def log_density(self, z: Array) -> Array:
        size = lax.abs(z)
        return math.log(2 / math.pi) - size - lax.log1p(lax.exp(-2.0 * size))

    def below(self, z: Array) -> Array:
        return (2 / math.pi) * lax.atan(lax.exp(z))

    def above(self, z: Array) -> Array:
        return self.below(-z)

    def quantile(self, q: Array) -> Array:
        # log of a tangent, by that of the smaller angle
        low = q < 0.5
        near = lax.log(lax.tan(0.5 * math.pi * jnp.where(low, q, 1.0 - q)))
        return jnp.where(low, near, -near)

    def upper_quantile(self, q: Array) -> Array:
        return -self.quantile(q)

    def expected(self) -> float:
        return 0.0

    def variance(self) -> float:
        return math.pi**2 / 4

    def information(self) -> float:
        return math.log(2 * math.pi)


class T(Continuous):
    """Student's t distribution with df degrees of freedom.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.t.logpdf(0.0, 1.0)), 4)
    -1.1447
    """

    shapes = positive = ("df",)

    def log_density(self, z: Array, df: Array) -> Array:
        normal = df == math.inf
        v = jnp.where(normal, 1.0, df)
        value = -special.betaln(0.5 * v, jnp.full_like(v, 0.5)) - 0.5 * lax.log(v) \
            - 0.5 * (v + 1.0) * log1p_square(z * lax.rsqrt(v))
        return jnp.where(normal, -0.5 * z * z - HALF_LOG_2PI, value)

    def below(self, z: Array, df: Array) -> Array:
        return special.stdtr(df, z)

    def above(self, z: Array, df: Array) -> Array:
        return special.stdtr(df, -z)

    def quantile(self, q: Array, df: Array) -> Array:
        return special.stdtrit(df, q)

    def upper_quantile(self, q: Array, df: Array) -> Array:
        return -special.stdtrit(df, q)

    def expected(self, df: Array) -> Array:
        return jnp.where(df > 1, 0.0, math.inf)

    def variance(self, df: Array) -> Array:
        some = df > 2
        value = df / jnp.where(some, df - 2.0, 1.0)
        return jnp.where(some, value, jnp.where(df > 1, math.inf, math.nan))

    def draw(self, key: Array, like: Array, df: Array) -> Array:
        return random.t(key, df, like.shape, like.dtype)


class GenNorm(Continuous):
    """The generalized normal distribution, of density exp(-|x|^beta) up to a factor.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.gennorm.logpdf(0.0, 1.0)), 4)
    -0.6931
    """

    shapes = positive = ("beta",)

    def log_density(self, z: Array, beta: Array) -> Array:
        return lax.log(0.5 * beta) - lax.lgamma(1.0 / beta) - self._power(z, beta)

    @staticmethod
    def _power(z: Array, beta: Array) -> Array:
        zero = z == 0
        size = lax.abs(jnp.where(zero, 1.0, z))
        return jnp.where(zero, 0.0, lax.exp(beta * lax.log(size)))

    def below(self, z: Array, beta: Array) -> Array:
        power = self._power(z, beta)
        # around 0 and far out, where the power is no number above 0, it has no slope
        small = power < 1e-20
        safe = jnp.minimum(jnp.where(small, 1.0, power), 1e30)
        near = 1.0 - lax.abs(z) * lax.exp(-lax.lgamma(1.0 + 1.0 / beta))
        tail = 0.5 * jnp.where(small, near, special.gammaincc(1.0 / beta, safe))
        return jnp.where(z > 0, 1.0 - tail, tail)

    def above(self, z: Array, beta: Array) -> Array:
        return self.below(-z, beta)

    def quantile(self, q: Array, beta: Array) -> Array:
        low = q < 0.5
        tail = 2.0 * jnp.where(low, q, 1.0 - q)
        power = special.gammainccinv(1.0 / beta, tail)
        # around the middle the first term of the series is left, also where the power is 0
        some = power > 1e-20
        size = jnp.where(some, lax.exp(lax.log(jnp.where(some, power, 1.0)) / beta),
                         (1.0 - tail) * lax.exp(lax.lgamma(1.0 + 1.0 / beta)))
        return jnp.where(low, -size, size)

    def upper_quantile(self, q: Array, beta: Array) -> Array:
        return -self.quantile(q, beta)

    def expected(self, beta: Array) -> Array:
        return jnp.zeros_like(beta)

    def variance(self, beta: Array) -> Array:
        return lax.exp(lax.lgamma(3.0 / beta) - lax.lgamma(1.0 / beta))


class SkewNorm(Continuous):
    """The skew normal distribution, of density 2 phi(x) Phi(a x).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.skewnorm.pdf(0.0, 3.0)), 4)
    0.3989
    """

    shapes = ("a",)

    def log_density(self, z: Array, a: Array) -> Array:
        return math.log(2.0) - 0.5 * z * z - HALF_LOG_2PI + special.log_ndtr(a * z)

    def below(self, z: Array, a: Array) -> Array:
        cancels, log_tail = self._log_tail(z, a)
        value = special.ndtr(z) - 2.0 * special.owens_t(z, a)
        return jnp.where(cancels, lax.exp(log_tail), value)

    def above(self, z: Array, a: Array) -> Array:
        return self.below(-z, -a)

    def log_below(self, z: Array, a: Array) -> Array:
        cancels, log_tail = self._log_tail(z, a)
        return jnp.where(cancels, log_tail, super().log_below(z, a))

    def log_above(self, z: Array, a: Array) -> Array:
        return self.log_below(-z, -a)

    def _log_tail(self, z: Array, a: Array) -> tuple[Array, Array]:
        """Where z is in a tail that the difference of two terms loses, and its logarithm.

        Of such an a and z the density falls at least as exp(-rate u) at a distance u from z.
        """
        cancels = (z < 0) & (a > 0) & (-z * (1.0 + a) > 0.5)
        most = 1e-3 * float(dtypes.finfo(z.dtype).max) ** 0.5
        gone = cancels & (-z * (1.0 + a) > most)  # beyond the numbers, as is the square
        place = jnp.where(cancels & ~gone, z, -1.0)
        slant = jnp.where(cancels & ~gone, a, 1.0)
        # phi / Phi is more than the distance from 0, and than its value there
        hazard = jnp.maximum(-slant * place, 0.79)
        length = lax.stop_gradient(_EXPONENT / (slant * hazard - place))
        steps = length[..., None] * (0.5 * (_GAUSS[0] + 1.0)).astype(z.dtype)
        start = self.log_density(place, slant)
        heights = lax.exp(self.log_density(place[..., None] - steps, slant[..., None])
                          - start[..., None])
        total = jnp.sum((0.5 * _GAUSS[1]).astype(z.dtype) * heights, -1)
        return cancels, jnp.where(gone, -math.inf, start + lax.log(length * total))

    def expected(self, a: Array) -> Array:
        return math.sqrt(2 / math.pi) * a * lax.rsqrt(1.0 + a * a)

    def variance(self, a: Array) -> Array:
        return 1.0 - self.expected(a) ** 2

    def draw(self, key: Array, like: Array, a: Array) -> Array:
        one, two = (random.normal(k, like.shape, like.dtype) for k in random.split(key))
        return (a * lax.abs(one) + two) * lax.rsqrt(1.0 + a * a)


class ExponNorm(Continuous):
    """The sum of a normal variable and an exponential one of mean K.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.exponnorm.pdf(0.0, 1.0)), 4)
    0.2616
    """

    shapes = positive = ("K",)

    def log_density(self, z: Array, K: Array) -> Array:
        rate = 1.0 / K
        return lax.log(rate) + rate * (0.5 * rate - z) + special.log_ndtr(z - rate)

    def below(self, z: Array, K: Array) -> Array:
        return special.ndtr(z) - K * lax.exp(self.log_density(z, K))

    def above(self, z: Array, K: Array) -> Array:
        return special.ndtr(-z) + K * lax.exp(self.log_density(z, K))

    def expected(self, K: Array) -> Array:
        return K

    def variance(self, K: Array) -> Array:
        return 1.0 + K * K

    def draw(self, key: Array, like: Array, K: Array) -> Array:
        one, two = random.split(key)
        return random.normal(one, like.shape, like.dtype) \
            + K * random.exponential(two, like.shape, like.dtype)


class JohnsonSU(Continuous):
    """Johnson's unbounded distribution: a + b asinh(x) is normal.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.johnsonsu.cdf(0.0, 0.0, 1.0)), 4)
    0.5
    """

    shapes = ("a", "b")
    positive = ("b",)

    def log_density(self, z: Array, a: Array, b: Array) -> Array:
        y = a + b * lax.asinh(z)
        return lax.log(b) - 0.5 * log1p_square(z) - 0.5 * y * y - HALF_LOG_2PI

    def below(self, z: Array, a: Array, b: Array) -> Array:
        return special.ndtr(a + b * lax.asinh(z))

    def above(self, z: Array, a: Array, b: Array) -> Array:
        return special.ndtr(-(a + b * lax.asinh(z)))

    def quantile(self, q: Array, a: Array, b: Array) -> Array:
        return lax.sinh((special.ndtri(q) - a) / b)

    def upper_quantile(self, q: Array, a: Array, b: Array) -> Array:
        return lax.sinh((-special.ndtri(q) - a) / b)


norm = Norm("norm")
cauchy = Cauchy("cauchy")
laplace = Laplace("laplace")
logistic = LogisticDistribution("logistic")
gumbel_r = GumbelR("gumbel_r")
gumbel_l = GumbelL("gumbel_l")
hypsecant = HypSecant("hypsecant")
t = T("t")
gennorm = GenNorm("gennorm")
skewnorm = SkewNorm("skewnorm")
exponnorm = ExponNorm("exponnorm")
johnsonsu = JohnsonSU("johnsonsu")
