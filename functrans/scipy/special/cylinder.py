"""Modified Bessel functions of complex numbers in the right half-plane: the core of all others.

K is a Laplace integral (DLMF 10.32.8) or Temme's series for orders up to 3/2, and the recurrence
over orders from there; I is Hankel's series, or the continued fraction of its ratio with the
Wronskian. No step of it depends on a size of the argument but for that continued fraction.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import loop, polynomial
from functrans.scipy.special.gammas import rgamma
from functrans.typing import Array

__all__ = ["FAR", "LAPLACE_NODES", "LAPLACE_WEIGHTS", "LARGEST_ORDER", "cos_pi", "first_far",
           "first_scaled", "second_scaled", "sin_pi", "times_scale", "unit"]

# exp(-s) over s > 0 by double exponentials, s = exp(t - exp(-t)): a function whose singularities
# are on the negative or the imaginary axis is exact to the last digits
_T: Final = np.linspace(-4.3, 4.0, 105)
LAPLACE_NODES: Final = np.exp(_T - np.exp(-_T))
LAPLACE_WEIGHTS: Final = ((_T[1] - _T[0]) * np.exp(-LAPLACE_NODES) * LAPLACE_NODES
                          * (1.0 + np.exp(-_T)))
_LOGS: Final = _T - np.exp(-_T)

STEP_OF_SCALE: Final = 1e100
LARGEST_ORDER: Final = 1e5
FAR: Final = 25.0
_NEAR: Final = 2.0
_ROUNDING: Final = 1e-17
# 1 / Gamma(1 + x) is the sum of x^k times these, the even and the odd ones
_EVEN: Final = [1.0, -0.6558780715202539, 0.16653861138229148, -0.009621971527876973,
                -0.0011651675918590652, 0.00012805028238811619, -1.2504934821426706e-06,
                -2.056338416977607e-07, 5.002007644469223e-09, 1.0434267116911005e-10,
                -3.6968056186422057e-12, -2.0583260535665068e-14, 1.2267786282382608e-15]
_ODD: Final = [0.5772156649015329, -0.04200263503409524, -0.04219773455554433,
               0.0072189432466631, -0.00021524167411495098, -2.013485478078824e-05,
               1.1330272319816959e-06, 6.116095104481416e-09, -1.181274570487020e-09,
               7.782263439905071e-12, 5.100370287454476e-13, -5.348122539423018e-15,
               -1.181259301697458e-16]


def sin_pi(v: Array) -> Array:
    """sin(pi v), exact for multiples of 1/2."""
    half = jnp.remainder(v, 2.0)
    turned = jnp.where(half > 1.0, half - 1.0, half)
    value = lax.sin(math.pi * jnp.where(turned > 0.5, 1.0 - turned, turned))
    return jnp.where(half > 1.0, -value, value)


def cos_pi(v: Array) -> Array:
    """cos(pi v), exact for multiples of 1/2."""
    return sin_pi(v + 0.5)


def unit(v: Array) -> Array:
    """exp(i pi v)."""
    return lax.complex(cos_pi(v), sin_pi(v))


def _by_laplace(mu: Array, w: Array) -> tuple[Array, Array]:
    """exp(w) K of the orders |mu| <= 1/2 and mu + 1, for |w| >= 2."""
    size = lax.abs(mu)
    low, high = size - 0.5, mu + 0.5
    logs = _LOGS + lax.log1p(LAPLACE_NODES / (2.0 * w[..., None]))
    first = jnp.sum(LAPLACE_WEIGHTS * lax.exp(low[..., None] * logs), -1)
    second = jnp.sum(LAPLACE_WEIGHTS * lax.exp(high[..., None] * logs), -1)
    root = lax.sqrt(0.5 * math.pi / w)
    return root * rgamma(low + 1.0) * first, root * rgamma(high + 1.0) * second


def _by_series(mu: Array, w: Array) -> tuple[Array, Array]:
    """exp(w) K of the orders mu, |mu| <= 1/2, and mu + 1, for |w| <= 2 (Temme, 1975)."""
    square = mu * mu
    even, odd = polynomial(square, _EVEN), polynomial(square, _ODD)
    plus, minus = even + mu * odd, even - mu * odd  # 1 / Gamma(1 + mu) and 1 / Gamma(1 - mu)
    log = -lax.log(0.5 * w)
    sigma = mu * log
    tiny = lax.abs(sigma) < 1e-2
    safe = jnp.where(tiny, 1.0, sigma)
    flat = jnp.where(tiny, sigma * sigma, 0.0)
    ratio = jnp.where(tiny, 1.0 + flat * (1.0 / 6 + flat * (1.0 / 120 + flat / 5040)),
                      lax.sinh(safe) / safe)
    f = (even * ratio * log - odd * lax.cosh(sigma)) / (plus * minus)
    p, q = 0.5 * lax.exp(sigma) / plus, 0.5 * lax.exp(-sigma) / minus
    quarter = 0.25 * w * w

    def step(k: Any, f: Array, p: Array, q: Array, c: Array, low: Array, high: Array
             ) -> tuple[Array, ...]:
        f = (k * f + p + q) / (k * k - square)
        p, q = p / (k - mu), q / (k + mu)
        c = c * quarter / k
        return f, p, q, c, low + c * f, high + c * (p - k * f)

    def going(f: Array, p: Array, q: Array, c: Array, low: Array, high: Array) -> Array:
        return lax.abs(c) > 1e-21

    start = (f, p, q, jnp.ones_like(w), f, p)
    out = loop(step, start, going, 30)
    grown = lax.exp(w)
    return out[4] * grown, out[5] * (2.0 / w) * grown


def second_scaled(v: Array, w: Array) -> tuple[Array, Array, Array]:
    """exp(w) K_v(w) and that of order v + 1, over STEP_OF_SCALE to the power of the third result.

    v >= 0 and w != 0 finite, of a real part >= 0.
    """
    count = lax.stop_gradient(lax.floor(v + 0.5))
    mu = v - count
    near = lax.abs(w) < _NEAR
    small = _by_series(mu, jnp.where(near, w, 1.0))
    large = _by_laplace(mu, jnp.where(near, 3.0, w))
    low, high = (jnp.where(near, s, b) for s, b in zip(small, large, strict=True))
    twice = 2.0 / w

    def step(k: Any, low: Array, high: Array, steps: Array) -> tuple[Array, ...]:
        low, high = high, low + (mu + k) * twice * high
        big = lax.abs(lax.real(high)) + lax.abs(lax.imag(high)) > STEP_OF_SCALE
        scale = jnp.where(big, 1.0 / STEP_OF_SCALE, jnp.ones_like(steps))
        return low * scale, high * scale, steps + jnp.where(big, 1.0, 0.0)

    # a tuple's last item is a count, so that the loop knows its own number by it
    def numbered(k: Any, low: Array, high: Array, steps: Array, i: Array) -> tuple[Array, ...]:
        return (*step(k, low, high, steps), i + 1.0)

    none = jnp.zeros_like(v)
    low, high, steps, _ = loop(numbered, (low, high, none, none),
                               lambda low, high, steps, i: i < count, int(LARGEST_ORDER) + 2)
    return low, high, steps


def times_scale(x: Array, steps: Array, sign: int) -> Array:
    """A real x times STEP_OF_SCALE to the power of sign steps."""
    factor = STEP_OF_SCALE if sign > 0 else 1.0 / STEP_OF_SCALE
    for count in range(4):
        x = jnp.where(steps > count, x * factor, x)
    return x


def _ratio(v: Array, w: Array) -> Array:
    """I_(v+1)(w) / I_v(w) by its continued fraction (DLMF 10.33.1), after Lentz."""
    twice = 2.0 / w

    def step(k: Any, c: Array, d: Array, total: Array, off: Array) -> tuple[Array, ...]:
        b = (v + k) * twice
        d = b + d
        d = 1.0 / jnp.where(d == 0, 1e-300, d)
        c = b + 1.0 / c
        c = jnp.where(c == 0, 1e-300, c)
        change = c * d
        return c, d, total * change, lax.abs(change - 1.0)

    one = jnp.ones_like(w)
    tiny = 1e-30 * one
    out = loop(step, (tiny, 0.0 * one, tiny, jnp.ones_like(v)),
               lambda c, d, total, off: off > 1e-16, 40_000)
    return out[2]


def first_scaled(v: Array, w: Array, low: Array, high: Array) -> Array:
    """exp(-w) I_v(w), times the scale of exp(w) K_v(w) and its neighbour, which are given.

    Of w with a real part >= 0 and |w| < max(25, v^2 / 2) by the Wronskian (DLMF 10.28.2).
    """
    return 1.0 / (w * (high + _ratio(v, w) * low))


def first_far(v: Array, w: Array, low: Array) -> Array:
    """exp(-w) I_v(w) for |w| >= max(25, v^2 / 2) by Hankel's series (DLMF 10.40.5)."""
    def step(k: Any, total: Array, term: Array) -> tuple[Array, Array]:
        term = -term * (4.0 * v * v - (2.0 * k - 1.0) ** 2) / (8.0 * k * w)
        return total + term, term

    one = jnp.ones_like(w)
    total, _ = loop(step, (one, one), lambda total, term: lax.abs(term) > _ROUNDING, 40)
    below = lax.imag(w) < 0
    turn = unit(jnp.where(below, -1.0, 1.0) * (v + 0.5))
    rest = turn / math.pi * low * lax.exp(-2.0 * w)
    return total / lax.sqrt(2.0 * math.pi * w) + rest
