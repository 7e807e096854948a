"""Continuous distributions on an interval and on a circle."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.scipy import special
from functrans.scipy.special.common import HALF_LOG_2PI, polynomial
from functrans.scipy.special.densities import beta_log_density
from functrans.scipy.stats.accepting import accepted
from functrans.scipy.stats.base import Continuous
from functrans.scipy.stats.rejection import vonmises_angles
from functrans.scipy.stats.slopes import drawn_with_slopes
from functrans.typing import Array

__all__ = ["arcsine", "beta", "cosine", "loguniform", "powerlaw", "semicircular", "triang",
           "truncexpon", "truncnorm", "uniform", "vonmises", "wrapcauchy"]


class Interval(Continuous):
    """A family on 0 < z < 1."""

    low, high = 0.0, 1.0


class Uniform(Interval):
    """The uniform distribution on [loc, loc + scale].

    >>> import functrans as ft
    >>> float(ft.scipy.stats.uniform.logpdf(2.0))
    -inf
    """

    def log_density(self, z: Array) -> Array:
        return jnp.zeros_like(z)

    def below(self, z: Array) -> Array:
        return z

    def quantile(self, q: Array) -> Array:
        return q

    def expected(self) -> float:
        return 0.5

    def variance(self) -> float:
        return 1 / 12

    def information(self) -> float:
        return 0.0

    def draw(self, key: Array, like: Array) -> Array:
        return random.uniform(key, like.shape, like.dtype)


class Beta(Interval):
    """The beta distribution of shapes a and b on [loc, loc + scale].

    >>> import functrans as ft
    >>> abs(round(float(ft.scipy.stats.beta.logpdf(0.5, 1.0, 1.0)), 4))
    0.0
    >>> round(float(ft.scipy.stats.beta.cdf(0.5, 2.0, 2.0)), 4)
    0.5
    """

    shapes = positive = ("a", "b")

    def log_density(self, z: Array, a: Array, b: Array) -> Array:
        some = (z > 0) & (z < 1)
        safe = jnp.where(some, z, 0.5)
        inner = beta_log_density(a, b, safe, 1.0 - safe) - lax.log(safe) - lax.log1p(-safe)
        end = special.xlogy(a - 1.0, z) + special.xlog1py(b - 1.0, -z) - special.betaln(a, b)
        return jnp.where(some, inner, end)

    def below(self, z: Array, a: Array, b: Array) -> Array:
        return special.betainc(a, b, z)

    def above(self, z: Array, a: Array, b: Array) -> Array:
        return special.betaincc(a, b, z)

    def quantile(self, q: Array, a: Array, b: Array) -> Array:
        return special.betaincinv(a, b, q)

    def upper_quantile(self, q: Array, a: Array, b: Array) -> Array:
        return special.betainccinv(a, b, q)

    def expected(self, a: Array, b: Array) -> Array:
        return a / (a + b)

    def variance(self, a: Array, b: Array) -> Array:
        return a * b / ((a + b) ** 2 * (a + b + 1.0))

    def information(self, a: Array, b: Array) -> Array:
        return special.betaln(a, b) - (a - 1.0) * lax.digamma(a) - (b - 1.0) * lax.digamma(b) \
            + (a + b - 2.0) * lax.digamma(a + b)

    def draw(self, key: Array, like: Array, a: Array, b: Array) -> Array:
        return random.beta(key, a, b, like.shape, like.dtype)


class Arcsine(Interval):
    """The arcsine distribution.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.arcsine.cdf(0.5)), 4)
    0.5
    """

    def log_density(self, z: Array) -> Array:
        return -math.log(math.pi) - 0.5 * lax.log(z) - 0.5 * lax.log1p(-z)

    def below(self, z: Array) -> Array:
        return (2 / math.pi) * lax.asin(lax.sqrt(z))

    def above(self, z: Array) -> Array:
        return (2 / math.pi) * lax.acos(lax.sqrt(z))

    def quantile(self, q: Array) -> Array:
        return lax.sin(0.5 * math.pi * q) ** 2

    def upper_quantile(self, q: Array) -> Array:
        return lax.cos(0.5 * math.pi * q) ** 2

    def expected(self) -> float:
        return 0.5

    def variance(self) -> float:
        return 1 / 8

    def information(self) -> float:
        return math.log(math.pi / 4)


class PowerLaw(Interval):
    """The distribution of density a x^(a - 1) on [0, 1].

    >>> import functrans as ft
    >>> float(ft.scipy.stats.powerlaw.cdf(0.5, 1.0))
    0.5
    """

    shapes = positive = ("a",)

    def log_density(self, z: Array, a: Array) -> Array:
        return lax.log(a) + special.xlogy(a - 1.0, z)

    def below(self, z: Array, a: Array) -> Array:
        return lax.exp(a * lax.log(z))

    def above(self, z: Array, a: Array) -> Array:
        return -lax.expm1(a * lax.log(z))

    def log_below(self, z: Array, a: Array) -> Array:
        return a * lax.log(z)

    def quantile(self, q: Array, a: Array) -> Array:
        return lax.exp(lax.log(q) / a)

    def upper_quantile(self, q: Array, a: Array) -> Array:
        return lax.exp(lax.log1p(-q) / a)

    def expected(self, a: Array) -> Array:
        return a / (a + 1.0)

    def variance(self, a: Array) -> Array:
        return a / ((a + 2.0) * (a + 1.0) ** 2)

    def information(self, a: Array) -> Array:
        return 1.0 - 1.0 / a - lax.log(a)


class Triang(Interval):
    """The triangular distribution on [0, 1] whose density has its peak at c.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.triang.pdf(0.5, 0.5))
    2.0
    """

    shapes = ("c",)

    def possible(self, *shapes: Any, **none: Any) -> Any:
        return (shapes[0] >= 0) & (shapes[0] <= 1)

    def division(self, c: Array) -> Array:
        return c

    def log_density(self, z: Array, c: Array) -> Array:
        left = (z < c) | ((z == c) & (c == 1))
        rise = z / jnp.where(left, c, 1.0)
        fall = (1.0 - z) / jnp.where(left, 1.0, 1.0 - c)
        return math.log(2.0) + lax.log(jnp.where(left, rise, fall))

    def below(self, z: Array, c: Array) -> Array:
        left = z < c
        return jnp.where(left, z * z / jnp.where(left, c, 1.0),
                         1.0 - (1.0 - z) ** 2 / jnp.where(left, 1.0, 1.0 - c))

    def above(self, z: Array, c: Array) -> Array:
        left = z < c
        return jnp.where(left, 1.0 - z * z / jnp.where(left, c, 1.0),
                         (1.0 - z) ** 2 / jnp.where(left, 1.0, 1.0 - c))

    def quantile(self, q: Array, c: Array) -> Array:
        left = q < c
        return jnp.where(left, lax.sqrt(jnp.where(left, c * q, 1.0)),
                         1.0 - lax.sqrt(jnp.where(left, 1.0, (1.0 - c) * (1.0 - q))))

    def upper_quantile(self, q: Array, c: Array) -> Array:
        return 1.0 - self.quantile(q, 1.0 - c)

    def expected(self, c: Array) -> Array:
        return (c + 1.0) / 3.0

    def variance(self, c: Array) -> Array:
        return (1.0 - c + c * c) / 18.0

    def information(self, c: Array) -> Array:
        return jnp.full_like(c, 0.5 - math.log(2.0))


class TruncExpon(Continuous):
    """The exponential distribution on condition that it is below b.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.truncexpon.cdf(1.0, 2.0)), 4)
    0.7311
    """

    shapes = positive = ("b",)

    def ends(self, b: Array) -> tuple[float, Array]:
        return 0.0, b

    def log_density(self, z: Array, b: Array) -> Array:
        return -z - lax.log(-lax.expm1(-b))

    def below(self, z: Array, b: Array) -> Array:
        return lax.expm1(-z) / lax.expm1(-b)

    def above(self, z: Array, b: Array) -> Array:
        return lax.exp(-z) * lax.expm1(z - b) / lax.expm1(-b)

    def quantile(self, q: Array, b: Array) -> Array:
        return -lax.log1p(q * lax.expm1(-b))

    def upper_quantile(self, q: Array, b: Array) -> Array:
        # -log(exp(-b) + q (1 - exp(-b))), by the distance to b where that is what has digits
        shift = lax.log(q) + lax.log(-lax.expm1(-b)) + b
        near = shift < 0
        end = b - lax.log1p(lax.exp(jnp.where(near, shift, -1.0)))
        start = -lax.log1p((q - 1.0) * -lax.expm1(-b))
        far = b - shift - lax.log1p(lax.exp(-jnp.where(near, 1.0, shift)))
        return jnp.where(near, end, jnp.where(q > 0.5, start, far))

    def expected(self, b: Array) -> Array:
        return 1.0 - b / lax.expm1(b)


class LogUniform(Continuous):
    """The distribution on [a, b] whose logarithm is uniform.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.loguniform.cdf(10.0, 1.0, 100.0)), 4)
    0.5
    """

    shapes = ("a", "b")

    def possible(self, *shapes: Any, **none: Any) -> Any:
        return (shapes[0] > 0) & (shapes[1] > shapes[0])

    def ends(self, a: Array, b: Array) -> tuple[Array, Array]:
        return a, b

    def log_density(self, z: Array, a: Array, b: Array) -> Array:
        return -lax.log(z) - lax.log(lax.log(b / a))

    def below(self, z: Array, a: Array, b: Array) -> Array:
        return lax.log(z / a) / lax.log(b / a)

    def above(self, z: Array, a: Array, b: Array) -> Array:
        return lax.log(b / z) / lax.log(b / a)

    def quantile(self, q: Array, a: Array, b: Array) -> Array:
        return a * lax.exp(q * lax.log(b / a))

    def upper_quantile(self, q: Array, a: Array, b: Array) -> Array:
        return b * lax.exp(-q * lax.log(b / a))

    def expected(self, a: Array, b: Array) -> Array:
        return (b - a) / lax.log(b / a)


_GAUSS = np.polynomial.legendre.leggauss(12)


class TruncNorm(Continuous):
    """The normal distribution on condition that z is in [a, b].

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.truncnorm.cdf(0.0, -1.0, 1.0)), 4)
    0.5
    """

    shapes = ("a", "b")

    def possible(self, *shapes: Any, **none: Any) -> Any:
        return shapes[0] < shapes[1]

    def ends(self, a: Array, b: Array) -> tuple[Array, Array]:
        return a, b

    @staticmethod
    def _log_mass(a: Array, b: Array) -> Array:
        """log(Phi(b) - Phi(a)), by the tail that both are in."""
        right = a > 0
        low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
        one_tail = high <= 0
        far = jnp.where(one_tail, high, -1.0)
        near = jnp.where(one_tail, low, -2.0)
        top, bottom = special.log_ndtr(far), special.log_ndtr(near)
        some = bottom > -math.inf
        tail = top + jnp.where(some, lax.log1p(-lax.exp(jnp.where(some, bottom - top, -1.0))), 0.0)
        safe_low, safe_high = jnp.where(one_tail, -1.0, low), jnp.where(one_tail, 1.0, high)
        both = lax.log1p(-special.ndtr(safe_low) - special.ndtr(-safe_high))
        # of an interval on which the density changes little the two are equal but for roundoff
        width = b - a
        short = width * (1.0 + lax.abs(a)) < 0.5
        half, start = jnp.where(short, 0.5 * width, 0.1), jnp.where(short, a, 0.0)
        middle = start + half
        step = half[..., None] * _GAUSS[0].astype(a.dtype)
        mean = 0.5 * jnp.sum(_GAUSS[1].astype(a.dtype) * lax.exp(
            -step * (middle[..., None] + 0.5 * step)), -1)
        inner = lax.log(2.0 * half) + lax.log(mean) - 0.5 * middle * middle - HALF_LOG_2PI
        return jnp.where(short, inner, jnp.where(one_tail, tail, both))

    def log_density(self, z: Array, a: Array, b: Array) -> Array:
        return -0.5 * z * z - HALF_LOG_2PI - self._log_mass(a, b)

    def log_below(self, z: Array, a: Array, b: Array) -> Array:
        return self._log_mass(a, z) - self._log_mass(a, b)

    def log_above(self, z: Array, a: Array, b: Array) -> Array:
        return self._log_mass(z, b) - self._log_mass(a, b)

    def below(self, z: Array, a: Array, b: Array) -> Array:
        return lax.exp(self.log_below(z, a, b))

    def above(self, z: Array, a: Array, b: Array) -> Array:
        return lax.exp(self.log_above(z, a, b))

    def quantile(self, q: Array, a: Array, b: Array) -> Array:
        # of the tail that has the digits: log(Phi(a) + q (Phi(b) - Phi(a))) and its mirror
        right = a > 0
        low = jnp.where(right, -b, a)
        log_share = jnp.where(right, lax.log1p(-q), lax.log(q))
        start = special.log_ndtr(low)
        log = jnp.logaddexp(start, log_share + self._log_mass(a, b))
        z = special.ndtri_exp(jnp.minimum(log, 0.0))
        z = jnp.clip(jnp.where(right, -z, z), a, b)
        # beside a the quantile is a distance, which Newton's method finds from the first power
        bottom = jnp.where(a > -math.inf, a, 0.0)
        first = q * lax.exp(-self.log_density(bottom, a, b))
        near = (a > -math.inf) & (first * (1.0 + lax.abs(bottom)) < 1e-3)
        place = bottom + jnp.where(near, first, 1e-3)
        start, end = jnp.where(near, a, 0.0), jnp.where(near, b, 1.0)
        for _ in range(2):
            place = place + (q - self.below(place, start, end)) * lax.exp(
                -self.log_density(place, start, end))
        return jnp.where(near, jnp.minimum(place, b), z)

    def upper_quantile(self, q: Array, a: Array, b: Array) -> Array:
        return -self.quantile(q, -b, -a)

    def expected(self, a: Array, b: Array) -> Array:
        log_mass = self._log_mass(a, b)
        return self._height(a, log_mass) - self._height(b, log_mass)

    @staticmethod
    def _height(x: Array, log_mass: Array) -> Array:
        some = lax.abs(x) < math.inf
        safe = jnp.where(some, x, 0.0)
        return jnp.where(some, lax.exp(-0.5 * safe * safe - HALF_LOG_2PI - log_mass), 0.0)

    def variance(self, a: Array, b: Array) -> Array:
        log_mass = self._log_mass(a, b)
        low, high = self._height(a, log_mass), self._height(b, log_mass)
        at_low = jnp.where(lax.abs(a) < math.inf, a, 0.0) * low
        at_high = jnp.where(lax.abs(b) < math.inf, b, 0.0) * high
        return 1.0 + at_low - at_high - (low - high) ** 2


class Semicircular(Continuous):
    """The semicircular distribution of Wigner on [-1, 1].

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.semicircular.cdf(0.0)), 4)
    0.5
    """

    low, high = -1.0, 1.0

    def log_density(self, z: Array) -> Array:
        return math.log(2 / math.pi) + 0.5 * lax.log1p(-z) + 0.5 * lax.log1p(z)

    def below(self, z: Array) -> Array:
        # (v - sin v) / (2 pi), for -z the cosine of v / 2, which is small at the lower end
        half = 2.0 * lax.atan2(lax.sqrt(1.0 + z), lax.sqrt(1.0 - z))
        return _less_sine(2.0 * half) / (2 * math.pi)

    def above(self, z: Array) -> Array:
        return self.below(-z)

    def expected(self) -> float:
        return 0.0

    def variance(self) -> float:
        return 0.25

    def information(self) -> float:
        return math.log(math.pi) - 0.5


# (v - sin v) / v^3 in powers of v^2
_WITHOUT_SINE: Final = [(-1) ** k / math.factorial(2 * k + 3) for k in range(10)]


def _less_sine(v: Array) -> Array:
    """v - sin(v) for v >= 0, by its series where the two cancel."""
    near = v < 1.0
    square = jnp.where(near, v * v, 0.0)
    return jnp.where(near, v * square * polynomial(square, _WITHOUT_SINE), v - lax.sin(v))


class Cosine(Continuous):
    """The raised cosine distribution on [-pi, pi].

    >>> import functrans as ft
    >>> float(ft.scipy.stats.cosine.cdf(0.0))
    0.5
    """

    low, high = -math.pi, math.pi

    def log_density(self, z: Array) -> Array:
        return math.log(1 / math.pi) + 2.0 * lax.log(lax.abs(lax.cos(0.5 * z)))

    def below(self, z: Array) -> Array:
        return _less_sine(math.pi + z) / (2 * math.pi)

    def above(self, z: Array) -> Array:
        return self.below(-z)

    def expected(self) -> float:
        return 0.0

    def variance(self) -> float:
        return math.pi**2 / 3 - 2

    def draw(self, key: Array, like: Array) -> Array:
        def propose(key: Array) -> tuple[Array, Array]:
            first, second = random.uniform(key, (2, *like.shape), like.dtype)
            angle = math.pi * (2.0 * first - 1.0)
            return angle, ~(second >= lax.cos(0.5 * angle) ** 2)

        return accepted(key, like, propose)


class WrapCauchy(Continuous):
    """The wrapped Cauchy distribution on [0, 2 pi].

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.wrapcauchy.pdf(0.0, 0.5)), 4)
    0.4775
    """

    shapes = ("c",)
    low, high = 0.0, 2 * math.pi

    def possible(self, *shapes: Any, **none: Any) -> Any:
        return (shapes[0] > 0) & (shapes[0] < 1)

    def log_density(self, z: Array, c: Array) -> Array:
        return lax.log1p(-c * c) - math.log(2 * math.pi) - lax.log1p(c * c - 2.0 * c * lax.cos(z))

    def below(self, z: Array, c: Array) -> Array:
        ratio = (1.0 + c) / (1.0 - c)
        angle = lax.atan2(ratio * lax.sin(0.5 * z), lax.cos(0.5 * z))
        return angle / math.pi

    def quantile(self, q: Array, c: Array) -> Array:
        ratio = (1.0 - c) / (1.0 + c)
        angle = lax.atan2(ratio * lax.sin(math.pi * q), lax.cos(math.pi * q))
        return 2.0 * angle

    def upper_quantile(self, q: Array, c: Array) -> Array:
        return 2.0 * math.pi - self.quantile(q, c)

    def information(self, c: Array) -> Array:
        return math.log(2 * math.pi) + lax.log1p(-c * c)


_LEGENDRE = np.polynomial.legendre.leggauss(200)


class VonMises(Continuous):
    """The von Mises distribution, a normal distribution on the circle, of concentration kappa.

    Its density is that of an angle and repeats itself; cdf counts turns, as SciPy's does.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.vonmises.pdf(0.0, 1.0)), 4)
    0.3417
    """

    shapes = ("kappa",)

    def possible(self, *shapes: Any, **none: Any) -> Any:
        return shapes[0] >= 0

    def log_density(self, z: Array, kappa: Array) -> Array:
        half = lax.sin(0.5 * z)
        return -2.0 * kappa * half * half - math.log(2 * math.pi) - lax.log(special.i0e(kappa))

    def below(self, z: Array, kappa: Array) -> Array:
        turns = lax.stop_gradient(jnp.round(z / (2 * math.pi)))
        rest = z - turns * (2 * math.pi)
        tail = self._tail(lax.abs(rest), kappa)
        return turns + jnp.where(rest <= 0, tail, 1.0 - tail)

    def above(self, z: Array, kappa: Array) -> Array:
        return self.below(-z, kappa)

    def _tail(self, angle: Array, kappa: Array) -> Array:
        """The probability of angles above the given one in [0, pi], by Gauss's rule.

        To pi, or to where the density is exp(-40) of that at the angle.
        """
        square = lax.sin(0.5 * angle) ** 2 + 20.0 / jnp.maximum(kappa, 1e-9)
        ends = lax.stop_gradient(square) < 1.0
        last = 2.0 * lax.asin(lax.sqrt(jnp.where(ends, square, 0.0)))
        length = jnp.where(ends, lax.stop_gradient(last - angle), math.pi - angle)
        nodes = (0.5 * (_LEGENDRE[0] + 1.0)).astype(angle.dtype)
        weights = (0.5 * _LEGENDRE[1]).astype(angle.dtype)
        at = angle[..., None] + length[..., None] * nodes
        return length * jnp.sum(weights * lax.exp(self.log_density(at, kappa[..., None])), -1)

    def quantile(self, q: Array, kappa: Array) -> Array:
        return VonMisesLine("vonmises").quantile(q, kappa)

    def upper_quantile(self, q: Array, kappa: Array) -> Array:
        return -self.quantile(q, kappa)

    def draw(self, key: Array, like: Array, kappa: Array) -> Array:
        return drawn_with_slopes(self, vonmises_angles(key, kappa), kappa)

    def of_means(self) -> Continuous:
        return VonMisesLine("vonmises")

    def expected(self, kappa: Array) -> Array:
        return jnp.zeros_like(kappa)

    def information(self, kappa: Array) -> Array:
        ratio = special.i1e(kappa) / special.i0e(kappa)
        return kappa * (1.0 - ratio) + math.log(2 * math.pi) + lax.log(special.i0e(kappa))


class VonMisesLine(VonMises):
    """The von Mises distribution of angles in [-pi, pi].

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.vonmises_line.cdf(0.0, 1.0)), 4)
    0.5
    """

    low, high = -math.pi, math.pi

    def quantile(self, q: Array, kappa: Array) -> Array:
        return Continuous.quantile(self, q, kappa)

    def of_means(self) -> Continuous:
        return self


uniform, beta, arcsine = Uniform("uniform"), Beta("beta"), Arcsine("arcsine")
powerlaw, triang, truncexpon = PowerLaw("powerlaw"), Triang("triang"), TruncExpon("truncexpon")
loguniform, truncnorm = LogUniform("loguniform"), TruncNorm("truncnorm")
semicircular, cosine = Semicircular("semicircular"), Cosine("cosine")
wrapcauchy, vonmises = WrapCauchy("wrapcauchy"), VonMises("vonmises")
