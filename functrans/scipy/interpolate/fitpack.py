"""The names of FITPACK for splines through all values: of lines and of surfaces on a grid."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, one_of, refused
from functrans.scipy.interpolate.bsplines import BSpline, local_basis, make_interp_spline
from functrans.typing import Array, ArrayLike

Tck = tuple[Any, Any, int]


def splrep(x: ArrayLike, y: ArrayLike, k: int = 3, s: float = 0) -> Tck:
    """Knots, coefficients and degree of the spline through y at growing places x.

    Raises ArgumentError for a smoothing `s`, whose knots depend on values (see `make_lsq_spline`).

    >>> import functrans as ft
    >>> x = ft.numpy.arange(5.0)
    >>> tck = ft.scipy.interpolate.splrep(x, x ** 2)
    >>> round(float(ft.scipy.interpolate.splev(1.5, tck)), 4)
    2.25
    """
    if s:
        raise refused("interpolate.splrep", "s", "the number of knots would depend on values.",
                      "make_lsq_spline(x, y, t)")
    made = make_interp_spline(x, y, k)
    return made.t, jnp.concatenate([made.c, jnp.zeros(k + 1, made.c.dtype)]), k


def _spline(name: str, tck: Any) -> BSpline:
    if isinstance(tck, BSpline):
        return tck
    if not isinstance(tck, (tuple, list)) or len(tck) != 3:
        raise ArgumentError(f"functrans.scipy.interpolate.{name}: tck is a "
                            f"{type(tck).__name__}.", where=user_source(),
                            fix="tck = splrep(x, y), or a BSpline")
    return BSpline(*tck)


def splev(x: ArrayLike, tck: Any, der: int = 0, ext: int = 0) -> Array:
    """A spline, or its derivative of order `der`, at x.

    `ext` says what is outside: the outer polynomials (0), 0 (1) or the value at the end (3).

    >>> import functrans as ft
    >>> float(ft.scipy.interpolate.splev(0.5, ([0.0, 0.0, 1.0, 1.0], [1.0, 3.0], 1)))
    2.0
    """
    one_of("interpolate.splev", "ext", ext, (0, 1, 3))
    made = _spline("splev", tck)
    at, _ = inexact(x, made.t)
    first, last = made.t[made.k], made.t[made.t.shape[0] - made.k - 1]
    value = made(jnp.clip(at, first, last) if ext == 3 else at, der)
    return jnp.where((at >= first) & (at <= last), value, 0) if ext == 1 else value


def splint(a: ArrayLike, b: ArrayLike, tck: Any) -> Array:
    """The integral of a spline from a to b; it is 0 outside of its knots.

    >>> import functrans as ft
    >>> float(ft.scipy.interpolate.splint(0.0, 1.0, ([0.0, 0.0, 1.0, 1.0], [1.0, 3.0], 1)))
    2.0
    """
    made = _spline("splint", tck)
    inside = BSpline(made.t, made.c, made.k, False)
    return inside.integrate(a, b)


@register_pytree_with_keys_class
class RectBivariateSpline:
    """The tensor product of splines of degrees kx and ky through z at growing places x and y.

    Called with vectors it gives the values on their grid, with `grid=False` those at pairs, of
    the derivatives of orders dx and dy. Outside, places count as the nearest of the edge. It is a
    tree, differentiated in places and values. Raises ArgumentError for a smoothing `s`.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(4.0)
    >>> f = ft.scipy.interpolate.RectBivariateSpline(x, x, x[:, None] * x)
    >>> round(float(f.ev(1.5, 2.0)), 4)
    3.0
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, z: ArrayLike, bbox: None = None, kx: int = 3,
                 ky: int = 3, s: float = 0) -> None:
        if s or bbox is not None:
            raise refused("interpolate.RectBivariateSpline", "s and bbox",
                          "it is a spline through all values.", "s=0, bbox=None")
        values, _, _ = inexact(z, x, y)
        self.x, _ = inexact(x, values)
        self.y, _ = inexact(y, values)
        if values.shape != (*self.x.shape, *self.y.shape) or values.ndim != 2:
            raise ShapeError(f"functrans.scipy.interpolate.RectBivariateSpline: x has shape "
                             f"{self.x.shape}, y {self.y.shape}, z {values.shape}.",
                             where=user_source(), why="z has a row for each x.")
        # along y first, whose coefficients are then the values along x
        self.along_y = make_interp_spline(self.y, values.T, ky)
        self.along_x = make_interp_spline(self.x, self.along_y.c.T, kx)

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """Places and splines are children."""
        names = ("x", "y", "along_x", "along_y")
        return tuple((GetAttrKey(n), getattr(self, n)) for n in names), None

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> RectBivariateSpline:
        """A spline, without its construction."""
        made = object.__new__(cls)
        made.x, made.y, made.along_x, made.along_y = children
        return made

    def __call__(self, x: ArrayLike, y: ArrayLike, dx: int = 0, dy: int = 0, grid: bool = True
                 ) -> Array:
        """The values on the grid of x and y, or at their pairs."""
        at_x, at_y, _ = inexact(x, y, self.x)
        if grid and (at_x.ndim > 1 or at_y.ndim > 1):
            raise ShapeError(f"functrans.scipy.interpolate.RectBivariateSpline: x has shape "
                             f"{at_x.shape}, y {at_y.shape}.", where=user_source(),
                             why="a grid is that of two vectors.", fix="grid=False")
        if not grid:
            at_x, at_y = jnp.broadcast_arrays(at_x, at_y)
        shape, at_x, at_y = at_x.shape, at_x.reshape(-1), at_y.reshape(-1)
        rows = self.along_x(jnp.clip(at_x, self.x[0], self.x[-1]), dx)
        at_y = jnp.clip(at_y, self.y[0], self.y[-1])
        whole = self.along_y.derivative(dy)
        n = whole.t.shape[0] - whole.k - 1
        # the coefficients along y, differenced as those of the spline were
        lines = BSpline.tree_unflatten((self.along_y.k, True, 0), (self.along_y.t, rows.T))
        c = lines.derivative(dy).c[:n]
        first, basis = local_basis(whole.t, whole.k, n, at_y)
        places = first[:, None] + jnp.arange(whole.k + 1)
        if grid:
            return jnp.sum(c[places] * basis[..., None], axis=1).T
        near = c[places, jnp.arange(at_y.shape[0])[:, None]]
        return jnp.sum(near * basis, axis=1).reshape(shape)

    def ev(self, xi: ArrayLike, yi: ArrayLike, dx: int = 0, dy: int = 0) -> Array:
        """The values at pairs of xi and yi."""
        return self(xi, yi, dx, dy, grid=False)


def InterpolatedUnivariateSpline(x: ArrayLike, y: ArrayLike, w: None = None, bbox: None = None,
                                 k: int = 3, ext: int = 0) -> BSpline:
    """The spline of degree k through y at growing places x, as a `BSpline`.

    `ext` is 0: outside are the outer polynomials. Weights would change nothing.

    >>> import functrans as ft
    >>> s = ft.scipy.interpolate.InterpolatedUnivariateSpline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], k=2)
    >>> round(float(s(1.5)), 4)
    2.25
    """
    name = "interpolate.InterpolatedUnivariateSpline"
    one_of(name, "bbox", bbox, (None,))
    one_of(name, "w", w, (None,))
    one_of(name, "ext", ext, (0,))
    return make_interp_spline(x, y, k)
