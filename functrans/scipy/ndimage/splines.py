"""Interpolation by splines of order 0 to 5: their coefficients, and their values at places.

Source: Unser, Aldroubi and Eden, B-spline signal processing, IEEE Trans. Signal Processing 41
(1993).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.numpy.common import axis_index, converted
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.ndimage.filters import padded
from functrans.typing import Array, ArrayLike

_POLES: Final[Mapping[int, tuple[float, ...]]] = MappingProxyType({
    2: (math.sqrt(8) - 3,),
    3: (math.sqrt(3) - 2,),
    4: (math.sqrt(664 - math.sqrt(438976)) + math.sqrt(304) - 19,
        math.sqrt(664 + math.sqrt(438976)) - math.sqrt(304) - 19),
    5: (math.sqrt(67.5 - math.sqrt(4436.25)) + math.sqrt(26.25) - 6.5,
        math.sqrt(67.5 + math.sqrt(4436.25)) - math.sqrt(26.25) - 6.5)})
MODES = ("reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "grid-wrap",
         "wrap")
_PAD = 12  # elements that modes without a periodic continuation get before the filter


def spline_filter1d(input: ArrayLike, order: int = 3, axis: int = -1, output: None = None,
                    mode: str = "mirror") -> Array:
    """The coefficients of the spline through the elements along an axis.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.spline_filter1d(ft.numpy.ones(4)).round(4).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    one_of("ndimage.spline_filter1d", "order", order, (0, 1, 2, 3, 4, 5))
    one_of("ndimage.spline_filter1d", "mode", mode, MODES)
    one_of("ndimage.spline_filter1d", "output", output, (None,))
    (x,) = inexact(input)
    axis = axis_index(axis, x.ndim, "spline_filter1d")
    n = x.shape[axis]
    if order < 2 or n == 1:
        return x
    x = jnp.moveaxis(x, axis, 0)
    poles = _POLES[order]
    x = x * math.prod((1 - z) * (1 - 1 / z) for z in poles)
    edge = {"reflect": "reflect", "nearest": "reflect", "grid-mirror": "reflect",
            "grid-wrap": "wrap"}.get(mode, "mirror")
    for z in poles:
        x = _recursive(x, z, edge)
    return jnp.moveaxis(x, 0, axis)


def _recursive(x: Array, z: float, edge: str) -> Array:
    """One pole of the filter, forth and back along the first axis."""
    n = x.shape[0]
    k = np.arange(n)
    if edge == "mirror":
        weights = z**k + z ** (2.0 * n - 2 - k)
        weights[[0, -1]] = 1, z ** (n - 1)
        weights = weights / (1 - z ** (2 * n - 2))
    elif edge == "reflect":
        weights = z / (1 - z ** (2 * n)) * (z**k + z ** (2.0 * n - 1 - k))
        weights[0] += 1
    else:
        weights = z ** ((-k) % n) / (1 - z**n)
    first = jnp.tensordot(jnp.asarray(weights).astype(x.real.dtype), x, 1, precision="highest")

    def forth(state: Array, value: Array) -> tuple[Array, Array]:
        out = value + z * state
        return out, out

    _, rest = lax.scan(forth, first, x[1:])
    causal = jnp.concatenate([first[None], rest])
    if edge == "mirror":
        last = z / (z * z - 1) * (causal[-1] + z * causal[-2])
    elif edge == "reflect":
        last = z / (z - 1) * causal[-1]
    else:
        weights = z ** ((k + 1) % n) * z / (z**n - 1)
        last = jnp.tensordot(jnp.asarray(weights).astype(x.real.dtype), causal, 1,
                             precision="highest")

    def back(state: Array, value: Array) -> tuple[Array, Array]:
        out = z * (state - value)
        return out, out

    _, rest = lax.scan(back, last, causal[:-1], reverse=True)
    return jnp.concatenate([rest, last[None]])


