"""Eigenvalues and eigenvectors of tridiagonal matrices along a first axis, one for each element."""

from __future__ import annotations

from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import loop
from functrans.transforms.custom_jvp import custom_jvp
from functrans.typing import Array

__all__ = ["eigenvalue", "eigenvector"]

_LEAST = 1e-290


def _nonzero(x: Array) -> Array:
    return jnp.where(lax.abs(x) < _LEAST, _LEAST * jnp.ones_like(x), x)


@custom_jvp
def eigenvalue(d: Array, e: Array, index: Array) -> Array:
    """The eigenvalue of this index, from 0, of diagonals d [L, ...] and their neighbours e [L - 1].

    By bisection of the number of eigenvalues below a point, which is that of negative pivots
    (Sturm); derivatives are those of perturbation theory.
    """
    d, e, index = (lax.stop_gradient(x) for x in (d, e, index))
    square = jnp.concatenate([jnp.zeros_like(d[:1]), e * e])
    size = lax.abs(e)
    none = jnp.zeros_like(d[:1])
    reach = jnp.concatenate([size, none]) + jnp.concatenate([none, size])
    low, high = jnp.min(d - reach, 0), jnp.max(d + reach, 0)

    def below(x: Array) -> Array:
        def step(carry: Any, now: Any) -> Any:
            pivot, count = carry
            centre, beside = now
            pivot = _nonzero(centre - x - beside / pivot)
            return (pivot, count + jnp.where(pivot < 0, 1.0, 0.0)), None

        return lax.scan(step, (jnp.ones_like(x), jnp.zeros_like(x)), (d, square))[0][1]

    def halve(k: Any, low: Array, high: Array) -> tuple[Array, Array]:
        middle = 0.5 * (low + high)
        over = below(middle) > index
        return jnp.where(over, low, middle), jnp.where(over, middle, high)

    low, high = loop(halve, (low, high), lambda low, high: high - low > 2e-16 * jnp.maximum(
        jnp.maximum(lax.abs(low), lax.abs(high)), 1e-3), 80)
    return 0.5 * (low + high)


@eigenvalue.defjvp
def _eigenvalue_jvp(primals: Any, tangents: Any) -> Any:
    d, e, index = primals
    value = eigenvalue(d, e, index)
    vector = eigenvector(d, e, value)
    return value, jnp.sum(vector * vector * tangents[0], 0) + 2.0 * jnp.sum(
        vector[1:] * vector[:-1] * tangents[1], 0)


def eigenvector(d: Array, e: Array, value: Array) -> Array:
    """The eigenvector [L, ...] of length 1 of an eigenvalue, from both ends to its largest entry.

    By twisted factorisations (Dhillon and Parlett, 2004).
    """
    none = jnp.zeros_like(d[:1])
    before = jnp.concatenate([none, e])
    after = jnp.concatenate([e, none])
    start = jnp.ones_like(value)

    def pivots(carry: Array, now: Any) -> Any:
        centre, beside = now
        pivot = _nonzero(centre - value - beside * beside / carry)
        return pivot, pivot

    up = lax.scan(pivots, start, (d, before))[1]
    down = lax.scan(pivots, start, (d[::-1], after[::-1]))[1][::-1]
    gap = lax.abs(lax.stop_gradient(up + down - (d - value)))
    place = jnp.argmin(gap, 0)
    k = jnp.reshape(jnp.arange(d.shape[0]), (-1, *(1,) * value.ndim))

    def fill(carry: Array, now: Any) -> Any:
        ratio, at = now
        entry = jnp.where(at, 1.0, carry * ratio)
        return entry, entry

    # below the place the ratio to the next entry is -e / up, and above it -e / down
    first = jnp.where(k < place, -after / up, 0.0)
    last = jnp.where(k > place, -before / down, 0.0)
    zero = jnp.zeros_like(value)
    left = lax.scan(fill, zero, (first[::-1], (k == place)[::-1]))[1][::-1]
    right = lax.scan(fill, zero, (last, k == place))[1]
    vector = jnp.where(k < place, left, right)
    found: Array = vector / lax.sqrt(jnp.sum(vector * vector, 0))
    return found
