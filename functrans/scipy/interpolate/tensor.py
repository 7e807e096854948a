"""Tensor products of B-splines of several variables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, known_size, value_of
from functrans.scipy.interpolate.bsplines import BSpline, local_basis
from functrans.typing import Array, ArrayLike

_NAME = "interpolate.NdBSpline"


@register_pytree_with_keys_class
class NdBSpline:
    """The spline sum c[i1, ..., id] B_i1(x1) ... B_id(xd) with knots t[j] of degrees k[j].

    `c` has a coefficient for each B-spline along its first d axes, and may have more. `extrapolate`
    goes on with the outer polynomials (the default), or gives NaN (False). It is a tree,
    differentiated in knots, coefficients and places. Raises ShapeError where they do not fit.
    Source: de Boor, A Practical Guide to Splines (1978), ch. XVII.

    >>> import functrans as ft
    >>> t = ft.numpy.array([0.0, 0.0, 1.0, 1.0])
    >>> s = ft.scipy.interpolate.NdBSpline((t, t), [[0.0, 1.0], [2.0, 3.0]], 1)
    >>> s([[0.5, 0.5], [1.0, 0.0]]).tolist(), s([0.5, 0.5], nu=(1, 0)).item()
    ([1.5, 2.0], 2.0)
    >>> s.derivative((1, 0))([0.5, 0.5]).item()
    2.0
    """

    def __init__(self, t: tuple[ArrayLike, ...], c: ArrayLike, k: int | Sequence[int], *,
                 extrapolate: bool | None = None) -> None:
        self.t, self.k = _knots_and_degrees(t, k)
        self.c, *_ = inexact(c, *self.t)
        self.t = tuple(inexact(v, self.c.real)[0] for v in self.t)
        self.extrapolate = True if extrapolate is None else bool(extrapolate)
        sizes = tuple(v.shape[0] - d - 1 for v, d in zip(self.t, self.k))
        if self.c.shape[:len(sizes)] != sizes:
            raise ShapeError(f"functrans.scipy.{_NAME}: c has shape {self.c.shape}, there are "
                             f"{[v.shape[0] for v in self.t]} knots, and k is {self.k}.",
                             where=user_source(), why=f"the first axes have {sizes} coefficients.")

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """Knots and coefficients are children."""
        return ((GetAttrKey("t"), self.t), (GetAttrKey("c"), self.c)), (self.k, self.extrapolate)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> NdBSpline:
        """A spline, without its construction."""
        made = object.__new__(cls)
        made.t, made.c = children
        made.k, made.extrapolate = aux
        return made

    def __call__(self, xi: ArrayLike, *, nu: Sequence[int] | None = None,
                 extrapolate: bool | None = None) -> Array:
        """The values at places (..., d), or those of the derivative of orders nu."""
        if nu is not None and any(_orders(nu, len(self.t))):
            return self.derivative(nu)(xi, extrapolate=extrapolate)
        dims = len(self.t)
        at, _ = inexact(xi, self.t[0])
        if at.shape[-1:] != (dims,):
            raise ShapeError(f"functrans.scipy.{_NAME}: xi has shape {at.shape}.",
                             where=user_source(), why=f"the last axis has {dims} coordinates.")
        flat = at.reshape(-1, dims)
        rest = (1,) * (self.c.ndim - dims)
        near = [_basis(t, k, flat[:, d]) for d, (t, k) in enumerate(zip(self.t, self.k))]
        total = None
        for corner in product(*(range(k + 1) for k in self.k)):
            where = tuple(first + j for (first, _), j in zip(near, corner))
            weight = math.prod(values[:, j] for (_, values), j in zip(near, corner))
            part = self.c[where] * jnp.asarray(weight).reshape(-1, *rest).astype(self.c.dtype)
            total = part if total is None else total + part
        assert total is not None
        if not (self.extrapolate if extrapolate is None else extrapolate):
            inside = jnp.ones(flat.shape[0], bool)
            for d, (t, k) in enumerate(zip(self.t, self.k)):
                inside = inside & (flat[:, d] >= t[k]) & (flat[:, d] <= t[t.shape[0] - k - 1])
            total = jnp.where(inside.reshape(-1, *rest), total, math.nan)
        return total.reshape(*at.shape[:-1], *self.c.shape[dims:])

    def derivative(self, nu: Sequence[int]) -> NdBSpline:
        """The spline that is the derivative of orders nu, one for each variable."""
        t, c, k = list(self.t), self.c, list(self.k)
        for axis, n in enumerate(_orders(nu, len(t))):
            if n > k[axis]:
                t[axis], k[axis] = t[axis][k[axis]:t[axis].shape[0] - k[axis]], 0
                shape = list(c.shape)
                shape[axis] = t[axis].shape[0] - 1
                c = jnp.zeros(shape, c.dtype)
            elif n:
                line = BSpline.tree_unflatten((k[axis], True, 0), (
                    t[axis], jnp.moveaxis(c, axis, 0))).derivative(n)
                t[axis], k[axis] = line.t, line.k
                c = jnp.moveaxis(line.c[:line.t.shape[0] - line.k - 1], 0, axis)
        return NdBSpline.tree_unflatten((tuple(k), self.extrapolate), (tuple(t), c))

    @classmethod
    def design_matrix(cls, xvals: ArrayLike, t: tuple[ArrayLike, ...], k: int | Sequence[int],
                      extrapolate: bool = True) -> Array:
        """The matrix of all products of B-splines at places (m, d): (m, coefficients), not sparse.

        >>> t = ft.numpy.array([0.0, 0.0, 1.0, 1.0])
        >>> ft.scipy.interpolate.NdBSpline.design_matrix([[0.5, 0.0]], (t, t), 1).tolist()
        [[0.5, 0.0, 0.5, 0.0]]
        """
        knots, degrees = _knots_and_degrees(t, k)
        at, *knots_ = inexact(xvals, *knots)
        if at.ndim != 2 or at.shape[1] != len(knots):
            raise ShapeError(f"functrans.scipy.{_NAME}.design_matrix: xvals has shape {at.shape}.",
                             where=user_source(), why=f"it is (m, {len(knots)}).")
        rows = jnp.arange(at.shape[0])[:, None]
        matrix = jnp.ones((at.shape[0], 1), at.dtype)
        for d, (v, degree) in enumerate(zip(knots_, degrees)):
            first, values = _basis(v, degree, at[:, d])
            line = jnp.zeros((at.shape[0], v.shape[0] - degree - 1), at.dtype)
            line = line.at[rows, first[:, None] + jnp.arange(degree + 1)].set(values)
            matrix = (matrix[:, :, None] * line[:, None]).reshape(at.shape[0], -1)
        return matrix


def _basis(t: Array, k: int, x: Array) -> tuple[Array, Array]:
    return local_basis(t, k, t.shape[0] - k - 1, x)


def _orders(nu: Any, dims: int) -> list[int]:
    orders = [known_size(_NAME, "nu", n, 0) for n in np.asarray(nu).reshape(-1)]
    if np.ndim(nu) != 1 or len(orders) != dims:
        raise ArgumentError(f"functrans.scipy.{_NAME}: nu is {shown(nu)}.", where=user_source(),
                            why=f"there are {dims} variables.")
    return orders


def _knots_and_degrees(t: Any, k: Any) -> tuple[tuple[Array, ...], tuple[int, ...]]:
    if not isinstance(t, tuple):
        raise ArgumentError(f"functrans.scipy.{_NAME}: t is a {type(t).__name__}.",
                            where=user_source(), why="it is a tuple of the knots of each variable.",
                            fix="t=(tx, ty)")
    knots = tuple(inexact(*t)) if t else ()
    degrees = tuple(known_size(_NAME, "k", v, 0) for v in (
        k if isinstance(k, (list, tuple, np.ndarray)) else [k] * len(knots)))
    if len(degrees) != len(knots) or not knots:
        raise ArgumentError(f"functrans.scipy.{_NAME}: k is {shown(k)}.", where=user_source(),
                            why=f"there are the knots of {len(knots)} variables.")
    for v, degree in zip(knots, degrees):
        if v.ndim != 1 or v.shape[0] < 2 * degree + 2:
            raise ShapeError(f"functrans.scipy.{_NAME}: knots have shape {v.shape}.",
                             where=user_source(),
                             why=f"of degree {degree} there are {2 * degree + 2} or more.")
        known = value_of(v)
        if known is not None and ((np.diff(known) < 0).any() or not np.isfinite(known).all()
                                  or known[degree] == known[-degree - 1]):
            raise ArgumentError(f"functrans.scipy.{_NAME}: knots are {shown(known)}.",
                                where=user_source(), why="they do not fall, are finite, and have "
                                "an interval within.")
    return knots, degrees
