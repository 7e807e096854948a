"""Noncentral t and F distributions, and the range of normal variables over a deviation."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.scipy import special
from functrans.scipy.special.common import HALF_LOG_2PI, loop
from functrans.scipy.stats.base import Continuous
from functrans.scipy.stats.integrals import log_peak_integral
from functrans.scipy.stats.tailed import HalfLine
from functrans.typing import Array

__all__ = ["ncf", "nct", "studentized_range"]

_TERMS: Final = 1_000_000


def _over_deviation(log_fun: Any, df: Array) -> Array:
    """The logarithm of the mean of exp(log_fun(log s)) for s^2 a chi-squared variable over df."""
    nu = df[..., None]
    front = 0.5 * nu * lax.log(0.5 * nu) - lax.lgamma(0.5 * nu) + math.log(2.0)
    # of large degrees these terms are what is left of large ones
    large = nu > 50.0
    series = 0.5 * nu + 0.5 * lax.log(nu / math.pi) + (-1.0 / 6.0 + (
        1.0 / 45.0 - 8.0 / 315.0 / (nu * nu)) / (nu * nu)) / nu
    front = jnp.where(large, series, front)

    def curve(u: Array) -> Array:
        off = jnp.where(large, -0.5 * nu * (lax.expm1(2.0 * u) - 2.0 * u),
                        nu * u - 0.5 * nu * lax.exp(2.0 * u))
        result: Array = jnp.where(large, off + front - 0.5 * nu, off + front) + log_fun(u)
        return result

    low = -40.0 - 50.0 / df
    high = 1.0 + 0.5 * lax.log1p(1600.0 / df)
    return log_peak_integral(curve, low, high, zooms=8)


def _double(*xs: Array) -> list[Array]:
    return [x.astype(np.float64) for x in xs]


class NCT(Continuous):
    """The noncentral t distribution of df degrees of freedom and noncentrality nc.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.nct.cdf(0.0, 5.0, 1.0)), 4)
    0.1587
    """

    shapes = ("df", "nc")

    def possible(self, df: Array, nc: Array) -> Array:
        return (df > 0) & (nc == nc)

    def log_density(self, z: Array, df: Array, nc: Array) -> Array:
        x, nu, off = _double(z, df, nc)
        at, centre = x[..., None], off[..., None]
        return _over_deviation(lambda u: u - HALF_LOG_2PI - 0.5 * (
            at * lax.exp(u) - centre) ** 2, nu).astype(z.dtype)

    def _log_tail(self, z: Array, df: Array, nc: Array) -> tuple[Array, Array]:
        """Whether z is below nc, and the logarithm of the tail on its side."""
        x, nu, off = _double(z, df, nc)
        lower = x < off
        way = jnp.where(lower, 1.0, -1.0)
        at, centre = (way * x)[..., None], (way * off)[..., None]
        tail = _over_deviation(lambda u: special.log_ndtr(at * lax.exp(u) - centre), nu)
        return lower, jnp.minimum(tail, 0.0)

    def log_tail(self, z: Array, lower: Any, df: Array, nc: Array) -> Array:
        left, tail = self._log_tail(z, df, nc)
        rest = lax.log1p(-lax.exp(jnp.minimum(tail, -1e-16)))
        return jnp.where(left == lower, tail, rest).astype(z.dtype)

    def log_below(self, z: Array, df: Array, nc: Array) -> Array:
        return self.log_tail(z, True, df, nc)

    def log_above(self, z: Array, df: Array, nc: Array) -> Array:
        return self.log_tail(z, False, df, nc)

    def below(self, z: Array, df: Array, nc: Array) -> Array:
        return lax.exp(self.log_below(z, df, nc))

    def above(self, z: Array, df: Array, nc: Array) -> Array:
        return lax.exp(self.log_above(z, df, nc))

    def expected(self, df: Array, nc: Array) -> Array:
        some = df > 1
        nu = jnp.where(some, df, 2.0)
        return jnp.where(some, nc * lax.sqrt(0.5 * nu) * lax.exp(
            lax.lgamma(0.5 * (nu - 1.0)) - lax.lgamma(0.5 * nu)), math.nan)

    def variance(self, df: Array, nc: Array) -> Array:
        some = df > 2
        nu = jnp.where(some, df, 3.0)
        value = nu * (1.0 + nc * nc) / (nu - 2.0) - self.expected(nu, nc) ** 2
        return jnp.where(some, value, jnp.where(df > 1, math.inf, math.nan))

    def draw(self, key: Array, like: Array, df: Array, nc: Array) -> Array:
        one, two = random.split(key)
        share = random.gamma(one, 0.5 * df, like.shape, like.dtype) / (0.5 * df)
        return (nc + random.normal(two, like.shape, like.dtype)) / lax.sqrt(share)


class NCF(HalfLine):
    """The noncentral F distribution of dfn and dfd degrees of freedom and noncentrality nc.

    Sums of beta probabilities with Poisson weights: below upwards from the largest one, above from
    the first one on, so that each term is added.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.ncf.cdf(1.0, 2.0, 3.0, 1.0)), 4)
    0.412
    """

    shapes = ("dfn", "dfd", "nc")

    def possible(self, dfn: Array, dfd: Array, nc: Array) -> Array:
        return (dfn > 0) & (dfd > 0) & (nc >= 0)

    @staticmethod
    def _shares(z: Array, dfn: Array, dfd: Array) -> tuple[Array, Array]:
        whole = dfn * z + dfd
        return dfn * z / whole, dfd / whole

    @staticmethod
    def _log_weight(j: Array, half: Array) -> Array:
        return special.xlogy(j, half) - half - lax.lgamma(j + 1.0)

    @staticmethod
    def _log_step(j: Array, x: Array, y: Array, a: Array, b: Array) -> Array:
        """log(x^a y^b / (a B(a, b))) for a + j: by how much the beta probability of a falls."""
        return ((a + j) * lax.log(x) + b * lax.log(y) - lax.log(a + j)
                - special.betaln(a + j, b))

    def log_density(self, z: Array, dfn: Array, dfd: Array, nc: Array) -> Array:
        dtype = z.dtype
        z, dfn, dfd, nc = _double(z, dfn, dfd, nc)
        x, y = self._shares(z, dfn, dfd)
        a, b, half = 0.5 * dfn, 0.5 * dfd, 0.5 * nc

        def term(j: Array) -> Array:
            return (self._log_weight(j, half) + (a + j) * lax.log(x) + b * lax.log(y)
                    - lax.log(z) - special.betaln(a + j, b))

        def step(i: Any, j: Array, total: Array, last: Array) -> tuple[Array, ...]:
            now = term(j)
            return j + 1.0, jnp.logaddexp(total, now), now

        first = term(jnp.zeros_like(z))
        out = loop(step, (jnp.ones_like(z), first, first), lambda j, total, last: (
            (j < half) | (last > total - 42.0)) & (half > 0), _TERMS)
        return out[1].astype(dtype)

    def below(self, z: Array, dfn: Array, dfd: Array, nc: Array) -> Array:
        dtype = z.dtype
        z, dfn, dfd, nc = _double(z, dfn, dfd, nc)
        x, y = self._shares(z, dfn, dfd)
        a, b, half = 0.5 * dfn, 0.5 * dfd, 0.5 * nc
        start = lax.stop_gradient(lax.ceil(half + 9.0 * lax.sqrt(half) + 20.0))

        def step(i: Any, j: Array, share: Array, total: Array) -> tuple[Array, ...]:
            below = share + lax.exp(self._log_step(j - 1.0, x, y, a, b))
            return j - 1.0, below, total + lax.exp(self._log_weight(j - 1.0, half)) * below

        first = special.betainc(a + start, b, x)
        out = loop(step, (start, first, lax.exp(self._log_weight(start, half)) * first),
                   lambda j, share, total: j > 0, _TERMS)
        return out[2].astype(dtype)

    def above(self, z: Array, dfn: Array, dfd: Array, nc: Array) -> Array:
        dtype = z.dtype
        z, dfn, dfd, nc = _double(z, dfn, dfd, nc)
        x, y = self._shares(z, dfn, dfd)
        a, b, half = 0.5 * dfn, 0.5 * dfd, 0.5 * nc

        def step(i: Any, j: Array, share: Array, total: Array, last: Array) -> tuple[Array, ...]:
            above = share + lax.exp(self._log_step(j, x, y, a, b))
            term = lax.exp(self._log_weight(j + 1.0, half)) * above
            return j + 1.0, above, total + term, term

        first = special.betaincc(a, b, x)
        term = lax.exp(-half) * first
        out = loop(step, (jnp.zeros_like(z), first, term, term), lambda j, share, total, last: (
            (j < half) | (last > 1e-18 * total)) & (half > 0), _TERMS)
        return out[2].astype(dtype)

    def expected(self, dfn: Array, dfd: Array, nc: Array) -> Array:
        some = dfd > 2
        d = jnp.where(some, dfd, 3.0)
        return jnp.where(some, d * (dfn + nc) / (dfn * (d - 2.0)), math.inf)

    def variance(self, dfn: Array, dfd: Array, nc: Array) -> Array:
        some = dfd > 4
        d = jnp.where(some, dfd, 5.0)
        value = 2.0 * (d / dfn) ** 2 * ((dfn + nc) ** 2 + (dfn + 2.0 * nc) * (d - 2.0)) / (
            (d - 2.0) ** 2 * (d - 4.0))
        return jnp.where(some, value, math.inf)

    def draw(self, key: Array, like: Array, dfn: Array, dfd: Array, nc: Array) -> Array:
        one, two, three = random.split(key, 3)
        more = random.poisson(one, 0.5 * nc, like.shape).astype(like.dtype)
        top = random.gamma(two, 0.5 * dfn + more, like.shape, like.dtype) / (0.5 * dfn)
        return top * (0.5 * dfd) / random.gamma(three, 0.5 * dfd, like.shape, like.dtype)


_GAUSS = np.polynomial.legendre.leggauss(64)
_PLACES: Final = 9.0 * _GAUSS[0]
_PLACE_WEIGHTS: Final = 9.0 * _GAUSS[1]


class StudentizedRange(HalfLine):
    """Tukey's studentized range, of k means and df degrees of freedom, which may be infinite.

    Integrals over the deviation and over the largest mean.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.studentized_range.cdf(3.0, 3.0, 10.0)), 4)
    0.865
    """

    shapes = ("k", "df")

    def possible(self, k: Array, df: Array) -> Array:
        return (k > 1) & (df > 0)

    @staticmethod
    def _log_range(w: Array, k: Array, lower: Any) -> Array:
        """log of what is below or above of a range of k normals, or without `lower` the density."""
        w, k = w[..., None], k[..., None]
        # the largest of them, or for what is above the middle of the largest and the least
        side = False if lower is None else lower[..., None]
        y = _PLACES + jnp.where(side, 0.0, 0.5 * w)
        high, low = special.log_ndtr(y), special.log_ndtr(y - w)
        ratio = jnp.minimum(low - high, -1e-300)
        inner = lax.log(-lax.expm1(ratio)) + high
        normal = -0.5 * y * y - HALF_LOG_2PI + lax.log(k)
        if lower is None:
            logs = (normal - 0.5 * (y - w) ** 2 - HALF_LOG_2PI + lax.log(k - 1.0)
                    + (k - 2.0) * inner)
        else:
            share = (k - 1.0) * lax.log1p(-lax.exp(jnp.minimum(ratio, -1e-16)))
            above = (k - 1.0) * high + lax.log(-lax.expm1(share))
            logs = normal + jnp.where(side, (k - 1.0) * inner, above)
        return special.logsumexp(logs, -1, b=_PLACE_WEIGHTS)

    def _found(self, z: Array, k: Array, df: Array, lower: Any) -> Array:
        x, count, nu = _double(z, k, df)
        endless = nu > 1e10
        at, each = x[..., None], count[..., None]
        side = None if lower is None else jnp.broadcast_to(lower, x.shape)
        sides = None if side is None else side[..., None]

        def curve(u: Array) -> Array:
            logs = self._log_range(at * lax.exp(u), each + 0.0 * u, sides)
            return logs + u if lower is None else logs

        finite = _over_deviation(curve, jnp.where(endless, 1e3, nu))
        alone = self._log_range(x, count, side)
        return jnp.where(endless, alone, finite).astype(z.dtype)

    def log_density(self, z: Array, k: Array, df: Array) -> Array:
        return self._found(z, k, df, None)

    def log_tail(self, z: Array, lower: Any, k: Array, df: Array) -> Array:
        return jnp.minimum(self._found(z, k, df, lower), 0.0)

    def log_above(self, z: Array, k: Array, df: Array) -> Array:
        return self.log_tail(z, False, k, df)

    def log_below(self, z: Array, k: Array, df: Array) -> Array:
        return self.log_tail(z, True, k, df)

    def above(self, z: Array, k: Array, df: Array) -> Array:
        return lax.exp(self.log_above(z, k, df))

    def below(self, z: Array, k: Array, df: Array) -> Array:
        return lax.exp(self.log_below(z, k, df))

    def draw(self, key: Array, like: Array, k: Array, df: Array) -> Array:
        """By the least and the largest of k uniform numbers."""
        one, two = random.split(key)
        u, v = random.uniform(one, (2, *like.shape), like.dtype, minval=1e-30)
        largest = lax.log(u) / k
        least = largest + lax.log(-lax.expm1(lax.log(v) / (k - 1.0)))
        endless = df > 1e10
        nu = jnp.where(endless, 1.0, df)
        share = random.gamma(two, 0.5 * nu, like.shape, like.dtype) / (0.5 * nu)
        span = special.ndtri_exp(jnp.minimum(largest, -1e-30)) - special.ndtri_exp(least)
        return span / jnp.where(endless, 1.0, lax.sqrt(share))


nct, ncf = NCT("nct"), NCF("ncf")
studentized_range = StudentizedRange("studentized_range")
