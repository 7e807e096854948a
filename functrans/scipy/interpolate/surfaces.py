"""Splines of surfaces: through values on a grid, and near values at scattered points."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, known_size, known_values, one_of, refused
from functrans.scipy.interpolate.bsplines import BSpline, local_basis, make_interp_spline
from functrans.scipy.interpolate.penalized import least_squares, penalized
from functrans.scipy.interpolate.smoothing import basis_and_jumps
from functrans.typing import Array, ArrayLike

B = TypeVar("B", bound="BivariateSpline")
Box = Any
Surface = tuple[Array, Array, Array, int, int]
FullSurface = tuple[Surface, float, int, str]
_NEAR = 1e-3  # the part of s that sums of squares may be off, as knots are counted


@register_pytree_with_keys_class
class BivariateSpline:
    """The spline sum c[i, j] B_i(x) B_j(y) of a surface, which the other classes make.

    `tck` are knots and coefficients, `degrees` (kx, ky). Called with vectors it gives the values on
    their grid, with `grid=False` those at pairs, of the derivatives of orders dx and dy. Outside,
    places count as the nearest of the edge. It is a tree.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(4.0)
    >>> f = ft.scipy.interpolate.RectBivariateSpline(x, x, x[:, None] * x)
    >>> isinstance(f, ft.scipy.interpolate.BivariateSpline)
    True
    >>> print(f.integral(0, 2, 0, 2).round(3), f.partial_derivative(1, 0).ev(1, 2).round(3))
    4.0 2.0
    >>> f.get_coeffs().shape, [t.shape for t in f.get_knots()], float(f.get_residual())
    ((16,), [(8,), (8,)], 0.0)
    """

    def __init__(self, tx: ArrayLike, ty: ArrayLike, c: ArrayLike, kx: int = 3, ky: int = 3
                 ) -> None:
        coefficients, _, _ = inexact(c, tx, ty)
        sizes = jnp.shape(tx)[0] - kx - 1, jnp.shape(ty)[0] - ky - 1
        self._set(inexact(tx, coefficients)[0], inexact(ty, coefficients)[0],
                  coefficients.reshape(sizes), (kx, ky), jnp.zeros((), coefficients.dtype))

    def _set(self, tx: Array, ty: Array, c: Array, degrees: tuple[int, int], fp: Any) -> None:
        self.tx, self.ty, self.c, self.degrees = tx, ty, c, degrees
        self.fp = jnp.asarray(fp).astype(c.dtype)

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """Knots, coefficients and the residual are children."""
        return tuple((GetAttrKey(n), getattr(self, n)) for n in ("tx", "ty", "c", "fp")), \
            self.degrees

    @classmethod
    def tree_unflatten(cls: type[B], aux: Any, children: Iterable[Any]) -> B:
        """A spline, without its construction."""
        made = object.__new__(cls)
        made.tx, made.ty, made.c, made.fp = children
        made.degrees = aux
        return made

    @property
    def tck(self) -> tuple[Array, Array, Array]:
        """Knots along x and y, and the coefficients in a vector."""
        return self.tx, self.ty, self.c.reshape(-1)

    def get_knots(self) -> tuple[Array, Array]:
        """The knots along x and y."""
        return self.tx, self.ty

    def get_coeffs(self) -> Array:
        """The coefficients in a vector."""
        return self.c.reshape(-1)

    def get_residual(self) -> Array:
        """The sum of the squares of w (z - f(x, y))."""
        return self.fp

    def __call__(self, x: ArrayLike, y: ArrayLike, dx: int = 0, dy: int = 0, grid: bool = True
                 ) -> Array:
        """The values on the grid of x and y, or at their pairs."""
        at_x, at_y, _ = inexact(x, y, self.tx)
        if grid and (at_x.ndim > 1 or at_y.ndim > 1):
            raise ShapeError(f"functrans.scipy.interpolate.{type(self).__name__}: x has shape "
                             f"{at_x.shape}, y {at_y.shape}.", where=user_source(),
                             why="a grid is that of two vectors.", fix="grid=False")
        if not grid:
            at_x, at_y = jnp.broadcast_arrays(at_x, at_y)
        shape, at_x, at_y = at_x.shape, at_x.reshape(-1), at_y.reshape(-1)
        made = self.partial_derivative(dx, dy) if dx or dy else self
        (kx, ky), (nx, ny) = made.degrees, made.c.shape
        at_x = jnp.clip(at_x, made.tx[kx], made.tx[nx])
        at_y = jnp.clip(at_y, made.ty[ky], made.ty[ny])
        first, basis = local_basis(made.tx, kx, nx, at_x)
        rows = jnp.sum(made.c[first[:, None] + jnp.arange(kx + 1)] * basis[..., None], axis=1)
        first, basis = local_basis(made.ty, ky, ny, at_y)
        places = first[:, None] + jnp.arange(ky + 1)
        if grid:
            return jnp.sum(rows[:, places] * basis, axis=-1)
        near = rows[jnp.arange(at_y.shape[0])[:, None], places]
        return jnp.sum(near * basis, axis=-1).reshape(shape)

    def ev(self, xi: ArrayLike, yi: ArrayLike, dx: int = 0, dy: int = 0) -> Array:
        """The values at pairs of xi and yi."""
        return self(xi, yi, dx, dy, grid=False)

    def integral(self, xa: ArrayLike, xb: ArrayLike, ya: ArrayLike, yb: ArrayLike) -> Array:
        """The integral over a rectangle, with 0 outside of the knots."""
        kx, ky = self.degrees
        line = BSpline(self.tx, self.c, kx, False).integrate(xa, xb)
        return BSpline(self.ty, line, ky, False).integrate(ya, yb)

    def partial_derivative(self, dx: int, dy: int) -> BivariateSpline:
        """The spline that is the derivative of orders dx and dy."""
        tx, ty, c, (kx, ky) = self.tx, self.ty, self.c, self.degrees
        for order, k in ((dx, kx), (dy, ky)):
            if known_size("interpolate.BivariateSpline", "the order", order, 0) > k:
                raise ArgumentError(f"functrans.scipy.interpolate.BivariateSpline: dx is {dx}, dy "
                                    f"{dy}.", where=user_source(),
                                    why=f"the degrees are {kx} and {ky}.")
        along = BSpline.tree_unflatten((kx, True, 0), (tx, c)).derivative(dx)
        c = along.c.T
        across = BSpline.tree_unflatten((ky, True, 0), (ty, c)).derivative(dy)
        return BivariateSpline.tree_unflatten((kx - dx, ky - dy), (
            along.t, across.t, across.c.T, jnp.zeros_like(self.fp)))

    @classmethod
    def _from_tck(cls, tck: Any) -> BivariateSpline:
        if not isinstance(tck, (tuple, list)) or len(tck) != 5:
            raise ArgumentError("functrans.scipy.interpolate.bisplev: tck has not 5 parts.",
                                where=user_source(), fix="tck = bisplrep(x, y, z)")
        return BivariateSpline(*tck)


@register_pytree_with_keys_class
class RectBivariateSpline(BivariateSpline):
    """The tensor product of splines of degrees kx and ky through z at growing places x and y.

    It is differentiated in places and values; see `BivariateSpline`. Raises ArgumentError for a
    smoothing `s`.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(4.0)
    >>> f = ft.scipy.interpolate.RectBivariateSpline(x, x, x[:, None] * x)
    >>> round(float(f.ev(1.5, 2.0)), 4)
    3.0
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, z: ArrayLike, bbox: Box = None, kx: int = 3,
                 ky: int = 3, s: float = 0, maxit: int = 20) -> None:
        if s or (bbox is not None and any(v is not None for v in bbox)):
            raise refused("interpolate.RectBivariateSpline", "s and bbox",
                          "it is a spline through all values.",
                          "SmoothBivariateSpline(x, y, z, s=s) of all points")
        values, _, _ = inexact(z, x, y)
        places_x, _ = inexact(x, values)
        places_y, _ = inexact(y, values)
        if values.shape != (*places_x.shape, *places_y.shape) or values.ndim != 2:
            raise ShapeError(f"functrans.scipy.interpolate.RectBivariateSpline: x has shape "
                             f"{places_x.shape}, y {places_y.shape}, z {values.shape}.",
                             where=user_source(), why="z has a row for each x.")
        # along y first, whose coefficients are then the values along x
        along_y = make_interp_spline(places_y, values.T, ky)
        along_x = make_interp_spline(places_x, along_y.c.T, kx)
        self._set(along_x.t, along_y.t, along_x.c, (kx, ky), 0.0)


