"""Continuous distributions on a half line whose tail has a formula."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.nn.functions import log1mexp
from functrans.scipy import special
from functrans.scipy.special.elementary import log1p_over
from functrans.scipy.stats.base import Continuous
from functrans.typing import Array

__all__ = ["expon", "genpareto", "gompertz", "lomax", "pareto", "rayleigh", "weibull_min"]

EULER: Final = float(np.euler_gamma)
_LOG_2: Final = math.log(2.0)


class HalfLine(Continuous):
    """A family on z > 0."""

    low = 0.0


class Tailed(HalfLine):
    """A family whose tail has a formula: exp(log_above)."""

    def above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return lax.exp(self.log_above(z, *shapes))

    def below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return -lax.expm1(self.log_above(z, *shapes))

    def log_below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return log1mexp(-self.log_above(z, *shapes))

    def from_log(self, log: Array, *shapes: Any, **none: Any) -> Array:
        """z with log_above(z) = log."""
        raise TypeError(f"{self.name} has no formula for its quantiles.")

    def quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        return self.from_log(lax.log1p(-q), *shapes)

    def upper_quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        return self.from_log(lax.log(q), *shapes)


class Expon(Tailed):
    """The exponential distribution of mean scale, from loc on.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.expon.logpdf(2.0))
    -2.0
    """

    def log_density(self, z: Array) -> Array:
        return -z

    def log_above(self, z: Array) -> Array:
        return -z

    def from_log(self, log: Array) -> Array:
        return -log

    def expected(self) -> float:
        return 1.0

    def variance(self) -> float:
        return 1.0

    def information(self) -> float:
        return 1.0

    def draw(self, key: Array, like: Array) -> Array:
        return random.exponential(key, like.shape, like.dtype)


class Rayleigh(Tailed):
    """The Rayleigh distribution: the length of a plane normal vector.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.rayleigh.cdf(1.0)), 4)
    0.3935
    """

    def log_density(self, z: Array) -> Array:
        return lax.log(z) - 0.5 * z * z

    def log_above(self, z: Array) -> Array:
        return -0.5 * z * z

    def from_log(self, log: Array) -> Array:
        return lax.sqrt(-2.0 * log)

    def expected(self) -> float:
        return math.sqrt(math.pi / 2)

    def variance(self) -> float:
        return 2.0 - math.pi / 2

    def information(self) -> float:
        return 1.0 + 0.5 * EULER - 0.5 * _LOG_2


class WeibullMin(Tailed):
    """The Weibull distribution of minima, of shape c.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.weibull_min.cdf(1.0, 2.0)), 4)
    0.6321
    """

    shapes = positive = ("c",)

    @staticmethod
    def _power(z: Array, c: Array) -> Array:
        some = z > 0
        return jnp.where(some, lax.exp(c * lax.log(jnp.where(some, z, 1.0))), 0.0)

    def log_density(self, z: Array, c: Array) -> Array:
        return lax.log(c) + special.xlogy(c - 1.0, z) - self._power(z, c)

    def log_above(self, z: Array, c: Array) -> Array:
        return -self._power(z, c)

    def from_log(self, log: Array, c: Array) -> Array:
        return self._power(-log, 1.0 / c)

    def expected(self, c: Array) -> Array:
        return lax.exp(lax.lgamma(1.0 + 1.0 / c))

    def variance(self, c: Array) -> Array:
        return lax.exp(lax.lgamma(1.0 + 2.0 / c)) - self.expected(c) ** 2

    def information(self, c: Array) -> Array:
        return EULER * (1.0 - 1.0 / c) - lax.log(c) + 1.0


class Pareto(Tailed):
    """The Pareto distribution of shape b, on z >= 1.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.pareto.cdf(2.0, 1.0))
    0.5
    """

    shapes = positive = ("b",)
    low = 1.0

    def log_density(self, z: Array, b: Array) -> Array:
        return lax.log(b) - (b + 1.0) * lax.log(z)

    def log_above(self, z: Array, b: Array) -> Array:
        return -b * lax.log(z)

    def from_log(self, log: Array, b: Array) -> Array:
        return lax.exp(-log / b)

    def expected(self, b: Array) -> Array:
        return jnp.where(b > 1, b / jnp.where(b > 1, b - 1.0, 1.0), math.inf)

    def variance(self, b: Array) -> Array:
        c = jnp.where(b > 2, b, 3.0)
        return jnp.where(b > 2, c / ((c - 1.0) ** 2 * (c - 2.0)), math.inf)

    def information(self, b: Array) -> Array:
        return 1.0 + 1.0 / b - lax.log(b)


class Lomax(Tailed):
    """The Lomax distribution: a Pareto variable less 1.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.lomax.cdf(1.0, 1.0))
    0.5
    """

    shapes = positive = ("c",)

    def log_density(self, z: Array, c: Array) -> Array:
        return lax.log(c) - (c + 1.0) * lax.log1p(z)

    def log_above(self, z: Array, c: Array) -> Array:
        return -c * lax.log1p(z)

    def from_log(self, log: Array, c: Array) -> Array:
        return lax.expm1(-log / c)

    def information(self, c: Array) -> Array:
        return 1.0 + 1.0 / c - lax.log(c)


class GenPareto(Tailed):
    """The generalized Pareto distribution of shape c, which may be 0 or negative.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.genpareto.cdf(1.0, 1.0))
    0.5
    """

    shapes = ("c",)

    def ends(self, c: Array) -> tuple[float, Array]:
        return 0.0, jnp.where(c < 0, -1.0 / jnp.where(c < 0, c, -1.0), math.inf)

    def log_density(self, z: Array, c: Array) -> Array:
        return -lax.log1p(c * z) + self.log_above(z, c)

    def log_above(self, z: Array, c: Array) -> Array:
        return -log1p_over(z, c)

    def from_log(self, log: Array, c: Array) -> Array:
        return -log * special.exprel(-c * log)


class Gompertz(Tailed):
    """The Gompertz distribution of shape c.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.gompertz.sf(1.0, 1.0)), 4)
    0.1794
    """

    shapes = positive = ("c",)

    def log_density(self, z: Array, c: Array) -> Array:
        return lax.log(c) + z - c * lax.expm1(z)

    def log_above(self, z: Array, c: Array) -> Array:
        return -c * lax.expm1(z)

    def from_log(self, log: Array, c: Array) -> Array:
        return lax.log1p(-log / c)


expon = Expon("expon")
rayleigh = Rayleigh("rayleigh")
weibull_min = WeibullMin("weibull_min")
pareto = Pareto("pareto")
lomax = Lomax("lomax")
genpareto = GenPareto("genpareto")
gompertz = Gompertz("gompertz")
