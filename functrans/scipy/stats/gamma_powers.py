"""The gamma distribution, and those of which a power of the variable has it."""

from __future__ import annotations

import math
from typing import Any, Final

from functrans import lax, random
from functrans import numpy as jnp
from functrans.scipy import special
from functrans.scipy.special.densities import gamma_log_density
from functrans.scipy.special.incomplete import gammainc_of_log, gammaincc_of_log
from functrans.scipy.stats.base import Continuous
from functrans.scipy.stats.tailed import HalfLine
from functrans.typing import Array

__all__ = ["Transformed", "chi", "chi2", "gamma", "maxwell", "nakagami"]

_LOG_2: Final = math.log(2.0)


class Gamma(HalfLine):
    """The gamma distribution of shape a.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.gamma.logpdf(2.0, 1.0))
    -2.0
    """

    shapes = positive = ("a",)

    def log_density(self, z: Array, a: Array) -> Array:
        # around the mean of a large shape the terms cancel, at 0 there are no others
        some = z > 0
        safe = jnp.where(some, z, 1.0)
        centred = gamma_log_density(a, safe) - lax.log(safe)
        return jnp.where(some, centred, special.xlogy(a - 1.0, z) - lax.lgamma(a))

    def below(self, z: Array, a: Array) -> Array:
        return special.gammainc(a, z)

    def above(self, z: Array, a: Array) -> Array:
        return special.gammaincc(a, z)

    def quantile(self, q: Array, a: Array) -> Array:
        return special.gammaincinv(a, q)

    def upper_quantile(self, q: Array, a: Array) -> Array:
        return special.gammainccinv(a, q)

    def expected(self, a: Array) -> Array:
        return a

    def variance(self, a: Array) -> Array:
        return a

    def information(self, a: Array) -> Array:
        return a + lax.lgamma(a) + (1.0 - a) * lax.digamma(a)

    def draw(self, key: Array, like: Array, a: Array) -> Array:
        return random.gamma(key, a, like.shape, like.dtype)


class Transformed(HalfLine):
    """A family of which an increasing function of z has another distribution."""

    base: Continuous

    def inner(self, z: Array, *shapes: Any, **none: Any) -> tuple[Array, tuple[Array, ...]]:
        """The variable of the other distribution, and its shapes."""
        raise TypeError(f"{self.name} has no other distribution.")

    def outer(self, y: Array, *shapes: Any, **none: Any) -> Array:
        """z of the other variable."""
        raise TypeError(f"{self.name} has no other distribution.")

    def log_slope(self, z: Array, *shapes: Any, **none: Any) -> Array:
        """The logarithm of the derivative of `inner`."""
        raise TypeError(f"{self.name} has no other distribution.")

    def log_density(self, z: Array, *shapes: Any, **none: Any) -> Array:
        y, rest = self.inner(z, *shapes)
        return self.base.log_density(y, *rest) + self.log_slope(z, *shapes)

    def below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        y, rest = self.inner(z, *shapes)
        return self.base.below(y, *rest)

    def above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        y, rest = self.inner(z, *shapes)
        return self.base.above(y, *rest)

    def log_below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        y, rest = self.inner(z, *shapes)
        return self.base.log_below(y, *rest)

    def log_above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        y, rest = self.inner(z, *shapes)
        return self.base.log_above(y, *rest)

    def quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        _, rest = self.inner(jnp.ones_like(q), *shapes)
        return self.outer(self.base.quantile(q, *rest), *shapes)

    def upper_quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        _, rest = self.inner(jnp.ones_like(q), *shapes)
        return self.outer(self.base.upper_quantile(q, *rest), *shapes)

    def draw(self, key: Array, like: Array, *shapes: Any, **none: Any) -> Array:
        _, rest = self.inner(jnp.ones_like(like), *shapes)
        return self.outer(self.base.draw(key, like, *rest), *shapes)


class Chi2(Transformed):
    """The chi-squared distribution with df degrees of freedom.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.chi2.logpdf(2.0, 2.0)), 4)
    -1.6931
    """

    shapes = positive = ("df",)

    def inner(self, z: Array, df: Array) -> tuple[Array, tuple[Array, ...]]:
        return 0.5 * z, (0.5 * df,)

    def outer(self, y: Array, df: Array) -> Array:
        return 2.0 * y

    def log_slope(self, z: Array, df: Array) -> Array:
        return jnp.full_like(z, -_LOG_2)

    # half of the least number is 0
    def below(self, z: Array, df: Array) -> Array:
        return gammainc_of_log(lax.log(z) - _LOG_2, 0.5 * z, 0.5 * df)

    def above(self, z: Array, df: Array) -> Array:
        return gammaincc_of_log(lax.log(z) - _LOG_2, 0.5 * z, 0.5 * df)

    def log_below(self, z: Array, df: Array) -> Array:
        return Continuous.log_below(self, z, df)

    def log_above(self, z: Array, df: Array) -> Array:
        return Continuous.log_above(self, z, df)

    def expected(self, df: Array) -> Array:
        return df

    def variance(self, df: Array) -> Array:
        return 2.0 * df

    def information(self, df: Array) -> Array:
        half = 0.5 * df
        return half + _LOG_2 + lax.lgamma(half) + (1.0 - half) * lax.digamma(half)


