"""More continuous distributions on a half line, whose quantiles have formulas."""

from __future__ import annotations

import math
from typing import Any

from functrans import lax, random
from functrans import numpy as jnp
from functrans.nn.functions import log1mexp
from functrans.scipy import special
from functrans.scipy.special.common import HALF_LOG_2PI
from functrans.scipy.special.densities import log1p_square
from functrans.scipy.stats.gamma_powers import Gamma
from functrans.scipy.stats.half_line import InvGauss, LogNorm
from functrans.scipy.stats.slopes import log_mills
from functrans.scipy.stats.tailed import HalfLine, Tailed
from functrans.typing import Array

__all__ = ["alpha", "burr", "burr12", "erlang", "exponpow", "exponweib", "fatiguelife",
           "foldcauchy", "foldnorm", "gengamma", "gibrat", "halfgennorm", "invweibull", "kappa3",
           "mielke", "powerlognorm", "recipinvgauss", "wald"]


def power_of(z: Array, c: Array) -> Array:
    """z**c for z >= 0, with derivatives at 0."""
    some = z > 0
    return jnp.where(some, lax.exp(c * lax.log(jnp.where(some, z, 1.0))), 0.0)


class Headed(HalfLine):
    """A family whose log_below has a formula."""

    def below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return lax.exp(self.log_below(z, *shapes))

    def above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return -lax.expm1(self.log_below(z, *shapes))

    def log_above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return log1mexp(-self.log_below(z, *shapes))

    def from_log(self, log: Array, *shapes: Any, **none: Any) -> Array:
        """z with log_below(z) = log."""
        raise TypeError(f"{self.name} has no formula for its quantiles.")

    def quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        return self.from_log(lax.log(q), *shapes)

    def upper_quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        return self.from_log(lax.log1p(-q), *shapes)


class Burr(Headed):
    """Burr's distribution of type III, of shapes c and d.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.burr.cdf(1.0, 2.0, 1.0))
    0.5
    """

    shapes = positive = ("c", "d")

    def log_density(self, z: Array, c: Array, d: Array) -> Array:
        log = lax.log(z)
        return lax.log(c) + lax.log(d) - (c + 1.0) * log - (d + 1.0) * special.softplus(-c * log)

    def log_below(self, z: Array, c: Array, d: Array) -> Array:
        return -d * special.softplus(-c * lax.log(z))

    def from_log(self, log: Array, c: Array, d: Array) -> Array:
        return lax.exp(-lax.log(lax.expm1(-log / d)) / c)


class Burr12(Tailed):
    """Burr's distribution of type XII, of shapes c and d.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.burr12.cdf(1.0, 2.0, 1.0))
    0.5
    """

    shapes = positive = ("c", "d")

    def log_density(self, z: Array, c: Array, d: Array) -> Array:
        log = lax.log(z)
        return lax.log(c) + lax.log(d) + (c - 1.0) * log - (d + 1.0) * special.softplus(c * log)

    def log_above(self, z: Array, c: Array, d: Array) -> Array:
        return -d * special.softplus(c * lax.log(z))

    def from_log(self, log: Array, c: Array, d: Array) -> Array:
        return lax.exp(lax.log(lax.expm1(-log / d)) / c)


class Mielke(Headed):
    """Mielke's Beta-Kappa (Dagum) distribution of shapes k and s.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.mielke.cdf(1.0, 2.0, 2.0))
    0.5
    """

    shapes = positive = ("k", "s")

    def log_density(self, z: Array, k: Array, s: Array) -> Array:
        log = lax.log(z)
        return lax.log(k) + (k - 1.0) * log - (1.0 + k / s) * special.softplus(s * log)

    def log_below(self, z: Array, k: Array, s: Array) -> Array:
        log = lax.log(z)
        return -k / s * special.softplus(-s * log)

    def from_log(self, log: Array, k: Array, s: Array) -> Array:
        return lax.exp(-lax.log(lax.expm1(-log * s / k)) / s)


