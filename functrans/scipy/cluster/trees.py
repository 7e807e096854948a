"""Linkages as drawings and as MATLAB has them, and the order of their leaves: of known values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_values, of_rank, one_of
from functrans.scipy.spatial.distance import pdist, squareform
from functrans.typing import Array, ArrayLike

_DEFAULT_PALETTE = ("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9")
_palette = list(_DEFAULT_PALETTE)  # what dendrograms take next: a setting of the process


def set_link_color_palette(palette: Sequence[str] | None) -> None:
    """Choose the colours of clusters in dendrograms, of matplotlib; None for the default ones.

    >>> ft.scipy.cluster.hierarchy.set_link_color_palette(["r", "g"])
    >>> ft.scipy.cluster.hierarchy.set_link_color_palette(None)
    """
    chosen = _DEFAULT_PALETTE if palette is None else palette
    if isinstance(chosen, str) or not chosen or not all(isinstance(c, str) for c in chosen):
        raise ArgumentError(f"functrans.scipy.cluster.hierarchy.set_link_color_palette: palette is "
                            f"{palette!r}.", where=user_source(), why="it is a list of colours.",
                            fix="set_link_color_palette(['r', 'g', 'b'])")
    _palette[:] = chosen


def _known(name: str, Z: ArrayLike) -> Any:
    z = known_values(f"cluster.hierarchy.{name}", "Z", jnp.asarray(Z),
                     "its tree depends on values.", f"{name}(Z)  # outside of jit").astype(float)
    if z.ndim != 2 or z.shape[1] < 3 or not len(z):
        raise ShapeError(f"functrans.scipy.cluster.hierarchy.{name}: Z has shape {z.shape}.",
                         where=user_source(), why="a linkage is (n - 1, 4).",
                         fix="Z = linkage(y)")
    return z


def to_mlab_linkage(Z: ArrayLike) -> Array:
    """A linkage as MATLAB has it: numbers from 1, and no sizes.

    >>> import functrans as ft
    >>> ft.scipy.cluster.hierarchy.to_mlab_linkage([[0.0, 1.0, 1.5, 2.0]]).tolist()
    [[1.0, 2.0, 1.5]]
    """
    z = of_rank("cluster.hierarchy.to_mlab_linkage", "Z", inexact(Z)[0], 2)
    return jnp.concatenate([z[:, :2] + 1, z[:, 2:3]], axis=1)


def from_mlab_linkage(Z: ArrayLike) -> Array:
    """The linkage of one of MATLAB's, (n - 1, 3), whose values are known.

    >>> import functrans as ft
    >>> ft.scipy.cluster.hierarchy.from_mlab_linkage([[1.0, 2.0, 1.5]]).tolist()
    [[0.0, 1.0, 1.5, 2.0]]
    """
    (given,) = inexact(Z)
    if given.size == 0:
        return given
    z = _known("from_mlab_linkage", given)
    n = len(z) + 1
    sizes = np.ones(2 * n - 1)
    pairs = z[:, :2].astype(int) - 1
    if (pairs < 0).any() or (pairs >= n + np.arange(n - 1)[:, None]).any():
        raise ArgumentError("functrans.scipy.cluster.hierarchy.from_mlab_linkage: a row joins a "
                            "cluster that there is not yet.", where=user_source(),
                            why="numbers are from 1, those of joins from n + 1.")
    for i, (left, right) in enumerate(pairs):
        sizes[n + i] = sizes[left] + sizes[right]
    return jnp.concatenate([given[:, :2] - 1, given[:, 2:3],
                            jnp.asarray(sizes[n:, None], given.dtype)], axis=1)


def optimal_leaf_ordering(Z: ArrayLike, y: ArrayLike, metric: Any = "euclidean") -> Array:
    """The linkage whose neighbouring leaves have the least sum of distances.

    y are the observations (n, m) or their condensed distances. The two clusters of each row are
    exchanged where that helps; values are known. A time of n**3.
    Source: Bar-Joseph, Gifford and Jaakkola, Bioinformatics 17 (2001).

    >>> import functrans as ft
    >>> hierarchy = ft.scipy.cluster.hierarchy
    >>> points = ft.numpy.array([[0.0], [5.0], [1.0], [6.0]])
    >>> Z = hierarchy.optimal_leaf_ordering(hierarchy.linkage(points), points)
    >>> hierarchy.leaves_list(Z).tolist()
    [0, 2, 1, 3]
    """
    z = _known("optimal_leaf_ordering", Z)
    (given,) = inexact(y)
    apart = known_values("cluster.hierarchy.optimal_leaf_ordering", "y", squareform(
        pdist(given, metric) if given.ndim == 2 else given), "the order depends on values.",
        "optimal_leaf_ordering(Z, y)  # outside of jit").astype(float)
    n = len(z) + 1
    if len(apart) != n:
        raise ShapeError(f"functrans.scipy.cluster.hierarchy.optimal_leaf_ordering: Z has {n} "
                         f"observations, y {len(apart)}.", where=user_source())
    pairs = z[:, :2].astype(int)
    children: dict[int, tuple[int, int]] = {n + i: (int(u), int(v))
                                            for i, (u, v) in enumerate(pairs)}
    leaves: dict[int, list[int]] = {i: [i] for i in range(n)}
    # cost[v]: of leaves u to the left and w to the right, the least sum within the cluster v
    cost: dict[int, Any] = {i: np.zeros((1, 1)) for i in range(n)}
    inner: dict[int, Any] = {}
    for v, (left, right) in children.items():
        leaves[v] = leaves[left] + leaves[right]
        count = len(leaves[left])
        across = apart[np.ix_(leaves[left], leaves[right])]
        # from the left end u over the best inner ends k and m to the right end w
        way = cost[left][:, :, None] + across[None]  # (u, k, m)
        k_best = way.argmin(axis=1)
        reached = np.take_along_axis(way, k_best[:, None], axis=1)[:, 0]  # (u, m)
        total = reached[:, :, None] + cost[right][None]  # (u, m, w)
        m_best = total.argmin(axis=1)
        best = np.take_along_axis(total, m_best[:, None], axis=1)[:, 0]
        whole = np.full((len(leaves[v]),) * 2, np.inf)
        whole[:count, count:], whole[count:, :count] = best, best.T
        cost[v], inner[v] = whole, (k_best, m_best, count)
    root = 2 * n - 2
    swap: dict[int, bool] = {}
    first, last = np.unravel_index(cost[root].argmin(), cost[root].shape)
    ends = [(root, int(first), int(last))]
    while ends:
        v, u, w = ends.pop()
        if v < n:
            continue
        left, right = children[v]
        k_best, m_best, count = inner[v]
        swap[v] = u >= count
        # with the ends of the left cluster first
        a, b = (w, u - count) if swap[v] else (u, w - count)
        m = int(m_best[a, b])
        k = int(k_best[a, m])
        ends += [(left, k, a), (right, b, m)] if swap[v] else [(left, a, k), (right, m, b)]
    flipped = np.array([swap[n + i] for i in range(n - 1)])
    table = inexact(Z)[0]
    return jnp.where(jnp.asarray(flipped)[:, None], table[:, jnp.array([1, 0, 2, 3])], table)


def dendrogram(Z: ArrayLike, p: int = 30, truncate_mode: str | None = None,
               color_threshold: float | None = None, get_leaves: bool = True,
               orientation: str = "top", labels: Any = None, count_sort: bool | str = False,
               distance_sort: bool | str = False, show_leaf_counts: bool = True,
               no_plot: bool = False, no_labels: bool = False, leaf_font_size: float | None = None,
               leaf_rotation: float | None = None,
               leaf_label_func: Callable[[int], str] | None = None,
               show_contracted: bool = False,
               link_color_func: Callable[[int], str] | None = None, ax: Any = None,
               above_threshold_color: str = "C0"
               ) -> dict[str, list[list[float]] | list[str] | list[int] | None]:
    """The lines of the tree of a linkage: a dict of their places, colours and leaves.

    `icoord` and `dcoord` are the four corners of each join, `ivl` the labels of leaves, `leaves`
    their numbers, `color_list` and `leaves_color_list` colours: clusters below `color_threshold`
    (0.7 of the greatest distance) have one each. `truncate_mode` is "lastp", for the last p joins,
    or "level", for p levels. It is drawn by matplotlib, which is then needed, unless `no_plot`.
    Values are known. Raises ArgumentError for options that do not fit.

    >>> import functrans as ft
    >>> hierarchy = ft.scipy.cluster.hierarchy
    >>> Z = hierarchy.linkage([[0.0], [1.0], [5.0]])
    >>> found = hierarchy.dendrogram(Z, no_plot=True)
    >>> found["ivl"], found["dcoord"][0]
    (['2', '0', '1'], [0.0, 1.0, 1.0, 0.0])
    """
    name = "cluster.hierarchy.dendrogram"
    z = _known("dendrogram", Z)
    one_of(name, "orientation", orientation, ("top", "left", "bottom", "right"))
    one_of(name, "truncate_mode", truncate_mode, (None, "none", "lastp", "level", "mlab", "mtica"))
    n = len(z) + 1
    if labels is not None and len(labels) != n:
        raise ShapeError(f"functrans.scipy.{name}: there are {len(labels)} labels.",
                         where=user_source(), why=f"there are {n} observations.")
    if count_sort and distance_sort:
        raise ArgumentError(f"functrans.scipy.{name}: count_sort and distance_sort.",
                            where=user_source(), why="it takes one of them.")
    limit = 0.7 * z[:, 2].max() if color_threshold is None or isinstance(
        color_threshold, str) else float(color_threshold)
    tree = _Drawing(z, p, truncate_mode, limit, count_sort, distance_sort, labels,
                    show_leaf_counts, leaf_label_func, link_color_func, above_threshold_color)
    tree.walk()
    found = tree.result(get_leaves)
    if not no_plot:
        _draw(found, z[:, 2].max(), orientation, no_labels, leaf_font_size, leaf_rotation, ax,
              tree.contracted if show_contracted else [], above_threshold_color)
    return found


class _Drawing:
    """The walk over a tree that places leaves at 5, 15, 25, ... and joins between them."""

    def __init__(self, z: Any, p: int, mode: str | None, limit: float, count_sort: Any,
                 distance_sort: Any, labels: Any, counts: bool, label_of: Any, color_of: Any,
                 above: str) -> None:
        self.z, self.n = z, len(z) + 1
        self.p, self.mode = int(p), mode
        self.limit, self.count_sort, self.distance_sort = limit, count_sort, distance_sort
        self.labels, self.counts, self.label_of, self.color_of = labels, counts, label_of, color_of
        self.above = above
        self.icoord: list[list[float]] = []
        self.dcoord: list[list[float]] = []
        self.colors: list[str] = []
        self.ivl: list[str] = []
        self.leaves: list[int] = []
        self.leaf_colors: list[str] = []
        self.contracted: list[tuple[float, float]] = []
        self._used = False
        self._next = 0
        self._chosen: dict[int, str] = {}
        self._leaf_set: set[int] = set()

    def _size(self, v: int) -> int:
        return 1 if v < self.n else int(self.z[v - self.n, 3])

    def _height(self, v: int) -> float:
        return 0.0 if v < self.n else float(self.z[v - self.n, 2])

    def _ends(self, v: int, level: int) -> bool:
        if v < self.n:
            return True
        if self.mode == "lastp":
            return v < 2 * self.n - self.p
        if self.mode in ("level", "mtica") and self.p > 0:
            return level > self.p
        return False

    def _ordered(self, v: int) -> tuple[int, int]:
        u, w = (int(x) for x in self.z[v - self.n, :2])
        if self.count_sort:
            a, b = self._size(u), self._size(w)
            swap = a > b if self.count_sort in (True, "ascending") else a <= b
        elif self.distance_sort:
            a_, b_ = self._height(u), self._height(w)
            swap = a_ > b_ if self.distance_sort in (True, "ascending") else a_ <= b_
        else:
            swap = False
        return (w, u) if swap else (u, w)

    def _current(self) -> str:
        return _palette[self._next % len(_palette)]

    def walk(self) -> None:
        """Place all leaves, and the joins after what they join; without recursion."""
        root = 2 * self.n - 2
        places: dict[int, float] = {}
        # a cluster is opened, coloured between the two below it, and joined
        stack = [(root, 0, "open")]
        opened: dict[int, tuple[int, int]] = {}
        while stack:
            v, level, what = stack.pop()
            if what == "open" and self._ends(v, level):
                places[v] = 10.0 * len(self.ivl) + 5.0
                self._leaf(v)
            elif what == "open":
                u, w = opened[v] = self._ordered(v)
                stack += [(v, level, "join"), (w, level + 1, "open"), (v, level, "color"),
                          (u, level + 1, "open")]
            elif what == "color":
                self._color(v)
            else:
                self._join(v, *opened[v], places)
        self._color_leaves()

    def _leaf(self, v: int) -> None:
        self.leaves.append(v)
        self._leaf_set.add(v)
        if self.label_of is not None:
            self.ivl.append(self.label_of(v))
        elif v < self.n:
            self.ivl.append(str(v) if self.labels is None else self.labels[v])
        else:
            self.ivl.append(f"({self._size(v)})" if self.counts else "")
            self._contract(v, 10.0 * len(self.ivl) - 5.0)

    def _contract(self, v: int, place: float) -> None:
        below = [v]
        while below:
            w = below.pop()
            if w >= self.n:
                self.contracted.append((place, self._height(w)))
                below += [int(x) for x in self.z[w - self.n, :2]]

    def _color(self, v: int) -> None:
        """Clusters below the threshold have one colour, and the next one another."""
        if self._height(v) >= self.limit or self.limit <= 0:
            self._next += self._used
            self._used = False
            self._chosen[v] = self.above
        else:
            self._used = True
            self._chosen[v] = self._current()

    def _join(self, v: int, u: int, w: int, places: dict[int, float]) -> None:
        a, b, height = places[u], places[w], self._height(v)
        places[v] = (a + b) / 2
        self.icoord.append([a, a, b, b])
        self.dcoord.append([self._shown(u), height, height, self._shown(w)])
        self.colors.append(self._chosen[v] if self.color_of is None else self.color_of(v))

    def _shown(self, v: int) -> float:
        """Where the line to a cluster begins: at 0 for those that are leaves here."""
        return 0.0 if v in self._leaf_set else self._height(v)

    def _color_leaves(self) -> None:
        """The colour of the lowest join of each leaf."""
        found: dict[float, str] = {}
        for xs, ys, color in zip(self.icoord, self.dcoord, self.colors):
            for x, y in ((xs[0], ys[0]), (xs[3], ys[3])):
                k = (x - 5.0) / 10.0
                if k == int(k) and int(k) not in found and y == 0:
                    found[int(k)] = color
        self.leaf_colors = [found.get(k, self.above) for k in range(len(self.leaves))]

    def result(self, get_leaves: bool) -> dict[str, Any]:
        """What SciPy returns."""
        found = {"icoord": self.icoord, "dcoord": self.dcoord, "ivl": self.ivl,
                 "leaves": self.leaves if get_leaves else None, "color_list": self.colors,
                 "leaves_color_list": self.leaf_colors}
        return found


def _draw(found: dict[str, Any], top: float, orientation: str, no_labels: bool, size: Any,
          rotation: Any, ax: Any, contracted: list[tuple[float, float]], above: str) -> None:
    """By matplotlib, into `ax` or the current axes."""
    if ax is None:
        try:
            import matplotlib.pyplot  # noqa: PLC0415  # may be absent
        except ImportError:
            raise ArgumentError("functrans.scipy.cluster.hierarchy.dendrogram: matplotlib is not "
                                "installed.", where=user_source(), why="it draws the tree.",
                                fix="no_plot=True, or pip install matplotlib") from None
        ax = matplotlib.pyplot.gca()
    upright = orientation in ("top", "bottom")
    for xs, ys, color in zip(found["icoord"], found["dcoord"], found["color_list"]):
        ax.plot(*((xs, ys) if upright else (ys, xs)), color=color)
    for x, y in contracted:
        ax.plot(*((x, y) if upright else (y, x)), "o", color=above, alpha=0.5)
    width, height = 10 * len(found["ivl"]), top * 1.05
    places = np.arange(5, width + 5, 10)
    sides = {"top": (0, height), "bottom": (height, 0), "left": (height, 0), "right": (0, height)}
    ax.set(**{"ylim" if upright else "xlim": sides[orientation],
              "xlim" if upright else "ylim": (0, width)})
    axis = ax.xaxis if upright else ax.yaxis
    axis.set_ticks([] if no_labels else places)
    if not no_labels:
        turned = rotation if rotation is not None else (90 if upright and len(places) > 20 else 0)
        axis.set_ticklabels(found["ivl"], rotation=turned, size=size)
