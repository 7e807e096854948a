"""Piecewise polynomials, as trees of their coefficients and breakpoints."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.numpy.common import axis_index
from functrans.scipy.arguments import inexact, known_size, known_values, one_of
from functrans.typing import Array, ArrayLike

Extrapolate = bool | str | None
P = TypeVar("P", bound="PPoly")


@register_pytree_with_keys_class
class PPoly:
    """Polynomials between breakpoints: sum c[k, i] (x - x[i])**(K - k) from x[i] to x[i + 1].

    `c` has shape (K + 1, intervals, ...), and `axis` says where the axes of evaluation stand among
    the others. `extrapolate` goes on with the outer polynomials (the default), gives NaN (False),
    or repeats ("periodic"). Raises ShapeError where c and x do not fit.

    >>> import functrans as ft
    >>> p = ft.scipy.interpolate.PPoly([[1.0, 2.0], [0.0, 1.0]], [0.0, 1.0, 2.0])
    >>> p(ft.numpy.array([0.5, 1.5])).tolist()
    [0.5, 2.0]
    >>> p.derivative()(0.5).item(), p.antiderivative()(1.0).item(), p.integrate(0.0, 2.0).item()
    (1.0, 0.5, 2.5)
    """

    c: Array
    x: Array
    extrapolate: Extrapolate
    axis: int

    def __init__(self, c: ArrayLike, x: ArrayLike, extrapolate: Extrapolate = None,
                 axis: int = 0) -> None:
        self.c, _ = inexact(c, x)
        self.x, _ = inexact(x, self.c.real)
        if self.x.ndim != 1 or self.c.ndim < 2 or self.c.shape[1] != self.x.shape[0] - 1:
            raise ShapeError(f"functrans.scipy.interpolate.{type(self).__name__}: c has shape "
                             f"{self.c.shape}, x {self.x.shape}.", where=user_source(),
                             why="c has a column for each interval of x.")
        one_of("interpolate.PPoly", "extrapolate", extrapolate, (None, True, False, "periodic"))
        self.extrapolate = True if extrapolate is None else extrapolate
        self.axis = axis

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """Coefficients and breakpoints are children."""
        return ((GetAttrKey("c"), self.c), (GetAttrKey("x"), self.x)), (self.extrapolate, self.axis)

    @classmethod
    def tree_unflatten(cls: type[P], aux: Any, children: Iterable[Any]) -> P:
        """A polynomial of the class, without its construction."""
        made = object.__new__(cls)
        made.c, made.x = children
        made.extrapolate, made.axis = aux
        return made

    def __call__(self, x: ArrayLike, nu: int = 0, extrapolate: Extrapolate = None) -> Array:
        """The values at x, or those of the derivative of order nu (an integral for nu < 0)."""
        if nu:
            return (self.derivative(nu) if nu > 0 else self.antiderivative(-nu))(
                x, 0, extrapolate)
        how = self.extrapolate if extrapolate is None else extrapolate
        at, _ = inexact(x, self.x)
        first, last = self.x[0], self.x[-1]
        if how == "periodic":
            at = first + jnp.mod(at - first, last - first)
        places = intervals(self.x, at)
        lead = at.reshape(-1) - self.x[places.reshape(-1)]
        columns = self.c[:, places.reshape(-1)]
        rest = (1,) * (self.c.ndim - 2)
        value = self._sum(columns, lead.reshape(-1, *rest).astype(self.c.dtype),
                          jnp.diff(self.x)[places.reshape(-1)].reshape(-1, *rest))
        if how is False:
            inside = ((at >= first) & (at <= last)).reshape(-1, *rest)
            value = jnp.where(inside, value, math.nan)
        value = value.reshape(*at.shape, *self.c.shape[2:])
        return _moved(value, at.ndim, self.axis)

    def _sum(self, columns: Array, step: Array, width: Array) -> Array:
        """The polynomials of coefficients (K + 1, places, ...) at a step from their start."""
        value = columns[0]
        for k in range(1, columns.shape[0]):
            value = value * step + columns[k]
        return value

    @classmethod
    def construct_fast(cls: type[P], c: ArrayLike, x: ArrayLike, extrapolate: Extrapolate = None,
                       axis: int = 0) -> P:
        """A polynomial, without its checks.

        >>> line = PPoly.construct_fast([[2.0]], [0.0, 1.0])
        >>> line.extend([[3.0]], [2.0])
        >>> line(1.5).item()
        3.0
        """
        return cls.tree_unflatten((True if extrapolate is None else extrapolate, axis),
                                  (jnp.asarray(c), jnp.asarray(x)))

    def extend(self, c: ArrayLike, x: ArrayLike) -> None:
        """Add intervals behind the last breakpoint, or before the first; x are their other ends.

        >>> p = PPoly([[2.0]], [0.0, 1.0])
        >>> p.extend([[5.0]], [-1.0])
        >>> p(-0.5).item()
        5.0
        """
        more, _ = inexact(c, self.c)
        ends, _ = inexact(x, self.x)
        if more.ndim < 2 or ends.ndim != 1 or more.shape[1] != ends.shape[0] \
                or more.shape[2:] != self.c.shape[2:]:
            raise ShapeError(f"functrans.scipy.interpolate.{type(self).__name__}.extend: c has "
                             f"shape {more.shape}, x {ends.shape}.", where=user_source(),
                             why=f"c has a column for each x, of the shape {self.c.shape[2:]}.")
        if not ends.shape[0]:
            return
        known = known_values("interpolate.PPoly.extend", "x", jnp.concatenate([self.x[:1],
                             self.x[-1:], ends]), "it says at which end intervals are added.",
                             "extend before jit")
        behind = bool(known[2] >= known[1])
        if (not behind and not known[-1] <= known[0]) or (np.diff(known[2:]) <= 0).any():
            raise ArgumentError("functrans.scipy.interpolate.PPoly.extend: x does not grow from "
                                "the last breakpoint, or to the first.", where=user_source())
        size = max(self.c.shape[0], more.shape[0])
        old, more = (self._raised(v.astype(jnp.promote_types(self.c.dtype, more.dtype)), size)
                     for v in (self.c, more))
        if behind:
            self.c, self.x = (jnp.concatenate(v, axis=a) for v, a in (
                ((old, more), 1), ((self.x, ends), 0)))
        else:
            self.c, self.x = (jnp.concatenate(v, axis=a) for v, a in (
                ((more, old), 1), ((ends, self.x), 0)))

    @staticmethod
    def _raised(c: Array, size: int) -> Array:
        """Coefficients of the same polynomials, `size` of them."""
        return jnp.pad(c, [(size - c.shape[0], 0)] + [(0, 0)] * (c.ndim - 1))

    def derivative(self, nu: int = 1) -> PPoly:
        """The polynomial that is the derivative of order nu."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        for _ in range(nu):
            order = c.shape[0] - 1
            if not order:
                c = jnp.zeros_like(c)
                break
            factors = jnp.asarray(np.arange(order, 0, -1)).astype(c.dtype)
            c = c[:-1] * factors.reshape(-1, *(1,) * (c.ndim - 1))
        return PPoly.tree_unflatten((self.extrapolate, self.axis), (c, self.x))

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The polynomial that is the integral from the first breakpoint, taken nu times."""
        if nu < 0:
            return self.derivative(-nu)
        c = self.c
        h = jnp.diff(self.x)
        for _ in range(nu):
            count = c.shape[0]
            factors = jnp.asarray(1 / np.arange(count, 0, -1)).astype(c.dtype)
            c = c * factors.reshape(-1, *(1,) * (c.ndim - 1))
            step = h.reshape(-1, *(1,) * (c.ndim - 2)).astype(c.dtype)
            whole = c[0]
            for k in range(1, count):
                whole = whole * step + c[k]
            sums = jnp.cumsum(whole * step, axis=0)
            start = jnp.concatenate([jnp.zeros_like(sums[:1]), sums[:-1]])
            c = jnp.concatenate([c, start[None]])
        how = False if self.extrapolate == "periodic" else self.extrapolate
        return PPoly.tree_unflatten((how, self.axis), (c, self.x))

    def integrate(self, a: ArrayLike, b: ArrayLike, extrapolate: Extrapolate = None) -> Array:
        """The integral from a to b."""
        how = self.extrapolate if extrapolate is None else extrapolate
        whole = self.antiderivative()
        if how != "periodic":
            return whole(b, 0, how) - whole(a, 0, how)
        low, high, _ = inexact(a, b, self.x)
        first, period = self.x[0], self.x[-1] - self.x[0]

        def at(t: Array) -> Array:
            turns = jnp.floor((t - first) / period)
            return whole(t - turns * period, 0, True) + turns * (
                whole(self.x[-1], 0, True) - whole(first, 0, True))

        return at(high) - at(low)


def intervals(x: Array, at: Array) -> Array:
    """The intervals of growing breakpoints that places are in, or are nearest to."""
    found = jnp.searchsorted(x, at, side="right") - 1
    return jnp.clip(found, 0, x.shape[0] - 2)


def _moved(value: Array, count: int, axis: int) -> Array:
    """The first `count` axes moved to stand at `axis` among the others."""
    if not axis or not count:
        return value
    return jnp.moveaxis(value, tuple(range(count)), tuple(range(axis, axis + count)))


def table(name: str, x: ArrayLike, y: ArrayLike, axis: int, least: int = 2
          ) -> tuple[Array, Array, int]:
    """Breakpoints, and values whose first axis is theirs."""
    values, _ = inexact(y, x)
    places, _ = inexact(x, values.real)
    if dtypes.kind(places.dtype) == "c":
        raise ArgumentError(f"functrans.scipy.interpolate.{name}: x is complex.",
                            where=user_source())
    axis = axis_index(axis, values.ndim, name)
    values = jnp.moveaxis(values, axis, 0)
    if places.ndim != 1 or values.shape[0] != places.shape[0] or places.shape[0] < least:
        raise ShapeError(f"functrans.scipy.interpolate.{name}: x has shape {places.shape}, y "
                         f"{jnp.shape(y)}.", where=user_source(),
                         why=f"x is a vector of at least {least} places, and y has a value for "
                         "each.")
    known_size(f"interpolate.{name}", "the number of places", places.shape[0], least)
    return places, values, axis