class Kappa3(Headed):
    """The Kappa distribution of one shape a.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.kappa3.cdf(1.0, 1.0))
    0.5
    """

    shapes = positive = ("a",)

    def log_density(self, z: Array, a: Array) -> Array:
        return lax.log(a) - (1.0 + 1.0 / a) * lax.log(a + power_of(z, a))

    def log_below(self, z: Array, a: Array) -> Array:
        return -lax.log1p(a * lax.exp(-a * lax.log(z))) / a

    def from_log(self, log: Array, a: Array) -> Array:
        return lax.exp((lax.log(a) - lax.log(lax.expm1(-a * log))) / a)


class InvWeibull(Headed):
    """The inverted Weibull (Frechet) distribution of shape c.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.invweibull.cdf(1.0, 2.0)), 4)
    0.3679
    """

    shapes = positive = ("c",)

    def log_density(self, z: Array, c: Array) -> Array:
        log = lax.log(z)
        return lax.log(c) - (c + 1.0) * log - lax.exp(-c * log)

    def log_rate_below(self, z: Array, c: Array) -> Array:
        return lax.log(c) - (c + 1.0) * lax.log(z)

    def log_below(self, z: Array, c: Array) -> Array:
        return -lax.exp(-c * lax.log(z))

    def from_log(self, log: Array, c: Array) -> Array:
        return lax.exp(-lax.log(-log) / c)


class ExponWeib(Headed):
    """The exponentiated Weibull distribution of shapes a and c.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.exponweib.cdf(1.0, 1.0, 2.0)), 4)
    0.6321
    """

    shapes = positive = ("a", "c")

    def log_density(self, z: Array, a: Array, c: Array) -> Array:
        power = power_of(z, c)
        return lax.log(a) + lax.log(c) + (a - 1.0) * log1mexp(power) - power + special.xlogy(
            c - 1.0, z)

    def log_below(self, z: Array, a: Array, c: Array) -> Array:
        return a * log1mexp(power_of(z, c))

    def from_log(self, log: Array, a: Array, c: Array) -> Array:
        return power_of(-log1mexp(-log / a), 1.0 / c)


class ExponPow(Tailed):
    """The exponential power distribution of shape b.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.exponpow.sf(1.0, 2.0)), 4)
    0.1794
    """

    shapes = positive = ("b",)

    def log_density(self, z: Array, b: Array) -> Array:
        power = power_of(z, b)
        # the power is an infinity less than its exponential
        fall = jnp.where(power < 800.0, lax.expm1(power) - power, math.inf)
        return lax.log(b) + special.xlogy(b - 1.0, z) - fall

    def log_above(self, z: Array, b: Array) -> Array:
        return -lax.expm1(power_of(z, b))

    def from_log(self, log: Array, b: Array) -> Array:
        return power_of(lax.log1p(-log), 1.0 / b)


class Alpha(HalfLine):
    """The alpha distribution of shape a: 1 / x is normal around a, and positive.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.alpha.cdf(1.0, 1.0)), 4)
    0.5943
    """

    shapes = positive = ("a",)

    def log_density(self, z: Array, a: Array) -> Array:
        return -2.0 * lax.log(z) - special.log_ndtr(a) - HALF_LOG_2PI - 0.5 * (a - 1.0 / z) ** 2

    def log_rate_below(self, z: Array, a: Array) -> Array:
        return -2.0 * lax.log(z) - log_mills(a - 1.0 / z)

    def below(self, z: Array, a: Array) -> Array:
        return lax.exp(self.log_below(z, a))

    def above(self, z: Array, a: Array) -> Array:
        return -lax.expm1(self.log_below(z, a))

    def log_below(self, z: Array, a: Array) -> Array:
        return special.log_ndtr(a - 1.0 / z) - special.log_ndtr(a)

    def quantile(self, q: Array, a: Array) -> Array:
        return 1.0 / (a - special.ndtri(q * special.ndtr(a)))