class Squared(Transformed):
    """A family of which the square of z, but for a factor, is a gamma variable."""

    def log_inner(self, z: Array, *shapes: Any, **none: Any) -> Array:
        y, _ = self.inner(jnp.ones_like(z), *shapes)
        return 2.0 * lax.log(z) + lax.log(y)

    def below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        y, (a,) = self.inner(z, *shapes)
        return gammainc_of_log(self.log_inner(z, *shapes), y, a)

    def above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        y, (a,) = self.inner(z, *shapes)
        return gammaincc_of_log(self.log_inner(z, *shapes), y, a)

    def quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        return self._near_zero(lax.log(q), Transformed.quantile(self, q, *shapes), shapes)

    def upper_quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        return self._near_zero(lax.log1p(-q), Transformed.upper_quantile(self, q, *shapes), shapes)

    def _near_zero(self, log_q: Array, value: Array, shapes: Any) -> Array:
        """By the first term of the series where the square underflows."""
        y, (a,) = self.inner(jnp.ones_like(log_q), *shapes)
        log_y = (log_q + lax.lgamma(a + 1.0)) / a
        small = log_y < math.log(1e-20)
        size = lax.exp(0.5 * (jnp.where(small, log_y, 0.0) - lax.log(y)))
        return jnp.where(small, size, jnp.where(small, 1.0, value))

    def log_below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return Continuous.log_below(self, z, *shapes)

    def log_above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return Continuous.log_above(self, z, *shapes)


class Chi(Squared):
    """The chi distribution: the length of a normal vector of df elements.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.chi.pdf(1.0, 2.0)), 4)
    0.6065
    """

    shapes = positive = ("df",)

    def inner(self, z: Array, df: Array) -> tuple[Array, tuple[Array, ...]]:
        return 0.5 * z * z, (0.5 * df,)

    def outer(self, y: Array, df: Array) -> Array:
        return lax.sqrt(2.0 * y)

    def log_slope(self, z: Array, df: Array) -> Array:
        return lax.log(z)

    def log_density(self, z: Array, df: Array) -> Array:
        half = 0.5 * df
        return special.xlogy(df - 1.0, z) - 0.5 * z * z + _LOG_2 * (1.0 - half) - lax.lgamma(half)

    def expected(self, df: Array) -> Array:
        return math.sqrt(2.0) * special.poch(0.5 * df, jnp.full_like(df, 0.5))

    def variance(self, df: Array) -> Array:
        return df - self.expected(df) ** 2


class Maxwell(Squared):
    """The Maxwell distribution: the length of a normal vector in space.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.maxwell.pdf(1.0)), 4)
    0.4839
    """

    def inner(self, z: Array) -> tuple[Array, tuple[Array, ...]]:
        return 0.5 * z * z, (jnp.full_like(z, 1.5),)

    def outer(self, y: Array) -> Array:
        return lax.sqrt(2.0 * y)

    def log_density(self, z: Array) -> Array:
        return 0.5 * math.log(2 / math.pi) + 2.0 * lax.log(z) - 0.5 * z * z

    def expected(self) -> float:
        return 2 * math.sqrt(2 / math.pi)

    def variance(self) -> float:
        return 3 - 8 / math.pi


class Nakagami(Squared):
    """The Nakagami distribution: the root of a gamma variable of shape and rate nu.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.nakagami.cdf(1.0, 1.0)), 4)
    0.6321
    """

    shapes = positive = ("nu",)

    def inner(self, z: Array, nu: Array) -> tuple[Array, tuple[Array, ...]]:
        return nu * z * z, (nu,)

    def outer(self, y: Array, nu: Array) -> Array:
        return lax.sqrt(y / nu)

    def log_density(self, z: Array, nu: Array) -> Array:
        return _LOG_2 + special.xlogy(nu, nu) - lax.lgamma(nu) + special.xlogy(2.0 * nu - 1.0, z) \
            - nu * z * z


gamma = Gamma("gamma")
Chi2.base = Chi.base = Maxwell.base = Nakagami.base = gamma
chi2 = Chi2("chi2")
chi = Chi("chi")
maxwell = Maxwell("maxwell")
nakagami = Nakagami("nakagami")
