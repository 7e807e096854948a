"""Derivatives of distribution functions by their densities.

A tail far out is a power or an exponential of the variable, and the derivative of the formula that
computes it meets squares that overflow and quotients of numbers that underflow. The density knows
the derivative there: that of cdf, or over the tail that of its logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.scipy import special
from functrans.scipy.special.common import partials, pushed
from functrans.transforms.custom_jvp import custom_jvp
from functrans.transforms.tangents import SymbolicZero
from functrans.typing import Array

__all__ = ["by_density", "drawn_with_slopes", "log_mills", "slope_of_quantile"]

_DIGITS: Final = 2e-12
"""What the difference of two logarithms may lose, in units of which epsilon is 2e-16."""


class _WithDensity(Protocol):
    @property
    def log_density(self) -> Callable[..., Array]: ...

    @property
    def below(self) -> Callable[..., Array]: ...


class _Placed(_WithDensity, Protocol):
    def standard(self, x: Array, rest: Sequence[Array]
                 ) -> tuple[Array, Sequence[Array], Array, Any, Any]: ...


def by_density(family: _Placed, fun: Callable[..., Array], value: Callable[..., Array],
               sign: float, logarithm: bool, rate: Callable[..., Array] | None = None
               ) -> Callable[..., Array]:
    """`value`, a function of x, shapes, loc and scale, with derivatives by the density.

    It is `fun` of the standard variable and the shapes, whose slope has `sign`. In the shapes its
    derivatives are its own. `rate` is the logarithm of the density over a tail that is so small
    that the two have no digits beside one another; without it there the slope is that of `fun`.
    """
    def run(x: Array, *rest: Array) -> Array:
        *shapes, loc, scale = rest

        def of_place(x: Array, loc: Array, scale: Array) -> Array:
            return value(x, *shapes, loc, scale)

        ruled = custom_jvp(of_place)

        def rule(primals: Any, tangents: Any) -> Any:
            out = ruled(*primals)
            x, loc, scale = primals
            by_x, by_loc, by_scale = (None if isinstance(t, SymbolicZero) else t for t in tangents)
            z, _, _, known, inside = family.standard(x, (*shapes, loc, scale))
            along, turned = _slopes(family, fun, z, shapes, scale, out, inside, sign, logarithm,
                                    rate)
            total = jnp.zeros_like(out)
            for slope, t in ((along, by_x), (-along, by_loc), (-turned, by_scale)):
                if t is not None:
                    total = total + jnp.where(known, jnp.where(inside, slope, 0.0), math.nan) * t
            return out, total

        ruled.defjvp(rule, symbolic_zeros=True)
        return ruled(x, loc, scale)

    return run


def _slopes(family: _Placed, fun: Callable[..., Array], z: Array, shapes: Sequence[Array],
            scale: Array, out: Array, inside: Array, sign: float, logarithm: bool,
            rate: Callable[..., Array] | None) -> tuple[Array, Array]:
    """The slopes of `fun` in z and in the logarithm of z, both over the scale."""
    log = family.log_density(z, *shapes) - lax.log(jnp.where(scale > 0, scale, 1.0))
    if logarithm:
        log = log - jnp.where(inside, out, 0.0)
    size = lax.abs(z)
    # a product of a large and a small number by its logarithm; at 0 the logarithm has no slope
    least = float(dtypes.finfo(z.dtype).tiny) ** 0.5
    far = (size > 1.0) | ((size < least) & (size > 0))
    product = jnp.where(z < 0, -1.0, 1.0) * lax.exp(log + lax.log(jnp.where(far, size, 1.0)))
    along = lax.exp(log)
    turned = jnp.where(far, product, z * jnp.where(far, 0.0, along))
    along, turned = sign * along, sign * turned
    if not logarithm:
        return along, turned
    # of a tail whose logarithm is so large that a difference has no digits by its own formula,
    # which is one of a few powers of z
    small = lax.abs(out) < _DIGITS / float(dtypes.finfo(z.dtype).eps)
    if rate is None:
        own = pushed(fun, 0)(out, z, *shapes) / scale
        own_turned = z * own
    else:
        log = rate(z, *shapes) - lax.log(jnp.where(scale > 0, scale, 1.0))
        own, own_turned = sign * lax.exp(log), jnp.where(z < 0, -sign, sign) * lax.exp(
            log + lax.log(jnp.where(size > 0, size, 1.0)))
    return jnp.where(small, along, own), jnp.where(small, turned, own_turned)


def log_mills(score: Array) -> Array:
    """log(Phi(score) / phi(score)) for a score below 0; at scores above, where it is not used, 1's.
    """
    size = jnp.maximum(-score, -1.0)
    return lax.log(special.erfcx(math.sqrt(0.5) * size)) + 0.5 * math.log(0.5 * math.pi)


def slope_of_quantile(family: _WithDensity, i: int) -> Callable[..., Array]:
    """How a number z of a fixed probability moves with the shape i: rule(z, *shapes)."""
    moved = pushed(family.below, i + 1)
    return lambda z, *shapes: -moved(None, z, *shapes) * lax.exp(-family.log_density(z, *shapes))


def drawn_with_slopes(family: _WithDensity, z: Array, *shapes: Array) -> Array:
    """Random numbers z, drawn by any method, which move with the shapes as quantiles do."""
    def kept(z: Array, *shapes: Array) -> Array:
        return z

    rules = [None, *(_of_drawn(slope_of_quantile(family, i)) for i in range(len(shapes)))]
    out: Array = partials(*rules)(kept)(lax.stop_gradient(z), *shapes)
    return out


def _of_drawn(slope: Callable[..., Array]) -> Callable[..., Array]:
    return lambda out, z, *shapes: slope(out, *shapes)
