"""Rbf: values at scattered points by radial functions, as SciPy's older class takes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.products import matmul
from functrans.scipy.spatial.distance import cdist
from functrans.scipy.spatial.points import minkowski_distance
from functrans.scipy.special import xlogy
from functrans.typing import Array, ArrayLike

# of the distance, and of it in units of epsilon
_FUNCTIONS: Final[Mapping[str, Callable[[Array, Array], Array]]] = MappingProxyType({
    "multiquadric": lambda r, u: jnp.sqrt(u * u + 1),
    "inverse_multiquadric": lambda r, u: 1 / jnp.sqrt(u * u + 1),
    "gaussian": lambda r, u: jnp.exp(-u * u), "linear": lambda r, u: r,
    "cubic": lambda r, u: r**3, "quintic": lambda r, u: r**5,
    "thin_plate": lambda r, u: xlogy(r * r, r)})
_OTHER: Final[Mapping[str, str]] = MappingProxyType({
    "inverse": "inverse_multiquadric", "inverse multiquadric": "inverse_multiquadric",
    "thin-plate": "thin_plate"})


@register_pytree_with_keys_class
class Rbf:
    """Values d at points by radial functions: Rbf(x, y, ..., d), called with places x, y, ...

    `function` is "multiquadric", "inverse_multiquadric", "gaussian", "linear", "cubic", "quintic",
    "thin_plate", or a function of distances, or of this object and distances; `epsilon` is the
    unit of distance of the first three (the mean distance of points in their box). `smooth` lets
    values be missed, `norm` is a metric of `cdist` or a function of two points, and with
    `mode="N-D"` d has a last axis of values. It is a tree, differentiated in all arrays;
    `RBFInterpolator` adds a polynomial. Raises ShapeError for other lengths.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(5.0)
    >>> f = ft.scipy.interpolate.Rbf(x, ft.numpy.sin(x), function="gaussian")
    >>> round(float(f(2.0)), 3)
    0.909
    """

    def __init__(self, *args: ArrayLike, **kwargs: Any) -> None:
        if len(args) < 2:
            raise ArgumentError("functrans.scipy.interpolate.Rbf takes coordinates and values.",
                                where=user_source(), fix="Rbf(x, y, d)")
        known = {"mode", "norm", "epsilon", "smooth", "function"}
        if kwargs.keys() - known:
            raise ArgumentError(f"functrans.scipy.interpolate.Rbf: there is no "
                                f"{', '.join(sorted(kwargs.keys() - known))}.",
                                where=user_source(), fix=", ".join(sorted(known)))
        self.mode = kwargs.get("mode", "1-D")
        one_of("interpolate.Rbf", "mode", self.mode, ("1-D", "N-D"))
        *coordinates, values = inexact(*args)
        self.di = values.reshape(-1) if self.mode == "1-D" else values
        flat = [v.real.reshape(-1) for v in coordinates]
        if self.di.ndim < 1 or any(v.shape != self.di.shape[:1] for v in flat):
            raise ShapeError(f"functrans.scipy.interpolate.Rbf: coordinates have shapes "
                             f"{[v.shape for v in coordinates]}, values {values.shape}.",
                             where=user_source(), why="there is one of each for a point.")
        self.xi = jnp.stack(flat)
        self.N = int(self.xi.shape[1])
        self.norm = kwargs.get("norm", "euclidean")
        self.function = kwargs.get("function", "multiquadric")
        if isinstance(self.function, str):
            self.function = _OTHER.get(self.function.lower(), self.function.lower())
            one_of("interpolate.Rbf", "function", self.function, tuple(_FUNCTIONS))
        elif not callable(self.function):
            raise ArgumentError(f"functrans.scipy.interpolate.Rbf: function is "
                                f"{shown(self.function)}.", where=user_source(),
                                why="it is a name, or a function of distances.")
        epsilon = kwargs.get("epsilon")
        if epsilon is None:
            edges = jnp.ptp(self.xi, axis=1)
            some = edges > 0
            count = jnp.maximum(jnp.sum(some), 1).astype(edges.dtype)
            epsilon = (jnp.prod(jnp.where(some, edges, 1)) / self.N) ** (1 / count)
        self.epsilon, self.smooth = (jnp.asarray(v).astype(self.xi.dtype)
                                     for v in (epsilon, kwargs.get("smooth", 0.0)))
        self.nodes = jnp.linalg.solve(self.A.astype(self.di.dtype), self.di)

    _names = ("xi", "di", "nodes", "epsilon", "smooth")

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """The arrays are children."""
        return tuple((GetAttrKey(n), getattr(self, n)) for n in self._names), (
            self.function, self.norm, self.mode, self.N)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> Rbf:
        """An interpolator, without its construction."""
        made = object.__new__(cls)
        for name, child in zip(cls._names, children):
            setattr(made, name, child)
        made.function, made.norm, made.mode, made.N = aux
        return made

    @property
    def A(self) -> Array:
        """The matrix that is solved: the function of all distances, less what is smoothed."""
        return self._of(self._apart(self.xi.T)) - self.smooth * jnp.eye(
            self.N, dtype=self.xi.dtype)

    def _apart(self, places: Array) -> Array:
        """The distances (m, N); their derivative between equal points is 0."""
        if self.norm == "euclidean":
            return minkowski_distance(places[:, None], self.xi.T[None])
        return cdist(places, self.xi.T, self.norm)

    def _of(self, r: Array) -> Array:
        if isinstance(self.function, str):
            return _FUNCTIONS[self.function](r, r / self.epsilon)
        both = len(inspect.signature(self.function).parameters) > 1
        found = jnp.asarray(self.function(self, r) if both else self.function(r))
        if found.shape != r.shape:
            raise ShapeError(f"functrans.scipy.interpolate.Rbf: the function gives {found.shape} "
                             f"for distances {r.shape}.", where=user_source())
        return found

    def __call__(self, *args: ArrayLike) -> Array:
        """The values at places, of arrays of one shape for the coordinates."""
        *at, _ = inexact(*args, self.xi)
        if len(at) != self.xi.shape[0] or any(v.shape != at[0].shape for v in at):
            raise ShapeError(f"functrans.scipy.interpolate.Rbf: places have shapes "
                             f"{[v.shape for v in at]}.", where=user_source(),
                             why=f"there are {self.xi.shape[0]} coordinates of one shape.")
        places = jnp.stack([v.reshape(-1) for v in at], axis=1)
        rows = self._of(self._apart(places)).astype(self.nodes.dtype)
        return matmul(rows, self.nodes).reshape(*at[0].shape, *self.nodes.shape[1:])