# Scattered points ----------------------------------------------------------------------------


def tensor_fit(x: Any, y: Any, tx: Any, ty: Any, kx: int, ky: int, periodic: bool = False
               ) -> tuple[Any, Any, Any]:
    """The products of B-splines at points, their jumps in the units of FITPACK, and what is free.

    Jumps of the derivative of order k at a knot are over k! (intervals / range)**k.
    """
    (of_x, jumps_x, _), (of_y, jumps_y, free) = (
        basis_and_jumps(x, tx, kx), basis_and_jumps(y, ty, ky, periodic))
    for t, k, jumps in ((tx, kx, jumps_x), (ty, ky, jumps_y)):
        count = len(t) - 2 * k - 1
        jumps /= math.factorial(k) * (count / (t[-1] - t[0])) ** k
    matrix = (of_x[:, :, None] * of_y[:, None]).reshape(len(x), -1)
    jumps = np.concatenate([np.kron(jumps_x, np.eye(of_y.shape[1])),
                            np.kron(np.eye(of_x.shape[1]), jumps_y)])
    return matrix, jumps, free


def _grown(x: Any, y: Any, z: Any, w: Any, box: Any, degrees: tuple[int, int], s: float,
           most: tuple[int, int]) -> Iterator[tuple[Any, Any]]:
    """Knots along x and y, each time one more, where most is left, until that is s or less."""
    t = [np.repeat(box[2 * i:2 * i + 2], k + 1) for i, k in enumerate(degrees)]
    while True:
        yield t[0], t[1]
        matrix, _, _ = tensor_fit(x, y, t[0], t[1], *degrees)
        c = np.linalg.lstsq(matrix * w[:, None], z * w, rcond=None)[0]
        left = (w * (z - matrix @ c)) ** 2
        if left.sum() - s < _NEAR * s:
            return
        best: tuple[float, int, float] | None = None
        for side, (at, k) in enumerate(zip((x, y), degrees)):
            if len(t[side]) >= most[side]:
                continue
            where, knot = most_left(t[side][k:-k or None], at, left)
            if knot is not None and (best is None or where > best[0]):
                best = where, side, knot
        if best is None:
            warnings.warn(f"the knots are as many as there may be, and s={s:g} is not reached",
                          UserWarning, stacklevel=4)
            return
        t[best[1]] = np.sort(np.append(t[best[1]], best[2]))


