"""The nearest of many points, by all distances: what a tree of points is asked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import default_int
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, known_size, known_values
from functrans.scipy.spatial.points import distance_matrix, minkowski_distance
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["KDTree", "cKDTree"]

_AT_ONCE = 1 << 24  # distances of a block of places: 64 MiB of float32


@register_pytree_with_keys_class
class KDTree:
    """Points (n, dims) that are asked for those near to places, under `jit`, `vmap` and `grad`.

    It has SciPy's name and methods and no tree: all distances are computed, in blocks of places,
    which is n times the places in cost, and needs no branches. Distances are differentiated in
    points and places; sets of any size (`query_ball_point`, `query_pairs`) are lists, outside of
    `jit`. `leafsize` and the other options of construction are accepted.
    Raises ShapeError for points that are not (n, dims).

    >>> import functrans as ft
    >>> tree = ft.scipy.spatial.KDTree([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]])
    >>> distances, indices = tree.query([0.0, 0.5], k=2)
    >>> print(distances.round(3), indices)
    [0.5   1.118] [0 2]
    """

    def __init__(self, data: ArrayLike, leafsize: int = 10, compact_nodes: bool = True,
                 copy_data: bool = False, balanced_tree: bool = True,
                 boxsize: ArrayLike | None = None) -> None:
        (self.data,) = inexact(data)
        if self.data.ndim != 2 or not self.data.shape[1]:
            raise ShapeError(f"functrans.scipy.spatial.KDTree: the data have shape "
                             f"{self.data.shape}.", where=user_source(), why="they are (n, dims).",
                             fix="KDTree(x[:, None])")
        self.boxsize = None if boxsize is None else jnp.broadcast_to(
            jnp.asarray(boxsize, self.data.dtype), self.data.shape[1:])

    @property
    def n(self) -> int:
        """The number of points."""
        return int(self.data.shape[0])

    @property
    def m(self) -> int:
        """The number of dimensions."""
        return int(self.data.shape[1])

    @property
    def mins(self) -> Array:
        """The least coordinates."""
        return jnp.min(self.data, axis=0)

    @property
    def maxes(self) -> Array:
        """The largest coordinates."""
        return jnp.max(self.data, axis=0)

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """The points and the periods are children."""
        return tuple((GetAttrKey(n), getattr(self, n)) for n in ("data", "boxsize")), None

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> KDTree:
        """Points, without their construction."""
        made = object.__new__(cls)
        made.data, made.boxsize = children
        return made

    def _places(self, x: ArrayLike) -> Array:
        at, _ = inexact(x, self.data)
        if at.shape[-1:] != (self.m,):
            raise ShapeError(f"functrans.scipy.spatial.KDTree: the places have shape {at.shape}.",
                             where=user_source(), why=f"the last axis has {self.m} coordinates.")
        return at

    def _apart(self, x: Array, points: Array) -> Array:
        """The shortest way from places to points, around the box where there is one."""
        off = x - points
        if self.boxsize is None:
            return off
        box = jnp.where(self.boxsize > 0, self.boxsize, 1)
        return jnp.where(self.boxsize > 0, off - box * jnp.round(lax.stop_gradient(off) / box),
                         off)

    def _distances(self, x: Array, p: float) -> Array:
        """All distances from a place."""
        return minkowski_distance(self._apart(x, self.data), jnp.zeros_like(x), p)

    def query(self, x: ArrayLike, k: Any = 1, eps: float = 0.0, p: float = 2.0,
              distance_upper_bound: ArrayLike = math.inf, workers: int = 1
              ) -> tuple[Array, Array]:
        """Distances and indices of the k nearest points of each place (..., dims), nearest first.

        k is a number, which is an axis behind where it is above 1, or a list of which ones. Where
        there are no more points, or none nearer than `distance_upper_bound`, the distance is
        infinite and the index n. `eps` and `workers` are accepted.
        """
        at = self._places(x)
        ranks = np.asarray(k)
        if ranks.ndim > 1 or not ranks.size or ranks.min() < 1:
            raise ArgumentError(f"functrans.scipy.spatial.KDTree: k is {shown(k)}.",
                                where=user_source(), why="the nearest point is the first.",
                                fix="k=1")
        most = known_size("spatial.KDTree", "k", ranks.max())
        count = min(most, self.n)
        flat = at.reshape(-1, self.m)

        def nearest(place: Array) -> tuple[Array, Array]:
            _, near = lax.top_k(-lax.stop_gradient(self._distances(place, p)), count)
            off = self._apart(place, self.data[near])
            return minkowski_distance(off, jnp.zeros_like(place), p), near

        block = max(1, _AT_ONCE // max(self.n, 1))
        each = vmap(nearest, chunk_size=block) if flat.shape[0] > block else vmap(nearest)
        apart, near = each(flat)
        far = ~(apart < jnp.asarray(distance_upper_bound))
        pad = [(0, 0), (0, most - count)]
        apart = jnp.pad(jnp.where(far, math.inf, apart), pad, constant_values=math.inf)
        near = jnp.pad(jnp.where(far, self.n, near), pad, constant_values=self.n)
        lead = at.shape[:-1]
        chosen = 0 if ranks.ndim == 0 and most == 1 else np.arange(most) if ranks.ndim == 0 \
            else ranks - 1
        return tuple(v[:, chosen].reshape(*lead, *np.shape(chosen)) for v in (
            apart, near.astype(default_int())))  # type: ignore[return-value]

    def query_ball_point(self, x: ArrayLike, r: ArrayLike, p: float = 2.0, eps: float = 0.0,
                         workers: int = 1, return_sorted: bool | None = None,
                         return_length: bool = False) -> Any:
        """The indices of the points within r of each place: lists, or with `return_length` counts.

        Counts go through `jit`; lists do not, and of many places are an array of objects.
        """
        at = self._places(x)
        reach = jnp.broadcast_to(jnp.asarray(r), at.shape[:-1])
        flat, limits = at.reshape(-1, self.m), reach.reshape(-1)
        inside = vmap(lambda place, limit: self._distances(place, p) <= limit)(flat, limits)
        if return_length:
            return jnp.sum(inside, axis=1).astype(default_int()).reshape(at.shape[:-1])
        known = known_values("spatial.KDTree", "the places", inside, "how many points there are "
                             "depends on values.", "return_length=True, or query(x, k)")
        found = np.empty(len(known), object)
        for i, row in enumerate(known):
            found[i] = np.flatnonzero(row).tolist()
        return found[0] if at.ndim == 1 else found.reshape(at.shape[:-1])

    def query_ball_tree(self, other: KDTree, r: ArrayLike, p: float = 2.0, eps: float = 0.0
                        ) -> list[list[int]]:
        """Of each point the list of those of another tree within r."""
        return list(other.query_ball_point(self.data, r, p))

    def query_pairs(self, r: ArrayLike, p: float = 2.0, eps: float = 0.0,
                    output_type: str = "set") -> Any:
        """The pairs i < j of points within r: a set of tuples, or with "ndarray" rows."""
        if output_type not in ("set", "ndarray"):
            raise ArgumentError(f"functrans.scipy.spatial.KDTree: output_type={output_type!r}.",
                                where=user_source(), fix='output_type="set" or "ndarray"')
        inside = vmap(lambda place: self._distances(place, p) <= jnp.asarray(r))(self.data)
        known = known_values("spatial.KDTree", "the points", inside, "how many pairs there are "
                             "depends on values.", "call it outside of jit")
        rows = np.argwhere(np.triu(known, 1))
        return rows if output_type == "ndarray" else set(map(tuple, rows.tolist()))

    def count_neighbors(self, other: KDTree, r: ArrayLike, p: float = 2.0, weights: Any = None,
                        cumulative: bool = True) -> Array:
        """The number of pairs of points of both within r, for each of the radii.

        Pairs count by the product of the `weights` of both; without `cumulative` each radius has
        the pairs beyond the one before.
        """
        both = weights if isinstance(weights, tuple) else (weights, weights)
        one, two = (jnp.ones(t.n, t.data.dtype) if w is None else inexact(w)[0]
                    for w, t in zip(both, (self, other)))
        apart = vmap(lambda place: other._distances(place, p))(self.data)
        radii = jnp.asarray(r)
        shares = one[:, None] * two

        def within(limit: Array) -> Array:
            return jnp.sum(jnp.where(apart <= limit, shares, 0))

        found = vmap(within)(radii.reshape(-1))
        if not cumulative:
            found = jnp.diff(found, prepend=0)
        found = found if weights is not None else jnp.round(found).astype(default_int())
        return found.reshape(radii.shape)

    def sparse_distance_matrix(self, other: KDTree, max_distance: ArrayLike, p: float = 2.0,
                               output_type: str = "ndarray") -> Array:
        """The distances (n, n of other) of both, 0 beyond `max_distance`: a dense array."""
        if output_type != "ndarray":
            raise ArgumentError(f"functrans.scipy.spatial.KDTree: output_type={output_type!r}.",
                                where=user_source(), why="the matrix is dense.",
                                fix="sparse.BCOO.fromdense(tree.sparse_distance_matrix(other, r))")
        apart = distance_matrix(self.data, other.data, p) if self.boxsize is None else vmap(
            lambda place: other._distances(place, p))(self.data)
        return jnp.where(apart <= jnp.asarray(max_distance), apart, 0)


cKDTree = KDTree

publish(globals(), __all__)