class FatigueLife(HalfLine):
    """The fatigue-life (Birnbaum-Saunders) distribution of shape c.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.fatiguelife.cdf(1.0, 2.0))
    0.5
    """

    shapes = positive = ("c",)

    @staticmethod
    def _score(z: Array, c: Array) -> Array:
        return (lax.sqrt(z) - lax.rsqrt(z)) / c

    def log_density(self, z: Array, c: Array) -> Array:
        log = lax.log1p(z) - lax.log(2.0 * c) - HALF_LOG_2PI - 1.5 * lax.log(z)
        return log - 0.5 * self._score(z, c) ** 2

    def log_rate_below(self, z: Array, c: Array) -> Array:
        return lax.log1p(z) - lax.log(2.0 * c) - 1.5 * lax.log(z) - log_mills(self._score(z, c))

    def log_rate_above(self, z: Array, c: Array) -> Array:
        return lax.log1p(z) - lax.log(2.0 * c) - 1.5 * lax.log(z) - log_mills(-self._score(z, c))

    def below(self, z: Array, c: Array) -> Array:
        return special.ndtr(self._score(z, c))

    def above(self, z: Array, c: Array) -> Array:
        return special.ndtr(-self._score(z, c))

    def log_below(self, z: Array, c: Array) -> Array:
        return special.log_ndtr(self._score(z, c))

    def log_above(self, z: Array, c: Array) -> Array:
        return special.log_ndtr(-self._score(z, c))

    def quantile(self, q: Array, c: Array) -> Array:
        return self._of_score(c * special.ndtri(q))

    def upper_quantile(self, q: Array, c: Array) -> Array:
        return self._of_score(-c * special.ndtri(q))

    @staticmethod
    def _of_score(t: Array) -> Array:
        # below 0 the sum of the root and t by what it is one over of
        root = lax.sqrt(t * t + 4.0)
        sum_ = jnp.where(t < 0, 4.0 / (root + jnp.abs(t)), root + t)
        return 0.25 * sum_ * sum_

    def expected(self, c: Array) -> Array:
        return 1.0 + 0.5 * c * c

    def variance(self, c: Array) -> Array:
        return c * c * (1.0 + 1.25 * c * c)


class FoldNorm(HalfLine):
    """The folded normal distribution: the size of a normal variable of mean c.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.foldnorm.cdf(1.0, 0.0)), 4)
    0.6827
    """

    shapes = ("c",)

    def possible(self, c: Array) -> Array:
        return c >= 0

    def log_density(self, z: Array, c: Array) -> Array:
        return -0.5 * (z - c) ** 2 - HALF_LOG_2PI + lax.log1p(lax.exp(-2.0 * z * c))

    def below(self, z: Array, c: Array) -> Array:
        return special.ndtr(z - c) - special.ndtr(-z - c)

    def above(self, z: Array, c: Array) -> Array:
        return special.ndtr(c - z) + special.ndtr(-z - c)

    def expected(self, c: Array) -> Array:
        return math.sqrt(2 / math.pi) * lax.exp(-0.5 * c * c) + c * lax.erf(c / math.sqrt(2))

    def variance(self, c: Array) -> Array:
        return c * c + 1.0 - self.expected(c) ** 2

    def draw(self, key: Array, like: Array, c: Array) -> Array:
        return lax.abs(c + random.normal(key, like.shape, like.dtype))


class FoldCauchy(HalfLine):
    """The folded Cauchy distribution: the size of a Cauchy variable around c.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.foldcauchy.cdf(1.0, 0.0))
    0.5
    """

    shapes = ("c",)

    def possible(self, c: Array) -> Array:
        return c >= 0

    def log_density(self, z: Array, c: Array) -> Array:
        return jnp.logaddexp(-log1p_square(z - c), -log1p_square(z + c)) - math.log(math.pi)

    def below(self, z: Array, c: Array) -> Array:
        return (lax.atan(z - c) + lax.atan(z + c)) / math.pi

    def above(self, z: Array, c: Array) -> Array:
        one = jnp.ones_like(z)
        return (lax.atan2(one, z - c) + lax.atan2(one, z + c)) / math.pi

    def draw(self, key: Array, like: Array, c: Array) -> Array:
        return lax.abs(c + random.cauchy(key, like.shape, like.dtype))


