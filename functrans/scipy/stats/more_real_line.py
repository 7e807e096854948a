"""More distributions on the real line."""

from __future__ import annotations

import math
from typing import Any

from functrans import lax, random
from functrans import numpy as jnp
from functrans.nn.functions import log1mexp
from functrans.scipy import special
from functrans.scipy.special.common import HALF_LOG_2PI
from functrans.scipy.special.densities import log1p_square
from functrans.scipy.special.elementary import log1p_over
from functrans.scipy.stats.base import Continuous, Discrete
from functrans.scipy.stats.more_half_line import power_of
from functrans.scipy.stats.tailed import EULER
from functrans.typing import Array

__all__ = ["dgamma", "dweibull", "genextreme", "genlogistic", "laplace_asymmetric", "loggamma",
           "moyal", "pearson3", "powernorm", "skewcauchy", "yulesimon"]


class GenExtreme(Continuous):
    """The generalized extreme value distribution of shape c, which is Gumbel's for c = 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.genextreme.cdf(0.0, 0.5)), 4)
    0.3679
    """

    shapes = ("c",)

    def ends(self, c: Array) -> tuple[Array, Array]:
        end = 1.0 / jnp.where(c == 0, 1.0, c)
        return jnp.where(c < 0, end, -math.inf), jnp.where(c > 0, end, math.inf)

    def log_density(self, z: Array, c: Array) -> Array:
        w = log1p_over(z, -c)
        return (c - 1.0) * w - lax.exp(-w)

    def log_below(self, z: Array, c: Array) -> Array:
        return -lax.exp(-log1p_over(z, -c))

    def below(self, z: Array, c: Array) -> Array:
        return lax.exp(self.log_below(z, c))

    def above(self, z: Array, c: Array) -> Array:
        return -lax.expm1(self.log_below(z, c))

    def log_above(self, z: Array, c: Array) -> Array:
        return log1mexp(-self.log_below(z, c))

    def quantile(self, q: Array, c: Array) -> Array:
        w = -lax.log(-lax.log(q))
        return w * special.exprel(-c * w)

    def upper_quantile(self, q: Array, c: Array) -> Array:
        w = -lax.log(-lax.log1p(-q))
        return w * special.exprel(-c * w)


class GenLogistic(Continuous):
    """The generalized logistic distribution of shape c.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.genlogistic.cdf(0.0, 2.0))
    0.25
    """

    shapes = positive = ("c",)

    def log_density(self, z: Array, c: Array) -> Array:
        return lax.log(c) - z - (c + 1.0) * special.softplus(-z)

    def log_below(self, z: Array, c: Array) -> Array:
        return -c * special.softplus(-z)

    def below(self, z: Array, c: Array) -> Array:
        return lax.exp(self.log_below(z, c))

    def above(self, z: Array, c: Array) -> Array:
        return -lax.expm1(self.log_below(z, c))

    def log_above(self, z: Array, c: Array) -> Array:
        return log1mexp(-self.log_below(z, c))

    def quantile(self, q: Array, c: Array) -> Array:
        return -lax.log(lax.expm1(-lax.log(q) / c))

    def upper_quantile(self, q: Array, c: Array) -> Array:
        return -lax.log(lax.expm1(-lax.log1p(-q) / c))

    def expected(self, c: Array) -> Array:
        return lax.digamma(c) + EULER

    def variance(self, c: Array) -> Array:
        return math.pi**2 / 6 + special.polygamma(1, c)


class Moyal(Continuous):
    """Moyal's distribution, an approximation of Landau's.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.moyal.cdf(0.0)), 4)
    0.3173
    """

    def log_density(self, z: Array) -> Array:
        return -0.5 * (z + lax.exp(-z)) - HALF_LOG_2PI

    def below(self, z: Array) -> Array:
        return lax.erfc(lax.exp(-0.5 * z) * math.sqrt(0.5))

    def above(self, z: Array) -> Array:
        return lax.erf(lax.exp(-0.5 * z) * math.sqrt(0.5))

    def quantile(self, q: Array) -> Array:
        return -2.0 * lax.log(math.sqrt(2.0) * special.erfcinv(q))

    def upper_quantile(self, q: Array) -> Array:
        return -2.0 * lax.log(math.sqrt(2.0) * special.erfinv(q))

    def expected(self) -> float:
        return EULER + math.log(2.0)

    def variance(self) -> float:
        return math.pi**2 / 2


