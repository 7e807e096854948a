"""Polynomials through all values, and functions that interpolate at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.keypath import GetAttrKey
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, known_size
from functrans.scipy.interpolate.cubic import PchipInterpolator
from functrans.scipy.interpolate.piecewise import table
from functrans.scipy.products import matmul
from functrans.typing import Array, ArrayLike


@register_pytree_with_keys_class
class BarycentricInterpolator:
    """The polynomial through values yi at distinct places xi, in any order.

    It is a tree, differentiated in places and values; its own derivatives are `derivative(x, nu)`.
    Source: Berrut and Trefethen, SIAM Review 46 (2004), eq. 4.2 and 9.4.

    >>> import functrans as ft
    >>> p = ft.scipy.interpolate.BarycentricInterpolator([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])
    >>> p(1.5).round(3).item(), p.derivative(1.5).round(3).item()
    (2.25, 3.0)
    """

    def __init__(self, xi: ArrayLike, yi: ArrayLike, axis: int = 0) -> None:
        self.xi, self.yi, self.axis = table("BarycentricInterpolator", xi, yi, axis, 1)

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """Places and values are children."""
        return ((GetAttrKey("xi"), self.xi), (GetAttrKey("yi"), self.yi)), self.axis

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> BarycentricInterpolator:
        """A polynomial, without its construction."""
        made = object.__new__(cls)
        made.xi, made.yi = children
        made.axis = aux
        return made

    def _weights(self) -> Array:
        # of places in an interval of length 4, whose capacity is 1: products stay in range
        scale = 4 / jnp.maximum(jnp.ptp(self.xi), jnp.finfo(self.xi.dtype).tiny)
        apart = (self.xi[:, None] - self.xi) * scale
        return 1 / jnp.prod(jnp.where(np.eye(self.xi.shape[0], dtype=bool), 1, apart), axis=1)

    def _at(self, x: ArrayLike, values: Array) -> Array:
        at, _ = inexact(x, self.xi)
        flat = at.reshape(-1)
        apart = flat[:, None] - self.xi
        # the factor (x - x_k) of the nearest place is taken out of both sums, so that they and
        # their derivatives are finite at a place
        near = jnp.argmin(jnp.abs(apart), axis=1)
        rows = jnp.arange(flat.shape[0])
        least = apart[rows, near][:, None]
        is_near = near[:, None] == jnp.arange(self.xi.shape[0])
        parts = self._weights() * jnp.where(is_near, 1, least / jnp.where(is_near, 1, apart))
        lines = values.reshape(values.shape[0], -1)
        value = matmul(parts.astype(lines.dtype), lines) / jnp.sum(parts, axis=1)[:, None]
        value = value.reshape(*at.shape, *values.shape[1:])
        if self.axis and at.ndim:
            value = jnp.moveaxis(value, tuple(range(at.ndim)),
                                 tuple(range(self.axis, self.axis + at.ndim)))
        return value

    def __call__(self, x: ArrayLike) -> Array:
        """The values at x."""
        return self._at(x, self.yi)

    def derivative(self, x: ArrayLike, der: int = 1) -> Array:
        """The derivative of order `der` at x."""
        weights = self._weights()
        same = np.eye(self.xi.shape[0], dtype=bool)
        matrix = weights / weights[:, None] / jnp.where(same, 1, self.xi[:, None] - self.xi)
        matrix = jnp.where(same, 0, matrix)
        matrix = matrix - jnp.diag(jnp.sum(matrix, axis=1))
        lines = self.yi.reshape(self.yi.shape[0], -1)
        for _ in range(known_size("interpolate.BarycentricInterpolator", "der", der, 0)):
            lines = matmul(matrix.astype(lines.dtype), lines)
        return self._at(x, lines.reshape(self.yi.shape))


KroghInterpolator = BarycentricInterpolator


def barycentric_interpolate(xi: ArrayLike, yi: ArrayLike, x: ArrayLike, axis: int = 0, *,
                            der: int = 0) -> Array:
    """The polynomial through values yi at places xi, or its derivative, at x.

    >>> import functrans as ft
    >>> float(ft.scipy.interpolate.barycentric_interpolate([0.0, 1.0], [1.0, 3.0], 0.5))
    2.0
    """
    made = BarycentricInterpolator(xi, yi, axis)
    return made.derivative(x, der) if der else made(x)


def krogh_interpolate(xi: ArrayLike, yi: ArrayLike, x: ArrayLike, der: int = 0, axis: int = 0
                      ) -> Array:
    """The polynomial through values yi at distinct places xi, or its derivative, at x.

    >>> import functrans as ft
    >>> float(ft.scipy.interpolate.krogh_interpolate([0.0, 1.0], [1.0, 3.0], 0.5))
    2.0
    """
    return barycentric_interpolate(xi, yi, x, axis, der=der)


def pchip_interpolate(xi: ArrayLike, yi: ArrayLike, x: ArrayLike, der: int = 0, axis: int = 0
                      ) -> Array:
    """The monotonic cubics through yi at growing places xi, or their derivative, at x.

    >>> import functrans as ft
    >>> float(ft.scipy.interpolate.pchip_interpolate([0.0, 1.0, 2.0], [0.0, 1.0, 1.0], 1.5))
    1.0
    """
    return PchipInterpolator(xi, yi, axis)(x, der)
