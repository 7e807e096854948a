"""Integrals of densities: tails, means, and functions with a single peak."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.typing import Array, ArrayLike

__all__ = ["log_peak_integral", "log_share", "log_side", "side_mean"]

# A half line from its end: distances exp(t - exp(-t)) (Takahasi and Mori 1974), at which the
# trapezoidal rule has all digits whatever the unit of length is.
_T = np.arange(-3.75, 40.0 + 1e-9, 0.125)
_DISTANCES: Final = np.exp(_T - np.exp(-_T))
_WEIGHTS: Final = 0.125 * _DISTANCES * (1.0 + np.exp(-_T))
_PER_UNIT: Final = 8
_FAR: Final = 1e-5

# An interval, in shares of it from the near end and from the far end.
_U = np.linspace(-3.6, 3.6, _T.size)
_SHARES: Final = 1.0 / (1.0 + np.exp(-math.pi * np.sinh(_U)))
_RESTS: Final = 1.0 / (1.0 + np.exp(math.pi * np.sinh(_U)))
_SHARE_WEIGHTS: Final = (_U[1] - _U[0]) * math.pi * np.cosh(_U) * _SHARES * _RESTS


def _nodes(z: Array, end: Any, upper: Any) -> tuple[Array, Array]:
    """Places [..., k] from z to the end and their weights."""
    way = (1.0 if upper else -1.0) if isinstance(upper, bool) else jnp.where(
        upper, 1.0, -1.0)[..., None]
    z = z[..., None]
    # light tails end near a far z, in its scale, and heavy ones go on for many times as far
    unit = jnp.clip(_FAR * jnp.abs(lax.stop_gradient(z)), 1.0, 1e285)
    if isinstance(end, float) and abs(end) == math.inf:
        return z + way * unit * _DISTANCES, unit * _WEIGHTS
    end = (jnp.zeros_like(z[..., 0]) + end)[..., None]
    open_ended = jnp.abs(end) == math.inf
    last = jnp.where(open_ended, z + way, end)
    length = jnp.abs(last - z)
    # by the distance to the nearer end, which keeps its digits where that is 0
    near = z + way * length * _SHARES
    at = jnp.where(_SHARES < 0.5, near, last - way * length * _RESTS)
    shares = jnp.where(at == last, 0.0, length * _SHARE_WEIGHTS)  # where it may be infinite
    return (jnp.where(open_ended, z + way * unit * _DISTANCES, at),
            jnp.where(open_ended, unit * _WEIGHTS, shares))


def _spread(shapes: Sequence[Array]) -> list[Array]:
    return [s[..., None] for s in shapes]


def _log_sum(logs: Array, weights: Any) -> Array:
    """log(sum(weights * exp(logs))) along the last axis."""
    logs = jnp.where(logs > -math.inf, logs, -math.inf)  # no number where all is 0
    top = lax.stop_gradient(jnp.max(jnp.where(weights > 0, logs, -math.inf), -1))
    top = jnp.where(jnp.abs(top) < math.inf, top, 0.0)
    some = logs > -math.inf
    heights = jnp.where(some, lax.exp(jnp.where(some, logs - top[..., None], 0.0)), 0.0)
    total = jnp.sum(weights * heights, -1)
    there = total > 0
    return jnp.where(there, top + lax.log(jnp.where(there, total, 1.0)), -math.inf)


def log_share(log_fun: Callable[[Array], Array], length: Array) -> Array:
    """The logarithm of the integral of exp(log_fun) over [0, length], also if singular at 0."""
    at = length[..., None] * _SHARES
    return _log_sum(log_fun(at), length[..., None] * _SHARE_WEIGHTS)


def log_side(log_density: Callable[..., Array], z: Array, end: ArrayLike, shapes: Sequence[Array],
             upper: ArrayLike) -> Array:
    """The logarithm of the integral of exp(log_density) from z to an end of the support.

    `upper` may be an array, if each element has its own side.
    """
    at, weights = _nodes(z, end, upper)
    return _log_sum(log_density(at, *_spread(shapes)), weights)


def side_mean(fun: Callable[[Array], Array], log_density: Callable[..., Array], z: Array,
              end: ArrayLike, shapes: Sequence[Array], upper: bool) -> Array:
    """The integral of fun(x) exp(log_density(x)) from z to an end; infinite where it diverges."""
    at, weights = _nodes(z, end, upper)
    logs = log_density(at, *(jnp.broadcast_to(s, at.shape) for s in _spread(shapes)))
    some = logs > -740.0
    heights = jnp.where(some, lax.exp(jnp.where(some, logs, 0.0)), 0.0)
    values = fun(jnp.where(some, at, z[..., None]))
    terms = jnp.where(heights > 0, weights * heights * values, 0.0)
    total = jnp.sum(terms, -1)
    endless = jnp.abs(jnp.zeros_like(z) + end) == math.inf
    # beyond the last of them terms fall as they do between the last ones, or do not
    last, before = jnp.abs(terms[..., -1]), jnp.abs(terms[..., -1 - _PER_UNIT])
    left = endless & (last > 0) & (before > 0)
    fall = lax.log(jnp.where(left, before, 1.0) / jnp.where(left, last, 1.0)) / _PER_UNIT
    diverges = left & (fall < 1e-3)
    rest = terms[..., -1] / lax.expm1(jnp.maximum(fall, 1e-3))
    return jnp.where(diverges, jnp.sign(total) * math.inf, total + jnp.where(left, rest, 0.0))


_COARSE: Final = np.linspace(0.0, 1.0, 65)
_FINE: Final = np.linspace(-1.0, 1.0, 17)
_GAUSS = np.polynomial.legendre.leggauss(24)
_CUTS = np.array([0.0, 1 / 27, 1 / 9, 1 / 3, 1.0])  # of a side, which is steepest at the peak
_SIDE_X: Final = np.ravel(_CUTS[:-1, None] + np.diff(_CUTS)[:, None] * 0.5 * (_GAUSS[0] + 1.0))
_SIDE_W: Final = np.ravel(np.diff(_CUTS)[:, None] * 0.5 * _GAUSS[1])
_FALL: Final = 42.0


def log_peak_integral(log_fun: Callable[[Array], Array], low: Array, high: Array,
                      zooms: int = 3) -> Array:
    """The logarithm of the integral over [low, high] of exp(log_fun), which has one peak.

    `log_fun` takes places [..., k]. The peak is found on grids, each eight times as fine as the
    one before; from there Gauss's rule goes to both sides, to where the function has fallen by
    exp(-42). Derivatives are those of the sum: the ends, where it is 0, do not move.
    """
    first, last = lax.stop_gradient(low)[..., None], lax.stop_gradient(high)[..., None]

    def best(grid: Array) -> tuple[Array, Array]:
        values = log_fun(grid)
        values = jnp.where(values == values, values, -math.inf)
        index = jnp.argmax(values, -1, keepdims=True)
        return jnp.take_along_axis(grid, index, -1), jnp.take_along_axis(values, index, -1)

    cell = (last - first) / (_COARSE.size - 1)

    def zoom(i: Any, state: Any) -> Any:
        top, cell, _ = state
        top, height = best(jnp.clip(top + cell * _FINE, first, last))
        return top, cell / 8.0, height

    top, height = best(first + (last - first) * _COARSE)
    top, _, height = lax.stop_gradient(lax.fori_loop(0, zooms, zoom, (top, cell, height)))

    # of both ends the share of the way there from the peak after which the function is small
    ends = jnp.concatenate([first, last], -1)

    def halve(i: Any, bounds: Any) -> Any:
        inner, outer = bounds
        middle = 0.5 * (inner + outer)
        small = log_fun(top + lax.exp(middle) * (ends - top)) < height - _FALL
        return jnp.where(small, inner, middle), jnp.where(small, middle, outer)

    _, outer = lax.fori_loop(0, 9, halve, (jnp.full_like(ends, -36.0), jnp.zeros_like(ends)))
    lengths = lax.stop_gradient(lax.exp(outer) * (ends - top))
    at = jnp.concatenate([top + lengths[..., i:i + 1] * _SIDE_X
                          for i in (0, 1)], -1)
    weights = jnp.concatenate([jnp.abs(lengths[..., i:i + 1]) * _SIDE_W
                               for i in (0, 1)], -1)
    logs = log_fun(at)
    some = logs > -math.inf
    # what is above the peak is rounding
    total = jnp.sum(jnp.where(some, weights * lax.exp(
        jnp.minimum(jnp.where(some, logs, height) - height, 1.0)), 0.0), -1)
    # the peak alone, where it is narrower than its numbers
    return height[..., 0] + lax.log(jnp.maximum(total, 1e-300))