def most_left(ends: Any, at: Any, left: Any) -> tuple[float, float | None]:
    """The largest sum of what is left in an interval, and the mean place of it: the new knot."""
    which = np.clip(np.searchsorted(ends, at, side="right") - 1, 0, len(ends) - 2)
    sums = np.bincount(which, left, len(ends) - 1)
    means = np.bincount(which, left * at, len(ends) - 1)
    for i in np.argsort(-sums, kind="stable"):
        if sums[i] <= 0:
            break
        knot = float(means[i] / sums[i])
        if ends[i] < knot < ends[i + 1]:
            return float(sums[i]), knot
    return 0.0, None


def known_points(name: str, **values: Any) -> list[Any]:
    """Vectors of one length as float64 in NumPy, which knots and bases are made of."""
    found = [known_values(f"interpolate.{name}", n, v, "knots and bases are made of its values.",
                          f"{name}(...)  # before jit").astype(float).reshape(-1)
             for n, v in values.items()]
    if len({v.size for v in found}) != 1:
        raise ShapeError(f"functrans.scipy.interpolate.{name}: " + ", ".join(
            f"{n} has {v.size} values" for n, v in zip(values, found)) + ".",
            where=user_source(), why="there is one of each for a point.")
    return found


def _surface(name: str, x: Any, y: Any, z: ArrayLike, w: Any, box: Any, kx: int, ky: int,
             s: float | None, knots: tuple[Any, Any] | None, default: float | None = None
             ) -> tuple[Array, Array, Array, float]:
    """Knots, coefficients (nx, ny) and what is left."""
    degrees = (known_size(f"interpolate.{name}", "kx", kx, 1),
               known_size(f"interpolate.{name}", "ky", ky, 1))
    (target,) = inexact(z)
    target = target.reshape(-1)
    weights = np.ones(target.shape[0]) if w is None else w
    at_x, at_y, values, weights = known_points(name, x=x, y=y, z=target, w=weights)
    m = len(at_x)
    if m < (kx + 1) * (ky + 1) or (weights < 0).any():
        raise ArgumentError(f"functrans.scipy.interpolate.{name}: there are {m} points, kx is "
                            f"{kx}, ky {ky}.", where=user_source(),
                            why="there are (kx + 1) (ky + 1) or more, and no weight is negative.")
    ends = [v if u is None else float(u) for u, v in zip(
        box, (at_x.min(), at_x.max(), at_y.min(), at_y.max()))]
    amount = (m if default is None else default) if s is None else float(s)
    if amount < 0:
        raise ArgumentError(f"functrans.scipy.interpolate.{name}: s is {shown(s)}.",
                            where=user_source(), why="it is a sum of squares.")
    if knots is None:
        root = math.sqrt(m / 2) if amount else math.sqrt(3 * m)
        most = tuple(max(int(k + 1 + root), 2 * k + 3) for k in degrees)
        tx, ty = list(_grown(at_x, at_y, values, weights, ends, degrees, amount, most))[-1]  # type: ignore[arg-type]
    else:
        tx, ty = knots
    matrix, jumps, _ = tensor_fit(at_x, at_y, tx, ty, *degrees)
    matrix = matrix * weights[:, None]
    rows, scaled = (target * jnp.asarray(weights))[:, None], (values * weights)[:, None]
    c = least_squares(matrix, jumps, rows)
    left = float(np.sum((matrix @ np.asarray(lax.stop_gradient(c)) - scaled) ** 2))
    if knots is None and left < amount * (1 - _NEAR) and len(jumps):
        c = penalized(matrix, jumps, scaled, rows, amount)
        left = float(np.sum((matrix @ np.asarray(lax.stop_gradient(c)) - scaled) ** 2))
    sizes = len(tx) - kx - 1, len(ty) - ky - 1
    return (jnp.asarray(tx).astype(target.dtype), jnp.asarray(ty).astype(target.dtype),
            c.reshape(sizes).astype(target.dtype), left)


