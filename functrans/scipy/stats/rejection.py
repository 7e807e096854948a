"""Random numbers by rejection, where a quantile would be a search or a quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.scipy.stats.accepting import accepted
from functrans.typing import Array

__all__ = ["argus_squares", "vonmises_angles", "whole_numbers"]


def vonmises_angles(key: Array, kappa: Array) -> Array:
    """Angles of the von Mises distribution: Best and Fisher, 1979, from a wrapped Cauchy one.

    By differences from 1 that keep their digits for a small and a large concentration.
    """
    kappa = lax.stop_gradient(kappa)
    k = jnp.clip(kappa, 1e-12, 1e18)
    root = jnp.hypot(1.0, 2.0 * k)
    tau = 1.0 + root
    rho = 2.0 * k / (lax.sqrt(tau) * (lax.sqrt(tau) + math.sqrt(2.0)))
    less = (1.0 + 1.0 / (root + 2.0 * k) + lax.sqrt(2.0 * tau)) / (tau + lax.sqrt(2.0 * tau))
    beyond = less * less / (2.0 * rho)  # r - 1

    def propose(key: Array) -> tuple[Array, Array]:
        first, second, side = random.uniform(key, (3, *k.shape), k.dtype)
        flat = 2.0 * lax.sin(0.5 * math.pi * first) ** 2  # 1 less the cosine
        apart = flat * beyond / (2.0 + beyond - flat)
        c = k * (beyond + apart)
        refused = (c * (2.0 - c) <= second) & (lax.log(c / second) + 1.0 < c)
        angle = 2.0 * lax.asin(lax.sqrt(jnp.minimum(0.5 * apart, 1.0)))
        return jnp.where(side < 0.5, -angle, angle), ~refused

    angle = accepted(key, k, propose)
    return jnp.where(kappa == math.inf, 0.0, jnp.where(kappa >= 0, angle, math.nan))


def argus_squares(key: Array, chi: Array) -> Array:
    """1 - x^2 of the Argus distribution, a gamma variable of shape 3/2 on condition of its size.

    From the power 2/3 of a uniform number for a small chi, else from a gamma variable.
    """
    rate = 0.5 * lax.stop_gradient(chi) ** 2
    small = rate < 2.0

    def propose(key: Array) -> tuple[Array, Array]:
        one, two, three = random.split(key, 3)
        power = lax.exp(lax.log1p(-random.uniform(one, rate.shape, rate.dtype)) * (2.0 / 3.0))
        exponential = random.exponential(two, rate.shape, rate.dtype)
        normal = random.normal(three, rate.shape, rate.dtype)
        sum_ = (0.5 * normal * normal + exponential) / jnp.where(small, 1.0, rate)
        return jnp.where(small, power, sum_), ~jnp.where(small, rate * power > exponential,
                                                         sum_ >= 1.0)

    return accepted(key, rate, propose)


_WIDTH: Final = 2.0 * math.sqrt(2.0 / math.e)
_LEAST: Final = 3.0 - 2.0 * math.sqrt(3.0 / math.e)


def whole_numbers(key: Array, like: Array, log_probability: Callable[[Array], Array],
                  low: Array, high: Array, mode: Array, mean: Array, variance: Array) -> Array:
    """Whole numbers in [low, high] by the ratio of uniforms, in float64.

    Stadlober, 1989, "Sampling from Poisson, binomial and hypergeometric distributions: ratio of
    uniforms as a simple and fast alternative". Of a distribution with only one number it is that.
    """
    low, high, mode, mean, variance = (
        lax.stop_gradient(x).astype(np.float64) for x in (low, high, mode, mean, variance))
    middle, width = mean + 0.5, _WIDTH * lax.sqrt(variance + 0.5) + _LEAST
    top = log_probability(mode)
    single = ~(high > low)

    def propose(key: Array) -> tuple[Array, Array]:
        u, v = random.uniform(key, (2, *middle.shape), np.float64)
        u = 1.0 - u
        k = lax.floor(middle + width * (v - 0.5) / u)
        outside = (k < low) | (k > high)
        log = log_probability(jnp.where(outside | single, mode, k)) - top
        return jnp.where(single, low, k), single | ~(outside | (2.0 * lax.log(u) > log))

    return accepted(key, middle, propose).astype(like.dtype)
