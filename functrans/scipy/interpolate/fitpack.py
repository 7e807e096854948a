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
from functrans.scipy.interpolate.univariate import (
    LSQUnivariateSpline,
    UnivariateSpline,
    evaluated,
    smoothing_of,
)
from functrans.typing import Array, ArrayLike

Tck = tuple[Any, Any, int]


def splrep(x: ArrayLike, y: ArrayLike, w: ArrayLike | None = None, xb: float | None = None,
           xe: float | None = None, k: int = 3, task: int = 0, s: float | None = None,
           t: ArrayLike | None = None) -> Tck:
    """Knots, coefficients and degree of a spline near y at growing places x.

    It goes through y, or leaves `s`, the sum of the squares of w (y - f(x)), which is m - sqrt(2 m)
    for m places where weights are given and `s` is not; see `make_splrep`. With `task=-1` it is
    that of least squares with the knots `t` within.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(5.0)
    >>> tck = ft.scipy.interpolate.splrep(x, x ** 2)
    >>> round(float(ft.scipy.interpolate.splev(1.5, tck)), 4)
    2.25
    """
    one_of("interpolate.splrep", "task", task, (0, -1))
    if task == -1 or t is not None:
        if t is None:
            raise ArgumentError("functrans.scipy.interpolate.splrep: task is -1.",
                                where=user_source(), why="the knots are given.", fix="t=knots")
        made = LSQUnivariateSpline(x, y, t, w, (xb, xe), k).spline
    else:
        places = jnp.asarray(x)
        amount = smoothing_of(places.shape[0] if places.ndim else 0, w, s)
        made = UnivariateSpline(x, y, w, (xb, xe), k, amount).spline
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
    return evaluated(made, x, der, ext)


def splint(a: ArrayLike, b: ArrayLike, tck: Any) -> Array:
    """The integral of a spline from a to b; it is 0 outside of its knots.

    >>> import functrans as ft
    >>> float(ft.scipy.interpolate.splint(0.0, 1.0, ([0.0, 0.0, 1.0, 1.0], [1.0, 3.0], 1)))
    2.0
    """
    made = _spline("splint", tck)
    inside = BSpline(made.t, made.c, made.k, False)
    return inside.integrate(a, b)


def _tck(made: BSpline, like: Any, rest: Array) -> BSpline | tuple[Array, Array, int]:
    """A spline in the form of another: an object, or knots, coefficients and degree.

    `rest` are coefficients beyond the last, of which FITPACK has as many as knots.
    """
    if isinstance(like, BSpline):
        return made
    more = (made.t.shape[0] - made.c.shape[0], *made.c.shape[1:])
    return made.t, jnp.concatenate([made.c, jnp.broadcast_to(rest, more)]), made.k


def splder(tck: Any, n: int = 1) -> BSpline | tuple[Array, Array, int]:
    """The derivative of order n of a spline, in the same form.

    >>> import functrans as ft
    >>> line = [0.0, 0.0, 1.0, 1.0], [1.0, 3.0], 1
    >>> ft.scipy.interpolate.splder(line)[1].tolist()
    [2.0, 0.0]
    """
    made = _spline("splder", tck).derivative(n)
    return _tck(made, tck, jnp.zeros_like(made.c[-1]))


def splantider(tck: Any, n: int = 1) -> BSpline | tuple[Array, Array, int]:
    """The integral of a spline from its first knot, taken n times, in the same form.

    >>> import functrans as ft
    >>> line = [0.0, 0.0, 1.0, 1.0], [1.0, 3.0], 1
    >>> float(ft.scipy.interpolate.splev(1.0, ft.scipy.interpolate.splantider(line)))
    2.0
    """
    made = _spline("splantider", tck).antiderivative(n)
    return _tck(made, tck, made.c[-1])


def spalde(x: ArrayLike, tck: Any) -> Array:
    """The value and all derivatives of a spline at a place, or a row of them for each place.

    >>> import functrans as ft
    >>> ft.scipy.interpolate.spalde(0.5, ([0.0, 0.0, 1.0, 1.0], [1.0, 3.0], 1)).tolist()
    [2.0, 2.0]
    """
    made = _spline("spalde", tck)
    return jnp.stack([made(x, nu) for nu in range(made.k + 1)], axis=-1)


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
