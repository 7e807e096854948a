"""Splines of one variable as objects with the methods of FITPACK's."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, publish
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, one_of, refused
from functrans.scipy.interpolate.bsplines import BSpline, make_interp_spline, make_lsq_spline
from functrans.scipy.interpolate.smoothing import make_splrep
from functrans.typing import Array, ArrayLike

__all__ = ["InterpolatedUnivariateSpline", "LSQUnivariateSpline", "UnivariateSpline"]

_OUTSIDE = {0: 0, "extrapolate": 0, 1: 1, "zeros": 1, 3: 3, "const": 3}


@register_pytree_with_keys_class
class UnivariateSpline:
    """The smoothest spline of degree k that leaves s: the sum of the squares of w (y - f(x)).

    `s` is the number of places by default, and 0 for the spline through all. `bbox` are the ends
    of the outer intervals. Outside are the outer polynomials (`ext` 0 or "extrapolate"), 0 (1,
    "zeros") or the value at the end (3, "const"). It is a tree, differentiated in y; a smoothing
    `s` needs values, so that it is made outside of `jit`, and called within. See `make_splrep`.

    >>> import functrans as ft
    >>> x = ft.numpy.linspace(0.0, 6.0, 30)
    >>> f = ft.scipy.interpolate.UnivariateSpline(x, ft.numpy.sin(x), s=0.1)
    >>> round(float(f.get_residual()), 2), len(f.get_knots())
    (0.1, 4)
    >>> f.derivative()(0.0).shape, f.get_coeffs().shape, f.derivatives(0.0).shape
    ((), (6,), (4,))
    >>> line = ft.scipy.interpolate.UnivariateSpline(x, 2 * x, k=1, s=0)
    >>> [round(float(v), 2) for v in (line.integral(0, 2), line.integrate(0, 2))]
    [4.0, 4.0]
    >>> round(float(line.antiderivative()(2.0)), 2)
    4.0
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, w: ArrayLike | None = None,
                 bbox: tuple[Any, Any] = (None, None), k: int = 3, s: float | None = None,
                 ext: int | str = 0) -> None:
        places = jnp.asarray(x)
        amount = float(places.shape[0] if places.ndim else 0) if s is None else s
        if amount:
            made = make_splrep(x, y, w=w, xb=bbox[0], xe=bbox[1], k=k, s=amount)
        else:
            _no_box(bbox)
            made = make_interp_spline(x, y, k)
        self._set(made, x, y, w, ext)

    def _set(self, made: BSpline, x: ArrayLike, y: ArrayLike, w: ArrayLike | None,
             ext: int | str) -> None:
        if ext in (2, "raise"):
            raise refused("interpolate.UnivariateSpline", f"ext={ext!r}",
                          "whether a place is outside depends on its value.", "ext=0, 1 or 3")
        one_of("interpolate.UnivariateSpline", "ext", ext, tuple(_OUTSIDE))
        self.spline, self.ext = made, _OUTSIDE[ext]
        at, values, weights = inexact(x, y, 1.0 if w is None else w)
        self.residual = jnp.sum((weights * (values - made(at))) ** 2)

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """The spline and its residual are children."""
        return ((GetAttrKey("spline"), self.spline), (GetAttrKey("residual"), self.residual)), \
            self.ext

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> UnivariateSpline:
        """A spline, without its construction."""
        made = object.__new__(cls)
        made.spline, made.residual = children
        made.ext = aux
        return made

    def __call__(self, x: ArrayLike, nu: int = 0, ext: int | str | None = None) -> Array:
        """The values at x, or those of the derivative of order nu."""
        how = self.ext if ext is None else ext
        one_of("interpolate.UnivariateSpline", "ext", how, tuple(_OUTSIDE))
        return evaluated(self.spline, x, nu, _OUTSIDE[how])

    def derivative(self, n: int = 1) -> UnivariateSpline:
        """The derivative of order n; 0 outside where this is a constant there."""
        ext = 1 if self.ext == 3 else self.ext
        return self.tree_unflatten(ext, (self.spline.derivative(n), self.residual))

    def antiderivative(self, n: int = 1) -> UnivariateSpline:
        """The integral from the first place, taken n times."""
        return self.tree_unflatten(self.ext, (self.spline.antiderivative(n), self.residual))

    def integral(self, a: ArrayLike, b: ArrayLike) -> Array:
        """The integral from a to b, with 0 outside of the knots."""
        t, c = self.spline.t, self.spline.c
        return BSpline(t, c, self.spline.k, False).integrate(a, b)

    integrate = integral

    def derivatives(self, x: ArrayLike) -> Array:
        """The value and all derivatives at a place."""
        return jnp.stack([self(x, nu) for nu in range(self.spline.k + 1)])

    def get_knots(self) -> Array:
        """The ends of the intervals."""
        k = self.spline.k
        return self.spline.t[k:self.spline.t.shape[0] - k]

    def get_coeffs(self) -> Array:
        """The coefficients of the B-splines."""
        return self.spline.c

    def get_residual(self) -> Array:
        """The sum of the squares of w (y - f(x))."""
        return self.residual


