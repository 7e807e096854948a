"""Nelder and Mead's method, which needs no derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from functrans import lax
from functrans import numpy as jnp
from functrans.transforms.vmap import vmap
from functrans.typing import Array

Limits = tuple[Array, Array] | None


class Simplex(NamedTuple):
    """Its corners, the lowest one first."""

    points: Array
    values: Array
    nit: Array
    nfev: Array


def nelder_mead(fun: Callable[[Array], Array], x: Array, xatol: Any, fatol: Any, maxiter: int,
                adaptive: bool, limits: Limits = None, first: Array | None = None
                ) -> tuple[Simplex, Array]:
    """The simplex around a minimum, and whether it became small; points are put within limits.

    `first` are the corners to begin with, (n + 1, n), in place of those around x.

    Source: Nelder and Mead, Computer Journal 7 (1965); for `adaptive` Gao and Han, Comput. Optim.
    Appl. 51 (2012).
    """
    n = x.size

    def within(point: Array) -> Array:
        return point if limits is None else jnp.clip(point, *limits)

    x = within(x)
    expand, contract, shrink = (1 + 2 / n, 0.75 - 1 / (2 * n), 1 - 1 / n) if adaptive \
        else (2.0, 0.5, 0.5)
    corners = jnp.where(x != 0, 1.05 * x, 0.00025)
    points = jnp.concatenate([x[None], jnp.where(jnp.eye(n, dtype=bool), corners, x)])
    points = points if first is None else first.astype(x.dtype)
    if limits is not None:  # corners beyond an upper bound are reflected, not put on it
        points = within(jnp.where(points > limits[1], 2 * limits[1] - points, points))
    start = _sorted(points, vmap(fun)(points), jnp.array(0), jnp.array(n + 1))

    def is_small(s: Simplex) -> Any:
        near = jnp.max(jnp.abs(s.points[1:] - s.points[0])) <= xatol
        return near & (jnp.max(jnp.abs(s.values[1:] - s.values[0])) <= fatol)

    def unfinished(s: Simplex) -> Any:
        return ~is_small(s) & (s.nit < maxiter)

    def improve(s: Simplex) -> Simplex:
        middle = jnp.mean(s.points[:-1], axis=0)
        worst, away = s.points[-1], middle - s.points[-1]
        reflected = within(middle + away)
        value = fun(reflected)
        best, second, last = s.values[0], s.values[-2], s.values[-1]
        # the one further point that the value of the reflected one asks for
        farther = value < best
        outside = ~farther & (value >= second) & (value < last)
        inside = ~farther & (value >= second) & (value >= last)
        factor = jnp.where(farther, expand, jnp.where(outside, contract, -contract))
        other = within(middle + factor * away)
        tried = farther | outside | inside
        other_value = lax.cond(tried, fun, lambda _: value, other)
        take_other = (farther & (other_value < value)) | (outside & (other_value <= value)) | (
            inside & (other_value < last))
        shrinks = (outside | inside) & ~take_other
        point = jnp.where(take_other, other, reflected)
        replaced = s.points.at[-1].set(point)
        values = s.values.at[-1].set(jnp.where(take_other, other_value, value))

        def smaller(_: Any) -> tuple[Array, Array]:
            points = s.points[0] + shrink * (s.points - s.points[0])
            return points, s.values.at[1:].set(vmap(fun)(points[1:]))

        points, values = lax.cond(shrinks, smaller, lambda _: (replaced, values), worst)
        count = 1 + tried.astype(s.nfev.dtype) + n * shrinks.astype(s.nfev.dtype)
        return _sorted(points, values, s.nit + 1, s.nfev + count)

    end = lax.while_loop(unfinished, improve, start)
    return end, is_small(end)


def _sorted(points: Array, values: Array, nit: Array, nfev: Array) -> Simplex:
    order = jnp.argsort(jnp.where(jnp.isnan(values), jnp.inf, values))
    return Simplex(points[order], values[order], nit, nfev)