class Symmetric(Continuous):
    """A family whose tails are alike: half of `tail`, the probability of a larger size."""

    def tail(self, size: Array, *shapes: Any, **none: Any) -> Array:
        raise TypeError(f"{self.name} has no tail.")

    def from_tail(self, q: Array, *shapes: Any, **none: Any) -> Array:
        """The size with tail(size) = q."""
        raise TypeError(f"{self.name} has no formula for its quantiles.")

    def below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        half = 0.5 * self.tail(jnp.abs(z), *shapes)
        return jnp.where(z > 0, 1.0 - half, half)

    def above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return self.below(-z, *shapes)

    def quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        size = self.from_tail(2.0 * jnp.minimum(q, 1.0 - q), *shapes)
        return jnp.where(q < 0.5, -size, size)

    def upper_quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        return -self.quantile(q, *shapes)

    def expected(self, *shapes: Any, **none: Any) -> Any:
        return 0.0


class DGamma(Symmetric):
    """The double gamma distribution of shape a.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.dgamma.cdf(0.0, 2.0))
    0.5
    """

    shapes = positive = ("a",)

    def log_density(self, z: Array, a: Array) -> Array:
        size = jnp.abs(z)
        return special.xlogy(a - 1.0, size) - size - math.log(2.0) - lax.lgamma(a)

    def tail(self, size: Array, a: Array) -> Array:
        return special.gammaincc(a, size)

    def from_tail(self, q: Array, a: Array) -> Array:
        return special.gammainccinv(a, q)

    def variance(self, a: Array) -> Array:
        return a * (a + 1.0)

    def draw(self, key: Array, like: Array, a: Array) -> Array:
        one, two = random.split(key)
        size = random.gamma(one, a, like.shape, like.dtype)
        return jnp.where(random.bernoulli(two, 0.5, like.shape), size, -size)


class DWeibull(Symmetric):
    """The double Weibull distribution of shape c.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.dweibull.cdf(0.0, 2.0))
    0.5
    """

    shapes = positive = ("c",)

    def log_density(self, z: Array, c: Array) -> Array:
        size = jnp.abs(z)
        return lax.log(0.5 * c) + special.xlogy(c - 1.0, size) - power_of(size, c)

    def tail(self, size: Array, c: Array) -> Array:
        return lax.exp(-power_of(size, c))

    def from_tail(self, q: Array, c: Array) -> Array:
        return power_of(-lax.log(q), 1.0 / c)

    def variance(self, c: Array) -> Array:
        return lax.exp(lax.lgamma(1.0 + 2.0 / c))


class LaplaceAsymmetric(Continuous):
    """The asymmetric Laplace distribution of shape kappa.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.laplace_asymmetric.cdf(0.0, 1.0))
    0.5
    """

    shapes = positive = ("kappa",)

    def division(self, kappa: Array) -> Array:
        return jnp.zeros_like(kappa)

    def log_density(self, z: Array, kappa: Array) -> Array:
        rate = jnp.where(z >= 0, kappa, 1.0 / kappa)
        return -jnp.abs(z) * rate - lax.log(kappa + 1.0 / kappa)

    @staticmethod
    def _sides(z: Array, kappa: Array) -> tuple[Array, Array]:
        whole = kappa + 1.0 / kappa
        low = kappa / whole * lax.exp(jnp.minimum(z, 0.0) / kappa)
        high = 1.0 / kappa / whole * lax.exp(-jnp.maximum(z, 0.0) * kappa)
        return low, high

    def below(self, z: Array, kappa: Array) -> Array:
        low, high = self._sides(z, kappa)
        return jnp.where(z >= 0, 1.0 - high, low)

    def above(self, z: Array, kappa: Array) -> Array:
        low, high = self._sides(z, kappa)
        return jnp.where(z >= 0, high, 1.0 - low)

    def quantile(self, q: Array, kappa: Array) -> Array:
        whole = kappa + 1.0 / kappa
        share = kappa / whole
        low = lax.log(jnp.minimum(q, share) / share) * kappa
        high = -lax.log((1.0 - jnp.maximum(q, share)) * kappa * whole) / kappa
        return jnp.where(q >= share, high, low)

    def expected(self, kappa: Array) -> Array:
        return 1.0 / kappa - kappa

    def variance(self, kappa: Array) -> Array:
        return 1.0 / kappa**2 + kappa**2