class GenGamma(HalfLine):
    """The generalized gamma distribution of shapes a and c: a gamma variable to the power 1 / c.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.gengamma.cdf(1.0, 1.0, 2.0)), 4)
    0.6321
    """

    shapes = ("a", "c")

    def possible(self, a: Array, c: Array) -> Array:
        return (a > 0) & (c != 0)

    def log_density(self, z: Array, a: Array, c: Array) -> Array:
        return lax.log(jnp.abs(c)) + special.xlogy(c * a - 1.0, z) - self._of(z, c) - lax.lgamma(a)

    @staticmethod
    def _of(z: Array, c: Array) -> Array:
        return lax.exp(c * lax.log(z))

    def below(self, z: Array, a: Array, c: Array) -> Array:
        power = self._of(z, c)
        return jnp.where(c > 0, special.gammainc(a, power), special.gammaincc(a, power))

    def above(self, z: Array, a: Array, c: Array) -> Array:
        power = self._of(z, c)
        return jnp.where(c > 0, special.gammaincc(a, power), special.gammainc(a, power))

    def draw(self, key: Array, like: Array, a: Array, c: Array) -> Array:
        return lax.exp(random.loggamma(key, a, like.shape, like.dtype) / c)

    def quantile(self, q: Array, a: Array, c: Array) -> Array:
        return power_of(jnp.where(c > 0, special.gammaincinv(a, q), special.gammainccinv(a, q)),
                      1.0 / c)

    def upper_quantile(self, q: Array, a: Array, c: Array) -> Array:
        return power_of(jnp.where(c > 0, special.gammainccinv(a, q), special.gammaincinv(a, q)),
                      1.0 / c)

    def expected(self, a: Array, c: Array) -> Array:
        return lax.exp(lax.lgamma(a + 1.0 / c) - lax.lgamma(a))

    def variance(self, a: Array, c: Array) -> Array:
        return lax.exp(lax.lgamma(a + 2.0 / c) - lax.lgamma(a)) - self.expected(a, c) ** 2


class HalfGenNorm(HalfLine):
    """The upper half of a generalized normal distribution of shape beta.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.halfgennorm.cdf(1.0, 1.0)), 4)
    0.6321
    """

    shapes = positive = ("beta",)

    def log_density(self, z: Array, beta: Array) -> Array:
        return lax.log(beta) - lax.lgamma(1.0 / beta) - power_of(z, beta)

    def below(self, z: Array, beta: Array) -> Array:
        return special.gammainc(1.0 / beta, power_of(z, beta))

    def above(self, z: Array, beta: Array) -> Array:
        return special.gammaincc(1.0 / beta, power_of(z, beta))

    def quantile(self, q: Array, beta: Array) -> Array:
        return power_of(special.gammaincinv(1.0 / beta, q), 1.0 / beta)

    def upper_quantile(self, q: Array, beta: Array) -> Array:
        return power_of(special.gammainccinv(1.0 / beta, q), 1.0 / beta)


class PowerLogNorm(Tailed):
    """The power log-normal distribution of shapes c and s.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.powerlognorm.cdf(1.0, 1.0, 2.0))
    0.5
    """

    shapes = positive = ("c", "s")

    def log_density(self, z: Array, c: Array, s: Array) -> Array:
        score = lax.log(z) / s
        return (lax.log(c / s) - lax.log(z) - 0.5 * score * score - HALF_LOG_2PI
                + (c - 1.0) * special.log_ndtr(-score))

    def log_above(self, z: Array, c: Array, s: Array) -> Array:
        return c * special.log_ndtr(-lax.log(z) / s)

    def from_log(self, log: Array, c: Array, s: Array) -> Array:
        return lax.exp(-s * special.ndtri_exp(log / c))


