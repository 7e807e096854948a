"""Interpolation of values at scattered points: by radial functions, and by the nearest point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations_with_replacement
from types import MappingProxyType
from typing import Any, Final

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.products import matmul
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike


def _root(square: Array) -> Array:
    """The root, whose derivative at 0 is 0: the mean of those to both sides."""
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


def _thin_plate(square: Array) -> Array:
    safe = jnp.where(square > 0, square, 1)
    return 0.5 * safe * jnp.log(safe) * (square > 0)


# of the square of the distance; a kernel with a polynomial of this degree or more is definite
_KERNELS: Final[Mapping[str, tuple[Callable[[Array], Array], int]]] = MappingProxyType({
    "linear": (lambda s: -_root(s), 0), "thin_plate_spline": (_thin_plate, 1),
    "cubic": (lambda s: s * _root(s), 1), "quintic": (lambda s: -s * s * _root(s), 2),
    "multiquadric": (lambda s: -jnp.sqrt(s + 1), 0),
    "inverse_multiquadric": (lambda s: 1 / jnp.sqrt(s + 1), -1),
    "inverse_quadratic": (lambda s: 1 / (s + 1), -1), "gaussian": (lambda s: jnp.exp(-s), -1)})
_WITHOUT_SCALE: Final = ("linear", "thin_plate_spline", "cubic", "quintic")


def _squares(x: Array, y: Array) -> Array:
    return jnp.sum((x[:, None] - y[None]) ** 2, axis=-1)


@register_pytree_with_keys_class
class RBFInterpolator:
    """Interpolates values d (n, ...) at points y (n, dims) by radial functions and a polynomial.

    `kernel` is "linear", "thin_plate_spline", "cubic", "quintic", "multiquadric",
    "inverse_multiquadric", "inverse_quadratic" or "gaussian", of distances times `epsilon`, which
    the last four need. `smoothing` (a number, or one for each point) lets values be missed, and
    `degree` is that of the polynomial (-1: none). With `neighbors` each place is interpolated from
    so many of the nearest points. It is a tree, differentiated in all but the counts.
    Raises ShapeError for fewer points than the polynomial has terms.
    Source: Fasshauer, Meshfree Approximation Methods with MATLAB (2007), ch. 6.

    >>> import functrans as ft
    >>> y = ft.numpy.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> f = ft.scipy.interpolate.RBFInterpolator(y, y[:, 0] + 2 * y[:, 1])
    >>> f(ft.numpy.array([[0.5, 0.5]])).round(3).tolist()
    [1.5]
    """

    def __init__(self, y: ArrayLike, d: ArrayLike, neighbors: int | None = None,
                 smoothing: ArrayLike = 0.0, kernel: str = "thin_plate_spline",
                 epsilon: ArrayLike | None = None, degree: int | None = None) -> None:
        name = "interpolate.RBFInterpolator"
        one_of(name, "kernel", kernel, tuple(_KERNELS))
        self.d, _ = inexact(d, y)
        self.y, _ = inexact(y, self.d.real)
        if self.y.ndim != 2 or self.d.shape[:1] != self.y.shape[:1]:
            raise ShapeError(f"functrans.scipy.{name}: y has shape {self.y.shape}, d "
                             f"{self.d.shape}.", where=user_source(),
                             why="y is (n, dims), and d has a value for each of the n points.")
        if epsilon is None and kernel not in _WITHOUT_SCALE:
            raise ArgumentError(f"functrans.scipy.{name}: kernel={kernel!r} needs epsilon.",
                                where=user_source(), fix="epsilon=1.0")
        scale = 1.0 if epsilon is None else epsilon
        self.epsilon = jnp.asarray(scale).astype(self.y.dtype)
        count = self.y.shape[0]
        self.smoothing = jnp.broadcast_to(inexact(smoothing)[0].astype(self.y.dtype), (count,))
        least = _KERNELS[kernel][1]
        self.degree = max(least, 0) if degree is None else known_size(name, "degree", degree, -1)
        self.kernel = kernel
        self.neighbors = None if neighbors is None else min(
            known_size(name, "neighbors", neighbors), count)
        used = count if self.neighbors is None else self.neighbors
        if len(_powers(self.y.shape[1], self.degree)) > used:
            raise ShapeError(f"functrans.scipy.{name}: there are {used} points.",
                             where=user_source(), why=f"a polynomial of degree {self.degree} in "
                             f"{self.y.shape[1]} dimensions has more terms.",
                             fix=f"degree={self.degree - 1}")

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """The arrays are children."""
        names = ("y", "d", "smoothing", "epsilon")
        return tuple((GetAttrKey(n), getattr(self, n)) for n in names), (
            self.kernel, self.degree, self.neighbors)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> RBFInterpolator:
        """An interpolator, without its construction."""
        made = object.__new__(cls)
        made.y, made.d, made.smoothing, made.epsilon = children
        made.kernel, made.degree, made.neighbors = aux
        return made

    def __call__(self, x: ArrayLike) -> Array:
        """The values at places (m, dims)."""
        at, _ = inexact(x, self.y)
        if at.ndim != 2 or at.shape[1] != self.y.shape[1]:
            raise ShapeError(f"functrans.scipy.interpolate.RBFInterpolator: x has shape "
                             f"{at.shape}.", where=user_source(),
                             why=f"it is (m, {self.y.shape[1]}).", fix="x[None]")
        d = self.d.reshape(self.d.shape[0], -1)
        if self.neighbors is None:
            out = self._of(self.y, d, self.smoothing, at)
        else:
            _, near = lax.top_k(-lax.stop_gradient(_squares(at, self.y)), self.neighbors)
            out = vmap(lambda i, a: self._of(self.y[i], d[i], self.smoothing[i], a[None])[0])(
                near, at)
        return out.reshape(at.shape[0], *self.d.shape[1:])

    def _of(self, y: Array, d: Array, smoothing: Array, at: Array) -> Array:
        kernel, _ = _KERNELS[self.kernel]
        n = y.shape[0]
        powers = _powers(y.shape[1], self.degree)
        # the polynomial is of places in [-1, 1], so that its columns have one scale
        low, high = (lax.stop_gradient(v) for v in (jnp.min(y, axis=0), jnp.max(y, axis=0)))
        half = (high - low) / 2
        half = jnp.where(half == 0, 1, half)

        def terms(z: Array) -> Array:
            scaled = (z - (low + high) / 2) / half
            columns = [jnp.prod(scaled[:, list(p)], axis=1) for p in powers]
            return jnp.stack(columns, axis=1) if columns else jnp.zeros((z.shape[0], 0), z.dtype)

        square = self.epsilon**2
        p = terms(y)
        matrix = jnp.block([[kernel(square * _squares(y, y)) + jnp.diag(smoothing), p],
                            [p.T, jnp.zeros((len(powers),) * 2, p.dtype)]])
        right = jnp.concatenate([d, jnp.zeros((len(powers), d.shape[1]), d.dtype)])
        weights = jnp.linalg.solve(matrix.astype(d.dtype), right)
        rows = jnp.concatenate([kernel(square * _squares(at, y)), terms(at)], axis=1)
        assert weights.shape[0] == n + len(powers)
        return matmul(rows.astype(d.dtype), weights)


def _powers(dims: int, degree: int) -> list[tuple[int, ...]]:
    """The monomials up to a degree, each as the coordinates whose product it is."""
    return [p for k in range(degree + 1) for p in combinations_with_replacement(range(dims), k)]


@register_pytree_with_keys_class
class NearestNDInterpolator:
    """The value y (n, ...) of the nearest of the points x (n, dims), the first of several.

    `rescale` measures distances in units of the ranges of the coordinates. All distances are
    computed: its cost is that of the number of points times that of places.

    >>> import functrans as ft
    >>> f = ft.scipy.interpolate.NearestNDInterpolator([[0.0, 0.0], [1.0, 1.0]], [3.0, 4.0])
    >>> f([[0.2, 0.1]]).tolist()
    [3.0]
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, rescale: bool = False) -> None:
        (points,) = inexact(x)
        points = points[:, None] if points.ndim == 1 else points
        values = jnp.asarray(y)
        if points.ndim != 2 or values.shape[:1] != points.shape[:1] or not points.shape[0]:
            raise ShapeError(f"functrans.scipy.interpolate.NearestNDInterpolator: x has shape "
                             f"{points.shape}, y {values.shape}.", where=user_source(),
                             why="x is (n, dims), and y has a value for each of the n points.")
        spread = jnp.ptp(points, axis=0)
        self.scale = jnp.where(spread > 0, spread, 1) if rescale else jnp.ones_like(spread)
        self.points, self.values = points, values

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """The points, the values and the units of distances are children."""
        return tuple((GetAttrKey(n), getattr(self, n)) for n in (
            "points", "values", "scale")), None

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> NearestNDInterpolator:
        """An interpolator, without its construction."""
        made = object.__new__(cls)
        made.points, made.values, made.scale = children
        return made

    def __call__(self, *args: Any) -> Array:
        """The values at places: an array whose last axis is that of coordinates, or one of each."""
        at = places_of(args, self.points)
        near = jnp.argmin(_squares(at.reshape(-1, at.shape[-1]) / self.scale,
                                   self.points / self.scale), axis=1)
        return self.values[near].reshape(*at.shape[:-1], *self.values.shape[1:])


def places_of(args: tuple[Any, ...], points: Array) -> Array:
    """Places with coordinates along the last axis: an array, or one of each coordinate."""
    given = args[0] if len(args) == 1 else args
    if isinstance(given, tuple):
        at = jnp.stack(jnp.broadcast_arrays(*inexact(*given, points)[:-1]), axis=-1)
    else:
        at, _ = inexact(given, points)
        at = at[..., None] if points.shape[1] == 1 and at.shape[-1:] != (1,) else at
    if at.shape[-1:] != points.shape[1:]:
        raise ShapeError(f"functrans.scipy.interpolate: the places have shape {at.shape}.",
                         where=user_source(),
                         why=f"the last axis has the {points.shape[1]} coordinates.")
    return at