class LogGamma(Continuous):
    """The log-gamma distribution: the logarithm of a gamma variable of shape c.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.loggamma.cdf(0.0, 1.0)), 4)
    0.6321
    """

    shapes = positive = ("c",)

    def log_density(self, z: Array, c: Array) -> Array:
        return c * z - lax.exp(z) - lax.lgamma(c)

    def below(self, z: Array, c: Array) -> Array:
        return special.gammainc(c, lax.exp(z))

    def above(self, z: Array, c: Array) -> Array:
        return special.gammaincc(c, lax.exp(z))

    def quantile(self, q: Array, c: Array) -> Array:
        return lax.log(special.gammaincinv(c, q))

    def upper_quantile(self, q: Array, c: Array) -> Array:
        return lax.log(special.gammainccinv(c, q))

    def expected(self, c: Array) -> Array:
        return lax.digamma(c)

    def variance(self, c: Array) -> Array:
        return special.polygamma(1, c)

    def draw(self, key: Array, like: Array, c: Array) -> Array:
        return random.loggamma(key, c, like.shape, like.dtype)


class PowerNorm(Continuous):
    """The power normal distribution of shape c: the least of c normal variables.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.powernorm.cdf(0.0, 1.0))
    0.5
    """

    shapes = positive = ("c",)

    def log_density(self, z: Array, c: Array) -> Array:
        return lax.log(c) - 0.5 * z * z - HALF_LOG_2PI + (c - 1.0) * special.log_ndtr(-z)

    def log_above(self, z: Array, c: Array) -> Array:
        return c * special.log_ndtr(-z)

    def above(self, z: Array, c: Array) -> Array:
        return lax.exp(self.log_above(z, c))

    def below(self, z: Array, c: Array) -> Array:
        return -lax.expm1(self.log_above(z, c))

    def log_below(self, z: Array, c: Array) -> Array:
        return log1mexp(-self.log_above(z, c))

    def quantile(self, q: Array, c: Array) -> Array:
        return -special.ndtri_exp(lax.log1p(-q) / c)

    def upper_quantile(self, q: Array, c: Array) -> Array:
        return -special.ndtri_exp(lax.log(q) / c)


class SkewCauchy(Continuous):
    """The skewed Cauchy distribution of shape a between -1 and 1.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.skewcauchy.cdf(0.0, 0.5))
    0.25
    """

    shapes = ("a",)

    def possible(self, a: Array) -> Array:
        return jnp.abs(a) < 1

    def division(self, a: Array) -> Array:
        return jnp.zeros_like(a)

    def log_density(self, z: Array, a: Array) -> Array:
        width = jnp.where(z > 0, 1.0 + a, 1.0 - a)
        return -log1p_square(z / width) - math.log(math.pi)

    def below(self, z: Array, a: Array) -> Array:
        width = jnp.where(z > 0, 1.0 + a, 1.0 - a)
        one = jnp.ones_like(z)
        left = width / math.pi * lax.atan2(one, -z / width)
        right = 1.0 - width / math.pi * lax.atan2(one, z / width)
        return jnp.where(z > 0, right, left)

    def above(self, z: Array, a: Array) -> Array:
        return self.below(-z, -a)

    def quantile(self, q: Array, a: Array) -> Array:
        low = q < 0.5 * (1.0 - a)
        width = jnp.where(low, 1.0 - a, 1.0 + a)
        # by the distance to the nearer end, in units of its share
        rest = jnp.where(low, q, 1.0 - q) / width
        z = width / lax.tan(math.pi * rest)
        return jnp.where(low, -z, z)


