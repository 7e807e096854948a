"""More continuous distributions whose support has an end above, or both."""

from __future__ import annotations

import math

from functrans import lax
from functrans import numpy as jnp
from functrans.nn.functions import log1mexp
from functrans.scipy import special
from functrans.scipy.special.common import HALF_LOG_2PI
from functrans.scipy.special.elementary import log1p_over
from functrans.scipy.stats.base import Continuous
from functrans.scipy.stats.bounded import LogUniform
from functrans.scipy.stats.half_line import Levy
from functrans.scipy.stats.more_half_line import power_of
from functrans.scipy.stats.rejection import argus_squares
from functrans.scipy.stats.slopes import drawn_with_slopes
from functrans.scipy.stats.tailed import HalfLine
from functrans.typing import Array

__all__ = ["anglit", "argus", "bradford", "genhalflogistic", "johnsonsb", "levy_l", "loglaplace",
           "rdist", "reciprocal", "trapezoid", "truncpareto", "truncweibull_min", "weibull_max"]


class TruncPareto(HalfLine):
    """The Pareto distribution of shape b, between 1 and c.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.truncpareto.cdf(2.0, 1.0, 4.0)), 4)
    0.6667
    """

    shapes = ("b", "c")

    def possible(self, b: Array, c: Array) -> Array:
        return (b != 0) & (c > 1)

    def ends(self, b: Array, c: Array) -> tuple[float, Array]:
        return 1.0, c

    def log_density(self, z: Array, b: Array, c: Array) -> Array:
        return lax.log(b / -lax.expm1(-b * lax.log(c))) - (b + 1.0) * lax.log(z)

    def below(self, z: Array, b: Array, c: Array) -> Array:
        return lax.expm1(-b * lax.log(z)) / lax.expm1(-b * lax.log(c))

    def above(self, z: Array, b: Array, c: Array) -> Array:
        whole = lax.expm1(-b * lax.log(c))
        return lax.exp(-b * lax.log(z)) * lax.expm1(-b * lax.log(c / z)) / whole

    def quantile(self, q: Array, b: Array, c: Array) -> Array:
        return lax.exp(-lax.log1p(q * lax.expm1(-b * lax.log(c))) / b)


class TruncWeibullMin(HalfLine):
    """The Weibull distribution of minima of shape c, between a and b.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.truncweibull_min.cdf(1.0, 1.0, 0.0, 2.0)), 4)
    0.7311
    """

    shapes = ("c", "a", "b")

    def possible(self, c: Array, a: Array, b: Array) -> Array:
        return (c > 0) & (a >= 0) & (b > a)

    def ends(self, c: Array, a: Array, b: Array) -> tuple[Array, Array]:
        return a, b

    def log_density(self, z: Array, c: Array, a: Array, b: Array) -> Array:
        low, high, at = power_of(a, c), power_of(b, c), power_of(z, c)
        return lax.log(c) + special.xlogy(c - 1.0, z) + low - at - log1mexp(high - low)

    def below(self, z: Array, c: Array, a: Array, b: Array) -> Array:
        low, high, at = power_of(a, c), power_of(b, c), power_of(z, c)
        return lax.expm1(low - at) / lax.expm1(low - high)

    def above(self, z: Array, c: Array, a: Array, b: Array) -> Array:
        low, high, at = power_of(a, c), power_of(b, c), power_of(z, c)
        return lax.exp(low - at) * lax.expm1(at - high) / lax.expm1(low - high)

    def quantile(self, q: Array, c: Array, a: Array, b: Array) -> Array:
        low, high = power_of(a, c), power_of(b, c)
        return power_of(low - lax.log1p(q * lax.expm1(low - high)), 1.0 / c)


