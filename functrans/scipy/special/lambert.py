"""Lambert's W function, and the arithmetic-geometric mean."""

from __future__ import annotations

import math
from typing import Any, Final

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.special.common import in_double, loop, operands, partials, polynomial, wide
from functrans.typing import Array, ArrayLike

__all__ = ["agm", "lambertw", "wrightomega"]

# 1 / e, and what rounding leaves of it
_BRANCH: Final = 0.36787944117144233
_BRANCH_LOW: Final = -1.2428753672788363e-17


def _branch_series(count: int) -> list[float]:
    """Coefficients of W in p = sqrt(2 (e z + 1)): Corless et al., 1996, "On the Lambert W"."""
    mu, alpha = [-1.0, 1.0], [2.0, -1.0]
    for k in range(2, count):
        alpha.append(sum(mu[j] * mu[k + 1 - j] for j in range(2, k)))
        mu.append((k - 1) / (k + 1) * (mu[k - 2] / 2 + alpha[k - 2] / 4) - alpha[k] / 2
                  - mu[k - 1] / (k + 1))
    return mu


_AROUND: Final = _branch_series(20)


def _halley(w: Array, z: Array) -> Array:
    """w exp(w) = z by the logarithm: Fritsch's step, which is of order four."""
    def step(k: Any, w: Array, moved: Array) -> tuple[Array, Array]:
        r = lax.log(z / w) - w
        q = 2.0 * (1.0 + w) * (1.0 + w + 2.0 / 3.0 * r)
        change = r / (1.0 + w) * (q - r) / (q - 2.0 * r)
        return w * (1.0 + change), lax.abs(change)

    return loop(step, (w, jnp.ones_like(w)), lambda w, moved: moved > 1e-15, 8)[0]


def _distance(z: Array) -> Array:
    """e z + 1, with the digits around the branch point."""
    return math.e * ((z + _BRANCH) + _BRANCH_LOW)


def _slope(out: Array, z: Array) -> Array:
    """exp(-W) / (1 + W)."""
    return lax.exp(-out) / (1.0 + out)


@partials(_slope)
def _principal(z: Array) -> Array:
    distance = _distance(z)
    valid = distance >= 0
    p = lax.sqrt(2.0 * jnp.where(valid, distance, 0.0))
    close = p < 0.2
    around = polynomial(jnp.where(close, p, 0.0), _AROUND)
    small = lax.abs(z) < 1e-3
    s = jnp.where(small, z, 0.0)
    tiny = s * polynomial(s, [(-(k + 1.0)) ** k / math.factorial(k + 1) for k in range(9)])
    usual = valid & ~close & ~small & (z < math.inf)
    v = jnp.where(usual, z, 1.0)
    log = lax.log1p(jnp.maximum(v, 0.0))
    pade = v * (1.0 + 4.0 / 3.0 * v) / (1.0 + v * (7.0 / 3.0 + 5.0 / 6.0 * v))
    guess = jnp.where(v > 0, log * (1.0 - lax.log1p(log) / (2.0 + log)), jnp.where(
        v > -0.2, pade, polynomial(jnp.where(usual, p, 0.0), _AROUND[:4])))
    value = jnp.where(close, around, jnp.where(small, tiny, _halley(guess, v)))
    value = jnp.where(z == math.inf, math.inf, value)
    return jnp.where(valid, value, math.nan)


@partials(_slope)
def _lower_branch(z: Array) -> Array:
    distance = _distance(z)
    valid = (distance >= 0) & (z <= 0)
    p = -lax.sqrt(2.0 * jnp.where(valid, distance, 0.0))
    close = p > -0.2
    around = polynomial(jnp.where(close, p, 0.0), _AROUND)
    usual = valid & ~close & (z < 0)
    v = jnp.where(usual, z, -0.1)
    log = lax.log(-v)
    far = log - lax.log(-log)
    guess = jnp.where(v > -0.25, far, polynomial(jnp.where(usual, p, 0.0), _AROUND[:4]))
    value = jnp.where(close, around, _halley(guess, v))
    value = jnp.where(z == 0, -math.inf, value)
    return jnp.where(valid, value, math.nan)


def lambertw(z: ArrayLike, k: int = 0) -> Array:
    """W(z) with W exp(W) = z, of real z on the real branches k = 0 (W >= -1) and k = -1.

    NaN where the branch is not real: unlike SciPy's, the result is of the real dtype of z.
    Fritsch's iteration, and a series around the branch point -1/e. Raises ArgumentError for
    another k.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.lambertw(1.0)), 4)
    0.5671
    """
    if k not in (0, -1):
        raise ArgumentError(f"functrans.scipy.special.lambertw: branch {k!r} is not real.",
                            where=user_source(), fix="k=0 or k=-1")
    out: Array = in_double(_principal if k == 0 else _lower_branch, operands("lambertw", z))
    return out


_FAR: Final = 1e60


@partials(lambda out, x: out / (1.0 + out))
def _wrightomega(x: Array) -> Array:
    low = x < -700.0
    v = jnp.where(low, 0.0, jnp.minimum(x, _FAR))  # beyond it squares overflow, and w is x
    guess = jnp.where(v > 1.0, v - lax.log(jnp.maximum(v, 1.0)), lax.exp(jnp.minimum(v, 1.0) - 1.0))
    guess = jnp.where(v < -2.0, lax.exp(v), guess)

    def step(k: Any, w: Array, moved: Array) -> tuple[Array, Array]:
        r = (v - w) - lax.log(w)
        q = 2.0 * (1.0 + w) * (1.0 + w + 2.0 / 3.0 * r)
        change = r / (1.0 + w) * (q - r) / (q - 2.0 * r)
        return w * (1.0 + change), lax.abs(change)

    found = loop(step, (guess, jnp.ones_like(v)), lambda w, moved: moved > 1e-15, 10)[0]
    return jnp.where(low, lax.exp(jnp.minimum(x, 0.0)), jnp.where(x > _FAR, x, found))


@wide
def wrightomega(x: Array) -> Array:
    """The Wright omega function W(exp(x)) of real x: w with w + log(w) = x.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.wrightomega(1.0)), 6)
    1.0
    """
    return _wrightomega(x)


@wide
def agm(a: Array, b: Array) -> Array:
    """The arithmetic-geometric mean of a and b of one sign; NaN for two.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.agm(1.0, 2.0)), 4)
    1.4568
    """
    valid = ((a > 0) & (b > 0)) | ((a < 0) & (b < 0))
    x, y = jnp.where(valid, lax.abs(a), 1.0), jnp.where(valid, lax.abs(b), 1.0)
    for _ in range(14):  # 10 ** 600 times one another
        x, y = 0.5 * x + 0.5 * y, lax.sqrt(x) * lax.sqrt(y)
    value = jnp.where(a < 0, -x, x)
    zero = ((a == 0) | (b == 0)) & (lax.abs(a) < math.inf) & (lax.abs(b) < math.inf)
    return jnp.where(valid, value, jnp.where(zero, 0.0, math.nan))