class Pearson3(Continuous):
    """Pearson's distribution of type III, of mean 0 and variance 1, of a skewness.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.pearson3.cdf(0.0, 0.1)), 4)
    0.5066
    """

    shapes = ("skew",)
    _normal = 1.6e-5  # below which the skewness changes no digit of float64, as SciPy has it

    def _gamma(self, z: Array, skew: Array) -> tuple[Array, Array, Array]:
        """Whether it is normal, the shape of the gamma variable, and its place."""
        flat = jnp.abs(skew) < self._normal
        s = jnp.where(flat, 1.0, skew)
        shape = 4.0 / (s * s)
        return flat, shape, jnp.maximum(shape + 2.0 * z / s, 0.0)

    def ends(self, skew: Array) -> tuple[Array, Array]:
        end = -2.0 / jnp.where(skew == 0, 1.0, skew)
        flat = jnp.abs(skew) < self._normal
        return (jnp.where((skew > 0) & ~flat, end, -math.inf),
                jnp.where((skew < 0) & ~flat, end, math.inf))

    def log_density(self, z: Array, skew: Array) -> Array:
        flat, shape, y = self._gamma(z, skew)
        size = jnp.abs(jnp.where(flat, 1.0, skew))
        log = lax.log(2.0 / size) + special.xlogy(shape - 1.0, y) - y - lax.lgamma(shape)
        return jnp.where(flat, -0.5 * z * z - HALF_LOG_2PI, log)

    def below(self, z: Array, skew: Array) -> Array:
        flat, shape, y = self._gamma(z, skew)
        found = jnp.where(skew > 0, special.gammainc(shape, y), special.gammaincc(shape, y))
        return jnp.where(flat, special.ndtr(z), found)

    def above(self, z: Array, skew: Array) -> Array:
        return self.below(-z, -skew)

    def quantile(self, q: Array, skew: Array) -> Array:
        flat, shape, _ = self._gamma(jnp.zeros_like(q), skew)
        y = jnp.where(skew > 0, special.gammaincinv(shape, q), special.gammainccinv(shape, q))
        s = jnp.where(flat, 1.0, skew)
        return jnp.where(flat, special.ndtri(q), 0.5 * s * (y - shape))

    def upper_quantile(self, q: Array, skew: Array) -> Array:
        return -self.quantile(q, -skew)

    def draw(self, key: Array, like: Array, skew: Array) -> Array:
        flat, shape, _ = self._gamma(jnp.zeros_like(like), skew)
        y = random.gamma(key, shape, like.shape, like.dtype)
        moved = 0.5 * jnp.where(flat, 1.0, skew) * (y - shape)
        return jnp.where(flat, random.normal(key, like.shape, like.dtype), moved)

    def expected(self, skew: Array) -> float:
        return 0.0

    def variance(self, skew: Array) -> float:
        return 1.0


class YuleSimon(Discrete):
    """The Yule-Simon distribution of shape alpha, from 1 on.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.yulesimon.cdf(1, 1.0))
    0.5
    """

    shapes = positive = ("alpha",)

    def ends(self, alpha: Array) -> tuple[float, float]:
        return 1.0, math.inf

    def log_probability(self, k: Array, alpha: Array) -> Array:
        return lax.log(alpha) + special.betaln(k, alpha + 1.0)

    def above(self, k: Array, alpha: Array) -> Array:
        return k * special.beta(k, alpha + 1.0)

    def below(self, k: Array, alpha: Array) -> Array:
        return 1.0 - self.above(k, alpha)

    def expected(self, alpha: Array) -> Array:
        return jnp.where(alpha > 1, alpha / jnp.where(alpha > 1, alpha - 1.0, 1.0), math.inf)


dgamma = DGamma("dgamma")
dweibull = DWeibull("dweibull")
genextreme = GenExtreme("genextreme")
genlogistic = GenLogistic("genlogistic")
laplace_asymmetric = LaplaceAsymmetric("laplace_asymmetric")
loggamma = LogGamma("loggamma")
moyal = Moyal("moyal")
pearson3 = Pearson3("pearson3")
powernorm = PowerNorm("powernorm")
skewcauchy = SkewCauchy("skewcauchy")
yulesimon = YuleSimon("yulesimon")