class RecipInvGauss(HalfLine):
    """The reciprocal of a variable of the inverse Gaussian distribution of shape mu.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.recipinvgauss.cdf(1.0, 1.0)), 4)
    0.3319
    """

    shapes = positive = ("mu",)
    _other = InvGauss("invgauss")

    def log_density(self, z: Array, mu: Array) -> Array:
        score = (1.0 - mu * z) / (mu * lax.sqrt(z))
        return -0.5 * score * score - HALF_LOG_2PI - 0.5 * lax.log(z)

    def log_rate_below(self, z: Array, mu: Array) -> Array:
        return self._other.log_rate_above(1.0 / z, mu) - 2.0 * lax.log(z)

    def log_rate_above(self, z: Array, mu: Array) -> Array:
        return self._other.log_rate_below(1.0 / z, mu) - 2.0 * lax.log(z)

    def draw(self, key: Array, like: Array, mu: Array) -> Array:
        return 1.0 / self._other.draw(key, like, mu)

    def below(self, z: Array, mu: Array) -> Array:
        return self._other.above(1.0 / z, mu)

    def above(self, z: Array, mu: Array) -> Array:
        return self._other.below(1.0 / z, mu)

    def log_below(self, z: Array, mu: Array) -> Array:
        return self._other.log_above(1.0 / z, mu)

    def log_above(self, z: Array, mu: Array) -> Array:
        return self._other.log_below(1.0 / z, mu)


class Wald(HalfLine):
    """Wald's distribution: the inverse Gaussian one of shape 1.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.wald.cdf(1.0)), 4)
    0.6681
    """

    _other = InvGauss("invgauss")

    def log_density(self, z: Array) -> Array:
        return self._other.log_density(z, jnp.ones_like(z))

    def below(self, z: Array) -> Array:
        return self._other.below(z, jnp.ones_like(z))

    def above(self, z: Array) -> Array:
        return self._other.above(z, jnp.ones_like(z))

    def log_below(self, z: Array) -> Array:
        return self._other.log_below(z, jnp.ones_like(z))

    def log_above(self, z: Array) -> Array:
        return self._other.log_above(z, jnp.ones_like(z))

    def log_rate_below(self, z: Array) -> Array:
        return self._other.log_rate_below(z, jnp.ones_like(z))

    def log_rate_above(self, z: Array) -> Array:
        return self._other.log_rate_above(z, jnp.ones_like(z))

    def expected(self) -> float:
        return 1.0

    def variance(self) -> float:
        return 1.0


class Gibrat(HalfLine):
    """Gibrat's distribution: the log-normal one of shape 1.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.gibrat.cdf(1.0))
    0.5
    """

    _other = LogNorm("lognorm")

    def log_density(self, z: Array) -> Array:
        return self._other.log_density(z, jnp.ones_like(z))

    def below(self, z: Array) -> Array:
        return special.ndtr(lax.log(z))

    def above(self, z: Array) -> Array:
        return special.ndtr(-lax.log(z))

    def quantile(self, q: Array) -> Array:
        return lax.exp(special.ndtri(q))

    def upper_quantile(self, q: Array) -> Array:
        return lax.exp(-special.ndtri(q))

    def expected(self) -> float:
        return math.exp(0.5)

    def variance(self) -> float:
        return math.e * (math.e - 1.0)


alpha = Alpha("alpha")
burr = Burr("burr")
burr12 = Burr12("burr12")
erlang = Gamma("erlang")
exponpow = ExponPow("exponpow")
exponweib = ExponWeib("exponweib")
fatiguelife = FatigueLife("fatiguelife")
foldcauchy = FoldCauchy("foldcauchy")
foldnorm = FoldNorm("foldnorm")
gengamma = GenGamma("gengamma")
gibrat = Gibrat("gibrat")
halfgennorm = HalfGenNorm("halfgennorm")
invweibull = InvWeibull("invweibull")
kappa3 = Kappa3("kappa3")
mielke = Mielke("mielke")
powerlognorm = PowerLogNorm("powerlognorm")
recipinvgauss = RecipInvGauss("recipinvgauss")
wald = Wald("wald")