class GenHalfLogistic(HalfLine):
    """The generalized half-logistic distribution of shape c, up to 1 / c.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.genhalflogistic.cdf(0.5, 1.0)), 4)
    0.3333
    """

    shapes = positive = ("c",)

    def ends(self, c: Array) -> tuple[float, Array]:
        return 0.0, 1.0 / c

    def log_density(self, z: Array, c: Array) -> Array:
        log = -log1p_over(z, -c)  # of (1 - c z) ** (1 / c)
        return math.log(2.0) + log - lax.log1p(-c * z) - 2.0 * lax.log1p(lax.exp(log))

    def below(self, z: Array, c: Array) -> Array:
        return lax.tanh(0.5 * log1p_over(z, -c))

    def above(self, z: Array, c: Array) -> Array:
        t = lax.exp(-log1p_over(z, -c))
        return 2.0 * t / (1.0 + t)

    def quantile(self, q: Array, c: Array) -> Array:
        log = 2.0 * lax.atanh(q)
        return log * special.exprel(-c * log)


class LogLaplace(HalfLine):
    """The log-Laplace distribution of shape c.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.loglaplace.cdf(1.0, 2.0))
    0.5
    """

    shapes = positive = ("c",)

    def log_density(self, z: Array, c: Array) -> Array:
        log = lax.log(z)
        return lax.log(0.5 * c) - log - c * jnp.abs(log)

    def below(self, z: Array, c: Array) -> Array:
        log = lax.log(z)
        tail = 0.5 * lax.exp(-c * jnp.abs(log))
        return jnp.where(log > 0, 1.0 - tail, tail)

    def above(self, z: Array, c: Array) -> Array:
        log = lax.log(z)
        tail = 0.5 * lax.exp(-c * jnp.abs(log))
        return jnp.where(log > 0, tail, 1.0 - tail)

    def quantile(self, q: Array, c: Array) -> Array:
        low = q < 0.5
        log = lax.log(2.0 * jnp.where(low, q, 1.0 - q))
        return lax.exp(jnp.where(low, log, -log) / c)

    def upper_quantile(self, q: Array, c: Array) -> Array:
        return 1.0 / self.quantile(q, c)


class Anglit(Continuous):
    """The anglit distribution: a cosine of 2 x between -pi / 4 and pi / 4.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.anglit.cdf(0.0)), 4)
    0.5
    """

    low, high = -math.pi / 4, math.pi / 4

    def log_density(self, z: Array) -> Array:
        return lax.log(jnp.cos(2.0 * z))

    def below(self, z: Array) -> Array:
        return lax.sin(z + math.pi / 4) ** 2

    def above(self, z: Array) -> Array:
        return lax.sin(math.pi / 4 - z) ** 2

    def quantile(self, q: Array) -> Array:
        return lax.asin(lax.sqrt(q)) - math.pi / 4

    def expected(self) -> float:
        return 0.0

    def variance(self) -> float:
        return math.pi**2 / 16 - 0.5

    def information(self) -> float:
        return 1.0 - math.log(2.0)


class Bradford(Continuous):
    """Bradford's distribution of shape c on [0, 1].

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.bradford.cdf(0.5, 1.0)), 4)
    0.585
    """

    low, high = 0.0, 1.0
    shapes = positive = ("c",)

    def log_density(self, z: Array, c: Array) -> Array:
        return lax.log(c / lax.log1p(c)) - lax.log1p(c * z)

    def below(self, z: Array, c: Array) -> Array:
        return lax.log1p(c * z) / lax.log1p(c)

    def above(self, z: Array, c: Array) -> Array:
        return lax.log1p(c * (1.0 - z) / (1.0 + c * z)) / lax.log1p(c)

    def quantile(self, q: Array, c: Array) -> Array:
        return lax.expm1(q * lax.log1p(c)) / c