def _box(name: str, bbox: Any) -> list[Any]:
    box = [None] * 4 if bbox is None else list(np.ravel(np.asarray(bbox, object)))
    if len(box) != 4:
        raise ArgumentError(f"functrans.scipy.interpolate.{name}: bbox is {shown(bbox)}.",
                            where=user_source(), fix="bbox=[xb, xe, yb, ye]")
    return box


@register_pytree_with_keys_class
class SmoothBivariateSpline(BivariateSpline):
    """The smoothest surface that leaves s: the sum of the squares of w (z - f(x, y)).

    Points (x, y) are scattered; `s` is their number by default. Knots are added one by one, where
    most is left. `bbox` are the ends [xb, xe, yb, ye]. It is made outside of `jit`, called within,
    and differentiated in z with knots as they are; see `BivariateSpline`. Coefficients that values
    leave open jump least (`eps` is accepted).
    Source: Dierckx, Curve and Surface Fitting with Splines (1993), ch. 9.

    >>> import functrans as ft
    >>> x, y = (v.reshape(-1) for v in ft.numpy.meshgrid(*[ft.numpy.linspace(0, 1, 6)] * 2))
    >>> f = ft.scipy.interpolate.SmoothBivariateSpline(x, y, x * y, s=0.01)
    >>> round(float(f.ev(0.5, 0.5)), 3)
    0.25
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike | None = None,
                 bbox: Box = None, kx: int = 3, ky: int = 3, s: float | None = None,
                 eps: float = 1e-16) -> None:
        name = "SmoothBivariateSpline"
        tx, ty, c, left = _surface(name, x, y, z, w, _box(name, bbox), kx, ky, s, None)
        self._set(tx, ty, c, (kx, ky), left)


@register_pytree_with_keys_class
class LSQBivariateSpline(BivariateSpline):
    """The surface of least squares of w (z - f(x, y)) with the knots tx and ty within.

    The ends of `bbox` are the outer ones of points and knots by default. See
    `SmoothBivariateSpline`.

    >>> import functrans as ft
    >>> x, y = (v.reshape(-1) for v in ft.numpy.meshgrid(*[ft.numpy.linspace(0, 1, 6)] * 2))
    >>> f = ft.scipy.interpolate.LSQBivariateSpline(x, y, x * y, [0.5], [0.5])
    >>> round(float(f.ev(0.5, 0.5)), 3)
    0.25
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, z: ArrayLike, tx: ArrayLike, ty: ArrayLike,
                 w: ArrayLike | None = None, bbox: Box = None, kx: int = 3, ky: int = 3,
                 eps: float | None = None) -> None:
        name = "LSQBivariateSpline"
        ends = [(min(v), max(v)) for v in (
            [*known_points(name, x=a)[0], *known_points(name, t=t)[0]]
            for a, t in ((x, tx), (y, ty)))]
        box = [v if u is None else float(u) for u, v in zip(_box(name, bbox), (
            *ends[0], *ends[1]))]
        knots = []
        for i, (n, inner, k) in enumerate((("tx", tx, kx), ("ty", ty, ky))):
            (within,) = known_points(name, **{n: inner})
            low, high = box[2 * i:2 * i + 2]
            if (np.diff(within) < 0).any() or (within < low).any() or (within > high).any():
                raise ArgumentError(f"functrans.scipy.interpolate.{name}: {n} is {shown(inner)}.",
                                    where=user_source(), why=f"knots grow, from {low} to {high}.")
            knots.append(np.concatenate([np.repeat(low, k + 1), within, np.repeat(high, k + 1)]))
        made = _surface(name, x, y, z, w, box, kx, ky, 0.0, (knots[0], knots[1]))
        self._set(*made[:3], (kx, ky), made[3])


