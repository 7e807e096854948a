"""Agglomerative clustering, with the names of scipy.cluster.hierarchy.

A linkage Z of n observations is (n - 1, 4): in each row the two clusters that are joined (those
below n are observations, n + i is that of row i), their distance and the number of observations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import default_int
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, known_size, known_values, of_rank, one_of
from functrans.scipy.cluster.disjoint_sets import DisjointSet
from functrans.scipy.cluster.trees import (
    dendrogram,
    from_mlab_linkage,
    optimal_leaf_ordering,
    set_link_color_palette,
    to_mlab_linkage,
)
from functrans.scipy.spatial.distance import pdist, squareform
from functrans.typing import Array, ArrayLike

__all__ = ["ClusterNode", "DisjointSet", "average", "centroid", "complete", "cophenet",
           "correspond", "cut_tree", "dendrogram", "fcluster", "fclusterdata", "from_mlab_linkage",
           "inconsistent", "is_isomorphic", "is_monotonic", "is_valid_im", "is_valid_linkage",
           "leaders", "leaves_list", "linkage", "maxRstat", "maxdists", "maxinconsts", "median",
           "num_obs_linkage", "optimal_leaf_ordering", "set_link_color_palette", "single",
           "to_mlab_linkage", "to_tree", "ward", "weighted"]


def _root(x: Array) -> Array:
    return jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0)


# of the distances of a third cluster to the two that are joined, of these, and of the sizes
_UPDATES: Final[Mapping[str, Callable[..., Array]]] = MappingProxyType({
    "single": lambda x, y, d, a, b, c: jnp.minimum(x, y),
    "complete": lambda x, y, d, a, b, c: jnp.maximum(x, y),
    "average": lambda x, y, d, a, b, c: (a * x + b * y) / (a + b),
    "weighted": lambda x, y, d, a, b, c: 0.5 * (x + y),
    "centroid": lambda x, y, d, a, b, c: _root((a * x * x + b * y * y - a * b * d * d / (a + b)) / (
        a + b)),
    "median": lambda x, y, d, a, b, c: _root(0.5 * (x * x + y * y) - 0.25 * d * d),
    "ward": lambda x, y, d, a, b, c: _root(((c + a) * x * x + (c + b) * y * y - c * d * d) / (
        a + b + c))})


def linkage(y: ArrayLike, method: str = "single", metric: Any = "euclidean",
            optimal_ordering: bool = False) -> Array:
    """The linkage of observations (n, m), or of their condensed distances (n (n - 1) / 2).

    `method` says how far a third cluster is from two that are joined: "single", "complete",
    "average", "weighted", "centroid", "median" or "ward" (the last three for Euclidean distances).
    n - 1 steps over all distances; heights are differentiated in the observations.
    With `optimal_ordering` leaves are in the order of `optimal_leaf_ordering`, for known values.
    Raises ArgumentError for unknown methods.
    Source: Lance and Williams, Computer J. 9 (1967).

    >>> import functrans as ft
    >>> Z = ft.scipy.cluster.hierarchy.linkage([[0.0], [1.0], [5.0]], "average")
    >>> Z.tolist()
    [[0.0, 1.0, 1.0, 2.0], [2.0, 3.0, 4.5, 3.0]]
    """
    one_of("cluster.hierarchy.linkage", "method", method, tuple(_UPDATES))
    (given,) = inexact(y)
    if given.ndim not in (1, 2):
        raise ShapeError(f"functrans.scipy.cluster.hierarchy.linkage: y has shape {given.shape}.",
                         where=user_source(), why="it is (n, m), or condensed distances.")
    apart = squareform(pdist(given, metric) if given.ndim == 2 else given)
    n = apart.shape[0]
    if n < 2:
        raise ShapeError(f"functrans.scipy.cluster.hierarchy.linkage: there are {n} observations.",
                         where=user_source(), why="at least two are joined.")
    dtype = apart.dtype
    update = _UPDATES[method]
    places = jnp.arange(n)

    def join(i: Any, state: Any) -> Any:
        apart, sizes, names, Z = state
        seen = jnp.where(jnp.isnan(apart), jnp.inf, apart)
        first, second = jnp.divmod(jnp.argmin(lax.stop_gradient(seen)), n)
        d, a, b = apart[first, second], sizes[first], sizes[second]
        row = update(apart[first], apart[second], d, a, b, sizes)
        # the second of the two holds the new cluster, and the first none
        gone = (places == first) | (places == second) | (sizes == 0)
        row = jnp.where(gone, jnp.inf, row)
        none = jnp.full_like(row, jnp.inf)
        apart = apart.at[second].set(row).at[:, second].set(row)
        apart = apart.at[first].set(none).at[:, first].set(none)
        one, two = names[first], names[second]
        entry = jnp.stack([jnp.minimum(one, two).astype(dtype), jnp.maximum(one, two).astype(dtype),
                           d, a + b])
        return (apart, sizes.at[second].set(a + b).at[first].set(0), names.at[second].set(n + i),
                Z.at[i].set(entry))

    start = (jnp.where(jnp.eye(n, dtype=bool), jnp.inf, apart), jnp.ones(n, dtype), places,
             jnp.zeros((n - 1, 4), dtype))
    Z: Array = lax.fori_loop(0, n - 1, join, start)[3]
    return optimal_leaf_ordering(Z, y, metric) if optimal_ordering else Z


def _named(method: str) -> Callable[[ArrayLike], Array]:
    def call(y: ArrayLike) -> Array:
        return linkage(y, method)

    call.__name__ = call.__qualname__ = method
    call.__doc__ = f"""The linkage by the method "{method}" of condensed distances; see `linkage`.

    >>> import functrans as ft
    >>> ft.scipy.cluster.hierarchy.{method}([1.0, 5.0, 4.0])[0].tolist()
    [0.0, 1.0, 1.0, 2.0]
    """
    return call


single = _named("single")
complete = _named("complete")
average = _named("average")
weighted = _named("weighted")
centroid = _named("centroid")
median = _named("median")
ward = _named("ward")


def _rows(name: str, Z: ArrayLike) -> tuple[Array, Array, int]:
    """A linkage, its joined clusters as integers, and the number of observations."""
    (z,) = inexact(Z)
    of_rank(f"cluster.hierarchy.{name}", "Z", z, 2)
    if z.shape[1] != 4 or not z.shape[0]:
        raise ShapeError(f"functrans.scipy.cluster.hierarchy.{name}: Z has shape {z.shape}.",
                         where=user_source(), why="a linkage is (n - 1, 4).",
                         fix="Z = linkage(y)")
    return z, lax.stop_gradient(z[:, :2]).astype(jnp.int32), z.shape[0] + 1


def num_obs_linkage(Z: ArrayLike) -> int:
    """The number of observations of a linkage.

    >>> import functrans as ft
    >>> ft.scipy.cluster.hierarchy.num_obs_linkage([[0.0, 1.0, 1.0, 2.0]])
    2
    """
    return _rows("num_obs_linkage", Z)[2]


def _pushed_up(values: Array, pairs: Array, n: int) -> Array:
    """The largest of the values of each row and of all rows below it."""
    none = jnp.full(n, -jnp.inf, values.dtype)

    def step(i: Any, out: Array) -> Array:
        below = jnp.maximum(out[pairs[i, 0]], out[pairs[i, 1]])
        return out.at[n + i].set(jnp.maximum(out[n + i], below))

    out: Array = lax.fori_loop(0, n - 1, step, jnp.concatenate([none, values]))
    return out[n:]


def maxdists(Z: ArrayLike) -> Array:
    """The largest distance of each join and of those below it.

    >>> import functrans as ft
    >>> ft.scipy.cluster.hierarchy.maxdists([[0.0, 1.0, 1.5, 2.0]]).tolist()
    [1.5]
    """
    z, pairs, n = _rows("maxdists", Z)
    return _pushed_up(z[:, 2], pairs, n)


def maxRstat(Z: ArrayLike, R: ArrayLike, i: int) -> Array:
    """The largest of column i of statistics R of each join and of those below it.

    >>> import functrans as ft
    >>> hierarchy = ft.scipy.cluster.hierarchy
    >>> Z = [[0.0, 1.0, 1.5, 2.0]]
    >>> hierarchy.maxRstat(Z, hierarchy.inconsistent(Z), 0).tolist()
    [1.5]
    """
    z, pairs, n = _rows("maxRstat", Z)
    column = known_size("cluster.hierarchy.maxRstat", "i", i, 0)
    return _pushed_up(inexact(R)[0][:, column].astype(z.dtype), pairs, n)


def maxinconsts(Z: ArrayLike, R: ArrayLike) -> Array:
    """The largest coefficient of inconsistency of each join and of those below it.

    >>> import functrans as ft
    >>> hierarchy = ft.scipy.cluster.hierarchy
    >>> Z = [[0.0, 1.0, 1.5, 2.0]]
    >>> hierarchy.maxinconsts(Z, hierarchy.inconsistent(Z)).tolist()
    [0.0]
    """
    return maxRstat(Z, R, 3)


def inconsistent(Z: ArrayLike, d: int = 2) -> Array:
    """Of each join and those up to d levels from it: mean, deviation, number, and its own score.

    >>> import functrans as ft
    >>> ft.scipy.cluster.hierarchy.inconsistent([[0.0, 1.0, 1.5, 2.0]]).tolist()
    [[1.5, 0.0, 1.0, 0.0]]
    """
    z, pairs, n = _rows("inconsistent", Z)
    depth = known_size("cluster.hierarchy.inconsistent", "d", d)
    nodes = jnp.arange(n - 1)[:, None]
    some = jnp.ones_like(nodes, bool)
    heights, masks = [], []
    for _ in range(min(depth, n - 1)):
        heights.append(jnp.where(some, z[:, 2][nodes], 0))
        masks.append(some)
        below = pairs[nodes].reshape(n - 1, -1)
        some = jnp.repeat(some, 2, axis=1) & (below >= n)
        nodes = jnp.maximum(below - n, 0)
        if depth > 12:  # a full tree of levels is wide: what is there comes first
            order = jnp.argsort(~some, axis=1)[:, :n - 1]
            nodes, some = (jnp.take_along_axis(v, order, axis=1) for v in (nodes, some))
    values, mask = jnp.concatenate(heights, axis=1), jnp.concatenate(masks, axis=1)
    count = jnp.sum(mask, axis=1).astype(z.dtype)
    mean = jnp.sum(values, axis=1) / count
    square = jnp.sum(jnp.where(mask, values - mean[:, None], 0) ** 2, axis=1)
    deviation = _root(square / jnp.maximum(count - 1, 1))
    flat = deviation == 0
    score = jnp.where(flat, 0, (z[:, 2] - mean) / jnp.where(flat, 1, deviation))
    return jnp.stack([mean, deviation, count, score], axis=1)


def cophenet(Z: ArrayLike, Y: ArrayLike | None = None) -> Array | tuple[Array, Array]:
    """The condensed distances at which observations are joined, after their correlation with Y.

    >>> import functrans as ft
    >>> hierarchy = ft.scipy.cluster.hierarchy
    >>> hierarchy.cophenet(hierarchy.linkage([1.0, 5.0, 4.0])).tolist()
    [1.0, 4.0, 4.0]
    """
    z, pairs, n = _rows("cophenet", Z)

    def step(i: Any, state: Any) -> Any:
        inside, apart = state
        one, two = inside[pairs[i, 0]], inside[pairs[i, 1]]
        both = (one[:, None] & two) | (two[:, None] & one)
        return inside.at[n + i].set(one | two), jnp.where(both, z[i, 2], apart)

    inside = jnp.concatenate([jnp.eye(n, dtype=bool), jnp.zeros((n - 1, n), bool)])
    _, apart = lax.fori_loop(0, n - 1, step, (inside, jnp.zeros((n, n), z.dtype)))
    found = apart[np.triu_indices(n, 1)]
    if Y is None:
        return found
    (y,) = inexact(Y)
    if y.shape != found.shape:
        raise ShapeError(f"functrans.scipy.cluster.hierarchy.cophenet: Y has shape {y.shape}.",
                         where=user_source(), why=f"of {n} observations there are {found.size} "
                         "distances.")
    return jnp.corrcoef(y, found)[0, 1], found


def _downwards(pairs: Array, n: int, first: Any, step: Callable[..., Any]) -> Any:
    """A loop over the joins from the last one to the first."""
    return lax.fori_loop(0, n - 1, lambda k, s: step(n - 2 - k, s), first)


def _sizes(z: Array, n: int) -> Array:
    return jnp.concatenate([jnp.ones(n, jnp.int32), lax.stop_gradient(z[:, 3]).astype(jnp.int32)])


def leaves_list(Z: ArrayLike) -> Array:
    """The observations in the order of the leaves, the first cluster of each join to the left.

    >>> import functrans as ft
    >>> hierarchy = ft.scipy.cluster.hierarchy
    >>> hierarchy.leaves_list(hierarchy.linkage([1.0, 5.0, 4.0])).tolist()
    [2, 0, 1]
    """
    z, pairs, n = _rows("leaves_list", Z)
    sizes = _sizes(z, n)

    def step(i: Any, places: Array) -> Array:
        left, right = pairs[i, 0], pairs[i, 1]
        at = places[n + i]
        return places.at[left].set(at).at[right].set(at + sizes[left])

    places = _downwards(pairs, n, jnp.zeros(2 * n - 1, jnp.int32), step)[:n]
    return jnp.argsort(places).astype(default_int())


def _flat(z: Array, pairs: Array, n: int, below: Array) -> tuple[Array, Array]:
    """The number of the cluster of each observation, from 1 on, and the topmost of its joins.

    `below` says of each join whether it is within a cluster. Numbers follow SciPy's walk, in which
    joins come before observations.
    """
    sizes = _sizes(z, n)
    whole = jnp.concatenate([jnp.ones(n, bool), below])

    def step(i: Any, state: Any) -> Any:
        places, tops = state
        left, right = pairs[i, 0], pairs[i, 1]
        at = places[n + i]
        # inner clusters first, then the observations
        right_first = (left < n) & (right >= n)
        to_left = jnp.where(right_first, at + sizes[right], at)
        to_right = jnp.where(right_first, at, at + sizes[left])
        for child in (left, right):
            tops = tops.at[child].set(jnp.where(whole[n + i], tops[n + i], child))
        return places.at[left].set(to_left).at[right].set(to_right), tops

    places, tops = _downwards(pairs, n, (jnp.zeros(2 * n - 1, jnp.int32), jnp.arange(2 * n - 1)),
                              step)
    order = jnp.argsort(places[:n])
    walked = tops[:n][order]
    new = jnp.concatenate([jnp.ones(1, bool), walked[1:] != walked[:-1]])
    numbers = jnp.zeros(n, jnp.int32).at[order].set(jnp.cumsum(new.astype(jnp.int32)))
    return numbers.astype(default_int()), tops[:n]


def _at_most(values: Array, most: Any, n: int) -> Array:
    """Whether joins count, so that at most so many clusters are left."""
    ordered = jnp.sort(values)
    # a threshold of the k-th value leaves n - k clusters, or fewer where values are equal
    k = jnp.clip(n - jnp.asarray(most), 1, n - 1)
    return jnp.where(jnp.asarray(most) >= n, False, values <= ordered[k - 1])


def fcluster(Z: ArrayLike, t: ArrayLike, criterion: str = "inconsistent", depth: int = 2,
             R: ArrayLike | None = None, monocrit: ArrayLike | None = None) -> Array:
    """The number of the flat cluster of each observation, from 1 on.

    `criterion` is "distance" (joins up to t), "maxclust" (t clusters at most), "inconsistent"
    (coefficients up to t, of R, or `inconsistent(Z, depth)`), "monocrit" (of that statistic) or
    "maxclust_monocrit". Raises ArgumentError for another.

    >>> import functrans as ft
    >>> hierarchy = ft.scipy.cluster.hierarchy
    >>> Z = hierarchy.linkage([[0.0], [1.0], [5.0]])
    >>> hierarchy.fcluster(Z, 2.0, "distance").tolist()
    [1, 1, 2]
    """
    one_of("cluster.hierarchy.fcluster", "criterion", criterion, (
        "inconsistent", "distance", "maxclust", "monocrit", "maxclust_monocrit"))
    z, pairs, n = _rows("fcluster", Z)
    if "monocrit" in criterion and monocrit is None:
        raise ArgumentError(f"functrans.scipy.cluster.hierarchy.fcluster: criterion="
                            f"{criterion!r} needs monocrit.", where=user_source(),
                            fix="monocrit=maxinconsts(Z, R)")
    if criterion == "inconsistent":
        values = maxinconsts(z, inconsistent(z, depth) if R is None else R)
    elif "monocrit" in criterion:
        values = inexact(monocrit if monocrit is not None else 0)[0]
    else:
        values = maxdists(z)
    below = _at_most(values, t, n) if criterion.startswith("maxclust") else values <= t
    return _flat(z, pairs, n, below)[0]


def fclusterdata(X: ArrayLike, t: ArrayLike, criterion: str = "inconsistent",
                 metric: Any = "euclidean", depth: int = 2, method: str = "single",
                 R: ArrayLike | None = None) -> Array:
    """The number of the flat cluster of each observation; see `linkage` and `fcluster`.

    >>> import functrans as ft
    >>> X = [[0.0], [1.0], [5.0]]
    >>> ft.scipy.cluster.hierarchy.fclusterdata(X, 2.0, "distance").tolist()
    [1, 1, 2]
    """
    return fcluster(linkage(X, method, metric), t, criterion, depth, R)


def leaders(Z: ArrayLike, T: ArrayLike) -> tuple[Array, Array]:
    """The topmost clusters of the flat clusters T and the numbers of these, outside of `jit`.

    >>> import functrans as ft
    >>> hierarchy = ft.scipy.cluster.hierarchy
    >>> Z = hierarchy.linkage([[0.0], [1.0], [5.0]])
    >>> [v.tolist() for v in hierarchy.leaders(Z, [1, 1, 2])]
    [[2, 3], [2, 1]]
    """
    why, fix = "how many there are depends on their values.", "call it outside of jit"
    z = known_values("cluster.hierarchy.leaders", "Z", jnp.asarray(Z), why, fix)
    flat = known_values("cluster.hierarchy.leaders", "T", jnp.asarray(T), why, fix)
    n = len(z) + 1
    number = np.concatenate([flat, np.full(n - 1, -1, flat.dtype)])
    found = []
    for i, (left, right) in enumerate(z[:, :2].astype(int)):
        if number[left] == number[right]:
            number[n + i] = number[left]
            continue
        found += [v for v in (left, right) if number[v] >= 0]
    if number[-1] >= 0:
        found.append(2 * n - 2)
    if len(set(flat.tolist())) != len(found):
        raise ArgumentError("functrans.scipy.cluster.hierarchy.leaders: T is no partition that Z "
                            "has.", where=user_source(), fix="T = fcluster(Z, t)")
    return jnp.asarray(found, default_int()), jnp.asarray(number[found], default_int())


def cut_tree(Z: ArrayLike, n_clusters: Any = None, height: Any = None) -> Array:
    """The number of the cluster of each observation, a column for each cut.

    Numbers begin with 0 and are in the order of the observations. Without both there is a column
    for each number of clusters, from n down to 1. Raises ArgumentError where both are given.

    >>> import functrans as ft
    >>> hierarchy = ft.scipy.cluster.hierarchy
    >>> Z = hierarchy.linkage([[0.0], [1.0], [5.0]])
    >>> hierarchy.cut_tree(Z, n_clusters=2).tolist()
    [[0], [0], [1]]
    """
    if n_clusters is not None and height is not None:
        raise ArgumentError("functrans.scipy.cluster.hierarchy.cut_tree: n_clusters and height.",
                            where=user_source(), why="it takes one of them.")
    z, pairs, n = _rows("cut_tree", Z)
    if height is not None:
        (heights,) = inexact(height)
        joined = jnp.sum(z[:, 2] <= jnp.atleast_1d(heights)[:, None], axis=1)
    else:
        joined = n - jnp.atleast_1d(jnp.arange(n, 0, -1) if n_clusters is None
                                    else jnp.asarray(n_clusters))

    def column(count: Array) -> Array:
        tops = _flat(z, pairs, n, jnp.arange(n - 1) < count)[1]
        same = tops[:, None] == tops
        first = jnp.argmax(same, axis=1)  # the first observation of each cluster
        opens = (first == jnp.arange(n)).astype(jnp.int32)
        return (jnp.cumsum(opens) - 1)[first]

    return lax.map(column, joined).T.astype(default_int())


def is_monotonic(Z: ArrayLike) -> Array:
    """Whether no join has a smaller distance than the one before.

    >>> import functrans as ft
    >>> bool(ft.scipy.cluster.hierarchy.is_monotonic([[0.0, 1.0, 1.5, 2.0]]))
    True
    """
    z = _rows("is_monotonic", Z)[0]
    return jnp.all(z[1:, 2] >= z[:-1, 2])


def is_valid_linkage(Z: ArrayLike, warning: bool = False, throw: bool = False,
                     name: str | None = None) -> bool:
    """Whether known values are those of a linkage; with `throw` raises ArgumentError if not.

    >>> import functrans as ft
    >>> ft.scipy.cluster.hierarchy.is_valid_linkage([[0.0, 3.0, 1.5, 2.0]])
    False
    """
    return _valid("is_valid_linkage", Z, _wrong_linkage, name or "Z", throw)


def is_valid_im(R: ArrayLike, warning: bool = False, throw: bool = False,
                name: str | None = None) -> bool:
    """Whether known values are those of `inconsistent`; with `throw` raises ArgumentError if not.

    >>> import functrans as ft
    >>> ft.scipy.cluster.hierarchy.is_valid_im([[1.5, 0.0, 1.0, 0.0]])
    True
    """
    def wrong(r: Any) -> str:
        if r.ndim != 2 or r.shape[1] != 4 or not len(r):
            return f"its shape is {r.shape}, not (n - 1, 4)"
        return "a mean, a deviation or a number is negative" if (r[:, :3] < 0).any() else ""

    return _valid("is_valid_im", R, wrong, name or "R", throw)


def _wrong_linkage(z: Any) -> str:
    if z.ndim != 2 or z.shape[1] != 4 or not len(z):
        return f"its shape is {z.shape}, not (n - 1, 4)"
    n = len(z) + 1
    pairs = z[:, :2]
    if (pairs != np.floor(pairs)).any() or (pairs < 0).any() or (
            pairs >= n + np.arange(n - 1)[:, None]).any():
        return "a row joins what there is not yet"
    if len(np.unique(pairs)) != pairs.size:
        return "a cluster is joined twice"
    if (z[:, 2] < 0).any():
        return "a distance is negative"
    return "a number of observations is not in 2 to n" if (
        (z[:, 3] < 2) | (z[:, 3] > n)).any() else ""


def _valid(function: str, x: ArrayLike, wrong: Callable[[Any], str], name: str, throw: bool
           ) -> bool:
    known = known_values(f"cluster.hierarchy.{function}", name, jnp.asarray(x),
                         "its values are looked at.", "call it outside of jit").astype(float)
    reason = wrong(known)
    if reason and throw:
        raise ArgumentError(f"functrans.scipy.cluster.hierarchy.{function}: {name} is not valid.",
                            where=user_source(), why=f"{reason}.")
    return not reason


def correspond(Z: ArrayLike, Y: ArrayLike) -> bool:
    """Whether a linkage and condensed distances are of one number of observations.

    >>> import functrans as ft
    >>> ft.scipy.cluster.hierarchy.correspond([[0.0, 1.0, 1.5, 2.0]], [1.5])
    True
    """
    n = num_obs_linkage(Z)
    return jnp.shape(Y) == (n * (n - 1) // 2,)


def is_isomorphic(T1: ArrayLike, T2: ArrayLike) -> Array:
    """Whether two assignments are one partition, with other names of the clusters.

    >>> import functrans as ft
    >>> bool(ft.scipy.cluster.hierarchy.is_isomorphic([1, 1, 2], [5, 5, 3]))
    True
    """
    one, two = jnp.asarray(T1), jnp.asarray(T2)
    if one.ndim != 1 or one.shape != two.shape:
        raise ShapeError(f"functrans.scipy.cluster.hierarchy.is_isomorphic: shapes {one.shape} and "
                         f"{two.shape}.", where=user_source(), why="both are vectors of one size.")
    return jnp.all((one[:, None] == one) == (two[:, None] == two))


class ClusterNode:
    """A node of the tree of `to_tree`: `id`, `dist`, `count`, `left` and `right`.

    >>> import functrans as ft
    >>> tree = ft.scipy.cluster.hierarchy.to_tree([[0.0, 1.0, 1.5, 2.0]])
    >>> tree.id, tree.dist, tree.left.is_leaf(), tree.pre_order()
    (2, 1.5, True, [0, 1])
    """

    def __init__(self, id: int, left: ClusterNode | None = None, right: ClusterNode | None = None,
                 dist: float = 0.0, count: int = 1) -> None:
        self.id, self.left, self.right, self.dist = id, left, right, dist
        self.count: int = count if left is None or right is None else left.count + right.count

    def get_id(self) -> int:
        """The number of the cluster."""
        return self.id

    def get_count(self) -> int:
        """The number of observations below."""
        return self.count

    def get_left(self) -> ClusterNode | None:
        """The node to the left."""
        return self.left

    def get_right(self) -> ClusterNode | None:
        """The node to the right."""
        return self.right

    def is_leaf(self) -> bool:
        """Whether the node is an observation."""
        return self.left is None

    def pre_order(self, func: Callable[[ClusterNode], Any] = lambda x: x.id) -> list[Any]:
        """The values of func of the observations below, from left to right."""
        found, open_nodes = [], [self]
        while open_nodes:
            node = open_nodes.pop()
            if node.left is None or node.right is None:
                found.append(func(node))
            else:
                open_nodes += [node.right, node.left]
        return found


def to_tree(Z: ArrayLike, rd: bool = False
            ) -> ClusterNode | tuple[ClusterNode, list[ClusterNode]]:
    """The root of the tree of a known linkage, with `rd` also the list of all nodes by number.

    >>> import functrans as ft
    >>> ft.scipy.cluster.hierarchy.to_tree([[0.0, 1.0, 1.5, 2.0]]).count
    2
    """
    if is_traced(Z):
        raise ArgumentError("functrans.scipy.cluster.hierarchy.to_tree: Z is traced.",
                            where=user_source(), why="nodes are objects, not arrays.",
                            fix="call it outside of jit")
    is_valid_linkage(Z, throw=True)
    z = np.asarray(Z)
    nodes = [ClusterNode(i) for i in range(len(z) + 1)]
    for left, right, apart, _ in z:
        nodes.append(ClusterNode(len(nodes), nodes[int(left)], nodes[int(right)], float(apart)))
    return (nodes[-1], nodes) if rd else nodes[-1]


publish(globals(), __all__)