class JohnsonSB(Continuous):
    """Johnson's bounded distribution of shapes a and b on [0, 1].

    >>> import functrans as ft
    >>> float(ft.scipy.stats.johnsonsb.cdf(0.5, 0.0, 1.0))
    0.5
    """

    low, high = 0.0, 1.0
    shapes = ("a", "b")
    positive = ("b",)

    def _score(self, z: Array, a: Array, b: Array) -> Array:
        return a + b * (lax.log(z) - lax.log1p(-z))

    def log_density(self, z: Array, a: Array, b: Array) -> Array:
        score = self._score(z, a, b)
        return lax.log(b) - lax.log(z) - lax.log1p(-z) - 0.5 * score * score - HALF_LOG_2PI

    def below(self, z: Array, a: Array, b: Array) -> Array:
        return special.ndtr(self._score(z, a, b))

    def above(self, z: Array, a: Array, b: Array) -> Array:
        return special.ndtr(-self._score(z, a, b))

    def log_below(self, z: Array, a: Array, b: Array) -> Array:
        return special.log_ndtr(self._score(z, a, b))

    def log_above(self, z: Array, a: Array, b: Array) -> Array:
        return special.log_ndtr(-self._score(z, a, b))

    def quantile(self, q: Array, a: Array, b: Array) -> Array:
        return lax.logistic((special.ndtri(q) - a) / b)

    def upper_quantile(self, q: Array, a: Array, b: Array) -> Array:
        return lax.logistic((-special.ndtri(q) - a) / b)


class RDist(Continuous):
    """The R-distribution of shape c on [-1, 1]: a symmetric beta distribution.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.rdist.cdf(0.5, 2.0))
    0.75
    """

    low, high = -1.0, 1.0
    shapes = positive = ("c",)

    def log_density(self, z: Array, c: Array) -> Array:
        inside = lax.log1p(-z) + lax.log1p(z)
        return (0.5 * c - 1.0) * inside - special.betaln(0.5 * c, 0.5 * jnp.ones_like(c))

    def below(self, z: Array, c: Array) -> Array:
        return special.betainc(0.5 * c, 0.5 * c, 0.5 * (1.0 + z))

    def above(self, z: Array, c: Array) -> Array:
        return special.betainc(0.5 * c, 0.5 * c, 0.5 * (1.0 - z))

    def quantile(self, q: Array, c: Array) -> Array:
        return 2.0 * special.betaincinv(0.5 * c, 0.5 * c, q) - 1.0

    def upper_quantile(self, q: Array, c: Array) -> Array:
        return -self.quantile(q, c)

    def expected(self, c: Array) -> float:
        return 0.0

    def variance(self, c: Array) -> Array:
        return 1.0 / (c + 1.0)


class Argus(Continuous):
    """The Argus distribution of shape chi on [0, 1].

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.argus.cdf(0.5, 1.0)), 4)
    0.3026
    """

    low, high = 0.0, 1.0
    shapes = positive = ("chi",)

    def log_density(self, z: Array, chi: Array) -> Array:
        rest = lax.log1p(-z) + lax.log1p(z)
        square = chi * chi
        whole = special.gammainc(jnp.full_like(chi, 1.5), 0.5 * square)
        return (3.0 * lax.log(chi) - HALF_LOG_2PI - lax.log(0.5 * whole) + lax.log(z)
                + 0.5 * rest - 0.5 * square * (1.0 - z * z))

    def below(self, z: Array, chi: Array) -> Array:
        return 1.0 - self.above(z, chi)

    def above(self, z: Array, chi: Array) -> Array:
        half = jnp.full_like(chi, 1.5)
        square = 0.5 * chi * chi
        return special.gammainc(half, square * (1.0 - z) * (1.0 + z)) / special.gammainc(
            half, square)

    def draw(self, key: Array, like: Array, chi: Array) -> Array:
        return drawn_with_slopes(self, lax.sqrt(1.0 - argus_squares(key, chi)), chi)