def bisplrep(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike | None = None,
             xb: float | None = None, xe: float | None = None, yb: float | None = None,
             ye: float | None = None, kx: int = 3, ky: int = 3, task: int = 0,
             s: float | None = None, eps: float = 1e-16, tx: ArrayLike | None = None,
             ty: ArrayLike | None = None, full_output: int = 0, nxest: int | None = None,
             nyest: int | None = None, quiet: int = 1) -> Surface | FullSurface:
    """Knots, coefficients and degrees of a surface near z at scattered points: (tx, ty, c, kx, ky).

    `s` is m - sqrt(2 m) for m points by default; with `task=-1` the knots tx and ty are given. With
    `full_output` the sum that is left, 0 and a message follow. See `SmoothBivariateSpline`.

    >>> import functrans as ft
    >>> x, y = (v.reshape(-1) for v in ft.numpy.meshgrid(*[ft.numpy.linspace(0, 1, 6)] * 2))
    >>> tck = ft.scipy.interpolate.bisplrep(x, y, x * y, s=0.01)
    >>> round(float(ft.scipy.interpolate.bisplev(0.5, 0.5, tck)), 3)
    0.25
    """
    one_of("interpolate.bisplrep", "task", task, (0, -1))
    if task == -1 and (tx is None or ty is None):
        raise ArgumentError("functrans.scipy.interpolate.bisplrep: task is -1.",
                            where=user_source(), why="the knots are given.", fix="tx=..., ty=...")
    knots = None
    if task == -1:
        (known_x,), (known_y,) = known_points("bisplrep", tx=tx), known_points("bisplrep", ty=ty)
        knots = known_x, known_y
    m = jnp.size(z)
    t, u, c, left = _surface("bisplrep", x, y, z, w, [xb, xe, yb, ye], kx, ky, s, knots,
                             m - math.sqrt(2 * m))
    tck = t, u, c.reshape(-1), kx, ky
    return (tck, left, 0, "the sum of squares is s") if full_output else tck


def bisplev(x: ArrayLike, y: ArrayLike, tck: Any, dx: int = 0, dy: int = 0) -> Array:
    """The values of a surface of `bisplrep` on the grid of x and y, or of its derivatives.

    Of one place along an axis that axis is dropped.

    >>> import functrans as ft
    >>> t = [0.0, 0.0, 1.0, 1.0]
    >>> float(ft.scipy.interpolate.bisplev(0.5, 0.5, (t, t, [0.0, 1.0, 2.0, 3.0], 1, 1)))
    1.5
    """
    found = BivariateSpline._from_tck(tck)(jnp.atleast_1d(x), jnp.atleast_1d(y), dx, dy)
    if found.shape[0] > 1:
        return found
    return found[0] if found.shape[1] > 1 else found[0, 0]
