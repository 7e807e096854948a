"""Piecewise polynomials in Bernstein's basis, and of several variables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, known_size
from functrans.scipy.interpolate.piecewise import Extrapolate, PPoly, intervals
from functrans.scipy.interpolate.scattered import places_of
from functrans.typing import Array, ArrayLike


@register_pytree_with_keys_class
class BPoly(PPoly):
    """Polynomials between breakpoints in Bernstein's basis: sum c[a, i] b(a, k; t) in interval i.

    b(a, k; t) = comb(k, a) t**a (1 - t)**(k - a), where t goes from 0 to 1 in the interval. See
    `PPoly`. Source: Farin, Curves and Surfaces for CAGD (2002), ch. 5 and 6.

    >>> import functrans as ft
    >>> p = ft.scipy.interpolate.BPoly([[0.0], [0.0], [1.0]], [0.0, 2.0])
    >>> p(ft.numpy.array([1.0, 2.0])).tolist()
    [0.25, 1.0]
    >>> p.derivative()(1.0).item(), round(p.integrate(0.0, 2.0).item(), 4)
    (0.5, 0.6667)
    """

    def _sum(self, columns: Array, step: Array, width: Array) -> Array:
        t = step / width.astype(step.dtype)
        rows = list(columns)
        for last in range(len(rows) - 1, 0, -1):  # de Casteljau's algorithm
            rows = [rows[j] + t * (rows[j + 1] - rows[j]) for j in range(last)]
        return rows[0]

    def derivative(self, nu: int = 1) -> BPoly:
        """The polynomial that is the derivative of order nu."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        for _ in range(nu):
            if c.shape[0] == 1:
                c = jnp.zeros_like(c)
                break
            width = jnp.diff(self.x).reshape(-1, *(1,) * (c.ndim - 2)).astype(c.dtype)
            c = (c.shape[0] - 1) * jnp.diff(c, axis=0) / width
        return BPoly.tree_unflatten((self.extrapolate, self.axis), (c, self.x))

    def antiderivative(self, nu: int = 1) -> BPoly:
        """The polynomial that is the integral from the first breakpoint, taken nu times."""
        if nu < 0:
            return self.derivative(-nu)
        c = self.c
        width = jnp.diff(self.x).reshape(-1, *(1,) * (c.ndim - 2)).astype(c.dtype)
        for _ in range(nu):
            sums = jnp.cumsum(c, axis=0) * width / c.shape[0]
            whole = jnp.cumsum(sums[-1], axis=0)
            start = jnp.concatenate([jnp.zeros_like(whole[:1]), whole[:-1]])[None]
            c = jnp.concatenate([start, sums + start])
        how = False if self.extrapolate == "periodic" else self.extrapolate
        return BPoly.tree_unflatten((how, self.axis), (c, self.x))

    @staticmethod
    def _raised(c: Array, size: int) -> Array:
        k, more = c.shape[0] - 1, size - c.shape[0]
        if not more:
            return c
        factors = np.zeros((size, k + 1))
        for a in range(k + 1):
            for j in range(more + 1):
                factors[a + j, a] = math.comb(k, a) * math.comb(more, j) / math.comb(
                    k + more, a + j)
        return jnp.tensordot(jnp.asarray(factors).astype(c.real.dtype), c, 1, precision="highest")

    @classmethod
    def from_power_basis(cls, pp: PPoly, extrapolate: Extrapolate = None) -> BPoly:
        """The same polynomials as a `PPoly`.

        >>> BPoly.from_power_basis(PPoly([[1.0], [0.0]], [0.0, 2.0])).c.tolist()
        [[0.0], [2.0]]
        """
        if not isinstance(pp, PPoly) or isinstance(pp, BPoly):
            raise ArgumentError("functrans.scipy.interpolate.BPoly.from_power_basis takes a PPoly, "
                                f"and got {type(pp).__name__}.", where=user_source())
        k = pp.c.shape[0] - 1
        width = jnp.diff(pp.x).reshape(-1, *(1,) * (pp.c.ndim - 2)).astype(pp.c.dtype)
        # t**p = sum comb(j, p) / comb(k, p) b(j, k; t)
        rows = [sum(pp.c[k - p] * width**p * (math.comb(j, p) / math.comb(k, p))
                    for p in range(j + 1)) for j in range(k + 1)]
        how = pp.extrapolate if extrapolate is None else extrapolate
        return cls.tree_unflatten((how, pp.axis), (jnp.stack(rows), pp.x))

    @classmethod
    def from_derivatives(cls, xi: ArrayLike, yi: Any, orders: Any = None,
                         extrapolate: Extrapolate = None) -> BPoly:
        """The polynomials with values and derivatives yi[i][j] of order j at growing places xi.

        Of an interval's degree, `orders` (a number, or one for each), half of the derivatives are
        taken at each end, or all there are. Raises ArgumentError where there are too few.

        >>> BPoly.from_derivatives([0.0, 1.0], [[1.0, 0.0], [3.0]])(1.0).item()
        3.0
        """
        (x,) = inexact(xi)
        rows = inexact(*yi, x)[:-1]
        m = len(rows) - 1
        if x.ndim != 1 or x.shape[0] != len(rows) or m < 1 or any(v.ndim < 1 for v in rows):
            raise ShapeError(f"functrans.scipy.interpolate.BPoly.from_derivatives: xi has shape "
                             f"{x.shape}, and there are {len(rows)} of yi.", where=user_source(),
                             why="each of two places or more has a list of its value and "
                             "derivatives.", fix="y.reshape(-1, 1)")
        asked = list(orders) if isinstance(orders, (list, tuple, np.ndarray)) else [orders] * m
        found = []
        for i in range(m):
            before, after = rows[i], rows[i + 1]
            counts = before.shape[0], after.shape[0]
            if asked[i] is not None:
                n = known_size("interpolate.BPoly.from_derivatives", "orders", asked[i]) + 1
                first = min(n // 2, counts[0])
                second = min(n - first, counts[1])
                first = n - second
                if first > counts[0]:
                    raise ArgumentError("functrans.scipy.interpolate.BPoly.from_derivatives: "
                                        f"orders[{i}] is {n - 1}.", where=user_source(),
                                        why=f"its ends have {counts[0]} and {counts[1]} values and "
                                        "derivatives.")
                counts = first, second
            found.append(_hermite(before[:counts[0]], after[:counts[1]], x[i + 1] - x[i]))
        # as many as all derivatives would ask for, as in SciPy
        size = max(v.shape[0] + w.shape[0] for v, w in pairwise(rows))
        c = jnp.stack([cls._raised(v[:, None], size)[:, 0] for v in inexact(*found)], axis=1)
        return cls(c, x, extrapolate)


def _hermite(ya: Array, yb: Array, width: Array) -> Array:
    """Bernstein's coefficients of the polynomial with derivatives ya at its start, yb at its end.

    The differences of order q at an end are its derivative times width**q (n - q)! / n!.
    """
    n = ya.shape[0] + yb.shape[0] - 1
    front: list[Array] = []
    back: list[Array] = []
    for values, c, sign in ((ya, front, 1), (yb, back, -1)):
        for q in range(values.shape[0]):
            scale = math.factorial(n - q) / math.factorial(n)
            value = values[q] * (sign * width.astype(values.dtype)) ** q * scale
            for j in range(q):
                value = value - (-1) ** (q - j) * math.comb(q, j) * c[j]
            c.append(value)
    return jnp.stack(front + back[::-1])


@register_pytree_with_keys_class
class NdPPoly:
    """Polynomials of several variables in the boxes of a grid of breakpoints.

    `c` has shape (K1 + 1, ..., Kd + 1, intervals of x[0], ..., of x[d - 1], ...): sum of c[k1, ...]
    (z1 - x[0][i])**(K1 - k1) ... in the box. `extrapolate` goes on with the outer ones (the
    default), or gives NaN (False). It is a tree, differentiated in all. Raises ShapeError where c
    and x do not fit.

    >>> import functrans as ft
    >>> p = ft.scipy.interpolate.NdPPoly(ft.numpy.ones((2, 2, 1, 1)), ([0.0, 1.0], [0.0, 1.0]))
    >>> p([[0.5, 1.0]]).tolist(), p.derivative((1, 0))([[0.5, 1.0]]).tolist()
    ([3.0], [2.0])
    >>> float(p.integrate([(0.0, 1.0), (0.0, 1.0)]))
    2.25
    >>> p.integrate_1d(0.0, 1.0, 0)([[0.5]]).tolist(), p.antiderivative((1, 0))([[1.0, 0]]).tolist()
    ([2.25], [1.5])
    >>> ft.scipy.interpolate.NdPPoly.construct_fast(p.c, p.x)([[0.0, 0.0]]).tolist()
    [1.0]
    """

    def __init__(self, c: ArrayLike, x: Sequence[ArrayLike], extrapolate: bool | None = None
                 ) -> None:
        self.c, *_ = inexact(c, *x)
        self.x = tuple(inexact(v, self.c.real)[0] for v in x)
        self.extrapolate = True if extrapolate is None else bool(extrapolate)
        dims = len(self.x)
        sizes = tuple(v.shape[0] - 1 if v.ndim == 1 else -1 for v in self.x)
        if self.c.ndim < 2 * dims or self.c.shape[dims:2 * dims] != sizes or min(sizes) < 1:
            raise ShapeError(f"functrans.scipy.interpolate.NdPPoly: c has shape {self.c.shape}, x "
                             f"{[v.shape for v in self.x]}.", where=user_source(),
                             why="c has an axis of powers for each variable, and then one of the "
                             "intervals of each.")

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """Coefficients and breakpoints are children."""
        return ((GetAttrKey("c"), self.c), (GetAttrKey("x"), self.x)), self.extrapolate

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> NdPPoly:
        """A polynomial, without its construction."""
        made = object.__new__(cls)
        made.c, made.x = children
        made.extrapolate = aux
        return made

    @classmethod
    def construct_fast(cls, c: ArrayLike, x: Sequence[ArrayLike], extrapolate: bool | None = None
                       ) -> NdPPoly:
        """A polynomial, without its checks."""
        return cls.tree_unflatten(True if extrapolate is None else extrapolate,
                                  (jnp.asarray(c), tuple(jnp.asarray(v) for v in x)))

    def __call__(self, x: Any, nu: Sequence[int] | None = None, extrapolate: bool | None = None
                 ) -> Array:
        """The values at places (..., d), or those of the derivatives of orders nu."""
        if nu is not None and any(int(n) for n in self._orders(nu)):
            return self.derivative(nu)(x, None, extrapolate)
        dims = len(self.x)
        at = places_of((x,), jnp.zeros((0, dims), self.x[0].dtype))
        flat = at.reshape(-1, dims)
        where = [intervals(v, flat[:, d]) for d, v in enumerate(self.x)]
        value = self.c[(slice(None),) * dims + tuple(where)]
        rest = (1,) * (self.c.ndim - 2 * dims)
        for d in range(dims):
            step = flat[:, d] - self.x[d][where[d]]
            step = step.reshape(*(1,) * (dims - d - 1), -1, *rest).astype(self.c.dtype)
            total = value[0]
            for k in range(1, value.shape[0]):
                total = total * step + value[k]
            value = total
        if not (self.extrapolate if extrapolate is None else extrapolate):
            inside = jnp.ones(flat.shape[0], bool)
            for d, v in enumerate(self.x):
                inside = inside & (flat[:, d] >= v[0]) & (flat[:, d] <= v[-1])
            value = jnp.where(inside.reshape(-1, *rest), value, math.nan)
        return value.reshape(*at.shape[:-1], *self.c.shape[2 * dims:])

    def _orders(self, nu: Any) -> list[int]:
        orders = [int(n) for n in np.asarray(nu).reshape(-1)]
        if np.ndim(nu) != 1 or len(orders) != len(self.x):
            raise ArgumentError(f"functrans.scipy.interpolate.NdPPoly: nu is {nu}.",
                                where=user_source(), why=f"there are {len(self.x)} variables.")
        return orders

    def _along(self, axis: int, how: bool | None = None) -> PPoly:
        """The polynomial of one variable, whose coefficients have the other axes behind."""
        c = jnp.moveaxis(self.c, (axis, len(self.x) + axis), (0, 1))
        return PPoly.tree_unflatten((self.extrapolate if how is None else how, 0),
                                    (c, self.x[axis]))

    def derivative(self, nu: Sequence[int]) -> NdPPoly:
        """The polynomial that is the derivative of orders nu, one for each variable."""
        made = self
        for axis, n in enumerate(self._orders(nu)):
            c = made._along(axis).derivative(n).c
            made = NdPPoly.tree_unflatten(self.extrapolate, (
                jnp.moveaxis(c, (0, 1), (axis, len(self.x) + axis)), self.x))
        return made

    def antiderivative(self, nu: Sequence[int]) -> NdPPoly:
        """The polynomial that is the integral from the first breakpoints, taken nu times."""
        return self.derivative([-n for n in self._orders(nu)])

    def integrate_1d(self, a: ArrayLike, b: ArrayLike, axis: int, extrapolate: bool | None = None
                     ) -> Any:
        """The integral from a to b of one variable: a polynomial of the others."""
        dims = len(self.x)
        axis = int(axis) % dims
        found = self._along(axis, extrapolate).integrate(a, b, extrapolate)
        if dims == 1:
            return found
        return NdPPoly.tree_unflatten(self.extrapolate if extrapolate is None else extrapolate, (
            found, self.x[:axis] + self.x[axis + 1:]))

    def integrate(self, ranges: Sequence[Any], extrapolate: bool | None = None) -> Array:
        """The integral over a box, of a pair of ends for each variable."""
        if len(ranges) != len(self.x):
            raise ArgumentError(f"functrans.scipy.interpolate.NdPPoly.integrate: there are "
                                f"{len(ranges)} ranges.", where=user_source(),
                                why=f"there are {len(self.x)} variables.")
        found: Any = self
        for a, b in ranges:
            found = found.integrate_1d(a, b, 0, extrapolate)
        return found  # type: ignore[no-any-return]