class Trapezoid(Continuous):
    """The trapezoidal distribution on [0, 1], which rises up to c and falls from d on.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.trapezoid.cdf(0.5, 0.25, 0.75))
    0.5
    """

    low, high = 0.0, 1.0
    shapes = ("c", "d")

    def possible(self, c: Array, d: Array) -> Array:
        return (c >= 0) & (c <= d) & (d <= 1)

    def division(self, c: Array, d: Array) -> tuple[Array, Array]:
        return c, d

    def log_density(self, z: Array, c: Array, d: Array) -> Array:
        rise = jnp.where(z < c, z / jnp.where(c > 0, c, 1.0), 1.0)
        fall = jnp.where(z > d, (1.0 - z) / jnp.where(d < 1, 1.0 - d, 1.0), 1.0)
        return lax.log(2.0 / (1.0 + d - c)) + lax.log(jnp.minimum(rise, fall))

    def below(self, z: Array, c: Array, d: Array) -> Array:
        height = 1.0 + d - c
        rise = z * z / jnp.where(c > 0, c, 1.0)
        fall = height - (1.0 - z) ** 2 / jnp.where(d < 1, 1.0 - d, 1.0)
        return jnp.where(z < c, rise, jnp.where(z > d, fall, 2.0 * z - c)) / height

    def quantile(self, q: Array, c: Array, d: Array) -> Array:
        height = 1.0 + d - c
        rises, falls = q * height < c, (1.0 - q) * height < 1.0 - d
        rise = lax.sqrt(jnp.where(rises, q * c * height, 1.0))
        fall = 1.0 - lax.sqrt(jnp.where(falls, (1.0 - q) * height * (1.0 - d), 1.0))
        return jnp.where(rises, rise, jnp.where(falls, fall, 0.5 * (q * height + c)))


class WeibullMax(Continuous):
    """The Weibull distribution of maxima of shape c, on x < 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.weibull_max.cdf(-1.0, 2.0)), 4)
    0.3679
    """

    high = 0.0
    shapes = positive = ("c",)

    def log_density(self, z: Array, c: Array) -> Array:
        return lax.log(c) + special.xlogy(c - 1.0, -z) - power_of(-z, c)

    def below(self, z: Array, c: Array) -> Array:
        return lax.exp(-power_of(-z, c))

    def above(self, z: Array, c: Array) -> Array:
        return -lax.expm1(-power_of(-z, c))

    def log_below(self, z: Array, c: Array) -> Array:
        return -power_of(-z, c)

    def log_above(self, z: Array, c: Array) -> Array:
        return log1mexp(power_of(-z, c))

    def quantile(self, q: Array, c: Array) -> Array:
        return -power_of(-lax.log(q), 1.0 / c)

    def upper_quantile(self, q: Array, c: Array) -> Array:
        return -power_of(-lax.log1p(-q), 1.0 / c)


class LevyL(Continuous):
    """The left-skewed Levy distribution, on x < 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.levy_l.cdf(-1.0)), 4)
    0.6827
    """

    high = 0.0
    _other = Levy("levy")

    def log_density(self, z: Array) -> Array:
        return self._other.log_density(-z)

    def below(self, z: Array) -> Array:
        return self._other.above(-z)

    def above(self, z: Array) -> Array:
        return self._other.below(-z)

    def quantile(self, q: Array) -> Array:
        return -self._other.upper_quantile(q)

    def upper_quantile(self, q: Array) -> Array:
        return -self._other.quantile(q)


anglit = Anglit("anglit")
argus = Argus("argus")
bradford = Bradford("bradford")
genhalflogistic = GenHalfLogistic("genhalflogistic")
johnsonsb = JohnsonSB("johnsonsb")
levy_l = LevyL("levy_l")
loglaplace = LogLaplace("loglaplace")
rdist = RDist("rdist")
reciprocal = LogUniform("reciprocal")
trapezoid = Trapezoid("trapezoid")
truncpareto = TruncPareto("truncpareto")
truncweibull_min = TruncWeibullMin("truncweibull_min")
weibull_max = WeibullMax("weibull_max")
