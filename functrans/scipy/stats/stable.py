"""Stable distributions, whose sums are of the same kind, and Landau's, which is one of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.scipy import special
from functrans.scipy.special.common import partials, pushed
from functrans.scipy.stats.base import Continuous
from functrans.scipy.stats.integrals import log_peak_integral
from functrans.typing import Array

__all__ = ["landau", "levy_stable"]

_SPAN: Final = 120.0
_FAR: Final = 1e9
_HALF_PI: Final = 0.5 * math.pi
_LOG_PI: Final = math.log(math.pi)


def _split(u: Array, length: Array) -> tuple[Array, Array, Array]:
    """The distances to both ends of an interval, and the logarithm of the slope of the first."""
    low = length / (1.0 + lax.exp(-u))
    high = length / (1.0 + lax.exp(u))
    return low, high, lax.log(low) + lax.log(high) - lax.log(length)


def _integral(curve: Any, like: Array) -> Array:
    low = jnp.full_like(like, -_SPAN)
    return log_peak_integral(curve, low, -low, zooms=14)


def _steps(log_g: Array, slope: Array, log_move: Array, low: Array, high: Array, upper: Any
           ) -> Array:
    """The logarithm of what is integrated: for one side, or for a density."""
    rest = log_g - lax.exp(jnp.minimum(log_g, 700.0)) + log_move
    if upper is None:
        return rest
    return rest + lax.log(jnp.abs(slope)) + lax.log(jnp.where(upper[..., None], high, low))


def _least(log_g: Array) -> Array:
    """log(1 - exp(-g)): what is on one side where g has a least value above 0."""
    return lax.log(-lax.expm1(-lax.exp(jnp.minimum(log_g, 700.0))))


def _general(density: bool) -> Any:
    """Nolan's integrals for y > 0, alpha != 1: the logarithm of y f(y), or that of P(X > y) where
    `side` is 1 and of P(0 < X < y) where it is 0."""
    def value(y: Array, alpha: Array, beta: Array, side: Array) -> Array:
        upper = None if density else side > 0
        tangent = beta * lax.tan(_HALF_PI * alpha)
        angle = lax.atan(tangent) / alpha
        angle = jnp.where(jnp.abs(beta) == 1, jnp.sign(beta) * jnp.where(
            alpha < 1, _HALF_PI, _HALF_PI - math.pi / alpha), angle)
        length = jnp.maximum(_HALF_PI + angle, 1e-300)
        power = alpha / (alpha - 1.0)
        front = power * lax.log(y) - 0.5 * lax.log1p(tangent * tangent) / (alpha - 1.0)
        a, t, size, c, start = (x[..., None] for x in (alpha, angle, length, power, front))
        # exactly 0 where what is beside it is smaller than its rounding
        over = jnp.where((alpha > 1) & (beta == -1), 0.0, jnp.maximum(
            math.pi - alpha * length, 0.0))[..., None]

        def curve(u: Array, bare: bool = False) -> Array:
            low, high, log_move = _split(u, size)
            near = u < 0
            first = jnp.where(near, a * low, over + a * high)
            second = jnp.where(near, jnp.maximum(_HALF_PI - t, 0.0) + (1.0 - a) * low,
                               over + (a - 1.0) * high)
            third = jnp.where(near, jnp.maximum(_HALF_PI - t, 0.0) + low, high)
            log_g = (start + (c - 1.0) * lax.log(lax.sin(third)) - c * lax.log(lax.sin(first))
                     + lax.log(jnp.maximum(lax.sin(second), 1e-300)))
            way = jnp.where(near, 1.0, -1.0)
            slope = (way * ((c - 1.0) / lax.tan(third) - c * a / lax.tan(first))
                     + (1.0 - a) / lax.tan(second))
            return log_g if bare else _steps(log_g, slope, log_move, low, high, upper)

        out = _integral(curve, y) - _LOG_PI
        if density:
            return out + lax.log(jnp.abs(power))
        rising = alpha < 1
        last = jnp.where(rising, -1.0, 1.0).astype(np.float64) * _SPAN
        end = curve(last[..., None], True)[..., 0]
        return jnp.where(rising == upper, jnp.logaddexp(out, _least(end) + lax.log(
            length) - _LOG_PI), out)

    return partials(pushed(value, 0), pushed(value, 1), pushed(value, 2), None)(value)


def _of_one(density: bool) -> Any:
    """The same of alpha = 1 and beta > 0 for all x, of f(x), P(X > x) and P(X < x)."""
    def value(x: Array, beta: Array, side: Array) -> Array:
        upper = None if density else side > 0
        # terms of the size of x cancel; so far out the tails are powers
        far = jnp.abs(x) > _FAR
        share = jnp.where(x > 0, 1.0 + beta, 1.0 - beta) / math.pi
        power = lax.log(share) - (2.0 if density else 1.0) * lax.log(jnp.abs(
            jnp.where(far, x, 1.0)))
        if upper is not None:
            power = jnp.where((x > 0) == upper, power, 0.0)
        b, at = beta[..., None], jnp.where(far, 0.0, x)[..., None]

        def curve(u: Array, bare: bool = False) -> Array:
            low, high, log_move = _split(u, jnp.full_like(b, math.pi))
            theta = jnp.where(u < 0, low - _HALF_PI, _HALF_PI - high)
            inner = jnp.where(u < 0, _HALF_PI * (1.0 - b) + b * low, _HALF_PI + b * theta)
            inner = jnp.maximum(inner, 1e-300)
            # the cosine, and the tangent, by the distance to the nearer end
            cosine = lax.sin(jnp.minimum(low, high))
            tangent = jnp.where(u < 0, -1.0, 1.0) / lax.tan(jnp.minimum(low, high))
            log_g = (math.log(2 / math.pi) + lax.log(inner) - lax.log(cosine)
                     + (inner / b) * tangent - _HALF_PI * at / b)
            slope = b / inner + 2.0 * tangent + (inner / b) / (cosine * cosine)
            return log_g if bare else _steps(log_g, slope, log_move, low, high, upper)

        out = _integral(curve, x)
        if density:
            return jnp.where(far, power, out - lax.log(2.0 * beta))
        end = curve(jnp.full_like(b, -_SPAN), True)[..., 0]
        out = out - _LOG_PI
        out = jnp.where(side > 0, jnp.logaddexp(out, _least(end)), out)
        return jnp.where(far, power, out)

    return partials(pushed(value, 0), pushed(value, 1), None)(value)


_DENSITY, _SIDE = _general(True), _general(False)
_DENSITY_OF_ONE, _SIDE_OF_ONE = _of_one(True), _of_one(False)


class LevyStable(Continuous):
    """The stable distribution of index alpha in (0, 2] and skewness beta, in parameters S1.

    By Nolan's integrals, of a change of variables whose integrand has one peak at the same height
    for all arguments. Source: Nolan, Communications in Statistics: Stochastic Models 13 (1997).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.levy_stable.cdf(1.0, 1.0, 0.0)), 4)
    0.75
    """

    shapes = ("alpha", "beta")

    def possible(self, alpha: Array, beta: Array) -> Array:
        return (alpha > 0) & (alpha <= 2) & (jnp.abs(beta) <= 1)

    def ends(self, alpha: Array, beta: Array) -> tuple[Array, Array]:
        half = alpha < 1
        return (jnp.where(half & (beta == 1), 0.0, -math.inf),
                jnp.where(half & (beta == -1), 0.0, math.inf))

    @staticmethod
    def _moved(rest: Sequence[Array]) -> list[Array]:
        """The parameters, with the place that a scale has besides in S1 for alpha = 1."""
        alpha, beta, loc, scale = rest
        shift = (2 / math.pi) * beta * special.xlogy(scale, scale)
        return [alpha, beta, loc + jnp.where(alpha == 1, shift, 0.0), scale]

    def _at(self, x: Array, rest: Sequence[Array]) -> tuple[Any, ...]:
        return super()._at(x, self._moved(rest))

    def _inverse(self, fun: Callable[..., Array], q: Array, rest: Sequence[Array],
                 upper: bool) -> Array:
        return super()._inverse(fun, q, self._moved(rest), upper)

    def _draw_placed(self, key: Array, *xs: Array) -> Array:
        return super()._draw_placed(key, *self._moved(xs))

    def _found(self, z: Array, alpha: Array, beta: Array, lower: Any) -> Array:
        """The logarithm of one side, or without `lower` of f(z)."""
        dtype = z.dtype
        z, alpha, beta = (x.astype(np.float64) for x in (z, alpha, beta))
        one = alpha == 1
        plain = jnp.where(one, 1.5, alpha)
        mirrored = z < 0
        size, skew = jnp.abs(z), jnp.where(mirrored, -beta, beta)
        some = size > 1e-290
        safe = jnp.where(some, size, 1.0)
        tangent = beta * lax.tan(_HALF_PI * plain)
        angle = lax.atan(tangent) / plain  # of z = 0
        if lower is None:
            general = _DENSITY(safe, plain, skew, 0.0 * safe) - lax.log(safe)
            centre = (lax.lgamma(1.0 + 1.0 / plain) + lax.log(lax.cos(angle)) - _LOG_PI
                      - 0.5 * lax.log1p(tangent * tangent) / plain)
        else:
            # of the far side from 0 the tail, of the other one the rest, and what is beyond 0
            turned = jnp.where(mirrored, -angle, angle)
            beyond = 0.5 - turned / math.pi
            beyond = jnp.where((plain < 1) & (skew == 1), 0.0, beyond)
            far = mirrored == lower
            side = _SIDE(safe, plain, skew, far.astype(np.float64))
            general = jnp.where(far, side, lax.log(beyond + lax.exp(side)))
            share = 0.5 - jnp.where(lower, angle, -angle) / math.pi
            centre = lax.log(jnp.maximum(share, 1e-300))
        general = jnp.where(some, general, centre)
        sign = jnp.where(beta < 0, -1.0, 1.0)
        flat = jnp.abs(beta) < 1e-300
        b = jnp.where(flat, 1.0, jnp.abs(beta))
        at = jnp.where(one, sign * z, 0.0)
        if lower is None:
            alone = _DENSITY_OF_ONE(at, b, 0.0 * at)
            cauchy = -_LOG_PI - lax.log1p(z * z)
        else:
            alone = _SIDE_OF_ONE(at, b, ((sign < 0) == lower).astype(np.float64))
            y = jnp.where(lower, -z, z)
            cauchy = lax.log(lax.atan2(jnp.ones_like(y), y) / math.pi)
        alone = jnp.where(flat, cauchy, alone)
        return jnp.where(one, alone, general).astype(dtype)

    def log_density(self, z: Array, alpha: Array, beta: Array) -> Array:
        return self._found(z, alpha, beta, None)

    def log_tail(self, z: Array, lower: Any, alpha: Array, beta: Array) -> Array:
        return jnp.minimum(self._found(z, alpha, beta, lower), 0.0)

    def log_above(self, z: Array, alpha: Array, beta: Array) -> Array:
        return self.log_tail(z, False, alpha, beta)

    def log_below(self, z: Array, alpha: Array, beta: Array) -> Array:
        return self.log_tail(z, True, alpha, beta)

    def below(self, z: Array, alpha: Array, beta: Array) -> Array:
        return lax.exp(self.log_below(z, alpha, beta))

    def above(self, z: Array, alpha: Array, beta: Array) -> Array:
        return lax.exp(self.log_above(z, alpha, beta))

    def expected(self, alpha: Array, beta: Array) -> Array:
        return jnp.where(alpha > 1, 0.0, math.nan)

    def variance(self, alpha: Array, beta: Array) -> Array:
        return jnp.where(alpha == 2, 2.0, math.inf)

    def draw(self, key: Array, like: Array, alpha: Array, beta: Array) -> Array:
        """Source: Chambers, Mallows and Stuck, J. American Statistical Association 71 (1976)."""
        one, two = random.split(key)
        u = math.pi * (random.uniform(one, like.shape, like.dtype) - 0.5)
        w = random.exponential(two, like.shape, like.dtype)
        single = alpha == 1
        a = jnp.where(single, 1.5, alpha)
        tangent = beta * lax.tan(_HALF_PI * a)
        at = u + lax.atan(tangent) / a
        stretch = lax.exp(0.5 * lax.log1p(tangent * tangent) / a)
        general = stretch * lax.sin(a * at) * lax.exp(
            -lax.log(lax.cos(u)) / a + (1.0 - a) / a * lax.log(lax.cos(u - a * at) / w))
        inner = _HALF_PI + beta * u
        alone = (2 / math.pi) * (inner * lax.tan(u) - beta * lax.log(
            _HALF_PI * w * lax.cos(u) / inner))
        return jnp.where(single, alone, general)


class Landau(Continuous):
    """Landau's distribution, of losses of energy: the stable one of alpha and beta 1.

    Source: Landau, J. Physics USSR 8 (1944).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.landau.cdf(0.0)), 4)
    0.3652
    """

    @staticmethod
    def _found(z: Array, which: int) -> Array:
        x = z.astype(np.float64)
        one = jnp.ones_like(x)
        found = (_DENSITY_OF_ONE(x, one, one) if which == 0 else
                 _SIDE_OF_ONE(x, one, one if which == 1 else 0.0 * one))
        result: Array = found.astype(z.dtype)
        return result

    def division(self) -> float:
        return 0.0

    def log_density(self, z: Array) -> Array:
        return self._found(z, 0)

    def log_above(self, z: Array) -> Array:
        return self._side(z, 1)

    def log_below(self, z: Array) -> Array:
        return self._side(z, 2)

    def _side(self, z: Array, which: int) -> Array:
        own, other = self._found(z, which), jnp.minimum(self._found(z, 3 - which), -1e-30)
        return jnp.where(other < -0.7, lax.log1p(-lax.exp(other)), jnp.minimum(own, 0.0))

    def below(self, z: Array) -> Array:
        return lax.exp(self.log_below(z))

    def above(self, z: Array) -> Array:
        return lax.exp(self.log_above(z))

    def expected(self) -> float:
        return math.nan

    def variance(self) -> float:
        return math.nan

    def draw(self, key: Array, like: Array) -> Array:
        one = jnp.ones_like(like)
        return levy_stable.draw(key, like, one, one)


landau, levy_stable = Landau("landau"), LevyStable("levy_stable")
