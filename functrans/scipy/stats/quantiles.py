"""Quantiles of distributions without a formula for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from functrans import lax
from functrans import numpy as fnp
from functrans.scipy.special.common import loop, partials, pushed
from functrans.scipy.special.roots import increasing_root
from functrans.typing import Array

__all__ = ["numeric_quantile", "whole_quantile"]

_DOUBLINGS: Final = 1100


class _Family(Protocol):
    def support(self, *shapes: Array) -> tuple[Any, Any]: ...

    def log_density(self, z: Array, *shapes: Array) -> Array: ...

    def below(self, z: Array, *shapes: Array) -> Array: ...

    def above(self, z: Array, *shapes: Array) -> Array: ...


def numeric_quantile(family: _Family, q: Array, shapes: Sequence[Array], upper: bool) -> Array:
    """z with below(z) = q for q in (0, 1), by Newton's method on the smaller tail's logarithm.

    Computed in float64; its derivatives are those of the implicit function.
    """
    def found(p: Array, *rest: Array) -> Array:
        low, high = family.support(*rest)
        low, high = _bracket(family, p, rest, low, high)
        lower = p <= 0.5
        goal = lax.log(fnp.where(lower, p, 1.0 - p))

        def miss(z: Array) -> tuple[Array, Array]:
            value = fnp.where(lower, family.below(z, *rest), family.above(z, *rest))
            off = lax.log(value) - goal
            return fnp.where(lower, off, -off), lax.exp(family.log_density(z, *rest)) / value

        return increasing_root(miss, low, high, 0.5 * (low + high))

    def slope(i: int) -> Callable[..., Array]:
        moved = pushed(family.below, i)
        return lambda out, p, *rest: -moved(None, out, *rest) * lax.exp(
            -family.log_density(out, *rest))

    rules = [lambda out, p, *rest: lax.exp(-family.log_density(out, *rest)),
             *(slope(i + 1) for i in range(len(shapes)))]
    double = [x.astype(np.float64) for x in (q, *shapes)]
    out: Array = partials(*rules)(found)(*double)
    return out.astype(q.dtype)


def _bracket(family: _Family, p: Array, shapes: Sequence[Array], low: Any, high: Any
             ) -> tuple[Array, Array]:
    """Points between which the quantile is: the ends of the support, or by doubling from 1."""
    bottom, top = (fnp.zeros_like(p) + v for v in (low, high))
    open_low, open_high = bottom == -math.inf, top == math.inf
    least = fnp.where(open_low, fnp.where(open_high, 0.0, top), bottom)
    most = fnp.where(open_high, fnp.where(open_low, 0.0, bottom), top)

    def down(k: Any, z: Array, step: Array) -> tuple[Array, Array]:
        return z - step, 2.0 * step

    def up(k: Any, z: Array, step: Array) -> tuple[Array, Array]:
        return z + step, 2.0 * step

    one = fnp.ones_like(p)
    left, _ = loop(down, (fnp.where(open_low, least - 1.0, least), one), lambda z, s: (
        open_low & (family.below(fnp.where(open_low, z, 0.5 * (least + most)), *shapes) > p)),
        _DOUBLINGS)
    right, _ = loop(up, (fnp.where(open_high, most + 1.0, most), one), lambda z, s: (
        open_high & (family.below(fnp.where(open_high, z, 0.5 * (least + most)), *shapes) < p)),
        _DOUBLINGS)
    return left, right


def whole_quantile(reached: Callable[[Array], Array], low: Array, high: Array, inside: Array
                   ) -> Array:
    """The least whole number in [low, high] that is reached: by doubling, then by halving."""
    base = fnp.where(low > -math.inf, low, 0.0)

    def widen(k: Any, top: Array, step: Array) -> tuple[Array, Array]:
        return fnp.minimum(top + step, high), 2.0 * step

    def sink(k: Any, bottom: Array, step: Array) -> tuple[Array, Array]:
        return fnp.maximum(bottom - step, low), 2.0 * step

    one = fnp.ones_like(low)
    top, _ = loop(widen, (base, one), lambda top, step: inside & (top < high) & ~reached(top), 60)
    bottom, _ = loop(sink, (base - 1.0, one), lambda bottom, step: (
        inside & (bottom >= low) & reached(bottom)), 60)

    def halve(k: Any, bottom: Array, top: Array) -> tuple[Array, Array]:
        middle = lax.floor(0.5 * (bottom + top))
        there = reached(middle)
        return fnp.where(there, bottom, middle), fnp.where(there, middle, top)

    return loop(halve, (bottom, top), lambda bottom, top: inside & (top - bottom > 1.0), 60)[1]