def spline_filter(input: ArrayLike, order: int = 3, output: None = None, mode: str = "mirror"
                  ) -> Array:
    """The coefficients of the spline through the elements, over all axes.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.spline_filter(ft.numpy.ones((2, 2))).round(4).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    (x,) = inexact(input)
    for axis in range(x.ndim):
        x = spline_filter1d(x, order, axis, output, mode)
    return x


def _basis(t: Array, order: int) -> list[Array]:
    """The values of the B-splines that are not 0 at a place t from 0 to 1 in its interval."""
    values = [jnp.ones_like(t)]
    for p in range(1, order + 1):
        rising = [(t + (p - j)) / p * values[j - 1] for j in range(1, p + 1)]
        falling = [(j + 1 - t) / p * values[j] for j in range(p)]
        inner = [a + b for a, b in zip(rising[:-1], falling[1:])]
        values = [falling[0], *inner, rising[-1]]
    return values


def _index(mode: str, i: Array, n: int) -> Array:
    """The element that stands at a place beyond the edges."""
    if mode in ("reflect", "grid-mirror"):
        i = jnp.mod(i, 2 * n)
        return jnp.minimum(i, 2 * n - 1 - i)
    if mode == "grid-wrap":
        return jnp.mod(i, n)
    if mode == "grid-constant":
        return jnp.clip(i, 0, n - 1)
    if n == 1:
        return jnp.zeros_like(i)
    i = jnp.mod(i, 2 * n - 2)
    return jnp.minimum(i, 2 * n - 2 - i)


def values_at(x: Array, places: Sequence[Array], order: int, mode: str, cval: ArrayLike,
              prefilter: bool = True, half: Callable[[Array], Array] | None = None) -> Array:
    """The spline of x over its first axes at places, an array of one shape for each of them.

    The other axes of x stay, at the end. `half` rounds places for order 0.
    """
    rank = len(places)
    rest = (1,) * (x.ndim - rank)
    shape = places[0].shape
    outside = jnp.zeros(shape, bool)
    at = list(places)
    pad = _PAD if prefilter and order > 1 and mode in ("nearest", "grid-constant") else 0
    if pad:
        for a in range(rank):
            x = padded("map_coordinates", x, a, pad, pad, mode, cval)
        at = [p + pad for p in at]
    if prefilter and order > 1:
        for a in range(rank):
            x = spline_filter1d(x, order, a, None, mode)
    indices, weights = [], []
    for a in range(rank):
        n, p = x.shape[a], at[a]
        if mode == "constant":
            outside = outside | (p < 0) | (p > n - 1)
        elif mode == "nearest":
            p = jnp.clip(p, 0, n - 1)
        elif mode == "wrap" and n > 1:
            p = jnp.where((p < 0) | (p > n - 1), jnp.mod(p, n - 1), p)
        elif mode == "wrap":
            p = jnp.zeros_like(p)
        if order == 0:
            near = jnp.floor(p + 0.5) if half is None else half(p)
            whole, parts = near, [jnp.ones_like(p)]
        else:
            start = jnp.floor(p if order % 2 else p + 0.5)
            offset = 0.0 if order % 2 else 0.5
            whole, parts = start - order // 2, _basis(p + offset - start, order)
        # places that are no numbers are nowhere: their weights are NaN
        whole = jnp.where(jnp.isfinite(whole), whole, 0).astype(np.int32)
        indices.append([whole + j for j in range(order + 1)])
        weights.append(parts)
    total = None
    for corner in product(range(order + 1), repeat=rank):
        weight = weights[0][corner[0]]
        for a in range(1, rank):
            weight = weight * weights[a][corner[a]]
        where = tuple(_index(mode, indices[a][j], x.shape[a]) for a, j in enumerate(corner))
        value = x[where]
        if mode == "grid-constant":
            inside = jnp.ones(shape, bool)
            for a, j in enumerate(corner):
                inside = inside & (indices[a][j] >= 0) & (indices[a][j] < x.shape[a])
            value = jnp.where(inside.reshape(*shape, *rest), value,
                              converted("map_coordinates", cval, x.dtype))
        value = value * weight.reshape(*shape, *rest).astype(x.real.dtype)
        total = value if total is None else total + value
    assert total is not None
    if mode == "constant":
        total = jnp.where(outside.reshape(*shape, *rest),
                          converted("map_coordinates", cval, x.dtype), total)
    return total