def evaluated(made: BSpline, x: ArrayLike, nu: int, ext: int) -> Array:
    """A spline, or its derivative, with outer polynomials (0), 0 (1) or the ends (3) outside."""
    at, _ = inexact(x, made.t)
    first, last = made.t[made.k], made.t[made.t.shape[0] - made.k - 1]
    value = made(jnp.clip(at, first, last) if ext == 3 else at, nu)
    return jnp.where((at >= first) & (at <= last), value, 0) if ext == 1 else value


def _no_box(bbox: Any) -> None:
    if bbox is not None and any(v is not None for v in bbox):
        raise refused("interpolate.UnivariateSpline", "bbox", "a spline through all values ends "
                      "with them.", "bbox=[None, None]")


def InterpolatedUnivariateSpline(x: ArrayLike, y: ArrayLike, w: ArrayLike | None = None,
                                 bbox: tuple[Any, Any] | None = None, k: int = 3,
                                 ext: int | str = 0) -> UnivariateSpline:
    """The spline of degree k through y at growing places x, as a `UnivariateSpline`.

    Weights change nothing. It is made under `jit`, too.

    >>> import functrans as ft
    >>> s = ft.scipy.interpolate.InterpolatedUnivariateSpline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], k=2)
    >>> round(float(s(1.5)), 4)
    2.25
    """
    _no_box(bbox)
    made = object.__new__(UnivariateSpline)
    made._set(make_interp_spline(x, y, k), x, y, w, ext)
    return made


def LSQUnivariateSpline(x: ArrayLike, y: ArrayLike, t: ArrayLike, w: ArrayLike | None = None,
                        bbox: tuple[Any, Any] = (None, None), k: int = 3, ext: int | str = 0
                        ) -> UnivariateSpline:
    """The spline of degree k with the knots t within that is nearest to y at growing places x.

    `bbox` are the outer knots, by default the outer places. It is made under `jit`, too, and
    differentiated in all arrays.

    >>> import functrans as ft
    >>> x = ft.numpy.linspace(0.0, 1.0, 9)
    >>> f = ft.scipy.interpolate.LSQUnivariateSpline(x, 2 * x, [0.5], k=1)
    >>> round(float(f(0.25)), 4)
    0.5
    """
    places, inner = (jnp.atleast_1d(v) for v in inexact(x, t))
    if inner.ndim != 1 or places.ndim != 1:
        raise ArgumentError("functrans.scipy.interpolate.LSQUnivariateSpline: x and t are not "
                            "vectors.", where=user_source())
    low, high = (places[i] if v is None else jnp.asarray(v, places.dtype)
                 for i, v in zip((0, -1), bbox))
    knots = jnp.concatenate([jnp.full(k + 1, low), inner, jnp.full(k + 1, high)])
    made = object.__new__(UnivariateSpline)
    made._set(make_lsq_spline(x, y, knots, k, w), x, y, w, ext)
    return made


def smoothing_of(count: int, w: ArrayLike | None, s: float | None) -> float:
    """The `s` of `splrep`, where it is not given: none without weights."""
    if s is not None:
        return float(s)
    return 0.0 if w is None else count - math.sqrt(2 * count)


publish(globals(), __all__)
